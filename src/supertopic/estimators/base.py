"""What all topic models have in common: parameters, topics, `transform`, reading files."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from supertopic.corpus.counted import make_counted
from supertopic.corpus.made_frames import LIBRARIES, configured, in_own_library, library_of
from supertopic.corpus.source import Corpus
from supertopic.corpus.tokens import make_tokens
from supertopic.estimators import documents, reading, revision, tables
from supertopic.estimators.docs import documented_fit
from supertopic.estimators.drift import drift
from supertopic.estimators.encoding import Given, check_sizes, encode_documents, with_features
from supertopic.estimators.fitted import Fitted, FittedFrame, known
from supertopic.estimators.from_files import fit_from_files
from supertopic.estimators.growing import STAYS, Growing, Update, prepare_update
from supertopic.estimators.parameters import check_choices, check_whole_numbers, make_config, make_seed
from supertopic.estimators.registration import freeze
from supertopic.estimators.texts import (
    Counts,
    check_vectorizer,
    keep_reader,
    left_out_unknown,
    read_documents,
    read_new,
)
from supertopic.estimators.validation import check_device, check_number, read_counts
from supertopic.inference.beside import NO_INPUTS, LinearInputs
from supertopic.inference.chains import Config
from supertopic.inference.fit import Checkpointing, Known, fit
from supertopic.inference.ingredients import Learner
from supertopic.inference.predict import Settings, mean_topic_shares
from supertopic.model.posterior import Posterior
from supertopic.model.priors import as_prior
from supertopic.model.responses import Response
from supertopic.model.seeds import as_seeds
from supertopic.report import topics as topics_report
from supertopic.report.diagnose import Diagnosis
from supertopic.report.evaluate import Evaluation
from supertopic.report.history import history_frame
from supertopic.report.summary import to_xarray
from supertopic.report.words import find_phrases, token_stream


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A topic model: it has parameters, and a fit computes a `Posterior`, which all results read.

    A subclass says what its response is (`make_response`). A fit replaces the posterior with one assignment.
    """

    n_topics: int
    alpha: Any
    beta: float
    optimize_priors: bool
    seeds: Any
    prior: Any
    vectorizer: Any
    init: str
    burn_in: int | str
    max_seconds: float | None
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
    word_vectorizer_: Any
    n_features_in_: int
    _numbers: tuple[str, ...] = ("beta",)  # parameters that are positive numbers
    stored: ClassVar[tuple[str, ...]] = (  # parameters that a model file may hold; none says where to run
        "n_topics", "alpha", "beta", "optimize_priors", "seeds", "vectorizer", "init", "burn_in", "max_seconds",
        "n_draws", "n_chains", "sampler", "predict_sweeps", "random_state", "verbose",
    )  # fmt: skip
    _library: str | None = None
    _learners: Sequence[Learner] = ()  # learners of further terms of omega
    _validate_counts = read_counts

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
    def evaluate(self, X: Any, y: Any = None) -> Evaluation:
        """The loss of each held-out document, a score of all of them, its name, and other measures."""

    def check_parameters(self) -> None:
        """Raise a ValueError for a parameter that cannot be right."""
        check_whole_numbers(self)
        check_choices(self)
        for name in self._numbers:
            check_number(name, getattr(self, name))
        for part in (as_seeds(self.seeds), as_prior(self.prior)):
            if part is not None:
                part.check(self.n_topics)
        check_vectorizer("vectorizer", self.vectorizer)
        check_device(self.device, self.n_topics, self.sampler, self.engine)

    def _config(self, n_words: int, seed: int | None) -> Config:
        """The parameters as `inference.fit` wants them."""
        return make_config(type(self).__name__, self.get_params(deep=False), n_words, seed)

    def _update(
        self, X: Any, y: Any, feature_names: Any, discount: float, new_words: bool, add_classes: bool = False,
        **more: Any,
    ) -> Self:  # fmt: skip
        previous = getattr(self, "posterior_", None)
        more |= {"discount": discount, "growing": Growing(new_words, add_classes)}
        return self._fit(X, y, feature_names, previous, **more)

    def _fit(
        self, X: Any, y: Any, feature_names: Any, previous: Posterior | None = None, growing: Growing = STAYS,
        **more: Any,
    ) -> Self:  # fmt: skip
        self.check_parameters()
        update, library = None, library_of((X, y, *more.values()))
        if previous is None:
            read = read_documents(self, X, feature_names, None, self._validate_counts)
        else:
            update, more["classes"] = prepare_update(
                self, X, y, more.get("classes"), feature_names, previous, growing, self._validate_counts
            )
            read = update.documents
        documents = make_counted(read.counts.topics)
        first = previous is None or not previous.n_batches
        if y is None and first and more.get("classes") is None and self.make_response().kind:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        more |= {"update": update, "word_names": read.word_names}
        more["inputs"] = LinearInputs(read.counts.words if getattr(self, "words", False) else None)
        if read.texts is not None and read.reader is not None and previous is None:
            more["unknown"] = left_out_unknown(read.reader.topics, read.texts, read.counts.topics)
        self.fit_corpus(documents, read.counts.topics, y, read.vocabulary, **more)
        self._library = library
        keep_reader(self, read.reader)
        if read.texts is not None and previous is None:
            self.learn_phrases(read.texts, self.vectorizer_)
        return self

    def fit_corpus(
        self, corpus: Corpus, counts: csr_array | None, y: Any, vocabulary: np.ndarray | None,
        checkpointing: Checkpointing, *, inputs: LinearInputs = NO_INPUTS, word_names: np.ndarray | None = None,
        features: Any = None, sample_weight: Any = None, covariates: Any = None, exposure: Any = None,
        classes: Any = None, groups: Any = None, update: Update | None = None, discount: float = 1.0,
        unknown: np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        """Fit documents wherever they are; counts are theirs, if these are in memory."""
        previous, n_words = (update.posterior, update.posterior.n_words) if update else (None, self.n_features_in_)
        check_sizes(corpus, self.n_topics, self.n_chains, previous, discount)
        known = Known(
            vocabulary, word_names, as_seeds(self.seeds), as_prior(self.prior), previous, float(discount), unknown
        )
        if features is not None and not getattr(self, "calibrate", True):
            raise ValueError("features need calibrate=True: their weights are learned together with calibration.")
        given = Given(y, sample_weight, covariates, exposure, classes, features, getattr(self, "formula", None), groups)
        corpus, encoded, columns = encode_documents(corpus, self.make_response(), given, previous, known.discount)
        inputs = with_features(inputs, given, previous, len(corpus.doc_start) - 1)
        seed = make_seed(self.random_state)
        if update is not None and update.before.n_batches:
            entry = update.entry(corpus, encoded, columns, inputs, exposure, self._settings())
            known = replace(known, entry=entry)
        posterior = fit(
            corpus, encoded, columns, self._config(n_words, seed), seed, known, counts, checkpointing, self._learners,
            inputs,
        )  # fmt: skip
        # in one step, so that another thread sees a posterior with the vectorizers of its own words
        self.__dict__.update(update.attributes if update else {}, posterior_=posterior)
        return self

    def needs_counts(self) -> bool:
        """Whether a fit needs all counts in memory."""
        return bool(self._learners)

    def _read(self, X: Any) -> tuple[Posterior, Counts]:
        """The posterior, and documents in its words; another thread may put another one in place meanwhile."""
        while True:
            posterior, counts = self._fitted(), read_new(self, X, self._validate_counts)
            if self.posterior_ is posterior:
                return posterior, counts

    def _fitted(self) -> Posterior:
        check_is_fitted(self, "posterior_")
        return self.posterior_

    def own_library(self, given: Sequence[Any]) -> str | None:
        """The library of the frames that a method returns: see `in_own_library`."""
        asked = self.__dict__.get("_sklearn_output_config", {}).get("transform")
        return next((x for x in (asked, configured(), library_of(given), self._library) if x in LIBRARIES), None)

    def _counts(self, X: Any) -> csr_array:
        """The counts of the topics' words in new documents."""
        return read_new(self, X, self._validate_counts).topics

    def _settings(self) -> Settings:
        return Settings(self.predict_sweeps, effective_n_jobs(self.n_jobs), self.device)

    @documented_fit
    def fit_files(
        self, files: Any, *, text: str = "text", label: str | None = None, weight: str | None = None,
        exposure: str | None = None, covariates: Sequence[str] = (), groups: str | None = None, vectorizer: Any = None,
        folder: str | os.PathLike[str] | None = None, features: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from documents in files: tables with a document in each row, or UCI docword files.

        Words are counted and tokens are made in parallel, and the tokens stay on disk until they are needed. The model
        is that of `fit` on the same texts, bit for bit. Words beside topics are learned from a part of the documents if
        all of them have more than 10 million tokens.

        Parameters
        ----------
        covariates : sequence of str
            The columns that enter the prediction beside the topics; by default those of `formula`, if there is one.
        groups : str, optional
            The column with the group of each document.
        checkpoint, checkpoint_every : path and seconds, optional
            As in `fit`.
        ...
        """
        self.check_parameters()
        columns = {"label": label, "sample_weight": weight, "exposure": exposure, "groups": groups}
        checkpointing = Checkpointing(checkpoint, checkpoint_every)
        fit_from_files(self, files, text, columns, covariates, vectorizer, folder, checkpointing, features)
        return self

    components_ = Fitted(topics_report.mean_counts)
    topic_word_ = Fitted(topics_report.topic_word)
    doc_topic_ = Fitted(lambda posterior: known(posterior.doc_topic, "A loaded model has no training documents."))
    vocabulary_ = Fitted(
        lambda posterior: known(posterior.vocabulary, "The words are unknown: pass feature_names to fit.")
    )
    alpha_ = Fitted(lambda posterior: np.stack([posterior.alpha(chain) for chain in range(posterior.n_chains)]))
    beta_ = Fitted(lambda posterior: posterior.topics[0].beta)
    seed_ = Fitted(lambda posterior: posterior.seed)
    sampler_ = Fitted(lambda posterior: posterior.sampler)
    best_chain_ = Fitted(lambda posterior: posterior.best_chain)
    n_batches_ = Fitted(lambda posterior: posterior.n_batches)
    history_ = FittedFrame(history_frame)
    topic_names_ = Fitted(lambda posterior: dict(posterior.topic_names))
    log_joint_ = Fitted(lambda posterior: posterior.traces.log_joint)
    log_joint_iterations_ = Fitted(lambda posterior: posterior.traces.iterations)
    burn_in_ = Fitted(lambda posterior: posterior.traces.burn_in)
    settled_ = Fitted(lambda posterior: posterior.traces.settled)
    timings_ = Fitted(lambda posterior: posterior.traces.timings)
    _n_features_out = Fitted(lambda posterior: posterior.n_topics)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """The share of each topic in each document, given its words: the mean over the chains that have the topic.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Texts, or word counts.

        Returns
        -------
        ndarray of shape (n_docs, n_topics)
            Rows sum to 1. A document without known words gets the shares of the training corpus.
        """
        posterior, counts = self._read(X)
        return mean_topic_shares(posterior, make_tokens(counts.topics), self._settings())

    typical_documents = in_own_library(documents.typical_documents)
    summary_table = in_own_library(tables.summary_table)
    methods_text = tables.methods_text
    bibtex = tables.bibtex
    card = tables.card
    merge_topics, ban_words = revision.merge_topics, revision.ban_words
    freeze = freeze
    drift = drift

    def top_words(self, feature_names: ArrayLike | None = None, n: int = 10, by: str = "frex") -> list[list[str]]:
        """The n top words of each topic, the best first.

        Parameters
        ----------
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`. By default the names from `fit`, or "x0",
            "x1", ... if there were none.
        n : int, default=10
            The number of words.
        by : {"frex", "probability", "lift"}, default="frex"
            How words are ranked. "probability" is how often the topic uses a word; different topics then show the same
            frequent words. "lift" is how much more often than the corpus does. "frex" is the harmonic mean of a word's
            ranks by how often and by how exclusively the topic uses it (Bischof and Airoldi, 2012). The latter two
            compare words that are frequent in the topic.

        Returns
        -------
        list of lists of str
            Left-overs of markup and of tokenising ("br", "didn") come last. Of several forms of a word ("car", "cars"),
            only the best one is shown. Pairs of words are shown as one after `learn_phrases`.
        """
        posterior = self._fitted()
        return topics_report.top_words(posterior, topics_report.vocabulary_of(posterior, feature_names), n, by)

    def learn_phrases(self, texts: Iterable[str], vectorizer: Any) -> Self:
        """Find pairs of words that often occur together in texts, such as "new york"; tables then show them as one.

        Parameters
        ----------
        texts : iterable of str
            Raw texts, such as those of the fit.
        vectorizer : CountVectorizer
            The fitted vectorizer, whose tokens the pairs are made of.
        """
        posterior = self._fitted()
        words = topics_report.vocabulary_of(posterior, vectorizer.get_feature_names_out())
        self.posterior_ = replace(posterior, phrases=find_phrases(texts, token_stream(vectorizer), words))
        return self

    @in_own_library
    def topic_frame(self, feature_names: ArrayLike | None = None, n: int = 10, min_chains: int = 1) -> Any:
        """A data frame of the topics that at least some chains have, with their shares, chains and n top words."""
        posterior = self._fitted()
        names = topics_report.vocabulary_of(posterior, feature_names)
        return topics_report.topic_frame(posterior, names, n, min_chains)

    def name_topics(self, names: Mapping[int, str]) -> Self:
        """Give names to topics. Model files contain them; "" removes a name."""
        self.posterior_ = self._fitted().named(topics_report.check_names(self._fitted(), names))
        return self

    def topic_name(self, topic: int) -> str:
        """The name of a topic, "" if it has none."""
        return topics_report.topic_name(self._fitted(), topic)

    def match_topics(self) -> np.ndarray:
        """The numbers of all topics in each chain, as in `posterior_.topics`: (n_chains, n_topics)."""
        return self._fitted().order

    def topic_agreement(self) -> np.ndarray:
        """The share of the chains that have each topic, (n_topics,).

        Two topics are alike if their words overlap by 0.6 or more (Bhattacharyya's coefficient). One chain gives NaN.
        """
        return topics_report.topic_agreement(self._fitted())

    def exclusivity(self, n: int = 10) -> np.ndarray:
        """How far the n most probable words of each topic belong to it: its mean part in their use by all topics."""
        return topics_report.exclusivity(self._fitted(), n)

    topic_effects = in_own_library(reading.topic_effects)
    perplexity, coherence, label_topics = reading.perplexity, reading.coherence, reading.label_topics

    def to_pyldavis(self, X: ArrayLike, feature_names: ArrayLike | None = None) -> Any:
        """The topics for pyLDAvis, in their own order: `pyLDAvis.save_html(model.to_pyldavis(X), "page.html")`.

        X are the documents to show. Needs pyLDAvis, which counts topics from 1: its topic 1 is topic 0 here."""
        names = topics_report.vocabulary_of(self._fitted(), feature_names)
        return topics_report.to_pyldavis(self._fitted(), self._counts(X), names, self._settings())

    def to_xarray(self) -> Any:
        """The draws as an xarray Dataset with dimensions chain, draw, column and topic, for ArviZ.

        Topic k is the same in all chains that have it (has_topic). "coef" has the draws of `coef_`, "prediction" those
        that predictions use, and "training" those of the chains. Needs xarray: pip install 'supertopic[diagnostics]'.
        """
        return to_xarray(self._fitted())

    @abstractmethod
    def diagnose(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Diagnosis: ...

    def _repr_html_inner(self) -> str:
        """For notebooks: what scikit-learn shows and, after a fit, the topics."""
        shown = super()._repr_html_inner()
        if not hasattr(self, "posterior_"):
            return shown
        return shown + topics_report.topics_html(self.posterior_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
