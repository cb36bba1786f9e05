"""What topics are about: their words, their matches across chains, and how well they describe documents."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from supertopic.corpus.made_frames import make_frame
from supertopic.corpus.tokens import make_tokens
from supertopic.inference.completion import complete
from supertopic.inference.predict import Settings, mean_topic_shares
from supertopic.model.posterior import Posterior
from supertopic.report.diagnostics import WINDOWS, coherence
from supertopic.report.words import readable, suggest_names, word_scores
from supertopic.warn import warn

Namer = Callable[[list[str], list[str]], str]  # a name from the top words and from texts of typical documents
TYPICAL = 5  # documents of a topic that its name is made from


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
    """The topics, (K, V): rows sum to 1. Each is the mean over the chains that have it."""
    return chain_mean(posterior, posterior.phi)


def mean_counts(posterior: Posterior) -> np.ndarray:
    """The mean counts of each topic's draws, plus beta, over the chains that have it: (K, V)."""
    return chain_mean(posterior, posterior.mean_counts)


def chain_mean(posterior: Posterior, table: Callable[[int], np.ndarray]) -> np.ndarray:
    """The mean of a table (V, K) of each chain over the chains that have each topic: (K, V)."""
    total, consensus = np.zeros((posterior.n_topics, posterior.n_words)), posterior.consensus
    for chain, has in enumerate(consensus.has):
        total[has] += table(chain).T[has]
    return total / consensus.n_having[:, None]


def top_words(
    posterior: Posterior, names: np.ndarray, n: int = 10, by: str = "frex", phrases: bool = True
) -> list[list[str]]:
    """The n top words of each topic, the best first, with pairs of words as one if the posterior knows such."""
    joined = posterior.phrases if phrases else None
    return [readable(names, order, n, joined) for order in rank_words(posterior, by)]


def rank_words(posterior: Posterior, by: str) -> np.ndarray:
    """The places of all words, those first that show best what each topic is about: (K, V)."""
    counts = np.maximum(mean_counts(posterior) - posterior.topics[0].beta.mean(), 0.0)
    scores = word_scores(topic_word(posterior), counts, posterior.mean_shares, by)
    return np.argsort(-scores, axis=1, kind="stable")


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


def topic_labels(posterior: Posterior, names: np.ndarray) -> list[str]:
    """A label for each topic: its number, with its name or one that its words suggest."""
    suggested = suggest_names(top_words(posterior, names))
    return [f"{k} {topic_name(posterior, k) or words}" for k, words in enumerate(suggested)]


def label_topics(
    posterior: Posterior, names: np.ndarray, counts: csr_array | None, texts: Sequence[str] | None, namer: Namer | None,
    settings: Settings, n: int,
) -> dict[int, str]:  # fmt: skip
    """A name for each topic that has none, from its n top words and from the texts of some typical documents."""
    words, typical = top_words(posterior, names, n), [list[str]()] * posterior.n_topics
    texts = None if texts is None else list(texts)
    if (counts is None) != (texts is None):
        raise ValueError("label_topics needs both X and texts, the counts and the texts of the same documents.")
    if counts is not None and texts is not None:
        if counts.shape[0] != len(texts):
            raise ValueError(f"X has {counts.shape[0]} documents but there are {len(texts)} texts.")
        typical = [[texts[i] for i in rows] for rows in typical_rows(posterior, counts, TYPICAL, settings)]
    if namer is None:
        found = suggest_names(words, typical)
    else:
        found = [namer(*topic) for topic in zip(words, typical, strict=True)]
        wrong = next((name for name in found if not isinstance(name, str)), None)
        if wrong is not None:
            raise TypeError(f"namer must return text, got {wrong!r}.")
    return {k: topic_name(posterior, k) or name for k, name in enumerate(found)}


def topic_agreement(posterior: Posterior) -> np.ndarray:
    """The share of the chains that have each topic; NaN with one chain: (K,)."""
    if posterior.n_chains == 1:
        return np.full(posterior.n_topics, np.nan)
    return posterior.consensus.has.mean(axis=0)


def exclusivity(posterior: Posterior, n: int = 10) -> np.ndarray:
    """How far the n most probable words of each topic belong to it: its mean part in their use by all topics."""
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
    top = [list(map(str, names[order[:n]])) for order in rank_words(posterior, "probability")]
    found = coherence(top, texts, measure)
    if np.isnan(found).any():
        warn(
            f"The coherence of {np.isnan(found).sum()} of {len(found)} topics is NaN: the texts have fewer than two of "
            "their top words. Were the tokens made as those of the fit, for example in lower case?"
        )
    return found


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
    return typical_rows(posterior, counts, n, settings)[topic]


def typical_rows(posterior: Posterior, counts: csr_array, n: int, settings: Settings) -> np.ndarray:
    """The same for all topics, (K, n)."""
    lengths = np.asarray(counts.sum(axis=1)).reshape(-1, 1)
    alpha = np.mean([posterior.alpha(chain) for chain in range(posterior.n_chains)], axis=0)
    shares = mean_topic_shares(posterior, make_tokens(counts), settings) * (lengths > 0)
    return np.argsort(-(shares * lengths + alpha) / (lengths + alpha.sum()), axis=0, kind="stable")[:n].T


def topic_frame(posterior: Posterior, names: np.ndarray, n: int = 10, min_chains: int = 1) -> Any:
    """A data frame of the topics: topic, name, share, the chains that have it, exclusivity, and n top words."""
    words = [", ".join(row) for row in top_words(posterior, names, n)]
    columns: dict[str, Any] = {"topic": np.arange(len(words)), "name": topic_names(posterior)}
    columns |= {
        "share": posterior.mean_shares,
        "chains": posterior.consensus.n_having,
        "exclusivity": exclusivity(posterior, n),
        "words": np.array(words, dtype=object),
    }
    order = np.argsort(-posterior.mean_shares, kind="stable")
    order = order[posterior.consensus.n_having[order] >= min_chains]
    return make_frame({name: values[order] for name, values in columns.items()})


def to_pyldavis(posterior: Posterior, counts: csr_array, names: np.ndarray, settings: Settings) -> Any:
    """The topics for pyLDAvis, in their own order."""
    import pyLDAvis

    lengths = np.asarray(counts.sum(axis=1)).ravel()
    counts, lengths = counts[lengths > 0], lengths[lengths > 0]
    return pyLDAvis.prepare(
        topic_word(posterior), mean_topic_shares(posterior, make_tokens(counts), settings), lengths, names,
        np.asarray(counts.sum(axis=0)).ravel(), sort_topics=False,
    )  # fmt: skip


def topics_html(posterior: Posterior) -> str:
    """The topics as an HTML table, the largest first."""
    words, shares = top_words(posterior, vocabulary_of(posterior), 8), posterior.mean_shares
    cells = ((f"{k} {topic_name(posterior, k)}", f"{shares[k]:.1%}", ", ".join(words[k])) for k in np.argsort(-shares))
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
    return f"<table><thead><tr><th>topic</th><th>share</th><th>words</th></tr></thead>{rows}</table>"
