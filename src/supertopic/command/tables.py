"""Reading tables of documents: CSV, TSV, JSON lines and Parquet, all through pyarrow."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

BLOCK = 2**30  # bytes that are parsed at once; no row may be longer
READERS = {".csv": ",", ".tsv": "\t", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet"}


def read_columns(path: Path, names: list[str]) -> list[list]:
    """The named columns of a table, as lists in which None is an empty cell. In CSV and TSV every cell is text."""
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in (".gz", ".bz2")]
    kind = READERS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise ValueError(f"Cannot tell the format of {path.name}; expected a name that ends in {', '.join(READERS)}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    try:
        table = _read(path, kind)
    except pa.ArrowInvalid as error:
        reason = "it is not UTF-8" if "UTF8" in str(error) else str(error)
        raise ValueError(f"Cannot read {path}: {reason}.") from error
    for name in names:
        if name not in table.column_names:
            raise ValueError(f"{path} has no column {name!r}; its columns are {', '.join(table.column_names)}.")
        if table.column_names.count(name) > 1:
            raise ValueError(f"{path} has more than one column {name!r}.")
    return [table.column(name).to_pylist() for name in names]


def _read(path: Path, kind: str) -> pa.Table:
    if kind == "parquet":
        return pyarrow.parquet.read_table(path)
    if kind == "json":
        return pyarrow.json.read_json(path, read_options=pyarrow.json.ReadOptions(block_size=BLOCK))
    parse = pyarrow.csv.ParseOptions(delimiter=kind, newlines_in_values=True)
    read = pyarrow.csv.ReadOptions(block_size=BLOCK)
    with pyarrow.csv.open_csv(path, read_options=read, parse_options=parse) as file:
        text = dict.fromkeys(file.schema.names, pa.string())
    convert = pyarrow.csv.ConvertOptions(column_types=text, null_values=[""], strings_can_be_null=True)
    return pyarrow.csv.read_csv(path, read_options=read, parse_options=parse, convert_options=convert)
