"""Questions whose numbers are others in the document, against lists of words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import constants, match_facts
from contam.kernels import match_rows as columns
from contam.text.token_kinds import number_hashes
from contam.text.tokenizer import tokenize_bytes
from tests.twins import numbers as twin

WORD = st.sampled_from(
    ("lantern", "copper", "b2", "2nd", "7", "46", "672", "2026", "007", "123456")
)
QUESTION = st.lists(WORD, min_size=1, max_size=12)


@st.composite
def matched(draw):
    """Items' questions, and the stretches of each that a document holds."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        words = draw(QUESTION)
        pieces = []
        for _ in range(draw(st.integers(0, 3))):
            begin = draw(st.integers(0, len(words) - 1))
            pieces.append((begin, draw(st.integers(1, len(words) - begin))))
        found.append((words, pieces))
    return found


@given(matched())
def test_the_share_of_a_renumbered_question(world):
    tokens = [tokenize_bytes(" ".join(words).encode()).hashes for words, _ in world]
    lengths = np.zeros((len(world), 4), np.int64)
    lengths[:, columns.QUESTION] = [len(token) for token in tokens]
    starts = np.concatenate([[0], np.cumsum(lengths.reshape(-1))])
    table = np.zeros((len(world), columns.MATCH_COLUMNS), np.int32)
    table[:, columns.MATCH_ITEM] = np.arange(len(world))
    rows = [(pair, *piece) for pair, (_, pieces) in enumerate(world) for piece in pieces]
    flat = np.zeros((len(rows), columns.PIECE_COLUMNS), np.int32)
    flat[:, columns.PIECE_PART] = columns.QUESTION
    for at, (pair, begin, length) in enumerate(rows):
        flat[at, columns.PIECE_MATCH] = pair
        flat[at, columns.PIECE_ITEM] = begin
        flat[at, columns.PIECE_LENGTH] = length
    used = np.array([len(world), len(rows)], np.int64)
    reals = np.zeros((len(world), columns.REAL_COLUMNS), np.float32)
    given_rows = columns.MatchRows(table, reals, flat, used)
    found = match_facts.renumbered_shares(
        given_rows,
        match_facts.first_pieces(given_rows),
        starts,
        np.packbits(
            np.isin(np.concatenate(tokens), number_hashes(" ".join(words) for words, _ in world)),
            bitorder="little",
        ),
    )
    wanted = []
    for words, pieces in world:
        held = {at for begin, length in pieces for at in range(begin, begin + length)}
        wanted.append(twin.renumbered(words, held, constants.LEAST_NUMBERS))
    assert found.tolist() == pytest.approx(wanted)


def test_what_is_a_number():
    known = set(
        number_hashes(["46 of 007 and 1,234,567.89 on the 2nd of b2", "2003\u5e743\u6708"]).tolist()
    )
    tokens = tokenize_bytes("46 007 1 234 567 89 2 2nd b2 of 3 \u5e74".encode()).hashes.tolist()
    assert [token in known for token in tokens] == [True] * 6 + [
        False, True, False, False, True, False,
    ]  # fmt: skip
    assert number_hashes(["no number"]).tolist() == []
