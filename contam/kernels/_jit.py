"""The `kernel` decorators: nogil, cached under a folder named by everything that decides the code.

Numba does not notice when a helper in another file changes, and it reuses a cached binary compiled
without bounds checks when they are asked for.  A cache folder named by a digest of all kernel
sources, the Numba version and the bounds flag cures both.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.options import DefaultOptions

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
_BOUNDSCHECK: bool = os.environ.get("NUMBA_BOUNDSCHECK", "0") == "1"


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    digest.update(f"{numba.__version__} bounds={_BOUNDSCHECK}".encode())
    return digest.hexdigest()[:16]


def _cache_root() -> Path | None:
    """Where compiled kernels are kept between runs; None where this user has no home."""
    named = os.environ.get("CONTAM_CACHE_DIR")
    if named:
        return Path(named)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "contam"
    try:
        return Path.home() / ".cache" / "contam"
    except RuntimeError:
        return None


def _usable(folder: Path) -> bool:
    """Whether the folder can be written, and nobody else can: what lies there is executed."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.lstat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022 or folder.is_symlink():
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _choose_cache_folder() -> Path:
    name = f"kernels-{_sources_digest()}"
    root = _cache_root()
    if root is not None and _usable(root / name):
        return root / name
    # A home that cannot be written must not stop a scan: compile into a folder of our own.
    folder = Path(tempfile.mkdtemp(prefix="contam-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


CACHE_FOLDER: Path = _choose_cache_folder()


def is_compiled() -> bool:
    """Whether an earlier run has left compiled kernels in the cache folder."""
    return INTERPRETED or any(CACHE_FOLDER.rglob("*.nbi"))


def _compile(function: F, **options: bool) -> F:
    before = _numba_config.CACHE_DIR
    _numba_config.CACHE_DIR = str(CACHE_FOLDER)  # read now, at decoration, and never again
    try:
        njit: Any = numba.njit  # its types do not know every option
        compiled = njit(nogil=True, cache=True, boundscheck=_BOUNDSCHECK, **options)(function)
    finally:
        _numba_config.CACHE_DIR = before
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
