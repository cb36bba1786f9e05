"""Reported weights: every response is held out from one chain, and all documents enter one regression."""

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from small import near_limits, stops_early
from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor, load, save
from supertopic.corpus.source import Arrays, Target, make_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import fit, reported
from supertopic.inference.chains import Split
from supertopic.inference.held_out import LEAST_FOLDS, MOST, choose_folds
from supertopic.inference.predict import Settings, topic_shares
from supertopic.inference.reported import NU2_REPORTED, FoldDocuments, between_chains, full, marginal, packed
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Gaussian, Logistic
from supertopic.model.state import Priors, Statistics, no_statistics
from supertopic.sampling.plan import Plan
from supertopic.sampling.threads import LocalShards

RUN = {"burn_in": 20, "n_draws": 10, "n_chains": 4, "random_state": 0}
PLAIN = Logistic(1.0, classes=np.arange(2))


def classes(n, rate=0.5, seed=0):
    y = (np.random.default_rng(seed).random((n, 1)) < rate).astype(float)
    return make_target(y, np.ones((n, 1)))


@pytest.mark.parametrize("n_chains", [1, 2, 4, 7])
def test_folds(n_chains):
    target = classes(600, 0.1)
    target.weight[::10] = 0.0  # unknown
    held_out = np.zeros(600, bool)
    held_out[1::20] = True
    fold = choose_folds(PLAIN, target, held_out, n_chains, [3])
    known = target.weight[:, 0] > 0
    assert (fold[~known] == -1).all() and set(fold) == {-1, *range(n_chains)}
    assert (fold[held_out & known] >= 0).all()  # no chain sees these
    sizes = np.bincount(fold[(fold >= 0) & ~held_out])
    n_seen = np.sum(known & ~held_out)
    assert sizes.max() - sizes.min() <= 1 and abs(sizes[0] - n_seen / max(n_chains, LEAST_FOLDS)) <= 1
    if n_chains >= LEAST_FOLDS:
        assert (fold[known] >= 0).all()
    positives = [target.y[(fold == chain) & ~held_out].sum() for chain in range(n_chains)]
    assert max(positives) - min(positives) <= 2  # every fold has all kinds of documents
    np.testing.assert_array_equal(fold, choose_folds(PLAIN, target, held_out, n_chains, [3]))
    assert (fold != choose_folds(PLAIN, target, held_out, n_chains, [4])).any()
    assert (choose_folds(PLAIN, target, np.zeros(600, bool), n_chains, [3]) == -1).all()


def test_folds_of_many_documents_are_limited():
    n = 5 * MOST
    held_out = np.arange(n) % 100 == 0
    fold = choose_folds(PLAIN, classes(n), held_out, 2, [0])
    assert (np.bincount(fold[(fold >= 0) & ~held_out]) <= MOST).all()


@pytest.mark.parametrize("multiclass", ["shared", "separate"])
def test_a_chain_does_not_see_the_responses_of_its_fold(monkeypatch, multiclass, short_regressions):
    """Where only responses of the first fold change, the first chain draws the same topics, and no other does."""
    corpus = make_corpus(n_docs=160, n_topics=3, random_state=0)
    y = np.random.default_rng(0).integers(0, 3, 160)
    held_out = np.arange(160) % 16 == 0
    monkeypatch.setattr(fit, "choose_held_out", lambda *_: held_out)
    monkeypatch.setattr(fit, "choose_folds", lambda *_: np.arange(160) % 4)
    own = np.flatnonzero((np.arange(160) % 4 == 0) & ~held_out)
    other = y.copy()
    other[own] = np.roll(y[own], 1)  # as many of each class
    models = [
        SLDAClassifier(3, multiclass=multiclass, words=False, **RUN | {"init": "nmf"}).fit(corpus.X, labels)
        for labels in (y, other)
    ]
    a, b = (model.posterior_.topics[0] for model in models)
    np.testing.assert_array_equal(a.word_topic[0], b.word_topic[0])
    np.testing.assert_array_equal(a.training[0], b.training[0])
    for chain in (1, 2, 3):
        assert (a.word_topic[chain] != b.word_topic[chain]).any()
    assert (models[0].prediction_draws_[0] != models[1].prediction_draws_[0]).any()  # these use all responses
    assert models[0].held_out_["cross_fitted"] == 160 and models[0].held_out_["documents"] == 10


