"""Who runs the shards. An engine asks all of them for something; what they say is added up in their order."""

from typing import Any

import numpy as np

from supertopic.kernels.draws import make_key
from supertopic.sampling.crew import Crew
from supertopic.sampling.plan import START, SWEEP, TOPICS, Plan, Source
from supertopic.sampling.responses import Response
from supertopic.sampling.shard import Shard
from supertopic.sampling.state import Priors, Statistics, no_statistics
from supertopic.sampling.topics import Counts


class Threads:
    """Threads of one address space: its shards, and one array of counts that follows their moves."""

    def __init__(self, plan: Plan, source: Source, n_threads: int):
        self.plan = plan
        self.crew = Crew(min(n_threads, len(plan.slices)))
        self.shards = [
            Shard(*source.read(docs), docs.start, plan.n_words, plan.n_topics, plan.response) for docs in plan.slices
        ]

    def start(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution, and count."""
        self.ask("start", make_key(key, START))
        self.count()

    def count(self) -> None:
        """Count what the shards have."""
        self.counts = Counts(self.plan, self.shards, self.crew)

    def ask(self, verb: str, *data: Any) -> list:
        """What every shard answers, in the shards' order."""
        return self.crew.over(self.shards, lambda shard: getattr(shard, verb)(*data))

    def total(self, verb: str, *data: Any) -> np.ndarray:
        """The sum of what the shards answer, added in their order."""
        return np.sum(self.ask(verb, *data), axis=0)

    def sweep(self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool) -> None:
        """Sweep all z given eta and topics from the counts, which then follow; `keep` adds them to the kept ones."""
        topics = self.counts.topics(priors, make_key(key, TOPICS))
        self.counts.follow(self.total("sweep", eta, topics, make_key(key, SWEEP), keep, self.crew.n_threads))
        if keep:
            self.counts.keep()

    def augment(self, response: Response, key: np.uint64) -> Statistics:
        """Draw lam, and sum up what the next draw of eta needs to know."""
        return self.statistics(response, key)

    def statistics(self, *augment: Any) -> Statistics:
        """The sum over all documents: inside a group of shards one after the other, then group after group."""
        width = self.plan.n_topics + self.plan.n_covariates

        def add_up(group: slice) -> Statistics:
            total = no_statistics(width, self.plan.n_columns)
            for shard in self.shards[group]:
                if augment:
                    shard.augment(*augment)
                shard.add_statistics(total)
            return total

        sums = self.crew.over(self.plan.groups, add_up)
        total, others = sums[0], sums[1:]
        edges = np.linspace(0, len(total.precision), self.crew.n_threads + 1).astype(int)

        def add(part: int) -> None:
            rows = slice(edges[part], edges[part + 1])
            for other in others:
                total.precision[rows] += other.precision[rows]

        self.crew.over(range(self.crew.n_threads), add)
        for other in others:
            total.shift[:] += other.shift
        return total

    def leave_out(self, last: bool, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """Every document as if it were new, to topics of the kept draws or of the last one, learned without it."""
        self.ask("leave_out", self.counts.draws(last), priors, n_sweeps, key)

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
        self.shards = []
