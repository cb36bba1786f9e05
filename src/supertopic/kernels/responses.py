"""The responses as single numbers, for a card: how lam is drawn, what kappa is, and how likely y is.

The same as `responses` says for whole arrays: one number says which response it is, another is its own parameter.
"""

import math

from supertopic.kernels.compiled import part
from supertopic.kernels.draws import inverse_gaussian, polya_gamma

LOGISTIC, HINGE, GAUSSIAN, COUNTS = range(4)  # the parameter: none, the margin, sigma2, r


@part
def draw_lam(law, c, own, y, weight, omega, key):
    """lam given omega."""
    if law == LOGISTIC:
        return polya_gamma(c * weight, omega, key)
    if law == COUNTS:
        return polya_gamma(c * (weight * (y + own)), omega - math.log(own), key)
    if law == GAUSSIAN:
        return c * weight / own
    scale = c * weight
    if scale <= 0.0:
        return 0.0
    return inverse_gaussian(scale * math.fabs(own - (2.0 * y - 1.0) * omega), scale * scale, key)


@part
def linear(law, c, own, y, weight, lam):
    """kappa, given lam."""
    if law == LOGISTIC:
        return c * weight * (y - 0.5)
    if law == COUNTS:
        return 0.5 * c * weight * (y - own) + math.log(own) * lam
    if law == GAUSSIAN:
        return y * lam
    return (2.0 * y - 1.0) * (c * weight + own * lam)


@part
def log_sigmoid(x):
    if x < 0.0:
        return x - math.log1p(math.exp(x))
    return -math.log1p(math.exp(-x))


@part
def log_density(law, own, y, omega):
    """The log of the likelihood of y, lam integrated out."""
    if law == LOGISTIC:
        return log_sigmoid(omega if y > 0.5 else -omega)
    if law == COUNTS:
        psi = omega - math.log(own)
        ways = math.lgamma(y + own) - math.lgamma(own) - math.lgamma(y + 1.0)
        return ways + y * log_sigmoid(psi) + own * log_sigmoid(-psi)
    if law == GAUSSIAN:
        return -0.5 * ((y - omega) * (y - omega) / own + math.log(2.0 * math.pi * own))
    return -2.0 * max(own - (2.0 * y - 1.0) * omega, 0.0)
