"""Score one item against one document: which parts align, and what to report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.constants import (
    LEAST_REPORTED,
    WORTH_ALIGNING,
    WORTH_ALIGNING_TOKENS,
)
from contam.kernels.match_rows import (
    MATCH_COVERED,
    MATCH_LONGEST,
    PIECE_ALIGNMENT,
    PIECE_DOC,
    PIECE_ITEM,
    PIECE_LENGTH,
    PIECE_PART,
    REAL_COVERAGE,
    MatchRows,
    Search,
    add_piece,
    align_part,
    new_match,
    spend,
    weigh_part,
)
from contam.kernels.runs import RUN_DOC, RUN_ITEM, RUN_LENGTH, RUN_PART, RunGroup
from contam.kernels.surroundings import add_surroundings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contam.kernels.run_together import Document


@lean_kernel
def add_loose_runs(
    group: RunGroup, min_run: int, length: int, first_piece: int, rows: MatchRows
) -> None:
    """Report every run of min_run tokens (or the whole part) that no block of the part contains."""
    runs, order, lo, hi = group
    match = rows.used[0] - 1
    alignment = 0
    last = rows.used[1]
    if not spend(rows, (hi - lo) * (last - first_piece)):
        return
    pieces = rows.pieces
    for p in range(first_piece, last):
        alignment = max(alignment, pieces[p, PIECE_ALIGNMENT] + 1)
    for y in range(lo, hi):
        run = order[y]
        n = int64(runs[run, RUN_LENGTH])
        if n < min_run and n < length:
            continue
        part = int64(runs[run, RUN_PART]) & 3
        i, d = int64(runs[run, RUN_ITEM]), int64(runs[run, RUN_DOC])
        inside = False
        for p in range(first_piece, last):
            if pieces[p, PIECE_PART] != part:
                continue
            lead = i - pieces[p, PIECE_ITEM]
            if lead == d - pieces[p, PIECE_DOC] and lead >= 0:
                inside = inside or lead + n <= pieces[p, PIECE_LENGTH]
        if not inside:
            add_piece(rows, (match, part), alignment, i, d, n)
            alignment += 1


@lean_kernel
def is_promising(
    group: RunGroup,
    min_run: int,
    parts: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float64]],
) -> bool:
    """Whether any part has a run to report, or runs that weigh enough together to be aligned.

    Runs that overlap count twice here: this lets too much through, never too little.
    parts  part_start, weight and part_weight of the gram table
    """
    runs, order, lo, hi = group
    part_start, weights, part_weight = parts
    weight = 0.0
    last = -1
    for y in range(lo, hi):
        run = order[y]
        part = int64(runs[run, RUN_PART])
        first = part_start[part]
        length = int64(runs[run, RUN_LENGTH])
        if length >= min_run or length == part_start[part + 1] - first:
            return True
        if part != last:
            weight = 0.0
            last = part
        start = first + int64(runs[run, RUN_ITEM])
        for t in range(start, start + length):
            weight += weights[t]
        if weight >= WORTH_ALIGNING * part_weight[part]:
            return True
    return False


@lean_kernel
def score_item(
    group: RunGroup,
    doc: Document,
    number: int,
    search: Search,
    blocks: NDArray[np.int32],
    rows: MatchRows,
) -> None:
    """One item by its runs in this document: a match row, or nothing.

    number  of the document in the batch
    blocks  int32[room, BLOCK_COLUMNS], scratch
    """
    runs, order, lo, hi = group
    gram_table, scratch, min_run = search.gram_table, search.scratch, search.spec.min_run
    item = int64(runs[order[lo], RUN_PART]) >> 2
    if not new_match(rows, item, number):
        return
    match = rows.used[0] - 1
    first_piece = rows.used[1]
    spans = scratch.spans
    for kind in range(4):
        spans[kind, 0] = -1
        spans[kind, 1] = -1
    wanted = False
    y = lo
    while y < hi:
        part = int64(runs[order[y], RUN_PART])
        kind = part & 3
        end = y
        while end < hi and runs[order[end], RUN_PART] == part:
            end += 1
        length = gram_table.part_start[part + 1] - gram_table.part_start[part]
        here = RunGroup(runs, order, y, end)
        share = weigh_part(here, min_run, gram_table, scratch.reach, rows)
        reported = rows.matches[match, MATCH_LONGEST + kind] >= min(min_run, length)
        begin = rows.used[1]
        covered = rows.matches[match, MATCH_COVERED + kind]
        if share >= WORTH_ALIGNING or covered >= WORTH_ALIGNING_TOKENS * length:
            align_part(here, doc, gram_table, scratch, blocks, rows)
            reported = reported or rows.reals[match, REAL_COVERAGE + kind] >= LEAST_REPORTED
        if reported:
            add_loose_runs(here, min_run, length, begin, rows)
        wanted = wanted or reported
        y = end
    if not wanted:
        rows.used[0] = match
        rows.used[1] = first_piece
        return
    add_surroundings(item, (doc.hashes, doc.n), first_piece, search, rows)
