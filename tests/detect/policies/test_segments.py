"""Sums over parts: each from its own tokens alone."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.detect.policies.segments import part_sums

tokens = st.lists(st.floats(0, 1, width=32), max_size=7)


@given(tokens, st.lists(tokens, max_size=8), tokens)
@example([], [], [])
@example([], [[], [0.5], []], [0.25])
def test_a_part_is_summed_alone_wherever_it_stands(before, parts, after):
    flat = np.array([*before, *(one for part in parts for one in part), *after], np.float32)
    length = np.array([len(part) for part in parts], np.int32)
    start = len(before) + np.cumsum(length) - length
    found = part_sums(flat, start.astype(np.int64), length, np.float64)
    want = [
        part_sums(np.array(p, np.float32), np.zeros(1, np.int64), np.array([len(p)]), np.float64)[0]
        for p in parts
    ]
    assert found.tolist() == want
    assert np.allclose(found, [sum(part) for part in parts])


def test_truths_are_counted_in_the_shape_asked_for():
    truths = np.array([True, False, True, True])
    start, length = np.array([[0, 2], [2, 3]]), np.array([[2, 0], [1, 1]], np.int32)
    found = part_sums(truths, start, length, np.int32)
    assert found.dtype == np.int32
    assert found.tolist() == [[1, 0], [1, 1]]
