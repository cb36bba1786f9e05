"""Effects on documents after the fit, and weights that differ between groups: known truth, all responses, errors."""

import re
import warnings
from dataclasses import FrozenInstanceError

import matplotlib
import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import csr_array
from scipy.special import expit

from small import near_limits, stops_early
from supertopic import (
    LDA,
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    load,
    save,
)
from supertopic.corpus.source import Target, make_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.estimators.effects import training_evidence
from supertopic.inference import effects
from supertopic.inference.calibration import draw_weights
from supertopic.inference.effects import Groups, each_set, other_topics, prior_of, regress
from supertopic.inference.predict import Settings, topic_shares
from supertopic.inference.regression import regression_engine
from supertopic.inference.reported import NU2_REPORTED
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Gaussian, Logistic, NegativeBinomial
from supertopic.report.interactions import Interactions
from supertopic.sampling import gibbs

RUN = {"burn_in": 20, "n_draws": 10, "n_chains": 4, "random_state": 0}
QUICK = {"n_topics": 3, "n_chains": 2, "burn_in": 10, "n_draws": 6, "predict_sweeps": 10, "random_state": 0}
KINDS = {
    "two classes": (SLDAClassifier, lambda c: np.array(["no", "yes"], object)[c.y]),
    "classes": (SLDAClassifier, lambda c: c.doc_topic.argmax(axis=1)),
    "separate": (lambda **run: SLDAClassifier(multiclass="separate", **run), lambda c: c.doc_topic.argmax(axis=1)),
    "sticks": (lambda **run: SLDAClassifier(multiclass="stick_breaking", **run), lambda c: c.doc_topic.argmax(axis=1)),
    "labels": (SLDAClassifier, lambda c: pandas.DataFrame((c.doc_topic > 0.3).astype(int), columns=["a", "b", "c"])),
    "own topics": (lambda **run: SLDAClassifier(multiclass="separate", **run), lambda c: (c.doc_topic > 0.3) * 1),
    "hinge": (MedLDAClassifier, lambda c: c.doc_topic.argmax(axis=1)),
    "rating": (SLDARegressor, lambda c: 10 + c.doc_topic @ [1.0, 2.0, 4.0]),
    "ratings": (SLDARegressor, lambda c: pandas.DataFrame(c.doc_topic[:, :2], columns=["price", "taste"])),
    "grades": (SLDAOrdinalClassifier, lambda c: np.digitize(c.doc_topic @ [1.0, 2.0, 4.0], [1.6, 2.2, 3.2])),
    "counts": (SLDACountRegressor, lambda c: np.rint(c.doc_topic @ [1.0, 5.0, 20.0])),
}


