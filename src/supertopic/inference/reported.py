"""Reported weights: a Bayesian regression on documents whose responses did not influence the topics (cross-fitting).

Each chain holds out the responses of its own fold. The topic shares of these documents are inferred from their words,
so that no share depends on the response that it explains (Egami and others, 2022; Chernozhukov and others, 2018). All
documents enter one regression, each with its shares under the topics of the chain that has not seen its response. A
topic that a chain does not have is a column of its own there. How much the chains' weights of a topic differ beyond
chance widens its interval.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from supertopic.corpus.source import Outline, Target, select_target
from supertopic.inference.calibration import carry_over, draw_weights, mean_variance
from supertopic.inference.chains import ChainRun, Split
from supertopic.inference.ingredients import Ingredients
from supertopic.inference.regression import regression_engine
from supertopic.kernels.draws import make_key, normals
from supertopic.kernels.moments import unpack
from supertopic.model.posterior import CrossFitted, Posterior
from supertopic.model.state import Statistics
from supertopic.sampling.gibbs import draw_eta
from supertopic.sampling.plan import Plan
from supertopic.sampling.shard import Shard

NU2_REPORTED = 25.0  # prior variance
LEAST_VARIANCE = 1e-12  # smallest variance of a weight by chance; a smaller one is rounding
LEAST_DRAWS, THIN = 100, 3  # for each chain, and iterations for each draw
MANY, FEWER_DRAWS = 20_000, 50  # responses beyond which there are fewer draws, and no thinning
N_PROBES = 20  # random vectors that products of precisions are estimated with
REPORTED, BETWEEN, PROBES = 1 << 36, 1 << 37, 1 << 43  # paths of random numbers that no training iteration takes


class Reported(NamedTuple):
    """Reported weights of one set of topics, which are in the order that all chains have in common."""

    draws: np.ndarray  # (n, R, K + P)
    known: Statistics  # what later batches have to know of them
    spread: np.ndarray  # (R, K): the variance of topics' weights that comes from differences between chains


class FoldDocuments(NamedTuple):
    """Documents whose responses one chain does not use, chain after chain."""

    shares: np.ndarray  # (n, K): under the topics of that chain, in the common order
    target: Target
    starts: np.ndarray  # (n_chains + 1,): where the documents of each chain start

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(a, b) for a, b in itertools.pairwise(self.starts.tolist()))


def gather_folds(runs: Sequence[ChainRun], split: Split[Outline], order: np.ndarray) -> FoldDocuments:
    """The documents of all folds for one set of topics; order (chain, K) is that of its topics."""
    targets, shares = [], []
    for chain, run in enumerate(runs):
        seen, held_out = split.fold_docs(chain)
        parts = [select_target(split.seen.target, seen)]
        if split.held_out is not None:
            parts.append(select_target(split.held_out.target, held_out))
        targets.append([np.concatenate(arrays) for arrays in zip(*parts, strict=True)])
        shares.append(run.weights.shares[:, order[chain]])
    starts = np.cumsum([0, *map(len, shares)])
    return FoldDocuments(np.concatenate(shares), Target(*map(np.concatenate, zip(*targets, strict=True))), starts)


def with_reported(posterior: Posterior, made: Ingredients, plans: Sequence[Plan]) -> Posterior:
    """The posterior with its reported weights: those of predictions where no response was ever held out."""
    found, n_topics = report_weights(posterior, made, plans), made.config.n_topics
    if found is None:
        eta = [np.array([run.weights.eta for run in runs]) for runs in made.runs]  # (chain, n, R, K + P) each
        beside = np.concatenate([part[..., n_topics:] for part in eta], axis=2)
        pooled = posterior.consensus.pool(posterior.side_by_side(eta))
        return replace(posterior, **split_draws(made, posterior.own, pooled, np.concatenate(beside)))
    topics = np.zeros((len(found[0].draws), *posterior.own.shape))
    weights = []
    for part, runs, columns, places in zip(found, made.runs, posterior.columns, posterior.places, strict=True):
        topics[:, columns, places] = part.draws[..., :n_topics]
        own = np.argsort(posterior.order[:, places], axis=1)  # from the common order to that of each chain
        knowns = [run.weights.known for run in runs]
        weights.append(tuple(
            known._replace(reported=reorder(part.known, order)) for known, order in zip(knowns, own, strict=True)
        ))  # fmt: skip
    crossed = cross_fitted(posterior, made, found) if (made.split.fold >= 0).any() else None
    facts = posterior.held_out | {"cross_fitted": int((made.split.fold >= 0).sum())}
    beside = np.concatenate([part.draws[..., n_topics:] for part in found], axis=1)
    return replace(
        posterior, held_out=facts if made.split.mask.any() else posterior.held_out,
        carryover=replace(posterior.carryover, weights=tuple(weights)), cross_fitted=crossed,
        **split_draws(made, posterior.own, topics, beside),
    )  # fmt: skip


def split_draws(made: Ingredients, own: np.ndarray, topics: np.ndarray, beside: np.ndarray) -> dict[str, Any]:
    """Reported weights of topics (n, R, K), covariates and groups; `beside` has those of both, (n, R, P + G).

    A constant of all groups is the same as one of all topics, since the shares of topics sum to 1. It is given to the
    topics, so that the intercepts of groups are relative to the mean over the documents.
    """
    covariates, groups = np.split(beside, [len(made.covariates.names)], axis=2)
    if groups.shape[2]:
        of_group = made.split.seen.target.covariates[:, len(made.covariates.names) :].sum(axis=0)
        mean = groups @ (of_group / max(of_group.sum(), 1.0))  # (n, R)
        topics, groups = topics + mean[..., None] * own, groups - mean[..., None]
    found = {"reported": topics, "reported_covariates": covariates, "reported_groups": groups}
    return {name: np.ascontiguousarray(draws) for name, draws in found.items()}  # as those of a file are, to the bit


def cross_fitted(posterior: Posterior, made: Ingredients, found: Sequence[Reported]) -> CrossFitted:
    """What a regression on the training documents of this batch needs, for questions that come after the fit."""
    split, n_sets = made.split, len(posterior.topics)
    shares = np.full((len(split.fold), posterior.n_topics), np.nan, np.float32)
    spread = np.zeros(posterior.own.shape)
    for part, runs, columns, places in zip(found, made.runs, posterior.columns, posterior.places, strict=True):
        order = posterior.order[:, places] - places.start
        for chain, run in enumerate(runs):
            shares[split.fold_rows(chain), places] = run.weights.shares[:, order[chain]] / n_sets
        spread[columns, places] = part.spread
    return CrossFitted(shares, split.fold, split.target(), spread)


def report_weights(posterior: Posterior, made: Ingredients, plans: Sequence[Plan]) -> list[Reported] | None:
    """The reported weights of each set of topics; None if no response was held out, now or in earlier batches."""
    found = []
    for place, (plan, columns) in enumerate(zip(plans, posterior.columns, strict=True)):
        topics, runs = posterior.places[place], made.runs[place]
        order, has = posterior.order[:, topics] - topics.start, posterior.consensus.has[:, topics]
        split = made.split.column(columns.start) if len(plans) > 1 else made.split
        documents = gather_folds(runs, split, order)
        best = posterior.best_chain
        known = reorder(runs[best].weights.known.reported, order[best])
        key, config = make_key(plan.seed, place, REPORTED), made.config
        if len(documents.shares):
            found.append(regress_folds(documents, has, known, plan, config.n_draws, config.n_threads, key))
        elif known.precision.any():  # there is nothing new about them: they are drawn from what is known
            n_draws = config.n_chains * max(config.n_draws, LEAST_DRAWS)
            draws = np.array([draw_eta(known, NU2_REPORTED, make_key(key, i)) for i in range(n_draws)])
            found.append(Reported(draws, known, np.zeros((known.shift.shape[1], config.n_topics))))
        else:
            return None
    return found


def regress_folds(
    documents: FoldDocuments, has: np.ndarray, known: Statistics, plan: Plan, n_draws: int, n_threads: int,
    key: np.uint64,
) -> Reported:  # fmt: skip
    """Draw the weights of one set of topics.

    has (chain, K) says which chains have each topic, and `known` the information of earlier batches about the weights.
    """
    n_docs, n_topics = documents.shares.shape
    x = separate_columns(documents, has)
    width, n_columns = x.shape[1] + plan.n_covariates, plan.n_columns
    keep = np.r_[:n_topics, x.shape[1] : width]  # topics and covariates, without the columns of single chains
    known = spread_out(known, keep, width)
    with regression_engine(
        lambda docs: x[docs], x.shape[1], documents.target, plan.response, documents.slices, n_threads, plan.n_groups,
        plan.matrix_free,
    ) as engine:  # fmt: skip
        least, thin = (LEAST_DRAWS, THIN) if n_docs * n_columns <= MANY else (FEWER_DRAWS, 1)
        n_draws, response = len(has) * max(n_draws, least), plan.response.reported()
        found = list(draw_weights(engine, response, NU2_REPORTED, known, n_draws, key, thin))
        draws, nu2 = np.array([draw.eta for draw in found]), mean_variance(found)
        response = response.with_scale(np.mean([draw.response.scale for draw in found], axis=0))
        total = carry_over(engine, response, nu2, known, draws)
        parts = [shard.add_statistics(engine.plan.no_statistics()) for shard in engine.shards]
        if plan.matrix_free:
            spread = between_many(engine.shards, parts, draws, has, make_key(key, PROBES))
        else:
            spread = between_chains(parts, draws.mean(axis=0), has)
    draws = draws[:, :, keep]
    draws[:, :, :n_topics] -= np.array([draw.response.excess for draw in found])[:, None, None]
    noise = normals((len(draws) * n_columns, n_topics), make_key(key, BETWEEN))
    draws[:, :, :n_topics] += noise.reshape(-1, n_columns, n_topics) * np.sqrt(spread)
    return Reported(draws, marginal(total, keep), spread)


def separate_columns(documents: FoldDocuments, has: np.ndarray) -> np.ndarray:
    """Shares (n, K + n_others): if a chain does not have a topic, its topic at this place is a separate column."""
    others = np.argwhere(~has)
    x = np.zeros((len(documents.shares), has.shape[1] + len(others)))
    x[:, : has.shape[1]] = documents.shares
    for column, (chain, topic) in enumerate(others, start=has.shape[1]):
        docs = documents.slices[chain]
        x[docs, column], x[docs, topic] = x[docs, topic], 0.0
    return x


def between_chains(parts: list[Statistics], eta: np.ndarray, has: np.ndarray) -> np.ndarray:
    """The variance of each topic's weight, (R, K), that comes from differences between the topics of the chains.

    `parts` are the statistics of each chain's documents around eta (R, width), the mean weights. Topics of the chains
    are alike, not the same, and so are their weights: their variance between chains is estimated by the method of
    moments (DerSimonian and Laird, 1986), for all topics of a column together, since there are few chains.
    """
    n_topics, width = has.shape[1], eta.shape[1]
    spread = np.zeros((len(eta), n_topics))
    if len(has) < 2:
        return spread
    ridge = np.eye(width) / NU2_REPORTED
    for r, mean in enumerate(eta):
        precisions = [full(part, r) for part in parts]
        covariance = np.linalg.inv(np.sum(precisions, axis=0) + ridge)
        excess, weight = 0.0, 0.0
        for P, part, own in zip(precisions, parts, has, strict=True):
            inverse = np.linalg.inv(P + ridge)
            away = inverse @ (part.shift[:, r] - P @ mean)
            by_chance = np.diag(inverse @ (P - P @ covariance @ P) @ inverse)[:n_topics]
            some = own & (by_chance > LEAST_VARIANCE)  # else there is no document with a weight
            excess += np.sum(away[:n_topics][some] ** 2 / by_chance[some] - 1.0)
            weight += np.sum(np.diag(inverse @ P)[:n_topics][some] ** 2 / by_chance[some])
        size = np.array([P.diagonal()[:n_topics] for P in precisions]) * has
        part_of = size / np.maximum(size.sum(axis=0), 1e-300)
        spread[r] = max(excess, 0.0) / max(weight, 1e-300) * np.sum(part_of**2, axis=0)
    return spread


def between_many(
    shards: Sequence[Shard], parts: list[Statistics], draws: np.ndarray, has: np.ndarray, key: np.uint64
) -> np.ndarray:
    """The same for very many weights, from products with the precisions P of the chains, which are sums over a shard.

    The gradient g = b - P eta of a chain's documents has the variance P - P C P under one set of weights, where C is
    the covariance of the draws (n, R, width), and P u is added to it by differences u between topics. Both are found
    with random vectors. Squares of g are weighted by the diagonal of P.
    """
    (n_topics, width), eta = (has.shape[1], draws.shape[2]), draws.mean(axis=0)
    spread, columns = np.zeros((len(eta), n_topics)), np.arange(len(eta))
    if len(has) < 2:
        return spread
    some = draws[np.linspace(0, len(draws) - 1, min(len(draws), LEAST_DRAWS)).astype(int)] - eta
    excess, weight = np.zeros((2, len(eta)))
    for chain, (shard, part, own) in enumerate(zip(shards, parts, has, strict=True)):

        def product(v: np.ndarray, shard: Shard = shard) -> np.ndarray:
            total = np.zeros((width, len(eta)))
            shard.add_products(np.ascontiguousarray(v.T), columns, total)
            return total[:n_topics]

        scale = own[:, None] / (part.precision[:n_topics] + 1.0 / NU2_REPORTED)
        variance = part.precision[:n_topics] - np.mean([product(away) ** 2 for away in some], axis=0)
        excess += (scale * ((part.shift[:n_topics] - product(eta)) ** 2 - variance)).sum(axis=0)
        for i in range(N_PROBES):
            probe = np.zeros((len(eta), width))
            probe[:, :n_topics] = normals((len(eta), n_topics), make_key(key, chain, i)) * own
            weight += (scale * product(probe) ** 2).sum(axis=0) / N_PROBES
    size = np.array([part.precision[:n_topics].T for part in parts]) * has[:, None]  # (chain, R, K)
    part_of = size / np.maximum(size.sum(axis=0), 1e-300)
    return (np.maximum(excess, 0.0) / np.maximum(weight, 1e-300))[:, None] * np.sum(part_of**2, axis=0)


def full(statistics: Statistics, r: int) -> np.ndarray:
    """The precision of a column as a whole matrix."""
    lower = unpack(statistics.precision, r, len(statistics.shift))
    return lower + np.tril(lower, -1).T


def packed(precisions: Sequence[np.ndarray], shift: np.ndarray) -> Statistics:
    """Statistics from a matrix for each column, and shift (width, R)."""
    rows = np.tril_indices(len(shift))
    return Statistics(np.array([P[rows] for P in precisions]).T, shift)


def reorder(statistics: Statistics, topics: np.ndarray) -> Statistics:
    """Statistics whose topics are in another order (K,); covariates stay behind them."""
    places = np.concatenate([topics, np.arange(len(topics), len(statistics.shift))])
    if statistics.is_diagonal:
        return Statistics(statistics.precision[places], statistics.shift[places])
    precisions = [full(statistics, r)[np.ix_(places, places)] for r in range(statistics.shift.shape[1])]
    return packed(precisions, statistics.shift[places])


def spread_out(statistics: Statistics, places: np.ndarray, width: int) -> Statistics:
    """Statistics among more columns; the other columns have no data."""
    precisions, shift = [], np.zeros((width, statistics.shift.shape[1]))
    if statistics.is_diagonal:
        precision = shift.copy()
        precision[places], shift[places] = statistics
        return Statistics(precision, shift)
    shift[places] = statistics.shift
    for r in range(shift.shape[1]):
        P = np.zeros((width, width))
        P[np.ix_(places, places)] = full(statistics, r)
        precisions.append(P)
    return packed(precisions, shift)


def marginal(statistics: Statistics, keep: np.ndarray) -> Statistics:
    """Statistics of some columns, the others integrated out under their prior."""
    if statistics.is_diagonal:
        return Statistics(statistics.precision[keep], statistics.shift[keep])
    n, shifts, precisions = len(statistics.shift), [], []
    rest = np.setdiff1d(np.arange(n), keep)
    for r in range(statistics.shift.shape[1]):
        P, s = full(statistics, r), statistics.shift[:, r]
        cross = P[np.ix_(keep, rest)]
        solved = np.linalg.solve(P[np.ix_(rest, rest)] + np.eye(len(rest)) / NU2_REPORTED, np.c_[cross.T, s[rest]])
        precisions.append(P[np.ix_(keep, keep)] - cross @ solved[:, :-1])
        shifts.append(s[keep] - cross @ solved[:, -1])
    return packed(precisions, np.array(shifts).T)
