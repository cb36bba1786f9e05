"""Sums over the few topics that each document has, on a GPU: what `matrix_free` asks of a shard."""

from collections.abc import Callable, Hashable

import numpy as np

from supertopic.kernels.cuda.device import SUMS, Buffers, DeviceArray, Graph, Staging, clear, empty, get, launch, put
from supertopic.kernels.cuda.lists import (
    TOGETHER,
    Lists,
    add_covariates,
    add_shares,
    count_listed,
    find_largest,
    in_units,
    list_counted,
    list_omegas,
    weigh_noise,
    weigh_products,
)
from supertopic.model.state import Statistics


def make_lists(n: DeviceArray, width: int, n_topics: int, inverse: DeviceArray) -> Lists:
    """The lists of rows of counts (rows, width), flat."""
    n_rows = len(inverse)
    size = empty(n_rows, np.int32)
    launch(count_listed, n_rows, n, width, n_topics, size)
    ends = np.concatenate([[0], np.cumsum(get(size), dtype=np.int64)])
    lists = Lists(put(ends[:-1]), 1, size, empty(int(ends[-1]), np.uint16), empty(int(ends[-1]), np.float32), inverse)
    launch(list_counted, n_rows, n, width, n_topics, lists)
    return lists


class ListSums:
    """The sums over all documents of a shard, and their buffers."""

    def __init__(
        self, lists: Lists, n_topics: int, covariates: DeviceArray, lam: DeviceArray, kappa: DeviceArray,
        number: DeviceArray,
    ):  # fmt: skip
        self.lists, self.n_topics, self.covariates, self.number = lists, n_topics, covariates, number
        self.lam, self.kappa, self.width = lam, kappa, n_topics + covariates.shape[1]
        self.buffers, self.graph, self.staging = Buffers(), Graph(), dict[int, Staging]()

    def statistics(self) -> Statistics:
        """The diagonals of the precisions and the shifts, (K + P, R) both."""
        n_columns = self.lam.shape[1]
        precision = self.sum_up("precision", n_columns, lambda: self.lam, squared=True)
        return Statistics(precision, self.sum_up("shift", n_columns, lambda: self.kappa))

    def products(self, v: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """sum_d lam_dr x_d x_d' v_r for some columns r (m,) and vectors v (K + P, m): (K + P, m)."""
        n = len(columns)
        if n not in self.staging:
            self.staging[n] = Staging(columns=((n,), np.int64), v=((self.width, n), np.float64))
        sent, values = self.staging[n], self.buffers.empty("products", (self.lam.shape[0], n), np.float64)
        sent.send(columns=columns, v=v)

        def weigh() -> DeviceArray:
            there = sent.on_device
            about = self.lists, self.covariates, self.lam, there["columns"], there["v"], self.n_topics
            launch(weigh_products, values.size, *about, values)
            return values

        return self.sum_up("products", n, weigh)

    def noise(self, key: np.uint64) -> np.ndarray:
        """sum_d sqrt(lam_dr) e_dr x_d with standard normals e, (K + P, R)."""
        values = self.buffers.empty("noise", self.lam.shape, np.float64)
        place = self.buffers.put("key", np.array([key], np.uint64))

        def weigh() -> DeviceArray:
            launch(weigh_noise, values.size, self.lam, self.number, place, values)
            return values

        return self.sum_up("noise", self.lam.shape[1], weigh)

    def sum_up(
        self, name: Hashable, n_columns: int, weigh: Callable[[], DeviceArray], squared: bool = False
    ) -> np.ndarray:
        """The sum of values_d x_d, or of values_d x_d**2, over all documents (K + P, n_columns)."""
        n_covariates = self.covariates.shape[1]
        largest = self.buffers.empty("largest", (n_columns,), np.float64)
        total = self.buffers.empty("total", (self.n_topics, n_columns), np.int64)
        out = self.buffers.empty("out", total.shape, np.float64)
        beside = self.buffers.empty("beside", (SUMS, n_covariates, n_columns), np.float64)

        def add() -> None:
            values = weigh()
            clear(largest)
            clear(total.reshape(total.size))
            launch(find_largest, values.size, values, largest)
            launch(add_shares, len(values) * TOGETHER, self.lists, values, largest, squared, total)
            launch(in_units, total.size, total, largest, len(values), out)
            launch(add_covariates, beside.size, self.covariates, values, squared, beside)

        self.graph.run((name, n_columns), add)
        topics = get(out)
        return np.concatenate([topics, get(beside).sum(axis=0)]) if n_covariates else topics

    def omegas(self, eta: np.ndarray, covariates: DeviceArray, offset: DeviceArray, omega: DeviceArray) -> None:
        """Compute omega from eta (R, K + P)."""
        there = self.buffers.put("eta", np.ascontiguousarray(eta.T, np.float64))
        launch(list_omegas, omega.size, self.lists, covariates, offset, there, self.n_topics, omega)
