"""Settings of two papers, as far as they can be made here: `python -m benchmarks.published [--seeds N]`.

newsgroups: twenty groups as posted, headers included, in scikit-learn's split, and the 2,000 most frequent words (Card,
Tan and Smith, 2018, for SCHOLAR). films: whether a rating is above 0.5, with 4,004 reviews to learn from, 500 to choose
settings, and 500 to test on (Hughes and others, 2018, for prediction-constrained sLDA). Their split of the reviews is
not known here; each seed draws one, and the 500 to choose settings are left out. Results are added to published.json.
"""

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks import corpora, history, texts
from supertopic import SLDAClassifier

RESULTS = history.place("published")
N_TRAIN, N_TEST = 4004, 500


def newsgroups(seed: int) -> tuple:
    a, y, b, z = texts.newsgroups()
    vectorizer = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", max_features=2000)
    return vectorizer.fit_transform(a), y, vectorizer.transform(b), z


def films(seed: int) -> tuple:
    data = corpora.movie_reviews()
    y = np.where(data.y > 0.5, "above", "below")
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:N_TRAIN], order[-N_TEST:]
    return data.X[train], y[train], data.X[test], y[test]


def systems(seed: int) -> dict:
    grid = GridSearchCV(LogisticRegression(max_iter=300), {"C": [1.0, 10.0, 100.0]}, scoring="neg_log_loss", cv=3)
    return {
        "supertopic": SLDAClassifier(random_state=seed, n_jobs=2),
        "supertopic, topics alone": SLDAClassifier(random_state=seed, n_jobs=2, words=False),
        "logistic regression": make_pipeline(TfidfTransformer(sublinear_tf=True), grid),
    }


def run(n_seeds: int) -> list[dict]:
    rows = []
    for name, make in {"films": films, "newsgroups": newsgroups}.items():
        for seed in range(n_seeds):
            X, y, X_test, y_test = make(seed)
            for system, model in systems(seed).items():
                p = model.fit(X, y).predict_proba(X_test)
                row = {"corpus": name, "system": system, "seed": seed, "documents": [len(y), len(y_test)]}
                row["accuracy"] = float(np.mean(model.classes_[p.argmax(axis=1)] == y_test))
                row["log-loss"] = float(log_loss(y_test, p, labels=model.classes_))
                if len(model.classes_) == 2:
                    row["auc"] = float(roc_auc_score(y_test == model.classes_[1], p[:, 1]))
                print(row, flush=True)
                rows.append(row)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    history.append(RESULTS, {"rows": run(parser.parse_args().seeds)})
