"""A table of cells as text, Markdown, HTML and LaTeX. Names may hold any character, and are shown as they are."""

import math
import re
import textwrap
import unicodedata
from html import escape
from typing import NamedTuple

MOST_LETTERS = 80  # largest number of letters in a cell: a longer one is cut
JOINERS = "\u200c\u200d"  # invisible characters that change the letters beside them
PLACES = range(-4, 9)  # decimals of numbers that are written without an exponent
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}", '"': r"\textquotedbl{}", "-": "{-}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after a line break, [ and * would belong to it
    **{character: f"\\{character}" for character in "&%$#_{}"},
})  # fmt: skip
MARKDOWN = str.maketrans({
    "&": "&amp;", "<": "&lt;", ">": "&gt;", **{character: f"\\{character}" for character in "\\`*_[]|~$"},
})  # fmt: skip


class Block(NamedTuple):
    """Rows that belong together, and what stands above them."""

    title: str
    rows: list[list[str]]


class Layout(NamedTuple):
    """A table of cells: blocks of rows below one head."""

    caption: str
    columns: list[str]
    n_text: int  # columns of text, which come first; the others hold numbers
    blocks: list[Block]
    foot: list[str]


def rounded(value: float, width: float) -> str:
    """A number with two significant digits of the width of its interval; with three of its own if that is 0."""
    if not math.isfinite(value) or not math.isfinite(width):
        return f"{value:g}"
    size = width or abs(value) / 10
    if size < 1e-300:
        return f"{value:.3g}"
    places = 1 - math.floor(math.log10(size))
    if places in PLACES:
        return f"{round(value, places):z.{max(places, 0)}f}"
    digits = math.floor(math.log10(abs(value))) + places if value else 0
    return f"{value:z.{digits}e}" if digits >= 0 else "0"


def plain(text: object, most: int | None = MOST_LETTERS) -> str:
    """A name as one line without control characters, cut after `most` letters."""
    kept = (
        character if character in JOINERS or unicodedata.category(character)[0] not in "CZ" else " "
        for character in str(text)
    )  # fmt: skip
    line = " ".join("".join(kept).split())
    return line if most is None or len(line) <= most else line[: most - 1] + "…"


def as_text(table: Layout) -> str:
    """The table for a terminal."""
    rows = [table.columns, *(row for block in table.blocks for row in block.rows)]
    widths = [max(map(shown_width, column)) for column in zip(*rows, strict=True)]

    def line(row: list[str]) -> str:
        gaps = [" " * (width - shown_width(cell)) for cell, width in zip(row, widths, strict=True)]
        pairs = enumerate(zip(row, gaps, strict=True))
        return "  ".join(cell + gap if i < table.n_text else gap + cell for i, (cell, gap) in pairs).rstrip()

    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    lines = [textwrap.fill(table.caption, len(rule)), rule, line(table.columns), rule]
    for block in table.blocks:
        lines += [*([block.title] if block.title else []), *map(line, block.rows), rule]
    return "\n".join([*lines, *table.foot])


def shown_width(text: str) -> int:
    """The width of a text in a terminal: letters of some languages and emoji take two places, accents none."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.category(character) in ("Mn", "Cf") for character in text)


def as_markdown(table: Layout) -> str:
    """The table in the Markdown of GitHub and Pandoc."""
    n = len(table.columns)
    align = [":--" if i < table.n_text else "--:" for i in range(n)]
    rows = [[cell.translate(MARKDOWN) for cell in table.columns], align]
    for block in table.blocks:
        rows += [[f"**{block.title.translate(MARKDOWN)}**", *[""] * (n - 1)]] if block.title else []
        rows += [
            [cell.translate(MARKDOWN) if i < table.n_text else cell for i, cell in enumerate(row)] for row in block.rows
        ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    foot = [f"- {line.translate(MARKDOWN)}" for line in table.foot]
    return "\n".join([table.caption.translate(MARKDOWN), "", *lines, "", *foot])


def as_html(table: Layout) -> str:
    """The table in HTML, with every character escaped that means something there."""
    n = len(table.columns)

    def row(cells: list[str], tag: str) -> str:
        texts = [
            f"<{tag}>{escape(cell)}</{tag}>"
            if i < table.n_text
            else f"<{tag} style='text-align:right'>{escape(minus(cell) if tag == 'td' else cell)}</{tag}>"
            for i, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(texts)}</tr>"

    def across(text: str, tag: str) -> str:
        return f"<tr><{tag} colspan='{n}' style='text-align:left'>{escape(text)}</{tag}></tr>"

    bodies = []
    for block in table.blocks:
        title = across(block.title, "th") if block.title else ""
        bodies.append(f"<tbody>{title}{''.join(row(cells, 'td') for cells in block.rows)}</tbody>")
    foot = "".join(across(line, "td") for line in table.foot)
    head = f"<caption>{escape(table.caption)}</caption><thead>{row(table.columns, 'th')}</thead>"
    return f"<table>{head}{''.join(bodies)}<tfoot>{foot}</tfoot></table>"


def minus(number: str) -> str:
    """A number with a minus sign in place of the hyphen."""
    return number.replace("-", "\u2212")


def as_latex(table: Layout) -> str:
    """The table in LaTeX, with the rules of booktabs."""
    n = len(table.columns)
    widths = "l" + r"p{0.3\linewidth}" * (table.n_text - 1) + "r" * (n - table.n_text)

    def row(cells: list[str], body: bool = True) -> str:
        texts = [
            latex_number(cell) if body and i >= table.n_text else cell.translate(LATEX) for i, cell in enumerate(cells)
        ]
        return " & ".join(texts) + r" \\"

    def across(text: str, style: str = "") -> str:
        return rf"\multicolumn{{{n}}}{{l}}{{{style}{text.translate(LATEX)}}} \\"

    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}",
        r"\begin{table}", r"\centering", rf"\caption{{{table.caption.translate(LATEX)}}}",
        rf"\begin{{tabular}}{{{widths}}}",
        r"\toprule", row(table.columns, body=False),
    ]  # fmt: skip
    for block in table.blocks:
        lines += [r"\midrule", *([across(block.title, r"\itshape ")] if block.title else []), *map(row, block.rows)]
    lines += [r"\midrule", *(across(line, r"\footnotesize ") for line in table.foot), r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", r"\end{table}", ""])


def latex_number(cell: str) -> str:
    """A cell of numbers in LaTeX: minus signs and powers of ten are formulas."""

    def formula(match: re.Match[str]) -> str:
        digits, _, power = match[0].partition("e")
        scaled = rf"{digits}\times 10^{{{int(power)}}}" if power else digits
        return f"${scaled}$" if power or digits.startswith("-") else digits

    return NUMBER.sub(formula, cell).replace(">", "$>$")
