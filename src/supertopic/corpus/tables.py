"""Reading tables of documents: CSV, TSV, JSON lines and Parquet, all through pyarrow."""

import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from supertopic.corpus.writing import whole_file
from supertopic.warn import warn

BLOCK = 2**30  # bytes that are parsed at once; no row may be longer
READERS = {".csv": ",", ".tsv": "\t", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet"}
STDIN = Path("-")
NUMBER, DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+([.,]\d+)?\s*"), re.compile(r"\d,\d")


def read_table(path: Path) -> pa.Table:
    """A table from a file, or CSV from the standard input for "-". In CSV and TSV every cell is text."""
    if path == STDIN:
        return _read_text(path, sys.stdin.buffer.read(), ",")
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in (".gz", ".bz2")]
    kind = READERS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise ValueError(f"Cannot tell the format of {path.name}; expected a name that ends in {', '.join(READERS)}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    try:
        if kind == "parquet":
            return pyarrow.parquet.read_table(path)
        if kind == "json":
            return pyarrow.json.read_json(path, read_options=pyarrow.json.ReadOptions(block_size=BLOCK))
    except pa.ArrowInvalid as error:
        raise ValueError(f"Cannot read {path}: {error}.") from error
    with pa.input_stream(path) as file:
        return _read_text(path, file.read(), kind)


def column(table: pa.Table, path: Path, name: str) -> list[Any]:
    """A column as a list in which None is an empty cell."""
    if name not in table.column_names:
        raise ValueError(f"{path} has no column {name!r}; its columns are {', '.join(table.column_names)}.")
    if table.column_names.count(name) > 1:
        raise ValueError(f"{path} has more than one column {name!r}.")
    cells: list[Any] = table.column(name).to_pylist()
    return cells


def _read_text(path: Path, data: bytes, delimiter: str) -> pa.Table:
    """CSV or TSV. A spreadsheet may have written semicolons, decimal commas or Latin-1, which is detected."""
    if not data:
        raise ValueError(f"{path} is empty.")
    encoding = "utf8"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        encoding = "cp1252"
        warn(
            f"{path} is not UTF-8 (byte {error.start:,}); it is read as Latin-1 (Windows-1252). If letters are wrong, "
            "save it as UTF-8.",
        )
    head = data.split(b"\n", 1)[0]
    if delimiter == "," and head.count(b";") > head.count(b","):
        delimiter = ";"
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
