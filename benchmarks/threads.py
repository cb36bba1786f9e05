"""How whole iterations get faster with threads: `python -m benchmarks.threads [--repeat 8] [--threads 1 2 4 8 16]`.

20 Newsgroups (1.5 M tokens), and the same eight times over (11.7 M). The times are those of one chain's iterations
after a few to settle; every number of threads starts from the same state and ends in the same one, which is checked.
"ceiling" is the speed-up of as many chains as threads, each on its own thread and without anything in common: what the
machine itself allows.
"""

import argparse
import json
import os
import platform
import threading
import time
from datetime import date

import numpy as np
import scipy.sparse as sp

from benchmarks.corpora import newsgroups
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.model.responses import Logistic
from supertopic.model.state import Priors
from supertopic.sampling.chain import Chain
from supertopic.sampling.plan import make_plan
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.threads import ThreadEngine

SETTLE, MEASURED = 3, 5  # iterations
WORK = {  # times over, topics, columns, c, what 16 threads on 16 cores should reach
    "20 columns, K = 40, 11.7 M tokens": (8, 40, 20, 64.0, 12),
    "1 column, K = 1000, 11.7 M tokens": (8, 1000, 1, 25.0, 12),
    "1 column, K = 20, 1.5 M tokens": (1, 20, 1, 25.0, 8),
    "20 columns, K = 40, 1.5 M tokens": (1, 40, 20, 64.0, None),
}


def make(news, times, n_topics, n_columns, c):
    """A plan and its documents."""
    X, y = sp.csr_array(sp.vstack([news.X] * times)), np.tile(news.y, times)
    Y = (y[:, None] == np.unique(y) if n_columns > 1 else y[:, None] <= 10).astype(float)
    source = Arrays(make_tokens(check_counts(X)), make_target(Y, np.ones_like(Y)))
    priors = Priors(np.full(n_topics, 1.0 / n_topics), 0.01, 1.0)
    return make_plan(source, X.shape[1], Logistic(c), priors, False, "delayed", 0, 10**9), source


def measure(plan, source, n_threads):
    """Seconds of an iteration, and a sum that tells whether the chain went the same way."""
    with Chain(plan, 0, ThreadEngine(plan, source, n_threads), None) as chain:
        for _ in range(SETTLE):
            chain.step()
        seconds = []
        for _ in range(MEASURED):
            began = time.perf_counter()
            chain.step()
            seconds.append(time.perf_counter() - began)
        return float(np.median(seconds)), float(chain.last_eta.sum())


def ceiling(plan, source, n_threads):
    """How many times faster n_threads chains are, together, than one, where they share nothing but the machine."""

    def rate(n):
        chains = [Chain(plan, i, ThreadEngine(plan, source, 1), None) for i in range(n)]
        gate = threading.Barrier(n + 1)

        def work(chain):
            chain.step()
            gate.wait()
            for _ in range(MEASURED):
                chain.step()
            gate.wait()

        threads = [threading.Thread(target=work, args=(chain,)) for chain in chains]
        for thread in threads:
            thread.start()
        gate.wait()
        began = time.perf_counter()
        gate.wait()
        seconds = time.perf_counter() - began
        for thread in threads:
            thread.join()
        return n * MEASURED / seconds

    return rate(n_threads) / rate(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="*", default=[n for n in (1, 2, 4, 8, 16) if n <= os.cpu_count()])
    parser.add_argument("--work", nargs="*", default=list(WORK))
    parser.add_argument("--ceiling", action="store_true", help="measure what the machine itself allows, too")
    arguments = parser.parse_args()
    print(json.dumps({"date": str(date.today()), "machine": platform.processor(), "cores": os.cpu_count()}))
    news = newsgroups()
    for name in arguments.work:
        *sizes, goal = WORK[name]
        plan, source = make(news, *sizes)
        n_tokens, alone, truth = len(source.tokens.word), None, None
        for n_threads in arguments.threads:
            with one_blas_thread:
                seconds, check = measure(plan, source, n_threads)
            alone, truth = alone or seconds, truth or check
            row = {"work": name, "threads": n_threads, "ns": 1e9 * seconds / n_tokens, "speed-up": alone / seconds}
            print(json.dumps(row | {"same": check == truth, "shards": len(plan.slices), "goal": goal}), flush=True)
        if arguments.ceiling:
            plan, source = make(news, 1, *sizes[1:])
            with one_blas_thread:
                print(json.dumps({"work": name, "ceiling": ceiling(plan, source, max(arguments.threads))}), flush=True)


if __name__ == "__main__":
    main()
