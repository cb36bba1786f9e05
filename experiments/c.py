"""Figure 5: gSLDA on two groups with different c."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.tasks import curve, pair, summary, time_it
from supertopic.baselines import paper_system

C = 1, 2, 4, 9, 16, 25, 49, 100, 225, 400, 1600
K = 5, 10, 20
SEEDS = range(5)
QUICK = {"C": (1, 25), "K": (10,), "SEEDS": range(2)}


def cells():
    return [{"K": k, "c": c, "seed": seed} for seed in SEEDS for k in K for c in C]


def measure(cell):
    data, model = pair(), paper_system("gSLDA", cell["K"], random_state=cell["seed"]).set_params(c=float(cell["c"]))
    figures = time_it(model, data)
    chain = model.classes_[(model.doc_topic_ @ model.coef_draws_.mean(axis=(0, 1)).ravel() > 0).astype(int)]
    return figures | {
        "train_accuracy": round(float(np.mean(chain == data.y)), 5),  # with the chain's topics, which saw the class
        "train_as_new": round(float(np.mean(model.predict(data.X) == data.y)), 5),  # from the words alone
    }


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    for i, (k, own) in enumerate(rows.groupby("K")):
        curve(axes[0], own, "c", "train_accuracy", fmt="^:", color=f"C{i}", label=f"training, K = {k}")
        curve(axes[0], own, "c", "accuracy", fmt="o-", color=f"C{i}", label=f"test, K = {k}")
        curve(axes[1], own, "c", "train_seconds", fmt="o-", color=f"C{i}", label=f"K = {k}")
    for axis, title in zip(axes, ("accuracy", "training time (s)"), strict=True):
        axis.set_xscale("log")
        axis.set(xlabel="c", title=title, xticks=sorted(rows["c"].unique()))
        axis.set_xticklabels(sorted(rows["c"].unique()), rotation=45)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[1].set_ylim(0)
    axes[0].legend(frameon=False, ncols=2)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    figures = {"test": "accuracy", "training": "train_accuracy", "training, from words": "train_as_new"}
    return pd.concat([summary(rows, "K", "c", figure) for figure in figures.values()], keys=figures, names=["accuracy"])
