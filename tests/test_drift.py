"""Drift: a change is noticed, and chance alone hardly ever raises an alarm."""

from itertools import combinations
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from supertopic import (
    LDA,
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    load,
    save,
)
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.estimators import drift as drift_room
from supertopic.estimators.drift import as_answers
from supertopic.inference import completion
from supertopic.inference.completion import without_rare
from supertopic.inference.predict import Settings
from supertopic.model.reference import Reference
from supertopic.report import drift as d
from supertopic.report.drift import Answers, Drift, Row, compare_documents, compare_means, compare_rows

QUICK = {"n_topics": 3, "n_chains": 1, "burn_in": 8, "n_draws": 4, "predict_sweeps": 10, "words": False}
SUBJECTS = {
    "sport": ["goal", "match", "team", "win", "league", "player", "coach", "season", "score", "cup"],
    "politics": ["vote", "law", "senate", "party", "election", "minister", "tax", "reform", "bill", "council"],
    "food": ["bread", "butter", "oven", "recipe", "flour", "sugar", "dinner", "salt", "soup", "spoon"],
}


def make_texts(n, seed, subjects=("sport", "politics")):
    rng = np.random.default_rng(seed)
    labels = rng.choice(subjects, n)
    return [" ".join(rng.choice(SUBJECTS[label], 14)) for label in labels], labels


@pytest.fixture(scope="module")
def fitted():
    return SLDAClassifier(**QUICK, random_state=0).fit(*make_texts(400, 0))


def some_reference(rng, n):
    return Reference(rng.lognormal(0, 0.5, n), rng.dirichlet(np.full(6, 0.3), n), rng.beta(0.5, 5, n))


def some_answers(rng, n):
    p = rng.dirichlet(np.ones(3), n)
    truth = np.eye(3)[[rng.choice(3, p=row) for row in p]]
    return Answers(rng.lognormal(-1, 1, n), p - truth, np.zeros(0), np.zeros(n, bool))


# figures


def test_alarms_by_chance_are_as_rare_as_promised(monkeypatch):
    monkeypatch.setattr(d, "PERMUTATIONS", 50)  # the tail is a gamma distribution's anyhow
    rng, alarms, streams = np.random.default_rng(0), 0, 200
    for _ in range(streams):
        usual, known = some_reference(rng, 300), some_answers(rng, 300)
        n = int(rng.integers(8, 60))
        figures, _ = compare_documents(some_reference(rng, n), usual, some_answers(rng, n), known)
        assert len(figures) == 7
        alarms += bool(Drift(figures, n).alarms)
    assert alarms <= 5


@pytest.mark.parametrize("part", ["unknown", "surprise", "shares", "loss", "excess"])
def test_each_figure_notices_its_change(part):
    rng = np.random.default_rng(1)
    usual, known, new, answers = (f(rng, n) for n in (300, 60) for f in (some_reference, some_answers))
    names = {
        "unknown": d.UNKNOWN, "surprise": d.SURPRISE, "shares": d.DISTANCE, "loss": d.LOSS, "excess": d.CALIBRATION,
    }  # fmt: skip
    if part == "shares":
        new = new._replace(shares=0.4 * np.eye(6)[0] + 0.6 * new.shares)
    elif part == "excess":  # class 0 is predicted too often
        answers = answers._replace(excess=answers.excess + np.array([0.3, -0.15, -0.15]))
    elif part == "loss":
        answers = answers._replace(loss=3 * answers.loss)
    else:
        new = new._replace(**{part: 4 * getattr(new, part)})
    found = Drift(compare_documents(new, usual, answers, known)[0], 60)
    assert names[part] in found.alarms and set(found.alarms) <= {names[part], d.UNEXPLAINED}
    assert found[names[part]].value > found[names[part]].limit > found[names[part]].usual


def test_the_limit_is_where_p_is_the_risk():
    rng = np.random.default_rng(2)
    reference = rng.lognormal(0, 1, 200)
    for shift in (0.0, 0.5, 1.0, 3.0):
        row = compare_means(rng.lognormal(0, 1, 30) + shift, reference, 0.01)
        assert (row.p < 0.01) == (row.value > row.limit)
        rows = compare_rows(np.c_[rng.random(30) + shift], np.c_[rng.random(200)], d.largest, 0.01)
        assert (rows.p < 0.01) == (rows.value > rows.limit)


