"""The method `drift`: whether documents have changed since the fit."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from supertopic.corpus.frames import take
from supertopic.corpus.tokens import make_tokens
from supertopic.estimators.decisions import compare_known
from supertopic.estimators.texts import TextReader, are_texts, read_texts, reader_of, unknown_shares
from supertopic.estimators.validation import OF_PREDICTIONS
from supertopic.inference.completion import describe_documents
from supertopic.inference.predict import NewDocuments, Settings, mean_topic_shares
from supertopic.model.held_out import HeldOutPredictions
from supertopic.model.posterior import Posterior
from supertopic.model.reference import Reference
from supertopic.model.responses import Response
from supertopic.model.responses.classes import ClassResponse
from supertopic.model.responses.values import is_unknown, without_na
from supertopic.report.drift import SURPRISE, UNEXPLAINED, UNKNOWN, Answers, Drift, compare_documents, theme_words
from supertopic.report.topics import mean_counts, vocabulary_of

MOST = 2000  # documents that are compared
COVERED = 0.9  # the level of the intervals


def drift(
    self: Any, X: ArrayLike, y: ArrayLike | None = None, *, reference: ArrayLike | None = None, **beside: Any
) -> Drift:
    """Whether documents differ from those of the fit by more than chance.

    They are compared with documents that `fit` held out. If nothing has changed, about one of 200 comparisons raises an
    alarm. If there are more than 2,000 documents, evenly spaced ones are used.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        New documents: texts, or word counts. With counts, new words cannot be seen.
    y : array-like, optional
        Their responses, as far as they are known. Predictions are then compared with them, too. New classes are
        allowed.
    reference : texts or counts, optional
        Documents to compare with, if no documents were held out. The model should not have learned from them.
    **beside
        `covariates`, `exposure`, `features` and `groups` of the documents, which predictions need if `y` is given.

    Returns
    -------
    Drift
        A dict of rows with value, usual (that of held-out documents), limit (which chance alone rarely exceeds) and p.
        The rows are the share of unknown words; the surprise of a word, -log p given half of its document; the share of
        documents that no topic explains; and the distance between the mean shares of topics (total variation). With
        `y` also the loss of predictions; of classes and labels the largest difference between the predicted and the
        observed share of one, against that of held-out documents; of numbers the share outside their 90 % intervals;
        and the share of documents with a class that is new to the model. `alarms` names those beyond chance. If
        words have changed, `theme` lists words that stand out in the new documents, and `documents` those that no topic
        explains.
    """
    posterior, settings, reader = self._fitted(), self._settings(), reader_of(self)
    strange = next((name for name in beside if name not in OF_PREDICTIONS), None)
    if strange:
        raise TypeError(f"There is no argument {strange!r}; those of documents are {', '.join(OF_PREDICTIONS)}.")
    if y is not None and not posterior.supervised:
        raise ValueError(f"{type(self).__name__} has no response: leave y out.")
    rows, some = evenly(X)
    if y is not None and n_rows(y) != n_rows(X):
        raise ValueError(f"X has {n_rows(X)} documents but y has {n_rows(y)}; they must be equally many.")
    counts, usual = self._counts(some), posterior.reference
    if reference is not None:
        theirs = evenly(reference)[1]
        found = describe(posterior, theirs, self._counts(theirs), reader, settings)
        usual = Reference(*(part[~np.isnan(part).reshape(len(part), -1).any(axis=1)] for part in found))
    if usual is None or not len(usual.shares):
        raise ValueError(
            "drift compares with held-out documents, and this model has none: pass reference=, documents that it has "
            "not learned from."
        )
    answers = None
    if y is not None:
        own = {name: None if values is None else take(values, rows) for name, values in beside.items()}
        answers = answers_of(self._new(some, **own), take(y, rows))
    held_out = posterior.held_out_predictions
    known = None if held_out is None else as_answers(posterior.response, held_out, np.zeros(0, bool))
    new = describe(posterior, some, counts, reader, settings)
    figures, unexplained = compare_documents(new, usual, answers, known)
    result = Drift(figures, len(rows))
    if not {UNKNOWN, SURPRISE, UNEXPLAINED} & set(result.alarms):
        return result
    odd = unexplained if UNEXPLAINED in result.alarms else np.arange(len(rows))
    labels = rows[unexplained].tolist() if not hasattr(X, "iloc") else list(X.index[rows[unexplained]])  # type: ignore
    return result.with_theme(theme(posterior, take(some, odd), counts[odd], reader), labels)


def answers_of(documents: NewDocuments, y: Any) -> Answers | None:
    """Predictions beside responses, if some are known."""
    response, n_docs, new = documents.posterior.response, documents.counts.shape[0], np.zeros(0, bool)
    if isinstance(response, ClassResponse) and response.has_sets and not response.multilabel:
        y, new = without_new_classes(response, y)
    truth = response.truth(y, n_docs)
    if np.isnan(truth).any(axis=1).all():  # nothing else is known
        return Answers(np.zeros(0), np.zeros((0, 0)), np.zeros(0), new) if new.any() else None
    return as_answers(response, compare_known(documents, truth), new)


def without_new_classes(response: ClassResponse, y: Any) -> tuple[Any, np.ndarray]:
    """Classes, of which new ones are unknown, and which of those that were given are new."""
    values = np.asarray(without_na(y))
    if values.ndim != 1:
        return y, np.zeros(0, bool)  # an error says so
    known = ~is_unknown(values, response.missing_label)
    new = ~np.isin(values[known], response.classes)
    if not new.any():
        return y, new
    values = values.astype(object)
    values[np.flatnonzero(known)[new]] = None
    return values, new


def as_answers(response: Response, found: HeldOutPredictions, new: np.ndarray) -> Answers:
    """What is compared of predictions."""
    excess = found.expected - found.truth if response.has_probabilities and found.truth.shape[1] else None
    outside = (found.level > COVERED).mean(axis=1) if found.level.shape[1] else np.zeros(0)
    return Answers(found.loss, np.zeros((0, 0)) if excess is None else excess, outside, new)


def n_rows(X: Any) -> int:
    """The number of documents."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def evenly(X: Any) -> tuple[np.ndarray, Any]:
    """The numbers of evenly spaced documents, and these documents."""
    n_docs = n_rows(X)
    rows = np.linspace(0, n_docs - 1, min(n_docs, MOST)).astype(int) if n_docs else np.zeros(0, int)
    return rows, X if len(rows) == n_docs else take(X, rows)


def describe(
    posterior: Posterior, X: Any, counts: csr_array, reader: TextReader | None, settings: Settings
) -> Reference:  # fmt: skip
    """The figures of some documents."""
    shares = mean_topic_shares(posterior, make_tokens(counts), settings)
    found = describe_documents(posterior, counts, shares, settings)
    if reader is None or not are_texts(X):
        return found
    return found._replace(unknown=unknown_shares(reader.topics, read_texts(X), counts))


def theme(posterior: Posterior, X: Any, counts: csr_array, reader: TextReader | None) -> list[str]:
    """The words that stand out in some documents."""
    total, others = mean_counts(posterior).sum(axis=0), list[list[str]]()
    if reader is not None and are_texts(X):
        analyze, vocabulary = reader.topics.build_analyzer(), reader.topics.vocabulary_
        others = [[word for word in analyze(text) if word not in vocabulary] for text in read_texts(X)]
    return theme_words(counts, vocabulary_of(posterior).tolist(), total / total.sum(), others)
