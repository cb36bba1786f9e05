"""Sets of classes, intervals and decisions: what is promised holds, whatever the model."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from supertopic import (
    LDA,
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDACrowdRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    load,
    save,
)
from supertopic.corpus.source import make_target
from supertopic.inference import linear, weights
from supertopic.inference.factors import DrawnFactors
from supertopic.inference.guarantees import above, conformal_level, error_threshold, predict_sets
from supertopic.inference.shrinkage import TOPICS, HeldOutDraws, Shrinkage, estimate_shrinkage
from supertopic.model.held_out import (
    MOST,
    HeldOutPredictions,
    answer_threshold,
    compare,
    conformal_threshold,
    error_rates,
    least_documents,
)
from supertopic.model.responses import Gaussian, Hinge, Logistic, NegativeBinomial, Ordinal
from supertopic.storage.model_file import read_posterior, write_posterior

pytestmark = pytest.mark.usefixtures("short_fits")

QUICK = {"n_topics": 4, "n_chains": 2, "burn_in": 10, "n_draws": 5, "words": False}


def classes_corpus(n_docs, seed, n_classes=3, clear=0.4):
    """Documents whose class shows in some of their words."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_docs)
    X = rng.poisson(0.3, (n_docs, 12 * n_classes))
    for c in range(n_classes):
        X[y == c, 8 * c : 8 * c + 8] += rng.poisson(clear, ((y == c).sum(), 8))
    X[:, -1] += 1
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = classes_corpus(500, 0, clear=0.8)
    return SLDAClassifier(**QUICK, random_state=0).fit(X, y)


# quantiles


@pytest.mark.parametrize(("n", "level"), [(1, 0.5), (9, 0.9), (19, 0.9), (30, 0.8), (250, 0.95)])
def test_the_threshold_is_an_order_statistic_of_one_document_more(n, level):
    scores = np.random.default_rng(n).normal(size=n)
    k = int(np.ceil((n + 1) * level - 1e-9))
    assert conformal_threshold(scores, np.ones(n), level) == np.sort(scores)[k - 1]


def test_new_scores_are_below_the_threshold_as_often_as_promised():
    rng = np.random.default_rng(0)
    kept = [rng.normal() <= conformal_threshold(rng.normal(size=39), np.ones(39), 0.9) for _ in range(20_000)]
    assert abs(np.mean(kept) - 0.9) < 5 * 0.3 / np.sqrt(20_000)  # k / (n + 1) = 36 / 40


def test_too_few_documents_give_no_threshold():
    for level in (0.5, 0.8, 0.9, 0.99):
        n = least_documents(level)
        assert np.isfinite(conformal_threshold(np.arange(n), np.ones(n), level))
        assert np.isinf(conformal_threshold(np.arange(n - 1), np.ones(n - 1), level))


def test_documents_of_less_weight_count_for_less():
    scores, weight = np.r_[np.zeros(50), np.ones(50)], np.r_[np.full(50, 1e-3), np.ones(50)]
    assert conformal_threshold(scores, np.ones(100), 0.3) == 0
    assert conformal_threshold(scores, weight, 0.3) == 1


# decisions


def threshold_of(sure, right, max_error, certainty):
    return answer_threshold(sure[:, None], right[:, None], np.ones(len(sure)), max_error, certainty)


def test_the_error_rate_of_decisions_is_kept_with_the_promised_certainty():
    rng, broken, n_decided = np.random.default_rng(0), 0, 0
    for _ in range(400):
        sure = rng.random(300)
        threshold, share = threshold_of(sure, rng.random(300) < 0.5 + 0.5 * sure, 0.1, 0.9)
        n_decided += share > 0
        true_error = 0.5 - 0.25 * (threshold + 1.0) if threshold < 1 else 0.0  # the mean above the threshold
        broken += true_error > 0.1
    assert broken <= 0.1 * 400 + 5 * np.sqrt(400 * 0.09)
    assert n_decided > 20  # it is not kept by never deciding


def test_a_perfect_model_decides_everything_and_a_coin_nothing():
    sure = np.random.default_rng(0).random(200)
    assert threshold_of(sure, np.ones(200, bool), 0.05, 0.9) == (-np.inf, 1.0)
    assert threshold_of(sure, np.arange(200) % 2 == 0, 0.05, 0.9) == (np.inf, 0.0)
    assert threshold_of(np.zeros(0), np.zeros(0, bool), 0.05, 0.9) == (np.inf, 0.0)


def test_the_risk_is_divided_among_the_starts():
    """36 answers that are as sure, all right: 0.9**36 is below a quarter of the risk, 0.9**35 is not."""
    for n, expected in ((35, (np.inf, 0.0)), (36, (-np.inf, 1.0))):
        assert threshold_of(np.ones(n), np.ones(n, bool), 0.1, 0.9) == expected


def test_equal_confidences_are_decided_together():
    sure, right = np.repeat([0.9, 0.6], 100), np.repeat([True, False], 100)
    assert threshold_of(sure, right, 0.1, 0.9) == (0.6, 0.5)


