"""A model file that is watched: a new version takes the place of the old one once it is loaded and warm."""

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from supertopic.serve.examples import Example
from supertopic.serve.model import ServedModel

log = logging.getLogger("supertopic.serve")
Signature = tuple[int, int, int]


def signature(path: Path) -> Signature | None:
    """What differs when a file is replaced or changed; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


class ModelFile:
    """The newest sound model of a file. Whoever has taken an older one keeps it."""

    def __init__(
        self, path: Path, mmap: bool = False, told: Callable[[bool], None] = lambda sound: None,
        documents: Sequence[Example] = (),
    ):  # fmt: skip
        self.path, self.mmap, self.told, self.documents = path, mmap, told, documents
        self.seen = signature(path)
        self.current = ServedModel.load(path, mmap, documents)
        self.failed: dict[str, Any] | None = None  # the last version that could not be loaded
        self.n_loaded, self.stopping = 1, threading.Event()
        self.thread: threading.Thread | None = None

    def watch(self, seconds: float) -> None:
        """Look for a new version every so often, in the background."""
        self.thread = threading.Thread(target=self.keep_looking, args=(seconds,), name="reload", daemon=True)
        self.thread.start()

    def keep_looking(self, seconds: float) -> None:
        while not self.stopping.wait(seconds):
            self.look()

    def look(self) -> bool:
        """Load the file if it has changed; whether there is a new model."""
        now = signature(self.path)
        if now == self.seen or now is None:  # it is away for a moment while it is replaced
            return False
        self.seen = now
        try:
            found = ServedModel.load(self.path, self.mmap, self.documents)
        except Exception as error:  # whatever is in the file, the old model stays
            self.failed = {"time": time.time(), "message": str(error)[:500]}
            log.error("The new version of %s cannot be used; the old one stays in use: %s", self.path.name, error)
            self.told(False)
            return False
        self.current, self.failed = found, None
        self.n_loaded += 1
        log.info("A new version of %s is in use.", self.path.name)
        self.told(True)
        return True

    def close(self) -> None:
        """Watch no longer."""
        self.stopping.set()
        if self.thread is not None:
            self.thread.join(5.0)
