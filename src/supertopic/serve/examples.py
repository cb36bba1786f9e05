"""Documents that are shown beside a text: those that are about the same topics."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from supertopic.estimators.base import TopicModel

MOST, LETTERS = 10_000, 500  # documents that are compared, letters of each that are shown


class Example(NamedTuple):
    """A document that may be shown."""

    name: str
    text: str


class Examples:
    """Some documents and their shares of topics."""

    def __init__(self, model: TopicModel, documents: Sequence[Example]):
        some = np.linspace(0, len(documents) - 1, min(len(documents), MOST)).astype(int)
        own = [documents[i] for i in some]
        counts = model.vectorizer_.transform([each.text for each in own]) if own else None
        has_words = np.zeros(0, bool) if counts is None else np.diff(counts.indptr) > 0
        self.documents = [each for each, known in zip(own, has_words, strict=True) if known]
        shares = model.transform([each.text for each in self.documents])
        self.roots = np.sqrt(shares).astype(np.float32)

    def nearest(self, shares: np.ndarray, n: int) -> list[dict[str, Any]]:
        """The n documents whose shares of topics are nearest to some, (K,), the nearest first.

        The similarity is the sum of sqrt(p q) over topics: 1 for the same shares, 0 if no topic is in both.
        """
        alike = self.roots @ np.sqrt(shares).astype(np.float32)
        order = np.argsort(-alike, kind="stable")[:n]
        return [
            {"row": self.documents[i].name, "text": self.documents[i].text[:LETTERS], "similarity": float(alike[i])}
            for i in order
        ]
