"""Random numbers against their densities and moments, with the ugly corners."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

import naive
from small import ALARM, ERRORS, stops_early
from supertopic.kernels.draws import (
    bits,
    derive,
    explicit_terms,
    inverse_gaussian,
    log_gamma,
    make_key,
    normals,
    polya_gamma_moments,
    polya_gammas,
    uniform,
)


@njit
def many(verb, n, a, b, key):
    out = np.empty(n)
    for i in range(n):
        out[i] = verb(a, b, derive(key, i))
    return out


@njit
def gamma_of(shape, unused, key):
    return np.exp(log_gamma(shape, key))


@njit
def count_terms(h, z):
    return explicit_terms(h, z)


@njit
def unit_moments(z):
    return polya_gamma_moments(z)


@njit
def many_bits(n, key):
    return np.array([bits(key, i) for i in range(n)])


@njit
def uniforms(n, key):
    return np.array([uniform(key, i) for i in range(n)])


@njit
def first_uniforms(n, key):
    return np.array([uniform(derive(key, i), 0) for i in range(n)])


def polya_gamma(n, h, z, seed, first=0):
    return polya_gammas(0.5, np.full((n, 1), 2.0 * h), np.full((n, 1), float(z)), make_key(seed), first)[:, 0]


def moments(h, z):
    """Mean, variance and third cumulant of PG(h, z) from the sum of gammas, its tail by an integral."""
    i = np.arange(1, 200_001)
    w = 1 / (2 * np.pi**2 * (i - 0.5) ** 2 + z**2 / 2)
    tail = 1 / (2 * np.pi**2 * i[-1])
    return h * (w.sum() + tail), h * (w**2).sum(), 2 * h * (w**3).sum()


def test_streams():
    key = make_key(12345, 6, 7)
    assert [int(x) for x in many_bits(5, key)] == [naive.bits(key, i) for i in range(5)]
    for x in (uniforms(1_000_000, key), first_uniforms(1_000_000, key)):
        assert stats.kstest(x, "uniform").pvalue > ALARM
        assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5e-3
    assert make_key(1, 2) != make_key(2, 1) != make_key(1, 2, 0)


def test_normal():
    x = normals((1000, 1000), make_key(3)).ravel()
    assert stats.kstest(x, "norm").pvalue > ALARM
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5e-3


@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 2.5, 25.0, 1e5])
def test_gamma(shape):
    x = many(gamma_of, 500_000, shape, 0.0, make_key(4))
    if shape < 0.1:  # many draws underflow to 0, where the distribution function still counts
        x = np.maximum(x, 1e-300)
    assert stats.kstest(x, stats.gamma(shape).cdf).pvalue > ALARM


@pytest.mark.parametrize("c", [0.5, 4.0, 64.0])
@pytest.mark.parametrize("zeta", [0.0, 1e-9, 1e-3, 1.0, 50.0])
def test_inverse_gaussian(c, zeta):
    x = many(inverse_gaussian, 500_000, c * zeta, c * c, make_key(5))
    assert (x > 0).all() and np.isfinite(x).all()
    if zeta == 0:  # mean c / 0: 1 / x is c**-2 times a chi-square
        assert stats.kstest(c * c / x, stats.chi2(1).cdf).pvalue > ALARM
    else:
        assert stats.kstest(x, stats.invgauss(1 / (c * zeta), scale=c * c).cdf).pvalue > ALARM


@pytest.mark.parametrize("h", [0.3, 1.0, 2.0, 7.5, 16.0, 25.0, 256.0, 1e5])
@pytest.mark.parametrize(
    "z", [0.0, 1e-9, 0.021, 0.1001, 1.0, 3.0, 4.9, 6.5, 9.9, 11.1, 13.9, 14.1, 40.0, -40.0, 1000.0]
)
def test_polya_gamma_moments(h, z):
    """300,000 draws; the third moment too, since the first two are matched by construction."""
    n, x = 300_000, np.empty(0)
    mean, variance, third = moments(h, z)

    def scores():
        powers = ((x - mean) / np.sqrt(variance)) ** np.array([[1], [2], [3]])
        away = powers.mean(axis=1) - [0.0, 1.0, third / variance**1.5]
        return np.abs(away) / (powers.std(axis=1) / np.sqrt(len(x)))

    while len(x) < n and not stops_early(len(x), n, scores):
        x = np.append(x, polya_gamma(n // 3, h, z, int(h * 10 + 7 * abs(z)), len(x)))
    assert (x > 0).all() and np.isfinite(x).all()
    assert scores().max() < ERRORS


@pytest.mark.parametrize("z", [0.0, 0.01, 0.0999, 0.1001, 1.0, 20.0])
def test_polya_gamma_moments_are_exact(z):
    np.testing.assert_allclose(unit_moments(z), moments(1.0, z)[:2], rtol=1e-8)


def test_polya_gamma_moments_are_exact_to_what_many_terms_leave():
    """With small h, 1,000 terms are drawn: the rest has a mean of 5e-5 and a variance of 9e-13."""
    for z in [*np.linspace(0.0, 0.3, 61), *np.linspace(0.5, 14.0, 28)]:
        (mean, variance), exact = unit_moments(z), moments(1.0, z)
        assert abs(mean - exact[0]) < 1e-11 and abs(variance - exact[1]) < 1e-13, z


@pytest.mark.parametrize("c", [1e-4, 1e-3, 0.01, 0.1])
def test_polya_gamma_of_a_small_shape_is_a_number(c):
    z = np.append(np.linspace(0.0, 0.3, 3001), np.linspace(0.3, 14.0, 138))[:, None]
    x = polya_gammas(c, np.ones_like(z), z, make_key(4), 0)
    assert np.isfinite(x).all() and (x >= 0.0).all() and x.mean() < c


@pytest.mark.parametrize("h", [1.0, 15.9, 16.0, 64.0])
def test_polya_gamma_skewness_is_off_by_less_than_any_sample_shows(h):
    """Mean and variance are exact, so the number of explicit terms decides. One term fewer would be off by 8e-4."""
    for z in np.arange(0.0, 40.0, 0.25):
        n = count_terms(h, z)
        w = 1 / (2 * np.pi**2 * (np.arange(n) + 0.5) ** 2 + z**2 / 2)
        mean, variance, third = moments(h, z)
        rest = 3 * (variance - h * (w**2).sum()) ** 2 / (mean - h * w.sum())  # third cumulant of an inverse Gaussian
        assert abs(2 * h * (w**3).sum() + rest - third) / variance**1.5 < 4e-4, z


@pytest.mark.parametrize("h", [1, 2, 5, 25])
@pytest.mark.parametrize("z", [0.0, 0.5, 2.9, 3.1, 8.0, 13.9, 14.1, 30.0])
def test_polya_gamma_against_devroye(h, z):
    """The package's method "devroye" is exact for whole h; its other methods are not and are no oracle."""
    polyagamma = pytest.importorskip("polyagamma", reason="polyagamma has no wheel for this system and Python")
    x = polya_gamma(200_000, h, z, seed=int(h * 100 + z))
    y = polyagamma.random_polyagamma(h, z, size=200_000, method="devroye", random_state=int(h * 100 + z))
    assert stats.ks_2samp(x, y).pvalue > ALARM


def test_polya_gamma_zero_is_zero():
    assert (polya_gamma(10, 0.0, 3.0, seed=1) == 0).all()


def test_a_document_draws_the_same_alone():
    h, z = np.full((6, 2), 2.0), np.linspace(-3, 3, 12).reshape(6, 2)
    together = polya_gammas(1.0, h, z, make_key(9), 10)
    alone = polya_gammas(1.0, h[4:5], z[4:5], make_key(9), 14)
    np.testing.assert_array_equal(together[4:5], alone)
