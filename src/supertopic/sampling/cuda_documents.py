"""Documents on a GPU, and new documents under fixed topics there.

A row is a document, longest first, filled up to whole warps; arrays that go in or out are in the order of the corpus.
The tokens of a document are drawn one after the other. So that nobody waits for a long one, it is cut into parts, which
are rows of their own. During a sweep, a part sees the other parts as they were before it; they exchange their counts
after it. (Posterior means of shares are then the same, and standard deviations 2 % smaller, in documents of over 1,000
tokens.) The first part has what is known of the document; in the others this is 0, so that sums count it once.
"""

from copy import copy
from typing import NamedTuple

import numpy as np

from supertopic.corpus.tokens import Tokens, cut, take
from supertopic.kernels.cuda import counts as kernels
from supertopic.kernels.cuda.device import (
    BLOCK,
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
from supertopic.kernels.cuda.sparse import add_smooth, list_topics, make_sparse_sweep
from supertopic.kernels.cuda.sweep import check_places, make_sweep
from supertopic.kernels.cuda.warp import LANES
from supertopic.kernels.draws import make_key
from supertopic.model.state import Topics

LONG = 8 if SIMULATED else 1000  # tokens of a document that is started first
PART = 1000  # tokens of a part, at most
NUMBERS = 2**28  # of shares or private topics on the device at a time: a gigabyte
STARTING, MOVING = range(2)  # random numbers of a new document


class Layout(NamedTuple):
    """Which tokens are in which row: the parts of documents that are cut, document by document, then the other ones."""

    row: np.ndarray  # (n_docs,): the first row of each document
    n_cut: int  # rows of parts, filled up to whole warps
    start: np.ndarray  # (rows,): the first token of each row among those of the corpus
    length: np.ndarray  # (rows,): its tokens
    whole: np.ndarray  # (rows,): the tokens of a document, in its first row; 0 in its others
    first: np.ndarray  # (rows,): which of its document's tokens is the first one
    leader: np.ndarray  # (rows,): the first row of its document


def lay_out(doc_start: np.ndarray, parts: np.ndarray) -> Layout:
    """Rows for documents that have some parts each, of equal length; those that are not cut are the longest first."""
    lengths = np.diff(doc_start)
    cut, uncut = np.flatnonzero(parts > 1), np.flatnonzero(parts == 1)
    uncut = uncut[np.argsort(-lengths[uncut], kind="stable")]
    n_parts = int(parts[cut].sum())
    n_cut = -(-n_parts // WARP) * WARP
    n_rows, row = n_cut + max(-(-len(uncut) // WARP), 1) * WARP, np.empty(len(lengths), np.int64)
    row[cut], row[uncut] = np.cumsum(parts[cut]) - parts[cut], n_cut + np.arange(len(uncut))
    start, length, first, whole = np.zeros((4, n_rows), np.int64)
    length[row], start[row], whole[row] = lengths, doc_start[:-1], lengths
    leader, rows, doc = np.arange(n_rows), np.arange(n_parts), np.repeat(cut, parts[cut])
    leader[rows] = row[doc]
    place = rows - leader[rows]
    first[rows] = place * lengths[doc] // parts[doc]
    length[rows] = (place + 1) * lengths[doc] // parts[doc] - first[rows]
    start[rows] = doc_start[doc] + first[rows]
    return Layout(row, n_cut, start, length, whole, first, leader)


class DocumentRows:
    """Documents on the device."""

    def __init__(self, tokens: Tokens, shape: Shape, whole: bool = False):
        """`whole` documents are not cut, nor are those of the sparse sampler."""
        lengths = np.diff(tokens.doc_start)
        self.shape, self.n_docs = shape, len(lengths)
        parts = np.ones(self.n_docs, np.int64) if whole or shape.sparse else np.maximum(-(-lengths // PART), 1)
        layout = lay_out(tokens.doc_start, parts)
        self.row, self.n_cut, self.n_rows = layout.row, layout.n_cut, len(layout.start)
        of_cut = self.row[parts > 1], parts[parts > 1]
        self.cut = put(of_cut[0]), put(of_cut[1])  # the first rows of documents in parts, and how many they have
        longest = layout.length.reshape(-1, shape.group).max(axis=1)
        base = self.base = np.concatenate([[0], np.cumsum(longest * shape.group)])
        self.n_places = int(base[-1]) + WARP
        self.n_long, self.side = int((layout.length > LONG).sum()), new_stream()
        self.place = base[:-1][np.arange(self.n_rows) // shape.group] + np.arange(self.n_rows) % shape.group
        self.length, self.start, self.doc_start = layout.whole, put(layout.start), tokens.doc_start
        length, tokens_of_doc, first, leader = (put(array.astype(np.int32)) for array in layout[3:])
        self.docs = Documents(
            zeros(self.n_places, np.int32), zeros(self.n_places, np.uint16), put(base[:-1]), length, tokens_of_doc,
            first, leader, empty(self.n_rows, np.uint64), empty(self.n_rows * shape.width, np.float32), *self.lists(),
        )  # fmt: skip
        self.interleave(tokens.word, self.docs.word)

    def lists(self) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """Room for the topics that each document has, their tokens, and how many they are; none if none is sparse."""
        n_places, n_rows = (self.n_places, self.n_rows) if self.shape.sparse else (0, 0)
        return empty(n_places, np.uint16), empty(n_places, np.float32), empty(n_rows, np.int32)

    def without_response(self) -> "DocumentRows":
        """The same documents, in the same arrays, for a sweep that knows no response."""
        rows = copy(self)
        rows.shape = make_shape(self.shape.n_topics, 0)._replace(n_lanes=self.shape.n_lanes)
        return rows

    def part(self, first: int, last: int, number: DeviceArray) -> "DocumentRows":
        """Some rows of documents that are not cut, with a state of their own and words that the caller sets.

        They have no response, and `number` (n_rows,) is what the random numbers of all rows depend on.
        """
        rows, some, width = self.without_response(), slice(first, last), self.shape.width
        base = self.base[first // self.shape.group : last // self.shape.group + 1]
        rows.n_rows, rows.n_places = last - first, int(base[-1] - base[0]) + WARP
        rows.n_long = int((self.length[some] > LONG).sum())
        topic, tokens, size = rows.lists()
        rows.docs = Documents(
            zeros(rows.n_places, np.int32), zeros(rows.n_places, np.uint16), put(base[:-1] - base[0]),
            self.docs.length[some], self.docs.whole[some], self.docs.first[some],
            put(np.arange(rows.n_rows, dtype=np.int32)), number[some], empty(rows.n_rows * width, np.float32),
            topic, tokens, size,
        )  # fmt: skip
        return rows

    def put(self, array: np.ndarray) -> DeviceArray:
        """An array with a line for each document, (n_docs, C), as rows on the device."""
        wide = np.zeros((self.n_rows, *array.shape[1:]), array.dtype)
        wide[self.row] = array
        return put(wide)

    def put_into(self, rows: DeviceArray, array: np.ndarray) -> None:
        """Copy an array with a line for each document into rows on the device."""
        wide = np.zeros(rows.shape, rows.dtype)
        wide[self.row] = array
        put_into(rows, wide)

    def get(self, rows: DeviceArray) -> np.ndarray:
        """The lines of the documents from rows on the device."""
        return get(rows)[self.row]

    def counts_of(self, other: "DocumentRows", n: DeviceArray) -> DeviceArray:
        """Counts of the same documents in other rows, as rows of these, flat."""
        if other.n_rows == self.n_rows and np.array_equal(other.row, self.row):
            return n
        return self.put(other.get(n.reshape(other.n_rows, -1))).reshape(-1)

    def uncut(self) -> "DocumentRows":
        """The same documents and z, each in one row."""
        if not self.n_cut:
            return self
        rows = DocumentRows(self.tokens(), self.shape, whole=True)
        rows.set_z(self.z())
        return rows

    def number(self, first_doc: int) -> None:
        """Let random numbers depend on a document's number in the corpus."""
        self.put_into(self.docs.number, np.arange(first_doc, first_doc + self.n_docs, dtype=np.uint64))

    def hash(self, key: np.uint64, number: DeviceArray) -> None:
        """Compute numbers (n_rows,) that depend on a document's words alone, for its random numbers."""
        flat = self.collect(self.docs.word)
        launch(kernels.content_numbers, self.n_rows, flat, self.start, self.docs.whole, key, number)

    def begin(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution."""
        launch(kernels.start_z, self.n_rows, self.docs, self.shape.group, self.shape.n_topics, key)
        self.count()

    def count(self) -> None:
        """Count the tokens of each topic in each document."""
        kernel = list_topics if self.shape.sparse else kernels.count_rows
        clear(self.docs.n)
        launch(kernel, self.n_rows, self.docs, self.shape.group, self.shape.width)
        if self.n_cut:
            self.join(no_response(), stream())

    def join(self, response: ResponseTables, where: object, summed: DeviceArray | None = None, begin: int = 0) -> None:
        """Let all parts of a document have its counts, which are added to `summed` from a place on."""
        leader, parts = self.cut
        summed = empty(0, np.float32) if summed is None else summed
        about = self.docs, self.shape.group, self.shape.width, leader, parts, response, begin, summed
        kernels.join_parts[len(leader), BLOCK, where](*about)

    def sweep(
        self, tables: TopicTables, response: ResponseTables, key: DeviceArray, n_sweeps: int = 1, burn_in: int = 1,
        summed: DeviceArray | None = None, apart: int = 0, tally: DeviceArray | None = None, exchange: int = 1,
    ) -> None:  # fmt: skip
        """Draw every z anew.

        The sampler is the sparse one if the tables are for it; `tally` counts its proposals and those accepted. Parts
        of documents exchange their counts after so many sweeps, which is 1 unless nothing is kept.

        The device waits for the longest document. So long ones that are not cut start first, beside the others, on
        multiprocessors of their own: their blocks take all registers, though most of their threads do nothing.
        """
        summed = empty(0, np.float32) if summed is None else summed
        known: tuple[DeviceArray, ...] = (self.docs, tables, response, key)
        more: tuple[DeviceArray, ...] = (apart, summed)
        if len(tables.smooth):
            kernel, alone = make_sparse_sweep(self.shape), self.shape.alone(SPARSE_REGISTERS)
            more = *more, zeros(2, np.int64) if tally is None else tally
        else:
            kernel, alone = make_sweep(self.shape), self.shape.alone(self.shape.registers)
        n_cut, last = self.n_cut // self.shape.group, self.n_rows // self.shape.group
        long = n_cut or min(-(-self.n_long // self.shape.group), last)  # where documents are cut, none is long

        def run(start: int, stop: int, threads: int, where: object, *sweeps: int) -> None:
            blocks = -(-(stop - start) * WARP // self.shape.block)
            kernel[blocks, threads, where](*known, *sweeps, *more, start, stop - start)

        with beside(self.side, long > 0):
            for i in range(0, n_sweeps if n_cut else 0, exchange):
                run(0, n_cut, self.shape.block, self.side, i, min(i + exchange, n_sweeps), n_sweeps)
                begin = (i - burn_in) * apart
                self.join(response, self.side, summed if i >= burn_in else None, begin)
            if long > n_cut:
                run(n_cut, long, alone, self.side, 0, n_sweeps, burn_in)
            if last > long:
                run(long, last, self.shape.block, stream(), 0, n_sweeps, burn_in)

    def tokens(self) -> Tokens:
        """The documents in the order of the corpus."""
        return Tokens(get(self.collect(self.docs.word)), self.doc_start)

    def z(self) -> np.ndarray:
        """The topic of every token, in the order of the corpus."""
        return get(self.collect(self.docs.z))

    def set_z(self, z: np.ndarray) -> None:
        """Set the topic of every token, in the order of the corpus."""
        self.interleave(z, self.docs.z)
        self.count()

    def interleave(self, flat: np.ndarray, places: DeviceArray) -> None:
        """Put what each token has, in the order of the corpus, into the places where warps read it."""
        launch(kernels.interleave, self.n_rows, put(flat), self.start, self.docs, self.shape.group, places)

    def collect(self, places: DeviceArray) -> DeviceArray:
        """What each token has, in the order of the corpus, from the places where warps read it."""
        flat = empty(int(self.doc_start[-1]), places.dtype)
        launch(kernels.collect, self.n_rows, places, self.start, self.docs, self.shape.group, flat)
        return flat


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
    launch(add_smooth, smooth.size * LANES, table, prior, inverse, alpha, smooth, blocks)


def count_new(
    tokens: Tokens, topics: DeviceTopics, n_sweeps: int, n_draws: int, key: np.uint64
) -> tuple[DocumentRows, DeviceArray]:
    """Rows of new documents, and their counts in the second half of the sweeps: summed, or each if n_draws is not 1."""
    rows = DocumentRows(tokens, make_shape(topics.n_topics, 0, quick=True))
    rows.hash(key, rows.docs.number)
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
        omega[:, docs] = get(found)[:, rows.row]
    return omega
