"""The console: names and paths are printed as text, and no stream of the command is missing."""

import csv
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment

# what moves the cursor, changes a terminal, or the direction of writing; tabs and line ends are let be
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FORMULA = re.compile("[=+\\-@\t\r＝＋－＠]")  # noqa: RUF001
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
WIDTH = 80  # where COLUMNS is 0


def plain(text: str) -> str:
    """A text without characters that a terminal would obey."""
    return CONTROL.sub("\ufffd", text)


class PlainConsole(Console):
    """A console that prints no control characters but its own."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self._width = None  # else COLUMNS would count as it is at the import, not as it is when something is printed

    @property
    def size(self) -> ConsoleDimensions:
        width, height = super().size
        return ConsoleDimensions(width or WIDTH, height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


def open_streams() -> None:
    """Give the command the streams that its caller has closed: it reads nothing, and what it prints is dropped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def drop_output() -> None:
    """Print no more, as nobody reads it: else Python would try once more when it ends."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, io.UnsupportedOperation):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    os.close(devnull)


def harmless(cell: Any) -> Any:
    """A cell of CSV that no spreadsheet takes for a formula: an apostrophe says that it is text. Numbers stay."""
    if isinstance(cell, str) and FORMULA.match(cell) and not NUMBER.fullmatch(cell):
        return "'" + cell
    return cell


def write_csv(file: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows as CSV; on a terminal also without control characters."""
    shown = file.isatty()

    def cells(row: Iterable[Any]) -> Iterator[Any]:
        for cell in map(harmless, row):
            yield plain(cell) if shown and isinstance(cell, str) else cell

    csv.writer(file).writerows(map(cells, rows))
