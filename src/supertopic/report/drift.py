"""Whether documents differ from those that a model was fitted to by more than chance."""

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import betabinom, gamma, pearson3

from supertopic.model.reference import Reference

ALARM = 0.005  # the probability that documents which have not changed raise an alarm
PERMUTATIONS, FEWEST = 500, 5  # random divisions of the documents; smallest number of documents that is compared
UNUSUAL = 0.01  # about the share of the reference that no topic explains
LEAST_DOCUMENTS, LEAST_SHARE = 3, 2  # fewest unexplained documents, or of a new class; fewest with a word of a theme
WORDS = 10  # largest number of words of a theme
MEANING = "p: the probability of a value as large by chance."
UNKNOWN, SURPRISE, DISTANCE = "unknown words", "surprise of a word", "distance of topic shares"
UNEXPLAINED, LOSS = "unexplained documents", "loss"
CALIBRATION, OUTSIDE, NEW = "predicted less observed share", "outside 90 % intervals", "new classes"
ORDER = UNKNOWN, SURPRISE, UNEXPLAINED, DISTANCE, LOSS, CALIBRATION, OUTSIDE, NEW


class Row(NamedTuple):
    """One figure of new documents beside that of held-out ones."""

    value: float
    usual: float
    limit: float  # what chance alone exceeds with the probability of an alarm
    p: float  # the probability of a value as large by chance


class Drift(dict[str, Row]):
    """Figures of new documents by their names, shown as a table."""

    def __init__(
        self, rows: dict[str, Row], n_docs: int, theme: Sequence[str] = (), documents: Sequence[object] = ()
    ):  # fmt: skip
        super().__init__(rows)
        self.n_docs = n_docs
        self.theme = list(theme)  # words that stand out, if words have changed
        self.documents = list(documents)  # labels or row numbers of documents that no topic explains, the oddest first

    def with_theme(self, theme: Sequence[str], documents: Sequence[object]) -> "Drift":
        """The same, with words that stand out and the labels of documents that no topic explains."""
        return Drift(self, self.n_docs, theme, documents)

    @property
    def alarms(self) -> list[str]:
        """The figures that are larger than chance explains; the risk of an alarm is divided among all of them."""
        return [name for name, row in self.items() if row.p < ALARM / len(self)]

    def sentence(self) -> str:
        """One line about the documents."""
        if not self.alarms:
            return f"No drift found in {self.n_docs:,} documents."
        rows = [(name, self[name]) for name in self.alarms]
        parts = [f"{name} {row.value:.3g} (usually {row.usual:.3g}, limit {row.limit:.3g})" for name, row in rows]
        theme = f". Words that stand out: {', '.join(self.theme)}" if self.theme else ""
        return f"Drift in {self.n_docs:,} documents: {'; '.join(parts)}{theme}."

    def rows(self) -> list[list[str]]:
        marks = dict.fromkeys(self.alarms, "*")
        cells = [[name, *(f"{value:.3g}" for value in row), marks.get(name, "")] for name, row in self.items()]
        return [["", *Row._fields, ""], *cells]

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*(line.rstrip() for line in lines), MEANING, self.sentence()])

    def _repr_html_(self) -> str:
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows())
        return f"<table>{body}</table><p>{MEANING} {escape(self.sentence())}</p>"


class Answers(NamedTuple):
    """How well documents with known responses are predicted."""

    loss: np.ndarray  # (n,)
    excess: np.ndarray  # (n, n_classes): predicted probabilities less 1 for what is true; else without columns
    outside: np.ndarray  # (n,): the share of a document's numbers outside their 90 % intervals; empty if not numbers
    new: np.ndarray  # whether each document has a class that is new to the model; empty if there are no classes


def compare_documents(
    new: Reference, usual: Reference, answers: Answers | None = None, usual_answers: Answers | None = None
) -> tuple[dict[str, Row], np.ndarray]:
    """The figures of new documents, and which of these no topic explains, the least explained first.

    `new` has NaN where nothing is known of a document.
    """
    checks: dict[str, Callable[[float], Row]] = {}
    means = {UNKNOWN: (new.unknown, usual.unknown), SURPRISE: (new.surprise, usual.surprise)}
    distances = {DISTANCE: (new.shares, usual.shares, total_variation)}
    if answers is not None and usual_answers is not None:
        means |= {LOSS: (answers.loss, usual_answers.loss), OUTSIDE: (answers.outside, usual_answers.outside)}
        distances[CALIBRATION] = answers.excess, usual_answers.excess, largest
        if len(answers.new) and len(usual_answers.loss):
            n_new = int(answers.new.sum())
            checks[NEW] = partial(compare_counts, n_new, len(answers.new), 1, len(usual_answers.loss))
    for name, (values, reference) in means.items():
        known = values[~np.isnan(values)]
        if min(len(known), len(reference)) >= FEWEST:
            checks[name] = partial(compare_means, known, reference)
    for name, (rows, others, measure) in distances.items():
        if min(len(rows), len(others)) >= FEWEST and rows.shape[1]:
            checks[name] = partial(compare_rows, rows, others, measure)
    unexplained = np.zeros(0, int)
    if SURPRISE in checks:
        rank = int(UNUSUAL * len(usual.surprise)) + 1
        unexplained = find_unexplained(new.surprise, usual.surprise, rank)
        n_known = int((~np.isnan(new.surprise)).sum())
        checks[UNEXPLAINED] = partial(compare_counts, len(unexplained), n_known, rank, len(usual.surprise))
    return {name: checks[name](ALARM / len(checks)) for name in ORDER if name in checks}, unexplained


