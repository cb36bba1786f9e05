"""New documents under fixed topics: the training sampler with frozen phi and no response."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp

from supertopic.corpus import Tokens, content_streams, cut, make_tokens, take
from supertopic.draws import kernel, make_key
from supertopic.gibbs import Priors
from supertopic.lanes import pad
from supertopic.shard import start_z
from supertopic.sweep import Quadratic, Topics, Weights, make_weights, sweep

PREDICT = 1 << 32  # a path of random numbers that no training iteration takes
CHUNK_TOKENS = 200_000


def infer_shares(
    X: sp.csr_array, phi: np.ndarray, alpha: np.ndarray, n_sweeps: int, seed: int, chain: int, n_threads: int
) -> np.ndarray:
    """The mean zbar (n_docs, K) of each document under phi (V, K), over the second half of the sweeps.

    A document's random numbers depend on its words alone: it gets the same answer alone, in any batch and order.
    A document without words gets 0.
    """
    tokens = make_tokens(X)
    n_topics, wide_alpha = len(alpha), pad(alpha.astype(np.float32))
    wide_phi = pad(np.maximum(phi, 1e-37).astype(np.float32))
    topics = fixed_topics(wide_phi, n_topics)
    key = make_key(seed, chain, PREDICT)
    shares = np.empty((X.shape[0], n_topics))

    def work(docs: slice) -> None:
        shares[docs] = infer_chunk(take(tokens, docs), topics, wide_alpha, n_topics, n_sweeps, key)

    over_chunks(work, tokens, n_threads)
    return shares


def sample_shares(
    X: sp.csr_array, phi: np.ndarray, alpha: np.ndarray, n_sweeps: int, n_draws: int, seed: int, chain: int
) -> np.ndarray:
    """Draws of zbar, (n_draws, n_docs, K), one a sweep after n_sweeps / 2 sweeps: `infer_shares` with its spread."""
    tokens, n_topics, wide_alpha = make_tokens(X), len(alpha), pad(alpha.astype(np.float32))
    topics = fixed_topics(pad(np.maximum(phi, 1e-37).astype(np.float32)), n_topics)
    streams = content_streams(tokens, make_key(seed, chain, PREDICT))
    z, none = np.empty(len(tokens.word), np.uint16), np.zeros((X.shape[0], 0))
    weights = make_weights(np.zeros((0, n_topics)))
    start_z(z, tokens.doc_start, n_topics, streams + np.uint64(1))
    lengths = np.maximum(np.diff(tokens.doc_start), 1)[:, None]
    shares = np.empty((n_draws, X.shape[0], n_topics))
    for i in range(-(n_sweeps // 2), n_draws):
        kept = np.zeros(X.shape[0] * len(wide_alpha), np.float32)
        own = streams + np.uint64(n_sweeps + i + 2)
        sweep(tokens, z, topics, weights, Quadratic(none, none), wide_alpha, own, 1, 0, kept, none)
        if i >= 0:
            shares[i] = kept.reshape(X.shape[0], -1)[:, :n_topics] / lengths
    return shares


def fixed_topics(phi: np.ndarray, n_topics: int) -> Topics:
    """Topics that are only read; phi (V, K) is padded."""
    ones, no_counts = np.ones(phi.shape[1], np.float32), np.zeros(0, np.int32)
    return Topics(no_counts, np.zeros(n_topics), ones, phi.reshape(-1), np.zeros(0), 0.0, False)


def infer_chunk(tokens: Tokens, topics: Topics, alpha: np.ndarray, n_topics: int, n_sweeps: int, key) -> np.ndarray:
    n_docs, width = len(tokens.doc_start) - 1, len(alpha)
    streams = content_streams(tokens, key)
    z = np.empty(len(tokens.word), np.uint16)
    start_z(z, tokens.doc_start, n_topics, streams + np.uint64(1))
    kept = np.zeros(n_docs * width, np.float32)
    none = np.zeros((n_docs, 0))
    burn_in = n_sweeps // 2
    weights = make_weights(np.zeros((0, n_topics)))
    sweep(tokens, z, topics, weights, Quadratic(none, none), alpha, streams, n_sweeps, burn_in, kept, none)
    counts = kept.reshape(n_docs, width)[:, :n_topics].astype(float)
    lengths = np.maximum(np.diff(tokens.doc_start), 1) * (n_sweeps - burn_in)
    return counts / lengths[:, None]


def infer_left_out(
    X: sp.csr_array, z: np.ndarray, word_topic: np.ndarray, n_draws: int, priors: Priors, n_sweeps: int, seed: int,
    chain: int, n_threads: int,
) -> np.ndarray:  # fmt: skip
    """What `infer_shares` would find for a training document if the topics had been learned without it, (n_docs, K).

    word_topic (V, K) is summed over n_draws, and z is the state of the tokens at the last of them: a document's own
    tokens are taken out of the mean counts as if they had always been there.
    """
    tokens = make_tokens(X)
    wide_alpha, key = pad(priors.alpha.astype(np.float32)), make_key(seed, chain, PREDICT)
    mass = word_topic.sum(axis=0) / n_draws + len(word_topic) * priors.beta
    shares = np.zeros((X.shape[0], len(priors.alpha)))

    def work(docs: slice) -> None:
        part, own = take(tokens, docs), z[tokens.doc_start[docs.start] : tokens.doc_start[docs.stop]]
        streams = content_streams(part, key)
        left_out(part, own, word_topic, n_draws, priors.beta, mass, wide_alpha, streams, n_sweeps, shares[docs])

    over_chunks(work, tokens, n_threads)
    return shares


@kernel
def left_out(tokens, z, word_topic, n_draws, beta, mass, alpha, streams, n_sweeps, shares):
    n_topics, width, burn_in = len(mass), len(alpha), n_sweeps // 2
    weights, none = Weights(np.zeros((0, n_topics)), np.zeros(0, np.float32)), np.zeros((1, 0))
    for d in range(len(tokens.doc_start) - 1):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        n_tokens = stop - start
        if n_tokens == 0:
            continue
        rest = mass.copy()  # of the topics without this document
        for i in range(start, stop):
            rest[z[i]] -= 1.0
        local, n_words = np.empty(n_tokens, np.int32), 0  # a vocabulary of its own; equal words are neighbours
        for i in range(start, stop):
            n_words += i == start or tokens.word[i] != tokens.word[i - 1]
            local[i - start] = n_words - 1
        counts = np.zeros((n_words, n_topics))
        for i in range(start, stop):
            counts[local[i - start], z[i]] -= 1.0
        phi = np.zeros(n_words * width, np.float32)
        for i in range(start, stop):
            w = local[i - start]
            for k in range(n_topics):
                count = max(word_topic[tokens.word[i], k] / n_draws + counts[w, k], 0.0)
                phi[w * width + k] = (count + beta) / max(rest[k], beta)
        topics = Topics(
            np.zeros(0, np.int32), np.zeros(n_topics), np.ones(width, np.float32), phi, np.zeros(0), 0.0, False
        )
        one, fresh = Tokens(local, np.array([0, n_tokens])), np.empty(n_tokens, np.uint16)
        start_z(fresh, one.doc_start, n_topics, streams[d : d + 1] + np.uint64(1))
        kept = np.zeros(width, np.float32)
        own = streams[d : d + 1]
        sweep(one, fresh, topics, weights, Quadratic(none, none), alpha, own, n_sweeps, burn_in, kept, none)
        for k in range(n_topics):
            shares[d, k] = kept[k] / (n_tokens * (n_sweeps - burn_in))


def over_chunks(work: Callable[[slice], None], tokens: Tokens, n_threads: int) -> None:
    """work(docs) for slices of the documents, on some threads."""
    chunks = cut(tokens, max(1, len(tokens.word) // CHUNK_TOKENS, n_threads))
    if n_threads == 1:
        for docs in chunks:
            work(docs)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, chunks))
