"""What estimators, files and reports say, against slow versions of their definitions."""

import itertools
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.special import expit, gammaln

import supertopic
from small import ALARM
from supertopic import LDA, MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.baselines import paper_system
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import fit as fit_room
from supertopic.inference.calibration import chain_topics
from supertopic.inference.checkpoint import identify
from supertopic.inference.predict import Settings, topic_shares
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Gaussian, Hinge, Logistic, NegativeBinomial
from supertopic.model.responses.averages import draw_interval as interval
from supertopic.model.state import Priors, Statistics, WeightPriors
from supertopic.report.diagnostics import rhat
from supertopic.sampling import gibbs
from supertopic.sampling.chain import Chain
from supertopic.sampling.plan import make_plan
from supertopic.sampling.threads import ThreadEngine
from supertopic.storage.container import read_file, write_file

RUN = {"burn_in": 30, "n_draws": 10, "n_chains": 1, "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    found = make_corpus(n_docs=300, n_words=60, n_topics=3, random_state=0)
    found.group = found.doc_topic.argmax(axis=1)
    return found


def same(found, expected, name):
    """Both are of the same type and have the same contents, down to the last array."""
    if is_dataclass(expected):
        found, expected = ({"type": type(value).__name__} | vars(value) for value in (found, expected))
    elif hasattr(expected, "_asdict"):
        found, expected = found._asdict(), expected._asdict()
    if isinstance(expected, dict):
        some = expected.keys() - NOT_COMPARED
        assert found.keys() - NOT_COMPARED == some, name
        for key in some:
            same(found[key], expected[key], f"{name}.{key}")
    elif isinstance(expected, tuple | list):
        assert type(found) is type(expected) and len(found) == len(expected), name
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            same(a, b, f"{name}.{i}")
    else:
        np.testing.assert_equal(found, expected, err_msg=name)


# made on demand; where chains start with sigma2 and r, of which a posterior has draws
NOT_COMPARED = {"cross_fitted", "shares", "sigma2", "r"}


def draws_of(model, X, **beside):
    """omega (n_draws, n_docs, R) and the response's own parameter (n_draws, R), as predictions see them."""
    documents = model._new(X, **beside)
    omega, scale = documents.summarise(
        lambda omegas, scales, _: (np.moveaxis(omegas, 0, -1), np.repeat(scales[None], omegas.shape[1], axis=0))
    )
    return documents.posterior.response.offset_in_units(np.moveaxis(omega, -1, 0)), scale[0]


# --- predictions are what follows from the draws


def test_probabilities(corpus):
    X = corpus.X[:25]
    two = SLDAClassifier(3, **RUN | {"n_chains": 2}).fit(corpus.X, corpus.y)
    omega, _ = draws_of(two, X)
    assert omega.shape == (40, 25, 1)
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], expit(omega[:, :, 0]).mean(axis=0))
    assert np.abs(expit(omega.mean(axis=0))[:, 0] - two.predict_proba(X)[:, 1]).max() > 1e-3  # which is another number
    three = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.group)
    omega, _ = draws_of(three, X)
    odds = np.exp(omega)
    np.testing.assert_allclose(three.predict_proba(X), (odds / odds.sum(axis=2, keepdims=True)).mean(axis=0))
    sticks = SLDAClassifier(3, multiclass="stick_breaking", **RUN).fit(corpus.X, corpus.group)
    omega, _ = draws_of(sticks, X)
    first, second = expit(omega[..., 0]), expit(omega[..., 1])
    expected = np.array([first, (1 - first) * second, (1 - first) * (1 - second)]).mean(axis=1).T
    np.testing.assert_allclose(sticks.predict_proba(X), expected)
    labels = SLDAClassifier(3, **RUN).fit(corpus.X, (corpus.doc_topic > 0.3).astype(int))
    np.testing.assert_allclose(labels.predict_proba(X), expit(draws_of(labels, X)[0]).mean(axis=0))
    hinge = MedLDAClassifier(3, **RUN).fit(corpus.X, corpus.y)
    np.testing.assert_allclose(hinge.decision_function(X), draws_of(hinge, X)[0].mean(axis=0)[:, 0])


