"""Sketch windows of text and find windows that share rare shingles.

A shingle is `n` words in a row; its value is the higher half of the spread hash of that gram, see
`contam.kernels.gram_table.hash_grams`. A document is cut in windows of `window` shingles, the last
one shorter. A window is entered under the shingle that each permutation (affine32 of datasketch)
makes smallest, unless the window before it (of the same document) is entered under it as well.

An entry is 40 bits: the 12 lower bits of the higher 28 of the shingle, then the number of the
window (28 bits). The 16 highest bits of the shingle are the bucket that holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD, power

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW_BITS = 28
"""Bits of a window's number within its segment."""

REST_BITS = 12
"""Bits of a shingle that an entry keeps beside those of its bucket."""

BUCKETS = 1 << 16
ENTRY_BYTES = 5

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_LARGEST = np.uint64(0xFFFFFFFFFFFFFFFF)
_KEY_SHIFT = np.uint64(36)
_REST_SHIFT = np.uint64(4)
_REST_MASK = (1 << REST_BITS) - 1
_WINDOW_MASK = (1 << WINDOW_BITS) - 1
_MIX_1 = np.uint64(0x85EBCA6B)
_MIX_2 = np.uint64(0xC2B2AE35)
_13 = np.uint64(13)
_16 = np.uint64(16)
_COUNTERS = 4096
_HIT_BITS = 24


@kernel
def mix32(value: np.uint32) -> np.uint32:
    """The 32-bit finalizer of MurmurHash3, a bijection."""
    h = np.uint64(value)
    h ^= h >> _16
    h = (h * _MIX_1) & _LOW
    h ^= h >> _13
    h = (h * _MIX_2) & _LOW
    return np.uint32(h ^ (h >> _16))


@kernel
def hash_shingles(
    token: NDArray[np.uint64], lo: int, hi: int, n: int, out: NDArray[np.uint32]
) -> int:
    """Values of the shingles of token[lo:hi] to out; returns how many.

    n  tokens of a shingle; a text of fewer tokens is one shingle of all of them
    """
    if hi <= lo:
        return 0
    n = min(n, hi - lo)
    drop = power(GRAM_BASE, n)
    value = np.uint64(0)
    for i in range(lo, lo + n):
        value = value * GRAM_BASE + token[i]
    count = hi - lo - n + 1
    # The higher half is that of the product: mixing with its own higher half changes the lower.
    out[0] = np.uint32((value * GRAM_SPREAD) >> _HALF)
    for i in range(1, count):
        value = value * GRAM_BASE + token[lo + i + n - 1] - token[lo + i - 1] * drop
        out[i] = np.uint32((value * GRAM_SPREAD) >> _HALF)
    return count


@kernel
def choose_shingles(
    shingle: NDArray[np.uint32],
    limits: tuple[int, int],
    factor: NDArray[np.uint64],
    shift: NDArray[np.uint64],
    mixed: NDArray[np.uint32],
    chosen: NDArray[np.uint32],
) -> None:
    """The shingle that each permutation makes smallest, of equals the smaller.

    limits  first shingle of the window, and the one behind its last
    mixed   uint32[as many as shingle], scratch;  chosen  uint32[p], written
    """
    first, last = limits
    for i in range(first, last):
        mixed[i] = mix32(shingle[i])
    for p in range(chosen.shape[0]):
        a, b = np.uint32(factor[p]), np.uint32(shift[p])
        low = _LARGEST
        # Value and shingle in one word: the smallest of them is found without a branch.
        for i in range(first, last):
            value = np.uint64(np.uint32(a * mixed[i] + b)) << _HALF
            low = min(low, value | np.uint64(shingle[i]))
        chosen[p] = np.uint32(low & _LOW)


