"""`python -m experiments NAME|all [--quick]`: reproduces the paper's figures and tables."""

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import matplotlib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks import corpora
from experiments import runner, tasks

NAMES = {
    "binary": "Figure 1: all systems on two groups, accuracy and times",
    "two_stage": "beside Figure 1: LDA, then an SVM, against plain gSLDA",
    "multiclass": "Figure 2: twenty groups, accuracy and training time",
    "time_split": "Table 1: the time of lambda, eta and z",
    "burn_in": "Figure 3: burn-in, two groups",
    "burn_in_multiclass": "Figure 4: burn-in, twenty groups, sequential and parallel",
    "c": "Figure 5: the constant c",
    "alpha": "Figure 6: the Dirichlet prior alpha",
    "start": "not in the paper: lambda before the first iteration",
    "topics": "not in the paper: the topics and their weights",
    "averaging": "not in the paper: averaging over draws and chains",
    "calibration": "not in the paper: can its probabilities be believed?",
}


def main() -> int:
    listed = "\n".join(f"  {name:20}{what}" for name, what in NAMES.items())
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=f"The paper's experiments:\n\n{listed}",
        epilog="Every finished cell is kept: a run that was stopped goes on where it was.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*NAMES, "all"], help="one or more, or all")
    parser.add_argument("--quick", action="store_true", help="a few small cells of each, in minutes")
    parser.add_argument("--out", type=Path, help="folder of results (default: results, or results/quick)")
    parser.add_argument(
        "--jobs", type=int, default=1, help="cells at a time (default: 1); times then disturb each other"
    )
    given = parser.parse_args()
    if given.jobs < 1:
        parser.error(f"--jobs must be 1 or more, got {given.jobs}")
    if not (corpora.DATA / "20news-bydate-matlab").exists():
        parser.error(f"there is no 20news-bydate-matlab in {corpora.DATA}; set SUPERTOPIC_DATA to the folder with it")
    folder = given.out or Path("results", "quick" if given.quick else "")
    folder.mkdir(parents=True, exist_ok=True)

    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "supertopic", "font.size": 8})
    console, names = Console(stderr=True), NAMES if "all" in given.names else dict.fromkeys(given.names)
    columns = (
        TextColumn("{task.description:20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(given.jobs, spawn, tasks.start_worker) if given.jobs > 1 else nullcontext()
    try:
        tasks.warm_up()
        with pool as workers, Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty()) as progress:
            for name in names:
                table = runner.run(name, folder, given.quick, workers, given.jobs, progress)
                print(f"\n{name}: {NAMES[name]}\n\n{table}\n\n{folder / name}.csv, .png and .svg\n", flush=True)
    except KeyboardInterrupt:
        console.print(f"Stopped. What was finished is in {folder}; the same command goes on from there.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
