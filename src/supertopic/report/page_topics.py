"""The topics of a page: words, effects, places on a map, neighbours, typical documents."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from supertopic.model.posterior import Posterior
from supertopic.report.page_documents import Shown
from supertopic.report.page_numbers import few, short
from supertopic.report.targets import Targets
from supertopic.report.topics import exclusivity, mean_counts, top_words, topic_name, topic_word
from supertopic.report.words import candidates, is_leftover, suggest_names

MOST_WORDS = 16  # of a topic, for each of the most frequent and the most exclusive ones
NEAR, TYPICAL = 4, 3  # topics beside a topic, and documents of it
EXCERPT, LEAST_WORDS = 320, 9  # letters of a typical document, and words that it has at least
LEAST_RADIUS, MOST_RADIUS = 0.013, 0.08  # of a circle of the map, whose sides are 1
PUSHES = 200  # steps in which circles that overlap are pushed apart


def describe_targets(targets: Targets, names: list[str]) -> dict[str, Any]:
    """The targets for the page, with the names that readers know."""
    return {
        "names": names, "before": few(targets.before), "unit": targets.unit,
        "intervals": targets.has_intervals, "weights": targets.weights is not None,
    }  # fmt: skip


def describe_topics(
    posterior: Posterior, targets: Targets, names: np.ndarray, shown: Shown, called: Sequence[Any] | None,
    lengths: np.ndarray,
) -> list[dict[str, Any]]:  # fmt: skip
    """The topics in their own order.

    `lengths` (n_docs,) are those of the page's documents; `called` has the names of all documents, if they have some.
    """
    texts, rows, shares = shown.texts, shown.rows, shown.shares
    phi, size = topic_word(posterior), posterior.mean_shares
    order = np.argsort(-shares * (lengths > LEAST_WORDS)[:, None], axis=0, kind="stable")[:TYPICAL].T  # (K, n)
    best = top_words(posterior, names, 12)
    labels = suggest_names(top_words(posterior, names))  # as in all tables, whatever documents the page has
    alike = np.sqrt(phi) @ np.sqrt(phi).T  # Bhattacharyya's coefficient
    near = np.argsort(-alike, axis=1, kind="stable")
    places, words = positions(alike, size), describe_words(posterior, phi, size, names)
    effect, pull = targets.summary(targets.effects) if targets.names else None, targets.pulls()
    weight = None if targets.weights is None else targets.summary(targets.weights)
    clear = targets.clear(targets.effects)
    clear_weight = None if targets.weights is None else targets.clear(targets.weights.swapaxes(1, 2))
    exclusive, chains, radius = exclusivity(posterior), posterior.consensus.n_having, radii(size)
    found = []
    for k, own in enumerate(words):
        others = [j for j in near[k].tolist() if j != k][:NEAR]
        topic: dict[str, Any] = {
            "name": topic_name(posterior, k) or labels[k] or f"topic {k}", "best": best[k], "words": own,
            "share": few(size[k]), "chains": int(chains[k]), "exclusivity": few(exclusive[k]),
            "at": few(places[k]), "radius": few(radius[k]), "pull": pull[k],
            "near": [[j, few(alike[k, j], 2)] for j in others],
            "typical": [[int(rows[i]), excerpt(texts[i], {w[0] for w in own}), few(shares[i, k]),
                         str(rows[i] if called is None else called[rows[i]])] for i in order[k] if texts[i]],
        }  # fmt: skip
        if effect is not None:
            topic["effect"] = [few(part[k] * targets.factor) for part in effect]
            topic["clear"] = np.flatnonzero(clear[k]).tolist()
        if weight is not None and clear_weight is not None:
            topic["weight"] = [few(part[:, k]) for part in weight]
            topic["clear_weight"] = np.flatnonzero(clear_weight[k]).tolist()
        found.append(topic)
    return found


def describe_words(posterior: Posterior, phi: np.ndarray, size: np.ndarray, names: np.ndarray) -> list[list[Any]]:
    """The words of each topic: probability in it and in the corpus, and ranks by frequency and exclusivity."""
    counts = np.maximum(mean_counts(posterior) - posterior.topics[0].beta.mean(), 0.0)
    whole, everywhere, found = phi.sum(axis=0), size @ phi, []
    for topic, count in zip(phi, counts, strict=True):
        has = candidates(count)
        has = has[[not is_leftover(str(names[i])) for i in has]] if len(has) > MOST_WORDS else has
        rank = [rankdata(x, method="max") / max(len(has), 1) for x in (topic[has], topic[has] / whole[has])]
        frex = 2.0 / (1.0 / rank[0] + 1.0 / rank[1])
        kept: set[int] = set()
        for score in (*rank, frex):
            kept |= set(np.argsort(-score, kind="stable")[:MOST_WORDS].tolist())
        order = np.argsort(-frex, kind="stable").tolist()
        found.append([
            [str(names[has[i]]), few(topic[has[i]]), few(everywhere[has[i]]), few(rank[0][i]), few(rank[1][i])]
            for i in order if i in kept
        ])  # fmt: skip
    return found


def positions(alike: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Places of the topics in a square of side 1, (K, 2): near each other if their words are alike.

    Classical scaling of Hellinger distances, half of it by ranks, so that a topic far away leaves room for the others.
    """
    n = len(alike)
    if n < 3:
        return np.column_stack([(np.arange(n) + 1.0) / (n + 1.0), np.full(n, 0.5)])
    squares = 2.0 - 2.0 * np.minimum(alike, 1.0)
    inner = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(inner)
    xy = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0))
    xy *= np.where(xy[np.abs(xy).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # the signs of vectors are arbitrary
    xy = (xy - xy.min(axis=0)) / np.maximum(np.ptp(xy, axis=0), 1e-12)
    xy = 0.3 * xy + 0.7 * (rankdata(xy, axis=0) - 1.0) / (n - 1.0)
    radius, room = radii(size), 0.006
    least = radius[:, None] + radius + room
    np.fill_diagonal(least, 0.0)
    for _ in range(PUSHES):
        away = xy[:, None] - xy
        distance = np.maximum(np.sqrt((away**2).sum(axis=2)), 1e-6)
        push = np.maximum(least - distance, 0.0)
        xy = xy + 0.25 * (away * (push / distance)[..., None]).sum(axis=1)
        xy = np.clip(xy, radius[:, None], 1.0 - radius[:, None])
    return xy


def radii(size: np.ndarray) -> np.ndarray:
    """The radius of each circle: its area is proportional to the share of the topic."""
    unit = min(1.3 * np.sqrt(2.0 / np.pi / max(len(size), 9)), MOST_RADIUS / np.sqrt(max(size.max(), 1e-12)))
    return np.maximum(unit * np.sqrt(size), LEAST_RADIUS)


def excerpt(text: str, words: set[str]) -> str:
    """The part of a text that has most of some words."""
    if len(text) <= EXCERPT:
        return text
    at = np.array([match.start() for match in re.finditer(r"\w+", text) if match[0].lower() in words])
    if not len(at):
        return short(text, EXCERPT)
    inside = np.searchsorted(at, at + EXCERPT - 40) - np.arange(len(at))
    start = max(0, int(at[inside.argmax()]) - 40)
    start = start if start == 0 else text.find(" ", start) + 1 or start
    part = text[start : start + EXCERPT]
    return ("…" if start else "") + part + ("…" if start + EXCERPT < len(text) else "")
