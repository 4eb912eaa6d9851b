"""Alignment of the stretches between and beside exact runs, token by token."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

_STOP = 0
_BOTH = 1
_ITEM = 2
_DOC = 3


@lean_kernel
def fill_stretch(
    item: tuple[NDArray[np.uint64], NDArray[np.float32], int, int],
    doc: tuple[NDArray[np.uint64], int, int],
    mode: int,
    score: NDArray[np.float32],
    step: NDArray[np.uint8],
    matched: NDArray[np.int32],
) -> int:
    """Equal tokens of two stretches, in order, that are worth the tokens skipped for them.

    item     (token hashes, weights, first, number of tokens) of the item's stretch
    doc      (token hashes, first, number of tokens) of the document's stretch
    mode     0 both ends are anchored; 1 only the left end, so the best prefix pair is taken;
             -1 only the right end, so the best suffix pair is taken
    score, step   scratch of CELLS
    matched  int32[>= number of item tokens, 2], written: index in the item's and document's arrays
    return   number of matched pairs, in rising order
    """
    tokens, weights, i0, m = item
    words, d0, n = doc
    m = min(m, MOST_ITEM)
    n = min(n, MOST_DOC)
    if mode < 0:
        i0 += item[3] - m
        d0 += doc[2] - n
    width = n + 1
    best = np.float32(0.0)
    best_x = 0
    best_y = 0
    for y in range(width):
        score[y] = -SKIP_DOC * np.float32(y)
        step[y] = _DOC
    step[0] = _STOP
    for x in range(1, m + 1):
        at = i0 + m - x if mode < 0 else i0 + x - 1
        token = tokens[at]
        gain = weights[at]
        row = x * width
        top = -SKIP_ITEM * np.float32(x)
        score[row] = -SKIP_ITEM * np.float32(x)
        step[row] = _ITEM
        for y in range(1, width):
            value = score[row - width + y] - SKIP_ITEM
            how = _ITEM
            other = score[row + y - 1] - SKIP_DOC
            if other > value:
                value = other
                how = _DOC
            where = d0 + n - y if mode < 0 else d0 + y - 1
            if words[where] == token:
                both = score[row - width + y - 1] + gain
                if both >= value:
                    value = both
                    how = _BOTH
            score[row + y] = value
            step[row + y] = how
            top = max(top, value)
            if value > best:
                best = value
                best_x = x
                best_y = y
        if mode != 0 and top < best - MOST_DROP:
            break
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
