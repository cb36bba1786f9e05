"""Models that grow: new classes, new words, and a history of how well each batch was predicted before."""

import copy
import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

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
from supertopic.estimators import base
from supertopic.estimators import growing as growing_room
from supertopic.inference.scores import calibration_error, sureness
from supertopic.model import history, new_words
from supertopic.model.held_out import HeldOutPredictions
from supertopic.model.history import MOST, Batch, Changes, Figures, appended
from supertopic.model.linear import Dictionary, WordWeights
from supertopic.model.new_classes import grow_held_out
from supertopic.model.new_words import grow_vocabulary
from supertopic.model.posterior import Carryover, LinearCarryover, Phrases, Usage
from supertopic.model.responses import Logistic
from supertopic.model.responses.columns import NewColumns

pytestmark = pytest.mark.usefixtures("short_regressions")
RUN = {"n_topics": 3, "n_chains": 2, "n_draws": 4, "burn_in": 8, "random_state": 0, "n_jobs": 1, "predict_sweeps": 10}
SHORT = RUN | {"n_draws": 3, "burn_in": 4, "predict_sweeps": 6}
WORDS = {c: [f"{c}{c}{i}" for i in range(8)] for c in "abcd"}
COMMON = [f"zz{i}" for i in range(12)]
KINDS = [
    (SLDAClassifier, {}),
    (SLDAClassifier, {"multiclass": "stick_breaking"}),
    (SLDAClassifier, {"multiclass": "separate"}),
    (MedLDAClassifier, {}),
]


class Corpus:
    """Planted texts: half of the words of a text are those of its class."""

    def __init__(self, n, classes="abc", seed=0, own=0.5, length=12):
        rng = np.random.default_rng([seed, n])
        self.y = rng.choice(list(classes), n).astype(object)
        k = int(own * length)
        self.X = [
            " ".join([*rng.choice(WORDS[c], k), *rng.choice(COMMON, length - k)]) for c in self.y
        ]  # fmt: skip
        self.covariates = rng.normal(size=(n, 1))
        self.features = rng.normal(size=(n, 3))
        self.groups = rng.choice(["g", "h"], n)
        self.labels = pd.DataFrame({c: (self.y == c) | (rng.random(n) < 0.2) for c in classes}).astype(float)

    def beside(self, *names):
        return {name: getattr(self, name) for name in names}


def probabilities(model, X, **beside):
    if isinstance(model, MedLDAClassifier):
        return model._new(X, **beside).expected()
    return model.predict_proba(X, **beside)


def grown(model, new, y=None):
    """The model with more classes, before it has learned of them: what scores of a batch are made with."""
    from supertopic.estimators.growing import grow_classes

    found = copy.copy(model)
    found.posterior_, added = grow_classes(model.posterior_, y, None if y is not None else new, 1.0)
    assert added == new
    return found


# new classes


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("first", ["ab", "abc"])
@pytest.mark.parametrize("words", [False, True])
def test_old_classes_keep_their_predictions(kind, options, first, words):
    corpus = Corpus(60, first)
    beside = corpus.beside("covariates", "groups", "features")
    model = kind(**RUN, words=words, **options).fit(corpus.X, corpus.y, **beside)
    before = probabilities(model, corpus.X, **beside)
    more = grown(model, ["d", "e"])
    after = probabilities(more, corpus.X, **beside)
    assert more.posterior_.response.classes.tolist() == [*first, "d", "e"]
    if kind is MedLDAClassifier:
        chosen = before[:, 0] > 0 if first == "ab" else before.argmax(axis=1)
        np.testing.assert_array_equal(after.argmax(axis=1), chosen)
        return
    assert (after[:, -2:] < 0.1).all() and after[:, -2:].mean() < 0.04
    old = after[:, :-2] / after[:, :-2].sum(axis=1, keepdims=True)
    exact = first == "abc" or options.get("multiclass") == "stick_breaking"
    if options.get("multiclass") != "stick_breaking":
        # draws of sparse or linear terms of two columns are not those of one
        np.testing.assert_allclose(old, before, atol=0.02 if exact else 0.06)
    else:  # the last class shares its stick with new ones
        np.testing.assert_allclose(after[:, : len(first) - 1], before[:, :-1], atol=0.03)


def test_labels_keep_their_predictions():
    corpus = Corpus(60)
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.labels)
    more = grown(model, ["d"], corpus.labels.assign(d=0.0))
    np.testing.assert_allclose(more.predict_proba(corpus.X)[:, :3], model.predict_proba(corpus.X), atol=1e-9)
    assert more.predict_proba(corpus.X)[:, 3].max() < 0.3 and more.predict_proba(corpus.X)[:, 3].mean() < 0.05


def test_the_prior_of_a_new_class_is_that_of_the_population():
    from supertopic.model.new_classes import posterior_means
    from supertopic.model.priors import NU2_PREDICTION

    corpus = Corpus(80)
    model = SLDAClassifier(**RUN, words=False).fit(corpus.X, corpus.y)
    more = grown(model, ["d"])
    for chain in range(2):
        before, after = (m.posterior_.carryover.weights[0][chain].prediction for m in (model, more))
        np.testing.assert_array_equal(before.shift, after.shift[:, :3])
        old, new = (posterior_means(known, NU2_PREDICTION) for known in (before, after))
        np.testing.assert_allclose(new[:, 3], old.mean(axis=1), atol=1e-8)
        diagonal = np.arange(3) * (np.arange(3) + 1) // 2 + np.arange(3)
        variance = 1.0 / (after.precision[diagonal, 3] + 1.0 / NU2_PREDICTION)
        np.testing.assert_allclose(variance, min(old.var(axis=1, ddof=1).mean(), NU2_PREDICTION), rtol=1e-8)
    sums = more.posterior_.carryover.sums
    np.testing.assert_allclose(sums[:, 3], [0.0, 80.0, 0.0, 0.0, 80.0])  # no document had it


