"""A posterior whose vocabulary grows: new words have no counts yet, and words that hardly come any more are forgotten.

Which words come often is a faded sum: documents of a batch that have the word, and FADE times those before. It needs
one number for each word, and both a rare word and one that has not come for many batches have a small one.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from supertopic.model.linear import WordWeights
from supertopic.model.posterior import Carryover, Phrases, Posterior, TopicSet, Usage

FADE = 0.9  # the factor of the weight of earlier documents with each batch
# A vocabulary may become twice as large as that of the first fit, which bounds the memory and the time that a stream
# adds. A stream that began with a few texts needs more than that: most words of a language are among ENOUGH.
GROWTH, ENOUGH, MOST = 2, 50_000, 2**20
TOPIC_WORDS, OWN_WORDS = "topics", "words"  # the two vocabularies


class Vocabulary(NamedTuple):
    """A vocabulary that has changed."""

    names: np.ndarray  # (V,)
    source: np.ndarray  # (V,): the place of each word in the vocabulary before, -1 for a new one
    usage: Usage
    added: list[str]  # those of the most documents first
    forgotten: list[str]

    def place(self, n_before: int) -> np.ndarray:
        """The new place of each word of the vocabulary before, -1 for one that is forgotten."""
        place = np.full(n_before, -1)
        place[self.source[self.source >= 0]] = np.flatnonzero(self.source >= 0)
        return place


def usage_of(posterior: Posterior, name: str) -> Usage:
    """How often the words of a vocabulary occur; before a first update, according to the counts of the fit."""
    known, linear = posterior.carryover.usage.get(name), posterior.carryover.linear.get(WordWeights.name)
    if known is not None:
        return known
    if name == TOPIC_WORDS:
        first = posterior.topics[0]
        tokens = first.word_topic.sum(axis=(0, 2)) / (first.n_draws * len(first.word_topic))
        return Usage(tokens.astype(np.float32), len(tokens))
    n_words = posterior.n_direct
    if linear is None or linear.documents is None:
        return Usage(np.ones(n_words, np.float32), n_words)
    return Usage(linear.documents[:-1].astype(np.float32), n_words)


def grow_vocabulary(
    names: np.ndarray, usage: Usage, batch: np.ndarray, new: dict[str, int], keep: set[str], most: int | None = None
) -> Vocabulary:
    """The vocabulary with new words, and without the rarest ones if it becomes too large.

    `batch` (V,) are the documents of this batch that have each known word, `new` those that have each new one; `keep`
    are words that stay, `most` a bound of the user's.
    """
    added = sorted(new, key=lambda word: (-new[word], word))
    limit = min(max(GROWTH * usage.first, ENOUGH), MOST)
    limit = max(len(names), limit if most is None else min(limit, most))
    everything = np.array([*names, *added], dtype=object)
    often = np.concatenate([FADE * usage.documents + batch, [new[word] for word in added]])
    stays = np.ones(len(everything), bool)
    if len(everything) > limit:
        rank = np.where(np.isin(everything, list(keep)), np.inf, often)
        stays[np.argsort(rank[::-1], kind="stable")[: len(everything) - limit]] = False
        stays = stays[::-1]  # of words that come as often, new ones go first
    source = np.append(np.arange(len(names)), np.full(len(added), -1))
    gone = everything[: len(names)][~stays[: len(names)]].tolist()
    words = [word for word, there in zip(added, stays[len(names) :], strict=True) if there]
    kept = Usage(often[stays].astype(np.float32), usage.first)
    return Vocabulary(everything[stays], source[stays], kept, words, gone)


def take_rows(values: np.ndarray, source: np.ndarray, axis: int = 0) -> np.ndarray:
    """Values at the places of words that there were, 0 for new ones."""
    found = np.take(values, np.maximum(source, 0), axis=axis)
    np.moveaxis(found, axis, 0)[source < 0] = 0
    return found


def with_words(posterior: Posterior, topics: Vocabulary | None, own: Vocabulary | None) -> Posterior:
    """The same posterior with other vocabularies, of topics and of words with weights of their own."""
    n_before, carryover = posterior.n_words, posterior.carryover
    direct = topics if posterior.word_names is None else own
    if direct is not None:
        carryover = move_words(carryover, posterior.words, direct)
        place = direct.place(posterior.n_direct)
        posterior = replace(posterior, terms=tuple(term.at_places(place) for term in posterior.terms))
    for name, vocabulary in ((TOPIC_WORDS, topics), (OWN_WORDS, own)):
        if vocabulary is not None:
            carryover = replace(carryover, usage=carryover.usage | {name: vocabulary.usage})
    posterior = replace(posterior, carryover=carryover)
    if own is not None:
        posterior = replace(posterior, word_names=own.names)
    if topics is None:
        return posterior
    sets = tuple(with_rows(part, topics.source) for part in posterior.topics)
    phrases = None if posterior.phrases is None else move_phrases(posterior.phrases, topics.place(n_before))
    return replace(posterior, topics=sets, vocabulary=topics.names, phrases=phrases)


def move_words(carryover: Carryover, words: WordWeights | None, direct: Vocabulary) -> Carryover:
    """The information of earlier documents about the weights of words, at the new places of the words."""
    known = carryover.linear.get(WordWeights.name)
    if known is None:
        return carryover
    documents = known.documents
    if documents is not None:
        documents = np.append(take_rows(documents[:-1], direct.source), documents[-1])
    theta, precision = known.theta, known.precision
    if words is not None:
        stays = np.isin(words.dictionary.word, direct.source)
        theta, precision = theta[stays], precision[stays]
    moved = known._replace(theta=theta, precision=precision, documents=documents)
    return replace(carryover, linear=carryover.linear | {WordWeights.name: moved})


def with_rows(part: TopicSet, source: np.ndarray) -> TopicSet:
    """The same topics for other words."""
    if np.array_equal(source, np.arange(part.word_topic.shape[1])):
        return part
    return replace(part, word_topic=take_rows(part.word_topic, source, axis=1))


def move_phrases(phrases: Phrases, place: np.ndarray) -> Phrases:
    """Pairs of words at other places, as far as both are known."""
    first, second = place[phrases.first], place[phrases.second]
    both = (first >= 0) & (second >= 0)
    return Phrases(first[both], second[both], phrases.share[both])
