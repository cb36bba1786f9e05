"""Where the documents of a fit are: in one table, or in many files."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.command.steps import Table
from supertopic.corpus.spool import Each, Library, open_library
from supertopic.estimators.from_files import fit_library, open_readers
from supertopic.estimators.supervised import Supervised
from supertopic.inference.checkpoint import temporary_folder
from supertopic.inference.fit import Checkpointing


def is_many(path: Path) -> bool:
    """Whether a path stands for several files: a folder, or a pattern."""
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in "*?["))


class OneTable:
    """A table in memory; `cells` are those of a column."""

    def __init__(self, path: Path, text: str):
        self.table = Table(path)
        self.texts, self.cells = self.table.texts(text), self.table.__getitem__

    def fit(
        self, model: Supervised, vectorizer: CountVectorizer, rows: np.ndarray, y: Any, beside: dict[str, Any],
        checkpoint: Path | None,
    ) -> CountVectorizer:  # fmt: skip
        """Fit some rows; returns the fitted vectorizer."""
        X = vectorizer.fit_transform(self.texts[rows])
        beside = {name: values[rows] for name, values in beside.items()}
        model.fit(X, y[rows], feature_names=vectorizer.get_feature_names_out(), checkpoint=checkpoint, **beside)
        return vectorizer


class ManyFiles:
    """Files of which no process holds all; `cells` are those of a column."""

    texts = np.zeros(0, object)  # not in memory

    def __init__(self, library: Library, each: Each, folder: Path):
        self.library, self.each, self.folder, self.cells = library, each, folder, library.columns.__getitem__

    def fit(
        self, model: Supervised, vectorizer: CountVectorizer, rows: np.ndarray, y: Any, beside: dict[str, Any],
        checkpoint: Path | None,
    ) -> CountVectorizer:  # fmt: skip
        """Fit all rows; returns the fitted vectorizer."""
        model.check_parameters()
        documents = self.library.spool(self.folder, self.each)
        fit_library(model, self.library, documents, y, beside, Checkpointing(checkpoint))
        return self.library.vectorizer


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
        yield ManyFiles(library, each, place)
