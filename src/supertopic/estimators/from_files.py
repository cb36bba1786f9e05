"""Fitting documents that are in files, of which no process needs to hold all."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.corpus.source import Corpus
from supertopic.corpus.spool import Files, Library, Spool, open_library
from supertopic.inference.checkpoint import temporary_folder
from supertopic.inference.fit import Checkpointing
from supertopic.model.responses import Response
from supertopic.warn import warn

IN_MEMORY = 30_000_000  # tokens up to which words beside topics are learned, too


class FitsCorpus(Protocol):
    """An estimator, as far as reading files is concerned."""

    engine: str
    n_jobs: int | None
    n_features_in_: int
    vectorizer_: Any

    def make_response(self) -> Response: ...

    def needs_counts(self) -> bool: ...

    def fit_corpus(
        self, corpus: Corpus, counts: csr_array | None, y: Any, vocabulary: np.ndarray | None,
        checkpointing: Checkpointing, **known: Any,
    ) -> Any: ...  # fmt: skip


def fit_from_files(
    model: FitsCorpus, files: Files, text: str, columns: dict[str, str | None], covariates: Sequence[str],
    vectorizer: CountVectorizer | None, folder: str | os.PathLike[str] | None, checkpointing: Checkpointing,
) -> None:  # fmt: skip
    """Fit a model: see `TopicModel.fit_files`. `columns` names those of the label, weights and exposure."""
    names = [name for name in (*columns.values(), *covariates) if name]
    with ExitStack() as inside:
        each = inside.enter_context(open_readers(model.engine, model.n_jobs))
        library = open_library(files, text, dict.fromkeys(names), vectorizer or CountVectorizer(), each)
        place = Path(folder) if folder else Path(inside.enter_context(temporary_folder()))
        place.mkdir(parents=True, exist_ok=True)
        documents = library.spool(place, each)
        known: dict[str, Any] = {
            name: library.numbers(column) for name, column in columns.items() if column and name != "label"
        }
        if covariates:
            known["covariates"] = np.column_stack([library.numbers(name) for name in covariates])
        y = read_label(model, library, columns["label"])
        fit_library(model, library, documents, y, known, checkpointing)


def fit_library(
    model: FitsCorpus, library: Library, documents: Spool, y: Any, known: dict[str, Any], checkpointing: Checkpointing
) -> None:
    """Fit documents that are on disk; `known` are sample weights, exposure and covariates."""
    model.n_features_in_ = len(library.vectorizer.vocabulary_)
    model.__dict__.pop("feature_names_in_", None)
    counts, n_tokens = None, int(documents.doc_start[-1])
    needs_counts = model.needs_counts()
    if needs_counts and n_tokens <= IN_MEMORY:
        counts = documents.matrix(model.n_features_in_)
    elif needs_counts:
        warn(
            f"The files have {n_tokens:,} tokens: words beside topics and further terms need all documents in one "
            f"process, and are left out beyond {IN_MEMORY:,} tokens. words=False says the same of words."
        )
    vocabulary = library.vectorizer.get_feature_names_out()
    model.fit_corpus(documents, counts, y, vocabulary, checkpointing, **known)
    model.vectorizer_ = library.vectorizer


def read_label(model: FitsCorpus, library: Library, label: str | None) -> np.ndarray | None:
    """The response of every document, as the model takes it."""
    response = model.make_response()
    if not response.kind:  # LDA has no response
        return None
    if label is None:
        raise ValueError(f"{type(model).__name__} learns from a response: label names its column.")
    if response.labels is None:
        return library.numbers(label)
    cells = library.columns[label]
    try:  # from CSV, whole numbers are text
        if all(cell is None or str(int(cell)) == str(cell) for cell in cells):
            cells = [None if cell is None else int(cell) for cell in cells]
    except ValueError:
        pass
    return np.array(cells, dtype=object)


def open_readers(
    engine: str, n_jobs: int | None
) -> AbstractContextManager[Callable[[Callable[..., Any], list[tuple[Any, ...]]], list[Any]]]:
    """Who reads files: processes of this machine, or tasks of a cluster."""
    if engine != "threads":
        from supertopic.sampling.ray import readers

        return readers(engine.partition(":")[2])
    n = effective_n_jobs(n_jobs)
    return nullcontext(lambda verb, work: Parallel(n)(delayed(verb)(*arguments) for arguments in work))
