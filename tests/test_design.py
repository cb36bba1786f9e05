"""Covariates as data frames, and formulas: what columns become, how they are matched, and what is refused."""

import csv
import datetime as dt
import json
import pickle
import sys
import warnings
from decimal import Decimal

import formulaic
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import supertopic
from supertopic import Formula, Prior, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.command.cli import main
from supertopic.corpus.frames import frame_of_cells, read_frame, typed, years
from supertopic.datasets import make_corpus
from supertopic.estimators.validation import describe_covariates, new_covariates
from supertopic.inference import fit as fit_room
from supertopic.model.design import Design, make_design
from supertopic.model.priors import chain_priors
from supertopic.storage.container import read_file, write_file

pytestmark = pytest.mark.usefixtures("short_regressions")
RUN = {"burn_in": 5, "n_draws": 4, "n_chains": 2, "predict_sweeps": 6, "random_state": 0}
N = 150
rng = np.random.default_rng(3)
FRAME = pd.DataFrame({
    "critic": rng.choice(["Cem", "Ann", "Bob"], N), "year": rng.integers(1990, 2000, N), "fresh": rng.random(N) < 0.5,
    "seen": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 3000, N), unit="D"),
})  # fmt: skip
DUMMIES = np.column_stack([
    FRAME.critic == "Bob", FRAME.critic == "Cem", FRAME.year, FRAME.fresh, years(FRAME.seen.to_numpy()),
]).astype(float)  # fmt: skip
NAMES = ["critic[Bob]", "critic[Cem]", "year", "fresh", "seen"]
LIBRARIES = {"pandas": lambda frame: frame, "polars": pl.DataFrame, "pyarrow": pa.Table.from_pandas}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=N, n_words=60, n_topics=3, random_state=0)


@pytest.fixture(scope="module")
def ratings(corpus):
    return corpus.doc_topic[:, 0] + (FRAME.critic == "Bob") + 0.1 * (FRAME.year - 1995)


@pytest.fixture(scope="module")
def fitted(corpus, ratings):
    return SLDARegressor(3, **RUN).fit(corpus.X, ratings, covariates=FRAME)


def encode(given, formula=None):
    columns, Z = describe_covariates(given, len(given), None if formula is None else Formula(formula))
    return columns.names.tolist(), Z


def levels_of(given):
    return describe_covariates(given, len(given))[0].design.columns[0].levels


# columns


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_gives_the_model_of_hand_made_columns(corpus, ratings, library):
    frame = LIBRARIES[library](FRAME)
    by_hand = SLDARegressor(3, **RUN).fit(corpus.X, ratings, covariates=DUMMIES)
    model = SLDARegressor(3, **RUN).fit(corpus.X, ratings, covariates=frame)
    np.testing.assert_array_equal(model.covariate_coef_draws_, by_hand.covariate_coef_draws_)
    assert model.covariate_names_.tolist() == NAMES and model.covariate_reference_ == {"critic": "Ann"}
    expected = by_hand.predict(corpus.X, covariates=DUMMIES)
    np.testing.assert_array_equal(model.predict(corpus.X, covariates=frame), expected)
    other = FRAME[["seen", "year", "critic", "fresh"]].assign(notes=None, again=[[1]] * N)  # not read
    np.testing.assert_array_equal(model.predict(corpus.X, covariates=other), expected)
    assert by_hand.covariate_reference_ == {} and by_hand.covariate_names_.tolist() == list("01234")


def test_levels_have_the_order_of_their_column():
    values = ["low", "high", "mid", "low"]
    order = ["low", "mid", "high"]
    assert levels_of(pd.DataFrame({"a": values})) == ("high", "low", "mid")
    assert levels_of(pl.DataFrame({"a": values})) == ("high", "low", "mid")
    assert levels_of(pl.DataFrame({"a": pl.Series(values, dtype=pl.Categorical)})) == ("high", "low", "mid")
    assert levels_of(pa.table({"a": pa.array(values).dictionary_encode()})) == ("high", "low", "mid")
    assert levels_of(pd.DataFrame({"a": values}).astype({"a": "string"})) == ("high", "low", "mid")
    for ordered in (False, True):
        assert levels_of(pd.DataFrame({"a": pd.Categorical(values, order, ordered=ordered)})) == tuple(order)
    assert levels_of(pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(order))})) == tuple(order)
    assert levels_of(pd.DataFrame({"a": pd.Categorical([3, 10, 3, 10])})) == ("3", "10")
    assert levels_of(pd.Series(values)) == ("high", "low", "mid")
    names, Z = encode(pd.DataFrame({"a": pd.Categorical(values, order)}))
    assert names == ["a[mid]", "a[high]"]
    np.testing.assert_array_equal(Z, [[0, 0], [0, 1], [1, 0], [0, 0]])


def test_levels_without_documents_are_constant():
    values = pd.Categorical(["a", "b", "a"], ["a", "b", "c"])
    with pytest.warns(UserWarning, match=r"covariate 'x\[c\]' is the same for all documents"):
        names, Z = encode(pd.DataFrame({"x": values}))
    assert names == ["x[b]", "x[c]"] and not Z[:, 1].any()
    with pytest.warns(UserWarning, match=r"covariate 'x\[a\]' is the same for all documents"):
        names, Z = encode(pd.DataFrame({"x": ["a"] * 3}))
    assert names == ["x[a]"] and Z.tolist() == [[1.0]] * 3


