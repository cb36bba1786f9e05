"""vSLDA and vMedLDA: the variational systems that the paper compares with, by mean field and EM.

Both maximise a bound of log p(words, classes). The part of the words is LDA's,

    E log p(w, z, theta) - E log q(z, theta),    q(theta_d) = Dir(gamma_d),  q(z_dn) = phi_dn,

with topics that maximise it (plus beta log topics, which smooths them). The part of the classes differs, and so does
the term that it adds to log phi. Every update maximises the objective in one block of variables or improves it, so
that it never falls.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.svm import SVC
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from supertopic.baselines.meanfield import add_words, infer, softmax_objective
from supertopic.corpus.tokens import Tokens, check_counts, make_tokens

NO_CLASSES = np.zeros((0, 0))


class Variational(ClassifierMixin, TransformerMixin, BaseEstimator):
    """What the two have in common: EM, and the topic shares of new documents."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn topics and weights from word counts X (n_docs, n_words) and classes y (n_docs,)."""
        check_parameters(self)
        X, y = check_X_y(X, y, accept_sparse="csr", dtype="numeric")
        validate_data(self, X, reset=True, skip_check_array=True)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only ({self.classes_[0]}); a classifier needs at least two.")
        counts = check_counts(X)
        tokens, rng = make_tokens(counts), check_random_state(self.random_state)
        n_docs, n_words = counts.shape
        usual = np.asarray(counts.sum(axis=0)).ravel() + 1.0
        start = usual[:, None] * rng.gamma(1.0, 1.0, (n_words, self.n_topics))
        log_topics = np.log(start / start.sum(axis=0))
        phi = np.full((len(tokens.word), self.n_topics), 1.0 / self.n_topics)
        gamma, bounds = np.empty((n_docs, self.n_topics)), np.empty(n_docs)
        self._start(index, n_docs)
        self.bound_ = []
        for iteration in range(1, self.max_iter + 1):
            self._e_step(tokens, log_topics, index, phi, gamma, bounds)
            topics = np.zeros((n_words, self.n_topics))
            add_words(tokens.word, phi, topics)
            topics += self.beta
            log_topics = np.log(topics / topics.sum(axis=0))
            self._m_step(tokens, index, phi, (gamma - self.alpha / self.n_topics))
            self.bound_.append(self._objective(tokens, log_topics, index, phi, gamma))
            self.n_iter_ = iteration
            if iteration > 1 and self.bound_[-1] - self.bound_[-2] < self.tol * abs(self.bound_[-2]):
                break
        self._log_topics = log_topics
        self.topic_word_ = np.exp(log_topics.T)
        return self

    def _objective(
        self, tokens: Tokens, log_topics: np.ndarray, index: np.ndarray, phi: np.ndarray, gamma: np.ndarray
    ) -> float:
        """What EM maximises, after a whole iteration: gamma is the best one for phi, so one more E-step of 0 sweeps."""
        bounds = np.empty(len(gamma))
        infer(tokens.word, tokens.doc_start, log_topics, self.alpha / self.n_topics, NO_CLASSES, NO_CLASSES, index, 0.0,
              0, phi, gamma, bounds)  # fmt: skip
        return float(bounds.sum() + self.beta * log_topics.sum() + self._class_part(tokens, index, phi, gamma))

    def transform(self, X: ArrayLike) -> np.ndarray:
        """The topic shares of documents from their words alone, (n_docs, n_topics)."""
        check_is_fitted(self, "_log_topics")
        counts = check_counts(validate_data(self, X, reset=False, accept_sparse="csr", dtype="numeric"))
        tokens = make_tokens(counts)
        phi = np.full((len(tokens.word), self._log_topics.shape[1]), 1.0 / self._log_topics.shape[1])
        gamma, bounds = np.empty((counts.shape[0], phi.shape[1])), np.empty(counts.shape[0])
        alpha = self.alpha / phi.shape[1]
        y = np.zeros(counts.shape[0], np.int64)
        infer(tokens.word, tokens.doc_start, self._log_topics, alpha, NO_CLASSES, NO_CLASSES, y, 0.0, 50, phi, gamma,
              bounds)  # fmt: skip
        return shares(gamma - alpha)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def shares(counts: np.ndarray) -> np.ndarray:
    """Expected topic counts as shares; equal ones where there are no words."""
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1e-300), 1.0 / counts.shape[1])


