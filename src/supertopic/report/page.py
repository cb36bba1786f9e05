"""One page that a colleague can read: what was fitted, what topics do, how well it predicts, and why.

The page is one file that asks no other host for anything. All that is shown is in it as JSON, too, which its tables are
downloaded from. Documents are sampled, so that it stays small.
"""

import json
import os
import warnings
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from supertopic.report.explain import explain
from supertopic.report.summary import describe_covariates

MOST_DOCUMENTS, MOST_LETTERS = 120, 2500  # in the explorer, and of each
MOST_JUDGED = 5000  # documents that predictions are judged on
TYPICAL = 3  # documents of a topic
MOST_MARKS = 1000  # in a plot of points


class Page(str):
    """A page, which is HTML, shown as what it is and where it is: it is too long for a notebook."""

    path: Path | None

    def __new__(cls, html: str, path: str | os.PathLike[str] | None = None) -> "Page":
        page = super().__new__(cls, html)
        page.path = None if path is None else Path(path)
        return page

    def __repr__(self) -> str:
        where = f"in {self.path}" if self.path else "which report(..., path=...) writes to a file"
        return f"<a page of {len(self) / 1000:,.0f} kB, {where}>"

    def _repr_html_(self) -> str:
        if self.path is None:
            return escape(repr(self))
        return f"<a href='{escape(self.path.as_posix())}' target='_blank'>{escape(str(self.path))}</a>"


def make_page(
    pipeline: Any, texts: list[str], y: Any = None, *, title: str = "", unseen: bool = False, rival: dict | None = None,
    **beside: Any,
) -> str:  # fmt: skip
    """The page of a fitted pipeline of a vectorizer and a model, and of some documents.

    Parameters
    ----------
    pipeline : Pipeline
        A fitted vectorizer and a fitted estimator with a response.
    texts : list of str
        Documents to judge and to explain.
    y : array-like, optional
        Their responses, of which unknown ones are left out.
    title : str
        The page's heading.
    unseen : bool
        Whether the model has not learned from these documents, so that they show how well it predicts.
    rival : dict, optional
        What another model says of the same documents, {"name": ..., "accuracy": ..., "log_loss": ...}.
    **beside
        covariates and exposure of the documents.
    """
    from jinja2 import Environment, PackageLoader

    vectorizer, model = pipeline.steps[0][1], pipeline.steps[-1][1]
    if not hasattr(model, "coef_"):
        raise ValueError(f"A report is about a response, which {type(model).__name__} has none of.")
    texts = [str(text) for text in texts]
    X, names = csr_array(vectorizer.transform(texts)), vectorizer.get_feature_names_out()
    y = None if y is None else np.asarray(y)
    topics = describe(model, names, X, texts)
    data = {
        "title": title or f"{type(model).__name__} on {len(texts):,} documents",
        "columns": model._column_names(),
        "facts": facts(model, len(texts)),
        "traces": [row.tolist() for row in model.log_joint_],
        "iterations": model.log_joint_iterations_.tolist(),
        "burn_in": int(model.burn_in),
        "diagnosis": diagnosis(model),
        "topics": topics,
        "covariates": describe_covariates(model),
        "missed": model.missed_words(names, 12) if hasattr(model, "word_coef_") else [],
        "judged": judge(model, X, y, unseen, rival, beside) if y is not None else None,
        "documents": explain_some(pipeline, model, X, texts, y, beside),
        "numbers": not hasattr(model, "classes_"),
        "scores": not hasattr(model, "predict_proba"),
    }
    environment = Environment(loader=PackageLoader("supertopic.report"), autoescape=True, trim_blocks=True)
    environment.filters["signed"] = lambda x: f"{x:+.2f}"
    # inside <script> only "<" could end it, and no JSON needs one
    packed = json.dumps(data, allow_nan=False, default=float).replace("<", "\\u003c")
    return environment.get_template("page.html").render(**data, packed=packed, plots=Plots(data))


