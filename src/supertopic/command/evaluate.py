"""How well held-out documents are predicted, beside the base rate and another model."""

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import f1_score, log_loss, precision_recall_fscore_support, r2_score
from sklearn.pipeline import make_pipeline

from supertopic.report.evaluate import resampled, wilson

LOGISTIC = "Logistic regression on words and pairs"


def class_scores(model: Any, X: Any, beside: dict[str, Any]) -> np.ndarray:
    """The probability, or with the hinge the score, of each answer: (n_docs, n_answers)."""
    verb = model.predict_proba if model.posterior_.response.has_probabilities else model.decision_function
    return verb(X, **beside).reshape(np.shape(X)[0], -1)


def evaluate_classes(model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]) -> dict[str, Any]:
    """Accuracy of classes or F1 of labels, log-loss, and figures for each class; and the same for the base rate."""
    response, scores = model.posterior_.response, class_scores(model, X, beside)
    labels, classes = response.multilabel, response.classes
    truth = y.astype(bool) if labels else y[:, None] == classes  # (n_docs, n_classes)
    base = np.mean(train_y if labels else train_y[:, None] == classes, axis=0)
    chosen = response.chosen(scores)
    chosen = chosen.astype(bool) if labels else chosen[:, None] == np.arange(len(classes))
    facts: dict[str, Any] = {"test_documents": len(y)}
    if labels:

        def f1(docs: Any) -> float:
            return f1_score(truth[docs], chosen[docs], average="micro", zero_division=0.0)

        facts |= {"test_micro_f1": float(f1(slice(None))), "interval": resampled(f1, len(y))}
    else:
        right = (truth & chosen).any(axis=1)
        facts |= {"test_accuracy": float(right.mean()), "interval": wilson(right)}
        facts["base_rate_accuracy"] = float(np.mean(truth[:, base.argmax()]))
    if response.has_probabilities:
        facts["test_log_loss"] = mean_log_loss(truth, scores, labels)
        facts["base_rate_log_loss"] = mean_log_loss(truth, base, labels)
    figures = precision_recall_fscore_support(truth, chosen, average=None, zero_division=0.0)
    rows = zip(response.labels, *(figure.tolist() for figure in figures), strict=True)
    keys = ("class", "precision", "recall", "f1", "documents")
    return facts | {"test_classes": [dict(zip(keys, row, strict=True)) for row in rows]}


def evaluate_grades(model: Any, X: Any, y: np.ndarray, train_y: np.ndarray, beside: dict[str, Any]) -> dict[str, Any]:
    """The same for ordered classes, and how far predictions are away in their order."""
    response, facts = model.posterior_.response, evaluate_classes(model, X, y, train_y, beside)
    truth = response.truth(y, len(y))
    base = np.tile(response.truth(train_y, len(train_y)).mean(axis=0), (len(y), 1))
    found = {"test": model.evaluate(X, y, **beside).figures, "base_rate": response.figures(truth, base)}
    for name in ("quadratic_kappa", "mean_absolute_error", "ranked_probability_score"):
        facts |= {f"{whose}_{name}": figures[name] for whose, figures in found.items()}
    return facts | {"test_classes": facts.pop("test_classes")}


def evaluate_times(model: Any, X: Any, y: np.ndarray, beside: dict[str, Any]) -> dict[str, Any]:
    """Concordance and Brier scores; the base rate is that of the life table of the training documents."""
    response, curve = model.posterior_.response, model.predict_survival_function(X, **beside)
    truth = response.truth(y, len(y))

    def concordance(docs: Any) -> float:
        return response.score(truth[docs], curve[docs])

    at_risk, events = response.life
    base = np.tile(np.cumprod(1.0 - events / np.maximum(at_risk, 1e-300)), (len(y), 1))
    own, of_base = response.figures(truth, curve), response.figures(truth, base)
    facts: dict[str, Any] = {"test_documents": len(y), "test_events": int((truth[:, 1] > 0).sum())}
    facts |= {"test_concordance": own["concordance"], "interval": resampled(concordance, len(y))}
    facts["test_uno_concordance"] = own["uno_concordance"]
    for whose, figures in (("test", own), ("base_rate", of_base)):
        facts[f"{whose}_integrated_brier_score"] = figures["integrated_brier_score"]
    return facts


