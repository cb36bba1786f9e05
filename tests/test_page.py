"""The page of a model: what it says, that it is safe, and that it works in a browser."""

import copy
import html
import itertools
import json
import re
import shutil
import sys
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import f1_score, r2_score
from sklearn.pipeline import make_pipeline

from conftest import few_draws
from supertopic import (
    LDA,
    CoefficientDisplay,
    MedLDAClassifier,
    ReliabilityDisplay,
    SLDAClassifier,
    SLDACountRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    TopicDisplay,
    TraceDisplay,
    explain,
    load,
    save,
)
from supertopic.datasets import make_corpus
from supertopic.model.responses import Gaussian, Logistic
from supertopic.model.responses.none import NoResponse
from supertopic.report import page as page_module
from supertopic.report import page_documents as documents_module
from supertopic.report.evaluate import reliability, threshold_counts
from supertopic.report.page_documents import (
    Shown,
    choose,
    describe_documents,
    first_document,
    share,
    true_text,
    view_parts,
    views_of,
)
from supertopic.report.page_evaluation import calibration, kaplan_meier, same_for_all
from supertopic.report.page_groups import Grouping, describe_groups, group
from supertopic.report.page_headline import weakest_sentence, worst_of
from supertopic.report.page_numbers import percent, span
from supertopic.report.page_topics import radii
from supertopic.report.summary import describe_topics
from supertopic.report.targets import Targets
from supertopic.report.topics import topic_labels

CORPUS = make_corpus(n_docs=240, n_topics=4, n_words=120, random_state=1)
TEXTS = [
    " ".join(f"w{w:02d}" for w in row.indices.repeat(row.data)) for row in (CORPUS.X[[i]].tocsr() for i in range(240))
]
TEXTS[0] = '<script>window.broken = 1</script> </script><b id=bold>bold</b> & "quoted" ' + TEXTS[0]
RUN = {"n_topics": 6, "n_chains": 2, "burn_in": 15, "n_draws": 8, "predict_sweeps": 12, "random_state": 0}
THREE = np.array(["<i>one</i>", "two & a half", "three"])[CORPUS.doc_topic[:, :3].argmax(axis=1)]
TWO = np.where(CORPUS.doc_topic[:, 0] > 0.25, "yes", "no")
MODELS = {
    "three": (SLDAClassifier, THREE, {}),
    "two": (SLDAClassifier, TWO, {}),
    "sticks": (SLDAClassifier, THREE, {"multiclass": "stick_breaking"}),
    "separate": (SLDAClassifier, THREE, {"multiclass": "separate"}),
    "labels": (SLDAClassifier, (CORPUS.doc_topic > 0.3).astype(int), {}),
    "hinge": (MedLDAClassifier, THREE, {}),
    "hinge of two": (MedLDAClassifier, TWO, {}),
    "margins of labels": (MedLDAClassifier, (CORPUS.doc_topic > 0.3).astype(int), {}),
    "one draw": (SLDAClassifier, TWO, {"n_chains": 1, "n_draws": 1, "calibrate": False}),
    "ratings": (SLDARegressor, np.column_stack([CORPUS.doc_topic @ [1.0, 2.0, 4.0, 0.0], CORPUS.doc_topic[:, 0]]), {}),
    "time": (SLDASurvivalRegressor, np.column_stack([1.0 + 9.0 * CORPUS.doc_topic[:, 0], np.arange(240) % 4 > 0]), {}),
    "rating": (SLDARegressor, CORPUS.doc_topic @ [1.0, 2.0, 4.0, 0.0], {}),
    "grades": (SLDAOrdinalClassifier, np.digitize(CORPUS.doc_topic @ [1.0, 2.0, 4.0, 0.0], [1.0, 1.8, 2.6]), {}),
    "count": (SLDACountRegressor, np.rint(CORPUS.doc_topic @ [1.0, 5.0, 20.0, 2.0]), {"words": False}),
}
BY = {"third": ["a", "b", None] * 80, "day": [f"2024-{1 + i % 12:02d}-03" for i in range(240)]}


