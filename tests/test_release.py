"""What a release says of itself is said once, or is the same everywhere."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import supertopic

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pages() -> list[Path]:
    """The documentation."""
    return [path for folder in (ROOT, ROOT / "docs", ROOT / "benchmarks") for path in folder.glob("*.md")]


def test_the_version_is_said_once():
    """The package asks its metadata; where they are older than pyproject.toml, it has to be installed again."""
    assert supertopic.__version__ == version("supertopic") == PROJECT["version"]
    said = [path for path in (ROOT / "src").rglob("*.py") if f'"{PROJECT["version"]}"' in path.read_text("utf-8")]
    assert not said


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.M) == [PROJECT["version"]]
    (date,) = re.findall(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, re.M)
    (told,) = re.findall(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[:1]
    assert told == (PROJECT["version"], date)


def test_types_are_for_others_too():
    assert (Path(supertopic.__file__).parent / "py.typed").is_file() and "Typing :: Typed" in PROJECT["classifiers"]


@pytest.mark.parametrize("extra", ["gpu", "ray", "plot", "diagnostics"])
def test_an_extra_that_is_named_is_there(extra):
    assert extra in PROJECT["optional-dependencies"]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    assert any(f"supertopic[{extra}]" in text for text in texts)


@pytest.mark.parametrize("page", sorted(path.relative_to(ROOT).as_posix() for path in pages()))
def test_links_lead_somewhere(page):
    """Files and pictures that a page points to are there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
        if not target.startswith(("http://", "https://", "mailto:")):
            path = target.partition("#")[0]
            assert not path or (ROOT / page).parent.joinpath(path).exists(), f"{page} points to {target}"
