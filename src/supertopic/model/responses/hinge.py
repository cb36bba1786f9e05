"""Gibbs MedLDA: the hinge loss of a support vector machine as a response."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from supertopic.corpus.source import Target
from supertopic.kernels.responses import HINGE
from supertopic.model.responses.augmentation import KernelResponse
from supertopic.model.responses.averages import average, share_quantile
from supertopic.model.responses.classes import ClassResponse, sum_known
from supertopic.model.responses.logistic import Logistic


@dataclass(frozen=True, eq=False)
class Hinge(KernelResponse, ClassResponse):
    """psi = exp(-2 c max(0, zeta)), zeta = margin - sign omega, where sign is -1 or 1 for y = 0 or 1."""

    margin: float

    formula: ClassVar[int] = HINGE
    title: ClassVar[str] = "max-margin supervised latent Dirichlet allocation (Gibbs MedLDA)"
    references: ClassVar[tuple[str, ...]] = ("zhu2014",)

    @property
    def own(self) -> float:
        return self.margin

    @property
    def answers(self) -> list[Any]:
        return list(self.column_names)

    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        zeta = self.margin - (2.0 * target.y - 1.0) * omega
        return self.c * target.weight / np.maximum(np.abs(zeta), 1e-6)

    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        # a hinge has no curvature but at its kink; the mean of lam stands for it, one unit away from there at least
        zeta = self.margin - (2.0 * target.y - 1.0) * omega
        return self.c * target.weight / np.maximum(np.abs(zeta), 1.0)

    def plain(self) -> "Hinge":
        return replace(self, c=1.0, margin=1.0, paper_start=False)

    def reported(self) -> Logistic:
        return Logistic(1.0)  # a hinge is no likelihood, so that its posterior has no meaningful intervals

    def link(self, mean: np.ndarray) -> np.ndarray:
        return logit(mean)

    def base_rate(self, offset: np.ndarray) -> np.ndarray:
        return expit(offset)

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        return share_quantile(q, mean, n_docs)

    def cost(self, target: Target, omega: np.ndarray) -> tuple[float, np.ndarray]:
        sign = 2.0 * target.y - 1.0
        zeta = np.maximum(self.margin - sign * omega, 0.0)  # squared, which has a slope everywhere
        return float(np.sum(target.weight * zeta**2)), -2.0 * target.weight * sign * zeta

    def curvature(self, target: Target, omega: np.ndarray) -> np.ndarray:
        return 2.0 * target.weight * ((2.0 * target.y - 1.0) * omega < self.margin)

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        omega = np.mean(omegas, axis=0)  # scores are averaged, there are no probabilities
        zero, one = (self.log_density(np.full_like(omega, value), omega) for value in (0.0, 1.0))
        return self.log_density(y, omega) - np.logaddexp(zero, one)

    def expected(self, omega: np.ndarray, scales: np.ndarray | None = None) -> np.ndarray:
        """Scores: positive towards the class or label."""
        return omega

    def chosen(self, expected: np.ndarray) -> np.ndarray:
        if self.multilabel:
            return (expected > 0).astype(int)
        return (expected[:, 0] > 0).astype(int) if self.binary else expected.argmax(axis=1)

    def set_scores(self, expected: np.ndarray) -> np.ndarray:
        """How far each class is behind the best one; of a label how far its score is below 0."""
        if self.multilabel:
            return -expected
        score = np.hstack([-expected, expected]) if self.binary else expected
        return score.max(axis=1, keepdims=True) - score

    def confidence(self, expected: np.ndarray) -> np.ndarray:
        """The distance to another decision, in units of the score."""
        if self.multilabel or self.binary:
            return np.abs(expected)
        best = np.sort(expected, axis=1)
        return best[:, -1:] - best[:, -2:-1]

    def signs(self, truth: np.ndarray) -> np.ndarray:
        """-1 or 1 for each column of omega."""
        return 2.0 * np.nan_to_num(truth[:, 1:] if self.binary else truth) - 1.0

    def draw_losses(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return np.maximum(1.0 - self.signs(truth) * omegas, 0.0).sum(axis=2).T

    def loss(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The share of errors: a hinge has no probabilities."""
        wrong = ~self.right(truth, average(omegas))
        n_known = np.maximum((~np.isnan(truth)).sum(axis=1), 1) if self.multilabel else 1
        return sum_known(wrong.astype(float), truth) / n_known

    def surprise(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        score = average(omegas)
        if self.multilabel or self.binary:
            return sum_known(np.maximum(-self.signs(truth) * score, 0.0), truth if self.multilabel else truth[:, 1:])
        others = np.where(truth > 0.5, -np.inf, score).max(axis=1)
        return sum_known((others - np.sum(score * np.nan_to_num(truth), axis=1))[:, None], truth)

    def doubt(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        score = average(omegas)
        if self.multilabel or self.binary:
            return -np.abs(score).mean(axis=1)
        best = np.sort(score, axis=1)
        return best[:, -2] - best[:, -1]

    def uncertainty(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return np.exp(self.doubt(omegas, scales))  # 1 on the border of a decision
