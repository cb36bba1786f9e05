"""The command `check`: a look at the data, without a fit."""

import json
from collections import Counter

import numpy as np
from rich.markup import escape
from rich.table import Table as Rows

from supertopic.command import options as opt
from supertopic.command.kinds import KINDS, Asked, read_response
from supertopic.command.look import known_labels, look
from supertopic.command.steps import Table, out, row_names
from supertopic.corpus.look import look_at_ids

MOST_CLASSES = 20  # largest number of classes that are shown


def check(
    data: opt.Data, text: opt.Text, label: opt.LookedLabel = None, response: opt.Response = opt.AUTO,
    order: opt.Grades = None, event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";",
    missing: opt.Missing = None, id: opt.Id = None, strict: opt.Strict = False, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Look at a table before a fit: empty texts, duplicates, labels that differ by case, rare classes, and the like.

    `fit`, `choose` and `update` look at the same. Example: supertopic check tickets.csv --text body --label queue
    """
    table, column, has_names = Table(data), None, False
    table.need_rows()
    texts = table.texts(text)
    facts: dict[str, object] = {"documents": len(texts)}
    words = np.array([len(each.split()) for each in texts])
    facts["median_words"] = float(np.median(words)) if len(words) else 0.0
    if label:
        asked = Asked(label, separator, ["NA"] if missing is None else missing, order=order, event=event, gold=gold)
        column = read_response(table.__getitem__, response, asked)
        has_names = KINDS[column.response].has_names
        facts |= {"response": column.response, "why": column.why, "unlabelled": int((~column.known).sum())}
        if column.y.ndim == 1 and has_names:
            known = Counter(str(name) for name in known_labels(column) if name is not None)
            facts["classes"] = dict(known.most_common())
    _, found = look(texts, column, has_names, strict, english=True, quiet=True, names=row_names(table, id))
    of_ids = look_at_ids(table[id]) if id else []
    if strict and of_ids:
        raise ValueError(f"--strict stops, since the data have problems:\n- {of_ids[0]}")
    found += of_ids
    if as_json:
        print(json.dumps(facts | {"findings": found}))
        return
    classes = facts.pop("classes", None)
    for name, value in facts.items():
        cell = f"{value:g}" if isinstance(value, float) else str(value)
        out.print(f"[bold]{name.replace('_', ' ')}[/bold]: {escape(cell)}", highlight=False)
    if isinstance(classes, dict):
        rows = Rows("class", "rows")
        for name, size in list(classes.items())[:MOST_CLASSES]:
            rows.add_row(escape(name), f"{size:,}")
        out.print(rows)
    for sentence in found or ["No problem found."]:
        out.print(f"- {escape(sentence)}", highlight=False)
