"""supertopic and other topic models on the same documents: `python -m benchmarks.peers [--quick] [--out FILE.json]`.

Everyone gets the same counts or the same lists of words, the same split and the same number of topics. Seconds are of
the whole `fit`, from counts or lists of words to a model that predicts, and of the prediction of all test documents.
Each fit is a process of its own with a time limit. The file is written after every fit, and what it has already is not
run again, unless it failed with a smaller limit. `--show FILE.json` prints the tables.
`pip install '.[benchmark]' topica` installs the peers.
"""

import argparse
import ctypes
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, median, stdev
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from benchmarks import corpora, history
from supertopic import SLDAClassifier, SLDARegressor

TASKS = {
    "ratings": "film ratings, 4,000 documents, K = 50",
    "pair": "20 Newsgroups, two groups, K = 20",
    "twenty": "20 Newsgroups, twenty groups, K = 40",
}


class Task(NamedTuple):
    """What a system gets. Classes are numbered from 0; a document without words has the first word once."""

    n_topics: int
    n_classes: int  # 0: ratings
    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray
    words: np.ndarray
    docs: list[list[str]]
    docs_test: list[list[str]]
    seed: int = 0
    threads: int = 1
    quick: bool = False

    def times(self, n: int) -> int:
        """As many iterations, or a few for a quick look."""
        return max(4, n // 25) if self.quick else n

    def score(self, predicted: np.ndarray) -> float:
        found = np.mean(predicted == self.y_test) if self.n_classes else r2_score(self.y_test, predicted)
        return float(found)


Predict = Callable[[], np.ndarray]  # of all test documents
Fit = tuple[Any, Predict]  # the model, and what predicts


def load(name: str, quick: bool) -> Task:
    if name == "ratings":
        data = corpora.movie_reviews()
        order = np.random.default_rng(0).permutation(len(data.y))
        a, b = order[:4000], order[4000:]
        data = corpora.Split(data.X[a], data.y[a], data.X[b], data.y[b], data.words)
    else:
        data = corpora.newsgroups() if name == "twenty" else corpora.newsgroups_pair(corpora.newsgroups())
    rng = np.random.default_rng(1)
    a, b = (rng.permutation(len(y))[: n if quick else None] for y, n in ((data.y, 400), (data.y_test, 200)))
    X, y, X_test, y_test = data.X[a], data.y[a], data.X_test[b], data.y_test[b]
    kept = np.unique(X.indices)  # words that no training document has can help nobody
    X, X_test, words, n_classes = X[:, kept].tocsr(), X_test[:, kept].tocsr(), data.words[kept], 0
    if name != "ratings":
        classes, y = np.unique(y, return_inverse=True)
        y_test, n_classes = np.searchsorted(classes, y_test), len(classes)
    n_topics = {"ratings": 50, "pair": 20, "twenty": 40}[name]
    docs, docs_test = lists(X, words), lists(X_test, words)
    return Task(n_topics, n_classes, X, y, X_test, y_test, words, docs, docs_test, quick=quick)


def lists(X: sp.csr_matrix, words: np.ndarray) -> list[list[str]]:
    rows = [
        words[np.repeat(X.indices[i:j], X.data[i:j])].tolist() for i, j in zip(X.indptr, X.indptr[1:], strict=False)
    ]
    return [row or [str(words[0])] for row in rows]


# The systems: each fits when called, and returns the model and a predictor


def supertopic(t: Task, **parameters) -> Fit:
    kind = SLDAClassifier if t.n_classes else SLDARegressor
    model = kind(t.n_topics, random_state=t.seed, n_jobs=t.threads, **parameters)
    if t.quick:
        model.set_params(burn_in=6, n_draws=4)
    model.fit(t.X, t.y)
    return model, lambda: model.predict(t.X_test)


def linear(t: Task):
    """The line on top of topic shares or tf-idf, its penalty by cross-validation."""
    if not t.n_classes:
        return RidgeCV(np.logspace(-3, 3, 13))
    return LogisticRegressionCV(Cs=np.logspace(-1, 3, 5), cv=3, max_iter=300, n_jobs=t.threads, scoring="accuracy")


def sklearn_lda(t: Task) -> Fit:
    lda = LatentDirichletAllocation(t.n_topics, max_iter=t.times(50), n_jobs=t.threads, random_state=t.seed)
    model = make_pipeline(lda, linear(t)).fit(t.X, t.y)
    return model, lambda: model.predict(t.X_test)


def tfidf(t: Task) -> Fit:
    model = make_pipeline(TfidfTransformer(sublinear_tf=True), linear(t)).fit(t.X, t.y)
    return model, lambda: model.predict(t.X_test)


def gensim_lda(t: Task) -> Fit:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaMulticore

    def bags(X):
        return list(Sparse2Corpus(X, documents_columns=False))

    def shares(X):
        gamma = lda.inference(bags(X))[0]
        return gamma / gamma.sum(axis=1, keepdims=True)

    settings = {"num_topics": t.n_topics, "passes": t.times(20), "iterations": t.times(400), "eval_every": None}
    names = dict(enumerate(t.words))
    lda = LdaMulticore(bags(t.X), id2word=names, workers=max(1, t.threads - 1), random_state=t.seed, **settings)
    model = linear(t).fit(shares(t.X), t.y)
    return model, lambda: model.predict(shares(t.X_test))


def tomotopy_slda(t: Task, ours: bool = False) -> Fit:
    """`glm_param` is the weight of a binary response and the variance of a linear one: with `ours` it is our c."""
    import tomotopy

    center, spread = (0.0, 1.0) if t.n_classes else (t.y.mean(), t.y.std())
    n_columns = t.n_classes if t.n_classes > 2 else 1
    columns = (t.y[:, None] == np.arange(t.n_classes)[-n_columns:]) if t.n_classes else (t.y[:, None] - center) / spread
    weight = (25.0 if t.n_classes else 1 / 8) if ours else 1.0
    kinds = ("b" if t.n_classes else "l") * n_columns
    model = tomotopy.SLDAModel(k=t.n_topics, vars=kinds, glm_param=[weight] * n_columns, seed=t.seed)
    for words, values in zip(t.docs, columns.astype(float).tolist(), strict=True):
        model.add_doc(words, values)
    model.train(t.times(200 if t.n_classes > 2 else 1000), workers=t.threads, show_progress=False)

    def predict():
        new = [model.make_doc(words) for words in t.docs_test]
        model.infer(new, iterations=t.times(100), workers=t.threads)
        found = np.array([model.estimate(doc) for doc in new])
        if t.n_classes > 2:
            return found.argmax(axis=1)
        return (found[:, 0] > 0.5).astype(int) if t.n_classes else center + spread * found[:, 0]

    return model, predict


def tomotopy_plda(t: Task) -> Fit:
    import tomotopy

    a_class, shared = blocks(t)
    model = tomotopy.PLDAModel(latent_topics=shared, topics_per_label=a_class, seed=t.seed)
    for words, label in zip(t.docs, t.y, strict=True):
        model.add_doc(words, labels=[str(label)])
    model.train(t.times(1000), workers=t.threads, show_progress=False)
    labels = np.array([int(label) for label in model.topic_label_dict])

    def predict():
        new = [model.make_doc(words) for words in t.docs_test]
        found = np.array(model.infer(new, iterations=t.times(100), workers=t.threads)[0])
        return labels[
            found[:, : a_class * t.n_classes].reshape(len(new), t.n_classes, a_class).sum(axis=2).argmax(axis=1)
        ]

    return model, predict


def blocks(t: Task) -> tuple[int, int]:
    """Topics of each class and of all, as many in all as the others have; at least one of each."""
    a_class = max(1, t.n_topics // 2 // t.n_classes)
    return a_class, max(1, t.n_topics - a_class * t.n_classes)


def topica_slda(t: Task, inference: str) -> Fit:
    import topica

    center, spread = t.y.mean(), t.y.std()
    model = topica.SupervisedLDA(t.n_topics, inference=inference, seed=t.seed)
    iters = t.times(25 if inference == "variational" else 300)
    model.fit(t.docs, ((t.y - center) / spread).tolist(), iters=iters, num_threads=t.threads)

    def predict():
        found = center + spread * np.asarray(model.predict(t.docs_test))
        return (found > 0.5).astype(int) if t.n_classes else found

    return model, predict


def topica_classes(t: Task, kind: str) -> Fit:
    import topica

    labels = [str(label) for label in t.y]
    if kind == "LabeledLDA":
        model = topica.LabeledLDA(seed=t.seed, num_threads=t.threads)
        model.fit(t.docs, [[label] for label in labels], iters=t.times(1000))
        return model, lambda: np.array(model.labels).astype(int)[
            np.asarray(model.transform(t.docs_test)).argmax(axis=1)
        ]
    model = topica.DiscLDA(*blocks(t), seed=t.seed) if kind == "DiscLDA" else topica.Scholar(t.n_topics, seed=t.seed)
    iters = t.times(1000 if kind == "DiscLDA" else 200)
    model.fit(t.docs, **({"y": labels} if kind == "DiscLDA" else {"labels": labels}), iters=iters)
    return model, lambda: np.array(model.predict(t.docs_test)).astype(int)


class System(NamedTuple):
    package: str
    fit: Callable[[Task], Fit]
    settings: str
    tasks: tuple[str, ...] = tuple(TASKS)


CLASSES, NUMBERS, LINE = ("pair", "twenty"), ("ratings", "pair"), "then ridge or logistic regression"
variational, gibbs = (partial(topica_slda, inference=name) for name in ("variational", "gibbs"))
disclda, labeled, scholar = (partial(topica_classes, kind=name) for name in ("DiscLDA", "LabeledLDA", "Scholar"))
SYSTEMS = {
    "supertopic": System("supertopic", supertopic, "defaults: 4 chains, 60 + 20 sweeps, topics and words"),
    "supertopic-topics": System("supertopic", partial(supertopic, words=False), "the same, topics alone"),
    "supertopic-1chain": System("supertopic", partial(supertopic, n_chains=1), "one chain, topics and words"),
    "tomotopy-slda": System("tomotopy", tomotopy_slda, "`SLDAModel`, 1,000 sweeps (20 binary columns: 200)"),
    "tomotopy-c": System("tomotopy", partial(tomotopy_slda, ours=True), "the same, `glm_param` 1 / 8 or 25"),
    "tomotopy-plda": System("tomotopy", tomotopy_plda, "`PLDAModel`, 1,000 sweeps, half of K shared", CLASSES),
    "topica-slda": System("topica", variational, "`SupervisedLDA`, variational, 25 iterations (default)", NUMBERS),
    "topica-gibbs": System("topica", gibbs, "`SupervisedLDA`, Gibbs, 300 sweeps", NUMBERS),
    "topica-disclda": System("topica", disclda, "`DiscLDA`, 1,000 sweeps (default), half of K shared", CLASSES),
    "topica-labeled": System("topica", labeled, "`LabeledLDA`, 1,000 sweeps (default), a topic a class", CLASSES),
    "topica-scholar": System("topica", scholar, "`Scholar`, 200 epochs (default)", ("pair",)),  # twenty: hours
    "sklearn-lda": System("sklearn", sklearn_lda, f"`LatentDirichletAllocation`, 50 passes, {LINE}"),
    "gensim-lda": System("gensim", gensim_lda, f"`LdaMulticore`, 20 passes, 400 iterations, {LINE}"),
    "tfidf": System("sklearn", tfidf, "tf-idf, then ridge or logistic regression: no topics"),
}


def one(path: str, name: str, seed: int, threads: int) -> None:
    """Fit and evaluate one system in this process, and print a line of JSON."""
    warnings.simplefilter("ignore")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with who started it
    task = pickle.loads(Path(path).read_bytes())._replace(seed=seed, threads=threads)
    import_module(SYSTEMS[name].package)  # not counted
    if name.startswith("supertopic"):  # nor is compilation
        warm = task._replace(X=task.X[:200], y=task.y[:200], X_test=task.X_test[:5], quick=True)
        SYSTEMS[name].fit(warm)[1]()
    began = time.perf_counter()
    _, predict = SYSTEMS[name].fit(task)
    fitted = time.perf_counter()
    score = task.score(predict())
    print("\n" + json.dumps({"score": score, "fit": fitted - began, "predict": time.perf_counter() - fitted}))


def run(module: str, arguments: list[str], threads: int, limit: float) -> dict[str, Any]:
    """One fit of a module in a process of its own, which is ended with all it has started when the limit is over."""
    limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")}
    command = [sys.executable, "-m", module, "--one", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, env=os.environ | limits, **pipes) as process:
        try:
            out, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return {"failed": f"over {limit:.0f} s"}
    if process.returncode:
        return {"failed": (errors.strip() or f"exit {process.returncode}").splitlines()[-1][:200]}
    return json.loads(out.splitlines()[-1])


def markdown(results: dict[str, Any]) -> str:
    """A table for each task: the mean score and, over several seeds, its sd; medians of seconds."""
    lines = []
    for task, title in TASKS.items():
        rows = [row for row in results["rows"] if row["task"] == task]
        if rows:
            title = f"quick look with 400 documents and few sweeps: {task}" if results["quick"] else title
            figure = "R2" if task == "ratings" else "accuracy"
            lines += ["", f"| {title} | settings | {figure} | fit, s | predict, s |", "| --- | --- | --- | --- | --- |"]
        for name in dict.fromkeys(row["system"] for row in rows):
            mine = [row for row in rows if row["system"] == name]
            good = [row for row in mine if "score" in row]
            cells = (
                [mine[0]["failed"], "-", "-"]
                if not good
                else [
                    f"{mean(row['score'] for row in good):.3f}"
                    + (f" ({stdev(row['score'] for row in good):.3f})" if len(good) > 1 else ""),
                    *(f"{median(row[key] for row in good):.1f}" for key in ("fit", "predict")),
                ]
            )
            lines.append(f"| {name} | {mine[0]['settings']} | {' | '.join(cells)} |")
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    threads = sorted({row["threads"] for row in results["rows"]})
    about = f"{results['date']}, {results['cpu']}, threads: {', '.join(map(str, threads))}; {versions}"
    return "\n".join([*lines[1:], "", about])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="400 documents and few sweeps: does everything run?")
    parser.add_argument("--out", type=Path, default=Path("peers.json"))
    parser.add_argument("--show", type=Path, metavar="FILE.json", help="print the tables of a file, and run nothing")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each fit")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time; seconds are best with 1")
    parser.add_argument("--only", default=",".join(SYSTEMS), help="systems, or beginnings of their names")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=900, help="seconds of one fit and its prediction")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        path, name, seed, threads = options.one
        return one(path, name, int(seed), int(threads))
    if options.show:
        return print(markdown(json.loads(options.show.read_text())))
    results = json.loads(options.out.read_text()) if options.out.exists() else {"rows": []}
    if results.get("quick", options.quick) != options.quick:
        parser.error(f"{options.out} has quick looks or whole runs: take another file for the others")
    results = history.about() | {"quick": options.quick, "rows": results["rows"]}
    results["rows"] = [row for row in results["rows"] if "score" in row or row["limit"] >= options.limit]
    done = {(row["task"], row["system"], row["seed"]) for row in results["rows"]}
    lock, chosen = Lock(), [name for name in SYSTEMS if name.startswith(tuple(options.only.split(",")))]
    for package in sorted({SYSTEMS[name].package for name in chosen}):
        if not find_spec(package):
            print(f"{package} is missing and skipped: pip install {package}", file=sys.stderr)
            chosen = [name for name in chosen if SYSTEMS[name].package != package]

    def work(path: str, task: str, name: str, seed: int) -> None:
        row = {"task": task, "system": name, "settings": SYSTEMS[name].settings, "seed": seed}
        arguments = [path, name, str(seed), str(options.threads)]
        row |= {"threads": options.threads, "limit": options.limit}
        row |= run("benchmarks.peers", arguments, options.threads, options.limit)
        with lock:
            results["rows"].append(row)
            options.out.write_text(json.dumps(results, indent=1) + "\n")
            print({key: row[key] for key in row if key != "settings"}, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        waits = []
        for task in options.tasks.split(","):
            path = f"{folder}/{task}"
            Path(path).write_bytes(pickle.dumps(load(task, options.quick)))
            todo = [(name, seed) for name in chosen for seed in range(options.seeds) if task in SYSTEMS[name].tasks]
            waits += [pool.submit(work, path, task, *one) for one in todo if (task, *one) not in done]
        for wait in waits:
            wait.result()
    print(markdown(results))


if __name__ == "__main__":
    main()
