"""The contract of engines and shards: every verb against its definition, and bit for bit against one thread.

An engine is added by naming it in ENGINES. Data that crosses the contract is pickled on its way here and comes in
read-only, as it would from another process. A GPU is there where the machine has one, or Numba's simulator of one; its
bits are its own.
"""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln

import naive
from small import DEVICE, ERRORS, Machines, engine_of, flat, lam_of, plan_of, restore, seal, states_of, z_of
from supertopic.corpus.source import Arrays, make_target
from supertopic.inference.checkpoint import plain
from supertopic.kernels.changes import decode, encode
from supertopic.kernels.counts import log_words, private_topics
from supertopic.kernels.draws import document_streams, make_key
from supertopic.model.responses import (
    CrowdGaussian,
    CrowdLogistic,
    Gaussian,
    Hinge,
    Logistic,
    NegativeBinomial,
    Ordinal,
    PeriodHazards,
    SharedHazards,
)
from supertopic.model.state import Priors, Statistics, fixed_topics
from supertopic.sampling import counts as topics
from supertopic.sampling import exchange as net
from supertopic.sampling import plan as plans
from supertopic.sampling.engine import Engine
from supertopic.sampling.gibbs import iterate, log_joint
from supertopic.sampling.new_documents import draw_omegas, freeze, infer_shares
from supertopic.sampling.plan import LAMBDA, SWEEP, TOPICS
from supertopic.sampling.threads import LocalShards, PairwiseSum, ThreadEngine


class Sealed(ThreadEngine):
    """Threads whose data is pickled and read-only."""


def sealed(method):
    """The same method, with arguments as they would come from another process."""
    return lambda self, *arguments: method(self, *(seal(value) for value in arguments))


for name in [name for name, member in vars(Engine).items() if callable(member) and not name.startswith("_")]:
    setattr(Sealed, name, sealed(getattr(ThreadEngine, name)))


class Probe(Logistic):
    """A response that crosses the contract like any other, and brings omega back."""

    def log_likelihood(self, target, omega):
        return omega


def on_ray(plan, source, n_threads, pseudo_counts=None):
    from supertopic.sampling.ray_engine import RayEngine

    return RayEngine(plan, source, POOL[0].workers, pseudo_counts)


POOL = []  # the workers of this run's tests
ENGINES = {"one thread": (ThreadEngine, 1), "three threads": (ThreadEngine, 3), "sealed": (Sealed, 2)}
ENGINES |= {"device": (ThreadEngine, 1), "sparse device": (ThreadEngine, 1)} if DEVICE else {}
ENGINES |= {"ray": (on_ray, 0)}
SAMPLERS = ["collapsed", "delayed", "drawn"]
N_WORDS, N_TOPICS, N_COLUMNS, BETA = 20, 5, 2, 0.1
PRIORS = Priors(np.array([0.3, 0.2, 0.5, 0.1, 0.4]), BETA, 1.5)
LENGTHS = [7, 1, 0, 30, 12, 3, 25, 9, 0, 14, 2]
THRESHOLDS, LIFE = np.array([-1.2, 0.3, 1.1]), np.array([[9.0, 6.0, 3.0], [3.0, 2.0, 1.0]])
ONE_COLUMN, RATERS = ("ordinal", "times", "rated"), ("raters", "rated")
LAYOUT = ("ordinal", "times", *RATERS)  # whose y is not beside omega
NAMES, CONFUSION = np.array(["ann", "ben"], object), np.full((2, 3, 3), 0.2) + 0.4 * np.eye(3)
RESPONSES = {
    "logistic": Logistic(3.0),
    "hinge": Hinge(2.0, 1.5),
    "Gaussian": Gaussian(2.0, np.array([0.5, 2.0])),
    "negative binomial": NegativeBinomial(1.5, np.array([0.7, 3.0])),
    "ordinal": Ordinal(1.5, classes=np.arange(4), base=THRESHOLDS, thresholds=THRESHOLDS, anchor=1),
    "times": SharedHazards(1.5, edges=np.arange(1.0, 4), life=LIFE, base=THRESHOLDS, thresholds=THRESHOLDS, anchor=1),
    "periods": PeriodHazards(1.5, edges=np.arange(1.0, 3), life=LIFE[:, :2]),
    "raters": CrowdLogistic(
        2.0, classes=np.arange(3), raters=NAMES, n_answers=np.ones(2), base=CONFUSION, confusion=CONFUSION.ravel()
    ),
    "rated": CrowdGaussian(
        1.0,
        np.array([2.0]),
        drawn=True,
        names=np.array(["y"], object),
        raters=NAMES,
        n_answers=np.ones(2),
        base=np.ones((2, 2)),
        bias=np.array([0.3, -0.2]),
        precision=np.array([4.0, 1.5]),
    ),
}
KEY = make_key(11, 3)


def raters_layout(kind, rng, n_docs):
    """y as a response with raters reads it."""
    second = rng.random(n_docs) < 0.5
    if kind == "rated":
        gold, ids = (
            np.where(np.arange(n_docs) < 2, 0.7, np.nan),
            np.column_stack([np.zeros(n_docs), 2.0 * second - 1.0]),
        )
        return np.column_stack([gold, ids, rng.normal(size=(n_docs, 2))])
    gold, answers = np.where(np.arange(n_docs) < 2, 1.0, -1.0), rng.integers(0, 3, (n_docs, 2)) + [0.0, 3.0]
    answers[~second, 1] = -1.0
    return np.column_stack([gold, np.full((n_docs, 3), 1 / 3), answers])


