"""How a model was made: facts, traces of its chains, advice, and a paragraph for a methods section."""

import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

from supertopic.inference.predict import Settings
from supertopic.model.posterior import Posterior, Traces
from supertopic.report.diagnose import diagnose_response, diagnose_topics
from supertopic.report.history import describe_changes
from supertopic.report.page_numbers import PERCENT, few
from supertopic.report.summary import contribution_sentences

MOST_POINTS = 200  # of a trace


def facts(posterior: Posterior, model: str, n_docs: int, n_evaluated: int, what: str) -> dict[str, str]:
    """What was fitted, in words; `what` is the name of a number if it has none of its own, else nothing."""
    response, held_out = posterior.response, posterior.held_out
    learned = f"{posterior.n_words:,} words"
    if posterior.doc_topic is not None:
        learned = f"{len(posterior.doc_topic):,} documents, {learned}"
    if posterior.words:
        learned += f"; {len(posterior.words.dictionary.word):,} words and pairs of words have direct weights"
    weight = f", c = {response.c:g}" if posterior.supervised else ""
    found = {"Model": f"{model}, {posterior.n_topics} topics{weight}"}
    if posterior.supervised:
        names = response.column_names if response.labels is None else response.labels
        found["Response"] = f"{response.kind}: {what or ', '.join(map(str, names))}"
    found |= {
        "Learned from": learned,
        "Sampler": f"{posterior.sampler}, {posterior.n_chains} chains of {posterior.n_draws} draws; burn-in "
        f"{describe_burn_in(posterior.traces)}",
        "Seed": str(posterior.seed),
        "This page": f"{n_docs:,} documents"
        + (f", of which {n_evaluated:,}, evenly spread, are used" if n_evaluated < n_docs else ""),
        "Version": f"supertopic {version('supertopic')}, numpy {np.__version__}",
    }
    pseudo = float(np.mean([part.pseudo_tokens.sum(axis=1).mean() for part in posterior.topics]))
    if pseudo > 0:
        named = ", ".join(dict.fromkeys(posterior.topic_names.values()))
        found["Prior"] = f"{pseudo:,.0f} pseudo-counts in each chain" + f"; named topics: {named}" * bool(named)
    if posterior.n_batches > 1:
        found["Batches"] = f"{posterior.n_batches}; traces and documents are those of the last one"
    if held_out.get("documents"):
        found["Weights rest on"] = (
            f"{held_out.get('cross_fitted', held_out['documents']):,} documents whose responses did not influence the "
            f"topics"
        )
        found["Loss"] = (
            f"{held_out['loss']:.4g} on {held_out['documents']:,} documents that no topic has seen; that of the base "
            f"rate is {held_out['base_loss']:.4g} (difference ± {held_out['se']:.2g})"
        )
    sentences = contribution_sentences(posterior)
    if sentences and held_out.get("relation", True):
        found["Contributions to predictions of held-out documents"] = "; ".join(sentences).replace("%", PERCENT)
    return found


def describe_burn_in(traces: Traces) -> str:
    """The iterations before the first draw, and whether the chains had settled by then."""
    low, high = int(traces.burn_in.min()), int(traces.burn_in.max())
    length = f"{low} iterations" if low == high else f"{low} to {high} iterations"
    return f"{length}, within which {traces.settled.sum()} of {len(traces.settled)} chains had settled"


def diagnosis(posterior: Posterior) -> dict[str, Any]:
    """R-hat and the like, and advice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = diagnose_response(posterior) if posterior.supervised else diagnose_topics(posterior, None, Settings())
    rows = [row[:3] for row in found.rows()]  # losses of held-out documents are among the facts
    return {"rows": [row for row in rows if any(row[1:])], "advice": found.advice}


def history(posterior: Posterior) -> list[dict[str, str]]:
    """A row for each batch of documents: how well it was predicted before the model learned from it."""
    rows = []
    for entry in posterior.history if posterior.n_batches > 1 else ():
        figures = entry.figures
        row = {"batch": str(entry.batch), "documents": f"{entry.documents:,}", "scored": f"{figures.scored:,}"}
        named = {figures.score_name or "score": figures.score, "mean loss": figures.loss}
        named |= {"of the base rate": figures.base_loss, "unknown words": entry.unknown_words}
        row |= {name: "" if value is None else f"{value:.3f}" for name, value in named.items()}
        rows.append(row | {"changes": " ".join(describe_changes(entry))})
    return rows


def traces(posterior: Posterior) -> dict[str, Any]:
    """The log joint of each chain, at some of the iterations."""
    step = max(1, -(-len(posterior.traces.iterations) // MOST_POINTS))
    rows = [row[::step] for row in posterior.traces.log_joint]
    return {
        "iterations": posterior.traces.iterations[::step].tolist(), "burn_in": posterior.traces.burn_in.tolist(),
        "log_joint": [few(row[~np.isnan(row)], 7) for row in rows],
    }  # fmt: skip
