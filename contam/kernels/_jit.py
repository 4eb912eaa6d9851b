"""Define the `kernel` decorators: no GIL, one signature a kernel, and a cache keyed by content."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba.core.options import DefaultOptions

from contam.kernels._cache import BOUNDSCHECK, ContentCache
from contam.kernels._compiler import IS_KNOWN, Kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Uint8s = NDArray[np.uint8]
    Int16s = NDArray[np.int16]
    Uint16s = NDArray[np.uint16]
    Int32s = NDArray[np.int32]
    Uint32s = NDArray[np.uint32]
    Int64s = NDArray[np.int64]
    Uint64s = NDArray[np.uint64]
    Float32s = NDArray[np.float32]
    Float64s = NDArray[np.float64]

F = TypeVar("F", bound=Callable[..., Any])

#: Numba sets its options while it is imported, out of a type checker's sight.
_numba_config: Any = numba.config

#: A machine number as int64. Kernels annotate every signed number as int, and this is one to the
#: type checker; to Numba it is np.int64, where int() would keep a narrow or unsigned type.
int64 = cast("type[int]", np.int64)

#: True when Python runs the kernels itself (NUMBA_DISABLE_JIT=1).
INTERPRETED: bool = bool(_numba_config.DISABLE_JIT)
#: Numba's own name for compiling without its run time for memory; a version without it counts.
_UNCOUNTED: dict[str, bool] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def _compile(function: F, **options: bool) -> F:
    if INTERPRETED:
        return function
    options |= {"nogil": True, "boundscheck": BOUNDSCHECK}
    if IS_KNOWN:
        return cast("F", Kernel(function, options))
    njit: Any = numba.njit  # its types do not know every option
    compiled = njit(**options)(function)
    compiled._cache = ContentCache(function)  # noqa: SLF001 - as its enable_caching does
    return cast("F", compiled)


def kernel(function: F) -> F:
    """Compile `function` on first call: no Python objects, no GIL, kept on disk between runs."""
    return _compile(function)


def lean_kernel(function: F) -> F:
    """Compile `function` as `kernel` does, without counting references to the arrays it is given.

    Counting costs two locked memory accesses for every array handed on, more than a short call
    itself. Such a kernel cannot make arrays, slices apart: Numba refuses to compile it. It may
    not take an array from a kernel that makes one either, for that would never be freed.
    """
    return _compile(function, **_UNCOUNTED)
