"""
Documents that keep coming
==========================

Tickets come every day, and a model of last year does not fit this year's tickets. ``partial_fit`` updates a model: the
posterior so far is the prior of the next batch, so an update takes time for the new documents only.

The corpus is one that every installation has, the docstrings of SciPy.
"""

# %%
# Batch by batch
# --------------
# All batches need the same columns of X, so the vectorizer is fitted first. The first batch may not have all classes:
# ``classes`` names them.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from supertopic import SLDAClassifier
from supertopic.datasets import load_docstrings

corpus = load_docstrings()
labels = np.array(corpus.target_names, dtype=object)[corpus.target]
texts, new_texts, y, y_new = train_test_split(corpus.data, labels, test_size=0.25, random_state=0, stratify=labels)
vectorizer = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", min_df=2)
X, X_new = vectorizer.fit_transform(texts), vectorizer.transform(new_texts)
options = {"n_topics": 20, "n_chains": 2, "n_jobs": -1, "random_state": 0}

model = SLDAClassifier(**options)
for batch in np.array_split(np.arange(len(y)), 5):
    began = time.perf_counter()
    model.partial_fit(X[batch], y[batch], classes=np.unique(y))
    seconds = time.perf_counter() - began
    print(
        f"batch {model.n_batches_}: {len(batch)} documents, {seconds:4.1f} s, accuracy {model.score(X_new, y_new):.3f}"
    )
print(f"all at once:{'':27} accuracy {SLDAClassifier(**options).fit(X, y).score(X_new, y_new):.3f}")

# %%
# A batch may have no labels at all (``partial_fit(X)``); it then updates the topics only. A model file contains what
# later batches need, and the same batches in the same order give the same model, bit for bit. A batch that fails or is
# stopped leaves the model unchanged. On the command line: ``supertopic update tickets.model monday.csv --text body
# --label team -o tickets.model``.
#
# What changes
# ------------
# Here the classes exchange their names in the second half of the stream. ``partial_fit(..., discount=0.3)`` gives
# earlier documents less weight: those of the previous batch count 0.3 times, and those of the batch before it 0.09
# times.

names = np.unique(y)
later = dict(zip(names, np.roll(names, 1), strict=True))
changed, changed_new = (np.array([later[label] for label in old], dtype=object) for old in (y, y_new))
batches = np.array_split(np.arange(len(y)), 4)
_, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for discount in (1.0, 0.3):
    model = SLDAClassifier(**options)
    for i, batch in enumerate(batches):
        model.partial_fit(X[batch], (y if i < 2 else changed)[batch], classes=names, discount=discount)
        if i >= 1:
            print(
                f"discount {discount}: after batch {i + 1} {model.score(X_new, changed_new):.3f} of the new names right"
            )
    ax.plot(model.history_["batch"], model.history_["score"], marker="o", label=f"discount {discount}")
ax.axvline(2.5, color="0.6", linestyle="--")
ax.set(xlabel="batch (the names change at the dashed line)", ylabel="accuracy", xticks=range(1, 5), ylim=(0, 1.02))
_ = ax.legend()

# %%
# The figure shows ``history_``: how well each batch was predicted before the model learned from it. The third batch is
# the first one with the new names, so its predictions are wrong. The fourth shows what was learned from the third.
#
# What next
# ---------
# In this short stream both values adapt to the change within a batch. In a stream of your own, keep ``discount=1`` as
# long as nothing changes. Otherwise compare a few values by how well each batch is predicted before the model is
# updated with it.
