"""How many topics: several numbers are fitted in one run and compared on held-out documents."""

import time
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing as rows_of

from supertopic.corpus.look import same_texts
from supertopic.corpus.made_frames import frame_of_rows, frames_of, wanted_library
from supertopic.estimators.base import TopicModel
from supertopic.estimators.splitting import split_known
from supertopic.estimators.texts import are_texts, count_texts, read_texts
from supertopic.estimators.validation import refuse_text
from supertopic.model.responses.base import Response
from supertopic.model.responses.values import is_unknown, without_na
from supertopic.report.plots import ChoiceDisplay

TOP = 10  # words of a topic that should go together
MEANING = "more, se: how much larger the loss is than the smallest, and its standard error."


class Choice:
    """The result of `choose_topics`.

    Attributes
    ----------
    rows : list of dict
        One for each number of topics: n_topics, the held-out loss and its standard error, the score, the loss of the
        topics alone (topics_loss: without words, on the documents that the fit itself holds out; NaN if there are
        none), stability (the share of topics that more than half of the chains have; NaN for one chain), coherence,
        exclusivity, seconds.
    best : int
        The number of topics with the smallest loss.
    chosen : int
        The smallest number whose loss is within one standard error of the best one's; the error is that of the
        difference, over the same documents.
    losses : dict
        The loss of every held-out document, by the number of topics.
    score : str
        What the score is: "accuracy", "R2" or "perplexity".
    n_docs : int
        The number of held-out documents.
    """

    def __init__(self, rows: list[dict[str, Any]], losses: dict[int, np.ndarray], score: str, n_docs: int):
        self.rows, self.losses, self.score, self.n_docs = rows, losses, score, n_docs
        self.library = wanted_library()  # of the frame
        mean = {k: loss.mean() for k, loss in losses.items()}
        self.best = min(mean, key=lambda k: mean[k])
        self.chosen = self.best
        for row in rows:
            more = losses[row["n_topics"]] - losses[self.best]
            row["loss_more"], row["loss_se"] = more.mean(), more.std(ddof=min(1, len(more) - 1)) / np.sqrt(len(more))
            if row["loss_more"] <= row["loss_se"] and row["n_topics"] < self.chosen:
                self.chosen = row["n_topics"]

    def frame(self) -> Any:
        """The rows as a data frame."""
        with frames_of(self.library):
            return frame_of_rows(self.rows)

    def plot(self, *, ax: Any = None) -> ChoiceDisplay:
        """A plot of the loss of each number of topics beyond the best one, and of the coherence of its topics."""
        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        return ChoiceDisplay(columns, self.chosen).plot(ax=ax)

    def __repr__(self) -> str:
        columns = {  # the keys of the rows, and the format of each
            "n_topics": "topics", "loss": "loss", "loss_more": "more", "loss_se": "se", "topics_loss": "alone",
            "score": self.score, "stability": "stable", "coherence": "cohere", "exclusivity": "exclus.", "seconds": "s",
        }  # fmt: skip
        widths = [max(6, len(title)) for title in columns.values()]
        head = " ".join(f"{title:>{width}}" for title, width in zip(columns.values(), widths, strict=True))
        lines = [f"{self.n_docs} held-out documents", f"  {head}"]
        for row in self.rows:
            cells = (as_cell(name, row[name]).rjust(width) for name, width in zip(columns, widths, strict=True))
            lines.append(f"{'>' if row['n_topics'] == self.chosen else ' '} {' '.join(cells)}")
        return "\n".join([*lines, MEANING])


def as_cell(name: str, value: float) -> str:
    """A figure of a table, in at most six letters where it can be."""
    if name == "n_topics" or np.isnan(value):
        return "-" if np.isnan(value) else str(value)
    if name == "stability":
        return f"{value:.0%}"
    if name in ("coherence", "exclusivity"):
        return f"{value:.2f}"
    if name == "seconds":
        return f"{value:.1f}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.5g}"


