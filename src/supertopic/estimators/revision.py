"""Methods of all topic models that revise a fitted model: merge topics, ban words.

They are functions that estimators take as their methods. The chains continue from the changed topics for a short while.
"""

import copy
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from supertopic.corpus.made_frames import index_of
from supertopic.estimators.texts import are_texts
from supertopic.estimators.validation import OF_PREDICTIONS
from supertopic.model.posterior import Posterior
from supertopic.model.responses.answers import as_answers, is_long
from supertopic.model.revision import Change, keep_all, revised
from supertopic.model.seeds import Seeds, as_seeds
from supertopic.warn import warn

BURN_IN = 40  # iterations; topics are settled, and only what was changed has to settle again
ALLOWED = "sample_weight", "covariates", "exposure", "features", "groups", "event", "gold"
NAMED = 5  # words that a message names


@dataclass(frozen=True)
class Revision:
    """What a revision of a model changed, and the mean loss of held-out documents before and after it.

    The losses are those of `evaluate`: of several labels, their sum.
    """

    change: str
    documents: int  # number of held-out documents
    before: float  # NaN if no document was held out
    after: float
    se: float  # the standard error of after - before

    def __str__(self) -> str:
        if not self.documents:
            return f"{self.change}. No document was held out, so the effect on the loss is unknown."
        return (
            f"{self.change}. Loss on {self.documents:,} held-out documents: {self.before:.4f} before, {self.after:.4f} "
            f"after (difference {self.after - self.before:+.4f} +- {self.se:.4f})."
        )


def merge_topics(
    self: Any, topics: Sequence[int] | Sequence[Sequence[int]], X: ArrayLike, y: Any = None, *, burn_in: int = BURN_IN,
    test: Mapping[str, Any] | None = None, **beside: Any,
) -> Any:  # fmt: skip
    """Merge topics, in a new model; this model does not change.

    A model does not keep its training documents. Pass them again, or pass other documents: the new model learns from
    these alone. Its chains start from the topics of this model, in which the tokens of merged topics are together, and
    run for a short while. Then draws are kept and weights are estimated as in `fit`, with the parameters of this model.

    Parameters
    ----------
    topics : sequence of int, or sequence of such sequences
        The numbers of two topics or more that become one, such as `[3, 7]`, or several such groups. With topics of its
        own for each class, a group belongs to one class, and all classes must keep equally many topics.
    X, y : as in `fit`
        Documents and their responses. If they are the training documents in the same order, the same ones are held out
        as in the fit.
    burn_in : int, default=40
        Iterations of the chains before draws are kept.
    test : dict, optional
        Arguments of `evaluate`, such as `{"X": X_test, "y": y_test}`: documents for the losses before and after the
        change. By default these are the held-out documents of the new fit. LDA holds out none.
    **beside
        sample_weight, covariates, exposure, features, groups, event or gold: as in `fit`.

    Returns
    -------
    estimator
        A new one of the same class. A merged topic takes the place of its first member and has the names of all of
        them; the others move up. `revision_` has the losses before and after the change, and `print(model.revision_)`
        shows them. Seed words of merged topics are joined under the first name. `prior` is None: what another model or
        earlier batches knew is in the topics at the start only.

    Notes
    -----
    The losses are those of predictions with weights that were estimated without the held-out documents. If X are other
    documents than those of the fit, or this model has learned from several batches, it may have learned from documents
    that are held out now. Its loss before the change is then too small; use `test`.
    """
    posterior = self._fitted()
    groups = check_groups(posterior, topics)
    members = {group[0]: group for group in groups}
    gone = {k for group in groups for k in group[1:]}
    change = with_fields(
        keep_all(posterior), groups=tuple(members.get(k, (k,)) for k in range(posterior.n_topics) if k not in gone)
    )
    parameters = merged_parameters(self, posterior, change)
    joined = "; ".join(f"{', '.join(map(str, group[:-1]))} and {group[-1]}" for group in groups)
    found, cut = make_revised(self, change, parameters)
    return refit(self, found, cut, f"Merged topics {joined}", X, y, burn_in, test, beside)


