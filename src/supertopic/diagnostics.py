"""Is it converged, and is it any good? R-hat, effective sample size, frames, xarray, perplexity, coherence.

Chains number their topics as they like, so that only what does not depend on the numbers is compared between them: the
log joint, losses, omega. Where topics are shown for several chains, they are matched to those of the best one first.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

RHAT, APART = 1.05, 0.05  # what R-hat, and the distance of the chains' scores, may be
EPSILON = 1e-12  # Roeder, Both and Hinneburg's, and gensim's
WINDOWS = {"c_v": 110, "c_npmi": 10}  # words, theirs as well


class Diagnostics:
    """What a fitted model has to say of itself."""

    def diagnose(self, X=None, y=None, **known) -> dict[str, dict[str, float]]:
        """R-hat and effective sample size of quantities that do not depend on how topics are numbered.

        Parameters
        ----------
        X, y : held-out documents and responses, optional
            With X also omega (the least certain document), with both also the loss and, for each chain, the score.
        **known
            exposure or covariates of these documents.

        Returns
        -------
        dict
            For each quantity {"rhat": ..., "ess": ...}, rank-normalised (Vehtari and others, 2021); "score" holds the
            score of each chain instead. R-hat needs four draws or more; its halves of one chain stand for two.

        A ConvergenceWarning with advice comes if an R-hat is above 1.05, or if chains' scores differ by more than 0.05.
        """
        check_is_fitted(self, "_word_topic")
        quantities: dict[str, np.ndarray] = {"log joint": self.trace_[:, :, 0]}
        if hasattr(self, "coef_"):
            quantities["training loss"] = self.trace_[:, :, 1]
        found: dict[str, dict[str, float]] = {}
        if X is not None:
            omega = np.array([omega for omega, _ in self._omegas(X, known.get("covariates"))])
            omega = omega.reshape(*self._eta.shape[:2], -1)
            worst = max(range(omega.shape[2]), key=lambda i: rhat(omega[:, :, i]))
            quantities["omega"] = omega[:, :, worst]
        if X is not None and y is not None:
            losses, scores = self._losses(X, y, **known)
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
        n_columns = self._eta.shape[2]
        names = [str(name) for name in getattr(self, "classes_", range(n_columns))]
        return names[-1:] if n_columns == 1 else names[:n_columns]

    def topic_frame(self, feature_names: ArrayLike | None = None, n: int = 10) -> Any:
        """A pandas frame of the best chain's topics: topic, share, exclusivity, and their n most probable words."""
        import pandas

        words = [" ".join(map(str, row)) for row in self.top_words(feature_names, n)]
        shares = self._topic_shares()[self.best_chain_]
        columns = {"topic": np.arange(len(words)), "share": shares, "exclusivity": self.exclusivity(n), "words": words}
        return pandas.DataFrame(columns).sort_values("share", ascending=False, ignore_index=True)

    def coefficient_frame(self, level: float = 0.9) -> Any:
        """A pandas frame of the weights that predictions use: column, topic, mean, sd, interval, P(positive)."""
        import pandas

        draws, (lower, upper) = self.calibrated_draws_[self.best_chain_], self.coef_interval(level)
        rows = [
            {
                "column": name,
                "topic": k,
                "mean": draws[:, r, k].mean(),
                "sd": draws[:, r, k].std(ddof=1),
                "lower": lower[r, k],
                "upper": upper[r, k],
                "p_positive": (draws[:, r, k] > 0).mean(),
            }
            for r, name in enumerate(self._column_names())
            for k in range(draws.shape[2])
        ]
        return pandas.DataFrame(rows)

    def perplexity(self, X: ArrayLike, random_state: int = 0) -> float:
        """Held-out perplexity by document completion, smaller is better.

        A random half of each document's tokens tells its topics, and the other half is predicted, with the mean over
        the chains: exp(- mean log p(token)). No token is used for both, so that a document that explains itself gains
        nothing.
        """
        counts = self._new_counts(X).astype(np.int64)
        seen, hidden = counts.copy(), counts.copy()
        seen.data = np.random.default_rng(random_state).binomial(counts.data, 0.5)
        hidden.data = counts.data - seen.data
        if hidden.data.sum() == 0:
            raise ValueError("Documents must have some words for half of them to be predicted.")
        doc, word = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), counts.indices
        lengths, p = np.asarray(seen.sum(axis=1)).reshape(-1, 1), np.zeros(len(word))
        for chain, zbar in enumerate(self._infer(seen, range(len(self._word_topic)))):
            theta = (zbar * lengths + self.alpha_[chain]) / (lengths + self.alpha_[chain].sum())
            p += np.einsum("ik,ik->i", theta[doc], self._phi(chain)[word]) / len(self._word_topic)
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
        return coherence([list(map(str, words)) for words in self.top_words(feature_names, n)], texts, measure)


