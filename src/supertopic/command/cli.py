"""The command `supertopic`: its subcommands, which are short or have files of their own."""

import json
import sys
import time
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table as Rows
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import supertopic
from supertopic.command import options as opt
from supertopic.command.card import card
from supertopic.command.cells import numbers_if_all
from supertopic.command.check import check
from supertopic.command.choose import choose
from supertopic.command.console import drop_output, open_streams, write_csv
from supertopic.command.diagnose import diagnose
from supertopic.command.drift import drift
from supertopic.command.explain import explain
from supertopic.command.fit import fit
from supertopic.command.history import history
from supertopic.command.kinds import Asked
from supertopic.command.labels import check_labels, next_to_label
from supertopic.command.models import need_response, read_beside
from supertopic.command.name import name as name_topics
from supertopic.command.predict import predict
from supertopic.command.revise import ban, merge
from supertopic.command.rows import known_y, surprising, typical, unsure
from supertopic.command.serve import serve
from supertopic.command.show import show_model, topic_table
from supertopic.command.steps import Table, check_outputs, err, load, out, row_names, use_utf8, write_page
from supertopic.command.update import update
from supertopic.datasets import load_docstrings
from supertopic.estimators.classifiers import SLDAClassifier
from supertopic.estimators.lda import LDA
from supertopic.report.summary import describe_topics, describe_weights

app = typer.Typer(
    help="Supervised topic models: topics that explain and predict classes, labels, grades, ratings, counts or times.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"supertopic {supertopic.__version__}", highlight=False)
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", help="Show the version.", callback=show_version, is_eager=True)]


@app.callback()
def start(version: Version = False) -> None:
    """Supervised topic models: topics that explain and predict classes, labels, grades, ratings, counts or times."""


def demo(
    n_topics: opt.NTopics = 30, seed: opt.Seed = 0, jobs: opt.Jobs = -1, report: opt.Report = None,
    as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Fit the docstrings of SciPy and show what the model finds.

    Needs no data and no network: the documents are the docstrings of the installed SciPy, the class of each is its
    subpackage. A quarter is for the test, and two other models are fitted for comparison.
    """
    corpus = load_docstrings()
    labels = np.array(corpus.target_names)[corpus.target]
    train, test, y, y_test = train_test_split(corpus.data, labels, test_size=0.25, random_state=0, stratify=labels)
    if not as_json:
        out.print(f"{len(labels):,} docstrings of SciPy, {len(set(labels))} classes; {len(test)} for the test.")
    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": err.is_terminal and not as_json}
    words = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", min_df=2)
    ours = SLDAClassifier(n_topics, n_chains=2, vectorizer=words, **options)
    lda, both = LDA(n_topics, vectorizer=words, **options), TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    models = {
        f"supertopic, {n_topics} topics and words": ours,
        f"LDA, {n_topics} topics, then a linear SVM": make_pipeline(lda, LinearSVC()),
        "linear SVM on words and pairs (no topics)": make_pipeline(both, LinearSVC()),
    }
    results = []
    for name, model in models.items():
        began = time.perf_counter()
        accuracy = model.fit(train, y).score(test, y_test)
        results.append({"model": name, "accuracy": accuracy, "seconds": time.perf_counter() - began})
    topics = describe_topics(ours.posterior_, ours.vocabulary_)
    if report:
        title = "Which subpackage of SciPy does a docstring belong to?"
        rival = {"name": "Linear SVM on words and pairs", "accuracy": results[-1]["accuracy"]}
        write_page(ours, test, y_test, report, {}, title=title, test=True, rival=rival, name="subpackage")
    if as_json:
        print(json.dumps({"results": results, "topics": topics}))
        return
    table = Rows("model", "test accuracy", "seconds", title="Which subpackage does a docstring belong to?")
    for row in results:
        table.add_row(row["model"], f"{row['accuracy']:.3f}", f"{row['seconds']:.1f}")
    out.print(table, topic_table(topics, 15))
    out.print("Next: [bold]supertopic fit DATA --text COL --label COL -o MODEL[/bold]")


def report(
    model: opt.Model, data: opt.Data, text: opt.Text, output: opt.PageFile, label: opt.KnownLabel = None,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";", test: opt.Test = False,
    covariate: opt.KnownCovariate = None, exposure: opt.Exposure = None, groups: opt.Groups = None,
    by: opt.ReportBy = None, other: opt.OtherModel = None, id: opt.Id = None, title: opt.Title = "",
) -> None:  # fmt: skip
    """Write an HTML page about a model: its topics and their effects, how good its predictions are, and why."""
    check_outputs([output], [data, model, other])
    estimator = need_response(load(model))
    table, y = Table(data), None
    beside = read_beside(estimator, model, table, exposure, covariate, None, groups)
    if label:
        y = known_y(estimator, table, Asked(label, separator, event=event, gold=gold))
    title = title or f"{model.stem}: {data.stem}"
    cells = {column: numbers_if_all(table[column]) for column in by or []}
    facts = {
        "title": title,
        "test": test or None,
        "name": label or "",
        "by": cells or None,
        "other": other and need_response(load(other)),
        "rows": row_names(table, id),
    }
    write_page(estimator, table.texts(text), y, output, beside, **facts)


def topics(
    model: opt.Model, n: opt.TopWords = 10, by: opt.By = opt.Order.frex, min_chains: opt.MinChains = 1,
    as_csv: opt.AsCsv = False, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show the topics of a model: their words, how many chains have each, and the class that it makes more likely."""
    estimator = load(model)
    posterior, names = estimator.posterior_, estimator.vocabulary_
    if as_csv:
        rows = describe_weights(posterior, names, n, str(by))
        write_csv(sys.stdout, [list(rows[0]), *(row.values() for row in rows)])
        return
    found = describe_topics(posterior, names, n, str(by), min_chains)
    if as_json:
        print(json.dumps(found))
    else:
        show_model(posterior, found, names)


VERBS = (
    demo, check, fit, update, choose, predict, explain, report, topics, surprising, unsure, typical, name_topics, merge,
    ban, diagnose, history, card, drift, next_to_label, check_labels, serve,
)  # fmt: skip

for verb in VERBS:
    app.command()(verb)


def main() -> None:
    """Run the command. Bad input ends in one line on stderr and exit code 1, bad usage in 2, Ctrl-C in 130."""
    open_streams()
    use_utf8()
    try:
        try:
            app(windows_expand_args=False)  # patterns are expanded here, not by Click
        finally:
            sys.stdout.flush()  # a full disk is noticed now
    except BrokenPipeError:
        drop_output()
        sys.exit(1)
    except (ValueError, TypeError, OSError, MemoryError, ImportError, RuntimeError) as error:
        err.print("[bold red]Error:[/bold red]", escape(str(error)), highlight=False, soft_wrap=True)
        sys.exit(1)
