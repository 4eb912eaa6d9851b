"""Ctrl-C that does not hit a compiler: there it is lost, or ends the process without a word."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

#: Packages that call back from machine code, where an exception cannot come out.
_COMPILERS: Final = frozenset({"numba", "llvmlite"})
#: Until it is tried again, and until it is tried no longer, in seconds: to load a kernel takes a
#: fraction of that, to compile one may take a minute.
_PAUSE_S: Final = 0.05
_MOST_S: Final = 2.0


class Interrupt:
    """A handler of SIGINT that raises KeyboardInterrupt as soon as no kernel is being loaded."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or send the signal again a little later."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since < _MOST_S and _is_loading(frame):
            later = threading.Timer(_PAUSE_S, os.kill, (os.getpid(), number))
            later.daemon = True
            later.start()
            return
        self._since = None
        raise KeyboardInterrupt


def _is_loading(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _COMPILERS:
            return True
        frame = frame.f_back
    return False
