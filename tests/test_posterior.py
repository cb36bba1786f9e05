"""The chain leaves the exact posterior where it is: enumeration of a corpus of six tokens, and Geweke's test."""

import numpy as np
import pytest
from scipy import stats

import naive
from supertopic import gibbs
from supertopic.corpus import Tokens
from supertopic.draws import make_key, polya_gammas
from supertopic.engines import Threads
from supertopic.gibbs import Priors, iterate, start
from supertopic.responses import Logistic, Target
from supertopic.shard import Shard

DOCS = [[0, 1, 2], [0, 0], [], [2]]
N_WORDS, BETA = 3, 0.5


@pytest.fixture(params=["collapsed", "drawn", "drawn, sparse"])
def sampler(request, monkeypatch):
    """Every exact sampler; the sparse one is for many topics, so here it is told that few are many."""
    name, _, sparse = request.param.partition(", ")
    monkeypatch.setattr(gibbs, "SPARSE_FROM", 1 if sparse else 10**6)
    return name


def make_shard(docs, z, n_topics, response, target):
    word = np.array([w for words in docs for w in words], np.int32)
    starts = np.cumsum([0] + [len(words) for words in docs]).astype(np.int64)
    shard = Shard(Tokens(word, starts), 0, n_topics, response, target)
    shard.z[:] = [k for topics in z for k in topics]
    return shard


def run(shard, priors, sampler, key, n_iterations):
    """Some iterations of Algorithm 1 from the shard's own z and lam; returns the last eta."""
    with Threads([shard], 1) as engine:
        state = start(engine, N_WORDS, priors)
        for i in range(n_iterations):
            eta, state = iterate(engine, state, priors, sampler, make_key(key, i))
    check = np.zeros_like(state.word_topic)
    shard.add_counts(check)
    assert (check == state.word_topic).all()  # counts are conserved
    return eta


def compare(counts, p, etas, mean, square):
    """A chi-square of the visits to each z (rare states pooled), and z-scores of the moments of eta."""
    n = counts.sum()
    rare = p * n < 5
    observed, expected = np.append(counts[~rare], counts[rare].sum()), n * np.append(p[~rare], p[rare].sum())
    if expected[-1] < 5:
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
    assert stats.chisquare(observed, expected).pvalue > 1e-3
    for power, truth in ((1, mean), (2, square)) if etas.size else ():
        values = etas**power
        score = (values.mean(axis=0) - truth) / (values.std(axis=0) / np.sqrt(len(values)))
        assert np.abs(score).max() < 4


Y = {  # a binary column; two columns, one of them constant; an unknown label
    "binary": ([[1], [0], [1], [0]], [[1], [1], [1], [1]]),
    "two columns": ([[1, 1], [0, 1], [1, 1], [0, 1]], [[1, 1], [1, 1], [1, 1], [1, 1]]),
    "missing": ([[1], [0], [0], [0]], [[1], [0], [1], [1]]),
    "weighted": ([[1], [0], [0], [0]], [[0.5], [2], [1], [1]]),
    "none": ([[], [], [], []], [[], [], [], []]),
}


