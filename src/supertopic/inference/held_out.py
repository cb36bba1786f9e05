"""Held-out documents, which no chain uses, and folds, whose responses one chain does not use."""

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
LEAST, MOST = 5, 10_000  # smallest and largest number of held-out documents
LEAST_FOLDS = 4  # smallest number of folds: a chain uses three quarters of the responses, or more
NAMED = 5  # largest number of columns that a message names
FOLDS = 5  # number of folds of the held-out documents; each fold is also predicted from the others


def group_numbers(covariates: np.ndarray, n_groups: int) -> np.ndarray:
    """The group of each document, (n_docs,), from covariates whose last columns are groups; -1 without one."""
    own = covariates[:, covariates.shape[1] - n_groups :]
    return np.where(own.any(axis=1), own.argmax(axis=1), -1) if n_groups else np.full(len(covariates), -1)


def deal_groups(known: np.ndarray, group: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Deal whole groups to parts of about these sizes, (n_docs,): the largest group goes where most room is left."""
    part, room = np.full(len(group), -1), sizes.astype(float)
    names, inverse = np.unique(np.where(group >= 0, group, -1 - np.arange(len(group))), return_inverse=True)
    count = np.bincount(inverse[known], minlength=len(names))
    of_group = np.zeros(len(names), int)
    for i in np.lexsort([rng.random(len(names)), -count]):
        of_group[i] = room.argmax()
        room[of_group[i]] -= count[i]
    smallest = np.where(count > 0, count, len(group) + 1).argmin()
    of_group[smallest] = 0 if not (count * (of_group == 0)).any() else of_group[smallest]  # the first part has one
    part[known] = of_group[inverse[known]]
    return part


def deal(known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The fold of each held-out document, -1 where its response is unknown."""
    docs, fold = np.flatnonzero(known), np.full(len(known), -1)
    fold[docs] = rng.permutation(len(docs)) % min(FOLDS, max(len(docs), 1))
    return fold


def choose_held_out(
    response: Response, target: Target, share: float | str, seed: list[int], group: np.ndarray | None = None
) -> np.ndarray:
    """A mask of documents with known responses: evenly spaced in the order of these, so that all kinds are there.

    Given a group for each document, whole groups are held out.
    """
    held_out, known = np.zeros(len(target.weight), bool), np.flatnonzero(response.may_hold_out(target))
    part = np.clip(ENOUGH / max(len(known), 1), *SHARES) if isinstance(share, str) else float(share)
    n = min(int(part * len(known)), MOST)
    if n >= LEAST and group is not None:
        sizes = np.array([n, len(known) - n])
        held_out[known] = deal_groups(known, group, sizes, np.random.default_rng(seed))[known] == 0
    elif n >= LEAST:
        rng = np.random.default_rng(seed)
        order = known[np.lexsort([rng.random(len(known)), *response.strata(target)[known].T])]
        held_out[order[((np.arange(n) + rng.random()) * (len(known) / n)).astype(int)]] = True
    return held_out


def choose_folds(
    response: Response, target: Target, held_out: np.ndarray, n_chains: int, seed: list[int],
    group: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """The fold of each document, (n_docs,): the number of a chain that does not see its response, or -1.

    Documents with about the same response are in different folds. No chain sees those of the mask `held_out`; each of
    them belongs to one fold, too. Without any the folds are empty. Given a group for each document, a group is in one
    fold.
    """
    fold = np.full(len(target.weight), -1)
    if not held_out.any():
        return fold
    rng, known, strata = np.random.default_rng([*seed, 1]), response.may_hold_out(target), response.strata(target)
    for mask, n_folds in ((held_out, n_chains), (~held_out, max(n_chains, LEAST_FOLDS))):
        docs = np.flatnonzero(known & mask)
        order = docs[np.lexsort([rng.random(len(docs)), *strata[docs].T])]
        n_folds = max(n_folds, -(-len(docs) // MOST))
        dealt = np.argsort(rng.random((-(-len(docs) // n_folds), n_folds)), axis=1).ravel()[: len(docs)]
        if group is not None and mask is not held_out:
            order, dealt = docs, deal_groups(docs, group, np.full(n_folds, len(docs) / n_folds), rng)[docs]
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
    found["relation"] = len(lost) < len(better)  # of topics and a column of the response
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
        f"clearly better than the base rate (loss {loss:.4g}, that of the base rate {base:.4g}). So predictions hardly "
        "use the topics. Check that the responses belong to the texts. If they do, more documents may show a relation."
    )
