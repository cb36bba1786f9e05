"""Are its probabilities and intervals right? `python -m benchmarks.calibration [PART ...]`

Parts: `coins` (noise for a response on three corpora), `unbalanced` (noise for classes of different sizes), `mixture`
(topics with and without an effect), `coverage` (how often 90 % intervals hold the truth on corpora that were generated
from the model), `batches` (the same after batches of `partial_fit`), `large_counts` (the same for counts of any size),
`rare` (whether rare classes are predicted as often as they occur), `signal` (the same for four classes of different
sizes), `unrelated_responses` (noise for ordered classes, times and several raters), and `curves`, which draws
docs/calibration.svg, the share of right predictions against their confidence on the two 20 Newsgroups tasks. Without a
name all are made.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import special
from scipy.optimize import brentq, linear_sum_assignment
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import corpora
from benchmarks.accuracy import tfidf
from supertopic import (
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDACrowdRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
)
from supertopic.datasets import make_corpus
from supertopic.model.responses.averages import draw_interval
from supertopic.report.diagnostics import ess
from supertopic.report.summary import describe_topics

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


def unrelated(name: str, seed: int) -> tuple[float, float]:
    """The share of 90 % intervals that exclude 0, and the test loss beyond that of the base rate, or R2."""
    warnings.simplefilter("ignore")
    rng, made = np.random.default_rng([seed, 9]), make_corpus(n_docs=800, n_topics=N_TOPICS, random_state=seed)
    train, test, y, more = slice(600), slice(600, 800), rng.integers(0, 2, 800), {}
    if name == "ordered classes":
        kind, y = SLDAOrdinalClassifier, rng.choice(4, 800, p=[0.1, 0.2, 0.3, 0.4])
        known = y
    elif name.startswith("times"):
        kind, ends = SLDASurvivalRegressor, rng.exponential(40.0, 800)
        y, more = rng.exponential(30.0, 800), {"effects": name.split(", ")[1]}
        y = known = np.column_stack([np.minimum(y, ends), y <= ends])
    elif name == "raters of classes":
        kind, known = SLDACrowdClassifier, np.where(rng.random((800, 3)) < 0.85, y[:, None], 1.0 - y[:, None])
    else:
        kind, y = SLDACrowdRegressor, rng.normal(size=800)
        known = y[:, None] + rng.normal(size=(800, 3)) * [0.3, 0.6, 1.0]
    model = kind(N_TOPICS, random_state=seed, n_jobs=1, **more).fit(made.X[train], known[train])
    lower, upper = model.coef_interval(0.9)
    outside = float(np.mean((lower > 0) | (upper < 0)))
    if name == "raters of ratings":
        return outside, model.score(made.X[test], y[test])
    response, loss = model.posterior_.response, model.evaluate(made.X[test], y[test]).losses.mean()
    if name.startswith("times"):
        at_risk, events = response.life
        survived = np.cumprod(1.0 - events / at_risk)
        base = response.figures(response.truth(y[test], 200), np.tile(survived, (200, 1)))["integrated_brier_score"]
        return outside, model.evaluate(made.X[test], y[test]).figures["integrated_brier_score"] - base
    rates = np.bincount(y[train]) / 600
    return outside, float(loss + np.log(rates[y[test]]).mean())


def unrelated_responses() -> Iterator[str]:
    yield f"noise, {N_CORPORA} corpora of 600 and 200 documents: intervals that exclude 0; loss beyond the base rate's"
    yield "(of times the integrated Brier score; of ratings R2)"
    for name in ("ordered classes", "times, shared", "times, by_period", "raters of classes", "raters of ratings"):
        rows = np.array(Parallel(-1)(delayed(unrelated)(name, seed) for seed in range(N_CORPORA)))
        mean, se = rows.mean(axis=0), rows.std(axis=0) / np.sqrt(len(rows))
        yield f"{name:20} {mean[0]:.3f} ({se[0]:.3f})  {mean[1]:+.4f} ({se[1]:.4f})"


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
        lower, upper = (model.intercept_[0] + side[0, found] for side in draw_interval(draws[0], 0.9))
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


def truth_in_topics(corpus, model) -> np.ndarray | None:
    """The model's topic for each true one, or nothing where one was not found."""
    n = len(corpus.topic_word)
    alike = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[:n, n:]
    truth, found = linear_sum_assignment(-alike)
    return found if alike[truth, found].min() >= 0.8 else None


