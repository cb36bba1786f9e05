"""Priors that know something: seed words, the topics of another model, what was learned yesterday.

A topic's prior is a table of whole pseudo-counts beside beta: tokens that never move. What is known of weights are the
statistics of documents that are gone, which join those of the documents that are there.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from supertopic.corpus.source import Corpus
from supertopic.inference.calibration import NU2
from supertopic.kernels.moments import unpack
from supertopic.model.state import Statistics, WeightPriors, add, no_statistics
from supertopic.warn import warn

KEPT = ("eta", "weights", "shown")  # the weights of which statistics are kept
MOST_STRENGTH = 1000.0
# what a seeded topic that points at a class adds to it: in the chain, and for predictions, whose weights are larger;
# and the part of the latter that is its standard deviation. Topics that point nowhere are then believed to say little.
POINT, POINT_WEIGHT, POINT_SD, FREE_NU2 = 6.0, 40.0, 0.1, 4.0
NUMBER_SD = 0.5  # the same part, where somebody has said by how much
LEAST_NU2, MOST_POINT = 1e-6, 1000.0  # what a variance and a number may be, in standard units
SHOWN = 5  # words that a message names
READ_DOCS = 100_000  # documents that are read at a time


class Beliefs:
    """The part of a topic model that knows what its chains believe before they see documents."""

    n_topics: int
    n_chains: int
    nu2: float
    seeds: Any
    seed_strength: float
    seed_weights: Any = None
    prior: Any
    prior_weights: bool = False
    discount: float
    _spread = NUMBER_SD
    n_blocks_: int
    n_features_in_: int
    seed_: int
    n_batches_: int = 0
    _learned: dict[str, np.ndarray]

    def _check_beliefs(self) -> None:
        if self.seeds is not None:
            check_seeds(self.seeds, self.n_topics)
        strength, discount = self.seed_strength, self.discount
        if not isinstance(strength, Real) or isinstance(strength, bool) or not 0 < float(strength) <= MOST_STRENGTH:
            raise ValueError(f"seed_strength must be a number above 0, up to {MOST_STRENGTH:g}, got {strength!r}.")
        if not isinstance(discount, Real) or isinstance(discount, bool) or not 0 <= float(discount) <= 1:
            raise ValueError(f"discount must be a number from 0 to 1, got {discount!r}.")
        weights = self.seed_weights
        if not (weights is None or isinstance(weights, dict) or (isinstance(weights, str) and weights == "auto")):
            raise ValueError(f"seed_weights must be 'auto', a dict or None, got {weights!r}.")
        if self.prior is not None:
            model, _ = opened(self.prior)
            n_topics = model._n_features_out // model.n_blocks_
            if n_topics > self.n_topics:
                raise ValueError(f"The prior has {n_topics} topics, more than n_topics={self.n_topics}.")

    def _believe(
        self, source: Corpus, before: tuple[np.ndarray, np.ndarray], going_on: bool
    ) -> tuple[list[tuple[np.ndarray, WeightPriors] | None], np.ndarray]:
        """What each chain believes, and the pseudo-counts of its topics that no document has given.

        `before` are the constants in which yesterday's weights are.
        """
        n, n_columns = self.n_blocks_ * self.n_chains, source.target.y.shape[1]
        seeds, points = self._seed_counts(source), self._points(n_columns)
        if seeds is None and not going_on and self.prior is None:
            return [None] * n, np.zeros((n, self.n_topics))
        teacher, place = self, np.arange(self.n_features_in_)
        if not going_on and self.prior is not None:
            teacher, names = opened(self.prior)
            place = match(names, self._known_names(), teacher.n_features_in_, self.n_features_in_)
            before = constants(teacher)
        beliefs: list[tuple[np.ndarray, WeightPriors] | None] = []
        imagined = []
        for index in range(n):
            block = index // self.n_chains
            columns = slice(block, block + 1) if self.n_blocks_ > 1 else slice(None)
            width = self.n_topics + source.target.covariates.shape[1]
            known = [no_statistics(width, n_columns if self.n_blocks_ == 1 else 1) for _ in KEPT]
            pseudo = np.zeros((self.n_features_in_, self.n_topics), np.int32) if seeds is None else seeds.copy()
            made_up = pseudo.sum(axis=0, dtype=float)
            if going_on or self.prior is not None:
                learned = pseudo_counts(teacher, index, self, None if seeds is None or not going_on else seeds)
                check_total(source, pseudo, learned)
                pseudo[place[place >= 0], : learned.shape[1]] += learned[place >= 0]
                if going_on:
                    made_up += float(self.discount) * (self._learned["imagined"][index] - made_up)
                else:
                    made_up += pseudo.sum(axis=0) - made_up
                if going_on or self.prior_weights:
                    known = taught(teacher, self, index, known, before, columns)
            if points is not None and not going_on:  # yesterday's weights know of them
                known = pointing(known, points[:, columns], self._spread, float(self.nu2))
            beliefs.append((pseudo, WeightPriors(*known)))
            imagined.append(made_up)
        return beliefs, np.array(imagined)

    def _round(self) -> list[int]:
        """What tells the random numbers of one batch from those of another; of the first, or of a fit, nothing."""
        return [self.n_batches_] if self.n_batches_ else []

    def _keep_learned(self, chains: list) -> None:
        """Keep what the chains, of all blocks, have learned of weights, for those that will go on."""
        for i, name in enumerate(KEPT):
            for part in Statistics._fields:
                values = [getattr(chain.learned[i], part) for chain in chains]
                self._learned[f"{name}_{part}"] = np.array(values)  # not float32: rounded, they may not be positive

    def _known_names(self) -> np.ndarray | None:
        """The vocabulary, if it is known: what `fit` was given, a DataFrame's columns, or that of files."""
        for name in ("vocabulary_", "feature_names_in_"):
            if hasattr(self, name):
                return getattr(self, name)
        vectorizer = getattr(self, "vectorizer_", None)
        return None if vectorizer is None else vectorizer.get_feature_names_out()

    def _seed_counts(self, source: Corpus) -> np.ndarray | None:
        """The pseudo-counts of seed words, (V, K)."""
        if self.seeds is None:
            return None
        table = np.zeros((self.n_features_in_, self.n_topics), np.int64)
        names, total = self._known_names(), count_words(source, self.n_features_in_)
        places = {} if names is None else {word: i for i, word in enumerate(names)}
        missing, empty = [], []
        for k, (topic, words) in enumerate(named(self.seeds)):
            found: list[int] = []
            for word in dict.fromkeys(words):
                if isinstance(word, Integral):
                    if not 0 <= int(word) < len(table):
                        raise ValueError(f"seeds: column {word} is not one of the {len(table)} columns of X.")
                    found.append(int(word))
                elif names is None:
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
            table[found, k] = np.maximum(1, np.rint(float(self.seed_strength) * total[found]))
        if missing:
            rest = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            told = f"{', '.join(missing[:SHOWN])}{rest}"
            warn(f"Seed words that are not in the vocabulary: {told}.")
        if empty:
            warn(
                f"Topics none of whose seed words are in the vocabulary are left to the data: {', '.join(empty)}.",
            )
        check_total(source, table)
        return table.astype(np.int32)

    def _seed_names(self) -> dict[str, str]:
        """The names of seeded topics, by their numbers."""
        if self.seeds is None:
            return {}
        return {
            str(block * self.n_topics + k): topic
            for block in range(self.n_blocks_)
            for k, (topic, _) in enumerate(named(self.seeds))
            if topic
        }

    def _points(self, n_columns: int) -> np.ndarray | None:
        """Where seeded topics pull to: a prior mean of eta and one of the weights for predictions, (2, R, K)."""
        return None


