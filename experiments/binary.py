"""Figure 1: alt.atheism against talk.religion.misc, all systems with the paper's settings."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.tasks import curve, pair, summary, time_it
from supertopic.baselines import paper_system

SYSTEMS = "gSLDA", "gSLDA+", "gMedLDA", "gLDA+SVM", "vSLDA", "vSLDA+", "vMedLDA", "DiscLDA"
K = 5, 10, 15, 20, 25, 30
SEEDS = range(5)
QUICK = {"SYSTEMS": ("gSLDA", "gSLDA+", "gMedLDA", "gLDA+SVM"), "K": (10,)}


def cells():
    grid = [{"system": system, "K": k, "seed": seed} for seed in SEEDS for k in K for system in SYSTEMS]
    return [*grid, {"system": "SVM", "K": 0, "seed": 0}]  # no topics, no chance


def measure(cell):
    return time_it(paper_system(cell["system"], cell["K"], random_state=cell["seed"]), pair())


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    titles = {"accuracy": "accuracy", "train_seconds": "training time (s)", "test_seconds": "testing time (s)"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        for i, (system, own) in enumerate(rows[rows["K"] > 0].groupby("system", sort=False)):
            style = {"fmt": "o-" if system[0] == "g" else "s--", "color": f"C{i}", "label": system}
            curve(axis, own, "K", name, **style)
        axis.set(xlabel="topics K", title=title)
        axis.grid(alpha=0.3)
    axes[0].axhline(rows.loc[rows["system"] == "SVM", "accuracy"].iloc[0], color="0.5", lw=1, label="SVM on words")
    axes[1].set_yscale("log")
    axes[2].set_ylim(0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=9, frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    return summary(rows.replace({"K": {0: "no topics"}}), "system", "K")


def check(rows: pd.DataFrame) -> None:
    """What cannot be noise: the weight c pays, and topics learned with the classes beat topics learned without."""
    mean = rows.groupby("system")["accuracy"].mean()
    for other in ("gSLDA", "gLDA+SVM"):
        if not mean["gSLDA+"] > mean[other]:
            raise AssertionError(f"gSLDA+ has {mean['gSLDA+']:.3f}, {other} {mean[other]:.3f}: gSLDA+ must be better.")
