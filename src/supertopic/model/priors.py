"""Priors with content: seed words, the topics of another model, earlier batches.

A topic's prior is a table of whole pseudo-counts beside beta: tokens that never move. The prior of weights are the
statistics of documents that are not there any more; they are added to those of the documents that are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from supertopic.corpus.source import Corpus
from supertopic.kernels.moments import unpack
from supertopic.model.posterior import Posterior, TopicSet
from supertopic.model.responses.base import Response
from supertopic.model.responses.values import plain_value
from supertopic.model.state import Statistics, WeightPriors, add, no_statistics
from supertopic.model.terms import CovariateColumns
from supertopic.warn import warn

NU2_PREDICTION = 100.0  # prior variance of prediction weights: label-free shares differ less between classes
FREE_NU2 = 4.0  # the same for topics without a pull where others are seeded with one
LEAST_NU2 = 1e-6
MOST_STRENGTH = 1000.0
NAMED = 5  # words that a message names
READ_DOCS = 100_000  # documents that are read at a time


class Seeds(BaseEstimator):
    """Words that topics are to be about.

    Parameters
    ----------
    words : dict of lists of str, or list of them
        {"billing": ["invoice", "refund"], ...}. The first topics are theirs, with these names, in every chain; further
        topics are free. `fit` needs `feature_names`, or numbers of columns in place of words.
    strength : float, default=1.0
        The weight of the seeds: a seed word has this many pseudo-tokens in its topic for each token that it has in the
        documents. They never move.
    weights : "auto", dict or None, default="auto"
        The response that a seeded topic pulls to. Classes: "auto" lets a topic with a class's name pull to that class,
        a dict says {topic: class}. Ratings and counts: a dict {topic: number}, the distance from the mean of a document
        that is all of this topic (for counts, on the log scale). These are prior means of the weights, from which
        documents may lead away.
    """

    def __init__(self, words: Any, *, strength: float = 1.0, weights: Any = "auto") -> None:
        self.words, self.strength, self.weights = words, strength, weights

    @property
    def topics(self) -> list[tuple[str, Any]]:
        """The words of each seeded topic with its name, which is empty where there is none."""
        if isinstance(self.words, Mapping):
            return [(str(topic), words) for topic, words in self.words.items()]
        return [("", words) for words in self.words]

    def check(self, n_topics: int) -> None:
        """Refuse what is not a list of words for each of some topics."""
        if isinstance(self.words, str) or not isinstance(self.words, Mapping | Sequence):
            raise ValueError(f"seeds must be a dict of lists of words, or a list of them, got {self.words!r}.")
        if len(self.topics) > n_topics:
            raise ValueError(f"seeds has {len(self.topics)} topics, more than n_topics={n_topics}.")
        for topic, words in self.topics:
            what = f"seeds of topic {topic!r}" if topic else "every entry of seeds"
            if isinstance(words, str) or not isinstance(words, Sequence | set | np.ndarray) or not len(words):
                raise ValueError(f"{what} must be a list with at least one word, got {words!r}.")
            wrong = [word for word in words if not isinstance(word, str | Integral) or isinstance(word, bool)]
            if wrong:
                raise ValueError(f"{what} must hold words, or numbers of columns, got {wrong[0]!r}.")
        if not is_number(self.strength) or not 0 < float(self.strength) <= MOST_STRENGTH:
            raise ValueError(f"Seeds: strength must be above 0, up to {MOST_STRENGTH:g}, got {self.strength!r}.")
        weights = self.weights
        if not (weights is None or isinstance(weights, dict) or (isinstance(weights, str) and weights == "auto")):
            raise ValueError(f"Seeds: weights must be 'auto', a dict or None, got {weights!r}.")

    def names(self, n_topics: int, n_sets: int) -> dict[str, str]:
        """The names of seeded topics by their numbers."""
        topics = [(k, topic) for k, (topic, _) in enumerate(self.topics) if topic]
        return {str(place * n_topics + k): topic for place in range(n_sets) for k, topic in topics}

    def counts(self, corpus: Corpus, vocabulary: np.ndarray | None, n_words: int, n_topics: int) -> np.ndarray:
        """The pseudo-counts of seed words, (V, K) int32."""
        table, total = np.zeros((n_words, n_topics), np.int64), count_words(corpus, n_words)
        places = {} if vocabulary is None else {word: i for i, word in enumerate(vocabulary)}
        missing, empty = [], []
        for k, (topic, words) in enumerate(self.topics):
            found: list[int] = []
            for word in dict.fromkeys(words):
                if isinstance(word, Integral):
                    if not 0 <= int(word) < n_words:
                        raise ValueError(f"seeds: column {word} is not one of the {n_words} columns of X.")
                    found.append(int(word))
                elif vocabulary is None:
                    raise ValueError(
                        f"seeds has words, such as {str(word)!r}, but X has no names: pass feature_names="
                        "vectorizer.get_feature_names_out() to fit, or a DataFrame, or numbers of columns as seeds."
                    )
                elif word in places:
                    found.append(places[word])
                else:
                    missing.append(f"{str(word)!r}" + (f" ({word.lower()!r} is)" if word.lower() in places else ""))
            if not found:
                empty.append(topic or str(k))
            table[found, k] = np.maximum(1, np.rint(float(self.strength) * total[found]))
        if missing:
            rest = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            warn(f"Seed words that are not in the vocabulary: {', '.join(missing[:NAMED])}{rest}.")
        if empty:
            warn(f"No seed word of these topics is in the vocabulary, so that they are free: {', '.join(empty)}.")
        check_total(corpus, table)
        return table.astype(np.int32)

    def means(self, response: Response, n_topics: int, n_columns: int) -> np.ndarray | None:
        """Prior means of training and prediction weights, (2, R, K), if seeds pull somewhere."""
        if self.weights is None or not n_columns:
            return None
        names = [topic for topic, _ in self.topics]
        stray = [topic for topic in self.weights if topic not in names or not topic] if self.weights != "auto" else []
        if stray:
            raise ValueError(f"Seeds: {plain_value(stray[0])!r} in weights is not the name of a topic.")
        return response.seed_means(self.weights, names, n_topics, n_columns)


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


def as_seeds(value: Any) -> Seeds | None:
    """What a user gives as seeds: words alone have the usual strength and weights."""
    return value if value is None or isinstance(value, Seeds) else Seeds(value)


def as_prior(value: Any) -> Prior | None:
    """What a user gives as a prior: a model alone lends its topics."""
    return value if value is None or isinstance(value, Prior) else Prior(value)


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


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
    corpus: Corpus, response: Response, n_words: int, n_topics: int, n_chains: int, nu2: float, seed: int,
    vocabulary: np.ndarray | None, seeds: Seeds | None, earlier: Earlier | None, level: np.ndarray,
) -> list[ChainPrior]:  # fmt: skip
    """The prior of each chain of each set of topics, set after set; level (R,) is the offset of the regressions."""
    n_columns, n_covariates = corpus.target.y.shape[1], corpus.target.covariates.shape[1]
    parts = response.column_parts(n_columns)
    seeded = None if seeds is None else seeds.counts(corpus, vocabulary, n_words, n_topics)
    means = None if seeds is None else seeds.means(response, n_topics, n_columns)
    if seeded is None and earlier is None:
        return [ChainPrior(None, None, np.zeros(n_topics))] * (len(parts) * n_chains)
    found = []
    for place, columns in enumerate(parts):
        for chain in range(n_chains):
            width, pseudo = n_topics + n_covariates, np.zeros((n_words, n_topics), np.int32)
            known = WeightPriors(*(no_statistics(width, columns.stop - columns.start) for _ in range(3)))
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
                known = pull_weights(known, means[:, columns], response.seed_spread, nu2)
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


def count_words(corpus: Corpus, n_words: int) -> np.ndarray:
    """The number of tokens of each word, (V,)."""
    total, n_docs = np.zeros(n_words, np.int64), len(corpus.doc_start) - 1
    for first in range(0, n_docs, READ_DOCS):
        tokens, _ = corpus.read(slice(first, min(first + READ_DOCS, n_docs)))
        total += np.bincount(tokens.word, minlength=n_words)
    return total


def check_total(corpus: Corpus, *counts: np.ndarray) -> None:
    """Refuse counts whose sum does not fit into 32 bits, before they are added."""
    n_tokens = int(corpus.doc_start[-1]) + sum(int(count.sum(dtype=np.int64)) for count in counts)
    if n_tokens >= 2**31:
        raise ValueError(
            f"Tokens and pseudo-counts are {n_tokens:,} together, more than {2**31 - 1:,}: lower the strength of the "
            "seeds, or discount."
        )


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
    at = np.r_[:n_theirs, n_topics : n_topics + n_covariates]
    chains = carryover.weights[place]
    known = chains[chain % len(chains)]
    if theirs.covariates and earlier.covariates:
        known = WeightPriors(*(
            standardise_again(part, n_theirs, theirs.covariates.columns, earlier.covariates) for part in known
        ))  # fmt: skip
    return WeightPriors(*(
        move_statistics(part, none, at, n_theirs, scale, shift, earlier.discount)
        for part, none in zip(known, nothing, strict=True)
    ))  # fmt: skip


def standardise_again(known: Statistics, n_topics: int, old: CovariateColumns, new: CovariateColumns) -> Statistics:
    """Statistics of the same documents, their covariates standardised otherwise."""
    if np.array_equal(old.mean, new.mean) and np.array_equal(old.scale, new.scale):
        return known
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
    rows, cols = np.tril_indices(len(at))
    packed = at[rows] * (at[rows] + 1) // 2 + at[cols]
    for r in range(moved.shape[1]):
        lower = unpack(known.precision, r, len(at)) * (discount / scale[r] ** 2)
        whole = lower + np.tril(lower, -1).T
        precision[packed, r] = whole[rows, cols]
        # larger weights of all topics are the same as a larger offset
        moved[at, r] = known.shift[:, r] * (discount / scale[r])
        moved[at, r] += whole[:, :n_topics].sum(axis=1) * shift[r]
    return Statistics(precision, moved)


def pull_weights(known: WeightPriors, means: np.ndarray, spread: float, nu2: float) -> WeightPriors:
    """Let weights be near to prior means (2, R, K): those of training, and those of prediction.

    `spread` is the standard deviation of the latter, relative to the largest mean of each topic.
    """
    n_topics, width = means.shape[2], len(known.training.shift)
    pull, firm = (no_statistics(width, means.shape[1]) for _ in range(2))
    pull.shift[:n_topics] = means[0].T / nu2
    largest = np.abs(means[1]).max(axis=0)  # a topic that pulls to one class does not pull to others
    precision = 1.0 / np.where(largest > 0, np.maximum((spread * largest) ** 2, LEAST_NU2), FREE_NU2)[:, None]
    place = np.arange(n_topics)
    firm.precision[place * (place + 1) // 2 + place] = precision - 1.0 / NU2_PREDICTION
    firm.shift[:n_topics] = means[1].T * precision
    return WeightPriors(add(known.training, pull), add(known.prediction, firm), known.reported)
