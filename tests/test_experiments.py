"""The runner of the experiments: what is finished is kept, and nothing else is believed."""

import importlib
import os
import re
import subprocess
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import date
from pathlib import Path
from types import ModuleType

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure

from experiments import binary, runner, tasks, time_split
from experiments.__main__ import NAMES, main


class NoBar:
    def add_task(self, *_, **__):
        return 0

    def advance(self, _):
        pass


@pytest.fixture
def toy(monkeypatch):
    """An experiment whose figures are known, and which counts what it was asked."""
    matplotlib.use("agg")
    toy = ModuleType("experiments.toy")
    toy.K, toy.asked = (5, 10), []
    toy.QUICK = {"K": (5,)}
    toy.cells = lambda: [{"K": k, "alpha": 0.1, "seed": seed} for seed in range(2) for k in toy.K]
    toy.measure = lambda cell: toy.asked.append(cell) or {"accuracy": cell["K"] + cell["seed"]}
    toy.draw = lambda rows: Figure(figsize=(1, 1), layout="constrained")
    toy.table = lambda rows: rows.groupby("K")[["accuracy"]].mean()
    monkeypatch.setitem(sys.modules, "experiments.toy", toy)
    return toy


def run(folder: Path, workers: Executor | None = None) -> str:
    return runner.run("toy", folder, False, workers, 2, NoBar())


