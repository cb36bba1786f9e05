"""Classes and labels: SLDAClassifier (logistic) and MedLDAClassifier (max-margin)."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from supertopic.estimators import decisions
from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.fitted import Fitted
from supertopic.estimators.supervised import Supervised
from supertopic.estimators.validation import check_level
from supertopic.inference.fit import Checkpointing
from supertopic.model.posterior import Posterior
from supertopic.model.responses import Hinge, Logistic
from supertopic.model.responses.classes import MULTICLASS, ClassResponse
from supertopic.model.responses.values import check_columns


def class_response(posterior: Posterior) -> ClassResponse:
    """The response of a classifier."""
    assert isinstance(posterior.response, ClassResponse)
    return posterior.response


class TopicClassifier(ClassifierMixin, Supervised):
    """What classifiers have in common: predictions are classes, or labels as 0 and 1."""

    class_weight: Any
    start: str
    missing_label: Any
    stored = (*Supervised.stored, "class_weight", "start", "missing_label")

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.start not in ("mean", "paper"):
            raise ValueError(f"start must be 'mean' or 'paper', got {self.start!r}.")

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        classes: ArrayLike | None = None, discount: float = 1.0, new_words: bool = True, add_classes: bool = False,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
        feature_names: ArrayLike | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
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
            "classes": classes,
        }  # fmt: skip
        more["checkpointing"] = Checkpointing(checkpoint, checkpoint_every)
        return self._update(X, y, feature_names, discount, new_words, add_classes, **more)

    classes_ = Fitted(lambda posterior: class_response(posterior).classes)
    multilabel_ = Fitted(lambda posterior: class_response(posterior).multilabel)

    def _one_column(self, score: np.ndarray) -> np.ndarray:
        """Scores as scikit-learn has them: a vector for two classes."""
        return score.ravel() if class_response(self._fitted()).binary else score

    def predict(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The class of each document with the highest score, or a 0/1 indicator matrix of its labels."""
        documents = self._new(X, covariates, features=features, groups=groups)
        response = class_response(documents.posterior)
        chosen = response.chosen(documents.expected())
        return chosen if response.multilabel else response.classes[chosen]

    predict_set = decisions.predict_set
    decide = decisions.decide

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """The accuracy of predictions; with labels, the share of documents whose labels are all right."""
        check_columns(y, list(map(str, self.classes_)))
        predicted = self.predict(X, covariates=covariates, features=features, groups=groups)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@documented
