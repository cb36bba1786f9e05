"""From the chains' weights to the terms of predictions: shrinkage, linear terms, further terms, the level of omega."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from supertopic.corpus.source import Target, select_target
from supertopic.inference.contributions import describe_contributions
from supertopic.inference.factors import DrawnFactors
from supertopic.inference.held_out import describe_held_out
from supertopic.inference.held_out_predictions import Final, predict_held_out
from supertopic.inference.ingredients import ALONE, BESIDE, Evidence, Ingredients, discounted, gather_held_out
from supertopic.inference.level import (
    FEW_LABELS,
    LEAST_DOCS,
    OmegaDraws,
    at_batch_level,
    level_of,
    sample_omegas,
    shift_level,
)
from supertopic.inference.linear import Linear, fit_linear
from supertopic.inference.predict import LearnedTopics, SampledDocuments
from supertopic.inference.scores import base_losses, score_predictions
from supertopic.inference.shrinkage import USUAL, Shrinkage, estimate_shrinkage
from supertopic.kernels.draws import make_key
from supertopic.model.groups import GroupWeights, variances_of
from supertopic.model.held_out import HeldOutPredictions
from supertopic.model.history import NO_FIGURES, Figures
from supertopic.model.posterior import Carryover
from supertopic.model.responses.base import Response
from supertopic.model.terms import CovariateWeights, Intercept, Residual, Term, TopicWeights

BETWEEN_GROUPS = 1 << 40  # a path of random numbers that no training iteration takes


class PredictionTerms(NamedTuple):
    """The terms of omega in predictions, and what later batches and readers need of them."""

    terms: tuple[Term, ...]
    scale: np.ndarray  # (chain, draw, R or 0)
    held_out: dict[str, Any] | None  # None: as it was
    carryover: Carryover
    held_out_predictions: HeldOutPredictions | None = None
    figures: Figures = NO_FIGURES  # figures of the same documents


def uncalibrated_terms(made: Ingredients) -> PredictionTerms:
    """The chains' own weights, and the base rate as the level."""
    topics, beside, scale = made.raw
    terms = [topics, *with_covariates(made, beside), intercept(made, scale, made.rate.base)]
    return PredictionTerms(tuple(terms), scale, {"documents": 0}, carry_over(made, scale, linear={}))


def with_covariates(made: Ingredients, eta: np.ndarray) -> list[CovariateWeights | GroupWeights]:
    """The terms of covariates and of groups, from their weights (chain, draw, R, P + G)."""
    columns, found = made.covariates, list[CovariateWeights | GroupWeights]()
    own, intercepts = np.split(eta, [len(columns.names)], axis=3)
    if len(columns.names):
        found.append(CovariateWeights(columns, own))
    if len(columns.groups):
        key = make_key(made.seed[0], 1 + sum(made.seed[1:]), BETWEEN_GROUPS)  # each batch has its own
        found.append(GroupWeights(columns.groups, intercepts, variances_of(intercepts, key)))
    return found


def intercept(made: Ingredients, scale: np.ndarray, level: np.ndarray) -> Intercept:
    """The constant of predictions, in which draws of the response's own parameter (chain, draw, S) have their mean."""
    rate, response = made.rate, made.response.with_scale(scale.mean(axis=(0, 1)))
    return Intercept(response, level, rate.base, rate.empty, rate.empty_documents)


def carry_over(made: Ingredients, scale: np.ndarray, **more: Any) -> Carryover:
    weights = tuple(tuple(run.weights.known for run in chains) for chains in made.runs)
    level = made.response.offset_in_units(made.rate.link)
    return replace(made.past, weights=weights, sums=made.rate.sums, level=level, scale=np.concatenate(scale), **more)


