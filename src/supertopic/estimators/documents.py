"""Methods of estimators that show some documents: typical, surprising and unsure ones, as data frames.

They are functions that estimators take as their methods.
"""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supertopic.corpus.made_frames import index_of, make_frame
from supertopic.corpus.tokens import make_tokens
from supertopic.estimators.texts import are_texts
from supertopic.inference.predict import NewDocuments, mean_topic_shares
from supertopic.inference.teaching import choose_different, uncertainties, word_rows
from supertopic.model.responses.classes import ClassResponse
from supertopic.report import topics as topics_report


def typical_documents(self: Any, X: ArrayLike, topic: int, n: int = 5) -> Any:
    """The documents in which a topic has the largest share.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts.
    topic : int
        Its number, as in `coef_` and `top_words`.
    n : int, default=5
        The number of documents.

    Returns
    -------
    DataFrame
        Columns: row, the label of the document in the index of X, or its row number; text, if X are texts; and share,
        that of the topic. The largest come first. The share of a short document is shrunk towards the prior of the
        topic, since a single word is weak evidence.
    """
    return document_frame(X, **typical_rows(self, X, topic, n))


def surprising(self: Any, X: ArrayLike, y: ArrayLike, n: int = 10, **beside: Any) -> Any:
    """The documents whose responses are least expected: their labels may be wrong.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts. Responses of training documents are less surprising, because the model learned from them.
    y : array-like
        Their responses; unknown ones are never surprising.
    n : int, default=10
        The number of documents.
    beside : optional
        `covariates`, `exposure` and `features`, as for `predict`.

    Returns
    -------
    DataFrame
        Columns: row, the label of the document in the index of X, or its row number; text, if X are texts; predicted
        and observed; and score, by which documents are sorted. The score is the probability of the observed class or
        of all observed labels, the distance of a number from its prediction in standard deviations, how far a score
        of `MedLDAClassifier` is on the wrong side, or the probability of an event as early or as late. A censored time
        is shown as "beyond" it.
    """
    return document_frame(X, **surprising_rows(self, X, y, n, **beside))


def unsure(self: Any, X: ArrayLike, n: int = 10, **beside: Any) -> Any:
    """The documents with the most uncertain predictions; see `next_to_label` for those to label next.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts.
    n : int, default=10
        The number of documents.
    beside : optional
        `covariates`, `exposure` and `features`, as for `predict`.

    Returns
    -------
    DataFrame
        Columns: row, the label of the document in the index of X, or its row number; text, if X are texts; predicted;
        and score, by which documents are sorted. The score is the probability of the predicted class, the mean
        distance of the labels' probabilities from a half, the width of the 90 % interval of a number, for
        `MedLDAClassifier` how far apart the two best scores are, or for times the variance of survival, averaged over
        the periods.
    """
    return document_frame(X, **unsure_rows(self, X, n, **beside))


def typical_rows(self: Any, X: Any, topic: int, n: int) -> dict[str, Any]:
    """The columns of `typical_documents`, and their rows."""
    check_n(n)
    posterior, counts, settings = self._fitted(), self._counts(X), self._settings()
    rows = topics_report.typical_documents(posterior, counts, topic, n, settings)
    shares = mean_topic_shares(posterior, make_tokens(counts[rows]), settings)
    return {"rows": rows, "share": shares[:, topic]}


def surprising_rows(self: Any, X: Any, y: Any, n: int, wrong: bool = False, **beside: Any) -> dict[str, Any]:
    """The columns of `surprising`, and their rows; `wrong`: only of documents whose prediction is wrong.

    That of a number is wrong if the number is outside the 90 % interval.
    """
    check_n(n)
    documents = self._new(X, **beside)
    response = documents.posterior.response
    truth = response.truth(y, documents.counts.shape[0])
    surprise = documents.surprise(truth)
    rows = np.argsort(-surprise, kind="stable")
    if wrong:
        known = np.isfinite(surprise)
        rows = rows[(known & is_wrong(documents, truth))[rows]]
    rows = rows[:n]
    score = np.where(np.isfinite(surprise[rows]), surprise[rows], np.nan)
    score = np.exp(-score) if response.has_probabilities else score
    observed = response.observed(truth, y, rows)
    return {"rows": rows, "predicted": predicted(documents, rows), "observed": observed, "score": score}


def is_wrong(documents: NewDocuments, truth: np.ndarray) -> np.ndarray:
    """Whether each prediction is wrong, (n_docs,)."""
    response = documents.posterior.response
    if response.kind == "time" or response.several_raters:
        raise ValueError(f"Predictions of the response {response.kind!r} cannot be right or wrong. Use surprising().")
    if isinstance(response, ClassResponse):
        wrong = ~response.right(truth, documents.expected())
        if response.multilabel:
            wrong &= ~np.isnan(truth)
        return np.asarray(wrong.any(axis=1))
    lower, upper = documents.interval(0.9)
    y = response.offset_in_units(truth)
    return np.asarray(((y < lower) | (y > upper)).any(axis=1))


def unsure_rows(self: Any, X: Any, n: int, **beside: Any) -> dict[str, Any]:
    """The columns of `unsure`, and their rows."""
    check_n(n)
    documents = self._new(X, **beside)
    doubt = documents.doubt()
    rows = np.argsort(-doubt, kind="stable")[:n]
    return {"rows": rows, "predicted": predicted(documents, rows), "score": np.abs(doubt[rows])}


def next_to_label(self: Any, X: ArrayLike, n: int = 10, **beside: Any) -> Any:
    """The documents to label next: their labels would improve the model most, and they differ from each other.

    A label is informative about all documents with the same words. So the best document is uncertain itself, and many
    uncertain documents are similar to it. Uncertainty that the documents above it would remove does not count again.
    Uncertainty about the topics of a short document does not count, since no label reduces it.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts, of documents without labels.
    n : int, default=10
        The number of documents. Fewer are returned if the others are the same as those.
    beside : optional
        `covariates`, `exposure`, `features` and `groups`, as for `predict`.

    Returns
    -------
    DataFrame
        Columns: row, the label of the document in the index of X, or its row number; text, if X are texts; predicted;
        uncertainty, of classes and labels 1 less the distance of the two most probable answers, of ratings and counts
        the mutual information of the number and the weights in nats, and of scores of `MedLDAClassifier`
        exp(-distance); and score, the share of all uncertainty that the label would reduce, times the uncertainty of
        the document, given the documents above it.
    """
    check_n(n)
    documents = self._new(X, **beside)
    unsure = uncertainties(documents)
    rows, score = choose_different(unsure, word_rows(documents), int(n))
    return document_frame(X, rows, predicted=predicted(documents, rows), uncertainty=unsure[rows], score=score)


def check_n(n: Any) -> None:
    """Refuse a number of documents that cannot be right."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
        raise ValueError(f"n must be a whole number of documents, 0 or more, got {n!r}.")


def document_frame(X: Any, rows: np.ndarray, **columns: Any) -> Any:
    """A data frame of some documents, with the labels of X's index and with texts if there are any."""
    found: dict[str, Any] = {"row": list(index_of(X)[rows]) if index_of(X) is not None else rows}
    if are_texts(X):
        found["text"] = np.asarray(X, dtype=object)[rows]
    return make_frame(found | columns)


def predicted(documents: NewDocuments, rows: np.ndarray) -> list[Any]:
    """What is predicted for some documents: a class, the labels, a number or several, a median time."""
    response = documents.posterior.response
    expected = documents.part(rows).expected() if len(rows) else np.zeros((0, len(response.answers)))
    return response.predicted(expected)
