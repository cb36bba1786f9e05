"""The commands `predict`, responses of every row of a table, and `explain`, why one text gets its prediction."""

import csv
import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.markup import escape
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.command import options as opt
from supertopic.command.evaluate import class_scores
from supertopic.command.models import check_exposure, need_response, read_beside
from supertopic.command.steps import Table, check_place, load, note, out
from supertopic.command.texts import is_many
from supertopic.corpus.spool import find_files
from supertopic.corpus.tables import write_parquet
from supertopic.model.responses.classes import ClassResponse


def predict(
    model: opt.Model, data: opt.Data, text: opt.Text, exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, keep: opt.Keep = None, shares: opt.Shares = False,
    output: opt.PredictionFile = None, device: opt.Device = opt.DeviceName.CPU, as_json: opt.JsonLines = False,
) -> None:  # fmt: skip
    """Predict the response of every row of a table, as CSV: the prediction, and how sure it is.

    Classes and labels come with probabilities (or scores, if they were fitted with the hinge), ratings with a standard
    deviation, counts with the ends of a 90 % interval.
    """
    many = is_many(data)
    if many and output is None:
        raise ValueError(f"{data} stands for many files; --output names the folder for their predictions.")
    if not many:
        check_place(output)
    vectorizer, estimator = load(model)
    check_exposure(estimator, model, exposure)
    estimator.set_params(device=str(device))
    predictor = Predictor(vectorizer, estimator, text, exposure, covariate, keep or [], shares)
    if many and output:
        predict_files(predictor, data, output)
    else:
        write(predictor.predict(data), output, as_json)


class Predictions(NamedTuple):
    """Predictions with columns beside them."""

    kept: dict[str, list[Any]]
    predicted: list[Any]
    numbers: dict[str, np.ndarray]

    @property
    def names(self) -> list[str]:
        return [*self.kept, "prediction", *self.numbers]


@dataclass(frozen=True)
class Predictor:
    """A model, and the columns of a table that it needs."""

    vectorizer: CountVectorizer
    model: Any
    text: str
    exposure: str | None
    covariate: list[str] | None
    keep: list[str]
    shares: bool

    def predict(self, path: Path) -> Predictions:
        """The predictions of a table."""
        table = Table(path)
        kept = {name: table[name] for name in (table.names if self.keep == ["all"] else self.keep)}
        X = self.vectorizer.transform(table.texts(self.text))
        beside = read_beside(self.model, table, None, self.exposure, self.covariate)
        n_empty = int((np.diff(X.indptr) == 0).sum())
        if n_empty:
            note(
                f"{n_empty:,} of {X.shape[0]:,} texts of {escape(str(path))} have no word that the model knows; they "
                "get the prediction of an empty text."
            )
        predicted, numbers = answers(self.model, X, beside)
        if self.shares:
            numbers |= {f"topic {k}": share for k, share in enumerate(self.model.transform(X).T)}
        found = Predictions(kept, predicted, numbers)
        for name in kept:
            if found.names.count(name) > 1:
                raise ValueError(f"--keep {name} would be a second column of that name.")
        return found


def answers(model: Any, X: Any, beside: dict[str, Any]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """The predictions, and columns of numbers that say how sure they are."""
    response = need_response(model).posterior_.response
    if response.kind == "rating":
        mean, std = model.predict(X, return_std=True, **beside)
        return mean.tolist(), {"std": std}
    if response.kind == "count":
        lower, upper = model.predict_interval(X, 0.9, **beside)
        return model.predict(X, **beside).tolist(), {"lower": lower, "upper": upper}
    assert isinstance(response, ClassResponse)
    scores, names = class_scores(model, X, beside), response.labels
    chosen, what = response.chosen(scores), "p" if response.has_probabilities else "score"
    if response.multilabel:
        predicted = [[names[i] for i in np.flatnonzero(row)] for row in chosen]
    else:
        predicted = [names[i] for i in chosen]
    return predicted, {f"{what}({name})": column for name, column in zip(response.answers, scores.T, strict=True)}


def write(found: Predictions, output: Path | None, as_json: bool) -> None:
    """Write predictions as CSV or JSON lines, to a file or to the screen."""
    place = open(output, "w", encoding="utf-8", newline="") if output else nullcontext(sys.stdout)  # noqa: SIM115
    with place as file:
        numbers = [column.tolist() for column in found.numbers.values()]
        if as_json:
            for row in zip(*found.kept.values(), found.predicted, *numbers, strict=True):
                file.write(json.dumps(dict(zip(found.names, row, strict=True)), default=str) + "\n")
            return
        writer = csv.writer(file)
        writer.writerow(found.names)
        shown = [";".join(map(str, cell)) if isinstance(cell, list) else cell for cell in found.predicted]
        columns = ([f"{number:.6f}" for number in column] for column in numbers)
        writer.writerows(zip(*found.kept.values(), shown, *columns, strict=True))


def predict_files(predictor: Predictor, data: Path, output: Path) -> None:
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
    for place, path in places.items():
        if place.exists():
            note(f"{escape(str(place))} exists already.")
            continue
        found = predictor.predict(path)
        write_parquet(found.names, [*found.kept.values(), found.predicted, *found.numbers.values()], place)
        note(f"{escape(str(place))}: {len(found.predicted):,} documents")


def explain(
    model: opt.Model, text: opt.GivenText, covariate: opt.GivenCovariate = None, exposure: opt.GivenExposure = None,
    as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show why a text gets its prediction: what each of its words adds, through its topics and by itself."""
    beside: dict[str, Any] = {"covariates": [covariate]} if covariate else {}
    beside |= {"exposure": [exposure]} if exposure is not None else {}
    vectorizer, estimator = load(model)
    X = vectorizer.transform([sys.stdin.read() if text == "-" else text])
    found = need_response(estimator).explain(X, vectorizer.get_feature_names_out(), **beside)
    if as_json:
        facts = found._asdict() | {"through_topics": found.through_topics, "direct": found.direct}
        facts |= {"constant": found.constant, "covariates": found.covariates}
        del facts["by_word"]
        print(json.dumps(facts, default=np.ndarray.tolist))
        return
    if not found.words:
        out.print("The text has no word that the model knows; this is the prediction of an empty text.")
    out.print(escape(repr(found)), highlight=False, soft_wrap=True)
