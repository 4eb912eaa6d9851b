"""Score one item against one document: what aligns, what stands around it, and what to report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.constants import (
    ANSWER_DISTANCE,
    ANSWER_REACH,
    ANSWER_SHARE,
    CHOICES_SHARE,
    CHOICES_SLACK,
    CLOSE,
    LEAST_QUESTION,
    LEAST_REPORTED,
    LISTED_SHARE,
    MOST_DOC,
    MOST_ITEM,
    MOST_STEM,
    STEM_REACH,
    STEM_SHARE,
    STEM_SLACK,
    SURE_ANSWER,
    WORTH_ALIGNING,
    WORTH_ALIGNING_TOKENS,
)
from contam.kernels.fill import fill_stretch, index_words, is_indexed
from contam.kernels.match_rows import (
    ANSWER,
    AS_LETTER,
    AS_NUMBER,
    CHOICES,
    MATCH_ALIGNED,
    MATCH_ANSWER,
    MATCH_COVERED,
    MATCH_EXACT,
    MATCH_LONGEST,
    MATCH_PLACES,
    PASSAGE,
    PIECE_ALIGNMENT,
    PIECE_DOC,
    PIECE_ITEM,
    PIECE_LENGTH,
    PIECE_PART,
    QUESTION,
    REAL_COVERAGE,
    ItemFacts,
    MatchRows,
    Search,
    add_piece,
    align_part,
    new_match,
    spend,
    weigh_part,
)
from contam.kernels.runs import RUN_DOC, RUN_ITEM, RUN_LENGTH, RUN_PART, RunGroup

if TYPE_CHECKING:
    from contam.kernels._jit import Float32s, Float64s, Int32s, Int64s, Uint64s
    from contam.kernels.align import AlignScratch
    from contam.kernels.gram_table import GramTable
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
def is_promising(group: RunGroup, min_run: int, parts: tuple[Int64s, Float32s, Float64s]) -> bool:
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
    group: RunGroup, doc: Document, number: int, search: Search, blocks: Int32s, rows: MatchRows
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


@lean_kernel
def find_tokens(doc: Uint64s, lo: int, hi: int, token: Uint64s, first: int, m: int) -> int:
    """First position in doc[lo:hi] where the m item tokens from `first` on stand whole, or -1."""
    for at in range(lo, hi - m + 1):
        length = 0
        while length < m and doc[at + length] == token[first + length]:
            length += 1
        if length == m:
            return at
    return -1


@lean_kernel
def is_known(keys: Uint64s, key: np.uint64) -> bool:
    """Whether the sorted keys hold the key."""
    at = np.searchsorted(keys, key)
    return bool(at < keys.shape[0] and keys[at] == key)


@lean_kernel
def answer_position(
    doc: Uint64s,
    limits: tuple[int, int, bool],
    answer: tuple[Uint64s, int, int],
    marks: tuple[np.uint64, np.uint64],
    answer_words: Uint64s,
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


@lean_kernel
def claimed(lo: int, hi: int, first_piece: int, besides: int, rows: MatchRows) -> int:
    """Document tokens in lo..hi that lie in the newest match's evidence, but of part `besides`."""
    taken = int64(0)
    for p in range(first_piece, rows.used[1]):
        if rows.pieces[p, PIECE_PART] != besides:
            start = int64(rows.pieces[p, PIECE_DOC])
            end = start + int64(rows.pieces[p, PIECE_LENGTH])
            taken += max(0, min(hi, end) - max(lo, start))
    return taken


@lean_kernel
def end_of_more(lo: int, hi: int, first_piece: int, rows: MatchRows) -> int:
    """End of a piece of the newest match's other parts that holds doc[lo:hi] and more, or -1."""
    for p in range(first_piece, rows.used[1]):
        start = int64(rows.pieces[p, PIECE_DOC])
        end = start + int64(rows.pieces[p, PIECE_LENGTH])
        if rows.pieces[p, PIECE_PART] != QUESTION and start <= lo and hi <= end:
            if end - start > hi - lo:
                return end
    return -1


@lean_kernel
def discount_overlap_with_passage(first_piece: int, rows: MatchRows) -> None:
    """Take from the question what it matched inside the passage: a question repeats its words."""
    match = rows.used[0] - 1
    if rows.matches[match, MATCH_ALIGNED + PASSAGE] == 0:
        return
    own = int64(0)
    shared = int64(0)
    for p in range(first_piece, rows.used[1]):
        if rows.pieces[p, PIECE_PART] == QUESTION:
            start = int64(rows.pieces[p, PIECE_DOC])
            end = start + int64(rows.pieces[p, PIECE_LENGTH])
            own += end - start
            shared += min(end - start, claimed(start, end, first_piece, QUESTION, rows))
    if own > 0:
        kept = rows.reals[match, REAL_COVERAGE + QUESTION] * ((own - shared) / own)
        rows.reals[match, REAL_COVERAGE + QUESTION] = np.float32(kept)


