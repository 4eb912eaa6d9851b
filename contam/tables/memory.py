"""Release Arrow memory that a long run no longer needs."""

from __future__ import annotations

import gc

import pyarrow as pa

from contam.memory import trim


def release_unused() -> None:
    """Return pages that Arrow holds for later use to the system."""
    pa.default_memory_pool().release_unused()


def give_back() -> None:
    """Return all freed memory, whichever allocator holds it: else the parts of a run add up."""
    gc.collect()
    release_unused()
    trim()
