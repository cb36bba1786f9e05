"""What a fitted model has to say of itself: is it converged, is it any good, what are its topics and weights?

Chains number their topics as they like, so that only what does not depend on the numbers is compared between them: the
log joint, losses, omega. Where topics are shown for several chains, they are matched to those of the best one first.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from supertopic.report.diagnostics import WINDOWS, coherence, ess, interval, rhat

RHAT, APART = 1.05, 0.05  # what R-hat, and the distance of the chains' scores, may be


class Summary:
    """Facts about a fitted model, as its own methods."""

    def diagnose(self, X=None, y=None, **beside) -> dict[str, dict[str, float]]:
        """R-hat and effective sample size of quantities that do not depend on how topics are numbered.

        Parameters
        ----------
        X, y : held-out documents and responses, optional
            With X also omega (the least certain document), with both also the loss and, for each chain, the score. For
            LDA, which has no response, X gives the perplexity of each chain.
        **beside
            exposure or covariates of these documents.

        Returns
        -------
        dict
            For each quantity {"rhat": ..., "ess": ...}, rank-normalised (Vehtari and others, 2021); "score" and
            "perplexity" hold a number for each chain instead. R-hat needs four draws or more; its halves of one chain
            stand for two.

        A ConvergenceWarning with advice comes if an R-hat is above 1.05, or if chains' scores differ by more than 0.05.
        """
        check_is_fitted(self, "_word_topic")
        quantities: dict[str, np.ndarray] = {"log joint": self.trace_[:, :, 0]}
        if hasattr(self, "coef_"):
            quantities["training loss"] = self.trace_[:, :, 1]
        found: dict[str, dict[str, float]] = {}
        supervised = hasattr(self, "coef_")
        if X is not None and not supervised:
            values = [self.perplexity(X, chains=[chain]) for chain in range(len(self._word_topic))]
            found["perplexity"] = {f"chain {i}": value for i, value in enumerate(values)}
        if X is not None and supervised:
            omega = np.array([omega for omega, _ in self._omegas(X, beside.get("covariates"))])
            omega = omega.reshape(*self._eta.shape[:2], -1)
            worst = max(range(omega.shape[2]), key=lambda i: rhat(omega[:, :, i]))
            quantities["omega"] = omega[:, :, worst]
        if X is not None and y is not None and supervised:
            losses, scores = self._losses(X, y, **beside)
            quantities["held-out loss"] = losses
            found["score"] = {f"chain {i}": float(score) for i, score in enumerate(scores)}
        found |= {name: {"rhat": rhat(values), "ess": ess(values)} for name, values in quantities.items()}
        self._advise(found)
        return found

    def _advise(self, found: dict[str, dict[str, float]]) -> None:
        high = {name: f"{row['rhat']:.2f}" for name, row in found.items() if row.get("rhat", 0.0) > RHAT}
        scores = found.get("score", {"": 0.0}).values()
        if high:
            warnings.warn(
                f"R-hat is above {RHAT} for {high}: the chains have not seen the same. Look whether log_joint_ still "
                "rises, then raise burn_in; where it is flat, chains sit in different modes, as topic models do: raise "
                "n_chains, average over them, and read only topics that most chains have.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if max(scores) - min(scores) > APART:
            warnings.warn(
                f"The chains' scores lie {max(scores) - min(scores):.2f} apart: use more of them (n_chains).",
                ConvergenceWarning,
                stacklevel=3,
            )

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

    def to_xarray(self) -> Any:
        """The draws as an xarray Dataset with dimensions chain, draw, column and topic, which ArviZ takes as it is.

        Topics of all chains are matched to those of the best one. coef are the chains' own draws, calibrated those that
        predictions use. Needs xarray: pip install 'supertopic[diagnostics]'.
        """
        import xarray

        order = self.match_topics()
        n_chains, n_draws = self._eta.shape[:2]
        data: dict[str, Any] = {"log_joint": (("chain", "draw"), self.trace_[:, :, 0])}
        dims: dict[str, Any] = {"chain": np.arange(n_chains), "draw": np.arange(n_draws)}
        if hasattr(self, "coef_"):
            dims |= {"column": self._column_names(), "topic": np.arange(order.shape[1])}
            for name, draws in (("coef", self.coef_draws_), ("calibrated", self.calibrated_draws_)):
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
        """A pandas frame of the best chain's topics: topic, share, exclusivity, and their n most probable words."""
        import pandas

        words = [" ".join(map(str, row)) for row in self.top_words(feature_names, n)]
        shares = self._topic_shares[self.best_chain_]
        columns = {"topic": np.arange(len(words)), "share": shares, "exclusivity": self.exclusivity(n), "words": words}
        return pandas.DataFrame(columns).sort_values("share", ascending=False, ignore_index=True)

    def coefficient_frame(self, level: float = 0.9) -> Any:
        """A pandas frame of the weights that predictions use: column, topic, mean, sd, interval, P(positive).

        It is empty for LDA, which has none.
        """
        import pandas

        check_is_fitted(self, "_word_topic")
        draws = self._calibrated[0][self.best_chain_][..., : self._n_features_out]  # (draw, column, topic)
        lower, upper = interval(draws, level)
        names = self._column_names()
        frame = {
            "column": np.repeat(np.array(names, dtype=object), draws.shape[2]),
            "topic": np.tile(np.arange(draws.shape[2]), len(names)),
            "mean": draws.mean(axis=0).ravel(),
            "sd": draws.std(axis=0, ddof=1).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            "p_positive": (draws > 0).mean(axis=0).ravel(),
        }
        return pandas.DataFrame(frame)

    def perplexity(self, X: ArrayLike, random_state: int = 0, chains: Sequence[int] | None = None) -> float:
        """Held-out perplexity by document completion, smaller is better.

        A random half of each document's tokens tells its topics, and the other half is predicted, with the mean over
        the chains (all, or those that are named): exp(- mean log p(token)). No token is used for both, so that a
        document that explains itself gains nothing.
        """
        counts = self._new_counts(X).astype(np.int64)
        seen, hidden = counts.copy(), counts.copy()
        seen.data = np.random.default_rng(random_state).binomial(counts.data, 0.5)
        hidden.data = counts.data - seen.data
        if hidden.data.sum() == 0:
            raise ValueError("Documents must have some words for half of them to be predicted.")
        doc, word = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), counts.indices
        lengths, p = np.asarray(seen.sum(axis=1)).reshape(-1, 1), np.zeros(len(word))
        chains = range(len(self._word_topic)) if chains is None else chains
        for chain, zbar in zip(chains, self._infer(seen, chains), strict=True):
            theta = (zbar * lengths + self.alpha_[chain]) / (lengths + self.alpha_[chain].sum())
            p += np.einsum("ik,ik->i", theta[doc], self._phi(chain)[word]) / len(chains)
        return float(np.exp(-np.sum(hidden.data * np.log(p)) / hidden.data.sum()))

    def exclusivity(self, n: int = 10) -> np.ndarray:
        """For each topic, over its n most probable words, the mean of its part in all topics' use of the word."""
        topics = self.topic_word_
        share = topics / topics.sum(axis=0)
        best = np.argsort(-topics, axis=1, kind="stable")[:, :n]
        return np.take_along_axis(share, best, axis=1).mean(axis=1)

    def coherence(
        self, texts: Iterable[Sequence[str]], feature_names: ArrayLike | None = None, n: int = 10, measure: str = "c_v"
    ) -> np.ndarray:
        """How well the n top words of each topic go together in reference texts, (n_topics,).

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
        return coherence([list(map(str, words)) for words in self.top_words(feature_names, n)], texts, measure)


def describe_topics(model, feature_names: ArrayLike | None = None, n: int = 10) -> list[dict]:
    """The topics, largest first: share, words, and the largest weight, with its class where there are classes."""
    words, shares = model.top_words(feature_names, n), model._topic_shares[model.best_chain_]
    rows = []
    for k in np.argsort(-shares):
        row = {"topic": int(k), "share": float(shares[k]), "words": words[k]}
        if hasattr(model, "coef_"):
            one = len(model.coef_) == 1
            r = 0 if one else int(model.coef_[:, k].argmax())
            row["weight"] = weight = float(model.coef_[r, k])
            clear = one or weight > 0
            if model.coef_draws_.shape[1] > 1:
                row["interval"] = lower, upper = [float(side[r, k]) for side in model.coef_interval(0.9)]
                clear = clear and not lower <= 0 <= upper  # else nothing that the draws agree on
            if hasattr(model, "classes_"):
                row["class"] = model.classes_.tolist()[int(weight > 0) if one else r] if clear else None
        rows.append(row)
    return rows


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
