"""Weights for new documents: eta drawn again, with c = 1, on topic shares as a new document has them.

While topics are learned, the shares of a training document are pulled towards its response, c > 1 counts that response
c times, and the topics contain the document's own words. A new document has none of this, so that its probabilities
would come out too sure and its intervals too short. Prediction weights therefore come from a Bayesian regression of the
response on left-out shares: those that each training document would have if it were new. Reported weights come from a
regression on documents whose responses were held out: see `inference.reported`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from supertopic.corpus.source import Arrays
from supertopic.inference.shrinkage import HeldOutDraws, draw_held_out
from supertopic.kernels.draws import make_key, normals, uniforms
from supertopic.kernels.moments import unpack
from supertopic.model.groups import Variance, draw_variance, prior_variances
from supertopic.model.priors import NU2_PREDICTION
from supertopic.model.responses.base import Response
from supertopic.model.state import Statistics, WeightPriors, add, mean_topics
from supertopic.sampling import gibbs, matrix_free
from supertopic.sampling.chain import Chain
from supertopic.sampling.engine import Engine
from supertopic.sampling.gibbs import factorise, log_normal, log_prior
from supertopic.sampling.new_documents import PREDICT, FrozenTopics, freeze, infer_shares
from supertopic.sampling.plan import ETA, NEWTON, SCALE, VARIANCE

NEWTON_STEPS, HALVINGS = 25, 20  # to the mode
PREDICTION = 1 << 33  # a path of random numbers that no training iteration takes
TOPICS_AT_ONCE = 16  # topics whose shares in all documents are in memory at a time


class Calibrated(NamedTuple):
    """The weights of one chain, and what they were made from."""

    eta: np.ndarray  # (n_draws, R, K + P): for predictions
    scale: np.ndarray  # (n_draws, R or 0)
    shares: np.ndarray  # (n, K): of the documents of the chain's fold, the seen ones first; empty without a fold
    held_out: HeldOutDraws | None  # omega of held-out documents under the prediction weights
    left_out_omega: np.ndarray  # (n_docs, R): the topics' part of omega of training documents, from left-out shares
    known: WeightPriors  # for later batches


def own_weights(chain: Chain) -> Calibrated:
    """The weights of a chain, not calibrated."""
    eta, columns = np.array(chain.eta), chain.plan.n_columns
    chain.engine.use_matrix()
    known, own = known_weights(chain), np.zeros((0, columns))
    if columns:
        carried = carry_over(chain.engine, chain.response, chain.priors.nu2, known.training, eta)
        known = known._replace(training=carried)
    return Calibrated(eta, np.array(chain.scale), np.zeros((0, chain.plan.n_topics)), None, own, known)


class Unseen(NamedTuple):
    """The documents that a chain does not use."""

    weight: np.ndarray  # (n_docs, R): of all responses of its documents, those of its fold included
    fold: np.ndarray  # (n_docs,): which of its documents are in its fold
    held_out: Arrays | None  # documents that no chain has seen
    held_out_fold: np.ndarray  # which of these are in its fold
    some: np.ndarray | None  # a mask of those for which draws of omega are kept


def calibrate(chain: Chain, n_sweeps: int, unseen: Unseen, check: Callable[[], None]) -> Calibrated:
    """Draw prediction weights, and infer the shares of the documents of the fold; `check` runs after each draw.

    The response of the fold is used here: with c = 1, and left-out shares, it helps to predict.
    """
    own, engine, plan = own_weights(chain), chain.engine, chain.plan
    known, n_draws = own.known, len(chain.eta)
    predict_key = make_key(plan.seed, chain.index, PREDICT)
    engine.leave_out(chain.priors, n_sweeps, predict_key)
    engine.reweigh(unseen.weight)
    draws = []
    path = make_key(plan.seed, chain.index, PREDICTION)
    for draw in draw_weights(engine, plan.response.plain(), NU2_PREDICTION, known.prediction, n_draws, path):
        draws.append(draw)
        check()
    eta, scale = np.array([draw.eta for draw in draws]), np.array([draw.response.scale for draw in draws])
    response, nu2 = plan.response.plain().with_scale(np.mean(scale, axis=0)), mean_variance(draws)
    carried = known._replace(prediction=carry_over(engine, response, nu2, known.prediction, eta))
    left_out = engine.left_out_omega(eta[:, :, : plan.n_topics].mean(axis=0))
    shares, held_out = [left_out_shares(engine, unseen.fold)], unseen.held_out
    if held_out is None:
        return Calibrated(eta, scale, shares[0], None, left_out, carried)
    topics = chain_topics(chain)
    shares.append(infer_shares(held_out.select(unseen.held_out_fold).tokens, topics, n_sweeps, predict_key, 1))
    part = held_out if unseen.some is None else held_out.select(unseen.some)
    omega = draw_held_out(part, topics, eta, n_sweeps, predict_key)
    return Calibrated(eta, scale, np.concatenate(shares), omega, left_out, carried)


def left_out_shares(engine: Engine, docs: np.ndarray) -> np.ndarray:
    """The left-out shares of the documents of a mask, (n, K): omega of weights that are 1 for one topic."""
    n_topics = engine.plan.n_topics
    shares = np.zeros((np.count_nonzero(docs), n_topics))
    for first in range(0, n_topics if len(shares) else 0, TOPICS_AT_ONCE):
        some = slice(first, min(first + TOPICS_AT_ONCE, n_topics))
        shares[:, some] = engine.left_out_omega(np.eye(some.stop - first, n_topics, first))[docs]
    return shares


def known_weights(chain: Chain) -> WeightPriors:
    """The prior of the weights in a chain."""
    if chain.known is not None:
        return chain.known
    return WeightPriors(*(chain.engine.plan.no_statistics() for _ in range(3)))


def chain_topics(chain: Chain) -> FrozenTopics:
    """The topics that new documents will see: those of the mean over the draws."""
    counts = chain.engine.counts.summed_counts()
    return freeze(mean_topics(counts.word_topic, counts.n_draws, chain.priors), chain.plan.device)


class WeightDraw(NamedTuple):
    """One draw of a regression."""

    eta: np.ndarray  # (R, K + P)
    response: Response
    nu2: Variance  # of the prior: that of groups is drawn


def mean_variance(draws: Sequence[WeightDraw]) -> Variance:
    """The prior variance of weights, that of groups as in the mean of the draws."""
    first = draws[0].nu2
    return np.exp(np.mean([np.log(draw.nu2) for draw in draws], axis=0)) if isinstance(first, np.ndarray) else first


def draw_weights(
    engine: Engine, response: Response, prior: float, known: Statistics, n_draws: int, key: np.uint64, thin: int = 1
) -> Iterator[WeightDraw]:
    """Draws of eta (R, K + P) and of the response, given documents that are left out: Algorithm 1 without its sweep.

    `prior` is the variance of weights, and `known` are statistics of earlier documents. Of very many weights there are
    no Newton steps, whose densities need a determinant: draws of counts are then correct, but differ little.
    """
    plan, (width, n_columns) = engine.plan, known.shift.shape
    variance = np.ones(n_columns)
    nu2: Variance = prior
    if plan.n_groups:
        nu2 = prior_variances(prior, variance, width, plan.n_groups)
    burn_in = thin * response.burn_in
    engine.restart(response)
    if response.needs_newton:
        engine.regress(find_mode(engine, response, nu2, known))
        statistics = engine.augment(response, make_key(key, burn_in + thin * n_draws))  # after the last iteration
    else:
        statistics = engine.statistics()
    for i in range(burn_in + thin * n_draws):
        eta = gibbs.draw_weights(engine, statistics, known, nu2, make_key(key, i, ETA))
        if response.needs_newton and not plan.matrix_free:
            eta = newton_step(engine, response, nu2, known, eta, make_key(key, i, NEWTON))
        engine.regress(eta)
        response = response.draw_scale(engine, make_key(key, i, SCALE))
        if plan.n_groups:
            variance = draw_variance(eta[:, -plan.n_groups :], variance, make_key(key, i, VARIANCE))
            nu2 = prior_variances(prior, variance, width, plan.n_groups)
        if i >= burn_in and i % thin == thin - 1:
            yield WeightDraw(eta, response, nu2)
        statistics = engine.augment(response, make_key(key, i))


class Local(NamedTuple):
    """The posterior of eta around a point: its log density there, and its normal approximation, a column each."""

    log_density: np.ndarray  # (R,)
    mode: np.ndarray  # (R, K + P): of the approximation
    factors: list[tuple[np.ndarray, np.ndarray]]  # as from `factorise`; none of very many weights


def local_posterior(engine: Engine, response: Response, nu2: Variance, known: Statistics, eta: np.ndarray) -> Local:
    """The posterior of eta, lam integrated out, around this value."""
    engine.regress(eta)
    log_density = engine.log_likelihoods([response])[0] + log_prior(known, nu2, eta)
    engine.linearise(response)
    statistics = engine.statistics()
    if engine.plan.matrix_free:
        return Local(log_density, matrix_free.mode(engine, statistics, known, nu2), [])
    total = add(statistics, known)
    factors = [factorise(total, nu2, r) for r in range(len(eta))]
    return Local(log_density, np.array([dtrtrs(U, half, lower=False)[0] for U, half in factors]), factors)


def find_mode(engine: Engine, response: Response, nu2: Variance, known: Statistics) -> np.ndarray:
    """The most probable eta, by Newton's method with steps that are halved until they lead uphill."""
    eta = np.zeros(known.shift.T.shape)
    here = local_posterior(engine, response, nu2, known, eta)
    for _ in range(NEWTON_STEPS):
        step = here.mode - eta
        size = np.ones((len(eta), 1))
        for _ in range(HALVINGS):
            there = local_posterior(engine, response, nu2, known, eta + size * step)
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
    engine: Engine, response: Response, nu2: Variance, known: Statistics, eta: np.ndarray, key: np.uint64
) -> np.ndarray:
    """A Metropolis-Hastings step of each column of eta, lam integrated out (Gamerman, 1997).

    The proposal is the normal approximation of the posterior around eta, so that the step is as large as the posterior
    is wide; given a lam that is known nearly exactly, as with large counts, it would be much smaller.
    """
    here, noise = local_posterior(engine, response, nu2, known, eta), normals(eta.shape, make_key(key, 0))
    new = np.array([dtrtrs(U, half + e, lower=False)[0] for (U, half), e in zip(here.factors, noise, strict=True)])
    there = local_posterior(engine, response, nu2, known, new)
    gain = there.log_density + log_normal(there.factors, eta) - here.log_density - log_normal(here.factors, new)
    taken = np.log(uniforms(len(eta), make_key(key, 1))) < gain
    return np.where(taken[:, None], new, eta)


def carry_over(
    engine: Engine, response: Response, nu2: Variance, known: Statistics, etas: Sequence[np.ndarray] | np.ndarray
) -> Statistics:
    """What later batches need of the weights: a normal density with the mean of the draws.

    Its precision is the curvature of the posterior there. The sum of lam x x' that a draw of eta came from is more,
    since no lam was ever observed, and with it weights would become too sure with every batch. Of very many weights the
    density is that of independent ones, each with its own mean and variance.
    """
    mean = np.mean(etas, axis=0)  # (R, K + P)
    engine.regress(mean)
    engine.linearise(response)
    statistics = engine.statistics()
    if engine.plan.matrix_free:
        return matrix_free.independent(engine, statistics, known, nu2, mean)
    precision = add(statistics, known).precision
    shift = np.empty(mean.T.shape)
    for r, eta in enumerate(mean):
        lower = unpack(precision, r, len(eta))
        shift[:, r] = lower @ eta + np.tril(lower, -1).T @ eta + eta / (nu2[r] if isinstance(nu2, np.ndarray) else nu2)
    return Statistics(precision, shift)