def compare_means(values: np.ndarray, reference: np.ndarray, risk: float) -> Row:
    """The means of two samples.

    Chance deals all documents to the two samples at random: the mean of one of them then has a mean, a variance and a
    skewness that are known, and the distribution of type III of Pearson with these.
    """
    both = np.concatenate([values, reference]).astype(float)
    n, m, total = len(values), len(reference), len(both)
    value, usual, sd = float(values.mean()), float(reference.mean()), float(both.std())
    if not sd > 1e-12 * max(1.0, abs(usual)):
        return Row(value, usual, usual, 1.0)
    skew = float((((both - both.mean()) / sd) ** 3).mean())
    skew *= (total - 2 * n) * np.sqrt(total - 1.0) / ((total - 2) * np.sqrt(n * m))
    law = pearson3(skew, both.mean(), sd * np.sqrt(m / (n * (total - 1.0))))
    return Row(value, usual, float(law.isf(risk)), float(law.sf(value)))


def find_unexplained(values: np.ndarray, reference: np.ndarray, rank: int) -> np.ndarray:
    """Documents whose words are more surprising than those of the held-out document of this rank, the oddest first."""
    bound = np.sort(reference)[-rank]
    found = np.flatnonzero(np.nan_to_num(values, nan=-np.inf) > bound)
    return found[np.argsort(-values[found], kind="stable")]


def compare_counts(n_found: int, n_docs: int, rank: int, n_usual: int, risk: float) -> Row:
    """The share of documents beyond the held-out document of this rank, counted from the most extreme one.

    Of documents like the n held-out ones, a share is beyond it that has the distribution beta(rank, n + 1 - rank): the
    bound comes from a sample, too. A class of which no document was held out is beyond all of them, rank 1.
    """
    law, usual = betabinom(n_docs, rank, n_usual + 1 - rank), rank / (n_usual + 1.0)
    p = float(law.sf(n_found - 1)) if n_found >= LEAST_DOCUMENTS else 1.0
    limit = max(float(law.isf(risk)), LEAST_DOCUMENTS - 1.0) / n_docs
    return Row(n_found / n_docs, usual, limit, p)


def total_variation(difference: np.ndarray) -> float:
    """Of mean shares of topics."""
    return 0.5 * float(np.abs(difference).sum())


def largest(difference: np.ndarray) -> float:
    """Of the differences of predicted and observed shares of classes."""
    return float(np.abs(difference).max())


def compare_rows(
    rows: np.ndarray, reference: np.ndarray, measure: Callable[[np.ndarray], float], risk: float
) -> Row:  # fmt: skip
    """A measure of the difference between the means of rows, against that of documents dealt at random."""
    both = np.concatenate([reference, rows]).astype(float)
    n, rng = len(rows), np.random.default_rng(0)
    whole = both.sum(axis=0)

    def difference(own: np.ndarray) -> float:
        return measure(own / n - (whole - own) / (len(both) - n))

    found = difference(rows.sum(axis=0, dtype=float))
    by_chance = np.array([
        difference(both[rng.choice(len(both), n, replace=False)].sum(axis=0)) for _ in range(PERMUTATIONS)
    ])  # fmt: skip
    mean, variance = float(by_chance.mean()), float(by_chance.var())
    if not variance > 1e-24:
        return Row(found, mean, mean, 1.0)
    law = gamma(mean**2 / variance, scale=variance / mean)  # for the tail beyond permutations
    return Row(found, mean, float(law.isf(risk)), float(law.sf(found)))


def theme_words(
    counts: csr_array, names: Sequence[str], usual: np.ndarray, others: Sequence[Sequence[str]]
) -> list[str]:  # fmt: skip
    """The words that stand out in some documents, the strongest first.

    counts (n_docs, V) are those of known words, `usual` (V,) their shares in the documents of the fit, and `others`
    the unknown words of each document.
    """
    n_docs: dict[str, int] = {}
    times: dict[str, int] = {}
    for words in others:
        for word in words:
            times[word] = times.get(word, 0) + 1
        for word in set(words):
            n_docs[word] = n_docs.get(word, 0) + 1
    column = np.asarray(counts.sum(axis=0)).ravel()
    has = np.bincount(counts.indices, minlength=counts.shape[1])
    total = max(float(column.sum() + sum(times.values())), 1.0)
    least = 0.5 / total  # the share of a word that was never seen
    scores = {word: n * np.log(n / total / least) for word, n in times.items() if n_docs[word] >= LEAST_SHARE}
    for i in np.flatnonzero(has >= LEAST_SHARE).tolist():
        scores[str(names[i])] = column[i] * np.log(column[i] / total / max(usual[i], least))
    best = sorted(scores, key=lambda word: (-scores[word], word))
    return [word for word in best[:WORDS] if scores[word] > 0]
