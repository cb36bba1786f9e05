"""How the columns of a response with more classes follow from those that it had."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np


class NewColumns(NamedTuple):
    """Where each column comes from."""

    source: np.ndarray  # (R,): a column of before, -1 for a new one
    sign: np.ndarray  # (R,): -1 where the column has the weights of its source with the opposite sign, else 1
    share: float  # the part of a prediction weight of its source that a column gets: 1/2 if two columns replace one
    typical: bool  # whether a new column is like the others; with stick-breaking it is not
    exclusive: bool  # whether exactly one column of a document is 1, and was before

    @property
    def new(self) -> np.ndarray:
        """Which columns are new, (R,)."""
        return self.source < 0

    def of(
        self, values: np.ndarray, axis: int = -1, *, sign: bool = True, share: bool = False,
        new: np.ndarray | float | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Values by column, for the columns that there are now; without `new`, a new one has the mean of the others."""
        old = np.moveaxis(values, axis, -1)
        found = np.take(old, np.maximum(self.source, 0), axis=-1).astype(float)
        found *= (self.sign if sign else 1.0) * (self.share if share else 1.0)
        if self.new.any():
            if new is None:
                new = found[..., ~self.new].mean(axis=-1, keepdims=True) if self.typical else 0.0
            found[..., self.new] = np.broadcast_to(new, found.shape)[..., self.new]
        return np.ascontiguousarray(np.moveaxis(found, -1, axis)).astype(values.dtype)

    def of_variance(self, variance: np.ndarray) -> np.ndarray:
        """Variances of weights of predictions; those of two columns that share one add up to it."""
        mean = None if self.typical else variance.mean(axis=-1, keepdims=True)
        return self.of(variance, sign=False, new=mean) * variance.dtype.type(self.share)

    def of_grids(self, grids: dict[str, list[np.ndarray]]) -> dict[str, list[np.ndarray]]:
        """Held-out documents and the factors; if columns share weights, the factor is another one."""
        if self.exclusive:
            return grids
        if self.share != 1.0:
            return {}
        return {name: [self.of(grid, sign=False, new=0.0) for grid in own] for name, own in grids.items()}


class LaterBatches:
    """What later batches bring to a fitted response: most have no classes, or cannot have more."""

    grows: ClassVar[bool] = False  # whether later batches may bring new classes or labels

    def unknown_classes(self, y: Any, classes: Any = None) -> list[Any]:
        """The classes or labels of y, and those given, that a fitted response does not have."""
        return []

    def with_new_classes(self, new: list[Any]) -> tuple[Self, NewColumns]:
        """This fitted response with more classes or labels, and where its columns come from."""
        raise ValueError(
            f"add_classes=True is for classes without an order and for labels, not for {type(self).__name__}: what it "
            "has learned of the order, or of the raters' errors, is about its own classes. Fit again with all of them."
        )

    def in_own_units(self, truth: np.ndarray, encoded_by: Any) -> np.ndarray:
        """Responses as from `encoded_truth` of a response that learned its units later."""
        return truth
