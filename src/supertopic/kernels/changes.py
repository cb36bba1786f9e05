"""Counts that changed, as sparse rows of words: added up by one machine for all, and added to the counts by each."""

import numpy as np

from supertopic.kernels.compiled import kernel


@kernel
def add_rows(word, n_cells, topic, delta, n_words, n_topics):
    """The sum of rows: every word once, in order, without topics whose changes cancel each other.

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
def add_changes(word, n_cells, topic, delta, word_topic, n_topics):
    """Add rows to the counts; returns the change of each topic's tokens."""
    tokens, at = np.zeros(n_topics, np.int64), 0
    for i in range(len(word)):
        for cell in range(at, at + n_cells[i]):
            word_topic[word[i], topic[cell]] += delta[cell]
            tokens[topic[cell]] += delta[cell]
        at += n_cells[i]
    return tokens
