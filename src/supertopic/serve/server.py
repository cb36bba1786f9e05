"""How a server starts: where it listens and who may ask, in one process or in several that share a model file."""

import ipaddress
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path

from supertopic.serve.examples import Example
from supertopic.serve.limits import Limits
from supertopic.serve.metrics import Metrics
from supertopic.serve.reload import ModelFile

TOKEN = "SUPERTOPIC_TOKEN"
LEAST_TOKEN = 16  # letters
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
AGAIN, LOOK = 1.0, 0.1  # seconds after which a process that died is started again, and between two looks
log = logging.getLogger("supertopic.serve")


@dataclass(frozen=True)
class Settings:
    """Everything that a server is started with."""

    path: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    reload: bool = True
    every: float = 1.0  # seconds between two looks at the model file
    n_threads: int = 1
    workers: int = 1
    mmap: bool = False
    names: tuple[str, ...] = ()  # further names of this server
    documents: tuple[Example, ...] = ()  # that are shown beside a text which is like them
    limits: Limits = field(default_factory=Limits)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(host: str, no_token: bool) -> str | None:
    """The token of the environment; other machines are not let in without one unless that is wanted."""
    token = os.environ.get(TOKEN, "").strip()
    if token and no_token:
        raise ValueError(f"--no-token is given, but {TOKEN} is set; leave one of them out.")
    if token and (len(token) < LEAST_TOKEN or not token.isascii()):
        raise ValueError(f"{TOKEN} must have {LEAST_TOKEN} ASCII letters or more, got {len(token)}.")
    if not token and not no_token and not is_loopback(host):
        raise ValueError(
            f"--host {host} accepts requests of other machines: set the environment variable {TOKEN} to a secret that "
            f"they send, "
            "or use --no-token to accept requests from anybody."
        )
    return token or None


def host_names(settings: Settings) -> frozenset[str] | None:
    """The names by which this server may be called; None: any, where a token or the network decides."""
    if not is_loopback(settings.host) and not settings.names:
        return None
    own = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
    return LOOPBACK_NAMES | {own.lower()} | {name.lower() for name in settings.names}


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free."""
    address, family = host.strip("[]"), socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio asks for this to send at once
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address, port))
    except OSError as error:
        found.close()
        raise OSError(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. Give another --port."
        ) from error
    found.listen(2048)
    return found


def start_log() -> None:
    """Lines on the standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    log.setLevel(logging.INFO)


def serve(settings: Settings, started: Callable[[str], None] = lambda address: None) -> None:
    """Serve until SIGTERM or SIGINT; `started` is called with the address once the model is loaded."""
    start_log()
    with listen(settings.host, settings.port) as listening:
        host = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
        address = f"http://{host}:{listening.getsockname()[1]}/"
        if settings.workers > 1:
            Processes(settings, listening).run(lambda: started(address))
        else:
            serve_here(settings, listening, lambda: started(address))


def serve_here(settings: Settings, listening: socket.socket, started: Callable[[], None]) -> None:
    """Load the model and answer, in this process."""
    from supertopic.serve.http import Service, make_app, run

    metrics = Metrics()
    model = ModelFile(settings.path, settings.mmap, metrics.loaded, settings.documents)
    service = Service(model, settings.limits, metrics, settings.token, settings.n_threads)
    if settings.reload:
        model.watch(settings.every)
    started()
    run(make_app(service, host_names(settings)), listening, settings.limits)


def worker(settings: Settings, listening: socket.socket, ready: Event) -> None:
    """One of several processes."""
    start_log()
    serve_here(settings, listening, ready.set)


class Processes:
    """Some processes that accept from the same socket; one that dies is started again."""

    def __init__(self, settings: Settings, listening: socket.socket):
        self.settings, self.listening, self.stopping = settings, listening, False
        self.context = multiprocessing.get_context("spawn")
        self.all: list[tuple[BaseProcess, Event]] = []

    def start(self) -> tuple[BaseProcess, Event]:
        ready = self.context.Event()
        process = self.context.Process(target=worker, args=(self.settings, self.listening, ready))
        process.start()
        return process, ready

    def stop(self, number: int, frame: object) -> None:
        self.stopping = True

    def run(self, started: Callable[[], None]) -> None:
        """Start all, tell when they are ready, and look after them until a signal comes."""
        before = {number: signal.signal(number, self.stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self.all = [self.start() for _ in range(self.settings.workers)]
            while not self.stopping and not all(ready.is_set() for _, ready in self.all):
                if any(not process.is_alive() for process, _ in self.all):
                    raise RuntimeError(f"A process could not start with {self.settings.path}; its message is above.")
                time.sleep(LOOK)
            if not self.stopping:
                started()
            while not self.stopping:
                time.sleep(LOOK)
                self.restart()
        finally:
            for process, _ in self.all:
                process.terminate()  # SIGTERM: what it has been asked is answered
            for process, _ in self.all:
                process.join(self.settings.limits.seconds + 5.0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def restart(self) -> None:
        """Start those again that have died."""
        for i, (process, _) in enumerate(self.all):
            if not process.is_alive() and not self.stopping:
                log.error("A process ended with code %s; another one is started.", process.exitcode)
                time.sleep(AGAIN)
                self.all[i] = self.start()
