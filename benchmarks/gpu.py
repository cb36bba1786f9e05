"""What a GPU does: `python -m benchmarks.gpu [WORK ...] [--json FILE]`.

20 Newsgroups, the paper's training part, 40 times over: 58.7 M tokens, of which documents of at most 400 tokens have
41 M. Times are medians of five iterations after five to settle (30 for many topics): of the sweep alone by the GPU's
own clock, of whole iterations (eta, z, lambda, counts) by the machine's. `docs/gpu.md` has the results,
`benchmarks/gpu.md` how it got there.
"""

import argparse
import json
import platform
import time
from datetime import date

import numpy as np
import scipy.sparse as sp

for new, old in (("vstack", "row_stack"), ("isin", "in1d"), ("trapezoid", "trapz")):
    if not hasattr(np, old):  # numba-cuda 0.30 asks for names that NumPy 2.5 has not any more
        setattr(np, old, getattr(np, new))

from benchmarks.corpora import newsgroups, newsgroups_pair  # noqa: E402
from supertopic import SLDAClassifier  # noqa: E402
from supertopic.corpus.source import Arrays, make_target  # noqa: E402
from supertopic.corpus.tokens import Tokens, check_counts, make_tokens  # noqa: E402
from supertopic.kernels.cuda.device import find_device, free_bytes  # noqa: E402
from supertopic.kernels.cuda.layout import SPARSE_FROM  # noqa: E402
from supertopic.kernels.draws import make_key  # noqa: E402
from supertopic.model.responses import Logistic  # noqa: E402
from supertopic.model.state import Priors, fixed_topics  # noqa: E402
from supertopic.sampling.chain import Chain  # noqa: E402
from supertopic.sampling.gibbs import iterate  # noqa: E402
from supertopic.sampling.new_documents import freeze, infer_shares  # noqa: E402
from supertopic.sampling.plan import make_plan  # noqa: E402
from supertopic.sampling.pool import one_blas_thread  # noqa: E402
from supertopic.sampling.threads import ThreadEngine  # noqa: E402

SETTLE, MEASURED = 5, 5
SETTLE_MANY = 30  # where the time of a sweep depends on how many topics a document still has
SWEEPS = {  # times over, the longest document, topics, columns, at least and the aim in G tokens/s
    "1 column, K = 20, up to 400 tokens": (40, 400, 20, 1, 13, 20),
    "1 column, K = 20, all documents": (40, 10**6, 20, 1, 9, 13),
    "1 column, K = 40, up to 400 tokens": (40, 400, 40, 1, None, None),
    "1 column, K = 100, up to 400 tokens": (40, 400, 100, 1, 3, 5),
    "1 column, K = 256, up to 400 tokens": (40, 400, 256, 1, 1.5, 3),
    "1 column, K = 1000, up to 400 tokens": (20, 400, 1000, 1, 3, 6),
    "1 column, K = 10,000, up to 400 tokens": (10, 400, 10_000, 1, 2, 5),
    "20 columns, K = 40, up to 400 tokens": (20, 400, 40, 20, 2, 4),
    "no column, K = 40, up to 400 tokens": (40, 400, 40, 0, None, None),
}


def make(news, times, longest, n_topics, n_columns, c=25.0, device="cuda"):
    """A plan and its documents."""
    lengths = np.asarray(news.X.sum(axis=1)).ravel()
    some = (lengths > 0) & (lengths <= longest)
    X, y = sp.csr_array(sp.vstack([news.X[some]] * times)), np.tile(news.y[some], times)
    Y = (y[:, None] == np.unique(y) if n_columns > 1 else y[:, None] <= 10).astype(float)[:, :n_columns]
    source = Arrays(make_tokens(check_counts(X)), make_target(Y, np.ones_like(Y)))
    alpha = 0.1 if n_topics <= 1000 else 50 / n_topics  # 1,000 tokens of a prior would be more than a document has
    priors = Priors(np.full(n_topics, alpha), 0.01, 1.0)
    return make_plan(source, X.shape[1], Logistic(c), priors, False, "delayed", 0, 10**9, device), source


def iterations(plan, source, n_threads=1, asked=lambda: 0):
    """Seconds for eta, z and lambda, and of whole iterations: medians; and what is asked at the end."""
    with Chain(plan, 0, ThreadEngine(plan, source, n_threads), None) as chain:
        settle = SETTLE_MANY if plan.n_topics >= SPARSE_FROM else SETTLE
        parts, whole = [], []
        for i in range(settle + MEASURED):
            before, began = chain.engine.timings(), time.perf_counter()
            key, about = make_key(plan.seed, 0, i + 1), (None, plan.response, plan.priors)
            chain.last_eta, chain.statistics, _ = iterate(
                chain.engine, chain.statistics, *about, key, last=chain.last_eta
            )
            parts.append(chain.engine.timings() - before)  # waits for the GPU
            whole.append(time.perf_counter() - began)
        return (*np.median(parts[settle:], axis=0).tolist(), float(np.median(whole[settle:])), asked())


def sweeps(news):
    for name, (times, longest, n_topics, n_columns, least, aim) in SWEEPS.items():
        plan, source = make(news, times, longest, n_topics, n_columns)
        n_tokens = len(source.tokens.word)
        eta, alone, lam, whole, _ = iterations(plan, source)
        yield name, {
            "tokens": n_tokens, "G tokens/s": n_tokens / alone / 1e9, "at least": least, "aim": aim,
            "ms": 1e3 * alone, "eta": 1e3 * eta, "lambda": 1e3 * lam, "whole iteration": whole / alone,
        }  # fmt: skip