def test_columns_follow_from_those_before():
    values = np.array([[1.0, 4.0], [3.0, 5.0]], np.float32)
    more = NewColumns(np.array([0, 1, -1]), np.ones(3), 1.0, typical=True, exclusive=True)
    np.testing.assert_array_equal(more.of(values), [[1.0, 4.0, 2.5], [3.0, 5.0, 4.0]])
    np.testing.assert_array_equal(more.of(values, 0), [[1.0, 4.0], [3.0, 5.0], [2.0, 4.5]])
    np.testing.assert_array_equal(more.of(values, new=np.array([7.0, 8.0, 9.0]))[:, 2], [9.0, 9.0])
    assert more.of(values).dtype == np.float32
    one, grids = np.array([[2.0], [-6.0]]), {"alone": [np.array([[1.0], [2.0]])]}
    three = NewColumns(np.array([0, 0, -1]), np.array([-1.0, 1.0, 1.0]), 0.5, typical=True, exclusive=False)
    np.testing.assert_array_equal(three.of(one), [[-2.0, 2.0, 0.0], [6.0, -6.0, 0.0]])
    np.testing.assert_array_equal(three.of(one, share=True), [[-1.0, 1.0, 0.0], [3.0, -3.0, 0.0]])
    np.testing.assert_array_equal(three.of(one, sign=False, new=0.0), [[2.0, 2.0, 0.0], [-6.0, -6.0, 0.0]])
    np.testing.assert_array_equal(three.of_variance(np.array([[4.0]])), [[2.0, 2.0, 2.0]])  # of a difference: 4
    assert more.of_grids(grids) is grids and three.of_grids(grids) == {}  # another factor fits where weights are halved
    labels = more._replace(source=np.array([0, -1]), sign=np.ones(2), exclusive=False)
    np.testing.assert_array_equal(labels.of_grids(grids)["alone"][0], [[1.0, 0.0], [2.0, 0.0]])
    stick = labels._replace(typical=False)
    np.testing.assert_array_equal(stick.of(one), [[2.0, 0.0], [-6.0, 0.0]])


def test_two_classes_become_columns_by_their_sign():
    corpus = Corpus(60, "ab")
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    before, after = model.posterior_.carryover, grown(model, ["c"]).posterior_.carryover
    known, found = before.weights[0][0].training, after.weights[0][0].training
    np.testing.assert_array_equal(found.shift[:, :2], known.shift * [-1.0, 1.0])
    np.testing.assert_array_equal(found.precision[:, :2], np.repeat(known.precision, 2, axis=1))
    n_b = float((corpus.y == "b").sum())
    np.testing.assert_allclose(after.sums[0], [60.0 - n_b, n_b, 0.0])
    np.testing.assert_allclose(after.level[:2], [-before.level[0], before.level[0]])


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("first", ["ab", "abc"])
def test_a_new_class_is_learned(kind, options, first):
    """A class that comes with the second batch is predicted after it, and old classes stay calibrated."""
    start, more, test = Corpus(120, first), Corpus(150, first + "d", seed=1), Corpus(200, first + "d", seed=2)
    model = kind(**RUN | {"n_topics": 4, "burn_in": 20}, **options).fit(start.X, start.y)
    with pytest.warns(UserWarning, match="New classes: d"):
        model.partial_fit(more.X[:75], more.y[:75], add_classes=True)
    assert model.classes_.tolist() == [*first, "d"] and model.posterior_.history[-1].changes.classes_added == ("d",)
    model.partial_fit(more.X[75:], more.y[75:])
    assert model.score(test.X, test.y) > 0.95
    if kind is SLDAClassifier:
        p, truth = model.predict_proba(test.X), test.y[:, None] == model.classes_
        np.testing.assert_allclose(p.mean(axis=0), truth.mean(axis=0), atol=0.08)
        assert -np.log(p[truth]).mean() < 0.3
        assert model.predict_set(test.X, level=0.8).shape == (200, len(first) + 1)


def test_a_class_that_no_document_has_changes_little():
    start, more = Corpus(150), Corpus(100, seed=1)
    model = SLDAClassifier(**RUN).fit(start.X, start.y)
    other = copy.copy(model).partial_fit(more.X, more.y)
    with pytest.warns(UserWarning, match="New classes: never"):
        model.partial_fit(more.X, more.y, classes=["a", "b", "c", "never"], add_classes=True)
    p = model.predict_proba(more.X)
    assert p.shape == (100, 4) and p[:, 3].mean() < 0.02
    np.testing.assert_allclose(p[:, :3].mean(axis=0), other.predict_proba(more.X).mean(axis=0), atol=0.05)
    assert (model.predict(more.X) == other.predict(more.X)).mean() > 0.95


