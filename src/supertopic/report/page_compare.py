"""Two models side by side: which topics they share, and which documents they predict differently."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from supertopic.inference.predict import NewDocuments
from supertopic.model.posterior import Posterior
from supertopic.model.responses.classes import ClassResponse
from supertopic.report.evaluate import RESAMPLES
from supertopic.report.page_documents import Shown
from supertopic.report.page_numbers import few
from supertopic.report.summary import targets_of
from supertopic.report.targets import Targets
from supertopic.report.topics import top_words, topic_name, topic_word
from supertopic.report.words import suggest_names

WORDS = 8


def compare(
    shown: Shown, targets: Targets, names: np.ndarray, other: NewDocuments, other_names: np.ndarray, title: str
) -> dict[str, Any]:
    """The other model for the same documents; `other_names` are its words."""
    theirs, ours = other.posterior, shown.documents.posterior
    other_targets = targets_of(theirs)
    words = top_words(theirs, other_names, WORDS)
    pulled = [
        None if t is None else pull_text(theirs, other_targets, k, t) for k, t in enumerate(other_targets.pulls())
    ]
    labels, alike = suggest_names(words), likeness(topic_word(ours), names, topic_word(theirs), other_names)
    mine, match = linear_sum_assignment(alike, maximize=True)
    pairs = dict(zip(mine.tolist(), match.tolist(), strict=True))
    topics = []
    for k in range(ours.n_topics):
        j = pairs.get(k)
        topics.append(None if j is None else {
            "topic": j, "name": topic_name(theirs, j) or labels[j], "words": words[j], "alike": few(alike[k, j], 2),
            "share": few(theirs.mean_shares[j]),
            "pull": pulled[j],
        })  # fmt: skip
    left = [{"topic": j, "name": topic_name(theirs, j) or labels[j], "words": words[j]}
            for j in range(theirs.n_topics) if j not in pairs.values()]  # fmt: skip
    found: dict[str, Any] = {"name": title, "topics": topics, "left": left, "n_topics": theirs.n_topics}
    return found | compare_predictions(shown, other)


def pull_text(posterior: Posterior, targets: Targets, k: int, t: int) -> str:
    """What topic k clearly raises or lowers; of two classes the one that it raises."""
    rises, labels = targets.effects[:, k, t].mean() > 0, posterior.response.labels
    if labels is not None and len(targets.names) == 1:
        return str(labels[-int(rises)])
    return ("" if rises else "away from ") + targets.names[t]


def likeness(phi: np.ndarray, names: np.ndarray, other: np.ndarray, other_names: np.ndarray) -> np.ndarray:
    """How alike the topics of two models are, (K, K of the other): Bhattacharyya's coefficient."""
    place = {str(name): i for i, name in enumerate(other_names)}
    both = [(i, place[str(name)]) for i, name in enumerate(names) if str(name) in place]
    if not both:
        return np.zeros((len(phi), len(other)))
    a, b = np.array(both).T
    return np.sqrt(phi[:, a]) @ np.sqrt(other[:, b]).T


def compare_predictions(shown: Shown, other: NewDocuments) -> dict[str, Any]:
    """The scores of both models and their difference, and what the other one predicts; nothing if responses differ."""
    response, theirs = shown.response, other.posterior.response
    if not (other.posterior.supervised and shown.documents.posterior.supervised) or theirs.kind != response.kind:
        return {}
    if list(map(str, response.answers)) != list(map(str, theirs.answers)):
        return {}
    expected = other.expected()
    said = [str(value) for value in theirs.predicted(expected)]
    own = [str(value) for value in response.predicted(shown.expected)]
    differ = [a != b for a, b in zip(own, said, strict=True)]
    if not isinstance(response, ClassResponse):
        said = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in theirs.predicted(expected)]
        differ = [False] * len(said)
    found: dict[str, Any] = {"said": said, "differ": differ}
    known = np.flatnonzero(shown.known)
    if shown.truth is None or not len(known) or not isinstance(response, ClassResponse):
        if shown.truth is not None and len(known) and response.kind != "time":
            y = response.offset_in_units(shown.truth[known])
            errors = [np.abs(part[known] - y).mean(axis=1) for part in (shown.expected, expected)]
            return found | {"measure": "mean error", "scores": few([e.mean() for e in errors])} | gap(*errors)
        return found
    truth = shown.truth[known]
    whole = ~np.isnan(truth).any(axis=1)
    right = [response.right(truth[whole], part[known][whole]).mean(axis=1) for part in (shown.expected, expected)]
    return found | {"measure": "share that is right", "scores": few([r.mean() for r in right], 4)} | gap(*right)


def gap(ours: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """The mean difference of figures of the same documents, and its 90 % interval."""
    if not len(ours):
        return {}
    away, rng = ours - theirs, np.random.default_rng(0)
    means = [away[rng.integers(0, len(away), len(away))].mean() for _ in range(RESAMPLES)]
    return {"difference": few([float(away.mean()), *np.quantile(means, [0.05, 0.95]).tolist()], 3)}
