"""From the cells of a table to y: what kind of response a column holds, and its values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from supertopic.model.responses.values import is_unknown

FEW = 20  # whole numbers with at most this many different values are taken for classes
SHOWN = 8  # largest number of names in a message
TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
YEARS = 1000, 2100  # smallest and largest number that looks like a year
# cells are ids if a larger share of them differs from each other: in a small table, and in one of MANY rows or more
MOST_DIFFERENT, MOST_OF_MANY, MANY = 0.9, 0.5, 1000
WHOLE = re.compile(r"0|-?[1-9][0-9]*")
MANY_SEPARATORS = 0.05  # share of the cells that must hold the separator to be taken for lists of labels


class Column(NamedTuple):
    """A column of the table, or several, as a response."""

    y: np.ndarray  # (n_docs,), or (n_docs, n)
    names: Sequence[str] = ()  # the names of the columns of y, if they have some
    n_missing: int = 0  # cells with a word that means unknown
    options: Mapping[str, Any] = {}  # what the estimator has to know of it
    response: str = ""  # the name of its kind
    why: str = ""
    findings: Sequence[str] = ()  # what is probably a mistake, in sentences

    @property
    def known(self) -> np.ndarray:
        """The documents whose response is known, (n_docs,) bool."""
        unknown = is_unknown(self.y, None).reshape(len(self.y), -1)
        return np.asarray(~unknown.all(axis=1))

    @property
    def target(self) -> Any:
        """y as estimators take it: labels and numbers have names."""
        return NamedColumns(self.y, list(self.names)) if self.names else self.y


@dataclass(frozen=True)
class NamedColumns:
    """A column of numbers, or several, with names, which estimators read as they read those of a DataFrame."""

    values: np.ndarray
    columns: list[str]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: np.ndarray) -> "NamedColumns":
        return NamedColumns(self.values[rows], self.columns)


def without(cells: list, missing: Sequence[str]) -> tuple[list, int]:
    """The cells, None where one holds a word that means unknown, and how many do."""
    unknown = [isinstance(cell, str) and cell.strip() in missing for cell in cells]
    return [None if gone else cell for cell, gone in zip(cells, unknown, strict=True)], sum(unknown)


def guess(cells: list, separator: str) -> tuple[str, str]:
    """What the cells look like, and why."""
    known = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, list) for cell in known):
        return "labels", "the cells are lists"
    numbers = [number for cell in known if (number := as_number(cell)) is not None]
    if known and len(numbers) == len(known) and not any(isinstance(cell, bool) for cell in known):
        return guess_numbers(numbers)
    held = sum(separator in str(cell) for cell in known)
    if known and held >= MANY_SEPARATORS * len(known):
        return "labels", f"{held} of {len(known)} cells contain the separator {separator!r}"
    different = len(set(map(str, known)))
    if are_ids(different, len(known)):
        raise ValueError(
            f"{different:,} of the {len(known):,} cells are different, such as {str(known[0])[:40]!r}, so they are not "
            "classes. Is it the right column? --response class accepts it."
        )
    return "class", "the cells are text" + hint_of_lists(known, separator)


def hint_of_lists(known: list, separator: str) -> str:
    """Half a sentence about cells that are lists of other cells."""
    lists = [cell for cell in map(str, known) if separator in cell]
    names = {cell.strip() for cell in map(str, known)}
    if not any(all(part.strip() in names for part in cell.split(separator)) for cell in lists):
        return ""
    return f"; {len(lists):,} of them contain {separator!r}, and --response labels takes these for lists of labels"


def guess_numbers(numbers: list[float]) -> tuple[str, str]:
    """What numbers look like, and why."""
    different, low, high = len(set(numbers)), min(numbers), max(numbers)
    whole = all(number == int(number) for number in numbers)
    if YEARS[0] <= low and high <= YEARS[1] and different > FEW:
        raise ValueError(
            f"The numbers look like years ({low:.0f} to {high:.0f}), which are neither classes nor counts; choose with "
            "--response rating (or class, count)."
        )
    if are_ids(different, len(numbers)) and whole:
        raise ValueError(
            f"The {len(numbers):,} cells hold {different:,} different whole numbers, as ids do; if they are the "
            "response, use --response count or rating."
        )
    if not whole:
        return "rating", "the cells are numbers, not all of them whole"
    if different <= FEW:
        return "class", f"the cells are whole numbers with {different} different values"
    if low < 0:
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


def as_whole(cell: str) -> int | str:
    """A whole number, or the text as it is."""
    return int(cell) if cell.strip().isdecimal() else cell


def as_numbers(cells: list, column: str, option: str) -> np.ndarray:
    """Numbers, NaN where the cell is empty; the message names the option that needs them."""
    y = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell is not None:
            number = as_number(cell)
            if number is None:
                raise ValueError(
                    f"Row {i + 1} of {column} holds {str(cell)[:40]!r}, which is not a number; {option} needs numbers."
                )
            y[i] = number
    return y


def numbers_if_all(cells: Sequence[Any]) -> list[Any]:
    """Numbers, None where a cell is empty or NA, if all other cells are numbers; else the cells. CSV has only text."""
    known = [None if isinstance(cell, str) and cell.strip() in ("", "NA") else cell for cell in cells]
    numbers = [None if isinstance(cell, bool) else as_number(cell) for cell in known]
    if [number is None for number in numbers] != [cell is None for cell in known]:
        return list(cells)
    return [None if number is None else as_grade(number) for number in numbers]


def as_events(cells: list, column: str) -> np.ndarray:
    """1 where the cell says that the event came, 0 where it says that it did not, NaN where it is empty."""
    y = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell is not None:
            word = str(cell).strip().lower()
            number = as_number(cell)
            if word not in TRUTH and number not in (0, 1):
                raise ValueError(
                    f"Row {i + 1} of {column!r} holds {str(cell)[:40]!r}; --event needs 1 or true where the event "
                    "came, and 0 or false where the document is censored."
                )
            y[i] = TRUTH.get(word, number)
    return y


def as_classes(cells: list) -> np.ndarray:
    """Classes as an object array: whole numbers where every cell is one, else text; None where the cell is empty."""
    if any(isinstance(cell, list) for cell in cells):
        raise ValueError("The cells are lists; use --response labels.")
    cells = [cell if cell is None or isinstance(cell, str | int | float) else str(cell) for cell in cells]  # dates
    if all(cell is None or (isinstance(cell, str) and WHOLE.fullmatch(cell)) for cell in cells):
        cells = [None if cell is None else int(cell) for cell in cells]
    return np.array(cells, dtype=object)


def as_grades(cells: list, order: str | None, label: str) -> tuple[np.ndarray, list[Any]]:
    """Ordered classes as an object array, None where the cell is empty, and the classes, the lowest first."""
    if any(isinstance(cell, list) for cell in cells):
        raise ValueError("The cells are lists; ordered classes are one for each document.")
    names = [None if cell is None else grade_name(cell) for cell in cells]
    there = list(dict.fromkeys(name for name in names if name is not None))
    if order is not None:
        given = [grade_name(part) for part in order.split(",")]
        if len(given) < 2 or len(set(given)) < len(given) or "" in given:
            raise ValueError(
                "--order lists two or more different classes, the lowest first, with commas between them, got "
                f"{order!r}."
            )
    elif any(as_number(name) is None for name in there):
        shown = ", ".join(repr(name[:40]) for name in there[:SHOWN])
        raise ValueError(
            f"The column {label!r} holds names, whose order is unknown: give it with --order, the lowest first. There "
            f"are {shown}{' ...' if len(there) > SHOWN else '.'}"
        )
    else:
        given = sorted(there, key=float)
    for row, name in enumerate(names, 1):
        if name is not None and name not in given:
            raise ValueError(
                f"Row {row} of {label!r} holds {name[:40]!r}, which is not in --order {order}. If it means unknown, "
                "--missing names it."
            )
    numbers = all(as_number(name) is not None for name in given)
    values = {name: as_grade(name) if numbers else name for name in given}
    return np.array([None if name is None else values[name] for name in names], dtype=object), list(values.values())


def grade_name(cell: Any) -> str:
    """How an ordered class is written, whatever kind of cell it is in: 3 and 3.0 are the same."""
    number = as_number(cell)
    return str(cell).strip() if number is None else str(as_grade(number))


def as_grade(number: float | str) -> int | float:
    """A number, as a whole one if it is one."""
    number = float(number)
    return int(number) if number == int(number) else number


def as_labels(cells: list, separator: str) -> tuple[np.ndarray, list[str]]:
    """A 0/1 indicator matrix, NaN where the cell is empty, and the names of its columns. An empty list has no label."""
    sets = [split_labels(cell, separator) for cell in cells]
    names = sorted(set().union(*filter(None, sets)))
    if len(names) < 2:
        raise ValueError(f"The column has {len(names)} different labels; at least two are needed.")
    return indicators(sets, names), names


def split_labels(cell: Any, separator: str) -> set[str] | None:
    """The labels of a cell; None if it is empty."""
    if cell is None:
        return None
    parts = cell if isinstance(cell, list) else str(cell).split(separator)
    return {str(part).strip() for part in parts} - {"", "None"}


def indicators(sets: list[set[str] | None], names: Iterable[str]) -> np.ndarray:
    """Sets of labels as columns of 0 and 1, (n_docs, n_labels); NaN where there is none."""
    return np.array([[np.nan if labels is None else name in labels for name in names] for labels in sets], dtype=float)
