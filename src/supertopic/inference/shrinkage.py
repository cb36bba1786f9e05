"""Shrinkage of prediction weights, estimated on held-out documents.

With c > 1 the topics overfit the training responses, those of other documents too, so that even weights from left-out
shares are too large; on pure noise all of them are. Held-out responses show by how much: the topics' part of omega is
multiplied by a factor whose posterior is computed on documents that no chain has seen, under a prior that gives half of
its mass to 0. It is one factor for all chains, since their mean is what predicts. Words and features have a factor,
too, which is estimated together with that of topics: either may be 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from supertopic.corpus.source import Arrays, Target
from supertopic.kernels.moments import omegas
from supertopic.model.linear import spread_normals
from supertopic.model.responses.base import Response
from supertopic.sampling.new_documents import FrozenTopics, draw_omegas

FACTORS = np.arange(26) / 10  # grid of factors for the part of topics, and for that of covariates, in omega
BESIDE_FACTORS = np.arange(16) / 10, np.arange(9) / 5  # grids of the factors of topics and of linear terms together
USUAL = 0.3, 0.85  # the factors of topics and of linear terms where nothing was held out
MODELS = {"nothing": 0.05, "linear": 0.45, "topics": 0.1, "both": 0.4}  # prior probabilities of what has a factor
# prior of the factor c of linear terms beside a factor a of topics: mean 1 - LESS a, standard deviation AROUND
LESS, AROUND = 0.7, 0.2
SPREADS, SPREAD_PRIOR = np.array([0.0, 0.05, 0.25, 0.5, 1.0]), np.array([0.1, 0.15, 0.2, 0.25, 0.3])  # grid, prior
USUAL_SPREAD = 0.5  # the factor of variances where nothing was held out
DRAWS_BESIDE = 24  # draws of topics that are compared with linear terms
SCALES = 2.0 ** (np.arange(-8, 17) / 8)  # grid of factors for the response's own parameter
COARSE_AND_FINE = np.arange(-16.0, 17.0, 2.0), np.arange(-7, 8) / 4.0  # powers of 2 that are tried one after the other
NOTHING = 0.5  # the prior probability that topics explain nothing
PRIOR_WEIGHT, ROUNDS_OF_PRIORS = 5.0, 20  # the prior weighs as much as this many columns; rounds of empirical Bayes
MOST_NUMBERS = 2**21  # largest number of draws of omega for held-out documents
ROUNDS = 2  # each factor is found given the others
TOPICS, COVARIATES, SCALE = "topics", "covariates", "scale"  # what has a factor; topics have it with linear terms
LINEAR = "linear"

LogLikelihoods = dict[str, np.ndarray]  # of each factor's grid points, (n, n_questions), summed over held-out documents


class HeldOutDraws(NamedTuple):
    """The terms of omega that the draws of a chain give to held-out documents."""

    topics: np.ndarray  # (n_draws, n, R)
    covariates: np.ndarray  # (n_draws, n, R), or no draws where there are no covariates


class Shrinkage(NamedTuple):
    """The posterior of the factors. Exclusive columns, of which exactly one is 1, are one."""

    posteriors: dict[str, tuple[np.ndarray, np.ndarray]]  # grid (n,) or (n, 2), and mass (n, n_judged), of each
    loss: np.ndarray  # (n, n_judged): of each held-out response, itself left out of the posterior
    base_loss: np.ndarray  # (n, n_judged): with covariates and linear terms, but without topics
    weight: np.ndarray  # (n, n_judged)
    grids: LogLikelihoods  # log-likelihoods of all held-out documents so far, for later batches
    logs: LogLikelihoods  # weighted, of each held-out document: (points, n, n_judged)
    priors: dict[str, np.ndarray]  # (points,) each

    @property
    def factors(self) -> np.ndarray:
        """The posterior means of the factors of topics and linear terms, (1 or 2, n_judged)."""
        grid, mass = self.posteriors[TOPICS]
        return np.atleast_2d(grid.T) @ mass

    def without(self, docs: np.ndarray) -> "Shrinkage":
        """The same without the documents of a mask: the posteriors do not use them."""
        summed = {name: self.grids[name] - logs[:, docs].sum(axis=1) for name, logs in self.logs.items()}
        found = {name: np.exp(log_posteriors(grid, self.priors[name])) for name, grid in summed.items()}
        posteriors = {name: (grid, found.get(name, mass)) for name, (grid, mass) in self.posteriors.items()}
        return self._replace(posteriors=posteriors)


def every_few(target: Target, n_draws: int, n_pairs: int) -> np.ndarray:
    """A mask of evenly spaced held-out documents, so that their draws of omega fit into memory."""
    n_docs, n_columns = target.weight.shape
    every = -(-n_docs * n_columns * max(n_draws, n_pairs) // MOST_NUMBERS)
    return np.arange(n_docs) % every == 0


def draw_held_out(
    held_out: Arrays, topics: FrozenTopics, etas: np.ndarray, n_sweeps: int, key: np.uint64
) -> HeldOutDraws:
    """The parts of omega of held-out documents under draws of eta (n, R, K + P), computed as for any new document."""
    tokens, target = held_out
    n_topics = etas.shape[2] - target.covariates.shape[1]
    omega = draw_omegas(tokens, topics, n_sweeps, etas[:, :, :n_topics].copy(), key)
    beside = np.zeros((0, *target.weight.shape))
    if target.covariates.shape[1]:
        beside = np.array([omegas(target.covariates, eta[:, n_topics:].copy()) for eta in etas])
    return HeldOutDraws(omega, beside[np.arange(len(omega)) % len(etas)] if len(beside) else beside)


def factor_prior(mean: float) -> np.ndarray:
    """The prior of FACTORS, with a mean and a standard deviation of about a third of it."""
    prior = (FACTORS / mean) ** 8 * np.exp(-9.0 * FACTORS / mean)
    return prior / prior.sum()


def estimate_shrinkage(
    response: Response, target: Target, draws: list[HeldOutDraws], scales: np.ndarray,
    linear: np.ndarray | None = None, earlier: LogLikelihoods | None = None,
) -> Shrinkage:  # fmt: skip
    """The factors of topics, covariates and the response's own parameter, given what the chains say of documents.

    scales (n_draws, R or 0) are those of the draws of all chains; linear (n, R) is what words and features add to the
    documents; `earlier` is from held-out documents of earlier batches.
    """
    y, weight, offset = target[:3]
    topics, beside = (np.concatenate(parts) for parts in zip(*draws, strict=True))
    if linear is not None:  # their factors have many points
        some = np.arange(len(topics)) % max(1, len(topics) // DRAWS_BESIDE) == 0
        topics, beside, scales = topics[some], beside[some[: len(beside)]], scales[some]
    n_columns = weight.shape[1]
    one = np.ones(n_columns)

    def log_p(at: dict[str, np.ndarray], of_mean: bool = True) -> np.ndarray:
        a, b, v = at[TOPICS], at[COVARIATES], at[SCALE]
        known = offset
        if linear is not None:
            a, known = a[0], offset + a[1] * linear
        omega = known + a * topics + (b * beside if len(beside) else 0.0)
        score = response.log_score if of_mean else response.log_predictive
        return score(y, omega, response.rescale(scales, v) if response.rescaled else scales)

    grids = factor_grids(response.rescaled, len(beside) > 0, linear is not None)
    at = {name: grid[0][..., None] * one for name, (grid, _) in grids.items()}
    at |= {name: np.ones_like(value) for name, value in at.items()}
    nothing = at | {TOPICS: 0.0 * at[TOPICS], COVARIATES: 0.0 * at[COVARIATES]}
    n_judged = log_p(nothing).shape[1]
    weight = weight if n_judged == n_columns else weight.max(axis=1, keepdims=True)
    if earlier is None or any(len(earlier[name]) != len(grid) for name, (grid, _) in grids.items()):
        earlier = {name: np.zeros((len(grid), n_judged)) for name, (grid, _) in grids.items()}
    summed = dict(earlier)
    found, of_documents = {name: np.zeros((1, n_judged)) for name in grids}, LogLikelihoods()
    for _ in range(ROUNDS if len(beside) or response.rescaled else 1):
        for name in (SCALE, COVARIATES, TOPICS):
            grid, prior = grids[name]
            if len(grid) > 1:
                logs = np.array([log_p(at | {name: x[..., None] * one}, of_mean=name != SCALE) for x in grid])
                of_documents[name] = weight * logs
                summed[name] = earlier[name] + of_documents[name].sum(axis=1)
                found[name] = log_posteriors(summed[name], prior)
                at[name] = (grid.T @ np.exp(found[name])) * one
    # `logs` are those of the topics' factor, the last one: the posterior of each response without itself
    without = found[TOPICS][:, None, :] - weight * logs
    alone = logsumexp(without + logs, axis=0) - logsumexp(without, axis=0)
    if linear is None:
        base = log_p(nothing | {COVARIATES: at[COVARIATES]})
        if response.rescaled:
            base = at_best_scale(lambda v: log_p(nothing | {COVARIATES: at[COVARIATES], SCALE: v * one}), weight)
    else:
        none = grids[TOPICS][0][:, 0] == 0
        base = logsumexp(without[none] + logs[none], axis=0) - logsumexp(without[none], axis=0)
    posteriors = {name: (grid, np.exp(found[name])) for name, (grid, _) in grids.items()}
    priors = {name: prior for name, (_, prior) in grids.items()}
    return Shrinkage(posteriors, -alone, -base, weight, summed, of_documents, priors)


def at_best_scale(log_p: Callable[[np.ndarray], np.ndarray], weight: np.ndarray) -> np.ndarray:
    """Log densities (n, n_judged) with those factors of the own parameter, (n_judged,), that make them largest.

    Without topics a variance may be hundreds of times as large as with them.
    """
    power, columns = np.zeros(weight.shape[1]), np.arange(weight.shape[1])
    for steps in COARSE_AND_FINE:
        tried = power + steps[:, None]
        found = np.array([log_p(2.0**powers) for powers in tried])  # (n_steps, n, n_judged)
        best = np.sum(weight * found, axis=1).argmax(axis=0)
        power = tried[best, columns]
    return found[best, :, columns].T


def estimate_spread(
    response: Response, target: Target, draws: list[HeldOutDraws], scales: np.ndarray, shrinkage: Shrinkage,
    linear: np.ndarray, sd: np.ndarray,
) -> float:  # fmt: skip
    """The posterior mean of the factor of the linear terms' variance, given the means of all other factors.

    sd (n, R) are standard deviations of what linear terms add to held-out documents. Those of weights that are hardly
    penalised are large, and say more about other weights than about other predictions.
    """
    factors = [values * np.ones(target.weight.shape[1]) for values in shrinkage.factors]
    a, c = factors if len(factors) > 1 else (factors[0], 1.0)
    b, v = ((grid @ mass) for grid, mass in (shrinkage.posteriors[name] for name in (COVARIATES, SCALE)))
    topics, beside = (np.concatenate(parts) for parts in zip(*draws, strict=True))
    noise = spread_normals(len(topics), target.weight.shape[1])[:, None]
    known = target.offset + a * topics + (b * beside if len(beside) else 0.0)
    logs = []
    for factor in SPREADS:
        omega = known + c * (linear + np.sqrt(factor) * sd * noise)
        log_p = response.log_predictive(target.y, omega, response.rescale(scales, v) if response.rescaled else scales)
        weight = target.weight if log_p.shape[1] == target.weight.shape[1] else target.weight.max(axis=1, keepdims=True)
        logs.append(float((weight * log_p).sum()))
    mass = np.exp(np.array(logs) - max(logs)) * SPREAD_PRIOR
    return float(SPREADS @ mass / mass.sum())


def factor_grids(rescaled: bool, covariates: bool, linear: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The points of each factor and their prior; a single point is a factor that stays 1."""
    doubt = (1.0 - NOTHING) * factor_prior(1.0)
    doubt[0] = NOTHING
    stays = np.ones(1), np.ones(1)
    return {
        TOPICS: pair_grid() if linear else (FACTORS, doubt),
        COVARIATES: (FACTORS[1:], factor_prior(1.0)[1:]) if covariates else stays,
        SCALE: (SCALES, np.ones_like(SCALES)) if rescaled else stays,
    }


