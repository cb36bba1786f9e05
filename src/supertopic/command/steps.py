"""What the commands have in common: reading and writing, and the estimator for what is asked for."""

import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

import supertopic
from supertopic.command.cells import Column, as_labels, as_number, as_numbers
from supertopic.estimators.classifiers import MedLDAClassifier, SLDAClassifier
from supertopic.estimators.regressors import SLDACountRegressor, SLDARegressor

out, err = Console(), Console(stderr=True)
OPTIONS = {"sample_weight": "--weight", "exposure": "--exposure"}
MISSING = ("", "NA")  # cells of a class that are unknown


def speak_utf8() -> None:
    """Read and write UTF-8 and plain line ends, as files have them: Windows has a code page and CRLF for pipes."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", newline="" if stream is sys.stdout else None)


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """Print warnings as what they say, without the line of code that they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: err.print(
            "[bold yellow]Warning:[/bold yellow]", escape(str(message)), highlight=False
        )
        yield


def number_or_word(value: str) -> float | str:
    number = as_number(value)
    return value if number is None else number


def choose_held_out(column: Column, share: float, seed: int) -> np.ndarray:
    """Documents to test on, of every class its share where each has two documents or more."""
    known = np.flatnonzero(column.known)
    classes = column.y[known].astype(str) if column.response == "class" else None
    if classes is not None:
        least, n_test = np.unique(classes, return_counts=True)[1], round(share * len(known))
        classes = classes if least.min() >= 2 and len(least) <= min(n_test, len(known) - n_test) else None
    return train_test_split(known, test_size=share, random_state=seed, stratify=classes)[1]


def make_model(response: str, n_topics: int, loss: str, multiclass: str, balanced: bool, exposure, options: dict):
    """The estimator for a response; options that it has no use for are refused."""
    classes = response in ("class", "labels")
    for wrong, name in (
        (loss == "hinge" and not classes, "--loss hinge"),
        (multiclass != "shared" and (not classes or loss == "hinge"), f"--multiclass {multiclass}"),
        (multiclass == "stick_breaking" and response != "class", f"--multiclass {multiclass}"),
        (balanced and not classes, "--balanced"),
        (exposure is not None and response != "count", "--exposure"),
    ):
        if wrong:
            raise ValueError(f"{name} does not go with the response {response!r} and the loss {loss!r}.")
    if not classes:
        return (SLDARegressor if response == "rating" else SLDACountRegressor)(n_topics, **options)
    options = options | {"class_weight": "balanced" if balanced else None}
    if loss == "hinge":
        return MedLDAClassifier(n_topics, **options)
    return SLDAClassifier(n_topics, multiclass=str(multiclass), **options)


def read_all(path: Path) -> Any:
    from supertopic.corpus.tables import read_table

    with told_in_a_line():
        return read_table(path)


def pick(table: Any, path: Path, name: str) -> list:
    from supertopic.corpus import tables

    return tables.column(table, path, name)


def read(path: Path, names: list[str]) -> list[list]:
    """Some columns of a table."""
    table = read_all(path)
    return [pick(table, path, name) for name in names]


def read_stop_words(value: str) -> str | list[str] | None:
    """The words to drop, as a vectorizer wants them."""
    if value in ("english", "none"):
        return "english" if value == "english" else None
    if not Path(value).is_file():
        raise ValueError(
            f"--stop-words is english, none, or a file with a word in each line; there is no file {value}."
        )
    return sorted(set(Path(value).read_text(encoding="utf-8").lower().split()))


def make_vectorizer(stop_words: str, min_df: int, max_df: float, ngrams: int, token_pattern: str) -> CountVectorizer:
    return CountVectorizer(
        stop_words=read_stop_words(stop_words), min_df=min_df, max_df=max_df, ngram_range=(1, ngrams),
        token_pattern=token_pattern,
    )  # fmt: skip


