"""Sort entries into postings, cap frequent grams, and look postings up.

A posting is five words of 16 bits: rest of the key (24 bits) and context (24 bits), then the
entry's ordinal (32 bits), each number low word first. The 16 highest bits of the key choose the
bucket, whose postings lie at starts[bucket] : starts[bucket + 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.bits import SEED, finish_hash, mix_chunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Number of buckets.
BUCKETS = 1 << 16
#: Words of a posting.
POSTING_WORDS = 5

_BUCKET_SHIFT = np.uint64(48)
_REST_SHIFT = np.uint64(24)
_REST = np.uint64(0xFFFFFF)
_WORD = np.uint64(0xFFFF)
_SIXTEEN = np.uint64(16)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)


@lean_kernel
def count_buckets(entries: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Add to counts (int64[BUCKETS]) how many of the entries fall into each bucket."""
    for i in range(entries.shape[0]):
        counts[int64(entries[i] >> _BUCKET_SHIFT)] += 1


@lean_kernel
def place_entries(
    entries: NDArray[np.uint64],
    first: int,
    free: NDArray[np.int64],
    postings: NDArray[np.uint16],
) -> None:
    """Write entries to the next free places of their buckets, in order.

    first     ordinal of entries[0]
    free      int64[BUCKETS], next free row of each bucket, advanced
    postings  uint16[n, 5], written
    """
    for i in range(entries.shape[0]):
        entry = entries[i]
        bucket = int64(entry >> _BUCKET_SHIFT)
        at = free[bucket]
        free[bucket] = at + 1
        value = ((entry >> _REST_SHIFT) & _REST) | ((entry & _REST) << _REST_SHIFT)
        ordinal = np.uint64(first + i)
        postings[at, 0] = np.uint16(value & _WORD)
        postings[at, 1] = np.uint16((value >> _SIXTEEN) & _WORD)
        postings[at, 2] = np.uint16(value >> _HALF)
        postings[at, 3] = np.uint16(ordinal & _WORD)
        postings[at, 4] = np.uint16(ordinal >> _SIXTEEN)


@lean_kernel
def rest_of(postings: NDArray[np.uint16], at: int) -> np.uint64:
    """Key of the gram of posting `at` without its bucket: 24 bits."""
    return np.uint64(postings[at, 0]) | ((np.uint64(postings[at, 1]) & np.uint64(0xFF)) << _SIXTEEN)


@lean_kernel
def context_at(postings: NDArray[np.uint16], at: int) -> np.uint64:
    """Context of posting `at`: 24 bits."""
    return (np.uint64(postings[at, 1]) >> np.uint64(8)) | (
        np.uint64(postings[at, 2]) << np.uint64(8)
    )


@lean_kernel
def ordinal_at(postings: NDArray[np.uint16], at: int) -> int:
    """Number of the entry that posting `at` stands for."""
    return int64(postings[at, 3]) | (int64(postings[at, 4]) << 16)


@lean_kernel
def move_posting(postings: NDArray[np.uint16], source: int, to: int) -> None:
    """Copy posting `source` over posting `to`."""
    for word in range(POSTING_WORDS):
        postings[to, word] = postings[source, word]


@kernel
def sort_buckets(
    postings: NDArray[np.uint16], starts: NDArray[np.int64], first: int, stop: int
) -> None:
    """Sort each of the buckets first to stop - 1 by key, equal keys staying in their order."""
    longest = 0
    for bucket in range(first, stop):
        longest = max(longest, starts[bucket + 1] - starts[bucket])
    order = np.empty(longest, np.uint64)
    copy = np.empty((longest, POSTING_WORDS), np.uint16)
    for bucket in range(first, stop):
        lo = starts[bucket]
        n = starts[bucket + 1] - lo
        sorted_already = True
        before = np.uint64(0)
        for i in range(n):
            rest = rest_of(postings, lo + i)
            sorted_already = sorted_already and bool(rest >= before)
            before = rest
            order[i] = (rest << _HALF) | np.uint64(i)
        if sorted_already:
            continue
        order[:n].sort()
        copy[:n] = postings[lo : lo + n]
        for i in range(n):
            source = int64(order[i] & _LOW_HALF)
            for word in range(POSTING_WORDS):
                postings[lo + i, word] = copy[source, word]


@lean_kernel
def hash_documents(seed: np.uint64, first_row: int, out: NDArray[np.uint64]) -> None:
    """Hash of each document: of its shard, which gives the seed, and its row.

    Decides which documents a frequent gram keeps: independent of how an index is cut.
    """
    for i in range(out.shape[0]):
        out[i] = finish_hash(mix_chunk(mix_chunk(SEED, seed), np.uint64(first_row + i)))


@kernel
def keep_of_gram(
    postings: NDArray[np.uint16],
    lo: int,
    hi: int,
    doc_entries: NDArray[np.uint32],
    doc_hash: NDArray[np.uint64],
    cap: int,
) -> tuple[NDArray[np.int64], bool]:
    """Which of the postings of one gram, more than `cap` at lo to hi - 1, are kept.

    Of equal contexts in one document the first stays; then the `cap` with the smallest document
    hash. Returns (rows kept, ascending; whether the second step left any out).
    """
    n = hi - lo
    sets = np.empty(n, np.uint64)
    document = np.empty(n, np.int64)
    for i in range(n):
        document[i] = document_at(doc_entries, ordinal_at(postings, lo + i))
        sets[i] = (np.uint64(document[i]) << _REST_SHIFT) | context_at(postings, lo + i)
    order = np.argsort(sets, kind="mergesort")
    distinct = np.zeros(n, np.bool_)
    for j in range(n):
        distinct[order[j]] = j == 0 or sets[order[j]] != sets[order[j - 1]]
    kept = np.flatnonzero(distinct)
    if kept.shape[0] > cap:
        ranks = np.argsort(doc_hash[document[kept]], kind="mergesort")
        return lo + np.sort(kept[ranks[:cap]]), True
    return lo + kept, False


