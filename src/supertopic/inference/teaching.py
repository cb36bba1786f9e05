"""Which documents to label next: unsure ones that are like many other unsure ones, and not like each other."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from supertopic.inference.predict import NewDocuments, frozen_topics, predict_key
from supertopic.sampling.new_documents import infer_shares

MOST_TARGETS = 1000  # largest number of documents whose uncertainty is compared
ALIKE = 1e-6  # part of its uncertainty that a document keeps if an equal document gets a label
LEAST = 1e-9  # smallest uncertainty of a document, as a part of the largest


@dataclass(frozen=True, eq=False)
class MeanDocuments(NewDocuments):
    """New documents with the mean shares of their topics in every draw, so that draws differ by the weights alone.

    Labels make weights clearer. They do not make clearer which topics a short text has.
    """

    def topic_omega(self, place: int, chain: int, eta: np.ndarray) -> np.ndarray:
        topics = frozen_topics(self.posterior.topics[place], chain, self.settings.device)
        key = predict_key(self.posterior, place, chain)
        shares = infer_shares(self.tokens, topics, self.settings.n_sweeps, key, 1)
        return np.einsum("srk,dk->sdr", eta, shares)[self.pairs.draw]


def uncertainties(documents: NewDocuments) -> np.ndarray:
    """How unsure each prediction is, (n_docs,), 0 without known words: not for a document's own unclear topics."""
    response = documents.posterior.response.plain()
    same = MeanDocuments(**{name: getattr(documents, name) for name in documents.__dataclass_fields__})
    found = same.summarise(lambda omegas, scales, _: response.uncertainty(omegas, scales))
    return np.where(np.diff(documents.counts.indptr) > 0, np.maximum(found, 0.0), 0.0)


def word_rows(documents: NewDocuments) -> sp.csr_array:
    """tf-idf rows of length 1, (n_docs, W)."""
    counts = documents.words
    return sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts) if counts.shape[0] else counts)


def choose_different(unsure: np.ndarray, rows: sp.csr_array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """At most n documents whose labels reduce the uncertainty of all most, and the part of it that each removes.

    A label reduces the uncertainty of another document by the square of the inner product of their rows (n_docs, m), as
    in a Gaussian process with these correlations. The best document is unsure itself, and many unsure ones are like it.
    Documents are chosen one after the other, each for what it removes beside those before it.
    """
    left = np.maximum(unsure, LEAST * max(float(unsure.max(initial=0.0)), LEAST))
    least, n_docs = ALIKE * left, len(left)
    targets = np.linspace(0, n_docs - 1, min(n_docs, MOST_TARGETS)).astype(int)
    alike = np.minimum((rows @ rows[targets].T).toarray() ** 2, 1.0)  # (n_docs, n_targets)
    about = left[targets]
    whole, reach = float(about.sum()), alike @ about
    chosen: list[int] = []
    says: list[float] = []
    while len(chosen) < min(n, n_docs):
        left[left <= least] = 0.0
        best = int((left * reach).argmax())
        if not left[best] > 0:
            break
        chosen.append(best)
        says.append(float(left[best] * reach[best] / whole))
        gone = about * alike[best]
        about, reach = about - gone, np.maximum(reach - alike @ gone, 0.0)
        left = left * (1.0 - np.minimum((rows @ rows[[best]].toarray()[0]) ** 2, 1.0))
        left[best] = 0.0
    return np.array(chosen, int), np.array(says)
