"""Measures an experiment's cells, keeps the figures of each, draws them.

An experiment is a module with its parameters as plain assignments on top, and

    QUICK          what --quick assigns instead
    cells()        the cells of its grid, each a dict of parameters: all that its figures depend on
    measure(cell)  the figures of a cell: a dict, or a list of them
    draw(rows)     a matplotlib figure of a DataFrame that has the parameters and the figures of every cell
    table(rows)    the same in numbers
    check(rows)    where it is there: raises if something is not as it must be
"""

import csv
import importlib
import os
import platform
from collections.abc import Iterator
from concurrent.futures import Executor, as_completed
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

Cell = dict[str, Any]
PACKAGES = "supertopic", "numpy", "scipy", "numba", "scikit-learn"


class Store:
    """A CSV file with the rows of all finished cells, replaced as a whole whenever one more is finished."""

    def __init__(self, path: Path, parameters: list[str]):
        self.path, self.parameters, self.rows = path, parameters, []
        if path.exists():
            with open(path, newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))
        if self.rows and list(self.rows[0])[: len(parameters)] != parameters:
            raise ValueError(
                f"{path} is of another version of this experiment: its cells have {', '.join(list(self.rows[0]))}, "
                f"expected {', '.join(parameters)} first. Remove it, or choose another folder with --out."
            )

    def key(self, row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.parameters)

    def missing(self, cells: list[Cell]) -> list[Cell]:
        done = {self.key(row) for row in self.rows}
        return [cell for cell in cells if self.key(cell) not in done]

    def add(self, cell: Cell, figures: dict | list[dict], origin: dict[str, Any]) -> None:
        self.rows += [cell | row | origin for row in (figures if isinstance(figures, list) else [figures])]
        partial = self.path.with_suffix(".partial")
        with open(partial, "w", newline="", encoding="utf-8") as file:
            columns = dict.fromkeys(name for row in self.rows for name in row)
            writer = csv.DictWriter(file, list(columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        os.replace(partial, self.path)

    def frame(self, cells: list[Cell]) -> pd.DataFrame:
        """The rows of these cells, in the cells' order: a file may hold more, of other parameters."""
        order = {self.key(cell): i for i, cell in enumerate(cells)}
        frame = pd.read_csv(self.path)
        place = pd.Series([order.get(self.key(row), -1) for row in self.rows])
        return frame[place >= 0].iloc[place[place >= 0].argsort(kind="stable")].reset_index(drop=True)


def load(name: str, quick: bool) -> ModuleType:
    experiment = importlib.import_module(f"experiments.{name}")
    if quick:
        vars(experiment).update(experiment.QUICK)
    return experiment


def measure(name: str, cell: Cell) -> dict | list[dict]:
    """One cell, wherever it runs. One thread of BLAS, so that systems are compared on equal terms."""
    with threadpool_limits(1):
        return importlib.import_module(f"experiments.{name}").measure(cell)


def measure_all(name: str, cells: list[Cell], workers: Executor | None) -> Iterator[tuple[Cell, dict | list[dict]]]:
    """Cells with one thread in the workers, side by side; cells that have the threads themselves alone, afterwards."""
    alone = cells
    if workers:
        alone = [cell for cell in cells if cell.get("n_jobs", 1) > 1]
        futures = {workers.submit(measure, name, cell): cell for cell in cells if cell.get("n_jobs", 1) == 1}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            for future in futures:
                future.cancel()
    for cell in alone:
        yield cell, measure(name, cell)


def run(name: str, folder: Path, quick: bool, workers: Executor | None, n_workers: int, progress: Any) -> str:
    """Measure what is missing, write NAME.csv, NAME.png and NAME.svg; returns the table, as Markdown."""
    experiment = load(name, quick)
    cells = experiment.cells()
    store = Store(folder / f"{name}.csv", list(cells[0]))
    missing = store.missing(cells)
    task = progress.add_task(name, total=len(cells), completed=len(cells) - len(missing))
    for cell, figures in measure_all(name, missing, workers):
        at_once = n_workers if workers and cell.get("n_jobs", 1) == 1 else 1
        store.add(cell, figures, {"at_once": at_once, "made": made_by()})
        progress.advance(task)
    rows = store.frame(cells)
    figure = experiment.draw(rows)
    figure.text(1, 1, "\n".join(rows["made"].unique()), ha="right", va="bottom", size=5, color="0.5")
    for suffix in ("png", "svg"):
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(folder / f"{name}.{suffix}", dpi=130, metadata=metadata, bbox_inches="tight")
    if hasattr(experiment, "check"):
        experiment.check(rows)
    return markdown(experiment.table(rows))


def markdown(table: pd.DataFrame) -> str:
    table = table.reset_index()
    names = [" ".join(str(part) for part in np.atleast_1d(name) if part != "") for name in table.columns]
    lines = [names, ["---"] * len(names), *table.astype(str).values.tolist()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def made_by() -> str:
    """Date, machine and versions, to be kept with every figure."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = f"{os.cpu_count()} cores of {processor()}, {platform.system()}, Python {platform.python_version()}"
    return f"{date.today()}, {machine}, {versions}"


def processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