def test_arrays_and_series_with_text():
    cells = [["A", 1.5, True], ["B", 2, False], ["A", 3, True]]
    for given in (cells, np.array(cells, dtype=object)):
        names, Z = encode(given)
        assert names == ["0[B]", "1", "2"]
        np.testing.assert_array_equal(Z, [[0, 1.5, 1], [1, 2, 0], [0, 3, 1]])
    for given in (["A", "B", "A"], np.array(["A", "B", "A"]), pd.Series(["A", "B", "A"]), pl.Series(["A", "B", "A"])):
        assert encode(given)[0] == ["0[B]"] and encode(given)[1].tolist() == [[0.0], [1.0], [0.0]]
    assert encode(pd.Series(["A", "B"], name="critic"))[0] == ["critic[B]"]
    assert encode(pa.chunked_array([["A"], ["B"]]))[0] == ["0[B]"]
    columns, _ = describe_covariates(np.array(cells, dtype=object), 3)
    np.testing.assert_array_equal(new_covariates(columns, [["B", 0, False]], 1), [[1, 0, 0]])
    with pytest.raises(ValueError, match="has 2 columns, but the model was fitted with 3: '0', '1', '2'"):
        new_covariates(columns, [["B", 0]], 1)
    for given in ([[1, 2], [2, 3]], np.eye(2), np.array([[1, 2.5], [2, 3]], dtype=object)):  # as before
        assert describe_covariates(given, 2)[0].design is None


def test_dates_are_years():
    at = {
        "2020-01-01": 2020.0, "2020-07-02": 2020.5, "2021-07-02T12:00": 2021.5, "1969-12-31": 1969 + 364 / 365,
        "1600-01-01": 1600.0, "2020-12-31T23:59:59.999999": 2021 - 1e-6 / (366 * 86400),
    }  # fmt: skip
    moments, expected = [dt.datetime.fromisoformat(text) for text in at], np.array(list(at.values()))[:, None]
    for given in (
        pd.DataFrame({"d": np.array(list(at), dtype="datetime64[us]")}), pl.DataFrame({"d": moments}),
        pa.table({"d": moments}), np.array(moments), np.array(list(at), dtype="datetime64[us]"),
        pl.DataFrame({"d": moments}).with_columns(pl.col("d").dt.replace_time_zone("UTC")),
        [moment.replace(tzinfo=dt.UTC).astimezone(dt.timezone(dt.timedelta(hours=-5))) for moment in moments],
    ):  # fmt: skip
        np.testing.assert_allclose(encode(given)[1], expected, rtol=0, atol=1e-9)
    days = [dt.date(2019, 1, 1), dt.date(2020, 7, 2)]
    for given in (pd.DataFrame({"d": days}), pl.DataFrame({"d": days}), pa.table({"d": days})):
        assert encode(given)[1].tolist() == [[2019.0], [2020.5]]
    zones = pd.Series(["2020-01-01 00:00", "2020-07-01 19:00"]).astype("datetime64[ns]").dt.tz_localize("Etc/GMT+5")
    np.testing.assert_allclose(encode(pd.DataFrame({"d": zones}))[1], [[2020 + 5 / (366 * 24)], [2020.5]])


