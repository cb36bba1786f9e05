"""Methods of supervised models for questions after the fit: effects on new documents, differences between groups.

They are functions that `Supervised` takes as its methods.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from supertopic.corpus.frames import BOOLEAN, CATEGORY, NUMBER, Frame, read_frame, unnamed_frame
from supertopic.corpus.source import select_target
from supertopic.corpus.tokens import make_tokens
from supertopic.estimators.validation import check_level, check_number, describe_covariates, log_exposure
from supertopic.inference.effects import MOST_COLUMNS, Evidence, Groups, estimate_effects, estimate_groups
from supertopic.inference.level import find_base_rate
from supertopic.inference.predict import Settings, mean_topic_shares
from supertopic.model.posterior import Posterior
from supertopic.model.responses.values import MOST
from supertopic.model.terms import CovariateColumns
from supertopic.report.interactions import Effects, Interactions, labels_of, make_effects
from supertopic.warn import warn

MOST_GROUPS = 50


class NewEvidence(NamedTuple):
    """New documents with known responses."""

    evidence: Evidence
    rows: np.ndarray  # (n,): their numbers among all documents that were given
    base: np.ndarray  # (R,): omega of their base rate in predictions
    columns: CovariateColumns


def effects_on(
    self: Any, X: ArrayLike, y: ArrayLike, *, covariates: Any = None, exposure: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None, points: float = 0.1, level: float = 0.9,
) -> Effects:  # fmt: skip
    """Estimate the effects of the topics on documents that the model was not fitted to.

    Topics do not change. Their shares are inferred from the words of each document alone, and the weights come from one
    Bayesian regression, like that of `coef_`. The method cannot check that the documents are new. If they came after
    `freeze()`, the record shows that the topics were fixed before.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts.
    y : array-like
        Their responses, as in `fit`. Documents with an unknown response are left out.
    covariates : data frame, or array-like of shape (n_docs, n_covariates), optional
        What the effects of topics are adjusted for. These may be others than those of `fit`, and may be left out. All
        columns of a frame are used; the `formula` of the model is not.
    exposure : array-like of shape (n_docs,), optional
        The exposure of counts; needed if the model was fitted with one.
    sample_weight : array-like of shape (n_docs,), optional
        The weight of each document.
    points : float, default=0.1
        How much more of a topic the effects of `table()` are for; 0.1 is ten percentage points.
    level : float, default=0.9
        The posterior probability inside the intervals.

    Returns
    -------
    Effects
        `print` shows a table of effects; `frame()` has the weights, `table()` is for a paper.
    """
    check_level(level)
    posterior, settings = self._fitted(), self._settings()
    check_number("points", points, most=1.0)
    new = read_evidence(posterior, settings, self._counts(X), y, covariates, exposure, sample_weight)
    weights = estimate_effects(posterior, new.evidence, settings.n_threads)
    return make_effects(
        posterior, new.evidence.response, new.base, new.columns, weights, len(new.rows), float(points), float(level)
    )


def interactions(
    self: Any, by: ArrayLike, y: ArrayLike | None = None, X: ArrayLike | None = None, *, covariates: Any = None,
    exposure: ArrayLike | None = None, sample_weight: ArrayLike | None = None, pooled: bool = False, level: float = 0.9,
) -> Interactions:  # fmt: skip
    """Estimate whether topics have larger weights in some groups of documents than in others.

    Each group has a level and weights of its own. Weights of a group are relative to the usual mixture of topics in
    this group, so a group with higher responses can have the same weights.

    Parameters
    ----------
    by : array-like of shape (n_docs,)
        The group of each document: text, categories, booleans or numbers, also as a Series of pandas, polars or
        another library that Narwhals knows. At most 50 groups.
    y, X : array-like, optional
        Responses and texts or word counts of new documents. By default the training documents of the last fit are
        used, with the cross-fitted shares from which `coef_` is estimated.
    covariates : data frame, or array-like of shape (n_docs, n_covariates), optional
        What weights are adjusted for. By default those of the fit for training documents, and none for new ones.
    exposure, sample_weight : array-like of shape (n_docs,), optional
        Exposure of counts, and the weight of each document, for new documents.
    pooled : bool, default=False
        Compare groups with the first one, the reference; or, if True, all groups with their mean. Then the variance
        between groups is estimated, and groups with few documents are shrunk towards the mean.
    level : float, default=0.9
        The posterior probability inside the intervals.

    Returns
    -------
    Interactions
        `print` shows the topics that differ most clearly; `frame()` has all numbers, `plot()` shows them.
    """
    check_level(level)
    posterior, settings = self._fitted(), self._settings()
    if not isinstance(pooled, bool | np.bool_):
        raise ValueError(f"pooled must be True or False, got {pooled!r}.")
    if (X is None) != (y is None):
        raise ValueError("New documents need both X and y; leave both out for the training documents.")
    if X is None:
        if exposure is not None or sample_weight is not None:
            raise ValueError("exposure and sample_weight are for new documents; those of the fit are used here.")
        labels = read_groups(by, len(training_folds(posterior)))
        evidence, rows = training_evidence(posterior, covariates)
    else:
        counts = self._counts(X)
        labels = read_groups(by, counts.shape[0])
        new = read_evidence(posterior, settings, counts, y, covariates, exposure, sample_weight)
        evidence, rows = new.evidence, new.rows
    groups, names = number_groups(labels, rows, bool(pooled))
    check_width(posterior, groups)
    draws = estimate_groups(posterior, evidence, groups, settings.n_threads)  # (n, R, G, K)
    in_units = np.moveaxis(evidence.response.in_units(np.moveaxis(draws, 2, 1)), 1, 2)  # which expects (..., R, K)
    return Interactions(
        in_units, names, tuple(np.bincount(groups.place, minlength=groups.size).tolist()),
        tuple(posterior.response.column_names), tuple(labels_of(posterior)), posterior.own, bool(pooled), float(level),
    )  # fmt: skip


def read_evidence(
    posterior: Posterior, settings: Settings, counts: Any, y: Any, covariates: Any, exposure: Any, sample_weight: Any
) -> NewEvidence:
    """New documents with known responses: shares from their words, and y as the fit encoded it."""
    response, n_docs = posterior.response, counts.shape[0]
    if y is None:
        raise ValueError("y is None; the effects of topics need the responses of these documents.")
    if exposure is not None and response.kind != "count":
        raise ValueError("exposure is for counts, and this model has another response; leave exposure= out.")
    if exposure is None and getattr(response, "exposed", False):
        raise ValueError("The model was fitted with an exposure; pass exposure= here, too (1 for each document).")
    response.truth(y, n_docs)  # says what the model does not know
    weight = _check_sample_weight(sample_weight, np.zeros((n_docs, 1)), dtype=np.float64, ensure_non_negative=True)
    if weight.max(initial=0.0) * response.c > MOST:
        raise ValueError(f"sample_weight times c must be at most {MOST:g}, got {weight.max() * response.c:g}.")
    logs = None if exposure is None else log_exposure(exposure, n_docs)
    n_columns = posterior.columns[-1].stop
    # without earlier documents y is centred at the mean of these ones; its unit is that of the fit
    encoded = response.encode(y, weight, logs, None, np.zeros((5, n_columns)))
    columns, Z = describe_covariates(covariates, n_docs)
    empty, known = np.diff(counts.indptr) == 0, np.any(encoded.target.weight > 0, axis=1)
    if not known.any():
        raise ValueError(f"No response of the {n_docs:,} documents is known, or all have weight 0; some must be known.")
    rate = find_base_rate(encoded.response, encoded.target, empty, None)
    target = encoded.target._replace(offset=rate.offset, covariates=columns.standard(Z))
    shares = mean_topic_shares(posterior, make_tokens(counts[known]), settings)
    shares[empty[known]] = 0.0  # as in the fit; the offset stands for them
    evidence = Evidence(
        shares, select_target(target, known), encoded.response, np.ones((1, posterior.n_topics), bool),
        np.zeros(len(shares), int), np.zeros(posterior.own.shape),
    )  # fmt: skip
    return NewEvidence(evidence, np.flatnonzero(known), rate.base, columns)


def training_folds(posterior: Posterior) -> np.ndarray:
    """The fold of each training document, (n_docs,); an error says why there are none."""
    if posterior.cross_fitted is not None:
        return posterior.cross_fitted.fold
    if posterior.doc_topic is None:
        raise ValueError("A loaded model has no training documents; pass X= and y=, or fit the model again.")
    raise ValueError(
        "No response was held out from any chain in the last fit (held_out=0, calibrate=False, no known responses, or "
        "fewer than 34 of them). The topics have adapted to the responses of the training documents, so weights cannot "
        "be estimated on these documents. Pass new documents as X= and y=, or fit with held_out='auto'."
    )


def training_evidence(posterior: Posterior, covariates: Any) -> tuple[Evidence, np.ndarray]:
    """The training documents whose responses a chain has not seen, and their numbers."""
    fold, crossed = training_folds(posterior), posterior.cross_fitted
    assert crossed is not None
    rows, target = np.flatnonzero(fold >= 0), crossed.target
    if covariates is not None:
        columns, Z = describe_covariates(covariates, len(fold))
        target = target._replace(covariates=columns.standard(Z))
    evidence = Evidence(
        crossed.shares[rows].astype(float), select_target(target, rows), posterior.response, posterior.consensus.has,
        fold[rows], crossed.spread,
    )  # fmt: skip
    return evidence, rows


def read_groups(by: Any, n_docs: int) -> list[tuple[Any, str]]:
    """For each document its group as something to sort by, and as text."""
    frame = read_frame(by)
    if frame is None:
        values = np.asarray(by)
        if values.ndim not in (1, 2):
            raise ValueError(f"by must have a group for each document, got {values.ndim} dimensions.")
        frame = unnamed_frame(values)
    if len(frame.cells) != 1:
        raise ValueError(f"by must be one column, with a group for each document, got {len(frame.cells)} columns.")
    if len(frame) != n_docs:
        raise ValueError(f"There are {n_docs:,} documents but by has {len(frame):,} rows; they must be equally many.")
    column = Frame(["by"], frame.cells, n_docs, True).column(0)
    if column.kind == CATEGORY:
        place = {level: i for i, level in enumerate(column.levels)}
        return [(place[level], level) for level in column.values]
    if column.kind == BOOLEAN or np.asarray(by).dtype == bool:
        return [(value, str(bool(value))) for value in column.values]
    if column.kind != NUMBER:
        raise TypeError("by holds dates; groups are text, categories, booleans or numbers: give the year, for example.")
    return [(value, str(int(value)) if int(value) == value else str(value)) for value in column.values.tolist()]


def number_groups(labels: list[tuple[Any, str]], rows: np.ndarray, pooled: bool) -> tuple[Groups, tuple[str, ...]]:
    """The groups of some documents, in their own order, and their names."""
    own = [labels[row] for row in rows]
    found, given = sorted(set(own)), sorted(set(labels))
    if len(given) < 2:
        raise ValueError(f"by has one group only, {given[0][1]!r}; at least two are needed.")
    if len(found) < 2:
        raise ValueError(
            f"Only one of the {len(given):,} groups in by has documents with a known response, {found[0][1]!r}; at "
            "least two are needed."
        )
    if len(found) > MOST_GROUPS:
        raise ValueError(
            f"by has {len(found):,} groups; at most {MOST_GROUPS} are possible. Put small groups together."
        )
    if len(found) < len(given):
        gone = ", ".join(repr(name) for _, name in given if (_, name) not in found)[:200]
        warn(f"These groups have no document with a known response, and are left out: {gone}.")
    place = {label: i for i, label in enumerate(found)}
    return Groups(np.array([place[label] for label in own]), len(found), pooled), tuple(name for _, name in found)


def check_width(posterior: Posterior, groups: Groups) -> None:
    """Refuse more weights than a regression can have."""
    n_topics = posterior.topics[0].n_topics
    n_weights = n_topics + (groups.size - groups.first) * (n_topics + 1)
    if n_weights > MOST_COLUMNS:
        raise ValueError(
            f"{groups.size} groups of {n_topics} topics give {n_weights:,} weights; at most {MOST_COLUMNS:,} are "
            "possible. Put groups together, or fit fewer topics."
        )
