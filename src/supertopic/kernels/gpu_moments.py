"""The sums that a draw of eta needs, on a graphics card: sum_d lam_dr x_d x_d' and sum_d kappa_dr x_d.

x is a document's shares of topics, then its covariates. Pair p of the packed triangle is (row[p], column[p]).
"""

import functools
import math

from numba import float64, int32, int64

from supertopic.kernels.gpu import BLOCK, SIMULATED, SUMS, cuda

SPARSE_FROM = 160  # topics and covariates; from here on pairs that a document does not have are not worth a look
MOST_COLUMNS = 10  # that a thread adds at a time
NUMBERS = 4096  # of x that a block has at a time
SIDE = 2 if SIMULATED else 16  # a block looks at so many features beside as many as are left
BITS = 2.0**61  # whole numbers, which may be added in any order, that a sum has room for


@functools.cache
def make_dense(width: int, COLUMNS: int):
    """A thread has a pair and some columns; a block some documents, one after the other. partial (chunks, R, pairs)."""
    DOCS = max(1, min(16, NUMBERS // width))
    SIZE, SCALES = DOCS * width, DOCS * COLUMNS

    @cuda.jit
    def dense(n, stride, n_topics, inverse, covariates, lam, kappa, row, column, chunk, partial):
        x = cuda.shared.array(SIZE, float64)
        of_lam = cuda.shared.array(SCALES, float64)
        of_kappa = cuda.shared.array(SCALES, float64)
        total = cuda.local.array(COLUMNS, float64)
        tid = cuda.threadIdx.x
        p = cuda.blockIdx.x * BLOCK + tid
        n_pairs, n_columns = len(row), lam.shape[1]
        first_column = cuda.blockIdx.z * COLUMNS
        j = k = 0
        squared = p < n_pairs
        if squared:
            j, k = row[p], column[p]
        elif p < n_pairs + width:
            j = p - n_pairs
        for c in range(COLUMNS):
            total[c] = 0.0
        first = cuda.blockIdx.y * chunk
        last = min(first + chunk, lam.shape[0])
        while first < last:
            for i in range(tid, SIZE, BLOCK):
                d, feature, value = first + i // width, i % width, 0.0
                if d < last:
                    if feature < n_topics:
                        value = n[d * stride + feature] * inverse[d]
                    else:
                        value = covariates[d, feature - n_topics]
                x[i] = value
            for i in range(tid, SCALES, BLOCK):
                d, r = first + i // COLUMNS, first_column + i % COLUMNS
                known = d < last and r < n_columns
                of_lam[i] = lam[d, r] if known else 0.0
                of_kappa[i] = kappa[d, r] if known else 0.0
            cuda.syncthreads()
            for d in range(DOCS):
                if squared:
                    product = x[d * width + j] * x[d * width + k]
                    for c in range(COLUMNS):
                        total[c] += product * of_lam[d * COLUMNS + c]
                else:
                    for c in range(COLUMNS):
                        total[c] += x[d * width + j] * of_kappa[d * COLUMNS + c]
            cuda.syncthreads()
            first += DOCS
        if p < n_pairs + width:
            for c in range(COLUMNS):
                if first_column + c < n_columns:
                    partial[cuda.blockIdx.y, first_column + c, p] = total[c]

    return dense


@cuda.jit
def add_chunks(partial, out):
    """The sum of all chunks, in their order: (pairs and shifts, R)."""
    i = cuda.grid(1)
    n_pairs = partial.shape[2]
    if i < n_pairs * partial.shape[1]:
        r, p = i // n_pairs, i % n_pairs
        total = 0.0
        for chunk in range(len(partial)):
            total += partial[chunk, r, p]
        out[p, r] = total


@cuda.jit
def sizes(lam, kappa, out):
    """lam, then the size of kappa, of every document."""
    i = cuda.grid(1)
    n_columns = lam.shape[1]
    if i < lam.size:
        d, r = i // n_columns, i % n_columns
        out[d, r], out[d, n_columns + r] = lam[d, r], abs(kappa[d, r])


@cuda.jit
def find_units(partial, most, unit):
    """How large a 1 is in whole-number sums that cannot overflow; `most` is the largest size of a feature, or 1."""
    i = cuda.grid(1)
    if i < len(unit):
        total = 1e-300
        for part in range(SUMS):
            total += partial[part, i]
        unit[i] = total * (most * most if 2 * i < len(unit) else most) / BITS


@functools.cache
def make_sparse(width: int):
    """A block has a document at a time, and looks at the pairs that the document has."""

    @cuda.jit
    def sparse(n, stride, n_topics, inverse, covariates, lam, kappa, unit, n_pairs, out):
        """Add to whole numbers out (pairs and shifts, R): any order gives the same."""
        seen = cuda.shared.array(width, int32)
        x = cuda.shared.array(width, float64)
        size = cuda.shared.array(1, int32)
        tid, n_columns = cuda.threadIdx.x, lam.shape[1]
        for d in range(cuda.blockIdx.x, lam.shape[0], cuda.gridDim.x):
            if tid == 0:
                size[0] = 0
            cuda.syncthreads()
            for feature in range(tid, width, BLOCK):
                value = 0.0
                if feature < n_topics:
                    value = n[d * stride + feature] * inverse[d]
                else:
                    value = covariates[d, feature - n_topics]
                if value != 0.0:
                    place = cuda.atomic.add(size, 0, 1)
                    seen[place], x[place] = feature, value
            cuda.syncthreads()
            n_seen = size[0]
            for a in range(tid // SIDE, n_seen, BLOCK // SIDE):
                for b in range(tid % SIDE, n_seen, SIDE):
                    if seen[b] <= seen[a]:
                        place, product = seen[a] * (seen[a] + 1) // 2 + seen[b], x[a] * x[b]
                        for r in range(n_columns):
                            cuda.atomic.add(out, (place, r), int64(math.floor(product * lam[d, r] / unit[r] + 0.5)))
            for a in range(tid, n_seen, BLOCK):
                for r in range(n_columns):
                    whole = int64(math.floor(x[a] * kappa[d, r] / unit[n_columns + r] + 0.5))
                    cuda.atomic.add(out, (n_pairs + seen[a], r), whole)
            cuda.syncthreads()

    return sparse
