"""Arrays of names and labels in files: JSON in byte tensors."""

import json
from typing import Any

import numpy as np

from supertopic.corpus.json_text import measure_json

Tensors = dict[str, np.ndarray]
MOST_NAMES, MOST_LETTERS = 2**23, 2**28  # names of an array; letters if each were as long as the longest


def pack_text(header: dict[str, Any], tensors: Tensors) -> Tensors:
    """Arrays of names and labels as JSON in byte tensors; the header says which."""
    packed: Tensors = {}
    for name, array in tensors.items():
        if array.dtype.kind in "iufb":
            packed[name] = array
            continue
        values = array.tolist()
        if len(values) > MOST_NAMES:
            raise ValueError(f"A model file can keep {MOST_NAMES:,} words; {name} has {len(values):,}. Raise min_df.")
        if not all(isinstance(value, str | int | float | bool) for value in values):
            raise TypeError(f"{name} holds {type(values[0]).__name__} values, which a model file cannot keep.")
        packed[name] = np.frombuffer(json.dumps(values).encode(), np.uint8)
        header.setdefault("json", {})[name] = array.dtype.kind
    return packed


def unpack_text(header: dict[str, Any], tensors: Tensors) -> Tensors:
    """The arrays of names and labels; what their JSON would take in memory is bounded before it is parsed."""
    found = dict(tensors)
    for name, kind in header.get("json", {}).items():
        data = tensors[name].tobytes()
        depth, n_values = measure_json(data)
        if depth != 1 or n_values > MOST_NAMES + 2:
            raise ValueError(f"the {n_values:,} values of {name[:80]}, {depth:,} deep, cannot be right.")
        values = json.loads(data)
        if not isinstance(values, list):
            raise ValueError(f"{name[:80]}, which is no list, cannot be right.")
        longest = max((len(value) for value in values if isinstance(value, str)), default=1)
        if kind != "O" and longest * len(values) > MOST_LETTERS:
            raise ValueError(f"the length of {name[:80]} cannot be right.")
        found[name] = np.array(values, dtype=object if kind == "O" else None)
    return found
