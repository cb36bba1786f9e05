"""From the chains' weights to the terms of predictions: shrinkage, words, further terms, and the level of omega."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from supertopic.corpus.source import Arrays, Target
from supertopic.inference.chains import ChainRun, Config, Split
from supertopic.inference.held_out import describe_held_out
from supertopic.inference.level import FEW_LABELS, BaseRate, OmegaDraws, at_batch_level, level_of, shift_level
from supertopic.inference.predict import LearnedTopics, SampledDocuments
from supertopic.inference.shrinkage import (
    BESIDE_WORDS,
    COVARIATES,
    SCALE,
    TOPICS,
    HeldOutDraws,
    Shrinkage,
    draw_factors,
    estimate_shrinkage,
)
from supertopic.inference.words import (
    HeldOut,
    Seen,
    WordFit,
    carry,
    count_documents,
    learn_words,
    make_dictionary,
    make_past,
)
from supertopic.model.posterior import Carryover, Posterior, TopicSet, WordCarryover
from supertopic.model.responses.base import Response
from supertopic.model.terms import (
    COPIES,
    CovariateColumns,
    CovariateWeights,
    Dictionary,
    Intercept,
    Residual,
    Term,
    TopicWeights,
    WordWeights,
)
from supertopic.sampling.pool import each

ALONE, BESIDE = "topics alone", "topics beside words"  # whose held-out log-likelihoods later batches go on with
Learner = Callable[[Residual], Term]  # learns one more term, after topics and words


class PredictionTerms(NamedTuple):
    """The terms of omega in predictions, and what later batches and readers need to know of them."""

    terms: tuple[Term, ...]
    scale: np.ndarray  # (chain, draw, R or 0)
    held_out: dict[str, Any] | None  # None: as it was
    carryover: Carryover


@dataclass(frozen=True)
class Ingredients:
    """All that prediction terms are made from."""

    config: Config
    response: Response
    split: Split
    runs: list[list[ChainRun]]  # of each set of topics, a chain each
    topics: tuple[TopicSet, ...]
    rate: BaseRate
    covariates: CovariateColumns
    counts: csr_array | None  # of all documents, if they are in memory
    previous: Posterior | None
    discount: float
    seed: list[int]
    learners: Sequence[Learner] = ()

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


def uncalibrated_terms(made: Ingredients) -> PredictionTerms:
    """The chains' own weights, and the base rate as the level."""
    topics, beside, scale = made.raw
    terms = [topics, *with_covariates(made.covariates, beside), intercept(made, made.rate.base)]
    return PredictionTerms(tuple(terms), scale, {"documents": 0}, carry_over(made, scale, words=None))


def with_covariates(columns: CovariateColumns, eta: np.ndarray) -> list[CovariateWeights]:
    return [CovariateWeights(columns, eta)] if len(columns.names) else []


def intercept(made: Ingredients, level: np.ndarray) -> Intercept:
    rate = made.rate
    return Intercept(made.response, level, rate.base, rate.empty, rate.empty_documents)


def carry_over(made: Ingredients, scale: np.ndarray, **more: Any) -> Carryover:
    weights = tuple(tuple(run.weights.known for run in chains) for chains in made.runs)
    level = made.response.offset_in_units(made.rate.link)
    return replace(made.past, weights=weights, sums=made.rate.sums, level=level, scale=np.concatenate(scale), **more)


def calibrated_terms(made: Ingredients) -> PredictionTerms:
    """Prediction weights, shrunk as held-out documents say, with words beside them, and the level found last."""
    topics, beside, scale = made.raw
    response, split = made.response.plain(), made.split
    lengths = np.diff(split.seen.doc_start)
    seen = at_batch_level(made.response, split.seen.target, lengths, made.rate.batch_shift)
    left_out, by_covariates = left_out_omega(made), seen.covariates @ beside.mean(axis=(0, 1)).T
    evidence = gather_held_out(made, scale)
    of_mean = response.with_scale(scale.mean(axis=(0, 1)))
    alone, words = shrink_alone(made, evidence), None
    if made.config.words and made.counts is not None:
        target = seen._replace(offset=seen.offset + by_covariates)
        words = fit_words(made, evidence, of_mean, Seen(made.counts[~split.mask], target, left_out))
    shrinkage = alone if words is None else words.fit.shrinkage or alone
    word_share = 0.0 if words is None else words.keep_copies(alone)
    factors = DrawnFactors.draw(shrinkage, alone, word_share, scale.shape[:2], seen.y.shape[1], made.rng(2))
    centre = usual_omega(made, topics)
    draws = factors.omega_draws(
        seen, left_out - centre.mean(axis=0), by_covariates, words.fit.added if words else 0.0,
        evidence.draws if evidence else [], centre,
    )  # fmt: skip
    further = learn_further(made, of_mean, seen, draws)
    for _, added in further:
        draws = [kind._replace(omega=kind.omega + added) for kind in draws]
    shift = shift_level(response, seen, lengths, draws, earlier_shift(made), made.rng(5))
    terms = [
        topics.centred(centre).scaled(factors.topics),
        *(term.scaled(factors.covariates) for term in with_covariates(made.covariates, beside)),
        intercept(made, made.rate.base + level_of(shift)),
        *(words.terms() if words else []),
        *(term for term, _ in further),
    ]
    described, n_held_out = None if made.previous else {"documents": 0}, int(split.mask.sum())
    if shrinkage and alone and n_held_out:
        described = describe_held_out(shrinkage, alone, word_share, n_held_out, made.response)
    of_words = words.carryover() if words else None
    carryover = carry_over(made, scale, level_shift=shift, words=of_words, grids=summed_grids(made, alone, words))
    return PredictionTerms(tuple(terms), scale * factors.scale[..., : scale.shape[2]], described, carryover)


