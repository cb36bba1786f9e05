"""A chain on several machines: an engine whose shards are with workers of a Ray cluster. Only this file imports Ray.

A worker is a process with threads, one for each machine. It has its documents and all counts; after a sweep the workers
tell each other which tokens moved, and the driver only gets sums. What comes out is, bit for bit, what threads of one
process would give. Workers that are lost are not mourned: the chain goes on from its last checkpoint with others.
"""

import logging
import os
import queue
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from supertopic.corpus.source import Corpus, Source
from supertopic.model.responses import Response
from supertopic.model.state import Kept, Priors, Statistics
from supertopic.sampling.plan import Plan
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.threads import PARTS, Lost, Member, Pairs

logger = logging.getLogger("supertopic")

FIRST, LEAST, TIMES = 600.0, 60.0, 30.0  # seconds for a first answer, for others, and times what the longest took
GIVE_UP, SOME = 180.0, 5.0  # seconds in which workers are lost again and again, before they have worked for some
T = TypeVar("T")
Ends = tuple[int, int]


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a cluster; where there is none yet, one to RAY_ADDRESS, or to one that this machine starts."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if host and port.isdigit():  # Ray itself would try for a minute
            socket.create_connection((host, int(port)), timeout=10.0).close()
        ray.init(address or "local", **quiet | ({} if address else {"include_dashboard": False}))
    except (OSError, RayError, RuntimeError, ValueError) as error:
        raise ConnectionError(
            f"There is no Ray cluster at {address!r} ({error}). engine='ray' without an address, and without "
            "RAY_ADDRESS, starts one on this machine."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def readers(address: str) -> Iterator[Callable[[Callable, list[tuple]], list]]:
    """Tasks on any core of a cluster; where a machine is lost, others do its work."""
    with connected(address):

        def each(verb: Callable, work: list[tuple]) -> list:
            task = ray.remote(verb)
            try:
                return ray.get([task.remote(*arguments) for arguments in work])
            except RayTaskError as error:
                raise error.cause if isinstance(error.cause, Exception) else error from None

        yield each


class Worker:
    """A process that has some of the documents of one chain, or of several."""

    def __init__(self) -> None:
        one_blas_thread.__enter__()  # for as long as the process lives
        self.engines: dict[str, Member] = {}

    def begin(self, name: str, plan: Plan, source: Source, part: slice, n_threads: int, n_parts: int) -> None:
        """Read the documents of some groups for a chain."""
        self.engines[name] = Member(plan, source, n_threads, part)
        self.engines[name].n_parts = n_parts

    def do(self, name: str, verb: str, data: tuple, *told: list) -> tuple[Any, Any]:
        """What a verb of an engine answers, and what the others need to know; before it, hear what they told."""
        engine = self.engines[name]
        if engine.waiting:
            engine.hear([move for moves in told for move in moves])
        answer = getattr(engine, verb)(*data)
        return answer, engine.tell()

    def end(self, name: str) -> None:
        """Give a chain's documents back."""
        if name in self.engines:
            self.engines.pop(name).close()

    @ray.method(concurrency_group="beside")
    def ready(self) -> int:
        """The number of its process, also while it works on something else."""
        return os.getpid()


def kill_worker(process: int) -> None:
    """Kill a process of this machine, if it is a worker; where there is no /proc, nobody can tell, and it is let be."""
    try:
        if b"ray::" in Path(f"/proc/{process}/cmdline").read_bytes():
            os.kill(process, signal.SIGKILL)
    except OSError:
        pass


class Place(NamedTuple):
    """Where a worker is, or will be again."""

    node: str
    n_threads: int
    n_cards: int


class Crowd:
    """The workers of a cluster, which is this machine alone if no address is known.

    Chains are spread first: several workers have one chain only if there are more workers than chains.
    """

    def __init__(self, address: str, n_threads: int | None, device: str, n_chains: int):
        self.address, self.device = address, device
        self.n_threads = None if n_threads is None or n_threads < 1 else n_threads
        self.n_chains, self.lock = n_chains, threading.Lock()
        self.workers: list[tuple[Place, Any]] = []
        self.processes: dict[int, int] = {}  # the number of each worker's process

    def __enter__(self) -> "Crowd":
        self.inside = ExitStack()
        self.inside.enter_context(connected(self.address))
        try:
            self.mend()
        except BaseException:
            self.__exit__()
            raise
        self.at_once = min(self.n_chains, len(self.workers))
        self.teams: queue.SimpleQueue[int] = queue.SimpleQueue()
        for team in range(self.at_once):
            self.teams.put(team)
        return self

    def __exit__(self, *error) -> None:
        for _, worker in self.workers:
            ray.kill(worker)
        self.inside.close()

    @property
    def mortal(self) -> bool:
        """Whether workers, which may be lost, read what is on this machine's disk."""
        here = ray.get_runtime_context().get_node_id()
        if all(place.node == here for place, _ in self.workers):
            return True
        logger.warning("Without a checkpoint in a folder that all machines see, a chain that loses one starts again.")
        return False

    @property
    def title(self) -> str:
        n = len(self.workers)
        return f", {n} worker{'s' * (n > 1)} of {sum(place.n_threads for place, _ in self.workers)} threads"

    def run(self, plan: Plan, source: Corpus, go: Callable[[Any], T]) -> T:
        """What comes out of an engine for this plan; if a worker is lost, it is tried again with another."""
        team, since, sent = self.teams.get(), None, dict[Ends, Any]()
        try:
            while True:
                engine, began = None, None
                try:
                    engine = Cluster(plan, source, self, slice(team, None, self.at_once), sent)
                    began = time.monotonic()
                    return go(engine)
                except Lost as error:
                    if engine:
                        engine.close()
                    now = time.monotonic()
                    if since is None or (began is not None and now - began > SOME):  # it has come further meanwhile
                        since = now
                    if now - since > GIVE_UP:
                        raise
                    logger.warning("%s The chain goes on from its last checkpoint.", error)
                self.mend()
        finally:
            self.teams.put(team)

    def mend(self) -> None:
        """Find other workers for those that are lost; a cluster needs a while to know which of its machines are."""
        began = time.monotonic()
        while True:
            try:
                return self.gather()
            except (Lost, RayError):
                if time.monotonic() - began > GIVE_UP:
                    raise
                time.sleep(1.0)

    def places(self) -> list[Place]:
        """One for each machine that answers, or for each so many of its cores, or for each card."""
        found = []
        for node in ray.nodes():
            resources = node["Resources"]
            cores, cards = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
            if not node["Alive"] or not cores or (self.device == "cuda" and not cards):
                continue
            n_threads = min(self.n_threads or cores, cores)
            n = cards if self.device == "cuda" else cores // n_threads
            found += [Place(node["NodeID"], cores // n if n > 1 else n_threads, int(self.device == "cuda"))] * n
        if not found:
            raise Lost(f"The cluster has no machine with {'a card' if self.device == 'cuda' else 'free cores'}.")
        return found

    def gather(self) -> None:
        """Workers that answer, in place of those that do not."""
        with self.lock:
            kept, missing = [], self.places()
            for place, worker in self.workers:
                if place in missing and self.answers(worker, 5.0):
                    missing.remove(place)
                    kept.append((place, worker))
                else:
                    self.dismiss(place, worker)
            self.workers = kept + [(place, self.hire(place)) for place in missing]
            ready = [worker.ready.remote() for _, worker in self.workers]
            if len(ray.wait(ready, num_returns=len(ready), timeout=LEAST / 2)[1]):
                logger.warning("Waiting for workers: the cluster's cores are busy, or its machines are slow to start.")
            silent = [place for place, worker in self.workers if not self.answers(worker, FIRST)]
            if silent:
                raise Lost(f"{len(silent)} of {len(self.workers)} workers do not start.")

    def answers(self, worker: Any, patience: float) -> bool:
        try:
            self.processes[id(worker)] = ray.get(worker.ready.remote(), timeout=patience)
        except RayError:
            return False
        return True

    def dismiss(self, place: Place, worker: Any) -> None:
        """End a worker; one that hangs does not hear Ray, so that its process has to be killed where it is."""
        ray.kill(worker)
        process, where = self.processes.pop(id(worker), None), NodeAffinitySchedulingStrategy(place.node, soft=False)
        if process:
            try:
                task = ray.remote(num_cpus=0)(kill_worker).options(scheduling_strategy=where, max_retries=0)
                ray.get(task.remote(process), timeout=5.0)
            except RayError:
                logger.debug("Nobody is there to kill process %d.", process)

    def hire(self, place: Place) -> Any:
        where = NodeAffinitySchedulingStrategy(place.node, soft=False)
        options = {"num_cpus": place.n_threads, "num_gpus": place.n_cards, "scheduling_strategy": where}
        groups: dict[str, Any] = {"concurrency_groups": {"beside": 1}}
        return ray.remote(**groups)(Worker).options(**options).remote()


class Cluster:
    """All workers, with the verbs of `Threads`."""

    def __init__(
        self, plan: Plan, source: Corpus, crowd: Crowd, team: slice = slice(None), sent: dict[Ends, Any] | None = None
    ):
        """`sent` are parts of the documents that have been sent already, by their ends."""
        self.plan, self.seconds, self.name = plan, np.zeros(3), uuid.uuid4().hex
        self.longest: dict[str, float] = {}  # seconds that a verb took, the first time apart: that compiles
        workers = crowd.workers[team][: len(plan.groups)]
        threads = np.cumsum([0, *(place.n_threads for place, _ in workers)])
        edges = np.rint(threads / threads[-1] * len(plan.groups)).astype(int)
        edges = np.maximum(edges, np.arange(len(edges)))  # none without work
        edges = np.minimum(edges, len(plan.groups) - len(workers) + np.arange(len(edges)))
        self.workers, sent = [worker for _, worker in workers], {} if sent is None else sent
        self.changes: list[list[Any]] = [[] for _ in workers]  # that each still has to hear
        n_parts = PARTS * max(place.n_threads for place, _ in workers)
        calls = []
        for (place, worker), a, b in zip(workers, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            slices = plan.slices[plan.groups[a].start : plan.groups[b - 1].stop]
            ends = slices[0].start, slices[-1].stop
            docs = sent.get(ends) or sent.setdefault(ends, ray.put(source.part(slice(*ends))))
            calls.append(worker.begin.remote(self.name, plan, docs, slice(a, b), place.n_threads, n_parts))
        try:
            self.wait("begin", calls)
        except BaseException:
            self.close()
            raise
        self.counts = FarCounts(self)

    def wait(self, verb: str, calls: list) -> list:
        """The answers; raises Lost if there is none, and what a worker raised."""
        patience = max(LEAST, TIMES * self.longest[verb]) if verb in self.longest else FIRST
        began = time.monotonic()
        try:
            answers = ray.get(calls, timeout=patience)
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except GetTimeoutError:
            raise Lost(f"A worker did not answer within {patience:.0f} seconds.") from None
        except RayError as error:
            raise Lost(f"A worker is lost: {str(error).splitlines()[0]}") from None
        self.longest[verb] = max(self.longest[verb], time.monotonic() - began) if verb in self.longest else 0.0
        return answers

    def call(self, verb: str, *data: Any, only: int | None = None) -> list:
        """What the workers answer, in their order; what one tells, the others hear before their next verb."""
        asked = range(len(self.workers)) if only is None else [only]
        answers, changes = [], []
        for i in asked:
            told, self.changes[i] = self.changes[i], []
            answer, change = self.workers[i].do.options(num_returns=2).remote(self.name, verb, data, *told)
            answers.append(answer)
            changes.append(change)
        if verb in ("start", "count", "sweep"):
            self.changes = [[change for j, change in enumerate(changes) if j != i] for i in asked]
        return self.wait(verb, answers)

    def ask(self, verb: str | Callable, *data: Any) -> list:
        """What every shard answers, in the shards' order."""
        return [answer for answers in self.call("ask", verb, *data) for answer in answers]

    def total(self, verb: str, *data: Any) -> np.ndarray:
        """The sum of what the shards answer, added in their order."""
        return np.sum(self.ask(verb, *data), axis=0)

    def start(self, key: np.uint64) -> None:
        """Draw every z from the uniform distribution, or from what is believed of topics, and count."""
        self.call("start", key)

    def count(self) -> None:
        """Count what the shards have."""
        self.call("count")

    def sweep(self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool, response: Response | None = None):
        """Sweep all z; where the next response is known already, lam is drawn, too, and its sums come back."""
        return self.add(self.call("sweep", eta, priors, key, keep, response))

    def augment(self, response: Response, key: np.uint64) -> Statistics | None:
        """Draw lam, and sum up what the next draw of eta needs to know."""
        return self.add(self.call("augment", response, key))

    def statistics(self) -> Statistics | None:
        """What the next draw of eta needs to know."""
        return self.add(self.call("statistics"))

    def add(self, parts: list[dict[tuple[int, int], Statistics] | None]) -> Statistics | None:
        """The sum of what the workers have added up."""
        pairs = Pairs(len(self.plan.groups))
        for part in parts:
            if part is None:
                return None
            for place, sums in part.items():
                pairs.take(*place, Statistics(*(array.copy() for array in sums)))  # what Ray hands out is read-only
        return pairs.whole()

    def leave_out(self, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """Every document as if it were new, to topics of the kept draws, learned without it."""
        self.call("leave_out", priors, n_sweeps, key)

    def timings(self) -> np.ndarray:
        """Seconds of all workers in eta, z and lambda so far."""
        return self.seconds + self.total("timings")

    def traffic(self) -> np.ndarray:
        """Seconds of the slowest worker for what the others told, and the bytes of all."""
        told = np.array(self.call("traffic"))
        return np.array([told[:, 0].max(), told[:, 1].sum()])

    def close(self) -> None:
        """Give threads and documents back."""
        for worker in self.workers:
            worker.end.remote(self.name)


class FarCounts:
    """The counts of all documents, as every worker has them: the first one is asked."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    def ask(self, name: str, *data: Any) -> Any:
        return self.cluster.call("counted", name, *data, only=0)[0]

    @property
    def tokens(self) -> np.ndarray:
        return self.ask("tokens")

    @property
    def word_topic(self) -> np.ndarray:
        return self.ask("word_topic")

    @property
    def kept(self) -> np.ndarray:
        return self.ask("kept")

    @property
    def n_draws(self) -> int:
        return self.ask("n_draws")

    @property
    def dense(self) -> int:
        return self.ask("dense")

    def draws(self) -> Kept:
        """The sum over the draws that were kept."""
        return self.ask("draws")

    def keep(self) -> None:
        """Add the counts of this draw to those that are kept."""
        self.cluster.call("counted", "keep")

    def restore(self, kept: np.ndarray, n_draws: int, dense: int) -> None:
        """Take over what was kept."""
        self.cluster.call("counted", "restore", kept, n_draws, dense)

    def log_words(self, beta: float) -> float:
        """log p(w | z, beta), the topics integrated out."""
        return self.ask("log_words", beta)

    def sizes(self) -> np.ndarray:
        """How many (word, topic) have 0, 1, 2, ... tokens."""
        return self.ask("sizes")
