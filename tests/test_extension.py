"""A new response, added as CONTRIBUTING.md tells a contributor to: a class, and an estimator that uses it."""

from dataclasses import dataclass

import numpy as np
import pytest
from test_posterior import check_exactly

from supertopic import SLDARegressor
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import inverse_gaussians
from supertopic.sampling import plan as plans
from supertopic.sampling.responses import Response


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
        return -np.abs(y - omega) / self.b


class MedianRegressor(SLDARegressor):
    """Ratings, of which a few are far out."""

    def _encode(self, y, weight, exposure, *more):
        _, target = super()._encode(y, weight, exposure, *more)
        return Laplace(float(self.c), 0.3), target


@pytest.mark.parametrize("sampler", ["collapsed", "drawn"])
def test_its_posterior_is_exact(sampler, monkeypatch):
    monkeypatch.setattr(plans, "SPARSE_FROM", 10**6)
    check_exactly(
        sampler, "real", Laplace(1.5, 0.8), lambda y, omega, scale: -1.5 * np.abs(y - omega) / 0.8, [0.5, 0.5], {}
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
