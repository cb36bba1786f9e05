"""The style of all plots: colours, sizes for a paper, and the only import of matplotlib.

Blue is more and orange is less, which colour-blind people can tell apart. Colour never stands alone: what is sure is
filled and what is not is hollow, cells have signs, and lines have markers. Labels have 7 points or more, so that a plot
of one column can be read at 80 mm.
"""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np

from supertopic.model.responses.averages import draw_interval
from supertopic.report.formats import plain

COLUMN, PAGE = 3.35, 7.0  # inches: the widths of one column (85 mm) and of two (178 mm)
WIDTHS = {"column": COLUMN, "page": PAGE}
BLUE, ORANGE, GREY, PALE = "#0072b2", "#d55e00", "#7a7a7a", "#dddddd"
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000", "#e69f00")  # Okabe and Ito's
DASHES, MARKERS = ("-", "--", "-.", ":"), ("o", "s", "^", "D", "v", "P", "X")
SEQUENTIAL = "Blues"
MINUS, TIMES = "\u2212", "\u00d7"
DIVERGING = (ORANGE, "#f7c6a3", "#ffffff", "#a6cbe6", BLUE)
LETTER, LARGE, ROW = 0.052, 0.06, 0.165  # inches: the width of a letter of 7 and of 8 points, the height of a row
LEAST_POINTS = 5.5  # smallest font of a number in a cell, in points
EMBEDDED = {"pdf.fonttype": 42, "ps.fonttype": 42}  # TrueType: journals refuse type 3
STYLE: dict[str, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "lines.linewidth": 1.2, "lines.markersize": 3.5, "legend.frameon": False, "figure.dpi": 150, "savefig.dpi": 300,
    "text.parse_math": False, "hatch.linewidth": 0.6,
}  # fmt: skip
F = TypeVar("F", bound=Callable[..., Any])


def pyplot() -> Any:
    """matplotlib.pyplot, or what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "supertopic[plot]".') from error
    return plt


@contextmanager
def style() -> Iterator[None]:
    """The style of all plots, for what is drawn inside."""
    with pyplot().rc_context(STYLE):
        yield


def styled(plot: F) -> F:
    """A method that draws in the style of all plots."""

    @wraps(plot)
    def draw(*arguments: Any, **more: Any) -> Any:
        with style():
            return plot(*arguments, **more)

    return draw  # type: ignore[return-value]


@cache
def figure_class() -> type:
    """A figure that embeds its fonts as TrueType in a PDF."""
    from matplotlib.figure import Figure

    class PaperFigure(Figure):
        def savefig(self, *arguments: Any, **more: Any) -> None:
            with pyplot().rc_context(EMBEDDED):
                super().savefig(*arguments, **more)

    PaperFigure.__qualname__ = "PaperFigure"  # where pickle finds it
    return PaperFigure


def __getattr__(name: str) -> Any:
    if name == "PaperFigure":
        return figure_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def diverging() -> Any:
    """Colours from orange to blue; white at 0, and where there is nothing to show."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("orange-blue", DIVERGING).with_extremes(bad="white")


def size_of(figsize: Any, width: float, height: float) -> tuple[float, float]:
    """Width and height in inches: as given, of one column, of a page, or as usual for a plot."""
    if figsize is None:
        return width, height
    if isinstance(figsize, str):
        if figsize not in WIDTHS:
            raise ValueError(f"figsize must be 'column', 'page' or (width, height) in inches, got {figsize!r}.")
        return WIDTHS[figsize], height
    try:
        wide, high = (float(side) for side in figsize)
    except (TypeError, ValueError):
        wide = high = 0.0
    if not (0 < wide < 100 and 0 < high < 100):
        raise ValueError(f"figsize must be 'column', 'page' or (width, height) in inches, got {figsize!r}.")
    return wide, high


def axes(ax: Any, figsize: Any, width: float, height: float) -> Any:
    """The axes that were given, or new ones; width and height are the usual ones in inches."""
    if ax is not None:
        return ax
    size = size_of(figsize, width, height)
    return pyplot().subplots(layout="constrained", figsize=size, FigureClass=figure_class())[1]


