"""What all supervised models have in common: they learn from documents with responses, predict and explain."""

import os
from abc import abstractmethod
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from supertopic.corpus.made_frames import in_own_library
from supertopic.estimators import documents
from supertopic.estimators.base import TopicModel
from supertopic.estimators.check_labels import check_labels
from supertopic.estimators.decisions import conformalize
from supertopic.estimators.docs import documented_fit
from supertopic.estimators.effects import effects_on, interactions
from supertopic.estimators.encoding import response_of
from supertopic.estimators.fitted import Fitted
from supertopic.estimators.growing import STAYS, Growing
from supertopic.estimators.inference_data import to_arviz
from supertopic.estimators.placebo import placebo
from supertopic.estimators.report import report
from supertopic.estimators.texts import check_vectorizer
from supertopic.estimators.validation import (
    check_level,
    group_columns,
    log_exposure,
    new_covariates,
    new_features,
    refuse_counts,
)
from supertopic.inference.fit import Checkpointing
from supertopic.inference.guarantees import abstention_curve
from supertopic.inference.predict import NewDocuments
from supertopic.model.formula import as_formula
from supertopic.model.posterior import Posterior
from supertopic.model.responses.averages import draw_interval
from supertopic.report import summary
from supertopic.report.diagnose import Diagnosis, diagnose_response
from supertopic.report.evaluate import Evaluation, known_responses
from supertopic.report.explain import Explanation, explain_document
from supertopic.report.topics import topic_labels, vocabulary_of

MOST_HELD_OUT = 0.5  # largest share of the documents that may be held out
PRIORITIES = ("prediction", "topics")
HELD_OUT_BY = ("document", "group")


