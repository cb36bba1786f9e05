"""Words and features beside topics: rows, weights and their spread against other ways to the same numbers."""

import itertools
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as PlainRidge

from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor, load, save
from supertopic.corpus.source import make_target, select_target
from supertopic.datasets import make_corpus
from supertopic.inference import beside
from supertopic.inference import held_out_predictions as held_out_room
from supertopic.inference import linear as linear_room
from supertopic.inference import weights as weights_room
from supertopic.inference.beside import Folds, Part, Past, Problem, Seen, learn_beside
from supertopic.inference.blocks import DenseBlock, SparseBlock, make_block
from supertopic.inference.contributions import describe_contributions, shapley, variance_shares
from supertopic.inference.factors import DrawnFactors
from supertopic.inference.ridge import Ridge
from supertopic.inference.shrinkage import (
    COVARIATES,
    SCALE,
    TOPICS,
    HeldOutDraws,
    Shrinkage,
    estimate_shrinkage,
    estimate_spread,
    pair_grid,
)
from supertopic.model.linear import WordWeights, count_documents, make_dictionary, times
from supertopic.model.responses import Gaussian, Hinge, Logistic, NegativeBinomial
from supertopic.sampling.pool import Pool

RUN = {"burn_in": 30, "n_draws": 10, "n_chains": 2, "random_state": 0}
KINDS = (SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor)
RESPONSES = [
    Logistic(9.0), Logistic(9.0, classes=np.arange(3)), Hinge(2.0, 1.0), Gaussian(3.0, np.full(3, 0.7)),
    NegativeBinomial(2.0, np.array([0.5, 2.0, 9.0])),
]  # fmt: skip
ONE = Pool(1)


def fit_ridge(blocks, response, target, penalties, variances=None, exact=1e-9):
    """The weights of each block."""
    variances = [None] * len(blocks) if variances is None else variances
    ridge = Ridge([make_block(x, ONE) for x in blocks], variances, response, target, target.offset)
    return ridge, ridge.theta(ridge.solve(penalties, None, exact))


@pytest.fixture(scope="module")
def verdicts():
    """Labels that hang on two topics, and on two words that all topics use alike."""
    corpus = make_corpus(n_docs=1200, n_words=200, n_topics=4, eta=[-2.0, -1.0, 1.0, 2.0], random_state=0)
    rng = np.random.default_rng(1)
    said = rng.random((1200, 2)) < 0.3
    X = np.hstack([corpus.X.toarray(), said.astype(int)])
    omega = corpus.doc_topic @ corpus.eta + said @ [3.0, -3.0]
    return csr_array(X), omega, (rng.random(1200) < 1 / (1 + np.exp(-omega))).astype(int)


def test_rows_are_scikit_learns(verdicts):
    X = verdicts[0]
    dictionary = make_dictionary(count_documents(X), 1)
    n_docs = np.asarray((X > 0).sum(axis=0)).ravel()
    np.testing.assert_array_equal(dictionary.word, np.flatnonzero(n_docs > 1))
    some = X[:, dictionary.word]
    np.testing.assert_allclose(
        dictionary.rows(X).toarray(), TfidfTransformer(sublinear_tf=True).fit_transform(some).toarray()
    )
    assert dictionary.rows(X[:0]).shape == (0, len(dictionary.word))
    assert (dictionary.rows(csr_array(X.shape, dtype=int)).toarray() == 0).all()


def test_the_most_common_words_have_weights_where_there_are_too_many(verdicts, monkeypatch):
    monkeypatch.setattr("supertopic.model.linear.MOST_WEIGHTS", 60)
    X = verdicts[0]
    n_docs = np.asarray((X > 0).sum(axis=0)).ravel()
    chosen = make_dictionary(count_documents(X), 3).word
    assert len(chosen) == 20 and n_docs[chosen].min() >= np.sort(n_docs)[-20]


