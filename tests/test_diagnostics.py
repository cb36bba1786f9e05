"""What a model says of itself, against ArviZ, gensim and the definitions."""

import warnings

import arviz as az
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer

import supertopic
from supertopic import LDA, MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor, load
from supertopic.datasets import load_docstrings, make_corpus
from supertopic.report.diagnose import Diagnosis
from supertopic.report.diagnostics import coherence, ess, rhat
from supertopic.report.summary import coefficient_frame

RUN = {"burn_in": 40, "n_draws": 20, "n_chains": 2, "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=300, n_topics=4, random_state=1)


@pytest.fixture(scope="module")
def fitted(corpus):
    return SLDAClassifier(4, **RUN).fit(corpus.X, corpus.y)


@pytest.mark.parametrize(
    ("n_chains", "n_draws", "sticky", "shift"), [(4, 200, 0.0, 0), (2, 21, 0.5, 1), (3, 50, 0.9, 0)]
)
def test_rhat_and_ess_are_arvizs(n_chains, n_draws, sticky, shift):
    rng = np.random.default_rng(n_draws)
    x = rng.normal(size=(n_chains, n_draws))
    for i in range(1, n_draws):
        x[:, i] += sticky * x[:, i - 1]
    x += shift * np.arange(n_chains)[:, None]
    assert rhat(x) == pytest.approx(float(az.rhat(x)), rel=1e-6)
    assert ess(x) == pytest.approx(float(az.ess(x)), rel=1e-6)
    assert np.isnan(rhat(np.ones((2, 10)))) and np.isnan(ess(x[:, :3]))


def test_diagnose_and_its_advice(corpus, fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fitted.diagnose(corpus.X[:50], corpus.y[:50])
    assert set(found) == {"score", "log joint", "training loss", "omega", "test loss", "held-out documents"}
    assert all(np.isfinite(row["rhat"]) and row["ess"] > 0 for row in found.values() if "rhat" in row)
    assert len(found["score"]) == 2 and found["held-out documents"]["documents"] == fitted.held_out_["documents"]
    lines = repr(found).splitlines()
    assert len({len(line) for line in lines[: len(found) + 1]}) == 1 and "rhat" in lines[0]
    assert lines[-1].startswith("- ")
    apart, alike = (Diagnosis(found | {"log joint": {"rhat": rhat}}, []) for rhat in (2.4, 1.0))
    assert "chains keep different topics. Predictions are made from omega." in repr(apart)
    assert "<p>The R-hat" in apart._repr_html_() and not alike.note and "<p>" not in alike._repr_html_()
    assert found._repr_html_().count("<tr>") == len(found) + 1
    stuck = SLDAClassifier(4, c=200, burn_in=0, n_draws=20, n_chains=3, random_state=0).fit(corpus.X, corpus.y)
    with pytest.warns(ConvergenceWarning, match="3 of 3 chains had not settled .*Raise burn_in"):
        assert len(stuck.diagnose().advice) == 1
    settled = SLDAClassifier(4, n_draws=20, random_state=0).fit(corpus.X, corpus.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert "settle" not in repr(settled.diagnose()) and settled.diagnose().advice == []


def test_every_model_can_be_diagnosed(corpus, short_regressions):
    quick = RUN | {"burn_in": 5, "n_draws": 5}
    y, group = corpus.y, corpus.doc_topic.argmax(axis=1)
    labels = (corpus.doc_topic > 0.3).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert set(LDA(3, **quick).fit(corpus.X).diagnose()) == {"log joint"}
        for model, target, known in (
            (SLDAClassifier(4, **quick), group, {}),
            (SLDAClassifier(4, multiclass="stick_breaking", **quick), group, {}),
            (SLDAClassifier(4, **quick), labels, {}),
            (MedLDAClassifier(4, **quick), y, {}),
            (MedLDAClassifier(4, **quick), group, {}),
            (MedLDAClassifier(4, **quick), labels, {}),
            (SLDARegressor(4, **quick), corpus.doc_topic[:, 0], {}),
            (SLDACountRegressor(4, **quick), group, {"exposure": 1.0 + y}),
        ):
            model.fit(corpus.X, target, **known)
            found = model.diagnose(corpus.X, target, **known)
            score = np.mean(list(found["score"].values()))
            assert found["test loss"]["ess"] > 0
            if not isinstance(model, SLDACountRegressor):
                assert score > 0.4
            if isinstance(model, SLDAClassifier) and target is not labels:  # both by the definition
                p = model.predict_proba(corpus.X)
                assert score == pytest.approx((p.argmax(axis=1) == target).mean(), abs=0.1)


def test_topics_are_matched(fitted):
    order = fitted.match_topics()
    assert order.shape == (2, 4) and all(sorted(row) == [0, 1, 2, 3] for row in order.tolist())
    assert order[fitted.best_chain_].tolist() == [0, 1, 2, 3]
    best, other = fitted.best_chain_, 1 - fitted.best_chain_
    a, b = fitted.posterior_.phi(best), fitted.posterior_.topics[0].phi(other)[:, order[other]]
    similar = np.corrcoef(a.T, b.T)[:4, 4:]
    assert (similar.argmax(axis=1) == np.arange(4)).all()


def test_arviz_takes_the_dataset(corpus, fitted, tmp_path):
    data = fitted.to_xarray()
    assert dict(data.sizes) == {"chain": 2, "draw": 20, "column": 1, "topic": 4}
    summary = az.summary(data)
    assert {"mean", "sd", "r_hat", "ess_bulk"} <= set(summary.columns) and len(summary) == 14
    convert = getattr(az, "convert_to_datatree", None) or az.convert_to_inference_data  # of ArviZ 1.x, and before
    assert convert(data)["posterior"]["coef"].shape == (2, 20, 1, 4)
    supertopic.save(fitted, tmp_path / "m")
    assert load(tmp_path / "m").to_xarray().equals(data)
    assert set(LDA(3, **RUN).fit(corpus.X).to_xarray().data_vars) == {"log_joint"}


def test_frames(corpus, fitted):
    topics = fitted.topic_frame([f"w{i}" for i in range(500)], 3)
    assert isinstance(topics, pd.DataFrame) and len(topics) == 4
    assert topics.share.sum() == pytest.approx(1) and topics.share.is_monotonic_decreasing
    weights = fitted.coefficient_frame()
    assert weights.columns.tolist() == ["column", "topic", "name", "mean", "sd", "lower", "upper", "p_positive"]
    np.testing.assert_allclose(weights["mean"], fitted.coef_[0])
    assert (weights.lower < weights["mean"]).all() and weights.p_positive.between(0, 1).all()
    part = fitted.exclusivity(5)
    assert part.shape == (4,) and (part > 0.25).all() and (part <= 1).all()


def test_perplexity(corpus):
    """The truth predicts best, a model of the words alone worst, and by the definition."""
    good = LDA(4, **RUN).fit(corpus.X[:200])
    one = LDA(1, burn_in=1, n_draws=1).fit(corpus.X[:200])
    value = good.perplexity(corpus.X[200:])
    assert value < 0.8 * one.perplexity(corpus.X[200:])
    shares = np.asarray(corpus.X[:200].sum(axis=0)).ravel() + 0.01
    seen = np.random.default_rng(0).binomial(corpus.X[200:].data, 0.5)
    rest = corpus.X[200:].copy()
    rest.data = rest.data - seen
    words = np.asarray(rest.sum(axis=0)).ravel()
    expected = np.exp(-np.sum(words * np.log(shares / shares.sum())) / words.sum())
    assert one.perplexity(corpus.X[200:]) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="some words"):
        good.perplexity(np.zeros((2, 500), int))


@pytest.mark.parametrize("measure", ["c_v", "c_npmi"])
def test_coherence_is_gensims(measure):
    gensim = pytest.importorskip("gensim", reason="gensim has no wheel for this Python")
    from gensim.models import CoherenceModel

    texts = load_docstrings().data[:300]
    vectorizer = CountVectorizer(stop_words="english", min_df=3)
    X, analyze = vectorizer.fit_transform(texts), vectorizer.build_analyzer()
    tokens = [analyze(text) for text in texts]
    model = LDA(5, burn_in=20, n_draws=5, random_state=0).fit(X)
    words = model.top_words(vectorizer.get_feature_names_out(), 10, "probability")
    ours = model.coherence(tokens, vectorizer.get_feature_names_out(), measure=measure)
    dictionary = gensim.corpora.Dictionary(tokens)
    theirs = CoherenceModel(topics=words, texts=tokens, dictionary=dictionary, coherence=measure, processes=1)
    np.testing.assert_allclose(ours, theirs.get_coherence_per_topic(), rtol=1e-9)


def test_bad_coherence(fitted):
    with pytest.raises(ValueError, match="c_v"):
        fitted.coherence([["x0", "x1"]], measure="u_mass")
    with pytest.raises(ValueError, match="no text"):
        fitted.coherence([])
    assert np.isnan(coherence([["a", "nowhere"]], [["a", "b"]], "c_npmi")).all()


def test_a_model_without_a_response_has_diagnostics_too():
    corpus = make_corpus(n_docs=60, random_state=0)
    model = LDA(3, burn_in=5, n_draws=6, n_chains=2, random_state=0).fit(corpus.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.diagnose(corpus.X, corpus.y)
    assert found["perplexity"].keys() == {"chain 0", "chain 1"} and "rhat" in found["log joint"]
    assert found["perplexity"]["chain 1"] == model.perplexity(corpus.X, chains=[1])
    assert not hasattr(model, "coefficient_frame")
    frame = coefficient_frame(model.posterior_)
    assert len(frame) == 0 and list(frame) == ["column", "topic", "name", "mean", "sd", "lower", "upper", "p_positive"]


def test_raw_texts_have_no_coherence():
    corpus = make_corpus(n_docs=20, random_state=0)
    model = LDA(2, burn_in=2, n_draws=2, random_state=0).fit(corpus.X)
    with pytest.raises(TypeError, match="build_analyzer"):
        model.coherence(["x0 x1 x2", "x3"])


def test_wilsons_interval():
    """Its ends are the shares from which what was seen is 1.645 standard deviations away."""
    from supertopic.report.evaluate import wilson

    for hits, n in ((8, 10), (0, 5), (199, 200)):
        for end in wilson(np.arange(n) < hits):
            assert (hits / n - end) ** 2 == pytest.approx(1.645**2 * end * (1 - end) / n, abs=1e-12)