def panels(n: int, ax: Any, figsize: Any, height: float, what: str, **shared: Any) -> Any:
    """Axes for n plots of this height beside each other, two in a column or three on a page: given or new ones."""
    if ax is None:
        width = size_of(figsize, PAGE, 1.0)[0]
        n_columns = max(1, min(n, int(width / 1.6), 3))
        n_rows = -(-n // n_columns)
        size = size_of(figsize, PAGE if n > 1 else COLUMN, height * n_rows + 0.3)
        ax = (
            pyplot()
            .subplots(
                n_rows,
                n_columns,
                layout="constrained",
                figsize=size,
                squeeze=False,
                FigureClass=figure_class(),
                **shared,
            )[1]
            .ravel()
        )
    ax = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(ax) < n:
        raise ValueError(f"{n} {what} need {n} axes, got {len(ax)}.")
    for place in ax[n:]:
        place.set_axis_off()
    return ax


def width_of(ax: Any) -> float:
    """The width that a plot has with its labels, in inches."""
    grid = ax.get_gridspec()
    return ax.figure.get_figwidth() / (1 if grid is None else grid.ncols)


def shorten(text: Any, most: int) -> str:
    """A name of at most so many letters, such as that of a class: its end may tell it from others."""
    whole = plain(text, None)
    tail = most // 3
    return whole if len(whole) <= most else f"{whole[: most - tail - 1].rstrip()}…{whole[len(whole) - tail :].lstrip()}"


def folded(text: str, ax: Any, share: float = 0.58) -> str:
    """A label in lines that are not longer than a plot is wide."""
    return textwrap.fill(text, max(16, int(share * width_of(ax) / LARGE)), break_on_hyphens=False)


def put_title(ax: Any, text: Any) -> None:
    """A title that stays above its plot."""
    ax.set_title(plain(text, max(10, int(0.58 * width_of(ax) / LARGE))))


def label_rows(
    ax: Any, places: Any, labels: Sequence[Any], share: float = 0.4, cut: Callable[[Any, int], str] = plain
) -> None:
    """Names beside the rows of a plot, the first one on top, cut where they would leave no room."""
    most = max(8, int(share * width_of(ax) / LETTER))
    ax.set_yticks(places, [cut(label, most) for label in labels])
    ax.tick_params(axis="y", length=0)
    if len(labels):
        ax.set_ylim(max(places) + 0.6, min(places) - 0.6)


def column_height(labels: Sequence[Any], width: float) -> float:
    """How many inches names below columns need beyond a line: 0 if they fit side by side."""
    longest = min(max((len(str(label)) for label in labels), default=0), 20) * LETTER
    return 0.0 if longest < 0.42 * width / max(len(labels), 1) else longest


def label_columns(ax: Any, labels: Sequence[Any], most: int = 20) -> None:
    """Names below the columns of a plot, upright where they would overlap."""
    names = [shorten(label, most) for label in labels]
    width = ax.figure.get_figwidth()
    fits = column_height(names, width) == 0
    step = 1 if fits else max(1, math.ceil(2 * LETTER * len(names) / (0.42 * width)))  # a narrow plot names some
    ax.set_xticks(range(0, len(names), step), names[::step], rotation=0 if fits else 90)
    ax.tick_params(axis="x", length=0)


def interval_of(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The central interval of draws along the first axis; NaN where there is a single draw."""
    if len(draws) < 2:
        return (np.full(draws.shape[1:], np.nan),) * 2
    return draw_interval(draws, level)


def is_sure(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Whether intervals exclude 0; nobody knows where there are none, and then values are shown as they are."""
    return ~((lower <= 0) & (upper >= 0))


def draw_dots(
    ax: Any, places: np.ndarray, mean: np.ndarray, lower: np.ndarray, upper: np.ndarray, colour: Any = None,
    marker: str = "o", label: str | None = None,
) -> None:  # fmt: skip
    """Values as dots with their intervals; without a colour of their own blue above 0, orange below, else hollow."""
    sure = is_sure(lower, upper)
    colours = np.where(sure, np.where(mean > 0, BLUE, ORANGE), GREY) if colour is None else np.full(len(mean), colour)
    ax.hlines(places, lower, upper, colors=colours, linewidth=1.4)
    faces = np.where(sure, colours, "white") if colour is None else colours
    ax.scatter(mean, places, c=faces, edgecolors=colours, s=16, linewidths=1.0, zorder=3, marker=marker, label=label)


def signed(value: float, digits: int) -> str:
    """A number with its sign."""
    return f"{value:+.{digits}f}".replace("-", MINUS)


def zero_line(ax: Any) -> None:
    """A line at 0."""
    ax.axvline(0, color=GREY, linewidth=0.7, zorder=0)


def no_intervals(lower: np.ndarray) -> str:
    """What a label adds where there are no intervals."""
    return "" if lower.size == 0 or np.isfinite(lower).any() else " (one draw: no intervals)"


def draw_cells(ax: Any, values: np.ndarray, texts: Sequence[Sequence[str]], dark: np.ndarray, rows: int) -> None:
    """Texts in the cells of a map, as large as fits; white in dark cells. Cells too small for them have the first
    letter, which is the sign of a number with a sign."""
    width = ax.figure.get_figwidth() * 0.55 / max(values.shape[1], 1)
    longest = max((len(text) for row in texts for text in row), default=0)
    size = min(7.0, 72 * width / max(0.62 * longest, 1.0) * 0.95)
    for i in range(rows):
        for j, text in enumerate(texts[i]):
            if text:
                own = text if size >= LEAST_POINTS else text[0] if text[0] in ("+", MINUS) else ""
                ax.text(j, i, own, ha="center", va="center", fontsize=max(size, LEAST_POINTS),
                        color="white" if dark[i, j] else "black")  # fmt: skip


def tidy_map(ax: Any, n_rows: int, n_columns: int) -> None:
    """Thin lines between the cells of a map."""
    ax.set_xticks(np.arange(n_columns + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n_rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=PALE, linewidth=0.5)
    ax.tick_params(which="minor", length=0)
    for side in ax.spines.values():
        side.set_visible(False)


class Display:
    """A plot, with the numbers behind it as attributes."""

    ax_: Any
    figure_: Any

    def _keep(self, ax: Any) -> None:
        self.ax_, self.figure_ = ax, ax.figure