@kernel
def enter_windows(
    token: NDArray[np.uint64],
    starts: NDArray[np.int64],
    geometry: tuple[int, int],
    factor: NDArray[np.uint64],
    shift: NDArray[np.uint64],
    shingle: NDArray[np.uint32],
    mixed: NDArray[np.uint32],
    out: NDArray[np.uint64],
) -> tuple[int, int]:
    """Entries of all windows of all documents token[starts[i] : starts[i + 1]].

    geometry        tokens of a shingle, shingles of a window
    factor, shift   uint64[p]
    shingle, mixed  uint32[>= tokens of the longest document], scratch
    out             uint64[> p * windows], written: shingle << 32 | window, numbered from 0
    return          entries, windows
    """
    n, window = geometry
    n_perm = factor.shape[0]
    chosen = np.empty(n_perm, np.uint32)
    before = np.empty(n_perm, np.uint32)
    used = 0
    number = 0
    for d in range(starts.shape[0] - 1):
        count = hash_shingles(token, starts[d], starts[d + 1], n, shingle)
        for at in range(0, count, window):
            limits = (at, min(at + window, count))
            choose_shingles(shingle, limits, factor, shift, mixed, chosen)
            for p in range(n_perm):
                fresh = True
                for q in range(p):
                    fresh &= chosen[q] != chosen[p]
                if at > 0:
                    for q in range(n_perm):
                        fresh &= before[q] != chosen[p]
                # Written in any case and kept only when it is new: a branch here is a coin toss.
                out[used] = (np.uint64(chosen[p]) << _HALF) | np.uint64(number)
                used += int64(fresh)
            before[:] = chosen
            number += 1
    return used, number


@kernel
def drop_frequent(
    entries: NDArray[np.uint64], most: int, unwanted: NDArray[np.uint32], over: NDArray[np.uint32]
) -> tuple[int, int]:
    """Take the entries of shingles out that are unwanted or have more than `most` entries.

    entries   uint64[n], shingle << 32 | window, ascending; those that stay are moved to the front
    unwanted  uint32[k], shingles without their 4 lowest bits, ascending
    over      uint32[>= n // (most + 1) + 1], written: shingles with too many entries, ascending,
              their 4 lowest bits 0
    return    entries that stay, shingles in `over`
    """
    kept = 0
    found = 0
    at = 0
    next_unwanted = 0
    n = entries.shape[0]
    while at < n:
        key = entries[at] >> _KEY_SHIFT
        end = at + 1
        while end < n and entries[end] >> _KEY_SHIFT == key:
            end += 1
        shingle = np.uint32(key << np.uint64(4))
        while next_unwanted < unwanted.shape[0] and unwanted[next_unwanted] < shingle:
            next_unwanted += 1
        if end - at > most:
            over[found] = shingle
            found += 1
        elif next_unwanted == unwanted.shape[0] or unwanted[next_unwanted] != shingle:
            for i in range(at, end):
                entries[kept] = entries[i]
                kept += 1
        at = end
    return kept, found


@kernel
def pack_entries(
    entries: NDArray[np.uint64], starts: NDArray[np.int64], rows: NDArray[np.uint8]
) -> None:
    """Sorted entries as they lie on disk.

    entries  uint64[n], shingle << 32 | window, ascending
    starts   int64[BUCKETS + 1], zeros, written: first row of each bucket
    rows     uint8[n, ENTRY_BYTES], written
    """
    for i in range(entries.shape[0]):
        key = entries[i] >> _HALF
        starts[int64(key >> np.uint64(16)) + 1] += 1
        rest = (key >> _REST_SHIFT) & np.uint64(_REST_MASK)
        value = (rest << np.uint64(WINDOW_BITS)) | (entries[i] & np.uint64(_WINDOW_MASK))
        for k in range(ENTRY_BYTES):
            rows[i, k] = np.uint8((value >> np.uint64(8 * k)) & np.uint64(0xFF))
    for b in range(BUCKETS):
        starts[b + 1] += starts[b]


@kernel
def value_at(rows: NDArray[np.uint8], row: int) -> int:
    """The 40 bits of an entry."""
    value = 0
    for k in range(ENTRY_BYTES):
        value |= int64(rows[row, k]) << (8 * k)
    return value


