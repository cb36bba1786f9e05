"""Random numbers: nothing that is drawn shares a stream with anything else that is drawn."""

import numpy as np
import pytest

from supertopic import (
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDACrowdRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
)
from supertopic.corpus.tokens import Tokens
from supertopic.datasets import make_corpus
from supertopic.inference import calibration, predict, reported, shrinkage, weights
from supertopic.kernels.draws import inverse_gaussians, make_key, normals, polya_gammas
from supertopic.model import groups
from supertopic.model.responses import (
    CrowdGaussian,
    CrowdLogistic,
    Gaussian,
    Hinge,
    Logistic,
    NegativeBinomial,
    counts,
    gaussian,
)
from supertopic.model.responses.augmentation import KernelResponse, OneLam
from supertopic.model.responses.thresholds import ThresholdResponse
from supertopic.model.state import fixed_topics
from supertopic.sampling import chain, gibbs, matrix_free, new_documents, plan, threads
from supertopic.sampling.counts import Counts
from supertopic.sampling.new_documents import run_sweeps
from supertopic.sampling.shard import Shard

EVERYONE = (0, 10**9)


class Log:
    """Who used which key for which documents, or for what is not about documents."""

    def __init__(self, monkeypatch):
        self.uses: dict[int, list[tuple[str, int, int]]] = {}
        self.monkeypatch = monkeypatch

    def add(self, what, key, docs=EVERYONE):
        self.uses.setdefault(int(key), []).append((what, *docs))

    def watch(self, owner, name, what, key_at, docs=None):
        """Log the key of every call of a method or function; docs(self) says whose it is."""
        real = getattr(owner, name)

        def watched(*given):
            self.add(what, given[key_at], docs(*given) if docs else EVERYONE)
            return real(*given)

        self.monkeypatch.setattr(owner, name, watched)

    def clashes(self):
        """Keys that two draws share which are not about different documents."""
        found = []
        for key, uses in self.uses.items():
            for i, (what, low, high) in enumerate(uses):
                for other, first, last in uses[:i]:
                    if what != other or (low < last and first < high):
                        found.append((key, what, other))
        return found


def docs_of_shard(shard, *_):
    return shard.first_doc, shard.first_doc + shard.n_docs


def docs_of_target(_, target, omega, key, first_doc):
    return first_doc, first_doc + len(omega)


@pytest.mark.filterwarnings("ignore:Found no relation between topics")
@pytest.mark.parametrize("sampler", ["collapsed", "drawn", "delayed"])
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [(SLDAClassifier, {}), (MedLDAClassifier, {}), (SLDACountRegressor, {"sampler": "drawn"})],
)
def test_no_two_draws_share_a_key(monkeypatch, sampler, kind, parameters):
    """All of a fit with two chains, several columns and several shards: topics, z, eta, lambda, r, calibration."""
    monkeypatch.setattr(plan, "SHARD_TOKENS", 500)
    log = Log(monkeypatch)
    log.watch(Shard, "start", "start", 1, docs_of_shard)
    log.watch(Shard, "sweep", "sweep", 3, docs_of_shard)
    log.watch(Counts, "draw_phi", "topics", 2)
    log.watch(gibbs, "draw_weights", "eta", 4)
    for response in (Logistic, Hinge, Gaussian, NegativeBinomial):
        assert response.draw_lam is KernelResponse.draw_lam
    log.watch(KernelResponse, "draw_lam", "lambda", 3, docs_of_target)
    log.watch(gaussian, "gammas", "sigma2", 1)
    log.watch(counts, "slice_sample", "r", 2)
    corpus = make_corpus(n_docs=60, n_topics=3, doc_length=40, eta=np.linspace(-4, 4, 9).reshape(3, 3), random_state=0)
    model = kind(3, burn_in=3, n_draws=3, n_chains=2, held_out=0.2, random_state=0, **{"sampler": sampler} | parameters)
    model.fit(corpus.X, corpus.y)
    assert len(log.uses) > 60 and len({what for uses in log.uses.values() for what, *_ in uses}) >= 4
    assert log.clashes() == []


