"""The systems that the paper compares with: what they maximise, planted data, bad input."""

import numpy as np
import pytest
from scipy.special import digamma as exact_digamma
from scipy.special import softmax
from sklearn.base import clone

from supertopic.baselines import SYSTEMS, DiscLDA, VariationalMedLDA, VariationalSLDA, dawid_skene, paper_system
from supertopic.baselines.meanfield import digamma, infer, softmax_objective
from supertopic.corpus.tokens import check_counts
from supertopic.datasets import make_corpus
from supertopic.kernels.compiled import kernel


@pytest.fixture(scope="module")
def corpus():
    found = make_corpus(n_docs=200, n_topics=4, doc_length=40, random_state=1)
    found.group = found.doc_topic.argmax(axis=1)
    return found


MODELS = [
    VariationalSLDA(5, random_state=0, max_iter=25),
    VariationalSLDA(5, c=8.0, random_state=0, max_iter=25),
    VariationalMedLDA(5, random_state=0, max_iter=25),
    DiscLDA(10, random_state=0, max_iter=50),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("several", [False, True])
def test_planted_classes_are_found(corpus, model, several):
    y = np.array(["a", "b", "c", "d"])[corpus.group] if several else corpus.group > 1
    fitted = clone(model).fit(corpus.X[:150], y[:150])
    assert fitted.score(corpus.X[150:], y[150:]) > (0.75 if several else 0.85)
    shares = fitted.transform(corpus.X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.topic_word_.sum(axis=1), 1)
    one, other = (clone(model).set_params(max_iter=3).fit(corpus.X[:150], y[:150]) for _ in range(2))
    np.testing.assert_array_equal(one.topic_word_, other.topic_word_)
    np.testing.assert_array_equal(one.predict(corpus.X), other.predict(corpus.X))
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_allclose(fitted.predict_proba(corpus.X).sum(axis=1), 1)


@pytest.mark.parametrize("model", MODELS[:3], ids=str)
@pytest.mark.parametrize("several", [False, True])
def test_the_bound_never_falls(corpus, model, several):
    fitted = clone(model).set_params(tol=1e-12, max_iter=15).fit(corpus.X, corpus.group if several else corpus.y)
    steps = np.diff(fitted.bound_)
    assert len(steps) > 5 and steps.min() > -1e-7 * abs(fitted.bound_[0])


def test_the_bound_is_a_bound():
    """With one topic nothing is left to approximate: the words' part is their likelihood."""
    X, y = np.array([[2, 1], [0, 3], [4, 0]]), [0, 1, 0]
    model = VariationalSLDA(1, c=1.0, beta=0.5, random_state=0, max_iter=3).fit(X, y)
    log_topics = np.log(model.topic_word_[0])
    words = float((X @ log_topics).sum()) + 0.5 * log_topics.sum()
    classes = sum(model.coef_[k, 0] - np.log(np.exp(model.coef_[:, 0]).sum()) for k in y)
    assert model.bound_[-1] == pytest.approx(words + classes - 0.5 * np.sum(model.coef_**2), rel=1e-9)


def test_softmax_gradient(corpus):
    rng = np.random.default_rng(0)
    starts, y = np.array([0, 4, 4, 9]), np.array([1, 0, 2])
    phi, eta = rng.dirichlet(np.ones(3), 9), rng.normal(size=(3, 3))
    gradient = np.empty_like(eta)
    softmax_objective(starts, phi, y, eta, gradient)
    for place in np.ndindex(*eta.shape):
        step = np.zeros_like(eta)
        step[place] = 1e-5
        scratch = np.empty_like(eta)
        up, down = (softmax_objective(starts, phi, y, eta + sign * step, scratch) for sign in (1, -1))
        assert gradient[place] == pytest.approx((up - down) / 2e-5, abs=1e-6)


def test_disclda_gradient(corpus):
    """By finite differences of J, with proportions that have settled."""
    counts = check_counts(corpus.X[:30])
    model = DiscLDA(6, random_state=0, max_iter=2).fit(counts, corpus.y[:30])
    model.inner_iter = 5000
    rng = np.random.default_rng(0)
    logits = np.log(model.maps_) + 0.3 * rng.normal(size=model.maps_.shape)
    _, gradient = model._objective(counts, corpus.y[:30], logits, tol=1e-10)
    for _ in range(12):
        step = np.zeros_like(logits)
        place = tuple(rng.integers(0, n) for n in logits.shape)
        step[place] = 1e-4
        up, down = (model._objective(counts, corpus.y[:30], logits + s * step, tol=1e-10)[0] for s in (1, -1))
        assert gradient[place] == pytest.approx((up - down) / 2e-4, rel=1e-3, abs=1e-6)
    np.testing.assert_allclose(model.maps_, softmax(logits - step, axis=1))


def test_digamma():
    @kernel
    def all_of(x):
        return np.array([digamma(value) for value in x])

    x = np.array([1e-3, 0.1, 0.5, 1.0, 3.3, 5.99, 6.0, 50.0, 1e6])
    np.testing.assert_allclose(all_of(x), exact_digamma(x), rtol=1e-11)


@pytest.mark.parametrize("n_classes", [0, 2, 5])
def test_an_e_step_follows_its_definition(n_classes):
    """Two sweeps over two documents, token by token, with all products made anew for every token."""
    rng, alpha, c, n_topics = np.random.default_rng(0), 0.3, 4.0, 3
    word, doc_start, y = np.array([0, 3, 3, 1, 2, 0, 2]), np.array([0, 4, 7]), np.array([1, 0])
    log_topics, phi = np.log(rng.dirichlet(np.ones(n_topics), 4)), rng.dirichlet(np.ones(n_topics), 7)
    eta, pull = rng.normal(0, 3, (n_classes, n_topics)), rng.normal(0, 3, (2, n_topics))
    expected = phi.copy()
    for d in range(2):
        own, words = expected[doc_start[d] : doc_start[d + 1]], word[doc_start[d] : doc_start[d + 1]]
        N = len(own)
        for _ in range(2):
            gamma = alpha + own.sum(axis=0)
            log_theta = exact_digamma(gamma) - exact_digamma(gamma.sum())
            for n in range(N):
                log_weight = log_theta + log_topics[words[n]] + pull[d] / N
                if n_classes:
                    scaled = np.exp(eta / N)
                    p = softmax(np.log(own @ scaled.T).sum(axis=0))
                    log_weight += c * eta[y[d]] / N - c * (p / (scaled @ own[n])) @ scaled
                own[n] = softmax(log_weight)
    gamma, bounds = np.empty((2, n_topics)), np.empty(2)
    infer(word, doc_start, log_topics, alpha, pull, eta, y, c, 2, phi, gamma, bounds)
    np.testing.assert_allclose(phi, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["gSLDA", "parallel-gSLDA", "vSLDA"])
def test_plus_is_the_weight_of_the_response(name):
    for task, c in (("binary", 25), ("multiclass", 256)):
        assert paper_system(name, task=task).c == 1 and paper_system(f"{name}+", task=task).c == c


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_the_papers_systems_by_name(corpus, name, task):
    model = paper_system(name, 6, task=task, random_state=0)
    X, y = corpus.X[:80], (corpus.y if task == "binary" else corpus.group)[:80]
    assert model.fit(X, y).score(X, y) > 0.6


def test_bad_input(corpus):
    for model in MODELS[1:]:
        for X, y, message in (
            (-corpus.X, corpus.y, "Negative"),
            (corpus.X / 3, corpus.y, "fractions"),
            (np.full((4, 3), np.nan), [0, 1, 0, 1], "NaN"),
            (corpus.X, np.zeros(200), "one class"),
            (corpus.X, corpus.y[:5], "inconsistent"),
            (corpus.X, np.r_[np.nan, corpus.y[1:]], "NaN"),
        ):
            with pytest.raises(ValueError, match=message):
                clone(model).fit(X, y)
        for wrong in ({"n_topics": 0}, {"alpha": -1.0}, {"beta": np.nan}, {"max_iter": 0}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                clone(model).set_params(**wrong).fit(corpus.X, corpus.y)
        with pytest.raises(ValueError, match="features"):
            clone(model).fit(corpus.X, corpus.y).predict(corpus.X[:, :7])
        empty = clone(model).fit(np.vstack([corpus.X[:20].toarray(), np.zeros((2, 500), int)]), np.arange(22) % 2)
        assert np.isfinite(empty.transform(np.zeros((1, 500), int))).all()
    with pytest.raises(ValueError, match="more than the 4 classes"):
        DiscLDA(4).fit(corpus.X, corpus.group)
    with pytest.raises(ValueError, match="none of the paper's systems"):
        paper_system("LSTM")
    with pytest.raises(ValueError, match="task"):
        paper_system("vSLDA", task="ternary")


def test_a_document_without_words_has_the_class_prior(corpus):
    y = np.arange(200) % 5 == 0
    model = DiscLDA(6, random_state=0, max_iter=3).fit(corpus.X, y)
    np.testing.assert_allclose(model.predict_proba(corpus.X[:1] * 0), [[0.8, 0.2]])


def test_the_support_vector_step_is_that_of_its_margin():
    """No weights near by have a lower price, and the dual variables give the weights."""
    rng = np.random.default_rng(0)
    counts, sign = rng.integers(1, 20, (80, 3)).astype(float), np.where(rng.random((80, 1)) < 0.5, 1.0, -1.0)
    zbar = counts / counts.sum(axis=1, keepdims=True)
    model = VariationalMedLDA(3, c=5.0, margin=8.0)
    model._sign, model._dual = sign, np.zeros((80, 1))
    model.coef_, model.intercept_ = np.zeros((1, 3)), np.zeros(1)
    model._m_step(None, None, None, counts)
    price = model._price(zbar, 0, model.coef_[0], model.intercept_[0])
    for step in 0.5 * rng.normal(size=(200, 4)):
        assert model._price(zbar, 0, model.coef_[0] + step[:3], model.intercept_[0] + step[3]) > price - 1e-3
    np.testing.assert_allclose((sign * model._dual).T @ zbar, model.coef_, atol=0.02)


def test_the_support_vector_machines_of_the_paper():
    """On words, and on the topics of LDA; whichever the task."""
    for task, alpha in (("binary", 1.0), ("multiclass", 5.6)):
        assert paper_system("SVM", task=task).C == 0.01
        topics, machine = paper_system("gLDA+SVM", 7, task=task, random_state=3)
        assert (topics.n_topics, topics.alpha, topics.random_state, machine.C) == (7, alpha, 3, 10.0)


def test_shares_of_disclda_are_those_of_classes_as_probable_as_they_are(corpus):
    X, y = corpus.X, corpus.y
    model = DiscLDA(6, max_iter=6, random_state=0).fit(X, y)
    p, own = model.predict_proba(X[:9]), np.zeros((9, 6))
    counts = check_counts(X[:9])
    for place in range(len(model.classes_)):
        gamma = model._bounds(counts, place, model.inner_iter)[1]
        own += p[:, [place]] * (gamma / gamma.sum(axis=1, keepdims=True)) @ model.maps_[place].T
    np.testing.assert_allclose(model.transform(X[:9]), own)
    np.testing.assert_allclose(own.sum(axis=1), 1.0)


def test_gold_answers_count_in_the_model_of_raters_alone():
    y = np.array([["a", "b"], ["a", "b"], ["b", "a"], ["a", "a"], ["b", "b"]] * 4, object)
    gold = np.full(20, None, object)
    gold[:12] = y[:12, 1]  # the second rater is right
    assert (dawid_skene(y, gold).labels[12:] == y[12:, 1]).all()
    assert dawid_skene(y, gold).confusion[1].diagonal().min() > dawid_skene(y).confusion[1].diagonal().min()
