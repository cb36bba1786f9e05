"""Methods of all estimators for a paper: its table, its methods section, its references.

They are functions that `TopicModel` takes as its methods.
"""

from typing import Any

from numpy.typing import ArrayLike

from supertopic.report import methods, tables
from supertopic.report.card import model_card
from supertopic.report.tables import SummaryTable
from supertopic.report.topics import vocabulary_of


def summary_table(
    self: Any, points: float = 0.1, level: float = 0.9, n_words: int = 5, min_chains: int = 1, *,
    feature_names: ArrayLike | None = None,
) -> SummaryTable:  # fmt: skip
    """A table for a paper: topics with their effects, covariates, and how good the fit is.

    Parameters
    ----------
    points : float, default=0.1
        How much more of a topic the effects are for; 0.1 is ten percentage points, in place of the usual mixture.
    level : float, default=0.9
        The posterior probability inside the intervals.
    n_words : int, default=5
        The number of top words of each topic.
    min_chains : int, default=1
        Leave out topics that fewer chains have.
    feature_names : array-like of str, optional
        The vocabulary, as for `top_words`.

    Returns
    -------
    SummaryTable
        `print` shows it; `frame()`, `to_latex()`, `to_markdown()` and `to_html()` give it in other forms. Effects of
        classes and labels are percentage points of the probability, those of `MedLDAClassifier` log-odds, those of
        ratings and counts in the units of y. Of two classes the second one is shown; several have a block each.
    """
    posterior = self._fitted()
    names = vocabulary_of(posterior, feature_names)
    return tables.summary_table(posterior, names, points, level, n_words, min_chains)


def methods_text(self: Any) -> str:
    """A paragraph for the methods section of a paper, with the numbers of this fit, and its references.

    It describes which model was fitted and how, on which documents the reported weights are estimated, and how well
    held-out documents are predicted. Edit it: it cannot say where the documents come from. The version is that of the
    installed package.
    """
    return methods.methods_text(self._fitted(), self.get_params(deep=False))


def bibtex(self: Any) -> str:
    """The references of `methods_text` as entries of BibTeX."""
    return methods.bibtex(self._fitted())


def card(self: Any, title: str = "Model card", *, feature_names: ArrayLike | None = None) -> str:
    """A model card in Markdown: what the model is, how good it is, its topics, its limits, and how it was made.

    What only people know, such as the purpose of the model, is a question in italics. Answer it before you share the
    card.

    Parameters
    ----------
    title : str, default="Model card"
        The heading.
    feature_names : array-like of str, optional
        The vocabulary, as for `top_words`.
    """
    posterior = self._fitted()
    names = vocabulary_of(posterior, feature_names)
    return model_card(posterior, type(self).__name__, self.get_params(deep=False), names, title)
