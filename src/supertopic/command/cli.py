"""The command `supertopic`: demo, fit, update, choose, predict, explain, report, topics."""

import csv
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import supertopic
from supertopic.command.cells import as_numbers, as_text, read_response, without_missing
from supertopic.command.growing import choose, update
from supertopic.command.options import (
    WORD,
    AsJson,
    By,
    Data,
    Device,
    Jobs,
    Kind,
    Label,
    Loss,
    MaxDf,
    MinDf,
    Model,
    Multiclass,
    Ngrams,
    NTopics,
    OnDevice,
    Response,
    Seed,
    Separator,
    StopWords,
    TextColumn,
    TokenPattern,
)
from supertopic.command.pages import logistic, write_page
from supertopic.command.show import (
    answers,
    class_table,
    covariate_tables,
    hidden_line,
    judge,
    missed_words,
    topic_table,
    word_tables,
)
from supertopic.command.steps import (
    OPTIONS,
    check_place,
    check_share,
    choose_held_out,
    err,
    known_response,
    load,
    make_model,
    make_vectorizer,
    number_or_word,
    out,
    pick,
    read_all,
    read_beside,
    read_seeds,
    save_somewhere,
    speak_utf8,
    told_in_a_line,
)
from supertopic.command.texts import is_many, open_texts
from supertopic.datasets import load_docstrings
from supertopic.estimators.base import LDA
from supertopic.estimators.classifiers import SLDAClassifier
from supertopic.estimators.regressors import SLDACountRegressor
from supertopic.report.summary import describe_covariates, describe_topics, describe_weights

