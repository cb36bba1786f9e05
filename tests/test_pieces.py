"""What is made piece by piece is the same as in one piece."""

import numpy as np
import pytest
import scipy.sparse as sp

from supertopic.corpus import tokens
from supertopic.corpus.counted import make_counted
from supertopic.corpus.source import Arrays, no_target
from supertopic.inference import blocks
from supertopic.model.linear import count_documents, make_dictionary
from supertopic.sampling.pool import Pool


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, (80, 50))
    X[[0, 7, 8, 79]] = 0
    X[5] = 9  # a document with more entries than a piece
    X[:, 3] = 0
    X[2, 3] = 1  # in one document: without a weight of its own
    return tokens.check_counts(sp.csr_array(X))


def test_counts_are_a_corpus(counts, monkeypatch):
    whole, mask = tokens.make_tokens(counts), np.arange(80) % 3 > 0
    np.testing.assert_array_equal(whole.word, np.repeat(counts.indices, counts.data))
    monkeypatch.setattr(tokens, "PIECE", 20)
    mine, other = make_counted(counts), Arrays(whole, no_target(80))
    assert len(tokens.row_pieces(counts.indptr, 0, 80)) > 9
    for a, b in (
        (mine.load(), other),
        (mine.select(mask), other.select(mask)),
        (mine.select(~mask), other.select(~mask)),
        (Arrays(*mine.read(slice(4, 60))), Arrays(*other.read(slice(4, 60)))),
        (Arrays(*mine.part(slice(4, 60)).read(slice(6, 50))), Arrays(*other.read(slice(6, 50)))),
    ):
        for x, y in zip(a.tokens, b.tokens, strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype
    for x, y in zip(mine.arrays(), other.arrays(), strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype


def test_rows_of_words_in_pieces(counts, monkeypatch):
    dictionary = make_dictionary(count_documents(counts), 1)
    assert len(dictionary.word) == 49
    whole = dictionary.rows(counts)
    monkeypatch.setattr(tokens, "PIECE", 20)
    mine = dictionary.rows(counts)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(whole, name))
        assert getattr(mine, name).dtype == getattr(whole, name).dtype


@pytest.mark.parametrize("n_threads", [1, 3])
def test_products_with_some_rows(n_threads, counts, monkeypatch):
    """Blocks share a matrix; threads, pieces and copies change no bit."""
    monkeypatch.setattr(blocks, "WORTHWHILE", 1)
    monkeypatch.setattr(blocks, "ROWS_AT_ONCE", 7)
    rng, pool = np.random.default_rng(1), Pool(n_threads)
    x = make_dictionary(count_documents(counts), 1).rows(counts)
    docs = rng.permutation(80)[:50]
    weights, slope = rng.normal(size=(49, 3)).astype(np.float32), rng.normal(size=(50, 3)).astype(np.float32)
    block = blocks.SparseBlock(x, pool, docs)
    own = x[docs].astype(np.float32)
    squares = own.power(2)
    expected = np.zeros((49, 3), np.float32), np.zeros((49, 3), np.float32)
    for i in range(50):
        for rows, sums in zip((own, squares), expected, strict=True):
            for p in range(rows.indptr[i], rows.indptr[i + 1]):
                sums[rows.indices[p]] += rows.data[p] * slope[i]
    np.testing.assert_array_equal(block.gather(slope), expected[0])
    np.testing.assert_array_equal(block.gather_squares(slope), expected[1])
    np.testing.assert_allclose(block.omega(weights), own @ weights, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(block.select(slope[:, 0] > 0).omega(weights), block.omega(weights)[slope[:, 0] > 0])
    np.testing.assert_array_equal(blocks.times_rows(x, docs, weights), x[docs] @ weights)
    np.testing.assert_array_equal(blocks.times_rows(x, docs, weights, squared=True), x[docs].power(2) @ weights)
    pool.close()
