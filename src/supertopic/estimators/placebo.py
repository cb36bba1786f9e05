"""A placebo test: what the model reports if the responses are unrelated to the documents."""

import warnings
from collections import defaultdict
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from supertopic.corpus.frames import is_missing, take
from supertopic.corpus.made_frames import frame_of_rows
from supertopic.estimators.validation import check_level
from supertopic.model.posterior import Posterior
from supertopic.model.responses.averages import draw_interval
from supertopic.report.summary import coef_draws, covariate_draws


def placebo(
    self: Any, X: ArrayLike, y: ArrayLike, n: int = 1, groups: ArrayLike | None = None, *, level: float = 0.9,
    **fit: Any,
) -> Any:  # fmt: skip
    """Fit the model to shuffled responses, and compare how often intervals exclude 0.

    If responses are shuffled, no topic has an effect, and about 1 - `level` of the intervals should exclude 0. If the
    fitted model has hardly more such intervals than the placebo fits, do not interpret its effects. This takes as long
    as n more fits.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        The documents that the model was fitted to.
    y : array-like
        Their responses.
    n : int, default=1
        The number of placebo fits, each with other shuffled responses and another seed.
    groups : array-like of shape (n_docs,), optional
        Responses are shuffled inside each group only, such as the documents of one author or of one year. If the model
        was fitted with groups, pass the same here.
    level : float, default=0.9
        The posterior probability inside the intervals.
    **fit
        Further arguments of `fit`, such as `covariates`, which stay with their documents. An `exposure` is shuffled
        together with the counts.

    Returns
    -------
    DataFrame
        A row for the model and for each placebo fit: fit, seed, topics and covariates (the shares of the intervals of
        their weights that exclude 0), held_out_loss and base_loss.
    """
    posterior = self._fitted()
    check_level(level)
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n must be a whole number of fits, 1 or more, got {n!r}.")
    n_docs = y.shape[0] if hasattr(y, "shape") else len(y)
    if posterior.groups and groups is None:
        raise ValueError("The model was fitted with groups; pass groups= here, too.")
    places = group_places(groups, n_docs)
    rows = [describe_fit("model", posterior, level)]
    seeds = np.random.SeedSequence(posterior.seed).generate_state(n)
    for i, seed in enumerate(seeds.tolist()):
        order, own = shuffle(places, n_docs, seed), fit | ({"groups": groups} if posterior.groups else {})
        if own.get("exposure") is not None:
            own["exposure"] = take(own["exposure"], order)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found no relation")  # there is none
            other = clone(self).set_params(random_state=seed).fit(X, take(y, order), **own)
        rows.append(describe_fit(f"placebo {i + 1}", other.posterior_, level))
    return frame_of_rows(rows)


def group_places(groups: Any, n_docs: int) -> list[np.ndarray]:
    """The row numbers of each group; all rows are one without groups."""
    if groups is None:
        return [np.arange(n_docs)]
    values = np.asarray(groups, dtype=object).tolist()
    if len(values) != n_docs:
        raise ValueError(f"y has {n_docs} responses but groups has {len(values)}; they must be equally many.")
    found: dict[Any, list[int]] = defaultdict(list)
    for i, value in enumerate(values):
        if is_missing(value):
            raise ValueError(f"groups must be known for every document, got {value!r} in row {i}.")
        found[value].append(i)
    if len(found) == n_docs:
        raise ValueError("Every group has one document only, so that nothing can be shuffled; use larger groups.")
    return [np.array(own) for own in found.values()]


def shuffle(places: list[np.ndarray], n_docs: int, seed: int) -> np.ndarray:
    """For each row the row whose response it gets."""
    rng, order = np.random.default_rng(seed), np.arange(n_docs)
    for own in places:
        order[own] = rng.permutation(own)
    return order


def describe_fit(name: str, posterior: Posterior, level: float) -> dict[str, Any]:
    """How many intervals of a fit exclude 0, and its losses on held-out documents."""
    beside, held_out = covariate_draws(posterior), posterior.held_out
    return {
        "fit": name, "seed": posterior.seed, "topics": share_clear(coef_draws(posterior), posterior.own, level),
        "covariates": share_clear(beside, np.ones(beside.shape[1:], bool), level),
        "held_out_loss": held_out.get("loss", np.nan), "base_loss": held_out.get("base_loss", np.nan),
    }  # fmt: skip


def share_clear(draws: np.ndarray, own: np.ndarray, level: float) -> float:
    """The share of the intervals of draws (n, R, m) that exclude 0, among weights of the mask `own` (R, m)."""
    if not own.any():
        return float("nan")
    lower, upper = draw_interval(draws, level)
    return float(((lower > 0) | (upper < 0))[own].mean())
