"""The draw of eta, and the draw of the topics, against their definitions."""

import numpy as np
from scipy import stats

from small import ALARM, ERRORS, engine_of, plan_of
from supertopic.corpus.source import make_target
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Logistic
from supertopic.model.state import Priors, Statistics
from supertopic.sampling.gibbs import draw_eta


def test_eta_has_the_mean_and_the_covariance_of_its_posterior():
    """Solving with L instead of its transpose would keep the mean and hardly change any moment of z."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2, 6, 3)) * [3.0, 1.0, 0.3]
    precision, shift, nu2 = np.einsum("rij,rik->jkr", A, A), rng.normal(size=(3, 2)), 0.7
    total = Statistics(precision[np.tril_indices(3)], shift)
    n = 20_000
    draws = np.array([draw_eta(total, nu2, make_key(1, i)) for i in range(n)])  # (n, R, K)
    for r in range(2):
        covariance = np.linalg.inv(np.eye(3) / nu2 + precision[:, :, r])
        mean = covariance @ shift[:, r]
        scores = (draws[:, r].mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / n)
        assert np.abs(scores).max() < 4
        sd = np.sqrt(np.diag(covariance))
        spread = np.sqrt((1 + (covariance / np.outer(sd, sd)) ** 2) / n)  # of an entry of the correlation matrix
        found = np.cov(draws[:, r].T) / np.outer(sd, sd)
        assert (np.abs(found - covariance / np.outer(sd, sd)) / spread).max() < 4.5


def test_phi_is_dirichlet():
    counts = np.array([[0, 3], [5, 0], [1, 1], [0, 0]], np.int32)
    docs = [[w] * n for w, row in enumerate(counts) for n in row]
    z = [k for row in counts for k, n in enumerate(row) for _ in range(n)]
    nothing = np.zeros((len(docs), 0))
    plan, source = plan_of(docs, 4, Logistic(1.0), make_target(nothing, nothing), Priors(np.ones(2), 0.5, 1.0), "drawn")
    engine = engine_of(plan, source, z, Logistic(1.0), nothing, np.zeros((0, 2)))
    draws = np.array([engine.counts.draw_phi(0.5, make_key(3, i)).reshape(4, -1) for i in range(4000)])
    assert (draws[:, :, 2:] == 0).all()
    np.testing.assert_allclose(draws.sum(axis=1)[:, :2], 1, rtol=1e-5)
    for k in range(2):
        shape = counts[:, k] + 0.5
        for w in range(4):
            assert stats.kstest(draws[:, w, k], stats.beta(shape[w], shape.sum() - shape[w]).cdf).pvalue > ALARM


def test_the_smallest_of_phi_are_gammas_too():
    """2,000 words that a topic does not have, beta = 0.01: how many are above exp(-40), to five standard errors."""
    nothing, n = np.zeros((1, 0)), 2000
    priors = Priors(np.ones(1), 0.01, 1.0)
    plan, source = plan_of([[0] * 50], n, Logistic(1.0), make_target(nothing, nothing), priors, "drawn")
    engine = engine_of(plan, source, [0] * 50, Logistic(1.0), nothing, np.zeros((0, 1)))
    found = []
    for i in range(5):
        phi = engine.counts.draw_phi(0.01, make_key(4, i)).reshape(n, -1)[:, 0]
        found.append(np.sum(phi[1:] > np.exp(-40) / 50))  # phi[0] is about 1, a gamma of 50
    p = stats.gamma(0.01).sf(np.exp(-40))
    assert abs(np.sum(found) - 5 * n * p) < ERRORS * np.sqrt(5 * n * p * (1 - p))
