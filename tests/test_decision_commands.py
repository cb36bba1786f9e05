"""Sets, decisions, drift and labels on the command line."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from test_cli import command, long_command  # noqa: F401
from test_drift import QUICK, make_texts

import supertopic
from supertopic import LDA, SLDAClassifier, SLDARegressor

pytestmark = pytest.mark.usefixtures("short_fits")


def write(path, columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model of classes, one of labels and one of ratings, and tables."""
    folder = tmp_path_factory.mktemp("decisions")
    texts, y = make_texts(300, 0)
    supertopic.save(SLDAClassifier(**QUICK, random_state=0).fit(texts, y), folder / "m")
    labels = np.column_stack([y == "sport", y == "politics"]).astype(int)
    supertopic.save(SLDAClassifier(**QUICK, random_state=0).fit(texts, labels), folder / "labels")
    supertopic.save(SLDARegressor(**QUICK, random_state=0).fit(texts, (y == "sport") * 1.0), folder / "rating")
    supertopic.save(LDA(3, n_chains=1, burn_in=4, n_draws=3, random_state=0).fit(texts), folder / "lda")
    texts, y = make_texts(40, 1)
    write(folder / "d.csv", {"text": texts, "label": y})
    write(folder / "food.csv", {"text": make_texts(40, 2, ["food"])[0], "label": ["food"] * 40})
    write(folder / "few.csv", {"text": texts[:5], "label": y[:5]})
    return folder


def rows_of(text):
    return list(csv.DictReader(text.splitlines()))


def test_ratings_have_guaranteed_intervals(command, place):  # noqa: F811
    rows = rows_of(command("predict", place / "rating", place / "d.csv", "--text", "text", "--set", "0.8"))
    model, texts = supertopic.load(place / "rating"), [row["text"] for row in csv.DictReader((place / "d.csv").open())]
    lower, upper = model.predict_interval(texts, 0.8, conformal=True)
    assert list(rows[0])[:3] == ["prediction", "guaranteed lower", "guaranteed upper"]
    np.testing.assert_allclose([float(row["guaranteed lower"]) for row in rows], lower)
    np.testing.assert_allclose([float(row["guaranteed upper"]) for row in rows], upper)


def test_sets_and_decisions_are_columns(command, place):  # noqa: F811
    more = place / "d.csv", "--text", "text"
    rows = rows_of(
        command("predict", place / "m", place / "d.csv", "--text", "text", "--set", "0.8", "--max-error", "0.2")
    )
    assert list(rows[0])[:3] == ["prediction", "set", "decision"]
    assert all(row["prediction"] in row["set"].split(";") for row in rows)
    assert {row["decision"] for row in rows} <= {"sport", "politics", ""}
    lines = command("predict", place / "m", *more, "--set", "0.8", "--json").splitlines()
    assert isinstance(json.loads(lines[0])["set"], list)
    lines = command("predict", place / "labels", *more, "--max-error", "0.2", "--json").splitlines()
    assert isinstance(json.loads(lines[0])["decision"], list) and isinstance(json.loads(lines[0])["ask"], list)
    message = command("predict", place / "rating", place / "d.csv", "--text", "text", "--max-error", "0.8", code=1)
    assert "--max-error needs classes or labels" in " ".join(message.split())
    message = command("predict", place / "m", place / "d.csv", "--text", "text", "--set", "1.8", code=1)
    assert "level must be between" in message


