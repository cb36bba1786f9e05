"""Who talks about what: the expected share of each topic by group, or along a number.

The method of composition (Treier and Jackman, 2008), as in R's stm: draw the topic shares of all documents, regress
them on what is known of each document, draw the coefficients from their sampling distribution, and pool many draws.
Under a prior that does not depend on the groups, shares would be shrunk towards the mean of the corpus, and differences
would be too small. So the prior of a document is Dirichlet(total m_d), where m_d is what the last draw of the
regression expects of it, and total is learned. Topics are those of the model and stay as they are.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma

from supertopic.corpus.tokens import Tokens, cut, make_tokens, take
from supertopic.inference.predict import Settings
from supertopic.kernels.counts import start_z
from supertopic.kernels.draws import document_streams, make_key, normals, uniforms
from supertopic.kernels.shares import draw_shares
from supertopic.model.posterior import Posterior, TopicSet
from supertopic.report.design import check_design, plain_design, read_variables
from supertopic.report.effects import TopicEffects
from supertopic.report.formula import formula_design
from supertopic.report.regression import Regression
from supertopic.report.topics import topic_labels, topic_names, vocabulary_of
from supertopic.sampling.pool import Pool, one_blas_thread
from supertopic.warn import warn

BURN_IN, SWEEPS = 50, 1  # regressions that are thrown away; sweeps before each regression, where more do not help
LEAST_SHARE = 0.005  # smallest prior share of a topic, times K: the regression may expect a share below 0
LEAST_TOTAL, MOST_TOTAL = 1e-2, 1e4  # bounds of the sum of a document's Dirichlet prior
FAR = 4.0  # largest ratio of that sum to the sum of the model's alpha; above it a warning is given
SHARES = 1 << 33  # a path of random numbers that neither training nor predictions take
START, SWEEP, NOISE, CLUSTERS, TAILS = range(5)


class Draws(NamedTuple):
    """Draws of the coefficients of some topics."""

    fits: np.ndarray  # (n, p, K): least squares of drawn shares
    errors: np.ndarray  # (n, p, K): draws of their sampling errors
    total: float  # the sum of the Dirichlet prior of a document, in the mean of the draws


def topic_effects(
    posterior: Posterior, counts: csr_array, by: Any, settings: Settings, *, formula: str | None = None,
    groups: Any = None, level: float = 0.9, n_draws: int = 500, seed: int = 0,
) -> TopicEffects:  # fmt: skip
    """The expected share of each topic, by what is known of each document."""
    n_docs, lengths = counts.shape[0], np.asarray(counts.sum(axis=1)).ravel()
    variables = read_variables(by, n_docs)
    if posterior.supervised and posterior.doc_topic is not None and len(posterior.doc_topic) == n_docs:
        warn(
            "These may be the documents of the fit. The topics depend on their responses, so differences between "
            "groups that are related to the response come out too large. Pass documents that the model was not fitted "
            "to."
        )
    cluster = np.arange(n_docs) if groups is None else read_clusters(groups, n_docs)
    some = lengths > 0
    if not some.any():
        raise ValueError(f"None of the {n_docs} documents has a known word. Were they made as those of the fit?")
    if not some.all():
        warn(f"{n_docs - some.sum()} of {n_docs} documents have no known words; they are left out.")
        counts, cluster = counts[some], cluster[some]
        variables = {name: variable.part(some) for name, variable in variables.items()}
    design = plain_design(variables) if formula is None else formula_design(formula, variables)
    check_design(design, int(some.sum()))
    cluster = np.unique(cluster, return_inverse=True)[1]
    if cluster.max() < 1:
        raise ValueError("groups has one group only: the sampling error cannot be estimated. Leave groups out.")
    regression = Regression(design.matrix, cluster)
    per_chain = -(-n_draws // posterior.n_chains)
    with one_blas_thread:
        fits, errors = draw_all(posterior, make_tokens(counts), regression, per_chain, seed, settings.n_threads)
    tails = uniforms(len(fits), make_key(seed, SHARES, TAILS))
    labels = topic_labels(posterior, vocabulary_of(posterior))
    return TopicEffects(design, regression, fits, errors, tails, topic_names(posterior), labels, float(level))


def read_clusters(groups: Any, n_docs: int) -> np.ndarray:
    """The cluster of each document as a number, (n_docs,)."""
    found = read_variables(groups, n_docs, "groups")
    if len(found) != 1:
        raise ValueError(f"groups must have one value for each document, got {len(found)} columns.")
    return np.unique(next(iter(found.values())).values, return_inverse=True)[1]


def draw_all(
    posterior: Posterior, tokens: Tokens, regression: Regression, n_draws: int, seed: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws of all chains that have each topic, in the common order of topics: fits and errors, (n, p, K) each."""
    pool, chains, mixed = Pool(n_threads), [], []
    try:
        for chain in range(posterior.n_chains):
            parts = []
            for place, topics in enumerate(posterior.topics):
                key = make_key(seed, SHARES, place * posterior.n_chains + chain)
                parts.append(draw_chain(topics, chain, tokens, regression, n_draws, key, pool))
                mixed.append(parts[-1].total / topics.alpha[chain].sum())
            order, n_sets = posterior.order[chain], len(parts)
            fits, errors = (np.concatenate([part[i] for part in parts], axis=2)[..., order] / n_sets for i in (0, 1))
            chains.append((fits, errors))
    finally:
        pool.close()
    ratio = float(np.median(mixed))
    if ratio > FAR:
        warn(
            f"These documents mix topics {ratio:.0f} times as much as the alpha of the model says, which distorts its "
            "topics, and with them differences between groups. Fit with optimize_priors=True."
        )
    fits, errors = (posterior.consensus.pool(np.stack(draws)) for draws in zip(*chains, strict=True))
    return fits, errors


