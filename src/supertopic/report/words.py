"""Top words that read well: scores, words that are left out, pairs that are one thing, and names of topics."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from supertopic.model.posterior import Phrases

Analyze = Callable[[str], list[str]]  # the tokens of a text, in their order

ENOUGH_TOKENS = 5.0  # smallest count of a word in a topic that tables show it for
PLACE, PART = 10, 0.5  # a candidate needs PART times the count of the word at this place of the topic, or more

REACH = 5  # n words are chosen from the first REACH * n of the ranking
NEAR = 2  # two words are near each other if they are among the first NEAR * n
# a pair is shown as one if it has this part of the occurrences of its higher-ranked word (any two words; near ones)
USUALLY, OFTEN = 0.3, 0.1
MOSTLY = 0.5  # or, for two near words, this part of the occurrences of the lower-ranked word

LEAST_COUNT = 5  # smallest number of occurrences of a phrase
LEAST_PARTS = 0.15, 0.02  # smallest part of the occurrences of its rarer and of its other word that a phrase needs
LEAST_NPMI = 0.5  # smallest NPMI of the two words of a phrase
MOST_PHRASES = 5_000  # largest number of phrases
UNKNOWN, END = -1, -2  # numbers for a token that is not in the vocabulary, and for the end of a text
CHUNK = 1_000_000  # tokens whose pairs are counted at once
MOST_PAIRS = 4_000_000  # largest number of pairs that are kept while texts are read

NAME_LENGTH = 3  # largest number of words in a name
PHRASE_BONUS = 1.5  # how much better a phrase names a topic than a word at the same place

# what tokenisers make of "don't" and "we've", of HTML and of addresses
LEFTOVERS = frozenset((
    "ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "isn", "ll", "mustn", "needn", "re", "shan",
    "shouldn", "ve", "wasn", "weren", "wouldn",
    "amp", "br", "com", "gt", "href", "htm", "html", "http", "https", "lt", "nbsp", "org", "quot", "www",
))  # fmt: skip
NOT_PLURALS = frozenset((
    "adams", "always", "arms", "does", "economics", "edwards", "goods", "lens", "mars", "means", "news", "perhaps",
    "physics", "politics", "roberts", "sometimes", "whereas", "williams",
))  # fmt: skip


def word_scores(topics: np.ndarray, counts: np.ndarray, shares: np.ndarray, by: str) -> np.ndarray:
    """How well each word shows what each topic is about, (K, V); counts (K, V) are means over the draws.

    "frex" and "lift" compare the words that are frequent in a topic; the others come after them, by probability. FREX
    is the harmonic mean of two ranks: of the probability and of the exclusivity (Bischof and Airoldi 2012).
    """
    if by not in ("frex", "probability", "lift"):
        raise ValueError(f"by must be 'frex', 'probability' or 'lift', got {by!r}.")
    if by == "probability" or not topics.size:
        return topics
    scores, whole = -1.0 / (1.0 + topics), shares @ topics if by == "lift" else topics.sum(axis=0)
    for row, topic, count in zip(scores, topics, counts, strict=True):
        has = candidates(count)
        rare = topic[has] / whole[has]
        if by == "frex":
            ranks = [rankdata(x, method="max") / len(has) for x in (topic[has], rare)]
            rare = 2.0 / (1.0 / ranks[0] + 1.0 / ranks[1])
        row[has] = rare
    return scores


def candidates(count: np.ndarray) -> np.ndarray:
    """The words that are frequent in a topic, given its counts (V,): a rare word shows nothing, however exclusive."""
    place = max(len(count) - PLACE, 0)
    least = max(ENOUGH_TOKENS, PART * np.partition(count, place)[place])
    return np.flatnonzero(count >= min(least, count.max()))


# --- which words are shown


class Seen:
    """The words that are shown already; another case, plural or possessive form of one of them is not shown."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.singulars: set[str] = set()

    def add(self, word: str) -> None:
        word = without_case(word)
        self.words.add(word)
        self.singulars |= singulars(word)

    def __contains__(self, word: str) -> bool:
        word = without_case(word)
        return word in self.words or word in self.singulars or not self.words.isdisjoint(singulars(word))


