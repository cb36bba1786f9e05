"""The cheat sheet as one page of PDF, and `llms.txt` for coding assistants; both are made from the Markdown pages."""

import re
from collections.abc import Iterator
from pathlib import Path

from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure

DOCS = Path(__file__).parent
SECTION = re.compile(r"^## ([^\n]+)\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CARD = re.compile(r"^:::\{grid-item-card\} (.+)\n:link: (.+)\n:link-type: doc\n(.+)\n:::$", re.MULTILINE)
WIDE, HIGH = 842.0, 595.0  # points: A4, landscape
MARGIN, GAP, COLUMNS = 24.0, 16.0, 3
SIZE, LEADING = 7.0, 11.0
LETTER = 0.602 * SIZE  # the width of a letter of DejaVu Sans Mono
TOP = HIGH - 58.0  # the first line, below the title
LETTERS = int(((WIDE - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS) / LETTER)


def sections() -> Iterator[tuple[str, list[str]]]:
    """The headings of the page with the lines of their code or table."""
    for heading, body in SECTION.findall((DOCS / "cheat-sheet.md").read_text(encoding="utf-8")):
        if body.startswith("|"):
            rows = [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in body.strip().splitlines()]
            width = max(len(row[0]) for row in rows)
            yield heading, [f"{row[0]:<{width}}  # {row[1]}" for row in rows[2:]]
        else:
            yield heading, body.strip().splitlines()[1:-1]


def laid_out() -> Iterator[tuple[float, float, str, bool]]:
    """The place of every line, its text, and whether it is a heading; an error if the page is full."""
    column, y = 0, TOP
    for heading, lines in sections():
        if y - (len(lines) + 1.6) * LEADING < MARGIN:
            column, y = column + 1, TOP
        if column == COLUMNS:
            raise ValueError(f"The cheat sheet does not fit on one page: {heading!r} and what follows is too much.")
        x = MARGIN + column * ((WIDE - 2 * MARGIN + GAP) / COLUMNS)
        yield x, y, heading, True
        y -= 1.25 * LEADING
        for line in lines:
            if len(line) > LETTERS:
                raise ValueError(f"A line of the cheat sheet has more than {LETTERS} letters: {line!r}.")
            yield x, y, line, False
            y -= LEADING
        y -= 0.75 * LEADING


def write_pdf(path: Path, version: str) -> None:
    """Write the sheet."""
    figure = Figure(figsize=(WIDE / 72, HIGH / 72))
    FigureCanvasPdf(figure)

    def put(x: float, y: float, text: str, **style: object) -> None:
        figure.text(x / WIDE, y / HIGH, text, va="baseline", parse_math=False, **style)

    put(MARGIN, HIGH - 32, f"supertopic {version}", size=15, weight="bold", color="#16202c")
    put(MARGIN + 150, HIGH - 32, "supervised topic models for Python: topics that explain a response", size=8.5)
    for x, y, text, is_heading in laid_out():
        if is_heading:
            put(x, y, text, size=9, weight="bold", color="#1762a8")
            continue
        code, mark, comment = text.partition("  # ")
        put(x, y, code, size=SIZE, family="DejaVu Sans Mono", color="#16202c")
        if mark:
            put(x + (len(code) + 2) * LETTER, y, comment, size=SIZE, family="DejaVu Sans Mono", color="#6b4a2b")
    figure.savefig(path, format="pdf", metadata={"Title": "supertopic: cheat sheet", "CreationDate": None})


def llms_text() -> str:
    """What the library is, its pages, and the cheat sheet."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    sheet = (DOCS / "cheat-sheet.md").read_text(encoding="utf-8")
    about = " ".join(re.search(r"^\*\*Supervised topic models.*?(?=\n\n)", index, re.MULTILINE | re.DOTALL)[0].split())
    pages = "".join(f"- [{title}]({link}.html): {text}\n" for title, link, text in CARD.findall(index))
    body = sheet[sheet.index("\n## ") :].replace("\n## ", "\n### ")
    return f"# supertopic\n\n> {about.replace('**', '')}\n\n## Pages\n\n{pages}\n## Calls\n{body}"
