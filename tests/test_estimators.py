"""The estimators: scikit-learn's contract, what is fitted, repeatability, bad input."""

import inspect
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.special import logit
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from processes import printed
from supertopic import (
    LDA,
    MedLDAClassifier,
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
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import predict
from supertopic.model.responses import Logistic, NegativeBinomial, Ordinal
from supertopic.report.topics import word_scores
from supertopic.sampling.chain import Chain
from supertopic.sampling.plan import make_plan
from supertopic.sampling.threads import ThreadEngine

QUICK = {"burn_in": 10, "n_draws": 5, "n_chains": 1, "random_state": 0}


class Rounding:
    """scikit-learn's checks use real numbers; ours are counts. Rounding first lets all the rest be checked."""

    folds = False  # whether negative numbers lose their sign

    def _validate_counts(self, X, reset):
        from sklearn.utils.validation import validate_data

        from supertopic.corpus.tokens import check_counts

        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric")
        X = X.copy() if sp.issparse(X) else np.array(X, dtype=float)
        values = X.data if sp.issparse(X) else X
        values[...] = np.round(3 * (np.abs(values) if self.folds else values))
        return check_counts(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:  # the checks' documents have two words, of which only the ratio counts
            tags.classifier_tags.poor_score = True
        return tags


class RoundedLDA(Rounding, LDA):
    pass


class RoundedSLDA(Rounding, SLDAClassifier):
    pass


class RoundedMedLDA(Rounding, MedLDAClassifier):
    pass


class RoundedRegressor(Rounding, SLDARegressor):
    pass


class SortedGrades(Ordinal):
    """scikit-learn's checks know no order of names: theirs is that of the alphabet."""

    def encode(self, y, weight, exposure=None, classes=None, sums=None):
        values = np.asarray(y).ravel().tolist()
        if classes is None and not len(self.classes) and all(isinstance(value, str) for value in values):
            classes = np.unique(values)
        return super().encode(y, weight, exposure, classes, sums)


class RoundedOrdinal(Rounding, SLDAOrdinalClassifier):
    def make_response(self):
        response = super().make_response()
        return SortedGrades(response.c, class_weight=response.class_weight, order=response.order)


class RoundedNumbers(NegativeBinomial):
    def _check(self, y, weight):
        response, values, weights = super()._check(y, weight)
        return response, np.round(np.abs(values)), weights


class RoundedCounts(Rounding, SLDACountRegressor):
    def make_response(self):
        response = super().make_response()
        return RoundedNumbers(response.c, response.r, drawn=response.drawn, fixed=response.fixed)


class RoundedTimes(Rounding, SLDASurvivalRegressor):
    pass


@parametrize_with_checks(
    [
        RoundedLDA(3, burn_in=2, n_draws=2, n_chains=1, predict_sweeps=4),
        RoundedSLDA(3, burn_in=2, n_draws=2, n_chains=2, predict_sweeps=4),
        RoundedMedLDA(3, burn_in=2, n_draws=2, n_chains=1, predict_sweeps=4, words=False),
        RoundedOrdinal(3, burn_in=2, n_draws=2, n_chains=1, predict_sweeps=4, words=False),
        RoundedRegressor(3, burn_in=2, n_draws=2, n_chains=1, predict_sweeps=4),
        RoundedCounts(3, burn_in=2, n_draws=2, n_chains=1, predict_sweeps=4, words=False),
        RoundedTimes(3, burn_in=2, n_draws=2, n_chains=1, predict_sweeps=4, words=False),
    ],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "a weight multiplies c, a repeated document also its words",
        "check_sample_weight_equivalence_on_sparse_data": "a weight multiplies c, a repeated document also its words",
    },
)
def test_scikit_learn_contract(estimator, check, short_regressions, monkeypatch):
    # these two feed negative numbers, whatever the tag positive_only says
    negative = check.func.__name__ in ("check_decision_proba_consistency", "check_class_weight_classifiers")
    monkeypatch.setattr(Rounding, "folds", negative)
    check(estimator)


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=300, n_topics=4, random_state=1)


