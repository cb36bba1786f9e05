"""The command, as a person would use it."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import supertopic
from processes import Running
from supertopic import SLDAClassifier
from supertopic.command.cells import guess
from supertopic.command.cli import main
from supertopic.command.kinds import KINDS, kind_of
from supertopic.datasets import make_corpus

ROWS = [
    ("goal match team win", "sport"),
    ("vote law senate party", "politics"),
    ('a quoted "text", with\nnewline: match goal', "sport"),
    ("senate café vote", "politics"),
] * 6
FAST = ["--topics", "3", "--burn-in", "10", "--draws", "5", "--chains", "1", "--min-df", "1"]


@pytest.fixture
def command(long_command, short_regressions):
    """The same, with short regressions in fits."""
    return long_command


@pytest.fixture
def long_command(monkeypatch, capsys):
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
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith("prediction,p(politics),p(sport)")


def test_report(command, tmp_path):
    data, model, page = write(tmp_path, "csv"), tmp_path / "my.model", tmp_path / "page.html"
    more = "--text", "text", "--label", "label"
    command("fit", data, *more, "-o", model, *FAST, "--test-size", "0.25", "--report", page)
    assert "that the model has not learned from" in page.read_text(encoding="utf-8")
    assert "logistic regression on words and pairs" in page.read_text(encoding="utf-8")
    command("fit", data, *more, "-o", model, *FAST, "--report", page)
    assert "these figures are too good" in page.read_text(encoding="utf-8")
    command("report", model, data, *more, "-o", tmp_path / "other.html", "--title", "A & B", "--by", "label")
    other = (tmp_path / "other.html").read_text(encoding="utf-8")
    assert "A &amp; B" in other and "Topics by group" in other and "Predicts the “label” correctly for" in other
    assert "give --report FILE, too" in command("fit", data, *more, "-o", model, *FAST, "--by", "label", code=1)
    command("report", model, data, *more, "--other", model, "-o", page)
    assert "<h2>Two models</h2>" in page.read_text(encoding="utf-8")
    command("report", model, data, "--text", "text", "-o", page)
    assert "Where it is wrong" not in page.read_text(encoding="utf-8")
    assert "has no column 'nothing'" in command("report", model, data, "--text", "nothing", "-o", page, code=1)


def test_a_class_of_the_test_documents_alone_is_wrong_and_not_on_the_page(command, tmp_path):
    data, model, page = write(tmp_path, "csv", [*ROWS, ("goal senate", "rare")]), tmp_path / "m", tmp_path / "p.html"
    fit = ["fit", data, "--text", "text", "--label", "label", "-o", model, *FAST, "--test-size", "0.6", "--json"]
    for seed in range(6):  # until the split puts the document there
        found = json.loads(command(*fit, "--seed", seed, "--report", page))
        if "rare" not in found["classes"]:
            break
    assert found["classes"] == ["politics", "sport"] and found["test_accuracy"] < 1
    assert sum(row["documents"] for row in found["test_classes"]) == found["test_documents"] - 1
    assert "Where it is wrong" in page.read_text(encoding="utf-8")


def test_many_files(command, tmp_path):
    """The model of one table, and predictions file by file, which go on where they stopped."""
    data, parts = write(tmp_path, "csv"), tmp_path / "parts"
    parts.mkdir()
    for i in range(3):
        write(tmp_path, "parquet", ROWS[8 * i : 8 * i + 8]).rename(parts / f"{i}.parquet")
    for path, model in ((data, "one"), (parts / "*.parquet", "many"), (parts, "folder")):
        command("fit", path, "--text", "text", "--label", "label", "-o", tmp_path / model, *FAST)
    one = command("predict", tmp_path / "one", data, "--text", "text")
    for model in ("many", "folder"):
        assert command("predict", tmp_path / model, data, "--text", "text") == one
    predict = "predict", tmp_path / "many", parts / "*.parquet", "--text", "text", "--keep", "label"
    assert "names the folder for their predictions" in command(*predict, code=1)
    command(*predict, "-o", tmp_path / "found")
    table = pq.read_table(tmp_path / "found" / "1.parquet")
    assert table.column_names == ["label", "prediction", "p(politics)", "p(sport)"]
    assert table["prediction"].to_pylist() == [label for _, label in ROWS[8:16]]
    (tmp_path / "found" / "0.parquet").unlink()
    (tmp_path / "found" / "1.parquet").write_bytes(b"mine")
    command(*predict, "-o", tmp_path / "found")
    assert pq.read_table(tmp_path / "found" / "0.parquet").num_rows == 8
    assert (tmp_path / "found" / "1.parquet").read_bytes() == b"mine"
    wrong = "fit", parts, "--text", "text", "--label", "label", "-o", tmp_path / "m"
    assert "leave some files out of the pattern" in command(*wrong, "--test-size", "0.2", code=1)
    assert "There is no file" in command("fit", parts / "x*.csv", *wrong[2:], code=1)
    assert "engine must be 'threads', 'ray' or 'ray:ADDRESS'" in command(*wrong, "--engine", "dask", code=1)


def test_whole_numbers_empty_cells_and_a_held_out_part(command, tmp_path):
    rows = [(text, {"sport": "1", "politics": "0"}[label] if i % 5 else "") for i, (text, label) in enumerate(ROWS)]
    data, model = write(tmp_path, "csv", rows), tmp_path / "m"
    arguments = ["fit", data, "--text", "text", "--label", "label", "-o", model, "--test-size", "0.25", "--json", *FAST]
    summary = json.loads(command(*arguments))
    assert summary["classes"] == [0, 1] and summary["unlabelled"] == 5
    assert 0 <= summary["test_accuracy"] <= 1


def test_the_same_seed_writes_the_same_file_but_for_the_seconds(command, tmp_path):
    data = write(tmp_path, "csv")
    for name in ("a", "b"):
        command("fit", data, "--text", "text", "--label", "label", "-o", tmp_path / name, *FAST)
    a, b = (supertopic.load(tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(a.coef_draws_, b.coef_draws_)


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
    fit = ["fit", data, "--text", "text", "--label", "label", "-o", model, "--test-size", "0.2", *FAST]
    summary = json.loads(command(*fit, "--json"))
    assert summary["response"] == kind and why in summary["why"]
    lines = command("predict", model, data, "--text", "text").splitlines()
    first = next(csv.DictReader(lines))
    if kind == "labels":
        assert summary["classes"][0] == "ball" and "p(ball)" in first and "test_micro_f1" in summary
        assert set(first["prediction"].split(";")) <= {"", *summary["classes"]}
        hinge = json.loads(command(*fit, "--json", "--loss", "hinge"))
        assert hinge["estimator"] == "MedLDAClassifier"
        assert "score(ball)" in command("predict", model, data, "--text", "text").splitlines()[0]
    elif kind == "rating":
        assert 1 < float(first["prediction"]) < 5 and float(first["std"]) > 0 and "test_r2" in summary
    assert "weight" in command("topics", model)


def test_counts_with_exposure_weights_and_covariates(command, tmp_path):
    rng = np.random.default_rng(0)
    with open(tmp_path / "data.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "hours", "importance", "age"])
        for i, (text, _) in enumerate(ROWS * 3):
            writer.writerow([text, rng.poisson(40 * (1 + i % 2)), 1 + i % 3, 1, 20 + i])
    data, model = tmp_path / "data.csv", tmp_path / "m"
    more = ["--exposure", "hours", "--covariate", "age"]
    found = command(
        "fit",
        data,
        "--text",
        "text",
        "--label",
        "label",
        "-o",
        model,
        "--weight",
        "importance",
        "--c",
        "4",
        *more,
        *FAST,
    )
    assert "SLDACountRegressor" in found and "age" in found
    rows = list(csv.DictReader(command("predict", model, data, "--text", "text", "--exposure", "hours").splitlines()))
    assert all(float(row["lower"]) <= float(row["prediction"]) <= float(row["upper"]) for row in rows)
    predict = ["predict", model, write(tmp_path, "tsv"), "--text", "text"]
    assert "no column 'age'" in command(*predict, "--exposure", "text", code=1)
    assert "fitted with an exposure" in " ".join(command(*predict, code=1).split())
    fit = ["fit", data, "--text", "text", "--label", "label", "-o", model]
    assert "--loss hinge cannot be used" in command(*fit, "--loss", "hinge", code=1)
    assert "--exposure cannot be used" in command(*fit, "--response", "rating", "--exposure", "hours", code=1)
    assert "not a number" in command(
        "fit", data, "--text", "label", "--label", "text", "-o", model, "--response", "count", code=1
    )


def test_bad_input_ends_in_one_line(command, tmp_path):
    good = write(tmp_path, "csv")
    fit = ["--text", "text", "--label", "label", "-o", tmp_path / "m"]
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "ragged.csv").write_text("text,label\na,b\nc\n")
    (tmp_path / "broken.jsonl").write_text('{"text": "a", "label": 1}\n{"text": \n')
    (tmp_path / "broken.parquet").write_text("no")
    (tmp_path / "data.doc").write_text("no")
    (tmp_path / "one.csv").write_text("text,label\nword here,a\nword there,a\n")
    (tmp_path / "stop.csv").write_text("text,label\nthe,a\nand,b\n")
    for path, message in (
        ("absent.csv", "no file"), ("empty.csv", "is empty"), ("ragged.csv", "columns"),
        ("broken.jsonl", "Cannot read"), ("broken.parquet", "Cannot read"), ("data.doc", "format"),
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


SAYS_WHEN_IT_SAMPLES = """
import sys
from supertopic.command.cli import main
from supertopic.sampling.chain import Chain

