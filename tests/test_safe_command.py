"""The command does no harm: to its inputs, to a spreadsheet, to a terminal, and it ends without a traceback."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.markup import escape
from rich.table import Table

import supertopic
from supertopic import SLDAClassifier
from supertopic.command.cells import as_classes
from supertopic.command.console import PlainConsole, harmless, plain, write_csv
from supertopic.inference import memory

ROWS = [("goal match team win", "=sport"), ("vote law senate party", "politics\x1b[2J")] * 12
posix = pytest.mark.skipif(sys.platform == "win32", reason="asks for POSIX")
EVIL = "\x1b]0;title\x07\x1b[31m\x9b2J\u202eabc"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, and a model of its labels, of which one is a formula and one clears the screen."""
    folder = tmp_path_factory.mktemp("safe")
    with open(folder / "d.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label", "=note"), *((*row, "+cmd") for row in ROWS)])
    model = SLDAClassifier(2, burn_in=4, n_draws=3, n_chains=1, random_state=0)
    supertopic.save(model.fit([text for text, _ in ROWS], [label for _, label in ROWS]), folder / "m")
    return folder


@pytest.fixture
def shown(monkeypatch, capsys):
    """The command in this process: what it shows."""
    from supertopic.command.cli import main

    def show(*arguments):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        return capsys.readouterr().out

    return show


@pytest.fixture
def command(monkeypatch, capsys):
    """The command in this process: what it says when it refuses."""

    def refuse(*arguments):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            from supertopic.command.cli import main

            main()
        assert stop.value.code == 1
        return " ".join(capsys.readouterr().err.split())

    return refuse


@posix
def test_an_output_is_none_of_the_inputs(place, tmp_path, command, monkeypatch):
    data, model = place / "d.csv", place / "m"
    before = data.read_bytes(), model.read_bytes()
    (tmp_path / "link.csv").symlink_to(data)
    os.link(data, tmp_path / "hard.csv")
    monkeypatch.chdir(place)
    fit = ["--text", "text", "--label", "label"]
    for arguments in (
        ["fit", data, *fit, "-o", data],
        ["fit", data, *fit, "-o", "d.csv"],
        ["fit", tmp_path / "link.csv", *fit, "-o", data],
        ["fit", tmp_path / "hard.csv", *fit, "-o", data],
        ["fit", data, *fit, "-o", place / ".." / place.name / "d.csv"],
        ["fit", data, *fit, "-o", tmp_path / "new", "--report", data],
        ["fit", data, *fit, "-o", model, "--prior", model],
        ["fit", data, *fit, "-o", data, "--stop-words", "none"],
        ["fit", "*.csv", *fit, "-o", data],
        ["predict", model, data, "--text", "text", "-o", data],
        ["predict", model, data, "--text", "text", "-o", model],
        ["report", model, data, "--text", "text", "-o", data],
        ["update", model, data, "--text", "text", "-o", data],
        ["choose", data, *fit, "--figure", data],
    ):
        assert "which the command reads" in command(*arguments), arguments
    both = ["fit", data, *fit, "-o", tmp_path / "x", "--report", tmp_path / "x"]
    assert "would be written twice" in command(*both)
    assert (data.read_bytes(), model.read_bytes()) == before and not (tmp_path / "x").exists()


@posix
def test_an_output_is_a_plain_file(place, tmp_path, command):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "link", tmp_path / "pipe", "/dev/null"):
        for verb in ("predict", "update", "report"):
            message = command(verb, place / "m", place / "d.csv", "--text", "text", "-o", special)
            assert "a link, a device or a pipe; give the name of a plain file" in message
    assert (tmp_path / "link").is_symlink()


def test_many_predictions_do_not_replace_their_inputs(place, tmp_path, command):
    pq.write_table(pa.table({"text": ["goal"]}), tmp_path / "a.parquet")
    message = command("predict", place / "m", str(tmp_path / "*.parquet"), "--text", "text", "-o", tmp_path)
    assert "which the command reads" in message


def test_a_model_may_be_updated_in_place(place, tmp_path, shown, short_regressions):
    path = tmp_path / "m"
    path.write_bytes((place / "m").read_bytes())
    found = shown("update", path, place / "d.csv", "--text", "text", "--label", "label", "-o", path, "--json")
    assert json.loads(found)["batches"] == 2


