"""Ratings and counts: SLDARegressor (Gaussian) and SLDACountRegressor (negative binomial)."""

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted

from supertopic.model import LEAST, MOST, check_number, logger
from supertopic.responses import LEAST_SCALE, MOST_SCALE, Gaussian, NegativeBinomial, Response, make_target
from supertopic.supervised import SupervisedTopicModel, average, check_level

SLOW = 1000.0  # mean counts above this make lambda so precise that eta moves in small steps only


class TopicRegressor(RegressorMixin, SupervisedTopicModel):
    """What regressors have in common: y is one or several columns of numbers, NaN where unknown."""

    _path = (1.0, 2.0, 4.0, 8.0, 16.0)

    def _check_y(self, y, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y as (n_docs, R) with 0 where it is unknown, and its weights with 0 there."""
        y = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", ensure_min_samples=0, input_name="y"
        )
        if y.ndim > 2:
            raise ValueError(f"y must have one or two dimensions, got shape {y.shape}.")
        if len(y) != len(weight):
            raise ValueError(f"X has {len(weight)} documents but y has {len(y)}; they must be equally many.")
        self.multioutput_ = y.ndim == 2
        y = y.reshape(len(y), -1)
        weight = ~np.isnan(y) * weight[:, None]
        if not (weight > 0).any(axis=0).all():
            raise ValueError("Input y contains NaN only (or weights of 0) in some column; some of it must be known.")
        return np.nan_to_num(y), weight

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """(n_docs, R) as y was: a vector where y was one."""
        return values if self.multioutput_ else values[:, 0]

    @abstractmethod
    def _likelihood(self, X, exposure) -> tuple[Response, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The response, the known part of its omega, and the mean that follows from omega."""

    def _log_predictive(self, X, y, exposure, covariates) -> np.ndarray:
        check_is_fitted(self, "_word_topic")
        response, offset, _ = self._likelihood(X, exposure)
        y = np.asarray(y, dtype=float).reshape(len(y), -1)
        logs = [
            response.with_scale(scale).log_density(y, offset + omega) for omega, scale in self._omegas(X, covariates)
        ]
        return self._shaped(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))

    def _losses(self, X, y, exposure=None, covariates=None) -> tuple[np.ndarray, list[float]]:
        """The negative log density of each draw, (chain, draw), and R2 of each chain."""
        response, offset, link = self._likelihood(X, exposure)
        y, shape = np.asarray(y, dtype=float).reshape(len(y), -1), self._eta.shape[:2]
        losses, means = [], []
        for omega, scale in self._omegas(X, covariates):
            losses.append(-response.with_scale(scale).log_density(y, offset + omega).sum(axis=1).mean())
            means.append(link(offset + omega))
        chains = np.array(means).reshape(*shape, *y.shape).mean(axis=1)
        return np.array(losses).reshape(shape), [float(r2_score(y, mean)) for mean in chains]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # the checks' data are not counts of words
        return tags


