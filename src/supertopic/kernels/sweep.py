"""The dense topic sampler: one pass over the tokens of some documents, for any response and any number of topics.

`sweep` computes the weights of all K topics for every token: the paper's equation for z, arranged for speed.

- A token is not removed from the counts before its draw. The first comparison decides whether it keeps its topic, and
  counts are written only if it moves. Most tokens keep their topic. The processor predicts this branch, and so starts
  the next token before this one is finished.
- Each document has one row of all factors that do not depend on the word, (n + alpha) exp(score) / mass, with the
  counts of all its tokens. To leave out a token of topic j, it is multiplied by the row exp(G[j]), which is computed
  when the document first has the topic. So a weight is a product of three factors, with few exponentials.
- The K topics are blocks of 8 lanes. A prefix sum over the lanes finds the lane, and a count over the blocks finds the
  topic, without a branch that the processor could predict wrongly.
"""

import math
from typing import Any

import numpy as np

from supertopic.kernels.compiled import inlined, kernel, part
from supertopic.kernels.counts import NOWHERE, Found, find_changes
from supertopic.kernels.draws import uniform32
from supertopic.kernels.lanes import (
    LANES,
    count_up_to,
    exp,
    exp_near_0,
    larger,
    largest,
    load,
    one_where,
    prefetch,
    running_sum,
    splat,
    store,
    total,
    zero_where,
)

TINY, HUGE = np.float32(1e-30), np.float32(1e30)  # a total weight outside is taken again in float64
# A move multiplies the factors by at most exp(|G[j]| + |G[k]|). They are made anew once that may have come to exp(16),
# or after 64 moves; where one row alone is steeper than exp(20), the token is drawn in float64.
NEAR_0, DRIFT, STEEP = np.float32(0.25), np.float32(16), np.float32(20)
NEGLIGIBLE = 80.0  # exp(-80) is
AHEAD, LINE = 6, 16  # the topics of a word are asked for six tokens ahead, a cache line of 16 numbers at a time
ZERO, ONE = np.float32(0), np.float32(1)
N, NUMBER, SCORE, FACTOR, READY, CUMULATED, LAST = range(7)  # rows of a document's state; NUMBER is 0, 1, 2, ...
G, OUT, BACK, ROWS = range(4)  # rows of a topic that the document visits: G[j], exp(G[j]), exp(-G[j])


@part
def start_score(state, width, n_tokens, eta, quadratic, d, linear, square):
    """score_k = sum_r eta_rk (kappa_r - lam_r omega_r) / N - lam_r eta_rk**2 / (2 N**2), all tokens in.

    Leaves 2 x the factor of eta_rk**2, lam_r / N**2, in `square` (R,).
    """
    for r in range(len(square)):
        omega = splat(ZERO)
        for b in range(0, width, LANES):
            omega = omega + load(state, b) * load(eta, r * width + b)
        lam = quadratic.lam[d, r]
        linear[r] = (quadratic.kappa[d, r] - lam * total(omega) / n_tokens) / n_tokens
        square[r] = lam / (n_tokens * n_tokens)
    half = splat(np.float32(0.5))
    for b in range(0, width, LANES):
        score = splat(ZERO)
        for r in range(len(square)):
            e = load(eta, r * width + b)
            score = score + e * (splat(linear[r]) - half * splat(square[r]) * e)
        store(state, SCORE * width + b, score)


@part
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


@part
def make_rows(rows, width, j, eta, square, slope):
    """G[j] = sum_r lam_r eta_rj eta_r / N**2, what a token out of topic j adds to the score, and its exponentials.

    square (R,) holds lam / N**2. Returns the largest |G[j]|.
    """
    first = ROWS * j * width
    for r in range(len(square)):
        slope[r] = square[r] * eta[r * width + j]
    for b in range(0, width, LANES):
        g = splat(ZERO)
        for r in range(len(square)):
            g = g + splat(slope[r]) * load(eta, r * width + b)
        store(rows, first + b, g)
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
            out = exp(g)
            store(rows, b + OUT * width, out)
            store(rows, b + BACK * width, splat(ONE) / out)
    return peak


@part
def move(state, width, rows, j, k, alpha, inverse, labelled):
    """Bring a document's state up to date with a token that went from topic j to topic k.

    Whole vectors are stored: a vector load soon after the store of a single one of its numbers would have to wait.
    """
    here, there = splat(np.float32(j)), splat(np.float32(k))
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
        store(state, READY * width + b, (n + load(alpha, b)) * factor * load(inverse, b))


@part
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


