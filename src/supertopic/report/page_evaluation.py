"""How well the responses of a page's documents are predicted: classes, labels, numbers, times."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from supertopic.inference.guarantees import abstention_curve
from supertopic.model.responses.classes import ClassResponse
from supertopic.model.responses.numbers import NumberResponse
from supertopic.report.evaluate import reliability, resampled, threshold_counts, wilson
from supertopic.report.page_documents import Shown
from supertopic.report.page_numbers import few, percent

MOST_MARKS = 400  # in a plot of points
LEAST_GAP = 0.02  # between what is predicted and observed that a sentence mentions
CURVE = 4  # every how many percent of the documents the curve of abstention is shown


def evaluate_page(shown: Shown, test: bool | None, rival: dict[str, Any] | None) -> dict[str, Any] | None:
    """Figures for a page; None if no response is known."""
    known = np.flatnonzero(shown.known)
    if not len(known) or shown.truth is None:
        return None
    response, truth, expected = shown.response, shown.truth[known], shown.expected[known]
    found: dict[str, Any] = {
        "documents": len(known),
        "test": bool(test),
        "learned": test is False,
        "rival": describe_rival(rival),
    }
    if isinstance(response, ClassResponse):
        evaluate = evaluate_labels if response.multilabel else evaluate_classes
        return found | evaluate(response, truth, expected)
    if response.kind == "time":
        return found | evaluate_times(response, truth, expected)
    y = response.offset_in_units(truth)
    means: list[float | None] = [None] * y.shape[1]
    if isinstance(response, NumberResponse) and response.kind == "rating":
        means = np.broadcast_to(response.centre, y.shape[1]).tolist()
    parts = [evaluate_numbers(y[:, r], expected[:, r], shown.lower[known, r], shown.upper[known, r], mean)
             for r, mean in enumerate(means)]  # fmt: skip
    predicted = None if rival is None else rival.get("predicted")
    if predicted is not None:
        rows = predicted[shown.rows[known]]
        for r, part in enumerate(parts):
            of_rival = evaluate_numbers(y[:, r], rows[:, r], rows[:, r], rows[:, r])
            part["rival"] = {name: of_rival[name] for name in ("score", "mean_error")}
            step = max(1, -(-len(known) // MOST_MARKS))
            part["rival_points"] = few(rows[::step, r])
    elif rival is not None:
        parts[0]["rival"] = {
            "score": few(rival["r2"]) if "r2" in rival else None, "mean_error": rival.get("mean_error")
        }  # fmt: skip
    score = float(np.mean([part["score"] for part in parts]))
    return found | {"kind": "numbers", "columns": parts, "score": score, "score_name": "R²"}


def check_rival(rival: Any, n_docs: int, n_columns: int) -> dict[str, Any] | None:
    """Figures of another model, with its predictions as an array (n_docs, n_columns) if there are any."""
    if rival is None:
        return None
    if not isinstance(rival, dict):
        raise TypeError(f"rival must be a dict such as {{'name': ..., 'accuracy': ...}}, got {type(rival).__name__}.")
    found = dict(rival)
    if found.get("predicted") is not None:
        predicted = np.asarray(found["predicted"], dtype=float)
        if predicted.shape not in ((n_docs, n_columns), (n_docs,) if n_columns == 1 else (n_docs, n_columns)):
            raise ValueError(
                f"rival['predicted'] must have shape {(n_docs, n_columns)}, a row for each text, got {predicted.shape}."
            )
        found["predicted"] = predicted.reshape(n_docs, n_columns)
    return found


def describe_rival(rival: dict[str, Any] | None) -> dict[str, Any] | None:
    """The figures of another model, without its predictions."""
    if rival is None:
        return None
    return {name: value if isinstance(value, str) else few(value, 5)
            for name, value in rival.items() if name != "predicted"}  # fmt: skip


def evaluate_classes(response: ClassResponse, truth: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Accuracy, calibration and confusion of classes; `sure` is the confidence of each prediction."""
    is_class, said, n = truth.argmax(axis=1), response.chosen(expected), len(truth)
    right, two = said == is_class, len(response.classes) == 2
    sure = response.confidence(expected)[:, 0]
    counts = np.bincount(is_class, minlength=len(response.classes))
    found = {
        "kind": "classes", "names": [str(name) for name in response.labels], "score_name": "accuracy",
        "score": float(right.mean()), "interval": wilson(right), "base": float(counts.max() / n),
        "largest": str(response.labels[int(counts.argmax())]), "truth": is_class.tolist(), "said": said.tolist(),
        "sure": few(sure), "ordered": response.kind == "grade", "probabilities": response.has_probabilities,
    }  # fmt: skip
    if response.has_probabilities:
        p = expected[:, 1] if two else sure
        hit = is_class == 1 if two else right
        base = np.broadcast_to(counts / n, expected.shape)
        figures, of_base = response.figures(truth, expected), response.figures(truth, base)
        found |= {
            "figures": [[name.replace("_", " "), few(value), few(of_base[name])]
                        for name, value in figures.items() if name != "accuracy"],
            "reliability": reliability(p, hit), "calibration": calibration(p, hit, two, str(response.labels[-1])),
        }  # fmt: skip
        if two:
            found["p"] = few(p)
    curve = abstention_curve(response, truth, expected)
    if curve is not None:
        found["abstention"] = [few(curve[name][CURVE - 1 :: CURVE]) for name in ("answered", "error", "threshold")]
    return found


