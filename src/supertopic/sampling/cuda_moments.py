"""The statistics for the next draw of eta over documents on a GPU."""

import numpy as np

from supertopic.kernels.cuda.device import SIMULATED, DeviceArray, Graph, empty, get, launch, put, stream
from supertopic.kernels.cuda.moments import CHUNKS, DOCS, THREADS, add_chunks, make_adder, make_squares

FILLING, LEAST_CHUNK = 1584, 2 if SIMULATED else 64  # blocks that fill the device, and documents of a block


class Moments:
    """Buffers for the sums over all documents; `x` is their topic counts, 1 over their lengths, K, and covariates."""

    def __init__(
        self, x: tuple[DeviceArray, DeviceArray, int, DeviceArray], stride: int, lam: DeviceArray, kappa: DeviceArray
    ):
        counts, inverse, n_topics, covariates = x
        self.x, self.lam, self.kappa, self.graph = (counts, stride, n_topics, inverse, covariates), lam, kappa, Graph()
        (n_rows, self.n_columns), self.width = lam.shape, n_topics + covariates.shape[1]
        self.cut = make_squares(self.width, self.n_columns)
        side, (row, column) = self.cut.side, np.tril_indices(self.cut.n_sides)
        self.square = [put(side * index.astype(np.int32)) for index in (row, column)]
        n_blocks = len(row) * -(-self.n_columns // self.cut.n_columns)
        n_chunks = min(max(1, FILLING // n_blocks), -(-n_rows // LEAST_CHUNK))
        self.chunk = -(-n_rows // (n_chunks * DOCS)) * DOCS
        n_chunks = -(-n_rows // self.chunk)
        self.squares = empty((n_chunks, self.n_columns, len(row), side, side), np.float64)
        self.shifts = empty((n_chunks, self.n_columns, self.cut.n_sides * side), np.float64)
        self.size = self.n_columns * len(row) * side**2, self.n_columns * self.cut.n_sides * side
        self.sums: list[list[DeviceArray]] = []  # of each CHUNKS chunks, of these, and so on
        while n_chunks > CHUNKS:
            n_chunks = -(-n_chunks // CHUNKS)
            self.sums.append([empty((n_chunks, size), np.float64) for size in self.size])
        self.whole = empty(sum(self.size), np.float64)
        self.sums.append([self.whole[: self.size[0]].reshape(1, -1), self.whole[self.size[0] :].reshape(1, -1)])
        # where the packed triangle's pairs are in a column's squares
        j, k = np.tril_indices(self.width)
        square = j // side * (j // side + 1) // 2 + k // side
        self.place = (square * side + j % side) * side + k % side

    def statistics(self) -> tuple[np.ndarray, np.ndarray]:
        """The precision's packed triangle and the shift, a column each."""
        self.graph.run("moments", self.launch)
        squares, shifts = (part.reshape(self.n_columns, -1) for part in np.split(get(self.whole), self.size[:1]))
        return squares[:, self.place].T, shifts[:, : self.width].T

    def launch(self) -> None:
        """Launch the kernels of all sums."""
        chunks, n_blocks = len(self.squares), -(-self.n_columns // self.cut.n_columns)
        make_adder(self.cut)[(len(self.square[0]), chunks, n_blocks), THREADS, stream()](
            *self.x, self.lam, self.kappa, *self.square, self.chunk, self.squares, self.shifts
        )
        parts = [self.squares.reshape(chunks, self.size[0]), self.shifts.reshape(chunks, self.size[1])]
        for sums in self.sums:
            for part, total in zip(parts, sums, strict=True):
                launch(add_chunks, total.size, part, total)
            parts = sums


def moment_bytes(width: int, n_columns: int) -> int:
    """About how many bytes the sums of K + P features take."""
    squares = make_squares(width, n_columns)
    n_squares = squares.n_sides * (squares.n_sides + 1) // 2
    return 9 * squares.side**2 * max(squares.n_columns * FILLING, n_squares * n_columns)
