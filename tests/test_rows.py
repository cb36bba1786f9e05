"""Commands that go back to the rows of a table: which documents, and why."""

import csv
import io
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console
from sklearn.feature_extraction.text import CountVectorizer

import supertopic
from supertopic import SLDAClassifier, SLDARegressor, choose_topics
from supertopic.command import explain as explain_command
from supertopic.command import rows as rows_of_command
from supertopic.command import show, show_explanation
from supertopic.command.cells import numbers_if_all
from supertopic.command.cli import main
from supertopic.command.console import PlainConsole
from supertopic.command.explain import choose_rows, explain_rows, given_beside
from supertopic.command.kinds import Asked
from supertopic.command.show_explanation import (
    AWAY,
    HALF,
    TOWARDS,
    explanation_table,
    mark_words,
    predicted,
    runner_up,
    signed,
    topics_line,
)
from supertopic.datasets import make_corpus
from supertopic.model.responses import Gaussian, Hinge, Logistic
from supertopic.report.explain import Explanation
from supertopic.report.summary import describe_topics

N = 150
FAST = {"burn_in": 10, "n_draws": 5, "n_chains": 2, "random_state": 0}


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process, 80 columns wide; returns what it printed, or how it refused."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert (stop.value.code or 0) == code, captured.err
        return captured.out if code == 0 else " ".join(captured.err.split())

    return run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """150 documents of three classes, labels and a number, two of them mislabelled, and their models."""
    folder = tmp_path_factory.mktemp("rows")
    corpus = make_corpus(n_docs=N, n_words=60, n_topics=3, eta=np.eye(3) * 12 - 4, random_state=0)
    words = [f"word{chr(97 + w % 26)}{chr(97 + w // 26)}" for w in range(60)]
    texts = [" ".join(np.repeat(words, row.astype(int))) for row in corpus.X.toarray()]
    best = corpus.doc_topic.argmax(axis=1)
    team = np.array(["red", "green", "blue"])[best]
    sure = np.argsort(-corpus.doc_topic[:, 0])[:2]
    team[sure] = "blue"
    several = [f"{name};{'loud' if i % 2 else 'quiet'}" for i, name in enumerate(team)]
    number = corpus.doc_topic @ [0.0, 2.0, 4.0]
    seen = number + 20.0 * (np.arange(N) == 5)
    with open(folder / "d.csv", "w", newline="", encoding="utf-8") as file:
        rows = zip([f"t{i}" for i in range(N)], texts, team, several, np.round(seen, 3), strict=True)
        csv.writer(file).writerows([("id", "text", "team", "tags", "number"), *rows])
    supertopic.save(SLDAClassifier(3, **FAST).fit(texts, team), folder / "m")
    supertopic.save(SLDARegressor(3, **FAST).fit(texts, number), folder / "number")
    return folder, [f"t{i}" for i in sure], texts


def read(text):
    return list(csv.DictReader(text.splitlines()))


def test_surprising(command, place):
    folder, wrong, texts = place
    given = "surprising", folder / "m", folder / "d.csv", "--text", "text", "--label", "team"
    found = read(command(*given, "--id", "id", "-n", 5, "--csv"))
    assert len(found) == 5 and set(wrong) <= {row["row"] for row in found}
    assert list(found[0]) == ["row", "predicted", "observed", "score", "text"] and float(found[0]["score"]) < 0.4
    numbered = json.loads(command(*given, "-n", 5, "--json"))
    assert [f"t{int(row['row']) - 1}" for row in numbered] == [row["row"] for row in found]
    assert [row["text"] for row in numbered] == [texts[int(row["row"]) - 1] for row in numbered]
    shown = command(*given, "--id", "id")
    assert wrong[0] in shown and "…" in shown and all(cell_len(line) <= 80 for line in shown.splitlines())
    frame = supertopic.load(folder / "m").surprising(
        texts, [row["team"] for row in read((folder / "d.csv").read_text())], 5
    )
    assert [f"t{i}" for i in frame["row"]] == [row["row"] for row in found]


def test_unsure_and_typical(command, place):
    folder, _, texts = place
    model = supertopic.load(folder / "m")
    given = "--text", "text", "--id", "id", "--csv"
    found = read(command("unsure", folder / "m", folder / "d.csv", *given, "-n", 4))
    assert [row["row"] for row in found] == [f"t{i}" for i in model.unsure(texts, 4)["row"]]
    found = read(command("typical", folder / "m", folder / "d.csv", *given, "--topic", 1, "-n", 4))
    assert [row["row"] for row in found] == [f"t{i}" for i in model.typical_documents(texts, 1, 4)["row"]]
    assert {row["topic"] for row in found} == {"1"}
    every = json.loads(command("typical", folder / "m", folder / "d.csv", *given[:-1], "--json"))
    assert len(every) == 9 and {row["topic"] for row in every} == {"0", "1", "2"}
    assert "no topic '7'" in command("typical", folder / "m", folder / "d.csv", *given, "--topic", 7, code=1)
    assert "row" in command("typical", folder / "m", folder / "d.csv", "--text", "text", "-n", 0)


