"""Token patterns of model files: one that backtracks for ever would stop every prediction."""

import json
import re
import subprocess
import sys

from sklearn.feature_extraction.text import CountVectorizer

from supertopic.estimators.texts import ANY_WORD, TOPIC_WORD

KNOWN = {TOPIC_WORD, ANY_WORD, CountVectorizer().token_pattern, r"(?u)\b[a-z]{3,}\b", r"\w+", r"\S+", "."}
SECONDS = 5.0  # for all trials of a pattern, which take milliseconds if it does not backtrack
LENGTH = 200  # letters of a trial: what doubles with each letter never ends, and squares do no harm
MOST_LETTERS, MOST_PARTS = 12, 8
LONGEST = 2000
TRY = "import json, re, sys; pattern, texts = json.load(sys.stdin)\nfor text in texts: re.findall(pattern, text)"


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that is not known if it is slow on texts that provoke it, in a process of its own."""
    if pattern in KNOWN:
        return
    if len(pattern) > LONGEST:
        raise ValueError(f"A token pattern may have {LONGEST:,} letters, got {len(pattern):,}.")
    re.compile(pattern)
    asked, command = json.dumps([pattern, provoking(pattern)]), [sys.executable, "-I", "-S", "-c", TRY]
    try:
        done = subprocess.run(command, input=asked.encode(), capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"The token pattern {pattern[:80]!r} may never finish on some texts, because it can match the same letters "
            f"in many ways. Use one without a repetition inside a repetition."
        ) from None
    if done.returncode:
        raise ValueError(f"The token pattern {pattern[:80]!r} cannot be used: {done.stderr.decode()[-200:]}")


def provoking(pattern: str) -> list[str]:
    """Texts that repeat what the pattern is made of, and then end otherwise."""
    parts = list(dict.fromkeys(re.findall(r"\w+", re.sub(r"\\.", " ", pattern))))[:MOST_PARTS]
    letters = list(dict.fromkeys(["a", "0", " ", "é", "-", "_", *"".join(parts)]))[:MOST_LETTERS]
    units = [*letters, *(a + b for a in letters for b in letters if a != b), *parts]
    begun = ["", *parts[:2]]
    repeated = [first + unit * (LENGTH // len(unit) + 1) for first in begun for unit in units]
    return [text + end for text in repeated for end in ("\x00", "\n!")]
