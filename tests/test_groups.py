"""Groups of documents: partially pooled intercepts, whose variance is drawn."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import chi2, halfcauchy, ks_2samp, multivariate_normal

import naive
from small import plan_of, stops_early
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
from supertopic.command.cli import main
from supertopic.corpus.source import Target
from supertopic.datasets import make_corpus
from supertopic.inference import calibration, fit, reported, weights
from supertopic.inference.held_out import choose_folds, choose_held_out, deal_groups
from supertopic.inference.reported import NU2_REPORTED, FoldDocuments
from supertopic.kernels.draws import make_key
from supertopic.model.groups import GroupWeights, draw_variance, log_prior_variance, prior_variances, variances_of
from supertopic.model.responses import Gaussian, Logistic
from supertopic.model.responses.columns import NewColumns
from supertopic.model.state import Priors, no_statistics
from supertopic.model.terms import DrawPairs
from supertopic.sampling import gibbs
from supertopic.sampling.chain import Chain
from supertopic.sampling.gibbs import log_weights
from supertopic.sampling.plan import Plan
from supertopic.sampling.threads import ThreadEngine

RUN = {"burn_in": 20, "n_draws": 10, "n_chains": 2, "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    """Documents of nine authors, whose ratings differ by their author's mood."""
    data = make_corpus(n_docs=360, n_topics=3, doc_length=60, eta=[-2.0, 0.0, 2.0], random_state=0)
    rng = np.random.default_rng(1)
    group, mood = rng.integers(0, 9, 360), rng.normal(size=9)
    data.mood, data.groups = mood, np.array([f"author {i}" for i in range(9)])[group]
    data.omega = data.doc_topic @ [-2.0, 0.0, 2.0] + mood[group]
    data.rating = data.omega + 0.5 * rng.normal(size=360)
    data.label = (rng.random(360) < expit(data.omega)).astype(int)
    return data


def test_the_variance_has_its_posterior():
    """Given intercepts, against a grid of the density of a half-Cauchy prior times a normal likelihood."""
    b = np.array([[0.3, -0.8, 1.2, 0.1, -0.4]])
    draws, variance = [], np.ones(1)
    for i in range(20_000):
        variance = draw_variance(b, variance, make_key(3, i))
        draws.append(variance[0])
    grid = np.exp(np.linspace(-7, 7, 4001))
    density = np.exp(-0.5 * np.sum(b**2) / grid - 0.5 * b.size * np.log(grid)) * np.sqrt(grid) / (1 + grid)  # of log
    mass = np.cumsum(density) / density.sum()
    for q in (0.1, 0.5, 0.9):
        assert np.mean(np.array(draws) < grid[np.searchsorted(mass, q)]) == pytest.approx(q, abs=0.015)
    alone = variances_of(np.tile(b, (300, 1, 1)), make_key(4))[:, 0]
    assert np.median(alone) == pytest.approx(grid[np.searchsorted(mass, 0.5)], rel=0.25)
    tau = np.sqrt(grid)
    np.testing.assert_allclose(
        [log_prior_variance(np.array([v])) for v in grid[::500]], (halfcauchy.logpdf(tau) - np.log(2 * tau))[::500]
    )


def test_the_prior_of_weights_is_that_of_its_parts():
    nu2 = prior_variances(2.0, np.array([0.5, 3.0]), 5, 2)
    np.testing.assert_array_equal(nu2, [[2, 2, 2, 0.5, 0.5], [2, 2, 2, 3, 3]])
    eta = np.random.default_rng(0).normal(size=(2, 5))
    expected = sum(multivariate_normal.logpdf(row, cov=np.diag(v)) for row, v in zip(eta, nu2, strict=True))
    assert log_weights(eta, nu2, None) == pytest.approx(expected)
    assert log_weights(eta, nu2, no_statistics(5, 2)) == pytest.approx(expected)
    assert log_weights(eta, 2.0, None) == pytest.approx(multivariate_normal.logpdf(eta.ravel(), cov=2.0 * np.eye(10)))