step, n_steps = Chain.step, 0

def count_steps(chain):
    global n_steps
    step(chain)
    n_steps += 1
    if n_steps == 50:
        Chain.step = step
        print("a chain runs", file=sys.stderr, flush=True)

Chain.step = count_steps
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_control_c(tmp_path):
    data, checkpoint = write(tmp_path, "csv"), tmp_path / "run.ckpt"
    arguments = ["fit", data, "--text", "text", "--label", "label", "-o", tmp_path / "m", "--burn-in", "1000000"]
    process = Running(SAYS_WHEN_IT_SAMPLES, *arguments, "--checkpoint", checkpoint)
    process.await_line("a chain runs")
    process.send_signal(signal.SIGINT)
    status, _, stderr = process.end()
    assert status == 130 and "Traceback" not in stderr
    assert "resumes from" in stderr.replace("\n", " ") and not (tmp_path / "m").exists()


def test_the_place_of_the_model_is_checked_first(command, tmp_path, monkeypatch):
    fit = ["fit", write(tmp_path, "csv"), "--text", "text", "--label", "label", *FAST]
    monkeypatch.setattr(SLDAClassifier, "fit", None)  # it does not come to that
    assert "no folder" in command(*fit, "-o", tmp_path / "absent" / "m", code=1)
    assert "a folder; give the name" in " ".join(command(*fit, "-o", tmp_path, code=1).split())


