"""A model card: one Markdown file that says what a model is, how good it is, and what it should not be used for.

What the posterior knows is filled in. What only people know is a question in italics, for them to answer.
"""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from supertopic.model.posterior import Posterior
from supertopic.report.diagnose import diagnose_response
from supertopic.report.formats import MARKDOWN, plain
from supertopic.report.methods import bibtex, methods_text
from supertopic.report.summary import contribution_sentences
from supertopic.report.tables import measures, summary_table


def model_card(posterior: Posterior, kind: str, parameters: Mapping[str, Any], names: np.ndarray, title: str) -> str:
    """The card of a model in Markdown; `kind` is the name of its estimator, and names (V,) are its words."""
    response = posterior.response
    answers = response.labels or (
        [name for name in response.column_names if name != "0"] if posterior.supervised else []
    )
    what = f"It predicts a {response.kind} from a text." if posterior.supervised else "It finds topics in texts."
    facts = [f"- **{name}**: {marked(value)}" for name, value in measures(posterior)]
    sections = {
        "What it is": [
            f"A supervised topic model (`{kind}` of supertopic {version('supertopic')}). {what}",
            f"Answers: {', '.join(map(marked, answers))}." if answers else "",
        ],
        "Use": ["*What is it for, and who uses it? For what should it not be used?*"],
        "Documents": [
            "*Where do the documents come from, of which time and language are they, and who labelled them?*",
            f"The vocabulary of the topics has {posterior.n_words:,} words. The file of the model holds words and no "
            "documents.",
        ],
        "How good it is": ["\n".join(facts), *used_terms(posterior), *advice(posterior)],
        "Topics": [replace(summary_table(posterior, names), facts=()).to_markdown().rstrip()],
        "Limits": ["\n".join(f"- {limit}" for limit in limits(posterior))],
        "How it was made": [marked_paragraphs(methods_text(posterior, parameters))],
        "References": [f"```bibtex\n{bibtex(posterior)}```"],
    }
    parts = [f"# {marked(title)}"]
    for heading, paragraphs in sections.items():
        parts += [f"## {heading}", *filter(None, paragraphs)]
    return "\n\n".join(parts) + "\n"


def limits(posterior: Posterior) -> list[str]:
    """What the model cannot promise."""
    found = ["*Which errors would do harm, and to whom? Could some groups of people be treated worse than others?*"]
    changed = "`supertopic drift` shows whether documents have changed."
    if not posterior.supervised:
        return [f"Its topics are those of the documents of the fit. {changed}", *found]
    return [
        f"Its predictions are right on average for documents that are like those of the fit. {changed}",
        "Weights of topics describe how texts and responses are related. They are not causal effects.",
        *found,
    ]


def used_terms(posterior: Posterior) -> list[str]:
    """How much topics, words and other terms contribute to predictions, as a list."""
    sentences = contribution_sentences(posterior)
    return (
        ["Contributions to predictions of held-out documents:\n\n" + "\n".join(f"- {marked(s)}" for s in sentences)]
        if sentences
        else []
    )


def advice(posterior: Posterior) -> list[str]:
    """What `diagnose` says of the fit, as a list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return listed("What `diagnose` says of the fit:", diagnose_response(posterior).advice)


def listed(head: str, lines: list[str]) -> list[str]:
    """A paragraph and a list below it, if there is anything to list."""
    return [head, "\n".join(f"- {marked(line)}" for line in lines)] if lines else []


def marked(text: object) -> str:
    """A text as one line in which no character is markup."""
    return plain(text, most=None).translate(MARKDOWN)


def marked_paragraphs(text: str) -> str:
    """The paragraph of `methods_text`, without its list of references, which come below as BibTeX."""
    return marked(text.partition("\n\nReferences\n")[0])
