"""Random numbers as pure functions of a key and an index: no state, so any order and any thread gives the same.

A key is 64 bits made from (seed, chain, iteration, purpose); `derive` makes a key below a key (a document's, a
column's). Numbers below one key are the SplitMix64 sequence (Steele, Lea and Flood, 2014) that starts there.
"""

import math
from typing import Any

import numpy as np
from numba import uint64

from supertopic.kernels.compiled import brief, kernel, part

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
TWO_PI = 2.0 * math.pi
SMALL, MOST_TERMS = 3.0, 1000  # terms of a Polya-Gamma's sum where its shape is small: SMALL / h
NUMBER_0, NUMBER_2 = np.int64(0), np.int64(2)  # plain numbers would be types of their own, each with its own code
MOST_TRIES = 1000  # largest number of tries of a rejection sampler, which accepts nearly always


@part
def mix(x):
    """SplitMix64's finaliser: a bijection of 64 bits in which every bit depends on every bit."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@brief
def derive(key, index):
    """The key of the index-th stream below a key."""
    return mix(uint64(key) ^ mix(uint64(index) + GOLDEN))


def make_key(seed: int | np.uint64, *path: int) -> np.uint64:
    """The key at the end of a path such as (chain, iteration, purpose)."""
    key = np.uint64(seed)
    for index in path:
        key = np.uint64(derive(key, np.uint64(index)))
    return key


@part
def bits(key, i):
    """The i-th 64 random bits of a stream."""
    return mix(uint64(key) + uint64(i + 1) * GOLDEN)


@part
def uniform(key, i):
    """A number in the open interval (0, 1)."""
    return (np.int64(bits(key, i) >> uint64(12)) + 0.5) * 2.0**-52


@part
def uniform32(key, i):
    """A float32 number in [0, 1 - 2**-24]: times any float32, it stays below it."""
    return np.float32(np.int64(bits(key, i) >> uint64(40))) * np.float32(2.0**-24)


@part
def normal(key, i):
    """Box and Muller's transform of the uniforms 2 i and 2 i + 1."""
    return math.sqrt(-2.0 * math.log(uniform(key, 2 * i))) * math.cos(TWO_PI * uniform(key, 2 * i + 1))


@part
def gamma(shape, key):
    """A Gamma(shape, 1) draw for shape >= 1 (Marsaglia and Tsang, 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    for i in range(1, 2 * MOST_TRIES, 2):
        x = normal(key, i)  # uses the uniforms 2 i and 2 i + 1
        v = 1.0 + c * x
        if v > 0.0:
            v, u, square = v * v * v, uniform(key, 2 * i + 2), x * x
            if u < 1.0 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
                return d * v
    return d  # only where the shape is not a number


@part
def log_gamma(shape, key):
    """The logarithm of a Gamma(shape, 1) draw: the draw itself may underflow."""
    large = shape >= 1.0
    log_draw = math.log(gamma(shape if large else shape + 1.0, key))  # one call of a long function
    if large:
        return log_draw
    return log_draw + math.log(uniform(key, NUMBER_0)) / shape  # Gamma(a) = Gamma(a + 1) U**(1/a)


@part
def inverse_gaussian(a, shape, key):
    """An inverse-Gaussian draw with mean shape / a, where a = 0 (infinite mean) is legal.

    Michael, Schucany and Haas (1976), with the root in the form that does not cancel.
    """
    y = normal(key, NUMBER_0)
    y *= y
    x = 2.0 * shape / (2.0 * a + y + math.sqrt(y * (y + 4.0 * a)))
    if uniform(key, NUMBER_2) * (shape + a * x) <= shape:
        return x
    return (shape / a) * (shape / a) / x


@part
def explicit_terms(h, z):
    """How many terms of a Polya-Gamma's sum are drawn as they are, for z >= 0."""
    many = h >= 16.0  # a sum of many is closer to normal, so that fewer terms do
    if z >= (11.0 if many else 14.0):  # the whole is as good as inverse Gaussian
        return 0
    n = 2 + int(z / (5.0 if many else 3.0))
    if h < 1.0:  # most terms are nearly 0, and the rest has a long tail unless it is of many terms' size
        return max(n, min(int(SMALL / h), MOST_TERMS))
    return n


@part
def polya_gamma_moments(z):
    """Mean and variance of PG(1, z) for z >= 0; those of PG(h, z) are h times as large."""
    square = z * z
    if z < 0.1:  # the closed forms cancel near 0, and with 1,000 terms of the sum only 1e-12 of the variance is left
        mean = 0.25 - square * (1.0 / 48.0 - square * (1.0 / 480.0 - square * (17.0 / 80640.0)))
        more = 17.0 / 13440.0 - square * (31.0 / 181440.0 - square * (691.0 / 31933440.0))
        return mean, 1.0 / 24.0 - square * (1.0 / 120.0 - square * more)
    e = math.exp(-z)
    mean = (1.0 - e) / (1.0 + e) / (2.0 * z)
    return mean, (1.0 - e * e - 2.0 * z * e) / (2.0 * z * square * (1.0 + e) * (1.0 + e))


