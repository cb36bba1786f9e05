"""New documents under a posterior: their topic shares, and draws of omega, the sum of the posterior's terms."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from supertopic.corpus.tokens import Tokens, cut, make_tokens, take
from supertopic.kernels.draws import content_streams, make_key
from supertopic.model.linear import Matrix
from supertopic.model.posterior import Posterior, TopicSet
from supertopic.model.responses.averages import average
from supertopic.model.state import map_topics, mean_topics
from supertopic.model.terms import DrawPairs
from supertopic.sampling.new_documents import (
    CHUNK_NUMBERS,
    CHUNK_TOKENS,
    DEVICE_NUMBERS,
    PREDICT,
    FrozenTopics,
    draw_omegas,
    draw_topics,
    freeze,
    infer_shares,
    on_cpu,
)
from supertopic.sampling.pool import each

freezing = threading.Lock()  # topics for predictions are made once, whoever asks first
frozen: WeakKeyDictionary[TopicSet, dict[tuple[int, str], FrozenTopics]] = WeakKeyDictionary()

Summary = Callable[[np.ndarray, np.ndarray, slice], Any]  # of omega, of the response's own parameter, which documents


@dataclass(frozen=True)
class Settings:
    """How predictions are made: nothing here changes a posterior."""

    n_sweeps: int = 40  # over a new document; the second half is used
    n_threads: int = 1
    device: str = "cpu"


def frozen_topics(topics: TopicSet, chain: int, device: str) -> FrozenTopics:
    """The topics of a chain as the sampler reads them; kept, since making them takes longer than a document."""
    with freezing:
        known = frozen.setdefault(topics, {})
        if (chain, device) not in known:
            counts, priors = topics.word_topic[chain], topics.priors(chain)
            if device == "cpu" and not counts.flags.writeable:  # a file that is mapped, of which processes share a copy
                known[chain, device] = map_topics(counts, topics.n_draws, priors)
            else:
                known[chain, device] = freeze(mean_topics(counts, topics.n_draws, priors), device)
        return known[chain, device]


class HasTopics(Protocol):
    """Topics that are learned: a posterior, or a part of one."""

    @property
    def topics(self) -> tuple[TopicSet, ...]: ...

    @property
    def seed(self) -> int: ...


class LearnedTopics(NamedTuple):
    """Topics while a posterior is made."""

    topics: tuple[TopicSet, ...]
    seed: int


def predict_key(known: HasTopics, place: int, chain: int) -> np.uint64:
    """The random numbers of a chain of a set of topics for new documents."""
    return make_key(known.seed, place * len(known.topics[0].word_topic) + chain, PREDICT)


@dataclass(frozen=True, eq=False)
class SampledDocuments:
    """Documents whose topics are drawn as if they were new: what terms see of documents."""

    posterior: HasTopics
    counts: csr_array  # (n_docs, V), checked
    words: csr_array  # (n_docs, W), checked; the same where words with weights are those of topics
    features: Matrix  # (n_docs, F)
    covariates: np.ndarray  # (n_docs, P), as the user gave them
    log_exposure: np.ndarray  # (n_docs, 1)
    settings: Settings = Settings()

    @cached_property
    def tokens(self) -> Tokens:
        return make_tokens(self.counts)

    @cached_property
    def pairs(self) -> DrawPairs:
        n_kept, first = self.settings.n_sweeps - self.settings.n_sweeps // 2, self.posterior.topics[0]
        return DrawPairs(len(first.word_topic), first.n_draws, max(first.n_draws, n_kept))

    def topic_omega(self, place: int, chain: int, eta: np.ndarray) -> np.ndarray:
        topics = frozen_topics(self.posterior.topics[place], chain, self.settings.device)
        key = predict_key(self.posterior, place, chain)
        return draw_omegas(self.tokens, topics, self.settings.n_sweeps, np.ascontiguousarray(eta), key)

    def token_topics(self, place: int, chain: int) -> np.ndarray:
        tokens, topics = on_cpu(self.tokens, frozen_topics(self.posterior.topics[place], chain, "cpu"))
        streams = content_streams(self.tokens, predict_key(self.posterior, place, chain))
        return draw_topics(tokens, topics, streams, self.settings.n_sweeps)


@dataclass(frozen=True, eq=False)
class NewDocuments(SampledDocuments):
    """Documents to predict."""

    posterior: Posterior

    def part(self, docs: slice | np.ndarray) -> "NewDocuments":
        """Some of the documents."""
        counts = self.counts[docs]
        part = replace(
            self, counts=counts, words=counts if self.words is self.counts else self.words[docs],
            features=self.features[docs], covariates=self.covariates[docs], log_exposure=self.log_exposure[docs],
        )  # fmt: skip
        if isinstance(docs, slice):
            part.__dict__["tokens"] = take(self.tokens, docs)  # a view
        return part

    def omega(self) -> np.ndarray:
        """omega in every draw of every chain, (n_chains n_pairs, n_docs, R)."""
        first, *others = self.posterior.terms
        total = first.omega(self)
        for term in others:
            total += term.omega(self)
        return total

    def summarise(self, summary: Summary) -> Any:
        """What follows from draws of omega: an array, or a tuple or a dict of some, over the documents.

        `summary` gets omega (n_draws, n_docs, R) of all chains, in which shares of topics are drawn as the weights are,
        so that it contains what is unknown of a document; the response's own parameter (n_draws, S); and which
        documents these are. It is called for some documents at a time, since the draws of all would need much memory.
        """
        scales = self.pairs.over(self.posterior.scale)

        def work(docs: slice) -> Any:
            part = self if docs == slice(0, self.counts.shape[0]) else self.part(docs)
            return summary(part.omega(), scales, docs)

        parts, n_threads = self._parts()
        found = each(lambda i: work(parts[i]), len(parts), n_threads, threading.Event())
        if isinstance(found[0], tuple):
            return tuple(map(np.concatenate, zip(*found, strict=True)))
        if isinstance(found[0], dict):
            return {name: np.concatenate([part[name] for part in found]) for name in found[0]}
        return np.concatenate(found)

    def expected(self) -> np.ndarray:
        """The mean prediction of each document, (n_docs, n_answers)."""
        response = self.posterior.response
        return self.summarise(lambda omegas, scales, _: average(response.expected(omegas, scales)))

    def interval(self, level: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The interval of each prediction: lower and upper ends, (n_docs, n_answers)."""
        response = self.posterior.response.plain()
        return self.summarise(lambda omegas, scales, _: response.interval(omegas, scales, level))

    def predictions(self) -> dict[str, np.ndarray]:
        """Predictions as columns of a table, (n_docs,) each."""
        response = self.posterior.response.plain()
        return self.summarise(lambda omegas, scales, _: response.predictions(omegas, scales))

    def doubt(self) -> np.ndarray:
        """How unsure each prediction is, (n_docs,)."""
        response = self.posterior.response.plain()
        return self.summarise(lambda omegas, scales, _: response.doubt(omegas, scales))

    def losses(self, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each prediction, (n_docs,), and the mean prediction, (n_docs, n_answers)."""
        response = self.posterior.response.plain()
        return self.summarise(
            lambda omegas, scales, docs: (
                response.loss(truth[docs], omegas, scales),
                average(response.expected(omegas, scales)),
            )
        )

    def surprise(self, truth: np.ndarray) -> np.ndarray:
        """How far each known response is from its prediction, (n_docs,); -inf where it is unknown."""
        response = self.posterior.response.plain()
        found = self.summarise(lambda omegas, scales, docs: response.surprise(truth[docs], omegas, scales))
        return np.where(np.isnan(found), -np.inf, found)

    def _parts(self) -> tuple[list[slice], int]:
        """The documents that are worked on at a time, and by how many threads."""
        n_docs, n_threads = self.counts.shape[0], self.settings.n_threads
        if not n_docs:
            return [slice(0, 0)], 1
        numbers = n_docs * self.pairs.total * self.posterior.columns[-1].stop
        if self.settings.device == "cuda":  # a device wants many documents at a time, and cuts them itself
            n_parts, n_threads = numbers // DEVICE_NUMBERS, 1
        else:
            n_parts = max(len(self.tokens.word) // CHUNK_TOKENS, numbers // CHUNK_NUMBERS, n_threads)
        return cut(self.tokens.doc_start, max(1, min(n_parts, n_docs))), n_threads


def topic_shares(posterior: Posterior, tokens: Tokens, chain: int, settings: Settings) -> np.ndarray:
    """The label-free mean zbar of new documents in a chain, (n_docs, K); that of the corpus for one without words."""
    zbar = np.empty((len(tokens.doc_start) - 1, posterior.n_topics))
    for i, (topics, places) in enumerate(zip(posterior.topics, posterior.places, strict=True)):
        own, key = frozen_topics(topics, chain, settings.device), predict_key(posterior, i, chain)
        shares = infer_shares(tokens, own, settings.n_sweeps, key, settings.n_threads)
        zbar[:, places] = shares / len(posterior.topics)
    zbar = zbar[:, posterior.order[chain]]
    zbar[np.diff(tokens.doc_start) == 0] = posterior.shares[chain]
    return zbar


def mean_topic_shares(posterior: Posterior, tokens: Tokens, settings: Settings) -> np.ndarray:
    """The label-free shares of topics in new documents, (n_docs, K): means over the chains that have each topic."""
    total, consensus = np.zeros((len(tokens.doc_start) - 1, posterior.n_topics)), posterior.consensus
    for chain, has in enumerate(consensus.has):
        total += topic_shares(posterior, tokens, chain, settings) * has
    return posterior.as_shares(total / consensus.n_having)
