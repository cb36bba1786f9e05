"""Load and limits: odd shapes of corpora, many at once, and random valid input through everything."""

import os
import subprocess
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from small import DEVICE
from supertopic import LDA, MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor, load, save
from supertopic.corpus.source import Arrays, Target, no_target
from supertopic.corpus.tokens import make_tokens
from supertopic.datasets import make_corpus
from supertopic.inference import memory
from supertopic.sampling.pool import one_blas_thread

pytestmark = pytest.mark.filterwarnings("ignore:n_topics=.* is too many")
QUICK = {"burn_in": 3, "n_draws": 2, "predict_sweeps": 4, "random_state": 0}


def sparse(rows):
    return sp.csr_array(np.array(rows))


ODD = {
    "one word in all": sparse([[3], [1], [0], [2]]),
    "documents of one word": sparse(np.eye(4, dtype=int)),
    "a count of a million": sparse([[10**6, 1], [1, 1], [0, 2], [5, 0]]),
    "a document of a million words": sparse(np.vstack([np.full((1, 1000), 1000), np.eye(3, 1000, dtype=int)])),
    "all documents empty but one": sp.csr_array(([7], ([2], [1])), shape=(100_000, 3)),
    "a million words": sp.csr_array((np.ones(4, int), ([0, 1, 2, 3], [0, 999_999, 5, 5])), shape=(4, 10**6)),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("sampler", ["collapsed", "delayed"])
def test_odd_corpora(case, sampler):
    X = ODD[case]
    y = np.arange(X.shape[0]) % 2
    fitted = SLDAClassifier(3, sampler=sampler, n_chains=2, **QUICK).fit(X, y)
    p = fitted.predict_proba(X[:4])
    assert np.isfinite(p).all() and fitted.doc_topic_.shape == (X.shape[0], 3)
    np.testing.assert_allclose(fitted.transform(X[:4]).sum(axis=1), 1)


@pytest.mark.parametrize("n_topics", [50, 300])
def test_more_topics_than_tokens(n_topics):
    X, y = np.eye(6, dtype=int), np.arange(6) % 2
    for sampler in ("collapsed", "delayed", "drawn"):
        assert SLDAClassifier(n_topics, sampler=sampler, **QUICK).fit(X, y).predict(X).shape == (6,)


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    X = sp.csr_array((np.ones(2, int), ([0, 1], [0, 9_999_999])), shape=(2, 10**7))
    with pytest.raises(MemoryError, match=r"needs at least [\d,.]+ GiB.*n_topics=60000"):
        SLDAClassifier(60_000, **QUICK).fit(X, [0, 1])
    monkeypatch.setattr(memory, "free_memory", lambda: 100.0)
    with pytest.raises(MemoryError, match="min_df"):
        LDA(3, **QUICK).fit(ODD["documents of one word"])


@pytest.mark.parametrize("n_chains", [1, 4])
@pytest.mark.parametrize(("n_columns", "n_covariates"), [(0, 0), (2, 3)])
def test_a_fit_that_fits_to_the_byte_is_not_refused(monkeypatch, n_chains, n_columns, n_covariates):
    """What two chains at a time and three tables take, added up by what is kept of documents, words and weights."""
    D, V, K, n_draws, n_sets = 7, 40, 5, 6, 3
    weights = np.ones((D, n_columns))
    target = Target(weights, weights, weights, np.ones((D, n_covariates))) if n_columns else no_target(D)
    source = Arrays(make_tokens(sp.csr_array(np.ones((D, V), int))), target)
    matrices = 8 * (K + n_covariates) ** 2 * (n_columns + 2) if n_columns else 0
    working = 2 * (2 * D * V + 4 * V * K + matrices) + 3 * 4 * V * K
    a_chain = 4 * V * K + 4 * D * K + 16 * n_draws * n_columns * (K + n_covariates)
    matched = 12 * K**2 if n_chains > 1 else 0
    needed = 4 * D * V + working + n_sets * (n_chains * a_chain + 2 * 4 * D * K) + matched
    given = source, V, K, n_draws, n_chains, n_sets, 2, 3, "cpu"
    monkeypatch.setattr(memory, "free_memory", lambda: float(needed))
    memory.check_memory(*given)
    monkeypatch.setattr(memory, "free_memory", lambda: needed - 1.0)
    with pytest.raises(MemoryError, match=f"280 tokens, 7 documents, 40 words, n_topics=5, n_chains={n_chains}"):
        memory.check_memory(*given)


def test_as_many_chains_run_on_a_device_as_have_room(monkeypatch):
    asked, needed, free = [], [34], 100
    rooms = {
        "supertopic.kernels.cuda.device": {"free_bytes": lambda: free},
        "supertopic.kernels.cuda.sweep": {"check_places": lambda *given: asked.append(given)},
    }
    for name, parts in rooms.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**parts))
    monkeypatch.setattr(memory, "device_bytes", lambda *given: asked.append(given) or needed[0])
    source = Arrays(make_tokens(sparse([[1, 1, 7], [0, 1, 0], [0, 0, 0]])), no_target(3))
    for needed[0], chains in ((34, 2), (50, 2), (51, 1), (100, 1)):
        assert memory.chains_on_device(source, 3, 5) == chains
    assert asked[:2] == [(3, 5, 10, 9), (10, 3, 3, 5, 0, 0)]
    needed[0] = 101
    with pytest.raises(MemoryError, match="10 tokens, 3 documents, 3 words, n_topics=5"):
        memory.chains_on_device(source, 3, 5)