def without_case(word: str) -> str:
    """The word in lower case, without the ending of a possessive."""
    word = word.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return word.removesuffix("'s").removesuffix("'") or word


def singulars(word: str) -> set[str]:
    """What an English word in lower case may be the plural of; nothing where that is doubtful."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")) or word in NOT_PLURALS:
        return set()
    found = {word[:-1]}
    if word.endswith("ies"):
        found.add(word[:-3] + "y")
    if len(word) > 4 and word.endswith(("ches", "oes", "ses", "shes", "xes", "zes")):
        found.add(word[:-2])
    return found


def is_leftover(word: str) -> bool:
    """Whether a token is a left-over of markup or of tokenising, has no letter, or is a single letter.

    A single letter of a script without upper case, such as the Chinese, can be a word.
    """
    if len(word) == 1:
        return not word.isalpha() or word.upper() != word.lower()
    return word.casefold() in LEFTOVERS or not any(map(str.isalpha, word))


def readable(names: np.ndarray, order: ArrayLike, n: int, phrases: Phrases | None = None) -> list[str]:
    """Choose the n words of a topic that are shown.

    Parameters
    ----------
    names : ndarray of shape (V,)
        The vocabulary.
    order : array-like of int
        The places of the topic's words in the vocabulary, the best word first.
    n : int
        The number of words.
    phrases : Phrases, optional
        Pairs of words that are shown as one, at the place of the better one.

    Returns
    -------
    list of str
        n words, or fewer where the ranking has fewer different ones. Left-overs of markup and of tokenising come last,
        and only where the best `5 n` words have too few others. Of the forms of a word the best one is shown.
    """
    n, ranked = max(n, 0), np.asarray(order, dtype=np.int64)
    joined = {} if phrases is None else join(phrases, names, ranked[: REACH * n], NEAR * n)
    shown: list[str] = []
    spare: list[str] = []
    seen = Seen()
    for place, index in enumerate(ranked.tolist()):
        if len(shown) == n or (place >= REACH * n and len(shown) + len(spare) >= n):
            break
        word, parts = str(names[index]), [str(names[i]) for i in joined.get(index, (index,))]
        if word in seen or " ".join(parts) in seen:
            continue
        if any(part in seen for part in parts):  # of "hard drive" after "drives", "hard" is shown
            parts = [word]
        (spare if len(parts) == 1 and is_leftover(word) else shown).append(" ".join(parts))
        for part in (*parts, " ".join(parts)):
            seen.add(part)
    return (shown + spare)[:n]


# --- pairs of words that are one thing


def join(phrases: Phrases, names: np.ndarray, order: np.ndarray, near: int) -> dict[int, tuple[int, int]]:
    """For each word of a ranking the pair that it is shown in; a word is in one pair only.

    The better word is shown in a pair if it usually stands in it: "york" becomes "new york". If both are among the
    `near` best words, it suffices that it often does, or that the other word mostly does: "new" becomes "new york" in a
    topic that has "york", and not in a topic that hardly has it.
    """
    place = {int(index): i for i, index in enumerate(order)}
    found: dict[int, tuple[int, int]] = {}
    for at in np.flatnonzero(np.isin(phrases.first, order) & np.isin(phrases.second, order)):
        pair = int(phrases.first[at]), int(phrases.second[at])
        better = int(place[pair[1]] < place[pair[0]])
        own, other = phrases.share[at, better], phrases.share[at, 1 - better]
        is_near = place[pair[1 - better]] < near and (own >= OFTEN or other >= MOSTLY)
        if (is_near or own >= USUALLY) and found.keys().isdisjoint(pair):
            words = [str(names[i]) for i in pair]
            if not all(map(is_leftover, words)) and LEFTOVERS.isdisjoint(map(str.casefold, words)):
                found[pair[0]] = found[pair[1]] = pair
    return found


def token_stream(vectorizer: Any) -> Analyze:
    """A function that gives the tokens of a text as a CountVectorizer makes them, stop words included.

    Without the stop words, "king of spain" would have the neighbours "king spain".
    """
    if callable(vectorizer.analyzer):
        return vectorizer.build_analyzer()
    preprocess, tokenize = vectorizer.build_preprocessor(), vectorizer.build_tokenizer()
    return lambda text: tokenize(preprocess(vectorizer.decode(text)))


def find_phrases(texts: Iterable[str], analyze: Analyze, vocabulary: ArrayLike) -> Phrases:
    """Find pairs of neighbours that say more than each word alone.

    A pair is kept if both words are in the vocabulary, it occurs 5 times or more, it is 15 % or more of the occurrences
    of its rarer word and 2 % of those of the other, and the normalised pointwise mutual information of the two as
    neighbours is 0.5 or more. Of more than 5,000 pairs those that add most to the mutual information of neighbours are
    kept.

    Parameters
    ----------
    texts : iterable of str
        Raw texts, which are read once.
    analyze : callable
        Gives the tokens of a text in their order, see `token_stream`.
    vocabulary : array-like of shape (V,)
        The words of the model.
    """
    words = np.asarray(vocabulary, dtype=object).ravel()
    size, n_tokens = len(words), 0
    occurs = np.zeros(size, np.int64)
    codes, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)  # a pair's code is first * size + second
    for ids in read_ids(texts, analyze, {str(word): i for i, word in enumerate(words)}):
        known = ids[ids >= 0]
        occurs += np.bincount(known, minlength=size)
        n_tokens += int(np.count_nonzero(ids > END))
        both = (ids[:-1] >= 0) & (ids[1:] >= 0) & (ids[:-1] != ids[1:])
        codes, counts = add_pairs(codes, counts, ids[:-1][both] * size + ids[1:][both])
    kept = counts >= LEAST_COUNT
    first, second = np.divmod(codes[kept], size)
    return select(first, second, counts[kept], occurs, n_tokens)


def read_ids(texts: Iterable[str], analyze: Analyze, index: dict[str, int]) -> Iterator[np.ndarray]:
    """The places of tokens in the vocabulary, for some texts at a time."""
    ids: list[int] = []
    for text in texts:
        ids += [index.get(token, UNKNOWN) for token in analyze(text)]
        ids.append(END)
        if len(ids) >= CHUNK:
            yield np.array(ids, np.int64)
            ids = []
    yield np.array(ids, np.int64)


def add_pairs(codes: np.ndarray, counts: np.ndarray, more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of pairs with their counts, to which further pairs are added; the rarest are dropped if there are many."""
    new, n_new = np.unique(more, return_counts=True)
    codes, inverse = np.unique(np.concatenate([codes, new]), return_inverse=True)
    counts = np.bincount(inverse, np.concatenate([counts, n_new]), len(codes)).astype(np.int64)
    if len(codes) > MOST_PAIRS:
        kept = counts > np.partition(counts, len(counts) // 2)[len(counts) // 2]
        codes, counts = codes[kept], counts[kept]
    return codes, counts


def select(first: np.ndarray, second: np.ndarray, counts: np.ndarray, occurs: np.ndarray, n_tokens: int) -> Phrases:
    """The pairs that say more than each word alone, those first that add most to the mutual information."""
    share = counts[:, None] / np.column_stack([occurs[first], occurs[second]])
    p = counts / n_tokens
    information = np.log(share[:, 0] * share[:, 1] / p)
    npmi = information / -np.log(p)  # p < 1, since a pair has two different words
    good = (np.sort(share, axis=1)[:, ::-1] >= LEAST_PARTS).all(axis=1) & (npmi >= LEAST_NPMI)
    best = np.flatnonzero(good)
    best = best[np.argsort(-(counts * information)[best], kind="stable")[:MOST_PHRASES]]
    return Phrases(first[best], second[best], share[best])


# --- names of topics


def suggest_name(words: Sequence[str], documents: Sequence[str] = (), analyze: Analyze | None = None) -> str:
    """Suggest a name of one to three words for a topic.

    Parameters
    ----------
    words : sequence of str
        The topic's top words and phrases, the best first.
    documents : sequence of str
        Texts of a few typical documents. Words that most of them have are preferred, and phrases are.
    analyze : callable, optional
        Gives the tokens of a text; by default, all that letters and digits make.
    """
    return ", ".join(shorten(rank_for_name(words, documents, analyze)))


def suggest_names(
    words_by_topic: Sequence[Sequence[str]], documents_by_topic: Sequence[Sequence[str]] | None = None,
    analyze: Analyze | None = None,
) -> list[str]:  # fmt: skip
    """Suggest a name for each topic, as `suggest_name` does; where names are equal, further words are added.

    Names are equal if they have the same words in any order. Topics that have the same words are numbered. A topic
    without words has no name, "".
    """
    documents = documents_by_topic if documents_by_topic is not None else [()] * len(words_by_topic)
    ranked = [rank_for_name(*topic, analyze) for topic in zip(words_by_topic, documents, strict=True)]
    chosen = [shorten(words) for words in ranked]
    while any(add_words(same, ranked, chosen) for same in equal_names(chosen)):
        pass
    names = [", ".join(words) for words in chosen]
    for same in equal_names(chosen):
        for number, topic in enumerate(same[1:], 2):
            names[topic] += f" ({number})"
    return names


def equal_names(chosen: list[list[str]]) -> list[list[int]]:
    """The groups of topics whose names have the same words."""
    groups = defaultdict(list)
    for topic, words in enumerate(chosen):
        if words:
            groups[frozenset(map(without_case, words))].append(topic)
    return [group for group in groups.values() if len(group) > 1]


def add_words(same: list[int], ranked: list[list[str]], chosen: list[list[str]]) -> bool:
    """Add to the names of some topics a word that few of the others have, and not all; whether there was one."""
    has = {topic: {without_case(word) for word in ranked[topic]} for topic in same}
    added = False
    for topic in same:
        left = [word for word in ranked[topic] if word not in chosen[topic]]
        n_others = [sum(without_case(word) in has[other] for other in same if other != topic) for word in left]
        if left and min(n_others) < len(same) - 1:
            chosen[topic] = [*chosen[topic], left[n_others.index(min(n_others))]]
            added = True
    return added


def shorten(words: list[str]) -> list[str]:
    """The first words that are a name: three at most, where a phrase counts as two; a long first one is a name."""
    kept, length = words[:1], len(words[0].split()) if words else 0
    for word in words[1:]:
        if length + len(word.split()) <= NAME_LENGTH:
            kept.append(word)
            length += len(word.split())
    return kept


def rank_for_name(words: Sequence[str], documents: Sequence[str], analyze: Analyze | None) -> list[str]:
    """The words of a topic without other forms of the same word, those first that name it best."""
    tokens = analyze or (lambda text: re.findall(r"\w+", text.casefold()))
    texts = [f" {' '.join(tokens(text))} " for text in documents]
    scores = {}
    for place, word in enumerate(words):
        stream = " ".join(tokens(word))
        has = sum(f" {stream} " in text for text in texts) / len(texts) if texts and stream else 0.0
        scores[word] = (0.25 + has) * (PHRASE_BONUS if " " in word else 1.0) / (2 + place)
    ranked, seen = [], Seen()
    for word in sorted(scores, key=lambda word: -scores[word]):
        if not any(part in seen for part in (word, *word.split())):
            ranked.append(word)
            for part in (word, *word.split()):
                seen.add(part)
    return ranked
