"""Checkpoints: kill it, run the same call again, and the model is that of an undisturbed run, bit for bit."""

import os
import shutil
import signal
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from test_contract import PRIORS, RESPONSES, Problem
from test_pairs import assert_same

from processes import Running
from small import plan_of as plan_with
from supertopic import LDA, SLDAClassifier, SLDARegressor
from supertopic.corpus.source import Arrays, no_target
from supertopic.corpus.tokens import check_counts, make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import chains
from supertopic.inference import checkpoint as checkpoints
from supertopic.inference.chains import Config
from supertopic.inference.checkpoint import Checkpoint
from supertopic.inference.fit import plan_of
from supertopic.model.responses import Logistic
from supertopic.model.state import Priors
from supertopic.sampling import threads
from supertopic.sampling.chain import Chain
from supertopic.sampling.engine import ShardFiles
from supertopic.sampling.threads import ThreadEngine
from supertopic.storage.container import read_file

# Windows sends Ctrl-C to a console, not to a process
no_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
N_KILLS = int(os.environ.get("SUPERTOPIC_KILLS", "2"))  # for each model
CODE = """
import os, sys
path, left = sys.argv[2], int(sys.argv[4])

def count_down(event, args):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and path and str(args[0]).startswith(path):
        left -= 1
        if left == 0:
            os._exit(9)  # as a kill: nothing is flushed or cleaned up

sys.addaudithook(count_down)
from supertopic import LDA, MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor
from supertopic.datasets import make_corpus
from supertopic.sampling import plan
from supertopic.inference import reported
from supertopic.sampling.chain import Chain
reported.LEAST_DRAWS = 6  # what comes after the chains is not asked here
step, steps = Chain.step, {}

def count_steps(chain):
    step(chain)
    steps[id(chain)] = steps.get(id(chain), 0) + 1
    if len(steps) == model.n_chains and min(steps.values()) == 5:
        print("all chains run", file=sys.stderr, flush=True)

Chain.step = count_steps
plan.SHARD_TOKENS = 2000  # so that this small corpus has many shards
b = make_corpus(n_docs=300, n_topics=3, random_state=0)
print("ready", flush=True)
model = eval(sys.argv[1])
model.fit(b.X, b.y, checkpoint=path or None, checkpoint_every=float(sys.argv[3]))
topics = model.posterior_.topics[0]
print(topics.word_topic.tobytes().hex()[:4000], topics.training.tobytes().hex(), model.log_joint_.tolist())
print(model.predict(b.X[:9]))
"""
MODELS = [
    "SLDAClassifier(4, burn_in=8, n_draws=8, n_chains=2, n_jobs=2, predict_sweeps=5, random_state=3)",
    "SLDAClassifier(4, burn_in=8, n_draws=8, sampler='delayed', n_jobs=2, predict_sweeps=5, random_state=3)",
    "SLDARegressor(4, burn_in=8, n_draws=8, sigma2='drawn', c=1, optimize_priors=True, random_state=3)",
    "SLDACountRegressor(4, burn_in=8, n_draws=8, sampler='drawn', n_jobs=2, predict_sweeps=5, random_state=3)",
]


def word_topic(model):
    """The counts of a model with one set of topics, (chain, V, K)."""
    return model.posterior_.topics[0].word_topic


def run(model, path, every=0.0, kill=0):
    """A process that fits a model; `kill` ends it at a step on the checkpoint's files, by its number from 1."""
    return Running(CODE, model, path, every, kill)


@pytest.mark.parametrize(
    "model", [*MODELS[1::2], *(pytest.param(model, marks=pytest.mark.slow) for model in MODELS[::2])]
)
def test_killed_at_random_steps(tmp_path, model):
    """Between any two things that a fit does to the checkpoint's files, whatever the speed of the machine."""
    rng, n_kills = np.random.default_rng(len(model)), 0
    _, undisturbed, _ = run(model, "").end()
    while n_kills < N_KILLS:
        for step in [*rng.integers(1, 500, N_KILLS - n_kills), 0]:
            status, out, err = run(model, tmp_path / "c", kill=step).end()
            assert status == (9 if step and out == "ready\n" else 0), err
            n_kills += status == 9
            if status == 0:
                break
        assert out == undisturbed
        assert os.listdir(tmp_path) == ["c"]
        shutil.rmtree(tmp_path / "c")


