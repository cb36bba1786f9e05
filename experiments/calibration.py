"""Not in the paper: are documents that get a probability of 0.9 right nine times of ten? Two groups."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import log_loss

from benchmarks.accuracy import calibration_error
from benchmarks.calibration import curve
from experiments.tasks import pair, summary
from supertopic.baselines import paper_system

K = 20
VERSIONS = {  # c, calibrate, chains
    "gSLDA": (1, False, 1),
    "gSLDA+": (25, False, 1),
    "gSLDA+, calibrated": (25, True, 1),
    "gSLDA+, calibrated, 8 chains": (25, True, 8),
}
SEEDS = range(5)
QUICK = {"SEEDS": range(1)}


def cells():
    return [
        {"K": K, "version": name, "c": c, "calibrate": calibrate, "n_chains": n_chains, "seed": seed}
        for seed in SEEDS
        for name, (c, calibrate, n_chains) in VERSIONS.items()
    ]


def measure(cell):
    data, model = pair(), paper_system("gSLDA", cell["K"], random_state=cell["seed"])
    model.set_params(c=float(cell["c"]), calibrate=cell["calibrate"], n_chains=cell["n_chains"]).fit(data.X, data.y)
    p = model.predict_proba(data.X_test)
    right = model.classes_[p.argmax(axis=1)] == data.y_test
    whole = {"accuracy": right.mean(), "log_loss": log_loss(data.y_test, p), "ECE": calibration_error(p, right)}
    whole = {name: round(float(value), 5) for name, value in whole.items()}
    return [
        {"bin": i, "confidence": round(float(x), 5), "right": round(float(y), 5)} | whole
        for i, (x, y) in enumerate(zip(*curve(p, right), strict=True))
    ]


def draw(rows: pd.DataFrame) -> Figure:
    figure, axis = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
    axis.plot([0.5, 1], [0.5, 1], color="0.7", lw=1)
    for name, own in rows.groupby("version", sort=False):
        mean = own.groupby("bin")[["confidence", "right"]].mean()
        axis.plot(mean["confidence"], mean["right"], "o-", ms=4, lw=1.2, label=name)
    axis.set(xlabel="confidence", ylabel="share of right predictions", xlim=(0.5, 1.01), ylim=(0.4, 1.01))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    once = rows[rows["bin"] == 0]
    long = once.melt(["version", "seed"], ["accuracy", "log_loss", "ECE"], var_name="figure")
    return summary(long, "version", "figure", "value")
