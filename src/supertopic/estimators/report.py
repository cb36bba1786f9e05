"""The page of a model, as a method of estimators."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from supertopic.corpus.writing import whole_text
from supertopic.estimators.texts import read_texts
from supertopic.inference.predict import NewDocuments
from supertopic.report.page import Other, Page, make_page
from supertopic.report.topics import vocabulary_of


def report(
    self: Any, texts: Sequence[str], y: ArrayLike | None = None, path: str | os.PathLike[str] | None = None, *,
    vectorizer: Any = None, title: str = "", test: bool | None = None, rival: dict[str, Any] | None = None,
    by: Any = None, other: Any = None, name: str = "", rows: Sequence[Any] | None = None, **beside: Any,
) -> Page:  # fmt: skip
    """Write an HTML page that shows what the model found, how well it predicts, and why.

    Parameters
    ----------
    texts : sequence of str
        Documents to evaluate and to explain, of which some are shown.
    y : array-like, optional
        Their responses; without them nothing is evaluated.
    path : path, optional
        Where the page is written.
    vectorizer : CountVectorizer, optional
        The fitted vectorizer of a model that was fitted to counts.
    title : str
        The heading.
    test : bool, optional
        True for test documents, which the model has not learned from, and False for those of the fit. By default the
        page says that it is not known.
    rival : dict, optional
        Figures of another model on the same documents: its "name" and "accuracy", "log_loss", "micro_f1", "r2" or
        "mean_error". For numbers also "predicted", an array of its predictions.
    by : array-like of shape (n_docs,), DataFrame or dict of columns, optional
        What is known of each document, such as its author or its date: the page shows the shares of topics in each
        group, in each range of a number, or over time. None, NaN and empty texts are unknown.
    other : estimator or Pipeline, optional
        Another fitted model to compare with this one: which of its topics are the same, and which documents it predicts
        differently. It gets the same texts and `beside`.
    name : str
        What the response is called, such as "team"; by default the name of y, if it has one.
    rows : sequence, optional
        What each document is called on the page, such as its id; by default its number, from 0.
    **beside
        covariates, exposure, features and groups of the documents.

    Returns
    -------
    Page
        The page, a string of HTML; a notebook shows it as a link.
    """
    posterior, texts = self._fitted(), read_texts(texts)
    if isinstance(y, str | os.PathLike):
        raise ValueError(f"y must be the responses of the texts, got {y!r}; give the place of the page as path=.")
    if not texts:
        raise ValueError("texts is empty: a page shows documents; pass at least one.")
    if rows is not None and len(rows) != len(texts):
        raise ValueError(f"rows must name each of the {len(texts):,} texts, got {len(rows):,} names.")
    documents, names = page_documents(self, texts, vectorizer, beside)
    truth = None
    if y is not None and posterior.supervised:
        truth = posterior.response.truth(y, len(texts))
    second = None
    if other is not None:
        own = None
        if isinstance(other, Pipeline):
            own, other = other[0], other[-1]
        second = Other(*page_documents(other, texts, own, beside), type(other).__name__)
    page = make_page(
        documents, texts, truth, names, title or f"{type(self).__name__} on {len(texts):,} documents",
        type(self).__name__, test=test, rival=rival, by=by, what=name or str(getattr(y, "name", None) or ""),
        methods=self.methods_text(), other=second, rows=rows,
    )  # fmt: skip
    if path is not None:
        with whole_text(path) as file:
            file.write(page)
    return Page(page, path)


def page_documents(self: Any, texts: list[str], vectorizer: Any, beside: dict[str, Any]) -> tuple[NewDocuments, Any]:
    """Texts as documents of a model, and the words of its topics."""
    posterior, own = self._fitted(), vectorizer or getattr(self, "vectorizer_", None)
    if own is None:
        raise ValueError("report shows texts: vectorizer is the fitted one that made the counts of the fit.")
    X = vectorizer.transform(texts) if vectorizer else texts
    names = own.get_feature_names_out() if vectorizer or posterior.vocabulary is None else None
    if posterior.supervised:
        documents = self._new(X, **beside)
    else:
        counts, nothing = self._counts(X), np.zeros((len(texts), 0))
        documents = NewDocuments(
            posterior, counts, counts, nothing, nothing, np.zeros((len(texts), 1)), self._settings()
        )  # fmt: skip
    return documents, vocabulary_of(posterior, names)
