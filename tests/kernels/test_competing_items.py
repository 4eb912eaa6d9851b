"""Whose text it is, against sets of document tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import constants, match_facts
from contam.kernels import match_rows as columns
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


def rows_of(matches: list[twin.Pair]) -> columns.MatchRows:
    """The pairs as the kernels write them."""
    n_pieces = sum(len(pair.pieces) for pair in matches)
    table = np.zeros((len(matches), columns.MATCH_COLUMNS), np.int32)
    reals = np.zeros((len(matches), columns.REAL_COLUMNS), np.float32)
    flat = np.zeros((n_pieces, columns.PIECE_COLUMNS), np.int32)
    at = 0
    for number, pair in enumerate(matches):
        table[number, columns.MATCH_DOC] = pair.document
        table[number, columns.MATCH_ITEM] = pair.item
        table[number, columns.MATCH_EXACT + columns.QUESTION] = pair.exact
        reals[number, columns.REAL_COVERAGE + columns.QUESTION] = pair.coverage
        for piece in pair.pieces:
            flat[at, columns.PIECE_MATCH] = number
            flat[at, columns.PIECE_PART] = piece.part
            flat[at, columns.PIECE_ALIGNMENT] = piece.alignment
            flat[at, columns.PIECE_DOC] = piece.start
            flat[at, columns.PIECE_LENGTH] = piece.length
            at += 1
    return columns.MatchRows(table, reals, flat, np.array([len(matches), n_pieces], np.int64))


@given(PAIRS)
def test_a_rival_holds_most_of_the_text_and_stands_there_whole(matches):
    rows = rows_of(matches)
    found = match_facts.find_competing_items(
        rows, match_facts.first_pieces(rows), np.array(BENCHMARK, np.int32)
    )
    limits = (constants.RIVAL_WHOLE, constants.RIVAL_SHARE, constants.RIVAL_LEAD)
    assert found.tolist() == [
        twin.competing_item(pair, matches, BENCHMARK, *limits) for pair in matches
    ]


@given(PAIRS)
def test_what_is_scattered_has_other_text_between(matches):
    rows = rows_of(matches)
    found = match_facts.scattered_shares(rows, match_facts.first_pieces(rows))
    assert found.tolist() == pytest.approx([twin.scattered(pair) for pair in matches])


@pytest.mark.parametrize("n", [0, 1])
def test_a_document_with_one_item_has_no_rivals(n):
    rows = rows_of([twin.Pair(0, 0, 0.5, False, (twin.Piece(1, 0, 0, 9),))] * n)
    found = match_facts.find_competing_items(
        rows, match_facts.first_pieces(rows), np.array(BENCHMARK, np.int32)
    )
    assert found.tolist() == [-1] * n
