"""Ordered classes beside other models of the same ratings: `python -m benchmarks.ordinal --seeds 5 --jobs 2`.

Four classes of 5,006 film reviews (Pang and Lee, 2005), in random splits of 80 and 20 %. Ours have the defaults. The
regression is fitted to the numbers 0 to 3 of the classes, and its normal predictive distribution is cut at 0.5, 1.5 and
2.5. The others are given tf-idf of words and pairs of words, and their penalties are chosen by cross-validation on the
training documents; statsmodels has 50 columns of its singular value decomposition, since it takes no sparse matrix and
has no penalty. The class that is predicted is the most probable one for the accuracy, and the median of the predictive
distribution for the absolute error and kappa, whatever the system. Each fit has one thread.

--quick tries it on 700 reviews with short chains; mord (`pip install mord`) is left out if it is not installed.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.stats import norm
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import corpora, history
from supertopic import SLDAClassifier, SLDAOrdinalClassifier, SLDARegressor

N_CLASSES = 4
SCORES = ("accuracy", "log_loss", "rps", "mae", "kappa", "seconds")
SHORT = {"n_topics": 10, "n_chains": 2, "burn_in": 30, "n_draws": 10}  # of --quick


class Data(NamedTuple):
    texts: list[str]
    y: np.ndarray
    texts_test: list[str]
    y_test: np.ndarray
    seed: int


def split(seed: int, quick: bool) -> Data:
    docs = corpora.read_json(corpora.MOVIES_FILE)
    y, some = np.array([int(doc["label4"]) for doc in docs]), np.arange(len(docs))
    if quick:
        some = np.random.default_rng(0).permutation(some)[:700]
    train, test = train_test_split(some, test_size=0.2, random_state=seed)
    return Data([docs[i]["text"] for i in train], y[train], [docs[i]["text"] for i in test], y[test], seed)


def classes(kind: Any) -> Callable:
    def fit(data: Data, **more: Any) -> np.ndarray:
        return kind(random_state=data.seed, n_jobs=1, **more).fit(data.texts, data.y).predict_proba(data.texts_test)

    return fit


def numbers(data: Data, **more: Any) -> np.ndarray:
    """The predictive distribution of the class number, cut in the middle between numbers."""
    model = SLDARegressor(random_state=data.seed, n_jobs=1, **more).fit(data.texts, data.y.astype(float))
    mean, sd = model.predict(data.texts_test, return_std=True)
    below = norm.cdf((np.arange(N_CLASSES - 1) + 0.5 - mean[:, None]) / sd[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def tfidf() -> TfidfVectorizer:
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)


def logistic(data: Data) -> np.ndarray:
    grid = GridSearchCV(
        LogisticRegression(max_iter=500), {"C": [1.0, 10.0, 100.0, 1000.0]}, scoring="neg_log_loss", cv=3
    )
    return make_pipeline(tfidf(), grid).fit(data.texts, data.y).predict_proba(data.texts_test)


def all_thresholds(data: Data) -> np.ndarray:
    """mord's regularised ordinal logistic regression."""
    from mord import LogisticAT

    grid = GridSearchCV(LogisticAT(max_iter=2000), {"alpha": [0.01, 0.1, 1.0, 10.0]}, scoring="neg_log_loss", cv=3)
    return make_pipeline(tfidf(), grid).fit(data.texts, data.y).predict_proba(data.texts_test)


def proportional_odds(data: Data) -> np.ndarray:
    """statsmodels' ordered logit, which is the model of Ordinal without topics."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    reduce = make_pipeline(tfidf(), TruncatedSVD(50, random_state=data.seed))
    x, x_test = reduce.fit_transform(data.texts), reduce.transform(data.texts_test)
    sd = x.std(axis=0)
    return OrderedModel(data.y, x / sd, distr="logit").fit(method="bfgs", maxiter=500, disp=False).predict(x_test / sd)


SYSTEMS: dict[str, tuple[Callable, bool]] = {  # how each is fitted, and whether it is ours
    "SLDAOrdinalClassifier": (classes(SLDAOrdinalClassifier), True),
    "SLDAClassifier": (classes(SLDAClassifier), True),
    "SLDARegressor, cut": (numbers, True),
    "logistic regression": (logistic, False),
    "mord LogisticAT": (all_thresholds, False),
    "statsmodels OrderedModel": (proportional_odds, False),
}


def figures(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Measures of probabilities of classes (n_docs, n_classes)."""
    truth, said = np.eye(N_CLASSES)[y], (np.cumsum(p, axis=1) < 0.5).sum(axis=1)
    apart = np.cumsum(p - truth, axis=1)[:, :-1]
    return {
        "accuracy": float(np.mean(p.argmax(axis=1) == y)),
        "log_loss": float(-np.log(np.maximum((p * truth).sum(axis=1), 1e-12)).mean()),
        "rps": float((apart**2).sum(axis=1).mean() / (N_CLASSES - 1)),
        "mae": float(np.abs(said - y).mean()),
        "kappa": float(cohen_kappa_score(y, said, weights="quadratic", labels=np.arange(N_CLASSES))),
    }


def run(name: str, seed: int, quick: bool) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    (fit, ours), data = SYSTEMS[name], split(seed, quick)
    began = time.perf_counter()
    p = np.asarray(fit(data, **(SHORT if quick and ours else {})))
    return {"system": name, "seed": seed, "seconds": time.perf_counter() - began} | figures(p, data.y_test)


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A table of means and standard deviations over seeds."""
    yield f"{'':26}" + "".join(f"{score:>18}" for score in SCORES)
    for name in SYSTEMS:
        own = [row for row in rows if row["system"] == name]
        if own:
            cells = ((np.mean(values), np.std(values, ddof=min(1, len(own) - 1))) for values in
                     ([row[score] for row in own] for score in SCORES))  # fmt: skip
            yield f"{name:26}" + "".join(f"{f'{mean:.4f} ± {sd:.4f}':>18}" for mean, sd in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time, in processes of their own")
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    given = parser.parse_args()
    names = list(given.systems)
    try:
        import mord  # noqa: F401
    except ImportError:
        names = [name for name in names if not name.startswith("mord")]
        print("mord is not installed, and left out: pip install mord", flush=True)
    with parallel_config("loky", inner_max_num_threads=1):
        tasks = (delayed(run)(name, seed, given.quick) for name in names for seed in range(given.seeds))
        rows = Parallel(n_jobs=given.jobs)(tasks)
    print("\n".join(summary(rows)))
    if given.out:
        results = history.about() | {"quick": given.quick, "rows": rows}
        given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