def split(draws: np.ndarray) -> np.ndarray:
    """(chain, draw) with each chain cut into halves."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def rank_normalise(draws: np.ndarray) -> np.ndarray:
    ranks = rankdata(draws).reshape(draws.shape)
    return ndtri((ranks - 0.375) / (draws.size + 0.25))


def rhat(draws: np.ndarray) -> float:
    """Split R-hat of (chain, draw), the larger of the rank-normalised bulk and tail; NaN with fewer than four draws."""
    if draws.shape[1] < 4 or np.ptp(draws) == 0:
        return float("nan")
    halves = split(draws)
    values = []
    for z in (rank_normalise(halves), rank_normalise(np.abs(halves - np.median(halves)))):
        n = z.shape[1]
        within, between = z.var(axis=1, ddof=1).mean(), n * z.mean(axis=1).var(ddof=1)
        values.append(np.sqrt(((n - 1) / n * within + between / n) / within) if within > 0 else np.inf)
    return float(max(values))


def ess(draws: np.ndarray) -> float:
    """Effective sample size of the bulk of (chain, draw): Geyer's monotone sums of autocorrelations."""
    if draws.shape[1] < 4 or np.ptp(draws) == 0:
        return float("nan")
    z = rank_normalise(split(draws))
    m, n = z.shape
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(z - z.mean(axis=1, keepdims=True), size)) ** 2
    covariance = np.fft.irfft(spectrum, size)[:, :n] / n
    within = (covariance[:, 0] * n / (n - 1)).mean()
    total = within * (n - 1) / n + (z.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    rho = 1.0 - (within - covariance.mean(axis=0)) / total
    rho[0] = 1.0
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = np.argmax(pairs <= 0) if (pairs <= 0).any() else len(pairs)
    stop = min(stop, (n - 3) // 2)  # the last lags rest on few products
    tau = -1.0 + 2.0 * np.minimum.accumulate(pairs[:stop]).sum() + max(rho[2 * stop], 0.0)
    return float(m * n / max(tau, 1.0 / np.log10(m * n)))


def coherence(topics: list[list[str]], texts: Iterable[Sequence[str]], measure: str) -> np.ndarray:
    """C_v or NPMI of each topic from sliding windows over the texts."""
    index = {word: i for i, word in enumerate(dict.fromkeys(word for words in topics for word in words))}
    together, n_windows = count_windows(texts, index, WINDOWS[measure])
    if n_windows == 0:
        raise ValueError("texts holds no text; coherence needs some to count words in.")
    alone = together.diagonal()
    alone = np.where(alone > 0, alone, np.nan)  # a word that no text has makes its topic NaN
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = together / n_windows
        pmi = np.log((joint + EPSILON) / (alone[:, None] / n_windows * alone / n_windows))
        npmi = pmi / -np.log(joint + EPSILON)
        values = []
        for words in topics:
            block = npmi[np.ix_(ids := [index[word] for word in words], ids)]
            if measure == "c_npmi":
                values.append(block[~np.eye(len(ids), dtype=bool)].mean())
            else:  # every word's vector against that of all words
                whole = block.sum(axis=0)
                values.append(np.mean(block @ whole / (np.linalg.norm(block, axis=1) * np.linalg.norm(whole))))
    return np.array(values)


def count_windows(texts: Iterable[Sequence[str]], index: dict[str, int], width: int) -> tuple[np.ndarray, int]:
    """How many windows hold both of two words (on the diagonal: the one), and how many windows there are.

    As in gensim, whose figures people compare, a word is lost when the first of its copies leaves the window.
    """
    together, n_windows = np.zeros((len(index), len(index))), 0
    for text in texts:
        n = max(1, len(text) - width + 1)
        n_windows += n
        places: dict[int, list[int]] = {}
        for i, word in enumerate(text):
            if word in index:
                places.setdefault(index[word], []).append(i)
        holds = np.zeros((len(places), n))
        for row, positions in zip(holds, places.values(), strict=True):
            leaves = np.array(positions) + 1
            for i in positions:
                first = max(0, i - width + 1)
                row[first : leaves[np.searchsorted(leaves, first, side="right")]] = 1.0
        ids = list(places)
        together[np.ix_(ids, ids)] += holds @ holds.T
    return together, n_windows