def test_numbers_of_every_kind():
    for given in (
        pd.DataFrame({"a": pd.array([1, 2], "Int64")}), pd.DataFrame({"a": [Decimal(1), Decimal(2)]}),
        pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.UInt8)}), pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128)}),
        pa.table({"a": pa.array([1, 2], pa.decimal128(5, 2))}),
        pd.DataFrame({0: [1, 2]}), pd.DataFrame({"a": pd.array([1, 2], "int64[pyarrow]")}),
    ):  # fmt: skip
        assert encode(given)[1].tolist() == [[1.0], [2.0]]
    for given in (pd.DataFrame({"a": pd.array([True, False], "boolean")}), pl.Series([True, False])):
        assert encode(given)[1].tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"a": ["x", None, "y"]}), "'a' is missing in 1 of 3 rows, the first at index 1"),
        (pd.DataFrame({"a": [1.0, np.nan, np.nan]}), "'a' is missing in 2 of 3 rows"),
        (pd.DataFrame({"a": pd.Categorical(["x", None, "y"])}), "'a' is missing in 1 of 3 rows"),
        (pd.DataFrame({"a": pd.array([True, None, False], "boolean")}), "'a' is missing in 1 of 3"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01", None, None])}), "'a' is missing in 2 of 3"),
        (pl.DataFrame({"a": [1.0, float("nan"), None]}, strict=False), "'a' is missing in 1 of 3"),
        (pl.DataFrame({"a": [1.0, float("nan"), 2.0]}), "'a' is missing in 1 of 3"),
        (pl.DataFrame({"a": [None, None, None]}), "'a' is missing in 3 of 3"),
        (pa.table({"a": ["x", None, None]}), "'a' is missing in 2 of 3"),
        (np.array(["x", None, pd.NA], dtype=object), "'0' is missing in 2 of 3"),
        (np.array(["2020-01-01", "NaT", "NaT"], dtype="datetime64[D]"), "'0' is missing in 2 of 3"),
        (pd.DataFrame({"a": [1.0, np.inf, 0.0]}), "'a' has infinite numbers"),
        (pd.DataFrame({"a": [1e200, 0.0, 0.0]}), r"from -1e\+100 to 1e\+100, got 1e\+200"),
        (pd.DataFrame({"a": [10**400, 1, 2]}), "'a' has numbers that are too large"),
        (pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"]), "more than one column 'a'"),
        (pd.DataFrame(np.zeros((3, 2)), columns=["1", 1]), "more than one column '1'"),
        (pd.DataFrame({"a": ["x", 1, "y"]}), "'a' holds int and str values"),
        (pl.DataFrame({"a": [[1], [2], [3]]}), r"'a' holds List\(Int64\) values"),
        (pd.DataFrame({"a": pd.to_timedelta([1, 2, 3])}), "'a' holds Duration.* values; expected numbers"),
        (pd.DataFrame({"a": [1j, 2, 3]}), "'a' holds complex values"),
        (pd.DataFrame({"a": pd.Categorical([1, "1", 2])}), "'a' has two levels that are written in the same way"),
        (pd.DataFrame(index=range(3)), "covariates has no columns"),
        (pd.DataFrame({"a": ["x"]}), "X has 3 documents but covariates has 1 rows"),
        (["x", "y"], "X has 3 documents but covariates has 2 rows"),
        (pl.DataFrame({"a": [1, 2, 3]}).lazy(), r"in memory, got a LazyFrame; give covariates.collect\(\)"),
        (pd.DataFrame({"a": ["b", "c", "b"], "a[c]": [1, 2, 3]}), r"Two covariates would have the name 'a\[c\]'"),
        (np.array([[["x"]]] * 3), "one or two dimensions, got 3"),
        ([["x", 1], ["y"], ["z", 2]], "inhomogeneous"),
        ({"a": [1, 2, 3]}, "float"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_covariate_is_named(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        describe_covariates(given, 3)


def test_products_of_whole_numbers_are_not_cut_off():
    frame = pd.DataFrame({"a": [2**40, 2, 3], "b": [2**40, 5, 7]})
    assert encode(frame, "a:b")[1].tolist() == [[2.0**80], [10.0], [21.0]]


def test_many_levels_are_refused():
    names = pd.DataFrame({"author": [f"a{i}" for i in range(201)]})
    with pytest.raises(ValueError, match=r"'author' has 201 levels; at most 200 are possible\. groups= is for"):
        describe_covariates(names, 201)
    assert describe_covariates(names[1:], 200)[1].shape == (200, 199)
    wide = pd.DataFrame({"a": [f"{i}" for i in range(100)], "b": [f"{i}" for i in range(100)]})
    with pytest.raises(ValueError, match="give 9,999 covariates; at most 2,000 are possible"):
        describe_covariates(wide, 100, Formula("a*b"))


# new documents


def test_columns_of_new_documents_are_checked(corpus, fitted):
    def refused(frame, message):
        with pytest.raises(ValueError, match=message):
            fitted.predict(corpus.X[: len(frame)], covariates=frame)

    few = FRAME[:2]
    refused(few.drop(columns="year"), "no column 'year'; its columns are 'critic', 'fresh', 'seen'")
    refused(
        few.assign(critic=["Dan", "Eve"]), "'critic' has levels that were not in the fit: 'Dan', 'Eve'; it had 'Ann'"
    )
    refused(few.assign(critic=[1, 2]), "'critic' was a category column in the fit, got a number column")
    refused(few.assign(year=["1", "2"]), "'year' was a number column in the fit, got a category column")
    refused(few.assign(seen=[1, 2]), "'seen' was a date column in the fit, got a number column")
    refused(few.assign(year=[1990, None]), "'year' is missing in 1 of 2 rows")
    refused(few[:1].assign(year=1e200), r"from -1e\+100 to 1e\+100")
    refused(np.zeros((2, 3)), "has 3 columns, but the model was fitted with 4: 'critic', 'year', 'fresh', 'seen'")
    with pytest.raises(ValueError, match="X has 3 documents but covariates has 2 rows"):
        fitted.predict(corpus.X[:3], covariates=few)
    with pytest.raises(ValueError, match="fitted with the covariates 'critic', 'year', 'fresh', 'seen'; pass"):
        fitted.predict(corpus.X[:2])
    same = few.assign(fresh=few.fresh.astype(int), year=few.year.astype(float), critic=few.critic.astype("category"))
    expected = fitted.predict(corpus.X[:2], covariates=few)
    np.testing.assert_array_equal(fitted.predict(corpus.X[:2], covariates=same), expected)
    by_place = few.assign(seen=few.seen.dt.date).to_numpy(dtype=object)
    np.testing.assert_allclose(fitted.predict(corpus.X[:2], covariates=by_place), expected)
    assert fitted.posterior_.covariates.columns.design.read(read_frame(FRAME[:0])).shape == (0, 5)


def test_an_array_and_a_frame_of_numbers(corpus, ratings):
    Z = FRAME[["year", "fresh"]].astype(float)
    array = np.ascontiguousarray(Z)
    arrays, frames = (SLDARegressor(3, **RUN).fit(corpus.X, ratings, covariates=z) for z in (array, Z))
    expected = arrays.predict(corpus.X, covariates=array)
    np.testing.assert_array_equal(frames.predict(corpus.X, covariates=array), expected)
    np.testing.assert_array_equal(arrays.predict(corpus.X, covariates=Z), expected)
    np.testing.assert_array_equal(arrays.predict(corpus.X, covariates=pl.DataFrame(Z)), expected)
    with pytest.raises(ValueError, match="'0' was a number column in the fit, got a category column"):
        arrays.predict(corpus.X, covariates=FRAME[["critic", "year"]])
    with pytest.raises(ValueError, match="covariates has 3 columns, but the model was fitted with 2"):
        arrays.predict(corpus.X, covariates=np.zeros((N, 3)))


def test_the_mean_stands_for_new_levels(corpus, ratings):
    formula = Formula("critic * year", new_levels="mean")
    columns, _ = describe_covariates(FRAME, N, formula)
    new = pd.DataFrame({"critic": ["Eve"], "year": [2003]})
    shares, slope = [np.mean(FRAME.critic == name) for name in ("Bob", "Cem")], 2003 - FRAME.year.mean()
    np.testing.assert_allclose(new_covariates(columns, new, 1)[0], [*shares, 2003, *np.array(shares) * slope])
    np.testing.assert_allclose(columns.standard(new_covariates(columns, new, 1))[0, :2], 0.0, atol=1e-12)
    assert [label for label, _ in columns.labels(new_covariates(columns, new, 1)[0])] == [
        "critic",
        "year",
        "critic:year",
    ]
    model = SLDARegressor(3, formula=formula, **RUN).fit(corpus.X, ratings, covariates=FRAME)
    known = [model.predict(corpus.X[:1], covariates=new.assign(critic=name))[0] for name in ("Ann", "Bob", "Cem")]
    weights = [np.mean(FRAME.critic == name) for name in ("Ann", "Bob", "Cem")]
    np.testing.assert_allclose(model.predict(corpus.X[:1], covariates=new)[0], np.dot(weights, known))


# formulas

PLAIN = ["a", "a+b", "a*b", "a:b", "a+a:b", "0+a", "a-1", "0+a+b", "0+a:b", "a:n", "n+a:n", "0+n+a", "n:m", "a*b*c",
         "a:b:c", "(a+b+c)**2", "a/b", "a%in%b", "k", "0+k:n+a", "a*b*c-a:b", "0+a:b+a:c", "b:n + a",
         "[n]+`odd name`"]  # fmt: skip
CENTRED = ["a*n", "n*m", "a*b*n", "n*m*a", "0+(a+b+n)**2", "a*b*n-a", "n*m*b-n:m:b", "a*n+a*m+k"]


def some_frame(n=80):
    frame = pd.DataFrame(
        {name: rng.choice(list(levels), n) for name, levels in (("a", "xyz"), ("b", "pq"), ("c", "uvw"))}
    )
    return frame.assign(
        n=rng.normal(5, 1, n), m=rng.normal(-3, 2, n),
        k=pd.Categorical(rng.choice(["lo", "hi"], n), ["lo", "mid", "hi"]),
        **{"odd name": rng.normal(size=n)},
    )  # fmt: skip


def matrix(formula, frame):
    found = formulaic.model_matrix(formula, frame).drop(columns="Intercept", errors="ignore")
    return [name.replace("[T.", "[") for name in found.columns], np.asarray(found, dtype=float)


@pytest.mark.filterwarnings("ignore:The covariate")
@pytest.mark.parametrize("formula", PLAIN + CENTRED)
def test_formulas_are_those_of_formulaic(formula):
    frame = some_frame()
    names, Z = encode(frame, formula)
    expected_names, raw = matrix(formula, frame)
    assert names == expected_names
    if formula in PLAIN:
        np.testing.assert_array_equal(Z, raw)
    else:  # products are those of centred numbers
        centred = matrix(formula, frame.assign(n=frame.n - frame.n.mean(), m=frame.m - frame.m.mean()))[1]
        np.testing.assert_allclose(Z - Z.mean(axis=0), centred - centred.mean(axis=0), atol=1e-12)
        assert not np.allclose(Z, raw)
    one = np.ones((len(Z), 1))
    ours, theirs = np.hstack([one, Z]), np.hstack([one, raw])
    assert np.linalg.matrix_rank(np.hstack([ours, theirs])) == np.linalg.matrix_rank(theirs)  # the same span
    assert np.linalg.matrix_rank(ours) == np.linalg.matrix_rank(theirs)


def test_slopes_and_differences_of_critics_are_found():
    """Numbers in products are centred: otherwise the prior shrinks slopes, and differences are those of the year 0."""
    corpus, rng = make_corpus(n_docs=600, random_state=0), np.random.default_rng(1)
    frame = pl.DataFrame({"critic": rng.choice(list("ABC"), 600), "year": rng.uniform(1990, 2010, 600)})
    of = np.array([list("ABC").index(name) for name in frame["critic"]])
    level, slope, year = np.array([0.0, 1.0, -0.5]), np.array([0.0, 0.1, -0.1]), frame["year"].to_numpy()
    y = 2 * corpus.doc_topic[:, 0] + level[of] + slope[of] * (year - year.mean()) + 0.2 * rng.normal(size=600)
    model = SLDARegressor(5, formula="critic * year", words=False, **RUN | {"burn_in": 20, "n_draws": 10})
    model.fit(corpus.X, y, covariates=frame)
    truth = [1.0, -0.5, 0.0, 0.1, -0.1]
    lower, upper = model.covariate_coef_interval(0.99)
    assert ((lower[0] < truth) & (truth < upper[0])).all() and (upper - lower)[0, 3:].max() < 0.1

    def at(critic, when):
        return model.predict(
            corpus.X[:50], covariates=pl.DataFrame({"critic": [critic] * 50, "year": [when] * 50})
        ).mean()

    slopes = [(at(name, 2005.0) - at(name, 1995.0)) / 10 for name in "ABC"]
    np.testing.assert_allclose(slopes, slope, atol=0.015)
    np.testing.assert_allclose([at(name, 2000.0) - at("A", 2000.0) for name in "ABC"], level, atol=0.1)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("bs(year)", r"has 'bs\(year\)', which is not the name of a column.*transform the column in the data frame"),
        ("{year + 1}", "is not the name of a column"), ("2:year", "has '2', which is not the name of a column"),
        ("critic:topics", r"has 'topics'.*model.interactions\(...\)"), ("topics", "interactions"),
        ("critic +", "cannot be read: "), ("critic year", "cannot be read: Missing operator"),
        ("a | b", "cannot be read"),
        ("a ~ b ~ c", "cannot be read"), ("`", "cannot be read"), ("1", "has no covariates"),
        ("0", "has no covariates"),
        ("", "must be a text such as 'critic \\+ year', got ''"), (3, "must be a text .* got 3"),
        ("(a+b)**999", "power above 8"),
        ("y + z ~ critic", "must be the name of one column"), ("log(y) ~ critic", "is not the name of a column"),
        ("critic ~ critic", "'critic' is on both sides"), ("critic + nobody", "no column 'nobody'; its"),
        ("(" * 3000 + "a", "cannot be read"), (["critic"], "must be a text"),
    ],
)  # fmt: skip
def test_formulas_that_are_refused(corpus, ratings, formula, message):
    with pytest.raises(ValueError, match=message):
        SLDARegressor(3, formula=formula, **RUN).fit(
            corpus.X, None if "~" in str(formula) else ratings, covariates=FRAME
        )


def test_a_formula_needs_a_frame(corpus, ratings):
    for given in (None, np.zeros((N, 2)), np.array(["a"] * N)):
        with pytest.raises(ValueError, match="formula='critic' needs covariates=, a data frame with its columns, got "):
            SLDARegressor(3, formula="critic", **RUN).fit(corpus.X, ratings, covariates=given)
    with pytest.raises(ValueError, match="new_levels must be 'error' or 'mean', got 'zero'"):
        SLDARegressor(3, formula=Formula("critic", new_levels="zero"), **RUN).fit(corpus.X, ratings, covariates=FRAME)
    with pytest.raises(ValueError, match="a product of 9 columns; at most 8"):
        letters = pd.DataFrame({letter: [0.0, 1.0] for letter in "abcdefghi"})
        describe_covariates(letters, 2, Formula(":".join("abcdefghi")))


def test_without_formulaic_a_message_says_what_to_install(monkeypatch, corpus, ratings, tmp_path):
    model = SLDARegressor(3, formula="critic", **RUN).fit(corpus.X, ratings, covariates=FRAME)
    supertopic.save(model, tmp_path / "m")
    for name in [name for name in sys.modules if name.split(".")[0] == "formulaic"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"formula='critic' needs formulaic: pip install \"supertopic\[formula\]\""):
        clone(model).fit(corpus.X, ratings, covariates=FRAME)
    loaded = supertopic.load(tmp_path / "m")  # a fitted model does not read the formula again
    expected = model.predict(corpus.X, covariates=FRAME)
    np.testing.assert_array_equal(loaded.predict(corpus.X, covariates=FRAME), expected)
    loaded.partial_fit(corpus.X, ratings, covariates=FRAME)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_left_side_is_the_response(corpus, ratings, library):
    y = ratings.where(np.arange(N) % 7 > 0)  # some are unknown
    frame = LIBRARIES[library](FRAME.assign(rating=y))
    model = SLDARegressor(3, formula="rating ~ critic + year", **RUN).fit(corpus.X, covariates=frame)
    same = SLDARegressor(3, formula="critic + year", **RUN).fit(corpus.X, y, covariates=FRAME)
    np.testing.assert_array_equal(model.covariate_coef_draws_, same.covariate_coef_draws_)
    assert model.covariate_names_.tolist() == ["critic[Bob]", "critic[Cem]", "year"]
    with pytest.raises(ValueError, match="says that y is the column 'rating': leave y out, or the left side"):
        model.partial_fit(corpus.X, y, covariates=frame)
    model.partial_fit(corpus.X, covariates=frame)
    np.testing.assert_array_equal(model.coef_, same.partial_fit(corpus.X, y, covariates=FRAME).coef_)
    assert model.predict(corpus.X[:2], covariates=FRAME[:2]).shape == (2,)  # needs no ratings
    with pytest.raises(ValueError, match="no column 'rating'"):
        clone(model).fit(corpus.X, covariates=FRAME)
    with pytest.raises(ValueError, match="needs covariates="):
        clone(model).fit(corpus.X)


@pytest.mark.filterwarnings("ignore:Found no relation")
def test_the_left_side_of_classes_and_counts(corpus):
    labels = np.array(["good", "bad", None], dtype=object)[np.arange(N) % 3]
    for frame in (pd.DataFrame({"what": labels, "z": np.arange(N)}), pl.DataFrame({"what": labels, "z": np.arange(N)})):
        model = SLDAClassifier(3, formula="what ~ .", **RUN).fit(corpus.X, covariates=frame)
        assert model.classes_.tolist() == ["bad", "good"] and model.covariate_names_.tolist() == ["z"]
    counts = pl.DataFrame({"n": np.arange(N) % 4, "z": np.arange(N)})
    model = SLDACountRegressor(3, formula="n ~ z", **RUN).fit(corpus.X, covariates=counts)
    same = SLDACountRegressor(3, **RUN).fit(corpus.X, counts["n"].to_numpy(), covariates=counts[["z"]])
    np.testing.assert_array_equal(model.coef_, same.coef_)


# scikit-learn


def test_clones_searches_and_cross_validation(corpus, ratings):
    formula = Formula("critic", new_levels="mean")
    model = SLDARegressor(3, formula=formula, **RUN)
    assert (
        model.get_params()["formula__new_levels"] == "mean"
        and repr(formula) == "Formula(new_levels='mean', text='critic')"
    )
    copy = clone(model)
    assert copy.formula is not formula and copy.formula.get_params() == formula.get_params()
    assert model.set_params(formula__new_levels="error").formula.new_levels == "error"
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asks = clone(model).set_fit_request(covariates=True).set_score_request(covariates=True)
        scores = [cross_val_score(asks, corpus.X, ratings, params={"covariates": frame}, cv=3)
                  for frame in (FRAME, pl.DataFrame(FRAME))]  # fmt: skip
        np.testing.assert_array_equal(*scores)
        search = GridSearchCV(asks, {"formula": ["critic", "critic * year"]}, cv=2)
        search.fit(corpus.X, ratings, covariates=FRAME)
    assert search.best_params_ == {"formula": "critic * year"} and scores[0].mean() > 0.5
    choice = supertopic.choose_topics(clone(model), corpus.X, ratings, [2], covariates=FRAME)
    assert choice.rows[0]["score"] > 0.5


def test_pipelines_and_pickles(ratings):
    texts = [f"{'goal match' if i % 2 else 'vote law'} word{i % 9}" for i in range(N)]
    pipeline = make_pipeline(CountVectorizer(), SLDARegressor(2, **RUN))
    pipeline.fit(texts, ratings, sldaregressor__covariates=FRAME)
    expected = pipeline.predict(texts, covariates=FRAME)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(texts, covariates=pl.DataFrame(FRAME)), expected)


# batches, priors, checkpoints, files


def test_batches_have_the_columns_of_the_first(corpus, ratings):
    half, rest = slice(0, 90), slice(90, N)
    by_hand, model = (SLDARegressor(3, **RUN) for _ in range(2))
    for part in (half, rest):
        by_hand.partial_fit(corpus.X[part], ratings[part], covariates=DUMMIES[part])
        frame = FRAME[part] if part == half else pl.DataFrame(FRAME[part][["seen", "fresh", "year", "critic"]])
        model.partial_fit(corpus.X[part], ratings[part], covariates=frame)
    np.testing.assert_array_equal(model.covariate_coef_draws_, by_hand.covariate_coef_draws_)
    with pytest.raises(ValueError, match="levels that were not in the fit: 'Eve'"):
        model.partial_fit(corpus.X, ratings, covariates=FRAME.assign(critic="Eve"))
    assert model.n_batches_ == 2 and model.covariate_names_.tolist() == NAMES


def test_a_prior_with_weights_has_the_same_levels(corpus, ratings, fitted, monkeypatch):
    """What is known of weights is put where the covariates are now, and is in their units."""
    found = []

    def keep(*arguments):
        found.append(chain_priors(*arguments)[1].weights.prediction)
        return chain_priors(*arguments)

    def fit(frame):
        model = SLDARegressor(3, prior=Prior(fitted, weights=True), **RUN)
        return model.fit(corpus.X[:60], ratings[:60], covariates=frame[:60])

    monkeypatch.setattr(fit_room, "chain_priors", keep)
    moved = FRAME[["seen", "critic", "fresh", "year"]]
    names = [fit(frame).covariate_names_.tolist() for frame in (DUMMIES, FRAME, moved)]
    assert names[1] == NAMES and names[2] == ["seen", "critic[Bob]", "critic[Cem]", "fresh", "year"]
    for part, order in ((found[1], NAMES), (found[2], names[2])):
        at = np.r_[:3, 3 + np.array([order.index(name) for name in NAMES])]
        np.testing.assert_allclose(found[0].shift, part.shift[at])
        whole = square(part.precision[:, 0])
        np.testing.assert_allclose(square(found[0].precision[:, 0]), whole[np.ix_(at, at)])
    for strange in (FRAME.assign(critic=FRAME.critic.replace("Ann", "Abe")), FRAME[FRAME.critic != "Ann"]):
        with pytest.raises(ValueError, match=r"needs the same covariates: the prior has 'critic\[Bob\]', 'critic"):
            fit(strange)
    model = SLDARegressor(3, prior=fitted, **RUN)  # without weights
    model.fit(corpus.X, ratings, covariates=FRAME.assign(critic="x" + FRAME.critic))


def square(packed):
    """A symmetric matrix from its lower triangle."""
    n = int(np.sqrt(2 * len(packed)))
    whole = np.zeros((n, n))
    whole[np.tril_indices(n)] = packed
    return whole + np.tril(whole, -1).T


def test_a_checkpoint_belongs_to_its_formula(corpus, ratings, tmp_path):
    def fit(formula):
        return SLDARegressor(3, formula=formula, **RUN).fit(
            corpus.X, ratings, covariates=FRAME, checkpoint=tmp_path / "c"
        )

    first = fit("critic")
    np.testing.assert_array_equal(first.coef_, fit("critic").coef_)
    for other in ("year", Formula("critic", new_levels="mean")):
        with pytest.raises(ValueError, match="checkpoint of another fit"):
            fit(other)


def test_files_keep_the_design(corpus, ratings, tmp_path):
    model = SLDARegressor(3, formula=Formula("critic*seen + fresh:year", new_levels="mean"), **RUN)
    model.fit(corpus.X, ratings, covariates=FRAME)
    supertopic.save(model, tmp_path / "m")
    loaded = supertopic.load(tmp_path / "m")
    columns, others = (one.posterior_.covariates.columns for one in (model, loaded))
    assert columns.design == others.design and loaded.covariate_reference_ == {"critic": "Ann"}
    new = FRAME.assign(critic="Eve")[:5]
    np.testing.assert_array_equal(*(one.predict(corpus.X[:5], covariates=new) for one in (model, loaded)))
    assert loaded.formula.get_params() == model.formula.get_params()
    batches = [one.partial_fit(corpus.X, ratings, covariates=FRAME).coef_ for one in (model, loaded)]
    np.testing.assert_array_equal(*batches)


def changed(change):
    """A change of the design in a file."""

    def work(design):
        change(design)
        return json.dumps(design)

    return work


@pytest.mark.parametrize(
    "change",
    [
        lambda design: "", lambda design: "[]", lambda design: "{}", lambda design: "[" * 100_000,
        lambda design: "null",
        changed(lambda d: d[0].append(d[0][0])), changed(lambda d: d[0].pop()), changed(lambda d: d.append(1)),
        changed(lambda d: d[0][0].__setitem__(0, "other")), changed(lambda d: d[0][0].__setitem__(0, 3)),
        changed(lambda d: d[0][0].__setitem__(1, "number")), changed(lambda d: d[0][0].__setitem__(1, ["x"])),
        changed(lambda d: d[0][0][2].append("Zoe")), changed(lambda d: d[0][0].__setitem__(2, ["Ann", "Ann", "Bob"])),
        changed(lambda d: d[0][0].__setitem__(2, [1, 2, 3])), changed(lambda d: d[0][0].__setitem__(2, [])),
        changed(lambda d: d[0][0].__setitem__(3, [])), changed(lambda d: d[0][0].__setitem__(3, ["a", "b", "c"])),
        changed(lambda d: d[0][0].__setitem__(3, [float("nan")] * 3)), changed(lambda d: d[0][1].__setitem__(4, None)),
        changed(lambda d: d[0][1].__setitem__(4, float("inf"))), changed(lambda d: d[0][1].__setitem__(2, ["x"])),
        changed(lambda d: d[1].append(["nobody"])), changed(lambda d: d[1].append(["critic"])),
        changed(lambda d: d[1].append(["critic"] * 50)), changed(lambda d: d[1].append([["critic"]])),
        changed(lambda d: d[1].extend([["x"]] * 10**5)), changed(lambda d: d[1].pop()),
        changed(lambda d: d.__setitem__(2, "zero")), changed(lambda d: d.__setitem__(2, {})),
        changed(lambda d: d.__setitem__(3, 1)), changed(lambda d: d.__setitem__(1, 3)),
    ],
)  # fmt: skip
def test_a_forged_design_is_refused(fitted, tmp_path, change):
    supertopic.save(fitted, tmp_path / "m")
    header, tensors = read_file(tmp_path / "m", "model")
    name = "terms.covariates.design"
    text = json.loads(tensors[name].tobytes())[0]
    assert Design.from_json(text) == fitted.posterior_.covariates.columns.design
    forged = json.dumps([change(json.loads(text))]).encode()
    write_file(tmp_path / "m", header, tensors | {name: np.frombuffer(forged, np.uint8)})
    with pytest.raises(ValueError, match=r"cannot be right|not a valid supertopic model"):
        supertopic.load(tmp_path / "m")


def test_files_without_a_design_still_load(fitted, corpus, tmp_path):
    supertopic.save(fitted, tmp_path / "m")
    header, tensors = read_file(tmp_path / "m", "model")
    del tensors["terms.covariates.design"], header["json"]["terms.covariates.design"], header["parameters"]["formula"]
    write_file(tmp_path / "m", header, tensors)
    expected = fitted.predict(corpus.X, covariates=FRAME)
    np.testing.assert_array_equal(supertopic.load(tmp_path / "m").predict(corpus.X, covariates=DUMMIES), expected)


# explanations and tables


def test_explanations_name_the_level_of_a_document(corpus, ratings, fitted):
    for i, name in enumerate(("Ann", "Bob", "Cem")):
        frame = FRAME[:1].assign(critic=name)
        why = fitted.explain(corpus.X[:1], covariates=frame)
        assert [label for label in why.others if label != "intercept"] == [f"critic[{name}]", "year", "fresh", "seen"]
        parts = why.constant + why.covariates + why.total.sum(axis=0)
        np.testing.assert_allclose(parts, why.omega)
        np.testing.assert_allclose(why.omega, fitted.predict(corpus.X[:1], covariates=frame))
        added = why.others[f"critic[{name}]"]
        levels = DUMMIES[0].copy()
        levels[:2] = [i == 1, i == 2]
        term = fitted.posterior_.covariates
        expected = (term.eta.mean(axis=(0, 1)) * term.columns.standard(levels))[0, :2].sum()
        np.testing.assert_allclose(added, expected * fitted.posterior_.response.unit)
    named = SLDARegressor(3, **RUN).fit(
        corpus.X, ratings, covariates=FRAME.rename(columns={"year": "intercept"})[["intercept"]]
    )
    new = pd.DataFrame({"intercept": [1999]})
    why = named.explain(corpus.X[:1], covariates=new)
    np.testing.assert_allclose(why.omega, named.predict(corpus.X[:1], covariates=new))
    np.testing.assert_allclose(why.constant + why.covariates + why.total.sum(axis=0), why.omega)


def test_labels_of_products(corpus):
    columns, Z = describe_covariates(FRAME, N, Formula("critic*year + critic:fresh + 0"))
    names = dict(zip(range(N), FRAME.critic, strict=True))
    for i in range(20):
        critic, labels = names[i], [label for label, _ in columns.labels(Z[i])]
        assert labels[:2] == [f"critic[{critic}]", "year"]
        assert labels[2] == ("critic:year" if critic == "Ann" else f"critic[{critic}]:year")
        assert labels[3] == (f"critic[{critic}]:fresh" if FRAME.fresh[i] else "critic:fresh")


# tables on disk and the command

TEXTS = ["goal match team win", "vote law senate party", "match goal fans", "senate vote debate"] * 15
CRITICS = [["Ann", "Bob", "Cem"][i % 3] for i in range(60)]
STARS = [3.0 + (i % 2) + (i % 3 == 1) + 0.01 * i for i in range(60)]


def write_table(path, critics=CRITICS, texts=TEXTS, stars=STARS):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "stars", "critic", "year", "day"])
        for i, row in enumerate(zip(texts, stars, critics, strict=True)):
            writer.writerow([*row, 1990 + i % 7, f"2020-0{1 + i % 9}-15"])
    return path


