"""New documents under fixed topics: the training sampler with frozen phi and no response."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from supertopic.corpus import Tokens, cut, take
from supertopic.kernels.counts import start_z
from supertopic.kernels.draws import content_streams
from supertopic.kernels.sweep import sweep
from supertopic.sampling.state import Quadratic, Topics, make_weights

PREDICT = 1 << 32  # a path of random numbers that no training iteration takes
CHUNK_TOKENS = 200_000


def count_topics(tokens: Tokens, topics: Topics, streams: np.ndarray, n_sweeps: int) -> np.ndarray:
    """The tokens of each topic in each document, (n_docs, K), summed over the second half of the sweeps."""
    return run_sweeps(tokens, start(tokens, topics, streams), topics, streams, n_sweeps, n_sweeps // 2)


def start(tokens: Tokens, topics: Topics, streams: np.ndarray) -> np.ndarray:
    """A z for every token, to begin with."""
    z = np.empty(len(tokens.word), np.uint16)
    start_z(z, tokens.doc_start, len(topics.mass), streams + np.uint64(1))
    return z


def run_sweeps(tokens: Tokens, z: np.ndarray, topics: Topics, streams: np.ndarray, n_sweeps: int, burn_in: int):
    """Sweep z without a response; the counts after burn_in, (n_docs, K) float32."""
    n_docs, n_topics, width = len(streams), len(topics.mass), len(topics.alpha)
    kept, none = np.zeros(n_docs * width, np.float32), np.zeros((n_docs, 0))
    weights = make_weights(np.zeros((0, n_topics)))
    sweep(tokens, z, topics, weights, Quadratic(none, none), streams, n_sweeps, burn_in, kept, none)
    return kept.reshape(n_docs, width)[:, :n_topics]


def infer_shares(tokens: Tokens, topics: Topics, n_sweeps: int, key: np.uint64, n_threads: int) -> np.ndarray:
    """The mean zbar (n_docs, K) of each document over the second half of the sweeps.

    A document's random numbers depend on its words alone: it gets the same answer alone, in any batch and order.
    A document without words gets 0.
    """
    n_kept = n_sweeps - n_sweeps // 2
    shares = np.empty((len(tokens.doc_start) - 1, len(topics.mass)))

    def work(docs: slice) -> None:
        part = take(tokens, docs)
        counts = count_topics(part, topics, content_streams(part, key), n_sweeps)
        shares[docs] = counts.astype(float) / (np.maximum(np.diff(part.doc_start), 1) * n_kept)[:, None]

    chunks = cut(tokens, max(1, len(tokens.word) // CHUNK_TOKENS, n_threads))
    if min(n_threads, len(chunks)) == 1:
        for docs in chunks:
            work(docs)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, chunks))
    return shares


def sample_shares(tokens: Tokens, topics: Topics, n_sweeps: int, n_draws: int, key: np.uint64) -> np.ndarray:
    """Draws of zbar, (n_draws, n_docs, K), one a sweep after n_sweeps / 2 sweeps: `infer_shares` with its spread."""
    streams = content_streams(tokens, key)
    z, lengths = start(tokens, topics, streams), np.maximum(np.diff(tokens.doc_start), 1)[:, None]
    shares = np.empty((n_draws, len(streams), len(topics.mass)))
    for i in range(-(n_sweeps // 2), n_draws):
        counts = run_sweeps(tokens, z, topics, streams + np.uint64(n_sweeps + i + 2), 1, 0)
        if i >= 0:
            shares[i] = counts / lengths
    return shares
