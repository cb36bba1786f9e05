"""The paper's Algorithm 1: draw eta, sweep z, draw lambda, for ever."""

import itertools
import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import solve_triangular

from supertopic.draws import derive, log_gamma_draw, make_key, normals
from supertopic.engines import Threads
from supertopic.lanes import pad
from supertopic.shard import Statistics
from supertopic.sweep import Topics, make_weights

START, ETA, TOPICS, SWEEP = range(4)  # purposes of random numbers inside a chain
NO_COUNTS, NO_PHI = np.zeros(0, np.int32), np.zeros(0, np.float32)
SAMPLERS = ("collapsed", "drawn", "delayed")


class Priors(NamedTuple):
    alpha: np.ndarray  # (K,): Dirichlet prior of a document
    beta: float  # Dirichlet prior of a topic, per word
    nu2: float  # variance of eta


class Draw(NamedTuple):
    """One sample of the posterior. word_topic is the chain's own array: copy what is to be kept."""

    eta: np.ndarray  # (R, K)
    word_topic: np.ndarray  # (V, K)


def chain(
    engine: Threads, n_words: int, priors: Priors, sampler: str, seed: int, index: int, seconds: np.ndarray
) -> Iterator[Draw]:
    """The index-th chain of a seed, endless. `seconds` (3,) counts up the time in eta, z and lambda."""
    n_topics = len(priors.alpha)
    alpha = pad(priors.alpha.astype(np.float32))
    word_topic = np.zeros((n_words, len(alpha)), np.int32)
    engine.map(lambda shard: shard.start(make_key(seed, index, 0, START)))
    for shard in engine.shards:
        shard.add_counts(word_topic)
    total = sum_statistics(engine)
    for iteration in itertools.count(1):
        key = make_key(seed, index, iteration)
        eta, total = iterate(engine, total, word_topic, alpha, priors, sampler, key)
        seconds += total.seconds
        yield Draw(eta, word_topic[:, :n_topics])


def iterate(
    engine: Threads,
    total: Statistics,
    word_topic: np.ndarray,
    alpha: np.ndarray,
    priors: Priors,
    sampler: str,
    key: np.uint64,
) -> tuple[np.ndarray, Statistics]:
    """One iteration of Algorithm 1. alpha (K,) and word_topic (V, K) are padded; word_topic is brought up to date."""
    began = time.perf_counter()
    eta = draw_eta(total, priors.nu2, make_key(key, ETA))
    seconds = time.perf_counter() - began
    topics = draw_topics(word_topic, priors, sampler, make_key(key, TOPICS))
    total = engine.step(make_weights(eta), topics, alpha, make_key(key, SWEEP))  # sweep z, then draw lambda
    if not topics.live:
        engine.add_moves(word_topic)
    total.seconds[0] += seconds
    return eta, total


def sum_statistics(engine: Threads) -> Statistics:
    first, *rest = engine.map(lambda shard: shard.statistics())
    return sum(rest, first)


def draw_eta(total: Statistics, nu2: float, key: np.uint64) -> np.ndarray:
    """eta_r ~ N(P^-1 shift_r, P^-1) with P = I / nu2 + precision_r: a draw, not the mean. Shape (R, K)."""
    n_topics, n_columns = total.shift.shape
    noise = normals((n_columns, n_topics), key)
    eta = np.empty((n_columns, n_topics))
    for r in range(n_columns):
        P = np.eye(n_topics) / nu2 + total.precision[:, :, r]  # only the lower triangle is read
        L = np.linalg.cholesky(P)
        half = solve_triangular(L, total.shift[:, r], lower=True, check_finite=False)
        eta[r] = solve_triangular(L, half + noise[r], lower=True, trans="T", check_finite=False)
    return eta


def draw_topics(word_topic: np.ndarray, priors: Priors, sampler: str, key: np.uint64) -> Topics:
    """What the documents see of the topics in the next sweep; word_topic (V, K) is padded."""
    counts = word_topic.reshape(-1)
    mass = count_topics(word_topic)[: len(priors.alpha)] + word_topic.shape[0] * priors.beta
    inverse = pad((1.0 / mass).astype(np.float32))
    if sampler == "collapsed":
        return Topics(counts, mass, inverse, NO_PHI, priors.beta, True)
    if sampler == "delayed":
        return Topics(counts, mass, inverse, NO_PHI, priors.beta, False)
    phi = np.zeros(counts.shape, np.float32)
    draw_phi(word_topic, len(priors.alpha), priors.beta, key, phi)
    return Topics(NO_COUNTS, mass, np.ones_like(inverse), phi, priors.beta, False)


@njit(cache=True, nogil=True)
def count_topics(word_topic):
    """Tokens of each topic."""
    total = np.zeros(word_topic.shape[1], np.int64)
    for w in range(word_topic.shape[0]):
        for k in range(word_topic.shape[1]):
            total[k] += word_topic[w, k]
    return total


@njit(cache=True, nogil=True)
def draw_phi(word_topic, n_topics, beta, key, phi):
    """phi_k ~ Dirichlet(word_topic_k + beta), as log-gammas normalised in the log: small ones would underflow."""
    n_words, width = word_topic.shape
    largest = np.full(n_topics, -np.inf)
    total = np.zeros(n_topics)
    for w in range(n_words):
        stream = derive(key, w)
        for k in range(n_topics):
            x = log_gamma_draw(word_topic[w, k] + beta, derive(stream, k))
            phi[w * width + k] = x
            largest[k] = max(largest[k], x)
    for w in range(n_words):
        for k in range(n_topics):
            total[k] += math.exp(phi[w * width + k] - largest[k])
    for k in range(n_topics):
        total[k] = largest[k] + math.log(total[k])
    for w in range(n_words):
        for k in range(n_topics):
            phi[w * width + k] = max(math.exp(phi[w * width + k] - total[k]), 1e-37)


def log_joint(engine: Threads, draw: Draw, priors: Priors) -> float:
    """log p(w, z, eta) + log psi(y | z, eta): topics and proportions integrated out, and so is lambda."""
    documents = sum(engine.map(lambda shard: shard.log_joint(priors.alpha)))
    prior = -0.5 * float(np.sum(draw.eta**2)) / priors.nu2 - 0.5 * draw.eta.size * math.log(2 * math.pi * priors.nu2)
    return log_words(draw.word_topic, priors.beta) + documents + prior


@njit(cache=True, nogil=True)
def log_words(word_topic, beta):
    """log p(w | z, beta), the topics integrated out."""
    n_words, n_topics = word_topic.shape
    table = np.array([math.lgamma(beta + n) - math.lgamma(beta) for n in range(256)])
    mass = np.zeros(n_topics, np.int64)
    total = 0.0
    for w in range(n_words):
        for k in range(n_topics):
            n = word_topic[w, k]
            mass[k] += n
            total += table[n] if n < 256 else math.lgamma(beta + n) - math.lgamma(beta)
    for k in range(n_topics):
        total += math.lgamma(n_words * beta) - math.lgamma(n_words * beta + mass[k])
    return total
