"""Documents of many files: their words are counted file by file, and their tokens are written to disk.

A process reads only the documents that it works on, so that none has to hold all of them.
"""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from supertopic.corpus.source import Arrays, Part, Target, no_target, select_target
from supertopic.corpus.tables import READERS, column, read_plain, read_table
from supertopic.corpus.tokens import MAX_DOC_TOKENS, MAX_TOKENS, Tokens, check_counts, make_tokens
from supertopic.corpus.writing import whole_file

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
MakeVectorizer = Callable[[int], CountVectorizer]  # given the number of documents
Each = Callable[[Callable[..., Any], list[tuple[Any, ...]]], list[Any]]  # the results of a function, in order


def find_files(files: Files) -> list[Path]:
    """The files of a pattern, a folder or a list, sorted by name."""
    if isinstance(files, str | os.PathLike):
        path = Path(files)
        if path.is_dir():
            found = [
                child
                for child in path.iterdir()
                if is_docword(child) or READERS.keys() & {suffix.lower() for suffix in child.suffixes}
            ]
        else:
            found = [path] if path.is_file() else [Path(name) for name in glob.glob(str(files), recursive=True)]
    else:
        found = [Path(name) for name in files]
    if not found:
        raise FileNotFoundError(
            f"There is no file {files}; expected a path, a folder, or a pattern ('data/*.parquet')."
        )
    for path in found:
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path}.")
    return sorted(path.absolute() for path in found)


class Counted(NamedTuple):
    """The counted words of a file, and some of its columns."""

    n_rows: int
    terms: np.ndarray  # the different words
    documents: np.ndarray  # the number of documents that have each word
    times: np.ndarray  # the number of tokens of each word
    columns: list[list[Any]]


def count_words(
    path: Path, text: str, names: list[str], vectorizer: CountVectorizer, rows: np.ndarray | None = None
) -> Counted:
    """Count the words of a file, or of some of its rows, and read some columns."""
    if is_docword(path):
        if names:
            raise ValueError(f"{path} has words only, not {', '.join(map(repr, names))}; LDA needs no more.")
        X, terms = read_docword(path)
        return Counted(X.shape[0], terms, np.bincount(X.indices, minlength=len(terms)), X.sum(axis=0), [])
    texts, *columns = columns_of(path, [text, *names])
    texts = texts if rows is None else [texts[i] for i in rows]
    terms, documents, times = np.zeros(0, object), np.zeros(0, np.int64), np.zeros(0, np.int64)
    if vectorizer.vocabulary is None:
        every = clone(vectorizer).set_params(min_df=1, max_df=1.0, max_features=None)
        try:
            X = every.fit_transform(texts)
            terms, documents, times = every.get_feature_names_out(), np.bincount(X.indices), np.asarray(X.sum(axis=0))
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise ValueError(f"{path}: {error}") from error
    return Counted(len(texts), terms, documents, times.ravel(), columns)


def write_tokens(path: Path, text: str, vectorizer: CountVectorizer, place: Path) -> np.ndarray:
    """Write the tokens of a file's documents; returns the lengths of these."""
    try:
        if is_docword(path):
            X, terms = read_docword(path)
            known = [
                (vectorizer.vocabulary_[term], i) for i, term in enumerate(terms) if term in vectorizer.vocabulary_
            ]
            number, place_of = np.array(known, np.int64).reshape(-1, 2).T
            X = sp.csr_array(X[:, place_of])
            counts = sp.csr_array((X.data, number[X.indices], X.indptr), (X.shape[0], len(vectorizer.vocabulary_)))
        else:
            counts = vectorizer.transform(columns_of(path, [text])[0])
        tokens = make_tokens(check_counts(counts))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    with whole_file(place) as file:
        tokens.word.tofile(file)
    return np.diff(tokens.doc_start)


def count_rows(path: Path, text: str, vectorizer: CountVectorizer, rows: np.ndarray) -> sp.csr_array:
    """The counts of some rows of a file."""
    texts = columns_of(path, [text])[0]
    return check_counts(vectorizer.transform([texts[i] for i in rows]))


def is_docword(path: Path) -> bool:
    """Whether a file has the counts of the UCI machine learning repository: docword.NAME.txt beside vocab.NAME.txt."""
    return path.name.startswith("docword.")


