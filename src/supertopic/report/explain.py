"""Why a document gets its prediction: what each of its words adds to omega, through its topics and directly.

The terms of omega split themselves into parts, draw by draw. A token in topic k adds eta_k / N, a word with a weight of
its own adds that times its tf-idf; with the intercept and the other terms these sum to the omega of the draw, and so do
their means over all draws and chains.
"""

from html import escape
from typing import Any, NamedTuple

import numpy as np

from supertopic.corpus.made_frames import PANDAS, make_frame, wanted_library
from supertopic.inference.predict import NewDocuments
from supertopic.model.responses.averages import draw_interval
from supertopic.model.terms import Intercept, TopicWeights

MOST_WORDS = 15  # largest number of words that are printed


class Explanation(NamedTuple):
    """The parts of a document's omega, (..., R), in the units of y: means over all draws and chains.

    With stick-breaking there is a column for each class: the log-odds of the decision for it, less those of the
    decisions for classes before it.
    """

    columns: list[Any]  # the classes, labels or numbers that omega has a column for
    words: list[str]  # the document's words, and pairs of words, that the model knows
    times: np.ndarray  # (n_words,): how often each occurs
    by_word: dict[str, np.ndarray]  # (n_words, R): what each word adds, for each term that splits by words
    lower: np.ndarray  # (n_words, R): the ends of the interval of what each word adds
    upper: np.ndarray
    others: dict[str, np.ndarray]  # (R,) each: what the intercept, each covariate and further terms add
    omega: np.ndarray  # (R,): the sum of all this
    mean: np.ndarray  # what is predicted: probabilities, scores, a number
    mean_interval: tuple[np.ndarray, np.ndarray]
    mean_names: list[Any]
    topics: np.ndarray  # (K, R): what each topic adds, in the mean of the chains that have it; it need not add up
    topic_shares: np.ndarray  # (K,): its share of the document
    topic_labels: list[str]
    library: str = PANDAS  # the library of the frames

    @property
    def through_topics(self) -> np.ndarray:
        """What each word adds through the topics of its tokens, (n_words, R)."""
        return self.by_word[TopicWeights.name]

    @property
    def direct(self) -> np.ndarray:
        """What each word adds beside the topics, (n_words, R)."""
        rest = [added for name, added in self.by_word.items() if name != TopicWeights.name]
        return sum(rest, np.zeros_like(self.through_topics))

    @property
    def total(self) -> np.ndarray:
        """What each word adds, (n_words, R)."""
        return self.through_topics + self.direct

    @property
    def constant(self) -> np.ndarray:
        """The intercept, exposure included, (R,)."""
        return self.others[Intercept.name]

    @property
    def covariates(self) -> np.ndarray:
        """What covariates and further terms add, (R,)."""
        rest = [value for name, value in self.others.items() if name != Intercept.name]
        return sum(rest, np.zeros_like(self.omega))

    def rows(self, column: int, most: int | None = None) -> list[tuple[str, float, float, float]]:
        """Words with their contribution to a column and its interval, the largest first."""
        total = self.total[:, column]
        order = np.argsort(-np.abs(total), kind="stable")[:most]
        return [
            (self.words[i], float(total[i]), float(self.lower[i, column]), float(self.upper[i, column])) for i in order
        ]

    def frame(self) -> Any:
        """A data frame: a row for each word and column, with what it adds through topics, directly, and together."""
        n_words, n_columns = self.through_topics.shape
        word, column = np.divmod(np.arange(n_words * n_columns), n_columns)
        return make_frame({
            "word": np.array(self.words, object)[word], "times": self.times[word],
            "column": np.array(self.columns, object)[column], "through_topics": self.through_topics.ravel(),
            "direct": self.direct.ravel(), "total": self.total.ravel(), "lower": self.lower.ravel(),
            "upper": self.upper.ravel(),
        }, self.library)  # fmt: skip

    @property
    def column(self) -> int:
        """The column that is shown: that of the prediction."""
        return int(np.argmax(self.mean)) if len(self.columns) > 1 else 0

    def __repr__(self) -> str:
        predicted = (f"{name} {value:.3g} ({a:.3g} .. {b:.3g})" for name, value, a, b in zip(
            self.mean_names, self.mean, *self.mean_interval, strict=True))  # fmt: skip
        lines = [", ".join(predicted), f"for {self.columns[self.column]}:"]
        lines += [f"  {value[self.column]:+8.3f}  {name}" for name, value in self.others.items()]
        lines += [
            f"  {total:+8.3f}  {word}  ({a:+.3f} .. {b:+.3f})"
            for word, total, a, b in self.rows(self.column, MOST_WORDS)
        ]
        left = len(self.words) - MOST_WORDS
        lines += [f"            and {left} more words"] if left > 0 else []
        lines.append(f"  {self.omega[self.column]:+8.3f}  total")
        largest = [i for i in np.argsort(-np.abs(self.topics[:, self.column]))[:3] if self.topic_shares[i] > 0]
        if largest:
            names = (f"{self.topic_labels[i]} ({self.topics[i, self.column]:+.2f})" for i in largest)
            lines.append(f"its topics: {', '.join(names)}")
        return "\n".join(lines)

    def topic_frame(self) -> Any:
        """A data frame: a row for each topic and column, with the topic's share and what it adds."""
        n_topics, n_columns = self.topics.shape
        topic, column = np.divmod(np.arange(n_topics * n_columns), n_columns)
        return make_frame({
            "topic": topic, "label": np.array(self.topic_labels, object)[topic], "share": self.topic_shares[topic],
            "column": np.array(self.columns, object)[column], "adds": self.topics.ravel(),
        }, self.library)  # fmt: skip

    def _repr_html_(self) -> str:
        """For notebooks: the same as a table, with bars."""
        rows = [(name, float(value[self.column]), "") for name, value in self.others.items()]
        rows += [(word, total, f"{a:+.2f} .. {b:+.2f}") for word, total, a, b in self.rows(self.column, MOST_WORDS)]
        largest = max(abs(value) for _, value, _ in rows) or 1.0
        cells = []
        for name, value, span in rows:
            colour, width = "#2a7" if value > 0 else "#c54", 60 * abs(value) / largest
            bar = f"<div style='background:{colour};height:.8em;width:{width:.0f}px'></div>"
            cells.append(f"<tr><td>{escape(str(name))}</td><td>{value:+.3f}</td><td>{span}</td><td>{bar}</td></tr>")
        predicted = ", ".join(f"{escape(str(n))} {v:.3g}" for n, v in zip(self.mean_names, self.mean, strict=True))
        caption = f"<caption>{predicted}; for {escape(str(self.columns[self.column]))}</caption>"
        return f"<table>{caption}{''.join(cells)}</table>"