@pytest.fixture(scope="module", autouse=True)
def few_documents():
    """Explanations take most of the time of a page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents_module, "MOST_DOCUMENTS", 40)
        yield


@cache
def fitted(name):
    """A pipeline and its responses. Some tests are about how good the first two models are."""
    kind, y, more = MODELS[name]
    with nullcontext() if name in ("three", "two") else few_draws():
        return make_pipeline(CountVectorizer(), kind(**(RUN | more))).fit(TEXTS, y), y


@cache
def page_of(name):
    pipeline, y = fitted(name)
    rival: dict = {"name": "Another <model> on words and pairs", "accuracy": 0.5}
    if isinstance(pipeline[-1], SLDARegressor | SLDACountRegressor):
        rival["predicted"] = np.full(np.shape(y), 1.5)
    return pipeline[-1].report(
        TEXTS, y, vectorizer=pipeline[0], title="A <page>", test=name == "two", rival=rival, by=BY,
    )  # fmt: skip


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def prose(page):
    """What a reader sees before any script runs."""
    return html.unescape(page.partition('<script type="application/json"')[0])


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
@pytest.mark.parametrize("name", MODELS)
def test_every_response_has_a_page(name):
    (pipeline, y), page = fitted(name), page_of(name)
    data, model = data_of(page), pipeline[-1]
    response = model.posterior_.response
    assert "A &lt;page&gt;" in page and "<script>window.broken" not in page and len(page) < 2_000_000
    assert not re.search(r"(?:src|href)=.(?:https?:)?//", page)  # it asks nobody
    assert len(data["topics"]) == model._n_features_out
    if response.kind != "time" and name != "sticks":
        np.testing.assert_allclose([topic["weight"][0] for topic in data["topics"]], model.coef_.T, rtol=6e-3)
    for document in data["documents"]:
        for view in document["views"]:
            parts = view["constant"] + sum(value for _, value in view["beside"]) + view["rest"][1] + view["rest"][2]
            assert parts + sum(a + b for _, a, b in view["words"]) == pytest.approx(view["score"], rel=2e-3, abs=4e-3)
            assert len(view["spans"]) == min(len(view["words"]), 14)
    evaluation = data["evaluation"]
    assert evaluation["documents"] == 240 and evaluation["test"] == (name == "two")
    X = pipeline[0].transform(TEXTS)
    if evaluation["kind"] == "classes":
        assert evaluation["score"] == pytest.approx(model.score(X, y))
        said = np.array(evaluation["said"])
        np.testing.assert_array_equal(np.array(data["classes"])[said], np.asarray(model.predict(X)).astype(str))
    elif evaluation["kind"] == "labels":
        assert evaluation["score"] == pytest.approx(f1_score(y, model.predict(X), average="micro"))
        assert [label["has"] for label in evaluation["labels"]] == y.sum(axis=0).tolist()
    elif evaluation["kind"] == "numbers":
        assert len(evaluation["columns"]) == np.reshape(y, (240, -1)).shape[1]
        assert evaluation["score"] == pytest.approx(r2_score(y, model.predict(X)))
        assert evaluation["columns"][0]["rival"]["score"] <= 0.0  # one number for all
    else:
        assert evaluation["score"] == pytest.approx(model.score(X, y))
    first = data["groups"][-2]
    assert first["name"] == "third" and [level["documents"] for level in first["levels"]] == [80, 80]  # None is unknown
    assert [level["name"] for level in data["groups"][-1]["levels"]][:2] == ["2024-01", "2024-02"]


def test_effects_are_those_of_the_model():
    """In points, of the class that they are shown for; an explanation against another class is a difference."""
    pipeline, _ = fitted("three")
    model, data = pipeline[-1], data_of(page_of("three"))
    frame = model.effect_frame()
    for name in ("change", "lower", "upper"):
        table = frame.pivot(index="topic", columns="column", values=name)[data["targets"]["names"]].to_numpy()
        own = [topic["effect"][["change", "lower", "upper"].index(name)] for topic in data["topics"]]
        np.testing.assert_allclose(own, 100.0 * table, rtol=6e-3, atol=1e-9)
    document = data["documents"][7]
    against, alone = document["views"]
    explained = explain(pipeline, TEXTS[document["row"]])
    a, b = (data["classes"].index(against[side]) for side in ("of", "against"))
    assert against["score"] == pytest.approx(explained.omega[a] - explained.omega[b], rel=1e-3)
    assert alone["score"] == pytest.approx(explained.omega[a], rel=1e-3) and a == document["said"]
    sums = np.array([level["share"] for level in data["groups"][0]["levels"]]).sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, rtol=0.01)


def test_a_class_of_two_is_explained_as_predicted():
    data = data_of(page_of("two"))
    said = {document["said"] for document in data["documents"]}
    assert said == {0, 1}
    for document in data["documents"]:
        (view,) = document["views"]
        assert view["of"] == data["classes"][document["said"]] and view["score"] > 0


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
def test_the_headline_says_what_was_found():
    two = prose(page_of("two"))
    assert "Predicts the class correctly for 100\N{NO-BREAK SPACE}% of 240 documents that were not in the fit" in two
    assert "another <model> on words and pairs: 50.0\N{NO-BREAK SPACE}%" in two and "weakest" not in two.lower()
    assert "so this figure is too good" in prose(page_of("three"))
    assert "micro F1 of" in prose(page_of("labels")) and "Predicts 4 labels" in prose(page_of("labels"))
    pipeline, y = fitted("rating")
    named = pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], name="satisfaction")
    assert "of the variance of the “satisfaction” of 240 documents" in prose(named)
    assert data_of(named)["targets"]["names"] == ["satisfaction"]
    assert data_of(named)["groups"][0]["name"] == "satisfaction, in thirds"
    column = data_of(named)["evaluation"]["columns"][0]
    assert f"always the mean <b>{column['base_score']:.3f}".replace("-", "\N{MINUS SIGN}") in prose(named)
    assert [percent(p) for p in (0, 2e-7, 0.026, 0.99999, 1)] == [
        f"{text}\N{NO-BREAK SPACE}%" for text in ("0", "<0.1", "2.6", ">99.9", "100")
    ]
    assert (
        span(1e-5, 2e-5) == percent(1e-5) and span(0.5, 0.5).startswith("about") and span(0.5, 1) == "50.0 to 100\xa0%"
    )


@pytest.mark.parametrize("name", ["three", "rating"])
def test_a_model_without_a_relation_is_not_praised(name):
    pipeline, y = fitted(name)
    model, what = copy.copy(pipeline[-1]), "class" if name == "three" else "rating"
    model.posterior_ = replace(model.posterior_, held_out=model.posterior_.held_out | {"relation": False})
    shown = prose(model.report(TEXTS[:30], y[:30], vectorizer=pipeline[0]))
    assert shown.count(f"Found no relation between the texts and the {what} when the model was fitted.") == 2
    assert "clear effect." not in shown and "Contributions to" not in shown
    assert "Contributions to" in prose(page_of(name)) and "Found no relation" not in prose(page_of(name))


def test_the_weakest_class_has_a_sentence():
    truth, said = [0] * 20 + [1] * 20, [0] * 25 + [1] * 15
    worst = worst_of({"kind": "classes", "truth": truth, "said": said, "names": ["a", "b"]})
    assert worst is not None and weakest_sentence(worst) == "The weakest class is “b”."


def test_a_clear_effect_has_an_interval_without_zero_and_most_chains():
    rng = np.random.default_rng(0)
    means = np.array([[0, 0, 9, 0], [-9, 0, 0, 0], [0, 1.9, 0, 0], [0, 9, -9, 0]])
    effects, stable = rng.normal(0.0, 1.0, (4000, 4, 4)) + means, np.array([True, True, True, False])

    def pulls(names, effects, stable=stable):
        return Targets(names, np.zeros(len(names)), effects, None, "points", 100.0, stable).pulls()

    assert pulls(list("abcd"), effects) == [2, 0, None, None]  # the largest of four is often 1.9
    assert pulls(list("abcd"), effects, stable | True) == [2, 0, None, 1]  # what is raised comes first
    assert pulls(["a"], effects[:, :, :1]) == [None, 0, None, None]
    assert pulls(["a"], effects[:1, :, :1]) == [None] * 4  # one draw
    assert pulls([], effects[:, :, :0]) == [None] * 4


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
def test_clear_effects_are_the_same_everywhere(opened, browser):
    """The headline, the map, the panels, the list, the heat map and the table of the terminal."""
    pipeline, _ = fitted("three")
    data, posterior = data_of(page_of("three")), pipeline[-1].posterior_
    clear = {k for k, topic in enumerate(data["topics"]) if topic["clear"]}
    assert 0 < len(clear) < len(data["topics"])
    assert f"{len(clear)} of 6 topics have a clear effect" in prose(page_of("three"))
    for row in describe_topics(posterior, pipeline[0].get_feature_names_out()):
        topic = data["topics"][row["topic"]]
        rises = topic["pull"] is not None and topic["effect"][0][topic["pull"]] > 0
        assert row["class"] == (data["classes"][topic["pull"]] if rises else None)
        assert ("away_from" in row) == (topic["pull"] is not None and not rises)
    opened(page_of("three"))
    places = "return [...document.querySelectorAll(arguments[0])].map(e => +(e.dataset.topic ?? e.dataset.k))"
    for selector in ("#map circle:not(.unsure)", "#panels button[data-topic]", "#cells td:not(.unsure)"):
        assert set(browser.execute_script(places, selector)) == clear, selector
    named = browser.execute_script(
        "return [...document.querySelectorAll('#list tbody tr')].filter(e => e.querySelector('td.pull').textContent)"
        ".map(e => +e.dataset.topic)"
    )
    assert set(named) == clear


def test_unknown_responses_and_none(tmp_path):
    y = TWO.astype(object)
    y[::3] = None
    vectorizer = CountVectorizer().fit(TEXTS)
    model = SLDAClassifier(**RUN).fit(vectorizer.transform(TEXTS), y)
    page = model.report(TEXTS, y, tmp_path / "page.html", vectorizer=vectorizer)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    data = data_of(page)
    assert data["evaluation"]["documents"] == 160 and len(data["evaluation"]["truth"]) == 160
    assert all(d["wrong"] is None for d in data["documents"] if d["row"] % 3 == 0)
    for y in (None, [None] * 4):
        assert data_of(model.report(TEXTS[:4], y, vectorizer=vectorizer))["evaluation"] is None
    with pytest.raises(ValueError, match="texts is empty: a page shows documents"):
        model.report([], vectorizer=vectorizer)
    few = model.report(TEXTS[:30], TWO[:30], vectorizer=vectorizer)
    assert data_of(few)["first"] == model.surprising(vectorizer.transform(TEXTS[:30]), TWO[:30], n=1).row[0]
    assert data_of(page)["first"] is None  # its list begins with what is surprising
    one = data_of(model.report(["", "zzz"], ["yes", "no"], vectorizer=vectorizer))["documents"]
    assert [d["text"] for d in one] == ["", "zzz"] and one[0]["views"][0]["words"] == []
    with pytest.raises(ValueError, match="vectorizer is the fitted one"):
        model.report(TEXTS)
    with pytest.raises(ValueError, match="There are 240 texts, but by has 3 values of 'group'"):
        model.report(TEXTS, vectorizer=vectorizer, by=[1, 2, 3])


def test_a_model_of_several_batches_has_a_table_of_them():
    X, names = CountVectorizer().fit_transform(TEXTS), CountVectorizer().fit(TEXTS)
    model = SLDAClassifier(**RUN).partial_fit(X[:120], TWO[:120]).partial_fit(X[120:], TWO[120:])
    page = model.report(TEXTS[:20], TWO[:20], vectorizer=names)
    _, first, second = re.findall(r"<tr>.*?</tr>", page.partition("Batch by batch")[2].partition("</table>")[0])
    entry = model.posterior_.history[1]
    assert "<td>1</td><td>120</td>" in first and f"<td>{entry.figures.score:.3f}</td>" in second
    assert "Batch by batch" not in page_of("two")


def test_topics_without_a_response_have_a_page():
    page = LDA(3, burn_in=2, n_draws=2, random_state=0).fit(TEXTS).report(TEXTS, by={"third": BY["third"]})
    data = data_of(page)
    assert data["targets"]["names"] == [] and data["evaluation"] is None and "3 topics of 240 documents." in prose(page)
    assert len(data["topics"]) == 3 and "views" not in data["documents"][0] and 'id="heat"' not in page
    assert 'class="skip" href="#topics"' in page


def test_several_unknown_labels():
    y = (CORPUS.doc_topic > 0.3).astype(float)
    y[:50, 1] = np.nan
    pipeline, _ = fitted("labels")
    page = pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0])
    labels = data_of(page)["evaluation"]["labels"]
    assert [label["documents"] for label in labels] == [240, 190, 240, 240]
    p = pipeline[-1].predict_proba(pipeline[0].transform(TEXTS))[50:, 1]
    good, bad = (np.array(counts) for counts in labels[1]["counts"])
    for at, threshold in enumerate(np.linspace(0.02, 0.98, 49)):
        assert good[at] == np.sum((p >= threshold) & (y[50:, 1] == 1))
        assert bad[at] == np.sum((p >= threshold) & (y[50:, 1] == 0))


def test_two_models_side_by_side():
    (pipeline, y), (other, _) = fitted("three"), fitted("separate")
    data = data_of(pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], other=other))["other"]
    assert data["n_topics"] == 18 and len(data["topics"]) == 6 and len(data["left"]) == 12
    X = pipeline[0].transform(TEXTS)
    assert data["scores"] == pytest.approx([pipeline[-1].score(X, y), other[-1].score(X, y)], abs=1e-3)
    same = data_of(pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], other=pipeline))
    assert [topic["topic"] for topic in same["other"]["topics"]] == list(range(6)) and same["other"]["scores"][0] == 1
    assert same["other"]["difference"] == [0, 0, 0] and not any(d["other"][1] for d in same["documents"])
    topics_only = data_of(
        pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], other=LDA(3, burn_in=2, n_chains=1).fit(TEXTS))
    )
    assert "scores" not in topics_only["other"]


def test_groups_of_documents():
    days = [np.datetime64("2023-11-05"), date(2024, 2, 29), "2024-02-01", None]
    assert group("day", days).levels == ["2023-11", "2023-12", "2024-01", "2024-02"]
    assert group("day", days).place.tolist() == [0, 3, 3, -1]
    assert group("day", ["1990-01-01", "2024-06-30"]).levels[0] == "1990" and len(group("d", days[:2]).levels) == 4
    assert group("q", ["2020-02-01", "2024-06-30"]).levels[:2] == ["2020 Q1", "2020 Q2"]
    many = group("author", [f"a{i % 20}" for i in range(100)] + ["a1"])
    assert len(many.levels) == 13 and many.levels[0] == "a1" and many.place[19] == 12  # the others
    numbers = group("year", list(np.arange(60.0)))
    assert numbers.kind == "number" and np.bincount(numbers.place).tolist() == [10] * 6
    assert group("letters", [*range(12), 1234.0, 51200.0]).levels[-1].endswith(" to 51200")
    assert group("year", [1999, 2001.0, None, 2002])[1:3] == ("time", ["1999", "2000", "2001", "2002"])
    assert group("year", [1999, 2001.0, None, 2002]).place.tolist() == [0, 2, -1, 3]
    assert group("year", [1901, 1990]).levels[:2] == ["1901", "1904"]
    assert group("stars", [1, 2, 10, np.nan]).levels == ["1", "2", "10"]
    assert group("flag", [True, False, ""]).levels == ["True", "False"]
    times = ["26-FEB-1987 15:10:44.60", " 5-MAR-1987 01:02:03.40", None]
    assert group("day", times)[1:3] == ("time", ["1987-02", "1987-03"]) and group("day", times).place[2] == -1
    for cells in (["Feb 5, 1987", "Mar 9, 1987"], ["13/02/1987", "01/03/1987"], ["02/13/1987", "03/01/1987 10:00"]):
        assert group("day", cells).levels == ["1987-02", "1987-03"]
    assert group("day", ["02/03/1987", "01/03/1987"]).kind == "group"  # the day or the month may come first
    with pytest.warns(UserWarning, match="by: 20 of 20 values of 'title' are different"):
        group("title", [f"title {i}" for i in range(20)])
    with pytest.raises(ValueError, match="by has no known value of 'x'"):
        group("x", [None, np.nan])


def test_rows_of_groups():
    shown = SimpleNamespace(
        rows=np.arange(3), shares=np.array([[0.2, 0.8], [0.4, 0.6], [0.5, 0.5]]), truth=None, response=None,
        known=np.array([True, False, True]), wrong=lambda: np.array([True, False, False]), classes=lambda: None,
    )  # fmt: skip
    of_groups = describe_groups(shown, [Grouping("g", "group", ["x", "y"], np.array([0, 0, 1]))], "y")
    x, y = of_groups[0]["levels"]
    assert x["right"] == 0.0 and y["right"] == 1.0 and x["documents"] == 2  # of those that are known
    assert x["share"] == pytest.approx([0.3, 0.7]) and x["half"] == pytest.approx([0.16, 0.16], abs=0.01)


def test_numbers_outside_their_intervals_are_wrong():
    _, y = fitted("ratings")
    for document in data_of(page_of("ratings"))["documents"]:
        intervals = np.array([row[2:] for row in document["predicted"]], float)
        outside = (y[document["row"]] < intervals[:, 0]) | (y[document["row"]] > intervals[:, 1])
        assert document["wrong"] == outside.any()


def test_many_documents_are_sampled(monkeypatch):
    monkeypatch.setattr(page_module, "MOST_DOCUMENTS", 100)
    monkeypatch.setattr(documents_module, "MOST_DOCUMENTS", 10)
    pipeline, y = fitted("two")
    page = pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], by=BY)
    data = data_of(page)
    assert data["evaluation"]["documents"] == 80 and len(data["documents"]) == 10 and "of which 80" in prose(page)
    assert "of 80 documents (a sample of 240)" in prose(page) and "80 documents, a sample of 240," in prose(page)
    read, typical = {d["row"] for d in data["documents"]}, [own for topic in data["topics"] for own in topic["typical"]]
    assert all(own[3] == str(own[0]) for own in typical) and {own[0] for own in typical} - read
    assert all(d["row"] % 3 == 0 and d["text"] == TEXTS[d["row"]] for d in data["documents"])
    assert [level["documents"] for level in data["groups"][1]["levels"]] == [80, 0]  # every third is of the first group


def shown_of(response, truth, expected, surprise=None, **more):
    """Documents of a page whose predictions and surprises are known; their rows are numbered from 100."""

    def part(docs):
        def of_part(own):
            np.testing.assert_array_equal(own, truth[docs])
            return surprise[docs]

        return SimpleNamespace(surprise=of_part)

    n = len(expected)
    documents = SimpleNamespace(posterior=SimpleNamespace(response=response, supervised=False), part=part)
    none = np.zeros((n, 0))
    shown = Shown(documents, 100 + np.arange(n), [""] * n, truth, np.ones((n, 1)), expected, np.zeros(n), none, none)
    return shown._replace(**more)


def test_which_documents_the_reader_has(monkeypatch):
    """The most surprising ones, one of each kind of error, typical ones, each of them once, and random ones."""
    monkeypatch.setattr(documents_module, "MOST_DOCUMENTS", 24)
    monkeypatch.setattr(documents_module, "MOST_TYPICAL", 3)
    i, rng = np.arange(60), np.random.default_rng(0)
    true, wrong = i % 3, i % 4 == 0
    said = np.where(wrong, (true + 1 + i % 8 // 4) % 3, true)
    truth, surprise = np.eye(3)[true], rng.random(60) - wrong
    truth[:10] = np.nan
    response = Logistic(1.0, classes=np.arange(3))
    shown = shown_of(response, truth, np.eye(3)[said], surprise)
    found = choose(shown, [5, 5, 1, 9, 13]).tolist()
    assert found[:8] == [int(d) for d in np.argsort(-surprise) if d >= 10][:8]
    assert {(true[d], said[d]) for d in found[8:14]} == {(a, b) for a in range(3) for b in range(3) if a != b}
    assert min(found[8:14]) >= 10 and found[14:17] == [5, 1, 9] and len(set(found)) == len(found) == 24
    assert found[17:] != sorted(found[17:])
    assert not shown.wrong()[:10].any() and shown.wrong()[10:].tolist() == wrong[10:].tolist()
    few = shown_of(response, truth[:24], np.eye(3)[said[:24]], surprise[:24])
    assert choose(few, [5]).tolist() == list(range(24)) and first_document(shown) is None
    surprise[12] = np.nan  # as far as is known
    assert first_document(few) == 100 + 10 + np.nanargmax(surprise[10:24])


def test_long_texts_and_small_topics_are_cut():
    texts, shares = ["a" * 2500, "b" * 2501], np.array([[0.5, 0.31, 0.17, 0.02, 0.0], [0.3, 0.25, 0.2, 0.15, 0.1]])
    shares = np.column_stack([shares, 0.3 * shares[:, 4]])
    shown = shown_of(NoResponse(), None, np.zeros((2, 0)), texts=texts, shares=shares)
    second, first = describe_documents(shown, np.array([1, 0]), np.array([]), [], {})
    assert first["text"] == texts[0] and second["text"] == "b" * 2499 + "…"
    assert first["topics"] == [[0, 0.5], [1, 0.31], [2, 0.17], [3, 0.02]] and len(second["topics"]) == 5
    assert (first["row"], second["row"]) == (100, 101)


def test_classes_and_texts_of_responses():
    """The thirds of a number hold their upper edges; numbers are in their own units."""
    truth = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan]])
    two = {"names": np.array(["a", "b"]), "centre": np.array([1.0, 10.0]), "unit": np.array([2.0, 5.0])}
    one = Gaussian(1.0, np.ones(1), names=np.array(["a"]), centre=np.array([7.0]), unit=np.array([2.0]))
    shown = shown_of(one, truth, np.zeros((5, 1)))
    assert shown.classes()[0].tolist() == [0, 0, 1, 2, -1] and true_text(shown, 4) is None
    shown = shown_of(Gaussian(1.0, np.ones(2), multioutput=True, **two), np.array([[0.5, -1.0]]), np.zeros((1, 2)))
    assert shown.classes() is None and true_text(shown, 0) == "2, 5"
    labels = Logistic(1.0, classes=np.array(["x", "y", "z"]), multilabel=True)
    shown = shown_of(labels, np.array([[0.0, 0, 0], [1, np.nan, 1]]), np.zeros((2, 3)))
    assert [true_text(shown, i) for i in (0, 1)] == ["no label", "x, z"] and shown.classes() is None


def test_which_labels_of_a_document_are_explained():
    """Wrong ones first, then those that are predicted, the more probable ones before the others; one at least."""
    response = Logistic(1.0, classes=np.array(list("abcd")), multilabel=True)
    expected = np.array([[0.9, 0.4, 0.8, 0.1], [0.9, 0.4, 0.8, 0.6], [0.3, 0.2, 0.4, 0.1]])
    truth = np.array([[1.0, 1, np.nan, 0], [1, 1, 0, 1], [0, 0, 0, np.nan]])
    shown = shown_of(response, truth, expected)
    assert [[view[0] for view in views_of(shown, i)] for i in range(3)] == [["b", "a", "c"], ["c", "b", "a"], ["c"]]
    assert shown.wrong().tolist() == [True, True, False]


def test_typical_documents_of_each_topic_take_turns():
    topics = [{"typical": [[4, 0.9], [7, 0.8]]}, {"typical": []}, {"typical": [[5, 0.6], [4, 0.3], [9, 0.2]]}]
    assert page_module.typical_rows(topics) == [4, 5, 7, 4, 9]


def test_parts_of_a_view_are_of_topics_that_the_document_has():
    """And a share that is rounded is not 1."""
    found = SimpleNamespace(
        through_topics=np.zeros((0, 2)), direct=np.zeros((0, 2)), total=np.zeros((0, 2)), words=[], constant=np.ones(2),
        omega=np.ones(2), others={}, topics=np.array([[9, 0.5], [9, -2.0], [9, 4.0], [9, 0.1], [9, 0.2]]),
        topic_shares=np.array([0.5, 0.3, 0.0, 0.1, 0.1]),
    )  # fmt: skip
    assert view_parts(found, 1, {})["topics"] == [[1, -2], [0, 0.5], [4, 0.2]]
    assert [share(value) for value in (1.0, 0.9999999, 0.5)] == [1, 0.99999, 0.5]


def test_the_middle_of_several_periods_is_explained():
    response = SimpleNamespace(kind="time", explained=lambda: (["1", "2", "3"], np.eye(3)))
    ((name, against, combine),) = views_of(shown_of(response, None, np.zeros((1, 3))), 0)
    assert (name, against, combine.tolist()) == ("2", None, [0, 1, 0])


def test_few_documents_are_not_called_unsure():
    """Of five or more it is a fifth."""
    pipeline, y = fitted("two")
    for n in (4, 5):
        data = data_of(pipeline[-1].report(TEXTS[1 : n + 1], y[1 : n + 1], vectorizer=pipeline[0]))
        assert sum(document["unsure"] for document in data["documents"]) == n - 4


def test_figures():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    rows = reliability(p, rng.random(4000) < p)
    assert len(rows) == 10 and all(row["lower"] - 0.03 < row["predicted"] < row["upper"] + 0.03 for row in rows)
    good, bad = threshold_counts(np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, True, False, True]))
    assert good[24] == bad[24] == 1 and good[0] == bad[0] == 2 and good[-1] == bad[-1] == 0  # from 0.5, 0.02, 0.98
    truth = np.array([[1.0, 1], [2, 0], [3, 1], [4, 1]])
    np.testing.assert_allclose(kaplan_meier(truth, np.array([0.5, 1.0, 3.5])), [1.0, 0.75, 0.375])
    sure = calibration(np.full(400, 0.99), np.arange(400) % 2 == 0, False, "")
    assert sure["finding"] == "Overconfident" and "99.0\N{NO-BREAK SPACE}% sure on average" in sure["sentence"]
    assert calibration(np.full(400, 0.5), np.arange(400) % 2 == 0, True, "yes")["finding"] == "Calibrated"
    assert calibration(np.repeat([0.2, 0.8], 200), np.arange(400) % 2 == 0, True, "yes")["gap"] == pytest.approx(0.3)
    p = np.linspace(0.05, 0.95, 400)
    assert calibration(p, rng.random(400) < p, True, "yes")["finding"] == "Calibrated"
    turned = calibration(p, rng.random(400) < 1.0 - p, True, "yes")
    assert (
        turned["finding"] == "Right on average"
        and "; but of the documents with a probability of about " in turned["sentence"]
    )
    has = rng.random((50, 4)) < [0.7, 0.5, 0.3, 0.1]
    every = [np.broadcast_to(said, has.shape).ravel() for said in itertools.product([False, True], repeat=4)]
    best = max(f1_score(has.ravel(), said, zero_division=0) for said in every)
    assert same_for_all(has, np.ones_like(has)) == pytest.approx(best)


def test_chains_that_agree():
    """Topics that share no word are found by all chains; those of noise are not."""
    clear = np.kron(np.eye(3, dtype=int), np.full((30, 8), 3))
    model = LDA(3, n_chains=3, burn_in=60, n_draws=5, random_state=0).fit(clear)
    assert (model.topic_agreement() == 1).all()
    noise = np.random.default_rng(0).poisson(0.5, (60, 200))
    model = LDA(10, n_chains=4, burn_in=20, n_draws=2, random_state=0).fit(noise)
    assert model.topic_agreement().mean() < 1 and (model.topic_agreement() >= 0.25).all()


def test_names_of_topics(tmp_path):
    """They are shown everywhere, kept in the file, and forgotten by another fit."""
    vectorizer = CountVectorizer().fit(TEXTS)
    X = vectorizer.transform(TEXTS)
    model = SLDAClassifier(**RUN).fit(X, TWO)
    assert model.topic_name(2) == "" and model.name_topics({2: "<b>printers</b>", 3: "tea"}).topic_name(3) == "tea"
    model.name_topics({3: ""})
    save(make_pipeline(vectorizer, model), tmp_path / "model")
    loaded = load(tmp_path / "model")[-1]
    assert loaded.topic_names_ == model.topic_names_ == {"2": "<b>printers</b>"}
    page = loaded.report(TEXTS[:20], vectorizer=vectorizer)
    assert data_of(page)["topics"][2]["name"] == "<b>printers</b>" and "<b>printers" not in page
    assert (
        "2 &lt;b&gt;printers" in model._repr_html_inner() and "<table>" not in SLDAClassifier()._repr_html_inner()[-9:]
    )
    for wrong in ({6: "x"}, {-1: "x"}, {"a": "x"}, {1: 2}):
        with pytest.raises(ValueError, match=r"names must be \{topic: name\} with topics from 0 to 5"):
            model.name_topics(wrong)
    assert model.fit(X, TWO).topic_names_ == {}


def test_displays():
    import matplotlib

    matplotlib.use("Agg")
    X, names = CountVectorizer().fit_transform(TEXTS), CountVectorizer().fit(TEXTS).get_feature_names_out()
    model = SLDAClassifier(**RUN).fit(X, THREE).name_topics({1: "tea"})
    weights = CoefficientDisplay.from_estimator(model, names, column="three")
    np.testing.assert_allclose(
        weights.mean, np.sort(model.coef_[model.posterior_.response.column_names.index("three")])
    )
    assert any(name == "1 tea" for name in weights.names) and len(weights.ax_.get_yticks()) == 6
    with pytest.raises(ValueError, match="There is no column 'four'; they are"):
        CoefficientDisplay.from_estimator(model, names, column="four")
    topics = TopicDisplay.from_estimator(model, names, topics=[1, 4], n_words=5)
    assert [len(words) for words in topics.words] == [5, 5] and topics.axes_[0].get_title().startswith("1 tea")
    with pytest.raises(ValueError, match="2 topics need 2 axes, got 1"):
        TopicDisplay.from_estimator(model, names, topics=[1, 4], ax=[topics.ax_])
    assert len(TopicDisplay.from_estimator(model, names).axes_) == 6
    trace = TraceDisplay.from_estimator(model, ax=weights.ax_)
    assert trace.ax_ is weights.ax_ and trace.figure_ is weights.figure_ and trace.log_joint.shape[0] == 2
    shown = ReliabilityDisplay.from_estimator(model, X, THREE)
    assert len(shown.predicted) == 10 and shown.name == "the chosen class" and (shown.lower <= shown.observed).all()
    two = ReliabilityDisplay.from_estimator(SLDAClassifier(**RUN).fit(X, TWO), X, TWO)
    assert two.name == "yes"
    with pytest.raises(ValueError, match="of which a document has one"):
        ReliabilityDisplay.from_estimator(MedLDAClassifier(**RUN).fit(X, TWO), X, TWO)
    matplotlib.pyplot.close("all")


def test_pyldavis_keeps_the_order(monkeypatch):
    found = {}

    class Fake:
        @staticmethod
        def prepare(*arrays, sort_topics):
            found["arrays"], found["sorted"] = arrays, sort_topics
            return "prepared"

    monkeypatch.setitem(sys.modules, "pyLDAvis", Fake)
    X = CORPUS.X.copy().tolil()
    X[3] = 0
    model = LDA(4, burn_in=4, n_draws=2, random_state=0).fit(CORPUS.X)
    assert model.to_pyldavis(X.tocsr()) == "prepared" and found["sorted"] is False
    phi, theta, lengths, names, times = found["arrays"]
    np.testing.assert_allclose(phi.sum(axis=1), 1)
    assert theta.shape == (239, 4) and lengths.sum() == times.sum() and len(names) == 120


@pytest.fixture(scope="module")
def browser():
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        pytest.skip("there is no chromium with its driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


class Keys:
    """Of a keyboard, as WebDriver sends them."""

    ENTER, ARROW_RIGHT = "\ue007", "\ue014"


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def texts_of(browser, selector):
    """The texts of elements, read at once: many calls to a browser are slow."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(e => e.offsetParent || e.closest('svg')).map("
        "e => e.textContent)", selector,
    )  # fmt: skip


