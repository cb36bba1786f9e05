"""Weights of words beside topics, for what topics smooth over.

omega gets x @ theta added, where x are tf-idf rows and theta is a ridge regression beside a times the topics' part.
The factor a, and whether words help at all, is decided on held-out documents: some copies of theta may be 0. How theta
would differ on other documents is in its copies, each of which weighs the documents at random (the Bayesian bootstrap).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from supertopic.corpus.source import Target, select_target
from supertopic.inference.shrinkage import (
    BESIDE_WORDS,
    HeldOutDraws,
    LogLikelihoods,
    Shrinkage,
    WordOmega,
    estimate_shrinkage,
)
from supertopic.model.responses.base import Response
from supertopic.model.terms import COPIES, Dictionary

PENALTIES = 5.0 ** np.arange(-2, 6)  # prior variances of theta that are tried, from small ones on
FOLDS, ENOUGH = 3, 2000  # of the cross-validation; of a large corpus one fold has documents enough
WORSE = 0.02  # it ends where the loss is so much of the best one above it
STEPS = np.array([0.0, 0.5, 1.0, 2.5])  # values of a for which theta is found; in between it is interpolated
LEAST_DOCS, MOST_WEIGHTS = 20, 2**22  # fewer documents do not support words; more weights would need much memory
ITERATIONS, FEWER, EXACT = 100, 30, 1e-5  # of L-BFGS, also from a start that is near; its relative tolerance
Run = Callable[[Callable[[int], Any], int], list[Any]]  # run(f, n): f of 0 to n - 1, on some threads


class Rows(NamedTuple):
    """Documents as tf-idf rows, and their transpose."""

    x: sp.csr_array
    transposed: sp.csr_array


class Past(NamedTuple):
    """What earlier documents say of theta: a normal density of each weight, without its prior.

    Its mean under a prior variance, the penalty, is shift / (precision + 1 / penalty).
    """

    shift: np.ndarray  # (n_words, R)
    precision: np.ndarray  # (n_words, R)
    penalty: float

    @property
    def theta(self) -> np.ndarray:
        """The mean, (n_words, R)."""
        return self.shift / (self.precision + 1.0 / self.penalty)


def make_past(theta: np.ndarray, precision: np.ndarray, penalty: float) -> Past:
    """The past with this mean."""
    return Past(theta * (precision + 1.0 / penalty), precision, penalty)


def no_past(shape: tuple[int, int], penalty: float) -> Past:
    return Past(np.zeros(shape), np.zeros(shape), penalty)


def count_documents(counts: sp.csr_array) -> np.ndarray:
    """The documents that have each word, and all documents: (V + 1,)."""
    return np.append(np.bincount(counts.indices, minlength=counts.shape[1]), counts.shape[0])


def make_dictionary(n_docs: np.ndarray, n_columns: int) -> Dictionary:
    """Words of two documents or more; where these are too many, those of the most documents."""
    *_, whole = n_docs
    order = np.argsort(-n_docs[:-1], kind="stable")[: MOST_WEIGHTS // max(n_columns, 1)]
    word = np.sort(order[n_docs[order] > 1])
    return Dictionary(word, np.log((1.0 + whole) / (1.0 + n_docs[word])) + 1.0)


def carry(past: Past, old: Dictionary, new: Dictionary, discount: float) -> Past:
    """The past for another dictionary: a word whose idf is larger needs less weight for the same effect."""
    _, theirs, ours = np.intersect1d(old.word, new.word, assume_unique=True, return_indices=True)
    ratio = (old.idf[theirs] / new.idf[ours])[:, None]
    shift, precision = (np.zeros((len(new.word), past.shift.shape[1])) for _ in range(2))
    shift[ours], precision[ours] = discount * past.shift[theirs] / ratio, discount * past.precision[theirs] / ratio**2
    return Past(shift, precision, past.penalty)


def fit_theta(
    rows: Rows, response: Response, target: Target, offset: np.ndarray, past: Past, start: np.ndarray | None = None
) -> np.ndarray:
    """The most probable theta (n_words, R), given a known part of omega and, perhaps, a start that is near."""
    shape = rows.x.shape[1], target.y.shape[1]
    precision, centre = past.precision + 1.0 / past.penalty, past.theta

    def cost(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(shape)
        value, slope = response.cost(target, offset + rows.x @ theta)
        pull = precision * (theta - centre)
        return value + 0.5 * float(np.vdot(pull, theta - centre)), (rows.transposed @ slope + pull).ravel()

    first = centre if start is None else start
    options = {"maxiter": ITERATIONS if start is None else FEWER, "ftol": EXACT, "maxcor": 6}
    return minimize(cost, first.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(shape)


def choose_penalty(
    x: sp.csr_array, response: Response, target: Target, offset: np.ndarray, past: Past, run: Run
) -> float:
    """The prior variance with which words alone predict documents of other folds best."""
    fold, n_folds = make_folds(x.shape[0])

    def losses(i: int) -> np.ndarray:
        seen, held = fold != i, fold == i
        rows, part, other = make_rows(x[seen]), select_target(target, seen), select_target(target, held)
        found, theta = np.full(len(PENALTIES), np.inf), None
        for at, penalty in enumerate(PENALTIES):
            theta = fit_theta(rows, response, part, offset[seen], past._replace(penalty=penalty), theta)
            found[at] = response.cost(other, offset[held] + x[held] @ theta)[0]
            best = found.min()
            if found[at] - best > WORSE * abs(best):
                found[at:] = found[at]
                break
        return found

    return float(PENALTIES[np.sum(run(losses, n_folds), axis=0).argmin()])


def make_folds(n_docs: int) -> tuple[np.ndarray, int]:
    """The fold of each document, and how many of the folds are held out."""
    return np.random.default_rng(0).permutation(n_docs) % FOLDS, min(FOLDS, 1 + FOLDS * ENOUGH // n_docs)


def cross_predict(
    x: sp.csr_array, response: Response, target: Target, offset: np.ndarray, past: Past, seed: list[int], run: Run
) -> np.ndarray:
    """What a copy of theta from documents of other folds adds, (n_docs, R); NaN in folds that are not held out."""
    (fold, n_folds), added = make_folds(x.shape[0]), np.full(target.y.shape, np.nan)

    def fit(i: int) -> np.ndarray:
        seen = fold != i
        part = weigh_at_random(select_target(target, seen), [*seed, 6, i])
        return fit_theta(make_rows(x[seen]), response, part, offset[seen], past)

    for i, theta in enumerate(run(fit, n_folds)):
        added[fold == i] = x[fold == i] @ theta
    return added


class WordFit(NamedTuple):
    """What was learned of words."""

    copies: np.ndarray  # (COPIES, R, n_words): of theta
    shrinkage: Shrinkage | None  # of topics beside words
    past: Past  # what is known from now on
    added: np.ndarray  # (n_docs, R): what words would add to the documents if these were new; NaN where unknown


class Seen(NamedTuple):
    """Training documents, as if they were new."""

    x: sp.csr_array  # tf-idf rows
    target: Target  # whose offset holds what covariates add
    topics: np.ndarray  # (n_docs, R): what topics add


class HeldOut(NamedTuple):
    """Held-out documents."""

    x: sp.csr_array
    target: Target
    draws: list[HeldOutDraws]  # of each chain; empty if nothing was held out
    scales: np.ndarray  # (n_draws, R or 0)


def learn_words(
    seen: Seen, held_out: HeldOut, response: Response, seed: list[int], run: Run, past: Past | None,
    earlier: LogLikelihoods | None,
) -> WordFit:  # fmt: skip
    """Weights of words beside topics.

    Where nothing was held out, topics have the usual factor. Words that these documents do not have keep their weights.
    """
    target = seen.target
    known, shape = np.any(target.weight > 0, axis=1), (seen.x.shape[1], target.y.shape[1])
    enough, whole = known.sum() >= LEAST_DOCS, past or no_past(shape, PENALTIES[0])
    thetas, precision, added = whole.theta, whole.precision.copy(), np.full(target.y.shape, np.nan)
    copies = np.repeat(thetas.T[None].astype(np.float32), COPIES, axis=0)
    if shape[0] == 0 or not (enough or past):
        return WordFit(copies, None, whole, added)
    present = np.union1d(seen.x[known].indices, held_out.x.indices)
    x, target, topics = seen.x[known][:, present], select_target(target, known), seen.topics[known]
    held_out = held_out._replace(x=held_out.x[:, present])
    past = Past(whole.shift[present], whole.precision[present], whole.penalty)
    if enough:
        past = past._replace(penalty=choose_penalty(x, response, target, target.offset, past, run))
    shrinkage, theta, a = shrink_beside_words(Seen(x, target, topics), held_out, response, past, earlier)
    if enough:
        added[known] = cross_predict(x, response, target, target.offset + a * topics, past, seed, run)
    rows = make_rows(x)
    if held_out.draws:  # the factors are found: words are learned from held-out documents, too
        rows = make_rows(sp.vstack([x, held_out.x], "csr"))
        target, topics = join_held_out(target, topics, held_out)
    offset = target.offset + a * topics
    theta = fit_theta(rows, response, target, offset, past, theta)

    def copy(i: int) -> np.ndarray:
        weighed = weigh_at_random(target, [*seed, 3, i])
        return fit_theta(rows, response, weighed, offset, past, theta).T.astype(np.float32)

    curvature = response.curvature(target, offset + rows.x @ theta)
    squares = rows.transposed.multiply(rows.transposed) @ curvature
    copies[:, :, present] = run(copy, COPIES)
    thetas[present], precision[present] = theta, past.precision + squares
    return WordFit(copies, shrinkage, make_past(thetas, precision, past.penalty), added)


def shrink_beside_words(
    seen: Seen, held_out: HeldOut, response: Response, past: Past, earlier: LogLikelihoods | None
) -> tuple[Shrinkage | None, np.ndarray | None, np.ndarray | float]:
    """The shrinkage of topics beside words, a theta to start from, and the mean factor of topics."""
    if not held_out.draws:
        return None, None, BESIDE_WORDS
    rows, theta, steps = make_rows(seen.x), None, []
    for step in STEPS:
        theta = fit_theta(rows, response, seen.target, seen.target.offset + step * seen.topics, past, theta)
        steps.append(held_out.x @ theta)
    words = WordOmega(STEPS, np.array(steps))
    shrinkage = estimate_shrinkage(response, held_out.target, held_out.draws, held_out.scales, words, earlier)
    return shrinkage, theta, shrinkage.topic_factor


def join_held_out(target: Target, topics: np.ndarray, held_out: HeldOut) -> tuple[Target, np.ndarray]:
    """Training and held-out documents: their targets, and what topics add to them."""
    of_topics, beside = (np.concatenate(parts) for parts in zip(*held_out.draws, strict=True))
    by_covariates = beside.mean(axis=0) if len(beside) else np.zeros(held_out.target.y.shape)
    other = held_out.target._replace(offset=held_out.target.offset + by_covariates)
    both = Target(*(np.concatenate(pair) for pair in zip(target, other, strict=True)))
    return both, np.concatenate([topics, of_topics.mean(axis=0)])


def weigh_at_random(target: Target, seed: list[int]) -> Target:
    """One set of weights of the Bayesian bootstrap."""
    chance = np.random.default_rng(seed).exponential(size=(len(target.weight), 1))
    return target._replace(weight=target.weight * chance)


def make_rows(x: sp.csr_array) -> Rows:
    return Rows(x, sp.csr_array(x.T))
