"""A model that answers requests: documents in, rows of JSON out. Nothing here knows of HTTP."""

import math
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from supertopic.corpus.frames import frame_of_cells
from supertopic.estimators.base import TopicModel
from supertopic.estimators.files import load_for_texts
from supertopic.estimators.supervised import Supervised
from supertopic.report.colours import Piece, colour_text
from supertopic.report.summary import describe_topics
from supertopic.report.topics import topic_labels, vocabulary_of
from supertopic.serve.asked import Document, Options
from supertopic.serve.examples import Example, Examples
from supertopic.serve.limits import Refused
from supertopic.serve.needs import needs_of

Row = dict[str, Any]
WORDS = 10  # of a topic
NEAREST = 3  # topics of a document that are shown with their words, and documents like it


class ServedModel:
    """One version of a model file. It never changes, and any number of threads may ask it."""

    def __init__(self, estimator: TopicModel, name: str = "model", documents: Sequence[Example] = ()):
        self.estimator, self.name, self.loaded = estimator, name, time.time()
        self.posterior = estimator.posterior_
        self.needs, self.examples = needs_of(estimator), Examples(estimator, documents)
        self.explaining = threading.Lock()  # explanations are large

    @classmethod
    def load(cls, path: Path, mmap: bool = False, documents: Sequence[Example] = ()) -> "ServedModel":
        """The model of a file, after a first prediction: the next ones are quick."""
        found = cls(load_for_texts(path, mmap=mmap), path.name, documents)
        found.warm()
        return found

    def warm(self) -> None:
        """Do once what takes long at first: topics that are frozen, kernels that are compiled, names of topics."""
        document = Document(
            " ".join(map(str, self.names[:3])), tuple(self.usual_covariates()), 1.0 if self.needs.exposed else None,
            (0.0,) * self.needs.n_features, "" if self.needs.has_groups else None,
        )  # fmt: skip
        self.predict([document], Options())
        if self.needs.response != "none":
            self.explain(document, 0.9)
        assert self.topics

    def usual_covariates(self) -> list[Any]:
        """Some values that the model takes."""
        term = self.posterior.covariates
        if term is None:
            return []
        if term.columns.design is None:
            return term.columns.mean.tolist()
        return [column.levels[0] if column.levels else "2000-01-01" if column.kind == "date" else column.mean
                for column in term.columns.design.columns]  # fmt: skip

    @cached_property
    def names(self) -> np.ndarray:
        return vocabulary_of(self.posterior)

    @cached_property
    def topics(self) -> list[Row]:
        """The topics, the largest first."""
        return [plain(row) for row in describe_topics(self.posterior, self.names, WORDS)]

    @cached_property
    def topics_by_number(self) -> dict[int, Row]:
        return {row["topic"]: row for row in self.topics}

    def beside(self, documents: Sequence[Document]) -> dict[str, Any]:
        """What is known of documents beside their texts, as arguments of the estimator."""
        found: dict[str, Any] = {}
        kinds = self.needs.covariates
        if kinds and self.posterior.covariates is not None:
            cells = {name: [document.covariates[i] for document in documents] for i, name in enumerate(kinds)}
            if self.posterior.covariates.columns.design is None:
                found["covariates"] = np.array([as_numbers(document.covariates, kinds) for document in documents])
            else:
                found["covariates"] = frame_of_cells(cells, kinds)
        if self.needs.takes_exposure and any(document.exposure is not None for document in documents):
            found["exposure"] = [1.0 if document.exposure is None else document.exposure for document in documents]
        if self.needs.n_features:
            found["features"] = np.array([document.features for document in documents])
        if self.needs.has_groups:
            found["groups"] = [document.group for document in documents]
        return found

    def predict(self, documents: Sequence[Document], options: Options) -> list[Row]:
        """A row for each document: the columns of `predict_table`, and what the options ask for."""
        if not documents:
            return []
        texts, columns = [document.text for document in documents], dict[str, list[Any]]()
        estimator = self.estimator
        if isinstance(estimator, Supervised):
            beside = self.beside(documents)
            columns |= {name: values.tolist() for name, values in estimator.predict_table(texts, **beside).items()}
            if options.set is not None:
                columns["set"] = self.sets(texts, options.set, beside)
            if options.interval is not None:
                more = {"conformal": True} if options.conformal else {}
                columns["interval"] = self.intervals(texts, options.interval, beside | more)
        if options.topics or not isinstance(estimator, Supervised):
            columns["topics"] = [self.shares(row) for row in estimator.transform(texts)]
        names = list(columns)
        return [plain(dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def sets(self, texts: list[str], level: float, beside: dict[str, Any]) -> list[Any]:
        """The classes of each set."""
        inside = self.ask("predict_set", texts, level, beside)
        return [[name for name, own in zip(self.needs.answers, row, strict=True) if own] for row in inside]

    def intervals(self, texts: list[str], level: float, beside: dict[str, Any]) -> list[Any]:
        """The ends of each interval: of each class by its name, or of the only number."""
        ends = np.stack([np.asarray(end) for end in self.ask("predict_interval", texts, level, beside)], axis=-1)
        if ends.ndim == 2:
            return ends.tolist()
        names = self.needs.answers
        return [
            dict(zip(map(str, names), row, strict=True)) if len(row) == len(names) else row for row in ends.tolist()
        ]

    def ask(self, method: str, texts: list[str], level: float, beside: dict[str, Any]) -> Any:
        """A method of the estimator that takes a level."""
        found = getattr(self.estimator, method, None)
        if found is None:
            raise Refused(422, f"A {self.needs.kind} has no {method}; leave {method.removeprefix('predict_')} out.")
        return found(texts, level, **beside)

    def shares(self, row: np.ndarray) -> list[Row]:
        """The topics of a document, the largest first."""
        order = np.argsort(-row, kind="stable")
        return [{"topic": int(k), "share": float(row[k])} for k in order if row[k] > 0]

    def explain(self, document: Document, level: float) -> Row:
        """Why: what each word adds, the text in pieces with what each adds, and the nearest topics."""
        if not isinstance(self.estimator, Supervised):
            raise Refused(422, f"The model is a {self.needs.kind}, which has no response to explain.")
        with self.explaining:
            found = self.estimator.explain(document.text, level=level, **self.beside([document]))
        total = found.total
        pieces = colour_text(document.text, self.estimator, found)
        words = [
            {"word": word, "times": int(n), "adds": own, "through_topics": through, "lower": low, "upper": high}
            for word, n, own, through, low, high in zip(
                found.words, found.times, total.tolist(), found.through_topics.tolist(), found.lower.tolist(),
                found.upper.tolist(), strict=True,
            )
        ]  # fmt: skip
        labels = topic_labels(self.posterior, self.names)
        nearest = [
            {"topic": int(k), "label": labels[k], "share": float(found.topic_shares[k]),
             "adds": found.topics[k].tolist(), "words": self.topics_by_number[int(k)]["words"]}
            for k in np.argsort(-found.topic_shares, kind="stable")[:NEAREST]
            if found.topic_shares[k] > 0
        ]  # fmt: skip
        lower, upper = found.mean_interval
        return plain({
            "columns": found.columns, "column": found.column, "omega": found.omega.tolist(),
            "mean": [
                {"name": name, "value": value, "lower": low, "upper": high}
                for name, value, low, high in zip(found.mean_names, found.mean, lower, upper, strict=True)
            ],
            "others": {name: value.tolist() for name, value in found.others.items()},
            "words": words, "topics": nearest, "documents": self.examples.nearest(found.topic_shares, NEAREST),
            "pieces": [piece_row(piece) for piece in pieces],
        })  # fmt: skip


def as_numbers(values: Sequence[Any], kinds: dict[str, str]) -> list[float]:
    """Covariates that are numbers."""
    try:
        return [float(value) for value in values]
    except ValueError:
        strange = next(value for value in values if isinstance(value, str))
        raise Refused(422, f"covariates has {strange[:40]!r}; numbers were expected: {', '.join(kinds)}.") from None


def piece_row(piece: Piece) -> Row:
    """A piece of a text for JSON."""
    return {"text": piece.text} if piece.adds is None else {"text": piece.text, "adds": piece.adds.tolist()}


def plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's numbers become Python's, and infinite ones null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
