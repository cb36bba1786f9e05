"""Ordered classes: SLDAOrdinalClassifier."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supertopic.estimators.classifiers import TopicClassifier
from supertopic.estimators.docs import documented
from supertopic.estimators.fitted import Fitted
from supertopic.estimators.validation import check_level
from supertopic.model.posterior import Posterior
from supertopic.model.responses import Ordinal


def ordinal_response(posterior: Posterior) -> Ordinal:
    """The response of the classifier."""
    assert isinstance(posterior.response, Ordinal)
    return posterior.response


@documented
class SLDAOrdinalClassifier(TopicClassifier):
    """Supervised LDA with ordered classes: stars, grades, answers from "never" to "always".

    A cumulative logit (ordered logit): the log-odds of a class above j are omega less threshold j, with one weight for
    each topic, and thresholds between the classes that are drawn. A classifier would ignore the order, and a regression
    would treat the classes as numbers at equal distances, without bounds.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=8.0
        Weight of the response against the words while topics are learned.
    order : sequence, optional
        The classes, the lowest first. Numbers and ordered pandas categories already have an order; other names need
        this. It may list classes that no document has.
    ...

    Attributes
    ----------
    classes_ : ndarray
        The classes, the lowest first.
    thresholds_ : ndarray of shape (n_classes - 1,)
        The mean of the thresholds that predictions use: omega at which the classes above and below are equally likely.
    threshold_draws_ : ndarray of shape (n_chains, n_draws, n_classes - 1)
        Their draws.
    coef_ : ndarray of shape (1, n_topics)
        Posterior mean of the reported weights. More of a topic with a positive weight makes higher classes more likely.
    ...

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from supertopic import SLDAOrdinalClassifier
    >>> texts = ["dull slow boring", "fine nice slow", "great superb fine"] * 7
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = SLDAOrdinalClassifier(n_topics=3, random_state=0).fit(X, [1, 2, 3] * 7)
    >>> model.predict(X[:3]).tolist()
    [1, 2, 3]
    """

    order: Any
    stored = (*TopicClassifier.stored, "order")

    def __init__(
        self, n_topics: int = 20, *, c: float = 8.0, order: Any = None, class_weight: Any = None,
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

    def make_response(self) -> Ordinal:
        return Ordinal(
            float(self.c), class_weight=self.class_weight, missing_label=self.missing_label, order=self.order
        )

    threshold_draws_ = Fitted(lambda posterior: posterior.scale)
    thresholds_ = Fitted(lambda posterior: posterior.scale.mean(axis=(0, 1)))

    def predict_proba(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The probability of each class; rows sum to 1. It is a mean over all draws."""
        return self._new(X, covariates, features=features, groups=groups).expected()

    def predict_cumulative(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The probability of each class or a lower one, (n_docs, n_classes); the last column is 1."""
        p = self.predict_proba(X, covariates=covariates, features=features, groups=groups)
        return np.minimum(np.cumsum(p, axis=1), 1.0)

    def predict_grade(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The expected grade of each document: the mean of the classes, or of 1, 2, 3, ... if these are names."""
        p = self.predict_proba(X, covariates=covariates, features=features, groups=groups)
        return p @ ordinal_response(self._fitted()).grades

    def predict_grade_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The central posterior interval of each expected grade: lower and upper ends, (n_docs,) each."""
        check_level(level)
        documents = self._new(X, covariates, features=features, groups=groups)
        response = ordinal_response(documents.posterior)
        return documents.summarise(lambda omegas, scales, _: response.grade_interval(omegas, scales, level))

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The central posterior interval of each probability: lower and upper ends, shaped as from predict_proba."""
        check_level(level)
        return self._new(X, covariates, features=features, groups=groups).interval(level)

    def linear_predictor(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The mean of omega over all draws, (n_docs,).

        Higher classes have larger values, and `thresholds_` separate them.
        """
        documents = self._new(X, covariates, features=features, groups=groups)
        return documents.summarise(lambda omegas, *_: omegas.mean(axis=0)[:, 0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags
