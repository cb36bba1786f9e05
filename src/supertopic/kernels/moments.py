"""omega = eta x and the sums that a draw of eta needs, where x is a document's zbar and then its covariates.

Plain loops over the few topics that a document has: the bits depend on no BLAS, on no thread and on no neighbour.
A symmetric matrix is a packed lower triangle: row j, column k <= j is at j (j + 1) / 2 + k.
"""

import math

import numpy as np

from supertopic.kernels.compiled import brief, inlined, kernel, part
from supertopic.kernels.draws import derive, normal


@kernel
def omegas(x, eta):
    """omega (n_docs, R) of documents x (n_docs, K + P) under one draw of eta (R, K + P)."""
    omega = np.zeros((len(x), len(eta)))
    for d in range(len(x)):
        for r in range(len(eta)):
            for k in range(x.shape[1]):
                omega[d, r] += eta[r, k] * x[d, k]
    return omega


@kernel
def drawn_omegas(counts, lengths, eta, n_pairs):
    """omega (n_pairs, n_docs, R) of pairs of a draw of counts (n, n_docs, K or more) and one of eta (m, R, K).

    The i-th pair is of the draws i modulo n and i modulo m, so that all of both are used.
    """
    omega = np.zeros((n_pairs, len(lengths), eta.shape[1]))
    for i in range(n_pairs):
        here, there = i % len(counts), i % len(eta)
        for d in range(len(lengths)):
            for k in range(eta.shape[2]):
                if counts[here, d, k] != 0.0:
                    share = counts[here, d, k] / lengths[d]
                    for r in range(eta.shape[1]):
                        omega[i, d, r] += eta[there, r, k] * share
    return omega


@kernel
def row_omegas(rows, covariates, eta):
    """The same for sparse rows of shares, with covariates (n_docs, P) beside them."""
    n_topics = eta.shape[1] - covariates.shape[1]
    omega = np.zeros((len(covariates), len(eta)))
    for d in range(len(covariates)):
        for r in range(len(eta)):
            for i in range(rows.start[d], rows.start[d + 1]):
                omega[d, r] += eta[r, rows.topic[i]] * rows.share[i]
            for p in range(covariates.shape[1]):
                omega[d, r] += eta[r, n_topics + p] * covariates[d, p]
    return omega


@kernel
def z_omegas(doc_start, z, covariates, eta):
    """The same for documents whose zbar is that of their z."""
    n_topics = eta.shape[1] - covariates.shape[1]
    omega, n = np.zeros((len(covariates), len(eta))), np.zeros(n_topics)
    for d in range(len(covariates)):
        for k in range(n_topics):
            n[k] = 0.0
        for i in range(doc_start[d], doc_start[d + 1]):
            n[z[i]] += 1.0
        for r in range(len(eta)):
            for k in range(n_topics):
                if n[k] > 0.0:
                    omega[d, r] += eta[r, k] * (n[k] / (doc_start[d + 1] - doc_start[d]))
            for p in range(covariates.shape[1]):
                omega[d, r] += eta[r, n_topics + p] * covariates[d, p]
    return omega


@inlined
def add_document(x, seen, n_seen, covariates, kappa, lam, d, starts, precision, shift):
    """Add kappa_r x to the shift and lam_r x x' to the precision; x (K + P,) is 0 outside `seen`, and all 0 again.

    starts (K + P,) says where the rows of the packed triangle start.
    """
    width, n_columns = shift.shape
    n_topics = width - covariates.shape[1]
    for p in range(n_topics, width):
        if covariates[d, p - n_topics] != 0.0:  # of many groups a document has one
            x[p] = covariates[d, p - n_topics]
            seen[n_seen] = p
            n_seen += 1
    for a in range(n_seen):
        j = seen[a]
        for r in range(n_columns):
            shift[j, r] += x[j] * kappa[d, r]
        for b in range(a + 1):
            k = seen[b]
            product, place = x[j] * x[k], starts[max(j, k)] + min(j, k)
            for r in range(n_columns):
                precision[place, r] += product * lam[d, r]
    for a in range(n_seen):
        x[seen[a]] = 0.0


@kernel
def add_moments(doc_start, z, covariates, quadratic, precision, shift):
    """The sums over documents whose zbar is that of their z."""
    kappa, lam = quadratic.kappa, quadratic.lam
    x, seen = np.zeros(len(shift)), np.empty(len(shift), np.intp)
    starts = np.array([j * (j + 1) // 2 for j in range(len(shift))])
    for d in range(len(doc_start) - 1):
        n_seen = 0
        for i in range(doc_start[d], doc_start[d + 1]):
            k = np.intp(z[i])
            if x[k] == 0.0:
                seen[n_seen] = k
                n_seen += 1
            x[k] += 1.0
        for a in range(n_seen):
            x[seen[a]] /= doc_start[d + 1] - doc_start[d]
        add_document(x, seen, n_seen, covariates, kappa, lam, d, starts, precision, shift)


@kernel
def add_row_moments(rows, covariates, quadratic, precision, shift):
    """The sums over documents whose zbar is a sparse row of shares."""
    kappa, lam = quadratic.kappa, quadratic.lam
    x, seen = np.zeros(len(shift)), np.empty(len(shift), np.intp)
    starts = np.array([j * (j + 1) // 2 for j in range(len(shift))])
    for d in range(len(covariates)):
        n_seen = 0
        for i in range(rows.start[d], rows.start[d + 1]):
            seen[n_seen] = rows.topic[i]
            x[seen[n_seen]] = rows.share[i]
            n_seen += 1
        add_document(x, seen, n_seen, covariates, kappa, lam, d, starts, precision, shift)


@brief
def affine(constant, slope, lam):
    """constant + slope lam."""
    out = np.empty_like(lam)
    for d in range(len(lam)):
        for r in range(lam.shape[1]):
            out[d, r] = constant[d, r] + slope[d, r] * lam[d, r]
    return out


@kernel
def unpack(packed, r, width):
    """The matrix of column r, of which the upper triangle is left 0."""
    matrix = np.zeros((width, width))
    for j in range(width):
        for k in range(j + 1):
            matrix[j, k] = packed[j * (j + 1) // 2 + k, r]
    return matrix


@kernel
def sparse_rows(counts, n_topics, lengths):
    """Counts (n_docs, K or more) divided by the documents' lengths, as what is not 0: start, topic and share."""
    start = np.zeros(len(counts) + 1, np.int64)
    for d in range(len(counts)):
        start[d + 1] = start[d]
        for k in range(n_topics):
            start[d + 1] += counts[d, k] != 0
    topic, share, i = np.empty(start[-1], np.int32), np.empty(start[-1]), 0
    for d in range(len(counts)):
        for k in range(n_topics):
            if counts[d, k] != 0:
                topic[i], share[i] = k, counts[d, k] / lengths[d]
                i += 1
    return start, topic, share


@kernel
def z_rows(doc_start, z, covariates, n_topics):
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
def beside_rows(rows, covariates, n_topics):
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
