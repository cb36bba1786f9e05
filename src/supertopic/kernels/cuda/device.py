"""The only file that imports numba.cuda, and what numba.cuda lacks: graphs, buffers, staging, timers, instructions.

Numba's simulator runs kernels in Python on machines without a GPU. Its warps have no shuffles: there a document has one
lane, and the instructions below are plain functions.
"""

import functools
import importlib
import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, cuda, njit, types

from supertopic.kernels.compiled import no_collection

DeviceArray = Any  # an array on the device; Numba has no public type for it
SIMULATED = bool(config.ENABLE_CUDASIM)
config.CUDA_LOW_OCCUPANCY_WARNINGS = False  # a small corpus leaves most of a GPU idle, and nothing can be done about it
WARP = 4 if SIMULATED else 32  # threads that run as one; those of the simulator are slow
BLOCK = 4 if SIMULATED else 128  # threads of a block
LINE = 4 if SIMULATED else 32  # numbers that are read as one
SUMS = 4 if SIMULATED else 256  # parts of a sum
EVERYONE = 0xFFFFFFFF  # all lanes of a warp

if SIMULATED:

    def here(part):
        compiled = njit(error_model="numpy")(part.py_func)

        def call(*args):
            value = compiled(*args)
            return np.uint64(value) if isinstance(value, int) else value  # 64 bits, which came back as a Python int

        return call

    def exp2(x):
        with np.errstate(over="ignore", under="ignore"):
            return np.float32(2.0) ** np.float32(x)

    def log2(x):
        return np.float32(np.log2(x)) if x > 0 else np.float32(-np.inf)

    def any_lane(value):
        return value

    def sync_lanes():
        pass

    def load4(array, index):
        return tuple(array[index : index + 4])

    load4_constant = load4
