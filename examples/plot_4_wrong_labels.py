"""
Find wrong labels
=================

Somebody has labelled your corpus, and some labels are wrong. Reading all of it again costs as much as the first time.
A model can tell which documents to read first: those whose label it would not have expected.

Here the errors are planted: of SciPy's docstrings, whose class is their subpackage, one label in twenty is replaced by
another one. So we know which ones should be found.
"""

# %%
# Swap some labels
# ----------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold

from supertopic import SLDAClassifier
from supertopic.datasets import load_docstrings

corpus = load_docstrings()
names = np.array(corpus.target_names)
vectorizer = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", min_df=2)
X = vectorizer.fit_transform(corpus.data)
rng = np.random.default_rng(0)
y = corpus.target.copy()
swapped = rng.choice(len(y), len(y) // 20, replace=False)
y[swapped] = (y[swapped] + rng.integers(1, len(names), len(swapped))) % len(names)
print(f"{len(y)} documents, {len(names)} classes, {len(swapped)} labels are wrong")

# %%
# Ask a model that has not seen the label
# ---------------------------------------
# A model that has learned from a wrong label is less surprised by it. So the corpus is cut in two, and each half is
# judged by a model of the other one. ``surprising`` gives rows in the order of surprise; to join the halves we need
# the surprise itself, which is the negative log of the probability of the given label.

surprise, judge = np.zeros(len(y)), {}
for seen, unseen in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
    model = SLDAClassifier(n_topics=20, n_chains=2, n_jobs=-1, random_state=0).fit(X[seen], y[seen])
    p = model.predict_proba(X[unseen])
    surprise[unseen] = -np.log(p[np.arange(len(unseen)), y[unseen]])
    judge |= dict.fromkeys(unseen, model)
    for i in unseen[model.surprising(X[unseen], y[unseen], 5)]:
        print(f"{corpus.names[i]:<45} labelled {names[y[i]]}")

# %%
# How many are found
# ------------------

order = np.argsort(-surprise)
found = np.cumsum(np.isin(order, swapped))
for n in (20, 50, len(swapped), 2 * len(swapped)):
    print(f"the {n:3} most surprising hold {found[n - 1]:3} of the {len(swapped)} wrong labels")
read = np.arange(1, len(y) + 1)
_, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(read, found, label="the most surprising first")
ax.plot(read, read * len(swapped) / len(y), color="0.6", linestyle="--", label="in any order")
ax.axvline(len(swapped), color="0.6", linewidth=0.8)
ax.set(xlabel="documents read again", ylabel="wrong labels found", xlim=(0, 400))
_ = ax.legend()

# %%
# What surprises although it is right
# -----------------------------------
# The others are not in vain. They are documents that are unusual for their class, and would be the first to look at
# if classes were drawn differently.

for i in [i for i in order if i not in set(swapped)][:5]:
    print(f"{corpus.names[i]:<45} {names[y[i]]}")

# %%
# And what does it say of one of them? Each word by what it adds:

i = next(i for i in order if i in set(swapped))
print(f"{corpus.names[i]} is labelled {names[y[i]]}, and it is {names[corpus.target[i]]}")
judge[i].classes_ = names[judge[i].classes_]  # names are easier to read than numbers
judge[i].explain(X[i : i + 1], vectorizer.get_feature_names_out())

# %%
# What next
# ---------
# Correct the labels that are wrong, fit again, and look once more: with fewer errors the model sees the rest more
# clearly. With ratings or counts ``surprising`` goes by standard deviations. Where a document has no label yet,
# :doc:`unsure </auto_examples/plot_3_few_labels>` tells which one to ask about.
