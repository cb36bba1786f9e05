"""THE topic sampler: one pass over the tokens of some documents, whatever the response and whatever the topics are.

`sweep` weighs all K topics for every token: the paper's equation for z, arranged for speed.

- A token is not taken out of the counts and put back. The first question is whether it stays; state is written only
  when it moves. Most tokens stay, the processor guesses so, and the next token starts before this one is finished.
- All that does not depend on the word is kept as one row a document, (n + alpha) exp(score) / mass, for "all tokens
  in". Taking a token out of topic j multiplies it by the row exp(G[j]); rows are made for the topics that a document
  visits. So a weight is three factors, and exponentials are taken at new rows only.
- K topics are seen as blocks of 8 lanes. A prefix sum over the lanes finds the lane, counting over the blocks finds
  the topic: no branch that the processor would have to guess.

`sweep_linear` is for many topics: its time for a token does not depend on K. It proposes a topic and accepts it by
Metropolis and Hastings' rule, so it leaves the same distribution where it is.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from supertopic.draws import bits, uniform
from supertopic.lanes import (
    LANES,
    count_up_to,
    exp,
    exp_near_0,
    larger,
    largest,
    load,
    one_where,
    pad,
    prefetch,
    running_sum,
    splat,
    store,
    total,
    zero_where,
)

TINY, HUGE = np.float32(1e-30), np.float32(1e30)  # a total weight outside is taken again in float64
# A move multiplies the factors by at most exp(|G[j]| + |G[k]|). They are made anew once that may have come to exp(8),
# or after 32 moves; where one row alone is steeper than exp(20), the token is drawn in float64.
NEAR_0, DRIFT, STEEP = np.float32(0.25), np.float32(8), np.float32(20)
AHEAD, LINE = 6, 16  # the topics of a word are asked for six tokens ahead, a cache line of 16 numbers at a time
ZERO, ONE = np.float32(0), np.float32(1)
N, NUMBER, SCORE, FACTOR, READY, CUMULATED, LAST = range(7)  # rows of a document's state; NUMBER is 0, 1, 2, ...
G, OUT, BACK, ROWS = range(4)  # rows of a topic that the document visits: G[j], exp(G[j]), exp(-G[j])


class Quadratic(NamedTuple):
    """exp(kappa omega - lam omega**2 / 2): what every response comes down to after augmentation."""

    kappa: np.ndarray  # (n_docs, R)
    lam: np.ndarray  # (n_docs, R)


class Weights(NamedTuple):
    """The weights of the response as the sampler reads them."""

    exact: np.ndarray  # (R, K): eta
    eta: np.ndarray  # (R, K): eta in float32, flat, rows padded to whole lanes


def make_weights(eta: np.ndarray) -> Weights:
    return Weights(eta, pad(eta.astype(np.float32)).reshape(-1))


class Topics(NamedTuple):
    """What the sampler reads of the topics: counts, from which a token's own is taken out, or a fixed phi.

    All (V, K) arrays are flat, their rows padded to whole lanes. Live counts follow every move; others are those of
    the last sweep. The sampler that proposes topics draws them for a word from `occurrence`, the topics that its
    tokens had in the last sweep, or from `cumulated`, the running sums of phi; for the one that weighs all topics
    both are empty.
    """

    word_topic: np.ndarray  # (V, K) int32 counts
    mass: np.ndarray  # (K,) float64, not padded: the topic's tokens + V beta
    inverse: np.ndarray  # (K,) float32: 1 / mass; 1 where phi is fixed
    phi: np.ndarray  # (V, K) float32; empty where counts are used
    occurrence: np.ndarray  # (n_tokens,) uint16, or empty
    word_start: np.ndarray  # (V + 1,): word w has occurrence[word_start[w]:word_start[w + 1]]
    cumulated: np.ndarray  # (V, K) float32, or empty
    beta: float
    live: bool


@njit(cache=True, error_model="numpy")
def start_score(state, width, n_tokens, eta, quadratic, d):
    """score_k = sum_r eta_rk (kappa_r - lam_r omega_r) / N - lam_r eta_rk**2 / (2 N**2), all tokens in."""
    first = SCORE * width
    for b in range(first, first + width, LANES):
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
            store(state, first + b, load(state, first + b) + e * (linear - square * e))


@njit(cache=True, error_model="numpy")
def make_ready(state, width, alpha, inverse, labelled):
    """factor = exp(score - max score), so that the largest is 1; ready = (n + alpha) factor / mass."""
    top = load(state, SCORE * width)
    for b in range(LANES, width, LANES):
        top = larger(top, load(state, SCORE * width + b))
    shift = splat(largest(top))
    for b in range(0, width, LANES):
        factor = splat(ONE)
        if labelled:
            factor = exp(load(state, SCORE * width + b) - shift)
        store(state, FACTOR * width + b, factor)
        store(state, READY * width + b, (load(state, b) + load(alpha, b)) * factor * load(inverse, b))


@njit(cache=True, error_model="numpy")
def make_rows(rows, width, j, n_tokens, eta, lam, d):
    """G[j] = sum_r lam_r eta_rj eta_r / N**2, what a token out of topic j adds to the score, and its exponentials.

    Returns the largest |G[j]|.
    """
    first = ROWS * j * width
    for b in range(first, first + width, LANES):
        store(rows, b, splat(ZERO))
    for r in range(lam.shape[1]):
        if lam[d, r] != 0.0:
            slope = splat(np.float32(lam[d, r] * eta[r * width + j] / (n_tokens * n_tokens)))
            for b in range(0, width, LANES):
                store(rows, first + b, load(rows, first + b) + slope * load(eta, r * width + b))
    lanes_peak = splat(ZERO)
    for b in range(first, first + width, LANES):
        lanes_peak = larger(lanes_peak, larger(load(rows, b), splat(ZERO) - load(rows, b)))
    peak = largest(lanes_peak)
    for b in range(first, first + width, LANES):
        g = load(rows, b)
        if peak <= NEAR_0:
            store(rows, b + OUT * width, exp_near_0(g))
            store(rows, b + BACK * width, exp_near_0(splat(ZERO) - g))
        else:
            store(rows, b + OUT * width, exp(g))
            store(rows, b + BACK * width, exp(splat(ZERO) - g))
    return peak


@njit(cache=True, error_model="numpy")
def find(state, width, sums, rest, n_topics, j):
    """The topic at which the sum of the weights, lane by lane, passes `rest`; j where rounding leads outside."""
    sums = running_sum(sums)
    store(state, LAST * width, sums)
    lane = count_up_to(sums, rest)
    if lane > 0:
        rest -= state[LAST * width + lane - 1]
    k = lane
    for candidate in range(CUMULATED * width + lane, (CUMULATED + 1) * width, LANES):
        k += LANES if state[candidate] <= rest else 0
    return k if k < n_topics else j


@njit(cache=True, error_model="numpy")
def find_carefully(state, width, rows, n_topics, word, j, topics, alpha, labelled, u):
    """The topic of a token whose weights do not fit into float32: in float64, relative to the largest log weight."""
    weight = np.empty(n_topics)
    largest, total_weight = -np.inf, 0.0
    for k in range(n_topics):
        own = 1.0 if k == j else 0.0
        if len(topics.phi):
            weight[k] = math.log(topics.phi[word * width + k])
        else:
            weight[k] = math.log((topics.word_topic[word * width + k] - own + topics.beta) / (topics.mass[k] - own))
        weight[k] += math.log(state[k] - own + alpha[k])
        if labelled:
            weight[k] += np.float64(state[SCORE * width + k]) + rows[(ROWS * j + G) * width + k]
        largest = max(largest, weight[k])
    for k in range(n_topics):
        weight[k] = math.exp(weight[k] - largest)
        total_weight += weight[k]
    rest = u * total_weight - weight[j]
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
def sweep(tokens, z, topics, weights, quadratic, alpha, streams, n_sweeps, burn_in, kept, omega):
    """Draw every z anew, n_sweeps times; add what is counted after burn_in to `kept`, put eta zbar into `omega`.

    alpha (K,) is float32 and padded with zeros, so that a padding topic has weight 0. streams holds one random stream
    a document.
    """
    width, n_topics, n_columns = len(alpha), len(topics.mass), len(weights.exact)
    eta = weights.eta
    state = np.zeros(LAST * width + LANES, np.float32)
    rows = np.ones((ROWS * n_topics * (n_columns > 0) + 1) * width, np.float32)
    ones = len(rows) - width  # the last row stays 1, for documents without a label
    made = np.full(n_topics, -1)  # the last document for which the rows of a topic were made
    peak = np.zeros(n_topics, np.float32)  # the largest |G[j]| of these rows
    one = splat(ONE)
    beta, beta_lanes = np.float32(topics.beta), splat(np.float32(topics.beta))
    final = len(tokens.word) - 1
    fixed = len(topics.phi) > 0
    for k in range(width):
        state[NUMBER * width + k] = k

    for d in range(len(tokens.doc_start) - 1):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        n_tokens = stop - start
        if n_tokens == 0:
            continue
        for b in range(0, width, LANES):
            store(state, b, splat(ZERO))
        for i in range(start, stop):
            state[z[i]] += ONE
        known, spent = 0.0, ZERO
        for r in range(n_columns):
            known += abs(quadratic.lam[d, r]) + abs(quadratic.kappa[d, r])
        labelled = known > 0.0
        if labelled:
            start_score(state, width, n_tokens, eta, quadratic, d)
        make_ready(state, width, alpha, topics.inverse, labelled)

        for s in range(n_sweeps):
            for i in range(start, stop):
                word, j = np.intp(tokens.word[i]), np.intp(z[i])
                out = ones
                if labelled:
                    out = (ROWS * j + OUT) * width
                    if made[j] != d:
                        made[j] = d
                        peak[j] = make_rows(rows, width, j, n_tokens, eta, quadratic.lam, d)
                sums, here = splat(ZERO), splat(np.float32(j))
                soon = np.intp(tokens.word[min(i + AHEAD, final)]) * width
                if fixed:
                    for b in range(0, width, LANES):
                        weight = load(state, READY * width + b) * load(topics.phi, word * width + b)
                        others = zero_where(load(state, NUMBER * width + b), here, weight * load(rows, out + b))
                        sums = sums + others
                        store(state, CUMULATED * width + b, sums)
                    for b in range(0, width, LINE):
                        prefetch(topics.phi, soon + b)
                    stays = topics.phi[word * width + j]
                else:
                    for b in range(0, width, LANES):
                        count = load(topics.word_topic, word * width + b) + beta_lanes
                        weight = load(state, READY * width + b) * count
                        others = zero_where(load(state, NUMBER * width + b), here, weight * load(rows, out + b))
                        sums = sums + others
                        store(state, CUMULATED * width + b, sums)
                    for b in range(0, width, LINE):
                        prefetch(topics.word_topic, soon + b)
                    # the token's own count comes out of its word's and of its topic's
                    share = topics.inverse[j]
                    stays = (np.float32(topics.word_topic[word * width + j]) - ONE + beta) * (share / (ONE - share))
                stays *= (state[j] - ONE + alpha[j]) * state[FACTOR * width + j] * rows[out + j]
                mass = total(sums) + stays
                u = np.float32(np.int64(bits(streams[d], s * n_tokens + i - start) >> np.uint64(40)))
                if TINY < mass < HUGE and not (labelled and peak[j] > STEEP):
                    rest = u * np.float32(2.0**-24) * mass - stays
                    if rest < ZERO:
                        continue
                    k = find(state, width, sums, rest, n_topics, j)
                else:
                    u64 = np.float64(u) * 2.0**-24
                    k = find_carefully(state, width, rows, n_topics, word, j, topics, alpha, labelled, u64)
                    spent = DRIFT  # what overflowed may have spoilt the factors: make them anew
                if k == j and spent < DRIFT:
                    continue
                z[i] = k
                if topics.live:
                    for t, change in ((j, -1), (k, 1)):
                        topics.word_topic[word * width + t] += change
                        topics.mass[t] += change
                        b, inverse = t - t % LANES, splat(np.float32(1.0 / topics.mass[t]))
                        there = one_where(load(state, NUMBER * width + b), splat(np.float32(t)))
                        store(topics.inverse, b, load(topics.inverse, b) * (one - there) + inverse * there)
                if labelled and made[k] != d:
                    made[k] = d
                    peak[k] = make_rows(rows, width, k, n_tokens, eta, quadratic.lam, d)
                # whole vectors, since a vector load right after a store of one of its numbers would have to wait
                there = splat(np.float32(k))
                for b in range(0, width, LANES):
                    number = load(state, NUMBER * width + b)
                    n = load(state, b) - one_where(number, here) + one_where(number, there)
                    store(state, b, n)
                    factor = load(state, FACTOR * width + b)
                    if labelled:
                        row_j, row_k = ROWS * j * width + b, ROWS * k * width + b
                        score = load(state, SCORE * width + b) + load(rows, row_j) - load(rows, row_k)
                        store(state, SCORE * width + b, score)
                        factor = factor * load(rows, row_j + OUT * width) * load(rows, row_k + BACK * width)
                        store(state, FACTOR * width + b, factor)
                    store(state, READY * width + b, (n + load(alpha, b)) * factor * load(topics.inverse, b))
                spent += peak[j] + peak[k] + NEAR_0
                if labelled and spent > DRIFT:
                    spent = ZERO
                    make_ready(state, width, alpha, topics.inverse, labelled)
            if s >= burn_in:
                for b in range(0, width, LANES):
                    store(kept, d * width + b, load(kept, d * width + b) + load(state, b))

        for k in range(n_topics):
            if state[k] > 0:
                for r in range(n_columns):
                    omega[d, r] += weights.exact[r, k] * (np.float64(state[k]) / n_tokens)


@njit(cache=True, error_model="numpy")
def search(cumulated, first, n, share):
    """The first k at which cumulated[first + k] exceeds that share of cumulated[first + n - 1]."""
    bound = share * cumulated[first + n - 1]
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if cumulated[first + middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_linear(tokens, z, topics, weights, quadratic, alpha, streams, n_rounds, kept, omega):
    """Move every z by n_rounds pairs of proposals: a topic that the word likes, then one that the document likes.

    The first is drawn from a fixed phi, or in proportion to last sweep's word_topic + beta by picking an occurrence (as
    in WarpLDA, Chen et al. 2016); the second in proportion to n + alpha by picking a token. Each is accepted with what
    the target has beyond its proposal, the response's factor included. With a fixed phi this is exact. With last
    sweep's counts it is not, since proposals that remember old topics are no proposals of a fixed kernel; but then
    neither is the target. Arguments are as for `sweep`.
    """
    width, n_topics, n_columns = len(alpha), len(topics.mass), len(weights.exact)
    n = np.zeros(n_topics)
    omega_n = np.zeros(n_columns)  # omega N, all tokens in
    eta = weights.exact.T.copy()  # (K, R)
    cumulated_alpha = np.cumsum(alpha[:n_topics].astype(np.float64))
    alpha_mass, beta_mass = cumulated_alpha[-1], n_topics * topics.beta
    fixed = len(topics.phi) > 0

    for d in range(len(tokens.doc_start) - 1):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        n_tokens = stop - start
        omega_n[:] = 0.0
        for i in range(start, stop):
            n[z[i]] += 1.0
            for r in range(n_columns):
                omega_n[r] += eta[z[i], r]

        for i in range(start, stop):
            word, old = np.intp(tokens.word[i]), np.intp(z[i])
            first_occurrence = topics.word_start[word]
            n_occurrences = topics.word_start[word + 1] - first_occurrence
            for proposal in range(2 * n_rounds):
                j = np.intp(z[i])
                from_word = proposal % 2 == 0
                draw = 2 * ((i - start) * 2 * n_rounds + proposal)
                if from_word:
                    x = uniform(streams[d], draw) * (n_occurrences + beta_mass)
                    if fixed:
                        k = search(topics.cumulated, word * width, n_topics, uniform(streams[d], draw))
                    elif x < n_occurrences:
                        k = np.intp(topics.occurrence[first_occurrence + np.intp(x)])
                    else:
                        k = min(np.intp((x - n_occurrences) / topics.beta), n_topics - 1)
                else:
                    x = uniform(streams[d], draw) * (n_tokens + alpha_mass)
                    if x < n_tokens:
                        k = np.intp(z[start + np.intp(x)])
                    else:
                        k = search(cumulated_alpha, 0, n_topics, (x - n_tokens) / alpha_mass)
                if k == j:
                    continue
                # target / proposal at k over the same at j, the token taken out of topic j of the document and out of
                # its old topic in the counts
                ratio = 1.0
                if from_word:
                    ratio = (n[k] + alpha[k]) / (n[j] - 1.0 + alpha[j])
                elif fixed:
                    ratio = topics.phi[word * width + k] / topics.phi[word * width + j]
                if not fixed:
                    if from_word:
                        ratio *= topics.word_topic[word * width + j] + topics.beta
                        ratio /= topics.word_topic[word * width + k] + topics.beta
                    own_j, own_k = np.float64(j == old), np.float64(k == old)
                    ratio *= topics.word_topic[word * width + k] - own_k + topics.beta
                    ratio /= topics.word_topic[word * width + j] - own_j + topics.beta
                    ratio *= (topics.mass[j] - own_j) / (topics.mass[k] - own_k)
                exponent = 0.0
                for r in range(n_columns):
                    kappa, lam = quadratic.kappa[d, r], quadratic.lam[d, r]
                    middle = omega_n[r] - eta[j, r] + 0.5 * (eta[k, r] + eta[j, r])
                    exponent += (eta[k, r] - eta[j, r]) * (kappa - lam * middle / n_tokens) / n_tokens
                if uniform(streams[d], draw + 1) < ratio * math.exp(min(exponent, 700.0)):
                    z[i] = k
                    n[j] -= 1.0
                    n[k] += 1.0
                    for r in range(n_columns):
                        omega_n[r] += eta[k, r] - eta[j, r]

        for i in range(start, stop):
            k = np.intp(z[i])
            if n[k] > 0.0:
                for r in range(n_columns):
                    omega[d, r] += eta[k, r] * (n[k] / n_tokens)
                if len(kept):
                    kept[d * width + k] += np.float32(n[k])
                n[k] = 0.0