def ban_words(
    self: Any, words: Iterable[Any], X: ArrayLike, y: Any = None, *, everywhere: bool = False, burn_in: int = BURN_IN,
    test: Mapping[str, Any] | None = None, **beside: Any,
) -> Any:  # fmt: skip
    """Remove words from the vocabulary of the topics, in a new model; this model does not change.

    A model does not keep its training documents. Pass them again, or pass other documents: the new model learns from
    these alone. Its chains start from the topics of this model without the words, and run for a short while. Then draws
    are kept and weights are estimated as in `fit`, with the parameters of this model.

    Parameters
    ----------
    words : iterable of str or int
        Words of `vocabulary_`, or numbers of columns if the words are unknown. If the model was fitted to texts,
        phrases that contain such a word are removed, too.
    X, y : as in `fit`
        Documents and their responses: texts, or counts with all columns, those of the words included.
    everywhere : bool, default=False
        Whether the words lose their direct weights, too, so that predictions do not use them at all. If the model was
        fitted to counts, they always do.
    burn_in, test
        As for `merge_topics`.
    **beside
        sample_weight, covariates, exposure, features, groups, event or gold: as in `fit`.

    Returns
    -------
    estimator
        A new one of the same class, with `revision_`: see `merge_topics`. The words are stop words of its `vectorizer`.
        A model of counts takes counts without these columns; those that are left are `vocabulary_`.
    """
    posterior = self._fitted()
    change, gone = check_words(self, posterior, words, everywhere)
    parameters: dict[str, Any] = {}
    if self.seeds is not None:
        parameters["seeds"] = seeds_without(as_seeds(self.seeds), change.words, gone, posterior.n_words)
    found, cut = make_revised(self, change, parameters)
    keep_vectorizers(self, found, change, gone, everywhere)
    n = posterior.n_words - len(change.words)
    what = f"Banned {n:,} word{'s' * (n != 1)} from the topics{' and from predictions' if everywhere else ''}"
    return refit(self, found, cut, what, X, y, burn_in, test, beside)


def check_groups(posterior: Posterior, topics: Any) -> list[tuple[int, ...]]:
    """Groups of topics that become one each, their members in ascending order."""
    given = list(topics) if isinstance(topics, Iterable) and not isinstance(topics, str | bytes) else []
    nested = bool(given) and all(isinstance(group, Sequence | set | np.ndarray) for group in given)
    groups = [tuple(group) for group in given] if nested else [tuple(given)]
    members = list(itertools.chain(*groups))
    if not members or any(not isinstance(k, Integral) or isinstance(k, bool) for k in members):
        raise ValueError(f"topics must hold numbers of topics, such as [3, 7] or [[3, 7], [1, 2]], got {topics!r}.")
    n_topics = posterior.n_topics
    wrong = [k for k in members if not 0 <= int(k) < n_topics]
    if wrong:
        raise ValueError(f"There is no topic {wrong[0]}; topics are numbered from 0 to {n_topics - 1}.")
    if len(set(members)) < len(members):
        raise ValueError(f"topics must name each topic once, got {topics!r}.")
    if min(map(len, groups)) < 2:
        raise ValueError(f"A merge needs two topics or more, got {topics!r}.")
    found = [tuple(sorted(int(k) for k in group)) for group in groups]
    left = []
    for places in posterior.places:
        own = [group for group in found if places.start <= group[0] < places.stop]
        across = next((group for group in own if group[-1] >= places.stop), None)
        if across:
            raise ValueError(
                f"Topics {across[0]} and {across[-1]} belong to different classes, each of which has topics of its "
                f"own: those of the first one are {places.start} to {places.stop - 1}. Merge topics of one class."
            )
        left.append(places.stop - places.start - sum(len(group) - 1 for group in own))
    if min(left) < 2:
        raise ValueError(f"Merging {topics!r} leaves a single topic, which cannot explain anything; keep two or more.")
    if len(set(left)) > 1:
        raise ValueError(
            "Each class has topics of its own, and all classes must keep equally many; this merge leaves "
            f"{', '.join(map(str, left))}. Merge as many topics of every class."
        )
    return found


def merged_parameters(self: Any, posterior: Posterior, change: Change) -> dict[str, Any]:
    """The parameters that depend on the number of topics."""
    first, *others = [change.of_set(places) for places in posterior.places]
    each = np.ndim(self.alpha) > 0
    if (each or self.seeds is not None) and any(groups != first for groups in others):
        raise ValueError("With seeds, or an alpha for each topic, merge the topics at the same places of every class.")
    found: dict[str, Any] = {"n_topics": len(first)}
    if each:
        found["alpha"] = [float(np.sum(np.asarray(self.alpha)[group])) for group in first]
    if self.seeds is not None:
        found["seeds"] = merged_seeds(as_seeds(self.seeds), first)
    return found


def merged_seeds(given: Any, groups: list[list[int]]) -> Seeds:
    """Seeds of merged topics, joined under the name of the first."""
    topics, words = given.topics, []
    for group in groups:
        seeded = [k for k in group if k < len(topics)]
        if seeded:
            joined = dict.fromkeys(itertools.chain(*(topics[k][1] for k in seeded)))
            words.append((topics[seeded[0]][0], list(joined)))
    named, weights = isinstance(given.words, Mapping), given.weights
    if isinstance(weights, dict):
        weights = {topic: value for topic, value in weights.items() if topic in dict(words)}
    return Seeds(dict(words) if named else [own for _, own in words], strength=given.strength, weights=weights)


