"""Ordered classes: the exact posterior, the likelihood by its definition, thresholds, predictions, bad input."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import approx_fprime
from scipy.special import expit, log_expit
from test_posterior import ALPHA, COVARIATE, OFFSET, check_exactly, sampler  # noqa: F401

import naive
from small import ALARM, ERRORS, engine_of, flat, near_limits, plan_of, score_of_difference, stops_early
from supertopic import SLDAClassifier, SLDAOrdinalClassifier, SLDASurvivalRegressor, choose_topics, load, save
from supertopic.command.evaluate import evaluate_grades
from supertopic.corpus.source import make_target
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Logistic, Ordinal, SharedHazards
from supertopic.model.responses.thresholds import PSEUDO, ThresholdResponse
from supertopic.model.state import Priors
from supertopic.sampling.gibbs import iterate

pytestmark = pytest.mark.filterwarnings("ignore:Found no relation between topics")
RUN = {"n_topics": 3, "burn_in": 20, "n_draws": 10, "n_chains": 2, "predict_sweeps": 15, "random_state": 0}


def ordinal(c, thresholds, anchor=0, base=None):
    thresholds = np.array(thresholds, float)
    base = thresholds if base is None else np.array(base, float)
    classes = np.arange(len(thresholds) + 1)
    return Ordinal(c, classes=classes, base=base, anchor=anchor, thresholds=thresholds)


def log_grade(y, omega, thresholds):
    """log P(class = y): a difference of two sigmoids, by its definition."""
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    return np.log(expit(ends[y + 1] - omega) - expit(ends[y] - omega))


def log_psi(c, thresholds, place=None):
    """c times the log-likelihood; the threshold at a place may be the last axis of the grid."""

    def found(y, omega, scale):
        logs = []
        for grade, own in zip(y.astype(int), omega.T, strict=True):
            ends = [-np.inf, *thresholds, np.inf]
            if place is not None:
                ends[place + 1] = scale[:, 0]
            logs.append(np.log(expit(ends[grade + 1] - own) - expit(ends[grade] - own)))
        return c * np.array(logs).T

    return found


def log_prior(x, below, above=None):
    """Half a pseudo-document in each class, with omega = 0: the density of one threshold between two others."""
    own = log_expit(x) + log_expit(-x) + np.log(-np.expm1(below - x))
    return PSEUDO * (own if above is None else own + np.log(-np.expm1(x - above)))


THREE = [-0.8, 0.4, 1.9]
GRID = np.linspace(-0.8, 9.0, 46)[1:]
CASES = [
    ("grades", ordinal(2.0, THREE), log_psi(2.0, THREE), {"offset": OFFSET}),
    ("grades", ordinal(1.0, THREE), log_psi(1.0, THREE), {"covariates": COVARIATE}),
    ("grades and a missing one", ordinal(2.5, [-0.8, 1.1]), log_psi(2.5, [-0.8, 1.1]), {}),
]
FIXED = [
    (case, response, psi, {"scales": [1.0], "own": lambda s, r=response: r.thresholds, "drawn": lambda s: np.ones(1)}
        | more)
    for case, response, psi, more in CASES
]  # fmt: skip
DRAWN = [
    ("grades and a missing one", ordinal(1.5, [-0.8, 1.1]), log_psi(1.5, [-0.8, 1.1], 1),
        {"scales": GRID, "log_scale": log_prior(GRID, -0.8), "offset": OFFSET,
         "own": lambda s: np.append(-0.8, s), "drawn": lambda s: s[1:]}),
]  # fmt: skip


both = pytest.mark.parametrize("sampler", ["collapsed", "drawn"], indirect=True)


@both
@pytest.mark.parametrize(("case", "response", "psi", "more"), FIXED + DRAWN, ids=["c2", "c1", "missing", "drawn"])
def test_exact_posterior(sampler, monkeypatch, case, response, psi, more):  # noqa: F811
    """The last case draws its upper threshold; the others hold theirs."""
    if len(more["scales"]) == 1:
        monkeypatch.setattr(Ordinal, "drawn", property(lambda self: False))
    check_exactly(sampler, case, response, psi, ALPHA, more, n_replicates=2000)


@both
def test_geweke(sampler):  # noqa: F811
    """Draws from the prior have the same moments as a chain that alternates Gibbs steps with new data."""
    alpha, nu2, n_topics, lengths, beta = np.array([0.8, 0.4, 0.6]), 1.5, 3, [4, 1, 7, 3], 0.5
    priors, rng = Priors(alpha, beta, nu2), np.random.default_rng(5)
    fine = np.linspace(-0.5, 12.0, 4001)[1:]
    mass = np.exp(log_prior(fine, -0.5))
    cumulated = np.cumsum(mass / mass.sum())

    def new_words(z):
        phi = rng.dirichlet(np.full(3, beta), n_topics)
        return [[rng.choice(3, p=phi[k]) for k in topics] for topics in z]

    def new_y(omega, thresholds):
        return (rng.logistic(size=omega.shape) + omega > thresholds).sum(axis=1, keepdims=True).astype(float)

    def summary(docs, z, eta, response, y):
        zbar, x = naive.zbars(z, n_topics), np.minimum(response.thresholds[1], 6.0)
        omega = zbar @ eta.T
        firsts = np.array([words.count(0) for words in docs])
        return np.concatenate([
            zbar[2], eta[0], eta[0] ** 2, omega[:, 0] ** 2, firsts, (y * omega)[:, 0], y[:, 0], y[:, 0] ** 2, [x, x**2],
            [x * y.mean(), x * omega.mean()],
        ])  # fmt: skip

    prior, posterior, n_replicates = [], [], 1800
    for _ in range(n_replicates):
        eta = rng.normal(0, np.sqrt(nu2), (1, n_topics))
        upper = fine[min(np.searchsorted(cumulated, rng.random()), len(fine) - 1)]
        response = ordinal(1.0, [-0.5, upper])
        z = [list(rng.choice(n_topics, n, p=rng.dirichlet(alpha))) for n in lengths]
        omega = naive.zbars(z, n_topics) @ eta.T
        docs, y = new_words(z), new_y(omega, response.thresholds)
        prior.append(summary(docs, z, eta, response, y))
        for i in range(3):
            target = make_target(y, np.ones_like(y))
            plan, source = plan_of(docs, 3, response, target, priors, sampler)
            quadratic = response.draw(target, omega, make_key(len(prior), 1, i), 0)
            engine = engine_of(plan, source, flat(docs, z)[1], response, quadratic, eta)
            key = make_key(len(prior), 2, i)
            eta, _, response = iterate(engine, engine.statistics(), None, response, priors, key)
            z = [list(map(int, t)) for t in np.split(engine.shards[0].z, np.cumsum(lengths)[:-1])]
            omega = naive.zbars(z, n_topics) @ eta.T
            docs, y = new_words(z), new_y(omega, response.thresholds)
        posterior.append(summary(docs, z, eta, response, y))
        if stops_early(len(prior), n_replicates, lambda: score_of_difference(prior, posterior)):
            break
    assert np.abs(score_of_difference(prior, posterior)).max() < ERRORS


def test_the_likelihood_is_its_definition():
    response, omega = ordinal(3.0, THREE), np.linspace(-6, 6, 25)[:, None]
    for grade in range(4):
        y = np.full((25, 1), float(grade))
        np.testing.assert_allclose(
            response.log_density(y, omega)[:, 0], [log_grade(grade, w, THREE) for w in omega[:, 0]]
        )
        target = make_target(y, np.full((25, 1), 0.7), np.full((25, 1), 0.3))
        total = response.log_likelihood(target, omega)
        assert total == pytest.approx(2.1 * response.log_density(y, omega).sum())
        step = 1e-5
        up, down = (3.0 * 0.7 * response.log_density(y, omega + s) for s in (step, -step))
        np.testing.assert_allclose(response.gradient(target, omega), (up - down) / (2 * step), atol=1e-6)
        here = 3.0 * 0.7 * response.log_density(y, omega)
        np.testing.assert_allclose(response.information(target, omega), -(up + down - 2 * here) / step**2, atol=1e-3)
    p = response.expected(omega)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p[:, 1]), [log_grade(1, w, THREE) for w in omega[:, 0]])


def test_two_classes_are_the_logistic_model():
    y, omega = np.array([[0.0], [1.0], [1.0]]), np.array([[0.3], [-2.0], [1.5]])
    response, target = ordinal(4.0, [0.7]), make_target(y, np.array([[1.0], [2.0], [0.0]]), OFFSET[:3])
    found = response.draw(target, omega, make_key(3), 5)
    there = Logistic(4.0).draw(target._replace(offset=target.offset - 0.7), omega - 0.7, make_key(3), 5)
    np.testing.assert_allclose(found, there, rtol=1e-12)
    np.testing.assert_allclose(response.start(target), Logistic(4.0).start(target._replace(offset=OFFSET[:3] - 0.7)))
    assert not response.drawn and found.kappa[2] == found.lam[2] == 0.0


def test_a_draw_depends_on_the_number_of_the_document_only():
    rng = np.random.default_rng(0)
    y, omega = rng.integers(0, 4, (20, 1)).astype(float), rng.normal(size=(20, 1))
    response, target = ordinal(2.0, THREE), make_target(y, np.ones((20, 1)))
    whole = response.draw(target, omega, make_key(1), 3)
    part = response.draw(make_target(y[7:], np.ones((13, 1))), omega[7:], make_key(1), 10)
    np.testing.assert_array_equal([a[7:] for a in whole], part)


def test_draws_have_the_moments_of_independent_coins():
    """A document of an inner class: lam and kappa are sums over the thresholds below and above it."""
    n, c, w, offset, omega = 20_000, 2.0, 1.5, 0.6, 0.9
    response = ordinal(c, THREE)
    target = make_target(np.full((n, 1), 2.0), np.full((n, 1), w), np.full((n, 1), offset))
    kappa, lam = (a[:, 0] for a in response.draw(target, np.full((n, 1), omega), make_key(9), 0))
    h, z = c * w, omega - np.array(THREE[1:])
    mean = h * np.tanh(z / 2) / (2 * z)
    variance = h * (np.sinh(z) - z) / (4 * z**3 * np.cosh(z / 2) ** 2)
    shift = np.array(THREE[1:]) - offset  # one coin shows "above" and the other "below": their halves cancel
    for found, weight in ((lam, np.ones(2)), (kappa, shift)):
        spread = (weight**2 * variance).sum()
        assert abs(found.mean() - weight @ mean) < ERRORS * np.sqrt(spread / n)
        assert found.var() == pytest.approx(spread, rel=ERRORS * np.sqrt(5.0 / n))


class Documents:
    """Sums over documents whose omega is known."""

    def __init__(self, target, omega):
        self.target, self.omega = target, omega

    def own_sums(self, responses, key):
        return np.array([response.own_sums(self.target, self.omega, key, 0) for response in responses])


@pytest.mark.parametrize("anchor", [0, 1, 2])
def test_thresholds_are_drawn_from_their_posterior(anchor):
    """Two of three thresholds, against their density on a grid, which knows the likelihood and the prior only."""
    rng = np.random.default_rng(1)
    omega, y = rng.normal(size=(12, 1)), rng.integers(0, 4, (12, 1)).astype(float)
    y[y == 2] = 1.0  # a class without documents
    response, target = ordinal(1.5, THREE, anchor), make_target(y, rng.choice([0.5, 1.0], (12, 1)))
    free = [j for j in range(3) if j != anchor]
    axis = np.linspace(-7, 9, 161)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    x = np.tile(THREE, (len(points), 1))
    x[:, free] = points
    points, x = (a[(np.diff(x) > 1e-9).all(axis=1)] for a in (points, x))
    ends = np.hstack([np.full((len(x), 1), -np.inf), x, np.full((len(x), 1), np.inf)])
    logs = PSEUDO * np.log(np.diff(expit(ends))).sum(axis=1)
    for g, w, o in zip(y[:, 0].astype(int), target.weight[:, 0], omega[:, 0], strict=True):
        logs += 1.5 * w * np.log(expit(ends[:, g + 1] - o) - expit(ends[:, g] - o))
    mass = np.exp(logs - np.logaddexp.reduce(logs))
    draws, now, n_draws = [], response, 10_000

    def scores():
        kept = np.array(draws)[::5]
        powers = np.stack([kept, kept**2])
        error = powers.std(axis=1).max(axis=1) / np.sqrt(len(kept) / 2)
        away = np.abs(powers.mean(axis=1) - [mass @ points**power for power in (1, 2)])
        return away.max(axis=1) / error

    for i in range(n_draws):
        now = now.draw_scale(Documents(target, omega), make_key(2, i))
        draws.append(now.thresholds[free])
        if stops_early(i + 1, n_draws, scores):
            break
    assert now.thresholds[anchor] == THREE[anchor]
    assert scores().max() < ERRORS
    density = [response.with_scale(np.array(x)).log_prior() for x in ([-0.8, 0.4, 1.9], [-1.0, 0.2, 2.5])]
    if anchor == 1:
        x = np.array([[-0.8, 0.4, 1.9], [-1.0, 0.4, 2.5]])
        p = np.diff(np.concatenate([np.zeros((2, 1)), expit(x), np.ones((2, 1))], axis=1), axis=1)
        found = np.diff([response.with_scale(row).log_prior() for row in x])
        np.testing.assert_allclose(found, PSEUDO * np.diff(np.log(p).sum(axis=1)))
    assert np.isfinite(density).all()


def test_the_best_thresholds():
    """The cost is the least over all thresholds, and its slope is that of this least value."""
    rng = np.random.default_rng(2)
    omega = 2.0 * rng.normal(size=(60, 1))
    y = (omega + rng.logistic(size=(60, 1)) > [-1.5, 0.5, 2.0]).sum(axis=1, keepdims=True).astype(float)
    response, target = ordinal(8.0, [-0.5, 0.0, 0.5]), make_target(y, rng.choice([1.0, 2.0], (60, 1)))
    value, slope = response.cost(target, omega)

    def cost(x, omega=omega):
        p = np.diff(np.concatenate([[0.0], expit(x), [1.0]]))
        return -sum(
            w * log_grade(int(g), o, x) for g, w, o in zip(y[:, 0], target.weight[:, 0], omega[:, 0], strict=True)
        ) - (PSEUDO * np.log(p).sum())

    best = response.fitted(y, target.weight, omega)[0]
    assert value == pytest.approx(cost(best.thresholds)) and best.c == 1.0
    np.testing.assert_allclose(approx_fprime(best.thresholds, cost, 1e-6), 0.0, atol=1e-3)
    for d in (0, 17):
        there = omega.copy()
        there[d] += 1e-4
        assert slope[d, 0] == pytest.approx((response.cost(target, there)[0] - value) / 1e-4, abs=1e-3)
    assert (response.curvature(target, omega) > 0).all()
    logs = response.log_predictive(y, np.array([omega, omega]), np.zeros((2, 3)))
    np.testing.assert_allclose(logs, response.fitted(y, np.ones((60, 1)), omega)[0].log_density(y, omega))


def test_thresholds_match_what_was_observed():
    rng = np.random.default_rng(3)
    omega = 3.0 * rng.normal(size=(4, 500, 1))
    y = rng.integers(0, 4, (500, 1)).astype(float)
    response, target = ordinal(8.0, THREE), make_target(y, np.ones((500, 1)))
    x = np.array(THREE) + response.match_scale(target, omega, np.array(THREE), 0.0)
    predicted = response.with_scale(x).expected(omega).mean(axis=(0, 1))
    np.testing.assert_allclose(predicted, np.bincount(y[:, 0].astype(int)) / 500, atol=0.003)
    before = response.expected(omega).mean(axis=(0, 1))
    x = np.array(THREE) + response.match_scale(target, omega, np.array(THREE), 1500.0)
    between = response.with_scale(x).expected(omega).mean(axis=(0, 1))
    np.testing.assert_allclose(between, 0.25 * predicted + 0.75 * before, atol=0.003)
    base = response.with_base(target, 3)
    np.testing.assert_allclose(base.expected(np.zeros((1, 1)))[0], predicted, atol=0.01)
    np.testing.assert_allclose(base.link(np.array([y.mean()])), 0.0, atol=0.02)
    spread = base.with_scale(3.0 * base.base).draw_offsets(np.zeros(1), np.ones(1), 4000)
    p = base.with_scale(3.0 * base.base).expected(spread[:, None]).mean(axis=(0, 1))
    np.testing.assert_allclose(p, predicted, atol=0.03)


@pytest.fixture(scope="module")
def corpus():
    made = make_corpus(n_docs=400, n_topics=3, doc_length=40, eta=[[-5.0, 0.0, 5.0]], random_state=0)
    latent = made.doc_topic @ made.eta[0] + np.random.default_rng(0).logistic(size=400)
    return made.X, np.digitize(latent, np.quantile(latent, [0.2, 0.5, 0.8])) + 1


@pytest.fixture(scope="module")
def model(corpus):
    X, y = corpus
    return SLDAOrdinalClassifier(**RUN).fit(X[:300], y[:300])


def test_predictions(model, corpus):
    X, y = corpus[0][300:], corpus[1][300:]
    p = model.predict_proba(X)
    assert p.shape == (100, 4) and model.classes_.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_cumulative(X), np.cumsum(p, axis=1), atol=1e-12)
    np.testing.assert_allclose(model.predict_grade(X), p @ [1, 2, 3, 4])
    lower, upper = model.predict_grade_interval(X)
    assert ((lower <= model.predict_grade(X)) & (model.predict_grade(X) <= upper)).mean() > 0.95
    assert (model.predict(X) == p.argmax(axis=1) + 1).all()
    low, high = model.predict_interval(X, 0.5)
    assert (low <= high).all() and low.shape == p.shape
    order = np.argsort(model.linear_predictor(X))
    assert (np.diff(model.predict_grade(X)[order]) > -0.05).all()
    assert model.threshold_draws_.shape == (2, 10, 3) and (np.diff(model.thresholds_) > 0).all()
    found = model.evaluate(X, y)
    assert list(found.figures) == [
        "accuracy", "log_loss", "quadratic_kappa", "mean_absolute_error", "ranked_probability_score",
    ]  # fmt: skip
    assert found[1] == found.figures["accuracy"] == model.score(X, y) > 0.35
    truth = y[:, None] > np.arange(1, 4)
    above = 1.0 - np.cumsum(p, axis=1)[:, :3]
    assert found.figures["ranked_probability_score"] == pytest.approx(((above - truth) ** 2).mean())
    said = 1 + (np.cumsum(p, axis=1) < 0.5).sum(axis=1)
    assert found.figures["mean_absolute_error"] == pytest.approx(np.abs(said - y).mean())
    plain = SLDAClassifier(**RUN).fit(corpus[0][:300], corpus[1][:300])
    assert found.figures["mean_absolute_error"] < np.abs(plain.predict(X) - y).mean() + 0.1


def test_figures_of_a_prediction():
    """The middle class, which need not be the most probable one, and the base rate of the training documents."""
    p = np.array([[0.45, 0.1, 0.05, 0.4], [0.1, 0.2, 0.3, 0.4]])
    response = ordinal(1.0, THREE)
    assert response.median(p).tolist() == [1, 2] and response.chosen(p).tolist() == [0, 3]
    found = response.figures(np.eye(4)[[1, 3]], p)
    assert found["mean_absolute_error"] == 0.5 and found["accuracy"] == 0.5
    assert found["ranked_probability_score"] == pytest.approx(
        np.mean([(0.45**2 + 0.45**2 + 0.4**2) / 3, (0.1**2 + 0.3**2 + 0.6**2) / 3])
    )


def test_figures_beside_those_of_the_base_rate(model, corpus):
    X = corpus[0][300:].tocsr()
    facts = evaluate_grades(model, X, corpus[1][300:], np.repeat([1, 2, 3, 4], [70, 10, 10, 10]), {})
    truth = corpus[1][300:, None] > np.arange(1, 4)
    above = np.array([0.3, 0.2, 0.1])
    assert facts["base_rate_ranked_probability_score"] == pytest.approx(np.mean((truth - above) ** 2))
    assert facts["base_rate_mean_absolute_error"] == pytest.approx((corpus[1][300:] - 1).mean())
    assert facts["test_ranked_probability_score"] < facts["base_rate_ranked_probability_score"]


def test_a_table_of_predictions(model, corpus):
    X = corpus[0][300:]
    found = model.predict_table(X)
    assert list(found) == ["prediction", "p(1)", "p(2)", "p(3)", "p(4)", "grade", "lower", "upper"]
    np.testing.assert_array_equal(found["prediction"].astype(int), model.predict(X))
    np.testing.assert_allclose(np.array([found[f"p({i})"] for i in range(1, 5)]).T, model.predict_proba(X))
    np.testing.assert_allclose(found["grade"], model.predict_grade(X))
    np.testing.assert_allclose([found["lower"], found["upper"]], model.predict_grade_interval(X))


def test_explanations_add_up(model, corpus):
    found = model.explain(corpus[0][300:301])
    total = found.total.sum(axis=0) + sum(found.others.values())
    np.testing.assert_allclose(total, found.omega)
    np.testing.assert_allclose(found.mean, model.predict_proba(corpus[0][300:301])[0])
    np.testing.assert_allclose(found.omega[0], model.linear_predictor(corpus[0][300:301])[0])


def test_effects_and_tables(model):
    frame = model.effect_frame()
    assert sorted(frame["column"].unique().tolist()) == [1, 2, 3, 4]
    np.testing.assert_allclose(frame.groupby("topic")["change"].sum(), 0.0, atol=1e-9)
    change = frame["change"].to_numpy().reshape(3, 4)
    effect = model.posterior_.response.column_effects(change)
    np.testing.assert_allclose(effect[:, 0], change @ [1, 2, 3, 4])
    assert effect[model.coef_[0].argmax(), 0] > 0 > effect[model.coef_[0].argmin(), 0]
    assert "threshold between any two classes" in model.methods_text()
    assert (
        "percentage points" in str(model.summary_table()) and "higher" in model.coefficient_frame()["column"].tolist()
    )


def test_files(model, corpus, tmp_path, short_regressions):
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    X = corpus[0][300:].tolil()
    X[0] = 0  # a document without words
    X = X.tocsr()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.partial_fit(corpus[0][300:], corpus[1][300:])
    assert again.n_batches_ == 2 and again.classes_.tolist() == [1, 2, 3, 4]


def test_batches_learn_as_all_documents_do(model, corpus, short_regressions):
    X, y = corpus
    parts = SLDAOrdinalClassifier(**RUN)
    for docs in np.array_split(np.arange(300), 3):
        parts.partial_fit(X[docs], y[docs], classes=[1, 2, 3, 4])
    a, b = (m.evaluate(X[300:], y[300:]).figures["log_loss"] for m in (model, parts))
    assert abs(a - b) < 0.12
    p = parts.predict_proba(X[300:]).mean(axis=0)
    np.testing.assert_allclose(p, np.bincount(y[:300], minlength=5)[1:] / 300, atol=0.08)


def test_orders(corpus, short_regressions):
    X, y = corpus[0][:120], corpus[1][:120]
    run = RUN | {"n_chains": 1, "burn_in": 5, "n_draws": 4, "words": False}
    names = np.array(["bad", "fair", "good", "great"], object)[y - 1]
    numbers = SLDAOrdinalClassifier(**run).fit(X, y)
    category = pd.Series(pd.Categorical(names, ["bad", "fair", "good", "great"], ordered=True))
    given = SLDAOrdinalClassifier(order=["bad", "fair", "good", "great"], **run).fit(X, names)
    for other in (given, SLDAOrdinalClassifier(**run).fit(X, category)):
        np.testing.assert_array_equal(numbers.predict_proba(X), other.predict_proba(X))
        assert other.classes_.tolist() == ["bad", "fair", "good", "great"]
    np.testing.assert_allclose(given.predict_grade(X), numbers.predict_grade(X))
    reverse = SLDAOrdinalClassifier(order=[4, 3, 2, 1], **run).fit(X, y)
    assert reverse.classes_.tolist() == [4, 3, 2, 1]
    gap = SLDAOrdinalClassifier(order=[1, 2, 2.5, 3, 4], **run).fit(X, y)
    p = gap.predict_proba(X)
    assert p.shape == (120, 5) and 0 < p[:, 2].max() < 0.1
    missing = y.astype(float)
    missing[::3] = np.nan
    assert SLDAOrdinalClassifier(**run).fit(X, missing).predict(X).shape == (120,)
    assert SLDAOrdinalClassifier(missing_label=4, **run).fit(X, y).classes_.tolist() == [1, 2, 3]
    heavy = SLDAOrdinalClassifier(class_weight={4: 20.0}, **run).fit(X, y).predict_proba(X)
    assert heavy[:, 3].mean() > numbers.predict_proba(X)[:, 3].mean() + 0.1


@pytest.mark.parametrize(
    ("y", "more", "message"),
    [
        (["a", "b"] * 30, {}, "whose order is not known"),
        (["a", "b"] * 30, {"order": ["a", "c"]}, "class 'b', which is not one of the ordered classes 'a', 'c'"),
        ([1, 7] * 30, {"order": [1, 2, 3]}, "class 7"),
        ([1, 1] * 30, {}, "one class only"),
        ([None, np.nan] * 30, {}, "unknown"),
        ([1, 2] * 29, {}, "60 documents but y has 58"),
        (np.zeros((60, 2)), {}, "1d array"),
        ([1, 2] * 30, {"order": [1, 1]}, "two or more different classes"),
        ([1, 2] * 30, {"order": "ab"}, "two or more different classes"),
        (np.arange(300).tolist(), {}, "at most 100"),
        ([{}, {"a": 1}] * 30, {}, "must hold numbers, names or an ordered category"),
        (["a", 1] * 30, {}, "whose order is not known"),
    ],
)
def test_bad_input(y, more, message):
    made = make_corpus(n_docs=300 if len(y) == 300 else 60, n_topics=3, random_state=0)
    with pytest.raises(ValueError, match=message):
        SLDAOrdinalClassifier(**RUN, **more).fit(made.X, y)


def test_later_batches_keep_the_order(model, corpus):
    with pytest.raises(ValueError, match="since the first batch"):
        copy(model).partial_fit(*corpus, classes=[1, 2])
    with pytest.raises(ValueError, match="class 9"):
        model.evaluate(corpus[0], np.full(400, 9))


def test_a_damaged_file_is_refused(model):
    response, draws = model.posterior_.response, model.posterior_.scale
    response.check_fitted(1)
    response.check_scale(draws, 1)
    for wrong in (draws[:, :, ::-1], draws[:, :, :2], draws * np.nan):
        with pytest.raises(ValueError, match="cannot be right"):
            response.check_scale(wrong, 1)
    for wrong in ({"base": response.base[::-1]}, {"anchor": 7}, {"base": response.base[:1]}, {"multilabel": True}):
        with pytest.raises(ValueError, match="cannot be right"):
            replace(response, **wrong).check_fitted(1)


def test_noise_has_no_effect():
    """Shuffled classes: 90 % intervals exclude 0 about as often as they should, and the loss is that of base rates."""
    outside, losses = [], []
    for seed in range(6):
        made = make_corpus(n_docs=300, n_topics=4, doc_length=40, random_state=seed)
        y = np.random.default_rng(seed).choice(4, 300, p=[0.1, 0.2, 0.3, 0.4])
        model = SLDAOrdinalClassifier(4, burn_in=20, n_draws=10, n_chains=2, random_state=seed)
        model.fit(made.X[:200], y[:200])
        lower, upper = model.coef_interval(0.9)
        outside += ((lower > 0) | (upper < 0)).ravel().tolist()
        base = np.bincount(y[:200], minlength=4) / 200
        losses.append(model.evaluate(made.X[200:], y[200:])[0].mean() + np.log(base[y[200:]]).mean())
        near = near_limits(np.mean(outside), 0.1, most=0.25), near_limits(np.mean(losses), 0.0, -0.02, 0.02)
        if stops_early(seed + 1, 6, lambda scores=near: scores):
            break
    assert np.mean(outside) < 0.25 and abs(np.mean(losses)) < 0.02


def test_choose_topics(corpus, short_regressions):
    found = choose_topics(SLDAOrdinalClassifier(), corpus[0], corpus[1], [2, 3], burn_in=5, n_draws=4, n_chains=1)
    assert [row["n_topics"] for row in found.rows] == [2, 3]


def test_draws_of_grades_follow_the_model():
    """Classes drawn from the model have its frequencies: the sum of probabilities, by a chi-square."""
    rng, response = np.random.default_rng(4), ordinal(1.0, THREE)
    omega = np.full((20_000, 1), 0.7)
    y = (omega + rng.logistic(size=omega.shape) > THREE).sum(axis=1)
    expected = 20_000 * response.expected(omega[:1])[0]
    assert stats.chisquare(np.bincount(y, minlength=4), expected).pvalue > ALARM


def test_thresholds_that_cross_leave_probabilities():
    """Those of a fold of held-out documents may, where factors of a few documents scale them."""
    response = Ordinal(1.0, classes=np.arange(3), base=np.zeros(2), thresholds=np.zeros(2), anchor=0)
    p = response.expected(np.zeros((2, 4, 1)), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert (p >= 0).all() and p.shape == (2, 4, 3)
    np.testing.assert_allclose(p.sum(axis=-1), 1.0)
    np.testing.assert_allclose(p[0, 0], [1 - expit(-1.0), 0.0, expit(-1.0)])


@pytest.mark.parametrize("kind", [SLDAOrdinalClassifier, SLDASurvivalRegressor])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_thresholds_are_moved_from_where_earlier_batches_left_them(kind, monkeypatch, short_regressions):
    """Earlier documents, discounted, are predicted right by what their thresholds were moved by."""
    calls = []
    for owner in (ThresholdResponse, SharedHazards):
        real = owner.match_scale

        def match(self, target, omega, scale, n_past, real=real):
            calls.append((scale - self.scale, n_past))
            return real(self, target, omega, scale, n_past)

        monkeypatch.setattr(owner, "match_scale", match)
    rng = np.random.default_rng(0)
    X, y, weight = rng.poisson(0.6, (50, 10)), rng.integers(0, 3, 50) * 1.0, 2.0 ** rng.integers(-1, 2, 50)
    y = np.column_stack([1.0 + y, y < 2]) if kind is SLDASurvivalRegressor else y
    more = {"periods": [1.0, 2.0, 3.0]} if kind is SLDASurvivalRegressor else {}
    model = kind(2, n_chains=1, burn_in=2, n_draws=2, words=False, random_state=0, **more)
    before, total = np.zeros(3 if more else 2), 0.0
    for _ in range(3):
        model.partial_fit(X, y, sample_weight=weight, discount=0.5)
        (moved, n_past), carryover = calls.pop(), model.posterior_.carryover
        np.testing.assert_allclose(moved, before, atol=1e-12)
        assert n_past == pytest.approx(0.5 * total) and not calls
        before, total = carryover.scale_shift, float(carryover.sums[4].max())
        assert np.abs(before).max() > 0.0
