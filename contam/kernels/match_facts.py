"""Tell more of matches: whose the text is, what is told of the answer, how scattered it stands."""

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
    RIVAL_LEAD,
    RIVAL_SHARE,
    RIVAL_WHOLE,
    SEEN_WITHIN,
)
from contam.kernels.match_rows import (
    ANSWER,
    MATCH_DOC,
    MATCH_EXACT,
    MATCH_ITEM,
    PIECE_ALIGNMENT,
    PIECE_DOC,
    PIECE_ITEM,
    PIECE_LENGTH,
    PIECE_MATCH,
    PIECE_PART,
    QUESTION,
    REAL_COVERAGE,
    MatchRows,
)
from contam.kernels.tokens import CHARS

if TYPE_CHECKING:
    from contam.kernels._jit import Bools, Float32s, Int32s, Int64s, Uint8s
    from contam.kernels.gram_table import GramTable


@lean_kernel
def question_coverage(rows: MatchRows, match: int) -> float:
    """How much of the question stands there, 1 where it stands word for word."""
    if rows.matches[match, MATCH_EXACT + QUESTION]:
        return 1.0
    return float(rows.reals[match, REAL_COVERAGE + QUESTION])


@kernel
def matched_text(rows: MatchRows, limits: tuple[int, int]) -> Int64s:
    """Stretches of the document in pieces[lo:hi] of one match, apart from its answer.

    return  int64[n, 2], first token and the one behind the last, ascending and apart
    """
    lo, hi = limits
    found = np.empty((hi - lo, 2), np.int64)
    order = np.argsort(rows.pieces[lo:hi, PIECE_DOC], kind="mergesort")
    n = 0
    for k in order:
        p = lo + k
        if rows.pieces[p, PIECE_PART] == ANSWER:
            continue
        start = int64(rows.pieces[p, PIECE_DOC])
        end = start + int64(rows.pieces[p, PIECE_LENGTH])
        if n > 0 and start <= found[n - 1, 1]:
            found[n - 1, 1] = max(found[n - 1, 1], end)
        else:
            found[n, 0] = start
            found[n, 1] = end
            n += 1
    return found[:n].copy()


@kernel
def find_in_document(
    rows: MatchRows,
    first_piece: Int64s,
    limits: tuple[int, int],
    benchmark: Int32s,
    competing_item: Int32s,
) -> None:
    """Find competing items among the matches lo..hi of one document; see find_competing_items."""
    lo, hi = limits
    n = 0
    whole = np.zeros(hi - lo, np.bool_)
    for match in range(lo, hi):
        whole[match - lo] = question_coverage(rows, match) >= RIVAL_WHOLE
        if whole[match - lo]:
            n += first_piece[match + 1] - first_piece[match]
    if n == 0:
        return
    held = np.empty((n, 3), np.int64)
    n = 0
    for match in range(lo, hi):
        if whole[match - lo]:
            text = matched_text(rows, (first_piece[match], first_piece[match + 1]))
            for k in range(text.shape[0]):
                held[n, 0] = text[k, 0]
                held[n, 1] = text[k, 1]
                held[n, 2] = match
                n += 1
    held = held[np.argsort(held[:n, 0], kind="mergesort")]
    starts = held[:, 0].copy()
    # No stretch up to here ends behind this token.
    furthest = np.empty(n, np.int64)
    end = int64(0)
    for k in range(n):
        end = max(end, held[k, 1])
        furthest[k] = end
    shared = np.zeros(hi - lo, np.int64)
    met = np.empty(hi - lo, np.int64)
    for match in range(lo, hi):
        coverage = question_coverage(rows, match)
        if coverage == 0.0 or coverage > 1.0 - RIVAL_LEAD:
            continue
        item = rows.matches[match, MATCH_ITEM]
        text = matched_text(rows, (first_piece[match], first_piece[match + 1]))
        total = int64(0)
        n_met = 0
        for t in range(text.shape[0]):
            total += text[t, 1] - text[t, 0]
            k = np.searchsorted(starts, text[t, 1]) - 1
            while k >= 0 and furthest[k] > text[t, 0]:
                common = min(held[k, 1], text[t, 1]) - max(held[k, 0], text[t, 0])
                other = held[k, 2]
                if common > 0:
                    if shared[other - lo] == 0:
                        met[n_met] = other
                        n_met += 1
                    shared[other - lo] += common
                k -= 1
        most = int64(0)
        for x in range(n_met):
            other = met[x]
            mine = shared[other - lo]
            shared[other - lo] = 0
            owner = rows.matches[other, MATCH_ITEM]
            if mine < RIVAL_SHARE * total or benchmark[owner] != benchmark[item]:
                continue
            if question_coverage(rows, other) - coverage < RIVAL_LEAD:
                continue
            if mine > most or (mine == most and owner < competing_item[match]):
                most = mine
                competing_item[match] = owner


