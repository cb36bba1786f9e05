"""Conjugate gradients: the solution of linear systems whose matrices are known only by their products with vectors."""

from collections.abc import Callable

import numpy as np

# of what is left of the right-hand side: its root mean square over the weights, in standard deviations of the noise
TOLERANCE = 1e-5
MOST_STEPS = 10_000


def solve(
    products: Callable[[np.ndarray, np.ndarray], np.ndarray], diagonal: np.ndarray, prior: np.ndarray,
    right: np.ndarray, near: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """The solution x of A_r x_r = right_r for every column r, (W, R), scaled by the diagonals of the A_r.

    `products(v, columns)` is (A_r - prior_r) v_r for some columns r, and `near` is where to start. A column that has
    converged takes part no more.
    """
    width, n_columns = right.shape
    found, columns = np.zeros(right.shape), np.arange(n_columns)
    own, x, rest = diagonal, found.copy(), right.copy()  # of the columns that have not converged
    if near is not None:
        x, rest = near.copy(), right - prior * near - products(near, columns)
    direction = scaled = rest / own
    size = (rest * scaled).sum(axis=0)
    for _ in range(MOST_STEPS):
        if not np.isfinite(size).all():
            break
        active = size > TOLERANCE**2 * width
        if not active.all():
            found[:, columns[~active]] = x[:, ~active]
            columns, size = columns[active], size[active]
            own, x, rest, direction = (array[:, active] for array in (own, x, rest, direction))
        if not len(columns):
            return found
        product = prior[:, columns] * direction + products(direction, columns)
        step = size / (direction * product).sum(axis=0)
        x, rest = x + step * direction, rest - step * product
        scaled, before = rest / own, size
        size = (rest * scaled).sum(axis=0)
        direction = scaled + size / before * direction
    raise NotConverged


NotConverged = np.linalg.LinAlgError("Conjugate gradients did not find eta.")
