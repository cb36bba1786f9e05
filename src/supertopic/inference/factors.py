"""Draws of the factors of shrinkage, and what they make of omega."""

from dataclasses import dataclass

import numpy as np

from supertopic.corpus.source import Target
from supertopic.inference.level import OmegaDraws
from supertopic.inference.shrinkage import COVARIATES, LINEAR, SCALE, TOPICS, HeldOutDraws, Shrinkage, draw_factors


@dataclass(frozen=True)
class DrawnFactors:
    """Factors of each draw, (chain, draw, R)."""

    topics: np.ndarray
    covariates: np.ndarray
    scale: np.ndarray
    linear: np.ndarray

    @classmethod
    def draw(
        cls, shrinkage: Shrinkage | None, usual: tuple[float, float], shape: tuple[int, ...], n_columns: int,
        rng: np.random.Generator,
    ) -> "DrawnFactors":  # fmt: skip
        drawn = draw_factors(shrinkage, shape[0] * shape[1], rng, usual)
        return cls(*(
            np.broadcast_to(drawn[name].reshape(*shape, -1), (*shape, n_columns))
            for name in (TOPICS, COVARIATES, SCALE, LINEAR)
        ))  # fmt: skip

    def omega_draws(
        self, seen: Target, topics: np.ndarray, covariates: np.ndarray, linear: np.ndarray | float,
        held_out: list[HeldOutDraws],
    ) -> list[OmegaDraws]:  # fmt: skip
        """Draws with and without linear terms: mean omega of training documents, and spread on held-out ones."""
        found, uses = [], (self.linear > 0).any(axis=2)
        for kind in np.unique(uses):
            own = uses == kind
            a, b, c = (factor[own].mean(axis=0) for factor in (self.topics, self.covariates, self.linear))
            like = topics * a + covariates * b
            omega = seen.offset + like + (linear * c if kind else 0.0)
            found.append(OmegaDraws(float(own.mean()), omega, self.of_held_out(held_out, own), like))
        return found

    def of_held_out(self, draws: list[HeldOutDraws], own: np.ndarray) -> np.ndarray:
        """omega of held-out documents in the draws of the mask `own` (chain, draw): (n, n_held_out, R)."""
        found = []
        for chain, part in enumerate(draws):
            pairs = np.arange(len(part.topics)) % own.shape[1]
            some = own[chain][pairs]
            pairs = pairs[some]
            omega = part.topics[some] * self.topics[chain][pairs][:, None]
            if len(part.covariates):
                omega = omega + part.covariates[some] * self.covariates[chain][pairs][:, None]
            found.append(omega)
        return np.concatenate(found) if found else np.zeros((0, 0, self.topics.shape[2]))
