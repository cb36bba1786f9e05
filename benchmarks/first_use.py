"""The first use after an installation: `python -m benchmarks.first_use`.

A process of its own imports supertopic, fits a classifier with defaults to 200 documents of two classes, fits it again
and predicts. The cache of compiled code is empty at first; a second process then finds it full. Other programs may use
the processors, too: the processor time hardly depends on them, the wall-clock time does. first_use.json has all trials.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks import history

STEPS = {"import": "import", "fit": "first fit", "again": "second fit", "predict": "first prediction"}
CHILD = """
import json, random, sys, time

kind, taken = sys.argv[1], {}
random.seed(0)
words = [f"word{i}" for i in range(500)]
documents = [" ".join(random.choices(words[i % 2 * 100 :][:300], k=60)) for i in range(200)]
y = ["even", "odd"] * 100


def timed(step, work):
    began, used = time.perf_counter(), time.process_time()
    found = work()
    taken[step] = {"wall": time.perf_counter() - began, "cpu": time.process_time() - used}
    return found


def imported():
    from supertopic import SLDAClassifier

    return SLDAClassifier


estimator = timed("import", imported)
if kind == "counts":
    from sklearn.feature_extraction.text import CountVectorizer

    documents = CountVectorizer(vocabulary=words).transform(documents)
model = timed("fit", lambda: estimator(random_state=0).fit(documents, y))
timed("again", lambda: estimator(random_state=0).fit(documents, y))
timed("predict", lambda: model.predict_proba(documents[:5]))
print(json.dumps(taken))
"""


def run(kind: str, cache: str) -> dict[str, dict[str, float]]:
    """Wall-clock and processor seconds of each step, in a new process."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    child = [sys.executable, "-c", CHILD, kind]
    return json.loads(subprocess.check_output(child, text=True, env=environment))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.first_use", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=5, help="with an empty cache, and with a full one")
    trials = parser.parse_args().trials
    found: dict[str, dict[str, list]] = {kind: {"empty": [], "full": []} for kind in ("texts", "counts")}
    for _ in range(trials):
        for kind, of_kind in found.items():
            with tempfile.TemporaryDirectory() as cache:
                for state in ("empty", "full"):
                    of_kind[state].append(run(kind, cache))
    table = Table("documents", "cache", *STEPS.values(), title=f"seconds: processor (wall clock), {trials} trials")
    for kind, of_kind in found.items():
        for state, runs in of_kind.items():
            cells = [[median(run[step][what] for run in runs) for what in ("cpu", "wall")] for step in STEPS]
            table.add_row(kind, state, *(f"{cpu:.2f} ({wall:.2f})" for cpu, wall in cells))
    history.append(history.place("first_use"), found)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