def test_the_error_rate_of_labels_that_go_together_is_kept():
    rng, broken = np.random.default_rng(1), 0
    for _ in range(400):  # all 20 labels of a document are right or wrong together
        right = np.repeat(rng.random((100, 1)) < 0.88, 20, axis=1)
        broken += answer_threshold(rng.random((100, 20)), right, np.ones(100), 0.1, 0.9)[1] > 0.9
    assert broken <= 0.1 * 400 + 5 * np.sqrt(400 * 0.09)


def test_sizes_of_answers_are_those_of_sums_over_documents():
    rng, n, m = np.random.default_rng(2), 60, 4
    wrong, weight = rng.random((n, m)) < 0.3, rng.random(n)
    doc = np.repeat(np.arange(n), m)
    order = rng.permutation(n * m)
    p, size = error_rates(wrong.ravel()[order], doc[order], weight[doc[order]])
    rate = np.average(wrong, weights=np.repeat(weight[:, None], m, axis=1))
    variance = np.sum((weight * (wrong - rate).sum(axis=1)) ** 2) / (m * weight.sum()) ** 2
    assert p[-1] == pytest.approx(rate) and size[-1] == pytest.approx(rate * (1 - rate) / variance)
    p, size = error_rates(wrong[:, 0], np.arange(n), np.ones(n))
    np.testing.assert_allclose(size, np.arange(1, n + 1))  # one answer each: a binomial sample


# scores of sets


def test_scores_of_classes_are_the_probability_of_likelier_ones():
    p = np.random.default_rng(0).dirichlet(np.ones(6), 40)
    found = Logistic(1.0, classes=np.arange(6)).set_scores(p)
    naive = [[sum(q for q in row if q > own) for own in row] for row in p]
    np.testing.assert_allclose(found, naive, atol=1e-12)
    assert (found.min(axis=1) == 0).all()


def test_sets_of_ordered_classes_have_no_gaps():
    p = np.random.default_rng(1).dirichlet(np.full(7, 0.5), 200)
    found = Ordinal(1.0, thresholds=np.arange(6.0), classes=np.arange(7)).set_scores(p)
    assert (found.min(axis=1) == 0).all() and (found.argmin(axis=1) == p.argmax(axis=1)).all()
    for row, scores in zip(p, found, strict=True):
        low = high = int(row.argmax())
        mass = row[low]
        while high - low < 6:  # the same, one class after the other
            up = high < 6 and (low == 0 or row[high + 1] > row[low - 1])
            low, high = (low, high + 1) if up else (low - 1, high)
            joins = high if up else low
            assert scores[joins] == pytest.approx(mass)
            mass += row[joins]


def test_scores_of_labels_and_of_the_hinge():
    p = np.array([[0.9, 0.2], [0.4, 0.6]])
    np.testing.assert_allclose(Logistic(1.0, classes=np.arange(2), multilabel=True).set_scores(p), 1 - p)
    two = Hinge(1.0, 1.0, classes=np.arange(2))
    np.testing.assert_allclose(two.set_scores(np.array([[2.0], [-0.5]])), [[4.0, 0.0], [0.0, 1.0]])
    three = Hinge(1.0, 1.0, classes=np.arange(3))
    np.testing.assert_allclose(three.set_scores(np.array([[2.0, -1.0, 0.5]])), [[0.0, 3.0, 1.5]])
    np.testing.assert_allclose(three.confidence(np.array([[2.0, -1.0, 0.5]])), [[1.5]])


@pytest.mark.parametrize("response", [
    Gaussian(1.0, np.array([0.5]), names=np.array(["y"]), centre=np.zeros(1), unit=np.ones(1)),
    NegativeBinomial(1.0, np.array([2.0]), names=np.array(["y"])),
], ids=["ratings", "counts"])  # fmt: skip
def test_the_level_of_a_number_is_that_of_the_smallest_interval_with_it(response):
    rng = np.random.default_rng(0)
    omegas, scales = rng.normal(1.0, 0.4, (12, 30, 1)), rng.gamma(20.0, 0.05, (12, 1))
    y = np.floor(rng.gamma(1.0, 4.0, (30, 1))) if isinstance(response, NegativeBinomial) else rng.normal(1, 1, (30, 1))
    level = response.interval_level(y, omegas, scales)
    assert ((level >= 0) & (level < 1)).all()
    wider, narrower = np.minimum(level + 1e-6, 1 - 1e-12), level - 1e-6
    for d in range(30):
        part = slice(d, d + 1)
        lower, upper = response.interval(omegas[:, part], scales, wider[d, 0])
        assert lower[0, 0] <= y[d, 0] <= upper[0, 0]
        if narrower[d, 0] > 0:
            lower, upper = response.interval(omegas[:, part], scales, narrower[d, 0])
            assert not lower[0, 0] <= y[d, 0] <= upper[0, 0]


# held-out predictions of a fit


