"""Stop work soon after a deadline; items that were not finished get no verdict."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from contam.kernels.score_item import NO_LIMIT

REASON: Final = "deadline"
"""Why an item is `not_checkable` whose question was not answered in time."""


MOST_STEPS: Final = 1_000_000_000
"""A second or two: what is to be answered in time and needs more for a few documents is late.

Steps and not time, so that an item which no time would do for is late wherever it is asked.
"""


class DeadlinePassed(Exception):  # noqa: N818 - no error: the question is answered with it
    """The time is over; the caller makes an answer of that."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment, in seconds of `time.monotonic`; None for never."""

    at: float | None = None

    @property
    def most_steps(self) -> int:
        """Steps that may be spent on one batch of documents without a look at the clock."""
        return NO_LIMIT if self.at is None else MOST_STEPS

    def check(self) -> None:
        """Raise DeadlinePassed when the moment is there."""
        if self.at is not None and time.monotonic() >= self.at:
            raise DeadlinePassed


NO_DEADLINE: Final = Deadline()
