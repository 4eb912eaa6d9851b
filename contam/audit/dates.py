"""When a leaking document was written, beside the day its benchmark came out.

A document older than the benchmark cannot have copied it: the item was taken from the web, or both
from one source. A younger one may be a leak of the benchmark itself.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

SHARED: Final = "shared_source"
LEAK: Final = "leak"
UNKNOWN: Final = "unknown"
CLASSES: Final = (LEAK, SHARED, UNKNOWN)
"""Worst first: a younger document outweighs an older one, that an undated one."""

_DATE: Final = re.compile(r"\s*(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_DECEMBER: Final = 12


def span_of(date: str | None) -> tuple[dt.date, dt.date] | None:
    """First and last day that a date may mean: 2021 means all of its days; None says nothing."""
    found = _DATE.match(date or "")
    if not found:
        return None
    year, month, day = (int(piece) if piece else 0 for piece in found.groups())
    try:
        first = dt.date(year, month or 1, day or 1)
        if day:
            return first, first
        if month:
            following = dt.date(year + month // _DECEMBER, month % _DECEMBER + 1, 1)
            return first, following - dt.timedelta(days=1)
        return first, dt.date(year, _DECEMBER, 31)
    except ValueError:
        return None


def class_of(date: str | None, released: str | None) -> str:
    """One of `CLASSES`; a date that may lie on either side of the release is unknown."""
    when = span_of(date)
    if when is None or released is None:
        return UNKNOWN
    day = dt.date.fromisoformat(released)
    if when[1] < day:
        return SHARED
    return LEAK if when[0] >= day else UNKNOWN
