"""A posterior is a value: topics, terms, response, traces, and what later batches need. It never changes."""

import itertools
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from supertopic.corpus.source import Target
from supertopic.model.consensus import Consensus, have_topics, match_chains
from supertopic.model.groups import GroupWeights
from supertopic.model.held_out import HeldOutPredictions
from supertopic.model.history import Batch
from supertopic.model.linear import FeatureWeights, WordWeights
from supertopic.model.reference import Reference
from supertopic.model.responses.base import Response
from supertopic.model.state import Priors, WeightPriors
from supertopic.model.terms import CovariateColumns, CovariateWeights, Intercept, Term, TopicWeights, no_covariates

T = TypeVar("T", bound=Term)
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class TopicSet:
    """The topics of all chains, and the chains' weights for the columns that they serve.

    One set serves all columns, or each column has a set of its own (`multiclass="separate"`). P is the number of
    covariates, whose weights come after those of topics.
    """

    word_topic: np.ndarray  # (chain, V, K): counts, summed over the draws
    n_draws: int
    alpha: np.ndarray  # (chain, K)
    beta: np.ndarray  # (chain,)
    pseudo_tokens: np.ndarray  # (chain, K): pseudo-counts that no document of this model gave
    training: np.ndarray  # (chain, draw, R, K + P): weights of the chains, where the response weighs c

    @property
    def n_topics(self) -> int:
        return self.word_topic.shape[2]

    def priors(self, chain: int) -> Priors:
        return Priors(self.alpha[chain], self.beta[chain], 1.0)

    def mean_counts(self, chain: int) -> np.ndarray:
        """The mean counts of a chain's draws, plus beta: (V, K)."""
        return self.word_topic[chain] / self.n_draws + self.beta[chain]

    def phi(self, chain: int) -> np.ndarray:
        """The topics of a chain, (V, K): columns sum to 1."""
        counts = self.mean_counts(chain)
        return counts / counts.sum(axis=0)

    def word_shares(self) -> np.ndarray:
        """The share of each topic in the tokens of each word, (V, K), in the mean of the chains."""
        counts = self.word_topic.sum(axis=0) + 0.0
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)

    @cached_property
    def shares(self) -> np.ndarray:
        """The share of each topic in all tokens of documents, (chain, K)."""
        tokens = self.word_topic.sum(axis=1, dtype=float) - self.n_draws * self.pseudo_tokens
        tokens = np.maximum(tokens, 1e-300)
        return tokens / tokens.sum(axis=1, keepdims=True)


class Traces(NamedTuple):
    """How the chains ran."""

    kept: np.ndarray  # (chain, draw, 2): log joint and the response's loss in each kept draw
    log_joint: np.ndarray  # (chain, n): NaN after the end of a chain
    iterations: np.ndarray  # (n,): when it was taken
    burn_in: np.ndarray  # (chain,): iterations before the first kept draw
    settled: np.ndarray  # (chain,) bool: whether the log joint and the loss had stopped drifting by then
    timings: dict[str, float]


@dataclass(frozen=True, eq=False)
class Phrases:
    """Pairs of neighbours in texts that are more informative than each word alone, the strongest first."""

    first: np.ndarray  # (n,): places of words in the vocabulary
    second: np.ndarray  # (n,)
    share: np.ndarray  # (n, 2): the part of the occurrences of the first and of the second word that are in the pair

    def __len__(self) -> int:
        return len(self.first)


class LinearCarryover(NamedTuple):
    """Earlier documents and the weights of a linear term: a normal density of each, without its prior."""

    theta: np.ndarray  # (n, R): the mean
    precision: np.ndarray  # (n, R)
    penalty: float  # the prior variance
    documents: np.ndarray | None = None  # (W + 1,): documents that have each word, and all documents


class Usage(NamedTuple):
    """How often the words of a vocabulary occur: see `model.new_words`."""

    documents: np.ndarray  # (V,): documents that have each word, those of earlier batches count for less
    first: int  # the number of words of the first fit


@dataclass(frozen=True, eq=False)
class Carryover:
    """What later batches need of the documents so far; a file of an old version has less."""

    weights: tuple[tuple[WeightPriors, ...], ...] = ()  # for each set of topics and chain
    sums: np.ndarray = field(default_factory=lambda: np.zeros((5, 0)))  # see `inference.level`
    level: np.ndarray | None = None  # (R,): the offset of regressions, in the units of y
    level_shift: np.ndarray | None = None  # (3, R): see `inference.level`
    scale: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # (n, S): draws of the response's own parameter
    scale_shift: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (S,): see `Response.match_scale`
    linear: dict[str, LinearCarryover] = field(default_factory=dict)  # by the name of the term
    grids: dict[str, list[np.ndarray]] = field(default_factory=dict)  # see `inference.shrinkage`
    usage: dict[str, Usage] = field(default_factory=dict)  # by the name of the vocabulary, if it has grown