def test_new_labels():
    start, more = Corpus(100), Corpus(100, "abcd", seed=1)
    frame = SLDAClassifier(**RUN).fit(start.X, start.labels)
    with pytest.raises(ValueError, match="add_classes=True"):
        frame.partial_fit(more.X, more.labels)
    with pytest.raises(ValueError, match="must begin with the labels"):
        frame.partial_fit(more.X, more.labels[["d", "a", "b", "c"]], add_classes=True)
    numbers, again = SLDAClassifier(**RUN).fit(start.X, start.labels.to_numpy()), copy.copy(frame)
    with pytest.warns(UserWarning, match="New classes"):
        frame.partial_fit(more.X, more.labels, add_classes=True)
        numbers.partial_fit(more.X, csr_array(more.labels.to_numpy()), add_classes=True)
        again.partial_fit(more.X, more.labels.to_numpy(), classes=list("abcd"), add_classes=True)
    assert frame.classes_.tolist() == again.classes_.tolist() == list("abcd")
    assert numbers.classes_.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(frame.predict_proba(more.X), again.predict_proba(more.X))
    assert frame.predict_proba(more.X).shape == (100, 4)
    hit = frame.predict(more.X)[:, 3] == more.labels["d"]
    assert hit.mean() > 0.75
    with pytest.raises(ValueError, match="name the new ones"):
        copy.copy(frame).partial_fit(more.X, np.zeros((100, 5)), add_classes=True)


@pytest.mark.filterwarnings("ignore:New classes", "ignore:Found no relation")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # chains are short
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.filterwarnings("ignore:The chains' scores are")
def test_tables_and_pages_of_a_model_with_a_new_class(labels, known):
    start, more = Corpus(60), Corpus(60, "abcd", seed=1)
    y, y_more = (start.labels, more.labels) if labels else (start.y, more.y)
    model = SLDAClassifier(**RUN).fit(start.X, y)
    model.partial_fit(more.X, y_more if known else None, classes=list("abcd"), add_classes=True)
    y_more = y_more.to_numpy() if labels else y_more
    assert "</html>" in model.report(more.X, y_more)
    assert set(model.effect_frame()["column"]) == set(model.coefficient_frame()["column"]) == set("abcd")
    assert model.methods_text() and model.card("Tickets") and model.missed_words() is not None
    assert np.isfinite(model.evaluate(more.X, y_more).losses).all() and model.diagnose(more.X, y_more)
    assert {"p(a)", "p(d)"} <= model.predict_table(more.X).keys()
    assert len(model.surprising(more.X, y_more, 3)) == len(model.unsure(more.X, 3)) == 3


def test_numbers_as_classes_stay_numbers():
    corpus = Corpus(60)
    y = np.array([{"a": 5, "b": 7, "c": 9}[c] for c in corpus.y])
    model = SLDAClassifier(**RUN).fit(corpus.X, y)
    with pytest.warns(UserWarning, match="New classes: 1"):
        model.partial_fit(corpus.X, np.where(y == 9, 1, y), add_classes=True)
    assert model.classes_.tolist() == [5, 7, 9, 1] and model.classes_.dtype.kind == "i"
    model.partial_fit(corpus.X, np.where(y == 9, 1, y))  # in any order: each document gets its own column
    assert (model.predict(corpus.X) == np.where(y == 9, 1, y)).mean() > 0.9
    with pytest.raises(ValueError, match="mixes text and numbers"):
        model.partial_fit(corpus.X, np.where(y == 9, "x", "y"), add_classes=True)


def test_what_cannot_have_new_classes():
    corpus = Corpus(40)
    grades = np.array([{"a": 1, "b": 2, "c": 3}[c] for c in corpus.y])
    ordinal = SLDAOrdinalClassifier(**RUN).fit(corpus.X, grades)
    with pytest.raises(ValueError, match="without an order"):
        ordinal.partial_fit(corpus.X, grades, add_classes=True)
    answers = np.column_stack([corpus.y, corpus.y])
    crowd = SLDACrowdClassifier(**RUN).fit(corpus.X, answers)
    with pytest.raises(ValueError, match="raters"):
        crowd.partial_fit(corpus.X, answers, add_classes=True)
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    before = model.posterior_
    with pytest.raises(ValueError, match="add_classes=True"):
        model.partial_fit(corpus.X, np.where(corpus.y == "a", "d", corpus.y))
    assert model.posterior_ is before


# new words


def test_new_words_join_both_vocabularies():
    start, more = Corpus(60, "ab"), Corpus(60, "abc", seed=1)
    model = SLDAClassifier(**RUN).fit(start.X, start.y)
    same = copy.copy(model)
    y = np.where(more.y == "c", "a", more.y)
    model.partial_fit([*more.X[:59], "singular " + more.X[59]], y)
    assert set(WORDS["c"]) <= set(model.vocabulary_) and "singular" in model.vocabulary_  # min_df=1: few texts
    assert "zz0 cc1" in model.posterior_.word_names or any("cc" in name for name in model.posterior_.word_names)
    posterior = model.posterior_
    assert model.n_features_in_ == posterior.n_words == len(model.vectorizer_.vocabulary_) == len(model.vocabulary_)
    np.testing.assert_array_equal(model.vectorizer_.get_feature_names_out(), model.vocabulary_)
    np.testing.assert_array_equal(model.word_vectorizer_.get_feature_names_out(), posterior.word_names)
    changes = posterior.history[-1].changes
    assert changes.words_added == 9 and changes.own_added > 9 and not changes.words_forgotten
    assert posterior.history[-1].unknown_words > 0.05
    assert model.top_words(n=3) and model.explain(more.X[0]).frame() is not None and model.drift(more.X) is not None
    assert same.vocabulary_.tolist() == model.vocabulary_[: same.n_features_in_].tolist()  # places stay
    same.partial_fit(more.X, y, new_words=False)
    assert same.n_features_in_ == 28 and same.posterior_.history[-1].changes == Changes()