@no_signals
def test_control_c_writes_the_checkpoint(tmp_path):
    model = MODELS[0].replace("burn_in=8", "burn_in=300000")
    process = run(model, tmp_path / "c", every=1e9)
    process.await_line("all chains run")
    process.send_signal(signal.SIGINT)
    status, _, err = process.end()
    assert status != 0 and "resumes from the checkpoint" in err
    for name in ("chain-0", "chain-1"):
        assert read_file(tmp_path / "c" / name, "checkpoint")[1]["iteration"] > 1


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=60, n_topics=3, random_state=0)


def test_a_finished_one_returns_at_once_and_more_draws_continue_it(corpus, tmp_path, monkeypatch):
    kind = {"burn_in": 7, "n_chains": 2, "random_state": 1}
    first = SLDAClassifier(3, n_draws=4, **kind).fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(Chain, "step", None)
        again = SLDAClassifier(3, n_draws=4, n_jobs=2, **kind).fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.prediction_draws_, first.prediction_draws_)
    more = SLDAClassifier(3, n_draws=9, **kind).fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")
    whole = SLDAClassifier(3, n_draws=9, **kind).fit(corpus.X, corpus.y)
    for name in ("coef_draws_", "prediction_draws_", "log_joint_", "log_joint_iterations_"):
        np.testing.assert_array_equal(getattr(more, name), getattr(whole, name))
    np.testing.assert_array_equal(word_topic(more), word_topic(whole))
    np.testing.assert_array_equal(more.posterior_.traces.kept, whole.posterior_.traces.kept)
    np.testing.assert_array_equal(more.doc_topic_, whole.doc_topic_)
    with pytest.raises(ValueError, match="already holds 9 draws"):
        SLDAClassifier(3, n_draws=4, **kind).fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")


def test_without_a_seed_the_checkpoint_keeps_it(corpus, tmp_path):
    a = LDA(3, burn_in=3, n_draws=2).fit(corpus.X, checkpoint=tmp_path / "c")
    b = LDA(3, burn_in=3, n_draws=2).fit(corpus.X, checkpoint=tmp_path / "c")
    assert a.seed_ == b.seed_ and (word_topic(a) == word_topic(b)).all()


def test_another_fits_checkpoint_is_refused(corpus, tmp_path):
    path, model = tmp_path / "c", SLDAClassifier(3, burn_in=2, n_draws=2, random_state=0)
    model.fit(corpus.X, corpus.y, checkpoint=path)
    weights = np.r_[2.0, np.ones(59)]
    for other, X, more in (
        (SLDAClassifier(4, burn_in=2, n_draws=2, random_state=0), corpus.X, {}),
        (SLDAClassifier(3, burn_in=2, n_draws=2, random_state=1), corpus.X, {}),
        (SLDAClassifier(3, burn_in=3, n_draws=2, random_state=0), corpus.X, {}),
        (SLDARegressor(3, burn_in=2, n_draws=2, random_state=0), corpus.X, {}),
        (model, corpus.X[::-1], {}),
        (model, corpus.X, {"sample_weight": weights}),
        (model, corpus.X, {"covariates": weights}),
    ):
        with pytest.raises(ValueError, match="another fit"):
            other.fit(X, corpus.y, checkpoint=path, **more)
    data = (path / "chain-0").read_bytes()
    (path / "chain-0").write_bytes(data[:-9])
    with pytest.raises(ValueError, match="damaged"):
        model.fit(corpus.X, corpus.y, checkpoint=path)
    with pytest.raises(ValueError, match="seconds"):
        model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "d", checkpoint_every=-1)


def test_a_place_that_cannot_be_written_is_noticed_at_the_start(corpus, tmp_path, monkeypatch):
    model = SLDAClassifier(3, burn_in=2, n_draws=2, random_state=0)
    with pytest.raises(OSError):
        model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "no" / "such" / "folder")
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(ValueError, match="a folder"):
            model.fit(corpus.X, corpus.y, checkpoint=path)
    write, calls = checkpoints.write_file, []

    def full_disk(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise OSError("No space left on device")
        write(*arguments)

    monkeypatch.setattr(checkpoints, "write_file", full_disk)
    monkeypatch.setattr(threads, "write_file", full_disk)
    with pytest.warns(UserWarning, match="No space left"):
        model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "c", checkpoint_every=0)
    assert model.training_draws_.shape == (4, 2, 1, 3)


