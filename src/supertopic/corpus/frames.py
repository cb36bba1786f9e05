"""Columns of data frames: pandas, polars, pyarrow and others through Narwhals, arrays of objects, cells of tables.

A column is read as one of four kinds: numbers, booleans, categories (text), and dates, which become years. Columns are
read when they are asked for, so that those that nobody needs may hold anything.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

NUMBER, BOOLEAN, CATEGORY, DATE = "number", "boolean", "category", "date"
KINDS = (NUMBER, BOOLEAN, CATEGORY, DATE)
TYPES: dict[str, tuple[type, ...]] = {
    BOOLEAN: (bool, np.bool_), NUMBER: (Real, Decimal, np.bool_), CATEGORY: (str,), DATE: (date, np.datetime64),
}  # fmt: skip
TRUTH = {"true": 1.0, "false": 0.0}
NA = "NA"  # a cell of a table without a number or a date
FEW = 20  # different numbers that may stand beside text in a column of a table
NAMED = 8  # columns that a message names


class Column(NamedTuple):
    """A column without missing values."""

    name: str
    kind: str  # one of `KINDS`
    values: np.ndarray  # (n_rows,): numbers, whole ones as they are; of a category texts
    levels: tuple[str, ...] = ()  # the levels of a category: in its own order if it has one, else sorted


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns of any kind; `column` reads one of them."""

    names: list[str]
    cells: list[Any]  # each column as a Series of Narwhals, or as an array
    n_rows: int
    named: bool  # columns of an array have numbers only

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: np.ndarray) -> "Frame":
        """Some of the rows."""
        return Frame(self.names, [cells[rows] for cells in self.cells], len(rows), self.named)

    def place(self, name: str) -> int:
        """The place of a column; a ValueError if there is none."""
        if name not in self.names:
            raise ValueError(f"covariates has no column {name!r}; {self.shown_names()}.")
        return self.names.index(name)

    def shown_names(self) -> str:
        """The columns, in words."""
        more = f" and {len(self.names) - NAMED} more" if len(self.names) > NAMED else ""
        return f"its columns are {', '.join(map(repr, self.names[:NAMED]))}{more}"

    def column(self, place: int) -> Column:
        """A column; a ValueError names it if a value is missing, or if it is of no known kind."""
        name, cells = self.names[place], self.cells[place]
        found = read_series(name, cells) if isinstance(cells, nw.Series) else read_cells(name, cells)
        if found.kind != CATEGORY and not np.isfinite(found.values).all():
            raise ValueError(f"The column {name!r} has infinite numbers; every number must be finite.")
        return found

    def response(self, name: str) -> np.ndarray:
        """A column as y, in which None or NaN is unknown."""
        cells = self.cells[self.place(name)]
        if isinstance(cells, nw.Series):
            numbers = cells.dtype.is_numeric() and not cells.is_null().any()
            cells = cells.to_numpy() if numbers else as_objects(cells.to_list())
        return np.array([None if is_missing(cell) else cell for cell in cells]) if cells.dtype == object else cells


