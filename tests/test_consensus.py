"""Topics that are matched across chains, and what is shown of them: means and draws over the chains that have them."""

import itertools
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.feature_extraction.text import CountVectorizer

from supertopic import LDA, Seeds, SLDAClassifier, SLDARegressor, TopicDisplay, load, save
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import fit
from supertopic.inference.predict import Settings, frozen_topics, mean_topic_shares, predict_key, topic_shares
from supertopic.model.consensus import ALIKE, Consensus, have_topics, match_chains
from supertopic.model.state import map_topics, mean_topics
from supertopic.report.summary import coef_draws, effects
from supertopic.sampling.new_documents import infer_shares

RUN = {"n_topics": 5, "burn_in": 12, "n_draws": 4, "n_chains": 3, "random_state": 0, "predict_sweeps": 8}
SAME = np.tile(np.arange(6), (4, 1))  # the order of topics in four chains


def topics(rng, n_words=40, n_topics=6):
    return rng.dirichlet(np.full(n_words, 0.1), n_topics).T


def test_shuffled_topics_are_found_again():
    rng = np.random.default_rng(0)
    phi = topics(rng)
    orders = [rng.permutation(6) for _ in range(4)]
    orders[2] = np.arange(6)
    order = match_chains([phi[:, own] for own in orders], 2)
    for own, found in zip(orders, order, strict=True):
        np.testing.assert_array_equal(own[found], np.arange(6))
    pinned = match_chains([phi, phi[:, [1, 0, 3, 2, 5, 4]]], 0, 2)
    assert pinned.tolist() == [[0, 1, 2, 3, 4, 5], [0, 1, 3, 2, 5, 4]]  # the first two stay
    assert match_chains([phi], 0).tolist() == [[0, 1, 2, 3, 4, 5]]


def test_a_topic_that_the_reference_does_not_have():
    rng = np.random.default_rng(1)
    phi, other = topics(rng), topics(rng)
    odd = phi.copy()
    odd[:, 4] = other[:, 0]  # of the reference alone
    mixed = phi[:, [5, 4, 3, 2, 1, 0]]
    order = match_chains([odd, phi, mixed, phi], 0)
    assert order[0].tolist() == [0, 1, 2, 3, 4, 5] and order[2].tolist() == [5, 4, 3, 2, 1, 0]
    roots = [np.sqrt(p[:, own]) for p, own in zip([odd, phi, mixed, phi], order, strict=True)]
    has = have_topics(roots, 0, SAME[:4])
    assert has[:, 4].tolist() == [False, True, True, True] and has[:, [0, 1, 2, 3, 5]].all()
    alone = have_topics([np.sqrt(p) for p in (topics(rng), topics(rng), topics(rng))], 1, SAME[:3])
    assert (alone.sum(axis=0) == 1).all() and alone[1].all()  # nobody agrees: the reference's own


def test_two_matched_chains_are_the_hungarian_solution():
    rng = np.random.default_rng(2)
    a, b = topics(rng), topics(rng)
    assert match_chains([a, b], 0)[1].tolist() == linear_sum_assignment(-np.sqrt(a).T @ np.sqrt(b))[1].tolist()
    alike = np.einsum("vk,vk->k", np.sqrt(a), np.sqrt(b[:, match_chains([a, b], 0)[1]]))
    has = have_topics([np.sqrt(a), np.sqrt(b)], 0, match_chains([a, b], 0))
    np.testing.assert_array_equal(has[1], alike >= ALIKE)


