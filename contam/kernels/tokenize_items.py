"""Tokenise all item parts, one behind the other, and tell facts about them and their grams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel
from contam.kernels.bits import prefetch
from contam.kernels.gram_table import AHEAD, EMPTY
from contam.kernels.tokens import CHARS, tokenize

if TYPE_CHECKING:
    from contam.kernels._jit import Bools, Float32s, Int32s, Int64s, Uint8s, Uint64s
    from contam.kernels.chars import CharTables


#: More items than this hold a gram like this many.
MOST_SHARED = 255


@kernel
def tokenize_parts(
    data: Uint8s, offsets: Int64s, unit: int, tables: CharTables
) -> tuple[Uint64s, Int32s, Int64s]:
    """Tokens of texts that lie behind each other: text i is data[offsets[i] : offsets[i + 1]].

    return  (hashes uint64[t], spans int32[t, 2] in bytes of their text, starts int64[texts + 1])
    """
    n_texts = offsets.shape[0] - 1
    per_byte = 5 if unit == CHARS else 2
    longest = 0
    for i in range(n_texts):
        longest = max(longest, offsets[i + 1] - offsets[i])
    some_hashes = np.empty(per_byte * longest + 16, np.uint64)
    some_spans = np.empty((per_byte * longest + 16, 2), np.int32)
    hashes = np.empty(data.shape[0] // 4 + 64, np.uint64)
    spans = np.empty((data.shape[0] // 4 + 64, 2), np.int32)
    starts = np.zeros(n_texts + 1, np.int64)
    total = 0
    for i in range(n_texts):
        limits = (offsets[i], offsets[i + 1])
        n = tokenize(data, limits, unit, some_hashes, some_spans, tables)
        if total + n > hashes.shape[0]:
            capacity = 2 * (total + n)
            more_hashes = np.empty(capacity, np.uint64)
            more_hashes[:total] = hashes[:total]
            hashes = more_hashes
            more_spans = np.empty((capacity, 2), np.int32)
            more_spans[:total] = spans[:total]
            spans = more_spans
        hashes[total : total + n] = some_hashes[:n]
        spans[total : total + n] = some_spans[:n]
        total += n
        starts[i + 1] = total
    return hashes[:total].copy(), spans[:total].copy(), starts


@kernel
def code_point_spans(data: Uint8s, offsets: Int64s, starts: Int64s, spans: Int32s) -> Int32s:
    """Byte spans of tokens (see tokenize_parts) as code-point spans of their text."""
    points = np.empty_like(spans)
    for i in range(offsets.shape[0] - 1):
        lo = offsets[i]
        byte = 0
        point = 0
        for t in range(starts[i], starts[i + 1]):
            for side in range(2):
                target = int64(spans[t, side])
                while byte < target:
                    point += int64((data[lo + byte] & np.uint8(0xC0)) != np.uint8(0x80))
                    byte += 1
                while byte > target:
                    byte -= 1
                    point -= int64((data[lo + byte] & np.uint8(0xC0)) != np.uint8(0x80))
                points[t, side] = point
    return points


@kernel
def note_shared(where: Int32s, owners: Int32s, n: int, shared: Uint8s) -> None:
    """How many items hold the commonest gram that covers a token: shared, uint8[t], is raised.

    where   int32[places], first token of each gram place; owners int32[places]: items of the
            benchmark that hold the gram
    n       tokens of a gram
    Numbers above MOST_SHARED count as that.
    """
    for j in range(where.shape[0]):
        for t in range(where[j], where[j] + n):
            shared[t] = max(int64(shared[t]), min(int64(owners[j]), MOST_SHARED))


@kernel
def template_weights(base: Float32s, shared: Uint8s, most: float, floor: float) -> Float32s:
    """Token weights with the wording that many items of a benchmark share discounted.

    base    float32[t], what a token says by itself
    shared  uint8[t], see note_shared
    most    a token in a gram that this many items hold keeps `floor` of its weight
    The factor is 1 - ln(shared) / ln(most).
    """
    weight = np.empty_like(base)
    scale = np.log(most)
    for t in range(base.shape[0]):
        factor = 1.0
        owners = int64(shared[t])
        if owners > 1:
            factor = max(floor, 1.0 - np.log(owners) / scale)
        weight[t] = np.float32(base[t] * factor)
    return weight


_ONE = np.uint64(1)


@kernel
def white_space_at(data: Uint8s, at: int, end: int) -> int:
    """Bytes of the white space character that begins at data[at], 0 when it is another one.

    White space is what Python's `str.split` takes for it; data[:end] is valid UTF-8.
    """
    first = int64(data[at])
    if first < 0x80:
        return 1 if first == 0x20 or 0x09 <= first <= 0x0D or 0x1C <= first <= 0x1F else 0
    if first == 0xC2 and at + 1 < end:
        second = int64(data[at + 1])
        return 2 if second in (0x85, 0xA0) else 0
    if 0xE1 <= first <= 0xE3 and at + 2 < end:
        point = (
            (first - 0xE0) << 12 | (int64(data[at + 1]) & 0x3F) << 6 | int64(data[at + 2]) & 0x3F
        )
        if 0x2000 <= point <= 0x200A or point in (0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000):
            return 3
    return 0


@kernel
def count_words(data: Uint8s, offsets: Int64s) -> Int32s:
    """White-space separated words, int32[texts]; text i is data[offsets[i] : offsets[i + 1]]."""
    words = np.zeros(offsets.shape[0] - 1, np.int32)
    for i in range(offsets.shape[0] - 1):
        at, end = offsets[i], offsets[i + 1]
        inside = False
        found = 0
        while at < end:
            byte = int64(data[at])
            if 0x20 < byte < 0xC2 or byte > 0xE3:
                found += int64(not inside)
                inside = True
                at += 1
                continue
            blank = white_space_at(data, at, end)
            found += int64(blank == 0 and not inside)
            inside = blank == 0
            at += max(blank, 1)
        words[i] = found
    return words


@kernel
def longest_pieces(
    data: Uint8s, offsets: Int64s, starts: Int64s, spans: Int32s, every: int, cut: int
) -> Int32s:
    """Tokens of the longest piece of each text, int32[texts].

    starts, spans  see tokenize_parts
    every, cut     texts whose number modulo `every` is `cut` are pieces between line feeds; any
                   other text is one piece
    """
    longest = np.zeros(offsets.shape[0] - 1, np.int32)
    for i in range(offsets.shape[0] - 1):
        lo = offsets[i]
        best = 0
        begin = starts[i]
        for t in range(starts[i], starts[i + 1]):
            if i % every == cut and t > starts[i]:
                for at in range(lo + spans[t - 1, 1], lo + spans[t, 0]):
                    if data[at] == np.uint8(0x0A):
                        begin = t
            best = max(best, t + 1 - begin)
        longest[i] = best
    return longest


@kernel
def word_starts(data: Uint8s, offsets: Int64s, starts: Int64s, spans: Int32s) -> Bools:
    """Whether a token is the first of its text or stands behind ASCII white space, bool[tokens]."""
    fresh = np.zeros(spans.shape[0], np.bool_)
    for i in range(offsets.shape[0] - 1):
        lo = offsets[i]
        for t in range(starts[i], starts[i + 1]):
            found = t == starts[i]
            if not found:
                for at in range(lo + spans[t - 1, 0], lo + spans[t, 0]):
                    byte = int64(data[at])
                    found = found or byte == 0x20 or 0x09 <= byte <= 0x0D
            fresh[t] = found
    return fresh


@kernel
def group_grams(grams: Uint64s, slot: Int32s, keys: Uint64s, gram_of: Int32s) -> int:
    """Number equal gram hashes alike, in the order in which they first come.

    slot     int32[2**b], more slots than grams, all EMPTY before; used up
    keys     uint64[places], written: the hash of each number
    gram_of  int32[places], written: the number of each gram
    return   how many numbers there are
    """
    mask = np.uint64(slot.shape[0] - 1)
    n_keys = 0
    last = grams.shape[0] - 1
    for i in range(grams.shape[0]):
        prefetch(slot, int64(grams[min(i + AHEAD, last)] & mask))
        key = grams[i]
        at = key & mask
        while slot[at] != EMPTY and keys[slot[at]] != key:
            at = (at + _ONE) & mask
        if slot[at] == EMPTY:
            slot[at] = n_keys
            keys[n_keys] = key
            n_keys += 1
        gram_of[i] = slot[at]
    return n_keys


@kernel
def gather_places(
    gram_of: Int32s,
    where: Int32s,
    part_of: Int32s,
    gram_start: Int32s,
    place: Int32s,
    place_part: Int32s,
) -> None:
    """Places gram by gram, those of one gram in the order in which they came.

    where, part_of     of each place, as hash_item_grams gives them
    gram_start         int32[grams + 1], all 0 before; written: where a gram's places begin
    place, place_part  like where and part_of, written
    """
    n_grams = gram_start.shape[0] - 1
    for i in range(gram_of.shape[0]):
        gram_start[gram_of[i] + 1] += 1
    for gram in range(n_grams):
        gram_start[gram + 1] += gram_start[gram]
    free = gram_start[:n_grams].copy()
    for i in range(gram_of.shape[0]):
        gram = gram_of[i]
        place[free[gram]] = where[i]
        place_part[free[gram]] = part_of[i]
        free[gram] += 1
