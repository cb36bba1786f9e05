"""The state of a model as namedtuples of arrays, which layers pass to each other."""

from typing import NamedTuple, Self

import numpy as np

from supertopic.kernels.lanes import pad

LONG_LIST = 0.5  # share of the tokens: lists of more moves are not kept


class Priors(NamedTuple):
    alpha: np.ndarray  # (K,): Dirichlet prior of a document
    beta: float  # Dirichlet prior of a topic, per word
    nu2: float | np.ndarray  # variance of eta: of all weights, or (R, K + P)


class Quadratic(NamedTuple):
    """exp(kappa omega - lam omega**2 / 2): what every response comes down to after augmentation."""

    kappa: np.ndarray  # (n_docs, R)
    lam: np.ndarray  # (n_docs, R)


class Statistics(NamedTuple):
    """Sufficient statistics of all documents for the draw of eta; x is zbar, then the covariates.

    Of very many weights there is the diagonal of the precision alone: see `sampling.matrix_free`.
    """

    precision: np.ndarray  # ((K + P) (K + P + 1) / 2, R): sum_d lam_dr x_d x_d', a packed lower triangle
    shift: np.ndarray  # (K + P, R): sum_d kappa_dr x_d

    @property
    def is_diagonal(self) -> bool:
        """Whether the precision is a diagonal, (K + P, R)."""
        return len(self.precision) == len(self.shift) > 1

    @property
    def diagonal(self) -> np.ndarray:
        """Where the diagonal is in the precision, (K + P,)."""
        place = np.arange(len(self.shift))
        return place if self.is_diagonal else place * (place + 3) // 2


def no_statistics(width: int, n_columns: int, diagonal: bool = False) -> Statistics:
    """The statistics of no document."""
    size = width if diagonal else width * (width + 1) // 2
    return Statistics(np.zeros((size, n_columns)), np.zeros((width, n_columns)))


class WeightPriors(NamedTuple):
    """What is known about the weights before a chain sees its documents, beside the normal prior with variance nu2.

    Each part is the statistics of documents that are not there any more, or of seeds. They are added to the statistics
    of the documents that are there.
    """

    training: Statistics  # for the weights of the chain
    prediction: Statistics  # for the weights that predict
    reported: Statistics  # for the weights that are reported, from held-out documents


def add(statistics: Statistics, more: Statistics) -> Statistics:
    """The statistics of the documents of both."""
    return Statistics(statistics.precision + more.precision, statistics.shift + more.shift)


class Moves(NamedTuple):
    """How a sweep over a shard changed the counts."""

    tokens: np.ndarray  # (K,) int64: the tokens of each topic after the sweep
    # (n_moved,) uint64: word, old and new topic of the tokens that moved, sorted by parts of the vocabulary
    moves: np.ndarray
    starts: np.ndarray  # (n_parts + 1,): where each part starts
    taken: tuple[int, int]  # proposals that were made without the response, and those of them that were accepted
    listed: bool = True  # else there is no list of the moves, and all tokens have to be counted again

    def without_long_list(self) -> Self:
        """The same without the list if most tokens moved: it would take more memory than the tokens."""
        if len(self.moves) <= LONG_LIST * self.tokens.sum():
            return self
        return self._replace(moves=np.zeros(0, np.uint64), listed=False)


class ShareRows(NamedTuple):
    """Topic shares as sparse rows: document d has topic[start[d]:start[d + 1]]."""

    start: np.ndarray  # (n_docs + 1,) int64
    topic: np.ndarray  # int32; with covariates, these are numbered after the topics
    share: np.ndarray


class SummedCounts(NamedTuple):
    """Counts that are summed over the draws of a chain."""

    word_topic: np.ndarray  # (V, K)
    tokens: np.ndarray  # (K,) int64: its sum over words
    n_draws: int


class Weights(NamedTuple):
    """eta in the forms that the samplers read."""

    exact: np.ndarray  # (R, K): eta
    eta: np.ndarray  # (R, K): eta in float32, flat, rows padded to whole lanes


def make_weights(eta: np.ndarray) -> Weights:
    """The weights of one draw of eta (R, K)."""
    return Weights(eta, pad(eta.astype(np.float32)).reshape(-1))


class Topics(NamedTuple):
    """The topics as the samplers read them: counts, from which a token's own is taken out, or a fixed phi.

    All (V, K) arrays are flat, their rows padded to whole lanes. Live counts follow every move; other counts are those
    after the last sweep.
    """

    word_topic: np.ndarray  # (V, K) int32 counts; empty where phi is fixed
    mass: np.ndarray  # (K,) float64, not padded: the topic's tokens + V beta
    inverse: np.ndarray  # (K,) float32: 1 / mass; 1 where phi is fixed
    phi: np.ndarray  # (V, K) float32; empty where counts are used
    smooth: np.ndarray  # (V,) float32: sum_k alpha_k phi_wk, for `sweep_sparse`; empty for `sweep`
    alpha: np.ndarray  # (K,) float32: the prior of a document
    beta: float
    live: bool


NO_COUNTS, NO_PHI, NO_SMOOTH = np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32)


def fixed_topics(phi: np.ndarray, alpha: np.ndarray) -> Topics:
    """Fixed topics, from phi (V, K)."""
    wide = pad(phi.astype(np.float32, copy=False))
    here = wide[:, : phi.shape[1]]
    np.maximum(here, np.float32(1e-37), out=here)
    return padded_topics(wide.reshape(-1), alpha)


def mean_topics(word_topic: np.ndarray, n_draws: int, priors: Priors) -> Topics:
    """Fixed topics, from counts (V, K) that are summed over some draws."""
    counts = word_topic / n_draws + priors.beta
    return fixed_topics(counts / counts.sum(axis=0), priors.alpha)


class MappedTopics(NamedTuple):
    """Fixed topics whose counts stay in a file: only the rows of words that documents have are made."""

    word_topic: np.ndarray  # (V, K): counts, summed over the draws
    n_draws: int
    priors: Priors
    mass: np.ndarray  # (K,): the sums of counts / n_draws + beta

    def of_words(self, words: np.ndarray) -> Topics:
        """The topics for a vocabulary of some words alone, the same numbers as those of `mean_topics`."""
        counts = self.word_topic[words] / self.n_draws + self.priors.beta
        return fixed_topics(counts / self.mass, self.priors.alpha)


def map_topics(word_topic: np.ndarray, n_draws: int, priors: Priors) -> MappedTopics:
    """Fixed topics from counts (V, K) that stay where they are."""
    return MappedTopics(word_topic, n_draws, priors, (word_topic / n_draws + priors.beta).sum(axis=0))


def padded_topics(phi: np.ndarray, alpha: np.ndarray) -> Topics:
    """Fixed topics, from a phi that is flat and padded already."""
    wide = pad(alpha.astype(np.float32))
    return Topics(NO_COUNTS, np.zeros(len(alpha)), np.ones_like(wide), phi, NO_SMOOTH, wide, 0.0, False)
