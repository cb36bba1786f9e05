"""Priors with content: seed words, another model, earlier batches; and how many topics there should be."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import digamma
from sklearn.base import clone, is_classifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import naive
from small import Machines, plan_of, z_of
from supertopic import (
    LDA,
    MedLDAClassifier,
    Prior,
    Seeds,
    SLDAClassifier,
    SLDACountRegressor,
    SLDARegressor,
    choose_topics,
    load,
    save,
)
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import fit as fit_room
from supertopic.inference.beside import Part, Past, Seen, carry, discounted_past, learn_beside
from supertopic.inference.shrinkage import TOPICS, HeldOutDraws, estimate_shrinkage
from supertopic.kernels.draws import make_key
from supertopic.model.linear import Dictionary
from supertopic.model.posterior import Carryover
from supertopic.model.priors import Earlier, chain_priors, match_words, whole_counts
from supertopic.model.responses import Gaussian, Logistic, NegativeBinomial
from supertopic.model.seeds import Seeding, count_words
from supertopic.model.state import Priors, Statistics, WeightPriors, no_statistics
from supertopic.sampling import counts as topics
from supertopic.sampling import plan as plans
from supertopic.sampling.gibbs import draw_eta, iterate, learn_priors, log_joint, log_weights
from supertopic.sampling.pool import Pool
from supertopic.sampling.threads import ThreadEngine
from supertopic.storage.model_file import write_carryover

QUICK = {"burn_in": 10, "n_draws": 5, "n_chains": 2, "random_state": 0}
RNG = np.random.default_rng(0)
DOCS = [RNG.integers(0, 6, n).tolist() for n in (9, 4, 0, 7, 12, 5)]
PSEUDO_COUNTS = RNG.integers(0, 9, (6, 3)).astype(np.int32)
PRIORS = Priors(np.array([0.3, 0.5, 0.2]), 0.4, 1.3)


def known_weights():
    """A prior of eta, as statistics."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(1, 3, 3))
    precision = np.array([(a @ a.T)[np.tril_indices(3)] for a in A]).T
    return Statistics(precision, rng.normal(size=(3, 1)))


def problem(sampler="collapsed", n_shards=1):
    y = np.array([[1.0], [0], [1], [0], [1], [0]])
    return plan_of(DOCS, 6, Logistic(2.0), make_target(y, np.ones_like(y)), PRIORS, sampler, n_shards)


def test_the_log_joint_knows_pseudo_counts():
    plan, source = problem()
    engine, known = ThreadEngine(plan, source, 1, pseudo_counts=PSEUDO_COUNTS), known_weights()
    engine.start(make_key(1))
    eta, _, response = iterate(engine, engine.statistics(), known, plan.response, PRIORS, make_key(2))
    z = np.split(z_of(engine).astype(int), np.cumsum([len(words) for words in DOCS])[:-1])
    omega = naive.zbars(z, 3) @ eta.T
    lower = np.zeros((3, 3))
    lower[np.tril_indices(3)] = known.precision[:, 0]
    A = lower + np.tril(lower, -1).T + np.eye(3) / PRIORS.nu2
    centred = eta[0] - np.linalg.solve(A, known.shift[:, 0])
    density = 0.5 * np.linalg.slogdet(A)[1] - 1.5 * np.log(2 * np.pi) - 0.5 * centred @ A @ centred
    expected = naive.log_words(DOCS, z, 6, 3, PRIORS.beta, PSEUDO_COUNTS) + naive.log_documents(z, PRIORS.alpha)
    expected += naive.logistic(2.0)(source.target.y, omega).sum() + density
    assert log_joint(engine, eta, response, PRIORS, known) == pytest.approx(expected, rel=1e-10)
    nothing = no_statistics(3, 1)
    assert log_weights(eta, 1.3, nothing) == pytest.approx(log_weights(eta, 1.3, None))


def test_learned_priors_go_uphill():
    """The step in beta by its definition, and steps of it never make the words less likely."""
    plan, source = problem()
    engine, priors, values = ThreadEngine(plan, source, 1, pseudo_counts=PSEUDO_COUNTS), PRIORS, []
    engine.start(make_key(1))
    z = np.split(z_of(engine).astype(int), np.cumsum([len(words) for words in DOCS])[:-1])
    count = PSEUDO_COUNTS.astype(float)
    for words, topic in zip(DOCS, z, strict=True):
        np.add.at(count, (words, topic), 1)
    beta, mass, before = PRIORS.beta, count.sum(axis=0), PSEUDO_COUNTS.sum(axis=0)
    grown = (digamma(count + beta) - digamma(PSEUDO_COUNTS + beta)).sum()
    whole = 6 * (digamma(mass + 6 * beta) - digamma(before + 6 * beta)).sum()
    assert learn_priors(engine, PRIORS).beta == pytest.approx(beta * grown / whole)
    for _ in range(30):
        values.append(naive.log_words(DOCS, z, 6, 3, priors.beta, PSEUDO_COUNTS))
        priors = learn_priors(engine, priors)
    assert (np.diff(values) > -1e-9).all()


@pytest.mark.parametrize("sampler", ["drawn", "delayed", "delayed, sparse"])
def test_two_machines_count_pseudo_counts_once(sampler, monkeypatch):
    """Replicas that exchange their changes have the counts, and the topics, of one address space."""
    name, _, sparse = sampler.partition(", ")
    monkeypatch.setattr(plans, "SPARSE_FROM", 1 if sparse else 10**6)
    monkeypatch.setattr(topics, "DENSE", 0)
    plan, source = problem(name, 2)
    one = ThreadEngine(plan, source, 1, pseudo_counts=PSEUDO_COUNTS)
    with Machines(plan, source, [slice(i, i + 1) for i in range(2)], 1, PSEUDO_COUNTS) as machines:
        eta = draw_eta(no_statistics(3, 1), 1.0, make_key(3))
        one.start(make_key(1))
        machines.in_turn("start", make_key(1))
        for i in range(3):
            one.sweep(eta, PRIORS, make_key(4, i), True)
            machines.in_turn("sweep", eta, PRIORS, make_key(4, i), True)
            for replica in machines.replicas:
                np.testing.assert_array_equal(replica.counts.word_topic, one.counts.word_topic)
                np.testing.assert_array_equal(replica.counts.tokens, one.counts.tokens)
                assert replica.counts.log_words(0.4) == one.counts.log_words(0.4)
        np.testing.assert_array_equal(one.counts.tokens, one.counts.word_topic.sum(axis=0)[:3])
        np.testing.assert_array_equal(one.counts.summed, machines.replicas[1].counts.summed)


