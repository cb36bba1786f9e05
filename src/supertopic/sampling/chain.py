"""One chain of a fit: its iterations, what is kept of them, and what it leaves behind."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from supertopic.corpus.source import Arrays
from supertopic.inference.calibration import LEAST_SHOWN, NU2, NU2_SHOWN, THIN, carry_over, draw_weights
from supertopic.inference.shrinkage import Foretold, foretell
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Response
from supertopic.model.state import Priors, WeightPriors, mean_topics, no_statistics
from supertopic.sampling.engine import Engine
from supertopic.sampling.gibbs import draw_eta, iterate, learn_priors, log_joint
from supertopic.sampling.new_documents import PREDICT, FrozenTopics, freeze
from supertopic.sampling.plan import Plan
from supertopic.sampling.threads import ThreadEngine

LOG_JOINT_EVERY = 10  # iterations; it takes about a tenth of one
PREDICTING, SHOWN = 1 << 33, 1 << 36  # paths of random numbers that no training iteration takes


class Result(NamedTuple):
    """What a chain leaves behind."""

    eta: np.ndarray  # (n_draws, R, K + P)
    scale: np.ndarray  # (n_draws, R or 0): the response's own parameter
    calibrated: tuple[np.ndarray, np.ndarray]  # eta and scale for predictions
    shown: np.ndarray  # eta for reading
    foretold: Foretold | None  # what the weights for predictions say of hidden documents
    left_out: np.ndarray  # (n_docs, R): what their topics say of training documents as if they were new
    word_topic: np.ndarray  # (V, K): counts, summed over the draws
    doc_topic: np.ndarray  # (n_docs, K): topic counts of the training documents, summed over the draws
    priors: Priors
    trace: np.ndarray  # (n_draws, 2): log joint and the response's loss
    log_joint: list[tuple[int, float]]  # iteration, value
    seconds: np.ndarray  # (3,): in eta, z, lambda
    traffic: np.ndarray  # (2,): seconds and bytes for telling other machines
    learned: WeightPriors  # for later batches


class Chain:
    """The index-th chain of a plan, run by an engine that has its documents, and what is kept of it so far."""

    def __init__(self, plan: Plan, index: int, engine: Engine, known: WeightPriors | None):
        self.plan, self.index, self.priors, self.response = plan, index, plan.priors, plan.response
        self.engine = engine
        self.iteration = 0
        self.last_eta = np.zeros((plan.n_columns, plan.n_topics + plan.n_covariates))
        self.eta: list[np.ndarray] = []  # a draw each: (R, K + P)
        self.scale: list[np.ndarray] = []  # a draw each: (R,), or (0,)
        self.trace: list[np.ndarray] = []  # a draw each: (2,), log joint and the response's loss
        self.log_joint: list[tuple[int, float]] = []  # iteration, value
        self.weights: list[tuple[np.ndarray, Response]] = []  # for predictions
        self.shown: list[np.ndarray] = []  # a draw each: (R, K + P)
        self.foretold: Foretold | None = None
        self.left_out = np.zeros((0, plan.n_columns))
        self.known = known
        nothing = no_statistics(plan.n_topics + plan.n_covariates, plan.n_columns)
        self.before = known or WeightPriors(nothing, nothing, nothing)
        self.learned = self.before
        self.engine.start(make_key(plan.seed, index, 0))
        self.statistics = self.engine.statistics()

    def __enter__(self) -> "Chain":
        return self

    def __exit__(self, *error) -> None:
        self.engine.close()

    def step(self) -> None:
        """One iteration; what comes after the burn-in is kept."""
        self.iteration += 1
        kept, key = self.iteration > self.plan.burn_in, make_key(self.plan.seed, self.index, self.iteration)
        self.last_eta, self.statistics, self.response = iterate(
            self.engine, self.statistics, self.known and self.known.training, self.response, self.priors, key, kept
        )
        if kept or self.iteration % LOG_JOINT_EVERY == 0:
            known = self.known and self.known.training
            value = log_joint(self.engine, self.last_eta, self.response, self.priors, known)
            self.log_joint.append((self.iteration, value))
        if kept:
            loss = -self.engine.log_likelihoods([replace(self.response, c=1.0)]).sum()
            self.trace.append(np.array([value, loss]))
            self.eta.append(self.last_eta)
            self.scale.append(self.response.scale)
        elif self.plan.learn and self.iteration > self.plan.burn_in // 4:  # the first topics are as good as random
            self.priors = learn_priors(self.engine, self.priors)

    def remember(self) -> None:
        """Learn what later batches need to know of the chain's own weights, once it has come to its end."""
        if self.plan.n_columns:
            training = carry_over(self.engine, self.response, self.priors.nu2, self.before.training, self.eta)
            self.learned = self.learned._replace(training=training)

    def calibrate(self, n_sweeps: int, hidden: Arrays | None, asked: np.ndarray | None = None) -> Iterator[None]:
        """Draw weights for predictions and, from hidden documents, those that are shown; yields after each draw.

        `asked` is a mask of the hidden documents whose responses are foretold.
        """
        seed, known = self.plan.seed, self.before
        self.engine.leave_out(self.priors, n_sweeps, make_key(seed, self.index, PREDICT))
        key = make_key(seed, self.index, PREDICTING)
        for draw in draw_weights(self.engine, self.plan.response.plain(), NU2, known.prediction, len(self.eta), key):
            self.weights.append(draw)
            yield
        etas = np.array([eta for eta, _ in self.weights])
        response = self.plan.response.plain().with_scale(np.mean([drawn.scale for _, drawn in self.weights], axis=0))
        prediction = carry_over(self.engine, response, NU2, known.prediction, etas)
        self.learned = self.learned._replace(prediction=prediction)
        self.left_out = self.engine.left_out_omega(etas[:, :, : self.plan.n_topics].mean(axis=0))
        path, n_shown = make_key(seed, self.index, SHOWN), max(len(self.eta), LEAST_SHOWN)
        if hidden is None:
            if known.reported.precision.any():  # nothing new is known of them: what was known is drawn again
                self.shown = [draw_eta(known.reported, NU2_SHOWN, make_key(path, i)) for i in range(n_shown)]
            return
        everyone, topics = slice(0, len(hidden.target.y)), self.topics()
        plan = self.plan._replace(slices=(everyone,), groups=(slice(0, 1),))
        engine, key = ThreadEngine(plan, hidden, 1), make_key(seed, self.index, PREDICT)
        engine.infer_shares(topics, n_sweeps, key)
        response, drawn = self.plan.response.shown(), []
        for eta, latest in draw_weights(engine, response, NU2_SHOWN, known.reported, n_shown, path, THIN):
            self.shown.append(eta)
            drawn.append(latest.scale)
            yield
        response = response.with_scale(np.mean(drawn, axis=0))
        reported = carry_over(engine, response, NU2_SHOWN, known.reported, self.shown)
        self.learned = self.learned._replace(reported=reported)
        engine.close()
        some = hidden if asked is None else hidden.select(asked)
        self.foretold = foretell(some, topics, etas, n_sweeps, key)

    def topics(self) -> FrozenTopics:
        """The topics that new documents will see: those of the mean over the draws."""
        kept = self.engine.counts.summed_counts()
        return freeze(mean_topics(kept.word_topic, kept.n_draws, self.priors), self.plan.device)

    def finish(self) -> Result:
        """What is kept of the chain; its own weights take the place of those that were not drawn."""
        eta, scale, kept = np.array(self.eta), np.array(self.scale), self.engine.counts.summed_counts()
        calibrated = eta, scale
        if self.weights:
            calibrated = (
                np.array([eta for eta, _ in self.weights]),
                np.array([drawn.scale for _, drawn in self.weights]),
            )
        shown = np.array(self.shown) if self.shown else calibrated[0]
        doc_topic = self.engine.topic_counts()
        return Result(
            eta, scale, calibrated, shown, self.foretold, self.left_out, kept.word_topic, doc_topic, self.priors,
            np.array(self.trace), self.log_joint, self.engine.timings(), self.engine.traffic(),
            self.learned,
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
        """Continue from a saved state; the states of the shards are in a folder."""
        kept, plan = state["word_topic"], self.plan
        if kept.shape != (plan.n_words, plan.n_topics) or kept.dtype.kind not in "iu" or (kept < 0).any():
            raise ValueError("The checkpoint does not fit these documents.")  # kernels check no bounds
        self.iteration = state["iteration"].item()
        self.priors = self.priors._replace(alpha=state["alpha"], beta=state["beta"].item())
        self.response = self.plan.response.with_scale(state["response"])
        self.last_eta = state["last_eta"]
        self.eta, self.scale, self.trace = (list(state[name]) for name in ("eta", "scale", "trace"))
        self.log_joint = [(int(i), float(value)) for i, value in state["log_joint"].reshape(-1, 2)]
        self.engine.restore_shards(shards, self.response, self.last_eta)
        self.engine.counts.restore(kept, len(self.eta), state["dense"].item())
        self.engine.seconds = state["seconds"].copy()
        self.statistics = self.engine.statistics()


def join(parts: list[Result], n_covariates: int) -> Result:
    """Chains that have topics and columns of their own as one: its topics are theirs, side by side.

    A column has weights for its own part's topics, and 0 for the others.
    """
    if len(parts) == 1:
        return parts[0]

    def beside(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)

    def apart(draws: list[np.ndarray]) -> np.ndarray:  # (n_draws, R, K + P) of each
        n_topics = draws[0].shape[2] - n_covariates
        wide = np.zeros((len(draws[0]), len(draws), len(draws) * n_topics + n_covariates))
        for i, eta in enumerate(draws):
            wide[:, i, i * n_topics : (i + 1) * n_topics] = eta[:, 0, :n_topics]
            wide[:, i, len(draws) * n_topics :] = eta[:, 0, n_topics:]
        return wide

    eta, shown, new = ([value(part) for part in parts] for value in (
        lambda part: part.eta, lambda part: part.shown, lambda part: part.calibrated[0]
    ))  # fmt: skip
    new_scale = np.concatenate([part.calibrated[1] for part in parts], axis=-1)
    foretold = None
    if parts[0].foretold:
        foretold = Foretold(*(np.concatenate(told, axis=-1) for told in zip(*(p.foretold for p in parts), strict=True)))
    log_joint = [
        (iteration, sum(part.log_joint[i][1] for part in parts)) for i, (iteration, _) in enumerate(parts[0].log_joint)
    ]
    alpha = np.concatenate([part.priors.alpha for part in parts])
    return Result(
        apart(eta), beside("scale"), (apart(new), new_scale), apart(shown), foretold, beside("left_out"),
        beside("word_topic"), beside("doc_topic"), parts[0].priors._replace(alpha=alpha),
        np.sum([part.trace for part in parts], axis=0), log_joint, np.sum([part.seconds for part in parts], axis=0),
        np.sum([part.traffic for part in parts], axis=0), parts[0].learned,
    )  # fmt: skip
