"""Parameters of methods with one-sentence docstrings: described once here, and added to each of them on the site."""

import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

SHARED = {
    "X": ("sequence of str, or array-like or sparse matrix of shape (n_docs, n_words)", "Texts, or word counts."),
    "y": ("array-like of shape (n_docs,) or (n_docs, n_columns)", "The responses of these documents."),
    "sample_weight": ("array-like of shape (n_docs,), optional", "The weight of each document."),
    "covariates": (
        "data frame, or array-like of shape (n_docs, n_covariates), optional",
        "The covariates of these documents; needed if the model was fitted with some. Columns of a frame are found by "
        "name, and others are ignored.",
    ),
    "event": (
        "array-like of shape (n_docs,), optional",
        "1 or True where the event came, 0 or False where the document is censored. By default all events came, or y "
        "says so in a second column.",
    ),
    "exposure": (
        "array-like of shape (n_docs,), optional",
        "The exposure of each document; needed if the model was fitted with one.",
    ),
    "features": (
        "array-like or sparse matrix of shape (n_docs, n_features), optional",
        "Further numbers of these documents; needed if the model was fitted with some.",
    ),
    "groups": (
        "array-like of shape (n_docs,), optional",
        "The group of each document. Documents of unknown groups, or all without it, get the population's.",
    ),
    "level": ("float, default=0.9", "The probability inside the interval."),
    "values": ("ndarray of shape (..., n_topics)", "Numbers of each topic."),
    "min_chains": ("int", "Leave out topics that fewer chains have."),
    "feature_names": (
        "array-like of str, optional",
        "The vocabulary, such as `vectorizer.get_feature_names_out()`; by default the column names seen in `fit`.",
    ),
    "n": ("int", "How many to give."),
    "points": ("float, default=0.1", "How much more of the topic; 0.1 is ten points of a hundred."),
    "names": ("dict", "Names by the number of the topic."),
    "topic": ("int", "Its number, as in `coef_` and `top_words`."),
    "random_state": ("int, default=0", "Which half of each document is completed."),
    "chains": ("sequence of int, optional", "The chains to average over; all by default."),
    "return_std": ("bool, default=False", "Whether to give the standard deviation of a new rating, too."),
    "beside": ("optional", "`covariates`, `exposure`, `features` and `groups`, as for `predict`."),
    "model": ("estimator", "A fitted one."),
    "ax": ("matplotlib axes, optional", "Where to draw; new ones by default."),
    "figsize": ("'column', 'page' or (float, float), optional", "85 mm or 178 mm wide, or width and height in inches."),
    "title": ("str", "What stands above the plot."),
    "unit": ("str", "What the numbers are in."),
    "labels": ("list of str", "What stands beside each row."),
    "EffectDisplay.n_topics": ("int, optional", "How many topics: those with the largest effects; by default 30."),
    "corpus": ("list of ndarray, optional", "How often the corpus uses the same words."),
    "ExplanationDisplay.column": ("int or str, optional", "A class, label or response; by default what is predicted."),
    "ExplanationDisplay.n_words": ("int", "How many words have a row of their own."),
    "explanation": ("Explanation", "What `model.explain` has returned."),
    "through_topics": ("ndarray", "What each row adds through topics."),
    "direct": ("ndarray", "What each row adds beside topics."),
    "ExplanationDisplay.name": ("str", "The class, label or response."),
    "change": ("ndarray", "The effect of each topic."),
    "answer": ("str", "What the effects are on."),
    "HeatmapDisplay.values": ("{'effect', 'weight'}, or ndarray", "What is shown: for `HeatmapDisplay(...)` numbers."),
    "HeatmapDisplay.columns": ("list of str", "The classes."),
    "sure": ("ndarray of bool", "Which cells are coloured."),
    "counts": ("ndarray", "The number of documents, a row for each true class."),
    "y_true": ("array-like", "The true classes."),
    "y_pred": ("array-like", "The predicted classes."),
    "ConfusionDisplay.labels": ("array-like, optional", "The classes, in their order; by default those in the data."),
    "ConfusionDisplay.names": ("list of str, optional", "The names of the classes."),
    "label": ("str or int, optional", "One of several labels."),
    "overlap": ("ndarray of shape (n_topics, n_topics)", "How far the words of two topics overlap, from 0 to 1."),
    "effects": ("TopicEffects", "What `model.topic_effects` has returned."),
    "variable": ("str, optional", "The variable; by default the first one."),
    "n_draws": ("int, default=500", "Draws of the shares, as for `topic_effects`."),
    "PrevalenceDisplay.by": ("data frame or array-like", "What is known of each document, as for `topic_effects`."),
    "PrevalenceDisplay.topics": ("sequence of int, optional", "By default the six topics that change most."),
    "PrevalenceDisplay.values": ("ndarray", "The numbers or groups."),
    "PrevalenceDisplay.name": ("str", "The name of the variable."),
    "PrevalenceDisplay.random_state": ("int, default=0", "The seed of the draws."),
    "PrevalenceDisplay.mean": ("ndarray of shape (n_topics, n_values)", "The expected shares."),
    "more": ("optional", "Further arguments of `topic_effects`, such as `formula` and `groups`."),
    "column": ("int or str, default=0", "The number or the name of a class, label or response."),
    "n_words": ("int", "How many words stand for a topic."),
    "by": ("{'frex', 'probability', 'lift'}", "What makes a word a top word, as for `top_words`."),
    "obj": ("estimator or Pipeline", "A fitted estimator, or a fitted Pipeline of a CountVectorizer and one."),
    "path": ("path", "The file."),
    "CoefficientDisplay.topics": ("ndarray", "The topics' numbers, in the order of their weights."),
    "CoefficientDisplay.names": ("list of str", "What stands beside each."),
    "mean": ("ndarray", "The weights."),
    "lower": ("ndarray", "The lower ends of the intervals."),
    "upper": ("ndarray", "The upper ends of the intervals."),
    "topics": ("sequence of int, optional", "The topics' numbers; the six largest by default."),
    "words": ("list of lists of str", "The top words of each topic."),
    "probabilities": ("list of ndarray", "Their probabilities."),
    "titles": ("list of str", "What stands above each topic."),
    "iterations": ("ndarray", "When the log joint was taken."),
    "log_joint": ("ndarray of shape (n_chains, n)", "The log joint of each chain."),
    "burn_in": ("int", "Where draws begin to be kept."),
    "predicted": ("ndarray", "Mean predicted probabilities of tenths of the documents."),
    "observed": ("ndarray", "The observed frequencies in the same tenths."),
    "name": ("str", "The class that is meant."),
    "conformal": ("bool", "Whether held-out documents set the ends, so that the probability holds for any model."),
    "figures": ("dict", "Figures by what they are about, each a dict by their names."),
    "advice": ("list of str", "What follows from them."),
    "most": ("int, optional", "How many to give; all by default."),
    "ChoiceDisplay.columns": ("dict", "The columns of the table."),
    "ChoiceDisplay.chosen": ("int", "The number of topics that is marked."),
    "InteractionDisplay.titles": ("list of str", "What stands above each plot."),
    "part": ("tuple", "One product of columns: the names, and which of them have all levels."),
    "columns": ("list of Column", "The columns that the design reads, in their order."),
    "text": ("str", "The design as JSON."),
    "other": ("Design", "Another one."),
    "frame": ("Frame", "A data frame, as `corpus.frames.read_frame` reads it."),
    "new_levels": ("str", "What is done with unknown levels: 'error' or 'mean'."),
    "full": ("bool", "Whether all levels have a column, the first one included."),
    "open_kinds": ("tuple of str", "The kinds of columns that have a level for nothing."),
    "InteractionDisplay.groups": ("list of str", "The names of the groups."),
    "weight": ("ndarray of shape (n_topics, n_groups)", "The weight of each topic in each group."),
    "Explanation.column": ("int", "The number of the column."),
    "chain": ("int", "The number of the chain."),
    "kind": ("class", "A class of terms; for `register`, one of estimators."),
    "response": ("Response", "The response of the model."),
    "documents": ("Documents", "New documents, such as `inference.predict.NewDocuments`."),
    "document": ("Documents", "The same with a single document."),
    "factor": ("ndarray of shape (n_chains, n_draws, n_columns)", "What each draw of the weights is multiplied by."),
    "centre": ("ndarray of shape (n_chains, n_columns)", "omega of the usual mixture of topics."),
    "tensors": ("dict of ndarray", "The arrays of a file."),
    "shape": ("Shape", "The sizes that the arrays must fit."),
    "n_topics": ("int", "The number of topics of a set."),
    "place": ("ndarray of int", "The new place of each column."),
    "header": ("dict", "The header of a model file."),
    "rows": ("list of Row", "The figures that are compared."),
    "n_docs": ("int", "The number of new documents."),
    "theme": ("list of str", "Words that stand out in the new documents."),
    "Posterior.weights": ("list of ndarray", "Weights of the topics of each set."),
}
SECTIONS = {"Parameters", "Attributes"}
# methods that the library itself calls, or that estimators of one's own override: CONTRIBUTING describes them
INTERNAL = {
    "make_response", "check_parameters", "fit_corpus", "own_library", "Seeds.check", "Seeds.places", "Seeds.means",
    "Seeds.names", "Prior.check", "Formula.check", "Formula.parse", "Formula.has_sides",
    "Batch.from_row", "Drift.with_theme", "Predictor.beside", "Predictor.count", "Predictor.draw", "Predictor.expected",
    "Predictor.feature_rows", "Predictor.has", "Predictor.intercept_part", "Predictor.linear_part", "Predictor.order",
    "Predictor.read_topics", "Predictor.read_vectorizers", "Predictor.rows_of", "Predictor.shares_of",
    "Predictor.topic_counts", "Predictor.topics_part", "Predictor.word_rows",
}  # fmt: skip


