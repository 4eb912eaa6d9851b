"""Waiting in tests: for a state, never for a time; a time-out is only there to end a hang."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: No step of any test takes so long, on a machine that does ten other things either.
HANG_S = 1800.0


def wait_until(fits: Callable[[], object], *, pause_s: float = 0.01, said: object = "") -> None:
    """Return as soon as `fits()` is true; fail with `said` where it never becomes so."""
    end = time.monotonic() + HANG_S
    while not fits():
        assert time.monotonic() < end, said
        time.sleep(pause_s)
