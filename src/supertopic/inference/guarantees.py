"""Sets, intervals and decisions with guarantees, which held-out documents give."""

import math
from typing import Any

import numpy as np

from supertopic.model.held_out import HeldOutPredictions, answer_threshold, conformal_threshold, least_documents
from supertopic.model.posterior import Posterior
from supertopic.model.responses.classes import ClassResponse

WIDEST = 1.0 - 1e-9  # the level of an interval
ROUNDING = 1e-5  # rounding error of scores: held-out documents have float32, and equal predictions must stay equal
MORE = "Fit with a larger held_out=, or pass labelled documents that were not in the fit to conformalize()."


def held_out_predictions(posterior: Posterior, what: str) -> HeldOutPredictions:
    """The predictions for held-out documents."""
    found = posterior.held_out_predictions
    if found is None or not len(found.weight):
        raise ValueError(f"{what} needs held-out documents, and this model has none. {MORE}")
    return found


def threshold_of(scores: np.ndarray, known: HeldOutPredictions, level: float) -> float:
    """The conformal threshold of scores of held-out documents; an error if there are too few for this level."""
    weight, rare = known.weight, known.n_rare
    found = conformal_threshold(scores, weight, level, rare)
    if found == math.inf and rare > 0 and conformal_threshold(scores, weight, level) < math.inf:
        raise ValueError(
            f"level={level:g} cannot be guaranteed: {rare / (weight.sum() + rare):.1%} of the documents have classes "
            "that are too small to be held out. Lower the level, use by_class=True, leave these classes out, or pass "
            "labelled documents that were not in the fit to conformalize()."
        )
    if found == math.inf:
        raise ValueError(
            f"level={level:g} needs {least_documents(level)} held-out documents, and there are "
            f"{weight.sum():.0f}. Lower the level. {MORE}"
        )
    return found


def predict_sets(posterior: Posterior, expected: np.ndarray, level: float, by_class: bool) -> np.ndarray:
    """Which classes or labels are in the set of each document, (n_docs, n_classes); expected are its predictions."""
    response, known = class_response(posterior), held_out_predictions(posterior, "A set of classes")
    scores, true = response.set_scores(known.expected), known.truth > 0.5
    if by_class:  # one that has too few documents is in all sets
        parts = [(scores[own, j], known.weight[own]) for j, own in enumerate(true.T)]
        return joins_before(response.set_scores(expected), np.array([conformal_threshold(*p, level) for p in parts]))
    last = np.where(true, scores, -np.inf).max(axis=1)  # of a document's labels the one that joins last
    return joins_before(response.set_scores(expected), np.asarray(threshold_of(last, known, level)))


def joins_before(scores: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Which scores are not above a threshold, but for rounding."""
    return scores <= threshold + ROUNDING * np.where(np.isfinite(threshold), 1.0 + np.abs(threshold), 1.0)


def above(confidence: np.ndarray, threshold: float) -> np.ndarray:
    """Which confidences are above a threshold by more than rounding."""
    return np.asarray(confidence > threshold + (ROUNDING * (1.0 + abs(threshold)) if np.isfinite(threshold) else 0.0))


def conformal_level(posterior: Posterior, level: float) -> np.ndarray:
    """For each column of numbers the level of the model's own intervals that contains a share `level` of them, (R,)."""
    known = held_out_predictions(posterior, "An interval with conformal=True")
    if not known.level.shape[1]:
        raise ValueError(
            f"conformal=True needs documents whose numbers are known, and those of a {posterior.response.kind} are not."
        )
    return np.array([min(threshold_of(own, known, level), WIDEST) for own in known.level.T])


def class_response(posterior: Posterior) -> ClassResponse:
    """The response, if it has sets."""
    response = posterior.response
    if not isinstance(response, ClassResponse) or not response.has_sets:
        raise ValueError(f"Sets and decisions need classes or labels, and this model has a {response.kind}.")
    return response


def error_threshold(posterior: Posterior, max_error: float, certainty: float) -> tuple[float, float]:
    """Above which confidence answers are wrong at most so often, and the share that is expected to be above it."""
    response, known = class_response(posterior), held_out_predictions(posterior, "max_error")
    sure, right = response.confidence(known.expected), response.right(known.truth, known.expected)
    weight, n = known.weight, math.ceil(known.n_rare)
    if n:  # nothing is known of documents whose classes are never held out: the answers may be certain and wrong
        sure, right = np.append(sure, np.full((n, 1), np.inf), axis=0), np.append(right, np.zeros((n, 1), bool), axis=0)
        weight = np.append(weight, np.full(n, known.n_rare / n))
    return answer_threshold(sure, right, weight, max_error, certainty)


def abstention_curve(response: Any, truth: np.ndarray, expected: np.ndarray) -> dict[str, np.ndarray] | None:
    """The error rate among the documents (or labels) with the surest predictions, against how many these are.

    None if the response has no classes. The arrays `answered`, `error` and `threshold` have an entry for each
    percentage of the documents.
    """
    if not isinstance(response, ClassResponse) or not response.has_sets:
        return None
    sure, right = response.confidence(expected).ravel(), response.right(truth, expected).ravel()
    order = np.argsort(-sure, kind="stable")
    ends = np.unique(np.ceil(np.linspace(0.01, 1.0, 100) * len(order)).astype(int))
    wrong = np.cumsum(~right[order])
    return {"answered": ends / len(order), "error": wrong[ends - 1] / ends, "threshold": sure[order][ends - 1]}
