"""One chain of a fit: Algorithm 1 iterated, and what is kept of it."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from supertopic.kernels.draws import make_key
from supertopic.model.state import Priors, WeightPriors
from supertopic.sampling.engine import Engine
from supertopic.sampling.gibbs import iterate, learn_priors, log_joint
from supertopic.sampling.plan import Plan

LOG_JOINT_EVERY = 10  # iterations; it takes about a tenth of one


class ChainDraws(NamedTuple):
    """What the iterations of a chain leave behind."""

    eta: np.ndarray  # (n_draws, R, K + P)
    scale: np.ndarray  # (n_draws, R or 0): the response's own parameter
    word_topic: np.ndarray  # (V, K): counts, summed over the draws
    doc_topic: np.ndarray  # (n_docs, K): topic counts of the training documents, summed over the draws
    priors: Priors
    trace: np.ndarray  # (n_draws, 2): log joint and the response's loss
    log_joint: list[tuple[int, float]]  # iteration, value
    seconds: np.ndarray  # (3,): in eta, z, lambda
    traffic: np.ndarray  # (2,): seconds and bytes of exchange between machines


class Chain:
    """The index-th chain of a plan, run by an engine that has its documents, and what is kept of it so far."""

    def __init__(self, plan: Plan, index: int, engine: Engine, known: WeightPriors | None = None):
        self.plan, self.index, self.priors, self.response = plan, index, plan.priors, plan.response
        self.engine, self.known = engine, known
        self.iteration = 0
        self.last_eta = np.zeros((plan.n_columns, plan.n_topics + plan.n_covariates))
        self.eta: list[np.ndarray] = []  # a draw each: (R, K + P)
        self.scale: list[np.ndarray] = []  # a draw each: (R,), or (0,)
        self.trace: list[np.ndarray] = []  # a draw each: (2,), log joint and the response's loss
        self.log_joint: list[tuple[int, float]] = []  # iteration, value
        self.engine.start(make_key(plan.seed, index, 0))
        self.statistics = self.engine.statistics()

    def __enter__(self) -> "Chain":
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.close()

    def step(self) -> None:
        """One iteration; those after the burn-in are kept."""
        self.iteration += 1
        kept, key = self.iteration > self.plan.burn_in, make_key(self.plan.seed, self.index, self.iteration)
        known = self.known.training if self.known else None
        self.last_eta, self.statistics, self.response = iterate(
            self.engine, self.statistics, known, self.response, self.priors, key, kept
        )
        if kept or self.iteration % LOG_JOINT_EVERY == 0:
            value = log_joint(self.engine, self.last_eta, self.response, self.priors, known)
            self.log_joint.append((self.iteration, value))
        if kept:
            loss = -self.engine.log_likelihoods([replace(self.response, c=1.0)]).sum()
            self.trace.append(np.array([value, loss]))
            self.eta.append(self.last_eta)
            self.scale.append(self.response.scale)
        elif self.plan.learn and self.iteration > self.plan.burn_in // 4:  # the first topics are as good as random
            self.priors = learn_priors(self.engine, self.priors)

    def draws(self) -> ChainDraws:
        """What is kept of the chain."""
        return ChainDraws(
            np.array(self.eta), np.array(self.scale), self.engine.counts.summed_counts().word_topic,
            self.engine.topic_counts(), self.priors, np.array(self.trace), self.log_joint, self.engine.timings(),
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
            "last_eta": self.last_eta,
            "eta": np.array(self.eta),
            "scale": np.array(self.scale),
            "trace": np.array(self.trace),
            "word_topic": self.engine.counts.summed.copy(),
            "seconds": self.engine.seconds.copy(),
            "log_joint": np.array(self.log_joint),
        }

    def restore(self, state: dict[str, np.ndarray], shards: Path) -> None:
        """Be where a chain with this state was; `shards` is the folder with the states of the shards."""
        summed, plan = state["word_topic"], self.plan
        if summed.shape != (plan.n_words, plan.n_topics) or summed.dtype.kind not in "iu" or (summed < 0).any():
            raise ValueError("The checkpoint does not fit these documents.")  # kernels check no bounds
        self.iteration = state["iteration"].item()
        self.priors = self.priors._replace(alpha=state["alpha"], beta=state["beta"].item())
        self.response = self.plan.response.with_scale(state["response"])
        self.last_eta = state["last_eta"]
        self.eta, self.scale, self.trace = (list(state[name]) for name in ("eta", "scale", "trace"))
        self.log_joint = [(int(i), float(value)) for i, value in state["log_joint"].reshape(-1, 2)]
        self.engine.restore_shards(shards, self.response, self.last_eta)
        self.engine.counts.restore(summed, len(self.eta), state["dense"].item())
        self.engine.seconds = state["seconds"].copy()
        self.statistics = self.engine.statistics()