class CrossFitted(NamedTuple):
    """The training documents of the last batch, with shares that do not depend on the response that they explain."""

    shares: np.ndarray  # (n_docs, K) float32: those of the chain that did not see the response; NaN if all saw it
    fold: np.ndarray  # (n_docs,): the number of this chain, or -1
    target: Target  # with the offset of regressions and standardised covariates
    spread: np.ndarray  # (R, K): the variance of weights between chains


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """A fitted model."""

    response: Response
    topics: tuple[TopicSet, ...]
    terms: tuple[Term, ...]  # the terms of omega in predictions, which add up to it; none without a response
    scale: np.ndarray  # (chain, draw, S): the response's own parameter in predictions
    traces: Traces
    best_chain: int  # the chain with the highest log joint
    order: np.ndarray  # (chain, K): the topics of each chain in the common order that `match_chains` finds
    sampler: str
    seed: int
    n_batches: int = 1  # 0: there were no documents yet, and chains start from these topics
    vocabulary: np.ndarray | None = None  # (V,)
    word_names: np.ndarray | None = None  # (W,): words with weights of their own; None: those of the vocabulary
    topic_names: dict[str, str] = field(default_factory=dict)
    phrases: Phrases | None = None
    held_out: dict[str, Any] = field(default_factory=lambda: {"documents": 0})
    # weights from held-out responses, (n, R, K) and (n, R, P), in standard units
    reported: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    reported_covariates: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    reported_groups: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))  # (n, R, G)
    training_scale: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))  # as scale, in the chains
    doc_topic: np.ndarray | None = None  # (n_docs, K): shares of the training documents of the last batch
    cross_fitted: CrossFitted | None = None  # the same documents for regressions; in no file, either
    held_out_docs: np.ndarray | None = None  # (n,): the numbers of those that were held out; in no file, either
    held_out_predictions: HeldOutPredictions | None = None  # what guarantees rest on
    reference: Reference | None = None  # what later documents are compared with
    history: tuple[Batch, ...] = ()  # how well each batch was predicted before it was learned from
    carryover: Carryover = field(default_factory=Carryover)

    def __repr__(self) -> str:
        """A line: the arrays are large."""
        names = ", ".join(term.name for term in self.terms) or "no response"
        return f"<Posterior: {self.n_topics} topics, {self.n_chains} chains of {self.n_draws} draws; {names}>"

    @property
    def n_chains(self) -> int:
        return len(self.topics[0].word_topic)

    @property
    def n_draws(self) -> int:
        return self.topics[0].n_draws

    @property
    def n_words(self) -> int:
        return self.topics[0].word_topic.shape[1]

    @property
    def n_topics(self) -> int:
        """The number of topics of all sets."""
        return sum(part.n_topics for part in self.topics)

    @property
    def mean_response(self) -> Response:
        """The response with the mean of its own parameter in predictions."""
        return self.response.with_scale(self.scale.mean(axis=(0, 1)))

    @property
    def supervised(self) -> bool:
        return bool(self.terms)

    @property
    def columns(self) -> list[slice]:
        """The columns of the response that each set of topics serves."""
        ends = np.cumsum([0, *(part.training.shape[2] for part in self.topics)]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    @property
    def places(self) -> list[slice]:
        """The places of each set's topics where all topics stand side by side."""
        ends = np.cumsum([0, *(part.n_topics for part in self.topics)]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    @property
    def own(self) -> np.ndarray:
        """Which topics each column has weights for, (R, K)."""
        own = np.zeros((self.columns[-1].stop, self.n_topics), bool)
        for columns, places in zip(self.columns, self.places, strict=True):
            own[columns, places] = True
        return own

    @cached_property
    def consensus(self) -> Consensus:
        """Which chains have each topic."""
        if self.n_chains == 1:
            return Consensus(np.ones((1, self.n_topics), bool))
        roots = [np.sqrt(self.phi(chain), dtype=np.float32) for chain in range(self.n_chains)]
        same_order = np.tile(np.arange(self.n_topics), (self.n_chains, 1))
        return Consensus(have_topics(roots, self.best_chain, same_order))

    def matched(self, values: np.ndarray) -> np.ndarray:
        """Values (chain, ..., K), the topics of each chain put into the common order."""
        return np.stack([own[..., order] for own, order in zip(values, self.order, strict=True)])

    @property
    def shares(self) -> np.ndarray:
        """The share of each topic in all tokens, (chain, K): each set has an equal part."""
        return self.matched(np.concatenate([part.shares for part in self.topics], axis=1) / len(self.topics))

    @property
    def mean_shares(self) -> np.ndarray:
        """The share of each topic in all tokens, (K,), in the chains that have it."""
        return self.as_shares(self.consensus.mean(self.shares))

    def as_shares(self, values: np.ndarray) -> np.ndarray:
        """Values (..., K) that are divided by their sum in each set, so that all of them sum to 1."""
        found = np.empty(values.shape)
        for places in self.places:
            whole = values[..., places].sum(axis=-1, keepdims=True)
            found[..., places] = values[..., places] / np.maximum(whole, TINY) / len(self.topics)
        return found

    def phi(self, chain: int) -> np.ndarray:
        """The topics of a chain, (V, K)."""
        return np.concatenate([part.phi(chain) for part in self.topics], axis=1)[:, self.order[chain]]

    def mean_counts(self, chain: int) -> np.ndarray:
        """The mean counts of a chain's draws, plus beta: (V, K)."""
        return np.concatenate([part.mean_counts(chain) for part in self.topics], axis=1)[:, self.order[chain]]

    def alpha(self, chain: int) -> np.ndarray:
        """(K,)."""
        return np.concatenate([part.alpha[chain] for part in self.topics])[self.order[chain]]

    def side_by_side(self, weights: list[np.ndarray]) -> np.ndarray:
        """Weights of each set's topics, (chain, n, R of the set, K of it or more), as (chain, n, R, K).

        A column has 0 for topics that are not its own. Topics are in the common order.
        """
        wide = np.zeros((*weights[0].shape[:2], *self.own.shape))
        for part, columns, places in zip(weights, self.columns, self.places, strict=True):
            wide[:, :, columns, places] = part[..., : places.stop - places.start]
        return self.matched(wide)

    @property
    def training(self) -> np.ndarray:
        """Weights of the chains, (chain, draw, R, K), in standard units."""
        return self.side_by_side([part.training for part in self.topics])

    @property
    def prediction(self) -> np.ndarray:
        """Weights of predictions, (chain, draw, R, K), in standard units."""
        return self.side_by_side(list(self.term(TopicWeights).eta))

    def find(self, kind: type[Term]) -> Term | None:
        return next((term for term in self.terms if isinstance(term, kind)), None)

    def term(self, kind: type[T]) -> T:
        """The term of a kind; an AttributeError if there is none."""
        found = self.find(kind)
        if not isinstance(found, kind):
            raise AttributeError(f"The model has no {kind.name}.")
        return found

    @property
    def covariates(self) -> CovariateWeights | None:
        found = self.find(CovariateWeights)
        return found if isinstance(found, CovariateWeights) else None

    @property
    def groups(self) -> GroupWeights | None:
        found = self.find(GroupWeights)
        return found if isinstance(found, GroupWeights) else None

    @property
    def columns_beside(self) -> CovariateColumns:
        """The covariates and groups beside topics."""
        columns = self.covariates.columns if self.covariates else no_covariates()
        return replace(columns, groups=self.groups.names) if self.groups else columns

    @property
    def words(self) -> WordWeights | None:
        found = self.find(WordWeights)
        return found if isinstance(found, WordWeights) else None

    @property
    def features(self) -> FeatureWeights | None:
        found = self.find(FeatureWeights)
        return found if isinstance(found, FeatureWeights) else None

    @property
    def n_direct(self) -> int:
        """The number of words that may have weights of their own."""
        return self.n_words if self.word_names is None else len(self.word_names)

    @property
    def intercept(self) -> Intercept:
        return self.term(Intercept)

    def named(self, names: dict[str, str]) -> "Posterior":
        """The same posterior with names for some topics."""
        return replace(self, topic_names={topic: name for topic, name in (self.topic_names | names).items() if name})


def match_topics(topics: tuple[TopicSet, ...], reference: int, n_seeded: int = 0) -> np.ndarray:
    """For each chain its topics in the order of the reference chain's, (chain, K). A class has topics of its own."""
    if len(topics[0].word_topic) == 1:
        return np.arange(sum(part.n_topics for part in topics))[None]
    found, first = [], 0
    for part in topics:
        phis = map(part.phi, range(len(part.word_topic)))  # one at a time: they are large
        found.append(first + match_chains(phis, reference, n_seeded))
        first += part.n_topics
    return np.concatenate(found, axis=1)
