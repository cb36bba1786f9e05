"""What a response model has to say: how its target looks, how `lam` is drawn, what `kappa` is, what it predicts.

After augmentation each is exp(kappa omega - lam omega**2 / 2), one per document and column, and that is all that the
sampler ever sees. A missing response has weight 0, so kappa = lam = 0 and its document speaks through its words only.
"""

from typing import NamedTuple, Protocol

import numpy as np

from supertopic.draws import polya_gammas
from supertopic.sweep import Quadratic


class Target(NamedTuple):
    """What is known about some documents."""

    y: np.ndarray  # (n_docs, R), 0 where unknown
    weight: np.ndarray  # (n_docs, R), 0 where unknown


class Response(Protocol):
    """The part of the model that differs from response to response."""

    def augment(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> Quadratic:
        """Draw lam given omega = eta zbar; a document's draw depends on its number first_doc + d only."""

    def start(self, target: Target) -> Quadratic:
        """kappa and lam before the first iteration: the paper's lam = 1."""

    def log_likelihood(self, target: Target, omega: np.ndarray) -> float:
        """The log of the pseudo-likelihood psi, lam integrated out."""


class Logistic(NamedTuple):
    """The paper's response: psi = sigmoid(omega)**(c y) (1 - sigmoid(omega))**(c (1 - y)), a column each."""

    c: float

    def augment(self, target, omega, key, first_doc):
        h = self.c * target.weight
        return Quadratic(h * (target.y - 0.5), polya_gammas(h, omega, key, first_doc))

    def start(self, target):
        return Quadratic(self.c * target.weight * (target.y - 0.5), (target.weight > 0).astype(float))

    def log_likelihood(self, target, omega):
        signed = np.where(target.y > 0.5, omega, -omega)
        return -self.c * float(np.sum(target.weight * np.logaddexp(0.0, -signed)))