class Problem:
    """A random corpus with all that a response may have, and an engine that holds it."""

    def __init__(self, engine="one thread", kind="logistic", sampler="delayed"):
        rng = np.random.default_rng(5)
        self.docs = [sorted(rng.integers(0, N_WORDS, n).tolist()) for n in LENGTHS]
        self.z = [rng.integers(0, N_TOPICS, n).tolist() for n in LENGTHS]
        n_docs, self.response = len(LENGTHS), RESPONSES[kind]
        n_columns = 1 if kind in ONE_COLUMN else 3 if kind == "raters" else N_COLUMNS
        y = rng.integers(0, 4 if kind in ONE_COLUMN else 2, (n_docs, n_columns)).astype(float)
        if kind == "times":
            y += 0.5 * ((y < 3) & (rng.random(y.shape) < 0.6))
        elif kind not in ("logistic", "hinge", "ordinal", "periods"):
            y *= 3.0
        weight = rng.choice([0.0, 1.0, 2.5], (n_docs, n_columns))
        if kind in RATERS:  # the gold label, what answers alone say, the answers: of both raters, or of one
            y, weight = raters_layout(kind, rng, n_docs), np.ceil(np.repeat(weight[:, :1], n_columns, axis=1))
        self.target = make_target(y, weight, rng.normal(size=(n_docs, 1)), rng.normal(size=(n_docs, 1)))
        self.eta = rng.normal(size=(n_columns, N_TOPICS + 1))
        n_shards = 1 if sampler == "collapsed" else 4
        self.on_device = "device" in engine
        device = {"device": "cuda"} if self.on_device else {}
        if self.on_device and sampler == "collapsed":
            pytest.skip("a device has no collapsed sampler")
        if engine == "sparse device" and kind != "logistic":
            pytest.skip("how z is drawn does not matter to responses")
        self.plan, source = plan_of(self.docs, N_WORDS, self.response, self.target, PRIORS, sampler, n_shards, **device)
        if kind in ("hinge", "Gaussian") and n_shards == 4:  # statistics of two shards in one sum
            self.plan = self.plan._replace(groups=(slice(0, 2), slice(2, 4)))
        self.quadratic = self.response.draw(self.target, self.omega(), make_key(1), 0)
        cls, n_threads = ENGINES[engine]
        flat_z = [k for topics in self.z for k in topics]
        self.engine = engine_of(self.plan, source, flat_z, self.response, self.quadratic, self.eta, n_threads, cls)

    @property
    def x(self):
        return np.hstack([naive.zbars(self.z, N_TOPICS), self.target.covariates])

    def omega(self, x=None):
        return (self.x if x is None else x) @ self.eta.T + self.target.offset

    def take_z(self):
        self.z = [part.tolist() for part in np.split(z_of(self.engine), np.cumsum(LENGTHS)[:-1])]

    def omegas(self):
        if isinstance(self.engine, LocalShards):
            return np.concatenate([omega_of(shard) for shard in self.engine.shards])
        return np.concatenate([found[0] for found in self.engine.shard_sums("log_likelihoods", [Probe(1.0)])])

    def phi(self, key):
        """The topics that the next sweep draws."""
        drawn, counts = None, self.engine.counts
        if self.on_device:
            counts.draw_phi(BETA, key)
            drawn = counts.table.copy_to_host()
        elif not hasattr(counts, "draw_phi"):
            drawn = counts.ask("draw_phi", BETA, key)
        else:
            drawn = counts.draw_phi(BETA, key)
        return drawn.reshape(N_WORDS, -1)[:, :N_TOPICS].astype(float)

    def left_out(self):
        """The documents' left-out shares."""
        return self.engine.left_out_omega(np.eye(N_TOPICS))


def omega_of(shard):
    return shard.omega if isinstance(shard.omega, np.ndarray) else shard.rows.get(shard.omega)


def only_sparse(monkeypatch):
    """Let few topics be many on a device."""
    from supertopic.kernels.cuda import layout
    from supertopic.sampling import cuda_counts

    monkeypatch.setattr(layout, "SPARSE_FROM", 1)
    monkeypatch.setattr(cuda_counts, "DENSE", 0)


def alone(engine):
    """The engine that another must be equal to, bit for bit."""
    return engine if "device" in engine else "one thread"