def billion(news, n_topics=1000):
    """A billion tokens, the documents of up to 400 tokens about a thousand times: seconds an iteration, and memory."""
    plan, source = make(news, 1, 400, n_topics, 1)
    word, start, target = source.tokens.word, source.tokens.doc_start, source.target
    times = -(-(10**9) // len(word))
    starts = (start[:-1] + len(word) * np.arange(times)[:, None]).reshape(-1)
    tokens = Tokens(np.tile(word, times), np.append(starts, times * len(word)))
    target = target._replace(**{name: np.tile(array, (times, 1)) for name, array in target._asdict().items()})
    source, before = Arrays(tokens, target), free_bytes()
    plan = make_plan(
        source, plan.n_words, plan.response, plan.priors, False, "delayed", 0, 10**9, "cuda"
    )  # fmt: skip
    eta, alone, _, whole, used = iterations(plan, source, asked=lambda: before - free_bytes())
    yield f"a billion tokens, K = {n_topics:,}", {
        "tokens": len(tokens.word), "documents": len(starts), "iteration": whole, "sweep": alone, "eta": eta,
        "G tokens/s": len(tokens.word) / alone / 1e9, "GB": used / 1e9,
    }  # fmt: skip


def against_threads(news, n_threads=16):
    """One column, K = 40, all documents: the GPU against the machine's own threads."""
    seconds = {}
    for device in ("cuda", "cpu"):
        plan, source = make(news, 40, 10**6, 40, 1, device=device)
        seconds[device] = iterations(plan, source, n_threads)[3]
    yield "whole iterations, K = 40, 58.7 M tokens", seconds | {"times": seconds["cpu"] / seconds["cuda"]}


def predictions(news, n_threads=16, n_docs=100_000):
    """Shares of new documents, K = 40, 40 sweeps, from tokens in memory."""
    X = sp.csr_array(sp.vstack([news.X_test] * (n_docs // news.X_test.shape[0] + 1)))[:n_docs]
    tokens = make_tokens(check_counts(X))
    phi = np.random.default_rng(0).dirichlet(np.full(X.shape[1], 0.05), 40).T
    topics, seconds = fixed_topics(phi, np.full(40, 0.1)), {}
    for device in ("cuda", "cpu"):
        frozen, times = freeze(topics, device), []
        for _ in range(6 if device == "cuda" else 2):
            began = time.perf_counter()
            infer_shares(tokens, frozen, 40, make_key(1), n_threads)
            times.append(time.perf_counter() - began)
        seconds[device] = float(np.median(times[1:]))
    yield (
        f"{n_docs:,} new documents, {len(tokens.word):,} tokens",
        seconds | {"times": seconds["cpu"] / seconds["cuda"]},
    )


def separate(news):
    """The paper's experiment: 20 one-vs-rest gSLDA+ models, K = 20, 40 iterations, from counts in memory to models."""
    seconds = []
    for _ in range(4):
        model = SLDAClassifier(
            20, c=64.0, multiclass="separate", calibrate=False, words=False, n_chains=1, burn_in=20, n_draws=20,
            device="cuda", random_state=0,
        )  # fmt: skip
        began = time.perf_counter()
        model.fit(news.X, news.y)
        seconds.append(time.perf_counter() - began)
    accuracy = model.score(news.X_test, news.y_test)
    name = "20 one-vs-rest models, K = 20, 40 iterations"
    yield name, {"first": seconds[0], "seconds": float(np.median(seconds[1:])), "accuracy": accuracy}


def accuracy(news):
    """The defaults on both tasks of the paper, five seeds each: accuracy on the test documents."""
    for name, task in (("twenty groups", news), ("pair", newsgroups_pair(news))):
        scores, seconds = [], []
        for seed in range(5):
            began = time.perf_counter()
            model = SLDAClassifier(random_state=seed, device="cuda", n_jobs=-1).fit(task.X, task.y)
            seconds.append(time.perf_counter() - began)
            scores.append(model.score(task.X_test, task.y_test))
        yield f"accuracy, {name}", {
            "mean": float(np.mean(scores)), "sd": float(np.std(scores, ddof=1)), "fit": float(np.median(seconds)),
        }  # fmt: skip


WORK = {
    "sweeps": sweeps,
    "billion": billion,
    "threads": against_threads,
    "predictions": predictions,
    "separate": separate,
    "accuracy": accuracy,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", nargs="*", default=[], help=f"of {', '.join(WORK)}; all by default")
    parser.add_argument("--json", help="where the figures are written, too")
    arguments = parser.parse_args()
    import numba
    import numba_cuda

    about = {"date": str(date.today()), "gpu": find_device(), "python": platform.python_version()}
    about |= {"numpy": np.__version__, "numba": numba.__version__, "numba-cuda": numba_cuda.__version__}
    print(about, flush=True)
    news, found = newsgroups(), {}
    with one_blas_thread:
        for work in arguments.work or WORK:
            for name, figures in WORK[work](news):
                found[name] = figures
                shown = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items())
                print(f"{name}: {', '.join(shown)}", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(about | {"figures": found}, file, indent=1)


if __name__ == "__main__":
    main()
