"""Parameters of estimators and of vectorizers as JSON, and back; what comes from a file may be anything."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.estimators.patterns import check_pattern
from supertopic.model.formula import Formula
from supertopic.model.seeds import Seeds
from supertopic.model.terms import expect

OF_PARTS: dict[str, type[Seeds] | type[Formula]] = {"seeds": Seeds, "formula": Formula}  # parameters with parameters
LONGEST_NGRAM = 100
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def is_word_list(value: Any) -> bool:
    words = value if isinstance(value, list | tuple | set | frozenset | np.ndarray) else ()
    return value is None or value == "english" or (len(words) > 0 and all(isinstance(word, str) for word in words))


def is_range(value: Any) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(n, Integral) for n in value)
    return pair and 1 <= value[0] <= value[1] <= LONGEST_NGRAM


def is_frequency(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 2**62


VECTORIZER: dict[
    str, Callable[[Any], bool]
] = {  # what a file may say of a vectorizer: it reads texts, and runs no code
    "input": lambda value: value == "content",
    "encoding": lambda value: (
        isinstance(value, str) and value.lower().replace("_", "-") in ("utf-8", "utf8", "latin-1")
    ),
    "decode_error": lambda value: value in ("strict", "ignore", "replace"),
    "strip_accents": lambda value: value in (None, "ascii", "unicode"),
    "lowercase": lambda value: isinstance(value, bool),
    "preprocessor": lambda value: value is None,
    "tokenizer": lambda value: value is None,
    "stop_words": is_word_list,
    "token_pattern": lambda value: value is None or isinstance(value, str),
    "ngram_range": is_range,
    "analyzer": lambda value: value in ("word", "char", "char_wb"),
    "max_df": is_frequency,
    "min_df": is_frequency,
    "max_features": lambda value: value is None or (is_frequency(value) and isinstance(value, Integral)),
    "vocabulary": lambda value: value is None,
    "binary": lambda value: isinstance(value, bool),
    "dtype": lambda value: value in TYPES,
}


def write_vectorizer(vectorizer: CountVectorizer) -> dict[str, Any]:
    """The parameters of a vectorizer, as JSON."""
    if type(vectorizer) is not CountVectorizer:
        raise TypeError(f"A model file can keep a CountVectorizer, got a {type(vectorizer).__name__}.")
    parameters = vectorizer.get_params() | {"vocabulary": None}  # the fitted one is stored elsewhere
    parameters["dtype"] = np.dtype(parameters["dtype"]).name
    plain = {name: to_plain(value, name) for name, value in parameters.items()}
    for name, value in parameters.items():
        if not VECTORIZER[name](value):
            raise TypeError(f"A model file cannot keep a CountVectorizer with {name}={value!r}.")
    return plain


def read_vectorizer(plain: dict[str, Any], words: list[str] | None) -> CountVectorizer:
    """A vectorizer from its parameters, fitted if its words are given."""
    parameters = {name: from_plain(value) for name, value in plain.items()}
    for name, value in parameters.items():
        expect(name in VECTORIZER and VECTORIZER[name](value), f"the vectorizer's {name[:40]} = {str(value)[:80]}")
    dtype = np.dtype(parameters.pop("dtype"))
    if parameters.get("token_pattern") is not None:
        check_pattern(parameters["token_pattern"])
    vectorizer = CountVectorizer(dtype=dtype.type, **parameters)
    if words is not None:
        expect(len(set(words)) == len(words) and all(isinstance(word, str) for word in words), "the vocabulary")
        vectorizer.vocabulary_ = {word: i for i, word in enumerate(words)}
        vectorizer.fixed_vocabulary_ = False
        clone(vectorizer).set_params(vocabulary=words).fit([""])  # checks its parameters
    return vectorizer


def to_plain(value: Any, name: str) -> Any:
    """A parameter as JSON; types that JSON does not have are wrapped, what cannot be written is refused."""
    if isinstance(value, np.generic):
        value = value.item()
    if callable(value):
        raise TypeError(
            f"{name}={value!r} is a callable; a model file cannot contain code. Use a parameter that is data."
        )
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # the posterior keeps the seed that was drawn from it
    if isinstance(value, CountVectorizer):
        return {"vectorizer": write_vectorizer(value)}
    for kind, parts in OF_PARTS.items():
        if isinstance(value, parts):
            return {kind: {key: to_plain(item, name) for key, item in value.get_params().items()}}
    if isinstance(value, set | frozenset):
        return {"set": sorted(value)}
    if isinstance(value, tuple):
        return {"tuple": list(value)}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, dict):
        return {"dict": [[key, to_plain(item, name)] for key, item in value.items()]}
    if isinstance(value, list):
        return [to_plain(item, name) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{name}={value!r} cannot be kept in a model file.")


def from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind == "dict":
            return {key: from_plain(item) for key, item in content}
        if kind == "vectorizer":
            return read_vectorizer(content, None)
        if kind in OF_PARTS:
            return OF_PARTS[kind](**{key: from_plain(item) for key, item in content.items()})
        kinds: dict[str, Any] = {"set": frozenset, "tuple": tuple, "array": np.array}
        return kinds[kind](content)
    return [from_plain(item) for item in value] if isinstance(value, list) else value
