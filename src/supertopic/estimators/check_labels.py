"""The method `check_labels`: labels that are probably wrong, given the other documents."""

import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from supertopic.corpus.frames import take
from supertopic.corpus.made_frames import frame_of_rows
from supertopic.estimators.documents import check_n, document_frame
from supertopic.estimators.validation import check_level
from supertopic.model.responses.probabilities import ProbabilityResponse
from supertopic.report.label_errors import Estimate, LabelCheck, find_wrong
from supertopic.warn import warn

CHAINS = 2  # largest number of chains of the models that are fitted here
WORDS = 5  # words that are evidence against a label
OF_DOCUMENTS = "sample_weight", "covariates", "features", "groups"  # arguments of `fit` with a row for each document
NAMES = "label", "given", "suggested", "words"


def check_labels(
    self: Any, X: ArrayLike, y: ArrayLike, *, n: int | None = None, n_folds: int = 5, level: float = 0.9, **fit: Any
) -> LabelCheck:  # fmt: skip
    """Find labels that are probably wrong, given the other documents, and estimate how many are wrong.

    Models with the parameters of this one, and at most two chains, are fitted to all documents except one fold, and
    predict the labels of this fold. So a label never counts as evidence for itself; for this reason the models have no
    `prior`, which may have learned from the labels. This takes about as long as `n_folds` short fits. The model itself
    is not changed, and need not be fitted.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts.
    y : array-like
        Classes, or an indicator matrix of labels, of which some may be wrong. Unknown ones are not checked.
    n : int, optional
        The number of labels that are listed; by default as many as are probably wrong.
    n_folds : int, default=5
        The number of models.
    level : float, default=0.9
        The posterior probability inside the intervals of the number of wrong labels.
    **fit
        Further arguments of `fit`, such as `covariates`.

    Returns
    -------
    LabelCheck
        `print` shows it. `frame` lists labels with the suggested one, the probability that each is wrong, a score by
        which they are sorted, and the words that are evidence against the given one. The score is the probability of
        the given label relative to its mean over the documents that have it, so that difficult classes are not listed
        more often than easy ones. `estimates` says how many labels are wrong, with an interval. This rests on the
        assumption that wrong labels fall on documents and classes at random: errors that always happen to documents of
        one kind look like a class.
    """
    check_level(level)
    if n is not None:
        check_n(n)
    if not isinstance(n_folds, Integral) or isinstance(n_folds, bool) or n_folds < 2:
        raise ValueError(f"n_folds must be a whole number of folds, 2 or more, got {n_folds!r}.")
    if "checkpoint" in fit or "checkpoint_every" in fit:
        raise TypeError("check_labels fits several models, which cannot share a checkpoint: leave it out.")
    response = self.make_response()
    if not isinstance(response, ProbabilityResponse) or response.several_raters:
        raise ValueError(
            f"check_labels needs probabilities of classes or labels, and {type(self).__name__} has none that it could "
            "compare. For ratings, counts and times see surprising(); for several raters see rater_frame()."
        )
    n_docs = X.shape[0] if hasattr(X, "shape") else len(X)
    whole = response.encode(y, np.ones(n_docs)).response
    assert isinstance(whole, ProbabilityResponse)
    truth = whole.truth(y, n_docs)
    folds = predict_folds(self, X, y, truth, whole, int(n_folds), fit)
    if not any(model.posterior_.held_out.get("relation", True) for model in folds.models):
        warn(
            "The models found no relation between the documents and their labels. Labels that no text predicts look "
            "like wrong ones, so this says little about how many are wrong."
        )
    found = [judge(*case, level) for case in cases(folds.p, truth, whole.multilabel)]
    wrong, score, best = (np.stack([own[i] for own in found], axis=1) for i in range(3))  # (n_docs, n_labels or 1)
    names = [{"label": name} for name in whole.classes.tolist()] if whole.multilabel else [{}]
    estimates = frame_of_rows([name | own[3]._asdict() for name, own in zip(names, found, strict=True)])
    most = round(sum(own[3].wrong for own in found)) if n is None else int(n)
    order = np.argsort(score, axis=None, kind="stable")[: min(most, (~np.isnan(wrong)).sum())]  # NaN comes last
    docs, columns = np.unravel_index(order, wrong.shape)
    facts = [describe(whole, truth, best, folds, X, fit, d, j) for d, j in zip(docs, columns, strict=True)]
    listed = {name: [row[name] for row in facts] for name in NAMES if whole.multilabel or name != "label"}
    words, at = listed.pop("words"), (docs, columns)
    frame = document_frame(X, docs, **listed, p_wrong=wrong[at], score=score[at], words=words)
    p_wrong, scores = (array if whole.multilabel else array[:, 0] for array in (wrong, score))
    return LabelCheck(frame, estimates, p_wrong, scores, folds.p, whole.classes, float(level))


class Folds(NamedTuple):
    """Predictions for documents of models that did not learn from their labels."""

    p: np.ndarray  # (n_docs, n_classes): 0 for a class that the model does not have, NaN where the label is unknown
    models: list[Any]
    fold: np.ndarray  # (n_docs,): the number of the model, or -1


