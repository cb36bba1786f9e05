"""Several raters: SLDACrowdClassifier and SLDACrowdRegressor."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from supertopic.corpus.made_frames import in_own_library, index_of
from supertopic.corpus.source import select_target
from supertopic.estimators.classifiers import SLDAClassifier, TopicClassifier
from supertopic.estimators.docs import documented
from supertopic.estimators.documents import check_n, document_frame
from supertopic.estimators.fitted import Fitted
from supertopic.estimators.regressors import SLDARegressor
from supertopic.estimators.supervised import Supervised
from supertopic.estimators.validation import check_level
from supertopic.inference.predict import NewDocuments
from supertopic.model.posterior import Posterior
from supertopic.model.responses import CrowdGaussian, CrowdLogistic, Gaussian
from supertopic.model.responses.answers import Answers, as_answers, is_answers, is_long
from supertopic.model.responses.averages import draw_interval
from supertopic.report import raters
from supertopic.report.raters import Agreement


def crowd_response(posterior: Posterior) -> Any:
    """The response of a model with raters."""
    assert isinstance(posterior.response, CrowdLogistic | CrowdGaussian)
    return posterior.response


class FromRaters(Supervised):
    """What models with raters have in common."""

    def _answers(self, X: Any, y: Any, gold: Any) -> Answers | None:
        if y is None:
            return None
        n_docs = X.shape[0] if hasattr(X, "shape") else len(X)
        return as_answers(y, n_docs, gold, index_of(X), getattr(self, "missing_label", None))

    def fit(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None, *, gold: ArrayLike | None = None,
        **more: Any,
    ) -> Self:  # fmt: skip
        """Learn topics, weights and the errors of raters from texts or word counts and the answers of raters.

        Parameters
        ----------
        X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
            Texts, or word counts.
        y : array-like of shape (n_docs, n_raters), or data frame
            The answer of each rater about each document; NaN, None or NA where a rater was not asked. A data frame has
            the names of the raters. A long table has a row for each answer, and the columns document, rater and answer;
            a document is a row number of X, or its name in the index of a pandas X. A document without answers adds its
            words only. The column "gold" of a data frame has true classes or ratings, as `gold` does.
        sample_weight : array-like of shape (n_docs,), optional
            Multiplies c for each document.
        gold : array-like of shape (n_docs,), optional
            True classes or ratings, as far as they are known; None or NaN elsewhere.
        **more
            covariates, features, groups, feature_names, checkpoint, checkpoint_every: as in the `fit` of models without
            raters.
        """
        return super().fit(X, self._answers(X, y, gold), sample_weight, **more)

    def partial_fit(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None, *, gold: ArrayLike | None = None,
        **more: Any,
    ) -> Self:  # fmt: skip
        """Learn from another batch of documents; the model so far is the prior, also of the raters.

        The raters are those of the first batch, which may have columns without answers.

        Parameters
        ----------
        X, y, sample_weight, gold
            As in `fit`.
        **more
            As in `fit`; also discount, new_words and, for classes, classes.
        """
        return super().partial_fit(X, self._answers(X, y, gold), sample_weight, **more)

    def score(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None, **beside: Any) -> float:
        """The accuracy, or R2 of ratings.

        Parameters
        ----------
        X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
            Texts, or word counts.
        y : array-like of shape (n_docs,)
            True classes or ratings. If y has the answers of raters, the most probable classes or ratings given these
            answers alone are used as the true ones.
        sample_weight : array-like of shape (n_docs,), optional
            Weights of documents with true classes or ratings.
        **beside
            covariates, features or groups of these documents.
        """
        if is_answers(y):
            return self.evaluate(X, y, **beside).score
        return super().score(X, y, sample_weight, **beside)

    raters_ = Fitted(lambda posterior: crowd_response(posterior).raters)

    @in_own_library
    def rater_frame(self, level: float = 0.9) -> Any:
        """A data frame with a row for each rater: the number of its answers, and its errors with intervals.

        For classes the accuracy, which is the probability of a right answer. For ratings the bias, and the standard
        deviation (`sd`) around true rating plus bias.
        """
        return raters.rater_frame(self._fitted(), level)

    @in_own_library
    def agreement(self, y: Any) -> Agreement:
        """How far raters agree with each other: Krippendorff's alpha with its 90 % interval.

        Parameters
        ----------
        y : array-like or data frame
            The answers, as in `fit`; a long table has row numbers. No model is needed: `fit` may come later.

        Returns
        -------
        Agreement
            alpha, lower, upper, and raters, a frame: what share of the answers of other raters about the same documents
            are equal to a rater's own or, of ratings, their correlation with the mean of the others.
        """
        numbers = isinstance(self.make_response(), Gaussian)
        n_docs = 1 + int(np.max(np.asarray(y["document"]))) if is_long(y) else len(y)
        return raters.measure_agreement(as_answers(y, n_docs, missing=getattr(self, "missing_label", None)), numbers)

    def _with_answers(self, X: Any, y: Any, gold: Any, beside: dict[str, Any]) -> tuple[NewDocuments, Answers, Any]:
        """New documents, their answers, and the target that has these."""
        documents, answers = self._new(X, **beside), self._answers(X, y, gold)
        if answers is None:
            raise ValueError("y is None; it must have the answers of the raters.")
        response = crowd_response(documents.posterior).plain()
        answers = answers.with_raters(response.raters)
        return documents, answers, response.encode(answers, np.ones(documents.counts.shape[0])).target


@documented
class SLDACrowdClassifier(FromRaters, TopicClassifier):
    """Supervised LDA with classes from several raters, each with different errors.

    Raters may be people of a crowd, coders of a content analysis, or language models. Each has a confusion matrix, the
    probability of each answer given the true class, with a Dirichlet prior that expects two of three answers to be
    right. The true class of a document is unknown; its topics and words help to estimate it. Without texts this is the
    model of Dawid and Skene (1979).

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=25.0
        Weight of the response against the words while topics are learned.
    class_weight : "balanced", dict or None, default=None
        Multiplies c by a number for each probable class; "balanced" gives all classes the same total weight.
    ...

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    raters_ : ndarray of shape (n_raters,)
        The names of the raters: those of y's columns, or their numbers.
    confusion_ : ndarray of shape (n_raters, n_classes, n_classes)
        The mean of the confusion matrices: P(answer | true class), a row for each true class.
    ...

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from supertopic import SLDACrowdClassifier
    >>> texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 5
    >>> answers = np.array([["s", "s", "s"], ["s", "p", "s"], ["p", "p", "s"], ["p", "p", "p"]] * 5)
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = SLDACrowdClassifier(n_topics=2, random_state=0).fit(X, answers)
    >>> model.predict(X[:3]).tolist()
    ['s', 's', 'p']
    """

    def __init__(
        self, n_topics: int = 20, *, c: float = 25.0, class_weight: Any = None,
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

    def make_response(self) -> CrowdLogistic:
        return CrowdLogistic(
            float(self.c), paper_start=self.start == "paper", class_weight=self.class_weight,
            missing_label=self.missing_label,
        )  # fmt: skip

    confusion_ = Fitted(lambda posterior: raters.confusion_draws(posterior).mean(axis=0))
    predict_proba = SLDAClassifier.predict_proba
    predict_interval = SLDAClassifier.predict_interval
    decision_function = SLDAClassifier.decision_function

    def confusion_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the confusion matrices: lower and upper ends, shaped as `confusion_`."""
        check_level(level)
        return draw_interval(raters.confusion_draws(self._fitted()), level)

    @in_own_library
    def confusion_frame(self, level: float = 0.9) -> Any:
        """A data frame: rater, true class, answer, its probability, lower, upper."""
        check_level(level)
        return raters.confusion_frame(self._fitted(), level)

    def infer_labels(self, X: ArrayLike, y: Any, *, gold: ArrayLike | None = None, **beside: Any) -> np.ndarray:
        """The probability of each true class given the texts and the answers of raters, (n_docs, n_classes).

        Parameters
        ----------
        X, y, gold
            Documents and answers, as in `fit`: those of the fit, or others.
        **beside
            covariates, features or groups of these documents.
        """
        documents, _, target = self._with_answers(X, y, gold, beside)
        response = crowd_response(documents.posterior)
        return documents.summarise(
            lambda omegas, scales, docs: response.infer(select_target(target, docs), omegas, scales)
        )

    @in_own_library
    def disagreements(self, X: ArrayLike, y: Any, n: int = 10, **beside: Any) -> Any:
        """The answers of raters that are most probably wrong, given the text and all answers about it.

        Parameters
        ----------
        X, y
            Documents and answers, as in `fit`.
        n : int, default=10
            The number of answers.
        **beside
            covariates, features or groups of these documents.

        Returns
        -------
        DataFrame
            Columns: row, text if X are texts, rater, answer, its probability p_answer, the most probable class as
            `probable`, and its probability p_probable.
        """
        check_n(n)
        p = self.infer_labels(X, y, **beside)
        answers = self._answers(X, y, None)
        assert answers is not None
        classes = self.classes_
        place = {value: i for i, value in enumerate(classes.tolist())}
        said = np.array([place[value] for value in answers.value.tolist()], int)
        order = np.argsort(p[answers.doc, said], kind="stable")[:n]
        rows, best = answers.doc[order], p.argmax(axis=1)
        return document_frame(
            X, rows, rater=answers.raters[answers.rater[order]], answer=answers.value[order],
            p_answer=p[rows, said[order]], probable=classes[best[rows]], p_probable=p[rows, best[rows]],
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        tags.target_tags.two_d_labels = True
        return tags


@documented
class SLDACrowdRegressor(FromRaters, SLDARegressor):
    """Supervised LDA with ratings of several raters, each with a bias and a precision of its own.

    A rating is the true rating of the document, plus the bias of the rater, plus normal noise. The prior of a bias has
    the standard deviation of the ratings. A bias that all raters share can only be estimated from gold ratings. Without
    them, biases are relative to their mean, in which raters with fewer than about ten ratings count less.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=8.0
        Weight of the response against the words.
    sigma2 : {"variance", "drawn"} or float, default="variance"
        The variance of the true rating around omega while topics are learned: see `SLDARegressor`.
    ...

    Attributes
    ----------
    raters_ : ndarray of shape (n_raters,)
        The names of the raters: those of y's columns, or their numbers.
    bias_ : ndarray of shape (n_raters,)
        The posterior mean of each rater's bias, in the units of y.
    rater_sd_ : ndarray of shape (n_raters,)
        The posterior mean of the standard deviation of each rater's ratings around true rating plus bias.
    ...

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from supertopic import SLDACrowdRegressor
    >>> texts = ["dull slow boring", "fine nice slow", "great superb fine"] * 7
    >>> ratings = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 4.0]] * 7)
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = SLDACrowdRegressor(n_topics=3, random_state=0).fit(X, ratings)
    >>> bool(model.bias_[0] < model.bias_[1])
    True
    """

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

    def make_response(self) -> CrowdGaussian:
        plain: Any = super().make_response()
        more = {"fixed": plain.fixed, "known_variance": plain.known_variance}
        return CrowdGaussian(plain.c, plain.sigma2, drawn=plain.drawn, **more)

    bias_ = Fitted(lambda posterior: raters.rating_draws(posterior)[0].mean(axis=0))
    rater_sd_ = Fitted(lambda posterior: raters.rating_draws(posterior)[1].mean(axis=0))

    def infer_ratings(
        self, X: ArrayLike, y: Any, return_std: bool = False, *, gold: ArrayLike | None = None, **beside: Any
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean of each true rating given the texts and the ratings of raters and, if asked for, its sd.

        Parameters
        ----------
        X, y, gold
            Documents and ratings, as in `fit`: those of the fit, or others.
        return_std : bool, default=False
            Whether to give the standard deviation of each true rating, too.
        **beside
            covariates, features or groups of these documents.
        """
        documents, _, target = self._with_answers(X, y, gold, beside)
        response = crowd_response(documents.posterior).plain()
        mean, sd = documents.summarise(
            lambda omegas, scales, docs: response.infer(select_target(target, docs), omegas, scales)
        )
        return (mean[:, 0], sd[:, 0]) if return_std else mean[:, 0]

    @in_own_library
    def disagreements(self, X: ArrayLike, y: Any, n: int = 10, **beside: Any) -> Any:
        """The ratings of raters that differ most from what is expected, given the text and the other ratings.

        Parameters
        ----------
        X, y
            Documents and ratings, as in `fit`.
        n : int, default=10
            The number of ratings.
        **beside
            covariates, features or groups of these documents.

        Returns
        -------
        DataFrame
            Columns: row, text if X are texts, rater, rating, `expected` (the true rating plus the rater's bias), and
            `away`, their difference in standard deviations.
        """
        check_n(n)
        mean, sd = self.infer_ratings(X, y, return_std=True, **beside)
        answers = as_answers(self._answers(X, y, None), len(mean)).with_raters(self.raters_)
        expected = mean[answers.doc] + self.bias_[answers.rater]
        value = answers.value.astype(float)
        away = (value - expected) / np.hypot(sd[answers.doc], self.rater_sd_[answers.rater])
        order = np.argsort(-np.abs(away), kind="stable")[:n]
        return document_frame(
            X, answers.doc[order], rater=answers.raters[answers.rater[order]], rating=value[order],
            expected=expected[order], away=away[order],
        )  # fmt: skip
