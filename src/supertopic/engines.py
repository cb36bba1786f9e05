"""Who runs the shards. An engine is asked for one step of all of them and adds up what they say, in their order."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TypeVar

import numpy as np

from supertopic.shard import Shard, Statistics
from supertopic.sweep import Topics, Weights

T = TypeVar("T")


class Threads:
    """Runs shards on some threads; with one thread, on the caller's own."""

    def __init__(self, shards: Sequence[Shard], n_threads: int):
        self.shards = shards
        self.n_threads = max(1, min(n_threads, len(shards)))
        self.pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def step(self, weights: Weights, topics: Topics, alpha: np.ndarray, key: np.uint64) -> Statistics:
        """One step of every shard. What moved is added to topics.moves, whole numbers in any order."""
        if topics.live:
            return self.shards[0].step(weights, topics, alpha, key)
        results: list[Statistics] = [None] * len(self.shards)  # type: ignore[list-item]
        turn = itertools.count()  # next() is atomic: each shard is taken once, by whoever is free

        def work(moves):
            while (i := next(turn)) < len(self.shards):
                results[i] = self.shards[i].step(weights, topics._replace(moves=moves), alpha, key)

        moves = [topics.moves] + [np.zeros_like(topics.moves) for _ in range(self.n_threads - 1)]
        others = [self.pool.submit(work, m) for m in moves[1:]] if self.pool else []
        work(moves[0])
        for other, m in zip(others, moves[1:], strict=True):
            other.result()
            topics.moves[:] += m
        return reduce(Statistics.__add__, results)

    def map(self, verb: Callable[[Shard], T]) -> list[T]:
        """verb(shard) for every shard, the answers in the shards' order."""
        return list(self.pool.map(verb, self.shards) if self.pool else map(verb, self.shards))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.pool:
            self.pool.shutdown(cancel_futures=True)
