"""What a Ray cluster costs and survives: `python -m benchmarks.cluster [wall] [kills] [memory] [large]`.

wall: seconds of an iteration on Ray against threads, with the same cores of this machine, alternately; medians.
kills: fits whose workers are killed at random moments; the model has to be that of threads, bit for bit.
memory: 80 M tokens in files, one column, K = 40: the peak of the driver and of each worker; large: 400 M.
docs/cluster.md has the results.
"""

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.corpora import newsgroups
from supertopic import SLDAClassifier
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.spool import Spool
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Logistic
from supertopic.model.state import Priors
from supertopic.sampling.chain import Chain
from supertopic.sampling.gibbs import iterate
from supertopic.sampling.plan import make_plan
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.ray import RayEnginePool
from supertopic.sampling.ray_engine import RayEngine
from supertopic.sampling.threads import ThreadEngine

SETTLE, MEASURED = 8, 7
WORK = {"K = 40, 20 columns": (40, 20, 4), "K = 1000, 1 column": (1000, 1, 4)}  # topics, columns, times over


def make(news, n_topics, n_columns, times):
    X, y = sp.csr_array(sp.vstack([news.X] * times)), np.tile(news.y, times)
    Y = (y[:, None] == np.unique(y) if n_columns > 1 else y[:, None] <= 10).astype(float)[:, :n_columns]
    source = Arrays(make_tokens(check_counts(X)), make_target(Y, np.ones_like(Y)))
    priors = Priors(np.full(n_topics, 0.1), 0.01, 1.0)
    return make_plan(source, X.shape[1], Logistic(25.0), priors, False, "delayed", 0, 10**9), source


def step(chain, plan, i):
    """Seconds of one iteration."""
    began = time.perf_counter()
    _, chain.statistics, _ = iterate(
        chain.engine, chain.statistics, None, plan.response, plan.priors, make_key(plan.seed, 0, i)
    )
    return time.perf_counter() - began


def arrays_of(model):
    """What two fits must have in common, bit for bit."""
    posterior = model.posterior_
    topics = [array for part in posterior.topics for array in (part.word_topic, part.training)]
    return [*topics, posterior.traces.log_joint, posterior.traces.kept, posterior.doc_topic]


def wall(n_threads=2):
    news = newsgroups()
    for name, (n_topics, n_columns, times) in WORK.items():
        plan, source = make(news, n_topics, n_columns, times)
        for layout, threads in (("one worker of two threads", n_threads), ("two workers of one thread", 1)):
            with (
                RayEnginePool("", threads, "cpu", 1) as pool,
                Chain(plan, 0, ThreadEngine(plan, source, n_threads), None) as ours,
                Chain(plan, 0, RayEngine(plan, source, pool.workers), None) as theirs,
            ):
                rounds = range(1, SETTLE + MEASURED + 1)
                seconds = np.array([[step(chain, plan, i) for chain in (ours, theirs)] for i in rounds])
                traffic = theirs.engine.traffic() / len(rounds)
            threads_s, ray_s = np.median(seconds[SETTLE:], axis=0)
            ratio = np.median(seconds[SETTLE:, 1] / seconds[SETTLE:, 0])
            print(
                f"{name}, {len(source.tokens.word) / 1e6:.1f} M tokens, {layout}: threads {threads_s:.3f} s, ray "
                f"{ray_s:.3f} s, {ratio:.2f} times; exchange {traffic[0]:.3f} s, {traffic[1] / 2**20:.1f} MiB",
                flush=True,
            )


def workers():
    """The numbers of the workers' processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::Worker"):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def kills(wanted=50):
    """Kills at random moments, until there were enough."""
    corpus = make_corpus(n_docs=2000, n_topics=5, random_state=0)
    y, rng, killed, same, fits = corpus.doc_topic.argmax(axis=1), random.Random(0), 0, 0, 0
    expected = {}
    while killed < wanted:
        sampler = ("delayed", "drawn")[fits % 2]
        run = {"n_topics": 8, "n_chains": 1, "burn_in": 400, "n_draws": 10, "random_state": 0, "sampler": sampler}
        if sampler not in expected:
            expected[sampler] = SLDAClassifier(**run).fit(corpus.X, y)
        over, count = threading.Event(), [0]

        def attack(over=over, count=count, most=wanted - killed):
            while not over.wait(rng.uniform(0.1, 3.0)):
                victims = workers()
                if victims and count[0] < most:
                    os.kill(rng.choice(victims), signal.SIGKILL)
                    count[0] += 1

        thread = threading.Thread(target=attack)
        began = time.perf_counter()
        thread.start()
        try:
            model = SLDAClassifier(**run, engine="ray", n_jobs=1).fit(corpus.X, y, checkpoint_every=0.3)
        finally:
            over.set()
            thread.join()
        other = expected[sampler]
        equal = all((one == two).all() for one, two in zip(arrays_of(model), arrays_of(other), strict=True))
        killed, fits, same = killed + count[0], fits + 1, same + equal
        took = time.perf_counter() - began
        print(f"{sampler}: {count[0]} kills, {took:.1f} s, {'the same' if equal else 'OTHER'} bits", flush=True)
    print(f"{killed} kills in {fits} fits, {same} of which gave the model of threads")


def peak(pid="self"):
    """The most memory that a process has had, in MiB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(status["VmHWM"].split()[0]) / 1024


def write_tokens(places, n_docs, length, n_words):
    """Files of tokens as `fit_files` leaves them, by a process of its own, whose memory is not the driver's."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    rng = np.random.default_rng(0)
    for place in places:
        np.sort((n_words * rng.random((n_docs, length), np.float32) ** 3).astype(np.int32), axis=1).tofile(place)
    os._exit(0)


def memory(n_tokens=80_000_000, n_files=16, n_words=50_000, length=120):
    """Tokens that are on disk; a few iterations."""
    with tempfile.TemporaryDirectory() as folder:
        n_docs, before = n_tokens // length // n_files, peak()
        places = [Path(folder) / f"{i:06d}.tokens" for i in range(n_files)]
        write_tokens(places, n_docs, length, n_words)
        lengths = np.full(n_docs * n_files, length)
        y = (np.arange(len(lengths)) % 2).astype(float)[:, None]
        spool = Spool(places, n_docs * np.arange(n_files + 1), lengths, np.arange(len(lengths)))
        source = spool.with_target(make_target(y, np.ones_like(y)))
        plan = make_plan(source, n_words, Logistic(25.0), Priors(np.full(40, 0.1), 0.01, 1.0), False, "delayed", 0, 9)
        with (
            RayEnginePool("", 1, "cpu", 1) as pool,
            Chain(plan, 0, RayEngine(plan, source, pool.workers), None) as chain,
        ):
            seconds = [step(chain, plan, i + 1) for i in range(4)]
            theirs = [f"{peak(pid):.0f}" for pid in workers()]
        print(
            f"{int(lengths.sum()):,} tokens, {len(plan.slices)} shards: driver {before:.0f} MiB after imports, peak "
            f"{peak():.0f}; workers {', '.join(theirs)} MiB; {np.median(seconds):.2f} s an iteration",
            flush=True,
        )


def large():
    memory(400_000_000, 64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", nargs="*", default=["wall", "kills", "memory"])
    with one_blas_thread:
        for work in parser.parse_args().work:
            {"wall": wall, "kills": kills, "memory": memory, "large": large}[work]()


if __name__ == "__main__":
    main()