class Supervised(TopicModel):
    """A topic model with a response."""

    c: float
    nu2: float
    calibrate: bool
    words: Any
    priority: str
    held_out: Any
    held_out_by: str
    formula: Any
    _numbers = (*TopicModel._numbers, "nu2", "c")
    stored = (
        *TopicModel.stored, "c", "nu2", "calibrate", "words", "priority", "held_out", "held_out_by", "formula",
    )  # fmt: skip

    def check_parameters(self) -> None:
        super().check_parameters()
        if not isinstance(self.words, bool | np.bool_):
            check_vectorizer("words", self.words)
        formula = as_formula(self.formula)
        if formula is not None:
            formula.check()
        if self.priority not in PRIORITIES:
            raise ValueError(f"priority must be 'prediction' or 'topics', got {self.priority!r}.")
        if self.held_out_by not in HELD_OUT_BY:
            raise ValueError(f"held_out_by must be 'document' or 'group', got {self.held_out_by!r}.")
        share = self.held_out
        number = isinstance(share, Real) and not isinstance(share, bool) and 0 <= float(share) <= MOST_HELD_OUT
        if not number and not (isinstance(share, str) and share == "auto"):
            raise ValueError(f"held_out must be 'auto' or a share from 0 to {MOST_HELD_OUT}, got {self.held_out!r}.")

    def _fit(
        self, X: Any, y: Any, feature_names: Any, previous: Posterior | None = None, growing: Growing = STAYS,
        **more: Any,
    ) -> Self:  # fmt: skip
        return super()._fit(X, self._join(y, more), feature_names, previous, growing, **more)

    def _join(self, y: Any, more: dict[str, Any]) -> Any:
        """The response, which may come in parts: other arguments of `fit` that belong to it are taken out of `more`."""
        return response_of(self.formula, y, more.get("covariates"))

    @documented_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
        feature_names: ArrayLike | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn topics and weights from texts or word counts and the response of each document.

        Parameters
        ----------
        ...
        """
        more: dict[str, Any] = {
            "sample_weight": sample_weight, "covariates": covariates, "features": features, "groups": groups,
        }  # fmt: skip
        return self._fit(X, y, feature_names, checkpointing=Checkpointing(checkpoint, checkpoint_every), **more)

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        discount: float = 1.0, new_words: bool = True, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from another batch of documents; the model so far is the prior.

        The first call is a `fit`. Later calls take time for their own documents only. `doc_topic_`, `log_joint_` and
        other attributes about training documents are those of the last batch. If a call fails or is stopped, the model
        does not change.

        Parameters
        ----------
        y : array-like, optional
            As in `fit`. After the first call you may leave it out, or it may be unknown for all documents.
        ...
        """
        more: dict[str, Any] = {
            "sample_weight": sample_weight, "covariates": covariates, "features": features, "groups": groups,
        }  # fmt: skip
        more["checkpointing"] = Checkpointing(checkpoint, checkpoint_every)
        return self._update(X, y, feature_names, discount, new_words, **more)

    # predictions

    def _new(
        self, X: Any, covariates: Any = None, exposure: Any = None, features: Any = None, groups: Any = None
    ) -> NewDocuments:
        """New documents, checked."""
        posterior, counts = self._read(X)
        if counts.words is counts.topics:
            refuse_counts(posterior)
        n_docs, columns = counts.topics.shape[0], posterior.columns_beside
        Z = np.hstack([new_covariates(columns, covariates, n_docs), group_columns(columns.groups, groups, n_docs)])
        values = new_features(posterior.features, features, n_docs)
        return NewDocuments(posterior, *counts, values, Z, log_exposure(exposure, n_docs), self._settings())

    @abstractmethod
    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The interval of each prediction: lower and upper ends."""

    def predict_table(self, X: ArrayLike, **beside: Any) -> dict[str, np.ndarray]:
        """Predictions and their uncertainty as columns of a table, for pandas.DataFrame.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words), or texts
            Documents.
        **beside
            covariates, exposure, features and groups of the documents, as for `predict`.

        Returns
        -------
        dict
            "prediction", and columns beside it. Classes and labels have the probability of each, or its score
            (MedLDAClassifier); ordered classes also the expected "grade" and the ends of its 90 % interval; ratings
            have a standard deviation, "std"; counts the ends of a 90 % interval, "lower" and "upper". The prediction
            of times is the median; they also have the ends of the 90 % interval of a new time, the "risk", and the
            probabilities to survive three times.
        """
        return self._new(X, **beside).predictions()

    @in_own_library
    def explain(
        self, X: ArrayLike, feature_names: ArrayLike | None = None, *, covariates: ArrayLike | None = None,
        exposure: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
        level: float = 0.9,
    ) -> Explanation:  # fmt: skip
        """Why a document gets its prediction: what each of its words adds to omega.

        Parameters
        ----------
        X : str, or array-like or sparse matrix of shape (1, n_words)
            One document: its text if the model was fitted to texts, or its word counts.
        feature_names : array-like of str, optional
            The vocabulary, as for `top_words`.
        covariates, exposure, features, groups : array-like, optional
            As for `predict`.
        level : float, default=0.9
            The posterior probability inside the intervals.

        Returns
        -------
        Explanation
            Its parts add up to omega, over whose draws the prediction is a mean; `frame()` has them as a table.
        """
        document = self._new([X] if isinstance(X, str) else X, covariates, exposure, features, groups)
        if document.counts.shape[0] != 1:
            raise ValueError(f"explain takes one document, got {document.counts.shape[0]}; give X[i : i + 1].")
        check_level(level)
        names = vocabulary_of(document.posterior, feature_names)
        return explain_document(document, names, topic_labels(document.posterior, names), level)

    conformalize = conformalize
    check_labels = in_own_library(check_labels)
    next_to_label = in_own_library(documents.next_to_label)
    unsure = in_own_library(documents.unsure)
    surprising = in_own_library(documents.surprising)
    placebo = in_own_library(placebo)
    effects_on = in_own_library(effects_on)
    interactions = in_own_library(interactions)
    to_arviz = to_arviz
    report = report

    def evaluate(self, X: ArrayLike, y: ArrayLike | None = None, **beside: Any) -> Evaluation:
        """How well the responses of documents are predicted.

        Returns
        -------
        Evaluation
            losses, (n_docs,): -log p of classes and labels, the share of errors of the hinge, the squared error of
            ratings in units of the variance, and the negative log density of counts; NaN where y is unknown. Of all
            documents with known responses: score and score_name, and figures, a dict of the score and other measures.
            abstention, of classes and labels: a dict of arrays, the error rate among the most certain predictions
            (`error`) against their share (`answered`), and the confidence of the least certain of them (`threshold`).
        """
        documents = self._new(X, **beside)
        response = documents.posterior.response
        truth = response.truth(y, documents.counts.shape[0])
        known, (losses, expected) = known_responses(truth), documents.losses(truth)
        figures = response.figures(truth[known], expected[known])
        curve = abstention_curve(response, truth[known], expected[known])
        return Evaluation(losses, figures[response.score_name], response.score_name, figures, curve)

    def diagnose(self, X: ArrayLike | None = None, y: ArrayLike | None = None, **beside: Any) -> Diagnosis:
        """Whether the chains have settled, and how much they differ.

        Parameters
        ----------
        X, y : held-out documents and responses, optional
            With X also omega, with both also the loss and, for each chain, the score.
        **beside
            exposure, covariates, features or groups of these documents.

        Returns
        -------
        Diagnosis
            A dict that is shown as a table. For each quantity "rhat" and "ess", rank-normalised (Vehtari and others,
            2021); of omega the median over the documents. "score" holds a number for each chain instead, and "held-out
            documents" losses (see `held_out_`). R-hat needs four draws or more; the halves of one chain stand for two.
            Its `advice` says what to do.

        Chains of a topic model often stay with different topics, so R-hat between them is hardly ever 1. This does no
        harm, since predictions average over them. A ConvergenceWarning says that you should do something: if the log
        joint still rises, or if the chains' scores differ by more than 0.05.
        """
        if X is None:
            return diagnose_response(self._fitted())
        documents = self._new(X, **beside)
        truth = None if y is None else documents.posterior.response.truth(y, documents.counts.shape[0])
        return diagnose_response(documents.posterior, documents, truth)

    # weights

    coef_draws_ = Fitted(summary.coef_draws)
    coef_ = Fitted(lambda posterior: summary.coef_draws(posterior).mean(axis=0))
    prediction_draws_ = Fitted(lambda posterior: posterior.response.in_units(posterior.prediction))
    training_draws_ = Fitted(lambda posterior: posterior.response.in_units(posterior.training))
    word_coef_ = Fitted(summary.word_coef)
    intercept_ = Fitted(lambda posterior: posterior.response.offset_in_units(posterior.intercept.base))
    prediction_intercept_ = Fitted(lambda posterior: posterior.response.offset_in_units(posterior.intercept.level))
    empty_intercept_ = Fitted(lambda posterior: posterior.response.offset_in_units(posterior.intercept.empty))
    empty_documents_ = Fitted(lambda posterior: posterior.intercept.empty_documents)
    held_out_ = Fitted(lambda posterior: posterior.held_out)
    group_names_ = Fitted(lambda posterior: posterior.columns_beside.groups)
    group_sd_ = Fitted(lambda posterior: summary.group_sd(posterior).mean(axis=0))
    covariate_names_ = Fitted(summary.covariate_names)
    covariate_reference_ = Fitted(summary.covariate_reference)
    covariate_coef_draws_ = Fitted(summary.covariate_draws)
    covariate_coef_ = Fitted(lambda posterior: summary.covariate_draws(posterior).mean(axis=0))

    def coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the reported weights.

        Parameters
        ----------
        level : float, default=0.9
            The posterior probability inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_columns, n_topics)
        """
        return draw_interval(summary.coef_draws(self._fitted()), level)

    def covariate_coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the covariates' reported weights, each (column, covariate)."""
        return draw_interval(self.covariate_coef_draws_, level)

    @in_own_library
    def coefficient_frame(self, level: float = 0.9) -> Any:
        """A data frame of the reported weights: column, topic, name, mean, sd, interval, P(positive)."""
        return summary.coefficient_frame(self._fitted(), level)

    @in_own_library
    def group_frame(self, level: float = 0.9) -> Any:
        """A data frame of the groups' reported intercepts, relative to their mean over the documents.

        Columns: column, group, mean, sd, lower, upper, p_positive.
        """
        return summary.group_frame(self._fitted(), level)

    @in_own_library
    def effect_frame(self, points: float = 0.1, level: float = 0.9) -> Any:
        """A data frame of the effect of more of a topic on the probability, the rating or the count.

        A document with the usual shares of all topics gets `points` (0.1: ten percentage points) more of one topic, and
        less of all topics in proportion. Columns: topic, name, column, before, which is the base rate, after, and
        their difference, `change`, with its interval; from held-out documents, as `coef_` is.
        """
        return summary.effect_frame(self._fitted(), points, level)

    def missed_words(self, feature_names: ArrayLike | None = None, n: int = 10) -> list[dict[str, Any]]:
        """Words that add to what topics predict: for each column the largest direct weights, positive and negative."""
        posterior = self._fitted()
        return summary.missed_words(posterior, vocabulary_of(posterior, feature_names), n)
