"""Stretches of an answer that say enough by themselves, against lists of words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect.match.grams import make_table
from contam.kernels import constants, match_facts
from contam.kernels import match_rows as columns
from contam.kernels.match_rows import ViewSpec
from contam.kernels.tokens import CHARS, WORDS
from contam.text.tokenizer import tokenize_bytes
from tests.twins import answers as twin

#: Sixteenths: their sums are exact.
WEIGHTS = {"lantern": 1.0, "copper": 1.0, "kettle": 0.5, "the": 0.25, "of": 0.125, "x": 0.0625}
MIN_RUN = 8


@st.composite
def matched(draw):
    """Answers, the stretches of each that a document holds, and those of the items' other parts."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        period = draw(st.lists(st.sampled_from(sorted(WEIGHTS)), min_size=1, max_size=40))
        words = (period * draw(st.integers(1, 3)))[:90]
        pieces = []
        for _ in range(draw(st.integers(0, 3))):
            begin = draw(st.integers(0, len(words) - 1))
            length = draw(st.integers(1, len(words) - begin))
            pieces.append((begin, draw(st.integers(0, 60)), length))
        others = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=3))
        found.append((words, pieces, others))
    return found


@pytest.mark.parametrize("unit", [WORDS, CHARS])
@given(world=matched())
def test_the_longest_stretch_that_says_enough(unit, world):
    tokens = [tokenize_bytes(" ".join(words).encode()).hashes for words, _, _ in world]
    lengths = np.zeros((len(world), 4), np.int64)
    lengths[:, columns.ANSWER] = [len(token) for token in tokens]
    starts = np.concatenate([[0], np.cumsum(lengths.reshape(-1))])
    flat_words = [word for words, _, _ in world for word in words]
    table = make_table(
        np.concatenate(tokens),
        starts,
        np.ones(len(flat_words), np.float32),
        np.zeros(len(world), np.int32),
        ViewSpec(WORDS, 5, MIN_RUN),
    )._replace(weight=np.array([WEIGHTS[word] for word in flat_words], np.float32))
    rows = np.zeros((len(world), columns.MATCH_COLUMNS), np.int32)
    rows[:, columns.MATCH_ITEM] = np.arange(len(world))
    flat = []
    for at, (_, pieces, others) in enumerate(world):
        flat += [(at, columns.ANSWER, 0, *piece) for piece in pieces]
        flat += [(at, columns.PASSAGE, 0, 0, *other) for other in others]
    used = np.array([len(world), len(flat)], np.int64)
    reals = np.zeros((len(world), columns.REAL_COLUMNS), np.float32)
    given_rows = columns.MatchRows(
        rows, reals, np.array(flat, np.int32).reshape(-1, columns.PIECE_COLUMNS), used
    )
    first_piece = match_facts.first_pieces(given_rows)
    found = match_facts.told_answers(given_rows, first_piece, unit, MIN_RUN, table)
    least = constants.ANSWER_LETTERS if unit == CHARS else constants.ANSWER_RUN
    limits = (least, MIN_RUN, constants.ANSWER_WEIGHT, constants.SEEN_WITHIN)
    assert found.tolist() == [twin.told(*one, WEIGHTS.__getitem__, limits) for one in world]
