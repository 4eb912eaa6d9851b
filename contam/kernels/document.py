"""Match documents, or their tokens, against all items: the loop where a worker spends its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.align import BLOCK_COLUMNS
from contam.kernels.bits import count_ones, next_bytes
from contam.kernels.gram_table import GramTable, find_hits, hash_grams
from contam.kernels.letters import (
    LetterScratch,
    Mended,
    holds_torn,
    mend_document,
    new_letter_scratch,
)
from contam.kernels.match_rows import (
    FEW_BLOCKS,
    FEW_MATCHES,
    FEW_PIECES,
    FEW_RUNS,
    MATCH_COLUMNS,
    MATCH_ITEM,
    PIECE_ALIGNMENT,
    PIECE_COLUMNS,
    PIECE_DOC,
    PIECE_ITEM,
    PIECE_LENGTH,
    PIECE_MATCH,
    PIECE_PART,
    REAL_COLUMNS,
    TOO_LONG,
    MatchRows,
    Search,
    spend,
)
from contam.kernels.run_together import Document
from contam.kernels.runs import (
    RUN_COLUMNS,
    RUN_PART,
    RunGroup,
    find_runs,
    find_runs_by_few,
    note_longest,
    order_runs,
)
from contam.kernels.score_item import is_promising, score_item
from contam.kernels.tokens import CHARS, tokenize
from contam.kernels.word_hashes import hash_word

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Int64s, Uint8s, Uint64s
    from contam.kernels.chars import CharTables


class DocBuffers(NamedTuple):
    """Scratch for one document of up to n bytes, 2 n + 16 each; 5 n + 16 in the unit CHARS.

    grams  uint64[GRAMS_AT_ONCE]
    mended, letters  of a document whose words are put right: see `letters`
    """

    hashes: Uint64s
    spans: Int32s
    grams: Uint64s
    hit_at: Int32s
    hit_gram: Int32s
    mended: Mended
    letters: LetterScratch


def new_buffers(n_bytes: int, unit: int, tables: CharTables) -> DocBuffers:
    """Buffers for documents of up to n_bytes bytes; untouched pages cost nothing."""
    capacity = (5 if unit == CHARS else 2) * n_bytes + 16
    return DocBuffers(
        hashes=np.empty(capacity, np.uint64),
        spans=np.empty((capacity, 2), np.int32),
        grams=np.empty(GRAMS_AT_ONCE, np.uint64),
        hit_at=np.empty(capacity, np.int32),
        hit_gram=np.empty(capacity, np.int32),
        mended=Mended(np.empty(capacity, np.uint64), np.empty((capacity, 2), np.int32)),
        letters=new_letter_scratch(tables, n_words=capacity),
    )


#: Grams of a document that are hashed, then looked up: they stay in a core's own cache.
GRAMS_AT_ONCE = 1 << 14
#: Room that a batch begins with.
FIRST_MATCHES = 4096
FIRST_PIECES = 16384
FIRST_RUNS = 16384
FIRST_BLOCKS = 4096
#: How much larger what was too small is made: a document is matched again each time.
_MORE = 8

_ONE = np.uint64(1)
#: The highest bit of each of eight bytes.
_TOP_BITS = np.uint64(0x8080808080808080)
#: Bytes between two of which the code points before them are known.
_STEP = 64


class TextScratch(NamedTuple):
    """Scratch whose size the text decides.

    runs          int32[room, RUN_COLUMNS]
    order, scratch  int64[room]
    blocks        int32[other room, BLOCK_COLUMNS]
    """

    runs: Int32s
    order: Int64s
    order_scratch: Int64s
    blocks: Int32s


class BatchOutput(NamedTuple):
    """What a batch has given so far, and scratch; each replaced by a larger one when full.

    where  int32[>= pieces, 2], code-point spans of the pieces
    """

    rows: MatchRows
    where: Int32s
    text_scratch: TextScratch


@kernel
def new_text_scratch(n_runs: int, n_blocks: int) -> TextScratch:
    """Scratch for so many runs of a document and blocks of a part."""
    return TextScratch(
        np.empty((n_runs, RUN_COLUMNS), np.int32),
        np.empty(n_runs, np.int64),
        np.empty(n_runs, np.int64),
        np.empty((n_blocks, BLOCK_COLUMNS), np.int32),
    )


@kernel
def start_batch(most_steps: int) -> BatchOutput:
    """Nothing found yet, and so many steps to be spent."""
    rows = MatchRows(
        np.empty((FIRST_MATCHES, MATCH_COLUMNS), np.int32),
        np.empty((FIRST_MATCHES, REAL_COLUMNS), np.float32),
        np.empty((FIRST_PIECES, PIECE_COLUMNS), np.int32),
        np.zeros(4, np.int64),
    )
    rows.used[3] = most_steps
    where = np.empty((FIRST_PIECES, 2), np.int32)
    return BatchOutput(rows, where, new_text_scratch(FIRST_RUNS, FIRST_BLOCKS))


@kernel
def with_more_scratch(found: BatchOutput, lacking: int) -> BatchOutput:
    """The same, with several times the room for what is `lacking` (FEW_...)."""
    rows, where, text_scratch = found.rows, found.where, found.text_scratch
    matches, reals, pieces = rows.matches, rows.reals, rows.pieces
    n_matches, n_pieces = rows.used[0], rows.used[1]
    n_runs, n_blocks = text_scratch.runs.shape[0], text_scratch.blocks.shape[0]
    n_runs *= _MORE if lacking & FEW_RUNS else 1
    n_blocks *= _MORE if lacking & FEW_BLOCKS else 1
    if lacking & FEW_MATCHES:
        matches = np.empty((_MORE * matches.shape[0], MATCH_COLUMNS), np.int32)
        matches[:n_matches] = rows.matches[:n_matches]
        reals = np.empty((_MORE * reals.shape[0], REAL_COLUMNS), np.float32)
        reals[:n_matches] = rows.reals[:n_matches]
    if lacking & (FEW_PIECES | FEW_RUNS):
        # So many runs are as many pieces, often: pages that stay untouched cost nothing.
        n = pieces.shape[0]
        n = _MORE * n if lacking & FEW_PIECES else max(n, n_pieces + n_runs)
        pieces = np.empty((n, PIECE_COLUMNS), np.int32)
        pieces[:n_pieces] = rows.pieces[:n_pieces]
        where = np.empty((pieces.shape[0], 2), np.int32)
        where[:n_pieces] = found.where[:n_pieces]
    if lacking & (FEW_RUNS | FEW_BLOCKS):
        text_scratch = new_text_scratch(n_runs, n_blocks)
    return BatchOutput(MatchRows(matches, reals, pieces, rows.used), where, text_scratch)


@lean_kernel
def look_up(n_tokens: int, gram: int, gram_table: GramTable, buffers: DocBuffers) -> int:
    """Write which grams of the document whose tokens lie in `buffers` are in the table; how many.

    gram  tokens of a gram
    """
    found = int64(0)
    for first in range(0, n_tokens - gram + 1, GRAMS_AT_ONCE):
        end = min(first + GRAMS_AT_ONCE + gram - 1, n_tokens)
        count = hash_grams(buffers.hashes, first, end, gram, buffers.grams)
        known = (first, found)
        found = find_hits(
            buffers.grams, count, gram, gram_table, buffers.hit_at, buffers.hit_gram, known
        )
    return found


@lean_kernel
def scan_document(
    document: Document, number: int, search: Search, buffers: DocBuffers, found: BatchOutput
) -> None:
    """Match one document whose tokens lie in `buffers`; its rows mean nothing if there were few.

    number  of the document in its batch
    """
    spec, gram_table, last_run = search.spec, search.gram_table, search.last_run
    text_scratch, rows = found.text_scratch, found.rows
    runs, order, n_tokens = text_scratch.runs, text_scratch.order, document.n
    n_hits = look_up(n_tokens, spec.seed - spec.stride + 1, gram_table, buffers)
    if n_hits == 0:
        return
    hits = (buffers.hit_at, buffers.hit_gram, n_hits)
    doc = (buffers.hashes, n_tokens)
    left = rows.used[3]
    if spec.stride == 1:
        n, left = find_runs(doc, hits, spec.seed, spec.min_run, gram_table, last_run, runs, left)
    else:
        lengths = (spec.seed, spec.min_run, spec.stride)
        n, left = find_runs_by_few(doc, hits, lengths, gram_table, last_run, runs, left)
    if not spend(rows, rows.used[3] - left):
        return
    if n < 0:
        rows.used[2] |= FEW_RUNS
    if n <= 0:
        return
    note_longest(runs, n, gram_table.part_start, search.longest_at)
    order_runs(runs, n, order, text_scratch.order_scratch)
    parts = (gram_table.part_start, gram_table.weight, gram_table.part_weight)
    lo = 0
    while lo < n:
        item = runs[order[lo], RUN_PART] >> 2
        hi = lo + 1
        while hi < n and runs[order[hi], RUN_PART] >> 2 == item:
            hi += 1
        here = RunGroup(runs, order, lo, hi)
        if is_promising(here, spec.min_run, parts):
            score_item(here, document, number, search, text_scratch.blocks, rows)
            if rows.used[2] != 0:
                return
        lo = hi


@lean_kernel
def count_code_points(text: Uint8s, lo: int, hi: int) -> int:
    """Code points of text[lo:hi], valid UTF-8 cut at character boundaries."""
    count = hi - lo
    p = lo
    while p < hi:
        chunk = next_bytes(text, p, hi - p)
        # All but the first byte of a character begin with the bits 10.
        count -= count_ones(chunk & ~(chunk << _ONE) & _TOP_BITS)
        p += 8
    return count


@lean_kernel
def piece_bytes(
    document: Document, gram_table: GramTable, rows: MatchRows, p: int
) -> tuple[int, int]:
    """First byte in the document of a piece of evidence, and the one behind its last.

    Of a word that is run together with others it is the bytes of its own letters.
    """
    piece = rows.pieces[p]
    n, part = int64(piece[PIECE_LENGTH]), int64(piece[PIECE_PART])
    at = int64(piece[PIECE_DOC])
    begin, end = int64(document.spans[at, 0]), int64(document.spans[at + n - 1, 1])
    if piece[PIECE_ALIGNMENT] < 0:
        # A mark in place of the text of a choice.
        return begin, end
    part += 4 * int64(rows.matches[piece[PIECE_MATCH], MATCH_ITEM])
    first = gram_table.part_start[part] + int64(piece[PIECE_ITEM])
    last = first + n - 1
    is_cut = gram_table.token[last] != document.hashes[at + n - 1]
    if gram_table.token[first] != document.hashes[at]:
        length = int64(gram_table.letters[first])
        if n > 1:
            begin = int64(document.spans[at, 1]) - length
        else:
            text, lo = document.text, document.begin
            while begin + length < end:
                if hash_word(text, lo + begin, length) == gram_table.token[first]:
                    break
                begin += 1
            return begin, begin + length
    if is_cut:
        end = int64(document.spans[at + n - 1, 0]) + int64(gram_table.letters[last])
    return begin, end


@kernel
def place_pieces(
    document: Document, gram_table: GramTable, rows: MatchRows, first: int, where: Int32s
) -> None:
    """Code-point spans in their document of the pieces from `first` on.

    where  int32[>= pieces, 2], written: first code point and the one behind the last
    """
    text, lo = document.text, document.begin
    end = int64(0)
    for p in range(first, rows.used[1]):
        last = rows.pieces[p, PIECE_DOC] + rows.pieces[p, PIECE_LENGTH] - 1
        end = max(end, int64(document.spans[last, 1]))
    # Pieces lie anywhere and over each other: the text is counted once, in steps.
    before = np.empty(end // _STEP + 1, np.int64)
    point = 0
    for step in range(before.shape[0]):
        before[step] = point
        here = lo + step * _STEP
        point += count_code_points(text, here, min(here + _STEP, lo + end))
    is_ascii = point == end
    for p in range(first, rows.used[1]):
        ends = piece_bytes(document, gram_table, rows, p)
        for side in range(2):
            byte = ends[side]
            if is_ascii:
                where[p, side] = byte
            else:
                step = byte // _STEP
                here = lo + step * _STEP
                where[p, side] = before[step] + count_code_points(text, here, lo + byte)


@kernel
def add_document(
    document: Document, number: int, search: Search, buffers: DocBuffers, found: BatchOutput
) -> BatchOutput:
    """Match one document whose token hashes lie in `buffers`.

    number  of the document in its batch
    """
    used = found.rows.used
    first_pair, first = used[0], used[1]
    while True:
        scan_document(document, number, search, buffers, found)
        lacking = used[2]
        if lacking == 0:
            break
        if lacking & TOO_LONG:
            return found
        used[0], used[1], used[2] = first_pair, first, 0
        found = with_more_scratch(found, lacking)
    if used[1] > first:
        place_pieces(document, search.gram_table, found.rows, first, found.where)
    return found


@lean_kernel
def mend(doc: Document, gram_table: GramTable, buffers: DocBuffers) -> int:
    """Put a document's words, which lie in `buffers`, right where they are torn; how many then."""
    hashes, spans, mended = buffers.hashes, buffers.spans, buffers.mended
    is_asked = gram_table.letter_tag.shape[0] > 0
    if not is_asked or not holds_torn(doc, gram_table, buffers.letters):
        return doc.n
    count = mend_document(doc, gram_table, mended, buffers.letters)
    if count == 0:
        return doc.n
    for k in range(count):
        hashes[k] = mended.hashes[k]
        spans[k, 0], spans[k, 1] = mended.spans[k, 0], mended.spans[k, 1]
    return count


