"""Raw texts as counts: a clean vocabulary for topics, and everything that texts have for words with own weights.

Topics are read by people, so that stop words, numbers and left-overs of markup are left out. Predictions need them:
"not", "no" and "not good" are gone with the stop words. Words with weights of their own are therefore all words, pairs
of neighbours, and question and exclamation marks.
"""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.utils.validation import check_is_fitted

from supertopic.corpus.frames import is_missing
from supertopic.corpus.tokens import check_counts
from supertopic.estimators.validation import check_vocabulary, refuse_counts
from supertopic.model.posterior import Posterior
from supertopic.report.words import LEFTOVERS
from supertopic.warn import warn

TOPIC_WORD = r"(?u)\b(?=\w*[^\W\d_])\w\w+\b"  # two characters or more, one of them a letter
ANY_WORD = r"(?u)\b\w+\b|[!?]"
NOT_IN_TOPICS = sorted(ENGLISH_STOP_WORDS | LEFTOVERS)
FEW_TEXTS = 100  # smallest number of texts from which on words of a single text are left out
MOST_READ_AGAIN = 500  # texts whose unknown words are counted
Validate = Callable[[Any, bool], csr_array]  # counts of a model, checked; whether it is fitted anew
ROWS = (list, tuple, np.ndarray)


class Counts(NamedTuple):
    """Documents as counts."""

    topics: csr_array  # (n_docs, V)
    words: csr_array  # (n_docs, W): of words with weights of their own


def are_texts(X: Any) -> bool:
    """Whether X is a sequence of texts: a list, an array or a Series whose first known element is a string, if any."""
    if isinstance(X, str) or not (isinstance(X, ROWS) or (hasattr(X, "to_numpy") and hasattr(X, "dtype"))):
        return False
    if getattr(X, "ndim", 1) != 1:
        return False
    values = X if isinstance(X, list | tuple) else np.asarray(X, dtype=object)
    known = next((value for value in values if not is_missing(value)), None)
    return isinstance(known, str) or (known is None and len(values) > 0)


def read_texts(X: Any) -> list[str]:
    """Texts as a list of strings; missing ones are empty, and a warning says how many there are."""
    values = list(X) if isinstance(X, list | tuple) else np.asarray(X, dtype=object).tolist()
    missing = 0
    for i, value in enumerate(values):
        if is_missing(value):
            values[i], missing = "", missing + 1
        elif not isinstance(value, str):
            raise TypeError(f"X holds texts, but element {i} is {value!r}, a {type(value).__name__}.")
    if missing:
        warn(f"{missing:,} of {len(values):,} texts are missing (None or NaN); they count as empty texts.")
    return values


def topic_vectorizer(given: Any, n_texts: int) -> CountVectorizer:
    """The vectorizer of topics, not fitted: the given one, or English without stop words."""
    if given is not None:
        return clone(given)
    return CountVectorizer(stop_words=NOT_IN_TOPICS, token_pattern=TOPIC_WORD, min_df=1 if n_texts < FEW_TEXTS else 2)


def word_vectorizer(words: Any, given: Any, n_texts: int) -> CountVectorizer | None:
    """The vectorizer of words with weights, not fitted; None if there are none, or if they are those of topics.

    `words` is the estimator's parameter, `given` the vectorizer of topics if it is the user's: words are then found in
    the same way, but no stop words are left out, and pairs of neighbours are words, too.
    """
    if isinstance(words, CountVectorizer):
        return clone(words)
    if not words:
        return None
    least = 1 if n_texts < FEW_TEXTS else 2
    if given is None:
        return CountVectorizer(token_pattern=ANY_WORD, ngram_range=(1, 2), min_df=least)
    if not isinstance(given, CountVectorizer) or callable(given.analyzer) or given.vocabulary is not None:
        return None
    longest = max(2, given.ngram_range[1]) if given.analyzer == "word" else given.ngram_range[1]
    usual = given.tokenizer is None and given.token_pattern in (CountVectorizer().token_pattern, TOPIC_WORD)
    return clone(given).set_params(
        stop_words=None, ngram_range=(given.ngram_range[0], longest), min_df=least, max_df=1.0, max_features=None,
        token_pattern=ANY_WORD if usual else given.token_pattern,
    )  # fmt: skip


def check_vectorizer(name: str, given: Any) -> None:
    """Refuse what is no vectorizer of counts."""
    if given is not None and not (hasattr(given, "fit_transform") and hasattr(given, "get_feature_names_out")):
        raise ValueError(f"{name} must be a CountVectorizer, got {given!r}.")


class TextReader(NamedTuple):
    """Fitted vectorizers; without one of words these are the words of topics."""

    topics: CountVectorizer
    words: CountVectorizer | None

    def counts(self, texts: list[str]) -> Counts:
        """The counts of texts."""
        topics = check_counts(self.topics.transform(texts))
        return Counts(topics, topics if self.words is None else check_counts(self.words.transform(texts)))


