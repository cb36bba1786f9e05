"""`python -m benchmarks`: supertopic against tomotopy and scikit-learn, both sides in one run.

Prints a table, and writes results.json and results.svg beside this file. `pip install '.[benchmark]'` installs the
peers. Figures are seconds of the whole `fit` a token and iteration; the two sides take turns, and medians are shown.
"""

import json
import os
import platform
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.corpora import imdb, newsgroups
from supertopic import LDA, SLDAClassifier

REPEATS = 3
ITERATIONS = 50
out = Console()
rows: list[dict] = []


def ours(X, y, n_topics, iterations, n_jobs=1, c=25.0, **parameters):
    """Nanoseconds a token and iteration of a whole fit, and the model."""
    model = SLDAClassifier(
        n_topics, c=c, burn_in=iterations - 2, n_draws=2, n_jobs=n_jobs, random_state=0, **parameters
    )
    began = time.perf_counter()
    model.fit(X, y)
    return (time.perf_counter() - began) / iterations / X.sum() * 1e9, model


def tomotopy(X, Y, n_topics, iterations, workers=1, c=25.0):
    """The same for tomotopy; reading the documents is not counted."""
    import tomotopy as tp

    model = tp.SLDAModel(
        k=n_topics, vars="b" * Y.shape[1], glm_param=[c] * Y.shape[1], alpha=1 / n_topics, eta=0.01, seed=0
    )
    names = np.arange(X.shape[1]).astype(str)
    for d in range(X.shape[0]):
        row = X[d]
        if row.nnz:
            model.add_doc(list(names[np.repeat(row.indices, row.data)]), Y[d].tolist())
    model.train(0, workers=workers)
    began = time.perf_counter()
    model.train(iterations, workers=workers, show_progress=False)
    return (time.perf_counter() - began) / iterations / model.num_words * 1e9, model


def compare(work, goal, left, right, names=("supertopic", "tomotopy"), unit="ns", repeats=REPEATS):
    """Let the two sides take turns; a row of the table with their medians and the ratio."""
    pairs = [(left(), right()) for _ in range(repeats)]
    a, b = (median(side) for side in zip(*pairs, strict=True))
    rows.append({"work": work, "goal": goal, names[0]: a, names[1]: b, "ratio": b / a, "unit": unit})
    out.print(
        f"{work}: {names[0]} {a:.1f} {unit}, {names[1]} {b:.1f} {unit}: {b / a:.2f}x (goal {goal})", highlight=False
    )


def against_tomotopy(news):
    binary = (news.y <= 10).astype(float)[:, None]
    for n_topics, goal, iterations, repeats in (
        (20, "3x", 50, 3),
        (37, "3x", 50, 3),
        (100, "3x", 50, 3),
        (1000, "10x", 50, 1),
    ):
        compare(
            f"1 column, K = {n_topics}, one thread", goal, repeats=repeats,
            left=lambda: ours(news.X, binary[:, 0], n_topics, iterations)[0],
            right=lambda: tomotopy(news.X, binary, n_topics, min(iterations, 50 if n_topics < 500 else 15))[0],
        )  # fmt: skip
    columns = (news.y[:, None] == np.unique(news.y)).astype(float)
    compare(
        "20 columns, K = 40, c = 64, one thread", "40x", repeats=1,
        left=lambda: ours(news.X, news.y, 40, 40, c=64.0)[0],
        right=lambda: tomotopy(news.X, columns, 40, 3, c=64.0)[0],
    )  # fmt: skip


def against_itself(news):
    binary = news.y <= 10
    compare(
        "K = 1000 against K = 100", "at most 2x", names=("K = 100", "K = 1000"), repeats=1,
        left=lambda: ours(news.X, binary, 100, 100, sampler="delayed")[0],
        right=lambda: ours(news.X, binary, 1000, 100, sampler="delayed")[0],
    )  # fmt: skip
    for work, y, n_topics, c in (("20 columns, K = 40", news.y, 40, 64.0), ("1 column, K = 40", binary, 40, 25.0)):
        compare(
            f"{work}: one thread against two", "1.8x", names=("two threads", "one thread"),
            left=lambda y=y, k=n_topics, c=c: ours(news.X, y, k, 30, n_jobs=2, c=c, sampler="delayed")[0],
            right=lambda y=y, k=n_topics, c=c: ours(news.X, y, k, 30, n_jobs=1, c=c, sampler="delayed")[0],
        )  # fmt: skip


def prediction(news):
    """The 7,505 test documents, K = 40, equal sweeps and threads."""
    binary = (news.y <= 10).astype(float)[:, None]
    sweeps = 40
    _, mine = ours(news.X, binary[:, 0], 40, 30)
    mine.set_params(predict_sweeps=sweeps)
    _, theirs = tomotopy(news.X, binary, 40, 30)
    names = np.arange(news.X.shape[1]).astype(str)
    tests = [names[np.repeat(row.indices, row.data)] for row in (news.X_test[d] for d in range(news.X_test.shape[0]))]
    documents = [theirs.make_doc(list(words), [0.0]) for words in tests if len(words)]

    def timed(verb):
        began = time.perf_counter()
        verb()
        return time.perf_counter() - began

    compare(
        f"prediction of 7,505 documents, K = 40, {sweeps} sweeps", "8x", unit="s",
        left=lambda: timed(lambda: mine.predict_proba(news.X_test)),
        right=lambda: timed(lambda: theirs.infer(documents, iter=sweeps, workers=1)),
    )  # fmt: skip


