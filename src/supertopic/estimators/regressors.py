"""Ratings and counts: SLDARegressor (Gaussian) and SLDACountRegressor (negative binomial)."""

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtr
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted

from supertopic.estimators.beliefs import MOST_POINT, constants, seed_places
from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.supervised import SupervisedTopicModel, by_chain, largest
from supertopic.estimators.validation import MOST, check_level, check_number, log_exposure, without_na
from supertopic.report.diagnostics import average
from supertopic.sampling.responses import LEAST_SCALE, MOST_SCALE, Gaussian, NegativeBinomial, Response
from supertopic.sampling.state import Target, make_target

SLOW = 1000.0  # mean counts above this make lambda so precise that eta moves in small steps only


class TopicRegressor(RegressorMixin, SupervisedTopicModel):
    """What regressors have in common: y is one or several columns of numbers, NaN where unknown."""

    multioutput_: bool
    response_names_: np.ndarray

    def _check_y(self, y: Any, weight: np.ndarray, going_on: bool) -> tuple[np.ndarray, np.ndarray]:
        """y as (n_docs, R) with 0 where it is unknown, and its weights with 0 there."""
        if y is None:
            y = np.full((len(weight), len(self.response_names_)), np.nan)
            return np.nan_to_num(y), np.zeros_like(y)
        names = getattr(y, "columns", [getattr(y, "name", None)])
        y = check_array(
            without_na(y),
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite="allow-nan",
            ensure_min_samples=0,
            input_name="y",
        )
        if y.ndim > 2:
            raise ValueError(f"y must have one or two dimensions, got shape {y.shape}.")
        if len(y) != len(weight):
            raise ValueError(f"X has {len(weight)} documents but y has {len(y)}; they must be equally many.")
        if going_on and (self.multioutput_, len(self.response_names_)) != (y.ndim == 2, y.reshape(len(y), -1).shape[1]):
            raise ValueError(f"y has shape {y.shape}, but the batches before had {len(self.response_names_)} columns.")
        self.multioutput_ = y.ndim == 2
        y = y.reshape(len(y), -1)
        if going_on:
            names = self.response_names_
        if len(names) != y.shape[1] or any(name is None for name in names):
            names = range(y.shape[1])
        self.response_names_ = np.array([str(name) for name in names], dtype=object)
        weight = ~np.isnan(y) * weight[:, None]
        if not going_on and not (weight > 0).any(axis=0).all():
            raise ValueError("Input y contains NaN only (or weights of 0) in some column; some of it must be known.")
        return np.nan_to_num(y), weight

    def _points(self, n_columns: int) -> np.ndarray | None:
        if self.seeds is None or not isinstance(self.seed_weights, dict):
            return None
        points, places = np.zeros((2, n_columns, self.n_topics)), seed_places(self.seeds, self.seed_weights)
        for topic, number in self.seed_weights.items():
            if not isinstance(number, Real) or isinstance(number, bool) or not np.isfinite(float(number)):
                raise ValueError(f"seed_weights of topic {topic!r} must be a number, got {number!r}.")
            point = float(number) / constants(self)[1]
            if np.abs(point).max() > MOST_POINT:
                raise ValueError(
                    f"seed_weights of topic {topic!r} is {number!r}, more than {MOST_POINT:g} standard deviations of y "
                    "(of a count, on the log scale)."
                )
            points[:, :, places[topic]] = point
        return points

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """(n_docs, R) as y was: a vector where y was one."""
        return values if self.multioutput_ else values[:, 0]

    @abstractmethod
    def _likelihood(self) -> tuple[Response, Callable[[np.ndarray], np.ndarray]]:
        """The response, whose own parameter is any, and the mean that follows from omega."""

    def _log_predictive(self, X: Any, y: Any, covariates: Any, exposure: Any = None) -> np.ndarray:
        response, y = self._likelihood()[0], np.asarray(y, dtype=float).reshape(len(y), -1)
        return self._shaped(
            self._foretell(
                lambda omegas, scales, docs: response.log_predictive(y[docs], omegas, scales), X, covariates, exposure
            )
        )

    def _losses(self, X: Any, y: Any, covariates: Any = None, exposure: Any = None) -> tuple[np.ndarray, list[float]]:
        """The negative log density of each draw, (chain, draw), and R2 of each chain."""
        response, mean_of = self._likelihood()
        y, n_chains = np.asarray(y, dtype=float).reshape(len(y), -1), len(self._eta)

        def sum_up(omegas: np.ndarray, scales: np.ndarray, docs: slice) -> Any:
            pairs = zip(omegas, scales, strict=True)
            losses = [-response.with_scale(scale).log_density(y[docs], omega).sum(axis=1) for omega, scale in pairs]
            return np.array(losses).T, by_chain(mean_of(omegas), n_chains)

        losses, means = self._foretell(sum_up, X, covariates, exposure)
        scores = [float(r2_score(y, means[:, chain])) for chain in range(n_chains)]
        return losses.mean(axis=0).reshape(n_chains, -1), scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # the checks' data are not counts of words
        return tags


