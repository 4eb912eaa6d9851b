"""Limit requests per key, per minute and at a time."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S: Final = 60


class _Usage:
    """Requests of one key: those under way, and how many came in each of the last seconds."""

    def __init__(self) -> None:
        self.per_second: deque[tuple[int, int]] = deque()
        self.n_requests = 0
        self.n_running = 0

    def advance(self, second: int) -> None:
        """Forget the seconds that have left the window."""
        while self.per_second and self.per_second[0][0] <= second - WINDOW_S:
            self.n_requests -= self.per_second.popleft()[1]

    def add(self, second: int) -> None:
        """Count a request."""
        known = self.per_second.pop()[1] if self._has(second) else 0
        self.per_second.append((second, known + 1))
        self.n_requests += 1
        self.n_running += 1

    def seconds_until_more(self, second: int) -> int:
        """Seconds until the oldest requests of the window leave it; 1 if there are none."""
        return WINDOW_S - (second - self.per_second[0][0]) if self.per_second else 1

    def _has(self, second: int) -> bool:
        return bool(self.per_second) and self.per_second[-1][0] == second


class Limits:
    """Admits requests of a key as long as it stays within its limits.

    The window slides by seconds, so that no 60 seconds see more than the limit. To be used from
    one thread, that of the event loop. The clock must not jump.
    """

    def __init__(
        self,
        rate_per_minute: int,
        max_concurrent: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate_per_minute
        self._max_concurrent = max_concurrent
        self._clock = clock
        self._usage: dict[str, _Usage] = {}
        self._policy = f'"minute";q={rate_per_minute};w={WINDOW_S}'

    def enter(self, key_id: str) -> list[tuple[str, str]]:
        """Admit a request; returns the headers with the remaining quota.

        Raises RequestError 429 when there is no room; then `leave` must not be called.
        """
        second = int(self._clock())
        usage = self._usage.setdefault(key_id, _Usage())
        usage.advance(second)
        if usage.n_requests >= self._rate:
            raise self._refused(
                usage, second, usage.seconds_until_more(second), "rate-limit",
                f"the key has made its {self._rate} requests of this minute",
            )  # fmt: skip
        if usage.n_running >= self._max_concurrent:
            raise self._refused(
                usage, second, 1, "concurrency-limit",
                f"{self._max_concurrent} requests of the key are under way",
            )  # fmt: skip
        usage.add(second)
        return self._headers(usage, second)

    def leave(self, key_id: str) -> None:
        """A request that was admitted has been answered."""
        self._usage[key_id].n_running -= 1

    def _headers(self, usage: _Usage, second: int) -> list[tuple[str, str]]:
        left = self._rate - usage.n_requests
        return [
            ("RateLimit-Policy", self._policy),
            ("RateLimit", f'"minute";r={left};t={usage.seconds_until_more(second)}'),
        ]

    def _refused(
        self, usage: _Usage, second: int, wait_s: int, code: str, message: str
    ) -> RequestError:
        return RequestError(
            429, message, code=code, hint="wait for Retry-After seconds, then ask again",
            headers={**dict(self._headers(usage, second)), "Retry-After": str(wait_s)},
        )  # fmt: skip
