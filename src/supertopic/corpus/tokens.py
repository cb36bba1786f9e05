"""Tokens of documents: validation of counts, the flat layout that the kernels read, and its division into shards."""

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

MAX_TOKENS = 2**31 - 1  # counts are int32
MAX_DOC_TOKENS = 2**24 - 1  # the counts of one document are whole float32 numbers in the sampler
PIECE = 2**19  # entries of a matrix that are worked on at a time: a few megabytes


class Tokens(NamedTuple):
    """Every token of every document, flat: document d has word[doc_start[d]:doc_start[d + 1]]."""

    word: np.ndarray  # (n_tokens,) int32
    doc_start: np.ndarray  # (n_docs + 1,) int64


NO_TOKENS = Tokens(np.zeros(0, np.int32), np.zeros(1, np.int64))  # of no document


def check_counts(X: Any) -> sp.csr_array:
    """X (sparse or dense, already 2-D and numeric) as a canonical CSR matrix of whole, non-negative int64 counts.

    Shares memory with X where X is that already, and never writes to it.
    """
    if sp.issparse(X) and X.format == "coo" and X.dtype.kind in "iub":
        X = X.astype(np.int64)  # duplicates are added up on the way to CSR: a sum may be too large for small types
    X = sp.csr_array(X) if sp.issparse(X) else sp.csr_array(np.asarray(X))
    values = X.data
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"X must hold numbers, got dtype {X.dtype}; turn text into counts with CountVectorizer.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("X contains NaN or infinite counts; every count must be a whole number >= 0.")
    if values.size and values.min() < 0:
        raise ValueError(f"Negative values in data passed as counts: the smallest is {values.min()}; counts are >= 0.")
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        example = values[values != np.floor(values)][0]
        raise ValueError(
            f"X contains fractions (for example {example:.6g}), but a topic model needs whole word counts. "
            "The likely cause is TfidfVectorizer or a scaler before the model; use CountVectorizer."
        )
    if values.size and values.max() > MAX_TOKENS:
        raise ValueError(f"A count of {values.max():.6g} is above the limit of {MAX_TOKENS:,} tokens in a corpus.")
    X = sp.csr_array((values.astype(np.int64, copy=False), X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format or not X.data.all():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X


def make_tokens(X: sp.csr_array) -> Tokens:
    """Lay out checked counts as tokens, the words of a document in the order of the vocabulary."""
    starts = token_starts(X)
    return Tokens(list_words(X, starts, slice(0, X.shape[0])), starts)


def token_starts(X: sp.csr_array) -> np.ndarray:
    """Where the tokens of each document of checked counts start, (n_docs + 1,)."""
    n_tokens = int(X.data.sum())
    if n_tokens > MAX_TOKENS:
        raise ValueError(f"The corpus has {n_tokens:,} tokens; the limit is {MAX_TOKENS:,}. Fit on a sample of it.")
    starts = np.concatenate([[0], np.cumsum(X.sum(axis=1))]).astype(np.int64)
    longest = int(np.diff(starts).max(initial=0))
    if longest > MAX_DOC_TOKENS:
        raise ValueError(f"A document has {longest:,} tokens; the limit is {MAX_DOC_TOKENS:,}. Split it into parts.")
    return starts


def list_words(X: sp.csr_array, starts: np.ndarray, docs: slice | np.ndarray) -> np.ndarray:
    """The words of all tokens of some documents, given as a slice or a mask; `starts` are those of all documents.

    They are listed piece by piece, since copies of the counts would take more memory than the words.
    """
    if isinstance(docs, slice):
        mask, first, last = None, docs.start, docs.stop
    else:
        mask, first, last = docs, 0, X.shape[0]
    n_tokens = starts[last] - starts[first] if mask is None else np.diff(starts)[mask].sum()
    word, filled = np.empty(n_tokens, np.int32), 0
    for rows in row_pieces(X.indptr, first, last):
        entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
        times = X.data[entries]
        if mask is not None:
            times = times * np.repeat(mask[rows], np.diff(X.indptr[rows.start : rows.stop + 1]))
        listed = np.repeat(X.indices[entries], times)
        word[filled : filled + len(listed)] = listed
        filled += len(listed)
    return word


def row_pieces(starts: np.ndarray, first: int, last: int) -> list[slice]:
    """The rows from first to last in pieces of about PIECE entries."""
    if starts[last] - starts[first] <= PIECE:
        return [slice(first, last)]
    edges = np.searchsorted(starts[first : last + 1], np.arange(starts[first], starts[last], PIECE)) + first
    edges = np.unique([first, *edges, last])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def count_matrix(tokens: Tokens, n_words: int) -> sp.csr_array:
    """The counts of some documents, (n_docs, n_words): the inverse of `make_tokens`."""
    shape = len(tokens.doc_start) - 1, n_words
    own = tokens.word.copy(), tokens.doc_start.copy()  # what follows changes its arrays in place
    X = sp.csr_array((np.ones(len(tokens.word), np.int64), *own), shape=shape)
    X.sum_duplicates()
    return X


def cut(doc_start: np.ndarray, n_shards: int) -> list[slice]:
    """Slices of consecutive documents with about equally many tokens each, none empty."""
    n_docs = len(doc_start) - 1
    if n_shards == 1 and n_docs:
        return [slice(0, n_docs)]
    goals = np.arange(1, n_shards) * (doc_start[-1] / n_shards)
    edges = np.searchsorted(doc_start, goals)
    edges = np.unique(np.concatenate([[0], edges.clip(1, n_docs), [n_docs]]))
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def take(tokens: Tokens, docs: slice) -> Tokens:
    """The tokens of some consecutive documents; the words are a view."""
    starts = tokens.doc_start[docs.start : docs.stop + 1]
    return Tokens(tokens.word[starts[0] : starts[-1]], starts - starts[0])


def select(tokens: Tokens, docs: np.ndarray) -> Tokens:
    """The tokens of the documents of a mask (n_docs,)."""
    lengths = np.diff(tokens.doc_start)
    return Tokens(tokens.word[np.repeat(docs, lengths)], np.concatenate([[0], np.cumsum(lengths[docs])]))
