"""Which given labels are wrong, and how many: from predictions that did not learn from them.

A label is that of the document's true class with probability 1 - rate, else that of any other class. Predictions that
were learned from such labels are less sure than they should be; the true class has probabilities in proportion to
exp(-power * distance**shape), where the distance is that of log p to the best class. With shape 1 this is p**power.
Rate, power and shape have a posterior on a grid, given how probable the given labels are. That no label is wrong has a
prior probability of its own: else the interval would never contain it.
"""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from supertopic.corpus.frames import rows_of
from supertopic.model.responses.base import TINY

# powers near 0 are for predictions that say little about the labels
LINKS = [(power, shape) for shape in (0.65, 0.8, 1.0, 1.25) for power in np.geomspace(0.05, 6.0, 32)]
NONE_WRONG = 0.1  # prior probability that no label is wrong
MOST_RATE, N_RATES = 0.45, 61  # largest rate of wrong labels (from 0.5 on, classes are exchanged); rates of the grid
LEAST_MASS = 1e-6  # smallest probability of a cell of the grid
DRAWS = 4000  # draws of the number of wrong labels
SHOWN = 10  # rows that are printed


class Estimate(NamedTuple):
    """How many labels of some documents are wrong."""

    documents: int
    wrong: float  # the posterior mean
    lower: float  # the ends of the interval
    upper: float


def find_wrong(p: np.ndarray, given: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, Estimate]:
    """The probability that each label is wrong, (n,), the probability of each true class, (n, L), and their number.

    p (n, L) are the predicted probabilities and given (n,) the numbers of the labels.
    """
    (n, n_classes), rows = p.shape, np.arange(len(p))
    behind = np.log(np.maximum(p, TINY))
    behind = behind.max(axis=1, keepdims=True) - behind

    def truth(link: tuple[float, float]) -> np.ndarray:
        """The probabilities of the true classes, (n, L)."""
        return softmax(-link[0] * behind ** link[1], axis=1)

    def parts(own: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probability of the given label, (n, n_rates), and the part of it that is an error."""
        wrong = (1.0 - own)[:, None] * (rates / (n_classes - 1.0))  # the true class is another one
        return np.maximum(own[:, None] * (1.0 - rates) + wrong, TINY), wrong

    owns = [truth(link)[rows, given] for link in LINKS]
    rates = np.linspace(0.0, MOST_RATE, N_RATES)
    for _ in range(2):  # the second grid is where the first one has mass
        step, used = rates[1] - rates[0], np.append(0.0, rates)  # the first is the rate if no label is wrong
        logs = np.array([np.log(parts(own, used)[0]).sum(axis=0) for own in owns])  # (link, rate)
        mass = np.exp(logs - logs.max())
        mass[:, 0] *= NONE_WRONG
        mass[:, 1:] *= (1.0 - NONE_WRONG) * step / MOST_RATE
        mass /= mass.sum()
        there = np.flatnonzero(mass[:, 1:].sum(axis=0) > LEAST_MASS * mass[:, 1:].sum())
        rates = np.linspace(max(rates[there[0]] - step, 0.0), rates[there[-1]] + step, N_RATES)
    p_wrong, kept, mean, variance = np.zeros(n), np.zeros(p.shape), np.zeros(mass.shape), np.zeros(mass.shape)
    for i in np.flatnonzero(mass.sum(axis=1) > LEAST_MASS):
        whole, wrong = parts(owns[i], used)
        of_each = wrong / whole
        p_wrong += of_each @ mass[i]
        kept += mass[i].sum() * truth(LINKS[i])
        mean[i], variance[i] = of_each.sum(axis=0), (of_each * (1.0 - of_each)).sum(axis=0)
    kept[rows, given] = 0.0
    kept *= (p_wrong / np.maximum(kept.sum(axis=1), TINY))[:, None]
    kept[rows, given] = 1.0 - p_wrong
    rng = np.random.default_rng(0)
    cell = rng.choice(mass.size, DRAWS, p=mass.ravel())
    number = mean.ravel()[cell] + np.sqrt(variance.ravel()[cell]) * rng.standard_normal(DRAWS)
    lower, upper = np.quantile(np.clip(number, 0.0, n), [(1 - level) / 2, (1 + level) / 2])
    return p_wrong, kept, Estimate(n, float(p_wrong.sum()), float(lower), float(upper))


class LabelCheck:
    """The result of `check_labels`.

    Attributes
    ----------
    frame : DataFrame
        Labels that are probably wrong, by score: row, text (if there are texts), label (of several labels), given,
        suggested, p_wrong, score and words, which are evidence for the suggestion and against the given label.
    estimates : DataFrame
        How many labels are wrong: documents, wrong, lower and upper; of several labels a row for each.
    p_wrong : ndarray of shape (n_docs,), or (n_docs, n_labels)
        The probability that each given label is wrong; NaN where it is unknown, or the only one of its class.
    scores : ndarray, shaped as `p_wrong`
        The probability of each given label, relative to its mean over the documents that have it.
    probabilities : ndarray of shape (n_docs, n_classes)
        Predictions of models that did not learn from the document; NaN where the label is unknown.
    classes : ndarray
        The classes, or the names of the labels, in the order of `probabilities`.
    level : float
        The posterior probability inside the intervals.
    """

    def __init__(
        self, frame: Any, estimates: Any, p_wrong: np.ndarray, scores: np.ndarray, probabilities: np.ndarray,
        classes: np.ndarray, level: float,
    ):  # fmt: skip
        self.frame, self.estimates, self.level = frame, estimates, level
        self.p_wrong, self.scores, self.probabilities, self.classes = p_wrong, scores, probabilities, classes

    def sentences(self) -> Sequence[str]:
        """How many labels are wrong, a line for each estimate."""
        found = []
        for row in rows_of(self.estimates):
            whose = f" of {row['label']!r}" if "label" in row else ""
            share, verb = row["wrong"] / max(row["documents"], 1), "is" if round(row["wrong"]) == 1 else "are"
            found.append(
                f"About {row['wrong']:,.0f} of {row['documents']:,} labels{whose} {verb} wrong ({share:.1%}), "
                f"{self.level:.0%} interval {row['lower']:,.0f} to {row['upper']:,.0f}."
            )
        return found

    def __repr__(self) -> str:
        shown = self.frame.head(SHOWN)
        is_pandas = hasattr(shown, "to_string")
        table = [shown.to_string(index=False, max_colwidth=60) if is_pandas else str(shown)] if len(shown) else []
        left = len(self.frame) - len(shown)
        more = [f"and {left:,} more in .frame"] if left > 0 else []
        return "\n".join([*self.sentences(), *table, *more])

    def _repr_html_(self) -> str:
        shown = self.frame.head(SHOWN)
        table = shown.to_html(index=False) if hasattr(shown, "to_html") else f"<pre>{escape(str(shown))}</pre>"
        return f"<p>{escape(' '.join(self.sentences()))}</p>{table}"