def device_order(n_lanes):
    """The order in which a device adds up the topics of a document that has so many lanes."""
    return lambda k: (k // 4 % n_lanes, k)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.ray if name == "ray" else ()) for name in ENGINES])
def engine(request):
    if request.param == "ray":
        POOL[:] = [request.getfixturevalue("ray_pool")]
    if request.param == "sparse device":
        only_sparse(request.getfixturevalue("monkeypatch"))
    return request.param


def test_a_plan_pickles_and_holds_no_documents():
    plan = Problem().plan
    again = pickle.loads(pickle.dumps(plan))
    assert again.slices == plan.slices and plain(again.response) == plain(plan.response) and again.sparse == plan.sparse
    assert len(pickle.dumps(plan)) < 3000


def test_start(engine):
    problem = Problem(engine)
    problem.engine.start(KEY)
    z = z_of(problem.engine)
    assert (np.bincount(z, minlength=N_TOPICS) == problem.engine.counts.tokens).all() and len(set(z.tolist())) == 5
    other = Problem()
    other.engine.start(KEY)
    np.testing.assert_array_equal(z, z_of(other.engine))
    assert problem.engine.counts.word_topic.sum() == sum(LENGTHS)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sweep(engine, sampler):
    """z is what the definition says on the same uniforms; counts, omega and what is kept follow."""
    problem, name = Problem(engine, sampler=sampler), engine
    engine = problem.engine
    count = engine.counts.word_topic[:, :N_TOPICS].copy()
    phi = problem.phi(make_key(KEY, TOPICS)) if sampler == "drawn" else None
    if problem.on_device and sampler == "drawn":
        there = Problem(sampler=sampler).phi(make_key(KEY, TOPICS))
        np.testing.assert_allclose(phi, there, rtol=1e-4)
    kappa, lam = problem.quadratic
    known = problem.target.covariates @ problem.eta[:, N_TOPICS:].T
    about = (
        problem.docs, problem.z, None if sampler == "drawn" else count, phi, problem.eta[:, :N_TOPICS],
        kappa - lam * known, lam, PRIORS.alpha, BETA, document_streams(make_key(KEY, SWEEP), 0, len(LENGTHS)),
    )  # fmt: skip
    if "sparse" in name:
        expected, _ = naive.sweep_sparse(*about, 32 if DEVICE == "GPU" else 1, lambda k: k)
    else:
        order = device_order(1) if problem.on_device else naive.eight_lanes
        expected = naive.sweep(*about, sampler == "collapsed", order)
    engine.sweep(problem.eta, PRIORS, KEY, True)
    assert z_of(engine).tolist() == [k for topics in expected for k in topics]
    problem.take_z()
    np.testing.assert_allclose(problem.omegas(), problem.omega(), atol=1e-12)
    followed = engine.counts.word_topic.copy()
    kept, tokens = engine.counts.summed_counts(), engine.counts.tokens
    lengths = np.array(LENGTHS)[:, None]
    np.testing.assert_allclose(engine.topic_counts(), naive.zbars(problem.z, N_TOPICS) * lengths, atol=1e-5)
    restore(engine, states_of(engine), problem.eta)  # counts anew
    np.testing.assert_array_equal(engine.counts.word_topic, followed)
    np.testing.assert_array_equal(engine.counts.tokens, tokens)
    np.testing.assert_array_equal(kept.word_topic, followed[:, :N_TOPICS])
    assert kept.n_draws == 1 and (kept.tokens == tokens).all()


@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
def test_smooth_is_the_sum_over_topics(engine, sampler, monkeypatch):
    if engine == "ray":
        pytest.skip("its workers do not know that few topics are many here; see the replicas below")
    if "device" in engine:
        pytest.skip("a device has sums of blocks; see test_gpu")
    monkeypatch.setattr(plans, "SPARSE_FROM", 1)
    monkeypatch.setattr(topics, "DENSE", 0)
    counts = Problem(engine, sampler=sampler).engine.counts
    seen = counts.topics(PRIORS, KEY)
    count, mass = counts.word_topic[:, :N_TOPICS], counts.tokens + N_WORDS * BETA
    phi = (count + BETA) / mass if sampler == "delayed" else seen.phi.reshape(N_WORDS, -1)[:, :N_TOPICS]
    np.testing.assert_allclose(seen.smooth, phi @ PRIORS.alpha, rtol=1e-6)
    np.testing.assert_array_equal(seen.smooth, Problem(sampler=sampler).engine.counts.topics(PRIORS, KEY).smooth)


@pytest.mark.parametrize("kind", RESPONSES)
def test_augment_and_statistics(engine, kind):
    problem = Problem(engine, kind)
    response, target, x = problem.response, problem.target, problem.x
    statistics = problem.engine.augment(response, KEY)
    lam = lam_of(problem.engine)
    kappa, drawn = response.draw(target, problem.omegas(), make_key(KEY, LAMBDA), 0)
    np.testing.assert_allclose(lam, drawn, rtol=1e-9 if problem.on_device else 0)
    np.testing.assert_allclose(statistics.shift, x.T @ kappa, atol=1e-10)
    precision = np.einsum("dr,dj,dk->jkr", lam, x, x)[np.tril_indices(N_TOPICS + 1)]
    np.testing.assert_allclose(statistics.precision, precision, atol=1e-10)
    again = Problem(alone(engine), kind).engine.augment(response, KEY)
    np.testing.assert_array_equal(statistics.precision, again.precision)


@pytest.mark.parametrize("kind", RESPONSES)
def test_sums(engine, kind):
    problem = Problem(engine, kind)
    engine, target, omega = problem.engine, problem.target, problem.omega()
    others = [problem.response, problem.response.plain()]
    expected = [other.c * (target.weight * other.log_density(target.y, omega)).sum(axis=0) for other in others]
    np.testing.assert_allclose(engine.log_likelihoods(others), expected)
    own = [other.own_sums(target, omega, KEY, 0) for other in others]
    np.testing.assert_allclose(engine.own_sums(others, KEY), own)
    if kind not in LAYOUT:
        squares = (target.weight * (target.y - omega) ** 2).sum(axis=0)
        np.testing.assert_allclose(engine.residuals(), [target.weight.sum(axis=0), squares])
    assert engine.log_documents(PRIORS.alpha) == pytest.approx(naive.log_documents(problem.z, PRIORS.alpha))
    n = np.array([np.bincount(topics, minlength=N_TOPICS) for topics in problem.z if topics])
    grown = (digamma(n + PRIORS.alpha) - digamma(PRIORS.alpha)).sum(axis=0)
    lengths = (digamma(n.sum(axis=1) + PRIORS.alpha.sum()) - digamma(PRIORS.alpha.sum())).sum()
    np.testing.assert_allclose(engine.alpha_sums(PRIORS.alpha), [*grown, lengths])
    words = naive.log_words(problem.docs, problem.z, N_WORDS, N_TOPICS, BETA)
    assert engine.counts.log_words(BETA) == pytest.approx(words)
    count = engine.counts.word_topic[:, :N_TOPICS]
    np.testing.assert_array_equal(engine.counts.sizes(), np.bincount(count.ravel()))


@pytest.mark.parametrize("kind", RESPONSES)
def test_reweigh(engine, kind):
    """Responses that a chain has not seen enter the regression of prediction weights."""
    problem = Problem(engine, kind)
    weight = np.random.default_rng(6).choice([0.0, 1.0, 3.0], problem.target.weight.shape)
    weight = np.repeat(weight[:, :1], weight.shape[1], axis=1) if kind in RATERS else weight
    weight.flags.writeable = False
    problem.engine.reweigh(weight)
    target = problem.target = problem.target._replace(weight=weight)
    problem.engine.restart(problem.response)
    kappa, lam = problem.response.start(target)
    np.testing.assert_allclose(lam_of(problem.engine), lam, rtol=1e-12)
    expected = problem.x.T @ kappa
    np.testing.assert_allclose(problem.engine.statistics().shift, expected, atol=1e-10)
    density = problem.response.log_density(target.y, problem.omega())
    expected = problem.response.c * (weight * density).sum(axis=0)
    np.testing.assert_allclose(problem.engine.log_likelihoods([problem.response])[0], expected)


def test_products_and_noise(engine, monkeypatch):
    """What a draw of eta needs where there is no matrix; whole iterations are those of one thread."""
    if engine == "device":
        pytest.skip("documents on a device have lists of their topics where these are many")
    monkeypatch.setattr(plans, "MOST_WEIGHTS", 1)
    problem, other, n = Problem(engine), Problem(alone(engine)), 3000
    engine, lam = problem.engine, problem.quadratic.lam
    precision = np.einsum("dr,dj,dk->rjk", lam, problem.x, problem.x)
    statistics = engine.statistics()
    np.testing.assert_allclose(statistics.precision, np.einsum("rjj->jr", precision), atol=1e-12)
    np.testing.assert_allclose(statistics.shift, problem.x.T @ problem.quadratic.kappa, atol=1e-12)
    v, columns = np.random.default_rng(2).normal(size=(N_TOPICS + 1, 2)), np.array([1, 0])
    np.testing.assert_allclose(engine.products(v, columns).T, np.einsum("rjk,kr->rj", precision[columns], v))
    np.testing.assert_allclose(engine.products(v[:, :1], columns[:1])[:, 0], precision[1] @ v[:, 0])
    if isinstance(engine, LocalShards) and DEVICE != "simulator":
        noise = np.array([engine.noise(make_key(KEY, i)) for i in range(n)])
        for r, P in enumerate(precision):
            scale = np.sqrt(np.outer(P.diagonal(), P.diagonal()) + P**2) / np.sqrt(n)
            assert (np.abs(noise[:, :, r].T @ noise[:, :, r] / n - P) < ERRORS * scale + 1e-12).all()
            assert (np.abs(noise[:, :, r].mean(axis=0)) <= ERRORS * np.sqrt(P.diagonal() / n)).all()
        both = np.einsum("ij,ik->jk", noise[:, :, 0], noise[:, :, 1]) / n
        assert (np.abs(both) <= ERRORS * np.sqrt(np.outer(precision[0].diagonal(), precision[1].diagonal()) / n)).all()
    np.testing.assert_array_equal(engine.noise(KEY), other.engine.noise(KEY))
    found = [iterate(e, e.statistics(), None, problem.response, PRIORS, KEY) for e in (engine, other.engine)]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1].precision, found[1][1].precision)