def seeds_without(given: Any, words: np.ndarray, gone: set[Any], n_words: int) -> Seeds:
    """Seeds without some words; numbers of columns are those among the words that stay."""
    place = {int(column): i for i, column in enumerate(words)}
    found = []
    for topic, own in given.topics:
        left = [
            place[int(word)] if isinstance(word, Integral) else word
            for word in own
            if (int(word) in place if isinstance(word, Integral) and 0 <= int(word) < n_words else word not in gone)
        ]
        if not left:
            raise ValueError(f"All seed words of {f'topic {topic!r}' if topic else 'a topic'} would be banned.")
        found.append((topic, left))
    named = isinstance(given.words, Mapping)
    return Seeds(dict(found) if named else [own for _, own in found], strength=given.strength, weights=given.weights)


def check_words(self: Any, posterior: Posterior, words: Any, everywhere: bool) -> tuple[Change, set[Any]]:
    """The change that bans words, and the words."""
    if not isinstance(everywhere, bool | np.bool_):
        raise ValueError(f"everywhere must be True or False, got {everywhere!r}.")
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise ValueError(f"words must be a list of words, such as ['foo'], got {words!r}.")
    given, n_words = list(words), posterior.n_words
    vocabulary = np.arange(n_words) if posterior.vocabulary is None else posterior.vocabulary
    columns = [word for word in given if isinstance(word, Integral) and not isinstance(word, bool)]
    wrong = next((column for column in columns if not 0 <= int(column) < n_words), None)
    if wrong is not None:
        raise ValueError(f"There is no column {wrong}; the model has {n_words:,} words, numbered from 0.")
    texts = [str(word) for word in given if isinstance(word, str)]
    if not given or len(texts) + len(columns) < len(given):
        raise ValueError(f"words must hold one word or more, or numbers of columns, got {given[:NAMED]!r}.")
    if texts and posterior.vocabulary is None:
        raise ValueError(
            f"The words of the model are unknown, so that {texts[0]!r} is none of them: give numbers of columns, or "
            "pass feature_names to fit."
        )
    gone = {*texts, *(vocabulary[column] for column in columns)}
    names, wide = posterior.word_names, everywhere and posterior.word_names is not None
    known = {*vocabulary.tolist(), *(names.tolist() if wide and names is not None else [])}
    missing = [f"{word!r}" + (f" ({word.lower()!r} is)" if word.lower() in known else "") for word in texts
               if word not in known]  # fmt: skip
    if missing:
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        raise ValueError(f"Words that are not in the vocabulary: {', '.join(missing[:NAMED])}{more}.")
    stay = np.flatnonzero(stays(vocabulary, gone, getattr(self, "vectorizer_", None)))
    direct = stay
    if names is not None:
        direct = np.arange(len(names))
        if everywhere:
            direct = np.flatnonzero(stays(names, gone, getattr(self, "word_vectorizer_", None)))
    if not len(stay) or not len(direct):
        raise ValueError("All words would be banned; some must be left.")
    return with_fields(keep_all(posterior), words=stay, direct=direct), gone


def stays(names: np.ndarray, gone: set[Any], vectorizer: Any) -> np.ndarray:
    """Which words are not banned; with a vectorizer of runs of words, those that have no banned word in them."""
    runs = vectorizer is not None and vectorizer.analyzer == "word" and vectorizer.ngram_range[1] > 1
    return np.array([not (name in gone or (runs and gone.intersection(name.split(" ")))) for name in names.tolist()])


def keep_vectorizers(self: Any, model: Any, change: Change, gone: set[Any], everywhere: bool) -> None:
    """Give a model the vectorizers of this one without some words."""
    if not hasattr(self, "vectorizer_"):
        return
    model.vectorizer_ = vectorizer_without(self.vectorizer_, change.words, gone)
    model.set_params(vectorizer=clone(model.vectorizer_))
    if everywhere and hasattr(self, "word_vectorizer_"):
        model.word_vectorizer_ = vectorizer_without(self.word_vectorizer_, change.direct, gone)
        model.set_params(words=clone(model.word_vectorizer_))


