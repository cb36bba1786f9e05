"""Where the command's documents are: in one table, or in many files."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.command.cells import as_text
from supertopic.command.steps import read
from supertopic.estimators.from_files import open_readers


def is_many(path: Path) -> bool:
    """Whether a path stands for several files: a folder, or a pattern."""
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in "*?["))


class OneTable:
    """A table in memory."""

    def __init__(self, path: Path, text: str, names: list[str]):
        rows, *columns = read(path, [text, *names])
        self.texts, self.columns = (
            np.array([as_text(t) for t in rows], dtype=object),
            dict(zip(names, columns, strict=True)),
        )

    def fit(
        self, model: Any, vectorizer: CountVectorizer, rows: np.ndarray, y: np.ndarray, beside: dict, checkpoint
    ) -> CountVectorizer:
        """Fit some rows; returns the fitted vectorizer."""
        X = vectorizer.fit_transform(self.texts[rows])
        beside = {name: values[rows] for name, values in beside.items()}
        model.fit(X, y[rows], feature_names=vectorizer.get_feature_names_out(), checkpoint=checkpoint, **beside)
        return vectorizer


class ManyFiles:
    """Files of which no process holds all."""

    texts: Any = None

    def __init__(self, library, each, folder: Path):
        self.library, self.each, self.folder, self.columns = library, each, folder, library.columns

    def fit(
        self, model: Any, vectorizer: CountVectorizer, rows: np.ndarray, y: np.ndarray, beside: dict, checkpoint
    ) -> CountVectorizer:
        documents = self.library.spool(self.folder, self.each)
        model._check_parameters()
        model._fit_spool(self.library, documents, y, beside, checkpoint, 60)
        return self.library.vectorizer


@contextmanager
def open_texts(
    path: Path, text: str, names: list[str], vectorizer: CountVectorizer, engine: str, jobs: int, folder: Path | None
) -> Iterator[OneTable | ManyFiles]:
    """The documents, with some columns."""
    if not is_many(path):
        yield OneTable(path, text, names)
        return
    from supertopic.corpus.spool import open_library
    from supertopic.inference.checkpoint import temporary_folder

    with ExitStack() as inside:
        each = inside.enter_context(open_readers(engine, jobs))
        library = open_library(path, text, names, vectorizer, each)
        place = folder or Path(inside.enter_context(temporary_folder()))
        place.mkdir(parents=True, exist_ok=True)
        yield ManyFiles(library, each, place)
