"""Bytes and seconds of an iteration on many machines: `python -m benchmarks.scaling [--json FILE]`.

First the rates of this machine are measured, in processor time, since others may use its cores: tokens a second of a
thread, the share of tokens that move, changed counts that are added up and applied, and calls and messages of Ray. Then
how many counts of a word change, by how many of its tokens move. From these a model predicts the bytes that 2, 4 and 8
workers of this machine send, which are counted, too, and an iteration on 8, 64 and 512 machines of 16 cores with
10 Gbit/s between them.

What the model assumes of a large corpus: words are as frequent as in 20 Newsgroups up to rank 10,000, and from there on
as r**-TAIL. A tenth of the tokens of every word move. The counts of a word change in as many topics as those of a word
of 20 Newsgroups of which as many tokens move. A machine receives at full speed, and receives nothing while it sweeps.
Sums are collected and eta is drawn while changes are exchanged.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import ray

from benchmarks.cluster import make, step
from benchmarks.corpora import newsgroups
from supertopic.kernels.changes import decode
from supertopic.kernels.draws import make_key
from supertopic.sampling import ray_engine as cluster
from supertopic.sampling.chain import Chain
from supertopic.sampling.exchange import Grid, add_up, apply
from supertopic.sampling.gibbs import draw_eta
from supertopic.sampling.plan import LEAST_GROUPS, count_shards
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.threads import ThreadEngine

SETTLE, MEASURED, PARTS = 30, 3, 32
ROW = 2  # bytes of a word that has changed counts
KNOWN, TAIL = (
    10_000,
    1.42,
)  # words that are as frequent as in 20 Newsgroups; exponent beyond: of its ranks 3,000 to 20,000
N_TOKENS, N_WORDS, MOVED = 10**10, 10**6, 0.1
BANDWIDTH = 1.25e9  # bytes a second that a machine sends, and receives


class Rates(NamedTuple):
    """What one machine does, in seconds of a processor, and how its counts change."""

    tokens: float  # a second and thread: sweep, lambda and statistics
    moved: float  # share of the tokens that move
    moves: float  # a second and thread, that a worker turns into changed counts
    added: float  # changed counts a second and thread, that an owner adds up
    applied: float  # changed counts a second and thread, that a worker adds to its own
    eta: float  # seconds of the driver for the draw of eta
    spread: float  # a word of which m tokens move changes spread * m**power counts
    power: float
    cell: float  # bytes of a changed count
    call: float  # seconds of the driver, or of a worker that leads a row, for a call and its answer
    message: float  # seconds of a worker for a message that it sends and one that it receives


def frequencies(X, n_words):
    """The share of each word in the tokens of a large corpus, the most frequent first."""
    count = np.sort(np.asarray(X.sum(axis=0)).ravel())[::-1].astype(float)
    count = np.append(count[:KNOWN], count[KNOWN - 1] * (np.arange(KNOWN + 1, n_words + 1) / KNOWN) ** -TAIL)
    return count / count.sum()


def changed(rates, moves, n_topics):
    """How many counts change by so many moves of each word; topics are no more, and a move changes two."""
    most = -n_topics * np.expm1(-2.0 * moves / n_topics)
    return float(np.minimum(most, rates.spread * moves**rates.power).sum())


def size(rates, moves, n_topics):
    """Bytes of the changes that so many moves of each word make."""
    return rates.cell * changed(rates, moves, n_topics) + ROW * float(-np.expm1(-moves).sum())


def received(rates, moves, n_topics, grid):
    """Bytes that a machine receives of the others' changes, by steps of the exchange; moves of each word are of all."""
    n, n_rows, n_shares = sum(map(len, grid.rows)), len(grid.rows), grid.n_shares
    own, of_row, total = (size(rates, moves / parts, n_topics) for parts in (n, n_rows, 1))
    return {
        "row": (n / n_rows - 1) / n_shares * own,
        "column": (n_rows - 1) / n_rows / n_shares * of_row,
        "total": (n_rows - 1) / n_rows / n_shares * total,
        "share": (n_shares - 1) / n_shares * total,
    }


def partial_sums(first, last):
    """How many sums of groups wait for neighbours of others."""
    found = 0
    while first < last:
        block = first & -first if first else 1 << last.bit_length()
        while block > last - first:
            block >>= 1
        first, found = first + block, found + 1
    return found


def waiting(plan, n_groups, grid):
    """How many sums of each machine wait for neighbours of others, and how many of each row."""
    n, plan = sum(map(len, grid.rows)), plan._replace(groups=(slice(0, 1),) * n_groups)
    found = cluster.divide(plan, [cluster.Place("", 1, 0)] * n, grid)
    rows = [partial_sums(found[row[0]].start, found[row[-1]].stop) for row in grid.rows]
    return [partial_sums(part.start, part.stop) for part in found], rows


