"""Draws of very many weights without a matrix: against Cholesky's factor, against the exact posterior, whole fits."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from test_posterior import CASES, check_exactly, sampler  # noqa: F401

from small import ERRORS, engine_of, plan_of, stops_early
from supertopic import LDA, Prior, SLDAClassifier, SLDACountRegressor, SLDARegressor, load, save
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.tokens import make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import calibration, memory, reported
from supertopic.inference import fit as fit_room
from supertopic.inference.memory import check_memory
from supertopic.inference.regression import regression_engine
from supertopic.kernels.draws import make_key
from supertopic.model.priors import move_statistics
from supertopic.model.responses import Gaussian, Logistic, NegativeBinomial
from supertopic.model.state import Priors, Statistics, no_statistics
from supertopic.sampling import gibbs, matrix_free
from supertopic.sampling import plan as plans
from supertopic.sampling.gibbs import draw_eta, log_prior
from supertopic.sampling.shard import Shard
from supertopic.sampling.threads import ThreadEngine

KEY = make_key(4, 1)
KNOWN = np.array([[[1.2, 0.0], [0.0, 0.8]]]), np.array([[1.0, -0.7]])  # precision and shift of eta, a column


@pytest.fixture
def always(monkeypatch):
    """Few weights count as very many."""
    monkeypatch.setattr(plans, "MOST_WEIGHTS", 0)


class Small:
    """Documents with z, lam, covariates, and some without a response or without words."""

    def __init__(self, n_topics=6, n_columns=3, n_docs=40, n_threads=1, n_shards=5, n_covariates=2):
        rng = np.random.default_rng(n_topics)
        lengths = rng.integers(0, 9, n_docs)
        docs = [rng.integers(0, 20, n).tolist() for n in lengths]
        z = [rng.choice(rng.choice(n_topics, 3), n).tolist() for n in lengths]
        weight = rng.choice([0.0, 1.0, 2.5], (n_docs, n_columns))
        y, beside = rng.normal(size=weight.shape) > 0, rng.normal(size=(n_docs, n_covariates))
        beside[rng.random(beside.shape) < 0.3] = 0.0
        target = make_target(y.astype(float), weight, rng.normal(size=weight.shape), beside)
        response, priors = Logistic(9.0), Priors(np.full(n_topics, 0.1), 0.1, 1.5)
        plan, source = plan_of(docs, 20, response, target, priors, "delayed", n_shards)
        eta = rng.normal(size=(n_columns, n_topics + n_covariates))
        lam = rng.gamma(2.0, size=weight.shape) * weight
        flat = [k for topics in z for k in topics]
        self.engine = engine_of(plan, source, flat, response, lam, eta, n_threads)
        self.zbar = np.array([np.bincount(own, minlength=n_topics) / max(len(own), 1) for own in z])
        self.x, self.lam = np.hstack([self.zbar, beside]), lam
        self.kappa = response.quadratic(target, lam).kappa

    def precision(self, r, prior):
        return (self.x * self.lam[:, [r]]).T @ self.x + np.diag(prior)


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("per_weight", [False, True])
def test_draws_have_the_mean_and_the_covariance_of_the_posterior(always, n_columns, per_weight):
    small, n = Small(n_columns=n_columns), 4000
    statistics, width = small.engine.statistics(), small.x.shape[1]
    rng = np.random.default_rng(1)
    nu2 = rng.gamma(3.0, size=(n_columns, width)) if per_weight else 0.7
    known = Statistics(rng.gamma(1.0, size=(width, n_columns)), rng.normal(size=(width, n_columns)))
    assert small.engine.plan.matrix_free and statistics.is_diagonal
    np.testing.assert_allclose(statistics.shift, small.x.T @ small.kappa, atol=1e-12)
    np.testing.assert_allclose(statistics.precision, (small.x**2).T @ small.lam, atol=1e-12)
    kept = []

    def scores():
        draws, root, found = np.array(kept), np.sqrt(len(kept)), []
        for r in range(n_columns):
            prior = 1.0 / np.broadcast_to(nu2, (n_columns, width))[r] + known.precision[:, r]
            covariance = np.linalg.inv(small.precision(r, prior))
            mean, sd = covariance @ (statistics.shift + known.shift)[:, r], np.sqrt(np.diag(covariance))
            found.append((draws[:, r].mean(axis=0) - mean) / sd * root)
            correlation = covariance / np.outer(sd, sd)
            away = np.cov(draws[:, r].T) / np.outer(sd, sd) - correlation
            found.append((away / np.sqrt(1 + correlation**2)).ravel() * root)
        between = np.corrcoef(draws[:, :, 0].T) if n_columns > 1 else np.eye(1)
        return np.concatenate([*found, (between - np.eye(n_columns)).ravel() * root])  # columns have their own noise

    for i in range(n):
        kept.append(gibbs.draw_weights(small.engine, statistics, known, nu2, make_key(KEY, i)))
        if stops_early(i + 1, n, scores):
            break
    assert np.abs(scores()).max() < ERRORS


@pytest.mark.parametrize(("n_topics", "nu2"), [(50, 1.0), (400, 100.0)])
def test_the_solution_is_that_of_a_factor(always, n_topics, nu2):
    """The same right-hand side: to 3e-4 standard deviations, also under a weak prior. Columns stop by themselves."""
    small = Small(n_topics, n_docs=1000)
    small.lam[:, 1] *= 1e-3
    for shard in small.engine.shards:
        shard.quadratic.lam[:, 1] *= 1e-3  # solved much earlier
    engine, asked = small.engine, []
    statistics, products = engine.statistics(), engine.products
    engine.products = lambda v, columns: asked.append(len(columns)) or products(v, columns)
    prior = matrix_free.prior_precision(None, nu2, statistics.shift.shape)
    right = statistics.shift + matrix_free.draw_noise(engine, prior, KEY)
    found = matrix_free.solve(engine, statistics, prior, right)
    steps, near = len(asked), found + 1e-3 * np.random.default_rng(0).normal(size=found.shape)
    again = matrix_free.solve(engine, statistics, prior, right, near)
    assert len(asked) < 2 * steps  # a guess that is near saves steps
    del asked[steps:]
    for r in range(3):
        A = small.precision(r, prior[:, r])
        sd, exact = np.sqrt(np.diag(np.linalg.inv(A))), np.linalg.solve(A, right[:, r])
        assert max(np.abs((one[:, r] - exact) / sd).max() for one in (found, again)) < 3e-4
    assert asked[0] == 3 and 0 < asked[-1] < 3 and len(asked) < 200
    right[:, 0] = 0.0
    assert (matrix_free.solve(engine, statistics, prior, right)[:, 0] == 0).all()
    engine.products = lambda v, columns: np.full(v.shape, np.nan)
    with pytest.raises(np.linalg.LinAlgError, match="did not find"):
        matrix_free.solve(engine, statistics, prior, right)


def test_threads_and_shards_have_the_same_noise(always):
    """Bit for bit with any number of threads; with other shards up to the order of additions."""
    one, four, other = Small(), Small(n_threads=4), Small(n_shards=1)
    draws = [matrix_free.draw(s.engine, s.engine.statistics(), None, 1.0, KEY) for s in (one, four, other)]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_allclose(draws[0], draws[2], atol=1e-5)


def test_left_out_shares_replace_z(always):
    small, shares = Small(), np.random.default_rng(3).dirichlet(np.ones(6), 40).astype(np.float32)
    before = small.engine.statistics()
    for shard in small.engine.shards:
        shard.use_shares(shares[shard.docs])
    small.x = np.hstack([shares, small.x[:, 6:]])
    statistics = small.engine.statistics()
    assert not np.allclose(before.precision, statistics.precision)
    np.testing.assert_allclose(statistics.precision, (small.x**2).T @ small.lam)
    v = np.random.default_rng(4).normal(size=(8, 2))
    expected = [(small.x * small.lam[:, [r]]).T @ (small.x @ v[:, i]) for i, r in enumerate([2, 0])]
    np.testing.assert_allclose(small.engine.products(v, np.array([2, 0])).T, expected)


def test_rows_follow_z(always):
    """What is kept of z is made again after a sweep, a start and a restoration."""
    small = Small()
    engine = small.engine

    def check():
        counts = np.vstack([
            np.bincount(shard.z[a:b], minlength=6) / max(b - a, 1)
            for shard in engine.shards
            for a, b in zip(shard.tokens.doc_start[:-1], shard.tokens.doc_start[1:], strict=True)
        ])  # fmt: skip
        lam = np.vstack([shard.quadratic.lam for shard in engine.shards])
        np.testing.assert_allclose(engine.statistics().precision[:6], (counts**2).T @ lam)

    check()
    states = [shard.state() for shard in engine.shards]
    engine.sweep(np.zeros((3, 8)), engine.plan.priors, KEY, False)
    check()
    engine.start(KEY)
    check()
    for shard, state in zip(engine.shards, states, strict=True):
        shard.restore(state, np.zeros((3, 8)))
    check()


def diagonal_of(precision, shift):
    return Statistics(np.array([np.diag(P) for P in precision]).T.copy(), shift.T.copy())


KINDS = ("binary", "two columns", "missing", "weighted", "real")
EXACT = [case for case in CASES if case[0] in KINDS and "known" not in case[4]]
EXACT.append((*CASES[-1][:4], CASES[-1][4] | {"known": KNOWN}))


@pytest.mark.parametrize(
    ("sampler", "case", "response", "log_psi", "alpha", "more"),
    [(("collapsed", "drawn")[i % 2], *case) for i, case in enumerate(EXACT)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__ * hasattr(value, "c"),
    indirect=["sampler"],
)
def test_exact_posterior(always, monkeypatch, sampler, case, response, log_psi, alpha, more):  # noqa: F811
    """The enumeration of test_posterior, eta drawn without a matrix."""
    monkeypatch.setattr("test_posterior.statistics_of", diagonal_of)
    monkeypatch.setattr(gibbs, "factorise", None)
    check_exactly(sampler, case, response, log_psi, alpha, more)


def test_independent_weights(always):
    """What later batches know: the means, and the variances of each weight alone."""
    small, nu2 = Small(n_topics=30, n_columns=2, n_docs=100), 2.0
    statistics, eta = small.engine.statistics(), np.random.default_rng(2).normal(size=(2, 32))
    known = Statistics(*np.random.default_rng(3).gamma(1.0, size=(2, 32, 2)))
    found = matrix_free.independent(small.engine, statistics, known, nu2, eta)
    for r in range(2):
        covariance = np.linalg.inv(small.precision(r, 1 / nu2 + known.precision[:, r]))
        variance = 1.0 / (found.precision[:, r] + 1 / nu2)
        np.testing.assert_allclose(found.shift[:, r] * variance, eta[r])
        np.testing.assert_allclose(variance, np.diag(covariance), rtol=0.25)
        assert np.mean(variance / np.diag(covariance)) == pytest.approx(1, abs=0.03)
    draws = np.array([draw_eta(found, nu2, make_key(KEY, i)) for i in range(2000)])
    z = (draws.mean(axis=0).T - eta.T) * np.sqrt(2000 * (found.precision + 1 / nu2))
    assert np.abs(z).max() < ERRORS and np.abs(draws.var(axis=0).T * (found.precision + 1 / nu2) - 1).max() < 0.2
    packed = no_statistics(32, 2)
    packed.precision[packed.diagonal], packed.shift[:] = found
    np.testing.assert_allclose(log_prior(found, nu2, eta), log_prior(packed, nu2, eta))


def test_the_mode_is_that_of_a_matrix(monkeypatch):
    """Counts: Newton's method finds the same weights without factors, and draws go on from there."""
    rng = np.random.default_rng(0)
    x, y = rng.dirichlet(np.full(5, 0.3), 300), rng.poisson(3.0, (300, 1)).astype(float)
    response, target = NegativeBinomial(1.0, np.ones(1)), make_target(y, np.ones_like(y))
    found = []
    for free in (False, True):
        with regression_engine(
            lambda docs: x[docs], 5, target, response, [slice(0, 150), slice(150, 300)], 1, 0, free
        ) as engine:
            found.append(calibration.find_mode(engine, response, 25.0, engine.plan.no_statistics()))
            draws = calibration.draw_weights(engine, response, 25.0, engine.plan.no_statistics(), 3, KEY)
            assert np.isfinite([draw.eta for draw in draws]).all()
    np.testing.assert_allclose(*found, atol=1e-4)


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_the_spread_between_chains(spread):
    """The variance between the chains' weights is found from products as from matrices."""
    rng, n_chains, n_topics, n_docs = np.random.default_rng(3), 4, 20, 2000
    x = rng.dirichlet(np.full(n_topics, 0.1), n_docs)
    eta, chain = rng.normal(size=n_topics), np.repeat(np.arange(n_chains), n_docs // n_chains)
    own = eta + rng.normal(size=(n_chains, n_topics)) * np.sqrt(spread)
    y = (x * own[chain]).sum(axis=1)[:, None] + rng.normal(size=(n_docs, 1))
    has = np.ones((n_chains, n_topics), bool)
    has[3, :3] = False
    target, response = make_target(y, np.ones_like(y)), Gaussian(1.0, np.ones(1), False)
    documents = reported.FoldDocuments(x, target, np.arange(n_chains + 1) * (n_docs // n_chains))
    found = []
    for free in (False, True):
        plan = plans.Plan(
            (), (), 1, 1, 0, response, Priors(np.ones(n_topics), 1.0, 1.0), False, "delayed", 0, 0, matrix_free=free
        )
        known = plan.no_statistics()
        found.append(reported.regress_folds(documents, has, known, plan, 5, 1, KEY))
    with_matrix, without = found
    of_topic = [np.median(part.spread) * n_chains for part in found]
    if spread:
        np.testing.assert_allclose(of_topic, spread, rtol=0.65)
        np.testing.assert_allclose(without.spread, with_matrix.spread, rtol=0.3)
    else:
        assert max(of_topic) < 0.05
    np.testing.assert_allclose(without.draws.mean(axis=0), with_matrix.draws.mean(axis=0), atol=0.25)
    np.testing.assert_allclose(without.draws.std(axis=0), with_matrix.draws.std(axis=0), rtol=0.35, atol=0.02)
    assert without.known.is_diagonal and without.known.shift.shape == (n_topics, 1)


def test_what_is_known_moves_with_the_level():
    """Other places, another unit and another level: the means move as those of a matrix do."""
    rng = np.random.default_rng(0)
    known = Statistics(rng.gamma(1.0, size=(4, 2)), rng.normal(size=(4, 2)))
    packed = no_statistics(4, 2)
    packed.precision[packed.diagonal], packed.shift[:] = known
    given = np.array([0, 1, 2, 5]), 3, np.array([2.0, 0.5]), np.array([0.3, -1.0]), 0.9
    found = move_statistics(known, no_statistics(6, 2, True), *given)
    expected = move_statistics(packed, no_statistics(6, 2), *given)
    np.testing.assert_allclose(found.precision, expected.precision[expected.diagonal])
    np.testing.assert_allclose(found.shift, expected.shift)
    with pytest.raises(ValueError, match="this model has 6"):
        move_statistics(packed, no_statistics(6, 2, True), *given)


RUN = {"burn_in": 15, "n_draws": 5, "n_chains": 2, "random_state": 0}
CORPUS = make_corpus(n_docs=300, n_topics=4, doc_length=40, eta=np.array([[4.0, -4.0, 2.0, -2.0]]), random_state=0)


@pytest.fixture
def from_four(monkeypatch):
    """Five weights count as very many; four do not."""
    monkeypatch.setattr(plans, "MOST_WEIGHTS", 4)


@pytest.mark.usefixtures("short_regressions", "from_four")
def test_whole_models(tmp_path, monkeypatch):
    """Fit, files, further batches, and another model as a prior; groups and covariates."""
    y, covariate = CORPUS.y.ravel(), np.random.default_rng(0).normal(size=(300, 1))
    model = SLDAClassifier(5, **RUN).fit(CORPUS.X[:200], y[:200], covariates=covariate[:200])
    assert model.score(CORPUS.X[200:], y[200:], covariates=covariate[200:]) > 0.7
    (chains,) = model.posterior_.carryover.weights
    assert all(part.is_diagonal and part.shift.shape == (6, 1) for chain in chains for part in chain)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    once = copy.copy(model).partial_fit(CORPUS.X[200:], y[200:], covariates=covariate[200:])
    again.partial_fit(CORPUS.X[200:], y[200:], covariates=covariate[200:])
    np.testing.assert_array_equal(again.coef_, once.coef_)
    with pytest.raises(ValueError, match="mean and standard deviation; weights=False"):
        SLDAClassifier(5, prior=Prior(model, weights=True), **RUN).fit(CORPUS.X, y, covariates=5 * covariate)
    other = SLDAClassifier(5, seeds={0: [0, 1]}, **RUN).fit(CORPUS.X[:200], y[:200], groups=np.arange(200) % 7)
    assert np.isfinite(other.predict_proba(CORPUS.X[200:])).all()
    small = SLDAClassifier(4, **RUN).fit(CORPUS.X[:200], y[:200])
    with pytest.raises(ValueError, match="4 weights for each column, this model has 5"):
        SLDAClassifier(5, prior=Prior(small, weights=True), **RUN).fit(CORPUS.X, y)
    effects = [model.effects_on(CORPUS.X, y).frame()["weight"].astype(float)]
    weights = [model.to_arviz(50)["posterior"]["coef"].to_numpy().mean(axis=(0, 1))]
    monkeypatch.setattr(plans, "MOST_WEIGHTS", 2000)
    effects.append(model.effects_on(CORPUS.X, y).frame()["weight"].astype(float))
    weights.append(model.to_arviz(50)["posterior"]["coef"].to_numpy().mean(axis=(0, 1)))
    np.testing.assert_allclose(*effects, atol=0.5)
    np.testing.assert_allclose(*weights, atol=0.5)


@pytest.mark.usefixtures("from_four")
def test_without_a_response(monkeypatch):
    """LDA draws no weights, and does not look for them."""
    monkeypatch.setattr(Shard, "x_rows", None)
    assert LDA(5, **RUN).fit(CORPUS.X).transform(CORPUS.X[:3]).shape == (3, 5)


@pytest.mark.usefixtures("short_regressions")
def test_both_ways_agree(monkeypatch):
    """Predictions with a matrix and without are those of the same model."""
    found = []
    for most in (2000, 4):
        monkeypatch.setattr(plans, "MOST_WEIGHTS", most)
        model = SLDARegressor(6, words=False, **RUN).fit(CORPUS.X[:200], CORPUS.doc_topic[:200, 0])
        found.append(model.predict(CORPUS.X[200:]))
    assert np.corrcoef(found)[0, 1] > 0.95
    counts = SLDACountRegressor(6, words=False, **RUN).fit(CORPUS.X, np.full(300, 3) + np.arange(300) % 2)
    assert np.isfinite(counts.predict(CORPUS.X)).all()


@pytest.mark.filterwarnings("ignore:n_topics=2,100 is too many")
@pytest.mark.usefixtures("short_regressions")
def test_thousands_of_topics(monkeypatch):
    """No matrix of all pairs of topics is factorised or summed, and memory is asked for accordingly."""
    monkeypatch.setattr(gibbs, "factorise", None)
    monkeypatch.setattr(calibration, "factorise", None)
    y = CORPUS.y.ravel()
    model = SLDAClassifier(2100, **RUN | {"burn_in": 3, "n_draws": 2}, words=False).fit(CORPUS.X[:100], y[:100])
    assert model.coef_.shape == (1, 2100) and np.isfinite(model.predict_proba(CORPUS.X[:5])).all()


def test_memory_of_many_topics(monkeypatch):
    """10,000 topics need no gigabytes for 100 columns, as a matrix of all pairs would."""
    target = make_target(np.zeros((10, 100)), np.ones((10, 100)))
    source = Arrays(make_tokens(sp.csr_array(np.ones((10, 5), int))), target)
    monkeypatch.setattr(memory, "free_memory", lambda: 4 * 2**30)
    check_memory(source, 5, 10_000, 5, 1, 1, 1, 0, "cpu")
    check_memory(source, 5, 10_000, 5, 1, 1, 1, 0, "cuda")
    monkeypatch.setattr(plans, "MOST_WEIGHTS", 10**9)
    with pytest.raises(MemoryError):
        check_memory(source, 5, 10_000, 5, 1, 1, 1, 0, "cpu")


def test_a_chain_on_a_device_does_without_a_matrix_where_lists_are_shorter():
    """From as many topics on as documents have lists of them; a processor keeps the matrix."""
    y = np.zeros((4, 1))
    source = Arrays(make_tokens(sp.csr_array(np.ones((4, 5), int))), make_target(y, y + 1))
    found = [
        plans.make_plan(source, 5, Logistic(1.0), Priors(np.ones(n), 0.1, 1.0), False, "delayed", 0, 1, device)
        for n, device in ((320, "cuda"), (321, "cuda"), (321, "cpu"))
    ]
    assert [plan.quicker_without for plan in found] == [False, True, False]
    assert [plan.no_statistics().is_diagonal for plan in found] == [False, True, False]
    assert not any(plan.matrix_free for plan in found)


@pytest.mark.usefixtures("short_regressions")
def test_only_the_iterations_of_a_chain_do_without_a_matrix(monkeypatch):
    """Held-out regressions and what later batches know have one, and with what is known a chain has one, too."""
    make, solve, asked = fit_room.make_plan, ThreadEngine.solve, []
    monkeypatch.setattr(fit_room, "make_plan", lambda *given: make(*given)._replace(quicker_without=True))
    monkeypatch.setattr(ThreadEngine, "solve", lambda *given: asked.append(given[-1] is not None) or solve(*given))
    y = CORPUS.y.ravel()
    model = SLDAClassifier(5, **RUN).fit(CORPUS.X[:200], y[:200])
    assert asked == [True] * RUN["n_chains"] * (RUN["burn_in"] + RUN["n_draws"])  # each from the last draw on
    (chains,) = model.posterior_.carryover.weights
    assert not any(part.is_diagonal for chain in chains for part in chain)
    model.partial_fit(CORPUS.X[200:], y[200:])
    assert len(asked) == RUN["n_chains"] * (RUN["burn_in"] + RUN["n_draws"])
    assert model.score(CORPUS.X, y) > 0.7
