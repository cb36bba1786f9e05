"""An engine on several machines: the shards are held by workers of a Ray cluster. `sampling.ray` starts the workers.

A worker is a process with threads, one for each machine. It holds its documents and the counts of all documents. After
a sweep the workers exchange among themselves how the counts changed, and add up their statistics: see
`sampling.exchange`. The driver gets the sums. It calls the first worker of each row of the grid, and this one calls the
others of its row. The draws are those of threads in one process, bit for bit.
"""

import itertools
import os
import time
import uuid
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from supertopic.corpus.source import Corpus, Source
from supertopic.model.responses import Response
from supertopic.model.state import Priors, Statistics
from supertopic.sampling.engine import CountsLike, ShardFiles, ShardSum, ShardSums, WorkerLost
from supertopic.sampling.exchange import Grid, Post
from supertopic.sampling.new_documents import FrozenTopics
from supertopic.sampling.plan import Plan
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.replica import Replica, join_sums
from supertopic.sampling.threads import PARTS, Sums

FIRST, LEAST, TIMES = 600.0, 60.0, 30.0  # seconds for a first answer, for others, and times what the longest took
# of a worker: methods that run beside the one that works, each kind in a thread of its own
GROUPS: dict[str, Any] = {"concurrency_groups": {"beside": 1, "post": 1, "lead": 1}}
READ = {name for name, member in vars(CountsLike).items() if isinstance(member, property)}
CHANGE = {"keep", "restore"}  # methods of the counts that every worker has to run
Ends = tuple[int, int]  # the first document of a part, and the one after its last
Handle: TypeAlias = Any  # of a worker; Ray's handles and references to results have no useful type
Ref: TypeAlias = Any
Method = Literal[
    "start", "sweep", "augment", "statistics", "products", "noise", "use_matrix", "restart", "reweigh", "regress",
    "linearise", "leave_out", "infer_shares", "left_out_omega", "topic_counts", "save_shards", "restore_shards",
    "shard_sums", "traffic", "use_counts",
]  # fmt: skip


class Place(NamedTuple):
    """Where a worker runs, and what it may use there."""

    node: str
    n_threads: int
    n_gpus: int


class Worker:
    """A process that holds some of the documents of one chain, or of several."""

    def __init__(self) -> None:
        one_blas_thread.__enter__()  # for as long as the process lives
        self.replicas: dict[str, Replica] = {}
        self.workers: dict[str, Sequence[Handle]] = {}  # of each chain, by their numbers

    def begin(
        self, name: str, plan: Plan, source: Source, part: slice, n_threads: int, n_parts: int, number: int,
        workers: Sequence[Handle], pseudo_counts: np.ndarray | None,
    ) -> None:  # fmt: skip
        """Read the documents of some groups of a chain, as one of its workers, which has this number."""

        def carry(to: int, tag: Hashable, message: Any) -> None:
            workers[to].put.remote(name, tag, number, message)

        grid = Grid(len(workers))
        replica = Replica(plan, source, n_threads, part, pseudo_counts, grid, Post(number, carry))
        replica.n_parts = n_parts  # the same for all
        self.replicas[name], self.workers[name] = replica, workers

    def call(self, name: str, method: Method, arguments: tuple[Any, ...]) -> Any:
        """The result of a method, once the counts are up to date."""
        replica = self.replicas[name]
        replica.wait()
        return getattr(replica, method)(*arguments)

    @ray.method(concurrency_group="lead")
    def lead(self, name: str, row: Sequence[int], method: Method, arguments: tuple[Any, ...]) -> list[Any]:
        """The results of a row of workers, of which this is the first."""
        try:
            results: list[Any] = ray.get([self.workers[name][i].call.remote(name, method, arguments) for i in row])
        except RayTaskError as error:
            raise error.cause from None
        return results

    @ray.method(concurrency_group="post")
    def put(self, name: str, tag: Hashable, sender: int, message: Any) -> None:
        """A message of another worker has arrived."""
        if name in self.replicas:  # else the chain has ended
            self.replicas[name].post.put(tag, sender, message)

    @ray.method(concurrency_group="beside")
    def stop_waiting(self, name: str) -> None:
        """Let a call fail that waits for messages, since one that should have sent them is lost."""
        if name in self.replicas:
            self.replicas[name].post.close()

    def end(self, name: str) -> None:
        """Release the documents of a chain."""
        if name in self.replicas:
            self.workers.pop(name)
            self.replicas.pop(name).close()

    @ray.method(concurrency_group="beside")
    def ready(self) -> int:
        """The process id, also while another method runs."""
        return os.getpid()