def test_identity_is_in_the_bytes(corpus, tmp_path):
    """Two arrays that look alike when printed: NumPy's repr leaves the middle of 1,500 numbers out."""
    alpha = np.full(1500, 0.1)
    other = alpha.copy()
    other[700] = 0.2
    assert repr(alpha) == repr(other)
    plan, source = None, None

    def identity(value):
        nonlocal plan, source
        config = Config(corpus.X.shape[1], 1500, Priors(value, 0.01, 1.0), burn_in=0, n_draws=1)
        source = source or Arrays(make_tokens(check_counts(corpus.X)), no_target(corpus.X.shape[0]))
        plan = plan_of(source, Logistic(1.0), config, 0, 0)
        return checkpoints.identify(plan, source, [None], [None], {"alpha": value})

    assert identity(alpha) == identity(alpha.copy()) != identity(other)
    one, other = (checkpoints.identify(plan, source, [None], [None], {"c": c}) for c in (1.0, 1))
    assert one != other


def test_a_tick_writes_its_own_chain_only(corpus, tmp_path, monkeypatch):
    written, write = [], checkpoints.write_file
    monkeypatch.setattr(checkpoints, "write_file", lambda path, *rest: written.append(path.name) or write(path, *rest))
    model = SLDAClassifier(3, burn_in=3, n_draws=2, n_chains=3, random_state=0)
    model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "c", checkpoint_every=0)
    assert [written.count(f"chain-{i}") for i in range(3)] == [5, 5, 5] and written.count("fit") == 2


@no_signals
def test_control_c_without_a_checkpoint(tmp_path):
    """Chains in threads stop between two iterations: within seconds, not at the end of the fit."""
    process = run(MODELS[0].replace("burn_in=8", "burn_in=300000"), "")
    process.await_line("all chains run")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    status, _, err = process.end()
    assert status != 0 and "KeyboardInterrupt: stopped" in err and time.monotonic() - began < 10


def test_control_c_while_weights_are_calibrated(corpus, monkeypatch):
    real = chains.calibrate

    def calibrate(*args):
        signal.raise_signal(signal.SIGINT)
        return real(*args)

    monkeypatch.setattr(chains, "calibrate", calibrate)
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        SLDAClassifier(3, burn_in=2, n_draws=2, random_state=0).fit(corpus.X, corpus.y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@no_signals
def test_control_c_stays_ignored_where_it_is(corpus, monkeypatch):
    """A shell ignores it for a job in the background."""
    real, raised = chains.calibrate, []

    def calibrate(*args):
        raised.append(signal.raise_signal(signal.SIGINT))
        return real(*args)

    monkeypatch.setattr(chains, "calibrate", calibrate)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        SLDAClassifier(3, burn_in=2, n_draws=2, random_state=0).fit(corpus.X, corpus.y)
        assert raised and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_every_shard_finds_its_own_state(tmp_path, monkeypatch):
    monkeypatch.setattr("supertopic.sampling.plan.SHARD_TOKENS", 1000)
    corpus = make_corpus(n_docs=120, n_topics=3, n_words=100, random_state=0)
    run = {"n_topics": 4, "n_chains": 1, "burn_in": 5, "sampler": "delayed", "random_state": 0}
    for n_draws in (2, 5):
        model = LDA(n_draws=n_draws, **run).fit(corpus.X, checkpoint=tmp_path / "c")
    assert len(list((tmp_path / "c").glob("chain-0-*/*"))) > 3
    np.testing.assert_array_equal(word_topic(model), word_topic(LDA(n_draws=5, **run).fit(corpus.X)))


@no_signals
def test_of_two_identical_fits_the_second_says_so(corpus, tmp_path, monkeypatch):
    """The folder is locked while a fit runs, also against a fit of this process, and free afterwards."""
    model, seen = SLDAClassifier(3, burn_in=2, n_draws=2, n_chains=1, random_state=0), []
    step = Chain.step

    def another(self):
        if not seen:
            seen.append("once")
            with pytest.raises(BlockingIOError, match=r"Another fit is using the checkpoint .*another path"):
                Checkpoint(tmp_path / "c", 60.0, "of another process")
        step(self)

    monkeypatch.setattr(Chain, "step", another)
    model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")
    assert seen
    model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "c")


@no_signals
def test_a_lock_goes_with_its_process(tmp_path):
    endless = MODELS[0].replace("burn_in=8", "burn_in=300000")
    process = run(endless, tmp_path / "c")
    while not (tmp_path / "c" / "chain-0").exists():
        assert process.process.is_alive()
        time.sleep(0.05)
    _, _, err = run(endless, tmp_path / "c").end()
    assert "Another fit is using the checkpoint" in err
    process.send_signal(signal.SIGKILL)
    process.end()
    os.close(checkpoints.lock_folder(tmp_path / "c"))


