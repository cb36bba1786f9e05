"""Top words that read well: which words are frequent enough, which are shown, phrases, and names of topics."""

import itertools
import pickle
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from conftest import corpus
from supertopic.report import words
from supertopic.report.words import (
    Phrases,
    find_phrases,
    is_leftover,
    readable,
    suggest_name,
    suggest_names,
    token_stream,
    word_scores,
)

pytestmark = pytest.mark.usefixtures("short_fits")


def show(names, n, phrases=None):
    """The n words that are shown of a ranking."""
    return readable(np.array(names, dtype=object), np.arange(len(names)), n, phrases)


def pairs(*rows):
    """Phrases from (first, second, share of the first, share of the second)."""
    first, second, *share = zip(*rows, strict=True)
    return Phrases(np.array(first), np.array(second), np.array(share).T)


def find(texts, vocabulary, analyze=str.split):
    found = find_phrases(texts, analyze, vocabulary)
    return [(vocabulary[a], vocabulary[b]) for a, b in zip(found.first, found.second, strict=True)]


# --- scores


@pytest.mark.parametrize("by", ["frex", "lift"])
def test_rare_words_come_after_frequent_ones(by):
    """A word that is exclusive counts only if it has half of the tokens of the topic's tenth word."""
    counts = np.zeros((2, 40))
    counts[:, :20] = [[1000], [900]]  # both topics have these
    counts[:, :20] += np.arange(20) * 5
    counts[0, 20:30] = 525  # the tenth has 1,050
    counts[0, 30:35] = 524
    counts[1, 35:] = 480
    topics = (counts + 0.01) / (counts + 0.01).sum(axis=1, keepdims=True)
    order = np.argsort(-word_scores(topics, counts, np.array([0.5, 0.5]), by), axis=1, kind="stable")
    assert set(order[0, :30]) == set(range(30)) and set(order[0, 30:35]) == set(range(30, 35))
    assert set(order[1, :25]) == {*range(20), *range(35, 40)}
    assert by == "frex" or set(order[0, :10]) == set(range(20, 30))


@pytest.mark.parametrize("by", ["frex", "lift"])
def test_a_word_of_a_small_topic_has_five_tokens(by):
    counts = np.array([[8.0] * 3 + [4.0] * 9, [1.0] * 12])
    topics = (counts + 0.01) / (counts + 0.01).sum(axis=1, keepdims=True)
    scores = word_scores(topics, counts, np.array([0.7, 0.3]), by)
    assert (scores[0, :3] > 0).all() and (scores[0, 3:] < 0).all()
    assert (scores[1] > 0).all()  # no word of the topic has five


def test_frex_is_the_harmonic_mean_of_ranks():
    counts = np.array([[50.0, 40.0, 30.0, 20.0], [50.0, 1.0, 30.0, 2.0]])
    topics = counts / counts.sum(axis=1, keepdims=True)
    scores = word_scores(topics, counts, np.array([0.6, 0.4]), "frex")[0]
    exclusive = topics[0] / topics.sum(axis=0)
    for own, rare, score in zip(topics[0], exclusive, scores, strict=True):
        ranks = np.mean(topics[0] <= own), np.mean(exclusive <= rare)
        np.testing.assert_allclose(score, 2 / (1 / ranks[0] + 1 / ranks[1]))


def test_lift_is_the_ratio_to_the_corpus():
    counts = np.array([[50.0, 40.0, 30.0], [50.0, 10.0, 90.0]])
    topics, shares = counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=1) / counts.sum()
    overall = counts.sum(axis=0) / counts.sum()
    np.testing.assert_allclose(word_scores(topics, counts, shares, "lift"), topics / overall)


def test_no_words_have_no_scores():
    assert word_scores(np.zeros((3, 0)), np.zeros((3, 0)), np.ones(3) / 3, "frex").shape == (3, 0)


# --- which words are shown


