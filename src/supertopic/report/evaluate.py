"""How well known responses are predicted: which are known, intervals of shares, calibration, thresholds."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Z90 = 1.645
RESAMPLES = 500


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


def wilson(right: np.ndarray, z: float = Z90) -> list[float]:
    """Wilson's interval of a share, by default the 90 % interval."""
    n, p = len(right), right.mean()
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [float((middle - half) / (1 + z * z / n)), float((middle + half) / (1 + z * z / n))]


def resampled(figure: Callable[[np.ndarray], float], n: int) -> list[float]:
    """The 90 % interval of a figure over samples of n documents, drawn with replacement."""
    if n < 2:
        return [float("nan")] * 2
    rng = np.random.default_rng(0)
    return np.nanquantile([figure(rng.integers(0, n, n)) for _ in range(RESAMPLES)], [0.05, 0.95]).tolist()


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


def threshold_counts(p: np.ndarray, hit: np.ndarray, low: float = 0.02, high: float = 0.98) -> list[list[int]]:
    """For 49 thresholds the numbers of true and of false positives."""
    order = np.argsort(p, kind="stable")
    good = np.append(0, np.cumsum(hit[order]))
    first = np.searchsorted(p[order], np.linspace(low, high, 49), "left")
    yes = good[-1] - good[first]
    return [yes.tolist(), (len(p) - first - yes).tolist()]
