"""The quality of topics and of prediction together: `python -m benchmarks.topics [--quick] [--out FILE.json]`.

Every system gets the same counts or the same lists of words, the same split, the same number of topics and one thread
(topica's `DiscLDA` needs a topic for each class and one more, and so has 21 for twenty classes at K = 20). Words that
no training document has are dropped, and so are documents without words. Each fit is a process of its own with a time
limit. The file is written after every fit, and what it has already is not run again, unless it failed with a smaller
limit; the topics are stored in a folder beside it. `--show FILE.json` prints the tables, and `--figure FILE.png` draws
score against NPMI.

- NPMI of the ten most probable words of a topic, from documents that have both words of a pair: of the training
  documents, and of a reference, which is the training documents of 20 Newsgroups, IMDb and Reuters as bags of words.
  Pairs with a word that the reference lacks are left out; "known" is the share of words that it has.
- C_v, from sliding windows over the words of the training documents in their order, words outside the vocabulary
  removed. Where only counts are known (20 Newsgroups without its articles) windows are over bags, their words sorted.
- Diversity: the share of distinct words among the 25 most probable words of all topics.
- Intrusion: how often the NPMI of the reference finds an intruder among five top words (`topic_quality.intrusion`).
  Topics that share the same frequent words make it easy: read it beside diversity.
- Agreement, for supertopic: the share of topics that at least three of four chains have found.
- Score: accuracy or R2 on test documents, by the system's own prediction if it is supervised, else by logistic or ridge
  regression on topic shares, its penalty by cross-validation.
- Seconds of the fit of the topics; regression on shares and prediction are counted apart.
- Stability, for each pair of seeds: the mean cosine of matched topics, and the share of them above 0.8 ("alike").

`pip install '.[benchmark]' topica` installs the peers.
"""

import argparse
import ctypes
import json
import pickle
import re
import signal
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks import corpora, history, peers, topic_quality
from benchmarks.peers import Task
from benchmarks.topic_systems import SYSTEMS

CORPORA = {
    "twenty": "20 Newsgroups, twenty groups",
    "ratings": "film ratings",
    "reuters": "Reuters, eight topics",
    "docstrings": "SciPy's docstrings",
}
CLASSES = ("twenty", "reuters", "docstrings")
FIGURES = {
    "npmi": "NPMI", "reference": "NPMI, reference", "known": "known", "c_v": "C_v", "diversity": "diversity",
    "intrusion": "intrusion", "agreement": "agreement", "score": "score", "cosine": "cosine", "alike": "alike",
    "fit": "fit, s", "predict": "predict, s",
}  # fmt: skip


class Problem(NamedTuple):
    """What is fitted, and what topics are measured on."""

    task: Task
    texts: list[list[str]]  # the words of the training documents in order
    there: sp.csc_matrix  # the training documents that have a word, (D, V)
    reference: sp.csc_matrix  # the documents of the reference that have a word, (documents, V)


# The corpora


def read(name: str) -> tuple[corpora.Split, list[str] | None]:
    """A corpus, and the texts of its training documents where they are known."""
    if name == "twenty":
        return corpora.newsgroups(), corpora.newsgroup_texts()
    if name != "ratings":
        return corpora.reuters_single() if name == "reuters" else corpora.docstrings()
    data, texts = corpora.movie_reviews(), [doc["text"] for doc in corpora.read_json(corpora.MOVIES_FILE)]
    order = np.random.default_rng(0).permutation(len(data.y))
    a, b = order[:4000], order[4000:]
    return corpora.Split(data.X[a], data.y[a], data.X[b], data.y[b], data.words), [texts[i] for i in a]