def test_words_need_as_many_documents_as_min_df():
    start, more = Corpus(60, "ab"), Corpus(30, "ab", seed=1)
    vectorizer = CountVectorizer(min_df=3)
    model = LDA(**RUN, vectorizer=vectorizer).fit(start.X)
    texts = [f"two {text}" if i < 2 else f"three {text}" if i < 5 else text for i, text in enumerate(more.X)]
    model.partial_fit(texts)
    assert "three" in model.vocabulary_ and "two" not in model.vocabulary_
    model.partial_fit(["two two"])  # fewer documents than min_df
    assert "two" not in model.vocabulary_
    fixed = LDA(**RUN, vectorizer=CountVectorizer(vocabulary=["zz0", "zz1", "zz2", "zz3"])).fit(start.X)
    assert fixed.partial_fit(texts).n_features_in_ == 4
    few = LDA(**RUN, vectorizer=CountVectorizer(max_features=20)).fit(start.X)
    assert few.partial_fit(texts).n_features_in_ == 20  # the user's bound
    assert few.partial_fit(["", ""]).n_features_in_ == 20


def test_counts_keep_their_columns():
    corpus = Corpus(60)
    vectorizer = CountVectorizer().fit(corpus.X)
    X, names = vectorizer.transform(corpus.X), vectorizer.get_feature_names_out()
    model = SLDAClassifier(**RUN).fit(X, corpus.y, feature_names=names)
    model.partial_fit(X, corpus.y)
    assert model.posterior_.history[-1].unknown_words is None and model.n_features_in_ == len(names)


def test_rare_words_are_forgotten_at_the_bound(monkeypatch):
    monkeypatch.setattr(new_words, "ENOUGH", 10)
    monkeypatch.setattr(new_words, "GROWTH", 1)
    start, more = Corpus(60, "ab"), Corpus(60, "bc", seed=1)
    seeds = Seeds({"first": ["aa0", "aa1"]})
    model = SLDAClassifier(**RUN, seeds=seeds).fit(start.X, start.y)
    phrases = model.posterior_.phrases
    for _ in range(4):
        model.partial_fit(more.X, np.where(more.y == "c", "a", "b"))
    names = set(model.vocabulary_)
    assert len(names) == 28 and {"aa0", "aa1"} <= names and len(names & set(WORDS["a"])) < 8
    assert set(COMMON) | set(WORDS["b"]) <= names and names & set(WORDS["c"])
    gone = [entry.changes for entry in model.posterior_.history if entry.changes.words_forgotten]
    assert gone and all(word.startswith("aa") for word in gone[0].first_forgotten)
    posterior = model.posterior_
    assert posterior.words is None or posterior.words.dictionary.word.max() < len(posterior.word_names)
    assert phrases is not None and (posterior.phrases.first < 28).all()
    assert model.score(more.X, np.where(more.y == "c", "a", "b")) > 0.9


def test_the_bound_of_a_vocabulary(monkeypatch):
    monkeypatch.setattr(new_words, "ENOUGH", 5)
    names = np.array(["a", "b", "c"], dtype=object)
    usage = Usage(np.array([10.0, 1.0, 5.0], np.float32), 3)
    found = grow_vocabulary(names, usage, np.array([0, 0, 1]), {"x": 2, "y": 3}, set())
    assert found.names.tolist() == ["a", "b", "c", "y", "x"] and found.added == ["y", "x"]
    np.testing.assert_allclose(found.usage.documents, [9.0, 0.9, 5.5, 3.0, 2.0])
    found = grow_vocabulary(names, usage, np.zeros(3), {"x": 2, "y": 3}, set(), most=4)
    assert found.names.tolist() == ["a", "c", "y", "x"] and found.forgotten == ["b"]
    assert found.source.tolist() == [0, 2, -1, -1] and found.place(3).tolist() == [0, -1, 1]
    found = grow_vocabulary(names, usage, np.zeros(3), {"x": 2, "y": 3}, {"b"}, most=4)
    assert found.forgotten == [] and found.added == ["y"]
    many = {f"w{i}": 1 for i in range(20)}
    assert len(grow_vocabulary(names, usage, np.zeros(3), many, set()).names) == 6  # twice the first
    monkeypatch.setattr(new_words, "MOST", 4)
    assert len(grow_vocabulary(names, usage, np.zeros(3), many, set()).names) == 4


@pytest.mark.parametrize("words", [False, True])
def test_predictions_for_old_texts_do_not_change_as_words_come(words):
    from supertopic.estimators.growing import grow_words, read_documents

    start, more = Corpus(80), Corpus(60, "cd", seed=1)
    model = SLDAClassifier(**RUN, words=words).fit(start.X, start.y)
    read = read_documents(model, more.X, None, model.posterior_, model._validate_counts)
    posterior, read, changes = grow_words(read, model.posterior_, None)
    assert changes.words_added == 8
    larger = copy.copy(model)
    larger.posterior_, larger.vectorizer_, larger.word_vectorizer_ = posterior, *(read.reader)
    # the Dirichlet prior of a topic covers more words, which moves a token in a hundred
    np.testing.assert_allclose(larger.predict_proba(start.X), model.predict_proba(start.X), atol=0.02)
    again = copy.copy(model).partial_fit(more.X, None)
    blind = copy.copy(model).partial_fit(more.X, None, new_words=False)
    assert np.abs(again.predict_proba(start.X) - blind.predict_proba(start.X)).mean() < 0.05


