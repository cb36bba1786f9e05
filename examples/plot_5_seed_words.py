"""
Topics that begin with words you know
=====================================

A topic model finds topics and numbers them in an arbitrary order. Often you already know what some topics should be
about, and a few words for each. Such seed words give topics with names. If there are few labels, they also improve
predictions.

The corpus is one that every installation has, the docstrings of SciPy; the class of each is its subpackage.
"""

# %%
# A few words for a few topics
# ----------------------------
# ``seeds`` is a dict of lists of words. The first topics are the seeded ones, in every chain. Words are matched with
# the names of the columns, so ``fit`` needs ``feature_names``.

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from supertopic import LDA, SLDAClassifier, TopicDisplay
from supertopic.datasets import load_docstrings

corpus = load_docstrings()
labels = np.array(corpus.target_names, dtype=object)[corpus.target]
texts, new_texts, y, y_new = train_test_split(corpus.data, labels, test_size=0.25, random_state=0, stratify=labels)
vectorizer = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", min_df=2)
X, X_new = vectorizer.fit_transform(texts), vectorizer.transform(new_texts)
words = vectorizer.get_feature_names_out()

seeds = {
    "fft": ["fourier", "fft", "transform"],
    "ndimage": ["image", "pixels", "footprint"],
    "optimize": ["minimize", "bounds", "jacobian", "constraints"],
    "sparse": ["sparse", "csr", "graph"],
    "spatial": ["distance", "hull", "triangulation", "rotation"],
    "stats": ["distribution", "pvalue", "sample", "hypothesis"],
    "linalg": ["eigenvalues", "cholesky", "decomposition"],
    "signal": ["filter", "frequency", "window"],
    "special": ["bessel", "gamma", "elliptic"],
    "interpolate": ["spline", "interpolation", "knots"],
}
model = LDA(n_topics=20, seeds=seeds, random_state=0).fit(X, feature_names=words)
for k, top in enumerate(model.top_words(n=8)[: len(seeds)]):
    print(f"{model.topic_name(k):<12} {' '.join(top)}")
_ = TopicDisplay.from_estimator(model, words, topics=range(6), n_words=6)

# %%
# Further topics are free. A seed is a prior, not a rule, and the documents determine its weight: a seed word gets
# pseudo-counts in its topic, as many as the tokens that a factorisation of all documents assigns to the topic.
# ``Seeds(seeds, strength=0.5)`` instead of the dict gives half as many as the word has tokens. Other words join the
# topic because they occur in the same documents as the seeds.
#
# Few labels, and seeds for classes
# ---------------------------------
# A seeded topic with the name of a class has a positive prior mean of its weight for this class, which counts less with
# every labelled document of the class. Here 40 documents have a label.

some, _ = train_test_split(np.arange(len(y)), train_size=40, random_state=0, stratify=y)
few = np.full(len(y), None, dtype=object)
few[some] = y[some]

options = {"n_topics": 20, "n_chains": 2, "n_jobs": -1, "random_state": 0}
seeded = SLDAClassifier(seeds=seeds, **options).fit(X, few, feature_names=words)
plain = SLDAClassifier(**options).fit(X, few, feature_names=words)
shares = model.transform(X_new)[:, : len(seeds)]
by_seeds = np.array(list(seeds))[shares.argmax(axis=1)]

print(f"40 labels alone       {plain.score(X_new, y_new):.3f}")
print(
    f"seeds alone           {np.mean(by_seeds == y_new):.3f}   (the class of the seeded topic with the largest share)"
)
print(f"40 labels and seeds   {seeded.score(X_new, y_new):.3f}")

# %%
# For a rating or a count, the weights are numbers: how far a document that consists of this topic only is expected
# to be from the mean. Weights and strength are parameters of :class:`~supertopic.Seeds`:

from supertopic import Seeds, SLDARegressor

opinions = {"praise": ["superb", "moving"], "complaint": ["dull", "lazy"]}
SLDARegressor(seeds=Seeds(opinions, weights={"praise": 1.5, "complaint": -1.5}))

# %%
# On the command line seeds are a table with the columns ``topic`` and ``word``, and ``class`` if names differ:
# ``supertopic fit tickets.csv --text body --label team --seeds seeds.csv -o tickets.model``.
#
# What next
# ---------
# A warning names the seed words that are not in the vocabulary. A larger strength is not always better: look at the
# topics. On 20 Newsgroups with one label in a hundred, :doc:`the page on accuracy </accuracy>` has the figures.
