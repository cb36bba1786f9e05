"""A shard: some documents, and all the state that is theirs. It never leaves the place where it was made."""

import math
import time
from typing import NamedTuple

import numpy as np

from supertopic.corpus import Tokens
from supertopic.draws import derive, kernel, uniform
from supertopic.responses import Response, Target
from supertopic.sparse import sweep_sparse
from supertopic.sweep import Quadratic, Topics, make_weights, sweep

NOTHING = np.zeros(0, np.float32)


class Statistics(NamedTuple):
    """What the draw of eta needs to know of all documents; it adds up over shards, as do the seconds it took."""

    precision: np.ndarray  # (K + P, K + P, R), lower triangle: sum_d lam_dr x_d x_d', x = zbar, then covariates
    shift: np.ndarray  # (K + P, R): sum_d kappa_dr x_d
    seconds: np.ndarray  # (3,): for eta, z, lambda

    def add(self, other: "Statistics") -> "Statistics":
        """Add another's to these, in place."""
        for mine, others in zip(self, other, strict=True):
            mine += others
        return self


class Shard:
    """The documents of one slice of the corpus, with their z, kappa and lam."""

    def __init__(self, tokens: Tokens, first_doc: int, n_topics: int, response: Response, target: Target):
        self.tokens, self.first_doc, self.n_topics, self.target = tokens, first_doc, n_topics, target
        self.omega = np.zeros(target.y.shape)  # (n_docs, R): with offset and covariates
        self.set_quadratic(response.start(target))
        self.z = np.empty(len(tokens.word), np.uint16)
        self.previous = self.z  # z before the last sweep, where somebody else keeps count of the moves
        self.kept = NOTHING
        self.seconds = 0.0  # in the last sweep

    def start(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution."""
        start_z(self.z, self.tokens.doc_start, self.n_topics, document_streams(key, self.first_doc, self.n_docs))

    @property
    def n_docs(self) -> int:
        return len(self.tokens.doc_start) - 1

    def keep(self, width: int) -> None:
        """From now on, add up the topic counts of every document in `kept`."""
        self.kept = np.zeros(self.n_docs * width, np.float32)  # (n_docs, K)

    def set_quadratic(self, quadratic: Quadratic) -> None:
        """Take a quadratic in omega as one in omega less its known offset."""
        self.quadratic = Quadratic(quadratic.kappa - quadratic.lam * self.target.offset, quadratic.lam)

    def sweep(self, eta: np.ndarray, topics: Topics, alpha: np.ndarray, key: np.uint64) -> None:
        """Sweep z given eta (R, K + P): first the weights of the topics, then those of the covariates."""
        began = time.perf_counter()
        weights, known = make_weights(eta[:, : self.n_topics]), omegas(self.target.covariates, eta[:, self.n_topics :])
        kappa, lam = self.quadratic
        omega = np.zeros(self.target.y.shape)  # (n_docs, R)
        streams = document_streams(key, self.first_doc, self.n_docs)
        self.previous = self.z if topics.live else self.z.copy()
        common = self.tokens, self.z, topics, weights, Quadratic(kappa - lam * known, lam), alpha, streams
        if len(topics.smooth):
            sweep_sparse(*common, self.kept, omega)
        else:
            sweep(*common, 1, 0 if len(self.kept) else 1, self.kept, omega)
        self.omega = omega + known + self.target.offset
        self.seconds = time.perf_counter() - began

    def log_likelihood(self, response: Response) -> np.ndarray:
        """The log-likelihood of the response, (R,)."""
        return response.log_likelihood(self.target, self.omega)

    def augment(self, response: Response, key: np.uint64) -> Statistics:
        """Draw lam, and say what the next draw of eta needs to know."""
        clock = [time.perf_counter()]
        self.set_quadratic(response.augment(self.target, self.omega, key, self.first_doc))
        clock.append(time.perf_counter())
        statistics = self.statistics()
        clock.append(time.perf_counter())
        lam, eta = np.diff(clock)
        return statistics._replace(seconds=np.array([eta, self.seconds, lam]))

    def statistics(self) -> Statistics:
        n_columns, width = self.target.y.shape[1], self.n_topics + self.target.covariates.shape[1]
        precision = np.zeros((width, width, n_columns))
        shift = np.zeros((width, n_columns))
        if n_columns:
            add_moments(self.tokens.doc_start, self.z, self.target.covariates, self.quadratic, precision, shift)
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

    def alpha_sums(self, alpha: np.ndarray) -> np.ndarray:
        """The sums of Minka's fixed point for alpha over the shard's documents: one a topic, then that of lengths."""
        return alpha_sums(self.tokens.doc_start, self.z, alpha)

    def log_joint(self, response: Response, alpha: np.ndarray) -> float:
        """The shard's part of the log joint: log p(z | alpha) and the response given eta and z."""
        return log_documents(self.tokens.doc_start, self.z, alpha) + float(self.log_likelihood(response).sum())


@kernel
def document_streams(key, first_doc, n_docs):
    streams = np.empty(n_docs, np.uint64)
    for d in range(n_docs):
        streams[d] = derive(key, first_doc + d)
    return streams


@kernel
def omegas(x, eta):
    """omega (n_docs, R) of documents x (n_docs, K + P) under one draw of eta (R, K + P).

    Each document has its own loop: a matrix product would give other bits in another batch.
    """
    omega = np.zeros((len(x), len(eta)))
    for d in range(len(x)):
        for r in range(len(eta)):
            for k in range(x.shape[1]):
                omega[d, r] += eta[r, k] * x[d, k]
    return omega


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
def add_moments(doc_start, z, covariates, quadratic, precision, shift):
    """Sums over the few topics that a document has: plain loops, so the bits depend on no BLAS and no thread."""
    width, n_columns = shift.shape
    n_topics = width - covariates.shape[1]
    x = np.zeros(width)  # zbar, then the covariates
    seen = np.empty(width, np.intp)
    for d in range(len(doc_start) - 1):
        n_seen = 0
        for i in range(doc_start[d], doc_start[d + 1]):
            k = np.intp(z[i])
            if x[k] == 0.0:
                seen[n_seen] = k
                n_seen += 1
            x[k] += 1.0
        for a in range(n_seen):
            x[seen[a]] /= doc_start[d + 1] - doc_start[d]
        for p in range(n_topics, width):
            x[p] = covariates[d, p - n_topics]
            seen[n_seen] = p
            n_seen += 1
        for a in range(n_seen):
            j = seen[a]
            for r in range(n_columns):
                shift[j, r] += x[j] * quadratic.kappa[d, r]
            for b in range(a + 1):
                k = seen[b]
                product = x[j] * x[k]
                row, column = (j, k) if j > k else (k, j)
                for r in range(n_columns):
                    precision[row, column, r] += product * quadratic.lam[d, r]
        for a in range(n_seen):
            x[seen[a]] = 0.0


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


@kernel
def alpha_sums(doc_start, z, alpha):
    """sum_d digamma(n_dk + alpha_k) - digamma(alpha_k) for every topic, then the same of a document's length.

    The difference of digammas is the sum of 1 / (alpha + i) for i < n, so that a pass over the tokens does it.
    """
    n_topics, concentration = len(alpha), alpha.sum()
    count, sums = np.zeros(n_topics), np.zeros(n_topics + 1)
    for d in range(len(doc_start) - 1):
        for i in range(doc_start[d], doc_start[d + 1]):
            k = np.intp(z[i])
            sums[k] += 1.0 / (alpha[k] + count[k])
            count[k] += 1.0
            sums[n_topics] += 1.0 / (concentration + (i - doc_start[d]))
        for i in range(doc_start[d], doc_start[d + 1]):
            count[z[i]] = 0.0
    return sums
