"""Responses that are rows of coins: ordered classes and times, with one omega and a threshold for each coin.

Coin j shows whether omega is above threshold j, with probability sigmoid(omega - threshold_j). Which coins a document
has, and what they show, depends on its response:

- CUMULATIVE (ordered classes, y is the number of the class): P(class > j) = sigmoid(omega - threshold_j). The
  probability of an inner class factorises, sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)): a
  document has the coins at both ends of its class, and a factor that depends on their distance, but not on omega.
- SEQUENTIAL (time, y is the number of periods that passed, plus 1/2 if the event came in the next one): a document has
  the coin of each period that it lived to see, and only the event is "above".

Each coin is a logistic likelihood, so that it is augmented by a lam of its own, and the sum of their quadratics in
omega is one quadratic.
"""

import math

import numpy as np

from supertopic.kernels.compiled import kernel, part
from supertopic.kernels.draws import derive, polya_gamma
from supertopic.kernels.responses import log_sigmoid

CUMULATIVE, SEQUENTIAL = range(2)


@part
def first_coin(kind, y):
    """The number of the first coin of a document."""
    return max(int(y) - 1, 0) if kind == CUMULATIVE else 0


@part
def last_coin(kind, y, n_coins):
    """The number of its last coin."""
    if kind == CUMULATIVE:
        return min(int(y), n_coins - 1)
    return int(y) if y > math.floor(y) else int(y) - 1


@part
def is_above(kind, y, j):
    """What the coin shows."""
    return j < int(y) if kind == CUMULATIVE else j == int(y)


@kernel
def draw_coins(kind, c, thresholds, y, weight, omega, offset, key, first_doc):
    """Draw kappa and lam (n_docs, 1) given omega; the draw of a document depends on its number only."""
    kappa, lam = np.zeros(omega.shape), np.zeros(omega.shape)
    for d in range(len(omega)):
        h, stream = c * weight[d, 0], derive(key, first_doc + d)
        if h <= 0.0:
            continue
        for j in range(first_coin(kind, y[d, 0]), last_coin(kind, y[d, 0], len(thresholds)) + 1):
            drawn = polya_gamma(h, omega[d, 0] - thresholds[j], derive(stream, j))
            lam[d, 0] += drawn
            kappa[d, 0] += (0.5 * h if is_above(kind, y[d, 0], j) else -0.5 * h) + drawn * (
                thresholds[j] - offset[d, 0]
            )
    return kappa, lam


@kernel
def mean_coins(kind, c, thresholds, y, weight, offset):
    """The mean of the same where omega is the offset."""
    kappa, lam = np.zeros(weight.shape), np.zeros(weight.shape)
    for d in range(len(weight)):
        h = c * weight[d, 0]
        if h <= 0.0:
            continue
        for j in range(first_coin(kind, y[d, 0]), last_coin(kind, y[d, 0], len(thresholds)) + 1):
            half = max(0.5 * abs(offset[d, 0] - thresholds[j]), 1e-6)
            mean = h * math.tanh(half) / (4.0 * half)
            lam[d, 0] += mean
            kappa[d, 0] += (0.5 * h if is_above(kind, y[d, 0], j) else -0.5 * h) + mean * (thresholds[j] - offset[d, 0])
    return kappa, lam


@kernel
def coin_slopes(kind, thresholds, y, omega):
    """The first and the negative second derivative of the log-likelihood in omega, (n_docs, 1) each."""
    slope, curvature = np.zeros(omega.shape), np.zeros(omega.shape)
    for d in range(len(omega)):
        for j in range(first_coin(kind, y[d, 0]), last_coin(kind, y[d, 0], len(thresholds)) + 1):
            p = math.exp(log_sigmoid(omega[d, 0] - thresholds[j]))
            slope[d, 0] += (1.0 if is_above(kind, y[d, 0], j) else 0.0) - p
            curvature[d, 0] += p * (1.0 - p)
    return slope, curvature


@kernel
def log_coins(kind, thresholds, y, omega):
    """The log-likelihood of each document, (n_docs, 1)."""
    found, n_coins = np.zeros(omega.shape), len(thresholds)
    for d in range(len(omega)):
        for j in range(first_coin(kind, y[d, 0]), last_coin(kind, y[d, 0], n_coins) + 1):
            x = omega[d, 0] - thresholds[j]
            found[d, 0] += log_sigmoid(x if is_above(kind, y[d, 0], j) else -x)
        g = int(y[d, 0])
        if kind == CUMULATIVE and 0 < g < n_coins:
            found[d, 0] += math.log(-math.expm1(thresholds[g - 1] - thresholds[g]))
    return found


@kernel
def coin_sums(kind, thresholds, y, weight, omega):
    """For each coin the log-likelihood of all documents that have it, then for each class its weight: (2 S + 1,)."""
    n_coins = len(thresholds)
    found = np.zeros(2 * n_coins + 1)
    for d in range(len(omega)):
        if weight[d, 0] <= 0.0:
            continue
        for j in range(first_coin(kind, y[d, 0]), last_coin(kind, y[d, 0], n_coins) + 1):
            x = omega[d, 0] - thresholds[j]
            found[j] += weight[d, 0] * log_sigmoid(x if is_above(kind, y[d, 0], j) else -x)
        if kind == CUMULATIVE:
            found[n_coins + int(y[d, 0])] += weight[d, 0]
    return found


@kernel
def threshold_sums(kind, thresholds, y, weight, omega):
    """For each coin the log-likelihood, its slope and its negative second derivative in the threshold: (3, S)."""
    found = np.zeros((3, len(thresholds)))
    for d in range(len(omega)):
        if weight[d, 0] <= 0.0:
            continue
        for j in range(first_coin(kind, y[d, 0]), last_coin(kind, y[d, 0], len(thresholds)) + 1):
            x, above = omega[d, 0] - thresholds[j], is_above(kind, y[d, 0], j)
            p = math.exp(log_sigmoid(x))
            found[0, j] += weight[d, 0] * log_sigmoid(x if above else -x)
            found[1, j] -= weight[d, 0] * ((1.0 if above else 0.0) - p)
            found[2, j] += weight[d, 0] * p * (1.0 - p)
    return found
