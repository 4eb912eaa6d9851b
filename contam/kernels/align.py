"""Align one part with one document: chain runs and fill the gaps between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.constants import (
    END_REACH,
    ENOUGH_MATCHED,
    LEAST_GAIN,
    MOST_BETWEEN,
    MOST_CHAINS,
    MOST_DOC,
    MOST_ITEM,
    MOST_RUNS,
    SHIFT_COST,
)
from contam.kernels.fill import FillScratch, fill_stretch, new_fill_scratch
from contam.kernels.run_together import Document, PartTokens, follow_back, run_together
from contam.kernels.runs import RUN_DOC, RUN_ITEM, RUN_LENGTH, RunGroup

if TYPE_CHECKING:
    from contam.kernels._jit import Bools, Float32s, Float64s, Int32s, Int64s

#: Columns of a block: first item token (in the part), first document token, length, chain number.
BLOCK_ITEM = 0
BLOCK_DOC = 1
BLOCK_LENGTH = 2
BLOCK_CHAIN = 3
BLOCK_COLUMNS = 4

_NO_RUN = -1


class AlignScratch(NamedTuple):
    """Buffers one worker aligns in; contents mean nothing between calls."""

    fill: FillScratch
    chain_score: Float64s
    chain_before: Int32s
    used: Bools
    member: Bools
    effective: Float32s
    weight_before: Float64s
    worth: Float32s
    reach: Int32s
    spans: Int64s


def new_scratch(longest_part: int) -> AlignScratch:
    """Buffers for parts of up to `longest_part` tokens."""
    return AlignScratch(
        fill=new_fill_scratch(),
        chain_score=np.empty(MOST_RUNS, np.float64),
        chain_before=np.empty(MOST_RUNS, np.int32),
        used=np.empty(MOST_RUNS, np.bool_),
        member=np.empty(MOST_RUNS, np.bool_),
        effective=np.empty(longest_part + 1, np.float32),
        weight_before=np.empty(longest_part + 1, np.float64),
        worth=np.empty(longest_part + 1, np.float32),
        reach=np.empty((longest_part + 1, 2), np.int32),
        spans=np.empty((4, 2), np.int64),
    )


@lean_kernel
def most_between(n_item: int) -> int:
    """Most document tokens that may stand between two runs that are n_item tokens apart."""
    return MOST_BETWEEN + 2 * n_item


@lean_kernel
def best_chain(place: RunGroup, scratch: AlignScratch) -> int:
    """Last run of the heaviest collinear chain of unused runs; scratch.chain_before links it.

    return  number of the run within the place, or -1 when every run is used or weighs nothing
    scratch.weight_before[t] is the sum of the effective weights of the part's tokens before t.
    """
    runs, order, first, end = place
    n_runs = end - first
    weight_before = scratch.weight_before
    best = _NO_RUN
    best_score = 0.0
    for y in range(n_runs):
        if scratch.used[y]:
            continue
        run = order[first + y]
        lo = runs[run, RUN_ITEM]
        hi = lo + runs[run, RUN_LENGTH]
        own = weight_before[hi] - weight_before[lo]
        value = own
        before = _NO_RUN
        for x in range(y):
            if scratch.used[x]:
                continue
            other = order[first + x]
            end = runs[other, RUN_ITEM] + runs[other, RUN_LENGTH]
            end_doc = runs[other, RUN_DOC] + runs[other, RUN_LENGTH]
            if runs[other, RUN_ITEM] >= lo or runs[other, RUN_DOC] >= runs[run, RUN_DOC]:
                continue
            skip = max(0, end - lo, end_doc - runs[run, RUN_DOC])
            if skip >= runs[run, RUN_LENGTH]:
                continue
            apart = runs[run, RUN_DOC] + skip - end_doc
            between = lo + skip - end
            if apart > most_between(between):
                continue
            gained = weight_before[hi] - weight_before[lo + skip]
            linked = scratch.chain_score[x] + gained - SHIFT_COST * abs(apart - between)
            if linked > value:
                value = linked
                before = x
        scratch.chain_score[y] = value
        scratch.chain_before[y] = before
        if own > 0.0 and value > best_score:
            best_score = value
            best = y
    return best


@lean_kernel
def add_block(
    blocks: Int32s, n: int, first_of_chain: int, i: int, d: int, length: int, chain: int
) -> int:
    """Append a block, or lengthen the chain's last one when it goes on without a gap."""
    if n > first_of_chain:
        end = blocks[n - 1, BLOCK_ITEM] + blocks[n - 1, BLOCK_LENGTH]
        end_doc = blocks[n - 1, BLOCK_DOC] + blocks[n - 1, BLOCK_LENGTH]
        if end == i and end_doc == d:
            blocks[n - 1, BLOCK_LENGTH] += length
            return n
    blocks[n, BLOCK_ITEM] = i
    blocks[n, BLOCK_DOC] = d
    blocks[n, BLOCK_LENGTH] = length
    blocks[n, BLOCK_CHAIN] = chain
    return n + 1


