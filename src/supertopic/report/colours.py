"""A text in pieces, with what each piece adds to the prediction: what a page colours."""

import re
from typing import Any, NamedTuple

import numpy as np

from supertopic.report.explain import Explanation

Span = tuple[int, int]


class Piece(NamedTuple):
    """A part of a text."""

    text: str
    adds: np.ndarray | None  # (R,); None for what is no word that the model knows


def colour_text(text: str, model: Any, explanation: Explanation) -> list[Piece]:
    """The pieces of a text, which make it up. What a pair of words adds is divided between them."""
    adds: dict[Span, np.ndarray] = {}
    left = dict(zip(explanation.words, explanation.total, strict=True))
    for vectorizer in (getattr(model, "word_vectorizer_", None), model.vectorizer_):
        for word, places in occurrences(text, vectorizer, left).items():
            share = left.pop(word) / sum(map(len, places))
            for span in (span for spans in places for span in spans):
                adds[span] = adds.get(span, 0.0) + share
    pieces, end = [], 0
    for start, stop in sorted(adds):
        if start < end:  # two vectorizers disagree where a word ends
            continue
        if start > end:
            pieces.append(Piece(text[end:start], None))
        pieces.append(Piece(text[start:stop], adds[start, stop]))
        end = stop
    return pieces + ([Piece(text[end:], None)] if end < len(text) else [])


def occurrences(text: str, vectorizer: Any, known: dict[str, Any]) -> dict[str, list[list[Span]]]:
    """For each known word, or run of words, where it stands: the spans of its words, once for each time."""
    if vectorizer is None or vectorizer.analyzer != "word" or vectorizer.tokenizer is not None:
        return {}
    prepared = vectorizer.build_preprocessor()(text)
    if len(prepared) != len(text):  # places in it are not those of the text
        return {}
    stop_words, pattern = vectorizer.get_stop_words() or (), re.compile(vectorizer.token_pattern)
    spans = [match.span(pattern.groups) for match in pattern.finditer(prepared)]
    spans = [(a, b) for a, b in spans if prepared[a:b] not in stop_words]
    tokens, found = [prepared[a:b] for a, b in spans], dict[str, list[list[Span]]]()
    shortest, longest = vectorizer.ngram_range
    for n in range(shortest, longest + 1):
        for i in range(len(tokens) - n + 1):
            word = " ".join(tokens[i : i + n])
            if word in known:
                found.setdefault(word, []).append(spans[i : i + n])
    return found