def pair_grid() -> tuple[np.ndarray, np.ndarray]:
    """Factors of topics and of linear terms beside them, (n, 2), and their prior: one of them, both, or neither."""
    a, c = (values.ravel() for values in np.meshgrid(*BESIDE_FACTORS, indexing="ij"))
    shapes = {
        "nothing": (a == 0) & (c == 0),
        "linear": (a == 0) * (c > 0) * np.exp(-0.5 * ((c - 1.0) / AROUND) ** 2),
        "topics": (a > 0) * (c == 0) * a**8 * np.exp(-9.0 * a),
        # few documents decide: topics that overlap with the words are usually worth about a third of their own factor
        "both": (a > 0) * (c > 0) * a**1.5 * np.exp(-7.5 * a - 0.5 * ((c - 1.0 + LESS * a) / AROUND) ** 2),
    }
    prior = sum(MODELS[name] * shape / shape.sum() for name, shape in shapes.items())
    return np.column_stack([a, c]), np.asarray(prior)


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
    """n draws from the posterior (points, columns) of each column, as even as n can be: (n, columns), or pairs."""
    draws = np.empty((n, posterior.shape[1], *grid.shape[1:]))
    for r, p in enumerate(posterior.T):
        places = np.searchsorted(np.cumsum(p), (rng.permutation(n) + 0.5) / n)
        draws[:, r] = grid[np.minimum(places, len(grid) - 1)]
    return draws


def draw_factors(
    shrinkage: Shrinkage | None, n: int, rng: np.random.Generator, usual: tuple[float, float]
) -> dict[str, np.ndarray]:
    """n draws of each factor, (n, n_judged): topics, linear terms, ...; the usual ones where nothing was held out."""
    if shrinkage is None:
        found = dict.fromkeys((COVARIATES, SCALE), np.ones((n, 1)))
        return found | {TOPICS: np.full((n, 1), usual[0]), LINEAR: np.full((n, 1), usual[1])}
    draws = {name: spread(*posterior, n, rng) for name, posterior in shrinkage.posteriors.items()}
    both = draws[TOPICS]
    if both.ndim == 2:
        return draws | {LINEAR: np.full(both.shape, usual[1])}
    return draws | {TOPICS: both[..., 0], LINEAR: both[..., 1]}