class SLDARegressor(TopicRegressor):
    """Supervised LDA with a Gaussian response: topics that explain the words and a rating, or several.

    y is standardised inside, and all that is given back is in the user's units. The model of Blei and McAuliffe (2007)
    with its weights drawn.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float or "auto", default=8.0
        Weight of the response against the words: psi = N(y | omega, sigma2)**c.
    sigma2 : {"variance", "drawn"} or float, default="variance"
        The variance of y around omega while topics are learned: that of y itself, or drawn with an inverse-gamma prior,
        or a known one in y's units squared. Draw it with c = 1 only: with more the topics can follow y so closely that
        it goes to 0. For predictions it is drawn in any case, unless it is known.
    others :
        As in SLDAClassifier.

    Attributes
    ----------
    intercept_ : ndarray of shape (n_columns,)
        The mean of y.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of eta: intercept_ + coef_[0, k] is the rating of a document that is all topic k.
    calibrated_draws_, coef_draws_ : ndarray of shape (n_chains, n_draws, n_columns, n_topics)
        The draws of eta that predictions use, and those of the chains. Topics of different chains are not matched.
    sigma2_draws_ : ndarray of shape (n_chains, n_draws, n_columns)
        The draws of sigma2 that predictions use.
    others :
        As in SLDAClassifier.
    """

    sigma2: Any

    def __init__(
        self, n_topics=20, *, c=8.0, sigma2="variance", calibrate=True, alpha=1.0, beta=0.01, optimize_priors=False,
        nu2=1.0, burn_in=100, n_draws=20, n_chains=1, sampler="auto", predict_sweeps=40, n_jobs=None, random_state=None,
        verbose=False,
    ):  # fmt: skip
        self._store(locals())

    def _check_parameters(self):
        super()._check_parameters()
        check_number("sigma2", self.sigma2, ("variance", "drawn"))

    def _encode(self, y, weight, exposure):
        y, weight = self._check_y(y, weight)
        self.intercept_ = np.average(y, axis=0, weights=weight)
        deviation = np.abs(y - self.intercept_).max(axis=0, where=weight > 0, initial=0.0)  # squares might overflow
        unit = np.where(deviation > 0, deviation, 1.0)
        sd = unit * np.sqrt(np.average(((y - self.intercept_) / unit) ** 2, axis=0, weights=weight))
        self.unit_ = np.where(sd > 0, sd, 1.0)
        known = not isinstance(self.sigma2, str)
        sigma2 = self.sigma2 / self.unit_ / self.unit_ if known else np.ones(len(sd))
        standard = np.where(weight > 0, (y - self.intercept_) / self.unit_, 0.0)
        sigma2 = np.clip(sigma2, LEAST_SCALE, MOST_SCALE)
        response = Gaussian(self._c(), sigma2, drawn=self.sigma2 == "drawn", known=known)
        return response, make_target(standard, weight)

    def _in_units(self, eta, scale):
        return eta * self.unit_[:, None], scale * self.unit_**2

    @property
    def sigma2_draws_(self) -> np.ndarray:
        check_is_fitted(self, "_word_topic")
        return self._calibrated[1]

    def predict(
        self, X: ArrayLike, return_std: bool = False, *, covariates: ArrayLike | None = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean rating of each document and, if asked for, its standard deviation.

        The latter is that of a new rating: the spread of omega over the draws and chains, and sigma2.
        """
        draws, noise = zip(*self._omegas(X, covariates), strict=True)
        mean = average(draws)
        predicted = self._shaped(self.intercept_ + mean)
        if not return_std:
            return predicted
        return predicted, self._shaped(np.sqrt(average([(omega - mean) ** 2 for omega in draws]) + average(noise)))

    def log_predictive(self, X: ArrayLike, y: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """The log density of each y under the mean over all draws: how well ratings are foretold, spread included."""
        return self._log_predictive(X, y, None, covariates)

    def _likelihood(self, X, exposure):
        return Gaussian(1.0, np.ones(1)), self.intercept_, np.positive


class SLDACountRegressor(TopicRegressor):
    """Supervised LDA with a negative binomial response: topics that explain the words and a count.

    The mean is exposure * exp(intercept_ + omega), the variance mean + mean**2 / r.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float or "auto", default=1.0
        Weight of the response against the words: the likelihood to the power c.
    dispersion : "drawn" or float, default="drawn"
        r. By default it is drawn, by slice sampling with a gamma prior. Large is Poisson.
    others :
        As in SLDAClassifier.

    Attributes
    ----------
    intercept_ : ndarray of shape (n_columns,)
        The log of the mean count, or of counts by exposure.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of eta: exp(coef_[0, k]) is how many times the mean count a document has that is all topic k.
    calibrated_draws_, coef_draws_ : ndarray of shape (n_chains, n_draws, n_columns, n_topics)
        The draws of eta that predictions use, and those of the chains. Topics of different chains are not matched.
    dispersion_draws_ : ndarray of shape (n_chains, n_draws, n_columns)
        The draws of r that predictions use.
    others :
        As in SLDAClassifier.
    """

    dispersion: Any

    def __init__(
        self, n_topics=20, *, c=1.0, dispersion="drawn", calibrate=True, alpha=1.0, beta=0.01, optimize_priors=False,
        nu2=1.0, burn_in=100, n_draws=20, n_chains=1, sampler="auto", predict_sweeps=40, n_jobs=None, random_state=None,
        verbose=False,
    ):  # fmt: skip
        self._store(locals())

    def _check_parameters(self):
        super()._check_parameters()
        check_number("dispersion", self.dispersion, ("drawn",))

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, exposure: ArrayLike | None = None,
        covariates: ArrayLike | None = None, checkpoint: str | os.PathLike | None = None, checkpoint_every: float = 60,
    ) -> "SLDACountRegressor":  # fmt: skip
        """Learn topics and weights from word counts and a count, a whole number >= 0, for each document.

        Parameters
        ----------
        exposure : array-like of shape (n_docs,), optional
            What the mean is proportional to, such as the time for which each document was counted.
        X, y, sample_weight, covariates, checkpoint, checkpoint_every :
            As in SLDARegressor.
        """
        return self._fit(X, y, sample_weight, covariates, checkpoint, checkpoint_every, exposure)

    def _encode(self, y, weight, exposure):
        y, weight = self._check_y(y, weight)
        if (y < 0).any() or (y != np.floor(y)).any():
            wrong = y[(y < 0) | (y != np.floor(y))][0]
            raise ValueError(f"y must hold counts, whole numbers >= 0, got {wrong:g}; SLDARegressor takes any number.")
        if (y * weight).max() * self._largest_c() > MOST:
            raise ValueError(f"Counts times weight times c must be at most {MOST:g}, got {(y * weight).max():g}.")
        offset = log_exposure(exposure, len(y))
        total = (weight * y).sum(axis=0) + 0.5 * weight.max(axis=0)  # half a count, so that all counts may be 0
        self.intercept_ = np.log(total / (weight * np.exp(offset)).sum(axis=0))
        if self.intercept_.max() > np.log(SLOW):
            logger.warning(
                "The mean count is %.3g. Above %g the sampler needs many more iterations than usual; "
                "SLDARegressor on np.log1p(y) is the better model of such counts.", np.exp(self.intercept_.max()), SLOW,
            )  # fmt: skip
        drawn = self.dispersion == "drawn"
        r = np.full(y.shape[1], 1.0 if drawn else float(self.dispersion)).clip(LEAST_SCALE, MOST_SCALE)
        response = NegativeBinomial(self._c(), r, drawn=drawn, known=not drawn)
        return response, make_target(y, weight, offset + self.intercept_)

    @property
    def dispersion_draws_(self) -> np.ndarray:
        check_is_fitted(self, "_word_topic")
        return self._calibrated[1]

    def predict(
        self, X: ArrayLike, *, exposure: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> np.ndarray:
        """The mean count of each document."""
        check_is_fitted(self, "_word_topic")
        offset = self.intercept_ + log_exposure(exposure, _num_samples(X))
        return self._shaped(average([np.exp(offset + omega) for omega, _ in self._omegas(X, covariates)]))

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
        offset = self.intercept_ + log_exposure(exposure, _num_samples(X))
        draws = [(np.exp(offset + omega), r) for omega, r in self._omegas(X, covariates)]
        ends = [quantile(draws, q) for q in ((1 - level) / 2, (1 + level) / 2)]
        return self._shaped(ends[0]), self._shaped(ends[1])

    def log_predictive(
        self, X: ArrayLike, y: ArrayLike, *, exposure: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> np.ndarray:
        """The log probability of each y under the mean over all draws: how well counts are foretold."""
        return self._log_predictive(X, y, exposure, covariates)

    def _likelihood(self, X, exposure):
        offset = self.intercept_ + log_exposure(exposure, _num_samples(X))
        return NegativeBinomial(1.0, np.ones(1)), offset, np.exp

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def log_exposure(exposure: ArrayLike | None, n_docs: int) -> np.ndarray:
    """The log of the exposure as a column, or 0."""
    if exposure is None:
        return np.zeros((n_docs, 1))
    values = check_array(exposure, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="exposure")
    values = np.ravel(values)
    if len(values) != n_docs:
        raise ValueError(f"X has {n_docs} documents but exposure has {len(values)}; they must be equally many.")
    wrong = values[(values < LEAST) | (values > MOST)]
    if len(wrong):
        raise ValueError(f"exposure must be from {LEAST:g} to {MOST:g}, got {wrong[0]:g}.")
    return np.log(values)[:, None]


def quantile(draws: list[tuple[np.ndarray, np.ndarray]], q: float) -> np.ndarray:
    """The smallest counts (n_docs, R) that are not exceeded with probability q, on average over the draws."""

    def below(count):
        return average([betainc(r, count + 1.0, r / (r + mean)) for mean, r in draws])

    low, high = np.full(draws[0][0].shape, -1.0), np.ones(draws[0][0].shape)
    while (short := below(high) < q).any():
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2.0)
        enough = below(middle) >= q
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