def check_parameters(model: Any) -> None:
    for name, least in (("n_topics", 1), ("max_iter", 1)):
        value = getattr(model, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
    for name in ("c", "alpha", "beta", "nu2", "margin", "tol", "step"):
        value = getattr(model, name, 1.0)
        if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0 < value < 1e10:
            raise ValueError(f"{name} must be a number above 0 and below 1e10, got {value!r}.")


class VariationalSLDA(Variational):
    """vSLDA: supervised LDA with a softmax response, by mean field (Wang, Blei and Fei-Fei, CVPR 2009).

    The bound of the response is c (eta_y . E zbar - log sum_r E exp(eta_r . zbar)), where the last expectation is the
    product over tokens of phi_n . exp(eta_r / N). Less |eta|**2 / (2 nu2), as the paper's prior. c > 1 is the weight of
    the response that the ACL 2013 paper's footnote gives it; the authors' model has c = 1.

    Parameters
    ----------
    n_topics : int, default=20
    c : float, default=1.0
        Weight of the response.
    alpha, beta : float, default=1.0 and 0.01
        alpha / n_topics is the Dirichlet prior of a document's topics; beta smooths the topics.
    nu2 : float, default=1.0
        Prior variance of eta.
    max_iter : int, default=50
        EM iterations, fewer if the objective grows by less than `tol` of itself.
    tol : float, default=1e-5
    inner_iter : int, default=20
        Sweeps over a document in an E-step, fewer if it settles.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_, coef_ (n_classes, n_topics), topic_word_ (n_topics, n_words), bound_ (list), n_iter_
    """

    def __init__(
        self, n_topics: int = 20, *, c: float = 1.0, alpha: float = 1.0, beta: float = 0.01, nu2: float = 1.0,
        max_iter: int = 50, tol: float = 1e-5, inner_iter: int = 20, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_topics = n_topics
        self.c = c
        self.alpha = alpha
        self.beta = beta
        self.nu2 = nu2
        self.max_iter = max_iter
        self.tol = tol
        self.inner_iter = inner_iter
        self.random_state = random_state

    def _start(self, index: np.ndarray, n_docs: int) -> None:
        self.coef_ = np.zeros((len(self.classes_), self.n_topics))

    def _e_step(
        self, tokens: Tokens, log_topics: np.ndarray, index: np.ndarray, phi: np.ndarray, gamma: np.ndarray,
        bounds: np.ndarray,
    ) -> None:  # fmt: skip
        infer(tokens.word, tokens.doc_start, log_topics, self.alpha / self.n_topics, NO_CLASSES, self.coef_, index,
              float(self.c), self.inner_iter, phi, gamma, bounds)  # fmt: skip

    def _m_step(self, tokens: Tokens, index: np.ndarray, phi: np.ndarray, counts: np.ndarray) -> None:
        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            eta, gradient = flat.reshape(self.coef_.shape), np.empty_like(self.coef_)
            value = self.c * softmax_objective(tokens.doc_start, phi, index, eta, gradient)
            return 0.5 * (flat @ flat) / self.nu2 - value, flat / self.nu2 - self.c * gradient.ravel()

        found = minimize(loss, self.coef_.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 20})
        self.coef_ = found.x.reshape(self.coef_.shape)

    def _class_part(self, tokens: Tokens, index: np.ndarray, phi: np.ndarray, gamma: np.ndarray) -> float:
        value = softmax_objective(tokens.doc_start, phi, index, self.coef_, np.empty_like(self.coef_))
        return self.c * value - 0.5 * np.sum(self.coef_**2) / self.nu2

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """softmax(eta zbar)."""
        return softmax(self.transform(X) @ self.coef_.T, axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class with the largest eta zbar."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class VariationalMedLDA(Variational):
    """vMedLDA: max-margin supervised LDA by mean field (Zhu, Ahmed and Xing, JMLR 2012).

    LDA's bound less |eta|**2 / 2 + c sum max(0, margin - y eta . E zbar), y = -1 or 1, for each class against the rest.
    eta is a support vector machine on the expected shares (scikit-learn's SVC), whose dual variables mu pull a
    document's topics by y mu eta. That step follows the Lagrangian and may overshoot the hinge: a document for which it
    does not pay keeps its topics.

    Parameters
    ----------
    n_topics : int, default=20
    c : float, default=16.0
        Price of a violated margin.
    margin : float, default=8.0
    alpha, beta, max_iter, tol, inner_iter, random_state :
        As in VariationalSLDA.

    Attributes
    ----------
    classes_, coef_ (n_columns, n_topics), intercept_, topic_word_ (n_topics, n_words), bound_ (list), n_iter_
    """

    def __init__(
        self, n_topics: int = 20, *, c: float = 16.0, margin: float = 8.0, alpha: float = 1.0, beta: float = 0.01,
        max_iter: int = 50, tol: float = 1e-5, inner_iter: int = 20, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_topics = n_topics
        self.c = c
        self.margin = margin
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.tol = tol
        self.inner_iter = inner_iter
        self.random_state = random_state

    def _start(self, index: np.ndarray, n_docs: int) -> None:
        n_columns = 1 if len(self.classes_) == 2 else len(self.classes_)
        positive = [1] if n_columns == 1 else range(n_columns)
        self._sign = np.where(index[:, None] == np.array(positive), 1.0, -1.0)  # (n_docs, R)
        self._dual = np.zeros((n_docs, n_columns))
        self.coef_, self.intercept_ = np.zeros((n_columns, self.n_topics)), np.zeros(n_columns)

    def _losses(self, zbar: np.ndarray) -> np.ndarray:
        scores = zbar @ self.coef_.T + self.intercept_
        return self.c * np.maximum(0.0, self.margin - self._sign * scores).sum(axis=1)

    def _e_step(
        self, tokens: Tokens, log_topics: np.ndarray, index: np.ndarray, phi: np.ndarray, gamma: np.ndarray,
        bounds: np.ndarray,
    ) -> None:  # fmt: skip
        alpha, pull = self.alpha / self.n_topics, (self._sign * self._dual) @ self.coef_
        rest = NO_CLASSES, index, 0.0
        old_phi, old_gamma, old = phi.copy(), np.empty_like(gamma), np.empty_like(bounds)
        infer(tokens.word, tokens.doc_start, log_topics, alpha, NO_CLASSES, *rest, 0, old_phi, old_gamma, old)
        infer(tokens.word, tokens.doc_start, log_topics, alpha, pull, *rest, self.inner_iter, phi, gamma, bounds)
        worse = bounds - self._losses(shares(gamma - alpha)) < old - self._losses(shares(old_gamma - alpha))
        gamma[worse] = old_gamma[worse]
        for d in np.flatnonzero(worse):
            own = slice(tokens.doc_start[d], tokens.doc_start[d + 1])
            phi[own] = old_phi[own]

    def _m_step(self, tokens: Tokens, index: np.ndarray, phi: np.ndarray, counts: np.ndarray) -> None:
        zbar = shares(counts)
        for r, sign in enumerate(self._sign.T):
            # with margin l, |eta|**2 / 2 + c sum max(0, l - ...) is l**2 times the usual problem for eta / l with c / l
            svm = SVC(kernel="linear", C=self.c / self.margin, max_iter=100_000).fit(zbar, sign)
            coef, intercept = self.margin * svm.coef_[0], self.margin * svm.intercept_[0]
            if self._price(zbar, r, coef, intercept) <= self._price(zbar, r, self.coef_[r], self.intercept_[r]):
                self.coef_[r], self.intercept_[r] = coef, intercept
            self._dual[:, r] = 0.0
            self._dual[svm.support_, r] = self.margin * np.abs(svm.dual_coef_[0])

    def _price(self, zbar: np.ndarray, r: int, coef: np.ndarray, intercept: float) -> float:
        hinge = np.maximum(0.0, self.margin - self._sign[:, r] * (zbar @ coef + intercept))
        return 0.5 * float(coef @ coef) + self.c * float(hinge.sum())

    def _class_part(self, tokens: Tokens, index: np.ndarray, phi: np.ndarray, gamma: np.ndarray) -> float:
        zbar = shares(gamma - self.alpha / self.n_topics)
        return -sum(self._price(zbar, r, self.coef_[r], self.intercept_[r]) for r in range(len(self.coef_)))

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """eta zbar: (n_docs,) for two classes, else a column each."""
        scores = self.transform(X) @ self.coef_.T + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class with the largest score."""
        score = self.decision_function(X)
        return self.classes_[(score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)]
