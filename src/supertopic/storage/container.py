"""The container of model files and checkpoints: safetensors with a JSON header and a SHA-256 over every byte.

Nothing in such a file is ever executed, nothing of it is parsed before the sum is right and the header is known to be
small and flat, and no array is larger than the file itself.
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

from supertopic.corpus.json_text import measure_json
from supertopic.corpus.writing import whole_file

NO_SUM = b"0" * 64  # stands where the sum will be, while it is made
SUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')  # elsewhere in the header such quotes are escaped
MAX_HEADER = 2**24  # bytes
MOST_DEPTH, MOST_VALUES = 64, 2**20  # of a header


def write_file(path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write a file, all or nothing."""
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    data = to_bytes(arrays, metadata={"supertopic": json.dumps(header), "sha256": NO_SUM.decode()})
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER or measure_json(data[8 : 8 + length]).values > MOST_VALUES:
        raise ValueError(
            f"The header of {path} would have {length:,} bytes; at most {MAX_HEADER:,} and {MOST_VALUES:,} values are "
            "read again. Shorter lists of stop words or seeds, or fewer sets of topics, make it smaller."
        )
    at = SUM.search(data, 0, 8 + length)
    if at is None:
        raise RuntimeError("safetensors wrote its header in a form that is not known.")
    digest = hashlib.sha256(data).hexdigest().encode()
    with whole_file(path) as file:
        for piece in (memoryview(data)[: at.start(1)], digest, memoryview(data)[at.end(1) :]):
            file.write(piece)


def read_file(path: str | os.PathLike[str], what: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file; a ValueError says why it is not a `what`."""
    data = read_bytes(Path(path), what)
    length = int.from_bytes(data[:8], "little")
    found = list(SUM.finditer(data, 8, 8 + length))
    if len(found) != 1:
        raise ValueError(f"{path} is not a {what} of this version: it has no SHA-256 of its own{_writer(data)}.")
    stored, place = found[0].group(1), slice(found[0].start(1), found[0].end(1))
    data[place] = NO_SUM
    if hashlib.sha256(data).hexdigest().encode() != stored:
        raise ValueError(f"{path} is damaged: its bytes are not those that were written (SHA-256 differs).")
    try:
        header = parse(parse(data[8 : 8 + length])["__metadata__"]["supertopic"].encode())
        tensors = from_bytes(bytes(data))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a {what}: {error!r}.") from error
    return header, tensors


def read_bytes(path: Path, what: str) -> bytearray:
    """The bytes of a file, if it is one and its header is not larger than it may be."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a {what}: it is a folder, a device or a pipe.")
    with open(path, "rb") as file:
        start, size = file.read(16), os.fstat(file.fileno()).st_size
        if size < 8:
            raise ValueError(f"{path} is not a {what}: it has {size} bytes only.")
        length = int.from_bytes(start[:8], "little")
        if length > size - 8:
            raise ValueError(f"{path} {'was cut off' if b'{' in start[8:] else f'is not a {what}'}.")
        if length > MAX_HEADER:
            raise ValueError(f"{path} is not a {what}: its header has {length:,} bytes, more than {MAX_HEADER:,}.")
        return bytearray(start + file.read())


def parse(data: bytes | bytearray) -> dict[str, Any]:
    """A JSON object that is neither deep nor large."""
    depth, values = measure_json(data)
    if depth > MOST_DEPTH or values > MOST_VALUES:
        raise ValueError(f"its header has {values:,} values, nested {depth:,} deep")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("its header is no table of facts")
    return found


def _writer(data: bytearray) -> str:
    """Who wrote a file of an older format, if it says so."""
    try:
        metadata = parse(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        return f" (written by supertopic {str(parse(metadata['supertopic'].encode())['library'])[:40]})"
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