@pytest.fixture(scope="module")
def fitted(corpus):
    return SLDAClassifier(4, n_chains=2, burn_in=60, n_draws=20, random_state=3).fit(corpus.X, corpus.y)


def test_planted_topics_are_found(corpus, fitted):
    """Every planted topic has a match, and the matches carry the planted weights in their order."""
    similar = np.corrcoef(np.vstack([corpus.topic_word, fitted.topic_word_]))[:4, 4:]
    match = similar.argmax(axis=1)
    assert similar.max(axis=1).min() > 0.9
    assert (np.diff(fitted.coef_[0, match]) > 0).all()
    assert fitted.score(corpus.X, corpus.y) > 0.85


def test_fitted_shapes(corpus, fitted):
    n_docs, n_words = corpus.X.shape
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.coef_.shape == (1, 4)
    assert fitted.coef_draws_.shape == (200, 1, 4)
    assert fitted.training_draws_.shape == fitted.prediction_draws_.shape == (2, 20, 1, 4)
    assert fitted.components_.shape == fitted.topic_word_.shape == (4, n_words)
    np.testing.assert_allclose(fitted.topic_word_.sum(axis=1), 1)
    seen = (fitted.components_ - fitted.beta).sum() / corpus.X.sum()
    assert abs(1 - seen - fitted.held_out_["documents"] / n_docs) < 0.02  # held-out documents are in no topic
    assert fitted.doc_topic_.shape == (n_docs, 4)
    np.testing.assert_allclose(fitted.doc_topic_.sum(axis=1), 1)
    assert fitted.log_joint_.shape == (2, len(fitted.log_joint_iterations_))
    assert fitted.log_joint_iterations_[-1] == 80
    assert fitted.best_chain_ == fitted.posterior_.traces.kept[:, :, 0].mean(axis=1).argmax()
    assert set(fitted.timings_) == {"eta", "z", "lambda"}
    assert fitted.sampler_ == "collapsed"
    lower, upper = fitted.coef_interval(0.9)
    assert ((lower <= fitted.coef_) & (fitted.coef_ <= upper)).all()
    assert fitted.get_feature_names_out().tolist() == [f"sldaclassifier{k}" for k in range(4)]


