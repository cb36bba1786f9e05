"""The kernels of a graphics card."""
