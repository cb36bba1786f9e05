"""Merged topics and banned words: the new model starts from the old one's topics, which stays as it is."""

import itertools
import json
import pickle
import sys
import warnings

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from test_consensus import small_posterior

import supertopic
from supertopic import (
    LDA,
    MedLDAClassifier,
    Seeds,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDACrowdRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    load,
    save,
)
from supertopic.command import cli
from supertopic.estimators.revision import compare_losses, merged_seeds
from supertopic.model.revision import Change, keep_all, revised

K, V, N = 3, 30, 240
WORDS = np.array([f"{a}{b}{a}z" for a in "bdfghk" for b in "aeiou"], dtype=object)  # ten for each topic
QUICK = {"n_chains": 2, "burn_in": 12, "n_draws": 4, "random_state": 1, "predict_sweeps": 10}


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(3)
    phi = np.zeros((K, V))
    for k in range(K):
        phi[k, 10 * k : 10 * k + 10] = rng.dirichlet(np.ones(10))
    phi = 0.97 * phi + 0.03 / V
    shares = rng.dirichlet(np.full(K, 0.4), N)
    X = np.array([rng.multinomial(40, theta @ phi) for theta in shares])
    score = shares[:, 0] - shares[:, 1] + 0.1 * rng.standard_normal(N)
    return X, shares, score, phi


@pytest.fixture(scope="module")
def binary(corpus):
    X, _, score, _ = corpus
    y = np.where(score > 0, "a", "b")
    return X, y, SLDAClassifier(4, words=False, **(QUICK | {"burn_in": 40})).fit(X, y, feature_names=WORDS)


def as_texts(X):
    return [" ".join(np.repeat(WORDS, row)) for row in X]


def overlap(a, b):
    return float(np.sqrt(a * b).sum())


def same(a, b):
    """Whether all that predictions rest on is the same, bit for bit."""
    pairs = zip(a.posterior_.topics, b.posterior_.topics, strict=True)
    equal = all(np.array_equal(p.word_topic, q.word_topic) and np.array_equal(p.training, q.training) for p, q in pairs)
    return equal and np.array_equal(a.posterior_.prediction, b.posterior_.prediction)


def test_a_topic_that_was_split_in_two_is_found_again(corpus, binary):
    X, y, model = binary
    phi, before, state = corpus[3], model.predict_proba(X), pickle.loads(pickle.dumps(model))
    nearest = [int(np.argmax([overlap(own, planted) for planted in phi])) for own in model.topic_word_]
    twice = np.flatnonzero(np.bincount(nearest) == 2)[0]
    pair = [k for k, own in enumerate(nearest) if own == twice]
    merged = model.merge_topics(pair, X, y, burn_in=15)
    assert merged.n_topics == 3 and merged.topic_word_.shape == (3, V) and merged.coef_.shape == (1, 3)
    for planted in phi:
        assert max(overlap(own, planted) for own in merged.topic_word_) > 0.96
    assert overlap(merged.topic_word_[pair[0]], phi[twice]) > 0.96  # in the place of its first member
    found = merged.revision_
    assert found.documents == len(merged.posterior_.held_out_docs) == model.held_out_["documents"]
    assert found.after <= found.before + 3 * found.se
    assert f"Merged topics {pair[0]} and {pair[1]}. Loss on" in str(found)
    assert np.array_equal(before, model.predict_proba(X)) and same(model, state)