def test_probabilities_and_decisions_agree(corpus, fitted):
    p, score = fitted.predict_proba(corpus.X), fitted.decision_function(corpus.X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(score, np.log(p[:, 1] / p[:, 0]), rtol=1e-9)
    assert (fitted.predict(corpus.X) == (score > 0)).all()


def test_log_joint_is_the_definition():
    """From the last draw of a short run, by the slow truth."""
    import naive
    from supertopic.corpus.source import Arrays, make_target
    from supertopic.corpus.tokens import check_counts, make_tokens
    from supertopic.model.responses import Logistic
    from supertopic.model.state import Priors
    from supertopic.sampling.chain import Chain
    from supertopic.sampling.plan import make_plan

    corpus = make_corpus(n_docs=20, n_words=12, n_topics=3, doc_length=6, eta=np.ones((2, 3)), random_state=0)
    tokens, priors = make_tokens(check_counts(corpus.X)), Priors(np.array([0.2, 0.5, 0.1]), 0.3, 1.7)
    target = make_target(corpus.y.astype(float), np.ones(corpus.y.shape))
    source = Arrays(tokens, target)
    plan = make_plan(source, 12, Logistic(2.5), priors, False, "collapsed", 5, 0)
    with Chain(plan, 0, ThreadEngine(plan, source, 1), None) as chain:
        for _ in range(4):
            chain.step()
        (*_, (value, _)), eta, (shard,) = chain.trace, chain.eta[-1], chain.engine.shards
        state = shard.state()
    docs, z = (np.split(a, tokens.doc_start[1:-1]) for a in (tokens.word, state["z"].astype(int)))
    omega = naive.zbars(z, 3) @ eta.T
    expected = naive.log_words(docs, z, 12, 3, 0.3) + naive.log_documents(z, priors.alpha)
    expected += naive.logistic(2.5)(target.y, omega).sum()
    expected += np.sum(-0.5 * eta**2 / 1.7 - 0.5 * np.log(2 * np.pi * 1.7))
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("X", ["dense", "csc", "coo", "pandas", "float", "bool"])
def test_every_kind_of_matrix(corpus, X):
    counts = np.minimum(corpus.X.toarray(), 1) if X == "bool" else corpus.X.toarray()
    kinds = {"dense": counts, "csc": sp.csc_array(counts), "coo": sp.coo_array(counts), "float": counts.astype(float)}
    kinds |= {"bool": counts.astype(bool), "pandas": pd.DataFrame(counts, columns=[f"w{i}" for i in range(500)])}
    a = LDA(3, **QUICK).fit(kinds[X])
    b = LDA(3, **QUICK).fit(sp.csr_matrix(counts))
    np.testing.assert_array_equal(a.components_, b.components_)
    if X == "pandas":
        assert a.top_words(n=2)[0][0].startswith("w")


def test_the_callers_matrix_is_left_alone():
    X = sp.csr_matrix((np.array([1, 2, 3, 0]), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3))
    before = [a.copy() for a in (X.data, X.indices, X.indptr)]
    LDA(2, **QUICK).fit(X)
    for a, b in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(a, b)


def test_same_seed_same_model_also_in_another_process(corpus, fitted):
    again = clone(fitted).fit(corpus.X, corpus.y)
    np.testing.assert_array_equal(again.coef_draws_, fitted.coef_draws_)
    np.testing.assert_array_equal(again.components_, fitted.components_)
    code = (
        "from supertopic import SLDAClassifier; from supertopic.datasets import make_corpus;"
        "b = make_corpus(n_docs=300, n_topics=4, random_state=1);"
        "m = SLDAClassifier(4, n_chains=2, burn_in=60, n_draws=20, random_state=3, n_jobs=2).fit(b.X, b.y);"
        "print(m.coef_draws_.tobytes().hex())"
    )
    assert bytes.fromhex(printed(code).strip()) == fitted.coef_draws_.tobytes()


def test_random_state(corpus):
    a, b = (LDA(3, burn_in=2, n_draws=1).fit(corpus.X) for _ in range(2))
    assert a.seed_ != b.seed_
    again = LDA(3, burn_in=2, n_draws=1, random_state=a.seed_).fit(corpus.X)
    np.testing.assert_array_equal(again.components_, a.components_)
    state = LDA(3, burn_in=2, n_draws=1, random_state=np.random.RandomState(4)).fit(corpus.X)
    assert state.seed_ == np.random.RandomState(4).randint(2**31 - 1)


def test_a_document_does_not_depend_on_its_batch(corpus, fitted):
    together = fitted.predict_proba(corpus.X[:50])
    order = np.random.default_rng(0).permutation(50)
    np.testing.assert_array_equal(fitted.predict_proba(corpus.X[order]), together[order])
    alone = np.vstack([fitted.predict_proba(corpus.X[i : i + 1]) for i in range(50)])
    np.testing.assert_array_equal(alone, together)
    threads = clone(fitted).set_params(n_jobs=2)
    threads.__dict__.update({k: v for k, v in fitted.__dict__.items() if k.endswith("_") or k.startswith("_")})
    np.testing.assert_array_equal(threads.predict_proba(corpus.X[:50]), together)


def test_fit_transform_is_fit_then_transform(corpus):
    model = SLDAClassifier(3, **QUICK)
    np.testing.assert_array_equal(model.fit_transform(corpus.X, corpus.y), model.transform(corpus.X))


def test_documents_without_words(corpus, short_regressions):
    X = sp.vstack([corpus.X, sp.csr_array((3, corpus.X.shape[1]), dtype=int)]).tocsr()
    model = SLDAClassifier(3, **QUICK).fit(X, np.append(corpus.y, [0, 1, 1]))
    shares = model.transform(X)[-3:]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares, model.doc_topic_[-3:])
    np.testing.assert_allclose(shares[0], model.components_.sum(axis=1) / model.components_.sum(), atol=0.02)
    assert np.isfinite(model.predict_proba(X)).all()
    nothing = SLDAClassifier(2, **QUICK).fit(np.zeros((4, 3), int), [0, 1, 0, 1])
    assert np.isfinite(nothing.predict_proba(np.zeros((4, 3), int))).all()