def test_a_line_says_whether_documents_have_changed(monkeypatch, place, capsys):
    from supertopic.command.cli import main

    def errors(*arguments):
        monkeypatch.setattr("sys.argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        return " ".join(capsys.readouterr().err.split())

    assert "No drift found in 40 documents" in errors("predict", place / "m", place / "d.csv", "--text", "text")
    found = errors("predict", place / "m", place / "food.csv", "--text", "text")
    assert "Drift in 40 documents: unknown words" in found and "Words that stand out" in found
    assert "rift" not in errors("predict", place / "m", place / "few.csv", "--text", "text")
    more = "--text", "text", "--label", "label", "--skip-unknown-classes", "-o", place / "m2"
    assert "Drift in 40 documents" in errors("update", place / "m", place / "food.csv", *more)
    more = "--text", "text", "--label", "label", "-o", place / "m2"
    texts, y = make_texts(60, 8)
    other = write(place / "wrong.csv", {"text": texts, "label": np.where(y == "sport", "politics", "sport")})
    found = errors("update", place / "m", other, *more)  # words are as usual, labels are not
    assert "Drift in 60 documents: loss" in found and "unknown words" not in found
    assert "new classes 1" in errors("update", place / "m", place / "food.csv", *more, "--add-classes")


def test_drift_is_a_table(command, place):  # noqa: F811
    shown = command("drift", place / "m", place / "d.csv", "--text", "text", "--label", "label")
    assert "predicted less observed share" in shown and "No drift found" in shown
    found = json.loads(
        command("drift", place / "m", place / "food.csv", "--text", "text", "--label", "label", "--json")
    )
    assert {"unknown words", "new classes"} <= set(found["alarms"]) and found["figures"]["new classes"]["value"] == 1.0
    assert set(found["figures"]["unknown words"]) == {"value", "usual", "limit", "p"} and len(found["theme"]) > 5
    assert "unknown words" in command("drift", place / "labels", place / "d.csv", "--text", "text")
    assert "pass reference=" in command("drift", place / "lda", place / "d.csv", "--text", "text", code=1)


def test_documents_to_label(command, place, tmp_path):  # noqa: F811
    rows = rows_of(command("next-to-label", place / "m", place / "d.csv", "--text", "text", "-n", 4))
    assert len(rows) == 4 and list(rows[0]) == ["row", "text", "predicted", "uncertainty", "score"]
    more = "--text", "text", "-n", 4, "--id", "text"
    named = rows_of(command("next-to-label", place / "m", place / "d.csv", *more))
    assert [row["row"] for row in named] == [row["text"] for row in rows]
    command("next-to-label", place / "m", place / "d.csv", "--text", "text", "--json", "-o", tmp_path / "l.jsonl")
    lines = (tmp_path / "l.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 20 and 1 <= int(json.loads(lines[0])["row"]) <= 240
    assert "no response" in command("next-to-label", place / "lda", place / "d.csv", "--text", "text", code=1)


def test_labels_that_are_wrong(command, place, tmp_path):  # noqa: F811
    texts, y = make_texts(150, 3)
    given = y.copy()
    given[:8] = np.where(y[:8] == "sport", "politics", "sport")
    data = write(tmp_path / "d.csv", {"text": texts, "label": given})
    more = "--text", "text", "--label", "label", "-n", 8
    rows = rows_of(command("check-labels", place / "m", data, *more))
    assert sum(int(row["row"]) <= 8 for row in rows) >= 7 and ";" in rows[0]["words"]
    assert all(texts[int(row["row"]) - 1] == row["text"] for row in rows)
    assert list(rows[0]) == ["row", "text", "given", "suggested", "p_wrong", "score", "words"]


def test_columns_of_a_table_beside_the_texts(command, place, tmp_path):  # noqa: F811
    texts, y = make_texts(90, 5)
    data = write(tmp_path / "d.csv", {"text": texts, "label": y, "who": np.where(np.arange(90) % 3, "x", "y")})
    more = data, "--text", "text", "--label", "label"
    command("fit", *more, "--covariate", "who", "--chains", 1, "--topics", 2, "--burn-in", 5, "-o", tmp_path / "m")
    assert "predicted less observed share" in command("drift", tmp_path / "m", *more)
    assert len(rows_of(command("check-labels", tmp_path / "m", *more, "-n", 3))) == 3
    assert len(rows_of(command("next-to-label", tmp_path / "m", data, "--text", "text", "-n", 2))) == 2


def test_a_table_without_rows(command, place, tmp_path):  # noqa: F811
    """It has no predictions, one of many files may be like that, and nothing can be learned from it."""
    parts = tmp_path / "parts"
    parts.mkdir()
    few = write(parts / "1.csv", {"text": make_texts(5, 7)[0], "label": ["sport"] * 5})
    empty = write(parts / "2.csv", {"text": [], "label": []})
    model, more = place / "m", (empty, "--text", "text")
    assert command("predict", model, *more, "--set", "0.8", "--max-error", "0.2").startswith("prediction,set,decision")
    command("predict", model, parts, "--text", "text", "-o", tmp_path / "found")
    assert pq.read_table(tmp_path / "found" / "2.parquet").num_rows == 0 and few.exists()
    assert rows_of(command("next-to-label", model, *more)) == []
    assert "No drift found in 0 documents" in command("drift", model, *more)
    for arguments in (("fit", *more, "-o", tmp_path / "x"), ("check", *more), ("choose", *more),
                      ("update", model, *more, "-o", tmp_path / "x"), ("check-labels", model, *more)):  # fmt: skip
        message = command(*arguments, "--label", "label", code=1)
        assert "2.csv has no rows." in " ".join(message.split()), arguments


def test_labels_are_checked_under_their_names(command, place, tmp_path):  # noqa: F811
    texts, y = make_texts(90, 6)
    data = write(tmp_path / "d.csv", {"text": texts, "tags": [f"{name};long" for name in y]})
    more = data, "--text", "text", "--label", "tags"
    command("fit", *more, "--chains", 1, "--topics", 2, "--burn-in", 5, "-o", tmp_path / "m")
    found = command("check-labels", tmp_path / "m", *more, "-n", 4)
    assert {row["label"] for row in rows_of(found)} <= {"sport", "politics", "long"}
