"""Responses with thresholds: one omega for each document, which is compared with several thresholds.

The thresholds are the response's own parameter. One of them, the anchor, stays where the base rates put it: shares of
topics sum to 1, so that a constant of all weights does what moving all thresholds would. The others are drawn, lam
integrated out. Predictions have other omegas than the regression that the thresholds were drawn in (words join, weights
are shrunk), and each threshold is finally moved so that predictions are right on average at it (`match_scale`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, ndtri

from supertopic.corpus.source import Target
from supertopic.kernels.draws import make_key, uniforms
from supertopic.kernels.thresholds import (
    CUMULATIVE,
    coin_slopes,
    coin_sums,
    draw_coins,
    log_coins,
    mean_coins,
    threshold_sums,
)
from supertopic.model.responses.base import GOLDEN, Response, Sums
from supertopic.model.responses.slices import slice_sample
from supertopic.model.state import Quadratic

FAR = 40.0  # thresholds are between -FAR and FAR
WIDTH = 5.0  # the width of the bracket in which a threshold of a period is drawn
BISECTIONS = 60
NEWTON, HALVINGS, CLOSE, MOST_STEP = 40, 12, 1e-9, 3.0  # steps to the most probable thresholds
PSEUDO = 0.5  # documents of each class, with omega = 0, that the prior is worth
SPREADS = np.arange(0.0, 8.01, 0.25)  # standard deviations of omega that are tried
SPREAD_POINTS = ndtri((np.arange(41) + 0.5) / 41)
LEAST_VARIANCE = 1e-6  # smallest variance of a threshold that later batches start from


@dataclass(frozen=True, eq=False)
class ThresholdResponse(Response):
    """psi is the product of the document's coins to the power c: see `kernels.thresholds`."""

    base: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (S,): from base rates of batch one
    anchor: int = field(default=0, kw_only=True)  # the threshold that is not drawn
    thresholds: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (S,)
    # what is known of thresholds from earlier batches: (2, S), means and precisions; else pseudo-documents are
    carried: np.ndarray | None = field(default=None, kw_only=True)

    coins: ClassVar[int]  # which coins a document has
    burn_in: ClassVar[int] = 40  # weights and thresholds settle together
    calibrates_mean: ClassVar[bool] = False  # thresholds are matched instead
    level_follows: ClassVar[bool] = True

    @property
    def pseudo(self) -> tuple[float, float]:
        """The prior of each threshold: so many documents below and above it, with omega = 0."""
        return PSEUDO, PSEUDO

    @property
    def has_level(self) -> bool:
        return True

    # augmentation and likelihood

    def draw(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> Quadratic:
        offset = np.ascontiguousarray(np.broadcast_to(target.offset, omega.shape))
        about = self.coins, self.c, self.thresholds, target.y, target.weight
        return Quadratic(*draw_coins(*about, omega, offset, key, first_doc))

    def start(self, target: Target) -> Quadratic:
        offset = np.ascontiguousarray(np.broadcast_to(target.offset, target.weight.shape))
        return Quadratic(*mean_coins(self.coins, self.c, self.thresholds, target.y, target.weight, offset))

    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        return log_coins(self.coins, self.thresholds, np.ascontiguousarray(y), np.ascontiguousarray(omega))

    def gradient(self, target: Target, omega: np.ndarray) -> np.ndarray:
        slope, _ = coin_slopes(self.coins, self.thresholds, target.y, np.ascontiguousarray(omega))
        return self.c * target.weight * slope

    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        _, curvature = coin_slopes(self.coins, self.thresholds, target.y, np.ascontiguousarray(omega))
        return self.c * target.weight * curvature

    def compared(self, target: Target) -> tuple[np.ndarray, np.ndarray]:
        """The weights of documents that are compared with each threshold, and which are above it: (n_docs, S) each."""
        y, place = target.y[:, :1], np.arange(len(self.base))
        if self.coins == CUMULATIVE:
            return np.repeat(target.weight, len(place), axis=1), y > place
        return target.weight * (y > place), (y > place) & (y < place + 1)

    # thresholds

    @property
    def drawn(self) -> bool:
        return len(self.base) > 1

    @property
    def rescaled(self) -> bool:
        return False

    @property
    def scale(self) -> np.ndarray:
        return self.thresholds

    def base_scale(self, scale: np.ndarray) -> np.ndarray:
        return self.base  # others are further apart, since omega differs between documents

    def with_scale(self, scale: np.ndarray) -> Self:
        return replace(self, thresholds=np.ascontiguousarray(scale, dtype=float))

    def own_sums(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        return coin_sums(self.coins, self.thresholds, target.y, target.weight, omega)

    def log_prior_of(self, x: np.ndarray) -> np.ndarray:
        """The log prior density of each threshold, (S,), but for a constant and for the distances of neighbours."""
        if self.carried is not None:
            mean, precision = self.carried
            return 0.5 * np.log(precision) - 0.5 * precision * (x - mean) ** 2
        below, above = self.pseudo
        return below * log_expit(x) + above * log_expit(-x)

    def gaps(self, x: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The part of the log density that depends on the distances of neighbours, (S - 1,).

        mass (S + 1,) are the weights of the classes; each has a pseudo-document beside. Times have no such part.
        """
        if self.coins != CUMULATIVE:
            return np.zeros(len(x) - 1)
        mass, apart = mass[1:-1] + (PSEUDO if self.carried is None else 0.0), x[1:] - x[:-1]
        found = np.full(len(apart), -np.inf)
        return np.multiply(mass, np.log(-np.expm1(-apart, where=apart > 0, out=found)), where=apart > 0, out=found)

    def log_prior(self) -> float:
        """The log prior density of the thresholds that are drawn, but for a constant."""
        free = np.arange(len(self.base)) != self.anchor
        of_gaps = self.gaps(self.thresholds, np.zeros(len(self.base) + 1))
        return float(self.log_prior_of(self.thresholds)[free].sum() + of_gaps.sum())

    def draw_scale(self, sums: Sums, key: np.uint64) -> Self:
        """Slice sampling of every other threshold given its neighbours, then of the rest; all at once for a time."""
        if not self.drawn:
            return self
        n, x = len(self.base), self.thresholds
        turns = [np.arange(n) % 2 == 0, np.arange(n) % 2 == 1] if self.coins == CUMULATIVE else [np.ones(n, bool)]
        for turn, free in enumerate(turns):
            free = free & (np.arange(n) != self.anchor)
            fixed = x

            def log_density(points: Sequence[np.ndarray], free: np.ndarray = free, x: np.ndarray = fixed) -> np.ndarray:
                points = [np.where(free, point, x) for point in points]
                found = []
                for point, own in zip(points, sums.own_sums(list(map(self.with_scale, points)), key), strict=True):
                    gaps = self.gaps(point, self.c * own[n:])
                    found.append(
                        self.c * own[:n] + self.log_prior_of(point) + np.append(0.0, gaps) + np.append(gaps, 0.0)
                    )
                return np.where(free, found, 0.0)

            low, high = np.full(n, -FAR), np.full(n, FAR)
            if self.coins == CUMULATIVE:
                low[1:], high[:-1] = x[:-1], x[1:]
            else:  # many thresholds: a bracket at a random place around each needs fewer points than the whole range
                start = x - WIDTH * uniforms(n, make_key(key, len(turns)))
                low, high = np.maximum(start, -FAR), np.minimum(start + WIDTH, FAR)
            x = np.where(free, slice_sample(log_density, x, make_key(key, turn), low, high), x)
        return self.with_scale(x)

    def with_carried_scale(self, draws: np.ndarray, n_docs: np.ndarray, discount: float) -> Self:
        # with n documents the variance of a threshold is at least about 4 / n; that of few draws may be less by chance
        variance = np.maximum(draws.var(axis=0) / max(discount, LEAST_VARIANCE), 4.0 / np.maximum(n_docs.max(), 1.0))
        mean = draws.mean(axis=0)
        return replace(self, carried=np.array([mean, 1.0 / variance]), thresholds=mean)

    def fitted(self, y: np.ndarray, weight: np.ndarray, omega: np.ndarray) -> tuple[Self, float]:
        """The response with its most probable thresholds given omega (n_docs, 1), and the negative log density there.

        c is 1. All thresholds are found, the anchor too, by Newton's method.
        """
        plain = replace(self, c=1.0, carried=None)
        mass: np.ndarray = np.zeros(len(self.base) + 1)
        if self.coins == CUMULATIVE:
            mass = np.bincount(y[:, 0].astype(int), weight[:, 0], len(mass))

        def cost(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            value, slope, curvature = threshold_sums(self.coins, x, y, weight, omega)
            below, above = self.pseudo
            slope = slope + below * expit(-x) - above * expit(x)
            curvature = curvature + (below + above) * expit(x) * expit(-x)
            return -float((value + plain.log_prior_of(x)).sum() + plain.gaps(x, mass).sum()), slope, curvature

        x = self.thresholds
        value, slope, curvature = cost(x)
        for _ in range(NEWTON):
            step = np.linalg.solve(np.diag(curvature) + self.bend(x, mass), slope + self.pull(x, mass))
            step *= min(1.0, MOST_STEP / np.abs(step).max())
            for _ in range(HALVINGS):
                there = cost(x + step)
                if there[0] <= value:
                    break
                step = 0.5 * step
            else:
                break
            gain, x = value - there[0], x + step
            value, slope, curvature = there
            if gain < CLOSE * max(abs(value), 1.0):
                break
        return plain.with_scale(x), value

    def pull(self, x: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The slope of `gaps` in the thresholds, (S,)."""
        if self.coins != CUMULATIVE:
            return np.zeros(len(x))
        pull = (mass[1:-1] + PSEUDO) / np.expm1(np.diff(x))
        return np.append(0.0, pull) - np.append(pull, 0.0)

    def bend(self, x: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The negative second derivatives of `gaps`, (S, S)."""
        found = np.zeros((len(x), len(x)))
        if self.coins == CUMULATIVE:
            gap = np.diff(x)
            bend, i = (mass[1:-1] + PSEUDO) * np.exp(gap) / np.expm1(gap) ** 2, np.arange(len(gap))
            np.add.at(found, (i, i), bend)
            np.add.at(found, (i + 1, i + 1), bend)
            found[i, i + 1] = found[i + 1, i] = -bend
        return found

    def match_scale(self, target: Target, omega: np.ndarray, scale: np.ndarray, n_past: float) -> np.ndarray:
        weights, above = self.compared(target)
        earlier = n_past / max(float(target.weight.sum()), 1e-300)
        before = (weights * expit(omega - scale).mean(axis=0)).sum(axis=0)
        wanted = (weights * above).sum(axis=0) + earlier * before
        return self.match(weights, omega, wanted, 1.0 + earlier) - scale

    def match(self, weights: np.ndarray, omega: np.ndarray, wanted: np.ndarray, times: float = 1.0) -> np.ndarray:
        """Thresholds (S,) that as many documents are predicted to be above as is wanted, (S,); by bisection.

        weights (n_docs, S) are those of documents that are compared with each threshold, which count `times`.
        """
        below, above = self.spread_pseudo()
        low, high = np.full(len(wanted), -FAR), np.full(len(wanted), FAR)
        for _ in range(BISECTIONS):
            x = 0.5 * (low + high)
            predicted = times * (weights * expit(omega - x).mean(axis=0)).sum(axis=0) + (below + above) * expit(-x)
            too_many = predicted > wanted + above
            low, high = np.where(too_many, x, low), np.where(too_many, high, x)
        return 0.5 * (low + high)

    def spread_pseudo(self) -> tuple[np.ndarray, np.ndarray]:
        """Pseudo-documents below and above each threshold, (S,) each; ordered classes have as many in each class."""
        n = len(self.base)
        if self.coins != CUMULATIVE:
            below, above = self.pseudo
            return np.full(n, below), np.full(n, above)
        return PSEUDO * np.arange(1.0, n + 1.0), PSEUDO * np.arange(n, 0.0, -1.0)

    def with_base(self, target: Target, n: int, anchor: int | None = None) -> Self:
        """The response with n thresholds that stand for the base rates of documents; the anchor is near 0."""
        found = replace(self, base=np.zeros(n))
        weights, above = found.compared(target)
        base = found.match(weights, np.zeros((1, 1, 1)), (weights * above).sum(axis=0))
        anchor = int(np.abs(base).argmin()) if anchor is None else anchor
        return replace(found, base=base, anchor=anchor, thresholds=base)

    def check_scale(self, draws: np.ndarray, n_columns: int) -> None:
        if draws.shape[2] != len(self.base) or n_columns != 1 or np.isnan(draws).any():
            raise ValueError("The number of thresholds cannot be right.")
        if self.coins == CUMULATIVE and (np.diff(draws, axis=2) < 0).any():
            raise ValueError("The order of thresholds cannot be right.")

    # regressions on words, and shrinkage: thresholds follow omega

    def cost(self, target: Target, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """The negative log density for c = 1 under the best thresholds, and its slope in omega."""
        omega = np.ascontiguousarray(omega, dtype=float)
        fitted, value = self.fitted(target.y, target.weight, omega)
        return value, -fitted.gradient(target, omega)

    def curvature(self, target: Target, omega: np.ndarray) -> np.ndarray:
        omega = np.ascontiguousarray(omega, dtype=float)
        return self.fitted(target.y, target.weight, omega)[0].information(target, omega)

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The log of the mean density over the draws, under the thresholds that fit all of these documents best."""
        if not len(y):
            return np.zeros((0, 1))
        fitted, _ = self.fitted(y, np.ones((len(y), 1)), np.ascontiguousarray(np.mean(omegas, axis=0)))
        logs = [fitted.log_density(y, omega) for omega in omegas]
        return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))

    # level

    def link(self, mean: np.ndarray) -> np.ndarray:
        return np.zeros_like(mean)

    def base_mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        return sums[0] / np.where(sums[1] > 0, sums[1], 1.0)

    def chances(self, omega: np.ndarray) -> np.ndarray:
        """The probability to be above each threshold for documents with these omegas (n, m) together, (n, S)."""
        return expit(omega[..., None] - self.thresholds).mean(axis=1)

    def draw_offsets(self, offset: np.ndarray, n_docs: np.ndarray, n_draws: int) -> np.ndarray:
        """Draws of omega of a document without words, as spread as omega of others is.

        With them the thresholds give it the base rates; a single omega would have too little uncertainty.
        """
        p = self.chances(SPREADS[:, None] * SPREAD_POINTS)  # (spreads, S)
        sd = SPREADS[np.argmin(((p - expit(-self.base)) ** 2).sum(axis=1))]
        place = np.argsort(np.argsort(np.arange(1, n_draws + 1) * GOLDEN % 1.0))
        return offset + sd * ndtri((place + 0.5) / n_draws)[:, None]
