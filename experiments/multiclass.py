"""Figure 2: all 20 groups, a model with its own topics for each (one-vs-rest, as in the paper), or shared topics."""

from typing import NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from sklearn.multiclass import OneVsRestClassifier

from experiments.tasks import curve, on_engine, summary, time_it, twenty
from supertopic.baselines import paper_system

K = 20, 50, 110
SEEDS = range(4)
TWO = range(2)  # where a cell takes long, or the whole machine
EVERY = 1  # one document of so many


class Line(NamedTuple):
    system: str
    topics: str = "own"  # or "shared"
    n_jobs: int = 1
    K: tuple[int, ...] = ()  # where not all
    seeds: range | None = None


LINES = (  # another engine is one more line
    Line("gSLDA"),
    Line("gSLDA+"),
    Line("parallel-gSLDA", n_jobs=2, seeds=TWO),
    Line("parallel-gSLDA+", n_jobs=2, seeds=TWO),
    Line("gSLDA", "shared"),
    Line("gSLDA+", "shared"),
    Line("gMedLDA", "shared"),
    Line("parallel-gSLDA+", "shared", n_jobs=2, seeds=TWO),
    Line("parallel-gSLDA+, Ray", "shared", n_jobs=2, seeds=TWO),
    Line("gLDA+SVM", "shared"),
    Line("gMedLDA", K=(20,), seeds=TWO),
    Line("vMedLDA", "shared", K=(20,), seeds=TWO),
    Line("vSLDA", "shared", K=(20,), seeds=TWO),  # 20 minutes; time grows with K and more
    Line("DiscLDA", "shared", K=(21,), seeds=TWO),  # one topic more than classes is its least
)
LINE = ["system", "topics", "n_jobs"]
QUICK = {
    "LINES": (Line("gSLDA+"), Line("parallel-gSLDA+, Ray", "shared", n_jobs=2, K=(20,)), Line("gSLDA+", "shared"),
              Line("gLDA+SVM", "shared")),
    "K": (20, 30), "SEEDS": range(1), "EVERY": 20,
}  # fmt: skip


def cells():
    return [
        {"system": line.system, "topics": line.topics, "n_jobs": line.n_jobs, "K": k, "every": EVERY, "seed": seed}
        for seed in SEEDS
        for line in LINES
        if line.seeds is None or seed in line.seeds
        for k in line.K or K
    ]


def measure(cell):
    with on_engine(cell["system"], cell["n_jobs"]) as (system, n_jobs, engine):
        model = paper_system(system, cell["K"], task="multiclass", random_state=cell["seed"], n_jobs=n_jobs)
        model.set_params(**engine)
        return time_it(OneVsRestClassifier(model) if cell["topics"] == "own" else model, twenty(cell["every"]))


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    for axis, name, title in zip(axes, ("accuracy", "train_seconds"), ("accuracy", "training time (s)"), strict=True):
        for i, ((system, topics, n_jobs), own) in enumerate(rows.groupby(LINE, sort=False)):
            label = f"{system}, {topics} topics" + (
                f", {n_jobs} {'workers' if 'Ray' in system else 'threads'}" if n_jobs > 1 else ""
            )
            fmt = {"own": "o-", "shared": "s--"}[topics] if own["K"].nunique() > 1 else "D"
            curve(axis, own, "K", name, fmt=fmt, color=plt.get_cmap("tab20")(i), label=label)
        axis.set(xlabel="topics K", title=title)
        axis.grid(alpha=0.3)
    axes[1].set_yscale("log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    parts = summary(rows, LINE, "K"), summary(rows, LINE, "K", "train_seconds", 0)
    return pd.concat(parts, axis=1, keys=["accuracy", "seconds"])
