"""Classes and labels: SLDAClassifier (logistic) and MedLDAClassifier (max-margin)."""

import os
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from supertopic.corpus.source import Target, make_target
from supertopic.estimators.base import consistent
from supertopic.estimators.beliefs import POINT, POINT_SD, POINT_WEIGHT, named, seed_places
from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.supervised import SupervisedTopicModel, by_chain
from supertopic.estimators.validation import MOST, check_level, is_unknown, plain, without_na
from supertopic.model.responses import Hinge, Logistic, Response, average
from supertopic.report.diagnostics import interval

MANY = 8  # classes that a message names
LEAST_OF_A_CLASS = 4  # documents; the topics need those of a smaller class


class TopicClassifier(ClassifierMixin, SupervisedTopicModel):
    """What classifiers have in common: how classes and labels become columns, and columns become classes."""

    _spread = POINT_SD
    class_weight: Any
    start: str
    missing_label: Any
    multilabel_: bool
    classes_: np.ndarray

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.start not in ("mean", "paper"):
            raise ValueError(f"start must be 'mean' or 'paper', got {self.start!r}.")

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        classes: ArrayLike | None = None, covariates: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from one more batch of documents: what is known so far is its prior, see `discount`.

        The first call is a `fit`. The cost of another is that of its own documents; `doc_topic_`, `log_joint_` and
        what else is about training documents are those of the last batch. If it fails or is stopped, the model is what
        it was before.

        Parameters
        ----------
        y : array-like, optional
            As in `fit`. Once the classes are known it may be left out, or unknown throughout.
        ...
        """
        more = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "classes": classes}
        return self._partial_fit(X, y, sample_weight, covariates, feature_names, **more)

    def _encode(
        self, y: Any, weight: np.ndarray, exposure: Any, classes: Any = None, going_on: bool = False
    ) -> tuple[Response, Target]:
        """Set classes_ and turn y into columns of 0 and 1."""
        n_docs, names = len(weight), getattr(y, "columns", None)
        fixed: Any = self.classes_ if going_on else None if classes is None else np.unique(classes)
        if going_on and classes is not None and not np.array_equal(np.unique(classes), np.unique(self.classes_)):
            raise ValueError(f"classes are {list(self.classes_)} since the first batch, got {list(classes)}.")
        if y is None and going_on and self.multilabel_:
            y = np.full((n_docs, len(fixed)), np.nan)
        elif y is None:
            y = np.full(n_docs, None, object)
        y = y.toarray() if issparse(y) else np.asarray(without_na(y))
        if y.ndim != 2 or y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if len(y) != n_docs:
            raise ValueError(f"X has {n_docs} documents but y has {len(y)}; they must be equally many.")
        unknown = is_unknown(y, self.missing_label)
        known = ~unknown & (weight > 0).reshape(-1, *[1] * (y.ndim - 1))
        if not known.any() and fixed is None:
            raise ValueError("Every label in y is unknown (or has weight 0); at least some must be known.")
        if going_on and (self.multilabel_ != (y.ndim == 2) or (y.ndim == 2 and y.shape[1] != len(fixed))):
            raise ValueError(f"y has shape {y.shape}, which is not what the batches before had.")
        self.multilabel_ = y.ndim == 2
        if self.multilabel_:
            columns = self._encode_labels(y, unknown, names if fixed is None else fixed)
            weights = known * weight[:, None]
            if self.class_weight is not None:
                weights = weights * balanced(columns, weights > 0, self.class_weight)
        else:
            columns, weights = self._encode_classes(y, known, weight, fixed)
        if weights.max() * self.c > MOST:
            raise ValueError(f"Weights times c must be at most {MOST:g}, got {weights.max() * self.c:g}.")
        return self._response(columns.shape[1]), make_target(columns, weights)

    def _can_be_hidden(self, target: Target) -> np.ndarray:
        known = super()._can_be_hidden(target)
        if self.multilabel_:
            return known
        _, place, size = np.unique(target.y[known], axis=0, return_inverse=True, return_counts=True)
        known[known] = size[place.ravel()] >= LEAST_OF_A_CLASS
        return known

    def _encode_labels(self, y: Any, unknown: np.ndarray, names: Any) -> np.ndarray:
        values = set(np.unique(y[~unknown].astype(object)).tolist())
        if not values <= {0, 1}:
            raise ValueError(f"A 2-D y must be a 0/1 indicator matrix, got values {sorted(values, key=str)[:5]}.")
        self.classes_ = np.arange(y.shape[1]) if names is None else np.array(list(map(str, names)), dtype=object)
        return np.where(unknown, 0, y).astype(float)

    def _points(self, n_columns: int) -> np.ndarray | None:
        if self.seeds is None or self.seed_weights is None:
            return None
        labels = {str(label): j for j, label in enumerate(self.classes_)}
        weights = self.seed_weights
        if weights == "auto":
            weights = {topic: topic for topic, _ in named(self.seeds) if topic in labels}
        stray = [label for label in weights.values() if str(label) not in labels]
        if stray:
            raise ValueError(f"seed_weights: {stray[0]!r} is not one of the classes {list(labels)[:5]} ...")
        places, points = seed_places(self.seeds, weights), np.zeros((2, n_columns, self.n_topics))
        for topic, label in weights.items():
            j, pull = labels[str(label)], np.zeros(n_columns)
            if n_columns == len(labels):
                pull[j] = 1.0
            elif n_columns == 1:
                pull[:] = 2 * j - 1
            else:  # sticks: not a class before it, and then this one
                pull[:j], pull[j : j + 1] = -1.0, 1.0
            points[:, :, places[topic]] = np.array([POINT, POINT_WEIGHT])[:, None] * pull
        return points

    def _encode_classes(
        self, y: Any, known: np.ndarray, weight: np.ndarray, fixed: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        labels = y[~is_unknown(y, self.missing_label)]
        if not len(labels):
            self.classes_ = fixed
            return self._columns(np.zeros(len(y), int), np.zeros(len(y)))
        if labels.dtype == object and not all(isinstance(label, str) for label in labels):
            labels = np.array(labels.tolist())  # whole numbers beside None
            if labels.dtype.kind not in "iufb":
                raise ValueError("y mixes text and numbers; give every label the same type.")
        check_classification_targets(labels)
        self.classes_ = np.unique(labels) if fixed is None else fixed
        seen, stray = y[known].astype(labels.dtype), np.setdiff1d(labels, self.classes_)
        if len(stray):
            raise ValueError(
                f"y has the class {plain(stray[0])!r}, which was not there at first; the first partial_fit takes "
                "all of them as classes=."
            )
        if fixed is None and len(np.unique(seen)) < 2:
            raise ValueError(f"y has one class only ({self.classes_[0]}); a classifier needs at least two.")
        index = np.zeros(len(y), int)
        index[known] = np.searchsorted(self.classes_, seen)
        weight = known * weight
        if self.class_weight is not None and len(seen):
            weights = compute_class_weight(self.class_weight, classes=np.unique(seen), y=seen)
            weight[known] *= weights[np.searchsorted(np.unique(seen), seen)]
        return self._columns(index, weight)

    def _columns(self, index: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of 0 and 1 with their weights: one for two classes, else one a class, all on the same topics."""
        columns = (index[:, None] == np.arange(len(self.classes_))).astype(float)
        columns = columns[:, 1:] if len(self.classes_) == 2 else columns
        return columns, np.repeat(weight[:, None], columns.shape[1], axis=1)

    @abstractmethod
    def decision_function(self, X: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """The score of each document: (n_docs,) for two classes, else a column for each class or label."""

    def _where_known(self, surprise: np.ndarray, y: Any) -> np.ndarray:
        """The sum over labels, or the only number of each document; NaN where nothing is known."""
        unknown = is_unknown(np.asarray(without_na(y)), self.missing_label).reshape(len(surprise), -1)
        known = np.where(unknown, 0.0, surprise).sum(axis=1)
        return np.where(unknown.all(axis=1), np.nan, known)

    def _one_column(self, score: np.ndarray) -> np.ndarray:
        return score.ravel() if len(self.classes_) == 2 and not self.multilabel_ else score

    @consistent
    def predict(self, X: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """The class of each document with the highest score, or a 0/1 indicator matrix of its labels."""
        return self._decide(self.decision_function(X, covariates=covariates))

    @abstractmethod
    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of what the prediction is made from: lower and upper ends."""

    @consistent
    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, covariates: ArrayLike | None = None
    ) -> float:
        """The accuracy of predictions; with labels, the share of documents whose labels are all right."""
        return float(accuracy_score(y, self.predict(X, covariates=covariates), sample_weight=sample_weight))

    def _decide(self, score: np.ndarray) -> np.ndarray:
        """What follows from the scores."""
        if self.multilabel_:
            return (score > 0).astype(int)
        return self.classes_[(score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)]

    def _truth(self, y: Any, n_docs: int) -> np.ndarray:
        """The columns of 0 and 1, one a class or label, that y stands for; 0 where it is unknown."""
        y = y.toarray() if issparse(y) else np.asarray(without_na(y))
        if len(y) != n_docs:
            raise ValueError(f"X has {n_docs} documents but y has {len(y)}; they must be equally many.")
        if self.multilabel_ != (y.ndim == 2) or (y.ndim == 2 and y.shape[1] != len(self.classes_)):
            raise ValueError(f"y has shape {y.shape}, but the model was fitted with {self._shape_of_y()}.")
        unknown = is_unknown(y, self.missing_label)
        if self.multilabel_:
            return np.where(unknown, 0, y).astype(float)
        known = y[~unknown]
        stray = known[~np.isin(known, self.classes_)]
        if len(stray):
            raise ValueError(
                f"y has the class {plain(stray[0])!r}, which the model does not know: it has {self._names()}."
            )
        return (y[:, None] == self.classes_).astype(float)

    def _names(self) -> str:
        """The classes, for a message."""
        names = ", ".join(repr(name) for name in self.classes_[:MANY].tolist())
        return names + (f" and {len(self.classes_) - MANY} more" if len(self.classes_) > MANY else "")

    def _shape_of_y(self) -> str:
        return f"{len(self.classes_)} labels" if self.multilabel_ else "one class for each document"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@documented
class SLDAClassifier(TopicClassifier):
    """Supervised LDA with a logistic response: topics that explain the words and the classes.

    Two classes take one column of weights eta, more take one column a class on shared topics, and a 0/1 indicator
    matrix takes one a label. The model of Zhu, Zheng and Zhang (ACL 2013).

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=25.0
        Weight of the response against the words while topics are learned. 1 is plain sLDA; the paper uses 25 for two
        classes. Predictions hardly depend on it from there on.
    multiclass : {"shared", "separate", "stick_breaking"}, default="shared"
        What three classes or more are: a column each against the rest, on topics that they share; a model each, with
        n_topics topics of its own, as in the paper; or a row of decisions, "the first class or a later one", "the
        second or a later one" and so on, in the order of `classes_`, which is one likelihood of all classes, and
        natural where they have an order. With "separate", topics are those of the first class, then those of the
        second, and so on, and a class has weights for its own. It goes for labels, too.
    ...

    Attributes
    ----------
    classes_ : ndarray
        The classes, or the names or numbers of the labels.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of the weights in the best chain, from hidden documents: see `hidden`. With two classes there is
        one row, positive towards classes_[1]: intercept_ + coef_[0, k] is the log-odds of a document that is all
        topic k.
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

    def __init__(
        self, n_topics: int = 20, *, c: float = 25.0, multiclass: str = "shared", class_weight: Any = None,
        calibrate: bool = True, words: bool = True, hidden: float | str = "auto", alpha: ArrayLike | None = None,
        beta: float = 0.01, optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None,
        seed_strength: float = 1.0, seed_weights: Any = "auto", prior: Any = None, prior_weights: bool = False,
        discount: float = 1.0, start: str = "mean", burn_in: int = 60, n_draws: int = 20, n_chains: int = 4,
        sampler: str = "auto", predict_sweeps: int = 40, missing_label: Any = None, n_jobs: int | None = None,
        device: str = "cpu", engine: str = "threads", random_state: Any = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.multiclass not in ("shared", "separate", "stick_breaking"):
            raise ValueError(f"multiclass must be 'shared', 'separate' or 'stick_breaking', got {self.multiclass!r}.")

    def _count_blocks(self, n_columns: int) -> int:
        return n_columns if self.multiclass == "separate" else 1

    def _response(self, n_columns: int) -> Response:
        exclusive = not self.multilabel_ and self.multiclass != "stick_breaking" and len(self.classes_) > 2
        return Logistic(float(self.c), exclusive, paper_start=self.start == "paper")

    @property
    def sticks_(self) -> bool:
        """Whether the columns are sticks: one less than the classes."""
        return not self.multilabel_ and 2 <= self._eta.shape[2] == len(self.classes_) - 1

    def _explained_columns(self) -> tuple[list[str], np.ndarray]:
        if not self.sticks_:
            return super()._explained_columns()
        n = len(self.classes_)  # a class is what comes after decisions against those before it
        return [str(name) for name in self.classes_], (np.eye(n) - np.tri(n, k=-1))[:, : n - 1]

    def _columns(self, index: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.multiclass != "stick_breaking" or len(self.classes_) == 2:
            return super()._columns(index, weight)
        stick = np.arange(len(self.classes_) - 1)  # a document reaches the sticks up to its own class
        return (index[:, None] == stick).astype(float), weight[:, None] * (index[:, None] >= stick)

    def _probabilities(self, omega: np.ndarray) -> np.ndarray:
        """For one draw the probability of each class or label."""
        if self.multilabel_:
            return expit(omega)
        if len(self.classes_) == 2:
            return np.hstack([expit(-omega), expit(omega)])
        if self.sticks_:
            ones = np.ones((len(omega), 1))
            return np.hstack([expit(omega), ones]) * np.hstack([ones, np.cumprod(expit(-omega), axis=1)])
        return softmax(omega, axis=1)  # if exactly one column is 1, each is the one in proportion to its odds

    def _means(self, omegas: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        return np.array(list(map(self._probabilities, omegas))), self.classes_.tolist()

    def _surprise(self, X: Any, y: Any, beside: dict[str, Any]) -> np.ndarray:
        p = self.predict_proba(X, **beside)
        truth = self._truth(y, len(p))
        chosen = np.where(truth > 0.5, p, 1.0 - p) if self.multilabel_ else np.sum(p * truth, axis=1)[:, None]
        return self._where_known(-np.log(chosen + 1e-300), y)

    @consistent
    def predict_proba(self, X: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """The probability of each class (rows sum to 1), or of each label (rows need not).

        It is a mean over the draws of the weights and of the document's own topics: of a text with few words little is
        known.
        """
        return self._foretell(lambda omegas, *_: average(list(map(self._probabilities, omegas))), X, covariates)

    @consistent
    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of each probability: lower and upper ends, shaped as from predict_proba.

        It holds what is not known of the weights and, from its words, of the document's topics.
        """
        check_is_fitted(self, "_word_topic")
        check_level(level)
        return self._foretell(
            lambda omegas, *_: interval(np.array(list(map(self._probabilities, omegas))), level), X, covariates
        )

    def _losses(self, X: Any, y: Any, covariates: Any = None) -> tuple[np.ndarray, list[float]]:
        """The log-loss of each draw, (chain, draw), and the accuracy of each chain."""
        truth, n_chains = self._truth(y, self._new_counts(X).shape[0]), len(self._eta)

        def sum_up(omegas: np.ndarray, _: Any, docs: slice) -> Any:
            p = np.array(list(map(self._probabilities, omegas)))
            chosen = (
                np.where(truth[docs] > 0.5, p, 1.0 - p)
                if self.multilabel_
                else np.sum(p * truth[docs], axis=2)[..., None]
            )
            return -np.log(chosen + 1e-300).sum(axis=2).T, by_chain(p, n_chains)

        losses, p = self._foretell(sum_up, X, covariates)
        right = (p > 0.5) == truth[:, None] if self.multilabel_ else p.argmax(axis=2) == truth.argmax(axis=1)[:, None]
        return losses.mean(axis=0).reshape(n_chains, -1), mean_of_chains(right)

    @consistent
    def decision_function(self, X: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """logit of the mean probability: (n_docs,) for two classes, else a column for each class or label."""
        return self._logits(self.predict_proba(X, covariates=covariates))

    def _logits(self, p: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 2 and not self.multilabel_:
            return np.log(p[:, 1] + 1e-300) - np.log(p[:, 0] + 1e-300)
        return np.log(p + 1e-300) - np.log1p(-p + 1e-16)


@documented
class MedLDAClassifier(TopicClassifier):
    """Max-margin supervised LDA (Gibbs MedLDA): topics that explain the words and keep the classes a margin apart.

    The hinge loss of a support vector machine in place of the logistic one: psi = exp(-2 c max(0, margin - y omega))
    with y = -1 or 1 (Zhu, Chen, Perkins and Zhang, JMLR 2014). Like LinearSVC it has no probabilities. Two classes
    take one column of weights eta, more take one column a class on shared topics, and labels one each.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=1.0
        Weight of the response against the words.
    margin : float, default=16.0
        How far from 0 omega should be. With the prior of eta fixed, a larger one weighs the response more.
    calibrate : bool, default=True
        Predict with the weights of a support vector machine (c = 1, margin 1) on the training documents' topics as
        their words alone tell them. The weights that are shown are log-odds, from a logistic regression on hidden
        documents: a hinge has no intervals.
    ...

    Attributes
    ----------
    classes_ : ndarray
        The classes, or the names or numbers of the labels.
    ...
    """

    _numbers = (*SupervisedTopicModel._numbers, "margin")

    margin: float

    def __init__(
        self, n_topics: int = 20, *, c: float = 1.0, margin: float = 16.0, class_weight: Any = None,
        calibrate: bool = True, words: bool = True, hidden: float | str = "auto", alpha: ArrayLike | None = None,
        beta: float = 0.01, optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None,
        seed_strength: float = 1.0, seed_weights: Any = "auto", prior: Any = None, prior_weights: bool = False,
        discount: float = 1.0, start: str = "mean", burn_in: int = 60, n_draws: int = 20, n_chains: int = 4,
        sampler: str = "auto", predict_sweeps: int = 40, missing_label: Any = None, n_jobs: int | None = None,
        device: str = "cpu", engine: str = "threads", random_state: Any = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def _response(self, n_columns: int) -> Response:
        return Hinge(float(self.c), float(self.margin), paper_start=self.start == "paper")

    def _losses(self, X: Any, y: Any, covariates: Any = None) -> tuple[np.ndarray, list[float]]:
        """The hinge loss of each draw, (chain, draw), and the accuracy of each chain."""
        truth, (n_chains, _, n_columns) = self._truth(y, self._new_counts(X).shape[0]), self._eta.shape[:3]
        sign = 2.0 * truth[:, -n_columns:] - 1.0

        def sum_up(omegas: np.ndarray, _: Any, docs: slice) -> Any:
            return np.maximum(1.0 - sign[docs] * omegas, 0.0).sum(axis=2).T, by_chain(omegas, n_chains)

        losses, means = self._foretell(sum_up, X, covariates)
        one = self.multilabel_ or n_columns == 1
        right = (means > 0) == (sign > 0)[:, None] if one else means.argmax(axis=2) == truth.argmax(axis=1)[:, None]
        return losses.mean(axis=0).reshape(n_chains, -1), right.reshape(len(truth), n_chains, -1).mean(
            axis=(0, 2)
        ).tolist()

    def _surprise(self, X: Any, y: Any, beside: dict[str, Any]) -> np.ndarray:
        score = self.decision_function(X, **beside)
        truth = self._truth(y, len(score))
        if self.multilabel_ or score.ndim == 1:
            sign = 2.0 * (truth if self.multilabel_ else truth[:, 1:]) - 1.0
            return self._where_known(np.maximum(-sign * score.reshape(sign.shape), 0.0), y)
        others = np.where(truth > 0.5, -np.inf, score).max(axis=1)
        return self._where_known((others - np.sum(score * truth, axis=1))[:, None], y)

    @consistent
    def decision_function(self, X: ArrayLike, *, covariates: ArrayLike | None = None) -> np.ndarray:
        """The mean of omega over all draws: (n_docs,) for two classes, else a column for each class or label."""
        return self._one_column(self._foretell(lambda omegas, *_: average(omegas), X, covariates))

    @consistent
    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of each score: lower and upper ends, shaped as from decision_function.

        It holds what is not known of the weights and, from its words, of the document's topics.
        """
        check_is_fitted(self, "_word_topic")
        check_level(level)
        lower, upper = self._foretell(lambda omegas, *_: interval(omegas, level), X, covariates)
        return self._one_column(lower), self._one_column(upper)


def mean_of_chains(right: np.ndarray) -> list[float]:
    """The mean of (n_docs, chain, ...) for each chain."""
    return right.reshape(*right.shape[:2], -1).mean(axis=(0, 2)).tolist()


def balanced(columns: np.ndarray, known: np.ndarray, class_weight: Any) -> np.ndarray:
    """Weights that give having and not having a label the same sum, column by column."""
    if class_weight != "balanced":
        raise ValueError(f"class_weight must be 'balanced' or None where y holds labels, got {class_weight!r}.")
    n = known.sum(axis=0)
    yes = (columns * known).sum(axis=0)
    return np.where(columns > 0.5, n / np.maximum(2 * yes, 1), n / np.maximum(2 * (n - yes), 1))