def test_leave_out_and_regress(engine):
    """Calibration sees shares as new documents have them."""
    problem, other = Problem(engine), Problem(alone(engine))
    engine = problem.engine
    engine.counts.keep()
    engine.leave_out(PRIORS, 20, KEY)
    shares = problem.left_out()
    np.testing.assert_allclose(shares.sum(axis=1), np.sign(LENGTHS), rtol=1e-6)  # one has no words
    x = np.hstack([shares, problem.target.covariates])
    engine.regress(problem.eta)
    np.testing.assert_allclose(problem.omegas(), problem.omega(x), rtol=1e-6)
    statistics = engine.augment(problem.response, KEY)
    lam = lam_of(engine)
    precision = np.einsum("dr,dj,dk->jkr", lam, x, x)[np.tril_indices(N_TOPICS + 1)]
    np.testing.assert_allclose(statistics.precision, precision, rtol=1e-6, atol=1e-10)
    found = engine.left_out_omega(problem.eta[:, :N_TOPICS])
    np.testing.assert_allclose(found, shares @ problem.eta[:, :N_TOPICS].T, rtol=1e-6)
    other.engine.counts.keep()
    other.engine.leave_out(PRIORS, 20, KEY)
    other.engine.regress(problem.eta)
    np.testing.assert_array_equal(other.omegas(), problem.omegas())


