"""DiscLDA: topics whose mixture is mapped by the class (Lacoste-Julien, Sha and Jordan, NIPS 2008).

A document of class y draws proportions theta ~ Dir(alpha) over L places, and each word a place l, then a topic from
column l of the class's map T^y (K, L), then the word from that topic: for class y it is LDA with the L distributions
Psi^y = Phi T^y. Columns of T^y start as "a topic of this class" or "a shared topic", and are then learned, so that they
separate the classes, by gradient ascent on

    J(T) = mean_d log p(y_d | w_d),    p(y | w) proportional to pi_y exp(F(w, y)),

where F is LDA's variational bound of log p(w | y), at its best, so that its gradient in T is that of the words' part
alone. The topics Phi maximise the bound of log p(w | y), as in the paper.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from supertopic.baselines.meanfield import digamma
from supertopic.baselines.variational import check_parameters
from supertopic.corpus.tokens import check_counts
from supertopic.kernels.compiled import kernel


@kernel
def bounds(
    indptr: np.ndarray, word: np.ndarray, count: np.ndarray, psi: np.ndarray, alpha: float, n_inner: int, tol: float,
    gamma: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """LDA's bound of every document under psi (V, L), each at its own best; gamma (D, L) is set. Shape (D,)."""
    n_places, values = psi.shape[1], np.zeros(len(indptr) - 1)
    weight, theta, new = np.empty(n_places), np.empty(n_places), np.empty(n_places)
    for d in range(len(indptr) - 1):
        start, stop = indptr[d], indptr[d + 1]
        length = 0.0
        for i in range(start, stop):
            length += count[i]
        gamma[d] = alpha + length / n_places
        whole = digamma(n_places * alpha + length)
        value = 0.0
        for _ in range(n_inner):
            for m in range(n_places):
                theta[m], new[m] = digamma(gamma[d, m]) - whole, alpha
            value = (
                math.lgamma(n_places * alpha) - n_places * math.lgamma(alpha) - math.lgamma(n_places * alpha + length)
            )
            for m in range(n_places):
                value += math.lgamma(gamma[d, m]) + (alpha - gamma[d, m]) * theta[m]
                theta[m] = math.exp(theta[m])
            for i in range(start, stop):
                total = 0.0
                for m in range(n_places):
                    weight[m] = psi[word[i], m] * theta[m]
                    total += weight[m]
                value += count[i] * math.log(total)
                share = count[i] / total
                for m in range(n_places):
                    new[m] += share * weight[m]
            change = 0.0
            for m in range(n_places):
                change += abs(new[m] - gamma[d, m]) / n_places
                gamma[d, m] = new[m]
            if change < tol:
                break
        values[d] = value
    return values


