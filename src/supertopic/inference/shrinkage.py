"""How far weights can be trusted: what they say of documents whose responses no topic has seen, and what these were.

With c > 1 the topics arrange themselves around the responses that they see, those of other documents too, so that even
weights for documents that are left out are too large; on pure noise all of them are. Hidden responses tell by how much:
the topics' part of omega is multiplied by a number from 0 on that has a posterior, given these, under a prior that
gives half of its mass to 0. It is one number for all chains, since their mean is what predicts.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from supertopic.corpus.source import Arrays, Target
from supertopic.kernels.moments import omegas
from supertopic.model.responses import Response
from supertopic.sampling.new_documents import draw_omegas

FACTORS = np.arange(26) / 10  # of the topics' and the covariates' part of omega
BESIDE_WORDS = 0.6  # the usual factor of topics where words have weights of their own, else it is 1
SCALES = 2.0 ** (np.arange(-8, 17) / 8)  # factors of the response's own parameter
NOTHING = 0.5  # the prior probability that topics say nothing
FIRM, LEARN = 5.0, 20  # the prior counts as so many questions; rounds in which the questions' priors settle
MOST_NUMBERS = 2**21
ROUNDS = 2  # each factor is found given the others


Surfaces = list[np.ndarray]  # of each of the three factors the log-likelihood of its points, (n, questions)


class Foretold(NamedTuple):
    """The parts of omega that the draws of a chain give to hidden documents."""

    topics: np.ndarray  # (n_draws, n, R)
    covariates: np.ndarray  # (n_draws, n, R), or no draws where there are no covariates


class Trust(NamedTuple):
    """What hidden documents tell. A question is a column, or all of them where exactly one of them is 1."""

    posteriors: list[tuple[np.ndarray, np.ndarray]]  # of the three factors: points (n,), and their mass (n, questions)
    loss: np.ndarray  # (n, questions): of each hidden response, as if it were not among those that found the factors
    base_loss: np.ndarray  # (n, questions): where nothing is known of a document but its covariates, and its words
    weight: np.ndarray  # (n, questions)
    evidence: float  # the log of how likely hidden responses are, whatever the factor of topics is
    surfaces: Surfaces  # what hidden documents have told so far, for those who come after them


def enough(target: Target, n_draws: int, n_told: int) -> np.ndarray:
    """A mask of every so-many-th hidden document, so that what a chain foretells of them is not too much to hold."""
    n_docs, n_columns = target.y.shape
    every = -(-n_docs * n_columns * max(n_draws, n_told) // MOST_NUMBERS)
    return np.arange(n_docs) % every == 0


def foretell(hidden: Arrays, topics: Any, etas: np.ndarray, n_sweeps: int, key: np.uint64) -> Foretold:
    """What draws of eta (n, R, K + P) say of hidden documents, as they would of any new one."""
    tokens, target = hidden
    n_topics = etas.shape[2] - target.covariates.shape[1]
    omega = draw_omegas(tokens, topics, n_sweeps, etas[:, :, :n_topics].copy(), key)
    beside = np.zeros((0, *target.y.shape))
    if target.covariates.shape[1]:
        beside = np.array([omegas(target.covariates, eta[:, n_topics:].copy()) for eta in etas])
    return Foretold(omega, beside[np.arange(len(omega)) % len(etas)] if len(beside) else beside)


def usual(mean: float) -> np.ndarray:
    """The prior of FACTORS: around a mean, give or take a third of it."""
    prior = (FACTORS / mean) ** 8 * np.exp(-9.0 * FACTORS / mean)
    return prior / prior.sum()


def find_trust(
    response: Response, target: Target, foretold: list[Foretold], scales: np.ndarray,
    words: tuple[np.ndarray, np.ndarray] | None = None, before: Surfaces | None = None,
) -> Trust:  # fmt: skip
    """The factors of topics, covariates and the response's own parameter, given what the chains foretell.

    scales (n_draws, R or 0) are those of the draws of all chains. `words` are some factors of topics, and what words
    say beside these, (n, n_docs, R). `before` is what other hidden documents have told.
    """
    y, weight, offset = target[:3]
    topics, beside = (np.concatenate(parts) for parts in zip(*foretold, strict=True))
    n_columns = y.shape[1]

    def log_p(a, b, v, of_mean: bool = True) -> np.ndarray:
        known = offset + between(*words, a) if words else offset
        omega = known + a * topics + (b * beside if len(beside) else 0.0)
        score = response.log_score if of_mean else response.log_predictive
        return score(y, omega, v * scales if scales.size else scales)

    none, one = np.zeros(n_columns), np.ones(n_columns)
    questions = log_p(none, none, one).shape[1]
    weight = weight if questions == n_columns else weight.max(axis=1, keepdims=True)
    doubt = (1.0 - NOTHING) * usual(BESIDE_WORDS if words else 1.0)
    doubt[0] = NOTHING
    grids = [(FACTORS, doubt)]
    grids += [(FACTORS[1:], usual(1.0)[1:])] if len(beside) else [(np.ones(1), np.ones(1))]
    grids += [(SCALES, np.ones_like(SCALES))] if response.drawn else [(np.ones(1), np.ones(1))]

    surfaces = before or [np.zeros((len(grid), questions)) for grid, _ in grids]
    told = list(surfaces)

    def look(place: int, at: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The log density of every response at each point of one factor, and the log posterior of the points."""
        grid, prior = grids[place]
        points = [[*at[:place], x * one, *at[place + 1 :]] for x in grid]
        logs = np.array([log_p(a, b, v, of_mean=place < 2) for a, b, v in points])
        told[place] = surfaces[place] + np.sum(weight * logs, axis=1)
        return logs, posteriors(told[place], prior)

    at, found = [one] * 3, [np.zeros((1, questions))] * 3
    for _ in range(ROUNDS if len(beside) or response.drawn else 1):
        for place in (2, 1, 0):
            if len(grids[place][0]) > 1:
                logs, found[place] = look(place, at)
                at[place] = one * (grids[place][0] @ np.exp(found[place]))
    base = log_p(none, at[1], one)
    if response.drawn:
        base = np.array([log_p(none, at[1], v * one) for v in SCALES])
        base = base[np.sum(weight * base, axis=1).argmax(axis=0), :, np.arange(questions)].T
    factors = [(grid, np.exp(post)) for (grid, _), post in zip(grids, found, strict=True)]
    without = found[0][:, None, :] - weight * logs  # the posterior of each response without itself
    alone = logsumexp(without + logs, axis=0) - logsumexp(without, axis=0)
    likely = told[0] + np.log(doubt / doubt.sum() + 1e-300)[:, None]
    return Trust(factors, -alone, -base, weight, float(logsumexp(likely, axis=0).sum()), told)


