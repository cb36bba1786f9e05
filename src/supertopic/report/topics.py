"""What topics are about: their words, their matches across chains, and how well they describe documents."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from supertopic.corpus.tokens import make_tokens
from supertopic.inference.predict import Settings, topic_shares
from supertopic.model.posterior import Posterior
from supertopic.report.diagnostics import WINDOWS, coherence
from supertopic.report.words import word_scores
from supertopic.warn import warn

ALIKE = 0.6  # the least overlap of the words of two topics that are the same


def vocabulary_of(posterior: Posterior, names: ArrayLike | None = None) -> np.ndarray:
    """The words: those given, those that the model knows, or "x0", "x1", ..."""
    if names is None:
        names = posterior.vocabulary
    if names is None:
        names = [f"x{i}" for i in range(posterior.n_words)]
    found = np.asarray(names, dtype=object)
    if found.shape != (posterior.n_words,):
        raise ValueError(f"feature_names has {found.size} names, but the model was fitted on {posterior.n_words}.")
    return found


def topic_word(posterior: Posterior) -> np.ndarray:
    """The topics of the best chain, (K, V): rows sum to 1."""
    components = mean_counts(posterior).T
    return components / components.sum(axis=1, keepdims=True)


def mean_counts(posterior: Posterior) -> np.ndarray:
    """The mean counts of the best chain's draws, plus beta: (V, K)."""
    return np.concatenate([part.mean_counts(posterior.best_chain) for part in posterior.topics], axis=1)


def top_words(posterior: Posterior, names: np.ndarray, n: int = 10, by: str = "frex") -> list[list[str]]:
    """The n top words of each topic of the best chain, the best first."""
    counts = np.concatenate([part.word_topic[posterior.best_chain] for part in posterior.topics], axis=1)
    shares = posterior.shares[posterior.best_chain]
    scores = word_scores(topic_word(posterior), counts.T / posterior.n_draws, shares, by)
    return [list(names[np.argsort(-row, kind="stable")[:n]]) for row in scores]


def topic_name(posterior: Posterior, topic: int) -> str:
    """The name of a topic, "" if it has none."""
    return str(posterior.topic_names.get(str(topic), ""))


def topic_names(posterior: Posterior) -> np.ndarray:
    """The names of all topics."""
    return np.array([topic_name(posterior, k) for k in range(posterior.n_topics)], dtype=object)


def check_names(posterior: Posterior, names: Mapping[int, str]) -> dict[str, str]:
    """Names by the numbers of topics as text."""
    for topic, name in names.items():
        if not isinstance(topic, Integral) or not 0 <= topic < posterior.n_topics or not isinstance(name, str):
            raise ValueError(
                f"names must be {{topic: name}} with topics from 0 to {posterior.n_topics - 1}, got "
                f"{topic!r}: {name!r}."
            )
    return {str(int(topic)): name for topic, name in names.items()}


def label_topics(posterior: Posterior, names: np.ndarray) -> list[str]:
    """A label for each topic: its number, with its name or a few words."""
    words = top_words(posterior, names, 3)
    return [f"{k} {topic_name(posterior, k) or ' '.join(map(str, row))}" for k, row in enumerate(words)]


def match_topics(posterior: Posterior) -> np.ndarray:
    """For each chain the topics that are most like those of the best chain, in its order: (n_chains, K)."""
    order = np.tile(np.arange(posterior.n_topics), (posterior.n_chains, 1))
    for topics, places in zip(posterior.topics, posterior.places, strict=True):  # a class has its own topics
        best = np.sqrt(topics.phi(posterior.best_chain))
        for chain in range(posterior.n_chains):
            if chain != posterior.best_chain:
                alike = best.T @ np.sqrt(topics.phi(chain))  # Bhattacharyya's coefficient
                order[chain, places] = places.start + linear_sum_assignment(-alike)[1]
    return order


def topic_agreement(posterior: Posterior) -> np.ndarray:
    """For each topic of the best chain the share of all chains that have one like it; NaN with one chain: (K,)."""
    if posterior.n_chains == 1:
        return np.full(posterior.n_topics, np.nan)
    best, order = np.sqrt(posterior.phi(posterior.best_chain)), match_topics(posterior)
    alike = [np.sum(best * np.sqrt(posterior.phi(chain))[:, own], axis=0) for chain, own in enumerate(order)]
    return np.mean(np.array(alike) >= ALIKE, axis=0)


