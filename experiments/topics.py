"""Not in the paper: the topics of two groups, and the weight of each with its interval."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.tasks import pair
from supertopic.baselines import paper_system

K = 10
C = 1, 25
N_WORDS = 8
SEEDS = range(1)  # topics of different chains cannot be averaged
QUICK = {"C": (25,)}
GROUPS = "alt.atheism", "talk.religion.misc"  # the second one is y = 1


def cells():
    return [{"K": K, "c": c, "n_words": N_WORDS, "seed": seed} for seed in SEEDS for c in C]


def measure(cell):
    data, model = pair(), paper_system("gSLDA", cell["K"], random_state=cell["seed"])
    model.set_params(c=float(cell["c"]), calibrate=True).fit(data.X, data.y)
    lower, upper = model.coef_interval(0.9)
    columns = (
        model.top_words(data.words, cell["n_words"], "probability"),
        model.doc_topic_.mean(axis=0),
        model.coef_[0],
        lower[0],
        upper[0],
    )
    topics = [
        {"words": " ".join(words), "share": share, "eta": eta, "lower": low, "upper": high}
        for words, share, eta, low, high in zip(*columns, strict=True)
    ]
    return sorted(topics, key=lambda topic: topic["eta"])


def draw(rows: pd.DataFrame) -> Figure:
    n_panels = rows["c"].nunique()
    figure, axes = plt.subplots(n_panels, 1, figsize=(8, 3 * n_panels), layout="constrained", squeeze=False)
    for axis, (c, own) in zip(axes.ravel(), rows.groupby("c"), strict=True):
        bars = [own["eta"] - own["lower"], own["upper"] - own["eta"]]
        axis.errorbar(own["eta"], range(len(own)), xerr=bars, fmt="o", ms=4, capsize=2)
        axis.axvline(0, color="0.6", lw=1)
        axis.set_yticks(range(len(own)), own["words"])
        axis.set(title=f"c = {c}", xlabel=f"{GROUPS[0]}  <  eta, 90 % interval  >  {GROUPS[1]}")
        axis.grid(alpha=0.3)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    interval = [f"{low:.1f} to {high:.1f}" for low, high in zip(rows["lower"], rows["upper"], strict=True)]
    shown = rows.assign(share=rows["share"].map("{:.2f}".format), eta=rows["eta"].map("{:.1f}".format))
    return shown.assign(interval=interval).set_index("c")[["eta", "interval", "share", "words"]]
