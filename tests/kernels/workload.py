"""A workload that another process can import."""

from __future__ import annotations

import numpy as np

from contam.kernels.document import count_code_points


def count_a_little() -> int:
    """Call one kernel, which calls another."""
    return int(count_code_points(np.frombuffer("aé中x".encode() * 9, np.uint8), 0, 63))
