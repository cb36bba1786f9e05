"""Several raters: the exact posterior with true labels summed out, confusion matrices, Dawid and Skene, predictions."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, gammaln, log_expit, logsumexp, softmax
from test_posterior import (
    ALPHA,
    BETA,
    DOCS,
    N_WORDS,
    OFFSET,
    chance_of_visits,
    check_exactly,
    compare,
    run,
    sampler,  # noqa: F401
    score_of_moments,
)

import naive
from small import ERRORS, engine_of, flat, near_limits, plan_of, put, score_of_difference, stops_early
from supertopic import SLDAClassifier, SLDACrowdClassifier, SLDACrowdRegressor, SLDARegressor, load, save
from supertopic.baselines import dawid_skene
from supertopic.corpus.source import make_target
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import make_key
from supertopic.model.responses import CrowdGaussian, CrowdLogistic, Logistic
from supertopic.model.responses.answers import as_answers
from supertopic.model.responses.crowd import RIGHT, WRONG
from supertopic.model.state import Priors
from supertopic.sampling.gibbs import iterate
from supertopic.sampling.threads import ThreadEngine

pytestmark = pytest.mark.filterwarnings("ignore:Found no relation between topics")
RUN = {"n_topics": 3, "burn_in": 20, "n_draws": 10, "n_chains": 2, "predict_sweeps": 15, "random_state": 0}
NAN = np.nan
TWO = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.1, 0.9]]])  # confusion matrices of two raters
THREE = softmax(np.random.default_rng(3).normal(size=(2, 3, 3)) + 2.0 * np.eye(3), axis=2)


def classes(c, confusion, drawn=False):
    n = confusion.shape[1]
    raters = np.array([f"r{i}" for i in range(len(confusion))], object)
    more = {"classes": np.arange(n), "raters": raters, "base": confusion, "n_answers": np.ones(len(raters))}
    return CrowdLogistic(c, confusion=confusion.ravel(), drawn=drawn, **more)


def layout(response, Y, gold=None):
    """y of a target for answers (n_docs, n_raters)."""
    rows, n = [], response.n_classes
    for row in Y:
        codes = [r * n + int(a) for r, a in enumerate(row) if not np.isnan(a)]
        rows.append(codes + [-1] * (len(row) - len(codes)))
    gold = np.full(len(Y), -1.0) if gold is None else gold
    return np.column_stack([gold, np.full((len(Y), n), 1.0 / n), np.array(rows, float)])


def answer_probability(confusion, row, t):
    return np.prod([confusion[r, t, int(a)] for r, a in enumerate(row) if not np.isnan(a)])


def log_sum(c, confusion, Y, gold, weight):
    """log psi of a binary document with the true class summed out; y is the number of the document."""

    def found(y, omega, scale):
        total = np.zeros(omega.shape)
        for d in y.astype(int):
            if weight[d] == 0:
                continue
            copies = np.ceil(c * weight[d])
            each = c * weight[d] / copies
            logs = []
            for t in (0, 1):
                p = answer_probability(confusion, Y[d], t) * (gold[d] in (-1, t))
                logs.append(each * (log_expit(omega[:, d] if t else -omega[:, d]) + np.log(p + 1e-300)))
            total[:, d] = copies * logsumexp(logs, axis=0) / weight[d]
        return total

    return found


Y2 = np.array([[1, NAN], [0, 1], [NAN, NAN], [1, 1]])
GOLD = np.array([-1, -1, -1, 0])


@pytest.mark.parametrize(
    ("c", "gold", "weight"),
    [(1.0, np.full(4, -1), [1, 1, 0, 1]), (2.0, GOLD, [1, 1, 0, 1]), (1.5, np.full(4, -1), [1, 2, 0, 0.5])],
    ids=["c1", "gold", "weighted"],
)
def test_exact_posterior(sampler, monkeypatch, c, gold, weight):  # noqa: F811
    """A power that is not whole is that of copies of a document, each with a true class of its own."""
    response = classes(c, TWO)
    monkeypatch.setitem(check_exactly.__globals__["Y"], "crowd", ([[0], [1], [2], [3]], [[w] for w in weight]))
    more = {"y": layout(response, Y2, gold), "offset": OFFSET, "drawn": lambda s: np.ones(1)}
    more |= {"own": lambda s: TWO.ravel()}
    check_exactly(sampler, "crowd", response, log_sum(c, TWO, Y2, gold, np.array(weight, float)), ALPHA, more)


def test_exact_posterior_of_three_classes(sampler):  # noqa: F811
    """Columns depend on each other through the true classes, which are enumerated together with z."""
    Y, response, nu2 = np.array([[1, 2], [NAN, 0], [NAN, NAN], [2, 2]]), classes(1.0, THREE), 2.0
    weight = np.array([[1.0], [1], [0], [1]]) * np.ones(3)
    points = np.linspace(-8, 8, 33)
    grid = np.array(list(itertools.product(points, repeat=2)))
    prior = -0.5 * (grid**2).sum(axis=1) / nu2
    states, logs, etas = [], [], []
    for zs in itertools.product(range(2), repeat=6):
        z = [list(part) for part in np.split(np.array(zs), np.cumsum([3, 2, 0]))]
        log_z = naive.log_words(DOCS, z, N_WORDS, 2, BETA) + naive.log_documents(z, np.array(ALPHA))
        omega = grid @ naive.zbars(z, 2).T  # (G, n_docs)
        for t in itertools.product(range(3), repeat=3):
            truth = np.array([t[0], t[1], -1, t[2]])
            log_p = log_z + sum(np.log(answer_probability(THREE, Y[d], truth[d])) for d in range(4) if truth[d] >= 0)
            columns = []
            for r in range(3):
                own = prior + sum(
                    log_expit(omega[:, d] if truth[d] == r else -omega[:, d]) for d in range(4) if truth[d] >= 0
                )
                log_p += logsumexp(own)
                columns.append(np.exp(own - logsumexp(own)))
            states.append((z, truth))
            logs.append(log_p)
            etas.append(np.array(columns))
    p = np.exp(np.array(logs) - logsumexp(logs))
    mass = p.reshape(64, 27)
    columns = np.einsum("st,strg->srg", mass, np.array(etas).reshape(64, 27, 3, -1)) / mass.sum(axis=1)[:, None, None]
    mass = mass.sum(axis=1)
    rng, counts, drawn, n_replicates = np.random.default_rng(8), np.zeros(64), [], 2500
    target = make_target(layout(response, Y), weight)
    plan, source = plan_of(DOCS, N_WORDS, response, target, Priors(np.array(ALPHA), BETA, nu2), sampler)
    engine = ThreadEngine(plan, source, 1)
    of_z = {tuple(k for t in z for k in t): i // 27 for i, (z, _) in enumerate(states)}
    for replicate in range(n_replicates):
        s = rng.choice(len(p), p=p)
        eta = np.array([grid[rng.choice(len(grid), p=row)] for row in etas[s]])
        z, _ = states[s]
        omega = naive.zbars(z, 2) @ eta.T
        put(engine, plan, source, flat(DOCS, z)[1], response, response.draw(target, omega, make_key(replicate), 0), eta)
        eta, _, z = run(engine, response, plan.priors, make_key(replicate, 2), 3)
        drawn.append(eta)
        counts[of_z[tuple(z.tolist())]] += 1
        look = (
            (lambda: score_of_moments(mass, np.array(drawn), grid, columns)),
            (lambda: chance_of_visits(counts, mass)),
        )
        if stops_early(replicate + 1, n_replicates, *look):
            break
    compare(counts, mass, np.array(drawn), grid, columns)


class Documents:
    """Sums over documents whose omega is known."""

    def __init__(self, target, omega):
        self.target, self.omega = target, omega

    def own_sums(self, responses, key):
        return np.array([response.own_sums(self.target, self.omega, key, 0) for response in responses])


def test_confusion_matrices_are_drawn_from_their_posterior():
    """Against the enumeration of all true classes, given which the answers are Dirichlet-multinomial."""
    rng = np.random.default_rng(1)
    omega, Y = rng.normal(size=(5, 1)), rng.integers(0, 2, (5, 2)).astype(float)
    Y[0, 1] = Y[3, 0] = NAN
    response, prior = classes(1.0, TWO, drawn=True), np.where(np.eye(2) > 0, RIGHT, WRONG)
    target = make_target(layout(response, Y), np.ones((5, 1)))
    logs, means, squares = [], [], []
    for truth in itertools.product(range(2), repeat=5):
        counts = np.zeros((2, 2, 2))
        for d, r in zip(*np.nonzero(~np.isnan(Y)), strict=True):
            counts[r, truth[d], int(Y[d, r])] += 1
        own = prior + counts
        log_p = sum(log_expit(omega[d, 0] if t else -omega[d, 0]) for d, t in enumerate(truth))
        log_p += (gammaln(own).sum(axis=2) - gammaln(own.sum(axis=2))).sum()
        whole = own.sum(axis=2, keepdims=True)
        logs.append(log_p)
        means.append(own / whole)
        squares.append(own * (own + 1.0) / (whole * (whole + 1.0)))
    mass = softmax(logs)
    now, draws, n_draws = response, [], 20_000

    def scores():
        kept, found = np.array(draws)[::4], []
        for power, truth in ((1, means), (2, squares)):
            exact = np.tensordot(mass, truth, 1).ravel()
            error = (kept**power).std(axis=0) / np.sqrt(len(kept) / 4)
            found.append(np.abs((kept**power).mean(axis=0) - exact).max() / error.max())
        return np.array(found)

    for i in range(n_draws):
        now = now.draw_scale(Documents(target, omega), make_key(2, i))
        draws.append(now.scale)
        if stops_early(i + 1, n_draws, scores):
            break
    assert scores().max() < ERRORS


def test_likelihood_by_its_definition():
    rng = np.random.default_rng(0)
    for confusion in (TWO, THREE):
        n, response = confusion.shape[1], classes(2.0, confusion)
        n_columns = response.n_columns
        Y = rng.integers(0, n, (6, 2)).astype(float)
        Y[0] = [NAN, 1]
        gold = np.array([-1, -1, 1, -1, 0, -1])
        omega, weight = rng.normal(size=(6, n_columns)), rng.choice([0.5, 1.0, 0.7], (6, 1)) * np.ones(n_columns)
        target = make_target(layout(response, Y, gold), weight)
        logs = np.array([
            [np.log(answer_probability(confusion, row, t) * (g in (-1, t)) + 1e-300) for t in range(n)]
            for row, g in zip(Y, gold, strict=True)
        ])  # fmt: skip
        if n == 2:
            psi = np.column_stack([log_expit(-omega[:, 0]), log_expit(omega[:, 0])])
        else:
            sign = 2.0 * np.eye(3) - 1.0
            psi = np.array([[log_expit(sign[t] * w).sum() for t in range(3)] for w in omega])
        np.testing.assert_allclose(response.log_density(target.y, omega).sum(axis=1), logsumexp(psi + logs, axis=1))
        copies = np.ceil(2.0 * weight[:, 0])
        each = (2.0 * weight[:, 0] / copies)[:, None]
        total = (copies * logsumexp(each * (psi + logs), axis=1)).sum()
        assert response.log_likelihood(target, omega).sum() == pytest.approx(total)
        plain = softmax(np.column_stack([np.zeros(6), omega]) if n == 2 else omega, axis=1)
        value = -(weight[:, 0] * np.log((plain * np.exp(logs)).sum(axis=1))).sum()
        assert response.cost(target, omega)[0] == pytest.approx(value)
        for d in range(6):
            for r in range(n_columns):

                def at(f, step, d=d, r=r, omega=omega, target=target):
                    there = omega.copy()
                    there[d, r] += step
                    return f(target, there)

                up, down, here = (at(response.log_likelihood, s).sum() for s in (1e-4, -1e-4, 0.0))
                assert response.gradient(target, omega)[d, r] == pytest.approx((up - down) / 2e-4, abs=1e-4)
                full = (2.0 * weight * expit(omega) * expit(-omega))[d, r]
                bend = max(-(up + down - 2 * here) / 1e-8, 0.05 * full)
                assert response.information(target, omega)[d, r] == pytest.approx(bend, abs=1e-4)
                up, down, here = (at(response.cost, s)[0] for s in (1e-4, -1e-4, 0.0))
                assert response.cost(target, omega)[1][d, r] == pytest.approx((up - down) / 2e-4, abs=1e-4)
                q = plain[d, r + (n == 2)]
                bend = max((up + down - 2 * here) / 1e-8, 0.05 * weight[d, r] * q * (1 - q))
                assert response.curvature(target, omega)[d, r] == pytest.approx(bend, abs=1e-4)
        scales = np.array([confusion.ravel(), np.full(confusion.size, 1.0 / n)])
        found = response.log_predictive(target.y, np.array([omega, 0 * omega]), scales)
        flat_logs = np.where(np.exp(logs) > 0, np.log(1.0 / n) * (~np.isnan(Y)).sum(axis=1)[:, None], -700.0)
        flat_logs = np.where((gold[:, None] >= 0) & (gold[:, None] != np.arange(n)), -700.0, flat_logs)
        second = (np.exp(flat_logs) / n).sum(axis=1)
        np.testing.assert_allclose(found[:, 0], np.log(0.5 * ((plain * np.exp(logs)).sum(axis=1) + second)))


def test_gold_classes_are_the_logistic_model():
    response, omega = classes(4.0, TWO), np.array([[0.3], [-2.0], [1.5]])
    y, weight = np.array([[0.0], [1.0], [1.0]]), np.array([[1.0], [2.0], [0.0]])
    target = make_target(layout(response, np.full((3, 2), NAN), y[:, 0]), weight, OFFSET[:3])
    there = Logistic(4.0).draw(target._replace(y=y), omega, make_key(3), 5)
    found = response.draw(target, omega, make_key(3), 5)
    np.testing.assert_allclose(found, there, rtol=1e-12)
    assert response.gradient(target, omega) == pytest.approx(Logistic(4.0).gradient(target._replace(y=y), omega))


def test_draws_depend_on_the_number_of_the_document_only():
    rng = np.random.default_rng(0)
    response, omega = classes(2.0, THREE), rng.normal(size=(20, 3))
    y = layout(response, rng.integers(0, 3, (20, 2)).astype(float))
    whole = response.draw(make_target(y, np.ones((20, 3))), omega, make_key(1), 3)
    part = response.draw(make_target(y[7:], np.ones((13, 3))), omega[7:], make_key(1), 10)
    np.testing.assert_array_equal([a[7:] for a in whole], part)
    ratings, omega = numbers(2.0), omega[:, :1]
    y = number_layout(rng.normal(size=(20, 2)))
    sums = [ratings.own_sums(make_target(y[a:], np.ones((20 - a, 1))), omega[a:], make_key(1), a) for a in (0, 7)]
    first = ratings.own_sums(make_target(y[:7], np.ones((7, 1))), omega[:7], make_key(1), 0)
    np.testing.assert_allclose(sums[0], sums[1] + first)


# --- Dawid and Skene


def test_dawid_and_skene():
    """The fixed point of a plain loop, and the true classes of a corpus that raters with known errors have seen."""
    rng = np.random.default_rng(0)
    n, truth = 250, rng.choice(3, 250, p=[0.5, 0.3, 0.2])
    right = [0.9, 0.7, 0.6, 0.8]
    Y = np.array([[t if rng.random() < p else rng.integers(3) for p in right] for t in truth], float)
    Y[rng.random(Y.shape) < 0.3] = NAN
    gold = np.where(np.arange(n) < 20, truth, NAN)
    found = dawid_skene(pd.DataFrame(Y, columns=list("abcd")), gold)
    prior, p, confusion = np.where(np.eye(3) > 0, RIGHT, WRONG / 2), np.full((n, 3), 1 / 3), None
    for t in range(3):
        p[:, t] = 0.1 + (t == Y).sum(axis=1)
    p = np.where(np.isnan(gold)[:, None], p / p.sum(axis=1, keepdims=True), gold[:, None] == np.arange(3))
    rate = np.full(3, 1 / 3)
    for i in range(200):
        counts = np.array([[[p[Y[:, r] == a, t].sum() for a in range(3)] for t in range(3)] for r in range(4)])
        confusion = (prior + counts) / (prior + counts).sum(axis=2, keepdims=True)
        rate = rate if i == 0 else (1 + p.sum(axis=0)) / (3 + p.sum())
        for d in range(n):
            p[d] = [rate[t] * answer_probability(confusion, Y[d], t) * (np.isnan(gold[d]) or gold[d] == t)
                    for t in range(3)]  # fmt: skip
        p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.probability, p, atol=1e-3)
    np.testing.assert_allclose(found.confusion, confusion, atol=1e-3)
    assert found.raters.tolist() == list("abcd") and found.classes.tolist() == [0, 1, 2]
    assert (found.labels == truth).mean() > 0.8 and (found.labels[:20] == truth[:20]).all()


def test_without_texts_the_model_is_that_of_dawid_and_skene():
    """Documents without words: the confusion matrices and the true classes are those of the answers alone."""
    rng = np.random.default_rng(0)
    truth = rng.choice(2, 600, p=[0.6, 0.4])
    Y = np.array([[t if rng.random() < p else 1 - t for p in (0.9, 0.8, 0.7)] for t in truth], float)
    X = np.zeros((600, 5), int)
    X[::20, 0] = 1  # a few words, which say nothing
    alone = dawid_skene(Y)
    model = SLDACrowdClassifier(words=False, **RUN | {"predict_sweeps": 40}).fit(X, Y)
    np.testing.assert_allclose(model.confusion_, alone.confusion, atol=0.05)
    empty = X[:, 0] == 0
    np.testing.assert_allclose(model.infer_labels(X, Y)[empty], alone.probability[empty], atol=0.05)


# --- ratings


def numbers(c, sigma2=0.5, bias=(0.3, -0.2), precision=(4.0, 1.5), drawn=False, has_gold=True):
    raters = np.array(["a", "b"], object)
    return CrowdGaussian(
        c, np.array([sigma2]), drawn=drawn, names=np.array(["rating"], object), raters=raters, n_answers=np.ones(2),
        base=np.array([bias, precision]), bias=np.array(bias), precision=np.array(precision), has_gold=has_gold,
    )  # fmt: skip


def number_layout(Y, gold=None):
    there = ~np.isnan(Y)
    ids, values = np.full(Y.shape, -1.0), np.zeros(Y.shape)
    for d, row in enumerate(there):
        place = np.flatnonzero(row)
        ids[d, : len(place)], values[d, : len(place)] = place, Y[d, place]
    gold = np.full(len(Y), NAN) if gold is None else gold
    return np.column_stack([gold, ids, values])


def rating_density(response, row, gold, omega):
    """log p(ratings | omega) by quadrature over the true rating."""

    def given(t):
        return sum(stats.norm.logpdf(y, t + response.bias[r], response.precision[r] ** -0.5)
                   for r, y in enumerate(row) if not np.isnan(y))  # fmt: skip

    sd = np.sqrt(response.sigma2[0])
    if not np.isnan(gold):
        return given(gold) + stats.norm.logpdf(gold, omega, sd)
    t = np.linspace(-12, 12, 4001)
    return logsumexp(given(t) + stats.norm.logpdf(t, omega, sd)) + np.log(t[1] - t[0])


Y4 = np.array([[1.2, NAN], [0.2, -0.5], [NAN, NAN], [0.4, 1.0]])


def test_density_of_ratings_by_quadrature():
    response, omega = numbers(1.0), np.array([[0.2], [-0.4], [0.1], [0.9]])
    gold = np.array([NAN, NAN, 0.7, 0.3])
    y = number_layout(Y4, gold)
    found = response.log_density(y, omega)[:, 0]
    np.testing.assert_allclose(
        found, [rating_density(response, *of, w) for *of, w in zip(Y4, gold, omega[:, 0], strict=True)], atol=1e-8
    )
    target, step = make_target(y, np.full((4, 1), 0.7)), 1e-4
    up, down = (0.7 * response.log_density(y, omega + s) for s in (step, -step))
    np.testing.assert_allclose(response.gradient(target, omega), (up - down) / (2 * step), atol=1e-6)
    bend = -(up + down - 2 * 0.7 * found[:, None]) / step**2
    np.testing.assert_allclose(response.information(target, omega), bend, rtol=1e-4)
    scaled = response.rescale(np.tile(response.scale, (2, 3, 1)), np.full((2, 3, 1), 4.0))
    np.testing.assert_allclose(scaled[1, 2], [2.0, *response.scale[1:]])


def test_raters_from_ratings_alone():
    """Expectation maximisation by its definition; without gold ratings the mean bias is 0."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=300)
    Y = truth[:, None] + [0.4, -0.3] + rng.normal(size=(300, 2)) * [0.3, 0.9]
    Y[rng.random(Y.shape) < 0.3] = NAN
    there, gold = ~np.isnan(Y), np.where(np.arange(300) < 50, truth, NAN)
    Y[~there.any(axis=1), 0], there = 0.0, there | (~there.any(axis=1))[:, None] * np.array([True, False])
    bias, tau, mean, sigma2 = np.zeros(2), np.full(2, 4.0), 0.0, 1.0
    for _ in range(3000):
        P = (tau * there).sum(axis=1) + 1.0 / sigma2
        t = ((tau * np.where(there, Y - bias, 0.0)).sum(axis=1) + mean / sigma2) / P
        t, v = np.where(np.isnan(gold), t, gold), np.where(np.isnan(gold), 1.0 / P, 0.0)
        away, n = np.where(there, Y - t[:, None], 0.0), there.sum(axis=0)
        bias = tau * away.sum(axis=0) / (tau * n + 1.0)
        squares = (there * ((away - bias) ** 2 + v[:, None])).sum(axis=0)
        tau = (1.5 + 0.5 * n) / (0.375 + 0.5 * squares)
        mean, sigma2 = t.mean(), ((t - t.mean()) ** 2 + v).mean()
    again = SLDACrowdRegressor().make_response().encode(as_answers(Y, 300, gold), np.ones(300)).response
    np.testing.assert_allclose(again.base[0] * again.unit, bias, atol=0.02)
    np.testing.assert_allclose(again.base[1] / again.unit**2, tau, rtol=0.05)
    alone = SLDACrowdRegressor().make_response().encode(as_answers(Y, 300), np.ones(300)).response
    weight = alone.n_answers / (alone.n_answers + 10.0)
    assert weight @ alone.base[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(np.diff(alone.base[0] * alone.unit), np.diff(bias), atol=0.1)
    documents = Documents(make_target(number_layout(Y), np.ones((300, 1))), np.zeros((300, 1)))
    assert weight @ replace(alone, drawn=True).draw_scale(documents, make_key(1)).bias == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("c", [1.0, 2.5])
def test_exact_posterior_of_ratings(sampler, monkeypatch, c):  # noqa: F811
    gold, weight = np.array([NAN, NAN, NAN, 0.3]), [1, 2, 0, 0.5]
    response = numbers(c, 0.1, precision=(0.5, 0.8))
    monkeypatch.setitem(check_exactly.__globals__["Y"], "crowd", ([[0], [1], [2], [3]], [[w] for w in weight]))

    def log_psi(y, omega, scale):
        total = np.zeros(omega.shape)
        for d in (0, 1, 3):
            mean, variance = gold[d], 0.0
            if np.isnan(mean):
                tau = [response.precision[r] for r in (0, 1) if not np.isnan(Y4[d, r])]
                away = [Y4[d, r] - response.bias[r] for r in (0, 1) if not np.isnan(Y4[d, r])]
                mean, variance = np.average(away, weights=tau), 1.0 / sum(tau)
            total[:, d] = c * stats.norm.logpdf(mean, omega[:, d], np.sqrt(0.1 + variance))
        return total

    more = {"y": number_layout(Y4, gold), "offset": OFFSET, "drawn": lambda s: np.ones(1)}
    check_exactly(sampler, "crowd", response, log_psi, ALPHA, more | {"own": lambda s: response.scale})


def test_geweke_of_raters():
    """Simulated variances, biases and precisions: a Gibbs step with new ratings leaves their prior where it is."""
    rng, omega = np.random.default_rng(2), np.random.default_rng(0).normal(size=(6, 1))
    model = replace(numbers(1.0, drawn=True), shape=4.0, rate=3.0, carried=np.array(
        [[0.2, -0.1], [2.0, 3.0], [4.0, 5.0], [3.0, 2.0]]))  # fmt: skip
    there = rng.random((6, 2)) < 0.8
    prior, posterior, n_replicates = [], [], 6000
    for i in range(n_replicates):
        sigma2 = 1.0 / rng.gamma(4.0, 1.0 / 3.0)
        bias = rng.normal([0.2, -0.1], [2.0**-0.5, 3.0**-0.5])
        tau = rng.gamma([4.0, 5.0], [1.0 / 3.0, 1.0 / 2.0])
        truth = omega + rng.normal(size=(6, 1)) * np.sqrt(sigma2)
        Y = np.where(there, truth + bias + rng.normal(size=(6, 2)) / np.sqrt(tau), NAN)
        scale = np.concatenate([[sigma2], bias, tau])
        gold = np.where(np.arange(6) < 2, truth[:, 0], NAN)
        target = make_target(number_layout(Y, gold), there.any(axis=1)[:, None].astype(float))
        target.weight[:2] = 1.0
        found = model.with_scale(scale).draw_scale(Documents(target, omega), make_key(9, i))
        mild = np.nan_to_num(Y).mean(axis=0)
        for place, own in ((prior, scale), (posterior, found.scale)):
            x = np.concatenate([[np.log(own[0])], own[1:3], np.log(own[3:])])
            place.append(np.concatenate([x, x**2, x[1:3] * mild, x[3:] * mild**2, [x[0] * x[3], x[1] * x[2]]]))
        if stops_early(i + 1, n_replicates, lambda: score_of_difference(prior, posterior)):
            break
    assert np.abs(score_of_difference(prior, posterior)).max() < ERRORS


def test_geweke_with_texts(sampler):  # noqa: F811
    """Draws from the prior against a chain that alternates Gibbs steps with new words and new answers."""
    alpha, nu2, lengths, prior_row = (
        np.array([0.8, 0.4, 0.6]),
        1.5,
        [4, 1, 7, 3],
        np.array([[RIGHT, WRONG], [WRONG, RIGHT]]),
    )
    priors, rng = Priors(alpha, BETA, nu2), np.random.default_rng(5)

    def new_data(z, omega, confusion):
        phi = rng.dirichlet(np.full(N_WORDS, BETA), 3)
        docs = [[rng.choice(N_WORDS, p=phi[k]) for k in topics] for topics in z]
        truth = (rng.random(4) < expit(omega[:, 0])).astype(int)
        return docs, np.array([[(rng.random() < confusion[r, t, 1]) * 1.0 for r in range(2)] for t in truth])

    def summary(docs, z, eta, confusion, Y):
        zbar = naive.zbars(z, 3)
        omega, firsts = zbar @ eta.T, [words.count(0) for words in docs]
        own = confusion[:, [0, 1], [1, 1]].ravel()
        return np.concatenate([
            zbar[2], eta[0], eta[0] ** 2, omega[:, 0] ** 2, firsts, Y.sum(axis=1) * omega[:, 0], own, own**2,
            own[:2] * Y[:, 0].mean(), own[2:] * Y[:, 1].mean(), [Y.mean(), (Y[:, 0] * Y[:, 1]).mean()],
        ])  # fmt: skip

    prior, posterior, n_replicates = [], [], 2500
    for i in range(n_replicates):
        eta = rng.normal(0, np.sqrt(nu2), (1, 3))
        confusion = np.array([[rng.dirichlet(row) for row in prior_row] for _ in range(2)])
        z = [list(rng.choice(3, n, p=rng.dirichlet(alpha))) for n in lengths]
        omega = naive.zbars(z, 3) @ eta.T
        docs, Y = new_data(z, omega, confusion)
        prior.append(summary(docs, z, eta, confusion, Y))
        for j in range(3):
            response = classes(1.0, confusion, drawn=True)
            target = make_target(layout(response, Y), np.ones((4, 1)))
            plan, source = plan_of(docs, N_WORDS, response, target, priors, sampler)
            quadratic = response.draw(target, omega, make_key(i, 1, j), 0)
            engine = engine_of(plan, source, flat(docs, z)[1], response, quadratic, eta)
            eta, _, response = iterate(engine, engine.statistics(), None, response, priors, make_key(i, 2, j))
            confusion = response.confusion.reshape(2, 2, 2)
            z = [list(map(int, t)) for t in np.split(engine.shards[0].z, np.cumsum(lengths)[:-1])]
            omega = naive.zbars(z, 3) @ eta.T
            docs, Y = new_data(z, omega, confusion)
        posterior.append(summary(docs, z, eta, confusion, Y))
        if stops_early(len(prior), n_replicates, lambda: score_of_difference(prior, posterior)):
            break
    assert np.abs(score_of_difference(prior, posterior)).max() < ERRORS


# --- estimators


@pytest.fixture(scope="module")
def corpus():
    made = make_corpus(n_docs=500, n_topics=3, doc_length=40, eta=[[-5.0, 0.0, 5.0]], random_state=0)
    rng, y = np.random.default_rng(1), made.y.ravel()
    right = [0.9, 0.8, 0.65, 0.1, 0.5]
    Y = np.array([[t if rng.random() < p else 1 - t for p in right] for t in y], float)
    Y[:, 4] = 1.0  # always says the same
    Y[np.argsort(rng.random(Y.shape), axis=1) >= 3] = NAN
    ratings = 3.0 + 0.8 * (made.doc_topic @ made.eta[0])[:, None] * 0.3 + rng.normal(size=(500, 1)) * 0.3
    ratings = ratings + np.array([0.5, -0.5, 0.0, 0.1, 0.0]) + rng.normal(size=Y.shape) * [0.2, 0.3, 0.5, 1.0, 2.0]
    ratings[np.isnan(Y)] = NAN
    truth = 3.0 + 0.24 * (made.doc_topic @ made.eta[0])
    return made.X, y, Y, ratings, truth


@pytest.fixture(scope="module")
def model(corpus):
    return SLDACrowdClassifier(**RUN).fit(corpus[0][:400], corpus[2][:400])


@pytest.fixture(scope="module")
def rating_model(corpus):
    return SLDACrowdRegressor(**RUN).fit(corpus[0][:400], corpus[3][:400])


def test_raters_are_found(model, corpus):
    _, y, Y, *_ = corpus
    right = np.array([
        [np.mean(Y[:400, r][(y[:400] == t) & (Y[:400, r] >= 0)] == t) for t in (0, 1)] for r in range(5)
    ])  # fmt: skip
    np.testing.assert_allclose(model.confusion_[:, [0, 1], [0, 1]], right, atol=0.12)
    lower, upper = model.confusion_interval(0.9)
    inside = (lower[:, [0, 1], [0, 1]] <= right) & (right <= upper[:, [0, 1], [0, 1]])
    assert inside.mean() >= 0.7
    frame = model.rater_frame()
    assert frame["answers"].tolist() == (~np.isnan(Y[:400])).sum(axis=0).tolist()
    assert (frame["lower"] < frame["accuracy"]).all() and frame["accuracy"].argmin() == 3
    table = model.confusion_frame()
    assert table.groupby(["rater", "true"])["probability"].sum().to_numpy() == pytest.approx(np.ones(10))
    first = table[(table.rater == "0") & (table.true == 1) & (table.answer == 0)]["probability"].item()
    assert first == model.confusion_[0, 1, 0]


def test_predictions(model, corpus):
    X, y, Y, *_ = corpus
    alone = SLDAClassifier(**RUN).fit(X[:400], y[:400])
    p = model.predict_proba(X[400:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.score(X[400:], y[400:]) > alone.score(X[400:], y[400:]) - 0.06
    assert model.evaluate(X[400:], y[400:]).figures["accuracy"] == model.score(X[400:], y[400:])
    lower, upper = model.predict_interval(X[400:])
    assert (lower <= upper).all() and lower.shape == p.shape
    labels = model.infer_labels(X[:400], Y[:400])
    assert (labels.argmax(axis=1) == y[:400]).mean() > (dawid_skene(Y[:400]).labels == y[:400]).mean()
    documents = model._new(X[400:405])
    response = model.posterior_.response
    scales = documents.pairs.over(model.posterior_.scale)
    expected = []
    for omega, scale in zip(documents.omega(), scales, strict=True):
        confusion = scale.reshape(5, 2, 2)
        prior = np.column_stack([expit(-omega), expit(omega)])
        own = prior * [[answer_probability(confusion, row, t) for t in (0, 1)] for row in Y[400:405]]
        expected.append(own / own.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.infer_labels(X[400:405], Y[400:405]), np.mean(expected, axis=0))
    gold = [None, 1, None, 0, None]
    fixed = model.infer_labels(X[400:405], Y[400:405], gold=gold)
    np.testing.assert_allclose(fixed[[1, 3]], [[0, 1], [1, 0]], atol=1e-12)
    assert response.kind == "class of several raters" and not response.multilabel


def test_ratings(rating_model, corpus):
    X, _, _, ratings, truth = corpus
    model = rating_model
    relative = model.bias_ - model.bias_.mean()
    np.testing.assert_allclose(relative, np.array([0.5, -0.5, 0.0, 0.1, 0.0]) - 0.02, atol=0.25)
    np.testing.assert_allclose(model.rater_sd_, [0.2, 0.3, 0.5, 1.0, 2.0], rtol=0.35)
    plain = SLDARegressor(**RUN).fit(X[:400], np.nanmean(ratings[:400], axis=1))
    assert (
        np.corrcoef(model.predict(X[400:]), truth[400:])[0, 1] > np.corrcoef(plain.predict(X[400:]), truth[400:])[0, 1]
    )
    mean, sd = model.infer_ratings(X[:400], ratings[:400], return_std=True)
    assert np.corrcoef(mean, truth[:400])[0, 1] > 0.7 and (sd > 0).all()
    documents = model._new(X[400:403])
    response, unit = model.posterior_.response.plain(), float(model.posterior_.response.unit[0])
    found = []
    for omega, scale in zip(documents.omega(), documents.pairs.over(model.posterior_.scale), strict=True):
        sigma2, bias, tau = scale[0], scale[1:6], scale[6:]
        y = (ratings[400:403] - response.centre) / unit
        P = np.where(np.isnan(y), 0.0, tau)
        found.append((omega[:, 0] / sigma2 + np.nansum(P * (y - bias), axis=1)) / (1 / sigma2 + P.sum(axis=1)))
    expected = response.centre + unit * np.mean(found, axis=0)
    np.testing.assert_allclose(model.infer_ratings(X[400:403], ratings[400:403]), expected)
    gold = model.infer_ratings(X[400:403], ratings[400:403], gold=[2.5, NAN, NAN])
    assert gold[0] == pytest.approx(2.5)
    frame = model.rater_frame()
    np.testing.assert_allclose(frame["bias"], model.bias_)
    assert (frame["sd_lower"] < frame["sd"]).all()
    found = model.evaluate(X[400:], truth[400:]).figures
    assert found["R2"] == pytest.approx(model.score(X[400:], truth[400:])) and found["R2"] > 0.2


def test_gold_ratings_show_a_common_bias(corpus):
    X, _, _, ratings, truth = corpus
    gold = np.where(np.arange(400) < 80, truth[:400], NAN)
    model = SLDACrowdRegressor(words=False, **RUN).fit(X[:400], ratings[:400] + 1.0, gold=gold)
    np.testing.assert_allclose(model.bias_[:3], [1.5, 0.5, 1.0], atol=0.15)
    assert abs(model.predict(X[400:]).mean() - truth[400:].mean()) < 0.2


def test_layouts_of_answers(corpus):
    """A data frame, a long table in any order, and names of documents and raters give the same model."""
    X, _, Y, *_ = corpus
    run_short = RUN | {"burn_in": 5, "n_draws": 4, "n_chains": 1, "words": False}
    X, Y = X[:100], Y[:100]
    plain = SLDACrowdClassifier(**run_short).fit(X, Y)
    names = [f"rater {i}" for i in range(5)]
    frame = pd.DataFrame(Y, columns=names)
    wide = SLDACrowdClassifier(**run_short).fit(X, frame)
    assert wide.raters_.tolist() == names
    doc, rater = np.nonzero(~np.isnan(Y))
    mixed = np.random.default_rng(0).permutation(len(doc))
    long = pd.DataFrame({
        "document": doc[mixed], "rater": np.array(names)[rater[mixed]], "answer": Y[doc, rater][mixed], "time": 0,
    })  # fmt: skip
    other = SLDACrowdClassifier(**run_short).fit(X, long)
    texts = pd.DataFrame(X.toarray(), index=[f"d{i}" for i in range(100)])
    named = SLDACrowdClassifier(**run_short).fit(texts, long.assign(document=[f"d{i}" for i in long.document]))
    for model in (wide, other, named):
        np.testing.assert_array_equal(model.predict_proba(X[:5].toarray()), plain.predict_proba(X[:5]))
    words = np.array(["no", "yes"], object)
    texts_of = np.where(np.isnan(Y), None, words[np.nan_to_num(Y).astype(int)])
    text = SLDACrowdClassifier(**run_short).fit(X, texts_of)
    assert text.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(text.predict_proba(X[:5]), plain.predict_proba(X[:5]))
    unasked = SLDACrowdClassifier(missing_label=-1, **run_short).fit(X, np.nan_to_num(Y, nan=-1))
    np.testing.assert_array_equal(unasked.predict_proba(X[:5]), plain.predict_proba(X[:5]))


def test_explanations_add_up(model, rating_model, corpus):
    for own in (model, rating_model):
        found = own.explain(corpus[0][400:401])
        np.testing.assert_allclose(found.total.sum(axis=0) + sum(found.others.values()), found.omega)
        assert "rater" in own.methods_text()
        assert len(own.effect_frame()) and len(own.coefficient_frame()) == 3


def test_files_and_batches(model, rating_model, corpus, tmp_path, short_regressions):
    X, _, Y, ratings, _ = corpus
    for own, answers in ((model, Y), (rating_model, ratings)):
        save(own, tmp_path / "m.model")
        again = load(tmp_path / "m.model")
        np.testing.assert_array_equal(again.predict(X[400:]), own.predict(X[400:]))
        pd.testing.assert_frame_equal(again.rater_frame(), own.rater_frame())
        again.partial_fit(X[400:], answers[400:])
        assert again.n_batches_ == 2
        counted = again.rater_frame()["answers"].to_numpy()
        assert counted.tolist() == (~np.isnan(answers)).sum(axis=0).tolist()
        again.partial_fit(X[400:])
        with pytest.raises(ValueError, match="fitted with other raters"):
            again.partial_fit(X[400:], pd.DataFrame(answers[400:, :2], columns=["0", "new"]))


def test_batches_learn_as_all_documents_do(corpus, short_regressions):
    X, y, Y, ratings, truth = corpus
    parts, numbers_of = SLDACrowdClassifier(**RUN), SLDACrowdRegressor(**RUN)
    for docs in np.array_split(np.arange(400), 2):
        parts.partial_fit(X[docs], Y[docs], classes=[0.0, 1.0])
        numbers_of.partial_fit(X[docs], ratings[docs])
    assert parts.score(X[400:], y[400:]) > 0.7
    accuracy = parts.rater_frame()["accuracy"].to_numpy()
    np.testing.assert_allclose(accuracy[:4], [0.9, 0.8, 0.65, 0.1], atol=0.15)
    np.testing.assert_allclose(numbers_of.rater_sd_, [0.2, 0.3, 0.5, 1.0, 2.0], rtol=0.35)
    assert numbers_of.score(X[400:], truth[400:]) > 0.2


def test_damaged_files_are_refused(model, rating_model):
    for own, wrong in (
        (model, [{"base": np.ones((5, 2, 3))}, {"raters": np.zeros(2, object)}, {"base": -np.ones((5, 2, 2))}]),
        (rating_model, [{"base": np.ones((2, 4))}, {"n_answers": np.ones(3)}, {"base": -np.ones((2, 5))}]),
    ):  # fmt: skip
        response, draws = own.posterior_.response, own.posterior_.scale
        response.check_fitted(1)
        response.check_scale(draws, 1)
        for facts in wrong:
            with pytest.raises(ValueError, match="cannot be right"):
                replace(response, **facts).check_fitted(1)
        for scale in (draws[:, :, 1:], -draws, 0.5 * draws if own is model else draws * NAN):
            with pytest.raises(ValueError, match=r"cannot be right|sum to 1"):
                response.check_scale(scale, 1)


def test_disagreements(model, rating_model, corpus):
    X, y, Y, ratings, _ = corpus
    found = model.disagreements(X[:400], Y[:400], 20)
    assert len(found) == 20 and (found["p_answer"].diff().dropna() >= 0).all() and (found["p_answer"] < 0.2).all()
    assert (found["probable"] != found["answer"]).all()
    assert (found["probable"].to_numpy() == y[found["row"]]).mean() > 0.7
    found = rating_model.disagreements(X[:400], ratings[:400], 10)
    assert (found["away"].abs().diff().dropna() <= 1e-12).all()
    row = found.iloc[0]
    assert row["rating"] == ratings[int(row["row"]), int(row["rater"])]


KRIPPENDORFF = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]).T  # fmt: skip


def test_krippendorffs_alpha():
    """The example of Krippendorff (2011), Computing Krippendorff's Alpha-Reliability."""
    nominal = SLDACrowdClassifier().agreement(KRIPPENDORFF)
    interval = SLDACrowdRegressor().agreement(KRIPPENDORFF)
    assert (round(nominal.alpha, 3), round(interval.alpha, 3)) == (0.743, 0.849)
    assert nominal.lower < 0.743 < nominal.upper and "alpha 0.743" in repr(nominal)
    same, asked = 0, 0
    for d in range(12):
        for r in range(1, 4):
            if not np.isnan(KRIPPENDORFF[d, [0, r]]).any():
                asked, same = asked + 1, same + (KRIPPENDORFF[d, 0] == KRIPPENDORFF[d, r])
    assert nominal.raters["agreement"][0] == pytest.approx(same / asked)
    with pytest.raises(ValueError, match="no agreement to measure"):
        SLDACrowdClassifier().agreement(np.array([[1, NAN], [NAN, 2]]))


@pytest.mark.parametrize(
    ("Y", "more", "message"),
    [
        (np.zeros(60), {}, "a column for each rater"),
        (np.zeros((59, 2)), {}, "60 documents but y has 59"),
        (np.zeros((60, 2)), {}, "one class only"),
        (np.full((60, 2), NAN), {}, "one class only|no answers"),
        (np.array([["a", 1]] * 60, object), {}, "mixes text and numbers"),
        (np.eye(60)[:, :2], {"gold": np.zeros(59)}, "gold must have an entry"),
        (pd.DataFrame({"document": [0, 61], "rater": ["a", "b"], "answer": [1, 2]}), {}, "the document 61"),
        (pd.DataFrame({"document": [0, 1], "rater": ["a", None], "answer": [1, 2]}), {}, "whose rater is unknown"),
        (pd.DataFrame(np.eye(60)[:, :2], columns=["a", "a"]), {}, "same name"),
    ],
)
@pytest.mark.filterwarnings("ignore:There are no answers", "ignore:No document has answers of two raters")
def test_bad_answers(Y, more, message):
    X = make_corpus(n_docs=60, n_topics=3, random_state=0).X
    with pytest.raises(ValueError, match=message):
        SLDACrowdClassifier(**RUN).fit(X, Y, **more)


@pytest.mark.filterwarnings("ignore:There are no answers", "ignore:No document has answers of two raters")
def test_warnings_of_raters():
    made = make_corpus(n_docs=60, n_topics=3, random_state=0)
    run_short = RUN | {"burn_in": 5, "n_draws": 4, "n_chains": 1, "words": False}
    Y = np.column_stack([made.y.ravel(), made.y.ravel(), np.full(60, NAN)]).astype(float)
    with pytest.warns(UserWarning, match="no answers from '2'"):
        SLDACrowdClassifier(**run_short).fit(made.X, Y)
    Y[::2, 0] = Y[1::2, 1] = NAN
    with pytest.warns(UserWarning, match="No document has answers of two raters"):
        SLDACrowdClassifier(**run_short).fit(made.X, Y)
    with pytest.raises(ValueError, match=r"not a number|could not convert|Unable"):
        SLDACrowdRegressor(**run_short).fit(made.X, np.full((60, 2), "a", object))
    with pytest.raises(ValueError, match="confusion matrices of 60"):
        SLDACrowdClassifier(**run_short).fit(made.X, np.arange(60)[:, None] * np.ones((60, 200)))


def test_noise_has_no_effect():
    """Answers of raters about coin flips: intervals of weights exclude 0 about as often as they should."""
    outside, losses = [], []
    for seed in range(8):
        made = make_corpus(n_docs=300, n_topics=4, doc_length=40, random_state=seed)
        rng = np.random.default_rng(seed)
        y = (rng.random(300) < 0.4).astype(int)
        Y = np.where(rng.random((300, 3)) < 0.85, y[:, None], 1 - y[:, None]).astype(float)
        model = SLDACrowdClassifier(4, burn_in=20, n_draws=10, n_chains=2, random_state=seed).fit(made.X[:200], Y[:200])
        lower, upper = model.coef_interval(0.9)
        outside += ((lower > 0) | (upper < 0)).ravel().tolist()
        base = np.mean(y[:200])
        losses.append(model.evaluate(made.X[200:], y[200:])[0].mean() + stats.bernoulli.logpmf(y[200:], base).mean())
        near = near_limits(np.mean(outside), 0.1, most=0.25), near_limits(np.mean(losses), 0.0, -0.02, 0.02)
        if stops_early(seed + 1, 8, lambda scores=near: scores):
            break
    assert np.mean(outside) < 0.25 and abs(np.mean(losses)) < 0.02


def test_class_weights_and_unknown_documents(corpus):
    X, _, Y, *_ = corpus
    run_short = RUN | {"burn_in": 10, "n_draws": 4, "n_chains": 1, "words": False}
    Y = Y[:200].copy()
    plain = SLDACrowdClassifier(**run_short).fit(X[:200], Y)
    heavy = SLDACrowdClassifier(class_weight={1.0: 20.0}, **run_short).fit(X[:200], Y)
    assert heavy.predict_proba(X[400:])[:, 1].mean() > plain.predict_proba(X[400:])[:, 1].mean() + 0.1
    Y[::2] = NAN
    model = SLDACrowdClassifier(**run_short).fit(X[:200], Y)
    assert model.doc_topic_.shape == (200, 3) and model.posterior_.cross_fitted is not None
    answers = as_answers(Y, 200).take(np.array([3, 1, 2]))
    np.testing.assert_array_equal(answers.rows(answers.value.astype(float))[0, :3], Y[3][~np.isnan(Y[3])])
    assert answers.n_docs == 3 and not (answers.doc == 2).any()


def test_biases_of_earlier_batches_are_discounted():
    response = CrowdGaussian(3.0, np.ones(1), raters=np.array(["a", "b"], object), n_answers=np.full(2, 500.0))
    draws = np.column_stack([np.ones(200), np.random.default_rng(0).normal(0.0, 0.1, (200, 2)), np.full((200, 2), 4.0)])
    whole, half = (response.with_carried_scale(draws, np.array([300.0]), discount).carried for discount in (1.0, 0.5))
    np.testing.assert_allclose(half[0], whole[0])
    np.testing.assert_allclose(half[1], 0.5 * whole[1])
    assert whole[1].min() > 50


@pytest.mark.parametrize("mass", [0.5, 1.0, 2.5])
def test_sums_over_true_ratings_have_their_means(mass):
    """What draws of the variance and of raters rest on: copies of a document have true ratings of their own."""
    n, response = 40_000, numbers(mass)
    y = np.tile(number_layout(np.array([[1.2, NAN], [0.2, -0.5]]), np.full(2, NAN)), (n, 1))
    omega, sigma2 = np.tile([[0.3], [-0.9]], (n, 1)), response.sigma2[0]
    found = response.own_sums(make_target(y, np.ones((2 * n, 1))), omega, make_key(2), 5) / n
    tau, bias = response.precision, response.bias
    ratings, expected = [[(0, 1.2)], [(0, 0.2), (1, -0.5)]], np.zeros(2 + 3 * len(tau))
    expected[0] = 2.0 * mass
    for own, w in zip(ratings, (0.3, -0.9), strict=True):
        precision = 1.0 / sigma2 + sum(tau[r] for r, _ in own)
        mean = (w / sigma2 + sum(tau[r] * (rating - bias[r]) for r, rating in own)) / precision
        variance = np.ceil(mass) / mass / precision  # of the true rating of a copy, which is a power of the density
        expected[1] += mass * ((mean - w) ** 2 + variance)
        for r, rating in own:
            expected[2 + r] += mass
            expected[2 + len(tau) + r] += mass * (rating - mean)
            expected[2 + 2 * len(tau) + r] += mass * ((rating - mean) ** 2 + variance)
    np.testing.assert_allclose(found, expected, rtol=0.03, atol=0.01)


def test_gold_ratings_of_any_batch_say_what_the_level_is():
    y, weight = np.array([[1.0, 2.0], [3.0, 2.5], [0.0, 1.0]]), np.ones(3)
    answers = as_answers(y, 3, gold=np.array([1.5, np.nan, np.nan]))
    first = CrowdGaussian(1.0, np.ones(1)).encode(answers, weight).response
    assert first.has_gold and first.encode(y, weight, sums=np.zeros((5, 1))).response.has_gold
    assert not CrowdGaussian(1.0, np.ones(1)).encode(y, weight).response.has_gold
    assert not CrowdGaussian(1.0, np.ones(1)).encode(answers, np.array([0.0, 1.0, 1.0])).response.has_gold


def test_ratings_of_documents_without_answers_are_as_unsure_as_new_ones():
    response = replace(numbers(1.0), names=np.array(["y"], object))
    y, omegas = number_layout(Y4[:2], np.full(2, NAN)), np.array([[[0.2], [0.1]], [[0.6], [0.3]]])
    target = make_target(y, np.array([[0.0], [1.0]]))
    mean, sd = response.infer(target, omegas, np.tile(response.scale, (2, 1)))
    np.testing.assert_allclose(mean[0], 0.4)
    np.testing.assert_allclose(sd[0] ** 2, response.sigma2 + 0.04)
    of_docs = response.summary(response.seen(y))
    share = response.sigma2 / (response.sigma2 + of_docs.variance[1])
    np.testing.assert_allclose(sd[1] ** 2, share * of_docs.variance[1] + ((1.0 - share) * 0.1) ** 2)


def test_balanced_classes_have_the_same_weight():
    """Probable classes, by the weights of their documents; what is said of a class is no number of answers."""
    rng = np.random.default_rng(0)
    response = CrowdLogistic(1.0, classes=np.array(["a", "b", "c"], object), class_weight="balanced")
    share, weight = np.eye(3)[rng.integers(0, 3, 40)], 2.0 ** rng.integers(-1, 3, 40)
    balanced = weight * response.balance(share, weight)
    np.testing.assert_allclose(balanced @ share, np.full(3, weight.sum() / 3))
    by_name = replace(response, class_weight={"b": 4.0, "c": 0.5}).balance(share, weight)
    np.testing.assert_array_equal(by_name, share @ [1.0, 4.0, 0.5])


def test_seeds_fade_with_the_classes_that_are_probable():
    classes = np.array(["a", "b", "c"], object)
    response = CrowdLogistic(1.0, classes=classes, raters=np.array(["r"], object))
    share = np.array([[0.8, 0.1, 0.1], [0.4, 0.35, 0.25], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1], [0.9, 0.1, 0.0]])
    y = np.column_stack([np.full(5, -1.0), share, np.zeros(5)])
    target = make_target(y, np.repeat([[1.0], [1.0], [2.0], [1.0], [0.0]], 3, axis=1))
    np.testing.assert_array_equal(response.seed_support(target, 6.0 * np.eye(3)), [1.0, 2.0, 0.0])


def test_answers_about_some_documents_and_of_raters_in_another_order():
    Y = np.array([["a", None, "b"], [None, "b", None], ["c", "c", None], [None, None, "a"]], object)
    names = ["z", "x", "y"]
    answers = as_answers(pd.DataFrame(Y, columns=names), 4, gold=["g0", None, "g2", None])
    rows = np.array([2, 0])
    some = answers.take(rows)
    assert some.gold.tolist() == ["g2", "g0"] and some.value.tolist() == ["c", "c", "a", "b"]
    assert some.doc.tolist() == [0, 0, 1, 1]
    own = answers.with_raters(np.array(["x", "y", "z", "new"], object))
    said = {(int(d), own.raters[r], v) for d, r, v in zip(own.doc, own.rater, own.value, strict=True)}
    wanted = {(d, names[r], Y[d, r]) for d, r in zip(*np.nonzero(Y != None), strict=True)}  # noqa: E711
    assert said == wanted
    np.testing.assert_array_equal(own.counts(np.array([1.0, 0.0, 2.0, 1.0])), [1, 2, 2, 0])
