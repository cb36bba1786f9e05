"""Methods of all topic models that relate topics to other data: documents, texts, columns of a table."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from supertopic.estimators.parameters import make_seed
from supertopic.estimators.validation import check_level
from supertopic.inference.predict import Settings
from supertopic.model.posterior import Posterior
from supertopic.report import prevalence, topics
from supertopic.report.effects import TopicEffects

LEAST_DRAWS = 20  # an interval needs some


class Reader(Protocol):
    """A topic model, as these methods see it."""

    def _fitted(self) -> Posterior: ...

    def _counts(self, X: Any) -> csr_array: ...

    def _settings(self) -> Settings: ...


def topic_effects(
    self: Reader, X: ArrayLike, by: Any, *, formula: str | None = None, groups: ArrayLike | None = None,
    level: float = 0.9, n_draws: int = 500, random_state: Any = 0,
) -> TopicEffects:  # fmt: skip
    """The expected share of each topic by group or along a number, with intervals: who talks about what.

    Topic shares are drawn for each document, given its words, and regressed on the columns. Intervals account for the
    uncertainty of the shares and for the sampling error of the regression (the method of composition, as in R's
    `estimateEffect`). The prior of the shares of a document is centred at what the regression predicts, so that shares
    of short documents are not shrunk towards the mean of the corpus. Topics are fixed. It runs on the CPU.

    Parameters
    ----------
    X : sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)
        Texts, or word counts. If the model is supervised and `by` is related to the response, pass documents that the
        model was not fitted to. The topics depend on the responses of the training documents, and differences would be
        too large.
    by : DataFrame, Series, dict of arrays, or array-like of shape (n_docs,) or (n_docs, n_variables)
        One or more columns with a row for each document: pandas, Polars and all that Narwhals supports. Texts,
        categories and booleans are groups, numbers stay numbers, and dates become years. Missing values are an error.
        Without a formula, all columns are used without interactions: groups as differences from the first one, numbers
        as straight lines.
    formula : str, optional
        The right side of a formula, such as `"party * bs(year, df=4)"`: interactions, splines and functions of columns,
        as formulaic reads them. Needs `pip install "supertopic[formula]"`.
    groups : array-like of shape (n_docs,), optional
        The cluster of each document, such as its author, if documents of a cluster are alike. Errors are then robust to
        that (CR2, with Bell and McCaffrey's degrees of freedom); else they are robust to unequal variances (HC2).
    level : float, default=0.9
        The probability inside the intervals.
    n_draws : int, default=500
        Draws of the shares of all documents and of the coefficients, over all chains together.
    random_state : int, RandomState or None, default=0
        The seed; the result does not depend on the number of threads.

    Returns
    -------
    TopicEffects
        `frame()` has expected shares, `differences()` those between groups, `coefficients()` the regression, and
        `plot()` draws them. A document without known words is left out. The interval of a group with one document, or
        one cluster, is NaN.
    """
    posterior = self._fitted()
    check_level(level)
    if not isinstance(n_draws, Integral) or isinstance(n_draws, bool) or n_draws < LEAST_DRAWS:
        raise ValueError(f"n_draws must be a whole number >= {LEAST_DRAWS}, got {n_draws!r}.")
    seed = make_seed(random_state)
    seed = int(np.random.default_rng().integers(2**63)) if seed is None else seed
    return prevalence.topic_effects(
        posterior, self._counts(X), by, self._settings(), formula=formula, groups=groups, level=level,
        n_draws=int(n_draws), seed=seed,
    )  # fmt: skip


def perplexity(self: Reader, X: ArrayLike, random_state: int = 0, chains: Sequence[int] | None = None) -> float:
    """Held-out perplexity by document completion; smaller is better.

    Topics of each document are inferred from a random half of its tokens, and the other half is predicted, with the
    mean over the chains (all, or those given): exp(- mean log p(token)). No token is used for both.
    """
    return topics.perplexity(self._fitted(), self._counts(X), self._settings(), random_state, chains)


def coherence(
    self: Reader, texts: Iterable[Sequence[str]], feature_names: ArrayLike | None = None, n: int = 10,
    measure: str = "c_v",
) -> np.ndarray:  # fmt: skip
    """How often the n most probable words of each topic occur together in reference texts, (n_topics,).

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
    return topics.topic_coherence(posterior, texts, topics.vocabulary_of(posterior, feature_names), n, measure)


def label_topics(
    self: Reader, X: ArrayLike | None = None, texts: Sequence[str] | None = None, *,
    namer: Callable[[list[str], list[str]], str] | None = None, feature_names: ArrayLike | None = None, n: int = 10,
) -> dict[int, str]:  # fmt: skip
    """Suggest a short name for each topic; `name_topics` takes the result.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_docs, n_words), optional
        Texts or word counts of documents, among which each topic's five most typical ones are found.
    texts : sequence of str, optional
        The texts of the same documents.
    namer : callable, optional
        `namer(words, texts_of_typical_documents)` returns a name. The default needs no network.
    feature_names, n : array-like of str and int, optional
        The vocabulary, and the number of top words that a name is made from, as for `top_words`.

    Returns
    -------
    dict of str
        Names by the numbers of topics. Topics that have a name keep it.
    """
    posterior = self._fitted()
    names, counts = topics.vocabulary_of(posterior, feature_names), None if X is None else self._counts(X)
    return topics.label_topics(posterior, names, counts, texts, namer, self._settings(), n)
