"""The level of predictions and the offsets of regressions: unbalanced and rare classes, batches whose mean moves."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit, softmax

from small import engine_of, near_limits, plan_of, stops_early
from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.corpus.source import make_target, select_target
from supertopic.datasets import make_corpus
from supertopic.inference.calibration import carry_over, draw_weights, find_mode, newton_step
from supertopic.inference.level import OmegaDraws, match_level, sample_omegas
from supertopic.inference.linear import Asked
from supertopic.inference.shrinkage import HeldOutDraws, estimate_shrinkage, estimate_spread
from supertopic.kernels.draws import make_key
from supertopic.model.priors import NU2_PREDICTION as NU2
from supertopic.model.responses import Gaussian, Hinge, Logistic, NegativeBinomial
from supertopic.model.state import Priors, ShareRows, Statistics, no_statistics
from supertopic.report.diagnostics import ess
from supertopic.report.summary import describe_topics
from supertopic.report.topics import vocabulary_of

pytestmark = pytest.mark.filterwarnings("ignore:Found no relation between topics")
RUN = {"burn_in": 40, "n_draws": 20, "n_chains": 1, "random_state": 0}
RESPONSES = [
    Logistic(3.0), Logistic(3.0, classes=np.arange(3)), Gaussian(3.0, np.array([0.7, 2.0, 0.1])), Hinge(3.0, 1.0),
    NegativeBinomial(3.0, np.array([0.5, 2.0, 9.0])),
]  # fmt: skip


def target_of(response, rng, n=40):
    """Three columns of responses with offsets, weights and unknown ones."""
    y = rng.poisson(3.0, (n, 3)) if isinstance(response, NegativeBinomial) else rng.integers(0, 2, (n, 3))
    weight = rng.choice([0.0, 1.0, 2.5], (n, 3))
    return make_target(y.astype(float), weight, rng.normal(size=(n, 3)))


# --- derivatives


@pytest.mark.parametrize("response", RESPONSES, ids=lambda response: type(response).__name__)
def test_gradient_and_information_are_derivatives(response):
    rng = np.random.default_rng(0)
    target = target_of(response, rng)
    omega, step = rng.normal(size=(40, 3)), 1e-4

    def value(moved):
        return response.c * target.weight * response.log_density(target.y, moved)

    slope = (value(omega + step) - value(omega - step)) / (2 * step)
    if isinstance(response, Hinge):
        return  # its quadratic is one of a bound, not of the hinge itself
    np.testing.assert_allclose(response.gradient(target, omega), slope, rtol=1e-5, atol=1e-6)
    curve = -(value(omega + step) - 2 * value(omega) + value(omega - step)) / step**2
    np.testing.assert_allclose(response.information(target, omega), curve, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("response", RESPONSES, ids=lambda response: type(response).__name__)
def test_the_curvature_of_the_cost(response):
    """What words keep of the documents: the second derivative of the cost that they minimise."""
    rng = np.random.default_rng(1)
    target, step = target_of(response, rng), 1e-5
    omega = rng.normal(size=(40, 3))
    found = response.curvature(target, omega)
    for r in range(3):
        move = step * np.eye(3)[r]
        slopes = [response.cost(target, omega + side * move)[1][:, r] for side in (1, -1)]
        np.testing.assert_allclose(found[:, r], (slopes[0] - slopes[1]) / (2 * step), rtol=1e-4, atol=1e-4)


# --- regressions


def regression(response, target, x, n_shards=2):
    """An engine whose documents have these shares."""
    docs, priors = [[0]] * len(x), Priors(np.ones(x.shape[1]), 0.1, 1.0)
    plan, source = plan_of(docs, 1, response, target, priors, "delayed", n_shards)
    n_columns = target.y.shape[1]
    engine = engine_of(plan, source, np.zeros(len(x)), response, target.weight, np.zeros((n_columns, x.shape[1])))
    topics = np.arange(x.shape[1], dtype=np.uint16)
    for shard in engine.shards:
        own = x[shard.first_doc : shard.first_doc + shard.n_docs]
        shard.shares = ShareRows(np.arange(0, own.size + 1, x.shape[1]), np.tile(topics, len(own)), own.ravel())
    return engine


@pytest.mark.parametrize(
    "response", [Logistic(1.0), NegativeBinomial(1.0, np.full(2, 2.0))], ids=["logistic", "counts"]
)
def test_what_is_carried_over_is_the_curvature_of_the_posterior(response):
    """Against a numerical Hessian, with statistics from before; and its mean is that of the draws."""
    rng = np.random.default_rng(0)
    x, k = rng.dirichlet(np.ones(3), 30), 3
    y = rng.poisson(2.0, (30, 2)) if isinstance(response, NegativeBinomial) else rng.integers(0, 2, (30, 2))
    weight = rng.choice([0.0, 1.0, 2.0], (30, 2))
    target = make_target(y.astype(float), weight, rng.normal(size=(30, 2)))
    A = rng.normal(size=(2, k, k))
    before, pull = np.einsum("rij,rkj->rik", A, A), rng.normal(size=(k, 2))
    known = Statistics(np.array([b[np.tril_indices(k)] for b in before]).T.copy(), pull)
    etas = rng.normal(size=(7, 2, k))
    found = carry_over(regression(response, target, x), response, NU2, known, etas)
    mean, step = etas.mean(axis=0), 1e-4
    for r in range(2):

        def log_posterior(eta, r=r):
            omega = (x @ eta + target.offset[:, r])[:, None]
            value = np.sum(weight[:, r] * response.log_density(y, np.repeat(omega, 2, axis=1))[:, r])
            return value - 0.5 * eta @ before[r] @ eta + pull[:, r] @ eta - 0.5 * eta @ eta / NU2

        E = step * np.eye(k)
        H = [[(log_posterior(mean[r] + a + b) - log_posterior(mean[r] + a - b) - log_posterior(mean[r] - a + b)
               + log_posterior(mean[r] - a - b)) / (4 * step**2) for a in E] for b in E]  # fmt: skip
        lower = np.zeros((k, k))
        lower[np.tril_indices(k)] = found.precision[:, r]
        P = lower + np.tril(lower, -1).T + np.eye(k) / NU2
        np.testing.assert_allclose(P, -np.array(H), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(np.linalg.solve(P, found.shift[:, r]), mean[r])


@pytest.mark.parametrize("mean", [3.0, 800.0])
def test_weights_of_large_counts_have_their_posterior(mean):
    """Two weights and a given r: mean, spread and correlation against a grid; draws are as good as independent."""
    rng = np.random.default_rng(0)
    x, offset = rng.dirichlet(np.ones(2), 40), np.full((40, 1), np.log(mean))
    y = rng.negative_binomial(2, 2 / (2 + mean * np.exp(x @ [1.0, -1.0])))[:, None].astype(float)
    response = NegativeBinomial(1.0, np.full(1, 2.0), drawn=False, fixed=True)
    engine = regression(response, make_target(y, np.ones_like(y), offset), x)
    draws = np.array(
        [draw.eta[0] for draw in draw_weights(engine, response, 4.0, no_statistics(2, 1), 1500, make_key(1))]
    )
    grid = np.linspace(-4.0, 4.0, 161)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = (
        response.log_density(y[:, 0], (points @ x.T) + offset[:, 0]).sum(axis=1) - 0.5 * (points**2).sum(axis=1) / 4.0
    )
    p = np.exp(logs - logs.max())
    p /= p.sum()
    exact = p @ points
    spread = (points - exact).T @ ((points - exact) * p[:, None])
    error = np.sqrt(np.diag(spread) / 1500)
    assert (np.abs(draws.mean(axis=0) - exact) < 6 * error).all()
    np.testing.assert_allclose(np.cov(draws.T), spread, rtol=0.25, atol=0.01)
    assert min(ess(draws[None, :, k]) for k in range(2)) > 500


# --- offsets and levels


@pytest.mark.parametrize(
    ("kind", "more", "rates"),
    [
        (SLDAClassifier, {}, [0.9, 0.1]),
        (SLDAClassifier, {}, [0.85, 0.075, 0.075]),
        (SLDAClassifier, {"multiclass": "separate"}, [0.85, 0.075, 0.075]),
        (SLDAClassifier, {"multiclass": "stick_breaking"}, [0.85, 0.075, 0.075]),
        (SLDAClassifier, {}, [0.55, *[0.05] * 9]),
        (MedLDAClassifier, {}, [0.9, 0.1]),
        (MedLDAClassifier, {}, [0.85, 0.075, 0.075]),
    ],
)
def test_noise_with_unbalanced_classes(kind, more, rates):
    """A rate that is not a half is no effect. With log p as the offset of a class against the rest, half of the
    majority's 90 % intervals excluded 0, and with every class of such a majority."""
    excluded, named = [], 0
    for seed in range(3 if len(rates) < 10 else 1):
        rng = np.random.default_rng(seed)
        corpus = make_corpus(n_docs=500, n_topics=6, doc_length=50, random_state=seed)
        y = rng.choice(len(rates), 500, p=rates)
        model = kind(6, words=False, held_out=0.3, **RUN | {"random_state": seed}, **more).fit(corpus.X, y)
        lower, upper = model.coef_interval(0.9)
        excluded.append(((lower > 0) | (upper < 0))[0])
        named += sum(
            row["class"] is not None for row in describe_topics(model.posterior_, vocabulary_of(model.posterior_))
        )
        if kind is SLDAClassifier:
            p = model.predict_proba(corpus.X).mean(axis=0)
            np.testing.assert_allclose(p, np.bincount(y) / 500, rtol=0.35, atol=0.01)
    assert np.mean(excluded) <= 0.35 and named <= 3 * len(excluded)


