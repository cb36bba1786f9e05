"""The page of a model: what it says, that it is safe, and that it works in a browser."""

import json
import re
import shutil
import sys
import time

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from supertopic import (
    LDA,
    CoefficientDisplay,
    MedLDAClassifier,
    ReliabilityDisplay,
    SLDAClassifier,
    SLDACountRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    TopicDisplay,
    TraceDisplay,
    explain,
    load,
    save,
)
from supertopic.datasets import make_corpus
from supertopic.inference.predict import NewDocuments
from supertopic.report.evaluate import reliability, threshold_curve
from supertopic.report.page import make_page

CORPUS = make_corpus(n_docs=240, n_topics=4, n_words=120, random_state=1)
TEXTS = [
    " ".join(f"w{w:02d}" for w in row.indices.repeat(row.data)) for row in (CORPUS.X[[i]].tocsr() for i in range(240))
]
TEXTS[0] = '<script>window.broken = 1</script> </script><b id=bold>bold</b> & "quoted" ' + TEXTS[0]
RUN = {"n_topics": 6, "n_chains": 2, "burn_in": 15, "n_draws": 8, "random_state": 0}
THREE = np.array(["<i>one</i>", "two & a half", "three"])[CORPUS.doc_topic[:, :3].argmax(axis=1)]
TWO = np.where(CORPUS.doc_topic[:, 0] > 0.25, "yes", "no")
MODELS = {
    "three": (SLDAClassifier, THREE, {}),
    "two": (SLDAClassifier, TWO, {}),
    "sticks": (SLDAClassifier, THREE, {"multiclass": "stick_breaking"}),
    "separate": (SLDAClassifier, THREE, {"multiclass": "separate"}),
    "labels": (SLDAClassifier, (CORPUS.doc_topic > 0.3).astype(int), {}),
    "hinge": (MedLDAClassifier, THREE, {}),
    "rating": (SLDARegressor, CORPUS.doc_topic @ [1.0, 2.0, 4.0, 0.0], {}),
    "grades": (SLDAOrdinalClassifier, np.digitize(CORPUS.doc_topic @ [1.0, 2.0, 4.0, 0.0], [1.0, 1.8, 2.6]), {}),
    "count": (SLDACountRegressor, np.rint(CORPUS.doc_topic @ [1.0, 5.0, 20.0, 2.0]), {"words": False}),
}


def page_of(name):
    kind, y, more = MODELS[name]
    pipeline = make_pipeline(CountVectorizer(), kind(**RUN, **more)).fit(TEXTS, y)
    page = pipeline[-1].report(TEXTS, y, vectorizer=pipeline[0], title="A <page>", test=name == "two")
    return pipeline, y, page


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
@pytest.mark.parametrize("name", MODELS)
def test_every_response_has_a_page(name):
    pipeline, y, page = page_of(name)
    data, model = data_of(page), pipeline[-1]
    assert "A &lt;page&gt;" in page and "<script>window.broken" not in page and len(page) < 2_000_000
    assert not re.search(r"(?:src|href)=.(?:https?:)?//", page)  # it asks nobody
    assert len(data["topics"]) == model._n_features_out and data["columns"] == model.posterior_.response.column_names
    np.testing.assert_allclose([topic["weights"] for topic in data["topics"]], model.coef_.T)
    for document in data["documents"]:
        parts = document["constant"] + document["covariates"] + sum(t + d for _, t, d in document["words"])
        assert parts == pytest.approx(document["omega"], abs=1e-3)
    one = data["documents"][5]
    explained = explain(pipeline, TEXTS[one["number"]])
    assert one["omega"] == pytest.approx(explained.omega[explained.column], rel=1e-9)
    evaluation = data["evaluation"]
    assert evaluation["documents"] == 240 and evaluation["test"] == (name == "two")
    X = pipeline[0].transform(TEXTS)
    if evaluation["kind"] == "classes":
        assert evaluation["accuracy"] == pytest.approx(model.score(X, y), abs=0.02)
        assert np.sum(evaluation["confusion"]) == 240
    elif evaluation["kind"] == "numbers":
        assert evaluation["r2"] == pytest.approx(model.score(X, y)) if name == "rating" else evaluation["r2"] > 0