def predict(rates, share, plan, n_machines, n_threads):
    """Seconds of an iteration, what they are for, and the bytes that a machine receives."""
    n_topics, n_columns, grid = plan.n_topics, plan.n_columns, Grid(n_machines)
    moves, n_rows, longest = MOVED * N_TOKENS * share, len(grid.rows), len(grid.rows[0])
    numbers = n_topics * (n_topics + 1) // 2 * n_columns
    statistics = 8 * (numbers + n_topics * n_columns)
    n_groups = min(count_shards(N_TOKENS), max(LEAST_GROUPS, N_TOKENS // (2 * numbers)))
    bytes_of, sums = received(rates, moves, n_topics, grid), waiting(plan, n_groups, grid)
    sums = statistics / grid.n_shares * ((n_machines / n_rows - 1) * np.mean(sums[0]) + (n_rows - 1) * np.mean(sums[1]))
    added = longest / grid.n_shares * changed(rates, moves / n_machines, n_topics)
    added += changed(rates, moves / n_rows, n_topics) / grid.n_shares
    exchange = added / (rates.added * n_threads) + (grid.n_shares + 2 * n_rows + longest) * rates.message
    driver = (n_rows + longest) * rates.call + (grid.n_shares + n_rows) * rates.message
    parts = {
        "sweep": N_TOKENS / n_machines / (rates.tokens * n_threads),
        "net changes": MOVED * N_TOKENS / n_machines / (rates.moves * n_threads),
        "receiving changes": sum(bytes_of.values()) / BANDWIDTH,
        "receiving sums": (sums + statistics) / BANDWIDTH,
        "adding up": exchange,
        "driver and eta": driver + rates.eta,
        "applying": changed(rates, moves, n_topics) / (rates.applied * n_threads),
    }
    # changes are exchanged while sums are collected and eta is drawn: they share the network, half for each
    of_changes = parts["receiving changes"] + parts["receiving sums"] + parts["adding up"]
    of_sums = 2.0 * parts["receiving sums"] + parts["driver and eta"]
    seconds = parts["sweep"] + parts["net changes"] + max(of_changes, of_sums) + parts["applying"]
    return float(seconds), parts, float(sum(bytes_of.values()) + sums)


def seconds_of(work, *arguments):
    """Processor time of this thread."""
    began = time.thread_time()
    result = work(*arguments)
    return time.thread_time() - began, result


def chain_rates(plan, source, settle=SETTLE):
    """Rates of one thread, and the changes of a word by its moves, in a chain that has settled."""
    rows, points, took, n_tokens = [], [], [], len(source.tokens.word)
    n_words, n_topics = plan.n_words, plan.n_topics
    with Chain(plan, 0, ThreadEngine(plan, source, 1), None) as chain:
        for i in range(settle):
            step(chain, plan, i + 1)
        counts, follow = chain.engine.counts, chain.engine.follow

        def measured(moves, keep):
            began, room = time.thread_time(), counts.word_topic.copy()
            to_net, parts = seconds_of(counts.changes, moves, PARTS)
            halves = [counts.changes(half, PARTS) for half in (moves[::2], moves[1::2])]
            to_add = sum(seconds_of(add_up, both, PARTS, n_words, n_topics)[0] for both in zip(*halves, strict=True))
            to_apply = sum(seconds_of(apply, part, i, PARTS, room, n_topics)[0] for i, part in enumerate(parts))
            n_halves = sum(len(decode(data)[2]) for half in halves for data in half)
            n_moves, cells = sum(len(move.moves) for move in moves), np.count_nonzero(room != counts.word_topic, axis=1)
            word = np.concatenate([move.moves for move in moves]) >> np.uint64(32)
            points.append((np.bincount(word.astype(int), minlength=n_words), cells))
            n_cells, n_bytes = cells.sum(), sum(part.nbytes for part in parts) - ROW * np.count_nonzero(cells)
            rows.append(
                [n_moves / n_tokens, n_moves / to_net, n_halves / to_add, n_cells / to_apply, n_bytes / n_cells]
            )
            follow(moves, keep)
            took[-1] -= time.thread_time() - began

        chain.engine.follow, chain.engine.sends_moves, chain.engine.n_parts = measured, True, PARTS
        for i in range(MEASURED):
            took.append(0.0)
            took[-1] += seconds_of(step, chain, plan, settle + i + 1)[0]
        eta = np.median([seconds_of(draw_eta, chain.statistics, 1.0, make_key(i))[0] for i in range(5)])
    moved, moves, added, applied, cell = np.median(rows, axis=0).tolist()
    tokens = n_tokens / float(np.median(took))
    return Rates(tokens, moved, moves, added, applied, float(eta), *fit(*points[-1]), cell, 0.0, 0.0), points[-1][0]


def fit(moves, cells):
    """The law of changed counts by moves: a line through the means of words with about as many moves, in the log."""
    classes = np.floor(2.0 * np.log2(np.maximum(moves, 1))).astype(int)
    some = [c for c in np.unique(classes[moves >= 3]) if np.count_nonzero(classes == c) >= 5]
    x, y = (np.log([values[classes == c].mean() for c in some]) for values in (moves, cells))
    power, log_spread = np.polyfit(x, y, 1).tolist()
    return float(np.exp(log_spread)), power


def processor_time(process):
    """Seconds that a process of this machine has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_workers(n):
    place = cluster.Place("", 1, 0)
    return [(place, ray.remote(**cluster.GROUPS)(cluster.Worker).options(num_cpus=0).remote()) for _ in range(n)]


def message_rates(plan, source, times=1000):
    """Seconds of the driver for a call of a row of workers, and of a worker for a message sent and one received."""
    workers = start_workers(8)
    engine = cluster.RayEngine(plan, source, workers)
    engine.start(make_key(0))
    engine.residuals()
    before = time.process_time()
    for _ in range(times // 10):
        engine.residuals()
    call = (time.process_time() - before) / (times // 10) / len(engine.grid.rows)
    receiver, message, nothing = workers[0][1], np.zeros(30_000, np.uint8), "no chain"
    process, spent = ray.get(receiver.ready.remote()), []
    for _ in range(4):  # the first is slower
        used, before = processor_time(process), time.process_time()
        for i in range(times):
            receiver.put.remote(nothing, ("counts", i), 1, message)
        ray.get(receiver.put.remote(nothing, "last", 1, message))
        spent.append(time.process_time() - before + processor_time(process) - used)
    for _, worker in workers:
        ray.kill(worker)
    return call, float(np.median(spent[1:])) / times


def check_bytes(plan, source, settle=8):
    """Bytes that workers of this machine send in an iteration: predicted from a chain of one thread, and counted."""
    found, (rates, moves) = {}, chain_rates(plan, source, settle)
    for n_workers in (2, 4, 8):
        workers = start_workers(n_workers)
        with Chain(plan, 0, cluster.RayEngine(plan, source, workers), None) as chain:
            grid = chain.engine.grid
            for i in range(settle + MEASURED - 1):
                step(chain, plan, i + 1)
            before = chain.engine.traffic()[1]  # every call waits for the exchange
            step(chain, plan, settle + MEASURED)
            counted = chain.engine.traffic()[1] - before
        for _, worker in workers:
            ray.kill(worker)
        n_rows, statistics = len(grid.rows), sum(array.nbytes for array in plan.no_statistics())
        own, of_row, total = (size(rates, moves / parts, plan.n_topics) for parts in (n_workers, n_rows, 1))
        changes = (n_workers - n_rows) * (own + total) + (n_rows - 1) * (of_row + total)
        of_each, of_rows = waiting(plan, len(plan.groups), grid)
        kept = sum(of_each[i] for row in grid.rows for i in row[: grid.n_shares]) / grid.n_shares
        sums = statistics * (sum(of_each) - kept + sum(of_rows[1:]))
        found[n_workers] = {"changes": changes, "sums": sums, "counted": counted}
        print(
            f"{n_workers} workers: an iteration sends {(changes + sums) / 1e6:.2f} MB (changes {changes / 1e6:.2f}), "
            f"counted {counted / 1e6:.2f}",
            flush=True,
        )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="a file for the figures")
    arguments, found, news = parser.parse_args(), {}, newsgroups()
    share = frequencies(news.X, N_WORDS)
    with one_blas_thread:
        ray.init("local", include_dashboard=False, log_to_driver=False)
        call, message = message_rates(*make(news, 20, 1, 1))
        print(f"a call {call:.2g} s, a message {message:.2g} s", flush=True)
        for n_topics, n_columns in ((40, 20), (1000, 1)):
            plan, source = make(news, n_topics, n_columns, 1)
            rates = chain_rates(plan, source)[0]._replace(call=call, message=message)
            name = f"K = {n_topics}, {n_columns} column{'s' * (n_columns > 1)}"
            print(f"{name}: {', '.join(f'{key} {value:.3g}' for key, value in rates._asdict().items())}")
            found[name] = {"rates": rates._asdict()}
            for n_machines in (8, 64, 512):
                seconds, parts, n_bytes = predict(rates, share, plan, n_machines, 16)
                found[name][n_machines] = {"seconds": seconds, "parts": parts, "received": n_bytes}
                shown = ", ".join(f"{part} {value:.3f}" for part, value in parts.items())
                print(f"{n_machines} machines: {seconds:.3f} s ({shown}); receives {n_bytes / 1e6:.0f} MB")
        found["bytes"] = check_bytes(*make(news, 100, 1, 1))
        ray.shutdown()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
