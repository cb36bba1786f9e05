"""Small corpora given as lists, as engines and plans: what tests of the sampler start from."""

import itertools
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from supertopic.corpus.source import Arrays
from supertopic.corpus.tokens import Tokens
from supertopic.model.state import Priors, Quadratic
from supertopic.sampling.engine import ShardFiles
from supertopic.sampling.exchange import Grid, Post
from supertopic.sampling.plan import make_plan
from supertopic.sampling.replica import Replica, join_sums
from supertopic.sampling.threads import LocalShards, ThreadEngine
from supertopic.storage.container import read_file, write_file


def find_device() -> str:
    """ "GPU" where there is one, "simulator" where Numba simulates one, else nothing."""
    try:
        from supertopic.kernels.cuda import device

        device.find_device()
    except (ImportError, RuntimeError):
        return ""
    return "simulator" if device.SIMULATED else "GPU"


DEVICE = find_device()

# The probability with which a right program fails a test of chance, and the standard errors that it allows. Seeds are
# fixed: it counts when something changes the random numbers. What each test still sees is what `mutants` are for.
ALARM, ERRORS = 1e-6, 5.0

# Tests of many repetitions look at their scores after a third and after two thirds of them, and stop there if nothing
# is even near to unusual. They fail at the end only: a right program fails no more often, and what would be ERRORS at
# the end is about 2.9 and 4.1 at these looks.
LOOKS, USUAL = {1: 2.5, 2: 3.2}, 0.02


def stops_early(done, of, scores, pvalue=lambda: 1.0):
    """Whether a test may stop that has done so many of its repetitions; `scores` and `pvalue` are asked there."""
    look = next((third for third in LOOKS if done == third * of // 3), None)
    return look is not None and np.abs(scores()).max() < LOOKS[look] and pvalue() > USUAL


def near_limits(mean, usual, least=-np.inf, most=np.inf):
    """How far a mean is from what is usual, as a score for `stops_early`: a limit of the test is at ERRORS."""
    return ERRORS * max((usual - mean) / (usual - least), (mean - usual) / (most - usual))


def score_of_difference(before, after):
    """Standard errors between the means of two samples of some quantities."""
    a, b = np.array(before), np.array(after)
    return (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt((a.var(axis=0) + b.var(axis=0)) / len(a) + 1e-12)


def flat(docs, z):
    """Tokens and z of documents that are lists of words and lists of topics."""
    starts = np.cumsum([0] + [len(words) for words in docs]).astype(np.int64)
    tokens = Tokens(np.array([w for words in docs for w in words], np.int32), starts)
    return tokens, np.array([k for topics in z for k in topics], np.uint16)


def plan_of(docs, n_words, response, target, priors: Priors, sampler, n_shards=1, **more):
    """A plan and its source; the documents are cut into shards of equally many."""
    source = Arrays(flat(docs, [[0] * len(words) for words in docs])[0], target)
    plan = make_plan(source, n_words, response, priors, False, sampler, 0, 10**9)
    edges = np.linspace(0, len(docs), n_shards + 1).astype(int).tolist()
    slices = tuple(slice(a, b) for a, b in itertools.pairwise(edges))
    return plan._replace(slices=slices, groups=tuple(slice(i, i + 1) for i in range(n_shards)), **more), source


def engine_of(plan, source, z, response, lam, eta, n_threads=1, kind=ThreadEngine, pseudo_counts=None):
    """An engine whose shards have this z and lam."""
    engine = kind(plan, source, n_threads, pseudo_counts=pseudo_counts)
    put(engine, plan, source, z, response, lam, eta)
    return engine


def put(engine, plan, source, z, response, lam, eta):
    """Set z and lam of all shards; those of this process without a file, since some tests do it thousands of times.

    lam may also be a whole quadratic, for a response that draws kappa as well.
    """
    starts, states = source.tokens.doc_start, {}
    if not isinstance(lam, Quadratic):
        lam = response.quadratic(source.target, np.asarray(lam, float))
    for docs in plan.slices:
        own = np.asarray(z, np.uint16)[starts[docs.start] : starts[docs.stop]]
        states[docs.start] = {"z": own, "kappa": lam.kappa[docs], "lam": lam.lam[docs], "seconds": np.zeros(3)}
    if not isinstance(engine, LocalShards):
        return restore(engine, states, eta)
    for shard in engine.shards:
        shard.restore(states[shard.first_doc], eta)
    engine.count()


def restore(engine, states, eta):
    """Restore every shard, by its first document, through the contract."""
    with tempfile.TemporaryDirectory() as folder:
        files = ShardFiles(Path(folder), "a test")
        for first, state in states.items():
            write_file(files.place(first), {"seal": files.seal_of(first)}, state)
        engine.restore_shards(files, eta)


def states_of(engine):
    """The states of all shards by their first document, through the contract."""
    with tempfile.TemporaryDirectory() as folder:
        engine.save_shards(ShardFiles(Path(folder), "a test"))
        return {
            docs.start: read_file(Path(folder) / str(docs.start), "checkpoint")[1]
            for docs in engine.plan.slices
            if (Path(folder) / str(docs.start)).exists()  # a replica has some of them
        }


def lam_of(engine):
    """lam of every document."""
    return np.concatenate([state["lam"] for state in states_of(engine).values()])


def z_of(engine):
    """The topic of every token."""
    states = (
        [shard.state() for shard in engine.shards] if isinstance(engine, LocalShards) else states_of(engine).values()
    )
    return np.concatenate([state["z"] for state in states])


def seal(value):
    """The same as it comes from another process: pickled, and read-only."""
    value = pickle.loads(pickle.dumps(value))
    for array in value if isinstance(value, tuple) else [value]:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value


class Machines:
    """Replicas of one process, each with some groups of the plan; what they send is sealed on its way."""

    def __init__(self, plan, source, parts, n_threads=1, pseudo_counts=None):
        grid, posts, self.sent = Grid(len(parts)), [], []
        n_parts = 2 * n_threads * grid.n_owners

        def carry_from(sender):
            def carry(to, tag, message):
                self.sent.append((tag, sender, to))
                posts[to].put(tag, sender, seal(message))

            return carry

        posts += [Post(i, carry_from(i)) for i in range(len(parts))]
        self.replicas = [
            Replica(plan, source, n_threads, part, pseudo_counts, grid, post)
            for part, post in zip(parts, posts, strict=True)
        ]
        for replica in self.replicas:
            replica.n_parts = n_parts
        self.grid, self.pool = grid, ThreadPoolExecutor(len(parts))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop_waiting()
        for replica in self.replicas:
            replica.close()
        self.pool.shutdown()

    def stop_waiting(self):
        """Else a test that fails waits for ever."""
        for replica in self.replicas:
            replica.post.close()

    def call(self, method, *arguments):
        """The results of all, which run at the same time."""

        def work(replica):
            try:
                replica.wait()
                return getattr(replica, method)(*arguments)
            except BaseException:
                self.stop_waiting()
                raise

        return [future.result() for future in [self.pool.submit(work, replica) for replica in self.replicas]]

    def sum_up(self, method, *arguments):
        """A sum over all of them."""
        return join_sums(self.call(method, *arguments)[: self.grid.n_shares])

    def in_turn(self, method, *arguments):
        """Call a method that collects no sums, one after the other: a simulated device bears no threads."""
        for replica in self.replicas:
            getattr(replica, method)(*arguments)
        for replica in self.replicas:
            if replica.changing:
                replica.changing[0].add_done_callback(lambda future: future.exception() and self.stop_waiting())
        for replica in self.replicas:
            replica.wait()
