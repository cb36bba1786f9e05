"""Which documents to label next, and which labels are wrong."""

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from test_drift import QUICK, SUBJECTS, make_texts

from small import near_limits, stops_early
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
from supertopic.estimators.check_labels import Folds, describe, judge
from supertopic.inference.predict import NewDocuments, Settings
from supertopic.inference.teaching import choose_different, uncertainties
from supertopic.model.responses import Gaussian, Hinge, Logistic
from supertopic.model.terms import TopicWeights
from supertopic.report.label_errors import SHAPES, LabelCheck, find_wrong, narrowed

THREE = ("sport", "politics", "food")


@pytest.fixture(scope="module")
def fitted():
    return SLDAClassifier(**QUICK | {"words": True, "n_draws": 10}, random_state=0).fit(*make_texts(120, 0))


def documents_of(model, X):
    n = X.shape[0]
    X = sp.csr_array(X)
    return NewDocuments(model.posterior_, X, X, np.zeros((n, 0)), np.zeros((n, 0)), np.zeros((n, 1)), Settings(20))


# what is unsure


def test_uncertainty_is_the_distance_of_the_best_answers():
    omegas = np.random.default_rng(0).normal(0, 2, (40, 7, 3))
    p = (np.exp(omegas) / np.exp(omegas).sum(axis=2, keepdims=True)).mean(axis=0)
    best = np.sort(p, axis=1)
    found = Logistic(1.0, classes=np.arange(3)).uncertainty(omegas, np.zeros((40, 0)))
    np.testing.assert_allclose(found, 1 - best[:, 2] + best[:, 1], atol=1e-12)
    found = Logistic(1.0, classes=np.arange(3), multilabel=True).uncertainty(omegas, np.zeros((40, 0)))
    q = (1 / (1 + np.exp(-omegas))).mean(axis=0)
    np.testing.assert_allclose(found, (1 - np.abs(2 * q - 1)).mean(axis=1), atol=1e-12)


def test_uncertainty_of_scores_and_of_normal_numbers():
    omegas = np.array([[[1.0], [1.0]], [[-1.0], [2.0]]])
    found = Hinge(1.0, 1.0, classes=np.arange(2)).uncertainty(omegas, np.zeros((2, 0)))
    np.testing.assert_allclose(found, [1.0, np.exp(-1.5)])
    number = Gaussian(1.0, np.array([4.0]), names=np.array(["y"]), centre=np.zeros(1), unit=np.ones(1))
    found = number.uncertainty(omegas, np.full((2, 1), 4.0))
    np.testing.assert_allclose(found, 0.5 * np.log1p(np.array([1.0, 0.25]) / 4.0))


def test_unclear_topics_of_a_short_text_are_not_what_labels_resolve():
    X = np.random.default_rng(0).poisson(0.4, (200, 12)) + np.eye(12, dtype=int)[np.arange(200) % 12]
    model = SLDARegressor(**QUICK, random_state=0).fit(X, X[:, 0] + 0.0)
    weights = model.posterior_.term(TopicWeights)
    certain = replace(weights, eta=tuple(np.broadcast_to(9.0 * np.arange(e.shape[-1]), e.shape) for e in weights.eta))
    terms = tuple(certain if term is weights else term for term in model.posterior_.terms)
    model.posterior_ = replace(model.posterior_, terms=terms)
    documents = documents_of(model, np.eye(12, dtype=int))  # a word each
    assert documents.omega().std(axis=0).max() > 1.0  # its topic is unclear
    np.testing.assert_allclose(uncertainties(documents), 0.0, atol=1e-9)


# documents that differ


def naive_choice(unsure, rows, n):
    left, about, alike, chosen = unsure.copy(), unsure.copy(), (rows @ rows.T) ** 2, []
    for _ in range(n):
        score = [left[d] * sum(about[t] * alike[d, t] for t in range(len(left))) for d in range(len(left))]
        chosen.append(int(np.argmax(score)))
        left, about = (values * (1 - alike[chosen[-1]]) for values in (left, about))
    return chosen


