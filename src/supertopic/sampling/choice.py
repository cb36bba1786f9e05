"""c="auto": walks along a path of c, with some responses hidden, that tell how well each c foretells these."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from supertopic.kernels.draws import make_key
from supertopic.sampling.calibration import NU2, draw_weights
from supertopic.sampling.chain import PREDICTING, Chain
from supertopic.sampling.plan import Plan, Source

CHOOSE = 1 << 34  # chains of these numbers are walks
FIRST_STEP, STEP = 40, 15  # iterations at the first c, and at each later one
HIDDEN, ENOUGH_HIDDEN, MOST_WALKS = 0.2, 2000, 5  # the share of responses that is hidden; how many are enough


def count_walks(n_known: int) -> int:
    """Few hidden documents say little: small corpora walk several times, with other responses hidden."""
    return int(np.clip(np.ceil(ENOUGH_HIDDEN / (HIDDEN * n_known)), 1, MOST_WALKS))


def plan_walk(plan: Plan, path: tuple[float, ...]) -> Plan:
    """The same chain, none of whose draws are kept."""
    return plan._replace(burn_in=FIRST_STEP + STEP * len(path))


def walk(chain: Chain, path: tuple[float, ...], n_sweeps: int) -> Iterator[bool]:
    """Iterate along the path, each c from where the last one ended; yields whether one has just been finished.

    Hidden documents stay, so that they are left out of the topics as all others are when shares are inferred. A chain
    that was restored goes on.
    """
    ends = [FIRST_STEP + STEP * i for i in range(len(path))]
    plain, below = chain.plan.response.plain(), make_key(chain.plan.seed, chain.index, PREDICTING)
    while chain.iteration < ends[-1]:
        at = int(np.searchsorted(ends, chain.iteration, side="right"))
        chain.response = replace(chain.response, c=path[at])
        chain.step()
        if chain.iteration == ends[at]:
            chain.leave_out(n_sweeps, last=True)
            for _, response in draw_weights(chain.engine, plain, NU2, STEP, make_key(below, chain.iteration)):
                chain.engine.ask("foretell", response)
            chain.engine.ask("judge")
            chain.engine.ask("learn")
        yield chain.iteration in ends


def start_walk(plan: Plan, source: Source, index: int, n_threads: int) -> Chain:
    """A chain from which some responses are hidden."""
    chain = Chain(plan, source, CHOOSE + index, n_threads)
    chain.hide(HIDDEN)
    return chain


def choose(path: tuple[float, ...], sums: np.ndarray) -> tuple[float, list[dict[str, float]]]:
    """The largest c that foretells as well as the best one, and the mean loss of each with its standard error.

    As well is within a standard error of the difference. The larger one, since the loss is flat where c is large
    enough, and topics that follow the response classify better than its loss shows.
    """
    n = max(sums[-1, -1], 1.0)  # 0 where there are so few documents that none was hidden
    means, products = sums[-1, :-1] / n, sums[:-1, :-1] / n
    covariance = products - np.outer(means, means)
    variance, best = covariance.diagonal(), int(means.argmin())
    apart = np.maximum(variance + variance[best] - 2.0 * covariance[best], 0.0)
    chosen = int(np.flatnonzero(means - means[best] <= np.sqrt(apart / n))[-1])
    rows = zip(path, means.tolist(), np.sqrt(np.maximum(variance, 0.0) / n).tolist(), strict=True)
    return path[chosen], [dict(zip(("c", "loss", "se"), row, strict=True)) for row in rows]