def test_the_offset_of_a_class_against_the_rest():
    """Regressions begin at logit p, predictions at log p: without weights these are p."""
    corpus, y = make_corpus(n_docs=200, n_topics=3, random_state=0), np.repeat([0, 1, 2], [140, 40, 20])
    model = SLDAClassifier(3, **RUN).fit(corpus.X, y)
    rates = np.array([0.7, 0.2, 0.1])
    np.testing.assert_allclose(model.posterior_.carryover.level, logit(rates))
    np.testing.assert_allclose(model.intercept_, np.log(rates))
    np.testing.assert_allclose(softmax(model.intercept_), rates)
    hinge = MedLDAClassifier(3, **RUN).fit(corpus.X, y)
    np.testing.assert_allclose(hinge.intercept_, logit(rates))
    labels = SLDAClassifier(3, **RUN).fit(corpus.X, y[:, None] == np.arange(3))
    np.testing.assert_allclose(expit(labels.intercept_), rates)


@pytest.mark.parametrize("response", RESPONSES, ids=lambda response: type(response).__name__)
def test_a_level_that_is_right_on_average(response):
    rng = np.random.default_rng(0)
    target = target_of(response, rng, 500)
    if response == RESPONSES[1]:
        target = target._replace(
            y=np.eye(3)[rng.choice(3, 500, p=[0.97, 0.02, 0.01])], weight=rng.random((500, 1)) * [1, 1, 1]
        )
    omega = rng.normal(size=(4, 500, 3)) * [0.3, 1.0, 3.0] + [0.0, -4.0, 1.0]
    shift, known = match_level(response, target, omega)
    assert known.all() != isinstance(response, Hinge)
    if isinstance(response, Hinge):
        assert not shift.any()  # its scores are no means
        return
    mean = response.mean(omega + shift).mean(axis=0)
    np.testing.assert_allclose((target.weight * mean).sum(axis=0), (target.weight * target.y).sum(axis=0), rtol=1e-3)
    nothing = target._replace(y=np.zeros_like(target.y))
    if not isinstance(response, Gaussian):
        assert not np.any(match_level(response, nothing, omega))


