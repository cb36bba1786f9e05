"""One chain of a fit: Algorithm 1 iterated, and what is kept of it."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from supertopic.kernels.draws import make_key
from supertopic.model.groups import draw_variance, prior_variances
from supertopic.model.state import Priors, WeightPriors
from supertopic.sampling.engine import Engine, ShardFiles
from supertopic.sampling.gibbs import iterate, learn_priors, log_joint
from supertopic.sampling.plan import VARIANCE, Plan

TRACE_EVERY = 5  # iterations; the log joint and the loss take about a tenth of one
LEARN_FROM = 15  # iterations, or a quarter of the burn-in: the first topics are not worth learning priors from


class ChainDraws(NamedTuple):
    """What the iterations of a chain leave behind."""

    eta: np.ndarray  # (n_draws, R, K + P)
    scale: np.ndarray  # (n_draws, S): the response's own parameter
    word_topic: np.ndarray  # (V, K): counts, summed over the draws
    doc_topic: np.ndarray  # (n_docs, K): topic counts of the training documents, summed over the draws
    priors: Priors
    trace: np.ndarray  # (n_draws, 2): log joint and the response's loss
    history: np.ndarray  # (n, 2): the same every few iterations, from the first one on
    burn_in: int  # iterations before the first draw
    settled: bool
    seconds: np.ndarray  # (3,): in eta, z, lambda
    traffic: np.ndarray  # (2,): seconds and bytes of exchange between machines


class Chain:
    """The index-th chain of a plan, run by an engine that has its documents, and what is kept of it so far.

    `start` are topics (V, K) that the first z are drawn from. Iterations are kept after the burn-in, which lasts as
    long as the plan says, unless `end_burn_in` ends it.
    """

    def __init__(
        self, plan: Plan, index: int, engine: Engine, known: WeightPriors | None = None, start: np.ndarray | None = None
    ):
        self.plan, self.index, self.priors, self.response = plan, index, plan.priors, plan.response
        self.engine, self.known = engine, known
        self.iteration, self.burn_in, self.settled = 0, plan.burn_in, False
        if plan.n_groups:
            self.set_variance(np.ones(plan.n_columns))
        self.last_eta = np.zeros((plan.n_columns, plan.n_topics + plan.n_covariates))
        self.eta: list[np.ndarray] = []  # a draw each: (R, K + P)
        self.scale: list[np.ndarray] = []  # a draw each: the response's own parameter
        self.trace: list[np.ndarray] = []  # a draw each: (2,), log joint and the response's loss
        self.history: list[np.ndarray] = []  # the same every few iterations
        self.engine.start(make_key(plan.seed, index, 0), start)
        self.statistics = self.engine.statistics()

    def __enter__(self) -> "Chain":
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.close()

    def set_variance(self, variance: np.ndarray) -> None:
        """Set the variance between groups, (R,)."""
        plan = self.plan
        width, nu2 = plan.n_topics + plan.n_covariates, float(np.min(plan.priors.nu2))
        self.priors = self.priors._replace(nu2=prior_variances(nu2, variance, width, plan.n_groups))

    @property
    def variance(self) -> np.ndarray:
        """The variance between groups, (R,); empty without groups."""
        nu2 = self.priors.nu2
        return nu2[:, -1].copy() if isinstance(nu2, np.ndarray) else np.zeros(0)

    def end_burn_in(self, settled: bool) -> None:
        """Keep the iterations from now on."""
        self.burn_in, self.settled = self.iteration, settled

    def step(self) -> None:
        """One iteration; those after the burn-in are kept."""
        self.iteration += 1
        kept, key = self.iteration > self.burn_in, make_key(self.plan.seed, self.index, self.iteration)
        known = self.known.training if self.known else None
        self.last_eta, self.statistics, self.response = iterate(
            self.engine, self.statistics, known, self.response, self.priors, key, kept, self.last_eta
        )
        if self.plan.n_groups:
            intercepts = self.last_eta[:, -self.plan.n_groups :]
            self.set_variance(draw_variance(intercepts, self.variance, make_key(key, VARIANCE)))
        traced = self.iteration % TRACE_EVERY == 0
        if kept or traced:
            value = log_joint(self.engine, self.last_eta, self.response, self.priors, known)
            loss = -self.engine.log_likelihoods([replace(self.response, c=1.0)]).sum()
            self.trace += [np.array([value, loss])] * kept
            self.history += [np.array([value, loss])] * traced
        if kept:
            self.eta.append(self.last_eta)
            self.scale.append(self.response.scale)
        elif self.plan.learn and self.iteration > min(LEARN_FROM, self.plan.burn_in // 4):
            self.priors = learn_priors(self.engine, self.priors)

    def draws(self) -> ChainDraws:
        """What is kept of the chain."""
        return ChainDraws(
            np.array(self.eta), np.array(self.scale), self.engine.counts.summed_counts().word_topic,
            self.engine.topic_counts(), self.priors, np.array(self.trace),
            np.array(self.history).reshape(-1, 2), self.burn_in, self.settled, self.engine.timings(),
            self.engine.traffic(),
        )  # fmt: skip

    def state(self) -> dict[str, np.ndarray]:
        """What is kept so far; with the states of the shards it is all that `restore` needs to go on bit for bit."""
        return {
            "iteration": np.array([self.iteration]),
            "dense": np.array([self.engine.counts.dense]),
            "response": np.array(self.response.scale),
            "alpha": self.priors.alpha,
            "beta": np.array([self.priors.beta]),
            "variance": self.variance,
            "last_eta": self.last_eta,
            "eta": np.array(self.eta),
            "scale": np.array(self.scale),
            "trace": np.array(self.trace),
            "word_topic": self.engine.counts.summed.copy(),
            "seconds": self.engine.seconds.copy(),
            "history": np.array(self.history),
            "burn_in": np.array([self.burn_in, self.settled]),
        }

    def restore(self, state: dict[str, np.ndarray], shards: ShardFiles) -> None:
        """Be where a chain with this state was; `shards` are the files with the states of the shards."""
        summed, plan = state["word_topic"], self.plan
        if summed.shape != (plan.n_words, plan.n_topics) or summed.dtype.kind not in "iu" or (summed < 0).any():
            raise ValueError("The checkpoint does not fit these documents.")  # kernels check no bounds
        self.iteration = state["iteration"].item()
        self.priors = self.priors._replace(alpha=state["alpha"], beta=state["beta"].item())
        if plan.n_groups:
            self.set_variance(state["variance"])
        self.response = self.plan.response.with_scale(state["response"])
        self.last_eta = state["last_eta"]
        self.eta, self.scale, self.trace = (list(state[name]) for name in ("eta", "scale", "trace"))
        self.history = list(state["history"].reshape(-1, 2))
        self.burn_in, self.settled = int(state["burn_in"][0]), bool(state["burn_in"][1])
        self.engine.restore_shards(shards, self.last_eta)
        self.engine.counts.restore(summed, len(self.eta), state["dense"].item())
        self.engine.seconds = state["seconds"].copy()
        self.statistics = self.engine.statistics()