@pytest.mark.parametrize("labels", [False, True])
def test_separate_classes_have_topics_of_their_own(labels, tmp_path, short_regressions):
    """Every class has a set of topics; predictions are those of all sets, whatever runs them."""
    corpus = make_corpus(n_docs=240, n_topics=3, random_state=1)
    y = corpus.doc_topic.argmax(axis=1)
    y = np.stack([y == 0, y == 1, y == 2], axis=1).astype(int) if labels else y
    run = {"n_topics": 4, "multiclass": "separate", "n_chains": 2, "burn_in": 30, "n_draws": 5, "random_state": 0}
    model, again = (SLDAClassifier(n_jobs=n_jobs, **run).fit(corpus.X, y) for n_jobs in (1, 3))
    shapes = [topics.word_topic.shape for topics in model.posterior_.topics]
    assert shapes == [(2, corpus.X.shape[1], 4)] * 3 and model.coef_.shape == (3, 12)
    for r in range(3):
        others = np.delete(model.coef_[r], range(4 * r, 4 * r + 4))
        assert (others == 0).all() and (model.coef_[r, 4 * r : 4 * r + 4] != 0).all()
    assert model.score(corpus.X, y) > 0.9
    np.testing.assert_array_equal(model.predict_proba(corpus.X), again.predict_proba(corpus.X))
    np.testing.assert_allclose(model.transform(corpus.X).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1.0)
    lower, upper = model.predict_interval(corpus.X[:5])
    assert ((lower <= upper) & (lower >= 0) & (upper <= 1)).all()
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(corpus.X), model.predict_proba(corpus.X))


def test_a_set_of_topics_has_chains_of_its_own():
    corpus = make_corpus(n_docs=60, n_topics=3, random_state=1)
    y = corpus.doc_topic.argmax(axis=1)
    run = {"n_topics": 3, "n_chains": 1, "burn_in": 5, "n_draws": 2, "random_state": 0, "calibrate": False}
    model = SLDAClassifier(multiclass="separate", init="random", **run).fit(corpus.X, y)
    columns = (y[:, None] == np.arange(3)).astype(float)
    offset = np.tile(logit(np.exp(model.intercept_)), (60, 1))  # a class against the rest
    source = Arrays(make_tokens(check_counts(corpus.X)), make_target(columns, np.ones_like(columns), offset))
    for place, topics in enumerate(model.posterior_.topics):
        own, priors = source.column(place), model._config(corpus.X.shape[1], 0).priors
        plan = make_plan(own, corpus.X.shape[1], Logistic(25.0), priors, False, "collapsed", 0, 5)
        with Chain(plan, place, ThreadEngine(plan, own, 1), None) as chain:
            for _ in range(7):
                chain.step()
            np.testing.assert_array_equal(topics.word_topic[0], chain.draws().word_topic)


def test_several_classes_share_topics(short_regressions):
    texts = ["goal match team win", "vote law senate party", "atom star orbit planet"] * 15
    labels = ["sport", "politics", "space"] * 15
    model = make_pipeline(CountVectorizer(), SLDAClassifier(5, **QUICK)).fit(texts, labels)
    assert model.score(texts, labels) == 1
    assert model[-1].coef_.shape == (3, 5)
    assert model.predict_proba(["orbit of a star"]).shape == (1, 3)
    assert model.predict(["star orbit planet"]).tolist() == ["space"]
    one_vs_rest = make_pipeline(CountVectorizer(), OneVsRestClassifier(SLDAClassifier(5, **QUICK))).fit(texts, labels)
    assert one_vs_rest.score(texts, labels) == 1


