"""Texts go in as they are: two vocabularies, missing texts, explanations, files, batches, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import supertopic
from supertopic import LDA, SLDAClassifier, SLDARegressor, choose_topics, load, save
from supertopic.estimators.texts import ANY_WORD, are_texts, read_texts, topic_vectorizer, word_vectorizer

RUN = {"n_topics": 4, "burn_in": 10, "n_draws": 5, "n_chains": 2, "random_state": 0}
GOOD, BAD = "the plot was good and the cast great", "the plot was bad and the cast weak"
FILMS = ["a film about a dog", "a film about the sea", "a film about war &amp; peace", "a film of 1984"]


@pytest.fixture(scope="module")
def reviews():
    """Reviews in which "not" turns a finding around; it is a stop word."""
    rng = np.random.default_rng(0)
    texts, y = [], []
    for _ in range(400):
        no, good = rng.random() < 0.5, rng.random() < 0.5
        texts.append(f"{rng.choice(FILMS)}. it is {'not ' * no}{'good' if good else 'bad'}! {rng.choice(FILMS)}")
        y.append("like" if good != no else "dislike")
    return texts, np.array(y)


@pytest.fixture(scope="module")
def fitted(reviews):
    return SLDAClassifier(**RUN).fit(*reviews)


def test_two_vocabularies(reviews, fitted):
    """Topics have no stop words, numbers and left-overs; words have everything, and pairs decide here."""
    topics, words = set(fitted.vocabulary_), set(fitted.word_vectorizer_.vocabulary_)
    assert topics == {"film", "dog", "sea", "war", "peace", "good", "bad"} and topics < words
    assert {"not", "not good", "!", "a", "1984", "amp"} <= words
    assert fitted.score(*reviews) > 0.95
    alone = SLDAClassifier(**RUN, words=CountVectorizer()).fit(*reviews)
    assert alone.score(*reviews) < 0.9 and set(alone.word_vectorizer_.vocabulary_) >= {"not", "is"}
    assert not hasattr(SLDAClassifier(**RUN, words=False).fit(*reviews), "word_vectorizer_")
    assert fitted.word_coef_.shape == (1, len(words))
    assert {"is bad", "not good"} & set(fitted.missed_words(n=4)[0]["away"])


def test_no_names_are_needed(reviews, fitted, tmp_path):
    texts, y = reviews
    shown = {part for words in fitted.top_words(n=3) for word in words for part in word.split()}  # pairs, too
    assert shown <= set(fitted.vocabulary_)
    why = fitted.explain("it is not good")
    assert {"good", "not", "not good", "it is"} <= set(why.words) and why.times[why.words.index("good")] == 1
    np.testing.assert_allclose(why.total.sum(axis=0) + sum(why.others.values()), why.omega)
    np.testing.assert_allclose(why.mean, fitted.predict_proba(["it is not good"])[0])
    assert (why.through_topics[why.words.index("not good")] == 0).all()
    assert supertopic.explain(fitted, "it is not good").words == why.words
    save(fitted, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(texts[:9]), fitted.predict_proba(texts[:9]))
    assert again.explain("it is not good").words == why.words and again.vectorizer is None
    assert "not good" in fitted.report(texts[:20], y[:20])
    assert len(fitted.typical_documents(texts, 0, n=3)) == 3 and fitted.transform(texts[:3]).shape == (3, 4)
    assert len(fitted.surprising(texts, y, n=2)) == len(fitted.unsure(texts, n=2)) == 2
    assert fitted.diagnose(texts, y) and fitted.perplexity(texts) > 1


def test_any_sequence_of_texts(reviews, fitted):
    texts, y = reviews
    expected = fitted.predict_proba(texts[:5])
    for same in (tuple(texts[:5]), np.array(texts[:5]), np.array(texts[:5], object), pd.Series(texts[:5]),
                 pd.Series(texts[:5], dtype="string")):  # fmt: skip
        np.testing.assert_array_equal(fitted.predict_proba(same), expected)
    assert not are_texts(csr_array(np.eye(2))) and not are_texts(np.eye(2)) and not are_texts("a text")
    assert not are_texts([1, 2]) and not are_texts(pd.DataFrame({"a": ["b"]})) and not are_texts([])
    assert cross_val_score(clone(fitted), texts, y, cv=2).min() > 0.8
    assert choose_topics(SLDAClassifier(), texts, y, [2, 3], burn_in=2, n_draws=2, n_chains=1).chosen in (2, 3)
    assert LDA(3, burn_in=5, n_draws=2, random_state=0).fit(texts).transform(texts[:2]).shape == (2, 3)


def test_missing_texts_are_empty_and_counted(reviews, fitted):
    texts, y = reviews
    for missing in (None, np.nan, pd.NA):
        with pytest.warns(UserWarning, match="1 of 3 texts are missing"):
            found = fitted.predict_proba([texts[0], missing, texts[1]])
        np.testing.assert_array_equal(found[1], fitted.predict_proba([""])[0])
    with pytest.warns(UserWarning, match="200 of 400 texts are missing"):
        SLDAClassifier(**RUN).fit([None, *texts[1:]][:200] + [None] * 199 + texts[-1:], y)
    with pytest.raises(TypeError, match="X holds texts, but element 1 is 3, a int"):
        read_texts(["a", 3])


def test_batches(reviews, tmp_path):
    """Later batches have the vocabulary of the first one; a model from a file goes on in the same way."""
    texts, y = reviews
    model = SLDAClassifier(**RUN).partial_fit(texts[:200], y[:200])
    words = model.word_vectorizer_.vocabulary_
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    for one in (model, again):
        one.partial_fit([*texts[200:], "unheard"], [*y[200:], "like"])
    assert model.word_vectorizer_.vocabulary_ == words and model.n_batches_ == 2
    np.testing.assert_array_equal(model.predict_proba(texts[:9]), again.predict_proba(texts[:9]))
    assert model.score(texts, y) > 0.95
    with pytest.raises(TypeError, match="X must be texts, not counts"):
        model.partial_fit(model.vectorizer_.transform(texts[:9]), y[:9])


def test_counts_and_texts_are_not_mixed_up(reviews, fitted):
    texts, y = reviews
    X = fitted.vectorizer_.transform(texts)
    with pytest.raises(TypeError, match="X must be texts, not counts"):
        fitted.predict(X)
    np.testing.assert_array_equal(fitted.transform(X[:3]), fitted.transform(texts[:3]))  # topics need no more
    counts = SLDAClassifier(**RUN).fit(X, y)
    with pytest.raises(TypeError, match=r"got text such as 'a film.*fitted to counts"):
        counts.predict(texts)
    anew = clone(fitted).fit(texts[:50], y[:50]).fit(X, y)
    assert not hasattr(anew, "vectorizer_") and not hasattr(anew, "word_vectorizer_")
    pipeline = make_pipeline(CountVectorizer(), SLDAClassifier(**RUN)).fit(texts, y)
    assert "good" in supertopic.explain(pipeline, "not good").words


def test_a_vectorizer_of_ones_own(reviews):
    texts, y = reviews
    own = CountVectorizer(stop_words=["film"], max_features=5, token_pattern=r"[a-z]+")
    model = SLDAClassifier(**RUN, vectorizer=own).fit(texts, y)
    assert len(model.vocabulary_) == 5 and "film" not in model.vocabulary_ and not hasattr(own, "vocabulary_")
    assert {"film", "a film"} <= set(model.word_vectorizer_.vocabulary_)
    assert "!" not in model.word_vectorizer_.vocabulary_  # the user has said what a word is
    spoken = SLDARegressor(**RUN, vectorizer=CountVectorizer(tokenizer=str.split, token_pattern=None))
    assert spoken.fit(texts, np.arange(400.0)).predict(texts[:2]).shape == (2,)
    with pytest.raises(TypeError, match="is a callable"):
        save(spoken, "nowhere")
    for name in ("vectorizer", "words"):
        with pytest.raises(ValueError, match=f"{name} must be a CountVectorizer, got 3"):
            SLDAClassifier(**{name: 3}).fit(texts, y)
    assert word_vectorizer(True, None, 100).token_pattern == ANY_WORD and word_vectorizer(True, None, 99).min_df == 1
    assert topic_vectorizer(None, 100).min_df == 2 and word_vectorizer(False, None, 9) is None
    assert word_vectorizer(True, CountVectorizer(analyzer="char", ngram_range=(2, 3)), 9).ngram_range == (2, 3)
    assert word_vectorizer(True, CountVectorizer(vocabulary=["a"]), 9) is None
    assert (
        word_vectorizer(True, CountVectorizer(min_df=5, max_df=0.5, stop_words="english"), 500).get_params()["max_df"]
        == 1.0
    )


def test_texts_without_words():
    with pytest.raises(ValueError, match="No words are left of 4 texts: they are empty, or consist of stop words"):
        SLDAClassifier(**RUN).fit(["", "the", "12 3", "and"], ["a", "b", "a", "b"])
