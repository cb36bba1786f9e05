"""Model files: what is saved is what is loaded, and nothing else gets in or out."""

import json
import os

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

import supertopic
from supertopic import LDA, SLDAClassifier
from supertopic.datasets import make_corpus

TEXTS = ["goal match team win", "vote law senate party", "atom star orbit planet", "naïve café 星 goal"] * 6
LABELS = np.array(["sport", "politics", "space", "spört"] * 6)
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
        model.save(tmp_path / "model")
        again = supertopic.load(tmp_path / "model")
        assert type(again) is type(model)
        np.testing.assert_array_equal(again.transform(corpus.X), model.transform(corpus.X))
    np.testing.assert_array_equal(again.predict(corpus.X), model.predict(corpus.X))


def test_the_file_holds_no_documents_and_says_what_it_is(tmp_path):
    corpus = make_corpus(n_docs=30, random_state=0)
    LDA(3, **QUICK).fit(corpus.X).save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        header = json.loads(file.metadata()["supertopic"])
        assert not any(30 in file.get_slice(name).get_shape() for name in file.keys())  # noqa: SIM118
    assert header["kind"] == "LDA" and header["library"] == supertopic.__version__
    assert oct(os.stat(tmp_path / "model").st_mode & 0o777) == "0o644"


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    corpus = make_corpus(n_docs=30, random_state=0)
    model = LDA(3, **QUICK).fit(corpus.X)
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


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
    for name, message in (("text", "not a supertopic"), ("other", "not a supertopic"), ("old", "7.0")):
        with pytest.raises(ValueError, match=message):
            supertopic.load(tmp_path / name)
    assert not (tmp_path / "m").exists()
