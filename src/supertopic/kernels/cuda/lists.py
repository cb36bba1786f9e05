"""Sums over documents on a GPU in which only the few topics of each document count: see `sampling.matrix_free`.

The lists of the documents' topics are sorted by topics once; then a sum over documents reads the numbers of one topic
after the other. It is a sum of whole numbers, in any order, so that the bits do not depend on it. Their unit follows
from the largest number that is added.
"""

import math
from typing import Any, NamedTuple

from numba import float64, int32, int64, uint64

from supertopic.kernels import draws
from supertopic.kernels.cuda.device import SIMULATED, SUMS, cuda, here
from supertopic.kernels.cuda.warp import LANES, all_lanes, largest_lane

derive, normal = here(draws.derive), here(draws.normal)

TOGETHER = 8  # threads that read a document's list
BITS = 60  # bits of a sum
SPAN = 4 if SIMULATED else 256  # numbers that a warp adds up
TEAM = 4 if SIMULATED else 512  # threads of a block that works on all topics
RANGE, MANY = (4, 3) if SIMULATED else (4096, 512)  # topics in a block's memory, and documents of a block


class Lists(NamedTuple):
    """What is not 0 of the documents' shares of topics: place i of document d is start[d] + i step."""

    start: Any  # (rows,) int64
    step: int
    size: Any  # (rows,) int32
    topic: Any  # uint16
    tokens: Any  # float32
    inverse: Any  # (rows,): 1 over the document's length


class ByTopic(NamedTuple):
    """The same tokens, those of topic k from start[k] to start[k + 1]."""

    start: Any  # (K + 1,) int64
    row: Any  # int32: the document
    tokens: Any  # float32


class Values(NamedTuple):
    """What each document adds to a sum of x_d, or of x_d**2, for m columns."""

    plain: Any  # (rows, m): for its covariates
    scaled: Any  # (rows, m): for its tokens in a topic, so over its length
    largest: Any  # (m,): the largest of the first ones, without its sign; 0 before


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


@cuda.jit(device=True)
def count_block(lists, low, count):
    """How many of a block's documents have topics low, low + 1 ...: count (RANGE,) is in the block's memory."""
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * MANY
    for k in range(t, RANGE, TEAM):
        count[k] = 0
    cuda.syncthreads()
    for i in range(t, (min(first + MANY, len(lists.size)) - first) * TOGETHER, TEAM):
        d = first + i // TOGETHER
        for m in range(i % TOGETHER, lists.size[d], TOGETHER):
            k = int64(lists.topic[lists.start[d] + m * lists.step]) - low
            if 0 <= k < RANGE:
                cuda.atomic.add(count, k, 1)
    cuda.syncthreads()


@cuda.jit
def count_topics(lists, counted):
    """How many documents have each topic; 0 before. A block of TEAM threads has MANY documents."""
    count = cuda.shared.array(RANGE, int32)
    for low in range(0, len(counted), RANGE):
        count_block(lists, low, count)
        for k in range(cuda.threadIdx.x, min(RANGE, len(counted) - low), TEAM):
            if count[k] > 0:
                cuda.atomic.add(counted, low + k, count[k])
        cuda.syncthreads()


@cuda.jit
def find_starts(counted, start, free):
    """Where the numbers of each topic start, twice; a block of TEAM threads."""
    t, n_topics = cuda.threadIdx.x, len(counted)
    sums = cuda.shared.array(TEAM, int64)
    size = (n_topics + TEAM - 1) // TEAM
    first, last = min(t * size, n_topics), min((t + 1) * size, n_topics)
    total = int64(0)
    for k in range(first, last):
        total += counted[k]
    sums[t] = total
    cuda.syncthreads()
    before = int64(0)
    for other in range(t):
        before += sums[other]
    for k in range(first, last):
        start[k] = free[k] = before
        before += counted[k]
    if t == TEAM - 1:
        start[n_topics] = before


@cuda.jit
def sort_lists(lists, free, by_topic):
    """Copy the lists to places of their topics, where free[k] is the next place of topic k; blocks as above."""
    count = cuda.shared.array(RANGE, int32)  # a line each: the simulator knows them by their lines
    place = cuda.shared.array(RANGE, int64)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * MANY
    for low in range(0, len(free), RANGE):
        count_block(lists, low, count)
        for k in range(t, min(RANGE, len(free) - low), TEAM):  # the block's places
            if count[k] > 0:
                place[k] = cuda.atomic.add(free, low + k, int64(count[k]))
            count[k] = 0
        cuda.syncthreads()
        for i in range(t, (min(first + MANY, len(lists.size)) - first) * TOGETHER, TEAM):
            d = first + i // TOGETHER
            for m in range(i % TOGETHER, lists.size[d], TOGETHER):
                at = lists.start[d] + m * lists.step
                k = int64(lists.topic[at]) - low
                if 0 <= k < RANGE:
                    to = place[k] + cuda.atomic.add(count, k, 1)
                    by_topic.row[to], by_topic.tokens[to] = d, lists.tokens[at]
        cuda.syncthreads()


