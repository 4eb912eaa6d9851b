"""Alignment of the stretches between and beside exact runs, token by token."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What skipping one item token or one document token costs, in token weights.
SKIP_ITEM = np.float32(0.16)
SKIP_DOC = np.float32(0.06)
#: Largest stretch that is aligned, in tokens of either side.
MOST_ITEM = 160
MOST_DOC = 320
#: Cells of the scratch tables.
CELLS = (MOST_ITEM + 1) * (MOST_DOC + 1)

#: An open end is given up where the best alignment falls this far behind the best so far.
MOST_DROP = np.float32(2.5)
#: More than single precision loses on the longest way through the table.
_SLACK = np.float32(0.02)
#: Where no way leads, and what is hoped for where every way must be followed to its end.
_NOWHERE = np.float32(-1e30)
_ALL = np.float32(1e30)

_STOP = 0
_BOTH = 1
_ITEM = 2
_DOC = 3

#: A set of tokens that may hold more than was put in: one bit a token, chosen by its top bits.
_SEEN_WORDS = 128
_SEEN_SHIFT = np.uint64(64 - 13)
_SIX = np.uint64(6)
_SIX_BITS = np.uint64(63)
_ONE = np.uint64(1)


class FillScratch(NamedTuple):
    """Buffers for one stretch; contents mean nothing between calls, but for `matched`.

    score    float32[MOST_DOC + 1], best values of one row of the table
    step     uint8[CELLS], how each cell was reached
    matched  int32[MOST_ITEM + 1, 2], the answer: index in the item's and the document's arrays
    rest     float32[MOST_ITEM + 1], most that the tokens from each row on can still add
    seen     uint64[_SEEN_WORDS], the tokens of the document's stretch
    """

    score: NDArray[np.float32]
    step: NDArray[np.uint8]
    matched: NDArray[np.int32]
    rest: NDArray[np.float32]
    seen: NDArray[np.uint64]


def new_fill_scratch() -> FillScratch:
    """Buffers for the largest stretch."""
    return FillScratch(
        score=np.empty(MOST_DOC + 1, np.float32),
        step=np.empty(CELLS, np.uint8),
        matched=np.empty((MOST_ITEM + 1, 2), np.int32),
        rest=np.empty(MOST_ITEM + 1, np.float32),
        seen=np.empty(_SEEN_WORDS, np.uint64),
    )


@lean_kernel
def mark_tokens(words: NDArray[np.uint64], first: int, n: int, seen: NDArray[np.uint64]) -> None:
    """Make `seen` the set of the n tokens from `first` on."""
    for k in range(_SEEN_WORDS):
        seen[k] = np.uint64(0)
    for y in range(first, first + n):
        bit = words[y] >> _SEEN_SHIFT
        seen[bit >> _SIX] |= _ONE << (bit & _SIX_BITS)


@lean_kernel
def may_hold(seen: NDArray[np.uint64], token: np.uint64) -> bool:
    """Whether the marked tokens may hold this one; never False where they do."""
    bit = token >> _SEEN_SHIFT
    return bool((seen[bit >> _SIX] >> (bit & _SIX_BITS)) & _ONE)


@lean_kernel
def hope_of_rows(
    item: tuple[NDArray[np.uint64], NDArray[np.float32], int, int],
    mode: int,
    seen: NDArray[np.uint64],
    rest: NDArray[np.float32],
) -> bool:
    """rest[x] = more than a way through the table can still gain once x item tokens are read.

    Each of the next tokens is matched, where it may be, or skipped; the way may end behind any.
    return  whether any item token may be among those seen
    """
    tokens, weights, i0, m = item
    shared = False
    hope = np.float32(0.0)
    slack = _SLACK if mode != 0 else _ALL
    rest[m] = slack
    for x in range(m - 1, -1, -1):
        at = i0 + m - 1 - x if mode < 0 else i0 + x
        if may_hold(seen, tokens[at]):
            shared = True
            hope += weights[at]
        else:
            hope = max(hope - SKIP_ITEM, np.float32(0.0))
        rest[x] = hope + slack
    return shared


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

    Beside one anchor, a cell from which not even every equal token still to come would lead to
    more than the best so far is left out: no best way leads through it.
    """
    tokens, weights, i0, m = item
    words, d0, n = doc
    score, step, matched, rest = scratch.score, scratch.step, scratch.matched, scratch.rest
    m = min(m, MOST_ITEM)
    n = min(n, MOST_DOC)
    if mode < 0:
        i0 += item[3] - m
        d0 += doc[2] - n
    mark_tokens(words, d0, n, scratch.seen)
    if not hope_of_rows((tokens, weights, i0, m), mode, scratch.seen, rest):
        return 0
    width = n + 1
    best = np.float32(0.0)
    best_x = 0
    best_y = 0
    # Columns lo..hi of the row above may lead on; what lies outside is not there.
    lo = 0
    hi = 0
    for y in range(width):
        value = -SKIP_DOC * np.float32(y)
        if value + rest[0] < best:
            break
        score[y] = value
        step[y] = _DOC
        hi = y
    step[0] = _STOP
    for x in range(1, m + 1):
        at = i0 + m - x if mode < 0 else i0 + x - 1
        token = tokens[at]
        gain = weights[at]
        hope = rest[x]
        row = x * width
        first = -1
        last = -1
        top = _NOWHERE
        left = _NOWHERE
        diagonal = _NOWHERE
        y = lo
        if lo == 0:
            left = -SKIP_ITEM * np.float32(x)
            diagonal = score[0]
            top = left
            score[0] = left
            step[row] = _ITEM
            if left + hope >= best:
                first = 0
                last = 0
            y = 1
        while y <= n:
            above = score[y] if y <= hi else _NOWHERE
            value = above - SKIP_ITEM
            how = _ITEM
            other = left - SKIP_DOC
            if other > value:
                value = other
                how = _DOC
            where = d0 + n - y if mode < 0 else d0 + y - 1
            if words[where] == token:
                both = diagonal + gain
                if both >= value:
                    value = both
                    how = _BOTH
            if value + hope >= best:
                last = y
                if first < 0:
                    first = y
            elif y > hi:
                break
            score[y] = value
            step[row + y] = how
            top = max(top, value)
            if value > best:
                best = value
                best_x = x
                best_y = y
            diagonal = above
            left = value
            y += 1
        if mode != 0 and (first < 0 or top < best - MOST_DROP):
            break
        lo = first
        hi = last
    x, y = best_x, best_y
    if mode == 0:
        x, y = m, n
    count = 0
    while x > 0 or y > 0:
        how = step[x * width + y]
        if how == _BOTH:
            matched[count, 0] = i0 + m - x if mode < 0 else i0 + x - 1
            matched[count, 1] = d0 + n - y if mode < 0 else d0 + y - 1
            count += 1
            x -= 1
            y -= 1
        elif how == _ITEM:
            x -= 1
        else:
            y -= 1
    if mode >= 0:
        for k in range(count // 2):
            for side in range(2):
                kept = matched[k, side]
                matched[k, side] = matched[count - 1 - k, side]
                matched[count - 1 - k, side] = kept
    return count
