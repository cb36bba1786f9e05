"""The chain leaves the exact posterior where it is: enumeration of a corpus of six tokens, and Geweke's test."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import naive
from small import ALARM, ERRORS, engine_of, flat, plan_of, put, stops_early, z_of
from supertopic.corpus.source import make_target
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Gaussian, Hinge, Logistic, NegativeBinomial
from supertopic.model.state import Priors, Statistics
from supertopic.sampling import counts as topics
from supertopic.sampling import plan as plans
from supertopic.sampling.gibbs import iterate
from supertopic.sampling.threads import ThreadEngine

DOCS = [[0, 1, 2], [0, 0], [], [2]]
N_WORDS, BETA = 3, 0.5


SAMPLERS = ["collapsed", "drawn", "drawn, sparse"]


@pytest.fixture(params=SAMPLERS)
def sampler(request, monkeypatch):
    """Every exact sampler; the sparse one is for many topics, so here few count as many."""
    name, _, sparse = request.param.partition(", ")
    monkeypatch.setattr(plans, "SPARSE_FROM", 1 if sparse else 10**6)
    monkeypatch.setattr(topics, "DENSE", 0)
    return name


def run(engine, response, priors, key, n_iterations, known=None, path=None):
    """Some iterations of Algorithm 1 from the shards' own z and lam; returns the last eta and response, and z.

    `path` gets eta and the response of each iteration.
    """
    statistics = engine.statistics()
    for i in range(n_iterations):
        eta, statistics, response = iterate(engine, statistics, known, response, priors, make_key(key, i))
        if path is not None:
            path.append((eta, response))
    followed = engine.counts.word_topic.copy()
    engine.count()
    assert (engine.counts.word_topic == followed).all()  # counts are conserved
    return eta, response, z_of(engine)


def chance_of_visits(counts, p):
    """The p-value of a chi-square of the visits to each z, rare states pooled."""
    n = counts.sum()
    rare = p * n < 5
    observed, expected = np.append(counts[~rare], counts[rare].sum()), n * np.append(p[~rare], p[rare].sum())
    if expected[-1] < 5:
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
    return stats.chisquare(observed, expected).pvalue


def score_of_moments(p, drawn, grid, etas):
    """z-scores of the first two moments of eta and scale."""
    scores = [np.zeros(1)]
    for power in (1, 2) if drawn.size else ():
        truth = np.einsum("s,srg,gk->rk", p, etas, grid**power)
        values = drawn**power if drawn.ndim == 3 else (drawn**power).mean(axis=1)  # of all steps of a run
        scores.append(((values.mean(axis=0) - truth) / (values.std(axis=0) / np.sqrt(len(values)) + 1e-9)).ravel())
    return np.concatenate(scores)


def compare(counts, p, drawn, grid, etas):
    """Visits to each z, and moments of eta and scale, against their probabilities."""
    assert chance_of_visits(counts, p) > ALARM
    assert np.abs(score_of_moments(p, drawn, grid, etas)).max() < ERRORS


Y = {  # a binary column; two columns, one of them constant; an unknown label
    "binary": ([[1], [0], [1], [0]], [[1], [1], [1], [1]]),
    "two columns": ([[1, 1], [0, 1], [1, 1], [0, 1]], [[1, 1], [1, 1], [1, 1], [1, 1]]),
    "missing": ([[1], [0], [0], [0]], [[1], [0], [1], [1]]),
    "weighted": ([[1], [0], [0], [0]], [[0.5], [2], [1], [1]]),
    "stick-breaking": ([[1, 0], [0, 1], [0, 0], [0, 1]], [[1, 0], [1, 1], [1, 1], [1, 1]]),
    "none": ([[], [], [], []], [[], [], [], []]),
    "real": ([[1.3], [-0.4], [2.0], [0.2]], [[1], [0.5], [1], [2]]),
    "counts": ([[4], [0], [2], [1]], [[1], [1], [0], [1.5]]),
    "grades": ([[1], [0], [2], [3]], [[1], [0.5], [1], [1]]),
    "times": ([[1.5], [0.5], [1], [2]], [[1], [0.5], [1], [1]]),  # periods passed, and a half where the event came
    "times and a missing one": ([[1.5], [0.5], [1], [0]], [[1], [2], [1], [0]]),
    "periods": ([[0, 1], [1, 0.5], [0, 0.5], [0, 0]], [[1, 1], [0.5, 0], [1, 0], [1, 1]]),
    "grades and a missing one": ([[1], [2], [0], [0]], [[1], [1], [0], [2]]),
}
OFFSET = np.array([[0.5], [-0.3], [1.0], [0.2]])
COVARIATE = np.array([[1.0], [-0.5], [0.3], [0.8]])
ONE = np.ones(1)
ALPHA = [0.5, 0.5]


PSEUDO_COUNTS = np.array([[3, 0], [0, 0], [0, 5]], np.int32)
KNOWN = np.array([[[1.2, 0.4], [0.4, 0.8]]]), np.array([[1.0, -0.7]])  # precision and shift of eta, a column


def log_uniform(low, high, n, prior):
    """A grid of n scales with the log mass of its cells under a prior density."""
    x = np.linspace(np.log(low), np.log(high), n)
    return {"scales": np.exp(x), "log_scale": prior.logpdf(np.exp(x)) + x}


CASES = [
    ("binary", Logistic(4.0), naive.logistic(4.0), [1.0, 0.5], {}),
    ("binary", Logistic(1.0), naive.logistic(1.0), [0.7, 0.4, 0.9], {}),
    ("two columns", Logistic(2.5), naive.logistic(2.5), ALPHA, {}),
    ("missing", Logistic(4.0), naive.logistic(4.0), ALPHA, {}),
    ("weighted", Logistic(2.0), naive.logistic(2.0), ALPHA, {"offset": OFFSET}),
    ("binary", Logistic(2.0), naive.logistic(2.0), ALPHA, {"covariates": COVARIATE}),
    ("stick-breaking", Logistic(3.0), naive.logistic(3.0), ALPHA, {}),
    ("none", Logistic(1.0), naive.logistic(1.0), [0.5, 0.5, 0.5], {}),
    ("weighted", Hinge(0.7, 1.5), naive.hinge(0.7, 1.5), ALPHA, {"offset": OFFSET}),
    ("missing", Hinge(2.0, 1.0), naive.hinge(2.0, 1.0), ALPHA, {}),
    ("real", Gaussian(2.0, 0.6 * ONE, False), naive.gaussian(2.0), ALPHA, {"scales": [0.6], "offset": OFFSET}),
    ("real", Gaussian(1.5, ONE, True, 5.0, 3.0), naive.gaussian(1.5), ALPHA,
        log_uniform(0.05, 8, 25, stats.invgamma(5.0, scale=3.0))),
    ("counts", NegativeBinomial(1.5, 2.0 * ONE, False), naive.negative_binomial(1.5), ALPHA,
        {"scales": [2.0], "offset": OFFSET}),
    ("counts", NegativeBinomial(2.0, ONE, True, 4.0, 3.0), naive.negative_binomial(2.0), ALPHA,
        log_uniform(0.02, 8, 25, stats.gamma(4.0, scale=1 / 3.0)) | {"offset": OFFSET}),
    ("none", Logistic(1.0), naive.logistic(1.0), ALPHA, {"pseudo_counts": PSEUDO_COUNTS}),
    ("binary", Logistic(4.0), naive.logistic(4.0), ALPHA, {"pseudo_counts": PSEUDO_COUNTS, "known": KNOWN}),
    ("real", Gaussian(2.0, 0.6 * ONE, False), naive.gaussian(2.0), ALPHA,
        {"scales": [0.6], "pseudo_counts": PSEUDO_COUNTS, "known": KNOWN}),
]  # fmt: skip


@pytest.mark.parametrize(  # two samplers each: all that they read of a response is kappa and lam
    ("sampler", "case", "response", "log_psi", "alpha", "more"),
    [(SAMPLERS[(i + turn) % 3], *case) for i, case in enumerate(CASES) for turn in range(2)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__ * hasattr(value, "c"),
    indirect=["sampler"],
)
def test_exact_posterior(sampler, case, response, log_psi, alpha, more):
    check_exactly(sampler, case, response, log_psi, alpha, more)


ENUMERATED = {}  # the exact posterior of the last case, by its log psi, which no other case has


def check_exactly(sampler, case, response, log_psi, alpha, more, device="cpu", n_replicates=1500):
    """Start replicates from exact draws, run a few iterations, and compare with the enumeration.

    `more` may have "own", the response's own parameter at a point of the grid of scales, and "drawn", that point again;
    and "y", the layout of y that the response reads, where the enumeration reads another one.
    """
    own, point = more.get("own", lambda scale: scale), more.get("drawn", lambda scale: scale)
    y, weight = (np.array(a, float).reshape(4, -1) for a in Y[case])
    target = make_target(y, weight, more.get("offset"), more.get("covariates"))
    alpha, nu2, n_topics = np.array(alpha), 2.0, len(alpha)
    fine = 161 if isinstance(response, Hinge) else 41  # it has a kink
    points = np.linspace(-8, 8, fine if n_topics + target.covariates.shape[1] == 2 else 23)
    grids = {name: more[name] for name in ("scales", "log_scale", "pseudo_counts", "known") if name in more}
    if log_psi not in ENUMERATED:  # the samplers of a case come one after the other
        ENUMERATED.clear()
        ENUMERATED[log_psi] = naive.exact_posterior(DOCS, target, N_WORDS, alpha, BETA, nu2, log_psi, points, **grids)
    states, p, grid, etas = ENUMERATED[log_psi]
    rng = np.random.default_rng([n_topics, int(10 * response.c), len(case)])
    index = {tuple(k for t in z for k in t): s for s, z in enumerate(states)}
    cumulated = etas.cumsum(axis=2)
    priors = Priors(alpha, BETA, nu2)
    n_shards = 2 if sampler == "drawn" else 1  # exact for any number of shards
    known = statistics_of(*more["known"]) if "known" in more else None
    target = target._replace(y=more.get("y", target.y))
    plan, source = plan_of(DOCS, N_WORDS, response, target, priors, sampler, n_shards, device=device)
    counts, drawn = np.zeros(len(p)), []
    engine = ThreadEngine(plan, source, 1, pseudo_counts=more.get("pseudo_counts"))
    for replicate in range(n_replicates):
        s = rng.choice(len(p), p=p)
        begin, lam, eta = response, y, np.zeros((y.shape[1], n_topics + target.covariates.shape[1]))
        if y.shape[1]:  # an exact start: z from its marginal, eta and scale given z, lam given all
            places = [min(np.searchsorted(row, rng.random()), len(row) - 1) for row in cumulated[s]]
            eta, scale = grid[places, :-1], grid[places, -1]
            begin = response.with_scale(own(scale))
            omega = np.hstack([naive.zbars(states[s], n_topics), target.covariates]) @ eta.T + target.offset
            lam = begin.draw(target, omega, make_key(replicate, 1), 0)
        put(engine, plan, source, flat(DOCS, states[s])[1], begin, lam, eta)
        path = []
        _, _, z = run(engine, begin, priors, make_key(replicate, 2), 3, known, path)
        scales = [point(end.scale) if len(end.scale) else np.ones(len(eta)) for eta, end in path]
        drawn.append([np.hstack([eta, scale[:, None]]) for (eta, _), scale in zip(path, scales, strict=True)])
        counts[index[tuple(z.tolist())]] += 1
        look = (lambda: score_of_moments(p, np.array(drawn), grid, etas)), (lambda: chance_of_visits(counts, p))
        if stops_early(replicate + 1, n_replicates, *look):
            break
    compare(counts, p, np.array(drawn), grid, etas)


def statistics_of(precision, shift):
    """A prior of eta as statistics, whose precision is a packed triangle."""
    below = np.tril_indices(precision.shape[1])
    return Statistics(precision[:, below[0], below[1]].T.copy(), shift.T.copy())


def no_scale(rng):
    return np.zeros(2)


GEWEKE = {  # the response, a draw of its parameter from the prior, a draw of y given omega and the parameter
    "logistic": (Logistic(1.0), no_scale, lambda rng, omega, s: (rng.random(omega.shape) < expit(omega)).astype(float)),
    "Gaussian": (
        Gaussian(3.0, np.ones(2), True, 3.0, 2.0),
        # psi = N(y | omega, sigma2)**3 is N(y | omega, sigma2 / 3) times sigma2**-1 for each of four documents, but for
        # constants: the prior that goes with it has the shape 3 + 4
        lambda rng: 1 / rng.gamma(7.0, 1 / 2.0, 2),
        lambda rng, omega, s: omega + rng.normal(size=omega.shape) * np.sqrt(s / 3.0),
    ),
    "negative binomial": (
        NegativeBinomial(1.0, np.ones(2), True, 3.0, 2.0),
        lambda rng: rng.gamma(3.0, 1 / 2.0, 2),
        lambda rng, omega, s: rng.negative_binomial(s, s / (s + np.exp(omega))).astype(float),
    ),
}


@pytest.mark.parametrize(
    ("kind", "sampler"),
    [("logistic", "collapsed"), ("logistic", "drawn"), ("Gaussian", "collapsed"), ("negative binomial", "drawn")],
    indirect=["sampler"],
)
def test_geweke(sampler, kind):
    """Draws from the prior have the same moments as a chain that alternates Gibbs steps with new data."""
    alpha, nu2, n_topics, lengths = np.array([0.8, 0.4, 0.6]), 1.5, 3, [4, 1, 7, 3]
    priors = Priors(alpha, BETA, nu2)
    model, new_scale, new_y = GEWEKE[kind]
    rng = np.random.default_rng(5)

    def new_words(z):
        phi = rng.dirichlet(np.full(N_WORDS, BETA), n_topics)
        return [[rng.choice(N_WORDS, p=phi[k]) for k in topics] for topics in z]

    def summary(docs, z, eta, response, y):
        """Quantities of every part of the model, and products that link the parts."""
        zbar = naive.zbars(z, n_topics)
        omega = zbar @ eta.T
        word_0 = np.array(
            [[w == 0 and k == 0 for w, k in zip(*both, strict=True)].count(True) for both in zip(docs, z, strict=True)]
        )
        scale, mild = np.log(response.scale), np.arcsinh(y)
        return np.concatenate([
            zbar[2], zbar[0] * zbar[2], eta[0], eta[0] ** 2, eta[0] * eta[1], omega[:, 0] ** 2, word_0, word_0**2,
            (mild * omega).sum(axis=1), mild.mean(axis=0), [(zbar[0] @ zbar[2]) ** 2], scale, scale**2,
            scale * mild.mean() if len(scale) else scale,
        ])  # fmt: skip

    def score(moved):
        return np.mean(moved, axis=0) / (np.std(moved, axis=0) / np.sqrt(len(moved)) + 1e-12)

    moved, n_replicates = [], 2000
    for replicate in range(n_replicates):
        eta, scale = rng.normal(0, np.sqrt(nu2), (2, n_topics)), new_scale(rng)
        z = [list(rng.choice(n_topics, n, p=rng.dirichlet(alpha))) for n in lengths]
        omega = naive.zbars(z, n_topics) @ eta.T
        docs, y, response = new_words(z), new_y(rng, omega, scale), model.with_scale(scale)
        # from this exact joint draw, every one of a few rounds of (Gibbs, new data) must lead to another one
        start, steps = summary(docs, z, eta, response, y), []
        for i in range(3):
            target = make_target(y, np.ones_like(y))
            plan, source = plan_of(docs, N_WORDS, response, target, priors, sampler)
            lam = response.draw_lam(target, omega, make_key(replicate, 1, i), 0)
            engine = engine_of(plan, source, flat(docs, z)[1], response, lam, eta)
            eta, response, flat_z = run(engine, response, priors, make_key(replicate, 2, i), 1)
            z = [list(map(int, t)) for t in np.split(flat_z, np.cumsum(lengths)[:-1])]
            omega = naive.zbars(z, n_topics) @ eta.T
            docs, y = new_words(z), new_y(rng, omega, response.scale)
            steps.append(summary(docs, z, eta, response, y))
        moved.append(np.mean(steps, axis=0) - start)
        if stops_early(len(moved), n_replicates, lambda: score(moved)):
            break
    assert np.abs(score(moved)).max() < ERRORS
