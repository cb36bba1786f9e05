"""Ratings: a Gaussian response."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln, ndtr

from supertopic.corpus.source import Target
from supertopic.kernels.draws import gammas
from supertopic.kernels.responses import GAUSSIAN
from supertopic.model.responses.augmentation import KernelResponse
from supertopic.model.responses.base import LEAST_SCALE, MOST_SCALE, Sums
from supertopic.model.responses.numbers import NumberResponse


@dataclass(frozen=True, eq=False)
class Gaussian(KernelResponse, NumberResponse):
    """psi = N(y | omega, sigma2)**c, with an inverse-gamma prior where sigma2 is drawn."""

    sigma2: np.ndarray  # (R,), in standard units
    drawn: bool = True
    shape: float | np.ndarray = 2.0
    rate: float | np.ndarray = 1.0
    fixed: bool = False  # a known variance: it is not drawn for predictions either
    known_variance: float | None = field(default=None, kw_only=True)  # in the units of y, from which sigma2 is made

    formula: ClassVar[int] = GAUSSIAN
    calibrates_mean: ClassVar[bool] = True
    title: ClassVar[str] = "supervised latent Dirichlet allocation with a Gaussian response"
    references: ClassVar[tuple[str, ...]] = ("blei2007", "zhu2013")

    @property
    def own(self) -> np.ndarray:
        return self.sigma2

    def standardise(
        self, y: np.ndarray, weight: np.ndarray, sums: np.ndarray | None
    ) -> tuple[Self, np.ndarray, np.ndarray | None]:
        response, y, sums = super().standardise(y, weight, sums)
        sigma2 = np.ones(y.shape[1])
        if self.known_variance is not None:
            unit = np.asarray(response.unit)
            sigma2 = self.known_variance / unit / unit
            if not ((sigma2 >= LEAST_SCALE) & (sigma2 <= MOST_SCALE)).all():
                raise ValueError(
                    f"sigma2 is in y's units squared, and must be from {LEAST_SCALE:g} to {MOST_SCALE:g} times the "
                    f"variance of y, whose standard deviation is {unit.max():.4g}; got {self.known_variance!r}."
                )
        return replace(response, sigma2=sigma2), y, sums

    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        return self.c * target.weight / self.sigma2

    def log_score(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return self.with_scale(np.mean(scales, axis=0)).log_density(y, np.mean(omegas, axis=0))

    def variance(self, omega: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.sigma2, omega.shape)

    def cdf(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        return ndtr((y - omega) / np.sqrt(self.sigma2))

    def replicate(self, omega: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.offset_in_units(omega + np.sqrt(self.sigma2) * rng.standard_normal(omega.shape))

    @property
    def scale(self) -> np.ndarray:
        return self.sigma2

    def with_scale(self, scale: np.ndarray) -> "Gaussian":
        return replace(self, sigma2=scale)

    def plain(self) -> "Gaussian":
        return replace(self, c=1.0, drawn=not self.fixed)

    def draw_scale(self, sums: Sums, key: np.uint64) -> "Gaussian":
        if not self.drawn:
            return self
        n, squares = 0.5 * self.c * sums.residuals()
        sigma2 = (self.rate + squares) / gammas(self.shape + n, key)  # the inverse gamma is conjugate
        return self.with_scale(sigma2.clip(LEAST_SCALE, MOST_SCALE))

    def with_carried_scale(self, draws: np.ndarray, n_docs: np.ndarray, discount: float) -> Self:
        if self.fixed:
            return self
        shape = 2.0 + 0.5 * n_docs  # the inverse gamma is conjugate
        return replace(self, shape=shape, rate=draws.mean(axis=0) * (shape - 1.0))

    def log_prior(self) -> float:
        s, a, b = self.sigma2, self.shape, self.rate
        return float(np.sum(a * np.log(b) - gammaln(a) - (a + 1.0) * np.log(s) - b / s)) if self.drawn else 0.0
