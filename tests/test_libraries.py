"""Data frames of pandas, polars and pyarrow: the same fit, and tables in the library that the user works with."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn

from supertopic import (
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    choose_topics,
)
from supertopic.corpus.frames import rows_of
from supertopic.corpus.made_frames import make_frame
from supertopic.datasets import load_docstrings, make_corpus
from supertopic.estimators import drift

pytestmark = pytest.mark.usefixtures("short_fits")

RUN = {"burn_in": 4, "n_draws": 4, "n_chains": 2, "random_state": 0, "words": False}
ODD = [f"doc {i % 7}.{i}" for i in range(100)][::-1]  # not sorted, no numbers


def pandas_frame(columns):
    return pd.DataFrame(columns, index=ODD)


def arrow_frame(columns):
    return pandas_frame(columns).convert_dtypes(dtype_backend="pyarrow")


FRAMES = {"pandas": pandas_frame, "arrow in pandas": arrow_frame, "polars": pl.DataFrame}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=100, n_topics=3, random_state=0)


@pytest.fixture(scope="module")
def columns(corpus):
    rng = np.random.default_rng(0)
    return {
        "rating": corpus.doc_topic[:, 0].tolist(), "count": (9 * corpus.doc_topic[:, 1]).round().tolist(),
        "class": np.array(["u", "v"])[corpus.y].tolist(), "age": rng.normal(size=100).tolist(),
        "party": ["red", "blue"] * 50, "place": [f"g{i % 5}" for i in range(100)],
        "first": (corpus.doc_topic[:, 0] > 0.3).tolist(), "second": [i % 3 == 0 for i in range(100)],
    }  # fmt: skip


@pytest.fixture(scope="module")
def texts():
    data = load_docstrings()
    return data.data[:100], [data.target_names[i] for i in data.target[:100]]


def same(model, other):
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.posterior_.prediction, other.posterior_.prediction)


@pytest.mark.parametrize("make", list(FRAMES.values()), ids=list(FRAMES))
def test_frames_with_formulas_groups_and_weights(corpus, columns, make):
    """Rows go by their places whatever the index is, and the fit is that of plain arrays, to the bit."""
    frame = make(columns)
    settings = RUN | {"formula": "rating ~ age * party"}
    model = SLDARegressor(3, **settings).fit(
        corpus.X, covariates=frame, groups=frame["place"], sample_weight=frame["count"] + 1
    )
    plain = SLDARegressor(3, **settings).fit(
        corpus.X, covariates={name: columns[name] for name in ("rating", "age", "party")} and pd.DataFrame(columns),
        groups=np.array(columns["place"]),
        sample_weight=np.array(columns["count"]) + 1,
    )  # fmt: skip
    same(model, plain)
    assert model.covariate_names_.tolist() == plain.covariate_names_.tolist()
    new = make(columns)[:10] if isinstance(frame, pl.DataFrame) else make(columns).iloc[:10]
    rest = {"covariates": new, "groups": new["place"]}
    by_arrays = {"covariates": pd.DataFrame(columns)[:10], "groups": np.array(columns["place"][:10])}
    np.testing.assert_array_equal(model.predict(corpus.X[:10], **rest), plain.predict(corpus.X[:10], **by_arrays))
    assert {row["group"] for row in rows_of(model.group_frame())} == {f"g{i}" for i in range(5)}


@pytest.mark.parametrize("make", list(FRAMES.values()), ids=list(FRAMES))
def test_responses_of_every_kind(corpus, columns, make):
    frame = make(columns)
    labels = SLDAClassifier(3, **RUN).fit(corpus.X, frame[["first", "second"]])
    assert labels.classes_.tolist() == ["first", "second"]
    same(labels, SLDAClassifier(3, **RUN).fit(corpus.X, np.array([columns["first"], columns["second"]]).T))
    unknown = [None, *columns["class"][1:]]
    some = SLDAClassifier(3, **RUN).fit(corpus.X, make({"class": unknown})["class"])
    same(some, SLDAClassifier(3, **RUN).fit(corpus.X, np.array(unknown, dtype=object)))
    counts = SLDACountRegressor(3, **RUN).fit(corpus.X, frame["count"], exposure=frame["count"] + 1)
    assert counts.posterior_.response.column_names == ["count"]
    times = make({"time": [x + 0.1 for x in columns["rating"]], "event": [i % 4 > 0 for i in range(100)]})
    assert np.isfinite(SLDASurvivalRegressor(3, **RUN).fit(corpus.X, times).posterior_.prediction).all()


@pytest.mark.filterwarnings("ignore:These may be the documents of the fit")
def test_tables_come_back_in_the_library_that_came_in(texts):
    X, y = texts
    column, response = pl.Series("text", X), pl.Series("class", y)
    model = SLDAClassifier(3, **RUN).fit(column, response)
    by = pl.DataFrame({"party": ["red", "blue"] * 50, "age": np.arange(100.0)})
    found = model.topic_effects(column, by)
    tables = [
        model.topic_frame(), model.coefficient_frame(), model.effect_frame(), model.history_,
        model.typical_documents(column, 0), model.unsure(column, 3), model.surprising(column, response, 3),
        model.next_to_label(column, 3), model.explain(X[0]).frame(), model.explain(X[0]).topic_frame(),
        model.summary_table().frame(), found.frame(), found.differences(), found.coefficients(),
        model.interactions(by["party"]).frame(), model.effects_on(column, response).frame(),
        model.check_labels(column, response, n_folds=2).estimates, model.placebo(column, response, n=1),
        choose_topics(SLDAClassifier(3, **RUN), column, response, [2, 3]).frame(),
    ]  # fmt: skip
    assert [type(table) for table in tables] == [pl.DataFrame] * len(tables)
    assert all(pl.Object not in table.dtypes and table.width > 1 for table in tables)
    plain = SLDAClassifier(3, **RUN).fit(X, y)
    assert rows_of(plain.topic_frame()) == tables[0].rows(named=True)
    assert rows_of(plain.unsure(X, 3)) == tables[5].rows(named=True)
    assert "Shares of 3 topics by party, age" in repr(found) and "wrong" in repr(model.check_labels(column, response))
    assert type(model.unsure(pd.Series(X), 3)) is pd.DataFrame  # what this call got comes first


def test_tables_on_request(texts):
    X, y = texts
    model = SLDAClassifier(3, **RUN).fit(X, y)
    assert type(model.topic_frame()) is pd.DataFrame
    with sklearn.config_context(transform_output="polars"):
        assert type(model.topic_frame()) is pl.DataFrame
        assert type(SLDAClassifier(3, **RUN).fit(X, y).transform(X)) is pl.DataFrame
    model.set_output(transform="polars")
    assert type(model.topic_frame()) is type(model.transform(X)) is pl.DataFrame
    assert model.transform(X).columns == model.get_feature_names_out().tolist()
    model.set_output(transform="pandas")
    assert type(model.unsure(pl.Series(X), 3)) is pd.DataFrame
    assert type(model.summary_table().frame("pyarrow")) is pa.Table
    with pytest.raises(ValueError, match="kind must be 'pandas', 'polars' or 'pyarrow', got 'csv'"):
        model.summary_table().frame("csv")


def test_an_odd_index_names_documents(texts):
    X, y = texts
    named = pd.Series(X, index=ODD)
    model = SLDAClassifier(3, **RUN).fit(named, pd.Series(y, index=ODD[::-1]))  # by places, as in scikit-learn
    assert set(model.unsure(named, 3).row) <= set(ODD)
    same(model, SLDAClassifier(3, **RUN).fit(X, y))


@pytest.mark.parametrize("make", [list, pd.Series, pl.Series])
def test_a_long_table_of_answers_beside_texts(texts, make):
    X, y = texts
    places = np.repeat(np.arange(100), 2)
    answers = {"document": places, "rater": ["a", "b"] * 100, "answer": [y[i] for i in places]}
    frame = pl.DataFrame(answers) if make is pl.Series else pd.DataFrame(answers)
    model = SLDACrowdClassifier(3, **RUN).fit(make(X), frame)
    assert type(model.rater_frame()) is type(model.disagreements(make(X), frame, 3)) is type(frame)


def test_methods_that_take_some_rows_of_a_frame(texts, monkeypatch):
    monkeypatch.setattr(drift, "MOST", 30)
    X, y = [text[:200] for text in texts[0]], texts[1]
    columns, model = {"n": np.arange(len(X)) % 5, "who": ["x", "y"] * (len(X) // 2)}, SLDAClassifier(3, **RUN)
    tables = []
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        model.fit(X, y, covariates=make(columns))
        found = model.drift(X, y, covariates=make(columns))
        tables.append(
            [*map(list, found.values()), model.check_labels(X, y, n=2, n_folds=2, covariates=make(columns)).p_wrong]
        )
    for other in tables[1:]:
        for a, b in zip(tables[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    answers = pa.chunked_array([list(y)])
    assert set(model.check_labels(X, answers, n=2, n_folds=2).classes) == set(y)


def test_columns_of_one_type_each():
    columns = {
        "mixed": [1.5, "b", None], "labels": [("a",), (), ("a", "b")], "names": np.array(["x", None, "z"], object),
        "numbers": np.arange(3),
    }  # fmt: skip
    frame = make_frame(columns, "polars")
    assert frame.dtypes == [pl.String, pl.List(pl.String), pl.String, pl.Int64]
    assert frame["mixed"].to_list() == ["1.5", "b", None]
    assert make_frame(columns)["mixed"].tolist() == columns["mixed"]
