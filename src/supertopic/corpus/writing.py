"""Files that are there whole or not at all, and folders that one process has for itself."""

import glob
import io
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

try:
    import fcntl
except ImportError:  # Windows, where a file that is open can be neither removed nor replaced
    fcntl = None  # type: ignore[assignment]

LEFT_OVER = 3600.0  # seconds; where there are no locks, a partial file that is older is of a killed process
LETTERS = 40  # largest number of letters of a file's name that its partial file's name keeps


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file in the same folder, synced and renamed at the end; a reader sees the old file or the new one.

    Any number of processes may write to one path. What a killed one has left is removed by the next.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is a folder, a device or a pipe; give the name of a file.")
    remove_left_overs(path)
    partial, file = open_partial(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # still locked, so that nobody takes it for a left-over
                os.replace(partial, path)
        if fcntl is None:
            os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def whole_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """The same for text: UTF-8, with the line ends that are written."""
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # which flushes


def open_partial(path: Path) -> tuple[Path, BinaryIO]:
    """A file of an unguessable name that did not exist, locked; a link that somebody has planted is not followed."""
    while True:
        partial = path.with_name(f".{path.name[:LETTERS]}.{secrets.token_hex(8)}.partial")
        file = open(partial, "xb")  # noqa: SIM115
        if fcntl is None:
            return partial, file
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # else it was taken for a left-over before it was locked
            return partial, file
        file.close()


def remove_left_overs(path: Path) -> None:
    """Remove the partial files of processes that were killed while they wrote to a path."""
    for name in glob.glob(f".{glob.escape(path.name[:LETTERS])}.*.partial", root_dir=path.parent):
        with suppress(OSError):  # it is gone, somebody else's, or locked: a process is writing it
            remove_if_left(path.parent / name)


def remove_if_left(partial: Path) -> None:
    """Remove a partial file that no process holds."""
    found = partial.lstat()
    if not stat.S_ISREG(found.st_mode):
        return
    if fcntl is None:
        if time.time() - found.st_mtime > LEFT_OVER:
            partial.unlink()
        return
    with open(partial, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partial.unlink()


def lock_folder(path: Path) -> int | None:
    """A handle by which this process has a folder for itself until it is closed; BlockingIOError if another has it.

    None where folders have no locks: on Windows, and on some file systems of a network.
    """
    if fcntl is None:
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        os.close(handle)
        return None
    return handle
