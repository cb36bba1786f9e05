"""The regression behind reported weights once more, with the log-likelihood of each document in each draw.

Shares come from topics that have not seen a document's response (cross-fitting), so that the response enters through
the weights alone. Leaving a document out then means what it means for any regression, which importance sampling can do.
"""

from typing import Any, NamedTuple

import numpy as np

from supertopic.corpus.source import Target
from supertopic.inference.calibration import WeightDraw, draw_weights
from supertopic.inference.effects import MANY_COLUMNS, Evidence, each_set, other_topics
from supertopic.inference.regression import cut_documents, regression_engine
from supertopic.inference.reported import MANY, NU2_REPORTED, THIN
from supertopic.kernels.draws import make_key
from supertopic.model.posterior import Posterior
from supertopic.model.responses.base import Response
from supertopic.sampling.plan import is_matrix_free

POINTWISE, REPLICATES = 1 << 40, 1 << 41  # paths of random numbers that no training iteration takes


class Pointwise(NamedTuple):
    """Draws of a regression on training documents, chain after chain of independent runs."""

    topics: np.ndarray  # (chain, draw, R, K): in standard units, as the rest
    beside: np.ndarray  # (chain, draw, R, P + G): covariates, then groups
    log_likelihood: np.ndarray  # (chain, draw, n): of y in the user's units
    replicates: np.ndarray | None  # (chain, draw, n, m): responses that the draws predict; None of several raters


class SetDraws(NamedTuple):
    """Draws for one set of topics."""

    x: np.ndarray  # (n, K + n_others): shares
    draws: list[list[WeightDraw]]  # the draws of each chain


def pointwise(posterior: Posterior, evidence: Evidence, n_chains: int, n_draws: int, n_threads: int) -> Pointwise:
    """Draw the weights of all sets of topics, and look at every document under each draw."""
    n_groups, target = len(posterior.columns_beside.groups), evidence.target
    response = evidence.response.reported()
    sets = [
        draw_set(x, own_target, evidence, places, response, n_groups, n_chains, n_draws, n_threads, (posterior.seed, i))
        for i, (x, own_target, places) in enumerate(
            (x, own_target, posterior.places[i]) for i, x, own_target in each_set(posterior, evidence)
        )
    ]
    predicted = response.like(evidence.response)  # a hinge reports logistic weights
    offset = predicted.predictive_offset(target.offset)
    found: list[list[tuple[np.ndarray, ...]]] = [[] for _ in range(n_chains)]
    for chain, own in enumerate(found):
        rng = np.random.default_rng(make_key(posterior.seed, chain, REPLICATES))
        for draws in zip(*(part.draws[chain] for part in sets), strict=True):
            drawn: Any = predicted.with_scale(np.concatenate([draw.response.scale for draw in draws]))
            omega = offset + np.hstack([
                omega_of(part.x, target.covariates, draw.eta) for part, draw in zip(sets, draws, strict=True)
            ])  # fmt: skip
            seen = [log_likelihood(drawn, target, omega)]
            if not predicted.several_raters:
                seen.append(drawn.replicate(omega, rng))
            own.append((*weights_of(posterior, sets, draws), *seen))
    topics, beside, logs, *replicates = (
        np.array([[draw[i] for draw in own] for own in found]) for i in range(len(found[0][0]))
    )
    return Pointwise(topics, beside, logs, replicates[0] if replicates else None)


def draw_set(
    x: np.ndarray, target: Target, evidence: Evidence, places: slice, response: Response, n_groups: int, n_chains: int,
    n_draws: int, n_threads: int, path: tuple[int, int],
) -> SetDraws:  # fmt: skip
    """The regression of one set of topics, with the columns of topics that only some chains have."""
    x, many = x.copy(), is_matrix_free(x.shape[1], target.covariates.shape[1])
    x = np.hstack([x, other_topics(x, evidence.chain, evidence.has[:, places])])
    n_docs, n_columns = target.weight.shape
    width = x.shape[1] + target.covariates.shape[1]
    thin = THIN if n_docs * n_columns <= MANY and width <= MANY_COLUMNS else 1
    with regression_engine(
        lambda docs: x[docs], x.shape[1], target, response, cut_documents(n_docs), n_threads, n_groups, many
    ) as engine:  # fmt: skip
        known = engine.plan.no_statistics()
        keys = [make_key(path[0], path[1], chain, POINTWISE) for chain in range(n_chains)]
        return SetDraws(
            x, [list(draw_weights(engine, response, NU2_REPORTED, known, n_draws, key, thin)) for key in keys]
        )


def omega_of(x: np.ndarray, covariates: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """What topics, covariates and groups add to omega, (n, R)."""
    return x @ eta[:, : x.shape[1]].T + covariates @ eta[:, x.shape[1] :].T


def weights_of(
    posterior: Posterior, sets: list[SetDraws], draws: tuple[WeightDraw, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """The weights of all topics (R, K), and of covariates and groups (R, P + G), in one draw."""
    topics = np.zeros(posterior.own.shape)
    for draw, columns, places in zip(draws, posterior.columns, posterior.places, strict=True):
        topics[columns, places] = draw.eta[:, : places.stop - places.start] - draw.response.excess
    beside = [draw.eta[:, part.x.shape[1] :] for part, draw in zip(sets, draws, strict=True)]
    return topics, np.concatenate(beside)


def log_likelihood(response: Response, target: Target, omega: np.ndarray) -> np.ndarray:
    """The log density of each document's response, (n,), as often as its weight counts it."""
    logs = response.log_predictive(target.y, omega[None], response.scale[None]) - np.log(response.unit)
    if logs.shape[1] == target.weight.shape[1]:
        return np.where(target.weight > 0, target.weight * logs, 0.0).sum(axis=1)
    return target.weight.max(axis=1) * logs[:, 0]  # one class, whatever its columns
