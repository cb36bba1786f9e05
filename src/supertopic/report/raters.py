"""What a posterior says of raters, and how far raters agree."""

from typing import Any, NamedTuple

import numpy as np

from supertopic.corpus.made_frames import make_frame
from supertopic.model.posterior import Posterior
from supertopic.model.responses import CrowdGaussian, CrowdLogistic
from supertopic.model.responses.answers import Answers
from supertopic.model.responses.averages import draw_interval

RESAMPLES = 500
INTERVAL = 0.05, 0.95


def confusion_draws(posterior: Posterior) -> np.ndarray:
    """Draws of the confusion matrices, (n, n_raters, L, L)."""
    response = posterior.response
    if not isinstance(response, CrowdLogistic):
        raise AttributeError("The model was not fitted to classes that several raters gave.")
    return np.concatenate(posterior.scale).reshape(-1, len(response.raters), response.n_classes, response.n_classes)


def rating_draws(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Draws of each rater's bias and standard deviation in the units of y, (n, n_raters) each."""
    response = posterior.response
    if not isinstance(response, CrowdGaussian):
        raise AttributeError("The model was not fitted to ratings of several raters.")
    bias, precision = np.split(np.concatenate(posterior.scale)[:, 1:], 2, axis=1)
    return bias * response.unit, response.unit / np.sqrt(precision)


def rater_frame(posterior: Posterior, level: float = 0.9) -> Any:
    """A data frame with a row for each rater: answers, and accuracy or bias and sd, each with its interval."""
    response: Any = posterior.response
    if isinstance(response, CrowdLogistic):
        rate = posterior.mean_response.expected(posterior.intercept.base)
        right = np.einsum("nrtt,t->nr", confusion_draws(posterior), rate / rate.sum())
        measures = {"accuracy": right}
    else:
        bias, sd = rating_draws(posterior)
        measures = {"bias": bias, "sd": sd}
    columns: dict[str, Any] = {"rater": response.raters, "answers": np.asarray(response.n_answers).astype(int)}
    for name, draws in measures.items():
        columns[name] = draws.mean(axis=0)
        ends = draw_interval(draws, level)
        for side, values in zip(("lower", "upper"), ends, strict=True):
            columns[side if len(measures) == 1 else f"{name}_{side}"] = values
    return make_frame(columns)


def confusion_frame(posterior: Posterior, level: float = 0.9) -> Any:
    """A data frame: rater, true class, answer, its probability and interval."""
    draws, response = confusion_draws(posterior), posterior.response
    assert isinstance(response, CrowdLogistic)
    shape, names = draws.shape[1:], response.classes.astype(object)
    rater, true, said = (index.ravel() for index in np.indices(shape))
    lower, upper = draw_interval(draws, level)
    return make_frame({
        "rater": response.raters[rater], "true": names[true], "answer": names[said],
        "probability": draws.mean(axis=0).ravel(), "lower": lower.ravel(), "upper": upper.ravel(),
    })  # fmt: skip


class Agreement(NamedTuple):
    """How far raters agree: Krippendorff's alpha, which is 1 where all agree and 0 where they agree as chance does."""

    alpha: float
    lower: float  # the ends of the 90 % interval, from documents drawn with replacement
    upper: float
    raters: Any  # a data frame: rater, answers, and what of them the other raters say as well

    def __repr__(self) -> str:
        return f"Krippendorff's alpha {self.alpha:.3f} ({self.lower:.3f} .. {self.upper:.3f})\n{self.raters}"


def measure_agreement(answers: Answers, numbers: bool) -> Agreement:
    """Krippendorff's alpha of classes (nominal) or of numbers (interval), and the agreement of each rater."""
    values, index = np.unique(answers.value.astype(float if numbers else object), return_inverse=True)
    size = np.bincount(answers.doc, minlength=answers.n_docs).astype(float)
    some = size > 1
    if not some.any():
        raise ValueError("No document has two answers or more: there is no agreement to measure.")
    parts = np.zeros((answers.n_docs, 2 if numbers else len(values)))
    if numbers:
        x = answers.value.astype(float) - np.mean(values)
        for column, own in enumerate((x, x**2)):
            parts[:, column] = np.bincount(answers.doc, own, answers.n_docs)
    else:
        np.add.at(parts, (answers.doc, index), 1.0)
    parts, size = parts[some], size[some]
    rng = np.random.default_rng(0)
    samples = rng.multinomial(len(size), np.full(len(size), 1.0 / len(size)), RESAMPLES)
    alphas = krippendorff(parts, size, samples, numbers)
    alpha = krippendorff(parts, size, np.ones((1, len(size))), numbers)[0]
    lower, upper = np.nanquantile(alphas, INTERVAL)
    frame = make_frame({
        "rater": answers.raters, "answers": np.bincount(answers.rater, minlength=len(answers.raters)),
        "agreement": pair_agreement(answers, index, values, numbers),
    })  # fmt: skip
    return Agreement(float(alpha), float(lower), float(upper), frame)


def krippendorff(parts: np.ndarray, size: np.ndarray, samples: np.ndarray, numbers: bool) -> np.ndarray:
    """alpha for each row of samples (n, n_docs), which say how often each document is there.

    parts (n_docs, m) are the counts of each class, or the sums of numbers and of their squares; size counts answers.
    """
    if numbers:
        observed, n = 2.0 * (size * parts[:, 1] - parts[:, 0] ** 2), samples @ size
        first, second = (samples @ parts).T
        expected = 2.0 * (n * second - first**2)
    else:
        observed, n = size**2 - (parts**2).sum(axis=1), samples @ size
        expected = n**2 - ((samples @ parts) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.0 - (samples @ (observed / (size - 1.0))) * (n - 1.0) / expected


def pair_agreement(answers: Answers, index: np.ndarray, values: np.ndarray, numbers: bool) -> np.ndarray:
    """Of each rater the share of pairs with other raters that are equal, or the correlation with their mean."""
    n_raters, n_docs = len(answers.raters), answers.n_docs
    found = np.full(n_raters, np.nan)
    size = np.bincount(answers.doc, minlength=n_docs)[answers.doc] - 1.0
    if numbers:
        x = values[index]
        others = (np.bincount(answers.doc, x, n_docs)[answers.doc] - x) / np.where(size > 0, size, np.nan)
        for r in range(n_raters):
            own = (answers.rater == r) & (size > 0)
            if own.sum() > 2 and x[own].std() > 0 and others[own].std() > 0:
                found[r] = np.corrcoef(x[own], others[own])[0, 1]
        return found
    key = answers.doc * len(values) + index
    same = np.bincount(key, minlength=n_docs * len(values))[key] - 1.0
    pairs = np.bincount(answers.rater, size, n_raters)
    return np.where(pairs > 0, np.bincount(answers.rater, same, n_raters) / np.where(pairs > 0, pairs, 1.0), np.nan)
