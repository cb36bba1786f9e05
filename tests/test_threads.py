"""One thread or many, the same model bit for bit."""

import numpy as np
import pytest

from supertopic import LDA, SLDAClassifier
from supertopic.corpus.tokens import check_counts, cut, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import chains, fit
from supertopic.kernels.draws import make_key
from supertopic.model import state
from supertopic.model.state import fixed_topics
from supertopic.sampling import counts as topics
from supertopic.sampling import new_documents, plan
from supertopic.sampling.new_documents import draw_omegas, infer_shares

WORDS = [f"w{i}" for i in range(1000)]


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=400, n_words=1000, n_topics=5, eta=np.linspace(-5, 5, 15).reshape(3, 5), random_state=0)


@pytest.mark.parametrize("sampler", ["delayed", "drawn", "collapsed"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_number_of_threads_changes_nothing(corpus, short_regressions, monkeypatch, sampler, sparse):
    monkeypatch.setattr(plan, "SHARD_TOKENS", 2000)  # so that this small corpus has many shards
    monkeypatch.setattr(plan, "SPARSE_FROM", 1 if sparse else 10**6)
    monkeypatch.setattr(topics, "DENSE", 0)
    fits, cuts = [], []
    monkeypatch.setattr(plan, "cut", lambda *arguments: cuts.append(cut(*arguments)) or cuts[-1])
    for n_jobs in (1, 2, 7):
        slda = SLDAClassifier(6, sampler=sampler, burn_in=8, n_draws=4, n_chains=2, n_jobs=n_jobs, random_state=1)
        slda.set_params(predict_sweeps=8)
        fits.append(slda.fit(corpus.X, corpus.y))
    cuts = cuts[1::2]  # the first of each pair is of all documents, the second of those that are not held out
    assert cuts[0] == cuts[1] == cuts[2] and (len(cuts[0]) > 10) == (sampler != "collapsed")
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_draws_, fits[0].coef_draws_)
        np.testing.assert_array_equal(*(fit.posterior_.topics[0].word_topic for fit in (other, fits[0])))
        np.testing.assert_array_equal(other.doc_topic_, fits[0].doc_topic_)
        np.testing.assert_array_equal(other.log_joint_, fits[0].log_joint_)
        np.testing.assert_array_equal(other.prediction_draws_, fits[0].prediction_draws_)
        np.testing.assert_array_equal(other.predict_proba(corpus.X[:40]), fits[0].predict_proba(corpus.X[:40]))


@pytest.mark.parametrize("sampler", ["delayed", "drawn", "collapsed"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_sampler_finds_planted_topics(monkeypatch, sampler, sparse):
    corpus = make_corpus(n_docs=250, n_topics=4, random_state=1)
    monkeypatch.setattr(plan, "SHARD_TOKENS", 5000)
    monkeypatch.setattr(plan, "SPARSE_FROM", 1 if sparse else 10**6)
    monkeypatch.setattr(topics, "DENSE", 0)
    models = [
        SLDAClassifier(4, c=10, sampler=sampler, n_chains=1, burn_in=60, n_draws=20, random_state=s, words=False)
        for s in range(3)
    ]
    best = max((model.fit(corpus.X, corpus.y) for model in models), key=lambda fit: fit.log_joint_[0, -1])
    similar = np.corrcoef(np.vstack([corpus.topic_word, best.topic_word_]))[:4, 4:]
    assert similar.max(axis=1).min() > 0.9
    assert (np.diff(best.coef_[0, similar.argmax(axis=1)]) > 0).all()


def test_auto_looks_at_the_corpus_only(corpus, monkeypatch):
    monkeypatch.setattr(chains, "COLLAPSED_UP_TO", 10)
    chosen = {LDA(3, burn_in=1, n_draws=1, n_jobs=n).fit(corpus.X).sampler_ for n in (1, 2, -1)}
    assert chosen == {"delayed"}


@pytest.mark.parametrize("sparse", [False, True])
def test_a_recount_is_what_moves_add_up_to(corpus, short_regressions, monkeypatch, sparse):
    monkeypatch.setattr(plan, "SHARD_TOKENS", 2000)
    monkeypatch.setattr(plan, "SPARSE_FROM", 1 if sparse else 10**6)
    recount, parts, fits = topics.Counts.recount, [], []
    monkeypatch.setattr(topics.Counts, "recount", lambda *about: parts.append(about) or recount(*about))
    for longest in (0.0, 0.13, 1.0):  # all sweeps, some, none
        monkeypatch.setattr(state, "LONG_LIST", longest)
        slda = SLDAClassifier(6, sampler="delayed", burn_in=8, n_draws=4, n_chains=1, n_jobs=2, random_state=1)
        slda.set_params(seeds={"a": ["w1", "w2"]})
        parts.clear()
        fits.append((slda.fit(corpus.X, corpus.y, feature_names=WORDS), len(parts)))
    (all_of_them, most), (some, fewer), (none, no_part) = fits
    assert most > fewer > 0 == no_part
    for other in (all_of_them, some):
        np.testing.assert_array_equal(other.posterior_.topics[0].word_topic, none.posterior_.topics[0].word_topic)
        np.testing.assert_array_equal(other.log_joint_, none.log_joint_)
        np.testing.assert_array_equal(other.coef_draws_, none.coef_draws_)


def test_shares_are_the_same_if_they_are_computed_in_parts(corpus, short_regressions, monkeypatch):
    slda = SLDAClassifier(6, burn_in=4, n_draws=3, n_chains=2, random_state=1, words=False)
    whole = slda.fit(corpus.X, corpus.y).doc_topic_
    monkeypatch.setattr(fit, "AT_ONCE", 33)
    np.testing.assert_array_equal(slda.fit(corpus.X, corpus.y).doc_topic_, whole)


def test_blas_threads_are_given_back(corpus, two_blas_threads):
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    assert 2 in before
    LDA(3, burn_in=1, n_draws=1).fit(corpus.X)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_new_documents_in_parts_are_those_at_once(monkeypatch):
    """Shares and omega of some documents at a time, whatever threads do, empty ones among them."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, (23, 12))
    X[[0, 7, 22]] = 0
    tokens, key = make_tokens(check_counts(X)), make_key(3)
    topics, eta = fixed_topics(rng.dirichlet(np.ones(12), 5).T, np.full(5, 0.2)), rng.normal(size=(4, 2, 5))
    shares, omega = infer_shares(tokens, topics, 6, key, 1), draw_omegas(tokens, topics, 6, eta, key)
    monkeypatch.setattr(new_documents, "CHUNK_TOKENS", 9)
    monkeypatch.setattr(new_documents, "CHUNK_NUMBERS", 200)
    np.testing.assert_array_equal(infer_shares(tokens, topics, 6, key, 3), shares)
    np.testing.assert_array_equal(draw_omegas(tokens, topics, 6, eta, key), omega)
    assert not shares[[0, 7, 22]].any() and not omega[:, [0, 7, 22]].any()
    np.testing.assert_allclose(np.delete(shares, [0, 7, 22], axis=0).sum(axis=1), 1.0)
