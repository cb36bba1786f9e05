"""Methods of estimators with guarantees for new documents: sets of classes, and decisions that people share."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supertopic.estimators.validation import check_level
from supertopic.inference.guarantees import above, class_response, error_threshold, predict_sets
from supertopic.inference.predict import NewDocuments
from supertopic.model.held_out import HeldOutPredictions, compare
from supertopic.report.evaluate import known_responses
from supertopic.warn import warn


@dataclass(frozen=True, eq=False)
class Decisions:
    """A class for each document, or None where a person should look at it."""

    decision: np.ndarray  # (n_docs,) of classes and None; of labels (n_docs, n_labels): 1, 0, or NaN for a person
    confidence: np.ndarray  # (n_docs,) or (n_docs, n_labels): the probability (or score) of what was predicted
    asked: float  # the share that is left to people
    threshold: float | None  # the least confidence of a decision; None if costs decided
    expected_cost: float | None  # the mean over the documents, if costs decided

    def __repr__(self) -> str:
        return f"<Decisions: {len(self.decision):,} documents, {self.asked:.1%} of them left to people>"


def conformalize(self: Any, X: ArrayLike, y: ArrayLike, **beside: Any) -> Any:
    """Use labelled documents for the guarantees of sets, intervals and decisions, in place of those held out by `fit`.

    Guarantees hold for documents that are like these. Pass documents that the model has not learned from. A thousand or
    more make guarantees precise. If documents change with time, pass recent ones.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts.
    y : array-like
        Their responses; documents without a known response are left out.
    **beside
        `covariates`, `exposure`, `features` and `groups` of the documents, as for `predict`.

    Returns
    -------
    self
    """
    documents = self._new(X, **beside)
    posterior = documents.posterior
    found = compare_known(documents, posterior.response.truth(y, documents.counts.shape[0]))
    self.posterior_ = replace(posterior, held_out_predictions=found.last())
    return self


def compare_known(documents: NewDocuments, truth: np.ndarray) -> HeldOutPredictions:
    """The predictions of documents beside their responses, of those whose response is known."""
    response, known = documents.posterior.response.plain(), known_responses(truth)
    own = truth[known]
    found = documents.part(known).summarise(lambda omegas, scales, docs: compare(response, own[docs], omegas, scales))
    return HeldOutPredictions(*found).kept(response)


def predict_set(self: Any, X: ArrayLike, level: float = 0.9, *, by_class: bool = False, **beside: Any) -> np.ndarray:
    """A set of classes for each document that contains the true one with a probability of `level` or more.

    Sets are conformal: their size is calibrated on documents that `fit` held out, or that you passed to `conformalize`.
    The guarantee does not depend on the model. It is an average over documents that are like the held-out ones. An easy
    document has one class in its set, and a hard one has several.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts.
    level : float, default=0.9
        The guaranteed probability. With labels, that all labels of a document are in its set.
    by_class : bool, default=False
        Guarantee it for the documents of each class (or for each label) separately. A class with too few held-out
        documents is in every set.
    **beside
        `covariates`, `features` and `groups` of the documents, as for `predict`.

    Returns
    -------
    ndarray of bool, of shape (n_docs, n_classes)
        Which classes are in each set, in the order of `classes_`. A set of classes is never empty, so sets of an
        accurate model contain the true class more often than `level`.
    """
    check_level(level)
    class_response(self._fitted())
    documents = self._new(X, **beside)
    return predict_sets(documents.posterior, documents.expected(), float(level), bool(by_class))


def decide(
    self: Any, X: ArrayLike, *, max_error: float | None = None, costs: ArrayLike | None = None,
    ask_cost: float | None = None, certainty: float = 0.9, **beside: Any,
) -> Decisions:  # fmt: skip
    """Decide if the model is certain enough, and leave the other documents to people.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts.
    max_error : float, optional
        The share of the decisions that may be wrong. The least confidence of a decision is chosen on held-out documents
        so that this holds with probability `certainty`. With labels, it is the share of single labels.
    costs : array-like of shape (n_classes, n_classes), optional
        In place of `max_error`: costs[i, j] is the cost of deciding for class j where class i is true. The decision
        with the smallest expected cost is taken.
    ask_cost : float, optional
        With `costs`: the cost of asking a person. A person is asked if every decision is expected to cost more.
    certainty : float, default=0.9
        With `max_error`: the probability, over the held-out documents, that it holds.
    **beside
        `covariates`, `features` and `groups` of the documents, as for `predict`.

    Returns
    -------
    Decisions
        decision, the class of each document or None; confidence; asked, the share that is left to people; threshold;
        and expected_cost.
    """
    if (max_error is None) == (costs is None):
        raise ValueError("Pass either max_error=, such as 0.05, or costs= to decide.")
    response = class_response(self._fitted())
    check_share("certainty", certainty)
    if costs is not None:
        table = check_costs(response, costs, ask_cost)
    elif ask_cost is not None:
        raise ValueError("ask_cost needs costs=.")
    else:
        check_share("max_error", max_error)
    documents = self._new(X, **beside)
    expected = documents.expected()
    chosen, sure = response.chosen(expected), response.confidence(expected)
    threshold = cost = None
    if costs is None:
        threshold, share = error_threshold(documents.posterior, float(max_error or 0.0), float(certainty))
        if not share:
            warn(
                f"No threshold reaches an error rate of {max_error:g} with certainty {certainty:g}: everything is left "
                "to people. Allow more errors, or give more labelled documents to conformalize()."
            )
        ask = ~above(sure, threshold)
    else:
        of_each = expected @ table
        chosen, least = of_each.argmin(axis=1), of_each.min(axis=1)
        limit = np.inf if ask_cost is None else float(ask_cost)
        ask, cost = (least > limit)[:, None], float(np.minimum(least, limit).mean()) if len(least) else 0.0
    if response.multilabel:
        decision = np.where(ask, np.nan, chosen)
    else:
        decision = response.classes[chosen].astype(object)
        decision[ask[:, 0]], sure = None, sure[:, 0]
    return Decisions(decision, sure, float(ask.mean()) if ask.size else 0.0, threshold, cost)


def check_share(name: str, value: Any) -> None:
    """Refuse what is not a number between 0 and 1."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}.")


def check_costs(response: Any, costs: Any, ask_cost: Any) -> np.ndarray:
    """The table of costs, checked."""
    n = len(response.classes)
    if response.multilabel or not response.has_probabilities:
        raise ValueError("costs need probabilities of classes; use max_error for labels and for MedLDAClassifier.")
    table = np.asarray(costs, dtype=float)
    if table.shape != (n, n) or not np.isfinite(table).all():
        raise ValueError(
            f"costs must be a table of {n} x {n} numbers, a row for each true class and a column for each decision, "
            f"got shape {table.shape}."
        )
    if ask_cost is not None and (not isinstance(ask_cost, Real) or not np.isfinite(float(ask_cost))):
        raise ValueError(f"ask_cost must be a number, got {ask_cost!r}.")
    return table
