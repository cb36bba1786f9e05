"""Maps in scikit-learn's convention: what topics do to classes, true by predicted classes, topics by topics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import check_is_fitted

from supertopic.model.responses.values import is_unknown, without_na
from supertopic.report.plots import POINTS, column_place, plain_unit, topic_rows, unit_of_weights
from supertopic.report.style import (
    COLUMN,
    PAGE,
    ROW,
    SEQUENTIAL,
    Display,
    axes,
    column_height,
    diverging,
    draw_cells,
    folded,
    interval_of,
    is_sure,
    label_columns,
    label_rows,
    no_intervals,
    shorten,
    signed,
    styled,
    tidy_map,
)
from supertopic.report.summary import coef_draws, effect_draws


class HeatmapDisplay(Display):
    """Topics by classes: what each topic does to each class. Only cells whose interval excludes 0 are coloured."""

    def __init__(
        self, topics: np.ndarray, names: list[str], columns: list[str], values: np.ndarray, sure: np.ndarray, unit: str
    ):
        self.topics, self.names, self.columns = topics, names, columns
        self.values, self.sure, self.unit = values, sure, unit  # (topic, column) each

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Any = None, *, values: str = "effect", points: float = 0.1, level: float = 0.9,
        n_words: int = 3, ax: Any = None, figsize: Any = None,
    ) -> "HeatmapDisplay":  # fmt: skip
        """The effects or the weights of all topics: those of the first class come first.

        Parameters
        ----------
        model : estimator
            A fitted one.
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`; by default the names that `fit` saw.
        values : {"effect", "weight"}, default="effect"
            What the cells show.
        points : float, default=0.1
            How much more of the topic; 0.1 is ten percentage points.
        level : float, default=0.9
            The probability inside the intervals.
        n_words : int, default=3
            How many words stand for a topic.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        """
        check_is_fitted(model, "posterior_")
        posterior = model.posterior_
        if values not in ("effect", "weight"):
            raise ValueError(f"values must be 'effect' or 'weight', got {values!r}.")
        if values == "effect":
            places, columns, unit = posterior.response.table_answers()
            draws = effect_draws(posterior, points)[1][:, :, places] * (100.0 if unit == POINTS else 1.0)
            unit = f"points, with {100 * points:g} points more of the topic" if unit == POINTS else plain_unit(unit)
        else:
            draws = coef_draws(posterior).swapaxes(1, 2)
            columns, unit = posterior.response.column_names, unit_of_weights(posterior)
        mean, (lower, upper) = draws.mean(axis=0), interval_of(draws, level)
        sure = is_sure(lower, upper) & (mean != 0)  # a topic of another class has no weight at all
        order = diagonal_order(mean, sure)
        names = topic_rows(model, feature_names, n_words)
        display = cls(
            order, [names[k] for k in order], list(map(str, columns)), mean[order], sure[order],
            unit + no_intervals(lower),
        )  # fmt: skip
        return display.plot(ax=ax, figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "HeatmapDisplay":
        """Draw it, once more or elsewhere."""
        n_rows, n_columns = self.values.shape
        width = COLUMN if n_columns <= 4 else PAGE
        ax = axes(ax, figsize, width, ROW * n_rows + 1.1 + column_height(self.columns, width))
        shown = np.where(self.sure, self.values, np.nan)
        most = np.nanmax(np.abs(shown)) if self.sure.any() else 1.0
        image = ax.imshow(shown, cmap=diverging(), vmin=-most, vmax=most, aspect="auto", interpolation="none")
        digits = 0 if most >= 10 else 1 if most >= 1 else 2
        texts = [
            [signed(value, digits) if sure else "" for value, sure in zip(*row, strict=True)]
            for row in zip(self.values, self.sure, strict=True)
        ]
        tidy_map(ax, n_rows, n_columns)
        label_rows(ax, range(n_rows), self.names)
        ax.set_ylim(n_rows - 0.5, -0.5)
        label_columns(ax, self.columns)
        draw_cells(ax, self.values, texts, np.abs(np.nan_to_num(shown)) > 0.7 * most, n_rows)
        bar = ax.figure.colorbar(image, ax=ax, location="top", shrink=0.6, aspect=30, pad=0.01)
        bar.set_label(folded(self.unit, ax))
        bar.outline.set_linewidth(0.4)
        self._keep(ax)
        return self


def diagonal_order(values: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Rows by the column of their largest sure value, the largest first; rows without any come last."""
    found = np.where(sure, values, -np.inf)
    best, size = found.argmax(axis=1), found.max(axis=1)
    group = np.where(np.isfinite(size), np.where(size > 0, best, values.shape[1]), values.shape[1] + 1)
    return np.lexsort([-np.where(np.isfinite(size), size, -1.0), group])


class ConfusionDisplay(Display):
    """True classes by predicted classes: the number of documents, coloured by its share of the true class."""

    def __init__(self, counts: np.ndarray, names: list[str]):
        self.counts, self.names = counts, names

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, label: Any = None, ax: Any = None, figsize: Any = None, **beside: Any
    ) -> "ConfusionDisplay":
        """Documents with a known class.

        Parameters
        ----------
        model : estimator
            A fitted one.
        X, y : array-like
            Texts or word counts, and their true classes.
        label : str or int, optional
            One of several labels.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        **beside
            `covariates`, `exposure`, `features` and `groups`, as for `predict`.
        """
        check_is_fitted(model, "posterior_")
        if not hasattr(model, "classes_"):
            raise ValueError(f"Confusion is about classes, which a {type(model).__name__} does not predict.")
        predicted, truth, classes = model.predict(X, **beside), np.asarray(without_na(y)), model.classes_
        if model.multilabel_:
            names = [str(name) for name in classes]
            if label is None:
                raise ValueError(f"Documents have several labels: pass label=, one of {', '.join(names)}.")
            place = column_place(names, label if isinstance(label, int) else str(label))
            truth, predicted = (np.asarray(values)[:, place].astype(float) for values in (truth, predicted))
            known, classes = ~np.isnan(truth), np.array([0, 1])
            shown = [f"not {names[place]}", names[place]]
        else:
            known, shown = ~is_unknown(truth, getattr(model, "missing_label", None)), None
            known &= np.isin(truth.astype(object), classes.astype(object))
        if not known.any():
            raise ValueError("No class in y is a class of the model.")
        return cls.from_predictions(
            truth[known], np.asarray(predicted)[known], labels=classes, names=shown, ax=ax, figsize=figsize
        )

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, labels: Any = None, names: Sequence[str] | None = None, ax: Any = None,
        figsize: Any = None,
    ) -> "ConfusionDisplay":  # fmt: skip
        """True and predicted classes; `labels` says which there are, and in which order."""
        truth, predicted = np.asarray(y_true), np.asarray(y_pred)
        labels = np.unique(np.concatenate([truth, predicted])) if labels is None else np.asarray(labels)
        counts = confusion_matrix(truth.astype(labels.dtype), predicted.astype(labels.dtype), labels=labels)
        return cls(counts, list(map(str, labels if names is None else names))).plot(ax=ax, figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "ConfusionDisplay":
        """Draw it, once more or elsewhere."""
        n = len(self.names)
        wide = COLUMN if n <= 8 else PAGE
        ax = axes(ax, figsize, wide, max(2.2, 0.65 * wide) + column_height(self.names, wide))
        share = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        image = ax.imshow(100 * share, cmap=SEQUENTIAL, vmin=0, vmax=100, aspect="auto", interpolation="none")
        tidy_map(ax, n, n)
        label_rows(ax, range(n), self.names, 0.3, shorten)
        ax.set_ylim(n - 0.5, -0.5)
        label_columns(ax, self.names)
        texts = [[f"{count}" if count else "" for count in row] for row in self.counts.tolist()]
        draw_cells(ax, self.counts, texts, share > 0.55, n)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, aspect=25, pad=0.02)
        bar.set_label("% of the true class")
        bar.outline.set_linewidth(0.4)
        whole = self.counts.sum()
        right = f"{np.trace(self.counts) / whole:.1%} right, " if whole else ""
        ax.set(xlabel="predicted", ylabel="true", title=f"{right}{whole:,} documents")
        self._keep(ax)
        return self


class SimilarityDisplay(Display):
    """How far the words of each two topics overlap (Bhattacharyya's coefficient), similar topics side by side."""

    def __init__(self, topics: np.ndarray, names: list[str], overlap: np.ndarray):
        self.topics, self.names, self.overlap = topics, names, overlap

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Any = None, *, n_words: int = 3, ax: Any = None, figsize: Any = None
    ) -> "SimilarityDisplay":
        """All topics in the order of a hierarchical clustering with average linkage.

        Parameters
        ----------
        model : estimator
            A fitted one.
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`; by default the names that `fit` saw.
        n_words : int, default=3
            How many words stand for a topic.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        figsize : "column", "page" or (float, float), optional
            85 mm or 178 mm wide, or width and height in inches.
        """
        check_is_fitted(model, "posterior_")
        roots = np.sqrt(model.topic_word_)
        overlap = np.clip(roots @ roots.T, 0.0, 1.0)
        np.fill_diagonal(overlap, 1.0)
        order = np.arange(len(overlap))
        if len(order) > 2:
            order = leaves_list(linkage(squareform(1.0 - overlap, checks=False), "average", optimal_ordering=True))
        names = topic_rows(model, feature_names, n_words)
        return cls(order, [names[k] for k in order], overlap[np.ix_(order, order)]).plot(ax=ax, figsize=figsize)

    @styled
    def plot(self, *, ax: Any = None, figsize: Any = None) -> "SimilarityDisplay":
        """Draw it, once more or elsewhere."""
        n = len(self.names)
        ax = axes(ax, figsize, COLUMN if n <= 12 else PAGE, max(2.4, ROW * n + 1.1))
        others = ~np.eye(n, dtype=bool)
        most = float(self.overlap[others].max()) if n > 1 else 1.0
        image = ax.imshow(np.where(others, self.overlap, np.nan), cmap=SEQUENTIAL, vmin=0, vmax=max(most, 0.05),
                          aspect="auto", interpolation="none")  # fmt: skip
        tidy_map(ax, n, n)
        label_rows(ax, range(n), self.names)
        ax.set_ylim(n - 0.5, -0.5)
        label_columns(ax, [f"{k}" for k in self.topics])
        texts = [[f"{value:.2f}"[1:] if value < 0.995 else "" for value in row] for row in self.overlap]
        draw_cells(ax, self.overlap, texts, self.overlap > 0.7 * most, n)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, aspect=25, pad=0.02)
        bar.set_label("overlap of words (1: the same)")
        bar.outline.set_linewidth(0.4)
        self._keep(ax)
        return self
