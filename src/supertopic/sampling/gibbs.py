"""The paper's Algorithm 1: draw eta, sweep z, draw lambda."""

import math
import time

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.special import digamma

from supertopic.kernels.draws import make_key, normals
from supertopic.kernels.moments import unpack
from supertopic.model.groups import Variance, log_prior_variance
from supertopic.model.responses import Response
from supertopic.model.state import Priors, Statistics, add
from supertopic.sampling import matrix_free
from supertopic.sampling.engine import Engine
from supertopic.sampling.plan import ETA, SCALE

LEAST_PRIOR, MOST_PRIOR = 1e-6, 1e4  # bounds of alpha for a topic and of beta for a word, where they are learned


def iterate(
    engine: Engine, statistics: Statistics, known: Statistics | None, response: Response, priors: Priors,
    key: np.uint64, keep: bool = False, last: np.ndarray | None = None,
) -> tuple[np.ndarray, Statistics, Response]:  # fmt: skip
    """One iteration: returns eta, the statistics for the next draw of eta, and the response.

    `known` is the prior of the training weights beside nu2, as statistics, and `last` the eta of the last iteration.
    The response's own parameter is drawn before lambda, since lambda is integrated out there.
    """
    began = time.perf_counter()
    eta = draw_weights(engine, statistics, known, priors.nu2, make_key(key, ETA), last)
    engine.seconds[0] += time.perf_counter() - began
    if not response.drawn:
        swept = engine.sweep(eta, priors, key, keep, response)
        assert swept is not None
        return eta, swept, response
    engine.sweep(eta, priors, key, keep)
    response = response.draw_scale(engine, make_key(key, SCALE))
    return eta, engine.augment(response, key), response


def draw_weights(
    engine: Engine, statistics: Statistics, known: Statistics | None, nu2: Variance, key: np.uint64,
    last: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """A draw of eta (R, K + P); `statistics` are those of the engine's documents, and `known` are others.

    The last draw, if it is near to this one, saves time where there is no matrix.
    """
    if engine.plan.without_matrix:
        return matrix_free.draw(engine, statistics, known, nu2, key, last)
    if known is not None:
        statistics = add(statistics, known)
    return draw_eta(statistics, nu2, key)


def draw_eta(statistics: Statistics, nu2: Variance, key: np.uint64) -> np.ndarray:
    """eta_r ~ N(A^-1 shift_r, A^-1) with A = I / nu2 + precision_r: a draw, not the mean. Shape (R, K + P)."""
    if statistics.is_diagonal:
        return matrix_free.draw_independent(statistics, nu2, key)
    width, n_columns = statistics.shift.shape
    noise = normals((n_columns, width), key)
    eta = np.empty((n_columns, width))
    for r in range(n_columns):
        U, half = factorise(statistics, nu2, r)
        eta[r], _ = dtrtrs(U, half + noise[r], lower=False)
    return eta


def factorise(statistics: Statistics, nu2: Variance, r: int) -> tuple[np.ndarray, np.ndarray]:
    """U with U' U = A, and U'^-1 shift_r; nu2 is a number, or (R, K + P)."""
    nu2 = nu2[r] if isinstance(nu2, np.ndarray) else nu2
    width = len(statistics.shift)
    A = unpack(statistics.precision, r, width)
    A.flat[:: width + 1] += 1.0 / nu2 + 1e-13 * A.diagonal().max()  # the latter against rounding only
    # LAPACK reads columns first: to it the lower triangle of A is an upper one, and its factor L is U = L'
    U, failed = dpotrf(A.T, lower=False, clean=False, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("The precision of eta is not positive definite.")
    return U, dtrtrs(U, statistics.shift[:, r], lower=False, trans=True)[0]


def learn_priors(engine: Engine, priors: Priors) -> Priors:
    """One step of Minka's fixed point towards the alpha and beta that make z and the words most likely.

    Every iteration of the burn-in takes one, so that priors and topics settle together.
    """
    *topics, lengths = engine.alpha_sums(priors.alpha)
    if lengths == 0.0:  # there are no words
        return priors
    alpha = np.clip(priors.alpha * topics / lengths, LEAST_PRIOR, MOST_PRIOR)
    n_words, beta, pseudo = engine.plan.n_words, priors.beta, engine.pseudo_counts

    def slopes(sizes: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The slope of log p(w | z, beta) in beta: the part of (word, topic) pairs, and that of the topics' masses."""
        grown = np.sum(sizes * (digamma(np.arange(len(sizes)) + beta) - digamma(beta)))
        return np.array([grown, n_words * np.sum(digamma(mass + n_words * beta) - digamma(n_words * beta))])

    grown, whole = slopes(engine.counts.sizes(), engine.counts.tokens)
    if pseudo is not None:  # the step still goes uphill: log(p + beta) is convex in log(beta)
        grown, whole = (grown, whole) - slopes(np.bincount(pseudo.ravel()), pseudo.sum(axis=0))
    return priors._replace(alpha=alpha, beta=float(np.clip(beta * grown / whole, LEAST_PRIOR, MOST_PRIOR)))


def log_joint(engine: Engine, eta: np.ndarray, response: Response, priors: Priors, known: Statistics | None) -> float:
    """log p(w, z, eta) + log psi(y | z, eta): topics and proportions integrated out, and so is lambda."""
    documents = engine.log_documents(priors.alpha) + engine.log_likelihoods([response]).sum()
    prior = log_weights(eta, priors.nu2, known)
    if engine.plan.n_groups and isinstance(priors.nu2, np.ndarray):
        prior += log_prior_variance(priors.nu2[:, -1])
    return engine.counts.log_words(priors.beta) + float(documents) + response.log_prior() + prior


def log_weights(eta: np.ndarray, nu2: Variance, known: Statistics | None) -> float:
    """log p(eta): a normal prior with variance nu2 around 0, combined with the statistics that are known."""
    if known is None:
        return -0.5 * float(np.sum(np.broadcast_to(np.log(2 * np.pi * nu2), eta.shape)) + np.sum(eta**2 / nu2))
    return float(log_prior(known, nu2, eta).sum())


def log_prior(known: Statistics, nu2: Variance, eta: np.ndarray) -> np.ndarray:
    """The log density of each row of eta (R, K + P) under what is known of it, (R,)."""
    if known.is_diagonal:
        return matrix_free.log_prior(known, nu2, eta)
    return log_normal([factorise(known, nu2, r) for r in range(len(eta))], eta)


def log_normal(factors: list[tuple[np.ndarray, np.ndarray]], eta: np.ndarray) -> np.ndarray:
    """The log density of each row of eta (R, K + P) under a normal distribution, as from `factorise`: (R,)."""
    density = np.full(len(eta), -0.5 * eta.shape[1] * math.log(2 * math.pi))
    for r, (U, half) in enumerate(factors):
        density[r] += np.log(U.diagonal()).sum() - 0.5 * np.sum((np.triu(U) @ eta[r] - half) ** 2)
    return density
