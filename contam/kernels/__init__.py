"""Compiled loops over arrays: the only place that knows Numba."""
