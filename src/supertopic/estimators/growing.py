"""What a batch adds to a model before it is learned from: new words, new classes, and figures of its predictions."""

from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.corpus.source import Corpus
from supertopic.corpus.tokens import check_counts
from supertopic.estimators.texts import (
    FEW_TEXTS,
    MOST_READ_AGAIN,
    Documents,
    TextReader,
    Validate,
    read_documents,
    unknown_shares,
)
from supertopic.estimators.validation import log_exposure
from supertopic.inference.beside import LinearInputs
from supertopic.inference.predict import NewDocuments, Settings
from supertopic.inference.reported import NU2_REPORTED
from supertopic.inference.scores import Unlearned
from supertopic.model.history import SHOWN, Batch, Changes
from supertopic.model.new_classes import PriorVariances, with_classes
from supertopic.model.new_words import OWN_WORDS, TOPIC_WORDS, Vocabulary, grow_vocabulary, usage_of, with_words
from supertopic.model.posterior import Posterior
from supertopic.model.priors import NU2_PREDICTION
from supertopic.model.responses.base import Encoded
from supertopic.model.responses.values import plain_value
from supertopic.model.seeds import Seeds, as_seeds
from supertopic.model.terms import CovariateColumns
from supertopic.warn import warn

MANY = 8  # classes that a warning names


class Growing(NamedTuple):
    """What a batch may add to a model."""

    new_words: bool = True
    add_classes: bool = False


STAYS = Growing(False, False)


