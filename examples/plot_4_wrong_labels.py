"""
Find wrong labels
=================

Somebody has labelled your corpus, and some labels are wrong. Reading all of it again costs as much as the first time.
A model can rank the documents, so that you first read those whose label it did not expect.

The texts are SciPy's docstrings, and the class of each is its subpackage. We replace one label in twenty by another
one, so we know which ones should be found.
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
target = corpus.target.copy()
swapped = rng.choice(len(target), len(target) // 20, replace=False)
target[swapped] = (target[swapped] + rng.integers(1, len(names), len(swapped))) % len(names)
y = names[target]
print(f"{len(y)} documents, {len(names)} classes, {len(swapped)} labels are wrong")

# %%
# Predict each label with a model that did not learn from it
# ----------------------------------------------------------
# A wrong label is less surprising to a model that has learned from it. So the corpus is split in two, and each half is
# predicted by a model that was fitted on the other. ``surprising`` gives a table in the order of surprise. To merge the
# halves we need the surprise of all documents, which is the negative log of the probability of the given label.

surprise, model_of = np.zeros(len(y)), {}
for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
    model = SLDAClassifier(n_topics=20, n_chains=2, n_jobs=-1, random_state=0).fit(X[train], y[train])
    p = model.predict_proba(X[test])
    surprise[test] = -np.log(p[np.arange(len(test)), target[test]])  # classes_ is sorted, as names is
    model_of |= dict.fromkeys(test, model)
    for row in model.surprising(X[test], y[test], 5).itertuples():
        print(f"{corpus.names[test[row.row]]:<45} labelled {row.observed}, predicted {row.predicted}")

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
# The others are documents that are unusual for their class. They are worth reading if you want to define the classes
# more precisely.

for i in [i for i in order if i not in set(swapped)][:5]:
    print(f"{corpus.names[i]:<45} {y[i]}")

# %%
# The explanation of one wrong label shows what each word adds to the predicted class:

i = next(i for i in order if i in set(swapped))
print(f"{corpus.names[i]} is labelled {y[i]}, and it is {names[corpus.target[i]]}")
model_of[i].explain(X[i : i + 1], vectorizer.get_feature_names_out())

# %%
# What next
# ---------
# Correct the labels that are wrong, fit again, and repeat: with fewer errors the model finds the others more easily.
# With ratings or counts ``surprising`` ranks by standard deviations. For documents without a label,
# :doc:`unsure </auto_examples/plot_3_few_labels>` gives those to label next.
