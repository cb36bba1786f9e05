"""Linear terms beside topics: direct weights of words, and of features that a user has of each document.

Their weights are a ridge regression (`inference.beside`). A weight is known up to a standard deviation of its own; a
document's sum is therefore normal in every draw. A factor for each draw, from held-out documents, says how much the
term contributes.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from supertopic.corpus.tokens import row_pieces
from supertopic.kernels.draws import make_key, normals
from supertopic.kernels.moments import omegas
from supertopic.kernels.products import multiply
from supertopic.model.responses.base import GOLDEN, Response
from supertopic.model.responses.columns import NewColumns
from supertopic.model.terms import TERMS, Documents, Parts, Shape, Term, expect

Matrix: TypeAlias = Any  # a csr_array or an array
MOST_WEIGHTS = 2**22  # more would need much memory
SPLIT = 1 << 41  # the path of random numbers that splits what is unknown of a sum over its words


def times(x: Matrix, weights: np.ndarray, squared: bool = False) -> np.ndarray:
    """x @ weights, or x**2 @ weights, (n_docs, R) in float64: the same bits alone and in any batch."""
    if not sp.issparse(x):
        return omegas(x * x if squared else x, np.ascontiguousarray(weights.T))
    out = np.empty((x.shape[0], weights.shape[1]))
    docs = np.arange(x.shape[0])
    multiply(x.indptr, x.indices, x.data * x.data if squared else x.data, docs, weights, out, 0, len(docs))
    return out


@lru_cache(maxsize=16)
def spread_normals(n: int, n_columns: int) -> np.ndarray:
    """n standard normal numbers for each column that are spread evenly, (n, n_columns); kept, and read-only."""
    place = (np.arange(1, n + 1)[:, None] * GOLDEN**2 + np.arange(n_columns) * GOLDEN) % 1.0
    found = ndtri((np.argsort(np.argsort(place, axis=0), axis=0) + 0.5) / n)
    found /= np.maximum(found.std(axis=0), 1e-12)
    found.flags.writeable = False
    return found


@dataclass(frozen=True, eq=False)
class LinearWeights(Term):
    """factor * (x @ theta) for rows x of documents, with what is unknown of theta."""

    theta: np.ndarray  # (n, n_columns, R) float32: one; models of version 0.2 have several copies
    variance: np.ndarray  # (n_columns, R) float32: of each weight; (0, R) where the copies contain it
    factor: np.ndarray  # (chain, draw, R): 0 in draws in which the term adds nothing

    @abstractmethod
    def rows(self, documents: Documents) -> Matrix:
        """x, (n_docs, n_columns)."""

    def noise(self, documents: Documents) -> np.ndarray:
        """Standard normal numbers, one for each draw and column: (n_chains n_pairs, R)."""
        return spread_normals(documents.pairs.total, self.theta.shape[2])

    def omega(self, documents: Documents) -> np.ndarray:
        x, pairs = self.rows(documents), documents.pairs
        mean = np.array([times(x, theta) for theta in self.theta])[pairs.copies(len(self.theta))]
        if len(self.variance):
            sd = np.sqrt(times(x, self.variance, squared=True))
            mean = mean + self.noise(documents)[:, None] * sd
        return pairs.over(self.factor)[:, None] * mean

    def split(self, document: Documents) -> np.ndarray:
        """What each column that the row x has adds, (n, n_entries, R): sums to `omega` in every draw."""
        x = self.rows(document)
        column, value = (x.indices, x.data) if sp.issparse(x) else (np.arange(x.shape[1]), x[0])
        pairs = document.pairs
        found = (self.theta[:, column] * value[:, None])[pairs.copies(len(self.theta))].astype(float)
        if len(self.variance) and len(column):
            sd = np.sqrt(self.variance[column]) * np.abs(value)[:, None]  # (n_entries, R)
            noise = normals((len(found) * sd.shape[0], sd.shape[1]), make_key(SPLIT)).reshape(len(found), *sd.shape)
            whole = np.sqrt((sd**2).sum(axis=0))
            # independent parts given their sum, which is that of `omega`
            away = self.noise(document) * whole - (noise * sd).sum(axis=1)  # (n, R)
            found += noise * sd + sd**2 / np.maximum(whole**2, 1e-300) * away[:, None]
        return pairs.over(self.factor)[:, None] * found

    def scaled(self, factor: np.ndarray) -> Self:
        """The term multiplied by a factor for each draw and column, (chain, draw, R)."""
        return replace(self, factor=self.factor * factor)

    def with_columns(self, columns: NewColumns) -> Self:
        factor = columns.of(self.factor, sign=False, new=self.factor.mean(axis=2, keepdims=True))
        return replace(
            self, theta=columns.of(self.theta, share=True), variance=columns.of_variance(self.variance), factor=factor
        )

    @property
    def coef(self) -> np.ndarray:
        """The mean weights, (n_columns, R)."""
        pairs = np.arange(self.factor.shape[0] * self.factor.shape[1]) % len(self.theta)
        factor = self.factor.reshape(-1, self.factor.shape[2])
        used = np.array([factor[pairs == i].sum(axis=0) for i in range(len(self.theta))]) / len(factor)
        return np.einsum("ijr,ir->jr", self.theta, used)

    def tensors(self) -> dict[str, np.ndarray]:
        return {"theta": self.theta, "variance": self.variance, "factor": self.factor}

    @classmethod
    def read_weights(cls, tensors: dict[str, np.ndarray], n: int, shape: Shape) -> tuple[np.ndarray, ...]:
        """theta, variance and factor of a file, for n columns of x."""
        theta = tensors["theta"]
        if "factor" not in tensors:  # versions before had copies (n_copies, R, n_words), and no factor
            expect(theta.ndim == 3, f"theta of {cls.name}")
            theta = np.ascontiguousarray(theta.transpose(0, 2, 1))
            tensors = {
                "variance": np.zeros((0, shape.n_columns), np.float32),
                "factor": np.ones((shape.n_chains, shape.n_draws, shape.n_columns)),
            }
        variance, factor = tensors["variance"], tensors["factor"]
        expect(
            theta.ndim == 3 and len(theta) and theta.shape[1:] == (n, shape.n_columns) and theta.dtype.kind == "f",
            f"theta of {cls.name}",
        )
        expect(variance.ndim == 2 and variance.shape[1] == shape.n_columns, f"the variance of {cls.name}")
        expect(len(variance) in (0, n) and variance.dtype.kind == "f", f"the variance of {cls.name}")
        expect((variance >= 0).all(), f"the variance of {cls.name}")
        expect(factor.shape == (shape.n_chains, shape.n_draws, shape.n_columns), f"the factor of {cls.name}")
        return theta, variance, factor


class Dictionary(NamedTuple):
    """The words that have weights of their own."""

    word: np.ndarray  # (n,): their columns
    idf: np.ndarray  # (n,)

    def without_one(self, n_docs: np.ndarray) -> "Dictionary":
        """The same without words that are in it only if one of the n_docs (W + 1,) documents is counted."""
        return Dictionary(self.word, np.where(n_docs[self.word] - 1 > 1, self.idf, 0.0))

    def rows(self, counts: sp.csr_array) -> sp.csr_array:
        """Documents (n_docs, n): (1 + log count) idf of each word, of length 1."""
        pieces = row_pieces(counts.indptr, 0, counts.shape[0])
        if len(pieces) == 1:
            return self.few_rows(counts)
        has, ends = np.zeros(counts.shape[1], np.int8), np.zeros_like(counts.indptr)
        has[self.word] = 1
        for docs in pieces:
            known = np.cumsum(has[counts.indices[counts.indptr[docs.start] : counts.indptr[docs.stop]]], dtype=np.int64)
            own = counts.indptr[docs.start : docs.stop + 1] - counts.indptr[docs.start]
            ends[docs.start + 1 : docs.stop + 1] = ends[docs.start] + np.concatenate([[0], known])[own[1:]]
        place, data = np.empty(ends[-1], counts.indices.dtype), np.empty(ends[-1])
        for docs in pieces:
            own, x = slice(ends[docs.start], ends[docs.stop]), self.few_rows(counts[docs])
            place[own], data[own] = x.indices, x.data
        return sp.csr_array((data, place, ends), shape=(counts.shape[0], len(self.word)))

    def few_rows(self, counts: sp.csr_array) -> sp.csr_array:
        """The same, with copies of the counts beside them."""
        place, data, ends = counts.indices, counts.data, counts.indptr
        if len(self.word) < counts.shape[1]:  # searched for: the columns of a matrix are as many as the vocabulary
            place = np.searchsorted(self.word, place).clip(max=max(len(self.word) - 1, 0)).astype(place.dtype)
            known = self.word[place] == counts.indices if len(self.word) else np.zeros(len(place), bool)
            place, data = place[known], data[known]
            ends = np.concatenate([[0], np.cumsum(known)])[ends].astype(ends.dtype)
        x = sp.csr_array(((1.0 + np.log(data)) * self.idf[place], place, ends), shape=(len(ends) - 1, len(self.word)))
        length = np.sqrt(np.maximum(x.multiply(x).sum(axis=1), 1e-300))  # 0 where a document has none of the words
        x.data /= np.repeat(length, np.diff(x.indptr))
        return x


def count_documents(counts: Matrix) -> np.ndarray:
    """The documents that have each word, and all documents: (W + 1,)."""
    return np.append(np.bincount(counts.indices, minlength=counts.shape[1]), counts.shape[0])


def make_dictionary(n_docs: np.ndarray, n_columns: int) -> Dictionary:
    """Words of two documents or more; where these are too many, those of the most documents."""
    *_, whole = n_docs
    order = np.argsort(-n_docs[:-1], kind="stable")[: MOST_WEIGHTS // max(n_columns, 1)]
    word = np.sort(order[n_docs[order] > 1])
    return Dictionary(word, np.log((1.0 + whole) / (1.0 + n_docs[word])) + 1.0)


@dataclass(frozen=True, eq=False)
class WordWeights(LinearWeights):
    """Direct weights of words, for what topics smooth over; x are tf-idf rows of length 1."""

    dictionary: Dictionary

    name: ClassVar[str] = "words"
    by_word: ClassVar[str] = "words"

    def rows(self, documents: Documents) -> sp.csr_array:
        return self.dictionary.rows(documents.words)

    def parts(self, document: Documents) -> Parts:
        word, x = document.words.indices, self.rows(document)
        found = np.zeros((document.pairs.total, len(word), self.theta.shape[2]))
        found[:, np.searchsorted(word, self.dictionary.word[x.indices])] = self.split(document)
        return Parts(found, {})

    def word_coef(self, n_words: int) -> np.ndarray:
        """The mean weights of all words, (R, n_words)."""
        coef = np.zeros((self.theta.shape[2], n_words))
        coef[:, self.dictionary.word] = self.coef.T
        return coef

    def at_places(self, place: np.ndarray) -> Self:
        found = place[self.dictionary.word]
        stays = found >= 0
        variance = self.variance[stays] if len(self.variance) else self.variance
        dictionary = Dictionary(found[stays], self.dictionary.idf[stays])
        return replace(self, theta=self.theta[:, stays], variance=variance, dictionary=dictionary)

    def tensors(self) -> dict[str, np.ndarray]:
        return super().tensors() | {"word": self.dictionary.word, "idf": self.dictionary.idf}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], response: Response, shape: Shape) -> "WordWeights":
        word, idf = tensors["word"], tensors["idf"]
        expect(word.ndim == 1 and word.dtype.kind in "iu" and idf.shape == word.shape, "the words with weights")
        expect(
            (np.diff(word) > 0).all() and (word >= 0).all() and (word < shape.n_direct).all(),
            "which words have weights",
        )
        theta, variance, factor = cls.read_weights(tensors, len(word), shape)
        return cls(theta, variance, factor, Dictionary(word, idf))


class FeatureColumns(NamedTuple):
    """How features are scaled: rows have a length of about 1, and dense columns are standardised."""

    mean: np.ndarray  # (F,): 0 for sparse features
    scale: np.ndarray  # (F,): 0 for columns that are left out

    def rows(self, features: Matrix) -> Matrix:
        """(n_docs, F)."""
        if not sp.issparse(features):
            return (features - self.mean) * self.scale
        x = sp.csr_array(features * 1.0)
        x.data = x.data * self.scale[x.indices]
        if self.mean.any():
            return x.toarray() - self.mean * self.scale
        return x


@dataclass(frozen=True, eq=False)
class FeatureWeights(LinearWeights):
    """Weights of further numbers of a document, such as a sentence embedding."""

    columns: FeatureColumns

    name: ClassVar[str] = "features"

    def rows(self, documents: Documents) -> Matrix:
        return self.columns.rows(documents.features)

    def parts(self, document: Documents) -> Parts:
        return Parts(None, {self.name: self.omega(document)[:, 0]})

    def tensors(self) -> dict[str, np.ndarray]:
        return super().tensors() | {"mean": self.columns.mean, "scale": self.columns.scale}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], response: Response, shape: Shape) -> "FeatureWeights":
        mean, scale = tensors["mean"], tensors["scale"]
        expect(mean.ndim == 1 and len(mean) and mean.shape == scale.shape, "the features' means and scales")
        expect(mean.dtype.kind == scale.dtype.kind == "f", "the features' means and scales")
        theta, variance, factor = cls.read_weights(tensors, len(mean), shape)
        return cls(theta, variance, factor, FeatureColumns(mean, scale))


TERMS |= {kind.name: kind for kind in (WordWeights, FeatureWeights)}


def sparse_or_dense(values: Any) -> Matrix:
    """A matrix as kernels read it."""
    return sp.csr_array(values) if sp.issparse(values) else np.ascontiguousarray(values, dtype=float)
