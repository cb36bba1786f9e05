"""The command, as a person would use it."""

import csv
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import supertopic
from supertopic import SLDAClassifier
from supertopic.command.cli import main
from supertopic.datasets import make_corpus

ROWS = [
    ("goal match team win", "sport"),
    ("vote law senate party", "politics"),
    ('a quoted "text", with\nnewline: match goal', "sport"),
    ("senate café vote", "politics"),
] * 6
FAST = ["--topics", "3", "--burn-in", "10", "--draws", "5", "--min-df", "1"]


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process; returns what it printed: stdout, or stderr where it is to fail."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert (stop.value.code or 0) == code, captured.err
        return captured.out if code == 0 else captured.err

    return run


def write(folder, kind, rows=ROWS):
    path = folder / f"data.{kind}"
    if kind in ("csv", "tsv"):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if kind == "csv" else "\t")
            writer.writerows([("text", "label"), *rows])
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in rows))
    else:
        pq.write_table(pa.table({"text": [t for t, _ in rows], "label": [y for _, y in rows]}), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_fit_predict_topics(command, tmp_path, kind):
    data, model = write(tmp_path, kind), tmp_path / "my.model"
    assert "pulls to" in command("fit", data, "--text", "text", "--label", "label", "-o", model, *FAST)
    rows = list(csv.DictReader(command("predict", model, data, "--text", "text").splitlines()))
    assert [row["prediction"] for row in rows] == [label for _, label in ROWS]
    assert all(abs(float(row["p(sport)"]) + float(row["p(politics)"]) - 1) < 1e-5 for row in rows)
    topics = json.loads(command("topics", model, "--json", "--words", 3))
    assert len(topics) == 3 and all(len(topic["words"]) == 3 for topic in topics)
    lines = command("predict", model, data, "--text", "text", "--json").splitlines()
    assert json.loads(lines[0])["prediction"] == "sport"
    command("predict", model, data, "--text", "text", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("prediction,p(politics),p(sport)")


def test_whole_numbers_empty_cells_and_a_held_out_part(command, tmp_path):
    rows = [(text, {"sport": "1", "politics": "0"}[label] if i % 5 else "") for i, (text, label) in enumerate(ROWS)]
    data, model = write(tmp_path, "csv", rows), tmp_path / "m"
    arguments = ["fit", data, "--text", "text", "--label", "label", "-o", model, "--hold-out", "0.25", "--json", *FAST]
    summary = json.loads(command(*arguments))
    assert summary["classes"] == [0, 1] and summary["unlabelled"] == 5
    assert 0 <= summary["held_out_accuracy"] <= 1


def test_the_same_seed_writes_the_same_file_but_for_the_seconds(command, tmp_path):
    data = write(tmp_path, "csv")
    for name in ("a", "b"):
        command("fit", data, "--text", "text", "--label", "label", "-o", tmp_path / name, *FAST)
    a, b = (supertopic.load(tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(a[-1].coef_draws_, b[-1].coef_draws_)


RESPONSES = {  # cells for the four kinds of documents above, the kind that auto takes them for, and why
    "labels": (["ball;game", "law", "ball", "law;state"], "labels", "separator"),
    "lists": ([["ball", "game"], ["law"], ["ball"], []], "labels", "lists"),
    "rating": (["4.5", "1.0", "4.0", "1.5"], "rating", "not all of them whole"),
    "few": (["5", "1", "4", "2"], "class", "4 different values"),
}


@pytest.mark.parametrize("case", RESPONSES)
def test_auto_says_what_it_chose(command, tmp_path, case):
    cells, kind, why = RESPONSES[case]
    rows = [(text, cells[i % 4]) for i, (text, _) in enumerate(ROWS)]
    data, model = write(tmp_path, "jsonl" if case == "lists" else "csv", rows), tmp_path / "m"
    fit = ["fit", data, "--text", "text", "--label", "label", "-o", model, "--hold-out", "0.2", *FAST]
    summary = json.loads(command(*fit, "--json"))
    assert summary["response"] == kind and why in summary["why"]
    lines = command("predict", model, data, "--text", "text").splitlines()
    first = next(csv.DictReader(lines))
    if kind == "labels":
        assert summary["classes"][0] == "ball" and "p(ball)" in first and "held_out_micro_f1" in summary
        assert set(first["prediction"].split(";")) <= {"", *summary["classes"]}
        hinge = json.loads(command(*fit, "--json", "--loss", "hinge"))
        assert hinge["estimator"] == "MedLDAClassifier"
        assert "score(ball)" in command("predict", model, data, "--text", "text").splitlines()[0]
    elif kind == "rating":
        assert 1 < float(first["prediction"]) < 5 and float(first["std"]) > 0 and "held_out_r2" in summary
    assert "weight" in command("topics", model)


def test_counts_with_exposure_weights_and_covariates(command, tmp_path):
    rng = np.random.default_rng(0)
    with open(tmp_path / "data.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "hours", "trust", "age"])
        for i, (text, _) in enumerate(ROWS * 3):
            writer.writerow([text, rng.poisson(40 * (1 + i % 2)), 1 + i % 3, 1, 20 + i])
    data, model = tmp_path / "data.csv", tmp_path / "m"
    more = ["--exposure", "hours", "--covariate", "age"]
    found = command(
        "fit", data, "--text", "text", "--label", "label", "-o", model, "--weight", "trust", "--c", "4", *more, *FAST
    )
    assert "SLDACountRegressor" in found and "age" in found
    rows = list(csv.DictReader(command("predict", model, data, "--text", "text", "--exposure", "hours").splitlines()))
    assert all(float(row["lower"]) <= float(row["prediction"]) <= float(row["upper"]) for row in rows)
    predict = ["predict", model, write(tmp_path, "tsv"), "--text", "text"]
    assert "no column 'age'" in command(*predict, "--exposure", "text", code=1)
    assert "fitted with an exposure" in " ".join(command(*predict, code=1).split())
    fit = ["fit", data, "--text", "text", "--label", "label", "-o", model]
    assert "--loss hinge does not go" in command(*fit, "--loss", "hinge", code=1)
    assert "--exposure does not go" in command(*fit, "--response", "rating", "--exposure", "hours", code=1)
    assert "no number" in command(
        "fit", data, "--text", "label", "--label", "text", "-o", model, "--response", "count", code=1
    )


def test_bad_input_ends_in_one_line(command, tmp_path):
    good = write(tmp_path, "csv")
    fit = ["--text", "text", "--label", "label", "-o", tmp_path / "m"]
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "latin.csv").write_bytes("text,label\ncafé,a\nthé,b\n".encode("latin-1"))
    (tmp_path / "ragged.csv").write_text("text,label\na,b\nc\n")
    (tmp_path / "broken.jsonl").write_text('{"text": "a", "label": 1}\n{"text": \n')
    (tmp_path / "broken.parquet").write_text("no")
    (tmp_path / "data.xlsx").write_text("no")
    (tmp_path / "one.csv").write_text("text,label\nword here,a\nword there,a\n")
    (tmp_path / "stop.csv").write_text("text,label\nthe,a\nand,b\n")
    for path, message in (
        ("absent.csv", "no file"), ("empty.csv", "is empty"), ("latin.csv", "UTF-8"), ("ragged.csv", "columns"),
        ("broken.jsonl", "Cannot read"), ("broken.parquet", "Cannot read"), ("data.xlsx", "format"),
        ("one.csv", "one class"), ("stop.csv", "stop words|vocabulary"),
    ):  # fmt: skip
        text = command("fit", tmp_path / path, *fit, "--min-df", 1, code=1)
        assert any(part in text for part in message.split("|")), text
    assert "no column 'body'" in command("fit", good, "--text", "body", "--label", "label", "-o", "m", code=1)
    assert "c must be" in command("fit", good, *fit, "--c", "-1", code=1)
    assert "no model" in command("predict", tmp_path / "m", good, "--text", "text", code=1)
    assert "not a supertopic model" in command("topics", good, code=1)
    assert "Missing option" in command("fit", good, code=2)
    assert not (tmp_path / "m").exists()


def test_help_teaches(command):
    text = command("--help")
    assert all(word in text for word in ("demo", "fit", "predict", "topics"))
    assert "supertopic fit" in command("fit", "--help")


def test_demo_beats_lda(command):
    found = json.loads(command("demo", "--json"))
    ours, lda, _ = (row["accuracy"] for row in found["results"])
    assert ours > lda + 0.02 and ours > 0.9  # the corpus differs from one SciPy to the next
    assert len(found["topics"]) == 30


def test_control_c(tmp_path):
    data, checkpoint = write(tmp_path, "csv"), tmp_path / "run.ckpt"
    code = "from supertopic.command.cli import main; main()"
    arguments = ["fit", data, "--text", "text", "--label", "label", "-o", tmp_path / "m", "--burn-in", "1000000"]
    command = [sys.executable, "-c", code, *map(str, arguments), "--checkpoint", str(checkpoint)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not checkpoint.exists():
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in stderr
    assert "goes on from" in stderr.replace("\n", " ") and not (tmp_path / "m").exists()


def test_a_place_for_the_model_is_looked_for_first(command, tmp_path, monkeypatch):
    fit = ["fit", write(tmp_path, "csv"), "--text", "text", "--label", "label", *FAST]
    monkeypatch.setattr(SLDAClassifier, "fit", None)  # it does not come to that
    assert "no folder" in command(*fit, "-o", tmp_path / "absent" / "m", code=1)
    assert "a folder; give the name" in " ".join(command(*fit, "-o", tmp_path, code=1).split())


def test_a_model_whose_place_has_gone_is_written_elsewhere(command, tmp_path, monkeypatch):
    data, folder = write(tmp_path, "csv"), tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real = SLDAClassifier.fit

    def fit(self, *arguments, **more):
        folder.rmdir()
        return real(self, *arguments, **more)

    monkeypatch.setattr(SLDAClassifier, "fit", fit)
    text = command("fit", data, "--text", "text", "--label", "label", "-o", folder / "m", *FAST, code=1)
    path = Path("".join(text.split()).rpartition("itisin")[2].rstrip("."))
    assert "could not be written" in text and supertopic.load(path)


def test_na_is_unknown(command, tmp_path):
    rows = [(text, "NA" if i == 0 else label) for i, (text, label) in enumerate(ROWS)]
    data = write(tmp_path, "csv", rows)
    fit = ["fit", data, "--text", "text", "--label", "label", "-o", tmp_path / "m", *FAST, "--json"]
    found = json.loads(command(*fit))
    assert found["classes"] == ["politics", "sport"] and found["unlabelled"] == 1
    assert json.loads(command(*fit, "--missing", "none"))["classes"] == ["NA", "politics", "sport"]
    assert "one class only" in command(*fit, "--missing", "NA", "--missing", "sport", code=1)


def test_held_out_documents_follow_the_seed(command, tmp_path, monkeypatch):
    fit = ["fit", write(tmp_path, "csv"), "--text", "text", "--label", "label", "-o", tmp_path / "m", *FAST]
    seen, real = [], SLDAClassifier.fit

    def fit_and_see(self, X, y, **more):
        seen.append(X.sum())
        return real(self, X, y, **more)

    monkeypatch.setattr(SLDAClassifier, "fit", fit_and_see)
    for seed in (0, 0, 1, 2, 3):
        command(*fit, "--hold-out", "0.25", "--seed", seed, "--json")
    assert seen[0] == seen[1] and len(set(seen)) > 1


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    """400 short texts: what two planted topics say of a class, and a coin."""
    corpus = make_corpus(n_docs=400, n_words=60, n_topics=3, eta=[-6.0, 0.0, 6.0], random_state=0)
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("tickets") / "tickets.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "team", "coin"])
        for row, y in zip(corpus.X.toarray(), corpus.y, strict=True):
            words = [f"word{chr(97 + w % 26)}{chr(97 + w // 26)}" for w in np.repeat(np.arange(60), row.astype(int))]
            writer.writerow([" ".join(words), "ab"[y], "heads" if rng.random() < 0.5 else "tails"])
    return path


def test_held_out_documents_are_judged_beside_the_base_rate(command, tickets, tmp_path):
    """The figures by their definitions, from the predictions; classes keep their shares."""
    fit = ["fit", tickets, "--text", "text", "-o", tmp_path / "m", "--hold-out", "0.25", "--topics", "3"]
    found = json.loads(command(*fit, "--label", "team", "--json"))
    assert found["held_out_documents"] == 100 and found["held_out_accuracy"] > found["base_rate_accuracy"] + 0.1
    lower, upper = found["interval"]
    assert lower < found["held_out_accuracy"] < upper and upper - lower < 0.2
    assert found["held_out_log_loss"] < found["base_rate_log_loss"] - 0.1
    rows = list(csv.DictReader(tickets.read_text(encoding="utf-8").splitlines()))
    share = np.mean([row["team"] == "b" for row in rows])
    counts = [row["documents"] for row in found["held_out_classes"]]
    np.testing.assert_allclose(counts, [100 * (1 - share), 100 * share], atol=1)
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert found["base_rate_log_loss"] == pytest.approx(entropy, abs=0.01)
    shown = command(*fit, "--label", "team")
    assert "by class" in shown and "that no topic has seen" in shown
    predicted = list(csv.DictReader(command("predict", tmp_path / "m", tickets, "--text", "text").splitlines()))
    right = np.mean([a["prediction"] == b["team"] for a, b in zip(predicted, rows, strict=True)])
    assert right == pytest.approx(found["held_out_accuracy"], abs=0.1)


def test_a_coin_is_told_to_be_one(command, tickets, tmp_path):
    fit = ["fit", tickets, "--text", "text", "--label", "coin", "-o", tmp_path / "m", "--topics", "10"]
    topics = json.loads(command(*fit, "--json", "--hidden", "0.25"))["topics"]
    assert sum(topic["class"] is not None for topic in topics) <= 2
    run = subprocess.run(
        [sys.executable, "-c", "from supertopic.command.cli import main; main()", *map(str, fit)],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0 and "Warning: " in run.stderr and "better" in run.stderr
    assert "cli.py" not in run.stderr
    assert "hidden must be 'auto' or a share" in command(*fit, "--hidden", "2", code=1)
    assert "No document was hidden" in command(*fit, "--hidden", "0")