def test_the_loss_before_is_that_of_documents_that_no_chain_has_seen(binary):
    """The same documents are held out, so that the chains that go on have not learned from them, either.

    Nor have the weights: at the end of a fit those of words are estimated again from all documents.
    """
    X, y, model = binary
    merged = model.merge_topics([0, 1], X, y, burn_in=2)
    docs = model.posterior_.held_out_docs
    assert np.array_equal(docs, merged.posterior_.held_out_docs)
    before, after = (each.posterior_.held_out_predictions.loss for each in (model, merged))
    assert merged.revision_.before == pytest.approx(before.mean()) == pytest.approx(model.held_out_["loss"], rel=0.1)
    assert merged.revision_.after == pytest.approx(after.mean())
    assert merged.revision_.se == pytest.approx((after - before).std(ddof=1) / np.sqrt(len(docs)))
    noise = np.random.default_rng(1).integers(0, 2, len(y))  # which weights of words can only learn by heart
    learned = SLDAClassifier(3, **QUICK).fit(X, noise, feature_names=WORDS).merge_topics([0, 1], X, noise, burn_in=2)
    assert min(learned.revision_.before, learned.revision_.after) > 0.65
    with pytest.warns(UserWarning, match="not the documents of the fit"):  # no fit has kept predictions of these
        others = model.merge_topics([0, 1], X[::-1], y[::-1], burn_in=2)
    docs = others.posterior_.held_out_docs
    assert others.revision_.before == pytest.approx(model.evaluate(X[::-1][docs], y[::-1][docs]).losses.mean())
    tested = model.merge_topics([0, 1], X, y, burn_in=2, test={"X": X[:50], "y": y[:50]})
    assert tested.revision_.documents == 50
    assert tested.revision_.before == pytest.approx(model.evaluate(X[:50], y[:50]).losses.mean())


def test_a_loaded_model_knows_its_held_out_documents_by_their_responses(binary, tmp_path):
    X, y, model = binary
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.posterior_.held_out_docs is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = loaded.merge_topics([0, 1], X, y, burn_in=2)
    assert same.revision_.before == model.posterior_.held_out_predictions.loss.mean()
    with pytest.warns(UserWarning, match="not the documents of the fit"):
        loaded.merge_topics([0, 1], X[::-1], y[::-1], burn_in=2)


def test_chains_start_from_sums_of_their_own_topics(binary):
    """Topics have other places in each chain; groups are in the common order."""
    posterior = binary[2].posterior_
    assert not np.array_equal(posterior.order[0], posterior.order[1])
    words = np.delete(np.arange(V), [2, 7])
    start = revised(posterior, Change(((0, 3), (1,), (2,)), words, words))
    for chain in range(2):
        part = posterior.topics[0]
        counts = part.word_topic[chain][:, posterior.order[chain]][words]
        wanted = np.stack([counts[:, 0] + counts[:, 3], counts[:, 1], counts[:, 2]], axis=1)
        assert np.array_equal(start.topics[0].word_topic[chain], wanted)
        phi = wanted / part.n_draws + part.beta[chain]
        np.testing.assert_allclose(start.topics[0].phi(chain), phi / phi.sum(axis=0))
    assert start.n_batches == 0 and start.order.tolist() == [[0, 1, 2]] * 2
    assert revised(posterior, keep_all(posterior)).n_topics == 4


def test_chains_go_on_from_there(binary, monkeypatch):
    """Without a burn-in and with topics far from each other, the first draw is what the start says."""
    X, y, model = binary
    merged = model.merge_topics([1, 2], X, y, burn_in=0)
    start = revised(model.posterior_, Change(((0,), (1, 2), (3,)), np.arange(V), np.arange(V)))
    for chain in range(2):
        near = np.sqrt(merged.posterior_.phi(chain)).T @ np.sqrt(start.phi(chain))
        assert near.argmax(axis=0).tolist() == [0, 1, 2] and near.diagonal().min() > 0.85
    assert merged.burn_in_.tolist() == [0, 0] and merged.burn_in == model.burn_in


def test_several_groups_names_and_the_same_bits_again(binary, tmp_path):
    X, y, model = binary
    named = pickle.loads(pickle.dumps(model)).name_topics({0: "law", 2: "sport", 3: "art"})
    merged = named.merge_topics([[3, 1], [0, 2]], X, y, burn_in=2)
    assert merged.topic_names_ == {"0": "law + sport", "1": "art"} and merged.n_topics == 2
    assert same(merged, named.merge_topics([[0, 2], [1, 3]], X, y, burn_in=2))
    save(named, tmp_path / "model")
    loaded = load(tmp_path / "model").merge_topics([[0, 2], [1, 3]], X, y, burn_in=2)
    assert same(merged, loaded) and loaded.revision_.after == merged.revision_.after
    save(merged, tmp_path / "merged")
    again = load(tmp_path / "merged")
    assert np.array_equal(again.predict_proba(X), merged.predict_proba(X)) and again.topic_names_ == merged.topic_names_
    assert clone(merged).fit(X, y).posterior_.n_topics == 2  # a fit starts anew
    grown = merged.partial_fit(X[:60], y[:60])
    assert grown.n_batches_ == 2 and grown.predict(X[:3]).shape == (3,)


