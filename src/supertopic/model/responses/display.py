"""How a response is shown to readers: in tables, in texts, beside a document."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from supertopic.model.responses.values import without_na


class Display(ABC):
    """What tables and texts show of a response; numbers are shown as they are."""

    effect_on: ClassVar[str] = "response"  # what `column_effects` are changes of

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """The class, label or number that each column of weights is about."""

    @property
    def answers(self) -> list[Any]:
        """The names of what is predicted, one for each column of `expected`."""
        return list(self.column_names)

    def offset_in_units(self, offset: np.ndarray) -> np.ndarray:
        """A constant of omega (..., R) in the units of y."""
        return offset

    def column_effects(self, change: np.ndarray) -> np.ndarray:
        """Of changes of predictions (..., n_answers) the one that each column of weights is about, (..., R)."""
        names, columns = list(map(str, self.answers)), enumerate(self.column_names)
        return change[..., [names.index(name) if name in names else r for r, name in columns]]

    def predicted(self, expected: np.ndarray) -> list[Any]:
        """What a reader is shown of predictions (n_docs, n_answers), an entry for each document."""
        return expected[:, 0].tolist() if expected.shape[1] == 1 else list(map(tuple, expected.tolist()))

    def table_answers(self) -> tuple[list[int], list[str], str]:
        """Which answers a table of effects shows, what they are called there, and the unit of effects."""
        names = [str(name) for name in self.answers]
        return list(range(len(names))), names, "its units"

    def how(self, shared: str) -> str:
        """What a methods section has about the response after its kind; `shared` says whether topics are."""
        return "."

    def observed(self, truth: np.ndarray, y: Any, rows: np.ndarray) -> list[Any]:
        """What a reader is shown of some known responses; None or NaN where they are unknown."""
        return Display.predicted(self, np.asarray(without_na(y), dtype=float).reshape(len(truth), -1)[rows])

    def as_text(self, truth: np.ndarray) -> str | None:
        """One known response, (n,), in a few characters; None if it is unknown or there are several."""
        if np.isnan(truth).any() or len(truth) > 1:
            return None
        return f"{self.offset_in_units(truth)[0]:.4g}"
