"""What the command shows of a model: predictions, their quality, topics and covariates, as rows and as tables."""

import numpy as np
from rich.markup import escape
from rich.table import Table
from sklearn.metrics import f1_score, r2_score

from supertopic.estimators.classifiers import SLDAClassifier
from supertopic.estimators.regressors import SLDACountRegressor, SLDARegressor
from supertopic.report.summary import describe_covariates


def answers(model, X, beside: dict) -> tuple[list, dict[str, np.ndarray]]:
    """The predictions, and columns of numbers that say how sure they are."""
    if isinstance(model, SLDARegressor):
        mean, std = model.predict(X, return_std=True, **beside)
        return mean.tolist(), {"std": std}
    if isinstance(model, SLDACountRegressor):
        lower, upper = model.predict_interval(X, 0.9, **beside)
        return model.predict(X, **beside).tolist(), {"lower": lower, "upper": upper}
    names, word = model.classes_.tolist(), "score"
    if isinstance(model, SLDAClassifier):
        values, word = model.predict_proba(X, **beside), "p"
        predicted = model._decide(model._logits(values))
    else:
        score = model.decision_function(X, **beside)
        values, predicted = score.reshape(X.shape[0], -1), model._decide(score)
        names = names[1:] if values.shape[1] == 1 else names
    labels = [[names[i] for i in np.flatnonzero(row)] for row in predicted] if model.multilabel_ else predicted.tolist()
    return labels, {f"{word}({name})": column for name, column in zip(names, values.T, strict=True)}


def judge(response: str, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """How good predictions of held-out documents are."""
    if response == "class":
        return {"held_out_accuracy": float(np.mean(predicted == y))}
    if response == "labels":
        return {"held_out_micro_f1": float(f1_score(y, predicted, average="micro", zero_division=0.0))}
    return {"held_out_r2": float(r2_score(y, predicted)), "held_out_mean_error": float(np.mean(np.abs(predicted - y)))}


def topic_table(rows: list[dict], most: int | None = None) -> Table:
    classes, supervised = "class" in rows[0], "weight" in rows[0]
    columns = ["topic", "share"] + ["pulls to"] * classes + ["weight", "90 % interval"] * supervised + ["words"]
    more = f", the {most} largest of {len(rows)}" if most and most < len(rows) else ""
    table = Table(*columns, title=f"Topics{more}")
    for row in rows[:most]:
        cells = [str(row["topic"]), f"{row['share']:.1%}"]
        if classes:
            cells.append("-" if row["class"] is None else escape(str(row["class"])))
        if supervised:
            lower, upper = row.get("interval", (np.nan, np.nan))
            cells += [f"{row['weight']:+.2g}", f"{lower:+.2g} .. {upper:+.2g}"]
        table.add_row(*cells, escape(" ".join(row["words"])))
    return table


def covariate_tables(model) -> list[Table]:
    """A table of the covariates, if there are any."""
    rows = describe_covariates(model)
    if not rows:
        return []
    classes = "class" in rows[0]
    table = Table("covariate", *["class"] * classes, "weight", "90 % interval", title="Covariates, for a unit of each")
    for row in rows:
        lower, upper = row.get("interval", (np.nan, np.nan))
        cells = [escape(row["covariate"])] + ([escape(str(row["class"]))] if classes else [])
        table.add_row(*cells, f"{row['weight']:+.2g}", f"{lower:+.2g} .. {upper:+.2g}")
    return [table]
