"""Fitting documents that are in files, of which no process needs to hold all."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.corpus.spool import Files, Library, open_library
from supertopic.estimators.base import TopicModel
from supertopic.inference.checkpoint import temporary_folder
from supertopic.inference.fit import Checkpointing
from supertopic.warn import warn

IN_MEMORY = 30_000_000  # tokens up to which words beside topics are learned, too


def fit_from_files(
    model: TopicModel, files: Files, text: str, columns: dict[str, str | None], covariates: Sequence[str],
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
        model.n_features_in_ = len(library.vectorizer.vocabulary_)
        model.__dict__.pop("feature_names_in_", None)
        counts, n_tokens = None, int(documents.doc_start[-1])
        if n_tokens <= IN_MEMORY and (getattr(model, "words", False) or getattr(model, "_learners", ())):
            counts = documents.matrix(model.n_features_in_)
        elif getattr(model, "words", False) or getattr(model, "_learners", ()):
            warn(
                f"The files have {n_tokens:,} tokens: words beside topics and further terms need all documents in one "
                f"process, and are left out beyond {IN_MEMORY:,} tokens. words=False says the same of words."
            )
        y = read_label(model, library, columns["label"])
        vocabulary = library.vectorizer.get_feature_names_out()
        model.fit_corpus(documents, counts, y, vocabulary, checkpointing, **known)
        model.vectorizer_ = library.vectorizer


def read_label(model: TopicModel, library: Library, label: str | None) -> np.ndarray | None:
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
