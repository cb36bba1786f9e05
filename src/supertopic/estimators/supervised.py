"""What all supervised models have in common: the way from y to a target, omega of new documents, intervals."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from supertopic.corpus.source import Arrays, Corpus, Target, no_target
from supertopic.corpus.tokens import Tokens, cut, make_tokens, take
from supertopic.estimators.base import TopicModel, consistent
from supertopic.estimators.beliefs import constants
from supertopic.estimators.docs import documented_fit
from supertopic.estimators.looking import Looking
from supertopic.estimators.trusting import Trusting
from supertopic.estimators.validation import MOST, check_covariates, check_level, check_number, log_exposure
from supertopic.inference.words import copies_of_draws
from supertopic.kernels.moments import omegas
from supertopic.model.responses import Response
from supertopic.report.diagnostics import interval
from supertopic.report.explain import Explanation, explain_counts
from supertopic.sampling.new_documents import CHUNK_NUMBERS, CHUNK_TOKENS, DEVICE_NUMBERS, draw_omegas
from supertopic.sampling.pool import each
from supertopic.warn import warn

MOST_SHARE = 0.5
FEW = 5.0  # documents: so many of the mean join those without words, of which there may be few


class SupervisedTopicModel(Trusting, Looking, ABC):
    """A topic model with a response. A subclass says how y becomes a target, and what is predicted from omega."""

    _numbers = (*TopicModel._numbers, "nu2")
    c: float
    nu2: float

    @documented_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn topics and weights from word counts and what is known of each document.

        Parameters
        ----------
        ...
        """
        more: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
        return self._fit(X, y, sample_weight, covariates, feature_names, **more)

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from one more batch of documents: what is known so far is its prior, see `discount`.

        The first call is a `fit`. The cost of another is that of its own documents; `doc_topic_`, `log_joint_` and
        what else is about training documents are those of the last batch. If it fails or is stopped, the model is what
        it was before.

        Parameters
        ----------
        y : array-like, optional
            As in `fit`. From the second call on it may be left out, or unknown throughout.
        ...
        """
        more: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
        return self._partial_fit(X, y, sample_weight, covariates, feature_names, **more)

    def _partial_fit(
        self, X: Any, y: Any, sample_weight: Any, covariates: Any, feature_names: Any, **more: Any
    ) -> Self:
        more["going_on"] = hasattr(self, "_word_topic")
        return self._update(lambda new: new._fit(X, y, sample_weight, covariates, feature_names, **more))

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        covariates: Any,
        feature_names: Any,
        going_on: bool = False,
        **more: Any,
    ) -> Self:
        self._check_parameters()
        counts = self._validate_counts(X, reset=not going_on)
        self._set_vocabulary(feature_names, going_on)
        if y is None and not going_on and more.get("classes") is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        documents = Arrays(make_tokens(counts), no_target(counts.shape[0]))
        return self._fit_documents(documents, counts, y, sample_weight, covariates, going_on=going_on, **more)

    def _fit_documents(
        self, documents: Corpus, X: Any, y: Any, sample_weight: Any, covariates: Any, checkpoint: Any,
        checkpoint_every: float, exposure: Any = None, classes: Any = None, going_on: bool = False,
    ) -> Self:  # fmt: skip
        """Fit documents; X are their counts, if these are in memory."""
        self._open_learned(going_on)
        lengths = np.diff(documents.doc_start)
        weight = _check_sample_weight(sample_weight, lengths[:, None], dtype=np.float64, ensure_non_negative=True)
        if weight.max() * self.c > MOST:
            raise ValueError(f"sample_weight times c must be at most {MOST:g}, got {weight.max() * self.c:g}.")
        Z = (self._covariates if going_on else self._set_covariates)(covariates, len(lengths))
        before = constants(self)  # those of yesterday, if there was one
        response, target = self._encode(y, weight, exposure, classes, going_on)
        if going_on and self._learned["scale"].size:
            n_docs = float(self.discount) * self._learned["sums"][4]
            response = response.with_carried_scale(self._learned["scale"], n_docs, float(self.discount))
        target = target._replace(covariates=Z, offset=self._set_intercepts(response, target, lengths == 0))
        known = documents.with_target(target)
        self._fit_chains(known, X, response, checkpoint, checkpoint_every, before, going_on)
        del self._batch_shift
        return self

    def _set_intercepts(self, response: Response, target: Target, empty: np.ndarray) -> np.ndarray:
        """Learn the base rate, of all documents and of those without words; returns the offset of regressions, (n, R).

        The mean is that of all batches.
        """
        given, exposure = target.weight * target.y, target.weight * np.exp(target.offset)
        sizes = [array[docs].sum(axis=0) for docs in (slice(None), empty) for array in (given, exposure)]
        batch = np.array([*sizes, target.weight.sum(axis=0)])
        sums = batch + float(self.discount) * self._learned["sums"] if "sums" in self._learned else batch
        self._learned["sums"] = sums
        half, few = 0.5 * largest(target.weight), FEW * largest(exposure)
        mean = self._mean(sums, half)
        of_empty = (sums[2] + few * mean) / (sums[3] + few)
        links = response.link(mean), response.link(of_empty)
        self._batch_shift = np.where(batch[1] > 0, response.link(self._mean(batch, half)) - links[0], 0.0)
        self._learned["level"] = self._constant_in_units(links[0])
        self.intercept_, self.empty_intercept_ = (
            self._constant_in_units(response.predictive_offset(constant)) for constant in links
        )
        self.empty_documents_ = FEW + sums[3] * FEW / few
        offset = target.offset + np.where(empty[:, None], links[1], links[0])
        return offset if offset.any() else target.offset

    def _draw_empty(self, n_draws: int) -> np.ndarray:
        """omega of a document without words in some draws, (n, R): its mean is known from few such documents."""
        centre, unit = self._constants()
        offset = (self.empty_intercept_ - centre) / unit
        drawn = self._response(len(offset)).plain().draw_offsets(offset, self.empty_documents_, n_draws)
        return centre + unit * drawn

    @abstractmethod
    def _response(self, n_columns: int) -> Response:
        """The response with the estimator's parameters, in the units in which y is modelled."""

    def _constants(self) -> tuple[Any, Any]:
        """What is taken from y, and what it is divided by, before it is modelled."""
        return 0.0, 1.0

    def _mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        """The mean of y, (R,), never at an end of its range; `sums` begin with those of y and exposures, weighed.

        Where all of y is the same, half a document of each kind stands for those that there might be.
        """
        ends = (sums[0] <= 0) | (sums[0] >= sums[1])
        return np.where(ends, sums[0] + half, sums[0]) / np.where(ends, sums[1] + 2.0 * half, sums[1])

    def _constant_in_units(self, constant: np.ndarray) -> np.ndarray:
        return constant

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("c", self.c)
        share = self.hidden
        number = isinstance(share, Real) and not isinstance(share, bool) and 0 <= float(share) <= MOST_SHARE
        if not number and not (isinstance(share, str) and share == "auto"):
            raise ValueError(f"hidden must be 'auto' or a share from 0 to {MOST_SHARE}, got {self.hidden!r}.")

    @abstractmethod
    def _encode(
        self, y: Any, weight: np.ndarray, exposure: Any, classes: Any = None, going_on: bool = False
    ) -> tuple[Response, Target]:
        """The response, and y as a target: columns of numbers, with weight 0 where y is unknown.

        Where the model goes on, classes and units are those that it has.
        """

    def _set_covariates(self, covariates: Any, n_docs: int) -> np.ndarray:
        """Learn what the covariates look like; they are standardised, so that one prior is fair to all units."""
        Z = np.zeros((n_docs, 0)) if covariates is None else check_covariates(covariates, n_docs)
        self.n_covariates_ = Z.shape[1]
        names = getattr(covariates, "columns", range(Z.shape[1]))
        self.covariate_names_ = np.array([str(name) for name in names], dtype=object)
        self.covariate_mean_ = Z.mean(axis=0)
        sd = Z.std(axis=0)
        self.covariate_scale_ = np.where(sd > 0, sd, 1.0)
        for name in self.covariate_names_[sd == 0]:
            warn(
                f"The covariate {name!r} is the same for all documents and says nothing: its weight stays what its "
                "prior is. There is an intercept already; leave it out.",
            )
        return (Z - self.covariate_mean_) / self.covariate_scale_

    def _covariates(self, covariates: Any, n_docs: int) -> np.ndarray:
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

    def _foretell(
        self,
        sum_up: Callable[[np.ndarray, np.ndarray, slice], Any],
        X: Any,
        covariates: Any = None,
        exposure: Any = None,
    ) -> Any:
        """What follows from omega of new documents: an array, or a tuple of some, over the documents.

        `sum_up` gets omega (n_draws, n_docs, R) of all chains, where shares of topics are drawn as the weights are, so
        that what is not known of a document is in; the response's own parameter (n_draws, R); and which documents these
        are: some at a time, since the draws of all would need much memory.
        """
        counts = self._new_counts(X)
        tokens = make_tokens(counts)
        lengths, n_threads = np.diff(tokens.doc_start), effective_n_jobs(self.n_jobs)
        Z = self._covariates(covariates, len(lengths))
        empty = lengths == 0
        offset = np.where(empty[:, None], 0.0, self.calibrated_intercept_)
        offset = offset + log_exposure(exposure, len(lengths))
        etas, scales = self._calibrated
        n_pairs = max(*self._n_told(etas))
        pairs, n_topics = np.arange(n_pairs) % etas.shape[1], self._n_features_out
        x = self._dictionary.rows(counts) if self._theta.size else None

        def work(docs: slice) -> Any:
            part, omega = take(tokens, docs), []
            for chain, eta in enumerate(etas):
                drawn = np.concatenate(
                    [self._draw_omegas(part, chain, block) for block in range(self.n_blocks_)], axis=2
                )
                if Z.shape[1]:
                    drawn += np.array([omegas(Z[docs], draw[:, n_topics:].copy()) for draw in eta])[pairs]
                omega.append(drawn + offset[docs])
            all_draws = np.concatenate(omega)
            if x is not None:  # every draw of eta has one of the copies of theta
                said = np.array([x[docs] @ theta.T for theta in self._theta]) * constants(self)[1]
                all_draws += said[copies_of_draws(len(etas), etas.shape[1], pairs, len(said))]
            if empty[docs].any():
                all_draws[:, empty[docs]] += self._draw_empty(len(all_draws))[:, None]
            return sum_up(all_draws, np.concatenate(scales[:, pairs]), docs)

        numbers = len(etas) * n_pairs * etas.shape[2]
        if self.device == "cuda":  # a card wants many documents at a time, and cuts them itself
            n_parts, n_threads = len(lengths) * numbers // DEVICE_NUMBERS, 1
        else:
            n_parts = max(len(tokens.word) // CHUNK_TOKENS, len(lengths) * numbers // CHUNK_NUMBERS, n_threads)
        parts = cut(tokens.doc_start, max(1, min(n_parts, len(lengths))))
        found = each(lambda i: work(parts[i]), len(parts), n_threads, threading.Event())
        if isinstance(found[0], tuple):
            return tuple(map(np.concatenate, zip(*found, strict=True)))
        return np.concatenate(found)

    def _draw_omegas(self, tokens: Tokens, chain: int, block: int) -> np.ndarray:
        """The topics' part of omega of new documents, (n_draws, n_docs, R or 1): of all columns, or of a block's."""
        eta = self._calibrated[0][chain][:, :, self._block(block)]
        if self.n_blocks_ > 1:
            eta = eta[:, block : block + 1]
        topics, key = self._topics(chain, block), self._key(chain, block)
        return draw_omegas(tokens, topics, self.predict_sweeps, np.ascontiguousarray(eta), key)

    @consistent
    def explain(
        self, X: ArrayLike, feature_names: ArrayLike | None = None, *, covariates: ArrayLike | None = None,
        exposure: ArrayLike | None = None, level: float = 0.9,
    ) -> Explanation:  # fmt: skip
        """Why a document gets its prediction: what each of its words adds to omega.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (1, n_words)
            The word counts of one document.
        feature_names : array-like of str, optional
            The vocabulary, as for `top_words`.
        covariates, exposure : array-like, optional
            As for `predict`.
        level : float, default=0.9
            The posterior probability inside the intervals.

        Returns
        -------
        Explanation
            Its parts add up to omega, over whose draws the prediction is a mean; `frame()` has them as a table.
        """
        counts, names = self._new_counts(X), self._feature_names(feature_names)
        if counts.shape[0] != 1:
            raise ValueError(f"explain takes one document, got {counts.shape[0]}; give X[i : i + 1].")
        check_level(level)
        Z, known = self._covariates(covariates, 1), log_exposure(exposure, 1)
        return explain_counts(self, counts, names, Z, float(np.ravel(known)[0]) if np.size(known) else 0.0, level)

    def _explained_columns(self) -> tuple[list[str], np.ndarray]:
        """What an explanation has columns for, and each as a sum of columns of omega: (what is shown, R)."""
        names = self._column_names()
        return names, np.eye(len(names))

    def _means(self, omegas: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        """What is predicted for omega (n_draws, n_docs, R), a draw each, and the names of it."""
        return omegas, self._column_names()

    @property
    def word_coef_(self) -> np.ndarray:
        """The mean direct weights of single words, (column, word), times a word's tf-idf; see `words`."""
        check_is_fitted(self, "_word_topic")
        if not self._theta.size:
            raise AttributeError("The model has no word_coef_: it was fitted with words=False, or without calibration.")
        coef = np.zeros((self._theta.shape[1], self.n_features_in_))
        coef[:, self._dictionary.word] = self._theta.mean(axis=0, dtype=float) * constants(self)[1][:, None]
        return coef

    @property
    def calibrated_draws_(self) -> np.ndarray:
        """The draws of eta that predictions use, (chain, draw, column, topic): see `calibrate`."""
        check_is_fitted(self, "_word_topic")
        return self._calibrated[0][..., : self._n_features_out]

    @property
    def training_draws_(self) -> np.ndarray:
        """The draws of eta in the chains that learned the topics, (chain, draw, column, topic): too sure."""
        check_is_fitted(self, "_word_topic")
        return self._eta[..., : self._n_features_out]

    @property
    def coef_draws_(self) -> np.ndarray:
        """The draws behind `coef_`, (chain, draw, column, topic), from responses that no topic has seen."""
        check_is_fitted(self, "_word_topic")
        return self._shown[..., : self._n_features_out]

    @property
    def coef_(self) -> np.ndarray:
        """The posterior mean of the weights in the best chain, (column, topic)."""
        return self.coef_draws_[self.best_chain_].mean(axis=0)

    @property
    def covariate_coef_draws_(self) -> np.ndarray:
        """The draws of the covariates' weights, (chain, draw, column, covariate), for a unit of each covariate."""
        check_is_fitted(self, "_word_topic")
        return self._shown[..., self._n_features_out :] / self.covariate_scale_

    @property
    def covariate_coef_(self) -> np.ndarray:
        """The posterior mean of the covariates' weights over all chains, (column, covariate)."""
        return self.covariate_coef_draws_.mean(axis=(0, 1))

    def coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the weights in the best chain.

        Parameters
        ----------
        level : float, default=0.9
            The posterior probability inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_columns, n_topics)
        """
        return interval(self.coef_draws_[self.best_chain_], level)

    def covariate_coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the covariates' weights over all chains, each (column, covariate)."""
        draws = self.covariate_coef_draws_
        return interval(draws.reshape(-1, *draws.shape[2:]), level)


def largest(weights: np.ndarray) -> np.ndarray:
    """The largest weight of each column, 1 where nothing is known."""
    most = weights.max(axis=0)
    return np.where(most > 0, most, 1.0)


def by_chain(draws: np.ndarray, n_chains: int) -> np.ndarray:
    """The means of draws (n_draws, n_docs, ...) of all chains over those of each chain: (n_docs, chain, ...)."""
    return np.moveaxis(draws.reshape(n_chains, -1, *draws.shape[1:]).mean(axis=1), 1, 0)
