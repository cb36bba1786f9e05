"""Small corpora given as lists, as engines and plans: what tests of the sampler start from."""

import itertools
from functools import partial

import numpy as np

from supertopic.corpus.source import Arrays
from supertopic.corpus.tokens import Tokens
from supertopic.model.state import Priors
from supertopic.sampling.plan import make_plan
from supertopic.sampling.threads import Threads


def find_card() -> str:
    """ "card" where there is a graphics card, "simulator" where Numba plays one, else nothing."""
    try:
        from supertopic.kernels.cuda import device as gpu

        gpu.find_card()
    except (ImportError, RuntimeError):
        return ""
    return "simulator" if gpu.SIMULATED else "card"


CARD = find_card()

# The probability with which a right program fails a test of chance, and the standard errors that it allows. Seeds are
# fixed: it counts when something changes the random numbers. What each test still sees is what `mutants` are for.
ALARM, ERRORS = 1e-6, 5.0


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


def engine_of(plan, source, z, response, lam, eta, n_threads=1, kind=Threads):
    """An engine whose shards are where they are told to be: through the contract's own `restore`."""
    engine = kind(plan, source, n_threads)
    put(engine, plan, source, z, response, lam, eta)
    return engine


def put(engine, plan, source, z, response, lam, eta):
    starts, states = source.tokens.doc_start, {}
    for docs in plan.slices:
        own = np.asarray(z, np.uint16)[starts[docs.start] : starts[docs.stop]]
        states[docs.start] = {"z": own, "lam": np.asarray(lam)[docs], "seconds": np.zeros(3)}
    restore(engine, states, response, eta)


def restore(engine, states, response, eta):
    """Let every shard be where a state says, by its first document."""
    engine.ask(partial(restore_shard, states), response, eta)
    engine.count()


def restore_shard(states, shard, response, eta):
    shard.restore(states[shard.first_doc], response, eta)


def states_of(engine):
    return {state["first_doc"]: state for state in engine.ask(state_of)}


def state_of(shard):
    return shard.state() | {"first_doc": shard.first_doc}


def z_of(engine):
    """The topic of every token."""
    return np.concatenate([state["z"] for state in engine.ask("state")])
