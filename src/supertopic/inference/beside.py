"""Weights of words and features beside topics: one ridge regression of the response on all of them.

Topics are left out of it. Even left-out shares of training documents depend on their responses a little, so a
regression on both would trust the topics too much; how much each contributes is decided on held-out documents
(`inference.shrinkage`). Prior variances are chosen by cross-validation, one for words and one for features, down to 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supertopic.corpus.source import Target, select_target
from supertopic.inference.blocks import make_block, times_rows
from supertopic.inference.ridge import Ridge, Solution
from supertopic.model.linear import Dictionary, FeatureColumns, Matrix
from supertopic.model.responses.base import Response
from supertopic.sampling.pool import Pool

PENALTIES = (0.0, *(5.0 ** np.arange(-2, 7)).tolist())  # prior variances that are tried, for rows of length 1
FIRST = PENALTIES.index(25.0)
FOLDS, ENOUGH = 3, 2000  # folds of the cross-validation; documents of a fold with which one fold is enough
LEAST_DOCS = 20  # fewer documents do not support words
MOST_GROWTH = 2.0  # largest factor by which omega grows with weights from all documents instead of two thirds
NEVER = 1e15  # the prior precision of a weight that stays 0
CLOSE, EXACT = 1e-4, 1e-5  # relative gain of the cost that ends a regression, while penalties are chosen and after


class Past(NamedTuple):
    """The information of earlier documents about theta: a normal density of each weight, without its prior."""

    theta: np.ndarray  # (n, R): the mean, under the prior
    precision: np.ndarray  # (n, R): the precision, without that of the prior
    penalty: float  # the prior variance
    spread: np.ndarray | None = None  # (n, R): the sampling variance of the mean, if it is known

    @property
    def variance(self) -> np.ndarray:
        """The variance of each weight, (n, R)."""
        prior = 1.0 / self.penalty if self.penalty > 0 else NEVER
        return 1.0 / (self.precision + prior)


def discounted_past(past: Past, discount: float) -> Past:
    """The past if each of its documents counts for less."""
    precision = discount * past.precision
    found = past._replace(precision=precision)
    return found._replace(theta=discount * past.theta / past.variance * found.variance)


def carry(past: Past, old: Dictionary, new: Dictionary) -> Past:
    """The past for another dictionary: a word whose idf is larger needs less weight for the same effect."""
    _, theirs, ours = np.intersect1d(old.word, new.word, assume_unique=True, return_indices=True)
    ratio = (old.idf[theirs] / new.idf[ours])[:, None]
    theta, precision = (np.zeros((len(new.word), past.theta.shape[1])) for _ in range(2))
    theta[ours], precision[ours] = past.theta[theirs] * ratio, past.precision[theirs] / ratio**2
    spread = np.zeros(theta.shape)
    if past.spread is not None:
        spread[ours] = past.spread[theirs] * ratio**2
    return Past(theta, precision, past.penalty, spread)


class LinearInputs(NamedTuple):
    """What linear terms read of documents, of all or of some."""

    words: csr_array | None = None  # counts, (n, W)
    features: Matrix | None = None  # (n, F)
    columns: FeatureColumns | None = None
    docs: np.ndarray | None = None  # the numbers of the documents, in ascending order; None: all

    def places(self, n_docs: int) -> np.ndarray:
        """The row of each document, -1 where there is none: (n_docs,)."""
        if self.docs is None:
            return np.arange(n_docs)
        found = np.full(n_docs, -1)
        found[self.docs] = np.arange(len(self.docs))
        return found


NO_INPUTS = LinearInputs()


class Part(NamedTuple):
    """Rows of documents for one linear term, and the information of earlier batches about its weights."""

    x: Matrix  # (n_docs, n)
    past: Past | None = None
    new: Matrix | None = None  # (n_held_out, n): the rows of held-out documents as if these were new; None: those of x

    @property
    def centre(self) -> np.ndarray | float:
        """The mean of the weights before these documents, (n, R) or 0."""
        return 0.0 if self.past is None else self.past.theta


class Seen(NamedTuple):
    """Documents that weights are learned from."""

    rows: np.ndarray  # their numbers among the rows of x
    target: Target  # their responses; the offset is a known part of omega


class LinearFit(NamedTuple):
    """What was learned of the weights of each part."""

    theta: list[np.ndarray]  # (n, R) each
    variance: list[np.ndarray]  # (n, R) each: the variance of theta, for other documents of this kind
    past: list[Past]  # what is known from now on
    added: np.ndarray  # (n_seen, R): the sum for seen documents if these were new; NaN where unknown
    grown: np.ndarray  # (n_seen, R): `added`, scaled up from weights of two thirds of the documents to those of all
    held_out: list[np.ndarray]  # (n_held_out, R) each: what it adds there, learned from seen documents alone
    held_out_variance: np.ndarray  # (n_held_out, R): the variance of their sum
    relearned: np.ndarray  # (n_held_out, R): their sum, learned from all documents except those of its fold
    learned: bool = True  # whether it was learned from these documents

    def with_spread(self, factor: float) -> "LinearFit":
        """The same with other variances; those of earlier batches have their factor already."""
        if not self.learned:
            return self
        held_out = factor * self.held_out_variance
        return self._replace(variance=[factor * own for own in self.variance], held_out_variance=held_out)


class Fold(NamedTuple):
    """A regression on the documents of other folds."""

    ridge: Ridge
    held: np.ndarray  # a mask of the documents of this fold
    target: Target  # theirs


class Folds:
    """The same regression on all documents but those of a fold, for one fold after the other."""

    def __init__(self, problem: "Problem"):
        fold, n_folds = make_folds(len(problem.target.weight))
        self.problem, self.folds = problem, []
        for i in range(n_folds):
            seen = fold != i
            self.folds.append(Fold(problem.ridge(seen), ~seen, select_target(problem.target, ~seen)))
        self.latest: list[Solution | None] = [None] * n_folds
        self.known: dict[tuple[float, ...], tuple[float, list[np.ndarray]]] = {}  # loss, and held omega of each fold

    def solve(self, i: int, penalties: tuple[float, ...], exact: float) -> list[np.ndarray]:
        """The weights from documents of other folds than the i-th."""
        found = self.latest[i] = self.folds[i].ridge.solve(penalties, self.latest[i], exact)
        return self.folds[i].ridge.theta(found)

    def loss(self, penalties: tuple[float, ...]) -> float:
        """The loss in other folds with these prior variances."""
        if penalties not in self.known:
            total, omegas = 0.0, []
            for i, fold in enumerate(self.folds):
                omega = self.problem.omega(self.solve(i, penalties, CLOSE), fold.held)
                total += self.problem.response.cost(fold.target, self.problem.offset[fold.held] + omega)[0]
                omegas.append(omega)
            self.known[penalties] = total, omegas
        return self.known[penalties][0]

    def best(self) -> tuple[float, ...]:
        """The best prior variances: one after the other is moved while the loss falls."""
        here, before = (FIRST,) * len(self.problem.parts), None

        def loss(places: tuple[int, ...]) -> float:
            return self.loss(tuple(PENALTIES[place] for place in places))

        while here != before:
            before = here
            for part in range(len(here)):
                for way in (1, -1):
                    while 0 <= here[part] + way < len(PENALTIES):
                        there = (*here[:part], here[part] + way, *here[part + 1 :])
                        if not loss(there) < loss(here):
                            break
                        here = there
        return tuple(PENALTIES[place] for place in here)

    def added(
        self, penalties: tuple[float, ...], whole: list[np.ndarray], growth: np.ndarray | float = 1.0
    ) -> np.ndarray:
        """omega of each document from other folds, NaN in folds that are not held out, times a factor: (n_docs, R).

        If the response has thresholds that follow omega, each fold has a level of its own; it is moved to that of the
        weights `whole`, which come from all documents.
        """
        self.loss(penalties)
        found = np.full(self.problem.target.weight.shape, np.nan)
        centres = self.problem.offset - self.problem.target.offset
        for fold, omega in zip(self.folds, self.known[penalties][1], strict=True):
            found[fold.held] = growth * omega + centres[fold.held]
            if self.problem.response.level_follows:
                own = sum_parts(self.problem.parts, self.problem.rows[fold.held], whole)
                found[fold.held] += (own - found[fold.held]).mean(axis=0)
        return found

    def compare(
        self, penalties: tuple[float, ...], theta: list[np.ndarray], new: list[Part]
    ) -> tuple[float, np.ndarray]:
        """The weights of all documents beside those of other folds, on new documents, if there are any.

        Returns the mean variance of omega, by leaving out a fold at a time (the jackknife), and how much larger omega
        is with all documents, (R,). That weights from fewer documents are all smaller is no variance. Without new
        documents the variance is that of the fold's own, and the factor is 1.
        """
        away, smaller, n_new = [], [], new[0].x.shape[0]
        for i, fold in enumerate(self.folds):
            parts, docs = (new, np.arange(n_new)) if n_new else (self.problem.parts, self.problem.rows[fold.held])
            whole = sum_parts(parts, docs, theta)
            part = sum_parts(parts, docs, self.solve(i, penalties, EXACT))
            ratio = float(np.vdot(part, whole)) / max(float(np.vdot(whole, whole)), 1e-300)
            away.append(float(np.mean((part - ratio * whole) ** 2)))
            smaller.append(np.sqrt((part**2).mean(axis=0) / np.maximum((whole**2).mean(axis=0), 1e-300)))
        growth = 1.0 / np.clip(np.mean(smaller, axis=0), 1.0 / MOST_GROWTH, 1.0)
        return (FOLDS - 1.0) * float(np.mean(away)), growth if n_new else np.ones(theta[0].shape[1])


def make_folds(n_docs: int) -> tuple[np.ndarray, int]:
    """The fold of each document, and how many of the folds are held out."""
    return np.random.default_rng(0).permutation(n_docs) % FOLDS, min(FOLDS, 1 + FOLDS * ENOUGH // n_docs)


def sum_parts(parts: Sequence[Part], rows: np.ndarray | slice, theta: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of x @ theta over the parts, for some rows: (n_rows, R)."""
    return np.sum([times_rows(part.x, rows, own) for part, own in zip(parts, theta, strict=True)], axis=0)


