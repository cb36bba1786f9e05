"""Ratings as several raters see them: each rater has a bias and a precision, and the true rating is unknown.

The rating of rater r is the true rating plus bias_r plus noise with precision tau_r, and the true rating is
N(omega, sigma2). Given the raters the true rating is integrated out: with P the sum of the precisions of a document's
raters, the mean of their ratings less biases, weighted by precision, is N(omega, sigma2 + 1 / P). A gold rating is a
true rating that is known. Without gold ratings a bias that all raters share cannot be told from the level of the true
ratings, and the mean bias is 0 by convention.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from supertopic.corpus.source import Target, make_target
from supertopic.kernels.draws import gammas, make_key, normals
from supertopic.kernels.raters import draw_ratings, sum_ratings
from supertopic.model.responses.answers import is_answers, read_answers
from supertopic.model.responses.base import LEAST_SCALE, MOST_SCALE, Encoded, ScalarForm, Sums
from supertopic.model.responses.crowd import MOST_COPIES
from supertopic.model.responses.gaussian import Gaussian
from supertopic.model.responses.numbers import check_numbers

# the prior of a rater in standard units: bias N(0, 1), precision Gamma(shape, rate) with mean 4
BIAS, SHAPE, RATE = 1.0, 1.5, 0.375
LEAST_PRECISION, MOST_PRECISION = 1e-4, 1e6
FEW = 10.0  # ratings; a rater with so many counts half as much for the mean bias as one with very many
ROUNDS, CLOSE = 500, 1e-7  # rounds of expectation maximisation at most; change that ends it
TRUTH, BIASES, PRECISIONS = 1 << 40, 1 << 41, 1 << 42  # paths of random numbers that nothing else takes


class Observed(NamedTuple):
    """What is known of documents, as the columns of a target's y."""

    gold: np.ndarray  # (n_docs,): NaN where it is unknown
    raters: np.ndarray  # (n_docs, most ratings of one): -1 after the last one
    ratings: np.ndarray  # the same shape


class Summary(NamedTuple):
    """The ratings of each document as one, (n_docs, 1) each."""

    mean: np.ndarray  # weighted by precision
    variance: np.ndarray  # 1 / P; 0 where the true rating is known
    log_rest: np.ndarray  # the part of the log density that does not depend on omega