MORE = [
    (SLDASurvivalRegressor, {"periods": 2}), (SLDASurvivalRegressor, {"periods": 2, "effects": "by_period"}),
    (SLDACrowdClassifier, {}), (SLDACrowdRegressor, {}), (SLDAOrdinalClassifier, {}), (SLDARegressor, {}),
    (SLDAClassifier, {"multiclass": "separate"}), (SLDACountRegressor, {}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("kind", "parameters"), MORE, ids=lambda value: getattr(value, "__name__", str(value)))
def test_no_two_draws_of_batches_share_a_key(monkeypatch, kind, parameters, short_regressions):
    """Two batches of the same documents, with groups: every response, its own parameter, the variance of groups."""
    monkeypatch.setattr(plan, "SHARD_TOKENS", 500)
    log = Log(monkeypatch)
    log.watch(Shard, "start", "start", 1, docs_of_shard)
    log.watch(Shard, "sweep", "sweep", 3, docs_of_shard)
    log.watch(gibbs, "draw_weights", "eta", 4)
    for room in (chain, calibration, groups):
        log.watch(room, "draw_variance", "variance", 2)
    for room in (calibration, reported):
        log.watch(room, "normals", "normals", 1)
    log.watch(calibration, "uniforms", "steps", 1)
    for response in (OneLam, ThresholdResponse, CrowdLogistic):
        log.watch(response, "draw", "lambda", 3, docs_of_target)
    for response in (CrowdLogistic, CrowdGaussian):
        log.watch(response, "own_sums", "truth", 3, docs_of_target)
    for response in (Gaussian, NegativeBinomial, ThresholdResponse):  # raters have paths below the key of true labels
        log.watch(response, "draw_scale", "scale", 2)
    corpus = make_corpus(n_docs=60, n_topics=3, doc_length=30, eta=np.linspace(-4, 4, 9).reshape(3, 3), random_state=0)
    y = corpus.y * 1.0 if kind in (SLDARegressor, SLDAClassifier, SLDACountRegressor) else corpus.y.sum(axis=1) * 1.0
    if kind is SLDASurvivalRegressor:
        y = np.column_stack([1.0 + y, y > 0])
    if "Crowd" in kind.__name__:
        y = np.stack([y, np.roll(y, 1), y], axis=1)
    model = kind(3, burn_in=2, n_draws=2, n_chains=2, held_out=0.2, random_state=0, words=False, **parameters)
    for _ in range(2):
        model.partial_fit(corpus.X, y, groups=np.arange(60) % 5)
    assert {"start", "sweep", "eta", "variance", "lambda"} <= {what for uses in log.uses.values() for what, *_ in uses}
    assert log.clashes() == []


def test_paths_of_random_numbers_do_not_meet():
    """Purposes and paths are different numbers, and none is an iteration that anyone will reach."""
    purposes = [plan.START, plan.ETA, plan.TOPICS, plan.SWEEP, plan.SCALE, plan.LAMBDA, plan.NEWTON]
    purposes.append(plan.VARIANCE)
    assert len(set(purposes)) == len(purposes)
    paths = [calibration.PREDICTION, reported.REPORTED, reported.BETWEEN, weights.BETWEEN_GROUPS, new_documents.PREDICT]
    paths += [reported.PROBES, matrix_free.VARIANCES]
    assert len(set(paths)) == len(paths) and min(paths) > 2**31
    assert threads.SWEEP == plan.SWEEP and threads.LAMBDA == plan.LAMBDA and threads.TOPICS == plan.TOPICS
    keys = [make_key(seed, *path) for seed in range(3) for path in np.ndindex(3, 5, 6)]
    assert len(set(map(int, keys))) == len(keys)


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1]) * np.sqrt(len(a))  # 5 is passed by chance once in 2 million


def test_columns_documents_and_keys_draw_apart():
    h, z = np.full((4000, 3), 1.0), np.full((4000, 3), 0.7)
    lam = polya_gammas(2.0, h, z, make_key(1), 0)
    other = polya_gammas(2.0, h, z, make_key(2), 0)
    inverse = inverse_gaussians(z, h, make_key(1), 0)
    for draws, more in ((lam, other), (inverse, inverse_gaussians(z, h, make_key(2), 0))):
        for a, b in ((draws[:, 0], draws[:, 1]), (draws[:, 1], draws[:, 2]), (draws[:-1, 0], draws[1:, 0])):
            assert correlation(a, b) < 5
        assert correlation(draws[:, 0], more[:, 0]) < 5
    np.testing.assert_array_equal(polya_gammas(2.0, h[7:], z[7:], make_key(1), 7), lam[7:])
    np.testing.assert_array_equal(inverse_gaussians(z[7:], h[7:], make_key(1), 7), inverse[7:])
    eta = normals((2, 4000), make_key(3))
    assert correlation(eta[0], eta[1]) < 5 and correlation(eta[0, 1:], eta[0, :-1]) < 5


def test_the_sweeps_of_a_prediction_draw_apart():
    """One word that all topics like alike: in two sweeps, documents or chains its topic is the same by chance only."""
    n_docs, n_topics = 3000, 4
    tokens = Tokens(np.zeros(n_docs, np.int32), np.arange(n_docs + 1))
    topics = fixed_topics(np.ones((1, n_topics)), np.full(n_topics, 1.0))
    runs = []
    for key in (make_key(1), make_key(2)):
        streams = np.array([make_key(key, d) for d in range(n_docs)])
        runs.append(run_sweeps(tokens, topics, streams, 8, 4).argmax(axis=2))
    pairs = [(runs[0][0], runs[0][1]), (runs[0][2], runs[0][3]), (runs[0][0], runs[1][0])]
    pairs += [(runs[0][0], runs[0][2]), (runs[0][1], runs[0][3])]  # the same number twice would lead back
    pairs.append((runs[0][0][1:], runs[0][0][:-1]))
    for a, b in pairs:
        assert abs(np.mean(a == b) - 1 / n_topics) < 5 * np.sqrt(0.1875 / n_docs)


def test_chains_and_shards_differ(monkeypatch):
    corpus = make_corpus(n_docs=80, n_topics=3, random_state=0)
    model = SLDAClassifier(3, n_chains=3, burn_in=0, n_draws=1, random_state=0).fit(corpus.X, corpus.y)
    assert len({counts.tobytes() for counts in model.posterior_.topics[0].word_topic}) == 3
    first, second = (
        shrinkage.spread(np.arange(5.0), np.full((5, 2), 0.2), 40, np.random.default_rng(s)) for s in (0, 1)
    )
    assert (first[:, 0] != first[:, 1]).any() and (first != second).any()


def test_chains_predict_with_streams_of_their_own(monkeypatch):
    keys, real = [], predict.draw_omegas
    monkeypatch.setattr(predict, "draw_omegas", lambda *given: keys.append(int(given[-1])) or real(*given))
    corpus = make_corpus(n_docs=40, n_topics=3, random_state=0)
    model = SLDAClassifier(3, n_chains=3, burn_in=1, n_draws=2, random_state=0).fit(corpus.X, corpus.y)
    model.predict_proba(corpus.X)
    assert len(keys) == len(set(keys)) == 3
