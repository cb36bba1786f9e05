"""What all topic models have in common: parameters, topics, `transform`. And the plain one, LDA."""

import functools
import os
import threading
from collections.abc import Callable, Sequence
from html import escape
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from supertopic.corpus.source import Arrays, Corpus, no_target
from supertopic.corpus.tokens import Tokens, check_counts, make_tokens
from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.fitting import Fitting
from supertopic.estimators.from_files import FromFiles
from supertopic.estimators.validation import (
    LEAST,
    MOST,
    check_device,
    check_engine,
    check_number,
    refuse_text,
)
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Logistic
from supertopic.model.state import Priors, mean_topics
from supertopic.report.summary import Summary, word_scores
from supertopic.sampling.new_documents import PREDICT, freeze, infer_shares
from supertopic.sampling.plan import SAMPLERS

freezing = threading.Lock()  # topics for predictions are made once, whoever asks first

F = TypeVar("F", bound=Callable[..., Any])
EACH = 0.1  # alpha=None: the prior of each topic


def consistent(method: F) -> F:
    """Let a method see one state of the model from its beginning to its end, also while another thread updates it."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **more: Any) -> Any:
        seen = object.__new__(type(self))
        seen.__dict__ = self.__dict__  # an update puts another one in its place
        return method(seen, *args, **more)

    return call  # type: ignore[return-value]


class TopicModel(Fitting, FromFiles, Summary, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What LDA and its supervised kin have in common: the chains, the topics, `transform`."""

    _numbers: tuple[str, ...] = ("beta",)  # parameters that are positive numbers

    alpha: Any
    beta: float

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep what __init__ got, as it is: scikit-learn's contract."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _in_units(self, eta: np.ndarray) -> np.ndarray:
        """Draws of weights in the units of the user's y."""
        return eta

    def _set_draws(
        self, word_topic: np.ndarray, eta: np.ndarray, scale: np.ndarray, new_eta: np.ndarray, new_scale: np.ndarray,
        shown: np.ndarray,
    ) -> None:  # fmt: skip
        """Set what follows from the draws of all chains.

        word_topic (chain, V, K) is summed over the draws, eta is (chain, draw, R, K + P), scale (chain, draw, R or 0),
        and so are the weights for new documents and those that are shown. From here on nothing but predict_sweeps,
        n_jobs and device is read from the parameters, which may be set anew.
        """
        self._word_topic, self._eta, self._scale = word_topic, eta, scale
        self._calibrated, self._shown = (new_eta, new_scale), shown
        self._n_features_out = word_topic.shape[2]
        self._topic_shares = self._shares_of(word_topic, eta.shape[1])
        self._frozen: dict[tuple[int, int, str], Any] = {}

    def _shares_of(self, word_topic: np.ndarray, n_draws: int) -> np.ndarray:
        """The share of each topic in all tokens that were seen, (chain, K): the document of which nothing is known."""
        imagined = self._learned["imagined"].reshape(self.n_blocks_, len(word_topic), -1).swapaxes(0, 1)
        tokens = word_topic.sum(axis=1, dtype=float) - n_draws * imagined.reshape(len(word_topic), -1)
        tokens = np.maximum(tokens, 1e-300)
        return tokens / tokens.sum(axis=1, keepdims=True)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        if "_frozen" in state:  # made again when it is needed
            state = state | {"_frozen": {}}
        return state

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
        return self._word_topic[chain] / self._eta.shape[1] + self.beta_[chain]

    def _block(self, block: int) -> slice:
        """The topics of a block."""
        size = self._n_features_out // self.n_blocks_
        return slice(block * size, (block + 1) * size)

    def _own_topics(self, n_columns: int, n_topics: int) -> np.ndarray:
        """Which topics each column has weights for, (R, K): all, or those of its own block."""
        block = np.arange(n_topics) * self.n_blocks_ // n_topics
        return (block == np.arange(n_columns)[:, None]) | (self.n_blocks_ == 1)

    def _topics(self, chain: int, block: int, device: str | None = None) -> Any:
        """The topics of a chain as the sampler reads them; they are kept, since they take longer than a document."""
        with freezing:
            key, own = (chain, block, device or self.device), self._block(block)
            if key not in self._frozen:
                priors = Priors(self.alpha_[chain, own], self.beta_[chain], 1.0)
                topics = mean_topics(self._word_topic[chain][:, own], self._eta.shape[1], priors)
                self._frozen[key] = freeze(topics, key[2])
            return self._frozen[key]

    def _key(self, chain: int, block: int) -> np.uint64:
        """Random numbers of a chain for new documents."""
        return make_key(self.seed_, block * len(self._eta) + chain, PREDICT)

    def _infer(self, tokens: Tokens, chains: Sequence[int]) -> np.ndarray:
        """The label-free mean zbar of new documents, (chain, n_docs, K)."""
        n_threads = effective_n_jobs(self.n_jobs)
        shares = np.empty((len(chains), len(tokens.doc_start) - 1, self._n_features_out))
        for index, zbar in zip(chains, shares, strict=True):
            for block in range(self.n_blocks_):
                topics, key = self._topics(index, block), self._key(index, block)
                found = infer_shares(tokens, topics, self.predict_sweeps, key, n_threads)
                zbar[:, self._block(block)] = found / self.n_blocks_
            zbar[np.diff(tokens.doc_start) == 0] = self._topic_shares[index]
        return shares

    def _new_counts(self, X: Any) -> csr_array:
        """The counts of new documents."""
        check_is_fitted(self, "_word_topic")
        self._check_parameters()
        return self._validate_counts(X, reset=False)

    def _phi(self, chain: int) -> np.ndarray:
        """The topics of a chain, (V, K): columns sum to 1."""
        counts = self._mean_counts(chain)
        return counts / counts.sum(axis=0)

    @consistent
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
        return self._infer(make_tokens(self._new_counts(X)), [self.best_chain_])[0]

    @consistent
    def typical_documents(self, X: ArrayLike, topic: int, n: int = 5) -> np.ndarray:
        """The documents that a topic is made of: the rows of X in which it has the largest share, the largest first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.
        topic : int
            Its number, as in `coef_` and `top_words`.
        n : int, default=5
            How many documents.

        Returns
        -------
        ndarray of shape (n,)
            Row numbers. A short document's share is drawn towards the topic's prior: a single word proves little.
        """
        counts = self._new_counts(X)
        if not isinstance(topic, Integral) or not 0 <= topic < self._n_features_out:
            raise ValueError(f"topic must be a whole number from 0 to {self._n_features_out - 1}, got {topic!r}.")
        lengths, alpha = np.asarray(counts.sum(axis=1)).ravel(), self.alpha_[self.best_chain_]
        shares = self._infer(make_tokens(counts), [self.best_chain_])[0][:, topic] * (lengths > 0)
        return np.argsort(-(shares * lengths + alpha[topic]) / (lengths + alpha.sum()), kind="stable")[:n]

    def top_words(self, feature_names: ArrayLike | None = None, n: int = 10, by: str = "frex") -> list[list[str]]:
        """The n top words of each topic, the best first.

        Parameters
        ----------
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`. By default the column names seen in `fit`,
            or "x0", "x1", ... where there were none.
        n : int, default=10
            How many words.
        by : {"frex", "probability", "lift"}, default="frex"
            What makes a word a top word. "probability" is how often the topic uses it; large topics then have the same
            words. "lift" is how much more often than the corpus does. "frex" asks for both: the harmonic mean of a
            word's ranks by how often and by how exclusively the topic uses it, among the words that the topic has
            (Bischof and Airoldi, 2012).
        """
        check_is_fitted(self, "_word_topic")
        names = self._feature_names(feature_names)
        counts = self._word_topic[self.best_chain_].T / self._eta.shape[1]
        scores = word_scores(self.topic_word_, counts, self._topic_shares[self.best_chain_], by)
        return [list(names[np.argsort(-row, kind="stable")[:n]]) for row in scores]

    def _feature_names(self, feature_names: ArrayLike | None) -> np.ndarray:
        """The vocabulary: what is given, or what was seen in `fit`."""
        if feature_names is None:
            feature_names = self._known_names()
        if feature_names is None:
            feature_names = [f"x{i}" for i in range(self.n_features_in_)]
        names = np.asarray(feature_names, dtype=object)
        if names.shape != (self.n_features_in_,):
            raise ValueError(
                f"feature_names has {names.size} names, but the model was fitted on {self.n_features_in_}."
            )
        return names

    def _set_vocabulary(self, feature_names: ArrayLike | None, going_on: bool) -> None:
        """Keep the vocabulary if it is given; a new fit forgets another one's."""
        if not going_on:
            for name in ("vocabulary_", "vectorizer_"):
                self.__dict__.pop(name, None)
        if feature_names is not None:
            names, known = self._feature_names(feature_names), getattr(self, "vocabulary_", None)
            if len(set(names)) < len(names):
                raise ValueError("feature_names has a word twice.")
            if known is not None and not np.array_equal(known, names):
                raise ValueError(
                    "feature_names differ from those of the batches before; columns must stay as they are."
                )
            self.vocabulary_ = names

    def _open_learned(self, going_on: bool) -> None:
        """Begin to learn, from nothing or from what is known."""
        self._learned = dict(self._learned) if going_on else {}
        if going_on and (self._word_topic.shape[2], len(self._eta)) != (
            self.n_blocks_ * self.n_topics, self.n_chains,
        ):  # fmt: skip
            raise ValueError(
                f"partial_fit goes on with {self._word_topic.shape[2] // self.n_blocks_} topics and {len(self._eta)} "
                f"chains, but n_topics={self.n_topics} and n_chains={self.n_chains}; `fit` begins anew."
            )

    def _update(self, fit: Callable[[Self], Any]) -> Self:
        """Let a copy learn, and take its place at once when it has.

        A batch that fails or is stopped leaves the model as it was, and threads that predict meanwhile see what it was
        or what it is, but no mixture of both (see `consistent`).
        """
        new = object.__new__(type(self))
        new.__dict__ = dict(self.__dict__)
        fit(new)
        self.__dict__ = new.__dict__
        return self

    def __sklearn_clone__(self) -> "TopicModel":
        """An unfitted copy; a prior stays what it is, since it is data and not to be fitted again."""
        parameters = self.get_params(deep=False)
        return type(self)(
            **{name: value if name == "prior" else clone(value, safe=False) for name, value in parameters.items()}
        )

    def _validate_counts(self, X: Any, reset: bool) -> csr_array:
        refuse_text(X)
        if issparse(X) and X.format == "coo" and X.dtype.kind in "iub":
            X = X.astype(np.int64)  # duplicates are added up on the way to CSR: a sum may be too large for small types
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
        n_jobs = self.n_jobs
        if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
            raise ValueError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}.")
        self._priors()
        self._check_beliefs()
        check_engine(self.engine)
        check_device(self.device, self.n_topics, self.sampler, self.engine)

    def _priors(self) -> Priors:
        alpha = np.asarray(EACH * self.n_topics if self.alpha is None else self.alpha, dtype=float)
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
        if isinstance(self.random_state, bool | np.bool_):
            raise ValueError(f"random_state must be a whole number, a RandomState or None, got {self.random_state!r}.")
        if isinstance(self.random_state, Integral):
            if not 0 <= int(self.random_state) < 2**63:
                raise ValueError(f"random_state must be in 0 .. 2**63 - 1, got {self.random_state}.")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _repr_html_inner(self) -> str:
        """For notebooks: scikit-learn's own, and the topics once they are there."""
        shown = super()._repr_html_inner()
        if not hasattr(self, "_word_topic"):
            return shown
        words, shares = self.top_words(n=8), self._topic_shares[self.best_chain_]
        cells = ((f"{k} {self.topic_name(k)}", f"{shares[k]:.1%}", " ".join(words[k])) for k in np.argsort(-shares))
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        return f"{shown}<table><thead><tr><th>topic</th><th>share</th><th>words</th></tr></thead>{rows}</table>"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


