"""`python -m benchmarks`: run all benchmarks again, and make the tables of the documentation from them.

`all` runs the benchmarks one after the other, each in a process of its own, which takes many hours. What is in the
folder already is not run again, so that a run that was stopped goes on. `docs` writes the tables of the pages.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import history, tables

ROOT = Path(__file__).parents[1]


class Part(NamedTuple):
    """A benchmark: what it is, its command, and what is added for a trial or for the real thing."""

    what: str
    command: str
    quick: str
    whole: str = ""


PARTS = {
    "speed": Part("speed and memory, beside tomotopy", "benchmarks.speed", ""),
    "many": Part("speed with 10,000 topics", "benchmarks.speed many", ""),
    "first_use": Part("the first fit after an installation", "benchmarks.first_use", "--trials 1"),
    "threads": Part("threads of one chain", "benchmarks.threads", "--threads 1 2", "--ceiling"),
    "accuracy": Part(
        "word counts", "benchmarks.accuracy", "few_labels", "twenty binary reviews few_labels reuters ratings citations"
    ),
    "texts": Part("raw texts", "benchmarks.texts", "time docstrings", "accuracy few noise time"),
    "calibration": Part("noise, coverage, rare classes, batches", "benchmarks.calibration", "rare"),
    "effects": Part("effects and their intervals", "benchmarks.effects", "--corpora 2"),
    "prevalence": Part("shares of topics by group", "benchmarks.prevalence", "--corpora 2"),
    "ordinal": Part("ordered classes", "benchmarks.ordinal --out {out}/ordinal.json", "--quick --seeds 1"),
    "survival": Part("times until an event", "benchmarks.survival --out {out}/survival.json", "--quick --seeds 1"),
    "crowd": Part("several raters", "benchmarks.crowd", "movies --seeds 1"),
    "sets": Part("sets and intervals", "benchmarks.sets", "docstrings --seeds 1"),
    "drift": Part("drift", "benchmarks.drift", "2 --streams 2", "2 9 14 --streams 30"),
    "labels": Part("which documents to label", "benchmarks.labels next", "20\xa0Newsgroups --seeds 1"),
    "wrong": Part("which labels are wrong", "benchmarks.labels wrong", "20\xa0Newsgroups --seeds 1"),
    "priors": Part("priors, streams, written seeds", "benchmarks.priors", "--seeds 1 --develop"),
    "batches": Part("batches of texts", "benchmarks.batches", "docstrings --seeds 1"),
    "settling": Part("settled and stable topics", "benchmarks.settling", "docstrings"),
    "peers": Part("other topic models", "benchmarks.peers --out {out}/peers.json", "--quick"),
    "published": Part("settings of two papers", "benchmarks.published", "--seeds 1"),
    "topics": Part("topics and prediction", "benchmarks.topics --out {out}/topics.json", "--quick"),
    "serve": Part("the server", "benchmarks.serve", "alone"),
    "figures": Part("the paper's figures", "experiments all --out {out}/paper", "--quick"),
}


def run_all(names: list[str], out: Path, quick: bool) -> int:
    """Run what is not there yet; the number of benchmarks that failed."""
    out.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"SUPERTOPIC_BENCHMARKS": str(out), "PYTHONUNBUFFERED": "1"}
    failed = []
    for name in names:
        part, done = PARTS[name], out / f"{name}.txt"
        if done.exists():
            print(f"{name}: is there", flush=True)
            continue
        more = part.quick if quick else part.whole
        command = [word.replace("\xa0", " ") for word in f"{part.command.format(out=out)} {more}".split(" ") if word]
        began, partial = time.perf_counter(), out / f"{name}.part"
        print(f"{name}: {part.what} ...", flush=True)
        with partial.open("w", encoding="utf-8") as log:
            log.writelines(f"{key}: {value}\n" for key, value in history.about().items())
            log.write(f"command: python -m {' '.join(command)}\n\n")
            log.flush()
            found = subprocess.run(
                [sys.executable, "-m", *command], stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=ROOT
            )
        print(f"{name}: {time.perf_counter() - began:,.0f} s", flush=True)
        if found.returncode == 0:
            os.replace(partial, done)
        else:
            failed.append(name)
            print(f"{name} failed: see {partial}", file=sys.stderr, flush=True)
    return len(failed)


def main() -> int:
    listed = "\n".join(f"  {name:14}{part.what}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"{__doc__}\nThe benchmarks:\n\n{listed}",
    )  # fmt: skip
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*PARTS, "all", "docs"], help="or all, or docs")
    parser.add_argument("--out", type=Path, help="the folder of results; needed unless NAME is docs")
    parser.add_argument("--quick", action="store_true", help="a small part of each: does everything run?")
    given = parser.parse_args()
    if given.names == ["docs"]:
        changed = tables.write_tables()
        print(f"Changed: {', '.join(changed)}" if changed else "Nothing has changed.")
        return 0
    if "docs" in given.names:
        parser.error("docs stands alone: it reads the files in benchmarks/ and docs/paper/")
    if given.out is None:
        parser.error("--out says where the results go")
    names = list(PARTS) if "all" in given.names else list(dict.fromkeys(given.names))
    return min(run_all(names, given.out.resolve(), given.quick), 1)


if __name__ == "__main__":
    sys.exit(main())