def test_labels_as_an_indicator_matrix(corpus, short_regressions):
    shares = corpus.doc_topic
    Y = np.column_stack([shares[:, 0] > 0.4, shares[:, 3] > 0.4, np.ones(len(shares))]).astype(int)
    model = SLDAClassifier(6, burn_in=40, n_draws=10, n_chains=1, random_state=0).fit(corpus.X, Y)
    assert model.predict(corpus.X).shape == Y.shape
    assert (model.predict(corpus.X) == Y).mean() > 0.9
    assert model.predict_proba(corpus.X)[:, 2].min() > 0.9  # a constant column is legal
    sparse = clone(model).fit(corpus.X, sp.csr_matrix(Y))
    np.testing.assert_array_equal(sparse.coef_, model.coef_)
    holes = Y.astype(float)
    holes[::3, 1] = np.nan
    assert (clone(model).fit(corpus.X, holes).predict(corpus.X) == Y).mean() > 0.85


@pytest.mark.parametrize("unknown", [-1, "?", np.nan, None])
def test_missing_labels(corpus, unknown, short_regressions):
    y = corpus.y.astype(object) if unknown is None else np.array(["no", "yes"])[corpus.y]
    if unknown == -1 or (isinstance(unknown, float) and np.isnan(unknown)):
        y = corpus.y.astype(float)
    y = y.astype(object) if isinstance(unknown, str) else y
    y[100:] = unknown
    missing = unknown if unknown in (-1, "?") else None
    run = {"burn_in": 40, "n_draws": 10, "n_chains": 1, "random_state": 0}
    model = SLDAClassifier(4, missing_label=missing, **run).fit(corpus.X, y)
    assert len(model.classes_) == 2
    known = y[:100]
    assert (model.predict(corpus.X[:100]) == known).mean() > 0.8
    weights = np.r_[np.ones(100), np.zeros(200)]
    y_all = np.concatenate([known, np.resize(known, 200)])
    by_weight = SLDAClassifier(4, **run).fit(corpus.X, y_all, sample_weight=weights)
    np.testing.assert_array_equal(by_weight.coef_draws_, model.coef_draws_)


def test_a_weight_multiplies_c(corpus, short_regressions):
    double = SLDAClassifier(3, c=10, **QUICK).fit(corpus.X, corpus.y, sample_weight=np.full(300, 2.0))
    plain = SLDAClassifier(3, c=20, **QUICK).fit(corpus.X, corpus.y)
    np.testing.assert_allclose(double.training_draws_, plain.training_draws_, rtol=1e-6)


def test_alpha_for_each_topic(corpus):
    scalar = LDA(4, alpha=2.0, **QUICK).fit(corpus.X)
    array = LDA(4, alpha=np.full(4, 0.5), **QUICK).fit(corpus.X)
    np.testing.assert_array_equal(scalar.components_, array.components_)
    skewed = LDA(4, alpha=[50, 0.01, 0.01, 0.01], **QUICK).fit(corpus.X)
    assert skewed.doc_topic_.mean(axis=0).argmax() == 0


def test_parameters_set_after_the_fit_do_no_harm(corpus, fitted):
    model = pickle.loads(pickle.dumps(fitted))
    before = model.predict_proba(corpus.X)
    model.set_params(n_topics=50, n_draws=7, n_chains=1, alpha=9.0, beta=0.5, sampler="drawn")
    np.testing.assert_array_equal(model.predict_proba(corpus.X), before)
    assert model.topic_word_.shape[0] == 4
    with pytest.raises(ValueError, match="predict_sweeps"):
        model.set_params(predict_sweeps=0).predict(corpus.X)


def test_pickle(corpus, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(corpus.X), fitted.predict_proba(corpus.X))


