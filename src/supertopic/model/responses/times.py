"""Times until an event: how they are given, the periods that time is cut into, and what each document shows of these.

A document is "censored" if its event has not come by its time. Periods are open on the left and closed on the right, so
that an event at an edge is in the period that ends there, and one at time 0 is in the first period.
"""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from supertopic.model.responses.values import is_unknown, plain_value, without_na

MOST_PERIODS = 100
MOST_TIME = 1e100
AUTO_PERIODS, AUTO_EVENTS = 20, 10  # periods="auto": at most so many, each with so many events at least


class Times(NamedTuple):
    """The time of each document and whether it is that of its event, (n_docs,) each; NaN where unknown."""

    time: np.ndarray
    event: np.ndarray

    @property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.time)


def with_events(y: Any, event: Any) -> Any:
    """y with a second column that says whether the event happened; y itself without events."""
    if event is None:
        return y
    if y is None:
        raise ValueError("event was given without times: pass y, too.")
    time, event = (column_of(values, name) for values, name in ((y, "y"), (event, "event")))
    if len(time) != len(event):
        raise ValueError(f"y has {len(time)} times but event has {len(event)}; they must be equally many.")
    return np.column_stack([time, event])


def column_of(values: Any, name: str) -> np.ndarray:
    """One column of numbers, NaN where unknown."""
    if two_fields(values) is not None or (np.ndim(values) == 2 and np.shape(values)[1] == 2):
        raise ValueError("y has times and events already: leave event= out, or pass one column of times.")
    found = numbers_of(values, name)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(f"{name} must be one column, got shape {found.shape}.")
    return found


def numbers_of(values: Any, name: str) -> np.ndarray:
    """Values as float64, NaN where unknown."""
    cells = np.asarray(without_na(values))
    if cells.dtype.kind in "mM":
        raise ValueError(f"{name} holds {cells.dtype}: give times as numbers, such as days.")
    if cells.dtype == object:
        cells = np.where(is_unknown(cells, None), np.nan, cells)
    elif cells.dtype.kind in "US":
        raise ValueError(f"{name} must hold numbers, got the text {plain_value(cells.flat[0])!r}.")
    try:
        return check_array(
            cells, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, ensure_min_samples=0, input_name=name
        )
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers: {error}") from error


