"""How machines exchange the changes of their counts after a sweep.

Every word belongs to one machine, its owner. All machines send the owner their net changes of the word's counts, the
owner adds them up, and all machines receive the sum. So a machine receives each changed count once, however many
machines there are, instead of every token that moved anywhere.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from supertopic.kernels.changes import add_changes, add_rows
from supertopic.kernels.counts import BLOCK
from supertopic.model.state import Moves


class Changes(NamedTuple):
    """The net change of the counts of some words, without topics whose count is the same as before."""

    word: np.ndarray  # (n_rows,) int32
    n_cells: np.ndarray  # (n_rows,) int32: topics of each word whose count changed
    topic: np.ndarray  # (n_cells.sum(),) uint16: which they are, one word after the other
    delta: np.ndarray  # by how much, in as few bytes as hold the largest

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


class Parcel(NamedTuple):
    """The changes of the words of one owner, in some parts so that threads share the work."""

    taken: np.ndarray  # (2,): proposals without the response, and those of them that were accepted
    parts: list[Changes]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)


def narrow(word: np.ndarray, n_cells: np.ndarray, topic: np.ndarray, delta: np.ndarray) -> Changes:
    """Changes in as few bytes as they need."""
    largest = int(np.abs(delta).max(initial=0))
    return Changes(word, n_cells, topic, delta.astype(np.min_scalar_type(-largest) if largest else np.int8))


def of_moves(moves: Sequence[Moves], part: int, n_words: int, n_topics: int) -> Changes:
    """The net change of one part of the vocabulary, from the tokens that moved."""
    moved = np.concatenate([move.moves[move.starts[part] : move.starts[part + 1]] for move in moves])
    word = (moved >> np.uint64(32)).astype(np.int32)
    topic = np.empty((len(moved), 2), np.uint16)
    topic[:, 0], topic[:, 1] = moved >> np.uint64(16) & np.uint64(0xFFFF), moved & np.uint64(0xFFFF)
    delta = np.tile(np.array([-1, 1], np.int32), len(moved))
    return narrow(*add_rows(word, np.full(len(word), 2, np.int32), topic.reshape(-1), delta, n_words, n_topics))


def of_counts(word_topic: np.ndarray, part: int, n_parts: int) -> Changes:
    """One part of the vocabulary of a change (V, K) that has every cell. Parts are those of `Moves`."""
    words = np.arange(len(word_topic), dtype=np.int32)
    words = words[words // BLOCK % n_parts == part]
    rows = word_topic[words]
    n_cells, (row, topic) = np.count_nonzero(rows, axis=1).astype(np.int32), rows.nonzero()
    some = n_cells > 0
    return narrow(words[some], n_cells[some], topic.astype(np.uint16), rows[row, topic])


def add_up(changes: Sequence[Changes], n_words: int, n_topics: int) -> Changes:
    """The sum of the changes of several machines."""
    word, n_cells, topic = (np.concatenate([getattr(one, name) for one in changes]) for name in Changes._fields[:3])
    delta = np.concatenate([one.delta for one in changes], dtype=np.int32)
    return narrow(*add_rows(word, n_cells, topic, delta, n_words, n_topics))


def apply(changes: Changes, word_topic: np.ndarray, n_topics: int) -> np.ndarray:
    """Add changes to the counts; returns the change of each topic's tokens, (K,)."""
    own = (np.array(array) for array in changes[:3])  # what comes from another process is read-only
    return add_changes(*own, changes.delta.astype(np.int32), word_topic, n_topics)
