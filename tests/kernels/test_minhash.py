"""MinHash signatures and the sketches of windows, against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import windows
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD
from tests.kernels.support import FEW, U64, u64s
from tests.twins import minhash as twin

BASE, SPREAD = int(GRAM_BASE), int(GRAM_SPREAD)
GUARD = 7

u32 = st.sampled_from((0, 1, 2**31, 2**32 - 1)) | st.integers(0, 2**32 - 1)
tokens = st.lists(U64 | FEW, max_size=30)
documents = st.lists(tokens, max_size=5)


permutations = st.lists(st.tuples(u32, u32), min_size=1, max_size=9)


def arrays(perms: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return u64s([a for a, _ in perms]), u64s([b for _, b in perms])


def flat(documents: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    return u64s([token for document in documents for token in document]), starts


@given(documents, st.integers(1, 3), st.integers(1, 12), permutations)
def test_windows_are_entered_under_their_smallest_shingles(texts, n, window, perms):
    token, starts = flat(texts)
    room = len(perms) * (len(token) + 1) + 1
    out = np.full(room + 1, GUARD, np.uint64)
    scratch = np.empty(30, np.uint32), np.empty(30, np.uint32)
    count, number = windows.enter_windows(token, starts, (n, window), *arrays(perms), *scratch, out)
    values = [twin.shingles(t, n, BASE, SPREAD) for t in texts]
    want, want_number = twin.entries(values, window, perms)
    assert number == want_number
    assert [divmod(int(one), 2**32) for one in out[:count]] == want


#: Few buckets and few shingles within them, so that ranges are long and neighbours close.
shingle = st.sampled_from((0, 15, 16, 17, 65535, 65536, 2**32 - 1)) | u32


def packed(matches: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    entries = np.sort(u64s([key << 32 | window for key, window in matches]))
    starts = np.zeros(windows.BUCKETS + 1, np.int64)
    rows = np.zeros((len(entries), windows.ENTRY_BYTES), np.uint8)
    windows.pack_entries(entries, starts, rows)
    return starts, rows


@given(st.lists(st.tuples(shingle, st.integers(0, 2**28 - 1)), max_size=20), st.lists(shingle))
def test_what_was_entered_is_found_and_nothing_else(matches, more):
    starts, rows = packed(matches)
    keys = [key for key, _ in matches] + more
    first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    windows.find_shingles(np.array(keys, np.uint32), starts, rows, first, stop)
    for key, lo, hi in zip(keys, first.tolist(), stop.tolist(), strict=True):
        values = [windows.value_at(rows, row) for row in range(lo, hi)]
        assert {value >> 28 for value in values} <= {(key >> 4) & 0xFFF}
        want = sorted(window for other, window in matches if other >> 4 == key >> 4)
        assert sorted(value & (2**28 - 1) for value in values) == want


@given(
    st.lists(st.tuples(shingle, st.integers(0, 9)), max_size=30),
    st.integers(1, 4),
    st.sets(shingle.map(lambda key: key & ~15)),
)
def test_entries_of_frequent_and_unwanted_shingles_are_dropped(matches, most, unwanted):
    entries = np.sort(np.array([key << 32 | window for key, window in matches], np.uint64))
    over = np.empty(len(matches) // (most + 1) + 1, np.uint32)
    given_ = np.array(sorted(unwanted), np.uint32)
    kept, n_over = windows.drop_frequent(entries, most, given_, over)
    per_key = Counter(key >> 4 << 4 for key, _ in matches)
    often = sorted(key for key, count in per_key.items() if count > most)
    assert over[:n_over].tolist() == often
    want = [
        key << 32 | window for key, window in matches if key >> 4 << 4 not in {*often, *unwanted}
    ]
    assert [int(entry) for entry in entries[:kept]] == sorted(want)


@st.composite
def worlds(draw):
    """Documents with their windows, shingles with the windows they stand in, items of shingles."""
    n_windows = draw(st.lists(st.integers(0, 6), min_size=1, max_size=5))
    total = sum(n_windows)
    keys = [key << 4 for key in range(6)]
    where = {
        key: draw(st.lists(st.integers(0, total - 1), unique=True, max_size=8)) if total else []
        for key in keys
    }
    weight = {key: draw(st.integers(0, 5)) for key in keys}
    items = draw(st.lists(st.lists(st.sampled_from(keys), unique=True), max_size=4))
    spans = [draw(st.integers(1, 4)) for _ in items]
    return np.cumsum([0, *n_windows]).tolist(), where, weight, items, spans


@given(worlds(), st.integers(1, 14))
def test_documents_are_proposed_that_share_enough_in_one_place(world, least):
    window_start, where, weight, items, spans = world
    starts, rows = packed([(key, window) for key, some in where.items() for window in some])
    keys = sorted(where)
    first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    windows.find_shingles(np.array(keys, np.uint32), starts, rows, first, stop)
    found, used = windows.propose_documents(
        np.cumsum([0, *map(len, items)]).astype(np.int64),
        np.array([keys.index(key) for item in items for key in item], np.int64),
        np.array(spans, np.int64),
        np.array([weight[key] for key in keys], np.int64),
        least,
        rows,
        first,
        stop,
        np.array(window_start, np.int64),
    )
    want = twin.proposals(items, spans, weight, least, where, window_start)
    assert [tuple(row) for row in found[:used].tolist()] == want


@given(worlds(), st.lists(st.booleans(), min_size=5, max_size=5))
def test_only_windows_of_living_documents_are_counted(world, retired):
    window_start, where, *_ = world
    starts, rows = packed([(key, window) for key, some in where.items() for window in some])
    keys = sorted(where)
    first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    windows.find_shingles(np.array(keys, np.uint32), starts, rows, first, stop)
    dead = np.array(retired[: len(window_start) - 1])
    count = np.zeros(len(keys), np.int64)
    windows.count_live(rows, first, stop, np.array(window_start, np.int64), dead, count)
    living = [
        window
        for document, gone in enumerate(dead.tolist())
        for window in range(window_start[document], window_start[document + 1])
        if not gone
    ]
    assert count.tolist() == [len(set(living) & set(where[key])) for key in keys]


def test_more_hits_than_the_first_buffers_hold_are_all_proposed():
    n = 3000
    token = u64s(list(range(1, 9)) * n)
    starts = np.arange(0, 8 * n + 1, 8)
    a, b = arrays([(3, 1), (5, 2), (7, 3)])
    out = np.empty(3 * n + 1, np.uint64)
    scratch = np.empty(8, np.uint32), np.empty(8, np.uint32)
    count, number = windows.enter_windows(token, starts, (1, 8), a, b, *scratch, out)
    matches = [divmod(int(one), 2**32) for one in out[:count]]
    starts_, rows = packed(matches)
    keys = sorted({key for key, _ in matches})
    first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    windows.find_shingles(np.array(keys, np.uint32), starts_, rows, first, stop)
    ones = np.ones(len(keys), np.int64)
    _, used = windows.propose_documents(
        np.array([0, len(keys)]),
        np.arange(len(keys)),
        ones,
        ones,
        len(keys),
        rows,
        first,
        stop,
        np.arange(number + 1),
    )
    assert used == n
