"""The documents of a page: which are shown, what is predicted for them, and what each of their words adds."""

from typing import Any, NamedTuple

import numpy as np

from supertopic.inference.predict import NewDocuments
from supertopic.model.posterior import Posterior
from supertopic.model.responses.base import Response
from supertopic.model.responses.classes import ClassResponse
from supertopic.model.terms import Intercept
from supertopic.report.explain import Explanation, explain_document
from supertopic.report.page_numbers import few, short

MOST_DOCUMENTS, MOST_LETTERS = 150, 2500  # in the reader, and of each
MOST_WORDS, MOST_SPANS = 60, 14  # of a document that are listed one by one, and that have intervals
MOST_VIEWS = 3  # labels or numbers of a document that are explained
MOST_TYPICAL = 40  # documents that are shown because they are typical of a topic
LEAST_SHARE = 0.02  # of a topic that is listed


class Shown(NamedTuple):
    """The documents that a page is about: those given, or a sample if they are many."""

    documents: NewDocuments
    rows: np.ndarray  # (n_docs,): their numbers among those given
    texts: list[str]
    truth: np.ndarray | None  # (n_docs, ...): as from `Response.truth`
    shares: np.ndarray  # (n_docs, K): of topics
    expected: np.ndarray  # (n_docs, n_answers); (n_docs, 0) without a response
    doubt: np.ndarray  # (n_docs,): how unsure each prediction is
    lower: np.ndarray  # (n_docs, n_answers): of numbers; else (n_docs, 0)
    upper: np.ndarray

    @property
    def response(self) -> Response:
        return self.documents.posterior.response

    @property
    def known(self) -> np.ndarray:
        """Documents of whose response something is known, (n_docs,)."""
        if self.truth is None:
            return np.zeros(len(self.rows), bool)
        unknown = np.isnan(self.truth)
        several = isinstance(self.response, ClassResponse) and self.response.multilabel
        return ~(unknown.all(axis=1) if several else unknown.any(axis=1))

    def chosen(self) -> np.ndarray | None:
        """The predicted class of each document, (n_docs,), or its labels; None for numbers."""
        return self.response.chosen(self.expected) if isinstance(self.response, ClassResponse) else None

    def wrong(self) -> np.ndarray:
        """Documents whose prediction is wrong, (n_docs,): another class or label, or a number outside its interval."""
        found: Any = np.zeros(len(self.rows), bool)
        if self.truth is None:
            return found
        truth, known = self.truth, self.known
        if isinstance(self.response, ClassResponse):
            right = self.response.right(truth, self.expected) | (np.isnan(truth) if self.response.multilabel else False)
            found = ~right.all(axis=1)
        elif self.lower.shape[1]:
            y = self.response.offset_in_units(truth)
            found = ((y < self.lower) | (y > self.upper)).any(axis=1)
        return found & known

    def classes(self) -> tuple[np.ndarray, list[str]] | None:
        """The true class of each document, -1 where it is unknown; for a number, the third that it is in."""
        if self.truth is None or not self.known.any():
            return None
        if isinstance(self.response, ClassResponse):
            if self.response.multilabel:
                return None
            found = np.where(self.known, np.nan_to_num(self.truth).argmax(axis=1), -1)
            return found, [str(name) for name in self.response.labels]
        if self.response.kind == "time" or self.truth.shape[1] > 1:
            return None
        y = self.truth[:, 0]
        edges = np.nanquantile(y, [1 / 3, 2 / 3])
        return np.where(self.known, np.searchsorted(edges, np.nan_to_num(y), "left"), -1), ["low", "middle", "high"]