def click(browser, selector, which=0):
    browser.execute_script(
        "const e = document.querySelectorAll(arguments[0])[arguments[1]];"
        "e.click ? e.click() : e.dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector, which,
    )  # fmt: skip


def write(browser, selector, text):
    browser.execute_script(
        "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}))",
        selector, text,
    )  # fmt: skip


def address(browser):
    return dict(part.split("=") for part in browser.execute_script("return location.hash.slice(1)").split("&") if part)


def no_errors(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page as a file; it must ask for nothing else, say no error, and fit a phone."""

    def open_page(page, width=1280, address=""):
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get("about:blank")
        browser.get_log("performance")
        browser.get(f"file://{tmp_path}/page.html{address}")
        asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        urls = {e["params"]["request"]["url"] for e in asked if e["method"] == "Network.requestWillBeSent"}
        assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in urls), urls
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width

    yield open_page
    assert no_errors(browser)


def test_labels_of_a_document_are_places():
    """The name of a label may hold a comma, so that names joined by commas say too little."""
    _, y = fitted("labels")
    for document in data_of(page_of("labels"))["documents"]:
        assert document["is"] == np.flatnonzero(y[document["row"]]).tolist()


def test_a_class_that_is_called_0():
    pipeline, y = fitted("three")
    numbers = np.searchsorted(np.unique(y), y)
    model = SLDAClassifier(**RUN).fit(pipeline[0].transform(TEXTS), numbers)
    data = data_of(model.report(TEXTS[:20], numbers[:20], vectorizer=pipeline[0], name="team"))
    assert data["targets"]["names"] == data["classes"] == ["0", "1", "2"]


def test_documents_of_the_fit_are_called_so():
    """Whether documents are new to the model is known, known not to be so, or unknown."""
    pipeline, y = fitted("three")
    pages = {test: prose(pipeline[-1].report(TEXTS[:40], y[:40], vectorizer=pipeline[0], test=test))
             for test in (True, False, None)}  # fmt: skip
    held_out = pipeline[-1].held_out_
    honest = (
        f"On {held_out['documents']} documents that the fit held out, {percent(held_out['contributions']['value'])}"
    )
    assert "that were not in the fit" in pages[True] and "too good" not in pages[True] and honest not in pages[True]
    assert "The model has learned from these documents, so this figure is too good." in pages[False]
    assert "It is not known whether" in pages[None] and "It is not known" not in pages[False]
    assert honest in pages[False] and honest in pages[None]


def test_the_mean_of_a_rating_is_that_of_the_fit():
    """The command's base rate is, too."""
    pipeline, y = fitted("rating")
    some = np.argsort(y)[-40:]
    page = pipeline[-1].report([TEXTS[i] for i in some], y[some], vectorizer=pipeline[0])
    column = data_of(page)["evaluation"]["columns"][0]
    assert column["base_error"] == pytest.approx(np.abs(y[some] - y.mean()).mean(), rel=0.01)
    assert column["base_score"] == pytest.approx(r2_score(y[some], np.full(40, y.mean())), rel=0.01)


def test_what_a_reader_compares(opened, browser):
    """Axes have two ticks, documents one name everywhere, grades go up and down, headings are repeated on paper."""
    pipeline, y = fitted("grades")
    names = [f"id-{i}" for i in range(len(TEXTS))]
    opened(pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], name="stars", rows=names))
    assert len(texts_of(browser, "#panels .axis span")) >= 2
    assert all(text.startswith("read id-") for text in texts_of(browser, "#typical button"))
    assert texts_of(browser, "#panes .keys")[0] == "raises lowers stars"
    assert browser.execute_script("return someTicks(-0.85, 0.75, 3).length") >= 2
    opened(page_of("three"), 390)
    assert browser.execute_script("return document.querySelector('.waterfall').viewBox.baseVal.width") == 360
    opened(page_of("three"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = browser.execute_script(
        "return getComputedStyle(document.querySelector('#cells thead th:not(:first-child) > *')).display"
    )
    dark = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": "", "features": [{"name": "prefers-color-scheme", "value": ""}]}
    )
    assert shown == "contents"  # Chromium does not repeat the box of a button in the heading of the next sheet
    assert paper == "rgb(255, 255, 255)"
    click(browser, "#panes button")  # keep it beside
    click(browser, "#documents button", 2)
    widths = "return [...document.querySelectorAll('.waterfall')].map(e => e.viewBox.baseVal.width)"
    assert browser.execute_script(widths) == [360, 360]


@pytest.mark.parametrize("name", MODELS)
def test_every_page_in_a_browser(opened, browser, name):
    for width in (1280, 390) if name in ("three", "labels", "rating") else (1280,):
        opened(page_of(name), width)
        assert browser.execute_script("return window.broken") is None and not find(browser, "#bold")
        assert len(texts_of(browser, "#panels .panel")) >= 1 and len(texts_of(browser, "#documents li")) == 40
        if width == 1280:
            assert len(texts_of(browser, "#map circle")) == len(find(browser, "#list tbody tr"))
            assert len(texts_of(browser, "#evaluation table, #evaluation svg")) >= 2
            click(browser, "#list tbody button")
            click(browser, "#panels button[data-topic]")
        parts, whole = re.search(
            r"add up to (\S+); the model's score is (\S+)\. (?:The level is|In the tables)",
            texts_of(browser, ".sum")[0],
        ).groups()
        assert parts == whole or abs(as_number(parts) - as_number(whole)) <= 0.02 * max(abs(as_number(whole)), 0.1)
        assert texts_of(browser, "#panes svg rect")
        words = browser.execute_script("return document.querySelector('main').innerText")
        assert not re.search(r"\b(null|undefined|NaN)\b|\[object", words)


def as_number(text):
    return float(text.replace("\N{MINUS SIGN}", "-"))


def test_hostile_names_and_texts(opened, browser):
    names = ["</script><script>window.broken = 1</script>", "{{ 7 * 7 }}{% x %}", "=cmd|' /C calc'!A0" + "x" * 3000]
    y = np.array(names)[CORPUS.doc_topic[:, :3].argmax(axis=1)]
    texts = [text.replace("w01", "\u202e</title>\x00\U0001f600" + "a" * 5000) for text in TEXTS]
    model = SLDAClassifier(**RUN).fit(texts, y).name_topics({0: "<img src=x onerror=alert(1)>" * 20, 1: "__proto__"})
    page = model.report(texts, y, title="<b id=bold>" * 300, by={"constructor": ["<i>", "{{x}}"] * 120}, name="{{x}}")
    assert "49" not in prose(page)[:3000] and "{{x}}" in prose(page)
    for width in (1280, 390):
        opened(page, width)
        assert browser.execute_script("return window.broken") is None and not find(browser, "#bold")
    browser.execute_script("document.querySelectorAll('#more, #list button, #cells td').forEach(e => e.click())")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_a_large_page_is_small_and_opens_quickly(opened, browser, monkeypatch, short_regressions):
    monkeypatch.setattr(documents_module, "MOST_DOCUMENTS", 150)
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{w}" for w in rng.integers(0, 1500, 400)) for _ in range(240)]
    y = np.array([f"a class with a name {i % 20}" for i in range(240)])
    model = SLDAClassifier(100, n_chains=1, burn_in=1, n_draws=1, random_state=0, calibrate=False).fit(texts, y)
    page = model.report(texts, y)
    assert len(page.encode()) < 2_000_000 and len(data_of(page)["documents"]) == 150
    opened(page)
    assert browser.execute_script("return performance.getEntriesByType('navigation')[0].domInteractive") < 5000  # ms
    assert len(find(browser, "#cells td")) == 2000


def test_a_click_filters_the_page(opened, browser):
    data = data_of(page_of("three"))
    opened(page_of("three"))
    chosen = int(find(browser, "#panels button[data-topic]")[0].get_attribute("data-topic"))
    click(browser, "#panels button[data-topic]")  # a topic and its class
    shown = address(browser)
    assert int(shown["topic"]) == chosen and shown["class"] == str(data["start"])
    assert find(browser, "#name")[0].get_attribute("value") == data["topics"][chosen]["name"]
    row = find(browser, f"#cells td[data-k='{chosen}'].on")[0]
    assert row.get_attribute("data-r") == shown["class"]
    own = [d for d in data["documents"] if chosen in [k for k, _ in d["topics"]]]
    own = [d for d in own if data["start"] in (d["is"], d["said"])]
    rows = [text.split()[0] for text in texts_of(browser, "#documents .head")]
    assert rows == [str(d["row"]) for d in own]
    assert len(texts_of(browser, "#filters .chip")) == 3  # with "remove all"
    browser.back()
    assert texts_of(browser, "#filters .chip") == [] and len(texts_of(browser, "#documents li")) == 40
    click(browser, "#panes mark[data-word]")
    word = address(browser)["word"]
    assert word in texts_of(browser, "#answer")[0] + find(browser, "#ask")[0].get_attribute("value")
    assert all(word in d["text"].lower() for d in data["documents"] if str(d["row"]) in [
        text.split()[0] for text in texts_of(browser, "#documents .head")])  # fmt: skip
    click(browser, "#filters .chip")
    opened(page_of("three"))
    click(browser, "#typical mark")
    assert address(browser)["word"] == texts_of(browser, "#typical mark")[0].lower()
    opened(page_of("three"), address="#class=1&topic=2&word=w01&doc=7")
    assert len(texts_of(browser, "#filters .chip")) == 4 and find(browser, "#class")[0].get_attribute("value") == "1"
    for cell in ("abc", "9,9", "0,3", "3,0"):
        opened(page_of("three"), address=f"#class=99&topic=x&doc=-1&cell={cell}&beside=%3Cb%3E&which=all")
        assert texts_of(browser, "#filters .chip") == []


def test_the_cells_of_tables(opened, browser):
    data = data_of(page_of("three"))
    opened(page_of("three"))
    coloured = browser.execute_script(
        "return [...document.querySelectorAll('#cells td.towards, #cells td.away')].map("
        "e => [+e.dataset.k, +e.dataset.r])")  # fmt: skip
    assert sorted(map(tuple, coloured)) == [(k, t) for k, topic in enumerate(data["topics"]) for t in topic["clear"]]
    for what, n in (("weight", 3), ("share", 3), ("correlation", 6), ("effect", 3)):
        click(browser, f"input[name=show][value={what}]")
        assert len(find(browser, "#cells thead th")) == n + 1
        assert texts_of(browser, "#heat-title") == ["Topics against " + ("topics" if n == 6 else "classes")]
        if what == "correlation":
            cells = np.array(texts_of(browser, "#cells td")).reshape(6, 6)
            assert (np.diag(cells) == "").all() and all(
                re.fullmatch("|0[.]00|[+\N{MINUS SIGN}][01][.][0-9]{2}", x) for x in cells.ravel()
            )
    cells = texts_of(browser, "#confusion tbody td")
    table = np.array([int(text.replace("\N{MIDDLE DOT}", "0")) for text in cells]).reshape(3, 3)
    assert table.sum() == 240 and np.trace(table) == 240 * data["evaluation"]["score"]
    click(browser, "#confusion tbody tr:nth-child(2) td:nth-child(3)")
    assert address(browser)["cell"] == "1%2C1" and "true class “" in texts_of(browser, "#cell-documents")[0]
    links = texts_of(browser, "#cell-documents li button")
    assert links and "decided by" in texts_of(browser, "#cell-documents li")[0]
    click(browser, "#cell-documents li button")
    assert address(browser)["doc"] == links[0].split(":")[0]
    browser.execute_script("document.querySelector('#cells td').focus()")
    find(browser, "#cells td")[0].send_keys(Keys.ARROW_RIGHT, Keys.ENTER)
    assert address(browser)["class"] == "1"


def test_a_threshold_moves_everything(opened, browser):
    opened(page_of("two"))
    data = data_of(page_of("two"))["evaluation"]
    p, truth = np.array(data["p"]), np.array(data["truth"])
    write(browser, "#threshold", "80")
    expected = np.array([[np.sum((truth == i) & ((p >= 0.8) == j)) for j in (0, 1)] for i in (0, 1)])
    own = [int(text.replace("\N{MIDDLE DOT}", "0")) for text in texts_of(browser, "#confusion tbody td")]
    assert own == expected.ravel().tolist() and "0.80. This finds" in texts_of(browser, "#chosen")[0]
    assert percent(np.mean(truth == (p >= 0.8))) in texts_of(browser, "#figures")[0]
    opened(page_of("three"))
    write(browser, "#threshold", "99")
    assert "get an answer" in texts_of(browser, "#figures")[0] and len(find(browser, "#confusion thead th")) == 5
    opened(page_of("labels"))
    click(browser, "#by-class tbody button", 1)
    before = texts_of(browser, "#figures")[0]
    write(browser, "#threshold", "47")
    assert texts_of(browser, "#figures")[0] != before and "micro F1" in before
    click(browser, "#label .chip")
    assert "missed" in texts_of(browser, "#filters")[0]
    label = int(address(browser)["class"])
    missed = "return data.documents.filter(d => d.is.includes(arguments[0]) && !labelSaid(d, arguments[0])).length"
    assert len(texts_of(browser, "#documents li")) == browser.execute_script(missed, label) < 40


def test_the_reader(opened, browser):
    opened(page_of("three"))
    body = find(browser, "body")[0]
    rows = [text.split()[0] for text in texts_of(browser, "#documents .head")]
    body.send_keys("j")
    assert address(browser)["doc"] == rows[1]
    body.send_keys("j", "k")
    assert f"Document {rows[1]}" in texts_of(browser, "#panes h3")[0]
    click(browser, "#panes button")  # keep it beside
    body.send_keys("j")
    assert [t for t in texts_of(browser, "#panes h3") if t.startswith("Document")] == [
        f"Document {rows[2]}",
        f"Document {rows[1]}",
    ]
    score = texts_of(browser, ".sum")[0]
    click(browser, "#panes article:first-child .chips [role=group] button, #panes article:first-child .chips button", 1)
    assert texts_of(browser, ".sum")[0] != score and " against " in score
    write(browser, "#search", "window.broken")
    assert len(texts_of(browser, "#documents li")) == 1
    assert "<script>window.broken = 1</script>" in texts_of(browser, ".text")[0]
    write(browser, "#search", "nothing has this")
    assert "No document of this page matches" in texts_of(browser, "#no-document")[0]
    assert "texts with “nothing has this”" in texts_of(browser, "#filters")[0] and address(browser)["search"]
    click(browser, "#filters .chip")
    assert find(browser, "#search")[0].get_attribute("value") == ""
    assert browser.execute_script("return document.querySelectorAll('#documents [tabindex=\"0\"]').length") == 1
    before, now = address(browser)["doc"], find(browser, "#documents [aria-current]")[0]
    now.send_keys("\ue015")  # the arrow down
    assert address(browser)["doc"] != before and browser.switch_to.active_element.get_attribute("aria-current")
    click(browser, "input[name=which][value=wrong]")
    wrong = [d for d in data_of(page_of("three"))["documents"] if d["wrong"]]
    assert len(texts_of(browser, "#documents li")) == len(wrong) and address(browser)["which"] == "wrong"
    opened(page_of("three"), address="#which=unsure")
    assert find(browser, "input[name=which][value=unsure]")[0].is_selected()
    assert len(texts_of(browser, "#documents li")) == sum(d["unsure"] for d in data_of(page_of("three"))["documents"])


def test_names_of_topics_reach_everything(opened, browser, tmp_path):
    opened(page_of("three"), address="#topic=2")
    for text in ("=1+1", "tea & <cake>"):
        write(browser, "#name", text)
        assert any(text in row for row in texts_of(browser, "#list th[scope=row]"))
        if text == "=1+1":  # which a spreadsheet would run
            assert ",'=1+1," in downloaded(browser, "[data-csv=topics]")
    for place in ("#list th[scope=row]", "#cells th[scope=row]", "#map title", "#filters"):
        assert any("tea & <cake>" in text for text in texts_of(browser, place)), place
    box = find(browser, "#name")[0]
    box.send_keys(Keys.ENTER)
    assert "\n" not in box.get_attribute("value") and browser.switch_to.active_element != box
    saved = downloaded(browser, "#save")
    assert saved.count("<circle") == 0 and data_of(saved)["topics"][2]["name"] == "tea & <cake>"
    opened(saved, address="#topic=2")
    assert find(browser, "#name")[0].get_attribute("value") == "tea & <cake>" and len(find(browser, "#map circle")) == 6
    assert len(find(browser, "#class option")) == 4
    before = texts_of(browser, "#card .barrow .label")
    write(browser, "#frex", "0")
    words = data_of(saved)["topics"][2]["words"]
    frequent = [w[0] for w in sorted(words, key=lambda w: -w[3])]
    assert texts_of(browser, "#card .barrow .label")[0] == frequent[0] and len(before) >= 5
    for what in ("documents", "effects", "groups", "confusion"):
        assert downloaded(browser, f"[data-csv={what}]").count("\n") > 5


def test_words_groups_and_two_models(opened, browser):
    (pipeline, y), (other, _) = fitted("three"), fitted("separate")
    page = pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], other=other, by=BY)
    opened(page)
    data = data_of(page)
    word = data["topics"][0]["words"][0][0]
    write(browser, "#ask", word)
    assert "Topics of its tokens" in texts_of(browser, "#answer")[0]
    write(browser, "#ask", "neverseen")
    assert "is not among the words" in texts_of(browser, "#answer")[0]
    write(browser, "#find", "neverseen")
    assert "No topic has that word" in texts_of(browser, "#no-topic")[0]
    assert len(texts_of(browser, "#shares .panel")) == 7 and "2024" not in texts_of(browser, "#shares")[0]
    write(browser, "#grouping", "2")
    assert len(texts_of(browser, "#shares polyline.band")) == 6 and "2024-01" in texts_of(browser, "#shares")[0]
    assert len(texts_of(browser, "#compared tbody tr")) == 6
    assert "The difference is" in texts_of(browser, "#compared")[0]
    opened(LDA(3, burn_in=2, n_draws=2, random_state=0).fit(TEXTS).report(TEXTS))
    assert len(find(browser, "#map circle")) == 3 and find(browser, "#panes mark") and not find(browser, "#heat")


