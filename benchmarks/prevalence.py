"""Whether intervals of `topic_effects` hold the truth: `python -m benchmarks.prevalence [case ...] [--corpora 200]`.

Corpora of 400 documents with five topics are generated from known effects: on groups, along a number, on groups of
clusters that differ by chance, and none. Topics are found by the model and matched to the true ones by the cosine of
their words (0.8 or more); what a model did not find cannot be compared. A figure is the mean over the matched topics of
all corpora: the share of 90 % intervals that hold the true difference, their width, how much of the true difference
is found, and the share of intervals without 0. Beside it: an ordinary regression of `transform(X)`, and topica's
structural topic model with its `estimate_effect`. `coin` is about supervised models: the groups are labels by chance.
The rows of a run are added to prevalence.json.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from scipy.stats import t as student

from benchmarks import history
from supertopic import LDA, SLDAClassifier

RESULTS = history.place("prevalence")
N_DOCS, N_TOPICS, N_WORDS, N_CLUSTERS, MIXED = 400, 5, 300, 20, 2.0
LEVEL, ALIKE, MANY = 0.9, 0.8, 100_000  # MANY draws are the truth where it has no closed form
LENGTHS = (20, 50, 200)


class Corpus(NamedTuple):
    counts: np.ndarray  # (n_docs, V)
    by: np.ndarray  # (n_docs,): texts or numbers
    groups: np.ndarray | None  # (n_docs,): clusters
    topics: np.ndarray  # (K, V)
    truth: np.ndarray  # (n_differences, K): of each group against the first, or the slope


def documents(rng: np.random.Generator, length: int, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Words of documents with known shares, and the topics."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)
    lengths = np.maximum(rng.poisson(length, len(shares)), 1)
    return np.array([rng.multinomial(n, row @ topics) for n, row in zip(lengths, shares, strict=True)]), topics


def dirichlet(rng: np.random.Generator, means: np.ndarray, mixed: float = MIXED) -> np.ndarray:
    """Shares of documents; the larger `mixed` is, the more are they alike."""
    gammas = np.maximum(rng.standard_gamma(mixed * means), 1e-300)
    return gammas / gammas.sum(axis=1, keepdims=True)


def group_means(rng: np.random.Generator, n_groups: int) -> np.ndarray:
    base = rng.dirichlet(np.full(N_TOPICS, 5.0))
    return np.array([rng.dirichlet(20.0 * base) for _ in range(n_groups)])


def grouped(
    rng: np.random.Generator, length: int, n_groups: int = 2, effect: bool = True, mixed: float = MIXED
) -> Corpus:
    """Each group has its own mean shares, or all have the same."""
    means, group = group_means(rng, n_groups), np.arange(N_DOCS) % n_groups
    means = means if effect else np.tile(means[0], (n_groups, 1))
    counts, topics = documents(rng, length, dirichlet(rng, means[group], mixed))
    return Corpus(counts, group.astype(str), None, topics, means[1:] - means[0])


def along(rng: np.random.Generator, length: int) -> Corpus:
    """Mean shares move along a line from one end of a number to the other."""
    ends, x = group_means(rng, 2), rng.random(N_DOCS)
    counts, topics = documents(rng, length, dirichlet(rng, x[:, None] * ends[1] + (1 - x[:, None]) * ends[0]))
    return Corpus(counts, x, None, topics, ends[1:] - ends[0])


def clustered(rng: np.random.Generator, length: int) -> Corpus:
    """Two groups of ten clusters each; a cluster's mean shares differ from its group's by chance."""
    means, cluster = group_means(rng, 2), np.arange(N_DOCS) % N_CLUSTERS
    own = softmax(np.log(means[np.arange(N_CLUSTERS) % 2]) + rng.normal(0, 0.5, (N_CLUSTERS, N_TOPICS)), axis=1)
    counts, topics = documents(rng, length, dirichlet(rng, own[cluster]))
    noise = rng.normal(0, 0.5, (MANY, N_TOPICS))
    truth = [softmax(np.log(mean) + noise, axis=1).mean(axis=0) for mean in means]
    return Corpus(counts, (cluster % 2).astype(str), cluster, topics, np.array([truth[1] - truth[0]]))


def correlated(rng: np.random.Generator, length: int) -> Corpus:
    """Two groups with logistic-normal shares whose topics are correlated: not what an LDA assumes."""
    means, group, root = group_means(rng, 2), np.arange(N_DOCS) % 2, 0.7 * rng.normal(size=(N_TOPICS, N_TOPICS))
    shares = softmax(np.log(means[group]) + rng.normal(size=(N_DOCS, N_TOPICS)) @ root.T, axis=1)
    counts, topics = documents(rng, length, shares)
    noise = rng.normal(size=(MANY, N_TOPICS)) @ root.T
    truth = [softmax(np.log(mean) + noise, axis=1).mean(axis=0) for mean in means]
    return Corpus(counts, group.astype(str), None, topics, np.array([truth[1] - truth[0]]))


CASES: dict[str, Callable[[np.random.Generator, int], Corpus]] = {
    "2 groups": grouped,
    "5 groups": lambda rng, length: grouped(rng, length, 5),
    "2 groups, mixed": lambda rng, length: grouped(rng, length, mixed=8.0),
    "a number": along,
    "20 clusters": clustered,
    "no effect": lambda rng, length: grouped(rng, length, effect=False),
    "correlated topics": correlated,
}


class Found(NamedTuple):
    """Differences as a system finds them, (n_differences, K) each, and its topics (K, V)."""

    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    topics: np.ndarray


def design_of(corpus: Corpus) -> np.ndarray:
    """The columns beside the intercept."""
    if corpus.by.dtype.kind == "f":
        return corpus.by[:, None]
    return (corpus.by[:, None] == np.unique(corpus.by)[1:]).astype(float)


def ours(corpus: Corpus, seed: int) -> dict[str, Found]:
    """`topic_effects`, and a regression of the shares that `transform` gives."""
    model = LDA(N_TOPICS, optimize_priors=True, random_state=seed).fit(corpus.counts)
    effects = model.topic_effects(corpus.counts, corpus.by, groups=corpus.groups, level=LEVEL)
    table = effects.coefficients()
    rows = [table[table.coefficient == name] for name in effects.design.names[1:]]
    found = Found(
        *(np.array([row[c].to_numpy() for row in rows]) for c in ("mean", "lower", "upper")), model.topic_word_
    )
    shares, regression = model.transform(corpus.counts), effects.regression
    fit = regression.fit(shares)
    residuals = shares - regression.design @ fit
    se = np.sqrt([np.diag(regression.covariance(column)) for column in residuals.T]).T[1:]
    degrees = [regression.degrees(row) for row in np.eye(len(fit))[1:]]
    wide = se * student.ppf((1 + LEVEL) / 2, degrees)[:, None]
    plain = Found(fit[1:], fit[1:] - wide, fit[1:] + wide, model.topic_word_)
    return {"topic_effects": found, "regression of transform(X)": plain}


def structural(corpus: Corpus, seed: int) -> dict[str, Found]:
    """topica's structural topic model with the design as prevalence, and its `estimate_effect`."""
    try:
        import topica
    except ImportError:
        return {}
    words = np.arange(corpus.counts.shape[1]).astype(str)
    design = design_of(corpus)
    model = topica.STM(N_TOPICS, seed=seed)
    model.fit([list(np.repeat(words, row)) for row in corpus.counts], prevalence=design, num_threads=1)
    effects = topica.estimate_effect(model, design, nsims=100, ci=LEVEL, seed=0, cluster=corpus.groups)
    topics = np.zeros(corpus.topics.shape)
    topics[:, np.array(model.vocabulary).astype(int)] = model.topic_word
    values = (np.array([getattr(effect, name)[1:] for effect in effects]).T for name in ("coef", "ci_low", "ci_high"))
    return {"topica STM": Found(*values, topics)}


