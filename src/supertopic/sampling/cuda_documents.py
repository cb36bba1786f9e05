"""Documents on a GPU, and new documents under fixed topics there.

A row is a document, longest first, filled up to whole warps; arrays that go in or out are in the order of the corpus.
"""

from copy import copy
from typing import NamedTuple

import numpy as np

from supertopic.corpus.tokens import Tokens, cut, take
from supertopic.kernels.cuda import counts as kernels
from supertopic.kernels.cuda.device import (
    LINE,
    SIMULATED,
    WARP,
    DeviceArray,
    beside,
    clear,
    empty,
    get,
    launch,
    new_stream,
    put,
    put_into,
    stream,
    zeros,
)
from supertopic.kernels.cuda.layout import (
    SPARSE_REGISTERS,
    Documents,
    ResponseTables,
    Shape,
    TopicTables,
    make_shape,
    row_width,
)
from supertopic.kernels.cuda.long import make_long_sweep
from supertopic.kernels.cuda.sparse import add_blocks, add_smooth, list_topics, make_sparse_sweep
from supertopic.kernels.cuda.sweep import check_places, make_sweep
from supertopic.kernels.cuda.warp import LANES
from supertopic.kernels.draws import make_key
from supertopic.model.state import Topics

LONG = 8 if SIMULATED else 1000  # tokens of a document that is started first
NUMBERS = 2**28  # of shares or private topics on the device at a time: a gigabyte
STARTING, MOVING = range(2)  # random numbers of a new document


