"""A fit on a Ray cluster: the model of threads, bit for bit, whatever happens to the workers."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from supertopic import (
    LDA,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDACrowdRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    load,
)
from supertopic.datasets import make_corpus

pytestmark = pytest.mark.ray
CORPUS = make_corpus(n_docs=600, n_topics=3, random_state=0)
TIMES = np.random.default_rng(0).exponential(np.exp(-2.0 * CORPUS.doc_topic @ [0.0, 1.0, 2.0]))
TIMES = np.column_stack([np.minimum(TIMES, 0.5), TIMES <= 0.5])
RUN = {"n_topics": 5, "n_chains": 1, "burn_in": 8, "n_draws": 4, "random_state": 0, "sampler": "delayed"}
SHARD = 4_000  # tokens: several shards, so that both workers have some


@pytest.fixture(autouse=True)
def many_shards(monkeypatch):
    monkeypatch.setattr("supertopic.sampling.plan.SHARD_TOKENS", SHARD)


def same(a, b):
    """Both have the same posterior."""
    a, b = a.posterior_, b.posterior_
    np.testing.assert_array_equal(a.doc_topic, b.doc_topic)
    np.testing.assert_array_equal(a.traces.log_joint, b.traces.log_joint)
    np.testing.assert_array_equal(a.traces.kept, b.traces.kept)
    for one, other in zip(a.topics, b.topics, strict=True):
        np.testing.assert_array_equal(one.word_topic, other.word_topic)
        np.testing.assert_array_equal(one.training, other.training)


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


RNG = np.random.default_rng(1)
ANSWERS = CORPUS.doc_topic.argmax(axis=1)[:, None] + (RNG.random((len(CORPUS.doc_topic), 3)) < 0.2)
ANSWERS = np.where(RNG.random(ANSWERS.shape) < 0.7, ANSWERS, np.nan)
MODELS = {
    "classes": (SLDAClassifier, CORPUS.doc_topic.argmax(axis=1), {"n_chains": 3}),
    "separate": (SLDAClassifier, CORPUS.doc_topic.argmax(axis=1), {"multiclass": "separate"}),
    "ratings": (SLDARegressor, CORPUS.doc_topic @ [1.0, 2.0, 4.0], {"sampler": "drawn"}),
    "counts": (SLDACountRegressor, np.rint(CORPUS.doc_topic @ [1.0, 5.0, 20.0]), {"optimize_priors": True}),
    "grades": (SLDAOrdinalClassifier, np.digitize(CORPUS.doc_topic @ [1.0, 2.0, 4.0], [1.6, 2.2, 3.2]), {}),
    "times": (SLDASurvivalRegressor, TIMES, {}),
    "periods": (SLDASurvivalRegressor, TIMES, {"effects": "by_period"}),
    "raters": (SLDACrowdClassifier, ANSWERS, {"sampler": "drawn"}),
    "rated": (SLDACrowdRegressor, ANSWERS, {}),
    "topics": (LDA, None, {"sampler": "collapsed"}),
    "seeds": (SLDAClassifier, CORPUS.doc_topic.argmax(axis=1), {"seeds": [[3, 7], [5]], "optimize_priors": True}),
}


@pytest.fixture(scope="module", autouse=True)
def kept_workers(ray_cluster):
    """The workers that are left of one fit are those of the next one: to start them takes longer than to fit."""
    from supertopic.sampling import ray as cluster

    class Pool(cluster.RayEnginePool):
        kept: ClassVar[list] = []

        def __enter__(self):
            self.workers = Pool.kept
            return super().__enter__()

        def __exit__(self, *error):
            Pool.kept, self.workers = self.workers, []
            super().__exit__(*error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "RayEnginePool", Pool)
        yield
    for _, worker in Pool.kept:
        cluster.ray.kill(worker)


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_threads(name):
    kind, y, more = MODELS[name]
    model = kind(**RUN | more).fit(CORPUS.X, y)
    other = kind(**RUN | more, engine="ray", n_jobs=1).fit(CORPUS.X, y)
    same(model, other)
    if y is not None:
        np.testing.assert_array_equal(model.predict(CORPUS.X[:50]), other.predict(CORPUS.X[:50]))
    assert other.timings_["exchange"] >= 0
    if name in ("seeds", "ratings", "grades", "raters", "rated", "times", "periods"):  # and a batch more
        same(model.partial_fit(CORPUS.X[:90], y[:90]), other.partial_fit(CORPUS.X[:90], y[:90]))


def test_texts_and_features_on_a_cluster():
    """Words and features are learned by the driver, from the same documents."""
    names = np.array([f"w{i:03d}" for i in range(CORPUS.X.shape[1])])
    texts = [" ".join(names[row.indices].repeat(row.data)) for row in (CORPUS.X[[i]].tocsr() for i in range(120))]
    y, features = CORPUS.y[:120], CORPUS.doc_topic[:120]
    run = RUN | {"sampler": "delayed"}
    models = [
        SLDAClassifier(**run, **more).fit(texts, y, features=features) for more in ({}, {"engine": "ray", "n_jobs": 1})
    ]
    for one, other in zip(*(model.posterior_.terms for model in models), strict=True):
        for name, array in one.tensors().items():
            np.testing.assert_array_equal(array, other.tensors()[name])
    assert models[1].posterior_.features.theta.any()


def test_a_checkpoint_goes_on_anywhere(ray_cluster, tmp_path):
    """Threads, then Ray, then threads."""
    y = CORPUS.doc_topic.argmax(axis=1)
    for n_draws, engine in ((2, "threads"), (5, "ray"), (8, "threads")):
        run = RUN | {"n_draws": n_draws, "held_out": 0.0}
        model = SLDAClassifier(**run, engine=engine).fit(CORPUS.X, y, checkpoint=tmp_path / "there")
    same(model, SLDAClassifier(**run).fit(CORPUS.X, y))


class Attack:
    """Does something to a worker now and then while a fit runs."""

    def __init__(self, number, pause, most):
        self.number, self.pause, self.most, self.done = number, pause, most, 0
        self.over, self.rng = threading.Event(), random.Random(most)

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while self.done < self.most and not self.over.wait(self.rng.uniform(*self.pause)):
            victims = workers()
            if victims:
                os.kill(self.rng.choice(victims), self.number)
                self.done += 1

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()


@pytest.mark.parametrize("sampler", ["delayed", "drawn"])
def test_killed_workers(sampler, ray_cluster):
    run = RUN | {"sampler": sampler, "burn_in": 300, "n_draws": 10}
    y = CORPUS.doc_topic.argmax(axis=1)
    model = SLDAClassifier(**run).fit(CORPUS.X, y)
    with Attack(signal.SIGKILL, (0.3, 2.0), 3) as attack:
        other = SLDAClassifier(**run, engine="ray", n_jobs=1).fit(CORPUS.X, y, checkpoint_every=0.2)
    assert attack.done > 0
    same(model, other)


def test_a_worker_that_hangs(ray_cluster, monkeypatch, tmp_path):
    from supertopic.sampling import ray_engine as cluster

    run, there, stopped = RUN | {"burn_in": 600}, tmp_path / "there", []
    model = LDA(**run).fit(CORPUS.X)
    monkeypatch.setattr(cluster, "LEAST", 3.0)

    def stop():
        until = time.monotonic() + 60
        while (
            not any(  # every method has been called once: first answers may take long
                int(folder.name.split("-")[2]) > 20 for folder in there.glob("chain-0-*")
            )
            and time.monotonic() < until
        ):
            time.sleep(0.02)
        stopped.append(workers()[0])
        os.kill(stopped[0], signal.SIGSTOP)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        other = LDA(**run, engine="ray", n_jobs=1).fit(CORPUS.X, checkpoint=there, checkpoint_every=0.2)
    finally:
        thread.join()
        if stopped and Path(f"/proc/{stopped[0]}").exists():
            os.kill(stopped[0], signal.SIGKILL)
    assert stopped[0] not in workers()
    same(model, other)


def test_a_checkpoint_that_cannot_be_written(ray_cluster, tmp_path, monkeypatch):
    """As on a full disk: the workers' error arrives, and the fit goes on and says so."""
    from supertopic.sampling.ray_engine import RayEngine

    model, save = LDA(**RUN).fit(CORPUS.X), RayEngine.save_shards
    (tmp_path / "file").touch()  # the workers cannot write below it
    monkeypatch.setattr(
        RayEngine, "save_shards", lambda self, files: save(self, files._replace(folder=tmp_path / "file"))
    )
    with pytest.warns(UserWarning, match="could not be written .*Not a directory.*; the fit continues"):
        other = LDA(**RUN, engine="ray").fit(CORPUS.X, checkpoint=tmp_path / "there", checkpoint_every=0)
    same(model, other)
    assert not list((tmp_path / "there").glob("chain-0*"))


