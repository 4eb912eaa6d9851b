"""Decide when to retry a request and how long to wait."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from contam.client.failures import BUSY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Problems that do not pass by waiting, unless the service says how long.
_LASTING: Final = frozenset({"corpus", "shard", "incomplete", "index-damaged"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often to ask again, with waits that double and vary.

    attempts   requests in all, the first included
    first_s    longest first wait; the next ones double up to longest_s
    total_s    seconds of waiting in all: a Retry-After beyond what is left of it ends the attempts
    """

    attempts: int = 6
    first_s: float = 0.5
    longest_s: float = 30.0
    total_s: float = 120.0
    random: Callable[[], float] = field(default=random.random, repr=False)

    def wait_s(self, attempt: int, waited_s: float, asked_s: float | None = None) -> float | None:
        """Seconds before the next request, None when there is to be none.

        attempt   requests made so far; waited_s  seconds waited so far
        asked_s   what the service asked for; it is never undercut
        """
        if attempt >= self.attempts:
            return None
        step = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1))
        # Clients that were turned away together must not come back together.
        wait = step * (0.5 + self.random() / 2)
        if asked_s is not None:
            wait = max(asked_s, min(wait, asked_s)) + self.random() * min(step, 1 + asked_s / 4)
        return wait if waited_s + wait <= self.total_s else None


PATIENT: Final = Retry(attempts=60, total_s=900.0)
"""For whoever waits for a job: it outlives a restart of the service, and so does the wait."""


def may_help(status: int, code: str, headers: Mapping[str, str]) -> bool:
    """Whether a refusal is one that asking again may get past."""
    if code in _LASTING:
        return "retry-after" in headers
    return status in BUSY


def retry_after_s(headers: Mapping[str, str], now_s: float | None = None) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or a date; None when it does not.

    now_s  seconds since 1970 that a date is compared with; the clock's where none is given
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    now_s = time.time() if now_s is None else now_s
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_s)
    except (TypeError, ValueError):
        return None
