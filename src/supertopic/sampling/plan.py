"""All that determines a chain, and where its documents come from."""

import itertools
from typing import NamedTuple, Protocol

import numpy as np

from supertopic.corpus import Tokens, cut, pick, take
from supertopic.sampling.responses import Response
from supertopic.sampling.state import Priors, Target

START, ETA, TOPICS, SWEEP, SCALE, LAMBDA = range(6)  # purposes of random numbers inside a chain
SAMPLERS = ("collapsed", "drawn", "delayed")
SPARSE_FROM = 100  # topics: from here on `sweep_sparse` is the faster one
DENSE, ACCEPTED = 5, 0.5  # sweeps that look at the response, at first and when it accepts less than this share
MAX_SHARDS, SHARD_TOKENS, EVEN = 64, 50_000, 16
FEW_NUMBERS, MOST_NUMBERS, GROUPS = 2**22, 2**26, 16  # of the statistics of all shards; groups where these are many


class Source(Protocol):
    """Documents, wherever they are."""

    def read(self, docs: slice) -> tuple[Tokens, Target]:
        """Some consecutive documents, and what is known of them."""


class Arrays(NamedTuple):
    """Documents in memory."""

    tokens: Tokens
    target: Target

    def read(self, docs: slice) -> tuple[Tokens, Target]:
        return take(self.tokens, docs), Target(*(array[docs] for array in self.target))

    def column(self, r: int) -> "Arrays":
        """The documents with one column of what is known."""
        y, weight, offset, covariates = self.target
        one = slice(r, r + 1) if offset.shape[1] > 1 else slice(None)
        return Arrays(self.tokens, Target(y[:, r : r + 1], weight[:, r : r + 1], offset[:, one], covariates))

    def pick(self, docs: np.ndarray) -> "Arrays":
        """The documents of a mask."""
        return Arrays(pick(self.tokens, docs), Target(*(array[docs] for array in self.target)))


class Plan(NamedTuple):
    """All that determines a chain but its documents. It pickles, and is small."""

    slices: tuple[slice, ...]  # the documents of each shard: from the corpus and the model, never from the machine
    groups: tuple[slice, ...]  # shards whose statistics are summed as one: large matrices are few
    n_words: int
    n_columns: int
    n_covariates: int
    response: Response
    priors: Priors  # at the start
    learn: bool  # alpha and beta from the data, during the burn-in
    sampler: str
    seed: int
    burn_in: int
    device: str = "cpu"  # where the shards' arrays live

    @property
    def n_topics(self) -> int:
        return len(self.priors.alpha)

    @property
    def sparse(self) -> bool:
        """Whether topics are drawn by the sampler for many topics."""
        return self.sampler != "collapsed" and self.n_topics >= SPARSE_FROM


def make_plan(
    source: Arrays, n_words: int, response: Response, priors: Priors, learn: bool, sampler: str, seed: int,
    burn_in: int, device: str = "cpu",
) -> Plan:  # fmt: skip
    """The plan for documents in memory."""
    tokens, target = source
    n_tokens, n_columns, n_covariates = len(tokens.word), target.y.shape[1], target.covariates.shape[1]
    n_shards = max(1, n_tokens // SHARD_TOKENS)
    if n_shards > EVEN:  # so that threads, of which machines have 2, 4, 8 or 16, get equally many
        n_shards = min(-(-n_shards // EVEN) * EVEN, MAX_SHARDS)
    slices = cut(tokens, 1 if sampler == "collapsed" or device == "cuda" else n_shards)
    width = len(priors.alpha) + n_covariates
    numbers, n_groups = width * (width + 1) // 2 * max(n_columns, 1), len(slices)
    if n_groups * numbers > FEW_NUMBERS:
        n_groups = max(1, min(n_groups, GROUPS, MOST_NUMBERS // numbers))
    edges = np.linspace(0, len(slices), n_groups + 1).astype(int).tolist()
    groups = tuple(slice(a, b) for a, b in itertools.pairwise(edges))
    return Plan(
        tuple(slices), groups, n_words, n_columns, n_covariates, response, priors, learn, sampler, seed, burn_in, device
    )
