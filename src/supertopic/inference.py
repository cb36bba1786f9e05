"""New documents under fixed topics: the training sampler with frozen phi and no response."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp

from supertopic.corpus import Tokens, content_streams, cut, make_tokens, take
from supertopic.draws import kernel, make_key
from supertopic.lanes import pad
from supertopic.shard import start_z
from supertopic.sweep import Quadratic, Topics, make_weights, sweep

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

    chunks = cut(tokens, max(1, len(tokens.word) // CHUNK_TOKENS, n_threads))
    if n_threads == 1:
        for docs in chunks:
            work(docs)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, chunks))
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