class SLDAClassifier(TopicClassifier):
    """Supervised LDA with a logistic response: topics that explain the words and the classes.

    Two classes have one column of weights eta. More classes have one column each, on shared topics, and a 0/1 indicator
    matrix has one for each label. The model of Zhu, Zheng and Zhang (ACL 2013).

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=25.0
        Weight of the response against the words while topics are learned. 1 is plain sLDA; the paper uses 25 for two
        classes. Larger values hardly change predictions.
    multiclass : {"shared", "separate", "stick_breaking"}, default="shared"
        How three classes or more are modelled. "shared": a column for each class against the rest, on common topics.
        "separate": a model for each class, with n_topics topics of its own, as in the paper. "stick_breaking": a
        sequence of decisions, "the first class or a later one", "the second or a later one" and so on, in the order of
        `classes_`. This is one likelihood of all classes. With "separate", topics are those of the first class, then
        those of the second, and so on, and a class has weights for its own topics only. This works for labels, too.
    ...

    Attributes
    ----------
    classes_ : ndarray
        The classes, or the names or numbers of the labels.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of the reported weights, from held-out responses: see `held_out`. With two classes there is one
        row, positive towards classes_[1]: intercept_ + coef_[0, k] is the log-odds of a document that consists of topic
        k only.
    ...

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from supertopic import SLDAClassifier
    >>> texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 5
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = SLDAClassifier(n_topics=2, random_state=0).fit(X, ["sport", "sport", "politics", "politics"] * 5)
    >>> model.predict(X[:3]).tolist()
    ['sport', 'sport', 'politics']
    """

    multiclass: str
    stored = (*TopicClassifier.stored, "multiclass")

    def __init__(
        self, n_topics: int = 20, *, c: float = 25.0, multiclass: str = "shared", class_weight: Any = None,
        calibrate: bool = True, words: Any = True, priority: str = "prediction", held_out: float | str = "auto",
        held_out_by: str = "document", alpha: ArrayLike | None = None,
        beta: float = 0.01, optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None, prior: Any = None,
        vectorizer: Any = None, formula: Any = None,
        start: str = "mean", init: str = "nmf", burn_in: int | str = "auto", max_seconds: float | None = None,
        n_draws: int = 20, n_chains: int = 4, sampler: str = "auto", predict_sweeps: int = 40,
        missing_label: Any = None, n_jobs: int | None = None, device: str = "cpu", engine: str = "threads",
        random_state: Any = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.multiclass not in MULTICLASS:
            raise ValueError(f"multiclass must be 'shared', 'separate' or 'stick_breaking', got {self.multiclass!r}.")

    def make_response(self) -> Logistic:
        return Logistic(
            float(self.c), paper_start=self.start == "paper", multiclass=self.multiclass,
            class_weight=self.class_weight, missing_label=self.missing_label,
        )  # fmt: skip

    def predict_proba(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The probability of each class (rows sum to 1), or of each label (rows need not).

        It is a mean over the draws of the weights and of the topics of the document, so the probabilities of a short
        text are less extreme.
        """
        return self._new(X, covariates, features=features, groups=groups).expected()

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The central posterior interval of each probability: lower and upper ends, shaped as from predict_proba.

        It accounts for the uncertainty of the weights and of the topics of the document.
        """
        check_level(level)
        return self._new(X, covariates, features=features, groups=groups).interval(level)

    def decision_function(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """logit of the mean probability: (n_docs,) for two classes, else a column for each class or label."""
        p = self.predict_proba(X, covariates=covariates, features=features, groups=groups)
        if class_response(self._fitted()).binary:
            return np.log(p[:, 1] + 1e-300) - np.log(p[:, 0] + 1e-300)
        return np.log(p + 1e-300) - np.log1p(-p + 1e-16)


@documented
class MedLDAClassifier(TopicClassifier):
    """Max-margin supervised LDA (Gibbs MedLDA): topics that explain the words and separate the classes by a margin.

    It has the hinge loss of a support vector machine instead of the logistic loss: psi = exp(-2 c max(0, margin - y
    omega)) with y = -1 or 1 (Zhu, Chen, Perkins and Zhang, JMLR 2014). Like LinearSVC it has no probabilities. Two
    classes have one column of weights eta. More classes have one column each, on shared topics, and so do labels.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=1.0
        Weight of the response against the words.
    margin : float, default=16.0
        How far from 0 omega should be. With a fixed prior of eta, the response counts more if the margin is larger.
    calibrate : bool, default=True
        Predict with the weights of a support vector machine (c = 1, margin 1) on the topic shares of training
        documents, inferred from their words alone. The reported weights are log-odds, from a cross-fitted
        logistic regression: a hinge loss is no likelihood, so its posterior has no meaningful intervals.
    ...

    Attributes
    ----------
    classes_ : ndarray
        The classes, or the names or numbers of the labels.
    ...

    Examples
    --------
    >>> from supertopic import MedLDAClassifier
    >>> texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 5
    >>> model = MedLDAClassifier(n_topics=2, random_state=0).fit(texts, ["sport", "sport", "politics", "politics"] * 5)
    >>> model.predict(texts[:3]).tolist()
    ['sport', 'sport', 'politics']
    """

    margin: float
    _numbers = (*Supervised._numbers, "margin")
    stored = (*TopicClassifier.stored, "margin")

    def __init__(
        self, n_topics: int = 20, *, c: float = 1.0, margin: float = 16.0, class_weight: Any = None,
        calibrate: bool = True, words: Any = True, priority: str = "prediction", held_out: float | str = "auto",
        held_out_by: str = "document", alpha: ArrayLike | None = None,
        beta: float = 0.01, optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None, prior: Any = None,
        vectorizer: Any = None, formula: Any = None,
        start: str = "mean", init: str = "nmf", burn_in: int | str = "auto", max_seconds: float | None = None,
        n_draws: int = 20, n_chains: int = 4, sampler: str = "auto", predict_sweeps: int = 40,
        missing_label: Any = None, n_jobs: int | None = None, device: str = "cpu", engine: str = "threads",
        random_state: Any = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def make_response(self) -> Hinge:
        return Hinge(
            float(self.c), float(self.margin), paper_start=self.start == "paper", class_weight=self.class_weight,
            missing_label=self.missing_label,
        )  # fmt: skip

    def decision_function(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The mean of omega over all draws: (n_docs,) for two classes, else a column for each class or label."""
        return self._one_column(self._new(X, covariates, features=features, groups=groups).expected())

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The central posterior interval of each score: lower and upper ends, shaped as from decision_function.

        It accounts for the uncertainty of the weights and of the topics of the document.
        """
        check_level(level)
        lower, upper = self._new(X, covariates, features=features, groups=groups).interval(level)
        return self._one_column(lower), self._one_column(upper)