def vectorizer_without(vectorizer: Any, words: np.ndarray, gone: set[Any]) -> Any:
    """A fitted vectorizer that finds only some of its words; the others are stop words."""
    if not hasattr(vectorizer, "vocabulary_"):
        raise ValueError(
            f"ban_words needs a CountVectorizer, which has a vocabulary, but the model has a "
            f"{type(vectorizer).__name__}."
        )
    found, left = copy.deepcopy(vectorizer), vectorizer.get_feature_names_out()[words].tolist()
    found.vocabulary_ = {word: i for i, word in enumerate(left)}
    if found.vocabulary is not None:
        found.set_params(vocabulary=left)
    if found.analyzer == "word":  # a stop word is a single word
        stop_words = {*(vectorizer.get_stop_words() or ()), *(word for word in gone if " " not in word)}
        found.set_params(stop_words=sorted(stop_words) or None)
    return found


def make_revised(self: Any, change: Change, parameters: dict[str, Any]) -> tuple[Any, Any]:
    """An estimator with the topics that its chains start from, and a function that cuts banned words out of counts."""
    model = clone(self).set_params(prior=None, **parameters)
    for name in ("vectorizer_", "word_vectorizer_"):
        if hasattr(self, name):
            setattr(model, name, getattr(self, name))
    model.n_features_in_ = len(change.words)
    if hasattr(self, "feature_names_in_"):
        model.feature_names_in_ = self.feature_names_in_[change.words]
    model.posterior_ = revised(self._fitted(), change)

    def cut(X: Any) -> Any:
        if are_texts(X) or len(change.words) == self.posterior_.n_words:
            return X
        return X.iloc[:, change.words] if hasattr(X, "iloc") else self._validate_counts(X, False)[:, change.words]

    return model, cut


def refit(
    self: Any, model: Any, cut: Any, what: str, X: Any, y: Any, burn_in: int, test: Mapping[str, Any] | None,
    beside: dict[str, Any],
) -> Any:  # fmt: skip
    """Run the chains of a revised model, and compare its losses with those of this one."""
    strange = next((name for name in beside if name not in ALLOWED), None)
    if strange:
        raise TypeError(f"There is no argument {strange!r}; those of documents are {', '.join(ALLOWED)}.")
    own = cut(X)
    model.set_params(burn_in=burn_in).partial_fit(own, y, discount=0.0, new_words=False, **beside)
    model.set_params(burn_in=self.burn_in)
    if test is not None:
        before = self.evaluate(**test).losses
        after = model.evaluate(**{**test, "X": cut(test["X"])}).losses
    else:
        before, after = held_out_losses(self, model, X, y, beside)
    model.revision_ = compare_losses(what, before, after)
    if self.verbose:
        print(model.revision_)
    return model


def held_out_losses(self: Any, model: Any, X: Any, y: Any, beside: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The losses of this model and of the new one on the documents that the new fit held out.

    Weights of words are estimated again from all documents at the end of a fit. So the losses are those that the fits
    kept: of predictions with weights and factors from other documents. If this model learned from other documents, it
    predicts the held-out ones as new documents.
    """
    posterior, now = self._fitted(), model.posterior_.held_out_predictions
    then, docs = posterior.held_out_predictions, model.posterior_.held_out_docs
    if now is None:
        return np.zeros(0), np.zeros(0)
    same = then is not None and then.loss.shape == now.loss.shape and np.array_equal(then.truth, now.truth)
    if same and (posterior.held_out_docs is None or np.array_equal(posterior.held_out_docs, docs)):
        return then.loss, now.loss
    warn(
        "These are not the documents of the fit, or others were held out. If the model has learned from some of them, "
        "its loss before the change is too small. Pass test=, documents that it has not learned from."
    )
    before = losses_of(self, X, y, docs, beside)
    return before[np.isfinite(before)][-len(now.loss) :], now.loss


def losses_of(self: Any, X: Any, y: Any, docs: np.ndarray, beside: dict[str, Any]) -> np.ndarray:
    """The losses of some documents, NaN where the response is not wholly known."""
    more = dict(beside)
    y = self._join(y, more)
    documents = self._new(X, **{name: value for name, value in more.items() if name in OF_PREDICTIONS})
    n_docs, response = documents.counts.shape[0], documents.posterior.response
    if is_long(y):
        y = as_answers(y, n_docs, None, index_of(X), getattr(self, "missing_label", None))
    truth = response.truth(y, n_docs)[docs]
    return documents.part(docs).losses(truth)[0]


def compare_losses(what: str, before: np.ndarray, after: np.ndarray) -> Revision:
    """The mean losses of documents that both models give a loss."""
    if len(before) == len(after):
        known = np.isfinite(before) & np.isfinite(after)
        before, after = before[known], after[known]
    if not min(len(before), len(after)):
        return Revision(what, 0, np.nan, np.nan, np.nan)
    paired, n = len(before) == len(after) > 1, len(after)
    se = float((after - before).std(ddof=1) / np.sqrt(n)) if paired else np.nan
    return Revision(what, n, float(before.mean()), float(after.mean()), se)
