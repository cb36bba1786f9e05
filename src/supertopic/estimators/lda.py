"""Plain latent Dirichlet allocation."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from supertopic.corpus.source import Corpus
from supertopic.estimators.base import TopicModel
from supertopic.estimators.docs import documented, documented_fit
from supertopic.inference.fit import Checkpointing, fit
from supertopic.model.posterior import Posterior
from supertopic.model.responses import NoResponse
from supertopic.model.terms import CovariateColumns
from supertopic.report.diagnose import Diagnosis, diagnose_topics
from supertopic.report.topics import complete

NO_COVARIATES = CovariateColumns(np.zeros(0, object), np.zeros(0), np.zeros(0))


@documented
class LDA(TopicModel):
    """Latent Dirichlet allocation by Gibbs sampling: topics from the words alone.

    Parameters
    ----------
    burn_in, n_draws : int, default=100 and 20
        A chain runs burn_in + n_draws iterations; the last n_draws are kept.
    n_chains : int, default=1
        Independent chains; the topics of the one with the highest log joint are shown.
    ...

    Attributes
    ----------
    doc_topic_ : ndarray of shape (n_docs, n_topics)
        The mean zbar of the training documents.
    ...
    """

    def __init__(
        self, n_topics: int = 20, *, alpha: ArrayLike | None = None, beta: float = 0.01, optimize_priors: bool = False,
        seeds: Any = None, prior: Any = None, burn_in: int = 100, n_draws: int = 20, n_chains: int = 1,
        sampler: str = "auto", predict_sweeps: int = 40, n_jobs: int | None = None, device: str = "cpu",
        engine: str = "threads", random_state: Any = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def make_response(self) -> NoResponse:
        return NoResponse()

    @documented_fit
    def fit(
        self, X: ArrayLike, y: Any = None, *, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn topics from word counts.

        Parameters
        ----------
        y : ignored
        ...
        """
        counts, documents = self._documents(X, None)
        self._start_fit()
        vocabulary = self._vocabulary(feature_names, None)
        return self.fit_corpus(documents, counts, None, vocabulary, Checkpointing(checkpoint, checkpoint_every))

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: Any = None, *, discount: float = 1.0, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from one more batch of documents: the model so far is its prior.

        Parameters
        ----------
        y : ignored
        ...
        """
        previous = getattr(self, "posterior_", None)
        counts, documents = self._documents(X, previous)
        checkpointing, vocabulary = (
            Checkpointing(checkpoint, checkpoint_every),
            self._vocabulary(feature_names, previous),
        )
        return self.fit_corpus(documents, counts, None, vocabulary, checkpointing, previous=previous, discount=discount)

    def fit_corpus(
        self, corpus: Corpus, counts: csr_array | None, y: Any, vocabulary: np.ndarray | None,
        checkpointing: Checkpointing, *, previous: Posterior | None = None, discount: float = 1.0,
    ) -> Self:  # fmt: skip
        """Fit documents wherever they are; counts are theirs, if these are in memory."""
        known = self._known(vocabulary, previous, discount, corpus)
        encoded = self.make_response().encode(None, np.ones(len(corpus.doc_start) - 1))
        seed = self._seed()
        self.posterior_ = fit(
            corpus.with_target(encoded.target), encoded, NO_COVARIATES, self._config(self.n_features_in_, seed), seed,
            known, counts, checkpointing,
        )  # fmt: skip
        return self

    def evaluate(self, X: ArrayLike, y: Any = None) -> tuple[np.ndarray, float, str]:
        """The negative log probability of a token in each document, by document completion, and the perplexity."""
        logs, tokens = complete(self._fitted(), self._counts(X), self._settings())
        some = tokens > 0
        return -logs[some] / tokens[some], float(np.exp(-logs.sum() / tokens.sum())), "perplexity"

    def diagnose(self, X: ArrayLike | None = None, y: Any = None) -> Diagnosis:
        """Whether the chains have settled, and how much they differ.

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            Held-out documents: the perplexity of each chain is part of the diagnosis.
        y : ignored

        Returns
        -------
        Diagnosis
            A dict that is shown as a table: "rhat" and "ess", rank-normalised (Vehtari and others, 2021). R-hat needs
            four draws or more. Its `advice` says what to do. A ConvergenceWarning says that the log joint still rises.
        """
        return diagnose_topics(self._fitted(), None if X is None else self._counts(X), self._settings())