@pytest.mark.parametrize("response", RESPONSES, ids=lambda r: type(r).__name__)
def test_slopes(response):
    rng = np.random.default_rng(0)
    y = np.eye(3)[rng.integers(0, 3, 8)] if isinstance(response, Logistic) else rng.integers(0, 2, (8, 3)).astype(float)
    target = make_target(y, np.repeat(rng.random((8, 1)), 3, axis=1))
    omega, change = rng.normal(size=(2, 8, 3))
    value, slope = response.cost(target, omega)
    near = [response.cost(target, omega + step * change)[0] for step in (-1e-5, 1e-5)]
    assert (near[1] - near[0]) / 2e-5 == pytest.approx((slope * change).sum(), rel=1e-6)
    if isinstance(response, Logistic) and not response.exclusive:
        assert value == pytest.approx(-Logistic(1.0).log_likelihood(target, omega).sum())


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_are_those_of_logistic_regression(n_classes):
    rng = np.random.default_rng(0)
    x = csr_array(rng.random((300, 12)) * (rng.random((300, 12)) < 0.5))
    y = rng.integers(0, n_classes, 300)
    y[:150] = (3 * x.toarray()[:150, 0]).astype(int) % n_classes
    weight = rng.exponential(size=300)
    columns = y[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[y]
    target = make_target(columns, np.repeat(weight[:, None], columns.shape[1], axis=1))
    response = Logistic(25.0, classes=np.arange(n_classes))
    assert response.exclusive == (n_classes > 2)
    other = LogisticRegression(C=7.0, fit_intercept=False, tol=1e-8, max_iter=1000).fit(x, y, weight)
    for rows in (x, x.toarray()):
        (theta,) = fit_ridge([rows], response, target, [7.0])[1]
        if n_classes > 2:  # a constant of all classes changes no probability
            theta = theta - theta.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(theta.T, other.coef_, atol=0.02)


def test_weights_are_those_of_ridge_regression():
    """One block, two with prior variances of their own, one that stays out, and priors of single weights."""
    rng = np.random.default_rng(0)
    x, y, offset, weight = rng.random((200, 9)), *rng.normal(size=(2, 200, 1)), rng.exponential(size=200)
    target, response = make_target(y, weight[:, None], offset), Gaussian(8.0, np.full(1, 3.0))

    def exact(x, variance):
        precision = (x.T * weight) @ x / 3.0 + np.diag(1.0 / variance)
        return np.linalg.solve(precision, (x.T * weight) @ (y - offset)[:, 0] / 3.0)

    (theta,) = fit_ridge([csr_array(x)], response, target, [4.0])[1]
    other = PlainRidge(alpha=3.0 / 4.0, fit_intercept=False).fit(x, (y - offset).ravel(), weight)
    np.testing.assert_allclose(theta.ravel(), other.coef_, atol=3e-3)
    both = fit_ridge([csr_array(x[:, :5]), x[:, 5:]], response, target, [4.0, 0.3])[1]
    variance = np.repeat([4.0, 0.3], [5, 4])
    np.testing.assert_allclose(np.concatenate(both).ravel(), exact(x, variance), atol=3e-3)
    silent = fit_ridge([csr_array(x[:, :5]), x[:, 5:]], response, target, [4.0, 0.0])[1]
    np.testing.assert_allclose(silent[0].ravel(), exact(x[:, :5], np.full(5, 4.0)), atol=3e-3)
    assert not silent[1].any()
    each = rng.exponential(size=(9, 1)).astype(np.float32)
    (theta,) = fit_ridge([csr_array(x)], response, target, [2.0], [each])[1]
    np.testing.assert_allclose(theta.ravel(), exact(x, 2.0 * each.ravel()), atol=3e-3)


@pytest.mark.parametrize("response", RESPONSES, ids=lambda r: type(r).__name__)
def test_the_cost_is_that_of_another_optimiser(response):
    rng = np.random.default_rng(0)
    x, n = rng.random((60, 8)), rng.integers(0, 3, 60)
    y = np.eye(3)[n] if isinstance(response, Logistic) else rng.integers(0, 2, (60, 3)).astype(float)
    target = make_target(y, np.repeat(rng.random((60, 1)), 3, axis=1))

    def cost(theta):
        value, slope = response.cost(target, x @ theta.reshape(8, 3))
        return value + 0.25 * theta @ theta, (x.T @ slope).ravel() + 0.5 * theta

    (theta,) = fit_ridge([csr_array(x)], response, target, [2.0])[1]
    best = minimize(cost, np.zeros(24), jac=True, method="L-BFGS-B").fun
    assert cost(theta.ravel().astype(float))[0] == pytest.approx(
        best, rel=0.02 if isinstance(response, Hinge) else 1e-4
    )


def test_directions_are_orthonormal_and_can_be_used_again():
    """In the metric of x S x', column by column; a direction that adds nothing is 0."""
    rng = np.random.default_rng(0)
    x, variance = rng.random((50, 30)), rng.exponential(size=(30, 2)).astype(np.float32)
    y = rng.normal(size=(50, 2))
    target = make_target(y, np.ones_like(y))
    ridge, _ = fit_ridge([csr_array(x)], Gaussian(1.0, np.ones(2)), target, [1.0], [variance])
    (span,) = ridge.spans
    for r in range(2):
        metric = x @ np.diag(variance[:, r].astype(float)) @ x.T
        a = span.a[r, : span.size].astype(float)
        np.testing.assert_allclose(a @ metric @ a.T, np.eye(span.size), atol=1e-3)
        np.testing.assert_allclose(span.omega[r, : span.size], a @ metric, atol=1e-3)
    size = span.size
    span.add(span.at(rng.normal(size=(size, 2))))
    assert not span.a[:, size].any() and not span.omega[:, size].any()
    for penalty in (0.1, 5.0):  # from the same directions
        again = ridge.theta(ridge.solve([penalty], None, 1e-9))[0]
        alone = fit_ridge([csr_array(x)], Gaussian(1.0, np.ones(2)), target, [penalty], [variance])[1][0]
        np.testing.assert_allclose(again, alone, atol=2e-3)


def test_products_do_not_depend_on_threads_or_batches():
    rng = np.random.default_rng(0)
    x = csr_array(rng.random((700, 400)) * (rng.random((700, 400)) < 0.3))
    weights, slope = rng.normal(size=(400, 20)), rng.normal(size=(700, 20))
    pools = [Pool(1), Pool(3)]
    for kind, rows in ((SparseBlock, x), (DenseBlock, x.toarray())):
        one, many = (kind(rows, pool) for pool in pools)
        for verb, given in (("omega", weights), ("gather", slope), ("gather_squares", slope)):
            np.testing.assert_array_equal(getattr(one, verb)(given), getattr(many, verb)(given))
        np.testing.assert_allclose(one.omega(weights), x @ weights, atol=1e-3)
        np.testing.assert_allclose(one.gather(slope), x.T @ slope, atol=1e-3)
        np.testing.assert_allclose(one.gather_squares(slope), x.power(2).T @ slope, atol=1e-3)
        some = slope[:, 0] > 0
        np.testing.assert_allclose(one.select(some).omega(weights), one.omega(weights)[some], atol=1e-4)
    for rows in (x, x.toarray()):
        whole = times(rows, weights)
        np.testing.assert_allclose(whole, x @ weights)
        np.testing.assert_allclose(times(rows, weights**2, squared=True), x.power(2) @ weights**2)
        np.testing.assert_array_equal(times(rows[7:9], weights), whole[7:9])
    pools[1].close()


def problem_of(x, y, response):
    columns = y[:, None].astype(float)
    return Problem([Part(x)], np.arange(len(y)), response, make_target(columns, np.ones_like(columns)), ONE)


def test_a_penalty_that_fits(verdicts):
    X, omega, y = verdicts
    x, coins = make_dictionary(count_documents(X), 1).rows(X), np.random.default_rng(0).integers(0, 2, len(y))
    (noise,), (signal,) = (Folds(problem_of(x, labels, Logistic(1.0))).best() for labels in (coins, y))
    assert noise <= beside.PENALTIES[2] and signal >= 1.0
    (close,) = Folds(problem_of(x, omega / 100, Gaussian(1.0, np.full(1, 1e-4)))).best()  # a loss below 0
    assert close > beside.PENALTIES[2]
    random = np.random.default_rng(1).normal(size=(len(y), 40)) / np.sqrt(40)
    problem = problem_of(x, y, Logistic(1.0))
    found = Folds(replace(problem, parts=[Part(x), Part(random)])).best()
    assert found[0] >= 1.0 and found[1] <= beside.PENALTIES[2]


def test_folds_are_other_documents(verdicts):
    """omega of a fold is that of a regression on the others; the jackknife is by its definition."""
    X, _, y = verdicts
    x = make_dictionary(count_documents(X), 1).rows(X)
    problem = problem_of(x, y, Logistic(1.0))
    folds, fold = Folds(problem), beside.make_folds(len(y))[0]
    added, thetas = folds.added((5.0,), [], np.full(1, 1.5)), []
    for i in range(3):
        target = select_target(problem.target, fold != i)
        thetas.append(fit_ridge([x[fold != i]], Logistic(1.0), target, [5.0])[1][0])
        np.testing.assert_allclose(added[fold == i], 1.5 * (x[fold == i] @ thetas[-1]), atol=0.03)
    theta = fit_ridge([x], Logistic(1.0), problem.target, [5.0])[1][0]
    rows = np.arange(0, len(y), 7)
    whole, away = x[rows] @ theta, []
    for other in thetas:  # that all weights are smaller is no variance
        ratio = np.linalg.lstsq(whole, x[rows] @ other, rcond=None)[0]
        away.append(np.mean((x[rows] @ other - whole @ ratio) ** 2))
    expected = 2.0 * np.mean(away)
    variance, growth = folds.compare((5.0,), [theta], [Part(x[rows])])
    assert variance == pytest.approx(expected, rel=0.02)
    smaller = [np.sqrt(np.mean((x[rows] @ other) ** 2) / np.mean(whole**2)) for other in thetas]
    assert growth[0] == pytest.approx(1.0 / np.mean(smaller), rel=0.01)
    assert folds.compare((5.0,), [theta], [Part(x[:0])])[1].tolist() == [1.0]


def test_omega_of_seen_documents_is_as_large_as_that_of_new_ones():
    """Where words are many, weights from two thirds of the documents are smaller."""
    rng = np.random.default_rng(3)
    truth, ratios = 3.0 * rng.normal(size=(900, 1)), []
    for _ in range(4):
        x = csr_array(rng.random((700, 900)) * (rng.random((700, 900)) < 0.05) / 4.0)
        y = (rng.random((700, 1)) < expit(x @ truth)).astype(float)
        seen, held_out = np.arange(700) < 400, (np.arange(700) >= 400) & (np.arange(700) < 450)
        parts = [Seen(np.flatnonzero(some), make_target(y[some], np.ones_like(y[some]))) for some in (seen, held_out)]
        fit = learn_beside([Part(x)], *parts, Logistic(1.0), ONE)
        new = x[np.arange(700) >= 450] @ fit.theta[0]
        ratios.append(np.sqrt((fit.grown**2).mean() / (new**2).mean()))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.08)