def check_seeds(seeds: Any, n_topics: int) -> None:
    """Refuse what is no list of words for each of some topics."""
    if isinstance(seeds, str) or not isinstance(seeds, Mapping | Sequence):
        raise ValueError(f"seeds must be a dict of lists of words, or a list of them, got {seeds!r}.")
    pairs = named(seeds)
    if len(pairs) > n_topics:
        raise ValueError(f"seeds has {len(pairs)} topics, more than n_topics={n_topics}.")
    for topic, words in pairs:
        what = f"seeds of topic {topic!r}" if topic else "every entry of seeds"
        if isinstance(words, str) or not isinstance(words, Sequence | set | np.ndarray) or not len(words):
            raise ValueError(f"{what} must be a list with at least one word, got {words!r}.")
        wrong = [word for word in words if not isinstance(word, str | Integral) or isinstance(word, bool)]
        if wrong:
            raise ValueError(f"{what} must hold words, or numbers of columns, got {wrong[0]!r}.")


def named(seeds: Any) -> list[tuple[str, Any]]:
    """Topics with their names, which are empty where there are none."""
    if isinstance(seeds, Mapping):
        return [(str(topic), words) for topic, words in seeds.items()]
    return [("", words) for words in seeds]


def seed_places(seeds: Any, weights: Mapping) -> dict[str, int]:
    """The number of each seeded topic by its name; refuses names that are not there."""
    places = {topic: k for k, (topic, _) in enumerate(named(seeds)) if topic}
    stray = [topic for topic in weights if topic not in places]
    if stray:
        raise ValueError(f"seed_weights: {stray[0]!r} is not the name of a topic in seeds.")
    return places