@pytest.mark.parametrize("word", ["ve", "DIDN", "br", "www", "a", "7", "1993", "--", "_", "é", "²"])
def test_leftovers_are_shown_last(word):
    assert show(["apple", word, "pear"], 2) == ["apple", "pear"]
    assert show(["apple", word, "pear"], 3) == ["apple", "pear", word]


@pytest.mark.parametrize("word", ["水", "ק", "été", "река", "x0", "हिन्दी", "1990s"])
def test_words_of_any_script_are_shown(word):
    assert not is_leftover(word)
    assert show(["apple", word, "pear"], 2) == ["apple", word]


def test_a_vocabulary_without_good_words_is_shown_as_it_is():
    assert show(["3", "1", "2", "br"], 3) == ["3", "1", "2"]
    assert sorted(show(["'", "'s"], 2)) == ["'", "'s"]
    assert show([f"x{i}" for i in range(9)], 4) == ["x0", "x1", "x2", "x3"]


def test_a_good_word_far_down_the_ranking_takes_no_place():
    """The words of a topic are its first: the five thousandth is about something else."""
    numbers = [str(i) for i in range(100)]
    assert show([*numbers, "apple"], 2) == ["0", "1"]
    assert show([*numbers[:9], "apple"], 2) == ["apple", "0"]
    assert show(["apple"] * 50 + ["pear"], 2) == ["apple", "pear"]  # there is nothing else to show


SAME = ["Apple apple", "car cars", "city cities", "class classes", "car car's", "cars car\u2019s", "cars' car",
        "movie movies", "box boxes", "church churches", "hero heroes", "bus buses", "dish dishes",
        "waltz waltzes"]  # fmt: skip
OTHERS = ["news new", "has ha", "bus bu", "class clas", "this thi", "does do", "means mean", "uses us",
          "analysis analysi", "virus viru", "apple apples1", "princess princes", "williams william"]  # fmt: skip


@pytest.mark.parametrize("pair", SAME)
def test_one_form_of_a_word_is_shown(pair):
    a, b = pair.split()
    assert show([a, "pear", b, "plum"], 3) == [a, "pear", "plum"]
    assert show([b, "pear", a, "plum"], 3) == [b, "pear", "plum"]
    assert show([a, b], 2) == [a]


@pytest.mark.parametrize("pair", OTHERS)
def test_different_words_are_shown(pair):
    a, b = pair.split()
    assert show([a, b], 2) == [a, b] and show([b, a], 2) == [b, a]


def test_a_phrase_is_shown_once_at_the_place_of_its_better_word():
    names, phrases = ["york", "taxi", "new", "street", "police"], pairs((2, 0, 0.1, 0.9))
    assert show(names, 3, phrases) == ["new york", "taxi", "street"]
    assert show(["taxi", "new", "york", "street"], 3, pairs((1, 2, 0.1, 0.9))) == ["taxi", "new york", "street"]


def test_a_word_far_from_its_partner_is_joined_if_it_is_usually_in_the_phrase():
    many = [f"word{i}" for i in range(6)]
    assert show(["york", *many, "new"], 2, pairs((7, 0, 0.1, 0.9)))[0] == "new york"
    assert show(["new", *many, "york"], 2, pairs((0, 7, 0.1, 0.9)))[0] == "new"
    assert show(["york", *many * 2, "new"], 2, pairs((13, 0, 0.1, 0.9)))[0] == "york"  # which the topic hardly has


def test_near_words_are_joined_if_one_of_them_is_often_in_the_phrase():
    names = ["growth", "gdp", "tax", "trade"]
    assert show(names, 2, pairs((1, 0, 0.4, 0.05))) == ["growth", "gdp"]
    assert show(names, 2, pairs((1, 0, 0.6, 0.05))) == ["gdp growth", "tax"]
    assert show(names, 2, pairs((1, 0, 0.4, 0.15))) == ["gdp growth", "tax"]


