"""Checkpoints: a folder with the state of every chain of a fit, from which it goes on as if nothing had happened."""

import hashlib
import itertools
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from supertopic.corpus.source import Corpus
from supertopic.model.responses import Response
from supertopic.model.state import Belief
from supertopic.sampling.chain import Chain
from supertopic.sampling.plan import Plan
from supertopic.storage.container import read_file, write_file
from supertopic.warn import warn

FORMAT = 3
WHAT = "supertopic checkpoint"


class Checkpoint:
    """The states of the chains of one fit, each written to its own file now and then, its shards to a folder.

    A chain hands in its state between two iterations. Whoever has a shard writes it; then the chain's file says that
    all are there. What is on disk are always whole files, the last ones that were written. If writing fails, the fit
    goes on and a warning tells so. The file `fit` says which fit it is.
    """

    def __init__(self, path: str | os.PathLike, every: float, identity: str):
        self.path, self.every, self.identity = Path(path), every, identity
        self.facts: dict[str, Any] = {}  # what else the fit has to know when it goes on
        self.kept: dict[str, float] = {}  # when each chain's state was taken last
        self.began, self.lock = time.monotonic(), threading.Lock()
        if self.path.is_file():
            raise ValueError(f"{path} is a file, but a checkpoint is a folder. Give another path, or delete it.")
        if self.path.is_dir():  # what a process that was killed has not written to its end
            for partial_file in self.path.glob(".*.partial"):
                partial_file.unlink(missing_ok=True)
        if self.path.is_dir() and any(self.path.iterdir()):
            if not (self.path / "fit").is_file():
                raise ValueError(f"{path} is a folder with other files. Give the path of a new one for the checkpoint.")
            self.facts = self._read("fit")[0]["facts"]
        self.path.mkdir(exist_ok=True)
        self.write_facts()  # notices now what would be noticed in an hour

    def write_facts(self) -> None:
        self._write("fit", {"facts": self.facts}, {})

    def restore(self, chain: Chain, name: str, last: int) -> None:
        """Bring a chain to where it was, if it is known here by that name."""
        if (self.path / name).is_file():
            header, state = self._read(name)
            chain.restore(state, partial(read_shard, self.path.absolute() / header["shards"]))
            if chain.iteration > last:
                raise ValueError(
                    f"{self.path} already holds {len(chain.eta)} draws, more than this fit is to have. "
                    "Raise n_draws, or delete it."
                )

    def keep(self, chain: Chain, name: str, at_once: bool) -> None:
        """Take a chain's state if it is time, or at once."""
        if not at_once and time.monotonic() - self.kept.get(name, self.began) < self.every:
            return
        shards = f"{name}-{chain.iteration}"
        try:
            (self.path / shards).mkdir(exist_ok=True)
            chain.engine.ask(write_shard, self.path.absolute() / shards)
            self._write(name, {"shards": shards}, chain.state())
        except OSError as error:
            warn(f"The checkpoint {self.path} could not be written ({error}); the fit goes on.")
            shards = self._read(name)[0]["shards"] if (self.path / name).is_file() else ""
        for old in self.path.glob(f"{name}-*"):
            if old.name != shards:
                shutil.rmtree(old, ignore_errors=True)
        self.kept[name] = time.monotonic()

    def _write(self, name: str, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        with self.lock:
            write_file(self.path / name, header | {"checkpoint": FORMAT, "identity": self.identity}, tensors)

    def _read(self, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, tensors = read_file(self.path / name, WHAT)
        if header.get("checkpoint") != FORMAT:
            raise ValueError(f"{self.path} is not a checkpoint that this version can read.")
        if header.get("identity") != self.identity:
            raise ValueError(
                f"{self.path} is the checkpoint of another fit: other documents, responses or parameters (all count "
                "but n_jobs, engine, verbose and n_draws). Give another path, or delete it."
            )
        return header, tensors


def stored_seed(path: str | os.PathLike) -> int | None:
    """The seed of the fit that a checkpoint is of, if there is one."""
    file = Path(path) / "fit"
    return read_file(file, WHAT)[0].get("facts", {}).get("seed") if file.is_file() else None


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder for the time of a fit.

    Windows removes no file that is still mapped, as it may be in the frames of an exception: that one is to be told,
    not that a file stays.
    """
    path = tempfile.mkdtemp(prefix="supertopic-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_shard(shard: Any, folder: Path) -> None:
    """Write a shard's state, wherever the shard is."""
    write_file(folder / str(shard.first_doc), {}, shard.state())


def read_shard(folder: Path, shard: Any, response: Response, eta: np.ndarray) -> None:
    """Bring a shard to where it was."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The checkpoint's folder {folder} is not there, or not on {socket.gethostname()}: on several machines it "
            "must be one that all of them see."
        )
    shard.restore(read_file(folder / str(shard.first_doc), WHAT)[1], response, eta)


def identify(plan: Plan, source: Corpus, beliefs: list[Belief | None], parameters: dict[str, Any]) -> str:
    """A fingerprint of the documents, of what is believed before, and of all else that a fit depends on."""
    digest = hashlib.sha256()
    known = (array for belief in beliefs if belief for array in (belief.word_topic, *sum(belief[1:], ())))
    for array in itertools.chain(source.arrays(), known):
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
