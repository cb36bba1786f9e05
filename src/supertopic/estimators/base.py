"""What all topic models have in common: parameters, topics, `transform`, reading files."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from supertopic.corpus.source import Arrays, Corpus, no_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.estimators.validation import (
    LEAST,
    MOST,
    check_device,
    check_engine,
    check_number,
    check_whole_number,
    refuse_text,
    warn_of_many_topics,
)
from supertopic.inference.chains import Config
from supertopic.inference.fit import Checkpointing, Known
from supertopic.inference.predict import Settings, topic_shares
from supertopic.model.posterior import Posterior
from supertopic.model.priors import as_prior, as_seeds, check_discount
from supertopic.model.responses import Response
from supertopic.model.state import Priors
from supertopic.report import topics as topics_report
from supertopic.report.diagnose import Diagnosis
from supertopic.report.summary import to_xarray
from supertopic.sampling.plan import SAMPLERS

ALPHA_EACH = 0.1  # alpha=None: the prior of each topic
MOST_TOPICS = 2**16 - 1


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A topic model: parameters in, a `Posterior` as `posterior_`, and answers that read it.

    A subclass says what its response is (`make_response`). A fit puts a new posterior in place with one assignment,
    so that threads that use the model meanwhile see the old one or the new one.
    """

    n_topics: int
    alpha: Any
    beta: float
    optimize_priors: bool
    seeds: Any
    prior: Any
    burn_in: int
    n_draws: int
    n_chains: int
    sampler: str
    predict_sweeps: int
    n_jobs: int | None
    device: str
    engine: str
    random_state: Any
    verbose: bool
    posterior_: Posterior
    vectorizer_: Any
    n_features_in_: int
    _numbers: tuple[str, ...] = ("beta",)  # parameters that are positive numbers

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep what __init__ got, as it is: scikit-learn's contract."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy; the model that is its prior is data, which stays fitted."""
        copy = super().__sklearn_clone__()
        copy.prior = self.prior
        return copy

    @abstractmethod
    def make_response(self) -> Response:
        """The response with the estimator's parameters, not yet fitted."""

    @abstractmethod
    def fit_corpus(
        self, corpus: Corpus, counts: csr_array | None, y: Any, vocabulary: np.ndarray | None,
        checkpointing: Checkpointing, **known: Any,
    ) -> Self:  # fmt: skip
        """Fit documents wherever they are; counts are theirs, if these are in memory."""

    @abstractmethod
    def evaluate(self, X: Any, y: Any = None) -> tuple[np.ndarray, float, str]:
        """The loss of each held-out document, a score of all of them, and the name of the score."""

    # parameters

    def check_parameters(self) -> None:
        """Raise a ValueError for a parameter that cannot be right."""
        for name, least in (("n_topics", 1), ("burn_in", 0), ("n_draws", 1), ("n_chains", 1), ("predict_sweeps", 1)):
            check_whole_number(name, getattr(self, name), least)
        if self.n_topics > MOST_TOPICS:
            raise ValueError(f"n_topics must be at most {MOST_TOPICS:,}, got {self.n_topics:,}.")
        for name in self._numbers:
            check_number(name, getattr(self, name))
        if self.sampler not in ("auto", *SAMPLERS):
            raise ValueError(f"sampler must be one of 'auto', {', '.join(map(repr, SAMPLERS))}, got {self.sampler!r}.")
        n_jobs = self.n_jobs
        if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
            raise ValueError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}.")
        self._priors()
        for part in (as_seeds(self.seeds), as_prior(self.prior)):
            if part is not None:
                part.check(self.n_topics)
        check_engine(self.engine)
        check_device(self.device, self.n_topics, self.sampler, self.engine)

    def _priors(self) -> Priors:
        alpha = np.asarray(ALPHA_EACH * self.n_topics if self.alpha is None else self.alpha, dtype=float)
        if alpha.shape not in ((), (self.n_topics,)):
            raise ValueError(f"alpha must be a number or have n_topics = {self.n_topics} entries, got {alpha.shape}.")
        if not ((alpha >= LEAST) & (alpha <= MOST)).all():
            raise ValueError(f"alpha must be from {LEAST:g} to {MOST:g}, got {self.alpha!r}.")
        if alpha.ndim == 0:
            alpha = np.full(self.n_topics, alpha / self.n_topics)
        return Priors(alpha, float(self.beta), 1.0)

    def _seed(self) -> int | None:
        """The seed, or None for fresh entropy."""
        if self.random_state is None:
            return None
        if isinstance(self.random_state, bool | np.bool_):
            raise ValueError(f"random_state must be a whole number, a RandomState or None, got {self.random_state!r}.")
        if isinstance(self.random_state, Integral):
            if not 0 <= int(self.random_state) < 2**63:
                raise ValueError(f"random_state must be in 0 .. 2**63 - 1, got {self.random_state}.")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _config(self, n_words: int, seed: int | None) -> Config:
        """The parameters as `inference.fit` wants them."""
        identity = self.get_params(deep=False)
        for name in ("n_jobs", "engine", "verbose", "n_draws", "random_state", "prior"):
            del identity[name]
        seeds = as_seeds(self.seeds)
        identity |= {"kind": type(self).__name__, "seed": seed, "seeds": seeds and seeds.get_params()}
        return Config(
            n_words, self.n_topics, self._priors(), bool(self.optimize_priors), self.burn_in, self.n_draws,
            self.n_chains, self.sampler, self.predict_sweeps, n_jobs=self.n_jobs, device=self.device,
            engine=self.engine, verbose=bool(self.verbose), title=type(self).__name__, identity=identity,
        )  # fmt: skip

    def _known(
        self, vocabulary: np.ndarray | None, previous: Posterior | None, discount: float, corpus: Corpus
    ) -> Known:
        """What is known before the documents are seen."""
        check_discount(discount)
        if previous is None:
            n_docs, n_tokens = len(corpus.doc_start) - 1, int(corpus.doc_start[-1])
            warn_of_many_topics(self.n_topics, n_docs, n_tokens)
        elif (previous.topics[0].n_topics, previous.n_chains) != (self.n_topics, self.n_chains):
            raise ValueError(
                f"partial_fit updates a model of {previous.topics[0].n_topics} topics and {previous.n_chains} chains, "
                f"but n_topics={self.n_topics} and n_chains={self.n_chains}; `fit` starts again."
            )
        return Known(vocabulary, as_seeds(self.seeds), as_prior(self.prior), previous, float(discount))

    # documents

    def _validate_counts(self, X: Any, reset: bool) -> csr_array:
        refuse_text(X)
        if issparse(X) and X.format == "coo" and X.dtype.kind in "iub":
            X = X.astype(np.int64)  # duplicates are added up on the way to CSR: a sum may be too large for small types
        return check_counts(validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric"))

    def _documents(self, X: Any, previous: Posterior | None) -> tuple[csr_array, Arrays]:
        """Checked counts for a fit, and the same as tokens."""
        self.check_parameters()
        counts = self._validate_counts(X, reset=previous is None)
        return counts, Arrays(make_tokens(counts), no_target(counts.shape[0]))

    def _vocabulary(self, feature_names: ArrayLike | None, previous: Posterior | None) -> np.ndarray | None:
        """The words of the columns: as given, as known from earlier batches, or the names of a DataFrame's columns."""
        known = previous.vocabulary if previous else None
        if feature_names is None:
            return getattr(self, "feature_names_in_", None) if known is None else known
        names = np.asarray(feature_names, dtype=object)
        if names.shape != (self.n_features_in_,):
            raise ValueError(f"feature_names has {names.size} names, but X has {self.n_features_in_} columns.")
        if len(set(names)) < len(names):
            raise ValueError("feature_names has a word twice.")
        if known is not None and not np.array_equal(known, names):
            raise ValueError("feature_names differ from those of earlier batches; columns must stay as they are.")
        return names

    def _start_fit(self) -> None:
        """Forget the vectorizer of `fit_files`."""
        self.__dict__.pop("vectorizer_", None)

    def _fitted(self) -> Posterior:
        check_is_fitted(self, "posterior_")
        return self.posterior_

    def _counts(self, X: Any) -> csr_array:
        """The counts of new documents."""
        check_is_fitted(self, "posterior_")
        self.check_parameters()
        return self._validate_counts(X, reset=False)

    def _settings(self) -> Settings:
        return Settings(self.predict_sweeps, effective_n_jobs(self.n_jobs), self.device)

    def fit_files(
        self, files: Any, *, text: str = "text", label: str | None = None, weight: str | None = None,
        exposure: str | None = None, covariates: Sequence[str] = (), vectorizer: Any = None,
        folder: str | os.PathLike[str] | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from the documents of files: CSV, TSV, JSON lines or Parquet, a document a row, or UCI docword files.

        Words are counted and tokens are made in parallel, and the tokens stay on disk until they are needed. The model
        is that of `fit` on the same documents, bit for bit; only words beside topics are left out if there are more
        than 30 million tokens. `vectorizer_` is the fitted vectorizer.

        Parameters
        ----------
        files : path, pattern, folder or list of paths
            "data/*.parquet", for example. Documents come in the order of the files' names.
        text, label, weight, exposure : str
            The columns with the text, the response, and, if wanted, the weight and the exposure of each document.
            docword.NAME.txt has none of them, and its words are in vocab.NAME.txt.
        covariates : sequence of str
            The columns with numbers that enter the prediction beside the topics.
        vectorizer : CountVectorizer, optional
            How texts become words; CountVectorizer() by default.
        folder : path, optional
            Where the tokens are stored during the fit, 4 bytes each: a temporary folder by default. On several
            machines it has to be one that all of them see.
        checkpoint, checkpoint_every : path and seconds, optional
            As in `fit`.
        """
        from supertopic.estimators.from_files import fit_from_files

        self.check_parameters()
        columns = {"label": label, "sample_weight": weight, "exposure": exposure}
        checkpointing = Checkpointing(checkpoint, checkpoint_every)
        fit_from_files(self, files, text, columns, covariates, vectorizer, folder, checkpointing)
        return self

    # topics

    @property
    def components_(self) -> np.ndarray:
        """Pseudo-counts (K, V) of the best chain. Made from whole counts on demand: they may be large."""
        return topics_report.mean_counts(self._fitted()).T

    @property
    def topic_word_(self) -> np.ndarray:
        """The topics (K, V) of the best chain, rows sum to 1."""
        return topics_report.topic_word(self._fitted())

    @property
    def doc_topic_(self) -> np.ndarray:
        """The mean zbar of the training documents of the last batch, (n_docs, K); a loaded model has none."""
        found = self._fitted().doc_topic
        if found is None:
            raise AttributeError("A model file holds no training documents: there is no doc_topic_.")
        return found

    @property
    def vocabulary_(self) -> np.ndarray:
        """The words of the columns, (V,), if they are known."""
        found = self._fitted().vocabulary
        if found is None:
            raise AttributeError("The words are not known: pass feature_names to fit.")
        return found

    @property
    def alpha_(self) -> np.ndarray:
        """The Dirichlet prior of documents in each chain, (n_chains, K)."""
        return np.concatenate([part.alpha for part in self._fitted().topics], axis=1)

    @property
    def beta_(self) -> np.ndarray:
        """The Dirichlet prior of topics in each chain, (n_chains,)."""
        return self._fitted().topics[0].beta

    @property
    def seed_(self) -> int:
        """The seed that was used."""
        return self._fitted().seed

    @property
    def sampler_(self) -> str:
        """The sampler that ran."""
        return self._fitted().sampler

    @property
    def best_chain_(self) -> int:
        """The chain with the highest log joint, whose topics are shown."""
        return self._fitted().best_chain

    @property
    def n_batches_(self) -> int:
        """The number of batches that the model has learned from."""
        return self._fitted().n_batches

    @property
    def topic_names_(self) -> dict[str, str]:
        """Names that `seeds` or `name_topics` gave, by the number of the topic as text."""
        return dict(self._fitted().topic_names)

    @property
    def log_joint_(self) -> np.ndarray:
        """The log joint density of each chain, (n_chains, n), at `log_joint_iterations_`."""
        return self._fitted().traces.log_joint

    @property
    def log_joint_iterations_(self) -> np.ndarray:
        """The iterations at which the log joint was taken, (n,): every tenth, and all that are kept."""
        return self._fitted().traces.iterations

    @property
    def timings_(self) -> dict[str, float]:
        """Seconds spent on eta, z and lambda by all threads; on a cluster also seconds and bytes of exchange."""
        return self._fitted().traces.timings

    @property
    def _n_features_out(self) -> int:
        return self._fitted().n_topics

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
        posterior = self._fitted()
        return topic_shares(posterior, make_tokens(self._counts(X)), [posterior.best_chain], self._settings())[0]

    def typical_documents(self, X: ArrayLike, topic: int, n: int = 5) -> np.ndarray:
        """The documents in which a topic has the largest share.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.
        topic : int
            Its number, as in `coef_` and `top_words`.
        n : int, default=5
            The number of documents.

        Returns
        -------
        ndarray of shape (n,)
            Row numbers, the largest share first. The share of a short document is shrunk towards the topic's prior:
            a single word proves little.
        """
        posterior = self._fitted()
        return topics_report.typical_documents(posterior, self._counts(X), topic, n, self._settings())

    def top_words(self, feature_names: ArrayLike | None = None, n: int = 10, by: str = "frex") -> list[list[str]]:
        """The n top words of each topic, the best first.

        Parameters
        ----------
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`. By default the names known from `fit`,
            or "x0", "x1", ... where there were none.
        n : int, default=10
            The number of words.
        by : {"frex", "probability", "lift"}, default="frex"
            How words are ranked. "probability" is how often the topic uses a word; large topics then have the same
            words. "lift" is how much more often than the corpus does. "frex" is the harmonic mean of a word's ranks by
            how often and by how exclusively the topic uses it, among the words that the topic has (Bischof and
            Airoldi, 2012).
        """
        posterior = self._fitted()
        return topics_report.top_words(posterior, topics_report.vocabulary_of(posterior, feature_names), n, by)

    def topic_frame(self, feature_names: ArrayLike | None = None, n: int = 10) -> Any:
        """A pandas frame of the best chain's topics: topic, name, share, exclusivity, and their n top words."""
        posterior = self._fitted()
        return topics_report.topic_frame(posterior, topics_report.vocabulary_of(posterior, feature_names), n)

    def name_topics(self, names: Mapping[int, str]) -> Self:
        """Give some topics names, which are shown beside their numbers and kept in the model's file; "" removes one.

        They are names of the best chain's topics, which are shown everywhere. A new fit forgets them.
        """
        posterior = self._fitted()
        self.posterior_ = posterior.named(topics_report.check_names(posterior, names))
        return self

    def topic_name(self, topic: int) -> str:
        """The name of a topic, "" if it has none."""
        return topics_report.topic_name(self._fitted(), topic)

    def match_topics(self) -> np.ndarray:
        """For each chain the topics that are most like those of the best chain, in its order: (n_chains, n_topics)."""
        return topics_report.match_topics(self._fitted())

    def topic_agreement(self) -> np.ndarray:
        """For each topic of the best chain the share of all chains that have one like it, (n_topics,).

        Two topics are alike if their words overlap by 0.6 or more (Bhattacharyya's coefficient), after `match_topics`.
        With one chain the answer is NaN.
        """
        return topics_report.topic_agreement(self._fitted())

    def exclusivity(self, n: int = 10) -> np.ndarray:
        """For each topic, over its n most probable words, the mean of its part in all topics' use of the word."""
        return topics_report.exclusivity(self._fitted(), n)

    def perplexity(self, X: ArrayLike, random_state: int = 0, chains: Sequence[int] | None = None) -> float:
        """Held-out perplexity by document completion; smaller is better.

        Topics of each document are inferred from a random half of its tokens, and the other half is predicted, with the
        mean over the chains (all, or those given): exp(- mean log p(token)). No token is used for both, so that a
        document that explains itself gains nothing.
        """
        posterior = self._fitted()
        return topics_report.perplexity(posterior, self._counts(X), self._settings(), random_state, chains)

    def coherence(
        self, texts: Iterable[Sequence[str]], feature_names: ArrayLike | None = None, n: int = 10, measure: str = "c_v"
    ) -> np.ndarray:
        """How well the n most probable words of each topic go together in reference texts, (n_topics,).

        Parameters
        ----------
        texts : iterable of lists of str
            Tokens of each text, such as `[analyze(text) for text in corpus]` with the vectorizer's build_analyzer().
        feature_names : array-like of str, optional
            The vocabulary, as for `top_words`.
        n : int, default=10
            The number of words of each topic.
        measure : {"c_v", "c_npmi"}
            Roeder, Both and Hinneburg's (2015), as in gensim.
        """
        posterior = self._fitted()
        names = topics_report.vocabulary_of(posterior, feature_names)
        return topics_report.topic_coherence(posterior, texts, names, n, measure)

    def to_pyldavis(self, X: ArrayLike, feature_names: ArrayLike | None = None) -> Any:
        """The topics for pyLDAvis, in their own order: `pyLDAvis.save_html(model.to_pyldavis(X), "page.html")`.

        X are the documents whose topics are shown. Needs pyLDAvis, which counts topics from 1: its topic 1 is ours 0.
        """
        import pyLDAvis

        counts = self._counts(X)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        counts, lengths = counts[lengths > 0], lengths[lengths > 0]
        topics, names = self.topic_word_, topics_report.vocabulary_of(self._fitted(), feature_names)
        return pyLDAvis.prepare(
            topics / topics.sum(axis=1, keepdims=True), self.transform(counts), lengths, names,
            np.asarray(counts.sum(axis=0)).ravel(), sort_topics=False,
        )  # fmt: skip

    def to_xarray(self) -> Any:
        """The draws as an xarray Dataset with dimensions chain, draw, column and topic, which ArviZ takes as it is.

        Topics of all chains are matched to those of the best one. coef are draws behind `coef_`, prediction those that
        predictions use, training the chains' own. Needs xarray: pip install 'supertopic[diagnostics]'.
        """
        return to_xarray(self._fitted())

    @abstractmethod
    def diagnose(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Diagnosis:
        """Whether the chains have settled, and how much they differ."""

    def _repr_html_inner(self) -> str:
        """For notebooks: scikit-learn's own, and the topics once they are there."""
        shown = super()._repr_html_inner()
        if not hasattr(self, "posterior_"):
            return shown
        words, shares = self.top_words(n=8), self.posterior_.shares[self.best_chain_]
        cells = ((f"{k} {self.topic_name(k)}", f"{shares[k]:.1%}", " ".join(words[k])) for k in np.argsort(-shares))
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        return f"{shown}<table><thead><tr><th>topic</th><th>share</th><th>words</th></tr></thead>{rows}</table>"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