def test_factors_without_some_documents_are_those_of_the_others():
    rng, n = np.random.default_rng(0), 60
    response = Logistic(1.0, classes=np.arange(2))
    y = (rng.random((n, 1)) < 0.5) * 1.0
    target = make_target(y, np.ones((n, 1)))
    draws = [HeldOutDraws(rng.normal(2 * y - 1, 1.0, (8, n, 1)), np.zeros((0, n, 1))) for _ in range(2)]
    gone = np.arange(n) % 3 == 0
    found = estimate_shrinkage(response, target, draws, np.zeros((16, 0))).without(gone)
    kept = [HeldOutDraws(part.topics[:, ~gone], part.covariates[:, ~gone]) for part in draws]
    others = estimate_shrinkage(response, make_target(y[~gone], np.ones(((~gone).sum(), 1))), kept, np.zeros((16, 0)))
    np.testing.assert_allclose(found.posteriors[TOPICS][1], others.posteriors[TOPICS][1], atol=1e-12)


def test_held_out_predictions_are_as_good_as_new_ones():
    differences = []
    for seed in range(6):
        X, y = classes_corpus(900, seed)
        model = SLDAClassifier(**QUICK | {"words": seed % 2 == 1}, random_state=seed).fit(X[:500], y[:500])
        known = model.posterior_.held_out_predictions
        assert len(known.weight) == model.held_out_["documents"]
        np.testing.assert_allclose(known.expected.sum(axis=1), 1.0, atol=1e-5)
        np.testing.assert_allclose(known.loss, -np.log((known.expected * known.truth).sum(axis=1)), atol=1e-4)
        differences.append(known.loss.mean() - model.evaluate(X[500:], y[500:]).losses.mean())
    assert abs(np.mean(differences)) < 5 * np.std(differences) / np.sqrt(5) + 0.02


def test_responses_of_held_out_documents_are_not_known_to_their_predictions():
    gains = []
    for seed in range(4):
        X, _ = classes_corpus(300, seed)
        y = np.random.default_rng(seed + 100).integers(0, 2, 300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SLDAClassifier(**QUICK | {"words": True}, c=50.0, random_state=seed).fit(X, y)
        gains.append(np.log(2) - model.posterior_.held_out_predictions.loss.mean())
    assert np.mean(gains) < 0.03


# coverage


def labels_of(y):
    return np.column_stack([y == 0, y > 0, y == 2]).astype(int)


@pytest.mark.parametrize(("make", "of"), [
    (SLDAClassifier, lambda y: y), (SLDAClassifier, lambda y: np.array(["a", "b", "c"])[np.minimum(y, 1)]),
    (lambda **k: SLDAClassifier(multiclass="stick_breaking", **k), lambda y: y),
    (lambda **k: SLDAClassifier(multiclass="separate", **k), lambda y: y),
    (MedLDAClassifier, lambda y: y), (MedLDAClassifier, lambda y: y > 0), (SLDAOrdinalClassifier, lambda y: y),
    (SLDAClassifier, labels_of), (MedLDAClassifier, labels_of),
], ids=["shared", "two", "sticks", "separate", "hinge", "hinge two", "ordered", "labels", "hinge labels"])  # fmt: skip
def test_sets_contain_the_truth_as_often_as_promised(make, of):
    kept, of_class, sizes = [], [], []
    for seed in range(4):
        X, y = classes_corpus(1000, 10 + seed, clear=0.25)
        y = of(y)
        model = make(**QUICK, random_state=seed).fit(X[:400], y[:400])
        found, by_class = (model.predict_set(X[400:], 0.8, by_class=each) for each in (False, True))
        true = y[400:, None] == model.classes_ if y.ndim == 1 else y[400:] == 1
        kept.append((found >= true).all(axis=1).mean())
        of_class.append([by_class[own, j].mean() for j, own in enumerate(true.T)])
        sizes.append(found.sum(axis=1))
        if y.ndim == 1:
            assert found.any(axis=1).all() and by_class.any(axis=1).all()
    assert 0.74 < np.mean(kept) < (0.9 if np.mean(sizes) > 1.05 else 1.0)  # one class may be enough for more
    assert (np.mean(of_class, axis=0) > 0.7).all()


@pytest.mark.parametrize("kind", ["ratings", "two ratings", "counts"])
def test_conformal_intervals_hold_where_the_model_is_wrong(kind):
    plain, kept = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, _ = classes_corpus(1000, 20 + seed)
        y = X[:, :8].sum(axis=1) * rng.choice([0.0, 1.0, 4.0], 1000)  # spread as no model says
        if kind == "two ratings":
            y = np.column_stack([y, -y])
        make = SLDACountRegressor if kind == "counts" else SLDARegressor
        model = make(**QUICK, random_state=seed).fit(X[:500], y[:500])
        for conformal, found in ((False, plain), (True, kept)):
            lower, upper = model.predict_interval(X[500:], 0.8, conformal=conformal)
            found.append(((y[500:] >= lower) & (y[500:] <= upper)).mean())
    assert abs(np.mean(kept) - 0.8) < 0.05 < abs(np.mean(plain) - 0.8)


def test_conformalize_takes_other_documents(fitted):
    X, y = classes_corpus(1200, 3, clear=0.0)  # nothing can be predicted here
    before = fitted.posterior_
    try:
        broken = fitted.predict_set(X[:600], 0.9)[np.arange(600), y[:600]].mean()
        assert fitted.conformalize(X[600:], np.where(np.arange(600) < 20, np.nan, y[600:])) is fitted
        assert len(fitted.posterior_.held_out_predictions.weight) == 580
        kept = fitted.predict_set(X[:600], 0.9)[np.arange(600), y[:600]].mean()
        assert broken < 0.8 and abs(kept - 0.9) < 0.06
    finally:
        fitted.posterior_ = before


# the methods


def test_decide_keeps_the_error_rate_and_says_what_is_left(fitted):
    X, y = classes_corpus(3000, 4, clear=0.8)
    found = fitted.decide(X, max_error=0.1)
    decided = np.array([choice is not None for choice in found.decision])
    assert 0.3 < decided.mean() == pytest.approx(1 - found.asked)
    assert (found.decision[decided].astype(int) != y[decided]).mean() < 0.1
    np.testing.assert_array_equal(decided, found.confidence > found.threshold)
    assert found.expected_cost is None and "left to people" in repr(found)
    with pytest.warns(UserWarning, match="everything is left to people"):
        nothing = fitted.decide(X[:9], max_error=1e-5)
    assert nothing.asked == 1.0 and all(choice is None for choice in nothing.decision)


def test_costs_decide_for_the_cheapest(fitted):
    X, _ = classes_corpus(50, 5)
    costs = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [20.0, 1.0, 0.0]])
    expected = fitted.predict_proba(X) @ costs
    found = fitted.decide(X, costs=costs)
    np.testing.assert_array_equal(found.decision.astype(int), expected.argmin(axis=1))
    assert found.asked == 0 and found.expected_cost == pytest.approx(expected.min(axis=1).mean())
    asks = fitted.decide(X, costs=costs, ask_cost=0.2)
    np.testing.assert_array_equal([c is None for c in asks.decision], expected.min(axis=1) > 0.2)
    assert asks.expected_cost == pytest.approx(np.minimum(expected.min(axis=1), 0.2).mean())


