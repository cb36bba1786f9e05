"""Tables of the documentation from files of results: `python -m benchmarks docs` writes them, a test compares them.

A page has `<!-- results: NAME -->` before a table that a function here makes. Rounding and the names of rows are said
here; the numbers are in the files alone.
"""

import json
import re
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.mutants import MUTANTS, Mutant

EXAMPLES = 3  # deliberate errors that a row names
ROOT = Path(__file__).parents[1]
BENCHMARKS, FIGURES = ROOT / "benchmarks", ROOT / "docs" / "paper"
PAGES = (
    "docs/accuracy.md", "docs/compared.md", "docs/reliability.md", "docs/responses.md", "docs/paper.md",
    "benchmarks/README.md",
)  # fmt: skip
MARK = re.compile(r"^<!-- results: (?P<name>[a-z0-9-]+) -->\n\n(?P<table>(?:\|[^\n]*\n)+)", re.MULTILINE)
TABLES: dict[str, Callable[[], str]] = {}
Cells = Iterable[Any]


def table(name: str) -> Callable[[Callable[[], list[list[str]]]], Callable[[], list[list[str]]]]:
    """Register a function that returns the rows of a table, its heads first."""

    def register(make: Callable[[], list[list[str]]]) -> Callable[[], list[list[str]]]:
        TABLES[name] = lambda: markdown(make())
        return make

    return register


def markdown(rows: list[list[str]]) -> str:
    heads, *rest = rows
    lines = [f"| {' | '.join(line)} |\n" for line in (heads, ["---"] * len(heads), *rest)]
    return "".join("| " + line[3:] if line.startswith("|  ") else line for line in lines)


def runs(name: str) -> list[dict[str, Any]]:
    return json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))


def rows_of_runs(name: str, **where: Any) -> pd.DataFrame:
    """The rows of all runs of a file, of which some columns have these values."""
    found = runs(name)
    rows = found["rows"] if isinstance(found, dict) else [row for run in found for row in run.get("rows", [])]
    return chosen(pd.DataFrame(rows), **where)


def chosen(frame: pd.DataFrame, **where: Any) -> pd.DataFrame:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame), f"there are no results with {where}"
    return frame


def fixed(value: float, digits: int) -> str:
    """A number with this many digits; a half is rounded up, as readers expect, whatever its bits are."""
    return f"{Decimal(repr(round(float(value), 9))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def mean_sd(values: Cells, digits: int = 3, ddof: int = 1) -> str:
    """The mean, and the standard deviation if there is more than one number."""
    known = np.array([value for value in values if value is not None and not np.isnan(value)])
    if not len(known):
        return ""
    sd = f" ({fixed(known.std(ddof=ddof), digits)})" if len(known) > 1 else ""
    return f"{fixed(known.mean(), digits)}{sd}"


# Accuracy


@table("raw-texts")
def raw_texts() -> list[list[str]]:
    names = {
        "docstrings": "SciPy docstrings, 12 classes (1,344 + 337)",
        "films": "film ratings above the median (4,004 + 1,002)",
        "Reuters": "Reuters, 8 classes (5,869 + 2,332)",
        "20 Newsgroups": "20 Newsgroups with headers, 20 classes (11,314 + 7,532)",
    }
    rows = [["accuracy / log-loss", "supertopic", "logistic regression", "linear SVM"]]
    for corpus, name in names.items():
        cells = []
        for system in rows[0][1:]:
            own = rows_of_runs("texts", table="accuracy", corpus=corpus, system=system)
            both = [own[column] for column in ("accuracy", "log-loss") if own[column].notna().any()]
            cells.append(" / ".join(map(mean_sd, both)))
        rows.append([name, *cells])
    return rows


def word_counts(name: str, title: str, renamed: dict[str, str] | None = None) -> list[list[str]]:
    """The newest run of `benchmarks.accuracy` of this name."""
    found = [run["table"] for run in runs("accuracy") if run.get("name") == name][-1]
    measures = list(dict.fromkeys(key for own in found.values() for row in own for key in row))
    rows = [[title, *measures]]
    for system, own in found.items():
        cells = [mean_sd([row[key] for row in own if row.get(key) is not None]) or "-" for key in measures]
        rows.append([(renamed or {}).get(system, system), *cells])
    return rows


@table("two-groups")
def two_groups() -> list[list[str]]:
    return word_counts("binary", "20 Newsgroups, two groups (the paper's binary task)")


