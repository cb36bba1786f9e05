"""Weights for new documents: eta drawn again, with c = 1, on topic shares as a new document has them.

While topics are learned, the shares of a training document are pulled towards its response, c > 1 counts that response
c times, and the topics contain the document's own words. A new document has none of this, so that its probabilities
would come out too sure and its intervals too short. Here a Bayesian regression of the response on the shares that each
training document would have if it were new (`Shard.leave_out`) takes the place of the chain's own weights.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from supertopic.kernels.draws import make_key, normals, uniforms
from supertopic.kernels.moments import unpack
from supertopic.model.responses import Response
from supertopic.model.state import Statistics, add
from supertopic.sampling.engine import Engine
from supertopic.sampling.gibbs import draw_eta, factorise, log_normal
from supertopic.sampling.plan import ETA, NEWTON, SCALE

NU2 = 100.0  # prior variance: label-free shares differ less between classes, so that their weights are larger
BURN_IN = 10  # with fixed shares the chain settles at once
NU2_SHOWN, LEAST_SHOWN, THIN = 25.0, 100, 3  # for weights from few documents: prior variance, draws, iterations a draw
NEWTON_STEPS, HALVINGS = 25, 20  # to the mode, where steps by Newton's method are taken at all


def draw_weights(
    engine: Engine, response: Response, nu2: float, known: Statistics, n_draws: int, key: np.uint64, thin: int = 1
) -> Iterator[tuple[np.ndarray, Response]]:
    """Draws of eta (R, K + P) and of the response, given documents that are left out: Algorithm 1 without its sweep.

    `known` are statistics of documents that are not there any more.
    """
    engine.restart(response)
    if response.newton:
        engine.regress(find_mode(engine, response, nu2, known))
        statistics = engine.augment(response, make_key(key, thin * (BURN_IN + n_draws)))  # after the last iteration
    else:
        statistics = engine.statistics()
    for i in range(thin * (BURN_IN + n_draws)):
        eta = draw_eta(add(statistics, known), nu2, make_key(key, i, ETA))
        if response.newton:
            eta = newton_step(engine, response, nu2, known, eta, make_key(key, i, NEWTON))
        engine.regress(eta)
        response = response.draw_scale(engine, make_key(key, i, SCALE))
        if i >= thin * BURN_IN and i % thin == thin - 1:
            yield eta, response
        statistics = engine.augment(response, make_key(key, i))


class Local(NamedTuple):
    """The posterior of eta around a point: its log density there, and its normal approximation, a column each."""

    log_density: np.ndarray  # (R,)
    factors: list[tuple[np.ndarray, np.ndarray]]  # as from `factorise`


def look_around(engine: Engine, response: Response, nu2: float, known: Statistics, eta: np.ndarray) -> Local:
    """The posterior of eta, lam integrated out, around this value."""
    engine.regress(eta)
    log_density = engine.log_likelihoods([response])[0] + log_normal(factors_of(known, nu2), eta)
    engine.linearise(response)
    return Local(log_density, factors_of(add(engine.statistics(), known), nu2))


def factors_of(statistics: Statistics, nu2: float) -> list[tuple[np.ndarray, np.ndarray]]:
    return [factorise(statistics, nu2, r) for r in range(statistics.shift.shape[1])]


def find_mode(engine: Engine, response: Response, nu2: float, known: Statistics) -> np.ndarray:
    """The most probable eta, by Newton's method with steps that are halved until they lead uphill."""
    eta = np.zeros(known.shift.T.shape)
    here = look_around(engine, response, nu2, known, eta)
    for _ in range(NEWTON_STEPS):
        step = np.array([dtrtrs(U, half, lower=False)[0] for U, half in here.factors]) - eta
        size = np.ones((len(eta), 1))
        for _ in range(HALVINGS):
            there = look_around(engine, response, nu2, known, eta + size * step)
            lower = ~(there.log_density >= here.log_density)
            if not lower.any():
                break
            size[lower] *= 0.5
        else:
            break
        eta, done = eta + size * step, np.abs(size * step).max() < 1e-3
        here = there
        if done:
            break
    return eta


def newton_step(
    engine: Engine, response: Response, nu2: float, known: Statistics, eta: np.ndarray, key: np.uint64
) -> np.ndarray:
    """A Metropolis-Hastings step of each column of eta, lam integrated out (Gamerman, 1997).

    What is proposed comes from the normal approximation of the posterior around eta, so that the step is as large as
    the posterior is wide; given a lam that is known nearly exactly, as with large counts, it would be much smaller.
    """
    here, noise = look_around(engine, response, nu2, known, eta), normals(eta.shape, make_key(key, 0))
    new = np.array([dtrtrs(U, half + e, lower=False)[0] for (U, half), e in zip(here.factors, noise, strict=True)])
    there = look_around(engine, response, nu2, known, new)
    gain = there.log_density + log_normal(there.factors, eta) - here.log_density - log_normal(here.factors, new)
    taken = np.log(uniforms(len(eta), make_key(key, 1))) < gain
    return np.where(taken[:, None], new, eta)


def carry_over(
    engine: Engine, response: Response, nu2: float, known: Statistics, etas: Sequence[np.ndarray] | np.ndarray
) -> Statistics:
    """What later batches have to know of the weights: a normal density with the mean of the draws.

    Its precision is the curvature of the posterior there. The sum of lam x x' that a draw of eta came from is more,
    since no lam was ever observed, and with it weights would become too sure with every batch.
    """
    mean = np.mean(etas, axis=0)  # (R, K + P)
    engine.regress(mean)
    engine.linearise(response)
    precision = add(engine.statistics(), known).precision
    shift = np.empty(mean.T.shape)
    for r, eta in enumerate(mean):
        lower = unpack(precision, r, len(eta))
        shift[:, r] = lower @ eta + np.tril(lower, -1).T @ eta + eta / nu2
    return Statistics(precision, shift)
