"""What is found in data before a fit, and what is mended."""

import csv
import json
import sys

import numpy as np
import pytest

from supertopic.command.cells import guess
from supertopic.command.cli import main
from supertopic.corpus.look import (
    look_at_ids,
    look_at_labels,
    look_at_language,
    look_at_sizes,
    look_at_texts,
    plain_space,
    refuse_ids,
    same_texts,
)
from supertopic.estimators.splitting import split_known


def texts(*values):
    return np.array(values, dtype=object)


def found(*values, labels=None, english=False):
    return " | ".join(look_at_texts(texts(*values), labels, english).findings)


def test_texts_without_content_are_empty():
    seen = look_at_texts(texts("one good text", "", " \n", "NaN", "n/a", "none"), english=False)
    assert seen.findings == ["No text: 2 empty, 2 like 'NaN' (rows 2, 3, 4, 5). All count as empty."]
    assert seen.corrected.tolist() == ["one good text", "", " \n", "", "", "none"]
    assert look_at_texts(texts("one good text", "a second one"), english=False).findings == []
    assert look_at_texts(texts()).findings == []
    assert "row 1)" in found("NA", "this one is long")


def test_duplicates_and_their_labels():
    assert same_texts(["a b", "c", " a b", "", "", "c"]).tolist() == [0, 1, 0, 3, 4, 1]
    given = ["a b c", "d e f", "a b c", "g h i", "d e f"]
    assert found(*given).startswith("Duplicates: 2 (rows 3, 5). ")
    assert "different labels: 1 (such as row 1)" in found(*given, labels=["x", "y", "z", "x", "y"])
    assert "different" not in found(*given, labels=["x", "y", None, "x", "y"])


def test_wrong_encoding():
    assert "1 text has letters such as 'Ã©' (row 2)" in found("a fine text", "a cafÃ© au lait")
    for wrong in ("donâ€™t do it", "bad \ufffd letter here", "NaÃ¯ve it is", "50 Â° Celsius here"):
        assert "Wrong encoding" in found(wrong)
    for right in ("café, naïve, Ångström", "São Tomé e Príncipe", "pâté de foie gras", "ÇA VA BIEN? ÂGE D'OR"):
        assert "Wrong encoding" not in found(right)


def test_ids_are_no_texts():
    for values in (
        [f"T-{i}" for i in range(60)],
        [str(i / 7) for i in range(60)],
        [f"user{i}@x.org" for i in range(60)],
    ):
        with pytest.raises(ValueError, match=r"60 of 60 are one word with a digit.*--text names the column"):
            refuse_ids(texts(*values))
    refuse_ids(texts(*[f"T-{i}" for i in range(20)]))
    refuse_ids(texts(*["word1", "word2"] * 30))
    refuse_ids(texts(*[f"T-{i} and more" for i in range(60)]))
    assert "Short: 67% of the texts" in found("good", "very bad", "a longer text it is")


