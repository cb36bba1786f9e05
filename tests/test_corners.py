"""Corners: what is refused and how it is said, numbers of any size, one line for each warning, updates in threads."""

import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import supertopic
from supertopic import LDA, MedLDAClassifier, Prior, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.corpus.tokens import check_counts
from supertopic.datasets import make_corpus
from supertopic.inference import chains
from supertopic.inference.checkpoint import Checkpoint
from supertopic.warn import warn

RUN = {"burn_in": 6, "n_draws": 4, "n_chains": 2, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:Found no relation between topics")


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=150, n_topics=3, random_state=0)


# --- what is given


def test_duplicates_of_small_types_are_added_up_before_they_overflow():
    ones = np.full(300, 1, np.int8)
    X = sp.coo_array((ones, (np.zeros(300, int), np.zeros(300, int))), shape=(2, 3))
    assert check_counts(X).sum() == 300
    model = LDA(2, burn_in=1, n_draws=1).fit(sp.vstack([X, sp.coo_array(np.eye(3, dtype=np.int8))]).tocoo())
    assert model.components_.sum() == pytest.approx(303 + 6 * model.beta)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"n_jobs": 1.5}, "n_jobs must be None or a whole number"), ({"n_jobs": True}, "n_jobs must be"), ({"n_jobs": 0},
     "n_jobs must be"), ({"random_state": True}, "random_state must be"), ({"random_state": np.True_}, "random_state")],
)  # fmt: skip
def test_parameters_that_are_no_numbers(corpus, parameters, message):
    with pytest.raises(ValueError, match=message):
        LDA(2, **{"burn_in": 1, "n_draws": 1} | parameters).fit(corpus.X)


def test_a_variance_in_another_unit_is_refused(corpus):
    y = 1e6 * corpus.doc_topic[:, 0]
    with pytest.raises(ValueError, match=r"sigma2 is in y's units squared.*standard deviation is .*got 1e-09"):
        SLDARegressor(3, sigma2=1e-9, **RUN).fit(corpus.X, y)
    model = SLDARegressor(3, sigma2=1e10, **RUN).fit(corpus.X, y)
    np.testing.assert_allclose(model.sigma2_draws_, 1e10)
    with pytest.raises(ValueError, match="dispersion must be 'drawn' or a number from 1e-08 to 1e"):
        SLDACountRegressor(3, dispersion=1e9, **RUN).fit(corpus.X, np.ones(150))


def test_a_weight_of_counts_that_is_too_large_is_named(corpus):
    with pytest.raises(ValueError, match=r"where c = 1e\+10: lower c"):
        SLDACountRegressor(3, c=1e10, **RUN).fit(corpus.X, np.arange(150))


def test_covariates_of_any_size(corpus):
    Z = np.full((150, 1), 1e300)
    with pytest.raises(ValueError, match=r"covariates must be from -1e\+100 to 1e\+100, got 1e\+300"):
        SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y, covariates=Z)
    Z = np.random.default_rng(0).normal(size=(150, 1))
    model = SLDAClassifier(3, **RUN).fit(corpus.X, np.arange(150) % 3, covariates=1e90 * Z)
    assert np.isfinite(model.predict_proba(corpus.X, covariates=1e90 * Z)).all()


@pytest.mark.parametrize("unit", [1e-160, 1e200])
def test_ratings_of_any_size_keep_their_words(corpus, unit):
    """A law of scale: everything that is predicted has the unit of the ratings."""
    rng = np.random.default_rng(0)
    X = np.hstack([corpus.X.toarray(), rng.integers(0, 2, (150, 1))])
    y = corpus.doc_topic @ [1.0, 2.0, 4.0] + 2.0 * X[:, -1]
    one, other = (SLDARegressor(3, **RUN).fit(X, y * scale) for scale in (1.0, unit))
    assert np.abs(one.word_coef_).max() > 0.1
    np.testing.assert_allclose(other.word_coef_ / unit, one.word_coef_, rtol=1e-4, atol=1e-5)
    for a, b in zip(one.predict(X[:9], return_std=True), other.predict(X[:9], return_std=True), strict=True):
        np.testing.assert_allclose(b / unit, a, rtol=1e-6)
    for a, b in zip(one.predict_interval(X[:9]), other.predict_interval(X[:9]), strict=True):
        np.testing.assert_allclose(b / unit, a, rtol=1e-6)
    logs = [model.log_predictive(X[:9], y[:9] * scale) for model, scale in ((one, 1.0), (other, unit))]
    np.testing.assert_allclose(logs[0] - np.log(unit), logs[1], rtol=1e-6)


