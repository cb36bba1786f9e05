"""What the command shows of a model: topics, covariates, words and figures, as tables."""

from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from supertopic.command.steps import out
from supertopic.model.posterior import Posterior
from supertopic.report.page import default_name
from supertopic.report.raters import rater_frame
from supertopic.report.summary import contribution_sentences, describe_covariates, missed_words, predicts

NARROW = 100  # columns of a terminal below which intervals of topics are left out
UNCLEAR = (
    "-: the effect on no class is clear. Its interval, wide enough for all classes together, contains 0, or half of "
    "the chains or fewer have the topic."
)
ELSEWHERE = "*: the largest weight is that for another class. An effect also depends on the weights for other classes."
MOST_COLUMNS = 20  # largest number of columns of a table of words
MISSED = 8  # words to show for each column
# facts that are shown elsewhere, or only as JSON
NOT_SHOWN = ("response", "why", "test_classes", "held_out", "before_learning", "findings")


def topic_name(posterior: Posterior, k: int) -> str:
    """The number of a topic, with its name if it has one."""
    return f"{k} {posterior.topic_names.get(str(k), '')}".strip()


def find_topic(posterior: Posterior, given: str) -> int:
    """The topic of a number or a name."""
    given = given.strip()
    if given.isascii() and given.isdigit() and int(given) < posterior.n_topics:
        return int(given)
    found = [int(k) for k, name in posterior.topic_names.items() if name and name.casefold() == given.casefold()]
    if len(found) != 1:
        raise ValueError(
            f"There is no topic {given!r}; give a number up to {posterior.n_topics - 1}, or a name that one topic has."
        )
    return found[0]


def show_facts(facts: dict[str, Any]) -> None:
    """Print facts, one per line."""
    for name, value in facts.items():
        shown = f"{value:.4g}" if isinstance(value, float) else escape(str(value))
        if name == "interval":
            name, shown = "its 90 % interval", f"{value[0]:.3f} .. {value[1]:.3f}"
        if name not in NOT_SHOWN:
            out.print(f"[bold]{name.replace('_', ' ')}[/bold]: {shown}", highlight=False)


def show_model(posterior: Posterior, topics: list[dict[str, Any]], names: np.ndarray) -> None:
    """Print the tables of a model; names are its words."""
    parts = [topic_table(topics), *covariate_tables(posterior), *rater_tables(posterior)]
    parts += word_tables(posterior, names)
    for part in (*parts, *held_out_lines(posterior)):
        out.print(part, highlight=False)


def class_table(rows: list[dict[str, Any]]) -> Table:
    table = Table("class", "documents", "precision", "recall", "F1", title="Test documents, by class")
    for row in rows:
        figures = (f"{row[key]:.3f}" if row["documents"] else "-" for key in ("precision", "recall", "f1"))
        table.add_row(escape(str(row["class"])), str(row["documents"]), *figures)
    return table


def topic_table(rows: list[dict[str, Any]], most: int | None = None) -> Table:
    """The topics, or the largest of them."""
    more = f", the {most} largest of {len(rows)}" if most and most < len(rows) else ""
    table = Table("topic", title=f"Topics{more}", box=SIMPLE_HEAD, pad_edge=False)
    if not rows:
        return table
    classes, supervised, wide = "class" in rows[0], "weight" in rows[0], out.width >= NARROW
    weight = "weight (90 % interval)" if wide else "weight"
    for name in ["share", "in chains", *["pulls to"] * classes, *[weight] * supervised]:
        table.add_column(name, no_wrap=name != "pulls to")
    table.add_column("words")
    for row in rows[:most]:
        cells = [escape(f"{row['topic']} {row['name']}".strip()), f"{row['share']:.1%}"]
        cells.append(f"{row['chains']} of {row['of_chains']}")
        if classes:
            cells.append(escape(pull(row)))
        if supervised:
            cells.append(f"{row['weight']:+.2g}" + "*" * weighs_elsewhere(row) + f" ({span(row)})" * wide)
        table.add_row(*cells, escape(", ".join(row["words"])))
    notes = [UNCLEAR] * (classes and any(pull(row) == "-" and excludes_0(row) for row in rows[:most]))
    notes += [ELSEWHERE] * any(weighs_elsewhere(row) for row in rows[:most])
    table.caption, table.caption_justify = "\n".join(notes) or None, "left"
    return table