def test_means_and_draws_of_the_chains_that_have_a_topic():
    rng = np.random.default_rng(3)
    consensus = Consensus(
        np.array([[True, True, False], [True, False, False], [True, True, True], [True, True, False]])
    )
    values, draws = rng.normal(size=(4, 2, 3)), rng.normal(size=(4, 30, 2, 3))
    mean, pooled = consensus.mean(values), consensus.pool(draws)
    assert pooled.shape == (120, 2, 3) and consensus.n_having.tolist() == [4, 3, 1]
    for k, chains in enumerate(([0, 1, 2, 3], [0, 2, 3], [2])):
        np.testing.assert_allclose(mean[:, k], values[chains][..., k].mean(axis=0))
        times = (pooled[:, 0, k, None] == draws[chains][:, :, 0, k].ravel()).sum(axis=0)
        assert set(times) <= {120 // (30 * len(chains)), -(-120 // (30 * len(chains)))}  # all of them, evenly
    np.testing.assert_array_equal(consensus.pool(draws)[..., 0], draws[..., 0].reshape(120, 2))


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=150, n_topics=5, random_state=0)


def shuffled(model, seed):
    """The same posterior, the topics of each chain in another order."""
    posterior, rng = model.posterior_, np.random.default_rng(seed)
    sets, orders, first = [], [], 0
    for part in posterior.topics:
        own = np.array([rng.permutation(part.n_topics) for _ in range(posterior.n_chains)])

        def mixed(array, n=part.n_topics, own=own):
            return np.stack(
                [np.concatenate([a[..., :n][..., o], a[..., n:]], -1) for a, o in zip(array, own, strict=True)]
            )

        sets.append(
            replace(
                part,
                **{name: mixed(getattr(part, name)) for name in ("word_topic", "alpha", "pseudo_tokens", "training")},
            )
        )
        before = posterior.order[:, first : first + part.n_topics] - first
        orders.append(first + np.stack([np.argsort(o)[b] for o, b in zip(own, before, strict=True)]))
        first += part.n_topics
    return replace(posterior, topics=tuple(sets), order=np.concatenate(orders, axis=1))


