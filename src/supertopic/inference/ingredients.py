"""What prediction terms are made from: the chains, held-out documents, and what later batches go on with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supertopic.corpus.source import Arrays, Outline, Target, select_target
from supertopic.corpus.tokens import NO_TOKENS
from supertopic.inference.beside import NO_INPUTS, LinearInputs
from supertopic.inference.chains import ChainRun, Config, Split
from supertopic.inference.level import BaseRate, at_batch_level
from supertopic.inference.shrinkage import COVARIATES, SCALE, TOPICS, HeldOutDraws
from supertopic.model.posterior import Carryover, Posterior, TopicSet
from supertopic.model.responses.base import Response
from supertopic.model.terms import CovariateColumns, Residual, Term, TopicWeights

ALONE, BESIDE = "topics alone", "topics beside words"  # whose held-out log-likelihoods later batches go on with
Learner = Callable[[Residual], Term]  # learns one more term, after topics and words


@dataclass(frozen=True)
class Ingredients:
    """All that prediction terms are made from."""

    config: Config
    response: Response
    split: Split[Outline]
    runs: list[list[ChainRun]]  # for each set of topics the runs of its chains
    topics: tuple[TopicSet, ...]
    rate: BaseRate
    covariates: CovariateColumns
    counts: csr_array | None  # word counts of all documents, if they are in memory
    previous: Posterior | None
    discount: float
    seed: list[int]
    learners: Sequence[Learner] = ()
    inputs: LinearInputs = NO_INPUTS

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed[0], purpose, *self.seed[1:]])

    @property
    def past(self) -> Carryover:
        return self.previous.carryover if self.previous else Carryover()

    @property
    def raw(self) -> tuple[TopicWeights, np.ndarray, np.ndarray]:
        """Prediction weights as the chains have them: of topics, of covariates (chain, draw, R, P), and scales."""
        eta = [np.array([run.weights.eta for run in chains]) for chains in self.runs]
        n_topics = self.config.n_topics
        beside = np.concatenate([part[..., n_topics:] for part in eta], axis=2)
        scale = np.concatenate([np.array([run.weights.scale for run in chains]) for chains in self.runs], axis=2)
        return TopicWeights(tuple(part[..., :n_topics] for part in eta)), beside, scale

    def held_out_draws(self) -> list[HeldOutDraws]:
        """Of each chain, the columns of all sets side by side; none if nothing was held out."""
        found = []
        for runs in zip(*self.runs, strict=True):
            parts = [run.weights.held_out for run in runs]
            if parts[0] is not None:
                sides = zip(*(part for part in parts if part is not None), strict=True)
                found.append(HeldOutDraws(*(np.concatenate(side, axis=-1) for side in sides)))
        return found


def discounted(made: Ingredients, name: str) -> dict[str, np.ndarray] | None:
    """Log-likelihoods of the factors on held-out documents of earlier batches."""
    if name not in made.past.grids:
        return None
    grids = (made.discount * grid for grid in made.past.grids[name])
    return dict(zip((TOPICS, COVARIATES, SCALE), grids, strict=True))


class Evidence(NamedTuple):
    """Held-out documents for which draws of omega are kept."""

    target: Target  # at the level of this batch
    draws: list[HeldOutDraws]
    scales: np.ndarray  # (n_draws, R or 0)
    asked: np.ndarray  # their numbers
    lengths: np.ndarray  # their tokens
    offset: np.ndarray  # (n, R) or (n, 1): as in predictions, at the level of all batches so far

    def relative(self, centre: np.ndarray) -> list[HeldOutDraws]:
        """The draws, topics' parts relative to that of the usual mixture, (chain, R); without words there is none."""
        words = (self.lengths > 0)[:, None]
        return [part._replace(topics=part.topics - words * own) for part, own in zip(self.draws, centre, strict=True)]


def gather_held_out(made: Ingredients, scale: np.ndarray) -> Evidence | None:
    """The held-out documents; an empty set if there are none now but were in earlier batches."""
    split, draws, n_columns = made.split, made.held_out_draws(), made.rate.link.shape[0]
    held_out: Arrays | None = split.held_out
    asked = np.zeros(0, int)
    if not draws:
        if ALONE not in made.past.grids:
            return None
        omega = np.zeros((made.config.n_kept, 0, n_columns))
        draws = [HeldOutDraws(omega, omega[: len(omega) * bool(made.covariates.width)])] * made.config.n_chains
        held_out = Arrays(NO_TOKENS, select_target(split.seen.target, slice(0)))
    elif held_out is not None and split.some is not None:
        asked = np.flatnonzero(split.mask)[split.some]
        there = made.inputs.places(len(split.mask))[asked] >= 0  # those whose words and features are known
        held_out, asked = held_out.select(split.some).select(there), asked[there]
        draws = [HeldOutDraws(part.topics[:, there], part.covariates[:, there]) for part in draws]
    assert held_out is not None
    pairs = np.arange(len(draws[0].topics)) % scale.shape[1]
    lengths, offset = np.diff(held_out.doc_start), made.response.predictive_offset(held_out.target.offset)
    target = at_batch_level(made.response, held_out.target, lengths, made.rate.batch_shift)
    return Evidence(target, draws, np.concatenate(scale[:, pairs]), asked, lengths, offset)