def test_many_fits_at_once_are_the_same_as_one_by_one(two_blas_threads):
    """In threads, in processes with one BLAS thread or two, and with one fitted model used by many threads."""
    corpus = make_corpus(n_docs=80, random_state=0)
    limits = [pool["num_threads"] for pool in threadpool_info()]

    def fit(seed):
        run = {"burn_in": 10, "n_draws": 5, "n_chains": 2, "predict_sweeps": 10, "n_jobs": 2, "random_state": seed}
        return SLDAClassifier(4, **run).fit(corpus.X, corpus.y)

    alone = [fit(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, range(4)))
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a.prediction_draws_, b.prediction_draws_)
        truth = alone[0].predict_proba(corpus.X)
        for p in pool.map(lambda _: alone[0].predict_proba(corpus.X), range(12)):
            np.testing.assert_array_equal(p, truth)
    fit(0)
    assert [pool["num_threads"] for pool in threadpool_info()] == limits  # BLAS has its threads back
    code = (
        "from supertopic import SLDAClassifier; from supertopic.datasets import make_corpus;"
        "b = make_corpus(n_docs=80, random_state=0);"
        "run = dict(burn_in=10, n_draws=5, n_chains=2, predict_sweeps=10, n_jobs=2, random_state=0);"
        "m = SLDAClassifier(4, **run).fit(b.X, b.y);"
        "print(m.prediction_draws_.tobytes().hex())"
    )
    command = [sys.executable, "-c", code]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": n})
        for n in "12"
    ]
    for process in processes:
        assert bytes.fromhex(process.communicate()[0].strip()) == alone[0].prediction_draws_.tobytes()


def test_blas_has_one_thread_as_long_as_anyone_is_inside(two_blas_threads):
    def blas():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = blas()
    assert before == {2}
    entered, leave = threading.Event(), threading.Event()

    def inside():
        with one_blas_thread:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=inside)
    with one_blas_thread:
        thread.start()
        entered.wait()
        with one_blas_thread:
            pass
        assert blas() == {1}
        leave.set()
        thread.join()
        assert blas() == {1}
    assert blas() == before


