"""How much each term contributes to predictions, measured on held-out documents.

Two measures: the part of the variance of omega that a term has, and the part of the accuracy (or R2) that is lost
without it, averaged over the orders in which terms can be added (Shapley's value). Both have a bootstrap interval.
"""

import itertools
import math
from typing import Any

import numpy as np

from supertopic.corpus.source import Target
from supertopic.model.responses.base import Response

RESAMPLES, MOST_DOCUMENTS = 200, 2000
INTERVAL = 0.05, 0.95


def describe_contributions(response: Response, target: Target, parts: dict[str, np.ndarray]) -> dict[str, Any]:
    """For each term its part of the score's variance and of the accuracy; `parts` are (n_docs, R) of omega.

    Documents with a response that is unknown in part are left out; the dict is empty if fewer than two are left.
    """
    known = np.flatnonzero(response.wholly_known(target))[:MOST_DOCUMENTS]
    if len(known) < 2:
        return {}
    truth, offset = response.encoded_truth(target.y[known]), np.broadcast_to(target.offset, target.weight.shape)[known]
    values = {name: part[known] for name, part in parts.items()}
    expected = {
        subset: response.expected(offset + sum((values[name] for name in subset), np.zeros_like(offset)))
        for n in range(len(values) + 1)
        for subset in itertools.combinations(values, n)
    }
    rng, everything = np.random.default_rng(0), np.arange(len(known))
    samples = [everything, *(rng.integers(0, len(known), len(known)) for _ in range(RESAMPLES))]
    shares = np.array([variance_shares([part[docs] for part in values.values()]) for docs in samples])
    scores = [
        {subset: response.score(truth[docs], found[docs]) for subset, found in expected.items()} for docs in samples
    ]
    gains = np.array([shapley(tuple(values), score) for score in scores])
    terms: dict[str, Any] = {}
    for i, name in enumerate(values):
        terms[name] = {
            "share": float(shares[0, i]), "share_interval": np.quantile(shares[1:, i], INTERVAL).tolist(),
            "gain": float(gains[0, i]), "gain_interval": np.quantile(gains[1:, i], INTERVAL).tolist(),
        }  # fmt: skip
    facts = {"score": response.score_name, "value": scores[0][tuple(values)], "base_value": scores[0][()]}
    return facts | {"terms": terms}


def variance_shares(parts: list[np.ndarray]) -> list[float]:
    """The covariance of each part with their sum, divided by the variance of the sum; they sum to 1."""
    centred = [part - part.mean(axis=0) for part in parts]
    if parts[0].shape[1] > 1:  # a constant of all columns changes no prediction of classes
        centred = [part - part.mean(axis=1, keepdims=True) for part in centred]
    total = np.sum(centred, axis=0)
    whole = float(np.vdot(total, total))
    return [float(np.vdot(part, total)) / whole if whole > 0 else 0.0 for part in centred]


def shapley(names: tuple[str, ...], value: dict[tuple[str, ...], float]) -> list[float]:
    """What each name adds to the value of a set, averaged over all orders."""
    found = []
    for name in names:
        others, gain = [other for other in names if other != name], 0.0
        for n in range(len(others) + 1):
            weight = math.factorial(n) * math.factorial(len(others) - n) / math.factorial(len(names))
            for subset in itertools.combinations(others, n):
                joined = tuple(other for other in names if other in subset or other == name)
                gain += weight * (value[joined] - value[subset])
        found.append(gain)
    return found
