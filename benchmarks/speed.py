"""`python -m benchmarks.speed [many]`: supertopic against tomotopy and scikit-learn, both sides in one run.

Prints a table, adds the run to results.json and draws results.svg beside it. With `many` it runs 10,000 topics alone,
and adds to many_topics.json: one iteration of tomotopy takes minutes. `pip install '.[benchmark]'` installs the peers.
Figures are times of the whole `fit` a token and iteration; the two sides take turns, and medians are shown.
"""

import subprocess
import sys
import time
from statistics import median

import matplotlib
import numpy as np
import tomotopy
from rich.console import Console
from rich.table import Table
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks import history
from benchmarks.corpora import imdb, newsgroups
from supertopic import LDA, SLDAClassifier

REPEATS = 3
out = Console(width=160)
rows: list[dict] = []


def ours(X, y, n_topics, n_iterations, **parameters):
    """Nanoseconds a token and iteration of a whole fit, and the model."""
    # one chain and nothing before or after it, as the peer's
    alone = {"init": "random", "calibrate": False, "n_chains": 1, "alpha": 1.0}
    parameters = {"n_jobs": 1, "random_state": 0, "burn_in": n_iterations - 2, "n_draws": 2} | alone | parameters
    began = time.perf_counter()
    model = SLDAClassifier(n_topics, **parameters).fit(X, y)
    return (time.perf_counter() - began) / n_iterations / X.sum() * 1e9, model


def theirs(X, Y, n_topics, n_iterations, c=25.0):
    """The same for tomotopy; adding the documents is not counted."""
    n_columns = Y.shape[1]
    settings = {"vars": "b" * n_columns, "glm_param": [c] * n_columns, "alpha": 1 / n_topics, "eta": 0.01, "seed": 0}
    model = tomotopy.SLDAModel(k=n_topics, **settings)
    for words, y in zip(as_words(X), Y, strict=True):
        if words:
            model.add_doc(words, y.tolist())
    model.train(0, workers=1)
    began = time.perf_counter()
    model.train(n_iterations, workers=1, show_progress=False)
    return (time.perf_counter() - began) / n_iterations / model.num_words * 1e9, model


def as_words(X):
    names = np.arange(X.shape[1]).astype(str)
    return [list(names[np.repeat(row.indices, row.data)]) for row in (X[d] for d in range(X.shape[0]))]


def compare(work, goal, left, right, names=("supertopic", "tomotopy"), unit="ns", repeats=REPEATS):
    """Let the two sides take turns: a row with their medians, and how many times faster the left one is."""
    pairs = [(left(), right()) for _ in range(repeats)]
    a, b = (median(side) for side in zip(*pairs, strict=True))
    rows.append({"work": work, "goal": goal, names[0]: a, names[1]: b, "ratio": b / a, "unit": unit})
    out.print(
        f"{work}: {names[0]} {a:.1f} {unit}, {names[1]} {b:.1f} {unit}: {b / a:.2f}x, goal {goal}", highlight=False
    )


def against_tomotopy(news):
    binary = (news.y <= 10).astype(float)[:, None]
    for n_topics, goal, n_theirs, repeats in (
        (20, "3x", 50, 3),
        (37, "3x", 50, 3),
        (100, "3x", 50, 3),
        (1000, "10x", 15, 1),
    ):
        compare(
            f"1 column, K = {n_topics}, one thread",
            goal,
            left=lambda k=n_topics: ours(news.X, binary[:, 0], k, 50)[0],
            right=lambda k=n_topics, n=n_theirs: theirs(news.X, binary, k, n)[0],
            repeats=repeats,
        )
    columns = (news.y[:, None] == np.unique(news.y)).astype(float)
    compare(
        "20 columns, K = 40, c = 64, one thread",
        "40x",
        left=lambda: ours(news.X, news.y, 40, 40, c=64.0)[0],
        right=lambda: theirs(news.X, columns, 40, 3, c=64.0)[0],
        repeats=1,
    )


def many_topics(news):
    """10,000 topics, most of which a document does not have; one iteration of the peer."""
    binary = (news.y <= 10).astype(float)[:, None]
    compare(
        "1 column, K = 10,000, one thread",
        "20x",
        left=lambda: ours(news.X, binary[:, 0], 10_000, 20, sampler="delayed")[0],
        right=lambda: theirs(news.X, binary, 10_000, 1)[0],
        repeats=1,
    )


def against_itself(news):
    binary = news.y <= 10
    compare(
        "sparse sampler, K = 100 against K = 1000",
        "at most 2x",
        names=("K = 100", "K = 1000"),
        left=lambda: ours(news.X, binary, 100, 100, sampler="delayed")[0],
        right=lambda: ours(news.X, binary, 1000, 100, sampler="delayed")[0],
        repeats=1,
    )
    for work, y, c in (("20 columns, K = 40", news.y, 64.0), ("1 column, K = 40", binary, 25.0)):
        compare(
            f"{work}, two threads against one",
            "1.8x",
            names=("two threads", "one thread"),
            left=lambda y=y, c=c: ours(news.X, y, 40, 30, n_jobs=2, c=c, sampler="delayed")[0],
            right=lambda y=y, c=c: ours(news.X, y, 40, 30, n_jobs=1, c=c, sampler="delayed")[0],
        )