def load(name: str, quick: bool, bags: list[tuple[sp.csr_matrix, np.ndarray]]) -> Problem:
    data, texts = read(name)
    rng = np.random.default_rng(1)
    a, b = (rng.permutation(len(y))[: n if quick else None] for y, n in ((data.y, 400), (data.y_test, 200)))
    X, X_test = data.X[a], data.X_test[b]
    kept = np.unique(X.indices)
    full, full_test = (np.diff(part.indptr) > 0 for part in (X[:, kept].tocsr(), X_test[:, kept].tocsr()))
    a, b, words = a[full], b[full_test], data.words[kept]
    X, y, X_test, y_test, n_classes = data.X[a][:, kept], data.y[a], data.X_test[b][:, kept], data.y_test[b], 0
    if name != "ratings":
        classes, y = np.unique(y, return_inverse=True)
        y_test, n_classes = np.searchsorted(classes, y_test), len(classes)
    docs, docs_test = peers.lists(X, words), peers.lists(X_test, words)
    task = Task(0, n_classes, X, y, X_test, y_test, words, docs, docs_test, quick=quick)
    pattern = re.compile("[a-z]{2,}" if name == "twenty" else corpora.PATTERN)
    vocabulary = set(words)
    ordered = [[w for w in pattern.findall(texts[i].lower()) if w in vocabulary] for i in a] if texts else docs
    return Problem(task, ordered, sp.csc_matrix(X > 0, dtype=float), reference(bags, words))


def reference_bags() -> list[tuple[sp.csr_matrix, np.ndarray]]:
    """Training documents of three corpora with their vocabularies."""
    return [(data.X, data.words) for data in (corpora.newsgroups(), corpora.imdb(), corpora.reuters())]


def reference(bags: list[tuple[sp.csr_matrix, np.ndarray]], words: np.ndarray) -> sp.csc_matrix:
    """The documents of the reference that have each word of a vocabulary, (documents, V)."""
    place, parts = {word: i for i, word in enumerate(words)}, []
    for X, names in bags:
        column = np.array([place.get(name, -1) for name in names])
        there = sp.coo_matrix(X[:, column >= 0] > 0)
        parts.append(sp.csr_matrix((there.data, (there.row, column[column >= 0][there.col])), (X.shape[0], len(words))))
    return sp.csc_matrix(sp.vstack(parts), dtype=float)


# One fit


def measure(problem: Problem, topics: np.ndarray) -> dict[str, float]:
    return {
        "npmi": topic_quality.npmi(topics, problem.there),
        "reference": topic_quality.npmi(topics, problem.reference),
        "known": topic_quality.known(topics, problem.reference),
        "c_v": topic_quality.c_v(topics, problem.task.words, problem.texts),
        "diversity": topic_quality.diversity(topics),
        "intrusion": topic_quality.intrusion(topics, problem.reference),
    }


def one(path: str, name: str, n_topics: int, seed: int, out: str) -> None:
    """Fit and measure one system in this process, store its topics, and print a line of JSON."""
    warnings.simplefilter("ignore")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with who started it
    problem = pickle.loads(Path(path).read_bytes())
    task = problem.task._replace(n_topics=n_topics, seed=seed)
    import_module(SYSTEMS[name].package)  # not counted
    if name.startswith("supertopic"):  # nor is compilation
        warm = task._replace(X=task.X[:200], y=task.y[:200], X_test=task.X_test[:5], quick=True)
        SYSTEMS[name].fit(warm).predict()
    began = time.perf_counter()
    fitted = SYSTEMS[name].fit(task)
    done = time.perf_counter()
    figures = {"score": task.score(fitted.predict()), "fit": done - began, "predict": time.perf_counter() - done}
    if fitted.agreement is not None:
        figures["agreement"] = fitted.agreement
    topics = fitted.topics / np.maximum(fitted.topics.sum(axis=1, keepdims=True), 1e-12)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out, topics=topics.astype(np.float16))
    print("\n" + json.dumps(figures | measure(problem, topics)))


def topics_file(out: Path, corpus: str, name: str, n_topics: int, seed: int) -> Path:
    """Where the topics of a fit are: in a folder with the name of the JSON file."""
    return out.with_suffix("") / f"{corpus}-{name}-{n_topics}-{seed}.npz"


