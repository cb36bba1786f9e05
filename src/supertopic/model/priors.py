"""Priors with content: seed words, the topics of another model, earlier batches.

A topic's prior is a table of whole pseudo-counts beside beta: tokens that never move. The prior of weights are the
statistics of documents that are not there any more; they are added to those of the documents that are.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from supertopic.corpus.source import Corpus, Target
from supertopic.kernels.moments import unpack
from supertopic.model.design import shown
from supertopic.model.posterior import Posterior, TopicSet
from supertopic.model.responses.base import Response
from supertopic.model.seeds import Seeding, check_total, is_number
from supertopic.model.state import Statistics, WeightPriors, add, no_statistics
from supertopic.model.terms import CovariateColumns

NU2_PREDICTION = 100.0  # prior variance of prediction weights: label-free shares differ less between classes
FREE_NU2 = 4.0  # the same for topics without a seeded weight if others have one, before any label is seen
LEAST_NU2 = 1e-6  # smallest prior variance of a seeded weight
HALF_WEIGHT = 1.0  # number of labelled documents of its class at which the prior mean of a seeded weight counts half


class Prior(BaseEstimator):
    """Another fitted model as a prior: its topics are the start and, as pseudo-counts, the prior of the new ones.

    Parameters
    ----------
    model : fitted model or pipeline
        Words are matched by name. Topics beyond its own are free. It is not kept in a model file.
    weights : bool, default=False
        Whether its weights are part of the prior, too; it must have the same kind of response.
    discount : float, default=1.0
        The weight of a document of the prior beside one of the fit: 1 is as much, 0 is nothing.
    """

    def __init__(self, model: Any, *, weights: bool = False, discount: float = 1.0) -> None:
        self.model, self.weights, self.discount = model, weights, discount

    def __sklearn_clone__(self) -> "Prior":
        """The model is data, which a clone does not fit again."""
        return Prior(self.model, weights=self.weights, discount=self.discount)

    def check(self, n_topics: int) -> None:
        check_discount(self.discount)
        if not isinstance(self.weights, bool | np.bool_):
            raise ValueError(f"Prior: weights must be True or False, got {self.weights!r}.")
        own = self.posterior.topics[0].n_topics
        if own > n_topics:
            raise ValueError(f"The prior has {own} topics, more than n_topics={n_topics}.")

    @property
    def estimator(self) -> Any:
        """The model itself, or the last step of a pipeline."""
        return self.model[-1] if hasattr(self.model, "steps") else self.model

    @property
    def posterior(self) -> Posterior:
        found = getattr(self.estimator, "posterior_", None)
        if isinstance(found, Posterior):
            return found
        if hasattr(self.estimator, "partial_fit") and hasattr(self.estimator, "n_topics"):
            raise ValueError(f"prior is a {type(self.estimator).__name__} that is not fitted; fit it first.")
        raise ValueError(
            "prior must be a fitted model of supertopic, or a pipeline that ends with one, got "
            f"{type(self.model).__name__}."
        )

    @property
    def vocabulary(self) -> np.ndarray | None:
        if hasattr(self.model, "steps") and hasattr(self.model[0], "vocabulary_"):
            return self.model[0].get_feature_names_out()
        return self.posterior.vocabulary


def as_prior(value: Any) -> Prior | None:
    """What a user gives as a prior: a model alone lends its topics."""
    return value if value is None or isinstance(value, Prior) else Prior(value)


def check_discount(discount: Any) -> None:
    if not is_number(discount) or not 0 <= float(discount) <= 1:
        raise ValueError(f"discount must be a number from 0 to 1, got {discount!r}.")


@dataclass(frozen=True)
class Earlier:
    """A posterior whose documents came before: another model's, or that of earlier batches."""

    posterior: Posterior
    place: np.ndarray  # (V of the posterior,): the column of each of its words here, -1 where there is none
    discount: float
    with_weights: bool
    updates: bool  # whether this model goes on from there, so that seeds are in it already
    covariates: CovariateColumns | None = None  # how covariates are standardised here