def test_ratings_and_counts(corpus):
    X, y = corpus.X[:25], corpus.doc_topic @ [1.0, 2.0, 5.0]
    weight = np.where(np.arange(300) % 2, 1.0, 3.0)
    rating = SLDARegressor(3, **RUN | {"n_chains": 2}).fit(corpus.X, y, weight)
    np.testing.assert_allclose(rating.intercept_, np.average(y, weights=weight))
    unit = rating.posterior_.response.unit
    np.testing.assert_allclose(unit, np.sqrt(np.average((y - rating.intercept_) ** 2, weights=weight)))
    omega, sigma2 = draws_of(rating, X)
    sigma2 = sigma2 * unit**2
    mean, std = rating.predict(X, return_std=True)
    np.testing.assert_allclose(mean, omega.mean(axis=0)[:, 0])
    np.testing.assert_allclose(std, np.sqrt(omega.var(axis=0)[:, 0] + sigma2.mean()))
    density = stats.norm.pdf(y[:25], omega[..., 0], np.sqrt(sigma2)).mean(axis=0)
    np.testing.assert_allclose(rating.log_predictive(X, y[:25]), np.log(density))
    lower, upper = rating.predict_interval(X, 0.8)
    for end, q in ((lower, 0.1), (upper, 0.9)):
        np.testing.assert_allclose(stats.norm.cdf(end, omega[..., 0], np.sqrt(sigma2)).mean(axis=0), q, atol=1e-6)
    count, exposure = np.random.default_rng(0).poisson(np.exp(y)), np.linspace(1, 2, 300)
    model = SLDACountRegressor(3, **RUN).fit(corpus.X, count, exposure=exposure)
    omega, r = draws_of(model, X, exposure=exposure[:25])
    mean = np.exp(omega[..., 0])
    np.testing.assert_allclose(model.predict(X, exposure=exposure[:25]), mean.mean(axis=0))
    mass = stats.nbinom.pmf(count[:25], r, r / (r + mean)).mean(axis=0)
    np.testing.assert_allclose(model.log_predictive(X, count[:25], exposure=exposure[:25]), np.log(mass))
    lower, upper = model.predict_interval(X, 0.8, exposure=exposure[:25])
    for end, q in ((lower, 0.1), (upper, 0.9)):
        at, below = (stats.nbinom.cdf(end - step, r, r / (r + mean)).mean(axis=0) for step in (0, 1))
        assert (at >= q).all() and (below < q).all()


def test_intervals(corpus):
    """Weibull's quantiles: of 19 draws, the 90 % interval goes from the smallest to the largest."""
    draws = np.random.default_rng(0).permutation(19.0 * np.arange(19))
    assert np.array(interval(draws, 0.9)).tolist() == [0.0, 342.0]
    np.testing.assert_allclose(interval(draws, 0.5), np.array([4.0, 14.0]) * 19)
    Z = np.random.default_rng(1).normal(size=(300, 1))
    y = corpus.y | (Z[:, 0] > 1)
    for kind in (SLDAClassifier, MedLDAClassifier, SLDARegressor):
        model = kind(3, **RUN).fit(corpus.X, y, covariates=Z)
        low, high = (model.predict_interval(corpus.X[:9], 0.9, covariates=np.full((9, 1), z)) for z in (-2.0, 2.0))
        ends = (low[1], high[1]) if low[1].ndim == 1 else (low[1][:, 1], high[1][:, 1])
        assert (ends[0] < ends[1]).all()
    model = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y)
    p = expit(draws_of(model, corpus.X[:9])[0][..., 0])
    np.testing.assert_allclose(model.predict_interval(corpus.X[:9], 0.7)[0][:, 1], interval(p, 0.7)[0])
    frame = model.coefficient_frame(0.7)
    draws = model.coef_draws_[:, 0]
    np.testing.assert_allclose(frame["p_positive"], (draws > 0).mean(axis=0))
    np.testing.assert_allclose(frame["lower"], interval(draws, 0.7)[0])
    np.testing.assert_allclose(frame["sd"], draws.std(axis=0, ddof=1))