def calibrated_terms(made: Ingredients) -> PredictionTerms:
    """Prediction weights, shrunk as held-out documents require, with words beside them, and the level found last."""
    topics, beside, scale = made.raw
    response, split = made.response.plain(), made.split
    lengths = np.diff(split.seen.doc_start)
    seen = at_batch_level(made.response, split.seen.target, lengths, made.rate.batch_shift)
    left_out, by_covariates = left_out_omega(made), seen.covariates @ beside.mean(axis=(0, 1)).T
    evidence = gather_held_out(made, scale)
    of_mean = response.with_scale(scale.mean(axis=(0, 1)))
    alone, centre = shrink_alone(made, evidence), usual_omega(made, topics)
    of_topics = left_out - np.where((lengths > 0)[:, None], centre.mean(axis=0), 0.0)
    linear = fit_linear(
        made, evidence, alone, of_mean, seen._replace(offset=seen.offset + by_covariates),
        of_topics, centre,
    )  # fmt: skip
    shrinkage = alone if linear is None else linear.shrinkage or alone
    usual = (1.0, 0.0) if linear is None else (1.0, 1.0) if made.config.topics_first else USUAL
    draw = partial(DrawnFactors.draw, usual=usual, shape=scale.shape[:2], n_columns=seen.weight.shape[1])
    factors = draw(shrinkage, rng=made.rng(2))
    draws, grown = (
        factors.omega_draws(seen, of_topics, by_covariates, added, evidence.relative(centre) if evidence else [])
        for added in ((linear.fit.added, linear.fit.grown) if linear else (0.0, 0.0))
    )
    further = learn_further(made, of_mean, seen, draws)
    for _, added in further:
        draws, grown = ([kind._replace(omega=kind.omega + added) for kind in kinds] for kinds in (draws, grown))
    shift = shift_level(of_mean, seen, lengths, draws, earlier_shift(made), made.rng(5))
    matched = match_own(made, of_mean, seen, lengths, grown, level_of(shift))
    final = (response.rescale(scale, factors.scale) if response.rescaled else scale) + matched
    terms = [
        topics.centred(centre).scaled(factors.topics),
        *(term.scaled(factors.covariates) for term in with_covariates(made, beside)),
        intercept(made, final, made.rate.base + level_of(shift)),
        *(linear.terms(factors.linear) if linear else []),
        *(term for term, _ in further),
    ]
    described: dict[str, Any] | None = None if made.previous else {"documents": 0}
    n_held_out = int(split.mask.sum())
    if shrinkage and alone and evidence and n_held_out:
        described = describe_held_out(shrinkage, alone, n_held_out, made.response)
        by_term = contribution_parts(evidence, factors, linear)
        described["contributions"] = describe_contributions(of_mean, evidence.target, by_term)
    of_linear = linear.carryover() if linear else {}
    grids = summed_grids(made, alone, linear)
    carryover = carry_over(made, scale, level_shift=shift, linear=of_linear, grids=grids, scale_shift=matched)
    if not evidence or not shrinkage or further:
        return PredictionTerms(tuple(terms), final, described, carryover)
    parts = Final(centre, scale, matched, level_of(shift))
    predicted = predict_held_out(made, evidence, shrinkage, draw, linear, parts)
    if predicted is None:
        return PredictionTerms(tuple(terms), final, described, carryover)
    known = made.response.wholly_known(evidence.target)
    base = np.broadcast_to(evidence.offset[known], (known.sum(), evidence.target.weight.shape[1]))
    base_loss = base_losses(made.response.plain(), predicted.truth, base, final.mean(axis=(0, 1)))
    figures = score_predictions(response, predicted, base_loss)
    return PredictionTerms(tuple(terms), final, described, carryover, predicted.kept(response), figures)


def match_own(
    made: Ingredients, response: Response, seen: Target, lengths: np.ndarray, draws: list[OmegaDraws], level: np.ndarray
) -> np.ndarray:
    """What to add to the response's own parameter, (S,), given what is predicted in the end."""
    before = made.past.scale_shift if len(made.past.scale_shift) else np.zeros(len(response.scale))
    finite = np.all([np.isfinite(kind.omega).all(axis=1) for kind in draws], axis=0)
    some = (lengths > 0) & np.any(seen.weight > 0, axis=1) & finite
    if not len(before) or some.sum() < LEAST_DOCS:
        return before
    omega = sample_omegas([kind._replace(omega=kind.omega[some], like=kind.like[some]) for kind in draws], made.rng(6))
    n_past = float(made.discount * made.past.sums[4].max(initial=0.0))
    return before + response.match_scale(select_target(seen, some), omega + level, response.scale + before, n_past)


