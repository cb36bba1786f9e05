"""Numbers as responses: one or several columns, modelled in standard units, predicted in the user's."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array

from supertopic.corpus.source import Target, make_target
from supertopic.model.responses.averages import average
from supertopic.model.responses.base import Encoded, Response
from supertopic.model.responses.values import check_columns, without_na

FAR, HALVINGS = 40.0, 64  # of a search for a quantile: standard deviations to either side, and steps
MOST_SEED = 1000.0  # standard deviations of y that a seeded topic may be said to add


@dataclass(frozen=True, eq=False)
class NumberResponse(Response):
    """Numbers, centred at their mean and divided by their standard deviation while they are modelled.

    A subclass also says `variance` and `cdf`, for standard deviations and intervals of predictions.
    """

    names: np.ndarray = field(default_factory=lambda: np.zeros(0, object), kw_only=True)  # (R,): of y's columns
    multioutput: bool = field(default=False, kw_only=True)  # whether y had two dimensions
    centre: np.ndarray | float = field(default=0.0, kw_only=True)  # (R,): the mean of y in all batches
    unit: np.ndarray | float = field(default=1.0, kw_only=True)  # (R,): its standard deviation in the first

    learned: ClassVar[tuple[str, ...]] = ("names", "multioutput", "centre", "unit")
    score_name: ClassVar[str] = "R2"

    @property
    def kind(self) -> str:
        return "rating"

    @property
    def column_names(self) -> list[str]:
        return [str(name) for name in self.names]

    def encode(
        self, y: Any, weight: np.ndarray, exposure: np.ndarray | None = None, classes: Any = None,
        sums: np.ndarray | None = None,
    ) -> Encoded:  # fmt: skip
        response, values, weights = self._check(y, weight)
        response, values, sums = response.standardise(values, weights, sums)
        return Encoded(response, make_target(values, weights, exposure), sums)

    def _check(self, y: Any, weight: np.ndarray) -> tuple[Self, np.ndarray, np.ndarray]:
        """y as (n_docs, R) with 0 where it is unknown, and its weights with 0 there."""
        fitted = len(self.names) > 0
        check_columns(y, self.column_names)
        if y is None:
            return self, np.zeros((len(weight), len(self.names))), np.zeros((len(weight), len(self.names)))
        names = getattr(y, "columns", [getattr(y, "name", None)])
        values = check_numbers(y, len(weight))
        if fitted and (self.multioutput, len(self.names)) != (
            values.ndim == 2,
            values.reshape(len(values), -1).shape[1],
        ):
            raise ValueError(f"y has shape {values.shape}, but earlier batches had {len(self.names)} columns.")
        response = self
        if not fitted:
            n_columns = values.shape[1] if values.ndim == 2 else 1
            if len(names) != n_columns or any(name is None for name in names):
                names = range(n_columns)
            response = replace(
                self, names=np.array([str(name) for name in names], dtype=object), multioutput=values.ndim == 2
            )
        values = values.reshape(len(values), -1)
        weights = ~np.isnan(values) * weight[:, None]
        if not fitted and not (weights > 0).any(axis=0).all():
            raise ValueError("Input y contains NaN only (or weights of 0) in some column; some of it must be known.")
        return response, np.nan_to_num(values), weights

    def standardise(
        self, y: np.ndarray, weight: np.ndarray, sums: np.ndarray | None
    ) -> tuple[Self, np.ndarray, np.ndarray | None]:
        """The response with its centre and unit, y in standard units, and the sums of earlier batches around there."""
        if sums is None:
            centre = np.average(y, axis=0, weights=weight)
            deviation = np.abs(y - centre).max(axis=0, where=weight > 0, initial=0.0)  # squares might overflow
            unit = np.where(deviation > 0, deviation, 1.0)
            sd = unit * np.sqrt(np.average(((y - centre) / unit) ** 2, axis=0, weights=weight))
            response = replace(self, centre=centre, unit=np.where(sd > 0, sd, 1.0))
        else:  # the centre is the mean of all batches
            n_past, n = sums[1], weight.sum(axis=0)
            away = np.where(n + n_past > 0, (weight * ((y - self.centre) / self.unit)).sum(axis=0), 0.0)
            away /= np.where(n + n_past > 0, n + n_past, 1.0)
            response, sums = replace(self, centre=self.centre + self.unit * away), sums.copy()
            sums[[0, 2]] -= away * sums[[1, 3]]
        return response, np.where(weight > 0, (y - response.centre) / response.unit, 0.0), sums

    def in_own_units(self, truth: np.ndarray, encoded_by: Any) -> np.ndarray:
        return (encoded_by.offset_in_units(truth) - self.centre) / self.unit

    def base_mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        return (sums[0] / np.where(sums[1] > 0, sums[1], 1.0)).round(12)  # y has been centred: what is left is rounding

    def seed_means(self, weights: Any, topics: list[str], n_topics: int, n_columns: int) -> np.ndarray | None:
        if not isinstance(weights, dict):
            return None
        means = np.zeros((2, n_columns, n_topics))
        for topic, number in weights.items():
            if not isinstance(number, Real) or isinstance(number, bool) or not np.isfinite(float(number)):
                raise ValueError(f"Seeds: the weight of topic {topic!r} must be a number, got {number!r}.")
            mean = float(number) / np.broadcast_to(self.unit, (n_columns,))
            if np.abs(mean).max() > MOST_SEED:
                raise ValueError(
                    f"Seeds: the weight of topic {topic!r} is {number!r}, more than {MOST_SEED:g} standard deviations "
                    "of y (of a count, on the log scale)."
                )
            means[:, :, topics.index(topic)] = mean
        return means

    def table_answers(self) -> tuple[list[int], list[str], str]:
        places, names, unit = super().table_answers()
        rate = " at an exposure of 1" if getattr(self, "exposed", False) else ""
        if names == ["0"]:  # y had no name
            return places, [f"the {self.kind}{rate}"], unit
        return places, [name + rate for name in names], unit

    @abstractmethod
    def variance(self, omega: np.ndarray) -> np.ndarray:
        """The variance of y given omega, (n_docs, R), in standard units."""

    @abstractmethod
    def cdf(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """The probability of a response up to y given omega, (n_docs, R), in standard units."""

    def cdf_below(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """The probability of a response below y; that of y itself is not 0 where numbers are whole."""
        return self.cdf(y, omega)

    def quantile(self, q: Any, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The numbers (n_docs, R) below which y is with probability q, averaged over the draws; by bisection."""
        draws: list[Any] = [(self.with_scale(scale), omega) for omega, scale in zip(omegas, scales, strict=True)]
        spreads = [(drawn.mean(omega), np.sqrt(drawn.variance(omega))) for drawn, omega in draws]
        low = np.min([mean - FAR * sd for mean, sd in spreads], axis=0)
        high = np.max([mean + FAR * sd for mean, sd in spreads], axis=0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            enough = average([drawn.cdf(middle, omega) for drawn, omega in draws]) >= q
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return 0.5 * (low + high)

    def expected(self, omega: np.ndarray, scales: np.ndarray | None = None) -> np.ndarray:
        return self.offset_in_units(self.mean(omega))

    def interval(self, omegas: np.ndarray, scales: np.ndarray, level: Any) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = (
            self.offset_in_units(self.quantile(q, omegas, scales)) for q in ((1 - level) / 2, (1 + level) / 2)
        )
        return lower, upper

    def interval_level(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        if self.several_raters:  # nobody knows the true ratings
            return super().interval_level(truth, omegas, scales)
        draws: list[Any] = [(self.with_scale(scale), omega) for omega, scale in zip(omegas, scales, strict=True)]
        upto = average([drawn.cdf(truth, omega) for drawn, omega in draws])
        below = average([drawn.cdf_below(truth, omega) for drawn, omega in draws])
        return np.maximum(np.maximum(1.0 - 2.0 * upto, 2.0 * below - 1.0), 0.0)

    def standard_deviation(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The standard deviation of a new response, (n_docs, R): the spread of omega, and that of y around it."""
        drawn: list[Any] = [self.with_scale(scale) for scale in scales]
        means = [response.mean(omega) for response, omega in zip(drawn, omegas, strict=True)]
        inside = average([response.variance(omega) for response, omega in zip(drawn, omegas, strict=True)])
        centre = average(means)
        return self.unit * np.sqrt(average([(mean - centre) ** 2 for mean in means]) + inside)

    def predictions(self, omegas: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
        """The mean, and the standard deviation of a new number."""
        mean = average(self.expected(omegas, scales))
        return self.named({"prediction": mean, "std": self.standard_deviation(omegas, scales)})

    def named(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays (n_docs, R) as columns of a table, which name the numbers if there are several."""
        if not self.multioutput:
            return {what: values[:, 0] for what, values in columns.items()}
        return {
            f"{what}({name})": values[:, r]
            for what, values in columns.items()
            for r, name in enumerate(self.column_names)
        }

    def truth(self, y: Any, n_docs: int) -> np.ndarray:
        """y in standard units, (n_docs, R)."""
        check_columns(y, self.column_names)
        values = check_numbers(y, n_docs).reshape(n_docs, -1)
        if values.shape[1] != len(self.names):
            raise ValueError(f"y has {values.shape[1]} columns, but the model was fitted with {len(self.names)}.")
        return (values - self.centre) / self.unit

    def replicate(self, omega: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """New responses under this omega in the user's units, (n_docs, R); a subclass may draw them faster."""
        return self.offset_in_units(self.quantile(rng.random(omega.shape), omega[None], self.scale[None]))

    def as_replicated(self, target: Target) -> np.ndarray:
        """Known responses in the form of `replicate`, NaN where they are unknown."""
        return np.where(target.weight > 0, self.offset_in_units(target.y), np.nan)

    def log_density_in_units(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The log predictive density of each y in the user's units, (n_docs, R); NaN where y is unknown."""
        found = self.log_predictive(np.nan_to_num(truth), omegas, scales) - np.log(self.unit)
        return np.where(np.isnan(truth), np.nan, found)

    def draw_losses(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        pairs = zip(omegas, scales, strict=True)
        losses = [-self.with_scale(scale).log_density(truth, omega).sum(axis=1) for omega, scale in pairs]
        return np.array(losses).T + np.sum(np.log(np.broadcast_to(self.unit, truth.shape[1:])))

    def loss(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The squared error, in units of the variance of the training responses."""
        mean = average([self.mean(omega) for omega in omegas])
        return ((mean - truth) ** 2).mean(axis=1)

    def score(self, truth: np.ndarray, expected: np.ndarray) -> float:
        found = (expected - self.centre) / self.unit
        if len(truth) < 2:
            return float(r2_score(truth, found))  # not a number, with a warning
        error, spread = ((truth - found) ** 2).sum(axis=0), ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
        constant = np.where(error > 0, 0.0, 1.0)  # as scikit-learn's, whose checks take longer than hundreds of these
        return float(np.where(spread > 0, 1.0 - error / np.where(spread > 0, spread, 1.0), constant).mean())

    def figures(self, truth: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        error = np.abs(expected - self.offset_in_units(truth))
        return super().figures(truth, expected) | {"mean_absolute_error": float(error.mean())}

    def surprise(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """How many standard deviations y is away from its prediction."""
        mean = average([self.mean(omega) for omega in omegas])
        return (np.abs(truth - mean) / (self.standard_deviation(omegas, scales) / self.unit)).max(axis=1)

    def doubt(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        lower, upper = self.interval(omegas, scales, 0.9)
        return (upper - lower).mean(axis=1)

    def uncertainty(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """What a normal number says about the draws, in nats: the variance of their means against that around them."""
        draws: list[Any] = [(self.with_scale(scale), omega) for omega, scale in zip(omegas, scales, strict=True)]
        means = np.array([drawn.mean(omega) for drawn, omega in draws])
        around = average([drawn.variance(omega) for drawn, omega in draws])
        return 0.5 * np.log1p(means.var(axis=0) / np.maximum(around, 1e-300)).sum(axis=1)

    def in_units(self, weights: np.ndarray) -> np.ndarray:
        return weights * np.reshape(self.unit, (-1, 1))

    def offset_in_units(self, offset: np.ndarray) -> np.ndarray:
        return self.centre + self.unit * offset

    def check_fitted(self, n_columns: int) -> None:
        sizes = {np.shape(self.names), *(np.shape(x) for x in (self.centre, self.unit) if np.ndim(x))}
        if sizes != {(n_columns,)} or (n_columns > 1 and not self.multioutput) or not np.all(np.asarray(self.unit) > 0):
            raise ValueError("The columns of the response cannot be right.")


def check_numbers(y: Any, n_docs: int) -> np.ndarray:
    """y as float64, NaN where it is unknown, one or two dimensions."""
    values = check_array(
        without_na(y), dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", ensure_min_samples=0,
        input_name="y",
    )  # fmt: skip
    if values.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, got shape {values.shape}.")
    if len(values) != n_docs:
        raise ValueError(f"X has {n_docs} documents but y has {len(values)}; they must be equally many.")
    return values
