"""The history of a model as tables and sentences: how well each batch was predicted before it was learned from."""

from typing import Any

from supertopic.corpus.made_frames import frame_of_rows
from supertopic.model.history import SAMPLE, Batch
from supertopic.model.posterior import Posterior


def history_rows(posterior: Posterior) -> list[dict[str, Any]]:
    """A row for each batch."""
    return [entry.row() for entry in posterior.history]


def history_frame(posterior: Posterior) -> Any:
    """A data frame with a row for each batch."""
    return frame_of_rows(history_rows(posterior), SAMPLE)


def describe_batch(entry: Batch) -> list[str]:
    """An entry in sentences."""
    figures, found = entry.figures, []
    if figures.scored and figures.score is not None:
        named = [(figures.score_name, figures.score), ("mean loss", figures.loss)]
        named += [("of the base rate", figures.base_loss), (figures.calibration_name, figures.calibration)]
        shown = ", ".join(f"{name} {value:.4g}" for name, value in named if name and value is not None)
        which = "held-out documents" if entry.held_out else "documents, before the model learned from them"
        found.append(f"{figures.scored:,} {which}: {shown}.")
    if entry.unknown_words is not None and not entry.held_out:
        found.append(f"{entry.unknown_words:.1%} of the words were not in the vocabulary.")
    return found + describe_changes(entry)


def describe_changes(entry: Batch) -> list[str]:
    """What a batch added to the model, and what was forgotten."""
    changes, found = entry.changes, []
    if changes.classes_added:
        found.append(f"New classes: {', '.join(changes.classes_added)}.")
    for verb, words, own, first in (
        ("added", changes.words_added, changes.own_added, changes.first_added),
        ("forgotten", changes.words_forgotten, changes.own_forgotten, changes.first_forgotten),
    ):
        if words or own:
            shown = f": {', '.join(first)}{', ...' if words > len(first) else ''}" if first else ""
            beside = f", and {own:,} words and pairs with weights of their own" if own else ""
            found.append(f"{words:,} words of topics were {verb}{shown}{beside}.")
    return found
