"""Can its probabilities and intervals be believed? `python -m benchmarks.calibration [PART ...]`

Parts: `coins` (noise for a response on three corpora), `mixture` (topics with and without an effect), `coverage` (how
often 90 % intervals hold the truth on corpora that were generated from the model), and `curves`, which draws
docs/calibration.svg, the share of right predictions against their confidence on the two 20 Newsgroups tasks. Without a
name all are made.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import corpora
from benchmarks.accuracy import tfidf
from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.datasets import make_corpus
from supertopic.report.diagnostics import interval

PLACE = Path(__file__).parents[1] / "docs" / "calibration.svg"
N_CORPORA, N_TOPICS, NU2 = 40, 5, 9.0
KINDS = (SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor)
N_COINS = 10


def noise(kind: type, rng: np.random.Generator, n: int) -> np.ndarray:
    """A response that has nothing to do with the documents."""
    if issubclass(kind, SLDARegressor):
        return rng.normal(size=n)
    return rng.poisson(2.0, n) if issubclass(kind, SLDACountRegressor) else rng.integers(0, 2, n)


def coin(X, kind: type, n_chains: int, seed: int) -> tuple[float, float]:
    """The share of 90 % intervals that exclude 0, and the held-out loss beyond the base rate's, or R2."""
    warnings.simplefilter("ignore")
    y = noise(kind, np.random.default_rng([seed, KINDS.index(kind)]), X.shape[0])
    train, test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    model = kind(n_chains=n_chains, random_state=seed).fit(train, y)
    lower, upper = model.coef_interval(0.9)
    if kind is SLDAClassifier:
        base = log_loss(y_test, np.full(len(y_test), y.mean()))
        quality = log_loss(y_test, model.predict_proba(test)) - base
    else:
        quality = model.score(test, y_test)
    return float(np.mean((lower > 0) | (upper < 0))), float(quality)


def coins() -> Iterator[str]:
    """Every estimator with its default settings, one chain and eight, ten coins each."""
    found = {"20 Newsgroups pair": corpora.newsgroups_pair(corpora.newsgroups()).X}
    others = {"film reviews": ("moviereview_scale.jsonl.gz", corpora.movie_reviews), "Cora": ("cora_bow", corpora.cora)}
    for name, (place, read) in others.items():
        if (corpora.DATA / place).exists():
            found[name] = read().X
        else:
            yield f"{name} are left out: there is no {place} in {corpora.DATA}."
    yield "| noise as the response | chains | intervals that exclude 0 | held out |"
    yield "| --- | --- | --- | --- |"
    jobs = [(n, k, c, s) for n in found for k in KINDS for c in (8, 1) for s in range(N_COINS)]
    jobs.sort(key=lambda job: (job[0] != "film reviews", -job[2]))  # the long ones first
    results = dict(zip(jobs, Parallel(-1)(delayed(coin)(found[n], k, c, s) for n, k, c, s in jobs), strict=True))
    for name in found:
        for kind in KINDS:
            for n_chains in (1, 8):
                rows = np.array([results[name, kind, n_chains, seed] for seed in range(N_COINS)])
                (excluded, quality), spread = rows.mean(axis=0), rows[:, 1].std(ddof=1)
                what = {SLDAClassifier: "log-loss beyond the coin's", MedLDAClassifier: "accuracy"}.get(kind, "R2")
                yield (
                    f"| {name}, {kind.__name__} | {n_chains} | {excluded:.3f} | {what} {quality:+.4f} ({spread:.4f}) |"
                )


