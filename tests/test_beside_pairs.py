"""Groups, exposures and times in pairs with other features: one way to a model is as good as another, to the bit."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from test_crowd_pairs import covering
from test_pairs import assert_same, stopping

from supertopic import (
    MedLDAClassifier,
    Prior,
    SLDAClassifier,
    SLDACountRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    load,
    save,
)
from supertopic.inference import predict as predict_room
from supertopic.light import load_predictor
from supertopic.sampling import plan

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.usefixtures("short_regressions")]
K, V, N = 3, 15, 70
WORDS = np.array([f"w{i}" for i in range(V)], object)
KINDS = {
    "times": (SLDASurvivalRegressor, {"periods": 3}),
    "periods": (SLDASurvivalRegressor, {"periods": 3, "effects": "by_period"}),
    "counts": (SLDACountRegressor, {}),
    "ratings": (SLDARegressor, {}),
    "grades": (SLDAOrdinalClassifier, {}),
    "sticks": (SLDAClassifier, {"multiclass": "stick_breaking", "class_weight": "balanced"}),
    "separate": (SLDAClassifier, {"multiclass": "separate"}),
    "labels": (SLDAClassifier, {"class_weight": "balanced"}),
    "hinge": (MedLDAClassifier, {}),
}
FEATURES = {
    "kind": tuple(KINDS), "groups": (True, False), "covariates": (False, True), "features": (False, True),
    "words": (False, True), "weights": (False, True), "unknown": (False, True), "batches": (True, False),
    "prior": (False, True), "topics_first": (False, True), "held_out": (0.2, 0.0), "n_chains": (1, 2),
    "sampler": ("collapsed", "delayed", "drawn"), "optimize_priors": (False, True),
    "many_weights": (False, True), "many_topics": (False, True), "calibrate": (True, False),
}  # fmt: skip
CASES = covering(FEATURES, 60)


class Batch:
    """Documents, and all that is given beside them."""

    def __init__(self, case, number):
        self.case, rng = case, np.random.default_rng([9, number])
        share = rng.dirichlet(np.full(K, 0.4), N)
        phi = np.array([np.where(np.arange(V) % K == k, 6.0, 1.0) for k in range(K)]) / (V + 10.0)
        lengths = rng.integers(1, 18, N) * (rng.random(N) > 0.1)
        self.X = sp.csr_array(np.array([rng.multinomial(n, p @ phi / (p @ phi).sum()) for n, p in zip(
            lengths, share, strict=True)]))  # fmt: skip
        Z, group = rng.normal(size=(N, 2)) + [0.5, -3.0], rng.integers(0, 4, N)
        effect = 3.0 * share + 0.4 * Z[:, :1] + 0.5 * group[:, None] % 3 + 0.3 * rng.normal(size=(N, K))
        beside = {"covariates": Z, "groups": group, "features": rng.normal(size=(N, 3)) + effect[:, :1]}
        self.beside = {name: value for name, value in beside.items() if case[name]}
        if case["kind"] == "counts":
            self.beside["exposure"] = 2.0 ** rng.integers(-1, 3, N)
        late = np.column_stack([np.exp(0.4 * effect[:, 0]).clip(0.1, 9.0), rng.random(N) < 0.7])
        self.y = {
            "times": late, "periods": late, "counts": rng.poisson(np.exp(0.4 * effect[:, 0])) * 1.0,
            "ratings": [3.0, -9.0] + [2.0, 5.0] * effect[:, :2], "labels": (effect > 1.2) * 1.0,
            "grades": np.digitize(effect[:, 0], [0.8, 1.6, 2.6]) * 1.0,
        }.get(case["kind"], np.array(list("abc"), object)[effect.argmax(axis=1)])  # fmt: skip
        self.weight = 2.0 ** rng.integers(-1, 2, N)
        self.gone = np.flatnonzero(rng.random(N) < 0.2) if case["unknown"] else np.zeros(0, int)

    def arguments(self, as_weights=False):
        """Unknown responses, or ones of weight 0."""
        y, weight = self.y.copy(), self.weight.copy() if self.case["weights"] else np.ones(N)
        if as_weights:
            weight[self.gone] = 0.0
        else:
            y[self.gone] = None if y.dtype == object else np.nan
        return {"X": self.X, "y": y, "sample_weight": weight, **self.beside, "feature_names": WORDS}


def estimator(case, **more):
    kind, options = KINDS[case["kind"]]
    if case["prior"]:
        plain = case | dict.fromkeys(("prior", "batches", "words", "features", "unknown"), False) | {"held_out": 0.0}
        before = estimator(plain, n_topics=2).fit(**Batch(plain, 7).arguments())
        more["prior"] = Prior(
            before,
            weights=not (case["groups"] or case["many_weights"]) and case["kind"] not in ("times", "periods"),
            discount=0.5,
        )
    settings = {
        "n_topics": K, "words": case["words"], "priority": "topics" if case["topics_first"] else "prediction",
        "held_out": case["held_out"], "n_chains": case["n_chains"], "sampler": case["sampler"], "burn_in": 3,
        "optimize_priors": case["optimize_priors"], "calibrate": case["calibrate"] or case["features"],
        "n_draws": 2, "predict_sweeps": 6, "n_jobs": 1, "random_state": 5,
    }  # fmt: skip
    return kind(**(settings | options | more))


def learn(case, batches, folder=None, monkeypatch=None, as_weights=False, **more):
    model = estimator(case, **more)
    for i, batch in enumerate(batches[: 1 + case["batches"]]):
        verb, arguments = model.partial_fit if case["batches"] else model.fit, batch.arguments(as_weights)
        if case["batches"] and not i and case["kind"] in ("sticks", "separate", "hinge", "grades"):
            arguments["classes"] = [0.0, 1.0, 2.0, 3.0] if case["kind"] == "grades" else ["a", "b", "c"]
        if folder is not None:
            arguments |= {"checkpoint": folder / f"{i}", "checkpoint_every": 0}
            n_sets = 3 if case["kind"] == "separate" else 1
            stopping(
                monkeypatch, int(0.7 * 5 * n_sets * case["n_chains"]), lambda call=verb, own=arguments: call(**own)
            )
        verb(**arguments)
    return model


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: " ".join(f"{k}" if v is True else f"{v}" for k, v in case.items() if v)
)
def test_pairs(case, tmp_path, monkeypatch):
    if case["many_weights"]:
        monkeypatch.setattr(plan, "MOST_WEIGHTS", 1)
    if case["many_topics"]:
        monkeypatch.setattr(plan, "SPARSE_FROM", 1)
    number, batches, new = CASES.index(case), [Batch(case, 0), Batch(case, 1)], Batch(case, 2)
    model = learn(case, batches)
    ways = {
        "threads": lambda: learn(case, batches, n_jobs=2),
        "resumed": lambda: learn(case, batches, tmp_path, monkeypatch),
        "weight 0": lambda: learn(case, batches, as_weights=True),
    }
    for way in [list(ways)[number % 3]] + ["weight 0"] * case["unknown"]:
        assert_same(model.posterior_, ways[way]().posterior_, way, ("timings", "cross_fitted"))
    omega = model._new(new.X, **new.beside).omega()
    some = {name: value[3:9] for name, value in new.beside.items()}
    np.testing.assert_array_equal(model._new(new.X[3:9], **some).omega(), omega[:, 3:9])
    for d in (3, int(np.flatnonzero(np.diff(new.X.indptr) == 0)[0])):
        found = model.explain(new.X[[d]], **{name: value[[d]] for name, value in new.beside.items()})
        np.testing.assert_allclose(found.total.sum(axis=0) + sum(found.others.values()), found.omega, atol=1e-9)
    save(model, tmp_path / "model")
    again, light = load(tmp_path / "model"), load_predictor(tmp_path / "model")
    expected = model._new(new.X, **new.beside).expected()
    np.testing.assert_array_equal(again._new(new.X, **new.beside).expected(), expected)
    np.testing.assert_allclose(light.expected(new.X, **new.beside), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(light.transform(new.X), model.transform(new.X), atol=1e-9)
    losses = model.evaluate(new.X, new.y, **new.beside).losses
    assert np.isfinite(losses).all()
    with monkeypatch.context() as patch:  # some documents at a time
        patch.setattr(predict_room, "CHUNK_NUMBERS", 100)
        np.testing.assert_array_equal(model._new(new.X, **new.beside).expected(), expected)
        np.testing.assert_array_equal(model.evaluate(new.X, new.y, **new.beside).losses, losses)
    one, other = (m.partial_fit(**new.arguments()) for m in (again, copy.copy(model)))
    assert_same(one.posterior_, other.posterior_, without=("timings", "cross_fitted"))


NEUTRAL = {
    "weights of 1": ("ratings", {"sample_weight": np.ones(N)}, {}),
    "an exposure of 1": ("counts", {"exposure": np.ones(N)}, {}),
    "class weights of 1": ("sticks", {}, {"class_weight": {"a": 1.0, "b": 1.0, "c": 1.0}}),
    "a discount of 1": ("times", {"discount": 1.0}, {}),
}


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_is_neutral_changes_no_bit(name):
    kind, given, options = NEUTRAL[name]
    case = dict.fromkeys(FEATURES, False) | {"kind": kind, "groups": True, "words": True, "covariates": True}
    case |= {"held_out": 0.2, "n_chains": 1, "sampler": "delayed", "calibrate": True}
    plain, with_it, predicted = [], [], []
    for models, more, own in ((plain, {}, {"class_weight": None}), (with_it, given, options)):
        model = estimator(case, **{key: value for key, value in own.items() if key in KINDS[kind][1]})
        for number in (0, 1):
            arguments = Batch(case, number).arguments()
            for key in ("exposure", "sample_weight"):
                arguments.pop(key, None)
            model.partial_fit(**arguments, **(more if "discount" not in more or number else {}))
            models.append(model.posterior_)
        new = Batch(case, 2)
        new.beside = {key: new.beside[key] for key in ("covariates", "groups")}
        new.beside |= {"exposure": np.ones(N)} if "exposure" in more else {}
        predicted.append(model._new(new.X, **new.beside).expected())
    for a, b in zip(plain, with_it, strict=True):
        assert_same(a, b, "", ("timings", "cross_fitted", "exposed", "class_weight"))
    np.testing.assert_array_equal(*predicted)
