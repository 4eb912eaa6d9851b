"""Measure what a document tells of an item's answer, and see copies that have other numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.bits import bit_of
from contam.kernels.constants import (
    ANSWER_LETTERS,
    ANSWER_RUN,
    ANSWER_WEIGHT,
    LEAST_NUMBERS,
    SEEN_WITHIN,
)
from contam.kernels.match_rows import (
    ANSWER,
    MATCH_ITEM,
    PIECE_DOC,
    PIECE_ITEM,
    PIECE_LENGTH,
    PIECE_PART,
    QUESTION,
    MatchRows,
)
from contam.kernels.tokens import CHARS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.kernels.gram_table import GramTable


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


@kernel
def told_answers(
    rows: MatchRows,
    first_piece: NDArray[np.int64],
    unit: int,
    min_run: int,
    gram_table: GramTable,
) -> NDArray[np.int32]:
    """Tokens of the longest stretch of each match's answer that says enough, int32[matches].

    A stretch is tokens in a row that belong to the answer alone: a quotation of the passage, a
    choice or a question that the answer repeats tells nobody the answer.

    first_piece    int64[matches + 1], where a match's pieces begin
    unit, min_run  of the view: fewer tokens in a row of another part are no quotation
    """
    n = int64(rows.used[0])
    fewer = (ANSWER_LETTERS if unit == CHARS else ANSWER_RUN) - 1
    told = np.zeros(n, np.int32)
    others = np.zeros(0, np.bool_)
    for match in range(n):
        first = gram_table.part_start[4 * int64(rows.matches[match, MATCH_ITEM]) + ANSWER]
        for p in range(first_piece[match], first_piece[match + 1]):
            length = int64(rows.pieces[p, PIECE_LENGTH])
            if rows.pieces[p, PIECE_PART] != ANSWER or length <= max(told[match], fewer):
                continue
            if others.shape[0] <= length:
                others = np.zeros(2 * length, np.bool_)
            here = (first_piece[match], first_piece[match + 1])
            mark_others(rows, here, p, min_run, others)
            item = first + int64(rows.pieces[p, PIECE_ITEM])
            begin = int64(0)
            for t in range(length + 1):
                if others[t]:
                    alone = t - begin
                    if alone > max(told[match], fewer) and says_enough(
                        gram_table, item + begin, alone
                    ):
                        told[match] = alone
                    begin = t + 1
    return told


@lean_kernel
def mark_others(
    rows: MatchRows,
    pieces: tuple[int, int],
    own: int,
    min_run: int,
    others: NDArray[np.bool_],
) -> None:
    """Mark which tokens of a piece other parts of the item hold, too, and the one behind it."""
    begin = int64(rows.pieces[own, PIECE_DOC])
    length = int64(rows.pieces[own, PIECE_LENGTH])
    others[:length] = False
    others[length] = True
    for p in range(pieces[0], pieces[1]):
        if rows.pieces[p, PIECE_PART] != ANSWER and rows.pieces[p, PIECE_LENGTH] >= min_run:
            lo = max(int64(rows.pieces[p, PIECE_DOC]) - begin, 0)
            hi = int64(rows.pieces[p, PIECE_DOC]) + int64(rows.pieces[p, PIECE_LENGTH]) - begin
            for t in range(lo, min(hi, length)):
                others[t] = True


@lean_kernel
def says_enough(gram_table: GramTable, first: int, n: int) -> bool:
    """Whether n tokens of the items weigh ANSWER_WEIGHT, repeated pairs of tokens counted once."""
    token = gram_table.token
    weight = 0.0
    for t in range(first, first + n):
        repeated = False
        for s in range(max(first + 1, t - SEEN_WITHIN), t):
            if token[s] == token[t] and token[s - 1] == token[t - 1]:
                repeated = True
                break
        if not repeated:
            weight += gram_table.weight[t]
            if weight >= ANSWER_WEIGHT:
                return True
    return False