def test_p_is_that_of_a_permutation_test():
    rng = np.random.default_rng(1)
    reference, values = rng.gamma(3, 1, 60), rng.gamma(4, 1, 15)
    both = np.concatenate([values, reference])
    dealt = np.array([rng.permutation(both)[:15].mean() for _ in range(20_000)])
    assert compare_means(values, reference, 0.01).p == pytest.approx((dealt >= values.mean()).mean(), abs=0.005)
    assert 0.005 < (dealt >= values.mean()).mean() < 0.1


def test_constant_figures_raise_no_alarm():
    assert compare_means(np.zeros(9), np.zeros(50), 0.01) == Row(0.0, 0.0, 0.0, 1.0)
    assert compare_rows(np.ones((9, 2)), np.ones((50, 2)), d.total_variation, 0.01).p == 1.0


# documents


def test_a_new_theme_is_noticed_and_named(fitted):
    texts, _ = make_texts(40, 1)
    assert not fitted.drift(texts).alarms
    changed = fitted.drift(texts[:20] + make_texts(20, 2, ["food"])[0])
    assert d.UNKNOWN in changed.alarms and len(set(changed.theme) & set(SUBJECTS["food"])) >= 8
    sentence = changed.sentence()
    assert "usually" in sentence and "limit" in sentence and changed.theme[0] in sentence
    assert "*" in repr(changed) and "<table>" in changed._repr_html_()
    assert "\np: the probability of a value as large by chance.\n" in repr(changed)


def test_known_words_in_other_documents_are_noticed(fitted):
    found = fitted.drift(make_texts(40, 3, ["sport"])[0])
    assert found.alarms == [d.DISTANCE] and not found.theme


def test_changed_responses_are_noticed(fitted):
    texts, y = make_texts(60, 4)
    assert not fitted.drift(texts, y).alarms
    other = np.where(y == "sport", "politics", "sport")
    assert d.LOSS in fitted.drift(texts, other).alarms
    found = fitted.drift(texts, np.full(60, "sport"))
    assert d.CALIBRATION in found.alarms and found[d.CALIBRATION].value > 0.2
    answers = as_answers(fitted.posterior_.response, fitted.posterior_.held_out_predictions, np.zeros(0, bool))
    np.testing.assert_allclose(answers.excess.sum(axis=1), 0.0, atol=1e-5)  # both are probabilities


def test_new_classes_are_noticed(fitted):
    texts, y = make_texts(60, 5)
    y = y.astype(object)
    y[:10], y[10:15] = "food", None
    found = fitted.drift(texts, y)
    assert found[d.NEW].value == pytest.approx(10 / 55) and d.NEW in found.alarms
    assert d.NEW not in fitted.drift(texts, y[10:].tolist() + [None] * 10).alarms


def test_labels_of_rows_are_those_of_the_index(fitted):
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(make_texts(30, 6)[0] + ["goal vote " * 20] * 4, index=[f"n{i}" for i in range(34)])
    found = fitted.drift(texts)
    assert all(str(label).startswith("n") for label in found.documents)


def test_files_batches_and_counts_keep_the_reference(fitted, tmp_path):
    texts, _ = make_texts(40, 7)
    save(fitted, tmp_path / "m")
    assert dict(load(tmp_path / "m").drift(texts)) == dict(fitted.drift(texts))
    X = np.random.default_rng(0).poisson(1.0, (300, 12))
    model = SLDAClassifier(**QUICK, random_state=0).fit(X[:200], X[:200, 0] > 0)
    n = len(model.posterior_.reference.surprise)
    model.partial_fit(X[200:], X[200:, 0] > 0)
    assert len(model.posterior_.reference.surprise) > n
    found = model.drift(X[:50])
    assert d.UNKNOWN not in found and d.DISTANCE in found  # nothing is known of other words


def test_few_and_no_documents_say_little(fitted):
    assert not fitted.drift([""]).alarms and not fitted.drift(["goal"]).alarms
    assert dict(fitted.drift(["", ""])) == {}


