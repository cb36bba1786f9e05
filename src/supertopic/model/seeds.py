"""Seed words: what topics are to be about, as pseudo-counts of words and prior means of weights."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from supertopic.corpus.source import Corpus
from supertopic.model.responses.base import Response
from supertopic.model.responses.values import plain_value
from supertopic.warn import warn

MOST_STRENGTH = 1000.0
UNKNOWN_SHARE = 0.1  # the share of a seed word's tokens in its topic, where nothing was factorised
NAMED = 5  # words that a message names
READ_DOCS = 100_000  # documents that are read at a time


class Seeds(BaseEstimator):
    """Words that topics are to be about.

    Parameters
    ----------
    words : dict of lists of str, or list of them
        {"billing": ["invoice", "refund"], ...}. The first topics are theirs, with these names, in every chain; further
        topics are free. `fit` needs `feature_names`, or numbers of columns in place of words.
    strength : "auto" or float, default="auto"
        The weight of the seeds: a seed word has this many pseudo-tokens in its topic for each token that it has in the
        documents. They never move. "auto" lets the documents decide how far each word belongs to its topic: it has as
        many pseudo-tokens as tokens that the factorisation at the start gives to the topic.
    weights : "auto", dict or None, default="auto"
        The response that a seeded topic pulls to. Classes: "auto" lets a topic with a class's name pull to that class,
        a dict says {topic: class}. Ratings and counts: a dict {topic: number}, the distance from the mean of a document
        that is all of this topic (for counts, on the log scale). These are prior means of the weights, from which
        documents may lead away. Those of classes fade: they count half as much if one document of the first batch has
        the class.
    """

    def __init__(self, words: Any, *, strength: float | str = "auto", weights: Any = "auto") -> None:
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
        auto = isinstance(self.strength, str) and self.strength == "auto"
        if not auto and not (is_number(self.strength) and 0 < float(self.strength) <= MOST_STRENGTH):
            raise ValueError(
                f"Seeds: strength must be 'auto' or above 0, up to {MOST_STRENGTH:g}, got {self.strength!r}."
            )
        weights = self.weights
        if not (weights is None or isinstance(weights, dict) or (isinstance(weights, str) and weights == "auto")):
            raise ValueError(f"Seeds: weights must be 'auto', a dict or None, got {weights!r}.")

    def names(self, n_topics: int, n_sets: int) -> dict[str, str]:
        """The names of seeded topics by their numbers."""
        topics = [(k, topic) for k, (topic, _) in enumerate(self.topics) if topic]
        return {str(place * n_topics + k): topic for place in range(n_sets) for k, topic in topics}

    def places(self, vocabulary: np.ndarray | None, n_words: int) -> list[list[int]]:
        """The columns of the words of each seeded topic; a warning names words that are not in the vocabulary."""
        places = {} if vocabulary is None else {word: i for i, word in enumerate(vocabulary)}
        missing, empty, all_found = [], [], []
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
            all_found.append(found)
        if missing:
            rest = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            warn(f"Seed words that are not in the vocabulary: {', '.join(missing[:NAMED])}{rest}.")
        if empty:
            warn(f"No seed word of these topics is in the vocabulary, so that they are free: {', '.join(empty)}.")
        return all_found

    def means(self, response: Response, n_topics: int, n_columns: int) -> np.ndarray | None:
        """Prior means of training and prediction weights, (2, R, K), if seeds pull somewhere."""
        if self.weights is None or not n_columns:
            return None
        names = [topic for topic, _ in self.topics]
        stray = [topic for topic in self.weights if topic not in names or not topic] if self.weights != "auto" else []
        if stray:
            raise ValueError(f"Seeds: {plain_value(stray[0])!r} in weights is not the name of a topic.")
        return response.seed_means(self.weights, names, n_topics, n_columns)


class Seeding(NamedTuple):
    """Seeds and what the documents say of them."""

    seeds: Seeds
    places: list[list[int]]  # the columns of the words of each seeded topic
    share: np.ndarray | None  # (V, K): the part of each word's tokens that its topic has at the start, if known

    def counts(self, corpus: Corpus, n_words: int, n_topics: int) -> np.ndarray:
        """The pseudo-counts of seed words, (V, K) int32."""
        table, total = np.zeros((n_words, n_topics), np.int64), count_words(corpus, n_words)
        for k, words in enumerate(self.places):
            strength: Any = self.seeds.strength
            if isinstance(strength, str):
                strength = UNKNOWN_SHARE if self.share is None else self.share[words, k]
            table[words, k] = np.maximum(1, np.rint(strength * total[words]))
        check_total(corpus, table)
        return table.astype(np.int32)


def as_seeds(value: Any) -> Seeds | None:
    """What a user gives as seeds: words alone have the usual strength and weights."""
    return value if value is None or isinstance(value, Seeds) else Seeds(value)


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


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
