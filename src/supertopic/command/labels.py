"""The commands `next-to-label` and `check-labels`: which documents people should look at."""

import json
import sys
from typing import Any

import numpy as np
from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.cells import NamedColumns
from supertopic.command.console import write_csv
from supertopic.command.kinds import Asked, kind_of
from supertopic.command.models import need_response, read_beside
from supertopic.command.rows import show
from supertopic.command.steps import Table, check_outputs, err, load, note, out, plain_warnings, row_names
from supertopic.corpus.writing import whole_text


def next_to_label(
    model: opt.Model, data: opt.Data, text: opt.Text, n: opt.HowMany = 20, covariate: opt.KnownCovariate = None,
    exposure: opt.Exposure = None, groups: opt.Groups = None, id: opt.Id = None, output: opt.ListFile = None,
    as_json: opt.JsonLines = False,
) -> None:  # fmt: skip
    """Choose documents whose labels would teach the model most, as CSV.

    Their predictions are uncertain, and they differ from each other. Example: supertopic next-to-label
    tickets.model unlabelled.csv --text body -n 50 -o to_label.csv
    """
    check_outputs([output], [data, model])
    estimator, table = need_response(load(model)), Table(data)
    given = read_beside(estimator, model, table, exposure, covariate, None, groups)
    show_frame(estimator.next_to_label(table.texts(text), n, **given), row_names(table, id), output, as_json)


def check_labels(
    model: opt.Model, data: opt.Data, text: opt.Text, label: opt.CheckedLabel, n: opt.MostWrong = None,
    folds: opt.Folds = 5, covariate: opt.KnownCovariate = None, groups: opt.Groups = None, weight: opt.Weight = None,
    separator: opt.Separator = ";", jobs: opt.Jobs = -1, id: opt.Id = None, output: opt.ListFile = None,
    as_json: opt.JsonLines = False,
) -> None:  # fmt: skip
    """List labels that are probably wrong, as CSV, and estimate how many are wrong.

    The labels are divided into folds. A new model, with the parameters of MODEL, checks each fold and learns from the
    others. The table may be the one that MODEL learned from. Example: supertopic check-labels tickets.model tickets.csv
    --text body --label queue -o wrong.csv
    """
    check_outputs([output], [data, model])
    estimator, table = need_response(load(model)), Table(data)
    table.need_rows()
    response = estimator.posterior_.response
    given_y, n_strange = kind_of(response).known(response, table.__getitem__, Asked(label, separator))
    y = NamedColumns(given_y, list(response.labels or ())) if response.kind == "labels" else given_y
    if n_strange:
        note(f"{n_strange:,} rows have a class that is new to the model; they are not checked.")
    given = read_beside(estimator, model, table, None, covariate, weight, groups)
    estimator.set_params(n_jobs=jobs, verbose=err.is_terminal and not as_json)
    with plain_warnings():
        found = estimator.check_labels(table.texts(text), y, n=n, n_folds=folds, **given)
    show_frame(found.frame, row_names(table, id), output, as_json)
    for line in found.sentences():
        note(escape(line))


def show_frame(frame: Any, names: list[str], output: Any, as_json: bool) -> None:
    """Write a frame of documents, with the names of their rows, as CSV or JSON lines; a terminal shows a table."""
    frame = frame.assign(row=[names[i] for i in frame["row"]])
    rows = [{name: plain_cell(cell) for name, cell in row.items()} for row in frame.to_dict("records")]
    if output is None and rows and not as_json and out.is_terminal:
        columns = [name for name in rows[0] if name != "text"]
        show({name: [row[name] for row in rows] for name in [*columns, "text"]}, False, False)
        return
    if output is None:
        write_rows(sys.stdout, list(frame.columns), rows, as_json)
        return
    with whole_text(output) as file:
        write_rows(file, list(frame.columns), rows, as_json)


def write_rows(file: Any, names: list[str], rows: list[dict[str, Any]], as_json: bool) -> None:
    """Write rows to a file."""
    if as_json:
        file.writelines(json.dumps(row, default=str) + "\n" for row in rows)
        return
    write_csv(file, [names, *([csv_cell(cell) for cell in row.values()] for row in rows)])


def csv_cell(cell: Any) -> Any:
    """Several words or labels as one cell, and numbers with six digits."""
    if isinstance(cell, list | tuple):
        return ";".join(map(str, cell))
    return f"{cell:.6f}" if isinstance(cell, float) else cell


def plain_cell(cell: Any) -> Any:
    """A cell as Python has it."""
    return cell.item() if isinstance(cell, np.generic) else cell
