"""What methods are asked for reaches what they compute: columns beside texts, levels, weights, unknown responses."""

import inspect
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fitted import ABOUT, LEVEL, NAMES, RATERS, TEXTS, N

import supertopic
from supertopic import (
    CoefficientDisplay,
    EffectDisplay,
    ExplanationDisplay,
    HeatmapDisplay,
    PrevalenceDisplay,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDARegressor,
)
from supertopic.estimators import check_labels as check_labels_method
from supertopic.estimators import choose as choose_room
from supertopic.estimators import placebo as placebo_method
from supertopic.estimators.splitting import split_known
from supertopic.estimators.supervised import Supervised
from supertopic.inference.teaching import uncertainties
from supertopic.report.interactions import Effects
from supertopic.report.label_errors import find_wrong

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # models are small here
BESIDE = "covariates", "exposure", "features", "groups"
Y = {
    "class": NAMES, "two": ABOUT == 0, "sticks": NAMES, "separate": NAMES, "hinge": NAMES, "ordinal": ABOUT,
    "labels": np.stack([ABOUT == 0, ABOUT != 1], axis=1).astype(float), "rating": LEVEL,
    "ratings": np.stack([LEVEL, -LEVEL], axis=1), "count": ABOUT * 3, "exposed": ABOUT * 3,
    "survival": 1.0 + LEVEL.clip(0), "crowd": NAMES, "crowd_ratings": LEVEL,
}  # fmt: skip
X20 = TEXTS[:20]


@pytest.fixture
def loaded(models):
    return lambda name: supertopic.load(models(name))


# columns beside the texts

OTHERS = {  # which learn, or whose groups are clusters
    "partial_fit", "effects_on", "interactions", "check_labels", "placebo", "merge_topics", "ban_words",
    "topic_effects",
}  # fmt: skip
NO_PREDICTIONS = "_", "fit", "set_", "get_"  # what names of other methods begin with


def asking(model):
    """The public methods of a model that predict, by the columns beside the texts that they take."""
    for name, method in inspect.getmembers(type(model), inspect.isfunction):
        taken = inspect.signature(method).parameters
        named = [column for column in BESIDE if column in taken]
        if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            named = [column for column in BESIDE if column != "exposure" or type(model) is SLDACountRegressor]
        if not name.startswith(NO_PREDICTIONS) and named and name not in OTHERS:
            yield name, named, [p for p in taken if p not in ("self", *BESIDE) and taken[p].default is taken[p].empty]


@pytest.mark.parametrize("name", ["class", "hinge", "ordinal", "rating", "count", "survival", "crowd", "crowd_ratings"])
def test_columns_beside_the_texts_reach_predictions(loaded, monkeypatch, name):
    """Every method that takes some gives all of them on."""
    model, real, seen = loaded(name), Supervised._new, []

    class StoppedError(Exception):
        pass

    def record(*given, **named):
        bound = inspect.signature(real).bind(*given, **named)
        seen.append({column: bound.arguments.get(column) for column in BESIDE})
        raise StoppedError

    monkeypatch.setattr(type(model), "_new", record)
    required = {"X": X20, "y": Y[name][:20], "texts": X20, "topic": 0}
    n_methods = 0
    for method, named, needed in asking(model):
        given = {column: object() for column in named}
        arguments = {what: required[what] for what in needed if what in required}
        if method in ("decide", "predict_set") and name.startswith("crowd"):
            continue
        if method == "drift":  # it takes evenly spaced rows
            arguments["y"], given = required["y"], {column: list(range(20)) for column in given}
        if method == "decide":
            arguments["max_error"] = 0.1
        if method == "diagnose":
            arguments["X"] = X20
        with pytest.raises(StoppedError):
            getattr(model, method)(**arguments, **given)
        assert seen.pop() == {column: given.get(column) for column in BESIDE}, method
        n_methods += 1
    assert n_methods >= 9


# levels of intervals