def exclusivity(posterior: Posterior, n: int = 10) -> np.ndarray:
    """For each topic, over its n most probable words, the mean of its part in all topics' use of the word."""
    topics = topic_word(posterior)
    share = topics / topics.sum(axis=0)
    best = np.argsort(-topics, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(share, best, axis=1).mean(axis=1)


def topic_coherence(
    posterior: Posterior, texts: Iterable[Sequence[str]], names: np.ndarray, n: int, measure: str
) -> np.ndarray:
    """How well the n most probable words of each topic go together in reference texts, (K,)."""
    if measure not in WINDOWS:
        raise ValueError(f"measure must be one of {', '.join(map(repr, WINDOWS))}, got {measure!r}.")
    texts = list(texts)
    if any(isinstance(text, str) for text in texts):
        raise TypeError(
            "texts must hold the tokens of each text, got raw text. Give [analyze(text) for text in texts] with "
            "analyze = vectorizer.build_analyzer()."
        )
    top = [list(map(str, words)) for words in top_words(posterior, names, n, "probability")]
    found = coherence(top, texts, measure)
    if np.isnan(found).any():
        warn(
            f"The coherence of {np.isnan(found).sum()} of {len(found)} topics is NaN: the texts have fewer than two of "
            "their top words. Were the tokens made as those of the fit, for example in lower case?"
        )
    return found


def complete(
    posterior: Posterior, counts: csr_array, settings: Settings, random_state: int = 0,
    chains: Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The log probability of half of the tokens of each document, given the other half, and how many they are."""
    counts = counts.astype(np.int64)
    seen, predicted = counts.copy(), counts.copy()
    seen.data = np.random.default_rng(random_state).binomial(counts.data, 0.5)
    predicted.data = counts.data - seen.data
    doc, word = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), counts.indices
    lengths, p = np.asarray(seen.sum(axis=1)).reshape(-1, 1), np.zeros(len(word))
    chains = range(posterior.n_chains) if chains is None else chains
    for chain, zbar in zip(chains, topic_shares(posterior, make_tokens(seen), chains, settings), strict=True):
        alpha = posterior.alpha(chain)
        theta = (zbar * lengths + alpha) / (lengths + alpha.sum())
        p += np.einsum("ik,ik->i", theta[doc], posterior.phi(chain)[word]) / len(chains)
    n_docs, logs = counts.shape[0], np.where(predicted.data > 0, predicted.data * np.log(np.maximum(p, 1e-300)), 0.0)
    return np.bincount(doc, logs, n_docs), np.bincount(doc, predicted.data, n_docs)


def perplexity(
    posterior: Posterior, counts: csr_array, settings: Settings, random_state: int = 0,
    chains: Sequence[int] | None = None,
) -> float:  # fmt: skip
    """Held-out perplexity by document completion."""
    logs, tokens = complete(posterior, counts, settings, random_state, chains)
    if not tokens.any():
        raise ValueError("Documents must have some words for half of them to be predicted.")
    return float(np.exp(-logs.sum() / tokens.sum()))


def typical_documents(posterior: Posterior, counts: csr_array, topic: Any, n: int, settings: Settings) -> np.ndarray:
    """The rows in which a topic has the largest share, the largest first; short documents count for less."""
    if not isinstance(topic, Integral) or not 0 <= int(topic) < posterior.n_topics:
        raise ValueError(f"topic must be a whole number from 0 to {posterior.n_topics - 1}, got {topic!r}.")
    lengths, alpha = np.asarray(counts.sum(axis=1)).ravel(), posterior.alpha(posterior.best_chain)
    shares = topic_shares(posterior, make_tokens(counts), [posterior.best_chain], settings)[0][:, topic]
    shares = shares * (lengths > 0)
    return np.argsort(-(shares * lengths + alpha[topic]) / (lengths + alpha.sum()), kind="stable")[:n]


def topic_frame(posterior: Posterior, names: np.ndarray, n: int = 10) -> Any:
    """A pandas frame of the best chain's topics: topic, name, share, exclusivity, and their n top words."""
    import pandas

    words = [" ".join(map(str, row)) for row in top_words(posterior, names, n)]
    columns: dict[str, Any] = {"topic": np.arange(len(words)), "name": topic_names(posterior)}
    columns |= {
        "share": posterior.shares[posterior.best_chain],
        "exclusivity": exclusivity(posterior, n),
        "words": words,
    }
    return pandas.DataFrame(columns).sort_values("share", ascending=False, ignore_index=True)


def to_pyldavis(posterior: Posterior, counts: csr_array, names: np.ndarray, settings: Settings) -> Any:
    """The topics of the best chain for pyLDAvis, in their own order."""
    import pyLDAvis

    lengths = np.asarray(counts.sum(axis=1)).ravel()
    counts, lengths = counts[lengths > 0], lengths[lengths > 0]
    topics, chains = topic_word(posterior), [posterior.best_chain]
    return pyLDAvis.prepare(
        topics / topics.sum(axis=1, keepdims=True), topic_shares(posterior, make_tokens(counts), chains, settings)[0],
        lengths, names, np.asarray(counts.sum(axis=0)).ravel(), sort_topics=False,
    )  # fmt: skip


def topics_html(posterior: Posterior) -> str:
    """The topics as an HTML table, the largest first."""
    words, shares = top_words(posterior, vocabulary_of(posterior), 8), posterior.shares[posterior.best_chain]
    cells = ((f"{k} {topic_name(posterior, k)}", f"{shares[k]:.1%}", " ".join(words[k])) for k in np.argsort(-shares))
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
    return f"<table><thead><tr><th>topic</th><th>share</th><th>words</th></tr></thead>{rows}</table>"