def test_numbers_have_rows_too(command, place):
    folder, *_ = place
    given = folder / "number", folder / "d.csv", "--text", "text"
    found = read(command("surprising", *given, "--label", "number", "--csv"))
    assert found[0]["row"] == "6" and float(found[0]["score"]) > float(found[-1]["score"])
    assert len(read(command("unsure", *given, "--csv"))) == 10
    assert "for" not in command("explain", *given, "--row", 3) and "total" in command("explain", *given, "--row", 3)
    model, rows = supertopic.load(folder / "number"), read((folder / "d.csv").read_text())
    lower, upper = model.predict_interval([row["text"] for row in rows])
    known = np.array([float(row["number"]) for row in rows])
    outside = np.flatnonzero((known < lower) | (known > upper)) + 1
    wrong = json.loads(command("explain", *given, "--where", "wrong", "--label", "number", "--json", "-n", N))
    assert sorted(int(each["row"]) for each in wrong) == outside.tolist() and wrong[0]["row"] == "6"


def test_explain_rows_of_a_table(command, place, monkeypatch):
    folder, wrong, texts = place
    given = "explain", folder / "m", folder / "d.csv", "--text", "text"
    (found,) = json.loads(command(*given, "--row", 8, "--json"))
    model = supertopic.load(folder / "m")
    assert found["row"] == "8" and found["words"] == model.explain(texts[7]).words
    np.testing.assert_allclose(found["mean"], model.explain(texts[7]).mean)
    (same,) = json.loads(command(*given, "--row", "t7", "--id", "id", "--json"))
    assert same["row"] == "t7" and same["mean"] == found["mean"]
    one = json.loads(command("explain", folder / "m", "--text", texts[7], "--json"))
    assert one["mean"] == found["mean"] and "row" not in one
    assert found["constant"] == pytest.approx(model.explain(texts[7]).constant) and found["covariates"] == [0, 0, 0]
    monkeypatch.setattr(sys, "stdin", io.StringIO(texts[7]))
    assert json.loads(command("explain", folder / "m", "--text", "-", "--json"))["mean"] == found["mean"]
    two = command(*given, "--where", "unsure", "-n", 2)
    assert two.startswith("row ") and two.count("\n\nrow ") == 1
    more = json.loads(command(*given, "--where", "wrong", "--label", "team", "--id", "id", "-n", 9, "--json"))
    assert set(wrong) <= {each["row"] for each in more}
    teams = {row["id"]: row["team"] for row in read((folder / "d.csv").read_text())}
    for each in more:
        assert each["mean_names"][int(np.argmax(each["mean"]))] != teams[each["row"]]
    shown = command(*given, "--where", "wrong", "--label", "team", "--id", "id", "-n", 1)
    truth = teams[more[0]["row"]]
    assert f"row {more[0]['row']}, known: {truth}" in shown and f"over {truth}" in shown and f"above {truth}" in shown
    assert len(json.loads(command(*given, "--where", "unsure", "--json"))) == 3
    assert json.loads(command(*given, "--where", "unsure", "-n", 0, "--json")) == []
    for arguments, message in (
        ([], "needs either --row or --where"),
        (["--row", 1, "--where", "unsure"], "needs either --row or --where"),
        (["--row", 151], "has no row '151'; its 150 rows begin with ['1', '2', '3']"),
        (["--row", 0], "has no row '0'"),
        (["--row", "t7"], "has no row 't7'"),
        (["--where", "wrong"], "--where wrong needs --label"),
        (["--row", 1, "--id", "nothing"], "has no column 'nothing'"),
    ):
        assert message in command(*given, *arguments, code=1)
    for more in (["--row", 3], ["--where", "unsure"], ["--label", "team"], ["--id", "id"]):
        assert "go with a table" in command("explain", folder / "m", "--text", "worda", *more, code=1)
    assert "--text is needed" in command("explain", folder / "m", code=1)
    assert "Invalid value" in command(*given, "--where", "nowhere", code=2)


def numbers_of(line):
    return [float(part) for part in line.replace("..", " ").split() if part[0] in "+-" and part[1:2].isdigit()]


def test_the_table_of_an_explanation_adds_up(command, place):
    """Its rows, those that are put together among them, sum to the total, beside the runner-up, too."""
    folder, _, texts = place
    shown = command("explain", folder / "m", folder / "d.csv", "--text", "text", "--row", 8)
    lines = [line for line in shown.splitlines() if len(numbers_of(line)) >= 2 and "%" not in line]
    *rows, total = map(numbers_of, lines)
    assert "total" in lines[-1] and any("more words" in line for line in lines)
    assert sum(row[0] for row in rows) == pytest.approx(total[0], abs=0.01)
    assert sum(row[1] for row in rows) == pytest.approx(total[1], abs=0.01)
    found = supertopic.load(folder / "m").explain(texts[7])
    best, second = np.argsort(-found.mean)[:2]
    assert total[0] == pytest.approx(found.omega[best], abs=1e-3)
    assert total[1] == pytest.approx(found.omega[best] - found.omega[second], abs=1e-3)
    assert f"{found.columns[best]} is " in shown and f"above {found.columns[second]}" in shown
    sizes = [abs(row[0]) for line, row in zip(lines, rows, strict=False) if "more words" not in line]
    assert sizes == sorted(sizes, reverse=True)
    assert all(cell_len(line) <= 80 for line in shown.splitlines())


def test_two_classes_have_no_runner_up(command, tmp_path):
    texts = ["goal match", "vote law"] * 8
    supertopic.save(SLDAClassifier(2, **FAST).fit(texts, ["a", "b"] * 8), tmp_path / "m")
    shown = command("explain", tmp_path / "m", "--text", "a goal for the vote")
    assert "over" not in shown and "above" not in shown and "\x1b" not in shown


