"""The corpora that users start with."""

import numpy as np
import pytest

from conftest import corpus
from supertopic.datasets import load_20newsgroups, load_docstrings, make_corpus


def test_docstrings():
    found = load_docstrings()
    assert len(found.data) == len(found.target) == len(found.names) > 1500
    assert len(found.target_names) >= 10 and np.bincount(found.target).min() >= 30
    assert len(set(found.data)) == len(found.data)
    again = load_docstrings()
    assert again.data == found.data


def test_20newsgroups(monkeypatch, tmp_path):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(corpus("scikit_learn_data")))
    found = load_20newsgroups("test", categories=["alt.atheism", "talk.religion.misc"])
    assert len(found.data) == 570


def test_20newsgroups_absent(monkeypatch, tmp_path):
    import urllib.error

    import sklearn.datasets._twenty_newsgroups as module

    def offline(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr(module, "_fetch_remote", offline)
    with pytest.raises(OSError, match="SCIKIT_LEARN_DATA"):
        load_20newsgroups()


def test_make_corpus():
    a, b = (make_corpus(n_docs=50, random_state=3) for _ in range(2))
    assert (a.X != b.X).nnz == 0 and (a.y == b.y).all()
    assert a.X.shape == (50, 500) and a.topic_word.shape == (5, 500)
    np.testing.assert_allclose(a.topic_word.sum(axis=1), 1)
    assert make_corpus(n_docs=50, eta=np.ones((3, 5))).y.shape == (50, 3)
    with pytest.raises(ValueError, match="n_topics"):
        make_corpus(eta=[1, 2])
