"""What the commands have in common: the console, tables, model files."""

import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

import supertopic
from supertopic.command.cells import as_numbers
from supertopic.command.console import PlainConsole
from supertopic.corpus.frames import frame_of_cells
from supertopic.corpus.spreadsheets import split_sheet
from supertopic.corpus.tables import column, read_table
from supertopic.estimators.base import TopicModel
from supertopic.estimators.files import load_for_texts

out, err = PlainConsole(), PlainConsole(stderr=True)


def use_utf8() -> None:
    """Read and write UTF-8 and plain line ends, as files have them: Windows has a code page and CRLF for pipes."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", newline="" if stream is sys.stdout else None)


def note(message: str) -> None:
    """Print a line on the standard error."""
    err.print(message, highlight=False)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print the message of a warning alone, without the line of code that it comes from."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: note(f"[bold yellow]Warning:[/bold yellow] {escape(str(message))}")
        yield


def check_share(share: float) -> float:
    """Refuse what is not a share of documents to test on."""
    if not 0 <= share < 1:
        raise ValueError(
            f"--test-size is a share from 0 to 1, such as 0.2 for a fifth of the documents, got {share:g}."
        )
    return share


def check_place(path: Path | None) -> Path | None:
    """Refuse, before any work, a file that cannot be written."""
    if path is None:
        return None
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(f"{path} is a link, a device or a pipe; give the name of a plain file, or a new one.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent} cannot be written to.")
    return path


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path | None]) -> None:
    """Refuse, before any work, to write over what is read, or two results to one file; None is left out."""
    places, read = [place for place in outputs if place], [split_sheet(path)[0] for path in inputs if path]
    for i, place in enumerate(places):
        for other in [*read, *places[:i]]:
            if place.resolve() == other.resolve() or (place.exists() and other.exists() and place.samefile(other)):
                what = "would be written twice" if other in places[:i] else f"is {other}, which the command reads"
                raise ValueError(f"{place} {what}; give another file to write to.")


class Table:
    """A table in memory: `table[name]` are the cells of a column."""

    def __init__(self, path: Path):
        with plain_warnings():
            self.path, self.table = path, read_table(path)

    @property
    def names(self) -> list[str]:
        return self.table.column_names

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, name: str) -> list[Any]:
        return column(self.table, self.path, name)

    def need_rows(self) -> None:
        """Refuse a table without rows, from which nothing can be learned."""
        if not len(self):
            raise ValueError(f"{self.path} has no rows.")

    def texts(self, name: str) -> np.ndarray:
        """A column as texts; an empty cell is an empty text."""
        return np.array(["" if cell is None else str(cell) for cell in self[name]], dtype=object)


def row_names(table: Table, column: str | None) -> list[str]:
    """What each row is called: the cell of a column, or else its number. The first document is row 1."""
    cells = table[column] if column else [None] * len(table)
    return name_rows(cells)


def name_rows(cells: Sequence[Any]) -> list[str]:
    """The cells as names of rows; an empty cell is replaced by the number of the row."""
    return [str(i) if cell is None else str(cell) for i, cell in enumerate(cells, 1)]


def read_numbers(
    cells_of: Callable[[str], list[Any]], weight: str | None, exposure: str | None, covariates: Mapping[str, str],
    kinds: Mapping[str, str] | None = None, groups: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Columns beside the texts, as arguments of `fit` and `predict`.

    `covariates` has the column of each covariate by its name in the model, `kinds` the kind of each in a fitted model.
    """
    found: dict[str, Any] = {}
    if covariates:
        found["covariates"] = frame_of_cells({name: cells_of(column) for name, column in covariates.items()}, kinds)
    for name, option, wanted in (("sample_weight", "--weight", weight), ("exposure", "--exposure", exposure)):
        if wanted:
            found[name] = as_numbers(cells_of(wanted), wanted, option)
    if groups:
        found["groups"] = np.array([None if cell is None else str(cell) for cell in cells_of(groups)], dtype=object)
    return found


def save_somewhere(model: TopicModel, path: Path) -> None:
    """Write the model; if that fails, write it elsewhere rather than lose it, and say so."""
    try:
        supertopic.save(model, path)
    except OSError as error:
        other = Path(tempfile.mkdtemp(prefix="supertopic-")) / path.name
        supertopic.save(model, other)
        raise OSError(f"The model could not be written to {path} ({error}); it is in {other}.") from error


def load(path: Path) -> TopicModel:
    """The model of a file, which takes texts."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no model {path}.")
    return load_for_texts(path)


def write_page(model: Any, texts: np.ndarray, y: Any, path: Path, beside: dict[str, Any], **facts: Any) -> None:
    """Write the page of a model and of some documents."""
    with err.status("Writing the page") if err.is_terminal else nullcontext():
        model.report(texts, y, path, **facts, **beside)
    note(f"The page is in {escape(str(path))}.")
