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
    Multiplies c by a number for each class. "balanced" gives all classes the same total weight. With labels,
    "balanced" gives the same total weight to having and not having each label.
calibrate : bool, default=True
    Whether weights are estimated again after the topics are learned. Predictions then use weights that are drawn with
    c = 1, on the topic shares that training documents would have if they were new, and that are shrunk as held-out
    documents require: see `prediction_draws_`. With False, predictions and reported weights are those of the chains,
    `training_draws_`, whose intervals are too short, and nothing is held out.
words : bool or CountVectorizer, default=True
    Whether words get direct weights (tf-idf, ridge regression) for what topics miss: see `word_coef_`. If the model is
    fitted to texts, these are all words, including stop words, and pairs of neighbours, or the words of a
    CountVectorizer. If it is fitted to counts, they are the words of the topics. Topics and `coef_` do not depend on
    this. Needs `calibrate`.
priority : {"prediction", "topics"}, default="prediction"
    With "prediction", held-out documents determine how much topics, words and features contribute. With "topics",
    words and features only explain what the topics do not, as little as held-out documents allow (their loss rises by
    at most a standard error).
held_out : "auto" or float, default="auto"
    The share of the documents with a known response that no chain uses. The shrinkage of predictions is estimated on
    them. "auto" is 0.05, and up to 0.15 in small corpora, until there are 100. In addition, each chain holds out the
    responses of one fold of the other documents: a quarter, or one of n_chains if there are more. Reported weights
    (`coef_` and its intervals) are estimated on all folds, each under the topics of the chain that did not use its
    responses (cross-fitting). With 0, or with fewer than 5 held-out documents, there are no folds. Weights are then
    estimated on the responses that the topics were learned from, and intervals are too short if c > 1.
held_out_by : {"document", "group"}, default="document"
    What is held out: documents, or whole `groups`, so that weights and losses apply to documents of new groups.
alpha : float, array-like of shape (n_topics,) or None, default=None
    Dirichlet prior of the topic shares of a document. A number is the total, alpha / n_topics for each topic; None is
    0.1 for each.
beta : float, default=0.01
    Dirichlet prior of the words of a topic, for each word.
optimize_priors : bool, default=False
    Whether beta, and a value of alpha for each topic, are learned during the burn-in, starting from the given values.
nu2 : float, default=1.0
    Prior variance of the weights eta.
seeds : Seeds, dict of lists of str, or list of them, optional
    Words that topics start from: {"billing": ["invoice", "refund"], ...}, or `Seeds(words, strength=, weights=)`.
    The first topics of every chain are the seeded ones, with these names; further topics are free. With counts, `fit`
    needs `feature_names`, or the seeds are numbers of columns.
prior : Prior, fitted model or pipeline, optional
    A model whose topics are the start and the prior of the topics of this one, or `Prior(model, weights=, discount=)`.
    Words are matched by name. If there are more topics than the prior has, the others are free. Model files do not
    contain it.
vectorizer : CountVectorizer, optional
    How texts become the words of topics. By default, stop words, numbers and left-overs of markup are left out; so are
    words of a single document if there are 100 documents or more. Not needed for counts.
formula : str or Formula, optional
    Which columns of the data frame `covariates` are used, and which products of them: "critic + year + critic:year", or
    `Formula("critic * year", new_levels="mean")`. By default all columns are used, without products. With a left side,
    "rating ~ critic", y is a column of the frame, too. Needs `pip install "supertopic[formula]"`.
start : {"mean", "paper"}, default="mean"
    The value of lambda before the first iteration: its prior mean, or 1 as in the paper. With 1, a chain with c > 4 may
    never recover from its first weights.
init : {"nmf", "random"}, default="nmf"
    How the topic of each token is chosen before the first iteration: from a non-negative factorisation of tf-idf and
    the responses of documents that are not held out, or at random. With "nmf", chains settle much sooner, and topics
    are similar for every seed. Seed words are part of the factorisation, and a prior replaces it. With more than 200
    topics, or fewer than five documents for each topic, the start is random.
burn_in : "auto" or int, default="auto"
    The iterations of a chain before its first draw. With "auto" a chain runs until its log joint and the loss of the
    response have stopped drifting, for at least 60 and at most 300 iterations. The limit falls from 300 for a million
    tokens to 60 for ten million. `burn_in_` and `settled_` have the result.
max_seconds : float, optional
    A time limit for all chains together: a burn-in ends early, so that its draws are made in time. Calibration and
    words come after that. A model that reached the limit cannot be repeated bit for bit.
n_draws : int, default=20
    The iterations of a chain that are kept after the burn-in.
n_chains : int, default=4
    The number of independent chains. Predictions average over all of them. Topics of the chains are matched, and tables
    show the mean of the chains that have a topic.