def draw_chain(
    topics: TopicSet, chain: int, tokens: Tokens, regression: Regression, n_draws: int, key: np.uint64, pool: Pool
) -> Draws:
    """Draws under the topics of one chain: shares given the regression and the regression given the shares, in turn."""
    phi, alpha = np.ascontiguousarray(np.maximum(topics.phi(chain), 1e-37)), topics.alpha[chain]
    n_docs, n_topics, lengths = len(tokens.doc_start) - 1, len(alpha), np.diff(tokens.doc_start)
    z = np.empty(len(tokens.word), np.uint16)
    start_z(z, tokens.doc_start, n_topics, document_streams(make_key(key, START), 0, n_docs))
    counts, shares = np.empty((n_docs, n_topics)), np.empty((n_docs, n_topics))
    total, mean = float(alpha.sum()), np.tile(alpha / alpha.sum(), (n_docs, 1))  # of the prior
    parts = cut(tokens.doc_start, pool.n_threads)
    fits, errors, totals = [], [], []

    def sweep(docs: slice) -> None:
        start, end = tokens.doc_start[docs.start], tokens.doc_start[docs.stop]
        draw_shares(take(tokens, docs), z[start:end], phi, prior[docs], stream, docs.start, SWEEPS, counts[docs],
                    shares[docs])  # fmt: skip

    for i in range(BURN_IN + n_draws):
        prior, stream = total * mean, make_key(key, SWEEP, i)
        pool.map(sweep, parts)
        total = learn_total(total, mean, counts, lengths)
        fit = regression.fit(shares)
        noise = normals((1, regression.n_clusters), make_key(key, NOISE, i))[0]
        error = regression.error(shares - regression.design @ fit, noise)
        expected = regression.design @ (fit + error)
        if regression.clustered:
            expected += draw_clusters(regression, shares, fit, expected, make_key(key, CLUSTERS, i))
        mean = np.maximum(expected, LEAST_SHARE / n_topics)
        mean /= mean.sum(axis=1, keepdims=True)
        if i >= BURN_IN:
            fits.append(fit)
            errors.append(error)
            totals.append(total)
    return Draws(np.array(fits), np.array(errors), float(np.mean(totals)))


def learn_total(total: float, mean: np.ndarray, counts: np.ndarray, lengths: np.ndarray) -> float:
    """One step towards the most likely sum of the Dirichlet prior whose mean is known (Minka, 2000)."""
    prior = total * mean
    up = (mean * (digamma(counts + prior) - digamma(prior))).sum()
    down = (digamma(lengths + total) - digamma(total)).sum()
    return float(np.clip(total * up / down, LEAST_TOTAL, MOST_TOTAL))


def draw_clusters(
    regression: Regression, shares: np.ndarray, fit: np.ndarray, expected: np.ndarray, key: np.uint64
) -> np.ndarray:
    """A draw of the effect of each document's cluster on its shares, (n_docs, K), from a normal distribution.

    Without it the documents of a cluster would be shrunk towards all others, and clusters would seem too alike. The
    variance between clusters is that of an analysis of variance.
    """
    members, cluster, (n_docs, n_columns) = regression.members, regression.cluster, regression.design.shape
    sizes = np.asarray(members.sum(axis=1)).reshape(-1, 1)  # (n_clusters, 1)
    n_clusters = len(sizes)
    residuals = shares - regression.design @ fit
    means = members @ residuals / sizes  # (n_clusters, K)
    within = ((residuals - means[cluster]) ** 2).sum(axis=0) / max(n_docs - n_clusters, 1)
    excess = (sizes * means**2).sum(axis=0) - max(n_clusters - n_columns, 1) * within
    between = np.maximum(excess / (n_docs - (sizes**2).sum() / n_docs), 0.0)
    weight = between / np.maximum(between + within / sizes, 1e-300)
    effects = weight * (members @ (shares - expected) / sizes)
    effects += np.sqrt(between * (1.0 - weight)) * normals(means.shape, key)
    return effects[cluster]
