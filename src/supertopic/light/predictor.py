"""A model file as a predictor: texts or counts in, predictions out."""

import itertools
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import ndtri

from supertopic.light.responses import GOLDEN, RESPONSES, Answers, make_response
from supertopic.light.sampler import PREDICT, Topics, draw_counts, make_key, make_topics
from supertopic.light.words import WordCounter
from supertopic.model.consensus import have_topics
from supertopic.storage.container import read_file
from supertopic.storage.text import unpack_text

FORMAT = 3
TERMS = ("topics", "intercept", "covariates", "words", "features", "groups")
LEAST_EXPOSURE, MOST_EXPOSURE = 1e-10, 1e10
MOST_SWEEPS, TINY = 100_000, 1e-300  # largest `predict_sweeps` that an estimator takes; smallest total


def load_predictor(path: str | os.PathLike[str], *, mmap: bool = True) -> "Predictor":
    """Read a model file for predictions with NumPy and SciPy alone.

    Parameters
    ----------
    path : path
        A file that `supertopic.save` wrote.
    mmap : bool, default=True
        Leave the arrays in the file, of which processes then share one copy; see `supertopic.load`.

    Returns
    -------
    Predictor
        Its predictions are those of the estimator to 1e-6. Covariates from columns of a data frame, vectorizers with
        other token patterns than the usual ones, and files of versions before 0.3 are refused; use `supertopic.load`.
    """
    header, tensors = read_file(path, "supertopic model", mmap)
    if header.get("format") != FORMAT:
        raise ValueError(f"{path} is of an older version: load it with supertopic.load, and save it again.")
    if header.get("kind") not in RESPONSES:
        raise ValueError(
            f"{path} holds a {header.get('kind')!r}, which the light predictor does not support. Use supertopic.load."
        )
    try:
        return Predictor(header, unpack_text(header, tensors))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a valid supertopic model: {error!r}") from error


def spread_normals(n: int, n_columns: int) -> np.ndarray:
    """n standard normal numbers for each column that are spread evenly, (n, n_columns)."""
    place = (np.arange(1, n + 1)[:, None] * GOLDEN**2 + np.arange(n_columns) * GOLDEN) % 1.0
    found = ndtri((np.argsort(np.argsort(place, axis=0), axis=0) + 0.5) / n)
    return found / np.maximum(found.std(axis=0), 1e-12)