@lean_kernel
def add_filled(
    part: int,
    stretch: tuple[int, int],
    doc: tuple[Uint64s, int],
    least: float,
    gram_table: GramTable,
    scratch: AlignScratch,
    rows: MatchRows,
) -> tuple[int, int]:
    """Align a part, token by token, with a stretch of the document that starts where it may start.

    stretch  (first document token, tokens)
    least    share of the part's tokens that must match for the match to count
    return   (first and last document token of the match), -1 where it does not count
    """
    first = gram_table.part_start[part]
    m = gram_table.part_start[part + 1] - first
    kind = part & 3
    most = min(m, MOST_ITEM)
    # Letters of a list and mark-up cost little: equal weights, cheap skips.
    for t in range(most):
        scratch.effective[t] = np.float32(1.0)
    box = (gram_table.token[first : first + most], scratch.effective, 0, most)
    there = (doc[0], stretch[0], min(stretch[1], MOST_DOC))
    match = rows.used[0] - 1
    known = rows.reals[match, REAL_COVERAGE + kind]
    # No more can match than stand there in any order.
    index_words(there[0], there[1] - 1, 1, there[2], scratch.fill)
    n = 0
    for t in range(first, first + most):
        n += int64(is_indexed(there[0], there[1] - 1, 1, gram_table.token[t], scratch.fill))
    if n / m < least or n / m <= known:
        return -1, -1
    n = fill_stretch(box, there, 1, scratch.fill)
    share = n / m
    if share < least or share <= known:
        return -1, -1
    rows.reals[match, REAL_COVERAGE + kind] = np.float32(share)
    rows.matches[match, MATCH_ALIGNED + kind] = n
    k = 0
    while k < n:
        i, d = int64(scratch.fill.matched[k, 0]), int64(scratch.fill.matched[k, 1])
        length = 1
        while k + length < n:
            follows = scratch.fill.matched[k + length, 0] == i + length
            if not follows or scratch.fill.matched[k + length, 1] != d + length:
                break
            length += 1
        add_piece(rows, (match, kind), 0, i, d, length)
        k += length
    return int64(scratch.fill.matched[0, 1]), int64(scratch.fill.matched[n - 1, 1]) + 1


@lean_kernel
def add_stem(
    item: int,
    first_piece: int,
    doc: tuple[Uint64s, int],
    gram_table: GramTable,
    scratch: AlignScratch,
    rows: MatchRows,
) -> tuple[int, int]:
    """Look for a question without runs of its own around what was found of its other parts.

    return  (first and last document token of the question), -1 where it is not there
    """
    part = 4 * item + QUESTION
    first = gram_table.part_start[part]
    m = gram_table.part_start[part + 1] - first
    words, n_doc = doc
    if m == 0 or m > MOST_STEM:
        return -1, -1
    match = rows.used[0] - 1
    last = rows.used[1]
    for p in range(first_piece, last):
        if rows.pieces[p, PIECE_PART] == QUESTION:
            continue
        start = int64(rows.pieces[p, PIECE_DOC])
        end = start + int64(rows.pieces[p, PIECE_LENGTH])
        lo, hi = max(0, start - STEM_REACH), min(n_doc, end + STEM_REACH)
        at = find_tokens(words, lo, hi, gram_table.token, first, m)
        # Words of a choice or a passage that happen to be the question's are no question.
        while at >= 0:
            after = end_of_more(at, at + m, first_piece, rows)
            if after < 0:
                break
            at = find_tokens(words, after - m + 1, hi, gram_table.token, first, m)
        if at >= 0:
            rows.matches[match, MATCH_ALIGNED + QUESTION] = m
            rows.matches[match, MATCH_LONGEST + QUESTION] = m
            rows.matches[match, MATCH_EXACT + QUESTION] = 1
            rows.matches[match, MATCH_PLACES] = 1
            rows.reals[match, REAL_COVERAGE + QUESTION] = np.float32(1.0)
            add_piece(rows, (match, QUESTION), 0, 0, at, m)
            return at, at + m
    for p in range(first_piece, last):
        if rows.pieces[p, PIECE_PART] == QUESTION:
            continue
        end = int64(rows.pieces[p, PIECE_DOC]) + int64(rows.pieces[p, PIECE_LENGTH])
        reach = min(n_doc - end, 2 * m + STEM_SLACK)
        if reach <= 0 or claimed(end, end + m, first_piece, QUESTION, rows) > 0:
            continue
        lo, hi = add_filled(part, (end, reach), doc, STEM_SHARE, gram_table, scratch, rows)
        if lo >= 0:
            rows.matches[match, MATCH_PLACES] = 1
            return lo, hi
    return -1, -1


