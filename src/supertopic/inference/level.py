"""The level of predictions: a constant of omega with which they are right on average.

The mean of a probability over documents and draws is not the probability of the mean omega, and the difference is large
where a class is rare. The constant is therefore found last, from what is predicted for the training documents as if
they were new: on average that has to be what was observed.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from supertopic.corpus.source import Target
from supertopic.model.responses import Response

ROUNDS, CLOSE = 200, 1e-5  # of the search
MOST_NUMBERS, MOST_COPIES = 2**22, 16  # that are predicted for the training documents
NEAR, MOST_DISTANCES = 5, 2**31  # hidden documents that a training document is like


class Draws(NamedTuple):
    """Some of the draws that a prediction is the mean of."""

    share: float  # that they have in all draws
    omega: np.ndarray  # (n_docs, R): what they say of training documents, on average
    hidden: np.ndarray  # (n, n_hidden, R): what each says of hidden documents, but for offsets and words
    like: np.ndarray  # (n_docs, R): the same of training documents, on average


def sample_omegas(draws: list[Draws], rng: np.random.Generator) -> np.ndarray:
    """omega (n_copies, n_docs, R) of training documents, spread as draws for new documents are.

    How far draws are from their mean is not known of training documents. It is taken from hidden documents with about
    the same omega: a document that one topic fills is known better than others are.
    """
    n_docs, n_columns = draws[0].omega.shape
    copies = int(np.clip(MOST_NUMBERS // max(n_docs * n_columns, 1), 1, MOST_COPIES))
    found = []
    for kind in draws:
        omega = np.repeat(kind.omega[None], max(1, round(copies * kind.share)), axis=0)
        n_hidden = min(kind.hidden.shape[1], max(MOST_DISTANCES // max(n_docs * n_columns, 1), 10 * NEAR))
        if n_hidden and len(kind.hidden):
            hidden = kind.hidden[:, rng.permutation(kind.hidden.shape[1])[:n_hidden]]
            centre = hidden.mean(axis=0)
            near = cKDTree(centre).query(kind.like, min(NEAR, n_hidden))[1].reshape(n_docs, -1)
            doc = near[np.arange(n_docs), rng.integers(0, near.shape[1], (len(omega), n_docs))]
            omega += hidden[rng.integers(0, len(hidden), doc.shape), doc] - centre[doc]
        found.append(omega)
    return np.concatenate(found)


def match_level(response: Response, target: Target, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The constant (R,) that makes the mean of what omega (n_copies, n_docs, R) predicts that of y, if there is one.

    There is none, and it is 0, where all of y is at one end of its range, or a response is about no mean.
    """
    shift, weight = np.zeros(omega.shape[2]), target.weight / np.maximum(target.weight.sum(axis=0), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = response.predictive_offset(response.link((weight * target.y).sum(axis=0)))
    known = np.isfinite(wanted) & (weight > 0).any(axis=0) & response.about_mean
    for _ in range(ROUNDS if known.any() else 0):
        mean = (weight * response.mean(omega + shift).mean(axis=0)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = wanted - response.predictive_offset(response.link(mean))
        step = np.where(known & np.isfinite(step), np.clip(step, -5.0, 5.0), 0.0)
        shift += step
        if np.abs(step).max() < CLOSE:
            break
    return shift, known