def noise_classes(kind: type, multiclass: str | None, rates: list[float], seed: int) -> list[float]:
    """Intervals of the largest class that exclude 0, those of others, topics with a class, and the mean of p."""
    warnings.simplefilter("ignore")
    corpus = make_corpus(n_docs=1000, n_topics=10, doc_length=60, random_state=seed)
    y = np.random.default_rng(seed).choice(len(rates), 1000, p=rates)
    more = {} if multiclass is None else {"multiclass": multiclass}
    model = kind(10, words=False, random_state=seed, **more).fit(corpus.X, y)
    lower, upper = model.coef_interval(0.9)
    excluded = (lower > 0) | (upper < 0)
    named = sum(row["class"] is not None for row in describe_topics(model))
    p = model.predict_proba(corpus.X)[:, 0].mean() if kind is SLDAClassifier else np.nan
    return [excluded[0].mean(), excluded[1:].mean() if len(excluded) > 1 else np.nan, named, p]


def unbalanced() -> Iterator[str]:
    yield "| noise, classes | estimator | largest class: intervals without 0 | others | topics with a class | mean p |"
    yield "| --- | --- | --- | --- | --- | --- |"
    sizes = ([0.9, 0.1], [0.85, 0.075, 0.075], [0.95, 0.025, 0.025], [0.55] + [0.05] * 9)
    kinds = [(SLDAClassifier, way) for way in ("shared", "separate", "stick_breaking")] + [(MedLDAClassifier, None)]
    jobs = [(kind, way, rates, seed) for rates in sizes for kind, way in kinds for seed in range(N_COINS)]
    rows = iter(Parallel(-1)(delayed(noise_classes)(*job) for job in jobs))
    for rates in sizes:
        for kind, way in kinds:
            found = np.array([next(rows) for _ in range(N_COINS)])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                figures = " | ".join(f"{value:.3f}" for value in np.nanmean(found, axis=0))
            name = f"{kind.__name__}{'' if way is None else f', {way}'}"
            yield f"| {rates[0]:g} of {len(rates)} | {name} | {figures} |"


def after_batches(kind: type, seed: int) -> list[float] | None:
    """Whether 90 % intervals hold after a fit on 800 documents and 1, 5 and 20 batches of 40."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    eta = rng.choice([-1, 1], N_TOPICS) * rng.uniform(0.5, 3.0, N_TOPICS)
    corpus = make_corpus(n_docs=1600, n_topics=N_TOPICS, eta=eta, random_state=seed)
    y = corpus.y
    if kind is SLDARegressor:
        y = corpus.doc_topic @ eta + rng.normal(size=1600)
    elif kind is SLDACountRegressor:
        eta = np.log(50.0) + 0.3 * eta
        y = rng.negative_binomial(2, 2 / (2 + np.exp(corpus.doc_topic @ eta)))
    model = kind(N_TOPICS, random_state=seed, n_chains=1, words=False, held_out=0.3, alpha=1.0)
    inside = []
    for batch in range(21):
        docs = slice(0, 800) if batch == 0 else slice(760 + 40 * batch, 800 + 40 * batch)
        model.partial_fit(corpus.X[docs], y[docs])
        if batch in (0, 1, 5, 20):
            found = truth_in_topics(corpus, model)
            if found is None:
                return None
            lower, upper = (model.intercept_[0] + side[0, found] for side in model.coef_interval(0.9))
            inside.append(float(np.mean((lower <= eta) & (eta <= upper))))
    return inside


def batches() -> Iterator[str]:
    yield "| 90 % intervals that hold the effect | corpora | after 800 documents | 1 batch of 40 | 5 | 20 |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for kind in (SLDAClassifier, SLDARegressor, SLDACountRegressor):
        rows = [row for row in Parallel(-1)(delayed(after_batches)(kind, seed) for seed in range(N_CORPORA)) if row]
        yield f"| {kind.__name__} | {len(rows)} | {' | '.join(f'{value:.3f}' for value in np.mean(rows, axis=0))} |"


def count(mean: float, seed: int) -> list[float] | None:
    """Coverage and the effective number of 100 draws of reported weights; what prediction weights are of the truth."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    eta = rng.uniform(-1, 1, N_TOPICS)
    corpus = make_corpus(n_docs=1000, n_topics=N_TOPICS, random_state=seed)
    y = rng.negative_binomial(2, 2 / (2 + mean * np.exp(corpus.doc_topic @ eta)))
    model = SLDACountRegressor(N_TOPICS, random_state=seed, n_chains=1, words=False, held_out=0.3).fit(corpus.X, y)
    found = truth_in_topics(corpus, model)
    if found is None:
        return None
    effect = eta + np.log(mean) - model.intercept_[0]
    lower, upper = (side[0, found] for side in model.coef_interval(0.9))
    draws, weights = model.coef_draws_[0][:, 0], model.prediction_draws_[0].mean(axis=0)[0, found]
    slope = np.polyfit(effect - effect.mean(), weights - weights.mean(), 1)[0]
    effective = np.median([ess(draws[None, :, k]) for k in range(N_TOPICS)])
    return [float(np.mean((lower <= effect) & (effect <= upper))), float(effective), float(slope)]


