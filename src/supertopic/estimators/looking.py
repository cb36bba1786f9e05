"""What a supervised model shows of documents: a page, those that it is not sure of, those that surprise it."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from supertopic.estimators.base import TopicModel, consistent

if TYPE_CHECKING:
    from supertopic.report.page import Page


class Looking(TopicModel, ABC):
    """The part of a supervised model that looks at documents."""

    multilabel_: bool

    @consistent
    def report(
        self, texts: Sequence[str], y: ArrayLike | None = None, path: str | os.PathLike[str] | None = None, *,
        vectorizer: Any = None, title: str = "", unseen: bool = False, **beside: Any,
    ) -> "Page":  # fmt: skip
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
        Page
            The page, a text of HTML; a notebook shows it as a link.
        """
        from sklearn.pipeline import make_pipeline

        from supertopic.report.page import Page, make_page

        check_is_fitted(self, "_word_topic")
        vectorizer = vectorizer or getattr(self, "vectorizer_", None)
        if vectorizer is None:
            raise ValueError("report shows texts: vectorizer is the fitted one that made the counts of the fit.")
        page = make_page(make_pipeline(vectorizer, self), list(texts), y, title=title, unseen=unseen, **beside)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return Page(page, path)

    @consistent
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

    @consistent
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