def test_results_are_written_and_not_measured_again(toy, tmp_path):
    table = run(tmp_path)
    assert table.splitlines() == ["| K | accuracy |", "| --- | --- |", "| 5 | 5.5 |", "| 10 | 10.5 |"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toy.csv", "toy.png", "toy.svg"]
    assert f"{date.today()}, {os.cpu_count()} cores" in (tmp_path / "toy.svg").read_text(encoding="utf-8")
    before = (tmp_path / "toy.csv").read_bytes()
    assert run(tmp_path) == table
    assert len(toy.asked) == 4 and (tmp_path / "toy.csv").read_bytes() == before


def test_a_stopped_run_goes_on(toy, tmp_path):
    whole = toy.measure

    def stop(cell):
        if len(toy.asked) == 3:
            raise KeyboardInterrupt
        return whole(cell)

    toy.measure = stop
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert len(pd.read_csv(tmp_path / "toy.csv")) == 3
    toy.measure = whole
    run(tmp_path)
    assert toy.asked == toy.cells()


def test_rows_of_other_parameters_stay_out(toy, tmp_path):
    run(tmp_path)
    toy.K, seen = (10, 20), []
    toy.draw = lambda rows: seen.append(rows) or Figure(layout="constrained")
    run(tmp_path)
    assert [cell["K"] for cell in toy.asked[4:]] == [20, 20]
    assert seen[0][["K", "seed"]].values.tolist() == [[10, 0], [20, 0], [10, 1], [20, 1]]
    assert len(pd.read_csv(tmp_path / "toy.csv")) == 6


def test_a_cell_may_have_several_rows(toy, tmp_path):
    toy.measure = lambda cell: [{"accuracy": 0.5}, {"accuracy": 0.7}]
    run(tmp_path)
    assert pd.read_csv(tmp_path / "toy.csv")["accuracy"].tolist() == [0.5, 0.7] * 4


def test_figures_that_came_later_lose_nothing(toy, tmp_path):
    run(tmp_path)
    toy.K, toy.measure = (10, 20), lambda cell: {"accuracy": 0.5, "seconds": 1.0}
    run(tmp_path)
    assert pd.read_csv(tmp_path / "toy.csv")["seconds"].fillna(0).tolist() == [0, 0, 0, 0, 1, 1]


def test_cells_with_threads_of_their_own_run_alone(toy, tmp_path):
    toy.cells = lambda: [{"K": k, "n_jobs": n_jobs, "seed": 0} for k in (5, 10) for n_jobs in (2, 1)]
    with ThreadPoolExecutor(2) as workers:
        run(tmp_path, workers)
    assert sorted(cell["n_jobs"] for cell in toy.asked[:2]) == [1, 1] and len(toy.asked) == 4
    rows = pd.read_csv(tmp_path / "toy.csv")
    assert (rows["at_once"] == 3 - rows["n_jobs"]).all()


def test_a_cell_that_fails_leaves_the_others(toy, tmp_path):
    def fail(cell):
        if cell == {"K": 10, "alpha": 0.1, "seed": 1}:
            raise ValueError("no such thing")
        return {"accuracy": 0.5}

    toy.measure = fail
    with ThreadPoolExecutor(1) as workers, pytest.raises(ValueError, match="no such thing"):
        run(tmp_path, workers)
    assert len(pd.read_csv(tmp_path / "toy.csv")) == 3


def test_what_must_come_out_is_checked_and_kept(toy, tmp_path):
    def check(rows):
        raise AssertionError("too small")

    toy.check = check
    with pytest.raises(AssertionError, match="too small"):
        run(tmp_path)
    assert (tmp_path / "toy.png").exists()


def test_results_of_another_version_are_refused(toy, tmp_path):
    run(tmp_path)
    toy.cells = lambda: [{"K": 5, "c": 1, "seed": 0}]
    with pytest.raises(ValueError, match=r"another version.*K, alpha, seed.*expected K, c, seed.*--out"):
        run(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_different_cells_and_fewer_when_quick(name):
    experiment = runner.load(name, quick=False)
    cells = experiment.cells()
    runner.load(name, quick=True)
    quick = experiment.cells()
    importlib.reload(experiment)
    for some in (cells, quick):
        assert len({tuple(cell.items()) for cell in some}) == len(some)
        assert {tuple(cell) for cell in some} == {tuple(cells[0])}
    assert 0 < len(quick) < len(cells)


def test_means_and_sds_over_the_starts():
    rows = pd.DataFrame({"system": ["a", "a", "b"], "K": [5, 5, 10], "accuracy": [0.5, 0.7, 0.25]})
    table = tasks.summary(rows, "system", "K")
    assert table.loc["a"].tolist() == ["0.600 (0.141)", ""] and table.loc["b"].tolist() == ["", "0.250"]


def test_shares_of_the_time_are_of_one_run():
    rows = pd.DataFrame(
        {"K": 20, "seed": [0] * 3 + [1] * 3, "step": time_split.STEPS * 2, "seconds": [1, 1, 2, 10, 0, 10]}
    )
    both = time_split.beside(rows)
    assert both[both["whose"] == "ours"]["share"].tolist() == [25, 25, 50, 50, 0, 50]
    paper = both[(both["whose"] == "the paper's") & (both["K"] == 50)]
    assert paper["share"].round(2).tolist() == [43.67, 0.33, 56.00]  # as the paper prints them


@pytest.mark.parametrize("better", ["gSLDA", "gLDA+SVM"])
def test_the_binary_task_must_come_out(better):
    accuracy = {"gSLDA+": 0.8, "gSLDA": 0.7, "gLDA+SVM": 0.7}
    rows = pd.DataFrame({"system": list(accuracy), "accuracy": list(accuracy.values())})
    binary.check(rows)
    rows.loc[rows["system"] == better, "accuracy"] = 0.8
    with pytest.raises(AssertionError, match=f"{re.escape(better)} 0.800: gSLDA. must be better"):
        binary.check(rows)


@pytest.mark.parametrize(
    "given, said",
    [
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["binary", "--jobs", "0"], "--jobs must be 1 or more, got 0"),
        ([], "required: NAME"),
    ],
)
def test_what_the_command_refuses(given, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["experiments", *given])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2 and said in capsys.readouterr().err


def test_without_the_corpus_the_command_says_where_it_looks(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERTOPIC_DATA", str(tmp_path))
    command = [sys.executable, "-m", "experiments", "binary"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert answer.returncode == 2 and "set SUPERTOPIC_DATA to the folder with it" in answer.stderr
