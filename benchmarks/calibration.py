"""Can its probabilities and intervals be believed? `python -m benchmarks.calibration`

Draws docs/calibration.svg, the share of right predictions against their confidence on the two 20 Newsgroups tasks, and
prints how often 90 % intervals hold the truth on corpora that were generated from the model.
"""

from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks import corpora
from benchmarks.accuracy import tfidf
from supertopic import SLDAClassifier
from supertopic.datasets import make_corpus

PLACE = Path(__file__).parents[1] / "docs" / "calibration.svg"
N_CORPORA, N_TOPICS, NU2 = 40, 5, 9.0


def coverage(seed: int, c: float, length: int, n_draws: int) -> list[float] | None:
    """Whether the 90 % intervals of eta (the chain's, the calibrated) and of p hold the truth of one corpus."""
    eta = np.random.default_rng(seed).normal(0, np.sqrt(NU2), N_TOPICS)
    corpus = make_corpus(n_docs=700, n_topics=N_TOPICS, doc_length=length, eta=eta, random_state=seed)
    model = SLDAClassifier(N_TOPICS, c=c, nu2=NU2, beta=0.05, burn_in=200, n_draws=n_draws, random_state=seed)
    model.fit(corpus.X[:500], corpus.y[:500])
    alike = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[:N_TOPICS, N_TOPICS:]
    truth, found = linear_sum_assignment(-alike)
    if alike[truth, found].min() < 0.8:
        return None  # a topic was not found: nothing to compare with
    inside = []
    for calibrated in (False, True):
        lower, upper = model.coef_interval(0.9, calibrated)
        inside.append(float(np.mean((lower[0, found] <= eta) & (eta <= upper[0, found]))))
    lower, upper = model.predict_interval(corpus.X[500:])
    p = corpus.probability[500:]
    return [*inside, float(np.mean((lower[:, 1] <= p) & (p <= upper[:, 1])))]


def curve(p: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean confidence and share of right predictions in ten bins with equally many documents."""
    order = np.argsort(p.max(axis=1))
    parts = np.array_split(order, 10)
    return np.array([p.max(axis=1)[i].mean() for i in parts]), np.array([right[i].mean() for i in parts])


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    print("| c | words a document | draws | corpora | eta, chain | eta, calibrated | p |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for c, length, n_draws in ((1, 80, 100), (1, 300, 100), (25, 80, 100), (25, 300, 100), (25, 80, 20)):
        rows = Parallel(2)(delayed(coverage)(seed, c, length, n_draws) for seed in range(N_CORPORA))
        rows = [row for row in rows if row]
        figures = " | ".join(f"{value:.2f}" for value in np.mean(rows, axis=0))
        print(f"| {c} | {length} | {n_draws} | {len(rows)} | {figures} |", flush=True)

    data = corpora.newsgroups()
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
    many = {"n_topics": 40, "c": 64, "alpha": 5.6, "burn_in": 30, "n_draws": 10}
    tasks = (
        ("two groups", corpora.newsgroups_pair(data), {"n_topics": 20, "c": 25}),
        ("twenty groups", data, many),
    )
    for axis, (name, task, settings) in zip(axes, tasks, strict=True):
        models = {
            "supertopic, 8 chains": SLDAClassifier(n_chains=8, n_jobs=2, random_state=0, **settings),
            "the same, calibrate=False": SLDAClassifier(
                n_chains=8, n_jobs=2, calibrate=False, random_state=0, **settings
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


if __name__ == "__main__":
    main()