else:
    from numba.cuda.extending import intrinsic

    FLOAT, FOUR = ir.FloatType(), ir.VectorType(ir.FloatType(), 4)

    def here(part):
        """A function of the CPU kernels as the GPU kernels call it: the same source serves both."""
        return part

    def _one_instruction(name):
        def generate(context, builder, signature, args):
            return builder.call(ir.InlineAsm(ir.FunctionType(FLOAT, [FLOAT]), f"{name} $0, $1;", "=f,f"), args)

        return generate

    @intrinsic
    def exp2(typingctx, x):
        """2**x, right to about 2**-22."""
        return types.float32(types.float32), _one_instruction("ex2.approx.ftz.f32")

    @intrinsic
    def log2(typingctx, x):
        """The logarithm to base 2, right to about 2**-22."""
        return types.float32(types.float32), _one_instruction("lg2.approx.ftz.f32")

    @cuda.jit(device=True)
    def any_lane(value):
        """Whether the value is true for any lane of the warp."""
        return cuda.any_sync(EVERYONE, value)

    @cuda.jit(device=True)
    def sync_lanes():
        """Make what each lane has written visible to the others."""
        cuda.syncwarp()

    def _load4(constant):
        def generate(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            place = builder.bitcast(builder.gep(array.data, [args[1]]), FOUR.as_pointer())
            vector = builder.load(place, align=16)
            if constant:  # it may then come from the cache that knows of no writes
                vector.set_metadata("invariant.load", builder.module.add_metadata([]))
            numbers = [builder.extract_element(vector, ir.Constant(ir.IntType(32), i)) for i in range(4)]
            return context.make_tuple(builder, signature.return_type, numbers)

        return generate

    @intrinsic
    def load4(typingctx, array, index):
        """Four float32 numbers from a place that is a multiple of four."""
        return types.UniTuple(types.float32, 4)(array, types.uint64), _load4(False)

    @intrinsic
    def load4_constant(typingctx, array, index):
        """The same from an array that the kernel does not write to."""
        return types.UniTuple(types.float32, 4)(array, types.uint64), _load4(True)


def jit_within(registers: int):
    """cuda.jit for a kernel whose threads use at most so many registers, so that many run at once."""
    return cuda.jit if SIMULATED else cuda.jit(max_registers=registers)


@functools.cache
def stream() -> Any:
    """The stream of this thread: chains, of which each has a thread, run at the same time."""
    return 0 if SIMULATED else cuda.per_thread_default_stream()


def new_stream() -> Any:
    """A stream for work that runs beside the thread's own stream."""
    return 0 if SIMULATED else cuda.stream()


@contextmanager
def beside(side: Any, used: bool) -> Iterator[None]:
    """Work on the stream `side` starts after what was launched before, and later launches wait for it."""
    if not used:
        yield
        return
    begin, end = cuda.event(), cuda.event()
    begin.record(stream())
    begin.wait(side)
    yield
    end.record(side)
    end.wait(stream())


def launch(kernel: Any, n: int, *args: Any) -> None:
    """Run a kernel on n threads or a few more."""
    if n:
        kernel[-(-n // BLOCK), BLOCK, stream()](*args)


def put(array: np.ndarray) -> DeviceArray:
    """A copy on the device."""
    place = empty(array.shape, array.dtype)
    put_into(place, array)
    return place


def put_into(place: DeviceArray, array: np.ndarray) -> None:
    """Copy into an array on the device, through the driver: Numba needs longer for the call than the copy takes."""
    array = np.ascontiguousarray(array, place.dtype)
    if SIMULATED:
        place.copy_to_device(array)
    elif array.size:
        _driver("cuMemcpyHtoDAsync", place.device_ctypes_pointer.value, array.ctypes.data, array.nbytes, _handle())


def get(array: DeviceArray) -> np.ndarray:
    """A copy from the device, after all work before it is done."""
    if SIMULATED:
        return array.copy_to_host()
    host = np.empty(array.shape, array.dtype)
    if host.size:
        _driver("cuMemcpyDtoHAsync", host.ctypes.data, array.device_ctypes_pointer.value, host.nbytes, _handle())
    _driver("cuStreamSynchronize", _handle())
    return host


def empty(shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
    """An array on the device, not initialised."""
    return cuda.device_array(shape, dtype, stream=stream())


def zeros(shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
    """An array of zeros on the device."""
    array = empty(shape, dtype)
    clear(array)
    return array


class Buffers:
    """Arrays on the device that are used again: allocating and freeing memory stops everything that runs there."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[Any, ...], DeviceArray] = {}

    def empty(self, name: str, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """The array of this name, not initialised."""
        key = name, shape, np.dtype(dtype).str
        if key not in self.arrays:
            self.arrays[key] = empty(shape, dtype)
        return self.arrays[key]

    def put(self, name: str, array: np.ndarray) -> DeviceArray:
        """A copy on the device, in the array of this name."""
        place = self.empty(name, array.shape, array.dtype)
        put_into(place, array)
        return place


class Staging:
    """Small arrays that are copied to fixed places on the device in one transfer: each transfer has a latency."""

    def __init__(self, **arrays: tuple[tuple[int, ...], type]):
        sizes = {name: math.prod(shape) * np.dtype(dtype).itemsize for name, (shape, dtype) in arrays.items()}
        ends = np.cumsum([0] + [-(-size // 256) * 256 for size in sizes.values()]).tolist()
        self.packed, self.there = np.zeros(ends[-1], np.uint8), empty(ends[-1], np.uint8)
        self.here: dict[str, np.ndarray] = {}
        self.on_device: dict[str, DeviceArray] = {}
        for start, (name, (shape, dtype)) in zip(ends, arrays.items(), strict=False):
            part = slice(start, start + sizes[name])
            self.here[name] = self.packed[part].view(dtype).reshape(shape)
            there = self.there[part].view(dtype).reshape(shape) if sizes[name] else empty(shape, dtype)
            self.on_device[name] = there

    def send(self, **arrays: Any) -> None:
        """Copy arrays, or numbers, to their places."""
        for name, array in arrays.items():
            self.here[name][...] = array
        put_into(self.there, self.packed)


def clear(array: DeviceArray) -> None:
    """Set an array on the device to 0."""
    launch(_clear, array.size, array.reshape(array.size))


@cuda.jit
def _clear(array):
    i = cuda.grid(1)
    if i < len(array):
        array[i] = 0


class Graph:
    """Launches that are captured once as CUDA graphs and then launched as one: a launch from Python is slow.

    A captured function only launches kernels, always on the same arrays; what changes is in the arrays.
    """

    def __init__(self) -> None:
        self.graphs: dict[Hashable, Any] = {}

    def run(self, name: Hashable, function: Callable[[], None]) -> None:
        """Run a function: directly at first, since that compiles its kernels, then as a graph of this name."""
        graph = self.graphs.get(name)
        if SIMULATED or graph is None:
            function()
            self.graphs[name] = False
            return
        if graph is False:
            graph = self.graphs[name] = _capture(function)
        _driver("cuGraphLaunch", graph, _handle())


@functools.cache
def _handle() -> int:
    """The stream as the driver knows it."""
    return int(stream().handle)


def _driver(name: str, *args: Any) -> Any:
    """Call a function of the CUDA driver that Numba does not have."""
    from cuda.bindings import driver

    error, *values = getattr(driver, name)(*args)
    if int(error) != 0:
        raise RuntimeError(f"{name} failed: {error}")
    return values[0] if values else None


def _capture(function: Callable[[], None]) -> Any:
    from cuda.bindings import driver

    here = _handle()
    with no_collection:  # it may free arrays of the device, which ends a capture
        _driver("cuStreamBeginCapture", here, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        try:
            function()
        finally:
            graph = _driver("cuStreamEndCapture", here)
    return _driver("cuGraphInstantiate", graph, 0)


class Timer:
    """Seconds that the device spends on some kinds of work, measured without waiting for it."""

    def __init__(self, n_kinds: int):
        self.seconds, self.running = np.zeros(n_kinds), [False] * n_kinds
        self.events = [(cuda.event(), cuda.event()) for _ in range(n_kinds)]

    @contextmanager
    def over(self, kind: int) -> Iterator[None]:
        """Time the work that is launched inside."""
        self.read(kind)
        begin, end = self.events[kind]
        begin.record(stream())
        yield
        end.record(stream())
        self.running[kind] = True

    def read(self, *kinds: int) -> np.ndarray:
        """The seconds so far, after waiting for the work of these kinds, or of all."""
        for kind in kinds or range(len(self.events)):
            if self.running[kind]:
                begin, end = self.events[kind]
                end.synchronize()
                self.seconds[kind] += begin.elapsed_time(end) / 1e3
                self.running[kind] = False
        return self.seconds


def free_bytes() -> int:
    """The free memory of the device."""
    return cuda.current_context().get_memory_info()[0]


def find_device() -> str:
    """The name of the GPU; raises RuntimeError if there is none."""
    if SIMULATED:
        return "Numba's simulator"
    if not cuda.is_available():
        raise RuntimeError("no NVIDIA GPU or driver was found")
    with suppress(ModuleNotFoundError):  # the first kernel imports it, and it asks NumPy for names that may be gone
        importlib.import_module("numba.cuda.np.arrayobj")
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)
