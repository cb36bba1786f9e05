"""Beside Figure 1: is LDA, then an SVM, better than plain gSLDA? With one draw, with twenty, and after a longer run."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.tasks import curve, pair, summary, time_it
from supertopic.baselines import paper_system

SYSTEMS = "gSLDA", "gLDA+SVM"
RUNS = (100, 1), (80, 20), (1000, 20)  # burn-in, draws; the paper's is the first, Figure 1 has the second
K = 5, 10, 15, 20, 25, 30
SEEDS = range(5)
QUICK = {"RUNS": ((100, 1),), "K": (10,), "SEEDS": range(1)}


def cells():
    return [
        {"system": system, "K": k, "M": m, "n_draws": n_draws, "seed": seed}
        for seed in SEEDS
        for m, n_draws in RUNS
        for k in K
        for system in SYSTEMS
    ]


def measure(cell):
    model = paper_system(cell["system"], cell["K"], random_state=cell["seed"])
    topics = model[0] if cell["system"] == "gLDA+SVM" else model
    topics.set_params(burn_in=cell["M"], n_draws=cell["n_draws"])
    return time_it(model, pair())


def draw(rows: pd.DataFrame) -> Figure:
    groups = rows.groupby(["M", "n_draws"], sort=False)
    figure, axes = plt.subplots(
        1, len(groups), figsize=(2.6 * len(groups), 3), layout="constrained", sharey=True, squeeze=False
    )
    for axis, ((m, n_draws), part) in zip(axes.ravel(), groups, strict=True):
        for system, own in part.groupby("system", sort=False):
            curve(axis, own, "K", "accuracy", fmt="o-", label=system)
        axis.set(xlabel="topics K", title=f"M = {m}, draws: {n_draws}")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("accuracy")
    axes[0, 0].legend(frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    return summary(rows, ["M", "n_draws", "system"], "K")
