"""Limit how many checks run, how many wait, and how long."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

Answer = TypeVar("Answer")


class LateError(Exception):
    """The work did not end in time; it may still run."""


class Admission:
    """Threads for checks: `running` of them work, `waiting` more may wait, others are sent away.

    Checks have threads of their own, so that they never keep a probe or a list waiting.
    """

    def __init__(self, running: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(running, thread_name_prefix="check")
        self._lock = threading.Lock()
        self._most = running + waiting
        self._held = 0

    @property
    def held(self) -> int:
        """Checks that run or wait."""
        return self._held

    async def run(self, work: Callable[[], Answer], seconds: float) -> Answer:
        """Do the work on a thread and give its result.

        Raises RequestError, 503, when too many wait, and LateError after so many seconds. What
        waits then is given up; what runs keeps its thread, and its place, until it ends.
        """
        with self._lock:
            if self._held >= self._most:
                raise RequestError(
                    503, "too many checks are waiting", code="busy", headers={"Retry-After": "1"},
                )  # fmt: skip
            self._held += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._leave)
        waiter = asyncio.wrap_future(future)
        done, _ = await asyncio.wait((waiter,), timeout=seconds)
        if not done:
            waiter.cancel()
            raise LateError
        return waiter.result()

    def close(self) -> None:
        """Take nothing more, and let what runs end."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _leave(self, _future: Future[Answer]) -> None:
        with self._lock:
            self._held -= 1