def learn_vocabularies(texts: list[str], vectorizer: Any, words: Any) -> tuple[TextReader, Counts]:
    """Vectorizers fitted to texts, and the counts of these."""
    try:
        topics = topic_vectorizer(vectorizer, len(texts))
        of_topics = check_counts(topics.fit_transform(texts))
    except ValueError as error:
        if "empty vocabulary" not in str(error) and "no terms remain" not in str(error).lower():
            raise
        raise ValueError(
            f"No words are left of {len(texts):,} texts: they are empty, or consist of stop words and numbers. "
            "vectorizer=CountVectorizer(...) says what a word is."
        ) from error
    found = word_vectorizer(words, vectorizer, len(texts))
    of_words = of_topics if found is None else check_counts(found.fit_transform(texts))
    return TextReader(topics, found), Counts(of_topics, of_words)


def unknown_shares(vectorizer: CountVectorizer, texts: Sequence[str], counts: csr_array) -> np.ndarray:
    """The share of each text's words that are not among some counts of it, (n,); NaN of a text without words."""
    analyze = vectorizer.build_analyzer()
    lengths = np.array([len(analyze(text)) for text in texts], dtype=float)
    known = np.asarray(counts.sum(axis=1), dtype=float).ravel()
    return np.where(lengths > 0, 1.0 - known / np.maximum(lengths, 1.0), np.nan)


def left_out_unknown(vectorizer: CountVectorizer, texts: Sequence[str], counts: csr_array) -> np.ndarray:
    """The shares of words that some of the texts would not know if the others had made the vocabulary."""
    n_docs = np.bincount(counts.indices, minlength=counts.shape[1])  # that have each word
    least = vectorizer.min_df if isinstance(vectorizer.min_df, Integral) else vectorizer.min_df * len(texts)
    some = np.linspace(0, len(texts) - 1, min(len(texts), MOST_READ_AGAIN)).astype(int)
    own = counts[some]
    own.data = own.data * (n_docs[own.indices] - 1 >= least)
    found = unknown_shares(vectorizer, [texts[i] for i in some], own)
    return found[~np.isnan(found)]


class Documents(NamedTuple):
    """Documents of a fit, and what is known of their words."""

    counts: Counts
    vocabulary: np.ndarray | None  # (V,)
    word_names: np.ndarray | None  # (W,): of words with weights of their own, if these are others
    reader: TextReader | None
    texts: list[str] | None


def read_documents(model: Any, X: Any, feature_names: Any, previous: Posterior | None, validate: Validate) -> Documents:
    """The documents of a fit: texts, or counts, which are checked. A model that is updated keeps its vocabularies."""
    reader, texts = None if previous is None else reader_of(model), None
    if are_texts(X):
        texts = read_texts(X)
        if previous is None:
            reader, counts = learn_vocabularies(texts, model.vectorizer, getattr(model, "words", False))
            feature_names = reader.topics.get_feature_names_out()
            model.__dict__.pop("feature_names_in_", None)
            model.n_features_in_ = counts.topics.shape[1]
        else:
            counts = count_texts(model, texts)
    else:
        own = validate(X, previous is None)
        counts = Counts(own, own)
        refuse_counts(previous)
    known = previous.vocabulary if previous else getattr(model, "feature_names_in_", None)
    vocabulary = check_vocabulary(feature_names, model.n_features_in_, known, previous is not None)
    names = previous.word_names if previous else None
    if previous is None and reader is not None and reader.words is not None:
        names = reader.words.get_feature_names_out()
    return Documents(counts, vocabulary, names, reader, texts)


def read_new(model: Any, X: Any, validate: Validate) -> Counts:
    """New documents of a fitted model: texts, or counts."""
    check_is_fitted(model, "posterior_")
    model.check_parameters()
    none = reader_of(model) is not None and isinstance(X, ROWS) and np.shape(X) == (0,)
    if none or are_texts(X):
        return count_texts(model, read_texts(X))
    counts = validate(X, False)
    return Counts(counts, counts)


def count_texts(model: Any, texts: list[str]) -> Counts:
    """The counts of texts for a fitted model."""
    reader = reader_of(model)
    if reader is None:
        raise TypeError(
            f"X must hold word counts, got text such as {texts[0][:40]!r}: the model was fitted to counts. Turn texts "
            "into counts with the same vectorizer, or fit the model to texts."
        )
    return reader.counts(texts)


def reader_of(model: Any) -> TextReader | None:
    """The vectorizers of a model, if it was fitted to texts."""
    vectorizer = getattr(model, "vectorizer_", None)
    return None if vectorizer is None else TextReader(vectorizer, getattr(model, "word_vectorizer_", None))


def keep_reader(model: Any, reader: TextReader | None) -> None:
    """Keep the vectorizers of the texts of this fit, and none of another one."""
    for name, vectorizer in zip(("vectorizer_", "word_vectorizer_"), reader or (None, None), strict=True):
        if vectorizer is None:
            model.__dict__.pop(name, None)
        else:
            setattr(model, name, vectorizer)
