"""Score one item against one document: which parts align, and what to report."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
    ItemFacts,
    MatchRows,
    add_piece,
    align_part,
    new_match,
    spend,
    weigh_part,
)
from contam.kernels.runs import RUN_DOC, RUN_ITEM, RUN_LENGTH, RUN_PART
from contam.kernels.surroundings import add_surroundings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contam.kernels.align import AlignScratch
    from contam.kernels.gram_table import GramTable
    from contam.kernels.run_together import Document


#: More than any machine does.
NO_LIMIT = 1 << 62


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


@lean_kernel
def add_loose_runs(
    runs: NDArray[np.int32],
    order: NDArray[np.int64],
    limits: tuple[int, int],
    min_run: int,
    length: int,
    first_piece: int,
    rows: MatchRows,
) -> None:
    """Report every run of min_run tokens (or the whole part) that no block of the part contains."""
    match = rows.used[0] - 1
    alignment = 0
    last = rows.used[1]
    if not spend(rows, (limits[1] - limits[0]) * (last - first_piece)):
        return
    pieces = rows.pieces
    for p in range(first_piece, last):
        alignment = max(alignment, pieces[p, PIECE_ALIGNMENT] + 1)
    for y in range(limits[0], limits[1]):
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
    runs: NDArray[np.int32],
    order: NDArray[np.int64],
    limits: tuple[int, int],
    min_run: int,
    parts: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float64]],
) -> bool:
    """Whether any part has a run to report, or runs that weigh enough together to be aligned.

    Runs that overlap count twice here: this lets too much through, never too little.
    parts  part_start, weight and part_weight of the gram table
    """
    part_start, weights, part_weight = parts
    weight = 0.0
    last = -1
    for y in range(limits[0], limits[1]):
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
    runs: NDArray[np.int32],
    order: NDArray[np.int64],
    limits: tuple[int, int],
    doc: Document,
    number: int,
    spec: ViewSpec,
    gram_table: GramTable,
    facts: ItemFacts,
    scratch: AlignScratch,
    blocks: NDArray[np.int32],
    rows: MatchRows,
) -> None:
    """One item whose runs in this document are runs[order[lo:hi]]: a match row, or nothing.

    number  of the document in the batch
    blocks  int32[room, BLOCK_COLUMNS], scratch
    """
    lo, hi = limits
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
        here = (y, end)
        share = weigh_part(runs, order, here, spec.min_run, gram_table, scratch.reach, rows)
        reported = rows.matches[match, MATCH_LONGEST + kind] >= min(spec.min_run, length)
        begin = rows.used[1]
        covered = rows.matches[match, MATCH_COVERED + kind]
        if share >= WORTH_ALIGNING or covered >= WORTH_ALIGNING_TOKENS * length:
            align_part(runs, order, here, doc, gram_table, scratch, blocks, rows)
            reported = reported or rows.reals[match, REAL_COVERAGE + kind] >= LEAST_REPORTED
        if reported:
            add_loose_runs(runs, order, here, spec.min_run, length, begin, rows)
        wanted = wanted or reported
        y = end
    if not wanted:
        rows.used[0] = match
        rows.used[1] = first_piece
        return
    add_surroundings(item, (doc.hashes, doc.n), first_piece, gram_table, facts, scratch, rows)