def opened(prior: Any) -> tuple[Any, np.ndarray | None]:
    """The model that is a prior, and its vocabulary if that is known."""
    model, names = prior, None
    if hasattr(prior, "steps"):
        model, names = prior[-1], prior[0].get_feature_names_out() if hasattr(prior[0], "vocabulary_") else None
    if not isinstance(model, Beliefs):
        raise ValueError(
            f"prior must be a fitted model of supertopic, or a pipeline that ends with one, got {type(prior).__name__}."
        )
    if not hasattr(model, "_word_topic"):
        raise ValueError(f"prior is a {type(model).__name__} that is not fitted; fit it first.")
    return model, model._known_names() if names is None else names


def match(theirs: np.ndarray | None, ours: np.ndarray | None, n_theirs: int, n_ours: int) -> np.ndarray:
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


def count_words(source: Corpus, n_words: int) -> np.ndarray:
    """How often each word occurs, (V,)."""
    total, n_docs = np.zeros(n_words, np.int64), len(source.doc_start) - 1
    for first in range(0, n_docs, READ_DOCS):
        tokens, _ = source.read(slice(first, min(first + READ_DOCS, n_docs)))
        total += np.bincount(tokens.word, minlength=n_words)
    return total


def check_total(source: Corpus, *counts: np.ndarray) -> None:
    """Refuse what would not fit into a count of 32 bits, before it is added."""
    n_tokens = int(source.doc_start[-1]) + sum(int(count.sum(dtype=np.int64)) for count in counts)
    if n_tokens >= 2**31:
        raise ValueError(
            f"Tokens and pseudo-counts are {n_tokens:,} in all, more than {2**31 - 1:,}: lower seed_strength or "
            "discount."
        )


