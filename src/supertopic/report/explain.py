"""Why a document gets its prediction: what each of its words adds to omega, through its topics and by itself.

Topics are drawn for the document as a prediction draws them, token by token. A token in topic k adds eta_k / N in each
draw, a word with a weight of its own adds that times its tf-idf; with the constant and the covariates these sum to the
omega of the draw, and so do their means over all draws and chains.
"""

from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supertopic.corpus.tokens import make_tokens
from supertopic.inference.words import copies_of_draws
from supertopic.kernels.draws import content_streams
from supertopic.kernels.moments import omegas
from supertopic.report.diagnostics import interval
from supertopic.sampling.new_documents import draw_topics

SHOWN = 15  # words


class Explanation(NamedTuple):
    """The parts of a document's omega, (..., R): means over all draws and chains, and intervals of some.

    With stick-breaking there is a column for each class: the log-odds of the decision for it, less those of the
    decisions for classes before it.
    """

    columns: list[Any]  # the classes, labels or responses that omega has a column for
    words: list[str]  # the document's words that the model knows
    times: np.ndarray  # (n_words,): how often each is there
    through_topics: np.ndarray  # (n_words, R)
    direct: np.ndarray  # (n_words, R): of the words' own weights
    lower: np.ndarray  # (n_words, R): the ends of the interval of both together
    upper: np.ndarray
    constant: np.ndarray  # (R,): of a document of which nothing is known
    covariates: np.ndarray  # (R,)
    omega: np.ndarray  # (R,): the sum of all this
    mean: np.ndarray  # what is predicted: probabilities, scores, a rating or a count
    mean_interval: tuple[np.ndarray, np.ndarray]
    mean_names: list[Any]
    topics: np.ndarray  # (K, R): what each topic of the best chain, whose topics are shown, adds in that chain
    topic_shares: np.ndarray  # (K,): its share of the document
    topic_labels: list[str]

    def rows(self, column: int, most: int | None = None) -> list[tuple[str, float, float, float]]:
        """Words with their contribution to a column and its interval, the largest first."""
        total = (self.through_topics + self.direct)[:, column]
        order = np.argsort(-np.abs(total), kind="stable")[:most]
        return [
            (self.words[i], float(total[i]), float(self.lower[i, column]), float(self.upper[i, column])) for i in order
        ]

    def frame(self) -> Any:
        """A pandas frame: a row for each word and column, with what it adds through topics, directly, and in all."""
        import pandas

        n_words, n_columns = self.through_topics.shape
        word, column = np.divmod(np.arange(n_words * n_columns), n_columns)
        return pandas.DataFrame({
            "word": np.array(self.words, object)[word], "times": self.times[word],
            "column": np.array(self.columns, object)[column], "through_topics": self.through_topics.ravel(),
            "direct": self.direct.ravel(), "total": (self.through_topics + self.direct).ravel(),
            "lower": self.lower.ravel(), "upper": self.upper.ravel(),
        })  # fmt: skip

    @property
    def column(self) -> int:
        """The column that is shown: the one of what is predicted."""
        return int(np.argmax(self.mean)) if len(self.columns) > 1 else 0

    def __repr__(self) -> str:
        said = (f"{name} {value:.3g} ({a:.3g} .. {b:.3g})" for name, value, a, b in zip(
            self.mean_names, self.mean, *self.mean_interval, strict=True))  # fmt: skip
        lines = [", ".join(said), f"for {self.columns[self.column]}:"]
        lines += [f"  {value:+8.3f}  {name}" for name, value in self.others()]
        lines += [
            f"  {total:+8.3f}  {word}  ({a:+.3f} .. {b:+.3f})" for word, total, a, b in self.rows(self.column, 15)
        ]
        largest = [i for i in np.argsort(-np.abs(self.topics[:, self.column]))[:3] if self.topic_shares[i] > 0]
        left = len(self.words) - 15
        lines += [f"            and {left} words more"] if left > 0 else []
        lines.append(f"  {self.omega[self.column]:+8.3f}  in all")
        if largest:
            told = (f"{self.topic_labels[i]} ({self.topics[i, self.column]:+.2f})" for i in largest)
            lines.append(f"its topics: {', '.join(told)}")
        return "\n".join(lines)

    def topic_frame(self) -> Any:
        """A pandas frame: a row for each topic of the best chain and column, with its share and what it adds there."""
        import pandas

        n_topics, n_columns = self.topics.shape
        topic, column = np.divmod(np.arange(n_topics * n_columns), n_columns)
        return pandas.DataFrame({
            "topic": topic, "label": np.array(self.topic_labels, object)[topic], "share": self.topic_shares[topic],
            "column": np.array(self.columns, object)[column], "adds": self.topics.ravel(),
        })  # fmt: skip

    def others(self) -> list[tuple[str, float]]:
        """What adds to the shown column beside the words."""
        found = [("without a word", float(self.constant[self.column]))]
        return found + ([("covariates", float(self.covariates[self.column]))] if self.covariates.any() else [])

    def _repr_html_(self) -> str:
        """For notebooks: the same as a table, with bars."""
        rows = [(name, value, "") for name, value in self.others()]
        rows += [(word, total, f"{a:+.2f} .. {b:+.2f}") for word, total, a, b in self.rows(self.column, SHOWN)]
        largest = max(abs(value) for _, value, _ in rows) or 1.0
        cells = []
        for name, value, span in rows:
            colour, width = "#2a7" if value > 0 else "#c54", 60 * abs(value) / largest
            bar = f"<div style='background:{colour};height:.8em;width:{width:.0f}px'></div>"
            cells.append(f"<tr><td>{escape(str(name))}</td><td>{value:+.3f}</td><td>{span}</td><td>{bar}</td></tr>")
        said = ", ".join(f"{escape(str(n))} {v:.3g}" for n, v in zip(self.mean_names, self.mean, strict=True))
        caption = f"<caption>{said}; for {escape(str(self.columns[self.column]))}</caption>"
        return f"<table>{caption}{''.join(cells)}</table>"


