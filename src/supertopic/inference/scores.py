"""How well the responses of documents are predicted before a model learns from them: entries of its history."""

import warnings
from dataclasses import dataclass

import numpy as np

from supertopic.inference.completion import complete
from supertopic.inference.predict import NewDocuments
from supertopic.inference.shrinkage import at_best_scale
from supertopic.model.held_out import HeldOutPredictions, compare
from supertopic.model.history import CALIBRATION, COVERAGE, Batch, Changes, Figures
from supertopic.model.responses.base import Encoded, Response

MOST_SCORED = 5000  # documents of a batch; evenly spaced ones of more
LEAST_IN_A_GROUP, GROUPS, LEVEL = 20, 10, 0.9
ONE = np.ones((1, 1))  # all documents have the same weight


def score_predictions(response: Response, found: HeldOutPredictions, base_loss: np.ndarray) -> Figures:
    """Figures of predictions, and of base rates with these losses (n,)."""
    n = len(found.loss)
    if not n:
        return Figures(0, response.score_name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # R2 of one document does not exist
        warnings.simplefilter("ignore")
        score = response.score(found.truth, found.expected)
        loss, base = (known(float(np.nanmean(losses))) for losses in (found.loss, base_loss))
    name, calibration = "", None
    if response.has_sets and response.has_probabilities:
        name, calibration = CALIBRATION, calibration_error(*sureness(response, found))
    elif found.level.shape[1]:
        name, calibration = COVERAGE, float(np.mean(found.level <= LEVEL))
    return Figures(n, response.score_name, known(score), loss, base, name, calibration)


def base_losses(response: Response, truth: np.ndarray, omega: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The loss of each document if the base rate alone is predicted, (n,), with the own parameter that fits it.

    omega (n, R) are base rates, and scale (S,) is the own parameter of predictions: beside topics counts vary less.
    """
    own = response.base_scale(scale)[None]
    if not response.rescaled:
        return response.loss(truth, omega[None], own)
    gain = at_best_scale(lambda v: -response.loss(truth, omega[None], response.rescale(own, v))[:, None], ONE)
    return -gain[:, 0]


def evenly(rows: np.ndarray) -> np.ndarray:
    """Those that are scored: all, or evenly spaced ones."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_SCORED)).astype(int)]


def known(value: float) -> float | None:
    """A figure, None if it does not exist."""
    return float(value) if np.isfinite(value) else None


def sureness(response: Response, found: HeldOutPredictions) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and whether what they are about is true: all labels, the second of two classes, or the best."""
    p, truth = found.expected, found.truth
    if response.kind == "labels":
        return p.ravel(), truth.ravel()
    if p.shape[1] == 2:
        return p[:, 1], truth[:, 1]
    best = p.argmax(axis=1)[:, None]
    return np.take_along_axis(p, best, axis=1)[:, 0], np.take_along_axis(truth, best, axis=1)[:, 0]


def calibration_error(p: np.ndarray, true: np.ndarray) -> float:
    """The mean distance between probabilities and frequencies, in groups of documents that are about as sure."""
    n_groups = int(np.clip(len(p) // LEAST_IN_A_GROUP, 1, GROUPS))
    groups = np.array_split(np.argsort(p, kind="stable"), n_groups)
    return float(sum(abs(p[own].sum() - true[own].sum()) for own in groups) / len(p))


@dataclass(frozen=True)
class Unlearned:
    """A batch of documents in the form of the model before it."""

    documents: NewDocuments
    unknown_words: float | None
    changes: Changes

    def entry(self, encoded: Encoded) -> Batch:
        """Their place in the history, given their responses."""
        posterior, n_docs = self.documents.posterior, self.documents.counts.shape[0]
        figures = self.score(encoded) if posterior.supervised else self.perplexity()
        return Batch(posterior.n_batches + 1, n_docs, figures, self.unknown_words, self.changes)

    def score(self, encoded: Encoded) -> Figures:
        """How well the responses are predicted."""
        target = encoded.target
        documents, posterior = self.documents, self.documents.posterior
        rows = evenly(np.flatnonzero(posterior.response.wholly_known(target)))
        response = posterior.response.plain()
        if not len(rows):
            return Figures(0, response.score_name)
        truth = response.in_own_units(encoded.response.encoded_truth(target.y[rows]), encoded.response)
        part = documents.part(rows)
        parts = part.summarise(lambda omegas, scales, docs: compare(response, truth[docs], omegas, scales))
        base = posterior.intercept.base + part.log_exposure
        base = np.broadcast_to(base, (len(rows), posterior.columns[-1].stop))
        base_loss = base_losses(response, truth, base, posterior.scale.mean(axis=(0, 1)))
        return score_predictions(response, HeldOutPredictions(*parts), base_loss)

    def perplexity(self) -> Figures:
        """How well half of the words of each document are predicted by the other half."""
        documents = self.documents
        rows = evenly(np.arange(documents.counts.shape[0]))
        logs, tokens = complete(documents.posterior, documents.counts[rows], documents.settings)
        some = tokens > 0
        if not some.any():
            return Figures(0, "perplexity")
        mean = float(-logs.sum() / tokens.sum())
        return Figures(int(some.sum()), "perplexity", known(float(np.exp(min(mean, 700.0)))), known(mean))
