"""Model files: what is saved is what is loaded, and nothing else gets in or out."""

import contextlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

import old_models
import supertopic
from supertopic import LDA, SLDAClassifier
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.estimators import patterns
from supertopic.estimators.files import KINDS
from supertopic.inference.predict import Settings, topic_shares
from supertopic.model.posterior import Phrases
from supertopic.storage.container import read_file, write_file
from supertopic.storage.model_file import read_posterior, write_posterior

pytestmark = pytest.mark.usefixtures("short_regressions")
TEXTS = ["goal match team win", "vote law senate party", "atom star orbit planet", "naïve café 星 goal"] * 6
LABELS = np.array(["sport", "politics", "space", "spört"] * 6)
FILES = Path(__file__).parent / "files"
QUICK = {"burn_in": 5, "n_draws": 3, "random_state": 0}


@pytest.mark.parametrize("labels", [LABELS, np.arange(24) % 3, np.arange(24) % 2 == 0, LABELS.astype(object)])
def test_pipeline_round_trip(tmp_path, labels):
    pipeline = make_pipeline(
        CountVectorizer(ngram_range=(1, 2), stop_words=["law"]), SLDAClassifier(3, n_chains=2, **QUICK)
    )
    pipeline.fit(TEXTS, labels)
    supertopic.save(pipeline, tmp_path / "model")
    again = supertopic.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), pipeline.predict_proba(TEXTS))
    np.testing.assert_array_equal(again.predict(TEXTS), pipeline.predict(TEXTS))
    assert again.classes_.dtype == pipeline.classes_.dtype
    assert [name for name, _ in again.steps] == [name for name, _ in pipeline.steps]
    a, b = pipeline[-1], again[-1]
    assert a.get_params() == b.get_params()
    for name in ("coef_", "coef_draws_", "components_", "topic_word_", "log_joint_", "log_joint_iterations_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("seed_", "sampler_", "best_chain_", "n_features_in_", "timings_"):
        assert getattr(a, name) == getattr(b, name)
    assert pipeline[0].get_feature_names_out().tolist() == again[0].get_feature_names_out().tolist()


def test_estimators_round_trip(tmp_path):
    corpus = make_corpus(n_docs=30, random_state=0)
    for model in (
        LDA(3, alpha=np.array([0.1, 0.2, 0.3]), **QUICK).fit(corpus.X),
        SLDAClassifier(3, **QUICK).fit(corpus.X, np.column_stack([corpus.y, 1 - corpus.y])),
    ):
        supertopic.save(model, tmp_path / "model")
        again = supertopic.load(tmp_path / "model")
        assert type(again) is type(model)
        np.testing.assert_array_equal(again.transform(corpus.X), model.transform(corpus.X))
    np.testing.assert_array_equal(again.predict(corpus.X), model.predict(corpus.X))


def test_the_file_holds_no_documents_and_says_what_it_is(tmp_path):
    corpus = make_corpus(n_docs=30, random_state=0)
    supertopic.save(LDA(3, **QUICK).fit(corpus.X), tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        header = json.loads(file.metadata()["supertopic"])
        assert not any(30 in file.get_slice(name).get_shape() for name in file.keys())  # noqa: SIM118
    assert header["kind"] == "LDA" and header["library"] == supertopic.__version__
    if sys.platform != "win32":
        assert oct(os.stat(tmp_path / "model").st_mode & 0o777) == "0o644"


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    corpus = make_corpus(n_docs=30, random_state=0)
    model = LDA(3, **QUICK).fit(corpus.X)
    supertopic.save(model, tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        supertopic.save(model, tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
def test_what_is_refused(tmp_path):
    with pytest.raises(TypeError, match="callable"):
        supertopic.save(make_pipeline(CountVectorizer(tokenizer=str.split), LDA(2, **QUICK)).fit(TEXTS), tmp_path / "m")
    with pytest.raises(TypeError, match="TfidfVectorizer"):
        pipeline = make_pipeline(TfidfVectorizer(use_idf=False, norm=None), LDA(2, **QUICK)).fit(TEXTS)
        supertopic.save(pipeline, tmp_path / "m")
    with pytest.raises(TypeError, match="dict"):
        supertopic.save({}, tmp_path / "m")
    with pytest.raises(Exception, match="not fitted"):
        supertopic.save(LDA(2), tmp_path / "m")
    with pytest.raises(OSError):
        supertopic.load(tmp_path / "absent")
    (tmp_path / "text").write_text("hello")
    save_file({"a": np.zeros(3)}, tmp_path / "other")
    save_file(
        {"a": np.zeros(3)}, tmp_path / "old", metadata={"supertopic": json.dumps({"format": 99, "library": "7.0"})}
    )
    write_file(tmp_path / "new", {"format": 99, "library": "9.0"}, {"a": np.zeros(3)})
    for name, message in (("text", "not a"), ("other", "no SHA-256"), ("old", "7.0"), ("new", "9.0")):
        with pytest.raises(ValueError, match=message):
            supertopic.load(tmp_path / name)
    assert not (tmp_path / "m").exists()


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    pipeline = make_pipeline(CountVectorizer(), SLDAClassifier(2, burn_in=2, n_draws=2, random_state=0))
    supertopic.save(pipeline.fit(TEXTS, LABELS), path)
    return path


def refused(path, data):
    """Loading these bytes raises a ValueError that says something."""
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"\w+"):
        supertopic.load(path)


def test_every_cut_and_every_flipped_bit_is_noticed(model_file, tmp_path):
    data = model_file.read_bytes()
    rng = np.random.default_rng(0)
    for n in [0, 1, 7, 8, 9, len(data) - 1, *rng.integers(0, len(data), 50).tolist()]:
        refused(tmp_path / "m", data[:n])
    refused(tmp_path / "m", data + b"x")
    header = 8 + int.from_bytes(data[:8], "little")
    places = [*range(0, 8 * 8), *rng.integers(0, 8 * header, 5000), *rng.integers(0, 8 * len(data), 5000)]
    for place in map(int, places):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        refused(tmp_path / "m", flipped)
    for length in (2**63, 2**40, 2**27, len(data)):
        refused(tmp_path / "m", length.to_bytes(8, "little") + data[8:])


def forged(model_file, path, change):
    """A file that is whole, with the right sum, but whose contents were changed."""
    header, tensors = read_file(model_file, "model")
    change(header, tensors)
    write_file(path, header, tensors)
    with pytest.raises(ValueError, match=r"not a valid|does not support|format"):
        supertopic.load(path)


def changed(name, change):
    """A change of one array."""
    return lambda h, t: t.update({name: change(t[name])})


@pytest.mark.parametrize(
    "change",
    [
        changed("topics.0.training", lambda a: np.full_like(a, np.nan)),
        changed("terms.topics.eta.0", lambda a: a * np.inf),
        changed("topics.0.training", lambda a: a[..., :-1]),
        changed("terms.topics.eta.0", lambda a: a[..., :-1]),
        changed("terms.words.theta", lambda a: a[..., :-1]),
        changed("terms.words.word", lambda a: a + 1000),
        changed("topics.0.word_topic", lambda a: a[:, :-1]),
        changed("topics.0.word_topic", lambda a: -a - 1),
        changed("topics.0.word_topic", lambda a: a.astype(float)),
        changed("topics.0.word_topic", lambda a: a[0]),
        changed("topics.0.alpha", lambda a: a[:, :1]),
        changed("topics.0.beta", lambda a: -a),
        lambda h, t: t.pop("scale"),
        lambda h, t: t.pop("topics.0.word_topic"),
        lambda h, t: t.pop("terms.intercept.level"),
        lambda h, t: t.update(vocabulary=t["vocabulary"][:5]),
        lambda h, t: h.update(kind="Pipeline"),
        lambda h, t: h.update(format="2"),
        lambda h, t: h["parameters"].update(n_topics="many"),
        lambda h, t: h["parameters"].update(n_jobs=10**9),
        lambda h, t: h["parameters"].update(extra=1),
        *(
            lambda h, t, name=name, value=value: h["parameters"].update({name: value})
            for name, value in [
                ("engine", "ray:10.0.0.1:6379"),
                ("engine", "threads"),
                ("device", "cuda"),
                ("n_jobs", 2),
                ("n_jobs", None),
                ("prior", None),
                ("predict_sweeps", 10**9),
                ("n_draws", 10**9),
                ("burn_in", 10**12),
                ("n_chains", 10**6),
                ("c", 1e300),
                ("margin", 1.0),
            ]
        ),
        *(
            lambda h, t, name=name, value=value: h["vectorizer"].update({name: value})
            for name, value in [
                ("input", "filename"),
                ("input", "file"),
                ("tokenizer", "str.split"),
                ("preprocessor", {"set": []}),
                ("analyzer", {"dict": []}),
                ("ngram_range", {"tuple": [1, 10**9]}),
                ("encoding", "idna"),
                ("token_pattern", "x" * 3000),
                ("stop_words", [["a"]]),
                ("dtype", "O"),
                ("dtype", "(9,)i4"),
                ("max_df", "x"),
                ("vocabulary", ["a"]),
                ("extra", 1),
                ("decode_error", "surrogateescape"),
            ]
        ),
        lambda h, t: h["parameters"].pop("c") and h["parameters"].update(c={"set": [1]}),
        lambda h, t: h["posterior"].update(best_chain=7),
        lambda h, t: h["posterior"].update(best_chain=-1),
        lambda h, t: h["posterior"].update(seed="0"),
        lambda h, t: h["posterior"].update(_infer="print"),
        lambda h, t: h["posterior"].update(terms=["print"]),
        lambda h, t: h["posterior"].update(terms=[]),
        lambda h, t: h["posterior"].update(n_sets=2),
        lambda h, t: h["posterior"]["response"].update(multilabel=None),
        lambda h, t: h["vectorizer"].update(dtype="object"),
        lambda h, t: h["vectorizer"].update(token_pattern="(((("),
        lambda h, t: h["vectorizer"].update(ngram_range="x"),
        lambda h, t: h.update(steps=["a"]),
        lambda h, t: h.update(steps=5),
        lambda h, t: h.pop("steps"),
        lambda h, t: h.update(parameters=None),
    ],
)
def test_a_forged_file_is_refused(model_file, tmp_path, change):
    forged(model_file, tmp_path / "m", change)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_parameter_is_stored_or_says_where_to_run(kind):
    names = set(kind().get_params(deep=False))
    assert set(kind.stored) == names - {"engine", "device", "n_jobs", "prior"}


def test_nothing_in_a_file_says_where_to_run(tmp_path):
    """Not what was used at the fit, and not what stands in files of older versions."""
    corpus = make_corpus(n_docs=30, random_state=0)
    supertopic.save(LDA(3, n_jobs=2, **QUICK).fit(corpus.X), tmp_path / "m")
    assert supertopic.load(tmp_path / "m").n_jobs is None
    header, tensors = read_file(FILES / "version-0.2-counts.model", "model")
    header["parameters"] |= {"engine": "ray:10.0.0.1:6379", "n_jobs": 64, "device": "cuda"}
    write_file(tmp_path / "old", header, tensors)
    loaded = supertopic.load(tmp_path / "old")
    assert (loaded.engine, loaded.n_jobs, loaded.device) == ("threads", None, "cpu")


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(?:\w|\w\w)+!", r"xyz(?:b|bb)*c", r"(?:[^,]+)+,", r"(?:\d+,?)+ "])
def test_a_pattern_that_backtracks_for_ever_is_refused(model_file, tmp_path, monkeypatch, pattern):
    monkeypatch.setattr(patterns, "SECONDS", 0.4)
    with pytest.raises(ValueError, match="may never finish"):
        patterns.check_pattern(pattern)
    header, tensors = read_file(model_file, "model")
    header["vectorizer"]["token_pattern"] = pattern
    write_file(tmp_path / "m", header, tensors)
    with pytest.raises(ValueError, match="not a valid"):
        supertopic.load(tmp_path / "m")


def test_token_patterns_of_ones_own_are_kept(tmp_path):
    for pattern in (r"[a-z]{3,}", r"\b\w+(?:['-]\w+)*\b", r"#?\w+|[^\w\s]", "."):
        pipeline = make_pipeline(CountVectorizer(token_pattern=pattern), LDA(2, **QUICK)).fit(TEXTS)
        supertopic.save(pipeline, tmp_path / "m")
        assert supertopic.load(tmp_path / "m")[0].token_pattern == pattern
    for wrong in ({"input": "filename"}, {"ngram_range": (1, 1000)}):
        with pytest.raises(TypeError, match="cannot keep a CountVectorizer with"):
            supertopic.save(Pipeline([("a", pipeline[0].set_params(**wrong)), ("b", pipeline[1])]), tmp_path / "m")


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_of_the_contents_loads_or_is_refused(model_file, tmp_path, data):
    """Whatever stands in a file that is whole: a model that predicts, or a ValueError."""
    header, tensors = read_file(model_file, "model")
    place = data.draw(
        st.sampled_from([header, header["parameters"], header["posterior"], header["vectorizer"], tensors])
    )
    name = data.draw(st.sampled_from(sorted(place)))
    if place is tensors:
        dtype = data.draw(st.sampled_from(["int32", "float64", "uint8", "int64"]))
        tensors[name] = data.draw(arrays(dtype, array_shapes(min_dims=1, max_dims=4, max_side=4)))
    else:
        place[name] = data.draw(JSON)
    write_file(tmp_path / "m", header, tensors)
    try:
        model = supertopic.load(tmp_path / "m")
    except ValueError:
        return
    if isinstance(model, Pipeline) and model[-1].predict_sweeps < 1000:
        with contextlib.suppress(ValueError):
            model.predict(["goal match", ""])


def test_a_file_of_version_0_1_still_loads():
    """Model files go by class name: what was written before the package had rooms predicts as it did."""
    model = supertopic.load(FILES / "version-0.1.model")
    texts = ["goal match team", "team match win", "vote law senate", "law vote party"]
    expected = [0.9467974177265718, 0.9414425680832141, 0.029490748857226617, 0.029490748857226617]
    np.testing.assert_allclose(model.predict_proba(texts)[:, 1], expected, atol=0.03)  # shares were not drawn then
    assert model[-1].coef_.shape == (1, 2) and model[-1].held_out_ == {"documents": 0}
    assert 0.2 < model.predict_proba([""])[0, 1] < 0.8
    assert model[-1].classes_.tolist() == ["politics", "sport"]


def test_counts_of_version_0_1_predict_without_an_exposure(tmp_path):
    """Their files do not say whether there was one."""
    data = old_models.inputs(old_models.SEED)
    model = supertopic.load(FILES / "version-0.2-counts.model")
    header, tensors = read_file(FILES / "version-0.2-counts.model", "model")
    del header["fitted"]["exposed_"], tensors["response_names_"], header["json"]["response_names_"]
    write_file(tmp_path / "m", header, tensors)
    loaded = supertopic.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(data["X"]), model.predict(data["X"], exposure=np.ones(60)))
    assert loaded.coefficient_frame()["column"][0] == "0"


def of_best_chain(name, model, data):
    """What version 0.2 showed, shares and weights of the best chain; now weights are those of all that have a topic."""
    last = model[-1] if name == "pipeline" else model
    posterior, found = last.posterior_, {}
    if name != "pipeline":
        X = np.concatenate([data["X"][:7], np.zeros((1, old_models.N_WORDS), int)])
        tokens = make_tokens(check_counts(X))
        found["transform"] = topic_shares(posterior, tokens, posterior.best_chain, Settings(last.predict_sweeps))
    if posterior.supervised:
        tensors = read_file(FILES / f"version-0.2-{name}.model", "model")[1]
        shown = tensors.get("shown_eta", tensors["calibrated_eta"])  # (chain, n, R, K), in the units of y
        has, order, own = posterior.consensus.has, posterior.order, posterior.own
        for k in range(posterior.n_topics):
            weights = [shown[c][:, :, order[c, k]].mean(axis=0) * own[:, k] for c in np.flatnonzero(has[:, k])]
            np.testing.assert_allclose(
                last.coef_[:, k], np.mean(weights, axis=0), rtol=1e-9 if has[:, k].all() else 0.1
            )
        best = shown[posterior.best_chain].mean(axis=0)[:, : posterior.n_topics]
        found["coef_"] = np.where(own, best[:, order[posterior.best_chain]], 0.0)
    return found


@pytest.mark.parametrize("name", old_models.MODELS)
def test_files_of_version_0_2(tmp_path, name):
    """They predict as they did, also when they are saved again, and can be updated."""
    recorded = json.loads((FILES / "version-0.2.json").read_text())
    data = old_models.inputs(recorded["seed"])
    model = supertopic.load(FILES / f"version-0.2-{name}.model")
    supertopic.save(model, tmp_path / "again")
    again = supertopic.load(tmp_path / "again")
    found = old_models.answers(name, model, data)
    assert found == old_models.answers(name, again, data) and found.keys() == recorded["answers"][name].keys()
    before_update = dict(found)
    found |= of_best_chain(name, model, data)
    for what, expected in recorded["answers"][name].items():
        if what == "transform" and name == "separate-batches":  # the shares of a document without words have changed
            found[what], expected = found[what][:-1], expected[:-1]
        if np.asarray(expected).dtype.kind == "U":
            assert found[what] == expected
        else:
            np.testing.assert_allclose(found[what], expected, rtol=1e-9, atol=1e-12, err_msg=what)
    X, beside, y = old_models.part(name, data, slice(0, 40))
    for loaded in (model, again):
        last, counts = (loaded[-1], loaded[0].transform(X)) if name == "pipeline" else (loaded, X)
        before = last.n_batches_
        last.partial_fit(counts, y, **beside)
        assert last.n_batches_ == before + 1
    updated = old_models.answers(name, model, data)
    assert updated == old_models.answers(name, again, data) and updated != before_update


@pytest.mark.parametrize(
    "name, value",
    {
        "order": np.zeros((2, 3), int),
        "traces.settled": np.array([5, -7]),
        "traces.burn_in": np.array([-1, 3]),
        "traces.kept": np.zeros(3),
        "traces.log_joint": np.full((2, 1), np.inf),
        "traces.iterations": np.zeros((2, 2)),
        "phrases.first": np.array([99]),
        "phrases.share": np.array([[2.0, 0.1]]),
    }.items(),
)
def test_what_is_shown_of_a_model_is_checked(tmp_path, name, value):
    """A wrong order of topics, wrong traces and wrong phrases are refused when a file is read."""
    corpus = make_corpus(n_docs=40, n_words=20, n_topics=3, random_state=0)
    model = SLDAClassifier(3, burn_in=4, n_draws=3, n_chains=2, random_state=0).fit(corpus.X, corpus.y)
    phrases = Phrases(np.array([1]), np.array([2]), np.array([[0.5, 0.5]]))
    model.posterior_ = replace(model.posterior_, phrases=phrases)
    facts, tensors = write_posterior(model.posterior_)
    read_posterior(facts, tensors, model.make_response())
    with pytest.raises(ValueError):
        read_posterior(facts, tensors | {name: value}, model.make_response())