@pytest.mark.parametrize("kind", RESPONSES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_iterations_are_the_same_everywhere_and_after_a_restart(engine, kind, sampler):
    """Bit for bit those of one thread; a restored engine goes on as the first one does, log joint included."""

    def run(engine, response, key, n):
        statistics = engine.statistics()
        for i in range(n):
            eta, statistics, response = iterate(engine, statistics, None, response, PRIORS, make_key(key, i), True)
        return eta, response, z_of(engine), log_joint(engine, eta, response, PRIORS, None)

    def same(a, b):
        for one, other in zip((a[0], a[1].scale, a[2]), (b[0], b[1].scale, b[2]), strict=True):
            np.testing.assert_array_equal(one, other)
        assert a[3] == pytest.approx(b[3], rel=1e-12)

    if (
        DEVICE == "simulator"
        and "device" in engine
        and (sampler == "drawn") == (kind in ("hinge", "negative binomial", "ordinal", "periods", "rated"))
    ):
        pytest.skip("the simulator is slow")
    problem, other = Problem(engine, kind, sampler), Problem(alone(engine), kind, sampler)
    n, m = (1, 1) if DEVICE == "simulator" else (3, 2)  # the simulator is slow
    first = run(problem.engine, problem.response, make_key(KEY, 1), n)
    same(first, run(other.engine, other.response, make_key(KEY, 1), n))
    state = states_of(problem.engine)
    second = run(problem.engine, first[1], make_key(KEY, 2), m)
    again = Problem(engine, kind, sampler)
    restore(again.engine, state, first[0])
    assert log_joint(again.engine, first[0], first[1], PRIORS, None) == pytest.approx(first[3], rel=1e-12)
    same(second, run(again.engine, first[1], make_key(KEY, 2), m))
    np.testing.assert_array_equal(problem.engine.topic_counts(), again.engine.topic_counts())


def test_what_does_not_fit_is_refused():
    problem = Problem()
    for name, wrong in (
        ("z", np.zeros(3, np.uint16)),
        ("z", None),
        ("lam", np.zeros((1, 1))),
        ("kappa", np.zeros((1, 1))),
    ):
        states = states_of(problem.engine)
        states[0][name] = np.full_like(states[0]["z"], N_TOPICS) if wrong is None else wrong
        with pytest.raises(ValueError, match="does not fit"):
            restore(problem.engine, states, problem.eta)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_shard_that_fails_stops_the_others(n_threads):
    problem = Problem("three threads" if n_threads == 3 else "one thread")
    with pytest.raises(TypeError, match="not iterable"):
        problem.engine.log_likelihoods(3)
    assert problem.engine.residuals().shape == (2, N_COLUMNS)  # and goes on
    problem.engine.close()


@pytest.mark.parametrize("name", ["one thread", *(["device"] if DEVICE else [])])
@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what overflows in the simulator is taken again
def test_a_loud_response_is_looked_at(sampler, name, monkeypatch):
    """Many topics: the first sweeps are dense, and so are those after one that rejects; kept draws stay as they are."""
    monkeypatch.setattr(plans, "SPARSE_FROM", 1)
    if name == "device":
        from supertopic.kernels.cuda import layout

        monkeypatch.setattr(layout, "SPARSE_FROM", 1)
    engine = Problem(name, sampler=sampler).engine
    nothing = np.zeros((2, N_TOPICS + 1))

    def sweep(eta, i, keep=False):
        dense = engine.counts.dense
        seen = engine.counts.topics(PRIORS, make_key(KEY, i))
        assert (len(seen.smooth) == 0) == (dense > 0)
        engine.sweep(eta, PRIORS, make_key(KEY, i), keep)
        return engine.counts.dense

    assert [sweep(nothing, i) for i in range(7)] == [4, 3, 2, 1, 0, 0, 0]  # what is all accepted stays sparse
    loud = 1e4 * np.tile(np.arange(N_TOPICS + 1.0), (2, 1))
    assert sweep(loud, 7, keep=True) == 0 and sweep(loud, 8) == topics.DENSE
    assert [sweep(loud, 9 + i) for i in range(5)] == [4, 3, 2, 1, 0]
    assert sweep(nothing, 14, keep=True) == 0


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize("sparse", [False, True])
def test_new_documents_on_a_device(sparse, monkeypatch):
    """Topics that share no word leave no doubt; what is beside a document does not matter, nor does its place."""
    if sparse:
        only_sparse(monkeypatch)
    rng = np.random.default_rng(2)
    docs = [sorted(rng.integers(0, N_WORDS, n).tolist()) for n in (3, 0, 12, 1, 9)]
    phi = np.full((N_WORDS, N_TOPICS), 1e-9)
    phi[np.arange(N_WORDS), np.arange(N_WORDS) % N_TOPICS] = 0.25
    seen, eta = fixed_topics(phi, PRIORS.alpha), rng.normal(size=(3, 2, N_TOPICS))
    tokens, there = flat(docs, [[]])[0], freeze(seen, "cuda")
    expected = np.array([np.bincount(np.array(words, int) % N_TOPICS, minlength=N_TOPICS) for words in docs])
    expected = expected / np.maximum(expected.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(infer_shares(tokens, there, 4, KEY, 1), expected, atol=1e-6)
    omega = draw_omegas(tokens, there, 4, eta, KEY)
    np.testing.assert_allclose(omega, draw_omegas(tokens, seen, 4, eta, KEY), atol=1e-6)
    assert omega.shape == (3, 5, 2)
    unsure = freeze(fixed_topics(np.full((N_WORDS, N_TOPICS), 0.05), PRIORS.alpha), "cuda")
    together = infer_shares(tokens, unsure, 4, KEY, 1)
    for d in (0, 4):
        np.testing.assert_array_equal(infer_shares(flat([docs[d]], [[]])[0], unsure, 4, KEY, 1)[0], together[d])


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
def test_private_topics_on_a_device():
    """The topics of a document as if it were new are those that a processor finds."""
    from supertopic.kernels.cuda import counts as gpu_counts
    from supertopic.kernels.cuda.device import empty, get, launch, put
    from supertopic.sampling.cuda_documents import wide

    problem, other = Problem("device", sampler="drawn"), Problem(sampler="drawn")
    problem.engine.counts.keep()
    kept = problem.engine.counts.summed_counts()
    mass = kept.tokens / kept.n_draws + N_WORDS * BETA
    for shard, same in zip(problem.engine.shards, other.engine.shards, strict=True):
        rows, group, width = shard.rows, shard.rows.shape.group, shard.rows.shape.width
        sizes, new = empty(rows.n_rows, np.int64), rows.part(0, rows.n_rows, rows.docs.number).docs
        launch(gpu_counts.count_distinct, rows.n_rows, rows.docs, group, sizes)
        ends = np.concatenate([[0], np.cumsum(get(sizes))])
        like, summed = empty(int(ends[-1]) * width, np.float32), put(wide(kept.word_topic.astype(np.int64), width))
        launch(
            gpu_counts.private_rows, rows.n_rows, rows.docs, group, summed, 1, BETA, put(mass), width, 0, rows.n_rows,
            put(ends), new, like,
        )  # fmt: skip
        found = get(like).reshape(-1, width)[:, :N_TOPICS]
        for d, row in enumerate(rows.row):
            _, phi = private_topics(same.tokens, same.z, kept.word_topic, 1, BETA, mass, 8, d, d + 1)
            np.testing.assert_allclose(found[ends[row] : ends[row + 1]], phi.reshape(-1, 8)[:, :N_TOPICS], rtol=1e-5)


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize("n_columns", [1, 2, 3, 5])
@pytest.mark.parametrize("n_topics", [1, 2, 3, 8] if DEVICE == "simulator" else [1, 16, 39, 40, 100])
def test_sums_of_pairs_on_a_device(n_topics, n_columns):
    """One square of pairs has all of them, or there are some; a block has some of the columns."""
    from supertopic.kernels.cuda.device import put
    from supertopic.sampling.cuda_moments import Moments

    rng, n_docs, stride = np.random.default_rng(n_topics), 6 if DEVICE == "simulator" else 640, n_topics + 1
    n, lengths = rng.integers(0, 9, (n_docs, stride)).astype(np.float32), rng.integers(5, 20, n_docs)
    covariates, lam, kappa = rng.normal(size=(n_docs, 1)), *rng.normal(size=(2, n_docs, n_columns))
    about = put(n.reshape(-1)), put(1.0 / lengths), n_topics, put(covariates)
    precision, shift = Moments(about, stride, put(lam), put(kappa)).statistics()
    x = np.column_stack([n[:, :n_topics] / lengths[:, None], covariates])
    expected = np.einsum("dr,dj,dk->jkr", lam, x, x)[np.tril_indices(n_topics + 1)]
    np.testing.assert_allclose(precision, expected, atol=1e-9)
    np.testing.assert_allclose(shift, x.T @ kappa, atol=1e-9)


@pytest.mark.skipif(not DEVICE, reason="there is neither a GPU nor Numba's simulator")
@pytest.mark.parametrize("sparse", [False, True])
def test_left_out_documents_some_at_a_time_on_a_device(sparse, monkeypatch):
    """How many documents have room for their private topics does not change their shares."""
    from supertopic.sampling import cuda

    if sparse:
        only_sparse(monkeypatch)
    rng, found = np.random.default_rng(5), []
    docs = [rng.integers(0, N_WORDS, n).tolist() for n in (7, 0, 5, 3, 1, 6, 2, 4, 4, 5)]
    z = [rng.integers(0, N_TOPICS, len(words)).tolist() for words in docs]
    target = make_target(np.ones((10, 1)), np.ones((10, 1)))
    plan, source = plan_of(docs, N_WORDS, Logistic(1.0), target, PRIORS, "delayed", 2, device="cuda")
    for numbers in (cuda.NUMBERS, 1):
        monkeypatch.setattr(cuda, "NUMBERS", numbers)
        engine = engine_of(plan, source, flat(docs, z)[1], Logistic(1.0), np.ones((10, 1)), np.zeros((1, N_TOPICS)), 4)
        assert engine.pool.n_threads == 1  # streams of several threads would not wait for each other
        engine.sweep(np.zeros((1, N_TOPICS)), PRIORS, KEY, True)
        kept = engine.topic_counts()
        engine.leave_out(PRIORS, 6, KEY)
        found.append(engine.left_out_omega(np.eye(N_TOPICS)))
        np.testing.assert_array_equal(engine.topic_counts(), kept)
        engine.sweep(np.zeros((1, N_TOPICS)), PRIORS, make_key(KEY, 1), True)
        assert (engine.topic_counts().sum(axis=1) == 2 * kept.sum(axis=1)).all() and kept.any()
    assert found[0].sum(axis=1) == pytest.approx([float(len(words) > 0) for words in docs])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if DEVICE else [])])
