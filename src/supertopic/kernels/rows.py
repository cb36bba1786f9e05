"""Sums over documents as sparse rows x of topic shares and covariates: what a draw of very many weights needs.

See `sampling.matrix_free`: nothing here is as large as all pairs of weights.
"""

import math

import numpy as np

from supertopic.kernels.compiled import kernel, part
from supertopic.kernels.draws import derive, normal


@kernel
def rows_of_z(doc_start, z, covariates, n_topics):
    """x of documents whose zbar is that of their z, as what is not 0: start, place and value. Covariates come last."""
    n_docs, n_covariates = covariates.shape
    n, start, n_seen = np.zeros(n_topics), np.zeros(n_docs + 1, np.int64), 0
    for d in range(n_docs):  # a document's topics are at most its tokens
        n_seen += min(doc_start[d + 1] - doc_start[d], n_topics)
        for p in range(n_covariates):
            n_seen += covariates[d, p] != 0.0
    place, value, first = np.empty(n_seen, np.int32), np.empty(n_seen), 0
    for d in range(n_docs):
        last = first
        for i in range(doc_start[d], doc_start[d + 1]):
            k = np.intp(z[i])
            if n[k] == 0.0:
                place[last] = k
                last += 1
            n[k] += 1.0
        for i in range(first, last):
            value[i] = n[place[i]] / (doc_start[d + 1] - doc_start[d])
            n[place[i]] = 0.0
        first = add_beside(covariates, d, n_topics, place, value, last)
        start[d + 1] = first
    return start, place[:first].copy(), value[:first].copy()


@kernel
def rows_of_shares(rows, covariates, n_topics):
    """Sparse rows of shares with what is not 0 of the covariates behind them: start, place and value."""
    n_docs, n_covariates = covariates.shape
    start, n_beside = np.zeros(n_docs + 1, np.int64), 0
    for d in range(n_docs):
        for p in range(n_covariates):
            n_beside += covariates[d, p] != 0.0
    place, value = np.empty(rows.start[n_docs] + n_beside, np.int32), np.empty(rows.start[n_docs] + n_beside)
    last = 0
    for d in range(n_docs):
        for i in range(rows.start[d], rows.start[d + 1]):
            place[last], value[last] = rows.topic[i], rows.share[i]
            last += 1
        last = add_beside(covariates, d, n_topics, place, value, last)
        start[d + 1] = last
    return start, place, value


@part
def add_beside(covariates, d, n_topics, place, value, last):
    """Put a document's covariates that are not 0 at `last` and behind it; returns where they end."""
    for p in range(covariates.shape[1]):
        if covariates[d, p] != 0.0:
            place[last], value[last] = n_topics + p, covariates[d, p]
            last += 1
    return last


@kernel
def add_diagonals(x, quadratic, precision, shift):
    """Add kappa_r x to the shift and lam_r times the squares of x to the diagonal of the precision."""
    kappa, lam = quadratic.kappa, quadratic.lam
    for d in range(len(lam)):
        for i in range(x.start[d], x.start[d + 1]):
            j, value = x.topic[i], x.share[i]
            for r in range(lam.shape[1]):
                precision[j, r] += value * value * lam[d, r]
                shift[j, r] += value * kappa[d, r]


@kernel
def add_products(x, lam, columns, v, total):
    """Add lam_r x x'v_r of all documents to the total, for some columns r: v and total are (K + P, m)."""
    inner = np.empty(len(columns))
    for d in range(len(lam)):
        inner[:] = 0.0
        for i in range(x.start[d], x.start[d + 1]):
            for c in range(len(columns)):
                inner[c] += x.share[i] * v[x.topic[i], c]
        for c in range(len(columns)):
            inner[c] *= lam[d, columns[c]]
        for i in range(x.start[d], x.start[d + 1]):
            for c in range(len(columns)):
                total[x.topic[i], c] += x.share[i] * inner[c]


@kernel
def add_noise(x, lam, key, first, total):
    """Add sqrt(lam_r) e_r x of all documents to the total (K + P, R); e_r is a document's own normal."""
    noise = np.empty(lam.shape[1])
    for d in range(len(lam)):
        stream = derive(key, first + d)
        for r in range(lam.shape[1]):
            noise[r] = math.sqrt(lam[d, r]) * normal(stream, r) if lam[d, r] > 0.0 else 0.0
        for i in range(x.start[d], x.start[d + 1]):
            for r in range(lam.shape[1]):
                total[x.topic[i], r] += x.share[i] * noise[r]
