"""The topic sampler for many topics: its time for a token depends on the topics of the document, not on K.

(n_k + alpha_k) phi_wk is a sum over the document's few topics, n_k phi_wk, plus one over all topics that is known for
each word, `topics.smooth`, and drawn from only now and then. A topic is drawn from that, LDA's conditional; if it is
another one, it is accepted with the response's factor (Metropolis and Hastings).
"""

import math
from typing import NamedTuple

import numpy as np

from supertopic.kernels.compiled import inlined, kernel, part
from supertopic.kernels.counts import find_changes
from supertopic.kernels.draws import uniform32
from supertopic.kernels.lanes import LANES, load, prefetch, splat, store, total, zero_where
from supertopic.kernels.sweep import AHEAD, CUMULATED, LAST, NUMBER, ONE, ZERO, find, number_lanes


class Present(NamedTuple):
    """The topics that a document has, in a list without gaps."""

    topic: np.ndarray  # (K,) int32: which they are
    place: np.ndarray  # (K,): where each of all topics is in the list, or -1
    n: np.ndarray  # (K,) float32: their tokens
    scaled: np.ndarray  # (K,) float32: n / mass
    cumulated: np.ndarray  # (K,) float32: running sums of their weights for a token


@inlined
def add_token(present, n_present, k):
    """One more token of topic k; returns how many topics the document has now."""
    if present.place[k] < 0:
        present.topic[n_present], present.place[k], present.n[n_present] = k, n_present, ZERO
        n_present += 1
    present.n[present.place[k]] += ONE
    return n_present


@inlined
def take_token(present, n_present, j):
    """One token of topic j less. The last topic of the list takes the place of one that has none left."""
    here = present.place[j]
    present.n[here] -= ONE
    if present.n[here] == ZERO:
        n_present -= 1
        last = present.topic[n_present]
        present.topic[here], present.n[here], present.scaled[here] = (
            last,
            present.n[n_present],
            present.scaled[n_present],
        )
        present.place[last] = here
        present.place[j] = -1
    return n_present


@inlined
def weigh_present(present, n_present, topics, word, soon, width, j):
    """n_k phi_wk of the document's topics but j, with running sums; asks for the words' topics `soon`."""
    here, first, beta = present.place[j], word * width, np.float32(topics.beta)
    mine, present.scaled[here], others = present.scaled[here], ZERO, ZERO
    for m in range(n_present):
        k = np.intp(present.topic[m])
        if len(topics.phi):
            others += present.scaled[m] * topics.phi[first + k]
            prefetch(topics.phi, soon + k)
        else:
            others += present.scaled[m] * (np.float32(topics.word_topic[first + k]) + beta)
            prefetch(topics.word_topic, soon + k)
        present.cumulated[m] = others
    present.scaled[here] = mine
    return others


@part
def find_smooth(state, width, topics, word, j, n_topics, u):
    """A topic other than j in proportion to alpha_k phi_wk, all K weighed."""
    sums, here, beta = splat(ZERO), splat(np.float32(j)), splat(np.float32(topics.beta))
    for b in range(0, width, LANES):
        weight = load(topics.alpha, b) * load(topics.inverse, b)
        if len(topics.phi):
            weight = weight * load(topics.phi, word * width + b)
        else:
            weight = weight * (load(topics.word_topic, word * width + b) + beta)
        sums = sums + zero_where(load(state, NUMBER * width + b), here, weight)
        store(state, CUMULATED * width + b, sums)
    return find(state, width, sums, u * total(sums), n_topics, j)


@inlined
def log_ratio(eta, quadratic, d, omega_n, n_tokens, j, k):
    """The log of the response's factor of a move from topic j to topic k; omega_n (R,) is omega N."""
    exponent = 0.0
    for r in range(len(omega_n)):
        middle = omega_n[r] + 0.5 * (eta[k, r] - eta[j, r])
        slope = (quadratic.kappa[d, r] - quadratic.lam[d, r] * middle / n_tokens) / n_tokens
        exponent += (eta[k, r] - eta[j, r]) * slope
    return exponent


@kernel
def sweep_sparse(tokens, z, topics, weights, quadratic, streams, summed, omega, found):
    """Draw every z anew. Topics are fixed, or those of the last sweep. Arguments are as for `sweep`.

    Returns how many moves were proposed, and how many of them the response accepted.
    """
    proposed = accepted = 0
    width, n_topics, n_columns = len(topics.alpha), len(topics.mass), len(weights.exact)
    alpha, beta, inverse = topics.alpha, np.float32(topics.beta), topics.inverse
    inverse_without = (1.0 / (topics.mass - 1.0)).astype(np.float32)
    present = Present(
        np.empty(n_topics, np.int32),
        np.full(n_topics, -1),
        np.empty(n_topics, np.float32),
        np.empty(n_topics, np.float32),
        np.empty(n_topics, np.float32),
    )
    omega_n = np.zeros(n_columns)
    eta = weights.exact.T.copy()  # (K, R)
    state = np.zeros(LAST * width + LANES, np.float32)
    final = len(tokens.word) - 1
    number_lanes(state, width)

    for d in range(len(tokens.doc_start) - 1):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        n_tokens, n_present = stop - start, 0
        for i in range(start, stop):
            n_present = add_token(present, n_present, np.intp(z[i]))
        omega_n[:] = 0.0
        for m in range(n_present):
            present.scaled[m] = present.n[m] * inverse[present.topic[m]]
            for r in range(n_columns):
                omega_n[r] += present.n[m] * eta[present.topic[m], r]

        for i in range(start, stop):
            word, j = np.intp(tokens.word[i]), np.intp(z[i])
            soon = np.intp(tokens.word[min(i + AHEAD, final)]) * width
            others = weigh_present(present, n_present, topics, word, soon, width, j)
            if len(topics.phi):
                liking = topics.phi[word * width + j]
                own = liking
            else:
                count = np.float32(topics.word_topic[word * width + j])
                liking, own = (count + beta) * inverse[j], (count - ONE + beta) * inverse_without[j]
            stays = (present.n[present.place[j]] - ONE + alpha[j]) * own
            rare = max(np.float32(topics.smooth[word]) - alpha[j] * liking, ZERO)
            rest = uniform32(streams[d], 3 * (i - start)) * (stays + others + rare) - stays
            if rest < ZERO:
                continue
            if rest < others:
                m = 0
                while present.cumulated[m] <= rest:
                    m += 1
                k = np.intp(present.topic[m])
            else:
                u = uniform32(streams[d], 3 * (i - start) + 1)
                k = find_smooth(state, width, topics, word, j, n_topics, u)
            if k == j:
                continue
            proposed += 1
            exponent = log_ratio(eta, quadratic, d, omega_n, n_tokens, j, k)
            if exponent < 0.0 and uniform32(streams[d], 3 * (i - start) + 2) > math.exp(exponent):
                continue
            accepted += 1
            z[i] = k
            here = present.place[j]
            present.scaled[here] = (present.n[here] - ONE) * inverse[j]
            n_present = take_token(present, n_present, j)
            n_present = add_token(present, n_present, k)
            there = present.place[k]
            present.scaled[there] = present.n[there] * inverse[k]
            for r in range(n_columns):
                omega_n[r] += eta[k, r] - eta[j, r]

        for m in range(n_present):
            k = np.intp(present.topic[m])
            for r in range(n_columns):
                omega[d, r] += eta[k, r] * (np.float64(present.n[m]) / n_tokens)
            if len(summed):
                summed[d * width + k] += present.n[m]
            present.place[k] = -1
    find_changes(tokens.word, z, found)
    return proposed, accepted
