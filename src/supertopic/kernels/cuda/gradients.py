"""Conjugate gradients on a GPU: see `sampling.gradients`. A block has a column."""

from typing import Any, NamedTuple

from numba import float64

from supertopic.kernels.cuda.device import cuda
from supertopic.kernels.cuda.lists import TEAM, unit


class Gradients(NamedTuple):
    """The state of conjugate gradients for A_r x_r = right_r, (K + P, R); see `sampling.gradients`."""

    prior: Any  # A without its documents, a diagonal
    diagonal: Any  # of A
    x: Any
    rest: Any  # right - A x
    direction: Any
    product: Any  # A direction
    size: Any  # (R,): of the rest


@cuda.jit(device=True)
def add_team(sums, value):
    """The sum of the numbers of all threads of a block, always in one order; sums (TEAM,) are in the block's memory."""
    t, n = cuda.threadIdx.x, TEAM // 2
    cuda.syncthreads()
    sums[t] = value
    while n > 0:
        cuda.syncthreads()
        if t < n:
            sums[t] += sums[t + n]
        n //= 2
    cuda.syncthreads()
    return sums[0]


@cuda.jit
def multiply(total, values, beside, gradients):
    """product = A_r direction_r, (K + P, R), from the documents' sums of it; a block of TEAM threads has a column."""
    c, n_topics = cuda.blockIdx.x, len(total)
    whole = unit(values.largest[c], len(values.plain))
    for k in range(cuda.threadIdx.x, len(gradients.x), TEAM):
        product = gradients.prior[k, c] * gradients.direction[k, c]
        if k >= n_topics:
            for part in range(len(beside)):
                product += beside[part, k - n_topics, c]
        elif whole > 0.0:
            product += total[k, c] / whole
        gradients.product[k, c] = product


@cuda.jit
def begin(gradients):
    """The rest is the right-hand side before; x and the direction are where the search starts."""
    t, c = cuda.threadIdx.x, cuda.blockIdx.x
    sums, part = cuda.shared.array(TEAM, float64), 0.0
    for k in range(t, len(gradients.x), TEAM):
        rest = gradients.rest[k, c] - gradients.product[k, c]
        scaled = rest / gradients.diagonal[k, c]
        gradients.rest[k, c], gradients.direction[k, c] = rest, scaled
        part += rest * scaled
    size = add_team(sums, part)
    if t == 0:
        gradients.size[c] = size


@cuda.jit
def step_on(gradients, least):
    """One step of the columns whose rest is larger."""
    t, c = cuda.threadIdx.x, cuda.blockIdx.x
    size = gradients.size[c]
    if not size > least[0]:
        return
    sums, part = cuda.shared.array(TEAM, float64), 0.0
    for k in range(t, len(gradients.x), TEAM):
        part += gradients.direction[k, c] * gradients.product[k, c]
    step, part = size / add_team(sums, part), 0.0
    for k in range(t, len(gradients.x), TEAM):
        gradients.x[k, c] += step * gradients.direction[k, c]
        gradients.rest[k, c] -= step * gradients.product[k, c]
        part += gradients.rest[k, c] * gradients.rest[k, c] / gradients.diagonal[k, c]
    new = add_team(sums, part)
    for k in range(t, len(gradients.x), TEAM):
        scaled = gradients.rest[k, c] / gradients.diagonal[k, c]
        gradients.direction[k, c] = scaled + new / size * gradients.direction[k, c]
    if t == 0:
        gradients.size[c] = new
