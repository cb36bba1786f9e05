"""Classes and labels with probabilities: what is chosen, and how good it is."""

from typing import ClassVar

import numpy as np

from supertopic.corpus.source import Target
from supertopic.model.responses.averages import average
from supertopic.model.responses.base import TINY
from supertopic.model.responses.classes import ClassResponse, sum_known


class ProbabilityResponse(ClassResponse):
    """Classes or labels whose `expected` are probabilities."""

    has_probabilities: ClassVar[bool] = True
    effect_on: ClassVar[str] = "probability"

    def chosen(self, expected: np.ndarray) -> np.ndarray:
        return (expected > 0.5).astype(int) if self.multilabel else expected.argmax(axis=1)

    def set_scores(self, expected: np.ndarray) -> np.ndarray:
        """Of a class, the probability of all that are more probable (adaptive sets: Romano and others, 2020)."""
        if self.multilabel:
            return 1.0 - expected
        order = np.argsort(-expected, axis=1, kind="stable")
        p = np.take_along_axis(expected, order, axis=1).astype(float)
        found = np.empty(p.shape)
        np.put_along_axis(found, order, np.cumsum(p, axis=1) - p, axis=1)
        return np.maximum(found, 0.0)

    def confidence(self, expected: np.ndarray) -> np.ndarray:
        return np.maximum(expected, 1.0 - expected) if self.multilabel else expected.max(axis=1, keepdims=True)

    def chosen_probability(self, truth: np.ndarray, p: np.ndarray) -> np.ndarray:
        """The probability (..., n_docs, n) of what is true: of each label, or of the class."""
        if self.multilabel:
            return np.where(truth > 0.5, p, 1.0 - p)
        return np.sum(p * np.nan_to_num(truth), axis=-1)[..., None]

    def draw_losses(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        p = self.chosen_probability(truth, self.expected(omegas, scales))
        return -np.log(p + TINY).sum(axis=2).T

    def surprise(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        p = self.chosen_probability(truth, average(self.expected(omegas, scales)))
        return sum_known(-np.log(p + TINY), truth)

    loss = surprise

    def doubt(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        p = average(self.expected(omegas, scales))
        return -np.abs(p - 0.5).mean(axis=1) if self.multilabel else -p.max(axis=1)

    def uncertainty(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """1 less the distance of the two most probable classes, or that of having a label and not having it."""
        p = average(self.expected(omegas, scales))
        if self.multilabel:
            return 1.0 - np.abs(2.0 * p - 1.0).mean(axis=1)
        best = np.sort(p, axis=1)
        return 1.0 - (best[:, -1] - best[:, -2])

    def figures(self, truth: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        p = self.chosen_probability(truth, expected)
        return super().figures(truth, expected) | {"log_loss": float(-np.log(p + TINY).sum(axis=1).mean())}

    def replicate(self, omega: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """New responses under this omega: the number of a class, (n_docs, 1), or labels as 0 and 1."""
        p = self.expected(omega[None], self.scale[None])[0]
        if self.multilabel:
            return (rng.random(p.shape) < p).astype(np.int32)
        below = np.cumsum(p, axis=1)[:, :-1]
        return (rng.random((len(p), 1)) > below).sum(axis=1, dtype=np.int32)[:, None]

    def as_replicated(self, target: Target) -> np.ndarray:
        """Known responses in the form of `replicate`; unknown labels are NaN."""
        truth = self.encoded_truth(target.y)
        return np.where(target.weight > 0, truth, np.nan) if self.multilabel else truth.argmax(axis=1)[:, None]