LANGUAGES = {
    "German": "Der Hund ist nicht in dem Haus und die Katze sitzt auf der Mauer, weil es regnet. Ich habe das nicht. ",
    "French": "Le chien est dans la maison et les chats ne sont pas sur le mur, parce que nous avons de la pluie. ",
    "Spanish": "El perro no está en la casa y los gatos que vemos por la calle son de un vecino muy amable. ",
    "Italian": "Il cane non è nella casa e i gatti che vediamo sono di un vicino, ma anche della signora. ",
    "Portuguese": "O cão não está na casa e os gatos que vemos na rua são de um vizinho muito amável da cidade. ",
    "Dutch": "De hond is niet in het huis en de kat zit op een muur, maar ik heb dat ook niet. ",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(language):
    (sentence,) = look_at_language(texts(*[LANGUAGES[language]] * 5))
    assert f"the texts look {language}, but the stop words are English" in sentence


def test_english_and_texts_of_which_nothing_can_be_said():
    english = "The dog is not in the house and the cat sits on the wall because it was raining for us. "
    assert look_at_language(texts(*[english] * 5)) == []
    assert look_at_language(texts(*["goal match team win league coach"] * 20)) == []
    assert look_at_language(texts("der die das")) == []
    assert "--token-pattern ." in look_at_language(texts("天气好天气坏"))[0]
    cyrillic = look_at_language(texts("погода сегодня хорошая"))[0]
    assert "not Latin" in cyrillic and "--token-pattern" not in cyrillic


def test_labels_are_written_in_one_way():
    sentences, write = look_at_labels(["Pros", "Pros ", " pros", *["Pros"] * 30, "a  b", "Us", "US"])
    assert [write(label) for label in ("Pros ", "pros", "a  b", "Us", "US", "new")] == [
        "Pros",
        "Pros",
        "a b",
        "Us",
        "US",
        "new",
    ]
    assert sentences[0].startswith("White space in labels: 'Pros ', ' pros', 'a  b'.")
    assert sentences[1] == "Case of labels: 'pros' (1) counts as 'Pros'."
    assert sentences[2] == "Case of labels: 'US' (1) and 'Us' (1) are different classes. Write them in one way."
    assert look_at_labels(["a", "b"])[0] == [] and plain_space("\ta \u00a0 b\n") == "a b"


def test_rare_classes():
    assert "Fewer than 5 rows: 'x' (1), 'y' (4)." in look_at_sizes([*"aaaaaa", *"yyyy", "x"])[0]
    assert look_at_sizes(["a", "b"]) == [] and look_at_sizes([]) == []


def test_copies_are_on_one_side_of_a_split():
    rng = np.random.default_rng(0)
    group, known = rng.integers(0, 60, 400), np.flatnonzero(rng.random(400) < 0.9)
    classes = np.array(["a", "b"])[group % 2][known]
    for seed in range(5):
        test = split_known(known, classes, 0.25, seed, group)
        train = np.setdiff1d(known, test)
        assert not set(group[test]) & set(group[train]) and 50 < len(test) < 140
    alone = split_known(known, classes, 0.25, 0)
    assert abs(np.mean(group[alone] % 2) - np.mean(group[known] % 2)) < 0.01  # classes keep their shares
    rare = classes.astype(object)
    rare[0] = "rare"
    assert abs(np.mean(group[split_known(known, rare, 0.25, 0)] % 2) - np.mean(group[known] % 2)) < 0.02
    with pytest.raises(ValueError, match="two or more documents with a known response and different texts"):
        split_known(known, None, 0.25, 0, np.zeros(400, int))


ROWS = [("goal match team win", "sport"), ("vote law senate party", "politics"), ("match goal fun game", "sport"),
        ("senate vote again today", "politics")] * 6  # fmt: skip
FAST = ["--topics", "2", "--burn-in", "5", "--draws", "3", "--chains", "2", "--min-df", "1"]


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process; returns what it printed."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["supertopic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert (stop.value.code or 0) == code, captured.err
        return captured

    return run


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


def test_fit_mends_what_is_clear(command, tmp_path):
    rows = [(f"{text} word{chr(97 + i)}", label) for i, (text, label) in enumerate(ROWS)]
    rows[0], rows[1], rows[2] = ("goal match", " sport "), ("NA", "politics"), ("goal match", "politics")
    rows += [("win team match", "Sport")]
    data, model = write(tmp_path / "d.csv", rows), tmp_path / "m"
    given = "fit", data, "--text", "text", "--label", "label", "-o", model, *FAST
    shown = command(*given).err
    assert "data: White space in labels: ' sport '" in shown and "'Sport' (1) counts as 'sport'" in shown
    assert "No text: 1 like 'NA' (row 2)" in shown and "different labels: 1" in shown
    told = json.loads(command(*given, "--json", "--test-size", 0.25).out)
    assert told["classes"] == ["politics", "sport"] and len(told["findings"]) == 4
    refused = command(*given[:-8], *FAST, "--strict", code=1).err
    assert "--strict stops, since the data have problems:\n- No text" in refused
    update = "update", model, data, "--text", "text", "--label", "label", "-o", model
    assert "No text: 1 like 'NA'" in command(*update).err  # and the labels are those that the model knows
    command(*update, "--strict", code=1)
    choose = "choose", data, "--text", "text", "--label", "label", "--topics", "2", "--burn-in", 5, "--draws", 3
    assert "No text" in command(*choose, "--min-df", 1).err
    command(*choose, "--strict", code=1)


def test_at_most_six_lines(command, tmp_path, monkeypatch):
    from supertopic.command import look

    lines = []
    monkeypatch.setattr(look, "note", lines.append)
    look.show_findings(list("abcdef"))
    assert len(lines) == 6
    look.show_findings(list("abcdefgh"))
    assert len(lines) == 12 and "and 3 more" in lines[-1]


def test_check(command, tmp_path):
    data = write(tmp_path / "d.csv", [*ROWS, ("one more text here", "rare")])
    shown = command("check", data, "--text", "text", "--label", "label").out
    assert "documents: 25" in shown and "sport" in shown and "'rare' (1)" in shown and "Duplicates: 20" in shown
    assert "(rows sport, politics" in command("check", data, "--text", "text", "--id", "label").out
    told = json.loads(command("check", data, "--text", "text", "--label", "label", "--json").out)
    assert told["classes"] == {"sport": 12, "politics": 12, "rare": 1} and len(told["findings"]) == 2
    assert "problems" in command("check", data, "--text", "text", "--strict", code=1).err
    clean = write(tmp_path / "c.csv", [(f"{text} word{i} of them", label) for i, (text, label) in enumerate(ROWS)])
    assert "No problem found" in command("check", clean, "--text", "text", "--label", "label").out
    both = [(text, f"{label};Loud" if i % 2 else f"{label}; loud") for i, (text, label) in enumerate(ROWS)]
    told = json.loads(
        command("check", write(tmp_path / "b.csv", both), "--text", "text", "--label", "label", "--json").out
    )
    assert told["response"] == "labels" and "'Loud' (12) and 'loud' (12)" in told["findings"][-1]
    assert "has no rows" in command("check", write(tmp_path / "e.csv", []), "--text", "text", code=1).err


def test_ids_that_several_rows_have():
    assert look_at_ids(["a", "b", None, None, "c"]) == []
    assert look_at_ids(["a", "b", "a", "b"]) == [
        "Ids that several rows have: 'a', 'b'. --row explains all rows of an id."
    ]


def test_few_lists_among_classes():
    """Too few for labels, but told; a name that only looks like a list is none."""
    assert "--response labels" in guess(["red", "blue"] * 30 + ["red;blue"], ";")[1]
    assert guess(["red", "blue"] * 30 + ["red;green"], ";") == ("class", "the cells are text")
