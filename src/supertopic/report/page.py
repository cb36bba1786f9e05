"""One page that a colleague can read: what was fitted, what topics do, how well it predicts, and why.

The page is one file that loads nothing from another host. Its data are in it as JSON, too, from which its tables are
downloaded. Documents are sampled, so that it stays small.
"""

import json
import os
import warnings
from collections.abc import Sequence
from html import escape
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from supertopic.inference.predict import NewDocuments, mean_topic_shares
from supertopic.model.posterior import Posterior, Traces
from supertopic.model.responses.averages import draw_interval
from supertopic.model.terms import Intercept
from supertopic.report.diagnose import diagnose_response
from supertopic.report.evaluate import MOST_DOCUMENTS as MOST_EVALUATED
from supertopic.report.evaluate import evaluate
from supertopic.report.explain import Explanation, explain_document
from supertopic.report.summary import coef_draws, describe_covariates, effects, missed_words, voice_sentences
from supertopic.report.topics import exclusivity, top_words, topic_labels, topic_name
from supertopic.report.words import suggest_names

MOST_DOCUMENTS, MOST_LETTERS = 120, 2500  # in the explorer, and of each
MOST_WORDS = 150  # of a document, whose contributions are listed
TYPICAL = 3  # documents of a topic
LEAST_WORDS = 9  # of a typical document


class Page(str):
    """A page of HTML, shown in a notebook as a link: it is too long to be printed."""

    path: Path | None

    def __new__(cls, html: str, path: str | os.PathLike[str] | None = None) -> "Page":
        page = super().__new__(cls, html)
        page.path = None if path is None else Path(path)
        return page

    def __repr__(self) -> str:
        where = f"in {self.path}" if self.path else "which report(..., path=...) writes to a file"
        return f"<a page of {len(self) / 1000:,.0f} kB, {where}>"

    def _repr_html_(self) -> str:
        if self.path is None:
            return escape(repr(self))
        return f"<a href='{escape(self.path.as_posix())}' target='_blank'>{escape(str(self.path))}</a>"


def make_page(
    documents: NewDocuments, texts: list[str], truth: np.ndarray | None, names: np.ndarray, title: str, model: str,
    test: bool = False, rival: dict[str, Any] | None = None, rows: Sequence[Any] | None = None,
) -> str:  # fmt: skip
    """The page of a posterior and of some documents.

    Parameters
    ----------
    documents : NewDocuments
        Documents to evaluate and to explain.
    texts : list of str
        Their texts.
    truth : ndarray, optional
        Their responses, as from `Response.truth`.
    names : ndarray of shape (n_words,)
        The vocabulary.
    title, model : str
        The page's heading, and the name of the model.
    test : bool
        Whether these are test documents, which the model has not learned from.
    rival : dict, optional
        Figures of another model on the same documents, {"name": ..., "accuracy": ..., "log_loss": ...}.
    rows : sequence, optional
        What each document is called, by default its number.
    """
    from jinja2 import Environment, PackageLoader

    if rows is not None and len(rows) != len(texts):
        raise ValueError(f"rows has {len(rows):,} names, but there are {len(texts):,} texts.")
    posterior = documents.posterior
    data = {
        "title": title,
        "columns": posterior.response.column_names,
        "facts": facts(posterior, model, len(texts)),
        "traces": [row[~np.isnan(row)].tolist() for row in posterior.traces.log_joint],
        "iterations": posterior.traces.iterations.tolist(),
        "burn_in": posterior.traces.burn_in.tolist(),
        "diagnosis": diagnosis(posterior),
        "topics": describe(documents, texts, names),
        "covariates": describe_covariates(posterior),
        "missed": missed_words(posterior, names, 12) if posterior.words else [],
        "evaluation": None if truth is None else evaluate(documents, truth, test, rival),
        "documents": explain_some(documents, texts, truth, names, range(len(texts)) if rows is None else rows),
        "numbers": posterior.response.labels is None and not posterior.response.has_probabilities,
        "effect_on": posterior.response.effect_on,
    }
    environment = Environment(loader=PackageLoader("supertopic.report"), autoescape=True, trim_blocks=True)
    environment.filters["signed"] = lambda x: f"{x:+.2f}"
    # inside <script> only "<" could end it, and no JSON needs one
    packed = json.dumps(data, allow_nan=False, default=float).replace("<", "\\u003c")
    return environment.get_template("page.html").render(**data, packed=packed, plots=Plots(data))


