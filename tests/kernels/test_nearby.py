"""What stands beside a question: its answer, and pieces of other parts."""

from dataclasses import astuple

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import constants, match_rows, score_item
from tests.kernels.support import FEW, U64, U64_EDGES, u64s
from tests.twins import nearby as twin
from tests.twins import surroundings as around
from tests.twins.evidence import Piece

LETTER = 2**63 + 77
NUMBER = 2**63 + 78
ANNOUNCING = sorted((2**62, 2**63 + 99))
words = st.lists(FEW | st.sampled_from((LETTER, NUMBER, *ANNOUNCING)), max_size=16)


@given(words, words.map(lambda w: w[:4]), st.data())
def test_tokens_are_found_where_they_first_stand_whole(doc, wanted, more):
    lo = more.draw(st.integers(0, len(doc)))
    hi = more.draw(st.integers(lo, len(doc)))
    token = u64s([5, *wanted, 5])
    at = score_item.find_tokens(np.array(doc, np.uint64), lo, hi, token, 1, len(wanted))
    assert at == min(twin.places(doc, wanted, lo, hi), default=-1)


@given(st.lists(U64, unique=True, max_size=8).map(sorted), U64)
def test_a_key_is_known_when_it_is_in_the_list(keys, key):
    array = u64s(keys)
    for asked in (key, *keys, *U64_EDGES):
        assert score_item.is_known(array, np.uint64(asked)) == (asked in keys)


@given(words, words.map(lambda w: w[:4]), st.booleans(), st.booleans(), st.data())
def test_an_answer_is_found_when_one_stands_near_enough(doc, answer, has_letter, listed, more):
    lo = more.draw(st.integers(0, len(doc)))
    hi = more.draw(st.integers(lo, len(doc)))
    marks = (LETTER, NUMBER) if has_letter else (0, 0)
    at, n = score_item.answer_position(
        np.array(doc, np.uint64),
        (lo, hi, listed),
        (u64s([5, *answer, 5]), 1, len(answer)),
        (np.uint64(marks[0]), np.uint64(marks[1])),
        u64s(ANNOUNCING),
    )
    sure = len(answer) + 1 if listed else constants.SURE_ANSWER
    announcing = set(ANNOUNCING)
    near = twin.answer_places(doc, answer, marks, announcing, (lo, hi, sure), constants.CLOSE)
    assert (at, n) in near if near else (at, n) == (-1, 0)


PIECES = st.lists(
    st.builds(
        Piece, st.integers(0, 3), st.just(0), st.just(0), st.integers(0, 30), st.integers(1, 9)
    ),
    max_size=8,
)
ENDS = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1]))


@given(PIECES, ENDS)
@example([Piece(0, 0, 0, 3, 4)], (3, 7))
@example([Piece(0, 0, 0, 3, 5), Piece(0, 0, 0, 2, 6)], (3, 7))
def test_the_end_is_that_of_the_first_larger_piece_of_another_part(pieces, ends):
    table = np.array([(1, *astuple(piece)) for piece in [Piece(2, 0, 0, 0, 40), *pieces]], np.int32)
    rows = match_rows.MatchRows(
        np.zeros((2, match_rows.MATCH_COLUMNS), np.int32),
        np.zeros((2, match_rows.REAL_COLUMNS), np.float32),
        table,
        np.array([2, len(table), 0, 1], np.int64),
    )
    assert score_item.end_of_more(*ends, 1, rows) == around.end_of_more(pieces, *ends)
