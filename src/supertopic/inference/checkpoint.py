"""Checkpoints: a folder with the state of every chain of a fit, from which the fit continues bit for bit."""

import hashlib
import itertools
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supertopic.corpus.source import Corpus
from supertopic.corpus.writing import lock_folder
from supertopic.model.state import WeightPriors
from supertopic.sampling.chain import Chain
from supertopic.sampling.engine import ShardFiles
from supertopic.sampling.plan import Plan
from supertopic.storage.container import read_file, write_file
from supertopic.warn import warn

FORMAT = 7
WHAT = "supertopic checkpoint"


class Checkpoint:
    """The states of the chains of one fit, each written to its own file now and then, its shards to a folder.

    The state of a chain is taken between two iterations. Whoever holds a shard writes its file; then the file of the
    chain names the folder of the shards, so that the files on disk always belong together. If writing fails, a warning
    is given and the fit continues. The file `fit` identifies the fit. Each file is sealed with the identity of the fit
    and its own place. The folder is locked until `close`; `temporary` says that it is removed at the end of the fit.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, identity: str, temporary: bool = False):
        self.path, self.every, self.identity, self.temporary = Path(path), every, identity, temporary
        self.facts: dict[str, Any] = {}  # that the fit needs beside the chains when it continues
        self.saved: dict[str, float] = {}  # when the state of each chain was saved last
        self.began, self.lock = time.monotonic(), threading.Lock()
        if self.path.is_file():
            raise ValueError(f"{path} is a file, but a checkpoint is a folder. Give another path, or delete it.")
        self.path.mkdir(exist_ok=True)
        try:
            self.handle = lock_folder(self.path)
        except BlockingIOError as error:
            raise BlockingIOError(
                f"Another fit is using the checkpoint {path}. Wait until it has ended, or give another path."
            ) from error
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    def open(self) -> None:
        """Read what identifies the fit, if it is there, and write it; what a killed process has left is removed."""
        for partial_file in self.path.glob(".*.partial"):
            partial_file.unlink(missing_ok=True)
        if any(self.path.iterdir()):
            if not (self.path / "fit").is_file():
                raise ValueError(
                    f"{self.path} is a folder with other files. Give the path of a new one for the checkpoint."
                )
            self.facts = self._read("fit")[0]["facts"]
        self.write_facts()  # a folder that cannot be written to is noticed now

    def close(self) -> None:
        """Let others use the folder."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def write_facts(self) -> None:
        self._write("fit", {"facts": self.facts}, {})

    def holds(self, name: str) -> bool:
        """Whether there is a saved state of a chain by that name."""
        return (self.path / name).is_file()

    def restore(self, chain: Chain, name: str, n_draws: int) -> None:
        """Continue a chain from its saved state, if there is one by that name."""
        if self.holds(name):
            state = self._read(name)[1]
            chain.restore(state, self._shards(name, state["iteration"].item()))
            if len(chain.eta) > n_draws:
                raise ValueError(
                    f"{self.path} already holds {len(chain.eta)} draws, more than this fit needs. Raise n_draws, or "
                    f"delete it."
                )

    def keep(self, chain: Chain, name: str, at_once: bool) -> None:
        """Save the state of a chain if it is time, or at once."""
        if not at_once and time.monotonic() - self.saved.get(name, self.began) < self.every:
            return
        shards = self._shards(name, chain.iteration)
        try:
            shards.folder.mkdir(exist_ok=True)
            chain.engine.save_shards(shards)
            self._write(name, {}, chain.state())
            known = [chain.iteration]
        except OSError as error:
            warn(f"The checkpoint {self.path} could not be written ({error}); the fit continues.")
            known = [self._read(name)[1]["iteration"].item()] if self.holds(name) else []
        for old in self.path.glob(f"{name}-*"):
            if old not in [self.path / f"{name}-{iteration}" for iteration in known]:
                shutil.rmtree(old, ignore_errors=True)
        self.saved[name] = time.monotonic()

    def _shards(self, name: str, iteration: int) -> ShardFiles:
        """The files of the shards of a chain after an iteration."""
        place = f"{name}-{iteration}"
        return ShardFiles(self.path.absolute() / place, f"{self.identity}/{place}")

    def _write(self, name: str, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        seal = {"checkpoint": FORMAT, "identity": self.identity, "place": name}
        with self.lock:
            write_file(self.path / name, header | seal, tensors)

    def _read(self, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, tensors = read_file(self.path / name, WHAT)
        if header.get("checkpoint") != FORMAT:
            raise ValueError(f"{self.path} is not a checkpoint that this version can read.")
        if header.get("identity") != self.identity:
            raise ValueError(
                f"{self.path} is the checkpoint of another fit: other documents, responses or parameters (all count "
                "but n_jobs, engine, verbose, max_seconds and n_draws). Give another path, or delete it."
            )
        if header.get("place") != name:
            raise ValueError(f"{self.path / name} is the file of {header.get('place')!r}; it was renamed or copied.")
        return header, tensors


def stored_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of the fit that a checkpoint belongs to, if the checkpoint exists."""
    file = Path(path) / "fit"
    return read_file(file, WHAT)[0].get("facts", {}).get("seed") if file.is_file() else None


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder that exists while a fit runs.

    Windows does not remove a file that is still mapped, as it may be in the frames of an exception. That exception
    matters to the user, a file that stays does not.
    """
    path = tempfile.mkdtemp(prefix="supertopic-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def identify(
    plan: Plan, source: Corpus, pseudo_counts: Sequence[np.ndarray | None], known: Sequence[WeightPriors | None],
    parameters: dict[str, Any],
) -> str:  # fmt: skip
    """A fingerprint of everything that a fit depends on: documents, the priors of each chain, plan and parameters."""
    digest = hashlib.sha256()
    of_topics = (table for table in pseudo_counts if table is not None)
    of_weights = (array for priors in known if priors for statistics in priors for array in statistics)
    for array in itertools.chain(source.arrays(), of_topics, of_weights):
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update(repr(plain((plan._replace(seed=0), parameters))).encode())
    return digest.hexdigest()


def plain(value: Any) -> Any:
    """A value whose repr holds every bit of it: an array's own repr leaves most of a large one out."""
    if isinstance(value, dict):
        return [(name, plain(value[name])) for name in sorted(value)]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return type(value).__name__, plain(vars(value))
    if hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        return array.shape, array.dtype.str, array.tobytes() if array.dtype != object else plain(array.tolist())
    return value