def two_fields(y: Any) -> tuple[Any, Any] | None:
    """Time and event of a structured array with one boolean field, or of a frame with two columns."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        events = [name for name in names if y.dtype[name].kind == "b"]
        if len(names) != 2 or len(events) != 1:
            raise ValueError(
                f"A structured y must have a boolean field with events and one with times, got {list(names)}."
            )
        return y[next(name for name in names if name != events[0])], y[events[0]]
    columns = getattr(y, "columns", None)
    if columns is None or len(columns) != 2:
        return None
    parts = [y[name] for name in columns]
    first = "bool" in str(parts[0].dtype).lower() and "bool" not in str(parts[1].dtype).lower()
    return (parts[1], parts[0]) if first else (parts[0], parts[1])


def read_times(y: Any, n_docs: int) -> Times:
    """Times and events, checked.

    y is one column of times, whose events all came; or two columns, times and events; or a structured array.
    """
    fields = two_fields(y)
    if fields is not None:
        time, event = numbers_of(fields[0], "y"), numbers_of(fields[1], "event")
    else:
        values = numbers_of(y, "y")
        if values.ndim == 2 and values.shape[1] == 1:
            values = column_or_1d(values, warn=True)
        if values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 2):
            raise ValueError(
                f"y must be a column of times, or two columns: times and events; got shape {values.shape}."
            )
        time, event = (values, np.ones(len(values))) if values.ndim == 1 else values.T
    if len(time) != n_docs:
        raise ValueError(f"X has {n_docs} documents but y has {len(time)}; they must be equally many.")
    if np.isinf(time).any():
        raise ValueError("Input y contains infinity: the time of a document without an event is when it was last seen.")
    wrong = time[(time < 0) | (time > MOST_TIME)]
    if len(wrong):
        raise ValueError(f"Times must be from 0 to {MOST_TIME:g}, got {wrong[0]:g}.")
    strange = event[~np.isnan(event) & (event != 0) & (event != 1)]
    if len(strange):
        raise ValueError(f"event must be 0 or 1, False or True, for each document, got {strange[0]:g}.")
    known = ~np.isnan(time) & ~np.isnan(event)
    return Times(np.where(known, time, np.nan), np.where(known, event, np.nan))


def check_periods(periods: Any) -> np.ndarray | int | None:
    """Edges of periods without 0, how many of them are to be found, or None for "auto"."""
    if isinstance(periods, str) and periods == "auto":
        return None
    if isinstance(periods, Integral) and not isinstance(periods, bool):
        if 2 <= int(periods) <= MOST_PERIODS:
            return int(periods)
        raise ValueError(f"periods must be from 2 to {MOST_PERIODS}, got {periods}.")
    try:
        edges = np.asarray(periods, dtype=float)
    except (TypeError, ValueError):
        edges = np.zeros(0)
    if edges.ndim != 1 or not edges.size:
        raise ValueError(f"periods must be 'auto', a number of periods, or the edges of periods, got {periods!r}.")
    edges = edges[1:] if edges[0] == 0 else edges
    if not 2 <= len(edges) <= MOST_PERIODS:
        raise ValueError(f"periods must be from 2 to {MOST_PERIODS} periods, got the edges of {len(edges)}.")
    if not (np.isfinite(edges).all() and edges[0] > 0 and (np.diff(edges) > 0).all() and edges[-1] <= MOST_TIME):
        raise ValueError(f"The edges of periods must be positive, finite and increasing, got {edges.tolist()[:8]}.")
    return edges


def choose_edges(periods: Any, times: np.ndarray, most: int) -> np.ndarray:
    """The ends of the periods, (S,): quantiles of the times of events, so that each period has events."""
    given = check_periods(periods)
    if isinstance(given, np.ndarray):
        n_periods = len(np.unique(np.searchsorted(given, times[times <= given[-1]])))
        if n_periods < 2:
            raise ValueError(f"Events are in {n_periods} of the periods; they must be in two or more of them.")
        return given
    n = int(np.clip(len(times) // AUTO_EVENTS, 2, most)) if given is None else given
    edges, above = np.unique(np.quantile(times, (np.arange(n) + 1) / n, method="inverted_cdf")), times[times > 0]
    if edges[0] == 0 and len(above):  # many events are at once: these are a period
        edges[0] = 0.5 * above.min()
    earlier = above[above < edges[0]]
    if len(edges) == 1 and len(earlier):  # nearly all events are at one time
        edges = np.append(earlier.max(), edges)
    if len(edges) < 2:
        raise ValueError(
            f"Events came at one time only, in n_samples = {len(times)} documents; at least two different times are "
            "needed to cut time into periods."
        )
    return edges


def passed_periods(edges: np.ndarray, times: Times) -> np.ndarray:
    """How many periods each document passed, plus 1/2 if the event came in the next one; 0 where unknown: (n_docs,).

    A document that was censored inside a period has passed it if it lived through half of it or more. On average it
    then counts for the part of the period that such documents lived through; to leave out all of them would make
    hazards too large, and to keep all of them too small.
    """
    time, event = np.nan_to_num(times.time), np.nan_to_num(times.event) > 0
    place, n = np.searchsorted(edges, time), len(edges)
    ends, starts = np.append(edges, np.inf), np.concatenate([[0.0], edges])
    with np.errstate(invalid="ignore"):
        half = (place < n) & (time - starts[place] >= ends[place] - time)
    return np.where(event & (place < n), place + 0.5, place + half) * times.known


def life_table(passed: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """The weights of documents at risk in each of n periods, and of those with an event in it: (2, n)."""
    at_risk, events = at_risk_and_event(passed, n)
    return np.array([weight @ at_risk, weight @ events])


def at_risk_and_event(passed: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Who was at risk in each of n periods, and whose event came in it: (n_docs, n) each."""
    place = np.arange(n)
    at_risk = passed[:, None] > place
    return at_risk, at_risk & (passed[:, None] < place + 1)