def constants(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """The constant and the unit in which a model's weights are, (R,) each; without a response there are none.

    The constant is that of regressions. Files of older versions have none that differs from that of predictions.
    """
    constant = getattr(model, "_learned", {}).get("level", getattr(model, "intercept_", np.zeros(0)))
    return constant, getattr(model, "unit_", np.ones_like(constant))


def pseudo_counts(teacher: Any, index: int, model: Beliefs, seeds: np.ndarray | None) -> np.ndarray:
    """What a chain of a teacher has counted, discounted and as whole numbers that are right on average, (V, K).

    Seeds are a prior of their own, which does not fade: they are left out.
    """
    block, chain = divmod(index, model.n_chains)
    own = teacher._block(block if teacher.n_blocks_ > 1 else 0)
    counts = teacher._word_topic[chain % len(teacher._word_topic)][:, own]
    found = np.nonzero(counts)
    mean = counts[found] / teacher._eta.shape[1]
    if seeds is not None:
        mean = np.maximum(mean - seeds[found], 0.0)
    rng = np.random.default_rng([model.seed_, 4, model.n_batches_, index])
    whole = np.zeros(counts.shape, np.int32)
    whole[found] = np.floor(float(model.discount) * mean + rng.random(len(mean)))
    return whole


def taught(
    teacher: Any, model: Any, index: int, known: list[Statistics], before: tuple[np.ndarray, np.ndarray],
    columns: slice,
) -> list[Statistics]:  # fmt: skip
    """What a chain of a teacher has learned of weights, discounted and in the model's own constant and unit."""
    if not known[0].shift.size:
        return known
    n_topics, width = model.n_topics, len(known[0].shift)
    n_theirs, n_beside = teacher._n_features_out // teacher.n_blocks_, getattr(teacher, "n_covariates_", 0)
    same = all(
        np.array_equal(getattr(teacher, name, ()), getattr(model, name, ())) for name in ("classes_", "response_names_")
    )
    fits = teacher._eta.shape[2] == len(constants(model)[0]) and n_beside == width - n_topics
    if not same or not fits or teacher.n_blocks_ != model.n_blocks_ or type(teacher) is not type(model):
        raise ValueError(
            "prior_weights=True needs a prior of the same kind, with the same classes or columns of y and as many "
            "covariates; prior_weights=False takes its topics alone."
        )
    (constant, unit), (old_constant, old_unit) = ((c[columns], u[columns]) for c, u in (constants(model), before))
    scale, shift = old_unit / unit, (old_constant - constant) / unit
    place = np.r_[:n_theirs, n_topics : n_topics + n_beside]
    (block, chain), n_theirs_chains = divmod(index, model.n_chains), len(teacher._word_topic)
    at_theirs = block * n_theirs_chains + chain % n_theirs_chains  # the chain whose topics it has
    found = []
    for name, nothing in zip(KEPT, known, strict=True):
        if f"{name}_shift" not in teacher._learned:  # a file of an older version
            found.append(nothing)
            continue
        packed, shifts = (teacher._learned[f"{name}_{part}"][at_theirs].astype(float) for part in Statistics._fields)
        precision, moved = nothing.precision.copy(), nothing.shift.copy()
        rows, cols = np.tril_indices(len(place))
        at = place[rows] * (place[rows] + 1) // 2 + place[cols]
        for r in range(moved.shape[1]):
            lower = unpack(packed, r, len(place)) * (float(model.discount) / scale[r] ** 2)
            whole = lower + np.tril(lower, -1).T
            precision[at, r] = whole[rows, cols]
            # weights that are larger by a number mean what a constant that is smaller by it means
            moved[place, r] = shifts[:, r] * (float(model.discount) / scale[r])
            moved[place, r] += whole[:, :n_theirs].sum(axis=1) * shift[r]
        found.append(Statistics(precision, moved))
    return found


def pointing(known: list[Statistics], points: np.ndarray, spread: float, nu2: float) -> list[Statistics]:
    """Let weights be near to some points (2, R, K): those of the chain, and those for predictions.

    `spread` is the standard deviation of the latter, as a part of the largest of each topic.
    """
    eta, weights, shown = known
    n_topics, width = points.shape[2], len(eta.shift)
    pull, firm = (no_statistics(width, points.shape[1]) for _ in range(2))
    pull.shift[:n_topics] = points[0].T / nu2
    largest = np.abs(points[1]).max(axis=0)  # a topic that points somewhere does not point elsewhere
    precision = 1.0 / np.where(largest > 0, np.maximum((spread * largest) ** 2, LEAST_NU2), FREE_NU2)[:, None]
    place = np.arange(n_topics)
    firm.precision[place * (place + 1) // 2 + place] = precision - 1.0 / NU2
    firm.shift[:n_topics] = points[1].T * precision
    return [add(eta, pull), add(weights, firm), shown]
