"""What a response model has to say: how its `lam` is drawn, what its `kappa` is, and how likely its target is.

After augmentation each is exp(kappa omega - lam omega**2 / 2), one per document and column, and that is all that the
sampler ever sees. A missing response has weight 0, so kappa = lam = 0 and its document speaks through its words only.
Several classes by stick-breaking are Logistic, too: a stick that a document does not reach is a missing response.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_expit

from supertopic.draws import inverse_gaussians, make_key, polya_gammas, uniforms
from supertopic.sweep import Quadratic

LEAST_SCALE, MOST_SCALE = 1e-8, 1e8  # where sigma2 and r are looked for


class Target(NamedTuple):
    """What is known about some documents."""

    y: np.ndarray  # (n_docs, R), 0 where unknown
    weight: np.ndarray  # (n_docs, R), multiplies c; 0 where unknown
    offset: np.ndarray  # (n_docs, R) or (n_docs, 1): a known part of omega
    covariates: np.ndarray  # (n_docs, P): these enter omega next to zbar


def make_target(y: np.ndarray, weight: np.ndarray, offset=None, covariates=None) -> Target:
    """A target whose offset is 0 and which has no covariates, unless they are given."""
    n_docs = len(y)
    return Target(
        y,
        weight,
        np.zeros((n_docs, 1)) if offset is None else offset,
        np.zeros((n_docs, 0)) if covariates is None else covariates,
    )


@dataclass(frozen=True)
class Response(ABC):
    """The part of the model that differs from response to response. omega includes offset and covariates."""

    c: float

    @abstractmethod
    def augment(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> Quadratic:
        """Draw lam given omega; a document's draw depends on its number first_doc + d only."""

    @abstractmethod
    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """The log of the likelihood of each y, lam integrated out; psi is its exponential to the power c."""

    def log_likelihood(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The log of psi, summed over the documents: (R,)."""
        return self.c * np.sum(target.weight * self.log_density(target.y, omega), axis=0)

    @abstractmethod
    def start(self, target: Target) -> Quadratic:
        """kappa and lam before the first iteration, when omega is unknown."""

    @property
    def scale(self) -> np.ndarray:
        """The response's own parameter, one a column, or none."""
        return np.zeros(0)

    def with_scale(self, scale: np.ndarray) -> "Response":
        """The same response with another value of its own parameter."""
        return self

    def draw(self, log_likelihood: Callable[["Response"], np.ndarray], key: np.uint64) -> "Response":
        """The same response with its own parameter drawn, given the log-likelihood of all documents."""
        return self

    def log_prior(self) -> float:
        """The log density of the response's own parameter, as far as it is drawn."""
        return 0.0

    def plain(self) -> "Response":
        """The same response as a likelihood of its own, not weighed against words: c = 1."""
        return replace(self, c=1.0)


class Logistic(Response):
    """The paper's response: psi = sigmoid(omega)**(c y) (1 - sigmoid(omega))**(c (1 - y)), a column each."""

    def augment(self, target, omega, key, first_doc):
        h = self.c * target.weight
        return Quadratic(h * (target.y - 0.5), polya_gammas(h, omega, key, first_doc))

    def start(self, target):
        return Quadratic(self.c * target.weight * (target.y - 0.5), (target.weight > 0).astype(float))  # lam = 1

    def log_density(self, y, omega):
        return log_expit(np.where(y > 0.5, omega, -omega))


@dataclass(frozen=True)
class Hinge(Response):
    """Gibbs MedLDA: psi = exp(-2 c max(0, zeta)), zeta = margin - sign omega, where sign is -1 or 1 for y = 0 or 1."""

    margin: float

    def augment(self, target, omega, key, first_doc):
        c, sign = self.c * target.weight, 2.0 * target.y - 1.0
        # lam ~ InverseGaussian(mean c / |zeta|, shape c**2)
        lam = inverse_gaussians(c * np.abs(self.margin - sign * omega), c * c, key, first_doc)
        return Quadratic(sign * (c + self.margin * lam), lam)

    def start(self, target):
        c, sign = self.c * target.weight, 2.0 * target.y - 1.0
        lam = (c > 0).astype(float)
        return Quadratic(sign * (c + self.margin * lam), lam)

    def plain(self):
        return Hinge(1.0, 1.0)

    def log_density(self, y, omega):
        return -2.0 * np.maximum(self.margin - (2.0 * y - 1.0) * omega, 0.0)


@dataclass(frozen=True)
class Gaussian(Response):
    """psi = N(y | omega, sigma2)**c, with an inverse-gamma prior where sigma2 is drawn."""

    sigma2: np.ndarray  # (R,)
    drawn: bool = True
    shape: float = 2.0
    rate: float = 1.0
    known: bool = False  # then it is not even drawn for predictions

    def augment(self, target, omega, key, first_doc):
        lam = self.c * target.weight / self.sigma2
        return Quadratic(lam * target.y, lam)

    def start(self, target):
        return self.augment(target, None, None, 0)

    def log_density(self, y, omega):
        return -0.5 * ((y - omega) ** 2 / self.sigma2 + np.log(2.0 * np.pi * self.sigma2))

    @property
    def scale(self):
        return self.sigma2

    def with_scale(self, scale):
        return replace(self, sigma2=scale)

    def plain(self):
        return replace(self, c=1.0, drawn=not self.known)

    def draw(self, log_likelihood, key):
        if not self.drawn:
            return self

        def log_density(x):  # of x = log sigma2
            new = self.with_scale(np.exp(x))
            return log_likelihood(new) - self.shape * x - self.rate / new.sigma2

        return self.with_scale(np.exp(slice_sample(log_density, np.log(self.sigma2), key)))

    def log_prior(self):
        s, a, b = self.sigma2, self.shape, self.rate
        return float(np.sum(a * np.log(b) - gammaln(a) - (a + 1.0) * np.log(s) - b / s)) if self.drawn else 0.0


@dataclass(frozen=True)
class NegativeBinomial(Response):
    """Counts with mean exp(omega) and variance mean + mean**2 / r, to the power c; a gamma prior where r is drawn.

    The form that is augmented has log-odds psi = omega - log r: its kappa and lam are moved to omega. That the mean
    does not depend on r, as with an offset log(mean y), keeps the prior of eta from shrinking large counts.
    """

    r: np.ndarray  # (R,)
    drawn: bool = True
    shape: float = 1.0
    rate: float = 0.1
    known: bool = False  # then it is not even drawn for predictions

    def augment(self, target, omega, key, first_doc):
        weight, level = self.c * target.weight, np.log(self.r)
        lam = polya_gammas(weight * (target.y + self.r), omega - level, key, first_doc)
        return Quadratic(0.5 * weight * (target.y - self.r) + lam * level, lam)

    def start(self, target):
        weight, level = self.c * target.weight, np.log(self.r)
        half = np.maximum(np.abs(target.offset - level) / 2.0, 1e-6)
        lam = weight * (target.y + self.r) * np.tanh(half) / (4.0 * half)  # the mean of lam at eta = 0
        return Quadratic(0.5 * weight * (target.y - self.r) + lam * level, lam)

    def log_density(self, y, omega):
        r, psi = self.r, omega - np.log(self.r)
        ways = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return ways + y * log_expit(psi) + r * log_expit(-psi)

    @property
    def scale(self):
        return self.r

    def with_scale(self, scale):
        return replace(self, r=scale)

    def plain(self):
        return replace(self, c=1.0, drawn=not self.known)

    def draw(self, log_likelihood, key):
        if not self.drawn:
            return self

        def log_density(x):  # of x = log r
            new = self.with_scale(np.exp(x))
            return log_likelihood(new) + self.shape * x - self.rate * new.r

        return self.with_scale(np.exp(slice_sample(log_density, np.log(self.r), key)))

    def log_prior(self):
        r, a, b = self.r, self.shape, self.rate
        return float(np.sum(a * np.log(b) - gammaln(a) + (a - 1.0) * np.log(r) - b * r)) if self.drawn else 0.0


def slice_sample(log_density: Callable[[np.ndarray], np.ndarray], x: np.ndarray, key: np.uint64) -> np.ndarray:
    """One step of slice sampling (Neal, 2003) for each of some independent numbers, whatever their density is.

    A height below the density at x is drawn, then points of a bracket until one is above that height; a point that
    is not becomes the bracket's new end on its side of x. The bracket starts as all that is allowed.
    """
    height = log_density(x) + np.log(uniforms(len(x), make_key(key, 0)))
    low, high = np.full_like(x, np.log(LEAST_SCALE)), np.full_like(x, np.log(MOST_SCALE))
    new, found = x, np.zeros(len(x), bool)
    for i in itertools.count(1):
        new = np.where(found, new, low + (high - low) * uniforms(len(x), make_key(key, i)))
        found = found | (log_density(new) >= height)
        if found.all():
            return new
        low, high = np.where(~found & (new < x), new, low), np.where(~found & (new >= x), new, high)
    return new