def test_a_failed_update_leaves_the_vocabulary():
    start, more = Corpus(60, "ab"), Corpus(60, "abc", seed=1)
    model = SLDAClassifier(**RUN).fit(start.X, start.y)
    before = model.__dict__.copy()
    with pytest.raises(ValueError, match="was not there at first"):
        model.partial_fit(more.X, more.y)
    assert model.__dict__ == before and model.predict(more.X) is not None


def test_a_prediction_during_an_update_uses_one_model(monkeypatch):
    """Another thread puts a model with more words in place while texts are counted."""
    start, more = Corpus(60, "ab"), Corpus(60, "abc", seed=1)
    model = SLDAClassifier(**RUN).fit(start.X, start.y)
    larger = copy.copy(model).partial_fit(more.X, np.where(more.y == "c", "a", more.y))
    calls, read_new = [], base.read_new

    def read_slowly(estimator, *rest):
        if not calls:
            estimator.__dict__.update(larger.__dict__)
        calls.append(read_new(estimator, *rest))
        return calls[-1]

    monkeypatch.setattr(base, "read_new", read_slowly)
    found = model.predict_proba(more.X)
    assert len(calls) == 2
    np.testing.assert_array_equal(found, larger.predict_proba(more.X))


# histories


def test_a_batch_is_scored_before_it_is_learned_from():
    start, more = Corpus(150, own=0.25), Corpus(100, seed=1, own=0.25)
    model = SLDAClassifier(**RUN).fit(start.X, start.y)
    first = model.posterior_.history[0]
    assert first.held_out and first.batch == 1 and first.documents == 150
    assert first.figures.scored == model.held_out_["documents"] > 5
    np.testing.assert_allclose(first.figures.loss, model.posterior_.held_out_predictions.loss.mean())
    found = model.evaluate(more.X, more.y)
    unknown = more.y.copy()
    unknown[:10] = None
    partly = copy.copy(model).partial_fit(more.X, unknown).posterior_.history[-1].figures
    model.partial_fit(more.X, more.y)
    figures = model.posterior_.history[-1].figures
    np.testing.assert_allclose([figures.score, figures.loss], [found.score, found.losses.mean()])
    assert partly.scored == 90 and partly.loss == pytest.approx(found.losses[10:].mean())
    p = start.y[:, None] == np.array(list("abc"))
    rate = -np.log(p.mean(axis=0))[(more.y[:, None] == np.array(list("abc"))).argmax(axis=1)].mean()
    assert figures.base_loss == pytest.approx(rate, abs=0.03) and figures.loss < figures.base_loss
    assert figures.score_name == "accuracy" and figures.calibration_name == "calibration error"
    frame = model.history_
    assert list(frame["batch"]) == [1, 2] and list(frame["held_out"]) == [True, False]
    nothing = model.partial_fit(more.X, None).posterior_.history[-1]
    assert nothing.batch == 3 and nothing.figures.scored == 0 and nothing.figures.loss is None


def test_calibration_errors():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    true = rng.random(20_000) < p
    assert calibration_error(p, true) < 0.02
    assert calibration_error(np.full(20_000, 0.9), rng.random(20_000) < 0.6) == pytest.approx(0.3, abs=0.02)
    assert calibration_error(np.array([0.7]), np.array([1.0])) == pytest.approx(0.3)


def test_sureness_of_two_classes_is_that_of_the_second():
    p, truth, none = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.zeros(2)
    found = HeldOutPredictions(p, truth, np.zeros((2, 0)), none, none, none)
    of_second, true = sureness(Logistic(1.0, classes=np.array(["a", "b"])), found)
    assert of_second.tolist() == [0.1, 0.8] and true.tolist() == [0.0, 0.0]


def test_the_base_rate_of_a_history_has_the_exposure():
    rng, X = np.random.default_rng(0), np.random.default_rng(1).poisson(1.0, (300, 12))
    exposure = 4.0 ** rng.integers(0, 4, 300)
    y, quick = rng.poisson(2.0 * exposure), {"n_chains": 1, "burn_in": 10, "n_draws": 5, "words": False}
    model = SLDACountRegressor(3, **quick, random_state=0).fit(X[:200], y[:200], exposure=exposure[:200])
    figures = model.partial_fit(X[200:], y[200:], exposure=exposure[200:]).posterior_.history[-1].figures
    assert figures.base_loss == pytest.approx(figures.loss, rel=0.1)  # topics say nothing


@pytest.mark.parametrize("kind", [SLDARegressor, SLDACountRegressor])
def test_histories_of_numbers(kind):
    corpus = Corpus(200)
    y = np.array([{"a": 1.0, "b": 4.0, "c": 9.0}[c] for c in corpus.y])
    y = np.random.default_rng(0).poisson(y).astype(float) if kind is SLDACountRegressor else y
    more = {"exposure": np.full(100, 2.0)} if kind is SLDACountRegressor else {}
    model = kind(**RUN).fit(corpus.X[:100], y[:100], **more)
    found = model.evaluate(corpus.X[100:], y[100:], **more)
    lower, upper = model.predict_interval(corpus.X[100:], 0.9, **more)
    model.partial_fit(corpus.X[100:], y[100:], **more)
    first, second = (entry.figures for entry in model.posterior_.history)
    assert second.score_name == first.score_name == "R2" and second.score == pytest.approx(found.score)
    assert second.calibration_name == "coverage of 90 % intervals"
    inside = ((y[100:] >= lower) & (y[100:] <= upper)).mean()
    assert second.calibration == pytest.approx(inside, abs=0.03) and second.loss < second.base_loss
    assert first.score > 0.5 and first.scored > 5


