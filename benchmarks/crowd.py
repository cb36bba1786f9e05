"""Several raters: `python -m benchmarks.crowd [groups|movies] [--seeds N] [--jobs N] [--labels 2 5] [--out FILE]`.

groups: 20 Newsgroups with five synthetic raters. Three are right in 90, 72.5 and 55 % of the documents, an adversary in
5 %, and say any other class otherwise; the fifth always says the same class. Each document has the answers of 2 or of
all 5 of them. The test documents have their own classes. movies: 1,500 film reviews with about five ratings each of
135 people, and test reviews with the critic's own rating. Each fit runs on one thread.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks import corpora, history
from supertopic import SLDAClassifier, SLDACrowdClassifier, SLDACrowdRegressor, SLDARegressor
from supertopic.baselines import dawid_skene

RIGHT = (0.9, 0.725, 0.55, 0.05)


def answers(y: np.ndarray, n_labels: int, seed: int) -> np.ndarray:
    """Answers (n_docs, 5) of the synthetic raters, NaN where a rater was not asked."""
    rng, classes = np.random.default_rng([seed, n_labels]), np.unique(y)
    place = np.searchsorted(classes, y)
    found = np.full((len(y), 5), np.nan)
    for r, right in enumerate(RIGHT):
        wrong = (place + rng.integers(1, len(classes), len(y))) % len(classes)
        found[:, r] = classes[np.where(rng.random(len(y)) < right, place, wrong)]
    found[:, 4] = classes[rng.integers(len(classes))]
    found[np.argsort(np.argsort(rng.random(found.shape), axis=1), axis=1) >= n_labels] = np.nan
    return found


def majority(Y: np.ndarray, seed: int) -> np.ndarray:
    """The most frequent answer about each document, ties at random."""
    rng, found = np.random.default_rng(seed), np.empty(len(Y))
    for d, row in enumerate(Y):
        values, counts = np.unique(row[~np.isnan(row)], return_counts=True)
        found[d] = rng.choice(values[counts == counts.max()])
    return found


def groups(system: str, n_labels: int, seed: int, validate: bool) -> dict:
    """One row: a system on 20 Newsgroups, tested on its test documents, or on a fifth of the training documents."""
    warnings.simplefilter("ignore")
    data = corpora.newsgroups()
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if validate:
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
        X, y, X_test, y_test = X[train], y[train], X[test], y[test]
    Y = answers(y, n_labels, seed)
    name, _, c = system.partition(" c=")
    more = {"random_state": seed, "n_jobs": 1} | ({"c": float(c)} if c else {})
    began, found = time.perf_counter(), {}
    if name == "raters":
        model = SLDACrowdClassifier(**more).fit(X, Y)
        found["labels"] = float((model.classes_[model.infer_labels(X, Y).argmax(axis=1)] == y).mean())
    else:
        labels = {"true": y, "majority": majority(Y, seed)}.get(name)
        labels = dawid_skene(Y).labels if labels is None else labels
        found["labels"] = float((labels == y).mean())
        model = SLDAClassifier(**more).fit(X, labels)
    p = model.predict_proba(X_test)
    found |= {"accuracy": float((model.classes_[p.argmax(axis=1)] == y_test).mean())}
    found |= {"log_loss": float(log_loss(y_test, p, labels=model.classes_)), "seconds": time.perf_counter() - began}
    return {"table": "groups", "system": system, "labels a document": n_labels, "seed": seed} | found


def movies(system: str, seed: int) -> dict:
    warnings.simplefilter("ignore")
    z = np.load(corpora.DATA / "movie_raters.npz")
    X, X_test = (sp.csr_matrix((z[f"{k}_data"], z[f"{k}_indices"], z[f"{k}_indptr"]), shape=z[f"{k}_shape"])
                 for k in ("X", "Xt"))  # fmt: skip
    Y, y, y_test, gold = z["ratings"], z["y"], z["yt"], None
    began = time.perf_counter()
    more = {"random_state": seed, "n_jobs": 1}
    if system.startswith("raters"):
        if "gold" in system:
            gold = np.where(np.random.default_rng(seed).permutation(len(y)) < 100, y, np.nan)
        model = SLDACrowdRegressor(**more).fit(X, Y, gold=gold)
    else:
        model = SLDARegressor(**more).fit(X, y if system == "true" else np.nanmean(Y, axis=1))
    lower, upper = model.predict_interval(X_test)
    found = {"r2": float(model.score(X_test, y_test)), "inside": float(((y_test >= lower) & (y_test <= upper)).mean())}
    if system.startswith("raters"):
        found["ratings_rmse"] = float(np.sqrt(((model.infer_ratings(X, Y, gold=gold) - y) ** 2).mean()))
    return {"table": "movies", "system": system, "seed": seed} | found | {"seconds": time.perf_counter() - began}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=["groups", "movies"])
    parser.add_argument("--systems", nargs="*", default=["raters", "Dawid-Skene", "majority", "true"])
    parser.add_argument("--labels", nargs="*", type=int, default=[2, 5])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--validate", action="store_true", help="on a fifth of the training documents")
    parser.add_argument("--out", type=Path, default=history.place("crowd"))
    asked = parser.parse_args()
    tasks = []
    if "groups" in asked.tables:
        tasks += [
            delayed(groups)(system, n, seed, asked.validate)
            for seed in range(asked.seeds) for n in asked.labels for system in asked.systems
            if system != "true" or n == asked.labels[0]
        ]  # fmt: skip
    if "movies" in asked.tables:
        systems = ("raters", "raters, 100 gold ratings", "mean", "true")
        tasks += [delayed(movies)(system, seed) for seed in range(asked.seeds) for system in systems]
    rows = []
    for row in Parallel(n_jobs=asked.jobs, return_as="generator_unordered")(tasks):
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        rows.append(row)
        asked.out.write_text(json.dumps(history.about() | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
