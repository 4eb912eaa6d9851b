"""What is written of one item in one document, helper by helper."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import match_rows, score_item, surroundings
from contam.kernels._jit import INTERPRETED
from contam.kernels.runs import RUN_COLUMNS
from tests.kernels.evidence_support import row_of, twin_item
from tests.kernels.support import make_item, view_of
from tests.twins import chains, evidence
from tests.twins import surroundings as around
from tests.twins.evidence import Evidence, Lengths, Piece

if TYPE_CHECKING:
    from contam.detect.match.token_view import SearchView

GUARD = -7
PIECES = st.lists(
    st.builds(
        Piece,
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(0, 9),
        st.integers(0, 30),
        st.integers(1, 9),
    ),
    max_size=8,
)
BEFORE = Piece(2, 0, 0, 0, 40)


def rows_of(
    pieces: list[Piece], steps: int = 1 << 40, text_scratch: int = 40
) -> match_rows.MatchRows:
    """One pair row behind another one's piece, with these pieces."""
    table = np.full((text_scratch, match_rows.PIECE_COLUMNS), GUARD, np.int32)
    for number, piece in enumerate([BEFORE, *pieces]):
        table[number] = (
            min(number, 1),
            piece.part,
            piece.alignment,
            piece.item,
            piece.doc,
            piece.length,
        )
    return match_rows.MatchRows(
        np.zeros((2, match_rows.MATCH_COLUMNS), np.int32),
        np.zeros((2, match_rows.REAL_COLUMNS), np.float32),
        table,
        np.array([2, 1 + len(pieces), 0, steps], np.int64),
    )


def pieces_of(rows: match_rows.MatchRows) -> list[Piece]:
    table = rows.pieces[1 : rows.used[1]].tolist()
    assert all(row[match_rows.PIECE_MATCH] == 1 for row in table)
    assert (rows.pieces[rows.used[1] :] == GUARD).all()
    return [Piece(*row[1:]) for row in table]


ENDS = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1]))


@given(PIECES, ENDS, st.integers(0, 3))
def test_claimed_tokens_are_those_in_pieces_of_other_parts(pieces, ends, besides):
    found = surroundings.claimed(*ends, 1, besides, rows_of(pieces))
    assert found == around.claimed(pieces, *ends, besides)


@given(PIECES, ENDS)
@example([Piece(0, 0, 0, 3, 4)], (3, 7))
@example([Piece(0, 0, 0, 3, 5), Piece(0, 0, 0, 2, 6)], (3, 7))
def test_the_end_is_that_of_the_first_larger_piece_of_another_part(pieces, ends):
    found = surroundings.end_of_more(*ends, 1, rows_of(pieces))
    assert found == around.end_of_more(pieces, *ends)


@given(PIECES, st.booleans(), st.sampled_from((0.2, 0.5, 0.9375, 1.0)))
def test_a_question_gives_back_what_other_parts_have(pieces, has_passage, coverage):
    rows = rows_of(pieces)
    row = Evidence(pieces=pieces)
    row.aligned[0] = rows.matches[1, match_rows.MATCH_ALIGNED] = int(has_passage)
    row.coverage[1] = chains.single(coverage)
    rows.reals[1, match_rows.REAL_COVERAGE + 1] = coverage
    surroundings.disown_question(1, rows)
    around.disown_question(row)
    assert float(rows.reals[1, match_rows.REAL_COVERAGE + 1]) == row.coverage[1]


@given(st.integers(0, 9), st.integers(0, 9))
def test_steps_are_spent_until_none_are_left(left, steps):
    rows = rows_of([], steps=left)
    assert match_rows.spend(rows, steps) == (steps <= left)
    assert rows.used.tolist() == [2, 1, 0 if steps <= left else match_rows.TOO_LONG, left - steps]


def test_rows_are_written_until_there_is_no_room():
    rows = rows_of([], text_scratch=2)
    rows.used[0] = 1
    assert match_rows.new_match(rows, 7, 9)
    assert rows.matches[1].tolist() == [7, 9, *[0] * 23]
    match_rows.add_piece(rows, (1, 3), -1, 4, 5, 6)
    assert rows.pieces[1].tolist() == [1, 3, -1, 4, 5, 6]
    assert rows.used[:3].tolist() == [2, 2, 0]
    match_rows.add_piece(rows, (1, 3), -1, 4, 5, 6)
    assert rows.used[:3].tolist() == [2, 2, match_rows.FEW_PIECES]
    assert not match_rows.new_match(rows, 7, 9)
    assert rows.used[:3].tolist() == [2, 2, match_rows.FEW_PIECES | match_rows.FEW_MATCHES]


