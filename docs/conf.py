"""The documentation site: `pip install -e '.[docs]'`, then `sphinx-build -W --keep-going docs docs/_build`.

Pages are Markdown that can be read on a code host as well. Two things are done to them here: pages that belong to a
section are put into the table of contents (SECTIONS), and links that leave this folder get a place on the site. A page
of the repository becomes a page of the site (PAGES), a file of code a page that shows it. `site_extras.py` adds source
links, tables of methods, a live report and the cheat sheet.
"""

import os
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

import command_page  # noqa: E402
import parameters  # noqa: E402
import see_also  # noqa: E402
import site_extras  # noqa: E402

import supertopic  # noqa: E402

project = "supertopic"
author = "The supertopic developers"
copyright = "The supertopic developers"
version = release = supertopic.__version__

SECTIONS = {  # the pages below a page
    "guide": ["responses", "accuracy", "causes", "when-not", "from-stm"],
    "model": ["reliability"],
    "how-to": ["gpu", "cluster"],
    "reference": ["command"],
    "paper": ["baselines"],
    "project": [
        "repository/CONTRIBUTING", "repository/CHANGELOG", "repository/SECURITY", "repository/CODE_OF_CONDUCT",
        "releasing",
        "repository/benchmarks/README", "repository/benchmarks/gpu",
    ],
}  # fmt: skip
PAGES = [
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "benchmarks/README.md",
    "benchmarks/gpu.md",
]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "auto_examples/**/*.ipynb",
    "sg_execution_times.rst",
    "auto_examples/sg_execution_times.rst",
]
templates_path = ["_templates"]
default_role = "code"  # `name` in a docstring
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # two dashes of an option stay two
suppress_warnings = ["config.cache"]  # some settings hold functions

autosummary_generate = True
autosummary_context = {"own_methods": site_extras.own_methods}
linkcode_resolve = site_extras.source_of
autodoc_typehints = "none"  # types are in the docstrings
numpydoc_show_class_members = False

toc_object_entries_show_parents = "hide"
html_math_renderer = "mathml"  # formulas are in the page: no other computer is asked for anything

html_theme = "pydata_sphinx_theme"
html_title = "supertopic"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["page.png"]  # for the landing page
html_logo = html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "logo": {"text": "supertopic"},
    "icon_links": site_extras.addresses(),
}
html_sidebars = {"index": [], "ten-minutes": [], "questions": [], "cheat-sheet": []}

os.environ.setdefault("SUPERTOPIC_DATA", str(ROOT.parent / "shared" / "data"))
REVIEWS = Path(os.environ["SUPERTOPIC_DATA"], "moviereview_scale.jsonl.gz")  # what two tutorials read
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_"
    if REVIEWS.exists()
    else r"/plot_(?!2|8)",  # without the corpus only their code is shown
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("supertopic",),
    "reference_url": {"supertopic": None},
    "image_scrapers": ("matplotlib",),
    "capture_repr": ("_repr_html_", "__repr__"),
}

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def place(target: str, origin: Path) -> tuple[str, str] | None:
    """The path in the repository that a link of a file means, and its #part; None if it leads elsewhere."""
    path, _, part = target.partition("#")
    if not path or "://" in target or target.startswith(("mailto:", "/")):
        return None
    found = (origin.parent / path).resolve()
    return (found.relative_to(ROOT).as_posix(), f"#{part}" if part else "") if found.is_relative_to(ROOT) else None


def relink(text: str, origin: Path, docname: str) -> str:
    """A page's text with links that work on the site."""

    def change(match: re.Match) -> str:
        image, label, target = match.groups()
        found = place(target, origin)
        if found is None:
            return match[0]
        path, part = found
        if image:
            return f"![{label}]({os.path.relpath(ROOT / path, (DOCS / docname).parent)})"
        if path == "examples":
            return f"[{label}](/auto_examples/index.rst)"
        if path in PAGES:
            return f"[{label}](/repository/{path}{part})"
        if path.startswith("docs/") and path.endswith(".md"):
            return f"[{label}](/{path.removeprefix('docs/')}{part})"
        return f'<a href="{"../" * docname.count("/")}source/{path}.html">{label}</a>'

    return LINK.sub(change, text)