def test_words_are_marked_on_a_terminal_alone(place, monkeypatch):
    folder, _, texts = place
    model = supertopic.load(folder / "m")
    text = f"{texts[7][:60]} unheard, {texts[7][60:].upper()}"
    found = model.explain(text)
    marked = show_explanation.mark_words(model, text, found, found.column)
    assert marked.plain == text
    adds = dict(zip(found.words, found.total[:, found.column], strict=True))
    towards = {text[span.start : span.end].lower() for span in marked.spans if span.style == show_explanation.TOWARDS}
    away = {text[span.start : span.end].lower() for span in marked.spans if span.style == show_explanation.AWAY}
    assert towards and away and "unheard" not in towards | away
    assert max(adds, key=adds.get) in towards or " " in max(adds, key=adds.get)
    for terminal in (True, False):
        console = PlainConsole(force_terminal=terminal, color_system="256" if terminal else None, width=80)
        monkeypatch.setattr(show_explanation, "out", console)
        with console.capture() as captured:
            show_explanation.show_explanation(model, text, found)
        assert ("38;5;33" in captured.get()) is terminal and ("unheard" in captured.get()) is terminal
        assert ("38;5;208" in captured.get()) is terminal


def test_bars_show_their_side_without_colour():
    right, left, none = (show_explanation.bar(share).plain for share in (1.0, -0.5, 0.0))
    assert right == " " * 8 + "│" + "█" * 8 and left == " " * 4 + "█" * 4 + "│" and none == " " * 8 + "│"


def test_names_are_shown_instead_of_numbers(command, place, tmp_path):
    folder, *_ = place
    model = tmp_path / "m"
    model.write_bytes((folder / "m").read_bytes())
    before = model.read_bytes()
    assert "0 Late trains" in command("name", model, "0=Late \x1b trains", "2=[bold]x", "-o", tmp_path / "n").replace(
        "\ufffd ", ""
    )
    assert model.read_bytes() == before
    assert json.loads(command("name", model, "1=printers", "--json")) == {"1": "printers"}
    assert json.loads(command("name", model, "printers=fire", "2=coffee", "--json")) == {"1": "fire", "2": "coffee"}
    assert "1 fire" in command("topics", model)
    table = model, folder / "d.csv", "--text", "text"
    assert "topic 1 fire" in command("predict", *table, "--shares").splitlines()[0]
    assert {row["topic"] for row in read(command("typical", *table, "--topic", "FIRE", "--csv"))} == {"1 fire"}
    assert "1 fire" in command("explain", *table, "--row", 1) or "2 coffee" in command("explain", *table, "--row", 1)
    assert json.loads(command("name", model, "1=", "--json")) == {"2": "coffee"}
    for given in ("7=x", "-1=x", "1", "x=y", "0=" + "x" * 81, "coffee", "²=x"):
        assert "Error" in command("name", model, "--", given, code=1)
    assert supertopic.load(model).predict_proba(["wordaa wordba"]).shape == (1, 3)


def test_predictions_have_ids(command, place):
    folder, *_ = place
    table = folder / "m", folder / "d.csv", "--text", "text"
    rows = read(command("predict", *table, "--id", "id", "--keep", "team"))
    assert list(rows[0])[:3] == ["id", "team", "prediction"] and rows[7]["id"] == "t7"


def test_predictions_in_parts_are_the_same(place, monkeypatch):
    from supertopic.command import predict

    folder, _, texts = place
    model = supertopic.load(folder / "m")
    whole = model.predict_table(texts)
    monkeypatch.setattr(predict, "PART", 70)
    monkeypatch.setattr(predict, "err", PlainConsole(force_terminal=True, stderr=True))
    parts = predict.predict_parts(model, np.array(texts, object), {})
    for name, values in whole.items():
        np.testing.assert_array_equal(parts[name], values)


def test_diagnose(command, place):
    folder, *_ = place
    assert "log joint" in command("diagnose", folder / "m")
    given = "diagnose", folder / "m", folder / "d.csv", "--text", "text", "--label", "team"
    found = json.loads(command(*given, "--json"))
    assert {"chain 0", "chain 1"} == set(found["figures"]["score"]) and isinstance(found["advice"], list)
    shown = command(*given)
    assert "test loss" in shown and all(cell_len(line) <= 80 for line in shown.splitlines())
    assert "both a table and --text" in command("diagnose", folder / "m", folder / "d.csv", code=1)


def test_the_page_names_rows(command, place, tmp_path):
    folder, *_ = place
    page, few = tmp_path / "p.html", tmp_path / "few.csv"
    few.write_text("".join((folder / "d.csv").read_text().splitlines(keepends=True)[:9]))
    for more, names in ((["--id", "id"], ["t0", "t7"]), ([], ["1", "8"])):
        command("report", folder / "m", few, "--text", "text", *more, "-o", page)
        shown = page.read_text(encoding="utf-8")
        assert all(f'"id":"{name}"' in shown for name in names) and '"id":"0"' not in shown
    model, texts = supertopic.load(folder / "m"), place[2][:3]
    for rows in (np.array([7, 8, 9]), ["7", "8", "9"]):
        assert set(re.findall(r'"id":"([^"]+)', model.report(texts, rows=rows))) == {"7", "8", "9"}
    with pytest.raises(ValueError, match="name each of the 3 texts, got 2"):
        model.report(texts, rows=["a", "b"])


def test_narrow_topics_have_no_interval(command, place, monkeypatch):
    folder, *_ = place
    narrow = command("topics", folder / "m")
    assert ".." not in narrow.partition("What the topics miss")[0] and "in chains" in narrow
    assert all(cell_len(line) <= 80 for line in narrow.splitlines())
    monkeypatch.setenv("COLUMNS", "120")
    assert "weight (90 % interval)" in command("topics", folder / "m")