@lean_kernel
def add_stretch(
    part: PartTokens,
    doc: Document,
    box: tuple[int, int, int, int, int],
    scratch: AlignScratch,
    blocks: Int32s,
    at: tuple[int, int, int],
) -> int:
    """Fill one stretch and append its matches as blocks; returns the new number of blocks.

    From an anchored end on words that are run together are followed first: each is a block, or
    the end of one, for every word it was.

    part  with effective weights, from the part's first token on
    box   (first item token in the part, item tokens, first document token, document tokens, mode)
    at    (blocks so far, first block of the chain, chain number)
    """
    i, m, d, n, mode = box
    count, first_of_chain, chain = at
    if m <= 0 or n <= 0:
        return count
    if mode >= 0:
        before = i
        count, i, d = follow(part, doc, (i, m, d, n), blocks, at, False)
        m, n = m - (i - before), n - (d - box[2])
    found, torn = (0, 0) if mode > 0 else follow_back(part, doc, (i, m, d, n))
    m, n = m - found, n - torn
    if m > 0 and n > 0:
        item = (part.token[part.first : part.first + i + m], part.weight, i, m)
        pairs = fill_stretch(item, (doc.hashes, d, n), mode, scratch.fill)
        for k in range(pairs):
            x = scratch.fill.matched[k, 0]
            y = scratch.fill.matched[k, 1]
            count = add_block(blocks, count, first_of_chain, x, y, 1, chain)
    at = (count, first_of_chain, chain)
    count, _, _ = follow(part, doc, (i + m, found, d + n, torn), blocks, at, True)
    return count


@lean_kernel
def follow(
    part: PartTokens,
    doc: Document,
    box: tuple[int, int, int, int],
    blocks: Int32s,
    at: tuple[int, int, int],
    is_torn: bool,
) -> tuple[int, int, int]:
    """Append as blocks what is equal from the beginning of a stretch on, words run together apart.

    box, at  as of `add_stretch`, without a mode
    is_torn  whether equal words may come first
    return   (blocks, item token and document token at which it ends)
    """
    i, m, d, n = box
    end, end_doc = i + m, d + n
    count, first_of_chain, chain = at
    while i < end and d < end_doc:
        if is_torn and part.token[part.first + i] == doc.hashes[d]:
            words = 1
        else:
            words = run_together(doc, d, part, (i, end - i), 1)
        if words == 0:
            break
        is_torn = True
        for k in range(words):
            count = add_block(blocks, count, first_of_chain, i + k, d, 1, chain)
        i += words
        d += 1
    return count, i, d