def test_top_words(fitted):
    names = np.array([f"word{i}" for i in range(500)])
    words = fitted.top_words(names, 3, "probability")
    assert [len(w) for w in words] == [3] * 4
    assert words[2][0] == names[fitted.topic_word_[2].argmax()]
    posterior, best = fitted.posterior_, fitted.best_chain_
    lift = fitted.topic_word_ / (posterior.shares[best] @ fitted.topic_word_)
    counts = posterior.topics[0].word_topic[best].T / posterior.n_draws
    assert fitted.top_words(names, 1, "lift")[2][0] == names[np.where(counts[2] >= 5, lift[2], 0).argmax()]
    with pytest.raises(ValueError, match="by must be 'frex', 'probability' or 'lift', got 'tfidf'"):
        fitted.top_words(names, by="tfidf")
    with pytest.raises(ValueError, match="7 names"):
        fitted.top_words(names[:7])


def test_words_that_topics_share_are_not_their_top_words():
    """A word that all topics use most comes first by probability only; one that is used once comes first by none."""
    counts = np.array([[90, 40, 9, 1, 0], [80, 0, 0, 0, 50]])
    topics = (counts + 0.01) / (counts + 0.01).sum(axis=1, keepdims=True)
    best = {by: np.argsort(-word_scores(topics, counts, np.array([0.5, 0.5]), by)[0]).tolist() for by in
            ("probability", "lift", "frex")}  # fmt: skip
    assert best == {"probability": [0, 1, 2, 3, 4], "lift": [1, 2, 0, 3, 4], "frex": [1, 0, 2, 3, 4]}
    empty = word_scores(np.full((2, 5), 0.2), np.zeros((2, 5)), np.array([0.5, 0.5]), "frex")
    assert np.isfinite(empty).all()  # a topic without tokens


GOOD = np.array([[1, 2, 0], [0, 1, 3], [2, 0, 1], [1, 1, 1]])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (-GOOD, [0, 1, 0, 1], "Negative"),
        (GOOD / 3, [0, 1, 0, 1], "Tfidf"),
        (np.where(GOOD > 2, np.nan, GOOD), [0, 1, 0, 1], "NaN"),
        (np.where(GOOD > 2, np.inf, GOOD), [0, 1, 0, 1], "inf"),
        (GOOD * 10**12, [0, 1, 0, 1], "limit"),
        (GOOD * (10**9), [0, 1, 0, 1], "limit"),
        (GOOD * (10**7), [0, 1, 0, 1], "Split"),
        (GOOD[:0], [], "0 sample"),
        (GOOD[:, :0], [0, 1, 0, 1], "0 feature"),
        (GOOD, [1, 1, 1, 1], "one class"),
        (GOOD, [0, 1, 0], "4 documents but y has 3"),
        (GOOD, None, "requires y"),
        (GOOD, [0.5, 1.5, 2.5, 0.1], "continuous"),
        (GOOD, [np.nan] * 4, "unknown"),
        (GOOD, [[0, 2], [1, 0], [1, 1], [0, 0]], "indicator"),
        (np.array([["a", "b"], ["c", "d"]]), [0, 1], "a list or column of texts"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SLDAClassifier(2, **QUICK).fit(X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_topics": 0}, {"n_topics": 2.5}, {"n_topics": 10**6}, {"c": 0}, {"c": -1}, {"c": np.nan}, {"c": np.inf},
        {"c": "much"}, {"alpha": 0}, {"alpha": [1, 2, 3]}, {"alpha": [1, np.nan]}, {"beta": 0},
        {"c": 1e30}, {"beta": 1e-300}, {"nu2": -1}, {"burn_in": -1},
        {"n_draws": 0}, {"n_chains": 0}, {"predict_sweeps": 0}, {"sampler": "fast"}, {"random_state": -3},
    ],
)  # fmt: skip
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SLDAClassifier(**({"n_topics": 2, "burn_in": 1, "n_draws": 2} | parameters)).fit(GOOD, [0, 1, 0, 1])