@kernel
def cap_grams(
    postings: NDArray[np.uint16],
    starts: NDArray[np.int64],
    doc_entries: NDArray[np.uint32],
    doc_hash: NDArray[np.uint64],
    cap: int,
) -> tuple[int, NDArray[np.uint64], NDArray[np.int64]]:
    """Leave at most `cap` postings of each gram; returns (postings left, capped keys, true counts).

    postings     uint16[n, 5], sorted; the rows that stay are moved to the front
    starts       int64[BUCKETS + 1], rewritten
    doc_entries  uint32[docs + 1], first ordinal of each document
    doc_hash     uint64[docs], see `hash_documents`
    """
    keys = np.empty(16, np.uint64)
    counts = np.empty(16, np.int64)
    n_capped = 0
    to = 0
    hi = starts[0]
    for bucket in range(starts.shape[0] - 1):
        lo = hi
        hi = starts[bucket + 1]
        starts[bucket] = to
        while lo < hi:
            rest = rest_of(postings, lo)
            end = lo + 1
            while end < hi and rest_of(postings, end) == rest:
                end += 1
            if end - lo <= cap:
                if to < lo:
                    for row in range(lo, end):
                        move_posting(postings, row, to + row - lo)
                to += end - lo
                lo = end
                continue
            kept, capped = keep_of_gram(postings, lo, end, doc_entries, doc_hash, cap)
            for row in kept:
                move_posting(postings, row, to)
                to += 1
            if capped:
                if n_capped == keys.shape[0]:
                    keys = np.concatenate((keys, np.empty_like(keys)))
                    counts = np.concatenate((counts, np.empty_like(counts)))
                keys[n_capped] = (np.uint64(bucket) << _REST_SHIFT) | rest
                counts[n_capped] = end - lo
                n_capped += 1
            lo = end
    starts[starts.shape[0] - 1] = to
    return to, keys[:n_capped].copy(), counts[:n_capped].copy()


@kernel
def find_postings(
    keys: NDArray[np.uint64], starts: NDArray[np.int64], postings: NDArray[np.uint16]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the postings of each key lie: (first row int64[m], row behind the last int64[m]).

    keys  uint64[m], 40 bits each; an absent one gets an empty range
    """
    first = np.empty(keys.shape[0], np.int64)
    stop = np.empty(keys.shape[0], np.int64)
    for i in range(keys.shape[0]):
        bucket = int64(keys[i] >> _REST_SHIFT)
        rest = keys[i] & _REST
        lo = starts[bucket]
        hi = starts[bucket + 1]
        while lo < hi:
            middle = (lo + hi) >> 1
            if rest_of(postings, middle) < rest:
                lo = middle + 1
            else:
                hi = middle
        first[i] = lo
        # Most grams are rare: look near first, twice as far each time, then halve what is left.
        end = starts[bucket + 1]
        step = 1
        while lo + step <= end and rest_of(postings, lo + step - 1) == rest:
            lo += step
            step += step
        hi = min(lo + step, end)
        while lo < hi:
            middle = (lo + hi) >> 1
            if rest_of(postings, middle) == rest:
                lo = middle + 1
            else:
                hi = middle
        stop[i] = lo
    return first, stop


@lean_kernel
def document_at(doc_entries: NDArray[np.uint32], ordinal: int) -> int:
    """Number of the document that an entry lies in: the last whose first ordinal is not above."""
    lo = 0
    hi = doc_entries.shape[0]
    while lo < hi:
        middle = (lo + hi) >> 1
        if int64(doc_entries[middle]) <= ordinal:
            lo = middle + 1
        else:
            hi = middle
    return lo - 1


@lean_kernel
def move_postings(
    source: tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint32]],
    kept: NDArray[np.bool_],
    first: int,
    free: NDArray[np.int64],
    postings: NDArray[np.uint16],
) -> None:
    """Append the postings of a segment, bucket by bucket, to those of a larger one.

    source    (starts, postings, doc_entries) of the segment
    kept      bool[docs], whose postings are wanted
    first     ordinal that its entry 0 gets
    free      int64[BUCKETS], next free row of each bucket, advanced
    postings  uint16[n, 5], written; when it has no rows, they are only counted in `free`
    """
    write = postings.shape[0] > 0
    starts, old, doc_entries = source
    for bucket in range(starts.shape[0] - 1):
        to = free[bucket]
        for row in range(starts[bucket], starts[bucket + 1]):
            ordinal = ordinal_at(old, row)
            if not kept[document_at(doc_entries, ordinal)]:
                continue
            if write:
                for word in range(3):
                    postings[to, word] = old[row, word]
                number = np.uint64(ordinal + first)
                postings[to, 3] = np.uint16(number & _WORD)
                postings[to, 4] = np.uint16(number >> _SIXTEEN)
            to += 1
        free[bucket] = to