def read_docword(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Counts (D, W) and the words. The file has D, W and N, then N lines of a document, a word and its count.

    Documents and words are numbered from 1.
    """
    names = path.with_name(path.name.replace("docword", "vocab", 1).removesuffix(".gz"))
    if not names.is_file():
        raise FileNotFoundError(f"The words of {path} are expected in {names}, which does not exist.")
    terms = np.array(read_plain(names).split(), dtype=object)
    try:
        numbers = np.loadtxt(path, np.int64, max_rows=3)
        triples = np.loadtxt(path, np.int64, skiprows=3, ndmin=2).reshape(-1, 3)
    except ValueError as error:
        raise ValueError(f"{path} is not a docword file: {error}.") from error
    n_docs, n_words, n = numbers.reshape(-1).tolist() if numbers.size == 3 else (0, 0, -1)
    inside = (triples >= 1).all() and (triples[:, :2] <= [n_docs, n_words]).all()
    if len(triples) != n or len(terms) != n_words or not inside:
        raise ValueError(
            f"{path} is not complete: its first lines announce {n_docs:,} documents, {n_words:,} words and {n:,} "
            f"lines, but there are {len(triples):,} lines, {len(terms):,} words in {names.name}, or larger numbers."
        )
    document, word, times = triples.T
    return sp.csr_array((times, (document - 1, word - 1)), shape=(n_docs, n_words)), terms


def columns_of(path: Path, names: list[str]) -> list[list[Any]]:
    """Columns of a file, the first as text."""
    table = read_table(path)
    if not table.num_rows:
        raise ValueError(f"{path} has no rows.")
    texts, *columns = (column(table, path, name) for name in names)
    for i, cell in enumerate(texts):
        if cell is not None and not isinstance(cell, str | int | float):
            raise ValueError(f"{path}, row {i + 1}: the column {names[0]!r} holds a {type(cell).__name__}, not a text.")
    return [["" if cell is None else str(cell) for cell in texts], *columns]


def learn_vocabulary(vectorizer: CountVectorizer, counted: list[Counted]) -> CountVectorizer:
    """The vectorizer that `fit` on all texts gives."""
    fitted = clone(vectorizer)
    fitted.fixed_vocabulary_ = vectorizer.vocabulary is not None
    if fitted.fixed_vocabulary_:
        return fitted.fit([""])  # looks at the vocabulary alone
    n_docs, sums = sum(file.n_rows for file in counted), dict[str, list[int]]()
    for file in counted:
        for term, n, m in zip(file.terms.tolist(), file.documents.tolist(), file.times.tolist(), strict=True):
            known = sums.setdefault(term, [0, 0])
            known[0] += n
            known[1] += m
    terms = sorted(sums)
    documents, times = np.array([sums[term] for term in terms], np.int64).reshape(-1, 2).T
    low, high = (n if isinstance(n, int | np.integer) else n * n_docs for n in (vectorizer.min_df, vectorizer.max_df))
    if high < low:
        raise ValueError("max_df and min_df leave no words: max_df is below min_df.")
    kept = np.flatnonzero((documents >= low) & (documents <= high))
    if vectorizer.max_features is not None and len(kept) > vectorizer.max_features:
        kept = np.sort(kept[(-times[kept]).argsort()[: vectorizer.max_features]])  # ties as CountVectorizer has them
    if not len(kept):
        raise ValueError(
            f"No words are left of {len(terms):,} in {n_docs:,} documents: min_df={vectorizer.min_df} and "
            f"max_df={vectorizer.max_df} drop them all, or the texts have none."
        )
    fitted.vocabulary_ = {terms[i]: number for number, i in enumerate(kept.tolist())}
    return fitted


class Library(NamedTuple):
    """Files whose words are counted."""

    paths: list[Path]
    first: np.ndarray  # (n_files + 1,): the number of each file's first document
    text: str
    columns: dict[str, list[Any]]
    vectorizer: CountVectorizer

    def where(self, row: int) -> str:
        """The file and the row of a document."""
        file = int(np.searchsorted(self.first, row, side="right")) - 1
        return f"{self.paths[file]}, row {row - int(self.first[file]) + 1}"

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers, NaN where a cell is empty."""
        values = np.full(len(self.columns[name]), np.nan)
        for i, cell in enumerate(self.columns[name]):
            try:
                values[i] = np.nan if cell is None else float(cell)
            except (TypeError, ValueError):
                raise ValueError(f"{self.where(i)}: {name!r} is {cell!r}, which is not a number.") from None
        return values

    def counts(self, vectorizer: CountVectorizer, docs: np.ndarray, each: Each) -> tuple[CountVectorizer, sp.csr_array]:
        """A vectorizer fitted to some documents, and their counts."""
        edges = np.searchsorted(docs, self.first)
        rows = [docs[a:b] - first for a, b, first in zip(edges[:-1], edges[1:], self.first[:-1], strict=True)]
        work = [(path, own) for path, own in zip(self.paths, rows, strict=True) if len(own)]
        counted = each(count_words, [(path, self.text, [], vectorizer, own) for path, own in work])
        fitted = learn_vocabulary(vectorizer, counted)
        parts = each(count_rows, [(path, self.text, fitted, own) for path, own in work])
        return fitted, sp.csr_array(sp.vstack(parts, "csr"))

    def spool(self, folder: Path, each: Each) -> "Spool":
        """Write the tokens to a folder that all machines can read."""
        places = [folder / f"{i:06d}.tokens" for i in range(len(self.paths))]
        work = [(path, self.text, self.vectorizer, place) for path, place in zip(self.paths, places, strict=True)]
        lengths = np.concatenate(each(write_tokens, work))
        if lengths.sum() > MAX_TOKENS:
            raise ValueError(f"The files have {lengths.sum():,} tokens; the limit is {MAX_TOKENS:,}.")
        if lengths.max() > MAX_DOC_TOKENS:
            raise ValueError(f"{self.where(int(lengths.argmax()))}: {lengths.max():,} tokens are too many; split it.")
        return Spool(places, self.first, lengths, np.arange(len(lengths)))


def open_library(
    files: Files, text: str, names: Iterable[str], vectorizer: CountVectorizer | MakeVectorizer, each: Each
) -> Library:
    """Count the words of all files, and read some columns of all documents.

    A vectorizer may be made from the number of documents, which decides what rare words are, not what words are.
    """
    names, paths = list(names), find_files(files)
    if not isinstance(vectorizer, CountVectorizer):
        counted = each(count_words, [(path, text, names, vectorizer(0)) for path in paths])
        vectorizer = vectorizer(sum(file.n_rows for file in counted))
    else:
        counted = each(count_words, [(path, text, names, vectorizer) for path in paths])
    columns = {name: [cell for file in counted for cell in file.columns[i]] for i, name in enumerate(names)}
    first = np.cumsum([0, *(file.n_rows for file in counted)])
    return Library(paths, first, text, columns, learn_vocabulary(vectorizer, counted))


class Spool:
    """A corpus on disk: the documents of an index into all documents of the files."""

    def __init__(
        self,
        places: list[Path],
        first: np.ndarray,
        lengths: np.ndarray,
        index: np.ndarray,
        target: Target | None = None,
    ):
        self.places, self.first, self.lengths, self.index = places, first, lengths, index
        self.target = no_target(len(index)) if target is None else target
        self.doc_start = np.concatenate([[0], np.cumsum(lengths[index])])

    def with_target(self, target: Target) -> "Spool":
        return Spool(self.places, self.first, self.lengths, self.index, target)

    def tokens(self, docs: slice) -> Tokens:
        """The tokens of some consecutive documents."""
        index = self.index[docs]
        edges = np.searchsorted(index, self.first)
        words = [np.zeros(0, np.int32)]
        for file in np.flatnonzero(np.diff(edges)).tolist():
            starts = np.concatenate([[0], np.cumsum(self.lengths[self.first[file] : self.first[file + 1]])])
            own = index[edges[file] : edges[file + 1]] - self.first[file]
            words.append(self._words(self.places[file], starts, own))
        starts = self.doc_start[docs.start : docs.stop + 1]
        return Tokens(np.concatenate(words), starts - starts[0])

    def _words(self, place: Path, starts: np.ndarray, own: np.ndarray) -> np.ndarray:
        if not starts[-1]:
            return np.zeros(0, np.int32)
        try:
            words = np.memmap(place, np.int32, mode="r", shape=(int(starts[-1]),))
        except (OSError, ValueError) as error:
            raise FileNotFoundError(
                f"The tokens in {place} cannot be read ({error}). With several machines, `folder` must be one that all "
                "can read."
            ) from error
        mask = np.zeros(len(starts) - 1, bool)
        mask[own] = True
        first, last = int(own[0]), int(own[-1]) + 1
        part = words[starts[first] : starts[last]]
        return np.array(part[np.repeat(mask[first:last], np.diff(starts[first : last + 1]))])

    def read(self, docs: slice) -> tuple[Tokens, Target]:
        return self.tokens(docs), select_target(self.target, docs)

    def part(self, docs: slice) -> Part:
        """A source of consecutive documents only: the files that have them, and nothing of the others."""
        index = self.index[docs]
        a, b = (int(np.searchsorted(self.first, i, side="right")) for i in (index[0], index[-1]))
        first = self.first[a - 1 : b + 1]
        lengths = self.lengths[first[0] : first[-1]]
        known = select_target(self.target, docs)
        return Part(docs.start, Spool(self.places[a - 1 : b], first - first[0], lengths, index - first[0], known))

    def select(self, docs: np.ndarray) -> "Spool":
        known = select_target(self.target, docs)
        return Spool(self.places, self.first, self.lengths, self.index[docs], known)

    def column(self, r: int) -> "Spool":
        return self.with_target(self.target.column(r))

    def load(self) -> Arrays:
        return Arrays(*self.read(slice(0, len(self.index))))

    def matrix(self, n_words: int) -> sp.csr_array:
        """The counts in memory, (n_docs, V)."""
        tokens = self.tokens(slice(0, len(self.index)))
        ones, shape = np.ones(len(tokens.word), np.int64), (len(self.index), n_words)
        X = sp.csr_array((ones, tokens.word, tokens.doc_start), shape)
        X.sum_duplicates()
        return X

    def arrays(self) -> Iterator[np.ndarray]:
        yield from (self.lengths, self.index, *self.target)
        for place in self.places:
            if place.stat().st_size:
                yield np.memmap(place, np.int32, mode="r")
