"""A page for a colleague: what the model finds, how good it is, and why a document gets its prediction.

The page is one file that loads nothing from another host. Its data are in it as JSON, from which it is drawn and its
tables are downloaded. Documents are sampled, so that it stays small.
"""

import itertools
import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from supertopic.inference.predict import NewDocuments, mean_topic_shares
from supertopic.model.posterior import Posterior
from supertopic.model.responses.classes import ClassResponse
from supertopic.model.responses.numbers import NumberResponse
from supertopic.report.page_compare import compare
from supertopic.report.page_documents import Shown, choose, describe_documents, first_document, word_facts
from supertopic.report.page_evaluation import check_rival, evaluate_page
from supertopic.report.page_groups import describe_groups, read_by
from supertopic.report.page_headline import headline
from supertopic.report.page_made import diagnosis, facts, history, traces
from supertopic.report.page_numbers import few, quoted
from supertopic.report.page_topics import describe_targets, describe_topics
from supertopic.report.summary import describe_covariates, missed_words, targets_of
from supertopic.report.topics import topic_labels, topic_word

MOST_DOCUMENTS = 5000  # that are evaluated
MOST_FACTS = 4000  # words that have topics and weights in the box of words


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


class Other(NamedTuple):
    """Another model for the same documents."""

    documents: NewDocuments
    names: np.ndarray  # (n_words,): its vocabulary
    title: str