@table("twenty-groups")
def twenty_groups() -> list[list[str]]:
    renamed = {"LDA + linear SVM": "LDA + linear SVM (20 topics)"}
    return word_counts("twenty", "20 Newsgroups, twenty groups", renamed)


@table("imdb")
def imdb_reviews() -> list[list[str]]:
    return word_counts("reviews", "IMDb, 25,000 reviews to learn from and 25,000 to test on")


@table("effects")
def effects() -> list[list[str]]:
    names = {
        "classes": "two classes, 1:1", "classes 1:10": "two classes, 1:10", "ratings": "ratings", "counts": "counts",
    }  # fmt: skip
    kinds = rows_of_runs("effects", part="coverage")
    columns = ["none", "small", "large", "covariates", "width"]
    rows = [["40 corpora each", "no effect", "small", "large", "covariates", "width"]]
    for kind, own in zip(kinds["kind"], kinds.to_dict("records"), strict=True):
        rows.append([names[kind], *(fixed(own[column], 2) for column in columns)])
    return rows


@table("published")
def published() -> list[list[str]]:
    heads = ["corpus", "system", "accuracy", "log-loss", "area under the ROC curve"]
    names = {"newsgroups": "20 Newsgroups, 2,000 words", "films": "film ratings above 0.5"}
    rows = pd.DataFrame(runs("published")[-1]["rows"])
    body = []
    for (corpus, system), own in rows.groupby(["corpus", "system"], sort=False):
        auc = own["auc"].mean()
        body.append([names[corpus], system, fixed(own["accuracy"].mean(), 3), fixed(own["log-loss"].mean(), 3),
                     "-" if np.isnan(auc) else fixed(auc, 3)])  # fmt: skip
    return [heads, *body]


@table("sets")
def sets() -> list[list[str]]:
    frame, systems = rows_of_runs("sets"), ("supertopic", "MAPIE, lac", "MAPIE, aps")
    rows = [["corpus", "level", *systems]]
    names = {
        "films": "film ratings above the median",
        "Reuters": "Reuters, 8 classes",
        "docstrings": "SciPy docstrings",
    }
    for corpus, name in names.items():
        for level in (0.8, 0.9, 0.95):
            own = chosen(frame, corpus=corpus, level=level)
            rows.append([name, f"{level:g}", *(covered(own[own["system"] == each], "size") for each in systems)])
    return rows


@table("intervals")
def intervals() -> list[list[str]]:
    frame, systems = rows_of_runs("sets"), {"supertopic": "intervals", "supertopic, conformal": "conformal"}
    rows = [["corpus", "level", *systems.values()]]
    for corpus in ("film ratings", "citations"):
        for level in (0.8, 0.9, 0.95):
            own = chosen(frame, corpus=corpus, level=level)
            rows.append([corpus, f"{level:g}", *(covered(own[own["system"] == each], "width") for each in systems)])
    return rows


def covered(own: pd.DataFrame, size: str) -> str:
    """The mean coverage and its standard deviation over the seeds, and the mean size or width."""
    return f"{mean_sd(own['coverage'])}, {fixed(own[size].mean(), 2)}" if len(own) else "-"


@table("next-to-label")
def next_to_label() -> list[list[str]]:
    frame = rows_of_runs("labels")
    frame = frame[(frame["labels"] == 500) & frame["seed"].isin([0, 1])]
    ways = ["next_to_label", "margin", "random"]
    rows = [["corpus, seeds", *ways]]
    for corpus in ("20 Newsgroups", "IMDb", "Reuters"):
        own = [chosen(frame, corpus=corpus, how=way).sort_values("seed")["accuracy"] for way in ways]
        rows.append([f"{corpus}, 0 and 1", *(", ".join(fixed(value, 3) for value in values) for values in own)])
    return rows


@table("wrong-labels")
def wrong_labels() -> list[list[str]]:
    rows = [["corpus, share, seed", "flipped", "estimate (90 % interval)", "precision", "cleanlab"]]
    frame = rows_of_runs("labels")
    for own in frame[frame["flipped"].notna()].to_dict("records"):
        found, seed = own["precision"], int(own["seed"])
        rows.append([
            f"{own['corpus']}, {own['share']:.0%}, {seed}", fixed(own['flipped'], 0),
            f"{fixed(own['wrong'], 0)} ({fixed(own['lower'], 0)} to {fixed(own['upper'], 0)})",
            fixed(found['supertopic'], 3), fixed(found['cleanlab, self_confidence'], 3),
        ])  # fmt: skip
    return rows