def test_a_word_is_in_one_phrase():
    phrases = pairs((0, 1, 0.5, 0.9), (1, 2, 0.9, 0.5))
    assert show(["new", "york", "city", "taxi"], 3, phrases) == ["new york", "city", "taxi"]
    phrases = pairs((2, 0, 0.5, 0.9), (0, 1, 0.9, 0.5))
    assert show(["york", "city", "new", "taxi"], 3, phrases) == ["new york", "city", "taxi"]


def test_phrases_have_no_leftovers():
    assert show(["don", "know", "pear"], 2, pairs((0, 1, 0.9, 0.9))) == ["know", "pear"]
    assert show(["12", "30", "pear", "plum"], 2, pairs((0, 1, 0.9, 0.9))) == ["pear", "plum"]
    assert show(["Know", "Don", "pear"], 2, pairs((1, 0, 0.9, 0.9))) == ["Know", "pear"]
    assert show(["windows", "95", "pear"], 2, pairs((0, 1, 0.9, 0.9))) == ["windows 95", "pear"]
    assert show(["95", "pear", "windows"], 2, pairs((2, 0, 0.9, 0.9))) == ["windows 95", "pear"]


def test_parts_of_a_phrase_are_not_shown_again():
    hard = pairs((0, 1, 0.9, 0.9))
    assert show(["hard", "drive", "drives", "disk"], 2, hard) == ["hard drive", "disk"]
    assert show(["drives", "hard", "drive", "disk"], 3, pairs((1, 2, 0.9, 0.9))) == ["drives", "hard", "disk"]
    assert show(["hard", "hard drive", "drive", "disk"], 2, pairs((0, 2, 0.9, 0.9))) == ["hard drive", "disk"]
    assert show(["hard drive", "hard", "drive", "disk"], 2, pairs((1, 2, 0.9, 0.9))) == ["hard drive", "disk"]


WORDS = st.one_of(
    st.text(max_size=8), st.sampled_from(["br", "car", "cars", "Cars", "car's", "1", "new", "york", "水", "a" * 10_000])
)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_shown_words_are_different_and_from_the_vocabulary(data):
    names = np.array([*data.draw(st.lists(WORDS, max_size=12)), None], dtype=object)[:-1]
    size = len(names)
    order = np.array(data.draw(st.permutations(range(size))), dtype=int)
    index = st.integers(0, max(size - 1, 0))
    rows = data.draw(st.lists(st.tuples(index, index), max_size=6)) if size else []
    rows = np.array([row for row in rows if row[0] != row[1]], dtype=int).reshape(-1, 2)
    phrases = Phrases(rows[:, 0], rows[:, 1], np.full(rows.shape, data.draw(st.floats(0, 1))))
    n = data.draw(st.integers(0, 15))
    plain, joined = readable(names, order, n), readable(names, order, n, phrases)
    allowed = {*names, *(f"{names[a]} {names[b]}" for a, b in rows)}
    for found in (plain, joined):
        assert len(found) <= n and set(found) <= allowed
        assert len({word.casefold() for word in found}) == len(found)
    different = {words.without_case(word) for word in names}
    different -= {word for word in different if words.singulars(word) & different}
    assert len(plain) >= min(n, len(different))


# --- phrases


FILL = [f"{a} {b}" for a, b in itertools.permutations(["the", "a", "of", "for", "and", "in", "is", "it"], 2)] * 3


def test_pairs_that_say_more_than_their_words():
    texts = ["we like new york", "in new york today", "a new car", "york is cold", *FILL] * 4
    assert find(texts, ["york", "new", "car", "cold", "the", "of"]) == [("new", "york")]
    assert find(texts, ["york", "car"]) == []  # both words are in the vocabulary


def test_a_pair_occurs_five_times():
    assert find(["salt lake"] * 5 + FILL, ["salt", "lake"]) == [("salt", "lake")]
    assert find(["salt lake"] * 4 + FILL, ["salt", "lake"]) == []