@pytest.mark.parametrize("multiclass", ["shared", "separate", "stick_breaking"])
def test_what_is_shown_does_not_depend_on_the_chains_numbering(corpus, multiclass):
    model = SLDAClassifier(**RUN, multiclass=multiclass, optimize_priors=True).fit(corpus.X, np.arange(150) % 3)
    other = shuffled(model, 1)
    np.testing.assert_allclose(coef_draws(other), model.posterior_.response.in_units(coef_draws(model.posterior_)))
    for a, b in zip(effects(other, 0.1, 0.9), effects(model.posterior_, 0.1, 0.9), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_allclose(other.mean_shares, model.posterior_.mean_shares)
    np.testing.assert_array_equal(other.consensus.has, model.posterior_.consensus.has)
    for chain in range(3):
        np.testing.assert_allclose(other.phi(chain), model.posterior_.phi(chain))
        np.testing.assert_allclose(other.alpha(chain), model.posterior_.alpha(chain))
    np.testing.assert_allclose(other.mean_shares.sum(), 1.0)
    np.testing.assert_allclose(model.transform(corpus.X[:9]).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1.0)


def test_tables_are_means_over_the_chains_that_have_a_topic(corpus):
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    posterior = model.posterior_
    has, (topics,) = posterior.consensus.has, posterior.topics
    assert has.any(axis=0).all()
    counts = [topics.mean_counts(chain)[:, own] for chain, own in enumerate(posterior.order)]
    tokens = topics.word_topic.sum(axis=1) - topics.n_draws * topics.pseudo_tokens
    shares = np.stack([row[own] / row.sum() for row, own in zip(tokens, posterior.order, strict=True)])
    for k in range(5):
        own = np.flatnonzero(has[:, k])
        np.testing.assert_allclose(model.components_[k], np.mean([counts[chain][:, k] for chain in own], axis=0))
        phi = [counts[chain][:, k] / counts[chain][:, k].sum() for chain in own]
        np.testing.assert_allclose(model.topic_word_[k], np.mean(phi, axis=0))
        assert model.topic_frame().set_index("topic").chains[k] == len(own)
    mean = np.array([shares[has[:, k], k].mean() for k in range(5)])
    np.testing.assert_allclose(posterior.mean_shares, mean / mean.sum())
    np.testing.assert_array_equal(model.topic_agreement(), has.mean(axis=0))
    np.testing.assert_array_equal(model.match_topics(), posterior.order)
    assert model.match_topics()[model.best_chain_].tolist() == [0, 1, 2, 3, 4]


def test_shares_of_documents_are_in_the_common_order(corpus):
    run = RUN | {"n_topics": 8, "init": "random", "burn_in": 30}
    model = SLDAClassifier(**run, words=False).fit(corpus.X, corpus.y)
    posterior, tokens = model.posterior_, make_tokens(check_counts(corpus.X))
    assert (posterior.order != np.arange(8)).any()
    total = np.zeros((150, 8))
    for chain, has in enumerate(posterior.consensus.has):
        topics, key = frozen_topics(posterior.topics[0], chain, "cpu"), predict_key(posterior, 0, chain)
        total += infer_shares(tokens, topics, 8, key, 1)[:, posterior.order[chain]] * has
    total /= posterior.consensus.n_having
    np.testing.assert_allclose(model.transform(corpus.X), total / total.sum(axis=1, keepdims=True))
    for mine, inferred in zip(model.doc_topic_.T, model.transform(corpus.X).T, strict=True):
        assert np.corrcoef(mine, inferred)[0, 1] > 0.75  # of the chains themselves, which know the responses


def test_shares_of_training_documents_by_their_definition(corpus, monkeypatch):
    """Means of counts over the chains that have a topic; each set of topics has an equal part of a document."""
    given, compute = [], fit.training_shares
    monkeypatch.setattr(fit, "training_shares", lambda *about: given.append(about) or compute(*about))
    X = corpus.X.tolil()
    X[[4, 90]] = 0
    model = SLDAClassifier(**RUN | {"init": "random"}, multiclass="separate", words=False)
    model.fit(X.tocsr(), np.arange(150) % 3)
    ((made, posterior),) = given
    has, order = posterior.consensus.has, posterior.order
    assert not has.all() and (order[:, 5:10] - 5 != order[:, :5]).any()
    for place, doc in enumerate(np.flatnonzero(~made.split.mask)):
        expected = posterior.mean_shares
        if doc not in (4, 90):
            counts = [
                np.concatenate([runs[c].draws.doc_topic[place] for runs in made.runs])[order[c]] for c in range(3)
            ]
            sets = np.split(np.sum(counts * has, axis=0) / has.sum(axis=0), len(made.runs))
            expected = np.concatenate([own / own.sum() for own in sets]) / len(made.runs)
        np.testing.assert_allclose(model.doc_topic_[doc], expected)


def test_order_survives_files_batches_and_names(corpus, tmp_path, monkeypatch):
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y).name_topics({3: "three"})
    order = model.posterior_.order.copy()
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.posterior_.order, order)
    np.testing.assert_array_equal(again.topic_word_, model.topic_word_)
    before = model.topic_word_.copy()
    monkeypatch.setattr("supertopic.inference.fit.match_topics", None)  # topics stay where they are
    model.partial_fit(corpus.X[:40], corpus.y[:40])
    np.testing.assert_array_equal(model.posterior_.order, order)
    assert model.topic_name(3) == "three"
    alike = np.sqrt(before) @ np.sqrt(model.topic_word_).T
    assert alike[3].argmax() == 3


def test_seeded_topics_stay_in_their_places(corpus):
    names = [f"w{i}" for i in range(corpus.X.shape[1])]
    seeds = Seeds({"a": ["w1", "w2"], "b": ["w5"]})
    for model in (LDA(**RUN, seeds=seeds), SLDARegressor(**RUN, seeds=Seeds(seeds.words, weights=None))):
        model.fit(corpus.X, *([] if isinstance(model, LDA) else [corpus.y.astype(float)]), feature_names=names)
        assert (model.match_topics()[:, :2] == [0, 1]).all()
        assert [model.topic_name(k) for k in range(3)] == ["a", "b", ""]


