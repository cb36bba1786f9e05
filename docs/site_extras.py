"""What the site has beside its pages: source links, tables of methods, a live report, the cheat sheet as PDF."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from importlib import import_module
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import cheat_sheet
import parameters
from sphinx.application import Sphinx

import supertopic

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "supertopic"
FIRST = (
    "fit", "partial_fit", "fit_files", "predict", "predict_proba", "predict_interval", "transform", "score", "evaluate",
)  # fmt: skip


def find(module: str, path: str) -> Any:
    """The class or function of a dotted path; None if there is none."""
    thing: Any = import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part, None)
    thing = inspect.unwrap(getattr(thing, "__func__", thing))  # of a class method
    return thing if inspect.isclass(thing) or inspect.isfunction(thing) else None


def source_of(domain: str, info: dict[str, str]) -> str | None:
    """Where the source of an object is on the site, as seen from its page in the reference."""
    thing = find(info["module"], info["fullname"])
    if thing is None:
        return None
    path, line = Path(inspect.getsourcefile(thing) or ""), inspect.getsourcelines(thing)[1]
    if not path.is_relative_to(Path(supertopic.__file__).parent):
        return None
    name = path.relative_to(Path(supertopic.__file__).parent).as_posix()
    return f"../source/src/supertopic/{name}.html#line-{line}"


def own_methods(name: str) -> list[str]:
    """The public methods of a class that the library describes: what everybody needs first, then by name."""
    module, _, attribute = name.rpartition(".")
    kind: Any = getattr(import_module(module), attribute)
    found = []
    for method in (name for name in dir(kind) if name[0] != "_"):
        function = find(module, f"{attribute}.{method}")
        ours = (getattr(function, "__module__", None) or "").startswith("supertopic")
        if inspect.isfunction(function) and ours and inspect.getdoc(function) and not parameters.internal(function):
            found.append(method)
    return sorted(found, key=lambda method: (FIRST.index(method) if method in FIRST else len(FIRST), method))


def package_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for every file of the package, with a name for each line, and one that lists them."""
    files = sorted(PACKAGE.rglob("*.py"))
    names = [path.relative_to(ROOT).as_posix() for path in files]
    rows = "".join(f'<li><a href="{name.removeprefix("src/")}.html">{escape(name)}</a></li>' for name in names)
    rooms = '<a href="../../repository/CONTRIBUTING.html">Contributing</a> says what each folder is for.'
    body = f"<h1>Source</h1><p>{rooms}</p><ul>{rows}</ul>"
    yield "source/src/supertopic", {"title": "Source", "body": body}, "page.html"
    for path, name in zip(files, names, strict=True):
        text = path.read_text(encoding="utf-8")
        code = app.builder.highlighter.highlight_block(text, "python", linenos=False, lineanchors="line")
        yield f"source/{name}", {"title": name, "body": f"<h1>{escape(name)}</h1>{code}"}, "page.html"


def addresses() -> list[dict[str, str]]:
    """Links in the header to the addresses in pyproject.toml, such as those of the repository and the issues."""
    urls = [line.split(", ", 1) for line in metadata("supertopic").get_all("Project-URL") or []]
    return [{"name": name, "url": url, "icon": "fa-solid fa-link"} for name, url in urls]


def write_files(app: Sphinx, exception: Exception | None) -> None:
    """The report that the landing page opens, the cheat sheet and `llms.txt`, beside the pages."""
    if exception or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    cheat_sheet.write_pdf(folder / "cheat-sheet.pdf", supertopic.__version__)
    (folder / "llms.txt").write_text(cheat_sheet.llms_text(), encoding="utf-8")
    command = [sys.executable, "-m", "supertopic", "demo", "--report", str(folder / "demo.html")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def setup(app: Sphinx) -> None:
    app.connect("html-collect-pages", package_pages)
    app.connect("build-finished", write_files)
