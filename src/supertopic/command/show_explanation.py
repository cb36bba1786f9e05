"""An explanation on a terminal: a table with bars, and the text with its words marked.

Blue and bold is towards the prediction, orange and underlined is away from it. Where the output is no terminal, there
are no colours, and the text is not repeated.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from supertopic.command.steps import out
from supertopic.estimators.supervised import Supervised
from supertopic.model.responses.classes import ClassResponse
from supertopic.model.terms import Intercept
from supertopic.report.explain import MOST_WORDS, Explanation

TOWARDS, AWAY = "bold color(33)", "underline color(208)"  # blue and orange, which everybody can tell apart
HALF = 8  # the width of a bar to either side
FAINT = 0.05  # the part of the largest contribution below which a word is not marked
MOST_ANSWERS, MOST_TOPICS = 5, 3
MOST_DIGITS = 6  # largest number of digits behind the point
LEAST_CHANCE = 0.001  # smallest probability that is shown as a number; the largest is 1 less this


def show_explanation(
    model: Supervised, text: str, found: Explanation, known: str | None = None, column: int | None = None
) -> None:
    """Print why a text gets its prediction, compared with the second class, or with the known one if it is another.

    `column` is what is explained, by default the prediction.
    """
    response, column = model.posterior_.response, found.column if column is None else column
    number = not isinstance(response, ClassResponse)
    if not found.words:
        out.print("The text contains no word of the vocabulary; this is the prediction of an empty text.")
    second = runner_up(model, found, known)
    ranked = isinstance(response, ClassResponse) and (response.multilabel or second is not None)
    line = predicted(found, second, response.has_probabilities, ranked, column)
    if number:
        line += "\nThe interval is that of the expected value. A new one varies more: see predict."
    out.print(escape(line), highlight=False)
    out.print(explanation_table(found, second, column), highlight=False)
    line = topics_line(found, column)
    if line:
        out.print(escape(line), highlight=False)
    if out.is_terminal and found.words:
        out.print(mark_words(model, text, found, column), highlight=False)


def runner_up(model: Supervised, found: Explanation, known: str | None) -> int | None:
    """The column to compare with, if there are three classes or more: that of the known class, or the second best."""
    response = model.posterior_.response
    exclusive = isinstance(response, ClassResponse) and not response.multilabel
    if not exclusive or len(found.columns) < 3 or len(found.columns) != len(found.mean):
        return None
    names = list(map(str, found.columns))
    if known in names and names.index(known) != found.column:
        return names.index(known)
    return int(np.argsort(-np.asarray(found.mean), kind="stable")[1])


def predicted(
    found: Explanation, second: int | None, chances: bool = False, ranked: bool = False, column: int | None = None
) -> str:
    """What is predicted, the best answers first if they are `ranked`; `chances`: these are probabilities.

    `column` is explained, so that it is among the answers in any case.
    """

    def show(value: float) -> str:
        if chances and 0.0 < abs(value) < LEAST_CHANCE:
            return f"<{LEAST_CHANCE:g}"
        return f">{1.0 - LEAST_CHANCE:g}" if chances and 1.0 - LEAST_CHANCE < value < 1.0 else f"{value:.3g}"

    places, names = np.arange(len(found.mean)), found.mean_names
    if ranked:
        places = np.argsort(-np.asarray(found.mean), kind="stable")
        if column is not None and column in places[MOST_ANSWERS:]:
            places = np.insert(places[places != column], MOST_ANSWERS - 1, column)
    lower, upper = found.mean_interval
    parts = []
    for i in places[:MOST_ANSWERS]:
        low, high = show(lower[i]), show(upper[i])
        parts.append(f"{names[i]} {show(found.mean[i])}" + f" ({low} .. {high})" * (low != high or not chances))
    line = ", ".join(parts) + (f" and {len(places) - MOST_ANSWERS} more" if len(places) > MOST_ANSWERS else "")
    if second is not None:
        best = found.column
        gap = show(found.mean[best] - found.mean[second]).replace("<", "less than ").replace(">", "more than ")
        line += f"\n{names[best]} is {gap} above {names[second]}"
    return line


def explanation_table(found: Explanation, second: int | None, column: int) -> Table:
    """What each part adds, the largest first; its rows sum to the total."""
    adds = found.total[:, column]
    over = adds if second is None else adds - found.total[:, second]
    order = np.argsort(-np.maximum(np.abs(adds), np.abs(over)), kind="stable")
    top, rest = order[:MOST_WORDS], order[MOST_WORDS:]
    shown = [*adds[top], *(value[column] for name, value in found.others.items() if name != Intercept.name)]
    largest = float(np.abs(shown).max(initial=0.0)) or 1.0  # the intercept is no reason of this document
    digits = int(np.clip(2 - np.floor(np.log10(largest)), 0, MOST_DIGITS))
    rows = [
        (name, float(value[column]), "", difference(value, column, second), name != Intercept.name)
        for name, value in found.others.items()
    ]
    for i in top:
        span = f"{signed(found.lower[i, column], digits)} .. {signed(found.upper[i, column], digits)}"
        rows.append((found.words[i], float(adds[i]), span, float(over[i]), True))
    rows.sort(key=lambda row: -abs(row[1]))
    if len(rest):
        rows.append((f"{len(rest)} more words", float(adds[rest].sum()), "", float(over[rest].sum()), True))
    rows.append(("total", float(found.omega[column]), "", difference(found.omega, column, second), False))
    title = f"What adds to {escape(str(found.columns[column]))}"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, title_justify="left")
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("adds", justify="right", no_wrap=True)
    if second is not None:
        table.add_column(f"over {escape(str(found.columns[second]))}", justify="right", max_width=14)
    table.add_column("90 % interval", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, total, span, over, has_bar in rows:
        others = [signed(over, digits)] if second is not None else []
        table.add_row(escape(str(name)), signed(total, digits), *others, span, bar(total / largest) if has_bar else "")
    return table


def signed(value: float, digits: int) -> str:
    """A number with its sign; what rounds to 0 has none."""
    return f"{value:+.{digits}f}" if abs(round(float(value), digits)) > 0 else f"{0:.{digits}f}"


def difference(value: np.ndarray, column: int, second: int | None) -> float:
    return 0.0 if second is None else float(value[column] - value[second])


def bar(share: float) -> Text:
    """A bar to the right for what is positive, to the left for what is negative."""
    n = min(round(HALF * abs(share)), HALF)
    filled = "█" * n
    left, right = ("", filled) if share > 0 else (filled, "")
    return Text.assemble((left.rjust(HALF), AWAY.split()[1]), "│", (right, TOWARDS.split()[1]))


def topics_line(found: Explanation, column: int) -> str:
    """The topics that add most."""
    adds = found.topics[:, column]
    largest = [i for i in np.argsort(-np.abs(adds), kind="stable")[:MOST_TOPICS] if found.topic_shares[i] > 0]
    names = (f"{found.topic_labels[i]} {found.topic_shares[i]:.0%} ({adds[i]:+.2f})" for i in largest)
    return f"its topics: {', '.join(names)}" if largest else ""


def mark_words(model: Supervised, text: str, found: Explanation, column: int) -> Text:
    """The text with the words marked that add to a column; pairs of words count for both."""
    marked = Text(text)
    each = dict(zip(found.words, (found.total[:, column] / np.maximum(found.times, 1)).tolist(), strict=True))
    spans = list(words_of(getattr(model, "word_vectorizer_", None) or model.vectorizer_, text))
    scores = [each.get(word, 0.0) for word, *_ in spans]
    for i in range(len(spans) - 1):
        pair = each.get(f"{spans[i][0]} {spans[i + 1][0]}", 0.0) / 2.0
        scores[i] += pair
        scores[i + 1] += pair
    least = FAINT * max(map(abs, scores), default=0.0)
    for (_, start, end), score in zip(spans, scores, strict=True):
        if abs(score) > least:
            marked.stylize(TOWARDS if score > 0 else AWAY, start, end)
    return marked


def words_of(vectorizer: Any, text: str) -> Iterator[tuple[str, int, int]]:
    """The words of a text as a vectorizer sees them, with their places; none if it has a tokenizer of its own."""
    if vectorizer.tokenizer is not None or vectorizer.analyzer != "word":
        return
    prepare = vectorizer.build_preprocessor()
    for match in re.finditer(vectorizer.token_pattern, text):
        group = 1 if match.re.groups else 0
        yield prepare(match[group]), match.start(group), match.end(group)