@lean_kernel
def extend_chain(
    part: PartTokens,
    doc: Document,
    place: RunGroup,
    last: int,
    scratch: AlignScratch,
    blocks: Int32s,
    at: tuple[int, int],
) -> int:
    """Write the chain that ends in run `last` of the place as blocks, gaps and both ends filled.

    part  with effective weights, from the part's first token on
    at    (blocks so far, chain number)
    """
    runs, order, first_run, end_run = place
    n_runs = end_run - first_run
    count, chain = at
    begin = count
    for y in range(n_runs):
        scratch.member[y] = False
    y = last
    while y != _NO_RUN:
        scratch.used[y] = True
        scratch.member[y] = True
        y = int64(scratch.chain_before[y])
    item_end = -1
    doc_end = -1
    for y in range(n_runs):
        if not scratch.member[y]:
            continue
        run = order[first_run + y]
        i = int64(runs[run, RUN_ITEM])
        d = int64(runs[run, RUN_DOC])
        n = int64(runs[run, RUN_LENGTH])
        if item_end < 0:
            reach = min(d, i + i // 2 + END_REACH, MOST_DOC)
            box = (max(0, i - MOST_ITEM), min(i, MOST_ITEM), d - reach, reach, -1)
            count = add_stretch(part, doc, box, scratch, blocks, (count, begin, chain))
        else:
            skip = max(0, item_end - i, doc_end - d)
            i += skip
            d += skip
            n -= skip
            box = (item_end, i - item_end, doc_end, d - doc_end, 0)
            count = add_stretch(part, doc, box, scratch, blocks, (count, begin, chain))
        count = add_block(blocks, count, begin, i, d, n, chain)
        item_end = i + n
        doc_end = d + n
    rest = part.n - item_end
    reach = min(doc.n - doc_end, rest + rest // 2 + END_REACH)
    box = (item_end, rest, doc_end, reach, 1)
    return add_stretch(part, doc, box, scratch, blocks, (count, begin, chain))


@lean_kernel
def spend_tokens(blocks: Int32s, lo: int, hi: int, effective: Float32s) -> float:
    """Set the weight of all item tokens in blocks[lo:hi] to zero; returns what they weighed."""
    gained = 0.0
    for b in range(lo, hi):
        first = blocks[b, BLOCK_ITEM]
        for t in range(first, first + blocks[b, BLOCK_LENGTH]):
            gained += effective[t]
            effective[t] = np.float32(0.0)
    return gained


@lean_kernel
def retire_runs(place: RunGroup, blocks: Int32s, chain: tuple[int, int], used: Bools) -> None:
    """Mark runs as used that have more than half of their document tokens in a chain.

    chain  (lo, hi): its blocks are blocks[lo:hi]
    """
    runs, order, first_run, end_run = place
    n_runs = end_run - first_run
    for y in range(n_runs):
        if used[y]:
            continue
        run = order[first_run + y]
        lo = runs[run, RUN_DOC]
        hi = lo + runs[run, RUN_LENGTH]
        shared = 0
        for b in range(chain[0], chain[1]):
            first = max(lo, blocks[b, BLOCK_DOC])
            last = min(hi, blocks[b, BLOCK_DOC] + blocks[b, BLOCK_LENGTH])
            shared += max(0, last - first)
        if 2 * shared > hi - lo:
            used[y] = True


@lean_kernel
def align_place(
    part: PartTokens,
    doc: Document,
    place: RunGroup,
    scratch: AlignScratch,
    blocks: Int32s,
    at: tuple[int, int],
) -> tuple[int, int, float]:
    """Chains of one place of the document, heaviest first, until what is left adds little.

    place   only its first MOST_RUNS runs are considered
    at      (blocks so far, chains so far)
    return  (number of blocks, -1 where `blocks` has no room for them; chains; weight matched)
    """
    _, weight, _, first, m = part
    count, chains = at
    n_runs = min(place.hi - place.lo, MOST_RUNS)
    place = RunGroup(place.runs, place.order, place.lo, place.lo + n_runs)
    effective, before = scratch.effective, scratch.weight_before
    for y in range(n_runs):
        scratch.used[y] = False
    total = 0.0
    for t in range(m):
        effective[t] = weight[first + t]
        total += weight[first + t]
    matched = 0.0
    effectively = PartTokens(part.token, effective, part.letters, first, m)
    for _ in range(MOST_CHAINS):
        before[0] = 0.0
        for t in range(m):
            before[t + 1] = before[t] + effective[t]
        last = best_chain(place, scratch)
        if last == _NO_RUN:
            break
        if blocks.shape[0] < count + m + n_runs + 2:
            return -1, chains, matched
        begin = count
        count = extend_chain(effectively, doc, place, last, scratch, blocks, (count, chains))
        gained = spend_tokens(blocks, begin, count, effective)
        if matched > 0.0 and gained < LEAST_GAIN * total:
            count = begin
            break
        matched += gained
        chains += 1
        retire_runs(place, blocks, (begin, count), scratch.used)
        if matched > ENOUGH_MATCHED * total:
            break
    return count, chains, matched
