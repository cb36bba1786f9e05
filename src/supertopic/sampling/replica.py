"""The shards of one machine of several, which exchange their changes with those of the others."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from supertopic.corpus.source import Source
from supertopic.model.responses import Response
from supertopic.model.state import Moves, Priors
from supertopic.sampling.exchange import Grid, Parcel, Post, add_up, collect, exchange
from supertopic.sampling.plan import Plan
from supertopic.sampling.threads import LocalShards, PairwiseSum, PartialSums, Sums, add_parts


class Replica(LocalShards):
    """The shards of one machine of several. It has the counts of all documents, and receives the changes of all.

    Its sums are those of all machines, in pieces: each machine of the grid's first row that holds a share of the words
    returns one piece, the others None.
    """

    def __init__(
        self, plan: Plan, source: Source, n_threads: int, part: slice, pseudo_counts: np.ndarray | None, grid: Grid,
        post: Post,
    ):  # fmt: skip
        super().__init__(plan, source, n_threads, part, pseudo_counts)
        self.grid, self.post = grid, post
        self.beside = ThreadPoolExecutor(1)  # a thread that exchanges changes while sums are collected and eta is drawn
        # the exchange that has begun, and whether the counts after it are added to the sum over the draws
        self.changing: tuple[Future[Parcel], bool | None] | None = None
        self.n_exchanges = self.n_sums = 0
        self.exchange_seconds = 0.0

    @property
    def alone(self) -> bool:
        """Whether there is no other replica."""
        return len(self.groups) == len(self.plan.groups)

    @property
    def sends_moves(self) -> bool:  # type: ignore[override]
        return not self.alone

    def count(self) -> None:
        super().count()
        if not self.alone:
            with self.measured():
                own = Parcel(np.zeros(2, np.int64), self.counts.all_changes(self.n_parts))
            self.begin_exchange(own)

    def follow(self, moves: list[Moves], keep: bool) -> None:
        if self.alone:
            super().follow(moves, keep)
            return
        with self.measured():
            taken = np.sum([move.taken for move in moves], axis=0)
            own = Parcel(taken, self.counts.changes(moves, self.n_parts))
        self.begin_exchange(own, keep)

    def begin_exchange(self, own: Parcel, keep: bool | None = None) -> None:
        """Send the own changes, and add up those of others; `keep` is None where no sweep has ended."""
        self.n_exchanges += 1
        arguments = self.post, self.grid, ("counts", self.n_exchanges), own, self.merge
        self.changing = self.beside.submit(exchange, *arguments), keep

    def wait(self) -> None:
        """Bring the counts up to date. This comes before every call that reads or changes them."""
        if self.changing is None:
            return
        exchanged, keep = self.changing
        merged, self.changing = exchanged.result(), None
        with self.measured():
            self.counts.receive(merged.parts)
            if keep is not None:
                self.counts.settle(merged.taken, keep)

    def merge(self, parcels: list[Parcel]) -> Parcel:
        """Add up the changes of several machines in the same words."""
        n_words, n_topics, n_parts = self.plan.n_words, self.plan.n_topics, self.n_parts
        with self.measured():
            same = list(zip(*(parcel.parts for parcel in parcels), strict=True))
            parts = self.pool.map(lambda changes: add_up(changes, n_parts, n_words, n_topics), same)
            return Parcel(np.sum([parcel.taken for parcel in parcels], axis=0), parts)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Time that is spent on the exchange, waiting not included."""
        began = time.perf_counter()
        yield
        self.exchange_seconds += time.perf_counter() - began

    def collect(self, sums: PairwiseSum) -> PartialSums | None:
        """A piece of the sum of all machines, or None."""
        if self.alone:
            return sums.partial
        self.n_sums += 1
        pieces = cut_sums(sums.partial, self.grid.n_shares)
        return collect(self.post, self.grid, ("sums", self.n_sums), pieces, partial(add_parts, len(self.plan.groups)))

    def sweep(
        self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool, response: Response | None = None
    ) -> PartialSums | None:
        sums = self.sweep_shards(eta, priors, key, keep, response)
        return None if sums is None else self.collect(sums)

    def augment(self, response: Response, key: np.uint64) -> PartialSums | None:
        return self.collect(self.augment_shards(response, key))

    def statistics(self) -> PartialSums | None:
        return self.collect(self.sum_statistics())

    def products(self, v: np.ndarray, columns: np.ndarray) -> PartialSums | None:
        return self.collect(self.sum_products(v, columns))

    def noise(self, key: np.uint64) -> PartialSums | None:
        return self.collect(self.sum_noise(key))

    def traffic(self) -> np.ndarray:
        """Seconds of the exchange, waiting not included, and bytes that were sent."""
        return np.array([self.exchange_seconds, self.post.sent_bytes])

    def use_counts(self, name: str, *arguments: Any) -> Any:
        """An attribute of the counts, or the result of one of their methods."""
        value = getattr(self.counts, name)
        return value(*arguments) if callable(value) else value

    def close(self) -> None:
        self.post.close()
        self.beside.shutdown()
        super().close()


def cut_sums(partial_sums: PartialSums, n: int) -> list[PartialSums]:
    """Partial sums in n pieces, by the rows of their arrays."""
    cut = {place: [np.array_split(array, n) for array in sums] for place, sums in partial_sums.items()}
    return [{place: tuple(pieces[i] for pieces in arrays) for place, arrays in cut.items()} for i in range(n)]


def join_sums(pieces: Sequence[PartialSums]) -> Sums:
    """The arrays of a whole sum from its pieces."""
    whole = [sums for piece in pieces for sums in piece.values()]
    return tuple(np.concatenate(arrays) for arrays in zip(*whole, strict=True))
