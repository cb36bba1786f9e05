"""No response: plain LDA."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from supertopic.corpus.source import Target, no_target
from supertopic.model.responses.augmentation import OneLam
from supertopic.model.responses.base import Encoded


@dataclass(frozen=True, eq=False)
class NoResponse(OneLam):
    """Documents without a response: there are no columns, and nothing is predicted."""

    c: float = 1.0

    title: ClassVar[str] = "latent Dirichlet allocation"
    references: ClassVar[tuple[str, ...]] = ("blei2003", "griffiths2004")

    def encode(
        self, y: Any, weight: np.ndarray, exposure: Any = None, classes: Any = None, sums: Any = None
    ) -> Encoded:
        return Encoded(self, no_target(len(weight)), None)

    @property
    def column_names(self) -> list[str]:
        return []

    def draw_lam(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        return np.zeros_like(omega)

    def kappa(self, target: Target) -> tuple[np.ndarray, float]:
        return np.zeros_like(target.y), 0.0

    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        return np.zeros_like(omega)

    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        return np.zeros_like(omega)

    def refuse(self, *_: Any) -> Any:
        raise AttributeError("The model has no response that topics could explain or predict.")

    expected = interval = predictions = truth = draw_losses = loss = score = surprise = doubt = refuse  # type: ignore[assignment]
