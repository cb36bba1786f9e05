"""The commands `merge` (topics) and `ban` (words of topics): each writes a new model."""

import json
from pathlib import Path
from typing import Any

from supertopic.command import options as opt
from supertopic.command.cells import as_whole
from supertopic.command.kinds import Asked, kind_of
from supertopic.command.models import read_beside
from supertopic.command.show import show_model
from supertopic.command.steps import Table, check_outputs, err, load, note, out, plain_warnings, save_somewhere
from supertopic.corpus.tables import read_plain
from supertopic.estimators.base import TopicModel
from supertopic.report.summary import describe_topics


def merge(
    model: opt.Model, data: opt.Data, text: opt.Text, topics: opt.MergedTopics, output: opt.ModelFile,
    label: opt.NewLabel = None, burn_in: opt.ShortBurnIn = 40, weight: opt.Weight = None, exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, groups: opt.Groups = None, skip_unknown_classes: opt.SkipUnknown = False,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";", jobs: opt.Jobs = -1,
    as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Make one topic of several, and write a new model. Give the documents that the model was fitted to.

    Example: supertopic merge tickets.model tickets.csv --text body --label queue --topics 3,7 -o merged.model
    """
    check_outputs([output], [data, model])
    chosen = [as_topics(group) for group in topics]
    estimator, texts, y, beside = read_all(
        model, data, text, Asked(label or "", separator, event=event, gold=gold), label, skip_unknown_classes,
        (exposure, covariate, weight, groups), jobs, as_json,
    )  # fmt: skip
    with plain_warnings():
        found = estimator.merge_topics(chosen, texts, y, burn_in=burn_in, **beside)
    finish(found, output, as_json)


def ban(
    model: opt.Model, data: opt.Data, text: opt.Text, words: opt.BannedWords, output: opt.ModelFile,
    label: opt.NewLabel = None, everywhere: opt.Everywhere = False, burn_in: opt.ShortBurnIn = 40,
    weight: opt.Weight = None, exposure: opt.Exposure = None, covariate: opt.KnownCovariate = None,
    groups: opt.Groups = None, skip_unknown_classes: opt.SkipUnknown = False,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";", jobs: opt.Jobs = -1,
    as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Take words out of the topics, and write a new model. Give the documents that the model was fitted to.

    Example: supertopic ban tickets.model tickets.csv --text body --label queue --words hello,regards -o clean.model
    """
    file = Path(words)
    check_outputs([output], [data, model, file])
    banned = read_plain(file).split() if file.is_file() else [word.strip() for word in words.split(",") if word.strip()]
    estimator, texts, y, beside = read_all(
        model, data, text, Asked(label or "", separator, event=event, gold=gold), label, skip_unknown_classes,
        (exposure, covariate, weight, groups), jobs, as_json,
    )  # fmt: skip
    with plain_warnings():
        found = estimator.ban_words(banned, texts, y, everywhere=everywhere, burn_in=burn_in, **beside)
    finish(found, output, as_json)


def as_topics(text: str) -> list[int]:
    """The numbers of topics in an option."""
    numbers = [as_whole(part.strip()) for part in text.split(",")]
    wrong = next((part for part in numbers if not isinstance(part, int)), None)
    if wrong is not None:
        raise ValueError(f"--topics takes numbers of topics, such as 3,7, got {text!r}.")
    return [part for part in numbers if isinstance(part, int)]


def read_all(
    model: Path, data: Path, text: str, asked: Asked, label: str | None, skip: bool,
    columns: tuple[str | None, list[str] | None, str | None, str | None], jobs: int, quiet: bool,
) -> tuple[TopicModel, Any, Any, dict[str, Any]]:  # fmt: skip
    """The model, the texts of a table, their responses, and the columns beside these."""
    estimator, table = load(model), Table(data)
    response, y = estimator.posterior_.response, None
    if response.kind and not label:
        raise ValueError("--label is missing: the new model learns its weights from the responses of these documents.")
    beside = read_beside(estimator, model, table, *columns)
    if label and response.kind:
        y, n_strange = kind_of(response).known(response, table.__getitem__, asked, skip)
        if n_strange:
            note(f"{n_strange:,} rows have a class that is new to the model; they add their words only.")
    estimator.set_params(n_jobs=jobs, verbose=False)
    if err.is_terminal and not quiet:
        note("Chains continue from the changed topics.")
    return estimator, table.texts(text), y, beside


def finish(model: Any, output: Path, as_json: bool) -> None:
    """Write the new model and show it."""
    save_somewhere(model, output)
    revision, posterior = model.revision_, model.posterior_
    if as_json:
        known = {name: value if value == value else None for name, value in vars(revision).items()}  # JSON has no NaN
        print(json.dumps({"model": str(output)} | known))
        return
    out.print(str(revision), highlight=False, markup=False)
    show_model(posterior, describe_topics(posterior, model.vocabulary_), model.vocabulary_)