app = typer.Typer(
    help="Supervised topic models: topics that explain a class, labels, a rating or a count, and predict it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"supertopic {supertopic.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """Supervised topic models: topics that explain a class, labels, a rating or a count, and predict it."""


@app.command()
def demo(
    n_topics: NTopics = 30,
    seed: Seed = 0,
    jobs: Jobs = -1,
    report: Annotated[Path | None, typer.Option(help="Write a page about the model here.")] = None,
    as_json: AsJson = False,
):
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
    first, results = next(iter(models)), []
    for name, model in models.items():
        began = time.perf_counter()
        accuracy = model.fit(train, y).score(test, y_test)
        results.append({"model": name, "accuracy": accuracy, "seconds": time.perf_counter() - began})
    topics = describe_topics(ours, models[first][0].get_feature_names_out())
    if report:
        title = "Which subpackage of SciPy does a docstring belong to?"
        write_page(models[first], np.array(test, dtype=object), y_test, report, title, True, None, {})
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
    context: typer.Context,
    data: Data,
    text: TextColumn,
    label: Label,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.", show_default=False)],
    response: Response = Kind.AUTO,
    n_topics: NTopics = 20,
    c: Annotated[float | None, typer.Option(help="Weight of the response.", show_default="the estimator's own")] = None,
    loss: Annotated[
        Loss, typer.Option(help="For classes and labels: with probabilities, or max-margin.")
    ] = Loss.LOGISTIC,
    multiclass: Annotated[Multiclass, typer.Option(help="For three classes or more.")] = Multiclass.SHARED,
    balanced: Annotated[bool, typer.Option("--balanced", help="Give all classes the same weight in all.")] = False,
    separator: Separator = ";",
    missing: Annotated[
        list[str] | None,
        typer.Option(help="A response that means unknown, as an empty cell does; may be repeated.", show_default="NA"),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The column with the weight of each document.")] = None,
    exposure: Annotated[str | None, typer.Option(help="For counts: the column with the exposure.")] = None,
    covariate: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that helps to predict; may be repeated.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Write the state here every minute; the same command goes on from it.")
    ] = None,
    burn_in: Annotated[int, typer.Option(help="Iterations before draws are kept.")] = 60,
    draws: Annotated[int, typer.Option(help="Draws that are kept.")] = 20,
    chains: Annotated[int, typer.Option(help="Independent chains; predictions average over them.")] = 4,
    stop_words: StopWords = "english",
    words: Annotated[bool, typer.Option(help="Let single words speak beside the topics.")] = True,
    min_df: MinDf = 2,
    max_df: MaxDf = 1.0,
    ngrams: Ngrams = 1,
    token_pattern: TokenPattern = WORD,
    seeds: Annotated[
        Path | None,
        typer.Option(help="A table with the columns topic and word, and perhaps class: words that topics start from."),
    ] = None,
    seed_strength: Annotated[
        float, typer.Option(help="Tokens of a seed word that its topic has, for each that it has in the texts.")
    ] = 1.0,
    prior: Annotated[Path | None, typer.Option(help="A model file whose topics this one starts from.")] = None,
    prior_weights: Annotated[
        bool, typer.Option("--prior-weights", help="Take the prior's weights, too; it must have the same response.")
    ] = False,
    discount: Annotated[float, typer.Option(help="What a document of the prior counts for, from 0 to 1.")] = 1.0,
    hidden: Annotated[
        str, typer.Option(help="Share of the labelled documents that weights are read from, which no topic sees.")
    ] = "auto",
    hold_out: Annotated[float, typer.Option(help="Share of the labelled documents to test on.")] = 0.0,
    seed: Seed = 0,
    jobs: Jobs = -1,
    device: OnDevice = Device.CPU,
    engine: Annotated[
        str, typer.Option(help="Who fits: threads, ray, or ray:ADDRESS of a Ray cluster. Changes no result.")
    ] = "threads",
    folder: Annotated[
        Path | None,
        typer.Option(help="For many files: where their tokens are during the fit, which all machines see."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a page about the model here, of the held-out documents if there are any.")
    ] = None,
    as_json: AsJson = False,
):
    """Learn topics from texts and what is known of each, and write one model file.

    Example: supertopic fit tickets.csv --text body --label team -o tickets.model

    Many files, of which no process needs to hold all: supertopic fit 'data/*.parquet' ... (or a folder)
    """
    for path in filter(None, (output, report)):
        check_place(path)
    check_share("--hold-out", hold_out)
    if report and is_many(data):
        raise ValueError("--report is for one table; supertopic report takes the model and a table of some documents.")
    if hold_out and is_many(data):
        raise ValueError("--hold-out is for one table; leave files out of the pattern, and predict these.")
    vectorizer = make_vectorizer(stop_words, min_df, max_df, ngrams, token_pattern)
    names = list(dict.fromkeys([label, *filter(None, (weight, exposure)), *(covariate or ())]))
    source = context.with_resource(open_texts(data, text, names, vectorizer, engine, jobs, folder))
    cells, n_missing = without_missing(source.columns[label], ["NA"] if missing is None else missing)
    arrays = {}
    for name, wanted in (("sample_weight", weight), ("exposure", exposure)):
        if wanted:
            arrays[name] = as_numbers(source.columns[wanted], wanted, OPTIONS[name])
    if covariate:
        arrays["covariates"] = np.column_stack(
            [as_numbers(source.columns[name], name, "--covariate") for name in covariate]
        )
    column = read_response(cells, response, separator)
    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": err.is_terminal and not as_json}
    options |= {"burn_in": burn_in, "n_draws": draws, "n_chains": chains, "hidden": number_or_word(hidden)}
    options |= {"words": words, "device": str(device), "engine": engine, "discount": discount}
    if seeds:
        options |= read_seeds(seeds) | {"seed_strength": seed_strength}
    if prior:
        options |= {"prior": load(prior), "prior_weights": prior_weights}
    if c is not None:
        options["c"] = c
    model = make_model(column.response, n_topics, loss, multiclass, balanced, exposure, options)
    if not as_json:
        err.print(f"[bold]response[/bold]: {column.response} ({escape(column.why)})", highlight=False)
        if n_missing and missing is None:
            err.print(
                f"{n_missing} responses are 'NA' and count as unknown; --missing says what does.", highlight=False
            )
    train, test = np.arange(len(cells)), np.zeros(0, int)
    if hold_out:
        test = choose_held_out(column, hold_out, seed)
        train = np.setdiff1d(train, test)
    began = time.perf_counter()
    try:
        with told_in_a_line():
            vectorizer = source.fit(model, vectorizer, train, column.y, arrays, checkpoint)
    except KeyboardInterrupt:
        if checkpoint:
            err.print(f"Stopped. The same command goes on from {escape(str(checkpoint))}.", highlight=False)
        raise
    if covariate:
        model.covariate_names_ = np.array(covariate, dtype=object)
    if column.names:
        model.classes_ = np.array(column.names, dtype=object)
    pipeline = make_pipeline(vectorizer, model)
    summary = {
        "model": str(output),
        "response": column.response,
        "why": column.why,
        "estimator": type(model).__name__,
        "documents": len(train),
        "unlabelled": int((~column.known[train]).sum()),
        "words": model.n_features_in_,
    }
    if hasattr(model, "classes_"):
        summary["classes"] = model.classes_.tolist()
    summary["hidden"] = model.hidden_
    summary |= {"sampler": model.sampler_, "seed": model.seed_, "seconds": round(time.perf_counter() - began, 2)}
    if hold_out:
        beside = {name: values[test] for name, values in arrays.items() if name != "sample_weight"}
        known = column.y[np.intersect1d(train, np.flatnonzero(column.known))]
        summary |= judge(
            column.response, model, vectorizer.transform(source.texts[test]), column.y[test], known, beside
        )
    save_somewhere(pipeline, output)
    if report:
        rows = test if hold_out else train
        beside = {name: values[rows] for name, values in arrays.items() if name != "sample_weight"}
        rival = logistic(source.texts, column.y, train, test) if hold_out and column.response == "class" else None
        write_page(pipeline, source.texts[rows], column.y[rows], report, str(data.stem), bool(hold_out), rival, beside)
    if hold_out and not as_json:
        err.print(
            f"The model is the one that was tested: the {len(test)} held-out documents are not in it. Without "
            "--hold-out all are.",
            highlight=False,
        )
    topics = describe_topics(model, vectorizer.get_feature_names_out())
    if as_json:
        summary |= {"topics": topics, "covariates": describe_covariates(model), "missed_words": missed_words(pipeline)}
        print(json.dumps(summary))
        return
    for name, value in summary.items():
        if name not in ("response", "why", "held_out_classes", "hidden"):
            shown = f"{value:.4g}" if isinstance(value, float) else escape(str(value))
            if name == "interval":
                name, shown = "its 90 % interval", f"{value[0]:.3f} .. {value[1]:.3f}"
            out.print(f"[bold]{name.replace('_', ' ')}[/bold]: {shown}", highlight=False)
    if "held_out_classes" in summary:
        out.print(class_table(summary["held_out_classes"]))
    out.print(
        topic_table(topics), *covariate_tables(model), *word_tables(pipeline), hidden_line(model), highlight=False
    )


app.command()(update)
app.command()(choose)


@app.command()
def predict(
    model: Model,
    data: Data,
    text: TextColumn,
    exposure: Annotated[str | None, typer.Option(help="For counts: the column with the exposure.")] = None,
    covariate: Annotated[
        list[str] | None, typer.Option(help="The covariates of the fit, in their order, if they have other names here.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column to keep beside the prediction; may be repeated. all keeps all.")
    ] = None,
    shares: Annotated[bool, typer.Option("--shares", help="Add the share of each topic in each document.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here instead of the screen.")] = None,
    device: OnDevice = Device.CPU,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines instead of CSV.")] = False,
):
    """Predict the response of every row of a table, as CSV: the prediction, and how sure it is.

    Classes and labels come with probabilities (or scores, if they were fitted with the hinge), ratings with a standard
    deviation, counts with the ends of a 90 % interval.
    """
    many = is_many(data)
    if many and output is None:
        raise ValueError(f"{data} stands for many files; --output names the folder for their predictions.")
    if output and not many:
        check_place(output)
    vectorizer, estimator = (step for _, step in load(model).steps)
    if exposure is not None and not isinstance(estimator, SLDACountRegressor):
        raise ValueError(f"--exposure goes with a model of counts, but {model} is a {type(estimator).__name__}.")
    if getattr(estimator, "exposed_", False) and exposure is None:
        raise ValueError(f"{model} was fitted with an exposure; --exposure names its column here.")
    covariates: list[str] = covariate or list(getattr(estimator, "covariate_names_", ()))
    estimator.set_params(device=str(device))

    def foretell(path: Path) -> tuple[list[str], list, dict[str, np.ndarray]]:
        """The names of all columns, those before the numbers, and the numbers."""
        table = read_all(path)
        texts, *more = (pick(table, path, name) for name in [text, *covariates, *filter(None, [exposure])])
        kept = {name: pick(table, path, name) for name in (table.column_names if keep == ["all"] else keep or ())}
        beside: dict[str, np.ndarray] = {}
        if covariates:
            pairs = zip(more, covariates, strict=False)
            beside["covariates"] = np.column_stack([as_numbers(values, name, "--covariate") for values, name in pairs])
        if exposure:
            beside["exposure"] = as_numbers(more[-1], exposure, "--exposure")
        X = vectorizer.transform([as_text(t) for t in texts])
        unknown = int((np.diff(X.indptr) == 0).sum())
        if unknown:
            err.print(
                f"{unknown:,} of {X.shape[0]:,} texts of {escape(str(path))} have no word that the model knows; they "
                "get the prediction for an empty text.",
                highlight=False,
            )
        predictions, columns = answers(estimator, X, beside)
        if shares:
            columns |= {f"topic {k}": share for k, share in enumerate(estimator.transform(X).T)}
        names = [*kept, "prediction", *columns]
        for name in kept:
            if names.count(name) > 1:
                raise ValueError(f"--keep {name} would be a second column of that name.")
        return names, [*kept.values(), predictions], columns

    if many:
        from supertopic.corpus.spool import find_files
        from supertopic.corpus.tables import write_parquet

        assert output is not None
        output.mkdir(parents=True, exist_ok=True)
        places: dict[Path, Path] = {}
        for path in find_files(data):
            place = output / f"{path.name.partition('.')[0]}.parquet"
            if place in places:
                raise ValueError(
                    f"The predictions of {places[place]} and of {path} would have the same name, {place}; give them "
                    "other names, or predict them into folders of their own."
                )
            places[place] = path
        for place, path in places.items():
            if place.exists():
                err.print(f"{escape(str(place))} is there already.", highlight=False)
                continue
            names, first, columns = foretell(path)
            write_parquet(names, [*first, *columns.values()], place)
            err.print(f"{escape(str(place))}: {len(first[-1]):,} documents", highlight=False)
        return
    names, first, columns = foretell(data)
    rows = zip(*first, *(values.tolist() for values in columns.values()), strict=True)
    file = open(output, "w", encoding="utf-8", newline="") if output else sys.stdout  # noqa: SIM115
    try:
        if as_json:
            for row in rows:
                file.write(json.dumps(dict(zip(names, row, strict=True)), default=str) + "\n")
        else:
            writer = csv.writer(file)
            writer.writerow(names)
            for row in rows:
                before, prediction, numbers = row[: len(first) - 1], row[len(first) - 1], row[len(first) :]
                shown = ";".join(map(str, prediction)) if isinstance(prediction, list) else prediction
                writer.writerow([*before, shown, *(f"{number:.6f}" for number in numbers)])
    finally:
        if output:
            file.close()


@app.command()
def explain(
    model: Model,
    text: Annotated[str, typer.Option("--text", help="The text itself; - reads it from the standard input.")],
    covariate: Annotated[list[float] | None, typer.Option(help="The covariates of the text, in their order.")] = None,
    exposure: Annotated[float | None, typer.Option(help="For counts: the exposure of the text.")] = None,
    as_json: AsJson = False,
):
    """Show why a text gets its prediction: what each of its words adds, through its topics and by itself."""
    more: dict[str, Any] = {"covariates": [covariate]} if covariate else {}
    more |= {"exposure": [exposure]} if exposure is not None else {}
    found = supertopic.explain(load(model), sys.stdin.read() if text == "-" else text, **more)
    if not as_json:
        if not found.words:
            out.print("The text has no word that the model knows; this is its prediction for an empty text.")
        out.print(escape(repr(found)), highlight=False, soft_wrap=True)
        return
    print(json.dumps({
        name: value.tolist() if hasattr(value, "tolist") else list(map(np.ndarray.tolist, value))
        if name == "mean_interval" else value
        for name, value in found._asdict().items()
    }))  # fmt: skip


@app.command()
def report(
    model: Model,
    data: Data,
    text: TextColumn,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page.", show_default=False)],
    label: Annotated[
        str | None, typer.Option(help="The column with the response; predictions are judged by it.")
    ] = None,
    unseen: Annotated[bool, typer.Option("--unseen", help="The model has not learned from these documents.")] = False,
    covariate: Annotated[
        list[str] | None, typer.Option(help="The covariates of the fit, in their order, if they have other names here.")
    ] = None,
    exposure: Annotated[str | None, typer.Option(help="For counts: the column with the exposure.")] = None,
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "",
):
    """Write one page that shows what was fitted, what topics do, how well it predicts, and why, for anyone to read."""
    check_place(output)
    pipeline = load(model)
    estimator = pipeline[-1]
    table = read_all(data)
    beside = read_beside(estimator, table, data, covariate, exposure=exposure)
    y = None
    if label:
        y, n_strange = known_response(estimator, pick(table, data, label), label, ";", skip_unknown=True)
        if n_strange:
            err.print(f"{n_strange:,} rows have a class that the model does not know; they are not judged.")
    texts = np.array([as_text(cell) for cell in pick(table, data, text)], dtype=object)
    write_page(pipeline, texts, y, output, title or f"{model.stem}: {data.stem}", unseen, None, beside)


@app.command()
def topics(
    model: Model,
    n: Annotated[int, typer.Option("--words", "-n", help="Words to show for each topic.")] = 10,
    by: Annotated[By, typer.Option(help="Words that are frequent and exclusive, frequent, or exclusive.")] = By.FREX,
    as_csv: Annotated[bool, typer.Option("--csv", help="All weights of all classes, a line each, as CSV.")] = False,
    as_json: AsJson = False,
):
    """Show the topics of a model: their words, and what each pulls to, with the weight's 90 % interval."""
    pipeline = load(model)
    if as_csv:
        rows = describe_weights(pipeline[-1], pipeline[0].get_feature_names_out(), n, str(by))
        writer = csv.DictWriter(sys.stdout, rows[0])
        writer.writeheader()
        writer.writerows(rows)
        return
    found = describe_topics(pipeline[-1], pipeline[0].get_feature_names_out(), n, str(by))
    if as_json:
        print(json.dumps(found))
    else:
        beside = *covariate_tables(pipeline[-1]), *word_tables(pipeline)
        out.print(topic_table(found), *beside, hidden_line(pipeline[-1]), highlight=False)


def main() -> None:
    """Run the command. Bad input ends in one line on stderr and exit code 1, bad usage in 2, Ctrl-C in 130."""
    speak_utf8()
    try:
        app(windows_expand_args=False)  # a pattern is ours, and no word of the shell's
    except (ValueError, TypeError, OSError, MemoryError, ImportError, RuntimeError) as error:
        err.print("[bold red]Error:[/bold red]", escape(str(error)), highlight=False, soft_wrap=True)
        sys.exit(1)