@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
@pytest.mark.parametrize("n_machines", [2, 3, 5])
def test_replicas_exchange_their_changes(device, sampler, n_machines, monkeypatch):
    """Parts with counts of their own see what one engine sees, sweep after sweep; one part alone has some words."""
    monkeypatch.setattr(plans, "SPARSE_FROM", 1)
    rng, n_words = np.random.default_rng(n_machines), 400  # several blocks of words
    docs = [sorted(rng.integers(0, 300, rng.integers(2, 9)).tolist()) for _ in range(2 * n_machines)]
    docs[0] += [310, 310, 399]
    target = make_target(rng.integers(0, 2, (len(docs), 1)).astype(float), np.ones((len(docs), 1)))
    plan, source = plan_of(docs, n_words, Logistic(1.0), target, PRIORS, sampler, n_machines, device=device)
    pseudo = rng.integers(0, 2, (n_words, N_TOPICS)).astype(np.int32)
    whole = ThreadEngine(plan, source, 2, pseudo_counts=pseudo)
    with Machines(plan, source, [slice(i, i + 1) for i in range(n_machines)], 2, pseudo) as machines:
        whole.start(KEY)
        machines.in_turn("start", KEY)
        eta = rng.normal(size=(1, N_TOPICS))
        for i in range(1 if DEVICE == "simulator" else topics.DENSE + 3):
            key = make_key(KEY, i)
            whole.sweep(eta, PRIORS, key, i > topics.DENSE, Logistic(1.0))
            machines.in_turn("sweep_shards", eta, PRIORS, key, i > topics.DENSE, Logistic(1.0))
            assert all((one.counts.word_topic == whole.counts.word_topic).all() for one in machines.replicas)
            assert all((one.counts.tokens == whole.counts.tokens).all() for one in machines.replicas)
            seen = [engine.counts.topics(PRIORS, key) for engine in (whole, *machines.replicas)]
            for other in seen[1:] if device == "cpu" else []:
                for one, two in zip(seen[0], other, strict=True):
                    np.testing.assert_array_equal(one, two)
            kept = [engine.counts.summed_counts() for engine in (whole, *machines.replicas)]
            assert all((kept[0].word_topic == other.word_topic).all() for other in kept)
        np.testing.assert_array_equal(z_of(whole), np.concatenate([z_of(one) for one in machines.replicas]))
        assert sum(one.traffic()[1] for one in machines.replicas) > 0
        assert device == "cuda" or len(seen[0].smooth)


@pytest.mark.parametrize("n_machines", [1, 2, 3, 4, 5, 7, 11, 12])
def test_machines_in_a_grid(n_machines):
    """Every machine gets the changes of all, and the first row the sums, with messages to its row and column only."""
    rng, n_words = np.random.default_rng(n_machines), 1000
    docs = [sorted(rng.integers(0, n_words, 20).tolist()) for _ in range(n_machines)]
    target = make_target(rng.integers(0, 2, (n_machines, 1)).astype(float), np.ones((n_machines, 1)))
    plan, source = plan_of(docs, n_words, Logistic(1.0), target, PRIORS, "delayed", n_machines)
    whole = ThreadEngine(plan, source, 1)
    with Machines(plan, source, [slice(i, i + 1) for i in range(n_machines)]) as machines:
        whole.start(KEY)
        machines.in_turn("start", KEY)
        about = rng.normal(size=(1, N_TOPICS)), PRIORS, KEY, True, Logistic(1.0)
        for one, other in zip(whole.sweep(*about), machines.sum_up("sweep", *about), strict=True):
            np.testing.assert_array_equal(one, other)
        for name, *arguments in (("augment", Logistic(1.0), KEY), ("statistics",)):
            for one, other in zip(getattr(whole, name)(*arguments), machines.sum_up(name, *arguments), strict=True):
                np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(whole.noise(KEY), machines.sum_up("noise", KEY)[0])
        for one in machines.replicas:
            one.wait()
            np.testing.assert_array_equal(one.counts.word_topic, whole.counts.word_topic)
            np.testing.assert_array_equal(one.counts.summed, whole.counts.summed)
        nothing = [np.zeros(0, np.uint8)] * machines.replicas[0].n_parts
        both = machines.replicas[0].merge([net.Parcel(np.array(taken), nothing) for taken in ((3, 1), (2, 2))])
        assert both.taken.tolist() == [5, 3] and not any(map(len, both.parts))
        assert net.join(both.cut(machines.grid.n_shares)).taken.tolist() == [5, 3]  # of one share alone
        grid, side = machines.grid, np.sqrt(n_machines)
        assert sorted(i for row in grid.rows for i in row) == list(range(n_machines))
        assert max(map(len, grid.rows)) - min(map(len, grid.rows)) <= 1 and side - 2 < grid.n_shares <= side + 1
        for _, sender, to in machines.sent:
            assert to in grid.row(sender) or to in grid.column(sender)
        senders = [sender for tag, sender, _ in machines.sent if tag[0] == ("counts", 2)]
        assert max(map(senders.count, range(n_machines))) <= grid.n_shares + 2 * len(grid.rows) + len(grid.rows[0])