@kernel
def find_shingles(
    keys: NDArray[np.uint32],
    starts: NDArray[np.int64],
    rows: NDArray[np.uint8],
    first: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Rows of the windows that are entered under each shingle (its 28 highest bits).

    first, stop  int64[m], written: the range of rows, empty where there is none
    """
    for i in range(keys.shape[0]):
        key = int64(keys[i])
        bucket = key >> 16
        rest = (key >> 4) & _REST_MASK
        for side in range(2):
            lo, hi = starts[bucket], starts[bucket + 1]
            bound = (rest + side) << WINDOW_BITS
            while lo < hi:
                middle = (lo + hi) >> 1
                if value_at(rows, middle) < bound:
                    lo = middle + 1
                else:
                    hi = middle
            if side == 0:
                first[i] = lo
            else:
                stop[i] = lo


@kernel
def count_live(
    rows: NDArray[np.uint8],
    first: NDArray[np.int64],
    stop: NDArray[np.int64],
    window_start: NDArray[np.int64],
    dead: NDArray[np.bool_],
    count: NDArray[np.int64],
) -> None:
    """Add to count[i] the rows first[i] to stop[i] whose documents still count.

    window_start  int64[docs + 1], first window of each document; dead bool[docs]
    """
    for i in range(first.shape[0]):
        for row in range(first[i], stop[i]):
            window = value_at(rows, row) & _WINDOW_MASK
            count[i] += int64(not dead[np.searchsorted(window_start, window, side="right") - 1])


@kernel
def propose_documents(
    item_first: NDArray[np.int64],
    item_key: NDArray[np.int64],
    span: NDArray[np.int64],
    weight: NDArray[np.int64],
    least: int,
    rows: NDArray[np.uint8],
    first: NDArray[np.int64],
    stop: NDArray[np.int64],
    window_start: NDArray[np.int64],
) -> tuple[NDArray[np.int64], int]:
    """Documents with neighbouring windows that share enough with an item.

    item_first    int64[items + 1], where an item's shingles (fewer than 2**24) begin in item_key
    item_key      int64[shingles], number of the shingle; distinct within an item
    span          int64[items], neighbouring windows that are looked at together
    weight        int64[keys], what sharing it counts; 0 where it is not looked up
    least         what all shared shingles together have to weigh
    rows, first, stop, window_start  one segment: see find_shingles, count_live
    return        (int64[m, 3] item, document, highest weight, by item and document; m)
    """
    out = np.empty((1024, 3), np.int64)
    used = 0
    counters = np.zeros(_COUNTERS, np.int64)
    hits = np.empty(1024, np.int64)
    most = 0
    for item in range(item_first.shape[0] - 1):
        most = max(most, item_first[item + 1] - item_first[item])
    inside = np.zeros(most, np.int64)
    for item in range(item_first.shape[0] - 1):
        lo, hi = item_first[item], item_first[item + 1]
        reachable = 0
        capacity = 0
        for j in range(lo, hi):
            k = item_key[j]
            if weight[k] > 0 and stop[k] > first[k]:
                reachable += weight[k]
                capacity += stop[k] - first[k]
        if reachable < least:
            continue
        if hits.shape[0] < capacity:
            hits = np.empty(2 * capacity, np.int64)
        shift = 0
        while 1 << shift < span[item]:
            shift += 1
        # Windows near each other fall into one counter or two neighbours.
        for j in range(lo, hi):
            k = item_key[j]
            if weight[k] > 0:
                for row in range(first[k], stop[k]):
                    window = value_at(rows, row) & _WINDOW_MASK
                    counters[(window >> shift) & (_COUNTERS - 1)] += weight[k]
        n = 0
        for j in range(lo, hi):
            k = item_key[j]
            if weight[k] > 0:
                for row in range(first[k], stop[k]):
                    window = value_at(rows, row) & _WINDOW_MASK
                    c = window >> shift
                    around = counters[c & (_COUNTERS - 1)]
                    around += counters[(c - 1) & (_COUNTERS - 1)]
                    around += counters[(c + 1) & (_COUNTERS - 1)]
                    if around >= least:
                        hits[n] = (window << _HIT_BITS) | (j - lo)
                        n += 1
        for j in range(lo, hi):
            k = item_key[j]
            if weight[k] > 0:
                for row in range(first[k], stop[k]):
                    window = value_at(rows, row) & _WINDOW_MASK
                    counters[(window >> shift) & (_COUNTERS - 1)] = 0
        ordered = np.sort(hits[:n])
        at = 0
        while at < n:
            window = ordered[at] >> _HIT_BITS
            document = np.searchsorted(window_start, window, side="right") - 1
            behind = window_start[document + 1]
            best, total, tail = 0, 0, at
            while at < n and ordered[at] >> _HIT_BITS < behind:
                window = ordered[at] >> _HIT_BITS
                while ordered[tail] >> _HIT_BITS <= window - span[item]:
                    j = ordered[tail] & ((1 << _HIT_BITS) - 1)
                    inside[j] -= 1
                    if inside[j] == 0:
                        total -= weight[item_key[lo + j]]
                    tail += 1
                j = ordered[at] & ((1 << _HIT_BITS) - 1)
                inside[j] += 1
                if inside[j] == 1:
                    total += weight[item_key[lo + j]]
                best = max(best, total)
                at += 1
            inside[: hi - lo] = 0
            if best >= least:
                if used == out.shape[0]:
                    larger = np.empty((2 * used, 3), np.int64)
                    larger[:used] = out
                    out = larger
                out[used, 0], out[used, 1], out[used, 2] = item, document, best
                used += 1
    return out, used
