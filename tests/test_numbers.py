"""Numbers in the documentation are those of the files of results, and one command makes these."""

import re
import sys

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import history, tables

PAGES = {name: (tables.ROOT / name).read_text(encoding="utf-8") for name in tables.PAGES}


@pytest.mark.parametrize("page", list(PAGES))
def test_tables_are_those_of_the_results(page):
    """`python -m benchmarks docs` writes them."""
    assert tables.with_tables(PAGES[page]) == PAGES[page]


def test_every_table_is_on_a_page():
    marked = [found["name"] for text in PAGES.values() for found in tables.MARK.finditer(text)]
    assert sorted(marked) == sorted(tables.TABLES)
    assert len(marked) == sum(len(re.findall("^<!-- results:", text, re.M)) for text in PAGES.values()), (
        "a mark without a table below it"
    )


def test_sentences_are_those_of_the_results():
    for page, said in tables.sentences().items():
        text = re.sub(r"\s+", " ", (tables.ROOT / page).read_text(encoding="utf-8"))
        assert [sentence for sentence in said if sentence not in text] == []


def test_a_stale_number_is_noticed():
    text = "before\n\n<!-- results: imdb -->\n\n" + tables.TABLES["imdb"]() + "\nafter\n"
    assert tables.with_tables(text) == text
    assert tables.with_tables(re.sub(r"0\.882", "0.883", text)) == text
    assert tables.with_tables(text.replace("| logistic", "| other")) == text
    with pytest.raises(KeyError):
        tables.with_tables(text.replace("imdb -->", "imbd -->"))


def test_all_benchmarks_are_kept_and_not_made_again(tmp_path, monkeypatch, capsys):
    """Each in a process of its own, with its results in the folder; one that fails does not stop the others."""
    parts = {
        "good": benchmarks.Part("a good one", "platform", "--quick", "--terse"),
        "bad": benchmarks.Part("a bad one", "nosuchmodule", "", ""),
    }
    monkeypatch.setattr(benchmarks, "PARTS", parts)
    assert benchmarks.run_all(["bad", "good"], tmp_path / "new", quick=False) == 1
    assert "bad failed" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["bad.part", "good.txt"]
    written = (tmp_path / "new" / "good.txt").read_text(encoding="utf-8")
    assert re.search(r"^date: \d{4}-\d\d-\d\d\ncpu: .+\ncommit: .*\npython: .+\nversions: .+\n", written)
    assert "command: python -m platform --terse\n" in written
    assert benchmarks.run_all(["good"], tmp_path / "new", quick=True) == 0
    assert "good: is there" in capsys.readouterr().out


def test_results_go_where_they_are_asked_to(tmp_path, monkeypatch):
    assert history.place("texts") == tables.BENCHMARKS / "texts.json"
    monkeypatch.setenv("SUPERTOPIC_BENCHMARKS", str(tmp_path))
    history.append(history.place("texts"), {"rows": [1]})
    (run,) = history.read(tmp_path / "texts.json")
    assert run["rows"] == [1] and {"date", "cpu", "commit", "versions"} <= set(run)


def test_the_command(monkeypatch, capsys):
    for words, message in (
        (["accuracy"], "--out says where"), (["docs", "accuracy"], "docs stands alone"), (["none"], "invalid choice"),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        with pytest.raises(SystemExit):
            benchmarks.main()
        assert message in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["benchmarks", "docs"])
    assert benchmarks.main() == 0 and "Nothing has changed" in capsys.readouterr().out
