"""Every option of the command reaches the library: what is called is recorded in place of a fit."""

import csv
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fitted import NAMES, TEXTS
from sklearn.metrics import f1_score, log_loss, precision_score, r2_score, recall_score

import supertopic
from supertopic import (
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
)
from supertopic.command import choose as choose_command
from supertopic.command import fit as fit_command
from supertopic.command import predict as predict_command
from supertopic.command.cells import Column
from supertopic.command.cli import main
from supertopic.command.evaluate import evaluate_classes, evaluate_logistic, evaluate_numbers, evaluate_times
from supertopic.command.kinds import Classes
from supertopic.report.summary import describe_topics

N = 24
COLUMNS = {
    "body": TEXTS[:N], "team": NAMES[:N].tolist(), "grade": [str(i % 3 + 1) for i in range(N)],
    "stars": [f"{i % 7 + 0.5}" for i in range(N)], "sales": [str(40 * i) for i in range(N)],
    "days": [str(1 + i % 9) for i in range(N)], "came": [str(i % 2) for i in range(N)],
    "ann": NAMES[:N].tolist(), "bob": NAMES[:N].tolist(), "sure": NAMES[:N].tolist(),
    "jahr": [str(2000 + i % 3) for i in range(N)], "wer": ["xy"[i % 2] for i in range(N)],
    "w": [str(0.5 + i % 4) for i in range(N)], "hours": [str(1 + i % 5) for i in range(N)],
    "who": [str(i % 2) for i in range(N)], "name": [f"n{i}" for i in range(N)],
}  # fmt: skip


class StoppedError(Exception):
    """In place of what a command would do with its arguments."""


class Recorder:
    """What a method is called with; then the command ends."""

    def __init__(self, monkeypatch, kind, method):
        monkeypatch.setattr(kind, method, self.method())

    def method(self):
        def record(model, *given, **named):
            self.model, self.given, self.named = model, given, named
            raise StoppedError

        return record