@cuda.jit(device=True)
def set_value(values, d, c, value, scale):
    """Set a document's number; the lanes of a warp have one column."""
    values.plain[d, c], values.scaled[d, c] = value, value * scale
    largest = largest_lane(abs(value))
    if largest > values.largest[c] and cuda.threadIdx.x % LANES == 0:  # few are, so that few wait for each other
        cuda.atomic.max(values.largest, c, largest)


@cuda.jit
def weigh(array, inverse, squared, values):
    """The numbers of an array (rows, m)."""
    i = cuda.grid(1)
    if i < array.size:
        d, c = i % len(array), i // len(array)
        set_value(values, d, c, array[d, c], inverse[d] * inverse[d] if squared else inverse[d])


@cuda.jit
def weigh_products(lists, covariates, lam, columns, v, n_topics, values):
    """lam_dr x_d' v_r for some columns r."""
    i = cuda.grid(1)
    if i < values.plain.size:
        d, c = i % len(lam), i // len(lam)
        weight = lam[d, columns[c]]
        value = weight * predictor(lists, covariates, d, v, c, n_topics) if weight > 0.0 else 0.0
        set_value(values, d, c, value, lists.inverse[d])


@cuda.jit
def weigh_noise(lists, lam, number, key, values):
    """sqrt(lam_dr) e_dr with standard normals e."""
    i = cuda.grid(1)
    if i < lam.size:
        d, r = i % len(lam), i // len(lam)
        e = normal(derive(key[0], number[d]), r) if lam[d, r] > 0.0 else 0.0
        set_value(values, d, r, math.sqrt(lam[d, r]) * e, lists.inverse[d])


@cuda.jit(device=True)
def unit(largest, n_docs):
    """The power of two that so many numbers are multiplied by to become whole ones."""
    if largest == 0.0:
        return 0.0
    return 2.0 ** (BITS - math.ceil(math.log2(largest)) - math.ceil(math.log2(float(n_docs))))


@cuda.jit
def add_tokens(by_topic, values, squared, total):
    """Add values_d zbar_d of all documents, or the values times the squares of zbar, to total (K, m).

    A warp has SPAN numbers one after the other, mostly of one topic; its blocks have a column.
    """
    t, c, n_topics = cuda.threadIdx.x % LANES, cuda.blockIdx.y, len(total)
    first = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // LANES * SPAN
    last = min(first + SPAN, by_topic.start[n_topics])
    if first >= last:
        return
    low, high = 0, n_topics  # the topic of the first number
    while high - low > 1:
        middle = (low + high) // 2
        if by_topic.start[middle] <= first:
            low = middle
        else:
            high = middle
    one_topic, whole, value = by_topic.start[low + 1] >= last, unit(values.largest[c], len(values.plain)), int64(0)
    for place in range(first + t, last, LANES):
        while place >= by_topic.start[low + 1]:
            if value != 0:
                cuda.atomic.add(total, (low, c), value)
            low, value = low + 1, int64(0)
        tokens = float64(by_topic.tokens[place])
        if squared:
            tokens *= tokens
        value += int64(math.floor(tokens * values.scaled[by_topic.row[place], c] * whole + 0.5))
    if one_topic:
        value = all_lanes(value)
    if value != 0 and (t == 0 or not one_topic):
        cuda.atomic.add(total, (low, c), value)


@cuda.jit
def in_units(total, values, out):
    """These sums as numbers."""
    i = cuda.grid(1)
    if i < total.size:
        k, c = i // total.shape[1], i % total.shape[1]
        whole = unit(values.largest[c], len(values.plain))
        out[k, c] = total[k, c] / whole if whole > 0.0 else 0.0


@cuda.jit
def add_covariates(covariates, values, squared, out):
    """sum_d values_d x_d over the covariates, or their squares, in SUMS parts (SUMS, P, m)."""
    i = cuda.grid(1)
    P, C, n_rows = covariates.shape[1], values.plain.shape[1], len(values.plain)
    if i < out.size:
        part, p, c = i // (P * C), i // C % P, i % C
        size, value = (n_rows + SUMS - 1) // SUMS, 0.0
        for d in range(part * size, min((part + 1) * size, n_rows)):
            x = covariates[d, p]
            value += values.plain[d, c] * (x * x if squared else x)
        out[part, p, c] = value