# Responses


@table("reuters-labels")
def reuters_labels() -> list[list[str]]:
    return word_counts("reuters", "Reuters-21578, 90 labels")


@table("ratings")
def ratings() -> list[list[str]]:
    return word_counts("ratings", "movie reviews")


@table("citations")
def citations() -> list[list[str]]:
    return word_counts("citations", "Cora citations")


@table("few-labels")
def few_labels() -> list[list[str]]:
    return word_counts("few_labels", "20 Newsgroups with 10 % of the labels")


@table("ordinal")
def ordinal() -> list[list[str]]:
    names = {
        "SLDAOrdinalClassifier": "SLDAOrdinalClassifier()", "SLDAClassifier": "SLDAClassifier()",
        "SLDARegressor, cut": "SLDARegressor(), cut between the classes",
        "logistic regression": "logistic regression on tf-idf", "mord, LogisticAT": "mord, LogisticAT on tf-idf",
    }  # fmt: skip
    rows = [["film reviews, four classes", "log-loss", "RPS", "absolute error", "quadratic kappa"]]
    frame = rows_of_runs("ordinal")
    for system in frame["system"].unique():
        own = chosen(frame, system=system)
        cells = [mean_sd(own[name], digits) for name, digits in (("log_loss", 3), ("rps", 4), ("mae", 3), ("kappa", 3))]
        rows.append([names[system], *cells])
    return rows


@table("survival")
def survival() -> list[list[str]]:
    names = {
        "ours, shared": "SLDASurvivalRegressor()", "ours, by period": 'effects="by_period"',
        "Cox, LDA": "Cox on topic shares of LDA", "Cox, SVD": "Cox on 20 columns of an SVD of tf-idf",
        "true": "the true hazards",
    }  # fmt: skip
    corpora = {
        "generated, 50 %": "generated, 50 % censored", "generated, 80 %": "generated, 80 % censored",
        "films, 50 %": "film reviews, 50 % censored",
    }  # fmt: skip
    rows = [["Uno's concordance, integrated Brier score", *corpora.values()]]
    for system, name in names.items():
        cells = []
        for corpus in corpora:
            own = rows_of_runs("survival", corpus=corpus, system=system)
            cells.append(f"{fixed(own['uno'].mean(), 3)}, {fixed(own['ibs'].mean(), 3)}")
        rows.append([name, *cells])
    return rows


@table("raters")
def raters() -> list[list[str]]:
    names = {
        "raters": "SLDACrowdClassifier()", "Dawid-Skene": "Dawid and Skene, then SLDAClassifier()",
        "majority": "the most frequent answer, then SLDAClassifier()",
    }  # fmt: skip
    frame = rows_of_runs("crowd", table="groups")
    rows = [["20 Newsgroups", "labels a document", "training labels right", "accuracy", "log-loss"]]
    for n in (2, 5):
        for system, name in names.items():
            own = frame[(frame["labels a document"] == n) & (frame["system"] == system)]
            rows.append([name, str(n), *(mean_sd(own[what]) for what in ("labels", "accuracy", "log_loss"))])
    own = chosen(frame, system="true")
    rows.append(
        ["SLDAClassifier() with the true classes", "-", "1", mean_sd(own["accuracy"]), mean_sd(own["log_loss"])]
    )
    return rows


@table("rating-raters")
def rating_raters() -> list[list[str]]:
    names = {
        "raters": "SLDACrowdRegressor()", "raters, 100 gold ratings": "the same with 100 gold ratings",
        "mean": "SLDARegressor() on the mean of the ratings", "true": "SLDARegressor() on the true ratings",
    }  # fmt: skip
    rows = [["film reviews of several raters", "R2", "inside the 90 % interval"]]
    for system, name in names.items():
        own = rows_of_runs("crowd", table="movies", system=system)
        rows.append([name, mean_sd(own["r2"]), mean_sd(own["inside"])])
    return rows


# Speed


@table("tomotopy")
def tomotopy() -> list[list[str]]:
    rows = [["work", "supertopic", "tomotopy", "ratio"]]
    for own in runs("results")[-1]["rows"] + runs("many_topics")[-1]["rows"]:
        if "tomotopy" in own:
            digits, unit = (0, "ns") if own["unit"] == "ns" else (1, "s")
            both = [f"{fixed(own[name], digits)} {unit}" for name in ("supertopic", "tomotopy")]
            rows.append([own["work"], *both, f"{fixed(own['ratio'], 1)}x"])
    return rows


