"""The commands `surprising`, `unsure` and `typical`: documents of a table to look at, by their rows."""

import json
import sys
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.markup import escape
from rich.table import Table as Grid

from supertopic.command import options as opt
from supertopic.command.console import write_csv
from supertopic.command.kinds import Asked, kind_of
from supertopic.command.models import need_response, read_beside
from supertopic.command.show import find_topic, topic_name
from supertopic.command.steps import Table, load, note, out, row_names
from supertopic.estimators.documents import surprising_rows, typical_rows, unsure_rows
from supertopic.model.responses.classes import ClassResponse

# what the score of a document is, of classes and of numbers
SURPRISE_OF = "the probability of the known class", "how far the number is from its prediction, in standard deviations"
DOUBT_OF = "the probability of the predicted class", "the width of the 90 % interval"
LEAST_NAME = 9  # width that every column may have
MOST_WIDTH, LEAST_WIDTH = 24, 20  # largest width of a column beside the text; smallest width of the text
Found = dict[str, list[Any]]  # columns, "row" first and "text" last


def surprising(
    model: opt.Model, data: opt.Data, text: opt.Text, label: opt.Label, most: opt.MostRows = 10, id: opt.Id = None,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";", exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, groups: opt.Groups = None, as_csv: opt.CsvRows = False,
    as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show the documents whose responses are least expected: perhaps their labels are wrong.

    The score is the probability of the label, or for a number how far it is away from its prediction.
    Example: supertopic surprising tickets.model tickets.csv --text body --label queue --id ticket
    """
    estimator, table = need_response(load(model)), Table(data)
    beside = read_beside(estimator, model, table, exposure, covariate, None, groups)
    y = known_y(estimator, table, Asked(label, separator, event=event, gold=gold))
    texts = table.texts(text)
    found = surprising_rows(estimator, texts, y, most, **beside)
    show(of_rows(found, row_names(table, id), texts), as_csv, as_json)
    explain_score(estimator, SURPRISE_OF, as_csv or as_json)


def unsure(
    model: opt.Model, data: opt.Data, text: opt.Text, most: opt.MostRows = 10, id: opt.Id = None,
    exposure: opt.Exposure = None, covariate: opt.KnownCovariate = None, groups: opt.Groups = None,
    as_csv: opt.CsvRows = False, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show the documents whose predictions are the most uncertain.

    The score is the probability of the predicted class, or for a number the width of its 90 % interval.
    Example: supertopic unsure tickets.model new.csv --text body --id ticket
    """
    estimator, table = need_response(load(model)), Table(data)
    beside = read_beside(estimator, model, table, exposure, covariate, None, groups)
    texts = table.texts(text)
    show(of_rows(unsure_rows(estimator, texts, most, **beside), row_names(table, id), texts), as_csv, as_json)
    explain_score(estimator, DOUBT_OF, as_csv or as_json)


def typical(
    model: opt.Model, data: opt.Data, text: opt.Text, topic: opt.OneTopic = None, most: opt.MostRows = 3,
    id: opt.Id = None, as_csv: opt.CsvRows = False, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show the documents in which a topic, or each topic, has its largest share.

    Example: supertopic typical tickets.model tickets.csv --text body --topic 3
    """
    estimator, table = load(model), Table(data)
    texts, names, parts = table.texts(text), row_names(table, id), list[Found]()
    order = np.argsort(-estimator.posterior_.mean_shares).tolist()
    for k in order if topic is None else [find_topic(estimator.posterior_, topic)]:
        own = of_rows(typical_rows(estimator, texts, k, most), names, texts)
        parts.append({"topic": [topic_name(estimator.posterior_, k)] * len(own["row"])} | own)
    show({name: [cell for part in parts for cell in part[name]] for name in parts[0]}, as_csv, as_json)


def explain_score(model: Any, of: tuple[str, str], quiet: bool) -> None:
    """Say below a table what the score is, of classes or of numbers."""
    if not quiet:
        note(f"score: {of[not isinstance(model.posterior_.response, ClassResponse)]}")


def known_y(model: Any, table: Table, asked: Asked) -> Any:
    """The responses of a table in the form of a fitted model."""
    response = model.posterior_.response
    y, n_strange = kind_of(response).known(response, table.__getitem__, asked)
    if n_strange:
        note(f"{n_strange:,} rows have a class that is new to the model; they are left out.")
    return y


def of_rows(found: dict[str, Any], names: list[str], texts: np.ndarray) -> Found:
    """Columns of some rows, with what the rows are called and their texts."""
    rows = found.pop("rows").tolist()
    columns = {name: list(values) for name, values in found.items()}
    return {"row": [names[i] for i in rows]} | columns | {"text": [texts[i] for i in rows]}


def show(found: Found, as_csv: bool, as_json: bool) -> None:
    """Print documents as a table, as CSV, or as JSON."""
    rows = list(zip(*found.values(), strict=True))
    if as_json:
        print(json.dumps([dict(zip(found, map(plain_cell, row), strict=True)) for row in rows]))
    elif as_csv:
        write_csv(sys.stdout, [list(found), *(map(as_cell, row) for row in rows)])
    else:
        out.print(grid_of(list(found), [list(map(shown, row)) for row in rows]), highlight=False)


def grid_of(names: list[str], rows: list[list[str]]) -> Grid:
    """A table whose last column, a text, has what the others leave of the width."""
    grid = Grid(*names, box=SIMPLE_HEAD, pad_edge=False)
    most = [out.width // 3 if name == "row" else MOST_WIDTH for name in names[:-1]]
    widths = list(map(min, most, [max(map(cell_len, cells)) for cells in zip(names, *rows, strict=True)][:-1]))
    room = out.width - 3 * len(widths) - 2 - LEAST_WIDTH
    while sum(widths) > room and max(widths) > LEAST_NAME:  # the widest columns give way to the text
        widths[widths.index(max(widths))] -= 1
    left = room + LEAST_WIDTH - sum(widths)
    for *cells, text in rows:
        cells = list(map(cut, cells, widths))
        grid.add_row(*map(escape, cells), escape(cut(text, max(left, LEAST_WIDTH))))
    return grid


def cut(text: str, width: int) -> str:
    """The beginning of a text, as far as it fits."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def shown(cell: Any) -> str:
    """A cell on one line."""
    return " ".join(as_cell(cell).split())


def plain_cell(cell: Any) -> Any:
    """A cell as a value of JSON."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, list | tuple | np.ndarray):
        return [plain_cell(part) for part in cell]
    return None if isinstance(cell, float) and not np.isfinite(cell) else cell


def as_cell(cell: Any) -> str:
    """A cell as text: several labels with ; between them, numbers with four digits."""
    cell = plain_cell(cell)
    if isinstance(cell, list):
        return ";".join(map(as_cell, cell))
    return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
