"""Plots of fitted models in scikit-learn's convention: `from_estimator(model, ..., ax=None)`, then `ax_` and `figure_`.

They need matplotlib: pip install "supertopic[plot]".
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from supertopic.model.responses.averages import draw_interval
from supertopic.report.evaluate import reliability
from supertopic.report.summary import coef_draws
from supertopic.report.topics import top_words, topic_name, vocabulary_of

TOWARDS, AWAY = "#1b8a5a", "#c2452d"


def axes(ax: Any, **size: Any) -> Any:
    """The axes that were given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "supertopic[plot]".') from error
    return plt.subplots(layout="constrained", **size)[1]


class Display:
    """A plot, with the numbers behind it as attributes."""

    ax_: Any

    def _keep(self, ax: Any) -> "Display":
        self.ax_, self.figure_ = ax, ax.figure
        return self


class CoefficientDisplay(Display):
    """The weights of topics with their intervals, largest first."""

    def __init__(self, topics: np.ndarray, names: list[str], mean: np.ndarray, lower: np.ndarray, upper: np.ndarray):
        self.topics, self.names, self.mean, self.lower, self.upper = topics, names, mean, lower, upper

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Any = None, *, column: int | str = 0, level: float = 0.9, n_words: int = 3,
        ax: Any = None,
    ) -> "CoefficientDisplay":  # fmt: skip
        """A line for each topic. `column` is the number or the name of a class, label or response."""
        check_is_fitted(model, "coef_")
        columns = model.posterior_.response.column_names
        if isinstance(column, str) and column not in columns:
            raise ValueError(f"There is no column {column!r}; they are {', '.join(columns)}.")
        place = columns.index(column) if isinstance(column, str) else column
        draws = coef_draws(model.posterior_)[:, place]
        order = np.argsort(draws.mean(axis=0))
        lower, upper = draw_interval(draws, level)
        words = model.top_words(feature_names, n_words)
        names = [f"{k} {model.topic_name(k) or ' '.join(map(str, words[k]))}" for k in order]
        display = cls(order, names, draws.mean(axis=0)[order], lower[order], upper[order])
        return display.plot(ax=ax, title=columns[place])

    def plot(self, *, ax: Any = None, title: str = "") -> "CoefficientDisplay":
        """Draw it, once more or elsewhere."""
        ax = axes(ax, figsize=(6, 0.3 * len(self.names) + 1))
        places = np.arange(len(self.names))
        colours = np.where(self.mean > 0, TOWARDS, AWAY)
        ax.hlines(places, self.lower, self.upper, colors=colours, linewidth=3, alpha=0.6)
        ax.scatter(self.mean, places, c=colours, s=18, zorder=3)
        ax.axvline(0, color="0.6", linewidth=0.8)
        ax.set_yticks(places, self.names)
        ax.set(xlabel="weight", title=title)
        self._keep(ax)
        return self


