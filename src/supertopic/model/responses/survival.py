"""Times until an event, as hazards: whether the event happens in a period, if it has not happened before.

Each period in which a document is at risk is a logistic coin. With `SharedHazards` all coins of a document have one
omega and each period a threshold (proportional odds of the hazards); with `PeriodHazards` each period is a column of
omega, with weights of its own. A censored document has the coins of the periods that it survived, so that it is no
special case.
"""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import rankdata

from supertopic.corpus.source import Target, make_target
from supertopic.model.responses.averages import average, draw_interval
from supertopic.model.responses.base import TINY, Encoded, Response
from supertopic.model.responses.censoring import (
    Censoring,
    brier_scores,
    concordance,
    find_censoring,
    integrated_brier,
    uno_concordance,
)
from supertopic.model.responses.times import (
    AUTO_PERIODS,
    Times,
    choose_edges,
    life_table,
    passed_periods,
    read_times,
)
from supertopic.model.responses.values import MOST


@dataclass(frozen=True, eq=False)
class TimeResponse(Response):
    """Time, cut into periods. Predictions are probabilities to survive each of them: `expected` is (n_docs, S)."""

    periods: Any = field(default="auto", kw_only=True)  # as a user gave them
    edges: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (S,): the ends of the periods
    life: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)), kw_only=True)  # (2, S): see `life_table`
    # when documents of the first batch were censored: (m,) each, see `Censoring`
    censor_times: np.ndarray = field(default_factory=lambda: np.zeros(1), kw_only=True)
    censor_survival: np.ndarray = field(default_factory=lambda: np.ones(1), kw_only=True)

    learned: ClassVar[tuple[str, ...]] = ("edges", "life", "censor_times", "censor_survival")
    score_name: ClassVar[str] = "concordance"
    effect_on: ClassVar[str] = "probability"
    has_probabilities: ClassVar[bool] = True
    most_periods: ClassVar[int] = AUTO_PERIODS

    @property
    def kind(self) -> str:
        return "time"

    @property
    def answers(self) -> list[Any]:
        return self.edges.tolist()

    @property
    def censoring(self) -> Censoring:
        return Censoring(self.censor_times, self.censor_survival)

    @abstractmethod
    def columns_of(self, passed: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y and its weights, from the number of periods that each document passed (see `passed_periods`)."""

    @abstractmethod
    def passed(self, y: np.ndarray) -> np.ndarray:
        """The periods that each document passed, (n_docs,), from its columns."""

    @abstractmethod
    def survival(self, omega: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
        """The probability to survive each period, given that the document is at risk in it: (..., S)."""

    @abstractmethod
    def log_density_of_documents(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """The log-likelihood of each document, (n_docs,)."""

    def prepared(self) -> Self:
        """The response with what else follows from its life table."""
        return self

    def encode(
        self, y: Any, weight: np.ndarray, exposure: Any = None, classes: Any = None, sums: np.ndarray | None = None
    ) -> Encoded:
        unknown = np.full(len(weight), np.nan)
        times, response = Times(unknown, unknown) if y is None else read_times(y, len(weight)), self
        known = times.known & (weight > 0)
        if not len(self.edges):
            if not known.any():
                raise ValueError("Every time in y is unknown (or has weight 0); at least some must be known.")
            events = times.time[known & (times.event > 0)]
            if not len(events):
                raise ValueError("All documents are censored: no event happened, so there is nothing to learn from.")
            edges, censoring = choose_edges(self.periods, events, self.most_periods), find_censoring(times, weight)
            response = replace(self, edges=edges, censor_times=censoring.times, censor_survival=censoring.survival)
        passed = passed_periods(response.edges, times)
        weight = weight * (known & (passed > 0))  # who was censored early in the first period says nothing
        if weight.max(initial=0.0) * self.c > MOST:
            raise ValueError(f"Weights times c must be at most {MOST:g}, got {weight.max() * self.c:g}.")
        if not len(self.edges):
            response = replace(response, life=life_table(passed, weight, len(response.edges))).prepared()
        return Encoded(response, make_target(*response.columns_of(passed, weight)), sums)

    def may_hold_out(self, target: Target) -> np.ndarray:
        return np.any(target.weight > 0, axis=1)

    wholly_known = may_hold_out

    def strata(self, target: Target) -> np.ndarray:
        passed = self.passed(target.y)
        return np.column_stack([passed, passed % 1.0])  # events first, by the last column

    def seed_support(self, target: Target, means: np.ndarray) -> np.ndarray:
        events = (self.passed(target.y) % 1.0 > 0) & self.may_hold_out(target)
        return np.full(means.shape[1], float(np.count_nonzero(events)))

    def start_columns(self, target: Target) -> np.ndarray:
        """How early or late the event came, (n_docs, 2): ranks of martingale residuals. By these ranks a document
        that is censored late has a longer time than one that is censored early."""
        known, found = self.may_hold_out(target), np.zeros((len(target.weight), 2))
        hazard = self.life[1] / np.maximum(self.life[0], TINY)
        risk = np.append(0.0, np.cumsum(hazard))
        passed = self.passed(target.y)[known]
        place = passed.astype(int)
        event = passed > place
        own = np.append(hazard, 0.0)[place]
        rank = rankdata(np.where(event, 1.0 - 0.5 * own, 0.0) - risk[place], method="dense") - 1.0
        found[known, 0] = rank / max(rank.max(initial=0.0), 1.0)
        found[known, 1] = 1.0 - found[known, 0]
        return found

    # predictions

    def expected(self, omega: np.ndarray, scales: np.ndarray | None = None) -> np.ndarray:
        """The probability to survive each period."""
        return np.cumprod(self.survival(omega, scales), axis=-1)

    def interval(self, omegas: np.ndarray, scales: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        return draw_interval(self.expected(omegas, scales), level)

    def predictions(self, omegas: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
        """The median time, the ends of the 90 % interval of a new time, the risk, and survival at a few times."""
        curve = average(self.expected(omegas, scales))
        lower, median, upper = (self.time_at(curve, level) for level in (0.95, 0.5, 0.05))
        found = {"prediction": median, "lower": lower, "upper": upper, "risk": self.risk(curve)}
        return found | {f"p(beyond {self.edges[i]:.4g})": curve[:, i] for i in self.shown}

    def time_at(self, curve: np.ndarray, level: float) -> np.ndarray:
        """When survival (n_docs, S) has fallen to a level, (n_docs,), linear inside periods; infinite if it has not."""
        first = (curve > level).sum(axis=1)  # curves fall
        starts, ends = np.append(0.0, self.edges), np.append(self.edges, np.inf)
        padded = np.hstack([np.ones((len(curve), 1)), curve, np.zeros((len(curve), 1))])
        before, after = (np.take_along_axis(padded, first[:, None] + i, axis=1)[:, 0] for i in (0, 1))
        return starts[first] + (before - level) / np.maximum(before - after, TINY) * (ends[first] - starts[first])

    def survival_at(self, curve: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Survival (n_docs,) of each document at a time of its own, linear inside periods, flat beyond the last."""
        ends = np.append(0.0, self.edges)
        place = np.clip(np.searchsorted(ends, time), 1, len(self.edges))
        part = np.clip((time - ends[place - 1]) / (ends[place] - ends[place - 1]), 0.0, 1.0)
        padded = np.hstack([np.ones((len(curve), 1)), curve])
        before, after = (np.take_along_axis(padded, place[:, None] - i, axis=1)[:, 0] for i in (1, 0))
        return (1.0 - part) * before + part * after

    def risk(self, curve: np.ndarray) -> np.ndarray:
        """The mean probability over the periods that the event has come by their end, (n_docs,)."""
        return 1.0 - curve.mean(axis=1)

    def predicted(self, expected: np.ndarray) -> list[Any]:
        return self.time_at(expected, 0.5).tolist()

    def replicate(self, omega: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """How many periods new documents with this omega survive, (n_docs, 1)."""
        curve = self.expected(omega[None], self.scale[None])[0]
        return (curve > rng.random((len(curve), 1))).sum(axis=1, dtype=np.int32)[:, None]

    def as_replicated(self, target: Target) -> np.ndarray:
        """How many whole periods each document was seen to survive, (n_docs, 1): fewer than it does if censored."""
        return np.floor(self.passed(target.y)).astype(np.int32)[:, None]

    # comparisons with known times

    def truth(self, y: Any, n_docs: int) -> np.ndarray:
        """Times and events, (n_docs, 2)."""
        return np.column_stack(read_times(y, n_docs))

    def encoded_truth(self, y: np.ndarray) -> np.ndarray:
        passed = self.passed(y)
        ends = np.append(0.0, self.edges)
        return np.column_stack([ends[np.ceil(passed).astype(int)], passed % 1.0 > 0])

    def observed(self, truth: np.ndarray, y: Any, rows: np.ndarray) -> list[Any]:
        return [self.as_text(row) for row in truth[rows]]

    def as_text(self, truth: np.ndarray) -> str | None:
        if np.isnan(truth).any():
            return None
        return f"{truth[0]:.4g}" if truth[1] > 0 else f"beyond {truth[0]:.4g}"

    def log_densities(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The log-likelihood of each document in each draw, (n_draws, n_docs); NaN where the time is unknown."""
        passed = passed_periods(self.edges, Times(*truth.T))
        y, _ = self.columns_of(passed, np.ones(len(passed)))
        drawn: list[Any] = [self.with_scale(scale) for scale in scales]
        logs = [own.log_density_of_documents(y, omega) for own, omega in zip(drawn, omegas, strict=True)]
        return np.where(np.isnan(truth[:, 0]), np.nan, logs)

    def draw_losses(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return -self.log_densities(truth, omegas, scales).T

    def loss(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The negative log-probability of what was seen of each document in the periods."""
        logs = self.log_densities(truth, omegas, scales)
        found = np.log(len(omegas)) - np.logaddexp.reduce(np.nan_to_num(logs), axis=0)
        return np.where(np.isnan(logs[0]), np.nan, found)

    def score(self, truth: np.ndarray, expected: np.ndarray) -> float:
        return concordance(Times(*truth.T), self.risk(expected))

    def figures(self, truth: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        times = Times(*truth.T)
        scores = brier_scores(times, expected, self.edges, self.censoring)
        uno = uno_concordance(times, self.risk(expected), self.censoring, self.edges[-1])
        found = {"uno_concordance": uno, "integrated_brier_score": integrated_brier(scores, self.edges)}
        found |= {f"brier_score_at_{self.edges[i]:.4g}": float(scores[i]) for i in self.shown}
        return super().figures(truth, expected) | found

    def surprise(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The negative log-probability of an event as early or as late, or of living as long."""
        time, event = truth.T
        later = self.survival_at(average(self.expected(omegas, scales)), np.nan_to_num(time))
        seen = (event > 0) & (time <= self.edges[-1])
        p = np.where(seen, 2.0 * np.minimum(later, 1.0 - later), later)
        return np.where(np.isnan(time), np.nan, -np.log(np.clip(p, TINY, 1.0)))

    def doubt(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The variance of being alive, averaged over the periods."""
        p = average(self.expected(omegas, scales))
        return (p * (1.0 - p)).mean(axis=1)

    def uncertainty(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """1 less the distance of being alive and not, averaged over the periods."""
        return 1.0 - np.abs(2.0 * average(self.expected(omegas, scales)) - 1.0).mean(axis=1)

    @property
    def shown(self) -> list[int]:
        """The numbers of a few of the periods, for tables: after a quarter, a half and three quarters of them."""
        n = len(self.edges)
        return sorted({max(int(np.ceil(part * n)) - 1, 0) for part in (0.25, 0.5, 0.75)})

    def table_answers(self) -> tuple[list[int], list[str], str]:
        return self.shown, [f"survival beyond {self.edges[i]:.4g}" for i in self.shown], "percentage points"

    def column_effects(self, change: np.ndarray) -> np.ndarray:
        """Weights of all periods are shown by their effect on survival of half of the periods."""
        return change[..., self.shown[len(self.shown) // 2], None] if len(self.column_names) == 1 else change

    def how(self, shared: str) -> str:
        n, events = len(self.edges), self.life[1].sum()
        return f" until an event. Time was cut into {n} periods, in which {events:,.0f} events came. "

    def check_fitted(self, n_columns: int) -> None:
        n, (times, survival) = len(self.edges), self.censoring
        sound = self.edges.ndim == 1 and n > 1 and np.isfinite(self.edges).all() and self.edges[0] > 0
        if not sound or (np.diff(self.edges) <= 0).any() or n_columns != len(self.column_names):
            raise ValueError("The periods cannot be right.")
        if self.life.shape != (2, n) or not np.isfinite(self.life).all() or (self.life < 0).any():
            raise ValueError("The numbers of documents in the periods cannot be right.")
        if times.ndim != 1 or times.shape != survival.shape or not len(times) or times[0] != 0:
            raise ValueError("The times of censoring cannot be right.")
        if not ((np.diff(times) >= 0).all() and (np.diff(survival, prepend=1.0) <= 0).all() and (survival >= 0).all()):
            raise ValueError("The probabilities of censoring cannot be right.")
