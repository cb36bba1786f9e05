"""Documents in files: the model of `fit`, and errors that say where."""

import json
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from supertopic import LDA, SLDAClassifier, SLDACountRegressor, SLDARegressor, SLDASurvivalRegressor, save
from supertopic.corpus.spool import open_library
from supertopic.datasets import make_corpus
from supertopic.estimators import base as base_room
from supertopic.estimators import from_files
from supertopic.estimators import survival as survival_room
from supertopic.estimators.encoding import Given, with_features
from supertopic.estimators.texts import ANY_WORD
from supertopic.inference import linear
from supertopic.inference.beside import LinearInputs

CORPUS = make_corpus(n_docs=300, n_topics=3, n_words=400, random_state=0)
NAMES = np.array([f"w{i:03d}" for i in range(400)])
TEXTS = [" ".join(NAMES[row.indices].repeat(row.data)) for row in (CORPUS.X[[i]].tocsr() for i in range(300))]
CLASSES = [["a", "b", "c"][k] for k in CORPUS.doc_topic.argmax(axis=1)]
pytestmark = pytest.mark.usefixtures("short_regressions")
RUN = {"n_topics": 4, "n_chains": 2, "burn_in": 6, "n_draws": 4, "predict_sweeps": 8, "random_state": 0}


@pytest.fixture(params=["parquet", "csv", "jsonl"])
def files(request, tmp_path):
    """The corpus in four files of different sizes."""
    for i, (a, b) in enumerate([(0, 10), (10, 11), (11, 200), (200, 300)]):
        rows = {"body": TEXTS[a:b], "team": CLASSES[a:b], "stars": [float(i % 5) for i in range(a, b)]}
        rows["calls"] = [i % 7 for i in range(a, b)]
        path = tmp_path / f"part-{i}.{request.param}"
        if request.param == "parquet":
            pyarrow.parquet.write_table(pa.table(rows), path)
        elif request.param == "csv":
            pyarrow.csv.write_csv(pa.table(rows), path)
        else:
            lines = (dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True))
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def same(a, b):
    """Both have the same posterior: topics, weights, traces and terms."""
    a, b = a.posterior_, b.posterior_
    np.testing.assert_array_equal(a.doc_topic, b.doc_topic)
    np.testing.assert_array_equal(a.traces.log_joint, b.traces.log_joint)
    np.testing.assert_array_equal(a.traces.kept, b.traces.kept)
    np.testing.assert_array_equal(a.scale, b.scale)
    for one, other in zip(a.topics, b.topics, strict=True):
        np.testing.assert_array_equal(one.word_topic, other.word_topic)
        np.testing.assert_array_equal(one.training, other.training)
    for one, other in zip(a.terms, b.terms, strict=True):
        tensors, others = one.tensors(), other.tensors()
        assert one.name == other.name and tensors.keys() == others.keys()
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(tensor, others[name], err_msg=name)


MODELS = {
    "team": (SLDAClassifier, np.array(CLASSES, object), {}),
    "stars": (SLDARegressor, np.arange(300) % 5.0, {"n_jobs": 2}),
    "calls": (SLDACountRegressor, np.arange(300) % 7, {"sampler": "delayed"}),
}


@cache
def model_of_fit(label):
    """The model of texts in memory, which is the same for all kinds of files."""
    kind, y, more = MODELS[label]
    return kind(**RUN, **more, vectorizer=CountVectorizer(min_df=2, max_df=0.9)).fit(TEXTS, y)


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
@pytest.mark.parametrize("label", MODELS)
def test_files_give_the_model_of_fit(files, label):
    kind, _, more = MODELS[label]
    vectorizer, model = CountVectorizer(min_df=2, max_df=0.9), model_of_fit(label)
    other = kind(**RUN, **more).fit_files(files, text="body", label=label, vectorizer=vectorizer)
    assert other.vectorizer_.vocabulary_ == model.vectorizer_.vocabulary_ == vectorizer.fit(TEXTS).vocabulary_
    assert other.word_vectorizer_.vocabulary_ == model.word_vectorizer_.vocabulary_
    same(model, other)
    np.testing.assert_array_equal(model.predict(TEXTS[:20]), other.predict(TEXTS[:20]))


