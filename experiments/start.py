"""Not in the paper: lambda before the first iteration, 1 as in the paper or its mean; twenty groups, shared topics."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.tasks import curve, summary, time_it, twenty
from supertopic.baselines import paper_system

SYSTEMS = "gSLDA+", "parallel-gSLDA+", "gMedLDA"
STARTS = "paper", "mean"
K = 20, 50, 110
SEEDS = range(3)
EVERY = 1  # one document of so many
LINE = ["system", "start"]
QUICK = {"SYSTEMS": ("gSLDA+",), "K": (20, 30), "SEEDS": range(1), "EVERY": 20}


def cells():
    return [
        {"system": system, "start": start, "K": k, "every": EVERY, "seed": seed}
        for seed in SEEDS
        for system in SYSTEMS
        for start in STARTS
        for k in K
    ]


def measure(cell):
    model = paper_system(cell["system"], cell["K"], task="multiclass", random_state=cell["seed"])
    model.set_params(start=cell["start"])
    figures = time_it(model, twenty(cell["every"]))
    return figures | {"eta_sd": round(float(model.training_draws_.std()), 2)}


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axis, name, title in zip(axes, ("accuracy", "train_seconds"), ("accuracy", "training time (s)"), strict=True):
        for i, ((system, start), own) in enumerate(rows.groupby(LINE, sort=False)):
            fmt = {"paper": "s--", "mean": "o-"}[start]
            curve(axis, own, "K", name, fmt=fmt, color=f"C{i // 2}", label=f"{system}, start: {start}")
        axis.set(xlabel="topics K", title=title)
        axis.grid(alpha=0.3)
    axes[1].set_yscale("log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    parts = {"accuracy": ("accuracy", 3), "seconds": ("train_seconds", 0), "sd of eta": ("eta_sd", 1)}
    return pd.concat([summary(rows, LINE, "K", *part) for part in parts.values()], axis=1, keys=parts)
