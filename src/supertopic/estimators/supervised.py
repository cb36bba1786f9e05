"""What all supervised models have in common: the way from y to a target, omega of new documents, intervals."""

import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from supertopic.corpus import Tokens, cut, make_tokens, take
from supertopic.estimators.base import TopicModel
from supertopic.estimators.beliefs import constants
from supertopic.estimators.docs import documented_fit
from supertopic.estimators.validation import MOST, check_covariates, check_level, check_number, log_exposure
from supertopic.kernels.moments import omegas
from supertopic.report.diagnostics import interval
from supertopic.report.explain import Explanation, explain_counts
from supertopic.sampling.crew import each
from supertopic.sampling.inference import CARD_NUMBERS, CHUNK_NUMBERS, CHUNK_TOKENS, draw_omegas
from supertopic.sampling.plan import Arrays, Corpus
from supertopic.sampling.responses import Response
from supertopic.sampling.state import Target, no_target
from supertopic.sampling.trust import BESIDE_WORDS, Foretold, Surfaces, Trust, draw_factors, enough, find_trust
from supertopic.sampling.words import (
    COPIES,
    Dictionary,
    Past,
    carry,
    count_documents,
    learn_words,
    make_dictionary,
    pick,
)

HIDDEN, ENOUGH = (0.05, 0.15), 100  # hidden="auto": the least and the largest share, and how many documents are enough
MOST_SHARE = 0.5
LEAST_HIDDEN, MOST_HIDDEN = 5, 10_000  # documents; fewer tell nothing, more tell nothing new
NO_THETA, NO_WORDS = np.zeros((0, 0, 0), np.float32), Dictionary(np.zeros(0, int), np.zeros(0))
FEW = 5.0  # documents: so many of the mean join those without words, of which there may be few


