"""The command `predict`: responses of every row of a table."""

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
from supertopic.command.models import need_response, read_beside
from supertopic.command.show import topic_name
from supertopic.command.steps import Table, check_outputs, check_place, err, load, note, plain_warnings, row_names
from supertopic.command.texts import is_many
from supertopic.corpus.spool import find_files
from supertopic.corpus.tables import write_parquet
from supertopic.corpus.writing import whole_text
from supertopic.estimators.base import TopicModel
from supertopic.estimators.classifiers import TopicClassifier
from supertopic.estimators.regressors import SLDACountRegressor, SLDARegressor
from supertopic.estimators.supervised import Supervised
from supertopic.inference.progress import progress

PART, SHOWN = 2000, 4  # documents that are predicted at a time, where a bar is shown; rows in a message
Columns = tuple[dict[str, list[Any]], dict[str, np.ndarray]]  # cells, among them the predictions; and numbers
ENDLESS = (float("inf"), float("-inf"))  # a time that most documents do not reach; JSON has no such number


def predict(
    model: opt.Model, data: opt.Data, text: opt.Text, exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, groups: opt.Groups = None, keep: opt.Keep = None, id: opt.Id = None,
    shares: opt.Shares = False, level: opt.SetLevel = None, max_error: opt.MaxError = None,
    output: opt.PredictionFile = None, device: opt.Device = opt.DeviceName.cpu, as_json: opt.JsonLines = False,
) -> None:  # fmt: skip
    """Predict the response of every row of a table, as CSV: the prediction and its uncertainty.

    Classes and labels come with probabilities, or scores for the hinge. Ordered classes also have the expected grade
    and its 90 % interval. Ratings have a standard deviation, and counts a 90 % interval. Times have the median, its
    90 % interval, the risk, and survival at three times. A line on the standard error says whether the documents differ
    from those of the fit.
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
        names = [*filter(None, [id]), *(table.names if keep == ["all"] else keep or ())]
        kept = {name: table[name] for name in names}
        beside = read_beside(estimator, model, table, exposure, covariate, None, groups)
        X = table.texts(text)
        note_empty(estimator, X, path, row_names(table, id))
        numbers = predict_parts(need_response(estimator), X, beside)
        predicted = numbers.pop("prediction").tolist()
        if shares:
            of_topics = enumerate(estimator.transform(X).T)
            numbers |= {f"topic {topic_name(estimator.posterior_, k)}": share for k, share in of_topics}
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
    """The columns "set" and "decision" of some texts, if they are asked for; "ask" has labels left to people.

    Numbers have intervals in place of sets: "guaranteed lower" and "guaranteed upper".
    """
    found: dict[str, list[Any]] = {}
    if level is None and max_error is None:
        return found
    if isinstance(model, SLDARegressor | SLDACountRegressor) and level is not None and max_error is None:
        ends = model.predict_interval(X, level, conformal=True, **beside)
        names = model.posterior_.response.column_names if model.multioutput_ else [""]
        for end, values in zip(("lower", "upper"), ends, strict=True):
            columns = zip(names, values.reshape(len(X), -1).T.tolist(), strict=True)
            found |= {f"guaranteed {end}" + f"({name})" * bool(name): own for name, own in columns}
        return found
    if not isinstance(model, TopicClassifier):
        what = "--set needs classes, labels, ratings or counts, and --max-error" if level else "--max-error"
        raise ValueError(f"{what} needs classes or labels; the model is a {type(model).__name__}.")
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
    """The number of texts without a word of the vocabulary."""
    return int((np.diff(model.vectorizer_.transform(texts).indptr) == 0).sum())


def note_empty(model: TopicModel, texts: np.ndarray, path: Path, names: list[str]) -> None:
    """Say how many texts of a file have no known words, and which."""
    empty = np.flatnonzero(np.diff(model.vectorizer_.transform(texts).indptr) == 0)
    if len(empty):
        rows = ", ".join(names[i] for i in empty[:SHOWN]) + (", ..." if len(empty) > SHOWN else "")
        note(
            f"{len(empty):,} of {len(texts):,} texts of {escape(str(path))} contain no word of the vocabulary (rows "
            f"{escape(rows)}); they get the prediction of an empty text."
        )


def predict_parts(model: Supervised, X: np.ndarray, beside: dict[str, Any]) -> dict[str, np.ndarray]:
    """Predictions as columns; a bar shows how far they are, part by part, which changes no number."""
    if len(X) <= PART or not err.is_terminal:
        return model.predict_table(X, **beside)
    parts = []
    with progress(len(X), "predict", True) as advance:
        for first in range(0, len(X), PART):
            rows = np.arange(first, min(first + PART, len(X)))
            parts.append(model.predict_table(X[rows], **{name: values[rows] for name, values in beside.items()}))
            advance("", len(rows))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


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
    """Write the predictions of each file to a folder; those that exist already are kept."""
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
