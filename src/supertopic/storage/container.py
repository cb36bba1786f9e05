"""The container of model files and checkpoints: safetensors with a JSON header and a SHA-256 over every byte.

Nothing in such a file is ever executed, nothing of it is used before the sum is right, and no array is larger than
the file itself.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from supertopic.corpus.writing import whole_file

NO_SUM = b"0" * 64  # stands where the sum will be, while it is made
SUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')  # elsewhere in the header such quotes are escaped
MAX_HEADER = 2**26  # bytes


def write_file(path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write a file, all or nothing."""
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    data = to_bytes(arrays, metadata={"supertopic": json.dumps(header), "sha256": NO_SUM.decode()})
    at = SUM.search(data)
    if at is None:
        raise RuntimeError("safetensors wrote its header in a form that is not known.")
    digest = hashlib.sha256(data).hexdigest().encode()
    with whole_file(path) as file:
        for piece in (memoryview(data)[: at.start(1)], digest, memoryview(data)[at.end(1) :]):
            file.write(piece)


def read_file(path: str | os.PathLike[str], what: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file; a ValueError says why it is not a `what`."""
    data = bytearray(Path(path).read_bytes())
    if len(data) < 8:
        raise ValueError(f"{path} is not a {what}: it has {len(data)} bytes only.")
    length = int.from_bytes(data[:8], "little")
    if length > min(len(data) - 8, MAX_HEADER):
        known = "{" in data[8:16].decode("latin-1")  # where the header begins
        raise ValueError(f"{path} {'was cut off' if known else f'is not a {what}'}.")
    found = list(SUM.finditer(data, 8, 8 + length))
    if len(found) != 1:
        raise ValueError(f"{path} is not a {what} of this version: it has no SHA-256 of its own{_writer(data)}.")
    stored, place = found[0].group(1), slice(found[0].start(1), found[0].end(1))
    data[place] = NO_SUM
    if hashlib.sha256(data).hexdigest().encode() != stored:
        raise ValueError(f"{path} is damaged: its bytes are not those that were written (SHA-256 differs).")
    try:
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        header = json.loads(metadata["supertopic"])
        tensors = from_bytes(bytes(data))
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a {what}: {error!r}.") from error
    if not isinstance(header, dict):
        raise ValueError(f"{path} is not a {what}: its header is no table of facts.")
    return header, tensors


def _writer(data: bytearray) -> str:
    """Who wrote a file of an older format, if it says so."""
    try:
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        return f" (written by supertopic {json.loads(metadata['supertopic'])['library']})"
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