# ------------------------------------------------------------------------- runs of an item

ITEM = make_item(
    0,
    question="w1 w2 w3 red fox w4 w5 runs 7 w6 w7 w8",
    passage="the red fox runs by",
    choices=("the", "red fox runs"),
    answer="red fox runs",
)
SIZES = (5, 12, 4, 3)


@cache
def view() -> SearchView:
    return view_of([make_item(1, question="another red fox"), ITEM], seed=2, min_run=4)


@st.composite
def part_runs(draw, kind: int) -> list[chains.Run]:
    m = SIZES[kind]
    run = st.tuples(st.integers(0, m - 2), st.integers(0, 30), st.integers(2, m)).map(
        lambda run: (run[0], run[1], min(run[2], m - run[0]))
    )
    runs = draw(st.lists(run, max_size=6, unique=True))
    return sorted(runs, key=lambda run: (run[1], run[0]))


RUNS = st.tuples(*(part_runs(kind) for kind in range(4))).filter(any)


def runs_of(parts: tuple[list[chains.Run], ...]) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """The item's runs behind one of another item, last things first but for their order."""
    rows = [(4 + kind, *run) for kind, runs in enumerate(parts) for run in runs]
    table = np.array([(1, 0, 0, 9), *rows], np.int32)[::-1].copy()
    assert table.shape[1] == RUN_COLUMNS
    return table, np.arange(len(table), dtype=np.int64)[::-1].copy(), (1, len(table))


@given(RUNS)
def test_the_columns_of_a_part_are_what_its_runs_alone_say(parts):
    item, lengths = twin_item(view(), 1), Lengths(2, 4)
    assert [len(part.tokens) for part in item.parts] == list(SIZES)
    table, order, (lo, _) = runs_of(parts)
    rows = rows_of([])
    row = Evidence()
    reach = np.empty((max(SIZES), 2), np.int32)
    for kind, runs in enumerate(parts):
        if not runs:
            continue
        limits = (lo, lo + len(runs))
        lo += len(runs)
        share = match_rows.weigh_part(table, order, limits, 4, view().gram_table, reach, rows)
        want = evidence.weigh(row, kind, item.parts[kind], runs, lengths)
        assert share == (pytest.approx(want, abs=1e-6) if INTERPRETED else want)
    columns, _ = row_of(rows, 1)
    for name in ("longest", "covered", "n_runs", "exact"):
        assert columns[name] == getattr(row, name)


@given(RUNS, st.sampled_from((2, 4, 9)))
def test_an_item_is_promising_with_a_long_run_or_with_runs_that_weigh_something(parts, min_run):
    table, order, limits = runs_of(parts)
    gram_table = view().gram_table
    weights = (gram_table.part_start, gram_table.weight, gram_table.part_weight)
    found = score_item.is_promising(table, order, limits, min_run, weights)
    assert found == evidence.is_promising(twin_item(view(), 1), parts, min_run)


@given(RUNS, PIECES, st.sampled_from((2, 4, 9)))
def test_runs_that_no_block_holds_are_reported_one_by_one(parts, pieces, min_run):
    table, order, (lo, _) = runs_of(parts)
    rows, row = rows_of([]), Evidence()
    for kind, runs in enumerate(parts):
        limits = (lo, lo + len(runs))
        lo += len(runs)
        # What was aligned of the part, among it all of a run at times.
        mine = [Piece(kind, p.alignment, p.item, p.doc, p.length) for p in pieces]
        mine += [Piece(kind, 1, *run) for run in runs[:1]]
        first = int(rows.used[1])
        for piece in mine:
            where = (piece.alignment, piece.item, piece.doc, piece.length)
            match_rows.add_piece(rows, (1, kind), *where)
        row.pieces += mine
        m = SIZES[kind]
        score_item.add_loose_runs(table, order, limits, min_run, m, first, rows)
        evidence.add_loose_runs(row, kind, runs, m, Lengths(2, min_run))
    assert rows.used[2] == (match_rows.FEW_PIECES if len(row.pieces) >= len(rows.pieces) else 0)
    assert pieces_of(rows) == row.pieces[: len(rows.pieces) - 1]
