"""Shares of topics by class, by group or over time, in the documents of a page."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from supertopic.model.responses.classes import ClassResponse
from supertopic.report.evaluate import Z90
from supertopic.report.page_documents import Shown
from supertopic.report.page_numbers import few
from supertopic.warn import warn

MOST_LEVELS = 12  # groups that are shown by themselves; the others are put together
MOST_PERIODS = 30
BINS = 6  # of a number
YEARS = 1800, 2099
MOST_UNIQUE = 0.5  # different values of a group, as a share of the documents, above which there is a warning
OTHERS, UNKNOWN = "others", -1
ISO = "ISO 8601"
FORMATS = (ISO, "%Y/%m/%d", "%Y-%m", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %Y",
           "%B %Y", "%a, %d %b %Y", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")  # fmt: skip
TIME = re.compile(r"[T ,]+\d{1,2}:\d{2}.*$")


class Grouping(NamedTuple):
    """Which group each document is in."""

    name: str
    kind: str  # "group", "number" or "time"
    levels: list[str]
    place: (
        np.ndarray
    )  # (n_docs,): -1 where it is unknown; or (n_docs, n_levels) bool: a document may have several labels

    def documents(self, level: int) -> np.ndarray:
        """The documents of a group."""
        return np.flatnonzero(self.place[:, level] if self.place.ndim == 2 else self.place == level)


def read_by(by: Any, n_docs: int) -> list[Grouping]:
    """Groupings from a column, from a data frame or a dict of columns."""
    if by is None:
        return []
    if hasattr(by, "columns"):
        columns = {str(name): by[name] for name in by.columns}
    elif isinstance(by, dict):
        columns = {str(name): values for name, values in by.items()}
    else:
        columns = {str(getattr(by, "name", None) or "group"): by}
    found = []
    for name, values in columns.items():
        cells = list(values)
        if len(cells) != n_docs:
            raise ValueError(
                f"There are {n_docs} texts, but by has {len(cells)} values of {name!r}; give one for each."
            )
        found.append(group(name, cells))
    return found


def group(name: str, cells: list[Any]) -> Grouping:
    """The groups of a column: dates become periods, many different numbers become ranges."""
    known = [None if is_missing(cell) else cell for cell in cells]
    values = [value for value in known if value is not None]
    if not values:
        raise ValueError(f"by has no known value of {name!r}.")
    dates = read_dates(known)
    if dates is not None:
        return Grouping(name, "time", *periods(dates))
    numbers = all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in values)
    if numbers and are_years(values):
        return Grouping(name, "time", *years([None if v is None else int(v) for v in known]))
    if numbers and len(set(values)) > MOST_LEVELS:
        return Grouping(name, "number", *ranges(np.array([np.nan if v is None else float(v) for v in known])))
    texts = [None if value is None else str(value) for value in known]
    sizes = Counter(text for text in texts if text is not None)
    if not numbers and len(sizes) > max(MOST_LEVELS, MOST_UNIQUE * len(values)):
        warn(
            f"by: {len(sizes):,} of {len(values):,} values of {name!r} are different, so that most groups have one "
            f"document. Give groups of several documents, or dates written as 2024-05-31."
        )
    if numbers:
        levels = [str(value) for value in sorted(set(values))]
    else:
        levels = [text for text, _ in sizes.most_common(MOST_LEVELS)]
        levels += [OTHERS] if len(sizes) > MOST_LEVELS else []
    place = {level: i for i, level in enumerate(levels)}
    last = len(levels) - 1
    return Grouping(name, "group", levels, np.array([UNKNOWN if t is None else place.get(t, last) for t in texts]))


def is_missing(cell: Any) -> bool:
    return cell is None or bool(cell != cell) or (isinstance(cell, str) and not cell.strip())


def as_date(cell: Any) -> date | None:
    """A date or a time; None for anything else."""
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[D]").item()
    if isinstance(cell, datetime):
        return cell.date()
    return cell if isinstance(cell, date) else None


def read_dates(cells: list[Any]) -> list[date | None] | None:
    """The dates of cells, None for an unknown one; None if not all known cells are dates in the same format."""
    texts = [cell.strip() if isinstance(cell, str) else None for cell in cells]
    if not any(texts):
        found = [as_date(cell) for cell in cells]
        return found if all(a is not None for a, b in zip(found, cells, strict=True) if b is not None) else None
    if any(text is None and cell is not None for text, cell in zip(texts, cells, strict=True)):
        found = [as_date(cell) if text is None else parse(text, ISO) for text, cell in zip(texts, cells, strict=True)]
        return found if sum(day is not None for day in found) == sum(cell is not None for cell in cells) else None
    ways, first = [], next(text for text in texts if text)
    for way in (way for way in FORMATS if parse(first, way)):
        found = [None if text is None else parse(text, way) for text in texts]
        if all((day is None) == (text is None) for day, text in zip(found, texts, strict=True)):
            ways.append(found)
    # 03/04/2024 may be in March or in April: without a day after the 12th it is unknown which
    return ways[0] if ways and all(way == ways[0] for way in ways) else None


def parse(text: str, way: str) -> date | None:
    """The date at the beginning of a text, before the time of the day."""
    day = TIME.sub("", text)
    try:
        return date.fromisoformat(text[:10]) if way == ISO else datetime.strptime(day, way).date()
    except ValueError:
        return None


def periods(days: list[date | None]) -> tuple[list[str], np.ndarray]:
    """Months, quarters or years: the shortest of which there are not too many. Empty ones in between are kept."""
    known = [day for day in days if day is not None]
    first, last = min(known), max(known)
    months = 12 * (last.year - first.year) + last.month - first.month + 1
    step = next(
        (step for step in (1, 3, 12) if -(-months // step) <= MOST_PERIODS), 12 * -(-months // (12 * MOST_PERIODS))
    )
    start = 12 * first.year + (first.month - 1) // min(step, 12) * min(step, 12)
    index = [UNKNOWN if day is None else (12 * day.year + day.month - 1 - start) // step for day in days]
    names = []
    for i in range(max(index) + 1):
        year, month = divmod(start + i * step, 12)
        names.append(
            f"{year}-{month + 1:02d}" if step == 1 else f"{year} Q{month // 3 + 1}" if step == 3 else str(year)
        )
    return names, np.array(index)


def are_years(values: list[Any]) -> bool:
    """Whether numbers are probably years: whole numbers of four digits that begin with 18, 19 or 20."""
    return len(set(values)) > 1 and all(YEARS[0] <= value <= YEARS[1] and value == int(value) for value in values)


def years(values: list[int | None]) -> tuple[list[str], np.ndarray]:
    """Years, or several years each if there are too many. Empty ones in between are kept."""
    known = [value for value in values if value is not None]
    first, last = min(known), max(known)
    step = -(-(last - first + 1) // MOST_PERIODS)
    index = [UNKNOWN if value is None else (value - first) // step for value in values]
    return [str(first + i * step) for i in range(max(index) + 1)], np.array(index)


def ranges(values: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Ranges with about as many documents each."""
    edges = np.unique(np.nanquantile(values, np.linspace(0, 1, BINS + 1)))
    index = np.clip(np.searchsorted(edges, values, "right") - 1, 0, max(len(edges) - 2, 0))
    names = [f"{round_edge(a)} to {round_edge(b)}" for a, b in itertools.pairwise(edges)] or [round_edge(edges[0])]
    return names, np.where(np.isnan(values), UNKNOWN, index)