def test_what_can_be_read(opened, browser):
    """Contrast of 4.5, headings that the navigation does not cover, a phone's sections, and a complete print."""
    pipeline, y = fitted("three")
    wrong = pipeline[-1].report(TEXTS[:30], np.roll(y[:30], 1), vectorizer=pipeline[0])
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        for page in (page_of("three"), wrong):
            opened(page, address="#which=wrong" if page is wrong else "")
            worst = browser.execute_script(CONTRAST)
            assert worst[0] >= 4.5, worst
        assert find(browser, ".entry[aria-current] .wrong")
    for anchor in ("#heat", "#reader"):
        click(browser, f"nav a[href='{anchor}']")
        top, under = browser.execute_script(
            "return [document.querySelector(arguments[0] + ' h2').getBoundingClientRect().top,"
            "document.querySelector('nav').getBoundingClientRect().bottom]", anchor)  # fmt: skip
        assert top >= under
    opened(page_of("three"), 390)
    sections = [section.get_attribute("id") for section in find(browser, "section") if section.is_displayed()]
    assert sections == ["drivers", "reader"]
    click(browser, "#panels button[data-topic]")
    assert find(browser, "#panels #card")[0].is_displayed()  # below the topic that was touched
    click(browser, "#more")
    assert find(browser, "#topics #card")[0].is_displayed()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert find(browser, "#made details")[0].get_attribute("open") is not None
    assert "We fitted" in texts_of(browser, "#methods")[0]
    assert browser.execute_script("return document.querySelector('.skip').getAttribute('href')") == "#drivers"


CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgb(colour, under) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = `rgb(${under})`; canvas.fillRect(0, 0, 1, 1);
  canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
function behind(e) {
  const layers = [];
  for (let at = e; at; at = at.parentElement) layers.unshift(getComputedStyle(at).backgroundColor);
  return layers.reduce((under, colour) => rgb(colour, under), [255, 255, 255]);
}
const light = c => {
  const [r, g, b] = c.map(v => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b; };
let worst = [99, ''];
for (const e of document.querySelectorAll('body *')) {
  if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  const under = behind(e), text = rgb(getComputedStyle(e).color, under);
  const [a, b] = [light(under), light(text)].sort((x, y) => y - x);
  const found = (a + .05) / (b + .05);
  if (found < worst[0]) worst = [found, e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 40)];
}
return worst;
"""


def downloaded(browser, selector):
    """What a click would save."""
    return browser.execute_async_script(
        """
        const [selector, done] = arguments, make = URL.createObjectURL;
        URL.createObjectURL = blob => { blob.text().then(done); URL.createObjectURL = make; return make(blob); };
        document.querySelector(selector).click();
        """,
        selector,
    )


def test_the_base_rate_is_one_number():
    """A document's score starts from the base rate of the panels; the level is what else all documents have."""
    for name in ("rating", "two", "three"):
        page = data_of(page_of(name))
        before = page["targets"]["before"]
        for document in page["documents"]:
            for view in document["views"]:
                if name == "rating":
                    assert view["base"] == pytest.approx(before[0], rel=6e-3)
                elif name == "two":
                    p = before[0] if view["of"] == "yes" else 1.0 - before[0]
                    assert view["base"] == pytest.approx(np.log(p / (1.0 - p)), abs=0.02)
                elif view["against"]:
                    a, b = (before[page["classes"].index(view[side])] for side in ("of", "against"))
                    assert view["base"] * (a - b) >= 0.0


