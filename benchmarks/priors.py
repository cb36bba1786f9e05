"""Priors that know something, on 20 Newsgroups: seed words, a prior model, a stream of batches.

python -m benchmarks.priors [seeds transfer stream drift written] [--seeds 5] [--jobs 2] [--develop]

`written` has three corpora (20 Newsgroups, film ratings in four classes, Reuters with one topic a document). It
compares seed words that were written from the names of the classes alone with none, and with those of the next class.
--develop evaluates on a quarter of the training documents in place of the test documents: settings were chosen so.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import written_seeds
from benchmarks.corpora import Split, group_names, movie_grades, newsgroups, reuters_single
from supertopic import LDA, SLDAClassifier

K, WORDS, BATCHES, PASSES = 40, 10, 10, 2
LABELS, MOST = (1, 5, 20, 100), 4000  # of `written`: labels a class, and training documents
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


def draw(y: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most 4,000 documents, and the responses of n of each class or of all it has; the others are unknown.

    The documents are the same for every n, and fewer labels are a part of more: a class's first hundred in an order by
    chance come first, then all others.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    rank = np.empty(len(y), int)
    for label in np.unique(y):
        own = order[y[order] == label]
        rank[own] = np.arange(len(own))
    some = order[np.argsort(rank[order] >= max(LABELS), kind="stable")][:MOST]
    return some, np.where(rank[some] < n, y[some], None)


def shifted(words: dict[str, list[str]]) -> dict[str, list[str]]:
    """Wrong seeds: each class has the words of the next."""
    return dict(zip(words, [*list(words.values())[1:], next(iter(words.values()))], strict=True))


def named_groups() -> Split:
    """20 Newsgroups with the names of the groups as classes."""
    data, names = newsgroups(), group_names()
    y, y_test = (np.array([names[group] for group in part]) for part in (data.y, data.y_test))
    return data._replace(y=y, y_test=y_test)


def single_reuters() -> Split:
    """Reuters documents with exactly one of the most frequent topics, which is the class."""
    return reuters_single()[0]


class Written(NamedTuple):
    """A corpus with the seed words that a person would write for its classes."""

    read: Callable[[], Split]
    words: dict[str, list[str]]
    n_topics: int


WRITTEN = {
    "newsgroups": Written(named_groups, written_seeds.NEWSGROUPS, 40),
    "ratings": Written(movie_grades, written_seeds.RATINGS, 20),
    "reuters": Written(single_reuters, written_seeds.REUTERS, 20),
}


def written(data: Split, seed: int, corpus: str, n: int) -> Figures:
    """No seeds, those that a person wrote from the names of the classes, and wrong ones, with n labels a class."""
    classes, (some, y), figures = np.unique(data.y), draw(data.y, n, seed), {}
    words = {name: own for name, own in WRITTEN[corpus].words.items() if name in classes}
    for kind, seeds in (("no", None), ("written", words), ("wrong", shifted(words))):
        model = SLDAClassifier(WRITTEN[corpus].n_topics, seeds=seeds, random_state=seed)
        model.fit(data.X[some], y, feature_names=data.words)
        figures[f"{corpus}, labels a class: {n}, {kind} seeds"] = model.score(data.X_test, data.y_test)
    return figures


Work = tuple[Callable[[], Split], Callable[[Split, int], Figures]]  # what reads the corpus, and what is done with it
ON_GROUPS: dict[str, list[Callable[[Split, int], Figures]]] = {
    "stream": [partial(passes, n=PASSES, discount=0.9), partial(passes, n=1, discount=1.0), full],
    "seeds": [partial(work, share=share) for share in (0.01, 0.05) for work in (labels_alone, both)] + [seeds_alone],
    "drift": [partial(drift, discount=discount) for discount in (1.0, 0.7)],
    "transfer": [transfer],
}
TASKS: dict[str, list[Work]] = {name: [(newsgroups, work) for work in works] for name, works in ON_GROUPS.items()}
TASKS["written"] = [(WRITTEN[name].read, partial(written, corpus=name, n=n)) for name in WRITTEN for n in LABELS]


def divide(data: Split, develop: bool) -> Split:
    """The corpus with its test documents, or with a quarter of the training documents in their place."""
    if not develop:
        return data
    train, held = train_test_split(np.arange(len(data.y)), test_size=0.25, random_state=0, stratify=data.y)
    return Split(data.X[train], data.y[train], data.X[held], data.y[held], data.words)


def run(name: str, work: Work, seed: int, develop: bool) -> tuple[str, Figures]:
    read, measure = work
    figures = measure(divide(read(), develop), seed)
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
