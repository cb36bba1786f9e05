"""Ratings of several raters: draws of the true ratings, and sums for the biases and precisions of raters."""

import numpy as np

from supertopic.kernels.compiled import kernel
from supertopic.kernels.draws import derive, normal


@kernel
def draw_ratings(mean, variance, mass, key, first_doc):
    """Draw the true rating of each document: the mean and the variance of its copies, (n_docs, 1) each.

    The likelihood to a power h is that of m = ceil(h) copies, each to the power h / m, and each with a true rating of
    its own, which has this mean, and this variance divided by the power.
    """
    found, spread = mean.copy(), np.zeros(mean.shape)
    for d in range(len(mean)):
        if mass[d] <= 0.0:
            continue
        n_copies = np.ceil(mass[d])
        sd, stream, total, squares = np.sqrt(variance[d, 0] * n_copies / mass[d]), derive(key, first_doc + d), 0.0, 0.0
        for i in range(int(n_copies)):
            e = sd * normal(stream, i)
            total += e
            squares += e * e
        found[d, 0] += total / n_copies
        spread[d, 0] = max(squares / n_copies - (total / n_copies) ** 2, 0.0)
    return found, spread


@kernel
def sum_ratings(raters, ratings, truth, spread, mass, n_raters):
    """Of each rater the mass of its ratings, and the sums of rating - truth and of its square: (3, n_raters)."""
    found = np.zeros((3, n_raters))
    for d in range(len(raters)):
        for i in range(raters.shape[1]):
            if raters[d, i] < 0.0:
                break
            rater, away = int(raters[d, i]), ratings[d, i] - truth[d, 0]
            found[0, rater] += mass[d]
            found[1, rater] += mass[d] * away
            found[2, rater] += mass[d] * (away * away + spread[d, 0])
    return found
