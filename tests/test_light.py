"""Predictions with NumPy and SciPy alone are those of the estimators, and need nothing else."""

import json
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from fitted import BESIDE, FITS, NAMES, RUN, TEXTS, N
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from supertopic import LDA, SLDAClassifier, SLDARegressor, load, save
from supertopic.datasets import make_corpus
from supertopic.inference.predict import frozen_topics
from supertopic.kernels.draws import content_streams, make_key
from supertopic.kernels.lanes import pad
from supertopic.light import load_predictor, sampler
from supertopic.light.words import WordCounter
from supertopic.model.linear import WordWeights
from supertopic.model.state import MappedTopics, fixed_topics
from supertopic.sampling.new_documents import PREDICT, draw_omegas, run_sweeps
from supertopic.storage.container import read_file

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.usefixtures("short_fits")]
ASKED = [*TEXTS[:6], "", "unknown words only", "goal " * 70, "GOAL! not the team; vote"]


@pytest.mark.parametrize("name", [name for name in FITS if name != "covariates"])
def test_answers_are_those_of_the_estimator(models, name):
    model, light = load(models(name)), load_predictor(models(name))
    np.testing.assert_allclose(light.transform(ASKED), model.transform(ASKED), atol=1e-9)
    if name == "lda":
        with pytest.raises(ValueError, match="transform gives shares"):
            light.predict(ASKED)
        return
    known = {"groups": ["1", "new"] * 5, "exposure": np.linspace(0.5, 3, 10),
             "covariates": np.arange(20.0).reshape(10, 2), "features": np.arange(30.0).reshape(10, 3)}  # fmt: skip
    beside = {key: known[key if key != "group" else "groups"] for key in BESIDE.get(name, {})}
    beside = {"groups" if key == "group" else key: value for key, value in beside.items()}
    expected = light.predict(ASKED, **beside)
    wanted = model.predict(ASKED, **beside)
    if wanted.dtype.kind in "fc":
        np.testing.assert_allclose(expected, wanted, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(expected, wanted)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(
            light.predict_proba(ASKED, **beside), model.predict_proba(ASKED, **beside), atol=1e-9
        )
    elif name == "hinge":
        np.testing.assert_allclose(light.expected(ASKED), model.decision_function(ASKED), atol=1e-9)
        with pytest.raises(AttributeError, match="no probabilities"):
            light.predict_proba(ASKED)
    np.testing.assert_allclose(light.expected(ASKED[2:3], **{k: v[2:3] for k, v in beside.items()}),
                               light.expected(ASKED, **beside)[2:3], atol=1e-12)  # fmt: skip
    assert len(light.predict([], **{k: v[:0] for k, v in beside.items()})) == 0


def test_counts_pipelines_and_many_topics(tmp_path):
    """More topics than lanes, documents of many lengths, a pipeline's vectorizer."""
    corpus = make_corpus(120, 200, 5, 40, random_state=0)
    model = SLDAClassifier(21, n_chains=3, burn_in=5, n_draws=3, predict_sweeps=7, random_state=1).fit(
        corpus.X, corpus.y
    )
    save(model, tmp_path / "counts")
    light, X = load_predictor(tmp_path / "counts", mmap=False), corpus.X[:30].copy()
    X.data[:5] = [300, 1, 2, 900, 1]
    np.testing.assert_allclose(light.predict_proba(X), model.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(light.predict_proba(X[:3].toarray()), model.predict_proba(X[:3]), atol=1e-9)
    for wrong, message in [(X[:, :5], "200 words"), (X * 0.5, "whole counts"), (-X, "whole counts")]:
        with pytest.raises(ValueError, match=message):
            light.predict(wrong)
    with pytest.raises(TypeError, match="fitted to counts"):
        light.predict(["a text"])
    seeded = LDA(4, seeds=[[0, 1], [2, 3]], n_chains=2, burn_in=5, n_draws=3, random_state=0).fit(corpus.X)
    save(seeded, tmp_path / "seeded")
    empty = np.zeros((1, 200), int)  # the shares of the corpus, without seeds
    np.testing.assert_allclose(load_predictor(tmp_path / "seeded").transform(empty), seeded.transform(empty))
    pipeline = make_pipeline(CountVectorizer(strip_accents="unicode", stop_words=["the"]), SLDARegressor(**RUN))
    pipeline.fit([*TEXTS, "naïve café"], np.arange(N + 1.0))
    save(pipeline, tmp_path / "pipeline")
    np.testing.assert_allclose(
        load_predictor(tmp_path / "pipeline").predict(["Café the goal"]), pipeline.predict(["Café the goal"])
    )


def test_several_copies_of_weights_as_in_files_of_version_0_2(models, tmp_path):
    model = load(models("class"))
    terms = [
        replace(term, theta=np.concatenate([term.theta * size for size in (1.0, 2.0, -1.0, 0.5)]).astype(np.float32))
        if isinstance(term, WordWeights) else term for term in model.posterior_.terms
    ]  # fmt: skip
    model.posterior_ = replace(model.posterior_, terms=tuple(terms))
    save(model, tmp_path / "copies")
    light = load_predictor(tmp_path / "copies")
    np.testing.assert_allclose(light.predict_proba(ASKED), model.predict_proba(ASKED), atol=1e-9)


@pytest.mark.parametrize("phi_power", [0, -25, 40])
def test_the_same_topics_token_by_token(phi_power, monkeypatch):
    """The sampler in vectors draws what the kernel draws, also where weights do not fit into float32."""
    rng = np.random.default_rng(0)
    K, V = 11, 30
    topics = sampler.Topics(
        rng.gamma(0.3, size=(V, K)) * 100, 1, 0.01, np.full(K, 10.0**phi_power), np.full(K, 0.1, np.float32)
    )
    tokens = [np.sort(rng.integers(0, V, n)) for n in (40, 0, 7, 40, 1)]
    key, n_sweeps = 12345, 9
    found = sampler.draw_counts(tokens, [topics, topics], [key, key + 1], n_sweeps)
    monkeypatch.setattr(sampler, "MOST_NUMBERS", 1)  # one document at a time
    np.testing.assert_array_equal(sampler.draw_counts(tokens, [topics, topics], [key, key + 1], n_sweeps), found)
    from supertopic.corpus.tokens import Tokens

    starts = np.cumsum([0, *map(len, tokens)]).astype(np.int64)
    flat = Tokens(np.concatenate(tokens).astype(np.int32), starts)
    frozen = fixed_topics(topics.phi(slice(None)), topics.alpha)
    for c in range(2):
        streams = content_streams(flat, np.uint64(key + c))
        counts = run_sweeps(flat, frozen, streams, n_sweeps, n_sweeps - n_sweeps // 2)
        np.testing.assert_array_equal(counts[..., :K], found[c])
    assert sampler.make_key(7, 3, PREDICT) == int(make_key(7, 3, PREDICT))
    assert pad(np.zeros(K)).shape == (16,) and draw_omegas


TEXTS_TO_COUNT = [
    "Naïve Café, don't! 3 cats??",
    "",
    "the the THE cat",
    "a_b 12 x é İstanbul ß",
    "one two three two one two",
]


@pytest.mark.parametrize("more", [
    {}, {"ngram_range": (1, 3)}, {"ngram_range": (2, 2), "stop_words": ["the", "two"]}, {"strip_accents": "ascii"},
    {"strip_accents": "unicode", "lowercase": False}, {"binary": True}, {"token_pattern": r"(?u)\b\w+\b|[!?]"},
    {"stop_words": "english", "ngram_range": (1, 2)},
])  # fmt: skip
def test_words_are_counted_as_scikit_learn_does(more):
    vectorizer = CountVectorizer(**more).fit(TEXTS_TO_COUNT)
    parameters = vectorizer.get_params() | {"dtype": "int64"}
    own = WordCounter(parameters, vectorizer.get_feature_names_out().tolist()).counts(TEXTS_TO_COUNT)
    np.testing.assert_array_equal(own.toarray(), vectorizer.transform(TEXTS_TO_COUNT).toarray())


def test_other_refusals(models, tmp_path):
    with pytest.raises(ValueError, match="data frame"):
        load_predictor(models("covariates"))
    light = load_predictor(models("class"))
    for X, error, message in [
        ("text", TypeError, "one text"),
        ([1], TypeError, "must hold texts"),
        (np.ones((1, 9)), ValueError, "words"),
    ]:
        with pytest.raises(error, match=message):
            light.predict(X)
    for name, wrong in [("covariates", [[1.0]]), ("features", [[1.0]]), ("groups", ["a"])]:
        with pytest.raises(ValueError, match=f"fitted without {name}"):
            light.predict(["a"], **{name: wrong})
    with pytest.raises(ValueError, match="needs one for each of 1 documents"):
        load_predictor(models("groups")).predict(["a"])
    for wrong in (None, [[1.0]], [[1.0, np.nan]]):
        with pytest.raises(ValueError, match="2 columns of covariates"):
            load_predictor(models("array")).predict(["a"], covariates=wrong)
    counts, rating = load_predictor(models("exposed")), load_predictor(models("rating"))
    for model, wrong, message in [
        (counts, None, "fitted with an exposure"), (counts, [0.0], "from 1e-10 to 1e\\+10, got 0"),
        (counts, [np.nan], "got nan"), (counts, [1.0, 1.0], "1 documents but exposure has 2"),
        (rating, [1.0], "exposure is for counts"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.predict(["a"], exposure=wrong)
    data = bytearray(models("class").read_bytes())
    data[-1] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with pytest.raises(ValueError, match="SHA-256"):
        load_predictor(tmp_path / "damaged")
    with pytest.raises(ValueError, match="older version"):
        load_predictor("tests/files/version-0.2-binary.model")
    for more, what in [({"token_pattern": "(a+)+$"}, "token_pattern"), ({"analyzer": "char"}, "analyzer")]:
        with pytest.raises(ValueError, match=f"{what}=.*supertopic.load"):
            WordCounter(CountVectorizer(**more).get_params(), ["a"])


def test_nothing_else_is_imported(models):
    """A process that predicts has neither Numba nor scikit-learn, nor another package than NumPy and SciPy."""
    program = (
        "import json, sys\nfrom supertopic.light import load_predictor\n"
        "light = load_predictor(sys.argv[1])\nlight.predict_proba(['goal team'])\nlight.transform(['goal'])\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", program, models("class")], capture_output=True, text=True, check=True)
    packages = {
        name for name in json.loads(done.stdout) if name not in sys.stdlib_module_names and not name.startswith("_")
    }
    assert packages <= {"supertopic", "numpy", "scipy", "cython_runtime", "charset_normalizer", "chardet"}, (
        packages
    )  # f2py takes the last two if they are there


def test_arrays_stay_in_the_file(models, tmp_path):
    """load(mmap=True) answers as load does, and its arrays are read-only views of the file."""
    for name in ("class", "separate", "features", "lda"):
        plain, mapped = load(models(name)), load(models(name), mmap=True)
        counts = mapped.posterior_.topics[0].word_topic
        assert not counts.flags.writeable and plain.posterior_.topics[0].word_topic is not counts
        np.testing.assert_array_equal(mapped.transform(ASKED), plain.transform(ASKED))
        assert isinstance(frozen_topics(mapped.posterior_.topics[0], 0, "cpu"), MappedTopics)  # no copy is made
        if name == "class":
            own, wanted = mapped.explain(ASKED[0]), plain.explain(ASKED[0])
            np.testing.assert_array_equal(own.total, wanted.total)
            np.testing.assert_array_equal(mapped.predict_proba([""]), plain.predict_proba([""]))
            np.testing.assert_array_equal(mapped.predict_proba(ASKED), plain.predict_proba(ASKED))
            mapped.partial_fit(TEXTS[:30], NAMES[:30])  # writes to none of them
            save(mapped, tmp_path / "again")
    data = bytearray(models("class").read_bytes())
    for place in (len(data) - 1, len(data) // 2):
        data[place] ^= 1
        (tmp_path / "damaged").write_bytes(data)
        with pytest.raises(ValueError, match="SHA-256"):
            load(tmp_path / "damaged", mmap=True)
    header, tensors = read_file(models("class"), "model", mmap=True)
    again = read_file(models("class"), "model")
    assert header == again[0] and all(np.array_equal(tensors[name], again[1][name]) for name in again[1])


def test_threads_may_ask_at_once(models):
    light = load_predictor(models("class"))
    wanted, found = light.predict_proba(ASKED), []
    threads = [threading.Thread(target=lambda: found.append(light.predict_proba(ASKED))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(own, wanted) for own in found) and len(found) == 3
    assert LDA


def test_missing_texts_are_empty_and_a_matrix_is_not_changed(tmp_path):
    texts, y = ["goal match team"] * 20 + ["vote law senate"] * 20, ["sport"] * 20 + ["politics"] * 20
    model = SLDAClassifier(3, n_chains=1, burn_in=5, n_draws=3, random_state=0).fit(texts, y)
    save(model, tmp_path / "m")
    light = load_predictor(tmp_path / "m")
    np.testing.assert_array_equal(light.predict_proba([None, "goal", np.nan]), light.predict_proba(["", "goal", ""]))
    counted = SLDAClassifier(3, n_chains=1, burn_in=5, n_draws=3, random_state=0).fit(np.eye(40, 6) + 1, y)
    save(counted, tmp_path / "m")
    X = sp.csr_array((np.array([1, 0, 2]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 6))
    load_predictor(tmp_path / "m").predict_proba(X)
    assert X.data.tolist() == [1, 0, 2] and X.indptr.tolist() == [0, 3]
