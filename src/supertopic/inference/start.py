"""Where chains start: topics from a non-negative factorisation of tf-idf and responses.

A chain that starts from uniform z needs hundreds of iterations to reach the log joint that it has after twenty from
here, and other seeds end with other topics. A factorisation is the same every time. Only documents that chains see
enter it, so that held-out documents stay unseen.
"""

import warnings

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

from supertopic.corpus.source import Corpus, Target
from supertopic.corpus.tokens import count_matrix
from supertopic.model.responses.base import Response

MOST_DOCUMENTS = 4000  # evenly spaced; more of them hardly change the topics
MOST_TOPICS = 200  # beyond, a factorisation takes longer than the sweeps that it saves
LEAST_PER_TOPIC = 5  # documents; fewer are not worth factorising
SMOOTH = 1e-5  # the least probability of a word in a topic, relative to 1
STEPS, TOLERANCE = 100, 1e-3


def label_weight(chain: int, n_chains: int) -> float:
    """How much responses count beside words, of length 1: nothing in the first chain, as much in the last one.

    Chains that differ in this predict better together than chains that start from the same topics.
    """
    return chain / (n_chains - 1) if n_chains > 1 else 0.5


def factorised_topics(
    corpus: Corpus, response: Response, n_words: int, n_topics: int, weight: float
) -> np.ndarray | None:
    """Topics (V, K) to start a chain from; None where the corpus is too small, or K too large."""
    n_docs = len(corpus.doc_start) - 1
    if not 1 < n_topics <= min(MOST_TOPICS, n_docs // LEAST_PER_TOPIC):
        return None
    mask = np.zeros(n_docs, bool)
    mask[np.linspace(0, n_docs - 1, min(n_docs, MOST_DOCUMENTS)).astype(int)] = True
    documents = corpus.select(mask).load()
    counts = count_matrix(documents.tokens, n_words)
    used = np.flatnonzero(np.bincount(counts.indices, minlength=n_words) > 1)  # a word of one document joins nothing
    if len(used) <= n_topics:
        return None
    tfidf = TfidfTransformer(sublinear_tf=True)
    rows = csr_array(tfidf.fit_transform(counts[:, used]))
    beside = weight * response_columns(response, documents.target)
    whole = csr_array(hstack([rows, csr_array(beside)]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is a start
        model = NMF(n_topics, init="nndsvda", max_iter=STEPS, tol=TOLERANCE, random_state=0).fit(whole)
    found = np.zeros((n_topics, n_words))
    found[:, used] = model.components_[:, : len(used)] / tfidf.idf_
    found = found / np.maximum(found.sum(axis=1, keepdims=True), SMOOTH) + SMOOTH
    return np.ascontiguousarray((found / found.sum(axis=1, keepdims=True)).T, dtype=np.float32)


def response_columns(response: Response, target: Target) -> np.ndarray:
    """Known responses as numbers from 0 to 1, rows of length 1 at most: (n_docs, n). Unknown ones are 0."""
    columns = response.start_columns(target)
    return columns / np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1.0)