@table("words-time")
def words_time() -> list[list[str]]:
    names = {
        "docstrings": "SciPy docstrings", "films": "film ratings above the median", "Reuters": "Reuters, 8 classes",
        "20 Newsgroups": "20 Newsgroups with headers",
    }  # fmt: skip
    rows = [["the part of a fit that learns words", "supertopic", "grid search, 5 values of C, 5 folds", "ratio"]]
    for corpus, name in names.items():
        own = rows_of_runs("texts", table="time", corpus=corpus)[["ours", "theirs", "ratio"]].median()
        rows.append([name, f"{fixed(own['ours'], 1)} s", f"{fixed(own['theirs'], 0)} s", fixed(own["ratio"], 2)])
    return rows


@table("server")
def server() -> list[list[str]]:
    found = json.loads((BENCHMARKS / "serve.json").read_text(encoding="utf-8"))
    load, alone = found["load"], found["alone"]["median_ms"]
    rate = sorted((run["rate"] for run in load["requests_a_second"]), reverse=True)
    p99 = sorted(run["p99_ms"] for run in load["at_400"])
    cpu = sorted(run["cpu_ms_of_server"] for run in load["requests_a_second"])
    rows = [["what", "best", "median", "worst"]]
    for name, values, unit in (
        ("requests a second, 32 connections", [fixed(value, 0) for value in rate], ""),
        (
            "p99 at 400 requests a second",
            [fixed(value, 1) if value < 100 else fixed(value, 0) for value in p99],
            " ms",
        ),
        ("processor time of the server for a request", [fixed(value, 2) for value in cpu], " ms"),
        (
            "one document alone, in this process, without a server (see below)",
            [fixed(x, 1) for x in sorted(alone)],
            " ms",
        ),
    ):
        rows.append([name, *(values[place] + unit for place in (0, len(values) // 2, -1))])
    return rows


@table("first-use")
def first_use() -> list[list[str]]:
    runs = json.loads((BENCHMARKS / "first_use.json").read_text(encoding="utf-8"))[-1]
    rows = [["documents", "compiled code", "import", "first fit", "second fit", "first prediction"]]
    for kind in ("texts", "counts"):
        for state, title in (("empty", "none"), ("full", "from the cache")):
            cells = [
                float(np.median([run[step]["cpu"] for run in runs[kind][state]]))
                for step in ("import", "fit", "again", "predict")
            ]
            rows.append([kind, title, *(fixed(cell, 1 if cell >= 1 else 2) + " s" for cell in cells)])
    return rows


# The paper, reproduced


def cells_of(name: str) -> pd.DataFrame:
    return pd.read_csv(FIGURES / f"{name}.csv")


@table("figure-1")
def figure_1() -> list[list[str]]:
    frame, sizes = cells_of("binary"), (5, 10, 15, 20, 25, 30)
    rows = [["system", *("K = 5" if k == 5 else str(k) for k in sizes)]]
    names = {"vSLDA+": "vSLDA+ (c = 25)"}
    for system in ("gSLDA", "gSLDA+", "gMedLDA", "gLDA+SVM", "vSLDA", "vSLDA+", "vMedLDA", "DiscLDA"):
        own = [chosen(frame, system=system, K=k)["accuracy"] for k in sizes]
        rows.append([names.get(system, system), *map(mean_sd, own)])
    return rows


@table("figure-1-seconds")
def figure_1_seconds() -> list[list[str]]:
    frame, sizes = cells_of("binary"), (5, 10, 15, 20, 25, 30)
    rows = [["", *("K = 5" if k == 5 else str(k) for k in sizes)]]
    for system, digits in (("gSLDA+", 2), ("vSLDA", 1), ("vMedLDA", 1)):
        own = [chosen(frame, system=system, K=k)["train_seconds"].mean() for k in sizes]
        rows.append([system, *(fixed(value, digits) for value in own)])
    return rows


@table("figure-2")
def figure_2() -> list[list[str]]:
    frame, sizes = cells_of("multiclass"), (20, 50, 110)
    heads = ["", "accuracy, K = 20", "50", "110", "seconds, K = 20", "50", "110", "starts"]
    rows, order = [heads], frame[["topics", "system", "n_jobs"]].drop_duplicates()
    for topics, system, n_jobs in order.itertuples(index=False):
        own = chosen(frame, topics=topics, system=system, n_jobs=n_jobs)
        only = own["K"].unique().tolist()
        parts = [own[own["K"] == (k if system != "DiscLDA" else only[0])] for k in sizes]
        if len(only) == 1:
            parts[1:] = [own[:0], own[:0]]
        of_two = "workers" if "Ray" in system else "threads"
        name = f"{system}, {topics}" + (f", {n_jobs} {of_two}" if n_jobs > 1 else "")
        name += f", K = {only[0]}" if system == "DiscLDA" else ""
        seconds = [fixed(part["train_seconds"].mean(), 0) if len(part) else "" for part in parts]
        rows.append([name, *(mean_sd(part["accuracy"]) for part in parts), *seconds, str(len(parts[0]))])
    return rows


@table("probabilities")
def probabilities() -> list[list[str]]:
    frame = cells_of("calibration")
    rows = [["K = 20", "accuracy", "log-loss", "ECE"]]
    for version in frame["version"].unique():
        own = chosen(frame, version=version).drop_duplicates("seed")  # a row for each bin
        rows.append([version, *(mean_sd(own[name]) for name in ("accuracy", "log_loss", "ECE"))])
    return rows


@table("mutants")
def mutants() -> list[list[str]]:
    """The list of deliberate errors, by folder: it is the result itself."""
    folders: dict[str, list[Mutant]] = {}
    for mutant in MUTANTS:
        folders.setdefault(mutant.file.rpartition("/")[0] or "supertopic", []).append(mutant)
    rows = [["folder", "errors", "for example"]]
    for name in sorted(folders):
        own = folders[name]
        some = dict.fromkeys(mutant.what for mutant in own[:: max(len(own) // EXAMPLES, 1)])
        rows.append([f"`{name}`", str(len(own)), "; ".join(list(some)[:EXAMPLES])])
    return [*rows, ["all", str(len(MUTANTS)), ""]]


def sentences() -> dict[str, list[str]]:
    """What pages say in their text, whose line breaks do not count."""
    drift, coin = runs("drift")[-1]["rows"], rows_of_runs("prevalence", case="coin").set_index("system")["without_0"]
    served = json.loads((BENCHMARKS / "serve.json").read_text(encoding="utf-8"))
    memory, docs = served["growth"]["memory_mb"], "topic_effects, "
    after = [str(own["noticed_after"]) for own in drift]
    raw = {line[0].partition(",")[0].partition(" (")[0]: line[1:3] for line in raw_texts()[1:]}
    paper, landing = [], []
    for name, what in (
        ("SciPy docstrings", "the docstrings of SciPy"), ("Reuters", "Reuters-21578"),
        ("20 Newsgroups with headers", "20 Newsgroups"), ("film ratings above the median", "film reviews"),
    ):  # fmt: skip
        ours, theirs = ([part.partition(" (")[0] for part in cell.split(" / ")] for cell in raw[name])
        paper.append(f"{ours[0]} and {ours[1]} on {what}")
        paper.append(f"{theirs[0]} and {theirs[1]})")
        if what == "20 Newsgroups":
            landing = [
                f"accuracy is **{ours[0]}** and the log-loss **{ours[1]}**", f"has **{theirs[0]}** and **{theirs[1]}**"
            ]  # fmt: skip
    return {
        "docs/accuracy.md": [
            f"after {', '.join(after[:-1])} and {after[-1]} documents",
            f"{fixed(coin[docs + 'documents of the fit'], 2)} of the intervals excluded 0",
            f"and {fixed(coin[docs + 'other documents'], 2)} on others",
        ],
        "docs/index.md": landing,
        "benchmarks/README.md": [
            f"Over {served['growth']['requests']:,} requests",
            f"from {memory[1]} to {memory[-1]} MB",
            f"Of {served['malformed']['sent']:,} malformed requests",
            f"all of {served['reload']['replaced']['requests']:,} requests were answered",
        ],
        "paper/paper.md": paper,
    }  # fmt: skip


def with_tables(text: str, make: Callable[[str], str] = lambda name: TABLES[name]()) -> str:
    """A page with new versions of its marked tables."""
    return MARK.sub(lambda found: f"<!-- results: {found['name']} -->\n\n{make(found['name'])}", text)


def write_tables() -> list[str]:
    """Make the marked tables of all pages again; the pages that have changed."""
    changed = []
    for name in PAGES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if (made := with_tables(text)) != text:
            path.write_text(made, encoding="utf-8")
            changed.append(name)
    return changed