def large_counts() -> Iterator[str]:
    yield "| mean count | corpora | intervals that hold | effective draws of 100 | prediction weights, of the truth |"
    yield "| --- | --- | --- | --- | --- |"
    for mean in (5, 50, 500, 1000, 100_000):
        rows = [row for row in Parallel(-1)(delayed(count)(mean, seed) for seed in range(24)) if row]
        inside, effective, slope = np.mean(rows, axis=0)
        yield f"| {mean:,} | {len(rows)} | {inside:.3f} | {effective:.0f} | {slope:.2f} |"


def rarely(rate: float, n_docs: int, words: bool, seed: int) -> tuple[float, float]:
    """The mean probability of new documents, of the rate of training documents, and the log-loss beyond the truth's."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    corpus = make_corpus(n_docs=n_docs + 20_000, n_topics=8, doc_length=60, random_state=seed)
    effect = corpus.doc_topic @ np.linspace(-3, 3, 8)
    level = brentq(lambda b: special.expit(effect + b).mean() - rate, -30, 10)
    p = special.expit(effect + level)
    y = (rng.random(len(p)) < p).astype(int)
    model = SLDAClassifier(8, random_state=seed, words=words).fit(corpus.X[:n_docs], y[:n_docs])
    found = model.predict_proba(corpus.X[n_docs:])[:, 1]
    beyond = log_loss(y[n_docs:], found) - log_loss(y[n_docs:], p[n_docs:])
    return float(found.mean() / y[:n_docs].mean()), float(beyond)


def rare() -> Iterator[str]:
    yield "| rate | documents | words | predicted, of the rate (se) | log-loss beyond the truth's |"
    yield "| --- | --- | --- | --- | --- |"
    for rate, n_docs, n in ((0.13, 1000, 32), (0.03, 2000, 32), (0.01, 4000, 32), (0.001, 20_000, 16)):
        for words in (False, True):
            rows = np.array(Parallel(-1)(delayed(rarely)(rate, n_docs, words, seed) for seed in range(n)))
            se = rows[:, 0].std(ddof=1) / np.sqrt(n)
            yield f"| {rate:g} | {n_docs:,} | {words} | {rows[:, 0].mean():.3f} ({se:.3f}) | {rows[:, 1].mean():.4f} |"


def four(seed: int) -> list[float]:
    """Four classes: the frequency of the largest, its mean probability, the log-loss, and that of the truth."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    corpus = make_corpus(n_docs=6000, n_topics=8, doc_length=60, random_state=seed)
    p = special.softmax(corpus.doc_topic @ rng.normal(0, 2, (8, 4)) + [1.5, 0.0, -0.5, -1.0], axis=1)
    y = (p.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1)
    model = SLDAClassifier(8, words=False, random_state=seed).fit(corpus.X[:1000], y[:1000])
    found, largest = model.predict_proba(corpus.X[1000:]), np.bincount(y[:1000]).argmax()
    labels = np.arange(4)
    return [np.mean(y[:1000] == largest), found[:, largest].mean(), log_loss(y[1000:], found, labels=labels),
            log_loss(y[1000:], p[1000:], labels=labels)]  # fmt: skip


def signal() -> Iterator[str]:
    yield "| four classes | corpora | frequency of the largest | its mean probability | log-loss | the truth's |"
    yield "| --- | --- | --- | --- | --- | --- |"
    rows = Parallel(-1)(delayed(four)(seed) for seed in range(24))
    yield f"| SLDAClassifier, topics alone | 24 | {' | '.join(f'{value:.3f}' for value in np.mean(rows, axis=0))} |"


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


PARTS = {
    part.__name__: part
    for part in (coins, unbalanced, mixture, coverage, batches, large_counts, rare, signal, unrelated_responses, curves)
}


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
