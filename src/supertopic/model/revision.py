"""Where the chains of a revised model start: topics of a posterior, some of them merged, some words left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from supertopic.model.groups import GroupWeights
from supertopic.model.linear import FeatureWeights
from supertopic.model.posterior import Carryover, Phrases, Posterior, TopicSet
from supertopic.model.reference import Reference
from supertopic.model.terms import CovariateWeights

BESIDE = CovariateWeights, GroupWeights, FeatureWeights  # terms that say how columns beside the texts are read


@dataclass(frozen=True, eq=False)
class Change:
    """What is to become of topics and words."""

    groups: tuple[tuple[int, ...], ...]  # for each new topic the numbers of the old ones, in the common order
    words: np.ndarray  # the columns that stay
    direct: np.ndarray  # the same of words with weights of their own; those of topics where there are no others

    def of_set(self, places: slice) -> list[list[int]]:
        """The groups of a set of topics, with numbers inside of the set."""
        own = [group for group in self.groups if places.start <= group[0] < places.stop]
        return [[k - places.start for k in group] for group in own]


def keep_all(posterior: Posterior) -> Change:
    """The change that changes nothing."""
    groups = tuple((k,) for k in range(posterior.n_topics))
    return Change(groups, np.arange(posterior.n_words), np.arange(posterior.n_direct))


def revised(posterior: Posterior, change: Change) -> Posterior:
    """A posterior without documents, which has the topics that chains start from.

    Topics of all chains are in the common order. What is known of responses, covariates and features stays: classes,
    names and scales.
    """
    response, n_new = posterior.response, len(change.groups)
    if "n_answers" in response.learned:  # of raters: they are counted again
        response = replace(response, **{"n_answers": np.zeros_like(response.n_answers)})  # type: ignore[attr-defined]
    names, reference = posterior.topic_names, posterior.reference
    if reference is not None:
        same_words = len(change.words) == posterior.n_words
        reference = Reference(
            np.zeros(0), np.zeros((0, n_new), np.float32), reference.unknown if same_words else np.zeros(0)
        )
    joined = {
        str(new): " + ".join(names[str(k)] for k in group if str(k) in names) for new, group in enumerate(change.groups)
    }
    vocabulary, word_names = posterior.vocabulary, posterior.word_names
    return Posterior(
        response, tuple(revised_set(posterior, place, change) for place in range(len(posterior.topics))),
        tuple(term for term in posterior.terms if isinstance(term, BESIDE)), posterior.scale, posterior.traces,
        posterior.best_chain, np.tile(np.arange(n_new), (posterior.n_chains, 1)), posterior.sampler, posterior.seed,
        n_batches=0,
        vocabulary=None if vocabulary is None else vocabulary[change.words],
        word_names=None if word_names is None else word_names[change.direct],
        topic_names={topic: name for topic, name in joined.items() if name},
        phrases=None if posterior.phrases is None else kept_phrases(posterior.phrases, change.words),
        reference=reference,
        carryover=Carryover(sums=np.zeros_like(posterior.carryover.sums)),
    )  # fmt: skip


def revised_set(posterior: Posterior, place: int, change: Change) -> TopicSet:
    """A set of topics after the change, without weights."""
    part, places = posterior.topics[place], posterior.places[place]
    groups = change.of_set(places)
    order = posterior.order[:, places] - places.start  # (chain, K)
    n_chains, _, n_columns, width = part.training.shape
    width += len(groups) - part.n_topics
    return TopicSet(
        np.stack([
            merge_columns(counts[change.words], own, groups)
            for counts, own in zip(part.word_topic, order, strict=True)
        ]),
        part.n_draws,
        np.stack([merge_columns(alpha, own, groups) for alpha, own in zip(part.alpha, order, strict=True)]),
        part.beta, np.zeros((n_chains, len(groups))), np.zeros((n_chains, 0, n_columns, width)),
    )  # fmt: skip


def merge_columns(values: np.ndarray, order: np.ndarray, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Values (..., K) of a chain, whose topics have an order, as sums over groups of topics: (..., groups)."""
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    return np.add.reduceat(values[..., order[np.concatenate(groups)]], starts, axis=-1)


def kept_phrases(phrases: Phrases, words: np.ndarray) -> Phrases:
    """The pairs both of whose words stay."""
    place = {word: i for i, word in enumerate(words.tolist())}
    pairs = zip(phrases.first.tolist(), phrases.second.tolist(), strict=True)
    stay = np.array([first in place and second in place for first, second in pairs], bool)
    first, second = (
        np.array([place[word] for word in own[stay].tolist()], own.dtype) for own in (phrases.first, phrases.second)
    )
    return Phrases(first, second, phrases.share[stay])