def test_a_model_whose_folder_has_gone_is_written_elsewhere(command, tmp_path, monkeypatch):
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
        command(*fit, "--test-size", "0.25", "--seed", seed, "--json")
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


def test_held_out_documents_are_evaluated_beside_the_base_rate(command, tickets, tmp_path):
    """The figures by their definitions, from the predictions; classes keep their shares."""
    fit = ["fit", tickets, "--text", "text", "-o", tmp_path / "m", "--test-size", "0.25", "--topics", "3"]
    found = json.loads(command(*fit, "--label", "team", "--json"))
    assert found["test_documents"] == 100 and found["test_accuracy"] > found["base_rate_accuracy"] + 0.1
    lower, upper = found["interval"]
    assert lower < found["test_accuracy"] < upper and upper - lower < 0.2
    assert found["test_log_loss"] < found["base_rate_log_loss"] - 0.1
    rows = list(csv.DictReader(tickets.read_text(encoding="utf-8").splitlines()))
    share = np.mean([row["team"] == "b" for row in rows])
    counts = [row["documents"] for row in found["test_classes"]]
    np.testing.assert_allclose(counts, [100 * (1 - share), 100 * share], atol=1)
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert found["base_rate_log_loss"] == pytest.approx(entropy, abs=0.01)
    shown = command(*fit, "--label", "team")
    assert "by class" in shown and "whose responses did not influence the topics" in " ".join(shown.split())
    predicted = list(csv.DictReader(command("predict", tmp_path / "m", tickets, "--text", "text").splitlines()))
    right = np.mean([a["prediction"] == b["team"] for a, b in zip(predicted, rows, strict=True)])
    assert right == pytest.approx(found["test_accuracy"], abs=0.1)


