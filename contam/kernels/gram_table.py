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
    from contam.kernels._jit import Bools, Float32s, Float64s, Int32s, Int64s, Uint8s, Uint64s

GRAM_BASE = np.uint64(0x9FB21C651E98DF25)
GRAM_SPREAD = np.uint64(0xD6E8FEB86659FD93)
#: Shares are told by the highest bits, so that those of one share still differ in the lowest.
_SHARE_BITS = np.uint64(48)
_ONE = np.uint64(1)
EMPTY = -1
#: The tag of a slot that is free.
NO_TAG = 0
#: The part of every 2**4th token is noted: see `part_of`.
PART_SHIFT = 4
_TAG_BITS = np.uint64(0xFF)
_HALF = np.uint64(32)
#: Beyond the number of any part.
EVERY_PART = 1 << 31
#: How many look-ups before it an entry of a table is asked for: it lies out of a core's own cache.
AHEAD = 32
#: Up to so many tokens are hashed anew for each gram; of longer ones the hash is rolled on.
_SHORT_GRAM = 8
#: Grams that are hashed token by token, or entered: they stay in a core's nearest cache.
_HASHED_AT_ONCE = 512


class GramTable(NamedTuple):
    """Everything a worker needs to know of the items; read-only, C order.

    token         uint64[t], hashes of all item tokens, part by part
    weight        float32[t], how much each token says (0..1)
    common_at     uint8[t / 8], whether the seed that starts at each token is shared by so many
                  items that a short run of it proves nothing: one bit each, the lowest first
    part_start    int64[4 * items + 1], where a part's tokens begin in `token`
    part_weight   float64[4 * items], sum of the weights of a part
    slot_tag      uint8[slots], open-addressing table of the grams: eight bits of the hash of each,
                  NO_TAG where there is none. A gram is a seed, or where only every stride-th is
                  entered (see ViewSpec) so much shorter
    slot_place    int32[slots], where the gram's places begin in `place`, which is also its number
    place         int32[places], index into `token` where a gram stands, those of a gram behind each
                  other: first those in short parts (fewer than min_run tokens: those are matched
                  whole). The last one of each gram is told by its sign, see `place_of`
    place_skip    uint8[places], see note_skips; empty where not every gram is entered
    part_at       int32[t / 16], the part of every 16th token, see `part_of`
    filter_words  uint64[2**f], two bits a gram in one word
    front_words   uint64[2**e], e <= f: the filter folded, so that it stays in a core's own cache
    letters       uint8[...], of how many letters each token of the items themselves is made, 0
                  where that is not known; in other units than words none, as of the next three
    letter_tag, letter_place  uint8[slots], int32[slots], open-addressing table of grams of letters:
                  eight bits of the hash of each, and the token that it begins with
    letter_heads  uint64[2**l], filter of their first letters where the words are short
    """

    token: Uint64s
    weight: Float32s
    common_at: Uint8s
    part_start: Int64s
    part_weight: Float64s
    slot_tag: Uint8s
    slot_place: Int32s
    place: Int32s
    place_skip: Uint8s
    part_at: Int32s
    filter_words: Uint64s
    front_words: Uint64s
    letters: Uint8s
    letter_tag: Uint8s
    letter_place: Int32s
    letter_heads: Uint64s


@lean_kernel
def place_of(value: int) -> int:
    """The token that an entry of `GramTable.place` names; a gram's last place t is -1 - t."""
    return value if value >= 0 else -1 - value


@lean_kernel
def part_of(where: int, part_at: Int32s, part_start: Int64s) -> int:
    """The part that a token is in."""
    part = int64(part_at[where >> PART_SHIFT])
    while part_start[part + 1] <= where:
        part += 1
    return part


@lean_kernel
def power(base: np.uint64, exponent: int) -> np.uint64:
    """`base` to the power of `exponent`, modulo 2**64."""
    value = _ONE
    for _ in range(exponent):
        value = value * base
    return value


@lean_kernel
def hash_short_grams(token: Uint64s, lo: int, hi: int, n: int, out: Uint64s) -> None:
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
            mixed = out[i] * GRAM_SPREAD
            out[i] = mixed ^ (mixed >> np.uint64(32))


@lean_kernel
def hash_grams(token: Uint64s, lo: int, hi: int, n: int, out: Uint64s) -> int:
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
    mixed = value * GRAM_SPREAD
    out[0] = mixed ^ (mixed >> np.uint64(32))
    for i in range(1, count):
        value = value * GRAM_BASE + token[lo + i + n - 1] - token[lo + i - 1] * drop
        mixed = value * GRAM_SPREAD
        out[i] = mixed ^ (mixed >> np.uint64(32))
    return count