@st.composite
def problems(draw):
    """A model with random parameters, and counts and a response that it must take."""
    n_docs, n_words = draw(st.integers(2, 12)), draw(st.integers(1, 8))
    cells = st.integers(0, draw(st.sampled_from([1, 3, 200])))
    X = np.array(draw(st.lists(st.lists(cells, min_size=n_words, max_size=n_words), min_size=n_docs, max_size=n_docs)))
    parameters = {
        "n_topics": draw(st.integers(1, 9)),
        "alpha": draw(st.sampled_from([1e-3, 1.0, 50.0])),
        "beta": draw(st.sampled_from([1e-4, 0.01, 2.0])),
        "optimize_priors": draw(st.booleans()),
        "sampler": draw(st.sampled_from(["collapsed", "delayed", "drawn"])),
        "n_chains": draw(st.integers(1, 2)),
        "burn_in": draw(st.integers(0, 4)),
        "n_draws": draw(st.integers(1, 3)),
        "predict_sweeps": draw(st.integers(1, 3)),
        "random_state": draw(st.integers(0, 2**63 - 1)),
    }
    kind = draw(st.sampled_from([LDA, SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor]))
    if kind is LDA:
        return kind(**parameters), X, None
    parameters |= {
        "c": draw(st.sampled_from([1e-3, 1.0, 30.0, 1e4])),
        "nu2": draw(st.sampled_from([0.01, 1.0, 100.0])),
    }
    parameters |= {"calibrate": draw(st.booleans()), "words": draw(st.booleans())}
    if kind in (SLDAClassifier, MedLDAClassifier):
        y = np.array(draw(st.lists(st.integers(0, 3), min_size=n_docs, max_size=n_docs)), float)
        y[:2] = 0, 1
        y[2:][draw(st.lists(st.booleans(), min_size=n_docs - 2, max_size=n_docs - 2))] = np.nan
    elif kind is SLDARegressor:
        y = np.array(draw(st.lists(st.floats(-1e6, 1e6), min_size=n_docs, max_size=n_docs)))
        parameters["sigma2"] = draw(st.sampled_from(["variance", "drawn", 0.5]))
    else:
        y = np.array(draw(st.lists(st.integers(0, 500), min_size=n_docs, max_size=n_docs)))
    return kind(**parameters), X, y


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems())
def test_random_input_through_everything(problem):
    """Fit, predict, save, load, predict: no exception, and equal predictions."""
    model, X, y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except ValueError as error:
            assert "sigma2 is in y's units squared" in str(error)
            return
    method = "transform" if y is None else "predict"
    before = getattr(model, method)(X)
    assert np.isfinite(before).all()
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "m")
        after = getattr(load(Path(folder) / "m"), method)(X)
    np.testing.assert_array_equal(before, after)


def test_a_device_that_is_not_there(monkeypatch):
    """What is asked of a GPU that is not there, or what it cannot do, is refused; the CPU needs none of it."""
    X, y = np.eye(8, dtype=int), [0, 1] * 4
    for wrong in ("gpu", 0, None):
        with pytest.raises(ValueError, match="device must be 'cpu' or 'cuda'"):
            SLDAClassifier(device=wrong).fit(X, y)
    with pytest.raises(ValueError, match="'delayed' and 'drawn', got sampler='collapsed'"):
        SLDAClassifier(device="cuda", sampler="collapsed").fit(X, y)
    if DEVICE != "GPU":
        with pytest.raises(RuntimeError, match=r"no NVIDIA GPU or driver was found. Use device='cpu'"):
            SLDAClassifier(device="cuda").fit(X, y)
    monkeypatch.setattr("supertopic.kernels.cuda.device.find_device", lambda: "a GPU")
    with pytest.raises(ValueError, match="at most 16,384 topics, got n_topics=16,385"):
        SLDAClassifier(16_385, device="cuda").fit(X, y)
    wide = sp.csr_array(([1] * 8, ([0, 1, 2, 3] * 2, [0] * 4 + [2**22 - 1] * 4)), shape=(4, 2**22))
    with pytest.raises(ValueError, match="tables of less than 4,294,967,296 numbers, got 4,294,967,296"):
        SLDAClassifier(1000, device="cuda").fit(wide, [0, 1, 0, 1])
    monkeypatch.setattr("supertopic.kernels.cuda.device.free_bytes", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"of the device's memory, but 0\.0 GiB are free"):
        SLDAClassifier(device="cuda").fit(X, y)


def test_numba_cuda_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "supertopic.kernels.cuda.device", None)
    with pytest.raises(ImportError, match=r"device='cuda' needs numba-cuda.*supertopic\[gpu\]"):
        LDA(device="cuda").fit(np.eye(4, dtype=int))


def test_nothing_of_cuda_is_imported_without_need():
    code = (
        "import sys, numpy as np; from supertopic import SLDAClassifier; "
        "m = SLDAClassifier(2, n_chains=1, burn_in=2, n_draws=1).fit(np.eye(8, dtype=int), [0, 1] * 4); "
        "m.predict(np.eye(8, dtype=int)); "
        "print([name for name in sys.modules if name.startswith('cuda') or "
        "(name.startswith('supertopic') and 'cuda' in name)])"
    )
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
