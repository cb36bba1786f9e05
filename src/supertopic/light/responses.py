"""What is predicted given draws of omega, for each response: the formulas of `model.responses` for predictions."""

from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, gammaincinv, log_expit, logit, ndtri, softmax

GOLDEN, TINY = 0.5 * (5.0**0.5 - 1.0), 1e-300
LEAST_SHARE, LEAST_SCALE, MOST_LOG, MOST_COUNT = 1e-8, 1e-8, 700.0, 1e300
SPREADS, SPREAD_POINTS = np.arange(0.0, 8.01, 0.25), ndtri((np.arange(41) + 0.5) / 41)


class Answers:
    """A response; `learned` is what its fit found: classes, centre and unit, thresholds."""

    has_probabilities = False

    def __init__(self, parameters: dict[str, Any], learned: dict[str, Any], scale: np.ndarray):
        self.parameters, self.learned = parameters, learned
        self.scale = scale  # the mean of its own parameter, (S,)
        self.prepare()

    def prepare(self) -> None:
        """Read what is needed again and again."""

    def expected(self, omega: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """What is predicted in each draw, (n_draws, n_docs, n_answers)."""
        return omega

    def predicted(self, expected: np.ndarray) -> np.ndarray:
        """What `predict` of the estimator returns."""
        return expected

    # the offset of documents without known words, which few documents may support

    def mean(self, omega: np.ndarray) -> np.ndarray:
        return omega

    def base_rate(self, offset: np.ndarray) -> np.ndarray:
        return self.mean(offset)

    def link(self, mean: np.ndarray) -> np.ndarray:
        return mean

    def predictive_offset(self, offset: np.ndarray) -> np.ndarray:
        return offset

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        return mean + ndtri(q) / np.sqrt(n_docs)

    def draw_offsets(self, offset: np.ndarray, n_docs: np.ndarray, n_draws: int) -> np.ndarray:
        """n draws of the offset, (n, R), if n_docs documents support it."""
        place = np.arange(1, n_draws + 1)[:, None] * GOLDEN + np.arange(len(offset)) * GOLDEN**2
        q = (np.argsort(np.argsort(place % 1.0, axis=0), axis=0) + 0.5) / n_draws
        with np.errstate(all="ignore"):
            mean = self.base_rate(offset)
            draws = self.mean_quantile(q, mean, np.maximum(n_docs, 1.0))
            away = draws - mean
            sides = np.array([np.maximum(away, 0.0).mean(axis=0), np.maximum(-away, 0.0).mean(axis=0)])
            less = sides.min(axis=0) / np.maximum(sides, TINY)
            found = self.predictive_offset(self.link(mean + np.where(away > 0, less[0], less[1]) * away))
        return np.where((n_docs > 0) & np.isfinite(found), found, offset)


def share_quantile(q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
    return betaincinv(n_docs * mean, n_docs * (1.0 - mean), q).clip(LEAST_SHARE, 1.0 - LEAST_SHARE)


def spread_offsets(p: np.ndarray, base: np.ndarray, offset: np.ndarray, n_draws: int) -> np.ndarray:
    """Draws as spread as omega of other documents is, p (spreads, S); the thresholds then give the base rates."""
    sd = SPREADS[np.argmin(((p - expit(-base)) ** 2).sum(axis=1))]
    place = np.argsort(np.argsort(np.arange(1, n_draws + 1) * GOLDEN % 1.0))
    return offset + sd * ndtri((place + 0.5) / n_draws)[:, None]


class Classes(Answers):
    """Classes and labels with logistic columns."""

    has_probabilities = True

    def prepare(self) -> None:
        self.classes = np.asarray(self.learned["classes"])
        self.multilabel = bool(self.learned["multilabel"])
        several = not self.multilabel and len(self.classes) > 2
        self.sticks = several and self.parameters.get("multiclass") == "stick_breaking"
        self.exclusive = several and not self.sticks
        self.binary = not self.multilabel and len(self.classes) == 2

    def expected(self, omega: np.ndarray, scales: np.ndarray) -> np.ndarray:
        if self.multilabel:
            return expit(omega)
        if self.binary:
            return np.concatenate([expit(-omega), expit(omega)], axis=-1)
        if self.sticks:
            ones = np.ones((*omega.shape[:-1], 1))
            before = np.concatenate([ones, np.cumprod(expit(-omega), axis=-1)], axis=-1)
            return np.concatenate([expit(omega), ones], axis=-1) * before
        return softmax(omega, axis=-1)

    def predicted(self, expected: np.ndarray) -> np.ndarray:
        return (expected > 0.5).astype(int) if self.multilabel else self.classes[expected.argmax(axis=1)]

    def base_rate(self, offset: np.ndarray) -> np.ndarray:
        return np.exp(offset) if self.exclusive else expit(offset)

    def link(self, mean: np.ndarray) -> np.ndarray:
        return logit(mean)

    def predictive_offset(self, offset: np.ndarray) -> np.ndarray:
        return log_expit(offset) if self.exclusive else offset

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        return share_quantile(q, mean, n_docs)


class Margins(Classes):
    """Classes and labels with the hinge: scores."""

    has_probabilities = False

    def expected(self, omega: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return omega

    def predicted(self, expected: np.ndarray) -> np.ndarray:
        if self.multilabel:
            return (expected > 0).astype(int)
        return self.classes[(expected[:, 0] > 0).astype(int) if self.binary else expected.argmax(axis=1)]

    def base_rate(self, offset: np.ndarray) -> np.ndarray:
        return expit(offset)

    def predictive_offset(self, offset: np.ndarray) -> np.ndarray:
        return offset


class Ordered(Answers):
    """Ordered classes."""

    has_probabilities = True

    def prepare(self) -> None:
        self.classes, self.base = np.asarray(self.learned["classes"]), np.asarray(self.learned["base"])

    def expected(self, omega: np.ndarray, scales: np.ndarray) -> np.ndarray:
        above = expit(omega - scales[:, None])
        ones = np.ones((*above.shape[:-1], 1))
        return -np.diff(np.concatenate([ones, above, 0.0 * ones], axis=-1), axis=-1)

    def predicted(self, expected: np.ndarray) -> np.ndarray:
        return self.classes[expected.argmax(axis=1)]

    def chances(self, omega: np.ndarray) -> np.ndarray:
        """The probability to be above each threshold for documents with these omegas (n, m) together, (n, S)."""
        return expit(omega[..., None] - self.scale).mean(axis=1)

    def draw_offsets(self, offset: np.ndarray, n_docs: np.ndarray, n_draws: int) -> np.ndarray:
        return spread_offsets(self.chances(SPREADS[:, None] * SPREAD_POINTS), self.base, offset, n_draws)


class Times(Answers):
    """The time until an event: survival at the ends of the periods, with a column of omega for each of them."""

    def prepare(self) -> None:
        self.edges = np.asarray(self.learned["edges"])

    def expected(self, omega: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return np.cumprod(expit(-omega), axis=-1)

    def predicted(self, expected: np.ndarray) -> np.ndarray:
        """The median, linear inside periods; infinite if too many survive the last one."""
        first = (expected > 0.5).sum(axis=1)
        starts, ends = np.append(0.0, self.edges), np.append(self.edges, np.inf)
        padded = np.hstack([np.ones((len(expected), 1)), expected, np.zeros((len(expected), 1))])
        before, after = (np.take_along_axis(padded, first[:, None] + i, axis=1)[:, 0] for i in (0, 1))
        return starts[first] + (before - 0.5) / np.maximum(before - after, TINY) * (ends[first] - starts[first])

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        return share_quantile(q, mean, n_docs)

    def mean(self, omega: np.ndarray) -> np.ndarray:
        return expit(omega)

    def link(self, mean: np.ndarray) -> np.ndarray:
        return logit(mean)


class SharedTimes(Times):
    """The same with one omega for all periods, and a threshold for each."""

    def prepare(self) -> None:
        super().prepare()
        self.base = np.asarray(self.learned["base"])

    def expected(self, omega: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return np.cumprod(expit(scales[:, None] - omega), axis=-1)

    def chances(self, omega: np.ndarray) -> np.ndarray:
        """The probability of an event in each period for those at risk, (n, S)."""
        mean = np.cumprod(expit(self.scale - omega[..., None]), axis=-1).mean(axis=1)
        return 1.0 - mean / np.hstack([np.ones((len(mean), 1)), mean[:, :-1]])

    def draw_offsets(self, offset: np.ndarray, n_docs: np.ndarray, n_draws: int) -> np.ndarray:
        return spread_offsets(self.chances(SPREADS[:, None] * SPREAD_POINTS), self.base, offset, n_draws)


class Numbers(Answers):
    """Ratings."""

    def expected(self, omega: np.ndarray, scales: np.ndarray) -> np.ndarray:
        centre, unit = (np.asarray(self.learned.get(name, usual)) for name, usual in (("centre", 0.0), ("unit", 1.0)))
        return centre + unit * self.mean(omega)

    def predicted(self, expected: np.ndarray) -> np.ndarray:
        return expected if self.learned["multioutput"] else expected[:, 0]


class Counts(Numbers):
    """Counts, negative binomial."""

    def mean(self, omega: np.ndarray) -> np.ndarray:
        return np.minimum(np.exp(np.minimum(omega, MOST_LOG)), MOST_COUNT)

    def link(self, mean: np.ndarray) -> np.ndarray:
        return np.log(mean)

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        shape = n_docs / (1.0 / self.scale + 1.0 / mean)
        return np.maximum(mean * gammaincinv(shape, q) / shape, LEAST_SCALE * mean)


RESPONSES: dict[str, type[Answers]] = {
    "SLDAClassifier": Classes, "SLDACrowdClassifier": Classes, "MedLDAClassifier": Margins,
    "SLDAOrdinalClassifier": Ordered, "SLDARegressor": Numbers, "SLDACrowdRegressor": Numbers,
    "SLDACountRegressor": Counts, "SLDASurvivalRegressor": SharedTimes, "LDA": Answers,
}  # fmt: skip


def make_response(kind: str, parameters: dict[str, Any], learned: dict[str, Any], scale: np.ndarray) -> Answers:
    """The response of an estimator."""
    by_period = kind == "SLDASurvivalRegressor" and parameters["effects"] == "by_period"
    return (Times if by_period else RESPONSES[kind])(parameters, learned, scale)