@part
def polya_gamma(h, z, key):
    """A draw of PG(h, z) for real h >= 0, at a cost that does not grow with h; PG(0, z) = 0.

    PG(h, z) is the sum over i = 1, 2, ... of w_i Gamma(h), w_i = 1 / (2 pi**2 (i - 1/2)**2 + z**2 / 2). The first
    few terms are drawn as they are. The rest is drawn from the inverse Gaussian with the rest's mean and variance,
    which is what the rest tends to. Mean and variance are then exact, and the skewness is off by at most 4e-4 (for
    h >= 1; below, by 4e-4 / sqrt(h), which is as small a part of it).
    """
    if h <= 0.0:
        return 0.0
    z = math.fabs(z)
    mean, variance = polya_gamma_moments(z)
    square, total = z * z, 0.0
    for i in range(explicit_terms(h, z)):
        w = 1.0 / (0.5 * (TWO_PI * (i + 0.5)) * (TWO_PI * (i + 0.5)) + 0.5 * square)
        stream = derive(key, i + 1)
        draw = gamma(h if h >= 1.0 else h + 1.0, stream)
        if h < 1.0:  # as in `log_gamma`
            draw = math.exp(math.log(draw) + math.log(uniform(stream, NUMBER_0)) / h)
        total += w * draw
        mean -= w
        variance -= w * w
    # mean h mean, variance h variance; an inverse Gaussian has variance = mean**3 / shape
    a = h * mean * mean / variance
    return total + inverse_gaussian(a, a * h * mean, key)


@kernel
def polya_gammas(c, h, z, key, first):
    """PG(c h, z) for every document and column; the draw of a document does not depend on which others are here."""
    lam = np.empty_like(z)  # (n_docs, R)
    for d in range(z.shape[0]):
        stream = derive(key, first + d)
        for r in range(z.shape[1]):
            lam[d, r] = polya_gamma(c * h[d, r], z[d, r], derive(stream, r))
    return lam


@kernel
def inverse_gaussians(a, shape, key, first):
    """Inverse-Gaussian draws with mean shape / a for every document and column; 0 where the shape is 0."""
    lam = np.zeros_like(a)  # (n_docs, R)
    for d in range(a.shape[0]):
        stream = derive(key, first + d)
        for r in range(a.shape[1]):
            if shape[d, r] > 0.0:
                lam[d, r] = inverse_gaussian(a[d, r], shape[d, r], derive(stream, r))
    return lam


@brief
def gammas(shape, key):
    """Gamma(shape, 1) draws for shapes >= 1, numbered."""
    out = np.empty_like(shape)
    for i in range(len(shape)):
        out[i] = gamma(shape[i], derive(key, i))
    return out


@brief
def uniforms(n, key):
    """Numbers in (0, 1)."""
    out = np.empty(n)
    for i in range(n):
        out[i] = uniform(key, i)
    return out


def normals(shape: tuple[int, int], key: np.uint64) -> np.ndarray:
    """Standard normals, numbered by row and column."""
    out = np.empty(shape)
    put_normals(key, out)
    return out


@brief
def put_normals(key, out):
    """Put them into an array."""
    for i in range(out.shape[0]):
        stream = derive(key, i)
        for j in range(out.shape[1]):
            out[i, j] = normal(stream, j)


def document_streams(key: np.uint64, first_doc: int, n_docs: int) -> np.ndarray:
    """A stream for each document that depends on its number in the corpus."""
    streams = np.empty(n_docs, np.uint64)
    put_document_streams(key, first_doc, streams)
    return streams


@brief
def put_document_streams(key, first_doc, streams):
    """Put them into streams (n_docs,)."""
    for d in range(len(streams)):
        streams[d] = derive(key, first_doc + d)


def content_streams(tokens: Any, key: np.uint64) -> np.ndarray:
    """A stream for each document that depends on its words only: neither on its neighbours nor its place."""
    streams = np.empty(len(tokens.doc_start) - 1, np.uint64)
    put_content_streams(tokens, key, streams)
    return streams


@kernel
def put_content_streams(tokens, key, streams):
    """Put them into streams (n_docs,)."""
    for d in range(len(streams)):
        stream = np.uint64(key)
        for i in range(tokens.doc_start[d], tokens.doc_start[d + 1]):
            stream = mix(stream + np.uint64(tokens.word[i]) + np.uint64(1))
        streams[d] = derive(stream, NUMBER_0)
