"""When a leaking document was written, beside the day its benchmark came out.

A document older than the benchmark cannot have copied it: the item was taken from the web, or both
from one source. A younger one may be a leak of the benchmark itself.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from contam.corpus.dates import span_of

SHARED: Final = "shared_source"
LEAK: Final = "leak"
UNKNOWN: Final = "unknown"
CLASSES: Final = (LEAK, SHARED, UNKNOWN)
"""Worst first: a younger document outweighs an older one, that an undated one."""


def class_of(date: str | None, released: str | None) -> str:
    """One of `CLASSES`; a date that may lie on either side of the release is unknown."""
    when = span_of(date)
    if when is None or released is None:
        return UNKNOWN
    day = dt.date.fromisoformat(released)
    if when[1] < day:
        return SHARED
    return LEAK if when[0] >= day else UNKNOWN
