"""The paper's two tasks, and what every experiment does with them: fit, predict, take the time, summarise."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from benchmarks import corpora
from supertopic.baselines import SYSTEMS, paper_system

newsgroups = lru_cache(corpora.newsgroups)


def twenty(every: int) -> corpora.Split:
    """All 20 groups, one document of `every`."""
    X, y, X_test, y_test, words = newsgroups()
    return corpora.Split(X[::every], y[::every], X_test[::every], y_test[::every], words)


@lru_cache
def pair() -> corpora.Split:
    """alt.atheism against talk.religion.misc."""
    return corpora.newsgroups_pair(newsgroups())


@contextmanager
def on_engine(system: str, n_jobs: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """The name of a system without its engine, the threads of a process, and the engine as a parameter.

    "NAME, Ray" has workers of one thread each, on a cluster of this machine that is started before the clock.
    """
    name, _, engine = system.partition(", ")
    if engine != "Ray":
        yield name, n_jobs, {}
        return
    from supertopic.sampling.ray import connected

    with connected(""):
        yield name, 1, {"engine": "ray"}


def warm_up() -> None:
    """Every system once, on a few documents: what is compiled or read now is not in the first cell's time."""
    X, y = np.random.default_rng(0).poisson(0.5, (30, 20)), np.arange(30) % 3
    for system in SYSTEMS:
        for classes in (y, y > 0):
            model = paper_system(system, 4, random_state=0).fit(X, classes)
            model.predict(X)


def start_worker() -> None:
    """Ctrl-C, or the end of the main process, ends a worker at once: nobody waits for what it is at."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def follow():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    warm_up()


def time_it(model: Any, data: corpora.Split) -> dict[str, float]:
    """Fits the model; its accuracy on the test documents, and the seconds that both took."""
    began = time.perf_counter()
    model.fit(data.X, data.y)
    fitted = time.perf_counter()
    accuracy = float(np.mean(model.predict(data.X_test) == data.y_test))
    return {
        "accuracy": round(accuracy, 5),
        "train_seconds": round(fitted - began, 3),
        "test_seconds": round(time.perf_counter() - fitted, 3),
    }


def summary(rows: pd.DataFrame, index: Any, columns: Any, figure: str = "accuracy", digits: int = 3) -> pd.DataFrame:
    """Mean (sd) over the random starts."""

    def cell(values: pd.Series) -> str:
        spread = f" ({values.std():.{digits}f})" if len(values) > 1 else ""
        return f"{values.mean():.{digits}f}{spread}"

    return rows.pivot_table(figure, index, columns, aggfunc=cell, sort=False).fillna("")


def curve(axis: Axes, rows: pd.DataFrame, x: str, figure: str, **style: Any) -> None:
    """Mean against x, with a bar of one sd on each side."""
    grouped = rows.groupby(x)[figure]
    axis.errorbar(grouped.mean().index, grouped.mean(), grouped.std().fillna(0), capsize=2, ms=4, lw=1.2, **style)
