"""Entries sorted into postings, frequent grams capped, and ranges found again."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import bits, postings
from tests.kernels.support import U64, U64_EDGES, u64s
from tests.twins import index as twin

LAST = 2**16 - 1

#: Few buckets, few grams, few contexts: repeats are the rule.
few_entries = st.builds(
    lambda bucket, rest, context: (bucket << 48) | (rest << 24) | context,
    st.sampled_from((0, 1, 7, LAST - 1, LAST)),
    st.sampled_from((0, 1, 2**16, 2**24 - 1)),
    st.sampled_from((0, 1, 2**16 + 1, 2**24 - 1)),
)
entry_lists = st.lists(few_entries | U64, max_size=40)


def placed(entries: list[int], cuts: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """(starts, postings) before sorting, the entries coming in pieces."""
    counts = np.zeros(postings.BUCKETS, np.int64)
    postings.count_buckets(u64s(entries), counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    free = starts[:-1].copy()
    rows = np.full((len(entries), postings.POSTING_WORDS), 9, np.uint16)
    edges = [0, *sorted(cuts), len(entries)]
    for lo, hi in itertools.pairwise(edges):
        postings.place_entries(u64s(entries[lo:hi]), lo, free, rows)
    assert free.tolist() == starts[1:].tolist()
    return starts, rows


def made(entries: list[int]) -> tuple[np.ndarray, np.ndarray]:
    starts, rows = placed(entries)
    postings.sort_buckets(rows, starts, 0, postings.BUCKETS)
    return starts, rows


def read(starts: np.ndarray, rows: np.ndarray) -> list[tuple[int, int, int]]:
    return [
        (
            (int(np.searchsorted(starts, at, "right")) - 1) << 24 | int(postings.rest_of(rows, at)),
            int(postings.ordinal_at(rows, at)),
            int(postings.context_at(rows, at)),
        )
        for at in range(len(rows))
    ]


@given(entry_lists, st.tuples(st.integers(0, 40), st.integers(0, 40)))
@example([], (0, 0))
@example(list(U64_EDGES) * 2, (3, 9))
def test_entries_come_in_pieces_and_stay_in_their_order_within_a_bucket(entries, cuts):
    cuts = tuple(min(cut, len(entries)) for cut in cuts)
    starts, rows = placed(entries, cuts)
    want = sorted(range(len(entries)), key=lambda i: entries[i] >> 48)
    assert [int(postings.ordinal_at(rows, at)) for at in range(len(rows))] == want
    assert starts.tolist() == twin.starts(twin.postings(entries))


@given(entry_lists)
@example([])
@example([2**64 - 1] * 3 + [0] * 3)
def test_postings_are_sorted_by_key_and_then_by_place(entries):
    starts, rows = made(entries)
    want = twin.postings(entries)
    assert read(starts, rows) == want
    assert rows.tolist() == [twin.words(key, at, context) for key, at, context in want]
    rest = [int(postings.rest_of(rows, at)) for at in range(len(rows))]
    assert rest == [key % 2**24 for key, _, _ in want]


@given(entry_lists, st.integers(1, 9))
def test_buckets_sorted_piece_by_piece_are_sorted_all_the_same(entries, pieces):
    starts, rows = placed(entries)
    edges = np.linspace(0, postings.BUCKETS, pieces + 1).astype(int).tolist()
    for lo, hi in reversed(list(itertools.pairwise(edges))):
        postings.sort_buckets(rows, starts, lo, hi)
    assert read(starts, rows) == twin.postings(entries)


@given(U64, st.integers(0, 2**40), st.integers(0, 5))
def test_the_hash_of_a_document_is_that_of_its_shard_and_row(seed, first, n):
    out = np.empty(n, np.uint64)
    postings.hash_documents(np.uint64(seed), first, out)
    start, step, last = int(bits.SEED), int(bits.MUL_CHUNK), int(bits.MUL_END)
    assert out.tolist() == [
        twin.document_hash(seed, first + i, start, step, last) for i in range(n)
    ]


@st.composite
def documents(draw) -> tuple[list[int], list[int], list[int]]:
    """Entries, entries of each document (some have none), and the documents' hashes."""
    entries = draw(entry_lists)
    ends = sorted(draw(st.lists(st.integers(0, len(entries)), max_size=6)))
    counts = np.diff([0, *ends, len(entries)]).tolist()
    hashes = draw(st.lists(st.integers(0, 3), min_size=len(counts), max_size=len(counts)))
    return entries, counts, hashes