def test_the_spread_of_draws_comes_from_documents_like_it():
    """Documents with a large omega are known well, others are not: each gets deviations of its own kind."""
    rng = np.random.default_rng(0)
    centre = np.r_[np.full(60, -2.0), np.full(60, 2.0)] + 0.1 * rng.normal(size=120)
    held_out = centre[:, None] + rng.normal(size=(50, 120, 1)) * np.where(centre > 0, 0.1, 1.0)[:, None]
    like = np.r_[np.full(300, -2.0), np.full(300, 2.0)][:, None]
    found = sample_omegas([OmegaDraws(1.0, like + 7.0, held_out, like)], rng)
    assert found.shape[1:] == (600, 1) and len(found) > 4
    spread = (found - like - 7.0).std(axis=0)[:, 0]
    assert 0.7 < np.median(spread[:300]) < 1.3 and 0.05 < np.median(spread[300:]) < 0.2
    two = sample_omegas([OmegaDraws(0.25, like, held_out, like), OmegaDraws(0.75, like + 9.0, held_out[:0], like)], rng)
    assert np.mean(two[:, 0, 0] > 5) == pytest.approx(0.75)
    np.testing.assert_array_equal(two[-1], like + 9.0)  # where nothing is held out, nothing is known of the spread


@pytest.mark.parametrize("words", [False, True])
def test_rare_classes_are_predicted_as_often_as_they_are(words):
    """With 4 % positives the mean probability was 1.1 of the rate; here it is averaged over some corpora."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        corpus = make_corpus(n_docs=4500, n_topics=5, doc_length=40, random_state=seed)
        effect = corpus.doc_topic @ np.linspace(-3, 3, 5)
        level = optimize.brentq(lambda b, effect=effect: expit(effect + b).mean() - 0.04, -20, 10)
        y = (rng.random(4500) < expit(effect + level)).astype(int)
        run = RUN | {"random_state": seed, "n_draws": 10}
        model = SLDAClassifier(5, words=words, **run).fit(corpus.X[:1500], y[:1500])
        ratios.append(model.predict_proba(corpus.X[1500:])[:, 1].mean() / y[:1500].mean())
        if stops_early(len(ratios), 6, lambda: near_limits(np.mean(ratios), 1.0, 0.95, 1.05)):
            break
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)


# --- batches


@pytest.fixture(scope="module")
def stream():
    return make_corpus(n_docs=1000, n_topics=3, random_state=0)


def batches(stream, model, respond, **more):
    """Fit four batches of 200; the mean of all responses."""
    seen = []
    for b in range(4):
        docs = slice(200 * b, 200 * b + 200)
        y = respond(b, docs)
        model.partial_fit(stream.X[docs], y, **more)
        seen.append(y)
    return np.concatenate(seen).mean()


@pytest.mark.parametrize("shift", [1.0, 10.0])
def test_ratings_whose_mean_moves(stream, shift):
    rng = np.random.default_rng(0)
    model = SLDARegressor(3, **RUN)
    mean = batches(stream, model, lambda b, docs: rng.normal(size=200) + b * shift + stream.doc_topic[docs, 0])
    assert model.intercept_[0] == pytest.approx(mean)
    assert model.predict(stream.X[800:]).mean() == pytest.approx(mean, abs=0.15)


@pytest.mark.parametrize("words", [False, True])
def test_classes_whose_rate_moves(stream, words):
    rng = np.random.default_rng(0)
    rates = [0.1, 0.2, 0.4, 0.7]
    model = SLDAClassifier(3, words=words, **RUN)
    mean = batches(stream, model, lambda b, _: (rng.random(200) < rates[b]).astype(int), classes=[0, 1])
    assert model.predict_proba(stream.X[800:])[:, 1].mean() == pytest.approx(mean, abs=0.03)


def test_counts_whose_mean_moves(stream):
    rng = np.random.default_rng(0)
    model = SLDACountRegressor(3, **RUN)
    mean = batches(stream, model, lambda b, _: rng.poisson(3.0**b, 200))
    assert model.predict(stream.X[800:]).mean() == pytest.approx(mean, rel=0.1)


def test_a_small_batch_without_a_positive_leaves_the_level():
    """Ten documents of a rare class's stream, none of which has it, say next to nothing of the level."""
    rng = np.random.default_rng(0)
    corpus = make_corpus(n_docs=1300, n_topics=4, doc_length=60, random_state=0)
    y = (rng.random(1300) < expit(corpus.doc_topic @ [-3.0, 0.0, 0.0, 3.0] - 3.5)).astype(int)
    model = SLDAClassifier(4, **RUN).fit(corpus.X[:1000], y[:1000])
    before = model.predict_proba(corpus.X[1000:])[:, 1].mean()
    few = 1000 + np.flatnonzero(y[1000:] == 0)[:10]
    after = model.partial_fit(corpus.X[few], y[few]).predict_proba(corpus.X[1000:])[:, 1].mean()
    assert after == pytest.approx(before, rel=0.15)