def facts(model: Any, n_docs: int) -> dict[str, str]:
    """What was fitted, in words."""
    told = model.hidden_
    found = {
        "Model": f"{type(model).__name__}, {model._n_features_out} topics, c = {model.c:g}",
        "Response": ", ".join(map(str, getattr(model, "classes_", getattr(model, "response_names_", ["a number"])))),
        "Learned from": f"{len(model.doc_topic_):,} documents, {model.n_features_in_:,} words"
        if hasattr(model, "doc_topic_") else f"{model.n_features_in_:,} words",
        "Sampler": f"{model.sampler_}, {len(model._eta)} chains, {model.burn_in} iterations and {model.n_draws} draws",
        "Seed": str(model.seed_),
        "This page": f"{n_docs:,} documents",
    }  # fmt: skip
    imagined = model._learned["imagined"].sum(axis=1).mean()
    if imagined > 0:
        names = ", ".join(model._seed_names().values())
        found["Known before"] = f"{imagined:,.0f} pseudo-counts in each chain" + f", of seeds for {names}" * bool(names)
    if model.n_batches_ > 1:
        found["Batches"] = f"{model.n_batches_}, of which the last one is told of here"
    if told.get("documents"):
        found["Weights rest on"] = (
            f"{told['documents']:,} documents that no topic has seen: their loss is {told['loss']:.4g}, that of the "
            f"base rate {told['base_loss']:.4g} (difference ± {told['se']:.2g})"
        )
    if "topics_share" in told:
        found["Explained by topics"] = f"{told['topics_share']:.0%}; the rest by single words"
    return found


