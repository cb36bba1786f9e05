"""The door to the graphics card: the only file that imports numba.cuda, and what numba.cuda lacks.

In Numba's simulator, which runs kernels in Python on machines without a card, a warp has no shuffles: there a document
has one lane, and the few instructions below are what they stand for.
"""

import functools
import importlib
import math
from contextlib import contextmanager, suppress

import numpy as np
from llvmlite import ir
from numba import config, cuda, njit, types

SIMULATED = bool(config.ENABLE_CUDASIM)
config.CUDA_LOW_OCCUPANCY_WARNINGS = (
    False  # a small corpus leaves most of a card idle, and nothing can be done about it
)
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
        """A part of the processor's kernels, as the card's kernels call it: the same source serves both."""
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
        """Whether it is so for any lane of the warp."""
        return cuda.any_sync(EVERYONE, value)

    @cuda.jit(device=True)
    def sync_lanes():
        """What one lane has written, the others see."""
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
def stream():
    """Each thread has its own: chains, of which each has a thread, run beside each other."""
    return 0 if SIMULATED else cuda.per_thread_default_stream()


def new_stream():
    """One more for what runs beside the thread's own."""
    return 0 if SIMULATED else cuda.stream()


@contextmanager
def beside(side, used: bool):
    """What is launched on `side` starts after what was launched before, and is waited for by what comes after."""
    if not used:
        yield
        return
    begin, end = cuda.event(), cuda.event()
    begin.record(stream())
    begin.wait(side)
    yield
    end.record(side)
    end.wait(stream())


def launch(kernel, n: int, *args) -> None:
    """Run a kernel on n threads or a few more."""
    if n:
        kernel[-(-n // BLOCK), BLOCK, stream()](*args)


def put(array: np.ndarray):
    """A copy on the card."""
    place = empty(array.shape, array.dtype)
    put_into(place, array)
    return place


def put_into(place, array: np.ndarray) -> None:
    """A copy in an array that is on the card. By the driver itself: Numba needs longer for it than the card."""
    array = np.ascontiguousarray(array, place.dtype)
    if SIMULATED:
        place.copy_to_device(array)
    elif array.size:
        _driver("cuMemcpyHtoDAsync", place.device_ctypes_pointer.value, array.ctypes.data, array.nbytes, _handle())


def get(array) -> np.ndarray:
    """A copy from the card; what was asked for before is done then."""
    if SIMULATED:
        return array.copy_to_host()
    host = np.empty(array.shape, array.dtype)
    if host.size:
        _driver("cuMemcpyDtoHAsync", host.ctypes.data, array.device_ctypes_pointer.value, host.nbytes, _handle())
    _driver("cuStreamSynchronize", _handle())
    return host


def empty(shape, dtype):
    """An array on the card, with anything in it."""
    return cuda.device_array(shape, dtype, stream=stream())


def zeros(shape, dtype):
    """An array of zeros on the card."""
    array = empty(shape, dtype)
    clear(array)
    return array


class Shelf:
    """Arrays on the card that are used again: taking memory and giving it back stops everything that runs there."""

    def __init__(self) -> None:
        self.arrays: dict = {}

    def empty(self, name: str, shape: tuple[int, ...], dtype):
        """An array of this name, with anything in it."""
        key = name, shape, np.dtype(dtype).str
        if key not in self.arrays:
            self.arrays[key] = empty(shape, dtype)
        return self.arrays[key]

    def put(self, name: str, array: np.ndarray):
        """A copy on the card, in the place of the last one of this name."""
        place = self.empty(name, array.shape, array.dtype)
        put_into(place, array)
        return place


class Parcel:
    """Some small arrays that travel to the card on one way, to places that stay: each way takes a while."""

    def __init__(self, **arrays: tuple[tuple[int, ...], type]):
        sizes = {name: math.prod(shape) * np.dtype(dtype).itemsize for name, (shape, dtype) in arrays.items()}
        ends = np.cumsum([0] + [-(-size // 256) * 256 for size in sizes.values()]).tolist()
        self.packed, self.there = np.zeros(ends[-1], np.uint8), empty(ends[-1], np.uint8)
        self.here: dict[str, np.ndarray] = {}
        self.on_card: dict = {}
        for start, (name, (shape, dtype)) in zip(ends, arrays.items(), strict=False):
            part = slice(start, start + sizes[name])
            self.here[name] = self.packed[part].view(dtype).reshape(shape)
            there = self.there[part].view(dtype).reshape(shape) if sizes[name] else empty(shape, dtype)
            self.on_card[name] = there

    def send(self, **arrays) -> None:
        """Put arrays, or numbers, into their places."""
        for name, array in arrays.items():
            self.here[name][...] = array
        put_into(self.there, self.packed)


def clear(array) -> None:
    launch(_clear, array.size, array.reshape(array.size))


@cuda.jit
def _clear(array):
    i = cuda.grid(1)
    if i < len(array):
        array[i] = 0


class Tape:
    """Launches that are recorded once and then played as one: a launch from Python takes longer than a small kernel.

    A recorded verb does nothing but launch, always on the same arrays; what differs from time to time is in these.
    """

    def __init__(self) -> None:
        self.graphs: dict = {}

    def play(self, name, verb) -> None:
        graph = self.graphs.get(name)
        if SIMULATED or graph is None:  # at first whatever is launched is compiled
            verb()
            self.graphs[name] = False
            return
        if graph is False:
            graph = self.graphs[name] = _record(verb)
        _driver("cuGraphLaunch", graph, _handle())


@functools.cache
def _handle() -> int:
    """The stream, to the driver."""
    return int(stream().handle)


def _driver(name, *args):
    """A function of CUDA's driver that Numba has not."""
    from cuda.bindings import driver

    error, *values = getattr(driver, name)(*args)
    if int(error) != 0:
        raise RuntimeError(f"{name} failed: {error}")
    return values[0] if values else None


def _record(verb):
    from cuda.bindings import driver

    here = _handle()
    _driver("cuStreamBeginCapture", here, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    try:
        verb()
    finally:
        graph = _driver("cuStreamEndCapture", here)
    return _driver("cuGraphInstantiate", graph, 0)


class Watch:
    """Seconds that the card needs for some kinds of work, without waiting for it."""

    def __init__(self, n_kinds: int):
        self.seconds, self.running = np.zeros(n_kinds), [False] * n_kinds
        self.events = [(cuda.event(), cuda.event()) for _ in range(n_kinds)]

    @contextmanager
    def over(self, kind: int):
        """Around what is to be timed; what was timed before is over by then."""
        self.read(kind)
        begin, end = self.events[kind]
        begin.record(stream())
        yield
        end.record(stream())
        self.running[kind] = True

    def read(self, *kinds: int) -> np.ndarray:
        """The seconds so far, all of them brought up to date, or some."""
        for kind in kinds or range(len(self.events)):
            if self.running[kind]:
                begin, end = self.events[kind]
                end.synchronize()
                self.seconds[kind] += begin.elapsed_time(end) / 1e3
                self.running[kind] = False
        return self.seconds


def free_bytes() -> int:
    """The card's memory that nobody uses."""
    return cuda.current_context().get_memory_info()[0]


def find_card() -> str:
    """The name of the card; raises RuntimeError if there is none."""
    if SIMULATED:
        return "Numba's simulator"
    if not cuda.is_available():
        raise RuntimeError("no NVIDIA card or driver was found")
    with suppress(ModuleNotFoundError):  # what the first kernel would import: it asks NumPy for names that may be gone
        importlib.import_module("numba.cuda.np.arrayobj")
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)
