"""When a chain has settled: its log joint and the loss of the response have stopped drifting."""

import numpy as np

from supertopic.sampling.chain import TRACE_EVERY

FIRST_CHECK, CHECK_EVERY = 60, 20  # iterations
LOG_JOINT_DRIFT, LOSS_DRIFT = 1e-3, 0.05  # relative changes within AHEAD iterations that do not matter
AHEAD = 20  # iterations: about the draws
LONGEST = 300  # iterations that a small corpus may take
SMALL, LARGE = 1_000_000, 10_000_000  # tokens; a large corpus gets FIRST_CHECK iterations, between them it is gradual


def longest_burn_in(n_tokens: int) -> int:
    """The iterations after which burn_in="auto" stops waiting, from the corpus alone."""
    part = np.interp(np.log(max(n_tokens, 1)), np.log([SMALL, LARGE]), [1.0, 0.0])
    return FIRST_CHECK + CHECK_EVERY * round(float(part) * (LONGEST - FIRST_CHECK) / CHECK_EVERY)


def may_stop(iteration: int) -> bool:
    """Whether the rule is asked after this iteration."""
    return iteration >= FIRST_CHECK and iteration % CHECK_EVERY == 0


def drift(values: np.ndarray) -> tuple[float, float, int]:
    """The change of the mean between the halves of the last half of a series, the noise, and the length of such a half.

    The noise is the standard deviation inside a half.
    """
    late = values[len(values) // 2 :]
    half = len(late) // 2
    if half < 2:
        return float("inf"), 0.0, half  # that is too few to know
    a, b = late[-2 * half : -half], late[-half:]
    return float(b.mean() - a.mean()), float(np.sqrt(0.5 * (a.var(ddof=1) + b.var(ddof=1)))), half


def has_settled(log_joint: np.ndarray, loss: np.ndarray) -> bool:
    """Whether neither series, with a value every TRACE_EVERY iterations, drifts any more.

    A series has settled if it changes by less than matters, or by less than it fluctuates. A steady rise by b in each
    step changes by h b between halves of h values and varies by h b / sqrt(12) inside of each, so that noise never
    hides it. A series of independent values changes by sqrt(2 / h) standard deviations.
    """
    for values, tolerance in ((log_joint, LOG_JOINT_DRIFT), (loss, LOSS_DRIFT)):
        change, noise, half = drift(values)
        ahead = change * AHEAD / (TRACE_EVERY * max(half, 1))
        if abs(change) > noise and abs(ahead) > tolerance * abs(float(values[-1:].sum())):
            return False
    return True
