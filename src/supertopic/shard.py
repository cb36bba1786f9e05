"""A shard: some documents, and all the state that is theirs. It never leaves the place where it was made."""

import math
import time
from typing import NamedTuple

import numpy as np

from supertopic.corpus import Tokens
from supertopic.draws import derive, kernel, make_key, uniform
from supertopic.responses import Response, Target
from supertopic.sparse import sweep_sparse
from supertopic.sweep import Topics, Weights, sweep

NOTHING = np.zeros(0, np.float32)
Z, LAMBDA = 0, 1  # purposes of random numbers inside a shard


class Statistics(NamedTuple):
    """What the draw of eta needs to know of all documents; it adds up over shards, as do the seconds it took."""

    precision: np.ndarray  # (K, K, R), lower triangle: sum_d lam_dr zbar_d zbar_d'
    shift: np.ndarray  # (K, R): sum_d kappa_dr zbar_d
    seconds: np.ndarray  # (3,): for eta, z, lambda

    def add(self, other: "Statistics") -> "Statistics":
        """Add another's to these, in place."""
        for mine, others in zip(self, other, strict=True):
            mine += others
        return self


class Shard:
    """The documents of one slice of the corpus, with their z, kappa and lam."""

    def __init__(self, tokens: Tokens, first_doc: int, n_topics: int, response: Response, target: Target):
        self.tokens, self.first_doc, self.n_topics = tokens, first_doc, n_topics
        self.response, self.target = response, target
        self.quadratic = response.start(target)
        self.omega = np.zeros(target.y.shape)
        self.z = np.empty(len(tokens.word), np.uint16)
        self.previous = self.z  # z before the last step, where somebody else keeps count of the moves
        self.kept = NOTHING

    def start(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution."""
        start_z(self.z, self.tokens.doc_start, self.n_topics, document_streams(key, self.first_doc, self.n_docs))

    @property
    def n_docs(self) -> int:
        return len(self.tokens.doc_start) - 1

    def keep(self, width: int) -> None:
        """From now on, add up the topic counts of every document in `kept`."""
        self.kept = np.zeros(self.n_docs * width, np.float32)  # (n_docs, K)

    def step(self, weights: Weights, topics: Topics, alpha: np.ndarray, key: np.uint64) -> Statistics:
        """Sweep z, draw lam, and say what the next draw of eta needs to know."""
        clock = [time.perf_counter()]
        self.omega = np.zeros(self.target.y.shape)  # (n_docs, R)
        streams = document_streams(make_key(key, Z), self.first_doc, self.n_docs)
        common = self.tokens, self.z, topics, weights, self.quadratic, alpha, streams
        self.previous = self.z if topics.live else self.z.copy()
        if len(topics.smooth):
            sweep_sparse(*common, self.kept, self.omega)
        else:
            sweep(*common, 1, 0 if len(self.kept) else 1, self.kept, self.omega)
        clock.append(time.perf_counter())
        self.quadratic = self.response.augment(self.target, self.omega, make_key(key, LAMBDA), self.first_doc)
        clock.append(time.perf_counter())
        statistics = self.statistics()
        clock.append(time.perf_counter())
        z, lam, eta_ = np.diff(clock)
        return statistics._replace(seconds=np.array([eta_, z, lam]))

    def statistics(self) -> Statistics:
        n_columns = self.target.y.shape[1]
        precision = np.zeros((self.n_topics, self.n_topics, n_columns))
        shift = np.zeros((self.n_topics, n_columns))
        if n_columns:
            add_moments(self.tokens.doc_start, self.z, self.quadratic, precision, shift)
        return Statistics(precision, shift, np.zeros(3))

    def add_counts(self, word_topic: np.ndarray) -> None:
        """Add the shard's tokens to the counts (V, K)."""
        add_word_topic(self.tokens.word, self.z, word_topic)

    def count_topics(self) -> np.ndarray:
        """The shard's tokens of each topic."""
        return count_z(self.z, self.n_topics)

    def add_moves(self, word_topic: np.ndarray, words: slice) -> None:
        """Bring the counts of some consecutive words up to date with the last step."""
        add_moved(self.tokens.word, self.previous, self.z, word_topic, words.start, words.stop)

    def add_shares(self, share: np.ndarray, smooth: np.ndarray, words: slice) -> None:
        """Add share (K,) of each token's topic to its word in smooth (V,), for some consecutive words."""
        add_share(self.tokens.word, self.z, share, smooth, words.start, words.stop)

    def log_joint(self, alpha: np.ndarray) -> float:
        """The shard's part of the log joint: log p(z | alpha) and the response given eta and z."""
        topics = log_documents(self.tokens.doc_start, self.z, alpha)
        return topics + self.response.log_likelihood(self.target, self.omega)


@kernel
def document_streams(key, first_doc, n_docs):
    streams = np.empty(n_docs, np.uint64)
    for d in range(n_docs):
        streams[d] = derive(key, first_doc + d)
    return streams


@kernel
def start_z(z, doc_start, n_topics, streams):
    for d in range(len(streams)):
        for i in range(doc_start[d], doc_start[d + 1]):
            z[i] = int(uniform(streams[d], i - doc_start[d]) * n_topics)


@kernel
def add_word_topic(word, z, word_topic):
    for i in range(len(word)):
        word_topic[word[i], z[i]] += 1


@kernel
def count_z(z, n_topics):
    total = np.zeros(n_topics, np.int64)
    for i in range(len(z)):
        total[z[i]] += 1
    return total


@kernel
def add_moved(word, previous, z, word_topic, first_word, last_word):
    """In chunks, first the tokens that moved and then the counts: neither loop has a branch to guess."""
    moved = np.empty(1024, np.intp)
    for first in range(0, len(z), 1024):
        n_moved = 0
        for i in range(first, min(first + 1024, len(z))):
            moved[n_moved] = i
            n_moved += (previous[i] != z[i]) & (word[i] >= first_word) & (word[i] < last_word)
        for i in moved[:n_moved]:
            word_topic[word[i], previous[i]] -= 1
            word_topic[word[i], z[i]] += 1


@kernel
def add_share(word, z, share, smooth, first_word, last_word):
    for i in range(len(word)):
        if first_word <= word[i] < last_word:
            smooth[word[i]] += share[z[i]]


@kernel
def add_moments(doc_start, z, quadratic, precision, shift):
    """Sums over the few topics that a document has: plain loops, so the bits depend on no BLAS and no thread."""
    n_topics, n_columns = shift.shape
    count = np.zeros(n_topics)
    seen = np.empty(n_topics, np.intp)
    for d in range(len(doc_start) - 1):
        n_seen = 0
        for i in range(doc_start[d], doc_start[d + 1]):
            k = np.intp(z[i])
            if count[k] == 0.0:
                seen[n_seen] = k
                n_seen += 1
            count[k] += 1.0
        scale = 1.0 / (doc_start[d + 1] - doc_start[d])
        for a in range(n_seen):
            j = seen[a]
            share = count[j] * scale
            for r in range(n_columns):
                shift[j, r] += share * quadratic.kappa[d, r]
            for b in range(a + 1):
                k = seen[b]
                product = share * count[k] * scale
                row, column = (j, k) if j > k else (k, j)
                for r in range(n_columns):
                    precision[row, column, r] += product * quadratic.lam[d, r]
        for a in range(n_seen):
            count[seen[a]] = 0.0


@kernel
def log_documents(doc_start, z, alpha):
    """log p(z | alpha), the topic proportions integrated out."""
    count = np.zeros(len(alpha), np.int64)
    concentration, total = alpha.sum(), 0.0
    for d in range(len(doc_start) - 1):
        n_tokens = doc_start[d + 1] - doc_start[d]
        if n_tokens == 0:
            continue
        total += math.lgamma(concentration) - math.lgamma(concentration + n_tokens)
        for i in range(doc_start[d], doc_start[d + 1]):
            count[z[i]] += 1
        for i in range(doc_start[d], doc_start[d + 1]):
            k = z[i]
            if count[k] > 0:
                total += math.lgamma(alpha[k] + count[k]) - math.lgamma(alpha[k])
                count[k] = 0
    return total