def test_a_single_draw_is_no_certainty(corpus):
    """One draw has no spread; the prior of sigma2 and r that it leaves behind must not be infinitely firm."""
    y = corpus.doc_topic[:, 0]
    run = {"burn_in": 4, "n_draws": 1, "n_chains": 1, "random_state": 0}
    for model, first, then in (
        (SLDARegressor(3, **run), y, 30.0 * np.random.default_rng(0).normal(size=150)),
        (SLDACountRegressor(3, **run), np.arange(150) % 3, np.random.default_rng(0).negative_binomial(0.3, 0.01, 150)),
    ):
        model.partial_fit(corpus.X, first)
        before = model.posterior_.scale.mean()
        for _ in range(4):
            model.partial_fit(corpus.X, then)
        ratio = model.posterior_.scale.mean() / before
        assert ratio > 3 or ratio < 1 / 3


def test_an_exposure_is_not_forgotten(corpus):
    counts = np.arange(150) % 4
    model = SLDACountRegressor(3, **RUN).partial_fit(corpus.X, counts, exposure=np.full(150, 2.0))
    with pytest.raises(ValueError, match="Earlier batches had an exposure"):
        model.partial_fit(corpus.X, counts)
    assert model.posterior_.response.exposed


def test_responses_that_predictions_are_compared_with(corpus):
    rating = SLDARegressor(3, **RUN).fit(corpus.X, corpus.doc_topic[:, 0])
    with pytest.raises(ValueError, match="X has 5 documents but y has 9"):
        rating.log_predictive(corpus.X[:5], np.zeros(9))
    with pytest.raises(ValueError, match="y has 2 columns, but the model was fitted with 1"):
        rating.log_predictive(corpus.X[:5], np.zeros((5, 2)))
    count = SLDACountRegressor(3, **RUN).fit(corpus.X, np.arange(150) % 4)
    for wrong in (2.5, -1.0):
        with pytest.raises(ValueError, match=f"whole numbers >= 0, got {wrong:g}"):
            count.log_predictive(corpus.X[:2], [1.0, wrong])
    assert np.isnan(count.log_predictive(corpus.X[:2], [1.0, np.nan])).tolist() == [False, True]
    for kind in (SLDAClassifier, MedLDAClassifier):
        model = kind(3, **RUN).fit(corpus.X, np.array(["a", "b", "c"])[np.arange(150) % 3])
        for method in (model.surprising, model.diagnose):
            with pytest.raises(
                ValueError, match="class 'd', which is not a class of the model; its classes are 'a', 'b'"
            ):
                method(corpus.X[:3], np.array(["a", "b", "d"]))
            with pytest.raises(ValueError, match="X has 3 documents but y has 2"):
                method(corpus.X[:3], np.array(["a", "b"]))