def test_guarantees_use_weights_from_all_other_documents(monkeypatch):
    """As new documents get them, not weights from the documents of the chains alone."""
    X, y = classes_corpus(300, 8, 2)
    plain = SLDAClassifier(**QUICK | {"words": True}, random_state=0).fit(X, y)
    real = linear.learn_beside

    def certain(*given, **more):
        fit = real(*given, **more)
        return fit._replace(relearned=np.full_like(fit.relearned, 50.0))

    monkeypatch.setattr(linear, "learn_beside", certain)
    other = SLDAClassifier(**QUICK | {"words": True}, random_state=0).fit(X, y)
    assert other.posterior_.held_out_predictions.expected[:, 1].min() > 0.99
    assert plain.posterior_.held_out_predictions.expected[:, 1].min() < 0.5
    np.testing.assert_array_equal(plain.predict_proba(X), other.predict_proba(X))


def test_what_is_unknown_of_words_is_in_the_predictions_of_held_out_documents(monkeypatch):
    """If next to nothing is known of their sum, both classes are as probable."""
    X, y = classes_corpus(120, 8, 2)
    real = linear.learn_beside

    def vague(*given, **more):
        fit = real(*given, **more)
        return fit._replace(held_out_variance=np.full_like(fit.held_out_variance, 1e8))

    monkeypatch.setattr(linear, "learn_beside", vague)
    monkeypatch.setattr(linear, "estimate_spread", lambda *_: 1.0)
    monkeypatch.setattr(DrawnFactors, "draw", lambda shrinkage, usual, shape, n_columns, rng: DrawnFactors(
        *np.ones((4, *shape, n_columns))))  # fmt: skip
    model = SLDAClassifier(**QUICK | {"words": True}, held_out=0.3, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.posterior_.held_out_predictions.expected, 0.5, atol=0.02)


def test_predictions_of_held_out_documents_have_factors_of_the_others(monkeypatch, short_regressions):
    """Each document is left out once, and what is left says how large its factors are."""
    masks = []

    def without(shrinkage, docs):  # as if the others showed no effect
        masks.append(docs)
        grid, mass = shrinkage.posteriors[TOPICS]
        nothing = np.repeat((grid == 0)[:, None] * 1.0, mass.shape[1], axis=1)
        return shrinkage._replace(posteriors=shrinkage.posteriors | {TOPICS: (grid, nothing)})

    monkeypatch.setattr(Shrinkage, "without", without)
    X, y = classes_corpus(120, 8, 2)
    model = SLDAClassifier(**QUICK, held_out=0.3, random_state=0).fit(X, y)
    p = model.posterior_.held_out_predictions.expected
    np.testing.assert_allclose(p, np.broadcast_to(p[0], p.shape), atol=1e-6)
    assert np.ptp(model.predict_proba(X)[:, 0]) > 0.3
    np.testing.assert_array_equal(np.sum(masks, axis=0), np.ones(len(p)))


