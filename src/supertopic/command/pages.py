"""The command's pages."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline

from supertopic.command.steps import err


def write_page(
    pipeline: Pipeline, texts: Any, y: Any, path: Path, title: str, unseen: bool, rival: dict | None, beside: dict
) -> None:
    """Write the page of a model and of some documents."""
    from supertopic.report.page import make_page

    page = make_page(pipeline, list(texts), y, title=title, unseen=unseen, rival=rival, **beside)
    path.write_text(page, encoding="utf-8")
    err.print(f"The page is in {escape(str(path))}.", highlight=False)


def logistic(texts: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any] | None:
    """What logistic regression on tf-idf, which learns from the same documents, says of the others."""
    known = np.array([value is not None for value in y.tolist()])
    train, test = train[known[train]], test[known[test]]
    labels = np.array([str(value) for value in y.tolist()])
    if len(set(labels[train])) < 2 or not len(test):
        return None
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=10.0, max_iter=1000))
    model.fit(texts[train], labels[train])
    p, some = model.predict_proba(texts[test]), np.isin(labels[test], model.classes_)
    return {
        "name": "Logistic regression on tf-idf, of the same documents",
        "accuracy": float((model.classes_[p.argmax(axis=1)] == labels[test]).mean()),
        "log_loss": float(log_loss(labels[test][some], p[some], labels=model.classes_)),
    }
