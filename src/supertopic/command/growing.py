"""The commands `update`, a model that learns from more documents, and `choose`, how many topics there should be."""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from supertopic.command.cells import as_text, read_response, without_missing
from supertopic.command.options import (
    WORD,
    AsJson,
    Data,
    Jobs,
    Kind,
    Label,
    MaxDf,
    MinDf,
    Model,
    Ngrams,
    Response,
    Seed,
    Separator,
    StopWords,
    TextColumn,
    TokenPattern,
)
from supertopic.command.steps import (
    check_place,
    check_share,
    err,
    known_response,
    load,
    make_model,
    make_vectorizer,
    out,
    pick,
    read_all,
    read_beside,
    save_somewhere,
    told_in_a_line,
)


def update(
    model: Model,
    data: Data,
    text: TextColumn,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.", show_default=False)],
    label: Annotated[
        str | None, typer.Option(help="The column with the response; without it words teach alone.")
    ] = None,
    discount: Annotated[
        float | None,
        typer.Option(help="What earlier documents count for, from 0 to 1.", show_default="the model's own"),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The column with the weight of each document.")] = None,
    exposure: Annotated[str | None, typer.Option(help="For counts: the column with the exposure.")] = None,
    covariate: Annotated[
        list[str] | None, typer.Option(help="The covariates of the fit, in their order, if they have other names here.")
    ] = None,
    skip_unknown_classes: Annotated[
        bool, typer.Option("--skip-unknown-classes", help="Use the texts alone of rows whose class the model lacks.")
    ] = False,
    separator: Separator = ";",
    jobs: Jobs = -1,
    as_json: AsJson = False,
):
    """Let a model learn from more documents: what it knows is the prior, and only the new ones cost time.

    Its vocabulary and its classes stay what they are. Example: supertopic update tickets.model monday.csv --text body
    --label team -o tickets.model
    """
    check_place(output)
    pipeline = load(model)
    vectorizer, estimator = pipeline[0], pipeline[-1]
    table = read_all(data)
    beside = read_beside(estimator, table, data, covariate, sample_weight=weight, exposure=exposure)
    y, n_strange = None, 0
    if label:
        y, n_strange = known_response(estimator, pick(table, data, label), label, separator, skip_unknown_classes)
    estimator.set_params(n_jobs=jobs, verbose=err.is_terminal and not as_json)
    if discount is not None:
        estimator.set_params(discount=discount)
    X = vectorizer.transform([as_text(cell) for cell in pick(table, data, text)])
    with told_in_a_line():
        estimator.partial_fit(X, y, **beside)
    save_somewhere(pipeline, output)
    summary = {"model": str(output), "documents": X.shape[0], "batches": estimator.n_batches_}
    if n_strange:
        summary["rows_of_unknown_classes"] = n_strange
    summary |= {"without_known_words": int((np.diff(X.indptr) == 0).sum()), "hidden": getattr(estimator, "hidden_", {})}
    if as_json:
        print(json.dumps(summary))
        return
    for name, value in summary.items():
        if name != "hidden":
            out.print(f"[bold]{name.replace('_', ' ')}[/bold]: {escape(str(value))}", highlight=False)


def choose(
    data: Data,
    text: TextColumn,
    label: Label,
    topics: Annotated[str, typer.Option("--topics", "-k", help="Numbers of topics, with commas.")] = "5,10,20,40,80",
    response: Response = Kind.AUTO,
    separator: Separator = ";",
    words: Annotated[bool, typer.Option(help="Let single words speak beside the topics.")] = True,
    hold_out: Annotated[float, typer.Option(help="Share of the labelled documents to judge by.")] = 0.2,
    burn_in: Annotated[int, typer.Option(help="Iterations before draws are kept.")] = 20,
    draws: Annotated[int, typer.Option(help="Draws that are kept.")] = 10,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 2,
    stop_words: StopWords = "english",
    min_df: MinDf = 2,
    max_df: MaxDf = 1.0,
    ngrams: Ngrams = 1,
    token_pattern: TokenPattern = WORD,
    figure: Annotated[Path | None, typer.Option(help="Write a figure here: .png, .svg or .pdf.")] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
):
    """Fit a few numbers of topics with short chains, and show which is enough.

    Example: supertopic choose tickets.csv --text body --label team --topics 10,20,40 --figure topics.png
    """
    from supertopic.estimators.choosing import choose_topics

    if figure:
        check_place(figure)
    try:
        numbers = [int(part) for part in topics.split(",")]
    except ValueError:
        raise ValueError(f"--topics must be whole numbers with commas between them, got {topics!r}.") from None
    check_share("--hold-out", hold_out)
    table = read_all(data)
    cells, _ = without_missing(pick(table, data, label), ["NA"])
    column = read_response(cells, response, separator)
    X = make_vectorizer(stop_words, min_df, max_df, ngrams, token_pattern).fit_transform(
        [as_text(cell) for cell in pick(table, data, text)]
    )
    model = make_model(column.response, 2, "logistic", "shared", False, None, {"n_jobs": jobs, "words": words})
    with told_in_a_line():
        found = choose_topics(
            model, X, column.y, numbers, test_size=hold_out, burn_in=burn_in, n_draws=draws, n_chains=chains,
            random_state=seed,
        )  # fmt: skip
    if figure:
        found.plot().figure_.savefig(figure)
    if as_json:
        print(json.dumps({"chosen": found.chosen, "best": found.best, "score": found.score, "rows": found.rows}))
        return
    shown = Table(
        "topics", "held-out loss", "beyond the best", found.score, "coherence", "exclusivity", "seconds",
        title=f"{found.n_docs} documents that no model has seen",
    )  # fmt: skip
    for row in found.rows:
        mark = row["n_topics"] == found.chosen
        cells = [
            str(row["n_topics"]), f"{row['loss']:.4f}", f"{row['loss_more']:.4f} +- {row['loss_se']:.4f}",
            f"{row['score']:.4f}", f"{row['coherence']:.3f}", f"{row['exclusivity']:.3f}", f"{row['seconds']:.1f}",
        ]  # fmt: skip
        shown.add_row(*cells, style="bold green" if mark else None)
    out.print(shown)
    out.print(
        f"{found.chosen} topics are the fewest whose loss is within one standard error of the best ({found.best}). "
        f"Next: [bold]supertopic fit ... --topics {found.chosen}[/bold]",
        highlight=False,
    )
