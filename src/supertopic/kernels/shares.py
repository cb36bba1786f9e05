"""Topic shares of documents that each have a prior of their own, under fixed topics."""

import math

import numpy as np

from supertopic.kernels.compiled import kernel
from supertopic.kernels.draws import derive, log_gamma, uniform


@kernel
def draw_shares(tokens, z, phi, prior, key, first, n_sweeps, counts, shares):
    """Sweep over the topics z of the tokens, with p(k) ~ (n_dk + prior_dk) phi_wk, and draw Dirichlet(prior + n).

    phi is (V, K) and prior (n_docs, K). Leaves the tokens of each topic in `counts` and the draw in `shares`, both
    (n_docs, K). The numbers of a document depend on its place in the corpus, first + d, and not on its neighbours.
    """
    n_topics = phi.shape[1]
    cumulated = np.empty(n_topics)
    for d in range(len(prior)):
        stream, start, end = derive(key, first + d), tokens.doc_start[d], tokens.doc_start[d + 1]
        n = counts[d]
        n[:] = 0.0
        for i in range(start, end):
            n[z[i]] += 1.0
        for s in range(n_sweeps):
            for i in range(start, end):
                row = phi[tokens.word[i]]
                n[z[i]] -= 1.0
                total = 0.0
                for k in range(n_topics):
                    total += (n[k] + prior[d, k]) * row[k]
                    cumulated[k] = total
                u, k = uniform(stream, s * (end - start) + i - start) * total, 0
                while k < n_topics - 1 and cumulated[k] <= u:
                    k += 1
                z[i] = k
                n[k] += 1.0
        below, top, total = derive(stream, 0), -math.inf, 0.0
        for k in range(n_topics):
            shares[d, k] = log_gamma(prior[d, k] + n[k], derive(below, k))  # its exponential may underflow
            top = max(top, shares[d, k])
        for k in range(n_topics):
            shares[d, k] = math.exp(shares[d, k] - top)
            total += shares[d, k]
        for k in range(n_topics):
            shares[d, k] /= total
