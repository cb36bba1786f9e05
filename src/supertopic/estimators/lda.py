"""Plain latent Dirichlet allocation."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from supertopic.estimators.base import TopicModel
from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.report import report
from supertopic.inference.completion import complete
from supertopic.inference.fit import Checkpointing
from supertopic.model.responses import NoResponse
from supertopic.report.diagnose import Diagnosis, diagnose_topics
from supertopic.report.evaluate import Evaluation


@documented
class LDA(TopicModel):
    """Latent Dirichlet allocation by Gibbs sampling: topics from the words alone.

    Parameters
    ----------
    n_chains : int, default=1
        Independent chains. Topics are matched, and a table shows the mean of the chains that have a topic.
    ...

    Attributes
    ----------
    doc_topic_ : ndarray of shape (n_docs, n_topics)
        The mean zbar of the training documents.
    ...

    Examples
    --------
    >>> from supertopic import LDA
    >>> texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 5
    >>> model = LDA(n_topics=2, random_state=0).fit(texts)
    >>> model.transform(texts[:3]).argmax(axis=1).tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """

    def __init__(
        self, n_topics: int = 20, *, alpha: ArrayLike | None = None, beta: float = 0.01, optimize_priors: bool = False,
        seeds: Any = None, prior: Any = None, vectorizer: Any = None, init: str = "nmf", burn_in: int | str = "auto",
        max_seconds: float | None = None, n_draws: int = 20, n_chains: int = 1, sampler: str = "auto",
        predict_sweeps: int = 40, n_jobs: int | None = None, device: str = "cpu", engine: str = "threads",
        random_state: Any = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def make_response(self) -> NoResponse:
        return NoResponse()

    @documented_fit
    def fit(
        self, X: ArrayLike, y: Any = None, *, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn topics from texts or word counts.

        Parameters
        ----------
        y : ignored
        ...
        """
        return self._fit(X, None, feature_names, checkpointing=Checkpointing(checkpoint, checkpoint_every))

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: Any = None, *, discount: float = 1.0, new_words: bool = True,
        feature_names: ArrayLike | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from another batch of documents; the model so far is the prior.

        Parameters
        ----------
        y : ignored
        ...
        """
        checkpointing = Checkpointing(checkpoint, checkpoint_every)
        return self._update(X, None, feature_names, discount, new_words, checkpointing=checkpointing)

    report = report

    def evaluate(self, X: ArrayLike, y: Any = None) -> Evaluation:
        """The negative log probability of a token in each document, by document completion, and the perplexity."""
        logs, tokens = complete(self._fitted(), self._counts(X), self._settings())
        some = tokens > 0
        perplexity = float(np.exp(-logs.sum() / tokens.sum()))
        return Evaluation(-logs[some] / tokens[some], perplexity, "perplexity", {"perplexity": perplexity})

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
            four draws or more. Its `advice` says what to do. If chains had not settled within their burn-in, a
            ConvergenceWarning gives the same advice.
        """
        return diagnose_topics(self._fitted(), None if X is None else self._counts(X), self._settings())
