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


@pytest.mark.parametrize("extra", ["gpu", "ray", "plot", "diagnostics", "arviz", "serve"])
def test_an_extra_that_is_named_is_there(extra):
    assert extra in PROJECT["optional-dependencies"]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    assert any(f"supertopic[{extra}]" in text for text in texts)


def test_the_recipe_of_conda_is_of_this_version():
    """It needs what pip needs: a package has another name there, or none, in no case."""
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert re.findall(r'^  version: "(.+)"$', recipe, re.M) == [PROJECT["version"]]
    assert re.findall(r'^  python_min: "(.+)"$', recipe, re.M) == [PROJECT["requires-python"].removeprefix(">=")]
    _, _, run = recipe.partition("\n  run:\n")
    needed = re.findall(r"^    - (\S+) (>=\S+)$", run.partition("\n\n")[0], re.M)
    assert [name + version for name, version in needed] == PROJECT["dependencies"]


def test_the_lowest_python_is_said_once():
    lowest = PROJECT["requires-python"].removeprefix(">=")
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert named[0] == lowest and named == sorted(named, key=lambda text: int(text.partition(".")[2]))
