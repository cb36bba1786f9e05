"""scikit-learn's face of the sampler: LDA, and SLDAClassifier for two classes, several, or labels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from supertopic.inference import mean_sigmoids
from supertopic.model import MOST, TopicModel
from supertopic.responses import Logistic, Target


class LDA(TopicModel):
    """Latent Dirichlet allocation by Gibbs sampling: topics from the words alone.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    alpha : float or array-like of shape (n_topics,), default=1.0
        Dirichlet prior of a document's topics. A number is the total, alpha / n_topics for each topic.
    beta : float, default=0.01
        Dirichlet prior of a topic's words, for each word.
    burn_in, n_draws : int, default=100 and 20
        A chain runs burn_in + n_draws iterations; the last n_draws are kept.
    n_chains : int, default=1
        Independent chains; what is shown comes from the one with the highest log joint.
    sampler : {"auto", "collapsed", "delayed", "drawn"}, default="auto"
        Which sampler runs; "auto" looks at the corpus, and `sampler_` says what it chose.
    predict_sweeps : int, default=40
        Sweeps over a new document; the second half is averaged.
    n_jobs : int, optional
        Threads, in scikit-learn's sense. They serve chains first, then shards; the result does not depend on them.
    random_state : int, RandomState or None
        The seed; None takes fresh entropy, and `seed_` keeps what was used.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        Pseudo-counts of each word in each topic, as in scikit-learn.
    topic_word_ : ndarray of shape (n_topics, n_words)
        The topics: rows sum to 1.
    doc_topic_ : ndarray of shape (n_docs, n_topics)
        The mean zbar of the training documents.
    log_joint_, log_joint_iterations_ : ndarray of shape (n_chains, n) and (n,)
        The log joint density and the iterations at which it was taken.
    best_chain_, sampler_, seed_, timings_ :
        The chain that is shown, the sampler that ran, the seed, and the thread-seconds spent on eta, z and lambda.
    """

    def __init__(
        self, n_topics=20, *, alpha=1.0, beta=0.01, burn_in=100, n_draws=20, n_chains=1, sampler="auto",
        predict_sweeps=40, n_jobs=None, random_state=None, verbose=False,
    ):  # fmt: skip
        self.n_topics = n_topics
        self.alpha = alpha
        self.beta = beta
        self.burn_in = burn_in
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.sampler = sampler
        self.predict_sweeps = predict_sweeps
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None) -> "LDA":
        """Learn topics from word counts X of shape (n_docs, n_words); y is ignored."""
        self._check_parameters()
        counts = self._validate_counts(X, reset=True)
        nothing = np.zeros((counts.shape[0], 0))
        self._sample(counts, Logistic(1.0), Target(nothing, nothing))
        return self


class SLDAClassifier(ClassifierMixin, TopicModel):
    """Supervised LDA with a logistic response: topics that explain the words and the classes.

    Two classes take one column of weights eta, more take one column a class on shared topics, and a 0/1 indicator
    matrix takes one a label. The model of Zhu, Zheng and Zhang (ACL 2013).

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=25.0
        Weight of the response against the words. 1 is plain sLDA; the paper uses 25 for two classes.
    alpha : float or array-like of shape (n_topics,), default=1.0
        Dirichlet prior of a document's topics. A number is the total, alpha / n_topics for each topic.
    beta : float, default=0.01
        Dirichlet prior of a topic's words, for each word.
    nu2 : float, default=1.0
        Prior variance of the weights eta.
    burn_in, n_draws : int, default=100 and 20
        A chain runs burn_in + n_draws iterations; the last n_draws are kept.
    n_chains : int, default=1
        Independent chains. Predictions average over all; what is shown comes from the one with the highest log joint.
    sampler : {"auto", "collapsed", "delayed", "drawn"}, default="auto"
        Which sampler runs; "auto" looks at the corpus, and `sampler_` says what it chose.
    predict_sweeps : int, default=40
        Sweeps over a new document; the second half is averaged.
    missing_label : object, optional
        The value of y that means "unknown", for example -1. NaN always does. Such a document adds its words only.
    n_jobs : int, optional
        Threads, in scikit-learn's sense. They serve chains first, then shards; the result does not depend on them.
    random_state : int, RandomState or None
        The seed; None takes fresh entropy, and `seed_` keeps what was used.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray
        The classes, or the numbers of the labels.
    coef_ : ndarray of shape (n_columns, n_topics)
        Posterior mean of eta. With two classes there is one row, positive towards classes_[1].
    coef_draws_ : ndarray of shape (n_chains, n_draws, n_columns, n_topics)
        The draws of eta. Topics of different chains are not matched.
    components_, topic_word_, doc_topic_, log_joint_, log_joint_iterations_, best_chain_, sampler_, seed_, timings_ :
        As in LDA. doc_topic_ has seen the labels, `transform` has not.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from supertopic import SLDAClassifier
    >>> texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 5
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = SLDAClassifier(n_topics=2, random_state=0).fit(X, ["sport", "sport", "politics", "politics"] * 5)
    >>> model.predict(X[:3]).tolist()
    ['sport', 'sport', 'politics']
    """

    def __init__(
        self, n_topics=20, *, c=25.0, alpha=1.0, beta=0.01, nu2=1.0, burn_in=100, n_draws=20, n_chains=1,
        sampler="auto", predict_sweeps=40, missing_label=None, n_jobs=None, random_state=None, verbose=False,
    ):  # fmt: skip
        self.n_topics = n_topics
        self.c = c
        self.alpha = alpha
        self.beta = beta
        self.nu2 = nu2
        self.burn_in = burn_in
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.sampler = sampler
        self.predict_sweeps = predict_sweeps
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "SLDAClassifier":
        """Learn topics and weights from word counts and classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.
        y : array-like of shape (n_docs,) or (n_docs, n_labels)
            Classes of any kind, or a 0/1 indicator matrix. NaN and `missing_label` mean unknown.
        sample_weight : array-like of shape (n_docs,), optional
            Multiplies c for each document; 0 makes its label unknown.
        """
        self._check_parameters()
        counts = self._validate_counts(X, reset=True)
        weight = _check_sample_weight(sample_weight, counts, dtype=np.float64, ensure_non_negative=True)
        self._sample(counts, Logistic(float(self.c)), self._encode(y, counts.shape[0], weight))
        return self

    def _encode(self, y, n_docs: int, weight: np.ndarray) -> Target:
        """Set classes_ and turn y into columns of 0 and 1, with weight 0 where it is unknown."""
        if y is None:
            raise ValueError("This SLDAClassifier estimator requires y to be passed, but the target y is None.")
        y = y.toarray() if issparse(y) else np.asarray(y)
        if y.ndim != 2 or y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if len(y) != n_docs:
            raise ValueError(f"X has {n_docs} documents but y has {len(y)}; they must be equally many.")
        if weight.max() * self.c > MOST:
            raise ValueError(f"sample_weight times c must be at most {MOST:g}, got {weight.max() * self.c:g}.")
        unknown = is_unknown(y, self.missing_label)
        known = ~unknown & (weight > 0).reshape(-1, *[1] * (y.ndim - 1))
        if not known.any():
            raise ValueError("Every label in y is unknown (or has weight 0); at least some must be known.")
        self.multilabel_ = y.ndim == 2
        if self.multilabel_:
            values = set(np.unique(y[~unknown].astype(object)).tolist())
            if not values <= {0, 1}:
                raise ValueError(f"A 2-D y must be a 0/1 indicator matrix, got values {sorted(values, key=str)[:5]}.")
            self.classes_ = np.arange(y.shape[1])
            columns = np.where(unknown, 0, y).astype(float)
        else:
            labels = y[~unknown]
            if labels.dtype == object and not all(isinstance(label, str) for label in labels):
                labels = np.array(labels.tolist())  # whole numbers beside None
                if labels.dtype.kind not in "iufb":
                    raise ValueError("y mixes text and numbers; give every label the same type.")
            check_classification_targets(labels)
            self.classes_ = np.unique(labels)
            if len(np.unique(y[known].astype(labels.dtype))) < 2:
                raise ValueError(f"y has one class only ({self.classes_[0]}); a classifier needs at least two.")
            positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
            columns = (y[:, None] == positive).astype(float)
            known = np.repeat(known[:, None], len(positive), axis=1)
        return Target(columns, known * weight[:, None])

    def _mean_probabilities(self, X) -> tuple[np.ndarray, np.ndarray]:
        """The means of sigmoid(omega) and sigmoid(-omega) over all draws and chains, (n_docs, R) each."""
        shares = self._infer(X, range(len(self.coef_draws_)))
        up, down = zip(*(mean_sigmoids(z, e) for z, e in zip(shares, self.coef_draws_, strict=True)), strict=True)
        return sum(up) / len(up), sum(down) / len(down)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """The probability of each class (rows sum to 1), or of each label (rows need not)."""
        check_is_fitted(self, "_word_topic")
        up, down = self._mean_probabilities(X)
        if self.multilabel_:
            return up
        p = np.hstack([down, up]) if len(self.classes_) == 2 else up
        return p / p.sum(axis=1, keepdims=True)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """logit of the mean probability: (n_docs,) for two classes, else a column for each class or label."""
        check_is_fitted(self, "_word_topic")
        up, down = self._mean_probabilities(X)
        score = np.log(up) - np.log(down)
        return score.ravel() if len(self.classes_) == 2 and not self.multilabel_ else score

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable class of each document, or a 0/1 indicator matrix of its labels."""
        score = self.decision_function(X)
        if self.multilabel_:
            return (score > 0).astype(int)
        return self.classes_[(score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)]

    def coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of eta in the best chain.

        Parameters
        ----------
        level : float, default=0.9
            The posterior probability inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_columns, n_topics)
        """
        check_is_fitted(self, "_word_topic")
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        draws = self.coef_draws_[self.best_chain_]
        if len(draws) < 2:
            raise ValueError("An interval needs at least two draws; fit with n_draws > 1.")
        lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lower, upper

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def is_unknown(y: np.ndarray, missing_label: Any) -> np.ndarray:
    """Where y is NaN, None or the value that means missing."""
    unknown = y != y if y.dtype.kind in "fO" else np.zeros(y.shape, bool)
    if y.dtype == object:
        unknown = unknown | (y == None)  # noqa: E711
    if missing_label is not None:
        unknown = unknown | (y == missing_label)
    return unknown.astype(bool)