@dataclass(frozen=True, eq=False)
class CrowdGaussian(Gaussian):
    """psi is the density of a document's ratings given omega, the true rating integrated out, to the power c."""

    raters: np.ndarray = field(default_factory=lambda: np.zeros(0, object), kw_only=True)  # (n_raters,): names
    n_answers: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (n_raters,): in all batches
    base: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)), kw_only=True)  # from the first ratings alone
    bias: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (n_raters,), in standard units
    precision: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (n_raters,)
    carried: np.ndarray | None = field(default=None, kw_only=True)  # (4, n_raters): what earlier batches say of raters
    has_gold: bool = field(default=False, kw_only=True)  # whether any batch had gold ratings

    learned: ClassVar[tuple[str, ...]] = (*Gaussian.learned, "raters", "n_answers", "base", "has_gold")
    title: ClassVar[str] = "supervised latent Dirichlet allocation with a Gaussian response and several raters"
    references: ClassVar[tuple[str, ...]] = ("blei2007", "zhu2013", "rodrigues2017")
    several_raters: ClassVar[bool] = True
    burn_in: ClassVar[int] = 40  # weights and raters settle together

    @property
    def scalar_form(self) -> ScalarForm | None:
        return None

    @property
    def kind(self) -> str:
        return "rating of several raters"

    @property
    def prior(self) -> np.ndarray:
        """Of each rater the mean and precision of the bias, and shape and rate of the precision: (4, n_raters)."""
        usual = np.array([0.0, 1.0 / BIAS**2, SHAPE, RATE])
        return np.tile(usual[:, None], len(self.raters)) if self.carried is None else self.carried

    # y and its columns

    def encode(
        self, y: Any, weight: np.ndarray, exposure: Any = None, classes: Any = None, sums: np.ndarray | None = None
    ) -> Encoded:
        fitted, n_docs = len(self.names) > 0, len(weight)
        answers = read_answers(y, n_docs, self.raters)
        values = check_numbers(answers.value.tolist(), len(answers.value)) if len(answers.value) else np.zeros(0)
        gold = check_numbers([np.nan if value is None else value for value in answers.gold.tolist()], n_docs)
        n_of = answers.counts(weight)
        response = replace(
            self, names=np.array(["rating"], object), raters=answers.raters,
            n_answers=n_of + (self.n_answers if fitted else 0),
            has_gold=self.has_gold or not np.isnan(gold[weight > 0]).all(),
        )  # fmt: skip
        ids, ratings = answers.rows(answers.rater), np.nan_to_num(answers.rows(values))
        seen = Observed(gold, np.where(np.isnan(ids), -1.0, ids), ratings)
        weight = weight * ((seen.raters[:, 0] >= 0) | ~np.isnan(gold))
        if not fitted and not (weight > 0).any():
            raise ValueError("y has no ratings (or weights of 0 only); some are needed.")
        if weight.max(initial=0.0) * self.c > MOST_COPIES:
            raise ValueError(f"Weights times c must be at most {MOST_COPIES:g}, got {weight.max() * self.c:g}.")
        if not fitted or sums is not None:  # else these are no training documents
            usual = replace(response, bias=np.zeros(len(n_of)), precision=np.ones(len(n_of)))
            mean = np.where(weight[:, None] > 0, usual.summary(seen).mean, 0.0)
            response, _, sums = response.standardise(mean, weight[:, None], sums)
        centre, unit = np.asarray(response.centre), np.asarray(response.unit)
        seen = Observed((gold - centre) / unit, seen.raters, np.where(seen.raters >= 0, (ratings - centre) / unit, 0.0))
        if not fitted:
            response = replace(response, base=response.from_ratings(seen, weight))
        response = replace(response, bias=response.base[0], precision=response.base[1])
        return Encoded(response, make_target(columns_of(seen), weight[:, None]), sums)

    def from_ratings(self, seen: Observed, weight: np.ndarray) -> np.ndarray:
        """Biases and precisions, (2, n_raters), from the ratings alone, by expectation maximisation."""
        n = len(self.raters)
        known = replace(self, bias=np.zeros(n), precision=np.full(n, SHAPE / RATE), sigma2=np.ones(1))
        mean, (bias_mean, bias_precision, shape, rate) = 0.0, self.prior
        docs = np.flatnonzero(weight > 0)
        seen = Observed(*(part[docs] for part in seen))
        for _ in range(ROUNDS):
            of_docs = known.summary(seen)
            share = known.sigma2 / (known.sigma2 + of_docs.variance)
            truth, spread = mean + share * (of_docs.mean - mean), share * of_docs.variance
            n_of, first, second = sum_ratings(seen.raters, seen.ratings, truth, spread, np.ones(len(docs)), n)
            bias = (known.precision * first + bias_precision * bias_mean) / (known.precision * n_of + bias_precision)
            error = second - 2.0 * bias * first + n_of * bias**2
            precision = (shape + 0.5 * n_of) / (rate + 0.5 * error)
            mean, before = float(truth.mean()), known.precision
            sigma2 = np.array([np.mean((truth - mean) ** 2 + spread)]).clip(LEAST_SCALE)
            known = replace(known, bias=bias, precision=precision.clip(LEAST_PRECISION, MOST_PRECISION), sigma2=sigma2)
            if np.abs(known.precision / before - 1.0).max(initial=0.0) < CLOSE:
                break
        return np.array([self.centred(known.bias), known.precision])

    def centred(self, bias: np.ndarray) -> np.ndarray:
        """Biases with a mean of 0, where no gold rating says what it is."""
        weight = self.n_answers / (self.n_answers + FEW)
        total = float(weight.sum())
        return bias if self.has_gold or total <= 0 else bias - float(weight @ bias) / total

    def seen(self, y: np.ndarray) -> Observed:
        n = (y.shape[1] - 1) // 2
        return Observed(*(np.ascontiguousarray(part) for part in (y[:, 0], y[:, 1 : n + 1], y[:, n + 1 :])))

    def summary(self, seen: Observed) -> Summary:
        """The ratings of each document as one rating, given the raters."""
        place, there = np.maximum(seen.raters, 0.0).astype(int), seen.raters >= 0
        tau = np.where(there, self.precision[place], 0.0)
        away = seen.ratings - self.bias[place]
        P, known = tau.sum(axis=1), ~np.isnan(seen.gold)
        mean = np.where(known, np.nan_to_num(seen.gold), (tau * away).sum(axis=1) / np.where(P > 0, P, 1.0))
        logs = 0.5 * np.log(np.where(there, tau, 1.0) / (2.0 * np.pi)) * there
        rest = (logs - 0.5 * tau * (away - mean[:, None]) ** 2).sum(axis=1)
        rest = np.where(known | (P <= 0), rest, rest + 0.5 * np.log(2.0 * np.pi / np.where(P > 0, P, 1.0)))
        variance = np.where(known, 0.0, 1.0 / np.where(P > 0, P, 1.0))
        return Summary(*(part[:, None] for part in (mean, variance, rest)))

    def strata(self, target: Target) -> np.ndarray:
        return self.level_y(target)

    def level_y(self, target: Target) -> np.ndarray:
        return np.where(target.weight > 0, self.summary(self.seen(target.y)).mean, 0.0)

    def start_columns(self, target: Target) -> np.ndarray:
        return super().start_columns(target._replace(y=self.level_y(target)))

    def encoded_truth(self, y: np.ndarray) -> np.ndarray:
        return self.summary(self.seen(y)).mean

    def truth(self, y: Any, n_docs: int) -> np.ndarray:
        """True ratings in standard units; those of ratings of raters are their means, weighted by precision."""
        if is_answers(y):
            target = self.encode(y, np.ones(n_docs)).target
            return np.where(target.weight > 0, self.encoded_truth(target.y), np.nan)
        return super().truth(y, n_docs)

    # augmentation and likelihood

    def draw_lam(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        return self.mean_lam(target, omega)

    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        return self.c * target.weight / (self.sigma2 + self.summary(self.seen(target.y)).variance)

    def kappa(self, target: Target) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(target.weight), self.level_y(target)

    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        of_docs = self.summary(self.seen(np.ascontiguousarray(y)))
        variance = self.sigma2 + of_docs.variance
        return of_docs.log_rest - 0.5 * ((of_docs.mean - omega) ** 2 / variance + np.log(2.0 * np.pi * variance))

    # the variance, and raters

    @property
    def scale(self) -> np.ndarray:
        return np.concatenate([self.sigma2, self.bias, self.precision])

    def with_scale(self, scale: np.ndarray) -> Self:
        bias, precision = np.split(np.asarray(scale)[1:], 2)
        return replace(self, sigma2=np.asarray(scale)[:1], bias=bias, precision=precision)

    def rescale(self, scale: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return np.concatenate([scale[..., :1] * factor, scale[..., 1:]], axis=-1)

    def plain(self) -> Self:
        return replace(self, c=1.0, drawn=True)

    def own_sums(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        """Sums over documents, whose true ratings are drawn: weights and squares for sigma2; n, y - t, its square."""
        seen, mass = self.seen(target.y), np.ascontiguousarray(self.c * target.weight[:, 0])
        of_docs = self.summary(seen)
        share = self.sigma2 / (self.sigma2 + of_docs.variance)
        mean, variance = omega + share * (of_docs.mean - omega), share * of_docs.variance
        truth, spread = draw_ratings(mean, variance, mass, make_key(key, TRUTH), first_doc)
        squares = float((mass[:, None] * ((truth - omega) ** 2 + spread)).sum())
        sums = sum_ratings(seen.raters, seen.ratings, truth, spread, mass, len(self.raters))
        return np.concatenate([[mass.sum(), squares], *sums])

    def draw_scale(self, sums: Sums, key: np.uint64) -> Self:
        if not self.drawn:
            return self
        (n, squares), rest = np.split(sums.own_sums([self], key)[0], [2])
        n_of, first, second = rest.reshape(3, -1)
        bias_mean, bias_precision, shape, rate = self.prior
        precision = self.precision * n_of + bias_precision
        noise = normals((1, len(n_of)), make_key(key, BIASES))[0]
        bias = (self.precision * first + bias_precision * bias_mean) / precision + noise / np.sqrt(precision)
        bias = self.centred(bias)
        error = np.maximum(second - 2.0 * bias * first + n_of * bias**2, 0.0)
        tau = gammas(shape + 0.5 * n_of, make_key(key, PRECISIONS)) / (rate + 0.5 * error)
        found = replace(self, bias=bias, precision=tau.clip(LEAST_PRECISION, MOST_PRECISION))
        if self.fixed:
            return found
        sigma2 = (self.rate + 0.5 * squares) / gammas(np.atleast_1d(self.shape + 0.5 * n), key)
        return replace(found, sigma2=sigma2.clip(LEAST_SCALE, MOST_SCALE))

    def with_carried_scale(self, draws: np.ndarray, n_docs: np.ndarray, discount: float) -> Self:
        found = super().with_carried_scale(draws[:, :1], n_docs, discount)
        bias, tau = np.split(draws[:, 1:], 2, axis=1)
        mean, variance = tau.mean(axis=0), np.maximum(tau.var(axis=0), LEAST_SCALE**2)
        # with n ratings the variance of a bias is at least 1 / (n tau); that of a few draws may be smaller by chance
        most = 1.0 / BIAS**2 + self.n_answers * mean
        precision = np.maximum(discount * np.minimum(1.0 / np.maximum(bias.var(axis=0), 1e-12), most), 1.0 / BIAS**2)
        shape = np.clip(discount * mean**2 / variance, SHAPE, SHAPE + 0.5 * self.n_answers)
        carried = np.array([bias.mean(axis=0), precision, shape, shape / mean])
        return replace(found, carried=carried, bias=carried[0], precision=mean)

    def log_prior(self) -> float:
        if not self.drawn:
            return 0.0
        mean, precision, a, b = self.prior
        of_bias = 0.5 * np.log(precision / (2.0 * np.pi)) - 0.5 * precision * (self.bias - mean) ** 2
        of_tau = a * np.log(b) - gammaln(a) + (a - 1.0) * np.log(self.precision) - b * self.precision
        return super().log_prior() + float(of_bias.sum() + of_tau.sum())

    def check_scale(self, draws: np.ndarray, n_columns: int) -> None:
        n = len(self.raters)
        if draws.shape[2] != 1 + 2 * n or not (draws[:, :, :1] > 0).all() or not (draws[:, :, n + 1 :] > 0).all():
            raise ValueError("The variance, or the raters' biases and precisions, cannot be right.")

    def check_fitted(self, n_columns: int) -> None:
        super().check_fitted(n_columns)
        n = len(self.raters)
        sound = n_columns == 1 and self.raters.ndim == 1 and self.n_answers.shape == (n,) and self.base.shape == (2, n)
        if not sound or not (self.base[1] > 0).all() or not (self.n_answers >= 0).all():
            raise ValueError("The raters cannot be right.")

    def infer(self, target: Target, omegas: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the standard deviation of each true rating given the texts and the ratings, (n_docs, 1) each."""
        means, squares = [], []
        for omega, scale in zip(omegas, scales, strict=True):
            drawn = self.with_scale(scale)
            of_docs = drawn.summary(drawn.seen(target.y))
            unknown = target.weight <= 0
            share = np.where(unknown, 0.0, drawn.sigma2 / (drawn.sigma2 + of_docs.variance))
            means.append(omega + share * (of_docs.mean - omega))
            squares.append(means[-1] ** 2 + np.where(unknown, drawn.sigma2, share * of_docs.variance))
        mean = np.mean(means, axis=0)
        sd = np.sqrt(np.maximum(np.mean(squares, axis=0) - mean**2, 0.0))
        return self.offset_in_units(mean), self.unit * sd


def columns_of(seen: Observed) -> np.ndarray:
    return np.column_stack([seen.gold, seen.raters, seen.ratings])
