"""Documents on a graphics card, and new documents under fixed topics there.

Rows on the card are documents, longest first, filled up to whole warps; what goes in or out is in the documents' order.
"""

from copy import copy
from typing import NamedTuple

import numpy as np

from supertopic.corpus.tokens import Tokens, cut, take
from supertopic.kernels.cuda import counts as kernels
from supertopic.kernels.cuda.device import (
    SIMULATED,
    WARP,
    beside,
    empty,
    get,
    launch,
    new_stream,
    put,
    put_into,
    stream,
    zeros,
)
from supertopic.kernels.cuda.sweep import Documents, Likes, Pull, Shape, check_places, make_shape, make_sweep, row_width
from supertopic.kernels.draws import make_key
from supertopic.model.state import Topics

LONG = 8 if SIMULATED else 1000  # tokens of a document that starts first
NUMBERS = 2**28  # of shares or private topics on the card at a time: a gigabyte
STARTING, MOVING = range(2)  # random numbers of a new document


class Rows:
    """Some documents on the card."""

    def __init__(self, tokens: Tokens, shape: Shape):
        lengths = np.diff(tokens.doc_start)
        self.shape, self.n_docs = shape, len(lengths)
        self.order = np.argsort(-lengths, kind="stable")
        self.n_rows = max(-(-self.n_docs // WARP), 1) * WARP
        length, start = np.zeros(self.n_rows, np.int32), np.zeros(self.n_rows, np.int64)
        length[: self.n_docs], start[: self.n_docs] = lengths[self.order], tokens.doc_start[:-1][self.order]
        base = np.concatenate([[0], np.cumsum(length[:: shape.group].astype(np.int64) * shape.group)])
        self.n_places = int(base[-1]) + WARP
        self.n_long, self.side = int((length > LONG).sum()), new_stream()
        self.length, self.start, self.flat, self.doc_start = length, put(start), put(tokens.word), tokens.doc_start
        self.docs = Documents(
            zeros(self.n_places, np.int32), zeros(self.n_places, np.uint16), put(base[:-1]), put(length),
            empty(self.n_rows, np.uint64), empty(self.n_rows * shape.width, np.float32),
        )  # fmt: skip
        launch(kernels.interleave, self.n_rows, self.flat, self.start, self.docs, shape.group, self.docs.word)

    def without_response(self) -> "Rows":
        """The same documents with a state of their own, and words that are to be set."""
        rows = copy(self)
        rows.shape = make_shape(self.shape.n_topics, 0)._replace(n_lanes=self.shape.n_lanes)
        rows.docs = self.docs._replace(
            word=zeros(self.n_places, np.int32), z=zeros(self.n_places, np.uint16),
            number=empty(self.n_rows, np.uint64), n=empty(self.n_rows * self.shape.width, np.float32),
        )  # fmt: skip
        return rows

    def put(self, array: np.ndarray):
        """An array with a line for each document, (n_docs, C), as rows on the card."""
        wide = np.zeros((self.n_rows, *array.shape[1:]), array.dtype)
        wide[: self.n_docs] = array[self.order]
        return put(wide)

    def put_into(self, rows, array: np.ndarray) -> None:
        """The same into rows that are there."""
        wide = np.zeros(rows.shape, rows.dtype)
        wide[: self.n_docs] = array[self.order]
        put_into(rows, wide)

    def get(self, rows) -> np.ndarray:
        """The lines of the documents from rows on the card."""
        rows = get(rows)
        lines = np.empty((self.n_docs, *rows.shape[1:]), rows.dtype)
        lines[self.order] = rows[: self.n_docs]
        return lines

    def number(self, first_doc: int) -> None:
        """Random numbers that depend on a document's number in the corpus."""
        self.put_into(self.docs.number, np.arange(first_doc, first_doc + self.n_docs, dtype=np.uint64))

    def hash(self, key: np.uint64) -> None:
        """Random numbers that depend on a document's words alone."""
        launch(kernels.content_numbers, self.n_rows, self.flat, self.start, self.docs.length, key, self.docs.number)

    def begin(self, key: np.uint64) -> None:
        """Every z from the uniform distribution."""
        launch(kernels.start_z, self.n_rows, self.docs, self.shape.group, self.shape.n_topics, key)
        self.count()

    def count(self) -> None:
        launch(kernels.count_rows, self.n_rows, self.docs, self.shape.group, self.shape.width)

    def sweep(self, likes: Likes, pull: Pull, key, n_sweeps=1, burn_in=1, kept=None, apart=0, rows=None) -> None:
        """Draw every z anew; of the documents of some rows, which fill whole warps, if only these are asked for.

        The card waits for the longest document. So long ones start first, beside the others, on multiprocessors that
        they have for themselves: their blocks ask for all registers, though most of their threads do nothing.
        """
        first, last = (row // self.shape.group for row in rows or (0, self.n_rows))
        long = min(max(-(-self.n_long // self.shape.group), first), last)
        verb, kept = make_sweep(self.shape), empty(0, np.float32) if kept is None else kept

        def run(start, stop, threads, where) -> None:
            blocks = -(-(stop - start) * WARP // self.shape.block)
            verb[blocks, threads, where](
                self.docs, likes, pull, key, n_sweeps, burn_in, apart, kept, start, stop - start
            )

        with beside(self.side, long > first):
            if long > first:
                run(first, long, self.shape.alone, self.side)
            if last > long:
                run(long, last, self.shape.block, stream())

    def tokens(self) -> Tokens:
        """The documents as they came."""
        return Tokens(get(self.flat), self.doc_start)

    def z(self) -> np.ndarray:
        """The topic of every token, in the order of the corpus."""
        flat = empty(len(self.flat), np.uint16)
        launch(kernels.collect, self.n_rows, self.docs.z, self.start, self.docs, self.shape.group, flat)
        return get(flat)

    def set_z(self, z: np.ndarray) -> None:
        launch(kernels.interleave, self.n_rows, put(z), self.start, self.docs, self.shape.group, self.docs.z)
        self.count()


def put_key(key: np.uint64):
    """A key on the card."""
    return put(np.array([key], np.uint64))


def no_pull() -> Pull:
    """No response."""
    none, flat = empty((0, 0), np.float64), empty(0, np.float32)
    return Pull(none, flat, flat, none, none, none, none, none)


def wide(array: np.ndarray, width: int) -> np.ndarray:
    """(V, K) with rows of this width, flat."""
    out = np.zeros((len(array), width), array.dtype)
    out[:, : array.shape[1]] = array
    return out.reshape(-1)


class Frozen(NamedTuple):
    """Topics on the card that are only read."""

    likes: Likes
    n_topics: int


def freeze(topics: Topics) -> Frozen:
    """The same topics on the card."""
    n_topics = len(topics.mass)
    width = row_width(n_topics)
    check_places(topics.phi.size // len(topics.alpha), n_topics, 0, 0)
    phi = put(wide(topics.phi.reshape(-1, len(topics.alpha))[:, :n_topics], width))
    return Frozen(fixed_likes(phi, topics.alpha[:n_topics]), n_topics)


def fixed_likes(phi, alpha: np.ndarray) -> Likes:
    """Topics that are only read, from a table on the card."""
    width = row_width(len(alpha))
    ones = put(wide(np.ones((1, len(alpha)), np.float32), width))
    alphas = put(wide(alpha.astype(np.float32)[None], width))
    return Likes(phi, put(np.zeros(2, np.float32)), ones, ones, alphas, empty(0, np.int32))


def count_new(tokens: Tokens, topics: Frozen, n_sweeps: int, n_draws: int, key: np.uint64):
    """Rows of new documents, and their counts in the second half of the sweeps: summed, or each if n_draws is not 1."""
    rows = Rows(tokens, make_shape(topics.n_topics, 0, quick=True))
    rows.hash(key)
    rows.begin(make_key(key, STARTING))
    size = rows.n_rows * rows.shape.width
    kept, apart = zeros(n_draws * size, np.float32), size if n_draws > 1 else 0
    moving = put_key(make_key(key, MOVING))
    rows.sweep(topics.likes, no_pull(), moving, n_sweeps, n_sweeps // 2, kept, apart)
    return rows, kept


def inverses(rows: Rows, n_draws: int) -> np.ndarray:
    """1 over the length of each row, times a number of draws."""
    return 1.0 / (np.maximum(rows.length, 1) * float(n_draws))


def pieces(tokens: Tokens, numbers: int) -> list[slice]:
    """Documents that are worked on at a time, if each takes so many numbers."""
    n_docs = len(tokens.doc_start) - 1
    return cut(tokens.doc_start, min(max(1, n_docs), 1 + n_docs * numbers // NUMBERS + len(tokens.word) // NUMBERS))


def infer_shares(tokens: Tokens, topics: Frozen, n_sweeps: int, key: np.uint64) -> np.ndarray:
    """The mean zbar (n_docs, K) of each document over the second half of the sweeps, 0 where it has no words."""
    n_topics = topics.n_topics
    shares = np.empty((len(tokens.doc_start) - 1, n_topics))
    for docs in pieces(tokens, row_width(n_topics)):
        rows, kept = count_new(take(tokens, docs), topics, n_sweeps, 1, key)
        counted = rows.get(kept.reshape(rows.n_rows, rows.shape.width))[:, :n_topics]
        lengths = np.maximum(np.diff(tokens.doc_start[docs.start : docs.stop + 1]), 1)
        shares[docs] = counted.astype(float) / (lengths * (n_sweeps - n_sweeps // 2))[:, None]
    return shares


def draw_omegas(tokens: Tokens, topics: Frozen, n_sweeps: int, eta: np.ndarray, key: np.uint64) -> np.ndarray:
    """The topics' part of omega, (n_pairs, n_docs, R): pairs of a draw of zbar, one a sweep, and of eta (n, R, K)."""
    n_draws = n_sweeps - n_sweeps // 2
    n_pairs, width = max(n_draws, len(eta)), row_width(topics.n_topics)
    omega = np.empty((n_pairs, len(tokens.doc_start) - 1, eta.shape[1]))
    on_card = put(eta)
    for docs in pieces(tokens, n_draws * width + 2 * n_pairs * eta.shape[1]):
        rows, kept = count_new(take(tokens, docs), topics, n_sweeps, n_draws, key)
        found = empty((n_pairs, rows.n_rows, eta.shape[1]), np.float64)
        size, inverse = rows.n_rows * width, put(inverses(rows, 1))
        launch(kernels.drawn_omegas, found.size, kept, size, n_draws, width, inverse, on_card, found)
        lines = np.empty((n_pairs, rows.n_docs, eta.shape[1]))
        lines[:, rows.order] = get(found)[:, : rows.n_docs]
        omega[:, docs] = lines
    return omega
