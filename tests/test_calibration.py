"""Label-free calibration, and learned priors."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from small import engine_of, flat, plan_of, z_of
from supertopic import LDA, SLDAClassifier
from supertopic.corpus.source import make_target
from supertopic.datasets import make_corpus
from supertopic.inference import calibration
from supertopic.inference.calibration import Unseen, calibrate, carry_over, draw_weights
from supertopic.kernels.draws import make_key
from supertopic.model.priors import NU2_PREDICTION as NU2
from supertopic.model.responses import Gaussian, Logistic
from supertopic.model.state import Priors, ShareRows, Statistics, fixed_topics
from supertopic.sampling import shard as shards
from supertopic.sampling.chain import Chain
from supertopic.sampling.new_documents import PREDICT, infer_shares
from supertopic.sampling.threads import ThreadEngine


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=400, n_topics=4, doc_length=60, random_state=1)


def test_a_document_is_left_out_of_the_topics():
    """The same as inference under topics from which its tokens were taken by hand, an empty document among them."""
    rng = np.random.default_rng(0)
    n_topics, n_words, beta, alpha = 3, 12, 0.2, np.array([0.3, 0.5, 0.2])
    docs = [sorted(rng.integers(0, n_words, n)) for n in [*rng.integers(1, 16, 29), 0]]
    tokens, z = flat(docs, [rng.integers(0, n_topics, len(words)) for words in docs])
    counts = np.zeros((n_words, n_topics), np.int32)
    np.add.at(counts, (tokens.word, z), 1)
    priors, target = Priors(alpha, beta, 1.0), make_target(np.zeros((30, 1)), np.ones((30, 1)))
    plan, source = plan_of(docs, n_words, Logistic(1.0), target, priors, "delayed", 3)
    engine = engine_of(plan, source, z, Logistic(1.0), target.y, np.zeros((1, n_topics)), 2)
    key = make_key(7, 0)
    engine.counts.restore(3 * counts, 3, 0)
    engine.leave_out(priors, 40, key)
    found = np.zeros((30, n_topics))
    for shard in engine.shards:
        for d in range(shard.n_docs):
            part = slice(shard.shares.start[d], shard.shares.start[d + 1])
            found[shard.first_doc + d, shard.shares.topic[part]] = shard.shares.share[part]
    assert not found[29].any()  # nothing is known of it
    for d in range(29):
        own, tokens_of_d = np.zeros_like(counts), slice(tokens.doc_start[d], tokens.doc_start[d + 1])
        np.add.at(own, (tokens.word[tokens_of_d], z[tokens_of_d]), 1)
        phi = (counts - own + beta) / (counts - own + beta).sum(axis=0)
        expected = infer_shares(flat([docs[d]], [[]])[0], fixed_topics(phi, alpha), 40, key, 1)[0]
        np.testing.assert_allclose(found[d], expected, atol=0.02)


def test_weights_have_the_posterior_of_a_regression():
    """Gaussian with known variance: mean and covariance in closed form; a missing response and an offset among them."""
    rng = np.random.default_rng(1)
    x, weight, offset = rng.dirichlet(np.ones(3), 40), np.ones((40, 1)), rng.normal(size=(40, 1))
    weight[::5] = 0
    covariates = rng.normal(size=(40, 1))
    both = np.hstack([x, covariates])
    y = both @ [[1.0], [-2.0], [0.5], [0.8]] + offset + 0.3 * rng.normal(size=(40, 1))
    target, response = make_target(y, weight, offset, covariates), Gaussian(1.0, np.full(1, 0.09), False)
    docs, priors = [[0]] * 40, Priors(np.ones(3), 0.1, 1.0)
    plan, source = plan_of(docs, 1, response, target, priors, "delayed", 2)
    engine = engine_of(plan, source, np.zeros(40), response, weight / 0.09, np.zeros((1, 4)))
    for shard in engine.shards:
        own = x[shard.first_doc : shard.first_doc + shard.n_docs]
        shard.shares = ShareRows(
            np.arange(0, own.size + 1, 3), np.tile(np.arange(3, dtype=np.uint16), len(own)), own.ravel()
        )
    A = rng.normal(size=(4, 4))
    before, pull = A @ A.T, rng.normal(size=4)  # of other documents
    known = Statistics(before[np.tril_indices(4)][:, None], pull[:, None])
    eta = np.array([draw.eta for draw in draw_weights(engine, response, NU2, known, 4000, make_key(3))])
    P = np.eye(4) / NU2 + before + (both * weight).T @ both / 0.09
    learned = carry_over(engine, response, NU2, known, eta)
    np.testing.assert_allclose(learned.precision[:, 0], (P - np.eye(4) / NU2)[np.tril_indices(4)])
    np.testing.assert_allclose(np.linalg.solve(P, learned.shift[:, 0]), eta[:, 0].mean(axis=0))
    mean = np.linalg.solve(P, pull + (both.T @ (weight * (y - offset)) / 0.09).ravel())
    sd = np.sqrt(np.diag(np.linalg.inv(P)))
    assert (np.abs(eta[:, 0].mean(axis=0) - mean) / (sd / np.sqrt(4000))).max() < 4
    np.testing.assert_allclose(eta[:, 0].std(axis=0), sd, rtol=0.06)


def test_calibration_makes_probabilities_better_and_intervals_wider(corpus):
    run = {"c": 50, "words": False, "burn_in": 60, "n_draws": 20, "n_chains": 1, "random_state": 0}
    sure = SLDAClassifier(4, calibrate=False, **run).fit(corpus.X[:200], corpus.y[:200])
    honest = SLDAClassifier(4, **run).fit(corpus.X[:200], corpus.y[:200])
    np.testing.assert_array_equal(sure.prediction_draws_, sure.training_draws_)
    np.testing.assert_array_equal(sure.coef_draws_, sure.training_draws_[0])
    losses = [log_loss(corpus.y[200:], model.predict_proba(corpus.X[200:])) for model in (sure, honest)]
    assert losses[1] < 0.9 * losses[0]
    narrow, wide = (np.mean(np.subtract(*model.coef_interval(0.9)[::-1])) for model in (sure, honest))
    assert wide > 2 * narrow
    lower, upper = honest.predict_interval(corpus.X[200:], 0.9)
    p = corpus.probability[200:]
    assert 0.75 < np.mean((lower[:, 1] <= p) & (p <= upper[:, 1])) <= 0.99
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()


def test_priors_are_learned():
    corpus = make_corpus(n_docs=600, n_topics=4, alpha=1.0, beta=0.05, random_state=2)
    start = {"alpha": 8.0, "beta": 0.5, "burn_in": 150, "n_draws": 10, "random_state": 0}
    model = LDA(4, optimize_priors=True, **start).fit(corpus.X)
    assert 0.7 < model.alpha_.sum() < 1.4 and 0.04 < model.beta_[0] < 0.065  # 1.0 and 0.05 were planted
    fixed = LDA(4, **start).fit(corpus.X)
    assert model.perplexity(corpus.X) < fixed.perplexity(corpus.X)
    np.testing.assert_allclose(fixed.alpha_, 2.0)


def test_documents_are_left_out_alone_or_together(monkeypatch):
    """Words that end one document and begin the next one, repeated words, and no words at all."""
    docs = [[5], [5, 5], [], [5, 5, 7], [7], [7, 7], [0, 7], [], [0], [0, 0, 0, 1, 5], [5]]
    rng, found = np.random.default_rng(3), []
    z = [rng.integers(0, 3, len(words)).tolist() for words in docs]
    target, priors = make_target(np.zeros((11, 1)), np.ones((11, 1))), Priors(np.full(3, 0.3), 0.1, 1.0)
    for most in (shards.BATCH_NUMBERS, 24, 1):  # all of them, some, one at a time
        monkeypatch.setattr(shards, "BATCH_NUMBERS", most)
        plan, source = plan_of(docs, 8, Logistic(1.0), target, priors, "delayed", 2)
        engine = engine_of(plan, source, flat(docs, z)[1], Logistic(1.0), target.y, np.zeros((1, 3)))
        engine.counts.keep()
        engine.leave_out(priors, 12, make_key(4))
        found.append(engine.left_out_omega(np.eye(3)))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.parametrize("n_groups", [0, 2])
def test_what_comes_after_a_chain_has_its_last_priors(n_groups, monkeypatch):
    """Shares are those of a chain that had the learned alpha and beta from the start."""
    rng, calls = np.random.default_rng(0), []
    docs = [sorted(rng.integers(0, 9, n)) for n in rng.integers(1, 9, 24)]
    beside = np.eye(2)[rng.integers(0, 2, 24)] if n_groups else np.zeros((24, 0))
    target = make_target(rng.integers(0, 2, (24, 1)) * 1.0, np.ones((24, 1)), None, beside)
    priors = Priors(np.array([2.0, 0.1, 0.7]), 0.4, 1.5)
    plan, source = plan_of(
        docs, 9, Logistic(3.0), target, priors, "delayed", 2, learn=True, burn_in=6, n_groups=n_groups
    )
    unseen = Unseen(target.weight, np.arange(24) % 2 == 0, source, np.ones(24, bool), None)
    leave_out = ThreadEngine.leave_out
    monkeypatch.setattr(calibration, "TOPICS_AT_ONCE", 2)
    monkeypatch.setattr(ThreadEngine, "leave_out", lambda self, *more: calls.append(more[0]) or leave_out(self, *more))
    with Chain(plan, 0, ThreadEngine(plan, source, 1)) as chain:
        for _ in range(8):
            chain.step()
        first = calibrate(chain, 6, unseen, lambda: None)
        assert calls[0] is chain.priors and not np.isclose(chain.priors.alpha, priors.alpha).any()
        topics = infer_shares(source.tokens, calibration.chain_topics(chain), 6, make_key(plan.seed, 0, PREDICT), 1)
        counts = chain.engine.counts.summed / 2 + chain.priors.beta
        known = fixed_topics(counts / counts.sum(axis=0), chain.priors.alpha)
        np.testing.assert_array_equal(topics, infer_shares(source.tokens, known, 6, make_key(plan.seed, 0, PREDICT), 1))
        np.testing.assert_array_equal(first.shares[12:], topics)
        np.testing.assert_array_equal(first.shares[:12], chain.engine.left_out_omega(np.eye(3))[unseen.fold])


@pytest.mark.parametrize("n_groups", [0, 2])
def test_later_batches_know_training_weights_as_the_last_iteration_does(n_groups):
    """Their curvature under the last variance of ratings, c included, and that of groups; the mean of the draws."""
    rng = np.random.default_rng(1)
    docs = [sorted(rng.integers(0, 9, n)) for n in rng.integers(1, 9, 24)]
    beside = np.eye(2)[rng.integers(0, 2, 24)] if n_groups else np.zeros((24, 0))
    target = make_target(rng.normal(size=(24, 1)), 2.0 ** rng.integers(-1, 2, (24, 1)), None, beside)
    priors, response = Priors(np.full(3, 0.5), 0.4, 1.5), Gaussian(3.0, np.ones(1))
    plan, source = plan_of(docs, 9, response, target, priors, "delayed", 2, burn_in=2, n_groups=n_groups)
    with Chain(plan, 0, ThreadEngine(plan, source, 1)) as chain:
        for _ in range(6):
            chain.step()
        known = calibration.own_weights(chain).known.training
        z = np.split(z_of(chain.engine), source.tokens.doc_start[1:-1])
    x = np.hstack([[np.bincount(own, minlength=3) / len(own) for own in z], beside])
    P = 3.0 / chain.response.sigma2 * (x * target.weight).T @ x
    np.testing.assert_allclose(known.precision[:, 0], P[np.tril_indices(len(P))])
    nu2 = np.r_[np.full(3, 1.5), np.full(n_groups, chain.variance[0] if n_groups else 0.0)]
    mean = np.mean(chain.eta, axis=0)[0]
    np.testing.assert_allclose(np.linalg.solve(P + np.diag(1.0 / nu2), known.shift[:, 0]), mean)


def test_the_prior_variance_of_groups_that_is_carried_over():
    """That of the other weights as it is, and the geometric mean of its draws."""
    draws = [calibration.WeightDraw(None, None, np.array([[100.0, v], [100.0, 2.0 * v]])) for v in (0.5, 1.0, 8.0)]
    mean = 4.0 ** (1 / 3)
    np.testing.assert_allclose(calibration.mean_variance(draws), [[100.0, mean], [100.0, 2.0 * mean]])
    assert calibration.mean_variance([calibration.WeightDraw(None, None, 25.0)] * 2) == 25.0
