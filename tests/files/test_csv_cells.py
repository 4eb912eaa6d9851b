"""Whoever reads large cells keeps the limit up for the others, and the last one puts it back."""

from __future__ import annotations

import csv
from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st

from contam.files.csv_cells import large_cells

ASKED = st.lists(st.sampled_from([1000, 200_000, 200_000, 10**8]), min_size=1, max_size=6)


@given(ASKED, st.randoms(use_true_random=False))
def test_readers_may_come_and_go_in_any_order(asked, random):
    before = csv.field_size_limit()
    inside = []
    for n_chars in asked:
        stack = ExitStack()
        stack.enter_context(large_cells(n_chars))
        inside.append((n_chars, stack))
        assert csv.field_size_limit() == max(before, *(n for n, _ in inside), 0)
    random.shuffle(inside)
    while inside:
        inside.pop()[1].close()
        assert csv.field_size_limit() == max([before, *(n for n, _ in inside)])
    assert csv.field_size_limit() == before
