"""Align the words of a question with those of a text, in order, like words as well as the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Worse than any alignment.
_NEVER = -(1 << 60)
#: How a cell got its value: a pair behind another, the first pair, without the question's word,
#: without the text's word.
_ON, _FIRST, _UP, _LEFT = range(4)


@kernel
def align_like_words(gain: NDArray[np.int32], skip: int, found: NDArray[np.int32]) -> int:
    """The pairs of words in order that gain most.

    gain    int32[m, n], what word i of the question beside word j of the text gains; 0: no pair
    skip    what a word of the text costs that stands between pairs and is in none
    found   int32[m], written: the word of the text beside each of the question, or -1
    return  what they gain together, less what was skipped; 0 without a pair
    """
    m, n = gain.shape
    best = np.full((m + 1, n + 1), _NEVER, np.int64)
    how = np.zeros((m + 1, n + 1), np.int8)
    found[:] = -1
    most = int64(0)
    at = -1
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            value, step = best[i - 1, j], _UP
            if best[i, j - 1] - skip > value:
                value, step = best[i, j - 1] - skip, _LEFT
            if gain[i - 1, j - 1] > 0:
                before = best[i - 1, j - 1]
                pair = gain[i - 1, j - 1] + max(before, int64(0))
                if pair >= value:
                    value = pair
                    step = _ON if before > 0 else _FIRST
            best[i, j], how[i, j] = value, step
            if i == m and value > most:
                most, at = value, j
    if at < 0:
        return int64(most)
    i, j = m, at
    while True:
        step = how[i, j]
        if step == _UP:
            i -= 1
        elif step == _LEFT:
            j -= 1
        else:
            found[i - 1] = np.int32(j - 1)
            i -= 1
            j -= 1
            if step == _FIRST:
                return int64(most)
