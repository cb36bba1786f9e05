"""Fitting documents that are in files, of which no process needs to hold all."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from supertopic.warn import warn

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

    from supertopic.corpus.spool import Files, Library

IN_MEMORY = 30_000_000  # tokens up to which words beside topics are learned, too


class FromFiles:
    """The part of a topic model that reads files."""

    n_jobs: int | None
    engine: str
    device: str
    vectorizer_: Any

    def fit_files(
        self, files: "Files", *, text: str = "text", label: str | None = None, weight: str | None = None,
        exposure: str | None = None, covariates: Sequence[str] = (), vectorizer: "CountVectorizer | None" = None,
        folder: str | os.PathLike[str] | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ):  # fmt: skip
        """Learn from the documents of files: CSV, TSV, JSON lines or Parquet, a document a row, or UCI docword files.

        Words are counted and tokens are made in parallel, and the tokens stay on disk until somebody works on them. The
        model is that of `fit` on the same documents, bit for bit; only words beside topics are left out if there are
        more than 30 million tokens. `vectorizer_` is the fitted vectorizer.

        Parameters
        ----------
        files : path, pattern, folder or list of paths
            "data/*.parquet", for example. Documents come in the order of the files' names.
        text, label, weight, exposure : str
            The columns with the text, the response, and, if wanted, the weight and the exposure of each document.
            docword.NAME.txt has none of them, and its words are in vocab.NAME.txt.
        covariates : sequence of str
            The columns with numbers that enter the prediction beside the topics.
        vectorizer : CountVectorizer, optional
            How texts become words; CountVectorizer() by default.
        folder : path, optional
            Where the tokens are, 4 bytes each, for the time of the fit: a temporary folder by default. On several
            machines it has to be one that all of them see.
        checkpoint, checkpoint_every : path and seconds, optional
            As in `fit`.
        """
        from sklearn.feature_extraction.text import CountVectorizer

        from supertopic.corpus.spool import open_library
        from supertopic.inference.checkpoint import temporary_folder

        self._check_parameters()
        names = [name for name in (label, weight, exposure, *covariates) if name]
        with ExitStack() as inside:
            each = inside.enter_context(open_readers(self.engine, self.n_jobs))
            library = open_library(files, text, dict.fromkeys(names), vectorizer or CountVectorizer(), each)
            place = Path(folder) if folder else Path(inside.enter_context(temporary_folder()))
            place.mkdir(parents=True, exist_ok=True)
            documents = library.spool(place, each)
            wanted = {"sample_weight": weight, "exposure": exposure}
            more = {name: library.numbers(column) for name, column in wanted.items() if column}
            if covariates:
                more["covariates"] = np.column_stack([library.numbers(name) for name in covariates])
            self._fit_spool(library, documents, self._read_label(library, label), more, checkpoint, checkpoint_every)
        return self

    def _fit_spool(self, library: "Library", documents, y, more: dict[str, Any], checkpoint, every) -> None:
        """Fit documents that are on disk; what is small enough comes into memory for words beside topics."""
        self.vectorizer_ = library.vectorizer
        self.n_features_in_ = len(library.vectorizer.vocabulary_)
        for name in ("feature_names_in_", "vocabulary_"):
            self.__dict__.pop(name, None)
        X, n_tokens = None, int(documents.doc_start[-1])
        if getattr(self, "words", False):
            if n_tokens <= IN_MEMORY:
                X = documents.matrix(self.n_features_in_)
            else:
                warn(
                    f"The files have {n_tokens:,} tokens: words beside topics, which need all documents in one "
                    f"process, are left out beyond {IN_MEMORY:,}. words=False says the same.",
                )
        if y is None:
            self._fit_documents(documents, X, checkpoint, every)
        else:
            known = {"sample_weight": None, "covariates": None} | more
            more = {"checkpoint": checkpoint, "checkpoint_every": every}
            self._fit_documents(documents, X, y, **known, **more)

    def _read_label(self, library: "Library", label: str | None):
        """The response of every document, as the model takes it."""
        if not hasattr(self, "c"):  # no response
            return None
        if label is None:
            raise ValueError(f"{type(self).__name__} learns from a response: label names its column.")
        if not hasattr(self, "missing_label"):
            return library.numbers(label)
        cells = library.columns[label]
        try:  # from CSV, whole numbers are text
            if all(cell is None or str(int(cell)) == str(cell) for cell in cells):
                cells = [None if cell is None else int(cell) for cell in cells]
        except ValueError:
            pass
        return np.array(cells, dtype=object)


def open_readers(engine: str, n_jobs: int | None):
    """Who reads files: processes of this machine, or tasks of a cluster."""
    if engine != "threads":
        from supertopic.sampling.ray import readers

        return readers(engine.partition(":")[2])
    n = effective_n_jobs(n_jobs)
    return nullcontext(lambda verb, work: Parallel(n)(delayed(verb)(*arguments) for arguments in work))
