"""Where the documents of a fit are: in one table, or in many files."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.command.steps import Table
from supertopic.corpus.spool import Each, Library, find_files, open_library
from supertopic.corpus.spreadsheets import split_sheet
from supertopic.estimators.from_files import fit_library, open_readers
from supertopic.estimators.supervised import Supervised
from supertopic.inference.checkpoint import temporary_folder
from supertopic.inference.fit import Checkpointing


def is_many(path: Path) -> bool:
    """Whether a path stands for several files: a folder, or a pattern."""
    path, _ = split_sheet(path)
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in "*?["))


def files_of(path: Path) -> list[Path]:
    """The files that a path stands for."""
    return find_files(path) if is_many(path) else [path]


class OneTable:
    """A table in memory."""

    def __init__(self, path: Path, text: str):
        table = Table(path)
        table.need_rows()
        self.texts, self.cells, self.n_rows = table.texts(text), table.__getitem__, len(table)

    def fit(self, model: Supervised, rows: np.ndarray, known: dict[str, Any], checkpoint: Path | None) -> None:
        """Fit some rows, of which `known` has y and more."""
        model.fit(self.texts[rows], checkpoint=checkpoint, **{name: values[rows] for name, values in known.items()})


@dataclass
class ManyFiles:
    """Files of which no process holds all."""

    library: Library
    each: Each
    folder: Path
    cells: Callable[[str], list[Any]]
    texts: np.ndarray = field(default_factory=lambda: np.zeros(0, object))  # they are not in memory

    def fit(self, model: Supervised, rows: np.ndarray, known: dict[str, Any], checkpoint: Path | None) -> None:
        """Fit all rows."""
        model.check_parameters()
        documents = self.library.spool(self.folder, self.each)
        fit_library(model, self.library, documents, known, Checkpointing(checkpoint), model.vectorizer, self.each)


@contextmanager
def open_texts(
    path: Path, text: str, names: Iterable[str], vectorizer: CountVectorizer, engine: str, jobs: int,
    folder: Path | None,
) -> Iterator[OneTable | ManyFiles]:  # fmt: skip
    """The documents, with some columns."""
    if not is_many(path):
        yield OneTable(path, text)
        return
    with ExitStack() as inside:
        each = inside.enter_context(open_readers(engine, jobs))
        library = open_library(path, text, dict.fromkeys(names), vectorizer, each)
        place = folder or Path(inside.enter_context(temporary_folder()))
        place.mkdir(parents=True, exist_ok=True)
        yield ManyFiles(library, each, place, library.columns.__getitem__)
