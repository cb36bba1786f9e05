"""Not in the paper: what averaging over draws and over chains is worth, on two groups."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import log_loss

from experiments.tasks import curve, pair, summary, time_it
from supertopic.baselines import paper_system

K = 20
DRAWS = 1, 2, 5, 10, 20, 50, 100  # of one chain
CHAINS = 1, 2, 4, 8, 16  # of 20 draws each
SEEDS = range(5)
QUICK = {"DRAWS": (1, 20), "CHAINS": (1, 2), "SEEDS": range(2)}


def cells():
    grid = [(n_draws, 1) for n_draws in DRAWS] + [(20, n_chains) for n_chains in CHAINS]
    return [
        {"K": K, "calibrate": calibrate, "n_draws": n_draws, "n_chains": n_chains, "seed": seed}
        for seed in SEEDS
        for calibrate in (False, True)
        for n_draws, n_chains in dict.fromkeys(grid)
    ]


def measure(cell):
    parameters = {name: cell[name] for name in ("calibrate", "n_draws", "n_chains")}
    data, model = pair(), paper_system("gSLDA+", cell["K"], random_state=cell["seed"]).set_params(**parameters)
    figures = time_it(model, data)
    return figures | {"log_loss": round(log_loss(data.y_test, model.predict_proba(data.X_test)), 5)}


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(2, 2, figsize=(8, 5.4), layout="constrained", sharey="row", sharex="col")
    parts = {"n_draws": rows[rows["n_chains"] == 1], "n_chains": rows[rows["n_draws"] == 20]}
    for column, (x, part) in zip(axes.T, parts.items(), strict=True):
        for axis, name in zip(column, ("accuracy", "log_loss"), strict=True):
            for calibrate, own in part.groupby("calibrate"):
                curve(axis, own, x, name, fmt="o-", label="calibrated" if calibrate else "the chain's own weights")
            axis.set_xscale("log")
            axis.set_xticks(sorted(part[x].unique()), sorted(part[x].unique()))
            axis.minorticks_off()
            axis.grid(alpha=0.3)
    axes[0, 0].set(title="one chain", ylabel="accuracy")
    axes[0, 1].set(title="several chains of 20 draws")
    axes[1, 0].set(xlabel="draws", ylabel="log-loss")
    axes[1, 1].set(xlabel="chains")
    axes[0, 0].legend(frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    index = ["calibrate", "n_chains", "n_draws"]
    long = rows.melt([*index, "seed"], ["accuracy", "log_loss"], var_name="figure")
    return summary(long, index, "figure", "value")
