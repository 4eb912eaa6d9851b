"""Hold the items as arrays, and look up their grams in a hash table.

All parts of all items lie behind each other in flat token arrays; part number p belongs to item
p >> 2 and is its passage, question, choices or answer (p & 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.bits import prefetch
from contam.kernels.gram_filter import WORD_SHIFT, bits_of, filter_grams, passes_filter

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRAM_BASE = np.uint64(0x9FB21C651E98DF25)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
#: Shares are told by the highest bits, so that those of one share still differ in the lowest.
_SHARE_BITS = np.uint64(48)
_ONE = np.uint64(1)
EMPTY = -1
#: Beyond the number of any part.
EVERY_PART = 1 << 31
#: How many look-ups before it an entry of a table is asked for: it lies out of a core's own cache.
AHEAD = 32
#: Up to so many tokens are hashed anew for each gram; of longer ones the hash is rolled on.
_SHORT_GRAM = 8
#: Grams that are hashed token by token: they stay in a core's nearest cache.
_HASHED_AT_ONCE = 512


class GramTable(NamedTuple):
    """Everything a worker needs to know of the items; read-only, C order.

    token         uint64[t], hashes of all item tokens, part by part
    weight        float32[t], how much each token says (0..1)
    common_at     bool[t], whether the seed that starts at each token is common
    part_start    int64[4 * items + 1], where a part's tokens begin in `token`
    part_weight   float64[4 * items], sum of the weights of a part
    gram_key      uint64[grams], spread hash of each gram; a gram is a seed, or where only every
                  stride-th is entered (see ViewSpec) so much shorter
    slot_gram     int32[2**b], open-addressing table of the keys: gram number or EMPTY
    gram_start    int32[grams + 1], where a gram's places begin in `place`
    gram_short    int32[grams], how many of a gram's places, which come first, lie in short parts
                  (fewer than min_run tokens: those are matched whole)
    gram_common   bool[grams], shared by so many items that a short run of it proves nothing
    place         int32[places], index into `token` where the gram stands
    place_part    int32[places], its part
    place_skip    uint8[places], see note_skips
                  (gram_short, gram_common and place_skip are empty where not every gram is entered)
    filter_words  uint64[2**f], two bits a gram in one word
    front_words   uint64[2**e], e <= f: the filter folded, so that it stays in a core's own cache
    """

    token: NDArray[np.uint64]
    weight: NDArray[np.float32]
    common_at: NDArray[np.bool_]
    part_start: NDArray[np.int64]
    part_weight: NDArray[np.float64]
    gram_key: NDArray[np.uint64]
    slot_gram: NDArray[np.int32]
    gram_start: NDArray[np.int32]
    gram_short: NDArray[np.int32]
    gram_common: NDArray[np.bool_]
    place: NDArray[np.int32]
    place_part: NDArray[np.int32]
    place_skip: NDArray[np.uint8]
    filter_words: NDArray[np.uint64]
    front_words: NDArray[np.uint64]


@lean_kernel
def power(base: np.uint64, exponent: int) -> np.uint64:
    """`base` to the power of `exponent`, modulo 2**64."""
    value = _ONE
    for _ in range(exponent):
        value = value * base
    return value


@lean_kernel
def hash_short_grams(
    token: NDArray[np.uint64], lo: int, hi: int, n: int, out: NDArray[np.uint64]
) -> None:
    """What `hash_grams` writes where there is a gram: each by itself, so many side by side."""
    count = hi - lo - n + 1
    for first in range(0, count, _HASHED_AT_ONCE):
        end = min(first + _HASHED_AT_ONCE, count)
        for i in range(first, end):
            out[i] = token[lo + i]
        for further in range(1, n):
            for i in range(first, end):
                out[i] = out[i] * GRAM_BASE + token[lo + i + further]
        for i in range(first, end):
            mixed = out[i] * _SPREAD
            out[i] = mixed ^ (mixed >> np.uint64(32))


@lean_kernel
def hash_grams(token: NDArray[np.uint64], lo: int, hi: int, n: int, out: NDArray[np.uint64]) -> int:
    """Spread hashes of the n-grams of token[lo:hi] to out; returns how many (0 when too short)."""
    if hi - lo < n:
        return 0
    if n <= _SHORT_GRAM:
        hash_short_grams(token, lo, hi, n, out)
        return hi - lo - n + 1
    drop = power(GRAM_BASE, n)
    value = np.uint64(0)
    for i in range(lo, lo + n):
        value = value * GRAM_BASE + token[i]
    count = hi - lo - n + 1
    mixed = value * _SPREAD
    out[0] = mixed ^ (mixed >> np.uint64(32))
    for i in range(1, count):
        value = value * GRAM_BASE + token[lo + i + n - 1] - token[lo + i - 1] * drop
        mixed = value * _SPREAD
        out[i] = mixed ^ (mixed >> np.uint64(32))
    return count


@kernel
def item_grams(
    token: NDArray[np.uint64],
    part_start: NDArray[np.int64],
    n: int,
    stride: int,
    share: tuple[int, int],
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
    """Grams of n tokens of every part: hash, index of the first token, part number.

    stride  of each part only every stride-th gram is taken, from its first on
    share   (number, of): of the grams, equal ones together, the share with this number is taken
    """
    number, of = np.uint64(share[0]), np.uint64(share[1])
    drop = power(GRAM_BASE, n)
    most = int64(0)
    for part in range(part_start.shape[0] - 1):
        most += max(part_start[part + 1] - part_start[part] - n + stride, 0) // stride
    # Room for all: what stays unused takes no memory.
    out = np.empty(most, np.uint64)
    where = np.empty(most, np.int32)
    part_of = np.empty(most, np.int32)
    total = int64(0)
    for part in range(part_start.shape[0] - 1):
        lo, hi = part_start[part], part_start[part + 1]
        value = np.uint64(0)
        for i in range(lo, hi):
            value = value * GRAM_BASE + token[i]
            first = i - n + 1
            if first < lo:
                continue
            if first > lo:
                value -= token[first - 1] * drop
            if (first - lo) % stride != 0:
                continue
            mixed = value * _SPREAD
            mixed ^= mixed >> np.uint64(32)
            if (mixed >> _SHARE_BITS) % of != number:
                continue
            out[total] = mixed
            where[total] = first
            part_of[total] = part
            total += 1
    if total < most:
        return out[:total].copy(), where[:total].copy(), part_of[:total].copy()
    return out, where, part_of


@lean_kernel
def fill_table(
    keys: NDArray[np.uint64],
    slot_gram: NDArray[np.int32],
    filter_words: NDArray[np.uint64],
) -> None:
    """Enter distinct gram hashes, in their order, into the open-addressing table and the filter."""
    mask = np.uint64(slot_gram.shape[0] - 1)
    words = np.uint64(filter_words.shape[0] - 1)
    last = keys.shape[0] - 1
    for gram in range(keys.shape[0]):
        soon = keys[min(gram + AHEAD, last)]
        prefetch(slot_gram, int64(soon & mask))
        prefetch(filter_words, int64((soon >> WORD_SHIFT) & words))
        key = keys[gram]
        slot = key & mask
        while slot_gram[slot] != EMPTY:
            slot = (slot + _ONE) & mask
        slot_gram[slot] = gram
        filter_words[(key >> WORD_SHIFT) & words] |= bits_of(key)


@lean_kernel
def find_hits(
    grams: NDArray[np.uint64],
    count: int,
    gram_table: GramTable,
    hit_at: NDArray[np.int32],
    hit_gram: NDArray[np.int32],
    known: tuple[int, int],
) -> int:
    """Which of a document's grams[:count] are item grams.

    known     (first, found): grams[0] is the document's gram number `first`; hits of those before
    hit_at    int32[>= found + count], written from `found` on: number of the gram in the document
    hit_gram  the same, written: gram number in the gram table
    return    number of hits so far
    """
    first, found = known
    filter_words = gram_table.filter_words
    gram_key = gram_table.gram_key
    slot_gram = gram_table.slot_gram
    front_words = gram_table.front_words
    mask = np.uint64(slot_gram.shape[0] - 1)
    maybe = filter_grams(grams, count, front_words, found, hit_at)
    if front_words.shape[0] < filter_words.shape[0]:
        words = np.uint64(filter_words.shape[0] - 1)
        passed = maybe
        maybe = int64(found)
        last = passed - 1
        for j in range(found, passed):
            soon = grams[hit_at[min(j + AHEAD, last)]]
            prefetch(filter_words, int64((soon >> WORD_SHIFT) & words))
            i = hit_at[j]
            hit_at[maybe] = i
            maybe += int64(passes_filter(grams[i], filter_words))
    # The table lies in memory far from the core: all that is needed of it is fetched side by side.
    for j in range(found, maybe):
        prefetch(slot_gram, int64(grams[hit_at[j]] & mask))
    for j in range(found, maybe):
        prefetch(gram_key, max(int64(slot_gram[grams[hit_at[j]] & mask]), 0))
    n = int64(found)
    for j in range(found, maybe):
        i = hit_at[j]
        key = grams[i]
        slot = key & mask
        while slot_gram[slot] != EMPTY:
            gram = slot_gram[slot]
            if gram_key[gram] == key:
                hit_at[n] = first + i
                hit_gram[n] = gram
                n += 1
                break
            slot = (slot + _ONE) & mask
    return n


@kernel
def count_owners(
    gram_start: NDArray[np.int32],
    place_part: NDArray[np.int32],
    benchmark: NDArray[np.int32],
    owners: NDArray[np.int32],
) -> None:
    """How many items of its own benchmark hold the gram of each place.

    benchmark       int32[items and variants]
    owners          int32[places], written
    Places of a gram are in part order, so the places of an item follow each other.
    """
    n_benchmarks = benchmark.max() + 1 if benchmark.shape[0] else 1
    per_benchmark = np.zeros(n_benchmarks, np.int32)
    for gram in range(gram_start.shape[0] - 1):
        lo, hi = gram_start[gram], gram_start[gram + 1]
        last = -1
        for j in range(lo, hi):
            item = place_part[j] >> 2
            if item != last:
                per_benchmark[benchmark[item]] += 1
                last = item
        for j in range(lo, hi):
            owners[j] = per_benchmark[benchmark[place_part[j] >> 2]]
        for j in range(lo, hi):
            per_benchmark[benchmark[place_part[j] >> 2]] = 0


@kernel
def find_common(
    gram_start: NDArray[np.int32],
    place_part: NDArray[np.int32],
    owners: NDArray[np.int32],
    n_parts: int,
    limits: tuple[int, int],
) -> NDArray[np.bool_]:
    """Which grams stand in more places than limits[0], or in more items than limits[1].

    owners   int32[places], see count_owners
    n_parts  of the items; places in later parts, those of variants, count only where there is no
             other
    """
    common = np.zeros(gram_start.shape[0] - 1, np.bool_)
    for gram in range(gram_start.shape[0] - 1):
        lo, hi = gram_start[gram], gram_start[gram + 1]
        # Places of a gram are in part order: its first one is an item's if any is.
        end = n_parts if lo < hi and place_part[lo] < n_parts else EVERY_PART
        places = int64(0)
        most = int64(0)
        for j in range(lo, hi):
            if place_part[j] < end:
                places += 1
                most = max(most, int64(owners[j]))
        common[gram] = places > limits[0] or most > limits[1]
    return common


@lean_kernel
def short_places_first(
    gram_start: NDArray[np.int32],
    part_start: NDArray[np.int64],
    min_run: int,
    place: NDArray[np.int32],
    place_part: NDArray[np.int32],
    gram_short: NDArray[np.int32],
) -> None:
    """Within each gram, move the places in parts of fewer than min_run tokens to the front."""
    for gram in range(gram_start.shape[0] - 1):
        lo, hi = gram_start[gram], gram_start[gram + 1]
        front = lo
        for j in range(lo, hi):
            part = place_part[j]
            if part_start[part + 1] - part_start[part] < min_run:
                where = place[j]
                for k in range(j, front, -1):
                    place[k] = place[k - 1]
                    place_part[k] = place_part[k - 1]
                place[front] = where
                place_part[front] = part
                front += 1
        gram_short[gram] = front - lo


@kernel
def note_skips(
    token: NDArray[np.uint64],
    part_start: NDArray[np.int64],
    grams: tuple[NDArray[np.int32], NDArray[np.bool_]],
    place: NDArray[np.int32],
    place_part: NDArray[np.int32],
) -> NDArray[np.uint8]:
    """How many places of its gram, from each on, have the same token before them; 255 at most.

    grams   (gram_start, gram_common): of those that are not common every figure is 1
    return  uint8[places]; a place that begins its part has no token before it
    """
    gram_start, gram_common = grams
    skip = np.ones(place.shape[0], np.uint8)
    for gram in range(gram_start.shape[0] - 1):
        hi = gram_start[gram + 1]
        for j in range(hi - 1, gram_start[gram] - 1, -1):
            more = int64(0)
            if gram_common[gram] and j + 1 < hi:
                here, after = place[j], place[j + 1]
                inside = here > part_start[place_part[j]] and after > part_start[place_part[j + 1]]
                if inside and token[here - 1] == token[after - 1]:
                    more = int64(skip[j + 1])
            skip[j] = min(more + 1, 255)
    return skip