def test_banned_words_are_nowhere(corpus):
    X, _, score, _ = corpus
    texts, y = as_texts(X), np.where(score > 0, "a", "b")
    texts = [f"{text} junk junk" if i % 2 else f"{text} junk" for i, text in enumerate(texts)]
    model = SLDAClassifier(3, **QUICK).fit(texts, y)
    before = model.predict_proba(texts)
    some = model.ban_words(["junk", WORDS[0]], texts, y, burn_in=3)
    wholly = model.ban_words(["junk", WORDS[0]], texts, y, burn_in=3, everywhere=True)
    for found in (some, wholly):
        assert not {"junk", WORDS[0]} & {*found.vocabulary_, *itertools.chain(*found.top_words(n=40))}
        assert found.topic_word_.shape[1] == len(found.vocabulary_) == V + 1 - 2
        assert np.array_equal(found.transform(["junk " + texts[0]]), found.transform(texts[:1]))
    assert "junk" in some.word_vectorizer_.get_feature_names_out()
    assert not any({"junk", WORDS[0]} & set(name.split()) for name in wholly.word_vectorizer_.get_feature_names_out())
    more = ["junk " * 5 + text.replace(" ", " junk ") for text in texts[:40]]
    assert np.array_equal(wholly.predict_proba(more), wholly.predict_proba(texts[:40]))
    assert not np.array_equal(some.predict_proba(more), some.predict_proba(texts[:40]))
    assert "from the topics and from predictions" in wholly.revision_.change
    again = clone(wholly).fit(texts, y)  # a new fit leaves them out, too
    assert not {"junk", WORDS[0]} & {*again.vocabulary_, *again.word_vectorizer_.get_feature_names_out()}
    assert np.array_equal(before, model.predict_proba(texts)) and "junk" in model.vocabulary_
    assert "junk" in model.vectorizer_.get_feature_names_out()


def test_runs_of_words_that_have_a_banned_word_go(corpus, tmp_path):
    texts = ["new york is big", "york is old", "big new car", "old car"] * 10
    vectorizer = CountVectorizer(ngram_range=(1, 2))
    model = SLDAClassifier(2, vectorizer=vectorizer, **QUICK).fit(texts, ["a", "a", "b", "b"] * 10)
    found = model.ban_words(["york"], texts, ["a", "a", "b", "b"] * 10, burn_in=1, everywhere=True)
    assert not any("york" in word.split() for word in found.vocabulary_) and "new" in found.vocabulary_
    assert not any("york" in word.split() for word in found.word_vectorizer_.get_feature_names_out())
    save(found, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(texts), found.predict_proba(texts))
    only = model.ban_words(["new york"], texts, ["a", "a", "b", "b"] * 10, burn_in=1)
    assert set(model.vocabulary_) - set(only.vocabulary_) == {"new york"}


def test_counts_lose_columns(binary):
    X, y, model = binary
    found = model.ban_words([WORDS[4], 7], X, y, burn_in=1)
    left = np.delete(np.arange(V), [4, 7])
    assert found.n_features_in_ == V - 2 and found.vocabulary_.tolist() == WORDS[left].tolist()
    assert found.predict(X[:, left]).shape == (N,)
    frame = pandas.DataFrame(X, columns=WORDS)
    framed = clone(model).fit(frame, y).ban_words([WORDS[4]], frame, y, burn_in=1)
    assert framed.predict(frame.drop(columns=WORDS[4])).shape == (N,)
    twice = found.ban_words([WORDS[5]], X[:, left], y, burn_in=1).merge_topics(
        [0, 3], np.delete(X, [4, 5, 7], axis=1), y, burn_in=1
    )
    assert twice.posterior_.n_words == V - 3 and twice.n_topics == 3