def test_bad_calls(corpus, fitted):
    with pytest.raises(ValueError, match="sample_weight"):
        SLDAClassifier(2).fit(GOOD, [0, 1, 0, 1], sample_weight=[1e20] * 4)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(corpus.X[:, :7])
    with pytest.raises(ValueError, match="level"):
        fitted.coef_interval(1.5)
    with pytest.raises(ValueError, match="two draws"):
        SLDAClassifier(2, burn_in=1, n_draws=1, n_chains=1).fit(GOOD, [0, 1, 0, 1]).coef_interval()
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        with pytest.raises(Exception, match="not fitted"):
            getattr(SLDAClassifier(2), method)(GOOD)


@pytest.mark.parametrize("X", ["a text", pd.DataFrame({"text": ["a b"]}), np.array([["a b"]]), [["a b", "c"]]])
def test_text_that_is_no_list_of_texts_is_refused_with_advice(X):
    for model in (LDA(2, **QUICK), SLDAClassifier(2, **QUICK)):
        with pytest.raises(
            TypeError, match=r"a list or column of texts, .* got text such as 'a.*model\.fit\(texts, y\)"
        ):
            model.fit(X, [0])


@pytest.mark.parametrize("dtype", ["string", "boolean", "Int64", "category"])
def test_pandas_types_with_na(corpus, dtype, short_regressions):
    y = pd.Series(np.where(corpus.y == 1, 1, 0))
    typed = y.astype(str).astype(dtype) if dtype in ("string", "category") else y.astype(dtype)
    typed[:5] = None
    a = SLDAClassifier(3, words=False, **QUICK).fit(corpus.X, typed)
    known = y.astype(float)
    known[:5] = np.nan
    b = SLDAClassifier(3, words=False, **QUICK).fit(corpus.X, known)
    np.testing.assert_array_equal(a.coef_draws_, b.coef_draws_)
    assert len(a.classes_) == 2
    labels = pd.DataFrame({"a": y.astype("boolean"), "b": y.astype("boolean")})
    labels.loc[:5, "a"] = None
    assert SLDAClassifier(3, words=False, **QUICK).fit(corpus.X, labels).classes_.tolist() == ["a", "b"]
    if dtype != "category":
        assert np.isfinite(SLDARegressor(3, words=False, **QUICK).fit(corpus.X, typed).predict(corpus.X)).all()


def test_more_topics_than_the_corpus_supports():
    X = np.eye(30, dtype=int) * 20
    with pytest.warns(UserWarning, match=r"n_topics=50 is too many for 30 documents with 600 words"):
        LDA(50, **QUICK).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LDA(20, **QUICK).fit(X)


