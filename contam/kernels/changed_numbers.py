"""Detect copies of a question that have other numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel
from contam.kernels.bits import bit_of
from contam.kernels.constants import LEAST_NUMBERS
from contam.kernels.match_rows import (
    MATCH_ITEM,
    PIECE_ITEM,
    PIECE_LENGTH,
    PIECE_PART,
    QUESTION,
    MatchRows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def renumbered_shares(
    rows: MatchRows,
    first_piece: NDArray[np.int64],
    part_start: NDArray[np.int64],
    is_number: NDArray[np.uint8],
) -> NDArray[np.float32]:
    """How much of each match's question stands there beside its numbers, all of which are others.

    first_piece        int64[matches + 1], where a match's pieces begin
    part_start         int64[4 * (items and variants) + 1], where the tokens of their parts begin
    is_number          uint8[tokens / 8], which of these are numbers: one bit each, the lowest first
    return             float32[matches], share of the question's other tokens that any piece holds;
                       0 where fewer than LEAST_NUMBERS numbers lie between the first token held and
                       the last, or one of them is held
    """
    n = int64(rows.used[0])
    share = np.zeros(n, np.float32)
    held = np.zeros(0, np.bool_)
    for match in range(n):
        part = 4 * int64(rows.matches[match, MATCH_ITEM]) + QUESTION
        first = part_start[part]
        m = part_start[part + 1] - first
        lo, hi = m, int64(0)
        for p in range(first_piece[match], first_piece[match + 1]):
            if rows.pieces[p, PIECE_PART] == QUESTION:
                begin = int64(rows.pieces[p, PIECE_ITEM])
                lo, hi = min(lo, begin), max(hi, begin + int64(rows.pieces[p, PIECE_LENGTH]))
        between = int64(0)
        for t in range(first + lo, first + hi):
            between += bit_of(is_number, t)
        if between < LEAST_NUMBERS:
            continue
        if held.shape[0] < m:
            held = np.zeros(2 * m, np.bool_)
        held[:m] = False
        for p in range(first_piece[match], first_piece[match + 1]):
            if rows.pieces[p, PIECE_PART] == QUESTION:
                begin = int64(rows.pieces[p, PIECE_ITEM])
                held[begin : begin + int64(rows.pieces[p, PIECE_LENGTH])] = True
        others = int64(0)
        found = int64(0)
        kept = int64(0)
        for t in range(m):
            number = bit_of(is_number, first + t) != 0
            kept += int64(number and held[t])
            others += int64(not number)
            found += int64(held[t] and not number)
        if kept == 0 and others > 0:
            share[match] = np.float32(found / others)
    return share