def test_cells_of_a_table_have_kinds():
    assert typed("a", ["1", None, "2.5", "NA"], None) == [1.0, None, 2.5, None]
    assert typed("a", ["x", "NA"], None) == ["x", "NA"] and typed("a", ["1", "K"], None) == ["1", "K"]
    assert typed("a", ["2020-01-31", None], None) == [dt.datetime(2020, 1, 31), None]
    assert typed("a", ["1", "2"], "category") == ["1", "2"] and typed("a", [3, None], "category") == ["3", None]
    assert typed("a", ["true", "False", "1"], "boolean") == [1.0, 0.0, 1.0]
    assert typed("a", [1, True], None) == [1, True] and typed("a", [], None) == []
    with pytest.raises(ValueError, match=r"'year' has 30 different numbers, but also 'n\.a\.'"):
        typed("year", [*map(str, range(30)), "n.a."], None)
    with pytest.raises(ValueError, match="'a' is missing in 1 of 2 rows"):
        frame_of_cells({"a": ["1", None]}).column(0)
    with pytest.raises(TypeError, match="'a' holds list values"):
        frame_of_cells({"a": [[1], [2]]}).column(0)


@pytest.mark.filterwarnings("ignore:Found no relation", "ignore:n_topics")
def test_columns_of_files(tmp_path):
    write_table(tmp_path / "1.csv", CRITICS[:30], TEXTS[:30], STARS[:30])
    write_table(tmp_path / "2.csv", ["Dan", *CRITICS[31:]], TEXTS[30:], STARS[30:])  # a level of one file only
    frame = pd.concat([pd.read_csv(tmp_path / f"{i}.csv", parse_dates=["day"]) for i in (1, 2)], ignore_index=True)
    columns = ["critic", "year", "day"]
    model = SLDARegressor(2, **RUN).fit_files(tmp_path, label="stars", covariates=columns)
    same = SLDARegressor(2, **RUN).fit(frame.text.tolist(), frame.stars, covariates=frame[columns])
    np.testing.assert_array_equal(model.covariate_coef_draws_, same.covariate_coef_draws_)
    assert model.covariate_names_.tolist() == ["critic[Bob]", "critic[Cem]", "critic[Dan]", "year", "day"]
    model = SLDARegressor(2, formula="stars ~ critic * year", **RUN).fit_files(tmp_path)
    same = SLDARegressor(2, formula="stars ~ critic * year", **RUN).fit(frame.text.tolist(), covariates=frame)
    np.testing.assert_array_equal(model.covariate_coef_draws_, same.covariate_coef_draws_)
    with pytest.raises(ValueError, match="names the response, and so does label='stars'"):
        clone(model).fit_files(tmp_path, label="stars")
    model = SLDARegressor(2, formula=".", **RUN).fit_files(tmp_path, label="stars", covariates=["year"])
    assert model.covariate_names_.tolist() == ["year"]


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process; returns what it printed."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert (stop.value.code or 0) == code, captured.err
        return captured.out if code == 0 else " ".join(captured.err.split())

    return run


