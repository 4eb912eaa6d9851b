"""Whose text it is, against sets of document tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import constants, rivals
from contam.kernels import pairs as columns
from tests.twins import rivals as twin

BENCHMARK = [0, 0, 1, 0, 0]
COVERAGES = st.sampled_from((0.0, 0.25, 0.5, 0.875, 0.96875, 0.984375, 1.0))


def pieces():
    one = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 30), st.integers(1, 12))
    # A kernel writes a part's pieces together, alignment by alignment.
    return st.lists(one, max_size=6).map(lambda some: tuple(twin.Piece(*p) for p in sorted(some)))


PAIRS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 4), COVERAGES, st.booleans(), pieces()),
    unique_by=lambda row: row[:2],
    max_size=8,
).map(lambda rows: [twin.Pair(*row) for row in sorted(rows, key=lambda row: row[:2])])


def rows_of(pairs: list[twin.Pair]) -> columns.Rows:
    """The pairs as the kernels write them."""
    n_pieces = sum(len(pair.pieces) for pair in pairs)
    table = np.zeros((len(pairs), columns.PAIR_COLUMNS), np.int32)
    reals = np.zeros((len(pairs), columns.REAL_COLUMNS), np.float32)
    flat = np.zeros((n_pieces, columns.PIECE_COLUMNS), np.int32)
    at = 0
    for number, pair in enumerate(pairs):
        table[number, columns.PAIR_DOC] = pair.document
        table[number, columns.PAIR_ITEM] = pair.item
        table[number, columns.PAIR_EXACT + columns.QUESTION] = pair.exact
        reals[number, columns.REAL_COVERAGE + columns.QUESTION] = pair.coverage
        for piece in pair.pieces:
            flat[at, columns.PIECE_PAIR] = number
            flat[at, columns.PIECE_PART] = piece.part
            flat[at, columns.PIECE_ALIGNMENT] = piece.alignment
            flat[at, columns.PIECE_DOC] = piece.start
            flat[at, columns.PIECE_LENGTH] = piece.length
            at += 1
    return columns.Rows(table, reals, flat, np.array([len(pairs), n_pieces], np.int64))


@given(PAIRS)
def test_a_rival_holds_most_of_the_text_and_stands_there_whole(pairs):
    rows = rows_of(pairs)
    found = rivals.find_rivals(rows, rivals.first_pieces(rows), np.array(BENCHMARK, np.int32))
    limits = (constants.RIVAL_WHOLE, constants.RIVAL_SHARE, constants.RIVAL_LEAD)
    assert found.tolist() == [twin.rival(pair, pairs, BENCHMARK, *limits) for pair in pairs]


@given(PAIRS)
def test_what_is_scattered_has_other_text_between(pairs):
    rows = rows_of(pairs)
    found = rivals.scattered_shares(rows, rivals.first_pieces(rows))
    assert found.tolist() == pytest.approx([twin.scattered(pair) for pair in pairs])


@pytest.mark.parametrize("n", [0, 1])
def test_a_document_with_one_item_has_no_rivals(n):
    rows = rows_of([twin.Pair(0, 0, 0.5, False, (twin.Piece(1, 0, 0, 9),))] * n)
    found = rivals.find_rivals(rows, rivals.first_pieces(rows), np.array(BENCHMARK, np.int32))
    assert found.tolist() == [-1] * n