def diagnosis(model: Any) -> dict[str, Any]:
    """R-hat and the like, and advice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.diagnose()
    rows = [row[:3] for row in found.rows()]  # what hidden documents tell is among the facts
    return {"rows": [row for row in rows if any(row[1:])], "advice": found.advice}


def describe(model: Any, names: np.ndarray, X: csr_array, texts: list[str]) -> list[dict[str, Any]]:
    """The topics in their own order, with all weights, and documents that they are made of."""
    words, shares = model.top_words(names, 12), model._topic_shares[model.best_chain_]
    likely, exclusive = model.top_words(names, 12, "probability"), model.exclusivity()
    lower, upper = (model.coef_, model.coef_) if model.coef_draws_.shape[1] < 2 else model.coef_interval(0.9)
    agreed, found = model.topic_agreement(), []
    effects = np.zeros(model.coef_.T.shape)
    if model.coef_draws_.shape[1] > 1:
        _, _, change, _, _, told = model._effects(0.1, 0.9)
        told = [str(name) for name in told]
        effects = change[:, [told.index(name) if name in told else r for r, name in enumerate(model._column_names())]]
    inferred = model.transform(X) if X.shape[0] else np.zeros((0, len(words)))
    lengths = np.asarray(X.sum(axis=1)).ravel()
    for k, own in enumerate(words):
        order = np.argsort(-inferred[:, k] * (lengths > 9), kind="stable")[:TYPICAL]
        found.append({
            "topic": k, "name": model.topic_name(k), "words": own, "likely": likely[k], "share": float(shares[k]),
            "exclusivity": float(exclusive[k]), "agreed": None if np.isnan(agreed[k]) else float(agreed[k]),
            "weights": model.coef_[:, k].tolist(), "lower": lower[:, k].tolist(), "upper": upper[:, k].tolist(),
            "effect": effects[k].tolist(), "typical": [[short(texts[i], 300), float(inferred[i, k])] for i in order],
        })  # fmt: skip
    return found


def say(value: Any) -> str:
    """A response as one reads it."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def judge(model: Any, X: csr_array, y: np.ndarray, unseen: bool, rival: dict | None, beside: dict) -> dict | None:
    """How well known responses are predicted."""
    known = np.flatnonzero(
        [value is not None and value == value for value in y.tolist()] if y.ndim == 1 else y[:, 0] == y[:, 0]
    )
    known = known[:: max(1, -(-len(known) // MOST_JUDGED))]
    if not len(known):
        return None
    beside = {name: np.asarray(values)[known] for name, values in beside.items()}
    found: dict[str, Any] = {"documents": len(known), "unseen": unseen, "rival": rival}
    if not hasattr(model, "classes_"):
        return found | judge_numbers(model, X[known], y[known].astype(float), beside)
    if y.ndim == 2 or model.multilabel_ or not hasattr(model, "predict_proba"):
        return found | {"accuracy": float(model.score(X[known], y[known], **beside)), "kind": "score"}
    p, names = model.predict_proba(X[known], **beside), [str(name) for name in model.classes_]
    truth = np.array([names.index(str(value)) if str(value) in names else -1 for value in y[known].tolist()])
    p, truth = p[truth >= 0], truth[truth >= 0]
    chosen, n = p.argmax(axis=1), len(truth)
    right = chosen == truth
    confusion = np.zeros((len(names), len(names)), int)
    np.add.at(confusion, (truth, chosen), 1)
    sure = p[:, 1] if len(names) == 2 else p.max(axis=1)
    hit = truth == 1 if len(names) == 2 else right
    found |= {
        "kind": "classes", "accuracy": float(right.mean()), "interval": wilson(right), "names": names,
        "log_loss": float(-np.log(np.maximum(p[np.arange(n), truth], 1e-15)).mean()), "confusion": confusion.tolist(),
        "base": float(np.bincount(truth).max() / n), "reliability": reliability(sure, hit),
    }  # fmt: skip
    if len(names) == 2:
        found["curve"] = curve(sure, hit)
    return found


def is_known(y: np.ndarray) -> np.ndarray:
    """Which responses are neither None nor NaN, (n_docs,)."""
    return np.array([value is not None and value == value for value in (y if y.ndim == 1 else y[:, 0]).tolist()], bool)


def wilson(right: np.ndarray) -> list[float]:
    """Wilson's 90 % interval of a share."""
    n, p, z = len(right), right.mean(), 1.645
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [float((middle - half) / (1 + z * z / n)), float((middle + half) / (1 + z * z / n))]


def reliability(p: np.ndarray, hit: np.ndarray) -> list[dict[str, float]]:
    """What was foretold and what came true, in tenths of the documents."""
    rows = []
    for part in np.array_split(np.argsort(p, kind="stable"), min(10, len(p))):
        low, high = wilson(hit[part])
        rows.append({
            "foretold": float(p[part].mean()), "true": float(hit[part].mean()), "lower": low, "upper": high,
            "documents": len(part),
        })  # fmt: skip
    return rows


def curve(p: np.ndarray, hit: np.ndarray) -> list[dict[str, float]]:
    """For thresholds from 0.02 to 0.98 the shares of true and false alarms, and precision."""
    rows, n, m = [], max(int(hit.sum()), 1), max(int((~hit).sum()), 1)
    for threshold in np.linspace(0.02, 0.98, 49):
        called = p >= threshold
        good = int((called & hit).sum())
        rows.append({
            "threshold": float(threshold), "found": good / n, "false alarms": int((called & ~hit).sum()) / m,
            "precision": good / max(int(called.sum()), 1), "accuracy": float((called == hit).mean()),
        })  # fmt: skip
    return rows


def judge_numbers(model: Any, X: csr_array, y: np.ndarray, beside: dict) -> dict[str, Any]:
    """Predicted against observed, and how many of the intervals hold what came."""
    predicted, (lower, upper) = model.predict(X, **beside), model.predict_interval(X, 0.9, **beside)
    if y.ndim == 2:
        return {"kind": "score", "accuracy": float(model.score(X, y, **beside))}
    error = y - predicted
    step = max(1, -(-len(y) // MOST_MARKS))
    return {
        "kind": "numbers", "r2": float(1.0 - np.sum(error**2) / max(np.sum((y - y.mean()) ** 2), 1e-300)),
        "mean_error": float(np.abs(error).mean()), "base_error": float(np.abs(y - y.mean()).mean()),
        "coverage": float(((y >= lower) & (y <= upper)).mean()),
        "points": [[float(a), float(b)] for a, b in zip(predicted[::step], y[::step], strict=True)],
    }  # fmt: skip


def explain_some(pipeline: Any, model: Any, X: csr_array, texts: list[str], y, beside: dict) -> list[dict[str, Any]]:
    """Some documents with what each of their words adds to the prediction: those that surprise most, then others."""
    rng, chosen = np.random.default_rng(0), np.zeros(0, int)
    if y is not None and y.ndim == 1:
        known = np.flatnonzero(is_known(y))
        some = rng.permutation(known)[:MOST_JUDGED]
        if len(some):
            own = {name: np.asarray(values)[some] for name, values in beside.items()}
            chosen = some[model.surprising(X[some], y[some], MOST_DOCUMENTS // 3, **own)]
    rest = np.setdiff1d(rng.permutation(len(texts))[:MOST_DOCUMENTS], chosen, assume_unique=True)
    surprising, found = len(chosen), []
    for place, i in enumerate([*chosen, *rest][:MOST_DOCUMENTS]):
        own = {name: np.asarray(values)[[i]] for name, values in beside.items()}
        told = explain(pipeline, texts[i], **own)
        column = told.column
        found.append({
            "number": int(i), "text": short(texts[i], MOST_LETTERS), "surprising": place < surprising,
            "true": None if y is None or y.ndim == 2 or not is_known(y[[i]])[0] else say(y[i]),
            "column": str(told.columns[column]),
            "predicted": [[str(name), float(value), float(a), float(b)] for name, value, a, b in sorted(
                zip(told.mean_names, told.mean, *told.mean_interval, strict=True), key=lambda row: -row[1])[:3]],
            "words": [[word, round(through, 6), round(direct, 6)] for word, through, direct in zip(
                told.words, told.through_topics[:, column].tolist(), told.direct[:, column].tolist(), strict=True)],
            "topics": [[told.topic_labels[k], round(float(told.topics[k, column]), 4)] for k in np.argsort(
                -np.abs(told.topics[:, column]))[:4].tolist() if told.topic_shares[k] > 0],
            "constant": float(told.constant[column]), "covariates": float(told.covariates[column]),
            "omega": float(told.omega[column]),
        })  # fmt: skip
    return found


class Plots:
    """Numbers as places in a picture."""

    def __init__(self, data: dict[str, Any]):
        self.data = data
        ends = [abs(x) for topic in data["topics"] for side in ("lower", "upper") for x in topic[side]]
        self.most = max([*ends, 1e-9])

    def across(self, weight: float) -> float:
        """A weight as a place from 0 to 100."""
        return round(50 + 50 * max(-1.0, min(1.0, weight / self.most)), 2)

    def trace(self, chain: int, width: int, height: int) -> str:
        """The log joint of a chain as points of a line."""
        values, x = self.data["traces"], self.data["iterations"]
        late = [
            v for row in values for i, v in zip(x, row, strict=True) if 3 * i >= self.data["burn_in"]
        ]  # not the start
        low, high = min(late), max(late)
        places = []
        for i, value in zip(x, values[chain], strict=True):
            part = (value - low) / (high - low) if high > low else 0.5
            places.append(f"{width * i / max(x[-1], 1):.1f},{height * (1 - max(part, 0.0)):.1f}")
        return " ".join(places)

    def heat(self, weight: float) -> str:
        """The colour of a weight."""
        part = min(abs(weight) / self.most, 1.0) ** 0.7
        return f"color-mix(in srgb, var(--{'towards' if weight > 0 else 'away'}) {100 * part:.0f}%, transparent)"
