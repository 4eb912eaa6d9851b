"""The `kernel` decorator: nogil, cached under a folder named by everything that decides the code.

Numba does not notice when a helper in another file changes, and it reuses a cached binary compiled
without bounds checks when they are asked for.  A cache folder named by a digest of all kernel
sources, the Numba version and the bounds flag cures both.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import config as _numba_config

F = TypeVar("F", bound=Callable[..., Any])

#: True when Python runs the kernels itself (NUMBA_DISABLE_JIT=1).
INTERPRETED: bool = bool(_numba_config.DISABLE_JIT)
_BOUNDSCHECK: bool = os.environ.get("NUMBA_BOUNDSCHECK", "0") == "1"


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    digest.update(f"{numba.__version__} bounds={_BOUNDSCHECK}".encode())
    return digest.hexdigest()[:16]


def _cache_root() -> Path:
    named = os.environ.get("CONTAM_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "contam"


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _choose_cache_folder() -> Path:
    name = f"kernels-{_sources_digest()}"
    wanted = _cache_root() / name
    if _usable(wanted):
        return wanted
    # A read-only home must not stop a scan: compile into a folder of this user's in the temp area.
    return Path(tempfile.gettempdir()) / f"contam-{os.getuid()}" / name


CACHE_FOLDER: Path = _choose_cache_folder()


def is_compiled() -> bool:
    """Whether an earlier run has left compiled kernels in the cache folder."""
    return INTERPRETED or any(CACHE_FOLDER.rglob("*.nbi"))


def kernel(function: F) -> F:
    """Compile `function` on first call: no Python objects, no GIL, kept on disk between runs."""
    before = _numba_config.CACHE_DIR
    _numba_config.CACHE_DIR = str(CACHE_FOLDER)  # read now, at decoration, and never again
    try:
        compiled = numba.njit(nogil=True, cache=True, boundscheck=_BOUNDSCHECK)(function)
    finally:
        _numba_config.CACHE_DIR = before
    return cast("F", compiled)
