"""Every response on planted data: what is found, what comes back in the user's units, and bad input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, log_expit, softmax
from sklearn.base import clone
from sklearn.metrics import r2_score
from test_contract import KEY, RESPONSES, Problem

from small import ALARM
from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.baselines import paper_system
from supertopic.corpus.source import Target, make_target, select_target
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import make_key
from supertopic.kernels.responses import draw_lams, kappa_parts, log_densities
from supertopic.model.responses import (
    CrowdGaussian,
    CrowdLogistic,
    Gaussian,
    Hinge,
    Logistic,
    NegativeBinomial,
    Ordinal,
    PeriodHazards,
    SharedHazards,
)
from supertopic.model.responses.base import Encoded
from supertopic.model.responses.counts import slice_sample

RUN = {"burn_in": 40, "n_draws": 10, "n_chains": 1, "random_state": 0}
EFFECT = np.array([-1.0, -0.4, 0.5, 1.2])


@pytest.fixture(scope="module")
def corpus():
    found = make_corpus(n_docs=500, n_topics=4, random_state=1)
    rng = np.random.default_rng(0)
    effect = found.doc_topic @ EFFECT
    found.rating = 50 + 10 * effect + rng.normal(0, 3, len(effect))
    found.exposure = rng.uniform(0.5, 5, len(effect))
    found.count = rng.negative_binomial(3, 3 / (3 + 6 * found.exposure * np.exp(effect))).astype(float)
    found.labels = (rng.random((500, 4)) < expit(8 * found.doc_topic - 3)).astype(int)
    found.group = found.doc_topic.argmax(axis=1)
    return found


def match(corpus, model):
    """For every planted topic, the fitted topic that is most like it."""
    similar = np.corrcoef(np.vstack([corpus.topic_word, model.topic_word_]))[:4, 4:]
    assert similar.max(axis=1).min() > 0.9
    return similar.argmax(axis=1)


def test_ratings_come_back_in_their_units(corpus):
    train, test = slice(0, 350), slice(350, 500)
    model = SLDARegressor(4, **RUN | {"n_chains": 3}).fit(corpus.X[train], corpus.rating[train])
    mean, std = model.predict(corpus.X[test], return_std=True)
    assert r2_score(corpus.rating[test], mean) > 0.6
    np.testing.assert_array_equal(model.predict(corpus.X[test]), mean)
    assert 0.8 < (np.abs(corpus.rating[test] - mean) < 1.645 * std).mean() < 0.98
    assert model.intercept_ == pytest.approx(corpus.rating[train].mean())
    np.testing.assert_allclose(model.coef_[0, match(corpus, model)], 10 * EFFECT, atol=3.5)
    assert 5 < model.sigma2_draws_.mean() < 14  # 9 was planted
    density = model.log_predictive(corpus.X[test], corpus.rating[test])
    assert density.mean() > stats.norm.logpdf(corpus.rating[test], mean.mean(), mean.std() * 2).mean()
    far = clone(model).fit(corpus.X[train], 1e6 * corpus.rating[train] - 1e9)
    np.testing.assert_allclose(far.predict(corpus.X[test]), 1e6 * mean - 1e9, rtol=1e-6)


def test_several_ratings_fixed_variance_and_holes(corpus):
    Y = np.column_stack([corpus.rating, -0.001 * corpus.rating, np.full(500, 7.0)])
    Y[::4, 0] = np.nan
    model = SLDARegressor(4, sigma2=2.5, **RUN).fit(corpus.X, Y)
    mean, std = model.predict(corpus.X, return_std=True)
    assert mean.shape == std.shape == Y.shape and model.coef_.shape == (3, 4)
    assert np.corrcoef(mean[:, 0], corpus.rating)[0, 1] > 0.8
    np.testing.assert_allclose(model.sigma2_draws_, 2.5)
    np.testing.assert_allclose(mean[:, 2], 7.0, atol=0.5)  # a constant column is legal
    known = ~np.isnan(Y[:, 0])
    a = SLDARegressor(4, **RUN).fit(corpus.X, Y[:, 0])
    b = SLDARegressor(4, **RUN).fit(corpus.X, np.where(known, Y[:, 0], 1e3), sample_weight=known.astype(float))
    np.testing.assert_allclose(a.coef_draws_, b.coef_draws_, rtol=1e-9)
    one = SLDARegressor(4, **RUN).fit(corpus.X, corpus.rating[:, None])
    assert one.predict(corpus.X).shape == (500, 1)


def test_counts(corpus):
    train, test = slice(0, 350), slice(350, 500)
    model = SLDACountRegressor(4, **RUN | {"n_chains": 2})
    model.fit(corpus.X[train], corpus.count[train], exposure=corpus.exposure[train])
    mean = model.predict(corpus.X[test], exposure=corpus.exposure[test])
    assert np.corrcoef(np.log(mean), np.log1p(corpus.count[test]))[0, 1] > 0.6
    np.testing.assert_allclose(model.predict(corpus.X[test], exposure=2 * corpus.exposure[test]), 2 * mean)
    np.testing.assert_allclose(model.coef_[0, match(corpus, model)], EFFECT, atol=0.5)
    assert 1.5 < np.median(model.dispersion_draws_) < 6  # 3 was planted
    lower, upper = model.predict_interval(corpus.X[test], 0.9, exposure=corpus.exposure[test])
    assert 0.82 < ((lower <= corpus.count[test]) & (corpus.count[test] <= upper)).mean() < 0.99
    found = model.log_predictive(corpus.X[test], corpus.count[test], exposure=corpus.exposure[test]).mean()
    rate = np.average(corpus.count[train] / corpus.exposure[train]) * corpus.exposure[test]
    assert found > stats.nbinom.logpmf(corpus.count[test], 3, 3 / (3 + rate)).mean()
    large = SLDACountRegressor(4, **RUN).fit(corpus.X, 1e5 * corpus.count + 3e6)
    assert abs(large.predict(corpus.X).mean() / (1e5 * corpus.count.mean() + 3e6) - 1) < 0.2
    fixed = SLDACountRegressor(4, dispersion=2.0, **RUN).fit(corpus.X, np.column_stack([corpus.count, corpus.count]))
    assert (fixed.dispersion_draws_ == 2.0).all() and fixed.predict(corpus.X).shape == (500, 2)
    nothing = SLDACountRegressor(2, **RUN).fit(corpus.X, np.zeros(500))
    assert nothing.predict(corpus.X).max() < 0.1


def test_quantiles_of_a_mixture_of_counts():
    means, sizes = [np.array([[3.0, 800.0]]), np.array([[9.0, 0.01]])], [np.array([2.0, 5.0]), np.array([1.0, 0.3])]
    for q in (0.05, 0.5, 0.95):
        found = NegativeBinomial(1.0, np.ones(1)).quantile(q, np.log(means), sizes)[0]
        for r in range(2):

            def below(count, r=r):
                parts = zip(means, sizes, strict=True)
                return np.mean([stats.nbinom.cdf(count, s[r], s[r] / (s[r] + m[0, r])) for m, s in parts])

            assert below(found[r]) >= q > below(found[r] - 1)


@pytest.mark.parametrize("kind", [SLDAClassifier, MedLDAClassifier])
def test_labels(corpus, kind):
    names = ["red", "green", "blue", "grey"]
    model = kind(6, **RUN).fit(corpus.X, pd.DataFrame(corpus.labels, columns=names))
    assert model.classes_.tolist() == names
    assert (model.predict(corpus.X) == corpus.labels).mean() > 0.75
    assert model.decision_function(corpus.X).shape == (500, 4)
    rare = corpus.labels.copy()
    rare[:, 0] &= np.arange(500) % 8 == 0
    plain = kind(6, c=0.2, **RUN).fit(corpus.X, rare)
    fair = clone(plain).set_params(class_weight="balanced").fit(corpus.X, rare)
    assert fair.predict(corpus.X)[:, 0].sum() > plain.predict(corpus.X)[:, 0].sum() + 20
    with pytest.raises(ValueError, match="'balanced' or None"):
        kind(2, class_weight={0: 1.0, 1: 2.0}, **RUN).fit(corpus.X, rare)


@pytest.mark.parametrize(
    "model", [MedLDAClassifier(6, **RUN), SLDAClassifier(6, multiclass="stick_breaking", **RUN | {"n_chains": 2})]
)
def test_several_classes(corpus, model):
    y = np.array(["w", "x", "y", "z"])[corpus.group]
    model = clone(model).fit(corpus.X[:350], y[:350])
    assert model.score(corpus.X[350:], y[350:]) > 0.85
    assert model.decision_function(corpus.X[:5]).shape == (5, 4)
    binary = clone(model).fit(corpus.X, np.where(corpus.group > 1, "late", "early"))
    assert binary.decision_function(corpus.X).shape == (500,) and binary.coef_.shape == (1, 6)
    assert binary.score(corpus.X, np.where(corpus.group > 1, "late", "early")) > 0.85
    if isinstance(model, SLDAClassifier):
        p = model.predict_proba(corpus.X)
        assert model.coef_.shape == (3, 6)  # one stick less than classes
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert (p.argmax(axis=1) == model.decision_function(corpus.X).argmax(axis=1)).all()
    else:
        assert not hasattr(model, "predict_proba")


def test_sticks_are_the_product_of_decisions(corpus):
    """From one draw, by the definition."""
    model = SLDAClassifier(4, multiclass="stick_breaking", calibrate=False, burn_in=20, n_draws=1, n_chains=1)
    model.fit(corpus.X, corpus.group)
    model.set_params(predict_sweeps=1)  # one draw of the topics, so that their mean is this draw
    omega = model.transform(corpus.X) @ model.coef_.T + model.intercept_
    left, p = np.ones(500), []
    for r in range(3):
        p.append(left * expit(omega[:, r]))
        left = left * (1 - expit(omega[:, r]))
    np.testing.assert_allclose(model.predict_proba(corpus.X), np.column_stack([*p, left]), atol=1e-12)


def test_class_weight(corpus):
    y = corpus.group > 2
    y[np.flatnonzero(y)[::2]] = False
    plain = SLDAClassifier(4, c=1, **RUN).fit(corpus.X, y)
    fair = SLDAClassifier(4, c=1, class_weight="balanced", **RUN).fit(corpus.X, y)
    assert fair.predict(corpus.X).sum() > plain.predict(corpus.X).sum()
    weights = {False: 500 / 2 / (~y).sum(), True: 500 / 2 / y.sum()}
    named = SLDAClassifier(4, c=1, class_weight=weights, **RUN).fit(corpus.X, y)
    np.testing.assert_allclose(named.coef_draws_, fair.coef_draws_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["class", "hinge", "rating", "count"])
def test_covariates(corpus, kind):
    """A covariate takes the part of the response that is its own, in its own units."""
    rng = np.random.default_rng(3)
    Z = np.column_stack([rng.normal(100, 20, 500), rng.integers(0, 2, 500)])
    part = 0.05 * (Z[:, 0] - 100) - 1.0 * Z[:, 1]
    models = {"class": SLDAClassifier(4, c=1, nu2=5.0, **RUN), "rating": SLDARegressor(4, **RUN)}
    models |= {"hinge": MedLDAClassifier(4, c=1, margin=1, nu2=5.0, **RUN), "count": SLDACountRegressor(4, **RUN)}
    model = models[kind].set_params(held_out=0.5)
    if kind == "rating":
        y = corpus.rating + part
    elif kind == "count":
        y = rng.poisson(np.exp(1 + part))
    else:
        y = rng.random(500) < expit(2 * part)
    model.fit(corpus.X, y, covariates=Z)
    scale = 2.0 if kind in ("class", "hinge") else 1.0  # the hinge's weights are shown as log-odds, too
    lower, upper = model.covariate_coef_interval(0.98)
    assert model.covariate_coef_.shape == lower.shape == (1, 2)
    assert lower[0, 0] < scale * 0.05 < upper[0, 0] and lower[0, 1] < -scale < upper[0, 1]
    assert model.covariate_coef_[0, 1] < -0.3
    with_z = model.predict(corpus.X[:20], covariates=Z[:20])
    alone = np.concatenate([model.predict(corpus.X[i : i + 1], covariates=Z[i : i + 1]) for i in range(20)])
    np.testing.assert_array_equal(with_z, alone)
    for bad, message in (
        (None, "pass covariates"),
        (Z[:7], "7 rows"),
        (Z[:20, :1], "1 columns"),
        (np.where(Z[:20] > 100, np.nan, 1.0), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(corpus.X[:20], covariates=bad)
    with pytest.raises(ValueError, match="rows"):
        model.fit(corpus.X, y, covariates=Z[:-1])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(corpus.X, y, covariates=np.where(Z > 100, np.nan, Z))


def test_seeds_of_the_last_stick_fade_with_the_documents_of_its_class():
    y, classes = np.array(["a"] * 3 + ["b"] * 5 + ["c"] * 2, object), np.array(["a", "b", "c"], object)
    encoded = Logistic(1.0, multiclass="stick_breaking").encode(y, np.ones(10), classes=classes)
    means = encoded.response.seed_means("auto", ["c", "b", "a"], 3, 2)[1]
    assert encoded.response.seed_support(encoded.target, means).tolist() == [2, 5, 3]


def test_the_log_loss_of_labels_is_a_sum():
    truth, p = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.5, 0.25], [0.2, 0.5]])
    found = Logistic(1.0, classes=np.arange(2), multilabel=True).figures(truth, p)["log_loss"]
    assert found == pytest.approx(-0.5 * np.log(0.5 * 0.75 * 0.8 * 0.5))


def test_the_most_surprising_of_several_numbers_counts():
    response, truth = Gaussian(1.0, np.array([1.0, 4.0])), np.array([[3.0, 0.0], [0.0, -4.0], [np.nan, 5.0]])
    found = response.surprise(truth, np.zeros((1, 3, 2)), response.scale[None])
    np.testing.assert_allclose(found, [3.0, 2.0, np.nan])


def test_slice_sampling_leaves_a_density_where_it_is():
    gamma = stats.gamma([0.7, 5.0], scale=[2.0, 0.1])
    x, ends = np.log(gamma.rvs((4000, 2), random_state=0)), (np.full(2, -18.0), np.full(2, 18.0))

    def log_density(points):  # of the logarithms, but for constants
        return np.array([[0.7, 5.0] * x - np.exp(x) / [2.0, 0.1] for x in points])

    for _ in range(3):
        x = np.array([slice_sample(log_density, row, make_key(7, i, _), *ends) for i, row in enumerate(x)])
    for r, shape, scale in ((0, 0.7, 2.0), (1, 5.0, 0.1)):
        assert stats.kstest(np.exp(x[:, r]), stats.gamma(shape, scale=scale).cdf).pvalue > ALARM
    assert np.corrcoef(x[:-1, 1], x[1:, 1])[0, 1] < 0.1


@pytest.mark.parametrize(
    "response",
    [Logistic(2.0), Hinge(2.0, 3.0), Gaussian(2.0, np.full(2, 0.5)), NegativeBinomial(2.0, np.full(2, 1.5))],
)
def test_no_weight_no_word(response):
    """A missing response has kappa = lam = 0, before the first iteration and after."""
    target = make_target(np.ones((3, 2)), np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
    for lam in (response.start_lam(target), response.draw_lam(target, np.ones((3, 2)), make_key(1), 0)):
        constant, slope = response.kappa(target)
        for part in (lam, constant + slope * lam):
            assert (part[target.weight == 0] == 0).all()
        assert (lam[target.weight > 0] > 0).all()


def test_densities_and_priors_are_what_they_say():
    """The log joint adds them, constants included."""
    y, omega = np.array([[0.0, 3.0], [1.0, 7.0]]), np.array([[0.3, -1.0], [-0.2, 2.0]])
    scale = np.array([0.7, 2.5])
    expected = stats.norm.logpdf(y, omega, np.sqrt(scale))
    np.testing.assert_allclose(Gaussian(3.0, scale).log_density(y, omega), expected)
    expected = stats.nbinom.logpmf(y, scale, scale / (scale + np.exp(omega)))
    np.testing.assert_allclose(NegativeBinomial(3.0, scale).log_density(y, omega), expected)
    sign = np.array([[-1.0, 1.0], [1.0, 1.0]])
    expected = -2 * np.maximum(0, 1.5 - sign * omega)
    np.testing.assert_allclose(Hinge(3.0, 1.5).log_density(sign > 0, omega), expected)
    prior = stats.invgamma.logpdf(scale, 3.0, scale=2.0).sum()
    assert Gaussian(1.0, scale, True, 3.0, 2.0).log_prior() == pytest.approx(prior)
    prior = stats.gamma.logpdf(scale, 3.0, scale=1 / 2.0).sum()
    assert NegativeBinomial(1.0, scale, True, 3.0, 2.0).log_prior() == pytest.approx(prior)
    assert Gaussian(1.0, scale, False).log_prior() == NegativeBinomial(1.0, scale, False).log_prior() == 0
    weighted = make_target(y, np.array([[1.0, 0.0], [2.0, 1.0]]))
    density = Gaussian(1.0, scale).log_density(y, omega)
    np.testing.assert_allclose(
        Gaussian(3.0, scale).log_likelihood(weighted, omega), 3 * (weighted.weight * density).sum(axis=0)
    )


GOOD = np.array([[1, 2, 0], [0, 1, 3], [2, 0, 1], [1, 1, 1]])
QUICK = {"burn_in": 2, "n_draws": 2, "random_state": 0}


@pytest.mark.parametrize(
    ("model", "y", "more", "message"),
    [
        (SLDACountRegressor(2), [1, 2, 0.5, 3], {}, "whole numbers >= 0, got 0.5"),
        (SLDACountRegressor(2), [1, 2, -3, 3], {}, "got -3"),
        (SLDACountRegressor(2), [1, 2, np.inf, 3], {}, "infinity"),
        (SLDACountRegressor(2), [1, 2, 1e15, 3], {}, "at most"),
        (SLDACountRegressor(2), [1, 2, 3, 4], {"exposure": [1, 1, 0, 1]}, "exposure must be"),
        (SLDACountRegressor(2), [1, 2, 3, 4], {"exposure": [1, 1, -1, 1]}, "exposure must be"),
        (SLDACountRegressor(2), [1, 2, 3, 4], {"exposure": [1, 1, np.nan, 1]}, "NaN"),
        (SLDACountRegressor(2), [1, 2, 3, 4], {"exposure": [1, 1]}, "exposure has 2"),
        (SLDACountRegressor(2, dispersion=0), [1, 2, 3, 4], {}, "dispersion"),
        (SLDARegressor(2), [1, 2, np.inf, 3], {}, "infinity"),
        (SLDARegressor(2), [np.nan] * 4, {}, "NaN only"),
        (SLDARegressor(2), [1, 2, 3], {}, "y has 3"),
        (SLDARegressor(2), ["a", "b", "c", "d"], {}, "could not convert"),
        (SLDARegressor(2), None, {}, "requires y"),
        (SLDARegressor(2, sigma2=-1), [1, 2, 3, 4], {}, "sigma2"),
        (MedLDAClassifier(2, margin=0), [0, 1, 0, 1], {}, "margin"),
        (MedLDAClassifier(2, margin=-1), [0, 1, 0, 1], {}, "margin"),
        (MedLDAClassifier(2), [[0, 2], [1, 0], [1, 1], [0, 0]], {}, "indicator"),
        (SLDAClassifier(2, multiclass="softmax"), [0, 1, 0, 1], {}, "multiclass"),
        (SLDAClassifier(2, class_weight="fair"), [0, 1, 0, 1], {}, "class_weight"),
    ],
)
def test_bad_input(model, y, more, message):
    with pytest.raises(ValueError, match=message):
        model.set_params(**QUICK).fit(GOOD, y, **more)


def test_a_rating_lies_in_its_interval(corpus):
    """New ratings, of documents that were held out, lie in 90 % intervals nine times out of ten."""
    rng = np.random.default_rng(0)
    y = 50 + 10 * corpus.doc_topic[:, 0] + 3 * rng.normal(size=len(corpus.doc_topic))
    half = len(y) // 2
    model = SLDARegressor(4, **RUN | {"n_chains": 2}).fit(corpus.X[:half], y[:half])
    lower, upper = model.predict_interval(corpus.X[half:], 0.9)
    assert 0.84 < np.mean((lower <= y[half:]) & (y[half:] <= upper)) < 0.96
    mean, std = model.predict(corpus.X[half:], return_std=True)
    np.testing.assert_allclose((lower + upper) / 2, mean, atol=0.5)
    np.testing.assert_allclose((upper - lower) / 2, 1.645 * std, rtol=0.1)


def test_an_exposure_is_not_forgotten(corpus):
    exposure = np.full(corpus.X.shape[0], 7.0)
    model = SLDACountRegressor(3, **RUN).fit(corpus.X, np.full(len(exposure), 14), exposure=exposure)
    with pytest.raises(ValueError, match="fitted with an exposure"):
        model.predict(corpus.X)
    with pytest.raises(ValueError, match="fitted with an exposure"):
        model.predict_interval(corpus.X)
    np.testing.assert_allclose(model.predict(corpus.X, exposure=np.ones(len(exposure))), 2.0, rtol=0.2)
    SLDACountRegressor(3, **RUN).fit(corpus.X, np.full(len(exposure), 14)).predict(corpus.X)


def test_columns_of_a_regressor_keep_their_names(corpus):
    y = pd.DataFrame({"food": corpus.doc_topic[:, 0], "service": corpus.doc_topic[:, 1]})
    model = SLDARegressor(3, **RUN).fit(corpus.X, y)
    assert model.response_names_.tolist() == ["food", "service"]
    assert set(model.coefficient_frame()["column"]) == {"food", "service"}
    assert SLDARegressor(3, **RUN).fit(corpus.X, y["food"]).coefficient_frame()["column"][0] == "food"
    assert SLDARegressor(3, **RUN).fit(corpus.X, y.to_numpy()).response_names_.tolist() == ["0", "1"]


def test_a_chain_starts_from_the_mean_of_lambda():
    """The first draws of eta are then of the size that random topics call for; the paper starts from 1."""
    target = make_target(np.array([[1.0], [0.0]]), np.array([[1.0], [2.0]]), np.array([[0.0], [0.3]]))
    draws = [Logistic(25.0).draw_lam(target, target.offset, make_key(i), 0) for i in range(4000)]
    np.testing.assert_allclose(Logistic(25.0).start_lam(target), np.mean(draws, axis=0), rtol=0.02)
    np.testing.assert_allclose(Logistic(25.0).start_lam(target)[0], 25.0 / 4)
    draws = [Hinge(3.0, 8.0).draw_lam(target, target.offset, make_key(i), 0) for i in range(4000)]
    np.testing.assert_allclose(Hinge(3.0, 8.0).start_lam(target), np.mean(draws, axis=0), rtol=0.05)
    for response in (Logistic(25.0, paper_start=True), Hinge(3.0, 8.0, paper_start=True)):
        assert (response.start_lam(target) == 1).all()
    with pytest.raises(ValueError, match="start must be 'mean' or 'paper'"):
        SLDAClassifier(start=1).fit([[1, 2], [2, 1]], [0, 1])
    assert paper_system("gSLDA+").start == "paper" == paper_system("gMedLDA").start


def test_unknown_responses_teach_words_nothing(short_regressions):
    corpus = make_corpus(n_docs=400, n_topics=3, random_state=0)
    y = np.where(np.arange(400) % 2, np.nan, corpus.y)
    both = np.concatenate([y, np.full(400, np.nan)])
    X = np.vstack([corpus.X.toarray()] * 2)
    few, more = (SLDAClassifier(3, c=1e-3, **RUN).fit(*pair).word_coef_ for pair in ((corpus.X, y), (X, both)))
    assert np.corrcoef(few.ravel(), more.ravel())[0, 1] > 0.8


@pytest.mark.parametrize(
    "response",
    [
        Logistic(2.5),
        Hinge(1.5, 1.2),
        Gaussian(0.7, np.array([0.3, 2.0, 9.0])),
        NegativeBinomial(1.7, np.array([0.4, 3.0, 250.0])),
    ],
    ids=lambda response: type(response).__name__,
)
def test_scalar_formulas_are_those_of_the_response(response):
    """lam and kappa bit for bit, on a grid of y, weights (0 is a missing label) and omega, far ones among them."""
    values = [0.0, 1.0, 4.0, 77.0] if isinstance(response, NegativeBinomial) else [0.0, 1.0]
    if isinstance(response, Gaussian):
        values = [-3.0, 0.0, 0.25]
    grid = np.meshgrid(values, [0.0, 0.3, 1.0, 2.5], [-30.0, -1.2, 0.0, 1e-9, 0.7, 1.2, 25.0], indexing="ij")
    y, weight, omega = (np.repeat(part.reshape(-1, 1), 3, axis=1) for part in grid)
    target, key = make_target(y, weight), make_key(3)
    kind, own = response.scalar_form
    own = np.broadcast_to(np.asarray(own, float), 3).copy()
    lam = draw_lams(kind, response.c, own, y, weight, omega, key, 5)
    np.testing.assert_array_equal(lam, response.draw_lam(target, omega, key, 5))
    constant, slope = kappa_parts(kind, response.c, own, y, weight)
    expected = response.kappa(target)
    np.testing.assert_array_equal(constant, expected[0])
    np.testing.assert_array_equal(np.broadcast_to(slope, y.shape), np.broadcast_to(expected[1], y.shape))
    found = log_densities(kind, own, y, omega)
    np.testing.assert_allclose(found, response.log_density(y, omega), rtol=1e-12, atol=1e-12)
    part = draw_lams(kind, response.c, own, y[7:], weight[7:], omega[7:], key, 12)
    np.testing.assert_array_equal(part, lam[7:])  # a document's draw depends on its number alone


THRESHOLDS, LIFE = np.array([-1.2, 0.3, 1.1]), np.array([[9.0, 6.0, 3.0], [3.0, 2.0, 1.0]])
RATERS, CONFUSION = np.array(["ann", "ben"], object), np.full((2, 3, 3), 0.2) + 0.4 * np.eye(3)
GRADES = Ordinal(1.5, classes=np.arange(4), base=THRESHOLDS, thresholds=THRESHOLDS, anchor=1)
HAZARDS = SharedHazards(1.5, edges=np.arange(1.0, 4), life=LIFE, base=THRESHOLDS, thresholds=THRESHOLDS, anchor=1)
CROWD = CrowdLogistic(
    2.0, classes=np.arange(3), raters=RATERS, n_answers=np.full(2, 60.0), base=CONFUSION, confusion=CONFUSION.ravel()
)
RATED = CrowdGaussian(
    1.0, np.array([2.0]), names=np.array(["y"], object), raters=RATERS, n_answers=np.full(2, 900.0),
    base=np.ones((2, 2)), bias=np.array([0.3, -0.2]), precision=np.array([4.0, 1.5]),
)  # fmt: skip


def log_classes(thresholds):
    """The log probability of each class of a document with omega = 0."""
    above = np.concatenate([[1.0], expit(-thresholds), [0.0]])
    return np.log(-np.diff(above))


def log_dirichlet(scale, prior):
    rows = scale.reshape(-1, 3)
    return sum(stats.dirichlet.logpdf(row / row.sum(), a) for row, a in zip(rows, prior.reshape(-1, 3), strict=True))


def log_raters(scale, prior, shape=2.0, rate=1.0):
    """Of the variance, and of the bias and the precision of each rater."""
    (sigma2,), bias, tau = np.split(scale, [1, 3])
    found = stats.invgamma.logpdf(sigma2, shape, scale=rate)
    found += stats.norm.logpdf(bias, prior[0], prior[1] ** -0.5).sum()
    return found + stats.gamma.logpdf(tau, prior[2], scale=1.0 / prior[3]).sum()


FREE = [True, False, True]  # one threshold is held
EARLIER = np.array([[0.2, 0.0, 1.5], [4.0, 1.0, 0.5]])
ANSWERS = np.array([[9.0, 2.0, 1.0], [3.0, 4.0, 1.5], [0.5, 1.0, 6.0]]) * np.array([1.0, 2.0])[:, None, None]
OF_RATERS = np.array([[0.1, -0.3], [2.0, 5.0], [2.5, 9.0], [1.0, 3.0]])
USUAL_ANSWERS, USUAL_RATERS = (
    np.tile(1.5 * np.eye(3) + 0.5, (2, 1)),
    np.array([[0.0] * 2, [1.0] * 2, [1.5] * 2, [0.375] * 2]),
)
PRIORS_OF = {
    "Gaussian": (Gaussian(2.0, np.ones(2), shape=3.0, rate=np.array([2.0, 0.5])),
                 lambda s: stats.invgamma.logpdf(s, 3.0, scale=[2.0, 0.5]).sum()),
    "counts": (NegativeBinomial(2.0, np.ones(2), shape=3.0, rate=np.array([2.0, 0.5])),
               lambda s: stats.gamma.logpdf(s, 3.0, scale=[0.5, 2.0]).sum()),
    "grades": (GRADES, lambda s: 0.5 * log_classes(s).sum()),  # half a document of each class
    "later grades": (replace(GRADES, carried=EARLIER),
                     lambda s: stats.norm.logpdf(s, EARLIER[0], EARLIER[1] ** -0.5)[FREE].sum()),
    "times": (HAZARDS, lambda s: (0.5 * log_expit(-s) + 0.5 * 12.0 / 6.0 * log_expit(s))[FREE].sum()),
    "later times": (replace(HAZARDS, carried=EARLIER),
                    lambda s: stats.norm.logpdf(s, EARLIER[0], EARLIER[1] ** -0.5)[FREE].sum()),
    "raters": (CROWD, lambda s: log_dirichlet(s, USUAL_ANSWERS)),
    "later raters": (replace(CROWD, carried=ANSWERS), lambda s: log_dirichlet(s, ANSWERS)),
    "ratings": (RATED, lambda s: log_raters(s, USUAL_RATERS)),
    "later ratings": (replace(RATED, carried=OF_RATERS, shape=7.0, rate=4.0),
                      lambda s: log_raters(s, OF_RATERS, 7.0, 4.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRIORS_OF)
def test_the_log_prior_of_every_parameter_by_its_definition(name):
    """Up to a constant, the part of a threshold that is held among it."""
    response, definition = PRIORS_OF[name]
    rng, found, wanted = np.random.default_rng(0), [], []
    for _ in range(4):
        scale = response.scale * rng.gamma(20.0, 0.05, len(response.scale))
        if isinstance(response, Ordinal | SharedHazards):
            scale = np.sort(THRESHOLDS + [rng.normal() / 4, 0.0, rng.normal() / 4])
        elif isinstance(response, CrowdLogistic):
            scale = rng.dirichlet(np.ones(3), 6).ravel()
        found.append(response.with_scale(scale).log_prior())
        wanted.append(definition(scale))
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-9)


@pytest.mark.parametrize("name", ["grades", "times", "raters", "ratings"])
def test_what_earlier_batches_say_of_a_parameter(name):
    """A prior with the mean and the spread of their draws; half as sure, if their documents count for half."""
    response, rng, n = PRIORS_OF[name][0], np.random.default_rng(0), 4000
    if name in ("grades", "times"):
        draws = THRESHOLDS + rng.normal(size=(n, 3)) * [0.3, 0.0, 0.8]
        n_docs = np.array([10.0, 1e4])  # of columns; those that are known most often count
        learned, half = (response.with_carried_scale(draws, n_docs, d) for d in (1.0, 0.5))
        np.testing.assert_allclose(learned.carried, [draws.mean(axis=0), 1.0 / np.maximum(draws.var(axis=0), 4e-4)])
        np.testing.assert_allclose(half.carried[1, FREE], 0.5 * learned.carried[1, FREE])
        np.testing.assert_array_equal(half.thresholds, draws.mean(axis=0))
        few = response.with_carried_scale(draws, np.array([10.0]), 1.0)
        np.testing.assert_allclose(few.carried[1], np.minimum(learned.carried[1], 2.5))  # no surer than so few can be
    elif name == "raters":
        prior = ANSWERS.reshape(-1, 3)
        draws = np.concatenate([rng.dirichlet(row, n) for row in prior], axis=1)
        learned, half = (response.with_carried_scale(draws, np.ones(1), d) for d in (1.0, 0.5))
        np.testing.assert_allclose(learned.carried.reshape(-1, 3), prior, rtol=0.06)
        np.testing.assert_allclose(half.carried, 0.5 * learned.carried)
        np.testing.assert_allclose(half.confusion, draws.mean(axis=0))
        sure = response.with_carried_scale(np.repeat(draws[:1], 5, axis=0), np.ones(1), 1.0)
        np.testing.assert_allclose(sure.carried.sum(axis=2), 63.0)  # as many answers as there were, and the prior's
    else:
        bias = [0.2, -0.4] + rng.normal(size=(n, 2)) * [0.1, 0.3]
        tau, sigma2 = rng.gamma([30.0, 80.0], [0.1, 0.02], (n, 2)), 98.0 / rng.gamma(102.0, 1.0, (n, 1))
        draws = np.hstack([sigma2, bias, tau])
        learned, half = (response.with_carried_scale(draws, np.array([200.0]) * d, d) for d in (1.0, 0.5))
        mean, precision, shape, rate = learned.carried
        np.testing.assert_allclose(mean, bias.mean(axis=0))
        np.testing.assert_allclose(precision, 1.0 / bias.var(axis=0))
        np.testing.assert_allclose(shape / rate, tau.mean(axis=0))
        np.testing.assert_allclose(shape, [30.0, 80.0], rtol=0.1)
        np.testing.assert_allclose(half.carried[[1, 2]], 0.5 * learned.carried[[1, 2]])
        assert learned.rate / (learned.shape - 1.0) == pytest.approx(sigma2.mean()) and learned.shape == 102.0
        sure = response.with_carried_scale(np.repeat(draws[:1], 5, axis=0), np.array([200.0]), 1.0)
        np.testing.assert_allclose(sure.carried[1], 1.0 + 900.0 * tau[0])
        np.testing.assert_allclose(sure.carried[2], 1.5 + 450.0)


NAMES = np.array(["b", "c", "a", "b", "b", "c", "a", "c", "a", "a", "b", "a"], object)
NUMBERS = np.array([3.0, 9.0, 1.0, 5.0, 2.0, 7.0, 1.0, 6.0, 0.0, 4.0, 8.0, 2.0])
EVENTS = np.column_stack([NUMBERS + 0.5, [1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]])
VOTES = np.stack([NAMES, np.roll(NAMES, 1), NAMES], axis=1)
VOTES[::3, 2] = None
SEEN = np.column_stack([NUMBERS, NUMBERS + 1.0, NUMBERS[::-1]])
SEEN[::3, 2] = np.nan
PLAIN = {
    "classes": (Logistic(2.0, class_weight="balanced"), NAMES),
    "sticks": (Logistic(2.0, class_weight="balanced", multiclass="stick_breaking"), NAMES),
    "weighted": (Hinge(2.0, 1.5, class_weight={"a": 1.0, "b": 3.0, "c": 0.5}), NAMES),
    "labels": (Logistic(2.0, class_weight="balanced"), (np.stack([name == NAMES for name in "abc"], axis=1)) * 1.0),
    "grades": (Ordinal(2.0, class_weight="balanced"), NUMBERS // 3),
    "weighted grades": (Ordinal(2.0, class_weight={"c": 3.0}, order=["b", "c", "a"]), NAMES),
    "ratings": (Gaussian(2.0, np.ones(1), known_variance=4.0), np.column_stack([NUMBERS, NUMBERS[::-1] ** 2])),
    "counts": (NegativeBinomial(2.0, np.ones(1)), NUMBERS),
    "times": (SharedHazards(2.0, periods=3), EVENTS),
    "periods": (PeriodHazards(2.0, periods=3), EVENTS),
    "raters": (CrowdLogistic(2.0, class_weight="balanced"), VOTES),
    "raters' ratings": (CrowdGaussian(2.0, np.ones(1)), SEEN),
}  # fmt: skip
BALANCED = ("classes", "sticks", "labels", "grades", "raters")


def same_encoded(one, other, rows=slice(None), tolerance=1e-9):
    for name in (*one.response.learned, "thresholds", "anchor", "sigma2", "confusion", "bias", "precision"):
        a, b = (getattr(encoded.response, name, None) for encoded in (one, other))
        if name != "n_answers" and np.asarray(a).dtype.kind in "fi":
            np.testing.assert_allclose(a, b, rtol=tolerance, err_msg=name)
    for a, b in zip(one.target, other.target, strict=True):
        np.testing.assert_allclose(a[rows], b, rtol=tolerance)


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.filterwarnings("ignore:No document has answers of two raters")
def test_documents_of_weight_0_change_nothing_of_others(kind):
    """What is learned of y, and the weights of other documents, those of balanced classes among them."""
    response, y = PLAIN[kind]
    weight = np.array([1.0, 2.0, 0.5, 0.0, 1.0, 1.0, 3.0, 0.0, 1.0, 2.0, 0.0, 1.0])
    some = weight > 0
    same_encoded(response.encode(y, weight), response.encode(y[some], weight[some]), some)


@pytest.mark.parametrize("kind", [name for name in PLAIN if name not in BALANCED and "raters" not in name])
def test_a_document_of_weight_2_is_two_documents(kind):
    """Centres, units, base rates and life tables; raters rest on documents, whatever their weight."""
    response, y = PLAIN[kind]
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 0.0, 1.0, 2.0, 1.0, 1.0])
    rows = np.repeat(np.arange(12), weight.astype(int))
    if kind in ("times", "periods"):  # whose ends rest on the events that were seen
        response = replace(response, periods=[2.0, 5.0, 9.0])
    once, often = response.encode(y, weight), response.encode(y[rows], np.ones(len(rows)))
    each = once.target._replace(weight=once.target.weight / np.maximum(weight, 1e-9)[:, None])
    same_encoded(Encoded(once.response, Target(*(part[rows] for part in each)), None), often)


@pytest.mark.parametrize("kind", RESPONSES)
def test_sums_over_documents_count_weights(kind):
    """Twice the weight is the document twice: likelihoods, slopes, and what draws of a parameter rest on."""
    problem, response = Problem(kind=kind), replace(RESPONSES[kind], c=1.0)
    target, omega = problem.target, problem.omega()
    weight = np.array([0, 1, 2, 3, 1, 2, 1, 1, 2, 0, 1])
    rows = np.repeat(np.arange(len(weight)), weight)
    once = target._replace(weight=np.repeat(weight[:, None] * 1.0, omega.shape[1], axis=1))
    often = select_target(once._replace(weight=np.minimum(once.weight, 1.0)), rows)

    def summed(values):
        found = np.zeros(omega.shape)
        np.add.at(found, rows, values)
        return found

    for name in ("log_likelihood", "cost", "gradient", "information", "curvature"):
        a, b = (getattr(response, name)(*pair) for pair in ((once, omega), (often, omega[rows])))
        for one, other in zip(a, b, strict=True) if name == "cost" else [(a, b)]:
            np.testing.assert_allclose(one, other if np.shape(other) == np.shape(one) else summed(other), err_msg=name)
    if kind in ("ordinal", "times"):
        a, b = (response.own_sums(*pair, KEY, 0) for pair in ((once, omega), (often, omega[rows])))
        np.testing.assert_allclose(a, b)
        copies = np.stack([omega, omega + 0.5])
        for n_past in (0.0, 7.0):
            a, b = (
                response.match_scale(*pair, response.scale, n_past)
                for pair in ((once, copies), (often, copies[:, rows]))
            )
            np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("kind", [name for name in RESPONSES if "rate" not in name])
def test_chains_start_from_the_mean_of_their_draws(kind):
    """Of kappa and of lam where omega is the offset, for every response whose true classes are known."""
    problem, response, n = Problem(kind=kind), RESPONSES[kind], 4000
    target = problem.target._replace(offset=0.7 * problem.target.offset)
    for d in range(4):
        many = select_target(target, np.full(n, d))
        omega = np.ascontiguousarray(np.broadcast_to(many.offset, many.weight.shape))
        start = response.start(select_target(target, np.array([d])))
        for mean, draws in zip(start, response.draw(many, omega, make_key(5, d), 0), strict=True):
            error = draws.std(axis=0) / np.sqrt(n)
            assert (np.abs(draws.mean(axis=0) - mean[0]) <= 5.0 * error + 2e-3 * np.abs(mean[0])).all()


OMEGAS = np.random.default_rng(4).normal(size=(5, 6, 3)) * 1.5
NONE = np.zeros((5, 0))
THREE = np.array(["a", "b", "c"], object)


def test_how_unsure_a_prediction_is_by_its_definition():
    """Which texts are shown as the least clear ones, and which labels would teach most."""
    p = softmax(OMEGAS, axis=2).mean(axis=0)
    classes = Logistic(1.0, classes=THREE)
    np.testing.assert_allclose(classes.doubt(OMEGAS, NONE), -p.max(axis=1))
    np.testing.assert_allclose(classes.uncertainty(OMEGAS, NONE), 1.0 - (np.sort(p)[:, -1] - np.sort(p)[:, -2]))
    p = expit(OMEGAS).mean(axis=0)
    labels = Logistic(1.0, classes=THREE, multilabel=True)
    np.testing.assert_allclose(labels.doubt(OMEGAS, NONE), -np.abs(p - 0.5).mean(axis=1))
    np.testing.assert_allclose(labels.uncertainty(OMEGAS, NONE), 1.0 - np.abs(2.0 * p - 1.0).mean(axis=1))
    score = OMEGAS.mean(axis=0)
    best = np.sort(score, axis=1)
    for hinge, doubt in (
        (Hinge(1.0, 1.0, classes=THREE), best[:, 1] - best[:, 2]),
        (Hinge(1.0, 1.0, classes=THREE, multilabel=True), -np.abs(score).mean(axis=1)),
    ):
        np.testing.assert_allclose(hinge.doubt(OMEGAS, NONE), doubt)
        np.testing.assert_allclose(hinge.uncertainty(OMEGAS, NONE), np.exp(doubt))
    scales = np.random.default_rng(0).gamma(2.0, 0.5, (5, 3))
    ratings = Gaussian(1.0, np.ones(3), names=THREE, multioutput=True, unit=np.array([1.0, 2.0, 5.0]))
    wanted = 0.5 * np.log1p(OMEGAS.var(axis=0) / scales.mean(axis=0)).sum(axis=1)
    np.testing.assert_allclose(ratings.uncertainty(OMEGAS, scales), wanted)
    lower, upper = ratings.interval(OMEGAS, scales, 0.9)
    np.testing.assert_allclose(ratings.doubt(OMEGAS, scales), (upper - lower).mean(axis=1))


def test_errors_of_the_hinge_count_known_labels():
    truth = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, 1.0], [0.0, 0.0, 1.0], [np.nan] * 3, [1.0] * 3, [0.0] * 3])
    hinge = Hinge(1.0, 1.0, classes=THREE, multilabel=True)
    wrong = ((OMEGAS.mean(axis=0) > 0) != truth) & ~np.isnan(truth)
    wanted = [own.sum() / n if n else np.nan for own, n in zip(wrong, (~np.isnan(truth)).sum(axis=1), strict=True)]
    np.testing.assert_allclose(hinge.loss(truth, OMEGAS, NONE), wanted)


def test_intervals_of_grades_are_those_of_draws_with_their_own_thresholds():
    grades = replace(GRADES, classes=np.array([1, 2, 5, 9]))
    scales = np.sort(THRESHOLDS + np.random.default_rng(2).normal(size=(5, 3)), axis=1)
    drawn = []
    for omega, thresholds in zip(OMEGAS[:, :, 0], scales, strict=True):
        above = expit(omega[:, None] - thresholds)
        p = np.hstack([np.ones((6, 1)), above]) - np.hstack([above, np.zeros((6, 1))])
        drawn.append(p @ [1.0, 2.0, 5.0, 9.0])
    wanted = np.quantile(drawn, [0.25, 0.75], axis=0, method="weibull")
    found = grades.predictions(OMEGAS[:, :, :1], scales)
    np.testing.assert_allclose(grades.grade_interval(OMEGAS[:, :, :1], scales, 0.5), wanted)
    np.testing.assert_allclose(found["grade"], np.mean(drawn, axis=0))


def test_surprising_counts_are_so_by_the_side_on_which_they_are():
    counts, omegas, scales = (
        NegativeBinomial(1.0, np.full(1, 0.5)),
        np.full((5, 2, 1), np.log(2.5)),
        np.full((5, 1), 0.5),
    )
    lower, upper = counts.interval(omegas, scales, 0.683)  # 0 to 5 or so
    found = counts.surprise(np.array([[0.0], [60.0]]), omegas, scales)
    np.testing.assert_allclose(found, [2.5 / (2.5 - lower[0, 0]), 57.5 / (upper[1, 0] - 2.5)])
    rare = counts.surprise(np.array([[0.0], [60.0]]), omegas - 2.0, scales)
    mean = np.exp(omegas[0, :, 0] - 2.0)
    lower, upper = counts.interval(omegas - 2.0, scales, 0.683)
    usual = np.maximum([mean[0] - lower[0, 0], upper[1, 0] - mean[1]], 0.5)
    np.testing.assert_allclose(rare, [mean[0] / usual[0], (60.0 - mean[1]) / usual[1]])
    assert usual[1] > 1.2 * usual[0]


@pytest.mark.parametrize("name", ["grades", "times"])
def test_the_best_thresholds_of_these_documents_know_no_others(name):
    """Those of earlier batches are in the draws, not in the regressions on words."""
    response, rng = PRIORS_OF[name][0], np.random.default_rng(0)
    y = rng.integers(0, 4, (30, 1)) + (0.5 if name == "times" else 0.0) * (rng.random((30, 1)) < 0.5)
    y, weight, omega = np.minimum(y, 3.0), np.ones((30, 1)), rng.normal(size=(30, 1))
    alone, value = response.fitted(y, weight, omega)
    for carried in (EARLIER, EARLIER * [[1.0], [100.0]]):
        found, same = replace(response, carried=carried).fitted(y, weight, omega)
        np.testing.assert_array_equal(found.thresholds, alone.thresholds)
        assert same == value


def test_a_known_variance_is_in_the_units_of_y():
    """Of each column, and of weighted ratings."""
    y, weight = np.column_stack([NUMBERS, 10.0 * NUMBERS]), 2.0 ** (np.arange(12) % 3)
    found = Gaussian(1.0, np.ones(1), known_variance=4.0).encode(y, weight).response
    variance = np.average((NUMBERS - np.average(NUMBERS, weights=weight)) ** 2, weights=weight)
    np.testing.assert_allclose(found.sigma2, 4.0 / variance * np.array([1.0, 0.01]))


@pytest.mark.parametrize("kind", ["weighted", "weighted grades"])
def test_weights_of_classes_go_by_their_names(kind):
    """Whatever the order of the classes is, and beside weights of documents."""
    response, y = PLAIN[kind]
    weight = 2.0 ** (np.arange(12) % 3)
    found = response.encode(y, weight).target.weight
    wanted = weight * [response.class_weight.get(name, 1.0) for name in y]
    np.testing.assert_allclose(found, np.repeat(wanted[:, None], found.shape[1], axis=1))
