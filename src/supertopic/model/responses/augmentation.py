"""How most responses are augmented: one lam per document and column, and a kappa that is linear in it."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from supertopic.corpus.source import Target
from supertopic.kernels.responses import LOGISTIC, draw_lams, kappa_parts, log_densities
from supertopic.model.responses.averages import share_quantile
from supertopic.model.responses.base import Response, ScalarForm
from supertopic.model.state import Quadratic


class OneLam(Response):
    """A response with one lam per document and column: kappa = constant + slope lam."""

    @abstractmethod
    def draw_lam(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        """Draw lam given omega; a document's draw depends on its number first_doc + d only."""

    @abstractmethod
    def kappa(self, target: Target) -> tuple[np.ndarray | float, np.ndarray | float]:
        """The linear part of the quadratic in omega, as a constant and a slope: kappa = constant + slope lam."""

    @abstractmethod
    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The mean of lam given omega."""

    def start_lam(self, target: Target) -> np.ndarray:
        """lam before the first iteration: its mean where nothing is known of eta.

        The paper starts from 1: at large c the first eta is then so large that the chain may not recover.
        """
        if self.paper_start:
            return (target.weight > 0).astype(float)
        return self.mean_lam(target, np.broadcast_to(target.offset, target.y.shape))

    def quadratic(self, target: Target, lam: np.ndarray) -> Quadratic:
        """The quadratic with this lam; the known offset is moved from omega into kappa."""
        constant, slope = self.kappa(target)
        return Quadratic(constant + (slope - target.offset) * lam, lam)

    def draw(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> Quadratic:
        return self.quadratic(target, self.draw_lam(target, omega, key, first_doc))

    def start(self, target: Target) -> Quadratic:
        return self.quadratic(target, np.ascontiguousarray(self.start_lam(target)))

    def gradient(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The derivative of log psi in omega, (n_docs, R): that of the quadratic at the mean of lam."""
        constant, slope = self.kappa(target)
        return constant + (slope - omega) * self.mean_lam(target, omega)

    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The negative second derivative of log psi in omega, (n_docs, R); by default an upper bound, the mean lam."""
        return self.mean_lam(target, omega)


class KernelResponse(OneLam):
    """A response whose lam, kappa and density are formulas of `kernels.responses`, which devices share."""

    formula: ClassVar[int]

    @property
    def own(self) -> np.ndarray | float:
        """The parameter of the formulas."""
        return 0.0

    @property
    def scalar_form(self) -> ScalarForm | None:
        return ScalarForm(self.formula, self.own)

    def own_columns(self, n: int) -> np.ndarray:
        return np.full(n, self.own, dtype=float)

    def draw_lam(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        return draw_lams(self.formula, self.c, self.own_columns(omega.shape[1]), *target[:2], omega, key, first_doc)

    def kappa(self, target: Target) -> tuple[np.ndarray | float, np.ndarray | float]:
        return kappa_parts(self.formula, self.c, self.own_columns(target.y.shape[1]), target.y, target.weight)

    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        if y.shape != omega.shape:
            y = np.broadcast_to(y, omega.shape)
        y, omega = np.ascontiguousarray(y), np.ascontiguousarray(omega)
        return log_densities(self.formula, self.own_columns(omega.shape[-1]), y, omega)

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        if scales.shape[1] or y.shape != omegas.shape[1:]:
            return super().log_predictive(y, omegas, scales)
        own, y = self.own_columns(omegas.shape[2]), np.ascontiguousarray(y, dtype=float)
        flat = np.ascontiguousarray(omegas).reshape(-1, omegas.shape[2])  # one call instead of one for each draw
        logs = log_densities(self.formula, own, y, flat).reshape(omegas.shape)
        return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))


class LogisticColumns(KernelResponse):
    """psi = sigmoid(omega)**(c y) (1 - sigmoid(omega))**(c (1 - y)), a column each."""

    formula: ClassVar[int] = LOGISTIC
    calibrates_mean: ClassVar[bool] = True

    def mean_lam(self, target: Target, omega: np.ndarray) -> np.ndarray:
        return mean_polya_gamma(self.c * target.weight, omega)

    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        p = expit(omega)
        return self.c * target.weight * p * (1.0 - p)

    def mean(self, omega: np.ndarray) -> np.ndarray:
        return expit(omega)

    def link(self, mean: np.ndarray) -> np.ndarray:
        return logit(mean)

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        return share_quantile(q, mean, n_docs)


def mean_polya_gamma(h: np.ndarray, z: np.ndarray) -> np.ndarray:
    half = np.maximum(np.abs(z) / 2.0, 1e-6)
    return h * np.tanh(half) / (4.0 * half)