def explain(pipeline: Any, text: str, **more: Any) -> Explanation:
    """Why a text gets its prediction: what each of its words adds to omega.

    Parameters
    ----------
    pipeline : Pipeline
        A fitted pipeline of a vectorizer and a supertopic estimator. A model that was fitted to texts has its own
        `explain(text)`.
    text : str
        The document.
    more : optional
        `covariates`, `exposure`, `features` and `level`, as for the estimator's own `explain`.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}; for counts use model.explain(X).")
    if not hasattr(pipeline, "steps"):
        return pipeline.explain(text, **more)
    *before, (_, model) = pipeline.steps
    X = [text]
    for _, step in before:
        X = step.transform(X)
    return model.explain(X, before[-1][1].get_feature_names_out(), **more)


class NamedSplit(NamedTuple):
    """What the words of a document add, those of several vocabularies put together by their names."""

    words: list[str]
    times: np.ndarray  # (n_words,)
    parts: dict[str, np.ndarray]  # (n, n_words, R), of each term that splits by words


def name_splits(document: NewDocuments, names: np.ndarray, splits: dict[str, tuple[str, np.ndarray]]) -> NamedSplit:
    """Put the words of all terms together; `splits` has for each the vocabulary that it reads, and what words add."""
    of_words = names if document.posterior.word_names is None else document.posterior.word_names
    rows = {"counts": (names, document.counts), "words": (of_words, document.words)}
    place: dict[str, int] = {}
    times: list[int] = []
    at: dict[str, list[int]] = {}
    for kind, (known, counts) in rows.items():
        at[kind] = []
        for name, n in zip(known[counts.indices], counts.data.tolist(), strict=True):
            if str(name) not in place:
                place[str(name)] = len(place)
                times.append(n)
            at[kind].append(place[str(name)])
    parts = {}
    for term, (kind, split) in splits.items():
        parts[term] = np.zeros((split.shape[0], len(place), split.shape[2]))
        parts[term][:, at[kind]] = split
    return NamedSplit(list(place), np.array(times, dtype=int), parts)


def explain_document(
    document: NewDocuments, names: np.ndarray, labels: list[str], level: float,
    shown: tuple[list[str], np.ndarray] | None = None,
) -> Explanation:  # fmt: skip
    """The explanation of one document; names (V,) are those of words, labels those of topics.

    `shown` are the columns to explain, each as a sum of columns of omega, by default those of the response.
    """
    posterior = document.posterior
    response = posterior.response
    parts = {term: term.parts(document) for term in posterior.terms}
    splits = {term.name: (term.by_word, part.by_word) for term, part in parts.items() if part.by_word is not None}
    words, counts, by_word = name_splits(document, names, splits)
    others: dict[str, np.ndarray] = {}
    for label, draws in (row for part in parts.values() for row in part.others.items()):
        others[label] = others.get(label, 0.0) + draws  # a covariate may have the name of a term
    omega = sum(split.sum(axis=1) for split in by_word.values()) + sum(others.values())
    expected = response.expected(omega[:, None], document.pairs.over(posterior.scale))
    columns, combine = shown or response.explained()  # (n_shown, R)
    signs = combine * np.broadcast_to(response.unit, (combine.shape[1],))
    centre = response.offset_in_units(np.zeros(combine.shape[1])) @ combine.T  # a rating's mean is in its intercept
    total = sum(by_word.values()) @ signs.T  # (n, n_words, n_shown)
    lower, upper = draw_interval(total, level) if len(words) else (total.mean(axis=0),) * 2
    beside = {label: (draws @ signs.T).mean(axis=0) for label, draws in others.items()}
    beside[Intercept.name] = beside[Intercept.name] + centre
    by_topic, shares = parts_by_topic(document)
    low, high = draw_interval(expected, level)
    return Explanation(
        columns, words, counts, {name: (split @ signs.T).mean(axis=0) for name, split in by_word.items()},
        lower, upper, beside, centre + (omega @ signs.T).mean(axis=0),
        expected[:, 0].mean(axis=0), (low[0], high[0]), response.answers, by_topic @ signs.T,
        shares, labels, wanted_library(),
    )  # fmt: skip


def parts_by_topic(document: NewDocuments) -> tuple[np.ndarray, np.ndarray]:
    """What each topic adds to omega, (K, R), and its share, (K,): means over the chains that have it."""
    posterior, adds, shares = document.posterior, [], []
    for chain in range(posterior.n_chains):
        parts, own_shares = posterior.term(TopicWeights).by_topic(document, chain)
        wide = np.zeros(posterior.own.shape)
        for part, places, columns in zip(parts, posterior.places, posterior.columns, strict=True):
            wide[columns, places] = part.T
        adds.append(wide)
        shares.append(np.concatenate(own_shares) / len(own_shares))
    mean = posterior.consensus.mean
    of_topics = posterior.as_shares(mean(posterior.matched(np.array(shares))))
    return mean(posterior.matched(np.array(adds))).T, of_topics
