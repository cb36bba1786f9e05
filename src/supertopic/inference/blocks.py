"""Rows of documents that linear terms are learned from: products with weights and with slopes, on several threads.

A sum is always made in the same order, so that the number of threads does not change a bit of it.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from supertopic.corpus.tokens import cut
from supertopic.kernels.products import multiply
from supertopic.model.linear import Matrix
from supertopic.sampling.pool import Pool

PIECES, WORTHWHILE = 64, 500_000  # pieces of a product; smallest number of multiplications for more than one thread
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
    """Sparse rows, which are also stored by columns."""

    def __init__(self, x: sp.csr_array, pool: Pool):
        self.x, self.pool, self.shape = x.astype(np.float32), pool, x.shape

    @cached_property
    def transposed(self) -> sp.csr_array:
        return sp.csr_array(self.x.T)

    def omega(self, weights: np.ndarray) -> np.ndarray:
        return self.product(self.x, weights)

    def gather(self, slope: np.ndarray) -> np.ndarray:
        return self.product(self.transposed, slope)

    def gather_squares(self, values: np.ndarray) -> np.ndarray:
        return self.product(self.transposed.power(2), values)

    def select(self, docs: np.ndarray) -> "SparseBlock":
        return SparseBlock(self.x[docs], self.pool)

    def product(self, x: sp.csr_array, weights: np.ndarray) -> np.ndarray:
        weights = np.ascontiguousarray(weights, np.float32)
        out = np.empty((x.shape[0], weights.shape[1]), np.float32)
        n_pieces = 1 if x.nnz * weights.shape[1] < WORTHWHILE else min(PIECES, x.shape[0])
        pieces = cut(x.indptr, n_pieces) if n_pieces > 1 else [slice(0, x.shape[0])]
        rows = (x.indptr, x.indices, x.data)
        self.pool.map(lambda piece: multiply(*rows, weights, out, piece.start, piece.stop), pieces)
        return out


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


def make_block(x: Matrix, pool: Pool, device: str = "cpu") -> Block:
    """The block of some rows; only sparse ones are put on a GPU, since of dense ones there are few columns."""
    if not sp.issparse(x):
        return DenseBlock(x, pool)
    if device == "cuda":
        from supertopic.sampling.cuda_products import DeviceBlock

        return DeviceBlock(x)
    return SparseBlock(x, pool)