def test_a_document_of_two_words_by_enumeration(corpus):
    """Both topics are summed over, with the document's prior alpha / K each: alpha itself counts here."""
    model = SLDAClassifier(3, c=3, alpha=0.6, held_out=0, **RUN).fit(corpus.X, corpus.y)
    model.set_params(predict_sweeps=40_000)
    phi, eta, words = model.topic_word_, model.prediction_draws_[0][:, 0], (3, 17)
    document = np.zeros((1, 60), int)
    document[0, list(words)] = 1
    p, total = 0.0, 0.0
    for z in itertools.product(range(3), repeat=2):
        n = np.bincount(z, minlength=3)
        prior = np.exp(np.sum(gammaln(n + 0.2) - gammaln(0.2)))
        weight = prior * phi[z[0], words[0]] * phi[z[1], words[1]]
        total += weight
        p += weight * expit(model.prediction_intercept_ + eta @ (n / 2)).mean()
    assert model.predict_proba(document)[0, 1] == pytest.approx(p / total, abs=0.01)


# --- what is learned


def test_class_weights(corpus):
    """Balanced gives both sides of every label, and all classes, the same weight in all."""
    labels = np.column_stack([np.arange(300) < 30, np.arange(300) < 200]).astype(int)
    response = SLDAClassifier(class_weight="balanced").make_response()
    target = response.encode(labels, np.ones(300)).target
    for r in range(2):
        yes, no = (target.weight[labels[:, r] == side, r].sum() for side in (1, 0))
        assert yes == pytest.approx(150) and no == pytest.approx(150)
    target = response.encode(np.repeat(["a", "b", "c"], [200, 70, 30]), np.ones(300)).target
    np.testing.assert_allclose(
        [target.weight[part, 0].sum() for part in (slice(200), slice(200, 270), slice(270, 300))], 100
    )


def test_plain_responses():
    three = np.arange(3)
    same(Hinge(7.0, 16.0, classes=three).plain(), Hinge(1.0, 1.0, classes=three), "hinge")
    same(Logistic(25.0, classes=three).plain(), Logistic(1.0, classes=three), "logistic")
    assert Logistic(25.0, classes=three).plain().exclusive
    gaussian = Gaussian(8.0, np.ones(1), drawn=False).plain()
    assert gaussian.c == 1.0 and gaussian.drawn and not Gaussian(8.0, np.ones(1), False, fixed=True).plain().drawn
    counts = NegativeBinomial(8.0, np.ones(1), drawn=False).plain()
    assert counts.c == 1.0 and counts.drawn and not NegativeBinomial(8.0, np.ones(1), False, fixed=True).plain().drawn


@pytest.mark.parametrize(
    ("response", "prior"),
    [
        (Gaussian(2.0, np.ones(1)), stats.invgamma(2.0, scale=1.0)),
        (NegativeBinomial(2.0, np.ones(1)), stats.gamma(1.0, scale=10.0)),
    ],
)
def test_without_data_a_parameter_has_its_prior(response, prior):
    """3,000 draws (every fifth of a slice sampler's): Kolmogorov and Smirnov, right programs fail once in a million."""

    class NoData:
        def residuals(self):
            return np.zeros((2, 1))

        def log_likelihoods(self, responses):
            return np.zeros((len(responses), 1))

    draws = []
    for i in range(15_000):
        response = response.draw_scale(NoData(), make_key(1, i))
        draws.append(response.scale[0])
    assert stats.kstest(draws[::5], prior.cdf).pvalue > ALARM
    density = [response.with_scale(np.array([x])).log_prior() for x in (0.5, 3.0)]
    np.testing.assert_allclose(density, prior.logpdf([0.5, 3.0]))


def test_priors_are_learned_in_the_burn_in_only(monkeypatch, corpus):
    steps, learn = [], gibbs.learn_priors
    monkeypatch.setattr(
        "supertopic.sampling.chain.learn_priors", lambda engine, priors: steps.append(1) or learn(engine, priors)
    )
    SLDAClassifier(3, optimize_priors=True, **RUN | {"burn_in": 40}).fit(corpus.X, corpus.y)
    assert len(steps) == 30  # all but the first quarter