def linked_files() -> list[Path]:
    """The files and folders of the repository that pages link to and that are no pages themselves."""
    found: set[str] = set()
    for origin in [*DOCS.glob("*.md"), *(ROOT / page for page in PAGES)]:
        for image, _, target in LINK.findall(origin.read_text(encoding="utf-8")):
            where = place(target, origin)
            if where and not image and not where[0].endswith(".md") and where[0] != "examples":
                found.add(where[0])
    return [ROOT / path for path in sorted(found)]


def copy_pages(app: Sphinx, config: Any) -> None:
    """Pages of the repository become pages of the site."""
    for page in PAGES:
        docname = f"repository/{page.removesuffix('.md')}"
        text = relink((ROOT / page).read_text(encoding="utf-8"), ROOT / page, docname)
        write(DOCS / f"{docname}.md", text)
    write(DOCS / "command.md", command_page.make())


def write(path: Path, text: str) -> None:
    """Write a file, unless it is there already: what did not change is not read again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def change_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links that work on the site, and the pages below a page."""
    if (DOCS / f"{docname}.md").exists() and not docname.startswith("repository/"):
        source[0] = relink(source[0], DOCS / f"{docname}.md", docname)
    if docname in SECTIONS:
        below = "\n".join(f"/{page}" for page in SECTIONS[docname])
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n\n{below}\n```\n"


def show_files(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for every linked file of code, and for a folder one that lists its files, each with a page.

    Those of the package have pages in any case."""
    for path in linked_files():
        if path.is_file() and path.is_relative_to(site_extras.PACKAGE):
            continue
        files = [path] if path.is_file() else sorted(p for p in path.iterdir() if p.suffix in {".py", ".csv", ".svg"})
        if path.is_dir():
            name = path.relative_to(ROOT).as_posix()
            rows = "".join(f'<li><a href="{path.name}/{p.name}.html">{escape(p.name)}</a></li>' for p in files)
            yield f"source/{name}", {"title": name, "body": f"<h1>{escape(name)}</h1><ul>{rows}</ul>"}, "page.html"
        for file in files:
            name = file.relative_to(ROOT).as_posix()
            text, language = file.read_text(encoding="utf-8"), "python" if file.suffix == ".py" else "text"
            body = app.builder.highlighter.highlight_block(text, language, linenos=False)
            yield f"source/{name}", {"title": name, "body": f"<h1>{escape(name)}</h1>{body}"}, "page.html"


HEADER = re.compile(r"^\*{0,2}[\w.]+(, \w+)* :|^-+$")
PLAIN_NAME = re.compile(r"(?<![`\w.])([A-Za-z]\w*_)(?![`\w])((?:\[[^\]\n]*\])?)")


def clean_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Names that end in _ and powers are meant as they are, not as reStructuredText."""
    parameters.complete(obj, what, lines)
    see_also.add_see_also(obj, what, lines)
    in_examples = False
    for i, line in enumerate(lines):
        in_examples = in_examples or line.strip() == "Examples"
        if in_examples or HEADER.match(line):
            continue
        parts = line.split("`")  # what is between backticks stays
        parts[::2] = [PLAIN_NAME.sub(r"``\1\2``", part).replace("*", r"\*").replace("|", r"\|") for part in parts[::2]]
        lines[i] = "`".join(parts)


def skip_foreign(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn gives every estimator are described there; attributes are in the class's own list."""
    if (
        isinstance(obj, property)
        or parameters.internal(obj)
        or not (getattr(obj, "__module__", None) or "").startswith("supertopic")
    ):
        return True
    return None


def show_formula(translator: Any, node: nodes.Element) -> None:
    """A formula as MathML, which browsers know."""
    block = isinstance(node, nodes.math_block)
    # z with a bar is a letter of its own: not every browser draws the bar, and docutils puts its indices below it
    tex = node.astext().replace(r"\bar z", "\\Xi ")
    shown = tex2mathml(tex, as_block=block).replace("Ξ", "z\u0304")
    translator.body.append(f'<div class="math-block">{shown}</div>' if block else shown)
    raise nodes.SkipNode


process_param = SphinxDocString._process_param
# what a class says of an attribute is more than what the property says of itself, which numpydoc would take
SphinxDocString._process_param = lambda self, name, text, _: process_param(self, name, text, False)


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (show_formula, None), (show_formula, None))
    app.connect("config-inited", copy_pages)
    app.connect("source-read", change_source)
    app.connect("html-collect-pages", show_files)
    site_extras.setup(app)
    app.connect("autodoc-process-docstring", clean_docstring, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", skip_foreign)
