"""Numbers at the ends of their ranges, responses that are unknown, and effects that are forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaincinv

from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDAOrdinalClassifier, SLDARegressor
from supertopic.inference.held_out import describe_held_out
from supertopic.inference.shrinkage import FACTORS, Shrinkage
from supertopic.kernels.draws import make_key, polya_gammas
from supertopic.model.responses import Logistic, NegativeBinomial

SHORT = {"n_topics": 4, "burn_in": 10, "n_draws": 8, "n_chains": 2, "random_state": 0, "predict_sweeps": 8}


def corpus(seed: int, n_docs: int = 200):
    """Two kinds of documents with words of their own, 0 and 1."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n_docs)
    rate = np.where(np.arange(20)[None] // 10 == kind[:, None], 1.0, 0.1)
    return sp.csr_array(rng.poisson(rate)), kind


@pytest.mark.parametrize("r", [0.5, 1.0, 1.5, 30.0, 1e6])
@pytest.mark.parametrize("log_mean", [38.0, 200.0, 360.0, 600.0])
def test_intervals_of_huge_counts_are_those_of_a_gamma_distribution(r, log_mean):
    response, omega = NegativeBinomial(1.0, np.array([r])), np.full((1, 1, 1), log_mean)
    for q in (0.05, 0.95):
        found = response.quantile(q, omega, np.array([[r]]))[0, 0]
        assert found == pytest.approx(np.exp(log_mean) * gammaincinv(r, q) / r, rel=1e-3)


def test_the_two_forms_of_a_count_distribution_agree_where_they_meet():
    response, y = NegativeBinomial(1.0, np.array([2.5])), np.array([[1e16]])
    below, above = (response.cdf(y, np.full((1, 1), 53 * np.log(2.0) + step)) for step in (-1e-9, 1e-9))
    assert below == pytest.approx(above, rel=1e-6)


def series(h: float, n: int, rng: np.random.Generator, terms: int = 120) -> np.ndarray:
    """PG(h, 0) from its definition as a sum of gammas; the rest of the sum as its mean."""
    k = np.arange(terms)
    draws = rng.standard_gamma(h, (n, terms)) @ (1.0 / (2.0 * np.pi**2 * (k + 0.5) ** 2))
    return draws + h * (0.25 - np.sum(1.0 / (2.0 * np.pi**2 * (k + 0.5) ** 2)))


@pytest.mark.parametrize("h", [0.01, 0.03, 0.1, 0.25])
def test_polya_gamma_draws_of_small_shapes(h):
    n = 40_000
    ours = polya_gammas(1.0, np.full((n, 1), h), np.zeros((n, 1)), make_key(1, 2), 0).ravel()
    theirs = series(h, n, np.random.default_rng(0))
    points = np.quantile(theirs, np.linspace(0.02, 0.98, 49))
    ours_below, theirs_below = ((draws[:, None] <= points).mean(axis=0) for draws in (ours, theirs))
    assert np.abs(ours_below - theirs_below).max() < 2.0 / np.sqrt(n)  # Kolmogorov-Smirnov, p below 0.001
    assert ours.mean() == pytest.approx(h / 4.0, abs=4.0 * np.sqrt(h / 24.0 / n))


@pytest.mark.parametrize(
    "kind", [SLDAClassifier, MedLDAClassifier, SLDAOrdinalClassifier, SLDARegressor, SLDACountRegressor]
)
def test_unknown_responses_are_left_out_of_a_diagnosis(kind):
    X, y = corpus(0)
    model = kind(**SHORT).fit(X, y)
    some = np.arange(200) % 2 == 0
    partly = np.where(some, y.astype(float), np.nan)
    whole, known = model.diagnose(X, partly), model.diagnose(X[some], y[some])
    assert whole["score"] == known["score"] and whole["test loss"] == known["test loss"]
    (losses, score, *_), (own, own_score, *_) = model.evaluate(X, partly), model.evaluate(X[some], y[some])
    assert score == own_score and np.array_equal(losses[some], own) and np.isnan(losses[~some]).all()
    with pytest.raises(ValueError, match="No response in y is known"):
        model.evaluate(X, np.full(200, np.nan))


def test_nothing_is_left_of_a_word_whose_effect_is_forgotten():
    """The word stays in the vocabulary and in the documents, and says nothing any more."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.6, (400, 12))
    y = (X[:, 0] > 0).astype(int)
    X2, y2 = rng.poisson(0.6, (400, 12)), rng.integers(0, 2, 400)
    updated = SLDAClassifier(**SHORT).partial_fit(X, y)
    before = updated.word_coef_[0, 0]
    updated.partial_fit(X2, y2, discount=0.0)
    fresh = SLDAClassifier(**SHORT).fit(X2, y2)
    assert before > 5.0
    assert abs(updated.word_coef_[0, 0] - fresh.word_coef_[0, 0]) < 0.1 * before


def test_a_rate_that_rises_from_batch_to_batch_is_not_taken_for_an_effect_of_words():
    rng = np.random.default_rng(1)
    model, seen = SLDAClassifier(**SHORT | {"n_topics": 5}), []
    for rate in (0.1, 0.25, 0.4, 0.65):
        X, y = sp.csr_array(rng.poisson(0.5, (300, 30))), (rng.random(300) < rate).astype(int)
        model.partial_fit(X, y, classes=[0, 1])
        seen.append(y)
    new = sp.csr_array(rng.poisson(0.5, (500, 30)))
    assert model.predict_proba(new)[:, 1].mean() == pytest.approx(np.concatenate(seen).mean(), abs=0.04)


@pytest.mark.parametrize("kind", [SLDARegressor, SLDACountRegressor])
def test_one_draw_does_not_make_the_parameter_of_a_response_certain(kind):
    X, y = corpus(2)
    y = np.random.default_rng(0).poisson(np.where(y, 9.0, 3.0))
    model = kind(**SHORT | {"n_draws": 1, "n_chains": 1}).partial_fit(X, y)
    assert model.posterior_.carryover.scale.shape[0] == 1
    model.set_params(n_draws=1).partial_fit(X[:100], y[:100])
    first = model.posterior_.scale.item()
    model.partial_fit(X[100:], 4 * y[100:])  # another spread: the prior must give way
    assert model.posterior_.scale.item() != pytest.approx(first, rel=1e-3)


@pytest.mark.parametrize("kind", [SLDAClassifier, SLDARegressor])
def test_columns_of_y_in_another_order_are_refused(kind):
    pandas = pytest.importorskip("pandas")
    X, y = corpus(3)
    frame = pandas.DataFrame({"a": y, "b": 1 - y})
    model = kind(**SHORT).partial_fit(X, frame)
    with pytest.raises(ValueError, match=r"\['b', 'a'\], but the model was fitted with \['a', 'b'\]"):
        model.partial_fit(X, frame[["b", "a"]])
    assert model.partial_fit(X, frame).n_batches_ == 2


def test_a_warning_of_some_labels_gives_the_losses_of_these():
    """Two labels that topics predict, and one that they do not: the message is about the latter alone."""
    mass = np.zeros((len(FACTORS), 3))
    mass[10, :2], mass[0, 2] = 1.0, 1.0
    loss, base, weight = (np.tile(row, (8, 1)) for row in ([0.1, 0.2, 0.71], [0.6, 0.6, 0.69], [1.0, 1.0, 2.0]))
    alone = Shrinkage({"topics": (FACTORS, mass)}, loss, base, weight, {}, {}, {})
    response = Logistic(1.0, classes=np.array(["a", "b", "coin"], object), multilabel=True)
    with pytest.warns(UserWarning, match=r"columns coin: on 8 held-out .* \(loss 0.71, that of the base rate 0.69\)"):
        found = describe_held_out(alone, alone, 8, response)
    assert found["p_no_effect"] == [0.0, 0.0, 1.0] and found["shrinkage"] == [1.0, 1.0, 0.0]
    assert found["loss"] == pytest.approx((0.1 + 0.2 + 2 * 0.71) / 4)
