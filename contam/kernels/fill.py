"""Align the stretches between and beside exact runs, token by token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.constants import (
    MOST_DOC,
    MOST_DROP,
    MOST_ITEM,
    SKIP_DOC,
    SKIP_ITEM,
    WEIGHT_SHARES,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SKIP_ITEM: Final = round(SKIP_ITEM * WEIGHT_SHARES)
_SKIP_DOC: Final = round(SKIP_DOC * WEIGHT_SHARES)
_MOST_DROP: Final = round(MOST_DROP * WEIGHT_SHARES)

#: Tokens of the document are found by their top bits.
_BUCKETS: Final = 512
_BUCKET_SHIFT: Final = np.uint64(64 - 9)
_NOTHING: Final = -1


class FillScratch(NamedTuple):
    """Buffers for one stretch; contents mean nothing between calls, but for `matched`.

    last, before  int16[_BUCKETS], int16[MOST_DOC + 1]: the last document token of each bucket, and
                  the one before each in its bucket; tokens count from 1, 0 is none
    value, owner  int64[MOST_DOC + 1], int32[MOST_DOC + 1]: the best way to any of so many document
                  tokens and fewer, and the pair it ends in
    pair          int32[MOST_ITEM * MOST_DOC, 3], equal tokens: of the item, of the document, and
                  the pair before them on their best way
    matched       int32[MOST_ITEM + 1, 2], the answer: index in the item's and the document's arrays
    """

    last: NDArray[np.int16]
    before: NDArray[np.int16]
    value: NDArray[np.int64]
    owner: NDArray[np.int32]
    pair: NDArray[np.int32]
    matched: NDArray[np.int32]


def new_fill_scratch() -> FillScratch:
    """Buffers for the largest stretch."""
    return FillScratch(
        last=np.empty(_BUCKETS, np.int16),
        before=np.empty(MOST_DOC + 1, np.int16),
        value=np.empty(MOST_DOC + 1, np.int64),
        owner=np.empty(MOST_DOC + 1, np.int32),
        pair=np.empty((MOST_ITEM * MOST_DOC, 3), np.int32),
        matched=np.empty((MOST_ITEM + 1, 2), np.int32),
    )


@lean_kernel
def index_words(
    words: NDArray[np.uint64], origin: int, step: int, n: int, scratch: FillScratch
) -> None:
    """Enter n document tokens: number y is words[origin + step * y], from y = 1 on."""
    last, before = scratch.last, scratch.before
    for bucket in range(_BUCKETS):
        last[bucket] = 0
    for y in range(1, n + 1):
        bucket = words[origin + step * y] >> _BUCKET_SHIFT
        before[y] = last[bucket]
        last[bucket] = y


@lean_kernel
def is_indexed(
    words: NDArray[np.uint64], origin: int, step: int, token: np.uint64, scratch: FillScratch
) -> bool:
    """Whether a token is among those entered with the same `origin` and `step`."""
    y = int64(scratch.last[token >> _BUCKET_SHIFT])
    while y > 0:
        if words[origin + step * y] == token:
            return True
        y = int64(scratch.before[y])
    return False


@lean_kernel
def fill_stretch(
    item: tuple[NDArray[np.uint64], NDArray[np.float32], int, int],
    doc: tuple[NDArray[np.uint64], int, int],
    mode: int,
    scratch: FillScratch,
) -> int:
    """Equal tokens of two stretches, in order, that are worth the tokens skipped for them.

    item     (token hashes, weights, first, number of tokens) of the item's stretch
    doc      (token hashes, first, number of tokens) of the document's stretch
    mode     0 both ends are anchored; 1 only the left end, so the best prefix pair is taken;
             -1 only the right end, so the best suffix pair is taken
    return   number of matched pairs in scratch.matched, in rising order

    Only equal tokens are looked at: what is skipped between two pairs costs the same by whichever
    way, so every pair follows the best one before it on both sides. Of ways that are worth the same
    the first is kept, by item and from the far end of the document; a pair whose document token is
    the very last of those allowed comes before all others.
    """
    tokens, weights, i0, m = item
    words, d0, n = doc
    value, owner, pair = scratch.value, scratch.owner, scratch.pair
    # Tokens are counted from the anchor on.
    step = -1 if mode < 0 else 1
    origin = i0 + m if mode < 0 else i0 - 1
    origin_doc = d0 + n if mode < 0 else d0 - 1
    m = min(m, MOST_ITEM)
    n = min(n, MOST_DOC)
    index_words(words, origin_doc, step, n, scratch)
    for y in range(n + 1):
        value[y] = 0
        owner[y] = _NOTHING
    count = 0
    best = 0
    chosen = _NOTHING
    top = 0
    for x in range(1, m + 1):
        top -= _SKIP_ITEM
        token = tokens[origin + step * x]
        y = int64(scratch.last[token >> _BUCKET_SHIFT])
        first = count
        while y > 0:
            if words[origin_doc + step * y] == token:
                gain = int64(weights[origin + step * x] * np.float32(WEIGHT_SHARES))
                # Values leave out what is skipped up to the pair, as if nothing were.
                reached = value[y - 1] + gain + _SKIP_ITEM + _SKIP_DOC
                pair[count, 0] = x
                pair[count, 1] = y
                pair[count, 2] = owner[y - 1]
                if value[y] == reached:
                    owner[y] = count
                z = y
                while z <= n and value[z] < reached:
                    value[z] = reached
                    owner[z] = count
                    z += 1
                score = reached - _SKIP_ITEM * x - _SKIP_DOC * y
                top = max(top, score)
                if score > best or (score == best and chosen >= first):
                    best = score
                    chosen = count
                count += 1
            y = int64(scratch.before[y])
        if mode != 0 and top < best - _MOST_DROP:
            break
    if mode == 0:
        chosen = int64(owner[n])
    length = 0
    at = chosen
    while at >= 0:
        length += 1
        at = int64(pair[at, 2])
    at = chosen
    for k in range(length):
        row = k if mode < 0 else length - 1 - k
        scratch.matched[row, 0] = origin + step * pair[at, 0]
        scratch.matched[row, 1] = origin_doc + step * pair[at, 1]
        at = int64(pair[at, 2])
    return length
