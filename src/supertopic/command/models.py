"""The vectorizers and priors that the options ask for, and columns as a fitted model needs them."""

from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from supertopic.command.cells import as_number
from supertopic.command.steps import Table, load, read_numbers
from supertopic.corpus.tables import read_plain
from supertopic.estimators.base import TopicModel
from supertopic.estimators.supervised import Supervised
from supertopic.estimators.texts import ANY_WORD, NOT_IN_TOPICS, TOPIC_WORD
from supertopic.model.formula import Formula
from supertopic.model.priors import Prior
from supertopic.model.responses import NegativeBinomial
from supertopic.model.seeds import Seeds


def make_word_vectorizer(min_df: int, ngrams: int, token_pattern: str) -> CountVectorizer:
    """The vectorizer of words with weights of their own: no stop words, and runs of up to `ngrams` words."""
    pattern = ANY_WORD if token_pattern == TOPIC_WORD else token_pattern
    return CountVectorizer(token_pattern=pattern, ngram_range=(1, ngrams), min_df=min_df)


def make_vectorizer(stop_words: str, min_df: int, max_df: float, ngrams: int, token_pattern: str) -> CountVectorizer:
    """The vectorizer of topics; stop words are "english", "none" or a file of them."""
    words: Any = {"english": NOT_IN_TOPICS, "none": None}.get(stop_words, Path(stop_words))
    if isinstance(words, Path):
        if not words.is_file():
            raise ValueError(
                f"--stop-words is english, none, or a file with a word in each line; there is no file {words}."
            )
        words = sorted(set(read_plain(words).lower().split()))
    parts = {"ngram_range": (1, ngrams), "token_pattern": token_pattern}
    return CountVectorizer(stop_words=words, min_df=min_df, max_df=max_df, **parts)


def read_priors(
    seeds: Path | None, strength: str, prior: Path | None, weights: bool, discount: float
) -> dict[str, Any]:
    """Seeds and another model as options of an estimator."""
    found: dict[str, Any] = {"seeds": read_seeds(seeds, strength)} if seeds else {}
    if prior:
        found["prior"] = Prior(load(prior), weights=weights, discount=discount)
    return found


def read_seeds(path: Path, strength: str) -> Seeds:
    """Seed words from a table, and the class that each topic pulls to, if there is such a column."""
    table = Table(path)
    topics, words = table["topic"], table["word"]
    classes = table["class"] if "class" in table.names else [None] * len(topics)
    seeds: dict[str, list[str]] = {}
    pulls: dict[str, Any] = {}
    for row, (topic, word, label) in enumerate(zip(topics, words, classes, strict=True), 1):
        if topic is None or word is None:
            raise ValueError(f"Row {row} of {path} has no {'topic' if topic is None else 'word'}.")
        seeds.setdefault(str(topic), []).append(str(word))
        if label is not None and pulls.setdefault(str(topic), label) != label:
            raise ValueError(f"In {path} the topic {str(topic)!r} pulls to {pulls[str(topic)]!r} and to {label!r}.")
    if not seeds:
        raise ValueError(f"{path} has no rows: it needs a topic and a word in each.")
    number = as_number(strength)
    return Seeds(seeds, strength=strength if number is None else number, weights=pulls or "auto")


def formula_columns(text: str) -> list[str]:
    """The columns that a formula reads."""
    parsed = Formula(text).parse()
    if parsed.response is not None:
        raise ValueError(f"--label names the response: leave '{parsed.response} ~' out of --formula {text!r}.")
    return parsed.columns


def need_response(model: TopicModel) -> Supervised:
    """The model, if it has a response."""
    if not isinstance(model, Supervised):
        raise ValueError(f"The model is a {type(model).__name__}, which has no response to predict.")
    return model


def read_beside(
    model: TopicModel, path: Path, table: Table, exposure: str | None, covariate: list[str] | None,
    weight: str | None, groups: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Columns for the model of a file; its covariates have their own names or those given."""
    response = model.posterior_.response
    if exposure is not None and response.kind != "count":
        raise ValueError(f"--exposure needs a model of counts, but {path} is a {type(model).__name__}.")
    if exposure is None and isinstance(response, NegativeBinomial) and response.exposed:
        raise ValueError(f"{path} was fitted with an exposure; --exposure names its column here.")
    kinds = covariate_kinds(model)
    names = with_names(kinds, covariate or list(kinds))
    return read_numbers(table.__getitem__, weight, exposure, names, kinds, groups)


def covariate_kinds(model: TopicModel) -> dict[str, str]:
    """The columns that a fitted model reads beside the texts, and the kind of each."""
    term = model.posterior_.covariates
    return {} if term is None else term.columns.kinds


def with_names(kinds: dict[str, str], given: list[str]) -> dict[str, str]:
    """What is given for each covariate of a model, in their order."""
    if len(given) != len(kinds):
        names = ", ".join(kinds) or "none"
        raise ValueError(
            f"--covariate is given {len(given)} times, but the model has {len(kinds)} covariates: {names}."
        )
    return dict(zip(kinds, given, strict=True))
