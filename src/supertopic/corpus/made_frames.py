"""Data frames that methods return: of the library that the user works with.

Narwhals makes them, so that a user of polars needs no pandas. It is a dependency and no option: it is small, has no
dependencies of its own, and reads the frames that come in.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

from sklearn import get_config

from supertopic.corpus.frames import build_frame

F = TypeVar("F", bound=Callable[..., Any])
PANDAS, POLARS, PYARROW = "pandas", "polars", "pyarrow"
LIBRARIES = (PANDAS, POLARS, PYARROW)
wanted: ContextVar[str | None] = ContextVar("wanted", default=None)


def library_of(values: Iterable[Any]) -> str | None:
    """The library of the first data frame or column among some arguments."""
    for value in values:
        own = type(value).__module__.partition(".")[0]
        if own in LIBRARIES:
            return own
    return None


def configured() -> str | None:
    """What `sklearn.set_config(transform_output=...)` asks for, if anything."""
    found = get_config()["transform_output"]
    return found if found in LIBRARIES else None


def wanted_library() -> str:
    """The library of frames that are made now."""
    return wanted.get() or configured() or PANDAS


@contextmanager
def frames_of(library: str | None) -> Iterator[None]:
    """Frames that are made meanwhile, or later by what is made meanwhile, are of this library."""
    token = wanted.set(library)
    try:
        yield
    finally:
        wanted.reset(token)


def make_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """A data frame from columns by name: arrays, or lists in which None is missing."""
    library = library or wanted_library()
    if library == PANDAS:
        import pandas

        return pandas.DataFrame(dict(columns))
    return build_frame(columns, library)


def frame_of_rows(rows: Iterable[Mapping[str, Any]], names: Iterable[str] | None = None) -> Any:
    """A data frame from rows that have the same names."""
    rows = list(rows)
    if wanted_library() == PANDAS:
        import pandas

        return pandas.DataFrame(rows, columns=None if names is None else list(names))
    heads = list(dict.fromkeys(name for row in rows for name in row)) if names is None else list(names)
    return make_frame({name: [row.get(name) for row in rows] for name in heads})


def index_of(X: Any) -> Any:
    """The labels of documents; only pandas has some. A list has an `index`, too, which is something else."""
    return X.index if hasattr(X, "iloc") else None


def in_own_library(method: F) -> F:
    """Let a method of an estimator make frames of the library that is asked for, or that came in.

    In this order: `set_output(transform=...)` of the estimator, `sklearn.set_config(transform_output=...)`, the
    library of the method's own arguments, that of `fit`, and pandas.
    """

    @wraps(method)
    def with_library(self: Any, *args: Any, **given: Any) -> Any:
        with frames_of(self.own_library((*args, *given.values()))):
            return method(self, *args, **given)

    return with_library  # type: ignore[return-value]