def responses():
    """Each kind of response with what goes beside the documents."""
    group, z = np.array(list("pqrs") * (N // 4)), np.linspace(-1, 1, N)

    def labels(score):
        return np.stack([score > 0, score > 0.3], axis=1).astype(int)

    def answers(values):
        said = np.stack([values] * 3, axis=1).astype(object)
        said[::3, 1] = None
        return said

    return {
        "classes": (SLDAClassifier, lambda s: np.digitize(s, [-0.3, 0.3]), {"covariates": z}),
        "sticks": (SLDAClassifier, lambda s: np.digitize(s, [-0.3, 0.3]), {"multiclass": "stick_breaking"}),
        "labels": (SLDAClassifier, labels, {"groups": group}),
        "hinge": (MedLDAClassifier, lambda s: s > 0, {"covariates": pandas.DataFrame({"side": group})}),
        "ordinal": (SLDAOrdinalClassifier, lambda s: np.digitize(s, [-0.3, 0.3]), {"features": np.c_[z, z**2]}),
        "rating": (SLDARegressor, lambda s: 50 + 10 * s, {"sample_weight": 1 + (z > 0)}),
        "count": (SLDACountRegressor, lambda s: np.round(np.exp(1 + s)), {"exposure": np.exp(z), "covariates": z}),
        "time": (SLDASurvivalRegressor, lambda s: np.exp(2 * s), {"event": (z > -0.8).astype(int)}),
        "raters": (SLDACrowdClassifier, lambda s: answers(np.where(s > 0, "a", "b")), {}),
        "ratings": (SLDACrowdRegressor, lambda s: answers(s.round(2)).astype(float), {"covariates": z}),
    }  # fmt: skip


@pytest.mark.parametrize("name", responses())
def test_every_response(name, corpus, short_regressions):
    X, _, score, _ = corpus
    kind, make, beside = responses()[name]
    beside, y = dict(beside), make(score)
    parameters = {"multiclass": beside.pop("multiclass")} if "multiclass" in beside else {}
    quick = QUICK | {"n_chains": 1, "n_draws": 3, "burn_in": 6}
    model = kind(4, **parameters, **quick).fit(X, y, feature_names=WORDS, **beside)
    known = {key: value for key, value in beside.items() if key in ("covariates", "exposure", "features", "groups")}
    before = model.predict(X, **known)
    merged = model.merge_topics([1, 3], X, y, burn_in=2, **beside)
    banned = model.ban_words(WORDS[[0, 9]], X, y, burn_in=2, **beside)
    left = np.delete(np.arange(V), [0, 9])
    for found, own in ((merged, X), (banned, X[:, left])):
        assert found.predict(own, **known).shape == before.shape
        assert found.revision_.documents == len(model.posterior_.held_out_docs) > 0
        assert np.isfinite([found.revision_.before, found.revision_.after, found.revision_.se]).all()
        assert found.posterior_.response.answers == model.posterior_.response.answers
        assert found.n_batches_ == 1 and found.held_out_["documents"] == model.held_out_["documents"]
        np.testing.assert_allclose(
            found.posterior_.carryover.sums, model.posterior_.carryover.sums, rtol=1e-9, atol=1e-9
        )  # the documents are counted once
        if "n_answers" in found.posterior_.response.learned:
            assert np.array_equal(found.posterior_.response.n_answers, model.posterior_.response.n_answers)
    if "covariates" in beside:
        assert merged.covariate_names_.tolist() == model.covariate_names_.tolist()
    assert merged.posterior_.n_topics == 3 and banned.posterior_.n_topics == 4
    assert np.array_equal(before, model.predict(X, **known))


def test_a_long_table_a_formula_and_unknown_responses(corpus, short_regressions):
    X, _, score, _ = corpus
    names = [f"d{i}" for i in range(N)]
    frame = pandas.DataFrame(X, columns=WORDS, index=names)
    rows = [(names[i], rater, "ab"[int(score[i] > 0)]) for i in range(N) for rater in ("Ann", "Bob")]
    long = pandas.DataFrame(rows, columns=["document", "rater", "answer"])
    crowd = SLDACrowdClassifier(3, words=False, **QUICK).fit(frame, long)
    assert crowd.ban_words([WORDS[3]], frame, long, burn_in=1).revision_.documents > 0
    Z = pandas.DataFrame({"score": score, "age": np.arange(N) % 7})
    rated = SLDARegressor(3, formula="score ~ age", words=False, **QUICK).fit(X, covariates=Z)
    merged = rated.merge_topics([0, 1], X, covariates=Z, burn_in=1)
    assert merged.revision_.documents > 0 and merged.covariate_names_.tolist() == ["age"]
    y = np.where(score > 0, "a", "b").astype(object)
    y[::2] = None
    some = SLDAClassifier(3, words=False, optimize_priors=True, **QUICK).fit(X, y)
    assert np.isfinite(some.merge_topics([0, 1], X, y, burn_in=8).revision_.after)


def test_plain_topics(corpus, capsys):
    X = corpus[0]
    model = LDA(4, **(QUICK | {"burn_in": 30})).fit(X)
    merged = model.merge_topics([0, 1], X, burn_in=3)
    assert merged.components_.shape == (3, V) and "No document was held out" in str(merged.revision_)
    tested = model.set_params(verbose=True).ban_words([3], X, test={"X": X[:60]}, burn_in=3)
    assert tested.revision_.documents == 60 and tested.components_.shape == (4, V - 1)
    assert "Banned 1 word from the topics. Loss on 60" in capsys.readouterr().out
    assert model.merge_topics([0, 1], X[:1], burn_in=1).transform(X[:2]).shape == (2, 3)


def test_topics_of_a_class(corpus):
    X, _, score, _ = corpus
    y = np.digitize(score, [-0.3, 0.3])
    model = SLDAClassifier(3, multiclass="separate", words=False, **QUICK).fit(X, y)
    merged = model.merge_topics([[0, 2], [4, 5], [6, 7]], X, y, burn_in=2)
    assert [part.n_topics for part in merged.posterior_.topics] == [2, 2, 2] and merged.predict(X).shape == (N,)
    with pytest.raises(ValueError, match=r"Topics 2 and 3 belong to different classes.* 0 to 2"):
        model.merge_topics([2, 3], X, y)
    with pytest.raises(ValueError, match=r"all classes must keep equally many; this merge leaves 2, 3, 3"):
        model.merge_topics([0, 1], X, y)
    seeded = SLDAClassifier(3, multiclass="separate", words=False, seeds=[["babz"]], **QUICK)
    seeded.fit(X, y, feature_names=WORDS)
    with pytest.raises(ValueError, match="at the same places of every class"):
        seeded.merge_topics([[0, 2], [4, 5], [6, 7]], X, y)


def test_seeds_and_priors_of_topics(corpus, binary):
    X, y, model = binary
    seeds = Seeds({"law": ["babz", "bebz"], "a": ["dadz"], "art": ["fafz"]}, weights={"law": "a", "art": "b"})
    given = clone(model).set_params(seeds=seeds, alpha=[0.1, 0.2, 0.3, 0.4], optimize_priors=True, prior=model)
    given.fit(X, y, feature_names=WORDS)
    merged = given.merge_topics([[0, 1], [2, 3]], X, y, burn_in=2)
    assert merged.seeds.words == {"law": ["babz", "bebz", "dadz"], "art": ["fafz"]} and merged.prior is None
    assert merged.seeds.weights == {"law": "a", "art": "b"}
    assert merged.alpha == pytest.approx([0.3, 0.7]) and merged.topic_names_ == {"0": "law + a", "1": "art"}
    assert merged.topic_word_[0, [0, 1]].sum() > merged.topic_word_[1, [0, 1]].sum()
    banned = given.ban_words(["bebz"], X, y, burn_in=2)
    assert banned.seeds.words == {"law": ["babz"], "a": ["dadz"], "art": ["fafz"]}
    with pytest.raises(ValueError, match="All seed words of topic 'a' would be banned"):
        given.ban_words(["dadz"], X, y)
    columns = clone(model).set_params(seeds=[[3, 5], [6]]).fit(X, y)
    assert columns.ban_words([4, 5], X, y, burn_in=1).seeds.words == [[3], [4]]


def test_after_several_batches_the_given_documents_count_alone(binary):
    X, y, model = binary
    twice = pickle.loads(pickle.dumps(model)).partial_fit(X[:80], y[:80])
    with pytest.warns(UserWarning, match="not the documents of the fit"):
        merged = twice.merge_topics([0, 1], X[:100], y[:100], burn_in=2)
    assert merged.n_batches_ == 1 and merged.posterior_.carryover.sums[4] == pytest.approx(100)
    assert merged.doc_topic_.shape == (100, 3)
    assert not merged.posterior_.topics[0].pseudo_tokens.any()


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([3, 9], "There is no topic 9; topics are numbered from 0 to 3"),
        ([-1, 2], "There is no topic -1"),
        ([3], "two topics or more"),
        ([3, 3], "each topic once"),
        ([[0, 1], [1, 2]], "each topic once"),
        ([0, 1, 2, 3], "leaves a single topic"),
        ([], "topics must hold numbers of topics"),
        ("3,7", "topics must hold numbers of topics"),
        (3, "topics must hold numbers of topics"),
        ([True, 2], "topics must hold numbers of topics"),
    ],
)
def test_merges_that_cannot_be(binary, topics, message):
    X, y, model = binary
    with pytest.raises(ValueError, match=message):
        model.merge_topics(topics, X, y)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Babz"], r"not in the vocabulary: 'Babz' \('babz' is\)"),
        (["babz", "nothing"], "not in the vocabulary: 'nothing'"),
        (WORDS, "All words would be banned"),
        ([], "one word or more"),
        ("babz", "words must be a list of words"),
        ([V], "There is no column 30"),
        ([1.5], "one word or more"),
    ],
)
def test_bans_that_cannot_be(binary, words, message):
    X, y, model = binary
    with pytest.raises(ValueError, match=message):
        model.ban_words(words, X, y)