def cap(world: tuple[list[int], list[int], list[int]], most: int) -> tuple:
    entries, counts, hashes = world
    starts, rows = made(entries)
    ordinals = np.cumsum([0, *counts]).astype(np.uint32)
    n, keys, true = postings.cap_grams(rows, starts, ordinals, u64s(hashes), most)
    return starts, rows[:n], dict(zip(keys.tolist(), true.tolist(), strict=True)), keys


@given(documents(), st.integers(1, 6))
@example(([5 << 24] * 30, [10, 10, 10], [2, 1, 3]), 2)
@example(([(5 << 24) + i for i in range(30)], [10, 0, 20], [2, 1, 1]), 4)
def test_a_frequent_gram_keeps_the_documents_with_the_smallest_hashes(world, most):
    entries, counts, hashes = world
    doc_of = [d for d, count in enumerate(counts) for _ in range(count)]
    want, true = twin.capped(twin.postings(entries), doc_of, hashes, most)
    starts, rows, found, keys = cap(world, most)
    assert read(starts, rows) == want
    assert starts.tolist() == twin.starts(want)
    assert found == true
    assert keys.tolist() == sorted(true)


def test_more_grams_may_be_capped_than_there_was_room_for_at_first():
    entries = [(gram << 40) | context for gram in range(50) for context in (1, 2, 3)]
    _, rows, found, _ = cap((entries, [len(entries)], [1]), 2)
    assert len(found) == 50
    assert len(rows) == 100


@given(entry_lists, st.lists(st.integers(0, 2**40 - 1), max_size=5))
@example([9 << 24] * 100 + [10 << 24], [8, 9, 10, 11])
@example([], [0, 2**40 - 1])
def test_a_key_finds_all_its_postings_and_no_others(entries, strangers):
    starts, rows = made(entries)
    want = [key for key, _, _ in twin.postings(entries)]
    asked = sorted({*want, *strangers})
    first, stop = postings.find_postings(u64s(asked), starts, rows)
    for key, lo, hi in zip(asked, first.tolist(), stop.tolist(), strict=True):
        assert hi - lo == want.count(key)
        assert want[lo:hi] == [key] * (hi - lo)


@given(documents(), st.integers(0, 40))
def test_an_entry_lies_in_the_document_that_counts_it(world, ordinal):
    entries, counts, _ = world
    doc_of = [d for d, count in enumerate(counts) for _ in range(count)]
    ordinals = np.cumsum([0, *counts]).astype(np.uint32)
    if ordinal < len(entries):
        assert postings.document_at(ordinals, ordinal) == doc_of[ordinal]


@given(st.lists(documents(), max_size=3), st.data())
def test_segments_moved_together_are_as_one_of_the_documents_that_stay(worlds, more):
    sources, masks, firsts, together = [], [], [], []
    for entries, counts, _ in worlds:
        kept = more.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
        doc_of = [d for d, count in enumerate(counts) for _ in range(count)]
        firsts.append(len(together))
        together += [(entry, kept[d]) for entry, d in zip(entries, doc_of, strict=True)]
        sources.append((*made(entries), np.cumsum([0, *counts]).astype(np.uint32)))
        masks.append(np.array(kept, np.bool_))
    free = np.zeros(postings.BUCKETS, np.int64)
    for source, mask in zip(sources, masks, strict=True):
        postings.move_postings(source, mask, 0, free, np.empty((0, 5), np.uint16))
    starts = np.concatenate([[0], np.cumsum(free)])
    free, rows = starts[:-1].copy(), np.full((int(starts[-1]), 5), 9, np.uint16)
    for source, mask, first in zip(sources, masks, firsts, strict=True):
        postings.move_postings(source, mask, first, free, rows)
    postings.sort_buckets(rows, starts, 0, postings.BUCKETS)
    stays = [keep for _, keep in together]
    want = [
        posting for posting in twin.postings([entry for entry, _ in together]) if stays[posting[1]]
    ]
    assert read(starts, rows) == want