def measure(case: str, length: int, seed: int) -> dict[str, np.ndarray]:
    """For each system a row for each matched topic and difference: inside, width, found, true, excludes 0."""
    warnings.simplefilter("ignore")
    corpus, rows = CASES[case](np.random.default_rng(seed), length), {}
    for name, found in (ours(corpus, seed) | structural(corpus, seed)).items():
        unit = [topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (corpus.topics, found.topics)]
        alike = unit[0] @ unit[1].T
        true, own = linear_sum_assignment(-alike)
        matched = alike[true, own] >= ALIKE
        truth, own = corpus.truth[:, true[matched]], own[matched]
        mean, lower, upper = (part[:, own] for part in found[:3])
        columns = ((lower <= truth) & (truth <= upper), upper - lower, mean, truth, (lower > 0) | (upper < 0))
        rows[name] = np.array([column.ravel() for column in columns], float)
    return rows


def coverage(cases: list[str], n_corpora: int, n_jobs: int) -> Iterator[dict]:
    """A row for each case, length and system."""
    for case in cases:
        for length in LENGTHS:
            found = Parallel(n_jobs)(delayed(measure)(case, length, seed) for seed in range(n_corpora))
            for name in found[0]:
                every = np.concatenate([rows[name] for rows in found], axis=1)
                inside, width, mean, truth, without = every
                n_true = n_corpora * N_TOPICS * (4 if case == "5 groups" else 1)
                part = round(float(mean @ truth / (truth @ truth)), 3) if truth.any() else None
                yield {"case": case, "length": length, "system": name, "corpora": n_corpora,
                       "matched": round(every.shape[1] / n_true, 3), "inside": round(inside.mean(), 3),
                       "width": round(width.mean(), 4), "found": part,
                       "without_0": round(without.mean(), 3)}  # fmt: skip