@pytest.fixture
def table(tmp_path):
    with open(tmp_path / "d.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(COLUMNS), *zip(*COLUMNS.values(), strict=True)])
    return tmp_path / "d.csv"


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process, up to what is recorded; returns what it printed."""

    def run(*arguments, stops=True):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(StoppedError if stops else SystemExit):
            main()
        return capsys.readouterr().out

    return run


def numbers(name):
    return np.array(COLUMNS[name], float)


def test_every_option_of_a_fit_is_a_parameter(command, table, tmp_path, monkeypatch, models):
    path = models("class")
    seen = Recorder(monkeypatch, SLDAClassifier, "fit")
    (tmp_path / "seeds.csv").write_text("topic,word,class\nball,goal,sport\nball,team,sport\nlaw,vote,\n")
    (tmp_path / "stop.txt").write_text("the\nA\n")
    command(
        "fit", table, "--text", "body", "--label", "team", "-o", tmp_path / "m", "--topics", 7, "--c", 3,
        "--multiclass", "separate", "--balanced", "--weight", "w", "--covariate", "jahr", "--covariate", "wer",
        "--groups", "who", "--held-out-by", "group", "--checkpoint", tmp_path / "c", "--burn-in", 11,
        "--max-seconds", 9, "--draws", 4, "--chains", 3, "--stop-words", tmp_path / "stop.txt",
        "--min-df", 3, "--max-df", 0.9, "--ngrams", 2, "--word-ngrams", 4, "--priority", "topics",
        "--token-pattern", r"\w\w+", "--seeds", tmp_path / "seeds.csv", "--seed-strength", 0.7,
        "--prior", path, "--prior-weights", "--discount", 0.4, "--held-out", 0.3, "--seed", 5, "--jobs", 1,
        "--formula", "jahr * wer",
    )  # fmt: skip
    found = seen.model.get_params(deep=False)
    expected = {
        "n_topics": 7, "c": 3.0, "multiclass": "separate", "class_weight": "balanced", "held_out_by": "group",
        "burn_in": 11, "max_seconds": 9.0, "n_draws": 4, "n_chains": 3, "priority": "topics", "held_out": 0.3,
        "random_state": 5, "n_jobs": 1, "formula": "jahr * wer", "device": "cpu", "engine": "threads",
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    topics, words = found["vectorizer"].get_params(), found["words"].get_params()
    own = {"stop_words": ["a", "the"], "min_df": 3, "max_df": 0.9, "ngram_range": (1, 2), "token_pattern": r"\w\w+"}
    assert {name: topics[name] for name in own} == own
    own = {"stop_words": None, "min_df": 3, "max_df": 1.0, "ngram_range": (1, 4), "token_pattern": r"\w\w+"}
    assert {name: words[name] for name in own} == own
    seeds, prior = found["seeds"], found["prior"]
    assert (seeds.words, seeds.strength, seeds.weights) == (
        {"ball": ["goal", "team"], "law": ["vote"]}, 0.7, {"ball": "sport"},
    )  # fmt: skip
    assert (prior.weights, prior.discount) == (True, 0.4) and isinstance(prior.model, SLDAClassifier)
    assert list(seen.given[0]) == COLUMNS["body"] and list(seen.named["y"]) == COLUMNS["team"]
    np.testing.assert_array_equal(seen.named["sample_weight"], numbers("w"))
    assert seen.named["groups"].tolist() == COLUMNS["who"] and seen.named["checkpoint"] == tmp_path / "c"
    frame = seen.named["covariates"]
    assert frame.names == ["jahr", "wer"] and frame.column(1).values.tolist() == COLUMNS["wer"]
    command("fit", table, "--text", "body", "--label", "team", "-o", tmp_path / "m", "--prior", path)
    assert (seen.model.prior.weights, seen.model.prior.discount) == (False, 1.0)
    command("fit", table, "--text", "body", "--label", "team", "-o", tmp_path / "m", "--no-words")
    assert seen.model.words is False


def test_a_fit_without_options_has_the_defaults_of_the_estimator(command, table, tmp_path, monkeypatch):
    seen = Recorder(monkeypatch, SLDAClassifier, "fit")
    command("fit", table, "--text", "body", "--label", "team", "-o", tmp_path / "m")
    own = {"vectorizer", "words", "random_state", "n_jobs", "verbose"}
    usual, found = SLDAClassifier().get_params(deep=False), seen.model.get_params(deep=False)
    assert {name for name, value in found.items() if value != usual[name]} <= own


@pytest.mark.parametrize(
    ("kind", "options", "parameters", "arguments"),
    [
        (SLDAOrdinalClassifier, ["ordinal", "--label", "grade", "--order", "3,1,2", "--balanced"],
         {"order": [3, 1, 2], "class_weight": "balanced"}, {}),
        (SLDARegressor, ["rating", "--label", "stars", "--no-words"], {"words": False}, {"y": "stars"}),
        (SLDACountRegressor, ["count", "--label", "sales", "--exposure", "hours", "--weight", "w"], {},
         {"y": "sales", "exposure": "hours", "sample_weight": "w"}),
        (SLDASurvivalRegressor, ["time", "--label", "days", "--event", "came"], {}, {"y": ("days", "came")}),
        (SLDACrowdClassifier, ["raters", "--label", "ann, bob", "--gold", "sure", "--balanced"],
         {"class_weight": "balanced"}, {"y": ("ann", "bob", "sure")}),
        (SLDACrowdClassifier, ["raters", "--label", "ann,bob"], {"class_weight": None}, {"y": ("ann", "bob")}),
    ],
)  # fmt: skip
def test_options_of_other_responses(command, table, tmp_path, monkeypatch, kind, options, parameters, arguments):
    seen = Recorder(monkeypatch, kind, "fit")
    command("fit", table, "--text", "body", "-o", tmp_path / "m", "--response", *options)
    assert {name: getattr(seen.model, name) for name in parameters} == parameters
    for name, column in arguments.items():
        cells = np.column_stack([COLUMNS[c] for c in ([column] if isinstance(column, str) else column)])
        found = np.asarray(seen.named[name]).reshape(cells.shape)
        np.testing.assert_array_equal(found, cells if found.dtype == object else cells.astype(float))
    if "--gold" in options:
        assert seen.named["y"].columns == ["ann", "bob", "gold"]


def test_times_with_an_unknown_event_are_unknown(command, tmp_path, monkeypatch):
    seen = Recorder(monkeypatch, SLDASurvivalRegressor, "fit")
    rows = [(text, i + 1, i % 2 if i % 4 else "") for i, text in enumerate(TEXTS[:12])]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("body", "days", "came"), *rows])
    data = tmp_path / "t.csv", "--text", "body", "--label", "days", "--event", "came", "-o", tmp_path / "m"
    command("fit", *data, "--response", "time")
    unknown = np.arange(12) % 4 == 0
    np.testing.assert_array_equal(np.isnan(seen.named["y"]), np.repeat(unknown[:, None], 2, axis=1))


def test_every_option_of_choose(command, table, monkeypatch):
    seen = {}

    def record(model, texts, y, numbers, **options):
        seen.update(options, model=model, numbers=numbers)
        raise StoppedError

    monkeypatch.setattr(choose_command, "choose_topics", record)
    command("choose", table, "--text", "body", "--label", "team", "--topics", "3,8", "--test-size", 0.3, "--burn-in", 7,
            "--draws", 4, "--chains", 3, "--seed", 9, "--jobs", 1, "--min-df", 3, "--word-ngrams", 3)  # fmt: skip
    model = seen.pop("model")
    assert seen == {"numbers": [3, 8], "test_size": 0.3, "burn_in": 7, "n_draws": 4, "n_chains": 3, "random_state": 9}
    assert (model.vectorizer.min_df, model.words.ngram_range, model.n_jobs) == (3, (1, 3), 1)


LABELLED = {  # a command, the method that gets its columns, and what else it needs
    "predict": ("_new", []), "unsure": ("_new", []), "surprising": ("_new", ["--label"]),
    "next-to-label": ("_new", []), "diagnose": ("_new", []), "explain": ("_new", ["--where", "unsure"]),
    "report": ("report", ["-o"]), "drift": ("drift", ["--label"]), "check-labels": ("check_labels", ["--label"]),
    "update": ("partial_fit", ["--label", "-o"]), "merge": ("merge_topics", ["--label", "-o", "--topics", "0,1"]),
    "ban": ("ban_words", ["--label", "-o", "--words", "goal"]),
}  # fmt: skip


@pytest.mark.parametrize("verb", LABELLED)
@pytest.mark.parametrize("name", ["covariates", "groups", "exposed"])
def test_columns_beside_the_texts_reach_every_command(command, table, tmp_path, monkeypatch, models, name, verb):
    """By the names that the table has, in the order of the fit; weights reach what learns."""
    method, more = LABELLED[verb]
    kind = {"covariates": SLDARegressor, "groups": SLDAClassifier, "exposed": SLDACountRegressor}[name]
    if verb == "check-labels" and name != "groups":
        pytest.skip("it checks classes")
    label = {"covariates": "stars", "groups": "team", "exposed": "sales"}[name]
    values = {"--label": ["--label", label], "-o": ["-o", tmp_path / "new"]}
    more = [part for option in more for part in values.get(option, [option])]
    beside = {"covariates": ["--covariate", "jahr", "--covariate", "wer"], "groups": ["--groups", "who"],
              "exposed": ["--exposure", "hours"]}[name]  # fmt: skip
    if verb == "explain" and name == "groups":
        beside = ["--group", "who"]
    weighed, model = verb in ("check-labels", "update", "merge", "ban"), models(name)
    seen = Recorder(monkeypatch, kind, method)
    command(verb, model, table, "--text", "body", *more, *beside, *["--weight", "w"] * weighed)
    given = seen.named
    if name == "covariates":
        frame = given["covariates"]
        assert frame.names == ["year", "who"] and frame.column(1).values.tolist() == COLUMNS["wer"]
        np.testing.assert_array_equal(frame.column(0).values, numbers("jahr"))
    elif name == "groups":
        assert given["groups"].tolist() == COLUMNS["who"]
    else:
        np.testing.assert_array_equal(given["exposure"], numbers("hours"))
    if weighed:
        np.testing.assert_array_equal(given["sample_weight"], numbers("w"))


@pytest.mark.parametrize(
    ("verb", "method", "options", "expected"),
    [
        ("update", "partial_fit", ["--discount", 0.3, "--no-new-words"], {"discount": 0.3, "new_words": False}),
        ("update", "partial_fit", ["--add-classes"], {"discount": 1.0, "new_words": True, "add_classes": True}),
        ("merge", "merge_topics", ["--topics", "0,2", "--topics", "1,3", "--burn-in", 7], {"burn_in": 7}),
        ("ban", "ban_words", ["--words", "goal, vote", "--everywhere", "--burn-in", 7],
         {"burn_in": 7, "everywhere": True}),
        ("check-labels", "check_labels", ["-n", 4, "--folds", 3], {"n": 4, "n_folds": 3}),
        ("report", "report", ["--test", "--title", "T", "--id", "name", "--by", "jahr", "--by", "wer"],
         {"test": True, "title": "T", "name": "team", "rows": COLUMNS["name"],
          "by": {"jahr": [2000 + i % 3 for i in range(N)], "wer": COLUMNS["wer"]}}),
    ],
)  # fmt: skip
def test_other_options_reach_their_method(
    command, table, tmp_path, monkeypatch, models, verb, method, options, expected
):
    model, seen = models("class"), Recorder(monkeypatch, SLDAClassifier, method)
    output = [] if verb == "check-labels" else ["-o", tmp_path / "new"]
    command(verb, model, table, "--text", "body", "--label", "team", *output, *options)
    assert {name: seen.named[name] for name in expected} == expected
    if verb in ("merge", "ban"):
        assert seen.given[0] == ([[0, 2], [1, 3]] if verb == "merge" else ["goal", "vote"])
    y = seen.given[-1] if verb in ("update", "merge", "ban", "check-labels") else seen.given[1]
    assert list(y) == COLUMNS["team"]


def test_what_predictions_promise_is_what_python_says(command, table, models):
    """Sets, decisions, and the labels that are left to people, at the levels that are asked for."""
    given = table, "--text", "body", "--json", "--set", 0.6, "--max-error", 0.4
    for name in ("class", "labels"):
        model = supertopic.load(models(name))
        rows = [json.loads(line) for line in command("predict", models(name), *given, stops=False).splitlines()]
        inside, decided = model.predict_set(TEXTS[:N], 0.6), model.decide(TEXTS[:N], max_error=0.4).decision
        names = model.classes_
        assert [row["set"] for row in rows] == [names[own].tolist() for own in inside]
        if name == "class":
            assert [row["decision"] for row in rows] == decided.tolist()
        else:
            assert [row["decision"] for row in rows] == [names[own == 1].tolist() for own in decided]
            assert [row["ask"] for row in rows] == [names[np.isnan(own)].tolist() for own in decided]


def test_labels_that_are_left_to_people_are_named(models):
    model = supertopic.load(models("labels"))
    model.decide = lambda X, **given: SimpleNamespace(decision=np.array([[1.0, np.nan], [0.0, 1.0]]), asked=0.25)
    found = predict_command.promised(model, np.array(["a", "b"], object), {}, None, 0.1, Path("d.csv"))
    a, b = model.classes_.tolist()
    assert found == {"decision": [[a], [b]], "ask": [[b], []]}


def test_intervals_of_several_numbers_are_guaranteed_under_their_names():
    class Two(SLDARegressor):
        multioutput_ = True
        posterior_ = SimpleNamespace(response=SimpleNamespace(column_names=["x", "y"]))

        def predict_interval(self, X, level, conformal=False):
            assert conformal and level == 0.7
            return np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])

    found = predict_command.promised(Two(), np.array(["a"], object), {}, 0.7, None, Path("d.csv"))
    assert found == {"guaranteed lower(x)": [1.0], "guaranteed lower(y)": [2.0], "guaranteed upper(x)": [3.0],
                     "guaranteed upper(y)": [4.0]}  # fmt: skip


def test_predictions_part_by_part_are_those_of_all(models, monkeypatch):
    """A long table is predicted in parts where a bar is shown, each with its own rows beside the texts."""
    model, X = supertopic.load(models("array")), np.array(TEXTS[:20], dtype=object)
    beside = {"covariates": np.column_stack([np.arange(20.0), np.arange(20.0)[::-1]])}
    whole = predict_command.predict_parts(model, X, beside)
    monkeypatch.setattr(predict_command, "PART", 7)
    monkeypatch.setattr(predict_command, "err", SimpleNamespace(is_terminal=True))
    parts = predict_command.predict_parts(model, X, beside)
    for name, values in whole.items():
        np.testing.assert_array_equal(parts[name], values)


def test_options_of_the_table_of_topics(command, models):
    found = json.loads(command("topics", models("class"), "--json", "-n", 3, "--by", "lift", "--min-chains", 2,
                               stops=False))  # fmt: skip
    model = supertopic.load(models("class"))
    expected = describe_topics(model.posterior_, model.vocabulary_, 3, "lift", 2)
    assert found == json.loads(json.dumps(expected)) and 0 < len(found) <= 4


# a fit with test documents


@pytest.fixture
def parts(monkeypatch):
    """Documents of which some are for the test, and what their evaluation and their page are made from."""
    seen = {}
    texts = np.array(TEXTS[:N], dtype=object)
    y = np.array(COLUMNS["team"], dtype=object)
    test, train = np.array([3, 20, 8]), np.setdiff1d(np.arange(N), [3, 20, 8])
    y[train[:4]] = None
    source = SimpleNamespace(texts=texts, cells=COLUMNS.__getitem__)
    column = Column(y, response="class")
    beside = {"covariates": pd.DataFrame({"x": np.arange(N)}).to_numpy(), "sample_weight": np.ones(N)}
    documents = fit_command.Documents(source, column, beside, train, test, COLUMNS["name"])

    def record(kind, model, X, own, known, given):
        seen["evaluate"] = X, own, known, given
        return {}

    def record_page(model, X, own, path, given, **facts):
        seen["page"] = X, own, given, facts

    monkeypatch.setattr(Classes, "evaluate", record)
    monkeypatch.setattr(fit_command, "write_page", record_page)
    return documents, seen


def test_test_documents_are_evaluated_with_their_own_rows(parts):
    documents, seen = parts
    documents.evaluate(None)
    X, y, known, beside = seen["evaluate"]
    assert X.tolist() == [TEXTS[3], TEXTS[20], TEXTS[8]] and y.tolist() == [NAMES[3], NAMES[20], NAMES[8]]
    assert known.tolist() == [documents.column.y[i] for i in documents.train[4:]]  # only what is known
    assert list(beside) == ["covariates"] and beside["covariates"].ravel().tolist() == [3, 20, 8]


def test_the_page_of_a_fit_has_the_rows_of_its_documents(parts):
    documents, seen = parts
    model = SimpleNamespace(posterior_=SimpleNamespace(response=SimpleNamespace(labels=sorted(set(NAMES)))))
    for test in (documents.test, np.zeros(0, int)):
        documents._replace(test=test).write_page(model, Path("p.html"), "title", "team", ["wer", "jahr"])
        rows = test.tolist() or documents.train.tolist()
        X, y, beside, facts = seen["page"]
        assert X.tolist() == [TEXTS[i] for i in rows] and beside["covariates"].ravel().tolist() == rows
        assert y.tolist() == [documents.column.y[i] for i in rows]
        assert facts["rows"] == [f"n{i}" for i in rows] and facts["test"] == bool(len(test))
        assert facts["by"]["wer"].tolist() == ["xy"[i % 2] for i in rows]
        assert facts["by"]["jahr"].tolist() == [2000 + i % 3 for i in rows]  # cells that are numbers


def test_the_split_follows_the_seed_and_keeps_copies_together():
    texts = np.array([f"word{i % 30}" for i in range(60)], dtype=object)
    column = Column(np.array(["a", "b"] * 30, dtype=object), response="class")
    found = [fit_command.split(column, 0.4, seed, texts)[1].tolist() for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert {i % 30 for i in found[0]}.isdisjoint({i % 30 for i in np.setdiff1d(np.arange(60), found[0])})


# figures of test documents


def model_of(response, p):
    """A model that predicts these probabilities."""
    posterior = SimpleNamespace(response=response)
    return SimpleNamespace(posterior_=posterior, predict_proba=lambda X, **beside: p)


def test_figures_of_classes_stand_beside_the_base_rate_of_the_fit(models):
    rng = np.random.default_rng(0)
    response = supertopic.load(models("class")).posterior_.response
    names, p = np.array(response.classes), rng.dirichlet(np.ones(3), 40)
    y, train = names[rng.choice(3, 40, p=[0.5, 0.3, 0.2])], names[rng.choice(3, 90, p=[0.1, 0.2, 0.7])]
    found = evaluate_classes(model_of(response, p), np.zeros(40), y, train, {})
    said = names[p.argmax(axis=1)]
    assert found["test_accuracy"] == (said == y).mean() and found["test_documents"] == 40
    assert found["base_rate_accuracy"] == (y == names[2]).mean()  # the class that is most frequent in the fit
    assert found["test_log_loss"] == pytest.approx(log_loss(y, p, labels=names))
    rate = [(train == name).mean() for name in names]
    assert found["base_rate_log_loss"] == pytest.approx(log_loss(y, np.tile(rate, (40, 1)), labels=names))
    for row in found["test_classes"]:
        own = {"labels": [row["class"]], "average": "macro", "zero_division": 0}
        assert row["precision"] == pytest.approx(precision_score(y, said, **own))
        assert row["recall"] == pytest.approx(recall_score(y, said, **own))
        assert row["documents"] == (y == row["class"]).sum()


def test_the_loss_of_labels_is_that_of_all_labels_of_a_document(models):
    rng = np.random.default_rng(1)
    response = supertopic.load(models("labels")).posterior_.response
    p, y, train = rng.random((30, 2)), (rng.random((30, 2)) < 0.4) * 1.0, (rng.random((50, 2)) < 0.8) * 1.0
    found = evaluate_classes(model_of(response, p), np.zeros(30), y, train, {})
    for key, q in (("test_log_loss", p), ("base_rate_log_loss", train.mean(axis=0))):
        assert found[key] == pytest.approx(-(y * np.log(q) + (1 - y) * np.log1p(-q)).sum(axis=1).mean())
    assert found["test_micro_f1"] == pytest.approx(f1_score(y, p > 0.5, average="micro"))


def test_the_base_rate_of_numbers_is_the_mean_of_the_fit():
    found = evaluate_numbers(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0]), np.array([10.0, 20.0]))
    assert (found["test_mean_error"], found["base_rate_mean_error"]) == pytest.approx((2 / 3, 38 / 3))
    assert found["test_r2"] == pytest.approx(r2_score([1.0, 3.0, 3.0], [1.0, 2.0, 4.0]))


def test_the_base_rate_of_times_is_the_life_table_of_the_fit(models):
    model, y = supertopic.load(models("survival")), np.column_stack([np.arange(1.0, 25.0) % 6, np.arange(24) % 3 > 0])
    found = evaluate_times(model, TEXTS[:24], y, {})
    response = model.posterior_.response
    at_risk, events = model.life_table_
    alive = np.cumprod([1 - e / r if r else 1.0 for r, e in zip(at_risk, events, strict=True)])
    figures = response.figures(response.truth(y, 24), np.tile(alive, (24, 1)))
    assert found["base_rate_integrated_brier_score"] == pytest.approx(figures["integrated_brier_score"])
    assert found["test_concordance"] == pytest.approx(model.score(TEXTS[:24], y)) and found["test_events"] == 16


def test_a_rival_learns_from_known_documents_of_the_fit_and_does_not_know_new_classes():
    texts = np.array(["goal team", "vote law"] * 12 + ["goal goal", "law law", "zzz goal", "vote"], dtype=object)
    y = np.array(["s", "p"] * 12 + ["s", "p", "new", None], dtype=object)
    y[:14] = None  # most are unknown, which is no class
    train, test = np.arange(24), np.arange(24, 28)
    found = evaluate_logistic(texts, y, train, test)
    assert found["accuracy"] == pytest.approx(2 / 3) and 0 < found["log_loss"] < 0.7
    swapped = y.copy()
    swapped[14:24] = np.where(y[14:24] == "s", "p", "s")
    assert evaluate_logistic(texts, swapped, train, test)["accuracy"] == 0.0
    alone = evaluate_logistic(texts, y, train, np.array([26]))  # all test documents are of a new class
    assert alone["accuracy"] == 0.0 and "log_loss" not in alone


def test_a_look_counts_all_rows_without_a_response(command, tmp_path):
    rows = [(text, label) for text, label in zip(TEXTS[:12], [*NAMES[:8], "NA", "", "", "NA"], strict=True)]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("body", "team"), *rows])
    found = json.loads(command("check", tmp_path / "t.csv", "--text", "body", "--label", "team", "--json", stops=False))
    assert found["unlabelled"] == 4 and found["documents"] == 12


def test_the_table_of_a_history_has_its_figures_under_their_heads(command, models, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (row,) = json.loads(command("history", models("class"), "--json", stops=False))
    shown = command("history", models("class"), stops=False).splitlines()
    cells = next(line for line in shown if line.split()[:1] == ["1"]).split()
    figures = [f"{row[name]:.3f}" for name in ("score", "loss", "base_loss", "calibration") if row[name] is not None]
    assert [cell for cell in cells if "." in cell][: len(figures)] == figures


def test_rows_that_are_found_keep_their_names_and_texts(command, table, models):
    """Of a table whose rows have names; typical documents as many as are asked for."""
    model = supertopic.load(models("class"))
    given = models("class"), table, "--text", "body", "--id", "name", "--json"
    for verb, frame in (("unsure", model.unsure(TEXTS[:N], 6)), ("typical", model.typical_documents(TEXTS[:N], 2, 6))):
        more = ["--topic", 2] if verb == "typical" else []
        rows = json.loads(command(verb, *given, "-n", 6, *more, stops=False))
        assert [row["row"] for row in rows] == [f"n{i}" for i in frame["row"]]
        assert [row["text"] for row in rows] == [TEXTS[i] for i in frame["row"]]
