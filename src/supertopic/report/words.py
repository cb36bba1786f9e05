"""Top words that read well: scores, words that are left out, pairs that are one thing, and names of topics."""

import numpy as np
from scipy.stats import rankdata

ENOUGH_TOKENS = 5.0  # of a word that a topic is said to have
PLACE, PART = 10, 0.5  # a candidate has this part of the count of the word at this place of the topic


def word_scores(topics: np.ndarray, counts: np.ndarray, shares: np.ndarray, by: str) -> np.ndarray:
    """How well each word shows what each topic is about, (K, V); counts (K, V) are means over the draws.

    "frex" and "lift" compare the words that are frequent in a topic; the others come after them, by probability. FREX
    is the harmonic mean of two ranks: of the probability and of the exclusivity (Bischof and Airoldi 2012).
    """
    if by not in ("frex", "probability", "lift"):
        raise ValueError(f"by must be 'frex', 'probability' or 'lift', got {by!r}.")
    if by == "probability" or not topics.size:
        return topics
    scores, whole = -1.0 / (1.0 + topics), shares @ topics if by == "lift" else topics.sum(axis=0)
    for row, topic, count in zip(scores, topics, counts, strict=True):
        has = candidates(count)
        rare = topic[has] / whole[has]
        if by == "frex":
            ranks = [rankdata(x, method="max") / len(has) for x in (topic[has], rare)]
            rare = 2.0 / (1.0 / ranks[0] + 1.0 / ranks[1])
        row[has] = rare
    return scores


def candidates(count: np.ndarray) -> np.ndarray:
    """The words that are frequent in a topic, given its counts (V,): a rare word shows nothing, however exclusive."""
    place = max(len(count) - PLACE, 0)
    least = max(ENOUGH_TOKENS, PART * np.partition(count, place)[place])
    return np.flatnonzero(count >= min(least, count.max()))
