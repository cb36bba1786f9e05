"""The topics of new documents under fixed topics, as `kernels.sweep` draws them, in vectors over documents and chains.

The same random numbers, and the same float32 operations in the same order: the same topics, token by token.
"""

import math
from typing import NamedTuple

import numpy as np

MASK, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15
PREDICT = 1 << 32  # the path of random numbers of predictions
LANES = 8
ONE, TINY, HUGE = np.float32(1), np.float32(1e-30), np.float32(1e30)
MOST_NUMBERS, BLOCK = 2**24, 256  # numbers of weights that are in memory at a time; random numbers of a row


def mix(x: int) -> int:
    """SplitMix64's finaliser."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def make_key(seed: int, *path: int) -> int:
    """The key at the end of a path."""
    for index in path:
        seed = mix(seed ^ mix((index + GOLDEN) & MASK))
    return seed


def content_stream(words: np.ndarray, key: int) -> int:
    """A stream that depends on a document's words only."""
    for word in words.tolist():
        key = mix((key + word + 1) & MASK)
    return make_key(key, 0)


def random_bits(streams: np.ndarray, first: int, n: int) -> np.ndarray:
    """n numbers of 64 bits of each stream, from the first-th on, (n_streams, n)."""
    x = streams[:, None] + np.arange(first + 1, first + n + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Topics(NamedTuple):
    """The fixed topics of a chain."""

    counts: np.ndarray  # (V, K), summed over the draws
    n_draws: int
    beta: float
    mass: np.ndarray  # (K,): the sums of counts / n_draws + beta
    alpha: np.ndarray  # (K,)

    def phi(self, words: np.ndarray | slice) -> np.ndarray:
        """The rows of some words, (n, K) float32; only these are made, since a document has few of all words."""
        rows = self.counts[words] / self.n_draws + self.beta
        return np.maximum(rows / self.mass, 1e-37).astype(np.float32)


def make_topics(counts: np.ndarray, n_draws: int, beta: float, alpha: np.ndarray) -> Topics:
    return Topics(counts, n_draws, beta, (counts / n_draws + beta).sum(axis=0), alpha)


class Rows(NamedTuple):
    """Documents under chains: a row for each of both, the longest first."""

    phi: np.ndarray  # (n_rows, longest, width) float32, 0 where there is no token or no topic
    alpha: np.ndarray  # (n_rows, width) float32
    length: np.ndarray  # (n_rows,)
    streams: np.ndarray  # (n_rows,) uint64
    n_topics: int


def draw_counts(tokens: list[np.ndarray], chains: list[Topics], keys: list[int], n_sweeps: int) -> np.ndarray:
    """The tokens of each topic in each sweep of the second half, (chain, n_kept, n_docs, K)."""
    n_topics, n_docs = len(chains[0].alpha), len(tokens)
    width = -(-n_topics // LANES) * LANES
    found = np.zeros((len(chains), n_sweeps - n_sweeps // 2, n_docs, n_topics))
    order = sorted(range(n_docs), key=lambda d: -len(tokens[d]))
    order = [d for d in order if len(tokens[d])]
    while order:
        longest = len(tokens[order[0]])
        n = max(1, MOST_NUMBERS // (longest * width * len(chains)))
        some, order = order[:n], order[n:]
        rows = make_rows([tokens[d] for d in some], chains, keys, width)
        counts = sweep(rows, n_sweeps)  # (n_kept, n_rows, width)
        counts = counts.reshape(len(counts), len(some), len(chains), width)
        found[:, :, some] = counts.transpose(2, 0, 1, 3)[..., :n_topics]
    return found


def make_rows(tokens: list[np.ndarray], chains: list[Topics], keys: list[int], width: int) -> Rows:
    """The rows of some documents, of which the first is the longest; those of one document stand together."""
    n_topics, n, longest = len(chains[0].alpha), len(chains), len(tokens[0])
    phi = np.zeros((len(tokens) * n, longest, width), np.float32)
    words, alpha = np.unique(np.concatenate(tokens)), np.zeros((n, width), np.float32)
    for c, topics in enumerate(chains):
        alpha[c, :n_topics] = topics.alpha
        of_words = topics.phi(words)
        for d, own in enumerate(tokens):
            phi[d * n + c, : len(own), :n_topics] = of_words[np.searchsorted(words, own)]
    streams = np.array([content_stream(own, key) for own in tokens for key in keys], np.uint64)
    length = np.repeat([len(own) for own in tokens], n)
    return Rows(phi, np.tile(alpha, (len(tokens), 1)), length, streams, n_topics)


def sweep(rows: Rows, n_sweeps: int) -> np.ndarray:
    """Draw every z anew, n_sweeps times; the counts of the sweeps of the second half, (n_kept, n_rows, width)."""
    n_rows, longest, width = rows.phi.shape
    burn_in, places = n_sweeps // 2, np.arange(n_rows)
    start = ((random_bits(rows.streams + np.uint64(1), 0, longest) >> np.uint64(12)) + 0.5) * 2.0**-52
    z = (start * rows.n_topics).astype(np.intp)  # (n_rows, longest)
    counts = np.zeros((n_rows, width), np.float32)
    np.add.at(counts, (np.repeat(places, rows.length), z[np.arange(longest) < rows.length[:, None]]), ONE)
    ready = counts + rows.alpha
    kept = np.zeros((n_sweeps - burn_in, n_rows, width), np.float32)
    ends = n_sweeps * rows.length
    for t in range(int(ends[0])):
        if t % BLOCK == 0:
            bits = random_bits(rows.streams, t, BLOCK)
            u = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
        n = int(np.searchsorted(-ends, -t))  # rows that go on
        own, length = places[:n], rows.length[:n]
        i = t % length
        move_tokens(rows, counts, ready, z, u[:n, t % BLOCK], own, i)
        last = i == length - 1
        if last.any():
            sweeps = t // length - burn_in
            done = last & (sweeps >= 0)
            kept[sweeps[done], own[done]] = counts[own[done]]
    return kept


def move_tokens(
    rows: Rows, counts: np.ndarray, ready: np.ndarray, z: np.ndarray, u: np.ndarray, own: np.ndarray, i: np.ndarray
) -> None:
    """Draw one token of each row: does it stay in its topic, and if not, where does it go."""
    n, width = len(own), counts.shape[1]
    phi, j = rows.phi[own, i], z[own, i]
    weight = ready[:n] * phi
    weight[own, j] = 0.0
    stays = phi[own, j] * ((counts[own, j] - ONE) + rows.alpha[own, j])
    cumulated = np.add.accumulate(weight.reshape(n, -1, LANES), axis=1)
    lanes = cumulated[:, -1]
    four = lanes[:, :4] + lanes[:, 4:]
    two = four[:, :2] + four[:, 2:]
    mass = (two[:, 0] + two[:, 1]) + stays
    rest = u * mass - stays
    fits = (mass > TINY) & (mass < HUGE)
    if not fits.all():
        for b in np.flatnonzero(~fits).tolist():
            set_topic(rows, counts, ready, z, b, i[b], find_carefully(rows, counts, phi[b], b, int(j[b]), float(u[b])))
        rest[~fits] = -ONE
    goes = np.flatnonzero(rest >= 0)
    if not len(goes):
        return
    sums, rest = running_sums(lanes[goes]), rest[goes]
    lane = (sums <= rest[:, None]).sum(axis=1)
    rest = np.where(lane > 0, rest - sums[np.arange(len(goes)), np.maximum(lane - 1, 0)], rest)
    place = lane[:, None] + np.arange(0, width, LANES)
    inside = place < width
    flat = cumulated[goes].reshape(len(goes), width)
    below = (np.take_along_axis(flat, np.minimum(place, width - 1), axis=1) <= rest[:, None]) & inside
    k = lane + LANES * below.sum(axis=1)
    k = np.where(k < rows.n_topics, k, j[goes])
    for b, new in zip(goes.tolist(), k.tolist(), strict=True):
        if new != j[b]:
            set_topic(rows, counts, ready, z, b, i[b], new)


def set_topic(rows: Rows, counts: np.ndarray, ready: np.ndarray, z: np.ndarray, b: int, i: int, k: int) -> None:
    """Move token i of row b to topic k."""
    j = z[b, i]
    z[b, i] = k
    counts[b, j] -= ONE
    counts[b, k] += ONE
    ready[b, j] = counts[b, j] + rows.alpha[b, j]
    ready[b, k] = counts[b, k] + rows.alpha[b, k]


def running_sums(x: np.ndarray) -> np.ndarray:
    """Prefix sums of eight lanes, (n, 8), in the order of the kernels."""
    x = x.reshape(-1, 2, 4).copy()
    x[:, :, 1:] = x[:, :, 1:] + x[:, :, :-1]
    x[:, :, 2:] = x[:, :, 2:] + x[:, :, :-2]
    x[:, 1] = x[:, 1] + x[:, 0, 3:]
    return x.reshape(-1, LANES)


def find_carefully(rows: Rows, counts: np.ndarray, phi: np.ndarray, b: int, j: int, u: float) -> int:
    """The topic of a token whose weights do not fit into float32: in float64."""
    weight = [(float(counts[b, k]) - (k == j) + float(rows.alpha[b, k])) * float(phi[k]) for k in range(rows.n_topics)]
    rest = u * math.fsum(weight) - weight[j]
    if rest < 0.0:
        return j
    weight[j] = 0.0
    for lane in range(LANES):
        for k in range(lane, rows.n_topics, LANES):
            rest -= weight[k]
            if rest < 0.0:
                return k
    return j
