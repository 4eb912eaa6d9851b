"""Stop work soon after a deadline; items that were not finished get no verdict."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.labels import NOT_CHECKABLE
from contam.detect.model import Judgements
from contam.detect.policies.policy import Wrapped
from contam.kernels.score_item import NO_LIMIT

if TYPE_CHECKING:
    from contam.detect.model import Int64s, Totals, ViewItems

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


@dataclass(frozen=True, slots=True, eq=False)
class Unanswered(Wrapped):
    """A policy that was not asked in time: it says so of every item."""

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Not checkable, all of them."""
        label = np.full(items.n_items, NOT_CHECKABLE, np.int8)
        return Judgements(label=label, score=totals.best_score)

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """The same for all."""
        del items, totals, judgement
        return [REASON] * len(rows)