@kernel
def item_grams(
    token: Uint64s, part_start: Int64s, n: int, stride: int, share: tuple[int, int]
) -> tuple[Uint64s, Int32s, Int32s]:
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
            mixed = value * GRAM_SPREAD
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
def hash_gram(token: Uint64s, at: int, n: int) -> np.uint64:
    """Spread hash of the gram of n tokens at token[at]: what `hash_grams` says of it."""
    value = np.uint64(0)
    for i in range(at, at + n):
        value = value * GRAM_BASE + token[i]
    mixed = value * GRAM_SPREAD
    return mixed ^ (mixed >> _HALF)


@lean_kernel
def tag_of(gram: np.uint64) -> int:
    """The tag of a gram's hash, 1..255."""
    return max(int64(gram & _TAG_BITS), 1)


@lean_kernel
def slot_of(gram: np.uint64, n_slots: int) -> int:
    """Where in a table of so many slots (fewer than 2**32) the search for a gram begins."""
    return int64(((gram >> _HALF) * np.uint64(n_slots)) >> _HALF)


@kernel
def fill_table(
    token: Uint64s,
    n: int,
    place: Int32s,
    slot_tag: Uint8s,
    slot_place: Int32s,
    filter_words: Uint64s,
) -> None:
    """Enter the grams of n tokens at `place`, in their order, into the table and the filter.

    slot_tag  all NO_TAG before, and more slots than there are grams
    """
    n_slots = slot_tag.shape[0]
    words = np.uint64(filter_words.shape[0] - 1)
    keys = np.empty(_HASHED_AT_ONCE, np.uint64)
    begins = np.empty(_HASHED_AT_ONCE, np.int64)
    following = int64(0)
    while following < place.shape[0]:
        count = int64(0)
        while count < _HASHED_AT_ONCE and following < place.shape[0]:
            if following == 0 or place[following - 1] < 0:
                key = hash_gram(token, place_of(int64(place[following])), n)
                prefetch(slot_tag, slot_of(key, n_slots))
                prefetch(slot_place, slot_of(key, n_slots))
                prefetch(filter_words, int64((key >> WORD_SHIFT) & words))
                keys[count] = key
                begins[count] = following
                count += 1
            following += 1
        for i in range(count):
            slot = slot_of(keys[i], n_slots)
            while slot_tag[slot] != NO_TAG:
                slot += 1
                if slot == n_slots:
                    slot = int64(0)
            slot_tag[slot] = tag_of(keys[i])
            slot_place[slot] = begins[i]
            filter_words[(keys[i] >> WORD_SHIFT) & words] |= bits_of(keys[i])


@lean_kernel
def find_hits(
    grams: Uint64s,
    count: int,
    size: int,
    gram_table: GramTable,
    hit_at: Int32s,
    hit_gram: Int32s,
    known: tuple[int, int],
) -> int:
    """Which of a document's grams[:count], of `size` tokens each, are item grams.

    known     (first, found): grams[0] is the document's gram number `first`; hits of those before
    hit_at    int32[>= found + count], written from `found` on: number of the gram in the document
    hit_gram  the same, written: where the gram's places begin in the gram table
    return    number of hits so far
    """
    first, found = known
    filter_words = gram_table.filter_words
    token, place = gram_table.token, gram_table.place
    slot_tag, slot_place = gram_table.slot_tag, gram_table.slot_place
    front_words = gram_table.front_words
    n_slots = slot_tag.shape[0]
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
        slot = slot_of(grams[hit_at[j]], n_slots)
        prefetch(slot_tag, slot)
        prefetch(slot_place, slot)
    for j in range(found, maybe):
        prefetch(place, int64(slot_place[slot_of(grams[hit_at[j]], n_slots)]))
    n = int64(found)
    for j in range(found, maybe):
        i = hit_at[j]
        key = grams[i]
        tag = tag_of(key)
        slot = slot_of(key, n_slots)
        while slot_tag[slot] != NO_TAG:
            if slot_tag[slot] == tag:
                at = slot_place[slot]
                if hash_gram(token, place_of(int64(place[at])), size) == key:
                    hit_at[n] = first + i
                    hit_gram[n] = at
                    n += 1
                    break
            slot += 1
            if slot == n_slots:
                slot = int64(0)
    return n


@kernel
def count_owners(gram_start: Int32s, place_part: Int32s, benchmark: Int32s, owners: Int32s) -> None:
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
    gram_start: Int32s, place_part: Int32s, owners: Int32s, n_parts: int, limits: tuple[int, int]
) -> Bools:
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
    gram_start: Int32s, part_start: Int64s, min_run: int, place: Int32s, place_part: Int32s
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


@kernel
def note_skips(
    token: Uint64s,
    part_start: Int64s,
    grams: tuple[Int32s, Bools],
    place: Int32s,
    place_part: Int32s,
) -> Uint8s:
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