def between(points: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """values (n, n_docs, R) interpolated for each column: at (R,) is between the points (n,)."""
    low = np.clip(np.searchsorted(points, at, side="right") - 1, 0, len(points) - 2)
    share = (at - points[low]) / (points[low + 1] - points[low])
    columns = np.arange(len(at))
    return (values[low, :, columns] * (1.0 - share)[:, None] + values[low + 1, :, columns] * share[:, None]).T


def posteriors(log_likelihood: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The log posterior (points, questions) of a factor; the prior of each question learns from what others have found.

    Where most of many labels can be foretold, a rare one with two hidden documents is not taken for noise.
    """
    n_questions = log_likelihood.shape[1]
    log_prior = np.log(prior / prior.sum())[:, None]
    for _ in range(LEARN if n_questions > 1 else 1):
        log_posterior = log_likelihood + log_prior
        log_posterior -= logsumexp(log_posterior, axis=0)
        found = np.exp(log_posterior)
        others = found.sum(axis=1, keepdims=True) - found
        log_prior = np.log(FIRM * (prior / prior.sum())[:, None] + others) - np.log(FIRM + n_questions - 1)
    return log_posterior


def spread(grid: np.ndarray, posterior: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n draws from the posterior (points, columns) of each column, as even as n draws can be: (n, columns)."""
    draws = np.empty((n, posterior.shape[1]))
    for r, p in enumerate(posterior.T):
        places = np.searchsorted(np.cumsum(p), (rng.permutation(n) + 0.5) / n)
        draws[:, r] = grid[np.minimum(places, len(grid) - 1)]
    return draws


def draw_factors(trust: Trust | None, n: int, rng: np.random.Generator, usual: float) -> list[np.ndarray]:
    """n draws of the three factors, (n, questions) each; where nothing was hidden, what is usual."""
    if trust is None:
        return [np.full((n, 1), usual), np.ones((n, 1)), np.ones((n, 1))]
    return [spread(*posterior, n, rng) for posterior in trust.posteriors]
