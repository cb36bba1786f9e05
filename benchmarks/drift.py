"""Whether changes are noticed, and alarms without a change: `python -m benchmarks.drift [groups] [--streams N]`.

A model is fitted to most of 20 Newsgroups without one of the groups, documents dealt at random. Streams of documents of
the other groups must raise no alarm; a stream of the group that is missing must, and the table says after how many.
Results are added to drift.json.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import fetch_20newsgroups

from benchmarks import corpora, history
from supertopic import SLDAClassifier

RESULTS = history.place("drift")
BATCHES = 10, 20, 30, 40, 50
FITTED, STREAM = 5000, 50  # documents of a fit and of a stream


def one_group(missing: int, n_streams: int) -> dict:
    """Alarms on streams without the missing group, and on the first documents of it."""
    data = fetch_20newsgroups(
        data_home=corpora.DATA / "scikit_learn_data", subset="train", download_if_missing=False,
        remove=("headers", "footers", "quotes"),
    )  # fmt: skip
    warnings.simplefilter("ignore")
    texts, y = np.array(data.data, dtype=object), data.target
    rng = np.random.default_rng(missing)
    others, own = rng.permutation(np.flatnonzero(y != missing)), rng.permutation(np.flatnonzero(y == missing))
    fitted, rest = others[:FITTED], others[FITTED:]
    model = SLDAClassifier(n_topics=40, n_chains=2, random_state=missing, n_jobs=1).fit(texts[fitted], y[fitted])
    alarms = {}
    for i in range(n_streams):
        some = rng.choice(rest, STREAM, replace=False)
        for name in model.drift(texts[some], y[some]).alarms:
            alarms.setdefault(name, []).append(i)
    changed = [model.drift(texts[own[:n]]) for n in BATCHES]
    return {
        "missing": data.target_names[missing], "streams": n_streams,
        "false_alarms": len(set().union(*alarms.values())), "by_figure": {k: len(v) for k, v in alarms.items()},
        "noticed_after": next((n for n, found in zip(BATCHES, changed, strict=True) if found.alarms), None),
        "alarms": changed[-1].alarms, "theme": changed[-1].theme,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("groups", nargs="*", type=int)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    rows = Parallel(given.jobs)(delayed(one_group)(g, given.streams) for g in given.groups or range(20))
    for row in rows:
        print(row, flush=True)
    streams, false = sum(row["streams"] for row in rows), sum(row["false_alarms"] for row in rows)
    noticed = sum(row["noticed_after"] is not None for row in rows)
    print(f"false alarms: {false} of {streams} streams; noticed: {noticed} of {len(rows)} groups")
    history.append(given.out, {"command": "drift", "rows": rows})


if __name__ == "__main__":
    main()
