"""JSON is measured before a parser sees it: deep nesting ends the interpreter, small texts can make many objects."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

CHUNK = 2**22  # bytes
QUOTE, NEWLINE, BACKSLASH = b'"\n\\'


class Measure(NamedTuple):
    """How deep a JSON text is nested, and the most values that it can have."""

    depth: int
    values: int


def measure_json(data: bytes | bytearray) -> Measure:
    """Measure a JSON text, or lines of them, as a parser would read it up to its first error, in little memory.

    A string that is not closed ends with its line, and more may be closed than was opened: after an error a parser of
    blocks may go on with the next.
    """
    deepest, values, level, lowest, quotes = 0, 1, 0, 0, 0
    for chunk in chunks(data):
        text = np.frombuffer(chunk.replace(b"\\\\", b"  ").replace(b'\\"', b"  "), np.uint8)
        counted = quotes + np.cumsum(text == QUOTE, dtype=np.int32)
        closed = np.maximum.accumulate(np.where(text == NEWLINE, counted, 0))  # strings end with lines
        inside, quotes = (counted - closed) & 1, int(counted[-1] - closed[-1]) & 1
        structure = text[inside == 0]
        opening = (structure == ord("[")) | (structure == ord("{"))
        closing = (structure == ord("]")) | (structure == ord("}"))
        values += int(opening.sum()) + int((structure == ord(",")).sum())
        steps = np.where(opening, 1, -1)[opening | closing]
        if len(steps):
            levels = level + np.cumsum(steps)
            floor = np.minimum.accumulate(np.minimum(levels, lowest))
            deepest, level, lowest = max(deepest, int((levels - floor).max())), int(levels[-1]), int(floor[-1])
    return Measure(deepest, values)


def chunks(data: bytes | bytearray) -> Iterator[bytes | bytearray]:
    """Pieces that do not end within an escape."""
    start = 0
    while start < len(data):
        end = start + CHUNK
        while end < len(data) and data[end - 1] == BACKSLASH:
            end += 1
        yield data[start:end]
        start = end


def longest_line(data: bytes) -> int:
    """The length of the longest line."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE)
    return int(np.diff(ends, prepend=-1, append=len(data)).max()) - 1