@part
def find_carefully(state, width, rows, n_topics, word, j, topics, labelled, u, weight):
    """The topic of a token whose weights do not fit into float32: in float64, relative to the largest score.

    weight (K,) is for its own use.
    """
    first, row = word * width, (ROWS * j + G) * width
    top, total_weight = -np.inf, 0.0
    for k in range(n_topics):
        weight[k] = np.float64(state[SCORE * width + k]) + rows[row + k] if labelled else 0.0
        top = weight[k] if weight[k] > top else top
    for k in range(n_topics):
        own = 1.0 if k == j else 0.0
        factor = math.exp(weight[k] - top) if weight[k] > top - NEGLIGIBLE else 0.0
        factor *= state[k] - own + np.float64(topics.alpha[k])
        if len(topics.phi):
            weight[k] = factor * topics.phi[first + k]
        else:
            weight[k] = factor * (topics.word_topic[first + k] - own + topics.beta) * topics.inverse[k]
        total_weight += weight[k]
    if not len(topics.phi):  # its own token out of its topic's mass, too
        total_weight -= weight[j]
        weight[j] /= 1.0 - topics.inverse[j]
        total_weight += weight[j]
    rest = np.float64(u) * total_weight - weight[j]
    if rest < 0.0:
        return j
    weight[j] = 0.0
    for lane in range(LANES):
        for k in range(lane, n_topics, LANES):
            rest -= weight[k]
            if rest < 0.0:
                return k
    return j


@part
def number_lanes(state, width):
    """0, 1, 2, ... in the state's row of numbers."""
    for k in range(width):
        state[NUMBER * width + k] = k


@inlined
def count_document(state, width, z, start, stop):
    """The tokens of each topic, into the state's row n."""
    for b in range(0, width, LANES):
        store(state, b, splat(ZERO))
    for i in range(start, stop):
        state[z[i]] += ONE


@inlined
def has_response(quadratic, d):
    """Whether anything is known of the document's response."""
    known = False
    for r in range(quadratic.lam.shape[1]):
        known |= quadratic.lam[d, r] != 0.0 or quadratic.kappa[d, r] != 0.0
    return known


@inlined
def weigh_others(state, width, rows, out, phi, word_topic, beta, word, soon, j):
    """The weights of all topics but j, lane by lane, with their running sums in the state; asks for the row `soon`.

    rows[out:] holds exp(G[j]). The counts of other topics do not contain the token, so nothing is taken out of them.
    """
    sums, here, smoothing = splat(ZERO), splat(np.float32(j)), splat(beta)
    if len(phi):
        for b in range(0, width, LANES):
            weight = load(state, READY * width + b) * load(phi, word * width + b)
            others = zero_where(load(state, NUMBER * width + b), here, weight * load(rows, out + b))
            sums = sums + others
            store(state, CUMULATED * width + b, sums)
        for b in range(0, width, LINE):
            prefetch(phi, soon + b)
    else:
        for b in range(0, width, LANES):
            count = load(word_topic, word * width + b) + smoothing
            weight = load(state, READY * width + b) * count
            others = zero_where(load(state, NUMBER * width + b), here, weight * load(rows, out + b))
            sums = sums + others
            store(state, CUMULATED * width + b, sums)
        for b in range(0, width, LINE):
            prefetch(word_topic, soon + b)
    return sums


@inlined
def weigh_own(state, width, rows, out, phi, word_topic, inverse, alpha, beta, word, j):
    """The weight of the token's own topic j, the token itself taken out of the document, the word and the topic."""
    if len(phi):
        liking = phi[word * width + j]
    else:
        liking = (np.float32(word_topic[word * width + j]) - ONE + beta) * (inverse[j] / (ONE - inverse[j]))
    return liking * ((state[j] - ONE + alpha[j]) * state[FACTOR * width + j] * rows[out + j])


@inlined
def follow(word_topic, mass, inverse, state, width, word, j, k):
    """Bring live counts up to date with a token that went from topic j to topic k."""
    one = splat(ONE)
    for t, change in ((j, -1), (k, 1)):
        word_topic[word * width + t] += change
        mass[t] += change
        b, new = t - t % LANES, splat(np.float32(1.0 / mass[t]))
        there = one_where(load(state, NUMBER * width + b), splat(np.float32(t)))
        store(inverse, b, load(inverse, b) * (one - there) + new * there)


