"""Topics of different chains that are the same: which they are, and means and draws over the chains that have one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

ALIKE = 0.6  # the least overlap of the words of two topics that are the same (Bhattacharyya's coefficient)
ROUNDS = 3  # rounds in which every chain is matched to the mean of all


@dataclass(frozen=True, eq=False)
class Consensus:
    """Which chains have each topic. Topics of all chains are in the same order, that of `match_chains`."""

    has: np.ndarray  # (chain, K) bool: at least one chain has each topic

    @property
    def n_having(self) -> np.ndarray:
        """How many chains have each topic, (K,)."""
        return self.has.sum(axis=0)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean of values (chain, ..., K) over the chains that have each topic: (..., K)."""
        has = self.has.reshape(len(self.has), *[1] * (values.ndim - 2), -1)
        return (values * has).sum(axis=0) / self.n_having

    def pool(self, draws: np.ndarray) -> np.ndarray:
        """Draws (chain, n, ..., K) of the chains that have each topic, as many for every topic: (chain n, ..., K).

        Where some chains do not have a topic, those of the others are repeated evenly in their place.
        """
        n_chains, n = draws.shape[:2]
        pooled = np.empty((n_chains * n, *draws.shape[2:]))
        for k, has in enumerate(self.has.T):
            own = np.concatenate(draws[has][..., k])
            pooled[..., k] = own[np.arange(n_chains * n) * len(own) // (n_chains * n)]
        return pooled


def match_chains(phis: Iterable[np.ndarray], reference: int, n_pinned: int = 0) -> np.ndarray:
    """For each chain its topics in the order of the reference chain's, (chain, K), from topics (V, K) of each.

    The Hungarian algorithm matches every chain to the reference, then, a few times, to the mean of the matched topics,
    so that what most chains have counts where the reference does not have it. The first topics may be pinned: those
    that start from the same seeds are the same in all chains already.
    """
    roots = [np.sqrt(phi[:, n_pinned:], dtype=np.float32) for phi in phis]
    order = np.tile(np.arange(n_pinned + roots[0].shape[1]), (len(roots), 1))
    others = [chain for chain in range(len(roots)) if chain != reference]
    places, mean = order[:, n_pinned:] - n_pinned, roots[reference]
    for _ in range(ROUNDS if others else 0):
        for chain in others:
            places[chain] = linear_sum_assignment(mean.T @ roots[chain], maximize=True)[1]
        has = have_topics(roots, reference, places)
        mean = np.zeros_like(mean)
        for root, own, mask in zip(roots, places, has, strict=True):
            mean += root[:, own] * mask
        mean /= has.sum(axis=0, dtype=np.float32)
    order[:, n_pinned:] = n_pinned + places
    return order


def have_topics(roots: Sequence[np.ndarray], reference: int, places: np.ndarray) -> np.ndarray:
    """Which chains have each topic, (chain, K), from square roots of topics (V, K) and their order in each chain.

    A topic is that of the chain with which most others agree, of several the most similar one; and that of the
    reference where nobody agrees.
    """
    n_chains, n_topics = len(roots), roots[0].shape[1]
    alike = np.ones((n_chains, n_chains, n_topics))
    for a in range(n_chains):
        for b in range(a):
            alike[a, b] = np.einsum("vk,vk->k", roots[a][:, places[a]], roots[b][:, places[b]])
            alike[b, a] = alike[a, b]
    same = alike >= ALIKE
    worth = same.sum(axis=1) + alike.mean(axis=1) / 2.0  # below the difference of one chain
    worth[reference] += worth.max(axis=0) < 2
    return same[worth.argmax(axis=0), :, np.arange(n_topics)].T