def test_without_held_out_documents_a_reference_is_needed():
    texts, _ = make_texts(200, 8)
    model = LDA(3, n_chains=1, burn_in=8, n_draws=4, random_state=0).fit(texts)
    with pytest.raises(ValueError, match="pass reference="):
        model.drift(texts)
    found = model.drift(make_texts(40, 9, ["food"])[0], reference=make_texts(100, 10)[0])
    assert d.UNKNOWN in found.alarms


@pytest.mark.parametrize("kind", ["hinge", "labels", "ordinal", "rating", "count", "raters", "time"])
def test_every_response_can_be_compared(kind):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (330, 12))
    number = X[:, :4].sum(axis=1).astype(float)
    make, y = {
        "hinge": (MedLDAClassifier, number > 4), "labels": (SLDAClassifier, np.c_[number > 4, X[:, 5] > 0] * 1),
        "ordinal": (SLDAOrdinalClassifier, np.minimum(number // 3, 2)), "rating": (SLDARegressor, number),
        "count": (SLDACountRegressor, number), "raters": (SLDACrowdClassifier, np.c_[number > 4, number > 3] * 1.0),
        "time": (SLDASurvivalRegressor, number + rng.random(330)),
    }[kind]  # fmt: skip
    model = make(**QUICK, random_state=0).fit(X[:250], y[:250])
    found = model.drift(X[250:], y[250:])
    assert d.LOSS in found
    assert (d.CALIBRATION in found) == (kind in ("labels", "ordinal"))
    assert (d.OUTSIDE in found) == (kind in ("rating", "count"))
    if kind == "rating":
        assert {d.OUTSIDE, d.LOSS} <= set(model.drift(X[250:], 60 - 3 * y[250:]).alarms)


def test_a_share_beyond_a_held_out_document_has_the_spread_of_both_samples():
    rng, risk, runs = np.random.default_rng(0), 0.01, 3000
    for n_usual, n_docs in ((45, 200), (100, 2000), (500, 500)):
        rank = int(d.UNUSUAL * n_usual) + 1
        alarm = next(n for n in range(n_docs) if d.compare_counts(n, n_docs, rank, n_usual, risk).p < risk)
        pairs = ((rng.random(n_docs), rng.random(n_usual)) for _ in range(runs))
        alarms = sum(len(d.find_unexplained(*pair, rank)) >= alarm for pair in pairs)
        assert alarms < runs * risk + 4 * np.sqrt(runs * risk), (n_usual, n_docs)
    assert d.compare_counts(100, 200, 2, 100, risk).p < 1e-6  # what is no chance is noticed


def test_documents_that_are_too_short_do_not_count():
    rng = np.random.default_rng(0)
    usual, new = some_reference(rng, 200), some_reference(rng, 100)
    new = new._replace(surprise=2.0 * new.surprise)
    short = new._replace(surprise=np.append(new.surprise, np.full(100, np.nan)))
    found, same = (compare_documents(documents, usual)[0] for documents in (new, short))
    assert found[d.UNEXPLAINED].value > 0 and same[d.UNEXPLAINED] == found[d.UNEXPLAINED]


def test_of_many_documents_some_are_compared_with_all_that_belongs_to_them(monkeypatch):
    texts, y = make_texts(300, 11)
    texts, y, Z = np.array(texts, object), y.astype(object), np.random.default_rng(0).normal(size=(300, 1))
    model = SLDAClassifier(**QUICK, random_state=0).fit(texts[:150], y[:150], covariates=Z[:150])
    new = np.where(np.arange(150) % 3 == 0, texts[150:] + " bread oven soup", texts[150:])
    Z[150:] += 20.0 * (y[150:] == "sport")[:, None]  # predictions depend on them
    monkeypatch.setattr(drift_room, "MOST", 40)
    rows = np.linspace(0, 149, 40).astype(int)
    found = model.drift(new, y[150:], covariates=Z[150:])
    few = model.drift(new[rows], y[150:][rows], covariates=Z[150:][rows])
    assert dict(found) == dict(few) and d.LOSS in found and found.n_docs == 40
    pandas = pytest.importorskip("pandas")
    labels = np.array([f"n{i}" for i in range(150)])
    odd = np.array([text if i % 2 else "goal vote " * 20 for i, text in enumerate(new)])
    series = model.drift(pandas.Series(odd, index=labels)).documents
    assert series and series == labels[model.drift(odd).documents].tolist() and set(series) <= set(labels[rows])


def test_the_fewest_documents_that_are_compared():
    """Five, of which something is known, on both sides."""
    rng = np.random.default_rng(0)
    usual = some_reference(rng, 5)
    for n, names in ((4, set()), (5, {d.UNKNOWN, d.SURPRISE, d.UNEXPLAINED, d.DISTANCE})):
        new = some_reference(rng, n)
        assert set(compare_documents(new, usual)[0]) == set(compare_documents(usual, new)[0]) == names
    new = some_reference(rng, 5)
    new.surprise[2] = np.nan
    assert set(compare_documents(new, usual)[0]) == {d.UNKNOWN, d.DISTANCE}


def test_a_document_as_odd_as_the_bound_is_not_beyond_it():
    found = d.find_unexplained(np.array([3.0, 5.0, np.nan, 4.0, 7.0]), np.array([1.0, 4.0, 9.0, 2.0]), 2)
    assert found.tolist() == [4, 1]


def test_the_probability_of_so_many_documents_beyond_a_held_out_one():
    """By counting: of all orders of 40 held-out and 6 new documents; fewer than three say nothing."""
    n, m, rank = 40, 6, 2

    def ways(k):  # k of the new ones are before the second held-out one
        return comb(k + rank - 1, k) * comb(n - rank + m - k, m - k) / comb(n + m, m)

    for k in range(3, 7):
        row = d.compare_counts(k, m, rank, n, 0.01)
        assert row.p == pytest.approx(sum(ways(j) for j in range(k, 7))) and row.value == pytest.approx(k / 6)
        assert row.usual == pytest.approx(2 / 41) and row.limit == pytest.approx(2 / 6)
    assert d.compare_counts(2, m, rank, n, 0.01).p == 1.0
    limit = d.compare_counts(0, 60, rank, n, 0.01).limit
    assert d.compare_counts(round(60 * limit) + 1, 60, rank, n, 0.01).p <= 0.01 < d.compare_counts(
        round(60 * limit), 60, rank, n, 0.01).p  # fmt: skip


def test_limits_and_new_classes_of_a_comparison():
    """The risk is divided among the figures; a new class is compared with the documents of known classes."""
    rng = np.random.default_rng(4)
    usual, new, known = some_reference(rng, 100), some_reference(rng, 30), some_answers(rng, 70)
    answers = some_answers(rng, 30)._replace(new=np.arange(30) < 4)
    found, _ = compare_documents(new, usual, answers, known)
    assert len(found) == 7 and found[d.NEW] == d.compare_counts(4, 30, 1, 70, d.ALARM / 7)
    assert found[d.LOSS] == compare_means(answers.loss, known.loss, d.ALARM / 7)
    assert d.largest(np.array([0.1, -0.4, 0.3])) == 0.4 and [row[-1] for row in Drift(found, 30).rows()[1:]] == [
        "*" if row.p < d.ALARM / 7 else "" for row in found.values()
    ]


def test_the_skew_of_a_small_sample_is_that_of_its_documents():
    """A few documents of a skewed figure exceed their mean further than they fall short of it."""
    rng = np.random.default_rng(0)
    reference, values = rng.gamma(0.3, 1.0, 100), rng.gamma(0.3, 1.0, 8)
    both = np.concatenate([values, reference])
    dealt = np.array([rng.permutation(both)[:8].mean() for _ in range(4000)])
    for shift in (0.2, 0.5):
        own = values - values.mean() + both.mean() + shift
        reference_too = both.sum() - own.sum()
        row = compare_means(own, reference * reference_too / reference.sum(), 0.01)
        assert row.p == pytest.approx((dealt >= own.mean()).mean(), abs=0.03)


def test_documents_are_dealt_without_replacement():
    """Against all ways to deal three of six documents."""
    values = np.arange(6.0) ** 2
    away = [abs(values[list(own)].mean() - (55 - values[list(own)].sum()) / 3) for own in combinations(range(6), 3)]
    row = compare_rows(values[:3, None], values[3:, None], d.largest, 0.01)
    assert row.usual == pytest.approx(np.mean(away), rel=0.08) and row.value == pytest.approx(np.max(away))


def test_words_of_a_theme_have_a_score():
    """n log(share / usual share), of words in two documents or more; at most ten, none that is as rare as usual."""
    counts = sp.csr_array(np.array([[3, 1, 2, 0], [1, 1, 0, 5]]))
    others = [["tea", "tea", "cup"], ["tea", "cup", "cup"]]  # 13 known tokens and 6 others
    usual = np.array([0.07, 2 / 19, 0.001, 0.001])
    expected = {"tea": 3 * np.log(3 / 19 / (0.5 / 19)), "cup": 3 * np.log(6.0), "a": 4 * np.log(4 / 19 / 0.07)}
    assert d.theme_words(counts, list("abcd"), usual, others) == sorted(expected, key=lambda w: (-expected[w], w))
    assert d.theme_words(counts, list("abcd"), np.array([1e-9, 2 / 19, 1, 1]), others)[0] == "a"  # 4 log 8 is more
    many = [[f"w{i:02d}" for i in range(12)]] * 2
    assert d.theme_words(sp.csr_array((2, 1)), ["a"], np.ones(1), many) == many[0][:10]


def test_a_theme_is_sorted_by_tokens():
    others = [["often"] * 9, ["often", "few"], ["few"], ["few", "once"]]
    assert d.theme_words(sp.csr_array((4, 1)), ["known"], np.ones(1), others) == ["often", "few"]
    others = [["few"], ["few"], ["few", *["often"] * 9], ["often"]]
    assert d.theme_words(sp.csr_array((4, 1)), ["known"], np.ones(1), others) == ["often", "few"]


def test_describing_documents_changes_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (200, 30)), rng.integers(0, 2, 200)
    X[:, 25:] = 0
    X[0, 25:] = 1  # words of one document, which do not count as known ones
    model = SLDAClassifier(**QUICK, random_state=0).fit(X, y)
    counts = sp.csr_array(rng.integers(0, 3, (50, 30)))
    before = counts.copy()
    without = without_rare(model.posterior_, counts)
    assert without.sum() < counts.sum()
    model.drift(counts)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(before, name))


