"""Held-out documents: those that no chain sees, folds whose responses one chain does not see, and what they say."""

from typing import Any

import numpy as np

from supertopic.corpus.source import Target
from supertopic.inference.shrinkage import TOPICS, Shrinkage
from supertopic.model.responses.base import Response
from supertopic.warn import warn

SHARES, ENOUGH = (
    (0.05, 0.15),
    100,
)  # held_out="auto": the least and largest share, and how many documents suffice
LEAST, MOST = 5, 10_000  # documents; fewer say nothing, more say nothing new
LEAST_FOLDS = 4  # a chain sees three quarters of the responses, or more
NAMED = 5  # columns that a message names


def choose_held_out(response: Response, target: Target, share: float | str, seed: list[int]) -> np.ndarray:
    """A mask of documents with known responses: evenly spaced in the order of these, so that all kinds are there."""
    held_out, known = np.zeros(len(target.y), bool), np.flatnonzero(response.may_hold_out(target))
    part = np.clip(ENOUGH / max(len(known), 1), *SHARES) if isinstance(share, str) else float(share)
    n = min(int(part * len(known)), MOST)
    if n >= LEAST:
        rng = np.random.default_rng(seed)
        order = known[np.lexsort([rng.random(len(known)), *target.y[known].T])]
        held_out[order[((np.arange(n) + rng.random()) * (len(known) / n)).astype(int)]] = True
    return held_out


def choose_folds(
    response: Response, target: Target, held_out: np.ndarray, n_chains: int, seed: list[int]
) -> np.ndarray:
    """The fold of each document, (n_docs,): the number of a chain that does not see its response, or -1.

    Documents with about the same response are in different folds. No chain sees those of the mask `held_out`; each of
    them belongs to one fold, too. Without any the folds are empty.
    """
    fold = np.full(len(target.y), -1)
    if not held_out.any():
        return fold
    rng, known = np.random.default_rng([*seed, 1]), response.may_hold_out(target)
    for mask, n_folds in ((held_out, n_chains), (~held_out, max(n_chains, LEAST_FOLDS))):
        docs = np.flatnonzero(known & mask)
        order = docs[np.lexsort([rng.random(len(docs)), *target.y[docs].T])]
        n_folds = max(n_folds, -(-len(docs) // MOST))
        dealt = np.argsort(rng.random((-(-len(docs) // n_folds), n_folds)), axis=1).ravel()[: len(docs)]
        fold[order] = np.where(dealt < n_chains, dealt, -1)
    return fold


def describe_held_out(shrinkage: Shrinkage, alone: Shrinkage, n_held_out: int, response: Response) -> dict[str, Any]:
    """Losses on held-out documents, with a warning if topics do not predict their responses.

    `alone` is the shrinkage of topics without linear terms beside them.
    """
    weight, n = shrinkage.weight, shrinkage.weight.sum()
    gain = (weight * (alone.base_loss - shrinkage.loss)).sum(axis=1) * (len(weight) / n)
    parts = {"loss": shrinkage.loss, "base_loss": alone.base_loss}
    if shrinkage is not alone:
        parts |= {"topics_loss": alone.loss, "without_topics_loss": shrinkage.base_loss}
    mass = alone.posteriors[TOPICS][1]
    found: dict[str, Any] = {"documents": n_held_out}
    found |= {name: float((weight * loss).sum() / n) for name, loss in parts.items()}
    found |= {
        "se": float(gain.std() / np.sqrt(len(gain))),  # of the difference of loss and base_loss
        "shrinkage": shrinkage.factors[0].tolist(),
        "p_no_effect": mass[0].tolist(),
    }
    better = (weight * (alone.base_loss - alone.loss)).sum(axis=0) > 0
    lost = np.flatnonzero(~better | (mass[0] > 0.5))
    if len(lost):
        whole = max(float(weight[:, lost].sum()), 1e-300)
        loss, base = (float((weight * part)[:, lost].sum()) / whole for part in (alone.loss, alone.base_loss))
        warn_of_no_relation(lost, len(better), response, n_held_out, loss, base)
    return found


def warn_of_no_relation(
    lost: np.ndarray, n_judged: int, response: Response, n_held_out: int, loss: float, base: float
) -> None:
    """Say that topics do not predict some columns on held-out documents."""
    what = "the response"
    if n_judged > 1:
        names = response.column_names
        what = "columns " + ", ".join(names[i] for i in lost[:NAMED])
        what += f" and {len(lost) - NAMED} more of {n_judged}" if len(lost) > NAMED else ""
    warn(
        f"Found no relation between topics and {what}: on {n_held_out} held-out documents topics do not predict "
        f"clearly better than the base rate (loss {loss:.4g}, that of the base rate {base:.4g}). Predictions leave the "
        "topics out. Is there a relation to be found, and are there enough documents to find it?"
    )
