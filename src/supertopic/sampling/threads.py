"""Shards in one address space, run by threads: the base of an engine, and of a replica on one of several machines."""

import socket
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from supertopic.corpus.source import Corpus, Source
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Response
from supertopic.model.state import Moves, Priors, Statistics, Topics, fixed_topics, mean_topics
from supertopic.sampling.counts import Counts
from supertopic.sampling.engine import Engine, ShardFiles, ShardSum, ShardSums
from supertopic.sampling.new_documents import FrozenTopics
from supertopic.sampling.plan import LAMBDA, START, SWEEP, TOPICS, Plan
from supertopic.sampling.pool import Pool
from supertopic.sampling.shard import Shard
from supertopic.storage.container import read_file, write_file

if TYPE_CHECKING:
    from supertopic.sampling.cuda import CudaShard

PARTS = 2  # parts of the vocabulary for each thread that counts

T = TypeVar("T")
Sums = tuple[np.ndarray, ...]  # such as Statistics
PartialSums = dict[tuple[int, int], Sums]  # by level and place, as in `PairwiseSum`


def shard_kinds(plan: Plan) -> tuple[Callable[..., Shard], type[Counts]]:
    """What makes shards and counts for a plan's device; nothing of CUDA is imported unless it is used."""
    if plan.device == "cpu":
        return Shard, Counts
    from supertopic.sampling.cuda import CudaShard
    from supertopic.sampling.cuda_counts import CudaCounts

    make_shard = partial(CudaShard, whole=plan.sampler == "drawn")
    return cast(Callable[..., Shard], make_shard), cast(type[Counts], CudaCounts)  # they have the same methods


class PairwiseSum:
    """The sum of the groups' arrays, such as statistics: neighbours first, then these sums, and so on.

    The order of the additions does not depend on who adds what and when, so that the bits do not either. Place j of
    level l is the sum of the groups from j 2**l to (j + 1) 2**l. Few of them are in memory at a time.
    """

    def __init__(self, n_groups: int, spare: list[Sums] | None = None):
        self.n_groups, self.lock = n_groups, threading.Lock()
        self.partial: PartialSums = {}  # that wait for their neighbours
        self.spare = [] if spare is None else spare  # buffers for later sums: allocating them takes time

    def add(self, level: int, place: int, sums: Sums) -> None:
        """Add a partial sum to its neighbour as soon as that is there. The arrays are used from then on."""
        while 1 << level < self.n_groups:
            neighbour = place ^ 1
            if neighbour << level < self.n_groups:
                with self.lock:
                    other = self.partial.pop((level, neighbour), None)
                    if other is None:
                        self.partial[level, place] = sums
                        return
                for array, more in zip(sums, other, strict=True):
                    array += more
                self.spare.append(other)
            level, place = level + 1, place // 2
        self.partial[level, 0] = sums

    def total(self) -> Sums:
        """The sum of all groups."""
        (sums,) = self.partial.values()
        return sums


def add_parts(n_groups: int, parts: Iterable[PartialSums]) -> PartialSums:
    """The sum of partial sums."""
    total = PairwiseSum(n_groups)
    for part in parts:
        for place, sums in part.items():
            total.add(*place, tuple(array.copy() for array in sums))  # arrays from Ray are read-only
    return total.partial


