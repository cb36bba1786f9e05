"""Tokens and topics are counted: the counts of words, what moved, topics drawn from counts, and their densities.

word_topic (V, K) is padded to whole lanes wherever K topics are counted beside it.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from supertopic.kernels.compiled import kernel, part
from supertopic.kernels.draws import derive, log_gamma, uniform
from supertopic.kernels.lanes import LANES, load, peek, splat, total

BLOCK = 16  # words: threads that count their own blocks do not write to the same cache lines
U16, U32, LOW = np.uint64(16), np.uint64(32), np.uint64(2**16 - 1)
ZERO = np.float32(0)


@kernel
def start_z(z, doc_start, n_topics, streams):
    """Every z from the uniform distribution."""
    for d in range(len(streams)):
        for i in range(doc_start[d], doc_start[d + 1]):
            z[i] = int(uniform(streams[d], i - doc_start[d]) * n_topics)


def add_tokens(word: np.ndarray, z: np.ndarray, word_topic: np.ndarray, n_topics: int) -> np.ndarray:
    """Add tokens to the counts; returns the tokens of each topic."""
    tokens = np.zeros(n_topics, np.int64)
    count_tokens(word, z, word_topic, tokens)
    return tokens


@kernel
def count_tokens(word, z, word_topic, tokens):
    """Add tokens to the counts of words, and to those of each topic."""
    for i in range(len(word)):
        word_topic[word[i], z[i]] += 1
        tokens[z[i]] += 1


@kernel
def count_part(word, z, part, n_parts, word_topic):
    """Add the tokens of one part of the vocabulary to its counts; for parts, see `find_changes`."""
    for i in range(len(word)):
        if word[i] // BLOCK % n_parts == part:
            word_topic[word[i], z[i]] += 1


class Found(NamedTuple):
    """Where a sweep puts what it changed; arrays of length 0 where nobody asks."""

    previous: np.ndarray  # (n_tokens,) uint16: z before the sweep; empty where the counts have followed already
    tokens: np.ndarray  # (K,) int64: the tokens of each topic
    starts: np.ndarray  # (n_parts + 2,) int64: where each part of the moves starts
    moved: np.ndarray  # (n_tokens + 1,) uint32: the numbers of the tokens that moved
    moves: np.ndarray  # (n_tokens,) uint64


def places(z: np.ndarray, n_topics: int, live: bool, n_parts: int) -> Found:
    """Room for the changes of a sweep over z."""
    previous = z[:0] if live else z.copy()
    n, tokens, starts = len(previous), np.zeros(n_topics, np.int64), np.zeros(n_parts + 2, np.int64)
    return Found(previous, tokens, starts, np.empty(n + 1, np.uint32), np.empty(n, np.uint64))


NOWHERE = Found(
    np.zeros(0, np.uint16), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint64)
)


@part
def find_changes(word, z, found):
    """The tokens that moved, as word, old and new topic in 64 bits, sorted into parts of the vocabulary.

    Blocks of words are dealt out to the parts in turn, since frequent words are often neighbours. The moves are
    counted in the last place of `starts`.
    """
    previous, tokens, starts, moved, moves = found
    n_parts, n_moved = len(starts) - 2, 0
    if len(tokens):
        for i in range(len(z)):
            tokens[z[i]] += 1
    for i in range(len(previous)):  # no branch to guess
        moved[n_moved] = i
        n_moved += previous[i] != z[i]
    for m in range(n_moved):
        starts[word[moved[m]] // BLOCK % n_parts + 2] += 1
    for p in range(n_parts):
        starts[p + 2] += starts[p + 1]
    for m in range(n_moved):
        i = moved[m]
        place = word[i] // BLOCK % n_parts + 1
        moves[starts[place]] = np.uint64(word[i]) << U32 | np.uint64(previous[i]) << U16 | np.uint64(z[i])
        starts[place] += 1


@kernel
def add_moves(addresses, starts, part, word_topic):
    """Bring the counts of one part of the words up to date with the moves of all shards.

    Their arrays are at some addresses; row i of starts (n_shards, n_parts + 1) says where the parts of each start.
    """
    for i in range(len(addresses)):
        for m in range(starts[i, part], starts[i, part + 1]):
            move = peek(addresses[i], m)
            word = move >> U32
            word_topic[word, move >> U16 & LOW] -= 1
            word_topic[word, move & LOW] += 1


@kernel
def add_shares(word, z, share, smooth):
    """Add share (K,) of each token's topic to its word in smooth (V,). Whole numbers: any order gives the same."""
    for i in range(len(word)):
        smooth[word[i]] += share[z[i]]


@kernel
def count_shares(word_topic, share, first_word, last_word):
    """The same sums from the counts of some words."""
    smooth = np.zeros(last_word - first_word, np.int64)
    for w in range(first_word, last_word):
        for k in range(len(share)):
            smooth[w - first_word] += word_topic[w, k] * share[k]
    return smooth


@kernel
def draw_log_gammas(word_topic, n_topics, beta, key, phi, first_word, last_word):
    """Put log Gamma(word_topic + beta) draws of some words into phi; returns their log-sum-exp, (K,)."""
    width = word_topic.shape[1]
    largest, total = np.full(n_topics, -1e30), np.zeros(n_topics)
    for w in range(first_word, last_word):
        stream = derive(key, w)
        for k in range(n_topics):
            cell = derive(stream, k)
            n = word_topic[w, k]
            # most empty cells are so small that they will be 0 in float32: the first factor alone shows it
            x = -1e3
            if n > 0 or math.log(uniform(cell, 0)) > -100.0 * beta:
                x = log_gamma(n + beta, cell)
            phi[w * width + k] = x
            largest[k] = max(largest[k], x)
    for w in range(first_word, last_word):
        for k in range(n_topics):
            total[k] += math.exp(phi[w * width + k] - largest[k])
    for k in range(n_topics):
        total[k] = largest[k] + math.log(total[k])
    return total