class RayEngine(ShardSums):
    """An engine whose shards are held by several workers."""

    def __init__(
        self, plan: Plan, source: Corpus, workers: Sequence[tuple[Place, Handle]],
        pseudo_counts: np.ndarray | None = None, sent: dict[Ends | None, Ref] | None = None,
    ):  # fmt: skip
        """`sent` has what is in the object store already: parts of the documents by their ends, pseudo-counts by None.

        It is filled here, so that a second engine of the same chain sends nothing twice.
        """
        self.plan, self.pseudo_counts, self.seconds, self.name = plan, pseudo_counts, np.zeros(3), uuid.uuid4().hex
        self.longest: dict[str, float] = {}  # seconds of each method, except for the first call, which compiles
        workers, sent = workers[: len(plan.groups)], {} if sent is None else sent
        self.workers = [worker for _, worker in workers]
        self.grid = Grid(len(workers))
        n_owners, n_parts = self.grid.n_owners, PARTS * max(place.n_threads for place, _ in workers)
        n_parts = -(-n_parts // n_owners) * n_owners  # equally many of each owner
        if pseudo_counts is not None and None not in sent:
            sent[None] = ray.put(pseudo_counts)
        calls, all_workers, parts = [], ray.put(self.workers), divide(plan, [place for place, _ in workers], self.grid)
        for number, ((place, worker), groups) in enumerate(zip(workers, parts, strict=True)):
            slices = plan.slices[plan.groups[groups.start].start : plan.groups[groups.stop - 1].stop]
            ends = slices[0].start, slices[-1].stop
            if ends not in sent:
                sent[ends] = ray.put(source.part(slice(*ends)))
            about = plan, sent[ends], groups, place.n_threads, n_parts, number, all_workers, sent.get(None)
            calls.append(worker.begin.remote(self.name, *about))
        try:
            self.wait("begin", calls)
        except BaseException:
            self.close()
            raise
        self.counts = cast(CountsLike, RemoteCounts(self))

    def wait(self, method: str, calls: list[Ref]) -> list[Any]:
        """The results of calls; raises WorkerLost where one does not arrive, and the exception of a worker."""
        patience = max(LEAST, TIMES * self.longest[method]) if method in self.longest else FIRST
        began = time.monotonic()
        try:
            results: list[Any] = ray.get(calls, timeout=patience)
        except RayTaskError as error:
            if isinstance(error.cause, RayError):  # of a worker that waited for what a lost one should have sent
                raise WorkerLost(f"A worker is lost: {str(error.cause).splitlines()[0]}") from None
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except GetTimeoutError:
            raise WorkerLost(f"A worker did not answer within {patience:.0f} seconds.") from None
        except RayError as error:
            raise WorkerLost(f"A worker is lost: {str(error).splitlines()[0]}") from None
        seconds = time.monotonic() - began
        self.longest[method] = max(self.longest[method], seconds) if method in self.longest else 0.0
        return results

    def call(self, method: Method, *arguments: Any) -> list[Any]:
        """The results of all workers, through the first of each row: for small arguments and results."""
        rows = self.grid.rows
        calls = [self.workers[row[0]].lead.remote(self.name, row, method, arguments) for row in rows]
        return [result for results in self.wait(method, calls) for result in results]

    def call_each(self, method: Method, *arguments: Any) -> list[Any]:
        """The results of all workers, which get the arguments from the object store: for large ones, sent once."""
        sent = ray.put(arguments)
        return self.wait(method, [worker.call.remote(self.name, method, sent) for worker in self.workers])

    def call_first(self, method: Method, *arguments: Any) -> Any:
        """The result of the first worker alone."""
        return self.wait(method, [self.workers[0].call.remote(self.name, method, arguments)])[0]

    def sum_up(self, method: Method, *arguments: Any) -> Sums:
        """The sum of statistics, or of other arrays, of all workers; the first ones return a piece each."""
        return join_sums(self.call(method, *arguments)[: self.grid.n_shares])

    def start(self, key: np.uint64, phi: np.ndarray | None = None) -> None:
        self.call_each("start", key, phi)

    def sweep(
        self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool, response: Response | None = None
    ) -> Statistics | None:
        if response is None:
            self.call("sweep", eta, priors, key, keep, response)
            return None
        return Statistics(*self.sum_up("sweep", eta, priors, key, keep, response))

    def augment(self, response: Response, key: np.uint64) -> Statistics:
        return Statistics(*self.sum_up("augment", response, key))

    def statistics(self) -> Statistics:
        return Statistics(*self.sum_up("statistics"))

    def products(self, v: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.sum_up("products", v, columns)[0]

    def noise(self, key: np.uint64) -> np.ndarray:
        return self.sum_up("noise", key)[0]

    def use_matrix(self) -> None:
        self.plan = self.plan._replace(quicker_without=False)
        self.call("use_matrix")

    def restart(self, response: Response) -> None:
        self.call("restart", response)

    def regress(self, eta: np.ndarray) -> None:
        self.call("regress", eta)

    def reweigh(self, weight: np.ndarray) -> None:
        self.call_each("reweigh", weight)

    def linearise(self, response: Response) -> None:
        self.call("linearise", response)

    def leave_out(self, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        self.call("leave_out", priors, n_sweeps, key)

    def infer_shares(self, topics: FrozenTopics, n_sweeps: int, key: np.uint64) -> None:
        self.call_each("infer_shares", topics, n_sweeps, key)

    def left_out_omega(self, eta: np.ndarray) -> np.ndarray:
        return np.concatenate(self.call_each("left_out_omega", eta))

    def topic_counts(self) -> np.ndarray:
        return np.concatenate(self.call_each("topic_counts"))

    def save_shards(self, files: ShardFiles) -> None:
        self.call("save_shards", files)

    def restore_shards(self, files: ShardFiles, eta: np.ndarray) -> None:
        self.call("restore_shards", files, eta)

    def shard_sums(self, name: ShardSum, *arguments: object) -> list[np.ndarray]:
        return [value for values in self.call("shard_sums", name, *arguments) for value in values]

    def traffic(self) -> np.ndarray:
        """Seconds of the slowest worker, and bytes of all."""
        parts = np.array(self.call("traffic"))
        return np.array([parts[:, 0].max(), parts[:, 1].sum()])

    def close(self) -> None:
        for worker in self.workers:
            worker.stop_waiting.remote(self.name)
            worker.end.remote(self.name)


def divide(plan: Plan, places: list[Place], grid: Grid) -> list[slice]:
    """The groups of each worker: in proportion to its threads, and at least one."""
    threads = [place.n_threads for place in places]
    rows = cut(
        slice(0, len(plan.groups)), [sum(threads[i] for i in row) for row in grid.rows], list(map(len, grid.rows))
    )
    return [
        part
        for row, groups in zip(grid.rows, rows, strict=True)
        for part in cut(groups, [threads[i] for i in row], [1] * len(row))
    ]


def cut(groups: slice, shares: list[int], least: list[int]) -> list[slice]:
    """Groups in proportion to some shares, so many at least.

    Where there are many, parts begin at multiples of a power of two: groups are added up in pairs, and fewer sums are
    left that wait for a neighbour of another part. The power is a sixteenth of the mean part at most.
    """
    first, last = groups.start, groups.stop
    step = 1 << max((last - first) // (16 * len(shares)), 1).bit_length() - 1
    parts, needed = np.cumsum([0, *shares]), np.cumsum([0, *least])
    edges = np.rint((first + parts / parts[-1] * (last - first)) / step).astype(int) * step
    edges[0], edges[-1] = first, last
    edges = np.minimum(np.maximum(edges, first + needed), last - needed[-1] + needed).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


class RemoteCounts:
    """The members of `CountsLike`. Every worker has the counts: all of them change theirs, the first one is read."""

    def __init__(self, engine: RayEngine):
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        if name not in vars(CountsLike):
            raise AttributeError(f"The counts of a RayEngine have no {name}.")
        return self.ask(name) if name in READ else partial(self.ask, name)

    def ask(self, name: str, *arguments: Any) -> Any:
        """An attribute of the counts, or the result of a method."""
        if name in CHANGE:
            return self.engine.call_each("use_counts", name, *arguments)[0]
        return self.engine.call_first("use_counts", name, *arguments)
