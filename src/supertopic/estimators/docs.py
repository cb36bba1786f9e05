"""Docstrings of parameters and attributes that several estimators share, written once and put into each."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
ENTRY = re.compile(r"^(\w+(?:, \w+)*) :.*\n(?:    .*\n)*", re.MULTILINE)
HERE = "...\n"  # where the shared entries come

PARAMETERS = """\
n_topics : int, default=20
    Number of topics K.
class_weight : "balanced", dict or None, default=None
    Multiplies c by a number for each class; "balanced" gives all classes the same total weight. With labels,
    "balanced" does so for having and not having each label.
calibrate : bool, default=True
    Predict with weights that are drawn again, with c = 1, on the topic shares that training documents would have if
    they were new, and that are shrunk with the help of held-out documents: see `prediction_draws_`. Otherwise predict
    with, and report, the chain's own weights, `training_draws_`, which are too certain; nothing is held out then.
words : bool or CountVectorizer, default=True
    Add direct weights of words (tf-idf, ridge regression) for what topics miss: see `word_coef_`. If the model is
    fitted to texts, these are all words, stop words included, and pairs of neighbours, or what a CountVectorizer finds.
    If it is fitted to counts, they are the words of the topics. Topics and `coef_` are the same without. Needs
    `calibrate`.
priority : {"prediction", "topics"}, default="prediction"
    What words and features may explain. With "prediction", held-out documents decide how much topics, words and
    features contribute. With "topics", topics contribute all that they can, and words and features only explain what
    topics leave, as little as held-out documents allow (their loss rises by at most a standard error).
held_out : "auto" or float, default="auto"
    The share of the documents with a known response that no chain sees. The shrinkage of predictions is estimated on
    them. "auto" is 0.05, and up to 0.15 of few documents, until there are 100. Of the other documents each chain holds
    out the responses of a fold: a quarter, or one of n_chains if there are more. Reported weights (`coef_` and its
    intervals) rest on all documents of folds, each under the topics of the chain that has not seen its response
    (cross-fitting). With 0, or fewer than 5 held-out documents, there are no folds, and weights rest on responses that
    have shaped the topics: their intervals are too short where c > 1.
held_out_by : {"document", "group"}, default="document"
    What is held out: documents, or whole `groups`, so that weights and losses are about documents of new groups.
alpha : float, array-like of shape (n_topics,) or None, default=None
    Dirichlet prior of a document's topics. A number is the total, alpha / n_topics for each topic; None is 0.1 for
    each.
beta : float, default=0.01
    Dirichlet prior of a topic's words, for each word.
optimize_priors : bool, default=False
    Learn alpha, for each topic its own, and beta from the data during the burn-in; the given values are the start.
nu2 : float, default=1.0
    Prior variance of the weights eta.
seeds : Seeds, dict of lists of str, or list of them, optional
    Words that topics are to be about: {"billing": ["invoice", "refund"], ...}, or `Seeds(words, strength=, weights=)`.
    The first topics are theirs, with these names, in every chain; further topics are free. `fit` needs `feature_names`,
    or numbers of columns in place of words.
prior : Prior, fitted model or pipeline, optional
    A model whose topics are the start and the prior of this one's, or `Prior(model, weights=, discount=)`. Words are
    matched by name, and topics beyond its own are free. It is not kept in a model file.
vectorizer : CountVectorizer, optional
    How texts become the words of topics. By default stop words, numbers and left-overs of markup are left out, and so
    are words of a single document if there are 100 documents or more. Counts need no vectorizer.
formula : str or Formula, optional
    Which columns of the data frame `covariates` are used, and which products of them: "critic + year + critic:year", or
    `Formula("critic * year", new_levels="mean")`. By default all columns are, without products. With a left side,
    "rating ~ critic", y is a column of the frame, too. Needs `pip install "supertopic[formula]"`.
start : {"mean", "paper"}, default="mean"
    lambda before the first iteration: its mean where nothing is known yet, or 1 as in the paper, with which a chain
    with c > 4 may never recover from its first weights.