def explain(pipeline: Any, text: str, **more: Any) -> Explanation:
    """Why a text gets its prediction: what each of its words adds to omega.

    Parameters
    ----------
    pipeline : Pipeline
        A fitted pipeline of a vectorizer and a supertopic estimator.
    text : str
        The document.
    more : optional
        `covariates`, `exposure` and `level`, as for the estimator's own `explain`, which takes counts.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}; for counts use model.explain(X).")
    *before, (_, model) = pipeline.steps
    X = [text]
    for _, step in before:
        X = step.transform(X)
    return model.explain(X, before[-1][1].get_feature_names_out(), **more)


def explain_counts(
    model: Any, counts: csr_array, names: np.ndarray, Z: np.ndarray, log_exposure: float, level: float
) -> Explanation:
    """The explanation of one document, a checked row of counts; Z (1, P) are its covariates, standardised."""
    tokens, (etas, scales), n_topics = make_tokens(counts), model._calibrated, model._n_features_out
    n_tokens, n_columns, word = len(tokens.word), etas.shape[2], counts.indices
    n_pairs = max(*model._n_told(etas))
    pairs = np.arange(n_pairs) % etas.shape[1]
    through = np.zeros((len(etas), n_pairs, len(word), n_columns))
    by_topic, shares = np.zeros((n_topics, n_columns)), np.zeros(n_topics)
    place = np.repeat(np.arange(len(word)), counts.data)  # of each token's word
    for chain, eta in enumerate(etas if n_tokens else ()):
        for block in range(model.n_blocks_):
            streams = content_streams(tokens, model._key(chain, block))
            z = draw_topics(tokens, model._topics(chain, block, "cpu"), streams, model.predict_sweeps)
            columns = slice(None) if model.n_blocks_ == 1 else slice(block, block + 1)
            own = eta[:, columns, model._block(block)]
            for i in range(n_pairs):
                added = own[i % len(eta)][:, z[i % len(z)]].T / n_tokens  # (n_tokens, R)
                np.add.at(through[chain, i, :, columns], place, added)
            if chain == model.best_chain_:
                used = np.array([np.bincount(row, minlength=own.shape[2]) for row in z]) / n_tokens  # (draw, K)
                pairing = np.arange(n_pairs)
                of_each = own[pairing % len(eta)] * used[pairing % len(z)][:, None]  # (pair, R, K)
                by_topic[model._block(block), columns] = of_each.mean(axis=0).T
                shares[model._block(block)] = used[pairing % len(z)].mean(axis=0) / model.n_blocks_
    direct = np.zeros_like(through)
    if model._theta.size:
        x = model._dictionary.rows(counts)
        where = {w: i for i, w in enumerate(model._dictionary.word)}
        known = [(i, where[w]) for i, w in enumerate(word) if w in where]
        copies = copies_of_draws(len(etas), etas.shape[1], pairs, len(model._theta)).reshape(len(etas), -1)
        unit = getattr(model, "unit_", 1.0)
        for i, j in known:
            direct[:, :, i] = (model._theta[:, :, j] * x[0, j] * unit)[copies]
    beside = np.zeros((len(etas), n_pairs, n_columns))
    if Z.shape[1]:
        beside = np.array([[omegas(Z, draw[:, n_topics:].copy())[0] for draw in eta] for eta in etas])[:, pairs]
    constants = model.calibrated_intercept_
    if not n_tokens:
        constants = model._draw_empty(len(etas) * n_pairs).reshape(beside.shape)
    constants = np.broadcast_to(constants + log_exposure, beside.shape)
    omega = (constants + beside + through.sum(axis=2) + direct.sum(axis=2)).reshape(-1, n_columns)
    means, mean_names = model._means(omega[:, None], np.concatenate(scales[:, pairs]))
    names_of_columns, signs = model._explained_columns()  # (what is shown, R)
    through, direct, beside, constants, omega = (part @ signs.T for part in (through, direct, beside, constants, omega))
    total = (through + direct).reshape(len(omega), len(word), len(signs))
    lower, upper = interval(total, level) if len(word) else (total.mean(axis=0),) * 2
    return Explanation(
        names_of_columns, [str(name) for name in names[word]], counts.data.copy(), through.mean(axis=(0, 1)),
        direct.mean(axis=(0, 1)), lower, upper, constants.mean(axis=(0, 1)), beside.mean(axis=(0, 1)),
        omega.mean(axis=0), means[:, 0].mean(axis=0), tuple(side[0] for side in interval(means, level)), mean_names,
        by_topic @ signs.T, shares, label_topics(model, names),
    )  # fmt: skip


def label_topics(model: Any, names: np.ndarray) -> list[str]:
    """What topics are called: their numbers, with names or a few words."""
    words = model.top_words(names, 3)
    return [f"{k} {model.topic_name(k) or ' '.join(map(str, row))}" for k, row in enumerate(words)]
