"""Texts as counts, as scikit-learn's CountVectorizer makes them, from the parameters in a model file."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

PLAIN = ("input", "encoding", "decode_error", "max_df", "min_df", "max_features", "dtype", "vocabulary")  # of a fit
READ = ("strip_accents", "lowercase", "preprocessor", "tokenizer", "stop_words", "token_pattern", "ngram_range",
        "analyzer", "binary")  # fmt: skip
KNOWN_PATTERNS = (r"(?u)\b\w\w+\b", r"(?u)\b(?=\w*[^\W\d_])\w\w+\b", r"(?u)\b\w+\b|[!?]", r"(?u)\b\w+\b",
                  r"(?u)\b[a-z]{3,}\b", r"\w+", r"\S+", ".")  # fmt: skip


def refuse(name: str, value: Any) -> None:
    raise ValueError(
        f"The model's vectorizer has {name}={str(value)[:80]!r}, which the light predictor does not support. Use "
        f"supertopic.load."
    )


def of_file(value: Any) -> Any:
    """A parameter of a file: sets, tuples and arrays are wrapped there."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


class WordCounter:
    """A fitted vectorizer."""

    def __init__(self, parameters: dict[str, Any], words: Sequence[str]):
        given = {name: of_file(value) for name, value in parameters.items()}
        strange = [name for name in given if name not in (*PLAIN, *READ)]
        if strange:
            refuse(strange[0], given[strange[0]])
        pattern, stop_words = given["token_pattern"], given["stop_words"]
        if given["analyzer"] != "word" or given["tokenizer"] is not None or given["preprocessor"] is not None:
            refuse("analyzer", given["analyzer"])
        if pattern not in KNOWN_PATTERNS:  # another one might backtrack for ever, which is tried elsewhere
            refuse("token_pattern", pattern)
        if stop_words == "english":
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # the list is scikit-learn's

            stop_words = ENGLISH_STOP_WORDS
        self.stop_words, self.pattern = frozenset(stop_words or ()), re.compile(pattern)
        self.lowercase, self.strip = bool(given["lowercase"]), strippers()[given["strip_accents"]]
        self.shortest, self.longest = map(int, given["ngram_range"])
        self.binary, self.places = bool(given["binary"]), {word: i for i, word in enumerate(words)}

    def words(self, text: str) -> list[str]:
        """The words of a text, and runs of them."""
        text = self.strip(text.lower() if self.lowercase else text)
        tokens = [token for token in self.pattern.findall(text) if token not in self.stop_words]
        found = list(tokens) if self.shortest == 1 else []
        for n in range(max(self.shortest, 2), self.longest + 1):
            found += [" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        return found

    def counts(self, texts: Sequence[str]) -> csr_array:
        """(n_docs, n_words)."""
        places, values, ends = list[int](), list[int](), [0]
        for text in texts:
            own = Counter(self.places[word] for word in self.words(text) if word in self.places)
            for place in sorted(own):
                places.append(place)
                values.append(1 if self.binary else own[place])
            ends.append(len(places))
        shape = len(texts), len(self.places)
        return csr_array(
            (np.array(values, np.int64), np.array(places, np.int64), np.array(ends, np.int64)), shape=shape
        )


def strippers() -> dict[str | None, Callable[[str], str]]:
    """How accents are removed."""

    def unicode(text: str) -> str:
        if text.isascii():
            return text
        normal = unicodedata.normalize("NFKD", text)
        return "".join(letter for letter in normal if not unicodedata.combining(letter))

    def ascii_only(text: str) -> str:
        return unicodedata.normalize("NFKD", text).encode("ASCII", "ignore").decode("ASCII")

    return {None: lambda text: text, "unicode": unicode, "ascii": ascii_only}
