"""How documents, topics and weights are laid out for the sweep on a GPU: rows, tables, and the lanes of a warp."""

from typing import Any, NamedTuple

import numpy as np

from supertopic.kernels.cuda.device import BLOCK, LINE, SIMULATED, WARP

LANE_TOPICS, MANY_COLUMNS = 20, 12  # topics that a lane has at most if the warp is wide enough; with many columns
QUICK = 8  # the same for new documents, whose time is that of the longest document
REGISTERS, MOST_REGISTERS = 128, 255  # registers of a thread; with more than the first number, fewer warps run at once
SPARSE_REGISTERS = 56  # the same for the sparse sampler
ALL_REGISTERS, MOST_THREADS = 2**16, 1024  # registers of a multiprocessor; largest number of threads of a block
SHARED = 40_000  # bytes of a block's own memory
SPARSE_FROM = 321  # topics: from here on a document has a warp, and the sparse sampler is the faster one
MOST_DENSE, MOST_TOPICS = 1024, 2**14  # topics of the dense sampler, and of the sparse one


class Documents(NamedTuple):
    """Documents on the device: a row each, longest first, as many rows as fill whole warps."""

    word: Any  # int32: token i of row d is at base[d // G] + i G + d % G, where G rows share a warp
    z: Any  # uint16
    base: Any  # (rows / G,) int64
    length: Any  # (rows,) int32
    whole: Any  # (rows,) int32: the tokens of the document, in its first row; a long document has some rows
    first: Any  # (rows,) int32: which of the document's tokens is the first one here
    leader: Any  # (rows,) int32: the first row of the document, which has what is known of it
    number: Any  # (rows,) uint64: what its random numbers are made from
    n: Any  # (rows, width) float32, flat: the document's tokens of each topic
    topic: Any  # uint16: the topics that a document has, in places of its tokens, as the sparse sampler leaves them
    tokens: Any  # float32: their tokens
    size: Any  # (rows,) int32: how many they are; all three are empty where there is no sparse sampler


class TopicTables(NamedTuple):
    """The topics as a sweep reads them, and the counts that it updates; (V, width), flat.

    The probability of a word in a topic is (table + beta) inverse, and in the token's own topic (table - taken + beta)
    inverse_own: the table holds counts, of which the token itself is one, or phi.
    """

    table: Any  # float32
    prior: Any  # (2,) float32: beta, and what is taken, 1 or 0
    inverse: Any  # (width,) float32
    inverse_own: Any  # (width,) float32
    alpha: Any  # (width,) float32, 0 where there is no topic
    count: Any  # int32; empty where nothing is counted
    smooth: Any  # (V,) float32: sum_k alpha_k phi_wk; empty where the sampler is dense
    blocks: Any  # (V, width / LINE) float32, flat: the same over each LINE topics


class ResponseTables(NamedTuple):
    """The response's part of the conditional, and omega, which the sweep computes."""

    exact: Any  # (R, K + P) float64: eta
    rows: Any  # (width, columns) float32, flat: eta, a row a topic
    lanes: Any  # float32, flat: eta as the lanes read it, see `Shape.arrange`
    kappa: Any  # (rows, R)
    lam: Any  # (rows, R)
    offset: Any  # (rows, R)
    covariates: Any  # (rows, P)
    omega: Any  # (rows, R)


class Shape(NamedTuple):
    """How K topics and R columns are dealt out to the lanes of a warp."""

    n_topics: int
    n_columns: int
    n_lanes: int  # lanes of a document: T
    block: int  # threads
    sparse: bool = False  # whether documents have lists of their topics

    @property
    def fours(self) -> int:
        """Topics of a lane, in fours."""
        return -(-self.n_topics // (4 * self.n_lanes))

    @property
    def width(self) -> int:
        """Numbers in a row of a table of topics."""
        return row_width(self.n_topics)

    @property
    def columns(self) -> int:
        """Columns, filled up so that lanes have equally many."""
        step = max(4, self.n_lanes)
        return -(-self.n_columns // step) * step

    @property
    def registers(self) -> int:
        """Registers that a thread of the dense sampler may use."""
        return REGISTERS if 4 * self.fours <= LANE_TOPICS else MOST_REGISTERS

    def alone(self, registers: int) -> int:
        """Threads of a block that has a multiprocessor for itself, since it has all registers."""
        return self.block if SIMULATED else min(ALL_REGISTERS // registers // WARP * WARP, MOST_THREADS)

    @property
    def group(self) -> int:
        """Documents of a warp."""
        return WARP // self.n_lanes

    def arrange(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """eta (R, K) as rows of topics, (width, columns), and in the order in which lanes load it, both flat.

        The latter holds, for every four columns and every topic of a lane, the lanes' topics side by side; a single
        column is a row of topics as it is.
        """
        rows = np.zeros((max(self.width, 4 * self.fours * self.n_lanes), self.columns), np.float32)
        rows[: self.n_topics, : self.n_columns] = eta.T
        if self.n_columns <= 1:
            return rows.reshape(-1), rows[:, : self.n_columns].reshape(-1)
        four, lane = np.arange(self.fours)[:, None, None], np.arange(self.n_lanes)
        topic = (four * self.n_lanes + lane) * 4 + np.arange(4)[:, None]  # (fours, 4, T)
        lanes = rows[topic.reshape(-1)].reshape(-1, self.columns // 4, 4).swapaxes(0, 1)
        return rows.reshape(-1), np.ascontiguousarray(lanes).reshape(-1)


def row_width(n_topics: int) -> int:
    """Numbers in a row of K topics: whole cache lines, and enough for any number of lanes."""
    step = LINE if n_topics <= 4 * LINE else 2 * LINE if n_topics <= 8 * LINE else 4 * LINE
    return -(-n_topics // step) * step


def make_shape(n_topics: int, n_columns: int, quick: bool = False) -> Shape:
    """The shape for a model, from the model alone, so that every GPU gives the same draws."""
    topics = QUICK if quick else LANE_TOPICS if n_columns <= 1 else MANY_COLUMNS
    lanes, most = 1, 1 if SIMULATED else row_width(n_topics) // 4 & -(row_width(n_topics) // 4)
    most = min(most, WARP)  # a row has whole fours for that many lanes
    while lanes < most and -(-n_topics // (4 * lanes)) * 4 > topics:
        lanes *= 2
    shape = Shape(n_topics, n_columns, lanes, BLOCK)
    if n_topics >= SPARSE_FROM:
        shape = shape._replace(n_lanes=1 if SIMULATED else WARP, sparse=True)
    while n_columns > 1 and 8 * shape.columns * shape.block // shape.n_lanes > SHARED:
        if shape.block > WARP:
            shape = shape._replace(block=shape.block // 2)
        elif shape.n_lanes < most:
            shape = shape._replace(n_lanes=2 * shape.n_lanes)
        else:
            raise ValueError(f"{n_columns:,} columns do not fit a GPU; device='cpu' takes them.")
    return shape