def test_a_machine_that_waits_is_told_of_the_end():
    """Else it would wait for a lost one for ever."""
    plan, source = plan_of([[1, 2], [3]], N_WORDS, Logistic(1.0), make_target(np.ones((2, 1)), np.ones((2, 1))), PRIORS,
                           "delayed", 2)  # fmt: skip
    with Machines(plan, source, [slice(0, 1), slice(1, 2)]) as machines:
        one = machines.replicas[0]
        one.start(KEY)
        one.post.close()
        with pytest.raises(net.Closed, match="ended"):
            one.wait()


@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_changes_are_net_and_narrow(n_parts):
    """Rows of several machines are added up; what cancels is left out, and large changes keep their size."""
    rng, n_words = np.random.default_rng(0), 100
    parts = [rng.integers(-1, 2, (n_words, 6)) * rng.choice([1, 50_000], (n_words, 6)) for _ in range(3)]
    parts[0][50:90] = 0
    parts.append(-parts[0])
    found = np.zeros((n_words, 8), np.int32)
    for part in range(n_parts):
        rows = [net.of_counts(array.astype(np.int32), part, n_parts) for array in parts]
        total = net.add_up(rows, n_parts, n_words, 6)
        _, n_cells, _, delta = decode(total)
        assert (n_cells > 0).all() and (delta != 0).all() and n_cells.sum() == len(delta)
        before = found.sum(axis=0)[:6]
        np.testing.assert_array_equal(net.apply(total, part, n_parts, found, 6), found.sum(axis=0)[:6] - before)
    np.testing.assert_array_equal(found[:, :6], np.sum(parts, axis=0))
    none = net.add_up([net.of_counts(np.zeros((4, 2), np.int32), 0, 1)] * 2, 1, 4, 2)
    assert none.nbytes == 0 and (net.apply(none, 0, 1, np.zeros((4, 8), np.int32), 2) == 0).all()


def test_rows_as_bytes():
    """What is read is what was written; a usual change needs a byte, or two among many topics."""
    rng = np.random.default_rng(0)
    for n_rows, n_topics, most in ((0, 1, 1), (1, 1, 2**31 - 1), (30, 5, 2), (200, 3000, 1000)):
        word = np.sort(rng.choice(10**6, n_rows, replace=False)).astype(np.int32)
        n_cells = rng.integers(1, n_topics + 1, n_rows).astype(np.int32)
        topic = [np.sort(rng.choice(n_topics, n, replace=False)) for n in n_cells]
        topic = np.concatenate([*topic, []]).astype(np.uint16)
        delta = rng.integers(1, most + 1, len(topic)).astype(np.int32) * rng.choice([-1, 1], len(topic))
        rows = word, n_cells, topic, delta.astype(np.int32)
        for one, other in zip(rows, decode(encode(*rows)), strict=True):
            np.testing.assert_array_equal(one, other)
    one = np.array([1], np.int32)
    sizes = [len(encode(one, one, np.array([k], np.uint16), np.array([d], np.int32))) - 2
             for k, d in ((0, 1), (41, -1), (43, 1), (0, 2), (41, -64), (0, 64))]  # fmt: skip
    assert sizes == [1, 1, 2, 2, 2, 3]


CLUSTERS = [
    (16, [1, 1]),
    (7, [2, 1, 4, 1, 1]),
    (90, [2, 1, 4, 1, 1]),
    (9536, [16] * 512),
    (5, [3] * 5),
]  # groups, threads of each worker


@pytest.mark.parametrize(("n_groups", "threads"), CLUSTERS)
def test_groups_of_workers(n_groups, threads):
    """In proportion to threads, none without a group; rows of many groups begin where few sums wait for neighbours."""
    pytest.importorskip("ray", reason="Ray is not installed")
    from supertopic.sampling import ray_engine as cluster

    plan = Problem().plan._replace(groups=(slice(0, 1),) * n_groups)
    grid, places = net.Grid(len(threads)), [cluster.Place("", n, 0) for n in threads]
    found = cluster.divide(plan, places, grid)
    assert [i for part in found for i in range(part.start, part.stop)] == list(range(n_groups))
    sizes = np.array([part.stop - part.start for part in found])
    shares = n_groups * np.array(threads) / sum(threads)
    assert (sizes > 0).all() and (np.abs(sizes - shares) <= 1.5 + 0.05 * shares).all()
    if n_groups > 1000:
        assert all(found[row[0]].start % 16 == 0 for row in grid.rows)