def coin(seed: int) -> list[float]:
    """Intervals without 0 between labels by chance: on the documents of the fit, and on others."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    means = group_means(rng, 1)[0]
    counts, _ = documents(rng, 50, dirichlet(rng, np.tile(means, (2 * N_DOCS, 1))))
    label = rng.integers(0, 2, 2 * N_DOCS).astype(str)
    model = SLDAClassifier(N_TOPICS, n_chains=1, words=False, optimize_priors=True, random_state=seed)
    model.fit(counts[:N_DOCS], label[:N_DOCS])
    found = []
    for docs in (slice(0, N_DOCS), slice(N_DOCS, None)):
        table = model.topic_effects(counts[docs], label[docs], level=LEVEL).differences()
        found.append(float(((table.lower > 0) | (table.upper < 0)).mean()))
    return found


def coins(n_corpora: int, n_jobs: int) -> Iterator[dict]:
    rows = np.mean(Parallel(n_jobs)(delayed(coin)(seed) for seed in range(n_corpora)), axis=0)
    for name, value in zip(("documents of the fit", "other documents"), rows, strict=True):
        yield {"case": "coin", "length": 50, "system": f"topic_effects, {name}", "corpora": n_corpora,
               "without_0": round(float(value), 3)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"some of: {', '.join([*CASES, 'coin'])}; all by default")
    parser.add_argument("--corpora", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    wanted, rows = options.cases or [*CASES, "coin"], []
    wrong = [case for case in wanted if case not in (*CASES, "coin")]
    if wrong:
        parser.error(f"There is no case {wrong[0]!r}.")
    print("| case | words | system | topics matched | intervals that hold | width | found, of the truth | without 0 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    parts = [coverage([case for case in wanted if case != "coin"], options.corpora, options.jobs)]
    parts += [coins(options.corpora, options.jobs)] if "coin" in wanted else []
    for part in parts:
        for row in part:
            rows.append(row)
            figures = (row.get(name, "") for name in ("case", "length", "system", "matched", "inside", "width", "found",
                                                      "without_0"))  # fmt: skip
            print(f"| {' | '.join(map(str, figures))} |", flush=True)
    history.append(RESULTS, {"rows": rows})


if __name__ == "__main__":
    main()
