"""The paper's response: logistic regression on topic shares, for classes and labels."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from supertopic.corpus.source import Target
from supertopic.model.responses.augmentation import LogisticColumns
from supertopic.model.responses.probabilities import ProbabilityResponse


@dataclass(frozen=True, eq=False)
class Logistic(LogisticColumns, ProbabilityResponse):
    """Classes and labels with logistic columns; of exclusive ones predictions are in proportion to exp(omega)."""

    title: ClassVar[str] = "supervised latent Dirichlet allocation with a logistic response"
    references: ClassVar[tuple[str, ...]] = ("zhu2013", "polson2013")

    @property
    def exclusive(self) -> bool:
        return not self.multilabel and not self.sticks and len(self.classes) > 2

    def mean(self, omega: np.ndarray) -> np.ndarray:
        return softmax(omega, axis=-1) if self.exclusive else super().mean(omega)

    def base_rate(self, offset: np.ndarray) -> np.ndarray:
        return np.exp(offset) if self.exclusive else expit(offset)

    def predictive_offset(self, offset: np.ndarray) -> np.ndarray:
        # A column is a regression of its class against the rest, whose offset is logit p. Where exactly one column is
        # 1, probabilities are in proportion to exp(omega), which has to be p if nothing is known of a document.
        return log_expit(offset) if self.exclusive else offset

    def cost(self, target: Target, omega: np.ndarray) -> tuple[float, np.ndarray]:
        if not self.exclusive:
            return super().cost(target, omega)
        logs = log_softmax(omega, axis=1)
        return -float(np.sum(target.weight * target.y * logs)), target.weight * (np.exp(logs) - target.y)

    def curvature(self, target: Target, omega: np.ndarray) -> np.ndarray:
        if not self.exclusive:
            return super().curvature(target, omega)
        p = softmax(omega, axis=1)
        return target.weight * p * (1.0 - p)

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        if not self.exclusive:
            return super().log_predictive(y, omegas, scales)
        which = y.argmax(axis=1)[None, :, None]
        logs = np.take_along_axis(log_softmax(omegas, axis=2), which, axis=2)
        return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))

    def expected(self, omega: np.ndarray, scales: np.ndarray | None = None) -> np.ndarray:
        """The probability of each class or label."""
        if self.multilabel:
            return expit(omega)
        if self.binary:
            return np.concatenate([expit(-omega), expit(omega)], axis=-1)
        if self.sticks:
            ones = np.ones((*omega.shape[:-1], 1))
            before = np.concatenate([ones, np.cumprod(expit(-omega), axis=-1)], axis=-1)
            return np.concatenate([expit(omega), ones], axis=-1) * before
        return softmax(omega, axis=-1)