def read_frame(given: Any, what: str = "covariates") -> Frame | None:
    """What a user gives as a frame, if it is one, or a column, or an array with text; None for other arrays."""
    if isinstance(given, Frame):
        return given
    if hasattr(given, "collect"):
        raise TypeError(f"{what} must be in memory, got a {type(given).__name__}; give {what}.collect().")
    refuse_duplicates([str(name) for name in getattr(given, "columns", ())], what)
    found: Any = nw.from_native(given, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(found, nw.DataFrame):
        columns = list(found.iter_columns())
        return Frame([str(series.name) for series in columns], columns, len(found), True)
    if isinstance(found, nw.Series):
        named = found.name is not None and found.name != ""
        return Frame([str(found.name) if named else "0"], [found], len(found), named)
    return frame_of_array(given, what)


def read_any_frame(given: Any, what: str) -> Frame:
    """What `read_frame` reads, and arrays of numbers, lazy frames, and dicts of columns."""
    if isinstance(given, Mapping):
        return frame_of_columns(given, what)
    # never lazy, and Narwhals refuses names that are there twice, of which `read_frame` says more
    if not nw.dependencies.is_pandas_like_dataframe(nw.to_native(given, pass_through=True)):
        found: Any = nw.from_native(given, allow_series=True, pass_through=True)
        given = found.collect() if isinstance(found, nw.LazyFrame) else given
    frame = read_frame(given, what)
    return unnamed_frame(np.asarray(given), what) if frame is None else frame


def frame_of_columns(given: Mapping[Any, Any], what: str) -> Frame:
    """A dict of columns as a frame."""
    names = list(map(str, given))
    refuse_duplicates(names, what)
    parts = [read_any_frame(values, f"{what}[{name!r}]") for name, values in given.items()]
    for name, part in zip(names, parts, strict=True):
        if len(part.cells) != 1:
            raise ValueError(f"{what}[{name!r}] must have one value for each document, got {len(part.cells)} columns.")
        if len(part) != len(parts[0]):
            raise ValueError(
                f"The columns of {what} must be equally long, but {names[0]!r} has {len(parts[0])} rows and {name!r} "
                f"has {len(part)}."
            )
    return Frame(names, [part.cells[0] for part in parts], len(parts[0]) if parts else 0, True)


def refuse_duplicates(names: list[str], what: str) -> None:
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise ValueError(f"{what} has more than one column {twice!r}; every column needs a name of its own.")


def frame_of_array(given: Any, what: str) -> Frame | None:
    """An array that has text or dates as a frame whose columns have numbers for names; None for other arrays."""
    try:
        values = np.asarray(given)
    except ValueError:  # rows of different lengths
        return None
    if values.dtype.kind in "UO":
        values = np.array(given, dtype=object)  # a list of numbers and texts keeps its numbers
        words = (str, date, np.datetime64)
        if values.ndim == 0 or not any(isinstance(cell, words) for cell in values.flat):
            return None
    elif values.dtype.kind != "M":
        return None
    return unnamed_frame(values, what)


def unnamed_frame(values: np.ndarray, what: str = "covariates") -> Frame:
    """An array (n_rows,) or (n_rows, n_columns) as a frame whose columns have numbers for names."""
    if values.ndim not in (1, 2):
        raise ValueError(
            f"{what} must have one value for each document, or a row of them: one or two dimensions, got {values.ndim}."
        )
    columns = [values] if values.ndim == 1 else list(values.T)
    return Frame([str(i) for i in range(len(columns))], columns, len(values), False)


def frame_of_cells(cells: Mapping[str, Sequence[Any]], kinds: Mapping[str, str] | None = None) -> Frame:
    """Columns of a table whose text may stand for numbers or dates; `kinds` has the kinds that are known."""
    columns = [as_objects(typed(name, column, (kinds or {}).get(name))) for name, column in cells.items()]
    return Frame(list(cells), columns, len(columns[0]) if columns else 0, True)


def typed(name: str, cells: Sequence[Any], kind: str | None) -> Sequence[Any]:
    """Cells of a table as values of a kind; without one, texts are numbers or dates where all cells are such texts."""
    if kind == CATEGORY:
        return [cell if cell is None else str(cell) for cell in cells]
    texts = [cell for cell in cells if isinstance(cell, str)]
    if not texts or (kind is None and len(texts) < sum(cell is not None for cell in cells)):
        return cells
    for reader in [READERS[kind]] if kind else [READERS[NUMBER], READERS[DATE]]:
        try:
            return [read_cell(cell, reader) for cell in cells]
        except ValueError:
            continue
    numbers = {text for text in texts if is_number(text)}
    if len(numbers) > FEW:  # one misspelt number would make each of them a level
        strange = next(text for text in texts if text not in numbers)
        raise ValueError(
            f"The column {name!r} has {len(numbers):,} different numbers, but also {strange[:40]!r}; a column of "
            "numbers may have empty cells or NA where they are unknown, and nothing else."
        )
    return cells


def read_cell(cell: Any, reader: Callable[[str], Any]) -> Any:
    """A text as a value, None for NA; a number or a date as it is."""
    if not isinstance(cell, str):
        return cell
    return None if cell.strip() == NA else reader(cell.strip())


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_truth(text: str) -> float:
    """A boolean of a table as a number."""
    return TRUTH[text.lower()] if text.lower() in TRUTH else float(text)


READERS: dict[str, Callable[[str], Any]] = {NUMBER: float, BOOLEAN: as_truth, DATE: datetime.fromisoformat}


def as_objects(values: Iterable[Any]) -> np.ndarray:
    """Values of any kind as an array of one dimension; with None in it NumPy does not look into lists."""
    return np.array([*values, None], dtype=object)[:-1]


def read_series(name: str, series: Any) -> Column:
    """A column of a data frame."""
    kind = series.dtype
    if kind in (nw.Object, nw.Unknown):
        return read_cells(name, as_objects(series.to_list()))
    refuse_missing(name, series.is_null().to_numpy())
    if kind.is_numeric():
        whole = kind.is_integer() and kind not in (nw.Int128, nw.UInt128)
        values = (series if whole else series.cast(nw.Float64)).to_numpy()
        values = values if values.dtype.kind in "iu" else values.astype(float)  # a long identifier is no float
        refuse_missing(name, np.isnan(values))
        return Column(name, NUMBER, values)
    if kind == nw.Boolean:
        return Column(name, BOOLEAN, np.array(series.to_list(), dtype=float))
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return read_texts(name, series.to_list(), own_levels(series))
    if kind in (nw.Date, nw.Datetime):
        return Column(name, DATE, years(series.dt.timestamp("us").to_numpy().astype("datetime64[us]")))
    raise TypeError(unknown_kind(name, str(kind)))


def own_levels(series: Any) -> list[str] | None:
    """The levels of a category whose order somebody has chosen; None for others, whose levels are sorted."""
    if series.dtype == nw.Enum:
        return list(map(str, series.dtype.categories))
    if series.implementation.is_pandas_like() and hasattr(series.to_native(), "cat"):
        return list(map(str, series.cat.get_categories().to_list()))
    return None


def read_cells(name: str, cells: np.ndarray) -> Column:
    """A column of an array."""
    if cells.dtype.kind == "M":
        refuse_missing(name, np.isnat(cells))
        return Column(name, DATE, years(cells))
    if cells.dtype.kind in "biuf":
        refuse_missing(name, np.isnan(cells))
        values = cells if cells.dtype.kind in "iu" else cells.astype(float)
        return Column(name, BOOLEAN if cells.dtype == bool else NUMBER, values)
    if cells.dtype.kind == "m":  # Python takes them for whole numbers
        raise TypeError(unknown_kind(name, str(cells.dtype)))
    refuse_missing(name, np.array([is_missing(cell) for cell in cells], dtype=bool))
    kind = next((kind for kind, types in TYPES.items() if all(isinstance(cell, types) for cell in cells)), None)
    if kind is None:
        held = sorted({type(cell).__name__ for cell in cells})
        raise TypeError(unknown_kind(name, " and ".join(held)))
    if kind == CATEGORY:
        return read_texts(name, cells, None)
    if kind == DATE:
        return Column(name, DATE, years(np.array(list(map(utc, cells)), dtype="datetime64[us]")))
    try:
        return Column(name, kind, np.array([float(cell) for cell in cells]))
    except OverflowError:
        raise ValueError(f"The column {name!r} has numbers that are too large.") from None


def read_texts(name: str, cells: Iterable[Any], levels: list[str] | None) -> Column:
    values = as_objects(map(str, cells))
    found = sorted(set(values)) if levels is None else levels
    if len(set(found)) < len(found):
        raise ValueError(f"The column {name!r} has two levels that are written in the same way.")
    return Column(name, CATEGORY, values, tuple(found))


def utc(day: Any) -> Any:
    """A date without a time zone."""
    return day.astimezone(UTC).replace(tzinfo=None) if getattr(day, "tzinfo", None) else day


def years(dates: np.ndarray) -> np.ndarray:
    """Dates as years: the calendar year, and the part of it that has passed."""
    year = dates.astype("datetime64[Y]")
    first, last = year.astype("datetime64[us]"), (year + 1).astype("datetime64[us]")
    return 1970.0 + year.astype(np.int64) + (dates.astype("datetime64[us]") - first) / (last - first)


def is_missing(value: Any) -> bool:
    """Whether a value stands for nothing: None, NaN, pandas' NA and NaT."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def refuse_missing(name: str, missing: np.ndarray) -> None:
    if missing.any():
        raise ValueError(
            f"The column {name!r} is missing in {missing.sum():,} of {len(missing):,} rows, the first at index "
            f"{missing.argmax()}. Leave these documents out, or fill the column: text with a level of its own such as "
            "'unknown', numbers with their mean."
        )


def unknown_kind(name: str, held: str) -> str:
    return (
        f"The column {name!r} holds {held} values; expected numbers, booleans, text, categories or dates. Convert "
        "the column first."
    )


def build_frame(columns: Mapping[str, Any], library: Any) -> Any:
    """A data frame of a library whose columns have one type each: polars, pyarrow."""
    return nw.from_dict({name: as_column(values) for name, values in columns.items()}, backend=library).to_native()


def as_column(values: Any) -> Any:
    """A column of one type: beside texts, numbers become texts, too."""
    values = values if isinstance(values, np.ndarray) else as_objects(values)
    if values.dtype != object:
        return values
    cells = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    is_text = [isinstance(cell, str) for cell in cells if cell is not None]
    if any(is_text) and not all(is_text):
        return [cell if cell is None else str(cell) for cell in cells]
    return [list(cell) if isinstance(cell, tuple) else cell for cell in cells]


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows of a data frame."""
    return list(nw.from_native(frame, eager_only=True).iter_rows(named=True))


def take(values: Any, rows: np.ndarray) -> Any:
    """Some rows of a list, an array, a sparse matrix, a column or a data frame of any library, in this order."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if issparse(values):
        return values.tocsr()[rows]
    found: Any = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(found, nw.DataFrame | nw.Series):
        return nw.to_native(found[rows])
    return [values[i] for i in rows] if isinstance(values, Sequence) else values[rows]
