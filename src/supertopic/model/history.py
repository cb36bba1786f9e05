"""The history of a model: how well it predicted each batch of documents before it learned from it."""

from typing import Any, NamedTuple

import numpy as np

MOST = 1000  # entries that are kept: the first one, and the latest
SHOWN = 5  # words that an entry names
COVERAGE, CALIBRATION = "coverage of 90 % intervals", "calibration error"


class Figures(NamedTuple):
    """How well known responses were predicted; None where a response has no such figure."""

    scored: int = 0  # documents with a known response
    score_name: str = ""
    score: float | None = None
    loss: float | None = None  # the mean loss of a document, such as -log p of its class
    base_loss: float | None = None  # the same if only the base rate is predicted
    calibration_name: str = ""
    calibration: float | None = None


class Changes(NamedTuple):
    """How a batch made a model larger."""

    classes_added: tuple[str, ...] = ()
    words_added: int = 0  # words that were added to the vocabulary of topics
    words_forgotten: int = 0
    own_added: int = 0  # words and pairs that got direct weights, if these have a vocabulary of their own
    own_forgotten: int = 0
    first_added: tuple[str, ...] = ()  # some of the words, those of the most documents first
    first_forgotten: tuple[str, ...] = ()


NO_FIGURES, NO_CHANGES = Figures(), Changes()


class Batch(NamedTuple):
    """One batch of documents.

    The figures of the first batch are those of its held-out documents, those of a later one of all of its documents
    with known responses, before the model learned from them.
    """

    batch: int  # its number, from 1
    documents: int
    figures: Figures = NO_FIGURES
    unknown_words: float | None = None  # the share of its words that the model did not know; None for counts
    changes: Changes = NO_CHANGES

    @property
    def held_out(self) -> bool:
        """Whether the figures are those of held-out documents."""
        return self.batch == 1

    def row(self) -> dict[str, Any]:
        """The entry as a flat row of a table."""
        found: dict[str, Any] = {"batch": self.batch, "documents": self.documents, "held_out": self.held_out}
        return found | self.figures._asdict() | {"unknown_words": self.unknown_words} | self.changes._asdict()

    @classmethod
    def from_row(cls, row: Any) -> "Batch":
        """The entry of a file whose contents may be anything: a ValueError or TypeError says what cannot be right."""
        if not isinstance(row, dict) or row.keys() != cls(1, 0).row().keys():
            raise ValueError("An entry of the history cannot be right.")
        row = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        figures = Figures(*(row[name] for name in Figures._fields))
        changes = Changes(*(row[name] for name in Changes._fields))
        found = cls(row["batch"], row["documents"], figures, row["unknown_words"], changes)
        for name, value in found.row().items():
            usual = SAMPLE[name]
            if isinstance(usual, float):
                sound = value is None or (isinstance(value, int | float) and bool(np.isfinite(value)))
            elif isinstance(usual, tuple):
                sound = isinstance(value, tuple) and all(isinstance(word, str) for word in value)
            else:
                sound = type(value) is type(usual) and (isinstance(value, str | bool) or value >= 0)
            if not sound or (name == "held_out" and value != row[name]):
                raise ValueError(f"{name} = {str(value)[:80]!r} in the history cannot be right.")
        return found


SAMPLE = Batch(1, 0, Figures(0, "", 0.0, 0.0, 0.0, "", 0.0), 0.0).row()  # the type of each value


def appended(history: tuple[Batch, ...], entry: Batch) -> tuple[Batch, ...]:
    """The history with one more entry."""
    kept = history if len(history) < MOST else (history[0], *history[len(history) - MOST + 2 :])
    return (*kept, entry)