def evaluate_raters(model: Any, X: Any, y: Any, beside: dict[str, Any]) -> dict[str, Any]:
    """Figures against true classes or ratings, and against those that the answers make most probable."""
    found = model.evaluate(X, y, **beside)
    facts: dict[str, Any] = {"test_documents": int(np.isfinite(found.losses).sum())}
    return facts | {f"test_{name.lower()}": value for name, value in found.figures.items()}


def evaluate_numbers(predicted: np.ndarray, y: np.ndarray, train_y: np.ndarray) -> dict[str, Any]:
    """R2 and the mean absolute error."""

    def r2(docs: Any) -> float:
        return r2_score(y[docs], predicted[docs])

    return {
        "test_documents": len(y),
        "test_r2": float(r2(slice(None))),
        "interval": resampled(r2, len(y)),
        "test_mean_error": float(np.mean(np.abs(predicted - y))),
        "base_rate_mean_error": float(np.mean(np.abs(train_y.mean() - y))),
    }


def mean_log_loss(truth: np.ndarray, p: np.ndarray, labels: bool) -> float:
    """The mean log-loss of classes, or of the labels of a document together."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    logs = np.where(truth, np.log(p), np.log1p(-p) if labels else 0.0)
    return float(-logs.sum(axis=1).mean())


def words_and_pairs() -> TfidfVectorizer:
    """tf-idf of words and pairs of words."""
    return TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))


def predict_ridge(texts: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any] | None:
    """Predictions of a ridge regression on tf-idf for the test documents, one number for each."""
    train = train[~np.isnan(y[train])]
    if not len(train) or not len(test):
        return None
    model = make_pipeline(words_and_pairs(), RidgeCV(np.logspace(-1, 2, 7))).fit(texts[train], y[train])
    return {"name": "Ridge regression on words and pairs", "predicted": model.predict(texts[test])}


def evaluate_logistic_labels(
    texts: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, Any] | None:
    """The micro F1 of logistic regressions on tf-idf, one for each label, on the same documents."""
    known = ~np.isnan(y).any(axis=1)
    train, test = train[known[train]], test[known[test]]
    if not len(train) or not len(test):
        return None
    vectorizer = words_and_pairs()
    X, X_test = vectorizer.fit_transform(texts[train]), vectorizer.transform(texts[test])
    said = np.tile(y[train[0]], (len(test), 1))  # of a label that all documents have, or none
    for j, own in enumerate(y[train].T):
        if own.min() < own.max():
            said[:, j] = LogisticRegression(C=10.0, max_iter=1000).fit(X, own).predict(X_test)
    score = f1_score(y[test].astype(bool), said.astype(bool), average="micro", zero_division=0.0)
    return {"name": LOGISTIC, "micro_f1": float(score)}


def evaluate_logistic(texts: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any] | None:
    """Figures of logistic regression on tf-idf, fitted and tested on the same documents."""
    known = np.array([value is not None for value in y.tolist()])
    train, test = train[known[train]], test[known[test]]
    labels = np.array([str(value) for value in y.tolist()])
    if len(set(labels[train])) < 2 or not len(test):
        return None
    model = make_pipeline(words_and_pairs(), LogisticRegression(C=10.0, max_iter=1000))
    model.fit(texts[train], labels[train])
    p, some = model.predict_proba(texts[test]), np.isin(labels[test], model.classes_)
    right = model.classes_[p.argmax(axis=1)] == labels[test]
    found: dict[str, Any] = {"name": LOGISTIC, "accuracy": float(right.mean())}
    if some.any():  # a class may be in the test documents alone
        found["log_loss"] = float(log_loss(labels[test][some], p[some], labels=model.classes_))
    return found