def test_explanations_average_over_the_chains_that_have_a_topic(corpus):
    model = SLDAClassifier(**RUN, words=False).fit(corpus.X, corpus.y)
    found, posterior = model.explain(corpus.X[:1]), model.posterior_
    assert found.topics.shape == (5, 1)
    everywhere = posterior.consensus.has.all()
    if everywhere:  # then the parts of all topics sum to what the topics add
        assert found.topics.sum() == pytest.approx(found.through_topics.sum())
    shares = model.transform(corpus.X[:1])[0]
    assert np.abs(found.topic_shares / found.topic_shares.sum() - shares).max() < 0.2


def test_every_pair_of_a_posterior_with_one_chain_is_trivial(corpus):
    model = LDA(4, n_chains=1, burn_in=5, n_draws=2, random_state=0).fit(corpus.X)
    assert model.posterior_.consensus.has.all() and np.isnan(model.topic_agreement()).all()
    assert model.match_topics().tolist() == [[0, 1, 2, 3]]
    assert all(a < b for a, b in itertools.pairwise(model.log_joint_iterations_))


def test_chains_that_disagree():
    """Shares are shares, and priors have the same order as everything else, where chains have few topics in common."""
    X = np.random.default_rng(0).poisson(0.3, (200, 100))
    run = {"n_topics": 12, "init": "random", "burn_in": 10, "n_draws": 4, "n_chains": 3, "random_state": 0}
    model = SLDAClassifier(**run, words=False).fit(X, np.arange(200) % 2)
    posterior = model.posterior_
    assert not posterior.consensus.has.all()
    found = model.explain(X[:1])
    assert found.topic_shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.transform(X[:5]).sum(axis=1), 1.0)
    learned = LDA(**run | {"n_topics": 4}, optimize_priors=True).fit(make_corpus(n_topics=4, random_state=0).X)
    assert (learned.match_topics() != np.arange(4)).any()
    for alpha, own, order in zip(
        learned.alpha_, learned.posterior_.topics[0].alpha, learned.match_topics(), strict=True
    ):
        np.testing.assert_array_equal(alpha, own[order])
    assert len(model.topic_frame(min_chains=2)) == (posterior.consensus.n_having >= 2).sum() < 12


@pytest.mark.filterwarnings("ignore:Seed words that are not in the vocabulary")
def test_seeded_topics_without_known_words_are_free(corpus):
    with pytest.warns(UserWarning, match="so that they are free: a, b"):
        model = LDA(**RUN, init="random", seeds={"a": ["zz"], "b": ["zy"]}).fit(
            corpus.X, feature_names=[f"w{i}" for i in range(corpus.X.shape[1])]
        )
    roots = [np.sqrt(model.posterior_.phi(chain)) for chain in range(3)]
    best = linear_sum_assignment(roots[model.best_chain_].T @ roots[0], maximize=True)[1]
    assert best.tolist() == list(range(5))


def test_names_of_topics(corpus):
    words = np.array([f"word{i}" for i in range(corpus.X.shape[1])], dtype=object)
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y, feature_names=words).name_topics({1: "one"})
    texts = np.array([" ".join(np.repeat(words, row)) for row in corpus.X.toarray()], dtype=object)
    names = model.label_topics(corpus.X, texts)
    assert names[1] == "one" and len(set(names.values())) == 5 and all(names.values())
    assert model.label_topics(corpus.X, pandas.Series(texts, index=range(9, 159))) == names
    given = []
    named = model.label_topics(corpus.X, texts, namer=lambda top, documents: given.append((top, documents)) or "x")
    assert named == {0: "x", 1: "one", 2: "x", 3: "x", 4: "x"} and [len(top) for top, _ in given] == [10] * 5
    for k, (_, documents) in enumerate(given):
        assert documents == texts[model.typical_documents(corpus.X, k)["row"]].tolist()
    assert set(model.label_topics()) == set(range(5))
    with pytest.raises(ValueError, match="needs both X and texts"):
        model.label_topics(corpus.X)
    with pytest.raises(ValueError, match="150 documents but there are 3 texts"):
        model.label_topics(corpus.X, texts[:3])
    with pytest.raises(TypeError, match="namer must return text, got 3"):
        model.label_topics(namer=lambda *_: 3)