def read_seeds(path: Path) -> dict[str, Any]:
    """Seeds, and which class each topic pulls to, if the table says so: as options of an estimator."""
    table = read_all(path)
    topics, words = (pick(table, path, name) for name in ("topic", "word"))
    classes = pick(table, path, "class") if "class" in table.column_names else [None] * len(topics)
    seeds: dict[str, list[str]] = {}
    pulls: dict[str, Any] = {}
    for row, (topic, word, label) in enumerate(zip(topics, words, classes, strict=True), 1):
        if topic is None or word is None:
            raise ValueError(f"Row {row} of {path} has no {'topic' if topic is None else 'word'}.")
        seeds.setdefault(str(topic), []).append(str(word))
        if label is not None and pulls.setdefault(str(topic), label) != label:
            raise ValueError(f"{path} lets the topic {str(topic)!r} pull to {pulls[str(topic)]!r} and to {label!r}.")
    if not seeds:
        raise ValueError(f"{path} has no rows: it needs a topic and a word in each.")
    return {"seeds": seeds} | ({"seed_weights": pulls} if pulls else {})


def read_beside(estimator: Any, table: Any, path: Path, covariate: list[str] | None, **columns: str | None) -> dict:
    """The covariates of a fitted model, by their own names or by those given, and other columns of numbers."""
    beside = {
        name: as_numbers(pick(table, path, wanted), wanted, OPTIONS[name]) for name, wanted in columns.items() if wanted
    }
    covariates = covariate or list(getattr(estimator, "covariate_names_", ()))
    if covariates:
        columns_of = [as_numbers(pick(table, path, name), name, "--covariate") for name in covariates]
        beside["covariates"] = np.column_stack(columns_of)
    return beside


def known_response(
    estimator: Any, cells: list, label: str, separator: str, skip_unknown: bool = False
) -> tuple[np.ndarray, int]:
    """The cells as the response of a fitted model, and how many hold classes that it does not know.

    Such cells are refused, or count as unknown if they are to be skipped.
    """
    if not hasattr(estimator, "classes_"):
        return as_numbers(cells, label, "the response"), 0
    known = {str(value): value for value in estimator.classes_.tolist()}
    if estimator.multilabel_:
        y, names = as_labels(cells, separator, 0)
        lists = [[name for name, has in zip(names, row, strict=True) if has == 1.0] for row in y]
    else:
        lists = [[] if cell is None or str(cell) in MISSING else [str(cell)] for cell in cells]
    strange = [name for row in lists for name in row if name not in known]
    n_strange = sum(any(name not in known for name in row) for row in lists)
    if strange and not skip_unknown:
        raise ValueError(
            f"{n_strange:,} of {len(cells):,} rows have a class that the model does not know, such as {strange[0]!r}; "
            f"it knows {shorten(known)}. --skip-unknown-classes uses their texts alone. A model that is to know the "
            "class has to be fitted on documents of it."
        )
    if not estimator.multilabel_:
        return np.array([known[row[0]] if row and row[0] in known else None for row in lists], dtype=object), n_strange
    place = {name: i for i, name in enumerate(names)}
    none = np.array([np.nan if cell is None else 0.0 for cell in cells])
    columns = [y[:, place[name]] if name in place else none
               for name in map(str, estimator.classes_)]  # fmt: skip
    return np.column_stack(columns), n_strange


def shorten(names: Any, most: int = 8) -> str:
    """Some names, for a message."""
    names = list(names)
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_share(name: str, share: float) -> None:
    """Refuse what is no share of documents to hold out."""
    if not 0 <= share < 1:
        raise ValueError(f"{name} is a share from 0 to 1, such as 0.2 for a fifth of the documents, got {share:g}.")


def check_place(path: Path) -> None:
    """Notice before the work that there is no place for its result."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent} cannot be written to.")


def save_somewhere(pipeline: Pipeline, path: Path) -> None:
    """Write the model; if its place has gone, write it elsewhere rather than lose it, and say so."""
    try:
        supertopic.save(pipeline, path)
    except OSError as error:
        other = Path(tempfile.mkdtemp(prefix="supertopic-")) / path.name
        supertopic.save(pipeline, other)
        raise OSError(f"The model could not be written to {path} ({error}); it is in {other}.") from error


def load(path: Path) -> Pipeline:
    if not path.is_file():
        raise FileNotFoundError(f"There is no model {path}.")
    pipeline = supertopic.load(path)
    if not isinstance(pipeline, Pipeline):
        raise ValueError(f"{path} holds a model without its vectorizer; the command needs both.")
    return pipeline
