"""What held-out documents look like to a model, with which later documents are compared."""

from typing import NamedTuple

import numpy as np

LEAST_TOKENS = 5  # smallest number of predicted tokens from which the surprise of a document is computed


class Reference(NamedTuple):
    """Figures of documents that no chain has learned from."""

    surprise: np.ndarray  # (n,): -log p of a token, the mean over half of a document's tokens
    shares: np.ndarray  # (m, K) float32: the topic shares
    unknown: np.ndarray  # (l,): the share of unknown words in documents, each as if the others made the vocabulary


def word_surprise(logs: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """-log p of a token, (n,), from the log probability of some tokens of each document."""
    return np.where(tokens >= LEAST_TOKENS, -logs / np.maximum(tokens, 1), np.nan)
