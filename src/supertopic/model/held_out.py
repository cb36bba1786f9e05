"""Predictions for held-out documents beside their responses, and guarantees that follow from them.

Split conformal prediction (Vovk and others, 2005; Angelopoulos and Bates, 2023): documents that were not learned from
say how large a set of classes or an interval must be, so that it contains the response of a new document with a given
frequency. This holds for any model, right or wrong, as long as new documents are like the held-out ones.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from supertopic.model.responses.averages import average
from supertopic.model.responses.base import Response

MOST, LEAST_WEIGHT = 10_000, 1e-3  # documents that are kept; the weight below which one of an earlier batch goes
MOST_NUMBERS = 2**21  # in an array of them
STARTS = 0.2, 0.4, 0.6, 0.8  # shares of the documents from which thresholds of decisions are searched


class HeldOutPredictions(NamedTuple):
    """Predictions for documents that no chain, no weight and no factor behind them has learned from.

    Of those that are kept, classes have `expected` and `truth`, numbers have `level`; the others have no columns.
    """

    expected: np.ndarray  # (n, n_answers): as from `Response.expected`, the mean over draws
    truth: np.ndarray  # (n, n_classes): 1 for the class or the labels of each document, else 0
    level: np.ndarray  # (n, R): the smallest level whose interval contains the number
    loss: np.ndarray  # (n,)
    weight: np.ndarray  # (n,): those of earlier batches count for less
    rare: np.ndarray  # (n,): for each of them, how many documents have a class that is too small to be held out

    @property
    def n_rare(self) -> float:
        """How many documents would be of classes that are too small to be held out."""
        return float(self.weight @ self.rare)

    def kept(self, response: Response) -> "HeldOutPredictions":
        """What guarantees need of them."""
        some = slice(None if response.has_sets else 0)
        expected, truth = (array[:, some].astype(np.float32) for array in (self.expected, self.truth))
        return self._replace(expected=expected, truth=truth)

    def joined(self, earlier: "HeldOutPredictions | None", discount: float) -> "HeldOutPredictions":
        """These, and those of earlier batches as far as they fit in and still count."""
        if earlier is None or any(a.shape[1:] != b.shape[1:] for a, b in zip(self, earlier, strict=True)):
            return self.last()
        earlier = earlier._replace(weight=discount * earlier.weight)
        old = earlier.weight >= LEAST_WEIGHT
        return HeldOutPredictions(*(np.concatenate([a[old], b]) for a, b in zip(earlier, self, strict=True))).last()

    def last(self) -> "HeldOutPredictions":
        """The latest of them, if there are more than are kept."""
        most = min(MOST, MOST_NUMBERS // max(1, *(array[0].size for array in self if len(array))))
        return HeldOutPredictions(*(array[-most:] for array in self))


def compare(response: Response, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> HeldOutPredictions:
    """Predictions from draws of omega (n_draws, n_docs, R) beside known responses, as from `Response.truth`."""
    return HeldOutPredictions(
        average(response.expected(omegas, scales)),
        truth,
        response.interval_level(truth, omegas, scales),
        response.loss(truth, omegas, scales),
        np.ones(len(truth)),
        np.zeros(len(truth)),
    )  # fmt: skip


def conformal_threshold(scores: np.ndarray, weight: np.ndarray, level: float, rare: float = 0.0) -> float:
    """The score that a new document's does not exceed with probability `level` or more; infinite if there is none.

    It is a quantile of the scores of held-out documents and of more documents, whose scores may be anything: a new one,
    and `rare` ones like those that are never held out.
    """
    order = np.argsort(scores, kind="stable")
    share = np.cumsum(weight[order]) / (weight.sum() + rare + 1.0)
    place = int(np.searchsorted(share, level - 1e-12))
    return float(scores[order[place]]) if place < len(order) else math.inf


def least_documents(level: float) -> int:
    """The number of held-out documents that a guarantee of this level needs."""
    return math.ceil(level / (1.0 - level) - 1e-9)


def answer_threshold(
    confidence: np.ndarray, right: np.ndarray, weight: np.ndarray, max_error: float, certainty: float
) -> tuple[float, float]:
    """Above which confidence answers are wrong at most so often, and the share of held-out answers above it.

    confidence and right are (n_docs, n_answers), weight is (n_docs,). With probability `certainty` over the held-out
    documents the error rate of new answers is at most `max_error`. The threshold is lowered as long as a binomial test
    allows it, from several starts, among which the risk of the tests is divided (Angelopoulos and others, "Learn then
    test", 2021). If no threshold is safe, it is infinite.
    """
    order = np.argsort(-confidence.ravel(), kind="stable")
    sure, n = confidence.ravel()[order], len(order)
    doc = order // max(confidence.shape[1], 1)
    p, size = error_rates(~right.ravel()[order], doc, weight[doc])
    # the answers above the m-th confidence are a sample of all answers above it; ties are above it together
    ends = np.append(np.flatnonzero(sure[1:] < sure[:-1]) + 1, [n] if n else []).astype(int)
    wrong, size = (p * size)[ends - 1], size[ends - 1]
    safe = betainc(np.maximum(size - wrong, 1e-300), wrong + 1.0, 1.0 - max_error) <= (1.0 - certainty) / len(STARTS)
    best = 0
    for start in STARTS:
        first = int(np.searchsorted(ends, start * n))
        broken = np.flatnonzero(~safe[first:])
        last = first + int(broken[0]) if len(broken) else len(ends)
        best = max(best, int(ends[last - 1])) if last > first else best
    if not best:
        return math.inf, 0.0
    return (float(sure[best]) if best < n else -math.inf), best / n


def error_rates(wrong: np.ndarray, doc: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The error rate of the first answers, and how many independent answers these are worth, (n,) each.

    Answers to one document, such as its labels, are not independent: the variance of the rate is that of sums over
    documents, and the size is that of a binomial sample with this variance (Korn and Graubard, 1998). Without errors
    the answers to a document count as one if they are equally many.
    """
    by = np.argsort(doc, kind="stable")  # answers to a document stand together
    first = np.flatnonzero(np.diff(doc[by], prepend=-1))
    start = np.repeat(first, np.diff(np.append(first, len(doc))))
    before = np.cumsum(wrong[by]) - wrong[by]
    n_before, wrong_before = np.empty((2, len(doc)))
    n_before[by], wrong_before[by] = np.arange(len(doc)) - start, before - before[start]
    square = weight**2
    total = np.maximum(np.cumsum(weight), 1e-300)
    p = np.cumsum(weight * wrong) / total
    # sums over documents of the squared errors, of errors times answers, and of the squared answers
    errors = np.cumsum(square * wrong * (2.0 * wrong_before + 1.0))
    both = np.cumsum(square * (wrong_before + wrong * (n_before + 1.0)))
    answers = np.cumsum(square * (2.0 * n_before + 1.0))
    variance = np.maximum(errors - 2.0 * p * both + p * p * answers, 1e-300) / total**2
    size = np.where((p > 0) & (p < 1), p * (1.0 - p) / variance, total**2 / np.maximum(answers, 1e-300))
    return p, np.minimum(size, total**2 / np.maximum(np.cumsum(square), 1e-300))