def test_memory_of_many_topics_is_refused_before_it_is_taken(corpus, monkeypatch):
    from supertopic.inference import memory

    monkeypatch.setattr(memory, "free_memory", lambda: 24.0 * 2**30)
    with pytest.raises(MemoryError, match="n_topics=65535"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SLDAClassifier(65_535, **RUN).fit(corpus.X, corpus.y)


def test_words_are_shown_as_words(corpus):
    names = np.array([f"w{i}" for i in range(corpus.X.shape[1])])
    with pytest.warns(UserWarning, match=r"not in the vocabulary: 'refund'\.$"):
        LDA(3, seeds={"a": [np.str_("refund"), "w0"]}, **RUN).fit(corpus.X, feature_names=names)
    model = SLDAClassifier(3, **RUN).fit(corpus.X, np.array(["x", "y"])[np.arange(150) % 2])
    with pytest.raises(ValueError, match="y has the class 'z'"):
        model.partial_fit(corpus.X[:9], np.repeat("z", 9))


# --- what is said


def test_warnings_point_at_the_line_that_called(corpus):
    here = __file__
    with pytest.warns(UserWarning, match="is the same for all documents") as caught:
        SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y, covariates=np.ones((150, 1)))
    assert {warning.filename for warning in caught} == {here}
    texts = ["goal match team", "vote law senate"] * 30
    with pytest.warns(UserWarning, match="Found no relation between topics") as caught:
        make_pipeline(CountVectorizer(), SLDAClassifier(3, **RUN)).fit(texts, np.arange(60) // 30)
    assert {warning.filename for warning in caught} == {here}
    with pytest.warns(UserWarning, match="^of a test$") as caught:
        warn("of a test")
    assert caught[0].filename == here


def test_names_are_in_all_tables(corpus):
    model = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y).name_topics({1: "tea"})
    for frame in (model.topic_frame(), model.effect_frame(), model.coefficient_frame()):
        assert set(frame[frame["topic"] == 1]["name"]) == {"tea"} and set(frame[frame["topic"] != 1]["name"]) == {""}


def test_one_chain_agrees_with_nobody(corpus):
    assert np.isnan(LDA(3, burn_in=2, n_draws=2).fit(corpus.X).topic_agreement()).all()


def test_a_page_is_shown_as_a_link(tmp_path):
    texts, labels = ["goal match team", "vote law senate"] * 20, ["sport", "politics"] * 20
    vectorizer = CountVectorizer()
    model = SLDAClassifier(2, **RUN).fit(vectorizer.fit_transform(texts), labels)
    page = model.report(texts, labels, tmp_path / "a b.html", vectorizer=vectorizer)
    assert page.startswith("<!doctype html>") and len(repr(page)) < 200 and "a b.html" in repr(page)
    assert "<a href=" in page._repr_html_() and len(page._repr_html_()) < 400
    assert len(model.report(texts, vectorizer=vectorizer)._repr_html_()) < 400


def test_coherence_of_words_that_no_text_has(corpus):
    model = LDA(3, burn_in=2, n_draws=2).fit(corpus.X)
    with pytest.warns(UserWarning, match="The coherence of 3 of 3 topics is NaN"):
        model.coherence([["A", "B"]] * 5)


# --- where things are


def test_predictions_of_a_model_from_a_cluster_need_no_cluster(corpus, monkeypatch):
    model = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y).set_params(engine="ray")
    monkeypatch.setattr(chains.importlib.util, "find_spec", lambda name: None)
    assert len(model.predict(corpus.X)) == 150
    with pytest.raises(ImportError, match="engine='ray' needs Ray"):
        model.fit(corpus.X, corpus.y)


def test_a_numba_cuda_that_does_not_know_its_numpy(corpus, monkeypatch):
    import builtins

    real = builtins.__import__

    def broken(name, *more):
        if name == "supertopic.kernels.cuda.device":
            raise AttributeError("module 'numpy' has no attribute 'row_stack'")
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(ImportError, match=r"needs numba-cuda, and a NumPy that it supports.*pip install"):
        LDA(3, device="cuda").fit(corpus.X)


def test_a_checkpoint_that_was_killed_while_its_first_file_was_written(corpus, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / ".fit.partial").write_bytes(b"half")
    LDA(3, burn_in=2, n_draws=2).fit(corpus.X, checkpoint=tmp_path / "c")
    assert not (tmp_path / "c" / ".fit.partial").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="a folder with other files"):
        LDA(3, burn_in=2, n_draws=2).fit(corpus.X, checkpoint=tmp_path / "other")