def test_other_errors(binary):
    X, y, model = binary
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.merge_topics([0, 1], X)
    with pytest.raises(TypeError, match="There is no argument 'checkpoint'"):
        model.merge_topics([0, 1], X, y, checkpoint="here")
    with pytest.raises(ValueError, match="burn_in must be"):
        model.merge_topics([0, 1], X, y, burn_in=-1)
    with pytest.raises(ValueError, match="everywhere must be True or False"):
        model.ban_words(["babz"], X, y, everywhere="yes")
    with pytest.raises(ValueError, match="words of the model are unknown"):
        clone(model).fit(X, y).ban_words(["babz"], X, y)


def test_the_command(corpus, tmp_path, monkeypatch, capsys):
    X, _, score, _ = corpus
    data, model = tmp_path / "data.csv", tmp_path / "model"
    pandas.DataFrame({"text": as_texts(X), "label": np.where(score > 0, "a", "b")}).to_csv(data, index=False)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code
        found = capsys.readouterr()
        return code, found.out, found.err

    run("fit", data, "--text", "text", "--label", "label", "-o", model, "-k", 4, "--chains", 2, "--burn-in", 20,
        "--draws", 4)  # fmt: skip
    written, same_columns = model.read_bytes(), ("--text", "text", "--label", "label")
    new = tmp_path / "new"
    code, shown, _ = run("merge", model, data, *same_columns, "--topics", "0,1", "--burn-in", 3, "-o", new)
    assert code == 0 and "Merged topics 0 and 1. Loss on" in " ".join(shown.split()) and load(new).n_topics == 3
    code, shown, _ = run(
        "ban", new, data, *same_columns, "--words", "babz, bebz", "--everywhere", "--json", "-o", tmp_path / "b"
    )
    facts = json.loads(shown)
    assert code == 0 and facts["documents"] > 0 and 0 < facts["after"] < 2
    assert not {"babz", "bebz"} & set(load(tmp_path / "b").vocabulary_)
    (tmp_path / "words").write_text("babz\nbobz\n")
    assert run("ban", new, data, *same_columns, "--words", tmp_path / "words", "-o", tmp_path / "c")[0] == 0
    assert "bobz" not in load(tmp_path / "c").vocabulary_ and model.read_bytes() == written
    for arguments, message in [
        (("merge", model, data, "--text", "text", "--topics", "0,1", "-o", new), "--label is missing"),
        (("merge", model, data, *same_columns, "--topics", "0,x", "-o", new), "numbers of topics, such as 3,7"),
        (("merge", model, data, *same_columns, "--topics", "0,8", "-o", new), "There is no topic 8"),
        (("ban", model, data, *same_columns, "--words", "zzz", "-o", new), "not in the vocabulary: 'zzz'"),
        (("ban", model, data, *same_columns, "--words", "babz", "-o", model), "which the command reads"),
    ]:
        code, _, said = run(*arguments)
        assert code == 1 and message in " ".join(said.split())
    assert supertopic.load(model).n_topics == 4