def test_wrong_arguments_are_refused(fitted):
    texts, y = make_texts(40, 3)
    with pytest.raises(ValueError, match="40 documents but y has 39"):
        fitted.drift(texts, y[:39])
    with pytest.raises(TypeError, match="no argument 'foo'"):
        fitted.drift(texts, foo=1)
    plain = LDA(3, n_chains=1, burn_in=4, n_draws=2, random_state=0).fit(texts)
    with pytest.raises(ValueError, match="LDA has no response"):
        plain.drift(texts, y, reference=texts)
    with pytest.warns(UserWarning, match="30 of 30 texts are missing"):
        fitted.drift([None] * 30)


def test_figures_are_means_and_distances_of_the_documents():
    """What stands in the table, from the numbers that are compared."""
    rng = np.random.default_rng(3)
    usual, new = some_reference(rng, 200), some_reference(rng, 50)
    known, answers = (
        some_answers(rng, n)._replace(outside=(rng.random(n) < q) * 1.0) for n, q in ((200, 0.1), (50, 0.5))
    )
    found, odd = compare_documents(new, usual, answers, known)
    means = {d.UNKNOWN: (new.unknown, usual.unknown), d.SURPRISE: (new.surprise, usual.surprise),
             d.LOSS: (answers.loss, known.loss), d.OUTSIDE: (answers.outside, known.outside)}  # fmt: skip
    for name, (own, other) in means.items():
        assert (found[name].value, found[name].usual) == pytest.approx((own.mean(), other.mean()))
    away = np.abs(new.shares.mean(axis=0) - usual.shares.mean(axis=0))
    assert found[d.DISTANCE].value == pytest.approx(away.sum() / 2)
    away = np.abs(answers.excess.mean(axis=0) - known.excess.mean(axis=0))
    assert found[d.CALIBRATION].value == pytest.approx(away.max())
    bound = np.sort(usual.surprise)[-3]  # a hundredth of 200, and one
    beyond = np.flatnonzero(new.surprise > bound)
    assert odd.tolist() == beyond[np.argsort(-new.surprise[beyond])].tolist()
    assert found[d.UNEXPLAINED].value == pytest.approx(len(beyond) / 50) and list(found) == [
        name for name in d.ORDER if name in found
    ]