def test_phrases_are_shown_and_saved(tmp_path):
    texts = ["new york is a city in new york state"] * 12 + ["the old dog runs after a new ball"] * 12
    vectorizer = CountVectorizer(stop_words="english")
    X = vectorizer.fit_transform(texts)
    model = LDA(2, burn_in=5, n_draws=2, random_state=0).fit(X, feature_names=vectorizer.get_feature_names_out())
    assert not any("new york" in row for row in model.top_words(n=4))
    assert any("new york" in row for row in model.learn_phrases(texts, vectorizer).top_words(n=4))
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.top_words(n=4) == model.top_words(n=4)
    assert model.partial_fit(X).top_words(n=4) and model.posterior_.phrases is not None
    for display_words in TopicDisplay.from_estimator(model, n_words=3).words:
        assert set(display_words) <= set(vectorizer.get_feature_names_out())


def small_posterior():
    """Two chains whose topics have orders of their own; the second one does not have the third topic."""
    rng = np.random.default_rng(0)
    model = LDA(3, n_chains=2, burn_in=2, n_draws=2, random_state=0).fit(rng.poisson(0.6, (40, 9)))
    order = np.array([[0, 1, 2], [2, 0, 1]])
    found = replace(model.posterior_, order=order, topic_names={"0": "zero", "1": "one"})
    part = replace(found.topics[0], alpha=rng.gamma(2.0, size=(2, 3)))
    found = replace(found, topics=(part,))
    found.__dict__["consensus"] = Consensus(np.array([[True, True, True], [True, True, False]]))
    return found


def test_shares_are_means_over_the_chains_that_have_a_topic():
    posterior = small_posterior()
    shares = posterior.topics[0].shares
    own = np.array([shares[0], shares[1][[2, 0, 1]]])
    mean = np.array([own[:, 0].mean(), own[:, 1].mean(), own[0, 2]])
    np.testing.assert_allclose(posterior.mean_shares, mean / mean.sum())
    tokens = make_tokens(check_counts(np.random.default_rng(1).poisson(0.6, (4, 9))))
    one, other = (topic_shares(posterior, tokens, chain, Settings(6)) for chain in (0, 1))
    mean = np.column_stack([(one + other)[:, :2] / 2, one[:, 2]])
    found = mean_topic_shares(posterior, tokens, Settings(6))
    np.testing.assert_allclose(found, mean / mean.sum(axis=1, keepdims=True))


def test_the_share_of_a_word_in_topics_is_that_of_all_chains():
    posterior = small_posterior()
    counts = posterior.topics[0].word_topic.sum(axis=0)
    wanted = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(posterior.topics[0].word_shares(), wanted)


def test_names_that_are_taken_away_are_gone():
    posterior = small_posterior()
    assert posterior.named({"0": "", "2": "two"}).topic_names == {"1": "one", "2": "two"}
    assert posterior.topic_names == {"0": "zero", "1": "one"}


def test_every_chain_reads_its_own_topics():
    """Also from a file, of which only the rows of some words are read."""
    part = small_posterior().topics[0]
    for chain in (1, 0, 1):
        wanted = mean_topics(part.word_topic[chain], part.n_draws, part.priors(chain))
        found = frozen_topics(part, chain, "cpu")
        np.testing.assert_array_equal(found.phi, wanted.phi)
        np.testing.assert_array_equal(found.alpha, wanted.alpha)
        mapped = map_topics(part.word_topic[chain], part.n_draws, part.priors(chain)).of_words(np.array([2, 7]))
        rows = wanted.phi.reshape(9, -1)[[2, 7]].ravel()
        np.testing.assert_array_equal(mapped.phi, rows)
        np.testing.assert_allclose(mapped.alpha, wanted.alpha)
