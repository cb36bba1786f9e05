"""What all supervised models have in common: the way from y to a target, omega of new documents, intervals."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted

from supertopic.calibration import draw_weights
from supertopic.draws import make_key, uniforms
from supertopic.gibbs import Priors
from supertopic.inference import infer_left_out, sample_shares
from supertopic.model import MOST, TopicModel, check_number, over_threads
from supertopic.responses import Response, Target
from supertopic.run import Run
from supertopic.shard import omegas

CALIBRATE, CHOOSE = 1 << 33, 1 << 34  # paths of random numbers that no training iteration takes
PATH_START, PATH_STEP = 40, 15  # iterations at the first c that c="auto" tries, and at each later one
HIDDEN, ENOUGH_HELD = 0.2, 2000  # the share of responses that it hides, and how many are enough for one walk


class SupervisedTopicModel(TopicModel, ABC):
    """A topic model with a response. A subclass says how y becomes a target, and what is predicted from omega."""

    _numbers = (*TopicModel._numbers, "nu2")
    _path = (1.0, 4.0, 16.0, 64.0, 256.0)  # what c="auto" tries
    c: Any
    nu2: float
    calibrate: bool

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, checkpoint: str | os.PathLike | None = None, checkpoint_every: float = 60,
    ):  # fmt: skip
        """Learn topics and weights from word counts and what is known of each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.
        y : array-like of shape (n_docs,) or (n_docs, n_columns)
            The response: for classifiers classes of any kind, or a 0/1 indicator matrix of labels, of which a
            DataFrame's columns are the names; for regressors numbers. NaN (and a classifier's `missing_label`) means
            unknown, and such a document adds its words only.
        sample_weight : array-like of shape (n_docs,), optional
            Multiplies c for each document; 0 makes its response unknown.
        covariates : array-like of shape (n_docs, n_covariates), optional
            Numbers that are known of each document and enter omega next to its topics; `predict` needs them, too.
        checkpoint, checkpoint_every : path and seconds, optional
            Where the state of the chains is written, and how often. The same call goes on from there after it was
            stopped or killed, and ends in the same model, bit for bit; with a larger n_draws it continues a fit.
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
        target = target._replace(covariates=Z)
        self.seed_ = self._seed()
        opened = self._open_checkpoint(counts, response, target, checkpoint, checkpoint_every)
        self.c_ = response.c
        if self.c == "auto":
            known = opened.facts if opened else {}
            if "path" not in known:
                known["c"], known["path"] = self._choose_c(counts, response, target)
            self.c_, self.c_path_ = known["c"], known["path"]
            response = replace(response, c=self.c_)
        z = self._sample(counts, response, target, opened)
        self._calibrate(counts, z, response.plain(), target)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("c", self.c, ("auto",))

    def _c(self) -> float:
        return self._path[0] if self.c == "auto" else float(self.c)

    def _largest_c(self) -> float:
        return self._path[-1] if self.c == "auto" else float(self.c)

    def _choose_c(self, X, response: Response, target: Target) -> tuple[float, list[dict[str, float]]]:
        """The largest c of the path that tells held-out responses as well as the best one, and how well each did.

        As well is within a standard error of the difference. The larger one, since the loss is flat where c is large
        enough, and topics that follow the response classify better than its loss shows. Small corpora walk the path
        several times, with other responses hidden: few held-out documents say little.
        """
        n_known = int((target.weight > 0).any(axis=1).sum())
        n_walks = int(np.clip(np.ceil(ENOUGH_HELD / (HIDDEN * n_known)), 1, 5))
        walks = over_threads(lambda i: self._walk(X, response, target, CHOOSE + i), range(n_walks), 1)
        losses = np.concatenate(walks, axis=1)  # (c, document)
        if losses.shape[1] == 0:  # so few documents that none was held out
            losses = np.zeros((len(self._path), 1))
        means, root = losses.mean(axis=1), np.sqrt(losses.shape[1])
        worse = losses - losses[means.argmin()]
        chosen = np.flatnonzero(worse.mean(axis=1) <= worse.std(axis=1) / root)[-1]
        rows = zip(self._path, means.tolist(), (losses.std(axis=1) / root).tolist(), strict=True)
        return self._path[chosen], [dict(zip(("c", "loss", "se"), row, strict=True)) for row in rows]

    def _walk(self, X, response: Response, target: Target, index: int) -> np.ndarray:
        """The losses of held-out documents at each c, (c, document): one chain, each c from where the last one ended.

        Some responses are hidden; their documents stay, so that they are left out of the topics as all others are when
        shares are inferred.
        """
        key, n_threads = make_key(self.seed_, index), effective_n_jobs(self.n_jobs)
        held = (uniforms(len(target.y), make_key(key, 0)) < HIDDEN)[:, None] & (target.weight > 0)
        hidden, test = (target._replace(weight=target.weight * part) for part in (~held, held))
        job = self._job(X, response, hidden)._replace(burn_in=PATH_START + PATH_STEP * len(self._path))
        run, plain, losses = Run(job, index, n_threads), response.plain(), []
        for c in self._path:
            run.state = run.state._replace(response=replace(run.state.response, c=c))
            for _ in range(PATH_START if c == self._path[0] else PATH_STEP):
                run.step()
            counts = run.state.word_topic[:, : run.n_topics]
            shares = self._left_out(X, index, run.last_z(), counts, 1, run.priors, n_threads)
            x = np.hstack([shares, target.covariates])
            draws = zip(*draw_weights(x, plain, hidden, PATH_STEP, make_key(key, 1)), strict=True)
            logs = [plain.with_scale(s).log_density(test.y, x @ eta.T + test.offset) for eta, s in draws]
            loss = -np.sum(test.weight * (np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))), axis=1)
            losses.append(loss[held.any(axis=1)])
        run.close()
        return np.array(losses)

    def _left_out(self, X, chain, z, word_topic, n_draws, priors: Priors, n_threads) -> np.ndarray:
        """The shares (n_docs, K) that training documents would have if they were new."""
        shares = infer_left_out(X, z, word_topic, n_draws, priors, self.predict_sweeps, self.seed_, chain, n_threads)
        shares[np.diff(X.indptr) == 0] = word_topic.sum(axis=0) / max(word_topic.sum(), 1)
        return shares

    def _calibrate(self, X, z: list[np.ndarray], response: Response, target: Target) -> None:
        """Draw the weights that predictions use: see `calibration`."""
        self._calibrated = self._eta, self._scale
        if not self.calibrate:
            return
        n_chains, n_draws = self._eta.shape[:2]
        n_threads = effective_n_jobs(self.n_jobs)
        workers = min(n_chains, n_threads)

        def go(chain: int) -> tuple[np.ndarray, np.ndarray]:
            priors = Priors(self.alpha_[chain], self.beta_[chain], float(self.nu2))
            counts = self._word_topic[chain]
            shares = self._left_out(X, chain, z[chain], counts, n_draws, priors, n_threads // workers)
            x = np.hstack([shares, target.covariates])
            return draw_weights(x, response, target, n_draws, make_key(self.seed_, chain, CALIBRATE))

        draws = over_threads(go, range(n_chains), workers)
        eta, scale = zip(*draws, strict=True)
        self._calibrated = self._in_units(np.stack(eta), np.stack(scale))

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
        X = self._new_counts(X)
        Z = self._covariates(covariates, X.shape[0])
        for chain, etas in enumerate(self._calibrated[0]):
            phi, alpha, n_draws = self._phi(chain), self.alpha_[chain], len(etas)
            shares = sample_shares(X, phi, alpha, self.predict_sweeps, n_draws, self.seed_, chain)
            shares[:, np.diff(X.indptr) == 0] = self._topic_shares()[chain]
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
    # Weibull's plotting positions: of n independent draws, the interval holds one more with probability `level`
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
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
