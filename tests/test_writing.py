"""Files that are there whole or not at all, whoever else writes to the same place."""

import os
import signal
import sys
import threading

import numpy as np
import pytest

from processes import Running
from supertopic.corpus.writing import whole_file, whole_text
from supertopic.storage.container import read_file, write_file

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither pipes nor links for everybody")


@posix
def test_many_writers_and_readers_of_one_path(tmp_path):
    """800 saves by eight threads and two processes: none fails, and no reader sees anything but a whole file."""
    path, stop, errors = tmp_path / "m", threading.Event(), []
    arrays = {"a": np.zeros(2000)}
    write_file(path, {}, arrays)

    def work(action):
        try:
            action()
        except Exception as error:
            errors.append(error)

    def read():
        while not stop.is_set():
            read_file(path, "file")

    code = (
        "import sys, numpy as np; from supertopic.storage.container import write_file\n"
        "for i in range(100): write_file(sys.argv[1], {}, {'a': np.zeros(2000)})"
    )
    processes = [Running(code, path) for _ in range(2)]
    save = [lambda: [write_file(path, {}, arrays) for _ in range(75)]]
    writers = [threading.Thread(target=work, args=save) for _ in range(8)]
    reader = threading.Thread(target=work, args=[read])
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    assert [process.end()[0] for process in processes] == [0, 0]
    stop.set()
    reader.join()
    assert not errors and os.listdir(tmp_path) == ["m"]


@posix
def test_what_a_killed_process_has_left_is_removed(tmp_path):
    code = (
        "import sys, time; from supertopic.corpus.writing import whole_file\n"
        "with whole_file(sys.argv[1]) as file: print('writing', flush=True); time.sleep(60)"
    )
    process = Running(code, tmp_path / "m")
    process.await_line("writing")
    with whole_file(tmp_path / "m") as file:
        file.write(b"1")
    assert len(os.listdir(tmp_path)) == 2, "a file that a living process writes stays"
    process.send_signal(signal.SIGKILL)
    process.end()
    with whole_file(tmp_path / "m") as file:
        file.write(b"2")
    assert os.listdir(tmp_path) == ["m"] and (tmp_path / "m").read_bytes() == b"2"


@posix
def test_planted_links_and_pipes(tmp_path, monkeypatch):
    """A link named as the partial file is not followed, one in the final place is replaced; no pipe is opened."""
    victim, place = tmp_path / "victim", tmp_path / "m"
    victim.write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr("secrets.token_hex", lambda n: "known")
        (tmp_path / ".m.known.partial").symlink_to(victim)
        with pytest.raises(FileExistsError), whole_file(place):
            pass
    os.mkfifo(tmp_path / ".m.pipe.partial")
    place.symlink_to(victim)
    with whole_text(place) as file:
        file.write("new\n")
    assert victim.read_text() == "mine" and place.read_bytes() == b"new\n" and not place.is_symlink()
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", tmp_path, "/dev/null"):
        with pytest.raises(OSError, match="give the name of a file"), whole_file(special):
            pass


def test_a_failure_leaves_the_old_file(tmp_path):
    (tmp_path / "m").write_text("old")
    with pytest.raises(OSError, match="full"), whole_text(tmp_path / "m") as file:
        file.write("half")
        raise OSError("disk full")
    assert (tmp_path / "m").read_text() == "old" and os.listdir(tmp_path) == ["m"]


@posix
def test_long_names(tmp_path):
    for name in ("x" * 240, "é" * 120, "[a]*"):
        with whole_text(tmp_path / name) as file:
            file.write("1")
        assert (tmp_path / name).read_text() == "1"