@documented
class SLDARegressor(TopicRegressor):
    """Supervised LDA with a Gaussian response: topics that explain the words and a rating, or several.

    y is standardised inside, and all that is given back is in the user's units. The model of Blei and McAuliffe (2007)
    with its weights drawn.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=8.0
        Weight of the response against the words: psi = N(y | omega, sigma2)**c.
    sigma2 : {"variance", "drawn"} or float, default="variance"
        The variance of y around omega while topics are learned: that of y itself, or drawn with an inverse-gamma prior,
        or a known one in y's units squared. Draw it with c = 1 only: with more the topics can follow y so closely that
        it goes to 0. For predictions it is drawn in any case, unless it is known.
    ...

    Attributes
    ----------
    intercept_, empty_intercept_ : ndarray of shape (n_columns,)
        The mean of y, and that of documents without known words.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of eta, from hidden documents: intercept_ + coef_[0, k] is the rating of a document that is all
        topic k.
    response_names_ : ndarray of shape (n_columns,)
        The names of y's columns, or their numbers.
    sigma2_draws_ : ndarray of shape (n_chains, n_draws, n_columns)
        The draws of sigma2 that predictions use.
    ...
    """

    sigma2: Any

    def __init__(
        self, n_topics: int = 20, *, c: float = 8.0, sigma2: float | str = "variance", calibrate: bool = True,
        words: bool = True, hidden: float | str = "auto", alpha: ArrayLike | None = None, beta: float = 0.01,
        optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None, seed_strength: float = 1.0,
        seed_weights: Any = "auto", prior: Any = None, prior_weights: bool = False, discount: float = 1.0,
        burn_in: int = 60, n_draws: int = 20, n_chains: int = 4, sampler: str = "auto", predict_sweeps: int = 40,
        n_jobs: int | None = None, device: str = "cpu", engine: str = "threads", random_state: Any = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("sigma2", self.sigma2, ("variance", "drawn"))

    def _encode(
        self, y: Any, weight: np.ndarray, exposure: Any, classes: Any = None, going_on: bool = False
    ) -> tuple[Response, Target]:
        y, weight = self._check_y(y, weight, going_on)
        if not going_on:
            self.intercept_ = np.average(y, axis=0, weights=weight)
            deviation = np.abs(y - self.intercept_).max(axis=0, where=weight > 0, initial=0.0)  # squares might overflow
            unit = np.where(deviation > 0, deviation, 1.0)
            sd = unit * np.sqrt(np.average(((y - self.intercept_) / unit) ** 2, axis=0, weights=weight))
            self.unit_ = np.where(sd > 0, sd, 1.0)
        given = not isinstance(self.sigma2, str)
        sigma2 = self.sigma2 / self.unit_ / self.unit_ if given else np.ones(len(self.unit_))
        standard = np.where(weight > 0, (y - self.intercept_) / self.unit_, 0.0)
        sigma2 = np.clip(sigma2, LEAST_SCALE, MOST_SCALE)
        response = Gaussian(float(self.c), sigma2, drawn=self.sigma2 == "drawn", given=given)
        return response, make_target(standard, weight)

    def _mean(self, target: Target, sums: np.ndarray) -> np.ndarray:
        return np.zeros(target.y.shape[1])  # y is standardised

    def _link(self, mean: np.ndarray) -> np.ndarray:
        return mean

    def _constant_in_units(self, constant: np.ndarray) -> np.ndarray:
        return self.intercept_ + self.unit_ * constant

    def _in_units(self, eta: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return eta * self.unit_[:, None], np.maximum(
            scale * self.unit_**2, np.finfo(float).tiny
        )  # never 0, however small the unit

    @property
    def sigma2_draws_(self) -> np.ndarray:
        check_is_fitted(self, "_word_topic")
        return self._calibrated[1]

    def _surprise(self, X: Any, y: Any, beside: dict[str, Any]) -> np.ndarray:
        mean, std = self.predict(X, return_std=True, **beside)
        return (np.abs(np.asarray(y, dtype=float) - mean) / std).reshape(len(mean), -1).max(axis=1)

    def predict(
        self, X: ArrayLike, return_std: bool = False, *, covariates: ArrayLike | None = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean rating of each document and, if asked for, its standard deviation.

        The latter is that of a new rating: the spread of omega over the draws and chains, and sigma2.
        """
        check_is_fitted(self, "_word_topic")
        if not return_std:
            return self._shaped(self._foretell(lambda omegas, *_: average(omegas), X, covariates))

        def sum_up(omegas: np.ndarray, sigma2: np.ndarray, _: Any) -> Any:
            mean = average(omegas)
            return mean, np.sqrt(average([(omega - mean) ** 2 for omega in omegas]) + average(sigma2))

        mean, std = self._foretell(sum_up, X, covariates)
        return self._shaped(mean), self._shaped(std)

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ratings between which a new rating lies with the given probability: lower and upper.

        They are quantiles of the mixture of the normals of all draws and chains.
        """
        check_is_fitted(self, "_word_topic")
        check_level(level)
        lower, upper = self._foretell(
            lambda omegas, sigma2, _: ends(normal_quantile, omegas, sigma2, level), X, covariates
        )
        return self._shaped(lower), self._shaped(upper)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, covariates: ArrayLike | None = None
    ) -> float:
        """R2 of the mean ratings."""
        return float(r2_score(y, self.predict(X, covariates=covariates), sample_weight=sample_weight))

    def log_predictive(self, X: ArrayLike, y: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """The log density of each y under the mean over all draws: how well ratings are foretold, spread included."""
        return self._log_predictive(X, y, covariates)

    def _likelihood(self) -> tuple[Response, Callable[[np.ndarray], np.ndarray]]:
        return Gaussian(1.0, np.ones(1)), np.positive


@documented
class SLDACountRegressor(TopicRegressor):
    """Supervised LDA with a negative binomial response: topics that explain the words and a count.

    The mean is exposure * exp(intercept_ + omega), the variance mean + mean**2 / r.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=1.0
        Weight of the response against the words: the likelihood to the power c.
    dispersion : "drawn" or float, default="drawn"
        r. By default it is drawn, by slice sampling with a gamma prior. Large is Poisson.
    ...

    Attributes
    ----------
    intercept_, empty_intercept_ : ndarray of shape (n_columns,)
        The log of the mean count, or of counts by exposure, and that of documents without known words.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of eta, from hidden documents: exp(coef_[0, k]) is how many times the mean count a document has
        that is all topic k.
    response_names_ : ndarray of shape (n_columns,)
        The names of y's columns, or their numbers.
    dispersion_draws_ : ndarray of shape (n_chains, n_draws, n_columns)
        The draws of r that predictions use.
    ...
    """

    dispersion: Any

    def __init__(
        self, n_topics: int = 20, *, c: float = 1.0, dispersion: float | str = "drawn", calibrate: bool = True,
        words: bool = True, hidden: float | str = "auto", alpha: ArrayLike | None = None, beta: float = 0.01,
        optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None, seed_strength: float = 1.0,
        seed_weights: Any = "auto", prior: Any = None, prior_weights: bool = False, discount: float = 1.0,
        burn_in: int = 60, n_draws: int = 20, n_chains: int = 4, sampler: str = "auto", predict_sweeps: int = 40,
        n_jobs: int | None = None, device: str = "cpu", engine: str = "threads", random_state: Any = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("dispersion", self.dispersion, ("drawn",))

    @documented_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, exposure: ArrayLike | None = None,
        covariates: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> "SLDACountRegressor":  # fmt: skip
        """Learn topics and weights from word counts and a count, a whole number >= 0, for each document.

        Parameters
        ----------
        exposure : array-like of shape (n_docs,), optional
            What the mean is proportional to, such as the time for which each document was counted.
        ...
        """
        more: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "exposure": exposure}
        return self._fit(X, y, sample_weight, covariates, feature_names, **more)

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        exposure: ArrayLike | None = None, covariates: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> "SLDACountRegressor":  # fmt: skip
        """Learn from one more batch of documents, as the other estimators do.

        Parameters
        ----------
        exposure : array-like of shape (n_docs,), optional
            As in `fit`.
        ...
        """
        more: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "exposure": exposure}
        return self._partial_fit(X, y, sample_weight, covariates, feature_names, **more)

    def _encode(
        self, y: Any, weight: np.ndarray, exposure: Any, classes: Any = None, going_on: bool = False
    ) -> tuple[Response, Target]:
        y, weight = self._check_y(y, weight, going_on)
        if (y < 0).any() or (y != np.floor(y)).any():
            wrong = y[(y < 0) | (y != np.floor(y))][0]
            raise ValueError(f"y must hold counts, whole numbers >= 0, got {wrong:g}; SLDARegressor takes any number.")
        if (y * weight).max() * self.c > MOST:
            raise ValueError(f"Counts times weight times c must be at most {MOST:g}, got {(y * weight).max():g}.")
        self.exposed_ = exposure is not None
        offset = log_exposure(exposure, len(y))
        drawn = self.dispersion == "drawn"
        r = np.full(y.shape[1], 1.0 if drawn else float(self.dispersion)).clip(LEAST_SCALE, MOST_SCALE)
        response = NegativeBinomial(float(self.c), r, drawn=drawn, given=not drawn)
        return response, make_target(y, weight, offset)

    def _mean(self, target: Target, sums: np.ndarray) -> np.ndarray:
        half = 0.5 * largest(target.weight)  # half a count, so that all counts may be 0
        mean = (sums[0] + half) / sums[1]
        if mean.max() > SLOW:
            warnings.warn(
                f"The mean count is {mean.max():.3g}. Above {SLOW:g} the sampler needs many more iterations than "
                "usual; SLDARegressor on np.log1p(y) is the better model of such counts.",
                stacklevel=5,
            )
        return mean

    def _link(self, mean: np.ndarray) -> np.ndarray:
        return np.log(mean)

    @property
    def dispersion_draws_(self) -> np.ndarray:
        check_is_fitted(self, "_word_topic")
        return self._calibrated[1]

    def _means(self, omegas: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        return np.exp(omegas), self._column_names()

    def _surprise(self, X: Any, y: Any, beside: dict[str, Any]) -> np.ndarray:
        lower, upper = self.predict_interval(X, 0.683, **beside)  # about a standard deviation to each side
        mean = self.predict(X, **beside)
        away = np.asarray(y, dtype=float) - mean
        usual = np.maximum(np.where(away > 0, upper - mean, mean - lower), 0.5)
        return (np.abs(away) / usual).reshape(len(mean), -1).max(axis=1)

    def predict(
        self, X: ArrayLike, *, exposure: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> np.ndarray:
        """The mean count of each document."""
        self._check_exposed(exposure)
        return self._shaped(self._foretell(lambda omegas, *_: average(np.exp(omegas)), X, covariates, exposure))

    def predict_interval(
        self,
        X: ArrayLike,
        level: float = 0.9,
        *,
        exposure: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The counts between which a new count lies with at least the given probability: lower and upper.

        They are quantiles of the mixture of the negative binomials of all draws and chains.
        """
        check_is_fitted(self, "_word_topic")
        check_level(level)
        self._check_exposed(exposure)
        lower, upper = self._foretell(
            lambda omegas, r, _: ends(quantile, np.exp(omegas), r, level), X, covariates, exposure
        )
        return self._shaped(lower), self._shaped(upper)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        exposure: ArrayLike | None = None, covariates: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """R2 of the mean counts."""
        predicted = self.predict(X, exposure=exposure, covariates=covariates)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def log_predictive(
        self, X: ArrayLike, y: ArrayLike, *, exposure: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> np.ndarray:
        """The log probability of each y under the mean over all draws: how well counts are foretold."""
        self._check_exposed(exposure)
        return self._log_predictive(X, y, covariates, exposure)

    def _check_exposed(self, exposure: Any) -> None:
        check_is_fitted(self, "_word_topic")
        if getattr(self, "exposed_", False) and exposure is None:  # a file of version 0.1 does not tell
            raise ValueError(
                "The model was fitted with an exposure; pass exposure= here, too (1 for each document gives rates)."
            )

    def _losses(self, X: Any, y: Any, covariates: Any = None, exposure: Any = None) -> Any:
        self._check_exposed(exposure)
        return super()._losses(X, y, covariates, exposure)

    def _likelihood(self) -> tuple[Response, Callable[[np.ndarray], np.ndarray]]:
        return NegativeBinomial(1.0, np.ones(1)), np.exp

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def ends(
    quantile: Callable[..., np.ndarray], means: np.ndarray, scales: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the central interval of a mixture, whose draws have these means (n_draws, n_docs, R) and scales."""
    draws = list(zip(means, scales, strict=True))
    return quantile(draws, (1 - level) / 2), quantile(draws, (1 + level) / 2)


def normal_quantile(draws: list[tuple[np.ndarray, np.ndarray]], q: float) -> np.ndarray:
    """The numbers (n_docs, R) below which a draw from the normals lies with probability q, on average; by bisection."""
    draws = [(mean, np.sqrt(sigma2)) for mean, sigma2 in draws]
    low = np.min([mean - 40.0 * sd for mean, sd in draws], axis=0)
    high = np.max([mean + 40.0 * sd for mean, sd in draws], axis=0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = average([ndtr((middle - mean) / sd) for mean, sd in draws]) >= q
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return 0.5 * (low + high)


def quantile(draws: list[tuple[np.ndarray, np.ndarray]], q: float) -> np.ndarray:
    """The smallest counts (n_docs, R) that are not exceeded with probability q, on average over the draws."""

    def below(count: Any) -> Any:
        return average([betainc(r, count + 1.0, r / (r + mean)) for mean, r in draws])

    low, high = np.full(draws[0][0].shape, -1.0), np.ones(draws[0][0].shape)
    while (short := below(high) < q).any():
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2.0)
        enough = below(middle) >= q
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