SETTINGS = {
    "as it is": {},
    "few": {"max_features": 50},
    "rare and frequent": {"min_df": 0.1, "max_df": 200},
    "pairs": {"ngram_range": (1, 2)},
    "known": {"vocabulary": ["w001", "w007"]},
    "once": {"binary": True, "stop_words": ["w003"]},
}


@pytest.mark.parametrize("more", SETTINGS.values(), ids=SETTINGS)
def test_the_vocabulary_is_that_of_a_vectorizer(files, more):
    def each(verb, work):
        return [verb(*arguments) for arguments in work]

    library = open_library(files, "body", ["team"], CountVectorizer(**more), each)
    expected = CountVectorizer(**more)
    X = expected.fit_transform(TEXTS)
    assert library.vectorizer.vocabulary_ == expected.vocabulary_ and library.columns["team"] == CLASSES
    spool = library.spool(files, each)
    np.testing.assert_array_equal(spool.matrix(X.shape[1]).toarray(), X.toarray())
    some = np.random.default_rng(0).random(300) < 0.3
    np.testing.assert_array_equal(spool.select(some).matrix(X.shape[1]).toarray(), X.toarray()[some])
    part = spool.select(some).part(slice(5, 40))
    np.testing.assert_array_equal(part.read(slice(12, 15))[0].word, spool.select(some).tokens(slice(12, 15)).word)
    assert library.where(10).endswith(("part-1.parquet, row 1", "part-1.csv, row 1", "part-1.jsonl, row 1"))


