"""A new response, added as CONTRIBUTING.md tells a contributor to: a class, and an estimator that uses it."""

from dataclasses import dataclass

import numpy as np
import pytest
from test_posterior import check_exactly

from supertopic import SLDARegressor
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import inverse_gaussians
from supertopic.model.responses import Response
from supertopic.sampling import plan as plans


@dataclass(frozen=True)
class Laplace(Response):
    """psi = exp(-c |y - omega| / b): the median in the place of the mean. Given omega, lam is inverse Gaussian."""

    b: float

    def draw_lam(self, target, omega, key, first_doc):
        a = self.c * target.weight / self.b
        return inverse_gaussians(a * np.abs(target.y - omega), a * a, key, first_doc)

    def kappa(self, target):
        return np.zeros_like(target.y), target.y

    def mean_lam(self, target, omega):
        return self.c * target.weight / self.b / np.maximum(np.abs(target.y - omega), 0.1)

    def log_density(self, y, omega):
        return -np.abs(y - omega) / self.b - np.log(2.0 * self.b)

    def variance(self, omega):
        return np.full(omega.shape, 2.0 * self.b**2)

    def cdf(self, y, omega):
        tail = 0.5 * np.exp(-np.abs(y - omega) / self.b)
        return np.where(y < omega, tail, 1.0 - tail)


class MedianRegressor(SLDARegressor):
    """Ratings, of which a few are far out."""

    def _response(self, n_columns):
        return Laplace(float(self.c), 0.3)


@pytest.mark.parametrize("sampler", ["collapsed", "drawn"])
def test_its_posterior_is_exact(sampler, monkeypatch):
    monkeypatch.setattr(plans, "SPARSE_FROM", 10**6)
    check_exactly(
        sampler,
        "real",
        Laplace(1.5, 0.8),
        lambda y, omega, scale: 1.5 * (-np.abs(y - omega) / 0.8 - np.log(1.6)),
        [0.5, 0.5],
        {},
    )


def test_its_estimator_forgives_what_is_far_out():
    corpus = make_corpus(n_docs=400, n_topics=3, random_state=0)
    rng = np.random.default_rng(0)
    truth = corpus.doc_topic @ [1.0, 2.0, 4.0]
    y = truth + 0.1 * rng.normal(size=400)
    y[rng.permutation(400)[:40]] += 100.0
    run = {"n_topics": 3, "c": 1.0, "words": False, "burn_in": 60, "n_draws": 20, "random_state": 0}
    robust, mean = (kind(**run).fit(corpus.X, y).predict(corpus.X) for kind in (MedianRegressor, SLDARegressor))
    assert np.median(np.abs(robust - truth)) < 0.1 < 5 < np.median(np.abs(mean - truth))


def test_its_estimator_is_whole(tmp_path, monkeypatch):
    """Spread, intervals, densities and files are those of the new response, in the units of the ratings."""
    from supertopic import load, save
    from supertopic.estimators import storage

    monkeypatch.setitem(storage.KINDS, "MedianRegressor", MedianRegressor)
    corpus = make_corpus(n_docs=300, n_topics=3, random_state=0)
    y = 50.0 + 10.0 * (corpus.doc_topic @ [1.0, 2.0, 4.0] + np.random.default_rng(0).laplace(0, 0.3, 300))
    model = MedianRegressor(3, c=1.0, words=False, burn_in=20, n_draws=10, random_state=0).fit(corpus.X, y)
    new = corpus.X[:40]
    mean, std = model.predict(new, return_std=True)
    b = 0.3 * model.unit_[0]
    assert (std >= np.sqrt(2.0) * b).all() and (std < 3.0 * b).all()
    omega = model._foretell(lambda omegas, *_: np.moveaxis(omegas, 0, 1), new)[..., 0]  # (n_docs, draw)
    density = np.exp(-np.abs(y[:40, None] - omega) / b).mean(axis=1) / (2.0 * b)
    np.testing.assert_allclose(model.log_predictive(new, y[:40]), np.log(density))
    lower, upper = model.predict_interval(new, 0.8)
    for end, q in ((lower, 0.1), (upper, 0.9)):
        tail = 0.5 * np.exp(-np.abs(end[:, None] - omega) / b)
        np.testing.assert_allclose(np.where(end[:, None] < omega, tail, 1.0 - tail).mean(axis=1), q, atol=1e-6)
    assert set(model.surprising(new, y[:40], 5)) <= set(range(40))
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(new, return_std=True), (mean, std))
    np.testing.assert_array_equal(model.partial_fit(corpus.X, y).predict(new), model.predict(new))
