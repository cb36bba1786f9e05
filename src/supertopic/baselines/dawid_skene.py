"""Dawid and Skene's model: true classes from the answers of several raters, without texts."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from supertopic.model.responses import CrowdLogistic


class DawidSkene(NamedTuple):
    """The true classes, estimated from the answers alone."""

    classes: np.ndarray  # (L,)
    probability: np.ndarray  # (n_docs, L): of each true class
    raters: np.ndarray  # (n_raters,): names
    confusion: np.ndarray  # (n_raters, L, L): P(answer | true class)

    @property
    def labels(self) -> np.ndarray:
        """The most probable class of each document."""
        return self.classes[self.probability.argmax(axis=1)]


def dawid_skene(y: Any, gold: ArrayLike | None = None, n_docs: int | None = None) -> DawidSkene:
    """The most probable confusion matrices by expectation maximisation (Dawid and Skene, 1979), with a weak prior.

    Parameters
    ----------
    y : array-like of shape (n_docs, n_raters), or data frame with the columns document, rater and answer
        The answers, as for `SLDACrowdClassifier.fit`.
    gold : array-like of shape (n_docs,), optional
        True classes, where they are known.
    n_docs : int, optional
        The number of documents of a long table; by default the largest row number plus one.

    Returns
    -------
    DawidSkene
        classes, probability (n_docs, L), raters, confusion (n_raters, L, L), and `labels`.
    """
    from supertopic.model.responses.answers import as_answers, is_long

    if n_docs is None:
        n_docs = int(np.max(np.asarray(y["document"]))) + 1 if is_long(y) else len(np.asarray(y))
    answers = as_answers(y, n_docs, gold)
    encoded = CrowdLogistic(1.0).encode(answers, np.ones(n_docs))
    response: Any = encoded.response
    share = response.seen(encoded.target.y).share
    return DawidSkene(response.classes, share, response.raters, response.base)
