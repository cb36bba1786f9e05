"""Random harm: model files and tables that were changed at random are read, or refused with a reason.

    python -m tests.fuzz --files 20000 --tables 2000 --seed 0

Whatever is read has to work: a model predicts, a table gives its cells. Anything but a ValueError (of files that cannot
be opened an OSError) is a defect, and so is a case that takes longer than it may. The suite runs a few hundred cases.
"""

import argparse
import csv
import io
import json
import random
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.pipeline import Pipeline

from supertopic import LDA, SLDAClassifier, SLDARegressor, load, save
from supertopic.command.cells import as_classes, guess
from supertopic.corpus.tables import column, read_table
from supertopic.storage.container import read_file, write_file

SECONDS = 20.0  # that a case may take
TEXTS = ["goal match team win", "vote law senate party", "atom star orbit planet"] * 8
ODD = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1e308, -0.5, float("nan"), float("inf"), "", "x", "auto", "=1",
    "ray:1.2.3.4:5", "cuda", "\x1b[2J", "../../etc/passwd", "\ud800", "é" * 1000, [], {}, [[]], [None], {"set": []},
    {"array": [[1], [2, 3]]}, {"dict": [[1, 2]]}, {"tuple": [1, 10**9]}, {"vectorizer": {}}, {"seeds": {"words": 5}},
    {"formula": {"text": "a"}},
]  # fmt: skip
CELLS = [
    "", "NA", "0", "1", "-1", "1e999", "nan", "goal match", "=cmd|' /C calc'!A0", '"', '""', "\n", "\r", "\x00", "\t",
    ";", ",", "é", "\u202e", "\x1b[2J", "x" * 5000, "1,5", "2024-01-01", "[[[", "{", "true", "'", "\ufeff",
]  # fmt: skip


def models(folder: Path) -> list[Path]:
    """Small models of several kinds, in files."""
    run = {"burn_in": 2, "n_draws": 2, "random_state": 0}
    made = [
        SLDAClassifier(2, n_chains=2, seeds={"sport": ["goal"]}, **run).fit(TEXTS, ["sport", "law", "space"] * 8),
        SLDARegressor(2, n_chains=1, **run).fit(TEXTS, [1.0, 2.0, 4.0] * 8, covariates=np.arange(24.0)),
        LDA(2, **run).fit(TEXTS),
    ]
    for i, model in enumerate(made):
        save(model, folder / f"{i}.model")
    return [folder / f"{i}.model" for i in range(len(made))]


def change_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes that are flipped, cut, repeated, inserted or replaced by others."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        a, b = sorted(rng.randrange(len(found) + 1) for _ in range(2))
        kind = rng.randrange(5)
        if kind == 0 and found:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del found[a : min(b, a + 50)]
        elif kind == 2:
            found[a:a] = found[a : min(b, a + 200)] * rng.randint(1, 50)
        elif kind == 3:
            found[a:a] = rng.choice([b"[", b"{", b'"', b"\\", b"\x00", b"\xff", b","]) * rng.choice([1, 10, 5000])
        else:
            found[a : a + 8] = rng.randbytes(8)
    return bytes(found)


def change_header(rng: random.Random, place: dict) -> None:
    """Change, add or remove one value, however deep."""
    while True:
        if not place or rng.random() < 0.1:
            place[str(rng.choice(ODD))] = deepcopy(rng.choice(ODD))
            return
        name = rng.choice(list(place))
        if isinstance(place[name], dict) and place[name] and rng.random() < 0.8:
            place = place[name]
        elif rng.random() < 0.1:
            del place[name]
            return
        else:
            place[name] = deepcopy(rng.choice(ODD))
            return