init : {"nmf", "random"}, default="nmf"
    How the topic of each token is chosen before the first iteration: under topics from a non-negative factorisation of
    tf-idf and the responses of documents that are not held out, or at random. The former settles much sooner, and gives
    similar topics for every seed. Seeds enter it, and a prior replaces it. It is left out for more than 200 topics, or
    fewer than five documents for each topic.
burn_in : "auto" or int, default="auto"
    The iterations of a chain before its first draw. "auto" waits until the log joint and the loss of the response have
    stopped drifting, for at least 60 and at most 300 iterations. The limit falls from 300 at a million tokens to 60 at
    ten million. `burn_in_` and `settled_` report what was reached.
max_seconds : float, optional
    A limit for all chains together: a burn-in ends early so that its draws are made in time. Calibration and words come
    after that. A model that reached the limit cannot be repeated bit for bit.
n_draws : int, default=20
    The iterations of a chain that are kept after the burn-in.
n_chains : int, default=4
    Independent chains. Predictions average over all of them. Topics are matched, and a table shows the mean of the
    chains that have a topic.
sampler : {"auto", "collapsed", "delayed", "drawn"}, default="auto"
    Which sampler runs; "auto" depends on the corpus, and `sampler_` is the sampler that ran.
predict_sweeps : int, default=40
    Sweeps over a new document; the second half is averaged.
missing_label : object, optional
    The value of y that means "unknown", for example -1. NaN, None and pandas' NA always do. Such a document adds
    its words only.
n_jobs : int, optional
    Threads, in scikit-learn's sense. Chains get threads first, then shards; the result does not depend on them.
device : {"cpu", "cuda"}, default="cpu"
    Where topics are sampled: "cuda" is an NVIDIA GPU, and needs `pip install "supertopic[gpu]"`. All chains run on it
    at once, with the sampler "delayed" or "drawn". It may be changed for predictions, and is not part of a model file.
engine : {"threads", "ray", "ray:ADDRESS"}, default="threads"
    What runs the fit: threads of this process, or the machines of a Ray cluster, which needs `pip install
    "supertopic[ray]"`. Without an address and RAY_ADDRESS a cluster of this machine alone is started, and stopped at
    the end. There n_jobs is the number of threads of a worker; None is one worker for each machine, with all its
    cores. The model is the same, bit for bit, and predictions are made by threads.
random_state : int, RandomState or None
    The seed; None takes fresh entropy, and `seed_` keeps what was used.
verbose : bool, default=False
    Show a progress bar.
"""
ATTRIBUTES = """\
posterior_ : Posterior
    The fitted model as a value: topics, terms, response, traces. The other attributes read it.
coef_ : ndarray of shape (n_columns, n_topics)
    Posterior mean of the reported weights. They come from a regression on all documents with a known response, each
    with its topic shares under a chain that has not seen this response: see `held_out`.
coef_draws_ : ndarray of shape (n, n_columns, n_topics)
    The draws of these weights.
prediction_draws_ : ndarray of shape (n_chains, n_draws, n_columns, n_topics)
    The draws of eta that predictions use.
word_coef_ : ndarray of shape (n_columns, n_words)
    The direct weights of words, for tf-idf rows of length 1: see `words`. A model that was fitted to texts has their
    names in `word_vectorizer_`.
training_draws_ : ndarray of shape (n_chains, n_draws, n_columns, n_topics)
    The draws of eta in the chains that learned the topics, where the response weighs c.
intercept_, empty_intercept_ : ndarray of shape (n_columns,)
    omega of a document of which nothing is known, which stands for the base rate; and of one without known words.
prediction_intercept_ : ndarray of shape (n_columns,)
    The constant of omega in predictions, with which these are right on average: `intercept_`, and a correction for
    the difference between the mean of a probability and the probability of the mean omega.
empty_documents_ : ndarray of shape (n_columns,)
    The number of documents that `empty_intercept_` rests on; intervals of a document without known words depend on it.
