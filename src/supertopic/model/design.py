"""How the columns of a data frame become covariates: contrasts of categories, and products of columns.

A design is a value that goes into a model file. Its terms are tuples of column names, () is the intercept. A category
has treatment contrasts, a column of 0 and 1 for each level but the first, the reference; or a column for every level,
where no earlier term spans what these add up to. That is the rule of R, patsy and formulaic.

Weights have a prior in units of the standard deviation of a covariate. In a product of a category and a year nearly all
of that is due to the year 0, which is far away: slopes would be shrunk to nothing. Numbers in products are therefore
centred, wherever the terms without them are in the design, too, so that the design spans the same.
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from supertopic.corpus.frames import BOOLEAN, CATEGORY, DATE, KINDS, NUMBER, Column, Frame

MOST_LEVELS = 200  # largest number of levels of a category
MOST_COLUMNS = 2000  # largest number of columns of a design: the products of all pairs are kept
MOST_FACTORS = 8  # largest number of factors of a term
NEW_LEVELS = ("error", "mean")
NAMED = 8  # levels that a message names

Term = tuple[str, ...]
Part = tuple[tuple[str, bool], ...]  # factors of a part of a term, and whether each has a column for every level
INTERCEPT: Term = ()


@dataclass(frozen=True)
class SourceColumn:
    """A column of the frame of the first batch."""

    name: str
    kind: str  # one of `corpus.frames.KINDS`
    levels: tuple[str, ...] = ()  # the levels of a category; the first is the reference
    shares: tuple[float, ...] = ()  # shares of the levels in the first batch; they replace an unknown level
    mean: float = 0.0  # the mean of numbers and dates in the first batch

    def check(self, column: Column, new_levels: str) -> None:
        """Refuse a column of another kind, or with levels that are not known."""
        if column.kind != self.kind and {column.kind, self.kind} != {NUMBER, BOOLEAN}:
            raise ValueError(
                f"The covariate {self.name!r} was a {self.kind} column in the fit, got a {column.kind} column; convert "
                "it to what it was."
            )
        new = sorted(set(column.values) - set(self.levels)) if self.kind == CATEGORY else []
        if new and new_levels == "error":
            raise ValueError(
                f"The covariate {self.name!r} has levels that were not in the fit: {shown(new)}; it had "
                f"{shown(self.levels)}. Formula(..., new_levels='mean') lets the mean of the training documents stand "
                "for them."
            )

    def encode(self, column: Column) -> np.ndarray:
        """The values as columns, (n_docs, 1), of a category (n_docs, n_levels); new levels have the shares."""
        if self.kind != CATEGORY:
            return column.values[:, None]
        place = {level: i for i, level in enumerate(self.levels)}
        rows = np.vstack([np.eye(len(self.levels)), self.shares])
        return rows[[place.get(value, -1) for value in column.values]]

    def names(self, full: bool) -> list[str]:
        """The names of the columns of `encode`, or of those beside the reference."""
        if self.kind != CATEGORY:
            return [self.name]
        return [f"{self.name}[{level}]" for level in self.levels[self.first(full) :]]

    def first(self, full: bool) -> int:
        """The first column that is used: a category of one level has no other."""
        return int(not full and len(self.levels) > 1)


@dataclass(frozen=True)
class Design:
    """Which columns a model reads, and which products of them are its covariates."""

    columns: tuple[SourceColumn, ...]
    terms: tuple[Term, ...]
    new_levels: str = "error"  # what a new level gives: one of `NEW_LEVELS`
    named: bool = True  # whether columns have names; else their places count

    @cached_property
    def by_name(self) -> dict[str, SourceColumn]:
        return {column.name: column for column in self.columns}

    def atoms(self, names: Iterable[str], open_kinds: tuple[str, ...]) -> list[Term]:
        """The products that are left if columns of some kinds may be left out."""
        choices = [((name,), ()) if self.by_name[name].kind in open_kinds else ((name,),) for name in names]
        return [tuple(itertools.chain(*atom)) for atom in itertools.product(*choices)]

    @cached_property
    def parts(self) -> list[list[Part]]:
        """For each term the products that it adds to those of earlier terms."""
        found, spanned = [], set[frozenset[str]]()
        for term in self.terms:
            new = [names for names in self.atoms(term, (CATEGORY,)) if frozenset(names) not in spanned]
            spanned |= set(map(frozenset, new))
            kinds = ({name: self.by_name[name].kind != CATEGORY for name in names} for names in new)
            found.append(simplify([tuple(factors.items()) for factors in kinds]))
        return found

    @cached_property
    def spanned(self) -> set[frozenset[str]]:
        """The products of columns that are combinations of covariates; a model has an intercept in any case."""
        return {frozenset(), *(frozenset(atom) for term in self.terms for atom in self.atoms(term, (CATEGORY,)))}

    def centres(self, part: Part) -> dict[str, float]:
        """What is subtracted from the numbers of a product, if this leaves the span as it is."""
        numbers = {name for name, _ in part if self.by_name[name].kind in (NUMBER, DATE)}
        fixed = [name for name, full in part if not full and name not in numbers]
        free = [name for name, full in part if full or name in numbers]
        left = (frozenset({*fixed, *atom}) for atom in self.atoms(free, (CATEGORY, NUMBER, DATE)))
        if len(part) > 1 and all(names in self.spanned for names in left if not numbers <= names):
            return {name: self.by_name[name].mean for name in numbers}
        return {}

    @cached_property
    def widths(self) -> list[int]:
        """The number of covariates of each term."""
        return [sum(self.width(part) for part in parts if part) for parts in self.parts]

    def width(self, part: Part) -> int:
        columns = ((self.by_name[name], full) for name, full in part)
        return math.prod(len(column.levels[column.first(full) :]) or 1 for column, full in columns)

    @cached_property
    def names(self) -> list[str]:
        """The names of the covariates: "year", "critic[B]", "critic[B]:year"."""
        return [":".join(cell) for part in self._products() for cell in product(
            [self.by_name[name].names(full) for name, full in part])]  # fmt: skip

    @cached_property
    def references(self) -> list[dict[str, str]]:
        """For each covariate the levels that it is compared with, by column."""
        found: list[dict[str, str]] = []
        for part in self._products():
            columns = [self.by_name[name] for name, full in part if not full]
            found += [{column.name: column.levels[0] for column in columns if column.first(False)}] * self.width(part)
        return found

    @property
    def reference(self) -> dict[str, str]:
        """The level that others are compared with, for each category that has one."""
        return {name: level for levels in self.references for name, level in levels.items()}

    def shown_columns(self) -> str:
        """The columns that are read, in words."""
        return shown([column.name for column in self.columns])

    def read(self, frame: Frame) -> np.ndarray:
        """The covariates of documents, (n_docs, P). Columns are found by name, those of an array by place."""
        if self.named and frame.named:
            places = [frame.place(column.name) for column in self.columns]
        elif len(frame.names) == len(self.columns):
            places = list(range(len(self.columns)))
        else:
            raise ValueError(
                f"covariates has {len(frame.names)} columns, but the model was fitted with {len(self.columns)}: "
                f"{self.shown_columns()}."
            )
        if not len(frame):  # cells that are not there have no kind
            return np.zeros((0, len(self.names)))
        read = [frame.column(place) for place in places]
        for source, column in zip(self.columns, read, strict=True):
            source.check(column, self.new_levels)
        return self.encode(read)

    def encode(self, columns: Sequence[Column]) -> np.ndarray:
        """The covariates, (n_docs, P), of columns in the order of `columns`."""
        blocks = {own.name: own.encode(column) for own, column in zip(self.columns, columns, strict=True)}
        found = []
        for part in self._products():
            centre = self.centres(part)
            factors = [blocks[name][:, self.by_name[name].first(full) :] - centre.get(name, 0.0) for name, full in part]
            with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused later
                found += [math.prod(cells) for cells in product([list(block.T) for block in factors])]
        return np.column_stack(found)

    def _products(self) -> Iterator[Part]:
        """All parts but the intercept."""
        return (part for parts in self.parts for part in parts if part)

    def labels(self, values: np.ndarray) -> Iterator[tuple[str, slice]]:
        """The terms of one document, with the levels that it has, and the places of their covariates (P,)."""
        ends = np.cumsum([0, *self.widths]).tolist()
        for term, (first, last) in zip(self.terms, itertools.pairwise(ends), strict=True):
            if first == last:
                continue
            own, label = values[first:last], ":".join(term)
            there = np.flatnonzero(own)
            categories = [self.by_name[name] for name in term if self.by_name[name].kind == CATEGORY]
            if categories and len(there) == 1 and (own[there[0]] == 1.0 or len(categories) < len(term)):
                label = self.names[first + there[0]]
            elif len(term) == len(categories) == 1 and not len(there):
                label = f"{label}[{categories[0].levels[0]}]"
            yield label, slice(first, last)

    def is_like(self, other: "Design") -> bool:
        """Whether another design makes the same covariates, in any order."""
        mine, theirs = ({(c.name, c.kind, c.levels) for c in design.columns} for design in (self, other))
        return mine == theirs and sorted(self.names) == sorted(other.names)

    def to_json(self) -> str:
        """For a model file."""
        columns = [[getattr(column, field.name) for field in fields(column)] for column in self.columns]
        return json.dumps([columns, self.terms, self.new_levels, self.named])

    @classmethod
    def from_json(cls, text: str) -> "Design":
        """What `to_json` gave; anything may be in a file, so that `is_sound` comes next."""
        columns, terms, new_levels, named = json.loads(text)
        read = (
            SourceColumn(name, kind, tuple(levels), tuple(shares), mean) for name, kind, levels, shares, mean in columns
        )
        return cls(tuple(read), tuple(map(tuple, terms)), new_levels, named)

    def is_sound(self, names: list[Any]) -> bool:
        """Whether a design from a file can be one whose covariates have these names."""
        texts = [text for column in self.columns for text in (column.name, *column.levels)]
        if not all(isinstance(text, str) for text in itertools.chain(texts, *self.terms)):
            return False
        for column in self.columns:
            n_levels, shares = len(column.levels), np.array(column.shares, dtype=float)
            if column.kind not in KINDS or (n_levels > 0) != (column.kind == CATEGORY):
                return False
            if len(set(column.levels)) < n_levels or shares.shape != (n_levels,):
                return False
            if not isinstance(column.mean, float) or not np.isfinite([column.mean, *shares]).all():
                return False
        known = set(self.by_name)
        terms = all(set(term) <= known and len(set(term)) == len(term) <= MOST_FACTORS for term in self.terms)
        unique = len(known) == len(self.columns) and len(set(map(frozenset, self.terms))) == len(self.terms)
        if not terms or not unique or self.new_levels not in NEW_LEVELS or not isinstance(self.named, bool):
            return False
        return len(self.terms) <= MOST_COLUMNS and sum(self.widths) == len(names) and self.names == names


def simplify(parts: list[Part]) -> list[Part]:
    """The fewest parts that span the same: x and the contrasts of f times x are all levels of f times x."""
    found: list[Part] = []
    for part in sorted(parts, key=len):
        for other in found:
            more = set(part) - set(other)
            factor = next(iter(more), ("", True))
            if len(more) == 1 and len(part) == len(other) + 1 and not factor[1]:
                merged = tuple((name, full or (name, full) == factor) for name, full in part)
                found = simplify([known for known in found if known != other] + [merged])
                break
        else:
            found.append(part)
    return found


def product(factors: list[list[Any]]) -> Iterator[list[Any]]:
    """All combinations of the columns of some factors, the first factor the fastest."""
    return (list(cells[::-1]) for cells in itertools.product(*factors[::-1]))


def make_design(columns: Sequence[Column], terms: Sequence[Term], new_levels: str, named: bool) -> Design:
    """The design of the first batch."""
    found = []
    for column in columns:
        if len(column.levels) > MOST_LEVELS:
            raise ValueError(
                f"The covariate {column.name!r} has {len(column.levels):,} levels; at most {MOST_LEVELS} are possible. "
                "groups= is for names with many levels, such as authors; or put rare levels together."
            )
        times = Counter(column.values.tolist()) if column.kind == CATEGORY else Counter()
        shares = tuple(times[level] / len(column.values) for level in column.levels)
        with np.errstate(over="ignore"):
            mean = float(column.values.mean()) if column.kind in (NUMBER, DATE) else 0.0
        found.append(SourceColumn(column.name, column.kind, column.levels, shares, mean))
    long = next((term for term in terms if len(term) > MOST_FACTORS), None)
    if long is not None:
        raise ValueError(f"The formula has a product of {len(long)} columns; at most {MOST_FACTORS} are possible.")
    design = Design(tuple(found), tuple(terms), new_levels, named)
    n_covariates = sum(design.widths)
    if n_covariates > MOST_COLUMNS:
        raise ValueError(f"The columns give {n_covariates:,} covariates; at most {MOST_COLUMNS:,} are possible.")
    twice = next((name for name, times in Counter(design.names).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"Two covariates would have the name {twice!r}; give one of their columns another name.")
    return design


def shown(levels: Sequence[str]) -> str:
    """Some levels, in words."""
    more = f" and {len(levels) - NAMED} more" if len(levels) > NAMED else ""
    return ", ".join(repr(level) for level in levels[:NAMED]) + more
