"""Sets and intervals with a guarantee: `python -m benchmarks.sets [--jobs N] [--seeds N] [corpus ...]`.

The share of test documents whose class is in the set, and how many classes a set has, for our defaults on raw texts
and for MAPIE around a tuned logistic regression on tf-idf of words and pairs, which sets as many training documents
aside for its scores as we hold out. Training and test documents are dealt at random, so that they are alike. Numbers:
the share of ratings and counts inside intervals, with and without conformal=True. Results are added to sets.json.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import corpora, history, texts
from supertopic import SLDAClassifier, SLDACountRegressor, SLDARegressor

RESULTS = history.place("sets")
LEVELS = 0.8, 0.9, 0.95


def cover(sets: np.ndarray, classes: np.ndarray, y: np.ndarray) -> dict:
    own = sets[np.arange(len(y)), np.searchsorted(classes, y)]
    return {"coverage": float(own.mean()), "size": float(sets.sum(axis=1).mean())}


def classes_of(name: str, seed: int) -> list[dict]:
    """One deal of a corpus."""
    warnings.simplefilter("ignore")
    a, y_a, b, y_b = texts.CORPORA[name]()
    docs, y = np.array([*a, *b], dtype=object), np.concatenate([y_a, y_b])
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
    model = SLDAClassifier(random_state=seed, n_jobs=1).fit(docs[train], y[train])
    rows, n_held_out = [], len(model.posterior_.held_out_predictions.weight)
    for level in LEVELS:
        for by_class in (False, True):
            found = cover(model.predict_set(docs[test], level, by_class=by_class), model.classes_, y[test])
            rows.append({"system": "supertopic" + ", by class" * by_class, "level": level} | found)
    right = model.predict(docs[test]) == y[test]
    for max_error in (0.02, 0.05, 0.1):
        found = model.decide(docs[test], max_error=max_error)
        decided = np.array([choice is not None for choice in found.decision])
        error = float(1 - right[decided].mean()) if decided.any() else 0.0
        rows.append({"system": "decide", "level": max_error, "asked": found.asked, "error": error})
    rows += mapie(docs[train], y[train], docs[test], y[test], n_held_out, seed)
    facts = {"corpus": name, "seed": seed, "held_out": n_held_out, "accuracy": float(right.mean())}
    return [facts | row for row in rows]


def mapie(docs, y, test, y_test, n_held_out: int, seed: int) -> list[dict]:
    from mapie.classification import SplitConformalClassifier

    rest, aside = train_test_split(np.arange(len(y)), test_size=n_held_out, random_state=seed)
    rival = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2),
        GridSearchCV(LogisticRegression(max_iter=300), {"C": [10.0, 100.0]}, scoring="neg_log_loss", cv=3),
    ).fit(docs[rest], y[rest])
    rows = []
    for score in ("lac", "aps") if len(rival.classes_) > 2 else ("lac",):  # aps needs three classes
        found = SplitConformalClassifier(
            rival, confidence_level=list(LEVELS), conformity_score=score, prefit=True, random_state=seed
        ).conformalize(docs[aside], y[aside])
        _, sets = found.predict_set(test)
        for i, level in enumerate(LEVELS):
            rows.append({"system": f"MAPIE, {score}", "level": level} | cover(sets[:, :, i], rival.classes_, y_test))
    return rows


def numbers_of(name: str, seed: int) -> list[dict]:
    """Ratings of films, or citations of papers."""
    warnings.simplefilter("ignore")
    data = corpora.movie_reviews() if name == "film ratings" else corpora.cora()
    train, test = train_test_split(np.arange(len(data.y)), test_size=0.3, random_state=seed)
    make = SLDARegressor if name == "film ratings" else SLDACountRegressor
    model, rows = make(random_state=seed, n_jobs=1).fit(data.X[train], data.y[train]), []
    for level in LEVELS:
        for conformal in (False, True):
            lower, upper = model.predict_interval(data.X[test], level, conformal=conformal)
            kept, width = np.mean((data.y[test] >= lower) & (data.y[test] <= upper)), np.mean(upper - lower)
            system = "supertopic, conformal" if conformal else "supertopic"
            rows.append({"system": system, "level": level, "coverage": float(kept), "width": float(width)})
    facts = {"corpus": name, "seed": seed, "held_out": len(model.posterior_.held_out_predictions.weight)}
    return [facts | row for row in rows]


NUMBERS = "film ratings", "citations"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="*", default=[*NUMBERS, *texts.CORPORA])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    names = sorted(given.corpora, key=lambda name: name != "20 Newsgroups")  # the longest first
    cells = [(numbers_of if name in NUMBERS else classes_of, name, s) for name in names for s in range(given.seeds)]
    rows = []
    for found in Parallel(given.jobs, return_as="generator_unordered")(delayed(v)(n, s) for v, n, s in cells):
        rows += found
        given.out.with_suffix(".part").write_text(repr(rows))
    show(rows)
    history.append(given.out, {"command": "sets", "rows": rows})
    given.out.with_suffix(".part").unlink()


def show(rows: list[dict]) -> None:
    """The mean and the standard deviation over the seeds."""
    keys = sorted({(row["corpus"], row["level"], row["system"]) for row in rows})
    for corpus, level, system in keys:
        own = [row for row in rows if (row["corpus"], row["level"], row["system"]) == (corpus, level, system)]
        names = [name for name in ("coverage", "size", "width", "asked", "error") if name in own[0]]
        values = [[row[name] for row in own] for name in names]
        figures = (f"{name} {np.mean(v):.3f} ({np.std(v):.3f})" for name, v in zip(names, values, strict=True))
        print(f"{corpus:14} {level:4} {system:24} {len(own)} seeds", *figures, sep="  ", flush=True)


if __name__ == "__main__":
    main()