held_out_ : dict
    The number of held-out documents, the loss of the predictions and of the base rate on them, the standard error of
    the difference, the shrinkage factor of the weights, and the probability that topics explain nothing
    (`p_no_effect`), for each column. With words or features also the loss of topics alone (`topics_loss`) and of all
    other terms (`without_topics_loss`). `contributions` has, for each term, its share of the variance of omega, and
    what it adds to the accuracy or R2 (Shapley's value), with 90 % intervals.
covariate_coef_, covariate_coef_draws_ : ndarray
    The same for covariates, for a unit of each.
group_names_ : ndarray of shape (n_groups,)
    The groups of documents; `group_frame` has their intercepts.
group_sd_ : ndarray of shape (n_columns,)
    The standard deviation between groups, in predictions.
covariate_names_ : ndarray of shape (n_covariates,)
    The covariates' names: those of a frame's columns, with their levels ("critic[B]"), or numbers.
covariate_reference_ : dict
    The level that the others are compared with, for each column of text or categories: {"critic": "A"}.
components_ : ndarray of shape (n_topics, n_words)
    Counts of each word in each topic, as in scikit-learn: means over the chains that have the topic.
topic_word_ : ndarray of shape (n_topics, n_words)
    The topics, means over the chains that have each of them: rows sum to 1.
doc_topic_ : ndarray of shape (n_docs, n_topics)
    The mean zbar of the training documents. It depends on the response, except for held-out documents; `transform`
    does not. A loaded model has none.
log_joint_, log_joint_iterations_ : ndarray of shape (n_chains, n) and (n,)
    The log joint density, and the iterations at which it was taken: every fifth. It is NaN after the end of a chain.
burn_in_, settled_ : ndarray of shape (n_chains,)
    The iterations of each chain before its first draw, and whether it had stopped drifting by then: see `burn_in`.
best_chain_, sampler_, seed_, timings_ : int, str, int, dict
    The chain with the highest log joint, the sampler that ran, the seed, and the seconds spent on eta, z and lambda by
    all threads or by the GPU; on a cluster also seconds and bytes of exchange.
n_batches_ : int
    The number of batches that `partial_fit` has learned from, or 1.
history_ : DataFrame
    How well each batch was predicted before the model learned from it (of the first one: its held-out documents), with
    a row for each: the number of documents, the score and its name, the mean loss and that of the base rate, the
    calibration error of probabilities or the coverage of 90 % intervals, the share of unknown words, and the classes
    and words that were added or forgotten. Needs pandas.
vocabulary_ : ndarray of shape (n_words,)
    The words, if `fit` was given `feature_names`.
topic_names_ : dict
    Names that `seeds` or `name_topics` gave, by the number of the topic as text.
vectorizer_, word_vectorizer_ : CountVectorizer
    The fitted vectorizers of topics and of words with weights, if the model was fitted to texts.
"""
FIT = """\
files : path, pattern, folder or list of paths
    "data/*.parquet", for example. Documents come in the order of the files' names.
text, label, weight, exposure : str
    The columns with the text, the response, and, if wanted, the weight and the exposure of each document.
    docword.NAME.txt has none of them, and its words are in vocab.NAME.txt.
vectorizer : CountVectorizer, optional
    How texts become the words of topics; by default the estimator's own parameter.
folder : path, optional
    Where the tokens are stored during the fit, 4 bytes each: a temporary folder by default. On several machines it has
    to be one that all of them see.
X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
    Texts, or word counts. Texts are a list, an array or a Series of strings; missing ones (None, NaN) are empty.
y : array-like of shape (n_docs,) or (n_docs, n_columns)
    The response: for classifiers classes of any kind, or a 0/1 indicator matrix of labels, of which a DataFrame's
    columns are the names; for regressors numbers. NaN, None and pandas' NA (and a classifier's `missing_label`) mean
    unknown, and such a document adds its words only. It is left out if `formula` names its column.
sample_weight : array-like of shape (n_docs,), optional
    Multiplies c for each document; 0 makes its response unknown.
