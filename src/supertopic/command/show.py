"""What the command shows of a model: predictions, their quality, topics and covariates, as rows and as tables."""

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table
from sklearn.metrics import f1_score, precision_recall_fscore_support, r2_score

from supertopic.estimators.classifiers import SLDAClassifier
from supertopic.estimators.regressors import SLDACountRegressor, SLDARegressor
from supertopic.report.page import wilson
from supertopic.report.summary import describe_covariates

MOST_COLUMNS = 20  # of a table of words


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


def judge(response: str, model, X, y: np.ndarray, known: np.ndarray, beside: dict) -> dict[str, Any]:
    """How good predictions of held-out documents are, beside what the base rate of the known responses would give."""
    if response in ("rating", "count"):
        return judge_numbers(model.predict(X, **beside), y.astype(float), known.astype(float))
    labels, names = response == "labels", model.classes_.tolist()
    truth = y.astype(bool) if labels else y[:, None] == model.classes_
    base = np.mean(known.astype(float) if labels else known[:, None] == model.classes_, axis=0)
    facts: dict[str, Any] = {"held_out_documents": len(y)}
    p = model.predict_proba(X, **beside) if isinstance(model, SLDAClassifier) else None
    score = model.decision_function(X, **beside) if p is None else model._logits(p)
    predicted = model._decide(score)
    chosen = predicted.astype(bool) if labels else predicted[:, None] == model.classes_
    if labels:

        def f1(docs):
            return f1_score(truth[docs], chosen[docs], average="micro", zero_division=0.0)

        facts |= {"held_out_micro_f1": float(f1(slice(None))), "interval": resampled(f1, len(y))}
    else:
        right = predicted == y
        facts |= {"held_out_accuracy": float(right.mean()), "interval": wilson(right)}
        facts["base_rate_accuracy"] = float(np.mean(truth[:, base.argmax()]))
    if p is not None:
        facts |= {"held_out_log_loss": losses(truth, p, labels), "base_rate_log_loss": losses(truth, base, labels)}
    precision, recall, f1_of, support = precision_recall_fscore_support(truth, chosen, average=None, zero_division=0.0)
    figures = zip(names, support.tolist(), precision.tolist(), recall.tolist(), f1_of.tolist(), strict=True)
    keys = ("class", "documents", "precision", "recall", "f1")
    return facts | {"held_out_classes": [dict(zip(keys, row, strict=True)) for row in figures]}


def judge_numbers(predicted: np.ndarray, y: np.ndarray, known: np.ndarray) -> dict[str, Any]:
    def r2(docs):
        return r2_score(y[docs], predicted[docs])

    return {
        "held_out_documents": len(y),
        "held_out_r2": float(r2(slice(None))),
        "interval": resampled(r2, len(y)),
        "held_out_mean_error": float(np.mean(np.abs(predicted - y))),
        "base_rate_mean_error": float(np.mean(np.abs(known.mean() - y))),
    }


def losses(truth: np.ndarray, p: np.ndarray, labels: bool) -> float:
    """The mean log-loss of classes, or of the labels of a document together."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    hits = np.where(truth, np.log(p), np.log1p(-p) if labels else 0.0)
    return float(-hits.sum(axis=1).mean())


def resampled(figure: Callable, n: int) -> list[float]:
    """The 90 % interval of a figure over 500 samples of n documents, drawn with replacement."""
    if n < 2:
        return [float("nan")] * 2
    rng = np.random.default_rng(0)
    return np.nanquantile([figure(rng.integers(0, n, n)) for _ in range(500)], [0.05, 0.95]).tolist()


def class_table(rows: list[dict]) -> Table:
    table = Table("class", "documents", "precision", "recall", "F1", title="Held-out documents, by class")
    for row in rows:
        figures = (f"{row[key]:.3f}" for key in ("precision", "recall", "f1"))
        table.add_row(escape(str(row["class"])), str(row["documents"]), *figures)
    return table


def topic_table(rows: list[dict], most: int | None = None) -> Table:
    classes, supervised = "class" in rows[0], "weight" in rows[0]
    columns = ["topic", "share"] + ["pulls to"] * classes + ["weight", "90 % interval"] * supervised + ["words"]
    more = f", the {most} largest of {len(rows)}" if most and most < len(rows) else ""
    table = Table(*columns, title=f"Topics{more}")
    for row in rows[:most]:
        cells = [f"{row['topic']} {escape(row['name'])}".strip(), f"{row['share']:.1%}"]
        if classes:
            cells.append("-" if row["class"] is None else escape(str(row["class"])))
        if supervised:
            cells += [f"{row['weight']:+.2g}", span(row)]
        table.add_row(*cells, escape(" ".join(row["words"])))
    return table


def span(row: dict) -> str:
    """The interval of a row, of which a single draw has none."""
    return "{:+.2g} .. {:+.2g}".format(*row["interval"]) if "interval" in row else "-"


def covariate_tables(model) -> list[Table]:
    """A table of the covariates, if there are any."""
    rows = describe_covariates(model)
    if not rows:
        return []
    classes = "class" in rows[0]
    table = Table("covariate", *["class"] * classes, "weight", "90 % interval", title="Covariates, for a unit of each")
    for row in rows:
        cells = [escape(row["covariate"])] + ([escape(str(row["class"]))] if classes else [])
        table.add_row(*cells, f"{row['weight']:+.2g}", span(row))
    return [table]


def missed_words(pipeline, n: int = 8) -> list[dict]:
    """What the topics miss, if words speak beside them."""
    vectorizer, model = (step for _, step in pipeline.steps)
    return model.missed_words(vectorizer.get_feature_names_out(), n) if hasattr(model, "word_coef_") else []


def word_tables(pipeline) -> list[Table]:
    """A table of what the topics miss, if words speak beside them."""
    rows = [row for row in missed_words(pipeline) if row["towards"] or row["away"]]
    if not rows:
        return []
    table = Table("", "words towards it", "words away from it", title="What the topics miss")
    for row in rows[:MOST_COLUMNS]:
        table.add_row(*(escape(text) for text in (row["column"], " ".join(row["towards"]), " ".join(row["away"]))))
    return [table]


def hidden_line(model) -> str:
    """What the weights rest on, in words."""
    told = getattr(model, "hidden_", {"documents": 0})
    if not told["documents"]:
        return "No document was hidden: weights rest on documents that shaped the topics, and look surer than they are."
    return (
        f"Weights rest on {told['documents']:,} documents that no topic has seen. On these the loss of predictions is "
        f"{told['loss']:.4g}, that of the base rate {told['base_loss']:.4g} (difference +- {told['se']:.2g})."
        + (f" Topics explain {told['topics_share']:.0%} of it, words the rest." if "topics_share" in told else "")
    )