class TopicDisplay(Display):
    """The top words of some topics, as bars of their probabilities."""

    def __init__(
        self, topics: Sequence[int], words: list[list[str]], probabilities: list[np.ndarray], titles: list[str]
    ):
        self.topics, self.words, self.probabilities, self.titles = topics, words, probabilities, titles

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Any = None, *, topics: Sequence[int] | None = None, n_words: int = 8,
        by: str = "frex", ax: Any = None,
    ) -> "TopicDisplay":  # fmt: skip
        """Bars for each topic. `topics` are the six largest by default; `ax` is a sequence of as many axes."""
        check_is_fitted(model, "posterior_")
        posterior = model.posterior_
        shares = posterior.mean_shares
        chosen = list(np.argsort(-shares)[:6] if topics is None else topics)
        names = vocabulary_of(posterior, feature_names).tolist()
        place = {name: i for i, name in enumerate(names)}
        words = top_words(posterior, np.array(names, dtype=object), n_words, by, phrases=False)
        found = [model.topic_word_[k][[place[word] for word in words[k]]] for k in chosen]
        titles = [f"{k} {topic_name(posterior, k)} ({shares[k]:.1%})" for k in chosen]
        return cls(chosen, [words[k] for k in chosen], found, titles).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "TopicDisplay":
        """Draw it, once more or elsewhere."""
        n = len(self.topics)
        if ax is None:
            columns = min(n, 3)
            ax = axes(
                None,
                nrows=-(-n // columns),
                ncols=columns,
                figsize=(3 * columns, 2.4 * -(-n // columns)),
                squeeze=False,
            )
            ax = ax.ravel()
        if len(ax) < n:
            raise ValueError(f"{n} topics need {n} axes, got {len(ax)}.")
        for place, words, probabilities, title in zip(ax, self.words, self.probabilities, self.titles, strict=False):
            place.barh(words[::-1], probabilities[::-1], color="#2457a6")
            place.set_title(title, fontsize=10)
        for place in ax[n:]:
            place.set_axis_off()
        self.axes_ = ax
        self._keep(ax[0])
        return self


class TraceDisplay(Display):
    """The log joint of every chain."""

    def __init__(self, iterations: np.ndarray, log_joint: np.ndarray, burn_in: np.ndarray):
        self.iterations, self.log_joint, self.burn_in = iterations, log_joint, burn_in

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> "TraceDisplay":
        """A line for each chain, and a point where its burn-in ends."""
        check_is_fitted(model, "log_joint_")
        return cls(model.log_joint_iterations_, model.log_joint_, model.burn_in_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "TraceDisplay":
        """Draw it, once more or elsewhere."""
        ax = axes(ax, figsize=(6, 3))
        for chain, values in enumerate(self.log_joint):
            (line,) = ax.plot(self.iterations, values, label=f"chain {chain}")
            end = np.searchsorted(self.iterations, self.burn_in[chain]).clip(max=max(len(values) - 1, 0))
            if len(values):
                ax.plot(self.iterations[end], values[end], "o", color=line.get_color(), markersize=4)
        ax.set(xlabel="iteration", ylabel="log joint")
        ax.legend()
        self._keep(ax)
        return self


class ReliabilityDisplay(Display):
    """Predicted probabilities against observed frequencies, in tenths of the documents."""

    def __init__(self, predicted: np.ndarray, observed: np.ndarray, lower: np.ndarray, upper: np.ndarray, name: str):
        self.predicted, self.observed, self.lower, self.upper, self.name = predicted, observed, lower, upper, name

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, ax: Any = None, **beside: Any) -> "ReliabilityDisplay":
        """Of two classes the second one, of more the one that is chosen. `beside` are covariates."""
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
        return cls(predicted, observed, lower, upper, name).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "ReliabilityDisplay":
        """Draw it, once more or elsewhere."""
        ax = axes(ax, figsize=(4, 4))
        ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=0.8)
        ax.vlines(self.predicted, self.lower, self.upper, color="#2457a6", alpha=0.6)
        ax.scatter(self.predicted, self.observed, color="#2457a6", zorder=3)
        ax.set(xlabel=f"predicted for {self.name}", ylabel="observed frequency", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        self._keep(ax)
        return self


class ChoiceDisplay(Display):
    """Numbers of topics: what each costs beyond the best one, and how well its topics read."""

    def __init__(self, columns: dict[str, np.ndarray], chosen: int):
        self.columns, self.chosen = columns, chosen

    def plot(self, *, ax: Any = None) -> "ChoiceDisplay":
        """`ax` is a sequence of two axes."""
        upper, lower = axes(ax, nrows=2, sharex=True, figsize=(6, 5)) if ax is None else ax
        numbers, more, error = (self.columns[name] for name in ("n_topics", "loss_more", "loss_se"))
        upper.errorbar(numbers, more, error, marker="o", capsize=3, color="0.35")
        at = numbers == self.chosen
        upper.scatter(numbers[at], more[at], s=90, zorder=3, color=TOWARDS, label=f"{self.chosen} topics")
        upper.axhline(0, color="0.6", linewidth=0.8)
        upper.set(ylabel="held-out loss beyond the best", title="the smallest number within one standard error")
        upper.legend()
        for name, colour in (("coherence", TOWARDS), ("exclusivity", AWAY)):
            lower.plot(numbers, self.columns[name], marker="o", color=colour, label=name)
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

    def plot(self, *, ax: Any = None) -> "DifferenceDisplay":
        """Draw it, once more or elsewhere."""
        n_topics, n_groups = self.mean.shape
        ax = axes(ax, figsize=(9, 0.3 * n_topics * max(1.0, 0.5 * n_groups) + 1.2))
        places = np.arange(n_topics)
        for i, group in enumerate(self.groups):
            at = places + (i - (n_groups - 1) / 2) * 0.7 / n_groups
            ax.hlines(at, self.lower[:, i], self.upper[:, i], colors=f"C{i}", linewidth=2.5, alpha=0.6)
            ax.scatter(self.mean[:, i], at, color=f"C{i}", s=18, zorder=3, label=str(group))
        ax.axvline(0, color="0.6", linewidth=0.8)
        ax.set_yticks(places, self.labels)
        ax.invert_yaxis()
        ax.set(xlabel=f"difference of the expected share, against {self.reference}")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
        self._keep(ax)
        return self


class PrevalenceDisplay(Display):
    """Expected shares of topics over a number, with bands."""

    def __init__(
        self, name: str, labels: list[str], values: np.ndarray, mean: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ):
        self.name, self.labels, self.values = name, labels, values
        self.mean, self.lower, self.upper = mean, lower, upper  # (topic, value) each

    def plot(self, *, ax: Any = None) -> "PrevalenceDisplay":
        """Draw it, once more or elsewhere."""
        ax = axes(ax, figsize=(9, 4))
        for label, mean, lower, upper in zip(self.labels, self.mean, self.lower, self.upper, strict=True):
            (line,) = ax.plot(self.values, mean, label=label)
            ax.fill_between(self.values, lower, upper, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel=self.name, ylabel="expected share")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
        self._keep(ax)
        return self


class InteractionDisplay(Display):
    """The weights of some topics in groups of documents, with their intervals, a plot for each topic."""

    def __init__(self, titles: list[str], groups: list[str], weight: np.ndarray, lower: np.ndarray, upper: np.ndarray):
        self.titles, self.groups, self.weight, self.lower, self.upper = titles, groups, weight, lower, upper

    def plot(self, *, ax: Any = None, title: str = "") -> "InteractionDisplay":
        """`ax` is a sequence of axes, one for each topic."""
        n, places = len(self.titles), np.arange(len(self.groups))[::-1]
        if ax is None:
            columns = min(n, 3)
            size = (3.2 * columns, (0.25 * len(places) + 1) * -(-n // columns))
            ax = axes(
                None, nrows=-(-n // columns), ncols=columns, figsize=size, squeeze=False, sharex=True, sharey=True
            )
            ax = ax.ravel()
        if len(ax) < n:
            raise ValueError(f"{n} topics need {n} axes, got {len(ax)}.")
        for i, (place, name) in enumerate(zip(ax, self.titles, strict=False)):
            colours = np.where(self.weight[i] > 0, TOWARDS, AWAY)
            place.hlines(places, self.lower[i], self.upper[i], colors=colours, linewidth=3, alpha=0.6)
            place.scatter(self.weight[i], places, c=colours, s=18, zorder=3)
            place.axvline(0, color="0.6", linewidth=0.8)
            place.set_yticks(places, self.groups)
            place.set_title(name, fontsize=10)
        for place in ax[n:]:
            place.set_axis_off()
        self.axes_ = ax
        self._keep(ax[0])
        self.figure_.supxlabel(f"weight for {title}" if title else "weight")
        return self