@pytest.mark.parametrize("kind", [SLDAOrdinalClassifier, SLDACountRegressor, SLDASurvivalRegressor])
def test_the_base_rate_of_histories_has_a_parameter_of_its_own(kind):
    """Thresholds beside topics are far apart, and counts beside topics vary less: neither belongs to a base rate."""
    corpus, rng = Corpus(300, own=0.6), np.random.default_rng(0)
    grade = np.array([{"a": 0, "b": 1, "c": 2}[c] for c in corpus.y])
    y = rng.poisson(np.array([1.0, 8.0, 40.0])[grade]) if kind is SLDACountRegressor else grade
    if kind is SLDASurvivalRegressor:
        y = np.column_stack([rng.exponential(np.array([1.0, 8.0, 40.0])[grade]), np.ones(300)])
    model = kind(**RUN | {"burn_in": 20}).fit(corpus.X[:200], y[:200]).partial_fit(corpus.X[200:], y[200:])
    first, second = (entry.figures for entry in model.posterior_.history)
    if kind is SLDAOrdinalClassifier:
        rate = -np.log(np.bincount(grade[:200]) / 200)[grade[200:]].mean()
        assert second.base_loss == pytest.approx(rate, abs=0.03) and first.base_loss == pytest.approx(rate, abs=0.1)
        return
    if kind is SLDACountRegressor:
        assert model.held_out_["base_loss"] == pytest.approx(first.base_loss, abs=0.3)
    model = kind(**RUN | {"burn_in": 20}).fit(["apple"] * 200, y[:200])  # topics say nothing
    losses = model.evaluate(["apple"] * 100, y[200:]).losses
    assert second.base_loss == pytest.approx(losses.mean(), abs=0.05) and second.loss < second.base_loss - 0.1


def test_histories_of_other_responses():
    corpus, few = Corpus(80), SHORT | {"n_chains": 1, "words": False}
    answers = np.column_stack([corpus.y, corpus.y]).astype(object)
    model = SLDACrowdClassifier(**few).fit(corpus.X[:50], answers[:50]).partial_fit(corpus.X[50:], answers[50:])
    figures = model.posterior_.history[-1].figures
    assert figures.scored == 30 and figures.score > 0.5 and figures.calibration is None
    grades = np.array([{"a": 1, "b": 2, "c": 3}[c] for c in corpus.y])
    ordinal = SLDAOrdinalClassifier(**few).fit(corpus.X[:50], grades[:50]).partial_fit(corpus.X[50:], grades[50:])
    figures = ordinal.posterior_.history[-1].figures
    assert figures.score > 0.5 and figures.calibration < 0.5 and figures.loss < figures.base_loss
    times = np.column_stack([1.0 + grades, np.arange(80) % 3 > 0])
    survival = SLDASurvivalRegressor(**few).fit(corpus.X[:50], times[:50]).partial_fit(corpus.X[50:], times[50:])
    figures = survival.posterior_.history[-1].figures
    assert figures.scored == 30 and figures.score > 0.5 and figures.calibration is None
    ratings = np.column_stack([grades, grades]).astype(float)
    crowd = SLDACrowdRegressor(**few).fit(corpus.X[:50], ratings[:50]).partial_fit(corpus.X[50:], ratings[50:])
    assert crowd.posterior_.history[-1].figures.score > 0.5
    lda = LDA(**RUN).fit(corpus.X[:50])
    perplexity = lda.evaluate(corpus.X[50:]).score
    figures = lda.partial_fit(corpus.X[50:]).posterior_.history[-1].figures
    assert figures.score_name == "perplexity" and figures.score == pytest.approx(perplexity)
    assert lda.partial_fit([""]).posterior_.history[-1].figures.score is None


def test_a_long_history_keeps_its_first_entry():
    entries = ()
    for i in range(MOST + 5):
        entries = appended(entries, Batch(i + 1, 1))
    assert len(entries) == MOST and [entries[0].batch, entries[1].batch, entries[-1].batch] == [1, 7, MOST + 5]


@pytest.mark.parametrize(
    "wrong",
    [{"batch": "1"}, {"documents": -1}, {"loss": "x"}, {"first_added": [1]}, {"score": float("inf")}, {"held_out": 3}],
)
def test_entries_of_files_are_checked(wrong):
    row = json.loads(json.dumps(Batch(2, 5, Figures(5, "accuracy", 0.5)).row()))
    assert Batch.from_row(row) == Batch(2, 5, Figures(5, "accuracy", 0.5))
    with pytest.raises(ValueError, match="cannot be right"):
        Batch.from_row(row | wrong)
    with pytest.raises(ValueError, match="cannot be right"):
        Batch.from_row({"batch": 1})


# pairs

CASES = [
    dict(zip(("kind", "first", "words", "beside", "loaded", "add_classes", "new_words"), case, strict=True))
    for case in itertools.product(
        KINDS, ["ab", "abc", "labels"], [False, True], [(), ("covariates",), ("features",), ("groups", "features")],
        [False, True], [False, True], [False, True],
    )
]  # fmt: skip
SOME = [CASES[i] for i in np.random.default_rng(7).permutation(len(CASES))[:22]]