sampler : {"auto", "collapsed", "delayed", "drawn"}, default="auto"
    The sampler of the topics. "auto" chooses by the size of the corpus; `sampler_` is the sampler that ran.
predict_sweeps : int, default=40
    Sweeps over a new document; the second half is averaged.
missing_label : object, optional
    The value of y that means "unknown", for example -1. NaN, None and pandas' NA always do. The model learns from the
    words of such a document only.
n_jobs : int, optional
    The number of threads, as in scikit-learn. Each chain gets a thread first, then parts of the documents. The result
    does not depend on it.
device : {"cpu", "cuda"}, default="cpu"
    Where topics are sampled: "cuda" is an NVIDIA GPU, and needs `pip install "supertopic[gpu]"`. All chains run on it
    at once, with the sampler "delayed" or "drawn". You can change it before predictions. Model files do not contain it.
engine : {"threads", "ray", "ray:ADDRESS"}, default="threads"
    What runs the fit: threads of this process, or the machines of a Ray cluster, which needs `pip install
    "supertopic[ray]"`. Without an address and without RAY_ADDRESS, a cluster of this machine alone is started, and
    stopped at the end. On a cluster, n_jobs is the number of threads of a worker; None is one worker for each machine,
    with all its cores. The model is the same, bit for bit, and predictions are made by threads.
random_state : int, RandomState or None
    The seed. With None a new seed is drawn, and `seed_` keeps it.
verbose : bool, default=False
    Show a progress bar.
"""
ATTRIBUTES = """\
posterior_ : Posterior
    The fitted model as one value: topics, terms, response, traces. The other attributes read it.
coef_ : ndarray of shape (n_columns, n_topics)
    Posterior mean of the reported weights. They come from a regression on all documents with a known response, each
    with its topic shares under a chain that did not use this response: see `held_out`.
coef_draws_ : ndarray of shape (n, n_columns, n_topics)
    The draws of these weights.
prediction_draws_ : ndarray of shape (n_chains, n_draws, n_columns, n_topics)
    The draws of eta that predictions use.
word_coef_ : ndarray of shape (n_columns, n_words)
    The direct weights of words, for tf-idf rows of length 1: see `words`. If the model was fitted to texts,
    `word_vectorizer_` has the words.
training_draws_ : ndarray of shape (n_chains, n_draws, n_columns, n_topics)
    The draws of eta in the chains that learned the topics, where the response counts c times.
intercept_, empty_intercept_ : ndarray of shape (n_columns,)
    omega of the base rate, and of a document without known words.
prediction_intercept_ : ndarray of shape (n_columns,)
    The constant of omega with which predictions are right on average: `intercept_`, and a correction for the difference
    between the mean of a probability and the probability of the mean omega.
empty_documents_ : ndarray of shape (n_columns,)
    The number of documents from which `empty_intercept_` is estimated; intervals of a document without known words
    depend on it.