def test_traces_and_kept_draws():
    """The loss of a kept draw has c = 1; shares are left out of the mean of the draws, not of the last one."""
    corpus = make_corpus(n_docs=40, n_words=30, n_topics=3, random_state=0)
    tokens, priors = make_tokens(check_counts(corpus.X)), Priors(np.full(3, 0.3), 0.1, 1.0)
    source = Arrays(tokens, make_target(corpus.y[:, None].astype(float), np.ones((40, 1))))
    plan = make_plan(source, 30, Logistic(9.0), priors, False, "delayed", 5, 3)
    with Chain(plan, 0, ThreadEngine(plan, source, 1), None) as chain:
        for _ in range(8):
            chain.step()
        omega = np.concatenate([shard.omega for shard in chain.engine.shards])
        loss = -np.log(expit(np.where(corpus.y[:, None] > 0, omega, -omega))).sum()
        assert chain.trace[-1][1] == pytest.approx(loss)
        assert len(chain.eta) == 5 and chain.engine.counts.summed.sum() == 5 * len(tokens.word)
        topics = chain_topics(chain)
        expected = (chain.engine.counts.summed / 5 + 0.1) / (chain.engine.counts.summed / 5 + 0.1).sum(axis=0)
        np.testing.assert_allclose(topics.phi.reshape(30, -1)[:, :3], expected, rtol=1e-6)


# --- files


def test_every_fitted_fact_is_in_the_file(corpus, tmp_path):
    """A loaded model has all that a fitted one has, but for what the training documents were."""
    Z = np.random.default_rng(0).normal(size=(300, 1))
    models = [
        LDA(3, **RUN).fit(corpus.X),
        SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y, covariates=Z),
        MedLDAClassifier(3, **RUN).fit(corpus.X, (corpus.doc_topic > 0.3).astype(int)),
        SLDARegressor(3, **RUN).fit(corpus.X, corpus.doc_topic),
        SLDACountRegressor(3, **RUN).fit(corpus.X, corpus.group, exposure=np.ones(300)),
    ]
    for model in models:
        supertopic.save(model, tmp_path / "m")
        loaded = supertopic.load(tmp_path / "m")
        assert vars(model).keys() - {"_library"} == vars(loaded).keys()
        for name in vars(loaded).keys() - {"posterior_"}:
            np.testing.assert_equal(getattr(loaded, name), getattr(model, name), err_msg=name)
        assert loaded.posterior_.doc_topic is None
        same(loaded.posterior_, replace(model.posterior_, doc_topic=None, held_out_docs=None), "posterior_")


@pytest.fixture(scope="module")
def honest(corpus, tmp_path_factory):
    """What is in a file that is sound."""
    path = tmp_path_factory.mktemp("honest") / "m"
    model = SLDACountRegressor(3, **RUN | {"n_chains": 2})
    model.fit(corpus.X, np.column_stack([corpus.y, corpus.group]), covariates=np.arange(300) % 2)
    supertopic.save(model, path)
    return read_file(path, "model")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("topics.0.alpha", lambda a: a[:, :2]), ("topics.0.alpha", lambda a: a[:1]), ("topics.0.alpha", lambda a: -a),
        ("topics.0.beta", lambda a: 0 * a), ("topics.0.training", lambda a: a[:, :, :1]),
        ("topics.0.training", lambda a: a[..., :2]), ("training_scale", lambda a: a[:, :1]),
        ("terms.topics.eta.0", lambda a: a[:, :, :1]), ("scale", lambda a: a[:, :1]),
        ("reported", lambda a: a[..., :2]), ("reported", lambda a: a[:, :1]), ("reported", lambda a: a[:0]),
        ("reported", lambda a: a[0]), ("reported", lambda a: a * np.nan), ("reported", lambda a: a[:3]),
        ("reported_covariates", lambda a: a[..., :0]), ("reported_covariates", lambda a: a[:5]),
        ("terms.intercept.base", lambda a: a[:1]), ("terms.intercept.level", lambda a: a[:1]),
        ("terms.intercept.empty", lambda a: a[:1]), ("topics.0.word_topic", lambda a: a[:, :, :2]),
        ("topics.0.word_topic", lambda a: a[:, :9]), ("topics.0.word_topic", lambda a: a - 1),
        ("terms.covariates.mean", lambda a: np.zeros(3)), ("terms.covariates.scale", lambda a: np.zeros(3)),
    ],
)  # fmt: skip
def test_a_forged_file_is_refused(honest, tmp_path, name, change):
    header, tensors = honest
    write_file(tmp_path / "m", header, tensors | {name: np.ascontiguousarray(change(tensors[name]))})
    with pytest.raises(ValueError, match=r"cannot be right|not a valid supertopic model"):
        supertopic.load(tmp_path / "m")