@pytest.mark.filterwarnings("ignore:New classes")
@pytest.mark.parametrize("case", SOME, ids=lambda case: "-".join(map(str, case.values())))
def test_pairs(case, tmp_path):
    """A model that grows predicts, explains itself, is saved and goes on, whatever else it has."""
    (kind, options), labels = case["kind"], case["first"] == "labels"
    if labels and options.get("multiclass") == "stick_breaking":
        options = {}
    start = Corpus(60, "abc" if labels else case["first"])
    more = Corpus(60, ("abc" if labels else case["first"]) + "d" * case["add_classes"], seed=1)
    y, y_more = (start.labels, more.labels) if labels else (start.y, more.y)
    given, beside = start.beside(*case["beside"]), more.beside(*case["beside"])
    model = kind(**SHORT, words=case["words"], **options).fit(start.X, y, **given)
    if case["loaded"]:
        save(model, tmp_path / "first")
        again = load(tmp_path / "first").set_params(n_jobs=1)
    else:
        again = copy.copy(model)
    texts = ["newword otherword " + text for text in more.X]
    grows = {"add_classes": case["add_classes"], "new_words": case["new_words"]}
    for one in (model, again):
        one.partial_fit(texts, y_more, **beside, **grows)
        fewer = {name: own[:20] for name, own in beside.items()}
        one.partial_fit(texts[:20], y_more[:20], **fewer, new_words=case["new_words"], discount=0.5)
    p = probabilities(model, texts, **beside)
    np.testing.assert_array_equal(p, probabilities(again, texts, **beside))
    assert np.isfinite(p).all() and ("newword" in model.vocabulary_) == case["new_words"]
    n, first = len(model.classes_), "abc" if labels else case["first"]
    assert sorted(model.classes_) == [*first, *"d" * case["add_classes"]]
    assert p.shape == (60, 1 if n == 2 and kind is MedLDAClassifier else n)
    rows = {name: own[:1] for name, own in beside.items()}
    assert model.explain(texts[0], **rows).frame() is not None and model.coef_.shape[1] == model.posterior_.n_topics
    save(model, tmp_path / "second")
    loaded = load(tmp_path / "second")
    np.testing.assert_array_equal(p, probabilities(loaded, texts, **beside))
    assert loaded.posterior_.history == model.posterior_.history and len(model.posterior_.history) == 3
    for m in (loaded, model):
        m.partial_fit(texts[:15], y_more[:15], **{name: own[:15] for name, own in beside.items()})
    np.testing.assert_array_equal(probabilities(model, texts, **beside), probabilities(loaded, texts, **beside))


def test_old_files_have_no_history(tmp_path):
    corpus = Corpus(40)
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    model.posterior_ = replace(model.posterior_, history=())
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m").partial_fit(corpus.X, corpus.y)
    assert [entry.batch for entry in loaded.posterior_.history] == [2] and history.SHOWN


def test_a_batch_with_columns_beside_its_texts_is_scored_as_evaluate_does():
    """Covariates, groups and features in their own units and order."""
    start, more = Corpus(90), Corpus(60, seed=1)
    start.covariates, more.covariates = 50.0 + 20.0 * start.covariates, 50.0 + 20.0 * more.covariates
    names = "covariates", "groups", "features"
    model = SLDAClassifier(**SHORT).fit(start.X, start.y, **start.beside(*names))
    found = model.evaluate(more.X, more.y, **more.beside(*names))
    figures = model.partial_fit(more.X, more.y, **more.beside(*names)).posterior_.history[-1].figures
    np.testing.assert_allclose([figures.score, figures.loss], [found.score, found.losses.mean()])


def test_what_came_and_went_is_counted_for_both_vocabularies(monkeypatch):
    monkeypatch.setattr(new_words, "ENOUGH", 10)
    monkeypatch.setattr(new_words, "GROWTH", 1)
    start, more = Corpus(60, "ab"), Corpus(60, "cd", seed=2)
    model = SLDAClassifier(**SHORT).fit(start.X, np.where(start.y == "a", "x", "y"))
    before, own = set(model.vocabulary_), set(model.posterior_.word_names)
    model.partial_fit(more.X, np.where(more.y == "c", "x", "y"))
    after, changes = set(model.vocabulary_), model.posterior_.history[-1].changes
    now = set(model.posterior_.word_names)
    assert (changes.words_added, changes.words_forgotten) == (len(after - before), len(before - after))
    assert (changes.own_added, changes.own_forgotten) == (len(now - own), len(own - now)) and changes.own_added > 0


def test_the_unknown_share_of_a_batch_is_that_of_evenly_spaced_texts(monkeypatch):
    start = Corpus(60, "ab")
    model = SLDAClassifier(**SHORT).fit(start.X, start.y)
    monkeypatch.setattr(growing_room, "MOST_READ_AGAIN", 10)
    texts = [*start.X[:45], *["new words only"] * 46]
    model.partial_fit(texts, None)
    assert model.posterior_.history[-1].unknown_words == pytest.approx(0.5)