def choose(shown: Shown, typical: list[int]) -> np.ndarray:
    """Which documents the reader has: surprising ones, some of each kind of error, typical and random ones."""
    n, rng = len(shown.rows), np.random.default_rng(0)
    order = rng.permutation(n)
    if n <= MOST_DOCUMENTS:
        return np.arange(n)
    chosen: dict[int, None] = {}
    if shown.truth is not None and shown.known.any():
        known = np.flatnonzero(shown.known)
        surprise = np.nan_to_num(shown.documents.part(known).surprise(shown.truth[known]))
        chosen |= dict.fromkeys(known[np.argsort(-surprise, kind="stable")[: MOST_DOCUMENTS // 3]].tolist())
        classes, said = shown.classes(), shown.chosen()
        if classes is not None and said is not None:
            wrong = [i for i in order if shown.known[i] and classes[0][i] != said[i]]
            cells = {(int(classes[0][i]), int(said[i])): int(i) for i in wrong}
            chosen |= dict.fromkeys(list(cells.values())[: MOST_DOCUMENTS // 4])
    chosen |= dict.fromkeys(list(dict.fromkeys(typical))[:MOST_TYPICAL])
    chosen |= dict.fromkeys(order.tolist())
    return np.array(list(chosen)[:MOST_DOCUMENTS])


def first_document(shown: Shown) -> int | None:
    """The document that the reader opens: where it has all documents, in their own order, the most surprising one."""
    known = np.flatnonzero(shown.known)
    if shown.truth is None or not len(known) or len(shown.rows) > MOST_DOCUMENTS:
        return None
    surprise = np.nan_to_num(shown.documents.part(known).surprise(shown.truth[known]), nan=-np.inf)
    return int(shown.rows[known[surprise.argmax()]])


def describe_documents(
    shown: Shown, chosen: np.ndarray, names: np.ndarray, labels: list[str], words: dict[str, int]
) -> list[dict[str, Any]]:
    """The chosen documents. `words` is filled: the place of each word in the list of all words of the page."""
    wrong, said, doubt = shown.wrong(), shown.chosen(), shown.doubt
    unsure = doubt >= np.quantile(doubt, 0.8) if len(doubt) > 4 else np.zeros(len(doubt), bool)
    classes, known, found = shown.classes(), shown.known, []
    for i in chosen.tolist():
        document: dict[str, Any] = {
            "row": int(shown.rows[i]), "text": short(shown.texts[i], MOST_LETTERS),
            "topics": [[int(k), few(shown.shares[i, k])] for k in np.argsort(-shown.shares[i])[:5]
                       if shown.shares[i, k] >= LEAST_SHARE],
        }  # fmt: skip
        if shown.documents.posterior.supervised:
            document |= {"wrong": bool(wrong[i]) if known[i] else None, "unsure": bool(unsure[i])}
            document |= {"true": true_text(shown, i), "is": true_places(shown, i, classes)} | unknown_labels(shown, i)
            if said is not None:
                document["said"] = said[i].tolist()
                document["p"] = few(shown.expected[i])
            part = shown.documents.part(np.array([i]))
            views = views_of(shown, i)
            explained = explain_document(part, names, labels, 0.9, ([view[0] for view in views], stacked(views)))
            document["predicted"] = predicted(shown, i, explained)
            document["views"] = [
                {"of": of, "against": against, "base": few(base_rate(shown, combine), 5)}
                | view_parts(explained, r, words)
                for r, (of, against, combine) in enumerate(views)
            ]
        found.append(document)
    return found


def true_places(shown: Shown, i: int, classes: tuple[np.ndarray, list[str]] | None) -> int | list[int]:
    """The place of the true class, -1 if it is unknown; of labels the places of all that the document has."""
    if classes is not None:
        return int(classes[0][i])
    if shown.truth is None or not isinstance(shown.response, ClassResponse) or not shown.response.multilabel:
        return -1
    return [int(j) for j in np.flatnonzero(shown.truth[i] == 1)]


def unknown_labels(shown: Shown, i: int) -> dict[str, list[int]]:
    """The places of the labels of a document that are unknown, if some are known."""
    response = shown.response
    if shown.truth is None or not isinstance(response, ClassResponse) or not response.multilabel:
        return {}
    places = np.flatnonzero(np.isnan(shown.truth[i])).tolist()
    return {"unknown": places} if places else {}


def true_text(shown: Shown, i: int) -> str | None:
    """The response of a document in a few words."""
    response = shown.response
    if shown.truth is None or not shown.known[i]:
        return None
    if isinstance(response, ClassResponse) and response.multilabel:
        return ", ".join(str(name) for name in response.named(shown.truth[i : i + 1])[0] or ()) or "no label"
    if shown.truth.shape[1] > 1 and response.labels is None and response.kind != "time":
        return ", ".join(f"{value:.4g}" for value in response.offset_in_units(shown.truth[i]))
    return response.as_text(shown.truth[i])


View = tuple[str, str | None, np.ndarray]  # what is explained, against what, and as a sum of columns of omega, (R,)


def stacked(views: list[View]) -> np.ndarray:
    return np.array([combine for *_, combine in views])


def views_of(shown: Shown, i: int) -> list[View]:
    """What is explained of a document: its predicted class against the true one, or against the next one."""
    response, expected = shown.response, shown.expected[i]
    columns, combine = response.explained()
    names = [str(name) for name in columns]
    if not isinstance(response, ClassResponse) or response.kind == "grade":
        places = list(range(len(names)))
        if response.kind == "time" and len(names) > 1:
            places = [len(names) // 2]
        return [(names[r], None, combine[r]) for r in places[:MOST_VIEWS]]
    classes = [str(name) for name in response.labels]
    if response.multilabel:
        said = response.chosen(expected[None])[0]
        truth = np.full(len(said), np.nan) if shown.truth is None else shown.truth[i]
        wrong = ~np.isnan(truth) & (truth != said)
        order = np.argsort(
            -(2.0 * wrong + said) - 0.5 * np.argsort(np.argsort(expected)) / len(expected), kind="stable"
        )
        n = max(1, min(MOST_VIEWS, int((wrong | (said > 0)).sum())))
        return [(classes[r], None, combine[r]) for r in order[:n].tolist()]
    a = int(response.chosen(expected[None])[0])
    if response.binary:
        return [(classes[a], classes[1 - a], combine[0] * (1.0 if a else -1.0))]
    others = [r for r in np.argsort(-expected, kind="stable").tolist() if r != a]
    true = int(shown.truth[i].argmax()) if shown.truth is not None and shown.known[i] else a
    b = others[0] if true == a else true
    return [(classes[a], classes[b], combine[a] - combine[b]), (classes[a], None, combine[a])]


def base_rate(shown: Shown, combine: np.ndarray) -> float:
    """The base rate of a sum of columns of omega, `combine` (R,), in the units of y."""
    response, base = shown.response, shown.documents.posterior.intercept.base
    return float(combine @ (response.offset_in_units(np.zeros(len(base))) + base * response.unit))


def predicted(shown: Shown, i: int, explained: Explanation) -> list[list[Any]]:
    """What is predicted, with intervals: the three most probable classes, labels or scores, numbers, a median time."""
    response = shown.response
    if response.kind == "time":
        found = {name: values[0] for name, values in shown.documents.part(np.array([i])).predictions().items()}
        return [["median time", *(few(found[name]) for name in ("prediction", "lower", "upper"))]]
    rows = list(zip(map(str, explained.mean_names), explained.mean, *explained.mean_interval, strict=True))
    if response.labels is not None:
        rows.sort(key=lambda row: -row[1])
        if not response.has_probabilities and len(response.column_names) == 1:
            rows = [(response.column_names[0], *row[1:]) for row in rows]
    elif shown.lower.shape[1]:
        rows = [(row[0], row[1], a, b) for row, a, b in zip(rows, shown.lower[i], shown.upper[i], strict=True)]
    shares = response.labels is not None and response.has_probabilities
    return [[name, *(share(x) if shares else few(x, 5) for x in numbers)] for name, *numbers in rows[:3]]


def share(value: float) -> float:
    """A share with few digits; what is less than 1 stays so."""
    short: float = few(value, 5)
    return 0.99999 if short == 1 and value < 1 else short


def view_parts(explained: Explanation, r: int, words: dict[str, int]) -> dict[str, Any]:
    """What adds up to the score: the intercept, other terms, and words, the largest of which have intervals."""
    through, direct, total = (part[:, r] for part in (explained.through_topics, explained.direct, explained.total))
    order = np.argsort(-np.abs(total), kind="stable")
    top, rest = order[:MOST_WORDS], order[MOST_WORDS:]
    places = [words.setdefault(explained.words[i], len(words)) for i in top.tolist()]
    of_topics = explained.topics[:, r]
    return {
        "constant": few(explained.constant[r], 5), "score": few(explained.omega[r], 5),
        "beside": [[str(name), few(added[r], 4)] for name, added in explained.others.items() if name != Intercept.name],
        "words": [[place, few(a, 4), few(b, 4)] for place, a, b in zip(places, through[top], direct[top], strict=True)],
        "spans": [few([explained.lower[i, r], explained.upper[i, r]]) for i in top[:MOST_SPANS]],
        "rest": [len(rest), few(through[rest].sum()), few(direct[rest].sum())],
        "topics": [[int(k), few(of_topics[k])] for k in np.argsort(-np.abs(of_topics))[:4]
                   if explained.topic_shares[k] > 0],
    }  # fmt: skip


def word_facts(posterior: Posterior, phi: np.ndarray, names: np.ndarray, words: list[str]) -> dict[str, Any]:
    """For each word the topics that its tokens are in, and its largest direct weights."""
    joint = phi * posterior.mean_shares[:, None]
    place = {str(name): i for i, name in enumerate(names)}
    direct, weights = {}, np.zeros((0, 0))
    if posterior.words is not None:
        own = names if posterior.word_names is None else posterior.word_names
        direct = {str(name): i for i, name in enumerate(own)}
        _, combine = posterior.response.explained()
        weights = combine @ posterior.response.in_units(posterior.words.word_coef(posterior.n_direct))  # (T, W)
    found: dict[str, Any] = {"topics": [], "direct": []}
    for word in words:
        topics: list[list[Any]] = []
        if word in place:
            part = joint[:, place[word]] / max(joint[:, place[word]].sum(), 1e-300)
            topics = [[int(k), few(part[k])] for k in np.argsort(-part)[:4] if part[k] >= LEAST_SHARE]
        found["topics"].append(topics)
        own = weights[:, direct[word]] if word in direct else np.zeros(0)
        found["direct"].append([[int(t), few(own[t])] for t in np.argsort(-np.abs(own))[:3] if abs(own[t]) > 1e-4])
    return found
