"""The command `history`: how well each batch was predicted before the model learned from it."""

import json
import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from supertopic.command import options as opt
from supertopic.command.console import write_csv
from supertopic.command.steps import load, out
from supertopic.report.history import describe_changes, history_rows

FIGURES = ("score", "loss", "base_loss", "calibration", "unknown_words")


def history(model: opt.Model, as_csv: opt.BatchesCsv = False, as_json: opt.AsJson = False) -> None:
    """Show how well each batch of documents was predicted before the model learned from it.

    The figures of the first batch are those of its held-out documents. Example: supertopic history tickets.model
    """
    posterior = load(model).posterior_
    entries, rows = posterior.history, history_rows(posterior)
    if as_json:
        print(json.dumps(rows))
    elif as_csv:
        if rows:
            write_csv(sys.stdout, [list(rows[0]), *([cell(value) for value in row.values()] for row in rows)])
    elif not rows:
        out.print("The model has no history: it was written by an older version.")
    else:
        names = rows[-1]["score_name"], rows[-1]["calibration_name"]
        shown = ["batch", "documents", "scored", names[0] or "score", "loss", "of base rate", names[1] or "calibration"]
        table = Table(*shown, "unknown words", box=SIMPLE_HEAD, pad_edge=False)
        for entry, row in zip(entries, rows, strict=True):
            figures = ("" if row[name] is None else f"{row[name]:.3f}" for name in FIGURES)
            scored = f"{row['scored']:,} held out" if entry.held_out else f"{row['scored']:,}"
            table.add_row(str(entry.batch), f"{entry.documents:,}", scored, *figures)
        out.print(table, highlight=False)
        for entry in entries:
            changes = describe_changes(entry)
            if changes:  # a column of the table would be a few letters wide
                out.print(escape(f"Batch {entry.batch}: {' '.join(changes)}"), highlight=False)


def cell(value: Any) -> Any:
    """A value as a cell: several words or classes are separated by semicolons."""
    return ";".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else value