def test_the_spread_of_omega_is_that_of_other_samples():
    """The variance that a fit reports, against that over fits to other documents."""
    rng = np.random.default_rng(0)
    truth, new = rng.normal(size=(60, 1)), csr_array(rng.random((200, 60)) * (rng.random((200, 60)) < 0.2))

    def sample(n):
        x = csr_array(rng.random((n, 60)) * (rng.random((n, 60)) < 0.2))
        return x, (rng.random((n, 1)) < expit(x @ truth - 0.3)).astype(float)

    omegas, reported = [], []
    for _ in range(30):
        x, y = sample(500)
        target = make_target(y, np.ones_like(y))
        held_out = np.arange(500) % 10 == 0
        parts = [Seen(np.flatnonzero(mask), select_target(target, mask)) for mask in (~held_out, held_out)]
        fit = learn_beside([Part(x)], *parts, Logistic(1.0), ONE)
        omegas.append(new @ fit.theta[0])
        reported.append((new.power(2) @ fit.variance[0]).mean())
    assert np.mean(reported) == pytest.approx(np.var(omegas, axis=0).mean(), rel=0.5)


def test_held_out_documents_are_predicted_as_if_they_were_new():
    """With weights from all documents but those of their fold, and from rows in which they are not counted."""
    rng, fold = np.random.default_rng(4), np.arange(40) % 4 - 1  # the responses of every fourth one are unknown
    x = csr_array(rng.random((240, 8)) * (rng.random((240, 8)) < 0.5))
    y = x @ rng.normal(size=(8, 1)) + rng.normal(size=(240, 1))
    weight = np.ones_like(y)
    weight[200:][fold < 0] = 0.0
    target, new = make_target(y, weight), csr_array(0.9 * x[200:])
    parts = [Seen(docs, select_target(target, docs)) for docs in (np.arange(200), np.arange(200, 240))]
    response = Gaussian(1.0, np.ones(1))
    fit = learn_beside([Part(x, new=new)], *parts, response, ONE, fold=fold)
    penalty = fit.past[0].penalty
    for i in range(3):
        others = np.r_[np.arange(200), 200 + np.flatnonzero(fold != i)]
        theta = fit_ridge([x[others]], response, select_target(target, others), [penalty])[1][0]
        np.testing.assert_allclose(fit.relearned[fold == i], new[fold == i] @ theta, atol=0.02)
    seen = fit_ridge([x[:200]], response, parts[0].target, [penalty])[1][0]
    np.testing.assert_allclose(fit.held_out[0], new @ seen, atol=0.02)
    assert np.abs(fit.relearned - fit.held_out[0])[fold >= 0].mean() > 0.03  # which is not the same
    np.testing.assert_array_equal(fit.relearned[fold < 0], fit.held_out[0][fold < 0])


