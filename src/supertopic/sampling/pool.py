"""Threads that share work, and a BLAS that stays out of their way."""

import itertools
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

S = TypeVar("S")
T = TypeVar("T")
LISTEN = 0.2  # seconds after which a thread that waits for others looks whether there is a signal


class Crew:
    """Some threads, the caller's own among them."""

    def __init__(self, n_threads: int):
        self.n_threads = max(1, n_threads)
        self.pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def over(self, things: Iterable[S], verb: Callable[[S], T]) -> list[T]:
        """verb(thing) for every thing, the answers in order; who is free takes the next one."""
        things = list(things)
        if self.pool is None or len(things) < 2:
            return [verb(thing) for thing in things]
        answers: list[Any] = [None] * len(things)
        turn, stopped = itertools.count(), threading.Event()

        def work() -> None:
            try:
                while not stopped.is_set() and (i := next(turn)) < len(things):
                    answers[i] = verb(things[i])
            except BaseException:
                stopped.set()
                raise

        others = [self.pool.submit(work) for _ in range(min(self.n_threads, len(things)) - 1)]
        try:
            work()
        finally:
            for other in others:
                other.exception()  # wait
        for other in others:
            other.result()
        return answers

    def close(self) -> None:
        """Give the threads back."""
        if self.pool:
            self.pool.shutdown(cancel_futures=True)


def each(verb: Callable[[int], T], n: int, n_threads: int, stop: threading.Event) -> list[T]:
    """verb(0), verb(1), ... on some threads, the answers in order. If one fails, `stop` is set for the others."""
    if n_threads == 1:
        return [verb(index) for index in range(n)]
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(verb, index) for index in range(n)]
        waiting = set(futures)
        try:
            while waiting:  # no signal ends a wait on Windows: it has to end by itself for Ctrl-C to be heard
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
    """An event that the first Ctrl-C sets, for work that looks at it now and then; a second one stops at once."""
    stop = threading.Event()
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not None
    if not ours:  # signals are the main thread's, or those of a program that Python is embedded in
        yield stop
        return

    def interrupt(number, frame):
        stop.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


class OneBlasThread:
    """While anyone is inside, BLAS has one thread: more would fight ours and change the bits of sums.

    The limit is the whole process's: the first who enters, in whatever thread, sets it, and the last who leaves lifts
    it. OpenBLAS may ignore a thread other than the one that set it; what is restored is therefore always what was
    there at the very first time.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.first: Any = None

    def __enter__(self):
        with self.lock:
            if self.inside == 0:
                limits = threadpool_limits(1, user_api="blas")
                self.first = self.first or limits
            self.inside += 1

    def __exit__(self, *error):
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.first.restore_original_limits()


one_blas_thread = OneBlasThread()
