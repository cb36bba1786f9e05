"""What topics have effects on, and which of these effects are clear: one rule for all tables, plots and sentences."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from supertopic.model.responses.averages import draw_interval

POINTS, LEVEL = 0.1, 0.9  # how much more of a topic an effect is of, and of intervals


class Targets(NamedTuple):
    """What topics have effects on: classes, labels, numbers, survival at some times."""

    names: list[str]
    before: np.ndarray  # (T,): what is predicted at the base rate
    effects: np.ndarray  # (n, K, T): draws of changes by a tenth more of each topic
    weights: np.ndarray | None  # (n, T, K): draws of weights; None where they are of something else
    unit: str  # of effects
    factor: float  # of effects, in this unit
    stable: np.ndarray  # (K,): whether more than half of the chains have each topic

    @property
    def has_intervals(self) -> bool:
        return len(self.effects) > 1

    def summary(self, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean of draws, and their interval; with one draw there is none."""
        mean = draws.mean(axis=0)
        return (mean, *draw_interval(draws, LEVEL)) if len(draws) > 1 else (mean, mean, mean)

    def clear(self, draws: np.ndarray) -> np.ndarray:
        """Which of some effects or weights (n, K, T) are clear, (K, T).

        The interval excludes 0, and more than half of the chains have the topic. Where a topic has effects on several
        targets, the interval is wider, for all of them together: the largest effect of noise often excludes 0.
        """
        if len(draws) < 2 or not self.names:
            return np.zeros(draws.shape[1:], bool)
        mean, lower, upper = self.summary(draws)
        wider = ndtri(0.5 * (1.0 - LEVEL) / len(self.names)) / ndtri(0.5 * (1.0 - LEVEL))
        half = np.where(mean > 0, mean - lower, upper - mean) * wider
        found: np.ndarray = (np.abs(mean) > half) & (mean != 0) & self.stable[:, None]
        return found

    def pulls(self) -> list[int | None]:
        """The target on which each topic has the largest clear effect, (K,); None where no effect is clear.

        An effect that raises a target comes before one that lowers it.
        """
        if not self.names:
            return [None] * self.effects.shape[1]
        clear, mean = self.clear(self.effects), self.effects.mean(axis=0)
        size = np.abs(mean) / max(np.abs(mean).max(), 1e-300)
        best = np.where(clear, size + (mean > 0), -1.0).argmax(axis=1)
        return [int(t) if clear[k, t] else None for k, t in enumerate(best)]
