"""Bytes and seconds of an iteration on many machines: `python -m benchmarks.scaling [--json FILE]`.

First the rates of this machine are measured: tokens a second of a thread, the share of tokens that move, changed counts
that are added up and applied, and the driver's own time for calls and messages, with 2 to 8 processes. From these a
model predicts an iteration on two workers of this machine, which is measured, too, and on 8, 64 and 512 machines of 16
cores with 10 Gbit/s between them.
"""

import argparse
import json
import time
from typing import NamedTuple

import numpy as np
import ray

from benchmarks.cluster import make, step
from benchmarks.corpora import newsgroups
from supertopic.sampling import ray_engine as cluster
from supertopic.sampling.chain import Chain
from supertopic.sampling.exchange import add_up, apply
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.ray import RayEnginePool
from supertopic.sampling.ray_engine import FAN, OWNERS, RayEngine
from supertopic.sampling.threads import Replica, ThreadEngine

SETTLE, MEASURED = 12, 5
CELL, ROW = 3, 8  # bytes of a changed count (a topic in two, its change in one), and of a word that has some
FLOPS = 1e10  # of the decomposition of a matrix


class Rates(NamedTuple):
    """What one machine does."""

    tokens: float  # a second and thread: sweep, lambda and statistics
    moved: float  # share of the tokens that move
    moves: float  # a second and thread, that a worker turns into changed counts
    added: float  # changed counts a second and thread, that an owner adds up
    applied: float  # changed counts a second and thread, that a worker adds to its own
    call: float  # seconds of the driver for a worker and iteration: calls and answers
    message: float  # seconds of the driver for a message between workers


def changed(moves, n_words, n_topics):
    """How many counts, and words, change by so many moves: words by Zipf's law, and any topic as likely as another.

    Both are upper bounds: a word has few of the topics.
    """
    share = 1.0 / np.arange(1, n_words + 1)
    cells = 2.0 * moves * share / share.sum()
    return float(n_topics * -np.expm1(-cells / n_topics).sum()), float(-np.expm1(-cells).sum())