def sweep(
    tokens: Any, z: np.ndarray, topics: Any, weights: Any, quadratic: Any, streams: np.ndarray, n_sweeps: int,
    burn_in: int, summed: np.ndarray, omega: np.ndarray, found: Found = NOWHERE,
) -> None:  # fmt: skip
    """Draw every z anew, n_sweeps times; add the counts after burn_in to `summed`, put eta zbar into `omega`.

    Where `summed` has room for it, each sweep after burn_in has counts of its own there. topics.alpha is padded with
    zeros, so that a padding topic has weight 0. streams holds one random stream a document. What has changed is put
    into `found`.
    """
    width, n_topics, n_columns = len(topics.alpha), len(topics.mass), len(weights.exact)
    rows = np.empty((ROWS * n_topics * (n_columns > 0) + 1) * width, np.float32)
    rows[-width:] = 1.0  # the last row stays 1, for documents without a label
    state, made = np.zeros(LAST * width + LANES, np.float32), np.zeros(n_topics, np.int64)
    peak, columns = np.zeros(n_topics, np.float32), np.zeros((2, n_columns), np.float32)
    own = (state, rows, made, peak, columns[0], columns[1], np.empty(n_topics))
    sweep_documents(tokens, z, topics, weights, quadratic, streams, n_sweeps, burn_in, summed, omega, found, own)


@kernel
def sweep_documents(tokens, z, topics, weights, quadratic, streams, n_sweeps, burn_in, summed, omega, found, own):
    """The sweeps, and then the changes: one call, since every return to Python waits for the interpreter.

    `own` holds arrays for their own use, since code that allocates takes long to compile.
    """
    # made: the last document, from 1, for which the rows of a topic were made; peak: the largest |G[j]| of these rows;
    # linear and square: of the document, per column
    state, rows, made, peak, linear, square, careful = own
    width, n_topics, n_columns = len(topics.alpha), len(topics.mass), len(weights.exact)
    eta, alpha, beta, inverse = weights.eta, topics.alpha, np.float32(topics.beta), topics.inverse
    phi, word_topic = topics.phi, topics.word_topic
    ones = len(rows) - width
    final, n_docs = len(tokens.word) - 1, len(tokens.doc_start) - 1
    apart = n_docs * width if len(summed) > n_docs * width else 0  # between the counts of two sweeps
    number_lanes(state, width)

    for d in range(n_docs):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        n_tokens = stop - start
        if n_tokens == 0:
            continue
        count_document(state, width, z, start, stop)
        labelled, spent = has_response(quadratic, d), ZERO
        if labelled:
            start_score(state, width, n_tokens, eta, quadratic, d, linear, square)
        make_ready(state, width, alpha, inverse, labelled)

        for s in range(n_sweeps):
            for i in range(start, stop):
                word, j = np.intp(tokens.word[i]), np.intp(z[i])
                soon = np.intp(tokens.word[i + AHEAD if i + AHEAD < final else final]) * width
                out = (ROWS * j + OUT) * width if labelled else ones
                if labelled and made[j] <= d:
                    made[j] = d + 1
                    peak[j] = make_rows(rows, width, j, eta, square, linear)
                sums = weigh_others(state, width, rows, out, phi, word_topic, beta, word, soon, j)
                stays = weigh_own(state, width, rows, out, phi, word_topic, inverse, alpha, beta, word, j)
                mass = total(sums) + stays
                u = uniform32(streams[d], s * n_tokens + i - start)
                fits = TINY < mass < HUGE
                if fits and not (labelled and peak[j] > STEEP):
                    rest = u * mass - stays
                    if rest < ZERO:
                        continue
                    k = find(state, width, sums, rest, n_topics, j)
                else:
                    k = find_carefully(state, width, rows, n_topics, word, j, topics, labelled, u, careful)
                    spent = spent if fits else DRIFT  # what overflowed may have spoilt the factors: make them anew
                if k == j and spent < DRIFT:
                    continue
                z[i] = k
                if topics.live:
                    follow(word_topic, topics.mass, inverse, state, width, word, j, k)
                if labelled and made[k] <= d:
                    made[k] = d + 1
                    peak[k] = make_rows(rows, width, k, eta, square, linear)
                move(state, width, rows, j, k, alpha, inverse, labelled)
                spent += peak[j] + peak[k] + NEAR_0
                if spent > DRIFT:
                    spent = ZERO
                    make_ready(state, width, alpha, inverse, labelled)
            if s >= burn_in:
                place = (s - burn_in) * apart + d * width
                for b in range(0, width, LANES):
                    store(summed, place + b, load(summed, place + b) + load(state, b))

        for k in range(n_topics):
            if state[k] > 0:
                for r in range(n_columns):
                    omega[d, r] += weights.exact[r, k] * (np.float64(state[k]) / n_tokens)
    find_changes(tokens.word, z, found)
