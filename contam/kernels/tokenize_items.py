"""Tokenise all item parts, one behind the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel
from contam.kernels.tokens import CHARS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.kernels.chars import CharTables

#: More items than this hold a gram like this many.
MOST_SHARED = 255


@kernel
def tokenize_parts(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    unit: int,
    tables: CharTables,
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
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
def code_point_spans(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
) -> NDArray[np.int32]:
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
def note_shared(
    where: NDArray[np.int32], owners: NDArray[np.int32], n: int, shared: NDArray[np.uint8]
) -> None:
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
def template_weights(
    base: NDArray[np.float32], shared: NDArray[np.uint8], most: float, floor: float
) -> NDArray[np.float32]:
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
