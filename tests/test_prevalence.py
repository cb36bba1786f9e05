"""Who talks about what: `topic_effects` against known truths, and its regression against other programs."""

import itertools
import sys
import warnings
from dataclasses import replace

import formulaic
import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm

from small import ERRORS, flat
from supertopic import LDA, SLDAClassifier
from supertopic.kernels.draws import make_key, normals
from supertopic.kernels.shares import draw_shares
from supertopic.report.design import read_variables
from supertopic.report.prevalence import draw_clusters, learn_total
from supertopic.report.regression import Regression

matplotlib.use("Agg")
N_WORDS = 40  # ten words for each of four topics: no word is of two topics
MEANS = np.array([[0.4, 0.3, 0.2, 0.1], [0.2, 0.3, 0.1, 0.4]])


def shares_of(rng, means, total):
    gammas = np.maximum(rng.standard_gamma(total * means), 1e-300)
    return gammas / gammas.sum(axis=1, keepdims=True)


def words_of(rng, shares, length):
    """Documents whose topics share no word, so that words show topics without doubt."""
    counts = np.array([rng.multinomial(length, row) for row in shares])
    return np.concatenate([np.array([rng.multinomial(n, np.full(10, 0.1)) for n in column]) for column in counts.T], 1)


@pytest.fixture(scope="module")
def model():
    """A model of four topics without common words, in their true order, and with an alpha that shrinks much."""
    rng = np.random.default_rng(0)
    X = words_of(rng, shares_of(rng, np.full((300, 4), 0.25), 0.4), 100)
    seeds = {f"topic {k}": list(range(10 * k, 10 * k + 5)) for k in range(4)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LDA(4, alpha=20.0, n_chains=2, seeds=seeds, random_state=0, burn_in=60).fit(X)


@pytest.fixture(scope="module")
def corpus():
    """Two groups, 300 documents of 30 words."""
    rng = np.random.default_rng(1)
    group = np.arange(300) % 2
    shares = shares_of(rng, MEANS[group], 5.0)
    return words_of(rng, shares, 30), np.array(["a", "b"])[group], shares


@pytest.fixture(scope="module")
def effects(model, corpus):
    return model.topic_effects(corpus[0], corpus[1])


def test_topics_are_those_of_the_truth(model):
    assert (model.topic_word_.reshape(4, 4, 10).sum(axis=2) > 0.98).sum() == 4
    assert np.diag(model.topic_word_.reshape(4, 4, 10).sum(axis=2)).min() > 0.98


# the sampler


def test_shares_are_draws_of_the_exact_posterior():
    """A document of three words, each with a prior of its own: all z are enumerated."""
    phi, prior = np.array([[0.6, 0.1, 0.3], [0.1, 0.2, 0.3], [0.3, 0.7, 0.4]]), np.array([0.5, 1.5, 0.2])
    words = [0, 2, 1]
    total, exact = 0.0, np.zeros(3)
    for z in itertools.product(range(3), repeat=3):
        n, p = np.zeros(3), 1.0
        for word, k in zip(words, z, strict=True):
            p *= (prior[k] + n[k]) * phi[word, k]
            n[k] += 1
        total += p
        exact += p * (prior + n) / (prior.sum() + 3)
    n_docs = 40_000
    tokens, z = flat([words] * n_docs, [[0, 1, 2]] * n_docs)
    counts, shares = np.empty((n_docs, 3)), np.empty((n_docs, 3))
    draw_shares(tokens, z, phi, np.tile(prior, (n_docs, 1)), make_key(1), 0, 20, counts, shares)
    error = shares.std(axis=0) / np.sqrt(n_docs)
    assert (np.abs(shares.mean(axis=0) - exact / total) < ERRORS * error).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (counts.sum(axis=1) == 3).all() and (counts == [np.bincount(z[:3], minlength=3)] + counts * 0)[0].all()


def test_a_tiny_prior_does_not_underflow():
    tokens, z = flat([[0], [1]], [[0], [0]])
    counts, shares = np.empty((2, 2)), np.empty((2, 2))
    draw_shares(tokens, z, np.full((2, 2), 0.5), np.full((2, 2), 1e-8), make_key(0), 0, 2, counts, shares)
    assert np.isfinite(shares).all() and (shares.max(axis=1) > 0.999).all()


def test_the_total_of_the_prior_is_learned():
    rng = np.random.default_rng(0)
    means = rng.dirichlet(np.full(4, 3.0), 4000)
    counts = np.array([rng.multinomial(30, row) for row in shares_of(rng, means, 6.0)]).astype(float)
    total = 0.5
    for _ in range(300):
        total = learn_total(total, means, counts, counts.sum(axis=1))
    assert abs(total - 6.0) < 0.3


def test_effects_of_clusters_have_their_variance():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(400), 5)
    true = rng.normal(0, [0.3, 0.1, 0.0], (400, 3))
    shares = 0.3 + true[cluster] + rng.normal(0, 0.2, (2000, 3))
    regression = Regression(np.ones((2000, 1)), cluster)
    expected = np.full((2000, 3), 0.3)
    drawn = draw_clusters(regression, shares, regression.fit(shares), expected, make_key(3))[::5]
    np.testing.assert_allclose(drawn.std(axis=0), [0.3, 0.1, 0.0], atol=0.025)  # as the truth, neither shrunk nor raw
    assert np.corrcoef(drawn[:, 0], true[:, 0])[0, 1] > 0.8


