"""Fitting documents in files, which do not have to fit into memory."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.corpus.frames import frame_of_cells
from supertopic.corpus.source import Corpus
from supertopic.corpus.spool import Each, Files, Library, Spool, is_docword, open_library
from supertopic.estimators.texts import TextReader, keep_reader, topic_vectorizer, word_vectorizer
from supertopic.inference.beside import LinearInputs
from supertopic.inference.checkpoint import temporary_folder
from supertopic.inference.fit import Checkpointing
from supertopic.model.formula import as_formula
from supertopic.model.responses import Response
from supertopic.model.responses.times import with_events
from supertopic.warn import warn

IN_MEMORY = 30_000_000  # tokens of documents from which words beside topics are learned
IN_MEMORY_PAIRS = 10_000_000  # the same where pairs of words are counted, too


class FitsCorpus(Protocol):
    """An estimator, as far as reading files is concerned."""

    engine: str
    n_jobs: int | None
    n_features_in_: int
    vectorizer: Any

    def make_response(self) -> Response: ...

    def needs_counts(self) -> bool: ...

    def fit_corpus(
        self, corpus: Corpus, counts: csr_array | None, y: Any, vocabulary: np.ndarray | None,
        checkpointing: Checkpointing, **known: Any,
    ) -> Any: ...  # fmt: skip


def fit_from_files(
    model: FitsCorpus, files: Files, text: str, columns: dict[str, str | None], covariates: Sequence[str],
    vectorizer: CountVectorizer | None, folder: str | os.PathLike[str] | None, checkpointing: Checkpointing,
    features: Any = None,
) -> None:  # fmt: skip
    """Fit a model: see `TopicModel.fit_files`. `columns` names those of the label, weights, exposure and groups."""
    formula = as_formula(getattr(model, "formula", None))
    if formula is not None:
        parsed = formula.parse(list(covariates) or None)
        covariates = covariates or parsed.columns
        if parsed.response is not None and columns["label"] is not None:
            raise ValueError(f"formula={formula.text!r} names the response, and so does label={columns['label']!r}.")
        columns = columns | {"label": columns["label"] or parsed.response}
    names = [name for name in (*columns.values(), *covariates) if name]
    given = vectorizer or model.vectorizer
    with ExitStack() as inside:
        each = inside.enter_context(open_readers(model.engine, model.n_jobs))
        library = open_library(files, text, dict.fromkeys(names), partial(topic_vectorizer, given), each)
        place = Path(folder) if folder else Path(inside.enter_context(temporary_folder()))
        place.mkdir(parents=True, exist_ok=True)
        documents = library.spool(place, each)
        known: dict[str, Any] = {
            name: library.numbers(column)
            for name, column in columns.items()
            if column and name not in ("label", "groups")
        }
        if columns["groups"]:
            known["groups"] = list(library.columns[columns["groups"]])
        if covariates:
            known["covariates"] = frame_of_cells({name: library.columns[name] for name in covariates})
        y = with_events(read_label(model, library, columns["label"]), known.pop("event", None))
        known |= {"y": y, "features": features}
        fit_library(model, library, documents, known, checkpointing, given, each)


def fit_library(
    model: FitsCorpus, library: Library, documents: Spool, known: dict[str, Any], checkpointing: Checkpointing,
    given: Any, each: Each,
) -> None:  # fmt: skip
    """Fit documents that are on disk; `known` are y, sample weights, exposure, covariates and features.

    Words beside topics are learned from documents that fit into memory: all of them, or evenly spaced ones.
    """
    model.n_features_in_ = len(library.vectorizer.vocabulary_)
    model.__dict__.pop("feature_names_in_", None)
    n_tokens, n_docs = int(documents.doc_start[-1]), len(documents.doc_start) - 1
    words, inputs, counts = getattr(model, "words", False), LinearInputs(), None
    direct = None
    if not any(map(is_docword, library.paths)):
        direct = word_vectorizer(words, given, n_docs)
    if n_tokens <= IN_MEMORY and (words or model.needs_counts()):
        counts = documents.matrix(model.n_features_in_)
    elif model.needs_counts():
        warn(
            f"The files have {n_tokens:,} tokens: further terms need all documents in one process, and are left out "
            f"beyond {IN_MEMORY:,} tokens."
        )
    if words or known.get("features") is not None:
        docs = np.arange(n_docs)[:: -(-n_tokens // (IN_MEMORY if direct is None else IN_MEMORY_PAIRS)) or 1]
        inputs = LinearInputs(docs=None if len(docs) == n_docs else docs)
        if direct is not None:
            direct, of_words = library.counts(direct, docs, each)
            inputs = inputs._replace(words=of_words)
        elif words:
            mask = np.zeros(n_docs, bool)
            mask[docs] = True
            of_words = counts if counts is not None else documents.select(mask).matrix(model.n_features_in_)
            inputs = inputs._replace(words=of_words)
    vocabulary = library.vectorizer.get_feature_names_out()
    names = None if direct is None else direct.get_feature_names_out()
    y = known.pop("y")
    model.fit_corpus(documents, counts, y, vocabulary, checkpointing, inputs=inputs, word_names=names, **known)
    keep_reader(model, TextReader(library.vectorizer, direct))


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
