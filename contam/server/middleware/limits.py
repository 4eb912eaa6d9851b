"""Limit requests per key, per minute and at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S: Final = 60


class _Usage:
    """Requests of one key in each of the last WINDOW_S seconds, and those under way."""

    __slots__ = ("n_requests", "n_running", "per_second", "second")

    def __init__(self, second: int) -> None:
        self.per_second = [0] * WINDOW_S
        self.second = second
        self.n_requests = 0
        self.n_running = 0

    def advance(self, second: int) -> None:
        """Forget the seconds that have left the window."""
        n_passed = min(second - self.second, WINDOW_S)
        for passed in range(1, n_passed + 1):
            place = (second - n_passed + passed) % WINDOW_S
            self.n_requests -= self.per_second[place]
            self.per_second[place] = 0
        self.second = max(self.second, second)

    def seconds_until_more(self) -> int:
        """Seconds until the oldest requests of the window leave it; 1 if there are none."""
        for age in range(WINDOW_S - 1, 0, -1):
            if self.per_second[(self.second - age) % WINDOW_S]:
                return WINDOW_S - age
        return WINDOW_S if self.n_requests else 1


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
        """Admit a request; returns the headers that tell its sender what is left.

        Raises RequestError 429 when there is no room; then `leave` must not be called.
        """
        second = int(self._clock())
        usage = self._usage.get(key_id)
        if usage is None:
            usage = self._usage[key_id] = _Usage(second)
        usage.advance(second)
        if usage.n_requests >= self._rate:
            raise self._refused(
                usage, usage.seconds_until_more(), "rate-limit",
                f"the key has made its {self._rate} requests of this minute",
            )  # fmt: skip
        if usage.n_running >= self._max_concurrent:
            raise self._refused(
                usage, 1, "concurrency-limit",
                f"{self._max_concurrent} requests of the key are under way",
            )  # fmt: skip
        usage.n_running += 1
        usage.n_requests += 1
        usage.per_second[usage.second % WINDOW_S] += 1
        return self._headers(usage)

    def leave(self, key_id: str) -> None:
        """A request that was admitted has been answered."""
        self._usage[key_id].n_running -= 1

    def _headers(self, usage: _Usage) -> list[tuple[str, str]]:
        left = self._rate - usage.n_requests
        return [
            ("RateLimit-Policy", self._policy),
            ("RateLimit", f'"minute";r={left};t={usage.seconds_until_more()}'),
        ]

    def _refused(self, usage: _Usage, wait_s: int, code: str, message: str) -> RequestError:
        return RequestError(
            429, message, code=code, hint="wait for Retry-After seconds, then ask again",
            headers={**dict(self._headers(usage)), "Retry-After": str(wait_s)},
        )  # fmt: skip
