"""What the site has beside its pages: the cheat sheet, links from name to name, tables of methods, source links."""

import re
from importlib import import_module
from pathlib import Path
from pydoc import locate

import pytest

import supertopic

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture
def part(monkeypatch):
    """A module of the folder of the documentation."""
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_cheat_sheet_is_one_page(part, tmp_path):
    sheet = part("cheat_sheet")
    sheet.write_pdf(tmp_path / "a.pdf", "0.0")
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and re.findall(rb"/Type /Pages /Kids \[[^]]*\] /Count (\d+)", pdf) == [b"1"]
    lines = [text for _, _, text, _ in sheet.laid_out()]
    assert len(lines) > 100 and all(y > sheet.MARGIN for _, y, _, _ in sheet.laid_out())
    for code in re.findall(r"^```(?:python|console)\n(.*?)^```$", page("cheat-sheet.md"), re.MULTILINE | re.DOTALL):
        assert set(code.splitlines()) <= set(lines)


@pytest.mark.parametrize("more", [["x" * 100], ["line"] * 100])
def test_a_cheat_sheet_that_does_not_fit_is_an_error(part, monkeypatch, more):
    sheet = part("cheat_sheet")
    there = [*sheet.sections(), ("More", more)]
    monkeypatch.setattr(sheet, "sections", lambda: there)
    with pytest.raises(ValueError, match="letters: 'xx" if len(more) == 1 else "does not fit on one page: 'More'"):
        list(sheet.laid_out())


def test_the_cheat_sheet_names_all_estimators():
    for kind in ("LDA", *(name for name in supertopic.__all__ if name.endswith(("Classifier", "Regressor")))):
        assert f"`{kind}`" in page("cheat-sheet.md"), kind


def test_the_file_for_assistants(part):
    text = part("cheat_sheet").llms_text()
    assert text.startswith("# supertopic\n\n> Supervised topic models for Python.")
    for link in re.findall(r"\]\((\S+)\.html\)", text):
        assert link == "auto_examples/index" or (DOCS / f"{link}.md").exists()
    assert "- [Guide](guide.html): Which estimator" in text and "model.predict_set(" in text


def test_names_lead_to_other_names(part):
    also = part("see_also").SEE_ALSO
    listed = set(re.findall(r"^   ([\w.]+)$", page("reference.md"), re.MULTILINE))
    short = {name.rpartition(".")[2] for name in listed}
    assert set(also) <= short and set(supertopic.__all__) & short <= {*also, "Registration"}
    for name, entries in also.items():
        for entry in entries:
            target, _, why = entry.partition(" : ")
            assert target in listed and target.rpartition(".")[2] != name and why.endswith((".", "?")), (name, entry)
            assert locate(f"supertopic.{target}") is not None, target
    lines = ["Summary."]
    part("see_also").add_see_also(supertopic.LDA, "class", lines)
    assert lines[1:4] == ["", "See Also", "--------"] and lines[4].startswith("supertopic.SLDAClassifier : ")


def test_tables_of_methods_and_source_links(part):
    pytest.importorskip("sphinx")
    extras = part("site_extras")
    methods = extras.own_methods("supertopic.SLDAClassifier")
    assert methods[:2] == ["fit", "partial_fit"] and {"explain", "report", "coef_interval"} <= set(methods)
    assert not {"get_params", "make_response", "coef_", "own_library"} & set(methods)
    assert "decide" not in extras.own_methods("supertopic.LDA")
    for name in ("SLDAClassifier", "SLDAClassifier.fit", "EffectDisplay.from_estimator", "save"):
        link = extras.source_of("py", {"module": "supertopic", "fullname": name})
        file, line = re.fullmatch(r"\.\./source/src/(supertopic/.*\.py)\.html#line-(\d+)", link).groups()
        text = (ROOT / "src" / file).read_text(encoding="utf-8").splitlines()[int(line) - 1 : int(line) + 4]
        assert any(re.search(rf"(class|def) {name.rpartition('.')[2]}\b", found) for found in text), (name, text)
    assert extras.source_of("py", {"module": "supertopic", "fullname": "baselines.SYSTEMS"}) is None


def test_the_landing_page_has_the_figures_of_the_noise_table():
    table = page("accuracy.md").partition("\n## Noise\n")[2].partition("\n## ")[0]
    shares = sorted(re.findall(r"SLDAClassifier \| [18] \| (0\.\d+)", table))
    earlier = sorted(number for pair in re.findall(r"SLDAClassifier \| (0\.\d+) / (0\.\d+)", table) for number in pair)
    said = " ".join(page("index.md").split())
    assert len(shares) == 6 and f"**{shares[0]} to {shares[-1].rstrip('0')}** of the 90 % intervals" in said
    assert len(earlier) == 6 and f"in version 0.1 it was **{earlier[0]} to {earlier[-1]}**" in said