def pull(row: dict[str, Any]) -> str:
    """The class that a topic makes clearly more likely, or else one that it makes less likely, or "-"."""
    if row["class"] is not None:
        return str(row["class"])
    return f"away from {row['away_from']}" if "away_from" in row else "-"


def excludes_0(row: dict[str, Any]) -> bool:
    low, high = row.get("interval", (0.0, 0.0))
    return bool(low > 0.0 or high < 0.0)


def weighs_elsewhere(row: dict[str, Any]) -> bool:
    """Whether the weight of a row is for another class than the one that the topic pulls to."""
    return row.get("class") is not None and row["class"] != row["largest"]


def span(row: dict[str, Any]) -> str:
    """The interval of a row; a single draw has none."""
    return "{:+.2g} .. {:+.2g}".format(*row["interval"]) if "interval" in row else "-"


def covariate_tables(posterior: Posterior) -> list[Table]:
    """A table of the covariates, if there are any."""
    rows = describe_covariates(posterior)
    if not rows:
        return []
    classes, levels = "class" in rows[0], any("compared_with" in row for row in rows)
    names = ["covariate", *["compared with"] * levels, *["class"] * classes, "weight", "90 % interval"]
    table = Table(*names, title="Covariates, for a unit of each")
    for row in rows:
        cells = [row["covariate"], *[row.get("compared_with", "")] * levels, *[str(row.get("class"))] * classes]
        table.add_row(*map(escape, cells), f"{row['weight']:+.2g}", span(row))
    return [table]


def rater_tables(posterior: Posterior) -> list[Table]:
    """A table of the raters, if there are any."""
    if not posterior.response.several_raters:
        return []
    rows = rater_frame(posterior).to_dict("records")
    table = Table(*rows[0], title="Raters, with 90 % intervals")
    for row in rows[:MOST_COLUMNS]:
        values = [f"{value:.3f}" if isinstance(value, float) else escape(str(value)) for value in row.values()]
        table.add_row(*values)
    return [table]


def word_tables(posterior: Posterior, names: np.ndarray) -> list[Table]:
    """A table of the words with the largest direct weights, if there are any and they predict something."""
    found = missed_words(posterior, names, MISSED) if posterior.words and predicts(posterior) else []
    rows = [row for row in found if row["towards"] or row["away"]]
    if not rows:
        return []
    numbered = posterior.response.labels is None and [row["column"] for row in rows] == ["0"]
    table = Table("", "words towards it", "words away from it", title="What the topics miss")
    for row in rows[:MOST_COLUMNS]:
        column = default_name(posterior.response) if numbered else row["column"]
        table.add_row(*(escape(text) for text in (column, ", ".join(row["towards"]), ", ".join(row["away"]))))
    return [table]


def held_out_lines(posterior: Posterior) -> list[str]:
    """A line about the documents that the weights are estimated on."""
    found = posterior.held_out
    if not posterior.supervised:
        return []
    if not found["documents"]:
        return ["No document was held out: weights come from the documents of the topics, and intervals are too short."]
    lines = [
        f"Weights are estimated on {found.get('cross_fitted', found['documents']):,} documents whose responses did not "
        f"influence the topics. On {found['documents']:,} held-out documents the loss of predictions is "
        f"{found['loss']:.4g}, that of the base rate {found['base_loss']:.4g} (difference +- {found['se']:.2g})."
    ]
    sentences = contribution_sentences(posterior)
    if sentences:
        lines.append("Contributions to these predictions, with 90 % intervals:")
    return lines + [f"  {sentence}" for sentence in sentences]
