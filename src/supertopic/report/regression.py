"""Least squares with many responses and one design: sandwich errors that hold for few documents and few clusters."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

FULL = 1e-9  # a cluster whose leverage is 1 - FULL or more has no residual


@dataclass(frozen=True, eq=False)
class Regression:
    """Regressions of shares on a design; errors may differ between documents, and be alike within a cluster.

    The covariance is CR2 (Bell and McCaffrey, 2002), which is HC2 where every document is a cluster of its own. With
    design = QR and G_c = Q_c' Q_c of a cluster, its score is (I - G_c)^(-1/2) Q_c' e_c: nothing is larger than p x p.
    """

    design: np.ndarray  # (n_docs, p), of full rank
    cluster: np.ndarray  # (n_docs,): 0, 1, ...; all different without clusters

    @cached_property
    def qr(self) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.qr(self.design)

    @cached_property
    def members(self) -> csr_array:
        """Which documents each cluster has, (n_clusters, n_docs): a product with it is a sum over each cluster."""
        n_docs = len(self.cluster)
        return csr_array((np.ones(n_docs), (self.cluster, np.arange(n_docs))))

    @property
    def n_clusters(self) -> int:
        return self.members.shape[0]

    @property
    def clustered(self) -> bool:
        """Whether a cluster has several documents."""
        return self.n_clusters < len(self.cluster)

    @cached_property
    def levers(self) -> np.ndarray:
        """Q_d (I - G_c)^(-1/2) of each document d in its cluster c, (n_docs, p)."""
        q = self.qr[0]
        if not self.clustered:
            h = np.einsum("dp,dp->d", q, q)
            return q * inverse_root(1.0 - h)[:, None]
        levers = np.empty_like(q)
        for docs in np.split(self.members.indices, self.members.indptr[1:-1]):
            values, vectors = np.linalg.eigh(q[docs].T @ q[docs])
            levers[docs] = q[docs] @ (vectors * inverse_root(1.0 - values)) @ vectors.T
        return levers

    def fit(self, shares: np.ndarray) -> np.ndarray:
        """The coefficients of each column of shares (n_docs, K): (p, K)."""
        q, r = self.qr
        return solve_triangular(r, q.T @ shares)

    def error(self, residuals: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Sampling errors of the coefficients, (p, K), from a standard normal number of each cluster.

        Their covariance over the noise is CR2's, also between topics: errors of all topics sum to 0, as residuals do.
        """
        return solve_triangular(self.qr[1], (self.levers * noise[self.cluster, None]).T @ residuals)

    def covariance(self, residuals: np.ndarray) -> np.ndarray:
        """CR2 of the coefficients of one response, (p, p), from its residuals (n_docs,)."""
        scores = self.members @ (self.levers * residuals[:, None])
        root = solve_triangular(self.qr[1], scores.T)
        return root @ root.T

    def degrees(self, row: np.ndarray) -> float:
        """Degrees of freedom of row @ coefficients: Satterthwaite's, if documents were alike (Bell and McCaffrey).

        NaN where it depends on a document or cluster that has a coefficient of its own: its error cannot be estimated.
        """
        q, r = self.qr
        weight = solve_triangular(r, row, trans="T")
        a = self.levers @ weight
        b = self.members @ (q * a[:, None])
        squares = (b**2).sum(axis=1)
        own = self.members @ a**2 - squares
        total, whole = own.sum(), weight @ weight
        if total < (1.0 - 1e-6) * whole:
            return np.nan
        spread = (own**2).sum() + ((b.T @ b) ** 2).sum() - (squares**2).sum()
        return float(total**2 / spread) if whole > 0 else np.inf


def inverse_root(values: np.ndarray) -> np.ndarray:
    """1 / sqrt of values, 0 where they are 0: a document with a coefficient of its own has no residual."""
    return np.where(values > FULL, 1.0 / np.sqrt(np.maximum(values, FULL)), 0.0)
