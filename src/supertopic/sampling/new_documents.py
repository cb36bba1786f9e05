"""New documents under fixed topics: the training sampler with frozen phi and no response."""

from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from supertopic.corpus.tokens import Tokens, cut, take
from supertopic.kernels.counts import start_z
from supertopic.kernels.draws import GOLDEN, content_streams
from supertopic.kernels.moments import drawn_omegas
from supertopic.kernels.sweep import sweep
from supertopic.model.state import MappedTopics, Quadratic, Topics, make_weights

if TYPE_CHECKING:
    from supertopic.sampling.cuda_documents import DeviceTopics

PREDICT = 1 << 32  # a path of random numbers that no training iteration takes
CHUNK_TOKENS, CHUNK_NUMBERS = 200_000, 2**22  # tokens and shares of documents that a thread has in memory at a time
DEVICE_NUMBERS = 2**26  # shares of documents that a GPU has in memory at a time
SETTLE = 10  # sweeps of training documents under topics from pseudo-counts
FrozenTopics: TypeAlias = "Topics | MappedTopics | DeviceTopics"  # fixed topics, where they are read


def on_device() -> ModuleType:
    """The functions for topics on a GPU; nothing of CUDA is imported before."""
    from supertopic.sampling import cuda_documents

    return cuda_documents


def freeze(topics: Topics, device: str) -> FrozenTopics:
    """The topics on the device where they will be read."""
    return topics if device == "cpu" else on_device().freeze(topics)


def on_cpu(tokens: Tokens, topics: FrozenTopics) -> tuple[Tokens, Topics]:
    """Tokens and topics as the kernels read them; of mapped topics, those of the tokens' words, renumbered."""
    if isinstance(topics, MappedTopics):
        words, place = np.unique(tokens.word, return_inverse=True)
        return Tokens(place.astype(np.int32), tokens.doc_start), topics.of_words(words)
    assert isinstance(topics, Topics)
    return tokens, topics


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
    summed, none = np.zeros(n_draws * n_docs * width, np.float32), np.zeros((n_docs, 0))
    weights = make_weights(np.zeros((0, n_topics)))
    sweep(tokens, z, topics, weights, Quadratic(none, none), streams, n_sweeps, n_sweeps // 2, summed, none)
    return summed.reshape(n_draws, n_docs, width)


def draw_topics(tokens: Tokens, topics: Topics, streams: np.ndarray, n_sweeps: int) -> np.ndarray:
    """The topic of every token of one document in the second half of the sweeps, (n, n_tokens).

    `run_sweeps` counts the same topics, bit for bit; here the sweeps are made one by one to see each of them.
    """
    n_tokens, n_topics = len(tokens.word), len(topics.mass)
    z, nothing = np.empty(n_tokens, np.uint16), np.zeros((1, 0))
    start_z(z, tokens.doc_start, n_topics, streams + np.uint64(1))
    weights, no_sum, drawn = make_weights(np.zeros((0, n_topics))), np.zeros(0, np.float32), []
    with np.errstate(over="ignore"):
        for s in range(n_sweeps):
            stream = streams + np.uint64(s * n_tokens) * GOLDEN
            sweep(tokens, z, topics, weights, Quadratic(nothing, nothing), stream, 1, 1, no_sum, nothing)
            if s >= n_sweeps // 2:
                drawn.append(z.copy())
    return np.array(drawn)


def settle(tokens: Tokens, z: np.ndarray, topics: Topics, streams: np.ndarray, n_sweeps: int) -> None:
    """Some sweeps of z under fixed topics, without a response."""
    nothing, no_sum = np.zeros((len(streams), 0)), np.zeros(0, np.float32)
    weights = make_weights(np.zeros((0, len(topics.mass))))
    sweep(tokens, z, topics, weights, Quadratic(nothing, nothing), streams, n_sweeps, n_sweeps, no_sum, nothing)


def draw_omegas(tokens: Tokens, topics: FrozenTopics, n_sweeps: int, eta: np.ndarray, key: np.uint64) -> np.ndarray:
    """The topics' part of omega, (n_pairs, n_docs, R): draws of zbar, one a sweep, each with a draw of eta (n, R, K).

    There are as many pairs as sweeps in the second half or draws of eta, whichever are more. Where the topics are on a
    GPU, the work is done there.
    """
    if not isinstance(topics, Topics | MappedTopics):
        return on_device().draw_omegas(tokens, topics, n_sweeps, eta, key)
    streams = content_streams(tokens, key)
    tokens, topics = on_cpu(tokens, topics)
    n_draws, lengths = n_sweeps - n_sweeps // 2, np.maximum(np.diff(tokens.doc_start), 1).astype(float)
    n_pairs, numbers = max(n_draws, len(eta)), n_draws * len(lengths) * len(topics.alpha)
    omega = np.empty((n_pairs, len(lengths), eta.shape[1]))
    for docs in cut(tokens.doc_start, 1 + numbers // CHUNK_NUMBERS):  # the counts of all draws would need much memory
        counts = run_sweeps(take(tokens, docs), topics, streams[docs], n_sweeps, n_draws)
        omega[:, docs] = drawn_omegas(counts, lengths[docs], eta, n_pairs)
    return omega


def infer_shares(tokens: Tokens, topics: FrozenTopics, n_sweeps: int, key: np.uint64, n_threads: int) -> np.ndarray:
    """The mean zbar (n_docs, K) of each document over the second half of the sweeps.

    A document's random numbers depend on its words alone: it gets the same answer alone, in any batch and order.
    A document without words gets 0.
    """
    if not isinstance(topics, Topics | MappedTopics):
        return on_device().infer_shares(tokens, topics, n_sweeps, key)
    streams, n_counted = content_streams(tokens, key), n_sweeps - n_sweeps // 2
    tokens, own = on_cpu(tokens, topics)
    shares = np.empty((len(tokens.doc_start) - 1, len(own.mass)))

    def work(docs: slice) -> None:
        part = take(tokens, docs)
        counts = count_topics(part, own, streams[docs], n_sweeps)
        shares[docs] = counts.astype(float) / (np.maximum(np.diff(part.doc_start), 1) * n_counted)[:, None]

    chunks = cut(tokens.doc_start, max(1, len(tokens.word) // CHUNK_TOKENS, n_threads))
    if min(n_threads, len(chunks)) == 1:
        for docs in chunks:
            work(docs)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, chunks))
    return shares