def test_a_fit_with_a_prior_and_no_seed_goes_on(corpus, tmp_path, monkeypatch):
    """The prior's pseudo-counts are rounded at random: by the seed of the checkpoint, not by a new one."""
    prior = LDA(3, burn_in=4, n_draws=3, random_state=0).fit(corpus.X)
    keep, calls = Checkpoint.keep, []

    def stop(self, chain, name, at_once):
        keep(self, chain, name, True)
        calls.append(name)
        if len(calls) == 2:
            raise KeyboardInterrupt

    model = SLDAClassifier(4, prior=Prior(prior, discount=0.3), burn_in=5, n_draws=3, n_chains=1)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "keep", stop)
        with pytest.raises(KeyboardInterrupt):
            model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")
    resumed = model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")
    whole = SLDAClassifier(**model.get_params(deep=False) | {"random_state": resumed.seed_}).fit(corpus.X, corpus.y)
    np.testing.assert_array_equal(resumed.prediction_draws_, whole.prediction_draws_)


# --- sticks


def test_an_explanation_of_sticks_is_about_the_class_that_is_predicted():
    corpus = make_corpus(n_docs=300, n_topics=4, doc_length=60, random_state=0)
    y = np.array(["a", "b", "c", "d"])[corpus.doc_topic.argmax(axis=1)]
    run = RUN | {"burn_in": 30}
    model = SLDAClassifier(4, multiclass="stick_breaking", **run).fit(corpus.X, y)
    predicted = model.predict(corpus.X[:30])
    for d in range(30):
        found = model.explain(corpus.X[d : d + 1])
        assert found.columns == ["a", "b", "c", "d"] and found.columns[found.column] == predicted[d]
        parts = found.constant + found.covariates + found.through_topics.sum(axis=0) + found.direct.sum(axis=0)
        np.testing.assert_allclose(parts, found.omega, atol=1e-9)
        np.testing.assert_allclose(found.topics.shape, (4, 4))
    omega = model._new(corpus.X[:1]).omega()[:, 0].mean(axis=0)
    found = model.explain(corpus.X[:1]).omega
    expected = [omega[0], omega[1] - omega[0], omega[2] - omega[0] - omega[1], -omega.sum()]
    np.testing.assert_allclose(found, expected, atol=1e-9)


# --- threads


@pytest.mark.parametrize("kind", [SLDAClassifier, SLDARegressor])
def test_threads_see_the_old_model_or_the_new_one(corpus, kind, short_regressions):
    """While a model is updated, what others predict is what it was before or what it is after, never a mixture."""
    y = corpus.y if kind is SLDAClassifier else corpus.doc_topic[:, 0]
    model = kind(3, **RUN).fit(corpus.X[:100], y[:100])
    new, found, errors, done = corpus.X[100:110], [], [], threading.Event()

    def predict():
        try:
            while not done.is_set():
                answer = model.predict_proba(new) if kind is SLDAClassifier else np.column_stack(
                    model.predict(new, return_std=True))  # fmt: skip
                found.append((answer.tobytes(), model.transform(new).tobytes()[:0]))
                model.explain(new[:1])
        except Exception as error:  # whatever it is, the test fails
            errors.append(error)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        model.partial_fit(corpus.X[:100], y[:100])
    done.set()
    for thread in threads:
        thread.join()
    assert not errors
    again = kind(3, **RUN).fit(corpus.X[:100], y[:100])
    states = []
    for batch in range(3):
        if batch:
            again.partial_fit(corpus.X[:100], y[:100])
        answer = again.predict_proba(new) if kind is SLDAClassifier else np.column_stack(
            again.predict(new, return_std=True))  # fmt: skip
        states.append(answer.tobytes())
    assert {answer for answer, _ in found} <= set(states)


def test_a_batch_that_fails_leaves_the_model(corpus):
    model = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y)
    before, state = model.predict_proba(corpus.X), dict(vars(model))
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(corpus.X, corpus.y, np.full(150, 1e12))
    assert vars(model).keys() == state.keys() and all(vars(model)[name] is state[name] for name in state)
    np.testing.assert_array_equal(model.predict_proba(corpus.X), before)


def test_files_of_the_version_before(corpus):
    """Predictions of 0.1's file, which knows none of the new constants, are made with what it has."""
    from pathlib import Path

    model = supertopic.load(Path(__file__).parent / "files" / "version-0.1.model")
    model = model[-1] if hasattr(model, "steps") else model
    np.testing.assert_array_equal(model.prediction_intercept_, model.intercept_)
