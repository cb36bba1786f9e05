"""The paper's Algorithm 1: draw eta, sweep z, draw lambda, for ever."""

import itertools
import math
import time
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import digamma

from supertopic.draws import derive, kernel, log_gamma, make_key, normals, uniform
from supertopic.engines import Threads
from supertopic.lanes import pad
from supertopic.responses import Response
from supertopic.shard import Statistics
from supertopic.sweep import Topics

START, ETA, TOPICS, SWEEP, SCALE, LAMBDA = range(6)  # purposes of random numbers inside a chain
NO_PHI = np.zeros(0, np.float32)
PHI_WORDS = 2048  # words that are drawn at a time
SPARSE_FROM = 100  # topics: from here on `sweep_sparse` is the faster one
LEAST_PRIOR, MOST_PRIOR = 1e-6, 1e4  # of alpha for a topic and beta for a word, where they are learned
SAMPLERS = ("collapsed", "drawn", "delayed")


class Priors(NamedTuple):
    alpha: np.ndarray  # (K,): Dirichlet prior of a document
    beta: float  # Dirichlet prior of a topic, per word
    nu2: float  # variance of eta


class Draw(NamedTuple):
    """One sample of the posterior. word_topic is the chain's own array: copy what is to be kept."""

    eta: np.ndarray  # (R, K + P): weights of the topics, then of the covariates
    response: Response  # with its own parameter, if it has one
    word_topic: np.ndarray  # (V, K)


def begin(engine: Threads, key: np.uint64) -> None:
    """Draw every z from the uniform distribution."""
    engine.map(lambda shard: shard.start(make_key(key, 0, START)))


class State(NamedTuple):
    """What is known of all documents between two iterations. The arrays of counts are updated in place."""

    total: Statistics
    response: Response
    word_topic: np.ndarray  # (V, K) int32, padded
    alpha: np.ndarray  # (K,) float32, padded


def start(engine: Threads, n_words: int, priors: Priors, response: Response) -> State:
    """The state that follows from the shards' z and lam."""
    alpha = pad(priors.alpha.astype(np.float32))
    word_topic = np.zeros((n_words, len(alpha)), np.int32)
    for shard in engine.shards:
        shard.add_counts(word_topic)
    return State(engine.sum(lambda shard: shard.statistics()), response, word_topic, alpha)


def iterate(engine: Threads, state: State, priors: Priors, sampler: str, key: np.uint64) -> tuple[np.ndarray, State]:
    """One iteration of Algorithm 1; the response's own parameter is drawn with lambda integrated out, so before it."""
    began = time.perf_counter()
    eta = draw_eta(state.total, priors.nu2, make_key(key, ETA))
    seconds = time.perf_counter() - began
    topics = draw_topics(engine, state, priors, sampler, make_key(key, TOPICS))
    engine.map(lambda shard: shard.sweep(eta, topics, state.alpha, make_key(key, SWEEP)))
    if not topics.live:
        engine.over_words(len(state.word_topic), lambda shard, words: shard.add_moves(state.word_topic, words))
    response = state.response.draw(
        lambda new: np.sum(engine.map(lambda shard: shard.log_likelihood(new)), axis=0), make_key(key, SCALE)
    )
    total = engine.sum(lambda shard: shard.augment(response, make_key(key, LAMBDA)))
    total.seconds[0] += seconds
    return eta, state._replace(total=total, response=response)


def learn_priors(engine: Threads, state: State, priors: Priors) -> tuple[Priors, State]:
    """One step of Minka's fixed point towards the alpha and beta that make z and the words most likely.

    Every iteration of the burn-in takes one, so that priors and topics settle together.
    """
    *topics, lengths = np.sum(engine.map(lambda shard: shard.alpha_sums(priors.alpha)), axis=0)
    if lengths == 0.0:  # no words, nothing to learn
        return priors, state
    alpha = np.clip(priors.alpha * topics / lengths, LEAST_PRIOR, MOST_PRIOR)
    word_topic = state.word_topic[:, : len(alpha)]
    mass, n_words, beta = word_topic.sum(axis=0), len(word_topic), priors.beta
    sizes = count_sizes(word_topic)
    grown = np.sum(sizes * (digamma(np.arange(len(sizes)) + beta) - digamma(beta)))
    whole = n_words * np.sum(digamma(mass + n_words * beta) - digamma(n_words * beta))
    beta = float(np.clip(beta * grown / whole, LEAST_PRIOR, MOST_PRIOR))
    return priors._replace(alpha=alpha, beta=beta), state._replace(alpha=pad(alpha.astype(np.float32)))


@kernel
def count_sizes(word_topic):
    """How many (word, topic) have 0, 1, 2, ... tokens."""
    sizes = np.zeros(word_topic.max() + 1, np.int64)
    for w in range(len(word_topic)):
        for n in word_topic[w]:
            sizes[n] += 1
    return sizes