def predict_folds(
    self: Any, X: Any, y: Any, truth: np.ndarray, whole: ProbabilityResponse, n_folds: int, fit: dict[str, Any]
) -> Folds:  # fmt: skip
    """Fit a model without each fold of the documents whose labels are known, and predict these."""
    known = np.flatnonzero(~np.isnan(truth).all(axis=1))
    if len(known) < n_folds:
        raise ValueError(f"y has {len(known)} known labels; n_folds={n_folds} needs at least {n_folds}.")
    p, fold, models = np.full(truth.shape, np.nan), np.full(len(truth), -1), []
    given = np.zeros(len(known)) if whole.multilabel else truth[known].argmax(axis=1)
    fold[known] = deal(given, n_folds)
    for i in range(n_folds):
        test, rest = np.flatnonzero(fold == i), np.flatnonzero(fold != i)
        model = clone(self).set_params(n_chains=min(self.n_chains, CHAINS), prior=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one for each fold would be many
            model.fit(take(X, rest), take(y, rest), **of_documents(fit, rest))
        place = np.arange(truth.shape[1])
        if not whole.multilabel:  # a class may be in no other fold; those with an order are not sorted
            places = {name: j for j, name in enumerate(whole.classes.tolist())}
            place = np.array([places[name] for name in model.classes_.tolist()])
        p[test] = 0.0
        p[np.ix_(test, place)] = model.predict_proba(take(X, test), **beside(of_documents(fit, test)))
        models.append(model)
    return Folds(p, models, fold)


def deal(classes: np.ndarray, n_folds: int) -> np.ndarray:
    """The fold of each document, so that each class is in all folds as far as it can be."""
    rng, fold = np.random.default_rng(0), np.empty(len(classes), int)
    fold[np.lexsort([rng.random(len(classes)), classes])] = np.arange(len(classes)) % n_folds
    return fold


def of_documents(fit: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Arguments of `fit` for some of the documents."""
    return {
        name: value if value is None or name not in OF_DOCUMENTS else take(value, rows) for name, value in fit.items()
    }


def beside(fit: dict[str, Any]) -> dict[str, Any]:
    """Those of them that predictions take, too."""
    return {name: value for name, value in fit.items() if name in OF_DOCUMENTS and name != "sample_weight"}


def cases(p: np.ndarray, truth: np.ndarray, multilabel: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Probabilities (n_docs, L) and the number of the given label, NaN where it is unknown; one pair for each label."""
    if multilabel:
        yield from ((np.stack([1.0 - p[:, j], p[:, j]], axis=1), truth[:, j]) for j in range(p.shape[1]))
    else:
        yield p, np.where(np.isnan(truth[:, 0]), np.nan, np.nan_to_num(truth).argmax(axis=1))


def judge(p: np.ndarray, given: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, Estimate]:
    """The probability that each label is wrong, (n_docs,), its score, the best other label, and how many are wrong.

    The score is the probability of the given label, relative to its mean over the documents that have it.
    """
    wrong, score, best = np.full(len(given), np.nan), np.full(len(given), np.nan), np.zeros(len(given), int)
    number = np.nan_to_num(given).astype(int)
    can = np.flatnonzero(~np.isnan(given))
    can = can[p[can, number[can]] > 0]  # nothing speaks for the only label of a class
    if not len(can):
        return wrong, score, best, Estimate(0, 0.0, 0.0, 0.0)
    own = p[can, number[can]]
    size = np.bincount(number[can], minlength=p.shape[1])
    mean = np.bincount(number[can], own, minlength=p.shape[1]) / np.maximum(size, 1)
    score[can] = own / mean[number[can]]
    wrong[can], true, estimate = find_wrong(p[can], number[can], level)
    true[np.arange(len(can)), number[can]] = -1.0
    best[can] = true.argmax(axis=1)
    return wrong, score, best, estimate


def describe(
    whole: ProbabilityResponse, truth: np.ndarray, best: np.ndarray, folds: Folds, X: Any, fit: dict[str, Any],
    doc: int, column: int,
) -> dict[str, Any]:  # fmt: skip
    """A label that may be wrong, and the words that are evidence against it."""
    one, names = np.array([doc]), whole.classes.tolist()
    found = folds.models[folds.fold[doc]].explain(take(X, one), **beside(of_documents(fit, one)))
    suggested = int(best[doc, column])
    if whole.multilabel:
        given, label = int(truth[doc, column]), names[column]
        total = (2 * suggested - 1) * found.total[:, column]
        shown = {"label": label, "given": given, "suggested": suggested}
    else:
        given = int(truth[doc].argmax())
        shown = {"given": names[given], "suggested": names[suggested]}
        if len(found.columns) == 1:
            total = np.sign(suggested - given) * found.total[:, 0]
        else:
            shown_columns = [str(name) for name in found.columns]
            towards, away = (shown_columns.index(str(names[i])) for i in (suggested, given))
            total = found.total[:, towards] - found.total[:, away]
    order = [i for i in np.argsort(-total, kind="stable")[:WORDS] if total[i] > 0]
    return shown | {"words": [found.words[i] for i in order]}