def test_the_risk_of_an_alarm_is_divided_among_the_figures():
    rows = {name: Row(1.0, 0.0, 0.5, p) for name, p in zip("abcd", (0.004, 0.001, 0.0013, 1.0), strict=True)}
    assert Drift(rows, 9).alarms == ["b"] and Drift({"a": rows["a"]}, 9).alarms == ["a"]


def test_the_words_of_a_theme_are_those_of_unexplained_documents(fitted, monkeypatch):
    """If only the words are unusual, those of all documents."""
    texts, _ = make_texts(8, 5)
    alarm, seen = Row(1.0, 0.0, 0.0, 0.0), []
    monkeypatch.setattr(drift_room, "theme", lambda posterior, X, counts, reader: seen.append((X, counts)) or ["w"])
    for name, rows in ((d.UNEXPLAINED, [5, 2]), (d.UNKNOWN, list(range(8)))):
        monkeypatch.setattr(
            drift_room, "compare_documents", lambda *given, name=name: ({name: alarm}, np.array([5, 2]))
        )
        found = fitted.drift(texts)
        X, counts = seen.pop()
        assert [texts[i] for i in rows] == X and found.documents == [5, 2] and found.theme == ["w"]
        np.testing.assert_array_equal(counts.toarray(), fitted.vectorizer_.transform(X).toarray())


