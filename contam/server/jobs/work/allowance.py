"""Limit the seconds that one attempt at a job may work."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Allowance:
    """What is left of an attempt's seconds."""

    def __init__(self, most_s: float) -> None:
        self._left_s = most_s
        self._over = False
        self._changed = threading.Condition()
        self._ended = False
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
                self._ended = True
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
            while self._left_s > 0:
                self._changed.wait_for(lambda: self._ended or not self._paused)
                if self._ended:
                    return
                began = time.monotonic()
                self._changed.wait_for(lambda: self._ended or self._paused, self._left_s)
                self._left_s -= time.monotonic() - began
        self._over = True
        end()
