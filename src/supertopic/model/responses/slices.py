"""Slice sampling of numbers whose density is known up to a constant."""

from collections.abc import Callable

import numpy as np

from supertopic.kernels.draws import make_key, uniforms

BATCH, BATCHES = 8, 64  # points of a density that are evaluated at a time; how often, at most


def slice_sample(
    log_density: Callable[[list[np.ndarray]], np.ndarray], x: np.ndarray, key: np.uint64, low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """One step of slice sampling (Neal, 2003) for each of some independent numbers, whatever their density is.

    A height below the density at x is drawn, then points of a bracket until one is above that height; a point that
    is not becomes the bracket's new end on its side of x. The bracket starts as the whole range. Which points come
    if none is accepted is known beforehand, so that the density is evaluated at several of them at once. x stays if
    there is no such point, as where the density is not a number.
    """
    found, chosen, height = np.zeros(len(x), bool), x, None
    for first in range(1, BATCHES * BATCH, BATCH):
        points = []
        for i in range(first, first + BATCH):
            new = low + (high - low) * uniforms(len(x), make_key(key, i))
            low, high = np.where(new < x, new, low), np.where(new >= x, new, high)
            points.append(new)
        if height is None:
            here, *values = log_density([x, *points])
            height = here + np.log(uniforms(len(x), make_key(key, 0)))
        else:
            values = list(log_density(points))
        for new, value in zip(points, values, strict=True):
            chosen, found = np.where(~found & (value >= height), new, chosen), found | (value >= height)
        if found.all():
            break
    return chosen