def calibration(p: np.ndarray, hit: np.ndarray, two: bool, name: str) -> dict[str, Any]:
    """Whether predicted probabilities are right, on average and in tenths of the documents, in a sentence."""
    said, came, (low, high) = float(p.mean()), float(hit.mean()), wilson(hit)
    parts = np.array_split(np.argsort(p, kind="stable"), min(10, len(p)))
    gap = float(sum(len(part) * abs(p[part].mean() - hit[part].mean()) for part in parts) / len(p))
    what = f"the probability of “{name}” is {percent(said)} on average, and {percent(came)} are “{name}”" if two else (
        f"predictions are {percent(said)} sure on average, and {percent(came)} are right"
    )  # fmt: skip
    far = farthest(p, hit, parts)
    if low - LEAST_GAP <= said <= high + LEAST_GAP:
        finding = "Calibrated" if far is None else "Right on average"
        if far is not None:
            where = f"of the documents with a probability of about {percent(far[0])}, {percent(far[1])} are"
            what += f"; but {where} {f'“{name}”' if two else 'right'}"
    elif two:
        finding = "Too high" if said > came else "Too low"
    else:
        finding = "Overconfident" if said > came else "Underconfident"
    return {"finding": finding, "sentence": f"{finding}: {what}.", "gap": few(gap)}


def farthest(p: np.ndarray, hit: np.ndarray, parts: list[np.ndarray]) -> tuple[float, float] | None:
    """The predicted and the observed share where they are farthest apart, if the difference is larger than by chance.

    Each part has an interval that is so wide that 90 % of the time all of them contain their prediction.
    """
    z, gaps = float(-ndtri(0.05 / len(parts))), []
    for part in parts:
        said, (low, high) = float(p[part].mean()), wilson(hit[part], z)
        if not low - LEAST_GAP <= said <= high + LEAST_GAP:
            gaps.append((said, float(hit[part].mean())))
    return max(gaps, key=lambda gap: abs(gap[0] - gap[1]), default=None)


