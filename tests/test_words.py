"""Words beside topics: rows, weights and their slopes against other ways to the same numbers; what they find."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge

from supertopic import MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor, load, save
from supertopic.corpus.source import make_target
from supertopic.datasets import make_corpus
from supertopic.inference import words
from supertopic.inference.shrinkage import BESIDE_WORDS, interpolate
from supertopic.inference.words import (
    HeldOut,
    Seen,
    choose_penalty,
    count_documents,
    fit_theta,
    learn_words,
    make_dictionary,
    make_rows,
    no_past,
)
from supertopic.model.responses import Gaussian, Hinge, Logistic, NegativeBinomial
from supertopic.model.terms import COPIES, WordWeights

RUN = {"burn_in": 30, "n_draws": 10, "n_chains": 2, "random_state": 0}
KINDS = (SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor)
RESPONSES = [
    Logistic(9.0), Logistic(9.0, classes=np.arange(3)), Hinge(2.0, 1.0), Gaussian(3.0, np.full(3, 0.7)),
    NegativeBinomial(2.0, np.array([0.5, 2.0, 9.0])),
]  # fmt: skip


def nothing_before(x, target, penalty):
    """A past of which only the prior variance is known."""
    return no_past((x.shape[1], target.y.shape[1]), penalty)


def in_order(run, n):
    return [run(i) for i in range(n)]


@pytest.fixture(scope="module")
def verdicts():
    """Labels that hang on two topics, and on two words that all topics use alike."""
    corpus = make_corpus(n_docs=1200, n_words=200, n_topics=4, eta=[-2.0, -1.0, 1.0, 2.0], random_state=0)
    rng = np.random.default_rng(1)
    said = rng.random((1200, 2)) < 0.3
    X = np.hstack([corpus.X.toarray(), said.astype(int)])
    omega = corpus.doc_topic @ corpus.eta + said @ [3.0, -3.0]
    return csr_array(X), omega, (rng.random(1200) < 1 / (1 + np.exp(-omega))).astype(int)


def test_rows_are_scikit_learns(verdicts):
    X = verdicts[0]
    dictionary = make_dictionary(count_documents(X), 1)
    n_docs = np.asarray((X > 0).sum(axis=0)).ravel()
    np.testing.assert_array_equal(dictionary.word, np.flatnonzero(n_docs > 1))
    some = X[:, dictionary.word]
    np.testing.assert_allclose(
        dictionary.rows(X).toarray(), TfidfTransformer(sublinear_tf=True).fit_transform(some).toarray()
    )
    assert dictionary.rows(X[:0]).shape == (0, len(dictionary.word))
    assert (dictionary.rows(csr_array(X.shape, dtype=int)).toarray() == 0).all()


def test_the_most_common_words_have_weights_where_there_are_too_many(verdicts, monkeypatch):
    monkeypatch.setattr(words, "MOST_WEIGHTS", 60)
    X = verdicts[0]
    n_docs = np.asarray((X > 0).sum(axis=0)).ravel()
    chosen = make_dictionary(count_documents(X), 3).word
    assert len(chosen) == 20 and n_docs[chosen].min() >= np.sort(n_docs)[-20]


@pytest.mark.parametrize("response", RESPONSES, ids=lambda r: type(r).__name__)
def test_slopes(response):
    rng = np.random.default_rng(0)
    y = np.eye(3)[rng.integers(0, 3, 8)] if isinstance(response, Logistic) else rng.integers(0, 2, (8, 3)).astype(float)
    target = make_target(y, np.repeat(rng.random((8, 1)), 3, axis=1))
    omega, change = rng.normal(size=(2, 8, 3))
    value, slope = response.cost(target, omega)
    near = [response.cost(target, omega + step * change)[0] for step in (-1e-5, 1e-5)]
    assert (near[1] - near[0]) / 2e-5 == pytest.approx((slope * change).sum(), rel=1e-6)
    if isinstance(response, Logistic) and not response.exclusive:
        assert value == pytest.approx(-Logistic(1.0).log_likelihood(target, omega).sum())


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_are_those_of_logistic_regression(n_classes):
    rng = np.random.default_rng(0)
    x = csr_array(rng.random((300, 12)) * (rng.random((300, 12)) < 0.5))
    y = rng.integers(0, n_classes, 300)
    y[:150] = (3 * x.toarray()[:150, 0]).astype(int) % n_classes
    weight = rng.exponential(size=300)
    columns = y[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[y]
    target = make_target(columns, np.repeat(weight[:, None], columns.shape[1], axis=1))
    response = Logistic(25.0, classes=np.arange(n_classes))
    assert response.exclusive == (n_classes > 2)
    theta = fit_theta(make_rows(x), response, target, np.zeros((300, 1)), nothing_before(x, target, 7.0))
    other = LogisticRegression(C=7.0, fit_intercept=False, tol=1e-8, max_iter=1000).fit(x, y, weight)
    np.testing.assert_allclose(theta.T, other.coef_, atol=0.03)


def test_weights_are_those_of_ridge_regression():
    rng = np.random.default_rng(0)
    x, y, offset, weight = csr_array(rng.random((200, 9))), *rng.normal(size=(2, 200, 1)), rng.exponential(size=200)
    target = make_target(y, weight[:, None])
    theta = fit_theta(make_rows(x), Gaussian(8.0, np.full(1, 3.0)), target, offset, nothing_before(x, target, 4.0))
    other = Ridge(alpha=3.0 / 4.0, fit_intercept=False).fit(x, (y - offset).ravel(), weight)
    np.testing.assert_allclose(theta.ravel(), other.coef_, atol=0.02)


def test_a_penalty_that_fits(verdicts):
    X, _, y = verdicts
    x, nothing = make_dictionary(count_documents(X), 1).rows(X), np.zeros((len(y), 1))
    before = nothing_before(x, make_target(nothing, nothing), 1.0)
    coins = np.random.default_rng(0).integers(0, 2, len(y))[:, None].astype(float)
    penalties = [
        choose_penalty(x, Logistic(1.0), make_target(labels, np.ones_like(labels)), nothing, before, in_order)
        for labels in (coins, y[:, None].astype(float))
    ]
    assert penalties[0] == words.PENALTIES[0] and penalties[1] >= 1.0
    close = verdicts[1][:, None] / 100  # a loss below 0, where sigma2 is small
    found = choose_penalty(
        x, Gaussian(1.0, np.full(1, 1e-4)), make_target(close, np.ones_like(close)), nothing, before, in_order
    )
    assert found > words.PENALTIES[0]


def test_interpolate():
    points, values = np.array([0.0, 0.5, 2.0]), np.random.default_rng(0).normal(size=(3, 5, 4))
    at = np.array([0.0, 0.2, 1.0, 2.0])
    for r in range(4):
        expected = [np.interp(at[r], points, column) for column in values[:, :, r].T]
        np.testing.assert_allclose(interpolate(points, values, at)[:, r], expected)


def test_words_find_what_topics_miss(verdicts):
    X, _, y = verdicts
    names = np.array([f"w{i}" for i in range(200)] + ["good", "bad"])
    both = SLDAClassifier(4, **RUN).fit(X[:800], y[:800])
    alone = SLDAClassifier(4, words=False, **RUN).fit(X[:800], y[:800])
    np.testing.assert_array_equal(
        both.coef_draws_, alone.coef_draws_
    )  # topics and reported weights stay what they were
    np.testing.assert_array_equal(both.topic_word_, alone.topic_word_)
    losses = [-np.log(m.predict_proba(X[800:])[np.arange(400), y[800:]]).mean() for m in (both, alone)]
    assert losses[0] < losses[1] - 0.05
    missed = both.missed_words(names, n=1)
    assert missed == [{"column": "1", "towards": ["good"], "away": ["bad"]}]
    found = both.held_out_
    assert found["loss"] < found["topics_loss"] < found["base_loss"] and found["words_loss"] < found["base_loss"]
    assert "topics_loss" not in alone.held_out_
    with pytest.raises(AttributeError, match="words=False"):
        alone.word_coef_  # noqa: B018
    with pytest.raises(AttributeError, match="words=False"):
        alone.missed_words(names)


def test_where_topics_explain_it_all():
    """Words add nothing to what the model itself made: some copies are 0, little is lost, and intervals cover."""
    corpus = make_corpus(n_docs=1500, n_words=500, n_topics=5, random_state=1)
    losses = []
    for with_words in (True, False):
        model = SLDAClassifier(5, words=with_words, **RUN | {"n_chains": 4}).fit(corpus.X[:1000], corpus.y[:1000])
        p = model.predict_proba(corpus.X[1000:])
        losses.append(-np.log(p[np.arange(500), corpus.y[1000:]]).mean())
        if with_words:
            assert 0 < sum(copy.any() for copy in model.posterior_.words.theta) < COPIES
            lower, upper = model.predict_interval(corpus.X[1000:])
            truth = corpus.probability[1000:]
            assert 0.85 < np.mean((lower[:, 1] <= truth) & (truth <= upper[:, 1])) <= 1
    assert losses[0] < losses[1] + 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_every_draw_has_a_copy_of_the_weights(verdicts, kind, tmp_path):
    """Every response; files; threads; and a model that holds out nothing."""
    X, _, y = verdicts
    model = kind(4, **RUN).fit(X[:300], y[:300])
    posterior, theta = model.posterior_, model.posterior_.words.theta
    omega = model._new(X[300:340]).omega()  # (draw, document, column), in standard units
    assert [term.name for term in posterior.terms] == ["topics", "intercept", "words"]
    rest = tuple(term for term in posterior.terms if not isinstance(term, WordWeights))
    without = replace(model._new(X[300:340]), posterior=replace(posterior, terms=rest)).omega()
    x = posterior.words.dictionary.rows(X[300:340])
    draws = [chain * 10 + pair % 10 for chain in range(2) for pair in range(len(omega) // 2)]
    added = np.array([x @ theta[draw % COPIES].T for draw in draws])
    np.testing.assert_allclose(omega - without, added, atol=1e-9)
    used = [copy for copy in theta if copy.any()]
    assert len(used) > 1 and len({copy.tobytes() for copy in used}) == len(used)
    coef = model.word_coef_[:, posterior.words.dictionary.word]
    np.testing.assert_allclose(coef, theta.mean(axis=0, dtype=float) * posterior.response.unit)
    threads = kind(4, n_jobs=2, **RUN).fit(X[:300], y[:300])
    np.testing.assert_array_equal(threads.posterior_.words.theta, theta)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X[300:340]), model.predict(X[300:340]))
    nothing = kind(4, held_out=0, **RUN).fit(X[:300], y[:300])
    assert nothing.posterior_.words.theta.any() and nothing.held_out_ == {"documents": 0}
    few = kind(4, held_out=0.3, **RUN).fit(X[:25], y[:25])  # too few to learn words from; held-out documents are used
    assert not few.posterior_.words.theta.any() and few.held_out_["documents"] == 7


def test_covariates_beside_words():
    """What a covariate explains is not given to words again."""
    corpus = make_corpus(n_docs=600, n_topics=3, random_state=0)
    z = np.random.default_rng(0).normal(size=(600, 1))
    X = csr_array(np.hstack([corpus.X.toarray(), (z > 0).astype(int)]))
    y = 3 * z[:, 0] + corpus.doc_topic @ [-1.0, 0.0, 1.0]
    word = [SLDARegressor(3, held_out=0, **RUN).fit(X, y, covariates=c).word_coef_[0, -1] for c in (None, z)]
    assert abs(word[1]) < 0.2 * abs(word[0])


def test_weights_are_in_the_units_of_the_rating(verdicts):
    X, omega, _ = verdicts
    one, many = (
        SLDARegressor(4, **RUN).fit(X[:400], unit * omega[:400]).word_coef_ for unit in (1.0, 1024.0)
    )  # a power of 2, so that all bits stay
    assert np.abs(one).max() > 0.1
    np.testing.assert_allclose(many, 1024.0 * one, rtol=1e-6)


def test_words_explain_what_topics_leave_over(verdicts):
    """Where topics explain everything, little is left for words; where they explain nothing, words do."""
    X, omega, _ = verdicts
    x, y = make_dictionary(count_documents(X), 1).rows(X), omega[:, None] - omega.mean()
    target, none = make_target(y, np.ones_like(y)), make_target(y[:0], y[:0])
    held_out, gaussian = HeldOut(x[:0], none, [], np.zeros((0, 0))), Gaussian(1.0, np.ones(1))
    sizes = [
        np.abs(learn_words(Seen(x, target, topics), held_out, gaussian, [0], in_order, None, None).copies).sum()
        for topics in (y / BESIDE_WORDS, 0.0 * y)
    ]
    assert sizes[0] < 0.01 * sizes[1]
