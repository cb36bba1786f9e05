"""Words and phrases that readers stumbled on: translated idioms, metaphors, verbs of speech for models and numbers.

They must not come back into what users read: pages, tutorials, docstrings, messages. Say what happens instead: a model
predicts, an interval contains, a file is refused, a warning names.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
CODE = sorted([*ROOT.glob("src/supertopic/**/*.py"), *ROOT.glob("examples/*.py"), *ROOT.glob("benchmarks/*.py")])
SCREENS = sorted([*ROOT.glob("src/supertopic/**/*.js"), *ROOT.glob("src/supertopic/**/*.html")])
OLD_NAMES = re.compile(r"^\|.*$", re.MULTILINE)  # rows of the changelog's table of old and new names
PHRASES = (
    r"foret(?:ell|old)\w*", r"(?:is|are|was|were) told", r"verdicts?", r"speaks?(?: for| against| of)?", r"loud\w*",
    r"voices?", r"hears?", r"heard", r"den(?:y|ies|ied)", r"mend(?:s|ed)?", r"timid", r"foresees?",
    r"that there (?:is|are) not", r"in the place of", r"in place of as much", r"as much of the usual",
    r"of which (?:nothing|little|it is)", r"of whom", r"says so", r"(?:finds?|found) back", r"gives? back",
    r"wants? (?:a|an|one)",
    r"is believed", r"be believed", r"knows? nothing", r"knows? little", r"hidden documents?", r"is credited with",
    r"turns? (?:a|an|the) \w+ round", r"lives? beyond", r"how (?:well|good) [\w ]+ reads?", r"what [\w ]+ leaves\b",
    r"is all (?:this|one|that) (?:topic|subject)", r"is all (?:of )?(?:the|topic)", r"asks? for Python",
    r"made again", r"says? nothing", r"(?:have|has) no use for", r"has no part", r"came out", r"as it should be",
    r"give or take",
)  # fmt: skip
STUMBLES = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b", re.IGNORECASE)


def prose(path: Path) -> str:
    """What a reader sees of a file: all of a page, the strings and comments of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return OLD_NAMES.sub("", text) if path.name == "CHANGELOG.md" else text
    strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    shown = [string for string in strings if isinstance(string, str) and " " in string.strip()]
    return "\n".join([*shown, *(re.findall(r"^# .*$", text, re.MULTILINE) if path.parent.name == "examples" else [])])


@pytest.mark.parametrize("folder", ["pages", "code", "screens"])
def test_words_that_readers_stumbled_on(folder):
    found = []
    for path in {"pages": PAGES, "code": CODE, "screens": SCREENS}[folder]:
        text = " ".join(prose(path).split())
        found += [f"{path.relative_to(ROOT)}: ...{text[max(0, m.start() - 40) : m.end() + 30]}..."
                  for m in STUMBLES.finditer(text)]  # fmt: skip
    assert not found, "\n".join(found)


def test_there_is_something_to_read():
    assert len(PAGES) > 20 and len(CODE) > 100 and len(SCREENS) > 5
    assert STUMBLES.search("topics foretell it") and "draw eta" in prose(ROOT / "src/supertopic/sampling/gibbs.py")