def test_circles_have_the_area_of_their_share():
    """Also where there are few topics."""
    size = np.array([0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose((radii(size) / radii(size)[0]) ** 2, size / size[0])
    assert radii(size).max() <= 0.08 and radii(np.full(100, 0.01)).min() >= 0.013


def test_shares_by_label_and_the_label_that_comes_first():
    """A document counts for each of its labels; the page starts with the label that most documents have."""
    (pipeline, y), data = fitted("labels"), data_of(page_of("labels"))
    levels = data["groups"][0]["levels"]
    assert [level["documents"] for level in levels] == y.sum(axis=0).tolist()
    assert data["start"] == y.sum(axis=0).argmax()
    shares = pipeline[-1].transform(pipeline[0].transform(TEXTS))
    np.testing.assert_allclose(levels[1]["share"], shares[y[:, 1] == 1].mean(axis=0), atol=2e-3)
    unlabelled = data_of(fitted("three")[0][-1].report(TEXTS[:20], vectorizer=fitted("three")[0][0]))
    assert unlabelled["start"] == np.argmax(unlabelled["targets"]["before"])


def test_the_weakest_class():
    """It may be one that too much is taken for."""
    evaluation = {
        "kind": "classes",
        "names": ["a", "b"],
        "truth": [0] * 5 + [1] * 20,
        "said": [0] * 5 + [0] * 6 + [1] * 14,
    }
    assert worst_of(evaluation).text == "F1 0.62; 5 of 5 are found, and it is predicted for 6 others."


def test_the_reader_follows_the_thresholds(opened, browser):
    """What is said of a document, whether it is wrong, and the figures of labels."""
    data = data_of(page_of("two"))
    opened(page_of("two"))
    write(browser, "#threshold", "90")
    heads = texts_of(browser, "#documents .head")
    for document, head in zip(data["documents"], heads, strict=True):
        said = int(document["p"][1] >= 0.9)
        assert head.split()[1] == data["classes"][said] and ("✗" in head) == (said != document["is"])
    click(browser, "input[name=which][value=wrong]")
    wrong = [d for d in data["documents"] if (d["p"][1] >= 0.9) != d["is"]]
    assert wrong and len(texts_of(browser, "#documents .head")) == len(wrong)
    opened(page_of("three"))
    write(browser, "#threshold", "100")
    assert any(
        "no answer" in head and "✓" not in head and "✗" not in head for head in texts_of(browser, "#documents .head")
    )
    data = data_of(page_of("labels"))
    opened(page_of("labels"), address=f"#class={data['start']}")
    assert "all labels of" in texts_of(browser, "#figures")[0]
    write(browser, "#threshold", "48")
    label = data["evaluation"]["labels"][data["start"]]
    good, bad = (counts[48] for counts in label["counts"])
    right = sum(
        other["at"][0] + other["documents"] - other["has"] - other["at"][1] for other in data["evaluation"]["labels"]
    )
    right += good - label["at"][0] - bad + label["at"][1]
    shown = percent(right / sum(other["documents"] for other in data["evaluation"]["labels"]))
    assert shown in texts_of(browser, "#figures")[0] and "all labels of" not in texts_of(browser, "#figures")[0]
    heads = [re.split("[✗✓]", head)[0].split(maxsplit=1)[1] for head in texts_of(browser, "#documents .head")]
    said = [label["name"] in head.strip().split(", ") for head in heads]
    listed = [d for d in data["documents"] if data["start"] in d["is"] or d["p"][data["start"]] >= 0.98]
    assert said == [d["p"][data["start"]] >= 0.98 for d in listed]


def test_an_unknown_label_is_no_false_alarm(opened, browser):
    y = (CORPUS.doc_topic > 0.3).astype(float)
    y[:, 1] = np.where(np.arange(240) % 4 > 0, np.nan, y[:, 1])
    pipeline, _ = fitted("labels")
    page = pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0])
    data = data_of(page)
    assert all(("unknown" in d) == (d["row"] % 4 > 0) for d in data["documents"])
    opened(page, address="#class=1")
    write(browser, "#threshold", "0")
    click(browser, "#label .chip", 1)
    rows = [int(text.split(":")[0]) for text in texts_of(browser, "#label li button")]
    false = [d["row"] for d in data["documents"] if d["row"] % 4 == 0 and 1 not in d["is"] and d["p"][1] >= 0.02]
    assert sorted(rows) == sorted(false)[:20] and len(false) <= 20


