"""Find which of several items that match in one place the text belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.constants import RIVAL_LEAD, RIVAL_SHARE, RIVAL_WHOLE
from contam.kernels.match_rows import (
    ANSWER,
    MATCH_DOC,
    MATCH_EXACT,
    MATCH_ITEM,
    PIECE_ALIGNMENT,
    PIECE_DOC,
    PIECE_LENGTH,
    PIECE_MATCH,
    PIECE_PART,
    QUESTION,
    REAL_COVERAGE,
    MatchRows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@lean_kernel
def question_coverage(rows: MatchRows, match: int) -> float:
    """How much of the question stands there, 1 where it stands word for word."""
    if rows.matches[match, MATCH_EXACT + QUESTION]:
        return 1.0
    return float(rows.reals[match, REAL_COVERAGE + QUESTION])


@kernel
def matched_text(rows: MatchRows, limits: tuple[int, int]) -> NDArray[np.int64]:
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
    first_piece: NDArray[np.int64],
    limits: tuple[int, int],
    benchmark: NDArray[np.int32],
    competing_item: NDArray[np.int32],
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
def find_competing_items(
    rows: MatchRows, first_piece: NDArray[np.int64], benchmark: NDArray[np.int32]
) -> NDArray[np.int32]:
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
def first_pieces(rows: MatchRows) -> NDArray[np.int64]:
    """Where the pieces of each match begin, int64[matches + 1]."""
    n = int64(rows.used[0])
    first = np.zeros(n + 1, np.int64)
    for p in range(rows.used[1]):
        first[rows.pieces[p, PIECE_MATCH] + 1] += 1
    for match in range(n):
        first[match + 1] += first[match]
    return first


@kernel
def scattered_shares(rows: MatchRows, first_piece: NDArray[np.int64]) -> NDArray[np.float32]:
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
