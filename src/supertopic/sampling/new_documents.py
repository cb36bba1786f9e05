"""New documents under fixed topics: the training sampler with frozen phi and no response."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from supertopic.corpus.tokens import Tokens, cut, take
from supertopic.kernels.counts import start_z
from supertopic.kernels.draws import GOLDEN, content_streams
from supertopic.kernels.moments import drawn_omegas
from supertopic.kernels.sweep import sweep
from supertopic.model.state import Quadratic, Topics, make_weights

PREDICT = 1 << 32  # a path of random numbers that no training iteration takes
CHUNK_TOKENS, CHUNK_NUMBERS = 200_000, 2**22  # that are worked on at a time, in each thread
CARD_NUMBERS = 2**26  # on a card
SETTLE = 10  # sweeps of training documents under topics that are known before


def on_card():
    """The same for topics on a card; nothing of CUDA is imported before."""
    from supertopic.sampling import cuda_documents as card

    return card


def freeze(topics: Topics, device: str) -> Any:
    """Topics where they will be read."""
    return topics if device == "cpu" else on_card().freeze(topics)


def count_topics(tokens: Tokens, topics: Topics, streams: np.ndarray, n_sweeps: int) -> np.ndarray:
    """The tokens of each topic in each document, (n_docs, K), summed over the second half of the sweeps."""
    return run_sweeps(tokens, topics, streams, n_sweeps, 1)[0, :, : len(topics.mass)]


def run_sweeps(tokens: Tokens, topics: Topics, streams: np.ndarray, n_sweeps: int, n_draws: int) -> np.ndarray:
    """The counts of the second half of the sweeps: summed if n_draws is 1, else one a sweep, (n_draws, n_docs, width).

    Documents have no response here, and z starts from the uniform distribution.
    """
    n_docs, n_topics, width = len(streams), len(topics.mass), len(topics.alpha)
    z = np.empty(len(tokens.word), np.uint16)
    start_z(z, tokens.doc_start, n_topics, streams + np.uint64(1))
    kept, none = np.zeros(n_draws * n_docs * width, np.float32), np.zeros((n_docs, 0))
    weights = make_weights(np.zeros((0, n_topics)))
    sweep(tokens, z, topics, weights, Quadratic(none, none), streams, n_sweeps, n_sweeps // 2, kept, none)
    return kept.reshape(n_draws, n_docs, width)


def draw_topics(tokens: Tokens, topics: Topics, streams: np.ndarray, n_sweeps: int) -> np.ndarray:
    """The topic of every token of one document in the second half of the sweeps, (n, n_tokens): what is counted else.

    Sweep by sweep, with the random numbers that come next: those of `run_sweeps`, bit for bit.
    """
    n_tokens, n_topics = len(tokens.word), len(topics.mass)
    z, nothing = np.empty(n_tokens, np.uint16), np.zeros((1, 0))
    start_z(z, tokens.doc_start, n_topics, streams + np.uint64(1))
    weights, unkept, drawn = make_weights(np.zeros((0, n_topics))), np.zeros(0, np.float32), []
    with np.errstate(over="ignore"):
        for s in range(n_sweeps):
            stream = streams + np.uint64(s * n_tokens) * GOLDEN
            sweep(tokens, z, topics, weights, Quadratic(nothing, nothing), stream, 1, 1, unkept, nothing)
            if s >= n_sweeps // 2:
                drawn.append(z.copy())
    return np.array(drawn)


def settle(tokens: Tokens, z: np.ndarray, topics: Topics, streams: np.ndarray, n_sweeps: int) -> None:
    """Some sweeps of z under fixed topics, without a response."""
    nothing, unkept = np.zeros((len(streams), 0)), np.zeros(0, np.float32)
    weights = make_weights(np.zeros((0, len(topics.mass))))
    sweep(tokens, z, topics, weights, Quadratic(nothing, nothing), streams, n_sweeps, n_sweeps, unkept, nothing)


def draw_omegas(tokens: Tokens, topics: Any, n_sweeps: int, eta: np.ndarray, key: np.uint64) -> np.ndarray:
    """The topics' part of omega, (n_pairs, n_docs, R): draws of zbar, one a sweep, each with a draw of eta (n, R, K).

    There are as many pairs as sweeps in the second half or draws of eta, whichever are more. Where the topics are on a
    card, that is where the work is done.
    """
    if not isinstance(topics, Topics):
        return on_card().draw_omegas(tokens, topics, n_sweeps, eta, key)
    streams = content_streams(tokens, key)
    n_draws, lengths = n_sweeps - n_sweeps // 2, np.maximum(np.diff(tokens.doc_start), 1).astype(float)
    n_pairs, numbers = max(n_draws, len(eta)), n_draws * len(lengths) * len(topics.alpha)
    omega = np.empty((n_pairs, len(lengths), eta.shape[1]))
    for docs in cut(tokens.doc_start, 1 + numbers // CHUNK_NUMBERS):  # the counts of all draws would need much memory
        counts = run_sweeps(take(tokens, docs), topics, streams[docs], n_sweeps, n_draws)
        omega[:, docs] = drawn_omegas(counts, lengths[docs], eta, n_pairs)
    return omega


def infer_shares(tokens: Tokens, topics: Any, n_sweeps: int, key: np.uint64, n_threads: int) -> np.ndarray:
    """The mean zbar (n_docs, K) of each document over the second half of the sweeps.

    A document's random numbers depend on its words alone: it gets the same answer alone, in any batch and order.
    A document without words gets 0.
    """
    if not isinstance(topics, Topics):
        return on_card().infer_shares(tokens, topics, n_sweeps, key)
    n_kept = n_sweeps - n_sweeps // 2
    shares = np.empty((len(tokens.doc_start) - 1, len(topics.mass)))

    def work(docs: slice) -> None:
        part = take(tokens, docs)
        counts = count_topics(part, topics, content_streams(part, key), n_sweeps)
        shares[docs] = counts.astype(float) / (np.maximum(np.diff(part.doc_start), 1) * n_kept)[:, None]

    chunks = cut(tokens.doc_start, max(1, len(tokens.word) // CHUNK_TOKENS, n_threads))
    if min(n_threads, len(chunks)) == 1:
        for docs in chunks:
            work(docs)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, chunks))
    return shares
