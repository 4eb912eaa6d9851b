"""Check whether the kernels are compiled already."""

from __future__ import annotations

from pathlib import Path

from contam.kernels._cache import cache_folder
from contam.kernels._jit import INTERPRETED


def is_warm() -> bool:
    """Whether an earlier run left the compiled kernels on disk, so that no run has to wait."""
    document = Path(__file__).with_name("document.py")
    return INTERPRETED or any(cache_folder(document).glob("*.nbi"))
