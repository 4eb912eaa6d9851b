"""Find choices and answers near a question in a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import lean_kernel
from contam.kernels.constants import CLOSE, SURE_ANSWER

if TYPE_CHECKING:
    from numpy.typing import NDArray


@lean_kernel
def find_tokens(
    doc: NDArray[np.uint64], lo: int, hi: int, token: NDArray[np.uint64], first: int, m: int
) -> int:
    """First position in doc[lo:hi] where the m item tokens from `first` on stand whole, or -1."""
    for at in range(lo, hi - m + 1):
        length = 0
        while length < m and doc[at + length] == token[first + length]:
            length += 1
        if length == m:
            return at
    return -1


@lean_kernel
def is_known(keys: NDArray[np.uint64], key: np.uint64) -> bool:
    """Whether the sorted keys hold the key."""
    at = np.searchsorted(keys, key)
    return bool(at < keys.shape[0] and keys[at] == key)


@lean_kernel
def answer_position(
    doc: NDArray[np.uint64],
    limits: tuple[int, int, bool],
    answer: tuple[NDArray[np.uint64], int, int],
    marks: tuple[np.uint64, np.uint64],
    answer_words: NDArray[np.uint64],
) -> tuple[int, int]:
    """Where the answer stands in doc[lo:hi], and its length in tokens; (-1, 0) where it does not.

    limits        (lo, hi, listed): lo is the end of the question (and of its choices, when they are
                  listed there: then the answer must be told apart from the list)
    answer        (token hashes, first token, tokens)
    marks         hashes of the letter and the number of the right choice, 0 when there is none
    answer_words  uint64[...], sorted hashes of words that announce an answer
    """
    lo, hi, listed = limits
    token, first, m = answer
    if m >= SURE_ANSWER and not listed:
        at = find_tokens(doc, lo, hi, token, first, m)
        if at >= 0:
            return at, m
    if m > 0:
        at = find_tokens(doc, lo, min(hi, lo + CLOSE + m), token, first, m)
        if at >= 0:
            return at, m
    for i in range(lo, hi):
        if not is_known(answer_words, doc[i]):
            continue
        if m > 0:
            at = find_tokens(doc, i + 1, min(hi, i + 1 + CLOSE + m), token, first, m)
            if at >= 0:
                return at, m
        if marks[0] != np.uint64(0) and i + 1 < hi and doc[i + 1] == marks[1]:
            return i + 1, 1
        if marks[0] != np.uint64(0):
            for j in range(i + 1, min(hi, i + 1 + CLOSE)):
                if doc[j] == marks[0]:
                    return j, 1
    return -1, 0
