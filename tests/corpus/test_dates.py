"""Dates of documents in every form that corpora write them in, and what is no date."""

import datetime as dt
import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.corpus.dates import (
    FIRST_YEAR,
    LAST_YEAR,
    LEAK,
    SHARED,
    UNKNOWN,
    class_of,
    span_of,
    year_of,
)

MOMENTS = st.dates(dt.date(1981, 1, 1), dt.date(2099, 12, 31)).map(
    lambda day: dt.datetime(day.year, day.month, day.day, 13, 5, 9, tzinfo=dt.UTC)
)


def written(moment):
    """One moment in the forms found in corpora."""
    utc = moment
    seconds = int(utc.timestamp())
    yield from (
        utc.isoformat(),
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        utc.strftime("%Y-%m-%d %H:%M:%S"),
        utc.strftime("%Y-%m-%d"),
        utc.strftime("%Y/%m/%d"),
        utc.strftime("%Y%m%d"),
        utc.strftime("%Y%m%d%H%M%S"),
        utc.strftime("%Y%m%dT%H%M%SZ"),
        email.utils.format_datetime(utc),
        email.utils.format_datetime(utc, usegmt=True),
        email.utils.format_datetime(utc).partition(", ")[2],
        str(seconds),
        f"{seconds}.0",
        str(seconds * 1_000 + 7),
        str(seconds * 1_000_000 + 7),
    )


@given(MOMENTS)
def test_a_day_is_the_same_in_every_form(moment):
    for text in written(moment):
        assert span_of(text) == (moment.date(), moment.date()), text
        assert year_of(f" {text}\n") == str(moment.year), text


@given(MOMENTS, st.sampled_from(["%Y", "%Y-%m", "%Y%m"]))
def test_a_part_of_a_date_means_all_its_days(moment, form):
    first, last = span_of(moment.strftime(form))
    assert first <= moment.date() <= last
    assert year_of(moment.strftime(form)) == str(moment.year)


@pytest.mark.parametrize(
    "text",
    ["soon", "Mon,", "0001-01-01", "9999-12-31", "2021-13-40", "1970-01-01T00:00:00Z", "0", "12",
     "2021 was a good year for lanterns, and for all who polish them before the fair opens",
     "12 May 2020 was a good day for lanterns, and for all who polish them before the fair opens",
     "1399", "2101", "99999999", "Mon, 99 Foo 2019 10:00:00 GMT", "12345", "1234567890123456789"],
)  # fmt: skip
def test_what_is_no_date_is_unknown(text):
    assert span_of(text) is None
    assert year_of(text) == "unknown"
    assert class_of(text, "2021-01-01") == UNKNOWN


@given(st.text(max_size=30) | st.from_regex(r"[0-9 ,.:/TZ+-]{1,25}", fullmatch=True))
def test_any_text_gives_a_year_in_range_or_none(text):
    year = year_of(text)
    assert year in ("", "unknown") or FIRST_YEAR <= int(year) <= LAST_YEAR


def test_seconds_are_no_year_of_the_sixteenth_century():
    """1583020800 is the first of March 2020: younger than a benchmark of 2019, not 1583."""
    assert year_of("1583020800") == "2020"
    assert class_of("1583020800", "2019-06-01") == LEAK
    assert class_of("Mon, 04 Mar 2019 10:00:00 GMT", "2019-06-01") == SHARED
