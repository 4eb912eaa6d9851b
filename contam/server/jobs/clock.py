"""Time that retention can trust: seconds the machine ran, whatever anyone sets its clock to."""

from __future__ import annotations

import functools
import secrets
import time
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class Clock:
    """What a service asks for the time; tests give it another.

    A wall clock can be set back and forth, so it is only shown, never counted with. What is counted
    is the time since the machine started, sleep included, and which start that was.
    """

    def wall(self) -> float:
        """Seconds since 1970, as the machine believes."""
        return time.time()

    def running(self) -> float:
        """Seconds since the machine was started, or since some moment of it."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    def start_id(self) -> str:
        """Names the start that `running` counts from."""
        return _start_id()


@functools.cache
def _start_id() -> str:
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        # Nothing tells one start from another: only this process's own time is certain.
        return secrets.token_hex(8)


def passed(before: tuple[str, float], now: tuple[str, float]) -> float:
    """Seconds between two looks, as (start id, running), that are certain to have passed.

    Over a restart of the machine nothing is certain, so it is 0: what waits for its end waits
    longer, never shorter.
    """
    if before[0] != now[0]:
        return 0.0
    return max(0.0, now[1] - before[1])
