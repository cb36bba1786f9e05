"""Where chains start: topics from a non-negative factorisation of tf-idf, responses and seeds.

A chain that starts from uniform z needs hundreds of iterations to reach the log joint that it has after twenty from
here, and other seeds end with other topics. A factorisation is the same every time. Only what a chain sees enters its
start, so that held-out documents and responses stay unseen.
"""

import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, hstack
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

from supertopic.corpus.source import Corpus
from supertopic.corpus.tokens import count_matrix
from supertopic.model.posterior import Posterior
from supertopic.model.responses.base import Response
from supertopic.sampling.pool import one_blas_thread

MOST_DOCUMENTS, MOST_WORDS = 4000, 10_000  # evenly spaced, and the most frequent; more hardly change the topics
MOST_TOPICS = 200  # beyond, a factorisation takes longer than the sweeps that it saves
LEAST_PER_TOPIC = 5  # documents; fewer are not worth factorising
LABELS, SEEDS = 0.5, 0.5  # how much responses and seeds count beside words, whose rows have length 1
SMOOTH = 1e-5  # added to the probability of each word
STEPS, TOLERANCE, WORK = 100, 1e-3, 5e9  # a step costs (documents + words) K**2: fewer steps for many topics


class Factors(NamedTuple):
    """Topics of a factorisation; those of seeds come first."""

    phi: np.ndarray  # (V, K) float32
    share: np.ndarray  # (V, K): the part of each word's weight that each topic has


class Start:
    """The topics that the chains of a fit start from; `seen_by` gives the documents as a chain sees them."""

    def __init__(
        self, seen_by: Callable[[int | None], Corpus], response: Response, n_words: int, n_topics: int,
        seeded: Sequence[Sequence[int]] = (),
    ):  # fmt: skip
        self.seen_by, self.response, self.n_words, self.n_topics = seen_by, response, n_words, n_topics
        self.seeded = seeded  # the words of each seeded topic
        self.found: dict[int, Factors | None] = {}  # by the identity of the documents
        self.lock, self.locks = threading.Lock(), defaultdict[int, threading.Lock](threading.Lock)

    def phi(self, place: int, chain: int) -> np.ndarray | None:
        """The topics (V, K) that a chain of a set of topics starts from, if there are any."""
        found = self.factors(chain)
        return None if found is None else found.phi

    def factors(self, chain: int | None) -> Factors | None:
        """The start of a chain, or one without responses; None where the corpus is too small, or K too large."""
        corpus = self.seen_by(chain)
        with self.lock:
            lock = self.locks[id(corpus)]
        with lock, one_blas_thread:  # more BLAS threads would change its bits
            if id(corpus) not in self.found:  # chains that see the same, and sets of topics, have the same start
                self.found[id(corpus)] = factorise_words(
                    corpus, self.response, self.n_words, self.n_topics, self.seeded
                )
            return self.found[id(corpus)]


class FittedStart(NamedTuple):
    """The topics that a posterior has already, those of each chain."""

    posterior: Posterior

    def phi(self, place: int, chain: int) -> np.ndarray | None:
        """The topics (V, K) that a chain of a set of topics starts from."""
        return np.ascontiguousarray(self.posterior.topics[place].phi(chain), dtype=np.float32)


def factorise_words(
    corpus: Corpus, response: Response, n_words: int, n_topics: int, seeded: Sequence[Sequence[int]]
) -> Factors | None:
    """Factorise some documents: see `Start`."""
    n_docs = len(corpus.doc_start) - 1
    if not 1 < n_topics <= min(MOST_TOPICS, n_docs // LEAST_PER_TOPIC):
        return None
    mask = np.zeros(n_docs, bool)
    mask[np.linspace(0, n_docs - 1, min(n_docs, MOST_DOCUMENTS)).astype(int)] = True
    documents = corpus.select(mask).load()
    counts = count_matrix(documents.tokens, n_words)
    frequency = np.bincount(counts.indices, minlength=n_words)  # of documents; a word of one of them joins nothing
    used = np.sort(np.argsort(-frequency, kind="stable")[: min(MOST_WORDS, np.count_nonzero(frequency > 1))])
    if len(used) <= n_topics:
        return None
    tfidf = TfidfTransformer(sublinear_tf=True)
    rows = csr_array(tfidf.fit_transform(counts[:, used]))
    labels = LABELS * short_rows(response.start_columns(documents.target))
    seeds = SEEDS * short_rows(seed_columns(rows, used, seeded))
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # of documents that are all alike
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is a start
        steps = int(np.clip(WORK / (sum(rows.shape) * n_topics**2), STEPS // 10, STEPS))
        model = NMF(n_topics, init="nndsvda", max_iter=steps, tol=TOLERANCE, random_state=0)
        model.set_output(transform="default")  # an array, whatever the user has configured
        sizes = model.fit_transform(csr_array(hstack([rows, csr_array(labels), csr_array(seeds)]))).sum(axis=0)
    weights = model.components_ * sizes[:, None]
    order = seeds_first(weights[:, weights.shape[1] - len(seeded) :] / np.maximum(weights.sum(axis=1), SMOOTH)[:, None])
    found = np.zeros((n_topics, n_words))
    found[:, used] = weights[order, : len(used)] / tfidf.idf_
    share = found / np.maximum(found.sum(axis=0), 1e-300)
    for topic, words in zip(found, seeded, strict=False):  # also where no factor is about its seeds
        topic[list(words)] += 0.1 * topic.sum() / max(len(words), 1)
    found = found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300) + SMOOTH
    return Factors(np.ascontiguousarray((found / found.sum(axis=1, keepdims=True)).T, dtype=np.float32), share.T)


def short_rows(columns: np.ndarray) -> np.ndarray:
    """Rows of length 1 at most."""
    return columns / np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1.0)


def seed_columns(rows: csr_array, used: np.ndarray, seeded: Sequence[Sequence[int]]) -> np.ndarray:
    """How much each document has of the words of each seeded topic, relative to the largest: (n_docs, n_seeded)."""
    found = np.zeros((rows.shape[0], len(seeded)))
    for column, words in zip(found.T, seeded, strict=True):
        column[:] = np.asarray(rows[:, np.isin(used, words)].sum(axis=1)).ravel()
        column /= max(column.max(initial=0.0), SMOOTH)
    return found


def seeds_first(weights: np.ndarray) -> np.ndarray:
    """The order of factors in which that of the s-th seeded topic is the s-th, from its weights (K, n_seeded)."""
    factor, seeded = linear_sum_assignment(weights, maximize=True)
    first = factor[np.argsort(seeded)]
    return np.concatenate([first, np.setdiff1d(np.arange(len(weights)), first)])