@pytest.mark.parametrize(
    ("case", "n_topics", "c", "alpha"),
    [
        ("binary", 2, 4.0, [1.0, 0.5]),
        ("binary", 3, 1.0, [0.7, 0.4, 0.9]),
        ("two columns", 2, 2.5, [0.5, 0.5]),
        ("missing", 2, 4.0, [0.5, 0.5]),
        ("weighted", 2, 2.0, [0.5, 0.5]),
        ("none", 3, 1.0, [0.5, 0.5, 0.5]),
    ],
)
def test_exact_posterior(sampler, case, n_topics, c, alpha):
    y, weight = (np.array(a, float).reshape(4, -1) for a in Y[case])
    alpha, nu2, n_replicates = np.array(alpha), 2.0, 6000
    points = np.linspace(-8, 8, 41 if n_topics == 2 else 23)
    states, p, mean, square, grid, etas = naive.exact_posterior(
        DOCS, y, weight, N_WORDS, n_topics, alpha, BETA, nu2, naive.logistic(c), points
    )
    rng = np.random.default_rng([n_topics, int(10 * c), len(case)])
    index = {tuple(k for t in z for k in t): s for s, z in enumerate(states)}
    counts, drawn = np.zeros(len(p)), []
    for replicate in range(n_replicates):
        s = rng.choice(len(p), p=p)
        shard = make_shard(DOCS, states[s], n_topics, Logistic(c), Target(y, weight))
        if y.shape[1]:  # an exact start: z from its marginal, eta given z, lam given both
            eta = np.array([grid[rng.choice(len(grid), p=q)] for q in etas[s]])
            omega = naive.zbars(states[s], n_topics) @ eta.T
            lam = polya_gammas(c * weight, omega, make_key(replicate, 1), 0)
            shard.quadratic = shard.quadratic._replace(lam=lam)
        drawn.append(run(shard, Priors(alpha, BETA, nu2), sampler, make_key(replicate, 2), 3))
        counts[index[tuple(shard.z.tolist())]] += 1
    compare(counts, p, np.array(drawn), mean, square)


def test_geweke(sampler):
    """Draws from the prior have the same moments as a chain that alternates Gibbs steps with new data (c = 1)."""
    alpha, nu2, n_topics, lengths = np.array([0.8, 0.4, 0.6]), 1.5, 3, [4, 1, 7, 3]
    priors = Priors(alpha, BETA, nu2)
    rng = np.random.default_rng(5)

    def new_words(z):
        phi = rng.dirichlet(np.full(N_WORDS, BETA), n_topics)
        return [[rng.choice(N_WORDS, p=phi[k]) for k in topics] for topics in z]

    def new_labels(z, eta):
        return (rng.random((len(z), 2)) < 1 / (1 + np.exp(-naive.zbars(z, n_topics) @ eta.T))).astype(float)

    def summary(docs, z, eta, y):
        """Quantities of every part of the model, and products that link the parts."""
        zbar = naive.zbars(z, n_topics)
        omega = zbar @ eta.T
        word_0 = np.array(
            [[w == 0 and k == 0 for w, k in zip(*both, strict=True)].count(True) for both in zip(docs, z, strict=True)]
        )
        return np.concatenate([
            zbar[2], zbar[0] * zbar[2], eta[0], eta[0] ** 2, eta[0] * eta[1], omega[:, 0] ** 2, word_0, word_0**2,
            (y * omega).sum(axis=1), y.mean(axis=0), [(zbar[0] @ zbar[2]) ** 2],
        ])  # fmt: skip

    prior, posterior = [], []
    for _ in range(4000):
        eta = rng.normal(0, np.sqrt(nu2), (2, n_topics))
        z = [list(rng.choice(n_topics, n, p=rng.dirichlet(alpha))) for n in lengths]
        docs, y = new_words(z), new_labels(z, eta)
        prior.append(summary(docs, z, eta, y))
        # from this exact joint draw, a few rounds of (Gibbs, new data) must lead to another one
        lam = polya_gammas(np.ones_like(y), naive.zbars(z, n_topics) @ eta.T, make_key(len(prior), 1), 0)
        for i in range(3):
            shard = make_shard(docs, z, n_topics, Logistic(1.0), Target(y, np.ones_like(y)))
            shard.quadratic = shard.quadratic._replace(lam=lam)
            eta = run(shard, priors, sampler, make_key(len(prior), 2, i), 1)
            z = [list(map(int, t)) for t in np.split(shard.z, np.cumsum(lengths)[:-1])]
            docs, y, lam = new_words(z), new_labels(z, eta), shard.quadratic.lam
        posterior.append(summary(docs, z, eta, y))
    prior, posterior = np.array(prior), np.array(posterior)
    score = (prior.mean(0) - posterior.mean(0)) / np.sqrt((prior.var(0) + posterior.var(0)) / len(prior))
    assert np.abs(score).max() < 4
