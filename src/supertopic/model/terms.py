"""omega is a sum of terms: topics, covariates, an intercept, words, features. Whatever needs omega loops over them.

A term says what it adds to omega of some documents in each draw, splits that into named parts for one document, and
turns into arrays for a file and back. Terms that are shrunk can be multiplied by a factor. omega is in standard units.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from supertopic.corpus.frames import NUMBER
from supertopic.corpus.source import Target
from supertopic.kernels.moments import omegas
from supertopic.model.design import Design
from supertopic.model.responses.base import Response
from supertopic.model.responses.columns import NewColumns


class DrawPairs(NamedTuple):
    """How draws of weights are paired with draws of a document's topics, chain after chain."""

    n_chains: int
    n_draws: int  # draws of the weights in a chain
    n_pairs: int  # in a chain: as many as draws of the weights or of the document's topics, whichever are more

    @property
    def draw(self) -> np.ndarray:
        """The draw of the weights in each pair of a chain, (n_pairs,)."""
        return np.arange(self.n_pairs) % self.n_draws

    @property
    def total(self) -> int:
        return self.n_chains * self.n_pairs

    def over(self, draws: np.ndarray) -> np.ndarray:
        """(chain, draw, ...) as (n_chains n_pairs, ...)."""
        return np.concatenate(draws[:, self.draw])

    def copies(self, n_copies: int) -> np.ndarray:
        """Which of some copies belongs to each pair of each chain, (n_chains n_pairs,): one for each draw."""
        return (np.arange(self.n_chains)[:, None] * self.n_draws + self.draw).ravel() % n_copies


class Documents(Protocol):
    """New documents, as terms see them."""

    @property
    def counts(self) -> sp.csr_array:
        """Counts of the words of topics, (n_docs, V)."""

    @property
    def words(self) -> sp.csr_array:
        """Counts of the words that may have weights of their own, (n_docs, W); the same as `counts`, or others."""

    @property
    def features(self) -> sp.csr_array | np.ndarray:
        """Further numbers of each document, (n_docs, F)."""

    @property
    def covariates(self) -> np.ndarray:
        """As the user gave them, then a column for each group of documents: (n_docs, P + G)."""

    @property
    def log_exposure(self) -> np.ndarray:
        """(n_docs, 1)."""

    @property
    def pairs(self) -> DrawPairs: ...

    def topic_omega(self, place: int, chain: int, eta: np.ndarray) -> np.ndarray:
        """Draws of zbar @ eta for one set of topics, (n_pairs, n_docs, R): each with a draw of eta (n_draws, R, K)."""

    def token_topics(self, place: int, chain: int) -> np.ndarray:
        """The same draws for a single document, token by token: (n_sweeps, n_tokens)."""


class Parts(NamedTuple):
    """What a term adds to omega of one document, split by word, or into parts with names of their own."""

    by_word: np.ndarray | None  # (n, n_words, R), for the words that the document has: see `Term.by_word`
    others: dict[str, np.ndarray]  # (n, R) each


