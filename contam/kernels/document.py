"""One document, or one batch of them, against all items: the loop a worker spends its time in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contam.kernels._jit import kernel
from contam.kernels.align import AlignScratch
from contam.kernels.chars import CharTables
from contam.kernels.fill import MOST_DOC, MOST_ITEM, fill_stretch
from contam.kernels.fold import PADDING
from contam.kernels.nearby import ANSWER_REACH, answer_position, find_tokens
from contam.kernels.pairs import (
    ANSWER,
    CHOICES,
    PASSAGE,
    PAIR_ALIGNED,
    PAIR_ANSWER,
    PAIR_EXACT,
    PAIR_LONGEST,
    PAIR_PLACES,
    PIECE_ALIGNMENT,
    PIECE_DOC,
    PIECE_ITEM,
    PIECE_LENGTH,
    PIECE_PART,
    QUESTION,
    REAL_COVERAGE,
    WORTH_ALIGNING,
    ItemFacts,
    Rows,
    add_piece,
    align_part,
    new_pair,
    weigh_part,
)
from contam.kernels.plan import PlanArrays, find_hits, hash_grams
from contam.kernels.runs import (
    RUN_DOC,
    RUN_ITEM,
    RUN_LENGTH,
    RUN_PART,
    find_runs,
    note_longest,
    order_runs,
)
from contam.kernels.tokens import CHARS, tokenize

_NONE = (-1, -1)
#: How far around its choices or passage a question without runs is looked for, in tokens, and
#: how long it may be: a longer one has runs of its own where it stands.
STEM_REACH = 60
MOST_STEM = 40


class DocBuffers(NamedTuple):
    """Scratch for one document of up to n bytes: folded uint8[n + PADDING], the others 2 n + 16."""

    folded: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    spans: NDArray[np.int32]
    grams: NDArray[np.uint64]
    hit_at: NDArray[np.int32]
    hit_gram: NDArray[np.int32]


class LaneSpec(NamedTuple):
    """unit of the tokens (WORDS, CHARS), tokens of a seed, and the run that is always reported."""

    unit: int
    seed: int
    min_run: int


def new_buffers(n_bytes: int, unit: int) -> DocBuffers:
    """Buffers for documents of up to n_bytes bytes; untouched pages cost nothing."""
    room = (5 if unit == CHARS else 2) * n_bytes + 16
    return DocBuffers(
        folded=np.empty(n_bytes + PADDING, np.uint8),
        hashes=np.empty(room, np.uint64),
        spans=np.empty((room, 2), np.int32),
        grams=np.empty(room, np.uint64),
        hit_at=np.empty(room, np.int32),
        hit_gram=np.empty(room, np.int32),
    )


@kernel
def add_loose_runs(
    runs: NDArray[np.int32],
    order: NDArray[np.int64],
    limits: tuple[int, int],
    min_run: int,
    length: int,
    first_piece: int,
    rows: Rows,
) -> Rows:
    """Report every run of min_run tokens (or the whole part) that no block of the part contains."""
    pair = rows.used[0] - 1
    alignment = 0
    last = rows.used[1]
    pieces = rows.pieces
    for p in range(first_piece, last):
        alignment = max(alignment, pieces[p, PIECE_ALIGNMENT] + 1)
    for y in range(limits[0], limits[1]):
        run = order[y]
        n = np.int64(runs[run, RUN_LENGTH])
        if n < min_run and n < length:
            continue
        part = np.int64(runs[run, RUN_PART]) & 3
        i, d = np.int64(runs[run, RUN_ITEM]), np.int64(runs[run, RUN_DOC])
        inside = False
        for p in range(first_piece, last):
            if pieces[p, PIECE_PART] != part:
                continue
            lead = i - pieces[p, PIECE_ITEM]
            if lead == d - pieces[p, PIECE_DOC] and lead >= 0:
                inside = inside or lead + n <= pieces[p, PIECE_LENGTH]
        if not inside:
            rows = add_piece(rows, (pair, part), alignment, i, d, n)
            alignment += 1
    return rows


@kernel
def claimed(lo: int, hi: int, first_piece: int, besides: int, rows: Rows) -> int:
    """Document tokens in lo..hi that stand in evidence of the newest pair, but of part `besides`."""
    taken = np.int64(0)
    for p in range(first_piece, rows.used[1]):
        if rows.pieces[p, PIECE_PART] != besides:
            start = np.int64(rows.pieces[p, PIECE_DOC])
            end = start + np.int64(rows.pieces[p, PIECE_LENGTH])
            taken += max(0, min(hi, end) - max(lo, start))
    return taken


@kernel
def disown_question(first_piece: int, rows: Rows) -> None:
    """Take from the question what it matched inside the passage: a question repeats its words."""
    pair = rows.used[0] - 1
    if rows.pairs[pair, PAIR_ALIGNED + PASSAGE] == 0:
        return
    own = np.int64(0)
    shared = np.int64(0)
    for p in range(first_piece, rows.used[1]):
        if rows.pieces[p, PIECE_PART] == QUESTION:
            start = np.int64(rows.pieces[p, PIECE_DOC])
            end = start + np.int64(rows.pieces[p, PIECE_LENGTH])
            own += end - start
            shared += min(end - start, claimed(start, end, first_piece, QUESTION, rows))
    if own > 0:
        kept = rows.reals[pair, REAL_COVERAGE + QUESTION] * ((own - shared) / own)
        rows.reals[pair, REAL_COVERAGE + QUESTION] = np.float32(kept)


@kernel
def add_filled(
    part: int,
    stretch: tuple[int, int],
    doc: tuple[NDArray[np.uint64], int],
    least: float,
    plan: PlanArrays,
    scratch: AlignScratch,
    rows: Rows,
) -> tuple[Rows, int, int]:
    """Align a part, token by token, with a stretch of the document that starts where it may start.

    stretch  (first document token, tokens)
    least    share of the part's tokens that must match for the match to count
    return   (rows, first and last document token of the match), -1 where it does not count
    """
    first = plan.part_start[part]
    m = plan.part_start[part + 1] - first
    kind = part & 3
    most = min(m, MOST_ITEM)
    # Letters of a list and mark-up cost little: equal weights, cheap skips.
    for t in range(most):
        scratch.effective[t] = np.float32(1.0)
    box = (plan.token[first : first + most], scratch.effective, 0, most)
    there = (doc[0], stretch[0], min(stretch[1], MOST_DOC))
    n = fill_stretch(box, there, 1, scratch.score, scratch.step, scratch.matched)
    pair = rows.used[0] - 1
    share = n / m
    if share < least or share <= rows.reals[pair, REAL_COVERAGE + kind]:
        return rows, -1, -1
    rows.reals[pair, REAL_COVERAGE + kind] = np.float32(share)
    rows.pairs[pair, PAIR_ALIGNED + kind] = n
    k = 0
    while k < n:
        i, d = np.int64(scratch.matched[k, 0]), np.int64(scratch.matched[k, 1])
        length = 1
        while k + length < n:
            follows = scratch.matched[k + length, 0] == i + length
            if not follows or scratch.matched[k + length, 1] != d + length:
                break
            length += 1
        rows = add_piece(rows, (pair, kind), 0, i, d, length)
        k += length
    return rows, np.int64(scratch.matched[0, 1]), np.int64(scratch.matched[n - 1, 1]) + 1


@kernel
def add_stem(
    item: int,
    first_piece: int,
    doc: tuple[NDArray[np.uint64], int],
    plan: PlanArrays,
    scratch: AlignScratch,
    rows: Rows,
) -> tuple[Rows, int, int]:
    """Look for a question without runs of its own around every piece of its item found so far.

    return  (rows, first and last document token of the question), -1 where it is not there
    """
    part = 4 * item + QUESTION
    first = plan.part_start[part]
    m = plan.part_start[part + 1] - first
    words, n_doc = doc
    if m == 0 or m > MOST_STEM:
        return rows, -1, -1
    pair = rows.used[0] - 1
    for p in range(first_piece, rows.used[1]):
        start = np.int64(rows.pieces[p, PIECE_DOC])
        end = start + np.int64(rows.pieces[p, PIECE_LENGTH])
        lo, hi = max(0, start - STEM_REACH), min(n_doc, end + STEM_REACH)
        at = find_tokens(words, lo, hi, plan.token, first, m)
        if at >= 0:
            rows.pairs[pair, PAIR_ALIGNED + QUESTION] = m
            rows.pairs[pair, PAIR_LONGEST + QUESTION] = m
            rows.pairs[pair, PAIR_EXACT + QUESTION] = 1
            rows.pairs[pair, PAIR_PLACES] = 1
            rows.reals[pair, REAL_COVERAGE + QUESTION] = np.float32(1.0)
            rows = add_piece(rows, (pair, QUESTION), 0, 0, at, m)
            return rows, at, at + m
    for p in range(first_piece, rows.used[1]):
        end = np.int64(rows.pieces[p, PIECE_DOC]) + np.int64(rows.pieces[p, PIECE_LENGTH])
        reach = min(n_doc - end, 2 * m + 24)
        if reach <= 0 or claimed(end, end + m, first_piece, QUESTION, rows) > 0:
            continue
        rows, lo, hi = add_filled(part, (end, reach), doc, 0.6, plan, scratch, rows)
        if lo >= 0:
            rows.pairs[pair, PAIR_PLACES] = 1
            return rows, lo, hi
    return rows, -1, -1


@kernel
def add_answer(
    item: int,
    limits: tuple[int, int, bool],
    doc: NDArray[np.uint64],
    plan: PlanArrays,
    facts: ItemFacts,
    answer_span: tuple[int, int],
    rows: Rows,
) -> Rows:
    """Say whether the answer stands by the question; a short one that does becomes evidence."""
    part = 4 * item + ANSWER
    first = plan.part_start[part]
    m = plan.part_start[part + 1] - first
    pair = rows.used[0] - 1
    lo, hi, _ = limits
    if rows.reals[pair, REAL_COVERAGE + ANSWER] >= 0.6 and answer_span[0] >= 0:
        if answer_span[0] <= hi + 300 and lo <= answer_span[1] + 300:
            rows.pairs[pair, PAIR_ANSWER] = 1
        return rows
    letter = facts.letter[item]
    at, n = answer_position(doc, limits, (plan.token, first, m), letter, facts.answer_words)
    if at >= 0:
        rows.pairs[pair, PAIR_ANSWER] = 1
        if n == m and rows.reals[pair, REAL_COVERAGE + ANSWER] < 1.0:
            rows.reals[pair, REAL_COVERAGE + ANSWER] = np.float32(1.0)
            rows.pairs[pair, PAIR_ALIGNED + ANSWER] = m
            rows = add_piece(rows, (pair, ANSWER), 0, 0, at, m)
    return rows


@kernel
def is_promising(
    runs: NDArray[np.int32],
    order: NDArray[np.int64],
    limits: tuple[int, int],
    min_run: int,
    plan: PlanArrays,
) -> bool:
    """Whether any part has a run to report, or runs that weigh enough together to be aligned.

    Runs that overlap count twice here: this lets too much through, never too little.
    """
    part_start, weight_sum = plan.part_start, plan.weight_sum
    weight = 0.0
    last = -1
    for y in range(limits[0], limits[1]):
        run = order[y]
        part = np.int64(runs[run, RUN_PART])
        first = part_start[part]
        length = np.int64(runs[run, RUN_LENGTH])
        if length >= min_run or length == part_start[part + 1] - first:
            return True
        if part != last:
            weight = 0.0
            last = part
        start = first + np.int64(runs[run, RUN_ITEM])
        weight += weight_sum[start + length] - weight_sum[start]
        if weight >= WORTH_ALIGNING * plan.part_weight[part]:
            return True
    return False


@kernel
def judge_item(
    runs: NDArray[np.int32],
    order: NDArray[np.int64],
    limits: tuple[int, int],
    document: tuple[NDArray[np.uint64], int, int],
    spec: LaneSpec,
    plan: PlanArrays,
    facts: ItemFacts,
    scratch: AlignScratch,
    rows: Rows,
) -> Rows:
    """One item whose runs in this document are runs[order[lo:hi]]: a pair row, or nothing.

    document  (token hashes, tokens, its number in the batch)
    """
    lo, hi = limits
    doc = (document[0], document[1])
    item = np.int64(runs[order[lo], RUN_PART]) >> 2
    rows = new_pair(rows, item, document[2])
    pair = rows.used[0] - 1
    first_piece = rows.used[1]
    spans = np.full((4, 2), -1, np.int64)
    wanted = False
    y = lo
    while y < hi:
        part = np.int64(runs[order[y], RUN_PART])
        kind = part & 3
        end = y
        while end < hi and runs[order[end], RUN_PART] == part:
            end += 1
        length = plan.part_start[part + 1] - plan.part_start[part]
        here = (y, end)
        row, real = rows.pairs[pair], rows.reals[pair]
        share = weigh_part(runs, order, here, spec.min_run, spec.seed, plan, row, real)
        reported = row[PAIR_LONGEST + kind] >= min(spec.min_run, length)
        begin = rows.used[1]
        if share >= WORTH_ALIGNING:
            rows, spans[kind, 0], spans[kind, 1] = align_part(
                runs, order, here, doc, plan, scratch, rows
            )
            reported = reported or rows.reals[pair, REAL_COVERAGE + kind] >= 0.3
        if reported:
            rows = add_loose_runs(runs, order, here, spec.min_run, length, begin, rows)
        wanted = wanted or reported
        y = end
    if not wanted:
        rows.used[0] = pair
        rows.used[1] = first_piece
        return rows
    return add_surroundings(item, spans, doc, first_piece, plan, facts, scratch, rows)


@kernel
def add_surroundings(
    item: int,
    spans: NDArray[np.int64],
    doc: tuple[NDArray[np.uint64], int],
    first_piece: int,
    plan: PlanArrays,
    facts: ItemFacts,
    scratch: AlignScratch,
    rows: Rows,
) -> Rows:
    """Complete the newest pair: a short stem, the choices behind the question, the answer.

    spans        int64[4, 2], document tokens where each part was aligned, -1 where it was not
    first_piece  first of the pair's pieces of evidence
    """
    question = (spans[QUESTION, 0], spans[QUESTION, 1])
    if question[0] >= 0:
        disown_question(first_piece, rows)
        if rows.reals[rows.used[0] - 1, REAL_COVERAGE + QUESTION] < 0.2:
            question = (-1, -1)
    if question[0] < 0:
        rows, start, end = add_stem(item, first_piece, doc, plan, scratch, rows)
        question = (start, end)
    if question[0] < 0:
        return rows
    choices_end = -1
    choices = 4 * item + CHOICES
    m = plan.part_start[choices + 1] - plan.part_start[choices]
    behind = (question[1], min(doc[1] - question[1], m + m // 2 + 40))
    if m > 0 and behind[1] > 0:
        rows, _, choices_end = add_filled(choices, behind, doc, 0.5, plan, scratch, rows)
    if choices_end < 0 and spans[CHOICES, 1] >= question[1]:
        choices_end = spans[CHOICES, 1]
    listed = choices_end >= 0
    lo = max(question[1], choices_end)
    hi = min(doc[1], lo + ANSWER_REACH)
    answer_span = (spans[ANSWER, 0], spans[ANSWER, 1])
    return add_answer(item, (lo, hi, listed), doc[0], plan, facts, answer_span, rows)


@kernel
def scan_document(
    n_tokens: int,
    number: int,
    spec: LaneSpec,
    plan: PlanArrays,
    facts: ItemFacts,
    buffers: DocBuffers,
    scratch: AlignScratch,
    memory: tuple[NDArray[np.int32], NDArray[np.int32]],
    runs: NDArray[np.int32],
    rows: Rows,
) -> tuple[NDArray[np.int32], Rows]:
    """Match one document whose tokens lie in `buffers`; returns the run buffer and the rows.

    number  of the document in its batch
    memory  (last run by part: scratch; longest_at: int32[item tokens], updated)
    """
    count = hash_grams(buffers.hashes, 0, n_tokens, spec.seed, buffers.grams)
    found = find_hits(buffers.grams, count, plan, buffers.hit_at, buffers.hit_gram)
    if found == 0:
        return runs, rows
    hits = (buffers.hit_at, buffers.hit_gram, found)
    doc = (buffers.hashes, n_tokens)
    runs, n = find_runs(doc, hits, spec.seed, spec.min_run, plan, memory[0], runs)
    if n == 0:
        return runs, rows
    note_longest(runs, n, plan.part_start, memory[1])
    order = order_runs(runs, n)
    document = (buffers.hashes, n_tokens, number)
    lo = 0
    while lo < n:
        item = runs[order[lo], RUN_PART] >> 2
        hi = lo + 1
        while hi < n and runs[order[hi], RUN_PART] >> 2 == item:
            hi += 1
        if is_promising(runs, order, (lo, hi), spec.min_run, plan):
            rows = judge_item(runs, order, (lo, hi), document, spec, plan, facts, scratch, rows)
        lo = hi
    return runs, rows


@kernel
def count_code_points(text: NDArray[np.uint8], lo: int, hi: int) -> int:
    """Code points of text[lo:hi], valid UTF-8 cut at character boundaries."""
    count = 0
    for i in range(lo, hi):
        count += np.int64((text[i] & np.uint8(0xC0)) != np.uint8(0x80))
    return count


@kernel
def place_pieces(
    text: NDArray[np.uint8],
    lo: int,
    spans: NDArray[np.int32],
    rows: Rows,
    first: int,
    where: NDArray[np.int32],
) -> None:
    """Code-point spans in their document, at text[lo:], of the pieces from `first` on.

    where  int32[>= pieces, 2], written: first code point and the one behind the last
    """
    order = np.argsort(rows.pieces[first : rows.used[1], PIECE_DOC], kind="mergesort")
    byte = 0
    point = 0
    for k in order:
        p = first + k
        d = rows.pieces[p, PIECE_DOC]
        start = np.int64(spans[d, 0])
        point += count_code_points(text, lo + byte, lo + start)
        byte = start
        end = np.int64(spans[d + rows.pieces[p, PIECE_LENGTH] - 1, 1])
        where[p, 0] = point
        where[p, 1] = point + count_code_points(text, lo + start, lo + end)


@kernel
def scan_batch(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    spec: LaneSpec,
    plan: PlanArrays,
    facts: ItemFacts,
    tables: CharTables,
    buffers: DocBuffers,
    scratch: AlignScratch,
    memory: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> tuple[Rows, NDArray[np.int32], int]:
    """Match every document of a batch.

    text     uint8[n], UTF-8; document i is text[offsets[i] : offsets[i + 1]]
    return   (rows, int32[pieces, 2] code-point spans of the pieces, tokens read)
    """
    rows = Rows(
        np.empty((64, 24), np.int32),
        np.empty((64, 8), np.float32),
        np.empty((256, 6), np.int32),
        np.zeros(2, np.int64),
    )
    where = np.empty((256, 2), np.int32)
    runs = np.empty((1024, 4), np.int32)
    total = 0
    for i in range(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        if hi == lo:
            continue
        limits = (lo, hi)
        n = tokenize(text, limits, spec.unit, buffers.folded, buffers.hashes, buffers.spans, tables)
        total += n
        first = rows.used[1]
        runs, rows = scan_document(
            n, i, spec, plan, facts, buffers, scratch, memory, runs, rows
        )
        if rows.used[1] > first:
            if where.shape[0] < rows.pieces.shape[0]:
                larger = np.empty((rows.pieces.shape[0], 2), np.int32)
                larger[:first] = where[:first]
                where = larger
            place_pieces(text, lo, buffers.spans, rows, first, where)
    return rows, where, total