def test_what_a_worker_raises_arrives(ray_cluster):
    from small import restore
    from supertopic.sampling.ray import RayEnginePool

    plan, source = small_plan(LDA(**RUN))
    state = {"z": np.zeros(3, np.uint16), "kappa": np.zeros((1, 1)), "lam": np.zeros((1, 1)), "seconds": np.zeros(3)}
    states = {docs.start: state for docs in plan.slices}
    with RayEnginePool("", 1, "cpu", 1) as pool, pytest.raises(ValueError, match="does not fit"):
        pool.run(plan, source, None, lambda engine: restore(engine, states, np.zeros((0, 5))))


def small_plan(model, y=None):
    from supertopic.corpus.source import Arrays, make_target
    from supertopic.corpus.tokens import check_counts, make_tokens
    from supertopic.model.responses import Logistic
    from supertopic.sampling.plan import make_plan

    X, y = check_counts(CORPUS.X), np.zeros((CORPUS.X.shape[0], 0)) if y is None else y
    source = Arrays(make_tokens(X), make_target(y, np.ones_like(y)))
    priors = model._config(X.shape[1], 0).priors
    return make_plan(source, X.shape[1], Logistic(1.0), priors, False, "delayed", 0, 8), source


DRIVER = """
import sys
import numpy as np
from supertopic import SLDAClassifier, save
from supertopic.datasets import make_corpus
from supertopic.sampling import plan
plan.SHARD_TOKENS = {shard}
corpus = make_corpus(n_docs=600, n_topics=3, random_state=0)
model = SLDAClassifier(5, n_chains=1, burn_in=250, n_draws=4, random_state=0, sampler="delayed", engine="ray", n_jobs=1)
model.fit(corpus.X, corpus.doc_topic.argmax(axis=1), checkpoint=sys.argv[1], checkpoint_every=0.1)
save(model, sys.argv[2])
"""


