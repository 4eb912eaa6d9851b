"""How a command takes memory from the system. Nothing heavy is imported here."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Final

#: What Arrow takes its memory from, read when it is first loaded.
_ARROW_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
#: What glibc reads instead of what is set here.
_OWN_WISHES: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
#: Numbers of `mallopt` in glibc.
_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD: Final = -1
_LARGE: Final = 1 << 20


def tune_memory() -> None:
    """Take memory so that what is freed goes back; what the environment says comes first.

    Arrow's own allocator gives pages back only to touch them anew for the next batch: a scan of a
    gigabyte took a tenth more processor time and a quarter more memory with it. And glibc raises
    the size from which it gives back with every large array that is freed, up to 32 MiB: of arrays
    below it the holes stay, and a scan of 4.4 GB took a fifth more memory.
    """
    os.environ.setdefault(_ARROW_POOL, "system")
    if any(name in os.environ for name in _OWN_WISHES):
        return
    # Only glibc has it.
    with contextlib.suppress(OSError, AttributeError):
        tune = ctypes.CDLL(None).mallopt
        tune(_MMAP_THRESHOLD, _LARGE)
        tune(_TRIM_THRESHOLD, _LARGE)