@documented
class LDA(TopicModel):
    """Latent Dirichlet allocation by Gibbs sampling: topics from the words alone.

    Parameters
    ----------
    burn_in, n_draws : int, default=100 and 20
        A chain runs burn_in + n_draws iterations; the last n_draws are kept.
    n_chains : int, default=1
        Independent chains; what is shown comes from the one with the highest log joint.
    ...

    Attributes
    ----------
    doc_topic_ : ndarray of shape (n_docs, n_topics)
        The mean zbar of the training documents.
    ...
    """

    def __init__(
        self, n_topics: int = 20, *, alpha: ArrayLike | None = None, beta: float = 0.01, optimize_priors: bool = False,
        seeds: Any = None, seed_strength: float = 1.0, prior: Any = None, discount: float = 1.0, burn_in: int = 100,
        n_draws: int = 20, n_chains: int = 1, sampler: str = "auto", predict_sweeps: int = 40,
        n_jobs: int | None = None, device: str = "cpu", engine: str = "threads", random_state: Any = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    @documented_fit
    def fit(
        self, X: ArrayLike, y: Any = None, *, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> "LDA":  # fmt: skip
        """Learn topics from word counts.

        Parameters
        ----------
        y : ignored
        ...
        """
        return self._fit(X, feature_names, checkpoint, checkpoint_every, False)

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: Any = None, *, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> "LDA":  # fmt: skip
        """Learn from one more batch of documents: what is known so far is its prior, see `discount`.

        Parameters
        ----------
        y : ignored
        ...
        """
        going_on = hasattr(self, "_word_topic")
        return self._update(lambda new: new._fit(X, feature_names, checkpoint, checkpoint_every, going_on))

    def _fit(self, X: Any, feature_names: Any, checkpoint: Any, checkpoint_every: float, going_on: bool) -> "LDA":
        self._check_parameters()
        counts = self._validate_counts(X, reset=not going_on)
        self._set_vocabulary(feature_names, going_on)
        documents = Arrays(make_tokens(counts), no_target(counts.shape[0]))
        return self._fit_documents(documents, counts, checkpoint, checkpoint_every, going_on)

    def _fit_documents(
        self, documents: Corpus, X: Any, checkpoint: Any, checkpoint_every: float, going_on: bool = False
    ) -> "LDA":
        self._open_learned(going_on)
        self._fit_chains(documents, X, Logistic(1.0), checkpoint, checkpoint_every, going_on=going_on)
        return self