def test_a_weight_that_says_more_than_the_effect_is_explained():
    row = {"class": None, "largest": "a", "weight": 2.0, "interval": [0.5, 3.0]}
    assert show.pull(row) == "-" and show.pull(row | {"class": "a"}) == "a"
    assert show.pull(row | {"away_from": "b"}) == "away from b"
    shown = {"topic": 0, "name": "", "share": 1.0, "chains": 1, "of_chains": 1, "words": ["w"]}
    assert show.topic_table([shown | row]).caption == show.UNCLEAR
    assert show.topic_table([shown | row | {"interval": [-0.5, 3.0]}]).caption is None
    assert show.topic_table([shown | row | {"class": "a"}]).caption is None
    assert show.topic_table([shown | row | {"class": "b", "turned": True}]).caption == show.TURNED


def test_without_a_relation_no_words_are_shown_that_topics_miss(place):
    folder, *_ = place
    model = supertopic.load(folder / "m")
    assert show.word_tables(model.posterior_, model.vocabulary_)
    held_out = model.posterior_.held_out
    model.posterior_.held_out.update(loss=held_out["base_loss"] - held_out["se"])
    assert show.word_tables(model.posterior_, model.vocabulary_) == []


def test_numbers_of_topics_are_compared_without_words_and_by_stability(place):
    folder, _, texts = place
    y = [row["team"] for row in read((folder / "d.csv").read_text())]
    model = SLDAClassifier()
    rows = choose_topics(model, texts, y, [2, 3], burn_in=10, n_draws=5, n_chains=2).rows
    assert all(0 < row["topics_loss"] < 3 and 0 <= row["stability"] <= 1 for row in rows)
    assert rows[1]["topics_loss"] < rows[0]["topics_loss"] - 0.1  # two topics cannot tell three classes apart
    alone = choose_topics(SLDAClassifier(words=False), texts, y, [3], burn_in=10, n_draws=5, n_chains=1)
    assert np.isnan(alone.rows[0]["stability"]) and " - " in repr(alone)
    assert all(len(line) <= 80 for line in repr(alone).splitlines())
    assert alone.rows[0]["topics_loss"] == pytest.approx(rows[1]["topics_loss"], abs=0.05)


def test_cells():
    assert rows_of_command.as_cell(["a", "b"]) == "a;b" and rows_of_command.as_cell(None) == ""
    assert (
        rows_of_command.as_cell(np.float64(0.123456)) == "0.1235" and rows_of_command.plain_cell(float("nan")) is None
    )
    assert rows_of_command.cut("天气天气天气", 7) == "天气天…" and rows_of_command.cut("abc", 3) == "abc"


