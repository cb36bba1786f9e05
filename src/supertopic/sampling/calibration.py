"""Weights for new documents: eta drawn again, with c = 1, on topic shares as a new document has them.

While topics are learned, the shares of a training document are pulled towards its response, c > 1 counts that response
c times, and the topics contain the document's own words. A new document has none of this, so that its probabilities
would come out too sure and its intervals too short. Here a Bayesian regression of the response on the shares that each
training document would have if it were new (`Shard.leave_out`) takes the place of the chain's own weights.
"""

from collections.abc import Iterator

import numpy as np

from supertopic.kernels.draws import make_key
from supertopic.sampling.engines import Threads
from supertopic.sampling.gibbs import draw_eta
from supertopic.sampling.plan import ETA, SCALE
from supertopic.sampling.responses import Response
from supertopic.sampling.state import Statistics, add

NU2 = 100.0  # prior variance: label-free shares differ less between classes, so that their weights are larger
BURN_IN = 10  # with fixed shares the chain settles at once
NU2_SHOWN, LEAST_SHOWN, THIN = 25.0, 100, 3  # for weights from few documents: prior variance, draws, iterations a draw


def draw_weights(
    engine: Threads, response: Response, nu2: float, known: Statistics, n_draws: int, key: np.uint64, thin: int = 1
) -> Iterator[tuple[np.ndarray, Response, Statistics]]:
    """Draws of eta (R, K + P) and of the response, given documents that are left out: Algorithm 1 without its sweep.

    With each comes what it was drawn from: the statistics, with what was known before.
    """
    engine.ask("restart", response)
    statistics = engine.statistics()
    for i in range(thin * (BURN_IN + n_draws)):
        statistics = add(statistics, known)
        eta = draw_eta(statistics, nu2, make_key(key, i, ETA))
        engine.ask("regress", eta)
        response = response.draw_scale(engine.total, make_key(key, i, SCALE))
        if i >= thin * BURN_IN and i % thin == thin - 1:
            yield eta, response, statistics
        statistics = engine.augment(response, make_key(key, i))
