"""What tables, frames and pages show, computed again from the posterior and from y by NumPy alone."""

import copy
import json
import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from fitted import ABOUT, LEVEL, NAMES, RATERS, TEXTS, N
from scipy.stats import rankdata
from sklearn.metrics import f1_score, r2_score

import supertopic
from supertopic import SLDAClassifier, SLDARegressor
from supertopic.model.history import Changes
from supertopic.model.responses.answers import as_answers
from supertopic.model.terms import Intercept
from supertopic.report import page_documents
from supertopic.report.page_evaluation import calibration
from supertopic.report.page_groups import group
from supertopic.report.page_made import describe_burn_in, history
from supertopic.report.raters import measure_agreement
from supertopic.report.summary import (
    contribution_sentences,
    describe_covariates,
    describe_topics,
    describe_weights,
    predicts,
    targets_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # models are small here
WEIBULL = {"axis": 0, "method": "weibull"}


@pytest.fixture(scope="module")
def loaded(models):
    return cache(lambda name: supertopic.load(models(name)))


def few_chains(model):
    """The same model, one of whose topics only one of the two chains has."""
    posterior = model.posterior_
    (topics,) = posterior.topics
    counts = topics.word_topic.copy()
    counts[1, :, posterior.order[1, 2]] = counts[1, ::-1, posterior.order[1, 2]]
    found = SLDAClassifier()
    found.posterior_ = replace(posterior, topics=(replace(topics, word_topic=counts),))
    assert found.posterior_.consensus.n_having.tolist().count(1) >= 1
    return found


# weights and effects


def test_effects_of_topics_by_their_definition(loaded):
    """More of a topic stands in place of the usual mixture of the topics of the same class."""
    for name in ("class", "separate", "two"):
        model = loaded(name)
        posterior, draws = model.posterior_, model.coef_draws_
        n_sets = len(posterior.topics)
        shares = posterior.mean_shares * n_sets
        change = np.zeros((len(draws), posterior.n_topics, draws.shape[1]))
        for r in range(draws.shape[1]):
            own = posterior.own[r]
            usual = draws[:, r, own] @ shares[own]
            assert shares[own].sum() == pytest.approx(1.0)
            change[:, own, r] = 0.3 * (draws[:, r, own] - usual[:, None])
        expected = posterior.mean_response.expected
        base = posterior.intercept.base
        after = expected(base + change) - expected(base)
        frame = model.effect_frame(0.3)
        for column, own in frame.groupby("column", sort=False):
            place = list(map(str, posterior.response.answers)).index(str(column))
            np.testing.assert_allclose(own["change"], after[..., place].mean(axis=0), rtol=1e-9, atol=1e-12)


def test_rows_of_groups_and_of_weights_are_those_of_their_draws(loaded):
    model = loaded("groups")
    draws, names = model.posterior_.response.in_units(model.posterior_.reported_groups), model.group_names_
    for _, row in model.group_frame(0.8).iterrows():
        own = draws[:, list(map(str, model.classes_)).index(row["column"]), names.tolist().index(row["group"])]
        assert (row["mean"], row["sd"]) == pytest.approx((own.mean(), own.std(ddof=1)))
        assert (row["lower"], row["upper"]) == pytest.approx(np.quantile(own, [0.1, 0.9], method="weibull"))
        assert row["p_positive"] == pytest.approx((own > 0).mean())
    variance = np.concatenate(model.posterior_.groups.variance)
    np.testing.assert_allclose(model.group_sd_, np.sqrt(variance).mean(axis=0))
    draws, lower = model.coef_draws_, model.coef_interval(0.9)[0]
    for row in describe_weights(model.posterior_, model.vocabulary_):
        r = list(model.classes_).index(row["column"])
        assert (
            row["weight"] == pytest.approx(draws[:, r, row["topic"]].mean()) and row["lower"] == lower[r, row["topic"]]
        )


def test_the_weight_of_a_topic_is_that_of_the_class_that_it_pulls_to(loaded):
    """Among the columns that have weights for it; decisions of sticks are no classes."""
    for name in ("class", "separate", "sticks", "two", "labels"):
        model = loaded(name)
        posterior, coef = model.posterior_, model.coef_
        targets = targets_of(posterior)
        pulls, effect = targets.pulls(), targets.effects.mean(axis=0)
        lower, upper = model.coef_interval(0.9)
        for row in describe_topics(posterior, model.vocabulary_):
            k, own = row["topic"], np.flatnonzero(posterior.own[:, row["topic"]])
            r = own[coef[own, k].argmax()]
            if name not in ("two", "sticks") and pulls[k] is not None and pulls[k] in own:
                r = pulls[k]
            assert row["weight"] == pytest.approx(coef[r, k])
            assert row["interval"] == pytest.approx([lower[r, k], upper[r, k]])
            rises = pulls[k] is not None and effect[k, pulls[k]] > 0
            if name == "two":
                expected = None if pulls[k] is None else model.classes_[int(rises)]
                assert not row["turned"]
            else:
                expected = model.classes_[pulls[k]] if rises else None
                assert row["turned"] == (pulls[k] is not None and (coef[r, k] < 0) == rises)
            assert row["class"] == expected


def test_covariates_of_two_classes_are_about_the_second():
    draws = np.random.default_rng(0).normal(size=(40, 1, 2)) + [1.0, -2.0]
    design = SimpleNamespace(references=[{}, {}])
    columns = SimpleNamespace(names=["a", "b"], design=design, scale=np.array([2.0, 4.0]))
    response = SimpleNamespace(labels=["no", "yes"], in_units=lambda x: x)
    posterior = SimpleNamespace(
        covariates=SimpleNamespace(columns=columns), response=response, reported_covariates=draws
    )
    for place, row in enumerate(describe_covariates(posterior)):
        own = draws[:, 0, place] / columns.scale[place]
        assert row["class"] == "yes" and row["covariate"] == "ab"[place]
        assert row["weight"] == pytest.approx(own.mean())
        assert row["interval"] == pytest.approx(np.quantile(own, [0.05, 0.95], method="weibull"))


def test_a_topic_of_half_of_the_chains_pulls_to_nothing(loaded):
    posterior = few_chains(loaded("class")).posterior_
    targets = targets_of(posterior)
    assert targets.stable.tolist() == [n == 2 for n in posterior.consensus.n_having]
    assert all(targets.pulls()[k] is None for k in np.flatnonzero(posterior.consensus.n_having == 1))


def test_means_of_topics_are_over_the_chains_that_have_them(loaded):
    posterior = few_chains(loaded("class")).posterior_
    for values, table in ((supertopic.report.topics.topic_word(posterior), posterior.phi),
                          (supertopic.report.topics.mean_counts(posterior), posterior.mean_counts)):  # fmt: skip
        for k, has in enumerate(posterior.consensus.has.T):
            own = [table(chain)[:, k] for chain in np.flatnonzero(has)]
            np.testing.assert_allclose(values[k], np.mean(own, axis=0))


def test_predictions_are_better_by_more_than_their_error():
    found = {"documents": 9, "base_loss": 1.0, "se": 0.1}
    for loss, better in ((0.80, True), (0.87, False), (1.2, False)):
        assert predicts(SimpleNamespace(held_out=found | {"loss": loss})) == better
    terms = {"topics": {"share": 0.5, "share_interval": [0.4, 0.6], "gain": 0.12, "gain_interval": [0.08, 0.2]}}
    found |= {"loss": 0.5, "contributions": {"score": "accuracy", "terms": terms}}
    (line,) = contribution_sentences(SimpleNamespace(held_out=found))
    assert line == "topics: 50% of the score (40% to 60%), 12 points of the accuracy (8 to 20)"


def test_the_score_of_a_table_stands_beside_that_of_the_base_rate(loaded):
    for name in ("class", "rating"):
        model = loaded(name)
        own = model.held_out_["contributions"]
        text = dict(model.summary_table().facts)[f"Held-out {own['score']}"]
        assert text == f"{own['value']:.3f} (base rate: {own['base_value']:.3f})"


# chains


def test_draws_of_each_chain_are_its_own(loaded):
    """In the dataset, in scores of chains, and in priors."""
    pytest.importorskip("xarray")
    model = copy.copy(loaded("class"))
    shape = 3 * len(model.posterior_.reported), *model.posterior_.reported.shape[1:]  # more than chains have draws
    model.posterior_ = replace(model.posterior_, reported=np.random.default_rng(0).normal(size=shape))
    posterior, data = model.posterior_, model.to_xarray()
    n_chains, n_draws = posterior.n_chains, posterior.n_draws
    own = posterior.reported.reshape(n_chains, -1, *posterior.reported.shape[1:])
    np.testing.assert_array_equal(data["coef"], posterior.response.in_units(own[:, :n_draws]))
    np.testing.assert_array_equal(data["loss"], posterior.traces.kept[:, :, 1])
    np.testing.assert_array_equal(data["log_joint"], posterior.traces.kept[:, :, 0])
    response = posterior.response.plain()
    omegas = np.moveaxis(model._new(TEXTS).summarise(lambda omegas, *_: np.moveaxis(omegas, 0, 1)), 1, 0)
    scales = np.zeros((len(omegas), 0))
    found = model.diagnose(TEXTS, np.roll(NAMES, 5))
    truth = posterior.response.truth(np.roll(NAMES, 5), N)
    for chain, part in enumerate(np.split(np.arange(len(omegas)), n_chains)):
        expected = response.expected(omegas[part], scales[part])
        score = response.score(truth, np.asarray(expected).mean(axis=0))
        assert found["score"][f"chain {chain}"] == pytest.approx(score)
    a, b = (model.perplexity(TEXTS, chains=[chain]) for chain in range(2))
    assert a != b and min(a, b) * 0.9 < model.perplexity(TEXTS) < max(a, b)


def test_priors_and_typical_documents_of_chains_that_differ(loaded):
    model = loaded("class")
    (topics,) = model.posterior_.topics
    changed = SLDAClassifier(predict_sweeps=12)
    changed.__dict__.update(vectorizer_=model.vectorizer_, n_features_in_=model.n_features_in_,
                            word_vectorizer_=model.word_vectorizer_)  # fmt: skip
    alpha = np.array([[0.1, 0.1, 0.1, 0.1], [0.1, 3.0, 0.1, 9.0]])
    changed.posterior_ = replace(model.posterior_, topics=(replace(topics, alpha=alpha),))
    order = changed.posterior_.order
    np.testing.assert_array_equal(changed.alpha_, [own[places] for own, places in zip(alpha, order, strict=True)])
    texts = [*TEXTS[:20], "", "goal", "the a not", "vote vote"]
    lengths = np.asarray(model.vectorizer_.transform(texts).sum(axis=1)).ravel()
    mean, shares = changed.alpha_.mean(axis=0), changed.transform(texts)
    shrunk = (shares * (lengths > 0)[:, None] * lengths[:, None] + mean) / (lengths[:, None] + mean.sum())
    for k in range(4):
        found = changed.typical_documents(texts, k, n=len(texts))["row"]
        np.testing.assert_allclose(shrunk[found, k], np.sort(shrunk[:, k])[::-1])


def test_topics_keep_the_names_that_they_have(loaded, models):
    model = supertopic.load(models("class")).name_topics({1: "mine"})
    assert model.label_topics()[1] == "mine" and model.label_topics()[0] != ""
    few = few_chains(loaded("class"))
    n = few.posterior_.consensus.n_having
    for least in (1, 2):
        assert set(few.topic_frame(min_chains=least)["topic"]) == set(np.flatnonzero(n >= least))


def test_a_short_burn_in_is_named(loaded):
    model = SLDAClassifier()
    posterior = loaded("class").posterior_
    traces = posterior.traces._replace(burn_in=np.array([30, 90]), settled=np.array([False, True]))
    model.posterior_ = replace(posterior, traces=traces)
    (line,) = [text for text in model.diagnose().advice if "settled" in text]
    assert line.startswith("1 of 2 chains had not settled within 30 iterations")


# raters


def test_raters_by_their_draws(loaded):
    model = loaded("crowd")
    posterior = model.posterior_
    frame = model.confusion_frame(0.8).set_index(["rater", "true", "answer"])
    draws = np.concatenate(posterior.scale).reshape(-1, len(model.raters_), 3, 3)
    for r, rater in enumerate(model.raters_):
        for t, true in enumerate(model.classes_):
            for s, said in enumerate(model.classes_):
                own = draws[:, r, t, s]
                row = frame.loc[rater, true, said]
                assert row["probability"] == pytest.approx(own.mean())
                assert (row["lower"], row["upper"]) == pytest.approx(np.quantile(own, [0.1, 0.9], method="weibull"))
    rate = posterior.mean_response.expected(posterior.intercept.base)
    right = np.einsum("nrtt,t->nr", draws, rate / rate.sum())
    own = model.rater_frame(0.8)
    np.testing.assert_allclose(own["accuracy"], right.mean(axis=0))
    np.testing.assert_allclose(own[["lower", "upper"]].T, np.quantile(right, [0.1, 0.9], **WEIBULL))
    skewed = replace(posterior, terms=tuple(
        replace(term, base=np.array([4.0, -3.0, -3.0])) if isinstance(term, Intercept) else term
        for term in posterior.terms
    ))  # fmt: skip
    weighed = supertopic.report.raters.rater_frame(skewed)["accuracy"]
    np.testing.assert_allclose(weighed, draws[:, :, 0, 0].mean(axis=0), atol=0.05)  # nearly all are of the first class
    numbers = loaded("crowd_ratings")
    unit, precision = numbers.posterior_.response.unit, np.concatenate(numbers.posterior_.scale)[:, 4:]
    np.testing.assert_allclose(numbers.rater_sd_, (unit / np.sqrt(precision)).mean(axis=0))


def test_agreement_is_a_share_of_pairs_with_others():
    """Of a, b and c about three documents; a rater is not compared with themself."""
    y = np.array([["x", "x", "z"], ["x", "z", None], ["z", None, None]], object)
    found = measure_agreement(as_answers(y, 3), False).raters
    assert found["agreement"].tolist() == pytest.approx([1 / 3, 1 / 3, 0.0]) and found["answers"].tolist() == [3, 2, 1]
    numbers = np.array([[1.0, 2.0, 4.0], [2.0, 1.0, 3.0], [5.0, 4.0, 9.0], [3.0, 3.0, 1.0]])
    found = measure_agreement(as_answers(numbers, 4), True).raters["agreement"]
    for r, value in enumerate(found):
        others = np.delete(numbers, r, axis=1).mean(axis=1)
        assert value == pytest.approx(np.corrcoef(numbers[:, r], others)[0, 1])
    assert RATERS.shape == (N, 3)


# pages


@pytest.fixture(scope="module")
def page(loaded):
    """The data of the page of a model about its documents; some responses are unknown."""

    @cache
    def make(name):
        y = {"class": NAMES, "rating": LEVEL, "two": ABOUT == 0, "count": ABOUT * 3.0,
             "labels": np.stack([ABOUT == 0, ABOUT != 1], axis=1).astype(float),
             "ratings": np.stack([LEVEL, -LEVEL], axis=1),
             "survival": np.column_stack([1.0 + LEVEL.clip(0), ABOUT > 0])}[name]  # fmt: skip
        y = np.roll(y, 4, axis=0).astype(object if name in ("class", "two") else float)  # predictions are wrong
        y[np.arange(N) % 5 == 0] = None if y.dtype == object else np.nan
        if name == "labels":
            y[1::5, 1] = np.nan
        more = {}
        if name in ("rating", "ratings"):
            more["rival"] = {"name": "R", "predicted": np.cumsum(np.ones_like(y), axis=0) / 60}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(page_documents, "MOST_DOCUMENTS", 25)
            shown = loaded(name).report(TEXTS, y, rows=[f"n{i}" for i in range(N)], **more)
        data = json.loads(re.search(r'id="data">(.*?)</script>', shown, re.S)[1])
        return data, y, loaded(name)

    return make


def close(found, expected, rel=6e-3, abs_=1e-3):
    return found == pytest.approx(expected, rel=rel, abs=abs_)


def test_topics_of_a_page(page):
    data, _, model = page("class")
    phi, sizes, shares = model.topic_word_, model.posterior_.mean_shares, model.transform(TEXTS)
    place = {word: i for i, word in enumerate(model.vocabulary_)}
    lengths = np.asarray(model.vectorizer_.transform(TEXTS).sum(axis=1)).ravel()
    alike = np.sqrt(phi) @ np.sqrt(phi).T
    for k, topic in enumerate(data["topics"]):
        at = [place[word] for word, *_ in topic["words"]]
        table = np.array([row[1:] for row in topic["words"]])
        assert close(table[:, 0], phi[k, at]) and close(table[:, 1], (sizes @ phi)[at])
        order = [rankdata(values) for values in (phi[k, at], (phi[k] / phi.sum(axis=0))[at])]
        for column, ranks in zip((2, 3), order, strict=True):  # by frequency, then by exclusivity
            assert (np.diff(table[np.argsort(ranks), column]) >= -1e-9).all()
        assert topic["share"] == pytest.approx(sizes[k], rel=6e-3)
        long = np.where(lengths > 9, shares[:, k], 0.0)
        for row, _, share, name in topic["typical"]:
            assert name == f"n{row}" and close(share, shares[row, k])
        assert close([long[own[0]] for own in topic["typical"]], np.sort(long)[::-1][: len(topic["typical"])])
        others = [j for j in np.argsort(-alike[k], kind="stable") if j != k]
        assert [j for j, _ in topic["near"]] == others[:4] and close(
            [a for _, a in topic["near"]], alike[k, others[:4]], 0.06
        )
    frame = model.effect_frame().pivot(index="topic", columns="column", values="change")[data["targets"]["names"]]
    assert close(np.array([topic["effect"][0] for topic in data["topics"]]), 100 * frame.to_numpy(), abs_=1e-2)
    expected = np.corrcoef(shares.T)
    for k, row in enumerate(data["correlation"]):
        assert row == pytest.approx(expected[k, :k], abs=0.006)


def test_words_of_a_page(page):
    """The topics of a word's tokens, and its direct weights in the units of y."""
    for name in ("class", "rating"):
        data, _, model = page(name)
        joint = model.topic_word_ * model.posterior_.mean_shares[:, None]
        place = {word: i for i, word in enumerate(model.vocabulary_)}
        direct = {word: i for i, word in enumerate(model.posterior_.word_names)}
        checked = 0
        for word, topics, weights in zip(data["words"], data["facts"]["topics"], data["facts"]["direct"], strict=False):
            if word in place:
                own = joint[:, place[word]] / joint[:, place[word]].sum()
                assert close([share for _, share in topics], [own[k] for k, _ in topics])
                assert [k for k, _ in topics] == [k for k in np.argsort(-own)[:4] if own[k] >= 0.02]
                checked += 1
            if word in direct:
                own = model.word_coef_[:, direct[word]]
                assert close([value for _, value in weights], [own[t] for t, _ in weights])
                assert [t for t, _ in weights] == [t for t in np.argsort(-np.abs(own))[:3] if abs(own[t]) > 1e-4]
        assert checked > 5


@pytest.mark.parametrize("name", ["class", "rating", "two", "labels"])
def test_documents_of_a_page(page, name):
    data, y, model = page(name)
    base = model.intercept_
    for document in data["documents"]:
        i = document["row"]
        why = model.explain(TEXTS[i])
        assert document["id"] == f"n{i}" and document["text"] == TEXTS[i]
        found = {row[0]: row[1:] for row in document["predicted"]}
        if name == "rating":
            (values,) = found.values()
            assert close(
                values, [model.predict([TEXTS[i]])[0], *(end[0] for end in model.predict_interval([TEXTS[i]]))]
            )
            known = not np.isnan(y[i])
            inside = values[1] <= y[i] <= values[2]
            assert document["wrong"] == (not inside if known else None)
            edges = np.nanquantile(y, [1 / 3, 2 / 3])
            assert document["is"] == (int((y[i] > edges).sum()) if known else -1)
        else:
            order = np.argsort(-why.mean, kind="stable")[:3]
            assert [row[0] for row in document["predicted"]] == [str(why.mean_names[j]) for j in order]
            for j, row in zip(order, document["predicted"], strict=True):
                assert close(row[1:], [why.mean[j], why.mean_interval[0][j], why.mean_interval[1][j]])
        if name in ("class", "two"):
            said = model.classes_[document["said"]]
            assert document["wrong"] == (None if y[i] is None else bool(said != y[i]))
        elif name == "labels":
            known = ~np.isnan(y[i])
            wrong = (model.predict([TEXTS[i]])[0] != y[i]) & known
            assert document["wrong"] == (bool(wrong.any()) if known.any() else None)
        for view in document["views"]:
            column = {str(c): r for r, c in enumerate(why.columns)}
            weigh = np.zeros(len(why.columns))
            if name in ("rating", "two"):
                weigh[0] = -1.0 if name == "two" and view["of"] == "False" else 1.0
            else:
                weigh[column[view["of"]]] = 1.0
                if view["against"]:
                    weigh[column[view["against"]]] -= 1.0
            total = why.total @ weigh
            top = np.argsort(-np.abs(total), kind="stable")
            words = [data["words"][place] for place, *_ in view["words"]]
            assert words == [why.words[j] for j in top[: len(words)]] and view["base"] == pytest.approx(
                weigh @ base, rel=1e-3, abs=1e-4
            )
            if not view["against"] and name != "two":
                ends = [[why.lower[j] @ weigh, why.upper[j] @ weigh] for j in top[:14]]
                assert close(np.array(view["spans"]), np.array(ends))
            if name == "class" and view["against"]:  # the true class, or the next one
                second = str(model.classes_[np.argsort(-why.mean)[1]])
                assert view["against"] == (second if y[i] in (None, said) else y[i])
    if name == "class":
        doubt = 1.0 - np.diff(np.sort(model.predict_proba(TEXTS), axis=1)[:, -2:], axis=1).ravel()
        unsure = [document["unsure"] for document in data["documents"]]
        own = np.array([doubt[document["row"]] for document in data["documents"]])
        assert own[unsure].min() >= own[~np.array(unsure)].max() - 0.05 and np.mean(unsure) < 0.6


def test_words_that_are_not_listed_are_in_the_rest(page, loaded, monkeypatch):
    monkeypatch.setattr(page_documents, "MOST_WORDS", 4)
    model = loaded("class")
    data = json.loads(re.search(r'id="data">(.*?)</script>', model.report(TEXTS[:3], NAMES[:3]), re.S)[1])
    for document in data["documents"]:
        why = model.explain(document["text"])
        view = document["views"][-1]
        r = [str(name) for name in why.columns].index(view["of"])
        rest = np.argsort(-np.abs(why.total[:, r]), kind="stable")[4:]
        assert view["rest"][0] == len(rest) > 0
        assert close(view["rest"][1:], [why.through_topics[rest, r].sum(), why.direct[rest, r].sum()])


def test_the_first_document_of_some_is_the_most_surprising(loaded):
    model = loaded("class")
    y = np.roll(NAMES, 4).astype(object)
    y[:9] = None
    data = json.loads(re.search(r'id="data">(.*?)</script>', model.report(TEXTS[:30], y[:30]), re.S)[1])
    assert data["first"] == model.surprising(TEXTS[:30], y[:30], 1)["row"][0]


def test_figures_of_labels_with_unknown_ones(page):
    data, y, model = page("labels")
    found, said, known = data["evaluation"], model.predict(TEXTS), ~np.isnan(y)
    some = known.any(axis=1)
    assert found["documents"] == some.sum()
    each = [f1_score(y[known[:, j], j], said[known[:, j], j], zero_division=0) for j in range(2)]
    assert found["macro"] == pytest.approx(np.mean(each))
    assert found["score"] == pytest.approx(f1_score(y[known], said[known]))
    assert found["all_right"] == pytest.approx(((said == y) | ~known)[some].all(axis=1).mean())
    assert found["right"] == pytest.approx((said == y)[known].mean())


def test_figures_of_numbers_beside_a_rival(page):
    for name in ("rating", "ratings"):
        data, y, model = page(name)
        y, predicted = y.reshape(N, -1), model.predict(TEXTS).reshape(N, -1)
        known = ~np.isnan(y).any(axis=1)
        rival = np.cumsum(np.ones_like(y), axis=0) / 60
        lower, upper = (end.reshape(N, -1) for end in model.predict_interval(TEXTS))
        centre = np.broadcast_to(model.posterior_.response.centre, y.shape[1])
        for r, column in enumerate(data["evaluation"]["columns"]):
            own, true = predicted[known, r], y[known, r]
            assert column["score"] == pytest.approx(r2_score(true, own))
            assert column["rival"]["score"] == pytest.approx(r2_score(true, rival[known, r]))
            assert close(column["rival"]["mean_error"], np.abs(true - rival[known, r]).mean())
            assert close(column["rival_points"], rival[known, r])
            assert close(column["base_error"], np.abs(true - centre[r]).mean())
            assert column["coverage"] == pytest.approx(((true >= lower[known, r]) & (true <= upper[known, r])).mean())
            points = np.column_stack([own, true, lower[known, r], upper[known, r]])
            assert close(np.array(column["points"], float), points)


def test_survival_of_low_and_high_risks(page):
    """Kaplan and Meier's shares in thirds of the predicted risk; times on an edge have come by then."""
    data, y, model = page("survival")
    known = ~np.isnan(y).any(axis=1)
    curve, risk = model.predict_survival_function(TEXTS), model.predict_risk(TEXTS)
    thirds = np.array_split(np.flatnonzero(known)[np.argsort(risk[known], kind="stable")], 3)
    assert [part["name"] for part in data["evaluation"]["risks"]] == ["low", "middle", "high"]
    for part, rows in zip(data["evaluation"]["risks"], thirds, strict=True):
        assert close(part["predicted"], curve[rows].mean(axis=0)) and part["documents"] == len(rows)
        time, event = y[rows].astype(float).T
        alive = [np.prod([1 - ((time == t) & (event > 0)).sum() / (time >= t).sum()
                          for t in np.unique(time[event > 0]) if t <= edge]) for edge in model.times_]  # fmt: skip
        assert close(part["observed"], alive)


def test_the_headline_of_several_numbers_has_their_mean(page, loaded):
    from supertopic.report.page_headline import place, score_tile, stable_tile

    columns = [{"base_score": a, "interval": None, "rival": {"score": b}} for a, b in ((0.1, 0.2), (0.3, 0.6))]
    tile = score_tile({"kind": "numbers", "score": 0.5, "rival": {}, "columns": columns})
    assert [dot.at for dot in tile.dots] == [place(0.5), place(0.2), place(0.4)]
    topics = [{"chains": n} for n in (4, 3, 2, 1)]
    assert stable_tile(SimpleNamespace(n_chains=4), topics).value == "2 of 4"  # half of the chains is not most of them


def test_two_models_are_compared_in_the_order_of_their_names(loaded):
    """What is shown of the other model is its own; a difference is this one less the other."""
    model, other = loaded("class"), loaded("hinge")
    y = np.roll(NAMES, 4)
    some = np.concatenate([np.arange(30), np.arange(60, 70)])
    texts, own = [TEXTS[i] for i in some], y[some]
    data = json.loads(re.search(r'id="data">(.*?)</script>', model.report(texts, own, other=other), re.S)[1])["other"]
    for topic in data["topics"]:
        assert close(topic["share"], other.posterior_.mean_shares[topic["topic"]])
    a, b = (kind.predict(texts) == own for kind in (model, other))
    assert data["scores"] == pytest.approx([a.mean(), b.mean()], abs=1e-3)
    assert data["difference"][0] == pytest.approx(a.mean() - b.mean(), abs=2e-3)
    rating, second = loaded("rating"), loaded("ratings")
    assert isinstance(rating, SLDARegressor) and isinstance(second, SLDARegressor)


def test_groups_that_are_unknown_and_quarters():
    days = [f"20{20 + i // 12}-{1 + i % 12:02d}-15" for i in range(40)]
    found = group("day", days)
    assert found.levels[:2] == ["2020 Q1", "2020 Q2"] and found.place.tolist() == [i // 3 for i in range(40)]
    late = group("day", days[1:])
    assert late.levels[0] == "2020 Q1" and late.place.tolist() == [i // 3 for i in range(1, 40)]
    many = group("who", [f"a{i % 14}" for i in range(42)] + [None, ""])
    assert many.place[-2:].tolist() == [-1, -1] and many.levels[-1] == "others"
    numbers = group("x", [*np.arange(24.0), None])
    assert np.bincount(numbers.place[:-1]).tolist() == [4] * 6 and numbers.place[-1] == -1


def test_probabilities_that_are_too_high_or_too_low_are_called_so():
    few, many = np.arange(400) % 10 == 0, np.arange(400) % 10 > 0
    for p, hit, two, one in ((0.5, few, "Too high", "Overconfident"), (0.5, many, "Too low", "Underconfident")):
        assert calibration(np.full(400, p), hit, True, "x")["finding"] == two
        assert calibration(np.full(400, p), hit, False, "x")["finding"] == one


def test_facts_of_a_fit_are_those_of_all_chains(loaded):
    posterior = loaded("class").posterior_
    traces = posterior.traces._replace(burn_in=np.array([40, 30]), settled=np.array([True, False]))
    assert describe_burn_in(traces) == "30 to 40 iterations, within which 1 of 2 chains had settled"
    figures = SimpleNamespace(scored=7, score_name="accuracy", score=0.5, loss=1.25, base_loss=2.5)
    entry = SimpleNamespace(batch=2, documents=9, figures=figures, unknown_words=0.125,
                            changes=Changes())  # fmt: skip
    (row,) = history(SimpleNamespace(n_batches=2, history=[entry]))
    assert row == {"batch": "2", "documents": "9", "scored": "7", "accuracy": "0.500", "mean loss": "1.250",
                   "of the base rate": "2.500", "unknown words": "0.125", "changes": ""}  # fmt: skip