def left_out_omega(made: Ingredients) -> np.ndarray:
    """The topics' part of omega of the seen documents from left-out shares, averaged over chains: (n_docs, R)."""
    chains = zip(*made.runs, strict=True)
    return np.mean([np.concatenate([run.weights.left_out_omega for run in runs], axis=1) for runs in chains], axis=0)


def shrink_alone(made: Ingredients, evidence: "Evidence | None") -> Shrinkage | None:
    """The shrinkage of topics without words beside them."""
    if evidence is None:
        return None
    response, earlier = made.response.plain(), discounted(made, ALONE)
    return estimate_shrinkage(response, evidence.target, evidence.draws, evidence.scales, earlier=earlier)


def earlier_shift(made: Ingredients) -> np.ndarray:
    """What `shift_level` found in earlier batches, discounted, (3, R)."""
    known = made.past.level_shift
    earlier = np.zeros((3, len(made.rate.link))) if known is None else known.copy()
    earlier[:2] *= made.discount
    return earlier


def summed_grids(made: Ingredients, alone: Shrinkage | None, words: "Words | None") -> dict[str, list[np.ndarray]]:
    """Log-likelihoods of the factors on all held-out documents so far."""
    grids = dict(made.past.grids)
    if words and words.fit.shrinkage and alone:
        grids[BESIDE] = list(words.fit.shrinkage.grids.values())
    if alone:
        grids[ALONE] = list(alone.grids.values())
    return grids


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


def gather_held_out(made: Ingredients, scale: np.ndarray) -> Evidence | None:
    """The held-out documents; an empty set if there are none now but were in earlier batches."""
    split, draws, n_columns = made.split, made.held_out_draws(), made.rate.link.shape[0]
    held_out: Arrays | None = split.held_out
    asked = np.zeros(0, int)
    if not draws:
        if ALONE not in made.past.grids:
            return None
        omega = np.zeros((made.config.n_kept, 0, n_columns))
        draws = [HeldOutDraws(omega, omega[: len(omega) * bool(len(made.covariates.names))])] * made.config.n_chains
        held_out = split.seen.select(np.zeros(len(split.seen.target.y), bool)).load()
    elif held_out is not None and split.some is not None:
        held_out, asked = held_out.select(split.some), np.flatnonzero(split.mask)[split.some]
    assert held_out is not None
    pairs = np.arange(len(draws[0].topics)) % scale.shape[1]
    target = at_batch_level(made.response, held_out.target, np.diff(held_out.doc_start), made.rate.batch_shift)
    return Evidence(target, draws, np.concatenate(scale[:, pairs]), asked)


@dataclass
class Words:
    """Words beside topics while they are learned."""

    dictionary: Dictionary
    documents: np.ndarray  # (V + 1,)
    fit: WordFit

    def keep_copies(self, alone: Shrinkage | None) -> float:
        """The share of draws that words are in, in steps of a copy; the other copies become 0."""
        share = float(self.fit.copies.any())
        if self.fit.shrinkage and alone:
            share = round(COPIES * expit(self.fit.shrinkage.evidence - alone.evidence)) / COPIES
        self.fit.copies[round(COPIES * share) :] = 0.0
        return share

    def terms(self) -> list[WordWeights]:
        return [WordWeights(self.dictionary, self.fit.copies)] if self.fit.copies.size else []

    def carryover(self) -> WordCarryover:
        past = self.fit.past
        arrays = past.theta.astype(np.float32), past.precision.astype(np.float32)
        return WordCarryover(self.documents, *arrays, past.penalty)


def fit_words(made: Ingredients, evidence: Evidence | None, response: Response, seen: Seen) -> Words:
    """Learn the weights of words; `seen` still has word counts in place of tf-idf rows."""
    assert made.counts is not None
    n_columns, known = seen.target.y.shape[1], made.past.words
    documents = count_documents(made.counts)
    if known:
        documents = documents + made.discount * known.documents
    dictionary, past = make_dictionary(documents, n_columns), None
    if known and made.previous and made.previous.words:
        old = make_past(known.theta, known.precision, known.penalty)
        past = carry(old, made.previous.words.dictionary, dictionary, made.discount)
    rows = dictionary.rows(made.counts)
    n_threads = made.config.n_threads
    asked = evidence.asked if evidence else np.zeros(0, int)
    none = Target(*(array[:0] for array in seen.target))
    held_out = HeldOut(
        rows[asked], evidence.target if evidence else none, evidence.draws if evidence else [],
        evidence.scales if evidence else np.zeros((0, 0)),
    )  # fmt: skip

    def run(verb: Callable[[int], Any], n: int) -> list[Any]:
        return each(verb, n, min(n, n_threads), threading.Event())

    fit = learn_words(
        seen._replace(x=rows[~made.split.mask]), held_out, response, made.seed, run, past, discounted(made, BESIDE)
    )
    return Words(dictionary, documents, fit)


