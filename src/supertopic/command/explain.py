"""The command `explain`: why documents get their predictions."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.cells import as_number
from supertopic.command.kinds import Asked
from supertopic.command.models import covariate_kinds, need_response, read_beside, with_names
from supertopic.command.rows import known_y
from supertopic.command.show_explanation import show_explanation
from supertopic.command.steps import Table, load, note, out, row_names
from supertopic.corpus.frames import frame_of_cells
from supertopic.estimators.documents import surprising_rows, unsure_rows
from supertopic.estimators.supervised import Supervised
from supertopic.model.responses.classes import ClassResponse
from supertopic.report.explain import Explanation

# what the row is called, its text, its known response, what is explained (None: the prediction), and why
Explained = tuple[str, str, Any, int | None, Explanation]


def explain(
    model: opt.Model, data: opt.OptionalData = None, text: opt.GivenText = None, row: opt.Row = None,
    where: opt.Where = None, most: opt.MostRows = 3, label: opt.KnownLabel = None, id: opt.Id = None,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";",
    covariate: opt.GivenCovariate = None, exposure: opt.GivenExposure = None, group: opt.GivenGroup = None,
    as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show why a text gets its prediction: what each of its words adds, through its topics and by itself.

    A text: supertopic explain tickets.model --text "my printer is on fire". A row of a table: supertopic explain
    tickets.model new.csv --text body --row 17. Errors: the same with --where wrong --label queue
    """
    estimator = need_response(load(model))
    if not text:
        raise ValueError("--text is needed: the text itself, or with a table the name of its column.")
    if data is None:
        if row or where or label or id:
            raise ValueError("--row, --where, --label and --id go with a table: supertopic explain MODEL TABLE ...")
        text = sys.stdin.read() if text == "-" else text
        why = estimator.explain(text, **given_beside(estimator, covariate, exposure, group))
        found: Iterator[Explained] = iter([("", text, None, None, why)])
    else:
        table = Table(data)
        beside = read_beside(estimator, model, table, exposure, covariate, None, group)
        y = known_y(estimator, table, Asked(label, separator, event=event, gold=gold)) if label else None
        texts, names = table.texts(text), row_names(table, id)
        rows = choose_rows(estimator, texts, y, names, row, where and str(where), most, beside, data)
        if not rows:
            note("There is no such document.")
        found = explain_rows(estimator, texts, y, names, rows, beside)
    if as_json:
        facts = [as_facts(name, each) for name, *_, each in found]
        print(json.dumps(facts if data else facts[0], default=plain))
        return
    for place, (name, own, truth, column, each) in enumerate(found):
        if name:
            known = "" if truth is None else f", known: {truth}"
            gap = "\n" if place else ""
            out.print(f"{gap}[bold]row {escape(name)}[/bold]{escape(known)}", highlight=False)
        show_explanation(estimator, own, each, truth, column)


def given_beside(
    model: Supervised, covariate: list[str] | None, exposure: str | None, group: str | None
) -> dict[str, Any]:
    """What is given beside one text."""
    beside: dict[str, Any] = {"groups": [group]} if group is not None else {}
    if exposure is not None:
        number = as_number(exposure)
        if number is None:
            raise ValueError(f"--exposure is a number beside one text, got {exposure!r}.")
        beside["exposure"] = [number]
    if covariate:
        kinds = covariate_kinds(model)
        cells = {name: [cell] for name, cell in with_names(kinds, covariate).items()}
        beside["covariates"] = frame_of_cells(cells, kinds)
    return beside


def choose_rows(
    model: Supervised, texts: np.ndarray, y: Any, names: list[str], row: str | None, where: str | None, most: int,
    beside: dict[str, Any], path: Path,
) -> list[int]:  # fmt: skip
    """The places of the rows to explain."""
    if (row is None) == (where is None):
        raise ValueError("With a table, explain needs either --row or --where.")
    if row is not None:
        if row not in names:
            raise ValueError(f"{path} has no row {row!r}; its {len(names):,} rows begin with {names[:3]}.")
        return [i for i, name in enumerate(names) if name == row]
    if where == "unsure":
        found = unsure_rows(model, texts, most, **beside)
    elif y is None:
        raise ValueError(f"--where {where} needs --label, the column with the responses.")
    else:
        found = surprising_rows(model, texts, y, most, wrong=where == "wrong", **beside)
    return found["rows"].tolist()


def explain_rows(
    model: Supervised, texts: np.ndarray, y: Any, names: list[str], rows: list[int], beside: dict[str, Any]
) -> Iterator[Explained]:
    """The explanations of some rows; of several labels that of the one whose prediction is most wrong."""
    response = model.posterior_.response
    truth = None if y is None else response.truth(y, len(texts))
    for i in rows:
        own = np.array([i])
        known, column = None if truth is None else response.as_text(truth[i]), None
        why = model.explain(texts[i], **{key: part[own] for key, part in beside.items()})
        if isinstance(response, ClassResponse) and response.multilabel and truth is not None:
            named = response.named(truth[own])[0]
            known = None if named is None else "; ".join(map(str, named)) or "no label"
            wrong = (response.chosen(why.mean[None])[0] != truth[i]) & ~np.isnan(truth[i])
            if wrong.any():
                above = why.mean - 0.5 * response.has_probabilities
                column = int(np.where(wrong, np.where(truth[i] == 1, -above, above), -np.inf).argmax())
        yield names[i], texts[i], known, column, why


def as_facts(name: str, found: Explanation) -> dict[str, Any]:
    """An explanation as JSON."""
    facts = found._asdict() | {"through_topics": found.through_topics, "direct": found.direct}
    facts |= {"constant": found.constant, "covariates": found.covariates}
    del facts["by_word"]
    return {"row": name} | facts if name else facts


def plain(value: Any) -> Any:
    """Arrays and numbers of NumPy as values of JSON."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
