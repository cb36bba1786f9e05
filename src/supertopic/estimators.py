"""scikit-learn's face of the sampler: LDA, and SLDAClassifier for a class, two classes or several labels."""

import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data
from threadpoolctl import threadpool_limits

from supertopic.corpus import Tokens, check_counts, cut, make_tokens, take
from supertopic.engines import Threads
from supertopic.gibbs import SAMPLERS, Priors, chain, log_joint
from supertopic.inference import infer_shares, mean_sigmoids
from supertopic.lanes import padded
from supertopic.progress import progress
from supertopic.responses import Logistic, Response, Target
from supertopic.shard import Shard

logger = logging.getLogger("supertopic")

LOG_JOINT_EVERY = 5  # iterations; it takes about a fifth of one
COLLAPSED_UP_TO = 1_000_000  # tokens; beyond, "auto" takes the sampler that runs on several threads
MAX_SHARDS, SHARD_TOKENS, SHARD_BYTES = 64, 50_000, 2**28


class Run(NamedTuple):
    """What is kept of one chain."""

    eta: np.ndarray  # (n_draws, R, K)
    word_topic: np.ndarray  # (V, K): summed over the draws
    doc_topic: np.ndarray  # (n_docs, K): mean zbar
    log_joint: list[tuple[int, float]]  # iteration, value
    seconds: np.ndarray  # (3,): eta, z, lambda


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What LDA and its supervised kin have in common: the chains, the topics, `transform`."""

    def _sample(self, X: csr_array, response: Response, target: Target) -> None:
        """Run the chains and set what is fitted."""
        began = time.perf_counter()
        tokens = make_tokens(X)
        priors = self._priors()
        self.seed_ = self._seed()
        self.sampler_ = self._choose_sampler(len(tokens.word))
        n_jobs = effective_n_jobs(self.n_jobs)
        workers = min(n_jobs, self.n_chains)

        def run(index: int) -> Run:
            return self._run(index, tokens, X.shape[1], response, target, priors, n_jobs // workers, advance)

        title = f"{type(self).__name__}, {self.sampler_}"
        n_iterations = self.n_chains * (self.burn_in + self.n_draws)
        # BLAS threads would fight ours, and their number would change the bits of a sum
        with threadpool_limits(1, user_api="blas"), progress(n_iterations, title, bool(self.verbose)) as advance:
            if workers == 1:
                runs = [run(index) for index in range(self.n_chains)]
            else:
                with ThreadPoolExecutor(workers) as pool:
                    runs = list(pool.map(run, range(self.n_chains)))

        kept = self.burn_in
        means = [np.mean([value for iteration, value in r.log_joint if iteration > kept]) for r in runs]
        self.best_chain_ = int(np.argmax(means))
        self.log_joint_ = np.array([[value for _, value in r.log_joint] for r in runs])
        self.log_joint_iterations_ = np.array([iteration for iteration, _ in runs[0].log_joint])
        self.timings_ = dict(zip(("eta", "z", "lambda"), sum(r.seconds for r in runs).tolist(), strict=True))
        self._set_draws(np.array([r.word_topic for r in runs]), np.array([r.eta for r in runs]))
        self.doc_topic_ = runs[self.best_chain_].doc_topic
        self.doc_topic_[np.diff(tokens.doc_start) == 0] = self._topic_shares()[self.best_chain_]
        logger.info("%s: %d tokens in %.1f s", title, len(tokens.word), time.perf_counter() - began)

    def _run(self, index, tokens: Tokens, n_words, response, target, priors, n_threads, advance) -> Run:
        """One chain: burn_in + n_draws iterations, the last n_draws kept."""
        n_topics, n_columns = self.n_topics, target.y.shape[1]
        shards = [
            Shard(take(tokens, docs), docs.start, n_topics, response, Target(*(a[docs] for a in target)))
            for docs in cut(tokens, self._n_shards(len(tokens.word), n_columns))
        ]
        eta = np.empty((self.n_draws, n_columns, n_topics))
        word_topic = np.zeros((n_words, n_topics), np.int64)
        seconds, joint = np.zeros(3), []
        last = self.burn_in + self.n_draws
        with Threads(shards, n_threads) as engine:
            draws = chain(engine, n_words, priors, self.sampler_, self.seed_, index, seconds)
            for iteration in range(1, last + 1):
                if iteration == self.burn_in + 1:
                    engine.map(lambda shard: shard.keep(padded(n_topics)))
                draw = next(draws)
                if iteration % LOG_JOINT_EVERY == 0 or iteration == last:
                    joint.append((iteration, log_joint(engine, draw, priors)))
                if iteration > self.burn_in:
                    eta[iteration - self.burn_in - 1] = draw.eta
                    word_topic += draw.word_topic
                advance(f"log joint {joint[-1][1]:,.0f}" if joint else "")
        lengths = np.maximum(np.diff(tokens.doc_start), 1)[:, None] * self.n_draws
        kept = np.concatenate([shard.kept for shard in shards]).reshape(len(lengths), -1)
        return Run(eta, word_topic, kept[:, :n_topics] / lengths, joint, seconds)

    def _set_draws(self, word_topic: np.ndarray, eta: np.ndarray) -> None:
        """Everything that follows from the sums of the counts (chain, V, K) and the draws of eta (chain, draw, R, K)."""
        self._word_topic = word_topic.astype(np.min_scalar_type(int(word_topic.max(initial=0))))
        self.coef_draws_ = eta
        self.components_ = self._word_topic[self.best_chain_].T / self.n_draws + self.beta  # (K, V)
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        self.coef_ = eta[self.best_chain_].mean(axis=0)  # (R, K)
        self._n_features_out = self.n_topics

    def _topic_shares(self) -> np.ndarray:
        """The share of each topic in all training tokens, (chain, K): what is believed of a document without words."""
        tokens = self._word_topic.sum(axis=1, dtype=float)
        return (tokens + 1e-300) / (tokens + 1e-300).sum(axis=1, keepdims=True)

    def _infer(self, X, chains) -> np.ndarray:
        """The label-free mean zbar of new documents, (chain, n_docs, K)."""
        check_is_fitted(self, "components_")
        X = self._validate_counts(X, reset=False)
        n_threads, shares = effective_n_jobs(self.n_jobs), []
        for index in chains:
            components = self._word_topic[index] / self.n_draws + self.beta  # (V, K)
            phi = components / components.sum(axis=0)
            zbar = infer_shares(X, phi, self._priors().alpha, self.predict_sweeps, self.seed_, index, n_threads)
            zbar[np.diff(X.indptr) == 0] = self._topic_shares()[index]
            shares.append(zbar)
        return np.array(shares)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """The share of each topic in each document, from its words alone, under the topics of the best chain.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.

        Returns
        -------
        ndarray of shape (n_docs, n_topics)
            Rows sum to 1. A document without known words gets the shares of the training corpus.
        """
        check_is_fitted(self, "components_")
        return self._infer(X, [self.best_chain_])[0]

    def top_words(self, feature_names: ArrayLike | None = None, n: int = 10) -> list[list[str]]:
        """The n most probable words of each topic, most probable first.

        Parameters
        ----------
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`. By default the column names seen in `fit`,
            or "x0", "x1", ... where there were none.
        n : int, default=10
            How many words.
        """
        check_is_fitted(self, "components_")
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        names = np.asarray(feature_names, dtype=object)
        if names.shape != (self.n_features_in_,):
            raise ValueError(f"feature_names has {names.size} names, but the model was fitted on {self.n_features_in_}.")
        return [list(names[np.argsort(-row, kind="stable")[:n]]) for row in self.topic_word_]

    def save(self, path) -> None:
        """Write the fitted model to a file that `supertopic.load` reads; shorthand for `supertopic.save(model, path)`."""
        from supertopic.storage import save

        save(self, path)

    def _validate_counts(self, X, reset: bool) -> csr_array:
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_min_features=1)
        return check_counts(X)

    def _check_parameters(self) -> None:
        whole = {"n_topics": 1, "burn_in": 0, "n_draws": 1, "n_chains": 1, "predict_sweeps": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
        if self.n_topics > 2**16 - 1:
            raise ValueError(f"n_topics must be at most {2**16 - 1:,}, got {self.n_topics:,}.")
        for name in ("c", "beta", "nu2"):
            value = getattr(self, name, 1.0)
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 < value < math.inf:
                raise ValueError(f"{name} must be a positive number, got {value!r}.")
        if self.sampler not in ("auto", *SAMPLERS):
            raise ValueError(f"sampler must be one of 'auto', {', '.join(map(repr, SAMPLERS))}, got {self.sampler!r}.")
        self._priors()

    def _priors(self) -> Priors:
        alpha = np.asarray(self.alpha, dtype=float)
        if alpha.shape not in ((), (self.n_topics,)):
            raise ValueError(f"alpha must be a number or have n_topics = {self.n_topics} entries, got {alpha.shape}.")
        if not (np.isfinite(alpha).all() and (alpha > 0).all()):
            raise ValueError(f"alpha must be positive and finite, got {self.alpha!r}.")
        if alpha.ndim == 0:
            alpha = np.full(self.n_topics, alpha / self.n_topics)
        return Priors(alpha, float(self.beta), float(getattr(self, "nu2", 1.0)))

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
        if isinstance(self.random_state, Integral) and not isinstance(self.random_state, bool):
            if not 0 <= self.random_state < 2**63:
                raise ValueError(f"random_state must be in 0 .. 2**63 - 1, got {self.random_state}.")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _choose_sampler(self, n_tokens: int) -> str:
        if self.sampler != "auto":
            return self.sampler
        return "collapsed" if n_tokens <= COLLAPSED_UP_TO else "delayed"

    def _n_shards(self, n_tokens: int, n_columns: int) -> int:
        """From the corpus and the model, never from the machine, so that sums are the same everywhere."""
        if self.sampler_ == "collapsed":
            return 1
        room = SHARD_BYTES // (8 * self.n_topics**2 * max(n_columns, 1))
        return max(1, min(MAX_SHARDS, room, n_tokens // SHARD_TOKENS))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


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
    predict_sweeps : int, default=20
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
        predict_sweeps=20, n_jobs=None, random_state=None, verbose=False,
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
        X = self._validate_counts(X, reset=True)
        nothing = np.zeros((X.shape[0], 0))
        self._sample(X, Logistic(1.0), Target(nothing, nothing))
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
    predict_sweeps : int, default=20
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
        sampler="auto", predict_sweeps=20, missing_label=None, n_jobs=None, random_state=None, verbose=False,
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
        X = self._validate_counts(X, reset=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        target = self._encode(y, X.shape[0], weight)
        self._sample(X, Logistic(float(self.c)), target)
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
            check_classification_targets(y[~unknown])
            self.classes_ = np.unique(y[~unknown])
            if len(np.unique(y[known])) < 2:
                raise ValueError(f"y has one class only ({self.classes_[0]!r}); a classifier needs at least two.")
            positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
            columns = (y[:, None] == positive).astype(float)
            known = np.repeat(known[:, None], len(positive), axis=1)
        return Target(columns, known * weight[:, None])

    def _mean_probabilities(self, X) -> tuple[np.ndarray, np.ndarray]:
        """The means of sigmoid(omega) and sigmoid(-omega) over all draws and chains, (n_docs, R) each."""
        shares = self._infer(X, range(self.n_chains))
        up, down = zip(*(mean_sigmoids(z, e) for z, e in zip(shares, self.coef_draws_, strict=True)), strict=True)
        return sum(up) / self.n_chains, sum(down) / self.n_chains

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """The probability of each class (rows sum to 1), or of each label (rows need not)."""
        check_is_fitted(self, "components_")
        up, down = self._mean_probabilities(X)
        if self.multilabel_:
            return up
        p = np.hstack([down, up]) if len(self.classes_) == 2 else up
        return p / p.sum(axis=1, keepdims=True)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """logit of the mean probability: (n_docs,) for two classes, else a column for each class or label."""
        check_is_fitted(self, "components_")
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
        check_is_fitted(self, "components_")
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
        unknown = unknown | np.equal(y, None)
    if missing_label is not None:
        unknown = unknown | (y == missing_label)
    return unknown.astype(bool)
