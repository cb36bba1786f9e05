"""What is known of each document, as variables and as the columns of a regression."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import qr

MOST = 1e100  # of a number: its square is finite
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
            raise ValueError(f"{name!r} is a number; got {value!r}.")
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
            f"The columns {', '.join(follows)} of the design follow from the others, so that their coefficients cannot "
            "be known. Leave out a variable, or a term of the formula."
        )


def read_variables(by: Any, n_docs: int, what: str = "by") -> dict[str, Variable]:
    """The variables of a frame, a series, a dict of columns, or an array with a row for each document."""
    columns = read_columns(by, what)
    if not columns:
        raise ValueError(f"{what} has no columns.")
    found = {}
    for name, (values, levels) in columns.items():
        if len(values) != n_docs:
            raise ValueError(f"X has {n_docs} documents but {what} has {len(values)} rows; both must be as many.")
        found[name] = read_variable(name, values, levels)
    return found


def read_columns(by: Any, what: str) -> dict[str, tuple[np.ndarray, list[Any] | None]]:
    """The columns by their names: values, and the order of groups where a type has one."""
    if isinstance(by, Mapping):
        return {str(name): (one_dimensional(values, str(name)), None) for name, values in by.items()}
    native = as_narwhals(by, what)
    if native is not None:
        series = [native[name] for name in native.columns] if hasattr(native, "columns") else [native]
        names = [str(part.name or what) for part in series]
        return {name: from_series(part, name) for name, part in zip(names, series, strict=True)}
    values = np.asarray(by)
    if values.ndim == 2:
        return {f"x{i}": (column, None) for i, column in enumerate(values.T)}
    return {what: (one_dimensional(values, what), None)}


def as_narwhals(by: Any, what: str) -> Any:
    """A frame or a series of any library as that of Narwhals; None for what is neither."""
    if isinstance(by, np.ndarray | list | tuple):
        return None
    try:
        import narwhals
    except ImportError as error:
        if not hasattr(by, "columns"):  # a series is an array, too
            return None
        raise ImportError(
            f"{what} is a {type(by).__name__}, which needs narwhals: pip install \"supertopic[formula]\". A dict of "
            "arrays needs nothing."
        ) from error  # fmt: skip
    labels = list(map(str, by.columns)) if type(by).__module__.startswith("pandas") and hasattr(by, "columns") else []
    if len(set(labels)) < len(labels):
        raise ValueError(f"{what} has several columns of the same name: {', '.join(labels)}. Give each its own name.")
    found = narwhals.from_native(by, allow_series=True, pass_through=True)
    if isinstance(found, narwhals.LazyFrame):
        return found.collect()
    return found if isinstance(found, narwhals.DataFrame | narwhals.Series) else None


def from_series(series: Any, name: str) -> tuple[np.ndarray, list[Any] | None]:
    """The values of a series of Narwhals, and the order of its categories."""
    n_missing = int(series.is_null().sum())
    if n_missing:
        raise ValueError(missing(name, n_missing, int(np.flatnonzero(series.is_null().to_numpy())[0])))
    own = series.dtype if hasattr(series.dtype, "categories") else getattr(series.to_native(), "dtype", None)
    levels = getattr(own, "categories", None)  # Polars' Categorical has some without an order
    return series.to_numpy(), list(levels) if levels is not None and hasattr(levels, "__len__") else None


def one_dimensional(values: Any, name: str) -> np.ndarray:
    found = np.asarray(values)
    if found.ndim != 1:
        raise ValueError(f"{name!r} must have one value for each document, got an array of shape {found.shape}.")
    return found


def missing(name: str, n: int, first: int) -> str:
    return f"{name!r} is missing for {n} documents, the first in row {first}. Leave them out, or fill them in."


def read_variable(name: str, values: np.ndarray, levels: list[Any] | None = None) -> Variable:
    """A column as numbers or groups; texts, categories and booleans are groups."""
    if values.dtype.kind == "O":
        empty = np.array([value is None or value != value for value in values.tolist()], bool)
        if empty.any():
            raise ValueError(missing(name, int(empty.sum()), int(np.flatnonzero(empty)[0])))
        cells = values.tolist()
        if levels is None and all(isinstance(cell, bool | np.bool_) for cell in cells):
            values = values.astype(bool)
        elif levels is None and all(isinstance(cell, Real | Decimal) for cell in cells):
            values = values.astype(float)
    if values.dtype.kind in "Mmc":
        raise TypeError(f"{name!r} must hold numbers or groups, got {values.dtype}. Give a number, such as the year.")
    if values.dtype.kind in "iuf" and levels is None:
        largest = np.abs(values.astype(float)).max(initial=0.0)
        if np.isnan(largest):
            empty = np.isnan(values)
            raise ValueError(missing(name, int(empty.sum()), int(np.flatnonzero(empty)[0])))
        if largest > MOST:
            raise ValueError(f"{name!r} must hold numbers from {-MOST:g} to {MOST:g}, got {largest:g}.")
        return Variable(values, None)
    if values.dtype.kind != "b":
        values = values.astype(str).astype(object)
        levels = None if levels is None else list(map(str, levels))
    observed = set(values.tolist())
    order = sorted(observed) if levels is None else [level for level in levels if level in observed]
    return Variable(values, tuple(order))
