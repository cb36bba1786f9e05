"""The commands `predict`, responses of every row of a table, and `explain`, why one text gets its prediction."""

import itertools
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.console import write_csv
from supertopic.command.drift import drift_line, note_drift
from supertopic.command.models import covariate_kinds, need_response, read_beside, with_names
from supertopic.command.steps import Table, check_outputs, check_place, load, note, out, plain_warnings
from supertopic.command.texts import is_many
from supertopic.corpus.frames import frame_of_cells
from supertopic.corpus.spool import find_files
from supertopic.corpus.tables import write_parquet
from supertopic.corpus.writing import whole_text
from supertopic.estimators.base import TopicModel
from supertopic.estimators.classifiers import TopicClassifier

Columns = tuple[dict[str, list[Any]], dict[str, np.ndarray]]  # cells, among them the predictions; and numbers
ENDLESS = (float("inf"), float("-inf"))  # a time that most documents do not reach; JSON has no such number


def predict(
    model: opt.Model, data: opt.Data, text: opt.Text, exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, groups: opt.Groups = None, keep: opt.Keep = None, shares: opt.Shares = False,
    level: opt.SetLevel = None, max_error: opt.MaxError = None, output: opt.PredictionFile = None,
    device: opt.Device = opt.DeviceName.cpu, as_json: opt.JsonLines = False,
) -> None:  # fmt: skip
    """Predict the response of every row of a table, as CSV: the prediction, and how sure it is.

    Classes and labels come with probabilities (or scores, if they were fitted with the hinge), ordered classes also
    with the expected grade and the ends of its 90 % interval, ratings with a standard deviation, counts with the ends
    of a 90 % interval, and times with their median, its 90 % interval, the risk and survival at three times. A line on
    the standard error says whether the documents differ from those of the fit.
    """
    many = is_many(data)
    if many and output is None:
        raise ValueError(f"{data} stands for many files; --output names the folder for their predictions.")
    if not many:
        check_place(output)
        check_outputs([output], [data, model])
    estimator = load(model)
    estimator.set_params(device=str(device))
    after: list[str | None] = []  # lines to print

    def predict_table(path: Path) -> Columns:
        table = Table(path)
        kept = {name: table[name] for name in (table.names if keep == ["all"] else keep or ())}
        beside = read_beside(estimator, model, table, exposure, covariate, None, groups)
        X = table.texts(text)
        note_empty(estimator, X, path)
        numbers = need_response(estimator).predict_table(X, **beside)
        predicted = numbers.pop("prediction").tolist()
        if shares:
            numbers |= {f"topic {k}": share for k, share in enumerate(estimator.transform(X).T)}
        found = {"prediction": predicted} | promised(estimator, X, beside, level, max_error, path)
        for name in kept:
            if name in (*found, *numbers):
                raise ValueError(f"--keep {name} would be a second column of that name.")
        after.append(drift_line(estimator, X))
        return kept | found, numbers

    def print_line() -> None:
        note_drift(after.pop())

    if many and output:
        predict_files(predict_table, data, output, print_line)
    else:
        write(*predict_table(data), output, as_json)
        print_line()


def promised(
    model: TopicModel, X: np.ndarray, beside: dict[str, Any], level: float | None, max_error: float | None, path: Path
) -> dict[str, list[Any]]:
    """The columns "set" and "decision" of some texts, if they are asked for; "ask" has labels left to people."""
    found: dict[str, list[Any]] = {}
    if level is None and max_error is None:
        return found
    if not isinstance(model, TopicClassifier):
        raise ValueError(f"--set and --max-error need classes or labels, and the model is a {type(model).__name__}.")
    names = model.classes_.tolist()
    if level is not None:
        sets = model.predict_set(X, level, **beside)
        found["set"] = [[names[i] for i in np.flatnonzero(row)] for row in sets]
    if max_error is not None:
        with plain_warnings():
            decided = model.decide(X, max_error=max_error, **beside)
        found["decision"] = decided.decision.tolist()
        if model.multilabel_:
            found["decision"] = [[names[i] for i in np.flatnonzero(row == 1)] for row in decided.decision]
            found["ask"] = [[names[i] for i in np.flatnonzero(np.isnan(row))] for row in decided.decision]
        what = "labels" if model.multilabel_ else "documents"
        note(f"{decided.asked:.1%} of the {what} of {escape(str(path))} are left to people.")
    return found


def count_empty(model: TopicModel, texts: np.ndarray) -> int:
    """The number of texts without a word that topics know."""
    return int((np.diff(model.vectorizer_.transform(texts).indptr) == 0).sum())


def note_empty(model: TopicModel, texts: np.ndarray, path: Path) -> None:
    """Say how many texts of a file have no known words."""
    n_empty = count_empty(model, texts)
    if n_empty:
        note(
            f"{n_empty:,} of {len(texts):,} texts of {escape(str(path))} have no word that the model knows; they get "
            "the prediction of an empty text."
        )


def write(cells: dict[str, list[Any]], numbers: dict[str, np.ndarray], output: Path | None, as_json: bool) -> None:
    """Write columns as CSV or JSON lines, to a file or to the screen."""
    names, values = [*cells, *numbers], [column.tolist() for column in numbers.values()]
    with whole_text(output) if output else nullcontext(sys.stdout) as file:
        if as_json:
            for row in zip(*cells.values(), *values, strict=True):
                found = {name: None if cell in ENDLESS else cell for name, cell in zip(names, row, strict=True)}
                file.write(json.dumps(found, default=str) + "\n")
            return
        shown = ([";".join(map(str, c)) if isinstance(c, list) else c for c in column] for column in cells.values())
        columns = ([f"{number:.6f}" for number in column] for column in values)
        write_csv(file, itertools.chain([names], zip(*shown, *columns, strict=True)))


def predict_files(
    predict_table: Callable[[Path], Columns], data: Path, output: Path, after: Callable[[], None]
) -> None:  # fmt: skip
    """Write the predictions of each file to a folder; those that are there already are not made again."""
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
    check_outputs([*places], [*places.values()])
    for place, path in places.items():
        if place.exists():
            note(f"{escape(str(place))} exists already.")
            continue
        cells, numbers = predict_table(path)
        write_parquet([*cells, *numbers], [*cells.values(), *numbers.values()], place)
        note(f"{escape(str(place))}: {len(cells['prediction']):,} documents")
        after()


def explain(
    model: opt.Model, text: opt.GivenText, covariate: opt.GivenCovariate = None, exposure: opt.GivenExposure = None,
    group: opt.GivenGroup = None, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show why a text gets its prediction: what each of its words adds, through its topics and by itself."""
    estimator = need_response(load(model))
    beside: dict[str, Any] = {"exposure": [exposure]} if exposure is not None else {}
    beside |= {"groups": [group]} if group is not None else {}
    if covariate:
        kinds = covariate_kinds(estimator)
        cells = {name: [cell] for name, cell in with_names(kinds, covariate).items()}
        beside["covariates"] = frame_of_cells(cells, kinds)
    found = estimator.explain(sys.stdin.read() if text == "-" else text, **beside)
    if as_json:
        facts = found._asdict() | {"through_topics": found.through_topics, "direct": found.direct}
        facts |= {"constant": found.constant, "covariates": found.covariates}
        del facts["by_word"]
        print(json.dumps(facts, default=np.ndarray.tolist))
        return
    if not found.words:
        out.print("The text has no word that the model knows; this is the prediction of an empty text.")
    out.print(escape(repr(found)), highlight=False, soft_wrap=True)
