"""Model cards: what is filled in, and that names are no markup."""

import re

import pytest
from typer.testing import CliRunner

from supertopic import LDA, SLDAClassifier, SLDARegressor, save
from supertopic.command.cli import app

TEXTS = ["goal match team win", "team match win goal", "vote law senate party", "law vote party bill"] * 15
QUICK = {"n_topics": 3, "n_chains": 2, "burn_in": 5, "n_draws": 4, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return SLDAClassifier(**QUICK).fit(TEXTS, ["*sport*", "*sport*", "law|s", "law|s"] * 15)


def headings(text):
    return re.findall(r"^## (.*)$", text, flags=re.MULTILINE)


def test_a_card_has_its_sections_and_the_figures_of_the_model(model):
    text = model.card("Tickets")
    assert text.startswith("# Tickets\n")
    assert headings(text) == [
        "What it is", "Use", "Documents", "How good it is", "Topics", "Limits", "How it was made", "References",
    ]  # fmt: skip
    assert f"{model.held_out_['loss']:.3g}" in text and "`SLDAClassifier`" in text
    assert "K = 3" in text and text.count("@") >= 3  # references
    for words in model.top_words(n=1):
        assert words[0] in text


def test_names_are_no_markup(model):
    text = model.card("[a](b) <script>\n# c")
    assert r"\*sport\*" in text and r"law\|s" in text and "<script>" not in text
    assert text.splitlines()[0].startswith(r"# \[a\]") and "\n# c" not in text


@pytest.mark.parametrize("kind, y", [(SLDARegressor, list(range(60))), (LDA, None)], ids=["ratings", "no response"])
def test_other_responses(kind, y):
    found = kind(**QUICK).fit(TEXTS, y).card()
    assert len(headings(found)) == 8
    assert ("rating" in found) == (y is not None)


def test_the_command_writes_it(model, tmp_path):
    path, card = tmp_path / "a.model", tmp_path / "CARD.md"
    save(model, path)
    run = CliRunner().invoke(app, ["card", str(path), "-o", str(card), "--title", "Tickets"])
    assert run.exit_code == 0, run.output
    written = card.read_text(encoding="utf-8")
    assert written.startswith("# Tickets\n") and headings(written) == headings(model.card())
    assert "# a\n" in CliRunner().invoke(app, ["card", str(path)]).output
    assert CliRunner().invoke(app, ["card", str(path), "-o", str(path)]).exit_code != 0
