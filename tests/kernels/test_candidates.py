"""Grams of documents -> documents worth reading: runs, hits and weights beside brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.index.writing.write import make_table
from contam.kernels import candidates
from contam.kernels.pairs import DOCUMENT_BITS, find_heads, find_keys, find_lists
from tests.kernels.support import frozen, u64s
from tests.twins import candidates as twin

N_GRAMS = 6


def lists_of(documents: list[set[int]]) -> candidates.Lists:
    """The documents of each gram, as a segment has them."""
    words = [gram << DOCUMENT_BITS | n for n, held in enumerate(documents) for gram in held]
    table = make_table(np.array(words, np.uint64), 36, len(documents), len(documents))
    keys = u64s(range(N_GRAMS))
    first, stop = np.empty(N_GRAMS, np.int64), np.empty(N_GRAMS, np.int64)
    rest, width = table["sizes"].tolist()[2:]
    find_heads(table["heads"], table["head_marks"], keys, rest, first, stop)
    find_keys(table["rests"], keys, rest, first, stop)
    find_lists(table["ends"], table["end_marks"], first.copy(), first, stop)
    return candidates.Lists(first, stop, table["documents"], width)


def states(n: int, shut: set[int]) -> np.ndarray:
    state = np.zeros(n, np.uint8)
    state[sorted(shut)] = candidates.SHUT
    return state


held = st.lists(st.sets(st.integers(0, N_GRAMS - 1), max_size=5), min_size=1, max_size=6)
shuts = st.sets(st.integers(0, 0), max_size=1)
windows = st.lists(
    st.lists(st.integers(-1, N_GRAMS - 1), min_size=3, max_size=3).filter(lambda w: max(w) >= 0),
    max_size=5,
)


@given(windows, held, shuts)
def test_documents_that_hold_all_grams_of_a_window_open(asked, documents, shut):
    state = states(len(documents), shut)
    rows = frozen(asked, np.int32).reshape(-1, 3)
    opened = candidates.open_by_grams(rows, lists_of(documents), state).tolist()
    want = twin.opened_by_grams(asked, documents, shut)
    assert len(set(opened)) == len(opened)
    assert set(opened) == want
    assert set(np.flatnonzero(state == candidates.OPEN).tolist()) == want


def test_many_documents_need_more_room_than_is_there_at_first():
    documents = [{0, 1} if n % 2 else {0} for n in range(1000)]
    lists = lists_of(documents)
    opened = candidates.open_by_grams(frozen([[0, 1, -1]], np.int32), lists, states(1000, set()))
    assert opened.tolist() == list(range(1, 1000, 2))
    places = frozen(range(N_GRAMS + 1), np.int32), frozen(range(N_GRAMS), np.int32)
    hits = candidates.hits_of(places, frozen([True] * N_GRAMS, np.bool_), lists, states(1000, {0}))
    assert len(hits) == 999 + 500


@st.composite
def items(draw):
    """Parts of a few tokens, and the grams of two tokens that begin in them."""
    lengths = draw(st.lists(st.integers(0, 7), min_size=1, max_size=3))
    starts = np.cumsum([0, *lengths]).tolist()
    parts = [range(a, b) for a, b in pairwise(starts)]
    at = [
        draw(st.integers(0, N_GRAMS - 1)) if token + 2 <= part.stop else -1
        for part in parts
        for token in part
    ]
    # Eighths add up without rounding.
    weights = [draw(st.integers(1, 8)) / 8 for _ in at]
    return parts, at, weights


@given(items(), held, shuts, st.sets(st.integers(0, N_GRAMS - 1), max_size=1), st.data())
def test_documents_with_enough_of_a_part_are_worth_reading(item, documents, shut, capped, data):
    parts, at, weights = item
    least = data.draw(st.sampled_from((0.05, 0.3, 0.6, 1.0)))
    # Of a capped gram no document is kept.
    documents = [one - capped for one in documents]
    lists = lists_of(documents)
    places = [[token for token, gram in enumerate(at) if gram == g] for g in range(N_GRAMS)]
    flat = [token for some in places for token in some]
    counted = data.draw(st.sets(st.sampled_from(flat))) if flat else set()
    starts = frozen(np.cumsum([0, *map(len, places)]), np.int32)
    hits = np.sort(
        candidates.hits_of(
            (starts, frozen(flat, np.int32)),
            frozen([token in counted for token in flat], np.bool_),
            lists,
            states(len(documents), shut),
        )
    )
    want = twin.hits(places, counted, documents, shut)
    mask = (1 << candidates.TOKEN_BITS) - 1
    assert [(hit >> candidates.TOKEN_BITS, hit & mask) for hit in hits.tolist()] == want
    covered = [
        any(at[begin] in capped for begin in range(max(part.start, token - 1), token + 1))
        for part in parts
        for token in part
    ]
    sums = [sum(weights[token] for token in part) for part in parts]
    everywhere = [sum(weights[token] * covered[token] for token in part) for part in parts]
    enough = data.draw(st.sampled_from((1, 2, 100)))
    found = candidates.worth_reading(
        hits,
        (2, 1, enough),
        frozen([0, *(part.stop for part in parts)], np.int64),
        (frozen(weights, np.float32), frozen(sums, np.float64), frozen(everywhere, np.float64)),
        frozen(at, np.int32),
        frozen([gram in capped for gram in range(N_GRAMS)], np.bool_),
        lists,
        least,
    )
    expected = twin.worth_reading(want, (2, enough), parts, weights, at, capped, documents, least)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == sorted(expected)
