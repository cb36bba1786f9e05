"""How well known responses are predicted: accuracy, calibration, confusion; errors and coverage of numbers."""

from typing import Any, NamedTuple

import numpy as np

from supertopic.inference.predict import NewDocuments
from supertopic.model.responses.classes import ClassResponse

MOST_DOCUMENTS = 5000  # that predictions are evaluated on
MOST_MARKS = 1000  # in a plot of points
Z90 = 1.645


class Evaluation(NamedTuple):
    """How well responses are predicted."""

    losses: np.ndarray  # (n_docs,): NaN where the response is unknown
    score: float
    score_name: str
    figures: dict[str, float]  # the score, and other measures
    abstention: dict[str, np.ndarray] | None = None  # see `inference.guarantees.abstention_curve`


def known_responses(truth: np.ndarray) -> np.ndarray:
    """The numbers of the documents whose responses are known; truth is as from `Response.truth`."""
    known = np.flatnonzero(~np.isnan(truth).any(axis=1))
    if not len(known):
        raise ValueError("No response in y is known; at least some must be.")
    return known


def evaluate(
    documents: NewDocuments, truth: np.ndarray, test: bool, rival: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Figures for a page; truth is as from `Response.truth`. None if no response is known."""
    known = np.flatnonzero(~np.isnan(truth).any(axis=1))
    known = known[:: max(1, -(-len(known) // MOST_DOCUMENTS))]
    if not len(known):
        return None
    documents, truth, response = documents.part(known), truth[known], documents.posterior.response
    found: dict[str, Any] = {"documents": len(known), "test": test, "rival": rival}
    if response.labels is None and not response.has_probabilities:
        return found | evaluate_numbers(documents, truth)
    expected = documents.expected()
    if response.labels is None:
        return found | {"kind": "score", "name": response.score_name, "accuracy": response.score(truth, expected)}
    assert isinstance(response, ClassResponse)
    if response.multilabel or not response.has_probabilities:
        return found | {"accuracy": float(response.right(truth, expected).all(axis=1).mean()), "kind": "score"}
    found["figures"] = more_figures(response, truth, expected)
    return found | evaluate_classes(expected, truth.argmax(axis=1), [str(name) for name in response.labels])


def more_figures(response: ClassResponse, truth: np.ndarray, expected: np.ndarray) -> dict[str, tuple[float, float]]:
    """Measures that only some responses have, such as ordered classes, beside those of the base rate."""
    base = response.figures(truth, np.broadcast_to(truth.mean(axis=0), expected.shape))
    return {
        name.replace("_", " "): (value, base[name])
        for name, value in response.figures(truth, expected).items()
        if name not in ("accuracy", "log_loss")
    }


def evaluate_classes(p: np.ndarray, truth: np.ndarray, names: list[str]) -> dict[str, Any]:
    """Accuracy, log-loss, confusion and reliability; truth holds the number of each document's class."""
    chosen, n = p.argmax(axis=1), len(truth)
    right = chosen == truth
    confusion = np.zeros((len(names), len(names)), int)
    np.add.at(confusion, (truth, chosen), 1)
    two = len(names) == 2
    sure, hit = (p[:, 1], truth == 1) if two else (p.max(axis=1), right)
    found = {
        "kind": "classes", "accuracy": float(right.mean()), "interval": wilson(right), "names": names,
        "log_loss": float(-np.log(np.maximum(p[np.arange(n), truth], 1e-15)).mean()), "confusion": confusion.tolist(),
        "base": float(np.bincount(truth).max() / n), "reliability": reliability(sure, hit),
    }  # fmt: skip
    return found | ({"curve": threshold_curve(sure, hit)} if two else {})


def evaluate_numbers(documents: NewDocuments, truth: np.ndarray) -> dict[str, Any]:
    """Predicted against observed, and how many of the intervals contain the observed number."""
    response, predicted = documents.posterior.response, documents.expected()
    y = response.offset_in_units(truth)
    if y.shape[1] > 1:
        return {"kind": "score", "accuracy": response.score(truth, predicted)}
    lower, upper = documents.interval(0.9)
    y, predicted, lower, upper = y[:, 0], predicted[:, 0], lower[:, 0], upper[:, 0]
    error, step = y - predicted, max(1, -(-len(y) // MOST_MARKS))
    return {
        "kind": "numbers", "r2": float(1.0 - np.sum(error**2) / max(np.sum((y - y.mean()) ** 2), 1e-300)),
        "mean_error": float(np.abs(error).mean()), "base_error": float(np.abs(y - y.mean()).mean()),
        "coverage": float(((y >= lower) & (y <= upper)).mean()),
        "points": [[float(a), float(b)] for a, b in zip(predicted[::step], y[::step], strict=True)],
    }  # fmt: skip


def wilson(right: np.ndarray) -> list[float]:
    """Wilson's 90 % interval of a share."""
    n, p, z = len(right), right.mean(), Z90
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [float((middle - half) / (1 + z * z / n)), float((middle + half) / (1 + z * z / n))]


def reliability(p: np.ndarray, hit: np.ndarray) -> list[dict[str, float]]:
    """Predicted probabilities and observed frequencies, in tenths of the documents."""
    rows = []
    for part in np.array_split(np.argsort(p, kind="stable"), min(10, len(p))):
        low, high = wilson(hit[part])
        rows.append({
            "predicted": float(p[part].mean()), "observed": float(hit[part].mean()), "lower": low, "upper": high,
            "documents": len(part),
        })  # fmt: skip
    return rows


def threshold_curve(p: np.ndarray, hit: np.ndarray) -> list[dict[str, float]]:
    """For thresholds from 0.02 to 0.98 the true and false positive rates, and precision."""
    rows, n, m = [], max(int(hit.sum()), 1), max(int((~hit).sum()), 1)
    for threshold in np.linspace(0.02, 0.98, 49):
        called = p >= threshold
        good = int((called & hit).sum())
        rows.append({
            "threshold": float(threshold), "found": good / n, "false alarms": int((called & ~hit).sum()) / m,
            "precision": good / max(int(called.sum()), 1), "accuracy": float((called == hit).mean()),
        })  # fmt: skip
    return rows
