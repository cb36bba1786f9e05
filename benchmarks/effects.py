"""Are reported effects right, and how wide are their intervals? `python -m benchmarks.effects [PART ...]`

Parts: `coverage` (generated corpora with topics of no, small and large effect: classes of equal size and 1:10, ratings,
counts; one covariate with an effect and one without), `films` (2,000 film ratings with critics as covariates: width and
number of clear effects, shuffled ratings, and the standard error of covariates beside that of least squares with the
same topics). Results are added to effects.json. `--corpora N` sets the number of generated corpora.
"""

import sys
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy import special
from scipy.optimize import brentq, linear_sum_assignment
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import corpora, history
from supertopic import SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.datasets import make_corpus

RESULTS = history.place("effects")
ETA = np.repeat([0.0, 0.0, 1.0, -1.0, 3.0, -3.0], [2, 2, 1, 1, 1, 1])  # of eight topics
GAMMA = np.array([0.0, 0.4])  # of two covariates
N_DOCS, LENGTH = 1000, 100
KINDS = {
    "classes": (SLDAClassifier, 0.5), "classes 1:10": (SLDAClassifier, 0.1), "ratings": (SLDARegressor, 0.0),
    "counts": (SLDACountRegressor, 0.0),
}  # fmt: skip


def generate(kind: str, seed: int):
    """A corpus, its covariates and response, and the true weight of each topic beside the base rate."""
    rng = np.random.default_rng([seed, 1])
    corpus = make_corpus(N_DOCS, n_topics=len(ETA), doc_length=LENGTH, eta=ETA, random_state=seed)
    Z = rng.normal(size=(N_DOCS, 2))
    eta = ETA * (0.3 if kind == "counts" else 1.0)
    omega, rate = corpus.doc_topic @ eta + Z @ GAMMA, KINDS[kind][1]
    if kind == "ratings":
        y, level = omega + rng.normal(size=N_DOCS), 0.0
        return corpus, Z, y, eta - y.mean()
    if kind == "counts":
        y = rng.poisson(np.exp(1.0 + omega))
        return corpus, Z, y, 1.0 + eta - np.log(y.mean())
    level = brentq(lambda shift: special.expit(omega + shift).mean() - rate, -20, 20)
    y = (rng.random(N_DOCS) < special.expit(omega + level)).astype(int)
    return corpus, Z, y, eta + level - np.log(y.mean() / (1 - y.mean()))


def cover(kind: str, seed: int) -> dict | None:
    """Whether the 90 % intervals of topics and covariates of one corpus contain the truth."""
    warnings.simplefilter("ignore")
    corpus, Z, y, truth = generate(kind, seed)
    model = KINDS[kind][0](len(ETA), words=False, random_state=seed, n_jobs=1).fit(corpus.X, y, covariates=Z)
    alike = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[: len(ETA), len(ETA) :]
    _, found = linear_sum_assignment(-alike)
    good = alike[np.arange(len(ETA)), found] > 0.8
    draws = model.coef_draws_[:, 0][:, found]
    shares = corpus.doc_topic.mean(axis=0)
    relative, real = draws - (draws @ shares)[:, None], truth - truth @ shares  # compared with the usual mixture
    lower, upper = np.quantile(draws, [0.05, 0.95], axis=0)
    low, high = np.quantile(relative, [0.05, 0.95], axis=0)
    left, right = (side[0] for side in model.covariate_coef_interval(0.9))
    sizes = np.abs(ETA)
    row = {"found": float(good.mean()), "width": float((high - low)[good].mean())}
    for name, size in (("none", 0.0), ("small", 1.0), ("large", 3.0)):
        some = good & (sizes == size)
        if some.any():
            row[f"{name}"] = float(((low <= real) & (real <= high))[some].mean())
            row[f"{name}, weight"] = float(((lower <= truth) & (truth <= upper))[some].mean())
    row["covariates"] = float(((left <= GAMMA) & (right >= GAMMA)).mean())
    return row


def coverage(n_corpora: int) -> list[dict]:
    rows = []
    for kind in KINDS:
        found = [row for row in Parallel(2)(delayed(cover)(kind, seed) for seed in range(n_corpora)) if row]
        mean = {name: float(np.mean([row[name] for row in found if name in row])) for name in found[0]}
        rows.append({"part": "coverage", "kind": kind, "corpora": len(found)} | mean)
        print(
            {name: round(value, 3) if isinstance(value, float) else value for name, value in rows[-1].items()},
            flush=True,
        )
    return rows


def films(_: int) -> list[dict]:
    """Real ratings: widths, clear effects, shuffled ratings, and critics' weights beside those of least squares."""
    docs = corpora.read_json(corpora.MOVIES_FILE)
    order = np.random.default_rng(0).permutation(len(docs))
    train, test = ([docs[i] for i in part] for part in (order[:2000], order[2000:3500]))
    vectorizer = CountVectorizer(stop_words="english", min_df=5)
    X, X_test = vectorizer.fit_transform([d["text"] for d in train]), vectorizer.transform([d["text"] for d in test])
    y, y_test = (np.array([d["y"] for d in part]) for part in (train, test))
    critic, rows = np.array([d["author"] for d in train]), []
    names = np.unique(critic)
    Z = (critic[:, None] == names[1:]).astype(float)

    def report(**row) -> None:
        rows.append({"part": "films"} | row)
        print(row, flush=True)

    for seed in range(5):
        began = time.perf_counter()
        model = SLDARegressor(15, words=False, random_state=seed, n_jobs=2).fit(X, y)
        seconds = time.perf_counter() - began
        lower, upper = model.coef_interval(0.9)
        report(
            kind="ratings", seed=seed, width=float(np.mean(upper - lower)),
            clear=float(np.mean((lower > 0) | (upper < 0))), R2=model.score(X_test, y_test),
            chains=float(model.posterior_.consensus.n_having.mean()), seconds=seconds,
        )  # fmt: skip
        shuffled = np.random.default_rng(seed).permutation(y)
        lower, upper = SLDARegressor(15, words=False, random_state=seed, n_jobs=2).fit(X, shuffled).coef_interval(0.9)
        report(kind="shuffled", seed=seed, clear=float(np.mean((lower > 0) | (upper < 0))))
    model = SLDARegressor(15, words=False, random_state=0, n_jobs=2).fit(X, y, covariates=Z)
    x = np.hstack([model.transform(X), Z])
    residual = y - x @ np.linalg.lstsq(x, y)[0]
    se = np.sqrt(residual @ residual / (len(y) - x.shape[1]) * np.linalg.inv(x.T @ x).diagonal()[15:])
    for name, sd, own in zip(names[1:], model.covariate_coef_draws_.std(axis=0)[0], se, strict=True):
        report(kind="critic", name=str(name), sd=float(sd), least_squares=float(own), ratio=float(sd / own))
    return rows


PARTS = {"coverage": coverage, "films": films}

if __name__ == "__main__":
    arguments = sys.argv[1:]
    n = int(arguments[arguments.index("--corpora") + 1]) if "--corpora" in arguments else 40
    rows = []
    for name in [a for a in arguments if a in PARTS] or PARTS:
        rows += PARTS[name](n)
    history.append(RESULTS, {"rows": rows})
