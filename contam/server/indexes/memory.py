"""Choose how much text a service caches by default."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.config import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What a container may take, by either version of control groups.
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_LEAST: Final = 256 * MIB
#: A gigabyte of corpus fits twice; of a larger one most text is never asked for again.
_MOST: Final = 2048 * MIB


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


def text_cache_bytes(cache_bytes: int, n_indexes: int, usable: int) -> int:
    """Bytes of text that each index keeps.

    cache_bytes  as the operator says; 0 leaves it to us: an eighth of `usable` bytes for all
                 indexes together, and for each at least 256 MiB and at most 2 GiB
    """
    return cache_bytes or max(_LEAST, min(_MOST, usable // 8 // max(1, n_indexes)))
