"""Counts: a negative binomial response."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import betainc, expit, gammainc, gammaincinv, gammaln

from supertopic.corpus.source import Target
from supertopic.kernels.responses import COUNTS
from supertopic.model.responses.augmentation import KernelResponse, mean_polya_gamma
from supertopic.model.responses.averages import average
from supertopic.model.responses.base import LEAST_SCALE, MOST_SCALE, Encoded, Sums
from supertopic.model.responses.numbers import HALVINGS, NumberResponse
from supertopic.model.responses.slices import slice_sample
from supertopic.model.responses.values import MOST

MOST_COUNT, MOST_LOG, DOUBLINGS, LARGE_MEAN = 1e300, 700.0, 1024, 2.0**53


@dataclass(frozen=True, eq=False)
class NegativeBinomial(KernelResponse, NumberResponse):
    """Counts with mean exp(omega) and variance mean + mean**2 / r, to the power c; a gamma prior where r is drawn.

    The form that is augmented has log-odds psi = omega - log r: its kappa and lam are moved to omega. That the mean
    does not depend on r, as with an offset log(mean y), keeps the prior of eta from shrinking large counts.
    """

    r: np.ndarray  # (R,)
    drawn: bool = True
    shape: float | np.ndarray = 1.0
    rate: float | np.ndarray = 0.1
    fixed: bool = False  # a known dispersion: it is not drawn for predictions either
    exposed: bool = field(default=False, kw_only=True)  # whether the fit had an exposure

    learned: ClassVar[tuple[str, ...]] = ("names", "multioutput", "exposed")
    formula: ClassVar[int] = COUNTS
    calibrates_mean: ClassVar[bool] = True
    title: ClassVar[str] = (
        "supervised latent Dirichlet allocation with a negative binomial response, an extension of the logistic model"
    )
    references: ClassVar[tuple[str, ...]] = ("zhu2013", "polson2013")
    needs_newton: ClassVar[bool] = True  # lam is as precise as y + r coin flips, y itself only as r of them

    @property
    def kind(self) -> str:
        return "count"

    @property
    def own(self) -> np.ndarray:
        return self.r

    def encode(
        self, y: Any, weight: np.ndarray, exposure: np.ndarray | None = None, classes: Any = None,
        sums: np.ndarray | None = None,
    ) -> Encoded:  # fmt: skip
        if self.exposed and exposure is None:
            raise ValueError("Earlier batches had an exposure; pass exposure= here, too (1 for each document).")
        response = replace(self, exposed=exposure is not None)
        return NumberResponse.encode(response, y, weight, exposure, None, sums)

    def standardise(
        self, y: np.ndarray, weight: np.ndarray, sums: np.ndarray | None
    ) -> tuple[Self, np.ndarray, np.ndarray | None]:
        check_whole(y)
        most = (np.maximum(y, 1.0) * weight).max() * self.c
        if most > MOST:
            raise ValueError(
                f"Counts times weight times c must be at most {MOST:g}, got {most:g}, where c = {self.c:g}: lower c."
            )
        return replace(self, r=np.full(y.shape[1], self.r[0])), y, sums

    def base_mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        return np.maximum(sums[0], half) / np.where(sums[1] > 0, sums[1], 1.0)

    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        return mean_polya_gamma(self.c * target.weight * (target.y + self.r), omega - np.log(self.r))

    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        s = expit(omega - np.log(self.r))
        return self.c * target.weight * (target.y + self.r) * s * (1.0 - s)

    def mean(self, omega: np.ndarray) -> np.ndarray:
        return np.minimum(np.exp(np.minimum(omega, MOST_LOG)), MOST_COUNT)

    def variance(self, omega: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            mean = self.mean(omega)
            return mean + mean * mean / self.r

    def cdf(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        mean = self.mean(omega)
        # beyond whole numbers a count is its gamma-distributed mean; there betainc loses all digits
        large = gammainc(self.r, self.r * (np.maximum(y, 0.0) / mean))
        return np.where(mean > LARGE_MEAN, large, betainc(self.r, y + 1.0, self.r / (self.r + mean)))

    def cdf_below(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        return np.where(y > 0, self.cdf(np.maximum(y - 1.0, 0.0), omega), 0.0)

    def quantile(self, q: Any, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The smallest counts; where these are too large for whole numbers, the nearest that there are."""
        draws: list[Any] = [(self.with_scale(scale), omega) for omega, scale in zip(omegas, scales, strict=True)]

        def below(count: np.ndarray) -> np.ndarray:
            return average([drawn.cdf(count, omega) for drawn, omega in draws])

        low, high = np.full(omegas[0].shape, -1.0), np.ones(omegas[0].shape)
        for _ in range(DOUBLINGS):
            short = below(high) < q
            if not short.any():
                break
            low, high = np.where(short, high, low), np.minimum(np.where(short, 2.0 * high, high), MOST_COUNT)
        for _ in range(HALVINGS):
            middle = np.floor(low + 0.5 * (high - low))
            if not ((low < middle) & (middle < high)).any():  # beyond 2**53 neighbours are more than 1 apart
                break
            enough = below(middle) >= q
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def link(self, mean: np.ndarray) -> np.ndarray:
        return np.log(mean)

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        shape = n_docs / (1.0 / self.r + 1.0 / mean)  # a gamma distribution with the mean's own variance
        return np.maximum(mean * gammaincinv(shape, q) / shape, LEAST_SCALE * mean)

    def log_score(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return self.with_scale(np.mean(scales, axis=0)).log_density(y, np.log(np.mean(np.exp(omegas), axis=0)))

    def truth(self, y: Any, n_docs: int) -> np.ndarray:
        truth = super().truth(y, n_docs)
        check_whole(truth[~np.isnan(truth)])
        return truth

    def loss(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The negative log density."""
        return -self.log_density_in_units(truth, omegas, scales).mean(axis=1)

    def surprise(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        lower, upper = self.interval(omegas, scales, 0.683)  # about a standard deviation to each side
        mean = average([self.mean(omega) for omega in omegas])
        away = truth - mean
        usual = np.maximum(np.where(away > 0, upper - mean, mean - lower), 0.5)
        return (np.abs(away) / usual).max(axis=1)

    def replicate(self, omega: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        mean = rng.gamma(self.r, self.mean(omega) / self.r)
        large = mean > LARGE_MEAN  # NumPy draws no larger counts; there these are as good as their mean
        return np.where(large, mean, rng.poisson(np.where(large, 0.0, mean)))

    @property
    def scale(self) -> np.ndarray:
        return self.r

    def with_scale(self, scale: np.ndarray) -> "NegativeBinomial":
        return replace(self, r=scale)

    def plain(self) -> "NegativeBinomial":
        return replace(self, c=1.0, drawn=not self.fixed)

    def with_carried_scale(self, draws: np.ndarray, n_docs: np.ndarray, discount: float) -> "NegativeBinomial":
        if self.fixed:
            return self
        # with n documents the variance of log r is at least about 2 / n; that of a few draws may be smaller by chance
        mean = draws.mean(axis=0)
        shape = np.minimum(discount * mean**2 / np.maximum(draws.var(axis=0), LEAST_SCALE**2), 0.5 * n_docs)
        carried = shape > self.shape
        return replace(
            self, shape=np.where(carried, shape, self.shape), rate=np.where(carried, shape / mean, self.rate)
        )

    def predictions(self, omegas: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
        """The mean, and the ends of the 90 % interval of a new count."""
        lower, upper = self.interval(omegas, scales, 0.9)
        mean = average(self.expected(omegas, scales))
        return self.named({"prediction": mean, "lower": lower, "upper": upper})

    def draw_scale(self, sums: Sums, key: np.uint64) -> "NegativeBinomial":
        if not self.drawn:
            return self

        def log_density(points: list[np.ndarray]) -> np.ndarray:  # of x = log r, some at a time
            new = [self.with_scale(np.exp(x)) for x in points]
            return sums.log_likelihoods(list(new)) + [self.shape * np.log(n.r) - self.rate * n.r for n in new]

        low, high = (np.full_like(self.r, np.log(end)) for end in (LEAST_SCALE, MOST_SCALE))
        return self.with_scale(np.exp(slice_sample(log_density, np.log(self.r), key, low, high)))

    def log_prior(self) -> float:
        r, a, b = self.r, self.shape, self.rate
        return float(np.sum(a * np.log(b) - gammaln(a) + (a - 1.0) * np.log(r) - b * r)) if self.drawn else 0.0


def check_whole(y: np.ndarray) -> None:
    """Refuse numbers that are no counts."""
    wrong = y[(y < 0) | (y != np.floor(y))]
    if len(wrong):
        raise ValueError(f"y must hold counts, whole numbers >= 0, got {wrong[0]:g}; SLDARegressor takes any number.")
