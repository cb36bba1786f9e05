"""The pictures of "Ten minutes" and of the landing page: `python docs/pictures.py` runs the page and saves them.

The code is that of the page. The last two pictures are the top of the report that it writes, and of the one that
`supertopic demo` writes; they need Chromium.
"""

import re
import subprocess
import sys
import tempfile
import warnings
from os import chdir
from pathlib import Path
from typing import Any

import matplotlib

from supertopic import CoefficientDisplay, ConfusionDisplay, ExplanationDisplay, TopicDisplay, TraceDisplay

DOCS = Path(__file__).parent
TO = DOCS / "ten-minutes"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page() -> dict[str, Any]:
    """The names that the page's code makes."""
    space: dict[str, Any] = {}
    for code in BLOCK.findall((DOCS / "ten-minutes.md").read_text(encoding="utf-8")):
        exec(code, space)
    return space


def save(display: Any, name: str) -> None:
    display.figure_.savefig(TO / f"{name}.png", dpi=200)


def draw(model: Any, texts: Any, y: Any) -> None:
    """A picture for each step."""
    largest = int(model.topic_frame().topic[0])
    save(TraceDisplay.from_estimator(model), "chains")
    save(ConfusionDisplay.from_estimator(model, texts, y, figsize="page"), "confusion")
    save(TopicDisplay.from_estimator(model, topics=[largest], n_words=8), "topic")
    save(CoefficientDisplay.from_estimator(model, column="stats"), "weights")
    text = ["the eigenvalues of a symmetric matrix"]
    save(ExplanationDisplay.from_estimator(model, text, n_words=8), "explanation")


def photograph(page: Path, to: Path, height: int) -> None:
    """The top of a page in Chromium."""
    size, options = f"--window-size=1280,{height}", ["--headless=new", "--no-sandbox", "--hide-scrollbars"]
    subprocess.run(["chromium", *options, size, f"--screenshot={to}", page.as_uri()], check=True, capture_output=True)


def main() -> None:
    matplotlib.use("Agg")
    warnings.simplefilter("ignore")
    TO.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        chdir(folder)
        made = run_page()
        draw(made["model"], made["test"].text, made["test"].package)
        photograph(Path(folder, "docstrings.html"), TO / "page.png", 1300)
        demo = Path(folder, "demo.html")
        chdir(DOCS.parent)  # a relative PYTHONPATH still leads to this checkout
        subprocess.run([sys.executable, "-m", "supertopic", "demo", "--report", str(demo)], check=True)
        photograph(demo, DOCS / "page.png", 1042)


if __name__ == "__main__":
    main()