def test_losses_of_the_same_documents_are_compared_in_pairs():
    before, after = np.array([1.0, 2.0, np.nan, 4.0, 6.0]), np.array([1.5, 1.0, 3.0, np.nan, 6.5])
    found, away = compare_losses("x", before, after), np.array([0.5, -1.0, 0.5])
    assert (found.documents, found.before, found.after) == pytest.approx((3, 3.0, 3.0))
    assert found.se == pytest.approx(away.std(ddof=1) / np.sqrt(3))
    alone = compare_losses("x", before[:2], after[[0, 1, 4]])
    assert (alone.before, alone.after) == (1.5, 3.0) and np.isnan(alone.se)


def test_seeds_of_merged_topics_keep_the_weights_of_their_names():
    given = Seeds({"a": ["x"], "b": ["y"], "c": ["z", "x"]}, weights={"b": 1.0, "c": 2.0, "a": 3.0})
    found = merged_seeds(given, [[0], [1, 2], [3]])
    assert found.words == {"a": ["x"], "b": ["y", "z", "x"]} and found.weights == {"a": 3.0, "b": 1.0}
    assert merged_seeds(given, [[2, 3], [0, 1]]).weights == {"c": 2.0, "a": 3.0}


def test_the_columns_of_a_frame_that_stay_are_those_of_other_words(binary):
    X, y, model = binary
    frame = pandas.DataFrame(X, columns=WORDS, index=[f"d{i}" for i in range(N)])
    framed = clone(model).fit(frame, y)
    banned = [WORDS[0], WORDS[29]]
    found = framed.ban_words(banned, frame, y, burn_in=1, test={"X": frame[:50], "y": y[:50]})
    left = frame.drop(columns=banned)
    assert found.vocabulary_.tolist() == left.columns.tolist() and found.burn_in == framed.burn_in
    losses = [kind.evaluate(own[:50], y[:50]).losses for kind, own in ((framed, frame), (found, left))]
    assert [found.revision_.before, found.revision_.after] == pytest.approx([own.mean() for own in losses])
    assert found.revision_.se == pytest.approx((losses[1] - losses[0]).std(ddof=1) / np.sqrt(50))


def test_a_revised_model_starts_from_topics_in_the_common_order():
    posterior = small_posterior()
    part = posterior.topics[0]
    change = Change(((0, 2), (1,)), np.array([0, 3, 4, 8]), np.arange(9))
    found = revised(posterior, change)
    for chain, order in enumerate(posterior.order):
        alpha, counts = part.alpha[chain][order], part.word_topic[chain][:, order]
        np.testing.assert_allclose(found.topics[0].alpha[chain], [alpha[0] + alpha[2], alpha[1]])
        merged = np.column_stack([counts[:, 0] + counts[:, 2], counts[:, 1]])
        np.testing.assert_array_equal(found.topics[0].word_topic[chain], merged[[0, 3, 4, 8]])
    assert found.order.tolist() == [[0, 1], [0, 1]] and found.topic_names == {"0": "zero", "1": "one"}
    assert not found.carryover.sums.any() and found.n_batches == 0