@pytest.mark.parametrize("sampler", ["collapsed", "drawn"])
def test_the_exact_posterior(sampler):
    """Topics, intercepts and their variance of a tiny corpus, by enumeration of z and quadrature of the variance."""
    docs, n_words, n_topics, beta, nu2 = [[0, 1], [1, 2], [0, 2]], 3, 2, 0.5, 1.5
    y, group = np.array([1.2, -0.7, 1.0]), np.array([0, 1, 0])
    Z, alpha = np.eye(2)[group], np.array([0.4, 0.6])
    target = Target(y[:, None], np.ones((3, 1)), np.zeros((3, 1)), Z)
    response = Gaussian(1.0, np.array([0.3]), drawn=False, fixed=True)
    log_tau = np.linspace(-12, 17, 233)
    variance = np.exp(log_tau)
    states, logs, means = [], [], []
    for flat in itertools.product(range(n_topics), repeat=6):
        z = [list(flat[2 * d : 2 * d + 2]) for d in range(3)]
        words = naive.log_words(docs, z, n_words, n_topics, beta) + naive.log_documents(z, alpha)
        x = np.hstack([naive.zbars(z, n_topics), Z])
        for v in variance:
            prior = np.diag([nu2, nu2, v, v])
            covariance = 0.3 * np.eye(3) + x @ prior @ x.T
            logs.append(
                words + multivariate_normal.logpdf(y, cov=covariance) + log_prior_variance(np.array([v])) + np.log(v)
            )
            means.append(prior @ x.T @ np.linalg.solve(covariance, y))
        states.append(flat)
    p = np.exp(np.array(logs) - max(logs)).reshape(len(states), -1)
    p /= p.sum()
    exact = [*(p.sum(axis=1) @ np.array(states)), *np.einsum("sv,svj->j", p, np.reshape(means, (*p.shape, 4)))]
    exact.append(p.sum(axis=0) @ np.minimum(variance, 5.0))  # its mean would need a long chain
    plan, source = plan_of(docs, n_words, response, target, Priors(alpha, beta, nu2), sampler, 1)
    plan = plan._replace(n_groups=2, seed=7)
    found, n_steps = [], 12_000

    def errors():
        blocks = np.array(found)[: 40 * (len(found) // 40)].reshape(40, -1, 11).mean(axis=1)
        return (blocks.mean(axis=0) - exact) / (blocks.std(axis=0, ddof=1) / np.sqrt(40))

    with Chain(plan, 0, ThreadEngine(plan, source, 1)) as chain:
        for i in range(n_steps):
            chain.step()
            if i >= 200:
                z = chain.engine.shards[0].z
                found.append([*z.tolist(), *chain.last_eta[0], min(chain.variance[0], 5.0)])
            if stops_early(i + 1, n_steps, errors):
                break
    assert np.abs(errors()).max() < 4.5, errors()


def simulate(rng, response, n_docs=120, n_groups=6):
    shares, group = rng.dirichlet([0.6, 0.6], n_docs), rng.integers(0, n_groups, n_docs)
    tau = min(abs(rng.standard_cauchy()), 20.0)
    eta, b = rng.normal(0, np.sqrt(NU2_REPORTED), 2), rng.normal(0, tau, n_groups)
    y = (rng.random(n_docs) < expit(shares @ eta + b[group])).astype(float)
    target = Target(y[:, None], np.ones((n_docs, 1)), np.zeros((n_docs, 1)), np.eye(n_groups)[group])
    plan = Plan((), (), 9, 1, n_groups, response, Priors(np.ones(2), 0.1, 1.0), False, "delayed", 0, 10,
                n_groups=n_groups)  # fmt: skip
    return FoldDocuments(shares, target, np.array([0, n_docs])), plan, [*eta, *b[:3]]


def test_weights_that_are_drawn_from_the_prior_are_found_again():
    """Simulation-based calibration of the regression: ranks of the truth among draws are uniform."""
    rng, ranks = np.random.default_rng(0), []
    response = Logistic(1.0, classes=np.arange(2))
    for i in range(120):
        documents, plan, truth = simulate(rng, response)
        known = no_statistics(8, 1)
        draws = reported.regress_folds(documents, np.ones((1, 2), bool), known, plan, 100, 1, make_key(9, i)).draws
        ranks.append((draws[::2, 0, : len(truth)] < truth).mean(axis=0))
    counts = np.array([np.histogram(column, bins=5, range=(0, 1))[0] for column in np.transpose(ranks)])
    statistic = ((counts - 24.0) ** 2 / 24.0).sum(axis=1)
    assert statistic.max() < chi2.ppf(0.9995, 4), counts


def test_each_draw_of_weights_has_the_variance_that_was_drawn_before_it(monkeypatch):
    seen, draw = [], gibbs.draw_weights
    monkeypatch.setattr(gibbs, "draw_weights", lambda *about: seen.append(about[3]) or draw(*about))
    monkeypatch.setattr(calibration, "draw_variance", lambda intercepts, variance, key: variance + 1.0)
    documents, plan, _ = simulate(np.random.default_rng(0), Logistic(1.0, classes=np.arange(2)))
    reported.regress_folds(documents, np.ones((1, 2), bool), no_statistics(8, 1), plan, 4, 1, make_key(9))
    assert len(seen) > 4
    for i, nu2 in enumerate(seen):
        assert nu2.tolist() == [[NU2_REPORTED] * 2 + [1.0 + i] * 6]


def test_intercepts_are_found(corpus):
    model = SLDARegressor(3, words=False, **RUN | {"burn_in": 60, "n_chains": 4})
    model.fit(corpus.X, corpus.rating, groups=corpus.groups)
    frame = model.group_frame().set_index("group")
    shares = np.array([np.mean(corpus.groups == name) for name in frame.index])
    truth = corpus.mood - shares @ corpus.mood
    assert frame.index.tolist() == model.group_names_.tolist() == sorted(set(corpus.groups))
    assert (np.abs(frame["mean"] - truth) < 4 * frame["sd"]).all() and (frame["sd"] < 0.2).all()
    assert ((frame.lower <= truth) & (truth <= frame.upper)).mean() > 0.5
    assert abs(shares @ frame["mean"]) < 0.05
    assert 0.5 < model.group_sd_[0] / corpus.mood.std() < 2.0
    plain = SLDARegressor(3, words=False, **RUN).fit(corpus.X, corpus.rating)
    assert model.score(corpus.X, corpus.rating, groups=corpus.groups) > plain.score(corpus.X, corpus.rating) + 0.15
    widths = [np.mean(np.subtract(*m.coef_interval()[::-1])) for m in (model, plain)]
    assert widths[0] < 0.8 * widths[1]  # groups explain what was noise


def test_a_group_with_few_documents_is_close_to_the_others(corpus):
    groups, rating = corpus.groups.copy(), corpus.rating.copy()
    groups[:2], rating[:2] = "rare", corpus.omega[:2] + 6.0
    model = SLDARegressor(3, words=False, **RUN).fit(corpus.X, rating, groups=groups)
    frame = model.group_frame().set_index("group")
    assert 0.3 < frame["mean"]["rare"] < 5.9 and frame["sd"]["rare"] > 2 * frame["sd"].median()


def test_new_groups_get_the_population(corpus):
    model = SLDARegressor(3, words=False, **RUN).fit(corpus.X, corpus.rating, groups=corpus.groups)
    X, groups = corpus.X[:20], corpus.groups[:20]
    new = model.predict(X, groups=["somebody"] * 20)
    np.testing.assert_array_equal(new, model.predict(X))
    assert (new != model.predict(X, groups=groups)).all()
    wide, narrow = (np.subtract(*model.predict_interval(X, groups=own)[::-1]) for own in (None, groups))
    assert (wide > 1.2 * narrow).all()
    for own, label in ((groups[:1], f"group {groups[0]}"), (["somebody"], "a new group")):
        found = model.explain(X[:1], groups=own)
        assert label in found.others
        total = sum(value[0] for value in found.others.values()) + found.through_topics.sum()
        assert total == pytest.approx(found.omega[0])
    one = model.predict(X[3:4], groups=groups[3:4])
    np.testing.assert_array_equal(one, model.predict(X, groups=groups)[3:4])  # alone and among others


@pytest.mark.parametrize("kind", [SLDAClassifier, MedLDAClassifier, SLDACountRegressor, SLDAOrdinalClassifier])
@pytest.mark.parametrize("form", ["plain", "separate", "stick_breaking", "labels"])
def test_every_response(corpus, kind, form, tmp_path, short_regressions):
    if form != "plain" and kind is not SLDAClassifier:
        pytest.skip("a classifier's")
    y, more = corpus.label, {}
    if form in ("separate", "stick_breaking"):
        y, more = np.digitize(corpus.omega, [-0.7, 0.7]), {"multiclass": form}
    elif form == "labels":
        y = np.column_stack([corpus.label, 1 - corpus.label, corpus.rating > 0]).astype(int)
    elif kind is SLDACountRegressor:
        y = np.random.default_rng(0).poisson(np.exp(corpus.omega / 3))
    elif kind is SLDAOrdinalClassifier:
        y = np.digitize(corpus.omega, [-1.0, 0.3, 2.0])
    model = kind(3, **more, **RUN).fit(corpus.X, y, groups=corpus.groups)
    frame = model.group_frame()
    assert len(frame) == 9 * len(model.posterior_.response.column_names) and np.isfinite(frame["mean"]).all()
    assert (np.corrcoef(frame["mean"][-9:], corpus.mood)[0, 1] > 0.6) or form == "labels" or form == "stick_breaking"
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.predict(corpus.X[:9], groups=corpus.groups[:9]), model.predict(corpus.X[:9], groups=corpus.groups[:9])
    )
    np.testing.assert_array_equal(again.group_frame()["mean"], frame["mean"])
    again.partial_fit(corpus.X[:60], y[:60], groups=corpus.groups[:60])
    assert len(again.group_frame()) == len(frame)


def test_with_covariates_batches_threads_and_checkpoints(corpus, tmp_path):
    z = np.random.default_rng(3).normal(size=(360, 1))
    y = corpus.rating + 0.8 * z[:, 0]
    more = {"covariates": z, "groups": corpus.groups}
    one = SLDARegressor(3, n_jobs=1, sampler="delayed", **RUN).fit(corpus.X, y, **more)
    two = SLDARegressor(3, n_jobs=2, sampler="delayed", **RUN).fit(corpus.X, y, **more)
    np.testing.assert_array_equal(one.group_frame()["mean"], two.group_frame()["mean"])
    np.testing.assert_array_equal(one.predict(corpus.X, **more), two.predict(corpus.X, **more))
    assert one.covariate_coef_[0, 0] == pytest.approx(0.8, abs=0.15) and one.covariate_names_.tolist() == ["0"]
    short = SLDARegressor(3, n_jobs=1, sampler="delayed", **RUN | {"n_draws": 4})
    short.fit(corpus.X, y, **more, checkpoint=tmp_path / "c", checkpoint_every=0)
    long = SLDARegressor(3, n_jobs=1, sampler="delayed", **RUN)
    long.fit(corpus.X, y, **more, checkpoint=tmp_path / "c", checkpoint_every=0)
    np.testing.assert_array_equal(long.group_frame()["mean"], one.group_frame()["mean"])
    batches = SLDARegressor(3, **RUN)
    sds = []
    for docs in (slice(0, 180), slice(180, 360)):
        batches.partial_fit(corpus.X[docs], y[docs], covariates=z[docs], groups=corpus.groups[docs])
        sds.append(batches.group_frame()["sd"].mean())
    assert sds[1] < 0.85 * sds[0]


def test_groups_are_held_out_as_a_whole(corpus, monkeypatch):
    given, choose_mask, choose = [], fit.choose_held_out, fit.choose_folds
    monkeypatch.setattr(fit, "choose_held_out", lambda *rest: given.append(choose_mask(*rest)) or given[-1])
    monkeypatch.setattr(fit, "choose_folds", lambda *rest: given.append(choose(*rest)) or given[-1])
    model = SLDAClassifier(3, held_out_by="group", **RUN | {"n_chains": 4})
    model.fit(corpus.X, corpus.label, groups=corpus.groups)
    mask, fold = given
    assert mask.any() and not mask.all()
    for name in set(corpus.groups):
        own = corpus.groups == name
        assert len(set(mask[own])) == 1
        assert mask[own].all() or len(set(fold[own])) == 1
    assert set(fold[~mask]) == {0, 1, 2, 3}
    target = Target(np.zeros((40, 1)), np.ones((40, 1)), np.zeros((40, 1)), np.zeros((40, 0)))
    group = np.repeat([0, 1, 2, 3], 10)
    mask = choose_held_out(Logistic(1.0, classes=np.arange(2)), target, 0.2, [0], group)
    assert mask.sum() == 10  # one of four, though a fifth was asked for
    fold = choose_folds(Logistic(1.0, classes=np.arange(2)), target, mask, 2, [0], group)
    assert all(len(set(fold[group == g])) == 1 for g in range(4) if not mask[group == g].any())


def test_groups_are_dealt_by_their_known_documents():
    rng, group = np.random.default_rng(0), np.repeat(np.arange(5), [6, 5, 4, 3, 2])
    part = deal_groups(np.ones(20, bool), group, np.array([10, 10]), rng)
    assert np.bincount(part).tolist() == [11, 9]  # 6 + 3 + 2 and 5 + 4: each group goes where most room is left
    group, known = np.repeat(np.arange(3), [10, 5, 5]), np.arange(20) >= 9
    part = deal_groups(known, group, np.array([5.5, 5.5]), rng)
    assert (part[~known] == -1).all() and sorted(np.bincount(part[known])) == [5, 6]


def test_what_cannot_be_right(corpus):
    model = SLDARegressor(3, **RUN)
    for groups, message in (
        (corpus.groups[:5], "groups has 5"), ([None] * 360, "360 missing"), (["a"] * 360, "1 different values"),
        (np.column_stack([corpus.groups] * 2), "one column"), (np.arange(360.0) * np.nan, "missing"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.fit(corpus.X, corpus.rating, groups=groups)
    with pytest.raises(ValueError, match="2,500 different"):
        data = make_corpus(n_docs=2500, n_topics=2, doc_length=3, random_state=0)
        SLDARegressor(2, **RUN).fit(data.X, data.y, groups=np.arange(2500))
    with pytest.raises(ValueError, match="held_out_by"):
        SLDARegressor(3, held_out_by="author").fit(corpus.X, corpus.rating)
    plain = SLDARegressor(3, **RUN).fit(corpus.X, corpus.rating)
    with pytest.raises(ValueError, match="without groups"):
        plain.predict(corpus.X, groups=corpus.groups)
    with pytest.raises(AttributeError, match="without groups"):
        plain.group_sd_  # noqa: B018
    assert len(plain.group_frame()) == 0 and len(plain.group_names_) == 0
    model.fit(corpus.X, corpus.rating, groups=corpus.groups)
    with pytest.raises(ValueError, match="not possible with groups"):
        from supertopic import Prior

        SLDARegressor(3, prior=Prior(model, weights=True), **RUN).fit(corpus.X, corpus.rating, groups=corpus.groups)
    with pytest.raises(TypeError):
        LDA(3).fit(corpus.X, groups=corpus.groups)


def test_the_spread_between_groups_is_in_the_units_of_y(corpus):
    small, large = (
        SLDARegressor(3, words=False, **RUN | {"burn_in": 5}).fit(corpus.X, unit * corpus.rating, groups=corpus.groups)
        for unit in (1.0, 1024.0)
    )
    np.testing.assert_allclose(large.group_sd_, 1024.0 * small.group_sd_)


def test_placebo_fits_have_the_groups(corpus):
    model = SLDARegressor(3, words=False, **RUN).fit(corpus.X, corpus.rating, groups=corpus.groups)
    frame = model.placebo(corpus.X, corpus.rating, groups=corpus.groups)
    plain = SLDARegressor(3, words=False, **RUN).fit(corpus.X, corpus.rating)
    assert frame.base_loss[1] < 0.9 * plain.held_out_["base_loss"]  # groups explain a part of shuffled ratings
    with pytest.raises(ValueError, match="pass groups="):
        model.placebo(corpus.X, corpus.rating)
    assert "9 groups" in model.methods_text()


def test_files_and_the_command(corpus, tmp_path, monkeypatch, capsys):
    words = [" ".join(f"w{j}" for j, n in enumerate(row) for _ in range(n)) for row in corpus.X.toarray()]
    table = pd.DataFrame({"text": words, "rating": corpus.rating, "author": corpus.groups})
    table.to_csv(tmp_path / "r.csv", index=False)
    model = SLDARegressor(3, words=False, **RUN)
    model.fit_files(tmp_path / "r.csv", text="text", label="rating", groups="author")
    assert model.group_names_.tolist() == sorted(set(corpus.groups))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["supertopic", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        return capsys.readouterr().out

    text, groups = ["--text", "text"], ["--groups", "author"]
    few = ["-k", "3", "--chains", "2", "--burn-in", "20", "--draws", "5"]
    run("fit", "r.csv", *text, *groups, "--label", "rating", "--held-out-by", "group", *few, "-o", "m")
    assert run("predict", "m", "r.csv", *text, *groups) != run("predict", "m", "r.csv", *text)
    assert "group author 3" in run("explain", "m", "--text", "w1 w2", "--group", "author 3")
    run("update", "m", "r.csv", *text, *groups, "--label", "rating", "-o", "n")


def asked(n_docs, n_groups, n_chains=2, n_draws=3, n_pairs=6):
    """Documents of groups, of which the last ones are of none that is known."""
    rng = np.random.default_rng(8)
    known = np.eye(n_groups)[rng.integers(0, n_groups, n_docs)]
    known[-2:] = 0.0
    return SimpleNamespace(covariates=np.hstack([rng.normal(size=(n_docs, 1)), known]),
                           pairs=DrawPairs(n_chains, n_draws, n_pairs))  # fmt: skip


def test_a_factor_of_the_term_is_one_of_omega():
    """Known groups and new ones alike."""
    rng, documents = np.random.default_rng(0), asked(7, 3)
    term = GroupWeights(np.arange(3), rng.normal(size=(2, 3, 2, 3)), rng.gamma(2.0, size=(2, 3, 2)))
    factor = rng.gamma(2.0, size=(2, 3, 2))
    wanted = documents.pairs.over(factor)[:, None] * term.omega(documents)
    np.testing.assert_allclose(term.scaled(factor).omega(documents), wanted)


def test_two_columns_that_share_a_weight_are_half_of_it_each():
    """Of known groups, and the spread of new ones."""
    rng, documents = np.random.default_rng(0), asked(7, 3)
    term = GroupWeights(np.arange(3), rng.normal(size=(2, 3, 1, 3)), rng.gamma(2.0, size=(2, 3, 1)))
    columns = NewColumns(np.array([0, 0, -1]), np.array([-1.0, 1.0, 1.0]), 0.5, typical=True, exclusive=True)
    before, after = term.omega(documents), term.with_columns(columns).omega(documents)
    np.testing.assert_allclose(after[:, :5, :2], 0.5 * before[:, :5] * [-1.0, 1.0])
    np.testing.assert_allclose(term.with_columns(columns).variance[..., :2], 0.25 * np.repeat(term.variance, 2, axis=2))
    np.testing.assert_array_equal(after[:, -1], after[:, -2])


def test_variances_for_draws_have_their_distribution():
    """Every draw of intercepts has one of its own, from a chain whose steps have numbers of their own."""
    b = np.array([[0.05]])  # the prior decides
    found = np.log(variances_of(np.tile(b, (400, 1, 1)), make_key(9))[:, 0])
    variance, draws = np.ones(1), []
    for i in range(12_000):
        variance = draw_variance(b, variance, make_key(10, i))
        draws.append(np.log(variance[0]))
    assert ks_2samp(found, draws[::12]).pvalue > 1e-6
    assert len(set(found.tolist())) == 400


def test_each_batch_draws_the_variance_between_groups_anew(monkeypatch):
    keys = []
    monkeypatch.setattr(weights, "variances_of", lambda intercepts, key: keys.append(int(key)) or intercepts)
    columns = SimpleNamespace(names=(), groups=("a", "b"))
    for seed in ([7], [7, 1], [7, 2], [7, 3], [8]):
        weights.with_covariates(SimpleNamespace(seed=seed, covariates=columns), np.zeros((1, 2, 1, 2)))
    assert len(set(keys)) == 5


def test_each_draw_of_weights_has_the_variance_of_the_one_before(monkeypatch):
    """That of groups alone, which is drawn from the intercepts of this draw, with a key of its own."""
    priors, given = [], []

    def draw_eta(engine, statistics, known, nu2, key):
        priors.append(nu2.copy())
        return np.arange(10.0).reshape(2, 5) + len(priors)

    monkeypatch.setattr(gibbs, "draw_weights", draw_eta)
    monkeypatch.setattr(calibration, "draw_variance", lambda *own: given.append(own) or own[1] + 1.0)
    nothing = SimpleNamespace(restart=lambda *_: None, regress=lambda *_: None, augment=lambda *_: None)
    engine = SimpleNamespace(plan=SimpleNamespace(n_groups=2), statistics=lambda: None, **vars(nothing))
    response = SimpleNamespace(burn_in=1, needs_newton=False, draw_scale=lambda *_: response)
    draws = list(calibration.draw_weights(engine, response, 100.0, no_statistics(5, 2), 2, make_key(1)))
    for i, (nu2, (intercepts, variance, _)) in enumerate(zip(priors, given, strict=True)):
        np.testing.assert_array_equal(nu2, [[100, 100, 100, 1 + i, 1 + i]] * 2)
        np.testing.assert_array_equal(intercepts, np.array([[3.0, 4.0], [8.0, 9.0]]) + 1 + i)
        assert variance.tolist() == [1 + i] * 2
    assert [draw.nu2[0, -1] for draw in draws] == [3, 4] and len({int(key) for *_, key in given}) == len(given) == 3


@pytest.mark.parametrize(("size", "bound"), [(0.0, 1e-8), (1e6, 1e8)])
def test_the_variance_of_intercepts_that_are_all_0_or_huge_has_a_bound(size, bound):
    assert draw_variance(np.full((1, 9), size), np.array([bound]), make_key(1)).tolist() == [bound]