def ends(found):
    """The pairs of lower and upper ends in whatever a method returns."""
    if isinstance(found, Effects):
        return ends(found.frame()) + ends(found.table().frame())
    if hasattr(found, "frame") and callable(found.frame) and not hasattr(found, "mean_interval"):
        return ends(found.frame())
    if isinstance(found, pd.DataFrame):
        sides = [name.removesuffix("lower") for name in found if name.endswith("lower")]
        return [(found[f"{side}lower"].to_numpy(float), found[f"{side}upper"].to_numpy(float)) for side in sides]
    if hasattr(found, "mean_interval"):
        return [found.mean_interval, (found.lower, found.upper)]
    return [found] if isinstance(found, tuple) else [(found.lower, found.upper)]


ROWS = pd.DataFrame({"about": ABOUT.astype(float), "g": np.where(np.arange(N) % 2, "a", "b")})
WITH_LEVELS = {
    "class": [
        lambda m, level: m.coef_interval(level), lambda m, level: m.coefficient_frame(level),
        lambda m, level: m.effect_frame(level=level), lambda m, level: m.summary_table(level=level),
        lambda m, level: m.predict_interval(X20, level), lambda m, level: m.explain(TEXTS[0], level=level),
        lambda m, level: m.topic_effects(TEXTS, ROWS, level=level, n_draws=40, formula="about + g"),
        lambda m, level: m.topic_effects(TEXTS, ROWS, level=level, n_draws=40).differences(variable="g"),
        lambda m, level: m.topic_effects(TEXTS, ROWS, level=level, n_draws=40).coefficients(),
        lambda m, level: m.effects_on(TEXTS, NAMES, level=level, covariates=ROWS[["about"]]),
        lambda m, level: m.interactions(ROWS["g"], NAMES, TEXTS, level=level),
        lambda m, level: CoefficientDisplay.from_estimator(m, level=level),
        lambda m, level: EffectDisplay.from_estimator(m, level=level),
        lambda m, level: ExplanationDisplay.from_estimator(m, TEXTS[0], level=level),
        lambda m, level: PrevalenceDisplay.from_estimator(m, TEXTS, ROWS[["about"]], level=level, n_draws=40),
    ],
    "hinge": [lambda m, level: m.predict_interval(X20, level)],
    "ordinal": [lambda m, level: m.predict_interval(X20, level), lambda m, level: m.predict_grade_interval(X20, level)],
    "rating": [lambda m, level: m.predict_interval(X20, level),
               lambda m, level: m.predict_interval(X20, level, conformal=True)],
    "count": [lambda m, level: m.predict_interval(X20, level)],
    "survival": [lambda m, level: m.predict_interval(X20, level),
                 lambda m, level: m.predict_survival_interval(X20, level)],
    "covariates": [lambda m, level: m.covariate_coef_interval(level)],
    "groups": [lambda m, level: m.group_frame(level)],
    "crowd": [lambda m, level: m.rater_frame(level), lambda m, level: m.confusion_interval(level),
              lambda m, level: m.confusion_frame(level)],
    "crowd_ratings": [lambda m, level: m.rater_frame(level)],
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_a_lower_level_gives_shorter_intervals(loaded, name):
    import matplotlib

    matplotlib.use("Agg")
    model = loaded(name)
    for place, method in enumerate(WITH_LEVELS[name]):
        wide, narrow = ends(method(model, 0.9)), ends(method(model, 0.5))
        for (low, high), (inner_low, inner_high) in zip(wide, narrow, strict=True):
            width, inner = (np.nansum(np.asarray(b) - np.asarray(a)) for a, b in ((low, high), (inner_low, inner_high)))
            assert 0 <= inner < 0.95 * width, (name, place)
    matplotlib.pyplot.close("all")


def test_cells_of_a_heat_map_are_sure_at_its_level(loaded):
    import matplotlib

    matplotlib.use("Agg")
    model = loaded("class")
    draws = model.coef_draws_
    for level in (0.3, 0.95):
        shown = HeatmapDisplay.from_estimator(model, values="weight", level=level)
        lower, upper = model.coef_interval(level)
        np.testing.assert_array_equal(shown.sure, ((lower > 0) | (upper < 0)).T[shown.topics])
        np.testing.assert_allclose(shown.values, draws.mean(axis=0).T[shown.topics])
    matplotlib.pyplot.close("all")


def test_the_level_of_wrong_labels_is_that_of_their_number():
    """Its ends are quantiles on both sides."""
    rng = np.random.default_rng(0)
    yes = rng.beta(0.3, 0.3, 600)
    p, true = np.column_stack([1.0 - yes, yes]), (rng.random(600) < yes).astype(int)
    given = np.where(rng.random(600) < 0.2, 1 - true, true)
    found = {level: find_wrong(p, given, level)[2] for level in (0.5, 0.9, 0.99)}
    sides = [(found[level].lower, found[level].upper) for level in (0.99, 0.9, 0.5)]
    assert sides == [(low, high) for low, high in sides if low < found[0.5].wrong < high]
    assert sides[0][0] < sides[1][0] < sides[2][0] < sides[2][1] < sides[1][1] < sides[0][1]
    *_, judged = check_labels_method.judge(p, given.astype(float), 0.5)
    assert judged == found[0.5]


def test_a_placebo_has_the_level_seeds_and_columns_that_are_asked_for(loaded, monkeypatch):
    model, seen = loaded("covariates"), []

    def fit(own, X, y, **given):
        seen.append((own.random_state, np.asarray(y), given))
        own.posterior_ = model.posterior_
        return own

    rows = []
    monkeypatch.setattr(type(model), "fit", fit)
    monkeypatch.setattr(placebo_method, "describe_fit", lambda name, posterior, level: rows.append(level) or {"a": 1})
    Z = pd.DataFrame({"year": 2000 + ABOUT, "who": np.where(ABOUT > 1, "x", "y")})
    model.placebo(TEXTS, LEVEL, n=3, level=0.6, covariates=Z)
    assert rows == [0.6] * 4
    assert len({seed for seed, *_ in seen}) == 3 and all(given["covariates"] is Z for *_, given in seen)
    assert all(sorted(y) == sorted(LEVEL) and (y != LEVEL).any() for _, y, _ in seen)


# weights of documents


@pytest.mark.parametrize(
    "name", ["class", "two", "labels", "hinge", "ordinal", "rating", "ratings", "count", "exposed"]
)
def test_a_document_of_weight_two_counts_as_two(loaded, name):
    model, y = loaded(name), Y[name]
    weight = np.random.default_rng(1).integers(0, 3, N)
    y = np.roll(y, 7, axis=0)  # predictions are wrong
    rows = np.repeat(np.arange(N), weight)
    more = {"exposure": 1.0 + np.arange(N) % 4} if name == "exposed" else {}
    some = {key: values[rows] for key, values in more.items()}
    whole = model.score(TEXTS, y, weight, **more)
    assert whole == pytest.approx(model.score([TEXTS[i] for i in rows], y[rows], **some), rel=1e-9)
    assert whole != pytest.approx(model.score(TEXTS, y, **more), rel=1e-4)


def test_times_of_weight_0_do_not_count(loaded):
    model, event = loaded("survival"), np.arange(N) % 3 > 0
    time, weight = np.roll(1.0 + LEVEL.clip(0), 5), (np.arange(N) % 2).astype(float)
    own = weight > 0
    found = model.score(TEXTS, time, weight, event=event)
    assert found == pytest.approx(model.score(np.array(TEXTS)[own].tolist(), time[own], event=event[own]))
    assert found != pytest.approx(model.score(TEXTS, time, event=event), abs=1e-6)


# unknown responses


@pytest.mark.parametrize("name", ["class", "two", "hinge", "ordinal", "rating", "ratings", "count", "survival"])
def test_documents_with_unknown_responses_do_not_count(loaded, name):
    """Figures, curves and scores of chains are those of the others; losses keep their places."""
    model, y = loaded(name), np.roll(Y[name], 7, axis=0)
    known = np.arange(N) % 4 > 0
    holes = y.astype(object if y.dtype.kind in "Ob" else float)
    holes[~known] = None if holes.dtype == object else np.nan
    some = np.array(TEXTS)[known].tolist()
    whole, part = model.evaluate(TEXTS, holes), model.evaluate(some, y[known])
    np.testing.assert_array_equal(np.isnan(whole.losses), ~known)
    np.testing.assert_allclose(whole.losses[known], part.losses)
    assert whole.score == pytest.approx(part.score) and whole.figures.keys() == part.figures.keys()
    for figure, value in whole.figures.items():
        assert value == pytest.approx(part.figures[figure], nan_ok=True), figure
    assert (whole.abstention is None) == (part.abstention is None)
    for curve, values in (whole.abstention or {}).items():
        np.testing.assert_allclose(values, part.abstention[curve])
    a, b = model.diagnose(TEXTS, holes), model.diagnose(some, y[known])
    assert a["score"] == pytest.approx(b["score"]) and a["test loss"] == pytest.approx(b["test loss"], nan_ok=True)


def test_what_was_seen_of_times_has_its_event(loaded):
    """A censored time and one with an event have other probabilities; Brier scores leave unknown times out."""
    model, time = loaded("survival"), 1.0 + LEVEL.clip(0)
    event = np.arange(N) % 2 == 0
    y = np.column_stack([time, event])
    found = model.log_predictive(TEXTS, time, event=event)
    np.testing.assert_allclose(found, model.log_predictive(TEXTS, y))
    np.testing.assert_allclose(found, -model.evaluate(TEXTS, y).losses)
    assert np.abs(found - model.log_predictive(TEXTS, time))[~event].min() > 1e-3
    known = np.arange(N) % 5 > 0
    holes = np.where(known, time, np.nan)
    some = np.array(TEXTS)[known].tolist()
    own = model.brier_score(some, time[known], event=event[known])
    np.testing.assert_allclose(model.brier_score(TEXTS, holes, event=event), own)
    curve, response = model.predict_survival_function(X20), model.posterior_.response
    for side, survival in zip(model.predict_interval(X20, 0.6), (0.8, 0.2), strict=True):  # a fifth before, one after
        np.testing.assert_allclose(side, response.time_at(curve, survival))


# documents of a frame with labels of its own


@pytest.fixture(scope="module")
def series():
    """The texts as a column with labels in no order."""
    order = np.random.default_rng(5).permutation(N)
    return pd.Series(np.array(TEXTS, dtype=object)[order], index=[f"d{i}" for i in order]), order


@pytest.mark.parametrize("name", ["class", "rating"])
def test_documents_that_are_shown_have_their_own_labels_texts_and_scores(loaded, series, name):
    (texts, order), model = series, loaded(name)
    y = np.roll(Y[name], 3)[order]  # responses that surprise

    def places(frame):
        assert frame["text"].tolist() == texts[frame["row"]].tolist()
        return texts.index.get_indexer(frame["row"])

    found = model.surprising(texts, y, n=25)
    at = places(found)
    np.testing.assert_array_equal(found["predicted"], model.predict(texts.iloc[at].tolist()))
    np.testing.assert_array_equal(found["observed"], y[at])
    if name == "class":
        p = model.predict_proba(texts.tolist())
        own = p[np.arange(N), np.searchsorted(model.classes_, y)]
        np.testing.assert_allclose(found["score"], own[at], rtol=1e-9)
        assert found["score"].tolist() == pytest.approx(np.sort(own)[:25].tolist())
    else:
        assert found["score"].is_monotonic_decreasing
    unsure = model.unsure(texts, n=25)
    if name == "class":
        assert unsure["score"].tolist() == pytest.approx(p.max(axis=1)[places(unsure)].tolist())
        assert unsure["score"].is_monotonic_increasing
    else:
        lower, upper = model.predict_interval(texts.tolist())
        np.testing.assert_allclose(unsure["score"], (upper - lower)[places(unsure)])
        assert unsure["score"].is_monotonic_decreasing
    np.testing.assert_array_equal(unsure["predicted"], model.predict(unsure["text"].tolist()))
    shown = model.typical_documents(texts, 1, n=9)
    np.testing.assert_allclose(shown["share"], model.transform(texts.tolist())[places(shown), 1])
    taught = model.next_to_label(texts, n=7)
    every = model.next_to_label(texts, n=N).set_index("row")["uncertainty"]
    np.testing.assert_allclose(taught["uncertainty"], every[taught["row"]])
    np.testing.assert_array_equal(taught["predicted"], model.predict(texts.iloc[places(taught)].tolist()))
    np.testing.assert_allclose(taught["uncertainty"], uncertainties(model._new(texts.tolist()))[places(taught)])


def test_disagreements_have_their_own_documents(loaded, series):
    (texts, order), model = series, loaded("crowd")
    answers = RATERS[order].copy()
    answers[::7, 1] = np.roll(answers[::7, 1], 1)
    found = model.disagreements(texts, answers, n=12)
    p, at = model.infer_labels(texts, answers), texts.index.get_indexer(found["row"])
    assert found["text"].tolist() == texts.iloc[at].tolist()
    place = {name: i for i, name in enumerate(model.classes_)}
    np.testing.assert_allclose(found["p_answer"], p[at, [place[name] for name in found["answer"]]])
    np.testing.assert_allclose(found["p_probable"], p[at].max(axis=1))
    assert found["probable"].tolist() == model.classes_[p[at].argmax(axis=1)].tolist()
    rater = [model.raters_.tolist().index(name) for name in found["rater"]]
    assert found["answer"].tolist() == answers[at, rater].tolist()
    gold = np.full(N, None, object)
    gold[:10] = np.roll(NAMES[order], 1)[:10]
    known = model.infer_labels(texts, answers, gold=gold)
    assert (model.classes_[known.argmax(axis=1)][:10] == gold[:10]).mean() > (
        model.classes_[p.argmax(axis=1)][:10] == gold[:10]
    ).mean()


def test_numbers_of_raters_that_are_far_away(loaded):
    """By what the text and the others say and the rater's own bias, in standard deviations of both."""
    model = loaded("crowd_ratings")
    ratings = LEVEL[:, None] + np.random.default_rng(3).normal(size=(N, 3))
    ratings[4, 2], ratings[9, 0] = 40.0, np.nan
    frame = pd.DataFrame(ratings, columns=model.raters_)[model.raters_[::-1]]  # raters in another order
    found = model.disagreements(TEXTS, frame, n=8)
    mean, sd = model.infer_ratings(TEXTS, frame, return_std=True)
    rater = np.array([model.raters_.tolist().index(name) for name in found["rater"]])
    at = found["row"].to_numpy()
    assert (found["row"][0], found["rater"][0], found["rating"][0]) == (4, model.raters_[2], 40.0)
    np.testing.assert_allclose(found["rating"], ratings[at, rater])
    np.testing.assert_allclose(found["expected"], mean[at] + model.bias_[rater])
    spread = np.sqrt(sd[at] ** 2 + model.rater_sd_[rater] ** 2)
    np.testing.assert_allclose(found["away"], (found["rating"] - found["expected"]) / spread)


# numbers of topics


def test_the_smallest_number_within_an_error_of_the_best_is_chosen():
    """The error is that of the difference, over the same documents."""
    noise = np.random.default_rng(0).normal(0, 5, 100)
    away = 0.1 * np.where(np.arange(100) % 2, 1.0, -1.0)
    losses = {5: noise + 0.02 + away, 10: noise + 0.005 + away, 20: noise, 40: noise + 0.004 + 0.5 * away}
    found = choose_room.Choice([{"n_topics": k} for k in losses], losses, "accuracy", 100)
    more = {row["n_topics"]: (row["loss_more"], row["loss_se"]) for row in found.rows}
    assert more[5] == pytest.approx((0.02, away.std(ddof=1) / 10)) and (found.best, found.chosen) == (20, 10)


def test_documents_to_compare_numbers_of_topics_on_have_a_known_response():
    y = np.array(["a", "b", None] * 20, object)
    train, test = choose_room.split(SLDAClassifier().make_response(), 60, y, 0.3, 0)
    assert all(y[test] != None) and sorted([*train, *test]) == list(range(60))  # noqa: E711
    answers = np.array([["a", None], [None, None], ["b", "a"]] * 20, object)  # one answer says something
    _, test = choose_room.split(SLDACrowdClassifier().make_response(), 60, answers, 0.3, 0)
    assert {i % 3 for i in test} == {0, 2}
    labels = np.array([[1.0, np.nan], [0.0, 1.0]] * 30)
    _, test = choose_room.split(SLDAClassifier().make_response(), 60, labels, 0.3, 0)
    assert {i % 2 for i in test} == {1}


def test_each_side_of_a_comparison_has_its_own_rows(monkeypatch):
    """Weights are for fits; words go together in the documents of the fit."""
    seen = []

    class Short(SLDARegressor):
        def fit(self, X, y, **given):
            seen.append(("fit", list(X), np.asarray(y), given, self.random_state))
            self.posterior_ = SimpleNamespace(held_out={}, n_chains=1)
            return self

        def evaluate(self, X, y, **given):
            seen.append(("evaluate", list(X), np.asarray(y), given, None))
            return SimpleNamespace(losses=np.arange(float(len(X))), score=0.5, score_name="R2")

        topic_agreement = lambda self: np.array([0.5, 1.0, 0.75])  # noqa: E731
        exclusivity = lambda self, n=10: np.zeros(3)  # noqa: E731

    coherent = []
    monkeypatch.setattr(choose_room, "npmi", lambda model, X: coherent.append(X) or 0.0)
    monkeypatch.setattr(choose_room, "count_texts", lambda model, X: SimpleNamespace(topics=list(X)))
    texts = [f"{text} n{i}" for i, text in enumerate(TEXTS[:40])]
    found = supertopic.choose_topics(
        Short(), texts, np.arange(40.0), [2, 3], test_size=0.25, random_state=7, sample_weight=np.arange(40.0) + 100,
        covariates=np.arange(40.0)[:, None],
    )  # fmt: skip
    assert len(seen) == 4 and len(found.rows) == 2 and found.rows[0]["stability"] == pytest.approx(2 / 3)
    for what, X, y, given, seed in seen:
        rows = [int(text.rsplit("n", 1)[1]) for text in X]
        assert y.tolist() == rows and given["covariates"].ravel().tolist() == rows
        assert len(rows) == (30 if what == "fit" else 10)
        if what == "fit":
            assert given["sample_weight"].tolist() == [100 + i for i in rows] and seed == 7
        else:
            assert "sample_weight" not in given
    assert coherent[0] == seen[0][1]


def test_a_split_has_all_classes_of_documents_with_copies():
    """Copies are one document, whose class is that of its first copy."""
    group = np.repeat(np.arange(40), np.where(np.arange(40) < 20, 3, 1))
    classes = np.where(group % 4 == 0, "rare", "usual")
    found = split_known(np.arange(80), classes, 0.25, 0, group)
    units = np.unique(group[found])
    assert len(units) == 10 and (units % 4 == 0).sum() in (2, 3)
    for seed in range(4):
        units = np.unique(group[split_known(np.arange(80), classes, 0.25, seed, group)])
        assert (units % 4 == 0).sum() in (2, 3)
