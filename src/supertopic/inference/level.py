"""The level of omega: the base rate that regressions start from, and the constant of predictions.

The mean of a probability over documents and draws is not the probability of the mean omega, and the difference is large
where a class is rare. The constant of predictions is therefore found last, from what is predicted for the training
documents as if they were new: on average that has to be what was observed.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from supertopic.corpus.source import Target, select_target
from supertopic.model.responses.base import Response

ROUNDS, CLOSE = 200, 1e-5  # largest number of rounds of the search; length of a step at which it ends
MOST_NUMBERS, MOST_COPIES = 2**22, 16  # largest number of omegas, and of omegas for each training document
NEAR, MOST_DISTANCES = 5, 2**31  # held-out documents that are near a training one; largest number of distances
FEW_EMPTY = 5.0  # imagined documents with the mean response that count as documents without words
FEW_LABELS = 5.0  # number of labelled documents with which they and the seeds have equal influence on the level
LEAST_DOCS = 5  # smallest number of documents from which a level is estimated
OLD_LEVEL = 0.25  # the weight of a document of earlier batches where the level depends on the weights


class BaseRate(NamedTuple):
    """The mean response of all batches so far, as offsets of omega, (R,) each."""

    sums: np.ndarray  # (5, R): of y and of exposures, of the same over documents without words, and of weights
    link: np.ndarray  # the offset of regressions
    base: np.ndarray  # the offset of predictions
    empty: np.ndarray  # the offset of predictions for documents without known words
    empty_documents: np.ndarray  # how many documents the latter rests on
    batch_shift: np.ndarray  # the step from the mean of all batches to that of this one
    offset: np.ndarray  # (n_docs, R): of each document, exposure included


def find_base_rate(response: Response, target: Target, empty: np.ndarray, earlier: np.ndarray | None) -> BaseRate:
    """The base rate, of all documents and of those without words (the mask `empty`), and the regressions' offset.

    `earlier` are the sums of earlier batches, discounted.
    """
    given, exposure = target.weight * response.level_y(target), target.weight * np.exp(target.offset)
    sizes = [array[docs].sum(axis=0) for docs in (slice(None), empty) for array in (given, exposure)]
    batch = np.array([*sizes, target.weight.sum(axis=0)])
    sums = batch if earlier is None else batch + earlier
    half, few = 0.5 * largest(target.weight), FEW_EMPTY * largest(exposure)
    mean = response.base_mean(sums, half)
    of_empty = (sums[2] + few * mean) / (sums[3] + few)
    link, empty_link = response.link(mean), response.link(of_empty)
    batch_shift = np.where(batch[1] > 0, response.link(response.base_mean(batch, half)) - link, 0.0)
    offset = target.offset + np.where(empty[:, None], empty_link, link)
    return BaseRate(
        sums, link, response.predictive_offset(link), response.predictive_offset(empty_link),
        FEW_EMPTY + sums[3] * FEW_EMPTY / few, batch_shift, offset if offset.any() else target.offset,
    )  # fmt: skip


def largest(weights: np.ndarray) -> np.ndarray:
    """The largest weight of each column, 1 if all are unknown."""
    most = weights.max(axis=0)
    return np.where(most > 0, most, 1.0)


def at_batch_level(response: Response, target: Target, lengths: np.ndarray, batch_shift: np.ndarray) -> Target:
    """A target with the offset that predicts the mean response of this batch.

    Regressions begin at the mean of all batches. What topics and words explain is estimated inside a batch, or
    a mean that changes from batch to batch would be taken for an effect of theirs.
    """
    shift = np.where((lengths == 0)[:, None], 0.0, batch_shift)
    return target._replace(offset=response.predictive_offset(target.offset + shift))


class OmegaDraws(NamedTuple):
    """Some of the draws that a prediction is the mean of."""

    share: float  # the share of these among all draws
    omega: np.ndarray  # (n_docs, R): their mean for training documents
    held_out: np.ndarray  # (n, n_held_out, R): each of them for held-out documents, without offsets and words
    like: np.ndarray  # (n_docs, R): the same for training documents, on average


def sample_omegas(draws: list[OmegaDraws], rng: np.random.Generator) -> np.ndarray:
    """omega (n_copies, n_docs, R) of training documents, spread as draws for new documents are.

    How far draws are from their mean is not known of training documents. It is taken from held-out documents with about
    the same omega: a document that one topic fills is known better than others are.
    """
    n_docs, n_columns = draws[0].omega.shape
    copies = int(np.clip(MOST_NUMBERS // max(n_docs * n_columns, 1), 1, MOST_COPIES))
    found = []
    for kind in draws:
        omega = np.repeat(kind.omega[None], max(1, round(copies * kind.share)), axis=0)
        n_held_out = min(kind.held_out.shape[1], max(MOST_DISTANCES // max(n_docs * n_columns, 1), 10 * NEAR))
        if n_held_out and len(kind.held_out):
            held_out = kind.held_out[:, rng.permutation(kind.held_out.shape[1])[:n_held_out]]
            centre = held_out.mean(axis=0)
            near = cKDTree(centre).query(kind.like, min(NEAR, n_held_out))[1].reshape(n_docs, -1)
            doc = near[np.arange(n_docs), rng.integers(0, near.shape[1], (len(omega), n_docs))]
            omega += held_out[rng.integers(0, len(held_out), doc.shape), doc] - centre[doc]
        found.append(omega)
    return np.concatenate(found)


def match_level(response: Response, target: Target, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The constant (R,) that makes the mean of what omega (n_copies, n_docs, R) predicts that of y, if there is one.

    There is none, and it is 0, where all of y is at one end of its range, or a response is not about a mean.
    """
    shift, weight = np.zeros(omega.shape[2]), target.weight / np.maximum(target.weight.sum(axis=0), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = response.predictive_offset(response.link((weight * response.level_y(target)).sum(axis=0)))
    known = np.isfinite(wanted) & (weight > 0).any(axis=0) & response.calibrates_mean
    for _ in range(ROUNDS if known.any() else 0):
        mean = (weight * response.mean_of_draws(omega + shift)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = wanted - response.predictive_offset(response.link(mean))
        step = np.where(known & np.isfinite(step), np.clip(step, -5.0, 5.0), 0.0)
        shift += step
        if np.abs(step).max() < CLOSE:
            break
    return shift, known


def shift_level(
    response: Response, target: Target, lengths: np.ndarray, draws: list[OmegaDraws], earlier: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """What the constant of predictions is built from, (3, R); `earlier` is the same of earlier batches, discounted.

    It has two parts. How far the documents of a batch are from the usual ones is averaged over the batches (rows 0 and
    1: a sum and its weight). The difference between the mean of a probability and the probability of the mean depends
    on the weights, which change: there earlier batches count for less (row 2).
    """
    finite = [np.isfinite(kind.omega).all(axis=1) for kind in draws]
    some = (lengths > 0) & np.any(target.weight > 0, axis=1) & np.all(finite, axis=0)
    away, weight, bent = earlier
    if some.sum() >= LEAST_DOCS:
        draws = [kind._replace(omega=kind.omega[some], like=kind.like[some]) for kind in draws]
        here = select_target(target, some)
        parts = sum(kind.share * (kind.omega - here.offset) for kind in draws)
        centred = (
            response.calibrates_mean or response.level_follows
        )  # thresholds are relative to documents without words
        mean, known = weighted_mean(parts, here.weight) * centred, here.weight.sum(axis=0)
        shift, found = match_level(response, here, sample_omegas(draws, rng))
        now, past = known * found, OLD_LEVEL * weight
        bent = (past * bent + now * (shift + mean)) / np.maximum(past + now, 1e-300)
        away, weight = away - known * mean, weight + known
    return np.array([away, weight, bent])


def level_of(shift: np.ndarray) -> np.ndarray:
    """The constant (R,) beyond the base rate."""
    away, weight, bent = shift
    return bent + away / np.where(weight > 0, weight, 1.0)


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean of each column, (R,)."""
    return (weight * values).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
