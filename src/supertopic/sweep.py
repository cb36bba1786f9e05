"""THE topic sampler: one pass over the tokens of some documents, whatever the response and whatever the topics are.

The arithmetic of a token is that of the paper's equation for z, arranged for speed:

- A token is not taken out of the counts and put back. Its own share is subtracted on the fly with a one-hot vector,
  and the first question is whether it stays; state is written only when it moves. Most tokens stay, the processor
  guesses so, and the next token starts before this one is finished.
- exp(score) is kept per document for "all tokens in"; taking a token out of topic j multiplies it by the row
  exp(G[j]). Rows are made for the topics that a document visits; exponentials are taken thot and at moves only.
- K topics are seen as K / 16 blocks of 16 lanes. A prefix sum over the lanes finds the lane, a short walk over the
  blocks finds the topic.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from supertopic.draws import bits
from supertopic.lanes import LANES, count_up_to, exp, load, one_hot, running_sum, splat, store, total

TINY, HUGE = np.float32(1e-30), np.float32(1e30)  # a total weight outside is taken again in float64
ZERO, ONE = np.float32(0), np.float32(1)
N, PRIOR, SCORE, FACTOR, WEIGHT = 0, 1, 2, 3, 4  # the rows of a document's state


class Quadratic(NamedTuple):
    """exp(kappa omega - lam omega**2 / 2): what every response comes down to after augmentation."""

    kappa: np.ndarray  # (n_docs, R)
    lam: np.ndarray  # (n_docs, R)


class Topics(NamedTuple):
    """What the sampler reads of the topics: counts, from which a token's own is taken out, or a fixed phi.

    All (V, K) arrays are flat, their rows padded to whole lanes. Moves are recorded in `moves`: the counts
    themselves when they are live, zeros when they are last sweep's, an empty array when nobody wants to know.
    """

    word_topic: np.ndarray  # (V, K) int32 counts; empty where phi is fixed
    mass: np.ndarray  # (K,) float64: the topic's tokens + V beta
    inverse: np.ndarray  # (K,) float32: 1 / mass
    phi: np.ndarray  # (V, K) float32; empty where counts are used
    moves: np.ndarray  # (V, K) int32 or empty
    beta: float
    live: bool


@njit(cache=True, error_model="numpy")
def start_document(state, width, n_tokens, eta, quadratic, d):
    """score_k = sum_r eta_rk (kappa_r - lam_r omega_r) / N - lam_r eta_rk**2 / (2 N**2), all tokens in."""
    for b in range(SCORE * width, (SCORE + 1) * width, LANES):
        store(state, b, splat(ZERO))
    for r in range(quadratic.lam.shape[1]):
        kappa, lam = quadratic.kappa[d, r], quadratic.lam[d, r]
        if kappa == 0.0 and lam == 0.0:
            continue
        omega = splat(ZERO)
        for b in range(0, width, LANES):
            omega = omega + load(state, b) * load(eta, r * width + b)
        linear = splat(np.float32((kappa - lam * total(omega) / n_tokens) / n_tokens))
        square = splat(np.float32(lam / (2.0 * n_tokens * n_tokens)))
        for b in range(0, width, LANES):
            e = load(eta, r * width + b)
            store(state, SCORE * width + b, load(state, SCORE * width + b) + e * (linear - square * e))


@njit(cache=True, error_model="numpy")
def start_factor(state, width, n_topics):
    """factor = exp(score - shift), where the shift makes the largest factor 1 whatever the size of the scores."""
    shift = state[SCORE * width]
    for k in range(1, n_topics):
        shift = max(shift, state[SCORE * width + k])
    for b in range(0, width, LANES):
        store(state, FACTOR * width + b, exp(load(state, SCORE * width + b) - splat(shift)))


@njit(cache=True, error_model="numpy")
def make_row(rows, width, j, n_tokens, eta, lam, d):
    """G[j] = sum_r lam_r eta_rj eta_r / N**2: what a token out of topic j adds to the score; then its exponential."""
    first = 3 * j * width
    for b in range(first, first + width, LANES):
        store(rows, b, splat(ZERO))
    for r in range(lam.shape[1]):
        if lam[d, r] != 0.0:
            slope = splat(np.float32(lam[d, r] * eta[r * width + j] / (n_tokens * n_tokens)))
            for b in range(0, width, LANES):
                store(rows, first + b, load(rows, first + b) + slope * load(eta, r * width + b))
    for b in range(first, first + width, LANES):
        out = exp(load(rows, b))
        store(rows, b + width, out)
        store(rows, b + 2 * width, splat(ONE) / out)


@njit(cache=True, error_model="numpy", inline="always")
def find(state, width, sums, rest, j, n_topics):
    """The topic other than j at which the running sum of the weights passes `rest`; j itself where none does."""
    first = WEIGHT * width
    sums = running_sum(sums - one_hot(j % LANES) * splat(state[first + j]))
    state[first + j] = ZERO
    lane = count_up_to(sums, rest)
    if lane > 0:
        store(state, first + width, sums)
        rest -= state[first + width + lane - 1]
    k = j
    for candidate in range(lane, n_topics, LANES):
        if state[first + candidate] > ZERO:
            k = candidate
            rest -= state[first + candidate]
            if rest < ZERO:
                break
    return k


@njit(cache=True, error_model="numpy")
def find_carefully(state, width, rows, n_topics, word, j, topics, alpha, labelled, u):
    """The topic of a token whose weights do not fit into float32: in float64, relative to the largest log weight."""
    weight = np.empty(n_topics)
    for k in range(n_topics):
        own = 1.0 if k == j else 0.0
        if len(topics.phi):
            weight[k] = math.log(topics.phi[word * width + k])
        else:
            weight[k] = math.log((topics.word_topic[word * width + k] - own + topics.beta) / (topics.mass[k] - own))
        weight[k] += math.log(state[k] - own + alpha[k])
        if labelled:
            weight[k] += np.float64(state[SCORE * width + k]) + rows[3 * j * width + k]
    weight = np.exp(weight - weight.max())
    rest = u * weight.sum() - weight[j]
    if rest < 0.0:
        return j
    weight[j] = 0.0
    for lane in range(LANES):
        for k in range(lane, n_topics, LANES):
            rest -= weight[k]
            if rest < 0.0:
                return k
    return j


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(tokens, z, topics, eta, quadratic, alpha, streams, n_sweeps, burn_in, kept, omega):
    """Draw every z anew, n_sweeps times; add what is counted after burn_in to `kept`, put eta zbar into `omega`.

    alpha is padded with zeros, so that a padding topic has weight 0. streams holds one random stream a document.
    """
    width, n_topics, n_columns = len(alpha), eta.shape[1], eta.shape[0]
    state = np.zeros(5 * width + LANES, np.float32)
    rows = np.zeros(3 * n_topics * width if n_columns else 0, np.float32)
    made = np.full(n_topics, -1)  # the last document for which the rows of a topic were made
    flat_eta = np.zeros(n_columns * width, np.float32)
    for r in range(n_columns):
        flat_eta[r * width : r * width + n_topics] = eta[r]
    largest = np.array([np.max(eta[r] ** 2) for r in range(n_columns)])
    one, beta = splat(ONE), splat(np.float32(topics.beta))
    fixed, record = len(topics.phi) > 0, len(topics.moves) > 0

    for d in range(len(tokens.doc_start) - 1):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        n_tokens = stop - start
        if n_tokens == 0:
            continue
        state[:width] = ZERO
        for i in range(start, stop):
            state[z[i]] += ONE
        for b in range(0, width, LANES):
            store(state, PRIOR * width + b, load(state, b) + load(alpha, b))
        labelled, bound, n_moves = False, 0.0, 0
        for r in range(n_columns):
            labelled |= quadratic.lam[d, r] != 0.0 or quadratic.kappa[d, r] != 0.0
            bound += quadratic.lam[d, r] * largest[r] / (n_tokens * n_tokens)
        refresh, careful = 32 if bound < 0.25 else 1, bound > 20.0
        if labelled:
            start_document(state, width, n_tokens, flat_eta, quadratic, d)
            start_factor(state, width, n_topics)

        for s in range(n_sweeps):
            for i in range(start, stop):
                word, j = np.intp(tokens.word[i]), np.intp(z[i])
                if labelled and made[j] != d:
                    made[j] = d
                    make_row(rows, width, j, n_tokens, flat_eta, quadratic.lam, d)
                # 1 / (mass - 1) = inverse (1 + inverse / (1 - inverse)): the token's own share out of the topic's mass
                own = splat(ZERO if fixed else topics.inverse[j] / (ONE - topics.inverse[j]))
                sums = splat(ZERO)
                for b in range(0, width, LANES):
                    hot = one_hot(j - b)
                    weight = load(state, PRIOR * width + b) - hot
                    if fixed:
                        weight = weight * load(topics.phi, word * width + b)
                    else:
                        count = load(topics.word_topic, word * width + b) - hot + beta
                        weight = weight * count * (load(topics.inverse, b) * (one + hot * own))
                    if labelled:
                        weight = weight * (load(state, FACTOR * width + b) * load(rows, (3 * j + 1) * width + b))
                    store(state, WEIGHT * width + b, weight)
                    sums = sums + weight
                mass = total(sums)
                u = np.float32(np.int64(bits(streams[d], s * n_tokens + i - start) >> np.uint64(40))) * np.float32(
                    2.0**-24
                )
                if TINY < mass < HUGE and not careful:
                    rest = u * mass - state[WEIGHT * width + j]
                    if rest < ZERO:
                        continue
                    k = find(state, width, sums, rest, j, n_topics)
                else:
                    k = find_carefully(state, width, rows, n_topics, word, j, topics, alpha, labelled, u)
                    if labelled:
                        start_factor(state, width, n_topics)
                if k == j:
                    continue
                z[i] = k
                if record:
                    topics.moves[word * width + j] -= 1
                    topics.moves[word * width + k] += 1
                if topics.live:
                    for t, change in ((j, -1.0), (k, 1.0)):
                        topics.mass[t] += change
                        topics.inverse[t] = 1.0 / topics.mass[t]
                for t, change in ((j, -ONE), (k, ONE)):
                    state[t] += change
                    b = t - t % LANES
                    store(state, PRIOR * width + b, load(state, b) + load(alpha, b))
                if labelled:
                    if made[k] != d:
                        made[k] = d
                        make_row(rows, width, k, n_tokens, flat_eta, quadratic.lam, d)
                    for b in range(0, width, LANES):
                        score = load(state, SCORE * width + b) + load(rows, 3 * j * width + b)
                        store(state, SCORE * width + b, score - load(rows, 3 * k * width + b))
                        factor = load(state, FACTOR * width + b) * load(rows, (3 * j + 1) * width + b)
                        store(state, FACTOR * width + b, factor * load(rows, (3 * k + 2) * width + b))
                    n_moves += 1
                    if n_moves % refresh == 0:
                        start_factor(state, width, n_topics)
            if s >= burn_in:
                for b in range(0, width, LANES):
                    store(kept, d * width + b, load(kept, d * width + b) + load(state, b))

        for k in range(n_topics):
            for r in range(n_columns):
                if state[k] > 0:
                    omega[d, r] += eta[r, k] * (state[k] / n_tokens)
