"""Documents and what is known about each: the protocols of a corpus, and a corpus in memory."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, Self

import numpy as np

from supertopic.corpus.tokens import Tokens, select, take


class Target(NamedTuple):
    """What is known about each document besides its words."""

    y: np.ndarray  # (n_docs, R) with 0 where unknown, or in a layout that only the response knows
    weight: np.ndarray  # (n_docs, R), multiplies c; 0 where unknown
    offset: np.ndarray  # (n_docs, R) or (n_docs, 1): a known part of omega
    covariates: np.ndarray  # (n_docs, P): these enter omega next to zbar

    def column(self, r: int) -> "Target":
        """The target of one response column."""
        one = slice(r, r + 1) if self.offset.shape[1] > 1 else slice(None)
        return Target(self.y[:, r : r + 1], self.weight[:, r : r + 1], self.offset[:, one], self.covariates)


def make_target(
    y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None, covariates: np.ndarray | None = None
) -> Target:
    """A target whose offset is 0 and which has no covariates, unless they are given."""
    n_docs = len(y)
    return Target(
        y,
        weight,
        np.zeros((n_docs, 1)) if offset is None else offset,
        np.zeros((n_docs, 0)) if covariates is None else covariates,
    )


def no_target(n_docs: int) -> Target:
    """The target of documents without a response."""
    nothing = np.zeros((n_docs, 0))
    return make_target(nothing, nothing)


def select_target(target: Target, docs: np.ndarray | slice) -> Target:
    """The target of some documents, given as a slice, a mask or an index."""
    return Target(*(array[docs] for array in target))


class Source(Protocol):
    """Documents that can be read piece by piece, wherever they are stored."""

    def read(self, docs: slice) -> tuple[Tokens, Target]:
        """Tokens and target of consecutive documents."""


class Described(Protocol):
    """What is known of documents without their words."""

    @property
    def doc_start(self) -> np.ndarray:
        """Where the tokens of each document start, (n_docs + 1,) int64."""

    @property
    def target(self) -> Target:
        """The target of all documents."""

    def column(self, r: int) -> Self:
        """The same documents with one response column."""


class Corpus(Source, Described, Protocol):
    """All documents of a fit."""

    def part(self, docs: slice) -> Source:
        """A source of consecutive documents only; it pickles without the others."""

    def with_target(self, target: Target) -> "Corpus":
        """The same documents with another target."""

    def select(self, docs: np.ndarray) -> "Corpus":
        """The documents of a mask."""

    def load(self) -> "Arrays":
        """The documents in memory."""

    def arrays(self) -> Iterable[np.ndarray]:
        """All arrays that distinguish this corpus from others, for a fingerprint."""


class Outline(NamedTuple):
    """What is left of a corpus whose words are not read any more."""

    doc_start: np.ndarray
    target: Target

    def column(self, r: int) -> "Outline":
        return self._replace(target=self.target.column(r))


class Arrays(NamedTuple):
    """A corpus in memory, as tokens."""

    tokens: Tokens
    target: Target

    @property
    def doc_start(self) -> np.ndarray:
        return self.tokens.doc_start

    def read(self, docs: slice) -> tuple[Tokens, Target]:
        return take(self.tokens, docs), select_target(self.target, docs)

    def part(self, docs: slice) -> "Part":
        return Part(docs.start, Arrays(*self.read(docs)))

    def with_target(self, target: Target) -> "Arrays":
        return Arrays(self.tokens, target)

    def column(self, r: int) -> "Arrays":
        return Arrays(self.tokens, self.target.column(r))

    def select(self, docs: np.ndarray) -> "Arrays":
        return Arrays(select(self.tokens, docs), select_target(self.target, docs))

    def load(self) -> "Arrays":
        return self

    def arrays(self) -> Iterable[np.ndarray]:
        return *self.tokens, *self.target


class Part(NamedTuple):
    """Consecutive documents of a larger corpus; `read` takes the document numbers of the larger one."""

    first: int
    documents: Source

    def read(self, docs: slice) -> tuple[Tokens, Target]:
        return self.documents.read(slice(docs.start - self.first, docs.stop - self.first))