def evaluate_labels(response: ClassResponse, truth: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Figures of each label, and over all labels."""
    said, known = response.chosen(expected) == 1, ~np.isnan(truth)
    has, labels = np.nan_to_num(truth) == 1, []
    for j, name in enumerate(response.labels):
        own = known[:, j]
        p, hit = expected[own, j], has[own, j]
        low, high = (0.02, 0.98) if response.has_probabilities else np.quantile(expected, [0.02, 0.98])
        label = {
            "name": str(name), "documents": int(own.sum()), "has": int(hit.sum()),
            "thresholds": few(np.linspace(low, high, 49)), "counts": threshold_counts(p, hit, low, high),
            "at": [int((said[own, j] & hit).sum()), int((said[own, j] & ~hit).sum())],
        }  # fmt: skip
        if response.has_probabilities and len(p):
            label |= {"reliability": reliability(p, hit), "calibration": calibration(p, hit, True, str(name))}
        labels.append(label)
    said, has = said & known, has & known
    good, bad, missed = (int(x.sum()) for x in (said & has, said & ~has, ~said & has))

    def micro(rows: np.ndarray) -> float:
        a, b = said[rows], has[rows]
        return 2.0 * float((a & b).sum()) / max(float(a.sum() + b.sum()), 1.0)

    found = {
        "kind": "labels", "labels": labels, "score_name": "micro F1", "probabilities": response.has_probabilities,
        "score": 2.0 * good / max(2 * good + bad + missed, 1), "interval": resampled(micro, len(truth)),
        "macro": float(np.mean([f_score(label) for label in labels])),
        "all_right": float(((said == has) | ~known).all(axis=1).mean()), "base": same_for_all(has, known),
        "right": float((said == has)[known].mean()),
    }  # fmt: skip
    curve = abstention_curve(response, np.where(known, truth, np.nan), expected) if known.all() else None
    if curve is not None:
        found["abstention"] = [few(curve[name][CURVE - 1 :: CURVE]) for name in ("answered", "error", "threshold")]
    return found


def same_for_all(has: np.ndarray, known: np.ndarray) -> float:
    """The largest micro F1 of predicting the same labels for all documents: the most frequent ones."""
    order = np.argsort(-has.sum(axis=0) / np.maximum(known.sum(axis=0), 1), kind="stable")
    good, said = (np.cumsum(x.sum(axis=0)[order]) for x in (has, known))
    return float((2.0 * good / np.maximum(said + has.sum(), 1)).max())


def f_score(label: dict[str, Any]) -> float:
    """F1 of a label."""
    good, bad = label["at"]
    return f1(good, good + bad, label["has"])


def f1(good: int, said: int, has: int) -> float:
    """F1 from how many are found, said and there."""
    return 2.0 * good / max(said + has, 1)


def evaluate_numbers(
    y: np.ndarray, predicted: np.ndarray, lower: np.ndarray, upper: np.ndarray, mean: float | None = None
) -> dict[str, Any]:  # fmt: skip
    """Predicted against observed, and how many of the intervals contain the observed number.

    `mean` is that of the documents of the fit; where it is not known, these documents have their own.
    """
    error, step = y - predicted, max(1, -(-len(y) // MOST_MARKS))
    columns = (predicted, y, lower, upper)
    inside = (y >= lower) & (y <= upper)

    def explained(error: np.ndarray, rows: np.ndarray) -> float:
        around = np.sum((y[rows] - y[rows].mean()) ** 2)
        return float(1.0 - np.sum(error[rows] ** 2) / max(around, 1e-300))

    def r2(rows: np.ndarray) -> float:
        return explained(error, rows)

    everything, of_base = np.arange(len(y)), y - (y.mean() if mean is None else mean)
    return {
        "score": r2(everything), "interval": resampled(r2, len(y)) if len(y) > 2 else None,
        "mean_error": few(np.abs(error).mean()), "base_error": few(np.abs(of_base).mean()),
        "base_score": few(explained(of_base, everything)),
        "coverage": float(inside.mean()), "coverage_interval": wilson(inside),
        "points": np.array([few(column[::step]) for column in columns], object).T.tolist(),
    }  # fmt: skip


def evaluate_times(response: Any, truth: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Concordance, and the survival in thirds of the predicted risk: predicted and observed."""
    figures, parts = response.figures(truth, expected), []
    order = np.argsort(response.risk(expected), kind="stable")
    for name, own in zip(("low", "middle", "high"), np.array_split(order, 3), strict=True):
        if len(own):
            parts.append({
                "name": name, "documents": len(own), "predicted": few(expected[own].mean(axis=0)),
                "observed": few(kaplan_meier(truth[own], response.edges)),
            })  # fmt: skip
    return {
        "kind": "times", "score_name": "concordance", "score": figures["concordance"], "base": 0.5,
        "figures": [[name.replace("_", " "), few(value), None] for name, value in figures.items()],
        "edges": few(response.edges), "risks": parts,
    }  # fmt: skip


def kaplan_meier(truth: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The share that survives each of some times, from times and events (n_docs, 2)."""
    time, event = truth.T
    events = np.unique(time[event > 0])
    at_risk = np.array([(time >= t).sum() for t in events])
    died = np.array([((time == t) & (event > 0)).sum() for t in events])
    alive = np.cumprod(1.0 - died / np.maximum(at_risk, 1)) if len(events) else np.zeros(0)
    return np.append(1.0, alive)[np.searchsorted(events, edges, "right")]
