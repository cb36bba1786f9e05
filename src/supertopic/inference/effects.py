"""Weights after the fit: regressions on documents that no chain used, and weights that differ between groups.

Topics are fixed here. The regressions are those of reported weights (`inference.reported`): the same response, the same
prior. Groups have levels and weights of their own. Shares of topics sum to 1, so that a group's level and a constant
that is added to all of its weights are the same thing. Weights of a group are therefore relative to its weight of the
usual mixture of topics, which the documents determine whatever the level is.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from supertopic.corpus.source import Target, select_target
from supertopic.inference.calibration import draw_weights, find_mode, newton_step
from supertopic.inference.regression import cut_documents, regression_engine
from supertopic.inference.reported import MANY, NU2_REPORTED, THIN
from supertopic.kernels.draws import make_key, normals
from supertopic.model.groups import draw_variance
from supertopic.model.posterior import Posterior
from supertopic.model.responses.base import Response
from supertopic.sampling import gibbs
from supertopic.sampling.plan import ETA, NEWTON, SCALE, VARIANCE, is_matrix_free
from supertopic.sampling.threads import ThreadEngine

N_DRAWS, FEWER_DRAWS = 400, 200  # and fewer of many responses or of many columns, without thinning
MANY_COLUMNS, MOST_COLUMNS = 300, 3000  # columns of a regression; the time of a draw grows with their third power
POOLED_BURN_IN = 100  # iterations: the variance between groups and their deviations settle together
EFFECTS, GROUPS = 1 << 38, 1 << 39  # paths of random numbers that no training iteration takes
BETWEEN = 10  # a purpose of random numbers beside those of a chain


class Evidence(NamedTuple):
    """Documents whose responses have not shaped their shares."""

    shares: np.ndarray  # (n, K): rows sum to 1; 0 for a document without words
    target: Target  # with the offset of regressions and standardised covariates
    response: Response  # the response that y was encoded with
    has: np.ndarray  # (chain, K): which topics each of some sets of topics has
    chain: np.ndarray  # (n,): whose topics the shares are of
    spread: np.ndarray  # (R, K): the variance of weights between these sets

    def part(self, docs: np.ndarray) -> "Evidence":
        """Some of the documents."""
        return self._replace(shares=self.shares[docs], target=select_target(self.target, docs), chain=self.chain[docs])


class NewWeights(NamedTuple):
    """Draws of weights in standard units."""

    topics: np.ndarray  # (n, R, K)
    covariates: np.ndarray  # (n, R, P)


class Groups(NamedTuple):
    """Groups of documents."""

    place: np.ndarray  # (n,): the number of each document's group
    size: int  # how many groups there are
    pooled: bool  # whether the variance between groups is estimated; else groups are compared with the first one

    @property
    def first(self) -> int:
        """The first group with columns of its own."""
        return 0 if self.pooled else 1


def estimate_effects(posterior: Posterior, evidence: Evidence, n_threads: int) -> NewWeights:
    """Draws of the weights of all topics and covariates, from one regression for each set of topics."""
    topics, covariates = [], []
    for place, x, target in each_set(posterior, evidence):
        key, n_topics = make_key(posterior.seed, place, EFFECTS), x.shape[1]
        draws = regress(x, target, evidence.response.reported(), None, key, n_threads)
        topics.append(draws[..., :n_topics])
        covariates.append(draws[..., n_topics:])
    wide = np.zeros((len(topics[0]), *posterior.own.shape))
    for part, columns, places in zip(topics, posterior.columns, posterior.places, strict=True):
        wide[:, columns, places] = part
    return NewWeights(wide, np.concatenate(covariates, axis=1))


def estimate_groups(posterior: Posterior, evidence: Evidence, groups: Groups, n_threads: int) -> np.ndarray:
    """Draws of the weights of topics in each group, (n, R, G, K), in standard units.

    They are relative to the group's weight of the usual mixture, which is that of all of these documents.
    """
    found = []
    for place, x, target in each_set(posterior, evidence):
        places, columns = posterior.places[place], posterior.columns[place]
        n_topics, key = x.shape[1], make_key(posterior.seed, place, GROUPS)
        x = np.hstack([x, other_topics(x, evidence.chain, evidence.has[:, places])])
        usual = x[:, :n_topics].sum(axis=0) / max(x[:, :n_topics].sum(), 1e-300)  # (K,)
        eta = regress(x, target, evidence.response.reported(), (groups, n_topics), key, n_threads)
        noise = normals((eta.shape[0] * eta.shape[1], n_topics), make_key(key, BETWEEN)).reshape(*eta.shape[:2], -1)
        mean = eta[..., :n_topics] + noise * np.sqrt(evidence.spread[columns, places])  # (n, R, K)
        own = np.zeros((*eta.shape[:2], groups.size, n_topics))
        deviations = eta[..., x.shape[1] : x.shape[1] + (groups.size - groups.first) * (n_topics + 1)]
        own[:, :, groups.first :] = deviations.reshape(*eta.shape[:2], -1, n_topics + 1)[..., :n_topics]
        weights = mean[:, :, None] + own
        found.append(weights - (weights @ usual)[..., None])
    wide = np.zeros((len(found[0]), len(posterior.own), groups.size, posterior.n_topics))
    for part, columns, places in zip(found, posterior.columns, posterior.places, strict=True):
        wide[:, columns, :, places] = part
    return wide


def each_set(posterior: Posterior, evidence: Evidence) -> Iterator[tuple[int, np.ndarray, Target]]:
    """For each set of topics its number, the shares of its topics (n, K), which sum to 1, and the target."""
    n_sets = len(posterior.topics)
    for i, (columns, places) in enumerate(zip(posterior.columns, posterior.places, strict=True)):
        target = evidence.target.column(columns.start) if n_sets > 1 else evidence.target
        yield i, evidence.shares[:, places] * n_sets, target


def other_topics(x: np.ndarray, chain: np.ndarray, has: np.ndarray) -> np.ndarray:
    """Separate columns (n, n_others) for chains that do not have a topic; shares x (n, K) become 0 there."""
    others = np.zeros((len(x), np.count_nonzero(~has)))
    for column, (own, topic) in zip(others.T, np.argwhere(~has), strict=True):
        docs = chain == own
        column[docs], x[docs, topic] = x[docs, topic], 0.0
    return others


def regress(
    x: np.ndarray, target: Target, response: Response, by: tuple[Groups, int] | None, key: np.uint64, n_threads: int
) -> np.ndarray:
    """Draws of the weights of columns x (n, m), of groups, and of covariates: (n_draws, R, m + ... + P).

    `by` are groups, and how many of the columns have weights that differ between them. After the columns come, for each
    group with columns of its own, the deviations of these weights, and its level.
    """
    n_docs, n_columns = target.weight.shape
    n_own = 0 if by is None else by[1] + 1
    n_beside = 0 if by is None else (by[0].size - by[0].first) * n_own
    width = x.shape[1] + n_beside

    def columns(docs: slice) -> np.ndarray:
        wide = np.zeros((docs.stop - docs.start, width), np.float32)
        wide[:, : x.shape[1]] = x[docs]
        if by is not None:
            groups, n_topics = by
            start = x.shape[1] + n_own * (groups.place[docs] - groups.first)
            rows = np.flatnonzero(groups.place[docs] >= groups.first)
            own = np.hstack([x[docs, :n_topics], np.ones((len(wide), 1))])[rows]
            wide[rows[:, None], start[rows][:, None] + np.arange(n_own)] = own
        return wide

    few = n_docs * n_columns <= MANY and width <= MANY_COLUMNS
    n_draws, thin = (N_DRAWS, THIN) if few else (FEWER_DRAWS, 1)
    many = by is None and is_matrix_free(width, target.covariates.shape[1])
    with regression_engine(columns, width, target, response, cut_documents(n_docs), n_threads, 0, many) as engine:
        if by is None or not by[0].pooled:
            known = engine.plan.no_statistics()
            draws = draw_weights(engine, response, NU2_REPORTED, known, n_draws, key, thin)
            return np.array([draw.eta for draw in draws])
        places = np.arange(x.shape[1], width).reshape(-1, n_own)
        return np.array(list(draw_pooled(engine, response, [places[:, :-1], places[:, -1]], n_draws, key, thin)))


def draw_pooled(
    engine: ThreadEngine, response: Response, parts: list[np.ndarray], n_draws: int, key: np.uint64, thin: int
) -> Iterator[np.ndarray]:
    """Draws of eta (R, width) where the prior variance of each of some parts of the columns is drawn, too.

    The square root of a variance has a half-Cauchy prior with scale 1: see `model.groups`.
    """
    width, n_columns = engine.plan.n_topics + engine.plan.n_covariates, engine.plan.n_columns
    variances, known = [np.ones(n_columns) for _ in parts], engine.plan.no_statistics()
    nu2 = prior_of(parts, variances, width)
    engine.restart(response)
    statistics = engine.statistics()
    if response.needs_newton:
        engine.regress(find_mode(engine, response, nu2, known))
        statistics = engine.augment(response, make_key(key, 1 << 30))  # after the last iteration
    burn_in = max(POOLED_BURN_IN, thin * response.burn_in)
    for i in range(burn_in + thin * n_draws):
        eta = gibbs.draw_eta(statistics, nu2, make_key(key, i, ETA))
        if response.needs_newton:
            eta = newton_step(engine, response, nu2, known, eta, make_key(key, i, NEWTON))
        engine.regress(eta)
        response = response.draw_scale(engine, make_key(key, i, SCALE))
        variances = [
            draw_variance(eta[:, part.ravel()], variance, make_key(key, i, VARIANCE, j))
            for j, (part, variance) in enumerate(zip(parts, variances, strict=True))
        ]
        nu2 = prior_of(parts, variances, width)
        if i >= burn_in and (i - burn_in) % thin == thin - 1:
            yield eta
        statistics = engine.augment(response, make_key(key, i))


def prior_of(parts: list[np.ndarray], variances: list[np.ndarray], width: int) -> np.ndarray:
    """The prior variance of all columns, (R, width), with that of some parts, (R,) each, in their places."""
    found = np.full((len(variances[0]), width), NU2_REPORTED)
    for part, variance in zip(parts, variances, strict=True):
        found[:, part.ravel()] = variance[:, None]
    return found
