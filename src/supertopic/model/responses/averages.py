"""Means, quantiles and intervals of draws."""

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv

LEAST_SHARE = 1e-8


def average(arrays: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """The mean, added one by one: np.mean adds in an order that depends on the number of documents."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total = total + array
    return total / len(arrays)


def share_quantile(q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
    """Quantiles of the beta distribution with this mean, as if from n_docs documents."""
    return betaincinv(n_docs * mean, n_docs * (1.0 - mean), q).clip(LEAST_SHARE, 1.0 - LEAST_SHARE)


def draw_interval(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The central interval of some draws, which are along the first axis."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}.")
    if len(draws) < 2:
        raise ValueError("An interval needs at least two draws; fit with n_draws > 1.")
    # Weibull's plotting positions: of n independent draws, the interval holds one more with probability `level`
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return lower, upper