def test_documents_are_chosen_by_what_they_say_beside_those_before():
    rng = np.random.default_rng(0)
    rows = rng.random((15, 40)) ** 3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    unsure = rng.random(15)
    found, score = choose_different(unsure, sp.csr_array(rows), 8)
    assert found.tolist() == naive_choice(unsure, rows, 8)
    assert (np.diff(score) <= 1e-12).all() and score[0] <= unsure.max()


def test_a_document_like_many_is_chosen_before_an_odd_one():
    rows = np.eye(6)[[0, 0, 0, 1, 2]] * 0.9 + np.eye(6)[[5, 4, 3, 3, 4]] * 0.3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found, _ = choose_different(np.array([0.5, 0.5, 0.5, 0.6, 0.6]), sp.csr_array(rows), 3)
    assert found[0] < 3 and sorted(found[1:]) == [3, 4]


def test_the_same_document_is_not_chosen_twice(fitted):
    texts, _ = make_texts(12, 1)
    found = fitted.next_to_label(texts * 3, 30)
    assert len(found) == 12 and len(set(found["text"])) == 12
    assert list(found.columns) == ["row", "text", "predicted", "uncertainty", "score"]
    assert (np.diff(found["score"]) <= 1e-12).all() and (found["score"] <= found["uncertainty"] + 1e-12).all()


def test_texts_without_known_words_come_last(fitted):
    texts = ["", "zzz yyy", *make_texts(6, 2)[0]]
    found = fitted.next_to_label(texts, 20)
    assert set(found["row"][:6]) == set(range(2, 8))


def test_what_the_model_is_sure_of_is_not_asked_for(fitted):
    both = [" ".join([*SUBJECTS["sport"][i : i + 5], *SUBJECTS["politics"][:5]]) for i in range(5)]
    assert set(fitted.next_to_label(make_texts(30, 3)[0] + both, 3)["row"]) <= set(range(30, 35))