def pairs(out: Path, row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """How like the topics of a fit are to those of the same system's earlier fits, by their seeds."""
    key = (row["corpus"], row["system"], row["n_topics"])
    earlier = [r for r in rows if (r["corpus"], r["system"], r["n_topics"]) == key and "score" in r]
    paths = {r["seed"]: topics_file(out, *key, r["seed"]) for r in [row, *earlier]}
    topics = {seed: np.load(path)["topics"].astype(float) for seed, path in paths.items() if path.exists()}
    own = topics.pop(row["seed"])
    return {str(seed): topic_quality.matched(own, other) for seed, other in topics.items()}


# Tables and the figure


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Means over seeds, or over pairs of seeds, of each figure that is there; seconds are medians."""
    good = [row for row in rows if "score" in row]
    values = {key: [row[key] for row in good if key in row] for key in FIGURES}
    for key in ("cosine", "alike"):
        values[key] = [pair[key] for row in good for pair in row["pairs"].values()]
    return {
        key: float((np.median if key in ("fit", "predict") else np.mean)(found))
        for key, found in values.items()
        if found
    }


def groups(results: dict[str, Any], corpus: str, n_topics: int) -> dict[str, list[dict[str, Any]]]:
    """The rows of each system, in the order of SYSTEMS."""
    rows = [row for row in results["rows"] if row["corpus"] == corpus and row["n_topics"] == n_topics]
    found = {name: [row for row in rows if row["system"] == name] for name in SYSTEMS}
    return {name: mine for name, mine in found.items() if mine}


def markdown(results: dict[str, Any]) -> str:
    """A table for each corpus and number of topics."""
    lines, quick = [], "quick look: " if results["quick"] else ""
    for corpus, title in CORPORA.items():
        for n_topics in sorted({row["n_topics"] for row in results["rows"] if row["corpus"] == corpus}):
            score = "accuracy" if corpus in CLASSES else "R2"
            names = [score if key == "score" else name for key, name in FIGURES.items()]
            lines += [
                "",
                f"| {quick}{title}, K = {n_topics} | {' | '.join(names)} |",
                "| --- " * (len(names) + 1) + "|",
            ]
            for name, rows in groups(results, corpus, n_topics).items():
                means = summary(rows)
                cells = [cell(key, means[key]) if key in means else "-" for key in FIGURES]
                failed = [row["failed"] for row in rows if "failed" in row]
                note = f" ({len(failed)} failed: {failed[0]})" if failed else ""
                lines.append(f"| {name}{note} | {' | '.join(cells)} |")
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    settings = "; ".join(f"{name}: {system.settings}" for name, system in SYSTEMS.items())
    return "\n".join([*lines[1:], "", f"{results['date']}, {results['cpu']}; {versions}", "", settings])


def cell(key: str, value: float) -> str:
    return f"{value:.1f}" if key in ("fit", "predict") else f"{value:.3f}"


def figure(results: dict[str, Any], path: Path) -> None:
    """Score against NPMI, a panel for each corpus, a marker for each system: hollow with fewer topics, else full."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shown = [corpus for corpus in CORPORA if any(row["corpus"] == corpus for row in results["rows"])]
    sizes = sorted({row["n_topics"] for row in results["rows"]})
    columns = min(2, len(shown))
    n_rows = -(-len(shown) // columns)
    fig, axes = plt.subplots(n_rows, columns, figsize=(4.6 * columns, 3.6 * n_rows + 0.75), squeeze=False)
    colors = {"supertopic": "C3", "tomotopy": "C0", "topica": "C2", "sklearn": "C1", "gensim": "C4", "nmf": "0.35"}
    handles = {}
    for ax, corpus in zip(axes.flat, shown, strict=False):
        for name, marker in zip(SYSTEMS, "osDosos^vX", strict=True):
            color = colors[name.split("-")[0]]
            for n_topics in sizes:
                means = summary(groups(results, corpus, n_topics).get(name, []))
                if not means:
                    continue
                face = color if n_topics == sizes[-1] else "none"
                handles[name] = ax.scatter(
                    means["npmi"], means["score"], 52, marker=marker, edgecolors=color, facecolors=face, label=name
                )
        ax.set_title(CORPORA[corpus], fontsize=10)
        ax.set_xlabel("NPMI of the training documents")
        ax.set_ylabel("accuracy" if corpus in CLASSES else "R2")
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    title = f"hollow: K = {', '.join(map(str, sizes[:-1]))}; full: K = {sizes[-1]}" if len(sizes) > 1 else None
    names = [name for name in SYSTEMS if name in handles]
    fig.legend(
        [handles[name] for name in names], names, ncol=5, loc="lower center", frameon=False, fontsize=8, title=title
    )
    fig.tight_layout(rect=(0, 0.75 / (3.6 * n_rows + 0.75), 1, 1))
    fig.savefig(path, dpi=150)


# The run


def todo(options: argparse.Namespace, results: dict[str, Any], corpus: str) -> list[tuple[str, int, int]]:
    """System, number of topics and seed of the fits of a corpus that the file does not have."""
    done = {(row["corpus"], row["system"], row["n_topics"], row["seed"]) for row in results["rows"]}
    fits = [(name, k, seed) for seed in range(options.seeds) for k in options.topics for name in options.systems]
    return [fit for fit in fits if (corpus, *fit) not in done and find_spec(SYSTEMS[fit[0]].package)]


def run_all(options: argparse.Namespace, results: dict[str, Any]) -> None:
    lock, bags = Lock(), None

    def work(path: str, corpus: str, name: str, n_topics: int, seed: int) -> None:
        row = {"corpus": corpus, "system": name, "n_topics": n_topics, "seed": seed, "limit": options.limit}
        file = topics_file(options.out, corpus, name, n_topics, seed)
        file.unlink(missing_ok=True)
        row |= peers.run("benchmarks.topics", [path, name, str(n_topics), str(seed), str(file)], 1, options.limit)
        with lock:
            if "score" in row:
                row["pairs"] = pairs(options.out, row, results["rows"])
            results["rows"].append(row)
            options.out.write_text(json.dumps(results, indent=1) + "\n")
            print(row, file=sys.stderr, flush=True)

    for corpus in options.corpora:
        fits = todo(options, results, corpus)
        if not fits:
            continue
        bags = bags or reference_bags()
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
            path = f"{folder}/{corpus}"
            Path(path).write_bytes(pickle.dumps(load(corpus, options.quick, bags)))
            list(pool.map(lambda fit, path=path, corpus=corpus: work(path, corpus, *fit), fits))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="400 documents of two corpora, few sweeps, two seeds")
    parser.add_argument("--corpora", nargs="+", choices=list(CORPORA))
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--topics", nargs="+", type=int, help="numbers of topics (20 and 50)")
    parser.add_argument("--seeds", type=int, help="3 by default")
    parser.add_argument("--out", type=Path, default=Path("topics.json"))
    parser.add_argument("--show", type=Path, metavar="FILE.json", help="print the tables of a file, and run nothing")
    parser.add_argument("--figure", type=Path, metavar="FILE.png", help="draw score against NPMI")
    parser.add_argument("--jobs", type=int, help="fits at a time; seconds are best with 1, the default unless quick")
    parser.add_argument("--limit", type=float, default=1800, help="seconds of one fit, its prediction and its figures")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.corpora = options.corpora or (["ratings", "docstrings"] if options.quick else list(CORPORA))
    options.topics = options.topics or ([20] if options.quick else [20, 50])
    options.seeds = options.seeds or (2 if options.quick else 3)
    options.jobs = options.jobs or (2 if options.quick else 1)
    return options


def main() -> None:
    options = parse()
    if options.one:
        path, name, n_topics, seed, out = options.one
        return one(path, name, int(n_topics), int(seed), out)
    file = options.show or options.out
    results = json.loads(file.read_text()) if file.exists() else {"rows": []}
    if not options.show:
        if results.get("quick", options.quick) != options.quick:
            sys.exit(f"{file} has quick looks or whole runs: take another file for the others")
        results = history.about() | {"quick": options.quick, "rows": results["rows"]}
        results["rows"] = [row for row in results["rows"] if "score" in row or row["limit"] >= options.limit]
        for package in sorted({SYSTEMS[name].package for name in options.systems}):
            if not find_spec(package):
                print(f"{package} is missing and skipped: pip install {package}", file=sys.stderr)
        run_all(options, results)
    print(markdown(results))
    if options.figure:
        figure(results, options.figure)


if __name__ == "__main__":
    main()
