"""Who runs the shards. An engine asks all of them for something; what they say is added up in their order."""

import itertools
from typing import Any

import numpy as np

from supertopic.kernels.draws import make_key
from supertopic.sampling.crew import Crew
from supertopic.sampling.plan import LAMBDA, START, SWEEP, TOPICS, Plan, Source
from supertopic.sampling.responses import Response
from supertopic.sampling.shard import Shard
from supertopic.sampling.state import Priors, Statistics, no_statistics
from supertopic.sampling.topics import Counts

PARTS = 2  # of the words for each thread that counts
PART = 2**15  # numbers that are summed faster by one thread than two threads would agree on who does it

Verb = tuple[Any, ...]  # a verb's name, then its data


def kinds(device: str) -> tuple[Any, Any]:
    """Shards and counts where their arrays live; nothing of CUDA is imported unless it is used."""
    if device == "cpu":
        return Shard, Counts
    from supertopic.sampling.gpu import GpuCounts, GpuShard

    return GpuShard, GpuCounts


class Threads:
    """Threads of one address space: its shards, and one array of counts that follows their moves."""

    def __init__(self, plan: Plan, source: Source, n_threads: int):
        self.plan, self.seconds = plan, np.zeros(3)  # in eta, z, lambda, beside what the shards need
        self.crew = Crew(min(n_threads, len(plan.slices)))
        kind, self.counting = kinds(plan.device)
        self.shards = [
            kind(*source.read(docs), docs.start, plan.n_words, plan.n_topics, plan.response) for docs in plan.slices
        ]
        width = plan.n_topics + plan.n_covariates
        self.sums = [no_statistics(width, plan.n_columns) for _ in plan.groups]  # used again: memory costs time, too

    def start(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution, and count."""
        self.ask("start", make_key(key, START))
        self.count()

    def count(self) -> None:
        """Count what the shards have."""
        self.counts = self.counting(self.plan, self.shards, self.crew)

    def ask(self, verb: str, *data: Any) -> list:
        """What every shard answers, in the shards' order."""
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
        sweep: Verb = ("sweep", eta, topics, make_key(key, SWEEP), keep, PARTS * self.crew.n_threads)
        statistics = None
        if response is not None and len(self.sums) == len(self.shards):
            statistics, moves = self.sum_up([sweep, ("augment", response, make_key(key, LAMBDA))])
        else:
            moves = self.ask(*sweep)
        self.counts.follow(moves, keep)
        return statistics if statistics or not response else self.augment(response, key)

    def augment(self, response: Response, key: np.uint64) -> Statistics:
        """Draw lam, and sum up what the next draw of eta needs to know."""
        return self.sum_up([("augment", response, make_key(key, LAMBDA))])[0]

    def statistics(self) -> Statistics:
        """What the next draw of eta needs to know."""
        return self.sum_up([])[0]

    def sum_up(self, verbs: list[Verb]) -> tuple[Statistics, list]:
        """The statistics of all documents after some verbs, and what the shards answered to the first of these.

        Statistics are summed inside a group of shards one after the other, then group after group.
        """
        answers: list[Any] = [None] * len(self.shards)

        def add_up(i: int) -> None:
            for array in self.sums[i]:
                array[:] = 0.0
            places = range(len(self.shards))[self.plan.groups[i]]
            for place in places:
                told = [getattr(self.shards[place], verb)(*data) for verb, *data in verbs]
                answers[place] = told[0] if told else None
            for place in places:
                self.shards[place].add_statistics(self.sums[i])

        self.crew.over(range(len(self.sums)), add_up)
        first, *others = self.sums
        total = Statistics(np.empty_like(first.precision), first.shift.copy())
        edges = np.linspace(0, len(total.precision), self.n_parts(total.precision.size) + 1).astype(int)

        def add(rows: tuple[int, int]) -> None:
            part = total.precision[slice(*rows)]
            part[:] = first.precision[slice(*rows)]
            for other in others:
                part += other.precision[slice(*rows)]

        self.crew.over(itertools.pairwise(edges), add)
        for other in others:
            total.shift[:] += other.shift
        return total, answers

    def n_parts(self, size: int) -> int:
        """Into how many parts a sum of so many numbers is worth being cut."""
        return min(self.crew.n_threads, 1 + size // PART)

    def leave_out(self, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """Every document as if it were new, to topics of the kept draws, learned without it."""
        self.ask("leave_out", self.counts.draws(), priors, n_sweeps, key)

    def timings(self) -> np.ndarray:
        """Seconds of all threads in eta, z and lambda so far."""
        return self.seconds + self.total("timings")

    def state(self) -> dict[str, np.ndarray]:
        """The state of every shard, by its number."""
        states = enumerate(self.ask("state"))
        return {f"{i}/{name}": array for i, state in states for name, array in state.items()}

    def restore(self, state: dict[str, np.ndarray], response: Response, eta: np.ndarray) -> None:
        """Let every shard be where it was, and count."""
        for i, shard in enumerate(self.shards):
            own = {name.partition("/")[2]: array for name, array in state.items() if name.startswith(f"{i}/")}
            shard.restore(own, response, eta)
        self.count()

    def close(self) -> None:
        """Give threads and documents back."""
        self.crew.close()
        self.shards, self.sums = [], []