def choose_topics(
    estimator: TopicModel, X: Any, y: ArrayLike | None = None, n_topics: Sequence[int] = (5, 10, 20, 40, 80), *,
    test_size: float = 0.2, burn_in: int | str = 20, n_draws: int = 10, n_chains: int = 2, random_state: int = 0,
    **beside: Any,
) -> Choice:  # fmt: skip
    """Fit a few numbers of topics with short chains, and compare them on held-out documents.

    Parameters
    ----------
    estimator : any estimator of this library
        What to fit; its other parameters do not change.
    X, y : array-like
        As in `fit`. Documents whose response is unknown are used for training only.
    n_topics : sequence of int
        The numbers to try.
    test_size : float, default=0.2
        The share of the documents with a known response that is held out.
    burn_in, n_draws, n_chains : int
        How long each fit is. The defaults are enough for a comparison. Fit the chosen model again, with all documents.
    random_state : int
        The seed of the split and of the fits.
    **beside
        `sample_weight`, `covariates`, `exposure`, `features` and `feature_names`, as for `fit`.

    Returns
    -------
    Choice
        A table (`rows`, `frame()`), a figure (`plot()`), and `chosen`: the smallest number of topics whose held-out
        loss is within one standard error of the best. The loss of classes and labels is -log p, of the hinge the share
        of errors, of ratings the squared error in units of the variance, of counts the negative log density, and
        without a response that of the words.
    """
    numbers = sorted(set(n_topics))
    if not numbers or not all(isinstance(k, Integral) and k >= 1 for k in numbers):
        raise ValueError(f"n_topics must be whole numbers >= 1, got {n_topics!r}.")
    if not 0 < test_size < 1:
        raise ValueError(f"test_size must be between 0 and 1, got {test_size!r}.")
    names = {name: beside.pop(name) for name in ("feature_names",) if name in beside}
    texts = are_texts(X)
    if texts:
        X = np.array(read_texts(X), dtype=object)
    else:
        refuse_text(X)
        X = sp.csr_array(X)
    group = same_texts(X) if texts else None  # texts that are the same are on one side
    train, test = split(estimator.make_response(), X.shape[0], y, test_size, random_state, group)
    parts = [{name: rows_of(values, at) for name, values in beside.items()} for at in (train, test)]
    known = parts[1].copy()
    known.pop("sample_weight", None)
    rows, losses, score = [], {}, ""
    for k in numbers:
        model = clone(estimator).set_params(
            n_topics=int(k), burn_in=burn_in, n_draws=n_draws, n_chains=n_chains, random_state=random_state
        )
        began = time.perf_counter()
        model.fit(X[train], *([] if y is None else [rows_of(y, train)]), **names, **parts[0])
        seconds = time.perf_counter() - began
        found = model.evaluate(X[test], None if y is None else rows_of(y, test), **known)
        losses[int(k)], score = found.losses, found.score_name
        rows.append({
            "n_topics": int(k), "loss": float(found.losses.mean()), "score": found.score,
            "topics_loss": topics_loss(model), "stability": stability(model),
            "coherence": npmi(model, count_texts(model, X[train]).topics if texts else X[train]),
            "exclusivity": float(model.exclusivity().mean()), "seconds": seconds,
        })  # fmt: skip
    with frames_of(estimator.own_library((X, y))):
        return Choice(rows, losses, score, len(test))


def split(
    response: Response, n_docs: int, y: Any, test_size: float, seed: int, group: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Documents to learn from, and some with known responses to compare on; those of a group are on the same side."""
    known, classes = np.arange(n_docs), None
    if y is not None and response.kind:
        values = np.asarray(without_na(y))
        unknown = is_unknown(values, getattr(response, "missing_label", None)).reshape(len(values), -1)
        known = np.flatnonzero(~(unknown.all(axis=1) if response.several_raters else unknown.any(axis=1)))
        if len(known) < 2:
            raise ValueError("Fewer than two documents have a known response: there is nothing to compare on.")
        if response.labels is not None and values.ndim == 1:
            classes = values[known]
    test = split_known(known, classes, test_size, seed, group)
    return np.setdiff1d(np.arange(n_docs), test), test


def topics_loss(model: TopicModel) -> float:
    """The loss of topics without words beside them, on the documents that the fit held out; NaN without any."""
    found = model.posterior_.held_out
    return float(found.get("topics_loss", found.get("loss", np.nan)))


def stability(model: TopicModel) -> float:
    """The share of topics that more than half of the chains have; NaN with one chain."""
    agreement = model.topic_agreement()
    return float(np.where(np.isnan(agreement), np.nan, agreement > 0.5).mean())


def npmi(model: TopicModel, X: sp.csr_array) -> float:
    """How often the top words of a topic share a document, against chance: from -1, never, to 1, always."""
    there, total = (X > 0).astype(float), X.shape[0]
    values = []
    for best in np.argsort(-model.topic_word_, axis=1, kind="stable")[:, :TOP]:
        both = (there[:, best].T @ there[:, best]).toarray() / total
        p, (i, j) = both.diagonal(), np.triu_indices(len(best), 1)
        together, chance = both[i, j], p[i] * p[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(together / chance) / -np.log(together)
        value = np.where(together == 0, -1.0, np.where(together >= 1, 1.0, value))
        values.append(value.mean() if len(value) else 0.0)
    return float(np.mean(values))
