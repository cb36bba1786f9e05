"""Figure 3: gSLDA+ on two groups with a single draw after M iterations of burn-in."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.tasks import curve, pair, summary, time_it
from supertopic.baselines import paper_system

M = 0, 1, 2, 5, 10, 20, 40, 60, 100, 200
K = 5, 10, 20, 30
SEEDS = range(5)
QUICK = {"M": (0, 20), "K": (10,), "SEEDS": range(2)}


def cells():
    return [{"K": k, "M": m, "seed": seed} for seed in SEEDS for k in K for m in M]


def measure(cell):
    model = paper_system("gSLDA+", cell["K"], random_state=cell["seed"])
    return time_it(model.set_params(burn_in=cell["M"], n_draws=1), pair())


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for axis, name, title in zip(axes, ("accuracy", "train_seconds"), ("accuracy", "training time (s)"), strict=True):
        for k, own in rows.groupby("K"):
            curve(axis, own, "M", name, fmt="o-", label=f"K = {k}")
        axis.set_xscale("symlog", linthresh=1)
        axis.set(xlabel="burn-in M", title=title, xticks=sorted(rows["M"].unique()))
        axis.set_xticklabels(sorted(rows["M"].unique()))
        axis.grid(alpha=0.3)
    axes[1].set_yscale("log")
    axes[0].legend(frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    return summary(rows, "K", "M")
