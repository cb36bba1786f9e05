"""Weights for new documents: eta drawn again, with c = 1, on topic shares as a new document has them.

While topics are learned, the shares of a training document are pulled towards its response, c > 1 counts that response
c times, and the topics contain the document's own words. A new document has none of this, so that its probabilities
would come out too sure and its intervals too short. Here a Bayesian regression of the response on the shares that each
training document would have if it were new (`inference.infer_left_out`) takes the place of the chain's own weights.
"""

from functools import partial

import numpy as np

from supertopic.draws import make_key
from supertopic.gibbs import ETA, LAMBDA, SCALE, draw_eta
from supertopic.responses import Response, Target
from supertopic.shard import Statistics

NU2 = 100.0  # prior variance: label-free shares differ less between classes, so that their weights are larger
BURN_IN = 10  # with fixed shares the chain settles at once


def draw_weights(
    x: np.ndarray, response: Response, target: Target, n_draws: int, key: np.uint64
) -> tuple[np.ndarray, np.ndarray]:
    """Draws of eta (n_draws, R, K + P) and of the response's own parameter, given x (n_docs, K + P)."""
    quadratic, etas, scales = response.start(target), [], []
    for i in range(BURN_IN + n_draws):
        shift = x.T @ (quadratic.kappa - quadratic.lam * target.offset)
        roots = np.sqrt(quadratic.lam)
        products = [(A := x * root[:, None]).T @ A for root in roots.T]  # BLAS, which is on one thread here
        precision = np.stack(products, axis=2)
        eta = draw_eta(Statistics(precision, shift, np.zeros(3)), NU2, make_key(key, i, ETA))
        omega = x @ eta.T + target.offset
        response = response.draw(partial(log_likelihood, target, omega), make_key(key, i, SCALE))
        quadratic = response.augment(target, omega, make_key(key, i, LAMBDA), 0)
        if i >= BURN_IN:
            etas.append(eta)
            scales.append(response.scale)
    return np.array(etas), np.array(scales)


def log_likelihood(target: Target, omega: np.ndarray, response: Response) -> np.ndarray:
    return response.log_likelihood(target, omega)