def round_edge(value: float) -> str:
    """Three digits, or all that are before the decimal point."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def describe_groups(shown: Shown, by: Iterable[Grouping], what: str) -> list[dict[str, Any]]:
    """The mean share of each topic in each group with the half of its 90 % interval, and how well it is predicted.

    The first groups are those of the response, which is called `what`.
    """
    groupings = [grouping._replace(place=grouping.place[shown.rows]) for grouping in by]
    classes = shown.classes()
    if shown.truth is not None and isinstance(shown.response, ClassResponse) and shown.response.multilabel:
        names = [str(name) for name in shown.response.labels]
        groupings.insert(0, Grouping("label", "class", names, shown.truth == 1))
    elif classes is not None:
        third = shown.response.labels is None
        name = f"{what}{', in thirds' if third else ''}"
        groupings.insert(0, Grouping(name, "class", classes[1], classes[0]))
    known, wrong, found = shown.known, shown.wrong(), []
    for grouping in groupings:
        rows = []
        for i, level in enumerate(grouping.levels):
            own = grouping.documents(i)
            part, n = shown.shares[own], len(own)
            mean = part.mean(axis=0) if n else np.full(shown.shares.shape[1], np.nan)
            half = Z90 * part.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(mean), np.nan)
            right = float(1.0 - wrong[own][known[own]].mean()) if known[own].any() else None
            row = {"name": level, "documents": n, "share": few(mean), "half": few(half, 2)}
            rows.append(row | {"right": None if right is None else few(right)})
        found.append({"name": grouping.name, "kind": grouping.kind, "levels": rows})
    return found
