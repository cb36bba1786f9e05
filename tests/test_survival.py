"""Times until an event: the exact posterior, the likelihood by its definition, periods, predictions, measures."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, log_expit
from test_posterior import ALPHA, COVARIATE, OFFSET, check_exactly, sampler  # noqa: F401

import naive
from small import ALARM, ERRORS, engine_of, flat, near_limits, plan_of, score_of_difference, stops_early
from supertopic import SLDASurvivalRegressor, choose_topics, load, save
from supertopic.corpus.source import make_target
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Logistic, PeriodHazards, SharedHazards
from supertopic.model.responses.censoring import (
    LEAST_SEEN,
    MOST_KNOTS,
    Censoring,
    brier_scores,
    concordance,
    find_censoring,
    integrated_brier,
    uno_concordance,
)
from supertopic.model.responses.hazards import PSEUDO_EVENTS
from supertopic.model.responses.times import Times, choose_edges, life_table, passed_periods, read_times
from supertopic.model.state import Priors
from supertopic.sampling.gibbs import iterate

pytestmark = pytest.mark.filterwarnings("ignore:Found no relation between topics")
RUN = {"n_topics": 3, "burn_in": 20, "n_draws": 10, "n_chains": 2, "predict_sweeps": 15, "random_state": 0}
both_effects = pytest.mark.parametrize("effects", ["shared", "by_period"])


def shared(c, thresholds, anchor=0, life=None):
    """Hazards whose pseudo-documents have the odds of `life`: documents at risk, and events."""
    thresholds = np.array(thresholds, float)
    n = len(thresholds)
    life = np.array([np.full(n, 5.0), np.full(n, 2.0)]) if life is None else np.array(life, float)
    return SharedHazards(
        c, edges=np.arange(1.0, n + 1), life=life, base=thresholds, anchor=anchor, thresholds=thresholds
    )


def by_period(c, n=2):
    return PeriodHazards(c, edges=np.arange(1.0, n + 1), life=np.ones((2, n)))


def log_p_of_time(passed, omega, thresholds):
    """A product of hazards: to have survived the periods that passed, and then to have the event if it came."""
    survived, event = int(passed), passed > int(passed)
    found = np.zeros(np.shape(omega))
    for j in range(survived):
        found = found + np.log(1.0 - expit(omega - thresholds[j]))
    return found + np.log(expit(omega - thresholds[survived])) if event else found


def log_psi(c, thresholds, place=None):
    """c times the log-likelihood; the threshold at a place may be the last axis of the grid."""

    def found(y, omega, scale):
        own = list(thresholds)
        if place is not None:
            own[place] = scale[:, 0]
        return c * np.array([log_p_of_time(p, w, own) for p, w in zip(y, omega.T, strict=True)]).T

    return found


def log_prior(x, life=(5.0, 2.0)):
    """Half an event with omega = 0, and as many survivors as the life table has for it."""
    return PSEUDO_EVENTS * log_expit(-x) + PSEUDO_EVENTS * (life[0] - life[1]) / life[1] * log_expit(x)


TWO, GRID = [0.4, 1.3], np.linspace(-7.0, 9.0, 46)
HELD = {"scales": [1.0], "own": lambda s: np.array(TWO), "drawn": lambda s: np.ones(1)}
FREE = {"scales": GRID, "log_scale": log_prior(GRID), "own": lambda s: np.append(TWO[0], s), "drawn": lambda s: s[1:]}
CASES = {
    "held": ("times", shared(2.0, TWO), log_psi(2.0, TWO), HELD | {"offset": OFFSET}),
    "covariate": ("times and a missing one", shared(1.0, TWO), log_psi(1.0, TWO), HELD | {"covariates": COVARIATE}),
    "drawn": ("times and a missing one", shared(1.5, TWO), log_psi(1.5, TWO, 1), FREE | {"offset": OFFSET}),
    "periods": ("periods", by_period(3.0), naive.logistic(3.0), {"offset": OFFSET}),
}
both = pytest.mark.parametrize("sampler", ["collapsed", "drawn"], indirect=True)


@both
@pytest.mark.parametrize("case", CASES)
def test_exact_posterior(sampler, monkeypatch, case):  # noqa: F811
    """Both effects; one case draws its second threshold, the others hold theirs."""
    y, response, psi, more = CASES[case]
    if case != "drawn":
        monkeypatch.setattr(SharedHazards, "drawn", property(lambda self: False))
    check_exactly(sampler, y, response, psi, ALPHA, more, n_replicates=1200)


@both
def test_geweke(sampler):  # noqa: F811
    """Draws from the prior have the same moments as a chain that alternates Gibbs steps with new data."""
    alpha, nu2, n_topics, lengths, beta = np.array([0.8, 0.4, 0.6]), 1.5, 3, [4, 1, 7, 3], 0.5
    priors, rng = Priors(alpha, beta, nu2), np.random.default_rng(5)
    fine = np.linspace(-14.0, 16.0, 6001)
    mass = np.exp(log_prior(fine))
    cumulated = np.cumsum(mass / mass.sum())

    def new_words(z):
        phi = rng.dirichlet(np.full(3, beta), n_topics)
        return [[rng.choice(3, p=phi[k]) for k in topics] for topics in z]

    def new_y(omega, thresholds):
        first, second = (rng.random((len(omega), 2)) < expit(omega - thresholds)).T
        return np.where(first, 0.5, np.where(second, 1.5, 2.0))[:, None]

    def summary(docs, z, eta, response, y):
        zbar, x = naive.zbars(z, n_topics), np.clip(response.thresholds[1], -6.0, 6.0)
        omega = zbar @ eta.T
        firsts = np.array([words.count(0) for words in docs])
        return np.concatenate([
            zbar[2], eta[0], eta[0] ** 2, omega[:, 0] ** 2, firsts, (y * omega)[:, 0], y[:, 0], y[:, 0] ** 2, [x, x**2],
            [x * y.mean(), x * omega.mean()],
        ])  # fmt: skip

    prior, posterior, n_replicates = [], [], 1100
    for _ in range(n_replicates):
        eta = rng.normal(0, np.sqrt(nu2), (1, n_topics))
        response = shared(1.0, [0.5, fine[min(np.searchsorted(cumulated, rng.random()), len(fine) - 1)]])
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


THREE = [1.2, 0.4, 1.9]


@pytest.mark.parametrize("passed", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_the_likelihood_is_a_product_of_hazards(passed):
    omega = np.linspace(-6, 6, 25)[:, None]
    for response in (shared(3.0, THREE), by_period(3.0, 3)):
        n = 1 if isinstance(response, SharedHazards) else 3
        y, weight = response.columns_of(np.full(25, passed), np.full(25, 0.7))
        assert y.shape == weight.shape == (25, n) and (response.passed(y) == passed).all()
        target = make_target(y, weight, np.full((25, 1), 0.3))
        if n == 1:
            wide, want = omega, log_p_of_time(passed, omega[:, 0], THREE)
        else:
            wide = omega - np.array(THREE)
            want = log_p_of_time(passed, omega[:, 0], THREE)
        np.testing.assert_allclose(response.log_density_of_documents(y, wide), want)
        assert response.log_likelihood(target, wide).sum() == pytest.approx(2.1 * want.sum())
        step = 1e-4

        def value(omega, response=response, y=y, weight=weight):
            return 3.0 * weight * response.log_density(y, omega)

        up, down, here = value(wide + step), value(wide - step), value(wide)
        np.testing.assert_allclose(response.gradient(target, wide), (up - down) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(response.information(target, wide), -(up + down - 2 * here) / step**2, atol=1e-3)


def test_one_period_is_the_logistic_model():
    y, omega = np.array([[1.0], [0.5], [0.5]]), np.array([[0.3], [-2.0], [1.5]])
    response, target = shared(4.0, [0.7, 2.0]), make_target(y, np.array([[1.0], [2.0], [0.0]]), OFFSET[:3])
    found = response.draw(target, omega, make_key(3), 5)
    plain = target._replace(y=(y == 0.5).astype(float), offset=target.offset - 0.7)
    there = Logistic(4.0).draw(plain, omega - 0.7, make_key(3), 5)
    np.testing.assert_allclose(found, there, rtol=1e-12)
    assert found.kappa[2] == found.lam[2] == 0.0
    more = response.draw(target._replace(y=np.full((3, 1), 1.5)), omega, make_key(3), 5)
    assert (more.lam[:2] > found.lam[:2]).all()  # a second coin
    part = response.draw(make_target(y[1:], np.ones((2, 1))), omega[1:], make_key(1), 11)
    whole = response.draw(make_target(y, np.ones((3, 1))), omega, make_key(1), 10)
    np.testing.assert_array_equal(part, [a[1:] for a in whole])


class Documents:
    """Sums over documents whose omega is known."""

    def __init__(self, target, omega):
        self.target, self.omega = target, omega

    def own_sums(self, responses, key):
        return np.array([response.own_sums(self.target, self.omega, key, 0) for response in responses])


def test_thresholds_are_drawn_from_their_posterior():
    """Given omega they are independent: each against its density on a grid, which knows likelihood and prior only."""
    rng = np.random.default_rng(1)
    omega, passed = rng.normal(size=(15, 1)), rng.choice([0.5, 1.0, 1.5, 2.0, 3.0], 15)
    weight, now = rng.choice([0.5, 1.0], (15, 1)), shared(1.5, THREE, anchor=1)
    target, axis = make_target(passed[:, None], weight), np.linspace(-14, 16, 3001)
    draws = []
    for i in range(4000):
        now = now.draw_scale(Documents(target, omega), make_key(2, i))
        draws.append(now.thresholds)
    draws = np.array(draws)[::2]
    assert (draws[:, 1] == THREE[1]).all()
    for j in (0, 2):
        logs = log_prior(axis)
        for p, w, o in zip(passed, weight[:, 0], omega[:, 0], strict=True):
            if p > j:
                logs = logs + 1.5 * w * log_expit((o - axis) * (1.0 if p == j + 0.5 else -1.0))
        mass = np.exp(logs - np.logaddexp.reduce(logs))
        for power in (1, 2):
            error = (draws[:, j] ** power).std() / np.sqrt(len(draws) / 3)
            assert abs((draws[:, j] ** power).mean() - mass @ axis**power) < ERRORS * error
    np.testing.assert_allclose(now.log_prior_of(axis[:3]), log_prior(axis[:3]))


def test_the_best_thresholds():
    """The cost is the least over all thresholds, and its slope is that of this least value."""
    rng = np.random.default_rng(2)
    omega, passed = 2.0 * rng.normal(size=(60, 1)), rng.choice([0.5, 1.0, 1.5, 2.0, 2.5, 3.0], 60)
    response, target = shared(8.0, THREE), make_target(passed[:, None], rng.choice([1.0, 2.0], (60, 1)))
    value, slope = response.cost(target, omega)

    def cost(x):
        logs = [log_p_of_time(p, o, x) for p, o in zip(passed, omega[:, 0], strict=True)]
        return -float(target.weight[:, 0] @ logs) - log_prior(np.asarray(x)).sum()

    best = response.fitted(target.y, target.weight, omega)[0].thresholds
    assert value == pytest.approx(cost(best))
    for j in range(3):
        step = 1e-4 * (np.arange(3) == j)
        assert abs(cost(best + step) - cost(best - step)) / 2e-4 < 1e-3
    for d in (0, 17):
        there = omega.copy()
        there[d] += 1e-4
        assert slope[d, 0] == pytest.approx((response.cost(target, there)[0] - value) / 1e-4, abs=2e-3)


@both_effects
def test_predictions_have_the_observed_survival_on_average(effects):
    """Copies of a document that are likely to die early are not there later: survival of the mixture is right."""
    rng, n = np.random.default_rng(3), 1500
    omega = 1.5 * rng.normal(size=(16, n, 1)) + rng.normal(size=(n, 1))
    dies = rng.random((n, 3)) < expit(omega[0] - np.array([1.0, 0.2, 0.7]))
    passed = np.where(dies.any(axis=1), dies.argmax(axis=1) + 0.5, 3.0)
    if effects == "shared":
        response = shared(8.0, THREE)
        target = make_target(*response.columns_of(passed, np.ones(n)))
        x = np.array(THREE) + response.match_scale(target, omega, np.array(THREE), 0.0)
        matched = response.with_scale(x)
        before, after = (own.expected(omega).mean(axis=(0, 1)) for own in (response, matched))
        x = np.array(THREE) + response.match_scale(target, omega, np.array(THREE), 3.0 * n)
        between = response.with_scale(x).expected(omega).mean(axis=(0, 1))
        np.testing.assert_allclose(between, 0.25 * after + 0.75 * before, atol=0.02)
    else:
        from supertopic.inference.level import match_level

        response = by_period(8.0, 3)
        wide = omega + np.array([0.5, -0.2, 0.1])
        shift, _ = match_level(response, make_target(*response.columns_of(passed, np.ones(n))), wide)
        after = response.expected(wide + shift).mean(axis=(0, 1))
    np.testing.assert_allclose(after, [(passed > j + 1 - 0.5).mean() for j in range(3)], atol=0.012)


def test_documents_without_words_have_the_base_rates():
    response = shared(8.0, [1.0, 0.5, 1.5], life=[[1000, 700, 400], [300, 300, 100]]).prepared()
    spread = 1.5
    wide = response.with_scale(response.base + 0.8 * np.arange(3) * 0.3)  # thresholds of a mixture are farther apart
    points = stats.norm.ppf((np.arange(801) + 0.5) / 801)[None]
    np.testing.assert_allclose(wide.chances(0.0 * points)[0], expit(-wide.thresholds))
    curve = np.cumprod(1.0 - wide.chances(spread * points)[0])
    np.testing.assert_allclose(curve, wide.expected(spread * points[0][:, None]).mean(axis=0))
    drawn = wide.draw_offsets(np.zeros(1), np.ones(1), 801)
    own = wide.expected(drawn).mean(axis=0)
    assert np.abs(own - np.cumprod(expit(response.base))).max() < 0.12


# times and periods

EDGES = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("time", "event", "passed"),
    [
        (0.0, 1, 0.5), (0.3, 1, 0.5), (1.0, 1, 0.5), (1.2, 1, 1.5), (2.0, 1, 1.5), (4.0, 1, 2.5), (4.1, 1, 3.0),
        (0.0, 0, 0.0), (0.4, 0, 0.0), (0.5, 0, 1.0), (1.0, 0, 1.0), (1.4, 0, 1.0), (1.5, 0, 2.0), (2.0, 0, 2.0),
        (2.9, 0, 2.0), (3.0, 0, 3.0), (4.0, 0, 3.0), (9.0, 0, 3.0), (np.nan, np.nan, 0.0),
    ],
)  # fmt: skip
def test_what_a_time_shows_of_the_periods(time, event, passed):
    """An edge belongs to the period that it ends; who is censored in its second half has survived it."""
    assert passed_periods(EDGES, Times(np.array([time]), np.array([float(event)])))[0] == passed


def test_the_half_period_rule_finds_the_hazard():
    """Censoring spread over a period neither raises nor lowers the hazard; leaving out or keeping all does."""
    rng, n = np.random.default_rng(0), 200_000
    time, censored = rng.exponential(4.0, n), rng.uniform(0, 6, n)
    times = Times(np.minimum(time, censored), (time <= censored).astype(float))
    at_risk, events = life_table(passed_periods(np.array([2.0, 4.0]), times), np.ones(n), 2)
    np.testing.assert_allclose(events / at_risk, 1.0 - np.exp(-0.5), atol=0.012)
    early = times.time < 2.0
    assert events[0] / (n - (early & (times.event == 0)).sum()) > 0.41 and events[0] / n < 0.35


def test_periods_are_chosen_from_the_events():
    rng = np.random.default_rng(0)
    times = rng.exponential(size=400)
    edges = choose_edges("auto", times, 20)
    assert len(edges) == 20 and edges[-1] == times.max()
    assert np.abs(np.bincount(np.searchsorted(edges, times), minlength=20) - 20).max() <= 1
    assert len(choose_edges("auto", times[:55], 20)) == 5 and len(choose_edges("auto", times[:8], 20)) == 2
    assert len(choose_edges("auto", times, 8)) == 8 and len(choose_edges(7, times, 20)) == 7
    days = rng.integers(0, 4, 400).astype(float)
    np.testing.assert_array_equal(choose_edges("auto", days, 20), [0.5, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(choose_edges("auto", np.array([5.0] * 50 + [1.0, 2.0]), 20), [2.0, 5.0])
    np.testing.assert_array_equal(choose_edges([0, 1, 3], np.array([0.5, 2.0]), 20), [1.0, 3.0])


# measures


@pytest.fixture(scope="module")
def censored():
    """Times with many ties, risks with ties."""
    rng, n = np.random.default_rng(4), 300
    time, other = rng.integers(1, 30, n).astype(float), rng.integers(1, 40, n).astype(float)
    times = Times(np.minimum(time, other), (time <= other).astype(float))
    return times, np.round(-0.1 * time + rng.normal(size=n), 1)


def test_concordance_is_its_definition(censored):
    times, risk = censored
    seen = find_censoring(times, np.ones(300))
    right, comparable, right_uno, comparable_uno, until = 0.0, 0.0, 0.0, 0.0, 25.0
    for i in range(300):
        for j in range(300):
            later = times.time[j] > times.time[i] or (times.time[j] == times.time[i] and not times.event[j])
            if times.event[i] and later:
                score = 1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j])
                g = seen.before(times.time[i : i + 1])[0]
                weight = (g >= LEAST_SEEN) * (times.time[i] <= until) / g**2
                right, comparable = right + score, comparable + 1
                right_uno, comparable_uno = right_uno + weight * score, comparable_uno + weight
    assert concordance(times, risk) == pytest.approx(right / comparable)
    assert uno_concordance(times, risk, seen, until) == pytest.approx(right_uno / comparable_uno)
    assert concordance(times, np.zeros(300)) == 0.5 == concordance(Times(np.ones(2), np.zeros(2)), np.arange(2.0))
    assert concordance(Times(np.arange(9.0), np.ones(9)), -np.arange(9.0)) == 1.0


def test_censoring_is_a_kaplan_meier_estimate(censored):
    times, _ = censored
    found, survival = find_censoring(times, np.ones(300)), 1.0
    for t in np.unique(times.time):
        assert found.before(np.array([t]))[0] == pytest.approx(survival)
        at_risk = (times.time > t).sum() + ((times.time == t) & (times.event == 0)).sum()  # events come first
        survival *= 1.0 - ((times.time == t) & (times.event == 0)).sum() / max(at_risk, 1)
        assert found.after(np.array([t]))[0] == pytest.approx(survival)
    pairs, size = np.column_stack(times), np.arange(300) % 3  # a document of weight 2 is two
    response = SharedHazards(1.0, periods=[10.0, 20.0])
    one = response.encode(pairs, size.astype(float)).response
    other = response.encode(np.repeat(pairs, size, axis=0), np.ones(size.sum())).response
    np.testing.assert_allclose(one.censor_survival, other.censor_survival)
    weighted = find_censoring(times, np.repeat([2.0, 0.0], 150))
    part = find_censoring(Times(times.time[:150], times.event[:150]), np.ones(150))
    np.testing.assert_allclose(weighted.survival, part.survival)
    rng = np.random.default_rng(0)
    many = Times(rng.random(5000), np.zeros(5000))
    few, at = find_censoring(many, np.ones(5000)), np.linspace(0, 1, 50)
    assert len(few.times) <= MOST_KNOTS
    np.testing.assert_allclose(few.after(at), [(many.time > t).mean() for t in at], atol=0.005)


def test_brier_scores_are_their_definition(censored):
    times, risk = censored
    at, seen = np.array([3.0, 7.0, 15.0, 22.0]), find_censoring(times, np.ones(300))
    survival = np.exp(-np.exp(0.5 * risk)[:, None] * at / 15.0)
    found = brier_scores(times, survival, at, seen)
    for j, t in enumerate(at):
        total = 0.0
        for i in range(300):
            if times.time[i] <= t and times.event[i]:
                total += survival[i, j] ** 2 / seen.before(times.time[i : i + 1])[0]
            elif times.time[i] > t:
                total += (1.0 - survival[i, j]) ** 2 / seen.after(at[j : j + 1])[0]
        assert found[j] == pytest.approx(total / 300)
    assert integrated_brier(found, at) == pytest.approx(np.trapezoid([0.0, *found], [0.0, *at]) / 22.0)
    gone = Censoring(np.array([0.0, 20.0]), np.array([1.0, 0.01]))
    assert np.isnan(brier_scores(times, survival, at, gone)).tolist() == [False, False, False, True]
    # who is censored is replaced: the score of all documents, had none been censored, is the same on average
    rng, n = np.random.default_rng(0), 100_000
    time, other = rng.exponential(size=n), rng.exponential(size=n)
    own = Times(np.minimum(time, other), (time <= other).astype(float))
    p = np.full((n, 1), 0.6)
    whole = ((time > 0.7) - 0.6) ** 2
    assert brier_scores(own, p, np.array([0.7]), find_censoring(own, np.ones(n)))[0] == pytest.approx(
        whole.mean(), abs=0.01
    )


# the estimator


def make_times(n_docs, seed, censoring, n_topics=3, size=4.0):
    """A corpus whose log-hazards are known, exponential times, and the share that is to be censored."""
    eta = np.linspace(-size, size, n_topics)
    made = make_corpus(n_docs=n_docs, n_topics=n_topics, doc_length=60, eta=[eta], random_state=seed)
    rng, omega = np.random.default_rng(seed), made.doc_topic @ eta
    time, wait = rng.exponential(10.0 * np.exp(-omega)), rng.exponential(size=n_docs)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (time > np.exp(middle) * wait).mean() > censoring else (low, middle)
    seen = np.minimum(time, np.exp(low) * wait)
    return made, omega, time, Times(seen, (time <= seen).astype(float))


@pytest.fixture(scope="module")
def corpus():
    made, omega, _, times = make_times(700, 0, 0.4)
    return made.X, times.time, times.event.astype(bool), omega


@pytest.fixture(scope="module", params=["shared", "by_period"])
def model(request, corpus):
    X, time, event, _ = corpus
    return SLDASurvivalRegressor(**RUN, effects=request.param).fit(X[:500], time[:500], event=event[:500])


def test_predictions(model, corpus):
    X, time, event, omega = (part[500:] for part in corpus)
    edges, curve = model.times_, model.predict_survival_function(X)
    assert curve.shape == (200, len(edges)) and (np.diff(curve, axis=1) <= 0).all()
    assert (curve > 0).all() and (curve < 1).all() and len(model.coef_) in (1, len(edges))
    median, risk = model.predict(X), model.predict_risk(X)
    np.testing.assert_allclose(risk, (1.0 - curve).mean(axis=1))
    x, levels = np.append(0.0, edges), np.hstack([np.ones((200, 1)), curve])
    for q, found in zip([0.5, 0.95, 0.05], [median, *model.predict_interval(X)], strict=True):
        reached = curve[:, -1] <= q
        assert np.isinf(found[~reached]).all() and np.isfinite(found[reached]).all()
        there = [np.interp(t, x, row) for t, row in zip(found[reached], levels[reached], strict=True)]
        np.testing.assert_allclose(there, q)
    assert np.isfinite(median).any() and np.isinf(model.predict_interval(X)[1]).any()
    lower, upper = model.predict_survival_interval(X, 0.8)
    assert ((lower <= curve) & (curve <= upper)).mean() > 0.85 and (upper - lower).mean() > 0.02
    assert stats.spearmanr(risk, omega)[0] > 0.85
    assert np.abs(curve.mean(axis=0)[: len(edges) // 2] - [
        (time > e).mean() + ((time <= e) & ~event).mean() * 0.5 for e in edges[: len(edges) // 2]
    ]).max() < 0.12  # fmt: skip
    for j in (0, -1):  # a document without words has the base rates
        alive = np.prod(1.0 - model.life_table_[1] / model.life_table_[0]) if j else 1 - model.life_table_[1, 0] / 400
        assert abs(model.predict_survival_function(np.zeros((1, X.shape[1])))[0, j] - alive) < 0.15


def test_figures(model, corpus):
    X, time, event, _ = (part[500:] for part in corpus)
    found, y = model.evaluate(X, time, event=event), np.column_stack([time, event])
    names = list(found.figures)
    assert names[:3] == ["concordance", "uno_concordance", "integrated_brier_score"] and len(names) == 6
    times, risk = Times(time, event.astype(float)), model.predict_risk(X)
    train = Times(corpus[1][:500], corpus[2][:500].astype(float))
    seen, curve = find_censoring(train, np.ones(500)), model.predict_survival_function(X)
    assert found.score == model.score(X, y) == pytest.approx(concordance(times, risk)) and found.score > 0.8
    assert found.score_name == "concordance"
    assert found.figures["uno_concordance"] == pytest.approx(uno_concordance(times, risk, seen, model.times_[-1]))
    scores = brier_scores(times, curve, model.times_, seen)
    np.testing.assert_allclose(model.brier_score(X, time, event=event), scores)
    assert found.figures["integrated_brier_score"] == pytest.approx(integrated_brier(scores, model.times_)) and (
        found.figures["integrated_brier_score"] < 0.19
    )
    assert found.figures[names[4]] in scores
    np.testing.assert_allclose(-found.losses, model.log_predictive(X, time, event=event))
    assert model.score(X, y, sample_weight=np.repeat([1.0, 0.0], 100)) == model.score(X[:100], y[:100])
    y[:5] = np.nan
    unknown = model.evaluate(X, y)
    assert np.isnan(unknown.losses[:5]).all() and np.isfinite(unknown.losses[5:]).all()
    # the loss is the log of the probability that the curve gives to what was seen, up to rounding of periods
    late = (time > model.times_[-1]) & ~event
    np.testing.assert_allclose(np.exp(-found.losses[late]), curve[late, -1])
    first = event & (time <= model.times_[0])
    np.testing.assert_allclose(np.exp(-found.losses[first]), 1.0 - curve[first, 0])


def test_explanations_add_up(model, corpus):
    found = model.explain(corpus[0][500:501])
    np.testing.assert_allclose(found.total.sum(axis=0) + sum(found.others.values()), found.omega)
    np.testing.assert_allclose(found.mean, model.predict_survival_function(corpus[0][500:501])[0])
    assert found.columns == model.posterior_.response.column_names and found.mean_names == model.times_.tolist()
    assert "total" in repr(found)


def test_effects_and_tables(model, corpus):
    frame, n = model.effect_frame(), len(model.times_)
    assert frame["column"].unique().tolist() == model.times_.tolist() and len(frame) == 3 * n
    change = frame["change"].to_numpy().reshape(3, n)
    effect = model.posterior_.response.column_effects(change)
    worst = model.coef_.mean(axis=0).argmax()
    assert (effect[worst] < 0).mean() > 0.9 and effect.shape == (3, len(model.coef_))
    names = model.coefficient_frame()["column"].unique().tolist()
    assert names == (["sooner"] if len(model.coef_) == 1 else model.posterior_.response.column_names)
    table = model.summary_table()
    assert table.unit == "percentage points" and len(table.answers) == 3
    assert table.answers[1] == f"survival beyond {model.times_[model.posterior_.response.shown[1]]:.4g}"
    text = model.methods_text()
    assert f"Time was cut into {n} periods" in text and "Cox 1972" in text and "Singer and Willett 1993" in text
    assert ("a threshold for each period" in text) == (len(names) == 1) and "logistic regression" in text
    assert "cox1972" in model.bibtex()
    X, y = corpus[0][500:], np.column_stack([corpus[1], corpus[2]])[500:]
    found = model.surprising(X, y, 200)
    assert found["score"].between(0, 1).all() and (np.diff(found["score"]) >= 0).all()
    shown = [f"{t:.4g}" if e else f"beyond {t:.4g}" for t, e in y[found["row"]]]
    assert (
        found["observed"].tolist() == shown and found["predicted"].tolist() == model.predict(X)[found["row"]].tolist()
    )
    event = y[found["row"], 1] == 1
    assert stats.kstest(found["score"][event], "uniform").statistic < 0.2  # the probability of as extreme a time
    assert len(model.unsure(X, 5)) == 5 and "omega" in model.diagnose(X, y)
    assert list(model.predict_table(X))[:4] == ["prediction", "lower", "upper", "risk"]
    assert len(model.effects_on(X, y).frame()) == 3 * len(model.coef_)


def test_surprise_is_a_tail_probability():
    response, omegas = shared(1.0, [0.0, 0.0, 0.0]), np.zeros((2, 5, 1))  # survival is 1/2, 1/4, 1/8 at 1, 2, 3
    truth = np.array([[1.0, 1.0], [0.5, 1.0], [3.0, 1.0], [2.0, 0.0], [9.0, 1.0]])
    p = np.exp(-response.surprise(truth, omegas, np.zeros((2, 3))))
    np.testing.assert_allclose(p, [1.0, 0.5, 0.25, 0.25, 0.125])
    assert response.doubt(omegas, np.zeros((2, 3)))[0] == pytest.approx((0.25 + 3 / 16 + 7 / 64) / 3)
    np.testing.assert_allclose(response.time_at(np.array([[0.5, 0.25, 0.125]]), 0.375), [1.5])
    np.testing.assert_allclose(response.encoded_truth(np.array([[0.5], [1.0], [2.5], [3.0]])),
                               [[1, 1], [1, 0], [3, 1], [3, 0]])  # fmt: skip


def test_the_page(model, corpus, tmp_path, short_regressions):
    pytest.importorskip("jinja2")
    X, y = corpus[0][500:530].toarray().astype(int), np.column_stack([corpus[1], corpus[2]])[500:530]
    texts = [" ".join(f"word{w}" for w in np.repeat(np.arange(X.shape[1]), row)) for row in X]
    own = SLDASurvivalRegressor(**RUN | {"n_chains": 1}, effects=model.effects).fit(texts * 4, np.tile(y, (4, 1)))
    page = own.report(texts, y, tmp_path / "page.html")
    data = page.partition('<script type="application/json"')[2].partition("</script>")[0]
    assert "0." in data and "beyond" in data and "NaN" not in data and "Infinity" not in data


def test_files(model, corpus, tmp_path, short_regressions):
    save(model, tmp_path / "m.model")
    again, X = load(tmp_path / "m.model"), corpus[0][500:].tolil()
    X[0] = 0  # a document without words
    X = X.tocsr()
    np.testing.assert_array_equal(again.predict_survival_function(X), model.predict_survival_function(X))
    y = np.column_stack([corpus[1], corpus[2]])[500:]
    assert again.evaluate(X, y).figures == model.evaluate(X, y).figures
    again.partial_fit(X, y)
    assert again.n_batches_ == 2 and again.times_.tolist() == model.times_.tolist()


def test_a_damaged_file_is_refused(model):
    response, draws = model.posterior_.response, model.posterior_.scale
    n = len(model.coef_)
    response.check_fitted(n)
    response.check_scale(draws, n)
    wrong = [
        {"edges": response.edges[::-1]}, {"edges": response.edges - response.edges[0]}, {"edges": response.edges[:1]},
        {"life": response.life[:, 1:]}, {"life": -response.life}, {"life": response.life * np.nan},
        {"censor_times": response.censor_times[1:]}, {"censor_times": response.censor_times + 1.0},
        {"censor_survival": response.censor_survival * 2.0}, {"censor_survival": response.censor_survival[::-1]},
        {"censor_survival": response.censor_survival - 1.0},
    ]  # fmt: skip
    if n == 1:
        wrong += [{"base": response.base[1:]}, {"base": response.base * np.nan}, {"anchor": 99}, {"anchor": -1}]
        wrong += [{"life": response.life * [[1.0], [0.0]]}]
        for bad in (draws[:, :, 1:], draws * np.nan):
            with pytest.raises(ValueError, match="cannot be right"):
                response.check_scale(bad, 1)
    for parts in wrong:
        with pytest.raises(ValueError, match="cannot be right"):
            replace(response, **parts).check_fitted(n)
    with pytest.raises(ValueError, match="cannot be right"):
        response.check_fitted(n + 1)


def test_batches_learn_as_all_documents_do(model, corpus, short_regressions):
    X, time, event, _ = corpus
    whole, effects = model, model.effects
    parts = SLDASurvivalRegressor(**RUN, effects=effects)
    for docs in np.array_split(np.arange(500), 2):
        parts.partial_fit(X[docs], time[docs], event=event[docs])
    parts.partial_fit(X[:20])  # without times
    parts.partial_fit(X[20:40], np.full(20, 1.0), event=np.zeros(20))  # all censored
    first = time[:250][event[:250]]
    np.testing.assert_array_equal(parts.times_, choose_edges("auto", first, 20 if effects == "shared" else 8))
    a, b = (m.evaluate(X[500:], time[500:], event=event[500:]).figures for m in (whole, parts))
    assert abs(a["concordance"] - b["concordance"]) < 0.03
    assert abs(a["integrated_brier_score"] - b["integrated_brier_score"]) < 0.03


def test_forms_of_y(corpus, short_regressions):
    X, time, event, _ = (part[:150] for part in corpus)
    run = RUN | {"n_chains": 1, "burn_in": 5, "n_draws": 4, "words": False}
    other = np.zeros(150, dtype=[("status", bool), ("days", float)])
    other["status"], other["days"] = event, time
    forms = [
        np.column_stack([time, event]), other, pd.DataFrame({"days": time, "left": event}),
        pd.DataFrame({"left": event, "days": time}), pd.DataFrame({"days": time, "left": event.astype(int)}),
        np.array([[t, e] for t, e in zip(time, event, strict=True)], object),
    ]  # fmt: skip
    want = SLDASurvivalRegressor(**run).fit(X, time, event=event).predict_survival_function(X)
    for y in forms:
        np.testing.assert_array_equal(SLDASurvivalRegressor(**run).fit(X, y).predict_survival_function(X), want)
    for column in (event.astype(int).tolist(), pd.Series(event), event.astype(object)):
        found = SLDASurvivalRegressor(**run).fit(X, pd.Series(time), event=column)
        np.testing.assert_array_equal(found.predict_survival_function(X), want)
    scaled = SLDASurvivalRegressor(**run).fit(X, 1e6 * time, event=event)
    np.testing.assert_array_equal(scaled.predict_survival_function(X), want)  # no unit of time
    gone = np.where(np.arange(150) % 3 == 0, np.nan, time)
    unknown = SLDASurvivalRegressor(**run).fit(X, gone, event=event)
    halves = pd.array(event, dtype="boolean")
    halves[::3] = pd.NA
    same = SLDASurvivalRegressor(**run).fit(X, time, event=halves)
    weighted = SLDASurvivalRegressor(**run).fit(X, time, (np.arange(150) % 3 > 0).astype(float), event=event)
    for found in (same, weighted):
        np.testing.assert_array_equal(found.predict(X), unknown.predict(X))
    known = SLDASurvivalRegressor(**run).fit(X, time)
    assert known.life_table_[1].sum() == 150 and known.times_[-1] == time.max()


@pytest.mark.parametrize(
    ("y", "more", "message"),
    [
        (np.r_[-1.0, np.ones(59)], {}, "Times must be from 0 to 1e.100, got -1"),
        (["soon", "late"] * 30, {}, "y must hold numbers"),
        (pd.to_timedelta(np.arange(60), unit="D"), {}, "give times as numbers, such as days"),
        (np.r_[np.inf, np.ones(59)], {}, "infinity"),
        (np.arange(60.0), {"event": np.full(60, 2)}, "event must be 0 or 1, False or True, for each document, got 2"),
        (np.arange(60.0), {"event": ["yes"] * 60}, "event must hold numbers"),
        (np.arange(60.0), {"event": np.zeros(60)}, "All documents are censored"),
        (np.arange(60.0), {"event": np.ones(59)}, "60 times but event has 59"),
        (np.arange(59.0), {}, "60 documents but y has 59"),
        (None, {"event": np.ones(60)}, "without times"),
        (None, {}, "requires y"),
        (np.full(60, 3.0), {}, "Events came at one time only, in n_samples = 60"),
        (np.zeros(60), {}, "Events came at one time only"),
        (np.full(60, np.nan), {}, "Every time in y is unknown"),
        (np.zeros((60, 3)), {}, "two columns: times and events; got shape .60, 3."),
        (np.zeros((60, 2)), {"event": np.ones(60)}, "leave event= out"),
        (np.zeros(60, [("a", bool), ("b", bool)]), {}, "boolean field with events"),
        (np.arange(60.0), {"periods": [1, 5, 5]}, "positive, finite and increasing"),
        (np.arange(60.0), {"periods": [5, 1]}, "positive, finite and increasing"),
        (np.arange(60.0), {"periods": [1, np.inf]}, "positive, finite and increasing"),
        (np.arange(60.0), {"periods": [0, 5]}, "from 2 to 100 periods, got the edges of 1"),
        (np.arange(60.0), {"periods": 1}, "periods must be from 2 to 100, got 1"),
        (np.arange(60.0), {"periods": "many"}, "'auto', a number of periods, or the edges"),
        (np.arange(60.0), {"periods": True}, "'auto', a number of periods, or the edges"),
        (np.arange(60.0), {"periods": [100, 200]}, "Events are in 1 of the periods"),
        (np.arange(60.0), {"effects": "both"}, "effects must be 'shared' or 'by_period'"),
    ],
)
def test_bad_input(y, more, message):
    made = make_corpus(n_docs=60, n_topics=3, random_state=0)
    event = {"event": more.pop("event")} if "event" in (more := dict(more)) else {}
    with pytest.raises(ValueError, match=message):
        SLDASurvivalRegressor(**RUN, **more).fit(made.X, y, **event)


def test_bad_input_to_a_fitted_model(model, corpus):
    with pytest.raises(ValueError, match="event must be 0 or 1"):
        model.evaluate(corpus[0], corpus[1], event=np.full(700, 3))
    with pytest.raises(ValueError, match="700 documents but y has 699"):
        model.score(corpus[0], corpus[1][1:])
    with pytest.raises(ValueError, match="level"):
        model.predict_survival_interval(corpus[0], 2.0)
    with pytest.raises(ValueError, match="No response in y is known"):
        model.score(corpus[0], np.full(700, np.nan))


def test_covariates_groups_and_seeds(corpus):
    """A covariate with a known effect, and groups with one; seeds with a weight."""
    X, _, _, omega = corpus
    rng = np.random.default_rng(1)
    z, group = rng.normal(size=700), rng.integers(0, 5, 700)
    time = rng.exponential(10.0 * np.exp(-omega - z - 0.8 * (group - 2)))
    model = SLDASurvivalRegressor(**RUN, words=False)
    model.fit(X[:500], time[:500], covariates=z[:500], groups=group[:500])
    low, high = model.covariate_coef_interval()
    assert low[0, 0] > 0.4 and high[0, 0] < 2.0  # about 1, on the scale of log-odds
    assert (np.diff(model.group_frame()["mean"]) > 0).all()
    beside = {"covariates": z[500:], "groups": group[500:]}
    assert model.score(X[500:], time[500:], **beside) > model.score(X[500:], time[500:], covariates=0 * z[500:]) + 0.03
    names = np.array([f"w{i}" for i in range(X.shape[1])])
    seeded = SLDASurvivalRegressor(**RUN | {"n_chains": 1}, words=False, seeds={"a": ["w1", "w2"]}).fit(
        X[:100], time[:100], feature_names=names
    )
    assert seeded.topic_name(0) == "a"


def test_checkpoints(corpus, tmp_path, short_regressions):
    X, time, event, _ = (part[:150] for part in corpus)
    run = RUN | {"n_chains": 1, "burn_in": 5, "n_draws": 4, "periods": [1.0, 3.0, 9.0]}
    whole = SLDASurvivalRegressor(**run).fit(X, time, event=event)
    stopped = SLDASurvivalRegressor(**run | {"n_draws": 2})
    stopped.fit(X, time, event=event, checkpoint=tmp_path / "c", checkpoint_every=0)
    resumed = SLDASurvivalRegressor(**run).fit(X, time, event=event, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(whole.training_draws_, resumed.training_draws_)
    np.testing.assert_array_equal(whole.predict(X), resumed.predict(X))


def test_tables_on_disk(corpus, tmp_path, short_regressions):
    X, time, event, _ = (part[:150] for part in corpus)
    texts = [
        " ".join(f"w{'abcdefghij'[w % 10]}{'abcdefghij'[w // 10 % 10]}{'abcdefghij'[w // 100]}"
                 for w in np.repeat(np.arange(X.shape[1]), row.astype(int)))
        for row in X.toarray()
    ]  # fmt: skip
    table = pd.DataFrame({"text": texts, "days": time, "left": event.astype(int)})
    table.to_csv(tmp_path / "t.csv", index=False)
    run = RUN | {"n_chains": 1, "burn_in": 5, "n_draws": 4}
    found = SLDASurvivalRegressor(**run).fit_files(tmp_path / "t.csv", label="days", event="left")
    same = SLDASurvivalRegressor(**run).fit(texts, time, event=event)
    np.testing.assert_allclose(found.predict(texts), same.predict(texts))


def test_choose_topics_and_placebo(corpus, short_regressions):
    X, y = corpus[0][:200], np.column_stack([corpus[1], corpus[2]])[:200]
    found = choose_topics(SLDASurvivalRegressor(), X, y, [2, 3], burn_in=5, n_draws=4, n_chains=1)
    assert [row["n_topics"] for row in found.rows] == [2, 3] and found.score == "concordance"
    model = SLDASurvivalRegressor(**RUN | {"burn_in": 5, "n_draws": 4, "n_chains": 1}).fit(X, y)
    assert len(model.placebo(X, y)) == 2
    assert np.isfinite(SLDASurvivalRegressor(**RUN | {"n_chains": 1}, calibrate=False).fit(X, y).predict_risk(X)).all()


def test_heavy_censoring_is_no_bias():
    """70 % censored: weights, survival curves and concordance are those of the truth; intervals of weights cover it."""
    inside, errors, apart = [], [], []
    for seed in range(3):
        made, omega, time, seen = make_times(900, seed, 0.7, size=2.5)
        model = SLDASurvivalRegressor(**RUN | {"random_state": seed})
        model.fit(made.X[:700], seen.time[:700], event=seen.event[:700])
        order = [int(np.argmax(made.topic_word @ row)) for row in model.topic_word_]
        shares = model.posterior_.mean_shares
        truth = made.eta[0][order]
        draws = model.coef_draws_[:, 0]
        draws, truth = draws - (draws @ shares)[:, None], truth - truth @ shares
        lower, upper = np.quantile(draws, [0.05, 0.95], axis=0)
        inside += ((lower < truth) & (truth < upper)).tolist()
        errors += (draws.mean(axis=0) - truth).tolist()
        rest = slice(700, None)
        curve = model.predict_survival_function(made.X[rest]).mean(axis=0)
        apart.append(np.abs(curve - [(time[rest] > t).mean() for t in model.times_]).max())
        best = concordance(Times(time[rest], np.ones(200)), omega[rest])
        assert model.score(made.X[rest], time[rest]) > best - 0.03
        near = [near_limits(np.mean(inside), 0.95, least=0.7), near_limits(np.mean(errors), 0.0, -0.4, 0.4)]
        near += [near_limits(np.mean(np.abs(errors)), 0.3, most=0.8), near_limits(np.mean(apart), 0.03, most=0.12)]
        if stops_early(seed + 1, 3, lambda scores=near: scores):
            break
    assert np.mean(inside) > 0.7 and abs(np.mean(errors)) < 0.4 and np.mean(np.abs(errors)) < 0.8
    assert np.mean(apart) < 0.12


def test_noise_has_no_effect():
    """Times that nothing explains: 90 % intervals exclude 0 about as often as they should, and losses are usual."""
    outside, losses = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(6):
            made, _, _, seen = make_times(450, seed, 0.5, n_topics=4)
            order = np.random.default_rng(seed).permutation(450)
            y = np.column_stack(seen)[order]
            model = SLDASurvivalRegressor(4, burn_in=20, n_draws=10, n_chains=2, random_state=seed, periods=8)
            model.fit(made.X[:300], y[:300])
            lower, upper = model.coef_interval(0.9)
            outside += ((lower > 0) | (upper < 0)).ravel().tolist()
            hazard = model.life_table_[1] / model.life_table_[0]
            logit = np.log(hazard) - np.log1p(-hazard)
            base = replace(model.posterior_.response, thresholds=-logit)
            truth = base.truth(y[300:], 150)
            plain = base.loss(truth, np.zeros((1, 150, 1)), -logit[None])
            losses.append(model.evaluate(made.X[300:], y[300:]).losses.mean() - plain.mean())
            near = near_limits(np.mean(outside), 0.1, most=0.25), near_limits(np.mean(losses), 0.0, -0.01, 0.01)
            if stops_early(seed + 1, 6, lambda scores=near: scores):
                break
    assert np.mean(outside) < 0.25 and abs(np.mean(losses)) < 0.01


def test_the_reported_level_rests_on_all_periods():
    """Weights of all topics together are known as well as all events are, not as those of the period that is held."""
    response = shared(1.0, [1.0, 1.5, 2.0], life=[[100, 80, 50], [10, 20, 10]])
    moved = response.with_scale(np.array([1.4, 1.5, 2.4]))
    assert moved.excess == pytest.approx(0.2) and response.excess == 0.0 and by_period(1.0).excess == 0.0
    prepared = response.prepared()
    assert prepared.anchor == 1
    np.testing.assert_allclose(expit(-prepared.base), response.life[1] / response.life[0], atol=0.01)


def test_reported_weights_are_without_the_excess(model, monkeypatch, corpus):
    """Weights of all topics are shifted by what thresholds have in common."""
    if len(model.coef_) > 1:
        pytest.skip("there are no thresholds")
    X, time, event, _ = (part[:500] for part in corpus)
    monkeypatch.setattr(SharedHazards, "excess", 0.0)
    plain = SLDASurvivalRegressor(**RUN, words=False).fit(X, time, event=event)
    apart = plain.coef_draws_ - model.coef_draws_
    np.testing.assert_allclose(apart, np.broadcast_to(apart[:, :, :1], apart.shape), atol=1e-9)
    assert apart[:, 0, 0].std() > 0.03  # that of the threshold that is held
    assert plain.coef_draws_.mean(axis=2).std() > 1.05 * model.coef_draws_.mean(axis=2).std()


def test_folds_of_words_share_a_level(corpus):
    """Each fold has thresholds of its own; what words add is moved to the level of the weights from all documents."""
    from supertopic.inference.beside import Part, Seen, learn_beside, sum_parts
    from supertopic.sampling.pool import Pool

    X, time, event, _ = (part[:300] for part in corpus)
    encoded = SharedHazards(1.0).encode(np.column_stack([time, event]), np.ones((300,)))
    x = X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)).reshape(-1, 1)).tocsr()
    seen, nobody = Seen(np.arange(300), encoded.target), make_target(np.zeros((0, 1)), np.zeros((0, 1)))
    part = Part(x)
    found = learn_beside([part], seen, Seen(np.zeros(0, int), nobody), encoded.response, Pool(1))
    known = encoded.target.weight[:, 0] > 0
    whole = sum_parts([part], np.flatnonzero(known), found.theta)
    assert found.added[known].std() > 0.3
    np.testing.assert_allclose(found.added[known].mean(), whole.mean(), atol=1e-6)


def test_who_is_censored_at_once_says_nothing(corpus):
    encoded = by_period(1.0).encode([[0.1, 0], [0.9, 0], [1.5, 1], [np.nan, 1]], np.ones(4))
    assert (encoded.target.weight > 0).any(axis=1).tolist() == [False, True, True, False]
    encoded = shared(1.0, TWO).encode([[0.1, 0], [0.9, 0], [1.5, 1], [np.nan, 1]], np.ones(4))
    assert encoded.target.weight[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0] and encoded.target.y[:, 0].tolist()[1:3] == [
        1,
        1.5,
    ]


def test_random_times_follow_the_model():
    """Times drawn from the curve have its frequencies, by a chi-square."""
    rng, response = np.random.default_rng(4), shared(1.0, THREE)
    hazard = expit(0.7 - np.array(THREE))
    alive, passed = np.ones(20_000, bool), np.full(20_000, 3.0)
    for j, h in enumerate(hazard):
        event = alive & (rng.random(20_000) < h)
        passed[event], alive = j + 0.5, alive & ~event
    curve = response.expected(np.array([[0.7]]))[0]
    expected = 20_000 * -np.diff(np.concatenate([[1.0], curve, [0.0]]))
    observed = [(passed == value).sum() for value in (0.5, 1.5, 2.5, 3.0)]
    assert stats.chisquare(observed, expected).pvalue > ALARM


def test_read_times_of_unknown_ones():
    found = read_times([[1.0, 1], [np.nan, 1], [2.0, np.nan], [0.0, 0]], 4)
    assert found.known.tolist() == [True, False, False, True]
    assert read_times(pd.Series([1, None, 3]), 3).known.tolist() == [True, False, True]


def test_seeds_fade_with_the_events_and_chains_start_from_ranks_of_times():
    """An early event is a large risk; who is censored early is known to be at less risk than nobody alive."""
    passed, weight = np.array([0.5, 3.0, 1.0, 2.5, 1.5, 0.5]), np.array([1.0, 2.0, 1.0, 1.0, 1.0, 0.0])
    life = np.array([[5.0, 4.0, 2.0], [1.0, 1.0, 1.0]])
    for response in (shared(1.0, THREE, life=life), replace(by_period(1.0, 3), life=life)):
        target = make_target(*response.columns_of(passed, weight))
        np.testing.assert_array_equal(response.seed_support(target, np.zeros((1, 4))), np.full(4, 3.0))
        sooner, later = response.start_columns(target).T
        assert np.argsort(-sooner[:5], kind="stable").tolist() == [0, 4, 3, 2, 1] and sooner[5] == later[5] == 0.0
        np.testing.assert_allclose(sooner[:5] + later[:5], 1.0)
        assert sooner.max() == 1.0 and sooner[:5].min() == 0.0
