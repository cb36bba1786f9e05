"""Top words that read well: which words are frequent enough, which are shown, phrases, and names of topics."""

import numpy as np
import pytest

from supertopic.report.words import (
    word_scores,
)

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
