"""Ctrl-C that does not hit a compiler: there it is lost, or ends the process without a word."""

from __future__ import annotations

import os
import threading
import time
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

#: Calls back from machine code, where an exception cannot come out.
_NEVER: Final = "llvmlite"
#: Calls that, and works on in Python for as long as a minute where a kernel is compiled.
_LATER: Final = "numba"
#: Until it is tried again, and until only what is called back is waited for, in seconds.
_PAUSE_S: Final = 0.05
_MOST_S: Final = 4.0
#: Frames between machine code and the place where a signal is noticed.
_NEAR: Final = 6


class Interrupt:
    """A handler of SIGINT that raises KeyboardInterrupt as soon as no kernel is being loaded."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or send the signal again a little later."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        packages = list(_packages(frame))
        soon = now - self._since < _MOST_S and _LATER in packages
        if soon or _NEVER in islice(packages, _NEAR):
            later = threading.Timer(_PAUSE_S, os.kill, (os.getpid(), number))
            later.daemon = True
            later.start()
            return
        self._since = None
        raise KeyboardInterrupt


def _packages(frame: FrameType | None) -> Iterator[str]:
    """The packages of the functions that are running, the innermost first."""
    while frame is not None:
        yield str(frame.f_globals.get("__name__")).partition(".")[0]
        frame = frame.f_back
