"""Classes and labels: how they become columns of 0 and 1, and how columns become classes."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from supertopic.corpus.source import Target, make_target
from supertopic.model.responses.averages import average, draw_interval
from supertopic.model.responses.base import Encoded, Response
from supertopic.model.responses.columns import NewColumns
from supertopic.model.responses.unknown import find_unknown, join_classes
from supertopic.model.responses.values import MOST, check_columns, is_unknown, plain_array, plain_value

MANY = 8  # classes that a message names
LEAST_OF_A_CLASS = 4  # documents; a smaller class is not held out
MULTICLASS = ("shared", "separate", "stick_breaking")
# prior means of a seeded topic's weights for its class: of training weights, and of prediction weights
SEED_TRAINING, SEED_PREDICTION = 6.0, 40.0


@dataclass(frozen=True, eq=False)
class ClassResponse(Response):
    """Classes, or labels that may occur together.

    Two classes are one column, more are one column each, and labels are one column each. With stick-breaking, L classes
    are L - 1 columns: the first class or a later one, the second or a later one, and so on.
    """

    multiclass: str = field(default="shared", kw_only=True)
    class_weight: Any = field(default=None, kw_only=True)
    missing_label: Any = field(default=None, kw_only=True)
    classes: np.ndarray = field(default_factory=lambda: np.zeros(0, object), kw_only=True)
    multilabel: bool = field(default=False, kw_only=True)

    learned: ClassVar[tuple[str, ...]] = ("classes", "multilabel")
    grows: ClassVar[bool] = True
    has_sets: ClassVar[bool] = True
    score_name: ClassVar[str] = "accuracy"
    effect_on: ClassVar[str] = "score"
    seed_spread: ClassVar[float] = 0.1

    @property
    def kind(self) -> str:
        return "labels" if self.multilabel else "class"

    @property
    def binary(self) -> bool:
        """Whether there are two classes, which share one column."""
        return not self.multilabel and len(self.classes) == 2

    @property
    def sticks(self) -> bool:
        """Whether the columns are sticks: one less than the classes."""
        return self.multiclass == "stick_breaking" and not self.multilabel and len(self.classes) > 2

    @property
    def n_columns(self) -> int:
        return 1 if self.binary else len(self.classes) - self.sticks

    @property
    def column_names(self) -> list[str]:
        names = [str(name) for name in self.classes]
        return names[-1:] if self.n_columns == 1 else names[: self.n_columns]

    @property
    def labels(self) -> list[Any]:
        return self.classes.tolist()

    @property
    def answers(self) -> list[Any]:
        return self.classes.tolist()

    @property
    def exclusive(self) -> bool:
        """Whether exactly one column of a document is 1; its probability is then in proportion to its odds."""
        return False

    def unknown_classes(self, y: Any, classes: Any = None) -> list[Any]:
        return find_unknown(self.classes, y, classes, self.multilabel, self.missing_label)

    def with_new_classes(self, new: list[Any]) -> tuple[Self, NewColumns]:
        """New classes come after those that there were, so that columns and the order of sticks stay."""
        if not self.grows:
            return super().with_new_classes(new)
        response = replace(self, classes=join_classes(self.classes, new))
        source, sign = np.full(response.n_columns, -1), np.ones(response.n_columns)
        if not self.binary:
            source[: self.n_columns] = np.arange(self.n_columns)
        else:  # one column, which is for the second class and against the first
            source[: 1 if response.sticks else 2], sign[0] = 0, -1.0
        share = 0.5 if self.binary and response.exclusive else 1.0
        return response, NewColumns(source, sign, share, not response.sticks, self.exclusive)

    def column_parts(self, n_columns: int) -> list[slice]:
        if self.multiclass != "separate":
            return super().column_parts(n_columns)
        return [slice(r, r + 1) for r in range(n_columns)]

    def wholly_known(self, target: Target) -> np.ndarray:
        every = np.all if self.multilabel else np.any  # sticks that a class does not reach have no weight
        return every(target.weight > 0, axis=1)

    def may_hold_out(self, target: Target) -> np.ndarray:
        known = super().may_hold_out(target)
        if not self.multilabel:
            _, place, size = np.unique(target.y[known], axis=0, return_inverse=True, return_counts=True)
            known[known] = size[place.ravel()] >= LEAST_OF_A_CLASS
        return known

    def encode(
        self, y: Any, weight: np.ndarray, exposure: Any = None, classes: Any = None, sums: np.ndarray | None = None
    ) -> Encoded:
        n_docs, names, fitted = len(weight), getattr(y, "columns", None), len(self.classes) > 0
        check_columns(y, list(map(str, self.classes)))
        fixed = self.classes if fitted else None if classes is None else np.unique(classes)
        if fitted and classes is not None and not np.array_equal(np.unique(classes), np.unique(self.classes)):
            raise ValueError(f"classes are {list(self.classes)} since the first batch, got {list(classes)}.")
        if y is None and self.multilabel:
            y = np.full((n_docs, len(self.classes)), np.nan)
        elif y is None:
            y = np.full(n_docs, None, object)
        y = y.toarray() if issparse(y) else plain_array(y)
        if y.ndim != 2 or y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if len(y) != n_docs:
            raise ValueError(f"X has {n_docs} documents but y has {len(y)}; they must be equally many.")
        unknown = is_unknown(y, self.missing_label)
        known = ~unknown & (weight > 0).reshape(-1, *[1] * (y.ndim - 1))
        if not known.any() and fixed is None:
            raise ValueError("Every label in y is unknown (or has weight 0); at least some must be known.")
        if fitted and (self.multilabel != (y.ndim == 2) or (y.ndim == 2 and y.shape[1] != len(self.classes))):
            raise ValueError(
                f"y has shape {y.shape}, which is not what earlier batches had: {self.kind} of {len(self.classes)} "
                "names. New labels need add_classes=True."
            )
        if y.ndim == 2:
            labels = self.classes if fitted else label_names(y, names, classes)
            response, columns, weights = self._encode_labels(y, known, unknown, weight, labels)
        else:
            response, columns, weights = self._encode_classes(y, known, unknown, weight, fixed)
        if weights.max() * self.c > MOST:
            raise ValueError(f"Weights times c must be at most {MOST:g}, got {weights.max() * self.c:g}.")
        return Encoded(response, make_target(columns, weights), sums)

    def _encode_labels(
        self, y: np.ndarray, known: np.ndarray, unknown: np.ndarray, weight: np.ndarray, classes: np.ndarray
    ) -> tuple[Self, np.ndarray, np.ndarray]:
        values = set(np.unique(y[~unknown].astype(object)).tolist())
        if not values <= {0, 1}:
            raise ValueError(f"A 2-D y must be a 0/1 indicator matrix, got values {sorted(values, key=str)[:5]}.")
        columns, weights = np.where(unknown, 0, y).astype(float), known * weight[:, None]
        if self.class_weight is not None:
            weights = weights * balanced(columns, weights > 0, self.class_weight)
        return replace(self, classes=classes, multilabel=True), columns, weights

    def _encode_classes(
        self, y: np.ndarray, known: np.ndarray, unknown: np.ndarray, weight: np.ndarray, fixed: np.ndarray | None
    ) -> tuple[Self, np.ndarray, np.ndarray]:
        labels, index = y[~unknown], np.zeros(len(y), int)
        if not len(labels) and fixed is not None:
            response = replace(self, classes=fixed)
            return response, *response.class_columns(index, np.zeros(len(y)))
        if labels.dtype == object and not all(isinstance(label, str) for label in labels):
            labels = np.array(labels.tolist())  # whole numbers beside None
            if labels.dtype.kind not in "iufb":
                raise ValueError("y mixes text and numbers; give every label the same type.")
        check_classification_targets(labels)
        classes = np.unique(labels) if fixed is None else fixed
        seen, stray = y[known].astype(labels.dtype), np.setdiff1d(labels, classes)
        if len(stray):
            raise ValueError(
                f"y has the class {plain_value(stray[0])!r}, which was not there at first; add_classes=True adds it, "
                "or the first partial_fit takes all of them as classes=."
            )
        if fixed is None and len(np.unique(seen)) < 2:
            raise ValueError(f"y has one class only ({classes[0]}); a classifier needs at least two.")
        order = np.argsort(classes, kind="stable")  # classes of later batches come last
        index[known] = order[np.searchsorted(classes, seen, sorter=order)]
        weight = known * weight
        if self.class_weight is not None and len(seen):
            weights = compute_class_weight(self.class_weight, classes=np.unique(seen), y=seen)
            weight[known] *= weights[np.searchsorted(np.unique(seen), seen)]
        response = replace(self, classes=classes)
        return response, *response.class_columns(index, weight)

    def class_columns(self, index: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of 0 and 1 with their weights, from the number of each document's class."""
        if self.sticks:  # a document reaches the sticks up to its own class
            stick = np.arange(self.n_columns)
            return (index[:, None] == stick).astype(float), weight[:, None] * (index[:, None] >= stick)
        columns = (index[:, None] == np.arange(len(self.classes))).astype(float)
        columns = columns[:, 1:] if self.binary else columns
        return columns, np.repeat(weight[:, None], columns.shape[1], axis=1)

    def start_columns(self, target: Target) -> np.ndarray:
        """A column for each class or label; two classes have one each."""
        if self.n_columns == 1:
            return super().start_columns(target)
        yes = target.y * (target.weight > 0)
        last = (target.weight[:, :1] > 0) & ~yes.any(axis=1, keepdims=True)  # of the classes, which has no stick
        return np.hstack([yes, last]) if self.sticks else yes

    def seed_means(self, weights: Any, topics: list[str], n_topics: int, n_columns: int) -> np.ndarray | None:
        labels = {str(label): j for j, label in enumerate(self.classes)}
        if weights == "auto":
            weights = {topic: topic for topic in topics if topic in labels}
        stray = [label for label in weights.values() if str(label) not in labels]
        if stray:
            raise ValueError(
                f"Seeds: {plain_value(stray[0])!r} in weights is not one of the classes {list(labels)[:5]} ..."
            )
        means = np.zeros((2, n_columns, n_topics))
        for topic, label in weights.items():
            j, pull = labels[str(label)], np.zeros(n_columns)
            if n_columns == len(labels):
                pull[j] = 1.0
            elif n_columns == 1:
                pull[:] = 2.0 * j / (len(labels) - 1) - 1.0
            else:  # sticks: not a class before it, and then this one
                pull[:j], pull[j : j + 1] = -1.0, 1.0
            means[:, :, topics.index(topic)] = np.array([SEED_TRAINING, SEED_PREDICTION])[:, None] * pull
        return means

    def seed_support(self, target: Target, means: np.ndarray) -> np.ndarray:
        known = target.weight > 0
        yes, no = (np.count_nonzero(known & (target.y == value), axis=0) for value in (1.0, 0.0))  # (R,)
        column = means.argmax(axis=0)
        return np.where(means.max(axis=0) > 0, yes[column], no[-1])  # the first of two classes, the last of sticks

    def explained(self) -> tuple[list[str], np.ndarray]:
        if not self.sticks:
            return super().explained()
        n = len(self.classes)  # a class comes after decisions against those before it
        return [str(name) for name in self.classes], (np.eye(n) - np.tri(n, k=-1))[:, : n - 1]

    def table_answers(self) -> tuple[list[int], list[str], str]:
        """Of two classes the second. Scores have no unit; their reported weights are log-odds."""
        places, names, _ = super().table_answers()
        if not self.has_probabilities:
            return places, names, "log-odds"
        return (
            (places[-1:], names[-1:], "percentage points") if len(names) == 2 else (places, names, "percentage points")
        )

    def predicted(self, expected: np.ndarray) -> list[Any]:
        chosen = self.chosen(expected)
        return self.named(chosen) if self.multilabel else self.classes[chosen].tolist()

    def observed(self, truth: np.ndarray, y: Any, rows: np.ndarray) -> list[Any]:
        own = truth[rows]
        if self.multilabel:
            return self.named(own)
        unknown, place = np.isnan(own).any(axis=1), np.nan_to_num(own).argmax(axis=1)
        return [None if gone else label for gone, label in zip(unknown, self.classes[place].tolist(), strict=True)]

    def named(self, labels: np.ndarray) -> list[Any]:
        """The names of the labels that each document has; None where none of them is known."""
        names = self.classes.tolist()
        return [
            None if np.isnan(row).all() else tuple(name for name, has in zip(names, row, strict=True) if has == 1)
            for row in labels
        ]

    def as_text(self, truth: np.ndarray) -> str | None:
        return None if np.isnan(truth).any() or self.multilabel else str(self.labels[int(truth.argmax())])

    def interval(self, omegas: np.ndarray, scales: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        return draw_interval(self.expected(omegas, scales), level)

    def predictions(self, omegas: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
        """The class, or a list of labels, and the probability (or the score) of each."""
        scores, names = average(self.expected(omegas, scales)), self.labels
        chosen, what = self.chosen(scores), "p" if self.has_probabilities else "score"
        found = np.empty(len(chosen), object)  # a row of labels is a cell, too
        for d, own in enumerate(chosen):
            found[d] = [names[i] for i in np.flatnonzero(own)] if self.multilabel else names[own]
        columns = zip(self.answers, scores.T, strict=True)
        return {"prediction": found} | {f"{what}({name})": column for name, column in columns}

    def truth(self, y: Any, n_docs: int) -> np.ndarray:
        """Columns of 0 and 1, one for each class or label; NaN where y is unknown."""
        check_columns(y, list(map(str, self.classes)))
        y = y.toarray() if issparse(y) else plain_array(y)
        if len(y) != n_docs:
            raise ValueError(f"X has {n_docs} documents but y has {len(y)}; they must be equally many.")
        if self.multilabel != (y.ndim == 2) or (y.ndim == 2 and y.shape[1] != len(self.classes)):
            fitted = f"{len(self.classes)} labels" if self.multilabel else "one class for each document"
            raise ValueError(f"y has shape {y.shape}, but the model was fitted with {fitted}.")
        unknown = is_unknown(y, self.missing_label)
        if self.multilabel:
            return np.where(unknown, np.nan, np.where(unknown, 0, y).astype(float))
        known = y[~unknown]
        stray = known[~np.isin(known, self.classes)]
        if len(stray):
            names = ", ".join(repr(name) for name in self.classes[:MANY].tolist())
            names += f" and {len(self.classes) - MANY} more" if len(self.classes) > MANY else ""
            raise ValueError(
                f"y has the class {plain_value(stray[0])!r}, which is not a class of the model; its classes are "
                f"{names}."
            )
        return np.where(unknown[:, None], np.nan, (y[:, None] == self.classes).astype(float))

    def encoded_truth(self, y: np.ndarray) -> np.ndarray:
        if self.binary:
            return np.hstack([1.0 - y, y])
        if self.sticks:  # of the sticks that a document reaches, only the last may be 1
            return np.hstack([y, 1.0 - y.sum(axis=1, keepdims=True)])
        return y

    def right(self, truth: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Which predictions (n_docs, n_answers) are right: (n_docs, n_labels), or (n_docs, 1)."""
        if self.multilabel:
            return self.chosen(expected) == truth
        return (self.chosen(expected) == truth.argmax(axis=1))[:, None]

    @abstractmethod
    def chosen(self, expected: np.ndarray) -> np.ndarray:
        """The number of each document's class, (n_docs,), or its labels as 0 and 1."""

    @abstractmethod
    def set_scores(self, expected: np.ndarray) -> np.ndarray:
        """When each class or label joins a set that grows, (n_docs, n_classes): the smaller, the earlier.

        The best class joins at 0, so that no set of classes is empty.
        """

    @abstractmethod
    def confidence(self, expected: np.ndarray) -> np.ndarray:
        """How sure the class or each label is that `chosen` chooses: (n_docs, 1) or (n_docs, n_labels)."""

    def score(self, truth: np.ndarray, expected: np.ndarray) -> float:
        return float(self.right(truth, expected).mean())

    def how(self, shared: str) -> str:
        """A sentence about how the classes were modelled; `shared` says whether topics are."""
        if self.sticks:
            return " The classes were modelled by stick-breaking, in this order."
        return f" Each class had weights of its own against the rest{shared}." if len(self.classes) > 2 else ""

    def check_fitted(self, n_columns: int) -> None:
        if self.classes.ndim != 1 or not len(self.classes) or n_columns != self.n_columns:
            raise ValueError("The number of classes cannot be right.")


def label_names(y: np.ndarray, names: Any, classes: Any) -> np.ndarray:
    """The names of labels in the order of y's columns: those of a DataFrame, those given, or numbers."""
    if classes is None:
        return np.arange(y.shape[1]) if names is None else np.array(list(map(str, names)), dtype=object)
    given = np.array(list(classes) if names is None else list(map(str, names)), dtype=object)
    if len(given) != y.shape[1] or set(map(str, given)) != set(map(str, classes)):
        raise ValueError(f"y has {y.shape[1]} labels, which must be those of classes, got {list(classes)}.")
    return given


def balanced(columns: np.ndarray, known: np.ndarray, class_weight: Any) -> np.ndarray:
    """Weights that give having and not having a label the same sum, column by column."""
    if class_weight != "balanced":
        raise ValueError(f"class_weight must be 'balanced' or None where y holds labels, got {class_weight!r}.")
    n = known.sum(axis=0)
    yes = (columns * known).sum(axis=0)
    return np.where(columns > 0.5, n / np.maximum(2 * yes, 1), n / np.maximum(2 * (n - yes), 1))


def sum_known(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The sum over labels, or the only number, of each document; NaN where nothing is known of it."""
    unknown = np.isnan(truth)
    if values.shape != truth.shape:
        unknown = unknown.all(axis=1, keepdims=True)
    return np.where(unknown.all(axis=1), np.nan, np.where(unknown, 0.0, values).sum(axis=1))