def test_a_file_of_another_place_is_refused(tmp_path, monkeypatch):
    """States of shards and chains are sealed with the fit and their own place in it."""
    monkeypatch.setattr("supertopic.sampling.plan.SHARD_TOKENS", 1000)
    corpus = make_corpus(n_docs=120, n_topics=3, n_words=100, random_state=0)
    kind = {"n_topics": 4, "n_chains": 2, "burn_in": 5, "sampler": "delayed", "random_state": 0}

    def fit(place, n_draws=2, y=corpus.y):
        return SLDAClassifier(n_draws=n_draws, **kind).fit(corpus.X, y, checkpoint=tmp_path / place)

    fit("a")
    fit("b", y=1 - corpus.y)
    first, second, other = (next((tmp_path / p).glob(f"chain-{i}-*")) for p, i in (("a", 0), ("a", 1), ("b", 0)))
    shards = sorted(path.name for path in first.iterdir())
    for source in (other / shards[0], second / shards[0], first / shards[1]):
        shutil.copytree(tmp_path / "a", tmp_path / "c")
        shutil.copy(source, tmp_path / "c" / first.name / shards[0])
        with pytest.raises(ValueError, match="of another fit, another chain or other documents"):
            fit("c", n_draws=3)
        shutil.rmtree(tmp_path / "c")
    shutil.copy(tmp_path / "a" / "chain-1", tmp_path / "a" / "chain-0")
    with pytest.raises(ValueError, match="renamed or copied"):
        fit("a", n_draws=3)


def test_a_temporary_checkpoint_is_not_named(tmp_path):
    """It is gone by the time that somebody reads the message."""
    stop = threading.Event()
    stop.set()
    for temporary in (True, False):
        checkpoint = Checkpoint(tmp_path / "c", 60.0, "a fit", temporary)
        job = chains.ChainJob(SimpleNamespace(n_chains=1), None, 0, None, None, checkpoint, None, stop, None, None)
        with pytest.raises(KeyboardInterrupt) as caught:
            job.check()
        assert (str(tmp_path) in str(caught.value)) == (not temporary)
        checkpoint.close()


@pytest.mark.parametrize(
    ("kind", "sampler"),
    [*((kind, "delayed") for kind in [*RESPONSES, "groups"]), ("logistic", "drawn"), ("rated", "collapsed")],
)
def test_a_chain_of_every_response_goes_on_bit_for_bit(kind, sampler, tmp_path, monkeypatch):
    """With learned priors, the sampler for many topics, and groups; from a state of the burn-in, and of the draws."""
    monkeypatch.setattr("supertopic.sampling.plan.SPARSE_FROM", 1)
    monkeypatch.setattr("supertopic.sampling.counts.DENSE", 3)
    problem = Problem(kind="logistic" if kind == "groups" else kind, sampler=sampler)
    groups = np.eye(2)[np.arange(len(problem.docs)) % 2]
    target = problem.target._replace(covariates=groups) if kind == "groups" else problem.target
    more = {"learn": True, "burn_in": 5, "n_groups": 2 * (kind == "groups")}
    n_shards = 1 if sampler == "collapsed" else 3
    plan, source = plan_with(problem.docs, 20, problem.response, target, PRIORS, sampler, n_shards, **more)

    def steps(chain, n):
        for _ in range(n):
            chain.step()
        return chain

    for n in (2, 7):
        with (
            Chain(plan, 1, ThreadEngine(plan, source, 1)) as chain,
            Chain(plan, 1, ThreadEngine(plan, source, 1)) as again,
        ):
            files = ShardFiles(tmp_path / str(n), "a chain")
            files.folder.mkdir()
            steps(chain, n).engine.save_shards(files)
            state = {name: array.copy() for name, array in chain.state().items()}
            again.restore(state, files)
            before, after = steps(chain, 9 - n).draws(), steps(again, 9 - n).draws()
            assert_same(before._replace(seconds=None), after._replace(seconds=None), without=())
            assert_same({**chain.state(), "seconds": 0}, {**again.state(), "seconds": 0})
            assert_same(chain.response.scale, again.response.scale)
            assert len(before.eta) == 4 and before.doc_topic.sum() == 4 * len(source.tokens.word)
