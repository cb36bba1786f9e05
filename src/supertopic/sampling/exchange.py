"""How machines exchange the changes of their counts after a sweep, and add up their statistics.

Machines are arranged in a grid. Words belong to shares, and shares to parts of them, so that every word has one machine
of the grid as its owner. First the machines of a row send the net changes of their counts to the one of them that holds
a word's share. It adds them up, and sends the sums to the machines that hold the same share in other rows, each of
which owns a part of it. Then the sums of all rows go the same way back. So every machine sends and receives each
changed count about once, and has messages for the machines of its row and its column only, however many there are.
"""

import math
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from supertopic.kernels.changes import add_changes, add_rows, decode, encode
from supertopic.kernels.counts import BLOCK
from supertopic.model.state import Moves

T = TypeVar("T")
# The net change of the counts of one part of the vocabulary, as bytes: see `kernels.changes`. Blocks of words are dealt
# out to the parts in turn, as in `Moves`, and words are numbered within their part.
Changes = np.ndarray


class Parcel(NamedTuple):
    """The changes of some parts of the vocabulary."""

    taken: np.ndarray  # (2,): proposals without the response, and those of them that were accepted
    parts: list[Changes]

    def cut(self, n: int) -> list["Parcel"]:
        """The same in n parcels."""
        each = len(self.parts) // n
        return [Parcel(self.taken * (i == 0), self.parts[i * each : (i + 1) * each]) for i in range(n)]


def join(parcels: Sequence[Parcel]) -> Parcel:
    """Parcels of different words as one."""
    return Parcel(np.sum([parcel.taken for parcel in parcels], axis=0), [part for one in parcels for part in one.parts])


def of_moves(moves: Sequence[Moves], part: int, n_parts: int, n_words: int, n_topics: int) -> Changes:
    """The net change of one part of the vocabulary, from the tokens that moved."""
    moved = np.concatenate([move.moves[move.starts[part] : move.starts[part + 1]] for move in moves])
    word = number((moved >> np.uint64(32)).astype(np.int32), n_parts)
    topic = np.empty((len(moved), 2), np.uint16)
    topic[:, 0], topic[:, 1] = moved >> np.uint64(16) & np.uint64(0xFFFF), moved & np.uint64(0xFFFF)
    delta, pairs = np.tile(np.array([-1, 1], np.int32), len(moved)), np.full(len(word), 2, np.int32)
    return encode(*add_rows(word, pairs, topic.reshape(-1), delta, part_size(n_words, n_parts), n_topics))


