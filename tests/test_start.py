"""Where chains start: a factorisation of tf-idf, responses and seeds, without held-out documents."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from supertopic import LDA, Seeds, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.corpus.source import Arrays, Target, make_target, no_target
from supertopic.corpus.tokens import check_counts, count_matrix, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import fit as fit_room
from supertopic.inference import start as start_room
from supertopic.inference.start import (
    MOST_DOCUMENTS,
    FittedStart,
    Start,
    factorise_words,
    seed_columns,
    seeds_first,
    short_rows,
)
from supertopic.model.responses import Gaussian, Logistic
from supertopic.model.responses.none import NoResponse

RUN = {"n_topics": 4, "burn_in": 3, "n_draws": 2, "n_chains": 2, "random_state": 0, "predict_sweeps": 6}


def blocks(n_docs=80, n_blocks=4, size=10, length=30, seed=0):
    """Documents of one block of words each, with a few words of others."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_docs) % n_blocks
    X = np.zeros((n_docs, n_blocks * size), int)
    for row, own in zip(X, group, strict=True):
        np.add.at(row, own * size + rng.integers(size, size=length), 1)
        np.add.at(row, rng.integers(X.shape[1], size=3), 1)
    return X, group


def source_of(X, y=None, weight=None):
    tokens = make_tokens(check_counts(X))
    if y is None:
        return Arrays(tokens, no_target(len(X)))
    y = np.asarray(y, float).reshape(len(X), -1)
    return Arrays(tokens, make_target(y, np.ones_like(y) if weight is None else weight))


def test_counts_come_back_from_tokens():
    X, _ = blocks()
    tokens = make_tokens(check_counts(X))
    before = [array.copy() for array in tokens]
    for _ in range(2):  # the tokens stay as they are
        np.testing.assert_array_equal(count_matrix(tokens, X.shape[1]).toarray(), X)
    for one, other in zip(before, tokens, strict=True):
        np.testing.assert_array_equal(one, other)


def test_planted_topics_are_the_factors():
    X, _ = blocks()
    found = factorise_words(source_of(X), NoResponse(), X.shape[1], 4, [])
    assert found.phi.dtype == np.float32 and found.phi.shape == (40, 4)
    np.testing.assert_allclose(found.phi.sum(axis=0), 1.0, rtol=1e-5)
    mass = found.phi.reshape(4, 10, 4).sum(axis=1)  # (block, topic)
    assert sorted(mass.argmax(axis=0)) == [0, 1, 2, 3] and (mass.max(axis=0) > 0.8).all()
    np.testing.assert_allclose(found.share.sum(axis=1), 1.0)


def test_topics_are_of_words_and_not_of_tf_idf():
    """A word of all documents of a block has three times the tokens of one of a third, though its idf is smaller."""
    X, _ = blocks(n_docs=120, n_blocks=2, size=10)
    X = np.minimum(X, 1)
    X[::2, :2] = [1, 0]
    X[::6, 1] = 1
    phi = factorise_words(source_of(X), NoResponse(), 20, 2, []).phi
    own = phi[:, phi[0].argmax()]
    assert 2.7 < own[0] / own[1] < 4.0