def facts(posterior: Posterior, model: str, n_docs: int) -> dict[str, str]:
    """What was fitted, in words."""
    response, held_out = posterior.response, posterior.held_out
    learned = f"{posterior.n_words:,} words"
    if posterior.doc_topic is not None:
        learned = f"{len(posterior.doc_topic):,} documents, {learned}"
    if posterior.words:
        learned += f"; {len(posterior.words.dictionary.word):,} words and pairs of words have direct weights"
    found = {
        "Model": f"{model}, {posterior.n_topics} topics, c = {response.c:g}",
        "Response": ", ".join(map(str, response.column_names if response.labels is None else response.labels)),
        "Learned from": learned,
        "Sampler": f"{posterior.sampler}, {posterior.n_chains} chains of {posterior.n_draws} draws; burn-in "
        f"{describe_burn_in(posterior.traces)}",
        "Seed": str(posterior.seed),
        "This page": f"{n_docs:,} documents",
    }
    pseudo = float(np.mean([part.pseudo_tokens.sum(axis=1).mean() for part in posterior.topics]))
    if pseudo > 0:
        names = ", ".join(dict.fromkeys(posterior.topic_names.values()))
        found["Prior"] = f"{pseudo:,.0f} pseudo-counts in each chain" + f"; named topics: {names}" * bool(names)
    if posterior.n_batches > 1:
        found["Batches"] = f"{posterior.n_batches}; traces and documents are those of the last one"
    if held_out.get("documents"):
        found["Weights rest on"] = (
            f"{held_out.get('cross_fitted', held_out['documents']):,} documents, with topics that have not seen their "
            "responses"
        )
        found["Loss"] = (
            f"{held_out['loss']:.4g} on {held_out['documents']:,} documents that no topic has seen; that of the base "
            f"rate is {held_out['base_loss']:.4g} (difference ± {held_out['se']:.2g})"
        )
    sentences = voice_sentences(posterior)
    if sentences:
        found["What predicts held-out documents"] = "; ".join(sentences)
    return found


def describe_burn_in(traces: Traces) -> str:
    """The iterations before the first draw, and whether the chains had settled by then."""
    low, high = int(traces.burn_in.min()), int(traces.burn_in.max())
    length = f"{low} iterations" if low == high else f"{low} to {high} iterations"
    return f"{length}, within which {traces.settled.sum()} of {len(traces.settled)} chains were seen to settle"