#: ViewSpec.unit of a view whose tokens are made outside the kernels.
PRETOKENIZED = 2


@kernel
def scan_batch(
    text: Uint8s,
    offsets: Int64s,
    given: tuple[Uint64s, Int32s, Int64s],
    search: Search,
    buffers: DocBuffers,
) -> tuple[MatchRows, Int32s, int]:
    """Match every document of a batch.

    text     uint8[n], UTF-8; document i is text[offsets[i] : offsets[i + 1]]
    given    tokens where they are PRETOKENIZED: (hashes uint64[t], spans int32[t, 2] in bytes of
             the document, starts int64[docs + 1])
    buffers  with room for the longest document, or for its given tokens
    return   (rows, int32[pieces, 2] code-point spans of the pieces, tokens read)
    """
    hashes, spans, starts = given
    unit, tables = search.spec.unit, buffers.letters.tables
    found = start_batch(search.spec.most_steps)
    total = 0
    for i in range(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        if unit == PRETOKENIZED:
            n = starts[i + 1] - starts[i]
            buffers.hashes[:n] = hashes[starts[i] : starts[i + 1]]
            buffers.spans[:n] = spans[starts[i] : starts[i + 1]]
        else:
            n = tokenize(text, (lo, hi), unit, buffers.hashes, buffers.spans, tables)
        if n == 0:
            continue
        total += n
        here = Document(buffers.hashes, n, buffers.spans, text, lo, hi)
        n = mend(here, search.gram_table, buffers)
        here = Document(buffers.hashes, n, buffers.spans, text, lo, hi)
        found = add_document(here, i, search, buffers, found)
        if found.rows.used[2] & TOO_LONG:
            break
    return found.rows, found.where, total
