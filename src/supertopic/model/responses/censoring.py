"""How good predicted survival is where not all events were seen: concordance and Brier scores.

Censored documents are replaced by others: a document that was seen until its event, or beyond a time, stands for 1 / G
documents, where G is the probability of not being censored before (inverse probability of censoring weights).
"""

import itertools
from typing import NamedTuple

import numpy as np

from supertopic.kernels.concordance import count_pairs
from supertopic.model.responses.times import Times

MOST_KNOTS = 500  # largest number of knots of the distribution of censoring
LEAST_SEEN = 0.05  # the least probability of not being censored at which predictions are compared


class Censoring(NamedTuple):
    """The Kaplan-Meier estimate of the probability of not being censored."""

    times: np.ndarray  # (m,): when it falls; the first is 0
    survival: np.ndarray  # (m,): from each time on

    def after(self, time: np.ndarray) -> np.ndarray:
        """The probability of being censored after a time."""
        return self.survival[np.searchsorted(self.times, time, side="right") - 1]

    def before(self, time: np.ndarray) -> np.ndarray:
        """The probability of not being censored before a time."""
        return self.survival[np.maximum(np.searchsorted(self.times, time, side="left") - 1, 0)]


def find_censoring(times: Times, weight: np.ndarray) -> Censoring:
    """The distribution of censoring; who is censored at the time of an event is so after it."""
    some = times.known & (weight > 0)
    time, event, weight = times.time[some], times.event[some], weight[some]
    at, place = np.unique(time, return_inverse=True)
    ended, censored = (np.bincount(place, weight * (event == kind), len(at)) for kind in (1, 0))
    at_risk = np.cumsum((ended + censored)[::-1])[::-1] - ended
    falls = censored > 0
    survival = np.cumprod(1.0 - np.minimum(censored[falls] / at_risk[falls], 1.0))
    knots, survival = np.append(0.0, at[falls]), np.append(1.0, survival)
    if len(knots) > MOST_KNOTS:
        keep = np.unique(np.searchsorted(-survival, np.linspace(-1.0, -survival[-1], MOST_KNOTS)))
        knots, survival = knots[keep], survival[keep]
    return Censoring(knots, survival)


def concordance(times: Times, risk: np.ndarray) -> float:
    """Harrell's concordance index: of the pairs that can be compared, the share in the right order.

    Of two documents the earlier time must be that of an event; pairs with the same risk count half. 0.5 without pairs.
    """
    return share_of_pairs(times, risk, np.ones(len(risk)))


def uno_concordance(times: Times, risk: np.ndarray, censoring: Censoring, until: float) -> float:
    """Uno's concordance index, which does not depend on when documents are censored; for events up to a time."""
    seen = censoring.before(times.time)
    weight = np.where((seen >= LEAST_SEEN) & (times.time <= until), 1.0 / np.maximum(seen, LEAST_SEEN) ** 2, 0.0)
    return share_of_pairs(times, risk, weight)


def share_of_pairs(times: Times, risk: np.ndarray, weight: np.ndarray) -> float:
    right, tied, comparable = count_pairs(times.time, times.event > 0, risk, weight)
    return float((right + 0.5 * tied) / comparable) if comparable > 0 else 0.5


def brier_scores(times: Times, survival: np.ndarray, at: np.ndarray, censoring: Censoring) -> np.ndarray:
    """The mean squared error of the probability to survive each time `at`, (S,); survival is (n_docs, S).

    NaN for times beyond which nearly all documents are censored.
    """
    ended = (times.time[:, None] <= at) & (times.event[:, None] > 0)
    alive = times.time[:, None] > at
    own, later = censoring.before(times.time), censoring.after(at)
    weight = ended / np.maximum(own, LEAST_SEEN)[:, None] + alive / np.maximum(later, LEAST_SEEN)
    found = (weight * (alive - survival) ** 2).mean(axis=0)
    return np.where(later >= LEAST_SEEN, found, np.nan)


def integrated_brier(scores: np.ndarray, at: np.ndarray) -> float:
    """The mean Brier score over time, from 0, where nothing is uncertain, to the last time that has a score."""
    known = ~np.isnan(scores)
    if not known.any():
        return float("nan")
    x, y = np.append(0.0, at[known]), np.append(0.0, scores[known])
    area = sum(0.5 * (y[i] + y[j]) * (x[j] - x[i]) for i, j in itertools.pairwise(range(len(x))))
    return float(area / x[-1])
