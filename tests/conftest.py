"""Where the corpora are, and the two 20 Newsgroups tasks of the paper."""

import gc
import os
import signal
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from benchmarks import corpora
from supertopic.inference import beside, contributions, reported
from supertopic.model.responses import Response
from supertopic.model.responses.thresholds import ThresholdResponse
from supertopic.sampling.pool import one_blas_thread


def corpus(name):
    """The folder or file of a corpus; the test is skipped where it is absent."""
    if not (corpora.DATA / name).exists():
        pytest.skip(f"the corpus {name} is not in {corpora.DATA}; set SUPERTOPIC_DATA to the folder that has it")
    return corpora.DATA / name


def pytest_configure(config):
    """Workers of xdist share the cores: threads of BLAS and OpenMP would wait in loops for cores that others use.

    What tests start inherits it. A run without workers has as many as its users have. Collecting garbage less often
    saves a fifteenth of the time, since it looks at all that Numba and the tests have made.
    """
    gc.set_threshold(50_000, 20, 50)
    if getattr(config.option, "numprocesses", 0):
        os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def two_blas_threads(monkeypatch):
    """As on a machine of two cores, where the library takes one thread itself and gives the other one back."""
    monkeypatch.setattr(one_blas_thread, "first", None)
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """Ctrl-C works in tests and in what they start, also where a shell ignores it (for a job in the background)."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def few_draws():
    """Fits with few draws of weights, few penalties and few resamples."""
    with pytest.MonkeyPatch.context() as patch:  # its own: some tests undo theirs
        patch.setattr(reported, "LEAST_DRAWS", 6)
        patch.setattr(contributions, "RESAMPLES", 5)
        patch.setattr(beside, "PENALTIES", (0.0, 0.2, 1.0, 5.0))
        patch.setattr(beside, "FIRST", 2)
        for kind in (Response, ThresholdResponse):
            patch.setattr(kind, "burn_in", 2)
        yield


@pytest.fixture
def short_regressions():
    """For a test that does not depend on how many draws, penalties and resamples regressions have."""
    with few_draws():
        yield


@pytest.fixture(scope="module")
def short_fits():
    """The same for all tests of a file, and for the models that its fixtures fit."""
    with few_draws():
        yield


@pytest.fixture(scope="session")
def newsgroups():
    corpus("20news-bydate-matlab")
    return corpora.newsgroups()


@pytest.fixture(scope="session")
def newsgroups_pair(newsgroups):
    return corpora.newsgroups_pair(newsgroups)


@pytest.fixture(scope="session")
def ray_cluster():
    """A Ray cluster of two cores on this machine, which is there for all tests of a run."""
    ray = pytest.importorskip("ray", reason="Ray is not installed; pip install 'supertopic[ray]'")
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *known])  # workers get functions of tests
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def ray_pool(ray_cluster):
    """Two workers of one thread each."""
    from supertopic.sampling.ray import RayEnginePool

    with RayEnginePool("", 1, "cpu", 2) as pool:
        yield pool


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """The file of a small model of each kind, fitted when it is first asked for."""
    from fitted import FITS

    from supertopic import save

    folder, made = tmp_path_factory.mktemp("models"), {}

    def path_of(name):
        if name not in made:
            with warnings.catch_warnings(), few_draws():
                warnings.simplefilter("ignore")
                save(FITS[name](), folder / f"{name}.model")
            made[name] = folder / f"{name}.model"
        return made[name]

    return path_of
