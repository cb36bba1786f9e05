"""The topic sampler for many topics: its time for a token depends on the topics of the document, not on K."""

import math

import numpy as np

from supertopic.draws import kernel, part, uniform32
from supertopic.lanes import LANES, load, prefetch, splat, store, total, zero_where
from supertopic.sweep import AHEAD, CUMULATED, LAST, NUMBER, ONE, ZERO, find


@part
def find_smooth(state, width, topics, word, j, n_topics, alpha, u):
    """A topic other than j in proportion to alpha_k phi_wk, all K weighed."""
    sums, here, beta = splat(ZERO), splat(np.float32(j)), splat(np.float32(topics.beta))
    for b in range(0, width, LANES):
        weight = load(alpha, b) * load(topics.inverse, b)
        if len(topics.phi):
            weight = weight * load(topics.phi, word * width + b)
        else:
            weight = weight * (load(topics.word_topic, word * width + b) + beta)
        sums = sums + zero_where(load(state, NUMBER * width + b), here, weight)
        store(state, CUMULATED * width + b, sums)
    return find(state, width, sums, u * total(sums), n_topics, j)


@kernel
def sweep_sparse(tokens, z, topics, weights, quadratic, alpha, streams, kept, omega):
    """Draw every z anew in a time that depends on the topics of its document, not on K.

    (n_k + alpha_k) phi_wk is a sum over the document's few topics, n_k phi_wk, plus one over all topics that is known
    for each word, `topics.smooth`, and drawn from only now and then. A topic is drawn from that, LDA's conditional; if
    it is another one, it is accepted with the response's factor (Metropolis and Hastings). Topics are fixed, or those
    of the last sweep. Arguments are as for `sweep`.
    """
    width, n_topics, n_columns = len(alpha), len(topics.mass), len(weights.exact)
    phi, word_topic, smooth, beta = topics.phi, topics.word_topic, topics.smooth, np.float32(topics.beta)
    inverse, inverse_without = topics.inverse, (1.0 / (topics.mass - 1.0)).astype(np.float32)
    present, place = np.empty(n_topics, np.int32), np.full(n_topics, -1)  # the document's topics, and where they are
    n, scaled = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)  # their tokens, and n / mass
    cumulated = np.empty(n_topics, np.float32)  # running sums of their weights
    omega_n = np.zeros(n_columns)  # omega N
    eta = weights.exact.T.copy()  # (K, R)
    state = np.zeros(LAST * width + LANES, np.float32)
    for k in range(width):
        state[NUMBER * width + k] = k
    fixed, final = len(phi) > 0, len(tokens.word) - 1

    for d in range(len(tokens.doc_start) - 1):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        n_tokens, n_present = stop - start, 0
        for i in range(start, stop):
            k = np.intp(z[i])
            if place[k] < 0:
                present[n_present], place[k], n[n_present] = k, n_present, ZERO
                n_present += 1
            n[place[k]] += ONE
        omega_n[:] = 0.0
        for m in range(n_present):
            scaled[m] = n[m] * inverse[present[m]]
            for r in range(n_columns):
                omega_n[r] += n[m] * eta[present[m], r]

        for i in range(start, stop):
            word, j = np.intp(tokens.word[i]), np.intp(z[i])
            first, here = word * width, place[j]
            soon = np.intp(tokens.word[min(i + AHEAD, final)]) * width
            mine, scaled[here], others = scaled[here], ZERO, ZERO
            for m in range(n_present):
                k = np.intp(present[m])
                if fixed:
                    others += scaled[m] * phi[first + k]
                    prefetch(phi, soon + k)
                else:
                    others += scaled[m] * (np.float32(word_topic[first + k]) + beta)
                    prefetch(word_topic, soon + k)
                cumulated[m] = others
            scaled[here] = mine
            if fixed:
                liking = phi[first + j]
                own = liking
            else:
                count = np.float32(word_topic[first + j])
                liking, own = (count + beta) * inverse[j], (count - ONE + beta) * inverse_without[j]
            stays = (n[here] - ONE + alpha[j]) * own
            rare = max(np.float32(smooth[word]) - alpha[j] * liking, ZERO)
            u = uniform32(streams[d], 3 * (i - start))
            rest = u * (stays + others + rare) - stays
            if rest < ZERO:
                continue
            if rest < others:
                m = 0
                while cumulated[m] <= rest:
                    m += 1
                k = np.intp(present[m])
            else:
                u = uniform32(streams[d], 3 * (i - start) + 1)
                k = find_smooth(state, width, topics, word, j, n_topics, alpha, u)
            exponent = 0.0
            for r in range(n_columns):
                middle = omega_n[r] + 0.5 * (eta[k, r] - eta[j, r])
                slope = (quadratic.kappa[d, r] - quadratic.lam[d, r] * middle / n_tokens) / n_tokens
                exponent += (eta[k, r] - eta[j, r]) * slope
            if k == j or (exponent < 0.0 and uniform32(streams[d], 3 * (i - start) + 2) > math.exp(exponent)):
                continue
            z[i] = k
            n[here] -= ONE
            scaled[here] = n[here] * inverse[j]
            if n[here] == ZERO:  # the last topic of the list takes its place
                n_present -= 1
                present[here], n[here], scaled[here] = present[n_present], n[n_present], scaled[n_present]
                place[present[here]] = here
                place[j] = -1
            if place[k] < 0:
                present[n_present], place[k], n[n_present] = k, n_present, ZERO
                n_present += 1
            n[place[k]] += ONE
            scaled[place[k]] = n[place[k]] * inverse[k]
            for r in range(n_columns):
                omega_n[r] += eta[k, r] - eta[j, r]

        for m in range(n_present):
            k = np.intp(present[m])
            for r in range(n_columns):
                omega[d, r] += eta[k, r] * (np.float64(n[m]) / n_tokens)
            if len(kept):
                kept[d * width + k] += n[m]
            place[k] = -1