def usual_omega(made: Ingredients, topics: TopicWeights) -> np.ndarray:
    """omega of the usual mixture of topics in all batches so far, (chain, R).

    Prediction weights are relative to it, so that a constant that all topics have in common, which the level takes the
    place of, is neither shrunk nor counted twice. Where there is no such level, they stay.
    """
    n_known = made.rate.sums[4]
    firm = made.response.calibrates_mean * n_known / (n_known + FEW_LABELS)  # seeds count where there are few labels
    parts = [
        np.einsum("crk,ck->cr", eta.mean(axis=1), part.shares)
        for eta, part in zip(topics.eta, made.topics, strict=True)
    ]
    return np.concatenate(parts, axis=1) * firm


@dataclass(frozen=True)
class DrawnFactors:
    """Factors of each draw, (chain, draw, R): draws with words beside topics have others than those without."""

    topics: np.ndarray
    covariates: np.ndarray
    scale: np.ndarray
    with_words: np.ndarray  # (chain, draw) bool

    @classmethod
    def draw(
        cls, beside: Shrinkage | None, alone: Shrinkage | None, word_share: float, shape: tuple[int, ...],
        n_columns: int, rng: np.random.Generator,
    ) -> "DrawnFactors":  # fmt: skip
        n = shape[0] * shape[1]
        with_words = np.arange(n) % COPIES < COPIES * word_share
        both = draw_factors(beside, n, rng, BESIDE_WORDS), draw_factors(alone, n, rng, 1.0)
        chosen = {
            name: np.broadcast_to(
                np.where(with_words[:, None], both[0][name], both[1][name]).reshape(*shape, -1), (*shape, n_columns)
            )
            for name in (TOPICS, COVARIATES, SCALE)
        }
        return cls(chosen[TOPICS], chosen[COVARIATES], chosen[SCALE], with_words.reshape(shape))

    def omega_draws(
        self, seen: Target, topics: np.ndarray, covariates: np.ndarray, words: np.ndarray | float,
        held_out: list[HeldOutDraws], centre: np.ndarray,
    ) -> list[OmegaDraws]:  # fmt: skip
        """Draws with and without words: their mean omega of training documents, and their spread on held-out ones."""
        found = []
        for kind in np.unique(self.with_words):
            own = self.with_words == kind
            a, b = self.topics[own].mean(axis=0), self.covariates[own].mean(axis=0)
            like = topics * a + covariates * b
            omega = seen.offset + like + (words if kind else 0.0)
            found.append(OmegaDraws(float(own.mean()), omega, self.of_held_out(held_out, centre, own), like))
        return found

    def of_held_out(self, draws: list[HeldOutDraws], centre: np.ndarray, own: np.ndarray) -> np.ndarray:
        """omega of held-out documents in the draws of the mask `own` (chain, draw): (n, n_held_out, R)."""
        found = []
        for chain, part in enumerate(draws):
            pairs = np.arange(len(part.topics)) % own.shape[1]
            some = own[chain][pairs]
            pairs = pairs[some]
            omega = (part.topics[some] - centre[chain]) * self.topics[chain][pairs][:, None]
            if len(part.covariates):
                omega = omega + part.covariates[some] * self.covariates[chain][pairs][:, None]
            found.append(omega)
        return np.concatenate(found) if found else np.zeros((0, 0, self.topics.shape[2]))


def learn_further(
    made: Ingredients, response: Response, seen: Target, draws: list[OmegaDraws]
) -> list[tuple[Term, np.ndarray]]:
    """Terms that are learned after topics and words, each with the mean of what it adds to the seen documents."""
    found: list[tuple[Term, np.ndarray]] = []
    if made.counts is None or not made.learners:
        return found
    omega = sum(kind.share * np.nan_to_num(kind.omega) for kind in draws)
    counts, config, columns = made.counts[~made.split.mask], made.config, made.covariates
    covariates = columns.mean + columns.scale * made.split.seen.target.covariates  # as those of new documents are
    topics = LearnedTopics(made.topics, made.seed[0])
    documents = SampledDocuments(topics, counts, covariates, np.zeros((counts.shape[0], 1)), config.settings)
    for learner in made.learners:
        name = getattr(learner, "name", "")
        previous = next((term for term in made.previous.terms if term.name == name), None) if made.previous else None
        target = seen._replace(offset=omega)
        term = learner(Residual(documents, target, response, config.n_chains, config.n_draws, previous))
        added = term.omega(documents).mean(axis=0)
        omega = omega + added
        found.append((term, added))
    return found