def test_responses_and_seeds_enter_the_factors(monkeypatch):
    X, _ = blocks(n_blocks=2, size=20)
    y = (np.arange(80) // 2 % 2)[:, None]  # words of the first half of each block tell of it
    X[:, ::2] *= 1 + 2 * y
    X[:, 1::2] *= 3 - 2 * y
    response = Logistic(1.0).encode(y.ravel(), np.ones(80)).response
    known, blind = (factorise_words(source_of(X, *more), kind, 40, 2, []).phi for more, kind in (
        ([y], response), ([], NoResponse())))  # fmt: skip
    assert not np.allclose(known, blind, atol=1e-4)
    with monkeypatch.context() as patch:
        patch.setattr("supertopic.inference.start.LABELS", 3.0)
        loud = factorise_words(source_of(X, y), response, 40, 2, []).phi
    assert np.ptp(loud[::2].sum(axis=0)) > np.ptp(blind[::2].sum(axis=0)) + 0.2  # factors are about the response
    unknown = factorise_words(source_of(X, y, np.zeros((80, 1))), response, 40, 2, []).phi
    np.testing.assert_allclose(unknown, blind, atol=1e-6)  # an unknown response says nothing
    Y, _ = blocks()
    seeded = factorise_words(source_of(Y), NoResponse(), 40, 4, [[25, 26], [3]])
    mass = seeded.phi.reshape(4, 10, 4).sum(axis=1)
    assert mass[:, 0].argmax() == 2 and mass[:, 1].argmax() == 0  # the blocks of the seeds come first
    assert (seeded.share[[25, 26], 0] > 0.8).all() and seeded.share[3, 1] > 0.8
    wrong = factorise_words(source_of(Y), NoResponse(), 40, 4, [[1, 11, 21, 31]])
    assert np.sort(wrong.share[[1, 11, 21, 31], 0])[:3].max() < 0.5  # words of other blocks belong to other topics
    swapped = factorise_words(source_of(Y), NoResponse(), 40, 4, [[3], [25, 26]])
    np.testing.assert_allclose(swapped.share[3, 0], seeded.share[3, 1], atol=0.1)  # their order is that of the seeds
    assert swapped.phi.reshape(4, 10, 4).sum(axis=1)[:, :2].argmax(axis=0).tolist() == [0, 2]
    assert seeds_first(np.array([[0.0, 0.1], [0.9, 0.2], [0.3, 0.4]])).tolist() == [1, 2, 0]
    assert seeds_first(np.array([[0.0, 0.9, 0.1], [0.2, 0.1, 0.9], [0.9, 0.0, 0.1]])).tolist() == [2, 0, 1]


def test_columns_of_responses():
    target = make_target(np.array([[3.0], [1.0], [2.0], [9.0]]), np.array([[1.0], [1.0], [1.0], [0.0]]))
    columns = Gaussian(1.0, 1.0).start_columns(target)
    np.testing.assert_allclose(columns, [[1, 0], [0, 1], [0.5, 0.5], [0, 0]])  # ranks, and 0 where it is unknown
    two = Logistic(1.0).encode(np.array(["a", "b", "b"]), np.ones(3))
    np.testing.assert_allclose(two.response.start_columns(two.target), [[0, 1], [1, 0], [1, 0]])
    for multiclass, expected in (("shared", np.eye(3)), ("stick_breaking", np.eye(3))):
        three = Logistic(1.0, multiclass=multiclass).encode(np.array(["a", "b", "c", None], object), np.ones(4))
        np.testing.assert_allclose(three.response.start_columns(three.target), [*expected, [0, 0, 0]])
    labels = Logistic(1.0).encode(np.array([[1, 1, 0], [0, 0, 0]]), np.ones(2))
    np.testing.assert_allclose(labels.response.start_columns(labels.target), [[1, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(np.linalg.norm(short_rows(np.array([[3.0, 4.0], [0.1, 0.0]])), axis=1), [1.0, 0.1])
    assert NoResponse().start_columns(no_target(5)).shape == (5, 0)
    assert isinstance(target, Target)


@pytest.mark.parametrize("kind", [LDA, SLDAClassifier, SLDARegressor, SLDACountRegressor])
def test_held_out_documents_and_their_responses_do_not_enter(kind, monkeypatch):
    X, group = blocks(200)
    seen, factorise = [], start_room.factorise_words
    monkeypatch.setattr(start_room, "factorise_words", lambda *given: seen.append(given[0]) or factorise(*given))
    model = kind(**RUN).fit(X, *([] if kind is LDA else [group]))
    n_held_out = 0 if kind is LDA else model.held_out_["documents"]
    assert len(seen) == (1 if kind is LDA else model.n_chains) and all(
        len(corpus.doc_start) == 201 - n_held_out for corpus in seen
    )
    assert kind is LDA or n_held_out > 0
    for corpus in seen if kind is not LDA else ():  # three quarters of the responses, others for each chain
        n_known = (corpus.target.weight > 0).any(axis=1).sum()
        assert n_known == pytest.approx(0.75 * (200 - n_held_out), abs=2)


def test_what_is_too_small_or_too_large_starts_at_random():
    X, group = blocks()
    for n_docs, n_topics in ((10, 4), (80, 1), (80, 40), (80, 201)):
        assert factorise_words(source_of(X[:n_docs]), NoResponse(), 40, n_topics, []) is None
    assert factorise_words(source_of(np.eye(40, dtype=int)), NoResponse(), 40, 4, []) is None  # nothing in common
    empty = factorise_words(source_of(np.vstack([X, np.zeros_like(X)])), NoResponse(), 40, 4, [])
    assert np.isfinite(empty.phi).all()
    a, b = (SLDAClassifier(**RUN, init=init).fit(X, group) for init in ("nmf", "random"))
    assert not np.array_equal(a.log_joint_, b.log_joint_)
    with pytest.raises(ValueError, match="init must be one of 'nmf', 'random', got 'svd'"):
        LDA(init="svd").fit(X)


def test_many_documents_are_sampled_evenly(monkeypatch):
    monkeypatch.setattr("supertopic.inference.start.MOST_DOCUMENTS", 50)
    X, _ = blocks(400)
    found = factorise_words(source_of(X), NoResponse(), 40, 4, [])
    some = factorise_words(source_of(X[np.linspace(0, 399, 50).astype(int)]), NoResponse(), 40, 4, [])
    np.testing.assert_array_equal(found.phi, some.phi)
    assert MOST_DOCUMENTS >= 1000


class Factorised:
    """In the place of scikit-learn's NMF: keeps what it is given, and finds random factors."""

    def __init__(self, n_topics, **options):
        self.n_topics, self.options = n_topics, options

    def set_output(self, **_):
        pass

    def fit_transform(self, X):
        rng = np.random.default_rng(2)
        type(self).given, type(self).found = (X.toarray(), self.options), self
        self.components_ = rng.random((self.n_topics, X.shape[1])) ** 4
        self.sizes = np.geomspace(1.0, 30.0, self.n_topics)
        return np.tile(self.sizes / X.shape[0], (X.shape[0], 1))


@pytest.fixture
def factorised(monkeypatch):
    monkeypatch.setattr(start_room, "NMF", Factorised)
    return Factorised


LABELS_OF_TWO = Logistic(1.0, classes=np.array(["a", "b"]), multilabel=True)


def test_a_label_and_a_seed_count_half_as_much_as_all_words(factorised):
    """Beside tf-idf rows of length 1; documents with several labels have no more; documents that are left out none."""
    X, _ = blocks(n_docs=60, n_blocks=2, size=20)
    X[:, 5], X[0, 5], y = 0, 9, (np.arange(60)[:, None] // [1, 2] % 2).astype(float)  # word 5 is in one document alone
    factorise_words(source_of(X, y), LABELS_OF_TWO, 40, 3, [[6, 7], [5, 9]])
    matrix, used = factorised.given[0], np.delete(np.arange(40), 5)
    rows = TfidfTransformer(sublinear_tf=True).fit_transform(X[:, used]).toarray()
    np.testing.assert_allclose(matrix[:, :39], rows)
    np.testing.assert_allclose(matrix[:, 39:41], 0.5 * y / np.sqrt(y.sum(axis=1).clip(1.0))[:, None])
    seeds = np.stack([rows[:, [5, 6]].sum(axis=1), rows[:, 8]], axis=1)  # the places of words 6, 7 and 9
    seeds /= seeds.max(axis=0)
    np.testing.assert_allclose(matrix[:, 41:], 0.5 * seeds / np.linalg.norm(seeds, axis=1).clip(1.0)[:, None])
    assert (np.linalg.norm(seeds, axis=1) > 1).any()
    nothing = seed_columns(sp.csr_array(rows), used, [[5], []])
    assert not nothing.any() and nothing.shape == (60, 2)


def test_topics_and_shares_of_factors(factorised):
    """By their definition: a factor's words by its size, its seeds' tenth in equal parts, those of seeds first."""
    X, _ = blocks(n_docs=60, n_blocks=2, size=20)
    y, seeded = (np.arange(60)[:, None] % [2, 3] == 0).astype(float), [[6, 7], [25]]
    found = factorise_words(source_of(X, y), LABELS_OF_TWO, 40, 4, seeded)
    model = factorised.found
    weights = model.components_ * model.sizes[:, None]
    about = weights[:, 42:] / weights.sum(axis=1, keepdims=True)  # how far each factor is about seeds
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    first = max(pairs, key=lambda pair: about[pair[0], 0] + about[pair[1], 1])
    order = [*first, *(k for k in range(4) if k not in first)]
    assert first != max(pairs, key=lambda pair: weights[pair[0], 42] + weights[pair[1], 43]) and order != sorted(order)
    np.testing.assert_allclose(found.share, (weights[:, :40] / weights[:, :40].sum(axis=0))[order].T)
    words = weights[order, :40] / TfidfTransformer().fit(X).idf_
    mass = words.sum(axis=1)
    words[0, [6, 7]] += 0.05 * mass[0]
    words[1, 25] += 0.1 * mass[1]
    phi = words / words.sum(axis=1, keepdims=True) + 1e-5
    np.testing.assert_allclose(found.phi, (phi / phi.sum(axis=1, keepdims=True)).T, rtol=1e-5)


def test_the_fewest_documents_and_words_of_a_start(factorised, monkeypatch):
    """Five documents a topic, and more words than topics that two documents have in common."""

    def starts(X, n_topics):
        return factorise_words(source_of(X), NoResponse(), X.shape[1], n_topics, []) is not None

    X, _ = blocks(n_docs=20)
    assert starts(X, 4) and not starts(X[:19], 4)
    few = np.zeros((20, 9), int)
    few[:, :4], few[np.arange(5), np.arange(4, 9)] = 1, 1  # five of the words are in one document each
    assert starts(few, 3) and not starts(few, 4)
    few[7, 4] = 1
    assert starts(few, 4)
    monkeypatch.setattr(start_room, "MOST_TOPICS", 3)
    assert starts(X, 3) and not starts(X, 4)


def test_the_most_frequent_words_are_factorised(factorised, monkeypatch):
    monkeypatch.setattr(start_room, "MOST_WORDS", 10)
    X, _ = blocks(n_docs=80)
    X[:, 3:13] += 1
    found = factorise_words(source_of(X), NoResponse(), 40, 4, [])
    assert (found.phi > 1e-4).any(axis=1).nonzero()[0].tolist() == list(range(3, 13)) and (found.phi > 0).all()


def test_many_topics_have_fewer_steps(factorised, monkeypatch):
    X, _ = blocks(n_docs=80)
    for work, steps in ((1e9, 100), (120 * 16 * 37, 37), (1.0, 10)):  # a step costs (80 + 40) * 4**2
        monkeypatch.setattr(start_room, "WORK", work)
        factorise_words(source_of(X), NoResponse(), 40, 4, [])
        assert factorised.given[1]["max_iter"] == steps and factorised.given[1]["random_state"] == 0


def test_each_chain_starts_from_its_own_documents_and_topics(monkeypatch):
    """Chains that see the same documents share a start; that of fitted topics is each chain's own."""
    seen, made = [source_of(np.eye(2, dtype=int)) for _ in range(2)], []
    monkeypatch.setattr(start_room, "factorise_words", lambda *given: made.append(given) or (None if made[1:] else 7))
    start = Start({None: seen[0], 0: seen[0], 1: seen[1]}.get, NoResponse(), 2, 3, [[1]])
    assert [start.factors(chain) for chain in (0, 1, None, 1)] == [7, None, 7, None]
    assert [given[0] for given in made] == seen and made[0][2:] == (2, 3, [[1]]) and start.phi(0, 1) is None
    sets = [SimpleNamespace(phi=lambda chain, place=place: np.full((2, 3), 10 * place + chain)) for place in (1, 2)]
    assert FittedStart(SimpleNamespace(topics=sets)).phi(1, 2).tolist() == [[22.0] * 3] * 2


def test_the_start_leads_to_a_higher_log_joint_and_to_the_same_topics():
    corpus = make_corpus(n_docs=300, n_topics=8, n_words=200, random_state=1)
    found = {}
    for init in ("nmf", "random"):
        models = [LDA(8, init=init, burn_in=10, n_draws=2, random_state=seed).fit(corpus.X) for seed in (0, 1)]
        roots = [np.sqrt(model.topic_word_) for model in models]
        found[init] = models[0].log_joint_[0, 0], (roots[0] @ roots[1].T).max(axis=1).mean()
    assert found["nmf"][0] > found["random"][0] and found["nmf"][1] > found["random"][1]


def test_seeds_and_priors_keep_their_own_start():
    X, group = blocks()
    names = [f"w{i}" for i in range(40)]
    first = LDA(4, burn_in=5, n_draws=2, random_state=0).fit(X, feature_names=names)
    again = LDA(4, prior=first, burn_in=0, n_draws=1, random_state=0).fit(X, feature_names=names)
    alike = (np.sqrt(first.topic_word_) * np.sqrt(again.topic_word_)).sum(axis=1)
    assert (alike > 0.9).all()  # topics of the prior stay in their places
    model = SLDAClassifier(**RUN, seeds=Seeds({"0": ["w25"], "1": ["w3"]})).fit(
        X, group.astype(str), feature_names=names
    )
    assert model.topic_word_[0].reshape(4, 10).sum(axis=1).argmax() == 2
    assert sp.issparse(count_matrix(make_tokens(check_counts(X)), 40))


def test_only_the_first_documents_are_factorised(monkeypatch):
    """Later batches, and fits with another model as a prior, go on from topics that there are."""
    X, group = blocks(120)
    starts, real = [], fit_room.run_chains
    monkeypatch.setattr(fit_room, "run_chains", lambda *more: starts.append(more[7]) or real(*more))
    model = SLDAClassifier(**RUN | {"burn_in": 2, "n_draws": 2}).partial_fit(X, group)
    model.partial_fit(X, group)
    SLDAClassifier(**RUN | {"burn_in": 2, "n_draws": 2}, prior=model).fit(X, group)
    assert isinstance(starts[0], start_room.Start) and starts[1:] == [None, None]
