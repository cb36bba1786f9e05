"""What a release says of itself is said once, or is the same everywhere."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import supertopic

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


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


@pytest.mark.parametrize("extra", ["gpu", "ray", "plot", "diagnostics", "serve"])
def test_an_extra_that_is_named_is_there(extra):
    assert extra in PROJECT["optional-dependencies"]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    assert any(f"supertopic[{extra}]" in text for text in texts)
