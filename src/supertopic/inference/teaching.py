"""Which documents to label next: their labels say much about the weights, and not the same."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from supertopic.inference.predict import NewDocuments, frozen_topics, mean_topic_shares, predict_key
from supertopic.sampling.new_documents import infer_shares

ALIKE = 1e-6  # what is left of a document's information if another one says the same
LEAST = 1e-9  # of the largest information


@dataclass(frozen=True, eq=False)
class MeanDocuments(NewDocuments):
    """New documents with the mean shares of their topics in every draw, so that draws differ by the weights alone.

    A label resolves what is unknown of weights. It does not make the topics of another short text clearer.
    """

    def topic_omega(self, place: int, chain: int, eta: np.ndarray) -> np.ndarray:
        topics = frozen_topics(self.posterior.topics[place], chain, self.settings.device)
        key = predict_key(self.posterior, place, chain)
        shares = infer_shares(self.tokens, topics, self.settings.n_sweeps, key, 1)
        return np.einsum("srk,dk->sdr", eta, shares)[self.pairs.draw]


def information(documents: NewDocuments) -> np.ndarray:
    """The mutual information of each document's response and the weights, in nats, (n_docs,); 0 without known words."""
    response = documents.posterior.response.plain()
    same = MeanDocuments(**{name: getattr(documents, name) for name in documents.__dataclass_fields__})
    found = same.summarise(lambda omegas, scales, _: response.mutual_information(omegas, scales))
    return np.where(np.diff(documents.counts.indptr) > 0, np.maximum(found, 0.0), 0.0)


def resemblance(documents: NewDocuments) -> sp.csr_array:
    """Rows of length 1, (n_docs, n): half of their inner product comes from topics, and half from words."""
    shares = np.sqrt(mean_topic_shares(documents.posterior, documents.tokens, documents.settings))
    words = TfidfTransformer(sublinear_tf=True).fit_transform(documents.words)
    return sp.csr_array(np.sqrt(0.5) * sp.hstack([sp.csr_array(shares), sp.csr_array(words)]))


def choose_different(gain: np.ndarray, rows: sp.csr_array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """At most n documents that say much and not the same, and what each adds to those before it.

    Greedy: documents are a Gaussian process whose variances are the gains (n_docs,) and whose correlations are the
    inner products of rows (n_docs, m); the one with the largest variance given the chosen ones comes next.
    """
    gain = np.maximum(gain, LEAST * max(float(gain.max(initial=0.0)), LEAST))
    left, known = gain.copy(), np.zeros((min(n, len(gain)), len(gain)))
    chosen: list[int] = []
    added: list[float] = []
    for i in range(len(known)):
        left[left <= ALIKE * gain] = 0.0
        best = int(left.argmax())
        if not left[best] > 0:
            break
        chosen.append(best)
        added.append(float(left[best]))
        shared = np.sqrt(gain * gain[best]) * (rows @ rows[[best]].toarray()[0])
        known[i] = (shared - known[:i].T @ known[:i, best]) / np.sqrt(left[best])
        left = left - known[i] ** 2
        left[best] = 0.0
    return np.array(chosen, int), np.array(added)
