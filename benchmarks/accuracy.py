"""How well every response is predicted, beside what people use today: `python -m benchmarks.accuracy [NAME ...]`.

Ours have the defaults, which were picked on parts held out of the training documents, never on test documents; what
was tuned of others, the functions below say. Every figure is over five seeds, with its sd; for corpora without a split,
over five seeds of five folds each. A table that is named is made, whatever there is; without a name all of them are
shown as they were made last, and what is missing is made. Results are added to accuracy.json, where earlier ones stay.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, PoissonRegressor, RidgeCV
from sklearn.metrics import f1_score, log_loss, r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks import corpora, history
from supertopic import LDA, MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor

SEEDS = range(5)
JOBS = 1  # fits at a time
RESULTS = history.place("accuracy")
Table = dict[str, list[dict[str, float]]]  # system -> a row of figures for each seed


def tfidf() -> TfidfTransformer:
    return TfidfTransformer(sublinear_tf=True)


def calibration_error(p: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """The mean gap between confidence and accuracy over bins of equal width."""
    confidence = p.max(axis=1)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    return sum(abs((confidence - right)[bins == b].sum()) for b in range(n_bins)) / len(p)


def evaluate(model, data: corpora.Split) -> dict[str, float]:
    """Accuracy and, where there are probabilities, log-loss and expected calibration error on the test documents."""
    if not hasattr(model, "predict_proba"):
        return {"accuracy": float(np.mean(model.predict(data.X_test) == data.y_test))}
    p = model.predict_proba(data.X_test)
    right = model.classes_[p.argmax(axis=1)] == data.y_test
    figures = {"accuracy": right.mean(), "log-loss": log_loss(data.y_test, p, labels=model.classes_)}
    return {name: float(value) for name, value in (figures | {"ECE": calibration_error(p, right)}).items()}


def seeds(systems: dict[str, Callable], data: corpora.Split, evaluate: Callable) -> Table:
    """Every system fitted with every seed, some fits at a time."""

    def row(make: Callable, seed: int) -> dict[str, float]:
        return evaluate(make(random_state=seed, n_jobs=max(1, 2 // JOBS)).fit(data.X, data.y), data)

    rows = Parallel(JOBS)(delayed(row)(make, seed) for make in systems.values() for seed in SEEDS)
    return {name: rows[i * len(SEEDS) : (i + 1) * len(SEEDS)] for i, name in enumerate(systems)}


def classes(data: corpora.Split) -> Table:
    """Classification with the defaults of everything, and linear models whose penalty is cross-validated."""
    ours = {
        "SLDAClassifier()": SLDAClassifier,
        "SLDAClassifier(n_chains=8)": partial(SLDAClassifier, n_chains=8),
        "SLDAClassifier(words=False)": partial(SLDAClassifier, words=False),
        "SLDAClassifier(words=False, n_chains=8)": partial(SLDAClassifier, words=False, n_chains=8),
        "MedLDAClassifier()": MedLDAClassifier,
    }
    Cs, penalty = np.logspace(-2, 3, 11), {"linearsvc__C": np.logspace(-2, 2, 9)}
    peers = {
        "logistic regression on tf-idf": make_pipeline(
            tfidf(), LogisticRegressionCV(Cs=Cs, cv=5, scoring="neg_log_loss", max_iter=300, n_jobs=max(2, JOBS))
        ),
        "linear SVM on tf-idf": GridSearchCV(make_pipeline(tfidf(), LinearSVC()), penalty, cv=5, n_jobs=max(2, JOBS)),
        "LDA + linear SVM": make_pipeline(LDA(random_state=0), LinearSVC(C=10)),
        "multinomial naive Bayes": GridSearchCV(MultinomialNB(), {"alpha": np.logspace(-3, 0, 7)}, cv=5),
    }
    return seeds(ours, data, evaluate) | {
        name: [evaluate(model.fit(data.X, data.y), data)] for name, model in peers.items()
    }


def binary() -> Table:
    """alt.atheism against talk.religion.misc."""
    return classes(corpora.newsgroups_pair(corpora.newsgroups()))


def twenty() -> Table:
    """All 20 groups."""
    return classes(corpora.newsgroups())


def reviews() -> Table:
    """IMDb: 25,000 reviews, and 25,000 to test on."""
    return classes(corpora.imdb())


def few_labels() -> Table:
    """20 groups with 10 % of the labels kept: the rest as documents without a label, or not at all."""
    data = corpora.newsgroups()
    table: Table = {"labelled documents, and the others without label": [], "labelled documents only": []}
    for seed in SEEDS:
        known = np.random.default_rng(seed).random(len(data.y)) < 0.1
        model = SLDAClassifier(n_jobs=2, random_state=seed)
        both = clone(model).fit(data.X, np.where(known, data.y, np.nan))
        few = clone(model).fit(data.X[known], data.y[known])
        for rows, fitted in zip(table.values(), (both, few), strict=True):
            rows.append(evaluate(fitted, data))
    return table


def reuters() -> Table:
    """90 labels. C of the linear models by a fifth of the training documents."""
    data = corpora.reuters()

    def f1(model, data: corpora.Split) -> dict[str, float]:
        predicted = model.predict(data.X_test)
        figures = {
            f"{kind}-F1": f1_score(data.y_test, predicted, average=kind, zero_division=0) for kind in ("micro", "macro")
        }
        if hasattr(model, "predict_proba"):
            p = np.clip(model.predict_proba(data.X_test), 1e-9, 1 - 1e-9)
            p = np.column_stack([pair[:, 1] for pair in p]) if isinstance(p, list) else p
            figures["log-loss"] = -np.where(data.y_test == 1, np.log(p), np.log(1 - p)).sum(axis=1).mean()
        return {name: float(value) for name, value in figures.items()}

    def lda(random_state, n_jobs):
        topics = LDA(100, alpha=10.0, random_state=random_state, n_jobs=n_jobs)
        return make_pipeline(topics, OneVsRestClassifier(LinearSVC(C=100)))

    ours = {
        "SLDAClassifier()": SLDAClassifier,
        "SLDAClassifier(words=False)": partial(SLDAClassifier, words=False),
        "MedLDAClassifier()": MedLDAClassifier,
        "LDA + one-vs-rest SVM": lda,
    }
    linear = OneVsRestClassifier(LogisticRegression(C=100, max_iter=300), n_jobs=2)
    peers = {"logistic regression on tf-idf, C=100": make_pipeline(tfidf(), linear)}
    return seeds(ours, data, f1) | {name: [f1(model.fit(data.X, data.y), data)] for name, model in peers.items()}


def folds(data: corpora.Corpus, systems: dict[str, Callable]) -> Table:
    """Each system's figures as means over five folds, for each seed: it shuffles the folds and starts the chains."""

    def mean(system: Callable, seed: int) -> dict[str, float]:
        parts = KFold(5, shuffle=True, random_state=seed).split(data.X)
        rows = [system(data.X[a], data.y[a], data.X[b], data.y[b], seed) for a, b in parts]
        return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}

    rows = Parallel(JOBS)(delayed(mean)(system, seed) for system in systems.values() for seed in SEEDS)
    return {name: rows[i * len(SEEDS) : (i + 1) * len(SEEDS)] for i, name in enumerate(systems)}


