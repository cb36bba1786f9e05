"""Numba only, no Python objects: vectors of eight lanes, random draws, the two topic samplers, counts, moments."""
