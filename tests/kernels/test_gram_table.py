"""The table of item grams: hashing, entering, finding, counting owners, ordering places."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import gram_table
from tests.kernels.support import FEW, U64, frozen, u64s, view_of
from tests.twins import grams

BASE, SPREAD = int(gram_table.GRAM_BASE), int(gram_table.GRAM_SPREAD)
GUARD = 7

tokens = st.lists(U64 | FEW, max_size=20)


@given(tokens, st.integers(1, 8), st.data())
@example([2**64 - 1] * 12, 5, None)
def test_rolling_gram_hashes_are_the_hashes_of_the_grams(values, n, more):
    lo = more.draw(st.integers(0, len(values))) if more else 0
    hi = more.draw(st.integers(lo, len(values))) if more else len(values)
    out = np.full(len(values) + 1, GUARD, np.uint64)
    count = gram_table.hash_grams(u64s(values), lo, hi, n, out)
    assert out[:count].tolist() == grams.gram_hashes(values[lo:hi], n, BASE, SPREAD)
    assert (out[count:] == GUARD).all()


@given(st.lists(tokens, max_size=6), st.integers(2, 6), st.integers(1, 4))
@example([], 5, 1)
@example([[], [1] * 5, [], [2**63] * 6], 5, 1)
def test_grams_of_parts_never_reach_into_the_next_part(parts, n, stride):
    flat = u64s([token for part in parts for token in part])
    starts = np.cumsum([0, *map(len, parts)])
    found = gram_table.item_grams(flat, starts, n, stride, (0, 1))
    assert list(zip(*(one.tolist() for one in found), strict=True)) == grams.part_grams(
        parts, n, BASE, SPREAD, stride
    )


@given(st.lists(tokens, max_size=6), st.integers(2, 4), st.integers(1, 5))
def test_each_gram_is_in_one_share_and_equal_ones_in_the_same(parts, n, shares):
    flat = u64s([token for part in parts for token in part])
    starts = np.cumsum([0, *map(len, parts)])
    told = []
    share_of: dict[int, int] = {}
    for number in range(shares):
        hashes, where, part_of = gram_table.item_grams(flat, starts, n, 1, (number, shares))
        assert (np.diff(where) > 0).all()
        for key in hashes.tolist():
            assert share_of.setdefault(key, number) == number
        told += zip(where.tolist(), part_of.tolist(), hashes.tolist(), strict=True)
    real = grams.part_grams(parts, n, BASE, SPREAD)
    assert sorted(told) == [(at, part, key) for key, at, part in real]


def token_with(key: int) -> int:
    """The token whose gram of one has this hash."""
    return (key ^ (key >> 32)) * pow(SPREAD, -1, 2**64) % 2**64


def look_up(keys: list[int], asked: list[int], slots: int, words: int) -> list[tuple[int, int]]:
    """(index of the asked gram, number of the gram) of every asked gram that was entered."""
    # A gram has one place or several.
    places = [1 + number % 3 for number in range(len(keys))]
    token = u64s([token_with(key) for key, n in zip(keys, places, strict=True) for _ in range(n)])
    place = np.arange(len(token), dtype=np.int32)
    begins = np.cumsum([0, *places])
    place[begins[1:] - 1] = -1 - place[begins[1:] - 1]
    slot_tag, slot_place = np.zeros(slots, np.uint8), np.zeros(slots, np.int32)
    filter_words = np.zeros(words, np.uint64)
    gram_table.fill_table(token, 1, place, slot_tag, slot_place, filter_words)
    front_words = np.bitwise_or.reduce(filter_words.reshape(2 if words > 1 else 1, -1), axis=0)
    for array in (token, place, slot_tag, slot_place, filter_words, front_words):
        array.setflags(write=False)
    arrays = view_of([]).gram_table._replace(
        token=token,
        place=place,
        slot_tag=slot_tag,
        slot_place=slot_place,
        filter_words=filter_words,
        front_words=front_words,
    )
    at, gram = np.full(len(asked) + 1, GUARD, np.int32), np.full(len(asked) + 1, GUARD, np.int32)
    # The caller's buffer is writable, unlike what the plan holds.
    n = 0
    for first, some in ((0, asked[:3]), (3, asked[3:])):
        grams_here = np.array(some, np.uint64)
        n = gram_table.find_hits(grams_here, len(some), 1, arrays, at, gram, (first, n))
    assert at[-1] == gram[-1] == GUARD or n > len(asked)
    return list(zip(at[:n].tolist(), np.searchsorted(begins, gram[:n]).tolist(), strict=True))


# Equal high bits collide in the table, equal low ones have the same tag, equal middle ones collide
# in the filter.
keys = st.one_of(
    U64,
    st.integers(0, 7).map(lambda k: (k << 60) | 3),
    st.integers(0, 5),
    st.integers(0, 7).map(lambda k: (2**32 - 1) << 32 | k << 8),
)


@given(
    st.lists(keys, unique=True, max_size=12), st.lists(keys, max_size=12), st.sampled_from((1, 4))
)
@example([], [0, 2**64 - 1], 1)
@example([0], [0, 0, 1], 1)
def test_every_entered_gram_is_found_and_no_other(entered, others, words):
    asked = [one for pair in zip(entered, entered[::-1], strict=True) for one in pair] + others
    number = {key: n for n, key in enumerate(entered)}
    want = [(i, number[key]) for i, key in enumerate(asked) if key in number]
    assert look_up(entered, asked, 32, words) == want


@st.composite
def gram_places(draw) -> tuple[list[list[int]], list[int]]:
    """For each gram the parts of its places, ascending; and the benchmark of each item."""
    n_items = draw(st.integers(1, 5))
    benchmark = draw(st.lists(st.integers(0, 2), min_size=n_items, max_size=n_items))
    parts = st.lists(st.integers(0, 4 * n_items - 1), min_size=1, max_size=8).map(sorted)
    return draw(st.lists(parts, max_size=6)), benchmark


@given(gram_places())
@example(([], []))
def test_owners_are_items_not_places(world):
    parts_of_grams, benchmark = world
    flat = [part for parts in parts_of_grams for part in parts]
    per_place = np.full(len(flat), -1, np.int32)
    gram_start = np.cumsum([0, *map(len, parts_of_grams)])
    places, benchmarks = np.array(flat, np.int32), frozen(benchmark, np.int32)
    gram_table.count_owners(gram_start, places, benchmarks, per_place)
    assert per_place.tolist() == grams.owners(parts_of_grams, benchmark)


@given(gram_places(), st.integers(0, 5), st.tuples(st.integers(1, 6), st.integers(1, 3)))
@example(([], []), 0, (1, 1))
def test_grams_in_many_places_or_items_are_common(world, n_items, limits):
    parts_of_grams, benchmark = world
    gram_start = np.cumsum([0, *map(len, parts_of_grams)])
    places = np.array([part for parts in parts_of_grams for part in parts], np.int32)
    per_place = np.array(grams.owners(parts_of_grams, benchmark), np.int32)
    found = gram_table.find_common(gram_start, places, per_place, 4 * n_items, limits)
    assert found.tolist() == grams.common(parts_of_grams, benchmark, n_items, limits)


@given(gram_places(), st.integers(1, 12))
def test_places_in_short_parts_come_first_and_keep_their_order(world, min_run):
    parts_of_grams, benchmark = world
    lengths = [(7 * part + 3) % 16 for part in range(4 * len(benchmark))]
    flat = [part for parts in parts_of_grams for part in parts]
    place, place_part = np.arange(len(flat)) * 10, np.array(flat, np.int32)
    gram_start = np.cumsum([0, *map(len, parts_of_grams)])
    part_start = np.cumsum([0, *lengths])
    gram_table.short_places_first(gram_start, part_start, min_run, place, place_part)
    for gram, lo in enumerate(gram_start[:-1].tolist()):
        hi = lo + len(parts_of_grams[gram])
        matches = [(10 * at, flat[at]) for at in range(lo, hi)]
        ordered, _ = grams.short_first([(at, part) for at, part in matches], lengths, min_run)
        assert list(zip(place[lo:hi].tolist(), place_part[lo:hi].tolist(), strict=True)) == ordered


@given(gram_places(), st.lists(st.integers(0, 2), min_size=200, max_size=200), st.booleans())
@example(([[0] * 150], [0]), [1] * 200, True)
@example(([[0] * 400], [0]), [1] * 600, True)
def test_skips_count_the_places_that_follow_behind_the_same_token(world, values, common):
    parts_of_grams, benchmark = world
    flat = [part for parts in parts_of_grams for part in parts]
    gram_start = np.cumsum([0, *map(len, parts_of_grams)])
    size = len(values) // (4 * len(benchmark))
    part_start = np.arange(4 * len(benchmark) + 1) * size
    place = np.array([part * size + at % size for at, part in enumerate(flat)], np.int64)
    told = gram_table.note_skips(
        u64s(values), part_start, (gram_start, np.full(len(parts_of_grams), common)), place,
        np.array(flat, np.int32),
    )  # fmt: skip
    before = [None if at % size == 0 else values[at - 1] for at in place.tolist()]
    expected = []
    for lo, hi in pairwise(gram_start.tolist()):
        expected += grams.skips(before[lo:hi], 255) if common else [1] * (hi - lo)
    assert told.tolist() == expected