def make_page(
    documents: NewDocuments, texts: list[str], truth: np.ndarray | None, names: np.ndarray, title: str, model: str, *,
    test: bool | None = None, rival: dict[str, Any] | None = None, by: Any = None, what: str = "", methods: str = "",
    other: Other | None = None, rows: Sequence[Any] | None = None,
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
    test : bool, optional
        True for test documents, which the model has not learned from, False for those of the fit.
    rival : dict, optional
        Figures of another model on the same documents; see `report` of the estimators.
    by : array, Series, DataFrame or dict, optional
        Groups, numbers or dates of the documents.
    what : str
        What the response is called.
    methods : str
        A paragraph for a methods section.
    other : Other, optional
        A model that is shown beside this one.
    rows : sequence, optional
        What each document is called, by default its number.
    """
    posterior, by = documents.posterior, read_by(by, len(texts))
    rival = check_rival(rival, len(texts), len(posterior.response.column_names))
    shown = show(documents, texts, truth)
    targets = targets_of(posterior)
    what = what or default_name(posterior.response)
    lengths = np.diff(shown.documents.tokens.doc_start)
    topics = describe_topics(posterior, targets, names, shown, rows, lengths)
    place = {int(row): i for i, row in enumerate(shown.rows)}
    chosen = choose(shown, [place[row] for row in typical_rows(topics)])
    evaluation = evaluate_page(shown, test, rival)
    if evaluation is not None:
        evaluation["of"] = int(shown._replace(truth=truth, rows=np.arange(len(texts))).known.sum())
    # one number without a name; a class may be 0
    numbered = posterior.response.labels is None and targets.names == ["0"]
    target_names = [what] if numbered else targets.names
    if posterior.supervised and posterior.response.kind == "grade":
        target_names = [f"higher {what}"]
    words: dict[str, int] = {}
    explained = describe_documents(shown, chosen, names, topic_labels(posterior, names), words)
    graded = posterior.supervised and posterior.response.kind == "grade"  # its column is called "higher"
    call_documents(explained, rows, what if graded or numbered else None)
    for topic in topics:
        for word in topic["words"]:
            words.setdefault(word[0], len(words))
    beside = None
    if other is not None:
        some = other._replace(documents=other.documents.part(shown.rows))
        beside = compare(shown, targets, names, *some)
        for document, i in zip(explained, chosen.tolist(), strict=True):
            if "said" in beside:
                document["other"] = [beside["said"][i], beside["differ"][i]]
        beside = {name: value for name, value in beside.items() if name not in ("said", "differ")}
    known = list(words)[:MOST_FACTS]
    data = {
        "title": title, "what": what, "kind": posterior.response.kind if posterior.supervised else "none",
        "targets": describe_targets(targets, target_names), "chains": posterior.n_chains, "topics": topics,
        "correlation": correlations(shown.shares), "evaluation": evaluation, "documents": explained,
        "words": list(words), "facts": word_facts(posterior, topic_word(posterior), names, known),
        "classes": list(map(str, posterior.response.labels or [])) if posterior.supervised else [],
        "groups": describe_groups(shown, by, what), "other": beside, "traces": traces(posterior),
        "start": start(shown, targets), "probabilities": has_probabilities(posterior),
        "sampled": [len(explained), len(texts)], "first": first_document(shown),
    }  # fmt: skip
    made = {
        "facts": facts(posterior, model, len(texts), len(shown.rows), what if numbered else ""),
        "diagnosis": diagnosis(posterior), "history": history(posterior),
        "covariates": describe_covariates(posterior) if posterior.supervised else [], "methods": methods,
        "missed": missed(posterior, names, what, numbered),
        "evaluation": evaluation, "has_groups": bool(by), "called": quoted(what, posterior.response.kind),
        "relation": posterior.held_out.get("relation", True),
        "headline": headline(posterior, topics, target_names, evaluation, what, len(texts)),
    }  # fmt: skip
    return render(data, made)


def call_documents(explained: list[dict[str, Any]], rows: Sequence[Any] | None, what: str | None) -> None:
    """Names of documents, where they have some; and of what is explained, where it has no name of its own."""
    for document in explained:
        if rows is not None:
            document["id"] = str(rows[document["row"]])
        for view in document.get("views", []) if what is not None else []:
            view["of"] = what


def render(data: dict[str, Any], made: dict[str, Any]) -> str:
    """The page as HTML."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    loader = PackageLoader("supertopic.report")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["signed"] = lambda x: f"{x:+.2f}"
    environment.filters["breakable"] = lambda text: Markup(escape(text).replace(".", ".<wbr>"))  # long names have dots
    # inside <script> only "<" could end it, and no JSON needs one
    packed = json.dumps(data, allow_nan=False, default=float, separators=(",", ":")).replace("<", "\\u003c")
    return environment.get_template("page.html").render(**(data | made), packed=packed)


def show(documents: NewDocuments, texts: list[str], truth: np.ndarray | None) -> Shown:
    """The documents of the page with their predictions; a sample, evenly spread, if they are many."""
    rows = np.arange(len(texts))[:: max(1, -(-len(texts) // MOST_DOCUMENTS))]
    if len(rows) < len(texts):
        documents, texts = documents.part(rows), [texts[i] for i in rows]
        truth = None if truth is None else truth[rows]
    posterior, n = documents.posterior, len(rows)
    shares = np.zeros((0, posterior.n_topics))
    if n:
        shares = mean_topic_shares(posterior, documents.tokens, documents.settings)
    expected, doubt, lower, upper = np.zeros((n, 0)), np.zeros(n), np.zeros((n, 0)), np.zeros((n, 0))
    if posterior.supervised and n:
        expected, doubt = documents.expected(), documents.doubt()
        if isinstance(posterior.response, NumberResponse):
            lower, upper = documents.interval(0.9)
    return Shown(documents, rows, texts, truth, shares, expected, doubt, lower, upper)


def missed(posterior: Posterior, names: np.ndarray, what: str, numbered: bool) -> list[dict[str, Any]]:
    """The words with the largest direct weights; the column of a number or a grade is called as the response is."""
    rows = missed_words(posterior, names, 12) if posterior.words else []
    called = {"0": what} if numbered else {}
    if posterior.response.kind == "grade":
        called = {"higher": f"higher {what}"}
    return [row | {"column": called.get(row["column"], row["column"])} for row in rows]


def default_name(response: Any) -> str:
    """What a response is called if nobody says it."""
    names = [name for name in getattr(response, "names", ()) if not str(name).isdigit()]
    return str(names[0]) if len(names) == 1 else str(response.kind)


def correlations(shares: np.ndarray) -> Any:
    """Correlations of the shares of topics, the lower triangle row by row; None with few documents."""
    if len(shares) < 3:
        return None
    with np.errstate(all="ignore"):
        found = np.nan_to_num(np.atleast_2d(np.corrcoef(shares.T)))
    return [few(np.round(row[:k], 2), 2) for k, row in enumerate(found)]


def typical_rows(topics: list[dict[str, Any]]) -> list[int]:
    """The documents that are typical of topics: the first one of each topic, then the second ones."""
    ranks = itertools.zip_longest(*(topic["typical"] for topic in topics))
    return [own[0] for rank in ranks for own in rank if own is not None]


def has_probabilities(posterior: Posterior) -> bool:
    """Whether what is predicted are probabilities of classes."""
    response = posterior.response
    return posterior.supervised and isinstance(response, ClassResponse) and response.has_probabilities


def start(shown: Shown, targets: Any) -> int:
    """The target that the page shows first: the class or label with most documents, or else the likeliest one."""
    if len(targets.names) < 2 or shown.response.labels is None:
        return 0
    if shown.truth is None or not shown.known.any():
        return int(targets.before.argmax())
    return int((shown.truth == 1).sum(axis=0).argmax())