class Predictor:
    """Predictions of a model file. Any number of threads may use it."""

    def __init__(self, header: dict[str, Any], tensors: Mapping[str, np.ndarray]):
        facts = header["posterior"]
        self.kind, self.tensors, self.facts = str(header["kind"]), tensors, facts
        self.n_draws, self.seed, self.terms = int(facts["n_draws"]), int(facts["seed"]), list(facts["terms"])
        self.n_sweeps = int(header["parameters"]["predict_sweeps"])
        if not 0 < self.n_sweeps <= MOST_SWEEPS or not set(self.terms) <= set(TERMS):
            raise ValueError(
                "The model file has settings that the light predictor does not support. Use supertopic.load."
            )
        if "terms.covariates.design" in tensors:
            raise ValueError(
                "The model's covariates come from the columns of a data frame, which the light predictor cannot read; "
                "use supertopic.load."
            )
        self.sets = [self.read_topics(f"topics.{i}.") for i in range(int(facts["n_sets"]))]
        self.n_chains, self.n_words = len(self.sets[0]), len(self.sets[0][0].counts)
        learned = {
            name.removeprefix("response."): array for name, array in tensors.items() if name.startswith("response.")
        }
        scale = np.asarray(tensors["scale"]).mean(axis=(0, 1))
        parameters = header["parameters"]
        self.response: Answers = make_response(self.kind, parameters, learned | facts["response"], scale)
        self.reader = self.read_vectorizers(header)

    def read_topics(self, prefix: str) -> list[Topics]:
        """The topics of each chain of a set."""
        counts, alpha, beta = (self.tensors[prefix + name] for name in ("word_topic", "alpha", "beta"))
        return [
            make_topics(counts[c], self.n_draws, float(beta[c]), alpha[c].astype(np.float32))
            for c in range(len(counts))
        ]

    def read_vectorizers(self, header: dict[str, Any]) -> tuple[WordCounter, WordCounter] | None:
        """What makes counts of texts: those of topics, and those of words with weights of their own."""
        own = header.get("vectorizer_") or header.get("vectorizer")
        if own is None:
            return None
        topics = WordCounter(own, self.tensors["vocabulary"].tolist())
        other = header.get("word_vectorizer_")
        return topics, topics if other is None else WordCounter(other, self.tensors["word_names"].tolist())

    def count(self, X: Any) -> tuple[csr_array, csr_array]:
        """The counts of topics' words and of words with weights."""
        if isinstance(X, str):
            raise TypeError("X is one text; a list of texts was expected.")
        if issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
            counts = csr_array(X, copy=True)  # what follows changes its arrays in place
            counts.sum_duplicates()
            whole = counts.data.astype(np.int64)
            if counts.shape[1] != self.n_words or (whole != counts.data).any() or whole.min(initial=0) < 0:
                raise ValueError(f"X must hold whole counts of {self.n_words:,} words, got shape {counts.shape}.")
            if "word_names" in self.tensors:
                raise TypeError("The model was fitted to texts: X must be texts, not counts.")
            counts = csr_array((whole, counts.indices, counts.indptr), shape=counts.shape)
            counts.eliminate_zeros()
            return counts, counts
        texts = ["" if text is None or text != text else text for text in X]  # as estimators read them
        strange = next((text for text in texts if not isinstance(text, str)), None)
        if strange is not None:
            raise TypeError(f"X must hold texts, or be a matrix of counts, got {strange!r:.60}.")
        if self.reader is None:
            raise TypeError("The model was fitted to counts: X must be a matrix of counts.")
        topics = self.reader[0].counts(texts)
        return topics, topics if self.reader[1] is self.reader[0] else self.reader[1].counts(texts)

    @property
    def draw(self) -> np.ndarray:
        """The draw of the weights in each pair of a chain."""
        return np.arange(max(self.n_draws, self.n_sweeps - self.n_sweeps // 2)) % self.n_draws

    def topic_counts(self, counts: csr_array) -> list[np.ndarray]:
        """Draws of the tokens of each topic, for each set of topics: (chain, n_kept, n_docs, K)."""
        ends = zip(counts.indptr, counts.indptr[1:], strict=False)
        tokens = [np.repeat(counts.indices[a:b], counts.data[a:b]) for a, b in ends]
        found = []
        for i, chains in enumerate(self.sets):
            keys = [make_key(self.seed, i * self.n_chains + c, PREDICT) for c in range(self.n_chains)]
            found.append(draw_counts(tokens, chains, keys, self.n_sweeps))
        return found

    def expected(
        self, X: Any, *, covariates: Any = None, exposure: Any = None, features: Any = None,
        groups: Sequence[Any] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The mean prediction of each document, (n_docs, n_answers): probabilities, scores or numbers."""
        if not self.terms:
            raise ValueError(f"The model is a {self.kind}, which has no response; transform gives shares of topics.")
        counts, words = self.count(X)
        n_docs = counts.shape[0]
        log_exposure = self.log_exposure(exposure, n_docs)
        omega = self.topics_part(counts)
        omega += self.intercept_part(counts, log_exposure, len(omega))
        omega += self.beside(n_docs, covariates, groups, len(omega))
        if "words" in self.terms:
            omega += self.linear_part("words", self.word_rows(words), len(omega))
        if "features" in self.terms:
            omega += self.linear_part("features", self.feature_rows(features, n_docs), len(omega))
        elif features is not None:
            raise ValueError("The model was fitted without features; leave features= out.")
        scales = np.concatenate(self.tensors["scale"][:, self.draw])
        return np.mean(self.response.expected(omega, scales), axis=0)

    def log_exposure(self, exposure: Any, n_docs: int) -> np.ndarray:
        """The log of the exposure of counts, (n_docs, 1)."""
        exposed = self.response.learned.get("exposed")
        if exposure is None:
            if exposed:
                raise ValueError(
                    "The model was fitted with an exposure; pass exposure= here, too (1 for each document gives rates)."
                )
            return np.zeros((n_docs, 1))
        if exposed is None:
            raise ValueError("exposure is for counts, and this model has another response; leave exposure= out.")
        values = np.ravel(np.asarray(exposure, float))
        if len(values) != n_docs:
            raise ValueError(f"X has {n_docs} documents but exposure has {len(values)}; they must be equally many.")
        wrong = values[~((values >= LEAST_EXPOSURE) & (values <= MOST_EXPOSURE))]
        if len(wrong):
            raise ValueError(f"exposure must be from {LEAST_EXPOSURE:g} to {MOST_EXPOSURE:g}, got {wrong[0]:g}.")
        return np.log(values)[:, None]

    def topics_part(self, counts: csr_array) -> np.ndarray:
        """zbar @ eta, (n_chains n_pairs, n_docs, R)."""
        pairs = np.arange(len(self.draw))
        lengths, sets = np.maximum(counts.sum(axis=1), 1).astype(float), []
        for i, drawn in enumerate(self.topic_counts(counts)):
            eta = np.asarray(self.tensors[f"terms.topics.eta.{i}"], float)[:, self.draw]
            shares = drawn[:, pairs % drawn.shape[1]] / lengths[:, None]
            sets.append(np.concatenate(shares @ eta.transpose(0, 1, 3, 2)))
        return np.concatenate(sets, axis=2)

    def intercept_part(self, counts: csr_array, log_exposure: np.ndarray, n: int) -> np.ndarray:
        level, empty, support = (
            self.tensors[f"terms.intercept.{name}"] for name in ("level", "empty", "empty_documents")
        )
        none = np.diff(counts.indptr) == 0
        found = np.broadcast_to(np.where(none[:, None], 0.0, level) + log_exposure, (n, len(none), len(level))).copy()
        if none.any():
            found[:, none] += self.response.draw_offsets(np.asarray(empty), np.asarray(support), n)[:, None]
        return found

    def beside(self, n_docs: int, covariates: Any, groups: Sequence[Any] | None, n: int) -> np.ndarray:
        """What covariates and groups add."""
        found = np.zeros((n, n_docs, 1))
        if "covariates" in self.terms:
            eta, mean, scale = (self.tensors[f"terms.covariates.{name}"] for name in ("eta", "mean", "scale"))
            Z = self.rows_of("covariates", covariates, len(mean), n_docs)
            found = found + np.concatenate(((Z - mean) / scale) @ eta[:, self.draw].transpose(0, 1, 3, 2))
        elif covariates is not None:
            raise ValueError("The model was fitted without covariates; leave covariates= out.")
        if "groups" in self.terms:
            if groups is None or len(groups) != n_docs:
                raise ValueError(f"The model was fitted with groups; groups= needs one for each of {n_docs} documents.")
            places = {str(name): i for i, name in enumerate(self.tensors["terms.groups.names"].tolist())}
            group = np.array([places.get(str(name), -1) for name in groups], int)
            eta, variance = (
                np.concatenate(self.tensors[f"terms.groups.{name}"][:, self.draw]) for name in ("eta", "variance")
            )
            drawn = np.sqrt(variance) * spread_normals(n, eta.shape[1])
            found = found + np.where((group < 0)[:, None], drawn[:, None], eta.transpose(0, 2, 1)[:, group])
        elif groups is not None:
            raise ValueError("The model was fitted without groups; leave groups= out.")
        return found

    def rows_of(self, name: str, given: Any, n_columns: int, n_docs: int) -> np.ndarray:
        """An array of numbers, a row for each document."""
        values = np.asarray([] if given is None else given, float)
        values = values[:, None] if values.ndim == 1 and n_columns == 1 else values
        if values.shape != (n_docs, n_columns) or not np.isfinite(values).all():
            raise ValueError(
                f"The model was fitted with {n_columns:,} columns of {name}; {name}= needs finite numbers of shape "
                f"({n_docs}, {n_columns}), got {'none' if given is None else f'shape {values.shape}'}."
            )
        return values

    def word_rows(self, counts: csr_array) -> csr_array:
        """(1 + log count) idf of each word that has a weight, rows of length 1."""
        word, idf = np.asarray(self.tensors["terms.words.word"]), np.asarray(self.tensors["terms.words.idf"])
        x = csr_array(counts[:, word], dtype=float) if len(word) < counts.shape[1] else csr_array(counts, dtype=float)
        x.data = (1.0 + np.log(x.data)) * idf[x.indices]
        length = np.sqrt(np.maximum(x.multiply(x).sum(axis=1), 1e-300))
        x.data /= np.repeat(length, np.diff(x.indptr))
        return x

    def feature_rows(self, features: Any, n_docs: int) -> np.ndarray:
        mean, scale = (np.asarray(self.tensors[f"terms.features.{name}"]) for name in ("mean", "scale"))
        dense = features.toarray() if issparse(features) else features
        return (self.rows_of("features", dense, len(mean), n_docs) - mean) * scale

    def linear_part(self, name: str, x: Any, n: int) -> np.ndarray:
        """factor * (x @ theta), with what is unknown of theta."""
        theta, variance, factor = (self.tensors[f"terms.{name}.{part}"] for part in ("theta", "variance", "factor"))
        copies = (np.arange(self.n_chains)[:, None] * self.n_draws + self.draw).ravel() % len(theta)
        mean = np.array([x @ own.astype(float) for own in theta])[copies]
        if len(variance):
            sd = np.sqrt((x.multiply(x) if issparse(x) else x * x) @ variance.astype(float))
            mean = mean + spread_normals(n, theta.shape[2])[:, None] * sd
        return np.concatenate(factor[:, self.draw])[:, None] * mean

    def transform(self, X: Any) -> np.ndarray:
        """The share of each topic in each document, as `transform` of the estimator returns it.

        Parameters
        ----------
        X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
            Texts, or word counts.

        Returns
        -------
        ndarray of shape (n_docs, n_topics)
        """
        counts = self.count(X)[0]
        lengths = np.maximum(counts.sum(axis=1), 1).astype(float)
        order, has = self.order, self.has
        zbar = [drawn.mean(axis=1) / lengths[:, None] / len(self.sets) for drawn in self.topic_counts(counts)]
        shares = [np.concatenate([self.shares_of(own, c) for own in self.sets]) for c in range(self.n_chains)]
        total = np.zeros((counts.shape[0], order.shape[1]))
        for c in range(self.n_chains):
            own = np.concatenate([of_set[c] for of_set in zbar], axis=1)
            own[np.diff(counts.indptr) == 0] = shares[c]
            total += own[:, order[c]] * has[c]
        total /= has.sum(axis=0)
        ends = np.cumsum([0, *(len(own[0].alpha) for own in self.sets)])
        for a, b in itertools.pairwise(ends):
            total[:, a:b] /= np.maximum(total[:, a:b].sum(axis=1, keepdims=True), TINY) * len(self.sets)
        return total

    @property
    def order(self) -> np.ndarray:
        """The topics of each chain in the common order, (chain, K)."""
        return np.asarray(self.tensors["order"])

    @cached_property
    def has(self) -> np.ndarray:
        """Which chains have each topic, (chain, K)."""
        roots = [
            np.sqrt(np.concatenate([own[c].phi(slice(None)) for own in self.sets], axis=1)[:, self.order[c]])
            for c in range(self.n_chains)
        ]
        same_order = np.tile(np.arange(self.order.shape[1]), (self.n_chains, 1))
        return have_topics(roots, int(self.facts["best_chain"]), same_order)

    def shares_of(self, chains: list[Topics], c: int) -> np.ndarray:
        """The share of each topic in all tokens of a set, divided by the number of sets, (K,)."""
        prefix = f"topics.{next(i for i, own in enumerate(self.sets) if own is chains)}."
        tokens = chains[c].counts.sum(axis=0, dtype=float) - self.n_draws * self.tensors[prefix + "pseudo_tokens"][c]
        tokens = np.maximum(tokens, TINY)
        return tokens / tokens.sum() / len(self.sets)

    def predict(self, X: Any, **beside: Any) -> np.ndarray:
        """The predictions, as `predict` of the estimator returns them.

        Parameters
        ----------
        X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
            Texts, or word counts if the model was fitted to counts.
        **beside
            `covariates` (an array of numbers), `exposure`, `features` and `groups`, as the model was fitted.

        Returns
        -------
        ndarray
            Classes, 0 and 1 for each label, or numbers; of times the medians.
        """
        return self.response.predicted(self.expected(X, **beside))

    def predict_proba(self, X: Any, **beside: Any) -> np.ndarray:
        """The probability of each class or label, as `predict_proba` of the estimator returns it.

        Parameters
        ----------
        X, **beside
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_docs, n_classes)
        """
        if not self.response.has_probabilities:
            raise AttributeError(f"A {self.kind} has no probabilities.")
        return self.expected(X, **beside)
