"""The kinds of responses that the command supports: how cells become y, which estimator they need, how it is tested.

A new kind is a class here and a place in `KINDS`. What `predict` writes is the response's own: see
`Response.predictions`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from supertopic.command.cells import (
    Column,
    NamedColumns,
    as_classes,
    as_events,
    as_grades,
    as_labels,
    as_numbers,
    grade_name,
    guess,
    indicators,
    split_labels,
    without,
)
from supertopic.command.evaluate import (
    evaluate_classes,
    evaluate_grades,
    evaluate_numbers,
    evaluate_raters,
    evaluate_times,
)
from supertopic.command.look import Cells, look_at_classes, tidy_labels
from supertopic.corpus.look import plain_space
from supertopic.estimators.classifiers import MedLDAClassifier, SLDAClassifier
from supertopic.estimators.crowd import SLDACrowdClassifier, SLDACrowdRegressor
from supertopic.estimators.ordinal import SLDAOrdinalClassifier
from supertopic.estimators.regressors import SLDACountRegressor, SLDARegressor
from supertopic.estimators.supervised import Supervised
from supertopic.estimators.survival import SLDASurvivalRegressor
from supertopic.model.responses import Response
from supertopic.model.responses.answers import GOLD

MISSING = ("", "NA")  # cells of a class that are unknown to a fitted model
MANY = 8  # classes that a message names
ALWAYS = ("label", "separator", "missing")  # options that go with every kind


@dataclass(frozen=True)
class Asked:
    """The options that are about the response."""

    label: str
    separator: str = ";"
    missing: Sequence[str] = ("NA",)  # words that are unknown
    loss: str = "logistic"
    multiclass: str = "shared"
    balanced: bool = False
    exposure: str | None = None
    order: str | None = None
    event: str | None = None
    gold: str | None = None
    add_classes: bool = False  # to a fitted model

    def special(self) -> dict[str, str]:
        """The options that go with some kinds only and are not at their defaults; and how a message names each."""
        found = {}
        for option in fields(self):
            value, names_it = getattr(self, option.name), option.name in ("loss", "multiclass")
            if option.name not in ALWAYS and value != option.default:
                found[option.name] = f"--{option.name}" + (f" {value}" if names_it else "")
        return found


class ResponseKind(ABC):
    """A kind of response."""

    name: ClassVar[str]  # --response
    fitted: ClassVar[str]  # `kind` of the fitted response
    options: ClassVar[frozenset[str]] = frozenset()  # those of `Asked` that go with it
    one_class: ClassVar[bool] = False  # whether a document has one class: tests are stratified, and have a rival
    has_names: ClassVar[bool] = False  # whether cells hold names, which may be written in several ways
    several: ClassVar[bool] = False  # whether a cell may hold several of them

    def columns(self, asked: Asked) -> list[str]:
        """The columns of the table that it reads."""
        return [asked.label]

    @abstractmethod
    def read(self, cells: Cells, asked: Asked) -> Column:
        """The response of each row."""

    def wrong_options(self, asked: Asked) -> list[str]:
        """The options that do not go with it."""
        return [shown for name, shown in asked.special().items() if name not in self.options]

    @abstractmethod
    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        """The estimator; `options` are those that all estimators have, and those of the column."""

    @abstractmethod
    def known(self, response: Response, cells: Cells, asked: Asked, skip: bool = True) -> tuple[np.ndarray, int]:
        """The cells as y of a fitted response, and the number of rows with a class that it does not have.

        Such rows are refused, or their response is unknown if they are to be skipped.
        """

    @abstractmethod
    def evaluate(
        self, model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]
    ) -> dict[str, Any]:
        """Figures for test documents; the base rate is that of the known training responses."""


class Numbers(ResponseKind):
    """What ratings and counts have in common."""

    def read(self, cells: Cells, asked: Asked) -> Column:
        found, n_missing = without(cells(asked.label), asked.missing)
        values = as_numbers(found, "the response", f"--response {self.name}")
        return Column(values, (asked.label,), n_missing)

    def known(self, response: Response, cells: Cells, asked: Asked, skip: bool = True) -> tuple[np.ndarray, int]:
        return as_numbers(cells(asked.label), asked.label, "the response"), 0

    def evaluate(
        self, model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]
    ) -> dict[str, Any]:
        return evaluate_numbers(model.predict(X, **beside), y, train_y)


class Ratings(Numbers):
    name = fitted = "rating"

    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        return SLDARegressor(**options)


class Counts(Numbers):
    name = fitted = "count"
    options = frozenset({"exposure"})

    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        return SLDACountRegressor(**options)


class Times(ResponseKind):
    """Times until an event: two columns, of which the second may be left out if all events came."""

    name = fitted = "time"
    options = frozenset({"event"})

    def columns(self, asked: Asked) -> list[str]:
        return [asked.label, *([asked.event] if asked.event else [])]

    def read(self, cells: Cells, asked: Asked) -> Column:
        found, n_missing = without(cells(asked.label), asked.missing)
        time = as_numbers(found, asked.label, "--response time")
        if (time < 0).any():
            row = int((time < 0).argmax())
            raise ValueError(f"Row {row + 1} of {asked.label!r} holds {time[row]:g}; times are 0 or more.")
        event = np.ones(len(time))
        if asked.event:
            event = as_events(without(cells(asked.event), asked.missing)[0], asked.event)
        y = np.column_stack([time, event])
        return Column(np.where(np.isnan(y).any(axis=1, keepdims=True), np.nan, y), n_missing=n_missing)

    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        return SLDASurvivalRegressor(**options)

    def known(self, response: Response, cells: Cells, asked: Asked, skip: bool = True) -> tuple[np.ndarray, int]:
        return self.read(cells, asked).y, 0

    def evaluate(
        self, model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]
    ) -> dict[str, Any]:
        return evaluate_times(model, X, y, beside)


class Classes(ResponseKind):
    name = fitted = "class"
    options = frozenset({"loss", "multiclass", "balanced"})
    one_class = has_names = True

    def read(self, cells: Cells, asked: Asked) -> Column:
        found, n_missing = without(cells(asked.label), asked.missing)
        return Column(as_classes(found), n_missing=n_missing)

    def wrong_options(self, asked: Asked) -> list[str]:
        less = {"multiclass"} if asked.loss == "hinge" else set()
        return [shown for name, shown in asked.special().items() if name not in self.options - less]

    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        options = options | {"class_weight": "balanced" if asked.balanced else None}
        if asked.loss == "hinge":
            return MedLDAClassifier(**options)
        return SLDAClassifier(multiclass=str(asked.multiclass), **options)

    def sets(self, cells: list[Any], asked: Asked) -> list[set[str] | None]:
        """The names in each cell, None where it is empty."""
        return [None if cell is None or str(cell) in MISSING else {str(cell)} for cell in cells]

    def known(self, response: Response, cells: Cells, asked: Asked, skip: bool = True) -> tuple[np.ndarray, int]:
        rows, names = self.sets(cells(asked.label), asked), self.names(response)
        rows = [row and {as_written(name, names) for name in row} for row in rows]
        if asked.add_classes:
            return self.with_new(rows, names), 0
        strange = [row - names.keys() for row in rows if row and row - names.keys()]
        if strange and not skip:
            more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
            raise ValueError(
                f"{len(strange):,} of {len(rows):,} rows have a class that is new to the model, such as "
                f"{min(strange[0])!r}; its classes are {', '.join(map(repr, list(names)[:MANY]))}{more}. "
                "--add-classes adds such classes, and --skip-unknown-classes uses the texts of these rows alone."
            )
        return self.as_y(rows, names), len(strange)

    def names(self, response: Response) -> dict[str, Any]:
        """The classes of a fitted response by what a cell holds."""
        return {str(value): value for value in response.labels or ()}

    def with_new(self, rows: list[set[str] | None], names: dict[str, Any]) -> Any:
        """The sets of names as y, with those that a fitted response does not have."""
        new = sorted(set().union(*(row - names.keys() for row in rows if row)))
        whole = all(isinstance(value, int) for value in names.values())
        values = as_classes(list(new)) if whole else new
        return self.as_y(rows, names | dict(zip(new, values, strict=True)))

    def as_y(self, rows: list[set[str] | None], names: dict[str, Any]) -> np.ndarray:
        """The sets of names as y."""
        return np.array([names.get(min(row)) if row else None for row in rows], dtype=object)

    def evaluate(
        self, model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]
    ) -> dict[str, Any]:
        return evaluate_classes(model, X, y, train_y, beside)


class Labels(Classes):
    name = fitted = "labels"
    one_class, several = False, True

    def read(self, cells: Cells, asked: Asked) -> Column:
        found, n_missing = without(cells(asked.label), asked.missing)
        y, names = as_labels(found, asked.separator)
        return Column(y, names, n_missing=n_missing)

    def wrong_options(self, asked: Asked) -> list[str]:
        sticks = [f"--multiclass {asked.multiclass}"] if asked.multiclass == "stick_breaking" else []
        return super().wrong_options(asked) or sticks

    def sets(self, cells: list[Any], asked: Asked) -> list[set[str] | None]:
        return [split_labels(cell, asked.separator) for cell in cells]

    def with_new(self, rows: list[set[str] | None], names: dict[str, Any]) -> Any:
        every = [*names, *sorted(set().union(*(row - names.keys() for row in rows if row)))]
        return NamedColumns(indicators(rows, every), every)

    def as_y(self, rows: list[set[str] | None], names: dict[str, Any]) -> np.ndarray:
        return indicators(rows, names)


class Ordered(Classes):
    """Ordered classes: numbers, or names with --order."""

    name, fitted = "ordinal", "grade"
    options = frozenset({"balanced", "order"})

    def read(self, cells: Cells, asked: Asked) -> Column:
        found, n_missing = without(cells(asked.label), asked.missing)
        y, order = as_grades(found, asked.order, asked.label)
        # all rows know the classes, so that one which is in test documents alone has a place
        return Column(y, n_missing=n_missing, options={"order": order} if len(order) > 1 else {})

    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        return SLDAOrdinalClassifier(**options, class_weight="balanced" if asked.balanced else None)

    def sets(self, cells: list[Any], asked: Asked) -> list[set[str] | None]:
        return [None if cell is None or str(cell).strip() in MISSING else {grade_name(cell)} for cell in cells]

    def names(self, response: Response) -> dict[str, Any]:
        return {grade_name(value): value for value in response.labels or ()}

    def evaluate(
        self, model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]
    ) -> dict[str, Any]:
        return evaluate_grades(model, X, y, train_y, beside)


class RatersClasses(ResponseKind):
    """Classes that several raters gave: --label has their columns, separated by commas, and --gold true classes."""

    name, fitted = "raters", "class of several raters"
    options = frozenset({"gold", "balanced"})
    has_names = True

    def columns(self, asked: Asked) -> list[str]:
        return [*(name.strip() for name in asked.label.split(",")), *([asked.gold] if asked.gold else [])]

    def read(self, cells: Cells, asked: Asked) -> Column:
        names = self.columns(asked)
        parts = [without(cells(name), asked.missing) for name in names]
        y = self.values([found for found, _ in parts], names)
        names = [*names[:-1], GOLD] if asked.gold else names
        return Column(y, names, n_missing=sum(n for _, n in parts))

    def values(self, cells: list[list[Any]], names: list[str]) -> np.ndarray:
        """The cells of each rater as y, (n_docs, n_raters)."""
        together = as_classes([cell for own in cells for cell in own])  # of one type
        return together.reshape(len(cells), -1).T

    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        return SLDACrowdClassifier(**options, class_weight="balanced" if asked.balanced else None)

    def known(self, response: Response, cells: Cells, asked: Asked, skip: bool = True) -> tuple[Any, int]:
        return self.read(cells, asked).target, 0

    def evaluate(
        self, model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]
    ) -> dict[str, Any]:
        raters = model.raters_.tolist()
        names = raters if y.shape[1] == len(raters) else [*raters, GOLD]
        return evaluate_raters(model, X, NamedColumns(y, names), beside)


class RatersRatings(RatersClasses):
    name, fitted = "raters-rating", "rating of several raters"
    options = frozenset({"gold"})
    has_names = False

    def values(self, cells: list[list[Any]], names: list[str]) -> np.ndarray:
        option = f"--response {self.name}"
        return np.column_stack([as_numbers(own, name, option) for own, name in zip(cells, names, strict=True)])

    def make(self, asked: Asked, options: dict[str, Any]) -> Supervised:
        return SLDACrowdRegressor(**options)


KINDS: dict[str, ResponseKind] = {
    kind.name: kind
    for kind in (
        Classes(),
        Labels(),
        Ordered(),
        Ratings(),
        Counts(),
        Times(),
        RatersClasses(),
        RatersRatings(),
    )
}


def kind_of(response: Response) -> ResponseKind:
    """The kind of a fitted response."""
    for kind in KINDS.values():
        if kind.fitted == response.kind:
            return kind
    raise ValueError(f"The command does not support responses of the kind {response.kind!r}.")


def response_columns(response: str, asked: Asked) -> list[str]:
    """The columns of the table that a kind of response, or "auto", reads."""
    return [asked.label] if response == "auto" else KINDS[response].columns(asked)


def read_response(cells: Cells, response: str, asked: Asked) -> Column:
    """The response that is asked for, or with "auto" the one that the cells look like."""
    why = "asked for"
    if response == "auto":
        response, why = guess(without(cells(asked.label), asked.missing)[0], asked.separator)
    kind, found = KINDS[response], list[str]()
    if kind.has_names:
        separator = asked.separator if kind.several else None
        cells, found = tidy_labels(cells, kind.columns(asked), separator, asked.missing)
    column = kind.read(cells, asked)
    if kind.one_class or kind.several:
        found += look_at_classes(column)
    return column._replace(response=str(response), why=why, findings=found)


def as_written(name: str, names: dict[str, Any]) -> str:
    """A class as a fitted response writes it, if it differs by white space or by case only; else as it is."""
    if name in names:
        return name
    alike = [known for known in names if plain_space(known).casefold() == plain_space(name).casefold()]
    return alike[0] if len(alike) == 1 else name


def make_model(column: Column, asked: Asked, options: dict[str, Any]) -> Supervised:
    """The estimator for a response; options that it cannot use are refused."""
    kind = KINDS[column.response]
    for option in kind.wrong_options(asked):
        raise ValueError(f"{option} cannot be used with the response {kind.name!r} and the loss {str(asked.loss)!r}.")
    return kind.make(asked, options | dict(column.options))
