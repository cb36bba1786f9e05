"""The sums that a draw of eta needs, on a GPU: sum_d lam_dr x_d x_d' and sum_d kappa_dr x_d.

x is a document's shares of topics, then its covariates. A block has a square of pairs of features and some documents,
which it adds one after the other, so that the sums are always the same; so many blocks do the same for other documents.
"""

import functools
from typing import NamedTuple

from numba import float64, uint64

from supertopic.kernels.cuda.device import SIMULATED, WARP, cuda, jit_within

ACROSS = 2 if SIMULATED else 8  # threads along a side of a square
OWN = 2 if SIMULATED else 5  # a thread has at most so many times so many pairs: more need too many registers
COLUMNS, COLUMNS_OF_ONE = 2, 4  # largest number of columns of a block, and where one square has all features
REGISTERS = {1: 128, 2: 200, 3: 255, 4: 255}  # of a thread, by columns; with more, fewer blocks run at once
THREADS = ACROSS**2
WARPS = THREADS // WARP
DOCS = 2 if SIMULATED else 32  # documents that a block has at a time
CHUNKS = 2 if SIMULATED else 32  # chunks that are added as one


class Squares(NamedTuple):
    """How the pairs of some features are shared out."""

    n_sides: int
    own: int  # features of a thread, along a side
    n_columns: int  # columns of a block

    @property
    def side(self) -> int:
        return self.own * ACROSS

    @property
    def one(self) -> bool:
        """Whether one square has all features: then a thread leaves out pairs that another one has."""
        return self.n_sides == 1


def make_squares(width: int, n_columns: int) -> Squares:
    """As few squares as there can be, and as little beyond the last feature."""
    n_sides = -(-width // (OWN * ACROSS))
    most = COLUMNS_OF_ONE if n_sides == 1 else COLUMNS
    return Squares(n_sides, -(-width // (n_sides * ACROSS)), min(n_columns, most))


@functools.cache
def make_adder(squares: Squares):
    """The kernel for such squares."""
    OWN, C, SIDE = squares.own, squares.n_columns, squares.side
    PAIRS, ONE = OWN * OWN, squares.one
    SIDES = 1 if ONE else 2  # of which a block has the features
    TOTALS, SHIFTS, SCALES, FEATURES = C * PAIRS, C * OWN, C * DOCS, SIDES * SIDE * DOCS

    @jit_within(REGISTERS[C])
    def add_squares(n, stride, n_topics, inverse, covariates, lam, kappa, row, column, chunk, partial, shifts):
        """partial (chunks, R, squares, SIDE, SIDE); square s has the features from row[s] and from column[s] on.

        A square on the diagonal adds its features' shifts, too: (chunks, R, features). A chunk, and so all documents,
        are some times DOCS.
        """
        x = cuda.shared.array(FEATURES, float64)  # those of the square's rows, then those of its columns
        scale = cuda.shared.array(SCALES, float64)  # a line each: the simulator knows them by their lines
        linear = cuda.shared.array(SCALES, float64)
        total, shift = cuda.local.array(TOTALS, float64), cuda.local.array(SHIFTS, float64)
        left, right = cuda.local.array(OWN, float64), cuda.local.array(OWN, float64)
        tid, square, first_column = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.z * C
        warp = tid // WARP
        width, diagonal = n_topics + covariates.shape[1], ONE or row[square] == column[square]
        # features of neighbouring threads are neighbours: all of a warp are read at once
        a, b = tid // ACROSS, tid % ACROSS
        to_left, to_right = uint64(a), uint64(b if diagonal else SIDE + b)
        for i in range(TOTALS):
            total[i] = 0.0
        for i in range(SHIFTS):
            shift[i] = 0.0
        first = cuda.blockIdx.y * chunk
        last = min(first + chunk, lam.shape[0])
        while first < last:
            for place in range(tid % WARP, SIDE if diagonal else 2 * SIDE, WARP):
                feature = row[square] + place if place < SIDE else column[square] + place - SIDE
                d, to = uint64(first + warp), uint64(warp * SIDES * SIDE + place)
                if feature < n_topics:  # no branch inside: many loads at once
                    at = d * uint64(stride) + uint64(feature)
                    for i in range(DOCS // WARPS):
                        x[to + uint64(SIDES * SIDE * WARPS * i)] = n[at] * inverse[d + uint64(WARPS * i)]
                        at += uint64(WARPS * stride)
                else:
                    for i in range(DOCS // WARPS):
                        beside = feature < width
                        value = covariates[d + uint64(WARPS * i), feature - n_topics] if beside else 0.0
                        x[to + uint64(SIDES * SIDE * WARPS * i)] = value
            for i in range(tid, SCALES, THREADS):
                d, r = first + i // C, first_column + i % C
                scale[i] = lam[d, r] if r < lam.shape[1] else 0.0
                linear[i] = kappa[d, r] if r < lam.shape[1] else 0.0
            cuda.syncthreads()
            for d in range(DOCS):
                here = uint64(d * SIDES * SIDE)
                for i in range(OWN):
                    left[i] = x[here + to_left + uint64(i * ACROSS)]
                    right[i] = x[here + to_right + uint64(i * ACROSS)]
                for c in range(C):
                    factor = scale[uint64(d * C + c)]
                    for p in range(PAIRS):  # in one square, the pairs with i < j are those of another thread
                        i, j = p // OWN, p % OWN
                        if not ONE or j <= i:
                            total[c * PAIRS + p] += left[i] * factor * right[j]
                    if diagonal and b == 0:
                        for i in range(OWN):
                            shift[c * OWN + i] += linear[uint64(d * C + c)] * left[i]
            cuda.syncthreads()
            first += DOCS
        for c in range(C):
            r = first_column + c
            if r < lam.shape[1]:
                for i in range(PAIRS):
                    at = a + i // OWN * ACROSS, b + i % OWN * ACROSS
                    partial[cuda.blockIdx.y, r, square, at[0], at[1]] = total[c * PAIRS + i]
                if diagonal and b == 0:
                    for i in range(OWN):
                        shifts[cuda.blockIdx.y, r, row[square] + a + i * ACROSS] = shift[c * OWN + i]

    return add_squares


@cuda.jit
def add_chunks(partial, out):
    """The sums of each CHUNKS lines of partial (chunks, n), in their order, as out (fewer, n)."""
    i = cuda.grid(1)
    n = partial.shape[1]
    if i < out.size:
        group, place, total = i // n, i % n, 0.0
        for chunk in range(group * CHUNKS, min((group + 1) * CHUNKS, len(partial))):
            total += partial[uint64(chunk), uint64(place)]
        out[group, place] = total
