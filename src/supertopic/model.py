"""What all topic models have in common: parameters, chains, topics, `transform`. And the plain one, LDA."""

import logging
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from supertopic.checkpoint import Checkpoint, identify
from supertopic.corpus import check_counts, make_tokens
from supertopic.diagnostics import Diagnostics
from supertopic.engines import one_blas_thread
from supertopic.gibbs import SAMPLERS, Priors
from supertopic.inference import infer_shares
from supertopic.lanes import padded
from supertopic.progress import progress
from supertopic.responses import Logistic, Response, Target, make_target
from supertopic.run import Job, Run

logger = logging.getLogger("supertopic")
T = TypeVar("T")

LEAST, MOST = 1e-10, 1e10  # what c, alpha, beta and nu2 may be: the sampler's own numbers are float32
COLLAPSED_UP_TO = 1_000_000  # tokens; beyond, "auto" takes the sampler that runs on several threads


class TopicModel(Diagnostics, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What LDA and its supervised kin have in common: the chains, the topics, `transform`."""

    _numbers: tuple[str, ...] = ("beta",)  # parameters that are positive numbers

    n_topics: int
    alpha: Any
    beta: float
    optimize_priors: bool
    burn_in: int
    n_draws: int
    n_chains: int
    sampler: str
    predict_sweeps: int
    n_jobs: int | None
    random_state: Any
    verbose: bool
    seed_: int

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep what __init__ got, as it is: scikit-learn's contract."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _sample(
        self, X: csr_array, response: Response, target: Target, checkpoint: Checkpoint | None
    ) -> list[np.ndarray]:
        """Run the chains and set what is fitted; returns the last z of each chain."""
        began = time.perf_counter()
        n_jobs = effective_n_jobs(self.n_jobs)
        workers = min(n_jobs, self.n_chains)
        self._check_memory(X, target, workers)
        job = self._job(X, response, target)
        tokens, self.sampler_ = job.tokens, job.sampler
        last = self.burn_in + self.n_draws

        def go(index: int) -> Run:
            run = Run(job, index, n_jobs // workers)
            try:
                if checkpoint:
                    checkpoint.restore(run, last)
                    advance("", run.iteration)
                while run.iteration < last:
                    run.step(last)
                    advance(f"log joint {run.log_joint[-1][1]:,.0f}" if run.log_joint else "")
                    if checkpoint:
                        checkpoint.keep(run, last)
                run.finish()
            finally:
                run.close()
            return run

        title = f"{type(self).__name__}, {self.sampler_}"
        listening = checkpoint.listening() if checkpoint else nullcontext()
        with listening, progress(self.n_chains * last, title, bool(self.verbose)) as advance:
            runs = over_threads(go, range(self.n_chains), workers)

        means = [np.mean([value for i, value in run.log_joint if i > self.burn_in]) for run in runs]
        self.best_chain_ = int(np.argmax(means))
        self.log_joint_ = np.array([[value for _, value in run.log_joint] for run in runs])
        self.log_joint_iterations_ = np.array([iteration for iteration, _ in runs[0].log_joint])
        seconds = np.sum([run.seconds for run in runs], axis=0).tolist()
        self.timings_ = dict(zip(("eta", "z", "lambda"), seconds, strict=True))
        self.trace_ = np.array([run.trace for run in runs])
        self.alpha_ = np.array([run.priors.alpha for run in runs])
        self.beta_ = np.array([run.priors.beta for run in runs])
        eta, scale = self._in_units(np.array([run.eta for run in runs]), np.array([run.scale for run in runs]))
        self._set_draws(np.stack([run.word_topic for run in runs]), eta, scale)
        self.doc_topic_ = runs[self.best_chain_].doc_topic
        self.doc_topic_[np.diff(tokens.doc_start) == 0] = self._topic_shares()[self.best_chain_]
        logger.info("%s: %d tokens in %.1f s", title, len(tokens.word), time.perf_counter() - began)
        return [run.z for run in runs]

    def _job(self, X: csr_array, response: Response, target: Target) -> Job:
        tokens, learn = make_tokens(X), bool(self.optimize_priors)
        sampler = self._choose_sampler(len(tokens.word))
        return Job(tokens, X.shape[1], response, target, self._priors(), learn, sampler, self.seed_, self.burn_in)

    def _check_memory(self, X: csr_array, target: Target, workers: int) -> None:
        """Refuse what cannot fit into memory before any of it is taken; the sum is a lower bound, not an estimate."""
        (n_docs, n_words), n_tokens, width = X.shape, int(X.data.sum()), padded(self.n_topics)
        n_columns, beside = target.y.shape[1], target.covariates.shape[1]
        shares = 4 * n_docs * width + 8 * n_docs * self.n_topics
        state = 4 * n_tokens + 4 * n_words * width + shares + 8 * (self.n_topics + beside) ** 2 * n_columns
        kept = 4 * n_words * self.n_topics + 2 * n_tokens + shares
        kept += 16 * self.n_draws * n_columns * (self.n_topics + beside)
        needed = 4 * n_tokens + workers * state + self.n_chains * kept
        if self.sampler == "drawn":
            needed += workers * 4 * n_words * width
        free = free_memory()
        if needed > free:
            raise MemoryError(
                f"The fit needs at least {needed / 2**30:,.1f} GiB, but {free / 2**30:,.1f} GiB of memory are free: "
                f"{n_tokens:,} tokens, {n_docs:,} documents, {n_words:,} words, n_topics={self.n_topics}, "
                f"n_chains={self.n_chains}. Fewer topics or chains, or a smaller vocabulary (min_df), need less."
            )

    def _open_checkpoint(self, X, response: Response, target: Target, path, every: float) -> Checkpoint | None:
        """The checkpoint of this fit; where random_state is None, the seed is the checkpoint's."""
        if path is None:
            return None
        if not isinstance(every, Real) or isinstance(every, bool) or not every >= 0:
            raise ValueError(f"checkpoint_every must be a number of seconds >= 0, got {every!r}.")
        parameters = self.get_params(deep=False)
        for name in ("n_jobs", "verbose", "n_draws", "random_state"):
            del parameters[name]
        parameters |= {"kind": type(self).__name__, "seed": None if self.random_state is None else self.seed_}
        checkpoint = Checkpoint(path, every, identify(self._job(X, response, target), parameters))
        self.seed_ = checkpoint.facts.setdefault("seed", self.seed_)
        return checkpoint

    def _in_units(self, eta: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The draws in the units of the user's y."""
        return eta, scale

    def _set_draws(self, word_topic: np.ndarray, eta: np.ndarray, scale: np.ndarray) -> None:
        """Set what follows from the draws of all chains.

        word_topic (chain, V, K) is summed over the draws, eta is (chain, draw, R, K + P), scale (chain, draw, R or 0).
        From here on nothing but predict_sweeps and n_jobs is read from the parameters, which may be set anew.
        """
        self._word_topic, self._eta, self._scale = word_topic, eta, scale
        self._n_features_out = n_topics = word_topic.shape[2]
        self.coef_draws_ = eta[..., :n_topics]

    @property
    def components_(self) -> np.ndarray:
        """Pseudo-counts (K, V) of the best chain. Made from whole counts on demand: they may be large."""
        check_is_fitted(self, "_word_topic")
        return self._mean_counts(self.best_chain_).T

    @property
    def topic_word_(self) -> np.ndarray:
        """The topics (K, V) of the best chain, rows sum to 1."""
        components = self.components_
        return components / components.sum(axis=1, keepdims=True)

    def _mean_counts(self, chain: int) -> np.ndarray:
        """The mean counts of a chain's draws, plus beta: (V, K)."""
        return self._word_topic[chain] / self.coef_draws_.shape[1] + self.beta_[chain]

    def _topic_shares(self) -> np.ndarray:
        """The share of each topic in all training tokens, (chain, K): what is believed of a document without words."""
        tokens = self._word_topic.sum(axis=1, dtype=float)
        return (tokens + 1e-300) / (tokens + 1e-300).sum(axis=1, keepdims=True)

    def _infer(self, X, chains) -> np.ndarray:
        """The label-free mean zbar of new documents, (chain, n_docs, K)."""
        X = self._new_counts(X)
        n_threads, shares = effective_n_jobs(self.n_jobs), []
        for index in chains:
            phi, alpha = self._phi(index), self.alpha_[index]
            zbar = infer_shares(X, phi, alpha, self.predict_sweeps, self.seed_, index, n_threads)
            zbar[np.diff(X.indptr) == 0] = self._topic_shares()[index]
            shares.append(zbar)
        return np.array(shares)

    def _new_counts(self, X) -> csr_array:
        """The counts of new documents."""
        check_is_fitted(self, "_word_topic")
        self._check_parameters()
        return self._validate_counts(X, reset=False)

    def _phi(self, chain: int) -> np.ndarray:
        """The topics of a chain, (V, K): columns sum to 1."""
        counts = self._mean_counts(chain)
        return counts / counts.sum(axis=0)

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
        check_is_fitted(self, "_word_topic")
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
        check_is_fitted(self, "_word_topic")
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        names = np.asarray(feature_names, dtype=object)
        if names.shape != (self.n_features_in_,):
            raise ValueError(
                f"feature_names has {names.size} names, but the model was fitted on {self.n_features_in_}."
            )
        return [list(names[np.argsort(-row, kind="stable")[:n]]) for row in self.topic_word_]

    def save(self, path) -> None:
        """Write the fitted model to a file that `supertopic.load` reads: shorthand for `supertopic.save`."""
        from supertopic.storage import save

        save(self, path)

    def _validate_counts(self, X, reset: bool) -> csr_array:
        return check_counts(validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric"))

    def _check_parameters(self) -> None:
        whole = {"n_topics": 1, "burn_in": 0, "n_draws": 1, "n_chains": 1, "predict_sweeps": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
        if self.n_topics > 2**16 - 1:
            raise ValueError(f"n_topics must be at most {2**16 - 1:,}, got {self.n_topics:,}.")
        for name in self._numbers:
            check_number(name, getattr(self, name))
        if self.sampler not in ("auto", *SAMPLERS):
            raise ValueError(f"sampler must be one of 'auto', {', '.join(map(repr, SAMPLERS))}, got {self.sampler!r}.")
        self._priors()

    def _priors(self) -> Priors:
        alpha = np.asarray(self.alpha, dtype=float)
        if alpha.shape not in ((), (self.n_topics,)):
            raise ValueError(f"alpha must be a number or have n_topics = {self.n_topics} entries, got {alpha.shape}.")
        if not ((alpha >= LEAST) & (alpha <= MOST)).all():
            raise ValueError(f"alpha must be from {LEAST:g} to {MOST:g}, got {self.alpha!r}.")
        if alpha.ndim == 0:
            alpha = np.full(self.n_topics, alpha / self.n_topics)
        return Priors(alpha, float(self.beta), float(getattr(self, "nu2", 1.0)))

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
        if isinstance(self.random_state, Integral) and not isinstance(self.random_state, bool):
            if not 0 <= int(self.random_state) < 2**63:
                raise ValueError(f"random_state must be in 0 .. 2**63 - 1, got {self.random_state}.")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _choose_sampler(self, n_tokens: int) -> str:
        if self.sampler != "auto":
            return self.sampler
        return "collapsed" if n_tokens <= COLLAPSED_UP_TO else "delayed"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def over_threads(verb: Callable[[int], T], indices: Iterable[int], n_threads: int) -> list[T]:
    """verb(index) for every index, on some threads that share one BLAS thread, the answers in order."""
    with one_blas_thread:
        if n_threads == 1:
            return [verb(index) for index in indices]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(verb, indices))


def free_memory() -> float:
    """Bytes that a program can still take, as the system tells it; infinite where it does not."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return 1024.0 * (int(rows["MemAvailable"].split()[0]) + int(rows["SwapFree"].split()[0]))
    except (OSError, ValueError, KeyError):
        return float("inf")


def check_number(name: str, value, words: tuple[str, ...] = ()) -> None:
    """Refuse what is neither a positive number that the sampler can hold nor one of some words."""
    if isinstance(value, str) and value in words:
        return
    if not isinstance(value, Real) or isinstance(value, bool) or not LEAST <= float(value) <= MOST:
        names = "".join(f"{word!r} or " for word in words)
        raise ValueError(f"{name} must be {names}a number from {LEAST:g} to {MOST:g}, got {value!r}.")


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
    optimize_priors : bool, default=False
        Learn alpha, for each topic its own, and beta from the data during the burn-in; the given ones are the start.
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
        self, n_topics=20, *, alpha=1.0, beta=0.01, optimize_priors=False, burn_in=100, n_draws=20, n_chains=1,
        sampler="auto", predict_sweeps=40, n_jobs=None, random_state=None, verbose=False,
    ):  # fmt: skip
        self._store(locals())

    def fit(
        self, X: ArrayLike, y: Any = None, *, checkpoint: str | os.PathLike | None = None, checkpoint_every: float = 60
    ) -> "LDA":
        """Learn topics from word counts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.
        y : ignored
        checkpoint, checkpoint_every : path and seconds, optional
            Where the state of the chains is written, and how often. The same call goes on from there after it was
            stopped or killed, and ends in the same model, bit for bit; with a larger n_draws it continues a fit.
        """
        self._check_parameters()
        counts = self._validate_counts(X, reset=True)
        nothing = np.zeros((counts.shape[0], 0))
        self.seed_ = self._seed()
        response, target = Logistic(1.0), make_target(nothing, nothing)
        opened = self._open_checkpoint(counts, response, target, checkpoint, checkpoint_every)
        self._sample(counts, response, target, opened)
        return self
