"""Words beside topics: weights of single words, for the verdicts that topics smooth over.

omega = a eta zbar + theta x, where x is a document's tf-idf row of length 1 and theta has a normal prior, the variance
of which cross-validation chooses. Training documents enter with their topics as if they were new, and hidden documents
tell how loud the topics should be: a has a posterior, as in `trust`, with its own theta for each a. They also tell how
far words are to be believed at all: some copies of theta may be 0. How theta would differ on other documents is in its
copies, each of which weighs the documents at random (the Bayesian bootstrap).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from supertopic.corpus.source import Target, select_target
from supertopic.inference.shrinkage import BESIDE_WORDS, Foretold, Surfaces, Trust, find_trust
from supertopic.model.responses import Response

PENALTIES = 5.0 ** np.arange(-2, 6)  # prior variances of theta that are tried, from small ones on
FOLDS, ENOUGH = 3, 2000  # of the cross-validation; of a large corpus one fold has documents enough
WORSE = 0.02  # it ends where the loss is so much of the best one above it
STEPS = np.array([0.0, 0.5, 1.0, 2.5])  # values of a for which theta is found; in between it is interpolated
COPIES = 8  # of theta
LEAST_DOCS, MOST_WEIGHTS = 20, 2**22  # fewer documents tell nothing of words; more weights would need much memory
ITERATIONS, FEWER, EXACT = 100, 30, 1e-5  # of L-BFGS, also from a start that is near; its relative tolerance
Run = Callable[[Callable[[int], Any], int], list]  # run(f, n): f of 0 to n - 1, on some threads


class Rows(NamedTuple):
    """Documents as tf-idf rows, and their transpose."""

    x: sp.csr_array
    transposed: sp.csr_array


class Past(NamedTuple):
    """What documents that are gone have told of theta: a normal density of each weight, without its prior.

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


class Dictionary(NamedTuple):
    """The words that have weights of their own."""

    word: np.ndarray  # (n,): which they are
    idf: np.ndarray  # (n,)

    def rows(self, counts: sp.csr_array) -> sp.csr_array:
        """Documents (n_docs, n): (1 + log count) idf of each word, of length 1."""
        x = counts if len(self.word) == counts.shape[1] else counts[:, self.word]
        weight = (1.0 + np.log(x.data)) * self.idf[x.indices]
        x = sp.csr_array((weight, x.indices, x.indptr), shape=x.shape)
        length = np.sqrt(np.maximum(x.multiply(x).sum(axis=1), 1e-300))  # 0 where a document has none of the words
        x.data /= np.repeat(length, np.diff(x.indptr))
        return x


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
    """The most probable theta (n_words, R), given a known part of omega and, perhaps, what it is near to."""
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
    """The prior variance with which words alone foretell documents of other folds best."""
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
    """What a copy of theta from documents of other folds says, (n_docs, R); NaN in folds that are not held out."""
    (fold, n_folds), said = make_folds(x.shape[0]), np.full(target.y.shape, np.nan)

    def fit(i: int) -> np.ndarray:
        seen = fold != i
        part = weigh_at_random(select_target(target, seen), [*seed, 6, i])
        return fit_theta(make_rows(x[seen]), response, part, offset[seen], past)

    for i, theta in enumerate(run(fit, n_folds)):
        said[fold == i] = x[fold == i] @ theta
    return said


class Learned(NamedTuple):
    """What was learned of words."""

    copies: np.ndarray  # (COPIES, R, n_words): of theta
    trust: Trust | None  # how far topics can be trusted beside them
    past: Past  # what is known from now on
    said: np.ndarray  # (n_docs, R): what words would say of the documents if these were new; NaN where it is not known


def learn_words(
    x: sp.csr_array, target: Target, told: np.ndarray, hidden_x: sp.csr_array, hidden: Target,
    foretold: list[Foretold], scales: np.ndarray, response: Response, seed: list[int], run: Run, past: Past | None,
    before: Surfaces | None,
) -> Learned:  # fmt: skip
    """Weights of words beside topics.

    `told` (n_docs, R) is what the topics say of the documents as if these were new; the offset of `target` holds what
    covariates say. Where nothing was hidden, topics are as loud as is usual. What these documents do not have stays as
    it was.
    """
    known, shape = np.any(target.weight > 0, axis=1), (x.shape[1], target.y.shape[1])
    enough, before_all = known.sum() >= LEAST_DOCS, past or no_past(shape, PENALTIES[0])
    thetas, precision, said = before_all.theta, before_all.precision.copy(), np.full(target.y.shape, np.nan)
    copies = np.repeat(thetas.T[None].astype(np.float32), COPIES, axis=0)
    if x.shape[1] == 0 or not (enough or past):
        return Learned(copies, None, before_all, said)
    there = np.union1d(x[known].indices, hidden_x.indices)
    x, hidden_x, target, told = x[known][:, there], hidden_x[:, there], select_target(target, known), told[known]
    rows, trust, a = make_rows(x), None, BESIDE_WORDS
    past = Past(before_all.shift[there], before_all.precision[there], before_all.penalty)
    if enough:
        past = past._replace(penalty=choose_penalty(x, response, target, target.offset, past, run))
    theta = None
    if foretold:
        steps = []
        for step in STEPS:
            theta = fit_theta(rows, response, target, target.offset + step * told, past, theta)
            steps.append(hidden_x @ theta)
        trust = find_trust(response, hidden, foretold, scales, (STEPS, np.array(steps)), before)
        a = trust.posteriors[0][0] @ trust.posteriors[0][1]
    if enough:
        said[known] = cross_predict(x, response, target, target.offset + a * told, past, seed, run)
    if foretold:  # hidden documents have told what they had to tell: words are learned from them, too
        topics, beside = (np.concatenate(parts) for parts in zip(*foretold, strict=True))
        rows, told = make_rows(sp.vstack([x, hidden_x], "csr")), np.concatenate([told, topics.mean(axis=0)])
        by_covariates = beside.mean(axis=0) if len(beside) else np.zeros(hidden.y.shape)
        hidden = hidden._replace(offset=hidden.offset + by_covariates)
        target = Target(*(np.concatenate(pair) for pair in zip(target, hidden, strict=True)))
    offset = target.offset + a * told
    theta = fit_theta(rows, response, target, offset, past, theta)

    def copy(i: int) -> np.ndarray:
        weighed = weigh_at_random(target, [*seed, 3, i])
        return fit_theta(rows, response, weighed, offset, past, theta).T.astype(np.float32)

    curvature = response.curvature(target, offset + rows.x @ theta)
    squares = rows.transposed.multiply(rows.transposed) @ curvature
    copies[:, :, there] = run(copy, COPIES)
    thetas[there], precision[there] = theta, past.precision + squares
    return Learned(copies, trust, make_past(thetas, precision, past.penalty), said)


def weigh_at_random(target: Target, seed: list[int]) -> Target:
    """One of the weights of the Bayesian bootstrap."""
    chance = np.random.default_rng(seed).exponential(size=(len(target.weight), 1))
    return target._replace(weight=target.weight * chance)


def copies_of_draws(n_chains: int, n_draws: int, pairs: np.ndarray, n_copies: int) -> np.ndarray:
    """The copy of theta that goes with each pair of draws, those of one chain after the other: one for each eta."""
    return (np.arange(n_chains)[:, None] * n_draws + pairs).ravel() % n_copies


def make_rows(x: sp.csr_array) -> Rows:
    return Rows(x, sp.csr_array(x.T))