def test_documents_of_a_word_have_the_whole_word(opened, browser):
    texts = ["art and " + text for text in TEXTS[1:15]] + ["start the party, " + text for text in TEXTS[15:30]]
    texts += ["中文字 " + text for text in TEXTS[30:40]]
    y = TWO[1:40]
    model = SLDAClassifier(**RUN).fit(texts, y)
    opened(model.report(texts, y), address="#word=art")
    assert "14 documents of this page" in texts_of(browser, "#answer")[0]
    assert texts_of(browser, "#answer li button")[0].split(": ")[1].startswith("art and")
    opened(model.report(texts, y), address="#word=the%20party")
    assert "15 documents of this page" in texts_of(browser, "#answer")[0]
    opened(model.report(texts, y), address="#word=文")  # a word of a language without spaces
    assert "10 documents of this page" in texts_of(browser, "#answer")[0]


def test_scores_without_responses_are_no_probabilities(opened, browser):
    pipeline, _ = fitted("hinge")
    opened(pipeline[-1].report(TEXTS[:20], vectorizer=pipeline[0]))
    assert "%" not in texts_of(browser, "#panes .finding")[0] and "log-odds" not in texts_of(browser, "#panes svg")[0]


def test_colours_of_two_classes_stay(opened, browser):
    """Blue is towards the second class, as the page says, whichever class is chosen."""
    kinds = []
    for chosen in ("", "#class=0", "#class=1"):
        opened(page_of("two"), address=chosen)
        kinds.append(browser.execute_script(
            "return [...document.querySelectorAll('#map circle')].map("
            "e => [e.dataset.topic, e.classList.contains('away')])"
        ))  # fmt: skip
    assert kinds[0] == kinds[1] == kinds[2] and {away for _, away in kinds[0]} == {True, False}


