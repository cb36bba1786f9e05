"""omega = eta x and the sums that a draw of eta needs, where x is a document's zbar and then its covariates.

Plain loops over the few topics that a document has: the bits depend on no BLAS, on no thread and on no neighbour.
A symmetric matrix is a packed lower triangle: row j, column k <= j is at j (j + 1) / 2 + k.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from supertopic.kernels.compiled import kernel


def omegas(x: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """omega (n_docs, R) of documents x (n_docs, K + P) under one draw of eta (R, K + P)."""
    omega = np.zeros((len(x), len(eta)))
    add_omegas(x, eta, omega)
    return omega


@kernel
def add_omegas(x, eta, omega):
    """Add omega of documents x to omega."""
    for d in range(len(x)):
        for r in range(len(eta)):
            for k in range(x.shape[1]):
                omega[d, r] += eta[r, k] * x[d, k]


def drawn_omegas(counts: np.ndarray, lengths: np.ndarray, eta: np.ndarray, n_pairs: int) -> np.ndarray:
    """omega (n_pairs, n_docs, R) of pairs of a draw of counts (n, n_docs, K or more) and one of eta (m, R, K).

    The i-th pair is of the draws i modulo n and i modulo m, so that all of both are used.
    """
    omega = np.zeros((n_pairs, len(lengths), eta.shape[1]))
    add_drawn_omegas(counts, lengths, eta, omega)
    return omega


@kernel
def add_drawn_omegas(counts, lengths, eta, omega):
    """Add omega of pairs of draws to omega."""
    for i in range(len(omega)):
        here, there = i % len(counts), i % len(eta)
        for d in range(len(lengths)):
            for k in range(eta.shape[2]):
                if counts[here, d, k] != 0.0:
                    share = counts[here, d, k] / lengths[d]
                    for r in range(eta.shape[1]):
                        omega[i, d, r] += eta[there, r, k] * share


def sparse_rows(counts: np.ndarray, n_topics: int, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
    """Counts (n_docs, K or more) divided by the documents' lengths, as what is not 0: start, topic and share."""
    rows = sparse.csr_array(counts[:, :n_topics])
    return divided(rows, lengths)


def z_rows(doc_start: np.ndarray, z: np.ndarray, n_topics: int) -> tuple[np.ndarray, ...]:
    """zbar of documents, as what is not 0: start, topic and share."""
    n_docs = len(doc_start) - 1
    rows = sparse.csr_array((np.ones(len(z)), z.astype(np.int64), doc_start), (n_docs, n_topics), copy=True)
    rows.sum_duplicates()
    return divided(rows, np.diff(doc_start))


def divided(rows: sparse.csr_array, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
    """Start, topic and share of rows whose counts are divided by the documents' lengths."""
    share = rows.data / np.repeat(lengths, np.diff(rows.indptr))
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), share.astype(np.float64)


def row_omegas(rows: Any, covariates: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """omega (n_docs, R) of documents whose zbar is a sparse row of shares, with covariates (n_docs, P) beside them."""
    omega = np.zeros((len(covariates), len(eta)))
    add_row_omegas(rows, covariates, eta, omega)
    return omega


@kernel
def add_row_omegas(rows, covariates, eta, omega):
    """Add omega of sparse rows to omega."""
    n_topics = eta.shape[1] - covariates.shape[1]
    for d in range(len(covariates)):
        for r in range(len(eta)):
            for i in range(rows.start[d], rows.start[d + 1]):
                omega[d, r] += eta[r, rows.topic[i]] * rows.share[i]
            for p in range(covariates.shape[1]):
                omega[d, r] += eta[r, n_topics + p] * covariates[d, p]


def add_moments(
    doc_start: np.ndarray, z: np.ndarray, rows: Any, covariates: np.ndarray, quadratic: Any,
    precision: np.ndarray, shift: np.ndarray,
) -> None:  # fmt: skip
    """Add the sums over documents whose zbar is a sparse row of shares or, without rows, that of their z."""
    x, seen = np.zeros(len(shift)), np.empty(len(shift), np.intp)
    add_documents(doc_start, z, rows, covariates, quadratic, precision, shift, x, seen)


@kernel
def add_documents(doc_start, z, rows, covariates, quadratic, precision, shift, x, seen):
    """Add kappa_r x of every document to the shift and lam_r x x' to the precision.

    x (K + P,) is 0 outside the first n_seen places of `seen` (K + P,), and all 0 after each document.
    """
    kappa, lam = quadratic.kappa, quadratic.lam
    width, n_columns = shift.shape
    n_topics, no_features = width - covariates.shape[1], np.int64(0)
    for d in range(len(covariates)):
        n_seen = no_features
        if len(rows.start):
            for i in range(rows.start[d], rows.start[d + 1]):
                seen[n_seen] = rows.topic[i]
                x[seen[n_seen]] = rows.share[i]
                n_seen += 1
        else:
            for i in range(doc_start[d], doc_start[d + 1]):
                k = np.intp(z[i])
                if x[k] == 0.0:
                    seen[n_seen] = k
                    n_seen += 1
                x[k] += 1.0
            for a in range(n_seen):
                x[seen[a]] /= doc_start[d + 1] - doc_start[d]
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
                product = x[j] * x[k]
                place = (j * (j + 1) >> 1) + k if j > k else (k * (k + 1) >> 1) + j
                for r in range(n_columns):
                    precision[place, r] += product * lam[d, r]
        for a in range(n_seen):
            x[seen[a]] = 0.0


def unpack(packed: np.ndarray, r: int, width: int) -> np.ndarray:
    """The matrix of column r, of which the upper triangle is left 0."""
    matrix = np.zeros((width, width))
    matrix[lower_triangle(width)] = packed[:, r]
    return matrix


@lru_cache(maxsize=4)
def lower_triangle(width: int) -> np.ndarray:
    """A mask of the lower triangle: to make it takes longer than to use it."""
    return np.tri(width, dtype=bool)
