"""Figure 6: gSLDA on two groups with different alpha."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.tasks import curve, pair, summary, time_it
from supertopic.baselines import paper_system

ALPHA = 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0
C = 1, 9
K = 5, 10, 20, 30
SEEDS = range(5)
QUICK = {"ALPHA": (0.1, 10.0), "K": (10,), "SEEDS": range(1)}


def cells():
    return [{"c": c, "K": k, "alpha": alpha, "seed": seed} for seed in SEEDS for c in C for k in K for alpha in ALPHA]


def measure(cell):
    model = paper_system("gSLDA", cell["K"], random_state=cell["seed"])
    return time_it(model.set_params(c=float(cell["c"]), alpha=cell["alpha"]), pair())


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, len(C), figsize=(8, 3.4), layout="constrained", sharey=True)
    for axis, (c, part) in zip(axes, rows.groupby("c"), strict=True):
        for k, own in part.groupby("K"):
            curve(axis, own, "alpha", "accuracy", fmt="o-", label=f"K = {k}")
        axis.set_xscale("log")
        axis.set(xlabel="alpha", title=f"accuracy, c = {c}")
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    return summary(rows, ["c", "K"], "alpha")