def accuracy(news):
    """Seconds and test accuracy on the 20 groups, two threads."""
    models = {
        "SLDAClassifier, K = 40, c = 64": SLDAClassifier(40, c=64, alpha=5.6, burn_in=60, n_jobs=2, random_state=0),
        "LDA, K = 40, then LinearSVC": make_pipeline(
            LDA(40, alpha=5.6, burn_in=60, n_jobs=2, random_state=0), LinearSVC()
        ),
        "scikit-learn's LDA, K = 40, then LinearSVC": make_pipeline(
            LatentDirichletAllocation(40, n_jobs=2, random_state=0), LinearSVC()
        ),
    }
    found = []
    for name, model in models.items():
        began = time.perf_counter()
        score = model.fit(news.X, news.y).score(news.X_test, news.y_test)
        found.append({"model": name, "accuracy": score, "seconds": time.perf_counter() - began})
        out.print(f"{name}: accuracy {score:.3f} in {found[-1]['seconds']:.1f} s", highlight=False)
    return found


def growth():
    """A sixteenth, a quarter and all of IMDb's training reviews: time a token and iteration."""
    reviews = imdb()
    order = np.random.default_rng(0).permutation(len(reviews.y))
    found = []
    for part in (16, 4, 1):
        chosen = np.sort(order[: len(order) // part])
        X = reviews.X[chosen]
        nanoseconds = median(ours(X, reviews.y[chosen], 50, 30, sampler="delayed")[0] for _ in range(REPEATS))
        found.append({"tokens": int(X.sum()), "ns": nanoseconds})
        out.print(f"IMDb, {X.sum():,} tokens: {nanoseconds:.1f} ns a token and iteration", highlight=False)
    return found


MEMORY = """
import resource, sys, numpy as np, scipy.sparse as sp
from supertopic import SLDAClassifier
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
n_docs, length, n_words, n_topics = int(sys.argv[1]), 200, 20_000, 100
rng = np.random.default_rng(0)
indices = np.sort(rng.integers(0, n_words, (n_docs, length), dtype=np.int32), axis=1).ravel()
X = sp.csr_matrix((np.ones(n_docs * length, np.int64), indices, np.arange(0, n_docs * length + 1, length)), (n_docs, n_words))
SLDAClassifier(n_topics, burn_in=1, n_draws=1, sampler="delayed").fit(X[:50], np.arange(50) % 2)
before = peak()
SLDAClassifier(n_topics, burn_in=1, n_draws=1, sampler="delayed").fit(X, np.arange(n_docs) % 2)
print(n_docs * length, peak() - before)
"""


def memory():
    """Bytes a token beyond the caller's matrix, from the growth of the peak between two corpora."""
    sizes = [
        [int(x) for x in subprocess.check_output([sys.executable, "-c", MEMORY, str(n)], text=True).split()]
        for n in (20_000, 100_000)
    ]
    bytes_a_token = (sizes[1][1] - sizes[0][1]) / (sizes[1][0] - sizes[0][0])
    out.print(f"memory: {bytes_a_token:.1f} bytes a token at the peak, beyond the caller's matrix", highlight=False)
    return bytes_a_token


def cold_start():
    """Seconds of the first import, and of the first fit and prediction with nothing compiled and with everything cached."""
    code = (
        "import time; t = time.perf_counter(); import supertopic; a = time.perf_counter();"
        "from supertopic import SLDAClassifier; from supertopic.datasets import make_corpus; b = make_corpus(random_state=0);"
        "t2 = time.perf_counter(); SLDAClassifier(5, burn_in=2, n_draws=2).fit(b.X, b.y).predict(b.X);"
        "print(a - t, time.perf_counter() - t2)"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as cache:
        runs = [
            subprocess.check_output(
                [sys.executable, "-c", code], text=True, env=os.environ | {"NUMBA_CACHE_DIR": cache}
            )
            for _ in range(2)
        ]
    (_, first), (imported, second) = ([float(x) for x in run.split()] for run in runs)
    out.print(f"import {imported:.2f} s; first fit and predict {first:.1f} s, cached {second:.2f} s", highlight=False)
    return {"import": imported, "first": first, "cached": second}


def plot(path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    shown = [row for row in rows if "tomotopy" in row and row["unit"] == "ns"]
    figure, axes = plt.subplots(figsize=(8, 3.6))
    places = np.arange(len(shown))
    for shift, name in ((-0.2, "supertopic"), (0.2, "tomotopy")):
        bars = axes.barh(places + shift, [row[name] for row in shown], 0.38, label=name)
        axes.bar_label(bars, [f"{row[name]:,.0f}" for row in shown], padding=3)
    axes.set_yticks(places, [row["work"].replace(", one thread", "") for row in shown])
    axes.set(xscale="log", xlabel="nanoseconds a token and iteration, one thread")
    axes.invert_yaxis()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def main():
    packages = ("supertopic", "tomotopy", "numba", "numpy", "scikit-learn")
    about = {"date": str(date.today()), "cpu": cpu(), "versions": {name: version(name) for name in packages}}
    out.print(about)
    news = newsgroups()
    ours(news.X[:200], news.y[:200], 5, 4, sampler="delayed")  # compile
    ours(news.X[:200], news.y[:200], 5, 4)
    ours(news.X[:200], news.y[:200], 200, 4, sampler="delayed")
    against_tomotopy(news)
    against_itself(news)
    prediction(news)
    results = about | {"rows": rows, "accuracy": accuracy(news), "imdb": growth()}
    results |= {"bytes_a_token": memory(), "cold_start": cold_start()}
    folder = Path(__file__).parent
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    plot(folder / "results.svg")
    table = Table("work", "goal", "ratio", title=f"{about['date']}, {about['cpu']}")
    for row in rows:
        table.add_row(row["work"], row["goal"], f"{row['ratio']:.2f}x")
    out.print(table)


main()