def test_smooth_topics_know_pseudo_counts(monkeypatch):
    monkeypatch.setattr(plans, "SPARSE_FROM", 1)
    monkeypatch.setattr(topics, "DENSE", 0)
    engine = ThreadEngine(*problem("delayed"), 1, pseudo_counts=PSEUDO_COUNTS)
    engine.start(make_key(1))
    found = engine.counts.topics(PRIORS, make_key(2))
    phi = (engine.counts.word_topic[:, :3] + PRIORS.beta) / (engine.counts.tokens + 6 * PRIORS.beta)
    np.testing.assert_allclose(found.smooth, phi @ PRIORS.alpha, rtol=1e-5)


def counts_of(model):
    """The counts of a model with one set of topics, summed over the draws: (chain, V, K)."""
    (topics,) = model.posterior_.topics
    return topics.word_topic


def planted(n_docs=150, seed=0):
    """Documents of two kinds in two ways: by their first words (a or b) and by their last (c or d).

    Two topics can be about a and b, or about c and d: two solutions that are equally likely.
    """
    rng = np.random.default_rng(seed)
    first, last = rng.integers(0, 2, (2, n_docs))
    X = np.zeros((n_docs, 20), int)
    for d in range(n_docs):
        np.add.at(X[d], 5 * first[d] + rng.integers(0, 5, 10), 1)
        np.add.at(X[d], 10 + 5 * last[d] + rng.integers(0, 5, 10), 1)
    return X, first, last, [f"{kind}{i}" for kind in "abcd" for i in range(5)]


@pytest.mark.parametrize("kinds", [("ab", 0), ("cd", 1)])
def test_seeds_choose_between_equal_solutions(kinds):
    X, *truths, names = planted()
    seeds = {kind: [f"{kind}0", f"{kind}1"] for kind in kinds[0]}
    for seed in range(3):
        model = LDA(2, seeds=Seeds(seeds, strength=2.0), burn_in=30, random_state=seed).fit(X, feature_names=names)
        assert model.topic_names_ == {"0": kinds[0][0], "1": kinds[0][1]}
        share = model.doc_topic_[:, 1]
        apart = [abs(np.corrcoef(share, truth)[0, 1]) for truth in truths]
        assert apart[kinds[1]] > 0.95 and apart[1 - kinds[1]] < 0.5
        assert np.corrcoef(share, truths[kinds[1]])[0, 1] > 0.9  # and which topic is which


@pytest.mark.parametrize("sampler", ["collapsed", "drawn", "delayed"])
def test_pseudo_counts_are_those_of_the_seeds(sampler):
    X, _, _, names = planted()
    model = LDA(3, seeds=Seeds([["a0", "a0", "b1"], ["b1"]], strength=0.5), sampler=sampler, **QUICK)
    model.fit(X, feature_names=names)
    total = X.sum(axis=0)
    tokens = counts_of(model).sum(axis=2) / 5
    expected = total.astype(float)
    expected[0] += round(0.5 * total[0])
    expected[6] += 2 * round(0.5 * total[6])  # a word may be in two topics
    np.testing.assert_allclose(tokens, np.tile(expected, (2, 1)))
    assert model.posterior_.shares.sum(axis=1) == pytest.approx(1.0)
    seen = model.doc_topic_.mean(axis=0)  # every document has 20 tokens
    np.testing.assert_allclose(model.posterior_.mean_shares, seen, atol=0.01)


def test_the_documents_say_how_far_a_seed_belongs_to_its_topic():
    """Strength "auto": as many pseudo-tokens as tokens that the topic has at the start, or had in earlier batches."""
    X, _, _, names = planted()
    seeds = Seeds([["a0", "a1"], ["b0", "b1"]])
    model = LDA(2, seeds=seeds, **QUICK).fit(X, feature_names=names)
    total = X.sum(axis=0)
    extra = counts_of(model).sum(axis=2)[0] / 5 - total
    assert not extra[[2, 3, 4, 7, 8, 9]].any()
    assert (extra[[0, 1, 5, 6]] <= total[[0, 1, 5, 6]]).all() and (
        extra[[0, 1, 5, 6]] > 0.4 * total[[0, 1, 5, 6]]
    ).all()
    mixed = LDA(2, seeds=Seeds([["a0", "b0"], ["a1", "b1"]]), **QUICK).fit(X, feature_names=names)
    believed = counts_of(mixed).sum(axis=2)[0] / 5 - total
    assert believed[[0, 1, 5, 6]].sum() < 0.75 * extra[[0, 1, 5, 6]].sum()  # these do not go together
    at_random = LDA(2, seeds=seeds, init="random", **QUICK).fit(X, feature_names=names)
    np.testing.assert_allclose(counts_of(at_random).sum(axis=2)[0][0] / 5 - total[0], round(0.1 * total[0]))
    model.partial_fit(X, discount=0.0)
    again = counts_of(model).sum(axis=2)[0] / 5 - total
    assert (np.abs(again - extra)[[0, 1, 5, 6]] < 0.5 * total[[0, 1, 5, 6]]).all() and (again[[0, 5]] > 0).all()


def test_prior_means_of_seeds_fade_with_known_responses():
    X, first, _, names = planted()
    seeds = {"no": ["a0", "a1"], "yes": ["b0", "b1"]}
    wrong = {"yes": ["a0", "a1"], "no": ["b0", "b1"]}
    y = np.array(["no", "yes"], object)[first]
    for n, least in ((0, None), (20, 0.9)):
        few = np.where(np.arange(150) < n, y, None)
        for words in (seeds, wrong):
            model = SLDAClassifier(2, seeds=words, held_out=0, words=False, **QUICK)
            model.partial_fit(X, few, classes=["no", "yes"], feature_names=names)
            right = model.score(X[20:], y[20:].astype(str))
            assert right > least if least else (right > 0.9) == (words is seeds)


