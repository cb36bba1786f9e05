"""Predictions for the held-out documents of a fit, as they would be if these were new.

No chain used them. Weights of words are learned, and factors of shrinkage estimated, with held-out documents: those for
a fifth of them come from all documents but these.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from supertopic.corpus.source import select_target
from supertopic.inference.factors import DrawnFactors
from supertopic.inference.held_out import deal
from supertopic.inference.ingredients import Evidence, Ingredients
from supertopic.inference.linear import Linear
from supertopic.inference.shrinkage import HeldOutDraws, Shrinkage
from supertopic.model.held_out import HeldOutPredictions, compare
from supertopic.model.linear import spread_normals


class Final(NamedTuple):
    """What predictions have besides factors."""

    centre: np.ndarray  # (chain, R): omega of the usual mixture of topics
    scale: np.ndarray  # (chain, draw, S): before the factor
    matched: np.ndarray  # (S,): what is added to it
    level: np.ndarray  # (R,)


def predict_held_out(
    made: Ingredients, evidence: Evidence, shrinkage: Shrinkage, draw: Callable[..., DrawnFactors],
    linear: Linear | None, final: Final,
) -> HeldOutPredictions | None:  # fmt: skip
    """The predictions for the held-out documents whose responses are known, if there are any.

    `draw` draws factors from a shrinkage.
    """
    fold = deal(made.response.wholly_known(evidence.target), made.rng(7))
    parts = [np.flatnonzero(fold == i) for i in range(fold.max(initial=-1) + 1)]
    if not parts:
        return None
    found = [predict_fold(made, evidence, shrinkage, draw, linear, final, docs) for docs in parts]
    order = np.argsort(np.concatenate(parts))
    whole = HeldOutPredictions(*(np.concatenate(arrays)[order] for arrays in zip(*found, strict=True)))
    target = made.split.target()
    known, may = made.response.wholly_known(target), made.response.may_hold_out(target)
    return whole._replace(rare=np.full(len(order), (known & ~may).sum() / max((known & may).sum(), 1)))


def predict_fold(
    made: Ingredients, evidence: Evidence, shrinkage: Shrinkage, draw: Callable[..., DrawnFactors],
    linear: Linear | None, final: Final, docs: np.ndarray,
) -> HeldOutPredictions:  # fmt: skip
    """The predictions for some documents, with factors from the others."""
    response, mask = made.response.plain(), np.zeros(len(evidence.lengths), bool)
    mask[docs] = True
    factors, target = draw(shrinkage.without(mask), rng=made.rng(2)), select_target(evidence.target, docs)
    some = [HeldOutDraws(part.topics[:, docs], part.covariates[:, docs]) for part in evidence.relative(final.centre)]
    pairs = np.arange(len(evidence.draws[0].topics)) % final.scale.shape[1]
    scale = (response.rescale(final.scale, factors.scale) if response.rescaled else final.scale) + final.matched
    level = np.where(evidence.lengths[docs, None] > 0, final.level, 0.0)
    omegas = factors.of_held_out(some, np.ones(final.scale.shape[:2], bool))
    omegas = omegas + (evidence.offset[docs] + level)
    empty, rate = evidence.lengths[docs] == 0, made.rate
    of_empty = response.with_scale(scale.mean(axis=(0, 1))).draw_offsets(rate.empty, rate.empty_documents, len(omegas))
    omegas[:, empty] += (of_empty - rate.empty)[:, None]
    if linear is not None:
        noise = spread_normals(len(omegas), omegas.shape[2])[:, None]
        added = linear.fit.relearned[docs] + noise * np.sqrt(linear.fit.held_out_variance[docs])
        omegas = omegas + np.concatenate(factors.linear[:, pairs])[:, None] * added
    return compare(response, response.encoded_truth(target.y), omegas, np.concatenate(scale[:, pairs]))