def test_the_identity_of_a_fit_is_in_all_that_it_depends_on(corpus):
    tokens, y = make_tokens(check_counts(corpus.X)), corpus.y[:, None].astype(float)
    target = make_target(y, np.ones((300, 1)), np.zeros((300, 1)), np.zeros((300, 1)))

    def identity(target=target, response=None, alpha=0.1, tokens=tokens, pseudo_counts=None, known=None, **parameters):
        source = Arrays(tokens, target)
        plan = make_plan(
            source, 60, response or Logistic(1.0), Priors(np.full(3, alpha), 0.1, 1.0), False, "delayed", 7, 3
        )
        return identify(plan, source, [None, pseudo_counts], [None, known], parameters)

    other = {name: getattr(target, name) + (np.arange(300) == 200)[:, None] for name in target._fields}
    changed = [identity(target._replace(**{name: array})) for name, array in other.items()]
    changed += [identity(response=Logistic(2.0)), identity(response=Hinge(1.0, 1.0)), identity(alpha=0.2)]
    word = tokens.word.copy()
    word[77] += 1
    changed += [identity(tokens=tokens._replace(word=word)), identity(burn_in=4), identity(held_out=0.1)]
    for place in range(7):  # pseudo-counts, and what is known of three kinds of weights
        known = [np.zeros((60, 3), np.int32), *(np.zeros((n, 1)) for n in (6, 3) * 3)]
        known[place][1] = 1
        pairs = [Statistics(*known[i : i + 2]) for i in (1, 3, 5)]
        changed.append(identity(pseudo_counts=known[0], known=WeightPriors(*pairs)))
    assert len({identity(), *changed}) == len(changed) + 1 and identity() == identity()
    config = SLDACountRegressor(3, random_state=7)._config(60, 7)
    assert config.identity.keys() >= {"held_out", "c", "seed", "kind", "seeds"}


# --- topics and documents


def test_perplexity_and_exclusivity(corpus):
    model = LDA(3, alpha=0.9, **RUN | {"n_chains": 2}).fit(corpus.X)
    X = check_counts(corpus.X[:20]).astype(np.int64)
    seen, rest = X.copy(), X.copy()
    seen.data = np.random.default_rng(4).binomial(X.data, 0.5)
    rest.data = X.data - seen.data
    p = np.zeros(X.shape)
    for chain in range(2):
        counts = model.posterior_.topics[0].word_topic[chain][:, model.match_topics()[chain]] / 10 + 0.01
        phi = counts / counts.sum(axis=0)
        zbar = topic_shares(model.posterior_, make_tokens(seen), chain, Settings())
        n = np.asarray(seen.sum(axis=1)).reshape(-1, 1)
        p += (zbar * n + 0.3) / (n + 0.9) @ phi.T / 2
    expected = np.exp(-np.sum(rest.toarray() * np.log(p)) / rest.sum())
    assert model.perplexity(corpus.X[:20], random_state=4) == pytest.approx(expected)
    topics = model.topic_word_
    share = topics / topics.sum(axis=0)
    for k, words in enumerate(np.argsort(-topics, axis=1)[:, :5]):
        assert model.exclusivity(5)[k] == pytest.approx(share[k, words].mean())


