"""The systems that the ACL 2013 paper compares with, and all of its systems by their names."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from supertopic.baselines.dawid_skene import DawidSkene, dawid_skene
from supertopic.baselines.disclda import DiscLDA
from supertopic.baselines.variational import VariationalMedLDA, VariationalSLDA
from supertopic.estimators.classifiers import MedLDAClassifier, SLDAClassifier
from supertopic.estimators.lda import LDA

__all__ = ["SYSTEMS", "DawidSkene", "DiscLDA", "VariationalMedLDA", "VariationalSLDA", "dawid_skene", "paper_system"]

SYSTEMS = (
    "gSLDA", "gSLDA+", "parallel-gSLDA", "parallel-gSLDA+", "vSLDA", "vSLDA+", "vMedLDA", "gMedLDA", "gLDA+SVM",
    "DiscLDA", "SVM",
)  # fmt: skip


def paper_system(
    name: str, n_topics: int = 20, *, task: str = "binary", random_state: Any = None, n_jobs: int | None = None
) -> BaseEstimator:
    """One of the paper's systems, by its name there, with the paper's settings.

    nu2 = 1 and beta = 0.01; on the binary task alpha = 1, 100 iterations and, for the "+", c = 25; on twenty classes
    alpha = 5.6, 40 iterations and c = 256. vSLDA+ is the one of the paper's footnote. One model for all classes has
    shared topics here; the paper's own setting is `OneVsRestClassifier(paper_system("gSLDA+", task="multiclass"))`.
    One chain, its start and predictions with its own weights are the paper's, too.

    Parameters
    ----------
    name : str
        One of SYSTEMS.
    n_topics : int, default=20
    task : {"binary", "multiclass"}
        Which of the paper's two settings.
    random_state, n_jobs :
        As everywhere; SVM ignores them.
    """
    if name not in SYSTEMS:
        raise ValueError(f"{name!r} is none of the paper's systems, which are {', '.join(SYSTEMS)}.")
    if task not in ("binary", "multiclass"):
        raise ValueError(f"task must be 'binary' or 'multiclass', got {task!r}.")
    binary = task == "binary"
    alpha, burn_in, n_draws = (1.0, 80, 20) if binary else (5.6, 30, 10)
    gibbs: dict[str, Any] = {
        "alpha": alpha,
        "init": "random",
        "burn_in": burn_in,
        "n_draws": n_draws,
        "random_state": random_state,
        "n_jobs": n_jobs,
    }
    ours: dict[str, Any] = {
        "calibrate": False,
        "words": False,
        "start": "paper",
        "n_chains": 1,
    }  # none of what came after the paper
    c = (25.0 if binary else 256.0) if name.endswith("+") else 1.0
    if "gSLDA" in name:
        sampler = "delayed" if name.startswith("parallel") else "collapsed"
        return SLDAClassifier(n_topics, c=c, sampler=sampler, **ours, **gibbs)
    if name == "gMedLDA":
        return MedLDAClassifier(n_topics, margin=64.0 if binary else 16.0, **ours, **gibbs)
    if name == "gLDA+SVM":
        return make_pipeline(LDA(n_topics, **gibbs), LinearSVC(C=10.0, max_iter=5000))
    if name == "SVM":
        return LinearSVC(C=0.01, max_iter=5000)
    if name.startswith("vSLDA"):
        return VariationalSLDA(n_topics, c=c, alpha=alpha, random_state=random_state)
    kinds: dict[str, Any] = {"vMedLDA": VariationalMedLDA, "DiscLDA": DiscLDA}
    return kinds[name](n_topics, alpha=alpha, random_state=random_state)