def test_cells_that_a_spreadsheet_would_run():
    for cell in ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "＝1"):  # noqa: RUF001
        assert harmless(cell) == "'" + cell
    for cell in ("-1.5", "+3", "-1e-9", "-.5", "a=b", "", None, -3, 2.5, "1=1"):
        assert harmless(cell) == cell
    file = io.StringIO()
    write_csv(file, [["=a", "b"], ["-x", "-1"]])
    assert file.getvalue() == "'=a,b\r\n'-x,-1\r\n"
    file.isatty = lambda: True
    write_csv(file, [[EVIL]])
    assert "\x1b" not in file.getvalue()


def test_csv_of_the_command(place, tmp_path, shown):
    output = tmp_path / "p.csv"
    shown("predict", place / "m", place / "d.csv", "--text", "text", "--keep", "all", "-o", output)
    with open(output, encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head[2] == "'=note" and rows[0][2] == "'+cmd" and rows[0][3] == "'=sport"
    weights = shown("topics", place / "m", "--csv")
    assert not any(cell[:1] in "=+@" for row in csv.reader(io.StringIO(weights)) for cell in row if cell)


def test_the_terminal_obeys_no_name(place, shown, command):
    file = io.StringIO()
    console = PlainConsole(file=file, force_terminal=True, width=100)
    table = Table("class", title=EVIL)
    table.add_row(escape(EVIL))
    console.print(table, escape(EVIL), f"[bold]{EVIL}[/bold]")
    found = file.getvalue()
    for piece in ("\x1b]0", "\x07", "\x1b[31m\x9b", "\x9b", "\u202e"):
        assert piece not in found
    assert "\x1b[1m" in found and "abc" in found  # its own bold
    assert plain("a\tb\nc") == "a\tb\nc"
    found = shown("topics", place / "m")
    assert "\x1b" not in found and "politics" in found
    assert "\x1b" not in command("topics", "/tmp/\x1b[2J")


def test_no_columns(place, shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    assert "goal" in shown("topics", place / "m")


@posix
@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(place, streams):
    command = f"{sys.executable} -W ignore -m supertopic topics {place / 'm'} {streams}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    if streams == "<&-":
        command = f"{sys.executable} -W ignore -m supertopic predict {place / 'm'} - --text text <&-"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        assert done.returncode == 1 and "- is empty" in done.stderr and "Traceback" not in done.stderr


@posix
def test_a_reader_that_has_gone(place):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-W", "ignore", "-m", "supertopic", "topics", str(place / "m")]
    for more in ([], ["--csv"], ["--json"]):
        done = subprocess.run([*command, *more], stdout=write, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and done.stderr == ""
    os.close(write)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk(place):
    command = [sys.executable, "-W", "ignore", "-m", "supertopic", "topics", str(place / "m"), "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr


@posix
@pytest.mark.parametrize("seconds", [0.15, 0.5, 1.0])
def test_control_c_while_it_is_imported(seconds):
    process = subprocess.Popen(
        [sys.executable, "-X", "frozen_modules=on", "-m", "supertopic", "demo"], stderr=subprocess.PIPE, text=True
    )
    while "supertopic" not in Path(f"/proc/{process.pid}/cmdline").read_text():
        time.sleep(0.01)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if "Traceback" in err:  # Python itself was still starting
        assert "__main__.py" not in err
    else:
        assert process.returncode in (130, -signal.SIGINT)


def test_dates_as_classes_are_text():
    cells = [date(2024, 1, 2), datetime(2024, 1, 2, 3), None, "x"]
    assert as_classes(cells).tolist() == ["2024-01-02", "2024-01-02 03:00:00", None, "x"]


def test_dates_as_classes_through_the_command(tmp_path, shown, short_regressions):
    days = [date(2024, 1, 1 + i % 2) for i in range(24)]
    pq.write_table(pa.table({"text": [text for text, _ in ROWS], "day": days}), tmp_path / "d.parquet")
    fast = ["--topics", "2", "--burn-in", "3", "--draws", "2", "--chains", "1", "--min-df", "1", "--response", "class"]
    found = shown(
        "fit", tmp_path / "d.parquet", "--text", "text", "--label", "day", "-o", tmp_path / "m", "--json", *fast
    )
    assert json.loads(found)["classes"] == ["2024-01-01", "2024-01-02"]
    update = ["update", tmp_path / "m", tmp_path / "d.parquet", "--text", "text", "--label", "day"]
    assert json.loads(shown(*update, "-o", tmp_path / "m", "--json"))["batches"] == 2


def test_a_byte_that_is_no_letter_names_its_file(place, tmp_path, command):
    (tmp_path / "stop.txt").write_bytes(b"a\nb\xff\n")
    fit = ["fit", place / "d.csv", "--text", "text", "--label", "label", "-o", tmp_path / "m"]
    assert "stop.txt, line 2: the byte 0xFF is not UTF-8" in command(*fit, "--stop-words", tmp_path / "stop.txt")


@pytest.mark.parametrize(
    "groups, files",
    [
        ("0::/docker/a\n", {"sys/fs/cgroup/docker/a": ("memory.max", "memory.current", "inactive_file")}),
        ("0::/a/b/c\n", {"sys/fs/cgroup/a": ("memory.max", "memory.current", "inactive_file")}),  # of all inside
        ("0::/host/b\n", {"sys/fs/cgroup": ("memory.max", "memory.current", "inactive_file")}),  # in a container
        (
            "5:cpu,memory:/a\n0::/\n",
            {"sys/fs/cgroup/memory/a": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")},
        ),
    ],
)
def test_containers_have_less_memory_than_their_machine(tmp_path, monkeypatch, groups, files):
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    assert memory.free_memory() == float("inf")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 7900 kB\nSwapFree: 100 kB\n")
    (tmp_path / "proc/self/cgroup").write_text(groups)
    assert memory.free_memory() == 8000 * 1024
    for folder, (limit, used, cache) in files.items():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / limit).write_text("5000\n")
        (tmp_path / folder / used).write_text("3000\n")
        (tmp_path / folder / "memory.stat").write_text(f"anon 7\n{cache} 500\n")
    assert memory.free_memory() == 2500
    (tmp_path / folder / used).write_text("9000\n")
    assert memory.free_memory() == 0  # for a while a group may have more than its limit
    (tmp_path / folder / limit).write_text("max\n")
    assert memory.free_memory() == 8000 * 1024


def test_a_fit_that_a_container_cannot_hold_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "control_groups", lambda: [memory.Group(Path("/x"), "", "", "")])
    monkeypatch.setattr(memory, "free_in_group", lambda group: 100.0)
    with pytest.raises(MemoryError, match="are free"):
        SLDAClassifier(2, random_state=0).fit(np.eye(8, dtype=int), [0, 1] * 4)


EVIL_CELL = f"=goal {EVIL} match"


@pytest.fixture
def evil(place, tmp_path):
    """A table whose ids, texts and labels do harm where they are obeyed."""
    with open(tmp_path / "evil.csv", "w", newline="", encoding="utf-8") as file:
        rows = [(f"=id{i}{EVIL}", EVIL_CELL, ("=sport", "politics\x1b[2J")[i % 2]) for i in range(4)]
        csv.writer(file).writerows([("id", "text", "label"), *rows])
    return place / "m", tmp_path / "evil.csv", "--text", "text"


def test_rows_and_names_are_not_obeyed(evil, tmp_path, shown):
    known = [*evil, "--label", "label", "--id", "id"]
    table = shown("surprising", *known)
    assert "goal" in table and "id3" in table and "\x1b" not in table
    cells = [cell for row in csv.reader(io.StringIO(shown("surprising", *known, "--csv"))) for cell in row]
    assert "'=id3" in " ".join(cells) and not any(cell[:1] in "=+@" for cell in cells if cell)
    assert "\x1b" not in shown("explain", *known, "--where", "surprising")
    assert "\x1b" not in shown("check", evil[1], "--text", "text", "--label", "label")
    (tmp_path / "m").write_bytes(Path(evil[0]).read_bytes())
    shown("name", tmp_path / "m", f"0={EVIL}")
    assert "\x1b" not in supertopic.load(tmp_path / "m").topic_name(0)


@posix
def test_a_model_behind_a_link_is_not_renamed(place, tmp_path, command):
    (tmp_path / "link").symlink_to(place / "m")
    assert "give the name of a plain file" in command("name", tmp_path / "link", "0=x")
    assert (tmp_path / "link").is_symlink()


def test_a_sheet_is_its_file(place, tmp_path, command):
    path = tmp_path / "d.xlsx"
    path.write_bytes(b"PK")
    given = [f"{path}::First", "--text", "text", "--label", "label"]
    assert "which the command reads" in command("fit", *given, "-o", path)
    assert "Cannot read" in command("fit", *given, "-o", tmp_path / "m")