def test_a_click_keeps_the_focus_and_what_is_scrolled(opened, browser):
    """Who uses the keyboard goes on from the place of the click."""
    opened(page_of("three"))
    for selector in ("#panels button[data-topic]", "#list tbody button", "#cells td:nth-child(3)",
                     "#confusion td:nth-child(3)", "#by-class tbody button", "#panes .chips .chip"):  # fmt: skip
        element = find(browser, selector)[0]
        own = "const e = document.activeElement; return [e.tagName, e.dataset.topic, e.dataset.k, e.textContent]"
        browser.execute_script("arguments[0].focus()", element)
        before = browser.execute_script(own)
        element.send_keys(Keys.ENTER)
        assert browser.execute_script(own) == before and before[0] != "BODY"
        browser.execute_script("set({class: null, topic: null, cell: null})")
    y = np.array([f"class {i % 40:02d}" for i in range(240)])
    opened(SLDAClassifier(**(RUN | {"burn_in": 1, "n_draws": 1, "n_chains": 1})).fit(TEXTS, y).report(TEXTS, y))
    box = "document.querySelector('#confusion .scroll')"
    browser.execute_script(f"{box}.scrollTop = 200")
    click(browser, "#confusion td", 900)
    assert browser.execute_script(f"return {box}.scrollTop") == 200


def test_numbers_of_a_waterfall(opened, browser):
    """The base rate and the total have no more digits than the parts."""
    opened(page_of("three"))
    assert browser.execute_script(
        "const view = {...data.documents[0].views[0], base: 0.00229, score: 2.5};"
        "return waterfall(view).querySelector('text.base').textContent"
    ) in ("0", "0.002")  # fmt: skip
    nothing = browser.execute_script(
        "return sumText({of: 'a', base: 1, constant: 1, score: 1, beside: [], words: [], spans: [], rest: [0, 0, 0]})"
    )
    assert "1 part adds up to 1" in nothing and "level" not in nothing


def test_the_words_that_decided_are_of_what_was_said(opened, browser):
    """Of the label of the list, for or against it; of a grade that is too low those that lower it."""

    def words_of(data, view, sign):
        added = {data["words"][w]: sign * (a + b) for w, a, b in view["words"]}
        return [w for w in sorted(added, key=lambda w: -added[w]) if added[w] > 0][:6]

    y = (CORPUS.doc_topic > 0.3).astype(int)
    wrong = np.where(np.arange(240)[:, None] % 3 == 0, 1 - y, y)  # many errors
    pipeline, _ = fitted("labels")
    page = pipeline[-1].report(TEXTS, wrong, vectorizer=pipeline[0])
    data, seen = data_of(page), 0
    for label, kind in ((1, 0), (2, 0), (2, 1)):
        opened(page, address=f"#class={label}&cell={label},{kind}")
        for text in texts_of(browser, "#label li"):
            document = next(d for d in data["documents"] if d["row"] == int(text.split(":")[0]))
            views = [view for view in document["views"] if view["of"] == data["classes"][label]]
            expected = words_of(data, views[0], 1 if kind else -1) if views else []
            assert text.endswith("decided by " + ", ".join(expected)) if expected else "decided by" not in text
            seen += document["views"][0]["of"] != data["classes"][label]
    assert seen  # documents whose first view is of another label
    pipeline, y = fitted("grades")
    page = pipeline[-1].report(TEXTS, 3 - y, vectorizer=pipeline[0])
    data = data_of(page)
    document = next(d for d in data["documents"] if d["said"] < d["is"])
    opened(page, address=f"#cell={document['is']},{document['said']}")
    text = next(t for t in texts_of(browser, "#cell-documents li") if t.startswith(f"{document['row']}:"))
    assert text.endswith("decided by " + ", ".join(words_of(data, document["views"][0], -1)))


def test_numbers_with_units_of_their_own(opened, browser):
    """Several ratings have an axis and digits each, and cells are coloured by their own column."""
    y = np.column_stack([CORPUS.doc_topic @ [1.0, 2.0, 4.0, 0.0], 0.001 * CORPUS.doc_topic[:, 0]])
    model = SLDARegressor(**RUN).fit(TEXTS, pd.DataFrame(y, columns=["large", "small"]))
    page = model.report(TEXTS, y)
    data = data_of(page)
    opened(page)
    panels = find(browser, "#panels .panel")
    for r, panel in enumerate(panels):
        rows = panel.find_elements("css selector", "button.row")
        effects = [data["topics"][int(row.get_attribute("data-topic"))]["effect"][0][r] for row in rows]
        assert rows
        for row, effect in zip(rows, effects, strict=True):
            text = row.find_element("css selector", ".value").text.replace("\N{MINUS SIGN}", "-")
            assert float(text) == pytest.approx(effect, rel=0.1, abs=0.01 * max(map(abs, effects)))
        places = browser.execute_script(
            "return [...arguments[0].querySelectorAll('.dot')].map(e => parseFloat(e.style.left))", panel
        )
        assert max(places) > 60 or min(places) < 40  # not all at 0, as the larger unit would have it
    assert all(", " in head for head in texts_of(browser, "#documents .head b"))  # both predictions
    sure = [topic["effect"][0][1] for topic in data["topics"] if 1 in topic["clear"]]
    best = next(k for k, topic in enumerate(data["topics"]) if topic["effect"][0][1] == max(sure, key=abs))
    assert "55%" in find(browser, f"#cells td[data-k='{best}'][data-r='1']")[0].get_attribute("style")


def test_risks_are_named_once(opened, browser):
    opened(page_of("time"))
    assert "low risk middle risk high risk" in " ".join(texts_of(browser, "#evaluation .keys")[0].split())
    assert "risk" not in " ".join(texts_of(browser, "#evaluation svg text"))


def test_topics_have_one_name():
    """Pages about different documents, the terminal and the server call a topic the same."""
    pipeline, _ = fitted("three")
    names = pipeline[0].get_feature_names_out()
    for texts in (TEXTS, TEXTS[100:120]):
        data = data_of(pipeline[-1].report(texts, vectorizer=pipeline[0]))
        called = [f"{k} {topic['name']}" for k, topic in enumerate(data["topics"])]
        assert called == topic_labels(pipeline[-1].posterior_, names)


def test_the_bars_of_a_waterfall_are_told_apart_in_the_dark(opened, browser):
    """Their key names widths, as light and dark change places; and it is inside of a phone."""
    for width in (1280, 390):
        opened(page_of("three"), width)
        title, right = browser.execute_script(
            "const e = [...document.querySelectorAll('.waterfall text')].at(-1), box = e.getBBox();"
            "return [e.textContent, box.x + box.width - e.ownerSVGElement.viewBox.baseVal.width]"
        )
        assert "thin" in title and "dark" not in title and right <= 0