class ChainPrior(NamedTuple):
    """What a chain starts from, beside the usual priors."""

    pseudo_counts: np.ndarray | None  # (V, K) int32: tokens that never move
    weights: WeightPriors | None
    pseudo_tokens: np.ndarray  # (K,): those pseudo-counts that no document of this model gave


def chain_priors(
    corpus: Corpus, seen: Target, response: Response, n_words: int, n_topics: int, n_chains: int, nu2: float, seed: int,
    seeding: Seeding | None, earlier: Earlier | None, level: np.ndarray, diagonal: bool = False,
) -> list[ChainPrior]:  # fmt: skip
    """The prior of each chain of each set of topics, set after set; level (R,) is the offset of the regressions.

    `seen` is the target of the documents that are not held out. `diagonal` is how weights are known: see `Statistics`.
    """
    n_columns, n_covariates = corpus.target.weight.shape[1], corpus.target.covariates.shape[1]
    parts = response.column_parts(n_columns)
    seeded = None if seeding is None else seeding.counts(corpus, n_words, n_topics)
    means = None if seeding is None else seeding.seeds.means(response, n_topics, n_columns)
    belief = np.ones(n_topics)
    if means is not None:
        belief = HALF_WEIGHT / (HALF_WEIGHT + response.seed_support(seen, means[1]))
    if seeded is None and earlier is None:
        return [ChainPrior(None, None, np.zeros(n_topics))] * (len(parts) * n_chains)
    found = []
    for place, columns in enumerate(parts):
        for chain in range(n_chains):
            width, pseudo = n_topics + n_covariates, np.zeros((n_words, n_topics), np.int32)
            known = WeightPriors(*(no_statistics(width, columns.stop - columns.start, diagonal) for _ in range(3)))
            if seeded is not None:
                pseudo = seeded.copy()
            tokens = pseudo.sum(axis=0, dtype=float)
            if earlier:
                own = set_of(earlier.posterior, place)
                fading = seeded if earlier.updates else None
                index = place * n_chains + chain
                counts = whole_counts(own, chain, earlier, fading, [seed, 4, index])
                check_total(corpus, pseudo, counts)
                pseudo[earlier.place[earlier.place >= 0], : counts.shape[1]] += counts[earlier.place >= 0]
                if earlier.updates:
                    tokens += earlier.discount * (own.pseudo_tokens[chain] - tokens)
                else:
                    tokens = pseudo.sum(axis=0, dtype=float)
                if earlier.with_weights:
                    known = carried_weights(
                        earlier, place, chain, known, response, level, columns, n_topics, len(parts)
                    )
            if means is not None and not (earlier and earlier.updates):  # weights of earlier batches know of them
                known = pull_weights(known, means[:, columns], response.seed_spread, nu2, belief)
            found.append(ChainPrior(pseudo, known, tokens))
    return found


def set_of(posterior: Posterior, place: int) -> TopicSet:
    """The set of topics that a set of another model, which may have more of them, starts from."""
    return posterior.topics[place % len(posterior.topics)]


def match_words(theirs: np.ndarray | None, ours: np.ndarray | None, n_theirs: int, n_ours: int) -> np.ndarray:
    """Where each of their words is among ours, -1 where it is not."""
    if theirs is None or ours is None:
        if n_theirs != n_ours:
            raise ValueError(
                f"The prior has {n_theirs} words, X has {n_ours}, and not both have names: pass feature_names to fit, "
                "and a pipeline with its vectorizer, or a model that was fitted with feature_names, as the prior."
            )
        return np.arange(n_ours)
    places = {word: i for i, word in enumerate(ours)}
    place = np.array([places.get(word, -1) for word in theirs])
    if not (place >= 0).any():
        raise ValueError("The prior and X have no word in common. Are both made by the same kind of vectorizer?")
    return place


