"""The command `drift`, and the line about drift after `predict` and `update`."""

import json
from typing import Any

import numpy as np
from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.kinds import MISSING, Asked, kind_of
from supertopic.command.models import read_beside
from supertopic.command.steps import Table, load, note, out, plain_warnings
from supertopic.estimators.base import TopicModel

FEWEST, LEAST_USUAL = 20, 20  # documents, and held-out ones, with which a line is printed


def drift_line(model: TopicModel, texts: np.ndarray, y: Any = None, **beside: Any) -> str | None:
    """A line about the drift of texts, and of responses; None if there are too few, or too few to compare with."""
    usual = model.posterior_.reference
    if len(texts) < FEWEST or usual is None or len(usual.shares) < LEAST_USUAL:
        return None
    found = model.drift(texts, y, **beside)
    return found.sentence() if found else None


def note_drift(line: str | None) -> None:
    """Print a line about drift on the standard error."""
    if line is not None:
        note(escape(line))


def drift(
    model: opt.Model, data: opt.Data, text: opt.Text, label: opt.ComparedLabel = None,
    covariate: opt.KnownCovariate = None, exposure: opt.Exposure = None, groups: opt.Groups = None,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";", as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show whether documents differ from those of the fit by more than chance.

    Example: supertopic drift tickets.model monday.csv --text body --label queue
    """
    estimator = load(model)
    table, y, n_new, given = Table(data), None, 0, {}
    if label:
        response = estimator.posterior_.response
        asked = Asked(label, separator, event=event, gold=gold)
        y, n_new = kind_of(response).known(response, table.__getitem__, asked)
        y = with_new(y, table[label]) if n_new else y
        given = read_beside(estimator, model, table, exposure, covariate, None, groups)
    with plain_warnings():
        found = estimator.drift(table.texts(text), y, **given)
    if as_json:
        facts: dict[str, Any] = {"documents": found.n_docs, "alarms": found.alarms, "theme": found.theme}
        facts |= {"unexplained": found.documents, "figures": {name: row._asdict() for name, row in found.items()}}
        print(json.dumps(facts))
        return
    out.print(escape(repr(found)), highlight=False, soft_wrap=True)


def with_new(y: np.ndarray, cells: list[Any]) -> np.ndarray:
    """Classes of a fitted model; new ones are as they are in the table."""
    if y.ndim != 1:
        return y  # rows of labels
    unknown = [cell is None or str(cell).strip() in MISSING for cell in cells]
    rows = zip(y.tolist(), cells, unknown, strict=True)
    return np.array([cell if value is None and not gone else value for value, cell, gone in rows], dtype=object)