def mix(kind: type, seed: int) -> tuple[float, float] | None:
    """Five topics with an effect, five without: intervals of the latter that miss it, of the former that hold it."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    eta = np.concatenate([rng.choice([-1, 1], 5) * rng.uniform(2, 6, 5), np.zeros(5)])
    corpus = make_corpus(n_docs=1500, n_topics=10, doc_length=100, eta=eta, random_state=seed)
    y, effect = corpus.y, eta
    if kind is SLDARegressor:
        y = corpus.doc_topic @ eta + rng.normal(size=1500)
        effect = eta - y.mean()
    elif kind is SLDACountRegressor:
        effect = 0.3 * eta
        y = rng.poisson(np.exp(1.0 + corpus.doc_topic @ effect))
        effect = 1.0 + effect - np.log(y.mean())
    else:
        effect = eta - np.log(y.mean() / (1.0 - y.mean()))
    model = kind(10, random_state=seed).fit(corpus.X, y)
    alike = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[:10, 10:]
    truth, found = linear_sum_assignment(-alike)
    if alike[truth, found].min() < 0.8:
        return None
    lower, upper = (side[0, found] for side in model.coef_interval(0.9))
    wrong = ((lower > effect) | (upper < effect))[5:]  # topics without an effect are where the base rate is
    return float(np.mean(wrong)), float(np.mean(((lower <= effect) & (effect <= upper))[:5]))


def mixture() -> Iterator[str]:
    yield "| ten topics, five with an effect | corpora | noise taken for an effect | effects inside |"
    yield "| --- | --- | --- | --- |"
    for kind in (SLDAClassifier, SLDARegressor, SLDACountRegressor):
        rows = [row for row in Parallel(-1)(delayed(mix)(kind, seed) for seed in range(N_CORPORA)) if row]
        excluded, inside = np.mean(rows, axis=0)
        yield f"| {kind.__name__} | {len(rows)} | {excluded:.3f} | {inside:.3f} |"


def cover(seed: int, c: float, length: int, n_draws: int) -> list[float] | None:
    """Whether the 90 % intervals of eta (the chain's, those that are shown) and of p hold the truth of one corpus."""
    warnings.simplefilter("ignore")
    eta = np.random.default_rng(seed).normal(0, np.sqrt(NU2), N_TOPICS)
    corpus = make_corpus(n_docs=700, n_topics=N_TOPICS, doc_length=length, eta=eta, random_state=seed)
    chain = {"burn_in": 200, "n_draws": n_draws, "n_chains": 1, "random_state": seed}
    model = SLDAClassifier(N_TOPICS, c=c, nu2=NU2, alpha=1.0, beta=0.05, **chain)
    model.fit(corpus.X[:500], corpus.y[:500])
    alike = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[:N_TOPICS, N_TOPICS:]
    truth, found = linear_sum_assignment(-alike)
    if alike[truth, found].min() < 0.8:
        return None  # a topic was not found: nothing to compare with
    inside = []
    for draws in (model.training_draws_, model.coef_draws_):
        lower, upper = (model.intercept_[0] + side[0, found] for side in interval(draws[0], 0.9))
        inside.append(float(np.mean((lower <= eta) & (eta <= upper))))
    lower, upper = model.predict_interval(corpus.X[500:])
    p = corpus.probability[500:]
    return [*inside, float(np.mean((lower[:, 1] <= p) & (p <= upper[:, 1])))]


def coverage() -> Iterator[str]:
    yield "| c | words a document | draws | corpora | eta, chain | eta, shown | p |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for c, length, n_draws in ((1, 80, 100), (1, 300, 100), (25, 80, 100), (25, 300, 100), (25, 80, 20)):
        rows = Parallel(-1)(delayed(cover)(seed, c, length, n_draws) for seed in range(N_CORPORA))
        rows = [row for row in rows if row]
        figures = " | ".join(f"{value:.2f}" for value in np.mean(rows, axis=0))
        yield f"| {c} | {length} | {n_draws} | {len(rows)} | {figures} |"


def curve(p: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean confidence and share of right predictions in ten bins with equally many documents."""
    order = np.argsort(p.max(axis=1))
    parts = np.array_split(order, 10)
    return np.array([p.max(axis=1)[i].mean() for i in parts]), np.array([right[i].mean() for i in parts])


def curves() -> Iterator[str]:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    data = corpora.newsgroups()
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
    many = {"n_topics": 40, "c": 64, "alpha": 5.6, "burn_in": 30, "n_draws": 10}
    tasks = (
        ("two groups", corpora.newsgroups_pair(data), {"n_topics": 20, "c": 25}),
        ("twenty groups", data, many),
    )
    for axis, (name, task, settings) in zip(axes, tasks, strict=True):
        models = {
            "supertopic, 8 chains": SLDAClassifier(n_chains=8, n_jobs=-1, random_state=0, **settings),
            "the same, calibrate=False": SLDAClassifier(
                n_chains=8, n_jobs=-1, calibrate=False, random_state=0, **settings
            ),
            "logistic regression on tf-idf": make_pipeline(tfidf(), LogisticRegression(C=30, max_iter=300)),
        }
        axis.plot([0, 1], [0, 1], color="0.7", lw=1)
        for label, model in models.items():
            p = model.fit(task.X, task.y).predict_proba(task.X_test)
            axis.plot(*curve(p, model.classes_[p.argmax(axis=1)] == task.y_test), marker="o", ms=4, label=label)
        axis.set(title=name, xlabel="confidence", xlim=(0.1, 1), ylim=(0.1, 1.01))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share of right predictions")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PLACE, metadata={"Date": None})
    yield f"{PLACE.name} is drawn."


PARTS = {part.__name__: part for part in (coins, mixture, coverage, curves)}


def main() -> None:
    wrong = [name for name in sys.argv[1:] if name not in PARTS]
    if wrong:
        sys.exit(f"There is no part {wrong[0]!r}; there are {', '.join(PARTS)}.")
    for name in sys.argv[1:] or PARTS:
        for line in PARTS[name]():
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