@kernel
def add_ratios(
    indptr: np.ndarray, word: np.ndarray, count: np.ndarray, psi: np.ndarray, gamma: np.ndarray, weight: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Add weight_d n_dw q_dw(l) / psi_wl to out (V, L): the gradient of the bounds in psi."""
    n_places = psi.shape[1]
    theta = np.empty(n_places)
    for d in range(len(indptr) - 1):
        if weight[d] == 0.0:
            continue
        for m in range(n_places):
            theta[m] = math.exp(digamma(gamma[d, m]))  # the same factor for all places cancels
        for i in range(indptr[d], indptr[d + 1]):
            total = 0.0
            for m in range(n_places):
                total += psi[word[i], m] * theta[m]
            for m in range(n_places):
                out[word[i], m] += weight[d] * count[i] * theta[m] / total


class DiscLDA(ClassifierMixin, TransformerMixin, BaseEstimator):
    """DiscLDA (Lacoste-Julien, Sha and Jordan, NIPS 2008): class-dependent maps of topic proportions.

    Parameters
    ----------
    n_topics : int, default=20
        The total number of topics K. Half of them belong to the classes, at least one each; the others are shared, at
        least one.
    alpha : float, default=1.0
        Dirichlet prior of a document's places, the total.
    beta : float, default=0.01
        Smooths the topics.
    max_iter : int, default=50
        Rounds of one update of the topics and one step of the maps; the first fifth leave the maps as they are.
    step : float, default=0.1
        Size of a step of the maps' logits (Adam's).
    inner_iter : int, default=30
        Updates of a document's proportions.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_, topic_word_ (n_topics, n_words), maps_ (n_classes, n_topics, n_places), objective_ (list of J), n_iter_
    """

    def __init__(
        self, n_topics: int = 20, *, alpha: float = 1.0, beta: float = 0.01, max_iter: int = 50, step: float = 0.1,
        inner_iter: int = 30, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_topics = n_topics
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.step = step
        self.inner_iter = inner_iter
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> "DiscLDA":
        """Learn topics and maps from word counts X (n_docs, n_words) and classes y (n_docs,)."""
        check_parameters(self)
        X, y = check_X_y(X, y, accept_sparse="csr", dtype="numeric")
        validate_data(self, X, reset=True, skip_check_array=True)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(f"y has one class only ({self.classes_[0]}); a classifier needs at least two.")
        if self.n_topics <= n_classes:
            raise ValueError(
                f"n_topics must be more than the {n_classes} classes, which have one topic each; got {self.n_topics}."
            )
        counts, rng = check_counts(X), check_random_state(self.random_state)
        self._log_prior = np.log(np.bincount(index) / len(index))
        logits = self._start_maps(n_classes)
        usual = np.asarray(counts.sum(axis=0)).ravel() + 1.0
        start = usual[:, None] * rng.gamma(1.0, 1.0, (counts.shape[1], self.n_topics))
        self._phi = start / start.sum(axis=0)  # (V, K)
        first, second = np.zeros_like(logits), np.zeros_like(logits)
        self.objective_ = []
        for self_iter in range(1, self.max_iter + 1):
            self.maps_ = softmax(logits, axis=1)
            self._learn_topics(counts, index)
            value, gradient = self._objective(counts, index, logits)
            self.objective_.append(value)
            t = self_iter - self.max_iter // 5
            if t > 0:
                first = 0.9 * first + 0.1 * gradient
                second = 0.99 * second + 0.01 * gradient**2
                logits += self.step * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.99**t)) + 1e-8)
            self.n_iter_ = self_iter
        self.maps_ = softmax(logits, axis=1)
        self.topic_word_ = self._phi.T
        return self

    def _start_maps(self, n_classes: int) -> np.ndarray:
        """Logits (C, K, L) of maps in which a place is mostly one of the class's own topics, or a shared one."""
        own = max(1, self.n_topics // (2 * n_classes))
        shared = self.n_topics - own * n_classes
        logits = np.zeros((n_classes, self.n_topics, own + shared))
        strong = math.log(9.0 * self.n_topics)  # nine tenths
        for y in range(n_classes):
            logits[y, y * own + np.arange(own), np.arange(own)] = strong
            logits[y, n_classes * own + np.arange(shared), own + np.arange(shared)] = strong
        return logits

    def _psi(self, y: int) -> np.ndarray:
        return self._phi @ self.maps_[y]

    def _bounds(self, counts: csr_array, y: int, n_inner: int, tol: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
        """F(w, y) of every document, and its gamma."""
        psi, values = self._psi(y), counts.data.astype(float)
        gamma = np.empty((counts.shape[0], psi.shape[1]))
        alpha = self.alpha / psi.shape[1]
        return bounds(counts.indptr, counts.indices, values, psi, alpha, n_inner, tol, gamma), gamma

    def _ratios(self, counts: csr_array, y: int, gamma: np.ndarray, weight: np.ndarray) -> np.ndarray:
        psi = self._psi(y)
        out = np.zeros_like(psi)
        add_ratios(counts.indptr, counts.indices, counts.data.astype(float), psi, gamma, weight, out)
        return out

    def _learn_topics(self, counts: csr_array, index: np.ndarray) -> None:
        """One EM step of Phi on the bound of log p(w | y)."""
        expected = np.zeros_like(self._phi)
        for y in range(len(self.classes_)):
            mine = np.flatnonzero(index == y)
            _, gamma = self._bounds(counts[mine], y, self.inner_iter)
            expected += self._ratios(counts[mine], y, gamma, np.ones(len(mine))) @ self.maps_[y].T
        topics = self._phi * expected + self.beta
        self._phi = topics / topics.sum(axis=0)

    def _objective(
        self, counts: csr_array, index: np.ndarray, logits: np.ndarray, tol: float = 1e-3
    ) -> tuple[float, np.ndarray]:
        """J, the mean of log p(y_d | w_d), and its gradient in the logits of the maps."""
        self.maps_ = softmax(logits, axis=1)
        found = [self._bounds(counts, y, self.inner_iter, tol) for y in range(len(self.classes_))]
        scores = np.column_stack([value for value, _ in found]) + self._log_prior
        p = softmax(scores, axis=1)
        right = np.arange(len(index)), index
        top = scores.max(axis=1)
        value = np.mean(scores[right] - top - np.log(np.exp(scores - top[:, None]).sum(axis=1)))
        gradient = np.empty_like(logits)
        for y, (_, gamma) in enumerate(found):
            G = self._phi.T @ self._ratios(counts, y, gamma, ((index == y) - p[:, y]) / len(index))  # (K, L)
            gradient[y] = self.maps_[y] * (G - (self.maps_[y] * G).sum(axis=0))
        return float(value), gradient

    def _scores(self, X: ArrayLike) -> tuple[np.ndarray, list[np.ndarray]]:
        check_is_fitted(self, "maps_")
        counts = check_counts(validate_data(self, X, reset=False, accept_sparse="csr", dtype="numeric"))
        found = [self._bounds(counts, y, self.inner_iter) for y in range(len(self.classes_))]
        return np.column_stack([value for value, _ in found]) + self._log_prior, [gamma for _, gamma in found]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """p(y | w), from the bounds: as sure as a product over all words makes it."""
        return softmax(self._scores(X)[0], axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class with the largest bound."""
        return self.classes_[self._scores(X)[0].argmax(axis=1)]

    def transform(self, X: ArrayLike) -> np.ndarray:
        """The shares of the topics, averaged over the classes as probable as they are, (n_docs, n_topics)."""
        scores, gammas = self._scores(X)
        p = softmax(scores, axis=1)
        parts = [p[:, [y]] * (g / g.sum(axis=1, keepdims=True)) @ self.maps_[y].T for y, g in enumerate(gammas)]
        return np.sum(parts, axis=0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
