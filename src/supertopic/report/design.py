"""What is known of each document, as variables and as the columns of a regression."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import qr

from supertopic.corpus.frames import BOOLEAN, CATEGORY, Column, read_any_frame

MOST = 1e100  # largest number: its square is finite
MOST_POINTS = 30  # at which a curve over a number is computed
DEPENDENT = 1e-9  # the part of a column of length 1 that others leave, at which it follows from them

Values = dict[str, np.ndarray]  # of each variable, (n_docs,)


@dataclass(frozen=True, eq=False)
class Variable:
    """A number or a group of each document."""

    values: np.ndarray  # (n_docs,): numbers, booleans or texts
    levels: tuple[Any, ...] | None  # the groups in their order; None for a number

    @cached_property
    def points(self) -> list[Any]:
        """The groups, or some numbers from the lowest to the highest, all of them observed."""
        if self.levels is not None:
            return list(self.levels)
        found = np.unique(self.values)
        if len(found) > MOST_POINTS:
            even = np.linspace(found[0], found[-1], MOST_POINTS)
            found = np.unique(found[np.abs(found[:, None] - even).argmin(axis=0)])
        return found.tolist()

    def part(self, docs: np.ndarray) -> "Variable":
        """The variable of some documents, and those groups that they have."""
        values = self.values[docs]
        present = set(values.tolist()) if self.levels is not None else set()
        return Variable(values, self.levels and tuple(level for level in self.levels if level in present))

    def find(self, value: Any, name: str) -> Any:
        """A value as the design reads it: a known group, or a finite number."""
        if self.levels is not None:
            same = [level for level in self.levels if level == value or str(level) == str(value)]
            if not same:
                raise ValueError(f"{name!r} has no group {value!r}; its groups are {', '.join(map(str, self.levels))}.")
            return same[0]
        if not isinstance(value, Real) or not np.isfinite(float(value)):
            raise ValueError(f"{name!r} is a number (a date is a year, such as 2020.5); got {value!r}.")
        return value


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of a regression, and how they are made from variables."""

    variables: dict[str, Variable]
    names: list[str]  # (p,): of the coefficients
    build: Callable[[Values], np.ndarray]  # (n_docs, p), from values of all variables

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.build({name: variable.values for name, variable in self.variables.items()})

    def row(self, fixed: Mapping[str, Any]) -> np.ndarray:
        """The mean row of all documents, (p,), if some variables had the same value in each of them.

        Without interactions this holds the other columns at their means, which are observed proportions for groups.
        """
        values = {name: variable.values for name, variable in self.variables.items()}
        for name, value in fixed.items():
            values[name] = np.full(len(values[name]), value)
        return self.build(values).mean(axis=0)


def plain_design(variables: dict[str, Variable]) -> Design:
    """An intercept, a column for each group but the first of each variable, and numbers as they are."""
    for name, variable in variables.items():
        if len(variable.points) < 2:
            raise ValueError(
                f"{name!r} is {variable.points[0]!r} for every document: there is nothing to compare. Leave it out, or "
                "give documents of several groups."
            )
    names = ["intercept"]
    for name, variable in variables.items():
        names += [name] if variable.levels is None else [f"{name}[{level}]" for level in variable.levels[1:]]

    def build(values: Values) -> np.ndarray:
        columns = [np.ones(len(next(iter(values.values()))))]
        for name, variable in variables.items():
            if variable.levels is None:
                columns.append(values[name].astype(float))
            else:
                columns += [(values[name] == level).astype(float) for level in variable.levels[1:]]
        return np.stack(columns, axis=1)

    return Design(variables, names, build)


def check_design(design: Design, n_docs: int) -> None:
    """Refuse a design that no regression on this many documents can have."""
    matrix = design.matrix
    if not np.isfinite(matrix).all():
        name = design.names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])]
        raise ValueError(f"The column {name!r} of the design is not finite. Does the formula take a log of 0?")
    n_columns = matrix.shape[1]
    if n_columns >= n_docs:
        raise ValueError(
            f"The regression has {n_columns} coefficients for {n_docs} documents with known words; it needs more "
            "documents than coefficients. Is there a group for each document?"
        )
    length = np.sqrt((matrix**2).sum(axis=0))
    _, r, order = qr(matrix / np.where(length > 0, length, 1.0), mode="economic", pivoting=True)
    follows = [design.names[i] for i in order[np.abs(np.diag(r)) < DEPENDENT]]
    if follows:
        raise ValueError(
            f"The columns {', '.join(follows)} of the design follow from the others, so their coefficients cannot be "
            f"estimated. Leave out a variable, or a term of the formula."
        )


def read_variables(by: Any, n_docs: int, what: str = "by") -> dict[str, Variable]:
    """The variables of a frame, a series, a dict of columns, or an array with a row for each document."""
    frame = read_any_frame(by, what)
    if not frame.names:
        raise ValueError(f"{what} has no columns.")
    if len(frame) != n_docs:
        raise ValueError(f"X has {n_docs} documents but {what} has {len(frame)} rows; they must be equally many.")
    if not frame.named:  # names that a formula may have
        frame = replace(frame, names=[what] if len(frame.names) == 1 else [f"x{name}" for name in frame.names])
    return {name: read_variable(frame.column(place)) for place, name in enumerate(frame.names)}


def read_variable(column: Column) -> Variable:
    """A column as numbers or groups; texts, categories and booleans are groups, and dates are years."""
    if column.kind == BOOLEAN:
        values = column.values.astype(bool)
        return Variable(values, tuple(np.unique(values).tolist()))
    if column.kind == CATEGORY:
        observed = set(column.values)
        return Variable(column.values, tuple(level for level in column.levels if level in observed))
    largest = np.abs(column.values.astype(float)).max(initial=0.0)
    if largest > MOST:
        raise ValueError(f"{column.name!r} must hold numbers from {-MOST:g} to {MOST:g}, got {largest:g}.")
    return Variable(column.values, None)