def test_words_that_only_the_document_itself_makes_frequent():
    n_docs = np.array([2, 3, 1, 9, 40])  # the last one: all documents
    dictionary = make_dictionary(n_docs, 1)
    assert dictionary.word.tolist() == [0, 1, 3]
    found = dictionary.without_one(n_docs)
    np.testing.assert_array_equal(found.idf > 0, [False, True, True])
    np.testing.assert_array_equal(found.idf[1:], dictionary.idf[1:])
    row = found.rows(csr_array(np.array([[1.0, 1.0, 0.0, 2.0]])))
    assert row.power(2).sum() == pytest.approx(1.0) and row.toarray()[0, 0] == 0.0


def test_variances_have_the_scale_of_the_jackknife(monkeypatch):
    """On average over held-out documents, and with those of earlier batches, which have a share of it."""
    rng = np.random.default_rng(0)
    x, y = csr_array(rng.random((90, 6))), rng.normal(size=(90, 1))
    target, mask = make_target(y, np.ones_like(y)), np.arange(90) % 5 == 0
    parts = [Seen(np.flatnonzero(some), select_target(target, some)) for some in (~mask, mask)]
    monkeypatch.setattr(Folds, "compare", lambda *_: (7.0, np.ones(1)))
    for share in (1.0, 0.25):
        fit = learn_beside([Part(x)], *parts, Gaussian(1.0, np.ones(1)), ONE, share=share)
        assert fit.held_out_variance.mean() == pytest.approx(7.0 / share, rel=1e-5)
        np.testing.assert_allclose(fit.held_out_variance, x[mask].power(2) @ fit.variance[0], rtol=1e-5)
    np.testing.assert_allclose(fit.with_spread(0.5).variance[0], 0.5 * fit.variance[0])


def test_words_are_worth_less_beside_more_of_the_topics():
    """Before any document is seen; topics and words overlap."""
    points, prior = pair_grid()
    both, means = (points > 0).all(axis=1), []
    for a in (0.2, 0.5, 0.8):
        own = both & np.isclose(points[:, 0], a)
        means.append(np.average(points[own, 1], weights=prior[own]))
    assert means[0] > means[1] + 0.1 > means[2] + 0.2


def test_factors_of_topics_and_words_have_their_posterior():
    """By brute force, over pairs of factors; without topics means with words alone."""
    rng = np.random.default_rng(1)
    y, offset = (rng.random((12, 1)) < 0.6).astype(float), np.full((12, 1), 0.4)
    chains = [HeldOutDraws(rng.normal(size=(5, 12, 1)), np.zeros((0, 12, 1))) for _ in range(2)]
    weight, words = np.ones((12, 1)), rng.normal(size=(12, 1))
    weight[3] = 2.0
    found = estimate_shrinkage(Logistic(1.0), make_target(y, weight, offset), chains, np.zeros((10, 0)), words)
    points, prior = pair_grid()
    assert prior.sum() == pytest.approx(1.0) and prior[points[:, 0] == 0].sum() == pytest.approx(0.5)
    assert prior[(points == 0).all(axis=1)].sum() == pytest.approx(0.05)
    densities = np.empty((len(points), 12))
    for i, (a, c) in enumerate(points):
        p = np.mean([expit(0.4 + a * t[:, 0] + c * words[:, 0]) for chain in chains for t in chain.topics], axis=0)
        densities[i] = np.where(y[:, 0] > 0.5, p, 1 - p)
    posterior = prior * np.prod(densities ** weight.ravel(), axis=1)
    np.testing.assert_array_equal(found.posteriors[TOPICS][0], points)
    np.testing.assert_allclose(found.posteriors[TOPICS][1][:, 0], posterior / posterior.sum())
    np.testing.assert_allclose(found.factors[:, 0], points.T @ posterior / posterior.sum())
    without = posterior[:, None] / densities ** weight.ravel()
    for loss, some in ((found.loss, slice(None)), (found.base_loss, points[:, 0] == 0)):
        expected = (without * densities)[some].sum(axis=0) / without[some].sum(axis=0)
        np.testing.assert_allclose(np.exp(-loss[:, 0]), expected)


def test_the_spread_is_judged_by_held_out_documents():
    """Responses that depend on omega as it is, or on omega with noise: by brute force, over the factors."""
    rng = np.random.default_rng(0)
    omega, sd = 2.0 * rng.normal(size=(4000, 1)), np.full((4000, 1), 3.0)
    draws = [HeldOutDraws(np.zeros((40, 4000, 1)), np.zeros((0, 4000, 1)))]
    found = []
    for noise in (0.0, 3.0):
        p = expit(omega + noise * rng.normal(size=(4000, 1)))
        target = make_target((rng.random((4000, 1)) < p).astype(float), np.ones((4000, 1)))
        mass = np.zeros((len(pair_grid()[0]), 1))
        mass[(pair_grid()[0] == [0.0, 1.0]).all(axis=1)] = 1.0
        one = np.ones(1), np.ones((1, 1))
        factors = {TOPICS: (pair_grid()[0], mass), COVARIATES: one, SCALE: one}
        known = Shrinkage(factors, *(np.zeros((0, 1)),) * 3, {}, {}, {})
        found.append(estimate_spread(Logistic(1.0), target, draws, np.zeros((40, 0)), known, omega, sd))
    assert found[0] < 0.06 and found[1] > 0.9