def prediction(news, n_sweeps=40):
    """The 7,505 test documents, K = 40, equal sweeps and threads."""
    binary = (news.y <= 10).astype(float)[:, None]
    _, model = ours(news.X, binary[:, 0], 40, 30, predict_sweeps=n_sweeps)
    _, peer = theirs(news.X, binary, 40, 30)
    documents = [peer.make_doc(words, [0.0]) for words in as_words(news.X_test) if words]

    def seconds(verb):
        began = time.perf_counter()
        verb()
        return time.perf_counter() - began

    compare(
        f"prediction of 7,505 documents, K = 40, {n_sweeps} sweeps",
        "8x",
        left=lambda: seconds(lambda: model.predict_proba(news.X_test)),
        right=lambda: seconds(lambda: peer.infer(documents, iterations=n_sweeps, workers=1)),
        unit="s",
    )


def accuracy(news):
    """Seconds and test accuracy on the 20 groups, two threads, beside LDA and a linear SVM."""
    settings = {"alpha": 5.6, "burn_in": 60, "n_jobs": 2, "random_state": 0}
    sklearn_lda = LatentDirichletAllocation(40, n_jobs=2, random_state=0)
    models = {
        "SLDAClassifier, K = 40, c = 64": SLDAClassifier(40, c=64, words=False, **settings),
        "LDA, K = 40, then LinearSVC": make_pipeline(LDA(40, **settings), LinearSVC()),
        "scikit-learn's LDA, K = 40, then LinearSVC": make_pipeline(sklearn_lda, LinearSVC()),
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
        out.print(f"IMDb, K = 50, {X.sum():,} tokens: {nanoseconds:.1f} ns a token and iteration", highlight=False)
    return found


MEMORY = """
import resource, numpy as np, scipy.sparse as sp
from pathlib import Path
from supertopic import SLDAClassifier
n_docs, length, n_words = 100_000, 200, 20_000
words = 90 * np.arange(length, dtype=np.int32) + np.arange(n_docs, dtype=np.int32)[:, None] % 89
starts = np.arange(0, n_docs * length + 1, length)
X = sp.csr_matrix((np.ones(n_docs * length, np.int64), words.ravel(), starts), (n_docs, n_words))
del words
model = SLDAClassifier(100, burn_in=1, n_draws=1, n_chains=1, sampler="delayed").fit(X[:50], np.arange(50) % 2)
before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
model.fit(X, np.arange(n_docs) % 2)
status = Path("/proc/self/status").read_text()  # ru_maxrss would be that of the parent, which is larger
print((1024 * int(status.split("VmHWM:")[1].split()[0]) - before) / X.sum())
"""


def memory():
    """Bytes a token at the peak of a fit, beyond the caller's matrix: 100,000 documents of 200 words, K = 100."""
    bytes_a_token = float(subprocess.check_output([sys.executable, "-c", MEMORY], text=True))
    out.print(f"memory: {bytes_a_token:.1f} bytes a token at the peak, beyond the caller's matrix", highlight=False)
    return bytes_a_token


def answer(news):
    """Milliseconds of the probabilities of one document, K = 40, 8 chains, 54,000 words: the first time, and later."""
    _, model = ours(news.X, news.y, 40, 5, n_chains=8, n_jobs=2, n_draws=20)
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        model.predict_proba(news.X_test[:1])
        seconds.append(time.perf_counter() - began)
    found = {"first": 1e3 * seconds[0], "later": 1e3 * median(seconds[1:])}
    out.print(f"one document: {found['first']:.0f} ms the first time, then {found['later']:.1f} ms", highlight=False)
    return found


def plot(path):
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
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    about = history.about()
    out.print(about)
    news = newsgroups()
    if "many" in sys.argv[1:]:
        ours(news.X[::60], news.y[::60] <= 10, 3000, 4, sampler="delayed")  # compiles
        many_topics(news)
        history.append(history.place("many_topics"), {"rows": rows})
        return
    for sampler, n_topics in (("collapsed", 5), ("delayed", 5), ("delayed", 200)):  # compile
        ours(news.X[::60], news.y[::60], n_topics, 4, sampler=sampler)[1].predict(news.X_test[:5])
    against_tomotopy(news)
    against_itself(news)
    prediction(news)
    results = {"rows": rows, "accuracy": accuracy(news), "imdb": growth()}
    results |= {"bytes_a_token": memory(), "answer_ms": answer(news)}
    history.append(history.place("results"), results)
    plot(history.place("results").with_suffix(".svg"))
    table = Table("work", "goal", "ratio", title=f"{about['date']}, {about['cpu']}")
    for row in rows:
        table.add_row(row["work"], row["goal"], f"{row['ratio']:.2f}x")
    out.print(table)


if __name__ == "__main__":
    main()