held_out_ : dict
    Figures of the held-out documents, for each column: their number, the loss of the predictions and of the base rate,
    the standard error of the difference, the shrinkage factor of the weights, the probability that topics explain
    nothing (`p_no_effect`), and whether a relation between topics and the response was found (`relation`). With words
    or features also the loss of topics alone (`topics_loss`) and of all other terms (`without_topics_loss`).
    `contributions` has, for each term, its share of the variance of omega, and what it adds to the accuracy or R2
    (Shapley's value), with 90 % intervals.
covariate_coef_, covariate_coef_draws_ : ndarray
    The same as `coef_` and `coef_draws_` for covariates, for a change by one unit.
group_names_ : ndarray of shape (n_groups,)
    The groups of documents; `group_frame` has their intercepts.
group_sd_ : ndarray of shape (n_columns,)
    The standard deviation between groups, in predictions.
covariate_names_ : ndarray of shape (n_covariates,)
    The names of the covariates: those of the columns of a frame, with their levels ("critic[B]"), or numbers.
covariate_reference_ : dict
    The level that the others are compared with, for each column of text or categories: {"critic": "A"}.
components_ : ndarray of shape (n_topics, n_words)
    Counts of each word in each topic, as in scikit-learn: means over the chains that have the topic.
topic_word_ : ndarray of shape (n_topics, n_words)
    The topics, means over the chains that have each of them: rows sum to 1.
doc_topic_ : ndarray of shape (n_docs, n_topics)
    The topic shares of the training documents. They depend on the response, except for held-out documents; those of
    `transform` do not. A loaded model has none.
log_joint_, log_joint_iterations_ : ndarray of shape (n_chains, n) and (n,)
    The log joint density, and the iterations at which it was computed: every fifth. It is NaN after the end of a chain.
burn_in_, settled_ : ndarray of shape (n_chains,)
    The iterations of each chain before its first draw, and whether it had stopped drifting by then: see `burn_in`.
best_chain_, sampler_, seed_, timings_ : int, str, int, dict
    The chain with the highest log joint, the sampler that ran, the seed, and the seconds spent on eta, z and lambda by
    all threads or by the GPU; on a cluster also seconds and bytes of exchange.
n_batches_ : int
    The number of batches that `partial_fit` has learned from, or 1.
history_ : DataFrame
    How well each batch was predicted before the model learned from it. A row has the number of documents, the score and
    its name, the mean loss and that of the base rate, the calibration error of probabilities or the coverage of 90 %
    intervals, the share of unknown words, and the classes and words that were added or dropped. The first row is about
    the held-out documents of `fit`. Needs pandas.
vocabulary_ : ndarray of shape (n_words,)
    The words, if `fit` got `feature_names`.
topic_names_ : dict
    Names from `seeds` or `name_topics`, by the number of the topic as text.
vectorizer_, word_vectorizer_ : CountVectorizer
    The fitted vectorizers of topics and of direct weights, if the model was fitted to texts.
"""
FIT = """\
files : path, pattern, folder or list of paths
    For example "data/*.parquet". Documents have the order of the names of the files.
text, label, weight, exposure : str
    The columns with the text, the response, and, if wanted, the weight and the exposure of each document.
    docword.NAME.txt has none of them, and its words are in vocab.NAME.txt.
vectorizer : CountVectorizer, optional
    How texts become the words of topics; by default the parameter of the estimator.
folder : path, optional
    Where the tokens are stored during the fit, 4 bytes each: a temporary folder by default. On several machines, all of
    them must be able to read it.
X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
    Texts, or word counts. Texts are a list, an array or a Series of strings; missing texts (None, NaN) are empty.
y : array-like of shape (n_docs,) or (n_docs, n_columns)
    The response. For classifiers: classes of any kind, or a 0/1 indicator matrix of labels, which have the names of the
    columns if it is a DataFrame. For regressors: numbers. NaN, None and pandas' NA (and the `missing_label` of a
    classifier) mean unknown: the model learns from the words of such a document only. Leave y out if `formula` names
    its column.
sample_weight : array-like of shape (n_docs,), optional
    Multiplies c for each document; 0 makes its response unknown.
covariates : data frame, or array-like of shape (n_docs, n_covariates), optional
    Other columns of your table, with a weight in omega beside the topics; `predict` needs them, too. A frame of pandas,
    polars, pyarrow or another library that Narwhals supports, or an array, may have numbers, booleans (0 and 1), dates
    (years: 2020.5 is the middle of 2020), and text or categories, whose levels are compared with the first one.
    `predict` finds the columns of a frame by name.
features : array-like or sparse matrix of shape (n_docs, n_features), optional
    Other numbers of each document, such as a sentence embedding. Their weights are learned after the topics, by ridge
    regression, so that topics do not change. Held-out documents determine how much they contribute. `predict` needs
    them, too.
groups : array-like of shape (n_docs,), optional
    The group of each document, such as its author. Groups have partially pooled intercepts: they have a normal prior
    whose variance is learned, so that a group with few documents stays close to the others. In `predict`, a document of
    an unknown group gets the distribution of the groups; so do all documents if you leave it out.
classes : array-like, optional
    All classes, if the first batch does not have them all; later batches do not need it.
add_classes : bool, default=False
    Whether classes or labels that are new to the model are added; otherwise they are an error. They come after the
    known ones in `classes_`, in sorted order. Their weights start from the mean of the other columns, with the variance
    between them. Earlier documents count as documents without them. New labels are further columns of y, named by a
    data frame or by `classes`. Ordered classes and the classes of several raters cannot be extended.
new_words : bool, default=True
    Whether new words of texts are added to the vocabularies, if they are in at least `min_df` documents of this batch.
    A vocabulary may grow to twice its first size, or to 50,000 words. Beyond that, words that are rare and have not
    occurred for long are dropped. With counts the columns do not change.
discount : float, default=1.0
    The weight of an earlier document compared with one of this batch: 1 is the same, 0 is nothing.
feature_names : array-like of str, optional
    The words of the columns of X, such as `vectorizer.get_feature_names_out()`: for seeds, for a prior with another
    vocabulary, and for all tables with words. A DataFrame has them already.
checkpoint, checkpoint_every : path and seconds, optional
    The folder to which the state of the chains is written, and how often. After a fit was stopped or killed, the same
    call resumes it and gives the same model, bit for bit. With a larger n_draws it continues a finished fit.
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
