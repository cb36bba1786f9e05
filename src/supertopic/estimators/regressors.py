"""Ratings and counts: SLDARegressor (Gaussian) and SLDACountRegressor (negative binomial)."""

import os
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted

from supertopic.corpus.source import Target, make_target
from supertopic.estimators.base import consistent
from supertopic.estimators.beliefs import MOST_POINT, constants, seed_places
from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.supervised import SupervisedTopicModel, by_chain
from supertopic.estimators.validation import MOST, check_level, check_number, log_exposure, without_na
from supertopic.model.responses import (
    LEAST_SCALE,
    MOST_LOG,
    MOST_SCALE,
    Gaussian,
    NegativeBinomial,
    Response,
    average,
)


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

    def _given(self, y: Any, n_docs: int) -> np.ndarray:
        """Responses that predictions are compared with, (n_docs, R), in the units in which they are modelled."""
        y = check_array(
            without_na(y), dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", ensure_min_samples=0,
            input_name="y",
        )  # fmt: skip
        if len(y) != n_docs:
            raise ValueError(f"X has {n_docs} documents but y has {len(y)}; they must be equally many.")
        y, n_columns = y.reshape(len(y), -1), len(self.response_names_)
        if y.shape[1] != n_columns:
            raise ValueError(f"y has {y.shape[1]} columns, but the model was fitted with {n_columns}.")
        centre, unit = self._constants()
        return (y - centre) / unit

    def _compare(self, sum_up: Callable[..., Any], X: Any, covariates: Any, exposure: Any) -> Any:
        """What follows from a response and draws of its omega and its own parameter, in the units of the model."""
        check_is_fitted(self, "_word_topic")
        response, (centre, unit) = self._response(len(self.response_names_)).plain(), self._constants()

        def standard(omegas: np.ndarray, scales: np.ndarray, docs: slice) -> Any:
            return sum_up(response, (omegas - centre) / unit, scales, docs)

        return self._foretell(standard, X, covariates, exposure)

    def _log_predictive(self, X: Any, y: Any, covariates: Any, exposure: Any = None) -> np.ndarray:
        given = self._given(y, self._new_counts(X).shape[0])
        known = np.nan_to_num(given)
        found = self._compare(
            lambda response, omegas, scales, docs: response.log_predictive(known[docs], omegas, scales),
            X, covariates, exposure,
        )  # fmt: skip
        return self._shaped(np.where(np.isnan(given), np.nan, found - np.log(self._constants()[1])))

    def _predict_interval(
        self, X: Any, level: float, covariates: Any, exposure: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "_word_topic")
        check_level(level)
        ends = self._compare(
            lambda response, omegas, scales, _: tuple(
                response.quantile(q, omegas, scales) for q in ((1 - level) / 2, (1 + level) / 2)
            ),
            X, covariates, exposure,
        )  # fmt: skip
        centre, unit = self._constants()
        lower, upper = (self._shaped(centre + unit * end) for end in ends)
        return lower, upper

    def _losses(self, X: Any, y: Any, covariates: Any = None, exposure: Any = None) -> tuple[np.ndarray, list[float]]:
        """The negative log density of each draw, (chain, draw), and R2 of each chain."""
        given, n_chains = self._given(y, self._new_counts(X).shape[0]), len(self._eta)

        def sum_up(response: Response, omegas: np.ndarray, scales: np.ndarray, docs: slice) -> Any:
            pairs = zip(omegas, scales, strict=True)
            losses = [-response.with_scale(scale).log_density(given[docs], omega).sum(axis=1) for omega, scale in pairs]
            return np.array(losses).T, by_chain(response.mean(omegas), n_chains)

        losses, means = self._compare(sum_up, X, covariates, exposure)
        losses = losses + np.sum(np.log(self._constants()[1]))
        scores = [float(r2_score(given, means[:, chain])) for chain in range(n_chains)]
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
        if going_on:
            self._move_centre(y, weight)
        else:
            self.intercept_ = np.average(y, axis=0, weights=weight)
            deviation = np.abs(y - self.intercept_).max(axis=0, where=weight > 0, initial=0.0)  # squares might overflow
            unit = np.where(deviation > 0, deviation, 1.0)
            sd = unit * np.sqrt(np.average(((y - self.intercept_) / unit) ** 2, axis=0, weights=weight))
            self.unit_ = np.where(sd > 0, sd, 1.0)
        standard = np.where(weight > 0, (y - self.intercept_) / self.unit_, 0.0)
        return self._response(y.shape[1]), make_target(standard, weight)

    def _constants(self) -> tuple[Any, Any]:
        return self.intercept_, self.unit_

    def _response(self, n_columns: int) -> Response:
        given = not isinstance(self.sigma2, str)
        sigma2 = self.sigma2 / self.unit_ / self.unit_ if given else np.ones(n_columns)
        if given and not ((sigma2 >= LEAST_SCALE) & (sigma2 <= MOST_SCALE)).all():
            least, most = LEAST_SCALE * self.unit_.max() ** 2, MOST_SCALE * self.unit_.min() ** 2
            raise ValueError(
                f"sigma2 is in y's units squared. y has a standard deviation of {self.unit_.max():.4g}, so sigma2 must "
                f"be from {least:.4g} to {most:.4g}, got {self.sigma2!r}."
            )
        return Gaussian(float(self.c), sigma2, drawn=self.sigma2 == "drawn", given=given)

    def _move_centre(self, y: np.ndarray, weight: np.ndarray) -> None:
        """Let the centre be the mean of all batches, and what is known of those before be about the new one."""
        sums = self._learned["sums"]
        n_past, n = float(self.discount) * sums[1], weight.sum(axis=0)
        away = np.where(n + n_past > 0, (weight * ((y - self.intercept_) / self.unit_)).sum(axis=0), 0.0)
        away /= np.where(n + n_past > 0, n + n_past, 1.0)
        self.intercept_ = self.intercept_ + self.unit_ * away
        moved = self._learned["sums"] = sums.copy()
        moved[[0, 2]] -= away * sums[[1, 3]]

    def _mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        return (sums[0] / np.where(sums[1] > 0, sums[1], 1.0)).round(12)  # y has been centred: what is left is rounding

    def _constant_in_units(self, constant: np.ndarray) -> np.ndarray:
        return self.intercept_ + self.unit_ * constant

    def _in_units(self, eta: np.ndarray) -> np.ndarray:
        return eta * self.unit_[:, None]

    @property
    def sigma2_draws_(self) -> np.ndarray:
        check_is_fitted(self, "_word_topic")
        with np.errstate(over="ignore"):
            return self._calibrated[1] * self.unit_ * self.unit_

    def _surprise(self, X: Any, y: Any, beside: dict[str, Any]) -> np.ndarray:
        given = self._given(y, self._new_counts(X).shape[0])
        mean, std = (side.reshape(given.shape) for side in self.predict(X, return_std=True, **beside))
        return (np.abs(given - (mean - self.intercept_) / self.unit_) / (std / self.unit_)).max(axis=1)

    @consistent
    def predict(
        self, X: ArrayLike, return_std: bool = False, *, covariates: ArrayLike | None = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean rating of each document and, if asked for, its standard deviation.

        The latter is that of a new rating: the spread of omega over the draws and chains, and sigma2.
        """
        check_is_fitted(self, "_word_topic")
        if not return_std:
            return self._shaped(self._foretell(lambda omegas, *_: average(omegas), X, covariates))

        response = self._response(len(self.response_names_)).plain()

        def sum_up(omegas: np.ndarray, scales: np.ndarray, _: Any) -> Any:
            mean, pairs = average(omegas), zip((omegas - self.intercept_) / self.unit_, scales, strict=True)
            inside = average([response.with_scale(scale).variance(omega) for omega, scale in pairs])
            spread = average([((omega - mean) / self.unit_) ** 2 for omega in omegas])
            return mean, self.unit_ * np.sqrt(spread + inside)

        mean, std = self._foretell(sum_up, X, covariates)
        return self._shaped(mean), self._shaped(std)

    @consistent
    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ratings between which a new rating lies with the given probability: lower and upper.

        They are quantiles of the mixture of the normals of all draws and chains.
        """
        return self._predict_interval(X, level, covariates)

    @consistent
    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, covariates: ArrayLike | None = None
    ) -> float:
        """R2 of the mean ratings."""
        return float(r2_score(y, self.predict(X, covariates=covariates), sample_weight=sample_weight))

    @consistent
    def log_predictive(self, X: ArrayLike, y: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """The log density of each y under the mean over all draws: how well ratings are foretold, spread included."""
        return self._log_predictive(X, y, covariates)


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
        check_number("dispersion", self.dispersion, ("drawn",), LEAST_SCALE, MOST_SCALE)

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
        check_whole(y)
        most = (np.maximum(y, 1.0) * weight).max() * float(self.c)
        if most > MOST:
            raise ValueError(
                f"Counts times weight times c must be at most {MOST:g}, got {most:g}, where c = {self.c:g}: lower c."
            )
        if going_on and exposure is None and getattr(self, "exposed_", False):
            raise ValueError("The batches before had an exposure; pass exposure= here, too (1 for each document).")
        self.exposed_ = exposure is not None
        return self._response(y.shape[1]), make_target(y, weight, log_exposure(exposure, len(y)))

    def _response(self, n_columns: int) -> Response:
        drawn = self.dispersion == "drawn"
        r = np.full(n_columns, 1.0 if drawn else float(self.dispersion))
        return NegativeBinomial(float(self.c), r, drawn=drawn, given=not drawn)

    def _given(self, y: Any, n_docs: int) -> np.ndarray:
        given = super()._given(y, n_docs)
        check_whole(given[~np.isnan(given)])
        return given

    def _mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        return np.maximum(sums[0], half) / np.where(sums[1] > 0, sums[1], 1.0)

    @property
    def dispersion_draws_(self) -> np.ndarray:
        check_is_fitted(self, "_word_topic")
        return self._calibrated[1]

    def _means(self, omegas: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        return np.exp(np.minimum(omegas, MOST_LOG)), self._column_names()

    def _surprise(self, X: Any, y: Any, beside: dict[str, Any]) -> np.ndarray:
        given = self._given(y, self._new_counts(X).shape[0])
        ends = self.predict_interval(X, 0.683, **beside)  # about a standard deviation to each side
        lower, upper, mean = (side.reshape(given.shape) for side in (*ends, self.predict(X, **beside)))
        away = given - mean
        usual = np.maximum(np.where(away > 0, upper - mean, mean - lower), 0.5)
        return (np.abs(away) / usual).max(axis=1)

    @consistent
    def predict(
        self, X: ArrayLike, *, exposure: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> np.ndarray:
        """The mean count of each document."""
        self._check_exposed(exposure)
        return self._shaped(
            self._foretell(lambda omegas, *_: average(np.exp(np.minimum(omegas, MOST_LOG))), X, covariates, exposure)
        )

    @consistent
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
        self._check_exposed(exposure)
        return self._predict_interval(X, level, covariates, exposure)

    @consistent
    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        exposure: ArrayLike | None = None, covariates: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """R2 of the mean counts."""
        predicted = self.predict(X, exposure=exposure, covariates=covariates)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    @consistent
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def check_whole(y: np.ndarray) -> None:
    """Refuse what is no count."""
    wrong = y[(y < 0) | (y != np.floor(y))]
    if len(wrong):
        raise ValueError(f"y must hold counts, whole numbers >= 0, got {wrong[0]:g}; SLDARegressor takes any number.")