covariates : data frame, or array-like of shape (n_docs, n_covariates), optional
    What is known of each document and enters omega beside its topics; `predict` needs it, too. A frame of pandas,
    polars, pyarrow or another library that Narwhals knows, or an array, may have numbers, booleans (0 and 1), dates
    (years: 2020.5 is the middle of 2020), and text or categories, whose levels are compared with the first one.
    Columns of a frame are found by name in `predict`.
features : array-like or sparse matrix of shape (n_docs, n_features), optional
    Further numbers of each document, such as a sentence embedding. Their weights are learned after the topics, by ridge
    regression, so that topics stay as they are; held-out documents decide how much they contribute. `predict` needs
    them, too.
groups : array-like of shape (n_docs,), optional
    The group of each document, such as its author. Groups have partially pooled intercepts: with a normal prior whose
    variance is learned, so that a group with few documents stays close to the others. In `predict`, documents of
    unknown groups, or all of them if it is left out, get the distribution of the population.
classes : array-like, optional
    All classes, if the first batch does not have them all; later ones do not need it.
add_classes : bool, default=False
    Whether classes or labels that the model does not know become new ones; else they are an error. They come after the
    known ones in `classes_`, in their own order, and start from the population's weights: the mean of the other
    columns, with the variance between them. Earlier documents count as documents without them. New labels are further
    columns of y, named by a data frame or by `classes`. Classes with an order and those of several raters stay.
new_words : bool, default=True
    Whether words of texts that the model does not know, and that are in at least `min_df` documents of this batch, join
    the vocabularies. These may become twice as large as after the first fit, or as 50,000 words; beyond that, words
    that come seldom and have not come for long are forgotten. With counts the columns stay.
discount : float, default=1.0
    The weight of an earlier document beside one of this batch: 1 is as much, 0 is nothing.
feature_names : array-like of str, optional
    The words of X's columns, such as `vectorizer.get_feature_names_out()`: for seeds, for a prior with another
    vocabulary, and for all tables with words. A DataFrame has them already.
checkpoint, checkpoint_every : path and seconds, optional
    The folder to which the state of the chains is written, and how often. The same call resumes from there after it
    was stopped or killed, and gives the same model, bit for bit; with a larger n_draws it continues a fit.
"""
LDA_HAS_NOT = (
    "coef_", "prediction_draws_", "coef_draws_", "word_coef_", "training_draws_", "intercept_", "held_out_",
    "prediction_intercept_", "empty_documents_", "covariate_coef_", "covariate_names_",
    "covariate_reference_",
)  # fmt: skip


def documented(kind: T) -> T:
    """Fill up the lists of parameters and attributes of a class where its docstring says `...`."""
    wanted = list(inspect.signature(kind).parameters)
    parameters = [text for names, text in entries(PARAMETERS) if names[0] in wanted]
    attributes = [text for names, text in entries(ATTRIBUTES) if "c" in wanted or names[0] not in LDA_HAS_NOT]
    kind.__doc__ = fill(kind.__doc__, parameters, attributes)
    return kind


def documented_fit(fit: F) -> F:
    """The same for the parameters of a supervised model's `fit`."""
    wanted = inspect.signature(fit).parameters
    fit.__doc__ = fill(fit.__doc__, [text for names, text in entries(FIT) if names[0] in wanted])
    return fit


def fill(doc: str | None, *lists: list[str]) -> str | None:
    """Put entries into the places of a docstring, but for those that it has itself."""
    if doc is None:
        return None
    # without the indentation, which Python 3.13 takes away and others leave
    parts = (inspect.cleandoc(doc) + "\n").split(HERE)
    filled = ""
    for part, texts in zip(parts, [*lists, []], strict=True):
        own = {name for names, _ in entries(part) for name in names}
        filled += part + "".join(text for text in texts if not own & set(entries(text)[0][0]))
    return filled


def entries(text: str) -> list[tuple[list[str], str]]:
    """The entries of a list in a docstring: the names that each is about, and its lines."""
    return [(match.group(1).split(", "), match.group(0)) for match in ENTRY.finditer(text)]
