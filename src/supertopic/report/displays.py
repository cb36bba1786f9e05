"""Plots of predictions, effects and shares in scikit-learn's convention: `from_estimator(model, ..., ax=None)`.

`report.plots` has those of topics and weights, `report.maps` maps, `report.style` what all plots share.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from supertopic.corpus.made_frames import PANDAS
from supertopic.model.terms import Intercept
from supertopic.report.explain import Explanation
from supertopic.report.plots import MOST_TOPICS, POINTS, column_place, plain_unit, topic_rows, unit_of_weights
from supertopic.report.style import (
    BLUE,
    COLUMN,
    DASHES,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    ROW,
    TIMES,
    Display,
    axes,
    draw_dots,
    folded,
    interval_of,
    label_rows,
    no_intervals,
    panels,
    put_title,
    shorten,
    signed,
    styled,
    zero_line,
)
from supertopic.report.summary import effect_draws

MOST_CHANGES, MOST_LINES = 12, 6  # words of a waterfall; topics of a plot of shares


class ExplanationDisplay(Display):
    """Why one document gets its prediction: a waterfall from the intercept over its words to their sum."""

    def __init__(
        self, labels: list[str], through_topics: np.ndarray, direct: np.ndarray, lower: np.ndarray, upper: np.ndarray,
        name: str = "", unit: str = "",
    ):  # fmt: skip
        self.labels, self.through_topics, self.direct = labels, through_topics, direct
        self.lower, self.upper, self.name, self.unit = lower, upper, name, unit

    @property
    def total(self) -> float:
        """The sum of all rows."""
        return float(self.through_topics.sum() + self.direct.sum())

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, feature_names: Any = None, *, column: int | str | None = None,
        n_words: int = MOST_CHANGES, level: float = 0.9, ax: Any = None, figsize: Any = None, **beside: Any,
    ) -> "ExplanationDisplay":  # fmt: skip
        """The waterfall of one document.

        Parameters
        ----------
        model : estimator
            A fitted one.
        X : list of str, or array-like or sparse matrix of shape (1, n_words)
            The text of the document, or its word counts.
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`; by default the names that `fit` saw.
        column : int or str, optional
            A class, label or response; by default what is predicted.
        n_words : int, default=12
            How many words have a row of their own.
        level : float, default=0.9
            The probability inside the intervals.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        **beside
            `covariates`, `exposure`, `features` and `groups`, as for `predict`.
        """
        check_is_fitted(model, "posterior_")
        if not model.posterior_.supervised:
            raise ValueError(f"An explanation is about a response, which a {type(model).__name__} does not have.")
        found = model.explain(X, feature_names, level=level, **beside)
        unit = unit_of_weights(model.posterior_)
        return cls.from_explanation(found, column=column, n_words=n_words, unit=unit, ax=ax, figsize=figsize)

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, column: int | str | None = None, n_words: int = MOST_CHANGES, unit: str = "",
        ax: Any = None, figsize: Any = None,
    ) -> "ExplanationDisplay":  # fmt: skip
        """The waterfall of what `explain` has returned."""
        place = explanation.column if column is None else column_place(explanation.columns, column)
        total = explanation.total[:, place]
        order = np.argsort(-np.abs(total), kind="stable")
        shown, rest = order[:n_words], order[n_words:]
        beside = sorted(explanation.others.items(), key=lambda row: row[0] != Intercept.name)  # it comes first
        others = [(str(name), float(value[place])) for name, value in beside]
        through, direct = explanation.through_topics[:, place], explanation.direct[:, place]
        labels = [name for name, _ in others] + [
            explanation.words[i] + (f" {TIMES}{explanation.times[i]}" if explanation.times[i] > 1 else "")
            for i in shown
        ]
        none, nan = np.zeros(len(others)), np.full(len(others), np.nan)
        of_topics, of_words = [none, through[shown]], [np.array([value for _, value in others]), direct[shown]]
        low, high = [nan, explanation.lower[shown, place]], [nan, explanation.upper[shown, place]]
        if len(rest):
            labels.append(f"{len(rest)} more words")
            of_topics.append(through[rest].sum(keepdims=True))
            of_words.append(direct[rest].sum(keepdims=True))
            low, high = [*low, np.full(1, np.nan)], [*high, np.full(1, np.nan)]
        a, b, c, d = (np.concatenate(parts) for parts in (of_topics, of_words, low, high))
        name = str(explanation.columns[place])
        name = "the response" if len(explanation.columns) == 1 and name == "0" else name  # y has no name
        return cls(labels, a, b, c, d, name, unit).plot(ax=ax, figsize=figsize)

    def _range(self, start: np.ndarray) -> tuple[float, float] | None:
        """The ends of the axis where 0 is too far for the changes to be seen, as with ratings far from 0."""
        ends = np.concatenate([start[1:-1] + self.lower[1:], start[1:-1] + self.upper[1:], start[1:]])
        low, high = np.nanmin(ends, initial=np.inf), np.nanmax(ends, initial=-np.inf)
        far = high > low and (low > 2 * (high - low) or high < -2 * (high - low))
        return (low - 0.15 * (high - low), high) if far else None

    @styled
    def plot(self, *, ax: Any = None, title: str | None = None, figsize: Any = None) -> "ExplanationDisplay":
        """Draw it, once more or elsewhere."""
        n = len(self.labels)
        given, ax = ax, axes(ax, figsize, COLUMN, ROW * (n + 1) + 1.1)
        added = self.through_topics + self.direct
        start = np.concatenate([[0.0], np.cumsum(added)])
        rows = np.arange(n)
        colours = np.where(added > 0, BLUE, ORANGE)
        ax.barh(rows, self.through_topics, left=start[:-1], height=0.7, color=colours)
        ax.barh(rows, self.direct, left=start[:-1] + self.through_topics, height=0.7, color="white", edgecolor=colours,
                hatch="////", linewidth=0.7)  # fmt: skip
        ax.hlines(rows, start[:-1] + self.lower, start[:-1] + self.upper, color="black", linewidth=0.8, zorder=3)
        ax.vlines(start[1:], rows, rows + 1, color=GREY, linewidth=0.5)
        ax.barh(n, start[-1], height=0.7, color=GREY)
        zero_line(ax)
        label_rows(ax, np.arange(n + 1), [*self.labels, "total"])
        low, high = self._range(start) or ax.get_xlim()
        ax.set_xlim(low - 0.02 * (high - low), high + 0.16 * (high - low))
        for row, value in enumerate([*added, start[-1]]):
            ends = [start[row], start[row + 1]] if row < n else [0.0, start[-1]]
            reach = max(*ends, *([start[row] + self.upper[row]] if row < n and np.isfinite(self.upper[row]) else []))
            ax.annotate(signed(value, 2), (reach, row), (3, 0), textcoords="offset points",
                        va="center", fontsize=6)  # fmt: skip
        sample = [ax.barh([0], [0], color=GREY), ax.barh([0], [0], color="white", edgecolor=GREY, hatch="////")]
        names = ["through topics", "beside topics"]
        if given is None:
            ax.figure.legend(sample, names, loc="outside lower center", ncols=2)
        else:
            ax.legend(sample, names)
        unit = f" ({self.unit})" if self.unit else ""
        ax.set_xlabel(folded(f"adds to the prediction{unit}", ax))
        put_title(ax, self.name if title is None else title)
        self._keep(ax)
        return self


class EffectDisplay(Display):
    """What more of each topic does to a prediction, in points or in the units of y, with intervals."""

    def __init__(
        self, topics: np.ndarray, names: list[str], change: np.ndarray, lower: np.ndarray, upper: np.ndarray,
        answer: str, unit: str, points: float,
    ):  # fmt: skip
        self.topics, self.names, self.change, self.lower, self.upper = topics, names, change, lower, upper
        self.answer, self.unit, self.points = answer, unit, points

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Any = None, *, column: int | str = 0, points: float = 0.1, level: float = 0.9,
        n_topics: int | None = None, n_words: int = 3, ax: Any = None, figsize: Any = None,
    ) -> "EffectDisplay":  # fmt: skip
        """A row for each topic, or for those with the largest effects.

        Parameters
        ----------
        model : estimator
            A fitted one.
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`; by default the names that `fit` saw.
        column : int or str, default=0
            The number or the name of a class, label or response.
        points : float, default=0.1
            How much more of the topic; 0.1 is ten percentage points.
        level : float, default=0.9
            The probability inside the intervals.
        n_topics : int, optional
            How many topics: those with the largest effects; by default 30.
        n_words : int, default=3
            How many words stand for a topic.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        """
        check_is_fitted(model, "posterior_")
        posterior = model.posterior_
        draws = effect_draws(posterior, points)[1]  # (n, K, C)
        places, answers, unit = posterior.response.table_answers()
        named = [str(name) for name in posterior.response.answers]
        if isinstance(column, str) and column in named and column not in answers:
            places, answers = [named.index(column)], [column]  # the first of two classes
        which = column_place(answers, column)
        draws = draws[:, :, places[which]] * (100.0 if unit == POINTS else 1.0)
        change, (lower, upper) = draws.mean(axis=0), interval_of(draws, level)
        largest = np.argsort(-np.abs(change), kind="stable")[: MOST_TOPICS if n_topics is None else n_topics]
        order = largest[np.argsort(-change[largest], kind="stable")]
        names = topic_rows(model, feature_names, n_words)
        display = cls(
            order, [names[k] for k in order], change[order], lower[order], upper[order], answers[which], unit, points
        )
        return display.plot(ax=ax, figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, title: str | None = None, figsize: Any = None) -> "EffectDisplay":
        """Draw it, once more or elsewhere."""
        ax = axes(ax, figsize, COLUMN, ROW * len(self.names) + 0.9)
        places = np.arange(len(self.names))
        draw_dots(ax, places, self.change, self.lower, self.upper)
        zero_line(ax)
        label_rows(ax, places, self.names)
        what = f"the probability of {shorten(self.answer, 24)} (points)" if self.unit == POINTS else self.answer
        what += "" if self.unit == POINTS else f" ({plain_unit(self.unit)})"
        more = f"with {100 * self.points:g} points more of a topic{no_intervals(self.lower)}"
        ax.set_xlabel(folded(f"change of {what} {more}", ax))
        put_title(ax, self.answer if title is None else title)
        self._keep(ax)
        return self


class PrevalenceDisplay(Display):
    """Expected shares of topics over a number, with bands, or in groups, with intervals."""

    def __init__(
        self, name: str, labels: list[str], values: np.ndarray, mean: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ):
        self.name, self.labels, self.values = name, labels, values
        self.mean, self.lower, self.upper = mean, lower, upper  # (topic, value) each

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, by: Any, *, variable: str | None = None, topics: Sequence[int] | None = None,
        level: float = 0.9, n_draws: int = 500, random_state: Any = 0, ax: Any = None, figsize: Any = None, **more: Any,
    ) -> "PrevalenceDisplay":  # fmt: skip
        """Shares of topics over a number or by group.

        Parameters
        ----------
        model : estimator
            A fitted one.
        X : array-like
            Texts or word counts.
        by : data frame or array-like
            What is known of each document, as for `topic_effects`.
        variable : str, optional
            The variable; by default the first one.
        topics : sequence of int, optional
            By default the six topics that change most.
        level : float, default=0.9
            The probability inside the intervals.
        n_draws : int, default=500
            Draws of the shares.
        random_state : int, default=0
            The seed of the draws.
        ax : sequence of matplotlib axes, optional
            One for each topic; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        **more
            Further arguments of `topic_effects`, such as `formula` and `groups`.
        """
        check_is_fitted(model, "posterior_")
        found = model.topic_effects(X, by, level=level, n_draws=n_draws, random_state=random_state, **more)
        return cls.from_effects(found, variable, topics, ax=ax, figsize=figsize)

    @classmethod
    def from_effects(
        cls, effects: Any, variable: str | None = None, topics: Sequence[int] | None = None, *, ax: Any = None,
        figsize: Any = None,
    ) -> "PrevalenceDisplay":  # fmt: skip
        """The same of what `topic_effects` has returned; the variable is by default the first one."""
        table = replace(effects, library=PANDAS).frame(variable)
        name = table["variable"].iloc[0]
        table = table[table["variable"] == name]
        if topics is None:
            sides = table.groupby("topic")["share"].agg(["min", "max"])
            topics = (sides["max"] - sides["min"]).sort_values(ascending=False).index.tolist()[:MOST_LINES]
        wrong = [topic for topic in topics if topic not in range(len(effects.labels))]
        if wrong:
            raise ValueError(f"topics must be from 0 to {len(effects.labels) - 1}, got {wrong[0]!r}.")
        parts = [table[table.topic == topic] for topic in topics]
        values, groups = parts[0]["value"].tolist(), effects.design.variables[name].levels is not None
        numbers = (np.array([part[column].to_numpy() for part in parts]) for column in ("share", "lower", "upper"))
        own = np.array(values, object if groups else float)
        return cls(name, [effects.labels[topic] for topic in topics], own, *numbers).plot(ax=ax, figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "PrevalenceDisplay":
        """A plot for each topic: `ax` is a sequence of as many axes. Over a number all topics fit into one, too."""
        groups = self.values.dtype == object
        n = len(self.labels)
        if not groups and hasattr(ax, "plot"):
            return self._plot_together(ax)
        height = ROW * len(self.values) + 0.45 if groups else 1.25
        ax = panels(n, ax, figsize, height, "topics", sharex=True, sharey=True)
        for i, (place, label) in enumerate(zip(ax, self.labels, strict=False)):
            mean, lower, upper = (100 * values[i] for values in (self.mean, self.lower, self.upper))
            if groups:
                rows = np.arange(len(self.values))
                draw_dots(place, rows, mean, lower, upper, colour=BLUE)
                label_rows(place, rows, self.values.tolist(), 0.35, shorten)
            else:
                place.plot(self.values, mean, color=BLUE)
                place.fill_between(self.values, lower, upper, color=BLUE, alpha=0.2, linewidth=0)
                place.locator_params(axis="x", nbins=4, steps=[1, 2, 5, 10])
            put_title(place, label)
        self.axes_ = ax
        self._keep(ax[0])
        share, name = "expected share of the topic (%)", shorten(self.name, 24)
        self.figure_.supxlabel(f"{share}, by {name}" if groups else name, fontsize=8)
        if not groups:
            self.figure_.supylabel(share, fontsize=8)
        return self

    def _plot_together(self, ax: Any) -> "PrevalenceDisplay":
        """All topics in the axes that were given."""
        for i, (label, mean, lower, upper) in enumerate(
            zip(self.labels, self.mean, self.lower, self.upper, strict=True)
        ):
            colour, every = LINES[i % len(LINES)], max(1, len(self.values) // 8)
            ax.plot(self.values, 100 * mean, DASHES[i % len(DASHES)], color=colour, marker=MARKERS[i % len(MARKERS)],
                    markevery=every, label=shorten(label, 30))  # fmt: skip
            ax.fill_between(self.values, 100 * lower, 100 * upper, color=colour, alpha=0.15, linewidth=0)
        ax.set(xlabel=shorten(self.name, 24), ylabel="expected share of the topic (%)")
        ax.legend()
        self._keep(ax)
        return self
