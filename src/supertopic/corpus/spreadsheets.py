"""Sheets of spreadsheets, .xlsx and .ods, as tables of text: the only file that imports python-calamine.

The reader makes an array of all cells up to the last one, so that a file of a few bytes with one cell far away would
take all memory. The size of the parts and the place of the last cell are therefore measured first.
"""

import re
import zipfile
import zlib
from datetime import datetime
from datetime import time as clock
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

import pyarrow as pa

from supertopic.warn import warn

SUFFIXES = (".xlsx", ".ods")
SHEET = "::"  # between the name of a file and that of a sheet; no sheet of a spreadsheet has it
MOST_BYTES, MOST_PARTS, MOST_CELLS = 2**29, 10_000, 10_000_000  # unpacked bytes; packed files; cells of a sheet
PLACE = re.compile(r"([A-Za-z]{1,4})([0-9]{1,9})")
SHEET_PARTS = b"sheetData", b"table-row"
NO_CONTENT = {"style-name", "number-columns-repeated", "content-validation-name", "number-columns-spanned",
              "number-rows-spanned"}  # what an empty cell of .ods may have  # fmt: skip


def split_sheet(path: Path) -> tuple[Path, str | None]:
    """The file and the sheet of it that FILE.xlsx::SHEET names; None if it names none."""
    place, separator, sheet = str(path).partition(SHEET)
    if separator and place.lower().endswith(SUFFIXES):
        return Path(place), sheet
    return path, None


def read_sheet(path: Path, sheet: str | None, most_columns: int) -> pa.Table:
    """A sheet, the first one by default. The first row has the names; every cell is text, as in CSV."""
    try:
        import python_calamine
    except ImportError as error:
        raise ImportError(f"{path.name} needs python-calamine: pip install 'supertopic[excel]'.") from error
    unpacked = repack(path, most_columns)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(unpacked)
        names = list(book.sheet_names)
        chosen = choose_sheet(path, names, sheet)
        rows = book.get_sheet_by_name(chosen).to_python()
    except python_calamine.CalamineError as error:
        raise ValueError(f"Cannot read {path}: {error}.") from error
    except BaseException as error:  # the reader's own failure is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"Cannot read {path}: it is not a valid spreadsheet.") from error
    while rows and not any(cell != "" for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise ValueError(f"The sheet {chosen!r} of {path} is empty.")
    columns = [[as_text(cell) for cell in column] for column in zip(*rows, strict=True)]
    columns = [column for column in columns if any(column)]
    if sheet is None and len(names) > 1:
        others = ", ".join(map(repr, [name for name in names if name != chosen][:5]))
        warn(f"{path} has {len(names)} sheets; {chosen!r} is read. '{path}::NAME' reads another one: {others}.")
    arrays = [pa.array([text or None for text in column[1:]], pa.string()) for column in columns]
    return pa.Table.from_arrays(arrays, names=[column[0] for column in columns])


def choose_sheet(path: Path, names: list[str], sheet: str | None) -> str:
    """The name of the sheet to read."""
    if not names:
        raise ValueError(f"{path} has no sheets.")
    if sheet is not None and sheet not in names:
        raise ValueError(f"{path} has no sheet {sheet!r}; its sheets are {', '.join(map(repr, names))}.")
    return names[0] if sheet is None else sheet


def as_text(cell: Any) -> str:
    """A cell as CSV has it: whole numbers without a point, dates as 2024-01-31, "" for an empty cell."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else f"{cell:.15g}"
    if isinstance(cell, datetime) and cell.time() == clock():
        return str(cell.date())
    return str(cell)


def repack(path: Path, most_columns: int) -> BytesIO:
    """The file, unpacked and measured; what would take more memory than anybody can mean is refused."""
    found = BytesIO()
    try:
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(found, "w") as copy:
            parts = archive.infolist()
            total = sum(part.file_size for part in parts)
            if total > MOST_BYTES or len(parts) > MOST_PARTS:
                raise ValueError(
                    f"{path} would be unpacked to {total:,} bytes in {len(parts):,} parts; at most {MOST_BYTES:,} "
                    f"bytes in {MOST_PARTS:,} parts are read. Save it as CSV or Parquet."
                )
            if len({part.filename for part in parts}) < len(parts):
                raise zipfile.BadZipFile("two of its parts have the same name")
            for part in parts:
                data = archive.read(part)  # no more than it says that it has
                if part.filename.endswith(".xml") or any(sign in data for sign in SHEET_PARTS):
                    rows, columns = Extent().of(data)
                    if columns > most_columns or rows * columns > MOST_CELLS:
                        raise ValueError(
                            f"{path} has a cell in row {rows:,} and one in column {columns:,}; at most {MOST_CELLS:,} "
                            f"cells and {most_columns:,} columns are read. Is it a table?"
                        )
                copy.writestr(part.filename, data)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, ExpatError) as error:
        raise ValueError(f"Cannot read {path}: it is not a valid spreadsheet ({error}).") from error
    found.seek(0)
    return found


class Extent:
    """The last row and column with content in a sheet of either format."""

    def __init__(self) -> None:
        self.row = self.column = 0  # of the cell that is read, from 1; the last one where a row of .ods is repeated
        self.rows = self.columns = 0

    def of(self, data: bytes) -> tuple[int, int]:
        parser = ParserCreate()
        parser.StartElementHandler = self.begin
        parser.StartDoctypeDeclHandler = refuse_doctype
        parser.Parse(data, True)
        return self.rows, self.columns

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "row":
            self.row, self.column = whole(attributes.get("r"), self.row + 1), 0
        elif name == "c":
            found = PLACE.fullmatch(attributes.get("r", ""))
            self.column += 1
            if found:
                self.column, self.row = column_number(found[1]), int(found[2])
            elif "r" in attributes:
                raise ExpatError(f"a cell is at {attributes['r'][:20]!r}")
        elif name in ("v", "is", "f", "p"):  # the content of a cell
            self.note()
        elif name == "table":
            self.row = 0
        elif name == "table-row":
            self.row, self.column = self.row + of_ods(attributes, "number-rows-repeated"), 0
        elif name in ("table-cell", "covered-table-cell"):
            self.column += of_ods(attributes, "number-columns-repeated")
            if {key.rpartition(":")[2] for key in attributes} - NO_CONTENT:
                self.note()

    def note(self) -> None:
        """The cell has content."""
        self.rows = max(self.rows, self.row)
        self.columns = max(self.columns, self.column)


def refuse_doctype(*_: Any) -> None:
    raise ExpatError("it declares a document type")


def whole(text: str | None, otherwise: int) -> int:
    """A whole number of an attribute."""
    if text is None:
        return otherwise
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ExpatError(f"{text[:20]!r} is no number")
    return int(text)


def of_ods(attributes: dict[str, str], name: str) -> int:
    """How often a row or a cell is repeated."""
    return next((whole(value, 1) for key, value in attributes.items() if key.rpartition(":")[2] == name), 1)


def column_number(letters: str) -> int:
    """A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