def contribution_parts(evidence: Evidence, factors: "DrawnFactors", linear: Linear | None) -> dict[str, np.ndarray]:
    """What each term adds to omega of held-out documents, (n, R) each, in the mean of the draws."""
    topics, beside = (np.concatenate(parts) for parts in zip(*evidence.draws, strict=True))
    parts = {TopicWeights.name: topics.mean(axis=0) * factors.topics.mean(axis=(0, 1))}
    if len(beside):
        parts[CovariateWeights.name] = beside.mean(axis=0) * factors.covariates.mean(axis=(0, 1))
    if linear is not None:
        for name, omega in zip(linear.names, linear.fit.held_out, strict=True):
            parts[name] = omega * factors.linear.mean(axis=(0, 1))
    return parts


def left_out_omega(made: Ingredients) -> np.ndarray:
    """The topics' part of omega of the seen documents from left-out shares, averaged over chains: (n_docs, R)."""
    chains = zip(*made.runs, strict=True)
    return np.mean([np.concatenate([run.weights.left_out_omega for run in runs], axis=1) for runs in chains], axis=0)


def shrink_alone(made: Ingredients, evidence: Evidence | None) -> Shrinkage | None:
    """The shrinkage of topics without words beside them."""
    if evidence is None:
        return None
    response, earlier = made.response.plain(), discounted(made, ALONE)
    return estimate_shrinkage(response, evidence.target, evidence.draws, evidence.scales, earlier=earlier)


def earlier_shift(made: Ingredients) -> np.ndarray:
    """What `shift_level` found in earlier batches, discounted, (3, R)."""
    known = made.past.level_shift
    earlier = np.zeros((3, len(made.rate.link))) if known is None else known.copy()
    earlier[:2] *= made.discount
    return earlier


def summed_grids(made: Ingredients, alone: Shrinkage | None, linear: Linear | None) -> dict[str, list[np.ndarray]]:
    """Log-likelihoods of the factors on all held-out documents so far."""
    grids = dict(made.past.grids)
    if linear and linear.shrinkage:
        grids[BESIDE] = list(linear.shrinkage.grids.values())
    if alone:
        grids[ALONE] = list(alone.grids.values())
    return grids


def usual_omega(made: Ingredients, topics: TopicWeights) -> np.ndarray:
    """omega of the usual mixture of topics in all batches so far, (chain, R).

    Prediction weights are relative to it, so that a constant that all topics have in common, which the level takes the
    place of, is neither shrunk nor counted twice. Where there is no such level, they stay.
    """
    n_known = made.rate.sums[4]
    firm = made.response.has_level * n_known / (n_known + FEW_LABELS)  # seeds count where there are few labels
    parts = [
        np.einsum("crk,ck->cr", eta.mean(axis=1), part.shares)
        for eta, part in zip(topics.eta, made.topics, strict=True)
    ]
    return np.concatenate(parts, axis=1) * firm


def learn_further(
    made: Ingredients, response: Response, seen: Target, draws: list[OmegaDraws]
) -> list[tuple[Term, np.ndarray]]:
    """Terms that are learned after topics and words, each with the mean of what it adds to the seen documents."""
    found: list[tuple[Term, np.ndarray]] = []
    if made.counts is None or not made.learners:
        return found
    omega = sum(kind.share * np.nan_to_num(kind.omega) for kind in draws)
    counts, config, columns = made.counts[~made.split.mask], made.config, made.covariates
    own, of_groups = np.split(made.split.seen.target.covariates, [len(columns.names)], axis=1)
    covariates = np.hstack([columns.mean + columns.scale * own, of_groups])  # as those of new documents are
    topics = LearnedTopics(made.topics, made.seed[0])
    nothing = np.zeros((counts.shape[0], 0))
    documents = SampledDocuments(topics, counts, counts, nothing, covariates, nothing.sum(axis=1, keepdims=True),
                                 config.settings)  # fmt: skip
    for learner in made.learners:
        name = getattr(learner, "name", "")
        previous = next((term for term in made.previous.terms if term.name == name), None) if made.previous else None
        target = seen._replace(offset=omega)
        term = learner(Residual(documents, target, response, config.n_chains, config.n_draws, previous))
        added = term.omega(documents).mean(axis=0)
        omega = omega + added
        found.append((term, added))
    return found