def test_a_batch_that_holds_out_nothing_leaves_reported_weights(stream):
    y = np.random.default_rng(0).integers(0, 2, 1000)
    model = SLDAClassifier(3, **RUN).fit(stream.X[:400], y[:400])
    before = model.coef_draws_
    for more in (None, np.where(np.arange(20) < 4, y[400:420], np.nan)):  # unlabelled, or too few to hold one out
        model.partial_fit(stream.X[400:420], more)
        ratio = model.coef_draws_.std(axis=0) / before.std(axis=0)
        assert (ratio > 0.6).all() and (ratio < 1.5).all()
        assert (np.abs(model.coef_draws_.mean(axis=0) - before.mean(axis=0)) < before.std(axis=0)).all()


def test_intervals_after_batches():
    """90 % intervals of effects, after a fit and five small batches; it was a half of them that held."""
    inside = []
    for seed in range(5):
        eta = np.random.default_rng(seed).choice([-1, 1], 3) * np.array([1.0, 2.0, 3.0])
        corpus = make_corpus(n_docs=1000, n_topics=3, doc_length=60, eta=eta, random_state=seed)
        model = SLDAClassifier(3, words=False, held_out=0.3, **RUN | {"random_state": seed})
        for docs in [slice(0, 500), *(slice(500 + 100 * b, 600 + 100 * b) for b in range(5))]:
            model.partial_fit(corpus.X[docs], corpus.y[docs])
        alike = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[:3, 3:].argmax(axis=1)
        lower, upper = (model.intercept_[0] + side[0, alike] for side in model.coef_interval(0.9))
        inside += ((lower <= eta) & (eta <= upper)).tolist()
    assert np.mean(inside) > 0.7


