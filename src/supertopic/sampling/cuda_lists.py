"""Sums over the few topics that each document has, on a GPU: what `matrix_free` asks of a shard."""

from collections.abc import Callable, Hashable

import numpy as np

from supertopic.kernels.cuda import gradients as kernels
from supertopic.kernels.cuda.device import (
    BLOCK,
    SUMS,
    Buffers,
    DeviceArray,
    Graph,
    Staging,
    clear,
    empty,
    get,
    launch,
    put,
    stream,
)
from supertopic.kernels.cuda.lists import (
    MANY,
    SPAN,
    TEAM,
    ByTopic,
    Lists,
    Values,
    add_covariates,
    add_tokens,
    count_listed,
    count_topics,
    find_starts,
    in_units,
    list_counted,
    list_omegas,
    sort_lists,
    weigh,
    weigh_noise,
    weigh_products,
)
from supertopic.kernels.cuda.warp import LANES
from supertopic.model.state import Statistics
from supertopic.sampling.gradients import MOST_STEPS, TOLERANCE, NotConverged

STEPS = 4  # of conjugate gradients, before the host asks whether they have converged


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
        start, n_tokens = empty(n_topics + 1, np.int64), len(lists.topic)
        self.by_topic = ByTopic(start, empty(n_tokens, np.int32), empty(n_tokens, np.float32))
        self.counted, self.free = empty(n_topics, np.int32), empty(n_topics, np.int64)
        shape = (self.width, lam.shape[1])
        names = "prior", "diagonal", "x", "rest", "direction"
        self.problem = Staging(least=((1,), np.float64), **dict.fromkeys(names, (shape, np.float64)))
        sent = self.problem.on_device
        product, size = empty(shape, np.float64), empty(lam.shape[1], np.float64)
        self.columns = put(np.arange(shape[1]))
        self.gradients = kernels.Gradients(
            sent["prior"], sent["diagonal"], sent["x"], sent["rest"], sent["direction"], product, size
        )
        self.sort()

    def sort(self) -> None:
        """Sort the lists by topics, after they have changed."""

        def launch_all() -> None:
            clear(self.counted)
            blocks = -(-len(self.lists.size) // MANY)
            count_topics[blocks, TEAM, stream()](self.lists, self.counted)
            find_starts[1, TEAM, stream()](self.counted, self.by_topic.start, self.free)
            sort_lists[blocks, TEAM, stream()](self.lists, self.free, self.by_topic)

        self.graph.run("sort", launch_all)

    def statistics(self) -> Statistics:
        """The diagonals of the precisions and the shifts, (K + P, R) both."""
        lists, shape = self.lists, self.lam.shape

        def weigh_lam(values: Values) -> None:
            launch(weigh, self.lam.size, self.lam, lists.inverse, True, values)

        def weigh_kappa(values: Values) -> None:
            launch(weigh, self.kappa.size, self.kappa, lists.inverse, False, values)

        precision = self.sum_up("precision", shape[1], weigh_lam, squared=True)
        return Statistics(precision, self.sum_up("shift", shape[1], weigh_kappa))

    def products(self, v: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """sum_d lam_dr x_d x_d' v_r for some columns r (m,) and vectors v (K + P, m): (K + P, m)."""
        n = len(columns)
        if n not in self.staging:
            self.staging[n] = Staging(columns=((n,), np.int64), v=((self.width, n), np.float64))
        self.staging[n].send(columns=columns, v=v)
        sent = self.staging[n].on_device
        return self.sum_up("products", n, lambda values: self.weigh_products(sent["columns"], sent["v"], values))

    def weigh_products(self, columns: DeviceArray, v: DeviceArray, values: Values) -> None:
        """Launch the kernel that weighs x_d' v."""
        about = self.lists, self.covariates, self.lam, columns, v, self.n_topics
        launch(weigh_products, values.plain.size, *about, values)

    def noise(self, key: np.uint64) -> np.ndarray:
        """sum_d sqrt(lam_dr) e_dr x_d with standard normals e, (K + P, R)."""
        place = self.buffers.put("key", np.array([key], np.uint64))

        def weigh_all(values: Values) -> None:
            launch(weigh_noise, self.lam.size, self.lists, self.lam, self.number, place, values)

        return self.sum_up("noise", self.lam.shape[1], weigh_all)

    def solve(self, diagonal: np.ndarray, prior: np.ndarray, right: np.ndarray, near: np.ndarray | None) -> np.ndarray:
        """What `gradients.solve` finds, with all of its steps on the device."""
        near = np.zeros(right.shape) if near is None else near
        least, n_columns = TOLERANCE**2 * self.width, right.shape[1]
        self.problem.send(prior=prior, diagonal=diagonal, x=near, rest=right, direction=near, least=least)
        state, sent = self.gradients, self.problem.on_device

        def multiply() -> None:
            values, total = self.values(n_columns), self.total(n_columns)
            self.add(lambda values: self.weigh_products(self.columns, state.direction, values), n_columns, False)
            kernels.multiply[n_columns, TEAM, stream()](total, values, self.beside(n_columns), state)

        def begin() -> None:
            multiply()
            kernels.begin[n_columns, TEAM, stream()](state)

        def go_on() -> None:
            for _ in range(STEPS):
                multiply()
                kernels.step_on[n_columns, TEAM, stream()](state, sent["least"])

        self.graph.run("begin", begin)
        for _ in range(0, MOST_STEPS, STEPS):
            size = get(state.size)
            if not np.isfinite(size).all():
                break
            if (size <= least).all():
                return get(state.x)
            self.graph.run("steps", go_on)
        raise NotConverged

    def values(self, n_columns: int) -> Values:
        """Room for what each document adds."""
        shape = len(self.lam), n_columns
        plain, scaled = (self.buffers.empty(name, shape, np.float64) for name in ("plain", "scaled"))
        return Values(plain, scaled, self.buffers.empty("largest", (n_columns,), np.float64))

    def total(self, n_columns: int) -> DeviceArray:
        """Room for sums of topics, as whole numbers."""
        return self.buffers.empty("total", (self.n_topics, n_columns), np.int64)

    def beside(self, n_columns: int) -> DeviceArray:
        """Room for sums of covariates, in parts."""
        n_covariates = self.covariates.shape[1]
        return self.buffers.empty("beside", (SUMS if n_covariates else 0, n_covariates, n_columns), np.float64)

    def add(self, weigh_all: Callable[[Values], None], n_columns: int, squared: bool) -> None:
        """Launch the kernels that weigh the documents and add them up."""
        values, total, beside = self.values(n_columns), self.total(n_columns), self.beside(n_columns)
        clear(values.largest)
        clear(total)
        weigh_all(values)
        blocks = -(-len(self.by_topic.row) * LANES // (SPAN * BLOCK))
        if blocks:
            add_tokens[(blocks, n_columns), BLOCK, stream()](self.by_topic, values, squared, total)
        launch(add_covariates, beside.size, self.covariates, values, squared, beside)

    def sum_up(
        self, name: Hashable, n_columns: int, weigh_all: Callable[[Values], None], squared: bool = False
    ) -> np.ndarray:
        """The sum of values_d x_d, or of values_d x_d**2, over all documents (K + P, n_columns)."""
        values, total, beside = self.values(n_columns), self.total(n_columns), self.beside(n_columns)
        out = self.buffers.empty("out", total.shape, np.float64)

        def add() -> None:
            self.add(weigh_all, n_columns, squared)
            launch(in_units, out.size, total, values, out)

        self.graph.run((name, n_columns), add)
        topics = get(out)
        return np.concatenate([topics, get(beside).sum(axis=0)]) if len(beside) else topics

    def omegas(self, eta: np.ndarray, covariates: DeviceArray, offset: DeviceArray, omega: DeviceArray) -> None:
        """Compute omega from eta (R, K + P)."""
        there = self.buffers.put("eta", np.ascontiguousarray(eta.T, np.float64))
        launch(list_omegas, omega.size, self.lists, covariates, offset, there, self.n_topics, omega)