def change_array(rng: random.Random, tensors: dict[str, np.ndarray]) -> None:
    """Another type, shape or value in one array."""
    name = rng.choice(sorted(tensors))
    array, kind = tensors[name], rng.randrange(5)
    if kind == 0:
        del tensors[name]
    elif kind == 1:
        tensors[name] = array.astype(rng.choice(["int8", "uint8", "int64", "float32", "float64", "bool"]))
    elif kind == 2:
        tensors[name] = array[..., : array.shape[-1] // 2] if array.ndim else array
    elif kind == 3:
        tensors[name] = array.reshape(rng.choice([(-1,), (1, *array.shape), (*array.shape, 1)]))
    elif array.size:
        changed = array.copy().reshape(-1)
        value = rng.choice([0, 1, 127, -1, 200, np.nan, np.inf, 1e300])
        with np.errstate(all="ignore"):
            changed[rng.randrange(changed.size)] = np.array(value).astype(array.dtype)
        tensors[name] = changed.reshape(array.shape)


def file_case(rng: random.Random, sources: list[Path], folder: Path) -> str:
    """One model file that was changed: how it ended."""
    source, path = rng.choice(sources), folder / "case.model"
    if rng.random() < 0.4:
        path.write_bytes(change_bytes(rng, source.read_bytes()))
    else:
        header, tensors = read_file(source, "model")
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.6:
                change_header(rng, header)
            else:
                change_array(rng, tensors)
        try:
            write_file(path, header, tensors)
        except (ValueError, TypeError, UnicodeError):
            return "not written"
    try:
        model = load(path)
    except ValueError:
        return "refused"
    try:
        last = model[-1] if isinstance(model, Pipeline) else model
        last.transform(["goal match", ""])
        if not isinstance(last, LDA):
            last.predict(["goal match", ""], **({"covariates": [1.0, 2.0]} if last.covariate_names_ else {}))
        assert (last.engine, last.device, last.n_jobs, last.prior) == ("threads", "cpu", None, None)
    except ValueError:
        return "read, and says what is wrong"
    except TypeError as error:
        if "was fitted to counts" not in str(error):
            raise
        return "read as a model of counts"
    return "works"


def make_table(rng: random.Random, folder: Path) -> Path:
    """A table of odd cells, in one of the formats, of which half are damaged."""
    names = [rng.choice([*CELLS, "text", "label"]) for _ in range(rng.randint(1, 5))]
    rows = [[rng.choice(CELLS) for _ in names] for _ in range(rng.randint(0, 8))]
    kind = rng.choice(["csv", "tsv", "jsonl", "parquet"])
    path = folder / f"case.{kind}"
    if kind == "parquet":
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=False)) if rows else {"a": []}
        pq.write_table(pa.table({name.replace("\x00", ""): cells for name, cells in columns.items()}), path)
    elif kind == "jsonl":
        odd = [*CELLS, *(value for value in ODD if value == value)]
        lines = [{name: rng.choice(odd) for name in names} for _ in rows]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    else:
        file = io.StringIO()
        csv.writer(file, delimiter=rng.choice(",;") if kind == "csv" else "\t").writerows([names, *rows])
        path.write_bytes(file.getvalue().encode(rng.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"]), "replace"))
    if rng.random() < 0.5 and kind != "parquet":
        path.write_bytes(change_bytes(rng, path.read_bytes()))
    return path


def table_case(rng: random.Random, folder: Path) -> str:
    """One odd table: how it ended."""
    path = make_table(rng, folder)
    try:
        table = read_table(path)
        for name in table.column_names:
            cells = column(table, path, name)
            for ask in (lambda cells: guess(cells, ";"), as_classes):
                try:
                    ask(cells)
                except ValueError:
                    continue
    except (ValueError, OSError):
        return "refused"
    return "works"


def fuzz(n: int, seed: int, case: Callable[[random.Random], str]) -> Counter[str]:
    """Run n cases; a defect is raised with the seed that repeats it."""
    found = Counter[str]()
    for i in range(n):
        began = time.perf_counter()
        try:
            found[case(random.Random(f"{seed}-{i}"))] += 1
        except Exception as error:
            raise AssertionError(f"case {i} of seed {seed}: {error!r}") from error
        seconds = time.perf_counter() - began
        assert seconds < SECONDS, f"case {i} of seed {seed} took {seconds:.0f} s"
    return found


def fuzz_files(n: int, seed: int = 0) -> Counter[str]:
    """Changed model files, by how they ended."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        sources = models(folder)
        return fuzz(n, seed, lambda rng: file_case(rng, sources, folder))


def fuzz_tables(n: int, seed: int = 0) -> Counter[str]:
    """Odd tables, by how they ended."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fuzz(n, seed, lambda rng: table_case(rng, Path(folder)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for what, run, number in (("files", fuzz_files, asked.files), ("tables", fuzz_tables, asked.tables)):
        began = time.perf_counter()
        counts = run(number, asked.seed)
        print(f"{number:,} {what}, {time.perf_counter() - began:.0f} s: {dict(counts)}", flush=True)
