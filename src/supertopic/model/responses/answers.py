"""The answers of several raters: a row for each document and a column for each rater, or a long table."""

from typing import Any, NamedTuple

import numpy as np

from supertopic.model.responses.values import is_unknown, without_na
from supertopic.warn import warn

LONG = "document", "rater", "answer"  # the columns of a long table
GOLD = "gold"  # the column of a wide table with true classes or ratings
MOST_RATERS, NAMED = 10_000, 5


class Answers(NamedTuple):
    """The answers of raters about documents, one after the other, sorted by document."""

    doc: np.ndarray  # (n,)
    rater: np.ndarray  # (n,): its place in `raters`
    value: np.ndarray  # (n,): a class, or a number
    raters: np.ndarray  # (n_raters,): names
    gold: np.ndarray  # (n_docs,): what is known for sure of each document; None or NaN where nothing is

    @property
    def n_docs(self) -> int:
        return len(self.gold)

    def take(self, rows: np.ndarray) -> "Answers":
        """The answers about some documents."""
        first, last = (np.searchsorted(self.doc, rows, side) for side in ("left", "right"))
        places = [np.arange(a, b) for a, b in zip(first, last, strict=True)]
        doc = np.repeat(np.arange(len(rows)), [len(own) for own in places])
        at = np.concatenate([*places, np.zeros(0, int)])
        return Answers(doc, self.rater[at], self.value[at], self.raters, self.gold[rows])

    def with_raters(self, raters: np.ndarray) -> "Answers":
        """The same answers with the raters of a fitted model, in its order."""
        place = {name: i for i, name in enumerate(raters.tolist())}
        new = [str(name) for name in self.raters.tolist() if str(name) not in place]
        if new:
            raise ValueError(
                f"y has answers of {', '.join(map(repr, new[:NAMED]))}, but the model was fitted with other raters: "
                f"{', '.join(map(repr, raters.tolist()[:NAMED]))}{' ...' if len(raters) > NAMED else ''}. "
                "`fit` on all answers adds raters."
            )
        own = np.array([place[str(name)] for name in self.raters.tolist()], int)
        return self._replace(rater=own[self.rater], raters=raters)

    def counts(self, weight: np.ndarray) -> np.ndarray:
        """How many answers each rater gave about documents that count, (n_raters,); weight is (n_docs,)."""
        return np.bincount(self.rater[weight[self.doc] > 0], minlength=len(self.raters))

    def rows(self, values: np.ndarray) -> np.ndarray:
        """A row of values (n,) for each document, (n_docs, most answers about one), NaN after the last one."""
        size = np.bincount(self.doc, minlength=self.n_docs)
        place = np.arange(len(self.doc)) - np.repeat(np.cumsum(size) - size, size)
        found = np.full((self.n_docs, max(int(size.max(initial=0)), 1)), np.nan)
        found[self.doc, place] = values
        return found


def as_answers(y: Any, n_docs: int, gold: Any = None, index: Any = None, missing: Any = None) -> Answers:
    """Answers from what a user gives: `index` has names of the documents, which a long table may use."""
    if isinstance(y, Answers):
        found = y
    elif is_long(y):
        found = from_long(y, n_docs, index, missing)
    else:
        found = from_wide(y, n_docs, missing)
    if found.n_docs != n_docs:
        raise ValueError(f"X has {n_docs} documents but y has {found.n_docs}; they must be equally many.")
    if len(found.raters) > MOST_RATERS:
        raise ValueError(f"y has {len(found.raters):,} raters; at most {MOST_RATERS:,} are possible.")
    if gold is not None:
        known = np.asarray(without_na(gold), dtype=object)
        if known.shape != (n_docs,):
            raise ValueError(f"gold must have an entry for each of the {n_docs} documents, got shape {known.shape}.")
        known[is_unknown(known, missing)] = None
        found = found._replace(gold=known)
    return found