def test_contributions_are_shares():
    rng = np.random.default_rng(0)
    value = {subset: rng.random() for n in range(4) for subset in itertools.combinations("abc", n)}
    gains = shapley(("a", "b", "c"), value)
    assert sum(gains) == pytest.approx(value["a", "b", "c"] - value[()])
    orders = list(itertools.permutations("abc"))
    sets = [tuple(name for name in "abc" if name in order[: order.index("b") + 1]) for order in orders]
    before = [tuple(name for name in own if name != "b") for own in sets]
    assert gains[1] == pytest.approx(np.mean([value[s] - value[t] for s, t in zip(sets, before, strict=True)]))
    parts = [rng.normal(size=(40, 3)) for _ in range(3)]
    assert sum(variance_shares(parts)) == pytest.approx(1.0)
    assert variance_shares([parts[0], 0.0 * parts[0]]) == pytest.approx([1.0, 0.0])
    assert variance_shares([parts[0], 5.0 + np.arange(40)[:, None] * np.ones(3)])[1] == pytest.approx(0.0, abs=1e-12)
    columns = np.eye(3)[rng.integers(0, 3, 40)]
    response = Logistic(1.0, classes=np.array(["a", "b", "c"]))
    found = describe_contributions(response, make_target(columns, np.ones((40, 3))), {"x": 9 * columns, "y": parts[0]})
    assert found["value"] == 1.0 and found["terms"]["x"]["gain"] + found["terms"]["y"]["gain"] == pytest.approx(
        1.0 - found["base_value"]
    )
    assert found["terms"]["x"]["share"] > 0.8 and found["score"] == "accuracy"
    for own in found["terms"].values():
        assert own["gain_interval"][0] <= own["gain"] <= own["gain_interval"][1]
    assert describe_contributions(response, make_target(columns[:1], np.ones((1, 3))), {"x": columns[:1]}) == {}


def test_contributions_count_the_exposure():
    rng = np.random.default_rng(0)
    exposure, rate = 2.0 ** rng.integers(0, 4, (60, 1)), 3.0 ** rng.integers(0, 3, (60, 1))
    target = make_target(exposure * rate, np.ones((60, 1)), np.log(exposure))
    found = describe_contributions(NegativeBinomial(1.0, np.ones(1)), target, {"topics": np.log(rate)})
    assert found["value"] == pytest.approx(1.0)  # exp(offset + topics) is y
    without = 1 - ((exposure * rate - exposure) ** 2).sum() / ((exposure * rate - (exposure * rate).mean()) ** 2).sum()
    assert found["base_value"] == pytest.approx(without)


@pytest.fixture(scope="module")
def with_and_without(verdicts):
    """Models of the verdicts with words and without them."""
    X, _, y = verdicts
    return [SLDAClassifier(4, words=words, **RUN).fit(X[:800], y[:800]) for words in (True, False)]


def test_words_find_what_topics_miss(verdicts, with_and_without):
    (X, _, y), (both, alone) = verdicts, with_and_without
    names = np.array([f"w{i}" for i in range(200)] + ["good", "bad"])
    np.testing.assert_array_equal(
        both.coef_draws_, alone.coef_draws_
    )  # topics and reported weights stay what they were
    np.testing.assert_array_equal(both.topic_word_, alone.topic_word_)
    losses = [-np.log(m.predict_proba(X[800:])[np.arange(400), y[800:]]).mean() for m in (both, alone)]
    assert losses[0] < losses[1] - 0.05
    assert both.missed_words(names, n=1) == [{"column": "1", "towards": ["good"], "away": ["bad"]}]
    found = both.held_out_
    assert found["loss"] < found["topics_loss"] < found["base_loss"]
    assert found["without_topics_loss"] < found["base_loss"] and "topics_loss" not in alone.held_out_
    contributions = found["contributions"]["terms"]
    assert contributions.keys() == {"topics", "words"} and contributions["words"]["share_interval"][0] > 0
    assert alone.held_out_["contributions"]["terms"]["topics"]["share"] == pytest.approx(1.0)
    with pytest.raises(AttributeError, match="words=False"):
        alone.word_coef_  # noqa: B018
    with pytest.raises(AttributeError, match="words=False"):
        alone.missed_words(names)


def test_topics_first(verdicts, with_and_without):
    """Topics keep the factor that they have alone, words get less, and predictions are still better than without."""
    (X, _, y), (both, alone) = verdicts, with_and_without
    first = SLDAClassifier(4, priority="topics", **RUN).fit(X[:800], y[:800])
    np.testing.assert_allclose(first.prediction_draws_.mean(), alone.prediction_draws_.mean(), rtol=0.2)
    share = [m.held_out_["contributions"]["terms"]["topics"]["share"] for m in (first, both)]
    assert share[0] > share[1] + 0.1
    loss, least = (-np.log(m.predict_proba(X[800:])[np.arange(400), y[800:]]).mean() for m in (first, alone))
    assert loss < least - 0.02
    known = [m.posterior_.carryover.linear["words"].penalty for m in (first, both)]
    assert known[0] <= known[1]
    with pytest.raises(ValueError, match="priority must be 'prediction' or 'topics', got 'words'"):
        SLDAClassifier(priority="words").fit(X, y)