def of_counts(word_topic: np.ndarray, part: int, n_parts: int) -> Changes:
    """One part of the vocabulary of a change (V, K) that has every cell."""
    words = np.arange(len(word_topic), dtype=np.int32)
    words = words[words // BLOCK % n_parts == part]
    rows = word_topic[words]
    n_cells, (row, topic) = np.count_nonzero(rows, axis=1).astype(np.int32), rows.nonzero()
    some = n_cells > 0
    return encode(number(words[some], n_parts), n_cells[some], topic.astype(np.uint16), rows[row, topic])


def add_up(changes: Sequence[Changes], n_parts: int, n_words: int, n_topics: int) -> Changes:
    """The sum of the changes of several machines in one part of the vocabulary."""
    rows = [decode(np.array(data)) for data in changes]  # what comes from another process is read-only
    word, n_cells, topic, delta = (np.concatenate(arrays) for arrays in zip(*rows, strict=True))
    return encode(*add_rows(word, n_cells, topic, delta, part_size(n_words, n_parts), n_topics))


def apply(changes: Changes, part: int, n_parts: int, word_topic: np.ndarray, n_topics: int) -> np.ndarray:
    """Add the changes of one part to the counts; returns the change of each topic's tokens, (K,)."""
    return add_changes(np.array(changes), part, n_parts, word_topic, n_topics)


def number(word: np.ndarray, n_parts: int) -> np.ndarray:
    """The numbers of words within their parts."""
    return word // (BLOCK * n_parts) * BLOCK + word % BLOCK


def part_size(n_words: int, n_parts: int) -> int:
    """The number of words in the largest part."""
    return -(-n_words // (BLOCK * n_parts)) * BLOCK


class Grid:
    """Some machines in rows of about as many as there are rows; the first of each row hold one share of the words each.

    Rows may differ by one in their length. Then the last machine of a longer one holds no share.
    """

    def __init__(self, n_machines: int):
        n_rows = round(math.sqrt(n_machines))
        self.rows = [row.tolist() for row in np.array_split(np.arange(n_machines), n_rows)]
        self.n_shares = len(self.rows[-1])
        self.n_owners = n_rows * self.n_shares

    def row(self, machine: int) -> list[int]:
        """The machines of its row."""
        return next(row for row in self.rows if machine in row)

    def column(self, machine: int) -> list[int]:
        """The machines that hold the same share, one in each row; none if it holds no share."""
        place = self.row(machine).index(machine)
        return [row[place] for row in self.rows] if place < self.n_shares else []


class Closed(RuntimeError):
    """The chain has ended while a machine waited for others."""


class Post:
    """The messages of one machine: those that it sends, and those that have arrived and were not taken yet."""

    def __init__(self, machine: int, carry: Callable[[int, Hashable, Any], None]):
        """`carry` takes a message to another machine: its number, a tag, and what is sent."""
        self.machine, self.carry = machine, carry
        self.arrived: dict[tuple[Hashable, int], Any] = {}
        self.news, self.closed, self.sent_bytes = threading.Condition(), False, 0

    def send(self, machines: Sequence[int], tag: Hashable, messages: Iterable[Any]) -> None:
        """One message for each machine."""
        for machine, message in zip(machines, messages, strict=True):
            if machine == self.machine:
                self.put(tag, machine, message)
            else:
                with self.news:  # several threads send
                    self.sent_bytes += count_bytes(message)
                self.carry(machine, tag, message)

    def put(self, tag: Hashable, sender: int, message: Any) -> None:
        """A message has arrived."""
        with self.news:
            self.arrived[tag, sender] = message
            self.news.notify_all()

    def take(self, tag: Hashable, senders: Sequence[int]) -> list[Any]:
        """Wait for one message of each sender."""
        with self.news:
            self.news.wait_for(lambda: self.closed or all((tag, sender) in self.arrived for sender in senders))
            if self.closed:
                raise Closed("The chain has ended.")
            return [self.arrived.pop((tag, sender)) for sender in senders]

    def close(self) -> None:
        """Let nobody wait any longer."""
        with self.news:
            self.closed = True
            self.news.notify_all()


def count_bytes(message: Any) -> int:
    """The bytes of the arrays in a message."""
    if isinstance(message, np.ndarray):
        return message.nbytes
    return sum(map(count_bytes, message.values() if isinstance(message, dict) else message))


def sum_row(post: Post, grid: Grid, tag: Hashable, shares: Sequence[T], add: Callable[[list[T]], T]) -> T | None:
    """The sum of the row's messages for the share that this machine holds, or None if it holds none."""
    row = grid.row(post.machine)
    post.send(row[: grid.n_shares], (tag, "row"), shares)
    return add(post.take((tag, "row"), row)) if grid.column(post.machine) else None


def exchange(post: Post, grid: Grid, tag: Hashable, own: Parcel, add: Callable[[list[Parcel]], Parcel]) -> Parcel:
    """The changes of all machines. All of them call this, with the same tag and equally many parts for each owner."""
    row, column = grid.row(post.machine), grid.column(post.machine)
    share = sum_row(post, grid, tag, own.cut(grid.n_shares), add)
    if share is not None:
        post.send(column, (tag, "column"), share.cut(len(column)))
        total = add(post.take((tag, "column"), column))
        post.send(column, (tag, "total"), [total] * len(column))
        whole = join(post.take((tag, "total"), column))
        post.send(row, (tag, "share"), [whole] * len(row))
    return join(post.take((tag, "share"), row[: grid.n_shares]))


def collect(post: Post, grid: Grid, tag: Hashable, shares: Sequence[T], add: Callable[[list[T]], T]) -> T | None:
    """The sum of all machines' messages for the share that this one holds, in the first row; None in other rows."""
    share, column = sum_row(post, grid, tag, shares, add), grid.column(post.machine)
    if share is None:
        return None
    post.send(column[:1], (tag, "column"), [share])
    return add(post.take((tag, "column"), column)) if post.machine == column[0] else None