class LocalShards:
    """The shards of all groups of a plan, or of a part of the groups, with counts that follow their moves."""

    sends_moves = False  # whether other machines have to hear of every move

    def __init__(
        self, plan: Plan, source: Source, n_threads: int, part: slice = slice(None),
        pseudo_counts: np.ndarray | None = None,
    ):  # fmt: skip
        self.plan, self.pseudo_counts = plan, pseudo_counts
        self.seconds = np.zeros(3)  # in eta, z, lambda, beside what the shards need
        self.groups = range(len(plan.groups))[part]
        self.first = plan.groups[self.groups[0]].start  # of its shards
        slices = plan.slices[self.first : plan.groups[self.groups[-1]].stop]
        # on a GPU each thread has a stream of its own, and streams do not wait for each other
        self.pool = Pool(min(n_threads, len(slices)) if plan.device == "cpu" else 1)
        make_shard, self.make_counts = shard_kinds(plan)
        self.shards = [
            make_shard(*source.read(docs), docs.start, plan.n_words, plan.n_topics, plan.response) for docs in slices
        ]
        self.spare: list[Sums] = []
        self.n_parts = PARTS * self.pool.n_threads  # into which moves are sorted

    def start(self, key: np.uint64, phi: np.ndarray | None = None) -> None:
        topics = None if phi is None else fixed_topics(phi, self.plan.priors.alpha)
        if topics is None and self.pseudo_counts is not None and self.pseudo_counts.any():
            topics = mean_topics(self.pseudo_counts, 1, self.plan.priors)
        start_key = make_key(key, START)
        self.pool.map(lambda shard: shard.start(start_key, topics), self.shards)
        self.count()

    def count(self) -> None:
        """Count the tokens of all shards."""
        self.counts = self.make_counts(self.plan, self.shards, self.pool, self.pseudo_counts)

    def follow(self, moves: list[Moves], keep: bool) -> None:
        """Update the counts with the moves of all shards."""
        self.counts.follow(moves, keep)

    def sweep_shards(
        self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool, response: Response | None
    ) -> PairwiseSum | None:
        """`Engine.sweep`, its statistics as a pairwise sum.

        Small statistics are summed in the same pass as the sweep, since it costs time when all threads wait for each
        other. Large ones are not: they would be out of the cache by then.
        """
        topics, sweep_key = self.counts.topics(priors, make_key(key, TOPICS)), make_key(key, SWEEP)

        def sweep(shard: Shard) -> Moves:
            moves = shard.sweep(eta, topics, sweep_key, keep, self.n_parts)
            return moves if self.sends_moves else moves.without_long_list()

        if response is None or len(self.plan.groups) < len(self.plan.slices):
            self.follow(self.pool.map(sweep, self.shards), keep)
            return None if response is None else self.augment_shards(response, key)
        lam_key, next_response = make_key(key, LAMBDA), response

        def sweep_and_augment(shard: Shard) -> Moves:
            moves = sweep(shard)
            shard.augment(next_response, lam_key)
            return moves

        sums, moves = self.add_statistics(sweep_and_augment)
        self.follow(moves, keep)
        return sums

    def augment_shards(self, response: Response, key: np.uint64) -> PairwiseSum:
        """`Engine.augment`, its statistics as a pairwise sum."""
        lam_key = make_key(key, LAMBDA)
        return self.add_statistics(lambda shard: shard.augment(response, lam_key))[0]

    def sum_statistics(self) -> PairwiseSum:
        """`Engine.statistics` as a pairwise sum."""
        return self.add_statistics(lambda shard: None)[0]

    def add_statistics(self, step: Callable[[Shard], T]) -> tuple[PairwiseSum, list[T]]:
        """The statistics of all shards after a step of each, and the results of the steps."""
        results = dict[int, T]()

        def add(places: range) -> Sums:
            for place in places:
                results[place] = step(self.shards[place])
            total = self.no_statistics()
            for place in places:
                self.shards[place].add_statistics(total)
            return total

        return self.sum_groups(add, self.spare), [results[place] for place in range(len(self.shards))]

    def sum_groups(self, add: Callable[[range], Sums], spare: list[Sums] | None = None) -> PairwiseSum:
        """The pairwise sum of what `add` returns for the places of the shards of each group."""
        sums = PairwiseSum(len(self.plan.groups), spare)

        def work(i: int) -> None:
            group = self.plan.groups[i]
            sums.add(0, i, add(range(group.start - self.first, group.stop - self.first)))

        self.pool.map(work, self.groups)
        return sums

    def no_statistics(self) -> Statistics:
        """The statistics of no document, in buffers that are used again."""
        try:
            sums = Statistics(*self.spare.pop())
        except IndexError:
            return self.plan.no_statistics()
        for array in sums:
            array[:] = 0.0
        return sums

    def sum_products(self, v: np.ndarray, columns: np.ndarray) -> PairwiseSum:
        """`Engine.products` as a pairwise sum."""

        def add(places: range) -> Sums:
            total = np.zeros(v.shape)
            for place in places:
                self.shards[place].add_products(v, columns, total)
            return (total,)

        return self.sum_groups(add)

    def sum_noise(self, key: np.uint64) -> PairwiseSum:
        """`Engine.noise` as a pairwise sum."""

        def add(places: range) -> Sums:
            total = np.zeros((self.plan.n_topics + self.plan.n_covariates, self.plan.n_columns))
            for place in places:
                self.shards[place].add_noise(key, total)
            return (total,)

        return self.sum_groups(add)

    def use_matrix(self) -> None:
        self.plan, self.spare = self.plan._replace(quicker_without=False), []

    def restart(self, response: Response) -> None:
        self.pool.map(lambda shard: shard.restart(response), self.shards)

    def reweigh(self, weight: np.ndarray) -> None:
        self.pool.map(lambda shard: shard.reweigh(weight[shard.docs]), self.shards)

    def regress(self, eta: np.ndarray) -> None:
        self.pool.map(lambda shard: shard.regress(eta), self.shards)

    def linearise(self, response: Response) -> None:
        self.pool.map(lambda shard: shard.linearise(response), self.shards)

    def leave_out(self, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        summed = self.counts.summed_counts()
        self.pool.map(lambda shard: shard.leave_out(summed, priors, n_sweeps, key), self.shards)

    def infer_shares(self, topics: FrozenTopics, n_sweeps: int, key: np.uint64) -> None:
        here = cast(Topics, topics)  # or those of a GPU, as the shards are
        self.pool.map(lambda shard: shard.infer_shares(here, n_sweeps, key), self.shards)

    def left_out_omega(self, eta: np.ndarray) -> np.ndarray:
        return np.concatenate(self.pool.map(lambda shard: shard.left_out_omega(eta), self.shards))

    def topic_counts(self) -> np.ndarray:
        return np.concatenate(self.pool.map(lambda shard: shard.topic_counts(), self.shards))

    def save_shards(self, files: ShardFiles) -> None:
        def save(shard: Shard) -> None:
            write_file(files.place(shard.first_doc), {"seal": files.seal_of(shard.first_doc)}, shard.state())

        self.pool.map(save, self.shards)

    def restore_shards(self, files: ShardFiles, eta: np.ndarray) -> None:
        if not files.folder.is_dir():
            raise FileNotFoundError(
                f"The checkpoint's folder {files.folder} does not exist on {socket.gethostname()}. With several "
                "machines it must be a folder that all of them can read."
            )

        def restore(shard: Shard) -> None:
            place, seal = files.place(shard.first_doc), files.seal_of(shard.first_doc)
            header, state = read_file(place, "supertopic checkpoint")
            if header.get("seal") != seal:
                raise ValueError(f"{place} is of another fit, another chain or other documents. Delete the checkpoint.")
            shard.restore(state, eta)

        self.pool.map(restore, self.shards)
        self.count()

    def shard_sums(self, name: ShardSum, *arguments: object) -> list[np.ndarray]:
        return self.pool.map(lambda shard: getattr(shard, name)(*arguments), self.shards)

    def close(self) -> None:
        self.pool.close()
        self.shards, self.spare = [], []


class ThreadEngine(LocalShards, ShardSums):
    """An engine of threads: all shards are in this address space."""

    def sweep(
        self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool, response: Response | None = None
    ) -> Statistics | None:
        sums = self.sweep_shards(eta, priors, key, keep, response)
        return None if sums is None else Statistics(*sums.total())

    def augment(self, response: Response, key: np.uint64) -> Statistics:
        return Statistics(*self.augment_shards(response, key).total())

    def statistics(self) -> Statistics:
        return Statistics(*self.sum_statistics().total())

    def products(self, v: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.sum_products(v, columns).total()[0]

    def noise(self, key: np.uint64) -> np.ndarray:
        return self.sum_noise(key).total()[0]

    def solve(
        self, diagonal: np.ndarray, prior: np.ndarray, right: np.ndarray, near: np.ndarray | None = None
    ) -> np.ndarray:
        if self.plan.device == "cpu" or len(self.shards) > 1:
            return super().solve(diagonal, prior, right, near)
        on_device = cast("CudaShard", self.shards[0])
        return on_device.solve(diagonal, prior, right, near)

    def traffic(self) -> np.ndarray:
        return np.zeros(2)  # there is no other machine


class ThreadEnginePool:
    """Threads of this process, which run some chains at the same time."""

    title = ""
    loses_workers = False

    def __init__(self, at_once: int, n_threads: int):
        self.at_once, self.n_threads = at_once, max(1, n_threads)

    def __enter__(self) -> "ThreadEnginePool":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, plan: Plan, source: Corpus, pseudo_counts: np.ndarray | None, go: Callable[[Engine], T]) -> T:
        return go(ThreadEngine(plan, source, self.n_threads, pseudo_counts=pseudo_counts))
