"""What a response model has to say: how its `lam` is drawn, what its `kappa` is, and how likely its target is.

After augmentation each is exp(kappa omega - lam omega**2 / 2), one per document and column, and that is all that the
sampler ever sees. A missing response has weight 0, so kappa = lam = 0 and its document speaks through its words only.
Several classes by stick-breaking are Logistic, too: a stick that a document does not reach is a missing response.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import (
    betainc,
    betaincinv,
    expit,
    gammaincinv,
    gammaln,
    log_expit,
    log_softmax,
    logit,
    ndtr,
    ndtri,
    softmax,
)

from supertopic.corpus.source import Target
from supertopic.kernels.draws import gammas, inverse_gaussians, make_key, polya_gammas, uniforms
from supertopic.kernels.responses import COUNTS, GAUSSIAN, HINGE, LOGISTIC

LEAST_SCALE, MOST_SCALE = 1e-8, 1e8  # where sigma2 and r are looked for
BATCH, BATCHES = 8, 64  # points of a density that are asked for at a time; how often, at most
GOLDEN = 0.5 * (5.0**0.5 - 1.0)
MOST_COUNT, MOST_LOG = 1e300, 700.0
FAR, HALVINGS, DOUBLINGS = 40.0, 64, 1024  # standard deviations to either side, and steps, of a search for a quantile


class Sums(Protocol):
    """Sums over all documents, from which a response draws its own parameter. Every engine has them."""

    def log_likelihoods(self, responses: "Sequence[Response]") -> np.ndarray:
        """The log-likelihood of all documents under each of n responses, (n, R)."""

    def residuals(self) -> np.ndarray:
        """The sum of the weights and the weighted sum of squares of y - omega, (2, R)."""


class ScalarForm(NamedTuple):
    """A response as `kernels.responses` knows it: its kind, and its own parameter, a number or one for each column."""

    kind: int
    own: np.ndarray | float = 0.0


@dataclass(frozen=True)
class Response(ABC):
    """The part of the model that differs from response to response. omega includes offset and covariates."""

    c: float
    paper_start: bool = field(default=False, kw_only=True)

    @abstractmethod
    def draw_lam(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        """Draw lam given omega; a document's draw depends on its number first_doc + d only."""

    @abstractmethod
    def kappa(self, target: Target) -> tuple[np.ndarray, np.ndarray | float]:
        """The linear part of the quadratic in omega, as a constant and a slope: kappa = constant + slope lam."""

    @abstractmethod
    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The mean of lam given omega."""

    def start_lam(self, target: Target) -> np.ndarray:
        """lam before the first iteration: its mean where nothing is known of eta.

        The paper starts from 1. A larger c / 4 keeps the first eta, which has seen random topics only, from being so
        large that the chain does not find back.
        """
        if self.paper_start:
            return (target.weight > 0).astype(float)
        return self.mean_lam(target, np.broadcast_to(target.offset, target.y.shape))

    @abstractmethod
    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """The log of the likelihood of each y, lam integrated out; psi is its exponential to the power c."""

    def gradient(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The derivative of log psi in omega, (n_docs, R): that of the quadratic at the mean of lam."""
        constant, slope = self.kappa(target)
        return constant + (slope - omega) * self.mean_lam(target, omega)

    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The negative second derivative of log psi in omega, (n_docs, R).

        lam, which stands for it here, is more: the information that there would be if lam had been observed, too.
        """
        return self.mean_lam(target, omega)

    def cost(self, target: Target, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """The negative log-likelihood of all documents for c = 1, and its slope in omega (n_docs, R)."""
        plain = replace(self, c=1.0)
        return -float(plain.log_likelihood(target, omega).sum()), -plain.gradient(target, omega)

    def curvature(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The second derivative of `cost` in each omega, (n_docs, R)."""
        return replace(self, c=1.0).information(target, omega)

    def mean(self, omega: np.ndarray) -> np.ndarray:
        """The mean of y given omega in a prediction, (n_docs, R)."""
        return omega

    def variance(self, omega: np.ndarray) -> np.ndarray:
        """The variance of y given omega, (n_docs, R): what the standard deviation of a prediction needs."""
        raise NotImplementedError(f"{type(self).__name__} does not say the variance of y given omega.")

    def cdf(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """The probability of a response up to y given omega, (n_docs, R): what intervals of a prediction need."""
        raise NotImplementedError(f"{type(self).__name__} does not say the distribution of y given omega.")

    def quantile(self, q: float, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The numbers (n_docs, R) up to which y is with probability q, on average over draws of omega; by bisection."""
        draws = [(self.with_scale(scale), omega) for omega, scale in zip(omegas, scales, strict=True)]
        spreads = [(drawn.mean(omega), np.sqrt(drawn.variance(omega))) for drawn, omega in draws]
        low = np.min([mean - FAR * sd for mean, sd in spreads], axis=0)
        high = np.max([mean + FAR * sd for mean, sd in spreads], axis=0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            enough = average([drawn.cdf(middle, omega) for drawn, omega in draws]) >= q
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return 0.5 * (low + high)

    def link(self, mean: np.ndarray) -> np.ndarray:
        """The offset of a regression that stands for a mean of y, (R,)."""
        return mean

    def base_rate(self, offset: np.ndarray) -> np.ndarray:
        """The mean of y that the offset of a prediction stands for, (R,)."""
        return self.mean(offset)

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        """Quantiles of what the mean of y may be, if so many documents have this one; y has a variance of about 1."""
        return mean + ndtri(q) / np.sqrt(n_docs)

    def draw_offsets(self, offset: np.ndarray, n_docs: np.ndarray, n_draws: int) -> np.ndarray:
        """n draws of the offset of a prediction, (n, R), if so many documents have told it; 0 documents: no spread.

        On average they stand for the same mean of y.
        """
        # multiples of the golden ratio are apart whatever their number is, and columns have others
        place = np.arange(1, n_draws + 1)[:, None] * GOLDEN + np.arange(len(offset)) * GOLDEN**2
        q = (np.argsort(np.argsort(place % 1.0, axis=0), axis=0) + 0.5) / n_draws
        with np.errstate(all="ignore"):  # a file may hold any number
            mean = self.base_rate(offset)
            draws = self.mean_quantile(q, mean, np.maximum(n_docs, 1.0))
            away = draws - mean
            sides = np.array([np.maximum(away, 0.0).mean(axis=0), np.maximum(-away, 0.0).mean(axis=0)])
            less = sides.min(axis=0) / np.maximum(sides, 1e-300)  # so that both sides weigh the same
            found = self.predictive_offset(self.link(mean + np.where(away > 0, less[0], less[1]) * away))
        return np.where((n_docs > 0) & np.isfinite(found), found, offset)

    def predictive_offset(self, offset: np.ndarray) -> np.ndarray:
        """The offset that predictions need where regressions have this one; most need the same."""
        return offset

    def with_carried_scale(self, draws: np.ndarray, n_docs: np.ndarray, discount: float) -> "Response":
        """The same response, with a prior of its own parameter from documents that are gone.

        draws (n, R) are those of the parameter, n_docs (R,) is what these documents count for once they are discounted.
        """
        return self

    def log_likelihood(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The log of psi, summed over the documents: (R,)."""
        return self.c * np.sum(target.weight * self.log_density(target.y, omega), axis=0)

    def log_score(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """How well the mean that is foretold fits each y, whatever the spread around it."""
        return self.log_predictive(y, omegas, scales)

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The log of the mean density of each y over draws of omega (n_draws, n_docs, R) and of the own parameter.

        (n_docs, R), or (n_docs, 1) where the columns are one question.
        """
        logs = [self.with_scale(scale).log_density(y, omega) for omega, scale in zip(omegas, scales, strict=True)]
        return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))

    @property
    def scalar_form(self) -> ScalarForm | None:
        """The scalar formulas of the response in `kernels.responses`; None where it has none, as a user's own."""
        return None

    @property
    def drawn(self) -> bool:
        """Whether the response has a parameter of its own that is drawn between z and lambda."""
        return False

    @property
    def about_mean(self) -> bool:
        """Whether `mean` is the mean of y, so that predictions have to be right on average."""
        return False

    @property
    def newton(self) -> bool:
        """Whether regressions need steps by Newton's method: given lam, draws of eta hardly move."""
        return False

    @property
    def scale(self) -> np.ndarray:
        """The response's own parameter, one a column, or none."""
        return np.zeros(0)

    def with_scale(self, scale: np.ndarray) -> "Response":
        """The same response with another value of its own parameter."""
        return self

    def draw_scale(self, sums: Sums, key: np.uint64) -> "Response":
        """The same response with its own parameter drawn, lam integrated out."""
        return self

    def log_prior(self) -> float:
        """The log density of the response's own parameter, as far as it is drawn."""
        return 0.0

    def plain(self) -> "Response":
        """The same response as a likelihood of its own, not weighed against words: c = 1."""
        return replace(self, c=1.0)

    def shown(self) -> "Response":
        """The one whose weights are shown, with intervals that hold what they promise."""
        return self.plain()


@dataclass(frozen=True)
class Logistic(Response):
    """The paper's response: psi = sigmoid(omega)**(c y) (1 - sigmoid(omega))**(c (1 - y)), a column each."""

    exclusive: bool = False  # exactly one column of a document is 1; it is so in proportion to its odds

    @property
    def scalar_form(self):
        return ScalarForm(LOGISTIC)

    @property
    def about_mean(self):
        return True

    def draw_lam(self, target, omega, key, first_doc):
        return polya_gammas(self.c, target.weight, omega, key, first_doc)

    def kappa(self, target):
        return self.c * target.weight * (target.y - 0.5), 0.0

    def mean_lam(self, target, omega):
        return mean_polya_gamma(self.c * target.weight, omega)

    def information(self, target, omega):
        p = expit(omega)
        return self.c * target.weight * p * (1.0 - p)

    def log_density(self, y, omega):
        return log_expit(np.where(y > 0.5, omega, -omega))

    def mean(self, omega):
        return softmax(omega, axis=-1) if self.exclusive else expit(omega)

    def base_rate(self, offset):
        return np.exp(offset) if self.exclusive else expit(offset)

    def link(self, mean):
        return logit(mean)

    def mean_quantile(self, q, mean, n_docs):
        return share_quantile(q, mean, n_docs)

    def predictive_offset(self, offset):
        # A column is a regression of its class against the rest, whose offset is logit p. Where one of the columns must
        # be 1, probabilities are in proportion to exp(omega), which without any document's part has to be p.
        return log_expit(offset) if self.exclusive else offset

    def cost(self, target, omega):
        if not self.exclusive:
            return super().cost(target, omega)
        logs = log_softmax(omega, axis=1)
        return -float(np.sum(target.weight * target.y * logs)), target.weight * (np.exp(logs) - target.y)

    def curvature(self, target, omega):
        if not self.exclusive:
            return super().curvature(target, omega)
        p = softmax(omega, axis=1)
        return target.weight * p * (1.0 - p)

    def log_predictive(self, y, omegas, scales):
        if not self.exclusive:
            return super().log_predictive(y, omegas, scales)
        which = y.argmax(axis=1)[:, None]
        logs = [np.take_along_axis(log_softmax(omega, axis=1), which, axis=1) for omega in omegas]
        return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))


@dataclass(frozen=True)
class Hinge(Response):
    """Gibbs MedLDA: psi = exp(-2 c max(0, zeta)), zeta = margin - sign omega, where sign is -1 or 1 for y = 0 or 1."""

    margin: float

    @property
    def scalar_form(self):
        return ScalarForm(HINGE, self.margin)

    def draw_lam(self, target, omega, key, first_doc):
        # lam ~ InverseGaussian(mean c / |zeta|, shape c**2)
        c, sign = self.c * target.weight, 2.0 * target.y - 1.0
        return inverse_gaussians(c * np.abs(self.margin - sign * omega), c * c, key, first_doc)

    def kappa(self, target):
        sign = 2.0 * target.y - 1.0
        return sign * self.c * target.weight, sign * self.margin

    def mean_lam(self, target, omega):
        zeta = self.margin - (2.0 * target.y - 1.0) * omega
        return self.c * target.weight / np.maximum(np.abs(zeta), 1e-6)

    def information(self, target, omega):
        # a hinge has no curvature but at its kink; the mean of lam stands for it, one unit away from there at least
        zeta = self.margin - (2.0 * target.y - 1.0) * omega
        return self.c * target.weight / np.maximum(np.abs(zeta), 1.0)

    def plain(self):
        return Hinge(1.0, 1.0)

    def link(self, mean):
        return logit(mean)

    def base_rate(self, offset):
        return expit(offset)

    def mean_quantile(self, q, mean, n_docs):
        return share_quantile(q, mean, n_docs)

    def shown(self):
        return Logistic(1.0)  # a hinge is no likelihood: what it leaves unsure says nothing of what is unknown

    def log_density(self, y, omega):
        return -2.0 * np.maximum(self.margin - (2.0 * y - 1.0) * omega, 0.0)

    def cost(self, target, omega):
        sign = 2.0 * target.y - 1.0
        zeta = np.maximum(self.margin - sign * omega, 0.0)  # squared, which has a slope everywhere
        return float(np.sum(target.weight * zeta**2)), -2.0 * target.weight * sign * zeta

    def curvature(self, target, omega):
        return 2.0 * target.weight * ((2.0 * target.y - 1.0) * omega < self.margin)

    def log_predictive(self, y, omegas, scales):
        omega = np.mean(omegas, axis=0)  # scores are averaged, there are no probabilities
        return self.log_density(y, omega) - np.logaddexp(self.log_density(0.0, omega), self.log_density(1.0, omega))


@dataclass(frozen=True)
class Gaussian(Response):
    """psi = N(y | omega, sigma2)**c, with an inverse-gamma prior where sigma2 is drawn."""

    sigma2: np.ndarray  # (R,)
    drawn: bool = True
    shape: float | np.ndarray = 2.0
    rate: float | np.ndarray = 1.0
    given: bool = False  # then it is not even drawn for predictions

    @property
    def scalar_form(self):
        return ScalarForm(GAUSSIAN, self.sigma2)

    @property
    def about_mean(self):
        return True

    def with_carried_scale(self, draws, n_docs, discount):
        if self.given:
            return self
        shape = 2.0 + 0.5 * n_docs  # the inverse gamma is conjugate
        return replace(self, shape=shape, rate=draws.mean(axis=0) * (shape - 1.0))

    def draw_lam(self, target, omega, key, first_doc):
        return self.c * target.weight / self.sigma2

    def kappa(self, target):
        return np.zeros_like(target.y), target.y

    def mean_lam(self, target, omega):
        return self.c * target.weight / self.sigma2

    def information(self, target, omega):
        return self.c * target.weight / self.sigma2

    def log_density(self, y, omega):
        return -0.5 * ((y - omega) ** 2 / self.sigma2 + np.log(2.0 * np.pi * self.sigma2))

    def log_score(self, y, omegas, scales):
        return self.with_scale(np.mean(scales, axis=0)).log_density(y, np.mean(omegas, axis=0))

    def variance(self, omega):
        return np.broadcast_to(self.sigma2, omega.shape)

    def cdf(self, y, omega):
        return ndtr((y - omega) / np.sqrt(self.sigma2))

    @property
    def scale(self):
        return self.sigma2

    def with_scale(self, scale):
        return replace(self, sigma2=scale)

    def plain(self):
        return replace(self, c=1.0, drawn=not self.given)

    def draw_scale(self, sums, key):
        if not self.drawn:
            return self
        n, squares = 0.5 * self.c * sums.residuals()
        sigma2 = (self.rate + squares) / gammas(self.shape + n, key)  # the inverse gamma is conjugate
        return self.with_scale(sigma2.clip(LEAST_SCALE, MOST_SCALE))

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
    shape: float | np.ndarray = 1.0
    rate: float | np.ndarray = 0.1
    given: bool = False  # then it is not even drawn for predictions

    @property
    def scalar_form(self):
        return ScalarForm(COUNTS, self.r)

    @property
    def about_mean(self):
        return True

    @property
    def newton(self):
        return True  # lam has the precision of y + r coins, but y tells no more than r of them would

    def with_carried_scale(self, draws, n_docs, discount):
        if self.given:
            return self
        # as many documents tell a variance of log r of about 2 / n at best; few draws may look firmer than that
        mean = draws.mean(axis=0)
        shape = np.minimum(discount * mean**2 / np.maximum(draws.var(axis=0), LEAST_SCALE**2), 0.5 * n_docs)
        carried = shape > self.shape
        return replace(
            self, shape=np.where(carried, shape, self.shape), rate=np.where(carried, shape / mean, self.rate)
        )

    def draw_lam(self, target, omega, key, first_doc):
        h = target.weight * (target.y + self.r)
        return polya_gammas(self.c, h, omega - np.log(self.r), key, first_doc)

    def kappa(self, target):
        return 0.5 * self.c * target.weight * (target.y - self.r), np.log(self.r)

    def mean_lam(self, target, omega):
        return mean_polya_gamma(self.c * target.weight * (target.y + self.r), omega - np.log(self.r))

    def information(self, target, omega):
        s = expit(omega - np.log(self.r))
        return self.c * target.weight * (target.y + self.r) * s * (1.0 - s)

    def log_density(self, y, omega):
        r, psi = self.r, omega - np.log(self.r)
        ways = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return ways + y * log_expit(psi) + r * log_expit(-psi)

    def mean(self, omega):
        return np.minimum(np.exp(np.minimum(omega, MOST_LOG)), MOST_COUNT)

    def variance(self, omega):
        with np.errstate(over="ignore"):
            mean = self.mean(omega)
            return mean + mean * mean / self.r

    def cdf(self, y, omega):
        return betainc(self.r, y + 1.0, self.r / (self.r + self.mean(omega)))

    def quantile(self, q, omegas, scales):
        """The smallest counts; where these are too large for whole numbers, the nearest that there are."""
        draws = [(self.with_scale(scale), omega) for omega, scale in zip(omegas, scales, strict=True)]

        def below(count):
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

    def link(self, mean):
        return np.log(mean)

    def mean_quantile(self, q, mean, n_docs):
        shape = n_docs / (1.0 / self.r + 1.0 / mean)  # a gamma distribution with the mean's own variance
        return np.maximum(mean * gammaincinv(shape, q) / shape, LEAST_SCALE * mean)

    def log_score(self, y, omegas, scales):
        return self.with_scale(np.mean(scales, axis=0)).log_density(y, np.log(np.mean(np.exp(omegas), axis=0)))

    @property
    def scale(self):
        return self.r

    def with_scale(self, scale):
        return replace(self, r=scale)

    def plain(self):
        return replace(self, c=1.0, drawn=not self.given)

    def draw_scale(self, sums, key):
        if not self.drawn:
            return self

        def log_density(points):  # of x = log r, some at a time
            new = [self.with_scale(np.exp(x)) for x in points]
            return sums.log_likelihoods(new) + [self.shape * np.log(n.r) - self.rate * n.r for n in new]

        return self.with_scale(np.exp(slice_sample(log_density, np.log(self.r), key)))

    def log_prior(self):
        r, a, b = self.r, self.shape, self.rate
        return float(np.sum(a * np.log(b) - gammaln(a) + (a - 1.0) * np.log(r) - b * r)) if self.drawn else 0.0


def average(arrays: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Their mean, added one by one: np.mean adds in an order that depends on the number of documents."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total = total + array
    return total / len(arrays)


def share_quantile(q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
    """Quantiles of the beta distribution with this mean, as if so many documents had told it."""
    return betaincinv(n_docs * mean, n_docs * (1.0 - mean), q).clip(LEAST_SCALE, 1.0 - LEAST_SCALE)


def mean_polya_gamma(h: np.ndarray, z: np.ndarray) -> np.ndarray:
    half = np.maximum(np.abs(z) / 2.0, 1e-6)
    return h * np.tanh(half) / (4.0 * half)


def slice_sample(log_density: Callable[[list[np.ndarray]], np.ndarray], x: np.ndarray, key: np.uint64) -> np.ndarray:
    """One step of slice sampling (Neal, 2003) for each of some independent numbers, whatever their density is.

    A height below the density at x is drawn, then points of a bracket until one is above that height; a point that
    is not becomes the bracket's new end on its side of x. The bracket starts as all that is allowed. Which points come
    if none is accepted is known beforehand, so that the density is asked for at several of them at once. x stays if
    there is no such point, as where the density is not a number.
    """
    low, high = np.full_like(x, np.log(LEAST_SCALE)), np.full_like(x, np.log(MOST_SCALE))
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
