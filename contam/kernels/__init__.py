"""Compiled loops over arrays: the only package that uses Numba."""