def test_the_command_reads_critics(command, tmp_path):
    path, model = write_table(tmp_path / "d.csv"), tmp_path / "m"
    fast = ["--topics", 2, "--burn-in", 5, "--draws", 4, "--min-df", 1]
    fit = ["fit", path, "--text", "text", "--label", "stars", "--response", "rating", "-o", model, *fast]
    named = ["--covariate", "critic", "--covariate", "year", "--covariate", "day"]
    page = ["--test-size", 0.2, "--report", tmp_path / "p.html"]
    shown = command(*fit, *named, *page)
    assert "critic[Bob]" in shown and "compared with" in shown and "critic[Ann]" in shown and "day" in shown
    html = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "critic[Cem]" in html and "compared with critic[Ann]" in html and '["critic[Bob]",' in html
    assert "rating: stars" in html  # not "0"
    table = pd.read_csv(path, parse_dates=["day"])
    estimator = supertopic.load(model)
    expected = estimator.predict(table.text.tolist(), covariates=table)
    predict = ["predict", model, path, "--text", "text"]
    rows = list(csv.DictReader(command(*predict).splitlines()))
    np.testing.assert_allclose([float(row["prediction"]) for row in rows], expected)
    new = table.rename(columns={"critic": "author"})[:2].assign(author="Bob")
    new.to_csv(tmp_path / "new.csv", index=False)
    predict[2] = tmp_path / "new.csv"
    assert "no column 'critic'" in command(*predict, code=1)
    other = ["--covariate", "author", "--covariate", "year", "--covariate", "day"]
    rows = list(csv.DictReader(command(*predict, *other).splitlines()))
    np.testing.assert_allclose(
        [float(row["prediction"]) for row in rows],
        estimator.predict(new.text.tolist(), covariates=new.rename(columns={"author": "critic"})),
    )
    assert "--covariate is given 1 times, but the model has 3 covariates: critic, year, day" in command(
        *predict, "--covariate", "author", code=1
    )
    given = ["--covariate", "Bob", "--covariate", "1993", "--covariate", "2020-03-01"]
    assert "critic[Bob]" in command("explain", model, "--text", "match goal", *given)
    assert "levels that were not in the fit: 'Zoe'" in command(
        "explain", model, "--text", "goal", "--covariate", "Zoe", *given[2:], code=1
    )
    command("update", model, path, "--text", "text", "--label", "stars", "-o", tmp_path / "m2")
    assert supertopic.load(tmp_path / "m2").n_batches_ == 2
    command("report", model, path, "--text", "text", "--label", "stars", "-o", tmp_path / "p.html")
    command(*fit, "--formula", "critic * year")
    assert supertopic.load(model).covariate_names_.tolist()[-1] == "critic[Cem]:year"
    rows = list(csv.DictReader(command("predict", model, path, "--text", "text").splitlines()))
    assert len(rows) == 60
    assert "leave 'stars ~' out" in command(*fit, "--formula", "stars ~ critic", code=1)
    write_table(path, ["", *CRITICS[1:]])
    assert "'critic' is missing in 1 of 60 rows" in command(*fit, *named, code=1)


def test_a_number_of_a_level_is_still_a_level(command, tmp_path):
    """Levels of which new documents have only such that look like numbers."""
    path, model = write_table(tmp_path / "d.csv", [["1", "2", "x"][i % 3] for i in range(60)]), tmp_path / "m"
    fast = ["--topics", 2, "--burn-in", 5, "--draws", 4, "--min-df", 1, "--covariate", "critic"]
    command("fit", path, "--text", "text", "--label", "stars", "--response", "rating", "-o", model, *fast)
    write_table(path, ["1"] * 60)
    rows = list(csv.DictReader(command("predict", model, path, "--text", "text").splitlines()))
    expected = supertopic.load(model).predict(TEXTS, covariates=pd.DataFrame({"critic": ["1"] * 60}))
    np.testing.assert_allclose([float(row["prediction"]) for row in rows], expected)


def test_designs_compare_their_columns():
    frame = read_frame(FRAME)
    read = [frame.column(i) for i in range(3)]
    design = make_design(read, [(), ("critic",), ("year",)], "error", True)
    assert design.is_like(make_design(read[::-1], [(), ("year",), ("critic",)], "mean", True))
    assert not design.is_like(make_design(read, [(), ("critic",), ("fresh",)], "error", True))
