"""What callers are told names files, and never where they lie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.server.problems.places import without_folders


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("cannot read /srv/data/part-000.parquet: gone", "cannot read part-000.parquet: gone"),
        ("'/srv/a.jsonl:3: not JSON' (/srv/b/c)", "'a.jsonl:3: not JSON' (c)"),
        ("s3://bucket/deep/key, /x/y; path=/a/b", "s3:key, y; path=b"),
        ("the split test/validation and/or 3/4 of brook/001", "the split test/validation and/or 3/4 of brook/001"),
        ("letters in folders, not beginning with a dot: a/b", "letters in folders, not beginning with a dot: a/b"),
        ("send rows as POST /v1/check gave them", "send rows as POST /v1/check gave them"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_path_is_cut_to_its_last_name_and_other_words_stay(said, told):
    assert without_folders(said) == told


name = st.text(st.characters(categories=["L", "N"], include_characters="._-"), min_size=1)


@given(st.lists(name, min_size=2, max_size=6), st.sampled_from(["", "at ", "'", "(", "x="]))
def test_no_folder_of_a_path_is_left(steps, before):
    assert (
        without_folders(f"{before}/{'/'.join(steps)}: it is gone")
        == f"{before}{steps[-1]}: it is gone"
    )