def test_where_topics_explain_it_all():
    """Words add nothing to what the model itself made: little is lost, and intervals cover."""
    corpus = make_corpus(n_docs=1500, n_words=500, n_topics=5, random_state=1)
    losses = []
    for with_words in (True, False):
        model = SLDAClassifier(5, words=with_words, **RUN).fit(corpus.X[:1000], corpus.y[:1000])
        p = model.predict_proba(corpus.X[1000:])
        losses.append(-np.log(p[np.arange(500), corpus.y[1000:]]).mean())
        if with_words:
            lower, upper = model.predict_interval(corpus.X[1000:])
            truth = corpus.probability[1000:]
            assert 0.85 < np.mean((lower[:, 1] <= truth) & (truth <= upper[:, 1])) <= 1
    assert losses[0] < losses[1] + 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_a_factor_for_every_draw(verdicts, kind, tmp_path, short_regressions):
    """Every response; files; threads; and a model that holds out nothing."""
    X, _, y = verdicts
    model = kind(4, **RUN).fit(X[:300], y[:300])
    posterior, words = model.posterior_, model.posterior_.words
    documents = model._new(X[300:340])
    assert [term.name for term in posterior.terms] == ["topics", "intercept", "words"]
    rest = tuple(term for term in posterior.terms if not isinstance(term, WordWeights))
    without = replace(documents, posterior=replace(posterior, terms=rest)).omega()
    x = words.dictionary.rows(X[300:340])
    noise, sd = words.noise(documents), np.sqrt(x.power(2) @ words.variance)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(noise.std(axis=0), 1.0)
    draws = [(chain, pair % 10) for chain in range(2) for pair in range(len(noise) // 2)]
    added = np.array([
        words.factor[chain, draw] * (x @ words.theta[0] + sd * noise[i]) for i, (chain, draw) in enumerate(draws)
    ])  # fmt: skip
    np.testing.assert_allclose(documents.omega() - without, added, atol=1e-6)
    one = documents.part(np.array([3]))
    np.testing.assert_allclose(words.split(one).sum(axis=1), added[:, 3], atol=1e-6)
    mean = words.theta[0] * words.factor.mean(axis=(0, 1))
    np.testing.assert_allclose(
        model.word_coef_[:, words.dictionary.word], mean.T * np.reshape(posterior.response.unit, (-1, 1))
    )
    threads = kind(4, n_jobs=2, **RUN).fit(X[:300], y[:300])
    np.testing.assert_array_equal(threads.posterior_.words.theta, words.theta)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X[300:340]), model.predict(X[300:340]))
    nothing = kind(4, held_out=0, **RUN).fit(X[:300], y[:300])
    assert nothing.posterior_.words.theta.any() and nothing.held_out_ == {"documents": 0}
    few = kind(4, held_out=0.3, **RUN).fit(X[:25], y[:25])  # too few to learn words from; held-out documents are used
    assert not few.posterior_.words.theta.any() and few.held_out_["documents"] == 7


def test_the_parts_of_a_sum_are_spread_as_they_should():
    """Given the sum, the parts of independent weights: each has its own variance, and they are not correlated."""
    rng = np.random.default_rng(0)
    X = csr_array(rng.integers(1, 4, (60, 8)))
    model = SLDARegressor(2, burn_in=2, n_draws=500, n_chains=4, held_out=0, random_state=0).fit(X, rng.normal(size=60))
    words = model.posterior_.words
    words = replace(words, factor=np.ones_like(words.factor), variance=rng.exponential(size=(8, 1)).astype(np.float32))
    document = model._new(X[:1])
    parts = words.split(document)[:, :, 0]  # (draw, word)
    expected = words.dictionary.rows(X[:1]).toarray()[0] ** 2 * words.variance[:, 0]
    np.testing.assert_allclose(parts.var(axis=0), expected, rtol=0.15)
    assert np.abs(np.corrcoef(parts.T) - np.eye(8)).max() < 0.1


def test_features_that_know_and_features_that_do_not(verdicts, with_and_without, tmp_path):
    """A column that knows helps; random ones change nothing to speak of; sparse and dense ones are the same."""
    X, omega, y = verdicts
    rng = np.random.default_rng(0)
    knows = np.column_stack([omega + rng.normal(size=1200), rng.normal(size=(1200, 3)), np.ones(1200)])
    random = rng.normal(size=(1200, 50))
    losses, models = {}, {}
    for name, features in {"none": None, "knows": knows, "random": random}.items():
        given = {} if features is None else {"features": features[:800]}
        models[name] = SLDAClassifier(4, **RUN).fit(X[:800], y[:800], **given) if given else with_and_without[0]
        test = {} if features is None else {"features": features[800:]}
        p = models[name].predict_proba(X[800:], **test)
        losses[name] = -np.log(p[np.arange(400), y[800:]]).mean()
    assert losses["knows"] < losses["none"] - 0.01 and losses["random"] < losses["none"] + 0.002
    model = models["knows"]
    assert model.held_out_["contributions"]["terms"]["features"]["share_interval"][0] > 0.05
    found = model.explain(X[800:801], features=knows[800:801])
    total = found.total.sum(axis=0) + sum(found.others.values())
    np.testing.assert_allclose(total, found.omega)
    assert set(found.others) == {"intercept", "features"} and found.others["features"].any()
    np.testing.assert_array_equal(
        model.predict_proba(X[800:802], features=knows[800:802])[1],
        model.predict_proba(X[801:802], features=knows[801:802])[0],
    )
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    given = {"features": knows[800:]}
    np.testing.assert_array_equal(again.predict_proba(X[800:], **given), model.predict_proba(X[800:], **given))
    again.partial_fit(X[800:], y[800:], **given)
    assert again.score(X[:800], y[:800], features=knows[:800]) > 0.7
    sparse = csr_array(np.abs(random) * (np.abs(random) > 1.5))
    wide, dense = (SLDAClassifier(4, **RUN).fit(X[:300], y[:300], features=f[:300]) for f in (sparse, sparse.toarray()))
    assert (
        wide.predict(X[300:310], features=sparse[300:310]).tolist()
        == wide.predict(X[300:310], features=sparse[300:310].toarray()).tolist()
    )
    assert dense.predict(X[300:310], features=sparse[300:310]).shape == (10,)


