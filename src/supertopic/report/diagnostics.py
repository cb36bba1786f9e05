"""Statistics of draws and of topics: R-hat, effective sample size, coherence."""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

EPSILON = 1e-12  # Roeder, Both and Hinneburg's, and gensim's
WINDOWS = {"c_v": 110, "c_npmi": 10}  # words, theirs as well


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
