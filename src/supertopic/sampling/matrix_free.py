"""Draws of very many weights without a matrix of all their pairs.

Given z and lam, eta_r is normal with precision A_r = prior + sum_d lam_dr x_d x_d' and mean A_r^-1 b_r. With a noise e
that is N(0, A_r), the solution of A_r eta = b_r + e is a draw (Papandreou and Yuille, 2010). The noise is a sum over
documents, and conjugate gradients need A_r only as products with vectors, which are sums over documents, too. What is
known of the weights beside their documents is independent for each weight: a diagonal.
"""

import numpy as np

from supertopic.kernels.draws import make_key, normals
from supertopic.model.groups import Variance
from supertopic.model.state import Statistics
from supertopic.sampling.engine import Engine

PROBES = 20  # draws that variances are estimated from
VARIANCES = 1 << 42  # a path of random numbers that no training iteration takes


def draw(
    engine: Engine, statistics: Statistics, known: Statistics | None, nu2: Variance, key: np.uint64,
    last: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """eta_r ~ N(A_r^-1 b_r, A_r^-1) for all columns: a draw, (R, K + P).

    `statistics` are those of the engine's documents, and `known` are others. The last draw is near to this one.
    """
    if not statistics.shift.size:  # there is no response
        return statistics.shift.T
    shift, prior = statistics.shift, prior_precision(known, nu2, statistics.shift.shape)
    if known is not None:
        shift = shift + known.shift
    near = None if last is None else last.T
    return solve(engine, statistics, prior, shift + draw_noise(engine, prior, key), near).T


def draw_noise(engine: Engine, prior: np.ndarray, key: np.uint64) -> np.ndarray:
    """N(0, A_r) for every column, (K + P, R)."""
    return np.sqrt(prior) * normals(prior.T.shape, make_key(key, 0)).T + engine.noise(make_key(key, 1))


def mode(engine: Engine, statistics: Statistics, known: Statistics, nu2: Variance) -> np.ndarray:
    """The mean A_r^-1 b_r of every column, (R, K + P)."""
    prior = prior_precision(known, nu2, statistics.shift.shape)
    return solve(engine, statistics, prior, statistics.shift + known.shift).T


def prior_precision(known: Statistics | None, nu2: Variance, shape: tuple[int, ...]) -> np.ndarray:
    """The precision of every weight without the engine's documents, (K + P, R); nu2 is a number, or (R, K + P)."""
    precision = np.broadcast_to(1.0 / np.asarray(nu2).T, shape)
    return precision if known is None else precision + known.precision


def solve(
    engine: Engine, statistics: Statistics, prior: np.ndarray, right: np.ndarray, near: np.ndarray | None = None
) -> np.ndarray:
    """The solution of A_r x = right_r for every column r, (K + P, R), looked for from `near` on."""
    return engine.solve(prior + statistics.precision, prior, right, near)


def independent(
    engine: Engine, statistics: Statistics, known: Statistics, nu2: Variance, eta: np.ndarray
) -> Statistics:
    """What later batches need of the weights: independent normals around eta (R, K + P), with their own variances.

    These are the diagonal of A^-1. A draw y around 0 is the solution of A y = e, so that the mean of y_k given all
    others is y_k - e_k / A_kk; its variance and 1 / A_kk sum to that of y_k, which takes few draws to know.
    """
    prior = prior_precision(known, nu2, statistics.shift.shape)
    diagonal = prior + statistics.precision
    variance = 1.0 / diagonal
    for i in range(PROBES):
        noise = draw_noise(engine, prior, make_key(engine.plan.seed, i, VARIANCES))
        variance += (solve(engine, statistics, prior, noise) - noise / diagonal) ** 2 / PROBES
    usual = prior_precision(None, nu2, prior.shape)
    precision = np.maximum(1.0 / variance - usual, 0.0)
    return Statistics(precision, eta.T * (precision + usual))


def draw_independent(known: Statistics, nu2: Variance, key: np.uint64) -> np.ndarray:
    """A draw of weights that no document of this batch says anything about, (R, K + P)."""
    precision = prior_precision(known, nu2, known.shift.shape)
    return (known.shift / precision).T + normals(precision.T.shape, key) / np.sqrt(precision).T


def log_prior(known: Statistics, nu2: Variance, eta: np.ndarray) -> np.ndarray:
    """The log density of each row of eta (R, K + P) under what is known beside the documents, (R,)."""
    precision = prior_precision(known, nu2, known.shift.shape)
    away = eta.T - known.shift / precision
    return 0.5 * (np.log(precision / (2.0 * np.pi)) - precision * away**2).sum(axis=0)
