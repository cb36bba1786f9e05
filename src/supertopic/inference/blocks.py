"""Rows of documents that linear terms are learned from: products with weights and with slopes, on several threads.

A sum is always made in the same order, so that the number of threads does not change a bit of it.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from supertopic.corpus.tokens import cut
from supertopic.kernels.products import gather, multiply
from supertopic.model.linear import Matrix
from supertopic.sampling.pool import Pool

PIECES, WORTHWHILE = 64, 500_000  # pieces of a product; smallest number of multiplications for more than one thread
ROWS_AT_ONCE = 4096  # sparse rows of a product in float64: a few megabytes
DENSE_PIECE = 1024  # documents or columns: the shape of a piece must not depend on the number of threads


class Block(Protocol):
    """Documents as rows x, (n_docs, n_columns)."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def omega(self, weights: np.ndarray) -> np.ndarray:
        """x @ weights, (n_docs, R) float32."""

    def gather(self, slope: np.ndarray) -> np.ndarray:
        """x.T @ slope, (n_columns, R) float32."""

    def gather_squares(self, values: np.ndarray) -> np.ndarray:
        """(x**2).T @ values, (n_columns, R) float32."""

    def select(self, docs: np.ndarray) -> "Block":
        """The documents of a mask or an index."""


class SparseBlock:
    """Some rows of a sparse matrix, which blocks share: copies, by rows and by columns, would need much memory."""

    def __init__(self, x: sp.csr_array, pool: Pool, docs: np.ndarray | None = None):
        docs = np.arange(x.shape[0]) if docs is None else docs  # (n_docs,): the rows
        # kernels are compiled for arrays that are writable
        self.rows = tuple(np.require(array, requirements="W") for array in (x.indptr, x.indices, x.data))
        self.x, self.pool, self.docs, self.shape = x, pool, docs, (len(docs), x.shape[1])
        self.starts = np.concatenate([[0], np.cumsum(np.diff(x.indptr)[docs], dtype=np.int64)])

    def omega(self, weights: np.ndarray) -> np.ndarray:
        weights = np.ascontiguousarray(weights, np.float32)
        out, docs = np.empty((self.shape[0], weights.shape[1]), np.float32), self.docs
        pieces = cut(self.starts, PIECES) if self.is_worthwhile(weights) else [slice(0, len(docs))]
        self.pool.map(lambda piece: multiply(*self.rows, docs, weights, out, piece.start, piece.stop), pieces)
        return out

    def gather(self, slope: np.ndarray, squared: bool = False) -> np.ndarray:
        slope = np.ascontiguousarray(slope, np.float32)
        out, docs = np.empty((self.shape[1], slope.shape[1]), np.float32), self.docs
        pieces = [slice(0, self.shape[1])]
        if self.pool.n_threads > 1 and self.is_worthwhile(slope) and self.x.has_sorted_indices:
            pieces = cut(np.arange(self.shape[1] + 1), self.pool.n_threads)
        self.pool.map(lambda piece: gather(*self.rows, docs, slope, squared, out, piece.start, piece.stop), pieces)
        return out

    def gather_squares(self, values: np.ndarray) -> np.ndarray:
        return self.gather(values, squared=True)

    def is_worthwhile(self, numbers: np.ndarray) -> bool:
        """Whether several threads are faster, for numbers (n, R)."""
        return bool(self.starts[-1] * numbers.shape[1] >= WORTHWHILE)

    def select(self, docs: np.ndarray) -> "SparseBlock":
        return SparseBlock(self.x, self.pool, self.docs[docs])


class DenseBlock:
    """Dense rows."""

    def __init__(self, x: np.ndarray, pool: Pool):
        self.x, self.pool, self.shape = np.ascontiguousarray(x, np.float32), pool, x.shape

    def omega(self, weights: np.ndarray) -> np.ndarray:
        weights = np.asarray(weights, np.float32)
        return self.stack(lambda piece: self.x[piece] @ weights, self.shape[0], weights)

    def gather(self, slope: np.ndarray) -> np.ndarray:
        slope = np.asarray(slope, np.float32)
        return self.stack(lambda piece: self.x[:, piece].T @ slope, self.shape[1], slope)

    def gather_squares(self, values: np.ndarray) -> np.ndarray:
        values = np.asarray(values, np.float32)
        return self.stack(lambda piece: (self.x[:, piece] ** 2).T @ values, self.shape[1], values)

    def select(self, docs: np.ndarray) -> "DenseBlock":
        return DenseBlock(self.x[docs], self.pool)

    def stack(self, product: Callable[[slice], np.ndarray], n: int, like: np.ndarray) -> np.ndarray:
        pieces = [slice(i, min(i + DENSE_PIECE, n)) for i in range(0, n, DENSE_PIECE)]
        found = self.pool.map(product, pieces)
        return np.concatenate(found) if found else np.zeros((0, like.shape[1]), np.float32)


def make_block(x: Matrix, pool: Pool, device: str = "cpu", docs: np.ndarray | None = None) -> Block:
    """The block of some rows; only sparse ones are put on a GPU, since of dense ones there are few columns."""
    docs = np.arange(x.shape[0]) if docs is None else docs
    if not sp.issparse(x):
        return DenseBlock(x[docs], pool)
    if device == "cuda":
        from supertopic.sampling.cuda_products import DeviceBlock

        return DeviceBlock(x[docs])
    return SparseBlock(x, pool, docs)


def times_rows(x: Matrix, rows: np.ndarray | slice, weights: np.ndarray, squared: bool = False) -> np.ndarray:
    """Some rows of x, or their squares, @ weights, piece by piece: a copy of them all would need much memory."""
    places = np.arange(x.shape[0])[rows]
    found = []
    for piece in np.array_split(places, max(1, len(places) // ROWS_AT_ONCE)) if sp.issparse(x) else [rows]:
        some = x[piece]
        if squared:
            some = some.power(2) if sp.issparse(x) else some**2
        found.append(np.asarray(some @ weights))
    return np.concatenate(found)