def test_features_that_cannot_be(verdicts):
    X, _, y = verdicts
    X, y = X[:60], y[:60]
    good = np.random.default_rng(0).normal(size=(60, 2))
    model = SLDAClassifier(2, burn_in=2, n_draws=2, n_chains=1, random_state=0)
    bad = {
        "finite numbers.*NaN": np.where(np.arange(2) == 0, np.nan, good),
        "finite numbers.*infinity": np.where(good > 0, np.inf, good),
        "X has 60 documents but features has 59 rows": good[:59], "got dtype object": good.astype(object),
        "got dtype <U1": np.full((60, 1), "a"), "200,000 columns; at most 100,000": csr_array((60, 200_000)),
        "All 2 columns of features are the same": 0.0 * good, "All 3 columns": csr_array((60, 3)),
        "must be from -1e\\+100 to 1e\\+100, got 1e\\+200": good + 1e200,
    }  # fmt: skip
    for message, features in bad.items():
        with np.errstate(all="ignore"), pytest.raises((TypeError, ValueError), match=message):
            model.fit(X, y, features=features)
    model.fit(X, y, features=good)
    for message, features in {
        "fitted with 2 features; pass features=": None, "59 rows": good[:59],
        "3 columns, but the model was fitted with 2": good[:, [0, 1, 1]],
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.predict(X, features=features)
    with pytest.raises(ValueError, match="fitted without features"):
        SLDAClassifier(2, burn_in=2, n_draws=2, n_chains=1).fit(X, y).predict(X, features=good)
    with pytest.raises(ValueError, match="features need calibrate=True"):
        SLDAClassifier(2, calibrate=False).fit(X, y, features=good)
    one = SLDAClassifier(2, burn_in=2, n_draws=2, n_chains=1, random_state=0).fit(X, y, features=good[:, 0])
    assert one.predict(X, features=good[:, 0]).shape == (60,)


def test_covariates_beside_words():
    """What a covariate explains is not given to words again."""
    corpus = make_corpus(n_docs=600, n_topics=3, random_state=0)
    z = np.random.default_rng(0).normal(size=(600, 1))
    X = csr_array(np.hstack([corpus.X.toarray(), (z > 0).astype(int)]))
    y = 3 * z[:, 0] + corpus.doc_topic @ [-1.0, 0.0, 1.0]
    word = [SLDARegressor(3, held_out=0, **RUN).fit(X, y, covariates=c).word_coef_[0, -1] for c in (None, z)]
    assert abs(word[1]) < 0.2 * abs(word[0])


def test_weights_are_in_the_units_of_the_rating(verdicts):
    X, omega, _ = verdicts
    one, many = (
        SLDARegressor(4, **RUN).fit(X[:400], unit * omega[:400]).word_coef_ for unit in (1.0, 1024.0)
    )  # a power of 2, so that all bits stay
    assert np.abs(one).max() > 0.1
    np.testing.assert_allclose(many, 1024.0 * one, rtol=1e-6)


def test_words_explain_what_is_left_over(verdicts):
    """Where the offset explains everything, little is left for words; where it explains nothing, words do."""
    X, omega, _ = verdicts
    x, y = make_dictionary(count_documents(X), 1).rows(X), omega[:, None] - omega.mean()
    nothing, rows = Seen(np.zeros(0, int), make_target(y[:0], y[:0])), np.arange(len(y))
    sizes = []
    for offset in (y, 0.0 * y):
        seen = Seen(rows, make_target(y, np.ones_like(y), offset))
        sizes.append(np.abs(learn_beside([Part(x)], seen, nothing, Gaussian(1.0, np.ones(1)), ONE).theta[0]).sum())
    assert sizes[0] < 0.01 * sizes[1]


def test_later_batches():
    """Three documents are enough to go on; of fewer, or without responses, nothing changes."""
    rng = np.random.default_rng(0)
    x, y = csr_array(rng.random((30, 5))), rng.normal(size=(30, 1))
    past = Past(rng.normal(size=(5, 1)), np.ones((5, 1)), 2.0, np.full((5, 1), 0.3))
    none = Seen(np.zeros(0, int), make_target(y[:0], y[:0]))
    for n, weight in ((30, 0.0), (2, 1.0), (3, 1.0), (30, 1.0)):
        seen = Seen(np.arange(n), make_target(y[:n], np.full((n, 1), weight)))
        fit = learn_beside([Part(x, past)], seen, none, Gaussian(1.0, np.ones(1)), ONE, share=0.1)
        same = np.array_equal(fit.theta[0], past.theta) and np.array_equal(fit.variance[0], past.spread)
        assert same == (n * weight < 3) and np.isfinite(fit.theta[0]).all() and np.isfinite(fit.variance[0]).all()
        assert fit.past[0].penalty == 2.0 and (fit.past[0].precision >= 1.0).all()
    firm = learn_beside(
        [Part(x, past._replace(precision=np.full((5, 1), 1e9)))], seen, none, Gaussian(1.0, np.ones(1)), ONE
    )
    np.testing.assert_allclose(firm.added, x @ past.theta, atol=1e-3)  # what is known exactly does not change
    new = learn_beside([Part(x, past), Part(x)], seen, none, Gaussian(1.0, np.ones(1)), ONE)  # a part that is new
    assert new.theta[1].any() and new.past[1].penalty == beside.PENALTIES[beside.FIRST]


def test_folds_of_words_and_of_predictions_are_the_same(monkeypatch, short_regressions):
    """A held-out document is predicted with words and with factors that were learned without it."""
    dealt, real = [], linear_room.deal

    def deal(known, rng):
        dealt.append(real(known, rng))
        return dealt[-1]

    monkeypatch.setattr(linear_room, "deal", deal)
    monkeypatch.setattr(held_out_room, "deal", deal)
    rng = np.random.default_rng(0)
    X, y = rng.poisson(0.6, (80, 12)), np.arange(80) % 2
    y = np.where(np.arange(80) < 6, -1, y)  # unknown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SLDAClassifier(2, n_chains=1, burn_in=2, n_draws=2, held_out=0.4, missing_label=-1, random_state=0).fit(X, y)
    words, factors = dealt
    np.testing.assert_array_equal(words, factors)
    assert set(words.tolist()) == {0, 1, 2, 3, 4} and np.ptp(np.bincount(words)) <= 1


def test_the_share_of_a_batch_is_that_of_all_of_its_documents():
    """Those that are held out, too."""
    seen, held_out = (SimpleNamespace(target=make_target(np.zeros((n, 2)), np.full((n, 2), 2.0))) for n in (3, 5))

    def share(held_out, total):
        made = SimpleNamespace(split=SimpleNamespace(seen=seen, held_out=held_out))
        made.rate = SimpleNamespace(sums=np.vstack([np.zeros((4, 2)), np.full(2, total)]))
        return linear_room.share_of_batch(made)

    assert share(held_out, 64.0) == pytest.approx(0.25) and share(None, 60.0) == pytest.approx(0.1)
    assert share(held_out, 16.0) == 1.0 and share(held_out, 0.0) == 1.0


def test_contributions_have_the_factor_of_their_term():
    rng = np.random.default_rng(0)
    parts = [HeldOutDraws(*rng.normal(size=(2, 3, 4, 2))) for _ in range(2)]
    factors = DrawnFactors(*rng.gamma(2.0, size=(4, 2, 3, 2)))
    evidence = SimpleNamespace(draws=parts)
    linear = SimpleNamespace(names=["words", "features"], fit=SimpleNamespace(held_out=rng.normal(size=(2, 4, 2))))
    found = weights_room.contribution_parts(evidence, factors, linear)
    for name, draws, factor in (
        ("topics", np.concatenate([part.topics for part in parts]).mean(axis=0), factors.topics),
        ("covariates", np.concatenate([part.covariates for part in parts]).mean(axis=0), factors.covariates),
        ("words", linear.fit.held_out[0], factors.linear), ("features", linear.fit.held_out[1], factors.linear),
    ):  # fmt: skip
        np.testing.assert_allclose(found[name], draws * factor.mean(axis=(0, 1)))


def test_a_batch_without_responses_leaves_weights_of_words_and_what_is_unknown_of_them(short_regressions):
    """In units of a word's effect, since its idf changes with the documents."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (90, 10))
    y = (X[:, 0] + rng.normal(size=90) > 0.8) * 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SLDARegressor(2, n_chains=1, burn_in=2, n_draws=2, held_out=0.3, random_state=0).partial_fit(X, y)
        before = model.posterior_.words
        model.partial_fit(X[:30], np.full(30, np.nan))
    after = model.posterior_.words
    assert before.variance.min() > 0 and np.array_equal(before.dictionary.word, after.dictionary.word)
    for power, a, b in ((1, before.theta[0], after.theta[0]), (2, before.variance, after.variance)):
        idf, other = (words.dictionary.idf[:, None] ** power for words in (before, after))
        np.testing.assert_allclose(b * other, a * idf, rtol=1e-5)


def test_the_spread_is_judged_under_the_factors_of_all_terms():
    """Draws that are twice as large are draws with a factor of 2: of topics, covariates, and words."""
    rng, n = np.random.default_rng(0), 25
    response, scales = Gaussian(1.0, np.ones(1)), np.full((6, 1), 0.7)
    parts, linear = [HeldOutDraws(*rng.normal(size=(2, 3, n, 1))) for _ in range(2)], rng.normal(size=(n, 1))
    target, sd, one = make_target(rng.normal(size=(n, 1)), np.ones((n, 1))), np.full((n, 1), 0.5), np.ones((1, 1))

    def spread(draws, linear, a, b, c, scales=scales, v=1.0):
        mass = {TOPICS: (np.array([[a, c]]), one), COVARIATES: (np.array([b]), one), SCALE: (np.array([v]), one)}
        shrinkage = Shrinkage(mass, *np.zeros((2, n, 1)), np.ones((n, 1)), {}, {}, {})
        return estimate_spread(response, target, draws, scales, shrinkage, linear, sd if c == 1.0 else sd / c)

    wanted = spread(parts, linear, 1.0, 1.0, 1.0)
    for a, b, c, v in ((2.0, 1.0, 1.0, 1.0), (1.0, 3.0, 1.0, 1.0), (1.0, 1.0, 0.5, 1.0), (1.0, 1.0, 1.0, 4.0)):
        draws = [HeldOutDraws(part.topics / a, part.covariates / b) for part in parts]
        assert spread(draws, linear / c, a, b, c, scales / v, v) == pytest.approx(wanted)
