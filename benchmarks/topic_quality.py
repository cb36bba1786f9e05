"""Figures of topics, a matrix (K, V) whose rows are topics, without a look at how they were fitted."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from supertopic.report.diagnostics import coherence

TOP, DIVERSE, INTRUDED, REPEATS, ALIKE = 10, 25, 5, 10, 0.8


def top(topics: np.ndarray, n: int) -> np.ndarray:
    """The columns of the n most probable words of each topic, (K, n)."""
    return np.argsort(-topics, axis=1, kind="stable")[:, :n]


def pair_npmi(there: sp.csc_matrix, columns: np.ndarray) -> np.ndarray:
    """NPMI of pairs of words from the documents that have both, (n, n); NaN where a word is in no document.

    Words that never meet have -1, and a pair that is in every document has 1.
    """
    own = there[:, columns]
    both = (own.T @ own).toarray() / there.shape[0]
    p = both.diagonal()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(both / np.outer(p, p)) / -np.log(both)
    value = np.where(both == 0, -1.0, np.where(both >= 1, 1.0, value))
    return np.where(np.outer(p, p) > 0, value, np.nan)


def npmi(topics: np.ndarray, there: sp.csc_matrix) -> float:
    """Mean NPMI of the pairs of each topic's ten most probable words, over topics.

    A pair with a word that no document has is left out, and so is a topic without any other pair.
    """
    best = top(topics, TOP)
    columns, place = np.unique(best, return_inverse=True)
    value, (i, j) = pair_npmi(there, columns), np.triu_indices(TOP, 1)
    pairs = np.array([value[own[i], own[j]] for own in place.reshape(best.shape)])  # (K, pairs)
    known = ~np.isnan(pairs)
    each = np.nansum(pairs, axis=1)[known.any(axis=1)] / known.sum(axis=1)[known.any(axis=1)]
    return float(each.mean()) if len(each) else float("nan")


def known(topics: np.ndarray, there: sp.csc_matrix) -> float:
    """The share of the topics' ten most probable words that some document has."""
    return float(np.mean(np.diff(there.indptr)[top(topics, TOP)] > 0))


def c_v(topics: np.ndarray, words: np.ndarray, texts: Sequence[Sequence[str]]) -> float:
    """Mean C_v of the ten most probable words, from sliding windows of 110 words."""
    return float(np.nanmean(coherence(words[top(topics, TOP)].tolist(), texts, "c_v")))


def diversity(topics: np.ndarray) -> float:
    """The share of distinct words among the 25 most probable words of all topics."""
    best = top(topics, DIVERSE)
    return len(np.unique(best)) / best.size


def intrusion(topics: np.ndarray, there: sp.csc_matrix, seed: int = 0) -> float:
    """How often NPMI finds an intruder among the five most probable words of a topic, over topics and repetitions.

    The intruder is drawn from the ten most probable words of the other topics, from the half of them that is least
    probable here. The guess is the word with the smallest mean NPMI to the other five; of several, each counts with
    its part. Only words that some document has take part. Guessing by chance finds one in six.
    """
    rng, seen = np.random.default_rng(seed), np.flatnonzero(np.diff(there.indptr) > 0)
    topics = topics[:, seen]
    best = top(topics, TOP)
    columns = np.unique(best)
    value = pair_npmi(there, seen[columns])
    np.fill_diagonal(value, 0.0)
    found = []
    for k, own in enumerate(best[:, :INTRUDED]):
        others = np.setdiff1d(np.delete(best, k, axis=0), own)
        others = others[np.argsort(topics[k, others], kind="stable")][: (len(others) + 1) // 2]
        for _ in range(REPEATS):
            if not len(others):  # all topics have the same words
                found.append(0.0)
                continue
            ids = np.searchsorted(columns, np.append(own, rng.choice(others)))
            sums = value[np.ix_(ids, ids)].sum(axis=1)
            guesses = sums <= sums.min() + 1e-12
            found.append(guesses[INTRUDED] / guesses.sum())
    return float(np.mean(found))


def matched(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """The mean cosine of the topics of two fits, matched one to one for the largest sum, and the share above 0.8."""
    a, b = (topics / np.maximum(np.linalg.norm(topics, axis=1, keepdims=True), 1e-12) for topics in (a, b))
    cosine = a @ b.T
    best = cosine[linear_sum_assignment(-cosine)]
    return {"cosine": float(best.mean()), "alike": float(np.mean(best > ALIKE))}