def diagnosis(posterior: Posterior) -> dict[str, Any]:
    """R-hat and the like, and advice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = diagnose_response(posterior)
    rows = [row[:3] for row in found.rows()]  # losses of held-out documents are among the facts
    return {"rows": [row for row in rows if any(row[1:])], "advice": found.advice}


def describe(documents: NewDocuments, texts: list[str], names: np.ndarray) -> list[dict[str, Any]]:
    """The topics in their own order, with all weights, and typical documents."""
    posterior = documents.posterior
    draws, chains = coef_draws(posterior), posterior.consensus.n_having
    words, likely = top_words(posterior, names, 12), top_words(posterior, names, 12, "probability")
    shares, exclusive = posterior.mean_shares, exclusivity(posterior)
    coef, effect = draws.mean(axis=0), np.zeros((posterior.n_topics, draws.shape[1]))
    lower, upper = coef, coef
    if len(draws) > 1:
        lower, upper = draw_interval(draws, 0.9)
        effect = posterior.response.column_effects(effects(posterior, 0.1, 0.9)[2])
    inferred = np.zeros((0, posterior.n_topics))
    if len(texts):
        inferred = mean_topic_shares(posterior, documents.tokens, documents.settings)
    lengths, found = np.diff(documents.tokens.doc_start), []
    order = np.argsort(-inferred * (lengths > LEAST_WORDS)[:, None], axis=0, kind="stable")[:TYPICAL].T  # (K, n)
    labels = suggest_names(words, [[texts[i] for i in own] for own in order])
    for k, own in enumerate(words):
        found.append({
            "topic": k, "name": topic_name(posterior, k) or labels[k], "words": own, "likely": likely[k],
            "share": float(shares[k]), "exclusivity": float(exclusive[k]), "chains": int(chains[k]),
            "weights": coef[:, k].tolist(), "lower": lower[:, k].tolist(), "upper": upper[:, k].tolist(),
            "effect": effect[k].tolist(),
            "typical": [[short(texts[i], 300), float(inferred[i, k])] for i in order[k]],
        })  # fmt: skip
    return found


def short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def row_name(row: Any) -> int | str:
    """What a document is called, as JSON knows it."""
    return int(row) if isinstance(row, Integral) else str(row)


def explain_some(
    documents: NewDocuments, texts: list[str], truth: np.ndarray | None, names: np.ndarray, rows: Sequence[Any]
) -> list[dict[str, Any]]:
    """Some documents with what each of their words adds to the prediction: the most surprising ones, then others."""
    rng, chosen = np.random.default_rng(0), np.zeros(0, int)
    if truth is not None and documents.posterior.response.kind != "labels":
        known = np.flatnonzero(~np.isnan(truth).any(axis=1))
        some = rng.permutation(known)[:MOST_EVALUATED]
        if len(some):
            surprise = documents.part(some).surprise(truth[some])
            chosen = some[np.argsort(-surprise, kind="stable")[: MOST_DOCUMENTS // 3]]
    rest = np.setdiff1d(rng.permutation(len(texts))[:MOST_DOCUMENTS], chosen, assume_unique=True)
    found, labels = [], topic_labels(documents.posterior, names)
    for place, i in enumerate([*chosen, *rest][:MOST_DOCUMENTS]):
        explained = explain_document(documents.part(np.array([i])), names, labels, 0.9)
        column = explained.column
        of_topics = explained.topics[:, column]
        found.append({
            "number": row_name(rows[i]), "text": short(texts[i], MOST_LETTERS), "surprising": place < len(chosen),
            "true": None if truth is None else documents.posterior.response.as_text(truth[i]),
            "column": str(explained.columns[column]),
            "predicted": [[str(name), float(value), float(a), float(b)] for name, value, a, b in sorted(
                zip(explained.mean_names, explained.mean, *explained.mean_interval, strict=True),
                key=lambda row: -row[1])[:3]],
            **word_parts(explained, column),
            "topics": [[explained.topic_labels[k], round(float(of_topics[k]), 4)] for k in np.argsort(
                -np.abs(of_topics))[:4].tolist() if explained.topic_shares[k] > 0],
            "constant": float(explained.constant[column]), "covariates": float(explained.covariates[column]),
            "beside": [[name, float(added[column])] for name, added in explained.others.items()
                       if name != Intercept.name],
            "omega": float(explained.omega[column]),
        })  # fmt: skip
    return found


def word_parts(explained: Explanation, column: int) -> dict[str, Any]:
    """What the words of a document add, the largest ones one by one: there are many pairs of words."""
    through, direct, total = (part[:, column] for part in (explained.through_topics, explained.direct, explained.total))
    order = np.argsort(-np.abs(total), kind="stable")
    shown, rest = np.sort(order[:MOST_WORDS]), order[MOST_WORDS:]
    words = [[explained.words[i], round(float(through[i]), 6), round(float(direct[i]), 6)] for i in shown]
    return {"words": words, "rest": [len(rest), float(total[rest].sum())]}


class Plots:
    """Numbers as places in a picture."""

    def __init__(self, data: dict[str, Any]):
        self.data = data
        ends = [abs(x) for topic in data["topics"] for side in ("lower", "upper") for x in topic[side]]
        self.most = max([*ends, 1e-9])

    def across(self, weight: float) -> float:
        """A weight as a place from 0 to 100."""
        return round(50 + 50 * max(-1.0, min(1.0, weight / self.most)), 2)

    def trace(self, chain: int, width: int, height: int) -> str:
        """The log joint of a chain as points of a line."""
        values, x = self.data["traces"], self.data["iterations"]
        least = min(self.data["burn_in"]) // 3  # not the start
        late = [v for row in values for i, v in zip(x, row, strict=False) if i >= least] or values[chain]
        if not late:
            return ""
        low, high = min(late), max(late)
        places = []
        for i, value in zip(x, values[chain], strict=False):
            part = (value - low) / (high - low) if high > low else 0.5
            places.append(f"{width * i / max(x[-1], 1):.1f},{height * (1 - max(part, 0.0)):.1f}")
        return " ".join(places)

    def end(self, chain: int, width: int) -> float:
        """The place where the burn-in of a chain ends."""
        return round(width * self.data["burn_in"][chain] / max(self.data["iterations"][-1:] or [1]), 1)

    def heat(self, weight: float) -> str:
        """The colour of a weight."""
        part = min(abs(weight) / self.most, 1.0) ** 0.7
        return f"color-mix(in srgb, var(--{'towards' if weight > 0 else 'away'}) {100 * part:.0f}%, transparent)"
