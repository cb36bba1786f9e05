"""Whether topics have settled and are the same for other seeds: `python -m benchmarks.settling [CORPUS ...]`.

Fits each corpus with the defaults, and with the start and the burn-in of version 0.2 (`init="random"`, `burn_in=60`),
with two seeds each, and prints one row for each: seconds of a fit with two threads, the score and the log-loss with
words and of topics alone, R-hat of the log joint within the halves of a chain, how far the mean log joints of chains
are apart, topics that at least three of four chains have, NPMI of the ten most probable words in the training
documents, the chains that had settled, their burn-in, and the share of topics with a cosine above 0.8 between seeds.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import log_loss, r2_score

from benchmarks import corpora
from benchmarks.corpora import Split
from supertopic import SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.estimators.choose import npmi
from supertopic.report.diagnostics import rhat

K, SEEDS, GROUPS = 20, 2, (2, 8, 12, 14, 18)
KINDS = {"ratings": SLDARegressor, "cora": SLDACountRegressor}
SETTINGS = {"default": {}, "as version 0.2": {"init": "random", "burn_in": 60}}


def split(data: corpora.Corpus, n_train: int, y: np.ndarray | None = None) -> Split:
    """A corpus without a split of its own, cut at random."""
    order, y = np.random.default_rng(0).permutation(data.X.shape[0]), data.y if y is None else y
    a, b = order[:n_train], order[n_train:]
    return Split(data.X[a], y[a], data.X[b], y[b], data.words)


def five_groups() -> Split:
    data = corpora.newsgroups()
    a, b = (np.isin(y, GROUPS) for y in (data.y, data.y_test))
    return Split(data.X[a], data.y[a], data.X_test[b], data.y_test[b], data.words)


def some_reviews() -> Split:
    data, rng = corpora.imdb(), np.random.default_rng(0)
    a, b = rng.permutation(25_000)[:4000], rng.permutation(25_000)[:3000]
    return Split(data.X[a], data.y[a], data.X_test[b], data.y_test[b], data.words)


CORPORA: dict[str, Callable[[], Split]] = {
    "docstrings": lambda: corpora.docstrings()[0],
    "groups": five_groups,
    "imdb": some_reviews,
    "reuters": lambda: corpora.reuters_single()[0],
    "ratings": lambda: split(corpora.movie_reviews(), 4000),
    "cora": lambda: split(corpora.cora(), 1900),
}


def score(model, X, y) -> tuple[float, float]:
    """Accuracy and log-loss of classes, R2 of numbers."""
    if not isinstance(model, SLDAClassifier):
        return r2_score(y, model.predict(X)), float("nan")
    p = model.predict_proba(X)
    return float(np.mean(model.classes_[p.argmax(axis=1)] == y)), log_loss(y, p, labels=model.classes_)


def measure(name: str, data: Split, **settings) -> list[float]:
    """The figures of a row: means over the seeds."""
    rows, topics = [], []
    used = np.unique(data.X.indices)
    X, X_test = data.X[:, used].tocsr(), data.X_test[:, used].tocsr()
    for seed in range(SEEDS):
        kind, began = KINDS.get(name, SLDAClassifier), time.perf_counter()
        model = kind(K, n_jobs=2, random_state=seed, **settings).fit(X, data.y)
        seconds = time.perf_counter() - began
        alone = kind(K, n_jobs=2, random_state=seed, words=False, **settings).fit(X, data.y)
        values = model.posterior_.traces.kept[:, :, 0]
        apart = 100.0 * np.ptp(values.mean(axis=1)) / abs(values.mean())
        within = np.mean([rhat(chain[None]) for chain in values])
        found = np.mean(model.topic_agreement() >= 0.75)
        figures = [within, apart, found, npmi(model, X), model.settled_.mean(), model.burn_in_.mean()]
        rows.append([seconds, *score(model, X_test, data.y_test), *score(alone, X_test, data.y_test), *figures])
        topics.append(model.topic_word_ / np.linalg.norm(model.topic_word_, axis=1, keepdims=True))
    cosine = topics[0] @ topics[1].T
    cosine = cosine[linear_sum_assignment(-cosine)]
    return [*np.mean(rows, axis=0), float(np.mean(cosine > 0.8))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=", ".join(CORPORA))
    warnings.simplefilter("ignore")
    print("| corpus | settings | s | score | log-loss | topics alone | log-loss | R-hat | chains apart, % ", end="")
    print("| three of four | NPMI | settled | burn-in | alike |\n" + "| --- " * 14 + "|")
    for name in parser.parse_args().names or CORPORA:
        data = CORPORA[name]()
        for title, settings in SETTINGS.items():
            row = " | ".join(f"{value:.3f}" for value in measure(name, data, **settings))
            print(f"| {name} | {title} | {row} |", flush=True)


if __name__ == "__main__":
    main()
