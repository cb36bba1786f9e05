"""What all supervised models have in common: documents with responses in, predictions and explanations out."""

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils.validation import _check_sample_weight

from supertopic.corpus.source import Corpus
from supertopic.estimators.base import TopicModel
from supertopic.estimators.docs import documented_fit
from supertopic.estimators.validation import MOST, check_covariates, check_level, log_exposure
from supertopic.inference.chains import Config
from supertopic.inference.fit import Checkpointing, fit
from supertopic.inference.predict import NewDocuments
from supertopic.inference.weights import Learner
from supertopic.model.posterior import Posterior
from supertopic.model.responses.base import draw_interval
from supertopic.model.terms import CovariateColumns
from supertopic.report import summary
from supertopic.report.diagnose import Diagnosis, diagnose_response
from supertopic.report.explain import Explanation, explain_document
from supertopic.report.topics import vocabulary_of
from supertopic.warn import warn

if TYPE_CHECKING:
    from supertopic.report.page import Page

MOST_HELD_OUT = 0.5  # of the documents


class Supervised(TopicModel):
    """A topic model with a response."""

    c: float
    nu2: float
    calibrate: bool
    words: bool
    held_out: Any
    _numbers = (*TopicModel._numbers, "nu2", "c")
    _learners: Sequence[Learner] = ()  # of further terms of omega

    def check_parameters(self) -> None:
        super().check_parameters()
        share = self.held_out
        number = isinstance(share, Real) and not isinstance(share, bool) and 0 <= float(share) <= MOST_HELD_OUT
        if not number and not (isinstance(share, str) and share == "auto"):
            raise ValueError(f"held_out must be 'auto' or a share from 0 to {MOST_HELD_OUT}, got {self.held_out!r}.")

    def _config(self, n_words: int, seed: int | None) -> Config:
        config = super()._config(n_words, seed)
        return replace(
            config, priors=config.priors._replace(nu2=float(self.nu2)), calibrate=bool(self.calibrate),
            words=bool(self.words), held_out=self.held_out,
        )  # fmt: skip

    @documented_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        covariates: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn topics and weights from word counts and the response of each document.

        Parameters
        ----------
        ...
        """
        return self._fit(X, y, sample_weight, covariates, feature_names, Checkpointing(checkpoint, checkpoint_every))

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        discount: float = 1.0, covariates: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from one more batch of documents: the model so far is its prior.

        The first call is a `fit`. The cost of another is that of its own documents; `doc_topic_`, `log_joint_` and
        whatever else is about training documents are those of the last batch. If it fails or is stopped, the model is
        unchanged.

        Parameters
        ----------
        y : array-like, optional
            As in `fit`. From the second call on it may be left out, or unknown throughout.
        ...
        """
        checkpointing = Checkpointing(checkpoint, checkpoint_every)
        return self._update(X, y, sample_weight, covariates, feature_names, checkpointing, discount)

    def _update(
        self, X: Any, y: Any, sample_weight: Any, covariates: Any, feature_names: Any, checkpointing: Checkpointing,
        discount: float, **more: Any,
    ) -> Self:  # fmt: skip
        previous = getattr(self, "posterior_", None)
        more |= {"previous": previous, "discount": discount}
        return self._fit(X, y, sample_weight, covariates, feature_names, checkpointing, **more)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, covariates: Any, feature_names: Any, checkpointing: Checkpointing,
        previous: Posterior | None = None, **more: Any,
    ) -> Self:  # fmt: skip
        counts, documents = self._documents(X, previous)
        if previous is None:
            self._start_fit()
        if y is None and previous is None and more.get("classes") is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        vocabulary = self._vocabulary(feature_names, previous)
        more |= {"sample_weight": sample_weight, "covariates": covariates, "previous": previous}
        return self.fit_corpus(documents, counts, y, vocabulary, checkpointing, **more)

    def fit_corpus(
        self, corpus: Corpus, counts: csr_array | None, y: Any, vocabulary: np.ndarray | None,
        checkpointing: Checkpointing, *, sample_weight: Any = None, covariates: Any = None, exposure: Any = None,
        classes: Any = None, previous: Posterior | None = None, discount: float = 1.0,
    ) -> Self:  # fmt: skip
        """Fit documents wherever they are; counts are theirs, if these are in memory."""
        known = self._known(vocabulary, previous, discount, corpus)
        lengths = np.diff(corpus.doc_start)
        weight = _check_sample_weight(sample_weight, lengths[:, None], dtype=np.float64, ensure_non_negative=True)
        if weight.max() * self.c > MOST:
            raise ValueError(f"sample_weight times c must be at most {MOST:g}, got {weight.max() * self.c:g}.")
        response, sums = self.make_response(), None
        if previous is None:
            columns, Z = describe_covariates(covariates, len(lengths))
        else:
            term = previous.covariates
            columns = no_covariates() if term is None else term.columns
            Z = new_covariates(columns, covariates, len(lengths))
            response, sums = response.like(previous.response), known.discount * previous.carryover.sums
        logs = None if exposure is None else log_exposure(exposure, len(lengths))
        encoded = response.encode(y, weight, logs, classes, sums)
        target = encoded.target._replace(covariates=columns.standard(Z))
        seed = self._seed()
        self.posterior_ = fit(
            corpus.with_target(target), encoded, columns, self._config(self.n_features_in_, seed), seed, known, counts,
            checkpointing, self._learners,
        )  # fmt: skip
        return self

    # predictions

    def _new(self, X: Any, covariates: Any = None, exposure: Any = None) -> NewDocuments:
        """New documents, checked."""
        posterior, counts = self._fitted(), self._counts(X)
        n_docs, term = counts.shape[0], posterior.covariates
        Z = new_covariates(no_covariates() if term is None else term.columns, covariates, n_docs)
        return NewDocuments(posterior, counts, Z, log_exposure(exposure, n_docs), self._settings())

    @abstractmethod
    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The interval of each prediction: lower and upper ends."""

    def explain(
        self, X: ArrayLike, feature_names: ArrayLike | None = None, *, covariates: ArrayLike | None = None,
        exposure: ArrayLike | None = None, level: float = 0.9,
    ) -> Explanation:  # fmt: skip
        """Why a document gets its prediction: what each of its words adds to omega.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (1, n_words)
            The word counts of one document.
        feature_names : array-like of str, optional
            The vocabulary, as for `top_words`.
        covariates, exposure : array-like, optional
            As for `predict`.
        level : float, default=0.9
            The posterior probability inside the intervals.

        Returns
        -------
        Explanation
            Its parts add up to omega, over whose draws the prediction is a mean; `frame()` has them as a table.
        """
        document = self._new(X, covariates, exposure)
        if document.counts.shape[0] != 1:
            raise ValueError(f"explain takes one document, got {document.counts.shape[0]}; give X[i : i + 1].")
        check_level(level)
        return explain_document(document, vocabulary_of(document.posterior, feature_names), level)

    def unsure(self, X: ArrayLike, n: int = 10, **beside: Any) -> np.ndarray:
        """The documents whose predictions are least sure, row numbers of shape (n,): the best ones to label next.

        Classes: the largest probability is smallest; labels: the mean distance from a half; numbers: the widest 90 %
        interval. `beside` are covariates and exposure, as for `predict`.
        """
        return np.argsort(-self._new(X, **beside).doubt(), kind="stable")[:n]

    def surprising(self, X: ArrayLike, y: ArrayLike, n: int = 10, **beside: Any) -> np.ndarray:
        """The documents whose responses are least expected: candidates for wrong labels, or for a closer look.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts. Responses of training documents are less surprising: the model has seen them.
        y : array-like
            Their responses; unknown ones are never surprising.
        n : int, default=10
            The number of documents.
        beside : optional
            `covariates` and `exposure`, as for `predict`.

        Returns
        -------
        ndarray of shape (n,)
            Row numbers, the most surprising first: by the probability of the true response, or by the distance of a
            number from its prediction in standard deviations.
        """
        documents = self._new(X, **beside)
        truth = documents.posterior.response.truth(y, documents.counts.shape[0])
        return np.argsort(-documents.surprise(truth), kind="stable")[:n]

    def evaluate(self, X: ArrayLike, y: ArrayLike | None = None, **beside: Any) -> tuple[np.ndarray, float, str]:
        """The loss of each document, a score of all of them, and the name of the score.

        The loss of classes and labels is -log p, of the hinge the share of errors, of ratings the squared error in
        units of the variance, and of counts the negative log density; NaN where y is unknown.
        """
        documents = self._new(X, **beside)
        response = documents.posterior.response
        truth = response.truth(y, documents.counts.shape[0])
        known = ~np.isnan(truth).any(axis=1)
        score = response.score(truth[known], documents.expected()[known])
        return documents.loss(truth), score, response.score_name

    def diagnose(self, X: ArrayLike | None = None, y: ArrayLike | None = None, **beside: Any) -> Diagnosis:
        """Whether the chains have settled, and how much they differ.

        Parameters
        ----------
        X, y : held-out documents and responses, optional
            With X also omega, with both also the loss and, for each chain, the score.
        **beside
            exposure or covariates of these documents.

        Returns
        -------
        Diagnosis
            A dict that is shown as a table. For each quantity "rhat" and "ess", rank-normalised (Vehtari and others,
            2021); of omega the median over the documents. "score" holds a number for each chain instead, and "held-out
            documents" losses (see `held_out_`). R-hat needs four draws or more; the halves of one chain stand for two.
            Its `advice` says what to do.

        Chains of a topic model sit in different modes, so that R-hat between them is hardly ever 1. That does no harm:
        predictions average over them. A ConvergenceWarning says if something should be done: if the log joint still
        rises, or if the chains' scores differ by more than 0.05.
        """
        if X is None:
            return diagnose_response(self._fitted())
        documents = self._new(X, **beside)
        truth = None if y is None else documents.posterior.response.truth(y, documents.counts.shape[0])
        return diagnose_response(documents.posterior, documents, truth)

    def report(
        self, texts: Sequence[str], y: ArrayLike | None = None, path: str | os.PathLike[str] | None = None, *,
        vectorizer: Any = None, title: str = "", unseen: bool = False, rival: dict[str, Any] | None = None,
        **beside: Any,
    ) -> "Page":  # fmt: skip
        """One page, in one file, that shows the fit, its topics, how well it predicts, and why.

        Parameters
        ----------
        texts : sequence of str
            Documents to evaluate and to explain, of which some are shown.
        y : array-like, optional
            Their responses; without them nothing is evaluated.
        path : path, optional
            Where the page is written.
        vectorizer : CountVectorizer, optional
            The fitted vectorizer; `vectorizer_` by default, which `fit_files` sets.
        title : str
            The heading.
        unseen : bool
            Whether these documents are new to the model, so that they show how well it predicts.
        rival : dict, optional
            Figures of another model on the same documents: {"name": ..., "accuracy": ..., "log_loss": ...}.
        **beside
            covariates and exposure of the documents.

        Returns
        -------
        Page
            The page, a string of HTML; a notebook shows it as a link.
        """
        from supertopic.report.page import Page, make_page

        posterior, vectorizer = self._fitted(), vectorizer or getattr(self, "vectorizer_", None)
        if vectorizer is None:
            raise ValueError("report shows texts: vectorizer is the fitted one that made the counts of the fit.")
        texts = [str(text) for text in texts]
        documents, names = self._new(vectorizer.transform(texts), **beside), vectorizer.get_feature_names_out()
        title = title or f"{type(self).__name__} on {len(texts):,} documents"
        truth = None if y is None else posterior.response.truth(y, len(texts))
        kind, names = type(self).__name__, vocabulary_of(posterior, names)
        page = make_page(documents, texts, truth, names, title, kind, unseen, rival)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return Page(page, path)

    # weights

    @property
    def coef_draws_(self) -> np.ndarray:
        """The draws behind `coef_`, (chain, n, column, topic), from held-out documents."""
        posterior = self._fitted()
        return posterior.response.in_units(posterior.reported)

    @property
    def coef_(self) -> np.ndarray:
        """The posterior mean of the weights in the best chain, (column, topic)."""
        return summary.coef_draws(self._fitted()).mean(axis=0)

    @property
    def prediction_draws_(self) -> np.ndarray:
        """The draws of eta that predictions use, (chain, draw, column, topic): see `calibrate`."""
        posterior = self._fitted()
        return posterior.response.in_units(posterior.prediction)

    @property
    def training_draws_(self) -> np.ndarray:
        """The draws of eta in the chains that learned the topics, (chain, draw, column, topic): too sure."""
        posterior = self._fitted()
        return posterior.response.in_units(posterior.training)

    @property
    def word_coef_(self) -> np.ndarray:
        """The mean direct weights of single words, (column, word), times a word's tf-idf; see `words`."""
        posterior = self._fitted()
        if posterior.words is None:
            raise AttributeError("The model has no word_coef_: it was fitted with words=False, or without calibration.")
        return posterior.response.in_units(posterior.words.coef(posterior.n_words))

    @property
    def intercept_(self) -> np.ndarray:
        """omega of a document of which nothing is known, which stands for the base rate, (n_columns,)."""
        posterior = self._fitted()
        return posterior.response.offset_in_units(posterior.intercept.base)

    @property
    def prediction_intercept_(self) -> np.ndarray:
        """The constant of omega in predictions, with which these are right on average, (n_columns,)."""
        posterior = self._fitted()
        return posterior.response.offset_in_units(posterior.intercept.level)

    @property
    def empty_intercept_(self) -> np.ndarray:
        """omega of a document without known words, (n_columns,)."""
        posterior = self._fitted()
        return posterior.response.offset_in_units(posterior.intercept.empty)

    @property
    def empty_documents_(self) -> np.ndarray:
        """The number of documents that `empty_intercept_` rests on, (n_columns,)."""
        return self._fitted().intercept.empty_documents

    @property
    def held_out_(self) -> dict[str, Any]:
        """Losses on held-out documents, and the shrinkage that follows from them."""
        return self._fitted().held_out

    @property
    def covariate_names_(self) -> np.ndarray:
        """The names of the covariates, (n_covariates,)."""
        term = self._fitted().covariates
        return np.zeros(0, object) if term is None else term.columns.names

    @property
    def covariate_coef_draws_(self) -> np.ndarray:
        """The draws of the covariates' weights, (chain, n, column, covariate), for a unit of each covariate."""
        return summary.covariate_draws(self._fitted())

    @property
    def covariate_coef_(self) -> np.ndarray:
        """The posterior mean of the covariates' weights over all chains, (column, covariate)."""
        return self.covariate_coef_draws_.mean(axis=(0, 1))

    def coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the weights in the best chain.

        Parameters
        ----------
        level : float, default=0.9
            The posterior probability inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_columns, n_topics)
        """
        return draw_interval(summary.coef_draws(self._fitted()), level)

    def covariate_coef_interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central posterior interval of the covariates' weights over all chains, each (column, covariate)."""
        draws = self.covariate_coef_draws_
        return draw_interval(draws.reshape(-1, *draws.shape[2:]), level)

    def coefficient_frame(self, level: float = 0.9) -> Any:
        """A pandas frame of the reported weights: column, topic, name, mean, sd, interval, P(positive)."""
        return summary.coefficient_frame(self._fitted(), level)

    def effect_frame(self, points: float = 0.1, level: float = 0.9) -> Any:
        """A pandas frame of what more of a topic does to the probability, the rating or the count.

        A document with the usual shares of all topics gets `points` (0.1: ten percentage points) more of one topic, and
        less of all topics in proportion. Columns: topic, name, column, before, which is the base rate, after, and
        their difference, `change`, with its interval; from held-out documents, as `coef_` is.
        """
        return summary.effect_frame(self._fitted(), points, level)

    def missed_words(self, feature_names: ArrayLike | None = None, n: int = 10) -> list[dict[str, Any]]:
        """Words that add to what topics predict: for each column the n largest direct weights, towards it and away."""
        posterior = self._fitted()
        if posterior.words is None:
            raise AttributeError("The model has no weights of words: it was fitted with words=False.")
        return summary.missed_words(posterior, vocabulary_of(posterior, feature_names), n)


