"""Who runs the shards. An engine asks all of them for something and adds up what they say, in their order."""

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from supertopic.shard import Shard, Statistics


class OneBlasThread:
    """While anyone is inside, BLAS has one thread: more would fight ours and change the bits of sums.

    The limit is the whole process's: the first who enters, in whatever thread, sets it, and the last who leaves lifts
    it. OpenBLAS may ignore a thread other than the one that set it; what is restored is therefore always what was
    there at the very first time.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.first: Any = None

    def __enter__(self):
        with self.lock:
            if self.inside == 0:
                limits = threadpool_limits(1, user_api="blas")
                self.first = self.first or limits
            self.inside += 1

    def __exit__(self, *error):
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.first.restore_original_limits()


one_blas_thread = OneBlasThread()
S = TypeVar("S")
T = TypeVar("T")


class Threads:
    """Runs shards on some threads; with one thread, on the caller's own."""

    def __init__(self, shards: Sequence[Shard], n_threads: int):
        self.shards = shards
        self.n_threads = max(1, min(n_threads, len(shards)))
        self.pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def sum(self, verb: Callable[[Shard], Statistics]) -> Statistics:
        """The sum of verb(shard), added in the shards' order."""
        return reduce(Statistics.add, self.map(verb))

    def map(self, verb: Callable[[Shard], T]) -> list[T]:
        """verb(shard) for every shard, the answers in the shards' order."""
        return self.over(self.shards, verb)

    def over_words(self, n_words: int, verb: Callable[[Shard, slice], None]) -> None:
        """verb(shard, words) for every shard: each thread takes all shards in turn, for its own part of the words."""
        edges = np.linspace(0, n_words, self.n_threads + 1).astype(int).tolist()

        def work(words: slice) -> None:
            for shard in self.shards:
                verb(shard, words)

        self.over([slice(a, b) for a, b in itertools.pairwise(edges)], work)

    def over(self, things: Iterable[S], verb: Callable[[S], T]) -> list[T]:
        """verb(thing) for every thing on the threads, the answers in order."""
        return list(self.pool.map(verb, things) if self.pool else map(verb, things))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self) -> None:
        """Give the threads back."""
        if self.pool:
            self.pool.shutdown(cancel_futures=True)
