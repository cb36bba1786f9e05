"""Plots of topics, weights, chains and choices in scikit-learn's convention: `from_estimator(model, ..., ax=None)`.

`report.displays` has those of predictions and effects, `report.maps` maps, `report.style` what all plots share.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from supertopic.report.evaluate import reliability
from supertopic.report.formats import plain
from supertopic.report.style import (
    BLUE,
    COLUMN,
    DASHES,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    PAGE,
    ROW,
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
    styled,
    zero_line,
)
from supertopic.report.summary import coef_draws
from supertopic.report.topics import top_words, topic_name, vocabulary_of

POINTS = "percentage points"
MOST_TOPICS = 30  # rows of a plot, unless more are asked for


def column_place(names: Sequence[Any], column: int | str) -> int:
    """The number of a column that is given by its number or its name."""
    shown = [str(name) for name in names]
    if isinstance(column, str):
        if column not in shown:
            raise ValueError(f"There is no column {column!r}; they are {', '.join(shown)}.")
        return shown.index(column)
    if not -len(shown) <= column < len(shown):
        raise ValueError(f"There is no column {column}; they are 0 to {len(shown) - 1}: {', '.join(shown)}.")
    return int(column) % len(shown)


def topic_rows(model: Any, feature_names: Any, n_words: int) -> list[str]:
    """What a plot shows for each topic: its number and name, or its number and top words."""
    words = model.top_words(feature_names, n_words)
    return [f"{k} {model.topic_name(k) or ' '.join(map(str, own))}" for k, own in enumerate(words)]


def unit_of_weights(posterior: Any) -> str:
    """What weights are in: log-odds, logarithms of counts, or the units of y."""
    response = posterior.response
    if response.labels is not None or response.kind == "time":
        return "log-odds"
    return "log of the mean" if response.kind == "count" else "units of y"


def plain_unit(unit: str) -> str:
    """The unit of effects beside an axis."""
    return "units of y" if unit == "its units" else unit


class CoefficientDisplay(Display):
    """The weights of topics with their intervals, largest first."""

    def __init__(
        self, topics: np.ndarray, names: list[str], mean: np.ndarray, lower: np.ndarray, upper: np.ndarray,
        unit: str = "",
    ):  # fmt: skip
        self.topics, self.names, self.mean, self.lower, self.upper = topics, names, mean, lower, upper
        self.unit = unit

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Any = None, *, column: int | str = 0, level: float = 0.9, n_words: int = 3,
        ax: Any = None, figsize: Any = None,
    ) -> "CoefficientDisplay":  # fmt: skip
        """A line for each topic: its weight and the interval.

        Parameters
        ----------
        model : estimator
            A fitted one.
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`; by default the names that `fit` saw.
        column : int or str, default=0
            The number or the name of a class, label or response.
        level : float, default=0.9
            The probability inside the intervals.
        n_words : int, default=3
            How many words stand for a topic.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        """
        check_is_fitted(model, "coef_")
        columns = model.posterior_.response.column_names
        place = column_place(columns, column)
        draws = coef_draws(model.posterior_)[:, place]
        order = np.argsort(draws.mean(axis=0))
        lower, upper = interval_of(draws, level)
        names = topic_rows(model, feature_names, n_words)
        display = cls(
            order, [names[k] for k in order], draws.mean(axis=0)[order], lower[order], upper[order],
            unit_of_weights(model.posterior_),
        )  # fmt: skip
        return display.plot(ax=ax, title=columns[place], figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, title: str = "", figsize: Any = None) -> "CoefficientDisplay":
        """Draw it, once more or elsewhere."""
        n = len(self.names)
        ax = axes(ax, figsize, COLUMN, ROW * n + 0.75)
        places = np.arange(n)[::-1]
        draw_dots(ax, places, self.mean, self.lower, self.upper)
        zero_line(ax)
        label_rows(ax, places, self.names)
        unit = f" ({self.unit})" if self.unit else ""
        ax.set_xlabel(folded(f"weight{unit}{no_intervals(self.lower)}", ax))
        put_title(ax, title)
        self._keep(ax)
        return self


class TopicDisplay(Display):
    """The top words of some topics: how often the topic uses each, and how often the corpus does."""

    def __init__(
        self, topics: Sequence[int], words: list[list[str]], probabilities: list[np.ndarray], titles: list[str],
        corpus: list[np.ndarray] | None = None,
    ):  # fmt: skip
        self.topics, self.words, self.probabilities, self.titles = topics, words, probabilities, titles
        self.corpus = corpus

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Any = None, *, topics: Sequence[int] | None = None, n_words: int = 8,
        by: str = "frex", ax: Any = None, figsize: Any = None,
    ) -> "TopicDisplay":  # fmt: skip
        """Bars for the words of each topic.

        Parameters
        ----------
        model : estimator
            A fitted one.
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`; by default the names that `fit` saw.
        topics : sequence of int, optional
            The numbers of the topics; the six largest by default.
        n_words : int, default=8
            How many words stand for a topic.
        by : {"frex", "probability", "lift"}, default="frex"
            What makes a word a top word, as for `top_words`.
        ax : sequence of matplotlib axes, optional
            One for each topic; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        """
        check_is_fitted(model, "posterior_")
        posterior = model.posterior_
        shares = posterior.mean_shares
        chosen = list(np.argsort(-shares)[:6] if topics is None else topics)
        wrong = [k for k in chosen if not 0 <= k < posterior.n_topics]
        if wrong:
            raise ValueError(f"topics must be from 0 to {posterior.n_topics - 1}, got {wrong[0]!r}.")
        names = vocabulary_of(posterior, feature_names).tolist()
        place = {name: i for i, name in enumerate(names)}
        words = top_words(posterior, np.array(names, dtype=object), n_words, by, phrases=False)
        of_topics = model.topic_word_
        whole = shares @ of_topics  # how often the corpus uses each word
        at = [[place[word] for word in words[k]] for k in chosen]
        titles = [f"{k} {topic_name(posterior, k)} ({shares[k]:.1%})" for k in chosen]
        return cls(
            chosen, [words[k] for k in chosen], [of_topics[k][own] for k, own in zip(chosen, at, strict=True)], titles,
            [whole[own] for own in at],
        ).plot(ax=ax, figsize=figsize)  # fmt: skip

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "TopicDisplay":
        """Draw it, once more or elsewhere."""
        n, most = len(self.topics), max(map(len, self.words), default=0)
        given, ax = ax, panels(n, ax, figsize, ROW * most + 0.5, "topics")
        for i, (place, words, values, title) in enumerate(
            zip(ax, self.words, self.probabilities, self.titles, strict=False)
        ):
            rows = np.arange(len(words))
            place.barh(rows - 0.16, 100 * values, height=0.5, color=BLUE, label="in the topic")
            if self.corpus is not None:
                place.barh(rows + 0.26, 100 * self.corpus[i], height=0.26, color="white", edgecolor=GREY, hatch="////",
                           linewidth=0.6, label="in the corpus")  # fmt: skip
            label_rows(place, rows, words, 0.35)
            put_title(place, title)
        for place in ax[max(0, n - ax[0].get_gridspec().ncols) : n]:
            place.set_xlabel("% of the words")
        if given is None and n:
            ax[0].figure.legend(*ax[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        elif n:
            ax[0].legend()
        self._keep(ax[0])
        self.axes_ = ax
        return self


class TraceDisplay(Display):
    """The log joint of every chain."""

    def __init__(self, iterations: np.ndarray, log_joint: np.ndarray, burn_in: np.ndarray):
        self.iterations, self.log_joint, self.burn_in = iterations, log_joint, burn_in

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, figsize: Any = None) -> "TraceDisplay":
        """A line for each chain, and a point where its burn-in ends.

        Parameters
        ----------
        model : estimator
            A fitted one.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        """
        check_is_fitted(model, "log_joint_")
        return cls(model.log_joint_iterations_, model.log_joint_, model.burn_in_).plot(ax=ax, figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "TraceDisplay":
        """Draw it, once more or elsewhere."""
        ax = axes(ax, figsize, COLUMN, 2.2)
        for chain, values in enumerate(self.log_joint):
            colour, dash = LINES[chain % len(LINES)], DASHES[chain % len(DASHES)]
            ax.plot(self.iterations, values, dash, color=colour, linewidth=1, label=f"chain {chain}")
            end = np.searchsorted(self.iterations, self.burn_in[chain]).clip(max=max(len(values) - 1, 0))
            if len(values):
                ax.plot(self.iterations[end], values[end], MARKERS[chain % len(MARKERS)], color=colour)
        ax.set(xlabel=folded("iteration (marks: draws are kept from here on)", ax), ylabel="log joint")
        ax.legend(ncols=2)
        self._keep(ax)
        return self


class ReliabilityDisplay(Display):
    """Predicted probabilities against observed frequencies, in tenths of the documents."""

    def __init__(self, predicted: np.ndarray, observed: np.ndarray, lower: np.ndarray, upper: np.ndarray, name: str):
        self.predicted, self.observed, self.lower, self.upper, self.name = predicted, observed, lower, upper, name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, ax: Any = None, figsize: Any = None, **beside: Any
    ) -> "ReliabilityDisplay":
        """The second one of two classes; of more, the one that is predicted.

        Parameters
        ----------
        model : estimator
            A fitted one.
        X, y : array-like
            Texts or word counts, and their true classes.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        **beside
            `covariates`, `exposure`, `features` and `groups`, as for `predict`.
        """
        check_is_fitted(model, "classes_")
        if model.multilabel_ or not hasattr(model, "predict_proba"):
            raise ValueError("Reliability is about the probabilities of classes, of which a document has one.")
        p, classes = model.predict_proba(X, **beside), model.classes_
        truth = np.array([classes.tolist().index(value) for value in np.asarray(y).tolist()])
        two = len(classes) == 2
        sure, hit = (p[:, 1], truth == 1) if two else (p.max(axis=1), p.argmax(axis=1) == truth)
        rows = reliability(sure, hit)
        predicted, observed, lower, upper = (
            np.array([row[key] for row in rows]) for key in ("predicted", "observed", "lower", "upper")
        )
        name = str(classes[1]) if two else "the chosen class"
        return cls(predicted, observed, lower, upper, name).plot(ax=ax, figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "ReliabilityDisplay":
        """Draw it, once more or elsewhere."""
        ax = axes(ax, figsize, COLUMN, COLUMN)
        ax.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=0.8)
        ax.vlines(100 * self.predicted, 100 * self.lower, 100 * self.upper, color=BLUE, linewidth=1.4)
        ax.scatter(100 * self.predicted, 100 * self.observed, color=BLUE, s=16, zorder=3)
        ax.set(ylabel="observed frequency (%)", xlim=(-2, 102), ylim=(-2, 102), aspect="equal")
        ax.set_xlabel(folded(f"predicted probability of {shorten(self.name, 24)} (%)", ax, 0.8))
        self._keep(ax)
        return self


class ChoiceDisplay(Display):
    """Numbers of topics: the loss of each beyond the best one, and the coherence of its topics."""

    def __init__(self, columns: dict[str, np.ndarray], chosen: int):
        self.columns, self.chosen = columns, chosen

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "ChoiceDisplay":
        """`ax` is a sequence of two axes."""
        if ax is None:
            figure = axes(None, figsize, COLUMN, 3.6).figure
            figure.clear()
            ax = figure.subplots(2, 1, sharex=True)
        upper, lower = ax
        numbers, more, error = (self.columns[name] for name in ("n_topics", "loss_more", "loss_se"))
        upper.errorbar(numbers, more, error, marker="o", capsize=3, color=GREY)
        at = numbers == self.chosen
        upper.scatter(numbers[at], more[at], s=60, zorder=3, color=BLUE, label=f"{self.chosen} topics")
        upper.axhline(0, color=GREY, linewidth=0.7)
        upper.set(ylabel="held-out loss\nbeyond the best", title="the smallest number within one standard error")
        upper.legend()
        for name, colour, marker, dash in (("coherence", BLUE, "o", "-"), ("exclusivity", ORANGE, "s", "--")):
            lower.plot(numbers, self.columns[name], marker=marker, linestyle=dash, color=colour, label=name)
        lower.set(xlabel="topics", xscale="log", xticks=numbers, xticklabels=numbers)
        lower.minorticks_off()
        lower.legend()
        self._keep(upper)
        return self


class DifferenceDisplay(Display):
    """Differences between the shares of topics in groups, with intervals: a row for each topic, the largest first."""

    def __init__(
        self, labels: list[str], groups: list[Any], reference: str, mean: np.ndarray, lower: np.ndarray,
        upper: np.ndarray,
    ):  # fmt: skip
        self.labels, self.groups, self.reference = labels, groups, reference
        self.mean, self.lower, self.upper = mean, lower, upper  # (topic, group) each

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "DifferenceDisplay":
        """Draw it, once more or elsewhere."""
        n_topics, n_groups = self.mean.shape
        ax = axes(ax, figsize, PAGE, ROW * n_topics * max(1.0, 0.6 * n_groups) + 0.9)
        places = np.arange(n_topics)
        for i, group in enumerate(self.groups):
            at = places + (i - (n_groups - 1) / 2) * 0.7 / n_groups
            mean, lower, upper = (100 * values[:, i] for values in (self.mean, self.lower, self.upper))
            draw_dots(ax, at, mean, lower, upper, colour=LINES[i % len(LINES)], marker=MARKERS[i % len(MARKERS)],
                      label=shorten(group, 24))  # fmt: skip
        zero_line(ax)
        label_rows(ax, places, self.labels)
        against = shorten(self.reference, 24)
        ax.set_xlabel(folded(f"difference of the expected share (points), against {against}", ax))
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
        self._keep(ax)
        return self


class InteractionDisplay(Display):
    """The weights of some topics in groups of documents, with their intervals, a plot for each topic."""

    def __init__(self, titles: list[str], groups: list[str], weight: np.ndarray, lower: np.ndarray, upper: np.ndarray):
        self.titles, self.groups, self.weight, self.lower, self.upper = titles, groups, weight, lower, upper

    @styled
    def plot(self, *, ax: Any = None, title: str = "", figsize: Any = None) -> "InteractionDisplay":
        """`ax` is a sequence of axes, one for each topic."""
        n, places = len(self.titles), np.arange(len(self.groups))
        ax = panels(n, ax, figsize, ROW * len(places) + 0.45, "topics", sharex=True, sharey=True)
        for i, (place, name) in enumerate(zip(ax, self.titles, strict=False)):
            draw_dots(place, places, self.weight[i], self.lower[i], self.upper[i])
            zero_line(place)
            label_rows(place, places, self.groups, 0.35, shorten)
            put_title(place, name)
        self.axes_ = ax
        self._keep(ax[0])
        self.figure_.supxlabel(f"weight for {plain(title)}" if title else "weight", fontsize=8)
        return self
