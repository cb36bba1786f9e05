"""Times until an event beside Cox's model: `python -m benchmarks.survival --seeds 5 --jobs 2 --out survival.json`.

Times are days with known hazards: the log-odds of the event on a day are those of the day plus the omega of a document.

generated: corpora from the model, of which 50 or 80 % are censored; omega is a document's shares times known weights.
films: 5,006 film reviews (Pang and Lee, 2005), where omega follows the stars that the critic gave, and 50 % are
censored; 80 % are for training.

Ours have the defaults, and as many topics as there are (20 for films). Cox's proportional hazards (lifelines, with a
penalty that is chosen by cross-validation) are given the topic shares of our LDA of the same documents, all but one, or
20 columns of a singular value decomposition of tf-idf. "true" has the omega and the hazards that times were drawn from.
Harrell's and Uno's concordance (the larger, the better) and the integrated Brier score (the smaller, the better) are
those of test documents, at the same days for all systems; coverage is that of the 90 % intervals of reported weights,
relative to the usual mixture of topics. Each fit has one thread.

--quick tries it on fewer documents with short chains; Cox is left out if lifelines is not installed.
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
from scipy import special
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import train_test_split

from benchmarks import corpora, history
from supertopic import LDA, SLDASurvivalRegressor
from supertopic.datasets import make_corpus
from supertopic.model.responses.censoring import brier_scores, find_censoring, integrated_brier, uno_concordance
from supertopic.model.responses.censoring import concordance as harrell
from supertopic.model.responses.times import Times

DAYS = np.arange(1.0, 31.0)
LEVELS = -3.2 + 0.6 * np.sin(DAYS / 4.0)  # log-odds of the event on each day
AT = DAYS[2:24:3]  # where predictions are compared
WEIGHTS = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
PENALTIES = (0.001, 0.01, 0.1, 1.0)
SCORES = ("harrell", "uno", "ibs", "coverage", "seconds")
SHORT = {"n_chains": 2, "burn_in": 30, "n_draws": 10}  # of --quick
CORPORA = ("generated, 50 %", "generated, 80 %", "films, 50 %")


class Data(NamedTuple):
    X: Any  # counts or texts
    X_test: Any
    times: Times
    test: Times
    omega: np.ndarray  # of test documents
    n_topics: int
    made: Any  # the generated corpus
    seed: int


def draw_times(omega: np.ndarray, share: float, rng: np.random.Generator) -> Times:
    """Days of events, of which about a share is censored: at random days, and after the last one."""
    event = rng.random((len(omega), len(DAYS))) < special.expit(omega[:, None] + LEVELS)
    day = np.where(event.any(axis=1), DAYS[event.argmax(axis=1)], np.inf)
    wait, low, high = rng.exponential(size=len(omega)), -5.0, 10.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        seen = np.minimum(np.ceil(np.exp(middle) * wait), DAYS[-1])
        low, high = (middle, high) if (day > seen).mean() > share else (low, middle)
    seen = np.minimum(np.ceil(np.exp(low) * wait), DAYS[-1])
    return Times(np.minimum(day, seen), (day <= seen).astype(float))


def make_data(corpus: str, seed: int, quick: bool) -> Data:
    name, share = corpus.split(",")
    rng, made = np.random.default_rng(seed), None
    if name == "generated":
        n = 700 if quick else 2000
        made = make_corpus(n, n_topics=len(WEIGHTS), doc_length=60, eta=[WEIGHTS], random_state=seed)
        X, omega, n_topics = made.X, made.doc_topic @ WEIGHTS, len(WEIGHTS)
    else:
        docs = corpora.read_json(corpora.MOVIES_FILE)
        docs = [docs[i] for i in np.random.default_rng(0).permutation(len(docs))[: 500 if quick else None]]
        stars = np.array([float(doc["y"]) for doc in docs])
        X, n_topics = np.array([doc["text"] for doc in docs], object), 20
        omega = -1.5 * (stars - stars.mean()) / stars.std()
    times = draw_times(omega, float(share.strip(" %")) / 100, rng)
    train, test = train_test_split(np.arange(len(omega)), test_size=0.25 if made else 0.2, random_state=seed)
    parts = (Times(times.time[docs], times.event[docs]) for docs in (train, test))
    return Data(X[train], X[test], *parts, omega[test], n_topics, made, seed)


def ours(effects: str) -> Callable:
    def fit(data: Data, **more: Any) -> tuple[np.ndarray, dict[str, float]]:
        model = SLDASurvivalRegressor(data.n_topics, effects=effects, random_state=data.seed, n_jobs=1, **more)
        model.fit(data.X, data.times.time, event=data.times.event)
        edges, curve = np.append(0.0, model.times_), model.predict_survival_function(data.X_test)
        found = np.array([np.interp(AT, edges, np.append(1.0, row)) for row in curve])
        return found, {"coverage": covered(model, data.made)} if data.made is not None else {}

    return fit


def covered(model: SLDASurvivalRegressor, made: Any) -> float:
    """The share of the 90 % intervals of weights that contain the true one, relative to the usual mixture."""
    similar = np.corrcoef(np.vstack([made.topic_word, model.topic_word_]))[len(WEIGHTS) :, : len(WEIGHTS)]
    truth, shares = WEIGHTS[similar.argmax(axis=1)], model.transform(made.X).mean(axis=0)
    draws = model.coef_draws_ - (model.coef_draws_ @ shares)[..., None]
    lower, upper = np.quantile(draws, [0.05, 0.95], axis=0)
    truth = truth - truth @ shares
    return float(np.mean((lower < truth) & (truth < upper)))


def cox(columns: Callable) -> Callable:
    def fit(data: Data, **more: Any) -> tuple[np.ndarray, dict[str, float]]:
        import pandas as pd
        from lifelines import CoxPHFitter
        from lifelines.utils import k_fold_cross_validation

        x, x_test = columns(data, **more)
        frame, test = (pd.DataFrame(part / x.std(axis=0)).rename(columns=str) for part in (x, x_test))
        frame["time"], frame["event"] = data.times
        given = {"duration_col": "time", "event_col": "event"}
        score = {
            penalty: np.mean(k_fold_cross_validation(
                CoxPHFitter(penalizer=penalty), frame, k=3, scoring_method="concordance_index", seed=0, **given))
            for penalty in PENALTIES
        }  # fmt: skip
        model = CoxPHFitter(penalizer=max(score, key=lambda penalty: score[penalty])).fit(frame, **given)
        return model.predict_survival_function(test, times=AT).to_numpy().T, {}

    return fit


def topic_shares(data: Data, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    model = LDA(data.n_topics, random_state=data.seed, n_jobs=1, **more).fit(data.X)
    return model.transform(data.X)[:, :-1], model.transform(data.X_test)[:, :-1]  # all of them sum to 1


def decomposition(data: Data, **_: Any) -> tuple[np.ndarray, np.ndarray]:
    texts = isinstance(data.X, np.ndarray)
    weigh = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2) if texts else TfidfTransformer()
    reduce = TruncatedSVD(20, random_state=data.seed)
    return reduce.fit_transform(weigh.fit_transform(data.X)), reduce.transform(weigh.transform(data.X_test))


def truth(data: Data, **_: Any) -> tuple[np.ndarray, dict[str, float]]:
    alive = np.cumprod(special.expit(-data.omega[:, None] - LEVELS), axis=1)
    return alive[:, AT.astype(int) - 1], {}


SYSTEMS: dict[str, Callable] = {
    "ours, shared": ours("shared"),
    "ours, by period": ours("by_period"),
    "Cox, LDA": cox(topic_shares),
    "Cox, SVD": cox(decomposition),
    "true": truth,
}


def run(corpus: str, name: str, seed: int, quick: bool) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    data = make_data(corpus, seed, quick)
    began = time.perf_counter()
    curve, more = SYSTEMS[name](data, **(SHORT if quick else {}))
    seconds = time.perf_counter() - began
    seen, risk = find_censoring(data.times, np.ones(len(data.times.time))), 1.0 - curve.mean(axis=1)
    found = {
        "harrell": harrell(data.test, risk), "uno": uno_concordance(data.test, risk, seen, AT[-1]),
        "ibs": integrated_brier(brier_scores(data.test, curve, AT, seen), AT),
    }  # fmt: skip
    return {"corpus": corpus, "system": name, "seed": seed} | found | more | {"seconds": seconds}


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A table of means and standard deviations over seeds."""
    yield f"{'':34}" + "".join(f"{score:>18}" for score in SCORES)
    for corpus in CORPORA:
        for name in SYSTEMS:
            own = [row for row in rows if (row["corpus"], row["system"]) == (corpus, name)]
            if own:
                cells = []
                for score in SCORES:
                    values = [row[score] for row in own if score in row]
                    spread = np.std(values, ddof=min(1, len(values) - 1)) if values else 0.0
                    cells.append(f"{np.mean(values):.4f} ± {spread:.4f}" if values else "")
                yield f"{corpus:17}{name:17}" + "".join(f"{cell:>18}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time, in processes of their own")
    parser.add_argument("--corpora", nargs="*", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    given = parser.parse_args()
    names = list(given.systems)
    try:
        import lifelines  # noqa: F401
    except ImportError:
        names = [name for name in names if not name.startswith("Cox")]
        print("lifelines is not installed, and Cox is left out: pip install lifelines", flush=True)
    with parallel_config("loky", inner_max_num_threads=1):
        tasks = (
            delayed(run)(corpus, name, seed, given.quick)
            for corpus in given.corpora
            for name in names
            for seed in range(given.seeds)
        )
        rows = Parallel(n_jobs=given.jobs)(tasks)
    print("\n".join(summary(rows)))
    if given.out:
        results = history.about() | {"quick": given.quick, "rows": rows}
        given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