def test_neighbours_are_in_one_text_and_have_nothing_between():
    assert find(["salt", "lake"] * 10 + FILL, ["salt", "lake"]) == []
    assert find(["king of spain"] * 10 + FILL, ["king", "spain"]) == []
    assert find(["so so"] * 10 + FILL, ["so"]) == []


def test_the_rarer_word_is_usually_in_the_pair():
    vocabulary = ["salt", "lake"]
    assert find(["salt lake"] * 10 + ["salt", "lake"] * 56 + FILL * 99, vocabulary) == [("salt", "lake")]
    assert find(["salt lake"] * 10 + ["salt", "lake"] * 57 + FILL * 99, vocabulary) == []


def test_the_pair_is_not_negligible_for_the_other_word():
    assert find(["going to"] * 10 + ["to"] * 480 + FILL * 99, ["going", "to"]) == [("going", "to")]
    assert find(["going to"] * 10 + ["to"] * 510 + FILL * 99, ["going", "to"]) == []


def test_a_pair_that_chance_explains_is_none():
    """Of "really good" in texts that have few other words, the words are neighbours by chance."""
    assert find(["really good"] * 10 + ["good"] * 25 + ["other"] * 5, ["really", "good"]) == []
    assert find(["really good"] * 10 + ["good"] * 25 + ["other"] * 900, ["really", "good"]) == [("really", "good")]


def test_shares_are_parts_of_the_occurrences():
    found = find_phrases(["salt lake"] * 10 + ["lake"] * 15 + FILL, str.split, ["lake", "salt"])
    np.testing.assert_allclose(found.share, [[1.0, 0.4]])
    assert found.first.tolist() == [1] and found.second.tolist() == [0] and len(found) == 1


def test_the_strongest_pairs_are_kept(monkeypatch):
    monkeypatch.setattr(words, "MOST_PHRASES", 2)
    texts = ["salt lake"] * 10 + ["hong kong"] * 30 + ["los angeles"] * 20 + FILL
    assert find(texts, sorted({"salt", "lake", "hong", "kong", "los", "angeles"})) == [
        ("hong", "kong"),
        ("los", "angeles"),
    ]


def test_chunks_and_rare_pairs_do_not_change_what_is_found(monkeypatch):
    rng = np.random.default_rng(0)
    vocabulary = [f"w{i}" for i in range(300)]
    texts = [" ".join(rng.choice(vocabulary, 20)) + " salt lake" for _ in range(300)]
    whole = find(texts, [*vocabulary, "salt", "lake"])
    assert ("salt", "lake") in whole
    monkeypatch.setattr(words, "CHUNK", 100)
    assert find(texts, [*vocabulary, "salt", "lake"]) == whole
    monkeypatch.setattr(words, "MOST_PAIRS", 1000)
    sizes, add = [], words.add_pairs
    monkeypatch.setattr(words, "add_pairs", lambda *a: sizes.append(len((found := add(*a))[0])) or found)
    assert ("salt", "lake") in find(texts, [*vocabulary, "salt", "lake"])
    assert max(sizes) <= 1000


@pytest.mark.parametrize("texts", [[], [""], ["", " "], ["salt lake"], ["salt lake"] * 9, ["\0 \ud800", "a" * 100_000]])
@pytest.mark.parametrize("vocabulary", [[], ["salt"], ["salt", "lake"], np.array(["lake", "salt"])])
def test_few_texts_and_few_words(texts, vocabulary):
    found = find_phrases(iter(texts), str.split, vocabulary)
    assert found.first.dtype == found.second.dtype == np.int64 and found.share.shape == (len(found), 2)
    assert len(found) == (len(texts) == 9 and len(vocabulary) == 2)


def test_the_tokens_of_a_vectorizer_have_their_stop_words():
    stream = token_stream(CountVectorizer(stop_words="english", strip_accents="unicode", ngram_range=(1, 2)))
    assert stream("The King of España") == ["the", "king", "of", "espana"]
    assert token_stream(CountVectorizer())(b"King of Spain") == ["king", "of", "spain"]
    assert token_stream(CountVectorizer(analyzer=str.split))("King of Spain") == ["King", "of", "Spain"]


