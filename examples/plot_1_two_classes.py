"""
What distinguishes two classes of texts?
========================================

Two subpackages of SciPy, ``linalg`` and ``sparse``, are about matrices: full ones, and those that are mostly 0. Which
subjects and which words show where a docstring comes from, and how certain is this?

The corpus is one that every installation has, the docstrings of SciPy.
"""

# %%
# The texts
# ---------

import numpy as np
from sklearn.model_selection import train_test_split

from supertopic import EffectDisplay, ExplanationDisplay, ReliabilityDisplay, SLDAClassifier
from supertopic.datasets import load_docstrings

corpus = load_docstrings()
package = np.array(corpus.target_names)[corpus.target]
rows = np.flatnonzero(np.isin(package, ["linalg", "sparse"]))
train, test = train_test_split(rows, test_size=1 / 3, random_state=0, stratify=package[rows])
texts, new_texts = [corpus.data[i] for i in train], [corpus.data[i] for i in test]
y, y_new = package[train], package[test]
print(f"{len(texts)} docstrings to learn from, {np.mean(y == 'sparse'):.0%} in sparse; {len(new_texts)} to test on")

# %%
# Fit
# ---
# The model takes texts and their classes. One chain in each of four threads; the seed makes the result repeatable.

model = SLDAClassifier(n_topics=8, n_jobs=-1, random_state=0).fit(texts, y)
print(f"accuracy on new docstrings: {model.score(new_texts, y_new):.3f}")
print(f"always the larger class:    {np.mean(y_new == 'sparse'):.3f}")

# %%
# Which subjects make a class more likely?
# ----------------------------------------
# The effect of a topic is the change of the probability of ``sparse``, in percentage points, if ten percentage points
# more of a docstring are about this topic. The bar is a 90 % interval. A hollow mark means that the interval contains
# 0: the topic may have no effect.

_ = EffectDisplay.from_estimator(model, n_words=4)

# %%
# Effects and intervals are estimated on docstrings whose class had no influence on the topics, so they are not too
# good to be true. ``held_out_`` compares the predictions of the model with the base rate on documents that were held
# out. A loss near that of the base rate would mean that there is no relation.

print({name: round(model.held_out_[name], 3) for name in ("loss", "base_loss")})

# %%
# Which words count by themselves?
# --------------------------------
# A topic is a group of words. Single words and pairs of words have direct weights for what the topics miss.

for row in model.missed_words(n=8):
    print(f"{row['column']}: towards it {', '.join(row['towards'])}")
    print(f"       away from it {', '.join(row['away'])}")

# %%
# Are the probabilities right?
# ----------------------------
# Of the docstrings that get a probability of 0.9, nine in ten should be of ``sparse``: the points should be near the
# diagonal.

_ = ReliabilityDisplay.from_estimator(model, new_texts, y_new)

# %%
# Why does one docstring get its class?
# -------------------------------------
# The docstring whose prediction is the least certain. Each bar is what a word adds to the log-odds of the predicted
# class: the filled part through its topics, the hatched part by its direct weight.

i = int(model.unsure(new_texts, 1)["row"][0])
print(corpus.names[test[i]], "is in", y_new[i])
_ = ExplanationDisplay.from_estimator(model, [new_texts[i]], n_words=8)

# %%
# What next
# ---------
# For a table of your own, read :doc:`the ten minutes </ten-minutes>`, which go from a CSV file to a page for a
# colleague. If your table has columns that are not text, :doc:`the next tutorial
# </auto_examples/plot_2_film_ratings>` shows how to use them.
