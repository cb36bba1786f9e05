"""The documentation: its code runs, its commands parse, its links lead somewhere, and no public name is missing."""

import csv
import doctest
import functools
import inspect
import re
import shlex
import sys
import warnings
from importlib import import_module
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import typer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils import Bunch

import supertopic
import supertopic.baselines
import supertopic.datasets
import supertopic.light
from supertopic.command.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = {"command.md"}  # by conf.py
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.glob("*.md") if path.name not in MADE)]
OTHERS = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")]
FENCE = re.compile(
    r"(?P<mark><!-- not run: [^\n]*-->\n+)?^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
WHOLE = ("guide.md", "how-to.md", "index.md", "ten-minutes.md")  # pages that make all names of their examples
QUICK = {"burn_in": 6, "n_draws": 6, "n_chains": 2, "predict_sweeps": 10, "n_topics": 4}
SUBJECTS = {
    "stats": "mean variance sample distribution test median quantile",
    "linalg": "matrix eigenvalue vector solve determinant inverse",
    "signal": "filter frequency window spectrum phase impulse",
}


def name(path):
    return str(path.relative_to(ROOT))


def blocks(path, *kinds):
    """The fenced blocks of some kinds, with their lines; those that the page marks are left out."""
    text = path.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match["kind"].strip() in kinds and not match["mark"]:
            yield text[: match.start("body")].count("\n") + 1, match["body"]


def make_texts(n, seed):
    """Texts of three subjects, and which one each is about."""
    rng = np.random.default_rng(seed)
    labels = [list(SUBJECTS)[i % 3] for i in range(n)]
    others = ["function", "value", "array", "returns"]
    texts = [" ".join(rng.choice([*SUBJECTS[label].split(), *others], 20)) for label in labels]
    return texts, labels


@pytest.fixture
def quick(monkeypatch, short_regressions):
    """Estimators that are fast unless a page says otherwise, and a small corpus in place of the embedded one."""
    for kind in (
        "SLDAClassifier",
        "MedLDAClassifier",
        "SLDAOrdinalClassifier",
        "SLDARegressor",
        "SLDACountRegressor",
        "SLDASurvivalRegressor",
        "SLDACrowdClassifier",
        "SLDACrowdRegressor",
        "LDA",
    ):
        init = getattr(supertopic, kind).__init__
        monkeypatch.setattr(
            init, "__kwdefaults__", init.__kwdefaults__ | {k: QUICK[k] for k in QUICK if k != "n_topics"}
        )
        monkeypatch.setattr(init, "__defaults__", (QUICK["n_topics"],))
    texts, labels = make_texts(240, 2)
    names = sorted(SUBJECTS)
    corpus = Bunch(
        data=texts,
        names=[f"f{i}" for i in range(len(texts))],
        target=np.array([names.index(label) for label in labels]),
        target_names=names,
    )
    monkeypatch.setattr(supertopic.datasets, "load_docstrings", lambda *_: corpus)


@pytest.fixture
def space(quick, tmp_path, monkeypatch):
    """The names that pages use without making them, and a folder to work in."""
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    texts, labels = make_texts(120, 0)
    (tmp_path / "data").mkdir()
    for part in range(2):
        with open(tmp_path / "data" / f"{part}.csv", "w", newline="", encoding="utf-8") as file:
            rows = list(zip(texts, labels, strict=True))[part::2]
            csv.writer(file).writerows([("body", "team"), *rows])
    new_texts, new_labels = make_texts(30, 1)
    vectorizer = CountVectorizer()
    X, y = vectorizer.fit_transform(texts), np.array(labels)
    model = supertopic.SLDAClassifier(random_state=0).fit(X, y)
    return {
        "texts": texts, "labels": labels, "new_texts": new_texts, "new_labels": new_labels, "text": new_texts[0],
        "X": X, "y": y, "X_new": vectorizer.transform(new_texts), "y_new": np.array(new_labels),
        "Z": np.random.default_rng(0).normal(size=(len(texts), 2)), "model": model, "vectorizer": vectorizer,
        "words": vectorizer.get_feature_names_out(), "pipeline": make_pipeline(vectorizer, model),
        "embeddings": np.random.default_rng(1).normal(size=(len(texts), 8)),
        "new_embeddings": np.random.default_rng(2).normal(size=(len(new_texts), 8)),
        "supertopic": supertopic, "SLDAClassifier": supertopic.SLDAClassifier,
    }  # fmt: skip


def test_there_is_code_and_some_of_it_is_not_run():
    n_run = sum(1 for path in PAGES for _ in blocks(path, "python"))
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert n_run >= 30 and 2 <= text.count("<!-- not run: ") <= 8


@pytest.mark.parametrize("path", [path for path in PAGES if any(blocks(path, "python"))], ids=name)
def test_the_code_of_a_page_runs(path, space):
    import sklearn

    space = {} if path.name in WHOLE else space
    with warnings.catch_warnings(), sklearn.config_context():
        warnings.simplefilter("ignore")  # chains are short here
        for line, body in blocks(path, "python"):
            code = compile("\n" * line + body, str(path), "exec")  # a traceback has the page's line
            exec(code, space)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def source_files():
    root = Path(supertopic.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(root.parent).with_suffix("").parts)


@pytest.mark.parametrize("module", list(source_files()))
def test_examples_in_docstrings_run(module):
    found = [test for test in doctest.DocTestFinder().find(import_module(module)) if test.examples]
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [runner.run(test) for test in found]
    assert found and not sum(result.failed for result in results)


def commands():
    """Every line of a page that calls the command."""
    for path in PAGES:
        for line, body in blocks(path, "", "console", "bash"):
            for i, text in enumerate(body.replace("\\\n", " ").splitlines()):
                call = text.strip().removeprefix("$ ")
                if call.startswith("supertopic "):
                    yield pytest.param(call, id=f"{path.name}:{line + i}")


@pytest.mark.parametrize("call", list(commands()))
def test_a_command_of_a_page_parses(call):
    _, verb, *arguments = shlex.split(call, comments=True)
    typer.main.get_command(app).commands[verb].make_context(verb, arguments)


def test_a_wrong_option_is_noticed():
    with pytest.raises(Exception, match="No such option"):
        typer.main.get_command(app).commands["topics"].make_context("topics", ["m", "--colour"])


def test_options_in_the_text_exist():
    known = {"--help", "--version"}
    for command in typer.main.get_command(app).commands.values():
        known |= {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
    for path in [
        path for path in PAGES if path.name not in ("releasing.md", "paper.md", "reliability.md", "compared.md")
    ]:
        text = FENCE.sub("", path.read_text(encoding="utf-8"))
        for option in re.findall(r"`(--[a-z][a-z-]*)", text):
            assert option in known, f"{path.name}: {option}"


def public_names():
    """Every public name by the way it is written on the page."""
    datasets = supertopic.datasets
    own = [n for n, thing in vars(datasets).items() if getattr(thing, "__module__", "") == datasets.__name__]
    names = {n: getattr(supertopic, n) for n in supertopic.__all__}
    names |= {f"baselines.{n}": getattr(supertopic.baselines, n) for n in supertopic.baselines.__all__}
    return names | {f"datasets.{n}": getattr(datasets, n) for n in own if not n.startswith("_")}


def reference():
    """What the reference lists, by the way it is written there."""
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    return {listing: functools.reduce(getattr, listing.split("."), supertopic) for listing in listed}


def test_every_public_name_is_in_the_reference():
    assert set(public_names()) <= set(reference())


def test_every_parameter_is_described(monkeypatch):
    """In the docstring, or in the list of those that the site adds."""
    monkeypatch.syspath_prepend(str(DOCS))
    parameters = import_module("parameters")
    public = list(public_names().values())
    for thing in [*public, *reference().values()]:
        kinds = inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else []
        methods = [f for n, f in kinds if n[0] != "_" and (getattr(f, "__module__", "") or "").startswith("supertopic")]
        for function in [thing, *methods]:
            if not callable(function) or parameters.internal(function):
                continue
            if not inspect.getdoc(function) and thing not in public:  # the site leaves it out
                continue
            assert inspect.getdoc(function), function
            doc: list[str] = []
            what = "class" if inspect.isclass(function) else "function"
            parameters.complete(function, what, doc)  # a KeyError names what is missing
            if inspect.isclass(function) and thing not in public:  # a record, whose fields the site lists
                continue
            text = (inspect.getdoc(function) or "") + "\n".join(doc)
            for wanted in set(inspect.signature(function).parameters) - {"self", "cls"}:
                assert re.search(rf"\b{wanted}\b", text), f"{function.__qualname__}: {wanted}"


def anchors(path):
    """The parts of a page that a link can name, as code hosts make them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("path", [*PAGES, *OTHERS], ids=name)
def test_links_lead_somewhere(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        place, _, part = target.partition("#")
        found = (path.parent / place).resolve() if place else path
        if place in MADE:
            continue
        assert found.exists(), f"{path.name}: {target}"
        if part:
            assert part in set(anchors(found)), f"{path.name}: {target}"


def test_every_page_has_a_place_on_the_site():
    places = (DOCS / "conf.py").read_text(encoding="utf-8") + (DOCS / "index.md").read_text(encoding="utf-8")
    for path in DOCS.glob("*.md"):
        assert path.name == "index.md" or re.search(rf'(^|"){path.stem}("|$)', places, re.MULTILINE), path.name
