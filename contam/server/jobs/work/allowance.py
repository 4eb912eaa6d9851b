"""Limit the seconds a job may run, over all its attempts.

A stretch is noted as spent before it begins, and what was not used of it given back at its end. So
whoever kills the service again and again shortens a job's time, and never makes it longer.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SPENT: Final = "spent"
STRETCH_S: Final = 30.0


class Allowance:
    """What is left of a job's seconds."""

    def __init__(self, folder: Path, most_s: float) -> None:
        self._path = folder / SPENT
        self._most_s = most_s
        self._spent = self._read()
        self._over = self._spent >= most_s
        self._changed = threading.Condition()
        self._left = False
        self._paused = False

    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._over

    @contextlib.contextmanager
    def spending(self, end: Callable[[], None]) -> Iterator[None]:
        """Count the seconds of the block; call `end`, on another thread, when they run out."""
        thread = threading.Thread(target=self._count, args=(end,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._left = True
                self._changed.notify_all()
            thread.join()

    def pause(self) -> None:
        """Count nothing until `go_on`."""
        self._set_paused(paused=True)

    def go_on(self) -> None:
        """Count again."""
        self._set_paused(paused=False)

    def _set_paused(self, *, paused: bool) -> None:
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def _count(self, end: Callable[[], None]) -> None:
        with self._changed:
            while self._spent < self._most_s:
                if not self._paused:
                    stretch = min(STRETCH_S, self._most_s - self._spent)
                    self._note(self._spent + stretch)
                    began = time.monotonic()
                    self._changed.wait_for(lambda: self._left or self._paused, stretch)
                    self._spent += time.monotonic() - began
                if self._left or self._paused:
                    self._note(self._spent)
                    self._changed.wait_for(lambda: self._left or not self._paused)
                if self._left:
                    return
        self._over = True
        end()

    def _read(self) -> float:
        try:
            return float(self._path.read_text("ascii"))
        except (OSError, ValueError):
            return 0.0

    def _note(self, seconds: float) -> None:
        # A full disk does not end the counting: it goes on in memory.
        with contextlib.suppress(OSError):
            draft = self._path.with_suffix(".draft")
            draft.write_text(f"{seconds:.3f}", "ascii")
            draft.replace(self._path)