def whole_counts(own: TopicSet, chain: int, earlier: Earlier, seeded: np.ndarray | None, seed: list[int]) -> np.ndarray:
    """The counts of a chain of an earlier posterior, discounted, as whole numbers that are right on average: (V, K).

    Seeds are a prior of their own, which does not fade: they are left out.
    """
    counts = own.word_topic[chain % len(own.word_topic)]
    found = np.nonzero(counts)
    mean = counts[found] / own.n_draws
    if seeded is not None:
        mean = np.maximum(mean - seeded[found], 0.0)
    rng = np.random.default_rng([*seed[:2], earlier.posterior.n_batches if earlier.updates else 0, *seed[2:]])
    whole = np.zeros(counts.shape, np.int32)
    whole[found] = np.floor(earlier.discount * mean + rng.random(len(mean)))
    return whole


def carried_weights(
    earlier: Earlier, place: int, chain: int, nothing: WeightPriors, response: Response, level: np.ndarray,
    columns: slice, n_topics: int, n_sets: int,
) -> WeightPriors:  # fmt: skip
    """The statistics of a chain of an earlier posterior, discounted, in this model's offset and unit."""
    if not nothing.training.shift.size:
        return nothing
    theirs, width = earlier.posterior, len(nothing.training.shift)
    n_theirs = theirs.topics[0].n_topics
    n_covariates = theirs.topics[0].training.shape[3] - n_theirs
    if not earlier.updates and (theirs.groups or (earlier.covariates and len(earlier.covariates.groups))):
        raise ValueError("Prior(weights=True) is not possible with groups; weights=False takes the topics alone.")
    ours = match_covariates(earlier, n_covariates)
    same = type(theirs.response) is type(response) and theirs.response.answers == response.answers
    fits = len(theirs.topics) == n_sets and n_covariates == width - n_topics
    if not same or not fits or theirs.response.column_names != response.column_names:
        raise ValueError(
            "Prior(weights=True) needs a prior of the same kind, with the same classes or columns of y and as many "
            "covariates; weights=False takes its topics alone."
        )
    carryover = theirs.carryover
    if not carryover.weights:  # a file of an older version
        return nothing
    n_columns = len(response.column_names)
    old_level = theirs.response.offset_in_units(theirs.intercept.base) if carryover.level is None else carryover.level
    (new, unit), (old, old_unit) = (
        tuple(np.broadcast_to(value, (n_columns,))[columns] for value in pair)
        for pair in ((response.offset_in_units(level), response.unit), (old_level, theirs.response.unit))
    )
    scale, shift = old_unit / unit, (old - new) / unit
    at = np.r_[:n_theirs, n_topics + ours]
    chains = carryover.weights[place]
    known = chains[chain % len(chains)]
    if theirs.covariates and earlier.covariates:
        standard = earlier.covariates.take(ours)
        known = WeightPriors(*(
            standardise_again(part, n_theirs, theirs.covariates.columns, standard) for part in known
        ))  # fmt: skip
    return WeightPriors(*(
        move_statistics(part, none, at, n_theirs, scale, shift, earlier.discount)
        for part, none in zip(known, nothing, strict=True)
    ))  # fmt: skip


def match_covariates(earlier: Earlier, n_covariates: int) -> np.ndarray:
    """Where each of the prior's covariates is among ours, (P,): by name where both are columns of frames."""
    theirs, ours = earlier.posterior.covariates, earlier.covariates
    if theirs is None or ours is None or theirs.columns.design is None or ours.design is None:
        return np.arange(n_covariates)
    if not ours.design.is_like(theirs.columns.design):
        raise ValueError(
            f"Prior(weights=True) needs the same covariates: the prior has {shown(theirs.columns.design.names)}, and "
            f"this fit {shown(ours.design.names)}. Categories must have the same levels in the same order, such as "
            "those of pandas.Categorical(values, categories=levels); or use weights=False."
        )
    names = ours.names.tolist()
    return np.array([names.index(name) for name in theirs.columns.names], dtype=int)


