"""How everything in this layer is compiled."""

import gc
import threading

from numba import njit
from numba.core import event

# Kernels are called from Python and let other threads run; parts are called from kernels only, which saves compiling
# their Python side. What is called for every token is inlined: handing over its arrays would cost as much as the work.
# Kernels that every fit calls get arrays from Python and allocate none, which compiles sooner.
# `brief` is for so little work that letting other threads run would take longer than the work.
kernel = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
brief = njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
part = njit(cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = njit(
    cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, _nrt=False
)


class NoCollection:
    """A context without garbage collection. The last thread that leaves it turns collection on again, if it was on."""

    def __init__(self) -> None:
        self.lock, self.inside, self.was_on = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self.lock:
            self.was_on = self.was_on if self.inside else gc.isenabled()
            self.inside += 1
            gc.disable()

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.was_on and not self.inside:
                gc.enable()


no_collection = NoCollection()


class QuickCompiling(event.Listener):
    """No garbage collection while a kernel of this package compiles.

    Compiling makes so many objects that Python looks through all objects of the process again and again, a fifth of a
    second each time.
    """

    def on_start(self, event: event.Event) -> None:
        if is_ours(event):
            no_collection.__enter__()

    def on_end(self, event: event.Event) -> None:
        if is_ours(event):
            no_collection.__exit__()


def is_ours(event: event.Event) -> bool:
    """Whether a kernel of this package compiles."""
    return bool(event.data["dispatcher"].py_func.__module__.startswith("supertopic."))


event.register("numba:compile", QuickCompiling())
