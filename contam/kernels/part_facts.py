"""Compute facts about item parts besides their tokens, and combine their grams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel
from contam.kernels.bits import prefetch
from contam.kernels.gram_table import AHEAD, EMPTY

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ONE = np.uint64(1)


@kernel
def white_space_at(data: NDArray[np.uint8], at: int, end: int) -> int:
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
def count_words(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
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
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
    every: int,
    cut: int,
) -> NDArray[np.int32]:
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
def word_starts(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
) -> NDArray[np.bool_]:
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
def group_grams(
    grams: NDArray[np.uint64],
    slot: NDArray[np.int32],
    keys: NDArray[np.uint64],
    gram_of: NDArray[np.int32],
) -> int:
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
    gram_of: NDArray[np.int32],
    where: NDArray[np.int32],
    part_of: NDArray[np.int32],
    gram_start: NDArray[np.int32],
    place: NDArray[np.int32],
    place_part: NDArray[np.int32],
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
