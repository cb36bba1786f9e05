"""Classes and labels of a batch that are new to a fitted response."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from supertopic.model.responses.values import is_unknown, without_na


def find_unknown(known: np.ndarray, y: Any, given: Any, multilabel: bool, missing_label: Any) -> list[Any]:
    """The new ones in y, and among the `given`: classes in their order, labels in that of y's columns."""
    if multilabel:
        return unknown_labels(known, y, given)
    values = [] if y is None else without_na(y)
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        return []
    named = [] if given is None else np.asarray(given).tolist()
    new = {*values[~is_unknown(values, missing_label)].tolist(), *named} - set(known.tolist())
    if not new:
        return []
    texts = {isinstance(value, str) for value in [*new, *known.tolist()]}
    if len(texts) > 1:
        raise ValueError(
            f"y mixes text and numbers: the classes are {known.tolist()[:5]}, and {min(map(str, new))!r} is new."
        )
    return sorted(new)


def unknown_labels(known: np.ndarray, y: Any, given: Any) -> list[Any]:
    """New labels are further columns of y; names come with a data frame, or as `given`, else they are numbered."""
    names = [str(name) for name in getattr(y, "columns", ())]
    old = [str(name) for name in known]
    if not names:
        names = [] if given is None else [str(name) for name in given]
    n_columns = np.shape(y)[1] if y is not None and (issparse(y) or np.ndim(y) == 2) else len(names)
    if not names and known.dtype.kind in "iu" and n_columns > len(known):
        return list(range(len(known), n_columns))
    if not names and n_columns > len(known):
        raise ValueError(
            f"y has {n_columns} columns and the model {len(known)} labels: name the new ones by a data frame, or pass "
            "all names as classes=."
        )
    if names and names[: len(old)] != old:
        raise ValueError(f"y must begin with the labels {old[:8]} of earlier batches, in this order, got {names[:8]}.")
    return names[len(old) :]


def join_classes(known: np.ndarray, new: list[Any]) -> np.ndarray:
    """The classes with new ones after them."""
    if known.dtype == object:
        return np.array([*known.tolist(), *new], dtype=object)
    return np.concatenate([known, np.array(new)])
