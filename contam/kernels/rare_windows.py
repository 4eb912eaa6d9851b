"""Find windows of documents in which enough of an item's rare words come together, in any order.

The stretches that may end one are looked through for the window that holds most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.bits import count_ones
from contam.kernels.rare_words import (
    STRETCH_AT,
    STRETCH_BEGIN,
    STRETCH_ITEM,
    TOKEN,
    WORD,
    find_rare_words,
    make_places,
    note_stretches,
)
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Int64s, Uint8s, Uint64s
    from contam.kernels.chars import CharTables
    from contam.kernels.rare_words import RareScratch, RareTable

#: Columns of a window that was found: its document and item; the weight of the item's different
#: words in it, and how many these are; its tokens; then pairs of bytes of the document, of the
#: window, of the window with NEAR tokens on either side, and of all windows that could hold it.
(
    ROW_DOC,
    ROW_ITEM,
    ROW_WEIGHT,
    ROW_WORDS,
    ROW_TOKENS,
    ROW_FIRST,
    ROW_END,
    ROW_NEAR_FIRST,
    ROW_NEAR_END,
    ROW_WIDE_FIRST,
    ROW_WIDE_END,
    ROW_IN_ORDER,
    ROW_COLUMNS,
) = range(13)
#: Tokens on either side of a window that are looked at with it.
NEAR = 3
_FIRST_ROOM = 1024

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_EVERY_BIT = np.uint64(2**64 - 1)
_BITS = 64


@lean_kernel
def find_own_words(k: int, n_rare: int, table: RareTable, scratch: RareScratch) -> int:
    """Write where an item's words stand in a stretch and before it: how many of `scratch.own`.

    k       which of the noted stretches
    n_rare  rare words of the document
    """
    item = int64(scratch.noted[k, STRETCH_ITEM])
    begin = int64(scratch.noted[k, STRETCH_BEGIN])
    rare, own, number = scratch.rare, scratch.own, scratch.number
    window = int64(table.window[item])
    first = table.item_start[item]
    n_words = table.item_start[item + 1] - first
    for q in range(n_words):
        number[table.item_word[first + q]] = np.int32(q)
    at = int64(scratch.noted[k, STRETCH_AT])
    while at > 0 and rare[at - 1, TOKEN] >= begin - window:
        at -= 1
    count = 0
    while at < n_rare and rare[at, TOKEN] < begin + window:
        q = number[rare[at, WORD]]
        if q >= 0:
            own[count, TOKEN] = rare[at, TOKEN]
            own[count, WORD] = q
            count += 1
        at += 1
    for q in range(n_words):
        number[table.item_word[first + q]] = -1
    return count


@lean_kernel
def best_window(
    item: int, n_own: int, enough: tuple[int, int], table: RareTable, scratch: RareScratch
) -> tuple[int, int, int, int]:
    """The window with most of an item's weight of those that end in a noted stretch.

    n_own   how many of `scratch.own` could be in them
    enough  the least weight, and the least different words
    return  weight (0: no window has enough), different words, first token and the one behind the
            last; the shortest of equal ones, and of these the first
    """
    count, own = scratch.tally, scratch.own
    least, least_words = enough
    window = int64(table.window[item])
    a = table.item_start[item]
    for q in range(table.item_start[item + 1] - a):
        count[q] = 0
    head = int64(0)
    weight = int64(0)
    different = int64(0)
    best = int64(0)
    best_words = int64(0)
    best_first = int64(0)
    best_end = int64(0)
    for at in range(n_own):
        t, q = int64(own[at, TOKEN]), int64(own[at, WORD])
        if count[q] == 0:
            weight += table.weight[table.item_word[a + q]]
            different += 1
        count[q] += 1
        while own[head, TOKEN] <= t - window or count[own[head, WORD]] > 1:
            gone = int64(own[head, WORD])
            count[gone] -= 1
            if count[gone] == 0:
                weight -= table.weight[table.item_word[a + gone]]
                different -= 1
            head += 1
        if different < least_words or weight < least:
            continue
        length = t + 1 - own[head, TOKEN]
        if weight > best or (weight == best and length < best_end - best_first):
            best, best_words = weight, different
            best_first, best_end = int64(own[head, TOKEN]), t + 1
    return best, best_words, best_first, best_end


@lean_kernel
def enough_of(
    item: int, n_own: int, table: RareTable, scratch: RareScratch
) -> tuple[int, int, int, int, bool]:
    """The best window with enough, or else the best with what is enough in order.

    n_own   as for `best_window`
    return  as of `best_window`; whether it has only what is enough in order
    """
    least, least_words = int64(table.least[item]), int64(table.least_words[item])
    if table.in_order[item] == 0:
        weight, words, first, end = best_window(item, n_own, (least, least_words), table, scratch)
        return weight, words, first, end, False
    less, less_words = int64(table.less[item]), int64(table.less_words[item])
    # Nearly always one search answers both questions.
    weight, words, first, end = best_window(
        item, n_own, (min(least, less), min(least_words, less_words)), table, scratch
    )
    if weight >= least:
        if words >= least_words:
            return weight, words, first, end, False
        more, more_words, its_first, its_end = best_window(
            item, n_own, (least, least_words), table, scratch
        )
        if more > 0:
            return more, more_words, its_first, its_end, False
    if weight < less:
        weight = int64(0)
    return weight, words, first, end, True


@lean_kernel
def n_in_order(item: int, text: tuple[Uint64s, int, int], table: RareTable, chain: Uint64s) -> int:
    """How many tokens of an item stand in a text in the same order, others between them or not.

    text    hashes of tokens, the first of the text and the one behind its last
    chain   scratch: a bit for each of the item's tokens, which is cleared where the tokens up to
            this one have one more in order than those before it (Hyyrö 2004)
    """
    hashes, lo, hi = text
    first = table.token_start[item]
    n = int64(table.n_tokens[item])
    n_blocks = (n + _BITS - 1) // _BITS
    for block in range(n_blocks):
        chain[block] = _EVERY_BIT
    for t in range(lo, hi):
        carry = _ZERO
        for block in range(n_blocks):
            start = first + block * _BITS
            same = _ZERO
            for q in range(min(_BITS, n - block * _BITS)):
                if table.token[start + q] == hashes[t]:
                    same |= _ONE << np.uint64(q)
            free = chain[block]
            used = free & same
            total = free + used
            over = np.uint64(total < free)
            total += carry
            carry = over | np.uint64(total < carry)
            chain[block] = total | (free ^ used)
    found = 0
    for block in range(n_blocks):
        found += count_ones(~chain[block])
    return found


@lean_kernel
def add_windows(
    doc: int,
    text: tuple[Uint64s, Int32s, int],
    n_rare: int,
    noted: int,
    table: RareTable,
    scratch: RareScratch,
    rows: Int32s,
) -> int:
    """Write the best window of each noted stretch that has enough: how many of `rows`.

    text    hashes and spans of the document's tokens, and how many there are
    n_rare  rare words of the document;  noted  stretches
    """
    hashes, spans, n = text
    found = 0
    for k in range(noted):
        item = int64(scratch.noted[k, STRETCH_ITEM])
        n_own = find_own_words(k, n_rare, table, scratch)
        weight, words, first, end, is_less = enough_of(item, n_own, table, scratch)
        if weight == 0:
            continue
        window = int64(table.window[item])
        first_wide, end_wide = max(int64(0), end - window), min(n, first + window)
        in_order = int64(0)
        if table.in_order[item] > 0:
            in_order = n_in_order(item, (hashes, first_wide, end_wide), table, scratch.chain)
            if is_less and in_order < table.in_order[item]:
                continue
        rows[found, ROW_DOC] = np.int32(doc)
        rows[found, ROW_ITEM] = np.int32(item)
        rows[found, ROW_WEIGHT] = np.int32(weight)
        rows[found, ROW_WORDS] = np.int32(words)
        rows[found, ROW_TOKENS] = np.int32(end - first)
        rows[found, ROW_FIRST] = spans[first, 0]
        rows[found, ROW_END] = spans[end - 1, 1]
        rows[found, ROW_NEAR_FIRST] = spans[max(int64(0), first - NEAR), 0]
        rows[found, ROW_NEAR_END] = spans[min(n, end + NEAR) - 1, 1]
        rows[found, ROW_WIDE_FIRST] = spans[first_wide, 0]
        rows[found, ROW_WIDE_END] = spans[end_wide - 1, 1]
        rows[found, ROW_IN_ORDER] = np.int32(in_order)
        found += 1
    return found


@kernel
def find_windows(
    text: Uint8s,
    offsets: Int64s,
    table: RareTable,
    scratch: RareScratch,
    hashes: Uint64s,
    spans: Int32s,
    tables: CharTables,
) -> tuple[Int32s, int, int]:
    """Windows of every document of a batch that hold enough of an item's rare words.

    text           uint8[n], UTF-8; document i is text[offsets[i] : offsets[i + 1]]
    hashes, spans  scratch for the longest document, as `tokenize` wants it
    return         int32[>= windows, ROW_COLUMNS], how many windows, and how many tokens were read.
                   Several windows of an item may lie over each other.
    """
    rows = np.empty((_FIRST_ROOM, ROW_COLUMNS), np.int32)
    found = 0
    total = 0
    for doc in range(offsets.shape[0] - 1):
        limits = (offsets[doc], offsets[doc + 1])
        if limits[0] == limits[1]:
            continue
        n = tokenize(text, limits, WORDS, hashes, spans, tables)
        total += n
        make_places(n, scratch)
        n_rare = find_rare_words(hashes, n, table, scratch)
        start = int64(0)
        while start < n_rare:
            start, noted = note_stretches(start, n_rare, table, scratch)
            if found + noted > rows.shape[0]:
                more = np.empty((2 * (found + noted), ROW_COLUMNS), np.int32)
                more[:found] = rows[:found]
                rows = more
            text_tokens = (hashes, spans, n)
            found += add_windows(doc, text_tokens, n_rare, noted, table, scratch, rows[found:])
        scratch.place[0] += n + scratch.gap
    return rows, found, total