class DocumentRows:
    """Documents on the device."""

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
        self.place = base[:-1][np.arange(self.n_rows) // shape.group] + np.arange(self.n_rows) % shape.group
        self.length, self.start, self.flat, self.doc_start = length, put(start), put(tokens.word), tokens.doc_start
        self.docs = Documents(
            zeros(self.n_places, np.int32), zeros(self.n_places, np.uint16), put(base[:-1]), put(length),
            empty(self.n_rows, np.uint64), empty(self.n_rows * shape.width, np.float32), *self.lists(),
        )  # fmt: skip
        launch(kernels.interleave, self.n_rows, self.flat, self.start, self.docs, shape.group, self.docs.word)

    def lists(self) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """Room for the topics that each document has, their tokens, and how many they are; none if none is sparse."""
        n_places, n_rows = (self.n_places, self.n_rows) if self.shape.sparse else (0, 0)
        return empty(n_places, np.uint16), empty(n_places, np.float32), empty(n_rows, np.int32)

    def without_response(self) -> "DocumentRows":
        """The same documents without a response, with a state of their own and words that the caller sets."""
        rows = copy(self)
        rows.shape = make_shape(self.shape.n_topics, 0)._replace(n_lanes=self.shape.n_lanes)
        topic, tokens, size = rows.lists()
        rows.docs = self.docs._replace(
            word=zeros(self.n_places, np.int32), z=zeros(self.n_places, np.uint16),
            number=empty(self.n_rows, np.uint64), n=empty(self.n_rows * self.shape.width, np.float32),
            topic=topic, tokens=tokens, size=size,
        )  # fmt: skip
        return rows

    def put(self, array: np.ndarray) -> DeviceArray:
        """An array with a line for each document, (n_docs, C), as rows on the device."""
        wide = np.zeros((self.n_rows, *array.shape[1:]), array.dtype)
        wide[: self.n_docs] = array[self.order]
        return put(wide)

    def put_into(self, rows: DeviceArray, array: np.ndarray) -> None:
        """Copy an array with a line for each document into rows on the device."""
        wide = np.zeros(rows.shape, rows.dtype)
        wide[: self.n_docs] = array[self.order]
        put_into(rows, wide)

    def get(self, rows: DeviceArray) -> np.ndarray:
        """The lines of the documents from rows on the device."""
        rows = get(rows)
        lines = np.empty((self.n_docs, *rows.shape[1:]), rows.dtype)
        lines[self.order] = rows[: self.n_docs]
        return lines

    def number(self, first_doc: int) -> None:
        """Let random numbers depend on a document's number in the corpus."""
        self.put_into(self.docs.number, np.arange(first_doc, first_doc + self.n_docs, dtype=np.uint64))

    def hash(self, key: np.uint64) -> None:
        """Let random numbers depend on a document's words alone."""
        launch(kernels.content_numbers, self.n_rows, self.flat, self.start, self.docs.length, key, self.docs.number)

    def begin(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution."""
        launch(kernels.start_z, self.n_rows, self.docs, self.shape.group, self.shape.n_topics, key)
        self.count()

    def count(self) -> None:
        """Count the tokens of each topic in each document."""
        kernel = list_topics if self.shape.sparse else kernels.count_rows
        clear(self.docs.n)
        launch(kernel, self.n_rows, self.docs, self.shape.group, self.shape.width)

    def sweep(
        self, tables: TopicTables, response: ResponseTables, key: DeviceArray, n_sweeps: int = 1, burn_in: int = 1,
        summed: DeviceArray | None = None, apart: int = 0, rows: tuple[int, int] | None = None,
        tally: DeviceArray | None = None,
    ) -> None:  # fmt: skip
        """Draw every z anew, of all documents or of some rows that fill whole warps.

        The sampler is the sparse one if the tables are for it; `tally` counts its proposals and those accepted.

        The device waits for the longest document. So long ones start first, beside the others. They have a kernel of
        their own; those of the sparse sampler have multiprocessors of their own instead: their blocks take all
        registers, though most of their threads do nothing.
        """
        group, block = self.shape.group, self.shape.block
        first, last = (row // group for row in rows or (0, self.n_rows))
        long = min(max(-(-self.n_long // group), first), last)
        summed = empty(0, np.float32) if summed is None else summed
        known: tuple[DeviceArray, ...] = (self.docs, tables, response, key, n_sweeps, burn_in, apart, summed)
        sparse = len(tables.smooth) > 0
        if sparse:
            known = *known, zeros(2, np.int64) if tally is None else tally
        kernel = make_sparse_sweep(self.shape) if sparse else make_sweep(self.shape)

        with beside(self.side, long > first):
            if long > first and sparse:
                blocks = -(-(long - first) * WARP // block)
                kernel[blocks, self.shape.alone(SPARSE_REGISTERS), self.side](*known, first, long - first)
            elif long > first:
                make_long_sweep(self.shape)[(long - first) * group, LANES, self.side](*known, first * group)
            if last > long:
                kernel[-(-(last - long) * WARP // block), block, stream()](*known, long, last - long)

    def tokens(self) -> Tokens:
        """The documents in the order of the corpus."""
        return Tokens(get(self.flat), self.doc_start)

    def z(self) -> np.ndarray:
        """The topic of every token, in the order of the corpus."""
        flat = empty(len(self.flat), np.uint16)
        launch(kernels.collect, self.n_rows, self.docs.z, self.start, self.docs, self.shape.group, flat)
        return get(flat)

    def set_z(self, z: np.ndarray) -> None:
        """Set the topic of every token, in the order of the corpus."""
        launch(kernels.interleave, self.n_rows, put(z), self.start, self.docs, self.shape.group, self.docs.z)
        self.count()


def put_key(key: np.uint64) -> DeviceArray:
    """A key on the device."""
    return put(np.array([key], np.uint64))


def no_response() -> ResponseTables:
    """The tables of documents without a response."""
    none, flat = empty((0, 0), np.float64), empty(0, np.float32)
    return ResponseTables(none, flat, flat, none, none, none, none, none)


def wide(array: np.ndarray, width: int) -> np.ndarray:
    """(V, K) with rows of this width, flat."""
    out = np.zeros((len(array), width), array.dtype)
    out[:, : array.shape[1]] = array
    return out.reshape(-1)


class DeviceTopics(NamedTuple):
    """Fixed topics on the device."""

    tables: TopicTables
    n_topics: int


def freeze(topics: Topics) -> DeviceTopics:
    """A copy of fixed topics on the device."""
    n_topics = len(topics.mass)
    width = row_width(n_topics)
    check_places(topics.phi.size // len(topics.alpha), n_topics, 0, 0)
    phi = put(wide(topics.phi.reshape(-1, len(topics.alpha))[:, :n_topics], width))
    return DeviceTopics(fixed_tables(phi, topics.alpha[:n_topics]), n_topics)


def fixed_tables(phi: DeviceArray, alpha: np.ndarray) -> TopicTables:
    """The tables of fixed topics, from phi on the device."""
    width, shape = row_width(len(alpha)), make_shape(len(alpha), 0)
    ones = put(wide(np.ones((1, len(alpha)), np.float32), width))
    alphas = put(wide(alpha.astype(np.float32)[None], width))
    smooth = smooth_tables(phi.size // width if shape.sparse else 0, width)
    tables = TopicTables(phi, put(np.zeros(2, np.float32)), ones, ones, alphas, empty(0, np.int32), *smooth)
    fill_smooth(tables)
    return tables


def smooth_tables(n_words: int, width: int) -> tuple[DeviceArray, DeviceArray]:
    """Room for what the sparse sampler knows of each word beside its row of the table."""
    return empty(n_words, np.float32), empty(n_words * (width // LINE), np.float32)


def fill_smooth(tables: TopicTables) -> None:
    """Compute them from the other tables."""
    table, prior, inverse, _, alpha, _, smooth, blocks = tables
    launch(add_blocks, blocks.size, table, prior, inverse, alpha, blocks)
    launch(add_smooth, smooth.size, blocks, smooth)


def count_new(
    tokens: Tokens, topics: DeviceTopics, n_sweeps: int, n_draws: int, key: np.uint64
) -> tuple[DocumentRows, DeviceArray]:
    """Rows of new documents, and their counts in the second half of the sweeps: summed, or each if n_draws is not 1."""
    rows = DocumentRows(tokens, make_shape(topics.n_topics, 0, quick=True))
    rows.hash(key)
    rows.begin(make_key(key, STARTING))
    size = rows.n_rows * rows.shape.width
    summed, apart = zeros(n_draws * size, np.float32), size if n_draws > 1 else 0
    moving = put_key(make_key(key, MOVING))
    rows.sweep(topics.tables, no_response(), moving, n_sweeps, n_sweeps // 2, summed, apart)
    return rows, summed


def inverses(rows: DocumentRows, n_draws: int) -> np.ndarray:
    """1 over the length of each row, times a number of draws."""
    return 1.0 / (np.maximum(rows.length, 1) * float(n_draws))


def pieces(tokens: Tokens, numbers: int) -> list[slice]:
    """Slices of documents that fit on the device, if each takes so many numbers."""
    n_docs = len(tokens.doc_start) - 1
    return cut(tokens.doc_start, min(max(1, n_docs), 1 + n_docs * numbers // NUMBERS + len(tokens.word) // NUMBERS))


def infer_shares(tokens: Tokens, topics: DeviceTopics, n_sweeps: int, key: np.uint64) -> np.ndarray:
    """The mean zbar (n_docs, K) of each document over the second half of the sweeps, 0 where it has no words."""
    n_topics = topics.n_topics
    shares = np.empty((len(tokens.doc_start) - 1, n_topics))
    for docs in pieces(tokens, row_width(n_topics)):
        rows, summed = count_new(take(tokens, docs), topics, n_sweeps, 1, key)
        counted = rows.get(summed.reshape(rows.n_rows, rows.shape.width))[:, :n_topics]
        lengths = np.maximum(np.diff(tokens.doc_start[docs.start : docs.stop + 1]), 1)
        shares[docs] = counted.astype(float) / (lengths * (n_sweeps - n_sweeps // 2))[:, None]
    return shares


def draw_omegas(tokens: Tokens, topics: DeviceTopics, n_sweeps: int, eta: np.ndarray, key: np.uint64) -> np.ndarray:
    """The topics' part of omega, (n_pairs, n_docs, R): pairs of a draw of zbar, one a sweep, and of eta (n, R, K)."""
    n_draws = n_sweeps - n_sweeps // 2
    n_pairs, width = max(n_draws, len(eta)), row_width(topics.n_topics)
    omega = np.empty((n_pairs, len(tokens.doc_start) - 1, eta.shape[1]))
    on_device = put(eta)
    for docs in pieces(tokens, n_draws * width + 2 * n_pairs * eta.shape[1]):
        rows, summed = count_new(take(tokens, docs), topics, n_sweeps, n_draws, key)
        found = empty((n_pairs, rows.n_rows, eta.shape[1]), np.float64)
        size, inverse = rows.n_rows * width, put(inverses(rows, 1))
        launch(kernels.drawn_omegas, found.size, summed, size, n_draws, width, inverse, on_device, found)
        lines = np.empty((n_pairs, rows.n_docs, eta.shape[1]))
        lines[:, rows.order] = get(found)[:, : rows.n_docs]
        omega[:, docs] = lines
    return omega
