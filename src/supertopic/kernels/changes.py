"""Counts that changed, as sparse rows of words: added up by one machine for all, and added to the counts by each.

On their way between machines rows are bytes: the gap to the last word, the number of topics, and for each topic the gap
to the last one, in one number with its change where that is 1 or -1, as most are.
"""

import numpy as np

from supertopic.kernels.compiled import kernel, part
from supertopic.kernels.counts import BLOCK

LONGEST = 10  # bytes of a row's head, or of a topic and its change, at most
UP, DOWN, OTHER = range(3)  # by 1, by -1, by the number that follows


@part
def put_number(number, data, at):
    """Write a number that is not negative, seven bits a byte; returns where the next one goes."""
    while number > 127:
        data[at] = number & 127 | 128
        number >>= 7
        at += 1
    data[at] = number
    return at + 1


@part
def get_number(data, at):
    """Read a number; returns it, and where the next one is."""
    number, shift = np.int64(data[at] & 127), 0
    while data[at] > 127:
        at, shift = at + 1, shift + 7
        number |= np.int64(data[at] & 127) << shift
    return number, at + 1


@kernel
def encode(word, n_cells, topic, delta):
    """Rows as bytes; words ascend, and so do the topics of a word."""
    data, at, cell, last = np.empty(LONGEST * (len(word) + len(topic)), np.uint8), 0, 0, -1
    for i in range(len(word)):
        at = put_number(np.int64(word[i]) - last - 1, data, at)
        at = put_number(np.int64(n_cells[i]), data, at)
        last, k = np.int64(word[i]), -1
        for _ in range(n_cells[i]):
            change, gap, k = np.int64(delta[cell]), np.int64(topic[cell]) - k - 1, np.int64(topic[cell])
            if change == 1 or change == -1:
                at = put_number(3 * gap + (UP if change == 1 else DOWN), data, at)
            else:
                at = put_number(3 * gap + OTHER, data, at)
                at = put_number(2 * change if change > 0 else -2 * change - 1, data, at)
            cell += 1
    return data[:at].copy()


@part
def get_cell(data, at, k):
    """Read a topic, which comes after topic k, and its change; returns them, and where the next one is."""
    number, at = get_number(data, at)
    kind = number % 3
    change = 1 if kind == UP else -1
    if kind == OTHER:
        twice, at = get_number(data, at)
        change = -(twice + 1) // 2 if twice % 2 else twice // 2
    return k + number // 3 + 1, change, at


@kernel
def decode(data):
    """The rows that `encode` wrote: words, the number of topics of each, topics and their changes."""
    word, n_cells = np.empty(len(data), np.int32), np.empty(len(data), np.int32)
    topic, delta = np.empty(len(data), np.uint16), np.empty(len(data), np.int32)
    at, last, n_rows, n = 0, -1, 0, 0
    while at < len(data):
        gap, at = get_number(data, at)
        size, at = get_number(data, at)
        last, k = last + gap + 1, -1
        word[n_rows], n_cells[n_rows] = last, size
        n_rows += 1
        for _ in range(size):
            k, change, at = get_cell(data, at, k)
            topic[n], delta[n] = k, change
            n += 1
    return word[:n_rows].copy(), n_cells[:n_rows].copy(), topic[:n].copy(), delta[:n].copy()


@kernel
def add_rows(word, n_cells, topic, delta, n_words, n_topics):
    """The sum of rows: every word once, words and topics in order, without topics whose changes cancel each other.

    Row i has n_cells[i] topics with their changes, one row after the other; a word may have many rows.
    """
    starts = np.zeros(n_words + 1, np.int64)  # of the words among the rows in order
    for w in word:
        starts[w + 1] += 1
    for w in range(n_words):
        starts[w + 1] += starts[w]
    first, place = np.empty(len(word), np.int64), starts[:-1].copy()
    length, at = np.empty(len(word), np.int32), 0
    for i in range(len(word)):
        first[place[word[i]]], length[place[word[i]]] = at, n_cells[i]
        place[word[i]] += 1
        at += n_cells[i]

    sums, seen, touched = np.zeros(n_topics, np.int32), np.zeros(n_topics, np.bool_), np.empty(n_topics, np.int32)
    words, sizes, n_rows = np.empty(min(n_words, len(word)), np.int32), np.empty(min(n_words, len(word)), np.int32), 0
    topics, deltas, n = np.empty(len(topic), np.uint16), np.empty(len(topic), np.int32), 0
    for w in range(n_words):
        n_touched, before = 0, n
        for row in range(starts[w], starts[w + 1]):
            for cell in range(first[row], first[row] + length[row]):
                k = topic[cell]
                if not seen[k]:
                    seen[k], touched[n_touched] = True, k
                    n_touched += 1
                sums[k] += delta[cell]
        touched[:n_touched].sort()
        for k in touched[:n_touched]:
            if sums[k] != 0:
                topics[n], deltas[n] = k, sums[k]
                n += 1
            sums[k], seen[k] = 0, False
        if n > before:
            words[n_rows], sizes[n_rows] = w, n - before
            n_rows += 1
    return words[:n_rows], sizes[:n_rows], topics[:n], deltas[:n]


@kernel
def add_changes(data, part, n_parts, word_topic, n_topics):
    """Add the rows of one part of the vocabulary to the counts; returns the change of each topic's tokens.

    Words are numbered within their part: see `sampling.exchange`.
    """
    tokens, at, last = np.zeros(n_topics, np.int64), 0, -1
    while at < len(data):
        gap, at = get_number(data, at)
        size, at = get_number(data, at)
        last, k = last + gap + 1, -1
        word = (last // BLOCK * n_parts + part) * BLOCK + last % BLOCK
        for _ in range(size):
            k, change, at = get_cell(data, at, k)
            word_topic[word, k] += change
            tokens[k] += change
    return tokens
