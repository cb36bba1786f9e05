"""What other systems than this one need, as far as it can be tested on any system."""

import io
import sys
import threading
import time

import pytest

from supertopic.command import cli, steps
from supertopic.inference.checkpoint import temporary_folder
from supertopic.inference.memory import free_memory
from supertopic.sampling import pool


def test_pipes_are_utf8_with_plain_line_ends(monkeypatch):
    """As on Windows, where a pipe has a code page that lacks most letters, and CSV would get CR CR LF."""
    written, read = io.BytesIO(), io.BytesIO("气 é".encode())
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252", newline="\r\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(read, encoding="cp1252"))
    steps.use_utf8()
    assert sys.stdin.read() == "气 é"
    print("气 é", end="\r\n", flush=True)  # as a CSV writer ends lines
    assert written.getvalue() == "气 é\r\n".encode()


def test_streams_that_are_none_are_let_be(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    steps.use_utf8()


def test_a_pattern_is_not_expanded_by_click(monkeypatch):
    """On Windows Click would make many arguments of one."""
    asked = {}
    monkeypatch.setattr(cli, "app", lambda **options: asked.update(options))
    cli.main()
    assert asked == {"windows_expand_args": False}


def test_a_wait_for_threads_ends_by_itself(monkeypatch):
    """No signal ends one on Windows, so that Ctrl-C would be heard when the first chain is finished."""
    waits, real = [], pool.wait

    def wait(futures, timeout, return_when):
        waits.append(timeout)
        return real(futures, timeout, return_when)

    monkeypatch.setattr(pool, "wait", wait)
    monkeypatch.setattr(pool, "LISTEN", 0.01)
    assert pool.each(lambda i: time.sleep(0.1) or i, 3, 2, threading.Event()) == [0, 1, 2]
    assert len(waits) > 3 and set(waits) == {0.01}


def test_the_first_error_of_a_thread_stops_the_others():
    stop = threading.Event()

    def verb(i):
        if i == 0:
            raise ValueError("broken")
        assert stop.wait(10)

    with pytest.raises(ValueError, match="broken"):
        pool.each(verb, 2, 2, stop)
    assert stop.is_set()


def test_a_folder_that_cannot_be_removed_hides_no_error(monkeypatch):
    """On Windows a file that somebody has mapped stays."""
    monkeypatch.setattr("os.rmdir", lambda *args, **options: (_ for _ in ()).throw(PermissionError("in use")))
    with pytest.raises(ValueError, match="the fit's own"), temporary_folder():
        raise ValueError("the fit's own")


def test_memory_is_infinite_where_linux_is_silent(monkeypatch):
    assert 0 < free_memory() <= float("inf")
    monkeypatch.setattr("builtins.open", lambda *args, **options: (_ for _ in ()).throw(FileNotFoundError()))
    assert free_memory() == float("inf")