def test_a_killed_driver(tmp_path):
    """Its cluster dies with it; the same call resumes from the checkpoint."""
    command = [sys.executable, "-W", "ignore", "-c", DRIVER.format(shard=SHARD), tmp_path / "there", tmp_path / "model"]
    environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "PYTHONPATH")}
    first = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not list((tmp_path / "there").glob("chain-0")) and time.monotonic() < until:
        time.sleep(0.05)
    first.kill()
    first.wait()
    assert list((tmp_path / "there").glob("chain-0")) and not (tmp_path / "model").exists()
    subprocess.run(command, env=environment, check=True, timeout=120, capture_output=True)
    y = CORPUS.doc_topic.argmax(axis=1)
    model = SLDAClassifier(**RUN | {"burn_in": 250}).fit(CORPUS.X, y)
    other = load(tmp_path / "model")
    np.testing.assert_array_equal(*(fit.posterior_.topics[0].word_topic for fit in (model, other)))
    np.testing.assert_array_equal(model.predict_proba(CORPUS.X[:9]), other.predict_proba(CORPUS.X[:9]))


LOSING = """
import logging, sys, threading, time
from pathlib import Path
import numpy as np
from ray.cluster_utils import Cluster
from supertopic import SLDAClassifier
from supertopic.datasets import make_corpus
from supertopic.sampling import plan
plan.SHARD_TOKENS = {shard}
cluster = Cluster(initialize_head=True, head_node_args=dict(num_cpus=1, include_dashboard=False))
second = cluster.add_node(num_cpus=1)
corpus, there = make_corpus(n_docs=600, n_topics=3, random_state=0), Path(sys.argv[1])

def lose():
    while not (there / "chain-0").exists():
        time.sleep(0.05)
    cluster.remove_node(second, allow_graceful=False)
    print("lost", flush=True)

threading.Thread(target=lose, daemon=True).start()
run = dict(n_topics=5, n_chains=1, burn_in=250, n_draws=4, random_state=0, sampler="delayed")
y = corpus.doc_topic.argmax(axis=1)
model = SLDAClassifier(**run, engine="ray:" + cluster.address).fit(corpus.X, y, checkpoint=there, checkpoint_every=0.1)
other = SLDAClassifier(**run).fit(corpus.X, y)
a, b = (fit.posterior_.topics[0] for fit in (model, other))
assert (a.word_topic == b.word_topic).all() and (a.training == b.training).all()
print("the same", flush=True)
"""


def test_a_lost_machine(tmp_path):
    """Its documents go to those that are left."""
    command = [sys.executable, "-W", "ignore", "-c", LOSING.format(shard=SHARD), tmp_path / "there"]
    environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "PYTHONPATH")}
    found = subprocess.run(command, env=environment, timeout=200, capture_output=True, text=True)
    assert {"lost", "the same"} <= set(found.stdout.splitlines()), found.stdout[-500:] + found.stderr[-2000:]


