"""Bytes and seconds of an iteration on many machines: `python -m benchmarks.scaling`.

First the rates of this machine are measured: tokens a second of a thread, moves that counts follow, and the share of
tokens that move. From these the model below predicts an iteration on two workers of this machine, which is measured,
too, and on 8, 64 and 512 machines of 16 cores with 10 Gbit/s between them.
"""

import time
from typing import NamedTuple

import numpy as np

from benchmarks.cluster import make, step
from benchmarks.corpora import newsgroups
from supertopic.sampling.chain import Chain
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.ray import RayEnginePool
from supertopic.sampling.ray_engine import RayEngine
from supertopic.sampling.threads import ThreadEngine

SETTLE, MEASURED = 12, 5
PYTHON = 0.004  # seconds of the driver for each worker and iteration: calls and answers


class Rates(NamedTuple):
    """What one machine does."""

    tokens: float  # a second and thread: sweep, lambda and statistics
    moved: float  # share of the tokens that move
    moves: float  # a second and thread, that counts follow


def predict(rates, n_tokens, n_words, n_topics, n_columns, n_workers, n_threads, bytes_a_second):
    """Seconds of an iteration by what they are for, and the bytes that a worker receives."""
    per_worker = n_tokens / n_workers
    sent = min(8 * rates.moved * per_worker, 4 * n_words * n_topics)  # by each: moves, or the change of all counts
    heard = sent * (n_workers - 1)
    statistics = 8 * n_columns * (n_topics * (n_topics + 1) // 2 + n_topics)
    follow = rates.moved * n_tokens / (rates.moves * n_threads)
    if sent < 8 * rates.moved * per_worker:
        follow = n_workers * n_words * n_topics / (5 * rates.moves * n_threads)  # whole rows, one after the other
    return {
        "sweep": per_worker / (rates.tokens * n_threads),
        "moves": heard / bytes_a_second,
        "follow": follow,
        "sums": statistics * n_workers / bytes_a_second,
        "eta": n_columns * n_topics**3 / 3 / 1e10,
        "Python": PYTHON * n_workers,
    }, heard


def measure(n_topics, n_columns, times):
    """The rates, and seconds of an iteration of one thread, and of two workers of one thread."""
    news = newsgroups()
    plan, source = make(news, n_topics, n_columns, times)
    n_tokens = len(source.tokens.word)
    with Chain(plan, 0, ThreadEngine(plan, source, 1), None) as chain:
        for i in range(SETTLE):
            step(chain, plan, i + 1)
        took, moved, followed, follow = [], [], [], chain.engine.follow

        def timed(moves, keep):
            began = time.perf_counter()
            follow(moves, keep)
            followed.append(time.perf_counter() - began)
            moved.append(sum(len(move.moves) for move in moves))

        chain.engine.follow = timed
        took = [step(chain, plan, SETTLE + i + 1) for i in range(MEASURED)]
    seconds, moves = np.median(took), np.median(moved)
    rates = Rates(n_tokens / (seconds - np.median(followed)), moves / n_tokens, moves / np.median(followed))
    with RayEnginePool("", 1, "cpu", 1) as pool, Chain(plan, 0, RayEngine(plan, source, pool.workers), None) as chain:
        theirs = np.median([step(chain, plan, i + 1) for i in range(SETTLE + MEASURED)][SETTLE:])
        n_workers = len(chain.engine.workers)
    return rates, n_tokens, seconds, theirs, n_workers


def show(name, parts, received):
    shown = ", ".join(f"{part} {seconds:.3g}" for part, seconds in parts.items())
    print(f"{name}: {sum(parts.values()):.3g} s ({shown}); a worker receives {received / 2**20:,.0f} MiB", flush=True)


def main():
    for n_topics, n_columns, times in ((40, 20, 2), (1000, 1, 2)):
        with one_blas_thread:
            rates, n_tokens, seconds, theirs, n_workers = measure(n_topics, n_columns, times)
        print(
            f"K = {n_topics}, {n_columns} columns, {n_tokens / 1e6:.1f} M tokens: a thread does "
            f"{rates.tokens / 1e6:.1f} M tokens/s, {rates.moved:.0%} move, counts follow {rates.moves / 1e6:.0f} M/s"
        )
        print(f"measured: one thread {seconds:.3f} s, {n_workers} workers of one thread {theirs:.3f} s")
        show("predicted for these", *predict(rates, n_tokens, 53975, n_topics, n_columns, n_workers, 1, 2e9))
        late = rates._replace(moved=min(rates.moved, 0.1))  # when topics have settled
        for n_workers in (8, 64, 512):
            found = predict(late, 10**10, 10**6, n_topics, n_columns, n_workers, 16, 1.25e9)
            show(f"10 G tokens, 1 M words, {n_workers} machines of 16 cores", *found)


if __name__ == "__main__":
    main()
