"""Ordered classes: stars, grades, answers from "never" to "always". A cumulative logit, also called ordered logit."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.metrics import cohen_kappa_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import column_or_1d

from supertopic.corpus.source import Target, make_target
from supertopic.kernels.thresholds import CUMULATIVE
from supertopic.model.responses.averages import average, draw_interval
from supertopic.model.responses.base import Encoded
from supertopic.model.responses.classes import MANY
from supertopic.model.responses.probabilities import ProbabilityResponse
from supertopic.model.responses.thresholds import BISECTIONS, FAR, ThresholdResponse
from supertopic.model.responses.values import MOST, is_unknown, plain_value, without_na

MOST_CLASSES = 100


@dataclass(frozen=True, eq=False)
class Ordinal(ThresholdResponse, ProbabilityResponse):
    """P(class > j) = sigmoid(omega - threshold_j): one weight for each topic, thresholds between the classes."""

    order: Any = field(default=None, kw_only=True)  # the classes, the lowest first, as a user gave them

    learned: ClassVar[tuple[str, ...]] = ("classes", "multilabel", "base", "anchor")
    grows: ClassVar[bool] = False
    coins: ClassVar[int] = CUMULATIVE
    effect_on: ClassVar[str] = "expected grade"
    title: ClassVar[str] = (
        "supervised latent Dirichlet allocation with an ordered response (cumulative logit), an extension of the "
        "logistic model"
    )
    references: ClassVar[tuple[str, ...]] = ("zhu2013", "polson2013", "mccullagh1980")

    @property
    def kind(self) -> str:
        return "grade"

    @property
    def binary(self) -> bool:
        return False

    @property
    def sticks(self) -> bool:
        return False

    @property
    def n_columns(self) -> int:
        return 1

    @property
    def column_names(self) -> list[str]:
        return ["higher"]

    @property
    def grades(self) -> np.ndarray:
        """The classes as numbers, (n_classes,): themselves, or 1, 2, 3, ... if they are names."""
        if all(isinstance(value, int | float) for value in self.classes.tolist()):
            return self.classes.astype(float)
        return np.arange(1.0, len(self.classes) + 1.0)

    def encode(
        self, y: Any, weight: np.ndarray, exposure: Any = None, classes: Any = None, sums: np.ndarray | None = None
    ) -> Encoded:
        fitted = len(self.classes) > 0
        if fitted and classes is not None and list(classes) != self.classes.tolist():
            raise ValueError(f"classes are {self.classes.tolist()} since the first batch, got {list(classes)}.")
        if y is None:
            y = np.full(len(weight), None, object)
        order = self.classes if fitted else find_order(y, self.order if classes is None else classes, self)
        index = self.index_of(y, order, len(weight))
        weight = weight * (index >= 0)
        if not fitted and not (weight > 0).any():
            raise ValueError("Every class in y is unknown (or has weight 0); at least some must be known.")
        if not fitted and classes is None and len(np.unique(index[weight > 0])) < 2:
            raise ValueError(f"y has one class only ({order[index.max()]}); a classifier needs at least two.")
        known = index[weight > 0]
        if self.class_weight is not None and len(known):
            given = self.class_weight
            if not isinstance(given, str):  # by class, which is a number here
                given = {i: given.get(plain_value(label), 1.0) for i, label in enumerate(order.tolist())}
            seen = np.unique(known)
            factor = np.ones(len(order))
            factor[seen] = compute_class_weight(given, classes=seen, y=known)
            weight = weight * factor[index]
        if weight.max(initial=0.0) * self.c > MOST:
            raise ValueError(f"Weights times c must be at most {MOST:g}, got {weight.max() * self.c:g}.")
        target = make_target(np.maximum(index, 0.0)[:, None], weight[:, None])
        response = replace(self, classes=order)
        response = replace(response, thresholds=self.base) if fitted else response.with_base(target, len(order) - 1)
        return Encoded(response, target, sums)

    def index_of(self, y: Any, order: np.ndarray, n_docs: int) -> np.ndarray:
        """The number of each document's class, -1 where it is unknown."""
        values = np.asarray(without_na(y))
        if values.ndim != 1:
            values = column_or_1d(values, warn=True)
        if len(values) != n_docs:
            raise ValueError(f"X has {n_docs} documents but y has {len(values)}; they must be equally many.")
        unknown, place = is_unknown(values, self.missing_label), {value: i for i, value in enumerate(order.tolist())}
        try:
            index = [-1 if gone else place.get(value, -2) for gone, value in zip(unknown, values.tolist(), strict=True)]
        except TypeError:
            raise ValueError("y must hold one class for each document.") from None
        if -2 in index:
            stray = values.tolist()[index.index(-2)]
            names = ", ".join(map(repr, order.tolist()[:MANY])) + (" ..." if len(order) > MANY else "")
            raise ValueError(f"y has the class {stray!r}, which is not one of the ordered classes {names}.")
        return np.array(index)

    def may_hold_out(self, target: Target) -> np.ndarray:
        return np.any(target.weight > 0, axis=1)

    def seed_support(self, target: Target, means: np.ndarray) -> np.ndarray:
        return np.full(means.shape[1], 0.5 * np.count_nonzero(target.weight))

    def base_mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        """The mean number of the class, never at an end."""
        least = 0.5 * half / (sums[1] + half)
        return np.clip(super().base_mean(sums, half), least, len(self.base) - least)

    def link(self, mean: np.ndarray) -> np.ndarray:
        """omega with which the thresholds of the base rates give this mean number of the class."""
        low, high = np.full(np.shape(mean), -FAR), np.full(np.shape(mean), FAR)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            enough = expit(middle[..., None] - self.base).sum(axis=-1) > mean
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return (0.5 * (low + high)).round(9)  # near 0 for the base rates themselves

    def expected(self, omega: np.ndarray, scales: np.ndarray | None = None) -> np.ndarray:
        """The probability of each class."""
        thresholds = self.thresholds
        if scales is not None:
            thresholds = scales.reshape(len(scales), *[1] * (omega.ndim - 2), -1)
        above = np.minimum.accumulate(expit(omega - thresholds), axis=-1)  # thresholds of a fold may cross
        ones = np.ones((*above.shape[:-1], 1))
        return -np.diff(np.concatenate([ones, above, 0.0 * ones], axis=-1), axis=-1)

    def set_scores(self, expected: np.ndarray) -> np.ndarray:
        """The probability of the set that each class joins, which grows from the best one to its likelier neighbour."""
        p, docs = np.pad(expected.astype(float), ((0, 0), (1, 1)), constant_values=-1.0), np.arange(len(expected))
        low = high = expected.argmax(axis=1) + 1
        found, mass = np.zeros(p.shape), p[docs, low]
        for _ in range(expected.shape[1] - 1):
            up = p[docs, high + 1] > p[docs, low - 1]
            low, high = np.where(up, low, low - 1), np.where(up, high + 1, high)
            joins = np.where(up, high, low)
            found[docs, joins] = mass
            mass = mass + p[docs, joins]
        return found[:, 1:-1]

    def encoded_truth(self, y: np.ndarray) -> np.ndarray:
        return (y == np.arange(len(self.classes))).astype(float)

    def median(self, p: np.ndarray) -> np.ndarray:
        """The number of the middle class under probabilities (n_docs, n_classes): its absolute error is the least."""
        return (np.cumsum(p, axis=1) < 0.5).sum(axis=1)

    def grade_interval(self, omegas: np.ndarray, scales: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The interval of the expected grade: lower and upper ends, (n_docs,)."""
        return draw_interval(self.expected(omegas, scales) @ self.grades, level)

    def column_effects(self, change: np.ndarray) -> np.ndarray:
        return (change @ self.grades)[..., None]

    def predictions(self, omegas: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
        """Beside the probabilities the expected grade, and the ends of its 90 % interval."""
        found = super().predictions(omegas, scales)
        lower, upper = self.grade_interval(omegas, scales, 0.9)
        return found | {"grade": average(self.expected(omegas, scales)) @ self.grades, "lower": lower, "upper": upper}

    def figures(self, truth: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        is_class, said = truth.argmax(axis=1), self.median(expected)
        labels = np.arange(len(self.classes))
        kappa = cohen_kappa_score(is_class, said, weights="quadratic", labels=labels) if len(truth) else np.nan
        apart = np.cumsum(expected, axis=1)[:, :-1] - np.cumsum(truth, axis=1)[:, :-1]
        return super().figures(truth, expected) | {
            "quadratic_kappa": float(np.nan_to_num(kappa)),
            "mean_absolute_error": float(np.abs(said - is_class).mean()),
            "ranked_probability_score": float((apart**2).sum(axis=1).mean() / (len(self.classes) - 1)),
        }

    def how(self, shared: str) -> str:
        return (
            " The classes are ordered, and their cumulative log-odds had one weight for each topic and a threshold "
            "between any two classes."
        )

    def check_fitted(self, n_columns: int) -> None:
        sound = self.classes.ndim == self.base.ndim == 1 and len(self.classes) == len(self.base) + 1 >= 2
        if not sound or n_columns != 1 or not 0 <= self.anchor < len(self.base) or self.multilabel:
            raise ValueError("The number of classes cannot be right.")
        if not np.isfinite(self.base).all() or (np.diff(self.base) < 0).any():
            raise ValueError("The thresholds of the base rates cannot be right.")


def find_order(y: Any, given: Any, response: Ordinal) -> np.ndarray:
    """The classes in their order: as given, of an ordered category, or sorted numbers."""
    if given is not None:
        order = list(given.tolist() if isinstance(given, np.ndarray) else given)
        if isinstance(given, str) or len(set(order)) != len(order) or len(order) < 2:
            raise ValueError(f"order must list two or more different classes, the lowest first, got {given!r}.")
        return check_size(order)
    kind = getattr(y, "dtype", None)
    categories = getattr(kind, "categories", None)
    if categories is not None and (getattr(kind, "ordered", False) or type(kind).__name__ == "Enum"):
        return check_size(list(categories))
    values = np.asarray(without_na(y)).ravel()
    known = values[~is_unknown(values, response.missing_label)].tolist()
    if any(isinstance(value, str) for value in known):
        shown = ", ".join(map(repr, sorted(set(map(str, known)))[:MANY]))
        raise ValueError(
            f"y holds the names {shown}, whose order is not known: pass order=[...] with the lowest first, or an "
            "ordered pandas category."
        )
    if any(not isinstance(value, int | float) for value in known):
        raise ValueError(
            f"Unknown label type: y must hold numbers, names or an ordered category, got {type(known[0]).__name__}."
        )
    return check_size(sorted(set(known))) if known else np.zeros(0, object)


def check_size(order: list[Any]) -> np.ndarray:
    """The classes as an array."""
    if len(order) > MOST_CLASSES:
        raise ValueError(
            f"y looks continuous: it has {len(order)} different values; ordered classes are at most {MOST_CLASSES}. "
            "SLDARegressor takes any numbers."
        )
    text = any(isinstance(value, str) for value in order)
    return np.array(order, dtype=object if text else None)
