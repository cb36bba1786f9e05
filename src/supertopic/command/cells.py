"""From the cells of a table to y: what kind of response a column holds, and its values."""

from typing import Any, NamedTuple

import numpy as np

RESPONSES = ("class", "labels", "rating", "count")
FEW = 20  # whole numbers with at most this many different values are taken for classes
YEARS = 1000, 2100  # what numbers that look like years are between
# share of the cells that may be different from each other, in a small table and in a large one; above, they are ids
MOST_DIFFERENT, MOST_OF_MANY, MANY = 0.9, 0.5, 1000
MANY_SEPARATORS = 0.05  # share of the cells that must hold the separator to be taken for lists of labels


class Column(NamedTuple):
    """A column of the table as a response."""

    response: str  # one of RESPONSES
    why: str
    y: np.ndarray  # (n_docs,), or (n_docs, n_labels)
    known: np.ndarray  # (n_docs,) bool
    names: list[str]  # of the labels


def read_response(cells: list, response: str, separator: str) -> Column:
    """The response that is asked for, or with "auto" the one that the cells look like."""
    why = "asked for"
    if response == "auto":
        response, why = guess(cells, separator)
    known = np.array([cell is not None for cell in cells])
    names: list[str] = []
    if response == "labels":
        y, names = as_labels(cells, separator)
    elif response == "class":
        y = as_classes(cells)
    else:
        y = as_numbers(cells, "the response", f"--response {response}")
    return Column(response, why, y, known, names)


def without_missing(cells: list, words: list[str]) -> tuple[list, int]:
    """The cells with None where one of some words stands, and how many these are."""
    missing = [isinstance(cell, str) and cell.strip() in words for cell in cells]
    return [None if gone else cell for cell, gone in zip(cells, missing, strict=True)], sum(missing)


def guess(cells: list, separator: str) -> tuple[str, str]:
    """What the cells look like, and why."""
    known = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, list) for cell in known):
        return "labels", "the cells are lists"
    numbers = [number for cell in known if (number := as_number(cell)) is not None]
    if len(numbers) < len(known) or not known or any(isinstance(cell, bool) for cell in known):
        held = sum(separator in str(cell) for cell in known)
        if known and held >= MANY_SEPARATORS * len(known):
            return "labels", f"{held} of {len(known)} cells hold the separator {separator!r}"
        different = len(set(map(str, known)))
        if are_ids(different, len(known)):
            raise ValueError(
                f"{different:,} of the {len(known):,} cells are different, such as {str(known[0])[:40]!r}: that is no "
                "class. Is it the right column? --response class takes it all the same."
            )
        return "class", "the cells are text"
    different = len(set(numbers))
    if all(YEARS[0] <= number <= YEARS[1] for number in numbers) and different > FEW:
        raise ValueError(
            f"The numbers look like years ({min(numbers):.0f} to {max(numbers):.0f}), which are neither classes nor "
            "counts; --response rating (or class, count) says what they are to be."
        )
    if are_ids(different, len(known)) and all(number == int(number) for number in numbers):
        raise ValueError(
            f"The {len(known):,} cells hold {different:,} different whole numbers, as ids do: --response count or "
            "rating, if they are what is to be explained."
        )
    if any(number != int(number) for number in numbers):
        return "rating", "the cells are numbers, not all of them whole"
    if different <= FEW:
        return "class", f"the cells are whole numbers with {different} different values"
    if min(numbers) < 0:
        return "rating", "the cells are whole numbers, some of them negative"
    return "count", f"the cells are whole numbers >= 0 with {different} different values"


def are_ids(different: int, n_cells: int) -> bool:
    """Whether so many cells with so many different values are ids rather than responses."""
    return different > (MOST_OF_MANY if n_cells >= MANY else MOST_DIFFERENT) * n_cells and different > FEW


def as_number(cell: Any) -> float | None:
    """A cell as a finite number, or None."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def as_numbers(cells: list, column: str, option: str) -> np.ndarray:
    """Numbers, NaN where the cell is empty; the option is what asks for them."""
    y = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell is not None:
            number = as_number(cell)
            if number is None:
                raise ValueError(
                    f"Row {i + 1} of {column} holds {str(cell)[:40]!r}, which is no number; {option} needs numbers."
                )
            y[i] = number
    return y


def as_classes(cells: list) -> np.ndarray:
    """Classes as an object array: whole numbers where every cell is one, else text; None where the cell is empty."""
    if any(isinstance(cell, list) for cell in cells):
        raise ValueError("The cells are lists; use --response labels.")
    known = [cell for cell in cells if cell is not None]
    try:
        if all(isinstance(cell, str) and str(int(cell)) == cell for cell in known):
            cells = [None if cell is None else int(cell) for cell in cells]
    except ValueError:
        pass
    return np.array(cells, dtype=object)


def as_labels(cells: list, separator: str, least: int = 2) -> tuple[np.ndarray, list[str]]:
    """A 0/1 indicator matrix, NaN where the cell is empty, and the names of its columns. An empty list has no label."""
    sets: list[set[str] | None] = []
    for cell in cells:
        parts = cell if isinstance(cell, list) or cell is None else str(cell).split(separator)
        sets.append(None if parts is None else {str(part).strip() for part in parts} - {"", "None"})
    names = sorted(set().union(*(labels for labels in sets if labels)))
    if len(names) < least:
        raise ValueError(f"The column has {len(names)} different labels; at least {least} are needed.")
    y = np.full((len(cells), len(names)), np.nan)
    for row, labels in zip(y, sets, strict=True):
        if labels is not None:
            row[:] = [name in labels for name in names]
    return y, names


def as_text(cell: Any) -> str:
    return "" if cell is None else str(cell)
