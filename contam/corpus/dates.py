"""Parse dates of documents in the forms that corpora write them.

ISO 8601 (also only a year or a month, also without dashes), the form of mail and HTTP headers
(RFC 2822), and seconds, milliseconds or microseconds since 1970.
"""

from __future__ import annotations

import datetime as dt
import re
from email.utils import parsedate
from typing import Final

FIRST_YEAR: Final = 1450
LAST_YEAR: Final = 2100
"""A date outside of these is an error in the data and is ignored."""

Span = tuple[dt.date, dt.date]

SHARED: Final = "shared_source"
LEAK: Final = "leak"
UNKNOWN: Final = "unknown"
CLASSES: Final = (LEAK, SHARED, UNKNOWN)
"""Worst first: a younger document outweighs an older one, that an undated one."""

_ISO: Final = re.compile(
    r"(\d{4})(?:([-/.]?)(\d{2})(?:\2(\d{2}))?)?(?:[T ].*|\d{6}Z?)?", re.ASCII | re.DOTALL
)
_NUMBER: Final = re.compile(r"(\d{9,16})(?:\.\d*)?", re.ASCII)
#: No form above is longer; a text that begins with a year is no date.
_LONGEST: Final = 64
_WARC: Final = 14
_EPOCH: Final = dt.date(1970, 1, 1)
#: Before that a number of seconds is more likely something else.
_FIRST_EPOCH: Final = dt.date(1980, 1, 1)
_UNITS: Final = (1, 1_000, 1_000_000)
_DAY: Final = 86_400
_DECEMBER: Final = 12


def span_of(date: str | None) -> Span | None:
    """First and last day that a date may mean: of 2021 all its days; None when it means none."""
    text = (date or "").strip()
    if len(text) > _LONGEST:
        return None
    number = _NUMBER.fullmatch(text)
    if number and len(number[1]) != _WARC:
        return _of_epoch(int(number[1]))
    found = _ISO.fullmatch(text)
    span = _of_parts(found[1], found[3], found[4]) if found else _of_header(text)
    # A clock that was never set.
    if span is None or span[0] == span[1] == _EPOCH:
        return None
    return span if FIRST_YEAR <= span[0].year <= LAST_YEAR else None


def year_of(date: str | None) -> str:
    """The year of a date, "" where there is none, "unknown" where it cannot be read."""
    if not date or not date.strip():
        return ""
    span = span_of(date)
    return str(span[0].year) if span else "unknown"


def class_of(date: str | None, released: str | None) -> str:
    """What a document of that date is to an item: one of `CLASSES`.

    An older document cannot have copied it; a date that may be on either side is unknown.
    """
    when, day = span_of(date), span_of(released)
    if when is None or day is None:
        return UNKNOWN
    if when[1] < day[0]:
        return SHARED
    return LEAK if when[0] >= day[1] else UNKNOWN


def month_of(date: str | None) -> str:
    """The month of a date as "2021-06"; "unknown" of one that may be of several."""
    when = span_of(date)
    if when is None or (when[0].year, when[0].month) != (when[1].year, when[1].month):
        return UNKNOWN
    return f"{when[0]:%Y-%m}"


def _of_epoch(value: int) -> Span | None:
    for unit in _UNITS:
        days = value // unit // _DAY
        if days <= (dt.date(LAST_YEAR, 12, 31) - _EPOCH).days:
            day = _EPOCH + dt.timedelta(days=days)
            return (day, day) if day >= _FIRST_EPOCH else None
    return None


def _of_parts(year: str, month: str | None, day: str | None) -> Span | None:
    number = int(month or 0)
    try:
        first = dt.date(int(year), number or 1, int(day or 1))
        if day:
            return first, first
        if month:
            following = dt.date(int(year) + number // _DECEMBER, number % _DECEMBER + 1, 1)
            return first, following - dt.timedelta(days=1)
        return first, dt.date(int(year), _DECEMBER, 31)
    except ValueError:
        return None


def _of_header(text: str) -> Span | None:
    """`Mon, 04 Mar 2019 10:00:00 GMT`, with or without day of the week and time."""
    try:
        found = parsedate(text)
        day = dt.date(*found[:3]) if found else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (day, day) if day else None
