"""Shrinkage of prediction weights, estimated on held-out documents.

With c > 1 the topics overfit the training responses, those of other documents too, so that even weights from left-out
shares are too large; on pure noise all of them are. Held-out responses show by how much: the topics' part of omega is
multiplied by a factor whose posterior is computed on documents that no chain has seen, under a prior that gives half of
its mass to 0. It is one factor for all chains, since their mean is what predicts.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from supertopic.corpus.source import Arrays, Target
from supertopic.kernels.moments import omegas
from supertopic.model.responses.base import Response
from supertopic.sampling.new_documents import FrozenTopics, draw_omegas

FACTORS = np.arange(26) / 10  # of the topics' and the covariates' part of omega
BESIDE_WORDS = 0.6  # the usual factor of topics where words have weights of their own, else it is 1
SCALES = 2.0 ** (np.arange(-8, 17) / 8)  # factors of the response's own parameter
NOTHING = 0.5  # the prior probability that topics explain nothing
PRIOR_WEIGHT, ROUNDS_OF_PRIORS = 5.0, 20  # the prior weighs as much as this many columns; rounds of empirical Bayes
MOST_NUMBERS = 2**21
ROUNDS = 2  # each factor is found given the others
TOPICS, COVARIATES, SCALE = "topics", "covariates", "scale"  # what has a factor

LogLikelihoods = dict[str, np.ndarray]  # of each factor's grid points, (n, n_questions), summed over held-out documents


class HeldOutDraws(NamedTuple):
    """The terms of omega that the draws of a chain give to held-out documents."""

    topics: np.ndarray  # (n_draws, n, R)
    covariates: np.ndarray  # (n_draws, n, R), or no draws where there are no covariates


class Shrinkage(NamedTuple):
    """The posterior of the factors. Exclusive columns, of which exactly one is 1, are one."""

    posteriors: dict[str, tuple[np.ndarray, np.ndarray]]  # of each factor: grid (n,), and mass (n, n_judged)
    loss: np.ndarray  # (n, n_judged): of each held-out response, itself left out of the posterior
    base_loss: np.ndarray  # (n, n_judged): with covariates and words, but without topics
    weight: np.ndarray  # (n, n_judged)
    evidence: float  # log marginal likelihood of the held-out responses over the factor of topics
    grids: LogLikelihoods  # of all held-out documents so far, for later batches

    @property
    def topic_factor(self) -> np.ndarray:
        """The posterior mean of the factor of topics, (n_judged,)."""
        grid, mass = self.posteriors[TOPICS]
        return grid @ mass


def every_few(target: Target, n_draws: int, n_pairs: int) -> np.ndarray:
    """A mask of evenly spaced held-out documents, so that their draws of omega fit into memory."""
    n_docs, n_columns = target.y.shape
    every = -(-n_docs * n_columns * max(n_draws, n_pairs) // MOST_NUMBERS)
    return np.arange(n_docs) % every == 0


def draw_held_out(
    held_out: Arrays, topics: FrozenTopics, etas: np.ndarray, n_sweeps: int, key: np.uint64
) -> HeldOutDraws:
    """The parts of omega of held-out documents under draws of eta (n, R, K + P), computed as for any new document."""
    tokens, target = held_out
    n_topics = etas.shape[2] - target.covariates.shape[1]
    omega = draw_omegas(tokens, topics, n_sweeps, etas[:, :, :n_topics].copy(), key)
    beside = np.zeros((0, *target.y.shape))
    if target.covariates.shape[1]:
        beside = np.array([omegas(target.covariates, eta[:, n_topics:].copy()) for eta in etas])
    return HeldOutDraws(omega, beside[np.arange(len(omega)) % len(etas)] if len(beside) else beside)


def factor_prior(mean: float) -> np.ndarray:
    """The prior of FACTORS: around a mean, give or take a third of it."""
    prior = (FACTORS / mean) ** 8 * np.exp(-9.0 * FACTORS / mean)
    return prior / prior.sum()


class WordOmega(NamedTuple):
    """What words add to omega of held-out documents, for some factors of topics."""

    factors: np.ndarray  # (n,)
    omega: np.ndarray  # (n, n_docs, R)


def estimate_shrinkage(
    response: Response, target: Target, draws: list[HeldOutDraws], scales: np.ndarray,
    words: WordOmega | None = None, earlier: LogLikelihoods | None = None,
) -> Shrinkage:  # fmt: skip
    """The factors of topics, covariates and the response's own parameter, given what the chains say of documents.

    scales (n_draws, R or 0) are those of the draws of all chains, `earlier` is from held-out documents of earlier
    batches.
    """
    y, weight, offset = target[:3]
    topics, beside = (np.concatenate(parts) for parts in zip(*draws, strict=True))
    n_columns = y.shape[1]
    none, one = np.zeros(n_columns), np.ones(n_columns)

    def log_p(at: dict[str, np.ndarray], of_mean: bool = True) -> np.ndarray:
        a, b, v = at[TOPICS], at[COVARIATES], at[SCALE]
        known = offset + interpolate(*words, a) if words else offset
        omega = known + a * topics + (b * beside if len(beside) else 0.0)
        score = response.log_score if of_mean else response.log_predictive
        return score(y, omega, v * scales if scales.size else scales)

    nothing = {TOPICS: none, COVARIATES: none, SCALE: one}
    n_judged = log_p(nothing).shape[1]
    weight = weight if n_judged == n_columns else weight.max(axis=1, keepdims=True)
    grids = factor_grids(response.drawn, len(beside) > 0, words is not None)
    earlier = earlier or {name: np.zeros((len(grid), n_judged)) for name, (grid, _) in grids.items()}
    summed = dict(earlier)
    at, found = dict.fromkeys(grids, one), {name: np.zeros((1, n_judged)) for name in grids}
    for _ in range(ROUNDS if len(beside) or response.drawn else 1):
        for name in (SCALE, COVARIATES, TOPICS):
            grid, prior = grids[name]
            if len(grid) > 1:
                logs = np.array([log_p(at | {name: x * one}, of_mean=name != SCALE) for x in grid])
                summed[name] = earlier[name] + np.sum(weight * logs, axis=1)
                found[name] = log_posteriors(summed[name], prior)
                at[name] = one * (grid @ np.exp(found[name]))
    base = log_p(nothing | {COVARIATES: at[COVARIATES]})
    if response.drawn:
        base = np.array([log_p(nothing | {COVARIATES: at[COVARIATES], SCALE: v * one}) for v in SCALES])
        base = base[np.sum(weight * base, axis=1).argmax(axis=0), :, np.arange(n_judged)].T
    # `logs` are those of the topics' factor, the last one: the posterior of each response without itself
    without = found[TOPICS][:, None, :] - weight * logs
    alone = logsumexp(without + logs, axis=0) - logsumexp(without, axis=0)
    prior = grids[TOPICS][1]
    likely = summed[TOPICS] + np.log(prior / prior.sum() + 1e-300)[:, None]
    posteriors = {name: (grid, np.exp(found[name])) for name, (grid, _) in grids.items()}
    return Shrinkage(posteriors, -alone, -base, weight, float(logsumexp(likely, axis=0).sum()), summed)


def factor_grids(drawn: bool, covariates: bool, words: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The grid of each factor and its prior; a single point is a factor that stays 1."""
    doubt = (1.0 - NOTHING) * factor_prior(BESIDE_WORDS if words else 1.0)
    doubt[0] = NOTHING
    stays = np.ones(1), np.ones(1)
    return {
        TOPICS: (FACTORS, doubt),
        COVARIATES: (FACTORS[1:], factor_prior(1.0)[1:]) if covariates else stays,
        SCALE: (SCALES, np.ones_like(SCALES)) if drawn else stays,
    }


