"""Ten batches of `partial_fit` against one fit: `python -m benchmarks.batches [docstrings newsgroups] [--seeds N]`.

Texts are learned from at once; in ten batches, with new words and with the vocabulary of the first batch; and in ten
batches of which the first three lack half of the classes, which `add_classes=True` adds. Test documents are the same.
Results are added to batches.json.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks import corpora, history
from supertopic import SLDAClassifier
from supertopic.datasets import load_docstrings

RESULTS = history.place("batches")
BATCHES, WITHOUT = 10, 3  # batches, and those that lack half of the classes
GROUPS = "comp.graphics", "rec.autos", "sci.med", "sci.space", "talk.politics.guns"


def docstrings() -> tuple[np.ndarray, np.ndarray]:
    data = load_docstrings()
    return np.array(data.data, dtype=object), np.array(data.target_names)[data.target]


def newsgroups() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_20newsgroups

    data = fetch_20newsgroups(
        data_home=corpora.DATA / "scikit_learn_data", subset="train", download_if_missing=False, categories=GROUPS,
        remove=("headers", "footers", "quotes"),
    )  # fmt: skip
    return np.array(data.data, dtype=object), np.array(data.target_names)[data.target]


CORPORA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {"docstrings": docstrings, "newsgroups": newsgroups}


def late_classes(y: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Batches whose first ones have no documents of the second half of the classes."""
    late = np.isin(y, np.unique(y)[len(np.unique(y)) // 2 :])
    early, rest = np.flatnonzero(~late), np.flatnonzero(late)
    first = np.array_split(rng.permutation(early), BATCHES)
    return [
        np.concatenate([own, more])
        for own, more in zip(
            first, [rest[:0]] * WITHOUT + np.array_split(rng.permutation(rest), BATCHES - WITHOUT), strict=True
        )
    ]


def one_run(name: str, seed: int, n_topics: int, jobs: int) -> list[dict]:
    """Figures of all ways to learn, with one seed."""
    warnings.simplefilter("ignore")
    texts, y = CORPORA[name]()
    train, test, y_train, y_test = train_test_split(texts, y, test_size=0.2, random_state=0, stratify=y)
    rng, rows = np.random.default_rng(seed), []
    dealt = np.array_split(rng.permutation(len(train)), BATCHES)
    ways = {
        "at once": [np.arange(len(train))], "ten batches": dealt, "ten batches, first vocabulary": dealt,
        "ten batches, half of the classes late": late_classes(y_train, rng),
    }  # fmt: skip
    for way, batches in ways.items():
        began, model = time.perf_counter(), SLDAClassifier(n_topics, n_chains=2, random_state=seed, n_jobs=jobs)
        for i, docs in enumerate(batches):
            more = {"add_classes": i > 0, "new_words": "first" not in way}
            model.partial_fit(train[docs], y_train[docs], **more)
        p, seconds = model.predict_proba(test), time.perf_counter() - began
        order = np.argsort(model.classes_)
        rows.append({
            "corpus": name, "seed": seed, "way": way, "accuracy": float(model.score(test, y_test)),
            "log_loss": float(log_loss(y_test, p[:, order], labels=model.classes_[order])),
            "words": model.n_features_in_, "seconds": seconds,
            "history": [[e.figures.score, e.figures.loss] for e in model.posterior_.history],
        })  # fmt: skip
        print({key: value for key, value in rows[-1].items() if key != "history"}, flush=True)
        print("   scored before each batch:", [round(score or 0.0, 3) for score, _ in rows[-1]["history"]], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="*", choices=[*CORPORA, []], default=[])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    names = given.corpora or list(CORPORA)
    rows = []
    for name, seed in itertools.product(names, range(given.seeds)):
        found = one_run(name, seed, given.topics, given.jobs)
        history.append(given.out, {"command": "batches", "rows": found})
        rows += found
    for name in names:
        for way in dict.fromkeys(row["way"] for row in rows):
            own = [row for row in rows if (row["corpus"], row["way"]) == (name, way)]
            means = (f"{key} {np.mean([row[key] for row in own]):.3f}" for key in ("accuracy", "log_loss", "seconds"))
            print(f"{name:12} {way:40}", *means, sep="  ")


if __name__ == "__main__":
    main()
