"""The first fit of a process: what is compiled for it."""

import gc
import subprocess
import sys

import numba
import numba.extending
import numpy as np
import pytest

from supertopic.kernels.compiled import no_collection

FIT = """
from importlib import import_module

from numba.core.dispatcher import Dispatcher

from supertopic import SLDAClassifier

texts = ["a film with music", "the food was good", "music and actors", "food and drink"] * 20
model = SLDAClassifier(3, burn_in=5, n_draws=2, n_chains=2, random_state=0).fit(texts, ["film", "food"] * 40)
model.predict_proba(texts[:3])
for room in ("counts", "draws", "moments", "products", "responses", "sparse", "sweep"):
    for name, kernel in vars(import_module(f"supertopic.kernels.{room}")).items():
        called = isinstance(kernel, Dispatcher) and not kernel.targetoptions.get("no_cpython_wrapper")
        if called and kernel.py_func.__module__.endswith(room) and kernel.signatures:
            print(f"{room}.{name}", len(kernel.signatures))
"""


def test_a_fit_and_a_prediction_compile_each_kernel_once():
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", FIT], capture_output=True, text=True, check=True)
    times = dict(line.split() for line in found.stdout.splitlines())
    assert "sweep.sweep_documents" in times and len(times) < 20
    assert times.pop("products.multiply") == "2"  # a fit multiplies in float32, a prediction in float64
    assert set(times.values()) == {"1"}


def test_garbage_is_not_collected_while_a_kernel_compiles():
    """Each collection looks through all objects; afterwards it is as it was, also after an error."""
    seen = []

    @numba.extending.overload(note)
    def note_while_compiling(x):
        seen.append(gc.isenabled())
        if not isinstance(x, numba.types.Integer):
            raise numba.TypingError("an error while it compiles")
        return lambda x: x

    def kernel(x):
        return note(x)

    def compile_as(module):
        kernel.__module__ = module
        return numba.njit(kernel)

    assert compile_as("supertopic.kernels.other")(3) == 3
    assert seen and not any(seen) and gc.isenabled()
    with pytest.raises(numba.TypingError):
        compile_as("supertopic.kernels.other")(3.0)
    assert gc.isenabled()
    seen.clear()
    compile_as("another.package")(np.int8(3))  # a type that was not compiled yet
    assert seen and all(seen)
    gc.disable()
    try:
        compile_as("supertopic.kernels.other")(np.int16(3))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_context_without_collection_may_be_nested():
    with no_collection:
        with no_collection:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collection:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def note(x):
    """Overloaded above."""