@pytest.mark.parametrize("pairs", [True, False])
def test_words_are_learned_from_a_part_of_many_documents(files, monkeypatch, pairs):
    """Topics are the same; words are those of evenly spaced documents, and so are the rows of features."""
    features, seen, real = np.random.default_rng(0).normal(size=(300, 2)), [], linear.learn_beside
    whole = SLDAClassifier(**RUN, words=False).fit_files(files, text="body", label="team", features=features)
    # each limit is for its own words
    monkeypatch.setattr(from_files, "IN_MEMORY_PAIRS" if pairs else "IN_MEMORY", CORPUS.X.sum() // 3 + 1)
    monkeypatch.setattr(linear, "learn_beside", lambda *given: seen.append(given) or real(*given))
    known = None if pairs else CountVectorizer(vocabulary=NAMES.tolist())
    model = SLDAClassifier(**RUN, vectorizer=known).fit_files(files, text="body", label="team", features=features)
    if pairs:
        np.testing.assert_array_equal(model.posterior_.topics[0].word_topic, whole.posterior_.topics[0].word_topic)
    docs, (words, of_features) = np.arange(0, 300, 3), seen[0][0]
    texts = [TEXTS[i] for i in docs]
    again = (CountVectorizer(ngram_range=(1, 2), min_df=2, token_pattern=ANY_WORD) if pairs else known).fit(texts)
    assert len(model.posterior_.words.dictionary.word) == words.x.shape[1] and words.x.shape[0] == 100
    if pairs:
        assert model.word_vectorizer_.vocabulary_ == again.vocabulary_
    np.testing.assert_allclose(words.x.toarray(), model.posterior_.words.dictionary.rows(
        csr_array(again.transform(texts))).toarray())  # fmt: skip
    centred = (features - features.mean(axis=0)) / features.std(axis=0) / np.sqrt(2)
    np.testing.assert_allclose(of_features.x, centred[docs])
    assert model.predict(TEXTS[:5], features=features[:5]).shape == (5,)


@cache
def weighted_model(n_draws):
    """A model of texts in memory with weights of documents and a covariate."""
    frame = pd.DataFrame({"stars": np.arange(300) % 5.0})
    return SLDAClassifier(**RUN | {"n_draws": n_draws}).fit(TEXTS, CLASSES, np.arange(300) % 7, covariates=frame)


def test_weights_covariates_and_checkpoints(files, tmp_path):
    more = {"text": "body", "label": "team", "weight": "calls", "covariates": ["stars"]}
    model = SLDAClassifier(**RUN).fit_files(files, **more, checkpoint=tmp_path / "there")
    same(model, weighted_model(4))
    again = SLDAClassifier(**RUN | {"n_draws": 6}).fit_files(files, **more, checkpoint=tmp_path / "there")
    same(again, weighted_model(6))
    topics = LDA(4, burn_in=4, n_draws=2, n_chains=1, random_state=0).fit_files(files, text="body")
    assert topics.doc_topic_.shape == (300, 4)


def test_what_is_refused(tmp_path):
    def fit(files, **more):
        return SLDAClassifier(**RUN).fit_files(files, **{"text": "body", "label": "team"} | more)

    with pytest.raises(FileNotFoundError, match=r"There is no file .*none-\*.csv; expected a path, a folder"):
        fit(tmp_path / "none-*.csv")
    (tmp_path / "a.csv").write_text("body,team\nred green,x\nblue grey,y\n")
    (tmp_path / "b.csv").write_text("body,group\none two,x\n")
    with pytest.raises(ValueError, match=r"b\.csv has no column 'team'; its columns are body, group"):
        fit(tmp_path)
    (tmp_path / "b.csv").write_text("body,team\n")
    with pytest.raises(ValueError, match=r"b\.csv has no rows"):
        fit(tmp_path)
    (tmp_path / "b.csv").write_text("")
    with pytest.raises(ValueError, match=r"b\.csv is empty"):
        fit(tmp_path)
    (tmp_path / "b.csv").write_bytes(b"PAR1 nothing of the kind")
    (tmp_path / "b.csv").rename(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"Cannot read .*b\.parquet"):
        fit(tmp_path)
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(ValueError, match="No words are left of 4 in 2 documents: min_df=2"):
        fit(tmp_path, vectorizer=CountVectorizer(min_df=2))
    with pytest.raises(ValueError, match="label names its column"):
        fit(tmp_path, label=None)
    (tmp_path / "a.csv").write_text("body,team\nred green,1\nblue grey,many\n")
    with pytest.raises(ValueError, match=r"a\.csv, row 2: 'team' is 'many', which is not a number"):
        SLDARegressor(**RUN).fit_files(tmp_path / "a.csv", text="body", label="team")
    pyarrow.parquet.write_table(pa.table({"body": [["a", "b"]], "team": ["x"]}), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"c\.parquet, row 1: the column 'body' holds a list, not a text"):
        fit(tmp_path / "c.parquet")


def write_docword(path, X, names):
    X = X.tocoo()
    lines = [f"{d + 1} {w + 1} {n}" for d, w, n in zip(X.row, X.col, X.data, strict=True)]
    path.write_text("\n".join([*map(str, (*X.shape, len(lines))), *lines]) + "\n", encoding="utf-8")
    path.with_name(path.name.replace("docword", "vocab")).write_text("\n".join(names), encoding="utf-8")


def test_docword(tmp_path):
    order = np.random.default_rng(0).permutation(400)
    write_docword(tmp_path / "docword.a.txt", CORPUS.X[:100][:, order].tocsr(), NAMES[order])
    write_docword(tmp_path / "docword.b.txt", CORPUS.X[100:].tocsr(), NAMES)
    run = {"n_topics": 3, "burn_in": 4, "n_draws": 2, "n_chains": 1, "random_state": 0}
    model = LDA(**run).fit_files(tmp_path, vectorizer=CountVectorizer(min_df=2))
    vectorizer = CountVectorizer(min_df=2)
    same(model, LDA(**run).fit(vectorizer.fit_transform(TEXTS)))
    assert model.vectorizer_.vocabulary_ == vectorizer.vocabulary_
    with pytest.raises(ValueError, match=r"docword\.a\.txt has words only, not 'team'"):
        SLDAClassifier(**run).fit_files(tmp_path, label="team")
    whole = (tmp_path / "docword.a.txt").read_text(encoding="utf-8")
    (tmp_path / "docword.a.txt").write_text(whole[:-40])
    with pytest.raises(ValueError, match=r"docword\.a\.txt is n"):
        LDA(**run).fit_files(tmp_path)
    (tmp_path / "vocab.a.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected in .*vocab\.a\.txt, which does not exist"):
        LDA(**run).fit_files(tmp_path)


def test_a_file_none_of_whose_words_are_kept(tmp_path):
    write_docword(tmp_path / "docword.a.txt", CORPUS.X.tocsr(), NAMES)
    write_docword(tmp_path / "docword.b.txt", csr_array([[2, 1]]), np.array(["rare", "rarer"]))
    model = LDA(3, burn_in=2, n_draws=1).fit_files(tmp_path, vectorizer=CountVectorizer(min_df=2))
    assert len(model.doc_topic_) == CORPUS.X.shape[0] + 1


def test_tokens_that_are_gone(files, tmp_path):
    def each(verb, work):
        return [verb(*arguments) for arguments in work]

    spool = open_library(files, "body", [], CountVectorizer(), each).spool(tmp_path, each)
    (tmp_path / "000002.tokens").unlink()
    assert len(spool.tokens(slice(0, 11)).word)
    with pytest.raises(FileNotFoundError, match="`folder` must be one that all can read"):
        spool.tokens(slice(0, 12))


@pytest.mark.ray
def test_files_on_a_cluster(files, ray_cluster, monkeypatch):
    monkeypatch.setattr("supertopic.sampling.plan.SHARD_TOKENS", 2000)
    run = RUN | {"sampler": "delayed", "n_chains": 1}
    model = SLDAClassifier(**run).fit_files(files, text="body", label="team")
    other = SLDAClassifier(**run, engine="ray", n_jobs=1).fit_files(files, text="body", label="team")
    same(model, other)


def test_predictions_of_two_files_have_two_places(tmp_path):
    from typer.testing import CliRunner

    from supertopic.command.cli import app

    model = make_pipeline(CountVectorizer(), LDA(2, burn_in=2, n_draws=1, random_state=0)).fit(["a1 b1", "b1 c1"])
    save(model, tmp_path / "m")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "part.csv").write_text("body\na1\n", encoding="utf-8")
    call = [
        "predict",
        str(tmp_path / "m"),
        str(tmp_path / "*" / "part.csv"),
        "--text",
        "body",
        "-o",
        str(tmp_path / "o"),
    ]
    found = CliRunner().invoke(app, call)
    assert isinstance(found.exception, ValueError) and "would have the same name" in str(found.exception)


