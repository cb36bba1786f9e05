"""The workers of a Ray cluster: they are started, found again when a machine is lost, and run the engines of chains."""

import logging
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import ray
from ray._private import ray_constants
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from supertopic.corpus.source import Corpus
from supertopic.sampling.engine import Engine, WorkerLost
from supertopic.sampling.plan import Plan
from supertopic.sampling.ray_engine import FIRST, GROUPS, LEAST, Ends, Handle, Place, RayEngine, Ref, Worker

logger = logging.getLogger("supertopic")

# seconds from a loss of workers to a later one after which a chain gives up; seconds of work that start this count anew
GIVE_UP, SOME = 180.0, 5.0
T = TypeVar("T")


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a cluster: the current one, the one at the address or RAY_ADDRESS, or a new local one."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if host and port.isdigit():  # Ray itself would try for a minute
            socket.create_connection((host, int(port)), timeout=10.0).close()
        if address:
            ray.init(address, **quiet)
        else:
            start_here(quiet)
    except (OSError, RayError, RuntimeError, ValueError) as error:
        raise ConnectionError(
            f"There is no Ray cluster at {address!r} ({error}). engine='ray' without an address, and without "
            "RAY_ADDRESS, starts one on this machine."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def start_here(options: dict[str, Any]) -> None:
    """Start a cluster of this machine that listens on the loopback alone, as Ray itself has it on Windows and macOS."""
    usual, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        ray.init("local", include_dashboard=False, **options)
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = usual
    address = ray.util.get_node_ip_address()
    if not ip_address(address).is_loopback:
        logger.warning("This version of Ray listens on %s, which others may reach: see docs/cluster.md.", address)


@contextmanager
def readers(address: str) -> Iterator[Callable[[Callable[..., T], list[tuple[Any, ...]]], list[T]]]:
    """A function that maps over arguments on all cores of a cluster; the work of a lost machine is done by others."""
    with connected(address):

        def each(function: Callable[..., T], work: list[tuple[Any, ...]]) -> list[T]:
            task = ray.remote(function)
            try:
                results: list[T] = ray.get([task.remote(*arguments) for arguments in work])
            except RayTaskError as error:
                raise error.cause if isinstance(error.cause, Exception) else error from None
            return results

        yield each


def kill_process(process: int) -> None:
    """Kill a process of this machine if it is a Ray worker; without /proc that cannot be known, and nothing is done."""
    try:
        if b"ray::" in Path(f"/proc/{process}/cmdline").read_bytes():
            os.kill(process, signal.SIGKILL)
    except OSError:
        pass


class RayEnginePool:
    """The workers of a cluster, or of this machine where there is no address.

    Chains are spread first: several workers share one chain only if there are more workers than chains.
    """

    def __init__(self, address: str, n_threads: int | None, device: str, n_chains: int):
        self.address, self.device = address, device
        self.n_threads = None if n_threads is None or n_threads < 1 else n_threads
        self.n_chains, self.lock = n_chains, threading.Lock()
        self.workers: list[tuple[Place, Handle]] = []
        self.processes: dict[int, int] = {}  # the process id of each worker

    def __enter__(self) -> "RayEnginePool":
        self.inside = ExitStack()
        self.inside.enter_context(connected(self.address))
        try:
            self.replace_lost()
        except BaseException:
            self.__exit__()
            raise
        self.at_once = min(self.n_chains, len(self.workers))
        self.turns: queue.SimpleQueue[int] = queue.SimpleQueue()  # each turn has every at_once-th worker
        for turn in range(self.at_once):
            self.turns.put(turn)
        return self

    def __exit__(self, *error: object) -> None:
        for _, worker in self.workers:
            ray.kill(worker)
        self.inside.close()

    @property
    def loses_workers(self) -> bool:
        here = ray.get_runtime_context().get_node_id()
        if all(place.node == here for place, _ in self.workers):
            return True
        logger.warning(
            "A chain that loses a machine starts again, unless there is a checkpoint in a folder that all machines can "
            "read."
        )
        return False

    @property
    def title(self) -> str:
        n = len(self.workers)
        return f", {n} worker{'s' * (n > 1)} of {sum(place.n_threads for place, _ in self.workers)} threads"

    def run(self, plan: Plan, source: Corpus, pseudo_counts: np.ndarray | None, go: Callable[[Engine], T]) -> T:
        turn, since, sent = self.turns.get(), None, dict[Ends | None, Ref]()
        try:
            while True:
                engine, began = None, None
                try:
                    engine = RayEngine(plan, source, self.workers[turn :: self.at_once], pseudo_counts, sent)
                    began = time.monotonic()
                    return go(engine)
                except WorkerLost as error:
                    if engine:
                        engine.close()
                    now = time.monotonic()
                    if since is None or (began is not None and now - began > SOME):  # the chain has made progress
                        since = now
                    if now - since > GIVE_UP:
                        raise
                    logger.warning("%s The chain continues from its last checkpoint.", error)
                self.replace_lost()
        finally:
            self.turns.put(turn)

    def replace_lost(self) -> None:
        """Start workers in place of lost ones; a cluster needs a while to notice which of its machines are gone."""
        began = time.monotonic()
        while True:
            try:
                return self.gather()
            except (WorkerLost, RayError):
                if time.monotonic() - began > GIVE_UP:
                    raise
                time.sleep(1.0)

    def places(self) -> list[Place]:
        """One place for each machine, for each n_threads of its cores, or for each of its GPUs."""
        found = []
        for node in ray.nodes():
            resources = node["Resources"]
            cores, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
            if not node["Alive"] or not cores or (self.device == "cuda" and not gpus):
                continue
            n_threads = min(self.n_threads or cores, cores)
            n = gpus if self.device == "cuda" else cores // n_threads
            found += [Place(node["NodeID"], cores // n if n > 1 else n_threads, int(self.device == "cuda"))] * n
        if not found:
            raise WorkerLost(f"The cluster has no machine with {'a GPU' if self.device == 'cuda' else 'free cores'}.")
        return found

    def gather(self) -> None:
        """Keep the workers that answer, and start others in place of those that do not."""
        with self.lock:
            alive, missing = [], self.places()
            for place, worker in self.workers:
                if place in missing and self.answers(worker, 5.0):
                    missing.remove(place)
                    alive.append((place, worker))
                else:
                    self.stop_worker(place, worker)
            self.workers = alive + [(place, self.start_worker(place)) for place in missing]
            ready = [worker.ready.remote() for _, worker in self.workers]
            if len(ray.wait(ready, num_returns=len(ready), timeout=LEAST / 2)[1]):
                logger.warning("Waiting for workers: the cluster's cores are busy, or its machines start slowly.")
            silent = [place for place, worker in self.workers if not self.answers(worker, FIRST)]
            if silent:
                raise WorkerLost(f"{len(silent)} of {len(self.workers)} workers do not start.")

    def answers(self, worker: Handle, patience: float) -> bool:
        """Whether a worker answers in time."""
        try:
            self.processes[id(worker)] = ray.get(worker.ready.remote(), timeout=patience)
        except RayError:
            return False
        return True

    def stop_worker(self, place: Place, worker: Handle) -> None:
        """End a worker. One that hangs does not react to Ray: its process is killed on its own machine."""
        ray.kill(worker)
        process, where = self.processes.pop(id(worker), None), NodeAffinitySchedulingStrategy(place.node, soft=False)
        if process:
            try:
                task = ray.remote(num_cpus=0)(kill_process).options(scheduling_strategy=where, max_retries=0)
                ray.get(task.remote(process), timeout=5.0)
            except RayError:
                logger.debug("The machine of process %d is gone.", process)

    def start_worker(self, place: Place) -> Handle:
        """Start a worker at a place."""
        where = NodeAffinitySchedulingStrategy(place.node, soft=False)
        options = {"num_cpus": place.n_threads, "num_gpus": place.n_gpus, "scheduling_strategy": where}
        return ray.remote(**GROUPS)(Worker).options(**options).remote()