@dataclass(frozen=True)
class Update:
    """A model and the documents of a batch that it has not learned from."""

    posterior: Posterior  # with new classes and words
    documents: Documents  # in the words of this posterior
    before: Posterior  # without the new words
    unread: Documents  # in the words of that posterior
    changes: Changes

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of an estimator that go with the posterior."""
        reader, found = self.documents.reader, dict[str, Any]()
        if reader is not None:
            found = {"vectorizer_": reader.topics, "n_features_in_": self.posterior.n_words}
            found |= {} if reader.words is None else {"word_vectorizer_": reader.words}
        return found

    def entry(
        self, corpus: Corpus, encoded: Encoded, columns: CovariateColumns, inputs: LinearInputs, exposure: Any,
        settings: Settings,
    ) -> Batch:  # fmt: skip
        """How well the batch is predicted; the corpus has standardised covariates, then groups."""
        counts, n_docs = self.unread.counts, len(corpus.target.weight)
        own, of_groups = np.split(corpus.target.covariates, [len(columns.names)], axis=1)
        Z = np.hstack([columns.mean + columns.scale * own, of_groups])
        features = np.zeros((n_docs, 0)) if inputs.features is None else inputs.features
        documents = NewDocuments(self.before, *counts, features, Z, log_exposure(exposure, n_docs), settings)
        return Unlearned(documents, mean_unknown(self.unread), self.changes).entry(encoded)


def prepare_update(
    model: Any, X: Any, y: Any, classes: Any, feature_names: Any, previous: Posterior, growing: Growing,
    validate: Validate,
) -> tuple[Update, Any]:  # fmt: skip
    """A fitted model and a batch for it, with the classes and words that the batch adds; and the classes of y."""
    before, added = previous, list[Any]()
    if growing.add_classes:
        before, added = grow_classes(previous, y, classes, float(getattr(model, "nu2", 1.0)))
        classes = None
    unread = read_documents(model, X, feature_names, before, validate)
    posterior, read, changes = before, unread, Changes()
    if growing.new_words:
        posterior, read, changes = grow_words(unread, before, as_seeds(model.seeds))
    if added:
        names = tuple(str(plain_value(name)) for name in added)
        changes = changes._replace(classes_added=names)
        warn(f"New classes: {', '.join(names[:MANY])}{', ...' if len(names) > MANY else ''}.")
    return Update(posterior, read, before, unread, changes), classes


def grow_classes(posterior: Posterior, y: Any, classes: Any, nu2: float) -> tuple[Posterior, list[Any]]:
    """The posterior with the classes or labels of y that it does not know, and these."""
    if not posterior.response.grows:
        posterior.response.with_new_classes([])  # says why not
    added = posterior.response.unknown_classes(y, classes)
    if not added:
        return posterior, added
    response, columns = posterior.response.with_new_classes(added)
    variances = PriorVariances(nu2, NU2_PREDICTION, NU2_REPORTED)
    return with_classes(posterior, response, columns, variances), added


def grow_words(
    read: Documents, posterior: Posterior, seeds: Seeds | None
) -> tuple[Posterior, Documents, Changes]:  # fmt: skip
    """Add the words of texts that the model does not know, and forget words if there are too many."""
    reader, texts = read.reader, read.texts
    if reader is None or texts is None or posterior.vocabulary is None:
        return posterior, read, Changes()
    keep = seed_words(seeds, posterior.vocabulary)
    topics = grow_reader(reader.topics, posterior, TOPIC_WORDS, posterior.vocabulary, texts, read.counts.topics, keep)
    own = None
    if reader.words is not None and posterior.word_names is not None:
        own = grow_reader(reader.words, posterior, OWN_WORDS, posterior.word_names, texts, read.counts.words, keep)
    posterior = with_words(posterior, topics, own)
    reader = TextReader(renamed(reader.topics, topics), reader.words and renamed(reader.words, own))
    counts = reader.counts(texts) if changed(topics) or changed(own) else read.counts
    none = Vocabulary(np.zeros(0), np.zeros(0), usage_of(posterior, TOPIC_WORDS), [], [])
    first, second = topics or none, own or none
    changes = Changes(
        (), len(first.added), len(first.forgotten), len(second.added), len(second.forgotten),
        tuple(first.added[:SHOWN]), tuple(first.forgotten[:SHOWN]),
    )  # fmt: skip
    return posterior, Documents(counts, posterior.vocabulary, posterior.word_names, reader, texts), changes


def seed_words(seeds: Seeds | None, names: np.ndarray) -> set[str]:
    """Words that are not forgotten: those of seeds, or all if seeds are numbers of columns."""
    words = [word for _, own in seeds.topics for word in own] if seeds else []
    return set(words) if all(isinstance(word, str) for word in words) else set(names.tolist())


def grow_reader(
    vectorizer: CountVectorizer, posterior: Posterior, name: str, names: np.ndarray, texts: list[str],
    counts: csr_array, keep: set[str],
) -> Vocabulary | None:  # fmt: skip
    """The vocabulary of a vectorizer after a batch of texts; None if it cannot grow."""
    if not isinstance(vectorizer, CountVectorizer) or vectorizer.vocabulary is not None:
        return None
    batch, known = np.bincount(counts.indices, minlength=len(names)), set(names.tolist())
    new = {word: n for word, n in count_words(vectorizer, texts).items() if word not in known}
    return grow_vocabulary(names, usage_of(posterior, name), batch, new, keep, vectorizer.max_features)


def count_words(vectorizer: CountVectorizer, texts: list[str]) -> dict[str, int]:
    """The number of texts that have each word, of words that are in as many as the vectorizer asks for."""
    least = vectorizer.min_df
    if isinstance(least, Integral):
        least = max(least, 1 if len(texts) < FEW_TEXTS else 2)
    if least > len(texts):
        return {}
    own = clone(vectorizer).set_params(min_df=least, max_features=None)
    try:
        found = check_counts(own.fit_transform(texts))
    except ValueError:  # no text has words, or none of them is in as many texts as it should be
        return {}
    n_docs = np.bincount(found.indices, minlength=found.shape[1]).tolist()
    return dict(zip(own.get_feature_names_out().tolist(), n_docs, strict=True))


def changed(vocabulary: Vocabulary | None) -> bool:
    """Whether words have come or gone."""
    return vocabulary is not None and bool(vocabulary.added or vocabulary.forgotten)


def renamed(vectorizer: CountVectorizer, vocabulary: Vocabulary | None) -> CountVectorizer:
    """The same vectorizer with another vocabulary; threads may use the old one meanwhile."""
    if vocabulary is None or not changed(vocabulary):
        return vectorizer
    found = copy(vectorizer)
    found.vocabulary_ = {word: i for i, word in enumerate(vocabulary.names.tolist())}
    return found


def mean_unknown(read: Documents) -> float | None:
    """The mean share of words that the model does not know in texts; None for counts, and for texts without words."""
    if read.reader is None or read.texts is None:
        return None
    some = np.linspace(0, len(read.texts) - 1, min(len(read.texts), MOST_READ_AGAIN)).astype(int)
    found = unknown_shares(read.reader.topics, [read.texts[i] for i in some], read.counts.topics[some])
    found = found[~np.isnan(found)]
    return float(found.mean()) if len(found) else None
