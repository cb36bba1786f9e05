"""Several raters in pairs with other features: every pair of values of two features is in some generated case."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from test_pairs import assert_same, stopping

from supertopic import Prior, Seeds, SLDACrowdClassifier, SLDACrowdRegressor, load, save

pytestmark = [
    pytest.mark.filterwarnings("ignore:Found no relation between topics"),
    pytest.mark.filterwarnings("ignore:No document has answers of two raters"),
    pytest.mark.usefixtures("short_regressions"),
]
K, V, N = 3, 20, 90
WORDS = np.array([f"w{i}" for i in range(V)], object)
FEATURES = {
    "kind": ("binary", "classes", "ratings"), "covariates": (False, True), "groups": (False, True),
    "features": (False, True), "weights": (False, True), "unknown": (False, True), "gold": (False, True),
    "known": ("", "seeds", "prior"), "batches": (False, True), "resumed": (False, True), "words": (False, True),
    "topics_first": (False, True), "held_out": (0.0, 0.2), "n_chains": (1, 2),
    "sampler": ("collapsed", "delayed", "drawn"), "long": (False, True),
}  # fmt: skip


def covering(features, n_tried=20):
    """Cases that have every pair of values of two features."""
    rng, found = np.random.default_rng(3), []
    left = {(a, x, b, y) for a, b in itertools.combinations(features, 2) for x in features[a] for y in features[b]}
    while left:
        tried = [{name: values[rng.integers(len(values))] for name, values in features.items()} for _ in range(n_tried)]
        sets = [{(a, case[a], b, case[b]) for a, b in itertools.combinations(features, 2)} for case in tried]
        best = int(np.argmax([len(own & left) for own in sets]))
        if sets[best] & left:
            found.append(tried[best])
            left -= sets[best]
    return found


CASES = covering(FEATURES)


class Batch:
    """Documents and answers, and all that `fit` and `predict` take beside them."""

    def __init__(self, case, number):
        rng = np.random.default_rng([5, number])
        share = rng.dirichlet(np.full(K, 0.4), N)
        phi = np.array([np.where(np.arange(V) % K == k, 6.0, 1.0) for k in range(K)])
        lengths = rng.integers(1, 22, N) * (rng.random(N) > 0.08)
        self.X = sp.csr_array(np.array([
            rng.multinomial(n, p @ phi / (p @ phi).sum()) for n, p in zip(lengths, share, strict=True)
        ]))  # fmt: skip
        Z = rng.normal(size=(N, 2)) + [0.5, -3.0]
        omega = 4.0 * share + 0.4 * Z[:, :1] + 0.5 * rng.normal(size=(N, K))
        beside = {"covariates": Z, "features": rng.normal(size=(N, 3)) + omega[:, :1], "groups": rng.integers(0, 4, N)}
        self.beside = {name: value for name, value in beside.items() if case[name]}
        if case["kind"] == "ratings":
            self.truth = 3.0 + 2.0 * omega[:, 0]
            self.y = self.truth[:, None] + [0.5, -0.5, 0.0] + rng.normal(size=(N, 3)) * [0.3, 0.6, 1.5]
        else:
            names = ["a", "b"] if case["kind"] == "binary" else ["a", "b", "c"]
            self.truth = np.array(names, object)[
                (omega[:, : len(names)] - [0.0, 0.5, -0.3][: len(names)]).argmax(axis=1)
            ]
            wrong = np.array(names, object)[rng.integers(0, len(names), (N, 3))]
            self.y = np.where(rng.random((N, 3)) < [0.9, 0.7, 0.4], self.truth[:, None], wrong)
        self.asked = rng.random((N, 3)) < 0.7
        if case["unknown"]:
            self.asked[:20] = False
        self.y[~self.asked] = np.nan if case["kind"] == "ratings" else None
        self.gold = self.truth.copy()
        self.gold[20 if case["gold"] else 0 :] = np.nan if case["kind"] == "ratings" else None
        self.weight = 2.0 ** rng.integers(-1, 2, N)
        self.case = case

    @property
    def answers(self):
        """As a wide table, or as a long one in any order."""
        if not self.case["long"]:
            return self.y
        import pandas

        doc, rater = np.nonzero(self.asked)
        table = pandas.DataFrame({"document": doc, "rater": rater, "answer": self.y[doc, rater]})
        return table.sample(frac=1.0, random_state=0)

    def arguments(self):
        weight = {"sample_weight": self.weight} if self.case["weights"] else {}
        gold = {"gold": self.gold} if self.case["gold"] else {}
        return {"X": self.X, "y": self.answers, **weight, **gold, **self.beside, "feature_names": WORDS}


def estimator(case, **more):
    kind = SLDACrowdRegressor if case["kind"] == "ratings" else SLDACrowdClassifier
    if case["known"] == "seeds":
        more["seeds"] = Seeds({"b": ["w1", "w4"], "free": ["w2"]}, strength=0.5, weights="auto")
    if case["known"] == "prior":
        plain = case | dict.fromkeys(("batches", "resumed", "words", "features", "long"), False)
        plain |= {"known": "", "held_out": 0.0}
        more["prior"] = Prior(estimator(plain, n_topics=2).fit(**Batch(plain, 7).arguments()), discount=0.5)
    settings = {
        "n_topics": K, "words": case["words"], "priority": "topics" if case["topics_first"] else "prediction",
        "held_out": case["held_out"], "n_chains": case["n_chains"], "sampler": case["sampler"], "burn_in": 3,
        "n_draws": 3, "predict_sweeps": 6, "n_jobs": 1, "random_state": 11,
    }  # fmt: skip
    return kind(**(settings | more))


def learn(case, batches, folder=None, monkeypatch=None, **more):
    model = estimator(case, **more)
    for i, batch in enumerate(batches[: 1 + case["batches"]]):
        verb, arguments = model.partial_fit if case["batches"] else model.fit, batch.arguments()
        if case["batches"] and not i and case["kind"] != "ratings":
            arguments["classes"] = ["a", "b"] if case["kind"] == "binary" else ["a", "b", "c"]
        if folder is not None:
            arguments |= {"checkpoint": folder / f"{i}", "checkpoint_every": 0}
            stopping(monkeypatch, int(0.7 * 6 * case["n_chains"]), lambda call=verb, given=arguments: call(**given))
        verb(**arguments)
    return model


def inferred(case, model, batch):
    """The true labels given texts and answers, by their definition."""
    documents, response = model._new(batch.X, **batch.beside), model.posterior_.response
    found = []
    for omega, scale in zip(documents.omega(), documents.pairs.over(model.posterior_.scale), strict=True):
        if case["kind"] == "ratings":
            bias, tau = np.split(scale[1:], 2)
            P = np.where(batch.asked, tau, 0.0)
            y = np.where(batch.asked, (batch.y - response.centre) / response.unit, 0.0)
            mean = (omega[:, 0] / scale[0] + (P * (y - bias)).sum(axis=1)) / (1.0 / scale[0] + P.sum(axis=1))
            known = ~np.isnan(batch.gold)
            mean[known] = ((batch.gold - response.centre) / response.unit)[known]
            found.append(response.centre + response.unit * mean)
            continue
        names = response.classes.tolist()
        logs = np.column_stack([np.zeros(N), omega]) if len(names) == 2 else omega
        confusion = np.log(scale.reshape(3, len(names), len(names)))
        p = softmax(logs, axis=1)
        for d, r in zip(*np.nonzero(batch.asked), strict=True):
            p[d] *= np.exp(confusion[r, :, names.index(batch.y[d, r])])
        for d, label in enumerate(batch.gold):
            if label is not None:
                p[d] = np.array(names) == label
        found.append(p / p.sum(axis=1, keepdims=True))
    return np.mean(found, axis=0)


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: " ".join(f"{k}" if v is True else f"{v}" for k, v in case.items() if v)
)
def test_pairs(case, tmp_path, monkeypatch):
    batches = [Batch(case, 0), Batch(case, 1)]
    model, new = learn(case, batches), Batch(case, 2)
    response = model.posterior_.response
    seen = sum(batch.asked.sum(axis=0) for batch in batches[: 1 + case["batches"]])
    assert model.rater_frame()["answers"].tolist() == seen.tolist()
    threads = learn(case, batches, n_jobs=2)
    assert_same(model.posterior_, threads.posterior_)
    if case["resumed"]:
        assert_same(model.posterior_, learn(case, batches, tmp_path, monkeypatch).posterior_)
    if case["kind"] != "ratings":
        draws = np.concatenate(model.posterior_.scale).reshape(-1, 3, response.n_classes, response.n_classes)
        np.testing.assert_allclose(draws.sum(axis=3), 1.0, atol=1e-6)
    infer = model.infer_ratings if case["kind"] == "ratings" else model.infer_labels
    np.testing.assert_allclose(infer(new.X, new.answers, gold=new.gold, **new.beside), inferred(case, model, new))
    found = model.explain(new.X[:1], **{name: value[:1] for name, value in new.beside.items()})
    np.testing.assert_allclose(found.total.sum(axis=0) + sum(found.others.values()), found.omega)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(new.X, **new.beside), model.predict(new.X, **new.beside))
    one, other = (m.partial_fit(**new.arguments()) for m in (again, model))
    for name in ("scale", "reported", "prediction"):
        np.testing.assert_array_equal(getattr(one.posterior_, name), getattr(other.posterior_, name))
    losses = model.evaluate(new.X, new.truth, **new.beside).losses
    assert np.isfinite(losses).all()
