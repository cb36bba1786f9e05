"""On a GPU: more lanes than the simulator has, the exact posterior, the same bits, and every response.

`pytest -m gpu` where there is one; everywhere else these are skipped.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from test_contract import device_order, only_sparse
from test_posterior import CASES, check_exactly

import naive
from small import DEVICE, engine_of, flat, plan_of, z_of
from supertopic import (
    LDA,
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDACrowdRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
)
from supertopic.corpus.source import make_target
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import document_streams, make_key, normals
from supertopic.model.responses import Gaussian, Logistic
from supertopic.model.state import Priors, fixed_topics
from supertopic.sampling.gibbs import draw_weights
from supertopic.sampling.gradients import solve
from supertopic.sampling.plan import MATRIX_UP_TO, SWEEP, TOPICS
from supertopic.sampling.threads import ThreadEngine

if DEVICE:
    from supertopic.kernels.cuda.device import get

pytestmark = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(DEVICE != "GPU", reason="there is no GPU")
LANES = [(1, 37, 70), (4, 37, 70), (8, 37, 70), (16, 132, 12), (32, 260, 6)] if DEVICE == "GPU" else [(1, 6, 5)]


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize(("n_lanes", "n_topics", "n_docs"), LANES)
@pytest.mark.parametrize("n_columns", [0, 1, 3])
@pytest.mark.parametrize("loud", [1.0, 300.0])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what overflows in the simulator is taken again
def test_any_number_of_lanes(n_lanes, n_topics, n_docs, n_columns, loud, monkeypatch):
    """z is what the definition says on the same uniforms, also where scores do not fit into float32."""
    from supertopic.sampling import cuda as gpu
    from supertopic.sampling import cuda_documents

    def make_shape(n_topics, n_columns, quick=False):
        return cuda_documents.Shape(n_topics, n_columns, n_lanes, 64 if DEVICE == "GPU" else 4)

    monkeypatch.setattr(cuda_documents, "make_shape", make_shape)
    monkeypatch.setattr(gpu, "make_shape", make_shape)
    rng, n_words = np.random.default_rng(n_lanes), 50
    lengths = rng.integers(1, 60 if n_docs == 70 else 20, n_docs)
    docs = [sorted(rng.integers(0, n_words, n).tolist()) for n in lengths]
    z = [rng.integers(0, n_topics, n).tolist() for n in lengths]
    target = make_target(rng.integers(0, 2, (n_docs, n_columns)).astype(float), np.ones((n_docs, n_columns)))
    priors, response = Priors(rng.uniform(0.05, 0.5, n_topics), 0.1, 1.0), Logistic(2.0)
    eta, lam = rng.normal(size=(n_columns, n_topics)) * loud, rng.uniform(0.1, 1.0, (n_docs, n_columns))
    plan, source = plan_of(docs, n_words, response, target, priors, "delayed", 1, device="cuda")
    engine = engine_of(plan, source, [k for topics in z for k in topics], response, lam, eta)
    key = make_key(1)
    kappa, streams = response.kappa(target)[0], document_streams(make_key(key, SWEEP), 0, n_docs)
    expected = naive.sweep(
        docs, z, engine.counts.word_topic.copy(), None, eta, kappa, lam, priors.alpha, 0.1, streams, False,
        device_order(n_lanes),
    )  # fmt: skip
    engine.sweep(eta, priors, key, False)
    found = np.split(z_of(engine), np.cumsum(lengths)[:-1])
    same = [a.tolist() == b for a, b in zip(found, expected, strict=True)]
    assert np.mean(same) > 0.95  # a number that sits on the edge of two topics leads a document another way


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize("n_columns", [0, 1, 3])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_long_documents_are_cut_on_a_device(n_columns, monkeypatch):
    """Parts see each other as they were before a sweep, and sums have each document once. Exact samplers cut none."""
    from supertopic.sampling import cuda_documents

    most, n_docs, n_words, n_topics = (40, 60, 50, 12) if DEVICE == "GPU" else (4, 6, 9, 5)
    monkeypatch.setattr(cuda_documents, "PART", most)
    rng = np.random.default_rng(n_columns)
    lengths = rng.integers(0, 5 * most, n_docs)
    docs = [sorted(rng.integers(0, n_words, n).tolist()) for n in lengths]
    z = [rng.integers(0, n_topics, n).tolist() for n in lengths]
    target = make_target(
        rng.integers(0, 2, (n_docs, n_columns)).astype(float), rng.choice([0.0, 1.0, 2.0], (n_docs, n_columns)),
        rng.normal(size=(n_docs, n_columns)), rng.normal(size=(n_docs, 1)),
    )  # fmt: skip
    priors, response = Priors(rng.uniform(0.05, 0.5, n_topics), 0.1, 1.0), Logistic(2.0)
    eta = rng.normal(size=(n_columns, n_topics + 1))
    drawn = response.draw(target, rng.normal(size=(n_docs, n_columns)), make_key(3), 0)
    plan, source = plan_of(docs, n_words, response, target, priors, "delayed", 2, device="cuda")
    flat_z = [k for topics in z for k in topics]
    engine = engine_of(plan, source, flat_z, response, drawn, eta)
    assert all(shard.rows.n_cut > 0 for shard in engine.shards)
    exact = engine_of(plan._replace(sampler="drawn"), source, flat_z, response, drawn, eta)
    assert all(shard.rows.n_cut == 0 for shard in exact.shards)
    known, summed = target.covariates @ eta[:, n_topics:].T, 0.0
    for i in range(2):
        key, count = make_key(1, i), engine.counts.word_topic.copy()
        expected = naive.sweep(
            docs, z, count, None, eta[:, :n_topics], drawn.kappa - drawn.lam * known, drawn.lam, priors.alpha, 0.1,
            document_streams(make_key(key, SWEEP), 0, n_docs), False, device_order(1), most,
        )  # fmt: skip
        engine.sweep(eta, priors, key, True)
        found = np.split(z_of(engine), np.cumsum(lengths)[:-1])
        same = [a.tolist() == b for a, b in zip(found, expected, strict=True)]
        assert np.mean(same) > 0.9
        z = [part.tolist() for part in found]
        zbar = naive.zbars(z, n_topics)
        summed = summed + zbar * lengths[:, None]
        np.testing.assert_allclose(engine.topic_counts(), summed, atol=1e-4)
        x = np.hstack([zbar, target.covariates])
        omega = np.concatenate([shard.rows.get(shard.omega) for shard in engine.shards])
        np.testing.assert_allclose(omega, x @ eta.T + target.offset, atol=1e-9)
        statistics = engine.statistics()
        np.testing.assert_allclose(statistics.shift, x.T @ drawn.kappa, atol=1e-9)
        precision = np.einsum("dr,dj,dk->jkr", drawn.lam, x, x)[np.tril_indices(n_topics + 1)]
        np.testing.assert_allclose(statistics.precision, precision, atol=1e-9)
    assert engine.log_documents(priors.alpha) == pytest.approx(naive.log_documents(z, priors.alpha))
    flat_z = [k for own in z for k in own]
    pair = [
        engine_of(plan._replace(sampler=name), source, flat_z, response, drawn, eta) for name in ("delayed", "drawn")
    ]
    np.testing.assert_allclose(*(other.alpha_sums(priors.alpha) for other in pair))
    np.testing.assert_allclose(*(other.residuals() for other in pair))
    for other in pair:
        other.counts.keep()
        other.leave_out(priors, 4, make_key(5))
    np.testing.assert_array_equal(*(other.left_out_omega(np.eye(n_topics)) for other in pair))


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
def test_new_long_documents_are_cut_on_a_device(monkeypatch):
    """Shares of a long document are those of its words, alone or beside others, and the draws are as many."""
    from supertopic.sampling import cuda_documents
    from supertopic.sampling.new_documents import draw_omegas, freeze, infer_shares

    most = 40 if DEVICE == "GPU" else 5
    monkeypatch.setattr(cuda_documents, "PART", most)
    phi = np.array([[0.97, 0.02, 0.01], [0.02, 0.96, 0.02], [0.01, 0.02, 0.97]])  # words say it nearly
    topics = freeze(fixed_topics(phi, np.full(3, 0.1)), "cuda")
    docs = [[0] * 3 * most + [1] * most, [2], [], [0] * most + [1] * most + [2] * 2 * most, [1] * 3]
    tokens = flat(docs, [[]])[0]
    shares = infer_shares(tokens, topics, 8, make_key(2), 1)
    np.testing.assert_allclose(shares, naive.zbars(docs, 3), atol=0.12)
    np.testing.assert_allclose(shares.sum(axis=1), [1, 1, 0, 1, 1], atol=1e-6)
    alone = infer_shares(flat(docs[3:4], [[]])[0], topics, 8, make_key(2), 1)
    np.testing.assert_array_equal(alone[0], shares[3])
    eta = np.array([[[1.0, 2.0, 4.0]]])
    omega = draw_omegas(tokens, topics, 8, eta, make_key(2))
    assert omega.shape == (4, 5, 1)
    np.testing.assert_allclose(omega.mean(axis=0)[:, 0], shares @ eta[0, 0], atol=1e-5)


SPARSE = [(37, 60), (330, 30), (2100, 8)] if DEVICE == "GPU" else [(6, 5), (9, 5)]


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize(("n_topics", "n_docs"), SPARSE)
@pytest.mark.parametrize("n_columns", [0, 1, 3])
@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_sparse_sampler_on_a_device(n_topics, n_docs, n_columns, sampler, monkeypatch):
    """z, counts, omega and tallies are what the definition says on the same uniforms, sweep after sweep."""
    only_sparse(monkeypatch)
    rng, n_words = np.random.default_rng(n_topics + n_columns), 12
    lengths = rng.integers(0, 90 if DEVICE == "GPU" else 14, n_docs)
    docs = [sorted(rng.integers(0, n_words, n).tolist()) for n in lengths]
    z = [rng.integers(0, n_topics, n).tolist() for n in lengths]
    target = make_target(
        rng.integers(0, 2, (n_docs, n_columns)).astype(float), np.ones((n_docs, n_columns)),
        covariates=rng.normal(size=(n_docs, 1)),
    )  # fmt: skip
    priors, response = Priors(rng.uniform(0.05, 0.5, n_topics), 0.1, 1.0), Logistic(8.0)
    eta, lam = 3.0 * rng.normal(size=(n_columns, n_topics + 1)), rng.uniform(0.1, 1.0, (n_docs, n_columns))
    plan, source = plan_of(docs, n_words, response, target, priors, sampler, 1, device="cuda")
    engine = engine_of(plan, source, [k for topics in z for k in topics], response, lam, eta)
    kappa = response.kappa(target)[0] - lam * (target.covariates @ eta[:, n_topics:].T)
    n_lanes, kinds = 32 if DEVICE == "GPU" else 1, set()
    for number in range(3):
        key, count = make_key(1, number), engine.counts.word_topic.copy()
        phi, streams = None, document_streams(make_key(key, SWEEP), 0, n_docs)
        if sampler == "drawn":
            engine.counts.draw_phi(priors.beta, make_key(key, TOPICS))
            phi = get(engine.counts.table).reshape(n_words, -1)[:, :n_topics].astype(float)
        expected, tally = naive.sweep_sparse(
            docs, z, count, phi, eta[:, :n_topics], kappa, lam, priors.alpha, 0.1, streams, n_lanes, lambda k: k
        )
        engine.sweep(eta, priors, key, number > 0)
        found = np.split(z_of(engine), np.cumsum(lengths)[:-1])
        same = [a.tolist() == b for a, b in zip(found, expected, strict=True)]
        assert np.mean(same) > (0.8 if DEVICE == "GPU" else 0.99)  # as above
        if all(same):
            assert engine.shards[0].tally.copy_to_host().tolist() == [
                sum(tally[way] for way in ("present", "smooth", "refused")), tally["present"] + tally["smooth"]
            ]  # fmt: skip
        z = [part.tolist() for part in found]
        count = np.zeros_like(count)
        np.add.at(count, (np.concatenate([np.array(words, int) for words in docs]), np.concatenate(found)), 1)
        np.testing.assert_array_equal(engine.counts.word_topic, count)
        omega = naive.zbars(z, n_topics) @ eta[:, :n_topics].T + target.covariates @ eta[:, n_topics:].T
        np.testing.assert_allclose(engine.shards[0].rows.get(engine.shards[0].omega), omega, atol=1e-9)
        kinds |= {way for way, n in tally.items() if n}
    assert engine.counts.n_draws == 2
    assert kinds >= {"present", "smooth", *(["refused"] if n_columns else [])}


@needs_gpu
@pytest.mark.parametrize(("case", "response", "log_psi", "alpha", "more"), CASES)
def test_exact_posterior_of_the_sparse_sampler(case, response, log_psi, alpha, more, monkeypatch):
    only_sparse(monkeypatch)
    check_exactly("drawn", case, response, log_psi, alpha, more, "cuda", 1000)


@needs_gpu
@pytest.mark.parametrize(("case", "response", "log_psi", "alpha", "more"), CASES)
def test_exact_posterior(case, response, log_psi, alpha, more):
    check_exactly("drawn", case, response, log_psi, alpha, more, "cuda", 1000)


MODELS = {
    "LDA": (LDA, None),
    "classes": (SLDAClassifier, lambda corpus: corpus.doc_topic.argmax(axis=1)),
    "sticks": (
        lambda **run: SLDAClassifier(multiclass="stick_breaking", **run),
        lambda corpus: corpus.doc_topic.argmax(1),
    ),
    "labels": (SLDAClassifier, lambda corpus: (corpus.doc_topic > 0.3).astype(int)),
    "max-margin": (MedLDAClassifier, lambda corpus: corpus.doc_topic.argmax(axis=1)),
    "ratings": (SLDARegressor, lambda corpus: corpus.doc_topic @ [1.0, 2.0, 4.0]),
    "grades": (SLDAOrdinalClassifier, lambda corpus: np.digitize(corpus.doc_topic @ [1.0, 2.0, 4.0], [1.6, 2.2, 3.2])),
    "times": (SLDASurvivalRegressor, lambda corpus: np.exp(corpus.doc_topic @ [1.0, 2.0, 4.0])),
    "periods": (
        lambda **run: SLDASurvivalRegressor(effects="by_period", **run),
        lambda corpus: np.exp(corpus.doc_topic @ [1.0, 2.0, 4.0]),
    ),
    "raters": (SLDACrowdClassifier, lambda corpus: corpus.doc_topic.argmax(axis=1)[:, None] + [0.0, 0.0]),
    "rated": (SLDACrowdRegressor, lambda corpus: (corpus.doc_topic @ [1.0, 2.0, 4.0])[:, None] + [0.0, 1.0]),
    "counts": (SLDACountRegressor, lambda corpus: np.rint(corpus.doc_topic @ [1.0, 5.0, 20.0])),
}


@needs_gpu
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
def test_every_response_and_the_same_bits_twice(name, sampler):
    kind, respond = MODELS[name]
    corpus = make_corpus(n_docs=300, n_topics=3, random_state=0)
    run = {"n_topics": 5, "n_chains": 2, "burn_in": 40, "n_draws": 10, "random_state": 0, "sampler": sampler}
    y = respond(corpus) if respond else None
    first, again = (kind(device="cuda", **run).fit(corpus.X, y) for _ in range(2))
    for one, other in zip(first.posterior_.topics, again.posterior_.topics, strict=True):
        np.testing.assert_array_equal(one.word_topic, other.word_topic)
        np.testing.assert_array_equal(one.training, other.training)
    np.testing.assert_array_equal(first.log_joint_, again.log_joint_)
    np.testing.assert_array_equal(first.transform(corpus.X[:50]), again.transform(corpus.X[:50]))
    alone = first.transform(corpus.X[:7])
    np.testing.assert_array_equal(alone, first.transform(corpus.X[:50])[:7])  # whatever is beside it
    on_device = first.transform(corpus.X)
    on_cpu = first.set_params(device="cpu").transform(corpus.X)
    first.posterior_ = replace(first.posterior_, seed=first.seed_ + 1)
    other = first.transform(corpus.X)  # other draws of the same distribution
    assert np.abs(on_device - on_cpu).mean() < 1.2 * np.abs(other - on_cpu).mean()
    if y is not None:
        cpu = kind(**run).fit(corpus.X, y).score(corpus.X, y)
        assert again.score(corpus.X, y) > cpu - 0.1
        assert again.set_params(device="cpu").score(corpus.X, y) > cpu - 0.1


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_device_knows_pseudo_counts(sampler):
    """They are in the counts and stay, the words' density is given them, and documents start from them."""
    rng, n_words = np.random.default_rng(0), 6
    docs = [
        sorted(rng.integers(0, 3, 6).tolist()) if d % 2 else sorted(rng.integers(3, 6, 6).tolist()) for d in range(6)
    ]
    pseudo_counts = np.zeros((n_words, 2), np.int32)
    pseudo_counts[:3, 0] = pseudo_counts[3:, 1] = 200
    y = np.arange(6.0)[:, None] % 2
    target, priors = make_target(y, np.ones_like(y)), Priors(np.full(2, 0.1), 0.1, 1.0)
    plan, source = plan_of(docs, n_words, Logistic(1.0), target, priors, sampler, 1, device="cuda")
    engine = ThreadEngine(plan, source, 1, pseudo_counts=pseudo_counts)
    engine.start(make_key(1))
    started = z_of(engine).reshape(6, 6)
    assert (started == 1 - y).mean() > 0.9  # words decide
    for i in range(2):
        engine.sweep(np.zeros((1, 2)), priors, make_key(2, i), False)
        z = z_of(engine)
        count = pseudo_counts.copy()
        np.add.at(count, (np.concatenate(docs), z), 1)
        np.testing.assert_array_equal(engine.counts.word_topic, count)
        np.testing.assert_array_equal(engine.counts.tokens, count.sum(axis=0))
        expected = naive.log_words(docs, z.reshape(6, 6).tolist(), n_words, 2, 0.1, pseudo_counts)
        assert engine.counts.log_words(0.1) == pytest.approx(expected, rel=1e-9)


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
def test_products_on_a_device():
    """Rows of words with weights and slopes, their squares, and a regression on them."""
    from supertopic.inference.blocks import SparseBlock
    from supertopic.inference.ridge import Ridge
    from supertopic.sampling.cuda_products import DeviceBlock
    from supertopic.sampling.pool import Pool

    rng = np.random.default_rng(0)
    n_docs, n_words = (300, 500) if DEVICE == "GPU" else (12, 9)
    x = csr_array(rng.random((n_docs, n_words)) * (rng.random((n_docs, n_words)) < 0.4))
    there, here = DeviceBlock(x), SparseBlock(x, Pool(1))
    weights, slope = rng.normal(size=(n_words, 3)), rng.normal(size=(n_docs, 3))
    for verb, given in (("omega", weights), ("gather", slope), ("gather_squares", slope)):
        np.testing.assert_allclose(getattr(there, verb)(given), getattr(here, verb)(given), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(getattr(there, verb)(given), getattr(there, verb)(given))
    some = slope[:, 0] > 0
    np.testing.assert_allclose(there.select(some).omega(weights), here.omega(weights)[some], rtol=1e-4, atol=1e-5)
    assert there.select(np.zeros(n_docs, bool)).omega(weights).shape == (0, 3)
    target, found = make_target(slope, np.ones_like(slope)), []
    for block in (there, here):
        ridge = Ridge([block], [None], Gaussian(1.0, np.ones(3)), target, target.offset)
        found.append(ridge.theta(ridge.solve([2.0], None, 1e-5))[0])
    np.testing.assert_allclose(*found, atol=1e-3)


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize("n_covariates", [0, 2])
def test_sums_over_lists_on_a_device(n_covariates):
    """The diagonals, products and noise of the precisions, from lists of the topics that each document has."""
    from supertopic.kernels.cuda.device import put
    from supertopic.sampling.cuda_lists import ListSums, make_lists

    rng, (n_docs, n_topics, n_columns) = np.random.default_rng(0), (500, 40, 3) if DEVICE == "GPU" else (8, 5, 2)
    counts = rng.poisson(1.0, (n_docs, n_topics)) * (rng.random((n_docs, n_topics)) < 0.5)
    counts[2] = 0
    wide = np.zeros((n_docs, n_topics + 3), np.float32)
    wide[:, :n_topics] = counts
    inverse, covariates = 1.0 / np.maximum(counts.sum(axis=1), 1), rng.normal(size=(n_docs, n_covariates)) * 100.0
    lam, kappa = rng.gamma(1.0, size=(2, n_docs, n_columns)) * [1e-3, 1.0, 1e3][:n_columns]
    lam[3], kappa[:, 0] = 0.0, -kappa[:, 0]
    numbers, there = np.arange(7, 7 + n_docs, dtype=np.uint64), [put(array) for array in (covariates, lam, kappa)]
    lists = make_lists(put(wide.reshape(-1)), wide.shape[1], n_topics, put(inverse))
    sums, x = ListSums(lists, n_topics, *there, put(numbers)), np.hstack([counts * inverse[:, None], covariates])
    found, close = sums.statistics(), {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(found.precision, (x * x).T @ lam, **close)
    np.testing.assert_allclose(found.shift, x.T @ kappa, **close)
    for columns in (np.arange(n_columns), np.array([1])):
        v = rng.normal(size=(x.shape[1], len(columns)))
        expected = np.stack([x.T @ (lam[:, r] * (x @ v[:, i])) for i, r in enumerate(columns)], axis=1)
        for _ in range(3):  # launched, captured, and as a graph
            np.testing.assert_allclose(sums.products(v, columns), expected, rtol=1e-8, atol=1e-9 * abs(expected).max())
    key = make_key(5)
    e = normals((7 + n_docs, n_columns), key)[7:]
    np.testing.assert_allclose(sums.noise(key), x.T @ (np.sqrt(lam) * e), **close)
    prior = rng.gamma(2.0, size=(x.shape[1], n_columns))
    right, near = rng.normal(size=prior.shape), rng.normal(size=prior.shape)
    for start in (None, near, near):
        solved = sums.solve(prior + found.precision, prior, right, start)
        expected = solve(sums.products, prior + found.precision, prior, right, start)
        np.testing.assert_allclose(solved, expected, atol=1e-6 * abs(expected).max())
    assert (sums.solve(prior + found.precision, prior, 0.0 * right, None) == 0.0).all()
    with pytest.raises(np.linalg.LinAlgError, match="did not find"):
        sums.solve(prior + found.precision, prior, np.nan * right, None)
    eta, omega = rng.normal(size=(n_columns, x.shape[1])), put(np.zeros(lam.shape))
    sums.omegas(eta, there[0], put(np.ones((n_docs, 1)) * np.ones(n_columns)), omega)
    np.testing.assert_allclose(get(omega), x @ eta.T + 1.0, rtol=1e-12, atol=1e-9)


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_chain_on_a_device_draws_weights_without_a_matrix(monkeypatch):
    """The same eta as a matrix gives, from lists that follow z: at the start, after dense and after sparse sweeps."""
    from supertopic.kernels.cuda import layout
    from supertopic.sampling import cuda_counts

    assert layout.SPARSE_FROM == MATRIX_UP_TO + 1  # those that do so have lists
    monkeypatch.setattr(layout, "SPARSE_FROM", 1)
    monkeypatch.setattr(cuda_counts, "DENSE", 1)
    rng, n_topics = np.random.default_rng(0), 260 if DEVICE == "GPU" else 6  # a row of 32 lanes
    docs = [sorted(rng.integers(0, 9, n).tolist()) for n in rng.integers(0, 12, 10)]
    y = rng.integers(0, 2, (10, 2)).astype(float)
    target = make_target(y, np.ones_like(y), covariates=rng.normal(size=(10, 1)))
    priors, response = Priors(np.full(n_topics, 0.2), 0.1, 1.0), Logistic(4.0)
    engines = []
    for without in (False, True):
        plan, source = plan_of(docs, 9, response, target, priors, "delayed", 1, device="cuda", quicker_without=without)
        engines.append(ThreadEngine(plan, source, 1))
        engines[-1].start(make_key(3))
    matrix, lists = engines
    packed, diagonal = matrix.statistics(), lists.statistics()
    for i in range(3):
        assert diagonal.is_diagonal and not packed.is_diagonal
        np.testing.assert_allclose(diagonal.precision, packed.precision[packed.diagonal], atol=1e-12)
        np.testing.assert_allclose(diagonal.shift, packed.shift, atol=1e-12)
        key, last = make_key(4, i), rng.normal(size=(2, n_topics + 1))
        right = packed.shift + lists.noise(key)
        found = lists.solve(1.0 + diagonal.precision, np.ones(right.shape), right)
        for r in range(2):
            A = np.zeros((n_topics + 1, n_topics + 1))
            A[np.tril_indices(n_topics + 1)] = packed.precision[:, r]
            A += np.tril(A, -1).T + np.eye(n_topics + 1)
            np.testing.assert_allclose(found[:, r], np.linalg.solve(A, right[:, r]), atol=1e-4)
        draws = [draw_weights(lists, diagonal, None, 1.0, key, near) for near in (None, last)]
        np.testing.assert_allclose(*draws, atol=1e-3)
        eta = draw_weights(matrix, packed, None, 1.0, key)
        packed, diagonal = (engine.sweep(eta, priors, key, False, response) for engine in engines)
    lists.use_matrix()
    assert not lists.statistics().is_diagonal