def test_an_address_without_a_cluster():
    code = "from supertopic import LDA; import numpy as np; LDA(2, engine='ray:127.0.0.1:1').fit(np.eye(4, dtype=int))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "There is no Ray cluster at '127.0.0.1:1'" in found.stderr and "starts one on this machine" in found.stderr


def test_a_worker_answers_while_it_works(ray_cluster):
    """Else one that works for long would be taken for one that hangs, and be killed."""
    import ray

    from supertopic.kernels.draws import make_key
    from supertopic.sampling.ray import RayEnginePool
    from supertopic.sampling.ray_engine import RayEngine

    with RayEnginePool("", 1, "cpu", 1) as pool:
        plan, source = small_plan(LDA(**RUN))
        engine = RayEngine(plan, source, pool.workers)
        engine.start(make_key(0))
        engine.counts.keep()
        engine.leave_out(plan.priors, 2, make_key(1))  # compiles
        before = [ray.get(worker.ready.remote()) for worker in engine.workers]
        thread = threading.Thread(target=engine.leave_out, args=(plan.priors, 3000, make_key(1)))
        thread.start()
        time.sleep(0.5)
        began = time.monotonic()
        pool.gather()
        assert time.monotonic() - began < 2.5
        assert [ray.get(worker.ready.remote()) for _, worker in pool.workers] == before
        thread.join()


def test_documents_and_pseudo_counts_are_sent_once(ray_cluster):
    """A second engine of the same chain, as after a loss, finds them in the object store."""
    from supertopic.kernels.draws import make_key
    from supertopic.sampling.ray import RayEnginePool
    from supertopic.sampling.ray_engine import RayEngine
    from supertopic.sampling.threads import ThreadEngine

    plan, source = small_plan(LDA(**RUN))
    pseudo_counts, sent = np.zeros((plan.n_words, plan.n_topics), np.int32), {}
    pseudo_counts[3, 1] = pseudo_counts[7, 2] = 50
    here = ThreadEngine(plan, source, 1, pseudo_counts=pseudo_counts)
    here.start(make_key(0))
    with RayEnginePool("", 1, "cpu", 1) as pool:
        for _ in range(2):
            before = dict(sent)
            engine = RayEngine(plan, source, pool.workers, pseudo_counts, sent)
            assert len(sent) == len(pool.workers) + 1 and (not before or sent == before)
            engine.start(make_key(0))
            np.testing.assert_array_equal(engine.counts.word_topic, here.counts.word_topic)
            engine.close()


@pytest.mark.parametrize("n_workers", [2, 3, 5])
def test_many_workers(n_workers, ray_cluster):
    """Words have some of the workers as owners, and workers add up each other's sums."""
    import ray

    from supertopic.kernels.draws import make_key
    from supertopic.sampling import ray_engine as cluster
    from supertopic.sampling.threads import ThreadEngine

    plan, source = small_plan(LDA(**RUN), (CORPUS.doc_topic[:, :1] > 0.5).astype(float))
    pseudo = np.random.default_rng(0).integers(0, 2, (plan.n_words, plan.n_topics)).astype(np.int32)
    place = cluster.Place("", 1, 0)
    workers = [
        (place, ray.remote(**cluster.GROUPS)(cluster.Worker).options(num_cpus=0).remote()) for _ in range(n_workers)
    ]
    engines = [ThreadEngine(plan, source, 1, pseudo_counts=pseudo), cluster.RayEngine(plan, source, workers, pseudo)]
    for engine in engines:
        engine.start(make_key(0))
    for i in range(3):
        about = np.array([[0.3, 0.0, -0.2, 0.1, i]]), plan.priors, make_key(i), i > 0, plan.response
        sums = [engine.sweep(*about) for engine in engines]
        for one, other in zip(*sums, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(*(engine.counts.word_topic for engine in engines))
    np.testing.assert_array_equal(*(engine.noise(make_key(9)) for engine in engines))
    np.testing.assert_array_equal(*(engine.topic_counts() for engine in engines))
    np.testing.assert_array_equal(*(engine.residuals() for engine in engines))
    for _, worker in workers:
        ray.kill(worker)


LISTENING = """
import os
from pathlib import Path
import ray
from supertopic.sampling.ray import connected

def listening():
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass
    own = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in own} - own:
        own |= more
    sockets = set()
    for process in own:
        try:
            sockets |= {os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
        except OSError:
            pass
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets:
                yield cells[1].partition(":")[0]

with connected(""):
    assert ray.get(ray.remote(lambda: 3).remote()) == 3
    print(*listening())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_cluster_of_this_machine_listens_on_the_loopback():
    found = subprocess.run([sys.executable, "-c", LISTENING], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    addresses = set(found.stdout.split())
    assert addresses and addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}