def test_nothing_is_left_of_what_is_forgotten(stream):
    """discount = 0: words of the batches before have no weights, and those of this one are those of a fit."""
    y = np.random.default_rng(0).integers(0, 2, 400)
    X = stream.X[:400].toarray()
    X[:, 0] = 3 * y
    model = SLDAClassifier(3, **RUN).partial_fit(X, y, discount=0.0)
    assert model.word_coef_[0, 0] > 5
    other = stream.X[400:800].toarray()
    other[:, 0] = 0
    model.partial_fit(other, y, discount=0.0)
    assert model.word_coef_[0, 0] == 0


# --- intervals


@pytest.mark.parametrize("mean", [0.01, 3.0, 1e6])
def test_quantiles_of_counts(mean):
    r = np.array([[0.7], [4.0]])
    omegas = np.log(mean) * np.ones((2, 1, 1))
    for q in (0.05, 0.5, 0.95):
        found = NegativeBinomial(1.0, np.ones(1)).quantile(q, omegas, r)[0, 0]
        at, below = (np.mean([stats.nbinom.cdf(x, a, a / (a + mean)) for a in r[:, 0]]) for x in (found, found - 1))
        assert at >= q > below


@pytest.mark.parametrize("log_mean", [40.0, 300.0, 700.0, 800.0])
def test_quantiles_of_counts_beyond_all_numbers_come_to_an_end(log_mean):
    found = [NegativeBinomial(1.0, np.ones(1)).quantile(q, np.full((3, 2, 1), log_mean), np.ones((3, 1)))
             for q in (0.05, 0.95)]  # fmt: skip
    assert (found[0] <= found[1]).all()
    if log_mean < 700:  # with r = 1 counts are geometric
        np.testing.assert_allclose(np.log(found[1]), log_mean + np.log(-np.log(0.05)), rtol=1e-6)


def test_covariates_in_the_wrong_unit_do_not_hang():
    corpus = make_corpus(n_docs=200, n_topics=3, random_state=0)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 1))
    y = rng.poisson(np.exp(1.0 + z[:, 0]))
    model = SLDACountRegressor(3, **RUN).fit(corpus.X, y, covariates=z)
    for far in (35.0, 1e6, 1e90):
        lower, upper = model.predict_interval(corpus.X[:2], covariates=np.full((2, 1), far))
        assert (lower <= upper).all()
        assert len(model.surprising(corpus.X[:2], y[:2], covariates=np.full((2, 1), far))) == 2
    exposed = SLDACountRegressor(3, **RUN).fit(corpus.X, y, exposure=np.ones(200))
    assert (exposed.predict_interval(corpus.X[:2], exposure=[1e10, 1e-10])[1] >= 0).all()


def test_steps_by_newtons_method_are_weighed():
    """Four documents with hardly a count: the posterior is far from normal, and so are proposals that it corrects."""
    x = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7]])
    y, offset = np.array([[0.0], [0.0], [1.0], [0.0]]), np.zeros((4, 1))
    response = NegativeBinomial(1.0, np.full(1, 0.5), drawn=False, fixed=True)
    engine = regression(response, make_target(y, np.ones_like(y), offset), x)
    known, nu2 = no_statistics(2, 1), 16.0
    eta, draws = find_mode(engine, response, nu2, known), []
    for i in range(4000):
        eta = newton_step(engine, response, nu2, known, eta, make_key(5, i))
        draws.append(eta[0])
    draws, grid = np.array(draws), np.linspace(-22.0, 22.0, 221)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = response.log_density(y[:, 0], points @ x.T).sum(axis=1) - 0.5 * (points**2).sum(axis=1) / nu2
    p = np.exp(logs - logs.max())
    p /= p.sum()
    exact = p @ points
    sd = np.sqrt(p @ (points - exact) ** 2)
    n = np.array([ess(draws[None, :, k]) for k in range(2)])
    assert (n > 150).all()
    assert (np.abs(draws.mean(axis=0) - exact) < 5 * sd / np.sqrt(n)).all()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.15)