def test_columns_of_files_reach_the_arguments_of_their_names(monkeypatch):
    seen = []
    for room in (base_room, survival_room):
        monkeypatch.setattr(room, "fit_from_files", lambda *given: seen.append(given[1:]))
    more = {"label": "l", "weight": "w", "exposure": "e", "groups": "g", "covariates": ["c"], "features": np.eye(2)}
    SLDACountRegressor().fit_files("f", text="t", folder="there", **more)
    files, text, columns, covariates, vectorizer, folder, checkpointing, features = seen.pop()
    expected = {"label": "l", "sample_weight": "w", "exposure": "e", "groups": "g"}
    assert (files, text, columns, covariates, folder) == ("f", "t", expected, ["c"], "there")
    assert features is more["features"] and vectorizer is None and checkpointing.path is None
    SLDASurvivalRegressor().fit_files("f", text="t", event="v", checkpoint="c", **more)
    assert seen[0][2] == expected | {"event": "v"} and seen[0][6].path == "c"


def test_whole_numbers_of_a_column_are_classes_as_numbers():
    def label(cells, model):
        return from_files.read_label(model, SimpleNamespace(columns={"y": cells}), "y").tolist()

    assert label(["1", "0", None, "10"], SLDAClassifier()) == [1, 0, None, 10]
    assert label([1, 0, None], SLDAClassifier()) == [1, 0, None]
    for cells in (["1", "a", None], ["01", "1"], ["1.0", "2"]):
        assert label(cells, SLDAClassifier()) == cells


def test_features_of_some_documents_are_theirs():
    features = np.arange(12.0).reshape(6, 2) ** 2
    for docs in (None, np.array([4, 1])):
        found = with_features(LinearInputs(docs=docs), Given(None, features=features), None, 6)
        np.testing.assert_array_equal(found.features, features if docs is None else features[[4, 1]])
        np.testing.assert_allclose(found.columns.mean, features.mean(axis=0))
