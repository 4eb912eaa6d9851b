"""Tell what a process may use of its machine, and how it takes memory and gives it back."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What a container may take, by either version of control groups.
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

#: What Arrow takes its memory from, read when it is first loaded.
_ARROW_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
#: What glibc reads instead of what is set here.
_OWN_WISHES: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
#: Numbers of `mallopt` in glibc.
_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD: Final = -1
#: Blocks from this size on go back at once when they are freed, and free memory at the end of the
#: heap beyond the second size. Most buffers that Arrow decodes a batch of text into are smaller
#: than those of a command: pages given back would be touched anew for every batch, which took as
#: long as the decoding. Half as much of both takes a fifth more time of reading, for a few percent
#: less memory.
_COMMAND_BYTES: Final = (8 << 20, 32 << 20)
_SERVICE_BYTES: Final = (1 << 18, 1 << 20)
#: New objects after which cycles are looked for.
_MOST_YOUNG: Final = 100_000


def usable_bytes(limits: Iterable[Path] = _LIMITS) -> int:
    """Bytes of memory this process may take: the machine's, or the container's where it is less."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in limits:
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal():
            found = min(found, int(text))
    return found


def peak_bytes() -> int:
    """The most memory that this process has had at once."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10  # macOS counts bytes, Linux kibibytes


def usable_cores() -> int:
    """Cores that this process may use: those of its job, which may be fewer than the node's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS has no affinity


def bound(what: int, most: int) -> None:
    """Let this process have no more of a resource than so much, where the system takes that."""
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, hard))


def tune_command() -> None:
    """Take memory as one run of a command should; what the environment says comes first.

    Arrow's own allocator gives pages back only to touch them anew for the next batch: a scan of a
    gigabyte took a tenth more processor time and a quarter more memory with it.
    """
    os.environ.setdefault(_ARROW_POOL, "system")
    # Items and rows make many objects and no cycles: by default a collector looks at each of them
    # again and again, for a tenth of the time of reading a benchmark.
    gc.set_threshold(_MOST_YOUNG)
    _return_blocks(*_COMMAND_BYTES)


def tune_service() -> None:
    """Take memory as a process should that lives for weeks; the environment comes first."""
    _return_blocks(*_SERVICE_BYTES)


def trim() -> None:
    """Have the C library return what was freed, where it can."""
    # Only glibc has it, and only glibc needs it.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _return_blocks(block_bytes: int, end_bytes: int) -> None:
    """Have glibc return freed blocks of this size, and so much at the heap's end, to the system.

    By itself it raises that size with every large array that is freed, up to 32 MiB: of arrays
    below it the holes stay. A scan of 4.4 GB took a fifth more memory, and a service grew for hours
    though it held no more than in its first minute.
    """
    if any(name in os.environ for name in _OWN_WISHES):
        return
    with contextlib.suppress(OSError, AttributeError):
        tune = ctypes.CDLL(None).mallopt
        tune(_MMAP_THRESHOLD, block_bytes)
        tune(_TRIM_THRESHOLD, end_bytes)