class Term(ABC):
    """One summand of omega."""

    name: ClassVar[str]
    by_word: ClassVar[str] = "counts"  # whose words `parts` splits it by: those of `counts` or of `words`

    @abstractmethod
    def omega(self, documents: Documents) -> np.ndarray:
        """What the term adds in each draw, (n_chains n_pairs, n_docs, R)."""

    @abstractmethod
    def parts(self, document: Documents) -> Parts:
        """The same for one document, split into parts."""

    def at_places(self, place: np.ndarray) -> Self:
        """The same term when words with weights of their own have moved: `place` of each, -1 where it is forgotten."""
        return self

    def with_columns(self, columns: NewColumns) -> Self:
        """The same term for a response with more classes."""
        raise ValueError(f"The term {self.name!r} of the model cannot take new classes; fit the model again.")

    @abstractmethod
    def tensors(self) -> dict[str, np.ndarray]:
        """The term as arrays of numbers, for a file."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], response: Response, shape: "Shape") -> Self:
        """The term of a file whose contents may be anything: a ValueError says what cannot be right."""


class Shape(NamedTuple):
    """The sizes that a term of a file must fit."""

    n_chains: int
    n_draws: int
    n_columns: int
    n_words: int
    n_direct: int  # words that may have weights of their own
    n_topics: tuple[int, ...]  # the number of topics of each set
    columns: list[slice]  # the columns of the response that each set has weights for


def expect(sound: Any, what: str) -> None:
    """Refuse a file in which something cannot be right."""
    if not sound:
        raise ValueError(f"{what} cannot be right.")


@dataclass(frozen=True, eq=False)
class TopicWeights(Term):
    """zbar @ eta, the paper's discriminant: weights for the topics of each chain."""

    eta: tuple[np.ndarray, ...]  # the weights of each set of topics: (chain, draw, R of the set, K)

    name: ClassVar[str] = "topics"

    def omega(self, documents: Documents) -> np.ndarray:
        chains = []
        for chain in range(documents.pairs.n_chains):
            sets = [documents.topic_omega(i, chain, eta[chain]) for i, eta in enumerate(self.eta)]
            chains.append(np.concatenate(sets, axis=2))
        return np.concatenate(chains)

    def parts(self, document: Documents) -> Parts:
        n_chains, n_words = document.pairs.n_chains, len(document.counts.data)
        pairs = np.arange(document.pairs.n_pairs)
        place = np.repeat(np.arange(n_words), document.counts.data)  # of each token's word
        sets = []
        for i, eta in enumerate(self.eta):
            found = np.zeros((n_chains, len(pairs), n_words, eta.shape[2]))
            for chain in range(n_chains if len(place) else 0):
                z = document.token_topics(i, chain)
                for pair in pairs:
                    added = eta[chain, pair % eta.shape[1]][:, z[pair % len(z)]].T / len(place)  # (n_tokens, R)
                    np.add.at(found[chain, pair], place, added)
            sets.append(found)
        through = np.concatenate(sets, axis=3)
        return Parts(np.concatenate(through), {})  # without words the array is empty, and a reshape fails

    def by_topic(self, document: Documents, chain: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """For each set the mean of what each of its topics adds in one chain, (K, R), and its mean share, (K,)."""
        pairs, n_tokens = np.arange(document.pairs.n_pairs), int(document.counts.sum())
        adds, shares = [], []
        for i, eta in enumerate(self.eta):
            n_topics, used = eta.shape[3], np.zeros((1, eta.shape[3]))
            if n_tokens:
                z = document.token_topics(i, chain)
                used = np.array([np.bincount(row, minlength=n_topics) for row in z]) / n_tokens  # (draw, K)
            share = used[pairs % len(used)]
            adds.append((eta[chain, pairs % eta.shape[1]] * share[:, None]).mean(axis=0).T)
            shares.append(share.mean(axis=0))
        return adds, shares

    def centred(self, centre: np.ndarray) -> "TopicWeights":
        """Weights relative to those of the usual mixture of topics, (chain, R)."""
        return replace(self, eta=tuple(e - c[:, None, :, None] for e, c in self._with(centre)))

    def scaled(self, factor: np.ndarray) -> "TopicWeights":
        """The term multiplied by a factor for each draw and column, (chain, draw, R): shrinkage."""
        return replace(self, eta=tuple(e * f[..., None] for e, f in self._with(factor)))

    def _with(self, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The weights of each set, and the part of (..., R) that belongs to its columns."""
        ends = np.cumsum([eta.shape[2] for eta in self.eta])[:-1]
        return list(zip(self.eta, np.split(values, ends, axis=-1), strict=True))

    def tensors(self) -> dict[str, np.ndarray]:
        return {f"eta.{i}": eta for i, eta in enumerate(self.eta)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], response: Response, shape: Shape) -> "TopicWeights":
        eta = tuple(tensors[f"eta.{i}"] for i in range(len(shape.n_topics)))
        for weights, n_topics, columns in zip(eta, shape.n_topics, shape.columns, strict=True):
            expected = (shape.n_chains, shape.n_draws, columns.stop - columns.start, n_topics)
            expect(weights.shape == expected, "the shape of the topics' weights")
        return cls(eta)


@dataclass(frozen=True, eq=False)
class CovariateColumns:
    """What covariates looked like in the first batch; they are standardised, so that one prior is fair to all units."""

    names: np.ndarray  # (P,)
    mean: np.ndarray  # (P,)
    scale: np.ndarray  # (P,)
    design: Design | None = None  # how they are made from the columns of a frame; None for an array of numbers
    groups: np.ndarray = field(default_factory=lambda: np.zeros(0, object))  # (G,): of documents, after the covariates

    @property
    def width(self) -> int:
        """The number of covariates and groups, P + G."""
        return len(self.names) + len(self.groups)

    @property
    def kinds(self) -> dict[str, str]:
        """The columns that a fitted model reads beside the texts, and the kind of each."""
        if self.design is None:
            return {str(name): NUMBER for name in self.names}
        return {column.name: column.kind for column in self.design.columns}

    def standard(self, values: np.ndarray) -> np.ndarray:
        return (values - self.mean) / self.scale

    def take(self, places: np.ndarray) -> "CovariateColumns":
        """The same columns in another order, in which no frame is read."""
        return CovariateColumns(self.names[places], self.mean[places], self.scale[places])

    def labels(self, values: np.ndarray) -> Iterable[tuple[str, slice]]:
        """What the covariates (P,) of one document are called, and their places: contrasts of a column are one."""
        if self.design is not None:
            return self.design.labels(values)
        return ((str(name), slice(p, p + 1)) for p, name in enumerate(self.names))


def no_covariates() -> CovariateColumns:
    return CovariateColumns(np.zeros(0, object), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class CovariateWeights(Term):
    """Numbers that are known of each document."""

    columns: CovariateColumns
    eta: np.ndarray  # (chain, draw, R, P): for standardised covariates

    name: ClassVar[str] = "covariates"

    def values(self, documents: Documents) -> np.ndarray:
        return documents.covariates[:, : len(self.columns.names)]

    def omega(self, documents: Documents) -> np.ndarray:
        Z, draw = self.columns.standard(self.values(documents)), documents.pairs.draw
        return np.concatenate([np.array([omegas(Z, eta.copy()) for eta in chain])[draw] for chain in self.eta])

    def parts(self, document: Documents) -> Parts:
        values = self.values(document)
        added = document.pairs.over(self.eta) * self.columns.standard(values)[0]  # (n, R, P)
        found: dict[str, np.ndarray] = {}
        for label, places in self.columns.labels(values[0]):
            found[label] = added[:, :, places].sum(axis=2) + found.get(label, 0.0)
        return Parts(None, found)

    def scaled(self, factor: np.ndarray) -> "CovariateWeights":
        """The term multiplied by a factor for each draw and column, (chain, draw, R): shrinkage."""
        return replace(self, eta=self.eta * factor[..., None])

    def with_columns(self, columns: NewColumns) -> "CovariateWeights":
        return replace(self, eta=columns.of(self.eta, 2, share=True))

    def tensors(self) -> dict[str, np.ndarray]:
        columns = self.columns
        found = {"names": columns.names, "mean": columns.mean, "scale": columns.scale, "eta": self.eta}
        return found | ({"design": np.array([columns.design.to_json()], dtype=object)} if columns.design else {})

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], response: Response, shape: Shape) -> "CovariateWeights":
        design = Design.from_json(tensors["design"].item()) if "design" in tensors else None
        names, mean, scale, eta = (tensors[name] for name in ("names", "mean", "scale", "eta"))
        columns = CovariateColumns(names, mean, scale, design)
        n = len(columns.names)
        expect(design is None or design.is_sound(columns.names.tolist()), "the design of the covariates")
        expect(eta.shape == (shape.n_chains, shape.n_draws, shape.n_columns, n), "the shape of the covariates' weights")
        expect(columns.mean.shape == columns.scale.shape == (n,), "the covariates' means and scales")
        return cls(columns, eta)


@dataclass(frozen=True, eq=False)
class Intercept(Term):
    """The constant of predictions, and that of documents without known words, which rests on few such documents."""

    response: Response
    level: np.ndarray  # (R,): with which predictions are right on average
    base: np.ndarray  # (R,): of a document of which nothing is known, which stands for the base rate
    empty: np.ndarray  # (R,): of a document without known words
    empty_documents: np.ndarray  # (R,): how many documents `empty` rests on

    name: ClassVar[str] = "intercept"

    def omega(self, documents: Documents) -> np.ndarray:
        empty = np.diff(documents.counts.indptr) == 0
        found = np.where(empty[:, None], 0.0, self.level) + documents.log_exposure
        found = np.broadcast_to(found, (documents.pairs.total, *found.shape))
        if empty.any():
            found = found.copy()
            drawn = self.response.plain().draw_offsets(self.empty, self.empty_documents, documents.pairs.total)
            found[:, empty] += drawn[:, None]
        return found

    def parts(self, document: Documents) -> Parts:
        return Parts(None, {self.name: self.omega(document)[:, 0]})

    def tensors(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in ("level", "base", "empty", "empty_documents")}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], response: Response, shape: Shape) -> "Intercept":
        found = cls(response, *(tensors[name] for name in ("level", "base", "empty", "empty_documents")))
        sizes = {np.shape(array) for array in found.tensors().values()}
        expect(sizes == {(shape.n_columns,)}, "the intercept's shape")
        return found


TERMS: dict[str, type[Term]] = {kind.name: kind for kind in (TopicWeights, CovariateWeights, Intercept)}  # and `linear`


@dataclass(frozen=True)
class Residual:
    """What a term that is learned after topics and words is given: documents as if they were new, and their target.

    The offset of the target is what the other terms say.
    """

    documents: Documents
    target: Target
    response: Response
    n_chains: int
    n_draws: int
    previous: Term | None = field(default=None)  # the term of earlier batches