def test_counts_that_are_given_twice_are_added():
    X = sp.coo_array(([1, 2, 1, 0], ([0, 0, 1, 1], [1, 1, 0, 2])), shape=(2, 3))
    for form in (X, sp.csr_array((X.data, ([0, 0, 1, 1], [1, 1, 0, 2])), shape=(2, 3))):
        counts = check_counts(form)
        np.testing.assert_array_equal(counts.toarray(), [[0, 3, 0], [1, 0, 0]])
        assert counts.nnz == 2
    twice = sp.csr_array((np.array([1, 2]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert make_tokens(check_counts(twice)).word.tolist() == [1, 1, 1] and check_counts(twice).nnz == 1


# --- the paper's systems


def test_the_settings_of_the_papers_systems():
    expected = {
        ("gSLDA", "binary"): {"alpha": 1.0, "c": 1.0, "burn_in": 80, "n_draws": 20, "sampler": "collapsed"},
        ("gSLDA+", "binary"): {"alpha": 1.0, "c": 25.0}, ("gSLDA+", "multiclass"): {"alpha": 5.6, "c": 256.0},
        ("parallel-gSLDA+", "binary"): {"c": 25.0, "sampler": "delayed"},
        ("parallel-gSLDA", "multiclass"): {"c": 1.0, "alpha": 5.6, "burn_in": 30, "n_draws": 10},
        ("gMedLDA", "binary"): {"margin": 64.0, "alpha": 1.0},
        ("gMedLDA", "multiclass"): {"margin": 16.0, "alpha": 5.6},
        ("vSLDA", "binary"): {"c": 1.0, "alpha": 1.0}, ("vSLDA+", "multiclass"): {"c": 256.0, "alpha": 5.6},
        ("vMedLDA", "multiclass"): {"alpha": 5.6}, ("DiscLDA", "binary"): {"alpha": 1.0},
    }  # fmt: skip
    for (name, task), settings in expected.items():
        parameters = paper_system(name, 17, task=task, random_state=5).get_params()
        assert parameters["n_topics"] == 17 and parameters["random_state"] == 5
        assert {key: parameters[key] for key in settings} == settings, name
        if "calibrate" in parameters:
            assert parameters["calibrate"] is False and parameters["nu2"] == 1.0 and parameters["beta"] == 0.01


def test_units_of_covariates_do_not_matter(corpus):
    z = np.random.default_rng(0).normal(size=(300, 1))
    fits = [SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y, covariates=unit) for unit in (z, 1000.0 * z + 5.0)]
    p = [
        model.predict_proba(corpus.X, covariates=unit) for model, unit in zip(fits, (z, 1000.0 * z + 5.0), strict=True)
    ]
    np.testing.assert_allclose(p[0], p[1], atol=1e-6)


def test_sticks_end_at_the_class():
    response = Logistic(1.0, multiclass="stick_breaking", classes=np.arange(4))
    columns, weight = response.class_columns(np.array([0, 1, 3]), np.array([1.0, 2.0, 3.0]))
    assert columns.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert weight.tolist() == [[1, 0, 0], [2, 2, 0], [3, 3, 3]]


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
def test_the_base_rate_is_the_mean_unless_that_is_at_an_end(corpus):
    y = np.arange(300) % 3
    assert SLDACountRegressor(3, **RUN).fit(corpus.X, y).intercept_[0] == pytest.approx(np.log(y.mean()))
    assert SLDACountRegressor(3, **RUN).fit(corpus.X, 0 * y).intercept_[0] == pytest.approx(np.log(0.5 / 300))
    labels = np.column_stack([y == 0, y == 1, y >= 0, y < 0]).astype(int)
    rates = expit(SLDAClassifier(3, **RUN).fit(corpus.X, labels).intercept_)
    np.testing.assert_allclose(rates, [1 / 3, 1 / 3, 300.5 / 301, 0.5 / 301])
    classes = SLDAClassifier(3, **RUN).fit(corpus.X, y)
    np.testing.assert_allclose(np.exp(classes.intercept_), 1 / 3)


def test_chains_of_another_width_have_a_large_rhat():
    x = np.random.default_rng(0).normal(size=(4, 400)) * np.array([1.0, 1.0, 4.0, 4.0])[:, None]
    assert rhat(x) > 1.2 > 1.01 > rhat(x / x.std(axis=1, keepdims=True))


def test_generated_labels_have_their_probability():
    made = make_corpus(n_docs=4000, n_topics=3, doc_length=20, eta=[-2.0, 0.0, 3.0], random_state=0)
    np.testing.assert_allclose(made.probability, expit(made.doc_topic @ [-2.0, 0.0, 3.0]))
    residual = made.y - made.probability
    for x in (np.ones(4000), made.probability, made.doc_topic[:, 0]):
        assert abs((residual * x).sum()) < 5 * np.sqrt((x**2 * made.probability * (1 - made.probability)).sum())


def test_traces_of_several_sets_of_topics_are_added(corpus, monkeypatch):
    runs, real = [], fit_room.run_chains
    monkeypatch.setattr(fit_room, "run_chains", lambda *more: runs.extend(real(*more)) or runs)
    kind = np.array(list("abc"))[np.arange(corpus.X.shape[0]) % 3]
    model = SLDAClassifier(2, multiclass="separate", **RUN | {"n_chains": 2, "burn_in": 6}).fit(corpus.X, kind)
    assert len(runs) == 6
    for chain in range(2):
        own = [run.draws for run in runs[chain::2]]
        np.testing.assert_allclose(model.posterior_.traces.kept[chain], sum(draws.trace for draws in own))
        np.testing.assert_allclose(model.log_joint_[chain], sum(draws.history[:, 0] for draws in own))
