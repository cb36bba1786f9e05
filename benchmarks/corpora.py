"""The real corpora, read from the folder that SUPERTOPIC_DATA names (by default ../shared/data)."""

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.model_selection import train_test_split

from supertopic.datasets import load_20newsgroups, load_docstrings

REUTERS_TEN = ("earn", "acq", "money-fx", "grain", "crude", "trade", "interest", "ship", "wheat", "corn")
REUTERS_FILE, MOVIES_FILE = "reuters21578_modapte.jsonl.gz", "moviereview_scale.jsonl.gz"
PATTERN = r"(?u)\b[a-z]{2,}\b"
DATA = Path(os.environ.get("SUPERTOPIC_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Split(NamedTuple):
    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray
    words: np.ndarray


def newsgroups() -> Split:
    """The paper's version of 20 Newsgroups, stop words removed: 11,269 and 7,505 documents of 20 groups."""
    folder = DATA / "20news-bydate-matlab"
    if not folder.exists():
        return downloaded_newsgroups()
    words = np.array((folder / "vocabulary.txt").read_text().split())
    kept = ~np.isin(words, list(ENGLISH_STOP_WORDS))
    parts = []
    for part in ("train", "test"):
        y = np.loadtxt(folder / f"{part}.label", dtype=int)
        doc, word, count = np.loadtxt(folder / f"{part}.data.gz", dtype=int).T
        parts += [sp.csr_matrix((count, (doc - 1, word - 1)), shape=(len(y), len(words)))[:, kept], y]
    return Split(*parts, words[kept])


def downloaded_newsgroups() -> Split:
    """The same from scikit-learn's download: words of the bodies, two letters or more, that occur twice or more.

    It has 45 and 27 documents more, whose bodies are empty or no text.
    """
    print(f"There is no 20news-bydate-matlab in {DATA}; 20 Newsgroups is taken through scikit-learn.", flush=True)
    parts = [load_20newsgroups(subset) for subset in ("train", "test")]
    bodies = [[body(text) for text in part.data] for part in parts]
    vectorizer = CountVectorizer(token_pattern=r"[a-z]{2,}")
    both = vectorizer.fit_transform([*bodies[0], *bodies[1]]).tocsr()
    words = vectorizer.get_feature_names_out()
    kept = (np.ravel(both.sum(axis=0)) > 1) & ~np.isin(words, list(ENGLISH_STOP_WORDS))
    X, X_test = both[: len(bodies[0]), kept], both[len(bodies[0]) :, kept]
    return Split(X, parts[0].target + 1, X_test, parts[1].target + 1, words[kept])


def body(article: str) -> str:
    """What follows the first blank line of an article."""
    return article.partition("\n\n")[2]


def newsgroup_texts() -> list[str] | None:
    """The text of each training document of `newsgroups`; None where the folder has counts but no articles."""
    folder, cache = DATA / "20news-bydate-matlab", DATA / "scikit_learn_data"
    if not folder.exists():
        return [body(text) for text in load_20newsgroups("train").data]
    if not cache.exists():
        return None
    articles = fetch_20newsgroups(data_home=cache, subset="train", shuffle=False, download_if_missing=False)
    names = ["/".join(Path(name).parts[-2:]) for name in articles.filenames]
    found = dict(zip(names, articles.data, strict=True))
    with gzip.open(folder / "train.docs.gz", "rt", encoding="utf-8") as file:
        return [body(found[line.strip()]) for line in file]


def group_names() -> dict[int, str]:
    """The names of the groups by their numbers, from 1 on: they are sorted."""
    path = DATA / "20news-bydate-matlab" / "newsgroups.map"
    if not path.exists():
        return dict(enumerate(load_20newsgroups("test").target_names, 1))
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return {int(number): name for name, number in rows}


def newsgroups_pair(all_groups: Split) -> Split:
    """alt.atheism against talk.religion.misc, the paper's binary task: 856 and 569 documents."""
    X, y, X_test, y_test, words = all_groups
    pair, pair_test = np.isin(y, [1, 20]), np.isin(y_test, [1, 20])
    return Split(X[pair], y[pair], X_test[pair_test], y_test[pair_test], words)


def imdb() -> Split:
    """The 50,000 labelled IMDb reviews as a bag of words, in the split of their authors."""
    folder = DATA / "imdb_bow"
    doc, word, count = np.loadtxt(folder / "docword.imdb.txt.gz", dtype=np.int32, skiprows=3).T
    words = np.array((folder / "vocab.imdb.txt").read_text().split())
    with gzip.open(folder / "docs.imdb.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.split("\t") for line in file]
    X = sp.csr_matrix((count, (doc - 1, word - 1)), shape=(len(rows), len(words)))
    train, y = np.array([row[0] == "train" for row in rows]), np.array([row[1] for row in rows])
    return Split(X[train], y[train], X[~train], y[~train], words)


class Corpus(NamedTuple):
    """A corpus without a split of its own."""

    X: sp.csr_matrix
    y: np.ndarray
    words: np.ndarray


def movie_reviews() -> Corpus:
    """Pang and Lee's 5,006 reviews with a rating from 0 to 1; words of ten reviews or more, stop words removed."""
    docs = read_json(MOVIES_FILE)
    vectorizer = CountVectorizer(stop_words="english", token_pattern=PATTERN, min_df=10)
    X = vectorizer.fit_transform(doc["text"] for doc in docs)
    return Corpus(X, np.array([doc["y"] for doc in docs]), vectorizer.get_feature_names_out())


def movie_grades() -> Split:
    """The same reviews with the authors' four classes, "0" to "3"; a fixed fifth of them is for the test."""
    data = movie_reviews()
    grades = np.array([str(doc["label4"]) for doc in read_json(MOVIES_FILE)])
    a, b = train_test_split(np.arange(len(grades)), test_size=0.2, random_state=0, stratify=grades)
    return Split(data.X[a], grades[a], data.X[b], grades[b], data.words)


def cora() -> Corpus:
    """2,410 abstracts with the number of citations that each received from the others."""
    folder = DATA / "cora_bow"
    doc, word, count = np.loadtxt(folder / "docword.cora.txt.gz", dtype=int, skiprows=3).T
    words = np.array((folder / "vocab.cora.txt").read_text().split())
    with gzip.open(folder / "docs.cora.tsv.gz", "rt", encoding="utf-8") as file:
        y = np.array([int(line.split("\t")[0]) for line in file])
    return Corpus(sp.csr_matrix((count, (doc - 1, word - 1)), shape=(len(y), len(words))), y, words)


def reuters() -> Split:
    """Reuters-21578, ModApte split, the 90 topics that occur in both parts (R90): 7,770 and 3,019 documents."""
    docs = [doc for doc in read_json(REUTERS_FILE) if doc["labels"]]
    parts = {name: [doc for doc in docs if doc["split"] == name] for name in ("train", "test")}
    seen = [{label for doc in part for label in doc["labels"]} for part in parts.values()]
    names = sorted(set.intersection(*seen))
    train, test = ([doc for doc in part if set(doc["labels"]) & set(names)] for part in parts.values())
    vectorizer = CountVectorizer(stop_words="english", token_pattern=PATTERN, min_df=3)
    X, X_test = vectorizer.fit_transform(d["text"] for d in train), vectorizer.transform(d["text"] for d in test)
    y, y_test = (np.array([[name in doc["labels"] for name in names] for doc in part], int) for part in (train, test))
    return Split(X, y, X_test, y_test, vectorizer.get_feature_names_out())


def reuters_single() -> tuple[Split, list[str]]:
    """Documents with exactly one of the ten most frequent topics, which is the class, and the texts of training.

    Two of the ten are no class: nearly all documents on wheat or corn are on grain, too. Eight classes are left.
    """
    docs = [(doc, [name for name in doc["labels"] if name in REUTERS_TEN]) for doc in read_json(REUTERS_FILE)]
    parts = [[(d["text"], own[0]) for d, own in docs if len(own) == 1 and d["split"] == s] for s in ("train", "test")]
    common = {label for _, label in parts[0]} & {label for _, label in parts[1]}
    (texts, y), (texts_test, y_test) = (zip(*(row for row in part if row[1] in common), strict=True) for part in parts)
    return from_texts(texts, y, texts_test, y_test), list(texts)


def docstrings() -> tuple[Split, list[str]]:
    """SciPy's docstrings with their subpackages, and the texts of training; a fixed fifth is for the test."""
    data = load_docstrings()
    a, b = train_test_split(np.arange(len(data.data)), test_size=0.2, random_state=0, stratify=data.target)
    names = np.array(data.target_names)[data.target]
    texts, texts_test = [data.data[i] for i in a], [data.data[i] for i in b]
    return from_texts(texts, names[a], texts_test, names[b]), texts


def from_texts(texts: Sequence[str], y: Sequence, texts_test: Sequence[str], y_test: Sequence) -> Split:
    """Counts of the words of three training documents or more, stop words removed."""
    vectorizer = CountVectorizer(stop_words="english", token_pattern=PATTERN, min_df=3)
    X, X_test = vectorizer.fit_transform(texts), vectorizer.transform(texts_test)
    return Split(X, np.array(y), X_test, np.array(y_test), vectorizer.get_feature_names_out())


def read_json(name: str) -> list[dict]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