def test_seeds_in_two_words_and_numbers(tmp_path):
    """A DataFrame has names, numbers need none, and a file keeps seeds and names."""
    X, _, _, names = planted()
    a = LDA(2, seeds={"x": ["a0"]}, **QUICK).fit(pd.DataFrame(X, columns=names))
    b = LDA(2, seeds=[[0]], **QUICK).fit(X)
    c = LDA(2, seeds={"x": ["a0"]}, **QUICK).fit(X, feature_names=names)
    np.testing.assert_array_equal(counts_of(a), counts_of(b))
    np.testing.assert_array_equal(counts_of(a), counts_of(c))
    assert (a.topic_name(0), b.topic_name(0)) == ("x", "") and c.top_words(n=1)[0][0] in names
    save(c, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.seeds == {"x": ["a0"]} and again.topic_names_ == {"0": "x"}
    assert again.vocabulary_.tolist() == names
    np.testing.assert_array_equal(again.posterior_.shares, c.posterior_.shares)
    np.testing.assert_array_equal(counts_of(again.partial_fit(X)), counts_of(c.partial_fit(X)))


WRONG = {
    "text": ("seeds must be", {"seeds": "a0"}),
    "nothing": ("at least one word", {"seeds": {"x": []}}),
    "a word": ("at least one word", {"seeds": {"x": "a0"}}),
    "numbers": ("hold words", {"seeds": [[1.5]]}),
    "many": ("more than n_topics=2", {"seeds": [["a0"], ["b0"], ["c0"]]}),
    "column": ("not one of the 20", {"seeds": [[20]]}),
    "strength": ("strength must be", {"seeds": Seeds([["a0"]], strength=0)}),
    "strong": ("strength must be", {"seeds": Seeds([["a0"]], strength=1e9)}),
    "discount": ("discount must be", {"prior": Prior(LDA(2), discount=1.1)}),
    "prior": ("prior must be", {"prior": "model"}),
    "unfitted": ("not fitted", {"prior": LDA(2)}),
    "pull": ("is not the name of a topic", {"seeds": Seeds({"x": ["a0"]}, weights={"y": "1"})}),
    "class": ("is not one of the classes", {"seeds": Seeds({"x": ["a0"]}, weights={"x": "red"})}),
    "kind": ("weights must be", {"seeds": Seeds({"x": ["a0"]}, weights=3)}),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_priors_are_refused(case):
    X, y, _, names = planted()
    message, options = WRONG[case]
    with pytest.raises(ValueError, match=message):
        SLDAClassifier(2, **QUICK, **options).fit(X, y, feature_names=names)


@pytest.mark.parametrize("kind", [LDA, SLDAClassifier])
def test_a_wrong_discount_of_a_batch_is_refused(kind):
    X, y, _, _ = planted()
    for wrong in (1.1, -0.1, "all", True, np.nan):
        with pytest.raises(ValueError, match="discount must be"):
            kind(2, **QUICK).partial_fit(X, y, discount=wrong)


@pytest.mark.filterwarnings("ignore:Seed words that are not in the vocabulary")
def test_more_hostile_seeds(monkeypatch):
    X, _, _, names = planted()
    with pytest.raises(ValueError, match="X has no names"):
        LDA(2, seeds=[["a0"]]).fit(X)
    with pytest.raises(ValueError, match="a word twice"):
        LDA(2).fit(X, feature_names=["a"] * 20)
    with pytest.raises(ValueError, match="5 names"):
        LDA(2).fit(X, feature_names=names[:5])
    with pytest.warns(UserWarning, match=r"not in the vocabulary: 'A0' \('a0' is\), 'w0'.* and 9996 more") as warned:
        LDA(2, seeds=[["A0", *(f"w{i}" for i in range(10_000)), "a0"]], **QUICK).fit(X, feature_names=names)
    assert warned[0].filename == __file__
    with pytest.warns(UserWarning, match="so that they are free: x"):
        model = LDA(2, seeds={"x": ["no"]}, **QUICK).fit(X, feature_names=names)
    assert model.topic_name(0) == "x"
    monkeypatch.setattr("supertopic.model.seeds.MOST_STRENGTH", 1e12)
    with pytest.raises(ValueError, match="Tokens and pseudo-counts"):
        LDA(2, seeds=Seeds([["a0"]], strength=1e9)).fit(X, feature_names=names)


@pytest.mark.parametrize("multiclass", ["shared", "separate", "stick_breaking"])
def test_seeds_pull_to_classes(multiclass):
    """With no label of a class but that it exists, its seeds show which documents are its own."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, 300)
    X = sp.csr_array(rng.poisson(0.15 + 1.5 * (np.arange(30) // 10 == kind[:, None])))
    seeds = {name: [f"w{10 * i}", f"w{10 * i + 1}"] for i, name in enumerate("xyz")}
    y = np.full(300, None, object)
    model = SLDAClassifier(4, multiclass=multiclass, seeds=seeds, held_out=0, words=False, **QUICK)
    model.partial_fit(X, y, classes=["x", "y", "z"], feature_names=[f"w{i}" for i in range(30)])
    assert model.score(X, np.array(list("xyz"))[kind]) > 0.75
    blind = SLDAClassifier(4, multiclass=multiclass, seeds=Seeds(seeds, weights=None), held_out=0, words=False, **QUICK)
    blind.partial_fit(X, y, classes=["x", "y", "z"], feature_names=[f"w{i}" for i in range(30)])
    assert blind.score(X, np.array(list("xyz"))[kind]) < 0.7


def test_seeds_pull_to_two_classes_and_numbers():
    X, first, _, names = planted()
    seeds = {"no": ["a0", "a1"], "yes": ["b0", "b1"]}
    for kind in (SLDAClassifier, MedLDAClassifier):
        model = kind(2, seeds=seeds, held_out=0, words=False, **QUICK)
        model.partial_fit(X, None, classes=["no", "yes"], feature_names=names)
        assert model.score(X, np.array(["no", "yes"])[first]) > 0.9
    rng = np.random.default_rng(0)
    for kind, y in ((SLDARegressor, 3.0 * rng.normal(size=150)), (SLDACountRegressor, rng.poisson(2.0, 150))):
        pulled = {"no": -2.0, "yes": 2.0}
        few = np.where(np.arange(150) < 3, y, np.nan)
        model = kind(2, seeds=Seeds(seeds, weights=pulled), held_out=0, words=False, **QUICK).fit(
            X, few, feature_names=names
        )
        assert np.corrcoef(model.predict(X), first)[0, 1] > 0.8
        with pytest.raises(ValueError, match="must be a number"):
            kind(2, seeds=Seeds(seeds, weights={"no": "low"}), **QUICK).fit(X, few, feature_names=names)


def test_a_prior_with_another_vocabulary():
    """Topics go where their words are; what is not known is left out, and discount says how much they count."""
    X, _, _, names = planted()
    prior = LDA(2, seeds=Seeds([["a0", "a1"], ["b0", "b1"]], strength=2.0), **QUICK).fit(X, feature_names=names)
    rng = np.random.default_rng(0)
    order = rng.permutation(25)
    wider = np.hstack([X, rng.poisson(0.3, (150, 5))])[:, order]
    new = np.array([*names, *(f"new{i}" for i in range(5))])[order]
    for discount in (1.0, 0.25):
        model = LDA(3, prior=Prior(prior, discount=discount), **QUICK).fit(wider[:20], feature_names=new)
        known = [list(new).index(name) for name in names]
        extra = counts_of(model).sum(axis=(0, 2))[known] / 10 - wider[:20][:, known].sum(axis=0)
        counts = counts_of(prior).sum(axis=(0, 2)) / 10
        np.testing.assert_allclose(extra.sum(), discount * counts.sum(), rtol=0.02)  # rounded up or down by chance
        np.testing.assert_allclose(extra, discount * counts, atol=4)
    alone = LDA(2, prior=Prior(prior, discount=0.0), **QUICK).fit(X[:20])
    assert counts_of(alone).sum() == 10 * X[:20].sum()
    with pytest.raises(ValueError, match="no word in common"):
        LDA(2, prior=prior, **QUICK).fit(X, feature_names=[f"q{i}" for i in range(20)])
    with pytest.raises(ValueError, match="20 words, X has 25"):
        LDA(2, prior=prior, **QUICK).fit(wider)
    with pytest.raises(ValueError, match="more than n_topics=1"):
        LDA(1, prior=prior, **QUICK).fit(X)


def test_pipelines_are_priors_and_clones_keep_them():
    texts = ["goal match team win", "vote law senate party", "team win goal", "law party vote"] * 8
    prior = make_pipeline(CountVectorizer(), LDA(2, **QUICK)).fit(texts)
    vectorizer = CountVectorizer().fit([*texts, "penalty"])
    X, y, names = vectorizer.transform(texts), [0, 1, 0, 1] * 8, vectorizer.get_feature_names_out()
    model = SLDAClassifier(2, prior=prior, **QUICK)
    copy = clone(model)
    assert copy.prior is prior and copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    np.testing.assert_array_equal(
        counts_of(copy.fit(X, y, feature_names=names)), counts_of(model.fit(X, y, feature_names=names))
    )
    wrapped = clone(SLDAClassifier(2, prior=Prior(prior, discount=0.5), **QUICK))
    assert wrapped.prior.model is prior and wrapped.prior.discount == 0.5
    wrapped.fit(X, y, feature_names=names)
    place = match_words(prior[0].get_feature_names_out(), names, 8, 9)
    assert (names[place] == prior[0].get_feature_names_out()).all()


def test_weights_of_a_prior():
    """A regressor's weights mean the same whatever the mean and the unit of y are; other responses are refused."""
    corpus = make_corpus(n_docs=300, n_words=60, n_topics=3, doc_length=40, eta=[-3.0, 0.0, 3.0], random_state=0)
    rng = np.random.default_rng(0)
    y = corpus.doc_topic @ [-2.0, 0.0, 2.0] + 0.2 * rng.normal(size=300)
    run = {"held_out": 0, "words": False, "n_chains": 1, "burn_in": 30, "n_draws": 10, "random_state": 0}
    prior = SLDARegressor(3, **run).fit(corpus.X, y)
    few = np.argsort(-y[:100])[::6][:12]  # their mean and spread are others
    truth = corpus.doc_topic[100:] @ [-2.0, 0.0, 2.0]
    fits = {}
    for weights in (False, True):
        model = SLDARegressor(3, prior=Prior(prior, weights=weights), **run).fit(corpus.X[few], y[few])
        fits[weights] = np.mean((model.predict(corpus.X[100:]) - truth) ** 2)
    assert fits[True] < 0.7 * fits[False] and fits[True] < 0.1
    with pytest.raises(ValueError, match="same kind"):
        SLDACountRegressor(3, prior=Prior(prior, weights=True), **run).fit(corpus.X, np.arange(300) % 3)
    with pytest.raises(ValueError, match="same classes"):
        labels = SLDAClassifier(3, **run).fit(corpus.X, np.arange(300) % 2)
        SLDAClassifier(3, prior=Prior(labels, weights=True), **run).fit(corpus.X, np.arange(300) % 3)
    wider = SLDARegressor(4, prior=Prior(prior, weights=True), **run).fit(corpus.X[few], y[few])
    assert wider.coef_.shape == (1, 4)


def corpus_of(kind, seed=0):
    corpus = make_corpus(
        n_docs=360, n_words=80, n_topics=4, doc_length=40, eta=[-6.0, -2.0, 2.0, 6.0], random_state=seed
    )
    rng, omega = np.random.default_rng(seed), corpus.doc_topic @ [-3.0, -1.0, 1.0, 3.0]
    y = {
        "SLDARegressor": 5.0 + 2.0 * omega + 0.3 * rng.normal(size=360),
        "SLDACountRegressor": rng.poisson(np.exp(omega)),
    }.get(kind.__name__, np.array(["no", "yes"])[(omega > 0).astype(int)])
    return corpus.X, y


KINDS = (SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_come_near_to_a_fit(kind, tmp_path, short_regressions):
    """Three batches, one of them without a response; saved and loaded between two of them, with the same bits."""
    X, y = corpus_of(kind)
    run = {"burn_in": 30, "n_draws": 10, "n_chains": 2, "random_state": 0}
    full = kind(4, **run).fit(X[:270], y[:270]).score(X[270:], y[270:])
    more = {"classes": ["no", "yes"]} if is_classifier(kind()) else {}
    model, scores, same = kind(4, **run), [], None
    for first in (0, 90, 180):
        docs = slice(first, first + 90)
        model.partial_fit(X[docs], y[docs], **more)
        if same:
            np.testing.assert_array_equal(model.predict(X), same.partial_fit(X[docs], y[docs]).predict(X))
        scores.append(model.score(X[270:], y[270:]))
        save(model, tmp_path / "m")
        same = load(tmp_path / "m")
    assert model.n_batches_ == 3 and model.doc_topic_.shape == (90, 4)
    assert scores[-1] > full - 0.2 and scores[-1] > scores[0] - 0.05
    before = model.predict(X)
    model.partial_fit(X[270:])  # words alone
    assert (
        model.n_batches_ == 4
        and np.corrcoef(np.unique(before, return_inverse=True)[1], np.unique(model.predict(X), return_inverse=True)[1])[
            0, 1
        ]
        > 0.8
    )
    model.partial_fit(X[:1], y[:1])  # one document
    assert np.isfinite(np.asarray(model.score(X[270:], y[270:])))


@pytest.mark.parametrize("multiclass", ["separate", "stick_breaking"])
def test_batches_of_several_classes(multiclass, short_regressions):
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, 300)
    X, y = sp.csr_array(rng.poisson(0.15 + 1.5 * (np.arange(30) // 10 == kind[:, None]))), np.array(list("xyz"))[kind]
    model = SLDAClassifier(3, multiclass=multiclass, **QUICK)
    for docs in np.array_split(np.arange(240), 3):
        model.partial_fit(X[docs], y[docs], covariates=rng.normal(size=(80, 1)))
    assert model.score(X[240:], y[240:], covariates=np.zeros((60, 1))) > 0.9


def test_batches_of_labels(short_regressions):
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 2, (300, 3))
    X = sp.csr_array(rng.poisson(0.15 + kind[:, np.arange(30) // 10]))
    frame = pd.DataFrame(kind, columns=list("abc"))
    model = SLDAClassifier(4, **QUICK)
    for docs in np.array_split(np.arange(240), 3):
        model.partial_fit(X[docs], frame.iloc[docs])
    model.partial_fit(X[:50])
    assert model.classes_.tolist() == list("abc") and (model.predict(X[240:]) == kind[240:]).mean() > 0.8


def test_what_changes_is_followed_and_what_is_old_forgotten(short_regressions):
    """The words of the classes change their sides: with a discount the model follows."""
    X, first, _, _ = planted(400)
    options = {"burn_in": 20, "n_draws": 10, "n_chains": 2, "random_state": 0}
    scores = {}
    for discount in (1.0, 0.2):
        model = SLDAClassifier(4, **options)
        for i in range(2):
            model.partial_fit(X[100 * i : 100 * i + 100], first[100 * i : 100 * i + 100], discount=discount)
        stale = model.score(X[300:], 1 - first[300:])
        model.partial_fit(X[200:300], 1 - first[200:300], discount=discount)
        scores[discount] = model.score(X[300:], 1 - first[300:])
    assert stale < 0.1 and scores[0.2] > 0.9 and scores[0.2] >= scores[1.0]


def test_batches_are_refused_and_leave_the_model_alone(monkeypatch, short_regressions):
    X, y = corpus_of(SLDAClassifier)
    with pytest.raises(ValueError, match="requires y"):
        SLDAClassifier(3, **QUICK).partial_fit(X)
    model = SLDAClassifier(3, **QUICK).partial_fit(X[:100], y[:100])
    state, before = dict(vars(model)), model.predict_proba(X)
    for wrong, message in (
        (lambda: model.partial_fit(X[:10], ["red"] * 10), "was not there at first"),
        (lambda: model.partial_fit(X[:10, :5], y[:10]), "features"),
        (lambda: model.partial_fit(X[:10], np.eye(2)[[0] * 10]), "not what earlier batches had"),
        (lambda: model.partial_fit(X[:10], y[:10], classes=["a", "b"]), "since the first batch"),
        (lambda: model.partial_fit(X[:10], y[:10], covariates=np.ones((10, 1))), "covariates"),
        (lambda: model.set_params(n_topics=5).partial_fit(X[:10], y[:10]), "updates a model of 3 topics"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
        model.set_params(n_topics=3)
        assert vars(model).keys() == state.keys()
        np.testing.assert_array_equal(model.predict_proba(X), before)

    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("supertopic.inference.chains.calibrate", stop)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[100:200], y[100:200])
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.n_batches_ == 1
    model.fit(X[:100], y[:100])
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_batch_goes_on_from_its_checkpoint(tmp_path, monkeypatch, short_regressions):
    X, y = corpus_of(SLDAClassifier)
    begin = SLDAClassifier(3, **QUICK).partial_fit(X[:100], y[:100])
    save(begin, tmp_path / "m")
    whole = load(tmp_path / "m").partial_fit(X[100:], y[100:])
    from supertopic.sampling.chain import Chain

    step, steps = Chain.step, []

    def stopping(self):
        steps.append(1)
        if len(steps) > 12:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Chain, "step", stopping)
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path / "m").partial_fit(X[100:], y[100:], checkpoint=tmp_path / "c", checkpoint_every=0)
    monkeypatch.undo()
    again = load(tmp_path / "m").partial_fit(X[100:], y[100:], checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match="checkpoint of another fit"):
        again.partial_fit(X[100:], y[100:], checkpoint=tmp_path / "c")


def test_threads_and_sampler_of_batches(short_regressions):
    X, y = corpus_of(SLDAClassifier)
    for sampler in ("delayed", "drawn"):
        models = [SLDAClassifier(3, sampler=sampler, n_jobs=n, **QUICK) for n in (1, 3)]
        for model in models:
            model.partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
        np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


def test_pseudo_counts_are_right_on_average():
    X, _, _, _ = planted()
    model = LDA(2, **QUICK).fit(X)
    posterior, draws = model.posterior_, []
    for n_batches in range(400):
        earlier = Earlier(replace(posterior, n_batches=n_batches), np.arange(20), 0.35, True, True)
        draws.append(whole_counts(posterior.topics[0], 1, earlier, None, [posterior.seed, 4, 1]))
    mean = counts_of(model)[1] / 5
    score = (np.mean(draws, axis=0) - 0.35 * mean) / (0.5 / np.sqrt(400))
    assert np.abs(score).max() < 5 and np.ptp(draws, axis=0).max() == 1


def test_a_words_weight_is_carried():
    rng = np.random.default_rng(0)
    old, new = (
        Dictionary(np.array([1, 3, 4]), np.array([1.0, 2.0, 3.0])),
        Dictionary(np.array([0, 3, 4]), np.array([1.5, 4.0, 1.5])),
    )
    past = Past(rng.normal(size=(3, 2)), rng.exponential(size=(3, 2)), 5.0)
    found = carry(past, old, new)
    np.testing.assert_allclose(found.theta[1:] * new.idf[1:, None], past.theta[1:] * old.idf[1:, None])
    sd = [p**-0.5 for p in (found.precision[1:], past.precision[1:])]
    np.testing.assert_allclose(sd[0] * new.idf[1:, None], sd[1] * old.idf[1:, None])
    assert not found.theta[0].any() and not found.precision[0].any() and found.penalty == 5.0
    np.testing.assert_allclose(carry(past, old, old).theta, past.theta)


def test_a_past_whose_documents_count_for_less():
    """What the documents say, without the prior, stays the same; it weighs half as much, or nothing."""
    rng = np.random.default_rng(0)
    past = Past(rng.normal(size=(3, 2)), rng.exponential(size=(3, 2)), 5.0)
    half, none = discounted_past(past, 0.5), discounted_past(past, 0.0)
    alone = [p.theta * (p.precision + 1 / 5.0) / p.precision for p in (past, half)]
    np.testing.assert_allclose(*alone)
    np.testing.assert_allclose(half.precision, 0.5 * past.precision)
    assert not none.theta.any() and not none.precision.any() and none.penalty == half.penalty == 5.0
    np.testing.assert_allclose(discounted_past(past, 1.0).theta, past.theta)
    assert not np.isnan(discounted_past(past._replace(penalty=0.0, theta=0.0 * past.theta), 0.5).theta).any()


@pytest.mark.parametrize("response", [Gaussian(1.0, np.ones(2)), NegativeBinomial(1.0, np.ones(2))])
def test_a_parameter_that_was_learned(response):
    """Its prior has the mean and the spread of the draws, and is never firmer than so many documents can make it."""
    rng, draws = np.random.default_rng(0), np.random.default_rng(1).gamma(50.0, [0.1, 0.02], (4000, 2))
    if isinstance(response, Gaussian):
        draws = 98.0 * np.array([0.1, 0.02]) / np.random.default_rng(1).gamma(102.0, 1.0, (4000, 2))  # of 200 documents
    n_docs = np.full(2, 200.0)
    learned = response.with_carried_scale(draws, n_docs, 1.0)
    values = rng.gamma(learned.shape, 1.0 / learned.rate, (40_000, 2))
    if isinstance(response, Gaussian):
        values = 1.0 / rng.gamma(learned.shape, 1.0 / learned.rate, (40_000, 2))
    np.testing.assert_allclose(values.mean(axis=0), draws.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(values.std(axis=0), draws.std(axis=0), rtol=0.05)
    wide = response.with_carried_scale(draws, 0.1 * n_docs, 0.1)
    assert (wide.shape < learned.shape).all()
    single = response.with_carried_scale(draws[:1], n_docs, 1.0)  # one draw has no spread, but is not certain
    assert (single.shape <= 0.5 * n_docs + 2.0).all() and np.isfinite(single.rate).all()
    forgotten = response.with_carried_scale(draws, 0.0 * n_docs, 0.0)
    np.testing.assert_array_equal(forgotten.shape, response.shape * np.ones(2))


def test_count_words():
    X, _, _, _ = planted()
    from supertopic.corpus.source import no_target
    from supertopic.corpus.tokens import check_counts, make_tokens

    source = Arrays(make_tokens(check_counts(sp.csr_array(X))), no_target(len(X)))
    np.testing.assert_array_equal(count_words(source, 20), X.sum(axis=0))


CHOOSE = {"burn_in": 15, "n_draws": 5, "n_chains": 1}


@pytest.mark.parametrize("kind", [LDA, *KINDS])
def test_choose_topics(kind):
    X, y = corpus_of(kind)
    given, model = () if kind is LDA else (y,), kind() if kind is LDA else kind(words=False)  # words need no topics
    found = choose_topics(model, X, *given, n_topics=(8, 1, 4), **CHOOSE)
    assert [row["n_topics"] for row in found.rows] == [1, 4, 8] and found.n_docs == 72
    assert found.chosen in (4, 8) and found.chosen <= found.best
    (marked,) = [line for line in repr(found).splitlines() if line.startswith(">")]
    assert marked.split()[1] == str(found.chosen) and len(found.frame()) == 3
    best = next(row for row in found.rows if row["n_topics"] == found.best)
    assert best["loss_more"] == 0.0 and all(row["loss_more"] >= 0 for row in found.rows)
    assert all(-1 <= row["coherence"] <= 1 and 0 <= row["exclusivity"] <= 1 for row in found.rows)
    again = choose_topics(model, X, *given, n_topics=(4,), **CHOOSE)
    assert again.rows[0]["loss"] == found.rows[1]["loss"]


def test_the_smallest_within_one_standard_error():
    from supertopic.estimators.choose import Choice

    rng = np.random.default_rng(0)
    noise = rng.normal(size=100)
    beside = rng.normal(size=100)
    losses = {2: 1.0 + noise, 3: 0.05 + noise, 4: 0.05 + noise + beside - beside.mean(), 8: noise, 16: noise + 0.5}
    rows = [{"n_topics": k, "loss": losses[k].mean()} for k in losses]
    found = Choice(rows, losses, "accuracy", 100)
    assert found.best == 8 and found.chosen == 4  # what all share is no error of the difference


def test_choose_refuses_and_knows_what_is_unknown():
    X, y = corpus_of(SLDAClassifier)
    y = np.where(np.arange(360) < 200, y, None)
    found = choose_topics(SLDAClassifier(), X, y, (2,), **CHOOSE)
    assert found.n_docs == 40
    for wrong, message in (
        ({"n_topics": ()}, "whole numbers"),
        ({"n_topics": (0,)}, ">= 1"),
        ({"test_size": 1.5}, "between"),
    ):
        with pytest.raises(ValueError, match=message):
            choose_topics(SLDAClassifier(), X, y, **wrong)
    with pytest.raises(ValueError, match="nothing to compare on"):
        choose_topics(SLDAClassifier(), X, np.full(360, None), (2,))


def test_the_figure_of_a_choice():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = corpus_of(SLDAClassifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        display = choose_topics(SLDAClassifier(), X, y, (1, 2), **CHOOSE).plot()
    assert len(display.figure_.axes) == 2 and str(display.chosen) in display.ax_.get_legend_handles_labels()[1][0]


def test_shrinkage_goes_on():
    """Held-out documents of two batches, one after the other, are worth what all of them are at once."""
    rng = np.random.default_rng(0)
    y = (rng.random((60, 1)) < 0.5).astype(float)
    draws = HeldOutDraws((2 * y - 1)[None] * rng.normal(1.0, 1.0, (8, 60, 1)), np.zeros((0, 60, 1)))
    parts = [slice(0, 25), slice(25, 60)]

    def estimate(docs, earlier=None):
        part = HeldOutDraws(*(array[:, docs] for array in draws))
        target = make_target(y[docs], np.ones_like(y[docs]))
        return estimate_shrinkage(Logistic(1.0), target, [part], np.zeros((8, 0)), earlier=earlier)

    whole, second = estimate(slice(None)), estimate(parts[1], estimate(parts[0]).grids)
    np.testing.assert_allclose(second.grids[TOPICS], whole.grids[TOPICS])
    np.testing.assert_allclose(second.posteriors[TOPICS][1], whole.posteriors[TOPICS][1])


def test_seeds_do_not_fade():
    """After batches that count for nothing, seeds are there as they were."""
    X, _, _, names = planted()
    seeds = Seeds([["a0"], ["b0"]], strength=1.0)
    model = LDA(2, seeds=seeds, **QUICK).partial_fit(X, feature_names=names, discount=0.0)
    model.partial_fit(X[:10], discount=0.0).partial_fit(X[:10], discount=0.0)
    extra = counts_of(model).sum(axis=2)[0] / 5 - X[:10].sum(axis=0)
    expected = np.zeros(20)
    expected[[0, 5]] = X[:10].sum(axis=0)[[0, 5]]
    np.testing.assert_allclose(extra, expected)
    model = LDA(2, seeds=seeds, **QUICK).partial_fit(X, feature_names=names).partial_fit(X)
    tokens = counts_of(model).sum(axis=2)[0] / 5  # of both batches, and the seeds once
    total = X.sum(axis=0)
    np.testing.assert_allclose(tokens[[0, 5, 6]], [3 * total[0], 3 * total[5], 2 * total[6]], atol=2)


def test_a_checkpoint_with_other_counts_is_refused(tmp_path):
    X, y = corpus_of(SLDAClassifier)
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    SLDAClassifier(3, **QUICK).fit(X, y, **options)
    from supertopic.storage.container import read_file, write_file

    header, tensors = read_file(tmp_path / "c" / "chain-0", "supertopic checkpoint")
    for wrong in (tensors["word_topic"][:-1], tensors["word_topic"] - 1, tensors["word_topic"].astype(float)):
        write_file(tmp_path / "c" / "chain-0", header, tensors | {"word_topic": np.ascontiguousarray(wrong)})
        with pytest.raises(ValueError, match="does not fit"):
            SLDAClassifier(3, **QUICK).fit(X, y, **options)


def test_words_that_a_batch_lacks_stay_as_they_were():
    rng = np.random.default_rng(0)
    x = sp.csr_array(np.hstack([rng.random((40, 2)), np.zeros((40, 1))]))
    y = rng.normal(size=(40, 1))
    target, none = make_target(y, np.ones_like(y)), make_target(y[:0], y[:0])
    past = Past(np.array([[0.3], [-0.2], [1.5]]), np.array([[2.0], [3.0], [4.0]]), 5.0)
    seen, nothing = Seen(np.arange(40), target), Seen(np.zeros(0, int), none)
    now = learn_beside([Part(x, past)], seen, nothing, Gaussian(1.0, np.ones(1)), Pool(1)).past[0]
    assert now.theta[2] == pytest.approx(1.5) and now.precision[2] == 4.0 and now.penalty == 5.0
    np.testing.assert_allclose(
        now.precision[:2, 0], past.precision[:2, 0] + (x.toarray()[:, :2] ** 2).sum(axis=0), rtol=1e-6
    )
    dense, pull = x.toarray()[:, :2], past.precision[:2, 0] + 1.0 / 5.0
    exact = np.linalg.solve(dense.T @ dense + np.diag(pull), dense.T @ y[:, 0] + pull * past.theta[:2, 0])
    np.testing.assert_allclose(now.theta[:2, 0], exact, atol=1e-4)


def test_the_page_shows_seeds_and_batches():
    from supertopic.report.page import facts

    def facts_of(model):
        return facts(model.posterior_, type(model).__name__, 9, 9, "")

    X, y, _, names = planted()
    seeds = Seeds({"first": ["a0"], "last": ["c0"]}, strength=1.0)
    model = SLDAClassifier(2, seeds=seeds, **QUICK).fit(X, y, feature_names=names)
    total = X[:, [0, 10]].sum()
    assert facts_of(model)["Prior"] == f"{total:,} pseudo-counts in each chain; named topics: first, last"
    assert "Batches" not in facts_of(model) and facts_of(model.partial_fit(X, y))["Batches"].startswith("2; ")
    assert "Prior" not in facts_of(SLDAClassifier(2, **QUICK).fit(X, y))


def test_ratings_without_noise_in_batches():
    """Statistics of y without noise are large, and nearly singular: what is kept of them must stay positive."""
    X, _ = corpus_of(SLDARegressor)
    y = np.asarray(X[:, 0].todense()).ravel() * 1.0
    model = SLDARegressor(12, held_out=0, words=False, **QUICK)
    for _ in range(4):
        model.partial_fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    rng = np.random.default_rng(0)
    x = rng.dirichlet(np.ones(3), 50)
    moment = 1e9 * x.T @ x
    moment[:, 2] = moment[:, 0] + moment[:, 1]  # one direction of which nothing is known
    moment[2] = moment[0] + moment[1]
    moment[2, 2] = moment[:2, :2].sum()
    packed = moment[np.tril_indices(3)][:, None]
    statistics = Statistics(packed, np.zeros((3, 1)))
    tensors = write_carryover(Carryover(weights=((WeightPriors(*[statistics] * 3),),)))
    for kind in WeightPriors._fields:
        kept = Statistics(*(tensors[f"carryover.weights.0.{kind}.{part}"][0] for part in Statistics._fields))
        assert np.isfinite(draw_eta(kept, 100.0, make_key(1))).all()
        np.testing.assert_array_equal(kept.precision, packed)


@pytest.mark.parametrize("number", [1e-200, 0.0, 500.0, -500.0])
def test_numbers_that_seeds_may_pull_to(number):
    X, _, _, names = planted()
    y = np.where(np.arange(150) < 5, np.arange(150.0), np.nan)
    model = SLDARegressor(2, seeds=Seeds({"a": ["a0"]}, weights={"a": number}), held_out=0, words=False, **QUICK)
    assert np.isfinite(model.fit(X, y, feature_names=names).predict(X)).all()
    with pytest.raises(ValueError, match="standard deviations"):
        model.set_params(seeds__weights={"a": 1e300}).fit(X, y, feature_names=names)


def test_every_batch_holds_out_and_draws_anew(monkeypatch, short_regressions):
    """The same documents three times: other ones are held out, and chains have streams of their own."""
    X, y = corpus_of(SLDAClassifier)
    seeds, real = [], fit_room.run_chains
    monkeypatch.setattr(
        fit_room, "run_chains", lambda *more: seeds.append([plan.seed for plan in more[1]]) or real(*more)
    )
    held_out, model = [], SLDAClassifier(3, words=False, **QUICK | {"burn_in": 2, "n_draws": 2})
    for _ in range(3):
        model.partial_fit(X[:90], y[:90])
        held_out.append(model.posterior_.held_out_docs.tolist())
    assert len({tuple(docs) for docs in held_out}) == len({own for (own,) in seeds}) == 3
    assert [len(docs) for docs in held_out] == [len(held_out[0])] * 3


def test_pseudo_counts_of_sets_and_chains_are_rounded_apart():
    """Sets of topics that are alike: each is rounded by numbers of its own, and all of them by up to one."""
    X, _ = corpus_of(SLDAClassifier)
    kind = np.array(list("abc"))[np.arange(60) % 3]
    posterior = SLDAClassifier(2, multiclass="separate", words=False, **QUICK).fit(X[:60], kind).posterior_
    one = replace(posterior.topics[0], word_topic=np.repeat(posterior.topics[0].word_topic[:1], 2, axis=0))
    posterior = replace(posterior, topics=(one,) * 3)
    encoded = posterior.response.encode(kind, np.ones(60))
    corpus = Arrays(make_tokens(check_counts(X[:60])), encoded.target)
    n_words, level = posterior.n_words, np.zeros(3)
    for updates in (False, True):
        earlier = Earlier(posterior, np.arange(n_words), 0.35, False, updates)
        found = chain_priors(corpus, encoded.target, encoded.response, n_words, 2, 2, 1.0, 5, None, earlier, level)
        tables = [prior.pseudo_counts for prior in found]
        assert all((a != b).any() for i, a in enumerate(tables) for b in tables[:i])
        assert all(np.abs(table - 0.35 * one.word_topic[0] / one.n_draws).max() < 1.0 for table in tables)


def test_seeds_fade_with_the_documents_that_chains_see():
    """Held-out ones are not counted, although their words are."""
    X, y = corpus_of(SLDAClassifier)
    encoded = Logistic(2.0).encode(y[:60], np.ones(60))
    corpus, n_words = Arrays(make_tokens(check_counts(X[:60])), encoded.target), X.shape[1]
    seeding = Seeding(Seeds({"yes": [1, 2], "no": [3]}), [[1, 2], [3]], None)
    nothing = encoded.target._replace(weight=np.zeros((60, 1)))
    rest = n_words, 2, 1, 1.0, 5, seeding, None, np.zeros(1)
    all_of_them, none = (chain_priors(corpus, seen, encoded.response, *rest)[0] for seen in (encoded.target, nothing))
    np.testing.assert_array_equal(all_of_them.pseudo_counts, none.pseudo_counts)
    np.testing.assert_allclose(none.weights.training.shift[:, 0], [6.0, -6.0])
    n = np.bincount(encoded.target.y[:, 0].astype(int))
    np.testing.assert_allclose(all_of_them.weights.training.shift[:, 0], [6.0 / (1.0 + n[1]), -6.0 / (1.0 + n[0])])


def test_seeds_pull_beside_another_model():
    """Whether the other model lends its weights or only its topics; those of earlier batches have it."""
    X, y = corpus_of(SLDAClassifier)
    model = SLDAClassifier(2, words=False, **QUICK).fit(X[:60], y[:60])
    encoded, n_words = model.posterior_.response.encode(y[:60], np.ones(60)), X.shape[1]
    corpus = Arrays(make_tokens(check_counts(X[:60])), encoded.target)
    nothing = encoded.target._replace(weight=np.zeros((60, 1)))
    seeding = Seeding(Seeds({str(encoded.response.classes[1]): [1, 2], "free": [3]}), [[1, 2], [3]], None)
    own = model.posterior_.carryover.weights[0][0].training.shift[:, 0]
    found = {}
    for weights, updates in ((False, False), (True, False), (True, True)):
        earlier = Earlier(model.posterior_, np.arange(n_words), 1.0, weights, updates)
        level = model.posterior_.carryover.level
        more = encoded.response, n_words, 2, 1, 1.0, 5, seeding, earlier, level
        (prior,) = chain_priors(corpus, nothing, *more)
        found[weights, updates] = prior.weights.training.shift[:, 0]
    np.testing.assert_allclose(found[False, False], [6.0, 0.0])
    np.testing.assert_allclose(found[True, False], own + [6.0, 0.0])
    np.testing.assert_allclose(found[True, True], own)


@pytest.mark.parametrize("kind", [SLDARegressor, SLDACountRegressor])
def test_the_prior_of_a_parameter_rests_on_discounted_documents(kind, monkeypatch, short_regressions):
    """All batches before, each as often discounted as batches came after it, and weighted."""
    X, _ = corpus_of(SLDAClassifier)
    y, weight = np.arange(50) % 4 * 1.0, 2.0 ** (np.arange(50) % 3)
    response, calls = (Gaussian if kind is SLDARegressor else NegativeBinomial), []
    real = response.with_carried_scale
    monkeypatch.setattr(response, "with_carried_scale", lambda self, *more: calls.append(more[1:]) or real(self, *more))
    model = kind(2, words=False, **QUICK | {"burn_in": 2, "n_draws": 2})
    for _ in range(3):
        model.partial_fit(X[:50], y, sample_weight=weight, discount=0.5)
    total = weight.sum()
    for (n_docs, discount), wanted in zip(calls, (0.5 * total, 0.75 * total), strict=True):
        assert discount == 0.5
        np.testing.assert_allclose(n_docs, wanted)
