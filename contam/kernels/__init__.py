"""Compiled loops over arrays: the only package that uses Numba."""

from contam import extras

if extras.is_own_process():
    with extras.hidden("scipy.linalg"):
        # To see whether products of matrices can be compiled, Numba loads scipy.linalg, which takes
        # 0.1 to 0.2 s. No kernel has one.
        import numba.np.arraymath
    with extras.hidden("cffi"):
        # Numba looks for the type of an argument among those of a parser of C, too, which takes
        # 0.04 s to load. No kernel takes one.
        import numba.core.typing.cffi_utils  # noqa: F401
