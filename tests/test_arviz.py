"""What ArviZ gets is what it needs for `az.loo` and `az.compare`, which give what leaving documents out would."""

import warnings
from types import SimpleNamespace

import arviz as az
import numpy as np
import pandas as pd
import pytest
from scipy.special import log_expit, logsumexp
from scipy.stats import norm

import supertopic
from supertopic import (
    LDA,
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
)
from supertopic.corpus.source import make_target
from supertopic.datasets import make_corpus
from supertopic.estimators.effects import training_evidence
from supertopic.inference import pointwise as pointwise_room
from supertopic.inference.pointwise import log_likelihood, pointwise, weights_of
from supertopic.model.responses import Gaussian

RUN = {"burn_in": 10, "n_draws": 5, "n_chains": 2, "random_state": 0, "words": False}
GROUPS = ["posterior", "log_likelihood", "posterior_predictive", "observed_data"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:Estimated shape parameter", "ignore:.*highly influential"),
    pytest.mark.usefixtures("short_fits"),
]


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=120, n_topics=3, random_state=1)


@pytest.fixture(scope="module")
def binary(corpus):
    return SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y)


@pytest.fixture(scope="module")
def exported(binary):
    return binary.to_arviz()


def elpd(found):
    """What ArviZ 0.x and 1.x call differently."""
    return float(found.elpd_loo if hasattr(found, "elpd_loo") else found.elpd)


def pointwise_elpd(data):
    found = az.loo(data, pointwise=True)
    return np.asarray(found.loo_i if hasattr(found, "loo_i") else found.elpd_i)


def test_loo_is_what_leaving_out_gives(binary, exported):
    """Some documents are left out for real: their responses get weight 0, and the regression is drawn again."""
    posterior = binary.posterior_
    evidence, rows = training_evidence(posterior, None)
    assert exported["log_likelihood"]["document"].values.tolist() == rows.tolist()
    approximate = pointwise_elpd(exported)
    some = np.argsort(approximate)[[0, 5, 30, -1]]  # from the worst predicted on
    for i in some:
        weight = evidence.target.weight.copy()
        weight[i] = 0.0
        without = evidence._replace(target=evidence.target._replace(weight=weight))
        draws = pointwise(posterior, without, 2, 500, 1).topics.reshape(-1, posterior.n_topics)
        assert posterior.consensus.has.all()  # else there are columns beside these
        omega = evidence.target.offset[i] + draws @ evidence.shares[i]
        logs = log_expit(omega if evidence.target.y[i] else -omega)
        assert approximate[i] == pytest.approx(logsumexp(logs) - np.log(len(logs)), abs=0.08)