def test_unknown_responses_and_none(tmp_path):
    y = TWO.astype(object)
    y[::3] = None
    model = SLDAClassifier(**RUN).fit(CountVectorizer().fit_transform(TEXTS), y)
    vectorizer = CountVectorizer().fit(TEXTS)
    page = model.report(TEXTS, y, tmp_path / "page.html", vectorizer=vectorizer)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert data_of(page)["evaluation"]["documents"] == 160
    assert data_of(model.report(TEXTS[:4], vectorizer=vectorizer))["evaluation"] is None
    with pytest.raises(ValueError, match="vectorizer is the fitted one"):
        model.report(TEXTS)
    topics = LDA(3, burn_in=2, n_draws=2).fit(vectorizer.transform(TEXTS))
    assert not hasattr(topics, "report")
    X = vectorizer.transform(TEXTS)
    documents = NewDocuments(topics.posterior_, X, X, *(np.zeros((len(TEXTS), n)) for n in (0, 0, 1)))
    with pytest.raises(AttributeError, match="The model has no response"):
        make_page(documents, TEXTS, None, vectorizer.get_feature_names_out(), "A page", "LDA")


def test_figures():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    rows = reliability(p, rng.random(4000) < p)
    assert len(rows) == 10 and all(row["lower"] - 0.03 < row["predicted"] < row["upper"] + 0.03 for row in rows)
    half = threshold_curve(np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, True, False, True]))[24]
    assert half["threshold"] == pytest.approx(0.5) and half["found"] == half["precision"] == half["false alarms"] == 0.5


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
    assert "&lt;b&gt;printers" in page and "<b>printers" not in page
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
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.mark.parametrize("name", ["three", "two", "rating"])
def test_in_a_browser(browser, name, tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page = page_of(name)[2]
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    began = time.monotonic()
    browser.get(f"file://{tmp_path}/page.html")
    assert time.monotonic() - began < 10  # seconds, on a slow machine

    def find(selector):
        return browser.find_elements(By.CSS_SELECTOR, selector)

    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {e["params"]["request"]["url"] for e in asked if e["method"] == "Network.requestWillBeSent"}
    assert all(url.startswith(("file:", "data:", "blob:")) for url in urls), urls
    assert browser.execute_script("return window.broken") is None and not find("#bold")  # markup in a text is text
    assert len(find("#topic-table tbody tr")) == 6 and find("#fit polyline") and find("#topic-table rect")
    words = find("#topic-table .words")[2].text.split()
    find("#filter")[0].send_keys(words[0])
    shown = [row for row in find("#topic-table tbody tr") if row.is_displayed()]
    assert 1 <= len(shown) <= 6 and all(words[0] in row.text for row in shown)
    find("#filter")[0].send_keys(Keys.CONTROL + "a", Keys.DELETE)
    if name == "three":
        find("#column option")[1].click()
        weights = [float(cell.text.replace("\N{MINUS SIGN}", "-")) for cell in find("#topic-table .weight")]
        expected = sorted((topic["weights"][1] for topic in data_of(page)["topics"]), reverse=True)
        np.testing.assert_allclose(weights, expected, atol=0.006)
        find("#heat [data-sort='1']")[0].click()
        weights = [float(row.find_elements(By.TAG_NAME, "td")[1].text) for row in find("#heat tbody tr")]
        assert weights == sorted(weights, reverse=True)
    if name == "two":
        before = find("#chosen")[0].text
        find("#threshold")[0].send_keys(Keys.ARROW_RIGHT)
        assert find("#chosen")[0].text != before and "precision" in before
    if name == "rating":
        assert len(find("#scatter circle")) == 240
    first = find("#sum")[0].text
    parts, whole = re.search(r"add up to (\S+); the model's score is (\S+)\.$", first).groups()
    assert float(parts) == pytest.approx(float(whole), abs=2e-3)
    assert find("#text mark") and find("#waterfall rect")
    find("#after")[0].click()
    assert find("#sum")[0].text != first
    assert downloaded(browser, "[data-csv=topics]").startswith("topic,name,words,share,")
    assert downloaded(browser, "[data-csv=documents]").count("\n") > 100
    name = find("#topic-table .name")[0]
    browser.execute_script("arguments[0].textContent = '=1+1'", name)  # which a spreadsheet would run
    assert ",'=1+1," in downloaded(browser, "[data-csv=topics]")
    browser.execute_script("arguments[0].textContent = 'tea & <cake>'", name)
    (tmp_path / "again.html").write_text(downloaded(browser, "#save"), encoding="utf-8")
    find("#search")[0].send_keys("window.broken")
    assert len(find("#document option")) <= 1
    if find("#document option"):
        assert "<script>window.broken = 1</script>" in find("#text")[0].text
    browser.get(f"file://{tmp_path}/again.html")
    assert "tea & <cake>" in [name.text for name in find("#topic-table .name")] and find("#text mark")
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


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
