"""Which labels to buy, and which are wrong: `python -m benchmarks.labels [next|wrong] [--seeds N] [corpus ...]`.

next: 50 labels of a pool of 2,000 documents, then 90 more in each of five rounds, 10 % of all of them wrong: chosen by
`next_to_label`, by the margin between the two most probable classes, or at random. Accuracy on other documents; the
model is the same, with short chains. wrong: some labels are flipped to another class at random, and found again by
`check_labels` and by cleanlab from the same probabilities: the share of flipped ones among as many as were flipped, and
whether the interval of the number of wrong labels contains it. Results are added to labels.json.
"""

import argparse
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks import corpora, history
from supertopic import SLDAClassifier

RESULTS = history.place("labels")
POOL, TEST = 2000, 1500  # documents
FIRST, BATCH, ROUNDS, NOISE = 50, 90, 5, 0.1
QUICK = {"n_topics": 20, "n_chains": 2, "burn_in": 10, "n_draws": 10, "predict_sweeps": 20, "n_jobs": 1}
FLIPPED = 0.05, 0.2
CHECKED = 3000  # documents whose labels are checked


@cache
def load(name: str) -> corpora.Split:
    """A corpus, which is read once."""
    kinds = {"20 Newsgroups": corpora.newsgroups, "IMDb": corpora.imdb, "Reuters": lambda: corpora.reuters_single()[0]}
    return kinds[name]()


def read(name: str, seed: int, n: int) -> tuple[sp.csr_array, np.ndarray, sp.csr_array, np.ndarray]:
    """Some documents, and others for the test, as word counts."""
    data, rng = load(name), np.random.default_rng(seed)
    own, test = (rng.permutation(len(y))[:m] for y, m in ((data.y, n), (data.y_test, TEST)))
    X = sp.csr_array(data.X)[own]
    words = np.flatnonzero((X > 0).sum(axis=0) > 2)  # those of the pool
    return X[:, words], data.y[own], sp.csr_array(data.X_test)[test][:, words], data.y_test[test]


def flip(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Labels of which a share is that of another class, whichever it is."""
    classes, found = np.unique(y), y.copy()
    for i in rng.permutation(len(y))[: round(share * len(y))]:
        found[i] = rng.choice(classes[classes != y[i]])
    return found


def next_ones(name: str, how: str, seed: int) -> list[dict]:
    """The accuracy after each round."""
    X, y, X_test, y_test = read(name, seed, POOL)
    rng = np.random.default_rng(seed)
    given, order = flip(y, NOISE, rng), rng.permutation(POOL)
    has, rows = order[:FIRST], []
    for i in range(ROUNDS + 1):
        model = SLDAClassifier(**QUICK, random_state=seed).fit(X[has], given[has])
        accuracy = float(np.mean(model.predict(X_test) == y_test))
        rows.append({"corpus": name, "how": how, "seed": seed, "labels": len(has), "accuracy": accuracy})
        rest = order[~np.isin(order, has)]
        if i == ROUNDS:
            break
        if how == "next_to_label":
            more = rest[model.next_to_label(X[rest], BATCH)["row"]]
        elif how == "margin":
            p = np.sort(model.predict_proba(X[rest]), axis=1)
            more = rest[np.argsort(p[:, -1] - p[:, -2], kind="stable")[:BATCH]]
        else:
            more = rest[:BATCH]
        has = np.concatenate([has, more])
    return rows


def wrong_ones(name: str, share: float, seed: int) -> list[dict]:
    """What is found of flipped labels."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    X, y, _, _ = read(name, seed, CHECKED)
    given = flip(y, share, np.random.default_rng(seed))
    flipped = given != y
    n = int(flipped.sum())
    model = SLDAClassifier(**QUICK, random_state=seed)
    found = model.check_labels(X, given, n=5)
    row, number = found.estimates.iloc[0], np.searchsorted(found.classes, given)
    precision = {"supertopic": flipped[np.argsort(found.scores, kind="stable")[:n]].mean()}
    for score in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
        quality = get_label_quality_scores(number, found.probabilities, method=score)
        precision[f"cleanlab, {score}"] = flipped[np.argsort(quality, kind="stable")[:n]].mean()
    issues = find_label_issues(number, found.probabilities, return_indices_ranked_by="self_confidence", n_jobs=1)
    facts = {"corpus": name, "seed": seed, "share": share, "flipped": n, "cleanlab_found": len(issues)}
    facts |= {what: float(row[what]) for what in ("wrong", "lower", "upper")}
    return [facts | {"precision": {what: float(value) for what, value in precision.items()}}]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["next", "wrong"])
    parser.add_argument("corpora", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict] = []
    for seed in range(given.first, given.first + given.seeds):
        if given.what == "next":
            for name in given.corpora or ("20 Newsgroups", "IMDb", "Reuters"):
                for how in ("next_to_label", "margin", "random"):
                    rows += next_ones(name, how, seed)
                    curve = (f"{row['labels']}: {row['accuracy']:.3f}" for row in rows[-1 - ROUNDS :])
                    print(name, how, seed, *curve, flush=True)
        else:
            for name in given.corpora or ("20 Newsgroups", "IMDb"):
                for share in FLIPPED:
                    rows += wrong_ones(name, share, seed)
                    print(rows[-1], flush=True)
    history.append(given.out, {"command": f"labels {given.what}", "rows": rows})


if __name__ == "__main__":
    main()