@kernel
def find_competing_items(rows: MatchRows, first_piece: Int64s, benchmark: Int32s) -> Int32s:
    """Which other item of its benchmark each match's text belongs to.

    That is one whose question stands whole in the document, where it and its other parts hold most
    of the text that the match matches, while clearly less of the match's own question stands there.

    first_piece  int64[matches + 1], where a match's pieces begin
    benchmark    int32[items], which benchmark an item is of
    return       int32[matches], the item that holds most of it, the first of several; -1 for none
    """
    n = int64(rows.used[0])
    competing_item = np.full(n, -1, np.int32)
    lo = 0
    while lo < n:
        hi = lo + 1
        while hi < n and rows.matches[hi, MATCH_DOC] == rows.matches[lo, MATCH_DOC]:
            hi += 1
        if hi - lo > 1:
            find_in_document(rows, first_piece, (lo, hi), benchmark, competing_item)
        lo = hi
    return competing_item


@kernel
def first_pieces(rows: MatchRows) -> Int64s:
    """Where the pieces of each match begin, int64[matches + 1]."""
    n = int64(rows.used[0])
    first = np.zeros(n + 1, np.int64)
    for p in range(rows.used[1]):
        first[rows.pieces[p, PIECE_MATCH] + 1] += 1
    for match in range(n):
        first[match + 1] += first[match]
    return first


@kernel
def scattered_shares(rows: MatchRows, first_piece: Int64s) -> Float32s:
    """How much other text stands between what each match's main alignment of the question matched.

    The main alignment is the one of most tokens, the first of several.

    first_piece  int64[matches + 1], where a match's pieces begin
    return       float32[matches], share of the document's tokens from its first match to its last
    """
    n = int64(rows.used[0])
    share = np.zeros(n, np.float32)
    for match in range(n):
        most = int64(0)
        p = first_piece[match]
        while p < first_piece[match + 1]:
            if rows.pieces[p, PIECE_PART] != QUESTION:
                p += 1
                continue
            alignment = rows.pieces[p, PIECE_ALIGNMENT]
            start = int64(rows.pieces[p, PIECE_DOC])
            end = start
            matched = int64(0)
            while (
                p < first_piece[match + 1]
                and rows.pieces[p, PIECE_PART] == QUESTION
                and rows.pieces[p, PIECE_ALIGNMENT] == alignment
            ):
                here = int64(rows.pieces[p, PIECE_DOC])
                length = int64(rows.pieces[p, PIECE_LENGTH])
                start = min(start, here)
                end = max(end, here + length)
                matched += length
                p += 1
            if matched > most:
                most = matched
                share[match] = np.float32(1.0 - min(matched / (end - start), 1.0))
    return share


@kernel
def renumbered_shares(
    rows: MatchRows, first_piece: Int64s, part_start: Int64s, is_number: Uint8s
) -> Float32s:
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
    rows: MatchRows, first_piece: Int64s, unit: int, min_run: int, gram_table: GramTable
) -> Int32s:
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
    rows: MatchRows, pieces: tuple[int, int], own: int, min_run: int, others: Bools
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