# the regression


@pytest.fixture
def regression():
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(12), rng.integers(1, 9, 12))
    design = np.column_stack([np.ones(len(cluster)), cluster % 2, rng.normal(size=len(cluster))])
    y = rng.normal(size=12)[cluster] + rng.normal(size=len(cluster)) * (1 + cluster % 2)
    return Regression(design, cluster), y


def test_the_robust_covariance_is_that_of_statsmodels(regression):
    design, y = regression[0].design, regression[1]
    single = Regression(design, np.arange(len(y)))
    wanted = sm.OLS(y, design).fit(cov_type="HC2")
    fit = single.fit(y[:, None])[:, 0]
    np.testing.assert_allclose(fit, wanted.params)
    np.testing.assert_allclose(single.covariance(y - design @ fit), wanted.cov_params())


def test_the_covariance_of_clusters_is_that_of_statsmodels_where_both_are_the_same():
    """For the mean of equally large clusters CR1 and CR2 are one; for many clusters they are close."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(15), 4)
    y = rng.normal(size=15)[cluster] + rng.normal(size=60)
    wanted = sm.OLS(y, np.ones((60, 1))).fit(cov_type="cluster", cov_kwds={"groups": cluster})
    np.testing.assert_allclose(Regression(np.ones((60, 1)), cluster).covariance(y - y.mean()), wanted.cov_params())
    cluster = np.repeat(np.arange(1000), 3)
    design = np.column_stack([np.ones(3000), cluster % 2, rng.normal(size=3000)])
    y = rng.normal(size=1000)[cluster] + rng.normal(size=3000)
    many = sm.OLS(y, design).fit(cov_type="cluster", cov_kwds={"groups": cluster})
    found = Regression(design, cluster).covariance(y - design @ many.params)
    np.testing.assert_allclose(np.sqrt(np.diag(found)), many.bse, rtol=0.005)


def by_definition(regression):
    """(I - H_cc)^(-1/2) of each cluster, the projection, and the bread, with full matrices."""
    x = regression.design
    bread = np.linalg.inv(x.T @ x)
    hat, roots = x @ bread @ x.T, []
    for c in range(regression.n_clusters):
        docs = np.flatnonzero(regression.cluster == c)
        values, vectors = np.linalg.eigh(np.eye(len(docs)) - hat[np.ix_(docs, docs)])
        roots.append((docs, vectors / np.sqrt(values) @ vectors.T))
    return x, bread, hat, roots


def test_the_covariance_of_clusters_is_its_definition(regression):
    found, y = regression
    x, bread, hat, roots = by_definition(found)
    residuals = y - hat @ y
    scores = np.array([x[docs].T @ root @ residuals[docs] for docs, root in roots])
    np.testing.assert_allclose(found.covariance(residuals), bread @ scores.T @ scores @ bread)


@pytest.mark.parametrize("row", [[0, 1, 0], [1, 0.5, 2], [0, 0, 1]])
def test_degrees_of_freedom_are_their_definition(regression, row):
    found, row = regression[0], np.array(row, float)
    x, bread, hat, roots = by_definition(found)
    rest = np.eye(len(x)) - hat
    g = np.array([rest[:, docs] @ root @ x[docs] @ bread @ row for docs, root in roots])
    values = np.linalg.eigvalsh(g @ g.T)
    np.testing.assert_allclose(found.degrees(row), values.sum() ** 2 / (values**2).sum())


def test_degrees_of_freedom_of_two_groups():
    group = np.array([0] * 5 + [1] * 9)
    found = Regression(np.column_stack([np.ones(14), group]), np.arange(14)).degrees(np.array([0.0, 1.0]))
    wanted = (1 / 5 + 1 / 9) ** 2 / (1 / 5**2 / 4 + 1 / 9**2 / 8)
    assert found == pytest.approx(wanted)


def test_drawn_errors_have_the_covariance(regression):
    found, y = regression
    residuals = (y - found.design @ found.fit(y[:, None])[:, 0])[:, None]
    draws = [found.error(residuals, noise)[:, 0] for noise in normals((20_000, 12), make_key(5))]
    np.testing.assert_allclose(np.cov(np.array(draws).T), found.covariance(residuals[:, 0]), rtol=0.1, atol=0.01)


# effects


def test_differences_are_those_of_the_truth(effects):
    table = effects.differences()
    truth = MEANS[1] - MEANS[0]
    assert ((table.lower < truth) & (truth < table.upper)).sum() >= 3
    np.testing.assert_allclose(table.difference, truth, atol=0.06)
    assert table.p_direction[[0, 3]].min() > 0.99 and table.reference.tolist() == ["a"] * 4
    shares = effects.frame().pivot(index="value", columns="topic", values="share")
    np.testing.assert_allclose(shares.to_numpy(), MEANS, atol=0.05)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_short_documents_are_not_shrunk(model):
    """Ten words of documents that are much alike: whoever regresses their shares finds a third of the differences."""
    rng = np.random.default_rng(3)
    group, truth = np.arange(1000) % 2, MEANS[1] - MEANS[0]
    X = words_of(rng, shares_of(rng, MEANS[group], 20.0), 10)
    alpha = model.alpha_[0]
    theta = (model.transform(X) * 10 + alpha) / (10 + alpha.sum())
    plain = theta[group == 1].mean(axis=0) - theta[group == 0].mean(axis=0)
    found = model.topic_effects(X, group == 1).differences()
    assert plain @ truth / (truth @ truth) < 0.4
    assert 0.9 < found.difference @ truth / (truth @ truth) < 1.1
    assert ((found.lower < truth) & (truth < found.upper)).sum() >= 3


def test_known_shares_give_an_ordinary_regression(model):
    rng = np.random.default_rng(4)
    x = rng.random(60)
    shares = shares_of(rng, MEANS[0] + x[:, None] * (MEANS[1] - MEANS[0]), 3.0)
    effects = model.topic_effects(words_of(rng, shares, 4000), {"x": x}, n_draws=600)
    found = effects.coefficients()
    for k in range(4):
        wanted = sm.OLS(shares[:, k], sm.add_constant(x)).fit(cov_type="HC2")
        own = found[found.topic == k]
        np.testing.assert_allclose(own["mean"], wanted.params, atol=0.006)
        np.testing.assert_allclose(own["sd"], wanted.bse, rtol=0.1)
        lower, upper = wanted.conf_int(0.1).T
        np.testing.assert_allclose(own["lower"], lower, atol=0.4 * wanted.bse.max())
        np.testing.assert_allclose(own["upper"], upper, atol=0.4 * wanted.bse.max())


def test_intervals_contain_what_is_unknown_of_documents(model):
    """The fewer words, the wider: as if each share had the error of its words, besides that of the sample."""
    rng = np.random.default_rng(5)
    group = np.arange(200) % 2
    shares = shares_of(rng, MEANS[group], 5.0)
    sd = {}
    for length in (5, 500):
        table = model.topic_effects(words_of(rng, shares, length), group == 1).differences()
        sd[length] = table.sd.to_numpy()
    wanted = np.sqrt((MEANS * (1 - MEANS) * (1 / 6 + 5 / 6 / np.array([5, 500])[:, None, None])).sum(axis=1) / 100)
    np.testing.assert_allclose(sd[500], wanted[1], rtol=0.15)
    np.testing.assert_allclose(sd[5], wanted[0], rtol=0.25)


def test_clusters_widen_intervals(model):
    """Documents of four words: clusters would seem alike if their documents were shrunk towards all others."""
    rng = np.random.default_rng(6)
    cluster = np.arange(1200) % 60
    own = shares_of(rng, MEANS[np.arange(60) % 2], 10.0)
    X = words_of(rng, shares_of(rng, own[cluster], 200.0), 4)
    alone = model.topic_effects(X, cluster % 2 == 1).differences()
    together = model.topic_effects(X, cluster % 2 == 1, groups=cluster)
    wanted = np.sqrt((MEANS * (1 - MEANS) * (1 / 11 + 1 / 80)).sum(axis=0) / 30)  # of the means of 30 clusters each
    table = together.differences()
    assert "60 clusters" in repr(together)
    assert (alone.sd < 0.75 * wanted).all()
    np.testing.assert_allclose(np.sqrt((table.sd**2).mean()), np.sqrt((wanted**2).mean()), rtol=0.15)


def test_few_clusters_have_wider_tails(model):
    rng = np.random.default_rng(6)
    cluster = np.arange(120) % 6
    own = shares_of(rng, MEANS[np.arange(6) % 2], 10.0)
    X = words_of(rng, shares_of(rng, own[cluster], 20.0), 200)
    table = model.topic_effects(X, cluster % 2 == 1, groups=cluster, n_draws=2000).differences()
    ratio = ((table.upper - table.lower) / table.sd).mean()
    assert ratio == pytest.approx(2 * 2.13, rel=0.08)  # t with 4 degrees of freedom, where a normal has 2 * 1.64


def test_splines_are_those_of_formulaic(model, corpus):
    year = np.random.default_rng(0).integers(1990, 2020, 300)
    frame = pd.DataFrame({"group": corpus[1], "year": year})
    formula = "group * bs(year, df=4)"
    effects = model.topic_effects(corpus[0], frame, formula=formula, n_draws=40)
    wanted = formulaic.model_matrix(formula, frame)
    np.testing.assert_array_equal(effects.design.matrix, wanted)
    assert effects.design.names == list(wanted.columns)
    new = pd.DataFrame({"group": corpus[1], "year": 2001})
    row = wanted.model_spec.get_model_matrix(new).mean(axis=0)
    np.testing.assert_allclose(effects.design.row({"year": 2001}), row)
    table = effects.frame("year", at={"group": "b"})
    assert sorted(set(table.value)) == sorted(set(year)) and len(table) == 4 * len(set(year))
    one = table[(table.topic == 0) & (table.value == 2001)].share.item()
    row = wanted.model_spec.get_model_matrix(pd.DataFrame({"group": ["b"], "year": [2001]}, index=[0])).to_numpy()[0]
    assert one == pytest.approx(row @ effects.fits.mean(axis=0)[:, 0])


def test_other_columns_are_held_at_their_means(model, corpus):
    x = np.random.default_rng(0).normal(3.0, 1.0, 300)
    effects = model.topic_effects(corpus[0], {"group": corpus[1], "x": x}, n_draws=40)
    np.testing.assert_allclose(effects.design.row({"group": "b"}), [1, 1, x.mean()])
    np.testing.assert_allclose(effects.design.row({"x": 2.0}), [1, 0.5, 2.0])
    found, fits = effects.frame("group").share.to_numpy(), effects.fits.mean(axis=0)
    np.testing.assert_allclose(found[::2], fits[0] + x.mean() * fits[2])
    both = effects.differences()
    np.testing.assert_allclose(both[both.variable == "x"].difference, (x.max() - x.min()) * fits[2])
    whole = model.topic_effects(corpus[0], {"year": np.arange(300) % 9}, n_draws=40)
    half = whole.differences(reference=2.5)  # of whole numbers
    np.testing.assert_allclose(half.difference, 5.5 * whole.fits.mean(axis=0)[1])
    assert len(effects.frame("x")) <= 4 * 30 and set(effects.frame("x").value) <= set(x)


def test_chains_have_a_common_order_and_those_without_a_topic_are_left_out(model, corpus):
    """A chain with its topics shuffled is the same chain; one whose topic is another does not count for it."""
    posterior, (topics,) = model.posterior_, model.posterior_.topics
    shuffle = np.array([2, 0, 3, 1])
    mixed = topics.word_topic.copy()
    mixed[1] = mixed[1][:, shuffle]
    other = replace(topics, word_topic=mixed)
    order = np.array([posterior.order[0], np.argsort(shuffle)[posterior.order[1]]])
    copy = LDA(4).set_params(**model.get_params())
    copy.n_features_in_, copy.posterior_ = N_WORDS, replace(posterior, topics=(other,), order=order)
    wanted = model.topic_effects(corpus[0], corpus[1]).differences().difference
    np.testing.assert_allclose(copy.topic_effects(corpus[0], corpus[1]).differences().difference, wanted, atol=0.02)

    lost, best = topics.word_topic.copy(), posterior.best_chain
    lost[1 - best][:, 2] = 1  # no topic that anybody else has
    copy.posterior_ = replace(posterior, topics=(replace(topics, word_topic=lost),))
    assert copy.posterior_.consensus.has[best, 2] and not copy.posterior_.consensus.has[1 - best, 2]
    draws = copy.topic_effects(corpus[0], corpus[1], n_draws=40).fits[..., 2]
    np.testing.assert_array_equal(draws[::2], draws[1::2])  # 20 draws of the best chain, each twice


def test_the_same_bits_for_the_same_seed_on_any_number_of_threads(model, corpus):
    by, seeds = {"group": corpus[1]}, np.arange(300) % 30
    found = [LDA(4).set_params(**model.get_params()).set_params(n_jobs=n) for n in (1, 3)]
    for copy in found:
        copy.n_features_in_, copy.posterior_ = N_WORDS, model.posterior_
    one, three = (copy.topic_effects(corpus[0], by, groups=seeds, n_draws=40) for copy in found)
    np.testing.assert_array_equal(one.fits, three.fits)
    np.testing.assert_array_equal(one.errors, three.errors)
    assert one.differences().equals(three.differences())
    other = found[0].topic_effects(corpus[0], by, groups=seeds, n_draws=40, random_state=1)
    assert not np.array_equal(one.fits, other.fits)


def as_pandas(frame):
    frame = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()
    return frame.assign(value=frame.value.astype(str)) if "value" in frame else frame  # polars has one type a column


def test_frames_of_all_libraries_give_the_same(model, corpus):
    group, year = corpus[1], np.arange(300) % 7
    given = [
        {"group": group, "year": year},
        pd.DataFrame({"group": group, "year": year}),
        pd.DataFrame({"group": pd.Categorical(group), "year": year}, index=np.arange(300)[::-1]),
        pl.DataFrame({"group": group, "year": year}),
        pl.DataFrame({"group": group, "year": year}).lazy(),
        pl.DataFrame({"group": group, "year": year}).to_arrow(),
    ]
    found = [as_pandas(model.topic_effects(corpus[0], by, n_draws=20).frame()) for by in given]
    for frame in found[1:]:
        pd.testing.assert_frame_equal(frame, found[0], check_dtype=False)
    series = [pd.Series(group, name="group"), pl.Series("group", group), {"group": list(group)}]
    found = [as_pandas(model.topic_effects(corpus[0], by, n_draws=20).differences()) for by in series]
    for frame in found[1:]:
        pd.testing.assert_frame_equal(frame, found[0], check_dtype=False)


def test_groups_have_the_order_of_their_categories():
    values = ["low", "high", "low", "mid"]
    order = ["low", "mid", "high", "none"]
    for column in (pd.Series(pd.Categorical(values, categories=order)), pl.Series(values, dtype=pl.Enum(order))):
        assert read_variables(column, 4)["by"].levels == ("low", "mid", "high")
    assert read_variables(np.array(values, object), 4)["by"].levels == ("high", "low", "mid")
    assert read_variables(pd.Series(pd.Categorical([3, 1, 3, 1], categories=[3, 1])), 4)["by"].levels == ("3", "1")
    for truth in ([True, False, True, True], pl.Series([True, False, True, True]), np.eye(4, dtype=object)[0] > 0):
        assert read_variables(truth, 4)["by"].levels == (False, True)
    assert read_variables(np.array([1, 2.5, 3, 4], object), 4)["by"].levels is None


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "pyarrow"])
def test_columns_are_those_of_covariates(kind):
    """Dates are years, whole numbers stay whole, long identifiers stay different."""
    days, long = np.array(["2020-01-01", "2020-07-02", "1999-01-01"], "M8[us]"), 2**60 + np.arange(3)
    polars = pl.DataFrame({"day": days, "id": long})
    given = {
        "numpy": {"day": days, "id": long}, "pandas": pd.DataFrame({"day": days, "id": pd.array(long, "Int64")}),
        "polars": polars.lazy(), "pyarrow": polars.to_arrow(),
    }[kind]  # fmt: skip
    found = read_variables(given, 3)
    assert found["day"].levels is None and found["day"].values.tolist() == [2020.0, 2020.5, 1999.0]
    assert found["id"].points == long.tolist()
    with pytest.raises(ValueError, match=r"'day' is a number \(a date is a year, such as 2020.5\); got '2020-01-01'"):
        found["day"].find("2020-01-01", "day")


def test_columns_of_arrays_have_names_for_formulas():
    cells = [["a", 1.5, True], ["b", 2, False], ["a", 3, True]]
    found = read_variables(cells, 3)
    assert list(found) == ["x0", "x1", "x2"] and found["x1"].values.tolist() == [1.5, 2, 3]
    assert found["x0"].levels == ("a", "b") and found["x2"].levels == (False, True)
    assert list(read_variables(np.eye(3), 3)) == ["x0", "x1", "x2"]


def test_without_formulaic_a_message_says_what_to_install(monkeypatch, model, corpus):
    for name in [name for name in sys.modules if name.split(".")[0] == "formulaic"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"formula='x' needs formulaic: pip install \"supertopic\[formula\]\""):
        model.topic_effects(corpus[0], {"x": np.arange(300)}, formula="x")


@pytest.mark.parametrize(
    ("by", "more", "message"),
    [
        (np.full(300, np.nan), {}, "'by' is missing in 300 of 300 rows, the first at index 0"),
        (pd.Series(["a", None] * 150, name="party"), {}, "'party' is missing in 150 of 300 rows, the first at index 1"),
        (pl.Series("x", [1.0] * 299 + [None]), {}, "'x' is missing in 1 of 300 rows, the first at index 299"),
        (np.array(["a", float("nan"), None] * 100, object), {}, "missing in 200 of 300 rows, the first at index 1"),
        (pd.Series([True, None] * 150, dtype="boolean"), {}, "missing in 150 of 300"),
        (["a"] * 300, {}, "'by' is 'a' for every document: there is nothing to compare"),
        (np.ones(300), {}, "for every document"),
        (np.arange(300).astype(str), {}, "300 coefficients for 300 documents"),
        (np.zeros((300, 2)), {}, "for every document"),
        (np.arange(299), {}, "X has 300 documents but by has 299 rows"),
        ("party", {}, "must have one value for each document"),
        (np.zeros((300, 0)), {}, "by has no columns"),
        (np.zeros((300, 1, 1)), {}, "must have one value for each document"),
        (np.r_[np.inf, np.arange(299)], {}, "'by' has infinite numbers"),
        (np.r_[1e200, np.arange(299)], {}, "must hold numbers from"),
        ({"a": np.arange(300), "b": 2 * np.arange(300) + 1}, {}, "of the design follow from the others"),
        (pd.DataFrame(np.zeros((300, 2)), columns=["a", "a"]), {}, "by has more than one column 'a'"),
        ({"1": np.arange(300), 1: np.arange(300)}, {}, "by has more than one column '1'"),
        ({"a": np.arange(300), "b": ["x"] * 299}, {}, "equally long, but 'a' has 300 rows and 'b' has 299"),
        ({"a": np.zeros((300, 2))}, {}, r"by\['a'\] must have one value for each document, got 2 columns"),
        ({"a": 3}, {}, r"by\['a'\] must have one value .*: one or two dimensions, got 0"),
        ({"a": [1, None] * 150}, {}, "'a' is missing in 150 of 300 rows, the first at index 1"),
        ({}, {}, "by has no columns"),
        ([10**400] * 300, {}, "'by' has numbers that are too large"),
        (np.array(["2020-01-01", "NaT", "NaT"] * 100, "M8[D]"), {}, "'by' is missing in 200 of 300 rows"),
        ({"year": np.arange(300)}, {"formula": "yeer"}, "yeer.*The columns of by are year"),
        ({"year": np.arange(300)}, {"formula": "year +"}, "cannot be used"),
        ({"year": np.arange(300)}, {"formula": "y ~ year"}, "cannot be used|left side"),
        ({"year": np.arange(300)}, {"formula": "year ~ year"}, "left side"),
        ({"year": np.arange(300)}, {"formula": "1"}, "names no column of by"),
        ({"year": np.arange(300)}, {"formula": "bs(year, df=400)"}, "cannot be used|coefficients for 300 documents"),
        ({"year": np.arange(300)}, {"formula": "year + I(2 * year)"}, "follow from the others"),
        ({"year": np.arange(300)}, {"groups": ["a"] * 300}, "groups has one group only"),
        ({"year": np.arange(300)}, {"groups": np.arange(10)}, "groups has 10 rows"),
        ({"year": np.arange(300)}, {"groups": np.zeros((300, 2))}, "got 2 columns"),
        ({"year": np.arange(300)}, {"groups": [None] * 300}, "'groups' is missing in 300"),
        ({"year": np.arange(300)}, {"level": 1.0}, "level must be between 0 and 1"),
        ({"year": np.arange(300)}, {"n_draws": 3}, "n_draws must be a whole number >= 20"),
        ({"year": np.arange(300)}, {"random_state": -1}, "random_state must be in"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(model, corpus, by, more, message):
    with pytest.raises(ValueError, match=message):
        model.topic_effects(corpus[0], by, **more)


@pytest.mark.parametrize(
    ("by", "more", "message"),
    [
        (pd.Series(pd.to_timedelta(range(300), unit="D")), {}, "'by' holds Duration.* values; expected numbers"),
        (np.arange(300).astype("m8[D]"), {}, r"'by' holds timedelta64\[D\] values; expected numbers"),
        (np.zeros(300, complex), {}, "'by' holds complex128 values; expected numbers"),
        (["a", 1, 2.5] * 100, {}, "'by' holds float and int and str values"),
        ({"year": np.arange(300)}, {"formula": 3}, "formula must be text"),
    ],
)
def test_wrong_types_are_refused(model, corpus, by, more, message):
    with pytest.raises(TypeError, match=message):
        model.topic_effects(corpus[0], by, **more)


def test_a_logarithm_of_0_is_refused(model, corpus):
    with warnings.catch_warnings(), pytest.raises(ValueError, match="is not finite"):
        warnings.simplefilter("ignore")
        model.topic_effects(corpus[0], {"year": np.arange(300)}, formula="log(year)")


def test_documents_without_words_are_left_out(model, corpus):
    X, group = corpus[0].copy(), corpus[1].astype(object)
    X[:5], group[:5] = 0, "nobody else"
    with pytest.warns(UserWarning, match="5 of 300 documents have no known words"):
        found = model.topic_effects(X, group, n_draws=20)
    assert found.differences().equals(model.topic_effects(X[5:], group[5:], n_draws=20).differences())
    with pytest.raises(ValueError, match="None of the 300 documents has a known word"):
        model.topic_effects(np.zeros_like(X), group)


def test_a_group_of_one_document_has_no_interval(model, corpus):
    group = corpus[1].astype(object)
    group[0] = "c"
    table = model.topic_effects(corpus[0], group, n_draws=40).differences()
    alone = table.value == "c"
    assert table[alone][["sd", "lower", "upper", "p_direction"]].isna().all(axis=None)
    assert table[~alone].notna().all(axis=None) and table.difference.notna().all()


def test_huge_and_tiny_numbers_are_no_matter_of_units(model, corpus):
    x = np.random.default_rng(0).random(300)
    tables = [
        model.topic_effects(corpus[0], {"x": s * x + 5 * s}, n_draws=20).differences() for s in (1.0, 1e-30, 1e60)
    ]
    for table in tables[1:]:
        np.testing.assert_allclose(table[["difference", "lower"]], tables[0][["difference", "lower"]], atol=1e-3)


def test_topics_of_each_class_sum_to_1(corpus):
    model = SLDAClassifier(4, multiclass="separate", n_chains=2, words=False, random_state=0, burn_in=20)
    X, labels = corpus[0], np.arange(300) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, labels)
        effects = model.topic_effects(X[:150], corpus[1][:150], n_draws=20)
        assert effects.fits.shape[2] == 12
        np.testing.assert_allclose(effects.frame().groupby("value").share.sum(), 1.0)
        with pytest.warns(UserWarning, match="documents of the fit"):
            model.topic_effects(X, corpus[1], n_draws=20)


def test_an_alpha_that_is_far_off_is_noticed(model):
    rng = np.random.default_rng(0)
    X = words_of(rng, shares_of(rng, np.full((200, 4), 0.25), 50.0), 60)
    narrow = LDA(4, alpha=0.4, random_state=0, prior=model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        narrow.fit(X)
    with pytest.warns(UserWarning, match="times as much as the alpha of the model says"):
        narrow.topic_effects(X, np.arange(200) % 2 == 0, n_draws=20)


def test_it_is_shown(model, corpus, effects):
    text, page = repr(effects), effects._repr_html_()
    assert "300 documents, 500 draws, 90% intervals" in text and "by: b against a" in text
    assert page.count("<tr>") == 5 and "topic 0" in page
    assert effects.differences("b").value.tolist() == ["a"] * 4
    display = effects.plot(topics=[3, 1])
    assert display.mean.shape == (2, 1) and display.ax_.get_yticklabels()[0].get_text() == "3 topic 3"
    curve = model.topic_effects(corpus[0], {"year": np.arange(300) % 40}, n_draws=20).plot()
    assert curve.mean.shape == (4, 30) and [len(ax.lines) for ax in curve.axes_[:4]] == [1] * 4
    together = curve.plot(ax=matplotlib.pyplot.figure().subplots())
    assert len(together.ax_.lines) == 4 and together.ax_.get_ylabel() == "expected share of the topic (%)"
    many = model.topic_effects(corpus[0], (np.arange(300) % 5).astype(str), n_draws=20)
    assert "and 4 more differences" in repr(many) and len(many.plot().groups) == 4
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda effects: effects.differences("z"), "'by' has no group 'z'; its groups are a, b"),
        (lambda effects: effects.frame("z"), "There is no variable 'z'; there are by"),
        (lambda effects: effects.frame(at={"z": 1}), "There is no variable 'z'"),
        (lambda effects: effects.plot("z"), "There is no variable 'z'"),
        (lambda effects: effects.plot(topics=[9]), "topics must be from 0 to 3"),
    ],
)
def test_wrong_questions_are_refused(effects, call, message):
    with pytest.raises(ValueError, match=message):
        call(effects)


def test_tables_are_draws_of_rows_times_coefficients(model, corpus):
    """The standard deviation, also of what a regression adds; numbers are compared at their ends."""
    X, group, _ = corpus
    by = pd.DataFrame({"g": group, "age": np.arange(300) % 7 * 1.0})
    found = model.topic_effects(X, by, n_draws=40, formula="g * age")
    draws = found.fits + found.errors  # (n, p, K)
    for _, row in found.coefficients().iterrows():
        place = found.design.names.index(row["coefficient"]), row["topic"]
        assert row["sd"] == pytest.approx(draws[:, *place].std(ddof=1))
        assert row["mean"] == pytest.approx(found.fits[:, *place].mean())
    ends = found.differences(variable="age")
    assert len(ends) == 4 and set(ends["value"]) == {6.0} and set(ends["reference"]) == {0.0}
    for age in (0.0, 6.0):  # an interaction: the difference depends on what is held
        shares = found.frame("g", {"age": age}).pivot(index="topic", columns="value", values="share")
        own = found.differences(variable="g", at={"age": age}).set_index("topic")["difference"]
        np.testing.assert_allclose(own, shares["b"] - shares["a"], atol=1e-12)
    back = found.differences("b", "g").set_index("topic")["difference"]
    np.testing.assert_allclose(back, -found.differences("a", "g").set_index("topic")["difference"], atol=1e-12)


def test_the_largest_differences_are_printed_and_drawn_first(effects):
    matplotlib.use("Agg")
    table = effects.differences()
    order = table["difference"].abs().sort_values(ascending=False).index
    lines = [line for line in repr(effects).splitlines() if " .. " in line]
    assert [float(line.split()[0]) for line in lines] == pytest.approx(table["difference"][order], abs=6e-4)
    assert min(table["difference"]) < 0 < max(table["difference"])
    shown = effects.plot()
    assert shown.labels == [effects.labels[k] for k in table["topic"][order]]
    matplotlib.pyplot.close("all")
