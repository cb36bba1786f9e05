"""
A study, from the file to the table of the paper
================================================

Which words are related to a high rating, how certain is this, and do critics differ in what they write about? This
tutorial shows all steps: read the file, fit, look at effects and their intervals, compare critics, check with shuffled
ratings, and write the table and the paragraph on methods.

The corpus is the scale data of Pang and Lee ("Seeing stars", ACL 2005): film reviews of four critics, with a rating
from 0 to 1, from https://www.cs.cornell.edu/people/pabo/movie-review-data/ ("scale dataset v1.0"). The script needs
``moviereview_scale.jsonl.gz`` in the folder that the variable ``SUPERTOPIC_DATA`` names: a line of JSON for each
review, with ``text``, ``y`` and ``author``.
"""

# %%
# Reviews, ratings, critics
# -------------------------

import gzip
import json
import os
from pathlib import Path

import pandas as pd

file = Path(os.environ.get("SUPERTOPIC_DATA", ".")) / "moviereview_scale.jsonl.gz"
with gzip.open(file, "rt", encoding="utf-8") as lines:
    reviews = pd.DataFrame(json.loads(line) for line in lines).sample(1500, random_state=0, ignore_index=True)

reviews.groupby("author").y.agg(["size", "mean"])

# %%
# Fit
# ---
# The critics are *groups*: each has an intercept. So if a kind critic often writes about a topic, the topic does not
# get a larger weight for this. With ``words=False`` the model has only what will be reported. Each chain holds out the
# ratings of its own quarter of the reviews. So every review helps to estimate effects, under topics that were learned
# without its rating. A part of the reviews is kept for later.

from supertopic import SLDARegressor

train, later = reviews[: len(reviews) * 3 // 5], reviews[len(reviews) * 3 // 5 :]
model = SLDARegressor(12, words=False, optimize_priors=True, random_state=0)
model.fit(train.text, train.y, groups=train.author)
model.held_out_["cross_fitted"], model.held_out_["loss"], model.held_out_["base_loss"]

# %%
# The losses are those of held-out reviews, in units of the variance: topics explain a part of it. The intercepts of the
# critics, compared with the mean of the reviews:

model.group_frame().round(3)

# %%
# Which topics matter
# -------------------
# A row has the change of the rating if a topic takes the place of ten percentage points of the usual mixture of topics.

table = model.summary_table(n_words=4)
print(table)

# %%
# The table is ready for a paper: ``to_latex()``, ``to_markdown()``, ``to_html()``; ``frame()`` has the numbers in full.

print(table.to_latex()[:600], "...")

# %%
# Who talks about what
# --------------------
# Do the critics differ in what they write about? ``topic_effects`` has the expected share of each topic for each
# critic. The topics depend on the ratings of the training reviews, so we use other reviews.

effects = model.topic_effects(later.text, later.author)
effects.plot()

# %%
# The largest differences from the first critic:

print(effects)

# %%
# Does a topic count more for some critics? ``interactions`` compares its weight between groups, on the same
# cross-fitted reviews.

weights = model.interactions(train.author, pooled=True)
weights.plot()

# %%
# Is it noise?
# ------------
# The same model on ratings that were shuffled among the reviews of each critic: about one interval in ten may exclude
# 0 by chance.

model.placebo(train.text, train.y, groups=train.author).round(3)

# %%
# What to write
# -------------
# The paragraph has the numbers of this fit. ``bibtex()`` has the references.

print(model.methods_text())

# %%
# A topic's effect is a description: reviews with more of it have a higher rating, given the critic. Whether the words
# are the reason is another question: :doc:`/causes` says what would be needed.
