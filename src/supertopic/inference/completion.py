"""How well topics predict the words of new documents: document completion."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from supertopic.corpus.tokens import Tokens, count_matrix, make_tokens, select
from supertopic.inference.predict import Settings, topic_shares
from supertopic.model.posterior import Posterior
from supertopic.model.reference import Reference, word_surprise

MOST_DOCUMENTS, MOST_SHARES = 1000, 2**20  # largest number of documents of a reference, and of numbers in its shares
NUMBERS = 2**19  # topic shares of tokens that are in memory at a time
LEAST_TIMES = 2  # smallest number of times that a word occurs in the documents of the topics


def complete(
    posterior: Posterior, counts: csr_array, settings: Settings, random_state: int = 0,
    chains: Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The log probability of half of the tokens of each document, given the other half, and how many they are."""
    counts = counts.astype(np.int64)
    seen, predicted = counts.copy(), counts.copy()
    seen.data = np.random.default_rng(random_state).binomial(counts.data, 0.5)
    predicted.data = counts.data - seen.data
    doc, word = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), counts.indices
    lengths, p = np.asarray(seen.sum(axis=1)).reshape(-1, 1), np.zeros(len(word))
    chains = range(posterior.n_chains) if chains is None else chains
    tokens = make_tokens(seen)
    for chain in chains:
        zbar, alpha = topic_shares(posterior, tokens, chain, settings), posterior.alpha(chain)
        theta = (zbar * lengths + alpha) / (lengths + alpha.sum())
        phi, each = posterior.phi(chain), max(NUMBERS // posterior.n_topics, 1)
        for some in (slice(i, i + each) for i in range(0, len(word), each)):
            p[some] += np.einsum("ik,ik->i", theta[doc[some]], phi[word[some]]) / len(chains)
    n_docs, logs = counts.shape[0], np.where(predicted.data > 0, predicted.data * np.log(np.maximum(p, 1e-300)), 0.0)
    return np.bincount(doc, logs, n_docs), np.bincount(doc, predicted.data, n_docs)


def describe_documents(posterior: Posterior, counts: csr_array, shares: np.ndarray, settings: Settings) -> Reference:
    """What is compared of documents: how well their words are predicted, and their topics' shares (n_docs, K)."""
    logs, tokens = complete(posterior, without_rare(posterior, counts), settings)
    return Reference(word_surprise(logs, tokens), shares.astype(np.float32), np.zeros(0))


def without_rare(posterior: Posterior, counts: csr_array) -> csr_array:
    """Counts without words that hardly occur in the topics.

    A held-out document may have contributed words to the vocabulary; a new one has not.
    """
    first = posterior.topics[0]
    times = (first.word_topic[posterior.best_chain].sum(axis=1) / first.n_draws).round()
    X = counts.copy()  # removing zeros changes its arrays in place
    X.data *= times[X.indices] >= LEAST_TIMES
    X.eliminate_zeros()
    return X


def make_reference(
    posterior: Posterior, held_out: Tokens, shares: np.ndarray, settings: Settings, unknown: np.ndarray | None,
    previous: Reference | None,
) -> Reference:  # fmt: skip
    """What later documents are compared with: held-out documents of this fit and of earlier batches."""
    n = min(len(shares), MOST_DOCUMENTS, MOST_SHARES // posterior.n_topics)
    some = np.zeros(len(shares), bool)
    some[np.linspace(0, len(shares) - 1, n).astype(int) if n else []] = True
    counts = count_matrix(select(held_out, some), posterior.n_words)
    found = describe_documents(posterior, counts, shares[some], settings)
    found = found._replace(surprise=found.surprise[~np.isnan(found.surprise)])
    if previous is None:
        return found._replace(unknown=np.zeros(0) if unknown is None else unknown)
    left = min(MOST_DOCUMENTS, MOST_SHARES // posterior.n_topics) - n
    surprise, of_topics = (
        np.concatenate([a[max(0, len(a) - left) :], b]) for a, b in zip(previous[:2], found[:2], strict=True)
    )
    return Reference(surprise, of_topics, previous.unknown)
