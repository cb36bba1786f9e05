"""The hazards of periods: one omega for all of them and a threshold for each, or a column of weights for each."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from supertopic.corpus.source import Target
from supertopic.kernels.thresholds import SEQUENTIAL
from supertopic.model.responses.augmentation import LogisticColumns
from supertopic.model.responses.base import TINY, Encoded
from supertopic.model.responses.survival import TimeResponse
from supertopic.model.responses.thresholds import BISECTIONS, FAR, ThresholdResponse
from supertopic.model.responses.times import at_risk_and_event

FEW_PERIODS = 8  # periods="auto" where each has weights of its own
PSEUDO_EVENTS = 0.5  # events in each period that the prior is worth, with survivors at the usual rate


@dataclass(frozen=True, eq=False)
class SharedHazards(ThresholdResponse, TimeResponse):
    """P(event in period j | alive) = sigmoid(omega - threshold_j): one weight for each topic."""

    learned: ClassVar[tuple[str, ...]] = (*TimeResponse.learned, "base", "anchor")
    coins: ClassVar[int] = SEQUENTIAL
    title: ClassVar[str] = (
        "supervised latent Dirichlet allocation with a discrete-time hazard (proportional odds), an extension of the "
        "logistic model"
    )
    references: ClassVar[tuple[str, ...]] = ("zhu2013", "polson2013", "cox1972", "singer1993")

    @property
    def column_names(self) -> list[str]:
        return ["sooner"]

    @property
    def pseudo(self) -> tuple[float, float]:
        at_risk, events = self.life.sum(axis=1) if self.life.size else (2.0, 1.0)
        return PSEUDO_EVENTS * max(at_risk - events, TINY) / max(events, TINY), PSEUDO_EVENTS

    def encode(
        self, y: Any, weight: np.ndarray, exposure: Any = None, classes: Any = None, sums: np.ndarray | None = None
    ) -> Encoded:
        return TimeResponse.encode(replace(self, thresholds=self.base), y, weight, exposure, classes, sums)

    def prepared(self) -> Self:
        """Thresholds of the base rates; the one of the period with most events is held."""
        at_risk, events = self.life
        below, above = self.pseudo
        base = np.log(at_risk - events + below) - np.log(events + above)
        return replace(self, base=base, anchor=int(events.argmax()), thresholds=base)

    @property
    def excess(self) -> float:
        """By how much thresholds are above those of the base rates, as a mean weighted by events.

        One threshold is fixed, so this difference is a constant in all weights of topics. Without it, weights are
        relative to the base rates of all periods, which are better known than that of a single period.
        """
        events = self.life[1]
        return float(events @ (self.thresholds - self.base) / events.sum())

    def columns_of(self, passed: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return passed[:, None], weight[:, None]

    def passed(self, y: np.ndarray) -> np.ndarray:
        return y[:, 0]

    def survival(self, omega: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
        thresholds = self.thresholds
        if scales is not None:
            thresholds = scales.reshape(len(scales), *[1] * (omega.ndim - 2), -1)
        return expit(thresholds - omega)

    def log_density_of_documents(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        return self.log_density(y, omega)[:, 0]

    def chances(self, omega: np.ndarray) -> np.ndarray:
        """P(event | alive) in each period for a mixture of documents with these omegas (n, m), (n, S)."""
        alive = expit(self.thresholds - omega[..., None])
        mean = np.cumprod(alive, axis=-1).mean(axis=1)  # in later periods those that live longer are left
        return 1.0 - mean / np.hstack([np.ones((len(mean), 1)), mean[:, :-1]])

    def match_scale(self, target: Target, omega: np.ndarray, scale: np.ndarray, n_past: float) -> np.ndarray:
        """As for other thresholds, one period after the other: copies of a document that die leave the later ones."""
        weights, above = self.compared(target)
        earlier = n_past / max(float(target.weight.sum()), TINY)
        omega, found = omega[:, :, 0], np.zeros(len(scale))
        alive, alive_before = np.ones_like(omega), np.ones_like(omega)
        for j, threshold in enumerate(scale):
            some, share = weights[:, j], alive / np.maximum(alive.sum(axis=0), TINY)
            before = alive_before / np.maximum(alive_before.sum(axis=0), TINY)
            wanted = some @ above[:, j] + earlier * (some @ (before * expit(omega - threshold)).sum(axis=0))
            found[j] = self.match_hazard(omega, share * some, wanted, 1.0 + earlier)
            alive, alive_before = alive * expit(found[j] - omega), alive_before * expit(threshold - omega)
        return found - scale

    def match_hazard(self, omega: np.ndarray, weight: np.ndarray, wanted: float, times: float) -> float:
        """The threshold with which as many events are predicted as is wanted; by bisection."""
        low, high, (below, above) = -FAR, FAR, self.pseudo
        for _ in range(BISECTIONS):
            x = 0.5 * (low + high)
            predicted = times * (weight * expit(omega - x)).sum() + (below + above) * expit(-x)
            low, high = (x, high) if predicted > wanted + above else (low, x)
        return 0.5 * (low + high)

    def how(self, shared: str) -> str:
        return super().how(shared) + (
            "The log-odds of an event in a period, for documents to which it had not happened before, had one weight "
            "for "
            "each topic and a threshold for each period."
        )

    def check_fitted(self, n_columns: int) -> None:
        super().check_fitted(n_columns)
        n = len(self.edges)
        if (
            self.base.shape != (n,)
            or not np.isfinite(self.base).all()
            or not 0 <= self.anchor < n
            or not self.life[1].any()
        ):
            raise ValueError("The thresholds of the base rates cannot be right.")


@dataclass(frozen=True, eq=False)
class PeriodHazards(LogisticColumns, TimeResponse):
    """P(event in period j | alive) = sigmoid(omega_j): a column of weights for each period.

    y is 1/2 with weight 0 where a document was not at risk.
    """

    title: ClassVar[str] = (
        "supervised latent Dirichlet allocation with a discrete-time hazard, an extension of the logistic model"
    )
    references: ClassVar[tuple[str, ...]] = ("zhu2013", "polson2013", "cox1972", "singer1993")
    most_periods: ClassVar[int] = FEW_PERIODS

    @property
    def column_names(self) -> list[str]:
        starts = [0.0, *self.edges[:-1].tolist()]
        return [f"{a:.4g} to {b:.4g}" for a, b in zip(starts, self.edges.tolist(), strict=True)]

    def columns_of(self, passed: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at_risk, event = at_risk_and_event(passed, len(self.edges))
        return np.where(at_risk, event, 0.5), weight[:, None] * at_risk

    def passed(self, y: np.ndarray) -> np.ndarray:
        return np.count_nonzero(y == 0.0, axis=1) + 0.5 * np.any(y == 1.0, axis=1)

    def survival(self, omega: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
        return expit(-omega)

    def log_density_of_documents(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        return np.where(y == 0.5, 0.0, self.log_density(y, omega)).sum(axis=1)

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The log density of each whole document: its periods are not independent, since they share their draws."""
        logs = [self.log_density_of_documents(y, omega) for omega in omegas]
        return (np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))[:, None]

    def mean_of_draws(self, omegas: np.ndarray) -> np.ndarray:
        """The mean hazard of each period; a draw counts by its probability that the event has not happened before."""
        p = expit(omegas)
        alive = np.cumprod(1.0 - p, axis=-1) / np.maximum(1.0 - p, TINY)
        return (alive * p).sum(axis=0) / np.maximum(alive.sum(axis=0), TINY)

    def how(self, shared: str) -> str:
        return super().how(shared) + (
            "The log-odds of an event in a period, for documents to which it had not happened before, had weights of "
            "their "
            "own for each period."
        )