# --- names


def test_a_name_prefers_a_phrase():
    assert suggest_name(["disk", "scsi", "hard drive", "bus"]) == "disk, hard drive"
    assert suggest_name(["disk", "hard drive", "scsi"], ["a hard drive", "the Hard Drive"]) == "hard drive, disk"
    assert suggest_name(["disk", "drive", "scsi", "bus"]) == "disk, drive, scsi"


def test_a_name_prefers_words_of_most_documents():
    ranked = ["callison", "engine", "car", "oil", "tires"]
    assert suggest_name(ranked, ["the car has an engine", "an engine, oil", "Car oil"]) == "engine, car, oil"
    assert suggest_name(ranked, ["x", "y"]) == "callison, engine, car"


def test_a_name_has_no_word_twice():
    assert suggest_name(["car", "cars", "Car", "engine"]) == "car, engine"
    assert suggest_name(["drives", "hard drive", "disk"], ["drives"]) == "drives, disk"


def test_a_name_has_three_words():
    assert suggest_name(["new york", "hong kong", "police"]) == "new york, police"
    assert suggest_name(["one two three four", "police"]) == "one two three four"
    assert suggest_name([], ["text"]) == "" and suggest_name(["!"], ["text"]) == "!"
    assert suggest_name(["!", "car"], ["", "car"]) == "car, !"  # no text is said to have a word without a token


def test_documents_are_read_as_the_caller_says():
    ranked = ["a", "b", "c-d"]
    assert suggest_name(ranked, ["c-d"], str.split) == "c-d, a, b"
    assert suggest_name(ranked, ["c d"], str.split) == "a, b, c-d"


def test_equal_names_have_a_further_word():
    found = suggest_names([["team", "game", "season", "hockey", "nhl"], ["game", "team", "season", "nhl", "baseball"]])
    assert found == ["team, game, season, hockey", "game, team, season, baseball"]
    three = [["x", "y", "z", "p", "q"], ["x", "y", "z", "p"], ["x", "y", "z", "q"]]
    assert len(set(suggest_names(three))) == 3
    assert suggest_names([["a1", "b1"], ["b1", "a1"], [], []]) == ["a1, b1", "b1, a1 (2)", "", ""]
    assert suggest_names([["a1", "b1", "c1", "d1"]] * 2) == ["a1, b1, c1", "a1, b1, c1 (2)"]
    same = suggest_names([["car", "oil"]] * 2, [["oil oil"], ["car"]])
    assert same == ["oil, car", "car, oil (2)"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(WORDS, max_size=6), st.lists(st.text(max_size=20), max_size=3)), max_size=6))
def test_names_differ(topics):
    found = suggest_names([topic for topic, _ in topics], [texts for _, texts in topics])
    named = [name for (topic, _), name in zip(topics, found, strict=True) if any(topic)]
    assert all(named) and len(set(named)) == len(named)


# --- real texts


def test_newsgroups():
    path = corpus("scikit_learn_data/20news-bydate_py3.pkz")
    texts = pickle.loads(zlib.decompress(path.read_bytes()))["train"].data[::3]
    vectorizer = CountVectorizer(stop_words="english", min_df=3)
    X = vectorizer.fit_transform(texts)
    vocabulary = vectorizer.get_feature_names_out()
    found = find(texts, vocabulary, token_stream(vectorizer))
    assert {("new", "york"), ("united", "states"), ("los", "angeles"), ("hard", "drive")} <= set(found)
    assert ("york", "new") not in found and len(found) <= words.MOST_PHRASES
    order = np.argsort(-np.asarray(X.sum(axis=0)).ravel(), kind="stable")
    shown = readable(vocabulary, order, 50, find_phrases(texts, token_stream(vectorizer), vocabulary))
    assert len(set(shown)) == 50 and not any(map(is_leftover, shown))
    assert any(map(is_leftover, vocabulary[order[:50]]))  # which are there