def make_folds(n_docs, n_topics, n_chains, seed, eta, deviation=0.0, missing=()):
    """Documents with known shares and a Gaussian response, whose weights differ between chains by a deviation."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_topics, 0.5), n_docs)
    starts = np.linspace(0, n_docs, n_chains + 1).astype(int)
    own = eta + deviation * rng.normal(size=(n_chains, n_topics))
    for chain, topic in missing:
        own[chain, topic] = 50.0  # it is another topic there
    omega = np.concatenate([shares[a:b] @ own[c] for c, (a, b) in enumerate(itertools.pairwise(starts))])
    z = rng.normal(size=(n_docs, 1))
    y = omega + 0.7 * z[:, 0] + rng.normal(size=n_docs)
    target = Target(y[:, None], np.ones((n_docs, 1)), np.zeros((n_docs, 1)), z)
    return FoldDocuments(shares, target, starts)


def regress(documents, has, known=None, n_draws=500):
    n_topics = has.shape[1]
    response = Gaussian(1.0, np.ones(1))
    plan = Plan((), (), 9, 1, 1, response, Priors(np.ones(n_topics), 0.1, 1.0), False, "delayed", 0, 10)
    known = no_statistics(n_topics + 1, 1) if known is None else known
    return reported.regress_folds(documents, has, known, plan, n_draws, 1, np.uint64(5))


def test_the_regression_is_that_of_its_definition(monkeypatch):
    """Ridge regression with the prior variance of reported weights; one chain, so that nothing is between chains."""
    documents = make_folds(300, 3, 1, 0, np.array([1.0, -2.0, 0.5]))
    found = regress(documents, np.ones((1, 3), bool), n_draws=3000)
    x, y = np.hstack([documents.shares, documents.target.covariates]), documents.target.y[:, 0]
    sigma2 = np.sum((y - x @ np.linalg.lstsq(x, y)[0]) ** 2) / 296
    covariance = np.linalg.inv(x.T @ x / sigma2 + np.eye(4) / NU2_REPORTED)
    mean = covariance @ x.T @ y / sigma2
    sd = np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(found.draws[:, 0].mean(axis=0), mean, atol=0.08 * sd.max())
    np.testing.assert_allclose(np.cov(found.draws[:, 0].T), covariance, atol=0.12 * covariance.max())
    # what later batches start from is the same normal density
    P = full(found.known, 0) + np.eye(4) / NU2_REPORTED
    np.testing.assert_allclose(np.linalg.inv(P), covariance, rtol=0.05, atol=1e-4)
    np.testing.assert_allclose(np.linalg.solve(P, found.known.shift[:, 0]), mean, atol=0.08 * sd.max())


def test_a_topic_that_a_chain_does_not_have_is_left_out_there():
    eta = np.array([1.0, -2.0, 0.5])
    documents = make_folds(2000, 3, 4, 1, eta, missing=[(2, 0)])
    has = np.ones((4, 3), bool)
    mixed = regress(documents, has, n_draws=125).draws[:, 0, :3]
    has[2, 0] = False
    found = regress(documents, has, n_draws=125).draws[:, 0, :3]
    assert abs(mixed.mean(axis=0)[0] - 1.0) > 3.0
    assert (np.abs(found.mean(axis=0) - eta) < 4 * found.std(axis=0)).all() and (found.std(axis=0) < 0.25).all()


def test_a_chain_that_knows_almost_nothing_of_a_column_is_left_out():
    """As of a class that none of its documents has: variances there are rounding, and their inverses overflow."""
    rng, pack = np.random.default_rng(0), np.tril_indices(2)
    parts = [
        Statistics((size * np.array([[2.0, 0.5], [0.5, 3.0]]))[pack][:, None], size * rng.normal(size=(2, 1)))
        for size in (100.0, 80.0, 1e-313)
    ]
    parts[2].shift[:] = 1.0
    found = reported.between_chains(parts, np.zeros((1, 2)), np.ones((3, 2), bool))
    np.testing.assert_allclose(found, reported.between_chains(parts[:2], np.zeros((1, 2)), np.ones((2, 2), bool)))
    assert np.isfinite(found).all()


def test_differences_between_chains_widen_intervals():
    """90 % intervals hold the mean weight where weights of the chains differ, and where they do not."""
    eta, has = np.array([1.0, -1.0, 0.0, 2.0, -2.0, 0.5]), np.ones((4, 6), bool)
    for deviation, most in ((0.0, 0.6), (1.0, 2.5)):
        inside, widths = [], []
        for seed in range(25):
            documents = make_folds(800, 6, 4, seed, eta, deviation)
            draws = regress(documents, has, n_draws=25).draws[:, 0, :6]
            lower, upper = np.quantile(draws, [0.05, 0.95], axis=0)
            inside += ((lower <= eta) & (eta <= upper)).tolist()
            widths.append(np.mean(upper - lower))
            if stops_early(len(widths), 25, lambda own=inside: near_limits(np.mean(own), 0.9, 0.8, 0.97)):
                break
        assert 0.8 < np.mean(inside) < 0.97, deviation
        assert np.mean(widths) < most


def test_the_variance_between_chains_is_estimated():
    has, found = np.ones((4, 30), bool), []
    for deviation in (0.0, 0.5):
        spreads = []
        for seed in range(20):
            documents = make_folds(4000, 30, 4, seed, np.zeros(30), deviation)
            x = documents.shares
            parts = [(x[docs].T @ x[docs], x[docs].T @ documents.target.y[docs, 0]) for docs in documents.slices]
            parts = [packed([P], s[:, None]) for P, s in parts]  # the noise has variance 1 + 0.49
            parts = [Statistics(part.precision / 1.49, part.shift / 1.49) for part in parts]
            total = sum(full(part, 0) for part in parts) + np.eye(30) / NU2_REPORTED
            mean = np.linalg.solve(total, sum(part.shift[:, 0] for part in parts))
            spreads.append(between_chains(parts, mean[None], has)[0].mean())
        found.append(np.mean(spreads))
    assert found[0] < 0.01
    assert found[1] == pytest.approx(0.5**2 / 4, rel=0.25)  # the variance of a mean of four
    assert (between_chains(parts[:1], mean[None], has[:1]) == 0).all()


def test_columns_of_single_chains_are_integrated_out():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 5))
    P, s = root.T @ root, rng.normal(size=5)
    keep = np.array([0, 1, 4])
    found = marginal(packed([P], s[:, None]), keep)
    whole = np.linalg.inv(P + np.eye(5) / NU2_REPORTED)
    np.testing.assert_allclose(np.linalg.inv(full(found, 0) + np.eye(3) / NU2_REPORTED), whole[np.ix_(keep, keep)])
    mean = np.linalg.solve(full(found, 0) + np.eye(3) / NU2_REPORTED, found.shift[:, 0])
    np.testing.assert_allclose(mean, (whole @ s)[keep])
    again = reported.reorder(reported.reorder(found, np.array([1, 0])), np.array([1, 0]))
    np.testing.assert_allclose(again.precision, found.precision)
    wide = reported.spread_out(found, keep, 5)
    np.testing.assert_allclose(full(wide, 0)[np.ix_(keep, keep)], full(found, 0))
    assert not full(wide, 0)[[2, 3]].any() and not wide.shift[[2, 3]].any()


@pytest.mark.parametrize("kind", [SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor])
def test_weights_rest_on_all_documents(kind):
    """Four times as many documents halve the intervals, though the part that no chain sees has the same size."""
    corpus = make_corpus(n_docs=600, n_topics=3, eta=[-2.0, 0.0, 2.0], random_state=0)
    y = np.random.default_rng(1).poisson(np.exp(corpus.doc_topic[:, 2])) if kind is SLDACountRegressor else corpus.y
    widths = []
    for n in (150, 600):
        model = kind(3, words=False, held_out=20 / n, **RUN).fit(corpus.X[:n], y[:n])
        assert model.held_out_["cross_fitted"] == n and model.held_out_["documents"] == 20
        widths.append(np.mean(np.subtract(*model.coef_interval()[::-1])))
    assert widths[1] < 0.65 * widths[0]


def test_covariates_are_as_sure_as_least_squares():
    rng, corpus = np.random.default_rng(0), make_corpus(n_docs=1000, n_topics=4, doc_length=100, random_state=0)
    Z = rng.normal(size=(1000, 2))
    y = corpus.doc_topic @ [1.0, -1.0, 0.0, 2.0] + Z @ [0.3, 0.0] + rng.normal(size=1000)
    model = SLDARegressor(4, words=False, **RUN | {"burn_in": 60}).fit(corpus.X, y, covariates=Z)
    x = np.hstack([model.transform(corpus.X), Z])
    residual = y - x @ np.linalg.lstsq(x, y)[0]
    se = np.sqrt(residual @ residual / (1000 - 6) * np.linalg.inv(x.T @ x).diagonal()[4:])
    sd = model.covariate_coef_draws_.std(axis=0)[0]
    assert (sd < 1.3 * se).all() and (sd > 0.8 * se).all()
    assert (np.abs(model.covariate_coef_[0] - [0.3, 0.0]) < 4 * se).all()


def test_batches_add_up():
    """A second batch of as many documents makes intervals narrower by the square root of two."""
    corpus = make_corpus(n_docs=1200, n_topics=3, eta=[-2.0, 0.0, 2.0], random_state=0)
    z = np.random.default_rng(2).normal(size=(1200, 1))
    model = SLDARegressor(3, words=False, **RUN)
    y, sds = corpus.doc_topic @ [-2.0, 0.0, 2.0] + z[:, 0] + np.random.default_rng(1).normal(size=1200), []
    for docs in (slice(0, 600), slice(600, 1200)):
        model.partial_fit(corpus.X[docs], y[docs], covariates=z[docs])
        sds.append([model.coef_draws_.std(axis=0).mean(), model.covariate_coef_draws_.std()])
    np.testing.assert_allclose(np.divide(*sds), np.sqrt(2.0), rtol=0.2)
    known = model.posterior_.carryover.weights[0]
    assert len({tuple(np.sort(part.reported.shift[:3, 0]).round(9)) for part in known}) == 1  # the same for all chains


@pytest.mark.parametrize("run", [{"n_chains": 3, "n_draws": 7}, {"n_chains": 1, "n_draws": 120}, {"held_out": 0}])
def test_shapes_files_and_datasets(run, tmp_path):
    corpus = make_corpus(n_docs=120, n_topics=3, random_state=0)
    z = np.random.default_rng(0).normal(size=(120, 2))
    model = SLDAClassifier(3, **RUN | run).fit(corpus.X, corpus.y, covariates=z)
    n = len(model.coef_draws_)
    assert n % model.n_chains == 0 and model.covariate_coef_draws_.shape == (n, 1, 2)
    assert model.to_xarray()["coef"].shape == (model.n_chains, model.n_draws, 1, 3)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.coef_draws_, model.coef_draws_)
    np.testing.assert_array_equal(again.covariate_coef_draws_, model.covariate_coef_draws_)


@pytest.fixture(scope="module")
def unordered():
    """A corpus, and a run whose chains have their topics in different orders."""
    return make_corpus(n_docs=400, n_topics=4, eta=[-4.0, -1.0, 1.0, 4.0], random_state=0), RUN | {
        "n_topics": 4, "init": "random", "burn_in": 60, "words": False, "random_state": 2,
    }  # fmt: skip


def test_shares_are_in_the_common_order(unordered, monkeypatch):
    corpus, run = unordered
    given, real = [], reported.regress_folds
    monkeypatch.setattr(reported, "regress_folds", lambda first, *rest: given.append(first) or real(first, *rest))
    masks, choose = [], fit.choose_held_out
    monkeypatch.setattr(fit, "choose_held_out", lambda *rest: masks.append(choose(*rest)) or masks[-1])
    folds, choose_fold = [], fit.choose_folds
    monkeypatch.setattr(fit, "choose_folds", lambda *rest: folds.append(choose_fold(*rest)) or folds[-1])
    model = SLDAClassifier(**run).fit(corpus.X, corpus.y)
    posterior, (documents,), (mask,), (fold,) = model.posterior_, given, masks, folds
    assert (posterior.order != np.arange(4)).any() and len(documents.shares) == 400
    for chain, docs in enumerate(documents.slices):
        own = np.flatnonzero((fold == chain) & mask)
        inferred = topic_shares(
            posterior, make_tokens(check_counts(corpus.X[own])), chain, Settings(model.predict_sweeps)
        )
        np.testing.assert_allclose(documents.shares[docs][-len(own) :], inferred)
        seen = np.flatnonzero((fold == chain) & ~mask)
        np.testing.assert_array_equal(documents.target.y[docs, 0], corpus.y[np.r_[seen, own]])
        alike = np.corrcoef(documents.shares[docs][: len(seen)].T, model.transform(corpus.X[seen]).T)[:4, 4:]
        assert (alike.argmax(axis=1) == np.arange(4)).all()


def test_later_batches_go_on_from_the_same_topics(unordered):
    corpus, run = unordered
    model = SLDAClassifier(**run).fit(corpus.X, corpus.y)
    assert (np.argsort(model.posterior_.order, axis=1) != model.posterior_.order).any()  # an order is not its inverse
    before, sd = model.coef_, model.coef_draws_.std(axis=0)
    known = [part.reported for part in model.posterior_.carryover.weights[0]]  # of each chain, in its own order
    known = [reported.reorder(part, order) for part, order in zip(known, model.posterior_.order, strict=True)]
    for part in known[1:]:
        np.testing.assert_array_equal(part.precision, known[0].precision)
        np.testing.assert_array_equal(part.shift, known[0].shift)
    model.partial_fit(corpus.X[:30])  # without responses
    assert (np.abs(model.coef_ - before) < sd).all()
    assert np.abs(before).max() > 3 * sd.max()


def test_prediction_weights_use_all_responses(monkeypatch):
    corpus, given = make_corpus(n_docs=100, n_topics=3, random_state=0), []
    real = LocalShards.reweigh
    monkeypatch.setattr(LocalShards, "reweigh", lambda self, weight: given.append(weight) or real(self, weight))
    y = np.where(np.arange(100) < 10, np.nan, corpus.y)
    model = SLDAClassifier(3, **RUN).fit(corpus.X, y)
    assert len(given) == 4 and all(weight.sum() == 90 - model.held_out_["documents"] for weight in given)


def test_the_target_of_all_documents_is_in_their_order():
    rng = np.random.default_rng(0)
    target = make_target(rng.normal(size=(9, 2)), rng.random((9, 2)), rng.normal(size=(9, 1)), rng.normal(size=(9, 1)))
    corpus = Arrays(make_tokens(check_counts(rng.poisson(1.0, (9, 4)))), target)
    mask = np.array([0, 1, 0, 0, 1, 1, 0, 0, 1], bool)
    split = Split(corpus.select(~mask), corpus.select(mask), None, mask, np.arange(9) % 3 - 1)
    for found, wanted in zip(split.target(), target, strict=True):
        np.testing.assert_array_equal(found, wanted)
    rows = split.fold_rows(1)
    seen, held_out = split.fold_docs(1)
    parts = np.concatenate([split.seen.target.y[seen], split.held_out.target.y[held_out]])
    np.testing.assert_array_equal(target.y[rows], parts)


def test_sets_of_topics_have_noise_of_their_own(monkeypatch, short_regressions):
    keys, real = [], reported.regress_folds
    monkeypatch.setattr(reported, "regress_folds", lambda *more: keys.append(int(more[-1])) or real(*more))
    rng = np.random.default_rng(0)
    run = {"n_chains": 2, "burn_in": 2, "n_draws": 2, "predict_sweeps": 4, "words": False, "random_state": 0}
    kind = np.array(list("abc"))[np.arange(60) % 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SLDAClassifier(2, multiclass="separate", held_out=0.2, **run).fit(rng.poisson(0.5, (60, 9)), kind)
    assert len(set(keys)) == len(keys) == 3


def test_a_constant_of_groups_goes_to_the_topics():
    """omega of every document of a known group stays, and groups have a mean of 0 over the documents."""
    rng, n = np.random.default_rng(0), 20
    group, x = np.eye(3)[rng.choice(3, n, p=[0.6, 0.3, 0.1])], rng.dirichlet(np.ones(2), n)
    target = make_target(np.zeros((n, 2)), np.ones((n, 2)), None, np.hstack([rng.normal(size=(n, 1)), group]))
    made = SimpleNamespace(
        covariates=SimpleNamespace(names=["year"]), split=SimpleNamespace(seen=SimpleNamespace(target=target))
    )
    topics, beside = rng.normal(size=(5, 2, 2)), rng.normal(size=(5, 2, 4))
    found = reported.split_draws(made, np.ones((2, 2), bool), topics, beside)
    np.testing.assert_array_equal(found["reported_covariates"], beside[..., :1])
    omega = topics @ x.T + beside[..., 1:] @ group.T
    np.testing.assert_allclose(found["reported"] @ x.T + found["reported_groups"] @ group.T, omega)
    np.testing.assert_allclose((found["reported_groups"] @ group.T).sum(axis=2), 0.0, atol=1e-12)


def test_weights_that_are_known_already_have_a_key_for_each_set_and_draw(monkeypatch):
    """Where no response of this batch was held out."""
    keys = []
    monkeypatch.setattr(reported, "LEAST_DRAWS", 4)
    monkeypatch.setattr(reported, "gather_folds", lambda *_: SimpleNamespace(shares=[]))
    monkeypatch.setattr(reported, "draw_eta", lambda known, nu2, key: keys.append(int(key)) or np.zeros((1, 2)))
    known = Statistics(np.ones((3, 1)), np.zeros((2, 1)))
    runs = [SimpleNamespace(weights=SimpleNamespace(known=SimpleNamespace(reported=known)))]
    posterior = SimpleNamespace(
        columns=[slice(0, 1), slice(1, 2)], places=[slice(0, 2), slice(2, 4)], order=np.arange(4)[None], best_chain=0,
        consensus=SimpleNamespace(has=np.ones((1, 4), bool)),
    )  # fmt: skip
    config = SimpleNamespace(n_draws=3, n_chains=2, n_topics=2)
    made = SimpleNamespace(runs=[runs, runs], split=SimpleNamespace(column=lambda _: None), config=config)
    found = reported.report_weights(posterior, made, [SimpleNamespace(seed=5)] * 2)
    assert len(set(keys)) == len(keys) == 2 * 2 * 4 and [len(part.draws) for part in found] == [8, 8]


def test_random_vectors_of_chains_differ(monkeypatch):
    keys, real = [], reported.normals
    monkeypatch.setattr(reported, "normals", lambda shape, key: keys.append(int(key)) or real(shape, key))

    def add_products(v, columns, total):
        total += v

    parts = [Statistics(np.ones((2, 1)), np.ones((2, 1)))] * 3
    draws = np.random.default_rng(0).normal(size=(6, 1, 2))
    shards = [SimpleNamespace(add_products=add_products)] * 3
    assert reported.between_many(shards, parts, draws, np.ones((3, 2), bool), make_key(1)).shape == (1, 2)
    assert len(set(keys)) == len(keys) == 3 * reported.N_PROBES
