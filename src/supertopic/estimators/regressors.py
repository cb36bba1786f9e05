"""Ratings and counts: SLDARegressor (Gaussian) and SLDACountRegressor (negative binomial)."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.fitted import Fitted
from supertopic.estimators.supervised import Supervised
from supertopic.estimators.validation import check_level, check_number
from supertopic.inference.fit import Checkpointing
from supertopic.inference.guarantees import conformal_level
from supertopic.inference.predict import NewDocuments
from supertopic.model.posterior import Posterior
from supertopic.model.responses import Gaussian, NegativeBinomial
from supertopic.model.responses.averages import average
from supertopic.model.responses.base import LEAST_SCALE, MOST_SCALE
from supertopic.model.responses.numbers import NumberResponse
from supertopic.model.responses.values import check_columns


def number_response(posterior: Posterior) -> NumberResponse:
    """The response of a regressor."""
    assert isinstance(posterior.response, NumberResponse)
    return posterior.response


def variance_draws(posterior: Posterior) -> np.ndarray:
    """Draws of sigma2 in the units of y squared, (chain, draw, R)."""
    unit = number_response(posterior).unit
    with np.errstate(over="ignore"):
        return posterior.scale * unit * unit


class TopicRegressor(RegressorMixin, Supervised):
    """What regressors have in common: y is one or several columns of numbers, NaN where unknown."""

    response_names_ = Fitted(lambda posterior: number_response(posterior).names)
    multioutput_ = Fitted(lambda posterior: number_response(posterior).multioutput)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """(n_docs, R) as y was: a vector where y was one."""
        return values if self.multioutput_ else values[:, 0]

    def _predict(self, documents: NewDocuments, return_std: bool) -> Any:
        if not return_std:
            return self._shaped(documents.expected())
        response: Any = number_response(documents.posterior).plain()
        mean, std = documents.summarise(
            lambda omegas, scales, _: (
                average(response.expected(omegas, scales)),
                response.standard_deviation(omegas, scales),
            )
        )
        return self._shaped(mean), self._shaped(std)

    def _interval(self, documents: NewDocuments, level: float, conformal: bool) -> tuple[np.ndarray, np.ndarray]:
        """The interval of each new number."""
        check_level(level)
        lower, upper = documents.interval(conformal_level(documents.posterior, level) if conformal else level)
        return self._shaped(lower), self._shaped(upper)

    def _log_predictive(self, documents: NewDocuments, y: Any) -> np.ndarray:
        response: Any = number_response(documents.posterior).plain()
        truth = response.truth(y, documents.counts.shape[0])
        return self._shaped(documents.summarise(
            lambda omegas, scales, docs: response.log_density_in_units(truth[docs], omegas, scales)
        ))  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # the checks' data are not counts of words
        return tags


@documented
class SLDARegressor(TopicRegressor):
    """Supervised LDA with a Gaussian response: topics that explain the words and a rating, or several.

    y is standardised internally, and all results are in the units of y. This is the model of Blei and McAuliffe (2007),
    with draws of the weights.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=8.0
        Weight of the response against the words: psi = N(y | omega, sigma2)**c.
    sigma2 : {"variance", "drawn"} or float, default="variance"
        The variance of y around omega while topics are learned: that of y itself, or drawn with an inverse-gamma prior,
        or a known variance in squared units of y. Use "drawn" with c = 1 only: with a larger c, the topics can follow y
        so closely that the variance goes to 0. For predictions it is always drawn, unless you pass a number.
    ...

    Attributes
    ----------
    intercept_, empty_intercept_ : ndarray of shape (n_columns,)
        The mean of y, and that of documents without known words.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of eta, from held-out responses: intercept_ + coef_[0, k] is the rating of a document that
        consists of topic k only.
    response_names_ : ndarray of shape (n_columns,)
        The names of y's columns, or their numbers.
    sigma2_draws_ : ndarray of shape (n_chains, n_draws, n_columns)
        The draws of sigma2 that predictions use.
    ...

    Examples
    --------
    >>> from supertopic import SLDARegressor
    >>> texts = ["dull slow boring", "fine nice slow", "great superb fine"] * 7
    >>> model = SLDARegressor(n_topics=3, random_state=0).fit(texts, [1.0, 2.5, 4.0] * 7)
    >>> rating = model.predict(texts[:3])
    >>> bool(rating[0] < rating[1] < rating[2])
    True
    """

    sigma2: Any
    stored = (*TopicRegressor.stored, "sigma2")

    def __init__(
        self, n_topics: int = 20, *, c: float = 8.0, sigma2: float | str = "variance", calibrate: bool = True,
        words: Any = True, priority: str = "prediction", held_out: float | str = "auto", held_out_by: str = "document",
        alpha: ArrayLike | None = None, beta: float = 0.01,
        optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None, prior: Any = None,
        vectorizer: Any = None, formula: Any = None,
        init: str = "nmf", burn_in: int | str = "auto", max_seconds: float | None = None, n_draws: int = 20,
        n_chains: int = 4, sampler: str = "auto", predict_sweeps: int = 40,
        n_jobs: int | None = None, device: str = "cpu", engine: str = "threads", random_state: Any = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number("sigma2", self.sigma2, ("variance", "drawn"))

    def make_response(self) -> NumberResponse:
        known = None if isinstance(self.sigma2, str) else float(self.sigma2)
        drawn = isinstance(self.sigma2, str) and self.sigma2 == "drawn"
        return Gaussian(float(self.c), np.ones(1), drawn=drawn, fixed=known is not None, known_variance=known)

    sigma2_draws_ = Fitted(variance_draws)

    def predict(
        self, X: ArrayLike, return_std: bool = False, *, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The mean rating of each document and, if asked for, its standard deviation.

        The latter is that of a new rating: the spread of omega over the draws and chains, and sigma2.
        """
        return self._predict(self._new(X, covariates, features=features, groups=groups), return_std)

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, conformal: bool = False, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The ratings between which a new rating lies with the given probability: lower and upper.

        They are quantiles of the mixture of the normals of all draws and chains. With `conformal`, the quantiles are
        those between which this share of the ratings of held-out documents lies, so the probability holds even if the
        model is wrong, for documents that are like these (see `conformalize`).
        """
        return self._interval(self._new(X, covariates, features=features, groups=groups), level, conformal)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """R2 of the mean ratings."""
        check_columns(y, list(map(str, self.response_names_)))
        predicted = self.predict(X, covariates=covariates, features=features, groups=groups)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def log_predictive(
        self, X: ArrayLike, y: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The log density of each y under the mean over all draws.

        It measures the mean and the spread of predictions.
        """
        return self._log_predictive(self._new(X, covariates, features=features, groups=groups), y)


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
        r. By default it is drawn, by slice sampling with a gamma prior. With a large r, counts are nearly Poisson.
    ...

    Attributes
    ----------
    intercept_, empty_intercept_ : ndarray of shape (n_columns,)
        The log of the mean count, or of counts by exposure, and that of documents without known words.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of eta, from held-out responses: exp(coef_[0, k]) is the count of a document that consists of
        topic k only, relative to the mean count.
    response_names_ : ndarray of shape (n_columns,)
        The names of y's columns, or their numbers.
    dispersion_draws_ : ndarray of shape (n_chains, n_draws, n_columns)
        The draws of r that predictions use.
    ...

    Examples
    --------
    >>> from supertopic import SLDACountRegressor
    >>> texts = ["dull slow boring", "fine nice slow", "great superb fine"] * 7
    >>> model = SLDACountRegressor(n_topics=3, random_state=0).fit(texts, [1, 8, 40] * 7)
    >>> count = model.predict(texts[:3])
    >>> bool(count[0] < count[1] < count[2])
    True
    """

    dispersion: Any
    stored = (*TopicRegressor.stored, "dispersion")

    def __init__(
        self, n_topics: int = 20, *, c: float = 1.0, dispersion: float | str = "drawn", calibrate: bool = True,
        words: Any = True, priority: str = "prediction", held_out: float | str = "auto", held_out_by: str = "document",
        alpha: ArrayLike | None = None, beta: float = 0.01,
        optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None, prior: Any = None,
        vectorizer: Any = None, formula: Any = None,
        init: str = "nmf", burn_in: int | str = "auto", max_seconds: float | None = None, n_draws: int = 20,
        n_chains: int = 4, sampler: str = "auto", predict_sweeps: int = 40,
        n_jobs: int | None = None, device: str = "cpu", engine: str = "threads", random_state: Any = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number("dispersion", self.dispersion, ("drawn",), LEAST_SCALE, MOST_SCALE)

    def make_response(self) -> NegativeBinomial:
        drawn = isinstance(self.dispersion, str)
        r = np.full(1, 1.0 if drawn else float(self.dispersion))
        return NegativeBinomial(float(self.c), r, drawn=drawn, fixed=not drawn)

    @documented_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        exposure: ArrayLike | None = None, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        feature_names: ArrayLike | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn topics and weights from texts or word counts and a count, a whole number >= 0, for each document.

        Parameters
        ----------
        exposure : array-like of shape (n_docs,), optional
            What the mean is proportional to, such as the time for which each document was counted.
        ...
        """
        more: dict[str, Any] = {
            "sample_weight": sample_weight, "covariates": covariates, "features": features, "groups": groups,
            "exposure": exposure,
        }  # fmt: skip
        return self._fit(X, y, feature_names, checkpointing=Checkpointing(checkpoint, checkpoint_every), **more)

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        discount: float = 1.0, new_words: bool = True, exposure: ArrayLike | None = None,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
        feature_names: ArrayLike | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from another batch of documents; the model so far is the prior.

        Parameters
        ----------
        exposure : array-like of shape (n_docs,), optional
            As in `fit`.
        ...
        """
        more: dict[str, Any] = {
            "sample_weight": sample_weight, "covariates": covariates, "features": features, "groups": groups,
            "exposure": exposure,
        }  # fmt: skip
        more["checkpointing"] = Checkpointing(checkpoint, checkpoint_every)
        return self._update(X, y, feature_names, discount, new_words, **more)

    dispersion_draws_ = Fitted(lambda posterior: posterior.scale)

    def _new(
        self, X: Any, covariates: Any = None, exposure: Any = None, features: Any = None, groups: Any = None
    ) -> NewDocuments:
        response = self._fitted().response
        assert isinstance(response, NegativeBinomial)
        if response.exposed and exposure is None:
            raise ValueError(
                "The model was fitted with an exposure; pass exposure= here, too (1 for each document gives rates)."
            )
        return super()._new(X, covariates, exposure, features, groups)

    def predict(
        self, X: ArrayLike, *, exposure: ArrayLike | None = None, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The mean count of each document."""
        return self._predict(self._new(X, covariates, exposure, features, groups), False)

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, conformal: bool = False, exposure: ArrayLike | None = None,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The counts between which a new count lies with at least the given probability: lower and upper.

        They are quantiles of the mixture of the negative binomials of all draws and chains. With `conformal`, the
        quantiles are those between which this share of the counts of held-out documents lies, so the probability holds
        even if the model is wrong, for documents that are like these (see `conformalize`).
        """
        return self._interval(self._new(X, covariates, exposure, features, groups), level, conformal)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        exposure: ArrayLike | None = None, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """R2 of the mean counts."""
        check_columns(y, list(map(str, self.response_names_)))
        predicted = self.predict(X, exposure=exposure, covariates=covariates, features=features, groups=groups)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def log_predictive(
        self, X: ArrayLike, y: ArrayLike, *, exposure: ArrayLike | None = None, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The log probability of each y under the mean over all draws.

        It measures the mean and the spread of predictions.
        """
        return self._log_predictive(self._new(X, covariates, exposure, features, groups), y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
