"""The dates of an index are days, in whatever form its corpus writes them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contam.corpus.dates import span_of
from contam.index.build import build
from contam.index.describe import describe
from contam.index.open import Index


def dates_of(folder, dates):
    """What an index says of documents with these dates; None for a document without one."""
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "text": f"the lamp of the {n}th boat burnt all night",
            **({} if d is None else {"date": d}),
        }
        for n, d in enumerate(dates)
    ]
    shard = folder / "a.jsonl"
    shard.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    build(shard, folder / "ix", overwrite=True)
    facts = describe(Index.open(folder / "ix"))
    return facts["dates"], facts["n_unreadable_dates"]


@pytest.mark.parametrize(
    ("dates", "found", "n_unreadable"),
    [
        (["Mon, 03 Jan 2022 10:00:00 GMT", "Fri, 05 Jun 2015 10:00:00 GMT"],
         ["2015-06-05", "2022-01-03"], 0),
        (["2021", "2019-11", "Tue, 4 Feb 2020 00:00:00 +0000"], ["2019-11-01", "2021-12-31"], 0),
        (["1577836800", "2018-05-06T07:08:09Z", "2018-05-06T10:00:00Z"],
         ["2018-05-06", "2020-01-01"], 0),
        (["yesterday", "2020-02-03 04:05:06", "yesterday", "n/a", "", None],
         ["2020-02-03", "2020-02-03"], 3),
        (["soon", "2020-13-45T00:00:00"], None, 2),
        ([None, ""], None, 0),
    ],
)  # fmt: skip
def test_first_and_last_day_are_of_dates_and_not_of_texts(tmp_path, dates, found, n_unreadable):
    assert dates_of(tmp_path / "c", dates) == (found, n_unreadable)


TEXTS = st.one_of(
    st.datetimes().map(str),
    st.datetimes().map(lambda one: one.isoformat() + "Z"),
    st.dates().map(str),
    st.dates().map(lambda one: one.strftime("%a, %d %b %Y 01:02:03 GMT")),
    st.text("0123456789-T :Z", max_size=12),
    st.none(),
)


@given(dates=st.lists(TEXTS, min_size=1, max_size=12))
@settings(deadline=None, max_examples=15)
def test_each_date_counts_as_the_parser_reads_it(tmp_path_factory, dates):
    spans = [span for date in dates if (span := span_of(date))]
    n_unreadable = sum(1 for date in dates if (date or "").strip() and not span_of(date))
    ends = [str(min(a for a, _ in spans)), str(max(b for _, b in spans))] if spans else None
    assert dates_of(tmp_path_factory.mktemp("dates") / "c", dates) == (ends, n_unreadable)