def sum_squares(
    parts: Sequence[Part], variance: Sequence[np.ndarray], rows: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """The variance of the sum of x @ theta, for some rows: (n_rows, R)."""
    squares = (times_rows(part.x, rows, own, squared=True) for part, own in zip(parts, variance, strict=True))
    return np.sum(list(squares), axis=0)


@dataclass(frozen=True, eq=False)
class Problem:
    """The regression on some documents."""

    parts: list[Part]
    rows: np.ndarray
    response: Response
    target: Target
    pool: Pool
    device: str = "cpu"

    @cached_property
    def offset(self) -> np.ndarray:
        """The known part of omega, with the sum at the centres of the weights, (n_docs, R)."""
        known = np.broadcast_to(self.target.offset, self.target.weight.shape)
        for part in self.parts:
            if part.past is not None and part.past.theta.any():
                known = known + np.asarray(part.x[self.rows] @ part.past.theta)
        return known

    def ridge(self, docs: np.ndarray | slice = slice(None)) -> Ridge:
        """The regression on some of the documents."""
        blocks = [make_block(part.x, self.pool, self.device, self.rows[docs]) for part in self.parts]
        variances = [None if part.past is None else part.past.variance.astype(np.float32) for part in self.parts]
        return Ridge(blocks, variances, self.response, select_target(self.target, docs), self.offset[docs])

    def omega(self, theta: list[np.ndarray], docs: np.ndarray) -> np.ndarray:
        """What weights add to some of the documents, beyond their centres."""
        return sum_parts(self.parts, self.rows[docs], theta)


def learn_beside(
    parts: list[Part], seen: Seen, held_out: Seen, response: Response, pool: Pool,
    judge: Callable[[np.ndarray], np.ndarray] | None = None, device: str = "cpu", share: float = 1.0,
    fold: np.ndarray | None = None,
) -> LinearFit:  # fmt: skip
    """Learn the weights of all parts; they are 0 if there are too few documents.

    `fold` (n_held_out,) is the fold of each held-out document, -1 where its response is unknown.

    `judge` gives the loss of each held-out document for what the parts add to it, (n_held_out, R). With it prior
    variances are lowered as long as the mean loss is within a standard error of the best one. Weights of later batches
    keep the prior variances of the first; `share` is the part of all documents so far that these are.
    """
    known = np.any(seen.target.weight > 0, axis=1)
    first = all(part.past is None or not part.past.precision.any() for part in parts)
    if first:
        parts = [part._replace(past=None) for part in parts]
    else:  # a part that earlier batches did not have
        parts = [part if part.past else part._replace(past=no_past(part, seen.target)) for part in parts]
    if known.sum() < (LEAST_DOCS if first else FOLDS):
        return nothing_learned(parts, seen, held_out)
    new = as_new(parts, held_out)
    problem = Problem(parts, seen.rows[known], response, select_target(seen.target, known), pool, device)
    folds, ridge = Folds(problem), problem.ridge()
    penalties = folds.best() if first else (1.0,) * len(parts)
    solution = ridge.solve(penalties, None, EXACT)
    if judge is not None and first and len(held_out.rows):
        penalties, solution = shrink_more(ridge, solution, penalties, new, judge)
    theta, added = ridge.theta(solution), np.full((2, *seen.target.weight.shape), np.nan)
    variance, growth = folds.compare(penalties, theta, new)
    of_held_out = [part.x @ (own + part.centre) for part, own in zip(new, theta, strict=True)]
    relearned = np.sum(of_held_out, axis=0)
    if len(held_out.rows):  # the factors are estimated on them, then weights are learned from them, too
        del ridge  # else its rows are in memory while those of all documents are made
        both = Target(*(np.concatenate(pair) for pair in zip(problem.target, held_out.target, strict=True)))
        problem = replace(problem, rows=np.concatenate([problem.rows, held_out.rows]), target=both)
        ridge = problem.ridge()
        solution = ridge.solve(penalties, None, EXACT)
        relearned = relearn(problem, penalties, new, relearned, fold)
    priors = [
        penalty if part.past is None else part.past.penalty for part, penalty in zip(parts, penalties, strict=True)
    ]
    full = [own + part.centre for part, own in zip(parts, ridge.theta(solution), strict=True)]
    added[:, known] = folds.added(penalties, full), folds.added(penalties, full, growth)
    precisions, variances = spread(problem, ridge, solution, priors)
    measured = sum_squares(new, variances) if len(held_out.rows) else sum_squares(parts, variances, problem.rows)
    scale = variance / share / max(float(measured.mean()), 1e-30)
    variances = [scale * own for own in variances]
    past = [Past(own, p, prior) for own, p, prior in zip(full, precisions, priors, strict=True)]
    of_new = sum_squares(new, variances)
    return LinearFit(full, variances, past, added[0], added[1], of_held_out, of_new, relearned)


def as_new(parts: list[Part], held_out: Seen) -> list[Part]:
    """The rows of the held-out documents as if these were new."""
    return [part._replace(x=part.x[held_out.rows] if part.new is None else part.new) for part in parts]


def relearn(
    problem: Problem, penalties: tuple[float, ...], new: list[Part], found: np.ndarray, fold: np.ndarray | None
) -> np.ndarray:
    """The sum of the parts for each held-out document, with weights from all documents but those of its fold.

    Held-out documents are the last ones of the problem. New documents get weights from all documents, and guarantees
    need predictions of held-out ones that are like theirs: weights from seen documents alone would be too small.
    """
    found, n_seen = found.copy(), len(problem.rows) - len(found)
    for i in range(0 if fold is None else int(fold.max(initial=-1)) + 1):
        docs = np.flatnonzero(fold == i)
        others = np.delete(np.arange(len(problem.rows)), n_seen + docs)
        ridge = problem.ridge(others)
        theta = ridge.theta(ridge.solve(penalties, None, CLOSE))
        found[docs] = sum_parts(new, docs, [own + part.centre for part, own in zip(new, theta, strict=True)])
    return found


def no_past(part: Part, target: Target) -> Past:
    """A past of which only the prior variance is known."""
    zeros = np.zeros((part.x.shape[1], target.weight.shape[1]))
    return Past(zeros, zeros, PENALTIES[FIRST])


def nothing_learned(parts: list[Part], seen: Seen, held_out: Seen) -> LinearFit:
    """Weights as they were, or 0."""
    past = [part.past or no_past(part, seen.target) for part in parts]
    new = as_new(parts, held_out)
    of_held_out = [part.x @ known.theta for part, known in zip(new, past, strict=True)]
    added = np.sum([part.x[seen.rows] @ known.theta for part, known in zip(parts, past, strict=True)], axis=0)
    spreads = [np.zeros(known.theta.shape) if known.spread is None else known.spread for known in past]
    variance = sum_squares(new, spreads)
    theta = [known.theta for known in past]
    relearned = np.sum(of_held_out, axis=0)
    return LinearFit(theta, spreads, past, added, added, of_held_out, variance, relearned, learned=False)


def shrink_more(
    ridge: Ridge, solution: Solution, penalties: tuple[float, ...], new: list[Part],
    judge: Callable[[np.ndarray], np.ndarray],
) -> tuple[tuple[float, ...], Solution]:  # fmt: skip
    """Lower prior variances as long as the held-out loss is within a standard error of that of the best ones."""
    best = judge(sum_parts(new, slice(None), ridge.theta(solution)))
    while any(penalties):
        lower = tuple(PENALTIES[max(PENALTIES.index(penalty) - 1, 0)] for penalty in penalties)
        other = ridge.solve(lower, solution, EXACT)
        more = judge(sum_parts(new, slice(None), ridge.theta(other))) - best
        if not more.mean() <= more.std() / np.sqrt(len(more)):
            break
        penalties, solution = lower, other
    return penalties, solution


def spread(
    problem: Problem, ridge: Ridge, solution: Solution, priors: list[float]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The precision of each weight without its prior, and its sampling variance (the sandwich), weight by weight."""
    precisions, variances = [], []
    curvature = problem.response.curvature(problem.target, solution.omega)
    for part, span, penalty in zip(problem.parts, ridge.spans, priors, strict=True):
        information = span.block.gather_squares(curvature).astype(float)
        before = 0.0 if part.past is None else part.past.precision
        whole = information + before + (1.0 / penalty if penalty > 0 else NEVER)
        squares = span.block.gather_squares(solution.slope**2) + before
        precisions.append(np.asarray(information + before, float))
        variances.append(squares / whole**2)
    return precisions, variances