def test_a_warning_says_that_a_coin_has_no_relation_to_topics(command, long_command, tickets, tmp_path):
    fit = ["fit", tickets, "--text", "text", "--label", "coin", "-o", tmp_path / "m", "--topics", "10"]
    topics = json.loads(long_command(*fit, "--json", "--held-out", "0.25"))["topics"]
    assert sum(topic["class"] is not None for topic in topics) <= 2
    status, _, stderr = Running("from supertopic.command.cli import main; main()", *fit).end()
    assert status == 0 and "Warning: Found no relation" in stderr and "better" in stderr
    assert ".py" not in stderr
    assert "held_out must be 'auto' or a share" in command(*fit, "--held-out", "2", code=1)
    assert "No document was held out" in command(*fit, "--held-out", "0", "--chains", "1", "--burn-in", "10")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A table with an id and a model of its labels, which the command fits."""
    folder = tmp_path_factory.mktemp("fitted")
    path, model = folder / "data.csv", folder / "my.model"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text", "label"), *((f"t{i}", *row) for i, row in enumerate(ROWS))])
    arguments = ["supertopic", "fit", path, "--text", "text", "--label", "label", "-o", model, *FAST]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr(sys, "argv", list(map(str, arguments)))
        main()
    assert not stop.value.code
    return path, model


def test_version_and_module(command):
    assert command("--version").strip() == f"supertopic {supertopic.__version__}"
    found = subprocess.run(
        [sys.executable, "-m", "supertopic", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == f"supertopic {supertopic.__version__}"


def test_columns_are_kept_and_shares_added(command, fitted):
    path, model = fitted
    shown = command("predict", model, path, "--text", "text", "--keep", "id", "--shares")
    rows = list(csv.DictReader(shown.splitlines()))
    assert [row["id"] for row in rows] == [f"t{i}" for i in range(len(ROWS))]
    shares = np.array([[float(row[f"topic {k}"]) for k in range(3)] for row in rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    lines = command("predict", model, path, "--text", "text", "--keep", "all", "--json").splitlines()
    assert list(json.loads(lines[0]))[:4] == ["id", "text", "label", "prediction"]
    assert "has no column 'name'" in command("predict", model, path, "--text", "text", "--keep", "name", code=1)


def test_a_table_from_the_standard_input(command, fitted, monkeypatch):
    path, model = fitted
    process = [sys.executable, "-m", "supertopic", "predict", str(model), "-", "--text", "text"]
    found = subprocess.run(process, input=path.read_bytes(), capture_output=True, check=True)
    assert found.stdout.decode().splitlines()[0] == "prediction,p(politics),p(sport)"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert "is empty" in command("predict", model, "-", "--text", "text", code=1)


def test_all_weights_as_csv(command, fitted):
    rows = list(csv.DictReader(command("topics", fitted[1], "--csv").splitlines()))
    assert [row["topic"] for row in rows] == ["0", "1", "2"] and {row["column"] for row in rows} == {"sport"}
    model = supertopic.load(fitted[1])
    for row in rows:
        weight = float(row["weight"])
        assert weight == model.coef_[0, int(row["topic"])] and float(row["lower"]) <= weight <= float(row["upper"])


def test_spreadsheets_of_other_countries(command, tmp_path):
    """Semicolons, decimal commas and Latin-1, as a spreadsheet writes them; a warning names the encoding."""
    path = tmp_path / "data.csv"
    lines = [
        "Text;Note",
        *(f"{'gut schön' if i % 2 else 'schlecht öde'} Wort{i % 3};{i % 2 * 3},{i % 7}" for i in range(40)),
    ]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    shown = command("fit", path, "--text", "Text", "--label", "Note", "-o", tmp_path / "m", *FAST, "--json")
    assert json.loads(shown)["response"] == "rating" and len(json.loads(shown)["topics"]) == 3
    assert "schön" in supertopic.load(tmp_path / "m").vocabulary_


def test_columns_that_are_no_response(command, tmp_path):
    texts = [f"word{i % 5} other" for i in range(60)]
    for cells, message in (
        ([f"name {i}" for i in range(60)], "60 of the 60 cells are different"),
        (range(5000, 5060), "as ids do"),
        ([1960 + i % 50 for i in range(60)], "look like years (1960 to 2009)"),
    ):
        path = write(tmp_path, "csv", list(zip(texts, cells, strict=True)))
        assert message in command(
            "fit", path, "--text", "text", "--label", "label", "-o", tmp_path / "m", *FAST, code=1
        )
    command("fit", path, "--text", "text", "--label", "label", "--response", "rating", "-o", tmp_path / "m", *FAST)
    ids = np.random.default_rng(0).permutation(np.r_[np.arange(7857), np.arange(2143)])
    assert guess([str(i) for i in range(20)] * 5, ";")[0] == "class"
    for cells in (ids.tolist(), [f"user {i}" for i in ids]):
        with pytest.raises(ValueError, match=r"7,857 .*different"):
            guess(cells, ";")
    assert guess(np.random.default_rng(0).poisson(50, 72).tolist(), ";")[0] == "count"


def test_what_a_word_is(command, tmp_path):
    rows = [("天气好", "yes"), ("天气坏", "no")] * 12
    path, words = write(tmp_path, "csv", rows), tmp_path / "words.txt"
    words.write_text("气\n", encoding="utf-8")
    fit = ("fit", path, "--text", "text", "--label", "label", "-o", tmp_path / "m", *FAST)
    command(*fit, "--token-pattern", ".", "--stop-words", words, "--ngrams", 2)
    assert set(supertopic.load(tmp_path / "m").vocabulary_) == {"天", "好", "坏", "天 好", "天 坏"}
    command(*fit, "--token-pattern", ".", "--stop-words", "none", "--max-df", 0.9)
    assert set(supertopic.load(tmp_path / "m").vocabulary_) == {"好", "坏"}
    assert "there is no file german" in command(*fit, "--stop-words", "german", code=1)


def test_wrong_files_are_called_that(command, tmp_path, fitted):
    path, model = fitted
    assert "is not a supertopic model" in command("topics", path, code=1)
    (tmp_path / "half").write_bytes(model.read_bytes()[:500])
    assert "was cut off" in command("topics", tmp_path / "half", code=1)


def test_a_gpu_that_is_not_there_is_an_error_of_one_line(command, fitted):
    message = command("predict", fitted[1], fitted[0], "--text", "text", "--device", "cuda", code=1)
    assert message.startswith("Error: device='cuda', but no NVIDIA GPU") and message.count("\n") <= 2


def test_explain(command, fitted):
    shown = command("explain", fitted[1], "--text", "a goal for the senate")
    assert "sport" in shown and "total" in shown and "intercept" in shown and "senate" in shown
    found = json.loads(command("explain", fitted[1], "--text", "a goal for the senate", "--json"))
    assert found["words"][:2] == ["goal", "senate"] and {"a", "goal", "senate"} <= set(found["words"])
    assert len(found["mean"]) == 2
    total = np.sum(found["through_topics"]) + np.sum(found["direct"]) + found["constant"][0]
    assert total == pytest.approx(found["omega"][0])


def test_a_single_draw_has_no_interval(command, tmp_path):
    run = ["--topics", "3", "--burn-in", "5", "--draws", "1", "--chains", "1", "--min-df", "1", "--held-out", "0"]
    found = command("fit", write(tmp_path, "csv"), "--text", "text", "--label", "label", "-o", tmp_path / "m", *run)
    assert "nan" not in found and "(-)" in found


def test_seeds_and_a_prior(command, tmp_path):
    data, model, again = write(tmp_path, "csv"), tmp_path / "a.model", tmp_path / "b.model"
    seeds = tmp_path / "seeds.csv"
    seeds.write_text("topic,word,class\nballs,goal,sport\nballs,match,\nlaws,vote,politics\n", encoding="utf-8")
    columns = "--text", "text", "--label", "label"
    command("fit", data, *columns, "-o", model, "--seeds", seeds, "--seed-strength", 2, *FAST)
    fitted = supertopic.load(model)
    assert fitted.topic_names_ == {"0": "balls", "1": "laws"} and fitted.seeds.strength == 2
    assert fitted.seeds.weights == {"balls": "sport", "laws": "politics"}
    assert "balls" in command("topics", model)
    command("fit", data, *columns, "-o", again, "--prior", model, "--prior-weights", "--discount", 0.5, *FAST)
    again_topics, topics = (m.posterior_.topics[0] for m in (supertopic.load(again), fitted))
    assert again_topics.word_topic.sum() > topics.word_topic.sum()
    for text, message in (
        ("topic,words\na,b\n", "word"),
        ("topic,word\na,\n", "Row 1 of"),
        ("topic,word,class\na,goal,sport\na,vote,politics\n", "pulls to"),
        ("topic,word\n", "no rows"),
        ("topic,word\na,goal\nb,goal\nc,goal\nd,goal\n", "more than n_topics=3"),
    ):
        seeds.write_text(text, encoding="utf-8")
        assert message in command("fit", data, *columns, "-o", again, "--seeds", seeds, *FAST, code=1)


def test_update(command, tmp_path):
    data, model = write(tmp_path, "csv"), tmp_path / "a.model"
    command("fit", data, "--text", "text", "--label", "label", "-o", model, *FAST)
    found = json.loads(command("update", model, data, "--text", "text", "--label", "label", "-o", model, "--json"))
    assert found["batches"] == 2 and found["documents"] == 24 and found["without_known_words"] == 0
    assert "held_out" in found
    before = supertopic.load(model).posterior_.carryover.sums
    assert "batches: 3" in command("update", model, data, "--text", "text", "-o", model, "--discount", 0.5)
    rows = list(csv.DictReader(command("predict", model, data, "--text", "text").splitlines()))
    assert [row["prediction"] for row in rows] == [label for _, label in ROWS]
    np.testing.assert_allclose(supertopic.load(model).posterior_.carryover.sums[1], 0.5 * before[1])
    labels = write(tmp_path, "jsonl", [(text, [label, "all"]) for text, label in ROWS])
    command("fit", labels, "--text", "text", "--label", "label", "-o", model, "--response", "labels", *FAST)
    command("update", model, labels, "--text", "text", "--label", "label", "-o", model)


def test_choose(command, tmp_path):
    data = write(tmp_path, "csv", ROWS * 4)
    call = ["choose", data, "--text", "text", "--label", "label", "--min-df", 1, "--burn-in", 5, "--draws", 3]
    found = json.loads(command(*call, "--topics", "1,3", "--json"))
    assert [row["n_topics"] for row in found["rows"]] == [1, 3] and found["chosen"] in (1, 3)
    assert "within one standard error" in command(*call, "--topics", "2", "--figure", tmp_path / "k.png")
    assert (tmp_path / "k.png").stat().st_size > 1000
    assert "whole numbers" in command(*call, "--topics", "2,many", code=1)


def test_classes_that_a_model_does_not_know(command, fitted, tmp_path):
    """They are refused, with their number and a name; on demand the model learns from their texts alone."""
    _, model = fitted
    rows = [("vote law", "gardening")] * 5 + [("goal match", "sport")] * 3
    path = write(tmp_path, "csv", rows)
    given = ("update", model, path, "--text", "text", "--label", "label", "-o", tmp_path / "m2")
    message = command(*given, code=1)
    assert "5 of 8 rows have a class that is new to the model, such as 'gardening'" in message
    assert "--skip-unknown-classes" in message and "'politics', 'sport'" in message and not (tmp_path / "m2").exists()
    assert json.loads(command(*given, "--skip-unknown-classes", "--json"))["rows_of_unknown_classes"] == 5


def test_classes_and_words_of_an_update(command, fitted, tmp_path):
    """New classes are added on demand, new words unless they are not wanted, and the history says what was."""
    _, model = fitted
    rows = [("soil plant garden", "gardening")] * 6 + [("goal match", "sport")] * 3
    path, larger = write(tmp_path, "csv", rows), tmp_path / "larger"
    given = ("update", model, path, "--text", "text", "--label", "label", "-o", larger)
    shown = " ".join(command(*given, "--add-classes").split())
    assert "New classes: gardening." in shown and "3 words of topics were added: garden, plant, soil" in shown
    assert "9 documents, before the model learned from them: accuracy 0.33" in shown
    grown = supertopic.load(larger)
    assert grown.classes_.tolist() == ["politics", "sport", "gardening"] and "soil" in grown.vocabulary_
    assert grown.predict(["soil plant garden"]).tolist() == ["gardening"]
    other = (*given[:-1], tmp_path / "other", "--add-classes", "--no-new-words", "--json")
    found = json.loads(command(*other))["before_learning"]
    assert found["classes_added"] == ["gardening"] and found["words_added"] == 0 and found["scored"] == 9
    found = json.loads(command("history", larger, "--json"))
    assert [row["batch"] for row in found] == [1, 2] and not command("history", model, "--csv").splitlines()[2:]
    table = list(csv.DictReader(command("history", larger, "--csv").splitlines()))
    assert table[1]["first_added"] == "garden;plant;soil" and float(table[1]["score"]) == pytest.approx(1 / 3)
    assert "Batch 2: New classes: gardening." in command("history", larger) and "held out" in command("history", larger)
    assert "cannot both" in command(*given, "--add-classes", "--skip-unknown-classes", code=1)


def test_labels_and_numbers_of_an_update(command, tmp_path):
    data, model = write(tmp_path, "jsonl", [(text, [label, "all"]) for text, label in ROWS]), tmp_path / "m"
    columns = ("--text", "text", "--label", "label", "-o", model)
    command("fit", data, *columns, "--response", "labels", *FAST)
    more = write(tmp_path, "jsonl", [(text, [label, "new"]) for text, label in ROWS])
    command("update", model, more, *columns, "--add-classes")
    assert supertopic.load(model).classes_.tolist() == ["all", "politics", "sport", "new"]
    numbers = write(tmp_path, "csv", [(text, 1 + (label == "sport")) for text, label in ROWS])
    command("fit", numbers, *columns, "--response", "class", *FAST)
    more = write(tmp_path, "csv", [(text, 1 + 2 * (label == "sport")) for text, label in ROWS])
    command("update", model, more, *columns, "--add-classes")
    assert supertopic.load(model).classes_.tolist() == [1, 2, 3]
    command("fit", numbers, *columns, "--response", "rating", *FAST)
    assert "without an order" in command("update", model, more, *columns, "--add-classes", code=1)


def test_texts_of_which_no_word_is_known(command, fitted, tmp_path, capsys, monkeypatch):
    found = command("explain", fitted[1], "--text", "asdf qwer")
    assert "no word of the vocabulary" in found
    numbers = [float(x) for x in re.findall(r"\(([\d.]+) \.\. ([\d.]+)\)", found)[0]]
    assert numbers[1] - numbers[0] > 0.2  # the model has seen no such text
    path = write(tmp_path, "csv", [("asdf qwer", ""), ("goal match", ""), ("", "")])
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["supertopic", "predict", str(fitted[1]), str(path), "--text", "text"])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    assert not stop.value.code and "2 of 3 texts" in shown.err and len(shown.out.splitlines()) == 4


def test_options_are_named_as_they_are(command, tmp_path):
    rows = [(text, label, f"author {i % 3}") for i, (text, label) in enumerate(ROWS)]
    path = tmp_path / "d.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label", "author"), *rows])
    given = ("fit", path, "--text", "text", "--label", "label", "-o", tmp_path / "m", *FAST)
    message = command(*given, "--weight", "author", code=1)
    assert "Row 1 of author holds 'author 0', which is not a number; --weight needs numbers" in message
    assert "--test-size is a share from 0 to 1, such as 0.2 for a fifth of the documents, got 20" in command(
        *given, "--test-size", "20", code=1
    )


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """300 short texts with stars from 1 to 4, which rise with a topic, and their names."""
    corpus = make_corpus(n_docs=300, n_words=60, n_topics=3, eta=[[-5.0, 0.0, 5.0]], random_state=0)
    latent = corpus.doc_topic @ corpus.eta[0] + np.random.default_rng(0).logistic(size=300)
    stars = np.digitize(latent, np.quantile(latent, [0.2, 0.5, 0.9]))
    path = tmp_path_factory.mktemp("reviews") / "reviews.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "stars", "name", "decimal", "lonely"])
        for row, grade in zip(corpus.X.toarray(), stars.tolist(), strict=True):
            words = [f"word{chr(97 + w % 26)}{chr(97 + w // 26)}" for w in np.repeat(np.arange(60), row.astype(int))]
            name = ["bad", "fair", "good", "great"][grade]
            writer.writerow([" ".join(words), grade + 1, name, f"{grade + 1}.0", 3])
    return path


GRADED = ["--response", "ordinal", "--topics", "3", "--burn-in", "15", "--draws", "8", "--chains", "1"]


def test_ordered_classes(command, reviews, tmp_path):
    model, page = tmp_path / "m", tmp_path / "p.html"
    fit = ["fit", reviews, "--text", "text", "--label", "name", "-o", model, *GRADED]
    order = ["--order", "bad,fair, good,great"]
    found = json.loads(command(*fit, *order, "--test-size", "0.3", "--json", "--report", page))
    assert found["estimator"] == "SLDAOrdinalClassifier" and found["classes"] == ["bad", "fair", "good", "great"]
    assert found["base_rate_quadratic_kappa"] == 0 < found["test_quadratic_kappa"]
    for name in ("log_loss", "mean_absolute_error", "ranked_probability_score"):
        assert found[f"test_{name}"] < found[f"base_rate_{name}"]
    assert found["test_accuracy"] > found["base_rate_accuracy"] and found["interval"][0] < found["test_accuracy"]
    assert [row["class"] for row in found["test_classes"]] == found["classes"]
    shown = page.read_text(encoding="utf-8")
    assert "logistic regression on words and pairs: " in shown and "raise predictions of the “name”" in shown
    data = json.loads(re.search(r'id="data">(.*?)</script>', shown, re.S)[1])
    figures = {name: value for name, value, _ in data["evaluation"]["figures"]}
    assert figures["ranked probability score"] == pytest.approx(found["test_ranked_probability_score"], rel=0.01)
    assert data["targets"]["names"] == ["higher name"] and data["targets"]["unit"] == "grades"
    predict = ["predict", model, reviews, "--text", "text"]
    rows = list(csv.DictReader(command(*predict, "--keep", "name").splitlines()))
    names = ["p(bad)", "p(fair)", "p(good)", "p(great)"]
    assert list(rows[0]) == ["name", "prediction", *names, "grade", "lower", "upper"]
    for row in rows:
        p = np.array([float(row[name]) for name in names])
        assert row["prediction"] == names[p.argmax()][2:-1]
        assert float(row["grade"]) == pytest.approx(p @ [1, 2, 3, 4], abs=1e-5)
        assert 1 <= float(row["lower"]) <= float(row["upper"]) <= 4
    assert "higher" in command("explain", model, "--text", "wordaa wordba wordca")
    assert "weight" in command("topics", model)
    command("report", model, reviews, "--text", "text", "--label", "name", "-o", page)
    update = ["update", model, reviews, "--text", "text", "--label", "name", "-o", model]
    assert json.loads(command(*update, "--json"))["batches"] == 2
    assert supertopic.load(model).classes_.tolist() == found["classes"]


def test_numbers_have_an_order_of_their_own(command, reviews, tmp_path):
    """Whole numbers in any type of cell, classes that only the order names, and a class that is new in an update."""
    model, fit = tmp_path / "m", ["fit", reviews, "--text", "text", "-o", tmp_path / "m", *GRADED, "--json"]
    found = [json.loads(command(*fit, "--label", column)) for column in ("stars", "decimal")]
    assert found[0]["classes"] == found[1]["classes"] == [1, 2, 3, 4]
    assert found[0]["held_out"] == found[1]["held_out"]
    update = ["update", model, reviews, "--text", "text", "-o", tmp_path / "n", "--json"]
    assert json.loads(command(*update, "--label", "decimal"))["batches"] == 2
    assert "its classes are '1', '2', '3', '4'" in " ".join(command(*update, "--label", "name", code=1).split())
    skipped = json.loads(command(*update, "--label", "name", "--skip-unknown-classes"))
    assert skipped["rows_of_unknown_classes"] == 300
    assert json.loads(command(*fit, "--label", "stars", "--order", "4,3,2.5,2,1"))["classes"] == [4, 3, 2.5, 2, 1]
    chosen = command("choose", reviews, "--text", "text", "--label", "stars", "--response", "ordinal", "--topics",
                     "2,3", "--burn-in", "5", "--draws", "4", "--chains", "1")  # fmt: skip
    assert "supertopic fit" in chosen


@pytest.mark.parametrize(
    ("column", "more", "message"),
    [
        ("name", [], "give it with --order, the lowest first"),
        ("name", ["--order", "bad,fair,good"], "holds 'great', which is not in --order bad,fair,good"),
        ("stars", ["--order", "1,2,3"], "holds '4', which is not in --order"),
        ("name", ["--order", "bad,bad"], "two or more different classes"),
        ("name", ["--order", "bad,,fair,good,great"], "two or more different classes"),
        ("lonely", [], "one class only (3)"),
        ("lonely", ["--order", "1,2,3"], "one class only (3)"),
        ("stars", ["--response", "class", "--order", "1,2,3,4"], "--order cannot be used with the response 'class'"),
        ("stars", ["--loss", "hinge"], "--loss hinge cannot be used with the response 'ordinal'"),
        ("stars", ["--multiclass", "separate"], "--multiclass separate cannot be used with the response 'ordinal'"),
        ("text", [], "holds names"),
    ],
)
def test_ordered_classes_that_cannot_be_read(command, reviews, tmp_path, column, more, message):
    fit = ["fit", reviews, "--text", "text", "--label", column, "-o", tmp_path / "m", *GRADED]
    assert message in " ".join(command(*fit, *more, code=1).split())
    assert not (tmp_path / "m").exists()


def test_every_kind_of_response_is_known_by_its_fitted_response():
    fitted = [kind.fitted for kind in KINDS.values()]
    assert len(set(fitted)) == len(fitted)
    assert all(kind_of(SimpleNamespace(kind=kind.fitted)) is kind for kind in KINDS.values())
    with pytest.raises(ValueError, match="does not support responses of the kind 'other'"):
        kind_of(SimpleNamespace(kind="other"))


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """300 short texts with days until an event, which come sooner with a topic; 30 % are censored."""
    corpus = make_corpus(n_docs=300, n_words=60, n_topics=3, eta=[[-4.0, 0.0, 4.0]], random_state=0)
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("visits") / "visits.csv"
    days, seen = rng.exponential(20.0 * np.exp(-corpus.doc_topic @ corpus.eta[0])), rng.exponential(60.0, 300)
    rows = zip(corpus.X.toarray(), np.minimum(days, seen), days <= seen, strict=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "days", "left", "word", "team"])
        for i, (row, time, event) in enumerate(rows):
            words = [f"word{chr(97 + w % 26)}{chr(97 + w // 26)}" for w in np.repeat(np.arange(60), row.astype(int))]
            writer.writerow([" ".join(words), "" if i == 7 else f"{time:.3f}", int(event), bool(event), "abc"[i % 3]])
    return path


TIMED = ["--response", "time", "--topics", "3", "--burn-in", "15", "--draws", "8", "--chains", "1"]


def test_times(command, visits, tmp_path):
    model, page = tmp_path / "m", tmp_path / "p.html"
    fit = ["fit", visits, "--text", "text", "--label", "days", "-o", model, *TIMED]
    found = json.loads(command(*fit, "--event", "left", "--test-size", "0.3", "--json", "--report", page))
    assert found["estimator"] == "SLDASurvivalRegressor" and found["test_documents"] == 90 > found["test_events"] > 40
    assert found["test_concordance"] > 0.7 and found["interval"][0] < found["test_concordance"] < found["interval"][1]
    assert found["test_integrated_brier_score"] < found["base_rate_integrated_brier_score"]
    assert "beyond" in page.read_text(encoding="utf-8")
    predict = ["predict", model, visits, "--text", "text"]
    rows, table = list(csv.DictReader(command(*predict).splitlines())), supertopic.load(model)
    assert list(rows[0])[:4] == ["prediction", "lower", "upper", "risk"] and list(rows[0])[4].startswith("p(beyond ")
    texts = [row["text"] for row in csv.DictReader(visits.read_text().splitlines())]
    np.testing.assert_allclose([float(row["prediction"]) for row in rows], table.predict(texts), rtol=1e-5)
    np.testing.assert_allclose([float(row["risk"]) for row in rows], table.predict_risk(texts), atol=1e-6)
    assert any(row["upper"] == "inf" for row in rows)
    lines = [json.loads(line, parse_constant=pytest.fail) for line in command(*predict, "--json").splitlines()]
    assert any(line["upper"] is None for line in lines)  # JSON has no infinity
    assert "sooner" in command("explain", model, "--text", "wordaa wordba wordca")
    known = ["--text", "text", "--label", "days", "--event", "word"]
    command("report", model, visits, *known, "-o", page)
    update = ["update", model, visits, *known, "-o", model, "--json"]
    assert json.loads(command(*update))["batches"] == 2
    chosen = command("choose", visits, *known, "--response", "time", "--topics", "2,3", "--burn-in", "5", "--draws",
                     "4", "--chains", "1")  # fmt: skip
    assert "concordance" in chosen
    assert json.loads(command(*fit, "--json"))["unlabelled"] == 1  # all events came


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--label", "days", "--event", "days"], "--event needs 1 or true where the event came"),
        (["--label", "team"], "which is not a number; --response time needs numbers"),
        (["--label", "days", "--event", "nothing"], "nothing"),
        (
            ["--label", "days", "--response", "rating", "--event", "left"],
            "--event cannot be used with the response 'rating'",
        ),
        (["--label", "days", "--balanced"], "--balanced cannot be used with the response 'time'"),
    ],
)
def test_times_that_cannot_be_read(command, visits, tmp_path, more, message):
    fit = ["fit", visits, "--text", "text", "-o", tmp_path / "m", *TIMED]
    assert message in " ".join(command(*fit, *more, code=1).split())


@pytest.fixture(scope="module")
def annotated(tmp_path_factory):
    """300 short texts with the answers and ratings of three raters, some of them missing, and a few true labels."""
    corpus = make_corpus(n_docs=300, n_words=60, n_topics=3, eta=[[-6.0, 0.0, 6.0]], random_state=0)
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("annotated") / "annotated.csv"
    truth, level = corpus.y.ravel(), corpus.doc_topic @ corpus.eta[0]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "ann", "ben", "cem", "truth", "first", "second"])
        for i, row in enumerate(corpus.X.toarray()):
            words = [f"word{chr(97 + w % 26)}{chr(97 + w // 26)}" for w in np.repeat(np.arange(60), row.astype(int))]
            said = ["yes" if truth[i] == (rng.random() < p) else "no" for p in (0.9, 0.8, 0.55)]
            said = ["NA" if rng.random() < 0.2 else answer for answer in said]
            ratings = [f"{level[i] + bias + rng.normal():.3f}" for bias in (1.0, -1.0)]
            writer.writerow([" ".join(words), *said, ["no", "yes"][truth[i]] if i % 5 == 0 else "", *ratings])
    return path


def test_raters(command, annotated, tmp_path):
    model, page = tmp_path / "m", tmp_path / "p.html"
    run = ["--text", "text", "--topics", "3", "--burn-in", "15", "--draws", "8", "--chains", "1"]
    known = ["--text", "text", "--label", "ann,ben,cem", "--gold", "truth"]
    fit = ["fit", annotated, *known, *run[2:], "--response", "raters", "-o", model]
    found = json.loads(command(*fit, "--test-size", "0.3", "--json", "--report", page))
    assert found["estimator"] == "SLDACrowdClassifier" and found["classes"] == ["no", "yes"]
    assert found["test_documents"] > 80 and found["test_accuracy"] > 0.6 and page.exists()
    assert supertopic.load(model).raters_.tolist() == ["ann", "ben", "cem"]
    assert "Raters, with 90 % intervals" in command(*fit)
    rows = list(csv.DictReader(command("predict", model, annotated, "--text", "text").splitlines()))
    assert list(rows[0]) == ["prediction", "p(no)", "p(yes)"] and len(rows) == 300
    assert json.loads(command("update", model, annotated, *known, "-o", model, "--json"))["batches"] == 2
    command("report", model, annotated, *known, "-o", page)
    choose = ["choose", annotated, *known, "--response", "raters", "--topics", "2,3", "--burn-in", "5", "--draws", "4"]
    assert "accuracy" in command(*choose, "--chains", "1")
    rated = ["fit", annotated, *run, "--label", "first, second", "--response", "raters-rating", "-o", model, "--json"]
    found = json.loads(command(*rated, "--test-size", "0.3"))
    assert found["estimator"] == "SLDACrowdRegressor" and found["test_r2"] > 0.2
    frame = supertopic.load(model).rater_frame()
    assert frame["bias"][0] - frame["bias"][1] == pytest.approx(2.0, abs=0.3)
    wrong = ["fit", annotated, *run, "--label", "ann,ben", "--response", "raters-rating", "-o", model]
    assert "is not a number" in " ".join(command(*wrong, code=1).split())
    wrong = ["fit", annotated, *run, "--label", "first", "--gold", "truth", "-o", model]
    assert "--gold cannot be used with the response 'rating'" in " ".join(command(*wrong, code=1).split())