def no_covariates() -> CovariateColumns:
    return CovariateColumns(np.zeros(0, object), np.zeros(0), np.zeros(0))


def describe_covariates(covariates: Any, n_docs: int) -> tuple[CovariateColumns, np.ndarray]:
    """How covariates are standardised, and their values, (n_docs, P)."""
    if covariates is None:
        return no_covariates(), np.zeros((n_docs, 0))
    Z = check_covariates(covariates, n_docs)
    names = getattr(covariates, "columns", range(Z.shape[1]))
    sd = Z.std(axis=0)
    columns = CovariateColumns(
        np.array([str(name) for name in names], dtype=object), Z.mean(axis=0), np.where(sd > 0, sd, 1.0)
    )
    for name in columns.names[sd == 0]:
        warn(
            f"The covariate {name!r} is the same for all documents: its weight stays at its prior. There is an "
            "intercept already; leave the covariate out."
        )
    return columns, Z


def new_covariates(columns: CovariateColumns, covariates: Any, n_docs: int) -> np.ndarray:
    """Covariates of documents for a fitted model, (n_docs, P)."""
    n = len(columns.names)
    if covariates is None and n == 0:
        return np.zeros((n_docs, 0))
    if covariates is None:
        raise ValueError(f"The model was fitted with {n} covariates; pass covariates= here, too.")
    Z = check_covariates(covariates, n_docs)
    if Z.shape[1] != n:
        raise ValueError(f"covariates has {Z.shape[1]} columns, but the model was fitted with {n}.")
    return Z