def test_what_is_known_of_words_moves_with_them():
    """Documents that have each word, and all documents; weights and their spread; pairs of words."""
    direct = new_words.Vocabulary(np.array(list("abcd"), object), np.array([0, 3, -1, 2]), Usage(np.ones(4), 4), [], [])
    documents = np.array([5.0, 4.0, 3.0, 2.0, 60.0])
    theta = np.arange(3.0)[:, None]
    words = WordWeights(theta[None], theta, np.ones((1, 1, 1)), Dictionary(np.array([0, 1, 3]), np.ones(3)))
    known = LinearCarryover(theta, 10.0 + theta, 1.0, documents)
    found = new_words.move_words(Carryover(linear={"words": known}), words, direct).linear["words"]
    np.testing.assert_array_equal(found.documents, [5.0, 2.0, 0.0, 3.0, 60.0])
    np.testing.assert_array_equal(found.theta, [[0.0], [2.0]])
    np.testing.assert_array_equal(found.precision, [[10.0], [12.0]])
    moved = words.at_places(direct.place(4))
    assert moved.dictionary.word.tolist() == [0, 1] and moved.theta[0].tolist() == moved.variance.tolist() == [
        [0.0],
        [2.0],
    ]
    pairs = Phrases(np.array([0, 1, 2]), np.array([3, 2, 0]), np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]))
    pairs = new_words.move_phrases(pairs, direct.place(4))
    assert (pairs.first.tolist(), pairs.second.tolist()) == ([0, 3], [1, 0])
    np.testing.assert_array_equal(pairs.share, [[0.1, 0.2], [0.5, 0.6]])


def test_a_bound_of_the_user_is_a_bound():
    names, usage = np.array(list("abcdef"), object), Usage(np.array([9.0, 1.0, 8.0, 7.0, 6.0, 5.0]), 3)
    found = grow_vocabulary(names, usage, np.zeros(6), {"new": 50, "rare": 1}, set(), most=4)
    assert found.names.tolist() == ["a", "c", "d", "e", "f", "new"]  # none is taken away for a bound alone
    found = grow_vocabulary(names, usage, np.zeros(6), {"new": 50, "rare": 1}, set(), most=7)
    assert found.names.tolist() == ["a", "c", "d", "e", "f", "new", "rare"]


def test_a_new_column_has_the_mean_factor_and_the_mean_support():
    """A factor in each draw, documents without words, and a level relative to the base rate."""
    factor = np.arange(12.0).reshape(2, 2, 3)
    words = WordWeights(np.ones((1, 2, 3)), np.ones((2, 3)), factor, Dictionary(np.array([0, 1]), np.ones(2)))
    columns = NewColumns(np.array([0, 1, 2, -1]), np.ones(4), 1.0, typical=True, exclusive=False)
    np.testing.assert_array_equal(words.with_columns(columns).factor[..., 3], factor.mean(axis=2))
    corpus = Corpus(60, "ab")
    model = SLDAClassifier(**SHORT).fit(corpus.X, corpus.y)
    before, after = model.posterior_.intercept, grown(model, ["c"]).posterior_.intercept
    np.testing.assert_allclose(after.empty_documents, before.empty_documents[0])
    np.testing.assert_allclose((after.level - after.base)[:2], 0.5 * (before.level - before.base) * [-1.0, 1.0])
    assert after.level[2] == after.base[2]
    shift, was = (m.posterior_.carryover.level_shift for m in (grown(model, ["c"]), model))
    np.testing.assert_allclose(shift[1], [was[1, 0], was[1, 0], 0.0])  # a sum of weights is no weight
    np.testing.assert_allclose(shift[[0, 2], :2], 0.5 * was[[0, 2]] * [-1.0, 1.0])


def test_probabilities_of_held_out_documents_leave_room_for_new_classes():
    """In each of them the new ones have their base rate, and the others what is left, in proportion."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 5).astype(np.float32)
    truth = np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1]]
    known = HeldOutPredictions(p, truth, np.zeros((5, 0)), np.ones(5), np.ones(5), np.zeros(5))
    response = Logistic(1.0, classes=np.array(list("abcde"), object))
    columns = NewColumns(np.array([0, 1, 2, -1, -1]), np.ones(5), 1.0, typical=True, exclusive=True)
    found = grow_held_out(known, response, columns, np.array([0.5, 0.3, 0.1, 0.02, 0.04]))
    np.testing.assert_allclose(found.expected.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(found.expected[:, 3:], 0.03, rtol=1e-6)
    np.testing.assert_allclose(found.expected[:, :3], 0.94 * p, rtol=1e-6)
    np.testing.assert_array_equal(found.truth, np.hstack([truth, np.zeros((5, 2))]))
    labels = replace(response, multilabel=True)
    found = grow_held_out(known, labels, columns, np.array([0.5, 0.3, 0.1, 0.02, 0.04]))
    np.testing.assert_allclose(found.expected[:, :3], p)


def test_a_batch_keeps_names_phrases_and_the_order_of_topics():
    """Names that a user gave, pairs of words, and what each chain calls its topics."""
    corpus = Corpus(60, "ab")
    model = SLDAClassifier(**SHORT, seeds={"a": [0], "b": [1]}).fit(corpus.X, corpus.y)
    pairs = Phrases(np.array([0]), np.array([1]), np.array([[0.5, 0.25]]))
    model.posterior_ = replace(model.posterior_.named({"0": "mine", "2": "other"}), phrases=pairs)
    before = model.posterior_
    model.partial_fit(corpus.X, corpus.y)
    assert model.posterior_.topic_names == before.topic_names == {"0": "mine", "1": "b", "2": "other"}
    np.testing.assert_array_equal(model.posterior_.phrases.share, pairs.share)
    assert model.posterior_.n_batches == 2
    np.testing.assert_array_equal(model.posterior_.order, before.order)
    assert [entry.batch for entry in model.posterior_.history] == [1, 2]