def standardise_again(known: Statistics, n_topics: int, old: CovariateColumns, new: CovariateColumns) -> Statistics:
    """Statistics of the same documents, their covariates standardised otherwise."""
    if np.array_equal(old.mean, new.mean) and np.array_equal(old.scale, new.scale):
        return known
    if known.is_diagonal:
        raise ValueError(
            "Prior(weights=True) of a model with so many topics and covariates needs covariates with the prior's mean "
            "and standard deviation; weights=False takes its topics alone."
        )
    width = len(known.shift)
    change = np.eye(width)  # from the old (zbar, covariates) to the new ones; zbar sums to 1
    change[n_topics:, :n_topics] = ((old.mean - new.mean) / new.scale)[:, None]
    change[range(n_topics, width), range(n_topics, width)] = old.scale / new.scale
    precision = np.empty_like(known.precision)
    for r in range(precision.shape[1]):
        lower = unpack(known.precision, r, width)
        precision[:, r] = (change @ (lower + np.tril(lower, -1).T) @ change.T)[np.tril_indices(width)]
    return Statistics(precision, change @ known.shift)


def move_statistics(
    known: Statistics, nothing: Statistics, at: np.ndarray, n_topics: int, scale: np.ndarray, shift: np.ndarray,
    discount: float,
) -> Statistics:  # fmt: skip
    """Statistics at other places of the weights, in another unit, around another offset of omega, discounted."""
    precision, moved = nothing.precision.copy(), nothing.shift.copy()
    if known.is_diagonal != nothing.is_diagonal:
        raise ValueError(
            f"The prior or the earlier batches have {len(known.shift):,} weights for each column, this model has "
            f"{len(moved):,}, and only one of them draws its weights with a matrix of all pairs. Use "
            "Prior(weights=False), which takes the topics alone."
        )
    if known.is_diagonal:
        precision[at], moved[at] = known.precision * (discount / scale**2), known.shift * (discount / scale)
        moved[at[:n_topics]] += precision[at[:n_topics]] * shift
        return Statistics(precision, moved)
    rows, cols = np.tril_indices(len(at))
    low, high = np.sort([at[rows], at[cols]], axis=0)  # covariates may be in another order
    packed = high * (high + 1) // 2 + low
    for r in range(moved.shape[1]):
        lower = unpack(known.precision, r, len(at)) * (discount / scale[r] ** 2)
        whole = lower + np.tril(lower, -1).T
        precision[packed, r] = whole[rows, cols]
        # larger weights of all topics are the same as a larger offset
        moved[at, r] = known.shift[:, r] * (discount / scale[r])
        moved[at, r] += whole[:, :n_topics].sum(axis=1) * shift[r]
    return Statistics(precision, moved)


def pull_weights(known: WeightPriors, means: np.ndarray, spread: float, nu2: float, belief: np.ndarray) -> WeightPriors:
    """Let weights be near to prior means (2, R, K): those of training, and those of prediction.

    `spread` is the standard deviation of the latter, relative to the largest mean of each topic. Without any belief
    (K,), from 1 to 0, weights have their usual prior.
    """
    n_topics, width = means.shape[2], len(known.training.shift)
    pull, firm = (no_statistics(width, means.shape[1], known.training.is_diagonal) for _ in range(2))
    pull.shift[:n_topics] = belief[:, None] * means[0].T / nu2
    largest = np.abs(means[1]).max(axis=0)  # a topic that pulls to one class does not pull to others
    variance = np.where(largest > 0, np.maximum((spread * largest) ** 2, LEAST_NU2), FREE_NU2)
    believed = np.where(largest > 0, belief, belief[largest > 0].mean() if largest.any() else 0.0)
    precision = 1.0 / (believed * variance + (1.0 - believed) * NU2_PREDICTION)[:, None]
    firm.precision[firm.diagonal[:n_topics]] = precision - 1.0 / NU2_PREDICTION
    firm.shift[:n_topics] = belief[:, None] * means[1].T * precision
    return WeightPriors(add(known.training, pull), add(known.prediction, firm), known.reported)
