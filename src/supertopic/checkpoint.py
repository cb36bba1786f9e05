"""Checkpoints: the state of all chains of a fit in one file, from which the fit goes on as if nothing had happened."""

import hashlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from supertopic.files import read_file, write_file
from supertopic.run import Job, Run

FORMAT = 1


class Checkpoint:
    """The states of the chains of one fit, written to a file now and then.

    A chain hands in its state between two iterations. What is on disk is always a whole file: the last one that was
    written. If writing fails, the fit goes on and a warning tells so.
    """

    def __init__(self, path: str | os.PathLike, every: float, identity: str):
        self.path, self.every, self.identity = path, every, identity
        self.facts: dict[str, Any] = {}  # what else the fit has to know when it goes on
        self.states: dict[str, dict[str, np.ndarray]] = {}
        self.stopped = threading.Event()  # somebody pressed Ctrl-C
        self.lock = threading.Lock()
        self.kept: dict[int, float] = {}  # when each chain's state was taken last
        if os.path.exists(path):
            header, tensors = read_file(path, "supertopic checkpoint")
            if header.get("checkpoint") != FORMAT:
                raise ValueError(f"{path} is not a checkpoint that this version can read.")
            if header.get("identity") != identity:
                raise ValueError(
                    f"{path} is the checkpoint of another fit: other documents, responses or parameters (all count but "
                    "n_jobs, verbose and n_draws). Give another path, or delete it."
                )
            self.facts = header["facts"]
            for name, array in tensors.items():
                chain, _, part = name.partition("/")
                self.states.setdefault(chain, {})[part] = array
        self.began = time.monotonic()
        self.write()  # notices now what would be noticed in an hour

    def write(self) -> None:
        tensors = {f"{chain}/{part}": array for chain, state in self.states.items() for part, array in state.items()}
        write_file(self.path, {"checkpoint": FORMAT, "identity": self.identity, "facts": self.facts}, tensors)

    def restore(self, run: Run, last: int) -> None:
        """Bring a chain to where it was."""
        if str(run.index) in self.states:
            run.restore(self.states[str(run.index)])
            if run.iteration > last:
                raise ValueError(
                    f"{self.path} already holds {len(run.eta)} draws, more than this fit is to have. "
                    "Raise n_draws, or delete it."
                )

    def keep(self, run: Run, last: int) -> None:
        """Take a chain's state if it is time, and stop it if somebody wants that."""
        stop, done = self.stopped.is_set(), run.iteration == last
        if not (stop or done or time.monotonic() - self.kept.get(run.index, self.began) >= self.every):
            return
        with self.lock:
            self.states[str(run.index)] = run.state_arrays()
            try:
                self.write()
            except OSError as error:
                warnings.warn(
                    f"The checkpoint {self.path} could not be written ({error}); the fit goes on.", stacklevel=2
                )
            self.kept[run.index] = time.monotonic()
        if stop and not done:
            raise KeyboardInterrupt(f"stopped; the same call goes on from the checkpoint {self.path}")

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Let the first Ctrl-C stop the chains between two iterations; a second one stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number, frame):
            self.stopped.set()
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def identify(job: Job, parameters: dict[str, Any]) -> str:
    """A fingerprint of the data and of the parameters that a fit depends on."""
    digest = hashlib.sha256()
    for array in (*job.tokens, *job.target):
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr((job.n_words, job.response, sorted(parameters.items()))).encode())
    return digest.hexdigest()
