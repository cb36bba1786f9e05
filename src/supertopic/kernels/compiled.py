"""How everything in this layer is compiled."""

from numba import njit

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
