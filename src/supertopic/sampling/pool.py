"""Pools of threads, interrupts, and a limit of one BLAS thread while a chain runs."""

import itertools
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

S = TypeVar("S")
T = TypeVar("T")
LISTEN = 0.2  # seconds after which a waiting thread checks for signals


class Pool:
    """A fixed number of threads, one of which is the caller's own."""

    def __init__(self, n_threads: int):
        self.n_threads = max(1, n_threads)
        self.pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def map(self, function: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """function(item) for every item, the results in order. Each thread takes the next item when it is free."""
        items = list(items)
        if self.pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: dict[int, T] = {}
        turn, stopped = itertools.count(), threading.Event()

        def work() -> None:
            try:
                while not stopped.is_set() and (i := next(turn)) < len(items):
                    results[i] = function(items[i])
            except BaseException:
                stopped.set()
                raise

        others = [self.pool.submit(work) for _ in range(min(self.n_threads, len(items)) - 1)]
        try:
            work()
        finally:
            for other in others:
                other.exception()  # wait
        for other in others:
            other.result()
        return [results[i] for i in range(len(items))]

    def close(self) -> None:
        """End the threads."""
        if self.pool:
            self.pool.shutdown(cancel_futures=True)


def each(function: Callable[[int], T], n: int, n_threads: int, stop: threading.Event) -> list[T]:
    """function(0), function(1), ... on some threads, the results in order. If one fails, `stop` is set."""
    if min(n_threads, n) <= 1:
        return [function(index) for index in range(n)]
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(function, index) for index in range(n)]
        waiting = set(futures)
        try:
            while waiting:  # on Windows a signal does not end a wait: short waits let Ctrl-C through
                done, waiting = wait(waiting, timeout=LISTEN, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, for work that checks it now and then; a second Ctrl-C stops at once."""
    stop = threading.Event()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) in (None, signal.SIG_IGN):
        # only the main thread handles signals; a program that embeds Python, or a shell that runs us in the
        # background, may have reserved this one
        yield stop
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


class OneBlasThread:
    """A context in which BLAS has one thread: more would compete with ours and change the bits of sums.

    The limit holds for the whole process: the first thread that enters sets it, and the last one that leaves lifts it.
    OpenBLAS may ignore a thread other than the one that set the limit; therefore the limits before the very first entry
    are the ones that are restored. Finding the libraries takes milliseconds, so that it is done once.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.libraries: ThreadpoolController | None = None
        self.first: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.libraries = self.libraries or ThreadpoolController()
                limits = self.libraries.limit(limits=1, user_api="blas")
                self.first = self.first or limits
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.first is not None:
                self.first.restore_original_limits()


one_blas_thread = OneBlasThread()
