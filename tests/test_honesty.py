"""Honest on noise: held-out documents, reported weights, predictions, and the warning where nothing is to be found."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss

from small import near_limits, stops_early
from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.tokens import Tokens
from supertopic.datasets import load_docstrings, make_corpus
from supertopic.inference import calibration, fit, reported, shrinkage
from supertopic.inference.held_out import describe_held_out
from supertopic.inference.shrinkage import (
    COVARIATES,
    FACTORS,
    LINEAR,
    NOTHING,
    PRIOR_WEIGHT,
    ROUNDS_OF_PRIORS,
    SCALE,
    TOPICS,
    HeldOutDraws,
    Shrinkage,
    estimate_shrinkage,
    factor_prior,
    log_posteriors,
    spread,
)
from supertopic.model.responses import Gaussian, Hinge, Logistic, NegativeBinomial
from supertopic.model.terms import CovariateWeights, TopicWeights
from supertopic.report.summary import describe_topics
from supertopic.report.topics import vocabulary_of

RUN = {"burn_in": 60, "n_draws": 20, "n_chains": 1, "random_state": 0}


@pytest.fixture(scope="module")
def texts():
    """900 docstrings, with words that five of them have."""
    return CountVectorizer(stop_words="english", min_df=5).fit_transform(load_docstrings().data[::2])


def responses(rng, n):
    """Coin flips and other noise, for each kind of estimator."""
    coin = rng.integers(0, 2, n)
    return {
        SLDAClassifier: coin, MedLDAClassifier: coin, SLDARegressor: rng.normal(size=n),
        SLDACountRegressor: rng.poisson(2.0, n),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
@pytest.mark.parametrize("kind", [SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor])
def test_noise_is_not_taken_for_an_effect(texts, kind):
    """90 % intervals of weights of noise exclude 0 once in ten times, and predictions are as good as the base rate.

    120 intervals: with one in ten excluding 0, and those of a fit alike, more than 0.3 of them do so with probability
    below 1e-6. In version 0.1 it was half of them.
    """
    n, excluded, losses, n_seeds = texts.shape[0], [], [], 6
    train = np.arange(n) < 0.7 * n
    for seed in range(n_seeds):
        y = responses(np.random.default_rng(seed), n)[kind]
        model = kind(burn_in=60, n_chains=2, random_state=seed, held_out=0.15).fit(texts[train], y[train])
        lower, upper = model.coef_interval(0.9)
        excluded.append((lower > 0) | (upper < 0))
        if kind is SLDAClassifier:
            losses.append(log_loss(y[~train], model.predict_proba(texts[~train])) - np.log(2))
        elif kind is not MedLDAClassifier:
            losses.append(-model.score(texts[~train], y[~train]))
        near = near_limits(np.mean(excluded), 0.1, most=0.3), near_limits(np.mean(losses or 0.0), 0.0, most=0.03)
        if stops_early(seed + 1, n_seeds, lambda scores=near: scores):
            break
    assert np.mean(excluded) < 0.3
    assert np.mean(losses or 0.0) < 0.03


def test_effects_are_found_among_noise():
    """Two topics of four have an effect: their intervals hold it, those of the others hold 0, nearly always."""
    inside, found = [], []
    for seed in range(6):
        eta = np.array([-4.0, 4.0, 0.0, 0.0])
        corpus = make_corpus(n_docs=900, n_topics=4, doc_length=80, eta=eta, random_state=seed)
        model = SLDAClassifier(4, held_out=0.3, **RUN).fit(corpus.X, corpus.y)
        alike = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[:4, 4:]
        assert alike.max(axis=1).min() > 0.8
        lower, upper = (side[0, alike.argmax(axis=1)] for side in model.coef_interval(0.9))
        inside.append((lower <= eta) & (eta <= upper))
        found.append((lower > 0) | (upper < 0))
    assert np.mean(inside) > 0.7 and np.mean(np.array(found)[:, :2]) > 0.9


def test_held_out_responses_reach_no_topic(monkeypatch):
    """Held-out documents change their classes: topics and training weights are the same bits, reported ones not."""
    corpus = make_corpus(n_docs=300, n_topics=3, random_state=0)
    mask = np.zeros(300, bool)
    mask[:60] = True
    monkeypatch.setattr(fit, "choose_held_out", lambda *_: mask)
    other = corpus.y.copy()
    a, b = (np.flatnonzero(corpus.y[:60] == label)[:8] for label in (0, 1))
    other[a], other[b] = 1, 0
    first, second = (SLDAClassifier(3, **RUN).fit(corpus.X, y) for y in (corpus.y, other))
    for name in ("training_draws_", "log_joint_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    counts = first.posterior_.topics[0].word_topic
    np.testing.assert_array_equal(counts, second.posterior_.topics[0].word_topic)
    assert (first.coef_draws_ != second.coef_draws_).any()
    assert first.held_out_["loss"] < second.held_out_["loss"]
    with np.errstate(invalid="ignore"):  # draws whose factor is 0 in both
        ratio = second.prediction_draws_[0, :, 0] / first.prediction_draws_[0, :, 0]
    assert np.nanmean(ratio) < 0.95  # shrunk more
    seen = counts[0].sum(axis=1)
    np.testing.assert_array_equal(seen, 20 * np.asarray(corpus.X[60:].sum(axis=0)).ravel())  # their words neither
    np.testing.assert_allclose(first.doc_topic_[:60], first.transform(corpus.X[:60]))


def hold_out(model, y, weight=None, seed=0):
    """The mask of held-out documents in a fit of this model."""
    y = np.asarray(y, float).reshape(len(y), -1)
    target = make_target(y, np.ones_like(y) if weight is None else weight)
    tokens = Tokens(np.zeros(len(y), np.int32), np.arange(len(y) + 1))
    return fit.split_corpus(Arrays(tokens, target), model.make_response(), model._config(1, seed), [seed, 1], 0).mask


def test_who_is_held_out():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [700, 300]))
    chosen = hold_out(SLDAClassifier(), y)
    assert chosen.sum() == 100 and abs(chosen[y == 1].sum() - 30) <= 1  # every class has its share
    np.testing.assert_array_equal(chosen, hold_out(SLDAClassifier(), y))
    assert (chosen != hold_out(SLDAClassifier(), y, seed=1)).any()
    numbers = rng.normal(size=1000)
    assert abs(hold_out(SLDARegressor(), numbers)[numbers > np.quantile(numbers, 0.8)].sum() - 20) <= 1
    for n, share in ((5000, 0.05), (1000, 0.1), (300, 0.15)):
        assert hold_out(SLDAClassifier(), np.arange(n) % 2).mean() == pytest.approx(share)
    assert hold_out(SLDAClassifier(held_out=0.5), y).sum() == 500
    assert hold_out(SLDAClassifier(), np.arange(400_000) % 2).sum() == 10_000
    for model, n in (
        (SLDAClassifier(held_out=0), 1000),
        (SLDAClassifier(calibrate=False), 1000),
        (SLDAClassifier(), 33),
    ):
        assert not hold_out(model, np.arange(n) % 2).any()
    rare = np.concatenate([np.repeat([0, 1], 500), [2, 2, 2]])
    assert not hold_out(SLDAClassifier(held_out=0.5), rare)[1000:].any()  # the topics need them
    weight = (np.arange(1000) < 200).astype(float)[:, None]  # the others have no response
    assert hold_out(SLDAClassifier(), y, weight).sum() == 30 and not hold_out(SLDAClassifier(), y, weight)[200:].any()
    for wrong in (-0.1, 0.6, "all", True, None):
        with pytest.raises(ValueError, match="held_out must be 'auto' or a share"):
            SLDAClassifier(held_out=wrong).fit([[1, 2], [2, 1]] * 5, [0, 1] * 5)


def test_the_factor_has_its_posterior():
    """By brute force: probabilities of the mean over two chains, half of the prior at 0, each response left out."""
    rng = np.random.default_rng(1)
    y, offset = (rng.random((12, 1)) < 0.6).astype(float), np.full((12, 1), 0.4)
    chains = [HeldOutDraws(rng.normal(size=(5, 12, 1)), np.zeros((0, 12, 1))) for _ in range(2)]
    weight = np.ones((12, 1))
    weight[3] = 2.0
    found = estimate_shrinkage(Logistic(1.0), make_target(y, weight, offset), chains, np.zeros((10, 0)))
    prior = np.where(FACTORS == 0, NOTHING, (1 - NOTHING) * factor_prior(1.0))
    densities = np.empty((len(FACTORS), 12))
    for i, factor in enumerate(FACTORS):
        p = np.mean([expit(0.4 + factor * draw[:, 0]) for chain in chains for draw in chain.topics], axis=0)
        densities[i] = np.where(y[:, 0] > 0.5, p, 1 - p)
    posterior = prior * np.prod(densities ** weight.ravel(), axis=1)
    mass = found.posteriors[TOPICS][1]
    np.testing.assert_allclose(mass[:, 0], posterior / posterior.sum())
    assert all(len(found.posteriors[name][0]) == 1 for name in (COVARIATES, SCALE))
    without = posterior[:, None] / densities ** weight.ravel()  # the posterior that the other responses give
    expected = (without * densities).sum(axis=0) / without.sum(axis=0)
    np.testing.assert_allclose(np.exp(-found.loss[:, 0]), expected)
    np.testing.assert_allclose(found.base_loss[:, 0], -np.log(np.where(y[:, 0] > 0.5, expit(0.4), expit(-0.4))))


def test_scores_are_their_definitions():
    rng = np.random.default_rng(2)
    omegas, scales = rng.normal(size=(6, 9, 3)), rng.uniform(0.5, 2.0, (6, 3))
    classes = np.eye(3)[rng.integers(0, 3, 9)]
    p = np.mean(np.exp(omegas - logsumexp(omegas, axis=2, keepdims=True)), axis=0)
    one = Logistic(1.0, classes=np.arange(3)).log_score(classes, omegas, scales)
    np.testing.assert_allclose(one[:, 0], np.log((p * classes).sum(axis=1)))
    each = Logistic(1.0).log_score(classes, omegas, scales)
    np.testing.assert_allclose(
        each, np.log(np.where(classes > 0, expit(omegas).mean(axis=0), expit(-omegas).mean(axis=0)))
    )
    y = rng.normal(size=(9, 3))
    gaussian = Gaussian(1.0, np.ones(3))
    expected = norm.logpdf(y, omegas.mean(axis=0), np.sqrt(scales.mean(axis=0)))
    np.testing.assert_allclose(gaussian.log_score(y, omegas, scales), expected)
    expected = np.log(np.mean(norm.pdf(y, omegas, np.sqrt(scales)[:, None]), axis=0))
    np.testing.assert_allclose(gaussian.log_predictive(y, omegas, scales), expected)
    counts = rng.poisson(2.0, (9, 3)).astype(float)
    mean, r = np.exp(omegas).mean(axis=0), scales.mean(axis=0)
    expected = NegativeBinomial(1.0, r).log_density(counts, np.log(mean))
    np.testing.assert_allclose(NegativeBinomial(1.0, np.ones(3)).log_score(counts, omegas, scales), expected)
    hinge = Hinge(1.0, 1.0)
    both = [np.exp(hinge.log_score(np.full((9, 3), side), omegas, scales)) for side in (0.0, 1.0)]
    np.testing.assert_allclose(np.sum(both, axis=0), 1.0)
    small = np.full((1, 1, 1), 0.1)
    np.testing.assert_allclose(hinge.log_score(np.ones((1, 1)), small, scales), np.log(expit(4 * 0.1)))
    assert isinstance(Hinge(3.0, 16.0).reported(), Logistic)


def test_scale_and_covariates_have_factors_of_their_own():
    """Topics that explain nothing, a covariate whose weight is twice too large, noise of twice the variance."""
    rng = np.random.default_rng(3)
    z, noise = rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1))
    y = 0.5 * z + np.sqrt(2.0) * noise
    draws = [HeldOutDraws(rng.normal(size=(8, 4000, 1)), np.repeat(z[None], 8, axis=0))]
    found = estimate_shrinkage(Gaussian(1.0, np.ones(1)), make_target(y, np.ones_like(y)), draws, np.ones((8, 1)))
    (_, topics), (b, beside), (v, scale) = (found.posteriors[name] for name in (TOPICS, COVARIATES, SCALE))
    assert topics[0, 0] > 0.9 and abs(b @ beside[:, 0] - 0.5) < 0.1 and abs(v @ scale[:, 0] - 2.0) < 0.2
    known = estimate_shrinkage(
        Gaussian(1.0, np.ones(1), False), make_target(y, np.ones_like(y)), draws, np.ones((8, 1))
    )
    assert len(known.posteriors[SCALE][0]) == 1  # a known variance is not corrected


def test_columns_learn_from_each_other_and_draws_are_even():
    likelihood = np.log(np.array([[1e-9, 1e-9, 1e-9, 0.3], [1.0, 1.0, 1.0, 0.3]]))
    alone = np.exp(log_posteriors(likelihood[:, 3:], np.array([0.5, 0.5])))
    among = np.exp(log_posteriors(likelihood, np.array([0.5, 0.5])))
    assert alone[0, 0] == pytest.approx(0.5) and among[0, 3] == pytest.approx(0.5 * 5 / 8, abs=0.02)
    draws = spread(np.array([0.0, 1.0]), np.array([[0.25], [0.75]]), 40, np.random.default_rng(0))
    assert draws.sum() == 30 and 0 < draws[:20].sum() < 20
    assert FACTORS[0] == 0 and np.all(np.diff(FACTORS) > 0)


def test_a_document_of_one_word_is_unsure_of_its_topic():
    """Its probability is a mean over the topics that the word may be of, which is known exactly."""
    corpus = make_corpus(n_docs=300, n_words=40, n_topics=3, random_state=0)
    model = SLDAClassifier(3, c=5, held_out=0, words=False, **RUN).fit(corpus.X, corpus.y)
    model.set_params(predict_sweeps=40_000)
    phi, eta = model.topic_word_, model.prediction_draws_[0][:, 0]
    word = int((phi / phi.sum(axis=0)).max(axis=0).argmin())  # the most ambiguous one
    document = np.zeros((1, 40), int)
    document[0, word] = 1
    share = model.alpha_[0] * phi[:, word] / (model.alpha_[0] @ phi[:, word])
    expected = np.mean(expit(model.intercept_ + eta) @ share)
    assert model.predict_proba(document)[0, 1] == pytest.approx(expected, abs=0.01)
    assert abs(expit(model.intercept_ + eta.mean(axis=0) @ share)[0] - expected) > 0.02  # the mean share would differ


def test_a_document_without_words_has_what_such_documents_had(short_regressions):
    """0.8 of them are of the class that 0.5 of all are; nothing depends on the seed."""
    corpus = make_corpus(n_docs=400, n_words=40, n_topics=3, random_state=0)
    run = {"n_draws": 5, "burn_in": 10, "n_chains": 2, "random_state": 0}
    X, y = corpus.X.toarray(), corpus.y.copy()
    X[:100] = 0
    y[:100] = np.arange(100) % 5 > 0
    nothing = np.zeros((1, 40), int)
    models = [SLDAClassifier(3, **run | {"random_state": seed}).fit(X, y) for seed in range(2)]
    p = [model.predict_proba(nothing)[0, 1] for model in models]
    assert p[0] == pytest.approx(p[1], rel=1e-12) == pytest.approx((80 + 5 * y.mean()) / 105, abs=0.01)
    full = SLDAClassifier(3, **run).fit(corpus.X, np.arange(400) % 4 == 0)
    assert full.predict_proba(nothing)[0, 1] == pytest.approx(0.25, abs=0.01)  # none in training: the base rate
    three = SLDAClassifier(3, **run).fit(corpus.X, np.digitize(np.arange(400), [40, 160]))
    np.testing.assert_allclose(three.predict_proba(nothing)[0], [0.1, 0.3, 0.6], atol=0.02)
    labels = np.column_stack([y, np.full(400, np.nan)]).astype(float)
    half = SLDAClassifier(3, **run).fit(X, labels)
    assert half.predict_proba(nothing)[0, 1] == pytest.approx(0.5)  # a label of which nothing is known
    rating = SLDARegressor(3, **run).fit(X, np.where(np.arange(400) < 100, 7.0, 3.0))
    assert rating.predict(nothing)[0] == pytest.approx((700 + 5 * 4) / 105)
    count = SLDACountRegressor(3, **run).fit(X, np.where(np.arange(400) < 100, 9, 1))
    assert count.predict(nothing)[0] == pytest.approx((900 + 5 * 3) / 105, rel=0.01)


def test_a_warning_where_nothing_is_found(texts):
    n_held_out, warned = int(0.15 * texts.shape[0]), 0  # the corpus differs from one SciPy to the next
    for seed in range(5):  # by chance some noise looks like an effect
        y = np.random.default_rng(seed).integers(0, 2, texts.shape[0])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SLDAClassifier(held_out=0.15, **RUN).fit(texts, y)
        message = f"and the response: on {n_held_out} held-out documents topics do not"
        warned += any(message in str(one.message) for one in caught)
        assert model.held_out_["documents"] == n_held_out
        assert model.held_out_["loss"] > model.held_out_["base_loss"] - 0.05
        if warned == 2:
            break
    assert warned == 2
    corpus = make_corpus(n_docs=500, n_topics=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y)
    assert good.held_out_["loss"] < good.held_out_["base_loss"] and good.held_out_["p_no_effect"][0] < 0.1
    two = np.column_stack([corpus.doc_topic[:, 0], np.random.default_rng(8).normal(size=500)])
    with pytest.warns(UserWarning, match="no relation between topics and columns 1: on"):
        SLDARegressor(3, **RUN).fit(corpus.X, two)
    with pytest.warns(UserWarning, match="'1' is the same for all documents"):
        SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y, covariates=np.column_stack([np.arange(500), np.ones(500)]))


def test_the_log_joint_is_taken_every_five_iterations_and_in_every_draw():
    corpus = make_corpus(n_docs=60, n_topics=3, random_state=0)
    model = SLDAClassifier(3, burn_in=25, n_draws=7, n_chains=2, random_state=0).fit(corpus.X, corpus.y)
    assert model.log_joint_iterations_.tolist() == [5, 10, 15, 20, 25, 30]
    assert model.posterior_.traces.kept.shape == (2, 7, 2)
    np.testing.assert_array_equal(model.log_joint_[:, -1], model.posterior_.traces.kept[:, 4, 0])


def test_many_held_out_documents_are_thinned(monkeypatch):
    corpus = make_corpus(n_docs=300, n_topics=3, random_state=0)
    whole = SLDAClassifier(3, held_out=0.5, **RUN).fit(corpus.X, corpus.y)
    monkeypatch.setattr(shrinkage, "MOST_NUMBERS", 20 * 60)
    some = SLDAClassifier(3, held_out=0.5, **RUN).fit(corpus.X, corpus.y)
    assert whole.held_out_["documents"] == some.held_out_["documents"] == 150
    assert some.held_out_["se"] > 1.3 * whole.held_out_["se"]  # a third of them were used
    np.testing.assert_array_equal(whole.coef_draws_, some.coef_draws_)  # these rest on all of them
    assert abs(whole.held_out_["loss"] - some.held_out_["loss"]) < 0.15


def rows_of(model):
    return describe_topics(model.posterior_, vocabulary_of(model.posterior_))


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
def test_the_largest_of_many_weights_of_noise_pulls_to_nothing(texts):
    """Twelve classes by lot, twenty topics: a 90 % interval of the largest of twelve excludes 0 far too often."""
    y = np.random.default_rng(0).integers(0, 12, texts.shape[0])
    rows = rows_of(SLDAClassifier(held_out=0.3, **RUN).fit(texts, y))
    pulls, excluded = (
        sum(ways) for ways in zip(*((r["class"] is not None, r["interval"][0] > 0) for r in rows), strict=True)
    )
    assert pulls <= 4 and pulls < excluded
    corpus = make_corpus(n_docs=600, n_topics=3, random_state=0)
    rows = rows_of(SLDAClassifier(3, held_out=0.3, **RUN).fit(corpus.X, corpus.doc_topic.argmax(axis=1)))
    assert sorted(row["class"] for row in rows) == [0, 1, 2]


def test_many_draws_are_made_in_parts(monkeypatch):
    corpus = make_corpus(n_docs=80, n_words=40, n_topics=3, random_state=0)
    model = SLDAClassifier(3, n_draws=5, burn_in=5, random_state=0).fit(corpus.X, corpus.y)
    whole = model.predict_proba(corpus.X)
    monkeypatch.setattr("supertopic.sampling.new_documents.CHUNK_NUMBERS", 1000)
    monkeypatch.setattr("supertopic.inference.predict.CHUNK_NUMBERS", 200)
    np.testing.assert_array_equal(model.predict_proba(corpus.X), whole)


def test_the_scale_is_found_with_the_spread_of_omega():
    """Draws of omega around 0 with variance 1, y with variance 2: what is left for sigma2 is 1, not 2."""
    rng = np.random.default_rng(0)
    y = np.sqrt(2.0) * rng.normal(size=(2000, 1))
    beside = np.zeros((0, 2000, 1))
    found = estimate_shrinkage(
        Gaussian(1.0, np.ones(1)), make_target(y, np.ones_like(y)),
        [HeldOutDraws(rng.normal(size=(60, 2000, 1)), beside)], np.ones((60, 1)),
    )  # fmt: skip
    grid, mass = found.posteriors[SCALE]
    factor = found.posteriors[TOPICS][0] @ found.posteriors[TOPICS][1][:, 0]
    assert grid @ mass[:, 0] + factor**2 == pytest.approx(2.0, rel=0.15) and factor < 0.5
    spread_out = np.full((60, 2000, 1), 0.0) + np.repeat(rng.normal(size=(60, 1, 1)), 2000, axis=1) * 1.0
    steady = estimate_shrinkage(
        Gaussian(1.0, np.ones(1)), make_target(y, np.ones_like(y)), [HeldOutDraws(spread_out * 0.0, spread_out)],
        np.ones((60, 1)),
    )  # fmt: skip
    points, weights = steady.posteriors[SCALE]
    around = steady.posteriors[COVARIATES][0] @ steady.posteriors[COVARIATES][1][:, 0]
    assert points @ weights[:, 0] + around**2 == pytest.approx(2.0, rel=0.2) and points @ weights[:, 0] < 1.9


def test_the_base_knows_the_covariates():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(400, 1))
    y = truth + 0.3 * rng.normal(size=(400, 1))
    beside = np.repeat(truth[None], 5, axis=0)
    found = estimate_shrinkage(
        Gaussian(1.0, np.ones(1)),
        make_target(y, np.ones_like(y)),
        [HeldOutDraws(0.0 * beside, beside)],
        np.full((5, 1), 0.1),
    )
    assert found.base_loss.mean() == pytest.approx(found.loss.mean(), abs=0.02)


def test_columns_learn_from_each_other():
    """By its definition: every round the prior of a column is the given one and what the others have found."""
    rng = np.random.default_rng(0)
    likelihood, prior = np.log(rng.random((4, 3))), np.array([0.5, 0.2, 0.2, 0.1])
    found = np.tile(prior[:, None], (1, 3))
    priors = found.copy()
    for _ in range(ROUNDS_OF_PRIORS):
        found = np.exp(likelihood) * priors
        found /= found.sum(axis=0)
        for q in range(3):
            others = found[:, [other for other in range(3) if other != q]].sum(axis=1)
            priors[:, q] = (PRIOR_WEIGHT * prior + others) / (PRIOR_WEIGHT + 2)
    np.testing.assert_allclose(np.exp(log_posteriors(likelihood, prior)), found)


def test_weights_for_predictions_are_drawn_with_c_1(monkeypatch):
    seen, real = [], calibration.draw_weights
    for module in (calibration, reported):
        monkeypatch.setattr(
            module,
            "draw_weights",
            lambda engine, response, *rest: seen.append(response.c) or real(engine, response, *rest),
        )
    corpus = make_corpus(n_docs=200, n_topics=3, random_state=0)
    SLDAClassifier(3, c=30.0, **RUN).fit(corpus.X, corpus.y)
    assert seen == [1.0, 1.0]  # for predictions, and those that are reported


def test_each_part_of_omega_has_its_own_factor(monkeypatch):
    corpus = make_corpus(n_docs=200, n_topics=3, random_state=0)
    z, fits = np.random.default_rng(0).normal(size=(200, 1)), []
    for factors in ((1.0, 1.0, 1.0), (0.5, 2.0, 3.0)):
        drawn = dict(zip((TOPICS, COVARIATES, SCALE, LINEAR), (*factors, 0.0), strict=True))
        monkeypatch.setattr(
            "supertopic.inference.factors.draw_factors",
            lambda _, n, *__, drawn=drawn: {name: np.full((n, 1), x) for name, x in drawn.items()},
        )
        model = SLDARegressor(3, words=False, **RUN).fit(corpus.X, corpus.doc_topic[:, 0] + z[:, 0], covariates=z)
        fits.append(model.posterior_)
    topics = [posterior.term(TopicWeights).eta[0] for posterior in fits]
    covariates = [posterior.term(CovariateWeights).eta for posterior in fits]
    np.testing.assert_allclose(topics[1], 0.5 * topics[0])
    np.testing.assert_allclose(covariates[1], 2.0 * covariates[0])
    np.testing.assert_allclose(fits[1].scale, 3.0 * fits[0].scale)


def test_what_is_said_of_held_out_documents_counts_their_weights():
    """Losses are weighted means; the standard error is that of the weighted gain, and knows no unit of weights."""
    rng, n = np.random.default_rng(0), 40
    weight = rng.integers(1, 4, (n, 2)) * 1.0
    posteriors = {TOPICS: (np.arange(2.0), np.array([[0.2, 0.1], [0.8, 0.9]]))}
    alone, both = (Shrinkage(posteriors, *rng.random((2, n, 2)), weight, {}, {}, {}) for _ in range(2))
    alone = alone._replace(base_loss=alone.loss + 0.5)
    response = Logistic(1.0, classes=np.array(["a", "b"], object), multilabel=True)
    found = describe_held_out(both, alone, n, response)
    for name, losses in (("loss", both.loss), ("base_loss", alone.base_loss), ("topics_loss", alone.loss)):
        assert found[name] == pytest.approx((weight * losses).sum() / weight.sum())
    gain = (weight * (alone.base_loss - both.loss)).sum(axis=1) * n / weight.sum()
    assert found["se"] == pytest.approx(gain.std() / n**0.5)
    heavy = [part._replace(weight=8.0 * weight) for part in (both, alone)]
    assert describe_held_out(*heavy, n, response)["se"] == pytest.approx(found["se"])
    assert found["relation"] and found["p_no_effect"] == [0.2, 0.1]
    lost = alone._replace(base_loss=np.column_stack([alone.loss[:, 0] + 0.5, alone.loss[:, 1] - 0.5]))
    with pytest.warns(UserWarning, match=r"no relation between topics and columns b"):
        assert describe_held_out(both, lost, n, response)["relation"]  # of one column
    with pytest.warns(UserWarning, match=r"no relation"):
        assert not describe_held_out(both, alone._replace(base_loss=alone.loss - 0.5), n, response)["relation"]