@lean_kernel
def add_answer(
    item: int,
    limits: tuple[int, int, bool],
    doc: Uint64s,
    gram_table: GramTable,
    facts: ItemFacts,
    answer_span: tuple[int, int],
    rows: MatchRows,
) -> None:
    """Say whether the answer stands by the question; a short one that does becomes evidence."""
    part = 4 * item + ANSWER
    first = gram_table.part_start[part]
    m = gram_table.part_start[part + 1] - first
    match = rows.used[0] - 1
    lo, hi, listed = limits
    # The right choice among the listed ones tells nobody which one is right.
    apart = answer_span[0] >= 0 and not (listed and answer_span[0] < lo)
    if apart and rows.reals[match, REAL_COVERAGE + ANSWER] >= ANSWER_SHARE:
        if answer_span[0] <= hi + ANSWER_DISTANCE and lo <= answer_span[1] + ANSWER_DISTANCE:
            rows.matches[match, MATCH_ANSWER] = 1
        return
    marks = (facts.letter[item], facts.number[item])
    at, n = answer_position(doc, limits, (gram_table.token, first, m), marks, facts.answer_words)
    if at < 0:
        return
    rows.matches[match, MATCH_ANSWER] = 1
    if n == m and rows.reals[match, REAL_COVERAGE + ANSWER] < 1.0:
        if doc[at] == gram_table.token[first]:
            rows.reals[match, REAL_COVERAGE + ANSWER] = np.float32(1.0)
            rows.matches[match, MATCH_ALIGNED + ANSWER] = m
            add_piece(rows, (match, ANSWER), 0, 0, at, m)
        else:
            # The choice is named by its mark: its own text does not stand there.
            mark = AS_LETTER if doc[at] == marks[0] else AS_NUMBER
            add_piece(rows, (match, ANSWER), mark, 0, at, m)


@lean_kernel
def add_surroundings(
    item: int, doc: tuple[Uint64s, int], first_piece: int, search: Search, rows: MatchRows
) -> None:
    """Complete the newest match: a short stem, the choices behind the question, the answer.

    first_piece    first of the match's pieces of evidence
    scratch.spans  int64[4, 2], document tokens where each part was aligned, -1 where it was not
    """
    gram_table, scratch = search.gram_table, search.scratch
    spans = scratch.spans
    question = (spans[QUESTION, 0], spans[QUESTION, 1])
    if question[0] >= 0:
        discount_overlap_with_passage(first_piece, rows)
        if rows.reals[rows.used[0] - 1, REAL_COVERAGE + QUESTION] < LEAST_QUESTION:
            question = (-1, -1)
    if question[0] < 0:
        start, end = add_stem(item, first_piece, doc, gram_table, scratch, rows)
        question = (start, end)
    if question[0] < 0:
        return
    choices_end = -1
    choices = 4 * item + CHOICES
    m = gram_table.part_start[choices + 1] - gram_table.part_start[choices]
    behind = (question[1], min(doc[1] - question[1], m + m // 2 + CHOICES_SLACK))
    if m > 0 and behind[1] > 0:
        _, choices_end = add_filled(choices, behind, doc, CHOICES_SHARE, gram_table, scratch, rows)
    if choices_end < 0 and spans[CHOICES, 1] >= question[1]:
        choices_end = spans[CHOICES, 1]
    # The right choice alone behind the question is an answer; with the others it is a list.
    answer = 4 * item + ANSWER
    of_answer = gram_table.part_start[answer + 1] - gram_table.part_start[answer]
    others = rows.matches[rows.used[0] - 1, MATCH_ALIGNED + CHOICES] - of_answer
    listed = choices_end >= 0 and others >= LISTED_SHARE * (m - of_answer)
    lo = max(question[1], choices_end) if listed else question[1]
    hi = min(doc[1], lo + ANSWER_REACH)
    answer_span = (spans[ANSWER, 0], spans[ANSWER, 1])
    add_answer(item, (lo, hi, listed), doc[0], gram_table, search.facts, answer_span, rows)
