"""The command `supertopic`: demo, fit, predict, topics."""

import csv
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

import supertopic
from supertopic.datasets import load_docstrings
from supertopic.estimators import LDA, SLDAClassifier

app = typer.Typer(
    help="Supervised topic models: topics that explain a class and predict it for new documents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out, err = Console(), Console(stderr=True)

Data = Annotated[Path, typer.Argument(help="A table: .csv, .tsv, .jsonl or .parquet.", show_default=False)]
Model = Annotated[Path, typer.Argument(help="A model file that `supertopic fit` wrote.", show_default=False)]
TextColumn = Annotated[str, typer.Option("--text", help="The column with the text.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of a table.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same model.")]
NTopics = Annotated[int, typer.Option("--topics", "-k", help="Number of topics.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 takes all cores. Changes no result.")]


@app.command()
def demo(n_topics: NTopics = 30, seed: Seed = 0, jobs: Jobs = -1, as_json: AsJson = False):
    """Fit the docstrings of SciPy and show what the model finds.

    Needs no data and no network: the documents are the docstrings of the installed SciPy, the class of each is its
    subpackage. A quarter is held out, and two models that people use today are fitted beside ours.
    """
    corpus = load_docstrings()
    labels = np.array(corpus.target_names)[corpus.target]
    train, test, y, y_test = train_test_split(corpus.data, labels, test_size=0.25, random_state=0, stratify=labels)
    if not as_json:
        out.print(f"{len(labels):,} docstrings of SciPy, {len(set(labels))} classes; {len(test)} are held out.")

    def vectorizer():
        return CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", min_df=2)

    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": err.is_terminal and not as_json}
    ours = SLDAClassifier(n_topics, n_chains=2, **options)
    models = {
        f"supertopic, {n_topics} topics": make_pipeline(vectorizer(), ours),
        f"LDA, {n_topics} topics, then a linear SVM": make_pipeline(
            vectorizer(), LDA(n_topics, **options), LinearSVC()
        ),
        "linear SVM on tf-idf (no topics)": make_pipeline(TfidfVectorizer(stop_words="english"), LinearSVC()),
    }
    results = []
    for name, model in models.items():
        began = time.perf_counter()
        accuracy = model.fit(train, y).score(test, y_test)
        results.append({"model": name, "accuracy": accuracy, "seconds": time.perf_counter() - began})
    topics = describe_topics(next(iter(models.values())))
    if as_json:
        print(json.dumps({"results": results, "topics": topics}))
        return
    table = Table("model", "held-out accuracy", "seconds", title="Which subpackage does a docstring belong to?")
    for row in results:
        table.add_row(row["model"], f"{row['accuracy']:.3f}", f"{row['seconds']:.1f}")
    out.print(table, topic_table(topics, 15))
    out.print("Next: [bold]supertopic fit DATA --text COL --label COL -o MODEL[/bold]")


@app.command()
def fit(
    data: Data,
    text: TextColumn,
    label: Annotated[
        str, typer.Option(help="The column with the class; an empty cell is unknown.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.", show_default=False)],
    n_topics: NTopics = 20,
    c: Annotated[float, typer.Option(help="Weight of the class against the words; 1 is plain sLDA.")] = 25.0,
    burn_in: Annotated[int, typer.Option(help="Iterations before draws are kept.")] = 100,
    draws: Annotated[int, typer.Option(help="Draws that are kept.")] = 20,
    chains: Annotated[int, typer.Option(help="Independent chains; predictions average over them.")] = 1,
    stop_words: Annotated[bool, typer.Option(help="Drop English stop words.")] = True,
    min_df: Annotated[int, typer.Option(help="Drop words that are in fewer documents.")] = 2,
    hold_out: Annotated[float, typer.Option(help="Share of the labelled documents to test on.")] = 0.0,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
):
    """Learn topics from a table of texts and classes, and write one model file.

    Example: supertopic fit tickets.csv --text body --label team -o tickets.model
    """
    texts, labels = read(data, [text, label])
    vectorizer = CountVectorizer(stop_words="english" if stop_words else None, min_df=min_df)
    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": err.is_terminal and not as_json}
    model = SLDAClassifier(n_topics, c=c, burn_in=burn_in, n_draws=draws, n_chains=chains, **options)
    pipeline = make_pipeline(vectorizer, model)
    texts, y = [as_text(t) for t in texts], as_classes(labels)
    held: Any = None
    if hold_out:
        known = [i for i, value in enumerate(y) if value is not None]
        _, chosen = train_test_split(known, test_size=hold_out, random_state=0)
        held = [texts[i] for i in chosen], [y[i] for i in chosen]
        kept = sorted(set(range(len(y))) - set(chosen))
        texts, y = [texts[i] for i in kept], y[kept]
    began = time.perf_counter()
    pipeline.fit(texts, y)
    summary = {
        "model": str(output),
        "documents": len(texts),
        "unlabelled": sum(value is None for value in y),
        "words": model.n_features_in_,
        "classes": model.classes_.tolist(),
        "sampler": model.sampler_,
        "seed": model.seed_,
        "seconds": round(time.perf_counter() - began, 2),
    }
    if held:
        summary["held_out_accuracy"] = float(pipeline.score(*held))
    supertopic.save(pipeline, output)
    if as_json:
        print(json.dumps(summary | {"topics": describe_topics(pipeline)}))
        return
    for name, value in summary.items():
        out.print(f"[bold]{name.replace('_', ' ')}[/bold]: {value}", highlight=False)
    out.print(topic_table(describe_topics(pipeline)))


@app.command()
def predict(
    model: Model,
    data: Data,
    text: TextColumn,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here instead of the screen.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines instead of CSV.")] = False,
):
    """Predict the class of every row of a table: the class, then the probability of each class, as CSV."""
    pipeline = load(model)
    (texts,) = read(data, [text])
    probabilities = pipeline.predict_proba([as_text(t) for t in texts])
    classes = pipeline.classes_.tolist()
    rows = [[classes[row.argmax()], *row.tolist()] for row in probabilities]
    file = open(output, "w", encoding="utf-8", newline="") if output else sys.stdout  # noqa: SIM115
    try:
        if as_json:
            for prediction, *row in rows:
                chances = dict(zip(map(str, classes), row, strict=True))
                file.write(json.dumps({"prediction": prediction, "probabilities": chances}) + "\n")
        else:
            writer = csv.writer(file)
            writer.writerow(["prediction", *(f"p({name})" for name in classes)])
            writer.writerows([prediction, *(f"{p:.6f}" for p in row)] for prediction, *row in rows)
    finally:
        if output:
            file.close()


@app.command()
def topics(
    model: Model,
    n: Annotated[int, typer.Option("--words", "-n", help="Words to show for each topic.")] = 10,
    as_json: AsJson = False,
):
    """Show the topics of a model: their words, and the class that each pulls to, with its 90 % interval."""
    found = describe_topics(load(model), n)
    if as_json:
        print(json.dumps(found))
    else:
        out.print(topic_table(found))


def describe_topics(pipeline: Pipeline, n: int = 10) -> list[dict]:
    """The topics, largest first: share, words, and the class with the largest weight, for binary models either side."""
    vectorizer, model = (step for _, step in pipeline.steps)
    words = model.top_words(vectorizer.get_feature_names_out(), n)
    shares = model._topic_shares()[model.best_chain_]
    rows = []
    for k in np.argsort(-shares):
        row = {"topic": int(k), "share": float(shares[k]), "words": words[k]}
        if len(model.coef_):
            binary = len(model.coef_) == 1
            r = 0 if binary else int(model.coef_[:, k].argmax())
            row["weight"] = weight = float(model.coef_[r, k])
            row["class"] = model.classes_.tolist()[int(weight > 0) if binary else r]
            if model.coef_draws_.shape[1] > 1:
                row["interval"] = lower, upper = [float(side[r, k]) for side in model.coef_interval(0.9)]
                if lower <= 0 <= upper or (weight < 0 and not binary):
                    row["class"] = None  # nothing that the draws agree on
        rows.append(row)
    return rows


def topic_table(rows: list[dict], most: int | None = None) -> Table:
    supervised = "weight" in rows[0]
    columns = (
        ("topic", "share", "pulls to", "weight", "90 % interval", "words")
        if supervised
        else ("topic", "share", "words")
    )
    more = f", the {most} largest of {len(rows)}" if most and most < len(rows) else ""
    table = Table(*columns, title=f"Topics{more}")
    for row in rows[:most]:
        cells = [str(row["topic"]), f"{row['share']:.1%}"]
        if supervised:
            lower, upper = row.get("interval", (np.nan, np.nan))
            name = "-" if row["class"] is None else str(row["class"])
            cells += [name, f"{row['weight']:+.1f}", f"{lower:+.1f} .. {upper:+.1f}"]
        table.add_row(*cells, " ".join(row["words"]))
    return table


def read(path: Path, names: list[str]) -> list[list]:
    from supertopic.tables import read_columns

    return read_columns(path, names)


def load(path: Path) -> Pipeline:
    if not path.is_file():
        raise FileNotFoundError(f"There is no model {path}.")
    pipeline = supertopic.load(path)
    if not isinstance(pipeline, Pipeline):
        raise ValueError(f"{path} holds a model without its vectorizer; the command needs both.")
    return pipeline


def as_text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def as_classes(cells: list) -> np.ndarray:
    """Classes as an object array: whole numbers where every cell is one, else text; None where the cell is empty."""
    known = [cell for cell in cells if cell is not None]
    try:
        if all(isinstance(cell, str) and str(int(cell)) == cell for cell in known):
            cells = [None if cell is None else int(cell) for cell in cells]
    except ValueError:
        pass
    return np.array(cells, dtype=object)


def main() -> None:
    """Run the command. Bad input ends in one line on stderr and exit code 1, bad usage in 2, Ctrl-C in 130."""
    try:
        app()
    except (ValueError, TypeError, OSError) as error:
        err.print("[bold red]Error:[/bold red]", escape(str(error)), highlight=False)
        sys.exit(1)
