"""The kernels of a GPU."""
