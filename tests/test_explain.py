"""Explanations: what words add is what is predicted, to the last digit."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from supertopic import LDA, MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor, explain
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference.predict import frozen_topics
from supertopic.kernels.draws import content_streams, make_key
from supertopic.report.summary import effect_frame
from supertopic.sampling.new_documents import draw_topics, run_sweeps

pytestmark = pytest.mark.usefixtures("short_fits")

RUN = {"n_topics": 4, "n_chains": 2, "burn_in": 20, "n_draws": 6, "predict_sweeps": 10, "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=200, n_topics=3, random_state=0)


MODELS = {
    "two classes": (SLDAClassifier, lambda c: c.y),
    "classes": (SLDAClassifier, lambda c: c.doc_topic.argmax(axis=1)),
    "separate": (lambda **run: SLDAClassifier(multiclass="separate", **run), lambda c: c.doc_topic.argmax(axis=1)),
    "sticks": (lambda **run: SLDAClassifier(multiclass="stick_breaking", **run), lambda c: c.doc_topic.argmax(axis=1)),
    "labels": (SLDAClassifier, lambda c: (c.doc_topic > 0.3).astype(int)),
    "no words": (lambda **run: SLDAClassifier(words=False, **run), lambda c: c.y),
    "hinge": (MedLDAClassifier, lambda c: c.doc_topic.argmax(axis=1)),
    "ratings": (SLDARegressor, lambda c: 10 + c.doc_topic @ [1.0, 2.0, 4.0]),
    "counts": (SLDACountRegressor, lambda c: np.rint(c.doc_topic @ [1.0, 5.0, 20.0])),
}


@pytest.mark.parametrize("name", MODELS)
def test_parts_add_up_to_the_prediction(corpus, name):
    kind, respond = MODELS[name]
    Z = np.random.default_rng(0).normal(size=(200, 2)) if name in ("classes", "ratings") else None
    model = kind(**RUN).fit(corpus.X, respond(corpus), covariates=Z)
    for d in (0, 7):
        beside = {} if Z is None else {"covariates": Z[d : d + 1]}
        X = corpus.X[d : d + 1]
        found = model.explain(X, **beside)
        parts = found.constant + found.covariates + found.through_topics.sum(axis=0) + found.direct.sum(axis=0)
        np.testing.assert_allclose(parts, found.omega, rtol=1e-10, atol=1e-10)
        predict = getattr(model, "predict_proba", getattr(model, "decision_function", None)) or model.predict
        np.testing.assert_allclose(found.mean, np.ravel(predict(X, **beside)), rtol=1e-6, atol=1e-9)
        assert found.times.sum() == X.sum() and len(found.words) == X.nnz
        assert (found.lower <= found.upper).all()
        assert found.direct.any() == (name != "no words")
        frame = found.frame()
        assert frame["total"].sum() == pytest.approx((found.through_topics + found.direct).sum())
        assert "total" in repr(found) and "<table>" in found._repr_html_()


def test_topics_of_tokens_are_those_that_are_counted(corpus):
    """Sweep by sweep the same as all sweeps at once."""
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    for d in range(5):
        tokens = make_tokens(check_counts(corpus.X[d : d + 1]))
        streams, topics = content_streams(tokens, make_key(3)), frozen_topics(model.posterior_.topics[0], 0, "cpu")
        counts = run_sweeps(tokens, topics, streams, 10, 5)[:, 0, :4]
        z = draw_topics(tokens, topics, streams, 10)
        np.testing.assert_array_equal(counts, [np.bincount(draw, minlength=4) for draw in z])


def test_a_text():
    texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 6
    model = make_pipeline(CountVectorizer(), SLDAClassifier(**RUN)).fit(
        texts, ["sport", "sport", "politics", "politics"] * 6
    )
    found = explain(model, "The team has a vote, but no goal")
    assert sorted(found.words) == ["goal", "team", "vote"] and found.columns == ["sport"]
    np.testing.assert_allclose(found.mean, model.predict_proba(["The team has a vote, but no goal"])[0])
    with pytest.raises(TypeError, match="text must be a string, got list"):
        explain(model, ["goal"])


def test_what_cannot_be_explained(corpus):
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    with pytest.raises(ValueError, match="explain takes one document, got 2"):
        model.explain(corpus.X[:2])
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.explain(corpus.X[:1], level=2)
    nothing = model.explain(np.zeros((1, corpus.X.shape[1]), int))
    np.testing.assert_allclose(nothing.omega, model.empty_intercept_, atol=0.1)
    (lower, upper), p = nothing.mean_interval, expit(model.empty_intercept_[0])
    assert lower[1] < p - 0.15 and upper[1] > p + 0.15  # no such document was seen
    np.testing.assert_allclose(nothing.mean, model.predict_proba(np.zeros((1, corpus.X.shape[1]), int))[0])
    assert nothing.words == [] and "total" in repr(nothing) and "intercept" in nothing._repr_html_()
    hostile = np.array(["<script>alert(1)</script>"] * corpus.X.shape[1])
    assert "<script>" not in model.explain(corpus.X[:1], hostile)._repr_html_()


def test_typical_documents(corpus):
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    shares = model.transform(corpus.X)
    for topic in range(4):
        found = model.typical_documents(corpus.X, topic, 3)["row"]
        assert len(found) == 3 and shares[found, topic].min() > np.quantile(shares[:, topic], 0.9)
    short = np.zeros((2, corpus.X.shape[1]), int)
    short[0, np.argmax(model.topic_word_[1])] = 1  # one word of the topic, against a whole document of it
    short[1] = np.rint(100 * model.topic_word_[1])
    assert model.typical_documents(short, 1, 2)["row"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="topic must be a whole number from 0 to 3, got 4"):
        model.typical_documents(corpus.X, 4)


@pytest.mark.parametrize("name", ["two classes", "classes", "labels", "hinge", "ratings", "counts"])
def test_wrong_labels_are_surprising(name):
    """Labels that were turned round are among the most surprising of documents that the model has not seen."""
    corpus = make_corpus(n_docs=400, n_topics=3, doc_length=100, random_state=3)
    kind, respond = MODELS[name]
    y = corpus.doc_topic.argmax(axis=1) == 0 if name == "two classes" else respond(corpus)
    y = np.asarray(y).astype(float if name in ("ratings", "counts") else int)
    model = kind(**RUN).fit(corpus.X[:300], y[:300])
    clear = 300 + np.argsort(-corpus.doc_topic[300:].max(axis=1))[:4]
    wrong = y.copy()
    wrong[clear] = {"ratings": y[clear] + 5, "counts": y[clear] + 100, "classes": (y[clear] + 1) % 3, "hinge":
                    (y[clear] + 1) % 3}.get(name, 1 - y[clear])  # fmt: skip
    found = 300 + model.surprising(corpus.X[300:], wrong[300:], 8)["row"]
    assert set(clear) <= set(found)
    unknown = wrong.astype(float)
    unknown[clear[0]] = np.nan
    assert 300 + model.surprising(corpus.X[300:], unknown[300:], 100)["row"].iloc[-1] == clear[0]
    with pytest.raises(ValueError, match=r"documents|shape|consistent|broadcast"):
        model.surprising(corpus.X[300:], wrong[300:350])


@pytest.mark.parametrize("name", ["two classes", "classes", "separate", "ratings", "counts"])
def test_effects_are_those_of_a_document_with_more_of_a_topic(corpus, name):
    kind, respond = MODELS[name]
    model = kind(**RUN).fit(corpus.X, respond(corpus))
    frame = model.effect_frame(0.2)
    assert (frame["lower"] <= frame["upper"]).all()
    np.testing.assert_allclose(frame["after"] - frame["before"], frame["change"], atol=1e-9)
    k, shares, coef = 2, model.posterior_.mean_shares, model.coef_draws_
    if name == "separate":
        assert len(frame) == 36 and np.isclose(frame.groupby("topic")["after"].sum(), 1).all()
        own = coef[:, 0, :4] @ (3 * shares[:4])
        omega = np.tile(model.intercept_, (len(coef), 1))
        omega[:, 0] += 0.2 * (coef[:, 0, k] - own)
    else:
        more = -0.2 * shares
        more[k] += 0.2
        omega = model.intercept_ + coef @ more
    base = {"ratings": respond(corpus).mean(), "counts": respond(corpus).mean()}.get(name)
    np.testing.assert_allclose(
        frame[frame["topic"] == k]["before"],
        np.bincount(respond(corpus).astype(int)) / corpus.X.shape[0] if base is None else base,
    )
    if name in ("classes", "separate"):
        expected = softmax(omega, axis=1).mean(axis=0)
    else:
        after = {"two classes": expit, "ratings": np.asarray, "counts": np.exp}[name](omega).mean(axis=0)
        expected = [1 - after[0], after[0]] if name == "two classes" else after
    np.testing.assert_allclose(frame[frame["topic"] == k]["after"], expected)
    with pytest.raises(ValueError, match="points must be a share from 0 to 1, got 20"):
        model.effect_frame(20)
    topics = LDA(**RUN).fit(corpus.X)
    assert not hasattr(topics, "effect_frame")
    with pytest.raises(AttributeError, match="The model has no response"):
        effect_frame(topics.posterior_)


@pytest.mark.parametrize("multiclass", ["shared", "separate"])
def test_what_topics_add(corpus, multiclass):
    """In the best chain alone, topics add up to what words add through them."""
    y = corpus.doc_topic.argmax(axis=1)
    run = {"n_topics": 4, "n_chains": 1, "burn_in": 8, "n_draws": 5, "random_state": 0, "multiclass": multiclass}
    model = SLDAClassifier(**run).fit(corpus.X, y).name_topics({1: "tea"})
    found = model.explain(corpus.X[[3]])
    np.testing.assert_allclose(found.topics.sum(axis=0), found.through_topics.sum(axis=0), rtol=1e-9, atol=1e-12)
    assert found.topic_shares.sum() == pytest.approx(1) and found.topic_labels[1] == "1 tea"
    frame = found.topic_frame()
    assert len(frame) == found.topics.size and "its topics: " in repr(found)
    np.testing.assert_allclose(frame["adds"].to_numpy(), found.topics.ravel())


def test_unsure(corpus):
    """Documents that say nothing are doubted most."""
    y, run = (
        corpus.doc_topic.argmax(axis=1),
        {"n_topics": 5, "n_chains": 1, "burn_in": 20, "n_draws": 5, "random_state": 0},
    )
    model = SLDAClassifier(**run).fit(corpus.X, y)
    p = model.predict_proba(corpus.X).max(axis=1)
    assert (model.unsure(corpus.X, 5)["row"] == np.argsort(p, kind="stable")[:5]).all()
    for other in (
        SLDAClassifier(**run).fit(corpus.X, (corpus.doc_topic > 0.3).astype(int)),
        MedLDAClassifier(**run).fit(corpus.X, y),
        MedLDAClassifier(**run).fit(corpus.X, y == 0),
        SLDARegressor(**run).fit(corpus.X, corpus.doc_topic[:, 0]),
    ):
        found = other.unsure(corpus.X, 4)["row"]
        assert len(set(found.tolist())) == 4 and found.max() < corpus.X.shape[0]
