"""Where the corpora are, and the two 20 Newsgroups tasks of the paper."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

DATA = Path(os.environ.get("SUPERTOPIC_DATA", Path(__file__).parents[2] / "shared" / "data"))


def corpus(name):
    """The folder or file of a corpus; the test is skipped where it is absent."""
    if not (DATA / name).exists():
        pytest.skip(f"the corpus {name} is not in {DATA}; set SUPERTOPIC_DATA to the folder that has it")
    return DATA / name


@pytest.fixture(scope="session")
def newsgroups():
    """The paper's version of 20 Newsgroups without stop words: X, y for train and test."""
    folder = corpus("20news-bydate-matlab")
    words = np.array((folder / "vocabulary.txt").read_text().split())
    kept = ~np.isin(words, list(ENGLISH_STOP_WORDS))
    out = []
    for part in ("train", "test"):
        y = np.loadtxt(folder / f"{part}.label", dtype=int)
        doc, word, count = np.loadtxt(folder / f"{part}.data.gz", dtype=int).T
        out += [sp.csr_matrix((count, (doc - 1, word - 1)), shape=(len(y), len(words)))[:, kept], y]
    return out


@pytest.fixture(scope="session")
def newsgroups_pair(newsgroups):
    """alt.atheism against talk.religion.misc: 856 and 569 documents."""
    X, y, X_test, y_test = newsgroups
    pair, pair_test = np.isin(y, [1, 20]), np.isin(y_test, [1, 20])
    return X[pair], y[pair], X_test[pair_test], y_test[pair_test]
