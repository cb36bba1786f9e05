"""Sums over documents on a GPU in which only the few topics of each document count: see `sampling.matrix_free`.

Sums over documents are added as whole numbers by atomic additions, in any order, so that the bits do not depend on it.
Their unit follows from the largest number that is added.
"""

import math
from typing import Any, NamedTuple

from numba import int64, uint64

from supertopic.kernels import draws
from supertopic.kernels.cuda.device import SUMS, cuda, here

derive, normal = here(draws.derive), here(draws.normal)

TOGETHER = 8  # threads that read a document's list
BITS = 60  # bits of a sum


class Lists(NamedTuple):
    """What is not 0 of the documents' shares of topics: place i of document d is start[d] + i step."""

    start: Any  # (rows,) int64
    step: int
    size: Any  # (rows,) int32
    topic: Any  # uint16
    tokens: Any  # float32
    inverse: Any  # (rows,): 1 over the document's length


@cuda.jit
def count_listed(n, width, n_topics, size):
    """How many topics each row of counts has."""
    d = cuda.grid(1)
    if d < len(size):
        size[d] = 0
        for k in range(n_topics):
            if n[uint64(d) * uint64(width) + uint64(k)] != 0.0:
                size[d] += 1


@cuda.jit
def list_counted(n, width, n_topics, lists):
    """Which they are, and their counts."""
    d = cuda.grid(1)
    if d < len(lists.size):
        place = lists.start[d]
        for k in range(n_topics):
            count = n[uint64(d) * uint64(width) + uint64(k)]
            if count != 0.0:
                lists.topic[place], lists.tokens[place] = k, count
                place += lists.step


@cuda.jit(device=True)
def predictor(lists, covariates, d, v, c, n_topics):
    """x_d' v_c: zbar, then covariates."""
    value, place = 0.0, lists.start[d]
    for _ in range(lists.size[d]):
        value += lists.tokens[place] * v[lists.topic[place], c]
        place += lists.step
    value *= lists.inverse[d]
    for p in range(covariates.shape[1]):
        value += covariates[d, p] * v[n_topics + p, c]
    return value


@cuda.jit
def list_omegas(lists, covariates, offset, eta, n_topics, omega):
    """omega of every document, given eta (K + P, R)."""
    i = cuda.grid(1)
    if i < omega.size:
        d, r = i // omega.shape[1], i % omega.shape[1]
        omega[d, r] = predictor(lists, covariates, d, eta, r, n_topics) + offset[d, r]


@cuda.jit
def weigh_products(lists, covariates, lam, columns, v, n_topics, values):
    """lam_dr x_d' v_r for some columns r."""
    i = cuda.grid(1)
    if i < values.size:
        d, c = i // values.shape[1], i % values.shape[1]
        weight = lam[d, columns[c]]
        values[d, c] = weight * predictor(lists, covariates, d, v, c, n_topics) if weight > 0.0 else 0.0


@cuda.jit
def weigh_noise(lam, number, key, values):
    """sqrt(lam_dr) e_dr with standard normals e."""
    i = cuda.grid(1)
    if i < values.size:
        d, r = i // values.shape[1], i % values.shape[1]
        e = normal(derive(key[0], number[d]), r) if lam[d, r] > 0.0 else 0.0
        values[d, r] = math.sqrt(lam[d, r]) * e


@cuda.jit
def find_largest(values, largest):
    """The largest number of each column, without its sign; 0 before."""
    i = cuda.grid(1)
    if i < values.size:
        d, c = i // values.shape[1], i % values.shape[1]
        value = abs(values[d, c])
        if value > largest[c]:  # few are, so that few wait for each other
            cuda.atomic.max(largest, c, value)


@cuda.jit(device=True)
def unit(largest, n_docs):
    """The power of two that so many numbers are multiplied by to become whole ones."""
    if largest == 0.0:
        return 0.0
    return 2.0 ** (BITS - math.ceil(math.log2(largest)) - math.ceil(math.log2(float(n_docs))))


@cuda.jit
def add_shares(lists, values, largest, squared, total):
    """Add values_d zbar_d of all documents, or the values times the squares of zbar, to total (K, m)."""
    i = cuda.grid(1)
    d, first = i // TOGETHER, i % TOGETHER
    if d < len(values):
        for c in range(values.shape[1]):
            weight = values[d, c] * unit(largest[c], len(values))
            if weight != 0.0:
                for m in range(first, lists.size[d], TOGETHER):
                    place = lists.start[d] + m * lists.step
                    share = lists.tokens[place] * lists.inverse[d]
                    if squared:
                        share *= share
                    cuda.atomic.add(total, (int64(lists.topic[place]), c), int64(math.floor(share * weight + 0.5)))


@cuda.jit
def in_units(total, largest, n_docs, out):
    """These sums as numbers."""
    i = cuda.grid(1)
    if i < total.size:
        k, c = i // total.shape[1], i % total.shape[1]
        whole = unit(largest[c], n_docs)
        out[k, c] = total[k, c] / whole if whole > 0.0 else 0.0


@cuda.jit
def add_covariates(covariates, values, squared, out):
    """sum_d values_d x_d over the covariates, or their squares, in SUMS parts (SUMS, P, m)."""
    i = cuda.grid(1)
    P, C = covariates.shape[1], values.shape[1]
    if i < out.size:
        part, p, c = i // (P * C), i // C % P, i % C
        size, value = (len(values) + SUMS - 1) // SUMS, 0.0
        for d in range(part * size, min((part + 1) * size, len(values))):
            x = covariates[d, p]
            value += values[d, c] * (x * x if squared else x)
        out[part, p, c] = value
