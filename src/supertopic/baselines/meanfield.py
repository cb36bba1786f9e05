"""Mean field for one corpus: the E-step of every document, and the bound of a softmax response with its gradient."""

import math

import numpy as np
from numba import njit

from supertopic.kernels.compiled import kernel, part


@part
def digamma(x):
    """By recurrence up to 6, then the asymptotic series: right to 1e-12."""
    shift = 0.0
    while x < 6.0:
        shift -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f * (1.0 / 240 - f * (1.0 / 132 - f * 691.0 / 32760)))))
    return shift + math.log(x) - 0.5 / x - series


@part
def expected_log(gamma, out):
    """E log theta under Dir(gamma)."""
    whole = digamma(gamma.sum())
    for k in range(len(gamma)):
        out[k] = digamma(gamma[k]) - whole


@part
def words_bound(phi, gamma, log_theta, log_topics, word, alpha):
    """LDA's bound of one document."""
    n_topics = len(gamma)
    value = math.lgamma(alpha * n_topics) - n_topics * math.lgamma(alpha) - math.lgamma(gamma.sum())
    for k in range(n_topics):
        value += math.lgamma(gamma[k]) + (alpha - gamma[k]) * log_theta[k]
    for n in range(len(phi)):
        for k in range(n_topics):
            if phi[n, k] > 0.0:
                value += phi[n, k] * (log_theta[k] + log_topics[word[n], k] - math.log(phi[n, k]))
    return value


@part
def set_phi(row, log_weight):
    """row = softmax(log_weight)."""
    top, total = log_weight.max(), 0.0
    for k in range(len(row)):
        row[k] = math.exp(log_weight[k] - top)
        total += row[k]
    for k in range(len(row)):
        row[k] = max(row[k] / total, 1e-100)


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})  # in any order: vectors, twice as fast
def product(phi, n, scaled, r):
    """phi_n . scaled_r"""
    value = 0.0
    for k in range(phi.shape[1]):
        value += phi[n, k] * scaled[r, k]
    return value


@part
def softmax_parts(phi, scaled, log_p):
    """log_p_r = sum_n log(phi_n . exp(eta_r / N)), the terms of the softmax's bound; scaled is exp(eta / N)."""
    for r in range(len(scaled)):
        log_p[r] = 0.0
        for n in range(len(phi)):
            log_p[r] += math.log(product(phi, n, scaled, r))


@part
def log_sum(values):
    top, total = values.max(), 0.0
    for value in values:
        total += math.exp(value - top)
    return top + math.log(total)


@part
def to_shares(log_p, p):
    """p = softmax(log_p)."""
    whole = log_sum(log_p)
    for r in range(len(p)):
        p[r] = math.exp(log_p[r] - whole)


@kernel
def infer(word, doc_start, log_topics, alpha, pull, eta, y, c, n_inner, phi, gamma, bounds):
    """The E-step of every document, from the phi that is there; bounds (D,) are LDA's part plus the softmax's.

    pull (D, K) is what a linear response adds to log phi, and eta (R, K), y, c are a softmax response's; either may be
    empty. gamma (D, K) is set, phi (n_tokens, K) updated in place.
    """
    n_topics, n_classes = gamma.shape[1], len(eta)
    log_theta, log_weight = np.empty(n_topics), np.empty(n_topics)
    log_p, p = np.empty(n_classes), np.empty(n_classes)
    for d in range(len(doc_start) - 1):
        start, stop = doc_start[d], doc_start[d + 1]
        n_tokens = stop - start
        own, words = phi[start:stop], word[start:stop]
        gamma[d] = alpha
        for n in range(n_tokens):
            gamma[d] += own[n]
        bounds[d] = 0.0
        if n_tokens == 0:
            continue
        linear = np.zeros(n_topics)
        if len(pull):
            linear += pull[d] / n_tokens
        if n_classes:
            linear += c * eta[y[d]] / n_tokens
        scaled = np.exp(eta / n_tokens)
        expected_log(gamma[d], log_theta)
        for _ in range(n_inner):
            before = gamma[d].copy()
            if n_classes:  # once a sweep from scratch; within it p follows each token
                softmax_parts(own, scaled, log_p)
                to_shares(log_p, p)
            for n in range(n_tokens):
                for k in range(n_topics):
                    log_weight[k] = log_theta[k] + log_topics[words[n], k] + linear[k]
                if n_classes:  # the tangent of -log sum_r p_r, which is linear in this token's phi
                    whole = p.sum()
                    for r in range(n_classes):
                        p[r] /= whole * product(own, n, scaled, r)
                        slope = c * p[r]
                        for k in range(n_topics):
                            log_weight[k] -= slope * scaled[r, k]
                set_phi(own[n], log_weight)
                for r in range(n_classes):
                    p[r] *= product(own, n, scaled, r)
            gamma[d] = alpha
            for n in range(n_tokens):
                gamma[d] += own[n]
            expected_log(gamma[d], log_theta)
            if np.abs(gamma[d] - before).mean() < 1e-4:
                break
        bounds[d] = words_bound(own, gamma[d], log_theta, log_topics, words, alpha)
        if n_classes:
            softmax_parts(own, scaled, log_p)
            bounds[d] -= c * log_sum(log_p)
            for k in range(n_topics):
                bounds[d] += c * eta[y[d], k] * (gamma[d, k] - alpha) / n_tokens


@kernel
def softmax_objective(doc_start, phi, y, eta, gradient):
    """sum_d eta_y . zbar - log sum_r p_r, and its gradient in eta, put into `gradient` (R, K)."""
    value, n_classes = 0.0, len(eta)
    gradient[:] = 0.0
    log_p, p = np.empty(n_classes), np.empty(n_classes)
    sums = np.empty(phi.shape[1])
    for d in range(len(doc_start) - 1):
        own = phi[doc_start[d] : doc_start[d + 1]]
        n_tokens = len(own)
        if n_tokens == 0:
            continue
        scaled = np.exp(eta / n_tokens)
        softmax_parts(own, scaled, log_p)
        value -= log_sum(log_p)
        to_shares(log_p, p)
        for n in range(n_tokens):
            for k in range(own.shape[1]):
                value += eta[y[d], k] * own[n, k] / n_tokens
                gradient[y[d], k] += own[n, k] / n_tokens
        for r in range(n_classes):
            sums[:] = 0.0
            for n in range(n_tokens):
                share = p[r] / (product(own, n, scaled, r) * n_tokens)
                for k in range(own.shape[1]):
                    sums[k] += share * own[n, k]
            for k in range(own.shape[1]):
                gradient[r, k] -= sums[k] * scaled[r, k]
    return value


@kernel
def add_words(word, phi, counts):
    for i in range(len(word)):
        counts[word[i]] += phi[i]
