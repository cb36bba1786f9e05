"""Figure 4: gSLDA+ and parallel-gSLDA+, 20 groups one-vs-rest, a single draw after M iterations of burn-in."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from sklearn.multiclass import OneVsRestClassifier

from experiments.tasks import curve, on_engine, summary, time_it, twenty
from supertopic.baselines import paper_system

ENGINES = ("gSLDA+", 1), ("parallel-gSLDA+", 2), ("parallel-gSLDA+, Ray", 2)  # system, threads or processes
M = 0, 5, 10, 20, 40, 60
K = 20
SEEDS = range(2)  # each cell is twenty chains
EVERY = 1
QUICK = {"M": (0, 20), "SEEDS": range(1), "EVERY": 20, "ENGINES": ENGINES[:2]}  # Ray is tried in Figure 2


def cells():
    return [
        {"system": system, "n_jobs": n_jobs, "K": K, "M": m, "every": EVERY, "seed": seed}
        for seed in SEEDS
        for system, n_jobs in ENGINES
        for m in M
    ]


def measure(cell):
    with on_engine(cell["system"], cell["n_jobs"]) as (system, n_jobs, engine):
        model = paper_system(system, cell["K"], task="multiclass", random_state=cell["seed"], n_jobs=n_jobs)
        model.set_params(burn_in=cell["M"], n_draws=1, **engine)
        return time_it(OneVsRestClassifier(model), twenty(cell["every"]))


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for axis, name, title in zip(axes, ("accuracy", "train_seconds"), ("accuracy", "training time (s)"), strict=True):
        for (system, n_jobs), own in rows.groupby(["system", "n_jobs"], sort=False):
            label = f"{system}, {n_jobs} {'worker' if 'Ray' in system else 'thread'}{'s' * (n_jobs > 1)}"
            curve(axis, own, "M", name, fmt="o-", label=label)
        axis.set_xscale("symlog", linthresh=5)
        axis.set_xticks(sorted(rows["M"].unique()), sorted(rows["M"].unique()))
        axis.set(xlabel="burn-in M", title=title)
        axis.grid(alpha=0.3)
    axes[1].set_yscale("log")
    axes[0].legend(frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    engine = ["system", "n_jobs"]
    parts = summary(rows, engine, "M"), summary(rows, engine, "M", "train_seconds", 0)
    return pd.concat(parts, keys=["accuracy", "seconds"], names=["figure"])
