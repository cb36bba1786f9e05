"""Reading tables of documents: CSV, TSV, JSON lines and Parquet, all through pyarrow, and spreadsheets."""

import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from supertopic.corpus.json_text import longest_line, measure_json
from supertopic.corpus.spreadsheets import SUFFIXES, read_sheet, split_sheet
from supertopic.corpus.writing import whole_file
from supertopic.warn import warn

BLOCK = 2**30  # bytes that are parsed at once; no row may be longer
READERS = {".csv": ",", ".tsv": "\t", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet"}
READERS |= dict.fromkeys(SUFFIXES, "sheet")
MOST_COLUMNS, MOST_DEPTH, MOST_LINE = 10_000, 64, 2**27  # columns of a table; nesting of JSON; bytes of a JSON line
STDIN = Path("-")
FIRST_ROW, QUOTED = re.compile(rb'(?:[^"\n]++|"[^"]*+"?)*+'), re.compile(rb'"[^"]*+"?')
KEY = re.compile(rb'"(?:[^"\\\n]|\\.)*+"\s*:')
NUMBER, DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+([.,]\d+)?\s*"), re.compile(r"\d,\d")


def read_table(path: Path) -> pa.Table:
    """A table from a file, or CSV from the standard input for "-". In CSV, TSV and spreadsheets every cell is text."""
    if path == STDIN:
        return _read_text(path, sys.stdin.buffer.read(), ",")
    path, sheet = split_sheet(path)
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in (".gz", ".bz2")]
    kind = READERS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise ValueError(f"Cannot tell the format of {path.name}; expected a name that ends in {', '.join(READERS)}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    if kind == "sheet":
        return read_sheet(path, sheet, MOST_COLUMNS)
    try:
        if kind == "parquet":
            check_width(path, pyarrow.parquet.read_metadata(path).num_columns)
            return pyarrow.parquet.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"Cannot read {path}: {error}.") from error
    with pa.input_stream(path) as file:
        data = file.read()
    return _read_json(path, data) if kind == "json" else _read_text(path, data, kind)


def check_width(path: Path, n_columns: int) -> None:
    """Refuse a table with more columns than anybody can mean: each takes memory, however little it holds."""
    if n_columns > MOST_COLUMNS:
        raise ValueError(f"{path} has {n_columns:,} columns; at most {MOST_COLUMNS:,} are read. Is it a table?")


def column(table: pa.Table, path: Path, name: str) -> list[Any]:
    """A column as a list in which None is an empty cell."""
    if name not in table.column_names:
        raise ValueError(f"{path} has no column {name!r}; its columns are {', '.join(table.column_names)}.")
    if table.column_names.count(name) > 1:
        raise ValueError(f"{path} has more than one column {name!r}.")
    try:
        cells: list[Any] = table.column(name).to_pylist()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: the column {name!r} holds a byte that is not UTF-8 ({error}).") from error
    return cells


def _read_json(path: Path, data: bytes) -> pa.Table:
    """JSON lines. The parser ends the interpreter on deep nesting, which is therefore measured first."""
    refuse_bytes(path, data, "utf8", "UTF-8, as JSON has to be")
    longest, (depth, _) = longest_line(data), measure_json(data)
    if longest > MOST_LINE:
        raise ValueError(f"{path} has a line of {longest:,} bytes; a document may have {MOST_LINE:,}.")
    if depth > MOST_DEPTH:
        raise ValueError(f"{path} is nested {depth:,} deep; at most {MOST_DEPTH} levels are read.")
    check_width(path, len(set(KEY.findall(data[: data.find(b"\n") + 1 or len(data)]))))
    try:
        return pyarrow.json.read_json(pa.BufferReader(data), read_options=pyarrow.json.ReadOptions(block_size=BLOCK))
    except pa.ArrowInvalid as error:
        raise ValueError(f"Cannot read {path}: {error}.") from error


def refuse_bytes(path: Path, data: bytes, encoding: str, expected: str) -> None:
    """Say where a byte stands that an encoding does not have."""
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line:,}: the byte 0x{data[error.start]:02X} is not {expected}. Save it as UTF-8."
        ) from error


def read_plain(path: Path) -> str:
    """A file of text, UTF-8."""
    data = path.read_bytes()
    refuse_bytes(path, data, "utf8", "UTF-8")
    return data.decode()


def _read_text(path: Path, data: bytes, delimiter: str) -> pa.Table:
    """CSV or TSV. A spreadsheet may have written semicolons, decimal commas or Latin-1, which is detected."""
    if not data:
        raise ValueError(f"{path} is empty.")
    encoding = "utf8"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        encoding = "cp1252"
        refuse_bytes(path, data, encoding, "UTF-8, nor Windows-1252")
        warn(
            f"{path} is not UTF-8 (byte {error.start:,}); it is read as Latin-1 (Windows-1252). If letters are wrong, "
            "save it as UTF-8.",
        )
    head = QUOTED.sub(b"", FIRST_ROW.match(data)[0])  # type: ignore[index]
    if delimiter == "," and head.count(b";") > head.count(b","):
        delimiter = ";"
    check_width(path, head.count(delimiter.encode()) + 1)
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    read = pyarrow.csv.ReadOptions(block_size=BLOCK, encoding=encoding)
    try:
        with pyarrow.csv.open_csv(pa.BufferReader(data), read_options=read, parse_options=parse) as file:
            text = dict.fromkeys(file.schema.names, pa.string())
        convert = pyarrow.csv.ConvertOptions(column_types=text, null_values=[""], strings_can_be_null=True)
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data), read_options=read, parse_options=parse, convert_options=convert
        )
    except pa.ArrowInvalid as error:
        raise ValueError(f"Cannot read {path}: {error}.") from error
    return _without_decimal_commas(table) if delimiter == ";" else table


def _without_decimal_commas(table: pa.Table) -> pa.Table:
    """Write numbers with a decimal comma, which go with semicolons, with a point."""
    for i, name in enumerate(table.column_names):
        cells = table.column(i).to_pylist()
        known = [cell for cell in cells if cell is not None]
        if any(DECIMAL_COMMA.search(cell) for cell in known) and all(NUMBER.fullmatch(cell) for cell in known):
            cells = [None if cell is None else cell.replace(",", ".") for cell in cells]
            table = table.set_column(i, name, pa.array(cells, pa.string()))
    return table


def write_parquet(names: list[str], columns: list[Any], path: Path) -> None:
    """Write columns as Parquet."""
    with whole_file(path) as file:
        pyarrow.parquet.write_table(pa.table(dict(zip(names, columns, strict=True))), file)
