"""The formulas of the responses: how lam is drawn, what kappa is, and the log density of y.

The scalar functions serve the kernels of the CPU, below, and those of the GPU. `kind` is the response and `own` its own
parameter. kappa is kappa_constant + kappa_slope lam. `log_own` is the logarithm of `own` for counts: NumPy takes it,
once for all documents, since the last bit of Numba's logarithm may differ.
"""

import math

import numpy as np

from supertopic.kernels.compiled import kernel, part
from supertopic.kernels.draws import derive, inverse_gaussian, polya_gamma

LOGISTIC, HINGE, GAUSSIAN, COUNTS = range(4)  # the own parameter: none, the margin, sigma2, r


@part
def draw_lam(kind, c, own, log_own, y, weight, omega, key):
    """Draw lam given omega."""
    scale, tilt = c * weight, omega
    if kind == GAUSSIAN:
        return scale / own
    if kind == HINGE:
        if scale * scale <= 0.0:
            return 0.0
        return inverse_gaussian(scale * math.fabs(own - (2.0 * y - 1.0) * omega), scale * scale, key)
    if kind == COUNTS:
        scale, tilt = c * (weight * (y + own)), omega - log_own
    return polya_gamma(scale, tilt, key)  # one call of a long function, whose code is put here


@part
def kappa_constant(kind, c, own, y, weight):
    """The part of kappa that does not depend on lam."""
    if kind == LOGISTIC:
        return c * weight * (y - 0.5)
    if kind == COUNTS:
        return 0.5 * c * weight * (y - own)
    if kind == GAUSSIAN:
        return 0.0
    return (2.0 * y - 1.0) * c * weight


@part
def kappa_slope(kind, own, log_own, y):
    """The slope of kappa in lam."""
    if kind == LOGISTIC:
        return 0.0
    if kind == COUNTS:
        return log_own
    if kind == GAUSSIAN:
        return y
    return (2.0 * y - 1.0) * own


@part
def log_sigmoid(x):
    """log(1 / (1 + exp(-x))) without overflow."""
    if x < 0.0:
        return x - math.log1p(math.exp(x))
    return -math.log1p(math.exp(-x))


@part
def log_density(kind, own, log_own, y, omega):
    """The log density of y given omega, lam integrated out."""
    if kind == LOGISTIC:
        return log_sigmoid(omega if y > 0.5 else -omega)
    if kind == COUNTS:
        psi = omega - log_own
        ways = math.lgamma(y + own) - math.lgamma(own) - math.lgamma(y + 1.0)
        return ways + y * log_sigmoid(psi) + own * log_sigmoid(-psi)
    if kind == GAUSSIAN:
        return -0.5 * ((y - omega) * (y - omega) / own + math.log(2.0 * math.pi * own))
    return -2.0 * max(own - (2.0 * y - 1.0) * omega, 0.0)


@kernel
def _draw_lams(kind, c, own, log_own, y, weight, omega, key, first_doc, lam):
    for d in range(omega.shape[0]):
        stream = derive(key, first_doc + d)
        for r in range(omega.shape[1]):
            lam[d, r] = draw_lam(kind, c, own[r], log_own[r], y[d, r], weight[d, r], omega[d, r], derive(stream, r))


@kernel
def _log_densities(kind, own, log_own, y, omega, out):
    for d in range(omega.shape[0]):
        for r in range(omega.shape[1]):
            out[d, r] = log_density(kind, own[r], log_own[r], y[d % y.shape[0], r], omega[d, r])


def logarithm(kind: int, own: np.ndarray) -> np.ndarray:
    """log_own (R,) for own (R,); only counts read it."""
    return np.log(own) if kind == COUNTS else own


def draw_lams(
    kind: int, c: float, own: np.ndarray, y: np.ndarray, weight: np.ndarray, omega: np.ndarray, key: np.uint64,
    first_doc: int,
) -> np.ndarray:  # fmt: skip
    """Draw lam (n_docs, R) given omega; the draw of a document depends on its number first_doc + d only."""
    lam = np.empty(omega.shape)
    _draw_lams(kind, c, own, logarithm(kind, own), y, weight, omega, key, first_doc, lam)
    return lam


def kappa_parts(
    kind: int, c: float, own: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray | float, np.ndarray | float]:
    """The constant and the slope of kappa in lam, (n_docs, R) or the same number for all."""
    # the same formulas on arrays: NumPy is as fast, and compiles nothing
    log_own = logarithm(kind, own)
    return kappa_constant.py_func(kind, c, own, y, weight), kappa_slope.py_func(kind, own, log_own, y)


def log_densities(kind: int, own: np.ndarray, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """The log density of every y (n_docs, R) given omega (m n_docs, R), lam integrated out, in the shape of omega."""
    out = np.empty(omega.shape)
    _log_densities(kind, own, logarithm(kind, own), y, omega, out)
    return out
