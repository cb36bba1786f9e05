"""
What moves a film's rating, beyond its genre and its critic?
============================================================

Some critics are kinder than others, and some genres fare better. Both are known before anybody reads the review. What
do the words add to that?

Columns that are not text are *covariates*: they have weights beside the topics. The topics then explain what the
covariates do not.

The corpus is the scale data of Pang and Lee ("Seeing stars", ACL 2005): 5,006 film reviews of four critics, with a
rating from 0 to 1. You can download it from the page of its authors, https://www.cs.cornell.edu/people/pabo/movie-review-data/
("scale dataset v1.0"). The script needs ``moviereview_scale.jsonl.gz`` in the folder that the variable
``SUPERTOPIC_DATA`` names: a line of JSON for each review, with ``text``, ``y`` and ``author``.
"""

# %%
# Reviews, ratings, covariates
# ----------------------------
# A review belongs to a genre if it contains the name of the genre. Genres and critics become columns of numbers, and
# the names of the genres are removed from the vocabulary. One critic has no column, so that the others are compared
# with this one. 1,500 reviews are enough here.

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd

GENRES = ["comedy", "drama", "thriller", "horror", "action", "romance", "animated", "documentary"]


file = Path(os.environ.get("SUPERTOPIC_DATA", ".")) / "moviereview_scale.jsonl.gz"
with gzip.open(file, "rt", encoding="utf-8") as lines:
    reviews = pd.DataFrame(json.loads(line) for line in lines).sample(1500, random_state=0, ignore_index=True)

covariates = pd.DataFrame({genre: reviews.text.str.contains(rf"\b{genre}\b").astype(int) for genre in GENRES})
covariates = covariates.join(pd.get_dummies(reviews.author, dtype=int).iloc[:, 1:])
print(f"{len(reviews)} reviews, mean rating {reviews.y.mean():.2f}, left out: {sorted(set(reviews.author))[0]}")
covariates.mean().round(2).to_frame("share of the reviews")

# %%
# Fit with and without
# --------------------

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from supertopic import CoefficientDisplay, SLDARegressor

vectorizer = CountVectorizer(stop_words=[*ENGLISH_STOP_WORDS, *GENRES], token_pattern=r"(?u)\b[a-z]{3,}\b", min_df=5)
X, y = vectorizer.fit_transform(reviews.text), reviews.y.rename("rating")
words = vectorizer.get_feature_names_out()
train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=0)
Z, Z_test = covariates.iloc[train], covariates.iloc[test]

model = SLDARegressor(n_topics=20, n_jobs=-1, random_state=0).fit(X[train], y[train], covariates=Z)
without = SLDARegressor(n_topics=20, n_jobs=-1, random_state=0).fit(X[train], y[train])
print("R2 on the test reviews")
print(f"  genre and critic alone      {LinearRegression().fit(Z, y[train]).score(Z_test, y[test]):.3f}")
print(f"  words alone                 {without.score(X[test], y[test]):.3f}")
print(f"  words, genre and critic     {model.score(X[test], y[test], covariates=Z_test):.3f}")

# %%
# Effects of genre and critic, for the same words
# -----------------------------------------------
# A weight is the change of the rating for a unit of the column, which here is 0 or 1. If the interval contains 0,
# the column may have no effect once the words are known.

lower, upper = model.covariate_coef_interval(0.9)
pd.DataFrame(
    {"weight": model.covariate_coef_[0], "lower": lower[0], "upper": upper[0]}, index=model.covariate_names_
).round(3)

# %%
# Effects of topics, for the same genre and critic
# ------------------------------------------------
# A weight is the rating of a review that consists of this topic only, minus the mean rating.

display = CoefficientDisplay.from_estimator(model, words, n_words=4)
_ = display.ax_.set_xlabel("rating, against the mean")

# %%
# No review consists of one topic only. The effect of ten percentage points more of a topic is closer to real reviews:

effects = model.effect_frame(0.1).assign(words=[" ".join(top) for top in model.top_words(words, 5)])
effects.sort_values("change").round(3)

# %%
# New reviews
# -----------
# ``predict`` needs the covariates, too. ``predict_interval`` gives the interval of a rating that is not known yet.

low, high = model.predict_interval(X[test], 0.9, covariates=Z_test)
print(f"test ratings inside their 90 % interval: {np.mean((low <= y[test]) & (y[test] <= high)):.3f}")
print(
    "the review that surprises most:",
    reviews.text[test[model.surprising(X[test], y[test], 1, covariates=Z_test)["row"][0]]][:300],
)

# %%
# What next
# ---------
# A weight is not a causal effect: the topics were learned in order to predict the rating (:doc:`/when-not`).
# ``diagnose`` shows whether the chains agree. For counts in place of ratings, such as the number of citations of a
# paper, use :class:`~supertopic.SLDACountRegressor`, which also takes an exposure.
