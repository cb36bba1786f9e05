"""Table 1: where the training time of gSLDA+ goes, for 20 groups one-vs-rest, beside what the paper reports."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from sklearn.multiclass import OneVsRestClassifier

from experiments.tasks import summary, twenty
from supertopic.baselines import paper_system

STEPS = "lambda", "eta", "z"
PAPER = {  # seconds, on a desktop of 2013
    20: (2841.67, 7.70, 1455.25),
    30: (2417.95, 10.34, 1888.78),
    40: (2393.77, 14.66, 2476.82),
    50: (2161.09, 16.33, 2771.26),
}
SEEDS = range(2)  # each cell is twenty chains
EVERY = 1
QUICK = {"PAPER": {k: PAPER[k] for k in (20, 50)}, "SEEDS": range(1), "EVERY": 20}


def cells():
    return [{"K": k, "every": EVERY, "seed": seed} for seed in SEEDS for k in PAPER]


def measure(cell):
    data = twenty(cell["every"])
    model = OneVsRestClassifier(paper_system("gSLDA+", cell["K"], task="multiclass", random_state=cell["seed"]))
    model.fit(data.X, data.y)
    return [{"step": step, "seconds": round(sum(one.timings_[step] for one in model.estimators_), 3)} for step in STEPS]


def beside(rows: pd.DataFrame) -> pd.DataFrame:
    """Our rows and the paper's, with the share of each step."""
    paper = [{"K": k, "step": step, "seconds": s} for k in PAPER for step, s in zip(STEPS, PAPER[k], strict=True)]
    both = pd.concat([rows.assign(whose="ours"), pd.DataFrame(paper).assign(whose="the paper's", seed=0)])
    return both.assign(share=100 * both["seconds"] / both.groupby(["whose", "K", "seed"])["seconds"].transform("sum"))


def draw(rows: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
    for axis, (whose, own) in zip(axes, beside(rows).groupby("whose", sort=False), strict=True):
        share = own.pivot_table("share", "K", "step")[list(STEPS)]
        share.plot.bar(stacked=True, ax=axis, rot=0, width=0.7, legend=False)
        for i, k in enumerate(share.index):
            total = own[own["K"] == k].groupby("seed")["seconds"].sum().mean()
            axis.text(i, 101, f"{total:,.0f} s", ha="center")
        axis.set(title=whose, xlabel="topics K", ylim=(0, 112), ylabel="share of the training time (%)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    both = beside(rows)
    seconds, share = (summary(both, ["whose", "K"], "step", name, 2) for name in ("seconds", "share"))
    return pd.concat([seconds, share], axis=1, keys=["seconds", "%"])