def ratings() -> Table:
    """Movie reviews. Ridge by cross-validation."""

    def slda(X, y, X_test, y_test, seed, **parameters):
        model = SLDARegressor(random_state=seed, n_jobs=max(1, 2 // JOBS), **parameters).fit(X, y)
        mean, std = model.predict(X_test, return_std=True)
        inside = np.abs(y_test - mean) < stats.norm.ppf(0.95) * std
        return {"R2": r2_score(y_test, mean), "inside the 90 % interval": inside.mean()}

    def lda(X, y, X_test, y_test, seed):
        model = make_pipeline(LDA(50, alpha=5.0, random_state=seed), RidgeCV(np.logspace(-3, 3, 13)))
        return {"R2": model.fit(X, y).score(X_test, y_test)}

    def tomotopy(X, y, X_test, y_test, seed):
        import tomotopy as tp

        names = [f"w{i}" for i in range(X.shape[1])]
        documents = [[names[w] for w in np.repeat(row.indices, row.data)] for row in X]
        model = tp.SLDAModel(k=50, vars="l", alpha=5.0 / 50, eta=0.01, seed=seed)
        for words, value in zip(documents, (y - y.mean()) / y.std(), strict=True):
            model.add_doc(words, [float(value)])
        model.train(120, workers=1, show_progress=False)
        new = [model.make_doc([names[w] for w in np.repeat(row.indices, row.data)] or ["w0"]) for row in X_test]
        model.infer(new, iterations=40)
        return {"R2": r2_score(y_test, y.mean() + y.std() * np.array([model.estimate(doc)[0] for doc in new]))}

    def ridge(X, y, X_test, y_test, seed):
        return {"R2": make_pipeline(tfidf(), RidgeCV(np.logspace(-3, 3, 13))).fit(X, y).score(X_test, y_test)}

    systems = {
        "SLDARegressor()": slda,
        "SLDARegressor(words=False)": lambda *a: slda(*a, words=False),
        "ridge regression on tf-idf": ridge,
        "LDA + ridge": lda,
    }
    return folds(corpora.movie_reviews(), systems | {"tomotopy, linear SLDA": tomotopy})


def citations() -> Table:
    """Cora. Penalties by cross-validation."""

    def fit_r(y, mean):
        """The dispersion that makes counts most likely, given their means."""
        score = lambda x: -stats.nbinom.logpmf(y, np.exp(x), 1 / (1 + mean / np.exp(x))).sum()  # noqa: E731
        return np.exp(optimize.minimize_scalar(score, bounds=(-5, 10), method="bounded").x)

    def slda(X, y, X_test, y_test, seed, **parameters):
        model = SLDACountRegressor(random_state=seed, n_jobs=max(1, 2 // JOBS), **parameters).fit(X, y)
        lower, upper = model.predict_interval(X_test)
        inside = (lower <= y_test) & (y_test <= upper)
        return {
            "log-likelihood": model.log_predictive(X_test, y_test).mean(),
            "inside the 90 % interval": inside.mean(),
        }

    def lda(X, y, X_test, y_test, seed, poisson=False):
        topics = LDA(50, alpha=5.0, random_state=seed).fit(X)
        x, x_test = topics.transform(X), topics.transform(X_test)
        search = GridSearchCV(PoissonRegressor(max_iter=1000), {"alpha": np.logspace(-6, 0, 7)}, cv=5).fit(x, y)
        mean, mean_test = search.predict(x), search.predict(x_test)
        if poisson:
            return {"log-likelihood": stats.poisson.logpmf(y_test, mean_test).mean()}
        r = fit_r(y, mean)
        return {"log-likelihood": stats.nbinom.logpmf(y_test, r, r / (r + mean_test)).mean()}

    def mean(X, y, X_test, y_test, seed):
        r = fit_r(y, y.mean())
        return {"log-likelihood": stats.nbinom.logpmf(y_test, r, r / (r + y.mean())).mean()}

    systems = {
        "SLDACountRegressor()": slda,
        "SLDACountRegressor(words=False)": lambda *a: slda(*a, words=False),
        "LDA + Poisson regression": lambda *a: lda(*a, poisson=True),
        "LDA + the same with a negative binomial": lda,
        "the mean, negative binomial": mean,
    }
    return folds(corpora.cora(), systems)


TABLES = {f.__name__: f for f in (binary, twenty, reviews, few_labels, reuters, ratings, citations)}


def show(name: str, table: Table) -> str:
    """A Markdown table: mean and, over several seeds, sd."""
    figures = list(dict.fromkeys(key for rows in table.values() for row in rows for key in row))
    lines = [f"| {name} | {' | '.join(figures)} |", "| --- |" + " --- |" * len(figures)]
    for system, rows in table.items():
        cells = []
        for key in figures:
            values = [row[key] for row in rows if key in row]
            spread = f" ({np.std(values, ddof=1):.3f})" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.3f}{spread}" if values else "-")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    global JOBS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*TABLES, []], help="tables to make, whatever there is")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    options = parser.parse_args()
    JOBS = options.jobs
    warnings.filterwarnings("ignore", message="Label not")
    made = {run["name"]: run["table"] for run in history.read(RESULTS)}
    for name in options.names or TABLES:
        if name in options.names or name not in made:
            began = time.perf_counter()
            made[name] = TABLES[name]()
            history.append(RESULTS, {"name": name, "table": made[name]})
            print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
        print(show(name, made[name]), "\n", flush=True)


if __name__ == "__main__":
    main()
