"""What a fitted model has to say of itself: is it converged, is it any good, what are its topics and weights?

Chains number their topics as they like, so that only what does not depend on the numbers is compared between them: the
log joint, losses, omega. Where topics are shown for several chains, they are matched to those of the best one first.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from supertopic.corpus.tokens import make_tokens
from supertopic.report.diagnostics import WINDOWS, coherence, ess, interval, rhat
from supertopic.warn import warn

ENOUGH_TOKENS = 5.0  # of a word that a topic is said to have
ALIKE = 0.6  # how much two topics' words overlap at least, if they are the same topic
RISING, APART = 0.02, 0.05  # of the log joint's whole rise, what may still come; what the chains' scores may differ by


class Diagnosis(dict):
    """Figures by what they are about, each a dict by their names; shown as a table, and what follows from it."""

    def __init__(self, figures: dict[str, dict[str, float]], advice: list[str]):
        super().__init__(figures)
        self.advice = advice

    def rows(self) -> list[list[str]]:
        names = list(dict.fromkeys(name for row in self.values() for name in row))
        cells = [[what, *(f"{row[name]:.4g}" if name in row else "" for name in names)] for what, row in self.items()]
        return [["", *names], *cells]

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, *(f"- {text}" for text in self.advice or ["Nothing speaks against it."])])

    def _repr_html_(self) -> str:
        head, *rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.rows())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        advice = "".join(f"<li>{escape(text)}</li>" for text in self.advice)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{advice}</ul>"


class Summary:
    """Facts about a fitted model, as its own methods."""

    topic_names_: dict[str, str]

    def diagnose(self, X=None, y=None, **beside) -> Diagnosis:
        """Whether the chains have settled, and how much they differ.

        Parameters
        ----------
        X, y : held-out documents and responses, optional
            With X also omega, with both also the loss and, for each chain, the score. For LDA, which has no response, X
            gives the perplexity of each chain.
        **beside
            exposure or covariates of these documents.

        Returns
        -------
        Diagnosis
            A dict that is shown as a table. For each quantity "rhat" and "ess", rank-normalised (Vehtari and others,
            2021); of omega the median over the documents. "score" and "perplexity" hold a number for each chain
            instead, and "hidden documents" what they tell (see `hidden_`). R-hat needs four draws or more; the halves
            of one chain stand for two. Its `advice` says what follows.

        Chains of a topic model sit in different modes, so that R-hat between them is hardly ever 1. That does no harm:
        predictions average over them. A ConvergenceWarning comes where something should be done: if the log joint still
        rises, or if the chains' scores differ by more than 0.05.
        """
        check_is_fitted(self, "_word_topic")
        quantities: dict[str, np.ndarray] = {"log joint": self.trace_[:, :, 0]}
        figures: dict[str, dict[str, float]] = {}
        supervised, n_chains = hasattr(self, "coef_"), len(self._word_topic)
        if supervised:
            quantities["training loss"] = self.trace_[:, :, 1]
        if X is not None and not supervised:
            values = [self.perplexity(X, chains=[chain]) for chain in range(n_chains)]
            figures["perplexity"] = {f"chain {i}": value for i, value in enumerate(values)}
        if X is not None and supervised:
            omega = self._foretell(lambda omegas, *_: np.moveaxis(omegas, 0, -1), X, **beside)
            omega = omega.reshape(-1, n_chains, omega.shape[-1] // n_chains)
            figures["omega"] = {
                "rhat": float(np.nanmedian([rhat(values) for values in omega])),
                "ess": float(np.nanmedian([ess(values) for values in omega])),
            }
        if X is not None and y is not None and supervised:
            losses, scores = self._losses(X, y, **beside)
            quantities["held-out loss"] = losses
            figures["score"] = {f"chain {i}": float(score) for i, score in enumerate(scores)}
        figures |= {name: {"rhat": rhat(values), "ess": ess(values)} for name, values in quantities.items()}
        told = getattr(self, "hidden_", {})
        if told.get("documents"):
            names = ("documents", "loss", "base_loss", "se")
            figures["hidden documents"] = {name: float(told[name]) for name in names}
        return Diagnosis(figures, self._advise(figures))

    def _advise(self, figures: dict[str, dict[str, float]]) -> list[str]:
        """What should be done, with a warning, if anything."""
        advice = []
        values = self.log_joint_.mean(axis=0)
        kept = values[-self.trace_.shape[1] :]
        half, whole = len(kept) // 2, kept.max() - values[0]
        rise = kept[len(kept) - half :].mean() - kept[:half].mean() if half else 0.0
        if whole > 0 and rise > RISING * whole:
            advice.append(
                f"The log joint still rises: by {rise / whole:.0%} of its whole rise from the first half of the kept "
                "draws to the second. Raise burn_in."
            )
        scores = list(figures.get("score", {"": 0.0}).values())
        if max(scores) - min(scores) > APART:
            advice.append(
                f"The chains' scores lie {max(scores) - min(scores):.2f} apart: use more of them (n_chains), and read "
                "only topics that most of them have."
            )
        for text in advice:
            warn(text, ConvergenceWarning)
        return advice

    def match_topics(self) -> np.ndarray:
        """For each chain the topics that are most like those of the best chain, in its order: (n_chains, n_topics)."""
        check_is_fitted(self, "_word_topic")
        best, n_topics = np.sqrt(self._phi(self.best_chain_)), self._word_topic.shape[2]
        order = np.tile(np.arange(n_topics), (len(self._word_topic), 1))
        for chain in range(len(order)):
            if chain != self.best_chain_:
                alike = best.T @ np.sqrt(self._phi(chain))  # Bhattacharyya's coefficient
                order[chain] = linear_sum_assignment(-alike)[1]
        return order

    def topic_agreement(self) -> np.ndarray:
        """For each topic of the best chain the share of all chains that have one like it, (n_topics,).

        Like it is a topic whose words overlap by 0.6 or more (Bhattacharyya's coefficient), after `match_topics`. One
        chain alone says nothing: NaN.
        """
        if len(self._word_topic) == 1:
            return np.full(self._n_features_out, np.nan)
        best, order = np.sqrt(self._phi(self.best_chain_)), self.match_topics()
        alike = [np.sum(best * np.sqrt(self._phi(chain))[:, own], axis=0) for chain, own in enumerate(order)]
        return np.mean(np.array(alike) >= ALIKE, axis=0)

    def name_topics(self, names: Mapping[int, str]) -> Any:
        """Give some topics names, which are shown beside their numbers and kept in the model's file; "" takes one away.

        They are those of the best chain, whose topics are shown everywhere. Another fit forgets them.
        """
        check_is_fitted(self, "_word_topic")
        for topic, name in names.items():
            if not isinstance(topic, Integral) or not 0 <= topic < self._n_features_out or not isinstance(name, str):
                raise ValueError(
                    f"names must be {{topic: name}} with topics from 0 to {self._n_features_out - 1}, got "
                    f"{topic!r}: {name!r}."
                )
        known = self.topic_names_ | {str(int(topic)): name for topic, name in names.items()}
        self.topic_names_ = {topic: name for topic, name in known.items() if name}
        return self

    def topic_name(self, topic: int) -> str:
        """The name of a topic, "" if it has none."""
        return str(getattr(self, "topic_names_", {}).get(str(topic), ""))

    def _names_of_topics(self) -> np.ndarray:
        """The names of all topics, "" for those that have none."""
        return np.array([self.topic_name(k) for k in range(self._n_features_out)], dtype=object)

    def to_pyldavis(self, X: ArrayLike, feature_names: ArrayLike | None = None) -> Any:
        """The topics for pyLDAvis, in their own order: `pyLDAvis.save_html(model.to_pyldavis(X), "page.html")`.

        X are the documents whose topics are shown. Needs pyLDAvis, which counts topics from 1: its topic 1 is ours 0.
        """
        import pyLDAvis

        counts = self._new_counts(X)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        counts, lengths = counts[lengths > 0], lengths[lengths > 0]
        topics, names = self.topic_word_, self._feature_names(feature_names)
        return pyLDAvis.prepare(
            topics / topics.sum(axis=1, keepdims=True), self.transform(counts), lengths, names,
            np.asarray(counts.sum(axis=0)).ravel(), sort_topics=False,
        )  # fmt: skip

    def to_xarray(self) -> Any:
        """The draws as an xarray Dataset with dimensions chain, draw, column and topic, which ArviZ takes as it is.

        Topics of all chains are matched to those of the best one. coef are draws behind `coef_`, calibrated those that
        predictions use, training the chains' own. Needs xarray: pip install 'supertopic[diagnostics]'.
        """
        import xarray

        order = self.match_topics()
        n_chains, n_draws = self._eta.shape[:2]
        data: dict[str, Any] = {"log_joint": (("chain", "draw"), self.trace_[:, :, 0])}
        dims: dict[str, Any] = {"chain": np.arange(n_chains), "draw": np.arange(n_draws)}
        if hasattr(self, "coef_"):
            dims |= {"column": self._column_names(), "topic": np.arange(order.shape[1])}
            kinds = {"coef": self.coef_draws_[:, :n_draws], "calibrated": self.calibrated_draws_}
            kinds["training"] = self.training_draws_
            for name, draws in kinds.items():
                matched = np.stack([draws[chain][:, :, order[chain]] for chain in range(n_chains)])
                data[name] = (("chain", "draw", "column", "topic"), matched)
            data["loss"] = (("chain", "draw"), self.trace_[:, :, 1])
        return xarray.Dataset(data, coords=dims)

    def _column_names(self) -> list[str]:
        """The class, label or rating that each column of weights is about."""
        n_columns = self._eta.shape[2]
        names = getattr(self, "classes_", getattr(self, "response_names_", range(n_columns)))
        return [str(name) for name in (names[-1:] if n_columns == 1 else names[:n_columns])]

    def topic_frame(self, feature_names: ArrayLike | None = None, n: int = 10) -> Any:
        """A pandas frame of the best chain's topics: topic, name, share, exclusivity, and their n top words."""
        import pandas

        words = [" ".join(map(str, row)) for row in self.top_words(feature_names, n)]
        shares = self._topic_shares[self.best_chain_]
        columns = {"topic": np.arange(len(words)), "name": self._names_of_topics(), "share": shares}
        columns |= {"exclusivity": self.exclusivity(n), "words": words}
        return pandas.DataFrame(columns).sort_values("share", ascending=False, ignore_index=True)

    def effect_frame(self, points: float = 0.1, level: float = 0.9) -> Any:
        """A pandas frame of what more of a topic does to the probability, the rating or the count.

        A document with the usual shares of all topics gets `points` (0.1: ten points in a hundred) of one topic in the
        place of as much of what it has. Columns: topic, name, column, before, which is the base rate, after, and their
        difference, `change`, with its interval; from hidden documents, as `coef_` is.
        """
        import pandas

        before, after, change, lower, upper, names = self._effects(points, level)
        k, c = np.divmod(np.arange(change.size), len(names))
        columns = {"before": np.broadcast_to(before, change.shape), "after": after, "change": change, "lower": lower,
                   "upper": upper}  # fmt: skip
        facts = {"topic": k, "name": self._names_of_topics()[k], "column": np.array(names, dtype=object)[c]}
        return pandas.DataFrame(facts | {name: values[k, c] for name, values in columns.items()})

    def _effects(self, points: float, level: float) -> tuple:
        """The numbers of `effect_frame`: before (C,), then after, change and its interval, (K, C), and C names."""
        if not hasattr(self, "intercept_"):
            raise AttributeError(
                f"{type(self).__name__} is not fitted, or has no response that topics could do anything to."
            )
        if not 0 < points <= 1:
            raise ValueError(f"points must be a share from 0 to 1, got {points!r}.")
        draws = self.coef_draws_[self.best_chain_]  # (draw, R, K)
        n_draws, n_columns, n_topics = draws.shape
        # every block's shares sum to 1: usual is (draw, R)
        usual = draws @ (self._topic_shares[self.best_chain_] * self.n_blocks_)
        more = points * (draws - usual[..., None]) * self._own_topics(n_columns, n_topics)
        # the usual mixture stands for the base rate, which is known better than any topic's weight
        start, scales = np.broadcast_to(self.intercept_, usual.shape), np.zeros((n_draws, 0))
        before, names = self._means(start[:, None], scales)
        after, _ = self._means(start[:, None] + more.swapaxes(1, 2), scales)  # (draw, K, what is predicted)
        change = after - before
        return before[:, 0].mean(axis=0), after.mean(axis=0), change.mean(axis=0), *interval(change, level), names

    def coefficient_frame(self, level: float = 0.9) -> Any:
        """A pandas frame of the weights, from hidden documents: column, topic, name, mean, sd, interval, P(positive).

        It is empty for LDA, which has none.
        """
        import pandas

        check_is_fitted(self, "_word_topic")
        draws = self._shown[self.best_chain_][..., : self._n_features_out]  # (draw, column, topic)
        lower, upper = interval(draws, level)
        names = self._column_names()
        frame = {
            "column": np.repeat(np.array(names, dtype=object), draws.shape[2]),
            "topic": np.tile(np.arange(draws.shape[2]), len(names)),
            "name": np.tile(self._names_of_topics(), len(names)),
            "mean": draws.mean(axis=0).ravel(),
            "sd": draws.std(axis=0, ddof=1).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            "p_positive": (draws > 0).mean(axis=0).ravel(),
        }
        return pandas.DataFrame(frame)

    def missed_words(self, feature_names: ArrayLike | None = None, n: int = 10) -> list[dict[str, Any]]:
        """What the topics miss: for each column the n words with the largest direct weights, towards it and away."""
        names, rows = self._feature_names(feature_names), []
        for column, weight in zip(self._column_names(), self.word_coef_, strict=True):
            order = np.argsort(-weight, kind="stable")
            towards, away = order[:n], order[::-1][:n]
            towards, away = towards[weight[towards] > 0], away[weight[away] < 0]
            rows.append({"column": column, "towards": names[towards].tolist(), "away": names[away].tolist()})
        return rows

    def perplexity(self, X: ArrayLike, random_state: int = 0, chains: Sequence[int] | None = None) -> float:
        """Held-out perplexity by document completion, smaller is better.

        A random half of each document's tokens tells its topics, and the other half is predicted, with the mean over
        the chains (all, or those that are named): exp(- mean log p(token)). No token is used for both, so that a
        document that explains itself gains nothing.
        """
        logs, tokens = self._complete(X, random_state, chains)
        if not tokens.any():
            raise ValueError("Documents must have some words for half of them to be predicted.")
        return float(np.exp(-logs.sum() / tokens.sum()))

    def _complete(self, X, random_state: int = 0, chains: Sequence[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The log probability of half of the tokens of each document, given the other half, and how many they are."""
        counts = self._new_counts(X).astype(np.int64)
        seen, hidden = counts.copy(), counts.copy()
        seen.data = np.random.default_rng(random_state).binomial(counts.data, 0.5)
        hidden.data = counts.data - seen.data
        doc, word = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), counts.indices
        lengths, p = np.asarray(seen.sum(axis=1)).reshape(-1, 1), np.zeros(len(word))
        chains = range(len(self._word_topic)) if chains is None else chains
        for chain, zbar in zip(chains, self._infer(make_tokens(seen), chains), strict=True):
            theta = (zbar * lengths + self.alpha_[chain]) / (lengths + self.alpha_[chain].sum())
            p += np.einsum("ik,ik->i", theta[doc], self._phi(chain)[word]) / len(chains)
        n_docs, logs = counts.shape[0], np.where(hidden.data > 0, hidden.data * np.log(np.maximum(p, 1e-300)), 0.0)
        return np.bincount(doc, logs, n_docs), np.bincount(doc, hidden.data, n_docs)

    def exclusivity(self, n: int = 10) -> np.ndarray:
        """For each topic, over its n most probable words, the mean of its part in all topics' use of the word."""
        topics = self.topic_word_
        share = topics / topics.sum(axis=0)
        best = np.argsort(-topics, axis=1, kind="stable")[:, :n]
        return np.take_along_axis(share, best, axis=1).mean(axis=1)

    def coherence(
        self, texts: Iterable[Sequence[str]], feature_names: ArrayLike | None = None, n: int = 10, measure: str = "c_v"
    ) -> np.ndarray:
        """How well the n most probable words of each topic go together in reference texts, (n_topics,).

        Parameters
        ----------
        texts : iterable of lists of str
            Tokens of each text, such as `[analyze(text) for text in corpus]` with the vectorizer's build_analyzer().
        feature_names : array-like of str, optional
            The vocabulary, as for `top_words`.
        n : int, default=10
            How many words of each topic.
        measure : {"c_v", "c_npmi"}
            Roeder, Both and Hinneburg's (2015), as in gensim.
        """
        if measure not in WINDOWS:
            raise ValueError(f"measure must be one of {', '.join(map(repr, WINDOWS))}, got {measure!r}.")
        texts = list(texts)
        if any(isinstance(text, str) for text in texts):
            raise TypeError(
                "texts must hold the tokens of each text, got raw text. Give [analyze(text) for text in texts] with "
                "analyze = vectorizer.build_analyzer()."
            )
        top = [list(map(str, words)) for words in self.top_words(feature_names, n, "probability")]
        found = coherence(top, texts, measure)
        if np.isnan(found).any():
            warn(
                f"The coherence of {np.isnan(found).sum()} of {len(found)} topics is NaN: the texts have fewer than "
                "two of their top words. Were the tokens made as those of the fit, for example in lower case?"
            )
        return found


def word_scores(topics: np.ndarray, counts: np.ndarray, shares: np.ndarray, by: str) -> np.ndarray:
    """How good each word is at showing what each topic is, (K, V); counts (K, V) are means over the draws."""
    if by not in ("frex", "probability", "lift"):
        raise ValueError(f"by must be 'frex', 'probability' or 'lift', got {by!r}.")
    if by == "probability":
        return topics
    # a word that a topic hardly has shows nothing, however exclusive it is; such words come last, by probability
    scores, whole = -1.0 / (1.0 + topics), shares @ topics if by == "lift" else topics.sum(axis=0)
    for row, topic, count in zip(scores, topics, counts, strict=True):
        has = np.flatnonzero(count >= min(ENOUGH_TOKENS, count.max()))
        rare = topic[has] / whole[has]
        if by == "frex":
            ranks = [rankdata(x, method="max") / len(has) for x in (topic[has], rare)]
            rare = 2.0 / (1.0 / ranks[0] + 1.0 / ranks[1])
        row[has] = rare
    return scores


def describe_topics(model, feature_names: ArrayLike | None = None, n: int = 10, by: str = "frex") -> list[dict]:
    """The topics, largest first: share, words, and the largest weight, with its class where there are classes."""
    words, shares = model.top_words(feature_names, n, by), model._topic_shares[model.best_chain_]
    rows = []
    for k in np.argsort(-shares):
        row = {"topic": int(k), "name": model.topic_name(k), "share": float(shares[k]), "words": words[k]}
        if hasattr(model, "coef_"):
            one = len(model.coef_) == 1
            r = 0 if one else int(model.coef_[:, k].argmax())
            if model.n_blocks_ > 1:
                r = int(k) * model.n_blocks_ // len(shares)  # whose own topic it is
            row["weight"] = weight = float(model.coef_[r, k])
            clear = one or weight > 0
            if model.coef_draws_.shape[1] > 1:
                row["interval"] = lower, upper = [float(side[r, k]) for side in model.coef_interval(0.9)]
                # the interval must exclude 0; a wider one where the weight is the largest of many, as that of noise is
                wider = ndtri(0.05 / len(model.coef_)) / ndtri(0.05)
                clear = clear and abs(weight) > wider * abs(weight - (lower if weight > 0 else upper))
            if hasattr(model, "classes_"):
                row["class"] = model.classes_.tolist()[int(weight > 0) if one else r] if clear else None
        rows.append(row)
    return rows


def describe_weights(model, feature_names: ArrayLike | None = None, n: int = 10, by: str = "frex") -> list[dict]:
    """Every weight of every topic, a row each: the topic, its share and words, the class or column, the interval."""
    words, shares = model.top_words(feature_names, n, by), model._topic_shares[model.best_chain_]
    rows: list[dict] = [
        {"topic": k, "name": model.topic_name(k), "share": float(share), "words": " ".join(words[k])}
        for k, share in enumerate(shares)
    ]
    if not hasattr(model, "coef_"):
        return rows
    lower, upper = model.coef_interval(0.9)
    names = model._column_names()
    return [
        row | {"column": names[r], "weight": float(model.coef_[r, k]), "lower": lower[r, k], "upper": upper[r, k]}
        for k, row in enumerate(rows)
        for r in range(len(model.coef_))
    ]


def describe_covariates(model) -> list[dict]:
    """The weight of each covariate on each column of the response, with its interval."""
    rows = []
    for p in range(getattr(model, "n_covariates_", 0)):
        for r in range(len(model.covariate_coef_)):
            row = {"covariate": model.covariate_names_[p], "weight": float(model.covariate_coef_[r, p])}
            if hasattr(model, "classes_"):
                row["class"] = model.classes_.tolist()[1 if len(model.covariate_coef_) == 1 else r]
            if model.coef_draws_.shape[:2] != (1, 1):
                row["interval"] = [float(side[r, p]) for side in model.covariate_coef_interval(0.9)]
            rows.append(row)
    return rows