@pytest.fixture(autouse=True)
def quiet():
    """Chains are short here, and topics of a random response predict nothing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found no relation")
        yield


@pytest.fixture
def few_draws(monkeypatch, short_regressions):
    """Few draws of effects, for tests that do not depend on how many."""
    monkeypatch.setattr(effects, "N_DRAWS", 20)
    monkeypatch.setattr(effects, "POOLED_BURN_IN", 5)


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=1200, n_topics=3, doc_length=100, eta=[-2.0, 0.0, 2.0], random_state=0)


@pytest.fixture(scope="module")
def model(corpus):
    """A model of the first documents; the others are new to it."""
    y = 3.0 + 2.0 * (corpus.doc_topic @ [-1.0, 0.0, 1.0]) + np.random.default_rng(1).normal(size=1200)
    return SLDARegressor(3, words=False, **RUN).fit(corpus.X[:400], y[:400])


@pytest.fixture(scope="module")
def classifier(corpus):
    return SLDAClassifier(3, words=False, **RUN).fit(corpus.X[:400], corpus.y[:400])


def inside(draws, truth, level=0.9):
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return (lower <= truth) & (truth <= upper)


# effects on new documents


def test_effects_are_those_of_a_ridge_regression(corpus, model):
    """Shares of `transform`, y around its mean in units of the fit, and the prior of reported weights."""
    rng, X, unit = np.random.default_rng(2), corpus.X[400:], model.posterior_.response.unit
    z = rng.normal(5.0, 3.0, size=(800, 1))
    shares = model.transform(X)
    y = 7.0 + shares @ [1.0, -3.0, 2.0] + 0.4 * z[:, 0] + rng.normal(size=800)
    found = model.effects_on(X, y, covariates=z)
    x, goal = np.hstack([shares, (z - z.mean()) / z.std()]), (y - y.mean()) / unit
    sigma2 = np.sum((goal - x @ np.linalg.lstsq(x, goal)[0]) ** 2) / 796
    covariance = np.linalg.inv(x.T @ x / sigma2 + np.eye(4) / NU2_REPORTED)
    mean = covariance @ x.T @ goal / sigma2 * unit
    sd = np.sqrt(covariance.diagonal()) * unit
    np.testing.assert_allclose(found.coef_draws.mean(axis=0)[0], mean[:3], atol=0.25 * sd.max())
    np.testing.assert_allclose(found.coef_draws.std(axis=0)[0], sd[:3], rtol=0.15)
    np.testing.assert_allclose(found.covariate_draws.mean(), mean[3] / z.std(), atol=0.25 * sd[3] / z.std())
    np.testing.assert_allclose(found.covariate_draws.std(), sd[3] / z.std(), rtol=0.15)
    assert found.n_documents == 800 and found.coef_draws.shape == (400, 1, 3)


def test_the_prior_counts_where_there_are_few_documents(corpus, model):
    """Two documents: a ridge regression with the prior variance, far from least squares."""
    X, unit = corpus.X[400:402], model.posterior_.response.unit[0]
    found = model.effects_on(X, [0.0, 5.0])
    assert 0.8 * 5.0 < found.coef_draws.std(axis=0).max() / unit < 1.2 * 5.0


def test_intervals_of_effects_hold_the_truth(corpus, model):
    X, hits = corpus.X[400:700], []
    shares = model.transform(X)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        eta = rng.normal(size=3)
        y = shares @ eta + rng.normal(size=300)
        hits.append(inside(model.effects_on(X, y).coef_draws[:, 0], eta - y.mean()))
        if stops_early(len(hits), 25, lambda: near_limits(np.mean(hits), 0.9, 0.8, 0.98)):
            break
    assert 0.8 < np.mean(hits) < 0.98


def test_effects_of_classes_hold_the_truth(corpus, classifier):
    X, hits = corpus.X[400:800], []
    shares = classifier.transform(X)
    for seed in range(15):
        rng = np.random.default_rng(seed)
        omega = shares @ rng.normal(size=3)
        y = (rng.random(400) < expit(omega)).astype(int)
        level = np.log(y.mean() / (1 - y.mean()))
        eta = np.linalg.lstsq(shares, omega)[0]
        hits.append(inside(classifier.effects_on(X, y).coef_draws[:, 0], eta - level))
        if stops_early(len(hits), 15, lambda: near_limits(np.mean(hits), 0.9, 0.8, 0.98)):
            break
    assert 0.8 < np.mean(hits) < 0.98


def test_the_response_of_new_documents_decides(corpus, model):
    """The effects are those of the new documents, whatever the fit found."""
    X = corpus.X[400:]
    y = 100.0 - 2.0 * (corpus.doc_topic[400:] @ [-1.0, 0.0, 1.0]) + 0.5 * np.random.default_rng(0).normal(size=800)
    found = model.effects_on(X, y)
    assert np.corrcoef(found.coef_draws.mean(axis=0)[0], model.coef_[0])[0, 1] < -0.9
    table = found.table().frame().set_index("topic")
    np.testing.assert_allclose(found.posterior.response.expected(found.posterior.intercept.base), [y.mean()])
    for k, change in table.change.items():  # against the usual mixture
        draws = found.coef_draws[:, 0]
        usual = draws @ model.posterior_.mean_shares
        assert change == pytest.approx(0.1 * (draws[:, k] - usual).mean())


def test_effects_at_the_base_rate_of_new_documents(corpus, classifier):
    """Effects on a rare class are small, though the weight is as large as in the fit."""
    rng, X = np.random.default_rng(0), corpus.X[400:]
    y = (rng.random(800) < expit(corpus.doc_topic[400:] @ [-2.0, 0.0, 2.0] - 3.0)).astype(int)
    found = classifier.effects_on(X, y, points=0.2, level=0.5)
    assert found.posterior.response.expected(found.posterior.intercept.base)[1] == pytest.approx(y.mean())
    assert (np.abs(found.table().frame().change) < 0.5 * np.abs(classifier.summary_table(0.2).frame().change)).any()
    assert (found.table().points, found.table().level) == (0.2, 0.5)


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_response(kind, few_draws):
    corpus = make_corpus(n_docs=200, n_topics=3, doc_length=40, random_state=0)
    make, respond = KINDS[kind]
    y, group = respond(corpus), np.resize(["a", "b"], 200)
    old, new = (y[:120], y[120:]) if hasattr(y, "iloc") or isinstance(y, np.ndarray) else (None, None)
    model = make(**QUICK).fit(corpus.X[:120], old)
    found = model.effects_on(corpus.X[120:], new, covariates=pandas.DataFrame({"critic": group[120:]}))
    posterior = model.posterior_
    n_columns, n_topics = posterior.own.shape
    assert found.coef_draws.shape[1:] == (n_columns, n_topics) and found.covariate_draws.shape[1:] == (n_columns, 1)
    assert np.isfinite(found.coef_draws).all() and (found.coef_draws[:, ~posterior.own] == 0).all()
    assert (found.coef_draws.std(axis=0)[posterior.own] > 0).all()
    frame = found.frame()
    assert len(frame) == posterior.own.sum() + n_columns
    assert list(frame) == ["kind", "topic", "name", "column", "weight", "sd", "lower", "upper", "p_direction"]
    assert (frame.lower <= frame.weight).all() and (frame.weight <= frame.upper).all()
    row = frame[(frame.kind == "topic") & (frame.topic == 1)].iloc[0]
    r = posterior.response.column_names.index(row.column)
    assert row.weight == pytest.approx(found.coef_draws[:, r, 1].mean())
    assert list(found.table().frame()) == list(model.summary_table().frame())
    assert "critic[b]" in repr(found) and "Documents after the fit: 80" in repr(found)
    assert "<table>" in found._repr_html_()
    for pooled in (False, True):
        for documents in ((), (new, corpus.X[120:])):
            by = group[120:] if documents else group[:120]
            compared = model.interactions(by, *documents, pooled=pooled)
            assert compared.draws.shape[1:] == (n_columns, 2, n_topics) and np.isfinite(compared.draws).all()
            frame = compared.frame()
            assert len(frame) == 2 * posterior.own.sum() and "Weights for" in repr(compared)


@pytest.mark.parametrize("kind", ["classes", "sticks", "separate"])
def test_effects_on_classes_start_from_their_shares(kind, few_draws):
    corpus = make_corpus(n_docs=300, n_topics=3, doc_length=40, random_state=0)
    make, respond = KINDS[kind]
    y = respond(corpus)
    model = make(**QUICK).fit(corpus.X[:120], y[:120])
    posterior = model.effects_on(corpus.X[120:], y[120:]).posterior
    shares = np.bincount(y[120:]) / 180
    np.testing.assert_allclose(posterior.response.expected(posterior.intercept.base), shares)


def test_each_set_of_topics_has_its_own_response_and_draws():
    corpus = make_corpus(n_docs=200, n_topics=3, doc_length=40, random_state=0)
    make, respond = KINDS["separate"]
    model = make(**QUICK).fit(corpus.X[:120], respond(corpus)[:120])
    evidence, _ = training_evidence(model.posterior_, None)
    for r, (place, x, target) in enumerate(each_set(model.posterior_, evidence)):
        np.testing.assert_array_equal(target.y[:, 0], evidence.target.y[:, r])
        np.testing.assert_allclose(x.sum(axis=1), 1.0, atol=1e-5)
        assert place == r
    draws = model.effects_on(corpus.X[120:], respond(corpus)[120:]).coef_draws
    one, other, third = (draws[:, r, 3 * r : 3 * r + 3] for r in range(3))
    for pair in ((one, other), (other, third)):
        assert all(abs(np.corrcoef(*columns)[0, 1]) < 0.4 for columns in zip(pair[0].T, pair[1].T, strict=True))


def test_weights_of_a_response_are_alike_in_the_fit_and_after_it(corpus):
    """The same signs for classes, and sizes that fit each other."""
    y = corpus.doc_topic.argmax(axis=1)
    for make in (SLDAClassifier, MedLDAClassifier, lambda *a, **b: SLDAClassifier(*a, multiclass="separate", **b)):
        model = make(3, words=False, **RUN | {"n_chains": 1}).fit(corpus.X[:600], y[:600])
        found, own = model.effects_on(corpus.X[600:], y[600:]).coef_draws.mean(axis=0), model.posterior_.own
        assert np.corrcoef(found[own], model.coef_[own])[0, 1] > 0.9
        assert 0.6 < np.abs(found[own]).mean() / np.abs(model.coef_[own]).mean() < 1.6


@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_covariates_of_other_kinds(corpus, model, library):
    """The fit had no covariates; text, booleans and dates of new documents are adjusted for."""
    rng = np.random.default_rng(0)
    columns = {
        "critic": rng.choice(["A", "B"], 800), "female": rng.random(800) < 0.5,
        "day": np.datetime64("2019-01-01") + rng.integers(0, 1461, 800).astype("timedelta64[D]"),
    }  # fmt: skip
    year = (columns["day"] - np.datetime64("2019-01-01")) / np.timedelta64(1, "D") / 365.25
    y = 2.0 * (columns["critic"] == "B") - 1.0 * columns["female"] + 0.5 * year + 0.3 * rng.normal(size=800)
    given = {"pandas": pandas.DataFrame, "polars": polars.DataFrame}.get(library, lambda c: c["critic"])(columns)
    found = model.effects_on(corpus.X[400:], y, covariates=given).frame()
    found = found.to_pandas() if library == "polars" else found
    found = found[found.kind == "covariate"].set_index("name")
    assert found.topic.isna().all()
    truth = {"critic[B]": 2.0, "female": -1.0, "day": 0.5} if library != "array" else {"0[B]": 2.0}
    assert list(found.index) == list(truth)
    for name, value in truth.items():
        assert abs(found.weight[name] - value) < 5 * found.sd[name] and found.p_direction[name] > 0.99


def test_covariates_of_the_fit_may_be_left_out_and_others_taken(corpus):
    z = np.random.default_rng(0).normal(size=(1200, 1))
    model = SLDARegressor(3, words=False, formula="a", **RUN)
    model.fit(corpus.X[:200], corpus.y[:200], covariates=pandas.DataFrame({"a": z[:200, 0]}))
    assert model.effects_on(corpus.X[200:], corpus.y[200:]).covariate_draws.shape == (400, 1, 0)
    other = pandas.DataFrame({"b": z[200:, 0], "c": z[200:, 0] ** 2})
    found = model.effects_on(corpus.X[200:], corpus.y[200:], covariates=other)
    assert found.frame().name.tolist()[3:] == ["b", "c"] and len(found.table().rows) == 5
    model.interactions(np.resize([1, 2], 200))  # adjusted for those of the fit
    model.interactions(np.resize([1, 2], 200), covariates=other[:200])


def test_unknown_responses_are_left_out(corpus, model):
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    unknown = np.arange(300) % 3 == 0
    given = np.where(unknown, np.nan, y)
    found = model.effects_on(corpus.X[400:700], given)
    X, known = corpus.X[400:700][~unknown], y[~unknown]
    np.testing.assert_array_equal(found.coef_draws, model.effects_on(X, known).coef_draws)
    assert found.n_documents == 200
    weight = np.where(unknown, 0.0, 1.0)
    again = model.effects_on(corpus.X[400:700], y, sample_weight=weight)
    np.testing.assert_allclose(again.coef_draws, found.coef_draws)
    by = np.where(unknown, "gone", np.resize(["a", "b"], 300))
    with pytest.warns(UserWarning, match="left out: 'gone'"):
        compared = model.interactions(by, given, corpus.X[400:700])
    assert compared.groups == ("a", "b") and compared.n_documents == 200


def test_sample_weights_count_documents(corpus, model):
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    once, twice = (model.effects_on(corpus.X[400:800], y, sample_weight=np.full(400, w)) for w in (1.0, 4.0))
    np.testing.assert_allclose(once.coef_draws.std(axis=0) / twice.coef_draws.std(axis=0), 2.0, rtol=0.2)


def test_documents_without_words_have_no_shares(corpus, model, monkeypatch):
    """They have the level of such documents, and say nothing of topics."""
    given, real = [], effects.estimate_effects
    monkeypatch.setattr(
        "supertopic.estimators.effects.estimate_effects", lambda *rest: given.append(rest[1]) or real(*rest)
    )
    X, rng = corpus.X[400:800], np.random.default_rng(0)
    more = csr_array((X.data, X.indices, np.r_[X.indptr, np.full(50, X.indptr[-1])]), shape=(450, X.shape[1]))
    y = np.r_[rng.normal(size=400), rng.normal(8.0, 1.0, size=50)]
    found = model.effects_on(more, y)
    assert found.n_documents == 450 and np.isfinite(found.coef_draws).all()
    (evidence,) = given
    np.testing.assert_array_equal(evidence.shares[400:], 0.0)
    np.testing.assert_allclose(evidence.shares[:400], model.transform(X))
    offset = evidence.response.offset_in_units(evidence.target.offset)[:, 0]
    np.testing.assert_allclose(offset[:400], y.mean())
    assert (offset[400:] > 7.0).all()


def test_exposure(few_draws):
    corpus, rng = make_corpus(n_docs=400, n_topics=3, doc_length=60, random_state=0), np.random.default_rng(0)
    exposure = rng.uniform(0.5, 20.0, 400)
    y = rng.poisson(exposure * np.exp(corpus.doc_topic @ [-1.0, 0.0, 1.0]))
    model = SLDACountRegressor(3, words=False, **RUN | {"n_chains": 1}).fit(
        corpus.X[:200], y[:200], exposure=exposure[:200]
    )
    found = model.effects_on(corpus.X[200:], y[200:], exposure=exposure[200:])
    assert np.corrcoef(found.coef_draws.mean(axis=0)[0], model.coef_[0])[0, 1] > 0.9
    rate = y[200:].sum() / exposure[200:].sum()
    assert found.posterior.response.expected(found.posterior.intercept.base)[0] == pytest.approx(rate)
    with pytest.raises(ValueError, match="fitted with an exposure"):
        model.effects_on(corpus.X[200:], y[200:])
    model.interactions(np.resize(["a", "b"], 200), y[200:], corpus.X[200:], exposure=exposure[200:])
    model.interactions(np.resize(["a", "b"], 200))


def test_files_and_threads(corpus, tmp_path, few_draws):
    """The same bits for any number of threads, and from a file; only training documents are not in it."""
    X = csr_array(np.vstack([corpus.X.toarray()] * 2))  # several shards
    y = np.random.default_rng(0).normal(size=2400)
    model = SLDARegressor(3, words=False, n_jobs=1, **RUN).fit(corpus.X[:200], y[:200])
    by = np.resize(["a", "b", "c"], 2400)
    one = model.effects_on(X, y), model.interactions(by, y, X, pooled=True), model.interactions(by[:200])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for other in (model.set_params(n_jobs=3), again.set_params(n_jobs=2)):
        np.testing.assert_array_equal(other.effects_on(X, y).coef_draws, one[0].coef_draws)
        np.testing.assert_array_equal(other.interactions(by, y, X, pooled=True).draws, one[1].draws)
    np.testing.assert_array_equal(model.interactions(by[:200]).draws, one[2].draws)
    with pytest.raises(ValueError, match="loaded model has no training documents"):
        again.interactions(by[:200])
    with pytest.raises(FrozenInstanceError):
        one[0].level = 0.5
    with pytest.raises(FrozenInstanceError):
        one[1].level = 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.zeros(99)}, "100 documents but y has 99"),
        ({"y": None}, "y is None"),
        ({"y": np.full(100, np.nan)}, "No response of the 100 documents is known"),
        ({"y": np.full(100, "a")}, "could not convert"),
        ({"y": np.full(100, np.inf)}, "infinity"),
        ({"y": np.zeros((100, 2))}, "y has 2 columns"),
        ({"covariates": np.zeros((99, 1))}, "100 documents but covariates has 99"),
        ({"covariates": np.full((100, 1), np.nan)}, "NaN"),
        ({"covariates": pandas.DataFrame(np.zeros((100, 2)), columns=["a", "a"])}, "more than one column 'a'"),
        ({"sample_weight": np.zeros(100)}, "known|zero"),
        ({"sample_weight": np.full(100, 1e300)}, "at most"),
        ({"exposure": np.ones(100)}, "exposure is for counts"),
        ({"points": 0}, "points must be"),
        ({"points": "a"}, "points must be"),
        ({"level": 1.0}, "level must be"),
    ],
)
def test_wrong_effects(corpus, model, arguments, message):
    given = {"y": np.arange(100.0)} | arguments
    with pytest.raises(ValueError, match=message):
        model.effects_on(corpus.X[:100], **given)


def test_new_classes_and_wrong_models(corpus, few_draws):
    model = SLDAClassifier(**QUICK).fit(corpus.X[:100], np.resize(["a", "b"], 100))
    with pytest.raises(ValueError, match="class 'c', which is not a class of the model; its classes are 'a', 'b'"):
        model.effects_on(corpus.X[:3], ["a", "b", "c"])
    with pytest.raises(ValueError, match="class 'c', which is not a class of the model"):
        model.interactions([1, 2, 2], ["a", "b", "c"], corpus.X[:3])
    found = model.effects_on(corpus.X[:20], ["a"] * 20)  # one class is possible: the model knows both
    assert np.isfinite(found.coef_draws).all()
    assert not hasattr(LDA, "effects_on") and not hasattr(LDA, "interactions")
    with pytest.raises(AttributeError, match="not fitted"):
        SLDAClassifier().effects_on(corpus.X[:3], ["a", "b", "a"])


def test_texts(few_draws):
    texts = ["good plot and good actors", "bad plot and bad actors", "fine music", "awful music"] * 20
    model = SLDAClassifier(**QUICK).fit(texts, np.resize(["up", "down"], 80))
    assert model.effects_on(texts[:40], np.resize(["up", "down"], 40)).n_documents == 40
    assert model.interactions(np.resize(["a", "b"], 40), np.resize(["up", "down"], 40), texts[:40]).n_documents == 40
    with pytest.raises(TypeError, match="text"):
        SLDAClassifier(**QUICK).fit(np.eye(40, dtype=int), np.resize([0, 1], 40)).effects_on(texts[:4], [0, 1, 0, 1])


# groups


def make_groups(seed, sizes, spread=1.0, n_topics=4, kind="rating"):
    """Shares, groups with weights and levels of their own, and a response."""
    rng, n_docs = np.random.default_rng(seed), int(np.sum(sizes))
    shares, place = rng.dirichlet(np.full(n_topics, 0.5), n_docs), np.repeat(np.arange(len(sizes)), sizes)
    eta = rng.normal(size=n_topics) + spread * rng.normal(size=(len(sizes), n_topics))
    omega = (shares * eta[place]).sum(axis=1) + rng.normal(size=len(sizes))[place]
    if kind == "rating":
        y, response = omega + rng.normal(size=n_docs), Gaussian(1.0, np.ones(1))
    elif kind == "class":
        y, response = (rng.random(n_docs) < expit(omega)) * 1.0, Logistic(1.0, classes=np.arange(2))
    else:
        y, response = rng.poisson(np.exp(omega)) * 1.0, NegativeBinomial(1.0, np.ones(1))
    nothing = np.zeros((n_docs, 1))
    target = Target(y[:, None], np.ones((n_docs, 1)), nothing, np.zeros((n_docs, 0)))
    usual = shares.mean(axis=0)
    return shares, place, target, response, eta - (eta @ usual)[:, None]


class OneSet:
    """As much of a posterior as `estimate_groups` reads."""

    def __init__(self, n_topics):
        self.topics, self.seed, self.n_topics = (None,), 7, n_topics
        self.columns, self.places, self.own = [slice(0, 1)], [slice(0, n_topics)], np.ones((1, n_topics), bool)


def estimate(shares, place, target, response, pooled, spread=0.0):
    n_topics = shares.shape[1]
    evidence = effects.Evidence(
        shares, target, response, np.ones((1, n_topics), bool), np.zeros(len(shares), int),
        np.full((1, n_topics), spread),
    )  # fmt: skip
    return effects.estimate_groups(OneSet(n_topics), evidence, Groups(place, place.max() + 1, pooled), 1)[:, 0]


@pytest.mark.parametrize("kind", ["rating", "class", "count"])
@pytest.mark.parametrize("pooled", [False, True])
def test_intervals_of_groups_hold_the_truth(monkeypatch, kind, pooled):
    monkeypatch.setattr(effects, "N_DRAWS", 200)
    weights, differences, n_seeds = [], [], 6 if kind == "count" else 12
    for seed in range(n_seeds):
        *given, truth = make_groups(seed, [120, 80, 150, 60], kind=kind)
        draws = estimate(*given, pooled)
        weights.append(inside(draws, truth))
        other = (draws.mean(axis=1, keepdims=True), truth.mean(axis=0)) if pooled else (draws[:, :1], truth[0])
        away = inside(draws - other[0], truth - other[1])
        differences.append(away if pooled else away[1:])
        means = [np.mean(hits) for hits in (weights, differences)]
        if stops_early(seed + 1, n_seeds, lambda own=means: [near_limits(mean, 0.9, 0.8, 0.98) for mean in own]):
            break
    assert 0.8 < np.mean(weights) < 0.98
    assert 0.8 < np.mean(differences) < 0.98


def test_levels_of_groups_are_no_difference_of_weights():
    """A group whose responses are higher by a constant has the same weights, and its intervals are not wider."""
    shares, place, target, response, _ = make_groups(0, [200, 200], spread=0.0)
    far = target._replace(y=target.y + 10.0 * (place == 1)[:, None])
    near, away = (estimate(shares, place, each, response, False) for each in (target, far))
    difference = away[:, 1] - away[:, 0]
    assert (np.abs(difference.mean(axis=0)) < 4 * difference.std(axis=0)).all()
    assert difference.std(axis=0).max() < 1.0  # the prior alone has 5
    np.testing.assert_allclose(away.std(axis=0), near.std(axis=0), rtol=0.3)


def test_the_comparison_is_that_of_separate_regressions():
    """With much data, weights of each group are those of least squares in this group."""
    shares, place, target, response, _ = make_groups(3, [3000, 3000])
    draws, usual = estimate(shares, place, target, response, False), shares.mean(axis=0)
    for group in range(2):
        own = place == group
        x = shares[own]  # which contain a constant
        eta = np.linalg.lstsq(x, target.y[own, 0])[0]
        np.testing.assert_allclose(draws[:, group].mean(axis=0), eta - eta @ usual, atol=0.02)


def test_pooled_groups_are_shrunk_and_hold_the_truth(monkeypatch):
    """Forty groups of a dozen documents: pooling has the smaller error, and intervals that are not too short."""
    monkeypatch.setattr(effects, "N_DRAWS", 200)
    errors, hits, sizes = np.zeros(2), [], [12] * 40
    for seed in range(6):
        *given, truth = make_groups(seed, sizes, spread=0.5)
        centre = truth - truth.mean(axis=0)
        for pooled in (False, True):
            draws = estimate(*given, pooled)
            away = draws - draws.mean(axis=1, keepdims=True)
            errors[int(pooled)] += np.mean((away.mean(axis=0) - centre) ** 2)
        hits.append(inside(away, centre))
        if stops_early(seed + 1, 6, lambda: near_limits(np.mean(hits), 0.9, 0.82, 0.97)):
            break
    assert errors[1] < 0.3 * errors[0]
    assert 0.82 < np.mean(hits) < 0.97


def test_no_differences_where_there_are_none():
    """Pooled intervals of equal groups are near 0, and few exclude it."""
    *given, _ = make_groups(1, [40] * 20, spread=0.0)
    draws = estimate(*given, True)
    away = draws - draws.mean(axis=1, keepdims=True)
    assert np.mean(inside(away, 0.0)) > 0.95 and np.abs(away.mean(axis=0)).max() < 0.4


def test_the_variance_between_groups_is_found(monkeypatch):
    found, real = [], effects.draw_variance
    monkeypatch.setattr(effects, "draw_variance", lambda *rest: found.append(real(*rest)) or found[-1])
    *given, _ = make_groups(2, [60] * 40, spread=0.7)
    estimate(*given, True)
    weights, levels = np.median(np.sqrt(np.reshape(found, (-1, 2))[200:]), axis=0)  # one after the other
    assert weights == pytest.approx(0.7, rel=0.25) and levels == pytest.approx(1.0, rel=0.5)


def test_the_prior_of_a_variance_is_half_cauchy():
    """Without data the two inverse gammas of the mixture give a half-Cauchy(1) distribution of the square root."""
    rng, variance, found = np.random.default_rng(0), np.ones(400), []
    for i in range(400):
        eta = rng.normal(size=(400, 2)) * np.sqrt(variance)[:, None]
        variance = effects.draw_variance(eta, variance, make_key(i))
        found.append(np.sqrt(variance))
    quartiles = np.quantile(np.array(found[50:]), [0.25, 0.5, 0.75])
    np.testing.assert_allclose(quartiles, np.tan(np.pi / 2 * np.array([0.25, 0.5, 0.75])), rtol=0.12)


def test_the_prior_replaces_that_of_all_columns():
    prior = prior_of([np.array([[1], [3]]), np.array([4])], [np.array([0.5, 2.0]), np.array([4.0, 8.0])], 6)
    other = NU2_REPORTED
    np.testing.assert_array_equal(prior, [[other, 0.5, other, 0.5, 4.0, other], [other, 2.0, other, 2.0, 8.0, other]])


def test_topics_that_a_chain_does_not_have_are_other_columns():
    x = np.arange(12.0).reshape(4, 3)
    has = np.array([[True, True, True], [True, False, True]])
    others = other_topics(x, np.array([0, 1, 1, 0]), has)
    np.testing.assert_array_equal(others[:, 0], [0.0, 4.0, 7.0, 0.0])
    np.testing.assert_array_equal(x[:, 1], [1.0, 0.0, 0.0, 10.0])


def test_differences_between_chains_widen_weights_and_not_differences():
    *given, _ = make_groups(0, [200, 200])
    narrow, wide = estimate(*given, False), estimate(*given, False, spread=1.0)
    assert (wide.std(axis=0) > 2 * narrow.std(axis=0)).all()
    np.testing.assert_allclose((wide[:, 1] - wide[:, 0]), (narrow[:, 1] - narrow[:, 0]))


def test_columns_of_groups(monkeypatch):
    """The design as it is written: topics, other columns, then weights and level of each group."""
    given = []
    real = effects.regression_engine
    monkeypatch.setattr(
        effects, "regression_engine", lambda columns, *rest: given.append(columns(slice(1, 4))) or real(columns, *rest)
    )
    x = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    target = Target(np.arange(4.0)[:, None], np.ones((4, 1)), np.zeros((4, 1)), np.zeros((4, 0)))
    for pooled, expected in (
        (False, [[0.25, 0.75, 0, 0.25, 0.75, 1], [0, 0.5, 0.5, 0, 0, 0], [1, 0, 0, 1, 0, 1]]),
        (True, [[0.25, 0.75, 0, 0, 0, 0, 0.25, 0.75, 1], [0, 0.5, 0.5, 0, 0.5, 1, 0, 0, 0],
                [1, 0, 0, 0, 0, 0, 1, 0, 1]]),
    ):  # fmt: skip
        groups = Groups(np.array([0, 1, 0, 1]), 2, pooled)
        regress(x, target, Gaussian(1.0, np.ones(1)), (groups, 2), np.uint64(1), 1)
        np.testing.assert_allclose(given[-1], expected)


def test_weights_are_in_the_units_of_each_column(corpus):
    y = corpus.doc_topic[:400, :2] + 0.1 * np.random.default_rng(0).normal(size=(400, 2))
    by = np.resize(["a", "b", "c"], 200)
    model = SLDARegressor(3, words=False, **RUN).fit(corpus.X[:200], y[:200] * [1.0, 1000.0])
    found = model.interactions(by, y[200:] * [1.0, 1000.0], corpus.X[200:400])
    size = np.abs(found.draws.mean(axis=0)).max(axis=(1, 2))
    assert 300 < size[1] / size[0] < 3000
    effects = np.abs(model.effects_on(corpus.X[200:400], y[200:] * [1.0, 1000.0]).coef_draws.mean(axis=0)).max(axis=1)
    np.testing.assert_allclose(size, effects, rtol=0.6)


# groups of training documents


def test_shares_of_training_documents_are_those_of_their_chain(corpus):
    y = np.random.default_rng(0).normal(5.0, 3.0, size=300)
    y[::10] = np.nan
    model = SLDARegressor(3, words=False, **RUN | {"init": "random"}).fit(corpus.X[:300], y)
    posterior = model.posterior_
    crossed = posterior.cross_fitted
    assert crossed.shares.dtype == np.float32 and crossed.shares.shape == (300, 3)
    np.testing.assert_array_equal(np.isnan(crossed.shares).any(axis=1), np.isnan(y))
    np.testing.assert_array_equal(crossed.fold < 0, np.isnan(y))
    known = crossed.fold >= 0
    np.testing.assert_allclose(posterior.response.offset_in_units(crossed.target.y)[known, 0], y[known])
    assert (posterior.order != np.arange(3)).any()
    for chain in range(4):
        own = np.flatnonzero(crossed.fold == chain)
        tokens = make_tokens(check_counts(corpus.X[own]))
        shares = topic_shares(posterior, tokens, chain, Settings(model.predict_sweeps))
        alike = np.corrcoef(crossed.shares[own].T, shares.T)[:3, 3:]
        assert (alike.diagonal() > 0.9).all()
    evidence, rows = training_evidence(posterior, None)
    np.testing.assert_array_equal(rows, np.flatnonzero(known))
    np.testing.assert_array_equal(evidence.chain, crossed.fold[known])
    assert evidence.has is posterior.consensus.has and evidence.spread is crossed.spread


def test_groups_of_training_documents_hold_the_truth():
    """Whole fits: topics are learned, shares are cross-fitted, and differences between critics are found."""
    eta, hits = np.array([[2.0, -2.0, 0.0], [2.0, -2.0, 0.0], [-1.0, -1.0, 2.0]]), []
    for seed in range(8):
        corpus = make_corpus(n_docs=300, n_words=300, n_topics=3, doc_length=150, random_state=seed)
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 3, 300)
        y = (corpus.doc_topic * eta[group]).sum(axis=1) + 2.0 * group + rng.normal(size=300)
        model = SLDARegressor(3, words=False, **RUN | {"random_state": seed}).fit(corpus.X, y)
        found = model.interactions(np.array(["A", "B", "C"])[group])
        order = np.corrcoef(model.topic_word_, corpus.topic_word)[:3, 3:].argmax(axis=1)
        truth = (eta - (eta @ corpus.doc_topic.mean(axis=0))[:, None])[:, order]
        hits.append(inside(found.difference_draws[:, 0, 1:], truth[1:] - truth[0]))
        frame = found.frame().set_index(["group", "topic"])
        k = int(np.flatnonzero(order == 0)[0])
        assert frame.p_direction["C", k] > 0.99 and frame.difference["C", k] < -1.5
        assert np.isnan(frame.difference["A", k])
        if stops_early(len(hits), 8, lambda: near_limits(np.mean(hits), 0.95, 0.8)):
            break
    assert 0.8 < np.mean(hits) <= 1.0


def test_the_last_batch_counts(corpus, few_draws):
    y = np.random.default_rng(0).normal(size=400)
    model = SLDARegressor(3, words=False, **RUN).partial_fit(corpus.X[:300], y[:300])
    model.partial_fit(corpus.X[300:400], y[300:])
    assert model.interactions(np.resize([True, False], 100)).groups == ("False", "True")
    with pytest.raises(ValueError, match="100 documents but by has 400 rows"):
        model.interactions(np.resize([True, False], 400))
    model.partial_fit(corpus.X[:50])
    with pytest.raises(ValueError, match="No response was held out"):
        model.interactions(np.resize([True, False], 50))


@pytest.mark.parametrize("settings", [{"held_out": 0}, {"calibrate": False}])
def test_without_held_out_responses_there_is_nothing_to_compare(corpus, settings):
    model = SLDAClassifier(**QUICK | settings).fit(corpus.X[:100], corpus.y[:100])
    with pytest.raises(ValueError, match="No response was held out from any chain"):
        model.interactions(np.resize(["a", "b"], 100))
    found = model.interactions(np.resize(["a", "b"], 100), corpus.y[100:200], corpus.X[100:200])
    assert found.n_documents == 100


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (["b", "a"], ("a", "b")),
        (pandas.Series(["b", "a"], name="critic"), ("a", "b")),
        (pandas.Series(pandas.Categorical(["b", "a"], categories=["b", "z", "a"])), ("b", "a")),
        (polars.Series(["b", "a"], dtype=polars.Enum(["b", "a"])), ("b", "a")),
        (pandas.DataFrame({"critic": ["b", "a"]}), ("a", "b")),
        (np.array([True, False]), ("False", "True")),
        ([True, False], ("False", "True")),
        (pandas.Series([True, False], dtype="boolean"), ("False", "True")),
        (np.array([10, 9]), ("9", "10")),
        ([20201231, 20201230], ("20201230", "20201231")),
        (np.array([0.5, 10.0]), ("0.5", "10")),
        (np.array([["b"], ["a"]], dtype=object), ("a", "b")),
    ],
)
def test_kinds_of_groups(corpus, model, by, names, few_draws):
    y = np.random.default_rng(0).normal(size=2)
    found = model.interactions(by, y, corpus.X[:2])
    assert found.groups == names and found.sizes == (1, 1)
    draws = found.draws[:, 0]  # a document of each: the prior is nearly all that is known
    assert draws.std() > 1.0 and np.isfinite(draws).all()


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (np.arange(400), "400 groups; at most 50"),
        (["a"] * 400, "one group only, 'a'"),
        (["a"] * 399, "400 documents but by has 399"),
        (["a", None] * 200, "missing in 200 of 400"),
        (np.array([1.0, np.nan] * 200), "missing in 200 of 400"),
        (pandas.Series(["a", pandas.NA] * 200), "missing in 200 of 400"),
        (np.array([1.0, np.inf] * 200), "infinite"),
        (np.zeros((400, 2)), "one column"),
        (np.zeros((400, 1, 1)), "3 dimensions"),
        (pandas.DataFrame({"a": ["x"] * 400, "b": ["y"] * 400}), "one column"),
        ("critic", "dimensions|rows"),
        (5, "0 dimensions"),
        (["a", 1] * 200, "str"),
        (np.array(["2020-01-01", "2021-01-01"] * 200, dtype="datetime64[D]"), "dates"),
    ],
)
def test_wrong_groups(model, by, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.interactions(by)


def test_wrong_interactions(corpus, model, monkeypatch):
    by = np.resize(["a", "b"], 400)
    for arguments, message in (
        ({"X": corpus.X[:400]}, "both X and y"),
        ({"y": np.zeros(400)}, "both X and y"),
        ({"level": 0}, "level must be"),
        ({"pooled": "yes"}, "pooled must be"),
        ({"sample_weight": np.ones(400)}, "for new documents"),
        ({"covariates": np.zeros((3, 1))}, "400 documents but covariates has 3"),
    ):
        with pytest.raises(ValueError, match=message):
            model.interactions(by, **arguments)
    y = np.where(by == "a", np.nan, 1.0)
    with pytest.raises(ValueError, match="Only one of the 2 groups in by has documents with a known response, 'b'"):
        model.interactions(by, y, corpus.X[:400])
    monkeypatch.setattr("supertopic.estimators.effects.MOST_COLUMNS", 5)
    with pytest.raises(ValueError, match="2 groups of 3 topics give 7 weights; at most 5"):
        model.interactions(by)


def test_frames_and_plots_of_groups(corpus, model):
    matplotlib.use("Agg")
    by = np.resize(["<b>", "a & b", "c"], 400)
    for pooled in (False, True):
        found = model.interactions(by, pooled=pooled, level=0.5)
        frame = found.frame()
        assert list(frame) == [
            "topic", "name", "group", "column", "weight", "lower", "upper", "difference", "difference_lower",
            "difference_upper", "p_direction",
        ]  # fmt: skip
        assert frame.topic.tolist() == np.repeat(range(3), 3).tolist() and frame.group.tolist()[:3] == sorted(set(by))
        assert frame.difference.isna().sum() == (0 if pooled else 3)
        wide = frame.pivot(index="topic", columns="group", values="weight")
        other = wide.mean(axis=1) if pooled else wide["<b>"]
        np.testing.assert_allclose(
            frame.pivot(index="topic", columns="group", values="difference")["c"], wide["c"] - other
        )
        sure = (found.difference_draws[:, 0, :, 2] > 0).mean(axis=0)  # of the last topic
        own = frame[(frame.topic == 2) & frame.difference.notna()].p_direction
        np.testing.assert_allclose(own, np.maximum(sure, 1 - sure)[-len(own) :], atol=1e-12)
        display = found.plot(2)
        assert len(display.titles) == 2 and len(display.axes_) == 2
        labels = [label.get_text() for label in display.axes_[0].get_yticklabels()]
        assert sorted(labels) == sorted(set(by))
        found.plot(column="0", ax=display.axes_[:3], n_topics=2)
        with pytest.raises(ValueError, match="no column 'x'"):
            found.plot(column="x")
        with pytest.raises(ValueError, match="2 topics need 2 axes"):
            found.plot(2, ax=display.axes_[:1])
        assert "&lt;b&gt;" in found._repr_html_()
        assert f"from {'the mean of all groups' if pooled else 'the group <b>'}" in repr(found).replace("\n", " ")
    names = found.clearest(0)
    size = np.abs(found.difference_draws.mean(axis=0) / found.difference_draws.std(axis=0))[0].max(axis=0)
    assert (np.diff(size[names]) <= 0).all()
    matplotlib.pyplot.close("all")


def test_effects_of_more_points_are_larger(corpus, model, few_draws):
    """Of a rating in proportion; the level of the covariates of the new documents is in the base rate."""
    y = 3.0 + 2.0 * (corpus.doc_topic @ [-1.0, 0.0, 1.0])
    new = slice(400, 600)
    Z = pandas.DataFrame({"z": np.random.default_rng(2).normal(size=200) + 5.0})
    one, two = (model.effects_on(corpus.X[new], y[new], covariates=Z, points=points) for points in (0.1, 0.2))
    a, b = (found.table().frame() for found in (one, two))
    topics = a["kind"] == "topic"
    np.testing.assert_allclose(b["change"][topics], 2 * a["change"][topics])
    np.testing.assert_allclose(b["change"][~topics], a["change"][~topics])
    assert dict(one.table().facts)["Documents after the fit"] == "200"
    draws, frame = one.coef_draws, one.frame()
    for _, row in frame[frame["kind"] == "topic"].iterrows():
        own = draws[:, 0, row["topic"]]
        assert (row["weight"], row["sd"]) == pytest.approx((own.mean(), own.std(ddof=1)))
        assert row["p_direction"] == pytest.approx(max((own > 0).mean(), (own < 0).mean()))


def test_covariates_of_the_fit_have_no_rows_beside_those_of_new_documents(corpus, few_draws):
    y, Z = corpus.doc_topic @ [1.0, 2.0, 4.0], pandas.DataFrame({"old": np.arange(400.0)})
    fitted = SLDARegressor(3, words=False, **RUN).fit(corpus.X[:400], y[:400], covariates=Z)
    new = {"old": np.arange(200.0) % 9, "new": np.arange(200.0) % 7}
    for columns in (["new"], ["new", "old"], []):
        given = pandas.DataFrame(new)[columns] if columns else None
        found = fitted.effects_on(corpus.X[400:600], y[400:600], covariates=given)
        frame = found.frame()
        assert frame[frame["kind"] == "covariate"]["name"].tolist() == columns
        assert [row.name for row in found.table().rows if row.kind == "covariate"] == columns
        assert found.covariate_draws.shape[2] == len(columns)


def test_groups_are_compared_with_the_first_or_with_the_mean_of_all():
    """Numbers that are given, three groups and two columns, of which each has topics of its own."""
    rng = np.random.default_rng(6)
    draws = rng.normal(size=(50, 2, 3, 4)) + np.arange(3)[:, None] * [0.0, 1.0, 3.0, -2.0]
    draws[:, :, 1, 0] += 9.0  # one group differs more than those of other topics, which differ more in the mean
    own = np.array([[True, True, True, False], [True, False, True, True]])
    for pooled in (False, True):
        found = Interactions(draws, ("a", "b", "c"), (5, 6, 7), ("x", "y"), ("k", "l", "m", "n"), own, pooled, 0.6)
        other = draws.mean(axis=2, keepdims=True) if pooled else draws[:, :, :1]
        away = draws - other
        np.testing.assert_allclose(found.difference_draws, away)
        frame = found.frame()
        assert len(frame) == own.sum() * 3 and found.n_documents == 18
        for _, row in frame.iterrows():
            r, g, k = "xy".index(row["column"]), "abc".index(row["group"]), row["topic"]
            assert own[r, k] and row["name"] == "klmn"[k]
            assert row["weight"] == pytest.approx(draws[:, r, g, k].mean())
            ends = np.quantile(draws[:, r, g, k], [0.2, 0.8], method="weibull")
            assert (row["lower"], row["upper"]) == pytest.approx(ends)
            if pooled or g:
                ends = np.quantile(away[:, r, g, k], [0.2, 0.8], method="weibull")
                assert (row["difference_lower"], row["difference_upper"]) == pytest.approx(ends)
                assert row["difference"] == pytest.approx(away[:, r, g, k].mean())
        for r in range(2):
            spread = away[:, r].std(axis=0)
            size = np.abs(away[:, r].mean(axis=0)) / np.where(spread > 0, spread, np.inf)
            order = [k for k in np.argsort(-size.max(axis=0), kind="stable") if own[r, k]]
            assert found.clearest(r) == order
        for name, size in zip("abc", "567", strict=True):
            assert set(re.findall(rf"\b{name}\s+(\d)\s", repr(found))) == {size}
        shown = found.plot(2, column="y")
        k = found.clearest(1)[0]
        np.testing.assert_allclose(shown.weight[0], draws[:, 1, :, k].mean(axis=0))
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("pooled", [False, True])
def test_draws_begin_after_the_burn_in_and_are_as_many_as_asked_for(monkeypatch, pooled):
    """Of those between, every third is kept."""
    rng, calls, real = np.random.default_rng(0), [], gibbs.draw_eta
    monkeypatch.setattr(gibbs, "draw_eta", lambda *more: calls.append(1) or real(*more))
    monkeypatch.setattr(effects, "POOLED_BURN_IN", 7)
    response = Gaussian(1.0, np.ones(1))
    monkeypatch.setattr(Gaussian, "burn_in", 3)
    target = make_target(rng.normal(size=(12, 1)), np.ones((12, 1)))
    x = rng.random((12, 4)).astype(np.float32)
    with regression_engine(lambda docs: x[docs], 4, target, response, [slice(0, 12)], 1) as engine:
        if pooled:
            draws = effects.draw_pooled(engine, response, [np.array([[2], [3]])], 4, make_key(1), 3)
        else:
            draws = draw_weights(engine, response, 25.0, engine.plan.no_statistics(), 4, make_key(1), 3)
        after = [len(calls) for _ in draws]
    assert after == [9 + 3 + 3 * i for i in range(4)]