def test_scores_with_covariates_and_exposure(corpus, short_regressions):
    """By hand, and by scikit-learn's metadata routing through cross_val_score and GridSearchCV."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(len(corpus.y), 2)), corpus.y
    loud = (Z[:, 0] > 0).astype(int)  # the covariate explains it all
    model = SLDAClassifier(3, words=False, **QUICK).fit(corpus.X, loud, covariates=Z)
    assert model.score(corpus.X, loud, covariates=Z) == np.mean(model.predict(corpus.X, covariates=Z) == loud) > 0.9
    rating = SLDARegressor(3, words=False, **QUICK).fit(corpus.X, Z[:, 0], covariates=Z)
    assert rating.score(corpus.X, Z[:, 0], covariates=Z) > 0.9
    exposure = rng.uniform(1, 50, len(y))
    count = SLDACountRegressor(3, words=False, **QUICK).fit(corpus.X, np.rint(3 * exposure), exposure=exposure)
    assert count.score(corpus.X, np.rint(3 * exposure), exposure=exposure) > 0.9
    with sklearn.config_context(enable_metadata_routing=True):
        asks = (
            SLDAClassifier(3, words=False, **QUICK).set_fit_request(covariates=True).set_score_request(covariates=True)
        )
        assert cross_val_score(asks, corpus.X, loud, params={"covariates": Z}, cv=3).mean() > 0.85
        search = GridSearchCV(asks, {"n_topics": [2, 3]}, cv=2).fit(corpus.X, loud, covariates=Z)
        assert search.best_score_ > 0.8
        asks = (
            SLDACountRegressor(3, words=False, **QUICK).set_fit_request(exposure=True).set_score_request(exposure=True)
        )
        scores = cross_val_score(asks, corpus.X, np.rint(3 * exposure), params={"exposure": exposure}, cv=3)
        assert scores.mean() > 0.8


def test_one_way_to_ask_for_uncertainty(corpus, short_regressions):
    """predict_interval for every estimator; the prediction's own shape; wider at a higher level."""
    labels = np.column_stack([corpus.y, 1 - corpus.y])
    three = np.arange(len(corpus.y)) % 3
    fits = {
        "predict_proba": [SLDAClassifier(3, **QUICK).fit(corpus.X, y) for y in (corpus.y, three, labels)],
        "decision_function": [MedLDAClassifier(3, **QUICK).fit(corpus.X, y) for y in (corpus.y, three, labels)],
        "predict": [
            SLDARegressor(3, **QUICK).fit(corpus.X, three.astype(float)),
            SLDARegressor(3, **QUICK).fit(corpus.X, labels.astype(float)),
            SLDACountRegressor(3, **QUICK).fit(corpus.X, three),
        ],
    }
    for method, models in fits.items():
        for model in models:
            middle = getattr(model, method)(corpus.X[:9])
            (low, high), (lower, upper) = (model.predict_interval(corpus.X[:9], level) for level in (0.5, 0.9))
            assert low.shape == high.shape == middle.shape
            assert (lower <= low).all() and (low <= high).all() and (high <= upper).all()
            with pytest.raises(ValueError, match="level"):
                model.predict_interval(corpus.X[:9], 1.5)


def test_topics_for_predictions_are_made_once(corpus, fitted, monkeypatch):
    model = pickle.loads(pickle.dumps(fitted))
    calls, make = [], predict.mean_topics
    monkeypatch.setattr(predict, "mean_topics", lambda *given: calls.append(given) or make(*given))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: model.predict_proba(corpus.X[:3]), range(16)))
    (topics,) = model.posterior_.topics
    assert len(calls) == len(topics.word_topic) == len(predict.frozen[topics])
    for answer in answers:
        np.testing.assert_array_equal(answer, fitted.predict_proba(corpus.X[:3]))
    assert pickle.loads(pickle.dumps(model)).posterior_.topics[0] not in predict.frozen
    again = model.fit(corpus.X, 1 - corpus.y).predict_proba(corpus.X[:3])  # another fit, other topics
    assert (again != answers[0]).any()


@pytest.mark.parametrize(
    "kind",
    [
        LDA,
        SLDAClassifier,
        MedLDAClassifier,
        SLDAOrdinalClassifier,
        SLDARegressor,
        SLDACountRegressor,
        SLDACrowdClassifier,
        SLDACrowdRegressor,
        SLDASurvivalRegressor,
    ],
)
def test_every_parameter_and_attribute_is_documented(corpus, kind, short_regressions):
    """help() shows all of them; nothing says "as in"."""
    text = kind.__doc__
    assert "As in" not in text and "others :" not in text and "\n...\n" not in text
    documented = {name for names in re.findall(r"^(\w+(?:, \w+)*) :", text, re.MULTILINE) for name in names.split(", ")}
    assert documented >= set(inspect.signature(kind).parameters)
    several = kind in (SLDACrowdClassifier, SLDACrowdRegressor)
    model = kind(2, **QUICK).fit(corpus.X, corpus.y[:, None] * np.ones(2) if several else corpus.y)
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    public |= {name for name in dir(kind) if name.endswith("_") and isinstance(getattr(kind, name), property)}
    public = {name for name in public if not name.startswith("_")}
    inner = {"alpha_", "beta_", "n_features_in_", "multilabel_", "multioutput_"}
    assert documented >= public - inner