@pytest.mark.parametrize("n_groups", [1, 2, 3, 7, 8, 13])
def test_pairs(n_groups):
    """Whoever adds which groups, in whatever order: the same bits."""
    rng = np.random.default_rng(n_groups)
    groups = [Statistics(rng.normal(size=(3, 2)) * 10.0**i, rng.normal(size=(2, 2))) for i in range(n_groups)]

    def add(parts):
        last = PairwiseSum(n_groups)
        for part in parts:
            pairs = PairwiseSum(n_groups)
            for i in rng.permutation(part):
                pairs.add(0, int(i), Statistics(*(array.copy() for array in groups[i])))
            for place, sums in pairs.partial.items():
                last.add(*place, sums)
        return last.total()

    first = add([range(n_groups)])
    np.testing.assert_allclose(first.precision, np.sum([g.precision for g in groups], axis=0))
    for n_parts in (2, 3, 5):
        parts = [part for part in np.array_split(np.arange(n_groups), n_parts) if len(part)]
        for one, two in zip(first, add(parts), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
def test_kept_sweeps_add_up(sampler, sparse, monkeypatch):
    """The topic counts of documents, and those of words, over all sweeps that are kept."""
    monkeypatch.setattr(plans, "SPARSE_FROM", 1 if sparse else 10**6)
    monkeypatch.setattr(topics, "DENSE", 0)
    problem, expected = Problem(sampler=sampler), 0.0
    for i in range(4):
        problem.engine.sweep(problem.eta, PRIORS, make_key(KEY, i), i != 1)
        problem.take_z()
        expected = expected + (i != 1) * naive.zbars(problem.z, N_TOPICS) * np.array(LENGTHS)[:, None]
    np.testing.assert_allclose(problem.engine.topic_counts(), expected, atol=1e-4)
    assert problem.engine.counts.n_draws == 3
    np.testing.assert_allclose(problem.engine.counts.summed.sum(axis=0), expected.sum(axis=0))


def test_log_words_of_frequent_words():
    """Counts for which there is a table, and larger ones, in several parts of the vocabulary."""
    counts = np.array([[0, 1, 3000], [255, 256, 257], [254, 0, 10**6], [0, 0, 0]], np.int32)
    wide = np.zeros((4, 8), np.int32)
    wide[:, :3] = counts
    wanted = (gammaln(counts + 0.01) - gammaln(0.01)).sum(axis=1)
    found = [log_words(wide, 3, 0.01, first, last) for first, last in ((0, 1), (1, 2), (2, 4))]
    np.testing.assert_allclose(found, [wanted[0], wanted[1], wanted[2:].sum()], rtol=1e-12)


def test_sums_over_draws_do_not_overflow():
    engine = Problem().engine
    engine.counts.summed[:] = 2**31 - 5
    engine.counts.n_draws, engine.counts.tokens = 10**8, np.array([21, 9, 30, 30, 13])
    engine.counts.word_topic[:] = 7
    engine.counts.keep()
    assert (engine.counts.summed == 2**31 + 2).all()
    assert engine.counts.summed_counts().tokens.tolist() == [20 * (2**31 + 2)] * N_TOPICS


@pytest.mark.parametrize("kind", RESPONSES)
@pytest.mark.parametrize("more", ["nothing", "groups", "known"])
def test_the_log_joint_by_its_definition(kind, more):
    """Words, topics, responses, their parameters, weights, and with groups the variance between them."""
    problem = Problem(kind=kind)
    engine, response, eta = problem.engine, problem.response, problem.eta
    nu2, known, variances = np.full(eta.shape, PRIORS.nu2), None, 0.0
    wanted = naive.log_words(problem.docs, problem.z, N_WORDS, N_TOPICS, BETA)
    wanted += naive.log_documents(problem.z, PRIORS.alpha) + response.log_prior()
    wanted += (response.c * problem.target.weight * response.log_density(problem.target.y, problem.omega())).sum()
    if more == "groups":
        nu2[:, -1] = np.arange(1, len(eta) + 1) / 3.0
        engine.plan = engine.plan._replace(n_groups=1)
        variances = (stats.halfcauchy.logpdf(nu2[:, -1] ** 0.5) - np.log(2.0 * nu2[:, -1] ** 0.5)).sum()
    width, A = eta.shape[1], np.random.default_rng(1).normal(size=(len(eta), eta.shape[1], eta.shape[1]))
    P = A @ A.swapaxes(1, 2) if more == "known" else np.zeros_like(A)
    shift = A[:, 0] if more == "known" else np.zeros(eta.shape)
    if more == "known":
        known = Statistics(np.array([own[np.tril_indices(width)] for own in P]).T.copy(), shift.T.copy())
    for row, own, s, v in zip(eta, P, shift, nu2, strict=True):
        covariance = np.linalg.inv(own + np.diag(1.0 / v))
        wanted += stats.multivariate_normal.logpdf(row, covariance @ s, covariance)
    priors = PRIORS._replace(nu2=nu2 if more == "groups" else PRIORS.nu2)
    found = log_joint(engine, eta, response, priors, known)
    if kind == "raters":  # a document of a weight is so many copies, each with a true class of its own
        wanted += response.log_likelihood(problem.target, problem.omega()).sum()
        wanted -= (response.c * problem.target.weight * response.log_density(problem.target.y, problem.omega())).sum()
    assert found == pytest.approx(wanted + variances, rel=1e-9)


def test_chains_start_from_the_topics_of_pseudo_counts(engine):
    """Tokens begin in the topic that their word has, in every chain that seeds or another model speak to."""
    problem = Problem(engine)
    pseudo = np.zeros((N_WORDS, N_TOPICS), np.int32)
    pseudo[np.arange(N_WORDS), np.arange(N_WORDS) % N_TOPICS] = 10_000
    cls, n_threads = ENGINES[engine]
    source = Arrays(flat(problem.docs, problem.z)[0], problem.target)
    seeded = cls(problem.plan, source, n_threads, pseudo_counts=pseudo)
    seeded.start(KEY)
    words = np.concatenate(problem.docs)
    assert np.mean(z_of(seeded) == words % N_TOPICS) > 0.9
    nothing = cls(problem.plan, source, n_threads, pseudo_counts=0 * pseudo)
    nothing.start(KEY)
    problem.engine.start(KEY)
    np.testing.assert_array_equal(z_of(nothing), z_of(problem.engine))