def test_models_are_compared(corpus, binary, exported):
    """A covariate that says all of the response is worth it; one that says nothing is not."""
    rng = np.random.default_rng(0)
    found = {"topics": exported}
    for name, column in (("truth", corpus.y + 0.3 * rng.normal(size=120)), ("noise", rng.normal(size=120))):
        model = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y, covariates=column[:, None])
        found[name] = model.to_arviz()
        assert found[name]["posterior"]["covariate_coef"].shape == (4, 250, 1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = az.compare(found)
    assert table.index[0] == "truth"
    assert elpd(az.loo(found["truth"])) > elpd(az.loo(exported)) + 5
    assert abs(elpd(az.loo(found["noise"])) - elpd(az.loo(exported))) < 5


def test_the_weights_are_those_that_are_reported(binary, exported):
    coef = exported["posterior"]["coef"]
    assert coef.dims == ("chain", "draw", "column", "topic") and coef.shape == (4, 250, 1, 3)
    sd = binary.coef_draws_.std(axis=0)
    assert (np.abs(coef.values.mean(axis=(0, 1)) - binary.coef_) < sd).all()
    assert (coef.values.std(axis=(0, 1)) < 1.2 * sd).all()  # without differences between chains
    again = binary.to_arviz()
    assert all(again[name].equals(exported[name]) for name in GROUPS)


def survival_times(corpus):
    rng = np.random.default_rng(0)
    time = rng.exponential(size=120) * (1.0 + 5.0 * corpus.doc_topic[:, 0])
    return np.array(list(zip(rng.random(120) < 0.8, time, strict=True)), dtype=[("event", bool), ("time", float)])


def unknown_labels(corpus):
    labels = (corpus.doc_topic > 0.3).astype(float)
    labels[::10, 1] = np.nan
    return labels


def classes(corpus):
    return np.array(["a", "b", "c"])[corpus.doc_topic.argmax(axis=1)]


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (SLDAClassifier(3, **RUN), classes),
        (SLDAClassifier(2, multiclass="separate", **RUN), classes),
        (SLDAClassifier(3, multiclass="stick_breaking", **RUN), classes),
        (MedLDAClassifier(3, **RUN), classes),
        (SLDAClassifier(3, **RUN), unknown_labels),
        (SLDARegressor(3, **RUN), lambda corpus: 100.0 + 7.0 * corpus.doc_topic[:, 0]),
        (SLDARegressor(3, **RUN), lambda corpus: pd.DataFrame(corpus.doc_topic[:, :2], columns=["u", "v"])),
        (SLDACountRegressor(3, **RUN), lambda corpus: (20.0 * corpus.doc_topic[:, 0]).round()),
        (SLDAOrdinalClassifier(3, **RUN), lambda corpus: np.digitize(corpus.doc_topic[:, 0], [0.1, 0.5])),
        (SLDASurvivalRegressor(3, **RUN), survival_times),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_every_response(corpus, model, target):
    """What the draws predict has the mean and the spread of what was seen, and a log-likelihood to go with it."""
    data = model.fit(corpus.X, target(corpus)).to_arviz(25)
    logs = data["log_likelihood"]["y"].values
    assert logs.shape[:2] == (4, 25) and np.isfinite(logs).all()
    assert np.isfinite(elpd(az.loo(data)))
    drawn, seen = data["posterior_predictive"]["y"], data["observed_data"]["y"]
    assert drawn.dims == ("chain", "draw", *seen.dims) and seen.sizes["document"] == logs.shape[2]
    if isinstance(model, SLDASurvivalRegressor):  # of censored documents less was seen than is predicted
        assert drawn.values.mean() > seen.values.mean() - 1
        return
    known = np.isfinite(seen.values)
    assert known.mean() > 0.95
    spread = np.nanstd(seen.values, axis=0)
    assert (np.abs(np.nanmean(seen.values - drawn.values.mean(axis=(0, 1)), axis=0)) < 0.25 * spread).all()
    if target is classes:
        assert data["observed_data"].attrs["classes"] == ["a", "b", "c"]
        rows = data["observed_data"]["document"].values
        assert np.array(["a", "b", "c"])[seen.values].tolist() == classes(corpus)[rows].tolist()


def test_densities_are_in_the_units_of_y(corpus):
    """A thousand times the numbers have a thousandth of the density; the comparison of models does not change."""
    y = corpus.doc_topic[:, 0] + 0.1 * np.random.default_rng(0).normal(size=120)
    one, other = (SLDARegressor(3, **RUN).fit(corpus.X, unit * y).to_arviz(20) for unit in (1.0, 1000.0))
    logs = [data["log_likelihood"]["y"].values for data in (one, other)]
    np.testing.assert_allclose(logs[0] - logs[1], np.log(1000.0), atol=1e-3)
    residual = one["observed_data"]["y"].values - one["posterior_predictive"]["y"].values.mean(axis=(0, 1))
    normal = -0.5 * (residual**2 / residual.var() + np.log(2.0 * np.pi * residual.var()))
    assert logs[0].mean() == pytest.approx(normal.mean(), abs=0.15)


def test_weights_of_documents_count(corpus):
    """A document of weight 2 is one that was seen twice, and one of weight 0 is not there."""
    weight = np.r_[0.0, 2.0, np.ones(118)]
    model = SLDAClassifier(3, **RUN).fit(corpus.X, corpus.y, weight)
    data = model.to_arviz(20)["log_likelihood"]["y"]
    assert 0 not in data["document"].values
    evidence, rows = training_evidence(model.posterior_, None)
    twice = evidence._replace(target=evidence.target._replace(weight=2.0 * evidence.target.weight))
    assert pointwise(model.posterior_, twice, 1, 4, 1).log_likelihood.shape == (1, 4, len(rows))


def test_weights_are_without_what_a_fixed_threshold_adds():
    eta = np.arange(8.0).reshape(1, 8)  # three topics, one that only a chain has, four columns beside them
    own = SimpleNamespace(own=np.ones((1, 3), bool), columns=[slice(0, 1)], places=[slice(0, 3)])
    draw = SimpleNamespace(eta=eta, response=SimpleNamespace(excess=0.5))
    topics, beside = weights_of(own, [SimpleNamespace(x=np.zeros((9, 4)))], (draw,))
    assert topics.tolist() == [[-0.5, 0.5, 1.5]] and beside.tolist() == [[4.0, 5.0, 6.0, 7.0]]


def test_covariates_are_in_their_units(corpus):
    Z = np.random.default_rng(0).normal(size=(120, 1))
    fits = (
        SLDARegressor(3, **RUN).fit(corpus.X, corpus.doc_topic[:, 0], covariates=unit * Z) for unit in (1.0, 1024.0)
    )
    one, other = (model.to_arviz(10)["posterior"]["covariate_coef"].values for model in fits)
    np.testing.assert_allclose(one, 1024.0 * other)


def test_sets_of_topics_have_draws_of_their_own(corpus):
    model = SLDAClassifier(2, multiclass="separate", **RUN).fit(corpus.X, classes(corpus))
    draws = model.to_arviz(50)["posterior"]["coef"].values.reshape(200, 3, 6)
    found = np.corrcoef([draws[:, r, 2 * r + k] for k in range(2) for r in range(3)])
    assert np.abs(found[:3, :3][np.triu_indices(3, 1)]).max() < 0.4


def test_a_likelihood_has_the_weight_of_its_document():
    rng = np.random.default_rng(0)
    y, omega, weight = rng.normal(size=(3, 9, 2))
    target = make_target(y, np.maximum(weight, 0.0))
    response = Gaussian(3.0, np.array([0.5, 2.0]), unit=np.array([1.0, 10.0]))
    logs = norm.logpdf(y, omega, np.sqrt([0.5, 2.0])) - np.log([1.0, 10.0])
    np.testing.assert_allclose(log_likelihood(response, target, omega), (target.weight * logs).sum(axis=1))


def test_several_raters_have_no_known_truth(corpus):
    document = np.repeat(np.arange(120), 2)
    y = pd.DataFrame({"document": document, "rater": np.tile(["x", "z"], 120), "answer": corpus.y[document]})
    data = SLDACrowdClassifier(3, **RUN).fit(corpus.X, y).to_arviz(20)
    assert np.isfinite(elpd(az.loo(data))) and "posterior_predictive" not in getattr(data, "children", data.groups())


def test_what_cannot_be_exported(corpus, binary, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="n_draws must be a whole number >= 4, got 2"):
        binary.to_arviz(2)
    supertopic.save(binary, tmp_path / "m")
    with pytest.raises(ValueError, match="A loaded model has no training documents"):
        supertopic.load(tmp_path / "m").to_arviz()
    with pytest.raises(ValueError, match="No response was held out"):
        SLDAClassifier(3, **RUN | {"words": False}, held_out=0.0).fit(corpus.X, corpus.y).to_arviz()
    assert not hasattr(LDA(3), "to_arviz")
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    with pytest.raises(ImportError, match=r"supertopic\[arviz\]"):
        binary.to_arviz(4)


def test_each_draw_has_its_own_parameter(corpus, monkeypatch):
    """The likelihood of a draw is under its variance, and under its weights."""
    drawn, used, real, of_set = [], [], pointwise_room.log_likelihood, pointwise_room.draw_set

    def draw_set(*given):
        drawn.append(of_set(*given))
        return drawn[-1]

    def likelihood(response, target, omega):
        used.append((response.scale, omega))
        return real(response, target, omega)

    monkeypatch.setattr(pointwise_room, "draw_set", draw_set)
    monkeypatch.setattr(pointwise_room, "log_likelihood", likelihood)
    y = corpus.doc_topic[:, :1] + 0.2 * np.random.default_rng(0).normal(size=(120, 1))
    model = SLDARegressor(3, **RUN).fit(corpus.X, y[:, 0])
    evidence, _ = training_evidence(model.posterior_, None)
    pointwise(model.posterior_, evidence, 2, 3, 1)
    (part,) = drawn
    draws = [draw for own in part.draws for draw in own]
    assert len(draws) == len(used) == 6 and len({float(scale[0]) for scale, _ in used}) == 6
    for draw, (scale, omega) in zip(draws, used, strict=True):
        np.testing.assert_array_equal(scale, draw.response.scale)
        np.testing.assert_allclose(omega, evidence.target.offset + part.x @ draw.eta.T)
