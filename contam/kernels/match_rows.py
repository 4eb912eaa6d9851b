"""Write one row per matching item of a document, with its aligned blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.align import (
    BLOCK_CHAIN,
    BLOCK_DOC,
    BLOCK_ITEM,
    BLOCK_LENGTH,
    AlignScratch,
    align_place,
)
from contam.kernels.constants import (
    LEAST_WEIGHT,
    LONE_WORTH,
    MORE_GAP,
    MOST_GAP,
    PAIR_WORTH,
    PLACE_SHARE,
    SPLIT_SHARE,
    SURE_BLOCK,
    UNSPLIT_SHARE,
)
from contam.kernels.run_together import PartTokens
from contam.kernels.runs import RUN_DOC, RUN_ITEM, RUN_LENGTH, RUN_PART, RunGroup

if TYPE_CHECKING:
    from contam.kernels._jit import Float32s, Int32s, Int64s, Uint16s, Uint64s
    from contam.kernels.gram_table import GramTable
    from contam.kernels.run_together import Document

#: Columns of a match row (int32): item, document in the batch, then four columns a part each.
MATCH_ITEM = 0
MATCH_DOC = 1
MATCH_LONGEST = 2
MATCH_COVERED = 6
MATCH_RUNS = 10
MATCH_ALIGNED = 14
MATCH_EXACT = 18
MATCH_PLACES = 22
MATCH_ANSWER = 23
MATCH_SPLIT = 24
MATCH_COLUMNS = 25
#: Columns of a match's float32 row.
REAL_COVERAGE = 0
REAL_COLUMNS = 4
#: Columns of a piece of evidence (int32); tokens of the part and of the document.
PIECE_MATCH = 0
PIECE_PART = 1
PIECE_ALIGNMENT = 2
PIECE_ITEM = 3
PIECE_DOC = 4
PIECE_LENGTH = 5
PIECE_COLUMNS = 6

#: In place of the number of an alignment: the right choice is named by its letter or its number.
AS_LETTER = -1
AS_NUMBER = -2

#: What `Rows.used[2]` says was too small.
FEW_RUNS = 1
FEW_MATCHES = 2
FEW_PIECES = 4
FEW_BLOCKS = 8
#: The work took more steps than it may: nothing that was found of the batch means anything.
TOO_LONG = 16

PASSAGE, QUESTION, CHOICES, ANSWER = 0, 1, 2, 3

#: More than any machine does.
NO_LIMIT = 1 << 62


class ItemFacts(NamedTuple):
    """What the kernels need to know of items beside their tokens.

    letter        uint64[items], hash of the letter of the right choice, 0 when there is none
    number        uint64[items], hash of its number, counted from 0, likewise
    answer_words  uint64[...], sorted hashes of words that announce an answer
    """

    letter: Uint64s
    number: Uint64s
    answer_words: Uint64s


class ViewSpec(NamedTuple):
    """How a view is matched.

    unit, seed, min_run  of the tokens (WORDS, CHARS); tokens of the shortest run that is looked
                         for, and of a run that is always reported
    stride               1: every seed of an item is in the table. More: of each part only every
                         stride-th gram of seed - stride + 1 tokens is; a seed holds one of them
    most_steps           work that one batch may take, about a nanosecond each; what takes more is
                         given up
    """

    unit: int
    seed: int
    min_run: int
    stride: int = 1
    most_steps: int = NO_LIMIT


class Search(NamedTuple):
    """What a worker matches documents against, and what it notes meanwhile.

    last_run    int32[parts], scratch of `find_runs`
    longest_at  see `note_longest`, updated
    """

    spec: ViewSpec
    gram_table: GramTable
    facts: ItemFacts
    scratch: AlignScratch
    last_run: Int32s
    longest_at: Uint16s


class MatchRows(NamedTuple):
    """Output of one batch, in arrays that are replaced by larger ones where they were too small.

    used  int64[4]: matches and pieces written; what there was no room for (FEW_...), 0 where
          nothing is missing, else the document must be matched again, or TOO_LONG; steps that may
          still be spent
    """

    matches: Int32s
    reals: Float32s
    pieces: Int32s
    used: Int64s


@lean_kernel
def spend(rows: MatchRows, steps: int) -> bool:
    """Take so many steps off those that may be spent; whether there were as many."""
    rows.used[3] -= steps
    if rows.used[3] < 0:
        rows.used[2] |= TOO_LONG
        return False
    return True


@lean_kernel
def add_piece(
    rows: MatchRows, place: tuple[int, int], alignment: int, i: int, d: int, n: int
) -> None:
    """Append one piece of evidence for place = (match, part), or say that there is no room."""
    pieces = rows.pieces
    at = rows.used[1]
    if at == pieces.shape[0]:
        rows.used[2] |= FEW_PIECES
        return
    pieces[at, PIECE_MATCH] = place[0]
    pieces[at, PIECE_PART] = place[1]
    pieces[at, PIECE_ALIGNMENT] = alignment
    pieces[at, PIECE_ITEM] = i
    pieces[at, PIECE_DOC] = d
    pieces[at, PIECE_LENGTH] = n
    rows.used[1] = at + 1


@lean_kernel
def new_match(rows: MatchRows, item: int, document: int) -> bool:
    """Append an empty match row, or say that there is no room; returns whether there was."""
    at = rows.used[0]
    if at == rows.matches.shape[0]:
        rows.used[2] |= FEW_MATCHES
        return False
    for column in range(MATCH_COLUMNS):
        rows.matches[at, column] = 0
    for column in range(REAL_COLUMNS):
        rows.reals[at, column] = np.float32(0.0)
    rows.matches[at, MATCH_ITEM] = item
    rows.matches[at, MATCH_DOC] = document
    rows.used[0] = at + 1
    return True


@lean_kernel
def weigh_part(
    group: RunGroup, min_run: int, gram_table: GramTable, reach: Int32s, rows: MatchRows
) -> float:
    """Fill the newest match's columns of one part; the weight share of its tokens in any run.

    group    the part's runs in this document
    min_run  tokens of a run that is always reported
    reach    int32[>= tokens of the part, 2], scratch: for each token the furthest end of the runs
             that begin there, and of those that are always reported
    """
    runs, order, lo, hi = group
    part = int64(runs[order[lo], RUN_PART])
    kind = part & 3
    first = gram_table.part_start[part]
    m = gram_table.part_start[part + 1] - first
    weights = gram_table.weight
    match = rows.used[0] - 1
    for t in range(m):
        reach[t, 0] = 0
        reach[t, 1] = 0
    longest = int64(0)
    reported = 0
    for y in range(lo, hi):
        run = order[y]
        length = int64(runs[run, RUN_LENGTH])
        start = int64(runs[run, RUN_ITEM])
        longest = max(longest, length)
        long = length >= min_run
        reported += int64(long or length == m)
        reach[start, 0] = max(int64(reach[start, 0]), start + length)
        if long:
            reach[start, 1] = max(int64(reach[start, 1]), start + length)
    weight = 0.0
    covered = 0
    end = int64(0)
    long_end = int64(0)
    for t in range(m):
        end = max(end, int64(reach[t, 0]))
        long_end = max(long_end, int64(reach[t, 1]))
        if t < end:
            weight += weights[first + t]
        if t < long_end:
            covered += 1
    rows.matches[match, MATCH_LONGEST + kind] = longest
    rows.matches[match, MATCH_RUNS + kind] = reported
    rows.matches[match, MATCH_EXACT + kind] = np.int32(longest == m)
    rows.matches[match, MATCH_COVERED + kind] = covered
    whole = gram_table.part_weight[part]
    return weight / whole if whole > 0.0 else 0.0


@lean_kernel
def next_place(group: RunGroup, gap: int) -> int:
    """End of the place that starts with the group: runs no more than `gap` tokens apart."""
    runs, order, lo, hi = group
    end = runs[order[lo], RUN_DOC] + runs[order[lo], RUN_LENGTH]
    y = lo + 1
    while y < hi and runs[order[y], RUN_DOC] <= end + gap:
        end = max(end, runs[order[y], RUN_DOC] + runs[order[y], RUN_LENGTH])
        y += 1
    return y


@lean_kernel
def align_part(
    group: RunGroup,
    doc: Document,
    gram_table: GramTable,
    scratch: AlignScratch,
    blocks: Int32s,
    rows: MatchRows,
) -> None:
    """Align one part at every place of the document; fill the newest match row.

    group   its runs;  blocks  int32[room, BLOCK_COLUMNS], scratch
    scratch.spans[part & 3] is set to the first and last document token of the best place; it stays
    as it was where there is none.
    """
    runs, order, lo, hi = group
    part = int64(runs[order[lo], RUN_PART])
    kind = part & 3
    first = gram_table.part_start[part]
    m = gram_table.part_start[part + 1] - first
    match = rows.used[0] - 1
    weights, worth = gram_table.weight, scratch.worth
    # An answer must stand there word by word to be told.
    letters = gram_table.letters if kind != ANSWER else gram_table.letters[:0]
    whole = PartTokens(gram_table.token, weights, letters, first, m)
    total = max(gram_table.part_weight[part], LEAST_WEIGHT)
    n = 0
    chains = 0
    places = 0
    copies = 0
    best, second = 0.0, 0.0
    first_best, first_second = (0, 0), (0, 0)
    y = lo
    while y < hi:
        if not spend(rows, m):
            return
        end = next_place(RunGroup(runs, order, y, hi), min(m, MOST_GAP) + MORE_GAP)
        begin = n
        share = 0.0
        for z in range(y, end):
            run = order[z]
            if runs[run, RUN_LENGTH] == m:
                copies += 1
                if n == begin:
                    if n == blocks.shape[0]:
                        rows.used[2] |= FEW_BLOCKS
                        return
                    blocks[n, BLOCK_ITEM] = 0
                    blocks[n, BLOCK_DOC] = runs[run, RUN_DOC]
                    blocks[n, BLOCK_LENGTH] = m
                    blocks[n, BLOCK_CHAIN] = chains
                    n += 1
                    chains += 1
                    share = 1.0
        if n == begin:
            place = RunGroup(runs, order, y, end)
            n, chains, gained = align_place(whole, doc, place, scratch, blocks, (n, chains))
            if n < 0:
                rows.used[2] |= FEW_BLOCKS
                return
            share = gained / total
        places += int64(share >= PLACE_SHARE)
        if share > best:
            second, first_second = best, first_best
            best, first_best = share, (begin, n)
        elif share > second:
            second, first_second = share, (begin, n)
        if share < SPLIT_SHARE and first_best != (begin, n):
            n = begin
        y = end
    for t in range(m):
        worth[t] = np.float32(0.0)
    best_lo, best_hi = -1, -1
    for b in range(first_best[0], first_best[1]):
        credit_block(blocks, b, worth)
        start = int64(blocks[b, BLOCK_DOC])
        best_lo = start if best_lo < 0 else min(best_lo, start)
        best_hi = max(best_hi, start + int64(blocks[b, BLOCK_LENGTH]))
    scratch.spans[kind, 0] = best_lo
    scratch.spans[kind, 1] = best_hi
    # A copy may be split over two places; more of them would add up to anything.
    if second >= SPLIT_SHARE:
        rows.matches[match, MATCH_SPLIT] |= np.int32(kind == QUESTION and best < UNSPLIT_SHARE)
        for b in range(first_second[0], first_second[1]):
            credit_block(blocks, b, worth)
    aligned = 0
    weight = 0.0
    for t in range(m):
        if worth[t] > np.float32(0.0):
            aligned += 1
            weight += worth[t] * weights[first + t]
    rows.matches[match, MATCH_ALIGNED + kind] = aligned
    rows.reals[match, REAL_COVERAGE + kind] = np.float32(weight / total)
    if kind == QUESTION:
        rows.matches[match, MATCH_PLACES] = max(places, copies)
    for b in range(n):
        add_piece(
            rows,
            (match, kind),
            int64(blocks[b, BLOCK_CHAIN]),
            int64(blocks[b, BLOCK_ITEM]),
            int64(blocks[b, BLOCK_DOC]),
            int64(blocks[b, BLOCK_LENGTH]),
        )


@lean_kernel
def credit_block(blocks: Int32s, b: int, worth: Float32s) -> None:
    """Note how far each item token of a block is believed."""
    first = blocks[b, BLOCK_ITEM]
    value = block_worth(blocks[b, BLOCK_LENGTH])
    for t in range(first, first + blocks[b, BLOCK_LENGTH]):
        worth[t] = max(worth[t], value)


@lean_kernel
def block_worth(length: int) -> np.float32:
    """How far a matched stretch is believed: lone tokens match by chance."""
    if length >= SURE_BLOCK:
        return np.float32(1.0)
    return np.float32(PAIR_WORTH) if length == 2 else np.float32(LONE_WORTH)
