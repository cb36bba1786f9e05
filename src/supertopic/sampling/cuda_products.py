"""Rows of documents on a GPU, for linear terms: the methods of `inference.blocks.SparseBlock`."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from supertopic.kernels.cuda.device import DeviceArray, get, launch, put, zeros
from supertopic.kernels.cuda.products import multiply


class DeviceRows(NamedTuple):
    """A sparse matrix on the device."""

    indptr: DeviceArray
    indices: DeviceArray
    data: DeviceArray
    n_rows: int

    def times(self, weights: np.ndarray, squared: bool = False) -> np.ndarray:
        """x @ weights, or x**2 @ weights, (n_rows, R) float32."""
        if not self.n_rows or not weights.shape[1]:
            return np.zeros((self.n_rows, weights.shape[1]), np.float32)
        out = zeros((self.n_rows, weights.shape[1]), np.float32)
        there = put(np.ascontiguousarray(weights, np.float32))
        launch(multiply, out.size, self.indptr, self.indices, self.data, there, squared, out)
        return get(out)


def put_rows(x: sp.csr_array) -> DeviceRows:
    """A copy of a sparse matrix on the device."""
    return DeviceRows(put(x.indptr.astype(np.int64)), put(x.indices.astype(np.int32)), put(x.data), x.shape[0])


class DeviceBlock:
    """Sparse rows on a GPU, stored by rows and by columns."""

    def __init__(self, x: sp.csr_array):
        self.x, self.shape = x.astype(np.float32), x.shape

    @cached_property
    def rows(self) -> DeviceRows:
        return put_rows(self.x)

    @cached_property
    def columns(self) -> DeviceRows:
        return put_rows(sp.csr_array(self.x.T))

    def omega(self, weights: np.ndarray) -> np.ndarray:
        return self.rows.times(weights)

    def gather(self, slope: np.ndarray) -> np.ndarray:
        return self.columns.times(slope)

    def gather_squares(self, values: np.ndarray) -> np.ndarray:
        return self.columns.times(values, squared=True)

    def select(self, docs: np.ndarray) -> "DeviceBlock":
        return DeviceBlock(self.x[docs])
