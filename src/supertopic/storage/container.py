"""The container of model files and checkpoints: safetensors with a JSON header and a SHA-256 over every byte.

Nothing in such a file is ever executed, nothing of it is parsed before the sum is right and the header is known to be
small and flat, and no array is larger than the file itself.
"""

import hashlib
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from supertopic.corpus.json_text import measure_json
from supertopic.corpus.writing import whole_file

NO_SUM = b"0" * 64  # stands where the sum will be, while it is made
SUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')  # elsewhere in the header such quotes are escaped
MAX_HEADER = 2**24  # bytes
TYPES = {  # of arrays, as safetensors calls them
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip
MOST_DEPTH, MOST_VALUES = 64, 2**20  # deepest nesting and largest number of values of a header


def write_file(path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write a file, all or nothing."""
    from safetensors.numpy import save as to_bytes  # files are read without it

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


def read_file(
    path: str | os.PathLike[str], what: str, mmap: bool = False
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file; a ValueError says why it is not a `what`.

    With `mmap` the arrays are views of the file, which nobody can write to.
    """
    data = read_bytes(Path(path), what, mmap)
    size, length = len(data), int.from_bytes(data[:8].tobytes(), "little")
    start = data[: 8 + length].tobytes()
    found = list(SUM.finditer(start, 8))
    if len(found) != 1:
        raise ValueError(f"{path} is not a {what} of this version: it has no SHA-256 of its own{_writer(start)}.")
    digest = hashlib.sha256(start[: found[0].start(1)] + NO_SUM + start[found[0].end(1) :])
    digest.update(data[8 + length :].data)
    if digest.hexdigest().encode() != found[0].group(1):
        raise ValueError(f"{path} is damaged: its bytes are not those that were written (SHA-256 differs).")
    try:
        places = parse(start[8:])
        header = parse(places.pop("__metadata__")["supertopic"].encode())
        ends = sorted(place["data_offsets"] for place in places.values())
        if [first for first, _ in ends] + [size - 8 - length] != [0] + [last for _, last in ends]:
            raise ValueError("its arrays overlap, or do not fill the file")
        tensors = {str(name): view(data[8 + length :], place) for name, place in places.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a {what}: {error!r}.") from error
    return header, tensors


def view(data: np.ndarray, place: dict[str, Any]) -> np.ndarray:
    """The array at a place of the file, as its header describes it."""
    kind, shape, (first, last) = np.dtype(TYPES[place["dtype"]]), place["shape"], place["data_offsets"]
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in (*shape, first, last)):
        raise ValueError("the place of an array has numbers that cannot be right")
    if last > len(data) or last - first != math.prod(shape) * kind.itemsize:
        raise ValueError("an array is not as large as its place in the file")
    found = data[first:last].view(kind).reshape(shape)
    return found if found.flags.aligned else found.copy()  # as nobody writes it


def read_bytes(path: Path, what: str, mmap: bool) -> np.ndarray:
    """The bytes of a file, or a view of them, if it is one and its header is not larger than it may be."""
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
        if mmap:
            return np.memmap(file, np.uint8, "r").view(np.ndarray)
        return np.frombuffer(bytearray(start + file.read()), np.uint8)


def parse(data: bytes | bytearray) -> dict[str, Any]:
    """A JSON object that is neither deep nor large."""
    depth, values = measure_json(data)
    if depth > MOST_DEPTH or values > MOST_VALUES:
        raise ValueError(f"its header has {values:,} values, nested {depth:,} deep")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("its header is no table of facts")
    return found


def _writer(data: bytes) -> str:
    """The version that wrote a file of an older format, if the file has it."""
    try:
        metadata = parse(data[8:])["__metadata__"]
        return f" (written by supertopic {str(parse(metadata['supertopic'].encode())['library'])[:40]})"
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
