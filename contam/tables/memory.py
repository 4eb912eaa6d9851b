"""Arrow's memory between the reading of a corpus and the writing of results."""

from __future__ import annotations

import pyarrow as pa


def release_unused() -> None:
    """Give pages that Arrow keeps for later back to the system."""
    pa.default_memory_pool().release_unused()