@pytest.mark.usefixtures("short_regressions")
@pytest.mark.parametrize("kind", [
    "hinge", "labels", "ordinal", "rating", "two ratings", "count", "raters", "rated", "time", "sticks", "separate",
])  # fmt: skip
def test_every_response_says_what_to_label(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (180, 12))
    number = X[:, :4].sum(axis=1).astype(float)
    raters = np.c_[number > 4, number > 3] * 1.0
    make, y = {
        "hinge": (MedLDAClassifier, number // 3), "labels": (SLDAClassifier, np.c_[number > 4, X[:, 5] > 0] * 1),
        "ordinal": (SLDAOrdinalClassifier, np.minimum(number // 3, 2)), "rating": (SLDARegressor, number),
        "two ratings": (SLDARegressor, np.c_[number, -number]), "count": (SLDACountRegressor, number),
        "raters": (SLDACrowdClassifier, raters), "rated": (SLDACrowdRegressor, raters + rng.normal(0, 0.1, (180, 2))),
        "time": (SLDASurvivalRegressor, number + rng.random(180)),
        "sticks": (lambda **k: SLDAClassifier(multiclass="stick_breaking", **k), np.minimum(number // 3, 2)),
        "separate": (lambda **k: SLDAClassifier(multiclass="separate", **k), np.minimum(number // 3, 2)),
    }[kind]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(**QUICK | {"words": True}, random_state=0).fit(X[:150], y[:150])
    found = model.next_to_label(X[150:], 5)
    assert len(found) == 5 and (found["uncertainty"] >= 0).all() and np.isfinite(found["score"]).all()
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").next_to_label(X[150:], 5)["row"].tolist() == found["row"].tolist()
    assert len(model.next_to_label(X[:3], 0)) == 0 and len(model.next_to_label(X[:1], 5)) == 1
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.next_to_label(X[:3], -1)


def test_covariates_and_features_are_needed_as_for_predictions(short_regressions):
    rng = np.random.default_rng(0)
    X, Z, F = rng.poisson(1.0, (120, 12)), rng.normal(size=(120, 1)), rng.normal(size=(120, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SLDAClassifier(**QUICK, random_state=0).fit(X, Z[:, 0] > 0, covariates=Z, features=F)
    assert len(model.next_to_label(X, 4, covariates=Z, features=F)) == 4
    with pytest.raises(ValueError, match="covariates"):
        model.next_to_label(X, 4, features=F)
    assert not hasattr(LDA(), "next_to_label") and not hasattr(LDA(), "check_labels")


# wrong labels


def simulate(rng, n, n_classes, rate, power=1.0):
    """Predictions, true classes and given ones; the predictions are less sure than they should be if power > 1."""
    p = rng.dirichlet(np.full(n_classes, 0.15), n)
    q = p**power / (p**power).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(n_classes, p=row) for row in q])
    given = np.where(rng.random(n) < rate, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    return p, truth, given


@pytest.mark.parametrize(("n_classes", "rate", "power"), [(2, 0.1, 1.0), (5, 0.05, 1.8), (5, 0.3, 0.7), (3, 0.0, 1.0)])
def test_the_number_of_wrong_labels_is_in_its_interval(n_classes, rate, power):
    rng, inside, p_wrong, wrong = np.random.default_rng(0), 0, [], []
    for _ in range(20):
        p, truth, given = simulate(rng, 400, n_classes, rate, power)
        of_each, true, found = find_wrong(p, given, 0.9)
        inside += found.lower - 1e-9 <= (truth != given).sum() <= found.upper + 1e-9
        p_wrong.append(of_each)
        wrong.append(truth != given)
        np.testing.assert_allclose(true.sum(axis=1), 1.0, atol=1e-6)
        share = inside / len(wrong)
        if stops_early(len(wrong), 20, lambda own=share: near_limits(own, 0.95, least=0.7)):
            break
    assert inside >= 0.7 * len(wrong) if rate else found.lower < 2
    p_wrong, wrong = np.concatenate(p_wrong), np.concatenate(wrong)
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.0)):  # they are probabilities
        own = (p_wrong >= low) & (p_wrong <= high)
        if own.sum() > 100:
            assert abs(p_wrong[own].mean() - wrong[own].mean()) < 0.03 + 4 * np.sqrt(0.25 / own.sum()), (low, high)


def flipped_texts(n, seed, rate=0.1):
    rng, (texts, y) = np.random.default_rng(seed), make_texts(n, seed, THREE)
    bad = rng.random(n) < rate
    return texts, np.where(bad, [rng.choice([c for c in THREE if c != own]) for own in y], y), y, bad


@pytest.mark.parametrize(("n", "rate", "seed", "close"), [(60, 0.1, 8, 0.002), (100, 0.03, 6, 0.005)])
def test_the_posterior_of_wrong_labels_is_that_of_a_dense_grid(n, rate, seed, close):
    """Rates have a uniform prior or are 0, powers a uniform logarithm, shapes a normal one."""
    p, _, given = simulate(np.random.default_rng(seed), n, 3, rate)
    middle = (np.arange(50) + 0.5) / 50
    rates, powers = np.append(0.0, 0.45 * middle), np.exp(np.log(0.05) + middle * np.log(6.0 / 0.05))
    away = np.log(p.max(axis=1, keepdims=True) / p)
    link = np.exp(-powers[:, None, None, None] * away ** SHAPES[:, None, None])
    own = (link / link.sum(axis=3, keepdims=True))[:, :, np.arange(n), given].clip(1e-300)[..., None]
    wrong = (1.0 - own) * rates / 2.0
    whole = own * (1.0 - rates) + wrong  # (power, shape, n, rate)
    logs = np.log(whole).sum(axis=2) + np.log(np.append(0.1, np.full(50, 0.9 / 50)))
    logs -= 0.5 * (np.log(SHAPES)[:, None] / 0.25) ** 2
    mass = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    of_each = wrong / whole
    found, _, estimate = find_wrong(p, given, 0.8)
    np.testing.assert_allclose(found, np.einsum("abc,abic->i", mass, of_each), atol=close)
    rng = np.random.default_rng(5)
    cells = rng.choice(mass.size, 20_000, p=mass.ravel())
    mean, variance = (values.sum(axis=2).ravel()[cells] for values in (of_each, of_each * (1.0 - of_each)))
    ends = np.quantile((mean + np.sqrt(variance) * rng.normal(size=20_000)).clip(0.0), [0.1, 0.9])
    np.testing.assert_allclose([estimate.lower, estimate.upper], ends, atol=0.06 * np.ptp(ends))
    assert estimate.wrong == pytest.approx(found.sum())
    assert find_wrong(p, given, 0.999)[2].lower >= 0.0  # no number of labels is negative


def test_the_second_grid_is_where_the_first_one_has_mass():
    """With a cell on either side; around the best one where there is next to none."""
    mass = np.zeros((2, 11))
    mass[0, 3:6], mass[1, 7] = 0.3, 1e-9
    found = narrowed(np.array([[0.0, 10.0], [-5.0, 15.0]]), np.array([1.0, 2.0]), mass)
    np.testing.assert_allclose(found, [[2.0, 6.0], [7.0, 11.0]])


def test_what_is_said_of_wrong_labels():
    """One of them is, several are; what is not shown is counted."""

    def said(rows, **estimate):
        frame, nothing = pd.DataFrame({"row": range(rows)}), np.zeros(0)
        return repr(LabelCheck(frame, pd.DataFrame([estimate]), nothing, nothing, nothing, nothing, 0.8))

    found = said(10, documents=2000, wrong=1.2, lower=0.3, upper=2.6)
    assert found.startswith("About 1 of 2,000 labels is wrong (0.1%), 80% interval 0 to 3.\n") and "more" not in found
    found = said(11, label="tea", documents=0, wrong=0.0, lower=0.0, upper=0.0)
    assert found.startswith("About 0 of 0 labels of 'tea' are wrong (0.0%)") and found.endswith("and 1 more in .frame")
    assert "\n" not in said(0, documents=9, wrong=1.8, lower=0.0, upper=4.0)


def test_flipped_labels_are_found_with_the_words_against_them():
    texts, given, y, bad = flipped_texts(300, 0)
    model = SLDAClassifier(**QUICK | {"n_topics": 4}, random_state=0)
    found = model.check_labels(texts, given, n=int(bad.sum()))
    assert not hasattr(model, "posterior_")  # it stays as it was
    rows = found.frame["row"].to_numpy()
    assert bad[rows].mean() > 0.9 and (found.frame["suggested"] == y[rows])[bad[rows]].all()
    assert (found.frame["given"] == given[rows]).all()
    assert all(
        set(words) <= set(texts[row].split()) and words for row, words in zip(rows, found.frame["words"], strict=True)
    )
    estimate = found.estimates.iloc[0]
    assert estimate["lower"] - 1 <= bad.sum() <= estimate["upper"] + 1
    assert "labels are wrong" in repr(found) and "90% interval" in repr(found) and "<table" in found._repr_html_()
    assert len(model.check_labels(texts, given).frame) == round(estimate["wrong"])


def test_no_label_speaks_for_itself(monkeypatch):
    texts, y = make_texts(60, 4)
    texts = [f"{text} number{i}" for i, text in enumerate(texts)]
    fitted, predicted = [], []
    fit, predict_proba = SLDAClassifier.fit, SLDAClassifier.predict_proba

    def spy_fit(self, X, y, **more):
        fitted.append(set(X))
        return fit(self, X, y, **more)

    def spy_predict(self, X, **more):
        predicted.append(set(X))
        return predict_proba(self, X, **more)

    monkeypatch.setattr(SLDAClassifier, "fit", spy_fit)
    monkeypatch.setattr(SLDAClassifier, "predict_proba", spy_predict)
    SLDAClassifier(**QUICK, random_state=0).check_labels(texts, y, n=0, n_folds=4)
    assert len(fitted) == len(predicted) == 4
    for known, new in zip(fitted, predicted, strict=True):
        assert not known & new and known | new == set(texts)
    assert sum(map(len, predicted)) == 60


def test_labels_are_checked_one_by_one():
    texts, _, y, _ = flipped_texts(240, 1)
    Y = np.array([[c == own for c in THREE] for own in y]).astype(float)
    bad = np.random.default_rng(0).random(240) < 0.1
    Y[bad, 1] = 1 - Y[bad, 1]
    Y[:5, 0] = np.nan
    found = SLDAClassifier(**QUICK, random_state=0).check_labels(texts, Y, n=int(bad.sum()))
    assert found.p_wrong.shape == (240, 3) and np.isnan(found.p_wrong[:5, 0]).all()
    assert found.estimates["documents"].tolist() == [235, 240, 240] and list(found.frame.columns)[2:4] == [
        "label",
        "given",
    ]
    rows = found.frame["row"].to_numpy()
    assert (found.frame["label"] == 1).mean() > 0.9 and bad[rows].mean() > 0.8
    assert (found.frame["given"] + found.frame["suggested"] == 1).all()


def test_certain_predictions_leave_no_doubt_about_the_number():
    given = np.arange(200) % 2
    p = np.where(np.eye(2)[np.where(np.arange(200) < 180, given, 1 - given)] == 1, 1.0, 1e-300)
    found = find_wrong(p, given, 0.9)[2]
    assert found.lower == pytest.approx(20, abs=0.1) and found.upper == pytest.approx(20, abs=0.1)


def test_scores_are_relative_to_the_class():
    rng = np.random.default_rng(0)
    p, given = rng.dirichlet([5.0, 1.0, 0.5], 100), rng.integers(0, 3, 100).astype(float)
    score = judge(p, given, 0.9)[1]
    for j in range(3):
        np.testing.assert_allclose(score[given == j], p[given == j, j] / p[given == j, j].mean())


@pytest.mark.parametrize(("total", "multilabel", "given", "suggested", "words"), [
    ([[1, -1], [-1, 2]], True, 1, 0, ["b"]), ([[1, -1], [-1, 2]], True, 0, 1, ["a"]),  # of the first label
    ([[1], [-1]], False, 0, 1, ["a"]), ([[1], [-1]], False, 1, 0, ["b"]),  # of two classes one column
    ([[2, 1, 0], [0, 1, 2]], False, 0, 1, ["b"]), ([[2, 1, 0], [0, 1, 2]], False, 1, 0, ["a"]),
])  # fmt: skip
def test_words_speak_for_the_suggestion(total, multilabel, given, suggested, words):
    total = np.array(total, float)
    n = max(total.shape[1], 2)
    found = SimpleNamespace(words=["a", "b"], total=total, columns=["x", "y", "z"][3 - n :][: total.shape[1]])
    folds = Folds(np.zeros((1, n)), [SimpleNamespace(explain=lambda X: found)], np.zeros(1, int))
    whole = Logistic(1.0, classes=np.array(["x", "y", "z"][3 - n :], object), multilabel=multilabel)
    truth = np.array([[given, 0.0]]) if multilabel else np.eye(n)[[given]]
    row = describe(whole, truth, np.array([[suggested]]), folds, ["a b"], {}, 0, 0)
    assert row["words"] == words


def test_what_cannot_be_judged_is_left_out():
    texts, given, _, _ = flipped_texts(150, 2)
    given = given.astype(object)
    given[:10], given[10] = None, "only one"
    found = SLDAClassifier(**QUICK, random_state=0).check_labels(texts, given, n=500)
    assert np.isnan(found.p_wrong[:11]).all() and np.isfinite(found.p_wrong[11:]).all()
    assert found.estimates["documents"].tolist() == [139] and len(found.frame) == 139


@pytest.mark.usefixtures("short_regressions")
@pytest.mark.parametrize("make", [
    SLDAOrdinalClassifier, lambda **k: SLDAClassifier(multiclass="stick_breaking", **k),
    lambda **k: SLDAClassifier(multiclass="separate", class_weight="balanced", **k),
], ids=["ordinal", "sticks", "separate"])  # fmt: skip
def test_other_models_of_classes_and_columns_beside_the_texts(make):
    rng = np.random.default_rng(0)
    X, Z = rng.poisson(1.0, (150, 12)), rng.normal(size=(150, 1))
    y = np.minimum(X[:, :4].sum(axis=1) // 3, 2)
    more = {"covariates": Z, "features": rng.normal(size=(150, 2)), "sample_weight": rng.random(150) + 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = make(**QUICK, random_state=0).check_labels(X, y, n=5, n_folds=3, **more)
    assert len(found.frame) == 5 and (found.frame["given"] != found.frame["suggested"]).all()
    assert np.isfinite(found.p_wrong).all() and "text" not in found.frame


def test_grades_whose_names_are_not_sorted_keep_their_probabilities(short_regressions):
    texts, y = make_texts(90, 6, THREE)
    options = QUICK | {"random_state": 0}
    number = np.argsort(np.argsort(THREE))[[THREE.index(name) for name in y]]
    names, order = np.array(["low", "mid", "high"], dtype=object)[number], ["low", "mid", "high"]
    found = SLDAOrdinalClassifier(order=order, **options).check_labels(texts, names, n=5)
    same = SLDAOrdinalClassifier(**options).check_labels(texts, number, n=5)
    np.testing.assert_array_equal(found.probabilities, same.probabilities)
    assert np.isfinite(found.p_wrong).all() and found.estimates["documents"].tolist() == [90]
    assert found.classes.tolist() == order and found.frame["row"].tolist() == same.frame["row"].tolist()
    assert found.frame["suggested"].tolist() == [order[i] for i in same.frame["suggested"]]


@pytest.mark.parametrize("make", [MedLDAClassifier, SLDARegressor, SLDACountRegressor, SLDACrowdClassifier])
def test_other_responses_are_refused(make):
    with pytest.raises(ValueError, match="check_labels needs probabilities of classes"):
        make().check_labels(np.ones((9, 3), int), np.arange(9) % 2)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"n_folds": 1}, "n_folds must be"), ({"n": -1}, "n must be"), ({"level": 2}, "level must be"),
    ({"n_folds": 50}, "n_folds=50 needs at least 50"),
])  # fmt: skip
def test_check_labels_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        SLDAClassifier(**QUICK).check_labels(np.ones((9, 3), int), np.arange(9) % 2, **arguments)


# labels that no text predicts


@pytest.mark.parametrize(("n", "n_classes"), [(1000, 2), (600, 3), (1000, 20)])
def test_predictions_that_know_nothing_do_not_say_that_labels_are_wrong(n, n_classes):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        p = np.exp(0.3 * rng.normal(size=(n, n_classes)))
        estimate = find_wrong(p / p.sum(axis=1, keepdims=True), rng.integers(0, n_classes, n), 0.9)[2]
        assert estimate.lower == 0.0


def test_labels_without_a_relation_to_the_texts_give_a_warning():
    texts, _ = make_texts(150, 4)
    y = np.array(["a", "b", "c"])[np.arange(150) % 3]
    with pytest.warns(UserWarning, match="no relation between the documents and their labels"):
        found = SLDAClassifier(**QUICK, random_state=0).check_labels(texts, y)
    assert found.estimates["lower"][0] == 0.0


def test_checks_use_no_prior_and_no_checkpoint(fitted, tmp_path):
    texts, y = make_texts(60, 5)
    plain = SLDAClassifier(**QUICK, random_state=0).check_labels(texts, y)
    after = SLDAClassifier(**QUICK, prior=fitted, random_state=0).check_labels(texts, y)
    np.testing.assert_array_equal(after.probabilities, plain.probabilities)
    with pytest.raises(TypeError, match="checkpoint"):
        SLDAClassifier(**QUICK).check_labels(texts, y, checkpoint=tmp_path / "c")


class Told(SLDAClassifier):
    """A model that learns nothing and predicts what it is told: the first feature is the number of a document."""

    seen: ClassVar[list] = []

    def fit(self, X, y, **given):
        self.seen.append(("fit", self.n_chains, np.asarray(X), given))
        self.posterior_ = SimpleNamespace(held_out={}, response=None)
        return self

    def predict_proba(self, X, **given):
        self.seen.append(("predict", self.n_chains, np.asarray(X), given))
        return P[np.asarray(X)[:, 0]]

    def explain(self, X, **given):
        return SimpleNamespace(words=["w"], total=np.zeros((1, P.shape[1])), columns=list(self.classes_))

    classes_ = np.array(["x", "y", "z"], object)


P = np.random.default_rng(8).dirichlet([0.4, 0.4, 0.4], 60)


@pytest.fixture
def told():
    Told.seen = []
    return Told(3, n_chains=5), np.column_stack([np.arange(60), np.ones(60, int)])


def test_each_fold_has_its_own_rows_of_everything_and_few_chains(told):
    """Weights count in fits only, an option that is no column is passed on as it is."""
    model, X = told
    y = np.array(["x", "y", "z"], object)[np.arange(60) % 3]
    beside = {"covariates": np.arange(60.0)[:, None], "groups": np.arange(60) % 4, "features": np.eye(60)}
    model.check_labels(X, y, n=0, n_folds=3, sample_weight=0.5 + np.arange(60), **beside)
    assert [what for what, *_ in model.seen] == ["fit", "predict"] * 3
    for what, n_chains, own, given in model.seen:
        rows = own[:, 0]
        assert n_chains == 2 and set(given) == {*beside, *(["sample_weight"] if what == "fit" else [])}
        for name, values in beside.items():
            np.testing.assert_array_equal(given[name], values[rows])
        if what == "fit":
            np.testing.assert_array_equal(given["sample_weight"], 0.5 + rows)
        else:  # classes are in all folds
            assert np.bincount(rows % 3).tolist() in ([7, 7, 6], [7, 6, 7], [6, 7, 7], [6, 7, 7])


def test_rows_of_a_check_are_the_cells_of_its_arrays(told):
    model, X = told
    y = np.array(["x", "y", "z"], object)[np.random.default_rng(9).integers(0, 3, 60)]
    y[:3] = None
    found = model.check_labels(X, y, n=20)
    frame, place = found.frame, {"x": 0, "y": 1, "z": 2}
    rows = frame["row"].to_numpy()
    assert frame["score"].is_monotonic_increasing and len(frame) == 20 and frame["given"].tolist() == y[rows].tolist()
    np.testing.assert_array_equal(frame["p_wrong"], found.p_wrong[rows])
    np.testing.assert_array_equal(frame["score"], found.scores[rows])
    np.testing.assert_array_equal(found.probabilities[3:], P[3:])
    own = np.array([P[i, place[y[i]]] for i in range(3, 60)])
    mean = {name: own[y[3:] == name].mean() for name in place}
    np.testing.assert_allclose(found.scores[3:], own / [mean[name] for name in y[3:]])
    for row, suggested in zip(rows, frame["suggested"], strict=True):  # the best of the other classes
        others = P[row].copy()
        others[place[y[row]]] = -1.0
        assert suggested == "xyz"[others.argmax()] != y[row]
    (line,) = found.sentences()
    estimate = found.estimates.iloc[0]
    assert estimate["documents"] == 57 and f"({estimate['wrong'] / 57:.1%})" in line


def test_documents_of_which_some_labels_are_known_are_checked(told, monkeypatch):
    model, X = told
    monkeypatch.setattr(Told, "classes_", np.arange(3))
    Y = (P > 0.3).astype(float)
    Y[:20, 1] = np.nan
    Y[5] = np.nan
    found = model.check_labels(X, Y, n=15)
    np.testing.assert_array_equal(np.isnan(found.p_wrong), np.isnan(Y))
    np.testing.assert_array_equal(np.isnan(found.probabilities).all(axis=1), np.arange(60) == 5)
    for row, label, wrong, score in found.frame[["row", "label", "p_wrong", "score"]].to_numpy(float):
        assert (wrong, score) == (found.p_wrong[int(row), int(label)], found.scores[int(row), int(label)])


def test_the_true_class_has_the_probabilities_of_the_posterior_of_links():
    """Rows sum to 1, the given class has what is left, and others are in the order of predictions."""
    given = np.random.default_rng(3).integers(0, 3, 60)
    wrong, kept, _ = find_wrong(P, given, 0.9)
    np.testing.assert_allclose(kept.sum(axis=1), 1.0)
    np.testing.assert_allclose(kept[np.arange(60), given], 1.0 - wrong)
    for row, label in enumerate(given):
        a, b = (j for j in range(3) if j != label)
        assert (kept[row, a] > kept[row, b]) == (P[row, a] > P[row, b])
