"""What all supervised models have in common: the way from y to a target, omega of new documents, intervals."""

from collections.abc import Iterator, Sequence

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted
from threadpoolctl import threadpool_limits

from supertopic.calibration import draw_weights
from supertopic.draws import make_key
from supertopic.inference import omegas
from supertopic.model import MOST, TopicModel, over_threads
from supertopic.responses import Response, Target

CALIBRATE = 1 << 33  # a path of random numbers that no training iteration takes


class SupervisedTopicModel(TopicModel):
    """A topic model with a response. A subclass says how y becomes a target, and what is predicted from omega."""

    _numbers = (*TopicModel._numbers, "c", "nu2")
    c: float
    nu2: float
    calibrate: bool

    def _fit(self, X, y, sample_weight, covariates, exposure=None):
        self._check_parameters()
        counts = self._validate_counts(X, reset=True)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        weight = _check_sample_weight(sample_weight, counts, dtype=np.float64, ensure_non_negative=True)
        if weight.max() * self.c > MOST:
            raise ValueError(f"sample_weight times c must be at most {MOST:g}, got {weight.max() * self.c:g}.")
        Z = self._set_covariates(covariates, counts.shape[0])
        response, target = self._encode(y, weight, exposure)
        target = target._replace(covariates=Z)
        self._sample(counts, response, target)
        self._calibrate(counts, response.plain(), target)
        return self

    def _calibrate(self, X, response: Response, target: Target) -> None:
        """Draw the weights that predictions use: see `calibration`."""
        self._calibrated = self._eta, self._scale
        if not self.calibrate:
            return
        n_chains, n_draws = self._eta.shape[:2]
        shares = self._infer(X, range(n_chains))

        def go(chain: int) -> tuple[np.ndarray, np.ndarray]:
            x = np.hstack([shares[chain], target.covariates])
            return draw_weights(x, response, target, n_draws, make_key(self.seed_, chain, CALIBRATE))

        with threadpool_limits(1, user_api="blas"):
            draws = over_threads(go, range(n_chains), min(n_chains, effective_n_jobs(self.n_jobs)))
        eta, scale = zip(*draws, strict=True)
        self._calibrated = self._in_units(np.stack(eta), np.stack(scale))

    def _encode(self, y, weight: np.ndarray, exposure) -> tuple[Response, Target]:
        """The response, and y as a target: columns of numbers, with weight 0 where y is unknown."""
        raise NotImplementedError

    def _set_covariates(self, covariates, n_docs: int) -> np.ndarray:
        """Learn what the covariates look like; they are standardised, so that one prior is fair to all units."""
        self.n_covariates_ = 0
        Z = np.zeros((n_docs, 0))
        if covariates is not None:
            Z = check_covariates(covariates, n_docs)
        self.n_covariates_ = Z.shape[1]
        self.covariate_mean_ = Z.mean(axis=0)
        sd = Z.std(axis=0)
        self.covariate_scale_ = np.where(sd > 0, sd, 1.0)
        return (Z - self.covariate_mean_) / self.covariate_scale_

    def _covariates(self, covariates, n_docs: int) -> np.ndarray:
        """The covariates of new documents, standardised as those of the fit."""
        if covariates is None and self.n_covariates_ == 0:
            return np.zeros((n_docs, 0))
        if covariates is None:
            raise ValueError(f"The model was fitted with {self.n_covariates_} covariates; pass covariates= here, too.")
        Z = check_covariates(covariates, n_docs)
        if Z.shape[1] != self.n_covariates_:
            raise ValueError(
                f"covariates has {Z.shape[1]} columns, but the model was fitted with {self.n_covariates_}."
            )
        return (Z - self.covariate_mean_) / self.covariate_scale_

    def _omegas(self, X, covariates=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For every draw of every chain, eta x (n_docs, R) of new documents and the response's own parameter (R,)."""
        check_is_fitted(self, "_word_topic")
        shares = self._infer(X, range(len(self._eta)))
        Z = self._covariates(covariates, shares.shape[1])
        for zbar, etas, scales in zip(shares, *self._calibrated, strict=True):
            x = np.hstack([zbar, Z])
            for eta, scale in zip(etas, scales, strict=True):
                yield omegas(x, eta), scale

    @property
    def calibrated_draws_(self) -> np.ndarray:
        """The draws of eta that predictions use, (chain, draw, column, topic): see `calibrate`."""
        check_is_fitted(self, "_word_topic")
        return self._calibrated[0][..., : self._n_features_out]

    @property
    def covariate_coef_draws_(self) -> np.ndarray:
        """The draws of the covariates' weights, (chain, draw, column, covariate), for a unit of each covariate.

        They are the calibrated ones, where the model is.
        """
        check_is_fitted(self, "_word_topic")
        return self._calibrated[0][..., self._n_features_out :] / self.covariate_scale_

    @property
    def covariate_coef_(self) -> np.ndarray:
        """The posterior mean of the covariates' weights over all chains, (column, covariate)."""
        return self.covariate_coef_draws_.mean(axis=(0, 1))

    def coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of eta in the best chain.

        Parameters
        ----------
        level : float, default=0.9
            The posterior probability inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_columns, n_topics)
        """
        check_is_fitted(self, "_word_topic")
        return interval(self.coef_draws_[self.best_chain_], level)

    def covariate_coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the covariates' weights over all chains, each (column, covariate)."""
        draws = self.covariate_coef_draws_
        return interval(draws.reshape(-1, *draws.shape[2:]), level)


def average(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Their mean, added one by one: np.mean adds in an order that depends on the number of documents."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total = total + array
    return total / len(arrays)


def interval(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The central interval of some draws, which are along the first axis."""
    check_level(level)
    if len(draws) < 2:
        raise ValueError("An interval needs at least two draws; fit with n_draws > 1.")
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return lower, upper


def check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}.")


def check_covariates(covariates: ArrayLike, n_docs: int) -> np.ndarray:
    """Covariates as a finite (n_docs, P) float array."""
    Z = check_array(covariates, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="covariates")
    Z = Z[:, None] if Z.ndim == 1 else Z
    if len(Z) != n_docs:
        raise ValueError(f"X has {n_docs} documents but covariates has {len(Z)} rows; they must be equally many.")
    return Z
