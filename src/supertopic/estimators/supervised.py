"""What all supervised models have in common: the way from y to a target, omega of new documents, intervals."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from supertopic.corpus import make_tokens
from supertopic.estimators.base import TopicModel, pause
from supertopic.estimators.docs import documented_fit
from supertopic.estimators.validation import MOST, check_covariates, check_number
from supertopic.files.checkpoint import Checkpoint
from supertopic.kernels.draws import make_key
from supertopic.kernels.moments import omegas
from supertopic.report.diagnostics import interval
from supertopic.sampling.choice import choose, count_walks, plan_walk, start_walk, walk
from supertopic.sampling.crew import interruptible, one_blas_thread
from supertopic.sampling.inference import PREDICT, sample_shares
from supertopic.sampling.plan import Arrays, Plan
from supertopic.sampling.responses import Response
from supertopic.sampling.state import Target


class SupervisedTopicModel(TopicModel, ABC):
    """A topic model with a response. A subclass says how y becomes a target, and what is predicted from omega."""

    _numbers = (*TopicModel._numbers, "nu2")
    _path = (1.0, 4.0, 16.0, 64.0, 256.0)  # what c="auto" tries
    c: Any
    nu2: float
    calibrate: bool

    @documented_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, checkpoint: str | os.PathLike | None = None, checkpoint_every: float = 60,
    ):  # fmt: skip
        """Learn topics and weights from word counts and what is known of each document.

        Parameters
        ----------
        ...
        """
        return self._fit(X, y, sample_weight, covariates, checkpoint, checkpoint_every)

    def _fit(self, X, y, sample_weight, covariates, checkpoint, checkpoint_every, exposure=None):
        self._check_parameters()
        counts = self._validate_counts(X, reset=True)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        weight = _check_sample_weight(sample_weight, counts, dtype=np.float64, ensure_non_negative=True)
        if weight.max() * self._largest_c() > MOST:
            raise ValueError(
                f"sample_weight times c must be at most {MOST:g}, got {weight.max() * self._largest_c():g}."
            )
        Z = self._set_covariates(covariates, counts.shape[0])
        response, target = self._encode(y, weight, exposure)
        self._fit_chains(counts, response, target._replace(covariates=Z), checkpoint, checkpoint_every)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("c", self.c, ("auto",))

    def _c(self) -> float:
        return self._path[0] if self.c == "auto" else float(self.c)

    def _largest_c(self) -> float:
        return self._path[-1] if self.c == "auto" else float(self.c)

    def _settle(self, plan: Plan, source: Arrays, checkpoint: Checkpoint | None) -> Plan:
        self.c_ = plan.response.c
        if self.c == "auto":
            facts = checkpoint.facts if checkpoint else {}
            if "path" not in facts:
                facts["c"], facts["path"] = self._choose_c(plan, source, checkpoint)
                if checkpoint:
                    checkpoint.write_facts()
                    checkpoint.forget("walk-*")
            self.c_, self.c_path_ = facts["c"], facts["path"]
        return plan._replace(response=replace(plan.response, c=self.c_))

    def _choose_c(
        self, plan: Plan, source: Arrays, checkpoint: Checkpoint | None
    ) -> tuple[float, list[dict[str, float]]]:
        """The c of the path that foretells hidden responses best, and how well each did."""
        n_known = int((source.target.weight > 0).any(axis=1).sum())
        plan, n_threads = plan_walk(plan, self._path), effective_n_jobs(self.n_jobs)
        sums = np.zeros((len(self._path) + 1, len(self._path) + 1))
        with one_blas_thread, interruptible() as stop:
            for i in range(count_walks(n_known)):
                name = f"walk-{i}"
                with start_walk(plan, source, i, n_threads) as chain:
                    if checkpoint:
                        checkpoint.restore(chain, name, plan.burn_in)
                    for finished in walk(chain, self._path, self.predict_sweeps):
                        pause(chain, name, finished, checkpoint, stop)
                    sums = sums + chain.engine.total("hidden_losses")
        return choose(self._path, sums)

    @abstractmethod
    def _encode(self, y, weight: np.ndarray, exposure) -> tuple[Response, Target]:
        """The response, and y as a target: columns of numbers, with weight 0 where y is unknown."""

    def _set_covariates(self, covariates, n_docs: int) -> np.ndarray:
        """Learn what the covariates look like; they are standardised, so that one prior is fair to all units."""
        Z = np.zeros((n_docs, 0)) if covariates is None else check_covariates(covariates, n_docs)
        self.n_covariates_ = Z.shape[1]
        names = getattr(covariates, "columns", range(Z.shape[1]))
        self.covariate_names_ = np.array([str(name) for name in names], dtype=object)
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

    def _omega_draws(self, X, covariates=None) -> Iterator[np.ndarray]:
        """For every draw of every chain, eta x (n_docs, R) with x drawn, too: what is not known of the topics is in."""
        tokens = make_tokens(self._new_counts(X))
        Z = self._covariates(covariates, len(tokens.doc_start) - 1)
        for chain, etas in enumerate(self._calibrated[0]):
            key = make_key(self.seed_, chain, PREDICT)
            shares = sample_shares(tokens, self._topics(chain), self.predict_sweeps, len(etas), key)
            shares[:, np.diff(tokens.doc_start) == 0] = self._topic_shares[chain]
            for zbar, eta in zip(shares, etas, strict=True):
                yield omegas(np.hstack([zbar, Z]), eta)

    @property
    def calibrated_draws_(self) -> np.ndarray:
        """The draws of eta that predictions use, (chain, draw, column, topic): see `calibrate`."""
        check_is_fitted(self, "_word_topic")
        return self._calibrated[0][..., : self._n_features_out]

    @property
    def coef_(self) -> np.ndarray:
        """The posterior mean of the weights that predictions use, in the best chain, (column, topic)."""
        return self.calibrated_draws_[self.best_chain_].mean(axis=0)

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

    def coef_interval(self, level: float = 0.9, calibrated: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of eta in the best chain.

        Parameters
        ----------
        level : float, default=0.9
            The posterior probability inside.
        calibrated : bool, default=True
            Take `calibrated_draws_`, whose intervals hold what they promise, or `coef_draws_`, which with c > 1 are
            far too narrow. They are the same where the model was fitted with calibrate=False.

        Returns
        -------
        lower, upper : ndarray of shape (n_columns, n_topics)
        """
        check_is_fitted(self, "_word_topic")
        return interval((self.calibrated_draws_ if calibrated else self.coef_draws_)[self.best_chain_], level)

    def covariate_coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the covariates' weights over all chains, each (column, covariate)."""
        draws = self.covariate_coef_draws_
        return interval(draws.reshape(-1, *draws.shape[2:]), level)