def interpolate(points: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """values (n, n_docs, R) interpolated for each column: at (R,) is between the points (n,)."""
    low = np.clip(np.searchsorted(points, at, side="right") - 1, 0, len(points) - 2)
    share = (at - points[low]) / (points[low + 1] - points[low])
    columns = np.arange(len(at))
    return (values[low, :, columns] * (1.0 - share)[:, None] + values[low + 1, :, columns] * share[:, None]).T


def log_posteriors(log_likelihood: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The log posterior (points, columns) of a factor; the prior of each column learns from the other columns.

    Where most of many labels can be predicted, a rare one with two held-out documents is not taken for noise.
    """
    n_columns = log_likelihood.shape[1]
    log_prior = np.log(prior / prior.sum())[:, None]
    for _ in range(ROUNDS_OF_PRIORS if n_columns > 1 else 1):
        log_posterior = log_likelihood + log_prior
        log_posterior -= logsumexp(log_posterior, axis=0)
        found = np.exp(log_posterior)
        others = found.sum(axis=1, keepdims=True) - found
        log_prior = np.log(PRIOR_WEIGHT * (prior / prior.sum())[:, None] + others) - np.log(
            PRIOR_WEIGHT + n_columns - 1
        )
    return log_posterior


def spread(grid: np.ndarray, posterior: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n draws from the posterior (points, columns) of each column, as even as n draws can be: (n, columns)."""
    draws = np.empty((n, posterior.shape[1]))
    for r, p in enumerate(posterior.T):
        places = np.searchsorted(np.cumsum(p), (rng.permutation(n) + 0.5) / n)
        draws[:, r] = grid[np.minimum(places, len(grid) - 1)]
    return draws


def draw_factors(shrinkage: Shrinkage | None, n: int, rng: np.random.Generator, usual: float) -> dict[str, np.ndarray]:
    """n draws of each factor, (n, n_judged); the usual one where nothing was held out."""
    if shrinkage is None:
        return {TOPICS: np.full((n, 1), usual), COVARIATES: np.ones((n, 1)), SCALE: np.ones((n, 1))}
    return {name: spread(*posterior, n, rng) for name, posterior in shrinkage.posteriors.items()}