def read_answers(y: Any, n_docs: int, raters: np.ndarray, missing: Any = None) -> Answers:
    """Answers for a response, whose raters are those of the first batch, if there are any; y may be None then."""
    if y is None:
        none = np.zeros(0, int)
        return Answers(none, none, none.astype(object), raters, np.full(n_docs, None, object))
    answers = as_answers(y, n_docs, missing=missing)
    if len(raters):
        return answers.with_raters(raters)
    warn_of_raters(answers)
    return answers


def is_answers(y: Any) -> bool:
    """Whether y holds answers of raters, and not one true class or rating for each document."""
    return isinstance(y, Answers) or hasattr(y, "columns") or np.ndim(y) == 2


def is_long(y: Any) -> bool:
    """Whether y is a table with a row for each answer."""
    return set(LONG) <= set(map(str, getattr(y, "columns", ())))


def from_long(y: Any, n_docs: int, index: Any, missing: Any) -> Answers:
    docs, raters, values = (np.asarray(without_na(y[name]), dtype=object) for name in LONG)
    known = ~is_unknown(values, missing)
    docs, raters, values = docs[known], raters[known], values[known]
    names = range(n_docs) if index is None else list(index)
    place = {name: i for i, name in enumerate(names)}
    if len(place) < n_docs:
        raise ValueError("The documents in the index of X have names that occur twice; a long y needs different ones.")
    doc = [place.get(name, -1) for name in docs.tolist()]
    if -1 in doc:
        what = "row numbers from 0" if index is None else "names in the index of X"
        raise ValueError(f"y has answers about the document {docs[doc.index(-1)]!r}; documents are {what}.")
    if is_unknown(raters, None).any():
        raise ValueError("y has an answer whose rater is unknown.")
    different, own = np.unique(raters.astype(str), return_inverse=True)
    order = np.lexsort((own, np.array(doc, int)))  # as the same answers are in a row for each document
    return Answers(np.array(doc, int)[order], own[order], values[order], different.astype(object), no_gold(n_docs))


def from_wide(y: Any, n_docs: int, missing: Any) -> Answers:
    names = [str(name) for name in getattr(y, "columns", ())]
    values = np.asarray(without_na(y))
    if values.ndim != 2:
        raise ValueError(
            f"y must have a row for each document and a column for each rater, got {values.ndim} dimensions. A data "
            f"frame with a row for each answer has the columns {', '.join(LONG)}."
        )
    if len(values) != n_docs:
        raise ValueError(f"X has {n_docs} documents but y has {len(values)}; they must be equally many.")
    names = names or [str(i) for i in range(values.shape[1])]
    if len(set(names)) < len(names):
        raise ValueError("Two raters have the same name.")
    unknown, gold = is_unknown(values, missing), no_gold(n_docs)
    if GOLD in names:
        place = names.index(GOLD)
        gold = values[:, place].astype(object)
        gold[unknown[:, place]] = None
        values, unknown = np.delete(values, place, axis=1), np.delete(unknown, place, axis=1)
        names.remove(GOLD)
    doc, rater = np.nonzero(~unknown)
    return Answers(doc, rater, values[doc, rater].astype(object), np.array(names, object), gold)


def no_gold(n_docs: int) -> np.ndarray:
    return np.full(n_docs, None, object)


def warn_of_raters(answers: Answers) -> None:
    """Warn of raters without answers, and if no document has answers of two raters."""
    silent = answers.raters[np.bincount(answers.rater, minlength=len(answers.raters)) == 0].tolist()
    if silent:
        more = f" and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
        warn(f"There are no answers from {', '.join(map(repr, silent[:NAMED]))}{more}, so their errors are unknown.")
    seen = np.bincount(np.unique(answers.doc * len(answers.raters) + answers.rater) // max(len(answers.raters), 1))
    if seen.max(initial=0) < 2 and not any(value is not None for value in answers.gold.tolist()):
        warn(
            "No document has answers of two raters, so that raters cannot be compared with each other: their errors "
            "are estimated from the texts alone."
        )