def internal(function: Any) -> bool:
    """Whether a method is not part of the reference."""
    name = getattr(function, "__qualname__", "")
    return name in INTERNAL or name.rpartition(".")[2] in INTERNAL


def undescribed(function: Callable) -> list[str]:
    """The parameters of a function or class whose docstring has no list of them."""
    if {line.strip() for line in (inspect.getdoc(function) or "").splitlines()} & SECTIONS:
        return []
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in parameters if name not in ("self", "cls", "args", "kwargs")]


def complete(obj: Any, what: str, lines: list[str]) -> None:
    """Add the list of parameters, in numpydoc's style, to a docstring that has none."""
    if what not in ("class", "method", "function"):
        return
    if isinstance(obj, type) and (issubclass(obj, tuple) or is_dataclass(obj)):
        if "Attributes" in {line.strip() for line in (obj.__doc__ or "").splitlines()}:
            return
        lines += ["", "Attributes", "----------", *fields(obj), ""]
        return
    own, entries = getattr(obj, "__qualname__", "").split(".")[0], []
    for name in undescribed(obj):
        kind, text = SHARED.get(f"{own}.{name}") or SHARED[name]
        entries += [f"{name} : {kind}", f"    {text}"]
    if entries:
        lines += ["", "Parameters", "----------", *entries, ""]


FIELD = re.compile(r"^    (\w+): (?!ClassVar)([^#\n=]+?)(?: = [^#\n]+?)?(?:  # (.*))?$", re.MULTILINE)


def fields(kind: type) -> list[str]:
    """The fields of a named tuple or a dataclass, with the comments beside them."""
    head = re.split(r"\n    (?:def |@)", inspect.getsource(kind))[0]
    return [line for name, type_, comment in FIELD.findall(head) for line in (f"{name} : {type_}", f"    {comment}")]