KINDS = {  # of responses: options of `fit`, and the labels of the documents
    "labels": (["--response", "labels"], ["a;b", "b", "a", "c"]),
    "hinge": (["--loss", "hinge"], ["a", "b", "c", "a"]),
    "labels, hinge": (["--response", "labels", "--loss", "hinge"], ["a;b", "b", "a", "c"]),
    "separate": (["--multiclass", "separate"], ["a", "b", "c", "a"]),
    "sticks": (["--multiclass", "stick_breaking"], ["a", "b", "c", "a"]),
    "ordinal": (["--response", "ordinal"], ["1", "2", "3", "1"]),
    "count": (["--response", "count"], ["7", "0", "30", "2"]),
    "time": (["--response", "time"], ["7", "1", "30", "2"]),
    "raters": (["--response", "raters", "--gold", "other"], ["a", "b", "a", "b"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_response_has_rows(command, tmp_path, kind):
    options, labels = KINDS[kind]
    texts = ["goal match team", "vote law senate", "bank price money", "goal team fun"]
    with open(tmp_path / "d.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "other"])
        writer.writerows(
            [f"{texts[i % 4]} {'word' + chr(97 + i)}", "" if i == 7 else labels[i % 4], ""] for i in range(24)
        )
        writer.writerow(["", labels[0], ""])
    model, data = tmp_path / "m", tmp_path / "d.csv"
    fast = ["--topics", "3", "--burn-in", "5", "--draws", "3", "--chains", "2", "--min-df", "1"]
    command("fit", data, "--text", "text", "--label", "label", "-o", model, *options, *fast)
    given = [model, data, "--text", "text"]
    known = [*given, "--label", "label", *(options[2:] if kind == "raters" else [])]
    assert len(read(command("unsure", *given, "--csv", "-n", 25))) == 25
    assert len(json.loads(command("surprising", *known, "--json"))) == 10
    assert "total" in command("explain", *given, "--row", 1) and "total" in command("explain", *given, "--row", 25)
    assert "total" in command("explain", *known, "--where", "surprising", "-n", 1)
    if kind in ("time", "raters"):
        assert "cannot be right or wrong. Use surprising()" in command("explain", *known, "--where", "wrong", code=1)
    else:
        rows = [
            int(each["row"]) for each in json.loads(command("explain", *known, "--where", "wrong", "-n", 25, "--json"))
        ]
        predicted = [row["prediction"] for row in read(command("predict", *given))]
        if kind not in ("count",):
            wrong = {i + 1 for i in range(24) if i != 7 and predicted[i] != labels[i % 4]}
            assert set(rows) - {25} == wrong
    command("diagnose", *known)
    assert len(read(command("typical", *given, "--csv"))) >= 9


def test_topics_without_a_response(command, tmp_path):
    from supertopic import LDA

    texts = ["goal match team", "vote law senate"] * 6
    supertopic.save(LDA(2, burn_in=5, n_draws=3, random_state=0).fit(texts), tmp_path / "m")
    with open(tmp_path / "d.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    given = tmp_path / "m", tmp_path / "d.csv", "--text", "text"
    assert len(read(command("typical", *given, "--csv", "-n", 2))) == 4
    assert "perplexity" in command("diagnose", *given)
    assert "0 sport" in command("name", tmp_path / "m", "0=sport")
    for verb in ("unsure", "explain"):
        more = ["--row", 1] if verb == "explain" else []
        assert "has no response to predict" in command(verb, *given, *more, code=1)


def test_small_probabilities_have_no_exponent():
    mean, ends = np.array([0.99991, 0.00009, 0.4]), np.array([[0.9995, 2e-7, 0.1], [0.99999, 0.0004, 0.7]])
    found = SimpleNamespace(mean=mean, mean_names=["a", "b", "c"], mean_interval=ends, column=0)
    assert show_explanation.predicted(found, None, True) == "a >0.999, b <0.001, c 0.4 (0.1 .. 0.7)"
    assert show_explanation.predicted(found, None).startswith("a 1 (1 .. 1), b 9e-05")


def test_groups_of_a_page_are_numbers_and_years_where_a_table_has_them(command, place, tmp_path):
    """CSV holds text alone; labels may have another separator."""
    folder, _, texts = place
    with open(folder / "d.csv", newline="", encoding="utf-8") as file:
        tagged = list(csv.DictReader(file))
    years = [str(1990 + i % 20) if i else "NA" for i in range(N)]
    with open(tmp_path / "d.csv", "w", newline="", encoding="utf-8") as file:
        rows = [(text, row["tags"].replace(";", "|"), year, row["number"], f"a{i % 3}")
                for i, (text, row, year) in enumerate(zip(texts, tagged, years, strict=True))]  # fmt: skip
        csv.writer(file).writerows([("text", "tags", "year", "number", "author"), *rows])
    y = np.array([[name in row["tags"] for name in ("blue", "green", "loud", "quiet", "red")] for row in tagged])
    model = SLDAClassifier(3, **FAST).fit(
        texts, pd.DataFrame(y.astype(int), columns=["blue", "green", "loud", "quiet", "red"])
    )
    supertopic.save(model, tmp_path / "m")
    by = [part for name in ("year", "number", "author") for part in ("--by", name)]
    given = (tmp_path / "m", tmp_path / "d.csv", "--text", "text", "--label", "tags", "--separator", "|", *by)
    command("report", *given, "-o", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    kinds = [(group["name"], group["kind"], len(group["levels"])) for group in data["groups"]]
    assert kinds == [("label", "class", 5), ("year", "time", 20), ("number", "number", 6), ("author", "group", 3)]
    assert [level["documents"] for level in data["groups"][0]["levels"]] == y.sum(axis=0).tolist()
    assert numbers_if_all(["1", " ", "2.5", None]) == [1, None, 2.5, None]
    for cells in (["1", "b"], [True, False], ["x"]):
        assert numbers_if_all(cells) == cells


def test_a_wrong_label_is_explained(command, place, tmp_path):
    """The labels are in the order of their probabilities, the known ones are named, and the wrong one is explained."""
    folder, _, texts = place
    with open(folder / "d.csv", newline="", encoding="utf-8") as file:
        tags = [row["tags"].split(";") for row in csv.DictReader(file)]
    names = ["blue", "green", "loud", "quiet", "red"]
    y = pd.DataFrame([[int(name in own) for name in names] for own in tags], columns=names)
    supertopic.save(SLDAClassifier(3, **FAST).fit(texts, y), tmp_path / "m")
    given = (tmp_path / "m", folder / "d.csv", "--text", "text", "--label", "tags", "--where", "wrong", "-n", 3)
    said = command("explain", *given)
    parts = said.split("row ")[1:]
    assert len(parts) == 3
    for part in parts:
        row = int(re.match(r"(\d+), known:", part)[1]) - 1
        assert part.startswith(f"{row + 1}, known: {'; '.join(name for name in names if name in tags[row])}\n")
        p = dict(zip(names, supertopic.load(tmp_path / "m").predict_proba([texts[row]])[0], strict=True))
        shown = re.findall(r"(\w+) [<>]?[\d.e-]+ \(", part.partition("What adds")[0])
        assert shown == sorted(names, key=lambda name: -p[name])
        wrong = {name: abs((name in tags[row]) - p[name]) for name in names if (name in tags[row]) != (p[name] >= 0.5)}
        assert f"What adds to {max(wrong, key=lambda name: wrong[name])}" in part
    why = SimpleNamespace(
        mean=np.arange(8.0)[::-1], mean_names=list("abcdefgh"), mean_interval=(np.zeros(8), np.ones(8))
    )
    assert show_explanation.predicted(why, None, ranked=True, column=6).endswith(
        "d 4 (0 .. 1), g 1 (0 .. 1) and 3 more"
    )


def test_numbers_of_an_explanation_have_the_digits_that_they_need():
    assert [signed(value, 3) for value in (0.0004, -0.0004, 0.25, -1.0)] == ["0.000", "0.000", "+0.250", "-1.000"]


def explanation_of(adds, others=None, **more):
    """An explanation of words that add so much, (n_words, R), to columns a, b, c."""
    adds = np.array(adds, float)
    (n, n_columns), own = adds.shape, {"intercept": np.zeros(adds.shape[1])} | (others or {})
    omega, names = adds.sum(axis=0) + sum(own.values()), list("abcdefgh"[:n_columns])
    return Explanation(
        names, [f"w{i}" for i in range(n)], np.ones(n), {"topics": adds}, adds - 0.25, adds + 0.5, own, omega, omega,
        (omega - 0.1, omega + 0.1), names, np.zeros((1, n_columns)), np.ones(1), ["0"],
    )._replace(**more)  # fmt: skip


def lines_of(found, second=None, column=0):
    """The lines of the table by their first words: their other cells."""
    console = Console(width=100, file=io.StringIO())
    console.print(explanation_table(found, second, column))
    lines = [line.split() for line in console.file.getvalue().splitlines() if line.strip()]
    return {line[0]: line[1:] for line in lines}


@pytest.mark.parametrize(("largest", "shown"), [
    (4321.0, "+4321"), (432.1, "+432"), (43.21, "+43.2"), (0.04321, "+0.0432"), (4.321e-5, "+0.000043"),
])  # fmt: skip
def test_numbers_of_an_explanation_have_three_digits_in_any_unit(largest, shown):
    """Six behind the point at most; what covariates add counts, what rounds to 0 has no sign."""
    lines = lines_of(explanation_of([[largest], [-1e-9 * largest]]))
    assert lines["w0"][0] == lines["total"][0] == shown and lines["w1"][0] == f"{0:.{len(shown.partition('.')[2])}f}"
    lines = lines_of(explanation_of([[1e-3 * largest]], {"year": np.array([-largest])}))
    assert lines["year"][0] == shown.replace("+", "-") and lines["year"][1] == "█" * HALF + "│"


def test_a_table_beside_the_runner_up_has_the_words_that_decide():
    """Also those that only speak for the other class; each number is of its own column."""
    adds = np.zeros((18, 3))
    adds[:, 1], adds[:, 2] = np.linspace(1.7, 0.0, 18), 0.5
    adds[17] = [0.0, -0.001, 3.0]
    found = explanation_of(adds, {"year": np.array([5.0, 0.25, 1.0])}, mean=np.array([9.0, 0.2, 0.1]))
    lines = lines_of(found, 2, 1)
    assert lines["over"] == ["c", "90", "%", "interval"] if "over" in lines else "over" in lines["adds"]
    assert lines["w0"][:5] == ["+1.70", "+1.20", "+1.45", "..", "+2.20"] and lines["w17"][1] == "-3.00"
    assert lines["year"][:2] == ["+0.25", "-0.75"] and list(lines)[-1] == "total"
    left = [i for i in range(18) if f"w{i}" not in lines]
    assert lines["3"][:4] == ["more", "words", f"{adds[left, 1].sum():+.2f}", f"{(adds[left, 1] - 0.5).sum():+.2f}"]
    assert lines["total"] == [f"{found.omega[1]:+.2f}", f"{found.omega[1] - found.omega[2]:+.2f}"]
    order = [name for name in lines if name in found.words or name == "year"]
    assert order == ["w0", *order[1:]] and order.index("year") > order.index("w13") and order[-1] == "w17"
    assert lines_of(found, None, 1)["What"] == ["adds", "to", "b"]


def test_bars_are_rounded_and_end_where_the_table_does():
    lines = lines_of(explanation_of([[1.0]] * 15 + [[0.95]] * 4))
    assert lines["w0"][-1] == lines["4"][-1] == "│" + "█" * HALF
    bars = [show_explanation.bar(share) for share in (0.95, -0.3)]
    assert [bar.plain.strip() for bar in bars] == ["│" + "█" * 8, "██│"]
    for bar, style in zip(bars, (TOWARDS, AWAY), strict=True):
        assert {bar.plain[span.start : span.end].strip(): span.style for span in bar.spans}["█" * (
            8 if style is TOWARDS else 2)] == style.split()[1]  # fmt: skip


def test_words_that_are_called_as_other_rows_are_have_bars():
    """A text may have the words "total" and "intercept"."""
    console = Console(width=100, file=io.StringIO())
    console.print(explanation_table(explanation_of([[1.0], [-0.5]], words=["total", "intercept"]), None, 0))
    bars = [(line.split()[0], line.count("█")) for line in console.file.getvalue().splitlines()[4:] if line.strip()]
    assert bars == [("total", HALF), ("intercept", HALF // 2), ("intercept", 0), ("total", 0)]


def test_the_topics_of_an_explanation():
    """Those that add most, with their shares; none that the document does not have."""
    topics = np.array([[0.2, 9.0], [-1.5, 0.1], [3.0, 0.1], [0.25, 0.1], [0.1, 0.1]])
    found = explanation_of([[1.0, 2.0]], topics=topics, topic_shares=np.array([0.2, 0.5, 0.0, 0.3, 0.0]),
                           topic_labels=["0 x", "1 y", "2 z", "3 t", "4 u"])  # fmt: skip
    assert topics_line(found, 0) == "its topics: 1 y 50% (-1.50), 3 t 30% (+0.25)"
    assert topics_line(found, 1).startswith("its topics: 0 x 20% (+9.00), 1 y 50% (+0.10)")


def test_which_class_a_prediction_is_compared_with():
    """With the known one, if it is another, or else with the second best; of two classes and labels with none."""
    model = SimpleNamespace(posterior_=SimpleNamespace(response=Logistic(1.0, classes=np.array(list("abc")))))
    found = explanation_of([[1.0, 4.0, 2.0]])
    assert [runner_up(model, found, known) for known in (None, "a", "b", "z")] == [2, 0, 2, 2]
    assert runner_up(model, found._replace(mean=np.zeros(4)), "a") is None  # a column is not a class
    assert runner_up(model, explanation_of([[1.0, 4.0]]), "a") is None
    several = SimpleNamespace(posterior_=SimpleNamespace(response=Logistic(1.0, multilabel=True)))
    assert runner_up(several, found, "a") is None
    mean = found._replace(mean=np.array([0.2, 0.7, 0.1]), mean_interval=(np.zeros(3), np.ones(3)))
    assert predicted(mean, 0, True, True) == "b 0.7 (0 .. 1), a 0.2 (0 .. 1), c 0.1 (0 .. 1)\nb is 0.5 above a"
    near = mean._replace(mean=np.array([0.4, 0.4004, 0.1996]))
    assert predicted(near, 0, True, True).endswith("b is less than 0.001 above a")
    sure = mean._replace(mean=np.array([0.0001, 0.9999, 0.0]), mean_interval=(np.full(3, 0.5), np.full(3, 0.5)))
    assert predicted(sure, 0, True, True) == "b >0.999, a <0.001, c 0\nb is more than 0.999 above a"
    assert predicted(sure, None) == "a 0.0001 (0.5 .. 0.5), b 1 (0.5 .. 0.5), c 0 (0.5 .. 0.5)"
    six = SimpleNamespace(mean=np.arange(6.0)[::-1], mean_names=list("abcdef"), mean_interval=np.zeros((2, 6)))
    assert predicted(six, None, True, True, 5) == "a 5, b 4, c 3, d 2, f 0 and 1 more"


def test_what_is_said_before_the_table(monkeypatch):
    """How numbers and texts without known words are predicted; classes are sorted if there are more than two."""

    def said(response, found, column=None):
        console = PlainConsole(width=100, file=io.StringIO(), force_terminal=False)
        monkeypatch.setattr(show_explanation, "out", console)
        model = SimpleNamespace(posterior_=SimpleNamespace(response=response))
        show_explanation.show_explanation(model, "", found, None, column)
        return console.file.getvalue()

    note, empty = "The interval is that of the expected value", "no word of the vocabulary"
    number = said(Gaussian(1.0, np.ones(1)), explanation_of([[2.0]]))
    assert number.startswith("a 2 (1.9 .. 2.1)\n") and note in number and empty not in number
    assert said(Gaussian(1.0, np.ones(2)), explanation_of([[1.0, 2.0]])).startswith("a 1 (0.9 .. 1.1), b 2")
    scores = said(Hinge(1.0, 1.0, classes=np.array(list("abc"))), explanation_of([[0.0, 2.0, 0.9999]]))
    assert scores.startswith("b 2 (1.9 .. 2.1), c 1 (0.9 .. 1.1), a 0") and note not in scores
    chance = explanation_of([[1.0]])._replace(mean=np.array([0.1, 0.9999]), mean_names=["a", "b"],
                                              mean_interval=np.array([[0.0, 0.9999], [1.0, 0.9999]]))  # fmt: skip
    assert said(Logistic(1.0, classes=np.array(["a", "b"])), chance).startswith("a 0.1 (0 .. 1), b >0.999\n")
    labels = explanation_of(np.zeros((0, 3)), topics=np.array([[0.0, 1.0, 2.0]]))
    shown = said(Logistic(1.0, classes=np.array(list("abc")), multilabel=True), labels, 2)
    assert shown.startswith("The text contains " + empty) and "What adds to c" in shown and "100% (+2.00)" in shown


def test_which_words_are_marked():
    """By what a token adds, half of a pair to each of its words; not what is below a twentieth of the largest."""
    text = "Bad bad good, tiny mild so so film Not good"
    adds = np.array(
        [[0.0, -2.0], [0.0, 0.04], [9.0, 0.03], [0.0, -0.6], [0.0, 0.8], [0.0, 0.3], [0.0, 0.03], [0.0, 0.08]]
    )
    words = ["bad", "film", "so", "not good", "good", "so film", "tiny", "mild"]
    times = np.array([2, 1, 2, 1, 2, 1, 1, 1])
    found = explanation_of(adds, words=words, times=times)
    model = SimpleNamespace(vectorizer_=CountVectorizer())
    marked = mark_words(model, text, found, 1)
    styles = [(text[span.start : span.end], span.style) for span in marked.spans]
    assert [text for text, style in styles if style == AWAY] == ["Bad", "bad", "Not"]
    assert [text for text, style in styles if style == TOWARDS] == ["good", "mild", "so", "film", "good"]
    model.word_vectorizer_ = CountVectorizer(tokenizer=str.split, token_pattern=None)
    assert mark_words(model, text, found, 1).spans == []
    model.word_vectorizer_ = CountVectorizer(token_pattern=r"(?u)(good)\b[,]?")
    assert [text[span.start : span.end] for span in mark_words(model, text, found, 1).spans] == ["good", "good"]


def test_the_label_that_is_most_wrong_is_explained():
    """Probabilities are wrong beyond a half, scores beyond 0, unknown labels never; all that is beside is the row's."""

    def explained(response, y, mean):
        asked = []
        model = SimpleNamespace(
            posterior_=SimpleNamespace(response=response),
            explain=lambda text, **beside: (
                asked.append((text, beside["groups"].tolist())) or SimpleNamespace(mean=mean)
            ),
        )
        beside = {"groups": np.array(["g", "h"])}
        ((name, text, known, column, _),) = explain_rows(model, np.array(["t", "u"]), y, ["7", "8"], [1], beside)
        assert (name, text, asked) == ("8", "u", [("u", ["h"])])
        return known, column

    options = {"classes": np.array(list("abc")), "multilabel": True}
    probable, scored, y = Logistic(1.0, **options), Hinge(1.0, 1.0, **options), np.zeros((2, 3))
    y[1] = [1, 0, np.nan]
    assert explained(probable, y, np.array([0.1, 0.6, 0.99])) == ("a", 0)
    assert explained(probable, y, np.array([0.4, 0.8, 0.99])) == ("a", 1)
    assert explained(scored, y, np.array([-0.3, 0.6, 9.0])) == ("a", 1)
    assert explained(probable, y, np.array([0.6, 0.4, 0.99])) == ("a", None)
    assert explained(probable, 0 * y[:, [0, 1, 1]], np.array([0.1, 0.6, 0.2])) == ("no label", 1)
    assert explained(Logistic(1.0, classes=np.array(list("abc"))), np.array(["a", "b"]), np.eye(3)[0]) == ("b", None)
    assert explained(probable, None, np.array([0.1, 0.6, 0.99])) == (None, None)


def test_which_rows_are_explained(monkeypatch):
    """All of a name; else as many as are asked for, with all that is beside the texts."""
    asked = []

    def rows(model, texts, *more, **options):
        asked.append((*more, options))
        return {"rows": np.array([4, 2])}

    monkeypatch.setattr(explain_command, "unsure_rows", rows)
    monkeypatch.setattr(explain_command, "surprising_rows", rows)
    given = np.array(["", "", ""]), "y", ["a", "b", "a"]
    assert choose_rows(None, *given, "a", None, 3, {}, "d.csv") == [0, 2]
    for where in ("unsure", "surprising", "wrong"):
        assert choose_rows(None, *given, None, where, 7, {"groups": "g"}, "d.csv") == [4, 2]
    groups = {"groups": "g"}
    assert asked == [(7, groups), ("y", 7, groups | {"wrong": False}), ("y", 7, groups | {"wrong": True})]


def test_what_is_given_beside_one_text_and_beside_a_table(monkeypatch):
    model = SimpleNamespace()
    assert given_beside(model, None, "2.5", "x") == {"groups": ["x"], "exposure": [2.5]}
    assert given_beside(model, None, None, None) == {}
    with pytest.raises(ValueError, match="--exposure is a number beside one text, got 'many'"):
        given_beside(model, None, "many", None)
    for name in ("load", "need_response", "row_names", "Table"):
        monkeypatch.setattr(explain_command, name, lambda *given: SimpleNamespace(texts=lambda text: np.array([text])))
    monkeypatch.setattr(explain_command, "read_beside", lambda estimator, model, table, *names: names)
    monkeypatch.setattr(explain_command, "explain_rows", lambda *given: [("7", "a text", "b", 2, "why")])
    shown = []
    monkeypatch.setattr(explain_command, "show_explanation", lambda *given: shown.append(given[1:]))
    monkeypatch.setattr(explain_command, "known_y", lambda model, table, asked: asked)
    found = []
    monkeypatch.setattr(explain_command, "choose_rows", lambda *given: found.append(given) or [])
    given = {"text": "body", "where": "wrong", "most": 7, "event": "died", "gold": "expert", "separator": "|"}
    explain_command.explain("m", "d.csv", **given, label="l", covariate=["c"], exposure="e", group="g")
    _, _, y, _, row, where, most, beside, data = found[0]
    assert y == Asked("l", "|", event="died", gold="expert") and beside == ("e", ["c"], None, "g")
    assert (row, where, most, data) == (None, "wrong", 7, "d.csv") and shown == [("a text", "why", "b", 2)]


def test_the_intercept_does_not_shrink_the_bars_of_words():
    words = np.array([[0.004], [-0.002]])
    found = Explanation(
        ["stars"], ["good", "bad"], np.ones(2), {"topics": words}, words - 0.001, words + 0.001,
        {"intercept": np.array([3.0])}, np.array([3.002]), np.array([3.002]), (np.array([2.9]), np.array([3.1])),
        ["stars"], np.zeros((1, 1)), np.ones(1), ["0"],
    )  # fmt: skip
    console = Console(width=80, file=io.StringIO())
    console.print(explanation_table(found, None, 0))
    lines = {line.split()[0]: line for line in console.file.getvalue().splitlines() if line.strip()}
    assert "+0.00400" in lines["good"] and "+0.00300 .. +0.00500" in lines["good"]
    assert lines["good"].count("█") == HALF and lines["bad"].count("█") == HALF // 2
    assert "█" not in lines["intercept"] and "█" not in lines["total"]


def test_the_weight_of_a_topic_is_that_for_the_class_that_it_pulls_to():
    eta = np.array([[6.0, 0, 0, -3], [0, 6, 0, 0], [0, 0, 6, 2]])
    corpus = make_corpus(n_docs=400, n_topics=4, eta=eta, random_state=0)
    model = SLDAClassifier(4, n_chains=2, burn_in=20, n_draws=10, words=False, random_state=0).fit(corpus.X, corpus.y)
    rows = describe_topics(model.posterior_, np.arange(corpus.X.shape[1]).astype(str))
    pulled = [row for row in rows if row["class"] is not None]
    assert pulled
    for row in pulled:
        place = list(model.classes_).index(row["class"])
        assert row["weight"] == pytest.approx(model.coef_[place, row["topic"]])
        assert row["turned"] == (row["weight"] < 0)
