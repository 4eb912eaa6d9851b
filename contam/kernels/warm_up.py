"""Check whether the kernels are compiled already."""

from __future__ import annotations

from contam.kernels._jit import is_compiled


def is_warm() -> bool:
    """Whether an earlier run left the compiled kernels on disk, so that no run has to wait."""
    return is_compiled()
