"""The plan of a chain: everything that determines its draws, except for its documents and priors of size (V, K)."""

import itertools
from typing import NamedTuple

import numpy as np

from supertopic.corpus.source import Corpus
from supertopic.corpus.tokens import cut
from supertopic.model.responses import Response
from supertopic.model.state import Priors, Statistics, no_statistics

START, ETA, TOPICS, SWEEP, SCALE, LAMBDA, NEWTON, VARIANCE = range(8)  # purposes of random numbers inside a chain
SAMPLERS = ("collapsed", "drawn", "delayed")
SPARSE_FROM = 100  # smallest number of topics for which `sweep_sparse` is the faster one
DENSE, ACCEPTED = 5, 0.5  # dense sweeps at first, and again if a smaller share of the proposals is accepted
SHARD_TOKENS, EVEN = 50_000, 16  # tokens of a shard; above so many shards their number is a multiple of it
MANY_SHARDS, LONG_SHARD = 64, 2**20  # number of shards from which on they grow instead, up to so many tokens each
DEVICE_TOKENS = 2**28  # largest number of tokens of a shard on a GPU
MOST_WEIGHTS = 2000  # largest number of weights of a column for which a matrix of all pairs is made
MATRIX_UP_TO = 320  # the same for a chain's own draws on a GPU, where documents have lists of their topics beyond
LEAST_GROUPS = 16  # smallest number of groups of shards, each of which adds up its statistics


class Plan(NamedTuple):
    """Everything that determines a chain except for its documents. It is small, and it pickles."""

    slices: tuple[slice, ...]  # the documents of each shard: from the corpus and the model, never from the machine
    groups: tuple[slice, ...]  # shards whose statistics are added one after the other, before groups are added in pairs
    n_words: int
    n_columns: int
    n_covariates: int
    response: Response
    priors: Priors  # at the start
    learn: bool  # whether alpha and beta are estimated during the burn-in
    sampler: str
    seed: int
    burn_in: int
    device: str = "cpu"  # where the arrays of the shards live
    n_groups: int = 0  # the last covariates, whose weights are pooled
    matrix_free: bool = False  # whether eta is drawn without a matrix of its precision: see `sampling.matrix_free`
    quicker_without: bool = False  # whether only the iterations of a chain do so, since sums of all pairs take longer

    @property
    def n_topics(self) -> int:
        return len(self.priors.alpha)

    @property
    def sparse(self) -> bool:
        """Whether the sparse sampler, which is the faster one for many topics, draws z."""
        return self.sampler != "collapsed" and self.n_topics >= SPARSE_FROM

    @property
    def without_matrix(self) -> bool:
        """Whether eta is drawn now without a matrix of its precision."""
        return self.matrix_free or self.quicker_without

    def no_statistics(self) -> Statistics:
        """The statistics of no document."""
        return no_statistics(self.n_topics + self.n_covariates, self.n_columns, self.without_matrix)


def is_matrix_free(n_topics: int, n_covariates: int, device: str = "cpu") -> bool:
    """Whether a column has so many weights that eta is drawn without a matrix.

    Documents on a GPU have lists of their topics, not of their covariates.
    """
    n_weights = n_topics + (n_covariates if device == "cpu" else 0)
    return n_weights > max(MOST_WEIGHTS, 1)


def make_plan(
    source: Corpus, n_words: int, response: Response, priors: Priors, learn: bool, sampler: str, seed: int,
    burn_in: int, device: str = "cpu", n_groups: int = 0,
) -> Plan:  # fmt: skip
    """The plan of a chain for these documents."""
    n_tokens, target = int(source.doc_start[-1]), source.target
    n_columns, n_covariates = target.weight.shape[1], target.covariates.shape[1]
    n_shards = count_shards(n_tokens) if device == "cpu" else 1 + n_tokens // DEVICE_TOKENS
    slices = cut(source.doc_start, 1 if sampler == "collapsed" else n_shards)
    width = len(priors.alpha) + n_covariates
    matrix_free = is_matrix_free(len(priors.alpha), n_covariates, device)
    quicker_without = device != "cpu" and len(priors.alpha) > MATRIX_UP_TO
    numbers = (2 * width if matrix_free else width * (width + 1) // 2) * max(n_columns, 1)
    n_sums = min(len(slices), max(LEAST_GROUPS, n_tokens // (2 * numbers)))
    edges = np.linspace(0, len(slices), n_sums + 1).astype(int).tolist()
    groups = tuple(slice(a, b) for a, b in itertools.pairwise(edges))
    return Plan(
        tuple(slices), groups, n_words, n_columns, n_covariates, response, priors, learn, sampler, seed, burn_in,
        device, n_groups, matrix_free, quicker_without,
    )  # fmt: skip


def count_shards(n_tokens: int) -> int:
    """The number of shards, from the corpus alone: few, since each costs Python time, but enough for a cluster."""
    n_shards = max(1, n_tokens // SHARD_TOKENS)
    if n_shards > EVEN:  # so that 2, 4, 8 or 16 threads get equally many
        n_shards = max(min(n_shards, MANY_SHARDS), n_tokens // LONG_SHARD)
        n_shards = -(-n_shards // EVEN) * EVEN
    return n_shards
