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
    from contam.kernels._jit import Float32s, Int16s, Int32s, Int64s, Uint64s

_SKIP_ITEM: Final = round(SKIP_ITEM * WEIGHT_SHARES)
_SKIP_DOC: Final = round(SKIP_DOC * WEIGHT_SHARES)
_MOST_DROP: Final = round(MOST_DROP * WEIGHT_SHARES)

#: Tokens of the document are found by their top bits.
_BUCKETS: Final = 512
_BUCKET_SHIFT: Final = np.uint64(64 - 9)
#: Numbers of tokens, and of pairs counted from 1, have so many bits: MOST_ITEM * MOST_DOC is less.
_BITS: Final = 16
_NUMBER: Final = (1 << _BITS) - 1
#: Ways that are compared together.
_AT_ONCE: Final = 8


class FillScratch(NamedTuple):
    """Buffers for one stretch; contents mean nothing between calls, but for `matched`.

    last, before  int16[_BUCKETS], int16[MOST_DOC + 1]: the last document token of each bucket, and
                  the one before each in its bucket; tokens count from 1, 0 is none
    way           int64[MOST_DOC + 1 + _AT_ONCE]: what the best way to any of so many document
                  tokens and fewer is worth, and in the lowest _BITS the pair it ends in, from 1 on
    pair          int64[MOST_ITEM * MOST_DOC], equal tokens: of the item, of the document, and the
                  pair before them on their best way, in _BITS each
    matched       int32[MOST_ITEM + 1, 2], the answer: index in the item's and the document's arrays
    """

    last: Int16s
    before: Int16s
    way: Int64s
    pair: Int64s
    matched: Int32s


def new_fill_scratch() -> FillScratch:
    """Buffers for the largest stretch."""
    return FillScratch(
        last=np.empty(_BUCKETS, np.int16),
        before=np.empty(MOST_DOC + 1, np.int16),
        way=np.empty(MOST_DOC + 1 + _AT_ONCE, np.int64),
        pair=np.empty(MOST_ITEM * MOST_DOC, np.int64),
        matched=np.empty((MOST_ITEM + 1, 2), np.int32),
    )


@lean_kernel
def index_words(words: Uint64s, origin: int, step: int, n: int, scratch: FillScratch) -> None:
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
    words: Uint64s, origin: int, step: int, token: np.uint64, scratch: FillScratch
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
    item: tuple[Uint64s, Float32s, int, int],
    doc: tuple[Uint64s, int, int],
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
    way, pair = scratch.way, scratch.pair
    # Tokens are counted from the anchor on.
    step = -1 if mode < 0 else 1
    origin = i0 + m if mode < 0 else i0 - 1
    origin_doc = d0 + n if mode < 0 else d0 - 1
    m = min(m, MOST_ITEM)
    n = min(n, MOST_DOC)
    index_words(words, origin_doc, step, n, scratch)
    for y in range(n + 1):
        way[y] = 0
    # Pairs so far, and the number of the best one, from 1 on.
    count = 0
    best = 0
    chosen = 0
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
                before = way[y - 1]
                reached = (before >> _BITS) + gain + _SKIP_ITEM + _SKIP_DOC
                pair[count] = ((x << _BITS | y) << _BITS) | (before & _NUMBER)
                count += 1
                least = reached << _BITS
                if way[y] >> _BITS == reached:
                    way[y] = least | count
                # The further, the more: those that are worth less follow each other.
                z = y
                while z <= n and way[z] < least:
                    for k in range(_AT_ONCE):
                        way[z + k] = least | count if way[z + k] < least else way[z + k]
                    z += _AT_ONCE
                score = reached - _SKIP_ITEM * x - _SKIP_DOC * y
                top = max(top, score)
                if score > best or (score == best and chosen > first):
                    best = score
                    chosen = count
            y = int64(scratch.before[y])
        if mode != 0 and top < best - _MOST_DROP:
            break
    if mode == 0:
        chosen = way[n] & _NUMBER
    length = 0
    at = chosen
    while at > 0:
        length += 1
        at = pair[at - 1] & _NUMBER
    at = chosen
    for k in range(length):
        row = k if mode < 0 else length - 1 - k
        found = pair[at - 1]
        scratch.matched[row, 0] = origin + step * (found >> 2 * _BITS)
        scratch.matched[row, 1] = origin_doc + step * (found >> _BITS & _NUMBER)
        at = found & _NUMBER
    return length
