"""Pairs of documents that are in the right order: concordance of risks with times, in n log n."""

import numpy as np

from supertopic.kernels.compiled import kernel


@kernel
def _count_pairs(order, starts, event, rank, weight, n_ranks):
    """Documents come with the latest times first; a Fenwick tree counts those that came before by their rank."""
    tree, at_rank = np.zeros(n_ranks + 1), np.zeros(n_ranks)
    concordant, tied, comparable, n_before = 0.0, 0.0, 0.0, 0.0
    for g in range(len(starts) - 1):
        for turn in range(2):  # who is censored at a time outlives an event at that time; two events are not compared
            for i in order[starts[g] : starts[g + 1]]:
                if turn == 1 and event[i] and weight[i] > 0.0:
                    less, at = 0.0, rank[i]
                    while at > 0:
                        less += tree[at]
                        at -= at & -at
                    concordant += weight[i] * less
                    tied += weight[i] * at_rank[rank[i]]
                    comparable += weight[i] * n_before
            for i in order[starts[g] : starts[g + 1]]:
                if event[i] == (turn == 1):
                    at_rank[rank[i]] += 1.0
                    n_before += 1.0
                    at = rank[i] + 1
                    while at <= n_ranks:
                        tree[at] += 1.0
                        at += at & -at
    return concordant, tied, comparable


def count_pairs(
    time: np.ndarray, event: np.ndarray, risk: np.ndarray, weight: np.ndarray
) -> tuple[float, float, float]:
    """The weights of concordant pairs, of those with the same risk, and of all comparable ones.

    A pair is comparable if the earlier of its times is that of an event; its weight is that of this document.
    """
    order = np.argsort(-time, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(time[order]) != 0.0, True])
    values, rank = np.unique(risk, return_inverse=True)
    weight = np.ascontiguousarray(weight, dtype=float)
    return _count_pairs(order, starts, event.astype(bool), rank.ravel(), weight, len(values))