def test_labels_are_decided_one_by_one():
    X, y = classes_corpus(600, 6)
    model = SLDAClassifier(**QUICK, random_state=0).fit(X[:400], labels_of(y[:400]))
    found, p = model.decide(X[400:], max_error=0.25), model.predict_proba(X[400:])
    ask = ~(np.maximum(p, 1 - p) > found.threshold)
    np.testing.assert_array_equal(np.isnan(found.decision), ask)
    np.testing.assert_array_equal(found.decision[~ask], (p > 0.5)[~ask])
    with pytest.raises(ValueError, match="costs need probabilities of classes"):
        model.decide(X, costs=np.eye(3))


@pytest.mark.parametrize(("arguments", "message"), [
    ({}, "either max_error"), ({"max_error": 0.1, "costs": np.eye(3)}, "either max_error"),
    ({"max_error": 0}, "max_error must be a number between"), ({"max_error": "a"}, "max_error must be a number"),
    ({"max_error": 0.1, "certainty": 1}, "certainty must be"), ({"max_error": 0.1, "ask_cost": 1}, "needs costs"),
    ({"costs": np.eye(2)}, "3 x 3"), ({"costs": np.full((3, 3), np.nan)}, "3 x 3"),
    ({"costs": np.eye(3), "ask_cost": "much"}, "ask_cost must be a number"),
])  # fmt: skip
def test_decide_refuses(fitted, arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted.decide(np.ones((1, 36), int), **arguments)


def test_too_few_or_no_held_out_documents_are_an_error(fitted):
    X, y = classes_corpus(60, 7)
    with pytest.raises(ValueError, match="needs 999 held-out documents, and there are 75"):
        fitted.predict_set(X, 0.999)
    with pytest.raises(ValueError, match="level must be between"):
        fitted.predict_set(X, 1.5)
    none = SLDAClassifier(**QUICK | {"calibrate": False, "words": False}, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="this model has none"):
        none.predict_set(X)
    assert none.conformalize(X, y).predict_set(X, 0.8).shape == (60, 3)
    rating = SLDARegressor(**QUICK, random_state=0, held_out=0.0).fit(X, y)
    with pytest.raises(ValueError, match="conformal=True needs held-out documents"):
        rating.predict_interval(X, conformal=True)


def test_several_raters_have_no_sets():
    X, y = classes_corpus(60, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SLDACrowdClassifier(**QUICK, random_state=0).fit(X, np.column_stack([y, y, (y + 1) % 3]))
    with pytest.raises(ValueError, match="Sets and decisions need classes or labels"):
        model.predict_set(X)
    assert not hasattr(LDA(), "predict_set") and not hasattr(SLDARegressor(), "decide")


def test_evaluate_has_the_curve_of_abstention(fitted):
    X, y = classes_corpus(300, 9)
    found, p = fitted.evaluate(X, y), fitted.predict_proba(X)
    curve = found.abstention
    assert curve["answered"][-1] == 1.0 and curve["error"][-1] == pytest.approx(1 - found.score)
    best = np.argsort(-p.max(axis=1), kind="stable")[: round(0.5 * 300)]
    half = np.flatnonzero(np.isclose(curve["answered"], 0.5))[0]
    assert curve["error"][half] == pytest.approx((p[best].argmax(axis=1) != y[best]).mean())
    assert SLDARegressor(**QUICK, random_state=0).fit(X, y).evaluate(X, y).abstention is None


# with other features


def test_columns_groups_and_weights_beside_the_texts():
    X, y = classes_corpus(700, 14, clear=0.3)
    rng = np.random.default_rng(0)
    groups = np.array([f"g{i}" for i in rng.integers(0, 40, 700)])
    beside = {"covariates": (y + rng.normal(0, 0.7, 700))[:, None], "features": rng.normal(size=(700, 2))}
    beside["groups"] = groups
    model = SLDAClassifier(**QUICK, class_weight="balanced", held_out_by="group", random_state=0)
    own, others = ({name: values[part] for name, values in beside.items()} for part in (slice(400), slice(400, None)))
    model.fit(X[:400], y[:400], sample_weight=rng.random(400) + 0.5, **own)
    found = model.predict_set(X[400:], 0.8, **others)
    assert 0.68 < found[np.arange(300), y[400:]].mean() < 0.97
    decided = model.decide(X[400:], max_error=0.4, **others)
    assert 0 <= decided.asked < 1
    with pytest.raises(ValueError, match="covariates"):
        model.decide(X[400:], max_error=0.4)
    model.conformalize(X[400:], y[400:], **others)
    assert len(model.posterior_.held_out_predictions.weight) == 300


def test_rare_and_missing_classes():
    X, y = classes_corpus(500, 15, clear=0.5)
    y[y == 2] = np.where(np.arange((y == 2).sum()) < 3, 2, 1)  # too few to be held out
    model = SLDAClassifier(**QUICK, random_state=0).fit(X[:400], np.where(np.arange(400) % 5, y[:400], np.nan))
    found = model.predict_set(X[400:], 0.8, by_class=True)
    assert found[:, 2].all() and not found[:, :2].all()
    one = y[400:] == 0
    model.conformalize(X[400:][one], y[400:][one])  # all of one class
    assert model.predict_set(X[400:][one], 0.8)[:, 0].mean() >= 0.8
    with pytest.raises(ValueError, match="No response in y is known"):
        model.conformalize(X[:5], np.full(5, np.nan))


def test_most_documents_may_have_no_labels():
    X, _ = classes_corpus(500, 16)
    labels = np.zeros((500, 2), int)
    labels[:40, 0], labels[20:60, 1] = 1, 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SLDAClassifier(**QUICK, random_state=0).fit(X, labels)
    assert not model.predict_set(X[100:], 0.8).any()  # the empty set contains all labels of most documents


# batches and files


def test_batches_join_their_held_out_documents():
    X, y = classes_corpus(600, 11)
    model = SLDAClassifier(**QUICK, random_state=0).fit(X[:300], y[:300])
    first = model.posterior_.held_out_predictions
    model.partial_fit(X[300:], y[300:], discount=0.5)
    both = model.posterior_.held_out_predictions
    n = len(first.weight)
    np.testing.assert_array_equal(both.expected[:n], first.expected)
    assert (both.weight[:n] == 0.5).all() and (both.weight[n:] == 1.0).all() and len(both.weight) > n
    model.partial_fit(X[:20], None)  # without responses nothing is held out
    assert len(model.posterior_.held_out_predictions.weight) == len(both.weight)


def test_old_documents_go():
    def some(n, weight=1.0):
        return HeldOutPredictions(
            np.ones((n, 2)), np.ones((n, 2)), np.zeros((n, 0)), np.zeros(n), np.full(n, weight), np.zeros(n)
        )

    assert len(some(5).joined(some(4, 0.5), 1e-3).weight) == 5
    full = some(5).joined(some(MOST, 0.5), 1.0)  # the latest stay
    assert len(full.weight) == MOST and full.weight[-6:].tolist() == [0.5] + [1.0] * 5
    assert some(5).joined(None, 1.0).weight.tolist() == [1.0] * 5


def test_files_keep_what_guarantees_rest_on(fitted, tmp_path):
    X, _ = classes_corpus(40, 12)
    save(fitted, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_set(X), fitted.predict_set(X))
    rating = SLDARegressor(**QUICK, random_state=0).fit(*classes_corpus(300, 13))
    save(rating, tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").predict_interval(X, conformal=True), rating.predict_interval(X, conformal=True)
    )


@pytest.mark.parametrize(("name", "change"), [
    ("expected", lambda a: a[:, :2]), ("truth", lambda a: a + 0.5), ("weight", lambda a: -a),
    ("weight", lambda a: a[:-1]), ("loss", lambda a: a * np.nan), ("level", lambda a: np.zeros((len(a), 3))),
    ("truth", lambda a: a.astype(int)),
])  # fmt: skip
def test_a_file_with_impossible_held_out_predictions_is_refused(fitted, name, change):
    facts, tensors = write_posterior(fitted.posterior_)
    place = f"held_out_predictions.{name}"
    with pytest.raises(ValueError, match="cannot be right"):
        read_posterior(facts, tensors | {place: change(tensors[place])}, fitted.make_response())
    older = {key: array for key, array in tensors.items() if not key.startswith("held_out_predictions.")}
    assert read_posterior(facts, older, fitted.make_response()).held_out_predictions is None


def test_a_posterior_without_them_says_so(fitted):
    model = SLDAClassifier(**QUICK)
    model.posterior_, model.n_features_in_ = replace(fitted.posterior_, held_out_predictions=None), 36
    with pytest.raises(ValueError, match=r"conformalize\(\)"):
        model.decide(np.ones((2, 36), int), max_error=0.1)


# classes that are too small to be held out


def rare_corpus(n_docs, seed, share):
    """Three clear classes, and a share of the documents in classes of three, whose words are those of the others."""
    X, y = classes_corpus(n_docs, seed, clear=2.0)
    n_rare = int(share * n_docs) // 3 * 3
    names = np.array([f"class {c}" for c in y], dtype=object)
    names[:n_rare] = [f"rare {i // 3}" for i in range(n_rare)]
    order = np.random.default_rng(seed).permutation(n_docs)
    return X[order], names[order]


@pytest.mark.parametrize("seed", [0, 1])
def test_guarantees_count_classes_that_are_never_held_out(seed):
    X, y = rare_corpus(700, seed, 0.15)
    train, test = np.arange(500), np.arange(500, 700)
    known = np.isin(y[test], y[train])  # the others no model can say
    model = SLDAClassifier(**QUICK | {"held_out": 0.3}, random_state=seed).fit(X[train], y[train])
    assert not any("rare" in str(name) for name in model.classes_[
        model.posterior_.held_out_predictions.truth.argmax(axis=1)
    ])  # fmt: skip
    inside = model.predict_set(X[test], 0.7)
    place = {name: j for j, name in enumerate(model.classes_)}
    own = np.array([inside[i, place[name]] if name in place else False for i, name in enumerate(y[test])])
    assert own.mean() > 0.7 - 0.08  # two standard errors of 200 and of 150 documents
    with pytest.raises(ValueError, match="too small to be held out"):
        model.predict_set(X[test], 0.95)
    assert model.predict_set(X[test], 0.95, by_class=True).any(axis=1).all()
    decided = model.decide(X[test], max_error=0.4)
    wrong = np.array([choice != name for choice, name in zip(decided.decision, y[test], strict=True) if choice])
    assert known.any() and wrong.size and wrong.mean() < 0.4


def test_rare_documents_are_scores_beyond_all_others():
    scores, weight = np.arange(20.0), np.ones(20)
    assert conformal_threshold(scores, weight, 0.5) == 10 and conformal_threshold(scores, weight, 0.5, 9.0) == 14
    assert conformal_threshold(scores, weight, 0.8, 9.0) == np.inf


def test_weights_of_held_out_documents_count_in_sets_by_class_and_among_rare_ones(fitted):
    known = fitted.posterior_.held_out_predictions
    weight = np.random.default_rng(0).uniform(0.1, 1.0, len(known.weight))
    known = known._replace(weight=weight)
    posterior = replace(fitted.posterior_, held_out_predictions=known)
    scores = posterior.response.set_scores(known.expected)
    easy = (scores * known.truth).sum(axis=1) == 0  # these are most documents; now they weigh little
    other = known._replace(weight=np.where(easy, 0.1, 1.0))
    found = predict_sets(replace(posterior, held_out_predictions=other), known.expected, 0.6, True)
    for own, there, in_set in zip(scores.T, known.truth.T == 1, found.T, strict=True):
        limit = conformal_threshold(own[there], other.weight[there], 0.6)
        assert limit > 0
        np.testing.assert_array_equal(in_set, own <= limit + 1e-4)

    def threshold(rare):  # rare documents, all of them together
        each = np.full(len(known.weight), rare / known.weight.sum())
        return error_threshold(replace(posterior, held_out_predictions=known._replace(rare=each)), 0.15, 0.9)[0]

    assert threshold(0.0) == threshold(1e-6) < threshold(1.0)


def test_decisions_leave_ties_out_although_thresholds_are_rounded(fitted):
    sure = np.array([0.95] * 60 + [0.7] * 40)
    expected = np.stack([sure, 1.0 - sure, np.zeros(100)], axis=1)
    truth = np.tile([1.0, 0.0, 0.0], (100, 1))
    truth[60:] = [0.0, 1.0, 0.0]
    known = fitted.posterior_.held_out_predictions._replace(
        expected=expected.astype(np.float32), truth=truth, weight=np.ones(100), rare=np.zeros(100)
    )
    posterior = replace(fitted.posterior_, held_out_predictions=known)
    threshold, share = error_threshold(posterior, 0.1, 0.9)
    assert share == 0.6 and not above(np.array([0.7]), threshold) and above(np.array([0.95]), threshold)
    # for 100 documents there are 20 of classes that are never held out; their answers may be certain and wrong
    posterior = replace(posterior, held_out_predictions=known._replace(rare=np.full(100, 0.2)))
    assert error_threshold(posterior, 0.1, 0.9) == (np.inf, 0.0)
    assert error_threshold(posterior, 0.4, 0.9)[1] == pytest.approx(80 / 120)


def test_a_guarantee_that_cannot_be_given_is_refused_in_words():
    rng = np.random.default_rng(0)
    X, y = classes_corpus(200, 5)
    ratings = np.where(rng.random((200, 3)) < 0.3, np.nan, y[:, None] + rng.normal(0, 0.1, (200, 3)))
    model = SLDACrowdRegressor(**QUICK, random_state=0).fit(X, ratings)
    with pytest.raises(ValueError, match="numbers are known"):
        model.predict_interval(X[:3], conformal=True)


@pytest.mark.parametrize("kind", [SLDAClassifier, SLDARegressor])
def test_frames_with_other_columns_are_not_misread(kind):
    pandas = pytest.importorskip("pandas")
    X, y = classes_corpus(200, 6)
    frame = pandas.DataFrame({name: (y == c) * 1.0 for c, name in enumerate("abc")})
    if kind is SLDAClassifier:
        frame = frame.astype(int)
    model = kind(**QUICK, random_state=0).fit(X, frame)
    for wrong in (frame[["c", "b", "a"]], frame.rename(columns={"c": "d"})):
        for method in (model.score, model.evaluate, model.conformalize, model.drift):
            with pytest.raises(ValueError, match="fitted with"):
                method(X, wrong)


def test_a_model_with_numbers_that_no_file_may_have_is_not_saved(fitted, tmp_path):
    save(fitted, tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    broken = SLDAClassifier(**QUICK)
    broken.n_features_in_ = fitted.n_features_in_
    broken.posterior_ = replace(fitted.posterior_, reported=np.full_like(fitted.posterior_.reported, np.nan))
    with pytest.raises(ValueError, match="reported's numbers"):
        save(broken, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before


def test_each_number_has_a_level_of_its_own():
    rng = np.random.default_rng(0)
    levels = rng.random((60, 2)) ** [1.0, 3.0]
    known = HeldOutPredictions(np.zeros((60, 0)), np.zeros((60, 0)), levels, np.zeros(60), np.ones(60), np.zeros(60))
    posterior = SimpleNamespace(held_out_predictions=known, response=Gaussian(1.0, np.ones(2)))
    wanted = [conformal_threshold(own, np.ones(60), 0.8) for own in levels.T]
    np.testing.assert_array_equal(conformal_level(posterior, 0.8), wanted)


def test_held_out_documents_of_earlier_batches_count_for_less():
    rng = np.random.default_rng(0)
    parts = [HeldOutPredictions(*rng.random((2, n, 3)), np.zeros((n, 0)), *rng.random((3, n))) for n in (4, 3)]
    earlier, now = parts[0]._replace(weight=np.array([1.0, 0.5, 1e-3, 2.0])), parts[1]
    found = now.joined(earlier, 0.5)
    np.testing.assert_array_equal(found.weight, [0.5, 0.25, 1.0, *now.weight])  # the third is forgotten
    np.testing.assert_array_equal(found.truth, np.concatenate([earlier.truth[[0, 1, 3]], now.truth]))
    assert found.n_rare == pytest.approx(0.5 * earlier.n_rare - 0.5e-3 * earlier.rare[2] + now.n_rare)
    one = now._replace(weight=np.array([1.0, 2.0, 0.0]), rare=np.array([0.5, 0.25, 9.0]))
    assert one.n_rare == 1.0


# held-out documents are as new ones

RNG = np.random.default_rng(12)
SHARE = RNG.dirichlet(np.full(3, 0.5), 90)
COUNTS = np.array([RNG.multinomial(n, p @ np.repeat(np.eye(3), 4, axis=1) / 4) for n, p in zip(
    RNG.integers(1, 20, 90) * (RNG.random(90) > 0.1), SHARE, strict=True)])  # fmt: skip
EFFECT, KIND = 3.0 * SHARE[:, 0] + 0.3 * RNG.normal(size=90), (SHARE + 0.2 * RNG.random((90, 3))).argmax(axis=1)
NUMBER = np.column_stack([5.0 + 4.0 * EFFECT, -EFFECT])
OF_ALL = {
    "classes": (SLDAClassifier, {}, KIND, {}),
    "sticks": (SLDAClassifier, {"multiclass": "stick_breaking"}, KIND, {}),
    "separate": (SLDAClassifier, {"multiclass": "separate"}, KIND, {"covariates": NUMBER}),
    "labels": (SLDAClassifier, {}, SHARE > 0.3, {"groups": KIND}),
    "hinge": (MedLDAClassifier, {}, KIND, {"covariates": NUMBER}),
    "grades": (SLDAOrdinalClassifier, {}, np.digitize(EFFECT, [0.3, 1.0, 2.0]), {"groups": KIND}),
    "ratings": (SLDARegressor, {}, NUMBER, {"covariates": NUMBER, "groups": KIND}),
    "counts": (SLDACountRegressor, {}, RNG.poisson(np.exp(EFFECT)), {"exposure": 1.0 + KIND}),
    "times": (SLDASurvivalRegressor, {"periods": 4}, np.column_stack([EFFECT.clip(0.1), EFFECT > 0.4]), {}),
    "periods": (SLDASurvivalRegressor, {"periods": 3, "effects": "by_period"},
                np.column_stack([EFFECT.clip(0.1), EFFECT > 0.4]), {"covariates": NUMBER}),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ALL)
@pytest.mark.filterwarnings("ignore:Found no relation")
def test_held_out_documents_are_predicted_as_new_ones_are(name, monkeypatch, short_regressions):
    """But for factors that do not know them: levels, thresholds, exposures, pairs of draws, and empty documents."""
    kind, options, y, beside = OF_ALL[name]
    found, real = [], weights.predict_held_out
    monkeypatch.setattr(Shrinkage, "without", lambda self, docs: self)
    monkeypatch.setattr(weights, "predict_held_out", lambda *more: found.append((more[1], real(*more))) or found[0][1])
    run = {"n_topics": 3, "n_chains": 2, "burn_in": 3, "n_draws": 3, "predict_sweeps": 8, "words": False, "c": 1.0}
    model = kind(**run, held_out=0.4, random_state=3, **options).fit(COUNTS, y, **beside)
    ((evidence, held_out),) = found
    response, some = model.posterior_.response.plain(), evidence.asked
    new = model._new(COUNTS[some], **{key: value[some] for key, value in beside.items()})
    known = response.wholly_known(evidence.target)
    assert (evidence.lengths[known] == 0).any()
    truth = response.encoded_truth(evidence.target.y)
    wanted = new.summarise(lambda omegas, scales, docs: compare(response, truth[docs], omegas, scales))
    for part in ("expected", "truth", "level", "loss"):
        a, b = getattr(held_out, part), getattr(HeldOutPredictions(*wanted), part)[known]
        np.testing.assert_allclose(a, b, atol=1e-9, rtol=1e-7, err_msg=part)
