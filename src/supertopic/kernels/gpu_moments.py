"""The sums that a draw of eta needs, on a graphics card: sum_d lam_dr x_d x_d' and sum_d kappa_dr x_d.

x is a document's shares of topics, then its covariates. A block has a square of pairs of features and some documents,
which it adds one after the other, so that the sums are always the same; so many blocks do the same for other documents.
"""

import functools

from numba import float64, uint64

from supertopic.kernels.gpu import SIMULATED, cuda

SIDE = 4 if SIMULATED else 32  # features of a square
OWN = 4  # a thread has so many times so many pairs
COLUMNS = 2  # that a block has at most
PAIRS = OWN * OWN
THREADS = (SIDE // OWN) ** 2
DOCS = 4 if SIMULATED else 32  # that a block has at a time
CHUNKS = 4 if SIMULATED else 32  # that are added as one
FEATURES = 2 * SIDE * DOCS  # numbers: those of the square's rows, then those of its columns


@functools.cache
def make_squares(n_columns: int):
    """The kernel for blocks that have so many columns."""
    TOTALS, SCALES = PAIRS * n_columns, DOCS * n_columns

    @cuda.jit
    def add_squares(n, stride, n_topics, inverse, covariates, lam, row, column, chunk, partial):
        """partial (chunks, R, squares, SIDE, SIDE); square s has the features from row[s] and from column[s] on."""
        x = cuda.shared.array(FEATURES, float64)
        scale = cuda.shared.array(SCALES, float64)
        total = cuda.local.array(TOTALS, float64)
        left = cuda.local.array(OWN, float64)
        right = cuda.local.array(OWN, float64)
        tid, square, first_column = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.z * n_columns
        width = n_topics + covariates.shape[1]
        a, b = uint64(tid // (SIDE // OWN) * OWN), uint64(tid % (SIDE // OWN) * OWN + SIDE)
        for i in range(TOTALS):
            total[i] = 0.0
        first = cuda.blockIdx.y * chunk
        last = min(first + chunk, lam.shape[0])
        while first < last:
            for place in range(tid, 2 * SIDE, THREADS):  # one for each thread
                feature = row[square] + place if place < SIDE else column[square] + place - SIDE
                if feature < n_topics:  # no branch inside: many loads at once
                    for i in range(DOCS):
                        d = min(first + i, last - 1)  # whose scale is 0, if there are no more
                        x[uint64(i * 2 * SIDE + place)] = n[uint64(d * stride + feature)] * inverse[uint64(d)]
                else:
                    for i in range(DOCS):
                        d = min(first + i, last - 1)
                        beside = feature < width
                        x[uint64(i * 2 * SIDE + place)] = covariates[d, feature - n_topics] if beside else 0.0
            for i in range(tid, SCALES, THREADS):
                d, r = first + i // n_columns, first_column + i % n_columns
                scale[i] = lam[d, r] if d < last and r < lam.shape[1] else 0.0
            cuda.syncthreads()
            for d in range(DOCS):
                to_row, to_column = uint64(d * 2 * SIDE) + a, uint64(d * 2 * SIDE) + b
                for i in range(OWN):
                    left[i], right[i] = x[to_row + uint64(i)], x[to_column + uint64(i)]
                for c in range(n_columns):
                    factor = scale[uint64(d * n_columns + c)]
                    for i in range(OWN):
                        scaled = left[i] * factor
                        for j in range(OWN):
                            total[c * PAIRS + i * OWN + j] += scaled * right[j]
            cuda.syncthreads()
            first += DOCS
        for c in range(n_columns):
            if first_column + c < lam.shape[1]:
                for i in range(PAIRS):
                    at = int(a) + i // OWN, int(b) - SIDE + i % OWN
                    partial[cuda.blockIdx.y, first_column + c, square, at[0], at[1]] = total[c * PAIRS + i]

    return add_squares


@cuda.jit
def add_shifts(n, stride, n_topics, inverse, covariates, kappa, chunk, partial):
    """partial (chunks, R, K + P)."""
    i = cuda.grid(1)
    n_columns, width = partial.shape[1], partial.shape[2]
    if i < partial.size:
        part, r, feature = i // (n_columns * width), i // width % n_columns, i % width
        total = 0.0
        for d in range(part * chunk, min((part + 1) * chunk, kappa.shape[0])):
            value = n[d * stride + feature] * inverse[d] if feature < n_topics else covariates[d, feature - n_topics]
            total += value * kappa[d, r]
        partial[part, r, feature] = total


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
