"""Processes that have imported the package already: for tests of what another process does, or of how one ends.

They are forks of a server, since to import everything takes longer than most of what tests do there. Tests of what is
imported, of memory, of standard streams, and of the command as a shell starts it have `subprocess`.
"""

import atexit
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT = multiprocessing.get_context(HERE)
if HERE == "forkserver":
    CONTEXT.set_forkserver_preload(["supertopic.command.cli", "supertopic.estimators.files", "supertopic.datasets"])


def enter(code, arguments, folder):
    """What the process does: its output goes to files, and the code is run as if it were a program."""
    for name, stream in (("out", 1), ("err", 2)):
        file = os.open(Path(folder) / name, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, stream)
        os.close(file)
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<test>", "exec"), {"__name__": "__main__"})


class Running:
    """A process that runs some code, with arguments that are in its `sys.argv`."""

    def __init__(self, code, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.out, self.err = Path(self.folder.name) / "out", Path(self.folder.name) / "err"
        self.out.touch()
        self.err.touch()
        self.process = CONTEXT.Process(
            target=enter, args=(code, [str(argument) for argument in arguments], self.folder.name)
        )
        self.process.start()
        atexit.register(self.process.kill)  # a daemon would end as well, but joblib gives daemons one thread

    def await_line(self, line):
        """Wait until the process has printed a line, as output or as an error."""
        while line not in [*self.out.read_text().splitlines(), *self.err.read_text().splitlines()]:
            assert self.process.is_alive(), self.err.read_text()
            time.sleep(0.02)

    def send_signal(self, number):
        os.kill(self.process.pid, number)

    def end(self, timeout=120):
        """Wait for the end: the exit status, what it has printed, and what it has printed as errors."""
        self.process.join(timeout)
        assert self.process.exitcode is not None, "the process has not ended"
        return self.process.exitcode, self.out.read_text(), self.err.read_text()


def printed(code, *arguments):
    """What a process prints that has to end well."""
    status, out, err = Running(code, *arguments).end()
    assert status == 0, err
    return out
