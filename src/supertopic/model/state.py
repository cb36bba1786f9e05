"""What is handed around: namedtuples of arrays."""

from typing import NamedTuple

import numpy as np

from supertopic.kernels.lanes import pad


class Priors(NamedTuple):
    alpha: np.ndarray  # (K,): Dirichlet prior of a document
    beta: float  # Dirichlet prior of a topic, per word
    nu2: float  # variance of eta


class Quadratic(NamedTuple):
    """exp(kappa omega - lam omega**2 / 2): what every response comes down to after augmentation."""

    kappa: np.ndarray  # (n_docs, R)
    lam: np.ndarray  # (n_docs, R)


class Statistics(NamedTuple):
    """What the draw of eta needs to know of all documents; x is zbar, then the covariates."""

    precision: np.ndarray  # ((K + P) (K + P + 1) / 2, R): sum_d lam_dr x_d x_d', a packed lower triangle
    shift: np.ndarray  # (K + P, R): sum_d kappa_dr x_d


def no_statistics(width: int, n_columns: int) -> Statistics:
    """Sums over no document."""
    return Statistics(np.zeros((width * (width + 1) // 2, n_columns)), np.zeros((width, n_columns)))


class Belief(NamedTuple):
    """What is believed before a chain sees its documents, beside the priors: seeds, or what others have taught.

    Statistics are those of documents that are not there any more; they are added to those of the documents that are.
    """

    word_topic: np.ndarray  # (V, K) int32: pseudo-counts, which are tokens that never move
    eta: Statistics  # of the chain
    weights: Statistics  # of the regression for predictions
    shown: Statistics  # of the one whose weights are shown


def add(statistics: Statistics, more: Statistics) -> Statistics:
    return Statistics(statistics.precision + more.precision, statistics.shift + more.shift)


NO_CHANGE = np.zeros((0, 0), np.int32)


class Moves(NamedTuple):
    """What a sweep did to one shard, or to several, for whoever keeps count."""

    tokens: np.ndarray  # (K,) int64: the tokens of each topic after it
    # (n_moved,) uint64: word, old and new topic of the tokens that moved, sorted by parts of the words
    moves: np.ndarray
    starts: np.ndarray  # (n_parts + 1,): where each part starts
    taken: tuple[int, int]  # moves that were proposed without a look at the response, and those that it accepted
    change: np.ndarray = NO_CHANGE  # (V, K), padded: that of the counts, where it is smaller than all moves


class Rows(NamedTuple):
    """Shares of topics, as what is not 0: document d has topic[start[d]:start[d + 1]]."""

    start: np.ndarray  # (n_docs + 1,) int64
    topic: np.ndarray  # uint16
    share: np.ndarray


class Kept(NamedTuple):
    """Counts that are summed over some draws."""

    word_topic: np.ndarray  # (V, K)
    tokens: np.ndarray  # (K,) int64: its sum over words
    n_draws: int


class Weights(NamedTuple):
    """The weights of the response as the samplers read them."""

    exact: np.ndarray  # (R, K): eta
    eta: np.ndarray  # (R, K): eta in float32, flat, rows padded to whole lanes


def make_weights(eta: np.ndarray) -> Weights:
    return Weights(eta, pad(eta.astype(np.float32)).reshape(-1))


class Topics(NamedTuple):
    """What the samplers read of the topics: counts, from which a token's own is taken out, or a fixed phi.

    All (V, K) arrays are flat, their rows padded to whole lanes. Live counts follow every move; others are those of
    the last sweep.
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
    """Topics that are only read, from phi (V, K)."""
    return padded_topics(pad(np.maximum(phi, 1e-37).astype(np.float32)).reshape(-1), alpha)


def mean_topics(word_topic: np.ndarray, n_draws: int, priors: Priors) -> Topics:
    """Topics that are only read, from counts (V, K) that are summed over some draws."""
    counts = word_topic / n_draws + priors.beta
    return fixed_topics(counts / counts.sum(axis=0), priors.alpha)


def padded_topics(phi: np.ndarray, alpha: np.ndarray) -> Topics:
    """Topics that are only read, from a phi that is flat and padded already."""
    wide = pad(alpha.astype(np.float32))
    return Topics(NO_COUNTS, np.zeros(len(alpha)), np.ones_like(wide), phi, NO_SMOOTH, wide, 0.0, False)
