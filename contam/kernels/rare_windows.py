"""Find windows of documents in which enough of an item's rare words come together, in any order.

The stretches that may end one are looked through for the window that holds most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.rare_words import (
    BEGIN,
    FIRST_ROOM,
    LONG_AGO,
    MOST_PLACES,
    note_stretches,
    number_words,
)
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


@lean_kernel
def best_window(
    item: int,
    stretch: tuple[int, int],
    enough: tuple[int, int],
    table: RareTable,
    scratch: RareScratch,
) -> tuple[int, int, int, int]:
    """The window with most of an item's weight of those that end in a noted stretch.

    stretch  its first token, and how many tokens the document has
    enough   the least weight, and the least different words
    return  weight (0: no window has enough), different words, first token and the one behind the
            last; the shortest of equal ones, and of these the first
    """
    count, queue = scratch.tally, scratch.queue
    begin, n = stretch
    least, least_words = enough
    window = int64(table.window[item])
    lo, hi = max(int64(0), begin - window), min(n, begin + window)
    a, b = table.item_start[item], table.item_start[item + 1]
    for q in range(b - a):
        count[q] = 0
    head = int64(0)
    tail = int64(0)
    weight = int64(0)
    different = int64(0)
    best = int64(0)
    best_words = int64(0)
    best_first = int64(0)
    best_end = int64(0)
    for t in range(lo, hi):
        word = scratch.words[t]
        if word < 0:
            continue
        left, right = a, b
        while left < right:
            middle = (left + right) >> 1
            if table.item_word[middle] < word:
                left = middle + 1
            else:
                right = middle
        if left == b or table.item_word[left] != word:
            continue
        queue[tail, 0] = np.int32(t)
        queue[tail, 1] = np.int32(left - a)
        tail += 1
        if count[left - a] == 0:
            weight += table.weight[word]
            different += 1
        count[left - a] += 1
        while queue[head, 0] <= t - window or count[queue[head, 1]] > 1:
            gone = int64(queue[head, 1])
            count[gone] -= 1
            if count[gone] == 0:
                weight -= table.weight[table.item_word[a + gone]]
                different -= 1
            head += 1
        if different < least_words or weight < least:
            continue
        length = t + 1 - queue[head, 0]
        if weight > best or (weight == best and length < best_end - best_first):
            best, best_words = weight, different
            best_first, best_end = int64(queue[head, 0]), t + 1
    return best, best_words, best_first, best_end


@lean_kernel
def enough_of(
    item: int, stretch: tuple[int, int], table: RareTable, scratch: RareScratch
) -> tuple[int, int, int, int, bool]:
    """The best window with enough, or else the best with what is enough in order.

    stretch  as for `best_window`
    return   as of `best_window`; whether it has only what is enough in order
    """
    least, least_words = int64(table.least[item]), int64(table.least_words[item])
    if table.in_order[item] == 0:
        weight, words, first, end = best_window(item, stretch, (least, least_words), table, scratch)
        return weight, words, first, end, False
    less, less_words = int64(table.less[item]), int64(table.less_words[item])
    # Nearly always one search answers both questions.
    weight, words, first, end = best_window(
        item, stretch, (min(least, less), min(least_words, less_words)), table, scratch
    )
    if weight >= least:
        if words >= least_words:
            return weight, words, first, end, False
        more, more_words, its_first, its_end = best_window(
            item, stretch, (least, least_words), table, scratch
        )
        if more > 0:
            return more, more_words, its_first, its_end, False
    if weight < less:
        weight = int64(0)
    return weight, words, first, end, True


@lean_kernel
def n_in_order(
    item: int,
    hashes: NDArray[np.uint64],
    table: RareTable,
    chain: NDArray[np.int32],
) -> int:
    """How many tokens of an item stand among these in the same order, others between them or not.

    chain  scratch
    """
    first = table.token_start[item]
    n = int64(table.n_tokens[item])
    for q in range(n + 1):
        chain[q] = 0
    for t in range(hashes.shape[0]):
        before = np.int32(0)
        for q in range(n):
            here = chain[q + 1]
            if table.token[first + q] == hashes[t]:
                chain[q + 1] = before + 1
            elif chain[q] > here:
                chain[q + 1] = chain[q]
            before = here
    return int64(chain[n])


@kernel
def find_windows(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    table: RareTable,
    scratch: RareScratch,
    hashes: NDArray[np.uint64],
    spans: NDArray[np.int32],
    tables: CharTables,
) -> tuple[NDArray[np.int32], int, int]:
    """Windows of every document of a batch that hold enough of an item's rare words.

    text           uint8[n], UTF-8; document i is text[offsets[i] : offsets[i + 1]]
    hashes, spans  scratch for the longest document, as `tokenize` wants it
    return         int32[>= windows, ROW_COLUMNS], how many windows, and how many tokens were read.
                   Several windows of an item may lie over each other.
    """
    rows = np.empty((FIRST_ROOM, ROW_COLUMNS), np.int32)
    noted = np.empty((FIRST_ROOM, 2), np.int32)
    found = 0
    total = 0
    widest = scratch.queue.shape[0]
    for doc in range(offsets.shape[0] - 1):
        limits = (offsets[doc], offsets[doc + 1])
        if limits[0] == limits[1]:
            continue
        n = tokenize(text, limits, WORDS, hashes, spans, tables)
        total += n
        if scratch.place[0] + n >= MOST_PLACES:
            scratch.last[:] = LONG_AGO
            scratch.counter[:, BEGIN] = LONG_AGO
            scratch.place[0] = 0
        number_words(hashes, n, table, scratch.words)
        noted, count = note_stretches(n, table, scratch, noted)
        # Farther than any stretch reaches, so that no document counts for the next.
        scratch.place[0] += n + widest
        for k in range(count):
            item, begin = int64(noted[k, 0]), int64(noted[k, 1])
            window = int64(table.window[item])
            weight, words, first, end, is_less = enough_of(item, (begin, n), table, scratch)
            if weight == 0:
                continue
            in_order = int64(0)
            if table.in_order[item] > 0:
                wide = hashes[max(int64(0), end - window) : min(n, first + window)]
                in_order = n_in_order(item, wide, table, scratch.chain)
                if is_less and in_order < table.in_order[item]:
                    continue
            if found == rows.shape[0]:
                more = np.empty((2 * found, ROW_COLUMNS), np.int32)
                more[:found] = rows
                rows = more
            row = rows[found]
            row[ROW_DOC] = np.int32(doc)
            row[ROW_ITEM] = np.int32(item)
            row[ROW_WEIGHT] = np.int32(weight)
            row[ROW_WORDS] = np.int32(words)
            row[ROW_TOKENS] = np.int32(end - first)
            row[ROW_FIRST] = spans[first, 0]
            row[ROW_END] = spans[end - 1, 1]
            row[ROW_NEAR_FIRST] = spans[max(int64(0), first - NEAR), 0]
            row[ROW_NEAR_END] = spans[min(n, end + NEAR) - 1, 1]
            row[ROW_WIDE_FIRST] = spans[max(int64(0), end - window), 0]
            row[ROW_WIDE_END] = spans[min(n, first + window) - 1, 1]
            row[ROW_IN_ORDER] = np.int32(in_order)
            found += 1
    return rows, found, total