@kernel
def normalise(phi, width, log_sum, first_word, last_word):
    """Turn the logs of some words into phi, whose columns sum to 1 over all words."""
    for w in range(first_word, last_word):
        for k in range(len(log_sum)):
            phi[w * width + k] = max(math.exp(phi[w * width + k] - log_sum[k]), 1e-37)


@kernel
def add_smooth(phi, alpha, smooth, first_word, last_word):
    """Put sum_k alpha_k phi_wk of some words into smooth (V,)."""
    width = len(alpha)
    for w in range(first_word, last_word):
        sums = splat(ZERO)
        for b in range(0, width, LANES):
            sums = sums + load(alpha, b) * load(phi, w * width + b)
        smooth[w] = total(sums)


@kernel
def count_sizes(word_topic, n_topics):
    """How many (word, topic) have 0, 1, 2, ... tokens."""
    sizes = np.zeros(word_topic.max() + 1, np.int64)
    for w in range(len(word_topic)):
        for k in range(n_topics):
            sizes[word_topic[w, k]] += 1
    return sizes


@kernel
def log_words(word_topic, n_topics, beta, first_word, last_word):
    """The part of some words in log p(w | z, beta), but for what depends on the topics' masses."""
    table = np.array([math.lgamma(beta + n) - math.lgamma(beta) for n in range(256)])
    total = 0.0
    for w in range(first_word, last_word):
        for k in range(n_topics):
            n = word_topic[w, k]
            if n > 0:
                total += table[n] if n < 256 else math.lgamma(beta + n) - math.lgamma(beta)
    return total


def log_documents(doc_start: np.ndarray, z: np.ndarray, alpha: np.ndarray) -> float:
    """log p(z | alpha), the topic proportions integrated out."""
    return sum_log_documents(doc_start, z, alpha, in_order(alpha), np.zeros(len(alpha), np.int64))


def in_order(numbers: np.ndarray) -> float:
    """Their sum, from the first to the last; NumPy's has other bits."""
    return float(np.cumsum(numbers)[-1])


@kernel
def sum_log_documents(doc_start, z, alpha, concentration, count):
    """The sum over documents; concentration is the sum of alpha (K,), and count (K,) is 0."""
    total = 0.0
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


def alpha_sums(doc_start: np.ndarray, z: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """sum_d digamma(n_dk + alpha_k) - digamma(alpha_k) for every topic, then the same of a document's length.

    The difference of digammas is the sum of 1 / (alpha + i) for i < n, so that a pass over the tokens does it.
    """
    sums = np.zeros(len(alpha) + 1)
    add_alpha_sums(doc_start, z, alpha, in_order(alpha), np.zeros(len(alpha)), sums)
    return sums


@kernel
def add_alpha_sums(doc_start, z, alpha, concentration, count, sums):
    """Add them to sums (K + 1,); concentration is the sum of alpha (K,), and count (K,) is 0."""
    n_topics = len(alpha)
    for d in range(len(doc_start) - 1):
        for i in range(doc_start[d], doc_start[d + 1]):
            k = np.intp(z[i])
            sums[k] += 1.0 / (alpha[k] + count[k])
            count[k] += 1.0
            sums[n_topics] += 1.0 / (concentration + (i - doc_start[d]))
        for i in range(doc_start[d], doc_start[d + 1]):
            count[z[i]] = 0.0


def private_topics(
    tokens: Any, z: np.ndarray, word_topic: np.ndarray, n_draws: int, beta: float, mass: np.ndarray, width: int,
    first_doc: int, last_doc: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Topics for some documents as if they had been learned without each: a vocabulary of its own for each document.

    word_topic (V, K) is the sum of n_draws, mass (K,) the tokens of each topic in their mean, plus V beta. z is the
    last of them: a document's own tokens are taken out as if they had always been there. Returns the tokens' new words,
    and phi, flat.
    """
    starts = tokens.doc_start[first_doc : last_doc + 1]
    old = tokens.word[starts[0] : starts[-1]]
    first = np.ones(len(old), np.bool_)  # of its word in its document: equal words are neighbours
    np.not_equal(old[1:], old[:-1], out=first[1:])
    first[starts[:-1][np.diff(starts) > 0] - starts[0]] = True
    word = np.cumsum(first, dtype=np.int32)
    word -= 1
    phi = np.zeros(int(first.sum()) * width, np.float32)
    rest = np.empty_like(mass)
    put_private_topics(tokens, z, word_topic, n_draws, beta, mass, width, first_doc, last_doc, word, phi, rest)
    return word, phi


@kernel
def put_private_topics(tokens, z, word_topic, n_draws, beta, mass, width, first_doc, last_doc, word, phi, rest):
    """Put phi of the documents' words, which `word` numbers, into an array of zeros; rest (K,) is for its own use."""
    begin = tokens.doc_start[first_doc]
    for d in range(first_doc, last_doc):
        start, stop = tokens.doc_start[d], tokens.doc_start[d + 1]
        for k in range(len(rest)):
            rest[k] = mass[k]
        for i in range(start, stop):
            rest[z[i]] -= 1.0
            phi[word[i - begin] * width + z[i]] += 1.0  # own tokens
        for i in range(start, stop):
            w, row = tokens.word[i], word[i - begin] * width
            if i == start or w != tokens.word[i - 1]:
                for k in range(len(rest)):
                    count = max(word_topic[w, k] / n_draws - np.float64(phi[row + k]), 0.0)
                    phi[row + k] = (count + beta) / max(rest[k], beta)