class SupervisedTopicModel(TopicModel, ABC):
    """A topic model with a response. A subclass says how y becomes a target, and what is predicted from omega."""

    _numbers = (*TopicModel._numbers, "nu2")
    c: float
    nu2: float
    calibrate: bool
    words: bool
    hidden: Any

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
        with self._or_as_before():
            return self._fit(X, y, sample_weight, covariates, feature_names, **more)

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
            response = response.learned(self._learned["scale"], float(self.discount))
        target = target._replace(covariates=Z, offset=self._set_intercepts(target, lengths == 0))
        known = documents.with_target(target)
        self._fit_chains(known, X, response, checkpoint, checkpoint_every, before, going_on)
        return self

    def _set_intercepts(self, target: Target, empty: np.ndarray) -> np.ndarray:
        """Learn omega of a document of which nothing is known, and of one without words; returns it for all, (n, R)."""
        given, exposure = target.weight * target.y, target.weight * np.exp(target.offset)
        sums = np.array([array[docs].sum(axis=0) for docs in (slice(None), empty) for array in (given, exposure)])
        if "sums" in self._learned:
            sums += float(self.discount) * self._learned["sums"]
        self._learned["sums"] = sums
        mean, few = self._mean(target, sums[:2]), FEW * largest(exposure)
        links = self._link(mean), self._link((sums[2] + few * mean) / (sums[3] + few))
        self.intercept_, self.empty_intercept_ = (self._constant_in_units(constant) for constant in links)
        offset = target.offset + np.where(empty[:, None], links[1], links[0])
        return offset if offset.any() else target.offset

    def _mean(self, target: Target, sums: np.ndarray) -> np.ndarray:
        """The mean of y, (R,), never at an end of its range; `sums` are those of y and of the exposure, weighed."""
        half = 0.5 * largest(target.weight)
        return (sums[0] + half) / (sums[1] + 2.0 * half)

    @abstractmethod
    def _link(self, mean: np.ndarray) -> np.ndarray:
        """The omega that stands for a mean of y."""

    def _constant_in_units(self, constant: np.ndarray) -> np.ndarray:
        return constant

    def _hide(self, target: Target) -> np.ndarray:
        """Documents whose responses are known: every so-many-th in the order of these, so that all kinds are there."""
        hidden, known = np.zeros(len(target.y), bool), np.flatnonzero(self._can_be_hidden(target))
        share = np.clip(ENOUGH / max(len(known), 1), *HIDDEN) if self.hidden == "auto" else float(self.hidden)
        n = min(int(share * len(known)), MOST_HIDDEN)
        if self.calibrate and n >= LEAST_HIDDEN:
            rng = np.random.default_rng([self.seed_, 1, *self._round()])
            order = known[np.lexsort([rng.random(len(known)), *target.y[known].T])]
            hidden[order[((np.arange(n) + rng.random()) * (len(known) / n)).astype(int)]] = True
        return hidden

    def _can_be_hidden(self, target: Target) -> np.ndarray:
        """Which documents may be hidden, (n_docs,)."""
        return np.any(target.weight > 0, axis=1)

    def _trusted(
        self, plan: Any, X: Any, source: Any, aside: Any, hidden: Any, chains: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        eta, scale = super()._trusted(plan, X, source, aside, hidden, chains)
        self._learned["scale"] = np.concatenate(scale)
        if hidden.any() or not self.n_batches_:
            self.hidden_: dict[str, Any] = {"documents": 0}
        dictionary, self._theta, self._dictionary = getattr(self, "_dictionary", NO_WORDS), NO_THETA, NO_WORDS
        if not self.calibrate:
            return eta, scale
        alone, asked, scales = None, np.zeros(0, int), scale[0, :0]
        foretold, before = [chain.foretold for chain in chains if chain.foretold], self._surfaces("alone")
        if not foretold and before:  # nothing is hidden this time, but was before
            told = np.zeros((self._n_told(eta)[1], 0, plan.n_columns))
            foretold = [Foretold(told, told[: len(told) * bool(plan.n_covariates)])] * len(chains)
            aside = source.pick(np.zeros(len(source.target.y), bool)).load()
        if foretold:
            pairs, some = np.arange(len(foretold[0].topics)) % eta.shape[1], enough(aside.target, *self._n_told(eta))
            aside, asked, scales = aside.pick(some), np.flatnonzero(hidden)[some], np.concatenate(scale[:, pairs])
            alone = find_trust(plan.response.plain(), aside.target, foretold, scales, before=before)
        trust, believed = alone, 0.0
        if self.words and X is not None:
            told = np.mean([chain.left_out for chain in chains], axis=0)
            known = source.target.covariates @ eta[..., plan.n_topics :].mean(axis=(0, 1)).T
            target = source.target._replace(offset=source.target.offset + known)
            n_docs, past, discount = count_documents(X), None, float(self.discount)
            if "theta" in self._learned:
                n_docs = n_docs + discount * self._learned["documents"]
            self._learned["documents"], self._dictionary = n_docs, make_dictionary(n_docs, plan.n_columns)
            if "theta" in self._learned:
                theta, precision, penalty = (self._learned[name] for name in ("theta", "theta_precision", "penalty"))
                past = carry(Past(theta, precision, penalty.item()), dictionary, self._dictionary, discount)
            x, n_threads = self._dictionary.rows(X), effective_n_jobs(self.n_jobs)
            theta, trust, past = learn_words(
                x[~hidden], target, told, x[asked], aside.target if aside else pick(target, asked), foretold, scales,
                plan.response.plain().with_scale(scale.mean(axis=(0, 1))), [self.seed_, *self._round()],
                lambda verb, n: each(verb, n, min(n, n_threads), threading.Event()), past, self._surfaces("beside"),
            )  # fmt: skip
            self._learned |= {"theta": past.theta.astype(np.float32), "penalty": np.array([past.penalty])}
            self._learned["theta_precision"] = past.precision.astype(np.float32)
            believed = float(theta.any())
            if trust and alone:
                believed = round(COPIES * expit(trust.evidence - alone.evidence)) / COPIES
                self._learned |= {f"beside_{i}": surface for i, surface in enumerate(trust.surfaces)}
            trust = trust or alone
            theta[round(COPIES * believed) :] = 0.0
            self._theta = self._in_units(theta, scale)[0].astype(np.float32)
        if alone:
            self._learned |= {f"alone_{i}": surface for i, surface in enumerate(alone.surfaces)}
        if trust and alone and hidden.any():
            self._told(trust, alone, believed, int(hidden.sum()))
        shape, n_topics = eta.shape[:3], plan.n_topics
        rng = np.random.default_rng([self.seed_, 2, *self._round()])
        n_draws = shape[0] * shape[1]
        worded = (np.arange(n_draws) % COPIES < COPIES * believed)[:, None]
        topics, beside, of_scale = (
            np.broadcast_to(np.where(worded, *pair).reshape(*shape[:2], -1), shape)
            for pair in zip(
                draw_factors(trust, n_draws, rng, BESIDE_WORDS), draw_factors(alone, n_draws, rng, 1.0), strict=True
            )
        )
        eta = np.concatenate([eta[..., :n_topics] * topics[..., None], eta[..., n_topics:] * beside[..., None]], axis=3)
        return eta, scale * of_scale[..., : scale.shape[2]]

    def _surfaces(self, name: str) -> Surfaces | None:
        """What hidden documents of batches before have told, of topics alone or beside words."""
        if f"{name}_0" not in self._learned:
            return None
        return [float(self.discount) * self._learned[f"{name}_{i}"] for i in range(3)]

    def _told(self, trust: Trust, alone: Trust, believed: float, n_hidden: int) -> None:
        """Keep what the hidden documents have told, and warn if it was that the topics say nothing.

        `alone` is the trust in topics without words beside them, `believed` the share of draws that words speak in.
        """
        weight, n = trust.weight, trust.weight.sum()
        with np.errstate(divide="ignore"):
            loss = -np.logaddexp(np.log(believed) - trust.loss, np.log1p(-believed) - alone.loss)
        gain = (weight * (alone.base_loss - loss)).sum(axis=1) * (len(weight) / n)
        parts = {"loss": loss, "base_loss": alone.base_loss}
        if trust is not alone:
            parts |= {"topics_loss": alone.loss, "words_loss": trust.base_loss}
        factors, mass = alone.posteriors[0]
        self.hidden_ = {"documents": n_hidden} | {
            name: float((weight * loss).sum() / n) for name, loss in parts.items()
        }
        self.hidden_ |= {
            "se": float(gain.std() / np.sqrt(len(gain))),  # of the difference of loss and base_loss
            "factor": (factors @ (believed * trust.posteriors[0][1] + (1.0 - believed) * mass)).tolist(),
            "nothing": mass[0].tolist(),
        }
        if trust is not alone and self.hidden_["loss"] < self.hidden_["base_loss"]:
            base, topics, words, both = (self.hidden_[f"{name}loss"] for name in ("base_", "topics_", "words_", ""))
            share = 0.5 * ((base - topics) + (words - both)) / (base - both)  # topics first, or words first
            self.hidden_["topics_share"] = float(np.clip(share, 0.0, 1.0))
        better = (weight * (alone.base_loss - alone.loss)).sum(axis=0) > 0
        lost = np.flatnonzero(~better | (mass[0] > 0.5))
        if len(lost):
            names = getattr(self, "classes_", getattr(self, "response_names_", ()))
            what = "the response" if len(better) == 1 else "columns " + ", ".join(str(names[i]) for i in lost[:5])
            what += f" and {len(lost) - 5} more of {len(better)}" if len(lost) > 5 else ""
            alone_loss = self.hidden_.get("topics_loss", self.hidden_["loss"])
            warnings.warn(
                f"{n_hidden} documents that the topics have not seen do not show that topics foretell {what} better "
                f"than its base rate does (loss {alone_loss:.4g}, that of the base rate "
                f"{self.hidden_['base_loss']:.4g}). Predictions leave the topics out of it. Is there a relation to be "
                "found, and are there enough documents to find it?",
                stacklevel=8,
            )

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
            warnings.warn(
                f"The covariate {name!r} is the same for all documents and says nothing: its weight stays what its "
                "prior is. There is an intercept already; leave it out.",
                stacklevel=5,
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
        offset = np.where((lengths == 0)[:, None], self.empty_intercept_, self.intercept_)
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
                said = np.array([x[docs] @ theta.T for theta in self._theta])
                all_draws += said[(np.arange(len(etas))[:, None] * etas.shape[1] + pairs).ravel() % len(said)]
            return sum_up(all_draws, np.concatenate(scales[:, pairs]), docs)

        numbers = len(etas) * n_pairs * etas.shape[2]
        if self.device == "cuda":  # a card wants many documents at a time, and cuts them itself
            n_parts, n_threads = len(lengths) * numbers // CARD_NUMBERS, 1
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

    def _n_told(self, etas: np.ndarray) -> tuple[int, int]:
        """How many draws of eta there are, and of a new document's topics; predictions use as many as the more."""
        return etas.shape[1], self.predict_sweeps - self.predict_sweeps // 2

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

    def report(
        self, texts: Sequence[str], y: ArrayLike | None = None, path: str | os.PathLike[str] | None = None, *,
        vectorizer: Any = None, title: str = "", unseen: bool = False, **beside: Any,
    ) -> str:  # fmt: skip
        """One page, in one file, that shows what was fitted, what topics do, how well it predicts, and why.

        Parameters
        ----------
        texts : sequence of str
            Documents to judge and to explain, of which some are shown.
        y : array-like, optional
            Their responses; without them nothing is judged.
        path : path, optional
            Where the page is written.
        vectorizer : CountVectorizer, optional
            The fitted vectorizer; `vectorizer_` by default, which `fit_files` sets.
        title : str
            The heading.
        unseen : bool
            Whether the model has not learned from these documents, so that they show how well it predicts.
        **beside
            covariates and exposure of the documents.

        Returns
        -------
        str
            The page, as HTML.
        """
        from sklearn.pipeline import make_pipeline

        from supertopic.report.page import make_page

        check_is_fitted(self, "_word_topic")
        vectorizer = vectorizer or getattr(self, "vectorizer_", None)
        if vectorizer is None:
            raise ValueError("report shows texts: vectorizer is the fitted one that made the counts of the fit.")
        page = make_page(make_pipeline(vectorizer, self), list(texts), y, title=title, unseen=unseen, **beside)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def unsure(self, X: ArrayLike, n: int = 10, **beside: Any) -> np.ndarray:
        """The documents that the model is least sure of, row numbers of shape (n,): the best to ask somebody about.

        Classes: the largest probability is smallest; labels: the mean distance from a half; numbers: the widest 90 %
        interval. `beside` are covariates and exposure, as for `predict`.
        """
        if hasattr(self, "predict_proba"):
            p = self.predict_proba(X, **beside)
            doubt = -np.abs(p - 0.5).mean(axis=1) if self.multilabel_ else -p.max(axis=1)
        elif hasattr(self, "decision_function"):
            score = np.asarray(self.decision_function(X, **beside))
            if score.ndim == 2 and not self.multilabel_:
                best = np.sort(score, axis=1)
                doubt = best[:, -2] - best[:, -1]
            else:
                doubt = -np.abs(score.reshape(len(score), -1)).mean(axis=1)
        else:
            lower, upper = self.predict_interval(X, 0.9, **beside)
            doubt = (upper - lower).reshape(len(lower), -1).mean(axis=1)
        return np.argsort(-doubt, kind="stable")[:n]

    @abstractmethod
    def _surprise(self, X: Any, y: Any, beside: dict[str, Any]) -> np.ndarray:
        """How far each known response is from what is predicted, (n_docs,): the larger, the more surprising."""

    def surprising(self, X: ArrayLike, y: ArrayLike, n: int = 10, **beside: Any) -> np.ndarray:
        """The documents whose responses surprise the model most: candidates for wrong labels, or for a closer look.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts. Of documents that the model was fitted on it has seen the responses; others surprise it more.
        y : array-like of shape (n_docs,) or (n_docs, n_columns)
            Their responses; documents whose response is unknown come last.
        n : int, default=10
            How many documents.
        beside : optional
            `covariates` and `exposure`, as for `predict`.

        Returns
        -------
        ndarray of shape (n,)
            Row numbers, the most surprising first: by the probability of what is true, or by how many standard
            deviations a number is away from what was predicted.
        """
        surprise = self._surprise(X, y, beside)
        surprise = np.where(np.isnan(surprise), -np.inf, surprise)  # of what is unknown there is none
        if len(surprise) != self._new_counts(X).shape[0]:
            raise ValueError(f"X has {self._new_counts(X).shape[0]} documents but y has {len(surprise)}.")
        return np.argsort(-surprise, kind="stable")[:n]

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
        coef[:, self._dictionary.word] = self._theta.mean(axis=0)
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