def test_a_reference_without_words_is_left_out(fitted):
    """A document of which nothing is known says nothing of what is usual."""
    texts, _ = make_texts(80, 7)
    new, _ = make_texts(30, 8)
    plain, more = (fitted.drift(new, reference=reference) for reference in (texts, [*texts, "", ""]))
    for name in (d.SURPRISE, d.UNKNOWN):
        assert more[name].usual == pytest.approx(plain[name].usual)


def test_new_classes_are_a_share_of_what_is_known(fitted):
    texts, y = make_texts(40, 9)
    y = y.astype(object)
    y[:10], y[10:14] = None, "food"
    found = fitted.drift(texts, y)
    assert found[d.NEW].value == pytest.approx(4 / 30)
    y[10:14] = None
    assert fitted.drift(texts, y)[d.NEW].value == 0.0


def test_the_latest_documents_of_batches_are_the_reference(fitted, monkeypatch):
    """Those of this batch, and of earlier ones as many of the latest as there is room for."""
    posterior = fitted.posterior_
    monkeypatch.setattr(completion, "MOST_DOCUMENTS", 12)
    rng, n_topics = np.random.default_rng(0), posterior.n_topics
    tokens = make_tokens(check_counts(rng.poisson(1.0, (5, posterior.n_words))))
    before = Reference(np.arange(40.0), np.arange(40.0)[:, None] * np.ones(n_topics, np.float32), np.array([0.5]))
    shares = rng.dirichlet(np.ones(n_topics), 5)
    alone = completion.make_reference(posterior, tokens, shares, Settings(4), np.array([0.1]), None)
    found = completion.make_reference(posterior, tokens, shares, Settings(4), np.array([0.1]), before)
    np.testing.assert_array_equal(found.surprise, [*range(33, 40), *alone.surprise])
    np.testing.assert_array_equal(found.shares[:, 0], [*range(33, 40), *shares[:, 0].astype(np.float32)])
    assert found.unknown.tolist() == [0.5] and alone.unknown.tolist() == [0.1] and len(alone.shares) == 5


def test_a_word_that_occurs_once_is_rare_however_many_draws_there_are():
    """Counts are sums over draws; a word that comes twice is not rare."""
    counts = np.zeros((1, 4, 2), int)
    counts[0, :, 0] = [10, 20, 0, 10]
    counts[0, :, 1] = [0, 0, 20, 5]
    posterior = SimpleNamespace(topics=[SimpleNamespace(word_topic=counts, n_draws=10)], best_chain=0)
    found = without_rare(posterior, sp.csr_array(np.array([[3, 1, 2, 4], [1, 0, 0, 0]])))
    np.testing.assert_array_equal(found.toarray(), [[0, 1, 2, 4], [0, 0, 0, 0]])