@pytest.mark.parametrize("kind", ["binary", "classes", "ratings", "counts"])
def test_held_out_documents_count_by_their_weights(kind):
    """A document of weight 2 is two documents: for factors, their spread, the level, and losses of words."""
    rng, n, R = np.random.default_rng(0), 30, 3 if kind == "classes" else 1
    response = {
        "binary": Logistic(1.0, classes=np.arange(2)), "classes": Logistic(1.0, classes=np.arange(3)),
        "ratings": Gaussian(1.0, np.ones(1)), "counts": NegativeBinomial(1.0, np.ones(1)),
    }[kind]  # fmt: skip
    topics, beside = rng.normal(size=(6, n, R)), 0.3 * rng.normal(size=(6, n, R))
    mean = topics.mean(axis=0)
    y = {
        "binary": (mean > 0) * 1.0, "classes": np.eye(3)[mean.argmax(axis=1)],
        "ratings": mean + rng.normal(size=(n, 1)), "counts": rng.poisson(np.exp(mean)) * 1.0,
    }[kind]  # fmt: skip
    weight = rng.integers(0, 4, n)
    rows, linear = np.repeat(np.arange(n), weight), 0.8 * mean + 0.2 * rng.normal(size=(n, R))
    once = make_target(y, np.repeat(weight[:, None] * 1.0, R, axis=1), 0.1 * rng.normal(size=(n, 1)))
    often = select_target(once._replace(weight=np.ones((n, R))), rows)
    scales, sd = np.tile(response.scale, (6, 1)), np.full((n, R), 0.7)
    found = []
    for target, docs in ((once, slice(None)), (often, rows)):
        draws = [HeldOutDraws(topics[:3, docs], beside[:3, docs]), HeldOutDraws(topics[3:, docs], beside[3:, docs])]
        own = []
        for more in (None, linear[docs]):
            shrinkage = estimate_shrinkage(response, target, draws, scales, more)
            own += [mass for _, mass in shrinkage.posteriors.values()]
            own += [(shrinkage.weight * shrinkage.base_loss).sum(axis=0)] if more is None else []
            own += [estimate_spread(response, target, draws, scales, shrinkage, linear[docs], sd[docs])]
        own += list(match_level(response, target, topics[:, docs]))
        asked = Asked(np.arange(len(target.y)), target, draws, scales)
        own.append(asked.losses(response, 0.5, linear[docs]).sum())
        found.append(own)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["binary", "classes", "ratings", "counts"])
def test_drawn_offsets_keep_the_mean_of_y(kind):
    """Of documents without words, however skewed the distribution of their mean is; few documents spread them more."""
    response = {
        "binary": Logistic(1.0, classes=np.arange(2)), "classes": Logistic(1.0, classes=np.arange(3)),
        "ratings": Gaussian(1.0, np.ones(1)), "counts": NegativeBinomial(1.0, np.full(1, 0.4)),
    }[kind]  # fmt: skip
    offset = np.log([0.02, 0.3, 0.68]) if kind == "classes" else np.array([-3.0])
    for n_docs in (2.0, 40.0):
        found = response.draw_offsets(offset, np.full(len(offset), n_docs), 80)
        np.testing.assert_allclose(response.base_rate(found).mean(axis=0), response.base_rate(offset), rtol=1e-6)
    few, many = (response.draw_offsets(offset, np.full(len(offset), n), 80).std(axis=0) for n in (2.0, 40.0))
    assert (few > 1.2 * many).all() and (many > 0).all()
    alone = response.draw_offsets(offset, np.zeros(len(offset)), 80)
    np.testing.assert_array_equal(alone, np.broadcast_to(offset, alone.shape))
    if kind == "classes":
        assert abs(np.corrcoef(response.draw_offsets(offset, np.full(3, 9.0), 80).T)[0, 1]) < 0.5
