"""Whether documents differ from those that a model was fitted to, by more than chance would make them."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import binom, gamma, mannwhitneyu, norm

from supertopic.model.reference import Reference

ALARM = 0.005  # the probability that documents which have not changed raise an alarm
PERMUTATIONS, FEWEST = 500, 5  # documents of which nothing is said
UNUSUAL = 0.99  # the quantile of the reference above which a document is not explained by topics
LEAST_DOCUMENTS, LEAST_SHARE = 3, 2  # documents of a theme, and that have each of its words
WORDS = 10
UNKNOWN, SURPRISE, DISTANCE = "unknown words", "surprise of a word", "distance of topic shares"
UNEXPLAINED, LOSS = "unexplained documents", "loss"


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
        """The figures that are larger than chance makes them; the risk of an alarm is divided among all of them."""
        return [name for name, row in self.items() if row.p < ALARM / len(self)]

    def sentence(self) -> str:
        """One line about the documents."""
        if not self.alarms:
            return f"No drift found in {self.n_docs:,} documents."
        parts = [f"{name} {self[name].value:.3g} (usually {self[name].usual:.3g})" for name in self.alarms]
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
        return "\n".join([*(line.rstrip() for line in lines), self.sentence()])

    def _repr_html_(self) -> str:
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows())
        return f"<table>{body}</table><p>{escape(self.sentence())}</p>"


def compare_documents(
    new: Reference, usual: Reference, losses: np.ndarray, usual_losses: np.ndarray
) -> tuple[dict[str, Row], np.ndarray]:
    """The figures of new documents, and which of these no topic explains, the least explained first.

    `new` has NaN where nothing is known of a document; losses (n_docs,) are NaN where the response is unknown.
    """
    rows: dict[str, Row] = {}
    pairs = {UNKNOWN: (new.unknown, usual.unknown), SURPRISE: (new.surprise, usual.surprise)}
    n_rows = 5
    for name, (values, reference) in (pairs | {LOSS: (losses, usual_losses)}).items():
        values = values[~np.isnan(values)]
        if min(len(values), len(reference)) >= FEWEST:
            rows[name] = compare_means(values, reference, ALARM / n_rows)
    unexplained = np.zeros(0, int)
    if SURPRISE in rows:
        unexplained, rows[UNEXPLAINED] = find_unexplained(new.surprise, usual.surprise, ALARM / n_rows)
    if min(len(new.shares), len(usual.shares)) >= FEWEST:
        rows[DISTANCE] = compare_shares(new.shares, usual.shares, ALARM / n_rows)
    order = (UNKNOWN, SURPRISE, UNEXPLAINED, DISTANCE, LOSS)
    return {name: rows[name] for name in order if name in rows}, unexplained


def compare_means(values: np.ndarray, reference: np.ndarray, risk: float) -> Row:
    """The means of two samples; p is that of Mann and Whitney's test, which a few odd documents do not decide."""
    both = np.concatenate([values, reference])
    p = 1.0 if np.ptp(both) == 0 else float(mannwhitneyu(values, reference, alternative="greater").pvalue)
    se = both.std() * np.sqrt(1.0 / len(values) + 1.0 / len(reference))
    usual = float(reference.mean())
    return Row(float(values.mean()), usual, usual + float(norm.isf(risk)) * float(se), p)


def find_unexplained(values: np.ndarray, reference: np.ndarray, risk: float) -> tuple[np.ndarray, Row]:
    """Documents whose words are more surprising than those of nearly all held-out documents."""
    bound = np.quantile(reference, UNUSUAL)
    usual = (np.count_nonzero(reference > bound) + 1.0) / (len(reference) + 1.0)
    known = ~np.isnan(values)
    n, found = int(known.sum()), np.flatnonzero(known & (np.nan_to_num(values) > bound))
    p = float(binom.sf(len(found) - 1, n, usual)) if len(found) >= LEAST_DOCUMENTS else 1.0
    limit = float(binom.isf(risk, n, usual)) / n
    return found[np.argsort(-values[found], kind="stable")], Row(len(found) / n, usual, limit, p)


def compare_shares(shares: np.ndarray, reference: np.ndarray, risk: float) -> Row:
    """The total variation between the mean shares of topics, against that of documents dealt at random."""
    both = np.concatenate([reference, shares]).astype(float)
    n, rng = len(shares), np.random.default_rng(0)
    whole = both.sum(axis=0)

    def distance(own: np.ndarray) -> float:
        return 0.5 * float(np.abs(own / n - (whole - own) / (len(both) - n)).sum())

    found = distance(shares.sum(axis=0, dtype=float))
    by_chance = np.array([
        distance(both[rng.choice(len(both), n, replace=False)].sum(axis=0)) for _ in range(PERMUTATIONS)
    ])  # fmt: skip
    mean, variance = float(by_chance.mean()), max(float(by_chance.var()), 1e-30)
    law = gamma(mean**2 / variance, scale=variance / mean) if mean > 0 else None  # for the tail beyond permutations
    if law is None:
        return Row(found, mean, mean, 1.0)
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
