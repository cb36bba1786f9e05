"""
Labels from several raters
==========================

Five raters have labelled a corpus: three coders, a language model, and somebody who always gives the same answer. They
disagree, and only 200 documents have labels that you are sure of, your gold labels. What are the true labels, how good
is each rater, and how well can new documents be predicted?

The texts are SciPy's docstrings, whose class is their subpackage. So we know the true labels, and the raters are
simulated: about 5,000 answers, many of which are wrong.
"""

# %%
# The answers
# -----------
# They come as most tools export them: a long table with a row for each answer. A wide table with a column for each
# rater works, too.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from supertopic import SLDAClassifier, SLDACrowdClassifier
from supertopic.baselines import dawid_skene
from supertopic.datasets import load_docstrings

corpus = load_docstrings()
names = np.array(corpus.target_names)
rng = np.random.default_rng(0)
order = rng.permutation(len(corpus.data))
texts, truth = np.array(corpus.data, object)[order], names[corpus.target[order]]
n = int(0.8 * len(texts))  # the others are test documents

right = {"ann": 0.85, "ben": 0.7, "cem": 0.5, "language model": 0.75, "same answer": 0.0}
asked = {"ann": 0.4, "ben": 0.6, "cem": 0.7, "language model": 1.0, "same answer": 0.8}
rows = []
for document, label in enumerate(truth[:n]):
    for rater, p in right.items():
        if rng.random() > asked[rater]:
            continue
        answer = label if rng.random() < p else rng.choice(names)
        if rater == "language model" and label == "stats" and rng.random() < 0.5:
            answer = "special"  # it takes many functions of stats for special functions
        rows.append((document, rater, "stats" if rater == "same answer" else answer))
answers = pd.DataFrame(rows, columns=["document", "rater", "answer"])
gold = np.full(n, None, object)
gold[:200] = truth[:200]
print(f"{len(answers)} answers about {n} documents")
answers.head()

# %%
# Do the raters agree?
# --------------------
# Krippendorff's alpha is 1 if all agree, and 0 if they agree as often as by chance. The table below it says how often
# the other raters give the same answer as each rater.

model = SLDACrowdClassifier(n_chains=2, n_jobs=-1, random_state=0)
model.agreement(answers)

# %%
# Learn
# -----
# The model learns topics, their weights, and a confusion matrix for each rater: the probability of each answer given
# the true class. The true class of a document is unknown, and drawn like everything else; ``gold`` fixes some of them.

model.fit(texts[:n], answers, gold=gold)
model.rater_frame()

# %%
# ``accuracy`` is the probability of a right answer, with its 90 % interval. The confusion matrix says where the errors
# are: what the language model does with documents about ``stats``.

table = model.confusion_frame()
table[(table.rater == "language model") & (table.true == "stats") & (table.probability > 0.03)]

# %%
# As a figure, for the language model:

place = model.raters_.tolist().index("language model")
_, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
ax.imshow(model.confusion_[place], cmap="Blues", vmin=0, vmax=1)
ax.set(xlabel="answer", ylabel="true class", xticks=range(len(names)), yticks=range(len(names)))
ax.set_xticklabels(names, rotation=90)
_ = ax.set_yticklabels(names)

# %%
# The true labels
# ---------------
# ``infer_labels`` gives the probability of each class of a document, from its text and all answers about it. Beside it
# are the most frequent answer, and the model of Dawid and Skene, which uses the answers but no texts.

p = model.infer_labels(texts[:n], answers, gold=gold)
votes = answers.groupby(["document", "answer"]).size().reset_index(name="votes")
majority = votes.sort_values("votes").groupby("document")["answer"].last().reindex(range(n), fill_value="stats")
others = np.arange(n) >= 200  # documents without a gold label
for name, labels in {
    "most frequent answer": majority.to_numpy(),
    "Dawid and Skene": dawid_skene(answers, gold, n).labels,
    "with texts": model.classes_[p.argmax(axis=1)],
}.items():
    print(f"{name:<22} {np.mean(labels[others] == truth[:n][others]):.1%} of the labels are right")

# %%
# Who is wrong where
# ------------------
# The answers that are least probable, given the text and all other answers:

frame = model.disagreements(texts[:n], answers, 8)
frame.assign(text=frame.text.str[:60], true=truth[frame.row])

# %%
# Predict
# -------
# New texts need no answers. A classifier that takes the most frequent answer for the truth learns the raters' errors.

plain = SLDAClassifier(n_chains=2, n_jobs=-1, random_state=0).fit(texts[:n], majority.to_numpy())
for name, fitted in {"most frequent answer": plain, "several raters": model}.items():
    found = fitted.evaluate(texts[n:], truth[n:]).figures
    print(f"{name:<22} accuracy {found['accuracy']:.3f}, log-loss {found['log_loss']:.3f}")

# %%
# What next
# ---------
# Gold labels help most where raters share an error. ``model.unsure(texts)`` gives the documents to ask about next. For
# ratings there is :class:`~supertopic.SLDACrowdRegressor`, in which each rater has a bias and a precision.
