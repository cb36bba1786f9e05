"""Priors that know something, on 20 Newsgroups: seed words, a prior model, a stream of batches.

python -m benchmarks.priors [seeds transfer stream drift] [--seeds 5] [--jobs 2] [--develop]

--develop evaluates on a quarter of the training documents in place of the test documents: settings were chosen so.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks.corpora import Split, group_names, newsgroups
from supertopic import LDA, SLDAClassifier

K, WORDS, BATCHES, PASSES = 40, 10, 10, 2
Figures = dict[str, float]


def seed_words(data: Split) -> dict[str, list[str]]:
    """The ten words of each group with the largest chi-square of presence against the other groups.

    Words that are rarer in the group than elsewhere are left out. All labels of the training documents are used here:
    they stand for somebody who knows what the groups are about.
    """
    there, found = (data.X > 0).astype(float), {}
    for group in np.unique(data.y):
        inside = data.y == group
        more = np.ravel(there[inside].mean(axis=0) - there[~inside].mean(axis=0)) > 0
        found[str(group)] = data.words[np.argsort(-chi2(there, inside)[0] * more)[:WORDS]].tolist()
    return found


def few(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """The responses of a share of the documents; the others are unknown."""
    known = np.random.default_rng(seed).random(len(y)) < share
    return np.where(known, y.astype(str), None)


def linear(X, y, data: Split) -> float:
    known = np.array([label is not None for label in y])
    model = make_pipeline(TfidfTransformer(sublinear_tf=True), LogisticRegression(C=10.0, max_iter=500))
    return model.fit(X[known], y[known].astype(str)).score(data.X_test, data.y_test.astype(str))


def seeds_alone(data: Split, seed: int) -> Figures:
    """A document is of the group whose seeded topic has the largest share."""
    words = seed_words(data)
    lda = LDA(K, seeds=words, n_chains=4, random_state=seed).fit(data.X, feature_names=data.words)
    shares = lda.transform(data.X_test)[:, : len(words)]
    return {"seeds alone": float(np.mean(np.array(list(words))[shares.argmax(axis=1)] == data.y_test.astype(str)))}


def labels_alone(data: Split, seed: int, share: float) -> Figures:
    y, test = few(data.y, share, seed), data.y_test.astype(str)
    model = SLDAClassifier(K, random_state=seed).fit(data.X, y)
    return {
        f"{share:.0%} of labels alone": model.score(data.X_test, test),
        f"{share:.0%} of labels, logistic regression": linear(data.X, y, data),
    }


def both(data: Split, seed: int, share: float) -> Figures:
    model = SLDAClassifier(K, seeds=seed_words(data), random_state=seed)
    model.fit(data.X, few(data.y, share, seed), feature_names=data.words)
    return {f"{share:.0%} of labels and seeds": model.score(data.X_test, data.y_test.astype(str))}


def transfer(data: Split, seed: int) -> Figures:
    """Topics from all documents without labels, then a hundred labelled ones."""
    some = np.random.default_rng(seed).choice(len(data.y), 100, replace=False)
    X, y, test = data.X[some], data.y[some].astype(str), data.y_test.astype(str)
    lda = LDA(K, n_chains=4, random_state=seed).fit(data.X)
    return {
        "100 documents alone": SLDAClassifier(K, random_state=seed).fit(X, y).score(data.X_test, test),
        "100 documents, prior": SLDAClassifier(K, prior=lda, random_state=seed).fit(X, y).score(data.X_test, test),
        "100 documents, prior, topics alone": SLDAClassifier(K, prior=lda, words=False, random_state=seed)
        .fit(X, y)
        .score(data.X_test, test),
        "100 documents, logistic regression": linear(X, y, data),
    }


def full(data: Split, seed: int) -> Figures:
    began = time.perf_counter()
    score = SLDAClassifier(K, random_state=seed).fit(data.X, data.y).score(data.X_test, data.y_test)
    return {"full fit": score, "full fit, seconds": time.perf_counter() - began}


def passes(data: Split, seed: int, n: int, discount: float) -> Figures:
    """All documents in ten batches, once or several times."""
    order, began = np.random.default_rng(seed).permutation(len(data.y)), time.perf_counter()
    model, figures = SLDAClassifier(K, random_state=seed), {}
    for i in range(n):
        for batch in np.array_split(order, BATCHES):
            model.partial_fit(data.X[batch], data.y[batch], classes=np.unique(data.y), discount=discount)
        figures[f"passes: {i + 1}, discount {discount:g}"] = model.score(data.X_test, data.y_test)
    figures[f"{n} of discount {discount:g}, seconds"] = time.perf_counter() - began
    return figures


def drift(data: Split, seed: int, discount: float) -> Figures:
    """Which branch (comp, rec, ...) a document is from; its groups are others in the second half of the stream."""
    names = group_names()
    branches = ("comp", "rec", "sci", "talk")
    branch = {g: names[g].split(".")[0] for g in names if names[g].split(".")[0] in branches}
    place = {g: sorted(h for h in branch if branch[h] == branch[g]).index(g) for g in branch}
    rng, parts = np.random.default_rng(seed), []
    for half in (0, 1):
        docs = np.flatnonzero([g in branch and place[g] % 2 == half for g in data.y])
        parts += np.array_split(rng.permutation(docs), BATCHES // 2)
    test = np.array([g in branch and place[g] % 2 == 1 for g in data.y_test])
    X_test, y_test = data.X_test[test], np.array([branch[g] for g in data.y_test[test]])
    y, figures = np.array([branch.get(g, "") for g in data.y]), {}
    model = SLDAClassifier(K, random_state=seed)
    for i, batch in enumerate(parts):
        model.partial_fit(data.X[batch], y[batch], classes=branches, discount=discount)
        if i == BATCHES // 2 - 1 and discount == 1.0:
            figures["not updated"] = model.score(X_test, y_test)
    return figures | {f"updated, discount {discount:g}": model.score(X_test, y_test)}


TASKS: dict[str, list[Callable[[Split, int], Figures]]] = {
    "stream": [partial(passes, n=PASSES, discount=0.9), partial(passes, n=1, discount=1.0), full],
    "seeds": [partial(work, share=share) for share in (0.01, 0.05) for work in (labels_alone, both)] + [seeds_alone],
    "drift": [partial(drift, discount=discount) for discount in (1.0, 0.7)],
    "transfer": [transfer],
}


def read(develop: bool) -> Split:
    data = newsgroups()
    if not develop:
        return data
    train, held = train_test_split(np.arange(len(data.y)), test_size=0.25, random_state=0, stratify=data.y)
    return Split(data.X[train], data.y[train], data.X[held], data.y[held], data.words)


def run(name: str, work: Callable[[Split, int], Figures], seed: int, develop: bool) -> tuple[str, Figures]:
    figures = work(read(develop), seed)
    print(name, seed, {row: round(value, 3) for row, value in figures.items()}, flush=True)
    return name, figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tasks", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--develop", action="store_true")
    given = parser.parse_args()
    work = [(name, f, seed) for name in given.tasks or TASKS for f in TASKS[name] for seed in range(given.seeds)]
    found = Parallel(given.jobs)(delayed(run)(*some, given.develop) for some in work)
    table: dict[str, dict[str, list[float]]] = {}
    for name, figures in found:
        for row, value in figures.items():
            table.setdefault(name, {}).setdefault(row, []).append(value)
    for name, rows in table.items():
        print(f"\n| {name} | mean | sd |\n| --- | --- | --- |")
        for row, values in rows.items():
            print(f"| {row} | {np.mean(values):.3f} | {np.std(values, ddof=min(1, len(values) - 1)):.3f} |")


if __name__ == "__main__":
    main()
