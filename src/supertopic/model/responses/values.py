"""Cells of y: what is unknown, and what a message shows of them."""

from typing import Any

import numpy as np

LEAST, MOST = 1e-10, 1e10  # the range of c, weights, alpha, beta and nu2: the sampler's own numbers are float32


def without_na(y: Any) -> Any:
    """y, or, where it is of a pandas type of its own that may hold NA, an array of objects with None there."""
    types = list(getattr(y, "dtypes", [])) if getattr(y, "ndim", 0) == 2 else [getattr(y, "dtype", None)]
    if not hasattr(y, "isna") or all(isinstance(kind, np.dtype) for kind in types):
        return y
    values, missing = y.to_numpy(dtype=object, copy=True), np.asarray(y.isna())
    values[missing] = None
    return values


def plain_array(y: Any) -> np.ndarray:
    """y as an array; lists of labels, which have different lengths, are refused."""
    try:
        return np.asarray(without_na(y))
    except ValueError:
        raise ValueError(
            "y has rows of different lengths. Labels of a document are a row of 0 and 1, with a column for each "
            "label, as sklearn.preprocessing.MultiLabelBinarizer makes them."
        ) from None


def check_columns(y: Any, names: list[str]) -> None:
    """Refuse a DataFrame of y with as many columns as in the fit, in another order or only partly the same."""
    columns = list(map(str, getattr(y, "columns", ())))
    if columns != names and len(columns) == len(names) and not set(names).isdisjoint(columns):
        raise ValueError(f"y has the columns {columns[:8]}, but the model was fitted with {names[:8]}, in this order.")


def is_unknown(y: np.ndarray, missing_label: Any) -> np.ndarray:
    """Where y is NaN, None or the value that means missing."""
    if y.dtype.names:  # a structured array
        return np.any([is_unknown(y[name], missing_label) for name in y.dtype.names], axis=0)
    unknown = y != y if y.dtype.kind in "fO" else np.zeros(y.shape, bool)
    if y.dtype == object:
        unknown = unknown | (y == None)  # noqa: E711
    if missing_label is not None:
        unknown = unknown | (y == missing_label)
    return unknown.astype(bool)


def plain_value(value: Any) -> Any:
    """A number or a text as Python has it: NumPy's show their type."""
    return value.item() if isinstance(value, np.generic) else value