def draw_eta(total: Statistics, nu2: float, key: np.uint64) -> np.ndarray:
    """eta_r ~ N(P^-1 shift_r, P^-1) with P = I / nu2 + precision_r: a draw, not the mean. Shape (R, K + P)."""
    width, n_columns = total.shift.shape
    noise = normals((n_columns, width), key)
    eta = np.empty((n_columns, width))
    for r in range(n_columns):
        P = total.precision[:, :, r].copy()  # only the lower triangle is read
        P.flat[:: width + 1] += 1.0 / nu2 + 1e-13 * P.diagonal().max()  # the latter against rounding only
        L = np.linalg.cholesky(P)
        half = solve_triangular(L, total.shift[:, r], lower=True, check_finite=False)
        eta[r] = solve_triangular(L, half + noise[r], lower=True, trans="T", check_finite=False)
    return eta


def draw_topics(engine: Threads, state: State, priors: Priors, sampler: str, key: np.uint64) -> Topics:
    """What the documents see of the topics in the next sweep."""
    n_words, n_topics = len(state.word_topic), len(priors.alpha)
    mass = np.sum(engine.map(lambda shard: shard.count_topics()), axis=0) + n_words * priors.beta
    phi, smooth, inverse = NO_PHI, np.zeros(0), pad((1.0 / mass).astype(np.float32))
    sparse = sampler != "collapsed" and n_topics >= SPARSE_FROM
    if sampler == "drawn":
        phi, inverse = draw_phi(engine, state.word_topic, n_topics, priors.beta, key), np.ones_like(inverse)
        if sparse:
            smooth = np.sum(phi.reshape(n_words, -1) * state.alpha, axis=1, dtype=np.float64)
    elif sparse:
        share = priors.alpha / mass
        smooth = np.full(n_words, priors.beta * share.sum())
        engine.over_words(n_words, lambda shard, words: shard.add_shares(share, smooth, words))
    counts, live = state.word_topic.reshape(-1), sampler == "collapsed"
    return Topics(counts, mass, inverse, phi, smooth, priors.beta, live)


def draw_phi(engine: Threads, word_topic: np.ndarray, n_topics: int, beta: float, key: np.uint64) -> np.ndarray:
    """phi_k ~ Dirichlet(word_topic_k + beta), flat and padded, as log-gammas that are normalised in the log.

    Parts of the words are drawn on the engine's threads. Their sums are added in order, and which they are does not
    depend on the threads.
    """
    phi = np.zeros(word_topic.size, np.float32)
    edges = [*range(0, len(word_topic), PHI_WORDS), len(word_topic)]
    parts = list(itertools.pairwise(edges))
    sums = engine.over(parts, lambda part: draw_log_gammas(word_topic, n_topics, beta, key, phi, *part))
    total = np.logaddexp.reduce(sums, axis=0)
    engine.over(parts, lambda part: normalise(phi, word_topic.shape[1], total, *part))
    return phi


@kernel
def draw_log_gammas(word_topic, n_topics, beta, key, phi, first_word, last_word):
    """Put log Gamma(word_topic + beta) draws of some words into phi; returns their log-sum-exp, (K,)."""
    width = word_topic.shape[1]
    largest, total = np.full(n_topics, -1e30), np.zeros(n_topics)
    for w in range(first_word, last_word):
        stream = derive(key, w)
        for k in range(n_topics):
            cell = derive(stream, k)
            n = word_topic[w, k]
            # most empty cells are so small that they will be 0 in float32: the first factor alone shows it
            x = -1e3
            if n > 0 or math.log(uniform(cell, 0)) > -100.0 * beta:
                x = log_gamma(n + beta, cell)
            phi[w * width + k] = x
            largest[k] = max(largest[k], x)
    for w in range(first_word, last_word):
        for k in range(n_topics):
            total[k] += math.exp(phi[w * width + k] - largest[k])
    for k in range(n_topics):
        total[k] = largest[k] + math.log(total[k])
    return total


@kernel
def normalise(phi, width, total, first_word, last_word):
    for w in range(first_word, last_word):
        for k in range(len(total)):
            phi[w * width + k] = max(math.exp(phi[w * width + k] - total[k]), 1e-37)


def log_joint(engine: Threads, draw: Draw, priors: Priors) -> float:
    """log p(w, z, eta) + log psi(y | z, eta): topics and proportions integrated out, and so is lambda."""
    documents = sum(engine.map(lambda shard: shard.log_joint(draw.response, priors.alpha))) + draw.response.log_prior()
    prior = -0.5 * float(np.sum(draw.eta**2)) / priors.nu2 - 0.5 * draw.eta.size * math.log(2 * math.pi * priors.nu2)
    return log_words(draw.word_topic, priors.beta) + documents + prior


@kernel
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
            if n > 0:
                total += table[n] if n < 256 else math.lgamma(beta + n) - math.lgamma(beta)
    for k in range(n_topics):
        total += math.lgamma(n_words * beta) - math.lgamma(n_words * beta + mass[k])
    return total
