"""Who runs the shards. An engine asks all of them for something; what they say is added up in their order."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from supertopic.corpus.source import Source
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Response
from supertopic.model.state import Moves, Priors, Statistics, mean_topics, no_statistics
from supertopic.sampling.counts import Counts
from supertopic.sampling.plan import LAMBDA, START, SWEEP, TOPICS, Plan
from supertopic.sampling.pool import Crew
from supertopic.sampling.shard import Shard

PARTS = 2  # of the words for each thread that counts

T = TypeVar("T")
Verb = tuple[Any, ...]  # a verb's name, then its data


class Lost(RuntimeError):
    """Somebody who has shards is gone, or does not answer."""


def kinds(device: str) -> tuple[Any, Any]:
    """Shards and counts where their arrays live; nothing of CUDA is imported unless it is used."""
    if device == "cpu":
        return Shard, Counts
    from supertopic.sampling.cuda import GpuCounts, GpuShard

    return GpuShard, GpuCounts


class Pairs:
    """Adds statistics in pairs, neighbours first, then these sums, and so on: whoever adds, the sum is the same.

    Place j of level l has the sum of the groups from j 2**l to (j + 1) 2**l. Few of them are in memory at a time.
    """

    def __init__(self, n_groups: int, spare: list[Statistics] | None = None):
        self.n_groups, self.waiting, self.lock = n_groups, dict[tuple[int, int], Statistics](), threading.Lock()
        self.spare = [] if spare is None else spare  # used again: memory costs time, too

    def take(self, level: int, place: int, sums: Statistics) -> None:
        """Take a sum, which is then theirs, and add it to its neighbour as soon as that is there."""
        while 1 << level < self.n_groups:
            neighbour = place ^ 1
            if neighbour << level < self.n_groups:
                with self.lock:
                    other = self.waiting.pop((level, neighbour), None)
                    if other is None:
                        self.waiting[level, place] = sums
                        return
                for array, more in zip(sums, other, strict=True):
                    array += more
                self.spare.append(other)
            level, place = level + 1, place // 2
        self.waiting[level, 0] = sums

    def whole(self) -> Statistics:
        """The sum of all groups."""
        (sums,) = self.waiting.values()
        return sums


class Threads:
    """Threads of one address space: its shards, and one array of counts that follows their moves.

    They have the shards of all groups, or of a part of them.
    """

    def __init__(self, plan: Plan, source: Source, n_threads: int, part: slice = slice(None)):
        self.plan, self.seconds = plan, np.zeros(3)  # in eta, z, lambda, beside what the shards need
        self.groups = range(len(plan.groups))[part]
        self.first = plan.groups[self.groups[0]].start  # of its shards
        slices = plan.slices[self.first : plan.groups[self.groups[-1]].stop]
        self.crew = Crew(min(n_threads, len(slices)))
        kind, self.counting = kinds(plan.device)
        self.shards = [
            kind(*source.read(docs), docs.start, plan.n_words, plan.n_topics, plan.response) for docs in slices
        ]
        self.spare: list[Statistics] = []
        self.n_parts = PARTS * self.crew.n_threads  # into which moves are sorted

    def start(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution, or from what is believed of topics, and count."""
        belief, topics = self.plan.belief, None
        if belief and belief.word_topic.any():
            topics = mean_topics(belief.word_topic, 1, self.plan.priors)
        self.ask("start", make_key(key, START), topics)
        self.count()

    def count(self) -> None:
        """Count what the shards have."""
        self.counts = self.counting(self.plan, self.shards, self.crew)

    def ask(self, verb: str | Callable, *data: Any) -> list:
        """What every shard answers, in the shards' order; a verb may also be a function of a shard and some data."""
        if callable(verb):
            return self.crew.over(self.shards, lambda shard: verb(shard, *data))
        return self.crew.over(self.shards, lambda shard: getattr(shard, verb)(*data))

    def total(self, verb: str, *data: Any) -> np.ndarray:
        """The sum of what the shards answer, added in their order."""
        return np.sum(self.ask(verb, *data), axis=0)

    def sweep(self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool, response: Response | None = None):
        """Sweep all z given eta and topics from the counts, which then follow; `keep` adds them to the kept ones.

        Where the next response is known already, lam is drawn, too, and what `augment` would return comes back. Small
        statistics are summed on the same way: every time that all threads wait for each other costs. Large ones are
        not: they would be out of the cache by then.
        """
        topics = self.counts.topics(priors, make_key(key, TOPICS))
        sweep: Verb = ("sweep", eta, topics, make_key(key, SWEEP), keep, self.n_parts)
        pairs = None
        if response is not None and len(self.plan.groups) == len(self.plan.slices):
            pairs, moves = self.add_up([sweep, ("augment", response, make_key(key, LAMBDA))])
        else:
            moves = self.ask(*sweep)
        self.follow(moves, keep)
        if pairs is None and response is not None:
            pairs = self.add_up([("augment", response, make_key(key, LAMBDA))])[0]
        return self.sums(pairs)

    def follow(self, moves: list, keep: bool) -> None:
        """Let the counts follow."""
        self.counts.follow(moves, keep)

    def augment(self, response: Response, key: np.uint64) -> Any:
        """Draw lam, and sum up what the next draw of eta needs to know."""
        return self.sums(self.add_up([("augment", response, make_key(key, LAMBDA))])[0])

    def statistics(self) -> Any:
        """What the next draw of eta needs to know."""
        return self.sums(self.add_up([])[0])

    def sums(self, pairs: Pairs | None) -> Any:
        return pairs and pairs.whole()

    def add_up(self, verbs: list[Verb]) -> tuple[Pairs, list]:
        """The statistics of all documents after some verbs, and what the shards answered to the first of these."""
        answers: list[Any] = [None] * len(self.shards)
        pairs = Pairs(len(self.plan.groups), self.spare)

        def add(i: int) -> None:
            group = self.plan.groups[i]
            places = range(group.start - self.first, group.stop - self.first)
            for place in places:
                told = [getattr(self.shards[place], verb)(*data) for verb, *data in verbs]
                answers[place] = told[0] if told else None
            sums = self.no_statistics()
            for place in places:
                self.shards[place].add_statistics(sums)
            pairs.take(0, i, sums)

        self.crew.over(self.groups, add)
        return pairs, answers

    def no_statistics(self) -> Statistics:
        """Sums over no document."""
        try:
            sums = self.spare.pop()
        except IndexError:
            return no_statistics(self.plan.n_topics + self.plan.n_covariates, self.plan.n_columns)
        for array in sums:
            array[:] = 0.0
        return sums

    def leave_out(self, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """Every document as if it were new, to topics of the kept draws, learned without it."""
        self.ask("leave_out", self.counts.draws(), priors, n_sweeps, key)

    def timings(self) -> np.ndarray:
        """Seconds of all threads in eta, z and lambda so far."""
        return self.seconds + self.total("timings")

    def traffic(self) -> np.ndarray:
        """Seconds and bytes that went into telling others: there are none."""
        return np.zeros(2)

    def close(self) -> None:
        """Give threads and documents back."""
        self.crew.close()
        self.shards, self.spare = [], []


class Member(Threads):
    """The threads of one machine of several: its counts are those of all, and follow what the others tell."""

    waiting = False  # for what the others tell
    own: list | None = None  # moves of the last sweep, or nothing if all was counted anew
    keep = False
    heard, told = 0.0, 0  # seconds for what the others tell, and bytes for them

    def count(self) -> None:
        super().count()
        self.own, self.waiting = None, True

    def follow(self, moves: list, keep: bool) -> None:
        self.own, self.keep, self.waiting = moves, keep, True

    def sums(self, pairs: Pairs | None) -> Any:
        """What others have to be added to."""
        return pairs and pairs.waiting

    def tell(self) -> Any:
        """What the others need to know of the last verb."""
        if not self.waiting or len(self.groups) == len(self.plan.groups):  # or there is nobody else
            return None
        moves = self.counts.all() if self.own is None else self.counts.pack(self.own)
        self.told += sum(move.moves.nbytes + move.change.nbytes for move in moves)
        return moves

    def hear(self, told: list[Moves]) -> None:
        """Take what the others told."""
        began = time.perf_counter()
        if self.own is None:
            self.counts.join(told)
        else:
            self.counts.follow([*self.own, *told], self.keep)
        self.waiting = False
        self.heard += time.perf_counter() - began

    def traffic(self) -> np.ndarray:
        """Seconds for what the others told, and bytes that were told."""
        return np.array([self.heard, self.told])

    def counted(self, name: str, *data: Any) -> Any:
        """What the counts say."""
        value = getattr(self.counts, name)
        return value(*data) if callable(value) else value


class Team:
    """Those who run chains: threads of this process."""

    title = ""
    mortal = False  # whether some may be lost, and the others read what is on this machine's disk

    def __init__(self, at_once: int, n_threads: int):
        self.at_once, self.n_threads = at_once, max(1, n_threads)

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *error) -> None:
        pass

    def run(self, plan: Plan, source: Source, go: Callable[[Any], T]) -> T:
        """What comes out of an engine for this plan."""
        return go(Threads(plan, source, self.n_threads))