def predict(rates, n_tokens, n_words, n_topics, n_columns, n_workers, n_threads, bytes_a_second):
    """Seconds of an iteration by what they are for, and the bytes that a worker receives."""
    per_worker, n_owners, fan = n_tokens / n_workers, min(n_workers, OWNERS), min(n_workers, FAN)
    own, all_of_them = (changed(rates.moved * tokens, n_words, n_topics) for tokens in (per_worker, n_tokens))
    to_owner, merged = (CELL * cells + ROW * words for cells, words in (own, all_of_them))
    owned = to_owner * n_workers / n_owners  # that an owner receives
    statistics = 8 * n_columns * (n_topics * (n_topics + 1) // 2 + n_topics)
    levels = float(np.ceil(np.log(n_workers) / np.log(FAN)))
    return {
        "sweep": per_worker / (rates.tokens * n_threads),
        "net changes": rates.moved * per_worker / (rates.moves * n_threads),
        "to owners": max(to_owner, owned) / bytes_a_second,
        "adding up": own[0] * n_workers / n_owners / (rates.added * n_threads),
        "from owners": merged / bytes_a_second,
        "applying": all_of_them[0] / (rates.applied * n_threads),
        "sums": levels * statistics * fan / bytes_a_second,
        "eta": n_columns * n_topics**3 / 3 / FLOPS,
        "driver": n_workers * rates.call + n_workers * n_owners * rates.message,
    }, owned + merged


def seconds_of(work, *arguments):
    began = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - began, result


def exchange_rates(plan, source):
    """Moves, and changed counts added up and applied, a second: two replicas in this process, a thread each."""
    half = len(plan.groups) // 2
    replicas = [Replica(plan, source, 1, part) for part in (slice(0, half), slice(half, None))]
    eta, found = np.zeros((plan.n_columns, plan.n_topics)), []
    for i in range(SETTLE + MEASURED):
        for replica in replicas:
            replica.start(np.uint64(1)) if i == 0 else replica.sweep(
                eta, plan.priors, np.uint64(i), False, plan.response
            )
        moves = 1 if i == 0 else sum(len(move.moves) for move in replicas[0].moves)
        to_net, parcels = seconds_of(replicas[0].changes, 2)
        owned = list(zip(parcels, replicas[1].changes(2), strict=True))
        parts = [part for parcel in owned[0] for part in parcel.parts]
        cells = sum(len(part.topic) for part in parts)
        to_add, _ = seconds_of(add_up, parts, plan.n_words, plan.n_topics)
        merged = [replica.merge(parcel) for replica, parcel in zip(replicas, owned, strict=True)]
        count, applied = np.zeros_like(replicas[0].counts.word_topic), merged[0].parts[0]
        to_apply, _ = seconds_of(apply, applied, count, plan.n_topics)
        found.append([moves / to_net, cells / to_add, len(applied.topic) / to_apply])
        for replica in replicas:
            replica.receive(merged)
    for replica in replicas:
        replica.close()
    return np.median(found[SETTLE:], axis=0).tolist()


def driver_rates(plan, source):
    """Seconds of the driver for a call, and for a message between workers, on its own clock: 2, 4 and 8 processes."""
    place, rows, spent, owners = cluster.Place("", 1, 0), [], [], cluster.OWNERS
    for n_workers, n_owners in ((2, 2), (4, 1), (4, 4), (8, 1), (8, 8)):
        cluster.OWNERS = n_owners
        kind = ray.remote(concurrency_groups={"beside": 1})(cluster.Worker)
        workers = [(place, kind.options(num_cpus=0).remote()) for _ in range(n_workers)]
        with Chain(plan, 0, RayEngine(plan, source, workers), None) as chain:
            seconds = []
            for i in range(SETTLE + MEASURED):
                before = time.process_time()
                step(chain, plan, i + 1)
                seconds.append(time.process_time() - before)
        for _, worker in workers:
            ray.kill(worker)
        rows.append([1.0, n_workers, n_workers * n_owners])
        spent.append(np.median(seconds[SETTLE:]))
    cluster.OWNERS = owners
    _, call, message = np.linalg.lstsq(np.array(rows), np.array(spent), rcond=None)[0].tolist()
    return max(call, 0.0), max(message, 0.0)


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
    tokens, exchanged = n_tokens / (seconds - np.median(followed)), exchange_rates(plan, source)
    with RayEnginePool("", 1, "cpu", 1) as pool:
        with Chain(plan, 0, RayEngine(plan, source, pool.workers), None) as chain:
            theirs = np.median([step(chain, plan, i + 1) for i in range(SETTLE + MEASURED)][SETTLE:])
            n_workers = len(chain.engine.workers)
        small = make(news, 20, 1, 1)
        rates = Rates(tokens, moves / n_tokens, *exchanged, *driver_rates(*small))
    return rates, n_tokens, float(seconds), float(theirs), n_workers


def show(name, parts, received):
    shown = ", ".join(f"{part} {seconds:.3g}" for part, seconds in parts.items())
    print(f"{name}: {sum(parts.values()):.3g} s ({shown}); a worker receives {received / 2**20:,.0f} MiB", flush=True)
    return {"seconds": sum(parts.values()), "parts": parts, "received MiB": received / 2**20}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="a file for the figures")
    arguments, found = parser.parse_args(), {}
    for n_topics, n_columns, times in ((40, 20, 2), (1000, 1, 2)):
        with one_blas_thread:
            rates, n_tokens, seconds, theirs, n_workers = measure(n_topics, n_columns, times)
        name = f"K = {n_topics}, {n_columns} column{'s' * (n_columns > 1)}, {n_tokens / 1e6:.1f} M tokens"
        print(f"{name}: {', '.join(f'{key} {value:.3g}' for key, value in rates._asdict().items())}")
        print(f"measured: one thread {seconds:.3f} s, {n_workers} workers of one thread {theirs:.3f} s")
        about = n_topics, n_columns, n_workers, 1, 2e9
        here = show("predicted for these", *predict(rates, n_tokens, 53975, *about))
        found[name] = {"rates": rates._asdict(), "one thread": seconds, "two workers": theirs, "predicted": here}
        late = rates._replace(moved=min(rates.moved, 0.1))  # when topics have settled
        for n_workers in (8, 64, 512):
            parts = predict(late, 10**10, 10**6, n_topics, n_columns, n_workers, 16, 1.25e9)
            found[name][n_workers] = show(f"10 G tokens, 1 M words, {n_workers} machines of 16 cores", *parts)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
