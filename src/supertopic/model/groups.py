"""Groups of documents, such as those of an author: intercepts that are partially pooled.

The intercepts of a column have a normal prior around 0. Its variance is drawn, and its standard deviation has a
half-Cauchy prior (Gelman, 2006). A group with few documents is then close to the population, and a new group gets the
population's distribution. In regressions a group is a further covariate, which is 1 for its documents.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np

from supertopic.kernels.draws import gammas, make_key
from supertopic.model.linear import spread_normals
from supertopic.model.responses.base import Response
from supertopic.model.responses.columns import NewColumns
from supertopic.model.terms import TERMS, Documents, Parts, Shape, Term, expect

Variance: TypeAlias = float | np.ndarray  # of the prior of weights: one, or (R, width)
LEAST_VARIANCE, MOST_VARIANCE = 1e-8, 1e8
SETTLED = 20  # draws of a variance after which its start is forgotten


def prior_variances(nu2: float, variance: np.ndarray, width: int, n_groups: int) -> np.ndarray:
    """The prior variance of all weights, (R, width): variance (R,) for the groups, which come last."""
    found = np.full((len(variance), width), nu2)
    found[:, width - n_groups :] = variance[:, None]
    return found


def draw_variance(intercepts: np.ndarray, variance: np.ndarray, key: np.uint64) -> np.ndarray:
    """A Gibbs step of the variance (R,) of intercepts (R, G), whose square root is half-Cauchy with scale 1.

    That prior is a mixture of inverse gammas, so that both steps are conjugate (Wand and others, 2011).
    """
    n_columns, n_groups = intercepts.shape
    auxiliary = (1.0 + 1.0 / variance) / gammas(np.ones(n_columns), make_key(key, 0))
    rate = 1.0 / auxiliary + 0.5 * np.sum(intercepts**2, axis=1)
    found = rate / gammas(np.full(n_columns, 0.5 * (n_groups + 1)), make_key(key, 1))
    return found.clip(LEAST_VARIANCE, MOST_VARIANCE)


def log_prior_variance(variance: np.ndarray) -> float:
    """The log density of variances whose square roots are half-Cauchy with scale 1."""
    return float(np.sum(-np.log(np.pi) - 0.5 * np.log(variance) - np.log1p(variance)))


def variances_of(intercepts: np.ndarray, key: np.uint64) -> np.ndarray:
    """A variance (..., R) for each draw of intercepts (..., R, G), from its distribution given these."""
    flat = intercepts.reshape(-1, *intercepts.shape[-2:])
    found = np.maximum(np.mean(flat**2, axis=2), LEAST_VARIANCE)
    for i, own in enumerate(flat):
        for step in range(SETTLED):
            found[i] = draw_variance(own, found[i], make_key(key, i, step))
    return found.reshape(intercepts.shape[:-1])


@dataclass(frozen=True, eq=False)
class GroupWeights(Term):
    """The intercept of a document's group; one of the population for a group that is new."""

    names: np.ndarray  # (G,)
    eta: np.ndarray  # (chain, draw, R, G)
    variance: np.ndarray  # (chain, draw, R): between groups

    name: ClassVar[str] = "groups"

    def omega(self, documents: Documents) -> np.ndarray:
        known = documents.covariates[:, documents.covariates.shape[1] - len(self.names) :]  # (n_docs, G)
        eta, pairs = documents.pairs.over(self.eta), documents.pairs
        group, new = known.argmax(axis=1), (known == 0).all(axis=1)
        found = eta.transpose(0, 2, 1)[:, group]  # (n, n_docs, R)
        drawn = np.sqrt(pairs.over(self.variance)) * spread_normals(pairs.total, eta.shape[1])
        return np.where(new[:, None], drawn[:, None], found)

    def parts(self, document: Documents) -> Parts:
        known = document.covariates[0, document.covariates.shape[1] - len(self.names) :]
        label = f"group {self.names[known.argmax()]}" if known.any() else "a new group"
        return Parts(None, {label: self.omega(document)[:, 0]})

    def scaled(self, factor: np.ndarray) -> "GroupWeights":
        """The term multiplied by a factor for each draw and column, (chain, draw, R): shrinkage."""
        return replace(self, eta=self.eta * factor[..., None], variance=self.variance * factor**2)

    def with_columns(self, columns: NewColumns) -> "GroupWeights":
        eta, variance = columns.of(self.eta, 2, share=True), columns.of(self.variance, sign=False)
        return replace(self, eta=eta, variance=variance * columns.share**2)

    def tensors(self) -> dict[str, np.ndarray]:
        return {"names": self.names, "eta": self.eta, "variance": self.variance}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], response: Response, shape: Shape) -> "GroupWeights":
        found = cls(tensors["names"], tensors["eta"], tensors["variance"])
        sizes = shape.n_chains, shape.n_draws, shape.n_columns
        expect(found.names.ndim == 1 and len(set(found.names.tolist())) == len(found.names) > 0, "the groups")
        expect(found.eta.shape == (*sizes, len(found.names)), "the shape of the groups' weights")
        expect(found.variance.shape == sizes and (found.variance >= 0).all(), "the variance between groups")
        return found


TERMS |= {GroupWeights.name: GroupWeights}
