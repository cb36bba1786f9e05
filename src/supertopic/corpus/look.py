"""A look at texts and labels before a fit: what is probably a mistake, and what can be corrected.

Nothing here changes what it is given. Rows count from 1, as messages of the command do.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

NO_TEXT = {"na", "n/a", "#n/a", "<na>", "nan", "null"}  # cells that stand for nothing; "none" may be an answer
FEW_ROWS = 5  # a class with fewer is rare
SHOWN, LETTERS = 4, 30  # examples in a message, and letters of each
MINOR = 0.1  # the largest share of a spelling that is taken for a slip
SHORT, MOST_SHORT = 3, 0.5  # words of a very short text; the share of such texts that is worth a message
LEAST_IDS, MOST_IDS = 20, 0.9  # texts, and the share of them that must look like ids
ID = re.compile(r"(?=\S*\d)\S{1,40}")
BROKEN = re.compile("\ufffd|[\u00c2\u00c3][\u0080-\u00bf\u20ac\u0192\u201a-\u2122]|\u00e2\u20ac")
SAMPLE = 500  # texts whose language is guessed
LEAST_WORDS, LEAST_SHARE = 50, 0.05  # words to guess from; the share of them that must be a language's small words
SMALL_WORDS = {
    "English": "the of and to in is that it for was on are with as this be at have not you from or by but",
    "German": "der die und das ist nicht ich zu den ein eine mit auf es sie von dem im für sich auch wir bei sind",
    "French": "le la les de des et un une est pas que je pour dans ce qui sur au il vous avec nous ne du plus",
    "Spanish": "el la los las de que y en un una es por con no para se del al lo su como más pero muy está",
    "Italian": "il la di che e un una è per non con del della sono le i si in da ma come più ho anche gli",
    "Portuguese": "o a os as de que e em um uma é por com não para se do da no na mais como foi ao muito",
    "Dutch": "de het een en van is dat niet ik op te in zijn voor met er aan die maar bij ook wij naar was",
}
LANGUAGES = {name: set(words.split()) for name, words in SMALL_WORDS.items()}
WORD = re.compile(r"[^\W\d_]+")


class Look(NamedTuple):
    """What was found: sentences, and the texts or labels with clear mistakes corrected."""

    findings: list[str]
    corrected: Any


def shown(values: Iterable[Any]) -> str:
    """A few values, in a message."""
    values = list(values)
    names = ", ".join(repr(str(value)[:LETTERS]) for value in values[:SHOWN])
    return names + (f" and {len(values) - SHOWN:,} more" if len(values) > SHOWN else "")


def rows_of(mask: Sequence[bool] | np.ndarray, names: Sequence[str] | None = None) -> str:
    """The first rows of some, in a message."""
    rows = [str(row + 1) if names is None else names[row][:LETTERS] for row in np.flatnonzero(mask)[: SHOWN + 1]]
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(rows[:SHOWN])}{' ...' if len(rows) > SHOWN else ''}"


def same_texts(texts: Sequence[str] | np.ndarray) -> np.ndarray:
    """For each text the place of the first one that is the same but for white space at its ends: (n_docs,).

    An empty text is like no other one.
    """
    first: dict[str, int] = {}
    return np.array([first.setdefault(text.strip(), i) if text.strip() else i for i, text in enumerate(texts)], int)


def look_at_texts(
    texts: np.ndarray, labels: Sequence[Any] | None = None, english: bool = True, names: Sequence[str] | None = None
) -> Look:
    """What texts have that is probably a mistake; `english`: whether English stop words are left out.

    Labels are compared between texts that are the same. Texts that are ids are refused. `names` are those of rows.
    """
    if not len(texts):
        return Look([], texts)
    refuse_ids(texts)
    empty = np.array([not text.strip() for text in texts])
    stand_in = np.array([text.strip().lower() in NO_TEXT for text in texts])
    found = []
    if empty.any() or stand_in.any():
        parts = [f"{empty.sum():,} empty"] * bool(empty.any())
        parts += [f"{stand_in.sum():,} like {texts[stand_in.argmax()].strip()!r}"] * bool(stand_in.any())
        found.append(f"No text: {', '.join(parts)} ({rows_of(empty | stand_in, names)}). All count as empty.")
    found += look_at_duplicates(texts, labels, names)
    broken = np.array([BROKEN.search(text) is not None for text in texts])
    if broken.any():
        example = BROKEN.search(texts[broken.argmax()])
        assert example is not None
        found.append(
            f"Wrong encoding: {broken.sum():,} {'text has' if broken.sum() == 1 else 'texts have'} letters such as "
            f"{example[0]!r} ({rows_of(broken, names)}). Export the table as UTF-8."
        )
    full = texts[~(empty | stand_in)]
    brief = np.array([len(WORD.findall(text[:200])) < SHORT for text in full], bool)
    if len(full) and brief.mean() > MOST_SHORT:
        found.append(f"Short: {brief.mean():.0%} of the texts have fewer than {SHORT} words. Is it the right column?")
    found += look_at_language(full) if english else []
    return Look(found, np.where(stand_in, "", texts))


def refuse_ids(texts: np.ndarray) -> None:
    """Raise a ValueError where texts are ids, codes or numbers."""
    like = [text.strip() for text in texts if ID.fullmatch(text.strip())]
    if len(like) > max(LEAST_IDS, MOST_IDS * len(texts)) and len(set(like)) > MOST_IDS * len(like):
        raise ValueError(
            f"The texts look like ids or numbers, such as {shown(like[:2])}: {len(like):,} of {len(texts):,} are one "
            "word with a digit. --text names the column with the texts."
        )


def look_at_duplicates(texts: np.ndarray, labels: Sequence[Any] | None, names: Sequence[str] | None) -> list[str]:
    """A sentence about texts that are the same."""
    first = same_texts(texts)
    again = first != np.arange(len(texts))
    if not again.any():
        return []
    message = f"Duplicates: {again.sum():,} ({rows_of(again, names)})"
    if labels is not None:
        seen: dict[int, set[str]] = {}
        for place, label in zip(first, labels, strict=True):
            if label is not None:
                seen.setdefault(int(place), set()).add(str(label))
        differ = [place for place, own in seen.items() if len(own) > 1]
        if differ:
            example = rows_of(np.arange(len(texts)) == differ[0], names)
            message += f"; texts with different labels: {len(differ):,} (such as {example})"
    return [message + ". Copies stay together on one side of --test-size."]


def look_at_ids(cells: Sequence[Any]) -> list[str]:
    """A sentence about ids that several rows have."""
    size = Counter(str(cell) for cell in cells if cell is not None)
    again = [name for name, n in size.items() if n > 1]
    return [f"Ids that several rows have: {shown(again)}. --row explains all rows of an id."] if again else []


def look_at_language(texts: np.ndarray) -> list[str]:
    """A sentence about the language, unless it may be English."""
    some = texts[:: max(1, len(texts) // SAMPLE)]
    text = " ".join(part[:2000] for part in some).lower()
    words = WORD.findall(text)
    letters = [letter for letter in text[:20000] if letter.isalpha()]
    foreign = sum(ord(letter) > 0x24F for letter in letters)
    advice = "the stop words are English. --stop-words names a file of others, or none"
    if foreign > len(letters) / 2:
        spaces = sum(ord(letter) >= 0x2E80 for letter in letters) > len(letters) / 2
        more = "; --token-pattern . is for languages without spaces" if spaces else ""
        return [f"Language: most letters are not Latin, but {advice}{more}."]
    if len(words) < LEAST_WORDS:
        return []
    share = {name: sum(word in small for word in words) / len(words) for name, small in LANGUAGES.items()}
    best = max(share, key=lambda name: share[name])
    if best == "English" or share[best] < max(LEAST_SHARE, 1.5 * share["English"]):
        return []
    return [f"Language: the texts look {best}, but {advice}."]


def plain_space(label: str) -> str:
    """A label without white space at its ends, and with single spaces inside."""
    return " ".join(label.split())


def look_at_labels(labels: Iterable[str]) -> tuple[list[str], Callable[[str], str]]:
    """What labels have that is probably a mistake, and how each is to be written.

    White space never makes a difference. Where spellings differ by case, a rare one is taken for a slip.
    """
    raw = Counter(labels)
    size: Counter[str] = Counter()
    for label, n in raw.items():
        size[plain_space(label)] += n
    found, changed = [], [label for label in raw if label != plain_space(label)]
    if changed:
        found.append(f"White space in labels: {shown(changed)}. It is removed.")
    alike: dict[str, list[str]] = {}
    for label in sorted(size, key=lambda name: (-size[name], name)):
        alike.setdefault(label.casefold(), []).append(label)
    spelling: dict[str, str] = {}
    slips, unclear = [], []
    for names in (names for names in alike.values() if len(names) > 1):
        total = sum(size[name] for name in names)
        if total - size[names[0]] <= MINOR * total:
            spelling |= dict.fromkeys(names[1:], names[0])
            slips += [f"{name!r} ({size[name]:,}) counts as {names[0]!r}" for name in names[1:]]
        else:
            unclear.append(" and ".join(f"{name!r} ({size[name]:,})" for name in names[:SHOWN]))
    if slips:
        found.append(f"Case of labels: {'; '.join(slips[:2])}{' ...' if len(slips) > 2 else ''}.")
    if unclear:
        found.append(f"Case of labels: {'; '.join(unclear[:2])} are different classes. Write them in one way.")

    def write(label: str) -> str:
        label = plain_space(label)
        return spelling.get(label, label)

    return found, write


def look_at_sizes(labels: Iterable[Any]) -> list[str]:
    """A sentence about classes with very few rows."""
    size = Counter(str(label) for label in labels)
    rare = sorted((name for name, n in size.items() if n < FEW_ROWS), key=lambda name: (size[name], name))
    if not rare or len(rare) == len(size):
        return []
    names = ", ".join(f"{name[:LETTERS]!r} ({size[name]})" for name in rare[:SHOWN])
    more = f" and {len(rare) - SHOWN:,} more" if len(rare) > SHOWN else ""
    return [
        f"Fewer than {FEW_ROWS} rows: {names}{more}. Such a class is fitted, but it is hardly ever "
        "predicted. Give it more rows, or merge it with another class."
    ]
