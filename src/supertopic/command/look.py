"""What the command reports about the data before it uses them: see `corpus.look`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rich.markup import escape

from supertopic.command.cells import Column
from supertopic.command.steps import note
from supertopic.corpus.look import look_at_labels, look_at_sizes, look_at_texts

MOST_LINES = 6
Cells = Callable[[str], list[Any]]  # the cells of a column by its name


def tidy_labels(
    cells: Cells, columns: Sequence[str], separator: str | None, missing: Sequence[str]
) -> tuple[Cells, list[str]]:
    """The cells with labels written in one way, and what was found; `separator` where a cell may have several."""

    def parts(cell: Any) -> Iterator[str]:
        several = cell if isinstance(cell, list) else [cell]
        for part in several if separator is None else (own for each in several for own in cut(each)):
            if isinstance(part, str) and part.strip() and part.strip() not in missing:
                yield part if separator is None else part.strip()

    def cut(cell: Any) -> list[Any]:
        return cell.split(separator) if isinstance(cell, str) else [cell]

    def tidy(cell: Any) -> Any:
        if isinstance(cell, list):
            return [tidy(part) for part in cell]
        if not isinstance(cell, str) or cell.strip() in missing:
            return cell
        return write(cell) if separator is None else separator.join(map(write, cell.split(separator)))

    found, write = look_at_labels(part for name in columns for cell in cells(name) for part in parts(cell))
    return (lambda name: [tidy(cell) for cell in cells(name)] if name in columns else cells(name)), found


def known_labels(column: Column) -> list[Any]:
    """The known label of each row, or its labels as one text; None where it is unknown."""
    if column.y.ndim == 1:
        return [value if known else None for value, known in zip(column.y.tolist(), column.known, strict=True)]
    return [str(row) if known else None for row, known in zip(column.y.tolist(), column.known, strict=True)]


def look_at_classes(column: Column) -> list[str]:
    """What classes or labels have that is probably a mistake."""
    if column.y.ndim == 1:
        return look_at_sizes(column.y[column.known].tolist())
    sizes = np.nansum(column.y == 1, axis=0).astype(int)
    return look_at_sizes(np.repeat(np.array(column.names, dtype=object), sizes))


def look(
    texts: np.ndarray,
    column: Column | None,
    has_names: bool,
    strict: bool,
    english: bool,
    quiet: bool,
    names: Sequence[str] | None = None,
) -> tuple[np.ndarray, list[str]]:
    """Print what was found in texts and in a response; returns the corrected texts, and the sentences.

    `names` are those of rows, by default their numbers.
    """
    found = [] if column is None else list(column.findings)
    about, texts = look_at_texts(texts, known_labels(column) if column and has_names else None, english, names)
    found = about + found
    if strict and found:
        raise ValueError("\n- ".join(["--strict stops, since the data have problems:", *found]))
    if not quiet:
        show_findings(found)
    return texts, found


def show_findings(found: list[str]) -> None:
    """Print what was found, a line each, in at most six lines."""
    more = len(found) - MOST_LINES + 1 if len(found) > MOST_LINES else 0
    for sentence in found[: MOST_LINES - 1] if more else found:
        note(f"[bold]data[/bold]: {escape(sentence)}")
    if more:
        note(f"[bold]data[/bold]: and {more} more; supertopic check shows all.")
