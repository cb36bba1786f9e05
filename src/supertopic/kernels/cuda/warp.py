"""What the lanes of a warp do together where they have one document: all lanes, or the one lane of the simulator."""

from numba import int32

from supertopic.kernels.cuda.device import EVERYONE, SIMULATED, WARP, cuda

LANES = 1 if SIMULATED else WARP
LAST, LOG = LANES - 1, LANES.bit_length() - 1


@cuda.jit(device=True)
def up_to(x, t):
    """The sum of the lanes up to this one, t."""
    for s in range(LOG):
        below = cuda.shfl_up_sync(EVERYONE, x, 1 << s)
        if t >= (1 << s):
            x += below
    return x


@cuda.jit(device=True)
def all_lanes(x):
    """The sum of all lanes."""
    for s in range(LOG):
        x += cuda.shfl_xor_sync(EVERYONE, x, 1 << s)
    return x


@cuda.jit(device=True)
def largest_lane(x):
    """The largest number of all lanes."""
    for s in range(LOG):
        x = max(x, cuda.shfl_xor_sync(EVERYONE, x, 1 << s))
    return x


@cuda.jit(device=True)
def of_lane(x, lane):
    """The number of another lane."""
    if LANES > 1:
        return cuda.shfl_sync(EVERYONE, x, lane)
    return x


@cuda.jit(device=True)
def first_lane(true):
    """The first lane for which it is true, or -1."""
    if LANES > 1:
        return int32(cuda.ffs(cuda.ballot_sync(EVERYONE, true))) - int32(1)
    return int32(0) if true else int32(-1)
