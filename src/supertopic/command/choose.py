"""The command `choose`: how many topics there should be."""

import json
from pathlib import Path
from typing import Any

from supertopic.command import options as opt
from supertopic.command.cells import as_whole
from supertopic.command.kinds import KINDS, Asked, make_model, read_response
from supertopic.command.look import look
from supertopic.command.models import make_vectorizer, make_word_vectorizer
from supertopic.command.steps import Table, check_outputs, err, out, plain_warnings, row_names
from supertopic.corpus.writing import whole_file
from supertopic.estimators.choose import choose_topics

LEGEND = (
    "> is the chosen number. alone: the loss of the topics without words, on the documents that the fit itself holds "
    "out. stable: topics that most chains have."
)


def choose(
    data: opt.Data, text: opt.Text, label: opt.Label, topics: opt.TopicNumbers = "5,10,20,40,80",
    response: opt.Response = opt.AUTO, order: opt.Grades = None, event: opt.Event = None,
    gold: opt.Gold = None,
    separator: opt.Separator = ";", words: opt.Words = True, test_size: opt.TestSize = 0.2,
    burn_in: opt.BurnIn = "20", draws: opt.Draws = 10, chains: opt.Chains = 2,
    stop_words: opt.StopWords = "english", min_df: opt.MinDf = 2, max_df: opt.MaxDf = 1.0, ngrams: opt.Ngrams = 1,
    word_ngrams: opt.WordNgrams = 2, token_pattern: opt.TokenPattern = opt.WORD, figure: opt.Figure = None,
    seed: opt.Seed = 0, jobs: opt.Jobs = -1, id: opt.Id = None, strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Compare numbers of topics with short chains, and show the smallest that is good enough.

    Example: supertopic choose tickets.csv --text body --label queue --topics 10,20,40 --figure topics.png
    """
    check_outputs([figure], [data, Path(stop_words)])
    try:
        numbers = [int(part) for part in topics.split(",")]
    except ValueError:
        raise ValueError(f"--topics must be whole numbers with commas between them, got {topics!r}.") from None
    table = Table(data)
    table.need_rows()
    asked = Asked(label, separator, order=order, event=event, gold=gold)
    column = read_response(table.__getitem__, response, asked)
    has_names, english = KINDS[column.response].has_names, stop_words == "english"
    texts, findings = look(table.texts(text), column, has_names, strict, english, as_json, row_names(table, id))
    direct = words and make_word_vectorizer(min_df, word_ngrams, token_pattern)
    options: dict[str, Any] = {"n_jobs": jobs, "words": direct, "verbose": err.is_terminal and not as_json}
    options["vectorizer"] = make_vectorizer(stop_words, min_df, max_df, ngrams, token_pattern)
    model = make_model(column, asked, options)
    with plain_warnings():
        found = choose_topics(
            model, texts, column.target, numbers, test_size=test_size, burn_in=as_whole(burn_in),
            n_draws=draws, n_chains=chains, random_state=seed,
        )  # fmt: skip
    if figure:
        with whole_file(figure) as file:
            found.plot().figure_.savefig(file, format=figure.suffix.removeprefix(".") or None)
    if as_json:
        rows = [{name: None if value != value else value for name, value in row.items()} for row in found.rows]
        print(
            json.dumps(
                {"chosen": found.chosen, "best": found.best, "score": found.score, "rows": rows, "findings": findings}
            )
        )
    else:
        out.print(repr(found), highlight=False, soft_wrap=True)
        out.print(LEGEND, highlight=False)
        out.print(
            f"{found.chosen} topics are the fewest whose loss is within one standard error of the best ({found.best}). "
            f"Next: [bold]supertopic fit ... --topics {found.chosen}[/bold]",
            highlight=False,
        )
